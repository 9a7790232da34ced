"""Paths and URLs: accepted files, how to open them, and a one-sentence message for every failure.

A file is on this machine, or behind a URL of a file system known to pyarrow or fsspec. Any exception of
a library that reads it becomes an InputError of one sentence here.
"""

from __future__ import annotations

import io
import os
import re
import stat
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cache
from io import BufferedReader
from pathlib import Path, PurePosixPath
from typing import Any, TypeAlias
from urllib.parse import urlsplit

from caltest._visible import reason
from caltest.exceptions import InputError

_LONGEST_NAME = 80  # characters of a file's name in a message
_LONGEST_REASON = 200  # characters of a library's message
_URL = re.compile(r"[A-Za-z][\w+.:-]*://")
_OURS = ("s3", "gs", "gcs", "abfs", "abfss", "hdfs", "viewfs")  # file systems built into pyarrow
_UNREACHED = (
    "it cannot be reached",
    "check the address, the network, the credentials, and that fsspec and what it needs are installed",
)


@dataclass(frozen=True)
class Remote:
    """A file or directory in another file system, in a form that another process can open too.

    Attributes
    ----------
    root
        URL of that file system, with its options.
    path
        Path within it.
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
        """The suffix of the name."""
        return PurePosixPath(self.path).suffix


Place: TypeAlias = "Path | Remote"


def is_url(path: str | Path) -> bool:
    """Return whether a text is a URL rather than a path."""
    return isinstance(path, str) and _URL.match(path) is not None


def located(path: str | Path) -> Place:
    """Return the place that a path or URL refers to, whether or not it exists.

    >>> located("a/b.csv") == located("file:///a/b.csv").relative_to("/") == Path("a/b.csv")
    True
    """
    if str(path) == "":
        raise InputError("the path is empty; give that of a file.")
    if not is_url(path):
        return Path(path)
    url, _, query = str(path).partition("?")
    if url.partition("://")[0] in ("file", "local"):
        from urllib.request import url2pathname  # slow to import

        return Path(url2pathname(urlsplit(url).path))
    # A pattern is not part of a URL: where it begins, the path within the file system begins.
    parts = url.split("/")
    count = next((k for k, part in enumerate(parts) if re.search(r"[*\[]", part)), len(parts))
    root = "/".join(parts[:count]) + (f"?{query}" if query else "")
    return Remote(root, "/".join([_file_system(root)[1].rstrip("/"), *parts[count:]]))


@cache
def _file_system(url: str) -> tuple[Any, str]:
    """Return a pyarrow file system, and the path within it."""
    from pyarrow import ArrowNotImplementedError, fs

    with reading(*_UNREACHED):
        if url.partition("://")[0] in _OURS:
            with suppress(ArrowNotImplementedError):  # it was left out of this build
                found, path = fs.FileSystem.from_uri(url)
                return found, str(path)
        from fsspec.core import url_to_fs

        found, path = url_to_fs(url)
        return fs.PyFileSystem(fs.FSSpecHandler(found)), str(path)


def _info(place: Remote, wanted: Any = None) -> Any:
    """Return the file system's information about a path, or about the ``wanted`` entries."""
    system, _ = _file_system(place.root)
    with reading(*_UNREACHED):
        return system.get_file_info(wanted or place.path)


def is_pattern(place: Place) -> bool:
    """Return whether a path has wildcards and does not exist literally."""
    magic = r"[*?\[]" if isinstance(place, Path) else r"[*\[]"
    return re.search(magic, str(place)) is not None and not is_file(place) and not is_folder(place)


def entries(place: Place) -> list[Place]:
    """Return the entries of a directory, or the matches of a pattern, sorted by name.

    In a pattern, * and ? match within one name, [ab] matches one letter. Names that begin with "." or
    "_", which systems keep beside data, are left out.
    """
    parts = str(place).split("/") if isinstance(place, Remote) else list(place.parts)
    wild = (k for k, part in enumerate(parts) if re.search(r"[*?\[]", part))
    count = len(parts) if is_folder(place) else next(wild)
    pattern = "/".join(parts[count:]) or "*"
    found: list[Any]
    if isinstance(place, Path):
        with reading("the directory cannot be read"):
            base = Path(*parts[:count])
            found = list(base.glob(pattern)) or list(base.iterdir())[:0]  # raises if it cannot be read
    else:
        from pyarrow import fs

        folder, depth = "/".join(parts[:count]), pattern.count("/") + 1
        infos = _info(place, fs.FileSelector(folder, recursive=depth > 1))
        below = [PurePosixPath(each.path).relative_to(folder) for each in infos]
        below = [each for each in below if len(each.parts) == depth and each.match(pattern)]
        found = [Remote(place.root, f"{folder}/{each}") for each in below]
    return sorted((each for each in found if each.name[0] not in "._"), key=lambda e: str(e).split("/"))


def called(path: Any) -> str:
    """Return a file's name for messages, shortened in the middle if it is long.

    Examples
    --------
    >>> called("data/weather.csv"), called(Path(".")), len(called("a" * 300 + ".csv"))
    ('weather.csv', '.', 80)
    """
    if isinstance(path, list | tuple):
        return f"{called(path[0])} and {len(path) - 1} more"
    name = Path(str(path)).name or str(path) or "''"
    return name if len(name) <= _LONGEST_NAME else f"{name[: _LONGEST_NAME - 21]}…{name[-20:]}"


def called_apart(places: Sequence[Place]) -> tuple[str, ...]:
    """Return names for several files in messages, with the folders in which they differ.

    >>> called_apart([Path("a/day=1/b.csv"), Path("a/day=2/b.csv")])
    ('day=1/b.csv', 'day=2/b.csv')
    """
    parts = [str(each).split("/") for each in places]
    first = next(k for k, level in enumerate(zip(*parts, strict=False)) if len(set(level)) > 1)
    return tuple("/".join([*each[first:-1], called(each[-1])]) for each in parts)


def is_folder(path: str | Place) -> bool:
    """Return whether the path is an existing folder; False if it cannot be looked up."""
    return _info(path).type.name == "Directory" if isinstance(path, Remote) else os.path.isdir(path)  # noqa: PTH112


def is_file(path: str | Place) -> bool:
    """Return whether the path is an existing plain file."""
    return bool(_info(path).is_file) if isinstance(path, Remote) else os.path.isfile(path)  # noqa: PTH113


def check_file(path: Place) -> None:
    """Raise unless the path is a plain file; nothing is opened, because that may start a device."""
    if isinstance(path, Remote):
        if (kind := _info(path).type.name) == "NotFound":
            raise InputError("there is no such file; check the path.")
    else:
        with reading("the file cannot be read"):
            mode = path.stat().st_mode
        kinds = {stat.S_IFREG: "File", stat.S_IFDIR: "Directory", stat.S_IFIFO: "pipe"}
        kind = kinds.get(stat.S_IFMT(mode), "socket" if stat.S_ISSOCK(mode) else "device")
    if kind == "Directory":
        raise InputError("this is a directory; give one of the files in it.")
    if kind != "File":  # others have no known size or content
        raise InputError(f"this is a {kind}, not a file; save the data in a file, and give that.")


@contextmanager
def opened(path: str | Place, kind: str) -> Iterator[BufferedReader]:
    """Open a plain file for the duration of the body.

    Parameters
    ----------
    path
        Path of the file.
    kind
        Its expected format, such as "CSV".

    Raises
    ------
    InputError
        If it is not a regular file, or anything fails in the body. :func:`named` adds the name.
    """
    path = Path(path) if isinstance(path, str) else path
    check_file(path)
    with reading(f"the file is not valid {kind}"):
        if isinstance(path, Remote):
            with reading(*_UNREACHED):
                file = BufferedReader(_file_system(path.root)[0].open_input_file(path.path))
        else:
            file = path.open("rb")
        with file:
            yield file


def size_of(file: BufferedReader) -> int:
    """Return the present size of an opened file in bytes."""
    raw: Any = file.raw
    return int(raw.size()) if is_remote(file) else os.fstat(file.fileno()).st_size


def is_remote(file: BufferedReader) -> bool:
    """Return whether an opened file is remote, where few large reads are best."""
    return not isinstance(file.raw, io.FileIO)


@contextmanager
def named(name: str) -> Iterator[None]:
    """Prefix errors raised in the body with the name of a file."""
    try:
        yield
    except InputError as error:
        raise error.within(name) from error
    except MemoryError as error:
        raise InputError(f"{name}: {_sentence('', error)}") from error


@contextmanager
def placed(place: Callable[[int], object]) -> Iterator[None]:
    """Name the rows in errors raised in the body as ``place`` says."""
    try:
        yield
    except InputError as error:
        raise error.placed(place) from error


@contextmanager
def reading(failure: str, do: str = "") -> Iterator[None]:
    """Turn any exception of a library that reads into an InputError of one sentence.

    Parameters
    ----------
    failure
        A general description of the failure: "the file is not valid CSV".
    do
        Advice. Default: save the file anew.
    """
    try:
        yield
    except InputError:
        raise
    except Exception as error:
        raise InputError(_sentence(failure, error, do)) from error


def _sentence(failure: str, error: Exception, do: str = "") -> str:
    words = reason(error).removesuffix(".").replace(". ", ": ").replace("; ", ", ")
    words = words or type(error).__name__
    words = words if len(words) <= _LONGEST_REASON else f"{words[:_LONGEST_REASON]}…"
    if isinstance(error, MemoryError):
        return "reading it takes more memory than there is; take fewer rows, or allow more memory."
    if isinstance(error, UnicodeError):
        return "the file is not UTF-8 text; save it as UTF-8."
    if isinstance(error, FileNotFoundError | NotADirectoryError):
        return "there is no such file; check the path."
    if isinstance(error, OSError) and error.errno is not None and not do:
        return f"the file cannot be read: {error.strerror or words}; check it and its permissions."
    return f"{failure}: {words}; {do or 'save it anew'}."


_COMPRESSED = {b"\x1f\x8b": "gzip", b"BZh": "bzip2", b"\xfd7zXZ": "xz", b"(\xb5/\xfd": "zstd"}
_WIDE = {b"\xff\xfe\0\0": 32, b"\0\0\xfe\xff": 32, b"\xff\xfe": 16, b"\xfe\xff": 16}
#: First bytes of files with a wrong suffix or an unreadable format, with advice.
_OTHERS = {
    **{first: f"is compressed with {name}; unpack it first" for first, name in _COMPRESSED.items()},
    b"PK\x03\x04": "is a zip archive, Excel or NPZ; unpack it, or rename it to .npz if it is that",
    b"PAR1": "is a Parquet file; rename it to .parquet",
    b"PARE": "is encrypted Parquet; save it without encryption",
    b"ARROW1": "is an Arrow file; rename it to .arrow",
    b"\xff\xff\xff\xff": "is a stream of Arrow; write a file instead, with pyarrow.ipc.new_file",
    b"FEA1": "is Feather of version 1; save it in version 2",
    b"\x93NUMPY": "is a NumPy array; rename it to .npy",
    **{first: f"is UTF-{n} text, not UTF-8; save it as UTF-8" for first, n in _WIDE.items()},
}


def first_bytes(file: BufferedReader, own: bytes | None = None) -> bytes:
    """Return the first bytes of a file and rewind; raise if another format begins so."""
    start = file.read(8)
    file.seek(0)
    for first, advice in _OTHERS.items():
        if start.startswith(first) and first != own:
            raise InputError(f"its content {advice}.")
    return start
