"""What the commands write, and the exit status."""

from __future__ import annotations

import json
import os
import sys
import traceback
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, NoReturn

import typer

from caltest._door import called
from caltest.exceptions import InputError

NOT_REJECTED, REJECTED, WRONG_INPUT, BUG, INTERRUPTED, BROKEN_PIPE = 0, 1, 2, 3, 130, 141


@contextmanager
def errors_reported() -> Iterator[None]:
    """Turn an exception into a line on standard error and an exit status that says what it was."""
    try:
        yield
    except InputError as error:
        fail(str(error), WRONG_INPUT)
    except typer.Exit:
        raise
    except Exception as error:
        refusal = _refusal(error)
        if refusal:
            fail(refusal, WRONG_INPUT)
        traceback.print_exc()
        fail("this is a bug in caltest; please report it with the lines above.", BUG)


def _refusal(error: Exception) -> str | None:
    """Say what the system refused, if that is what went wrong: it is no bug of ours."""
    from caltest._memory import is_want_of_memory

    if is_want_of_memory(error):
        return (
            "there is not enough memory for this; take fewer rows or classes, --jobs 1, or allow more "
            "memory (ulimit -v)."
        )
    if isinstance(error, OSError):
        where = "" if error.filename is None else f" ({called(str(error.filename))})"
        return f"the system refuses: {error.strerror or error}{where}; check disks and limits."
    return None


def fail(message: str, status: int) -> NoReturn:
    """Write one line on standard error, and exit."""
    print(f"Error: {message}", file=sys.stderr)  # noqa: T201
    raise typer.Exit(status)


def to_json(value: Mapping[str, Any]) -> str:
    """Write strict JSON."""
    return json.dumps(value, indent=2, allow_nan=False)


def write(text: str) -> None:
    """Write all of the output at once; a reader that left, or a full disk, is not a bug."""
    try:
        sys.stdout.write(f"{text}\n")
        sys.stdout.flush()
    except OSError as error:
        # The interpreter flushes once more at exit: let it succeed, so that our status stands.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        if isinstance(error, BrokenPipeError):
            raise typer.Exit(BROKEN_PIPE) from None
        fail(f"the output cannot be written: {error.strerror}.", WRONG_INPUT)
