"""The command line: parse, call, write. Heavy imports wait until they are needed."""

from __future__ import annotations

import os
import sys
from typing import Annotated

import typer

from caltest._arguments import check_variable
from caltest._version import __version__
from caltest.cli import _commands
from caltest.cli._options import WithSections
from caltest.cli._output import WRONG_INPUT, Commands, write
from caltest.exceptions import InputError
from caltest.options import COMMANDS

app = typer.Typer(
    cls=Commands,
    help="Do a model's predictions mean what they say? Tests of calibration, on files.",
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    add_completion=False,
    no_args_is_help=True,
)


def main() -> None:
    """Run the command line."""
    for name in ("stdout", "stderr"):
        if (stream := getattr(sys, name)) is None:  # closed by the caller
            setattr(sys, name, open(os.devnull, "w"))  # noqa: SIM115, PTH123
        elif hasattr(stream, "reconfigure"):  # a terminal without Unicode must not make it fail
            stream.reconfigure(errors="backslashreplace")
    os.environ["MPLBACKEND"] = "agg"  # pictures go to files, whatever the environment says
    if not os.environ.get("SOURCE_DATE_EPOCH"):  # empty means unset, but not to SciPy
        os.environ.pop("SOURCE_DATE_EPOCH", None)
    try:
        check_variable("SOURCE_DATE_EPOCH")  # SciPy cannot be imported with an invalid one
        check_variable("NUMBA_NUM_THREADS")
    except InputError as error:
        print(f"Error: {error}", file=sys.stderr)  # noqa: T201
        sys.exit(WRONG_INPUT)
    app(prog_name="caltest")


def _version(wanted: bool) -> None:
    if wanted:
        write(f"caltest {__version__}")
        raise typer.Exit


_SHOW = typer.Option("--version", callback=_version, is_eager=True, help="Show the version and exit.")


@app.callback()
def _root(version: Annotated[bool, _SHOW] = False) -> None:
    pass


for _name in COMMANDS:
    app.command(_name, cls=WithSections)(getattr(_commands, _name.replace("-", "_")))
app.command("list", cls=WithSections)(_commands.list_choices)
