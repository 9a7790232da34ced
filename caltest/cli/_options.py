"""The frame of every command: options that all of them have, what they read, and what they return.

A command is a function that takes an `Input` and its own options, and returns a `Found`; its first
line of documentation is the text of its help.
"""

from __future__ import annotations

import csv
import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from inspect import Parameter, getdoc
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer.core import TyperCommand, TyperOption

from caltest._arguments import (
    Kind,
    choose,
    confident,
    count_of_draws,
    difference,
    jobs,
    level,
    step,
)
from caltest._visible import quoted
from caltest.cli._output import (
    WRONG_INPUT,
    check_picture,
    draw,
    errors_reported,
    fail,
    to_json,
    write,
    write_data,
)
from caltest.exceptions import InputError
from caltest.files.places import is_url

if TYPE_CHECKING:
    from caltest.data import Rows, Sample

# ------------------------------------------------------------------ help


class WithChoices(TyperCommand):
    """A command whose help lists the statistics, nulls, lenses and functions that there are.

    An option that takes one value is refused where it is given twice.
    """

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Read the arguments, of which none is dropped in favour of a later one."""
        _, _, given = self.make_parser(ctx).parse_args(args=list(args))
        for each in self.params:
            single = isinstance(each, TyperOption) and not (each.is_flag or each.multiple)
            if single and given.count(each) > 1:
                fail(f"{each.opts[0]} is given {given.count(each)} times; give it once.", WRONG_INPUT)
        return super().parse_args(ctx, args)

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
            if parameter.name not in registries:
                continue
            rows = []
            for name, of in registries[parameter.name].items():
                words = getattr(of, "measures", None) or getattr(of, "is_a", None)
                about = of if isinstance(of, str) else words or (getdoc(of) or "").partition("\n")[0]
                rows.append((f"{name}…" if name.endswith(":") else name, about))
            with formatter.section(f"Values of --{parameter.name}"):
                formatter.write_dl(rows)


# ------------------------------------------------------------------ options


def option(kind: str, help_text: str, *names: str, **more: Any) -> Any:
    """Return an option whose help says what is taken where it is not given."""
    return typer.Option(*names, metavar=kind, help=help_text, show_default=False, **more)


def default(kind: str, help_text: str, *names: str, **more: Any) -> Any:
    """Return an option whose default stands in the help."""
    return typer.Option(*names, metavar=kind, help=help_text, **more)


def file_path(text: str) -> str | Path:
    """Take the path of a file, or its URL; an empty one would be the current folder's."""
    if not text:
        fail("the path of the file is empty; give that of a file.", WRONG_INPUT)
    return text if is_url(text) else Path(text)


File = Annotated[
    Any,
    typer.Argument(
        parser=file_path,
        metavar="FILE",
        help="CSV, Parquet, Arrow, JSON lines, NPZ or NPY, a directory of tables, or a pattern such "
        "as 'part-*.parquet'; also s3://, gs://, abfs:// and other URLs. One column of "
        "probabilities per class, and one of labels.",
        show_default=False,
    ),
]
Label = Annotated[
    str | None,
    option("COL", "The column of labels.  [default: label, y, y_true, target or class]"),
]
Columns = Annotated[
    str | None,
    option(
        "COLS",
        "The columns of probabilities, separated by commas.  [default: all but the label and the "
        "groups]",
    ),
]
Group = Annotated[
    list[str] | None,
    option("COL", "A column of groups, for caltest audit; ignored here. Give it once for each column."),
]
Weights = Annotated[
    str | None,
    option("COL", "The column of weights.  [default: all rows have equal weight]"),
]
Clusters = Annotated[
    str | None,
    option(
        "COL",
        "The column of clusters, such as patient: rows with the same entry may depend on each other.  "
        "[default: rows are independent]",
    ),
]
SamplingRate = Annotated[
    list[str] | None,
    option(
        "CLASS=RATE",
        "The share of the rows of a class that were kept, 0=0.01 for one in a hundred; once for each "
        "class.  [default: rows were not sampled by their label]",
    ),
]
StatisticName = Annotated[str, default("NAME", "What is computed; see below.", "--statistic")]
LensName = Annotated[str | None, option("NAME", "A view of the predictions; see below.", "--lens")]
Seed = Annotated[
    int | None, option("INT", "Seed that makes the result reproducible.  [default: random]", min=0)
]
Jobs = Annotated[int, default("INT", "Cores to use; -1 is all of them.")]
Scheduler = Annotated[
    str | None,
    option(
        "URL",
        "A Dask cluster whose workers do the work, such as tcp://host:8786; they read a file "
        "themselves.  [default: this machine]",
    ),
]
Example = Annotated[
    str | None, option("NAME", "Bundled predictions instead of FILE, for instance digits:naive_bayes.")
]
_AsJson = Annotated[bool, typer.Option("--json", help="Print JSON instead of text.")]
_Plot = Annotated[Path | None, option("FILE", "Also draw the result: .png, .pdf or .svg.", "--plot")]

_FIRST = {
    "file": (File, None),
    "label": (Label, None),
    "columns": (Columns, None),
    "group": (Group, None),
}
_LAST = {
    "as_json": (_AsJson, False),
    "plot": (_Plot, None),
    "jobs": (Jobs, -1),
    "example": (Example, None),
}

_KINDS: dict[str, Kind] = {
    "jobs": jobs,
    "alpha": level,
    "confidence": confident,
    "tolerance": difference,
    "rounding": step,
    "resamples": count_of_draws,
}


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
        raise InputError(
            f"--columns is {quoted(columns)}, which is not a list of names; put one that holds a line "
            "break in double quotes, as in CSV."
        ) from error
    return [name.strip() for cells in rows for name in cells]


def rates_of(given: Sequence[str] | None) -> dict[str, float] | None:
    """Split the values of --sampling-rate.

    >>> rates_of(["0=0.01", "a=b=0.5"])
    {'0': 0.01, 'a=b': 0.5}
    """
    if not given:
        return None
    found: dict[str, float] = {}
    for each in given:
        name, equals, rate = each.rpartition("=")
        try:
            number = float(rate)
        except ValueError:
            number = None
        if not equals or number is None:
            raise InputError(f"--sampling-rate is {each!r}; give a class and its rate, as in 0=0.01.")
        if name in found:
            raise InputError(f"--sampling-rate gives class {name!r} twice; give it once.")
        found[name] = number
    return found


# ------------------------------------------------------------------ what is read


@dataclass(frozen=True)
class Input:
    """Whose predictions a command is asked about."""

    file: str | Path | None
    label: str | None
    columns: Sequence[str] | None
    group: Sequence[str]
    example: str | None
    weights: str | None = None
    clusters: str | None = None

    @property
    def source(self) -> dict[str, str | None]:
        """Where predictions come from, for JSON."""
        return {"file": None if self.file is None else str(self.file), "example": self.example}

    def sample(self) -> Sample:
        """Read the file, or load the example."""
        return self._read("read")  # type: ignore[no-any-return]

    def pilot(self) -> Sample | Rows:
        """Read the file, which needs no labels, or load the example."""
        return self._read("read_pilot")  # type: ignore[no-any-return]

    def rows_or_file(self, rounding: float | None = None) -> tuple[Any, Any]:
        """Return predictions and labels; of a file that can be read a block at a time, the file."""
        from caltest import files

        if self.example is None and self.file is not None and files.can_scan(self.file):
            return self._read("scan"), None
        sample = self.sample() if rounding is None else self._read("read", rounding=rounding)
        return sample.rows, sample.labels

    def with_groups(self, rounding: float | None = None) -> tuple[Sample, Any, str | None]:
        """Read the columns of groups too, None without any, and the name of a single probability."""
        if self.example is not None:
            return self.sample(), None, None
        sample, frame = self._read("read_with_groups", rounding=rounding)
        return sample, frame if self.group else None, frame.attrs.get("event")

    def _read(self, how: str, **more: Any) -> Any:
        if self.example is not None:
            if self.group:
                raise InputError(f"--group {self.group[0]} is for a FILE; the examples have no groups.")
            if self.file is not None:
                raise InputError(
                    f"both FILE ({self.file}) and --example ({self.example or 'empty'}) are given; "
                    "give one."
                )
            if self.label is not None:
                raise InputError(
                    f"--label {self.label} is for a FILE; the labels of an example are known."
                )
            if self.columns:
                given = ",".join(self.columns)
                raise InputError(f"--columns {given} is for a FILE; those of an example are known.")
            if self.weights is not None:
                raise InputError(
                    f"--weights {self.weights} is for a FILE; the examples have no weights."
                )
            if self.clusters is not None:
                raise InputError(
                    f"--clusters {self.clusters} is for a FILE; the rows of an example are independent."
                )
            from caltest.data import Rows, Sample
            from caltest.datasets import digits_models, load_digits_predictions
            from caltest.laws import Classes

            models = {f"digits:{model}": model for model in digits_models()}
            digits = load_digits_predictions(choose("example", self.example, models))
            return Sample(Rows(Classes(digits.probs, digits.classes)), digits.labels)
        if self.file is None:
            raise InputError("nothing to read: give a FILE, or --example digits:naive_bayes.")
        from caltest import files
        from caltest.files.columns import NAME_COLUMNS

        try:
            read = getattr(files, how)
            apart = {"weights": self.weights, "clusters": self.clusters}
            more |= {name: column for name, column in apart.items() if column is not None}
            return read(self.file, self.label, columns=self.columns, groups=self.group, **more)
        except InputError as error:  # what is no probability may be meant as a group
            raise error.changed(
                lambda fact: (
                    f"{fact}, or say what it is, with --group or --clusters"
                    if fact == NAME_COLUMNS
                    else fact
                )
            ) from error


# ------------------------------------------------------------------ commands


@dataclass(frozen=True)
class Found:
    """What a command found: for a program, for people, as a picture, and the exit status."""

    data: Mapping[str, Any]
    text: str
    picture: Callable[[], Any] | None = None
    status: int | None = None


#: Options of rows, hidden where a command does not take them, and what it says of them then.
_OF_ROWS = {
    "weights": (
        "--weights",
        "all rows have equal weight here; leave it out, or use caltest test, estimate, compare or "
        "audit, which take weights",
    ),
    "clusters": (
        "--clusters",
        "no version of this is known to be valid for rows in clusters; keep one row per cluster, or "
        "use caltest test, estimate, compare or audit, which take clusters",
    ),
    "sampling_rate": (
        "--sampling-rate",
        "probabilities are those of all rows here; leave it out, or use caltest test, estimate, "
        "compare or audit, which take rates",
    ),
}


def command(
    *, plot: bool = False, names: Mapping[str, str] | None = None
) -> Callable[[Callable[..., Found]], Callable[..., None]]:
    """Make a function of an `Input` and its own options a command, with those that all have.

    ``names`` are the options that arguments in messages of Python are called here.
    """

    def framed(run: Callable[..., Found]) -> Callable[..., None]:
        own = list(inspect.signature(run, eval_str=True).parameters.values())[1:]
        by_name = {each.name: each for each in own}
        first = (
            {**_FIRST} if "files" not in by_name else {k: v for k, v in _FIRST.items() if k != "file"}
        )
        last = {name: value for name, value in _LAST.items() if plot or name != "plot"}

        def shared(given: Mapping[str, tuple[Any, Any]]) -> list[Parameter]:
            return [
                by_name.get(name)
                or Parameter(name, Parameter.POSITIONAL_OR_KEYWORD, annotation=kind, default=value)
                for name, (kind, value) in given.items()
            ]

        ahead = [each for each in own if each.name == "files"]
        middle = [each for each in own if each.name not in (*last, "files")]
        refused = {name: each for name, each in _OF_ROWS.items() if name not in by_name}
        hidden = [
            Parameter(
                name,
                Parameter.POSITIONAL_OR_KEYWORD,
                annotation=Annotated[str | None, option("TEXT", "", called, hidden=True)],
                default=None,
            )
            for name, (called, _) in refused.items()
        ]
        parameters = [*ahead, *shared(first), *middle, *shared(last), *hidden]

        def main(**given: Any) -> None:
            with errors_reported():
                for name, kind in _KINDS.items():
                    if given.get(name) is not None:
                        kind(f"--{name}", given[name])
                for name, (called, advice) in refused.items():
                    if given.get(name) is not None:
                        raise InputError(f"{called} is not for this command: {advice}.")
                picture = given.get("plot")
                check_picture(picture, given.get("file"))
                asked = Input(
                    given.get("file"),
                    given["label"],
                    column_names(given["columns"]),
                    tuple(given["group"] or ()),
                    given["example"],
                    given.get("weights"),
                    given.get("clusters"),
                )
                try:
                    found = run(asked, **{name: given[name] for name in by_name})
                except InputError as error:
                    raise error.renamed(names or {}) from error
                problem = None
                if picture is not None and found.picture is not None:
                    problem = draw(picture, found.picture)
                if given["as_json"]:
                    write_data(to_json(found.data))
                else:
                    write(found.text)
                if problem:
                    raise problem
                if found.status is not None:
                    raise typer.Exit(found.status)

        main.__doc__ = run.__doc__
        main.__annotations__ = {each.name: each.annotation for each in parameters}
        main.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
        return main

    return framed
