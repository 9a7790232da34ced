"""Columns of distributions of numbers: means with their spreads, or quantiles with their levels."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from caltest import laws
from caltest._arguments import level
from caltest._visible import quoted
from caltest.data import Rows, Sample
from caltest.data.containers import is_number, listed
from caltest.exceptions import Argument, InputError, Phrase
from caltest.laws.classes import read_only
from caltest.laws.distributions import Normal, Predictive, finite_numbers

_KNOWN = ("mean", "sd", "variance", "quantiles", "survival", "event", "limit")
_OF_TIMES = ("survival", "event")
_STATED = (
    *(("mean", "sd"), ("mean", "variance"), ("quantiles",)),
    *(_OF_TIMES, (*_OF_TIMES, "limit")),
)
_BY_COLUMN = ("quantiles", "survival")  # a number for each of several columns


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
        "survival", the time of every column, with the column "event" (the outcomes are times), and
        perhaps "limit".
    """

    of: Mapping[str, Any]

    def __post_init__(self) -> None:
        for name, column in self.of.items():
            if name not in _KNOWN:
                raise InputError(
                    f"columns names {quoted(name)}; name 'mean' with 'sd' or 'variance', "
                    "'quantiles', or 'survival' with 'event'."
                )
            kinds: Any = {"quantiles": (str, Mapping), "survival": Mapping}
            if not isinstance(column, kinds.get(name, str)):
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
        elif len(given) < 2 and given != ("quantiles",):
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

    @property
    def names(self) -> tuple[str, ...]:
        """The columns; of quantiles, in the order of their levels."""
        found: list[str] = []
        for name, columns in self.of.items():
            by_number = name in _BY_COLUMN and not isinstance(columns, str)
            found += sorted(columns, key=columns.get) if by_number else [columns]
        return tuple(found)

    def among(self, names: Sequence[str]) -> NumberColumns:
        """Return them by name, those of a pattern too, of a table that has these."""
        pattern = self.of.get("quantiles")
        if not isinstance(pattern, str):
            return self
        shape = re.compile(re.escape(pattern).replace(r"\*", "(.+)", 1))
        stars = {name: found[1] for name in names if (found := shape.fullmatch(name)) and shape.groups}
        levels = {name: float(star) for name, star in stars.items() if is_number(star)}
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
        if "quantiles" in self.of:
            levels = [self.of["quantiles"][name] for name in self.names]
            quantiles: Any = laws.Quantiles
            return quantiles(levels, np.column_stack(list(values.values())))  # type: ignore[no-any-return]
        if "survival" in self.of:
            times = self.of["survival"]
            names = sorted(times, key=times.get)
            table, limit = np.column_stack([values[name] for name in names]), self.of.get("limit")
            until = None if limit is None else values[limit]
            return laws.Survival(table, [float(times[name]) for name in names], limit=until)
        return Normal(**{argument: values[name] for argument, name in self.of.items()})

    def sample(self, columns: Mapping[str, Any], outcomes: Any, *, part: bool) -> Sample:
        """Return them with what was observed: of a part, as the law has it."""
        law = self.law(columns)
        if "event" in self.of:
            if part:
                raise InputError("times until an event are read all at once; use caltest.files.read.")
            outcomes = np.column_stack(
                [finite_numbers("the times", outcomes), columns[self.of["event"]]]
            )
        checked = law.outcomes(outcomes)
        if part:
            return Sample(Rows(law), checked)
        return NumberSample(Rows(law), finite_numbers("the outcomes", outcomes))

    def __str__(self) -> str:
        if "event" in self.of:
            return f"survival from {listed(self.names)}"
        if "quantiles" in self.of:
            return f"quantiles from {listed(self.names)}"
        return ", ".join(f"{argument} from {quoted(name)}" for argument, name in self.of.items())
