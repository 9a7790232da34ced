"""Files that a command is to write, looked at before the work."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path

from caltest._writing import check_file, is_special, resolved, same_file
from caltest.exceptions import InputError

STANDARD_OUTPUT = Path("-")
_LARGEST_PICTURE = 2**24  # bytes


def check_outputs(
    outputs: Mapping[str, Path],
    suffixes: Mapping[str, tuple[str, ...]],
    inputs: Iterable[Path | None],
) -> None:
    """Raise, before anything is computed, if a file could not be written, or would destroy another.

    Parameters
    ----------
    outputs
        By option, such as "--report": where to write; "-" is standard output.
    suffixes
        Of the names of files, by option.
    inputs
        What is read; None is nothing. An output that is one of them is refused, whichever links of
        either kind lead from one to the other.
    """
    read = [each for each in inputs if each is not None]
    taken: dict[Path, str] = {}
    for option, path in outputs.items():
        name = f"{option} is {path}"
        try:
            place = path if path == STANDARD_OUTPUT else resolved(path)
            if place in taken:
                raise InputError(f"{name}, which is that of {taken[place]} too; give another file.")
            taken[place] = option
            if path != STANDARD_OUTPUT:
                for each in read:
                    if _is_same(path, each):
                        raise InputError(
                            f"{name}, which is the file that is read ({each}); give another file."
                        )
                _check_place(name, path, suffixes[option])
        except OSError as error:
            raise InputError(
                f"{name}, which cannot be written: {error.strerror}; give another file."
            ) from error


def check_configured(
    outputs: Mapping[str, Path], formats: Mapping[str, str], config: Path, place: str, *, named: bool
) -> None:
    """Raise if a configuration would have a file written that it has no business to.

    A configuration may come with a folder that someone else wrote. What it names stays below its own
    folder, or below the working directory if the user named the configuration, and replaces nothing but
    an older report: what is typed may be anywhere, and replace anything but what is read.

    Parameters
    ----------
    outputs
        Those that the configuration gives, by option.
    formats
        Of the reports, by option.
    config, place
        Its file, and how it is called.
    named
        Whether it was given with --config.
    """
    from caltest.report.formats import is_report

    folders = [resolved(config.parent), *([resolved(Path())] if named else [])]
    for option, path in outputs.items():
        if path == STANDARD_OUTPUT:
            continue
        name = f"{place}: {option[2:]} is {path}"
        advice = f"or give it on the command line, with {option}"
        target = resolved(path)
        if not any(target.is_relative_to(folder) for folder in folders):
            raise InputError(f"{name}, which is not below {folders[0]}; give a file there, {advice}.")
        if target.exists() and (is_special(target) or not is_report(target, formats[option])):
            raise InputError(
                f"{name}, which is there and no report of that kind; give another file, {advice}."
            )


def _is_same(output: Path, read: Path) -> bool:
    try:
        resolved(read)
    except OSError:  # whoever reads it says so
        return False
    return same_file(output, read)


def _check_place(name: str, path: Path, suffixes: tuple[str, ...]) -> None:
    if path.is_dir():
        raise InputError(f"{name}, which is a folder; give a file in it.")
    new = not path.exists()
    if (new or path.is_file()) and path.suffix.lower() not in suffixes:
        *some, last = suffixes
        either = f"{', '.join(some)} or {last}" if some else last
        raise InputError(f"{name}; give a file name that ends in {either}.")
    if new and not path.parent.is_dir():
        raise InputError(f"{name}, and there is no folder {path.parent}; make it first.")
    if path.is_symlink() and path.is_file() and not _is_ours(path):
        raise InputError(
            f"{name}, a link to {resolved(path)}, which is no older one; give that file itself, if it "
            "may be replaced."
        )
    check_file(path)


def _is_ours(path: Path) -> bool:
    """Whether a file was written by these commands: what a link leads to may be anything."""
    from caltest.report.formats import SUFFIXES, is_report

    for kind, suffixes in SUFFIXES.items():
        if path.suffix.lower() in suffixes:
            return is_report(path, kind)
    with path.open("rb") as file:
        content = file.read(_LARGEST_PICTURE)
    return not content or b"matplotlib" in content.lower()  # as all pictures say that it draws
