"""How a user's file is opened: which files are accepted, and one sentence for every failure.

Formats are handled elsewhere. A reader opens the file here, once, and reads inside; what the libraries
raise while they do becomes one sentence. A file is on this machine, or behind a URL of one of
the file systems that pyarrow or fsspec know.
"""

from __future__ import annotations

import io
import os
import re
import stat
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import cache
from io import BufferedReader
from pathlib import Path, PurePosixPath
from typing import Any, TypeAlias
from urllib.parse import urlsplit
from urllib.request import url2pathname

from caltest._visible import quoted, reason
from caltest.exceptions import InputError

_LONGEST_NAME = 80  # characters of a file's name in a message
_LONGEST_REASON = 200  # of what a library says
# A pipe is opened without waiting for its writer, and refused then; no terminal takes us over.
_FLAGS = os.O_RDONLY | sum(
    getattr(os, name, 0) for name in ("O_NONBLOCK", "O_NOCTTY", "O_CLOEXEC", "O_BINARY")
)
_URL = re.compile(r"[A-Za-z][\w+.:-]*://")
_OURS = ("s3", "gs", "gcs", "abfs", "abfss", "hdfs", "viewfs")  # pyarrow has them built in


@dataclass(frozen=True)
class Remote:
    """A file or a directory of another file system: what another process needs to open it too.

    Attributes
    ----------
    root
        A URL of that file system, with whatever options it has.
    path
        Where in it.
    """

    root: str
    path: str

    def __str__(self) -> str:
        return self.path

    @property
    def name(self) -> str:
        """The last part of the path."""
        return PurePosixPath(self.path).name

    @property
    def suffix(self) -> str:
        """The ending of the name."""
        return PurePosixPath(self.path).suffix


Place: TypeAlias = "Path | Remote"


def is_url(path: str | Path) -> bool:
    """Say whether text is a URL, and no path."""
    return isinstance(path, str) and _URL.match(path) is not None


def located(path: str | Path) -> Place:
    """Return where a path or a URL leads; nothing need be there.

    >>> located("a/b.csv") == located("file:///a/b.csv").relative_to("/") == Path("a/b.csv")
    True
    """
    if str(path) == "":
        raise InputError("the path is empty; give that of a file.")
    if not is_url(path):
        return Path(path)
    url, _, query = str(path).partition("?")
    if _scheme(url) in ("file", "local"):
        return Path(url2pathname(urlsplit(url).path))
    # A pattern is no part of a URL: where it begins, a path within the file system does.
    parts = url.split("/")
    count = next((k for k, part in enumerate(parts) if re.search(r"[*\[]", part)), len(parts))
    root = "/".join(parts[:count]) + (f"?{query}" if query else "")
    within = _file_system(root)[1].rstrip("/")
    return Remote(root, "/".join([within, *parts[count:]]))


@cache
def _file_system(url: str) -> tuple[Any, str]:
    """Return a file system of pyarrow, and the path in it."""
    from pyarrow import ArrowNotImplementedError, fs

    with _reached(url):
        if _scheme(url) in _OURS:
            with suppress(ArrowNotImplementedError):  # it was left out of this build
                found, path = fs.FileSystem.from_uri(url)
                return found, str(path)
        try:
            from fsspec.core import url_to_fs
        except ImportError:
            need = f"files of {quoted(_scheme(url))} need fsspec, which is not installed"
            raise InputError(f"{need}; pip install fsspec.") from None
        found, path = url_to_fs(url)
        return fs.PyFileSystem(fs.FSSpecHandler(found)), str(path)


@contextmanager
def _reached(url: str) -> Iterator[None]:
    """Turn whatever a file system raises before a file is read into an InputError of one sentence."""
    try:
        yield
    except InputError:
        raise
    except Exception as error:
        do = "check the address, the network and the credentials"
        found = f"it cannot be reached: {_reason(error)}; {do}."
        if isinstance(error, FileNotFoundError):
            found = _told("", error)
        elif isinstance(error, ImportError):
            scheme = quoted(_scheme(url))
            found = f"files of {scheme} need a package that is not installed: {_reason(error)}."
        raise InputError(found) from error


def _scheme(url: str) -> str:
    return url.partition("://")[0]


def _info(place: Remote, wanted: Any = None) -> Any:
    """Return what a file system knows of a path, or of what is ``wanted`` there."""
    system, _ = _file_system(place.root)
    with _reached(place.root):
        return system.get_file_info(wanted or place.path)


def entries(folder: Place) -> list[tuple[Place, bool, bool]]:
    """Return what is in a directory, by name, and whether each is a plain file, or a directory.

    What systems keep beside data, names that begin with "." or "_", is left out.
    """
    found: list[tuple[Place, bool, bool]]
    if isinstance(folder, Path):
        with reading("the directory cannot be read"):
            found = [(each, is_file(each), is_folder(each)) for each in folder.iterdir()]
    else:
        from pyarrow import fs

        infos = _info(folder, fs.FileSelector(folder.path))
        found = [
            (Remote(folder.root, each.path.rstrip("/")), each.is_file, each.type.name == "Directory")
            for each in infos
        ]
    return sorted(
        (each for each in found if each[0].name[0] not in "._"), key=lambda each: each[0].name
    )


def is_pattern(place: Place) -> bool:
    """Say whether a path has wildcards, and is not that of something by itself."""
    magic = r"[*?\[]" if isinstance(place, Path) else r"[*\[]"
    return re.search(magic, str(place)) is not None and not is_file(place) and not is_folder(place)


def matching(pattern: Place) -> list[tuple[Place, bool, bool]]:
    """Return the `entries` that a pattern matches: * and ? are part of one name, [ab] one letter."""
    parts = str(pattern).split("/") if isinstance(pattern, Remote) else list(pattern.parts)
    first = next(k for k, part in enumerate(parts) if re.search(r"[*?\[]", part))
    begin: Place = Path(*parts[:first])
    if isinstance(pattern, Remote):
        begin = Remote(pattern.root, "/".join(parts[:first]))
    found = [(begin, False, is_folder(begin))]
    for part in parts[first:]:
        found = [
            each
            for folder, _, goes_on in found
            if goes_on
            for each in entries(folder)
            if fnmatchcase(each[0].name, part)
        ]
    if not found:
        raise InputError("no file matches this pattern; check it.")
    return found


def called(path: str | Path | Remote) -> str:
    """Return what messages call a file: its name, the middle left out if it is long.

    Examples
    --------
    >>> called("data/weather.csv"), called(Path(".")), len(called("a" * 300 + ".csv"))
    ('weather.csv', '.', 80)
    """
    name = Path(str(path)).name or str(path) or "''"
    if len(name) <= _LONGEST_NAME:
        return name
    return f"{name[: _LONGEST_NAME - 21]}…{name[-20:]}"


def is_folder(path: str | Place) -> bool:
    """Say whether there is a folder of that name; a path that cannot be looked up is none."""
    return _info(path).type.name == "Directory" if isinstance(path, Remote) else _is(stat.S_ISDIR, path)


def is_file(path: str | Place) -> bool:
    """Say whether there is a plain file of that name."""
    return bool(_info(path).is_file) if isinstance(path, Remote) else _is(stat.S_ISREG, path)


def _is(kind: Callable[[int], bool], path: str | Path) -> bool:
    try:
        return kind(Path(path).stat().st_mode)
    except (OSError, ValueError):
        return False


def check_file(path: Place) -> None:
    """Raise unless the path leads to a plain file, which is not opened."""
    if isinstance(path, Remote):
        found = _info(path)
        if found.type.name == "NotFound":
            raise InputError("there is no such file; check the path.")
        if not found.is_file:
            what = "a directory" if found.type.name == "Directory" else "no file"
            raise InputError(f"this is {what}; give a file with data in it.")
        return
    with reading("the file cannot be read"):
        if "\0" in str(path):
            raise InputError("the path holds a null character, as no file's does; check it.")
        _check_plain(path.stat())


@contextmanager
def opened(path: str | Place, kind: str) -> Iterator[BufferedReader]:
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
        If it is not a regular file, or whatever goes wrong in the body. :func:`named` says whose it is.
    """
    path = Path(path) if isinstance(path, str) else path
    check_file(path)  # first: to open a device may do something
    if isinstance(path, Remote):
        system, _ = _file_system(path.root)
        with _reached(path.root):
            if _scheme(path.root) == "memory":  # all who open it would share one position
                from pyarrow import BufferReader

                stream = BufferReader(system.handler.fs.cat_file(path.path))
            else:
                stream = system.open_input_file(path.path)
        with reading(f"the file is not valid {kind}"), BufferedReader(stream) as file:
            yield file
        return
    with reading(f"the file is not valid {kind}"):
        descriptor = os.open(path, _FLAGS)
        with os.fdopen(descriptor, "rb") as file:
            _check_plain(os.fstat(descriptor))  # nothing has taken its place
            yield file


def size_of(file: BufferedReader) -> int:
    """Return the bytes that an opened file has now."""
    raw: Any = file.raw
    return int(raw.size()) if is_remote(file) else os.fstat(file.fileno()).st_size


def is_remote(file: BufferedReader) -> bool:
    """Say whether an opened file is that of another file system, of which few reads are many bytes."""
    return not isinstance(file.raw, io.FileIO)


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
    words = reason(error).removesuffix(".").replace(". ", ": ").replace("; ", ", ")
    words = words or type(error).__name__
    return words if len(words) <= _LONGEST_REASON else f"{words[:_LONGEST_REASON]}…"


def _check_plain(found: os.stat_result) -> None:
    """Raise unless what was found is a plain file: of others the end, or the content, is not known."""
    mode = found.st_mode
    if stat.S_ISDIR(mode):
        raise InputError("this is a directory; give one of the files in it.")
    if not stat.S_ISREG(mode):
        what = "pipe" if stat.S_ISFIFO(mode) else "socket" if stat.S_ISSOCK(mode) else "device"
        raise InputError(f"this is a {what}, not a file; save the data in a file, and give that.")
