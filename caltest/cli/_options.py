"""What the commands take, and a help that lists what the registries hold."""

from __future__ import annotations

import csv
from collections.abc import Mapping
from inspect import getdoc
from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperCommand

from caltest._arguments import Kind, confident, count_of_draws, difference, jobs, level
from caltest.cli._output import WRONG_INPUT, fail
from caltest.exceptions import InputError


class WithChoices(TyperCommand):
    """A command whose help lists the statistics, nulls, lenses and functions that there are."""

    def choices(self) -> dict[str, Mapping[str, object]]:
        """Return what there is, by the parameter that takes it."""
        from caltest.estimation import FUNCTIONS
        from caltest.lenses import LENSES
        from caltest.nulls import NULLS
        from caltest.statistics import STATISTICS

        return {"statistic": STATISTICS, "null": NULLS, "lens": LENSES, "functions": FUNCTIONS}

    def format_epilog(self, ctx: Any, formatter: Any) -> None:
        registries = self.choices()
        for parameter in self.params:
            if parameter.name in registries:
                with formatter.section(f"Values of --{parameter.name}"):
                    formatter.write_dl(_entries(registries[parameter.name]))


class WithLooks(WithChoices):
    """The same, with the lenses that only an audit has."""

    def choices(self) -> dict[str, Mapping[str, object]]:
        """Return what there is, by the parameter that takes it."""
        found = super().choices()
        own = {
            "canonical": "The full probability vector.",
            "classwise": "Every class by itself.",
        }
        return {**found, "lens": {**own, **found["lens"]}}


def _entries(registry: Mapping[str, object]) -> list[tuple[str, str]]:
    """Return names and first lines of documentation; a name that ends in a colon wants more."""
    return [(f"{name}…" if name.endswith(":") else name, _about(of)) for name, of in registry.items()]


def _about(of: object) -> str:
    if isinstance(of, str):
        return of
    words = getattr(of, "measures", None) or getattr(of, "is_a", None)
    return words or (getdoc(of) or "").partition("\n")[0]


def file_path(text: str) -> Path:
    """Take the path of a file; an empty one would be the current folder's."""
    if not text:
        fail("the path of the file is empty; give that of a file.", WRONG_INPUT)
    return Path(text)


File = Annotated[
    Path | None,
    typer.Argument(
        parser=file_path,
        metavar="FILE",
        help="CSV, Parquet, NPZ or NPY: a column of probabilities a class, and one of labels.",
        show_default=False,
    ),
]
FileOrFolder = Annotated[
    Path | None,
    typer.Argument(
        parser=file_path,
        metavar="FILE",
        help="CSV, Parquet, Arrow, NPZ or NPY, or a directory of Parquet or Arrow files: a column of "
        "probabilities a class, and one of labels.",
        show_default=False,
    ),
]
Label = Annotated[
    str | None,
    typer.Option(
        metavar="COL",
        help="The column of labels.  [default: label, y, y_true, target or class]",
        show_default=False,
    ),
]
Columns = Annotated[
    str | None,
    typer.Option(
        metavar="COLS",
        help="The columns of probabilities, separated by commas.  [default: all but the label]",
        show_default=False,
    ),
]
StatisticName = Annotated[
    str, typer.Option("--statistic", metavar="NAME", help="What is computed; see below.")
]
LensName = Annotated[
    str | None,
    typer.Option(
        "--lens", metavar="NAME", help="A view of the predictions; see below.", show_default=False
    ),
]
AsJson = Annotated[bool, typer.Option("--json", help="Write JSON instead of prose.")]
Jobs = Annotated[int, typer.Option(metavar="INT", help="Cores to use; -1 is all of them.")]
Example = Annotated[
    str | None,
    typer.Option(
        metavar="NAME",
        help="Bundled predictions instead of FILE, for instance digits:naive_bayes.",
        show_default=False,
    ),
]
Seed = Annotated[
    int | None,
    typer.Option(
        metavar="INT", min=0, help="Repeats the numbers.  [default: random]", show_default=False
    ),
]


_KINDS: dict[str, Kind] = {
    "alpha": level,
    "confidence": confident,
    "jobs": jobs,
    "resamples": count_of_draws,
    "tolerance": difference,
}


def check_typed(**typed: object) -> None:
    """Raise if an option is not what its argument in Python has to be; None is not given."""
    for name, value in typed.items():
        if value is not None:
            _KINDS[name](f"--{name}", value)


def column_names(columns: str | None) -> list[str] | None:
    """Split the value of --columns; a name with a comma stands in double quotes, as in CSV.

    >>> column_names('cat, dog,"lions, tigers"')
    ['cat', 'dog', 'lions, tigers']
    """
    if columns is None:
        return None
    try:
        rows = list(csv.reader([columns], skipinitialspace=True))
    except csv.Error as error:
        raise InputError(f"--columns is {columns!r}, which is no list of names: {error}.") from error
    return [name.strip() for cells in rows for name in cells]
