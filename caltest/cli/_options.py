"""Options of a command, typed or from a file; the input they describe; and the wrapper that runs it.

A command is a function that takes an `Input` and its own options, by their Python names, and returns a
`Found`; its docstring is the text of its help. `caltest.options` lists the options of every command.
Options that are not typed may come from `[tool.caltest]` in pyproject.toml, or from another file.
"""

from __future__ import annotations

import csv
import gc
import inspect
import json
import os
import re
import tomllib
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from inspect import Parameter
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer
from typer.core import TyperCommand

from caltest._arguments import KINDS, SIDES, Whole, choose, flag
from caltest._visible import attempt, quoted
from caltest.cli import _output as out
from caltest.exceptions import IN_SHELL, InputError
from caltest.files.paths import is_file, is_url, named, opened
from caltest.options import COMMANDS, SECTIONS, Option

if TYPE_CHECKING:
    from caltest.data import Sample

# ------------------------------------------------------------------ parameters and help


class WithSections(TyperCommand):
    """A command whose help lists its options in sections."""

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """Write the options, section by section."""
        section_of = {name: section for section, names in SECTIONS.items() for name in names.split()}
        records: dict[str, list[Any]] = {section: [] for section in SECTIONS}
        for head, about in filter(None, (each.get_help_record(ctx) for each in self.get_params(ctx))):
            name = head.split()[0].removeprefix("--")
            section = section_of.get(f"{self.name}:{name}", section_of.get(name, "Question"))
            records[section].append((head.partition(" <")[0], about))
        for section, found in records.items():
            if found:
                with formatter.section(section):
                    formatter.write_dl(found, col_max=22)


def _parameter(option: Option) -> Parameter:
    """Return an option as a Typer parameter, always text; `read` converts and checks it."""
    how: dict[str, Any] = {"help": option.help, "show_default": False}
    kind: Any = list[str] | None
    if option.name.isupper():
        about: Any = typer.Argument(metavar=option.name, **how)
        kind = kind if option.several else str | None
    elif option.takes == "-":
        about, kind = typer.Option(f"--{option.name}", **how), bool | None
    else:
        about = typer.Option(f"--{option.name}", metavar=option.takes, **how)
    name = option.name.lower().replace("-", "_")
    return Parameter(name, Parameter.KEYWORD_ONLY, annotation=Annotated[kind, about], default=None)


# ------------------------------------------------------------------ values


def column_names(columns: str) -> list[str]:
    """Split the value of --columns; a name with a comma is put in double quotes, as in CSV.

    >>> column_names('cat, dog,"lions, tigers"')
    ['cat', 'dog', 'lions, tigers']
    """
    try:
        rows = list(csv.reader([columns], skipinitialspace=True))
    except csv.Error as error:
        text = "--columns is {found}, not a list of names; put one with a line break in double quotes."
        raise InputError(text, found=quoted(columns)) from error
    return [name.strip() for cells in rows for name in cells]


def _pairs(
    given: Iterable[str], option: str, what: str, wanted: str, *, first: bool = False, of: Any = float
) -> dict[str, Any]:
    """Split pairs of a name and a number (or text); with ``first``, the number comes before the name.

    >>> _pairs(["0=0.01", "a=b=0.5"], "--sampling-rate", "class", "a class and its rate")
    {'0': 0.01, 'a=b': 0.5}
    """
    found: dict[str, Any] = {}
    for each in given:
        name, equals, text = each.partition("=") if first or of is str else each.rpartition("=")
        name, text = (text, name) if first else (name, text)
        value = attempt(partial(of, text))
        if not equals or value is None:
            raise InputError(f"{option} is {each!r}; give {wanted}.")
        if name in found:
            raise InputError(f"{option} gives {what} {name!r} twice; give it once.")
        found[name] = value
    return found


_KINDS = KINDS | {"rng": Whole(0, 2**128 - 1, "give a whole number from 0 on")}


def read(option: Option, name: str, given: object) -> Any:
    """Return the value of an option, typed or configured; messages call it ``name``."""
    if option.takes == "-":
        return flag(name, given)
    given = column_names(given) if option.name == "columns" and isinstance(given, str) else given
    listed = isinstance(given, list | tuple)
    each: Sequence[Any] = given if listed else [given]  # type: ignore[assignment]
    several = option.several or option.name == "columns"
    plain = all(type(x) in (str, float) or (type(x) is int and x.bit_length() < 1024) for x in each)
    if (listed and not several) or not plain:
        do = "a text, or a list of texts" if several else "a text or a number"
        raise InputError(f"{name} must be {do}.")
    values = tuple(_read_one(option, name, str(one)) for one in each)
    kind = _KINDS.get(option.argument)
    value = values if several else values[0]
    return value if kind is None else kind(name, value)


def _read_one(option: Option, name: str, text: str) -> Any:
    if option.takes in ("FILE", "Any"):
        if not text:
            raise InputError("the path of the file is empty; give that of a file.")
        return text if is_url(text) else Path(text)
    try:
        return option.type(text)
    except ValueError:
        whole = "whole " if option.type is int else ""
        raise InputError(f"{name} is {quoted(text)}; give a {whole}number.") from None


# ------------------------------------------------------------------ a file of options


@dataclass(frozen=True)
class Config:
    """A configuration file: its path, its place in messages, and the values by option."""

    path: Path | None = None
    place: str | None = None
    values: Mapping[str, Any] = field(default_factory=dict)


def load_config(path: Path | None, options: Mapping[str, Option]) -> Config:
    """Read options from a file, or else from the nearest pyproject.toml that has some.

    In a file with a table ``tool``, options are read from ``[tool.caltest]``; in others, from the top
    level. Names of options may have dashes or underscores.

    Raises
    ------
    InputError
        If the file cannot be read, or an option is unknown or of the wrong kind.
    """
    nearby: list[Path] = []
    with suppress(FileNotFoundError):  # if the working directory was removed
        nearby = [Path("pyproject.toml"), *(each / "pyproject.toml" for each in Path.cwd().parents)]
    for each in filter(is_file, nearby) if path is None else [path]:
        if str(each) == os.devnull:  # the way to ask for no configured options
            break
        with named(str(each)), opened(each, "TOML") as file:
            table = tomllib.loads(file.read().decode("utf-8-sig"))
        inside = path is None or "tool" in table
        own = table.get("tool") if inside else {"caltest": table}
        own = own.get("caltest") if isinstance(own, dict) else None
        place = f"{each} [tool.caltest]" if inside else str(each)
        if isinstance(own, dict):
            return Config(each, place, _values(own, place, options))
        if path is not None or own is not None:
            do = "add it, or leave --config out"
            raise InputError(f"{each}: there is no table [tool.caltest]; {do}.")
    return Config()


def _values(table: dict[str, Any], place: str, options: Mapping[str, Option]) -> dict[str, Any]:
    values: dict[str, Any] = {}
    for key, value in table.items():
        name = key.replace("_", "-")
        with named(place):
            if name in values:
                raise InputError(f"the option {name!r} is given twice; give it once.")
            values[name] = read(choose("option", name, options), key, value)
    return values


# ------------------------------------------------------------------ input

#: Options for predictions other than columns of probabilities.
STATED = (
    *("mean", "sd", "variance", "quantiles", "members"),
    *("point", "functional", "low", "high", "symmetric"),
    *("sets", "lower", "upper", "level", "claims", "calibration-rows"),
)
_OF_TIMES = ("survival-at", "incidence", "follow-up", "interpolation")
_OF_FILES = (
    *("label", "columns", "group", "feature", "features", "weights", "clusters", "blocks", "logits"),
    *("order", "truth", "where", "time", "scale", "skip-missing"),
    *(*STATED, *_OF_TIMES),
)
#: Options that need all rows at once.
_WHOLE = (
    *("example", "truth", "where", "time", "feature", "features", "order", "skip-missing"),
    *("sets", "lower", "point"),
)
#: Options that describe the input.
READ = ("FILE", "example", "event", *_OF_FILES)
_How = Literal["read", "read_grouped", "read_late", "scan"]


@dataclass(frozen=True)
class Input:
    """The input of a command: the options that were given."""

    given: Mapping[str, Any]
    loaded: Config  # the source of some of them

    def __getitem__(self, name: str) -> Any:
        return self.given.get(name)

    def but(self, **changed: Any) -> Input:
        """Return a copy with other values for some options."""
        return replace(self, given={**self.given, **changed})

    @property
    def stated(self) -> Any:
        """The columns of probabilities, or those that describe other predictions."""
        named = [each for each in STATED if self[each] is not None and self[each] is not False]
        numbers = {each.replace("-", "_"): self[each] for each in named}
        if of_times := [name for name in ("time", *_OF_TIMES) if self[name] is not None]:
            curves = "incidence" if self["incidence"] else "survival-at"
            if lacking := [name for name in (curves, "event", "time") if not self[name]]:
                do = f"give {' and '.join(f'--{name}' for name in lacking)} too"
                raise InputError(f"--{of_times[0]} is of times until an event; {do}.")
            if self["label"] is not None:
                raise InputError("--time holds the outcomes, with --event; leave --label out.")
            each = [one for some in self["survival-at"] or () for one in column_names(some)]
            wanted = "a time and its column, as in 365=s365, or one name with a star for the time, s*"
            pattern = each[0] if len(each) == 1 and "*" in each[0] and "=" not in each[0] else None
            given = (name for name in _OF_TIMES[1:] if self[name] is not None)
            numbers |= {name.replace("-", "_"): self[name] for name in given}
            numbers["event"] = self["event"]
            if each:
                at = pattern or _pairs(each, "--survival-at", "column", wanted, first=True)
                numbers["survival"] = at
        if not numbers:
            return self["columns"]
        if self["columns"] is not None:
            option, of = ("time", "times") if of_times else (next(iter(numbers)), "numbers")
            both = f"--columns names probabilities of classes, and --{option} is about {of}"
            raise InputError(f"{both}; give one of them.")
        if "claims" in numbers:
            numbers["claims"] = column_names(numbers["claims"])
        if "=" in numbers.get("quantiles", ""):
            wanted = "columns and their levels, as in low=0.05,high=0.95"
            names = column_names(numbers["quantiles"])
            numbers["quantiles"] = _pairs(names, "--quantiles", "column", wanted)
        return numbers

    @property
    def source(self) -> dict[str, str | None]:
        """The source of the predictions, for JSON."""
        file = self["FILE"]
        return {"file": None if file is None else str(file), "example": self["example"]}

    def sample(self) -> Sample:
        """Read the file or load the example."""
        return self.read("read")  # type: ignore[no-any-return]

    def rows_or_file(self, rounding: float | None = None) -> tuple[Any, Any]:
        """Return predictions and labels; or a file that is read block by block, and None."""
        whole = any(self[name] is not None for name in _WHOLE)
        archived = re.search(r"^\(|samples_|\.(npz|json)(?!\w)", str(self["FILE"]).lower())
        if not (whole or archived or self["FILE"] is None):
            return self.read("scan"), None
        sample = self.sample() if rounding is None else self.read("read", rounding=rounding)
        return sample.rows, sample.labels

    def with_groups(self, **how: Any) -> tuple[Any, Any, str | None]:
        """Read group columns too (None without any), and the name of a single probability column."""
        if self["example"] is not None:
            return self.sample(), None, None
        sample, columns, event = self.read("read_grouped", **how)
        apart = {self["order"]} - {*(self["group"] or ())}
        return sample, {name: columns[name] for name in columns if name not in apart} or None, event

    @property
    def order(self) -> Any:
        """The column with the order of rows; None without one."""
        return None if self["order"] is None else self.read("read_grouped")[1][self["order"]]

    def check_example(self, files: object) -> None:
        """Raise if an example comes with files or with options about their columns."""
        if files:
            both = f"both FILE ({files}) and --example ({self['example'] or 'empty'})"
            raise InputError(f"{both} are given; give one.")
        for name in _OF_FILES:
            if self[name] is not None:
                raise InputError(f"--{name} is for a file, and --example is given; leave it out.")

    def read(self, how: _How, **more: Any) -> Any:
        """Read the file with a function of `caltest.files`, or load the example."""
        file, example = self["FILE"], self["example"]
        if example is not None:
            self.check_example(file)
            from caltest.data import Rows, Sample
            from caltest.datasets import digits_models, load_digits_predictions
            from caltest.laws import Classes

            models = {f"digits:{model}": model for model in digits_models()}
            digits = load_digits_predictions(choose("example", example, models))
            return Sample(Rows(Classes(digits.probs, digits.classes)), digits.labels)
        if file is None:
            raise InputError("nothing to read: give a FILE, or --example digits:naive_bayes.")
        from caltest.files import reading

        for each in ("weights", "clusters", "blocks", "truth"):
            more |= {each: self[each]} if self[each] is not None else {}
        if self["where"]:
            wanted = "a column and its value, as in target=rain"
            more["where"] = _pairs(self["where"], "--where", "column", wanted, of=str)
        label = self["label"] if self["time"] is None else self["time"]
        own, columns = (*(self["group"] or ()), *filter(None, [self["order"]])), self.stated
        if (scale := self["scale"]) is not None:
            words, wanted = column_names(scale), "100 for percent, or words, as in low=0.3,high=0.9"
            more["scale"] = attempt(partial(float, scale)) or _pairs(words, "--scale", "word", wanted)
        more |= {"logits": bool(self["logits"]), "skip_missing": bool(self["skip-missing"])}
        if features := (*(self["feature"] or ()), *(self["features"] or ())):
            more["features"] = features
        return getattr(reading, how)(file, label, columns=columns, groups=[*dict.fromkeys(own)], **more)


# ------------------------------------------------------------------ commands


@dataclass(frozen=True)
class Found:
    """The result of a command: data for programs, text for people, a picture, and the exit status."""

    data: Mapping[str, Any]
    text: str
    picture: Callable[[], Any] | None = None
    status: int | None = None
    result: Any = None  # the result to write as a page
    verdict: tuple[str, str] = ("", "")  # its words in the text, and its code
    printed: str | None = None  # output for a program; the text then goes to standard error
    problem: InputError | None = None  # reported last


#: Names of arguments and functions in the shell: options and commands.
_SPOKEN = {
    **{option.argument: f"--{option.name}" for of in COMMANDS.values() for option in of.values()},
    **{option.argument: f"caltest test --{option.name}" for option in COMMANDS["test"].values()},
    **{f"caltest.{name.replace('-', '_')}": f"caltest {name}" for name in COMMANDS},
    **{f"materiality[{side!r}]": f"--materiality-{side[4:]}" for side in SIDES},
    **dict.fromkeys(("to_frame()", "where()", "pandas.DataFrame(found.errors)"), "--json"),
}


def command(run: Callable[..., Found]) -> Any:
    """Turn a function of an `Input` and its own options into a command."""
    name = run.__name__.replace("_", "-")
    known = COMMANDS[name]
    parameters = {each: _parameter(option) for each, option in known.items()}
    apart = {*READ, *_written(known), "config", "json"}
    own = [option for each, option in known.items() if each not in apart]
    names = _SPOKEN | {of.argument: f"--{each}" for each, of in known.items() if not each.isupper()}

    def main(**typed: Any) -> None:
        IN_SHELL.set(names)
        with out.errors_reported():
            config, given = _given(known, {each: typed[of.name] for each, of in parameters.items()})
            found = {each.argument: given.get(each.name, each.default) for each in own}
            values = {name: value for name, value in found.items() if value is not None}
            if "sampling_rates" in values:
                rates, wanted = values["sampling_rates"], "a class and its rate, as in 0=0.01"
                values["sampling_rates"] = _pairs(rates, "--sampling-rate", "class", wanted)
            sides = {side: values.pop(f"materiality_{side[4:]}", None) for side in SIDES}
            if set(sides.values()) != {None}:
                if "materiality" in values:
                    raise InputError("give --materiality, or a limit of each side, and not both.")
                values["materiality"] = sides
            if not gc.isenabled():
                gc.freeze()
                gc.enable()
            _tell(run(Input(given, config), **values), given)

    main.__name__, main.__doc__ = name, run.__doc__
    main.__annotations__ = {each.name: each.annotation for each in parameters.values()}
    main.__signature__ = inspect.Signature([*parameters.values()])  # type: ignore[attr-defined]
    return main


def _tell(found: Found, given: Mapping[str, Any]) -> None:
    """Write and print the result, and exit with its status."""
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
        out.write(found.text, *found.verdict)
    if problem:
        raise problem
    if found.status is not None:
        raise typer.Exit(found.status)


def _written(known: Mapping[str, Option]) -> list[str]:
    """Return the options that name files to write."""
    return [each for each, option in known.items() if option.takes == "FILE" and not option.typed]


def _given(known: Mapping[str, Option], typed: Mapping[str, Any]) -> tuple[Config, dict[str, Any]]:
    """Return the configured options that were not typed, and all options together."""
    given: dict[str, Any] = {}
    for each, value in typed.items():
        if value in (None, False, []):
            continue
        called = each if each.isupper() else f"--{each}"
        if isinstance(value, list) and not known[each].several:
            if len(value) > 1:
                raise InputError(f"{called} is given {len(value)} times; give it once.")
            (value,) = value
        given[each] = read(known[each], called, value)
    config = Config()
    if "config" in known:
        options = {each: option for each, option in known.items() if not option.typed}
        config = load_config(given.get("config"), options)
        config = replace(config, values={n: v for n, v in config.values.items() if n not in given})
    given |= config.values
    if len(files := given.get("FILE", ())) == 1:
        (given["FILE"],) = files
    sources = [*files, given.get("STATE"), config.path, *given.get("FILES", ())]
    out.check_outputs({f"--{each}": given[each] for each in _written(known) if each in given}, sources)
    return config, given
