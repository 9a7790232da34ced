"""A band for a curve that never falls: P(event | score), where it does not decrease in the score.

Take rows with scores in [a, b], and a score t ≥ b. If the curve p never falls, each of these rows has
an event with probability at most p(t), so their number of events is stochastically at most binomial,
and the Clopper–Pearson lower bound of a binomial share is at most p(t) with the stated probability:
rows of unequal probability make it safer, not less so. Hence, for ANY family of intervals that is
chosen from the scores alone, the largest lower bound of the intervals that end at or before t is a
lower bound of p(t), for all t at once, if every single bound fails with probability at most
α / (2 · number of intervals). Upper bounds are the mirror image: intervals that begin at or after t.

Dimitriadis et al. take all intervals of the N distinct scores: N(N + 1)/2 of them, so each bound has
level α/(N² + N). Here neighbouring scores are pooled to G cells first, and intervals are those of
whole cells: level α/(G² + G). That is rounding outwards: the lower bound of a cell holds from its
LARGEST score on, the upper bound up to its SMALLEST score, so both hold for the curve at every
original score and between, whatever the cells.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy.special import betaincinv

from caltest.binning import EqualMass, EqualWidth
from caltest.exceptions import InputError

Array: TypeAlias = NDArray[np.float64]
Labels: TypeAlias = NDArray[np.intp]

MOST_CELLS = 5000  # half a minute or so
_CELLS_A_CUBE_ROOT = 4.0


class Segment(NamedTuple):
    """A range of scores, ends included as far as the data tell."""

    low: float
    high: float


@dataclass(frozen=True, eq=False)
class Cells:
    """Rows pooled by score: the unit that intervals are made of.

    Attributes
    ----------
    starts, ends
        Smallest and largest score of every cell, (G,), increasing; equal scores are never split.
    counts, events
        Rows, and rows in which the event came true, (G,).
    stated
        Mean score, (G,).
    scores, multiplicities
        The N distinct scores, increasing, and how many rows have each.
    cell
        The cell of every distinct score, (N,).
    """

    starts: Array
    ends: Array
    counts: Array
    events: Array
    stated: Array
    scores: Array
    multiplicities: Array
    cell: NDArray[np.intp]


def cells_wanted(n_samples: int) -> int:
    """Return how many cells of equal mass, and as many of equal width, scores are pooled to.

    4 n^(1/3). An interval that settles the band of a rising curve has a width, and a share of the
    rows, of the order n^(−1/3): cells are a small part of that, and more of them would cost level.

    Examples
    --------
    >>> [cells_wanted(n) for n in (2, 1000, 1_000_000)]
    [5, 40, 400]
    """
    return round(_CELLS_A_CUBE_ROOT * math.cbrt(n_samples))


def pool(scores: Array, labels: Labels, n_cells: int) -> Cells:
    """Pool rows to cells: where a cut into equal masses, or into equal widths, lies between scores.

    The cuts depend on the scores alone. Equal masses follow the rows; equal widths keep a cell from
    being wide where rows are rare.

    Parameters
    ----------
    scores
        Probabilities of the event, (n,).
    labels
        Whether it came true, (n,) of 0 and 1.
    n_cells
        Cuts of either kind; with as many as rows, every distinct score is a cell.

    Raises
    ------
    InputError
        If there would be more than 5000 cells.

    Examples
    --------
    >>> cells = pool(np.array([0.9, 0.1, 0.1, 0.2]), np.array([1, 0, 1, 0]), 4)
    >>> cells.starts.tolist(), cells.counts.tolist(), cells.events.tolist()
    ([0.1, 0.2, 0.9], [2.0, 1.0, 1.0], [1.0, 0.0, 1.0])
    """
    values, group, multiplicities = np.unique(scores, return_inverse=True, return_counts=True)
    cuts = min(n_cells, len(scores))  # more would cost time and separate nothing more, or hardly
    mass = EqualMass(cuts).cells_of_scores(scores)
    width = EqualWidth(cuts).cells_of_scores(scores)
    of_value = np.empty((2, len(values)), dtype=np.intp)
    of_value[:, group.reshape(-1)] = mass, width  # the same for equal scores
    cell = np.r_[0, np.cumsum((np.diff(of_value) != 0).any(axis=0))]
    if cell[-1] >= MOST_CELLS:
        raise InputError(
            f"cells is {n_cells}, which makes {cell[-1] + 1:,} cells of these scores, and time grows "
            f"with their square; give fewer, at most {MOST_CELLS:,}."
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
        stated=np.clip(means, starts, ends),  # equal scores have no other mean
        scores=values,
        multiplicities=rows,
        cell=cell,
    )


def interval_bounds(
    counts: Array, events: Array, alpha: float, lengths: Iterable[int] | None = None
) -> tuple[Array, Array]:
    """Return the band at the cells: lower bounds from a cell's end on, upper ones up to its start.

    Parameters
    ----------
    counts, events
        Of every cell, (G,). They need not be whole numbers: a plan takes expected ones.
    alpha
        Probability at most with which the curve leaves the band anywhere.
    lengths
        Use intervals of these many cells only, at the same level: quicker and a little wider. Default
        None, all of them.

    Returns
    -------
    tuple of arrays
        (G,) each, both increasing. Lower: the largest Clopper–Pearson bound of the intervals [j, k']
        with k' ≤ k; upper: the smallest of the intervals [j', k'] with j' ≥ j.

    References
    ----------
    Dimitriadis, Dümbgen, Henzi, Puke, Ziegel, "Honest calibration assessment for binary outcome
    predictions", Biometrika 110 (2023), section 2.

    Examples
    --------
    One cell is a binomial share at level α/2:

    >>> low, high = interval_bounds(np.array([10.0]), np.array([10.0]), 0.05)
    >>> low.round(4).tolist(), high.tolist()
    ([0.6915], [1.0])
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
    """Two step functions with the curve between them, at every score.

    Attributes
    ----------
    starts, ends
        Where the steps are, (G,).
    lower
        lower[k] holds from ends[k] on; below ends[0] the bound is 0.
    upper
        upper[k] holds up to starts[k]; above starts[−1] the bound is 1.
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
