"""Files that a command is to write, looked at before the work."""

from __future__ import annotations

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
    from caltest.report.writing import resolved  # slow to import

    taken: dict[Path, str] = {}
    for path in inputs:
        try:
            taken[resolved(path)] = f"the file that is read ({path})"
        except OSError:  # whoever reads it says so
            continue
    for option, path in outputs.items():
        name = f"{option} is {path}"
        try:
            place = path if path == STANDARD_OUTPUT else resolved(path)
            if place in taken:
                raise InputError(f"{name}, which is {taken[place]}; give another file.")
            taken[place] = f"that of {option} too"
            if path != STANDARD_OUTPUT:
                _check_place(name, path, suffixes[option])
        except OSError as error:
            raise InputError(
                f"{name}, which cannot be written: {error.strerror}; give another file."
            ) from error


def _check_place(name: str, path: Path, suffixes: tuple[str, ...]) -> None:
    from caltest.report.writing import check_file

    if path.is_dir():
        raise InputError(f"{name}, which is a folder; give a file in it.")
    new = not path.exists()
    if (new or path.is_file()) and path.suffix.lower() not in suffixes:
        raise InputError(f"{name}; give a file name that ends in {' or '.join(suffixes)}.")
    if new and not path.parent.is_dir():
        raise InputError(f"{name}, and there is no folder {path.parent}; make it first.")
    check_file(path)
