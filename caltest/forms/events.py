"""Statistics of single classes, from the rows in which a class came true.

Of many classes each comes true in few rows. All classes of a draw are found by one sort of its labels,
and each statistic then looks at the rows of its own class: O(n) a draw for all classes together, where
one class after another would be O(n m).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from caltest._tiles import blocks
from caltest.forms import CumulativeDifference, Form, LinearSum

Array: TypeAlias = NDArray[np.float64]
Places: TypeAlias = NDArray[np.intp]

_FEWEST_ROWS = 2048  # in fewer, calls take longer than rows
_ENTRIES = 2**22  # labels of the draws that are sorted at a time, 32 MB
_MOST_EVENTS = 1 / 8  # of the rows; of more, sorting them takes longer than looking at all rows


class OfEvents(Protocol):
    """A statistic of one draw."""

    def value(self, rows: Places) -> float:
        """Return its value, the event being true in these rows, in increasing order."""
        ...


@dataclass(frozen=True, eq=False)
class _Cumulative:
    """`CumulativeDifference`, number for number: between two events C only falls.

    Attributes
    ----------
    places
        (n,) where the score of a row comes among the K different ones.
    expected
        (1 + K,) what is expected up to a score, from 0 on.
    range_
        Whether it is the range of C, not its largest size.
    """

    places: NDArray[np.int32]
    expected: Array
    range_: bool

    @classmethod
    def of(cls, form: CumulativeDifference) -> _Cumulative:
        scores, places, sizes = np.unique(form.scores, return_inverse=True, return_counts=True)
        expected = np.append(0.0, np.cumsum(sizes * scores))
        return cls(places.astype(np.int32), expected, form.functional == "range")

    def value(self, rows: Places) -> float:
        places = self.places.take(rows)
        places.sort()
        count = len(places)
        before = np.arange(count) - self.expected.take(places)
        after = np.arange(1, count + 1) - self.expected.take(places + 1)
        lowest = min(float(before.min(initial=0.0)), count - float(self.expected[-1]))
        highest = float(after.max(initial=0.0))
        size = highest - lowest if self.range_ else max(highest, -lowest)
        return size / len(self.places)


@dataclass(frozen=True, eq=False)
class _Sum:
    """`LinearSum`, up to rounding: what it would be without an event, and what every event adds.

    Attributes
    ----------
    without
        The sum if nothing came true.
    added
        (n,) what a row adds if its event came true.
    """

    without: float
    added: Array

    @classmethod
    def of(cls, form: LinearSum) -> _Sum:
        table = form.table
        return cls(float(table[:, 0].sum()), np.ascontiguousarray(table[:, 1] - table[:, 0]))

    def value(self, rows: Places) -> float:
        return self.without + float(self.added.take(rows).sum())


def of_events(form: Form, share: float) -> OfEvents | None:
    """Return a form of two classes as a function of the rows of class 1; None if that is no gain.

    Parameters
    ----------
    form
        The statistic.
    share
        Of the rows in which class 1 is expected.
    """
    if form.together or share > _MOST_EVENTS:
        return None
    if type(form) is CumulativeDifference and len(form.scores) >= _FEWEST_ROWS:
        return _Cumulative.of(form)
    if type(form) is LinearSum and len(form.table) >= _FEWEST_ROWS and np.isfinite(form.table).all():
        return _Sum.of(form)
    return None


@dataclass(frozen=True, eq=False)
class Classes:
    """Statistics of single classes on the same rows.

    Attributes
    ----------
    rows
        The rows; None for all.
    columns
        The class of every statistic.
    statistics, places
        The statistics, and their columns among all values.
    """

    rows: Places | None
    columns: tuple[int, ...]
    statistics: tuple[OfEvents, ...]
    places: tuple[int, ...]

    def of_labels(self, full: NDArray[Any]) -> Array:
        """Return (B, H) values for the full labels (B, n)."""
        labels = full if self.rows is None else full.take(self.rows, axis=1)
        found = np.empty((len(labels), len(self.statistics)))
        for part in blocks(len(labels), max(1, _ENTRIES // labels.shape[1])):
            self._fill(labels[part], found[part])
        return found

    def _fill(self, labels: NDArray[Any], found: Array) -> None:
        """Write the values of some draws, class by class: what a class needs stays in the cache."""
        sorted_rows = [np.argsort(each, kind="stable") for each in labels]
        least = max(self.columns) + 1
        ends = [np.append(0, np.cumsum(np.bincount(each, minlength=least))) for each in labels]
        for number, (column, statistic) in enumerate(zip(self.columns, self.statistics, strict=True)):
            for draw, rows in enumerate(sorted_rows):
                first, last = ends[draw][column : column + 2]
                found[draw, number] = statistic.value(rows[first:last])


def classes(
    found: Iterable[tuple[Places | None, int, OfEvents, int]],
) -> tuple[Classes, ...]:
    """Put statistics of the same rows together: each with rows, class and place."""
    parts: dict[int, list[tuple[Places | None, int, OfEvents, int]]] = {}
    for each in found:
        parts.setdefault(id(each[0]), []).append(each)
    return tuple(
        Classes(
            part[0][0],
            tuple(column for _, column, _, _ in part),
            tuple(statistic for _, _, statistic, _ in part),
            tuple(place for _, _, _, place in part),
        )
        for part in parts.values()
    )
