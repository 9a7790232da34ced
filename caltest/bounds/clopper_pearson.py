"""Clopper–Pearson bounds: of the mean in a bin, and of a curve that never falls.

*A curve that never falls* is P(event | score), where it does not decrease in the score.

Rows with scores up to t have an event with probability at most p(t) each, so the Clopper–Pearson lower
bound of any interval that ends at or before t is a lower bound of p(t); upper bounds are the mirror
image. For any family of intervals that is chosen from the scores alone all of them hold at once, if
every bound fails with probability at most α / (2 · number of intervals): docs/theory/many.md.

Dimitriadis et al. take all intervals of the N distinct scores. Here neighbouring scores are pooled to
G cells first, and intervals are those of whole cells: level α/(G² + G). That is rounding outwards: the
lower bound of a cell holds from its LARGEST score on, the upper bound up to its SMALLEST score, so
both hold for the curve at every original score and between, whatever the cells.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy.special import betaincinv

from caltest.binning import EqualMass, EqualWidth, intervals
from caltest.exceptions import InputError

Array: TypeAlias = NDArray[np.float64]
Labels: TypeAlias = NDArray[np.intp]

LARGEST_LEVEL = 0.25  # of a single bound, for the proof in `mean_bounds`
_MOST_CELLS = 5000  # half a minute or so
_CELLS_A_CUBE_ROOT = 4.0


class Segment(NamedTuple):
    """A range of scores, ends included as far as the data tell."""

    low: float
    high: float


def mean_bounds(counts: Array, events: Array, level: float) -> tuple[Array, Array]:
    """Return bounds of the mean of a group's probabilities, which may all differ.

    Of (K,) rows, at least 1, and events, that need not be whole; a single bound fails with a
    probability of ``level`` at most, up to 1/4. They are Clopper and Pearson's, but for one event (or
    one row without), where they are level / n (or 1 − level / n).

    If L(1), the lower bound of one event, were Clopper and Pearson's, 1 − (1 − δ)^(1/n), which is above
    δ/n, it would fail where one row has all the probability: P(an event) can reach δ + δ²/2 or so. The
    proof is in docs/theory/many.md (Hoeffding 1956, Theorem 4; Greenberg and Mohri 2014).
    """

    def lower(events: Array) -> Array:
        found = betaincinv(np.maximum(events, 1.0), counts - np.maximum(events, 1.0) + 1.0, level)
        return np.where(events > 1.0, found, np.clip(events, 0.0, 1.0) * level / counts)

    return lower(events), 1.0 - lower(counts - events)


@dataclass(frozen=True, eq=False)
class Cells:
    """Rows pooled by score: the unit that intervals are made of.

    Of G cells, ``starts`` and ``ends`` are the smallest and largest score (equal scores are never
    split), ``counts`` and ``events`` the rows and those in which the event was observed, ``predicted``
    the mean scores. Of the N distinct ``scores``, ``multiplicities`` says how many rows have each,
    ``cell`` where it is.
    """

    starts: Array
    ends: Array
    counts: Array
    events: Array
    predicted: Array
    scores: Array
    multiplicities: Array
    cell: NDArray[np.intp]


def cells_wanted(n_samples: int) -> int:
    """Return how many cells of equal mass, and as many of equal width, scores are pooled to.

    4 n^(1/3). An interval that settles the band of a rising curve has a width, and a share of the
    rows, of the order n^(−1/3): cells are a small part of that, and more of them would cost level.
    """
    return round(_CELLS_A_CUBE_ROOT * math.cbrt(n_samples))


def pool(scores: Array, labels: Labels, n_cells: int) -> Cells:
    """Pool rows to cells: where a cut into equal masses, or into equal widths, lies between scores.

    The cuts depend on the scores alone. Equal masses follow the rows; equal widths keep a cell from
    being wide where rows are rare.

    With as many cuts of either kind as rows, every distinct score is a cell.
    """
    values, group, multiplicities = np.unique(scores, return_inverse=True, return_counts=True)
    cuts = min(n_cells, len(scores))  # more would cost time and separate nothing more, or hardly
    mass = intervals(scores, EqualMass(cuts).edges_of(scores))
    width = intervals(scores, EqualWidth(cuts).edges_of(scores))
    of_value = np.empty((2, len(values)), dtype=np.intp)
    of_value[:, group.reshape(-1)] = mass, width  # the same for equal scores
    cell = np.r_[0, np.cumsum((np.diff(of_value) != 0).any(axis=0))]
    if cell[-1] >= _MOST_CELLS:
        raise InputError(
            f"cells is {n_cells}, which makes {cell[-1] + 1:,} cells of these scores, and time grows "
            f"with their square; give fewer, at most {_MOST_CELLS:,}."
        )
    first = np.flatnonzero(np.r_[True, np.diff(cell) > 0])
    last = np.r_[first[1:], len(values)] - 1
    rows = multiplicities.astype(np.float64)
    hits = np.bincount(group.reshape(-1), weights=labels.astype(np.float64))
    counts = np.bincount(cell, weights=rows)
    starts, ends = values[first], values[last]
    means = np.bincount(cell, weights=rows * values) / counts
    return Cells(
        starts=starts,
        ends=ends,
        counts=np.asarray(counts),
        events=np.asarray(np.bincount(cell, weights=hits)),
        predicted=np.clip(means, starts, ends),  # equal scores have no other mean
        scores=values,
        multiplicities=rows,
        cell=cell,
    )


def interval_bounds(
    counts: Array, events: Array, alpha: float, lengths: Iterable[int] | None = None
) -> tuple[Array, Array]:
    """Return the band at the cells: lower bounds from a cell's end on, upper ones up to its start.

    Lower: the largest Clopper–Pearson bound of the intervals [j, k'] with k' ≤ k; upper: the smallest
    of the intervals [j', k'] with j' ≥ j. The curve leaves the band with a probability of ``alpha`` at
    most. Counts and events need not be whole numbers: a plan takes expected ones. With ``lengths``,
    intervals of these many cells only are used, at the same level: quicker and a little wider.

    Source: Dimitriadis, Dümbgen, Henzi, Puke, Ziegel, "Honest calibration assessment for binary outcome
    predictions", Biometrika 110 (2023), section 2.
    """
    level = level_of(len(counts), alpha)
    chosen = range(1, len(counts) + 1) if lengths is None else tuple(lengths)
    lower = _running_lower(counts, events, level, chosen)
    upper = 1.0 - _running_lower(counts[::-1], (counts - events)[::-1], level, chosen)[::-1]
    return lower, upper


def level_of(n_cells: int, alpha: float) -> float:
    """Return the level of every single bound, α/(G² + G)."""
    return alpha / (n_cells * (n_cells + 1.0))


def _running_lower(counts: Array, events: Array, level: float, lengths: Sequence[int]) -> Array:
    """Return the largest lower bound of the intervals that end at each cell or before."""
    rows = np.r_[0.0, np.cumsum(counts)]
    hits = np.r_[0.0, np.cumsum(events)]
    best = np.zeros(len(counts))
    for length in lengths:
        n, s = rows[length:] - rows[:-length], hits[length:] - hits[:-length]
        found = s > 0.0
        bounds = betaincinv(s[found], n[found] - s[found] + 1.0, level)
        ends = best[length - 1 :]
        ends[found] = np.maximum(ends[found], bounds)
    return np.maximum.accumulate(best)


@dataclass(frozen=True, eq=False)
class ConfidenceBand:
    """Two step functions with the curve between them, at every score, of G steps.

    lower[k] holds from ends[k] on, below ends[0] the bound is 0; upper[k] holds up to starts[k], above
    starts[−1] the bound is 1.
    """

    starts: Array
    ends: Array
    lower: Array
    upper: Array

    def lower_at(self, scores: Array) -> Array:
        """Return the lower bound of the curve at any scores."""
        place = np.searchsorted(self.ends, scores, side="right")
        return np.asarray(np.r_[0.0, self.lower][place])

    def upper_at(self, scores: Array) -> Array:
        """Return the upper bound of the curve at any scores."""
        place = np.searchsorted(self.starts, scores, side="left")
        return np.asarray(np.r_[self.upper, 1.0][place])

    def crossings(self) -> tuple[Segment, ...]:
        """Return where the lower bound is above the upper one: no curve that never falls fits there."""
        ticks = np.unique(np.r_[self.starts, self.ends])
        # At the ticks, and between them: the lower bound of the tick before, the upper of the next.
        below, above = self.lower_at(ticks), self.upper_at(ticks)
        crossed = np.empty(2 * len(ticks) - 1, dtype=bool)
        crossed[::2] = below > above
        crossed[1::2] = below[:-1] > above[1:]
        edges = np.flatnonzero(np.diff(np.r_[False, crossed, False]))
        runs = zip(edges[::2], edges[1::2] - 1, strict=True)
        return tuple(Segment(float(ticks[a // 2]), float(ticks[(b + 1) // 2])) for a, b in runs)

    def too_low(self) -> list[Segment]:
        """Return the scores that lie below the band: the curve is proved to be above the diagonal."""
        stops = np.r_[self.ends[1:], self.ends[-1]]
        return _joined(self.ends, np.minimum(self.lower, stops), self.lower > self.ends)

    def too_high(self) -> list[Segment]:
        """Return the scores that lie above the band: the curve is proved to be below the diagonal."""
        begins = np.r_[self.starts[0], self.starts[:-1]]
        return _joined(np.maximum(self.upper, begins), self.starts, self.upper < self.starts)


def _joined(lows: Array, highs: Array, chosen: NDArray[np.bool_]) -> list[Segment]:
    """Join ranges that touch."""
    found: list[Segment] = []
    for low, high in zip(lows[chosen].tolist(), highs[chosen].tolist(), strict=True):
        if found and low <= found[-1].high:
            found[-1] = Segment(found[-1].low, max(high, found[-1].high))
        else:
            found.append(Segment(low, high))
    return found
