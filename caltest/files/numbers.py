"""Columns of distributions of numbers: means with spreads, quantiles with levels, or members."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from caltest import laws
from caltest._arguments import Number, level
from caltest._visible import quoted
from caltest.data import Rows, Sample
from caltest.data.containers import is_number, listed
from caltest.exceptions import Argument, InputError, Phrase
from caltest.laws.classes import read_only
from caltest.laws.distributions import Normal, Predictive, finite_numbers
from caltest.laws.numbers import stepwise, upwards
from caltest.laws.quantiles import level_called

_KNOWN = (
    *("mean", "sd", "variance", "quantiles", "members", "cdf"),
    *("survival", "event", "limit"),
)
_OF_TIMES = ("survival", "event")
_STATED = (
    *(("mean", "sd"), ("mean", "variance"), ("quantiles",), ("members",), ("cdf",)),
    *(_OF_TIMES, (*_OF_TIMES, "limit")),
)
_MOST = 1e300  # of a threshold
#: How several columns are given: by name, or by a text that means them.
_SEVERAL: Mapping[str, Any] = {
    "quantiles": (str, Mapping),
    "members": (str, list, tuple),
    "cdf": Mapping,
    "survival": Mapping,
}


@dataclass(frozen=True, eq=False)
class NumberSample(Sample):
    """Distributions of numbers and what was observed, as it stands in a file: a law may keep less."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "labels", read_only(self.labels, np.float64))


@dataclass(frozen=True)
class NumberColumns:
    """Which columns state distributions of numbers.

    Attributes
    ----------
    of
        The name of a column by what it holds: "mean" with "sd" or "variance". Or, of "quantiles", the
        level of every column by its name, or a pattern of names whose star is the level. Or, of
        "members", how the names of their columns begin, or all of these. Or, of "cdf", the number up
        to which every column has the probability, by its name. Or, of "survival", the time of every
        column, with the column "event" (the outcomes are times), and perhaps "limit".
    """

    of: Mapping[str, Any]

    def __post_init__(self) -> None:
        for name, column in self.of.items():
            if name not in _KNOWN:
                raise InputError(
                    f"columns names {quoted(name)}; name 'mean' with 'sd' or 'variance', "
                    "'quantiles', 'members', or 'survival' with 'event'."
                )
            if not isinstance(column, _SEVERAL.get(name, str)) or not column:
                raise InputError(argument=name, found=quoted(column), do="give the name of a column")
        given, wrong = tuple(name for name in _KNOWN if name in self.of), ""
        if {*_OF_TIMES, "limit"}.intersection(given):
            if given not in _STATED:
                raise InputError(
                    "of times until an event give {survival}, {event} and the column of times as the "
                    "outcomes.",
                    survival=Argument("survival_at"),
                    event=Argument("event"),
                )
            for name in self.names:
                if self.names.count(name) > 1:
                    raise InputError(
                        f"column {quoted(name)} is given twice, among those of the curves, the event "
                        "and the limit; give each its own."
                    )
        elif len(given) < 2 and given not in _STATED:
            wrong = (
                "{other} is given alone; give the columns of {mean} and of one of {sd} and {variance}."
            )
        elif given not in _STATED:
            wrong = "both {one} and {other} are given; give one of them."
        elif len(set(self.names)) == 1 < len(given):
            wrong = "{one} and {other} are the same column; name that of each."
        if wrong:
            one, other = map(Argument, ("", "columns", *given)[-2:])
            arguments = {name: Argument(name) for name in _KNOWN}
            raise InputError(Phrase(wrong, {**arguments, "one": one, "other": other}))
        if isinstance(levels := self.of.get("quantiles"), Mapping):
            for name, value in levels.items():
                level(f"the level of column {quoted(name)}", value)
        for name, value in self.of.get("cdf", {}).items():
            Number(-_MOST, _MOST)(f"the threshold of column {quoted(name)}", value)

    @property
    def names(self) -> tuple[str, ...]:
        """The columns; of quantiles, of a cdf and of survival in the order of their numbers."""
        found: list[str] = []
        for columns in self.of.values():
            if isinstance(columns, str):
                found.append(columns)
            elif isinstance(columns, Mapping):
                found += sorted(columns, key=lambda name: columns[name])
            else:
                found += columns
        return tuple(found)

    def among(self, names: Sequence[str]) -> NumberColumns:
        """Return them by name, those of a pattern too, of a table that has these besides others."""
        prefix = self.of.get("members")
        if isinstance(prefix, str):
            members = tuple(name for name in names if name.startswith(prefix))
            if not members:
                raise InputError(
                    "{members} is {prefix}, and no column begins so; the columns are {names}.",
                    members=Argument("members"),
                    prefix=quoted(prefix),
                    names=listed(names),
                )
            return NumberColumns({"members": members})
        pattern = self.of.get("quantiles")
        if not isinstance(pattern, str):
            return self
        shape = re.compile(re.escape(pattern).replace(r"\*", "(.+)", 1))
        stars = {name: star[1] for name in names if (star := shape.fullmatch(name)) and shape.groups}
        found = {n: float(x) if is_number(x) else level_called(x) for n, x in stars.items()}
        levels = {name: level for name, level in found.items() if level is not None}
        if not levels:
            raise InputError(
                "{quantiles} is {pattern}, and no column is called so with a level for the star, such "
                "as 'q0.05' for 'q*'; the columns are {names}.",
                quantiles=Argument("quantiles"),
                pattern=quoted(pattern),
                names=listed(names),
            )
        return NumberColumns({"quantiles": levels})

    def law(self, columns: Mapping[str, Any]) -> Predictive:
        """Return the distributions that columns, by name, state."""
        values = {name: finite_numbers(f"column {quoted(name)}", columns[name]) for name in self.names}
        if len(self.of) == 1:
            ((kind, by_name),) = self.of.items()
            at = [by_name[name] for name in self.names] if isinstance(by_name, Mapping) else None
            laws_of: Mapping[str, Any] = {"quantiles": laws.Quantiles, "cdf": stepwise}
            table = np.column_stack(list(values.values()))
            return laws.Members(table) if at is None else laws_of[kind](at, table)
        if "survival" in self.of:
            times, limit = self.of["survival"], self.of.get("limit")
            names = sorted(times, key=times.get)
            curves = np.column_stack([values[name] for name in names])
            until = None if limit is None else values[limit]
            return laws.Survival(curves, [float(times[name]) for name in names], limit=until)
        return Normal(**{argument: values[name] for argument, name in self.of.items()})

    def sample(self, columns: Mapping[str, Any], outcomes: Any, *, part: bool) -> Sample:
        """Return them with what was observed: of a part, as the law has it."""
        law = self.law(columns)
        if "cdf" in self.of:
            outcomes = upwards(sorted(self.of["cdf"].values()), outcomes)
        if "event" in self.of:
            if part:
                raise InputError("times until an event are read all at once; use caltest.files.read.")
            outcomes = np.column_stack([finite_numbers("time", outcomes), columns[self.of["event"]]])
        met, checked = law.met(outcomes)
        if part:
            return Sample(Rows(met), checked)
        return NumberSample(Rows(law), finite_numbers("the outcomes", outcomes))

    def __str__(self) -> str:
        if "event" in self.of:
            others = (name for name in ("event", "limit") if name in self.of)
            rest = "".join(f", {name} from {quoted(self.of[name])}" for name in others)
            return f"survival from {listed(self.of['survival'])}{rest}"
        if len(self.of) == 1:
            return f"{next(iter(self.of))} from {listed(self.names)}"
        return ", ".join(f"{argument} from {quoted(name)}" for argument, name in self.of.items())
