"""Files written completely or not at all: reports, data and pictures.

Content is written to a temporary file in the same folder, which replaces the target when it is
complete. After an error, a full disk or Ctrl-C, the old file is still there.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from uuid import uuid4

from caltest._visible import shown
from caltest.exceptions import InputError

_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_BINARY", 0)
_PRIVATE, _USUAL = 0o600, 0o666


def resolved(path: Path) -> Path:
    """Return the file that a path leads to; raise OSError for a loop of links or an invalid path."""
    try:
        found = path.resolve()
    except ValueError as error:
        raise OSError(errno.EINVAL, str(error)) from error
    except RuntimeError as error:
        raise OSError(errno.ELOOP, os.strerror(errno.ELOOP)) from error
    if found.is_symlink():  # newer versions of Python accept a loop
        raise OSError(errno.ELOOP, os.strerror(errno.ELOOP))
    return found


def same_file(one: Path, other: Path) -> bool:
    """Whether two paths lead to the same file, through links of either kind."""
    first, second = resolved(one), resolved(other)
    return first == second or (first.exists() and second.exists() and first.samefile(second))


def is_special(path: Path) -> bool:
    """Whether a path is neither free nor a plain file, like /dev/null: it must not be replaced."""
    return path.exists() and not path.is_file()


def check_file(path: Path) -> None:
    """Raise an OSError with the reason if the file could not be written; change nothing."""
    target = resolved(path)
    if is_special(path):
        _open_special(path)  # and never close: the reader of a pipe would take that for the end
        return
    if target.exists():
        target.open("ab").close()
    part = _part_of(target)
    os.close(os.open(part, _NEW, _PRIVATE))
    part.unlink()


def write_whole(contents: Mapping[Path, str | bytes]) -> None:
    """Write several files completely, or none of them; text is written as UTF-8.

    Temporary files are written in the same folders. A new file gets the usual permissions of its folder
    and user; a replaced file keeps its permissions. Pipes and devices are written last, when all other
    files are on disk, and are never replaced. A link stays a link. If a file cannot be written, the
    InputError names it and those already changed.
    """
    parts: dict[Path, tuple[Path, Path]] = {}
    done: list[str] = []
    devices: dict[Path, bytes] = {}
    try:
        for path, text in contents.items():
            with _named(path, done):
                target, content = resolved(path), text.encode() if isinstance(text, str) else text
                if is_special(path):
                    devices[path] = content
                    continue
                part, there = _part_of(target), target.exists()
                with os.fdopen(os.open(part, _NEW, _PRIVATE if there else _USUAL), "wb") as file:
                    parts[path] = target, part  # it is ours, to be removed
                    if there and os.name != "nt":
                        with suppress(PermissionError):  # some shared folders have no permissions
                            os.fchmod(file.fileno(), stat.S_IMODE(target.stat().st_mode) & 0o777)
                    file.write(content)
        for path, content in devices.items():
            with _named(path, done), os.fdopen(_open_special(path), "wb") as device:
                device.write(content)
            done.append(shown(str(path)))
        for path, (target, part) in parts.items():
            with _named(path, done):
                part.replace(target)
            done.append(shown(str(path)))
    finally:
        for _, part in parts.values():
            with suppress(OSError):
                part.unlink(missing_ok=True)


def _open_special(path: Path) -> int:
    """Open a pipe or device for writing without losing data; a pipe must have a reader."""
    mode = path.stat().st_mode
    if not (stat.S_ISCHR(mode) or stat.S_ISFIFO(mode)):
        what = "a socket" if stat.S_ISSOCK(mode) else "a disk" if stat.S_ISBLK(mode) else "no file"
        raise OSError(errno.EINVAL, f"it is {what}")
    waits = getattr(os, "O_NONBLOCK", 0) if stat.S_ISFIFO(mode) else 0
    try:
        file = os.open(path, os.O_WRONLY | waits)
    except OSError as error:
        if waits and error.errno == errno.ENXIO:
            raise OSError(errno.ENXIO, "it is a pipe from which nobody reads") from None
        raise
    if waits:
        os.set_blocking(file, True)
    return file


@contextmanager
def _named(path: Path, done: list[str]) -> Iterator[None]:
    """Name the file that cannot be written, and those already written."""
    try:
        yield
    except (OSError, ValueError) as error:
        reason = (error.strerror or error) if isinstance(error, OSError) else error
        also = f", but {', '.join(done)} had been written by then" if done else ""
        do = "give a file in a folder that exists and may be written to"
        raise InputError(f"{path} cannot be written: {reason}{also}; {do}.") from error


def _part_of(target: Path) -> Path:
    return target.with_name(f".caltest-{uuid4().hex}.part")
