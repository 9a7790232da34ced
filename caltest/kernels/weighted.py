"""Bandwidths of rows that count differently: a pair of rows counts the product of both weights."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from caltest._tiles import Array, Tile, blocks

TILE = 512  # rows and columns of a tile of the matrix of distances
HELD = 2**23  # distances that are kept in memory, with what they count; more are computed anew
_DIGIT = 46  # bits below the first sixteen of a distance below 2, whose highest two are 0
_ROUNDING = 1e-12  # of a share of the weight of all pairs


@dataclass(frozen=True, eq=False)
class WeightedPairs:
    """The distances of all pairs i < j of rows, and what each pair counts."""

    rows: Array  #: Predictions (n, m).
    weights: Array  #: (n,), positive.
    condensed: Callable[[Array], Array]  #: Distances of the pairs of some rows, row by row.
    tile: Tile  #: Distances of rows at two slices.
    _held: list[tuple[Array, Array]] = field(default_factory=list, init=False, repr=False)

    @property
    def total(self) -> float:
        """What all pairs count."""
        w = self.weights
        return 0.5 * float(w @ (w.sum() - w))

    def __iter__(self) -> Iterator[tuple[Array, Array]]:
        if self._held:
            return iter(self._held)
        if len(self.rows) ** 2 // 2 > HELD:
            return self._computed()
        self._held.extend(self._computed())
        return iter(self._held)

    def _computed(self) -> Iterator[tuple[Array, Array]]:
        cut, w = blocks(len(self.rows), TILE), self.weights
        for place, own in enumerate(cut):
            counts = np.concatenate([w[i] * w[i + 1 : own.stop] for i in range(own.start, own.stop)])
            yield self.condensed(self.rows[own]), counts
            for other in cut[place + 1 :]:
                yield self.tile(own, other).ravel(), np.outer(w[own], w[other]).ravel()

    def mean(self, above: float = -1.0) -> float:
        """Return the mean of the distances above a number; 0 if there are none."""
        sums = np.zeros(2)
        for distances, counts in self:
            counted = np.where(distances > above, counts, 0.0)
            sums += counted.sum(), counted @ distances
        return float(sums[1] / sums[0]) if sums[0] > 0.0 else 0.0

    def quantile(self, below: float) -> float:
        """Return the least distance up to which pairs count more than ``below``; 0 if that is < 0.

        Where pairs up to it count just as much, it is the middle of it and the next one.
        """
        if below < 0.0:
            return 0.0
        counts = np.zeros(1 << (62 - _DIGIT))
        for distances, each in self:
            found = np.bincount(distances.view(np.int64) >> _DIGIT, weights=each)
            counts[: len(found)] += found
        ends, slack = np.cumsum(counts), _ROUNDING * self.total
        first = int(np.searchsorted(ends, below - slack))
        last = int(np.searchsorted(ends, below + slack, side="right"))
        values, each = (
            np.concatenate(parts) for parts in zip(*self._between(first, last), strict=True)
        )
        order = np.argsort(values)
        ends = float(ends[first] - counts[first]) + np.cumsum(each[order])
        places = np.searchsorted(ends, below - slack), np.searchsorted(ends, below + slack, "right")
        low, high = order[np.minimum(places, len(order) - 1)]
        return float(0.5 * (values[low] + values[high]))

    def _between(self, first: int, last: int) -> Iterator[tuple[Array, Array]]:
        """Yield the pairs whose distances begin with digits between two."""
        for distances, each in self:
            digits: NDArray[np.int64] = distances.view(np.int64) >> _DIGIT
            inside = (digits >= first) & (digits <= last)
            yield distances[inside], each[inside]


def representatives(
    order: NDArray[np.intp], weights: Array, size: int
) -> tuple[NDArray[np.intp], Array]:
    """Return rows at the midpoints of equal shares of the weight, in an order, and how often each."""
    ends = np.cumsum(weights[order])
    places = np.searchsorted(ends, (np.arange(size) + 0.5) / size * ends[-1])
    places, counts = np.unique(places.clip(max=len(order) - 1), return_counts=True)
    return order[places], counts.astype(np.float64)
