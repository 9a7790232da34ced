"""The output of commands: standard output, standard error, files, and the exit status.

Text for people has only visible characters and no commands for terminals or logs. Data for programs is
UTF-8, whatever the terminal's encoding. If a reader stops reading, or the disk is full, there is no
result: the status is then never 1, which means a rejection.
"""

from __future__ import annotations

import errno
import os
import re
import shutil
import sys
import traceback
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from contextvars import copy_context
from functools import partial
from pathlib import Path
from textwrap import wrap
from typing import Any, NoReturn, TextIO

import typer
from typer.core import TyperGroup

from caltest._visible import message, visible_page
from caltest.exceptions import InputError, LongWorkWarning
from caltest.files.paths import called
from caltest.files.writing import check_file, is_special, same_file

# ------------------------------------------------------------------ words

#: Messages of libraries that run out of memory.
_NO_MEMORY = ("failed to map segment", "annot allocate memory", "start new thread")
NOT_REJECTED, REJECTED, WRONG_INPUT, BUG, INTERRUPTED, BROKEN_PIPE = 0, 1, 2, 3, 130, 141


@contextmanager
def errors_reported() -> Iterator[None]:
    """Turn an exception into a line on standard error and the exit status for its kind.

    A warning that the work will take long is also written there, before the work starts.
    """
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("always", LongWorkWarning)
            otherwise = warnings.showwarning

            def show(warning: Warning | str, *where: Any) -> None:
                if isinstance(warning, LongWorkWarning):
                    note(f"Note: {message(str(warning.phrase))}")
                else:
                    otherwise(warning, *where)

            warnings.showwarning = show  # type: ignore[assignment]
            yield
    except InputError as error:
        fail(str(error.phrase), WRONG_INPUT)  # errors from a worker are written as in Python
    except typer.Exit:
        raise
    except KeyboardInterrupt:
        note("Interrupted.")
        raise typer.Exit(INTERRUPTED) from None
    except Exception as error:
        if refusal := _refusal(error):
            fail(refusal, WRONG_INPUT)
        note(traceback.format_exc().rstrip("\n"))
        fail("this is a bug in caltest; please report it with the lines above.", BUG)


def _refusal(error: Exception) -> str | None:
    """Return a message if the system refused something: this is not our bug."""
    said = str(error) if isinstance(error, ImportError | RuntimeError) else ""
    lacking = isinstance(error, MemoryError) or getattr(error, "errno", None) == errno.ENOMEM
    if lacking or any(words in said for words in _NO_MEMORY):
        do = "take fewer rows or classes, --jobs 1, or allow more memory (ulimit -v)"
        return f"there is not enough memory for this; {do}."
    if isinstance(error, OSError):
        where = "" if error.filename is None else f" ({called(str(error.filename))})"
        return f"the system refuses: {error.strerror or error}{where}; check disks and limits."
    return None


class Commands(TyperGroup):
    """All commands; errors of their parser are reported on one line too."""

    def main(self, *given: Any, **how: Any) -> NoReturn:
        """Parse the options and run a command."""
        try:
            run = partial(super().main, *given, **{**how, "standalone_mode": False})
            sys.exit(copy_context().run(_parsed, run))  # where arguments are called by their options
        except typer.Exit as end:
            sys.exit(end.exit_code)


def _parsed(parse: Callable[[], Any]) -> Any:
    """Return the exit status; report parser errors in one sentence."""
    try:
        return parse()
    except (SystemExit, OSError) as error:
        # Click ends so if a reader stops reading; others come from a help text: commands report their
        # own.
        _give_up(sys.stdout, error if isinstance(error, OSError) else BrokenPipeError())
    except Exception as error:
        if not hasattr(error, "format_message"):
            raise
        said: str = error.format_message()
        if type(error).__name__ == "NoArgsIsHelpError":  # its message is the help
            note(said)
            raise typer.Exit(WRONG_INPUT) from None
        said, ctx = " ".join(said.split()).rstrip(".").replace(". ", "; "), getattr(error, "ctx", None)
        path = ["caltest"] if ctx is None else ["caltest", *ctx.command_path.split()[1:]]
        fail(f"{said[:1].lower()}{said[1:]}; see {' '.join(path)} --help.", WRONG_INPUT)


def fail(text: str, status: int) -> NoReturn:
    """Write an error on standard error, and exit."""
    note(f"Error: {message(text)}")
    raise typer.Exit(status)


def note(text: str) -> None:
    """Write lines on standard error."""
    _put(sys.stderr, f"{visible_page(text)}\n")


#: Terminal colours: red for action needed, yellow for possible action, green for good.
_COLOURS = {"material": ";31", "found": ";31", "likely": ";33", "within": ";32"}


def write(text: str, verdict: str = "", code: str = "") -> None:
    """Write all text output at once; on a terminal the verdict is highlighted."""
    page = visible_page(text)
    if sys.stdout.isatty():
        columns = shutil.get_terminal_size().columns
        lines = ([each] if "  " in each else wrap(each, columns) or [""] for each in page.split("\n"))
        page = "\n".join("\n".join(each) for each in lines)
        plain = os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb" or os.name == "nt"
        if verdict and not plain:
            bold = f"\x1b[1{_COLOURS.get(code, '')}m{verdict}\x1b[0m"
            page = re.sub(rf"(?<!\w){re.escape(verdict)}(?!\w)", lambda _: bold, page)
    _put(sys.stdout, f"{page}\n")


def write_data(text: str) -> None:
    """Write all data output at once, unchanged, as UTF-8."""
    _put(sys.stdout, f"{text}\n".encode("utf-8", "backslashreplace"))


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
    """Exit because a stream can no longer be written."""
    with suppress(OSError):  # it is flushed again at exit, which must succeed to keep our status
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
    if isinstance(error, BrokenPipeError):
        raise typer.Exit(BROKEN_PIPE) from None
    if stream is sys.stdout:
        note(f"Error: the output cannot be written: {error.strerror}.")
    raise typer.Exit(WRONG_INPUT) from None


# ------------------------------------------------------------------ files

STANDARD_OUTPUT = Path("-")
#: The report format that each option writes.
FORMATS = {"--report": "html", "--markdown": "markdown", "--json": "json", "--junit": "junit"}


def check_outputs(outputs: Mapping[str, Path], inputs: Iterable[object]) -> None:
    """Raise, before anything is computed, if an output cannot be written or is also an input.

    Outputs are given by option ("-" is standard output). A picture's suffix names its format, so it is
    required for a device too.
    """
    from caltest.report.formats import SUFFIXES

    for option, path in outputs.items():
        name, is_picture = f"{option} is {path}", option == "--plot"
        if [*outputs.values()].count(path) > 1:
            raise InputError(f"{name}, and another option is too; give another file.")
        if path == STANDARD_OUTPUT and not is_picture:
            continue
        suffixes = (".png", ".pdf", ".svg") if is_picture else SUFFIXES[FORMATS[option]]
        try:
            for each in (each for each in inputs if isinstance(each, Path)):
                with suppress(OSError):  # its reader will report it
                    if same_file(path, each):
                        found = f"{name}, which is the file that is read ({each})"
                        raise InputError(f"{found}; give another file.")
            if (is_picture or not is_special(path)) and path.suffix.lower() not in suffixes:
                raise InputError(f"{name}; give a file name that ends in {' or '.join(suffixes)}.")
            check_file(path)
        except OSError as error:
            said = f"{name}, which cannot be written: {error.strerror}; give another file."
            raise InputError(said) from error


def draw(path: Path, display: Callable[[], Any]) -> InputError | None:
    """Write the picture of a display; return an error instead of raising it: results come first."""
    import matplotlib as mpl

    mpl.use("Agg")  # no screen is needed
    import matplotlib.pyplot as plt

    shown = display()
    try:
        shown.save(path)
    except InputError as error:
        return error
    finally:
        plt.close(shown.figure_)
    return None
