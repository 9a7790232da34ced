"""How large: simultaneous exact intervals of the mean errors of all views and of their parts.

One family, fixed by predictions and groups before a label is seen: V views share four fifths of alpha,
the parts (tenths and halves of all rows, fifths of every group) one fifth; half of each on either side.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from caltest.auditing.views import Histogram, Part
from caltest.bounds.clopper_pearson import mean_bounds

Array = NDArray[np.float64]

_OF_VIEWS = 0.8  # of alpha
_WHOLE = (10, 2)  # parts of all rows
_GROUP = (5,)
_FEWEST = 10  # rows of a part
_BARS = 40


class Cut(NamedTuple):
    """Rows of one probability in the order of the predictions, and where its parts end."""

    order: NDArray[np.intp]
    ends: tuple[tuple[int, NDArray[np.intp]], ...]  # how many parts, and the end of each in the order


def cut(scores: Array, whole: bool) -> Cut:
    """Cut a view by its predictions into parts of about equally many rows; ties stay together."""
    order = np.argsort(scores, kind="stable")
    ordered = scores[order]
    last = np.append(np.flatnonzero(np.diff(ordered)), len(ordered) - 1) + 1  # where ties end
    ends = []
    for parts in _WHOLE if whole else _GROUP:
        if len(scores) < parts * _FEWEST:
            continue
        wanted = np.arange(1, parts + 1) * len(scores) / parts
        near = np.searchsorted(last, wanted - 1e-9)  # the first end of ties at or after
        found = np.unique(last[np.minimum(near, len(last) - 1)])
        if len(found) > 1:
            ends.append((parts, found))
    return Cut(order, tuple(ends))


class Family(NamedTuple):
    """The levels of single bounds, one side each."""

    of_view: float
    of_part: float

    @classmethod
    def of(cls, alpha: float, n_views: int, n_parts: int) -> Family:
        """Share alpha among so many views and parts."""
        part = (1.0 - _OF_VIEWS) * alpha / (2 * max(n_parts, 1))
        return cls(_OF_VIEWS * alpha / (2 * max(n_views, 1)), part)

    def interval(self, predicted: float, rows: int, events: int) -> tuple[float, float]:
        """Return the interval of a view's mean error, predicted less true rate."""
        (low,), (high,) = _errors(np.array([predicted]), [rows], [events], self.of_view)
        return float(low), float(high)

    def parts(self, scores: Array, labels: NDArray[np.integer], where: Cut) -> tuple[Part, ...]:
        """Return the parts of a view, with the intervals of their errors."""
        found: list[Part] = []
        ordered, events = scores[where.order], labels[where.order]
        for of, ends in where.ends:
            starts = np.r_[0, ends[:-1]]
            rows = np.diff(ends, prepend=0)
            sums = np.array([float(ordered[a:b].sum()) for a, b in zip(starts, ends, strict=True)])
            hits = np.add.reduceat(events.astype(np.int64), starts)
            lows, highs = _errors(sums / rows, rows, hits, self.of_part)
            for place in range(len(ends)):
                count = int(rows[place])
                found.append(
                    Part(
                        of=of,
                        place=place,
                        rows=count,
                        predicted=float(sums[place] / count),
                        observed=float(hits[place] / count),
                        low=float(lows[place]),
                        high=float(highs[place]),
                        start=float(ordered[starts[place]]),
                        end=float(ordered[ends[place] - 1]),
                    )
                )
        return tuple(found)


def _errors(
    predicted: Array, rows: Sequence[int] | NDArray[np.integer], events: object, level: float
) -> tuple[Array, Array]:
    counts, hits = np.asarray(rows, dtype=np.float64), np.asarray(events, dtype=np.float64)
    least, most = mean_bounds(counts, hits, level)
    return predicted - most, predicted - least


def binned_error(parts: Sequence[Part]) -> tuple[float, float, float] | None:
    """Return the mean absolute error over the finest parts: its lower end, estimate and upper end."""
    finest = [part for part in parts if part.of == max(each.of for each in parts)]
    if not finest:
        return None
    rows = np.array([part.rows for part in finest]) / sum(part.rows for part in finest)
    lows, highs = (np.array([getattr(part, end) for part in finest]) for end in ("low", "high"))
    least = np.maximum(np.maximum(lows, -highs), 0.0)
    most = np.maximum(np.abs(lows), np.abs(highs))
    errors = np.abs([part.error for part in finest])
    return float(rows @ least), float(rows @ errors), float(rows @ most)


def histogram(scores: Array) -> Histogram:
    """Count the rows in bins of equal width from the smallest to the largest prediction."""
    low, high = float(scores.min()), float(scores.max())
    if high - low < 1e-9:
        low, high = max(0.0, low - 0.005), min(1.0, high + 0.005)
    counts, edges = np.histogram(scores, bins=_BARS, range=(low, high))
    return Histogram(tuple(edges.tolist()), tuple(counts.tolist()))
