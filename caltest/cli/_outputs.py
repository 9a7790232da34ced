"""Files that a command writes: all of them, or none."""

from __future__ import annotations

import os
import shutil
import zlib
from collections.abc import Iterable, Mapping
from pathlib import Path

from caltest.exceptions import InputError

STANDARD_OUTPUT = Path("-")


def check_outputs(
    outputs: Mapping[str, Path],
    suffixes: Mapping[str, tuple[str, ...]],
    inputs: Iterable[Path],
) -> None:
    """Raise, before anything is computed, if a file could not be written, or would destroy another.

    Parameters
    ----------
    outputs
        By option, such as "--report": where to write; "-" is standard output.
    suffixes
        Of the names of files, by option.
    inputs
        What is read.
    """
    taken = {path.resolve(): f"the file that is read ({path})" for path in inputs}
    for option, path in outputs.items():
        name = f"{option} is {path}"
        place = path if path == STANDARD_OUTPUT else path.resolve()
        if place in taken:
            raise InputError(f"{name}, which is {taken[place]}; give another file.")
        taken[place] = f"that of {option} too"
        if path == STANDARD_OUTPUT:
            continue
        try:
            _check_place(name, path, suffixes[option])
        except OSError as error:
            raise InputError(
                f"{name}, which cannot be written: {error.strerror}; give another file."
            ) from error


def _check_place(name: str, path: Path, suffixes: tuple[str, ...]) -> None:
    if path.is_dir():
        raise InputError(f"{name}, which is a folder; give a file in it.")
    if _is_device(path):
        return
    if path.suffix.lower() not in suffixes:
        raise InputError(f"{name}; give a file name that ends in {' or '.join(suffixes)}.")
    if not path.parent.is_dir():
        raise InputError(f"{name}, and there is no folder {path.parent}; make it first.")
    if path.exists():
        path.open("ab").close()
    part = _part_of(path)
    part.open("xb").close()
    part.unlink()


def write_files(texts: Mapping[Path, str]) -> None:
    """Write every file beside its place first, then put all in place: no half of a file is left.

    Raises
    ------
    InputError
        If a file cannot be written; none is changed then.
    """
    parts: dict[Path, Path] = {}
    try:
        for path, text in texts.items():
            target = path
            if not _is_device(path):
                target = parts[path.resolve()] = _part_of(path)  # a link stays a link
            with target.open("w", encoding="utf-8", newline="\n") as file:
                file.write(text)
        for place, part in parts.items():
            if place.exists():
                shutil.copymode(place, part)
            part.replace(place)
    except OSError as error:
        raise InputError(f"{path} cannot be written: {error.strerror}.") from error
    finally:
        for part in parts.values():
            part.unlink(missing_ok=True)


def _is_device(path: Path) -> bool:
    """Whether a path is there and no plain file, as /dev/null is: nothing may replace it."""
    return path.exists() and not path.is_file()


def _part_of(path: Path) -> Path:
    place = path.resolve()
    number = zlib.crc32(os.fsencode(place.name))
    return place.with_name(f".caltest-{os.getpid()}-{number:08x}.part")
