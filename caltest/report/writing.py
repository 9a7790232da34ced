"""The files of a report: which suffix is which format, and all of them written whole or not at all."""

from __future__ import annotations

import errno
import os
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from uuid import uuid4

from caltest.exceptions import InputError

#: The suffixes of every format, the usual one first.
SUFFIXES: Mapping[str, tuple[str, ...]] = {
    "html": (".html", ".htm"),
    "markdown": (".md", ".markdown"),
    "json": (".json",),
    "junit": (".xml",),
}


def resolved(path: Path) -> Path:
    """Return where a path leads.

    Raises
    ------
    OSError
        If it is a link to itself, or no path at all, whatever the version of Python.
    """
    try:
        found = path.resolve()
    except ValueError as error:
        raise OSError(errno.EINVAL, str(error)) from error
    except RuntimeError as error:
        raise OSError(errno.ELOOP, os.strerror(errno.ELOOP)) from error
    if found.is_symlink():  # newer versions of Python let a loop pass
        raise OSError(errno.ELOOP, os.strerror(errno.ELOOP))
    return found


def check_file(path: Path) -> None:
    """Raise if nothing could be written there; change nothing.

    Raises
    ------
    OSError
        With the reason.
    """
    target = resolved(path)
    if _is_device(target):
        return
    if target.exists():
        target.open("ab").close()
    part = _part_of(target)
    part.open("xb").close()
    part.unlink()


def write_whole(texts: Mapping[Path, str]) -> None:
    """Write UTF-8 texts to files beside their places first, which then are put in place.

    What is no plain file, a pipe or a device, is written to when all other texts are on disk, and
    nothing takes its place. A link stays a link, and permissions stay.

    Raises
    ------
    InputError
        If a file cannot be written. None is changed then, but for those that it names.
    """
    parts: dict[Path, tuple[Path, Path]] = {}
    done: list[str] = []
    try:
        devices = []
        for path, text in texts.items():
            with _named(path, done):
                target = resolved(path)
                if _is_device(target):
                    devices.append(path)
                    continue
                part = _part_of(target)
                with part.open("x", encoding="utf-8", newline="\n") as file:
                    parts[path] = target, part  # it is ours, to be taken away
                    file.write(text)
                if target.exists():
                    shutil.copymode(target, part)
        for path in devices:
            with _named(path, done), path.open("w", encoding="utf-8", newline="\n") as file:
                file.write(texts[path])
            done.append(str(path))
        for path, (target, part) in parts.items():
            with _named(path, done):
                part.replace(target)
            done.append(str(path))
    finally:
        for _, part in parts.values():
            with suppress(OSError):
                part.unlink(missing_ok=True)


@contextmanager
def _named(path: Path, done: list[str]) -> Iterator[None]:
    """Name the file that cannot be written, and those that are written by then."""
    try:
        yield
    except (OSError, ValueError) as error:
        reason = (error.strerror or error) if isinstance(error, OSError) else error
        also = f", but {', '.join(done)} had been written by then" if done else ""
        raise InputError(
            f"{path} cannot be written: {reason}{also}; give a file in a folder that exists and may be "
            "written to."
        ) from error


def _is_device(path: Path) -> bool:
    """Whether a path is there and no plain file, as /dev/null is: nothing may replace it."""
    return path.exists() and not path.is_file()


def _part_of(target: Path) -> Path:
    return target.with_name(f".caltest-{uuid4().hex}.part")
