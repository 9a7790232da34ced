"""One pass over the draws for all tolerances at once.

An event is drawn for a score p shifted by ε if u ≥ 1 − (p − ε), that is if p + u − 1 ≥ ε, with one
uniform u for all ε. Counted over a piece of neighbouring rows, p + u − 1 in the cells of a grid
of tolerances gives the number of events for every tolerance of the grid, of both sides: one number
drawn for every row and draw, whatever the number of tolerances.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from caltest._sampling import DRAWS, ROWS
from caltest._seeds import generator
from caltest._tiles import blocks
from caltest.forms import Intervals, Side

Array: TypeAlias = NDArray[np.float64]
Grid: TypeAlias = NDArray[np.intp]
SIDES: tuple[Side, ...] = ("over", "under")

#: Tolerances are multiples of 1/UNIT.
UNIT = 10_000
# Where steps of the tolerances begin, and how long they are.
_STEPS = ((0, 1), (20, 2), (100, 5), (400, 10), (1000, 20), (2000, 50), (5000, 100))
_ENTRIES = 2**19  # sums over intervals held at a time, and counts: they stay in the cache
_COUNTS = 2**17


def grid_of_tolerances() -> Grid:
    """Return the tolerances 0 to 1 in units of 1/10 000, steps growing with them.

    Examples
    --------
    >>> grid = grid_of_tolerances()
    >>> len(grid), grid[:3].tolist(), grid[-3:].tolist()
    (341, [0, 1, 2], [9800, 9900, 10000])
    """
    parts = [
        np.arange(start, stop, step) for (start, step), (stop, _) in pairwise((*_STEPS, (UNIT, 0)))
    ]
    return np.concatenate([*parts, [UNIT]]).astype(np.intp)


class ScanDraws(NamedTuple):
    """What one block of draws says of one side.

    Attributes
    ----------
    maxima
        (B, G) largest standardised error of any interval, for every tolerance.
    first
        (B, L) standardised errors of all intervals, tolerance 0.
    """

    maxima: Array
    first: Array


@dataclass(frozen=True, eq=False)
class ShiftedScan:
    """The statistic "scan" of two classes, shifted by every tolerance of a grid.

    Attributes
    ----------
    probs
        (n, 2) predictions in the order of the second column.
    intervals
        Of these rows, in this order.
    grid
        (G,) tolerances, from 0, in units of 1/UNIT.
    """

    probs: Array
    intervals: Intervals
    grid: Grid

    @classmethod
    def of(cls, probs: Array, grid: Grid) -> ShiftedScan:
        """Sort the rows, and fix the intervals."""
        found = Intervals.dyadic(probs[:, 1])
        return cls(probs[found.order], found, grid)

    @cached_property
    def tolerances(self) -> Array:
        """The grid as differences of probabilities, (G,)."""
        return self.grid / UNIT

    @cached_property
    def _expected_and_scale(self) -> dict[Side, tuple[Array, Array]]:
        return {side: self._shifted_sums(side) for side in SIDES}

    def _shifted_sums(self, side: Side) -> tuple[Array, Array]:
        """Return Σ_I p^ε and 1/(√(Σ_I p^ε (1 − p^ε)) + 1), (L, G), for p^ε = max(p − ε, 0).

        p is the probability of the event for "over", of no event for "under". Rows with p > ε are the
        last of a piece, or the first: cumulative sums give all tolerances at once.
        """
        p = self.probs[:, 1 if side == "over" else 0]
        low, high = self.intervals.edges[:-1, None], self.intervals.edges[1:, None]
        if side == "over":
            start = np.clip(np.searchsorted(p, self.tolerances, side="right"), low, high)
            stop = np.broadcast_to(high, start.shape)
        else:
            count = np.searchsorted(p[::-1], self.tolerances, side="right")
            stop = np.clip(len(p) - count, low, high)
            start = np.broadcast_to(low, stop.shape)
        rows = stop - start
        firsts, seconds = (
            running[stop] - running[start]
            for running in (np.concatenate([[0.0], np.cumsum(p**power)]) for power in (1, 2))
        )
        shift = self.tolerances
        sums = np.maximum(firsts - shift * rows, 0.0)
        squares = seconds - 2.0 * shift * firsts + shift**2 * rows
        spread = np.maximum(sums - squares, 0.0)
        expected, variance = (
            np.concatenate([found[0] for _, found in self.intervals.sums(part[None])])
            for part in (sums, spread)
        )
        expected[~self.intervals.filled] = -np.inf
        return expected, 1.0 / (np.sqrt(np.maximum(variance, 0.0)) + 1.0)

    def expected(self, side: Side) -> Array:
        """Return Σ_I p^ε, (L, G); −∞ of intervals without rows."""
        return self._expected_and_scale[side][0]

    def errors(self, labels: NDArray[np.intp], side: Side) -> Array:
        """Return the standardised errors for labels in order, (L, G)."""
        counted = labels if side == "over" else 1 - labels
        pieces = self.intervals.pieces(counted[None])[:, :, None]
        expected, weight = self._expected_and_scale[side]
        events = np.concatenate([found[0] for _, found in self.intervals.sums(pieces)])
        return np.asarray((expected - events) * weight)

    def draw(self, seed: int, start: int, stop: int) -> dict[Side, ScanDraws]:
        """Return what draws ``start`` to ``stop``, a block of the grid of seeds, say of both sides."""
        cells = self._cells(seed, start // DRAWS, stop - start)
        g = len(self.grid)
        below = np.cumsum(cells[:, :, :g], axis=2, dtype=cells.dtype)[:, :, ::-1]
        above = np.cumsum(cells[:, :, : g - 1 : -1], axis=2, dtype=cells.dtype)[:, :, ::-1]
        return {"over": self._evaluate(above, "over"), "under": self._evaluate(below, "under")}

    def _cells(self, seed: int, block: int, n_draws: int) -> NDArray[np.unsignedinteger]:
        """Count rows of every piece by the cell of p + u − 1, (B, K, 2 G): below −ε, … above ε."""
        edges, width = self.intervals.edges, 2 * len(self.grid)
        most = int(np.diff(edges).max())
        counts = np.zeros(
            (n_draws, len(edges) - 1, width), dtype=np.uint16 if most < 2**16 else np.uint32
        )
        for number, rows in enumerate(blocks(len(self.probs), ROWS)):
            place = generator(seed, number, block).random((n_draws, rows.stop - rows.start))
            place += self.probs[rows, 1]
            place *= UNIT
            pieces = np.searchsorted(edges, np.arange(rows.start, rows.stop), side="right") - 1
            first, last = int(pieces[0]), int(pieces[-1]) + 1
            offsets, size = (pieces - first) * width, (last - first) * width
            for part in blocks(n_draws, max(1, _COUNTS // size)):
                keys = self._cell_of.take(place[part].astype(np.intp))
                keys += offsets
                keys += (np.arange(len(keys)) * size)[:, None]
                found = np.bincount(keys.ravel(), minlength=len(keys) * size)
                counts[part, first:last] += found.reshape(len(keys), -1, width).astype(counts.dtype)
        return counts

    @cached_property
    def _cell_of(self) -> NDArray[np.intp]:
        """Return the cell of every p + u, cut down to a multiple of 1/UNIT, (2 UNIT + 1,)."""
        edges = np.concatenate([-self.grid[:0:-1], self.grid])
        return np.searchsorted(edges, np.arange(2 * UNIT + 1) - UNIT, side="right")

    def _evaluate(self, events: NDArray[np.unsignedinteger], side: Side) -> ScanDraws:
        """Standardise the events of every piece, (B, K, G)."""
        expected, weight = self._expected_and_scale[side]
        fitting = max(1, _ENTRIES // events[0].size)
        maxima, first = [], []
        for part in blocks(len(events), fitting):
            found = list(self._standardised(events[part], expected, weight))
            maxima.append(np.max([errors.max(axis=1) for errors in found], axis=0))
            first.append(np.concatenate([errors[:, :, 0] for errors in found], axis=1))
        return ScanDraws(np.concatenate(maxima), np.concatenate(first))

    def _standardised(
        self, events: NDArray[np.unsignedinteger], expected: Array, weight: Array
    ) -> Iterator[Array]:
        for level, errors in self.intervals.sums(events):
            np.subtract(expected[level], errors, out=errors)
            errors *= weight[level]
            yield errors
