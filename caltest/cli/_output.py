"""The door through which the commands speak: standard output, standard error and the exit status.

Text for people is made of visible characters and gives no command to what reads it. Data for programs
is UTF-8, whatever the terminal's encoding. A reader that leaves, or a disk that is full, is no result:
the status is never 1 then, which is that of a rejection.
"""

from __future__ import annotations

import io
import json
import os
import re
import sys
import traceback
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import Any, NoReturn, TextIO

import typer
from typer.core import TyperGroup

from caltest._door import called
from caltest._visible import message, quoted, visible_page
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
        note(traceback.format_exc().rstrip("\n"))
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


class Commands(TyperGroup):
    """All commands: what the parser of the options says passes the same door."""

    def make_context(self, *given: Any, **named: Any) -> Any:
        """Parse the options that stand before a command."""
        with _parser_heard():
            return super().make_context(*given, **named)

    def invoke(self, ctx: Any) -> Any:
        """Parse those of a command, and run it."""
        with _parser_heard():
            return super().invoke(ctx)


@contextmanager
def _parser_heard() -> Iterator[None]:
    """Say what the parser says of wrong options; names of files are in it, and whatever they hold."""
    try:
        yield
    except OSError as error:  # of a help text: commands report their own errors
        _give_up(sys.stdout, error)
    except Exception as error:
        show: Any = getattr(error, "show", None)  # which class it is differs between versions of typer
        if show is None:
            raise
        if type(error).__name__ != "NoArgsIsHelpError":  # whose message is the help
            fail(_misused(error), WRONG_INPUT)
        said = io.StringIO()
        show(file=said)
        note(said.getvalue().rstrip("\n"))
        raise typer.Exit(WRONG_INPUT) from None


def _misused(error: Any) -> str:
    """Say in one sentence what the parser says of the options, and what to do."""
    said = " ".join(str(error.format_message()).split()).rstrip(".").replace(". ", "; ")
    parameter, found = getattr(error, "param", None), re.match(r".*?: (.*) is not ", said)
    inner: Any = error.__cause__
    if parameter is not None and (found or hasattr(inner, "errors")):
        # The parser says what is wrong with a value, and in some versions not which it is.
        value = found[1].strip("'") if found else str(inner.errors()[0]["input"])
        least = re.search(r"(?:equal to |x>=)(\S+)", said)
        kind = "a whole number" if "integer" in said else "a number"
        if least:
            kind = f"{kind}, {least[1]} or greater"
        return f"{parameter.opts[0]} is {quoted(value)}; give {kind}."
    path = error.ctx.command_path if getattr(error, "ctx", None) is not None else ""
    return f"{said[:1].lower()}{said[1:]}; see {' '.join(['caltest', *path.split()[1:]])} --help."


def fail(text: str, status: int) -> NoReturn:
    """Write one line on standard error, and exit."""
    note(f"Error: {message(text)}")
    raise typer.Exit(status)


def note(text: str) -> None:
    """Write lines on standard error."""
    _put(sys.stderr, f"{visible_page(text)}\n")


def write(text: str) -> None:
    """Write all of the output at once, for people."""
    _put(sys.stdout, f"{visible_page(text)}\n")


def write_data(text: str) -> None:
    """Write all of the output at once, for a program: as UTF-8, and nothing in it is changed."""
    _put(sys.stdout, f"{text}\n".encode("utf-8", "backslashreplace"))


def to_json(value: Mapping[str, Any]) -> str:
    """Write strict JSON."""
    return json.dumps(value, indent=2, allow_nan=False)


def _put(stream: TextIO, content: str | bytes) -> None:
    try:
        if isinstance(content, bytes):
            stream.flush()
            stream.buffer.write(content)
        else:
            stream.write(content)
        stream.flush()
    except OSError as error:
        _give_up(stream, error)


def _give_up(stream: TextIO, error: OSError) -> NoReturn:
    """Exit, since nothing more can be written to a stream."""
    with suppress(OSError):  # it is flushed once more at exit: let that succeed, so our status stands
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
    if isinstance(error, BrokenPipeError):
        raise typer.Exit(BROKEN_PIPE) from None
    if stream is sys.stdout:
        note(f"Error: the output cannot be written: {error.strerror}.")
    raise typer.Exit(WRONG_INPUT) from None
