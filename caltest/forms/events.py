"""Statistics of single classes, from the rows in which a class came true.

Of many classes each comes true in few rows. All classes of a draw are found by one sort of its labels,
and each statistic then looks at the rows of its own class: O(n) a draw for all classes together, where
one class after another would be O(n m).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from caltest._tiles import Array, blocks
from caltest.forms.base import Form, Labels
from caltest.forms.paths import CumulativeDifference
from caltest.forms.sums import LinearSum

Places: TypeAlias = NDArray[np.intp]
#: A statistic of one draw, from the rows in which its event is true, in increasing order.
OfEvents: TypeAlias = Callable[[Places], float]

_FEWEST_ROWS = 2048  # in fewer, calls take longer than rows
_ENTRIES = 2**22  # labels of the draws that are sorted at a time, 32 MB
_MOST_EVENTS = 1 / 8  # of the rows; of more, sorting them takes longer than looking at all rows


def of_events(form: Form, share: float) -> OfEvents | None:
    """Return a form of two classes as a function of the rows of class 1; None if that is no gain.

    ``share`` is of the rows in which class 1 is expected.
    """
    if form.together or share > _MOST_EVENTS:
        return None
    if type(form) is CumulativeDifference and len(form.scores) >= _FEWEST_ROWS:
        return _cumulative(form)
    if type(form) is LinearSum and len(form.table) >= _FEWEST_ROWS and np.isfinite(form.table).all():
        return _linear(form)
    return None


def _cumulative(form: CumulativeDifference) -> OfEvents:
    """Return what `CumulativeDifference` is, number for number: between two events C only falls."""
    scores, inverse, sizes = np.unique(form.scores, return_inverse=True, return_counts=True)
    place_of = inverse.astype(np.int32)  # where the score of a row comes among the different ones
    expected = np.append(0.0, np.cumsum(sizes * scores))  # up to a score, from 0 on
    is_range, end = form.functional == "range", float(expected[-1])

    def value(rows: Places) -> float:
        places = place_of.take(rows)
        places.sort()
        count = len(places)
        before = np.arange(count) - expected.take(places)
        after = np.arange(1, count + 1) - expected.take(places + 1)
        lowest = min(float(before.min(initial=0.0)), count - end)
        highest = float(after.max(initial=0.0))
        size = highest - lowest if is_range else max(highest, -lowest)
        return size / len(place_of)

    return value


def _linear(form: LinearSum) -> OfEvents:
    """Return what `LinearSum` is, up to rounding: a sum without events, and what each event adds."""
    without = float(form.table[:, 0].sum())
    added = np.ascontiguousarray(form.table[:, 1] - form.table[:, 0])
    return lambda rows: without + float(added.take(rows).sum())


@dataclass(frozen=True, eq=False)
class Classes:
    """Statistics of single classes on the same rows."""

    rows: Places | None  # None for all
    columns: tuple[int, ...]  # the class of every statistic
    statistics: tuple[OfEvents, ...]
    places: tuple[int, ...]  # of their columns among all values

    def of_labels(self, full: Labels) -> Array:
        """Return (B, H) values for the full labels (B, n)."""
        labels = full if self.rows is None else full.take(self.rows, axis=1)
        found, least = np.empty((len(labels), len(self.statistics))), max(self.columns) + 1
        for part in blocks(len(labels), max(1, _ENTRIES // labels.shape[1])):
            drawn = labels[part]
            sorted_rows = [np.argsort(each, kind="stable") for each in drawn]
            ends = [np.append(0, np.cumsum(np.bincount(each, minlength=least))) for each in drawn]
            # Class by class: what a class needs stays in the cache.
            for number, statistic in enumerate(self.statistics):
                column = self.columns[number]
                for draw, (rows, end) in enumerate(zip(sorted_rows, ends, strict=True), part.start):
                    found[draw, number] = statistic(rows[end[column] : end[column + 1]])
        return found


def classes(found: list[tuple[Places | None, int, OfEvents, int]]) -> tuple[Classes, ...]:
    """Put statistics of the same rows together: each with rows, class and place."""
    parts: dict[int, list[tuple[Places | None, int, OfEvents, int]]] = {}
    for each in found:
        parts.setdefault(id(each[0]), []).append(each)
    return tuple(
        Classes(part[0][0], *(tuple(column) for column in list(zip(*part, strict=True))[1:]))
        for part in parts.values()
    )
