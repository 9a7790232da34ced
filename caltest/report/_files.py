"""Files that are written whole or not at all."""

from __future__ import annotations

import shutil
from contextlib import suppress
from pathlib import Path
from uuid import uuid4

from caltest.exceptions import InputError


def write_whole(path: Path, text: str) -> None:
    """Write UTF-8 text to a file beside the target, which then takes its place.

    Raises
    ------
    InputError
        If the file cannot be written. What was there is still there then.
    """
    try:
        target = path.resolve()  # a link stays a link
        if target.exists() and not target.is_file():
            _into(path, text)
        else:
            _replace(target, text)
    except (OSError, RuntimeError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else error
        raise InputError(
            f"the report cannot be written to {str(path)!r}: {reason}; give a file in a folder that "
            "exists and may be written to."
        ) from None


def _into(path: Path, text: str) -> None:
    """Write to a pipe or a device, which nothing can take the place of."""
    with path.open("w", encoding="utf-8", newline="\n") as file:
        file.write(text)


def _replace(target: Path, text: str) -> None:
    beside = target.with_name(f".caltest-{uuid4().hex}.part")
    try:
        with beside.open("x", encoding="utf-8", newline="\n") as file:
            file.write(text)
        if target.exists():
            shutil.copymode(target, beside)
        beside.replace(target)
    except BaseException:
        with suppress(OSError):
            beside.unlink()
        raise
