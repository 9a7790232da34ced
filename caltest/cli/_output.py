"""What commands write: standard output, standard error, files, the exit status.

Text for people is made of visible characters and gives no command to what reads it. Data for programs
is UTF-8, whatever the terminal's encoding. A reader that leaves, or a disk that is full, is no result:
the status is never 1 then, which is that of a rejection.
"""

from __future__ import annotations

import io
import os
import re
import signal
import sys
import threading
import traceback
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any, NoReturn, TextIO

import typer
from typer.core import TyperGroup

from caltest._visible import message, quoted, visible_page
from caltest.exceptions import InputError, LongWorkWarning
from caltest.files.paths import called
from caltest.files.writing import check_file, is_special, resolved, same_file
from caltest.options import COMMANDS

# ------------------------------------------------------------------ words

NOT_REJECTED, REJECTED, WRONG_INPUT, BUG, INTERRUPTED, BROKEN_PIPE = 0, 1, 2, 3, 130, 141


#: What arguments of Python are called here, in what is said of long work.
_NAMES = {option.argument: f"--{name}" for name, option in COMMANDS["test"].items()}


@contextmanager
def errors_reported() -> Iterator[None]:
    """Turn an exception into a line on standard error and an exit status that says what it was.

    A warning that work will take long is a line there too, before the work starts.
    """
    before = signal.getsignal(signal.SIGINT)
    if callable(before):  # else it is ignored
        signal.signal(signal.SIGINT, signal.default_int_handler)
    unheard, sys.unraisablehook = sys.unraisablehook, partial(_interrupt_again, sys.unraisablehook)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("always", LongWorkWarning)
            warnings.showwarning = partial(_show, warnings.showwarning)
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
    finally:
        sys.unraisablehook = unheard
        signal.signal(signal.SIGINT, before)


def _interrupt_again(otherwise: Callable[[Any], Any], lost: Any) -> None:
    """Interrupt once more if an interruption met a call from C, say of the compiler, and was lost."""
    if lost.exc_type is KeyboardInterrupt:
        windows = sys.platform == "win32"
        again = signal.raise_signal if windows else partial(os.kill, os.getpid())
        threading.Timer(0.05, again, [signal.SIGINT]).start()
    else:
        otherwise(lost)


def _show(otherwise: Callable[..., None], warning: Warning | str, *where: Any) -> None:
    """Write a warning."""
    if isinstance(warning, LongWorkWarning):
        note(f"Note: {message(str(warning.phrase.renamed(_NAMES)))}")
    else:
        otherwise(warning, *where)


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


# ------------------------------------------------------------------ files

STANDARD_OUTPUT = Path("-")
#: Which format of a report an option writes.
FORMATS = {"--report": "html", "--markdown": "markdown", "--json": "json", "--junit": "junit"}
_PICTURES = (".png", ".pdf", ".svg")
_LARGEST_PICTURE = 2**24  # bytes


def suffixes(option: str) -> tuple[str, ...]:
    """Return the suffixes that an option takes."""
    from caltest.report.formats import SUFFIXES

    return _PICTURES if option == "--plot" else SUFFIXES[FORMATS[option]]


def check_outputs(
    outputs: Mapping[str, Path],
    suffixes: Mapping[str, tuple[str, ...]],
    inputs: Iterable[str | Path | None],
) -> None:
    """Raise, before anything is computed, if a file could not be written, or would destroy another.

    By option: where to write ("-" is standard output), and the suffixes that it takes. An output that
    leads to one of the inputs is refused, whichever links of either kind lead there. The suffix of a
    picture names its format, so that one is needed on a device too.
    """
    read = [each for each in inputs if isinstance(each, Path)]  # no output is written to a URL
    taken: dict[Path, str] = {}
    for option, path in outputs.items():
        name, printed = f"{option} is {path}", path == STANDARD_OUTPUT and option != "--plot"
        try:
            place = path if printed else resolved(path)
            if place in taken:
                raise InputError(f"{name}, which is that of {taken[place]} too; give another file.")
            taken[place] = option
            if not printed:
                for each in read:
                    if _is_same(path, each):
                        raise InputError(
                            f"{name}, which is the file that is read ({each}); give another file."
                        )
                _check_place(name, path, suffixes[option], option == "--plot")
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

    Outputs and formats of reports are by option; ``place`` is how the configuration is called, and
    ``named`` whether it was given with --config.
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


def _check_place(name: str, path: Path, suffixes: tuple[str, ...], by_suffix: bool) -> None:
    if path.is_dir():
        raise InputError(f"{name}, which is a folder; give a file in it.")
    new = not path.exists()
    if (new or path.is_file() or by_suffix) and path.suffix.lower() not in suffixes:
        *some, last = suffixes
        either = f"{', '.join(some)} or {last}" if some else last
        raise InputError(f"{name}; give a file name that ends in {either}.")
    if new and not path.parent.is_dir():
        raise InputError(f"{name}, and there is no folder {path.parent}; make it first.")
    if path.is_symlink() and path.is_file() and not _is_ours(path):
        raise InputError(
            f"{name}, a link to {resolved(path)}, which caltest did not write; name that file itself "
            "if it may be replaced."
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


# ------------------------------------------------------------------ pictures


def draw(path: Path, display: Callable[[], Any]) -> InputError | None:
    """Write the picture of a display; return what went wrong, for results are to be written first."""
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
