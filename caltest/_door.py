"""The one door through which a user's file is read: what it lets in, and how every failure is told.

It knows nothing of formats. Whoever reads opens the file here, once, and reads inside; what the
libraries raise while they do becomes one sentence.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from io import BufferedReader
from pathlib import Path

from caltest.exceptions import InputError

_LONGEST_NAME = 80  # characters of a file's name in a message
_LONGEST_REASON = 200  # of what a library says
# A pipe is opened without waiting for its writer, and refused then; no terminal takes us over.
_FLAGS = (
    os.O_RDONLY
    | getattr(os, "O_NONBLOCK", 0)
    | getattr(os, "O_NOCTTY", 0)
    | getattr(os, "O_CLOEXEC", 0)
    | getattr(os, "O_BINARY", 0)
)
_ONLY_FILES = "save the data in a file, and give that"


def called(path: str | Path) -> str:
    """Return what messages call a file: its name, the middle left out if it is long.

    Examples
    --------
    >>> called("data/weather.csv"), called(Path(".")), len(called("a" * 300 + ".csv"))
    ('weather.csv', '.', 80)
    """
    name = Path(path).name or str(path) or "''"
    if len(name) <= _LONGEST_NAME:
        return name
    return f"{name[: _LONGEST_NAME - 21]}…{name[-20:]}"


def is_folder(path: str | Path) -> bool:
    """Say whether there is a folder of that name; a path that cannot be looked up is none."""
    return _is(stat.S_ISDIR, path)


def is_file(path: str | Path) -> bool:
    """Say whether there is a plain file of that name."""
    return _is(stat.S_ISREG, path)


def check_file(path: str | Path) -> None:
    """Raise unless the path leads to a plain file, which is not opened."""
    with reading("the file cannot be read"):
        _check_path(path)
        _check_plain(Path(path).stat())


@contextmanager
def opened(path: str | Path, kind: str) -> Iterator[BufferedReader]:
    """Open a plain file, once, and read it in the body.

    Parameters
    ----------
    path
        Of the file.
    kind
        What it should be, such as "CSV".

    Raises
    ------
    InputError
        If it is no plain file, or whatever goes wrong in the body. :func:`named` says whose it is.
    """
    with reading(f"the file is not valid {kind}"):
        _check_path(path)
        _check_plain(Path(path).stat())  # first: to open a device may do something
        descriptor = os.open(path, _FLAGS)
        with os.fdopen(descriptor, "rb") as file:
            _check_plain(os.fstat(descriptor))  # nothing has taken its place
            yield file


def size_of(file: BufferedReader) -> int:
    """Return the bytes that an opened file has now."""
    return os.fstat(file.fileno()).st_size


@contextmanager
def named(name: str) -> Iterator[None]:
    """Begin what goes wrong in the body with the name of a file."""
    try:
        yield
    except InputError as error:
        raise error.within(name) from error
    except MemoryError as error:
        raise InputError(f"{name}: {_told('', error)}") from error


@contextmanager
def reading(failure: str) -> Iterator[None]:
    """Turn whatever a library raises while it reads into an InputError of one sentence.

    Parameters
    ----------
    failure
        What it means, in general: "the file is not valid CSV".
    """
    try:
        yield
    except InputError:
        raise
    except Exception as error:
        raise InputError(_told(failure, error)) from error


def _told(failure: str, error: Exception) -> str:
    if isinstance(error, MemoryError):
        return "reading it takes more memory than there is; take fewer rows, or allow more memory."
    if isinstance(error, UnicodeError):
        return "the file is not UTF-8 text; save it as UTF-8."
    if isinstance(error, FileNotFoundError | NotADirectoryError):
        return "there is no such file; check the path."
    if isinstance(error, OSError) and error.errno is not None:
        why = error.strerror or _reason(error)
        return f"the file cannot be read: {why}; check it and its permissions."
    if isinstance(error, RecursionError):
        return f"{failure}: what it holds is nested too deep to be read; flatten it."
    if "set_int_max_str_digits" in str(error):
        return f"{failure}: a number in it has thousands of digits; shorten it."
    return f"{failure}: {_reason(error)}; save it anew."


def _reason(error: Exception) -> str:
    """Make one clause of a library's message."""
    words = " ".join(str(error).split()).removesuffix(".").replace(". ", ": ").replace("; ", ", ")
    words = words or type(error).__name__
    return words if len(words) <= _LONGEST_REASON else f"{words[:_LONGEST_REASON]}…"


def _is(kind: object, path: str | Path) -> bool:
    try:
        return bool(kind(Path(path).stat().st_mode))  # type: ignore[operator]
    except (OSError, ValueError):
        return False


def _check_path(path: str | Path) -> None:
    if str(path) == "":
        raise InputError("the path is empty; give that of a file.")
    if "\0" in str(path):
        raise InputError("the path holds a null character, as no file's does; check it.")


def _check_plain(found: os.stat_result) -> None:
    """Raise unless what was found is a plain file: of others the end, or the content, is not known."""
    mode = found.st_mode
    if stat.S_ISREG(mode):
        return
    if stat.S_ISDIR(mode):
        raise InputError("this is a directory; give one of the files in it.")
    if stat.S_ISFIFO(mode):
        raise InputError(f"this is a pipe, not a file; {_ONLY_FILES}.")
    if stat.S_ISSOCK(mode):
        raise InputError(f"this is a socket, not a file; {_ONLY_FILES}.")
    raise InputError(f"this is a device, not a file; {_ONLY_FILES}.")
