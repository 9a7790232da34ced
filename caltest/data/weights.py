"""Weights of rows that count differently: read, checked, and recognised where they are all equal."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from caltest._visible import quoted
from caltest.data.containers import read_table, shape_of
from caltest.exceptions import InputError
from caltest.text.numbers import counted

Array = NDArray[np.float64]

#: Of the largest weight, or of the mean: no double tells sums with it from those without.
_NOTHING = 1e-60


def effective_number(sizes: Array) -> float:
    """Return (Σ s)²/Σ s²: how many of equal size are as noisy as these; 0 where all are 0."""
    return float(sizes.sum() ** 2 / max(float(sizes @ sizes), 1e-300))


class Extent(NamedTuple):
    """Totals over all rows that a part of them needs to know.

    Attributes
    ----------
    rows
        Number of rows n.
    total
        The sum of their weights; n if all have equal weight.
    pairs
        Σ_{i≠j} w_i w_j; n (n − 1) if all have equal weight.
    """

    rows: int
    total: float
    pairs: float

    @classmethod
    def alike(cls, n: int) -> Extent:
        """Return that of rows of equal weight."""
        return cls(n, float(n), n * (n - 1.0))

    @property
    def effective(self) -> float:
        """Effective number of rows, (Σ w)²/Σ w²."""
        return self.total**2 / (self.total**2 - self.pairs)

    @property
    def are_alike(self) -> bool:
        """Whether all rows have equal weight."""
        return self == type(self).alike(self.rows)


@dataclass
class Weighing:
    """Sums of weights that come a part at a time."""

    rows: int = 0
    total: float = 0.0  # in units
    squares: float = 0.0
    least: float = np.inf
    largest: Array = field(default_factory=lambda: np.zeros(2))  # and the largest but one, first

    @property
    def unit(self) -> float:
        """A power of two near the largest weight, so that squares are numbers."""
        return 2.0 ** (math.frexp(max(self.largest[1], 5e-324))[1] - 1)

    def add(self, weights: Array) -> None:
        """Add those of some rows, which were checked."""
        before, self.largest = self.unit, np.sort(np.append(self.largest, np.sort(weights)[-2:]))[-2:]
        shrunk, weights = before / self.unit, weights / self.unit
        self.rows += len(weights)
        self.total = self.total * shrunk + float(weights.sum())
        self.squares = self.squares * shrunk**2 + float(weights @ weights)
        self.least = min(self.least, float(weights.min()) * self.unit)

    @property
    def mean(self) -> float | None:
        """What weights are to be divided by; None if all are equal."""
        check_some(self.largest)
        return None if self.least == self.largest[1] else self.total / self.rows * self.unit

    @property
    def extent(self) -> Extent:
        """What a part needs to know, once weights are 1 on average."""
        if self.mean is None:
            return Extent.alike(self.rows)
        n = float(self.rows)
        return Extent(self.rows, n, n**2 - self.squares / (self.total / n) ** 2)


def check_some(weights: Array) -> None:
    """Raise unless two weights at least are positive, and comparable."""
    if np.count_nonzero(weights > _NOTHING * weights.max(initial=0.0)) < 2:
        found = ("all are 0", "all but one are 0", "one is more than 1e60 times every other")
        what = found[min(int(np.count_nonzero(weights)), 2)]
        raise InputError(f"weights leaves nothing to test, as {what}; two rows at least must count.")


def in_means(weights: Array, mean: float) -> Array:
    """Return weights divided by their mean; what is nothing beside it is 0."""
    weights = weights / mean
    return np.where(weights < _NOTHING, 0.0, weights)


def row_weights(given: object, n: int) -> Array:
    """Return what every one of n rows counts, 1 on average.

    Raises
    ------
    InputError
        If these are not n numbers that are finite and not negative, at least two of them positive.

    Examples
    --------
    >>> row_weights([1, 1, 4], 3).tolist(), row_weights([2.0, 2.0], 2).tolist()
    ([0.5, 0.5, 2.0], [1.0, 1.0])
    """
    return on_average_one(checked_weights(given, n))


def checked_weights(given: object, n: int) -> Array:
    """Return weights of n rows, or of a part of them, as they are."""
    table = read_table(given, "weights")
    values = table.flat
    if values.ndim != 1:
        do = "give one number per row, as an array of shape (n,)"
        raise InputError(f"weights has shape {shape_of(values)}; {do}.")
    if table.is_text:
        found = quoted(values[0]) if len(values) else "nothing"
        text = "weights holds text ({found} comes first), not numbers; give one number per row."
        raise InputError(text, argument="weights", found=found)
    if len(values) != n:
        found = f"{counted(len(values), 'entry', 'entries')}, and there are {counted(n, 'row')}"
        raise InputError(f"weights has {found}; give one weight for every row.")
    weights = values.astype(np.float64)
    wrong = np.flatnonzero(~((weights >= 0.0) & (weights < np.inf)))
    if len(wrong):
        found = f"{weights[wrong[0]]:g}"
        text = "{argument} has {found} in {row}; give finite numbers, 0 or more."
        raise InputError(text, argument="weights", found=found, row=int(wrong[0]))
    return weights


def on_average_one(weights: Array) -> Array:
    """Return weights that were checked, divided by their mean."""
    check_some(weights)
    largest = float(weights.max())
    if weights.min() == largest:
        return np.ones(len(weights))
    weights = weights / largest  # whose sum is a number
    return in_means(weights, float(weights.mean()))
