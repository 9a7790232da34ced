"""Shifted models, and scans that refute them: of an error on average, or of some rows.

An event is drawn for a score p shifted by ε if u ≥ 1 − (p − ε), that is if p + u − 1 ≥ ε, with one
uniform u for all ε. Counted over a piece of neighbouring rows, p + u − 1 in the cells of a grid of
tolerances gives the number of events for every tolerance of the grid, of both sides: one number drawn
for every row and draw, whatever the number of tolerances. For tolerance 0 alone the number of events of
a piece is drawn from its law: one number for every piece and draw.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, partial
from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy.special import bdtr

from caltest._parallel import Workers
from caltest._sums import Array, blocks
from caltest.forms import Intervals, Side
from caltest.pvalues import StepDown, exceeds, pvalue
from caltest.sampling import DRAWS, ROWS, generator

Grid: TypeAlias = NDArray[np.intp]
SIDES: tuple[Side, ...] = ("over", "under")

#: Tolerances are multiples of 1/UNIT.
UNIT = 10_000


def grid_of_tolerances() -> Grid:
    """Return the tolerances 0 to 1 in units of 1/10 000, steps growing with them."""
    steps = np.r_[0:20, 20:100:2, 100:400:5, 400:1000:10, 1000:2000:20, 2000:5000:50, 5000:10_001:100]
    return np.asarray(steps, dtype=np.intp)


@dataclass(frozen=True, eq=False)
class ShiftedScan:
    """The statistic "scan" of two classes, shifted by every tolerance of a grid.

    ``probs`` are predictions in the order of the second column, (n, 2); ``grid`` has (G,) tolerances,
    from 0, in units of 1/UNIT.
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
    def expected_and_scale(self) -> dict[Side, tuple[Array, Array]]:
        """Σ_I p^ε, −∞ of intervals without rows, and 1/(standard deviation + 1), (L, G) each."""
        return {side: self._shifted_sums(side) for side in SIDES}

    def _shifted_sums(self, side: Side) -> tuple[Array, Array]:
        """Return Σ_I p^ε and 1/(√(Σ_I p^ε (1 − p^ε)) + 1), (L, G), for p^ε = max(p − ε, 0).

        p is the probability of the event for "over", of no event for "under". Rows with p > ε are the
        last of a piece, or the first: cumulative sums give all tolerances at once.
        """
        p = self.probs[:, 1 if side == "over" else 0]
        below = np.searchsorted(p if side == "over" else p[::-1], self.tolerances, side="right")
        ends = (below, len(p)) if side == "over" else (0, len(p) - below)
        low, high = self.intervals.edges[:-1, None], self.intervals.edges[1:, None]
        start, stop = (np.clip(end, low, high) for end in ends)
        rows = stop - start
        firsts, seconds = (
            running[stop] - running[start]
            for running in (np.concatenate([[0.0], np.cumsum(p**power)]) for power in (1, 2))
        )
        shift = self.tolerances
        sums = np.maximum(firsts - shift * rows, 0.0)
        squares = seconds - 2.0 * shift * firsts + shift**2 * rows
        expected, variance = map(self._over_intervals, (sums, np.maximum(sums - squares, 0.0)))
        expected[~self.intervals.filled] = -np.inf
        return expected, 1.0 / (np.sqrt(np.maximum(variance, 0.0)) + 1.0)

    def _over_intervals(self, pieces: Array) -> Array:
        """Return sums over the intervals, (L, G), of what pieces have, (K, G)."""
        return np.concatenate([found[0] for _, found in self.intervals.sums(pieces[None])])

    def errors(self, labels: NDArray[np.intp], side: Side) -> Array:
        """Return the standardised errors for labels in order, (L, G)."""
        counted = labels if side == "over" else 1 - labels
        pieces = np.diff(np.append(0, np.cumsum(counted))[self.intervals.edges])[:, None]
        expected, weight = self.expected_and_scale[side]
        return np.asarray((expected - self._over_intervals(pieces)) * weight)

    def draw(self, seed: int, start: int, stop: int) -> dict[Side, tuple[Array, Array]]:
        """Return standardised errors of draws ``start`` to ``stop``, a block of the grid of seeds.

        Of both sides: the largest of any interval, for every tolerance, (B, G), and those of all
        intervals for tolerance 0, (B, L).
        """
        from caltest.loops import rows as _loops

        cells, found = self._cells(seed, start // DRAWS, stop - start), {}
        begins, ends = self.intervals.in_pieces
        for side in SIDES:
            expected, weight = self.expected_and_scale[side]
            maxima = np.empty((len(cells), len(self.grid)))
            first = np.empty((len(cells), len(begins)))
            _loops.largest_shifted(cells, side == "over", begins, ends, expected, weight, maxima, first)
            found[side] = maxima, first
        return found

    def _cells(self, seed: int, block: int, n_draws: int) -> NDArray[np.unsignedinteger]:
        """Count rows of every piece by the cell of p + u − 1, (B, K, 2 G): below −ε, … above ε."""
        from caltest.loops import rows as _loops

        edges, width = self.intervals.edges, 2 * len(self.grid)
        if width == 2:
            uniforms = generator(seed, block).random((n_draws, len(edges) - 1))
            chances = zip(self.chances_of_counts, uniforms.T, strict=True)
            events = np.stack([np.searchsorted(law, u, side="right") for law, u in chances], axis=1)
            return np.stack([np.diff(edges) - events, events], axis=2).astype(np.uint32)
        most = int(np.diff(edges).max())
        counts = np.zeros(
            (n_draws, len(edges) - 1, width), dtype=np.uint16 if most < 2**16 else np.uint32
        )
        for number, rows in enumerate(blocks(len(self.probs), ROWS)):
            uniforms = generator(seed, number, block).random((n_draws, rows.stop - rows.start))
            pieces = np.searchsorted(edges, np.arange(rows.start, rows.stop), side="right") - 1
            _loops.count_shifted(
                uniforms, self.probs[rows, 1].copy(), float(UNIT), pieces, self._cell_of, counts
            )
        return counts

    @cached_property
    def chances_of_counts(self) -> tuple[Array, ...]:
        """The chances of at most 0, 1, … N − 1 events, of the N rows of every piece: (N,) each."""
        pieces = np.split(self.probs[:, 1].copy(), self.intervals.edges[1:-1])
        return tuple(np.cumsum(_law_of_events(chances)[: len(chances)]) for chances in pieces)

    @cached_property
    def _cell_of(self) -> NDArray[np.intp]:
        """Return the cell of every p + u, cut down to a multiple of 1/UNIT, (2 UNIT + 1,)."""
        edges = np.concatenate([-self.grid[:0:-1], self.grid])
        return np.searchsorted(edges, np.arange(2 * UNIT + 1) - UNIT, side="right")


# ------------------------------------------------------------------ compared with draws


class Compared(NamedTuple):
    """What all draws say of one side.

    Of all intervals, tolerance 0, the standardised errors and the p-values adjusted for their number,
    (L,); of every tolerance the p-value, (G,).
    """

    observed: Array
    pvalues: Array
    adjusted: Array


def compared(
    scan: ShiftedScan, labels: NDArray[np.intp], n_draws: int, seed: int, workers: Workers
) -> dict[Side, Compared]:
    """Compare labels, in order, with draws; a block of draws is held at a time and worker."""
    observed = {side: scan.errors(labels, side) for side in SIDES}
    tasks = [(part.start, part.stop) for part in blocks(n_draws, DRAWS)]
    parts = list(workers.map(partial(_counts, scan, observed, seed), tasks, "label draws"))
    found = {}
    for side in SIDES:
        reached, steps = (np.sum([part[side][place] for part in parts], axis=0) for place in (0, 1))
        found[side] = Compared(
            observed[side][:, 0],
            np.array([pvalue(int(count), n_draws, "greater") for count in reached]),
            StepDown.of(observed[side][:, 0]).pvalues(steps, n_draws),
        )
    return found


def _counts(
    scan: ShiftedScan, observed: dict[Side, Array], seed: int, start: int, stop: int
) -> dict[Side, tuple[NDArray[np.int64], NDArray[np.int64]]]:
    """Return what a block of draws adds: (G,) and (L,) counts of either side."""
    found = {}
    for side, (maxima, first) in scan.draw(seed, start, stop).items():
        reached = np.count_nonzero(exceeds(maxima, observed[side].max(axis=0)), axis=0)
        found[side] = reached, StepDown.of(observed[side][:, 0]).count(first)
    return found


# ------------------------------------------------------------------ refuted in an interval


_EXACT_ROWS = 8192  # of an interval: in more, the binomial is about as sharp
_ROUNDING = 1e-13  # of a chance, at most


def largest_refuted(
    scan: ShiftedScan, labels: NDArray[np.intp], side: Side, level: float
) -> NDArray[np.intp]:
    """Return for every interval the last tolerance that is refuted there, −1 if none is.

    Labels are in the order of the scan's rows; ``level`` is the chance that any of the tolerances
    returned is not below the truth of its interval.

    With S the events of an interval and S^ε those of independent rows with the probabilities
    max(p − ε, 0), ε is refuted if P(S^ε ≤ S) is at most level/K, K the number of different intervals:
    "Places" in docs/theory/many.md has the proof. In intervals of many rows the Poisson binomial S^ε is
    replaced by the binomial of the same mean, whose lower tail is the heavier one at s ≤ mean − 1.
    """
    bounds = scan.intervals.bounds
    allowed = level / len(np.unique(bounds[scan.intervals.filled], axis=0))
    p = scan.probs[:, 1 if side == "over" else 0]
    counted = np.concatenate([[0], np.cumsum(labels if side == "over" else 1 - labels)])
    events = counted[bounds[:, 1]] - counted[bounds[:, 0]]
    rows, means = np.diff(bounds, axis=1), np.maximum(scan.expected_and_scale[side][0], 0.0)
    share = np.clip(means / np.maximum(rows, 1), 0.0, 1.0)
    tails = bdtr(events[:, None], rows, share)
    unlikely = (events[:, None] <= means - 1.0) & (tails + _ROUNDING <= allowed)
    found = np.asarray(unlikely.sum(axis=1) - 1, dtype=np.intp)  # the first so many, as means fall
    for index in np.flatnonzero(scan.intervals.filled & (rows[:, 0] <= _EXACT_ROWS)):
        inside = p[slice(*bounds[index])]
        refuted = partial(_is_refuted, inside, scan.tolerances, events[index], allowed)
        found[index] = _gallop(refuted, int(found[index]), len(scan.grid))
    starts, stops = bounds.T
    holds = (starts[:, None] <= starts) & (stops <= stops[:, None]) & scan.intervals.filled
    return np.asarray(np.where(holds, found, -1).max(axis=1))


def _is_refuted(p: Array, tolerances: Array, events: int, allowed: float, g: int) -> bool:
    """Say whether so few events are too unlikely if all probabilities are lower by a tolerance."""
    law = _law_of_events(np.maximum(p - tolerances[g], 0.0))
    return float(law[: events + 1].sum()) + _ROUNDING <= allowed


def _law_of_events(chances: Array) -> Array:
    """Return the chances of 0, 1, … N events, and 0, (N + 2,)."""
    from caltest.loops import rows as _loops

    law, other = np.empty((2, len(chances) + 2))
    _loops.law_of_events(chances, law, other)
    return law


def _gallop(holds: Callable[[int], bool], known: int, count: int) -> int:
    """Return the last of 0..count − 1 for which it holds; it holds up to ``known``, then up to some."""
    step = 1
    while known + step < count and holds(known + step):
        known, step = known + step, 2 * step
    between = range(known + 1, min(known + step, count))
    return known + bisect_left(between, True, key=lambda place: not holds(place))
