"""Columns by name: labels, probabilities, weights, clusters and groups; and the content read from them.

Roles come from the user or from names; arrays of an archive are treated like columns of a table.
"""

from __future__ import annotations

import fnmatch
import re
import shlex
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from numbers import Number as Numeric
from typing import Any

import narwhals as nw
import numpy as np

from caltest import laws
from caltest._arguments import Kind, Number, closest, flag, name_or_place, names, options
from caltest._parallel import check_fits
from caltest._visible import quoted
from caltest.data import Rows, Sample, predictions, sample
from caltest.data.containers import NamedArray, cells_of, check_distinct, listed
from caltest.data.diagnose import WORDS
from caltest.data.premises import shared_members
from caltest.data.rows import Clustering, Weighing, checked_weights, described, in_blocks
from caltest.data.sample import counted_as
from caltest.exceptions import Argument, InputError, Phrase, Premise, Row
from caltest.files.paths import placed
from caltest.laws.base import Predictive, finite_table
from caltest.laws.classes import read_only
from caltest.laws.gaussian import Normal
from caltest.laws.objects import stepwise, upwards
from caltest.laws.quantiles import level_called
from caltest.spelling import is_missing, is_number

# ------------------------------------------------------------------ distributions of numbers

_OF_TIMES = ("survival", "incidence", "event", "follow_up")
_KNOWN = ("mean", "sd", "variance", "quantiles", "members", "cdf", "point", *_OF_TIMES)
_OF_SETS = ("sets", "lower", "upper", "level", "claims", "calibration_rows")
#: Not columns, but details of curves and point forecasts, with the column option they belong to.
_HOW = {"interpolation": "event"} | dict.fromkeys(("functional", "low", "high", "symmetric"), "point")
_STATED = (
    *(("mean", "sd"), ("mean", "variance"), ("quantiles",), ("members",), ("cdf",), ("point",)),
    *((each, "event", *end) for each in _OF_TIMES[:2] for end in ((), ("follow_up",))),
)
_WRONG = {
    "times": "of times until an event give {survival}, {event} and the column of times as the "
    "outcomes.",
    "how": "{how} is of point forecasts; give {point}, their column, too.",
    "alone": "{other} is given alone; give the columns of {mean} and of one of {sd} and {variance}.",
    "both": "both {one} and {other} are given; give one of them.",
    "twice": "column {column} is given twice; give each its own.",
}
_ANY = Number(-1e300, 1e300)
#: Kinds of columns given with a number each: what the number is, and its check.
_NUMBERS: Mapping[str, tuple[str, Kind]] = {
    "quantiles": ("level", Number(0.0, 1.0, "[]", "give a level between 0 and 1, such as 0.05")),
    "cdf": ("threshold", _ANY),
    "survival": ("time", _ANY),
}
#: Types in which several columns may be given: names, or a text that stands for them.
_SEVERAL: Mapping[str, Any] = {
    "quantiles": (str, Mapping),
    "members": (str, list, tuple),
    "cdf": Mapping,
    "survival": (str, Mapping),
    "incidence": (str, Mapping),
}
_COUNT = re.compile("[0-9]{1,99}")


def _cause_and_time(text: str) -> Any:
    cause, _, time = text.rpartition("_")
    return (cause, float(time)) if cause and is_number(time) else None


#: Meaning of a pattern's star, how to read it, and an example.
_STARS: Mapping[str, tuple[str, Callable[[str], Any], str]] = {
    "quantiles": ("level for the star", level_called, "'q0.05' for 'q*'"),
    "survival": ("time for the star", lambda x: float(x) if is_number(x) else None, "'s365' for 's*'"),
    "incidence": ("cause and time for the star", _cause_and_time, "'cif_relapse_365' for 'cif_*'"),
    "members": ("number behind it", lambda x: int(x) if _COUNT.fullmatch(x) else None, "'{}1'"),
}


@dataclass(frozen=True, eq=False)
class NumberSample(Sample):
    """Distributions of numbers with outcomes as in the file, even if the law keeps less."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "labels", read_only(self.labels, self.labels.dtype))


@dataclass(frozen=True)
class NumberColumns:
    """Columns that describe distributions of numbers.

    Attributes
    ----------
    of
        Names of columns by content: "mean" with "sd" or "variance". For "quantiles", a level for every
        column name, or a pattern of names whose star is the level. For "members", the prefix of
        numbered names, or all names. For "cdf", a threshold for every column name. For "survival", a
        time for every column, or a pattern whose star is the time, with the column "event" (outcomes
        are times), and optionally "follow_up" and the "interpolation" of the curves, "linear" or
        "step". For "point", the column of point forecasts, with their "functional", "low", "high" and
        "symmetric" as in :class:`caltest.predictive.Point`.
    """

    of: Mapping[str, Any]

    def __post_init__(self) -> None:
        for name, column in self.of.items():
            if name in _HOW:
                continue
            if name not in _KNOWN:
                do = "name 'mean' with 'sd' or 'variance'"
                others = "'quantiles', 'members', 'point', or 'survival' with 'event'"
                raise InputError(f"columns names {quoted(name)}; {do}, {others}.")
            if not isinstance(column, _SEVERAL.get(name, str)) or not column:
                raise InputError(argument=name, found=quoted(column), do="give the name of a column")
            for each, value in column.items() if name in _NUMBERS and type(column) is not str else ():
                what, number = _NUMBERS[name]
                number(f"the {what} of column {quoted(each)}", value)
        given = tuple(name for name in _KNOWN if name in self.of)
        twice = [name for name, count in Counter(self.names).items() if count > 1]
        astray = next((name for name in self.of if _HOW.get(name, name) not in given), None)
        if given not in _STATED or twice or astray:
            of_times = not {*_OF_TIMES, "interpolation"}.isdisjoint(self.of)
            wrong = "how" if astray else "alone" if len(given) < 2 else "both"
            wrong = "twice" if twice and given in _STATED else "times" if of_times else wrong
            facts: dict[str, object] = {name: Argument(name) for name in _KNOWN}
            facts["one"], facts["other"] = map(Argument, ("", "columns", *given)[-2:])
            facts |= {"survival": Argument("survival_at"), "how": Argument(astray or "")}
            raise InputError(Phrase(_WRONG[wrong], facts | {"column": quoted(next(iter(twice), ""))}))

    @property
    def names(self) -> tuple[str, ...]:
        """The column names; for quantiles, a cdf and survival in the order of their numbers."""
        given = [of for what, of in self.of.items() if what not in _HOW]
        return tuple(name for of in given for name in ([of] if isinstance(of, str) else _ordered(of)))

    def among(self, names: Sequence[str]) -> NumberColumns:
        """Return the columns by name, with a pattern resolved among the names of a table."""
        if (of := next((each for each in _STARS if isinstance(self.of.get(each), str)), None)) is None:
            return self
        pattern, (what, read, example) = self.of[of], _STARS[of]
        start, star, end = (pattern, "*", "") if of == "members" else pattern.partition("*")
        shape = re.compile(f"{re.escape(start)}(.+){re.escape(end)}")
        stars = {name: found[1] for name in names if star and (found := shape.fullmatch(name))}
        numbers = {name: number for name, text in stars.items() if (number := read(text)) is not None}
        if of == "members" and not numbers and pattern in names:
            numbers = {pattern: 0}
        if not numbers:
            given = Argument("survival_at" if of == "survival" else of)
            called = f"called so with a {what}, such as {example.format(pattern)}"
            none = f"{given} is {quoted(pattern)}, and no column is {called}"
            raise InputError(f"{none}; the columns are {listed(names)}.")
        by_number: dict[Any, str] = {}
        for name, number in numbers.items():
            if (first := by_number.setdefault(number, name)) != name:
                alike = f"columns {quoted(first)} and {quoted(name)} both state {what.split()[0]}"
                raise InputError(f"{alike} {stars.get(first)}; keep one of them.")
        return NumberColumns({**self.of, of: [*numbers] if of == "members" else numbers})

    def law(self, columns: Mapping[str, Any]) -> Predictive:
        """Return the distributions that columns, given by name, describe."""
        own = [name for name in self.names if name != self.of.get("event")]  # that column is an outcome
        several = next((kind for kind in self.of if kind in _SEVERAL), None)
        fine = np.isreal if several in ("quantiles", "members") else np.isfinite  # may be missing
        values = {x: finite_table(f"column {quoted(x)}", columns[x], fine=fine) for x in own}
        if "point" in self.of:
            how = {name: self.of[name] for name in _HOW if name in self.of}
            return laws.Point(values[self.of["point"]], **how)
        if several is None:
            return Normal(**{argument: values[name] for argument, name in self.of.items()})
        names = _ordered(by_name := self.of[several])
        table = np.column_stack([values[name] for name in names])
        if several == "members":
            return laws.Members(table)
        end, between = values.get(self.of.get("follow_up", "")), self.of.get("interpolation")
        if several == "incidence":
            pairs = [by_name[name] for name in names]
            causes, times = ([*dict.fromkeys(each)] for each in zip(*pairs, strict=True))
            if pairs != [(cause, time) for cause in causes for time in times]:
                raise InputError(f"incidence has {listed(names)}; give the same times of all causes.")
            parts = dict(zip(causes, np.split(table, len(causes), axis=1), strict=True))
            return laws.Survival(None, times, incidence=parts, follow_up=end, interpolation=between)
        at = [float(by_name[name]) for name in names]
        if several == "survival":
            return laws.Survival(table, at, follow_up=end, interpolation=between)
        return laws.Quantiles(at, table) if several == "quantiles" else stepwise(at, table)

    def sample(self, columns: Mapping[str, Any], outcomes: Any, weights: Any, *, part: bool) -> Sample:
        """Return the distributions with their outcomes; for part of the rows, as the law has these."""
        law: Any = self.law(columns)
        whole = np.any(np.isnan(law.values)) if "quantiles" in self.of else "event" in self.of
        if part and whole:
            what = "times until an event, and quantiles that some rows lack,"
            raise InputError(f"{what} are read all at once; use caltest.files.read.")
        outcomes = upwards(sorted(self.of["cdf"].values()), outcomes) if "cdf" in self.of else outcomes
        if "event" in self.of:
            both = finite_table("time", outcomes), np.asarray(columns[self.of["event"]])
            outcomes = np.column_stack([each.astype(object) for each in both])
        counting = None if weights is None else checked_weights(weights, law.n_samples)
        met, checked = law.met(outcomes, counting)
        if part:
            shared_members(met)
            return Sample(Rows(met), checked)
        kept = outcomes if "incidence" in self.of else finite_table("the outcomes", outcomes)
        return NumberSample(Rows(law), kept)

    def __str__(self) -> str:
        return f"{', '.join(name for name in self.of if name not in _HOW)} from {listed(self.names)}"


def _ordered(columns: Sequence[str] | Mapping[str, float]) -> list[str]:
    """Return names of columns in the order of the numbers given with them."""
    return sorted(columns, key=columns.__getitem__) if isinstance(columns, Mapping) else [*columns]


# ------------------------------------------------------------------ roles of columns

_LABELS = ("label", "labels", "y", "y_true", "target", "class")
_LABEL = Argument("label", ...)
_PLAIN = re.compile(r"u?int\d+|halffloat|float|double|bool|(large_)?string")  # Arrow types
_INDEX = re.compile(r"(unnamed: \d+|index|level_\d+|(row_?|sample_?)?id|row|__index_level_\d+__)?")

_SHARE, _WHOLE = Number(0.0, 1.0, "[]"), Number(0.0, 1e6, "(]", "give 100 for percent")


def scale(name: str, value: Any) -> Any:
    """Return the total of stated probabilities; or a probability by word, NaN for a refusal."""
    if not isinstance(value, Mapping):
        return _WHOLE(name, value)
    read = {str(word).strip().casefold(): number for word, number in value.items()}
    if len(read) < len(value):
        raise InputError(argument=name, found=listed(value), do="give a word once, in capitals or not")
    return {w: x if x != x else _SHARE(f"{name} of {quoted(w)}", x) for w, x in read.items()}


_OR_GROUP = "--columns, or say what it is, with --group or --clusters"
_NO_OUTCOMES = Phrase("name outcomes that are numbers, or give probabilities if they are classes")
COPIES = 4.0  # copies of float64 predictions made in reading, checking and sampling


@options(weights=name_or_place, clusters=name_or_place, needs_labels=flag, scale=scale)
class Roles:
    """Roles of columns as given by the user: None for those to be found; a single name is a list."""

    label: str | Any | None
    columns: Any = None  # names, or a mapping for distributions of numbers
    groups: Any = ()
    weights: str | None = None
    clusters: str | None = None  # also among the groups, as which they are read
    blocks: str | None = None  # length of the blocks of time that form clusters
    logits: bool = False  # whether columns hold logits in place of probabilities
    needs_labels: bool = True
    numbers: NumberColumns | None = None  # columns of distributions, if not of probabilities
    features: Any = ()  # names or patterns; features may be groups too
    scale: Any = None  # total of probabilities, or probabilities by word
    skip_missing: bool = False  # whether rows without a prediction or outcome are left out
    sets: Any = None  # columns of sets or interval ends, and their claims

    def __post_init__(self) -> None:
        own = vars(self)
        if isinstance(self.columns, Mapping) and {"sets", "lower"} & set(self.columns):
            for name in [each for each in self.columns if each not in _OF_SETS][:1]:
                one = Argument("sets" if "sets" in self.columns else "lower")
                raise InputError(_WRONG["both"], one=one, other=Argument(name))
            own["sets"], own["columns"] = self.columns, None
        elif isinstance(self.columns, Mapping):
            own["numbers"] = NumberColumns(self.columns)
            own["columns"] = own["numbers"].names
        own["columns"] = self.columns and names("columns", self.columns)
        own["groups"] = names("groups", self.groups)
        own["features"] = names("features", self.features)
        for name in ("label", "weights", "clusters"):
            own[name] = None if own[name] is None else str(own[name])
        if self.clusters is not None and self.clusters not in self.groups:
            own["groups"] = (*self.groups, self.clusters)
        if self.blocks is not None and self.clusters is None:
            do = "{blocks} cuts a column of dates into clusters; give it with {clusters}."
            raise InputError(do, blocks=Argument("blocks"), clusters=Argument("clusters", ...))

    def clustered(self, cells: list[Any]) -> list[Any]:
        """Return the cells of the cluster column, or the blocks of time they fall into."""
        return cells if self.blocks is None else in_blocks(cells, self.blocks)

    def tells(self, cell: Any) -> bool:
        """Return whether a text column is to be read as probabilities, judging by this cell."""
        return self.scale is not None or (isinstance(cell, str) and ("%" in cell or is_missing(cell)))

    def stated(self, cell: Any) -> Any:
        """Return the probability in a cell, NaN for none; or the cell itself if it cannot be read.

        >>> [Roles(None, scale={"high": 0.9}).stated(cell) for cell in ("High ", "85%", "NA", "maybe")]
        [0.9, 0.85, nan, 'maybe']
        """
        words, text = self.scale, "" if cell is None else str(cell).strip().casefold()
        words, whole = (words, 1.0) if isinstance(words, Mapping) else ({}, words or 1.0)
        if text in words or is_missing(text):
            return words.get(text, np.nan)
        number = text.removesuffix("%")
        return float(number) / (whole if number == text else 100.0) if is_number(number) else cell

    def check_signs(self, name: str, cells: Sequence[object]) -> None:
        """Raise if only some cells have a percent sign, and no scale explains the others."""
        known, texts = self.scale, [str(cell).strip() for cell in cells]
        signed = any(text.endswith("%") and is_number(text[:-1]) for text in texts)
        for row, cell in enumerate(texts if signed and not isinstance(known, float) else ()):
            if is_number(cell) and cell not in (known or ()):
                do = Argument("scale", ...)
                raise InputError(_SIGNS, column=quoted(name), found=quoted(cell), row=row, scale=do)

    def among(self, names: Sequence[str]) -> Roles:
        """Return a copy with patterns resolved among the names of a table."""
        apart = {self.label, self.weights, *self.groups, *self.features}
        if self.label is None:
            apart |= {name for name in names if name.lower() in _LABELS}
        roles = self
        if self.numbers is not None:
            numbers = self.numbers.among([name for name in names if name not in apart])
            roles = replace(self, numbers=numbers, columns=numbers.names)
        patterns = [each for each in self.features if each not in names and set(each) & set("*?[!")]
        if not patterns:
            return roles
        free = [name for name in names if name not in (*apart, *(roles.columns or ()))]
        left = {name for each in patterns if each[0] == "!" for name in fnmatch.filter(free, each[1:])}
        found = [name for each in patterns for name in fnmatch.filter(free, each) if name not in left]
        if not found:
            do = f"no column that is nothing else is called so; the columns are {listed(names)}"
            raise InputError(f"{Argument('features')} is {listed(patterns)}, and {do}.")
        own = [each for each in self.features if each not in patterns]
        return replace(roles, features=(*own, *dict.fromkeys(found)))

    @property
    def may_lack_labels(self) -> bool:
        """Whether predictions alone suffice because no labels are named."""
        return not self.needs_labels and self.label is None

    def found(self, names: Sequence[str], find: Callable[[Sequence[str]], str]) -> str:
        """Return the name that ``find`` finds, preferably not that of a group."""
        try:
            return find([name for name in names if name not in (*self.groups, self.weights)])
        except InputError:
            return find(names)

    def found_label(self, names: Sequence[str], kind: str, among: Sequence[str]) -> str | None:
        """Return the name of the labels; None if there are none and none are needed.

        Raises
        ------
        InputError
            If it is not found, or if a group or the weights are not a separate column (array).
        """
        label = None
        if not self.may_lack_labels or any(name.lower() in _LABELS for name in names):
            label = self.found(names, lambda some: chosen_label(some, self.label, kind))
        prediction = "a probability" if self.numbers is None else "a prediction"
        taken: dict[str | None, str] = dict.fromkeys(self.columns or (), prediction)
        if self.numbers is not None and label in taken:
            both = f"as the outcomes and as {prediction}"
            raise InputError(f"the {kind} {quoted(label)} is given {both}; give it once.")
        groups = [name for name in self.groups if name != self.clusters]
        for name, role, of in (
            (self.clusters, "clusters", " of clusters"),
            *((name, "a group", " to group by") for name in groups),
            *((name, "a feature", " of features") for name in self.features if name not in self.groups),
            (self.weights, "weights", " of weights"),
        ):
            if name is None:
                continue
            check_there(name, among, kind, of)
            if name == label:
                found = f"the {kind} {quoted(name)} holds the labels, so it cannot be {role} too"
                do = f"give what was known before, or say what holds the labels, with {_LABEL}"
                raise InputError(f"{found}; {do}.")
            if name in taken:
                both = "twice" if taken[name] == role else f"as {taken[name]} and as {role}"
                raise InputError(f"the {kind} {quoted(name)} is given {both}; give it once.")
            taken[name] = role
        return label


def check_there(name: str, names: Collection[str], kind: str, of: str, found: str = "") -> None:
    """Raise if a column or array named by the user does not exist."""
    if name not in names:
        close = closest(name, names)
        meant = f" (did you mean {quoted(close)}?)" if close else ""
        found = found or f"the {kind}s are"
        raise InputError(f"there is no {kind} {quoted(name)}{of}{meant}; {found} {listed(names)}.")


def chosen_label(names: Sequence[str], label: str | None, kind: str = "column") -> str:
    """Return the name of the labels: as given, or the only name that suggests labels."""
    if label is not None:
        check_there(label, names, kind, "")
        return label
    if len(likely := [name for name in names if name.lower() in _LABELS]) > 1:
        do = f"say which is, with {_LABEL}"
        raise InputError(f"the {kind}s {listed(likely)} could all be the labels; {do}.")
    if not likely:
        do = f"say which holds the labels, with {_LABEL}: the {kind}s are {listed(names)}"
        raise InputError(f"no {kind} is called {', '.join(_LABELS[:-1])} or {_LABELS[-1]}; {do}.")
    return likely[0]


@dataclass(frozen=True)
class Columns:
    """The roles of a table's columns."""

    roles: Roles
    label: str | None = None
    probs: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()

    @classmethod
    def of(cls, roles: Roles, names: Sequence[str]) -> Columns:
        """Find the columns among the names of a table."""
        roles = roles.among(names)
        truth = roles.found_label(names, "column", names)
        apart = (truth, roles.weights, *roles.groups, *roles.features)
        others = dict.fromkeys(name for name in names if name not in apart)
        chosen = others if roles.columns is None else dict.fromkeys(roles.columns)
        if roles.columns is not None:
            check_distinct(roles.columns)
            of = " of probabilities" if roles.numbers is None else ""
            for name in chosen:
                check_there(name, others, "column", of, "besides the labels there are")
            if not chosen:
                raise InputError("columns is empty; name the columns of probabilities.")
        notes = unread_note("columns", [name for name in others if name not in chosen])
        return cls(roles, truth, tuple(chosen), notes)

    @property
    def read(self) -> list[str]:
        """Names of all columns that are read."""
        single = [name for name in (self.label, self.roles.weights) if name is not None]
        return [*dict.fromkeys((*self.probs, *single, *self.roles.groups, *self.roles.features))]

    @property
    def numeric(self) -> list[str]:
        """Names of columns that hold numbers: predictions, and numeric outcomes."""
        outcomes = [] if self.roles.numbers is None or self.label is None else [self.label]
        return [*self.probs, *outcomes]

    def check_kinds(self, schema: Any, load: Callable[[str], Sequence[object]]) -> None:
        """Raise if a column in Arrow's schema cannot hold probabilities.

        ``load`` returns the cells of a column, for messages.
        """
        import pyarrow as pa

        # `empty_table` would import pandas, which is slow.
        frame: Any = nw.from_native(pa.Table.from_batches([], schema), eager_only=True)
        given = self.roles.columns is not None
        advice = Phrase(f"name the probability columns, with {Argument('columns', ..., _OR_GROUP)}")
        if not self.probs:
            kinds = "labels and the features" if self.roles.features else "labels"
            do = advice if self.roles.features else "add the probabilities"
            raise InputError(f"there is no column besides the {kinds}; {do}.")
        weights = [name for name in [self.roles.weights] if name is not None]
        event = self.roles.numbers and self.roles.numbers.of.get("event")
        words = nw.Boolean, nw.String
        dtype = None if self.label is None else frame.schema[self.label]
        if dtype and dtype.is_float() and not given and (points := _as_points(self.probs)):
            facts = {"points": points, "else": advice}
            advice = Phrase("for point forecasts give {points}, else {else}", facts)
        for name, dtype in frame.select(*self.numeric, *weights).schema.items():
            if name in weights:
                if dtype == nw.String:
                    raise _not_numbers(name, load(name), dtype, Phrase("give weights that are numbers"))
            elif not (dtype.is_float() or dtype.is_integer() or (name == event and dtype in words)):
                alone = f"name one of probabilities, or say what words are: {Argument('scale', ...)}"
                one = Phrase(alone if len(self.probs) == 1 else "leave the column out")
                do = one if given else advice
                if self.roles.numbers is not None:
                    lack = not {"quantiles", "members"}.isdisjoint(self.roles.numbers.of)
                    do = Phrase(f"{'leave such cells empty, or ' * lack}name columns of numbers")
                    do = _NO_OUTCOMES if name == self.label else do
                cells = load(name)
                self.roles.check_signs(name, cells)
                if self.roles.numbers is None and any(map(self.roles.tells, cells)):
                    cells = list(map(self.roles.stated, cells))
                if dtype != nw.String or any(isinstance(cell, str) for cell in cells):
                    raise _not_numbers(name, cells, dtype, do)
            if not given and dtype.is_integer() and _INDEX.fullmatch(name.lower()):
                text = "column {column} looks like a row index, not a probability; {do}."
                raise InputError(text, column=quoted(name), do=advice)

    def _as_numbers(self, table: Any) -> Any:
        """Return a table with numbers in place of percentages, words, or values on another scale."""
        import pyarrow as pa

        of = self.roles.scale
        outcomes = [self.label] if isinstance(of, Mapping) and self.label else []
        for name in (*self.probs, *outcomes) if self.roles.numbers is None else ():
            if pa.types.is_string(table.schema.field(name).type) or isinstance(of, float):
                values = list(map(self.roles.stated, table.column(name).to_pylist()))
                if not any(isinstance(each, str) for each in values):  # otherwise labels are names
                    own = pa.array(values, pa.float64(), from_pandas=True)
                    table = table.set_column(table.column_names.index(name), name, own)
        return table

    def _lacking(self, table: Any) -> tuple[Any, str]:
        """Return which rows lack a prediction or an outcome, and a note on how many."""
        skip, rows = self.roles.skip_missing, table.num_rows
        of = self.roles.numbers  # other distributions may lack some of their numbers
        needed = (*(self.probs if of is None or "point" in of.of else ()), self.label)
        columns = {name: table.column(name) for name in needed if name is not None}
        some = [name for name, each in columns.items() if skip or each.null_count]
        gone = np.array([columns[name].is_null(nan_is_null=skip) for name in some]).reshape(-1, rows)
        whose = " or no ".join(quoted(some[k]) for k in np.flatnonzero(gone.any(axis=1)))
        lacks = gone.any(axis=0)
        return lacks, whose and f"{lacks.sum():,} of {rows:,} rows have no {whose}"

    def content(self, table: Any, row: Callable[[int], object] = Row) -> Content:
        """Return the content of an Arrow table or of some rows; messages name rows by ``row``."""
        table = self._as_numbers(table)
        lacks, told = self._lacking(table)
        kept, doubts = np.arange(len(lacks)), list[Premise]()
        if told and self.roles.skip_missing:
            table, kept = table.filter(~lacks), kept[~lacks]
            if not len(kept):
                raise InputError(f"{told}, so that no row is left; say which columns are meant.")
            do = "read all numbers as those of the others"
            doubts.append(Premise("complete rows", f"{told}, and were left out", do))
        frame: Any = nw.from_native(table, eager_only=True)
        roles, where, labels = self.roles, listed(self.probs), None
        groups = {name: cells_in(frame.get_column(name), name) for name in roles.groups}
        origin, notes = f"probs were read from {where}", self.notes
        of = roles.scale if roles.numbers is None and isinstance(roles.scale, float) else 1.0
        if of > 1.0 and max(frame.get_column(name).max() or 0.0 for name in self.probs) * of <= 1.0:
            notes += (f"All probabilities are 1 at most, of {of:g}; are they fractions of 1?",)
        if self.label is not None:
            whence = f"probs from {where}" if roles.numbers is None else str(roles.numbers)
            origin = f"labels were read from column {quoted(self.label)}, {whence}"
            labels = _array(table.column(self.label))
        weights = None if roles.weights is None else _array(table.column(roles.weights))
        if roles.numbers is None:
            probs: Any = self._floats(table) or frame.select(self.probs)
        else:
            given = ((name, table.column(name)) for name in self.numeric)
            each = {k: _array(x if "string" in str(x.type) else x.cast("float64")) for k, x in given}
            probs = {k: x.to_numpy() if isinstance(x, nw.Series) else x for k, x in each.items()}
            labels = probs.get(self.label)
        if told:
            origin += f"; {told}, which {Argument('skip_missing', True)} leaves out"
        features = {name: frame.get_column(name) for name in roles.features}
        own = (roles, probs, labels, groups, notes, origin, weights)
        return Content(*own, lambda number: row(int(kept[number])), features, tuple(doubts))

    def _floats(self, table: Any) -> NamedArray | None:
        """Return probabilities of the usual types without narwhals, which is slower."""
        columns = [table.column(name) for name in self.probs]
        if any(str(each.type) not in ("float", "double") or each.null_count for each in columns):
            return None
        values = np.column_stack([_array(each) for each in columns])
        return NamedArray(values, self.probs, any(str(each.type) == "float" for each in columns))


@dataclass(frozen=True, eq=False)
class Content:
    """The content of a file before it is checked."""

    roles: Roles
    probs: Any  # by name, if columns describe distributions
    labels: Any  # None if there are none
    groups: dict[str, list[Any]]
    notes: tuple[str, ...] = ()
    origin: str | None = None  # source within the file, as a clause; None without names
    weights: Any = None
    place: Callable[[int], object] = Row  # name of a row in messages
    features: Mapping[str, Any] | None = None
    doubts: tuple[Premise, ...] = ()

    @property
    def event(self) -> str | None:
        """The name of the only column of probabilities, if there is one."""
        names: tuple[str, ...] = getattr(self.probs, "names", None) or ()
        return names[0] if len(names) == 1 else None

    def checked(self, *, rounding: float | None = None, part: bool = False) -> Sample:
        """Check predictions, labels, weights and clusters."""
        with placed(self.place):
            with self._explained():
                found = self._sample(rounding=rounding, part=part)
                rows = counted_as(found.rows, self.weights, None)
            return replace(found, rows=self._noting(counted_as(rows, None, self._clusters)))

    def checked_part(self, weighing: Weighing | None, clustering: Clustering | None) -> Sample:
        """Check some of the rows, with weights and clusters as in all rows."""
        own: dict[str, Any] = {}
        with self._explained():
            found = self._sample(part=True, block=True)
            if weighing is not None:
                own["weights"] = weighing.scaled(checked_weights(self.weights, len(found.labels)))
            if clustering is not None and self._clusters is not None:
                own["clusters"] = clustering.codes(self._clusters)
        return Sample(replace(self._noting(found.rows), **own), found.labels)

    def checked_predictions(self, *, part: bool = False) -> Rows:
        """Check predictions, weights and clusters only."""
        with placed(self.place):
            with self._explained():
                if self.roles.numbers is not None:
                    found = counted_as(Rows(self.roles.numbers.law(self.probs)), self.weights, None)
                else:
                    found = predictions(self.probs, self.weights, logits=self.roles.logits, part=part)
            return self._noting(counted_as(found, None, self._clusters))

    @property
    def _clusters(self) -> list[Any] | None:
        name = self.roles.clusters
        return None if name is None else self.roles.clustered(self.groups[name])

    def _sample(self, *, block: bool = False, **how: Any) -> Sample:
        """Check predictions and labels only; ``block``: one of several blocks of a stored table."""
        how["logits"] = self.roles.logits
        if self.roles.sets is not None:
            return Sample(Rows(self.probs), self.labels)
        if self.roles.numbers is None:
            return sample(self.probs, self.labels, **how)
        for name in ("rounding", "logits", "scale"):
            if how.get(name) or getattr(self.roles, name, None):
                given = "the columns state distributions of numbers; leave it out"
                raise InputError(f"{{argument}} is about probabilities, and {given}.", argument=name)
        return self.roles.numbers.sample(self.probs, self.labels, self.weights, part=block)

    def _noting(self, found: Rows) -> Rows:
        own: Any = {name: (*getattr(found, name), *getattr(self, name)) for name in ("notes", "doubts")}
        return described(replace(found, **own), self.features or None, found.n_samples)

    @contextmanager
    def _explained(self) -> Iterator[None]:
        try:
            yield
        except InputError as error:
            if self.origin is None:
                raise
            names: Any = getattr(self.probs, "names", None) or getattr(self.probs, "columns", ())
            points = _as_points(names, len(names) == 1)
            named = error.changed(lambda fact: points if points and fact is WORDS["points"] else fact)
            raise named.explained(self.origin) from error


_FORECASTS = re.compile(r"(.*[^a-z])?(y?[ _-]?hat|y?[ _-]?pred(ict(ed|ions?))?|forecasts?)([^a-z].*)?")


def _as_points(names: Sequence[str], only: bool = False) -> Argument | None:
    """Return the option for a column named like a point forecast, or for the ``only`` column."""
    called = [name for name in names if only or _FORECASTS.fullmatch(name.lower())]
    own = f"columns={{'point': {called[0]!r}}}" if called else ""
    return Argument(own, shell=f"--point {shlex.quote(called[0])}") if called else None


_SIGNS = "column {column} holds {found} in {row}, and % elsewhere; say what it is out of, with {scale}."
_LARGE = "column {column} holds {found} in {row}, too large to have kept all digits; save it as text."


def cells_in(column: Any, name: str) -> list[Any]:
    """Return the cells of a column of groups or clusters; blank and empty cells are missing."""
    cells = cells_of(column, name) or []
    for row, cell in enumerate(cells):
        if isinstance(cell, str) and not cell.strip():
            cells[row] = None
        elif isinstance(cell, float) and 2.0**53 <= abs(cell) < np.inf:
            raise InputError(_LARGE, column=quoted(name), found=f"{cell:.17g}", row=row)
    return cells


def _array(column: Any) -> Any:
    """Return an Arrow column as an array; through narwhals if it has gaps or an unusual type.

    Arrow's own conversion imports pandas, which takes longer than an audit of few rows.
    """
    kind = str(column.type)
    if column.null_count or not _PLAIN.fullmatch(kind):
        return nw.from_native(column, series_only=True)
    if kind.endswith("string"):
        coded = column.dictionary_encode().combine_chunks()
        return np.array(coded.dictionary.to_pylist(), dtype=object)[np.from_dlpack(coded.indices)]
    column = column.cast("uint8") if kind == "bool" else column
    whole = column.chunk(0) if column.num_chunks == 1 else column.combine_chunks()
    return np.from_dlpack(whole).astype(np.bool_) if kind == "bool" else np.from_dlpack(whole)


def unread_note(kind: str, unread: Sequence[str]) -> tuple[str, ...]:
    """Return a note on the rest of the file."""
    return (f"{kind.capitalize()} not read: {listed(unread)}.",) if unread else ()


def check_held(rows: int, width: int) -> None:
    """Raise if a table of this size, read and checked, does not fit into memory."""
    scanned = Argument("a test by caltest.files.scan", shell="caltest test")
    one_pass = "a statistic that reads a file in one pass, such as 'omnibus', 'ecd' or 'brier'"
    do = f"take fewer rows or, for {scanned}, {one_pass}"
    check_fits(COPIES * 8.0 * rows * width, f"a table of {rows} rows and {width} columns", do)


def _not_numbers(name: str, cells: Sequence[object], dtype: Any, advice: Phrase) -> InputError:
    """Return the error for a column that does not hold numbers, with advice."""
    if not (culprits := [(row, cell) for row, cell in enumerate(cells) if not _reads_as_number(cell)]):
        found = "numbers as text" if dtype == nw.String else f"entries of type {dtype}"
        return InputError(f"column {quoted(name)} holds {found}; save it as numbers.")
    row, cell = culprits[0]
    text = cell if isinstance(cell, str) else ""
    others, do = " (nor are the other rows)" * (len(cells) > 1), advice
    if "," in text and is_number(text.replace(",", ".")):
        others, do = "", Phrase("write decimals with a point")
    elif text.endswith("%") and is_number(text[:-1]):
        others, do = "", Phrase("take out the percent signs, in outcomes too")
    elif len(culprits) < len(cells):
        others = f", in {len(culprits)} of {len(cells)} rows"
        do = Phrase("leave these rows out, or {advice}", {"advice": advice})
    what = "column {column} holds {found} at {row}, which is not a number{others}; {do}."
    return InputError(what, column=quoted(name), found=quoted(cell), row=row, others=others, do=do)


def _reads_as_number(cell: object) -> bool:
    """Return whether a cell reads as a number or as missing; "nan" is text, not a missing value."""
    if isinstance(cell, str):
        return is_number(cell)
    return cell is None or (isinstance(cell, Numeric) and not isinstance(cell, bool))
