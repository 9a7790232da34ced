"""What rows count, which depend on each other, and at which rates they were kept: read and checked.

A row of class k may have been kept with a known probability s_k, independently of all else. Among the
rows kept

    P(Y = k | g) = g_k s_k / Σ_l g_l s_l,

exactly, so predictions transformed like this are calibrated among these if those of all rows were.
Weights 1/s_k would be functions of the labels, which no test of predictions may count by.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from caltest._arguments import as_float, closest, whole_number
from caltest._numbers import counted
from caltest._visible import quoted
from caltest.data.containers import (
    as_entry,
    cells_of,
    is_missing,
    listed,
    one_as_text,
    read_table,
    shape_of,
)
from caltest.data.labels import numbers_in, without_prefix
from caltest.exceptions import InputError

Array: TypeAlias = NDArray[np.float64]

# ------------------------------------------------------------------ weights


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

    def scaled(self, weights: Array) -> Array:
        """Return the weights of some of these rows, as those of all are 1 on average."""
        check_some(self.largest)
        if self.least == self.largest[1]:
            return np.ones(len(weights))
        return _in_means(weights / self.unit, self.total / self.rows)

    @property
    def extent(self) -> Extent:
        """What a part needs to know, once weights are 1 on average."""
        if self.least == self.largest[1]:
            return Extent.alike(self.rows)
        n = float(self.rows)
        return Extent(self.rows, n, n**2 - self.squares / (self.total / n) ** 2)


def check_alike(rows: Any, what: str, do: str, *, weighted: str | None = None) -> None:
    """Raise if rows are in clusters, or have weights: what is done next counts independent rows."""
    refuse_clusters(rows.clusters, what)
    if not rows.are_alike:
        raise InputError(f"{weighted or what} takes no weights, and these rows have some; {do}.")


def check_some(weights: Array) -> None:
    """Raise unless two weights at least are positive, and comparable."""
    if np.count_nonzero(weights > _NOTHING * weights.max(initial=0.0)) < 2:
        found = ("all are 0", "all but one are 0", "one is more than 1e60 times every other")
        what = found[min(int(np.count_nonzero(weights)), 2)]
        raise InputError(f"weights leaves nothing to test, as {what}; two rows at least must count.")


def row_weights(given: object, n: int) -> Array:
    """Return what every one of n rows counts, 1 on average of those that count.

    Raises
    ------
    InputError
        If these are not n numbers that are finite and not negative, at least two of them positive.

    Examples
    --------
    >>> row_weights([1, 1, 4], 3).tolist(), row_weights([2.0, 2.0, 0.0], 3).tolist()
    ([0.5, 0.5, 2.0], [1.0, 1.0, 0.0])
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
    """Return weights that were checked, divided by the mean of those above 0."""
    check_some(weights)
    weights = weights / weights.max()  # whose sum is a number
    weights = np.where(weights > _NOTHING, weights, 0.0)
    counting = weights[weights > 0.0]  # as if they were alone, to the last bit
    return weights if counting.min() == 1.0 else weights / counting.mean()


def _in_means(weights: Array, mean: float) -> Array:
    """Return weights divided by their mean; what is nothing beside it is 0."""
    weights = weights / mean
    return np.where(weights < _NOTHING, 0.0, weights)


# ------------------------------------------------------------------ clusters

_MISSING = (
    "clusters has missing values, the first{found} in {row}; a row that depends on no other is a "
    "cluster of its own, so give it a name that no other row has."
)


@dataclass(eq=False)
class Clustering:
    """Clusters of rows that come a part at a time, numbered in the order in which they come.

    Attributes
    ----------
    known
        The number of every name.
    totals
        What the rows of every cluster count, (G,), or more numbers of which the others are 0.
    """

    known: dict[Hashable, int] = field(default_factory=dict)
    totals: Array = field(default_factory=lambda: np.zeros(0))

    def __len__(self) -> int:
        return len(self.known)

    def codes(self, cells: Sequence[Any]) -> NDArray[np.intp]:
        """Return the numbers of the clusters of some rows, of which new ones are taken in."""
        known, codes = self.known, np.empty(len(cells), dtype=np.intp)
        here: dict[Hashable, int] = {}  # by type too: True is not 1
        for row, cell in enumerate(cells):
            if is_missing(cell):
                found = f", {quoted(cell)}," if isinstance(cell, str) and cell else ""
                raise InputError(_MISSING, argument="clusters", found=found, row=row)
            try:
                if (kind := (type(cell), cell)) not in here:
                    here[kind] = known.setdefault(as_entry(cell), len(known))
                codes[row] = here[kind]
            except Exception:  # a value of the user's may raise anything
                text = "clusters holds {found} in {row}; give a name or a number for every row."
                raise InputError(text, argument="clusters", row=row, found=quoted(cell)) from None
        return codes

    def add(self, cells: Sequence[Any], weights: Array | None) -> None:
        """Take in some rows, and what they count; None: as 1 each."""
        codes = self.codes(cells)
        if len(self.totals) < len(self):
            self.totals = np.append(self.totals, np.zeros(len(self)))
        self.totals[: len(self)] += np.bincount(codes, weights, len(self))

    def counted(self) -> Clustering:
        """Return those of which a row counts, numbered anew; rows of others count nothing anywhere."""
        check_several(self.known)
        counts = self.totals[: len(self)] > 0.0
        if counts.sum() < 2:
            raise one_cluster_counts()
        places = np.where(counts, np.cumsum(counts) - 1, 0)
        known = {name: int(places[number]) for name, number in self.known.items()}
        return Clustering(known, self.totals[: len(self)][counts])

    @property
    def count(self) -> int:
        """Number of clusters G, once all rows were taken in."""
        return len(self.totals)

    def share_between(self, pairs: float, total: float) -> float:
        """How many pairs of different rows there are for each of different clusters, as rows count."""
        shares = self.totals / self.totals.sum()
        return pairs / total**2 / (1.0 - float(shares @ shares))


def check_several(names: Iterable[Any]) -> None:
    """Raise unless there are two clusters or more."""
    if len(some := list(names)[:2]) < 2:
        raise InputError(
            f"clusters is {quoted(some[0])} for every row, and all rows of one cluster may depend on "
            "each other, so nothing can be tested; give at least two clusters."
        )


def one_cluster_counts() -> InputError:
    """Say that the rows that count are in one cluster."""
    return InputError(
        "the rows of one cluster alone have weights above 0, and they may all depend on each other, so "
        "that nothing can be tested; give two clusters that count, or more."
    )


def cluster_codes(clusters: object, n_rows: int) -> tuple[NDArray[np.intp], tuple[str, ...]]:
    """Return the cluster of every row, (n,) of 0..G−1 in the order in which clusters come, and notes.

    Parameters
    ----------
    clusters
        A column of n names or numbers, in any container: rows of equal entries are one cluster. Text
        that is written as a number is, as 1 or 1.0, is that number.
    n_rows
        Number of rows n.

    Raises
    ------
    InputError
        If it is no such column, an entry is missing, or all rows are in one cluster.

    Examples
    --------
    >>> codes, notes = cluster_codes(["b", "a", "b"], 3)
    >>> codes.tolist()
    [0, 1, 0]
    """
    cells = cells_of(clusters, "clusters")
    if cells is None:
        do = "give one column, with the name or number of a cluster for every row"
        raise InputError(f"clusters is {quoted(clusters)}; {do}.")
    if len(cells) != n_rows:
        count = f"{len(cells)} entries for {n_rows} rows of probs"
        raise InputError(f"clusters has {count}; give one for every row.")
    found = Clustering()
    codes = found.codes(cells)
    check_several(found.known)
    return codes, one_as_text("clusters", "cluster", cells, as_entry)


def refuse_clusters(clusters: NDArray[np.intp] | None, what: str) -> None:
    """Raise where rows are in clusters and no valid form of something is known for these."""
    if clusters is not None:
        raise InputError(
            f"{what} takes rows to be independent, and these are in clusters: no valid form for those "
            "is known; keep one row per cluster, or test with caltest.test."
        )


# ------------------------------------------------------------------ sampling rates

_SEVERAL = 5  # classes whose means are reported


def kept_at(
    probs: Array,
    classes: tuple[str, ...] | None,
    rates: object,
    weights: Array | None = None,
) -> tuple[Array, str]:
    """Transform predictions of all rows into those of the rows that were kept.

    Returned with them is a sentence: what was predicted on average before and after.

    Parameters
    ----------
    probs
        Predictions (n, m).
    classes
        The names of the m classes, if there are any.
    rates
        By class, its name or column, the share of its rows that were kept; 1 of others.
    weights
        What rows count in the means that the note tells.

    Raises
    ------
    InputError
        If there is no such class, or a rate is not in (0, 1].

    Examples
    --------
    >>> kept, _ = kept_at(np.array([[0.99, 0.01], [0.9, 0.1]]), None, {0: 0.01})
    >>> kept.round(3).tolist()
    [[0.497, 0.503], [0.083, 0.917]]
    """
    by_class = rates_by_class(rates, probs.shape[1], classes)
    shares = np.ones(probs.shape[1])
    shares[list(by_class)] = list(by_class.values())
    shares /= shares.max()  # what is common to all classes cancels
    kept = probs * shares
    kept /= kept.sum(axis=1, keepdims=True)
    named = list(by_class) if probs.shape[1] > 2 else [1]
    told = []
    for k in named[:_SEVERAL]:
        before, after = (float(np.average(each[:, k], weights=weights)) for each in (probs, kept))
        told.append(f"{_called(k, classes)} {before:.3g} before and {after:.3g} after")
    at = ", ".join(f"{_called(k, classes)} at {rate:.3g}" for k, rate in by_class.items())
    more = ", …" if len(named) > _SEVERAL else ""
    note = (
        f"Rows were kept by their label ({at}), so what is tested is what the predictions mean among "
        f"the rows kept; mean predicted of these rows: {'; '.join(told)}{more}."
    )
    return kept, note


def rates_by_class(rates: object, m: int, classes: tuple[str, ...] | None) -> dict[int, float]:
    """Return the rates by column; raise unless each is of a class, and in (0, 1]."""
    if not isinstance(rates, Mapping) or not rates:
        do = "give the rate of every class that was not kept whole, as in {0: 0.01}"
        raise InputError(argument="sampling_rates", found=quoted(rates), do=do)
    found: dict[int, float] = {}
    for which, given in rates.items():
        column, rate = _column(which, m, classes), as_float(given)
        if rate is None or not 0.0 < rate <= 1.0:
            raise InputError(
                f"the sampling rate of class {quoted(which)} is {quoted(given)}; give the share of its "
                "rows that were kept, above 0 and at most 1."
            )
        if column in found:
            raise InputError(f"class {quoted(which)} has two sampling rates; give it one.")
        found[column] = rate
    return found


def _column(which: object, m: int, classes: tuple[str, ...] | None) -> int:
    """Return the column of a class that is named, as labels are, or numbered."""
    names, number = classes or (), whole_number(which)
    numbers = numbers_in(names) if names and number is not None else None
    if numbers is not None and number in numbers:  # as labels are matched
        return numbers.index(number)
    name = str(number) if number is not None else which
    for known in (names, without_prefix(names)[0] if names else ()):
        if isinstance(name, str) and name in known:
            return known.index(name)
    if number is not None and numbers is None and 0 <= number < m:
        return number
    close = closest(which, names)
    hint = f"did you mean {close!r}? " if close else ""
    choices = f"the classes are {listed(names)}" if names else f"give a column from 0 to {m - 1}"
    raise InputError(f"a sampling rate is for {quoted(which)}, which is not a class; {hint}{choices}.")


def _called(column: int, classes: tuple[str, ...] | None) -> str:
    return f"class {column}" if classes is None else quoted(classes[column])
