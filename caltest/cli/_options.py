"""Options of a command, typed or from a file; what it reads by them, and the frame that runs it.

A command is a function that takes an `Input` and the values of its own options, by their names in
Python, and returns a `Found`; its documentation is the text of its help. Which options it has, says
`caltest.options`. What is not typed may come from `[tool.caltest]` in pyproject.toml, or a file of
one's own.
"""

from __future__ import annotations

import csv
import inspect
import json
import os
import tomllib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from inspect import Parameter, getdoc
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer
from typer.core import TyperCommand, TyperOption

from caltest._arguments import choose, closest
from caltest._visible import quoted
from caltest.cli import _output as out
from caltest.exceptions import InputError
from caltest.files.paths import is_file, is_url, named, opened
from caltest.options import COMMANDS, Option

if TYPE_CHECKING:
    from caltest.data import Sample

# ------------------------------------------------------------------ parameters and help


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
                said = f"{each.opts[0]} is given {given.count(each)} times; give it once."
                out.fail(said, out.WRONG_INPUT)
        flags = {name for each in self.params if getattr(each, "is_flag", False) for name in each.opts}
        for option, value in pairwise(args):
            if option == "--json" in flags and value.endswith(".json") and not is_file(value):
                said = f"--json takes no file here, it prints; write --json > {value}"
                out.fail(f"{said} at the end instead.", out.WRONG_INPUT)
        return super().parse_args(ctx, args)

    def format_epilog(self, ctx: Any, formatter: Any) -> None:
        """List what there is, by the option that takes it."""
        from caltest.estimation import FUNCTIONS
        from caltest.lenses import LENSES
        from caltest.nulls import NULLS
        from caltest.statistics import DENSITY_STATISTICS, STATISTICS

        numbers = any(parameter.name == "mean" for parameter in self.params)
        lenses: dict[str, object] = {
            name: of for name, of in LENSES.items() if numbers or not getattr(of, "of_numbers", True)
        }
        if self.name == "audit":
            own = {"canonical": "The full probability vector.", "classwise": "Every class by itself."}
            own["distribution"] = "The full distribution of a number."
            lenses = own | lenses
        choices: dict[str | None, Mapping[str, object]] = {
            "statistic": STATISTICS | DENSITY_STATISTICS if numbers else STATISTICS,
            "null": NULLS,
            "lens": lenses,
            "functions": FUNCTIONS,
        }
        for parameter in self.params:
            rows = []
            for name, of in choices.get(parameter.name, {}).items():
                words = getattr(of, "measures", None) or getattr(of, "is_a", None)
                about = of if isinstance(of, str) else words or (getdoc(of) or "").partition("\n")[0]
                rows.append((f"{name}…" if name.endswith(":") else name, about))
            if rows:
                with formatter.section(f"Values of --{parameter.name}"):
                    formatter.write_dl(rows)


def file_path(text: str) -> str | Path:
    """Take the path of a file, or its URL; an empty one would be the current folder's."""
    if not text:
        out.fail("the path of the file is empty; give that of a file.", out.WRONG_INPUT)
    return text if is_url(text) else Path(text)


def _parameter(option: Option, *, hidden: bool = False) -> Parameter:
    """Return an option as the parser is told of it: a parameter of a function."""
    about: Any
    more: dict[str, Any] = {"parser": file_path} if option.is_read else {}
    if option.name.isupper():
        about = typer.Argument(metavar=option.name, help=option.help, show_default=False, **more)
    else:
        about = typer.Option(
            f"--{option.name}",
            metavar=None if option.type is bool else option.takes,
            help=option.help,
            show_default=option.default is not None,
            min=option.bound,
            hidden=hidden,
            **more,
        )
    kind = list[option.type] if option.several else option.type  # type: ignore[name-defined]
    kind = kind if option.takes in ("Any", "-") else kind | None
    name = option.name.lower().replace("-", "_")
    return Parameter(
        name, Parameter.KEYWORD_ONLY, annotation=Annotated[kind, about], default=option.default
    )


def declared(name: str, about: str | None, run: Callable[[dict[str, Any]], None]) -> Any:
    """Return a function with the parameters of a command, that calls another with what is given.

    Values are by the names of the options; what goes wrong is said, and leads to an exit status.
    """
    known = COMMANDS[name]
    hidden = {each: COMMANDS["audit"][each] for each in _OF_ROWS if each not in known}
    parameters = {each: _parameter(option) for each, option in known.items()}
    parameters |= {each: _parameter(option, hidden=True) for each, option in hidden.items()}

    def main(**given: Any) -> None:
        values = {each: given[parameter.name] for each, parameter in parameters.items()}
        with out.errors_reported():
            run({each: None if value == [] else value for each, value in values.items()})

    main.__name__, main.__doc__ = name, about
    main.__annotations__ = {each.name: each.annotation for each in parameters.values()}
    main.__signature__ = inspect.Signature([*parameters.values()])  # type: ignore[attr-defined]
    return main


# ------------------------------------------------------------------ a file of options

_TABLE = "[tool.caltest]"
_MOST_BYTES = 10**6
_MOST_BITS = 256  # of a whole number; a seed may be long


@dataclass(frozen=True)
class Config:
    """What a file says of the options.

    Attributes
    ----------
    path
        The file; None if there is none.
    place
        Name of file and table, for messages; None without a file.
    values
        By the option's name, without its dashes.
    """

    path: Path | None
    place: str | None
    values: Mapping[str, Any]


def load_config(path: Path | None, options: Mapping[str, Option]) -> Config:
    """Read the options of a file; without one, of the nearest pyproject.toml that has some.

    A file that has a table ``tool`` is read at ``[tool.caltest]``, any other one at its top. An
    option's name may be written with dashes or with underscores.

    Raises
    ------
    InputError
        If the file cannot be read, or an option is unknown or of the wrong kind.
    """
    for each in _nearby() if path is None else [path]:
        table, place = _read(each), f"{each} {_TABLE}"
        if path is not None and "tool" not in table:
            return Config(path, str(path), _checked(str(path), table, options))
        tools = table.get("tool")
        found = tools.get("caltest") if isinstance(tools, dict) else None
        if isinstance(found, dict):
            return Config(each, place, _checked(place, found, options))
        if found is not None:
            raise InputError(f"{each}: tool.caltest is {_toml(found)}, but must be a table, {_TABLE}.")
        if path is not None:
            raise InputError(f"{path}: there is no table {_TABLE}; add it, or leave out --config.")
    return Config(None, None, {})


def _nearby() -> Iterator[Path]:
    """Look in the working directory, then in its parents."""
    try:
        here = Path.cwd()
    except FileNotFoundError:  # it was removed
        return
    yield from filter(
        is_file, (Path("pyproject.toml"), *(each / "pyproject.toml" for each in here.parents))
    )


def _read(path: Path) -> dict[str, Any]:
    if str(path) == os.devnull:  # how one asks for no options at all
        return {}
    with named(str(path)), opened(path, "TOML") as file:
        text = file.read(_MOST_BYTES + 1)
        if len(text) > _MOST_BYTES:
            raise InputError(
                f"the configuration is larger than {_MOST_BYTES} bytes; give a smaller file."
            )
        return tomllib.loads(text.decode("utf-8-sig"))


def _checked(place: str, table: dict[str, Any], options: Mapping[str, Option]) -> dict[str, Any]:
    values: dict[str, Any] = {}
    for key, value in table.items():
        name = key.replace("_", "-")
        if name not in options:
            close = closest(name, options)
            meant = f" (is {close!r} meant?)" if close else ""
            raise InputError(
                f"{place}: there is no option {key!r}{meant}; the options are {', '.join(options)}."
            )
        if name in values:
            raise InputError(f"{place}: the option {name!r} is given twice; give it once.")
        values[name] = checked(options[name], f"{place}: {key}", value)
    return values


# ------------------------------------------------------------------ values


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


def _pairs(
    given: Sequence[str], option: str, what: str, wanted: str, first: bool = False
) -> dict[str, float]:
    """Split names, each with a number behind it, or ``first``.

    >>> _pairs(["0=0.01", "a=b=0.5"], "--sampling-rate", "class", "a class and its rate")
    {'0': 0.01, 'a=b': 0.5}
    """
    found: dict[str, float] = {}
    for each in given:
        name, equals, text = each.partition("=")[::-1] if first else each.rpartition("=")
        try:
            number = float(text)
        except ValueError:
            equals = ""
        if not equals:
            raise InputError(f"{option} is {each!r}; give {wanted}.")
        if name in found:
            raise InputError(f"{option} gives {what} {name!r} twice; give it once.")
        found[name] = number
    return found


def _picked(text: str) -> tuple[str, str]:
    """Split a value of --where."""
    name, equals, value = text.partition("=")
    if not equals:
        raise InputError(f"--where is {text!r}; give a column and its value, as in target=rain.")
    return name, value


def checked(option: Option, name: str, value: object) -> Any:
    """Return what an option takes, of a file or typed; ``name`` says whose value it is."""
    kind = _KINDS.get(option.name) or _KINDS.get(option.takes, _text)
    return option.check(name, kind(option, name, value))


def _text(option: Option, name: str, value: object) -> str | tuple[str, ...]:
    if not option.several:
        if not isinstance(value, str):
            raise _wrong(name, value, "text, in quotes")
        return value
    several = (value,) if isinstance(value, str) else value
    if not isinstance(several, list | tuple) or not all(isinstance(each, str) for each in several):
        raise _wrong(name, value, 'text, or a list of texts, such as ["a", "b"]')
    return tuple(several)


def _columns(option: Option, name: str, value: object) -> Any:
    listed = column_names(value) if isinstance(value, str) else value
    return _text(replace(option, several=True), name, listed)


def _gate(option: Option, name: str, value: object) -> object:
    if value not in (gates := ("material", "undecided", "found", "never")):
        raise InputError(f"{name} is {_toml(value)}; give {' or '.join(gates)}.")
    return value


def _path(option: Option, name: str, value: object) -> Path:
    return value if isinstance(value, Path) else Path(str(_text(option, name, value)))


def _number(option: Option, name: str, value: object) -> float:
    whole = option.takes == "INT"
    if isinstance(value, bool) or not isinstance(value, int if whole else int | float):
        raise _wrong(name, value, "a whole number" if whole else "a number")
    if isinstance(value, int) and value.bit_length() > _MOST_BITS:
        raise InputError(f"{name} is too large a number; give a smaller one.")
    if option.least is not None and value < option.least:
        raise InputError(f"{name} is {value}; give a whole number from {option.least} on.")
    return value if whole else float(value)


#: How a value is read, by what the option takes, or by its name.
_KINDS: Mapping[str, Callable[[Option, str, object], Any]] = {
    "-": lambda option, name, value: value,  # which the option itself checks
    "INT": _number,
    "FLOAT": _number,
    "FILE": _path,
    "columns": _columns,
    "fail-on": _gate,
}


def _wrong(name: str, value: object, wanted: str) -> InputError:
    return InputError(f"{name} is {_toml(value)}, but must be {wanted}.")


def _toml(value: object) -> str:
    """Write a value as its file does, nearly."""
    try:
        return json.dumps(value, ensure_ascii=False, default=str)
    except ValueError:  # it has thousands of digits
        return "a number of thousands of digits"


# ------------------------------------------------------------------ what is read

#: What states distributions of numbers, in place of columns of probabilities.
NUMBERS = (
    *("mean", "sd", "variance", "quantiles", "members"),
    *("time", "survival-at", "follow-up", "interpolation"),
)
STATED = NUMBERS[:5]
#: What examples do not have, and why.
_OF_EXAMPLES = {
    "group": "the examples have no groups",
    "label": "the labels of an example are known",
    "columns": "those of an example are known",
    "weights": "the examples have no weights",
    "clusters": "the rows of an example are independent",
    "logits": "an example has probabilities",
    **dict.fromkeys(NUMBERS, "an example has probabilities"),
    **dict.fromkeys(("truth", "where"), "an example is no long table of a hub"),
}
#: What says whose predictions are meant.
READ = ("FILE", "example", "event", *_OF_EXAMPLES)
_How = Literal["read", "read_with_groups", "read_late", "scan"]


@dataclass(frozen=True)
class Input:
    """Whose predictions a command is asked about: what is given, by option, None where it is not."""

    given: Mapping[str, Any]
    loaded: Config  # what of it is from a file

    def __getitem__(self, name: str) -> Any:
        return self.given.get(name)

    def but(self, **changed: Any) -> Input:
        """Return it with other values of some options."""
        return replace(self, given={**self.given, **changed})

    @property
    def stated(self) -> Any:
        """The columns of probabilities, or those that state distributions of numbers."""
        time, curve = self["time"], self["survival-at"]
        others = {"follow_up": self["follow-up"], "interpolation": self["interpolation"]}
        if time is None and (curve or any(others.values())):
            raise InputError(
                "--survival-at, --follow-up and --interpolation are of times until an event; give "
                "--time too."
            )
        of_times: dict[str, Any] = {}
        if time is not None:
            if self["label"] is not None:
                raise InputError("--time holds the outcomes, with --event; leave --label out.")
            each = [one for some in curve or () for one in column_names(some) or ()]
            wanted = "a time and its column, as in 365=s365, or one name with a star for the time, s*"
            pattern = each[0] if len(each) == 1 and "*" in each[0] and "=" not in each[0] else None
            times = pattern or _pairs(each, "--survival-at", "column", wanted, True)
            of_times = {"survival": times or None}
            of_times |= {"event": self["event"], **others}
        given = {name: self[name] for name in STATED} | of_times
        numbers = {name: column for name, column in given.items() if column is not None}
        if not numbers:
            return self["columns"]
        if self["columns"] is not None:
            option, of = ("time", "times") if of_times else (next(iter(numbers)), "numbers")
            raise InputError(
                f"--columns names probabilities of classes, and --{option} is about {of}; give one of "
                "them."
            )
        if "=" in numbers.get("quantiles", ""):
            wanted = "columns and their levels, as in low=0.05,high=0.95"
            names = column_names(numbers["quantiles"]) or ()
            numbers["quantiles"] = _pairs(names, "--quantiles", "column", wanted)
        return numbers

    @property
    def source(self) -> dict[str, str | None]:
        """Where predictions come from, for JSON."""
        file = self["FILE"]
        return {"file": None if file is None else str(file), "example": self["example"]}

    def sample(self) -> Sample:
        """Read the file, or load the example."""
        return self.read("read")  # type: ignore[no-any-return]

    def rows_or_file(self, rounding: float | None = None) -> tuple[Any, Any]:
        """Return predictions and labels; of a file that can be read a block at a time, the file."""
        from caltest import files

        whole = any(self[name] is not None for name in ("example", "truth", "where", "time"))
        if not whole and self["FILE"] is not None and files.can_scan(self["FILE"]):
            return self.read("scan"), None
        sample = self.sample() if rounding is None else self.read("read", rounding=rounding)
        return sample.rows, sample.labels

    def with_groups(self, **how: Any) -> tuple[Any, Any, str | None]:
        """Read the columns of groups too, None without any, and the name of a single probability."""
        if self["example"] is not None:
            return self.sample(), None, None
        sample, frame = self.read("read_with_groups", **how)
        return sample, frame if self["group"] else None, frame.attrs.get("event")

    def refuse(self, whose: str = "a FILE") -> None:
        """Raise if an option is given that examples do not have."""
        for name, why in _OF_EXAMPLES.items():
            if (value := self[name]) not in (None, (), False):
                several = (
                    "" if value is True else f" {value[0] if name == 'group' else ','.join(value)}"
                )
                words = f" {value}" if isinstance(value, str) else several
                raise InputError(f"--{name}{words} is for {whose}; {why}.")

    def read(self, how: _How, **more: Any) -> Any:
        """Read the file by a function of `caltest.files`, or load the example."""
        file, example = self["FILE"], self["example"]
        if example is not None:
            if file is not None:
                raise InputError(
                    f"both FILE ({file}) and --example ({example or 'empty'}) are given; give one."
                )
            self.refuse()
            from caltest.data import Rows, Sample
            from caltest.datasets import digits_models, load_digits_predictions
            from caltest.laws import Classes

            models = {f"digits:{model}": model for model in digits_models()}
            digits = load_digits_predictions(choose("example", example, models))
            return Sample(Rows(Classes(digits.probs, digits.classes)), digits.labels)
        if file is None:
            raise InputError("nothing to read: give a FILE, or --example digits:naive_bayes.")
        from caltest.files import reading
        from caltest.files.columns import NAME_COLUMNS

        try:
            read = getattr(reading, how)
            more |= {each: self[each] for each in ("weights", "clusters") if self[each] is not None}
            more["logits"] = bool(self["logits"])
            if self["truth"] is not None or self["where"]:
                more |= {"truth": self["truth"], "where": dict(map(_picked, self["where"] or ()))}
            label = self["label"] if self["time"] is None else self["time"]
            return read(file, label, columns=self.stated, groups=self["group"] or (), **more)
        except InputError as error:  # what is no probability may be meant as a group
            meant = f"{NAME_COLUMNS}, or say what it is, with --group or --clusters"
            raise error.changed(lambda fact: meant if fact == NAME_COLUMNS else fact) from error


# ------------------------------------------------------------------ commands


@dataclass(frozen=True)
class Found:
    """What a command found: for a program, for people, as a picture, and the exit status."""

    data: Mapping[str, Any]
    text: str
    picture: Callable[[], Any] | None = None
    status: int | None = None
    result: Any = None  # what is written as a page
    printed: str | None = None  # for a program too, in place of the text, which is noted then
    problem: InputError | None = None  # that is told last


#: Options of rows, hidden where a command does not take them, and what it says of them then.
_OF_ROWS = {
    "weights": "all rows have equal weight here; leave it out, or use caltest test, estimate, compare "
    "or audit, which take weights",
    "clusters": "no version of this is known to be valid for rows in clusters; keep one row per "
    "cluster, or use caltest test, estimate, compare or audit, which take clusters",
    "sampling-rate": "probabilities are those of all rows here; leave it out, or use caltest test, "
    "estimate, compare or audit, which take rates",
    **dict.fromkeys(
        NUMBERS,
        "predictions are probabilities here; use caltest test, estimate, compare or audit for numbers",
    ),
}


@contextmanager
def as_typed(name: str) -> Iterator[None]:
    """Have errors name the options of a command, and not the arguments of Python."""
    try:
        yield
    except InputError as error:
        options = (each for each in COMMANDS[name].values() if not each.name.isupper())
        raise error.renamed({each.argument: f"--{each.name}" for each in options}) from error


def command(run: Callable[..., Found]) -> Any:
    """Make a function of an `Input` and its own options a command."""
    name = run.__name__.replace("_", "-")
    known = COMMANDS[name]
    apart = {*READ, *_written(known), "config", "json"}
    own = [option for each, option in known.items() if each not in apart]

    @as_typed(name)
    def body(typed: dict[str, Any]) -> None:
        config, given = _given(known, typed)
        values = {each.argument: given.get(each.name, each.default) for each in own}
        if "sampling-rate" in known:
            rates, wanted = given.get("sampling-rate", ()), "a class and its rate, as in 0=0.01"
            values["sampling_rates"] = _pairs(rates, "--sampling-rate", "class", wanted) or None
        found = run(Input(given, config), **values)
        problem = found.problem
        if found.result is not None and "report" in given:
            from caltest.report import save

            save(found.result, given["report"])
        if found.picture is not None and "plot" in given:
            problem = out.draw(given["plot"], found.picture)
        if found.printed is not None:
            out.write_data(found.printed)
            out.note(found.text)
        elif given.get("json") is True:
            out.write_data(json.dumps(found.data, indent=2, allow_nan=False))
        else:
            out.write(found.text)
        if problem:
            raise problem
        if found.status is not None:
            raise typer.Exit(found.status)

    return declared(name, run.__doc__, body)


def _written(known: Mapping[str, Option]) -> list[str]:
    """Return the options that name files to write."""
    return [each for each, option in known.items() if option.takes == "FILE" and not option.typed]


def _given(known: Mapping[str, Option], typed: Mapping[str, Any]) -> tuple[Config, dict[str, Any]]:
    """Return what a configuration gives that is not typed, and all that is given, by option."""
    config, options = Config(None, None, {}), dict[str, Option]()
    if "config" in known:
        options = {each: option for each, option in known.items() if not option.typed}
        config = load_config(typed["config"], options)
    given = {each: value for each, value in typed.items() if value is not None and value is not False}
    for each, value in given.items():
        if each not in known:
            raise InputError(f"--{each} is not for this command: {_OF_ROWS[each]}.")
        if each in options:
            given[each] = checked(known[each], f"--{each}", value)
        else:
            known[each].check(f"--{each}", value)
    if isinstance(given.get("columns"), str):
        given["columns"] = column_names(given["columns"])
    config = replace(config, values={n: v for n, v in config.values.items() if n not in given})
    given |= config.values
    outputs = {f"--{each}": given[each] for each in _written(known) if each in given}
    read = [given[each] for each in ("FILE", "STATE", "config") if each in given]
    out.check_outputs(
        outputs,
        {each: out.suffixes(each) for each in outputs},
        [*read, *given.get("FILES", ()), config.path],
    )
    if config.path is not None and config.place is not None:
        configured = {option: path for option, path in outputs.items() if option[2:] in config.values}
        out.check_configured(
            configured, out.FORMATS, config.path, config.place, named="config" in given
        )
    return config, given
