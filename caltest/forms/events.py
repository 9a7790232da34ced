"""Statistics of single classes, from the rows in which a class was observed.

Of many classes each is observed in few rows. All classes of a draw are found by one sort of its labels,
and each statistic then looks at the rows of its own class: O(n) a draw for all classes together, where
one class after another would be O(n m).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from caltest._tiles import Array, blocks
from caltest.forms.base import Form, Labels
from caltest.forms.paths import CumulativeDifference, apart
from caltest.forms.sums import LinearSum
from caltest.lenses import taken

Places: TypeAlias = NDArray[np.intp]

_FEWEST_ROWS = 2048  # in fewer, calls take longer than rows
_ENTRIES = 2**22  # labels of the draws that are sorted at a time, 16 MB
_MOST_EVENTS = 1 / 8  # of the rows; of more, sorting them takes longer than looking at all rows


class OfEvents(ABC):
    """A statistic of one class, from the rows in which it was observed."""

    @abstractmethod
    def of_draws(self, rows: NDArray[np.int32], ends: NDArray[np.int32], column: int) -> Array:
        """Return (B,) values from (B, n) rows sorted by class, and where classes end, (B, m + 1)."""


@dataclass(frozen=True, eq=False)
class _Cumulative(OfEvents):
    """What `CumulativeDifference` is, number for number: between two events C only falls."""

    form: CumulativeDifference

    @cached_property
    def _places(self) -> tuple[NDArray[np.int32], Array]:
        """Where the score of a row comes among the different ones; what is expected up to each."""
        scores, inverse, sizes = np.unique(self.form.chances, return_inverse=True, return_counts=True)
        return inverse.astype(np.int32), np.append(0.0, np.cumsum(sizes * scores))

    def of_draws(self, rows: NDArray[np.int32], ends: NDArray[np.int32], column: int) -> Array:
        from caltest.loops import rows as _loops

        place_of, expected = self._places
        lowest, highest = np.empty(len(rows)), np.empty(len(rows))
        _loops.extremes_of_events(rows, ends, column, place_of, expected, lowest, highest)
        return apart(lowest, highest, self.form.functional) / len(place_of)


@dataclass(frozen=True, eq=False)
class _Linear(OfEvents):
    """What `LinearSum` is, up to rounding: a sum without events, and what each event adds."""

    form: LinearSum

    @cached_property
    def _parts(self) -> tuple[float, Array]:
        table = self.form.table
        return float(table[:, 0].sum()), np.ascontiguousarray(table[:, 1] - table[:, 0])

    def of_draws(self, rows: NDArray[np.int32], ends: NDArray[np.int32], column: int) -> Array:
        from caltest.loops import rows as _loops

        without, added = self._parts
        sums = np.full(len(rows), without)
        _loops.sums_of_events(rows, ends, column, added, sums)
        return sums


def of_events(form: Form, share: float) -> OfEvents | None:
    """Return a form of two classes as a function of the rows of class 1; None if that is no gain.

    ``share`` is of the rows in which class 1 is expected.
    """
    if form.together or share > _MOST_EVENTS:
        return None
    if type(form) is CumulativeDifference and (form.weights == 1.0).all():
        return _Cumulative(form) if len(form.chances) >= _FEWEST_ROWS else None
    if (
        type(form) is LinearSum
        and not form.standardised
        and len(form.table) >= _FEWEST_ROWS
        and np.isfinite(form.table).all()
    ):
        return _Linear(form)
    return None


@dataclass(frozen=True, eq=False)
class EventColumns:
    """Statistics of single classes on the same rows."""

    rows: Places | None  # None for all
    columns: tuple[int, ...]  # the class of every statistic
    statistics: tuple[OfEvents, ...]
    places: tuple[int, ...]  # of their columns among all values

    def of_labels(self, full: Labels) -> Array:
        """Return (B, H) values for the full labels (B, n)."""
        from caltest.loops import rows as _loops

        labels = full if self.rows is None else taken(full, self.rows)
        found, classes = np.empty((len(labels), len(self.statistics))), max(self.columns) + 1
        for part in blocks(len(labels), max(1, _ENTRIES // labels.shape[1])):
            drawn: Any = labels[part]
            rows = np.empty(drawn.shape, dtype=np.int32)
            ends = np.empty((len(drawn), classes + 1), dtype=np.int32)
            _loops.rows_by_class(drawn, rows, ends)
            # Class by class: what a class needs stays in the cache.
            for number, (statistic, column) in enumerate(
                zip(self.statistics, self.columns, strict=True)
            ):
                found[part, number] = statistic.of_draws(rows, ends, column)
        return found


def classes(found: list[tuple[Places | None, int, OfEvents, int]]) -> tuple[EventColumns, ...]:
    """Put statistics of the same rows together: each with rows, class and place."""
    parts: dict[int, list[tuple[Places | None, int, OfEvents, int]]] = {}
    for each in found:
        parts.setdefault(id(each[0]), []).append(each)
    return tuple(
        EventColumns(part[0][0], *(tuple(column) for column in list(zip(*part, strict=True))[1:]))
        for part in parts.values()
    )
