"""Certificates by bins and of a rising curve, side by side, and the rows that each would need.

Of the package are the bounds by bins (:func:`caltest.certificate`); the isotonic band, the share of the
rows within a distance, and the rows needed are kept for the study.

Source of the band: Dimitriadis, Dümbgen, Henzi, Puke, Ziegel, "Honest calibration assessment for binary
outcome predictions", Biometrika 110 (2023).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import betaincinv
from scipy.stats import binom

import caltest
from caltest.binning import EqualMass, EqualWidth, intervals

Array = NDArray[np.float64]
Labels = NDArray[np.integer]

CHANCE, SHARE = 0.8, 0.9  # of a plan: the chance to reach the distance, and the share of the rows
_KEPT_FOR_CHANCE = 0.1
_MOST_ROWS = 10**11
_MOST_CELLS_PLANNED = 2000  # as many as 16 million rows have
_FEW_CELLS = 64  # up to which samples are drawn, beyond which expected ones do
_DRAWS = 200
_LENGTHS = 45  # of intervals in a plan: neighbours differ by a sixth or less


@dataclass(frozen=True, eq=False)
class Certified:
    """What is certified: means of bins, as `caltest.certificate` does, or cells of a rising curve."""

    method: str
    confidence: float
    n_samples: int
    level: float
    distance: float
    over: float
    under: float
    proved: float
    ranges: int  # that are proved to be miscalibrated
    crosses: bool
    starts: Array
    ends: Array
    counts: Array
    predicted: Array
    lower: Array
    upper: Array
    distances: Array

    def distance_for(self, share: float) -> float:
        """Return a distance that is certified for at least this share of the rows."""
        if self.crosses:
            return self.distance
        order = np.argsort(self.distances, kind="stable")
        rows = np.cumsum(self.counts[order])
        place = int(np.searchsorted(rows, share * self.n_samples * (1.0 - 1e-12)))
        return float(self.distances[order][place])

    def band(self, scores: Array) -> tuple[Array, Array]:
        """Return the isotonic bounds at any scores."""
        band = ConfidenceBand(self.starts, self.ends, self.lower, self.upper)
        return band.lower_at(scores), band.upper_at(scores)

    def samples_for(self, wanted: float) -> int | None:
        """Return about how many rows a calibrated model needs to be certified within ``wanted``."""
        if self.crosses or self.proved >= wanted:
            return None
        rows = _rows_for_bins if self.method == "bins" else _rows_for_band
        return rows(self, wanted, self.predicted)

    def __str__(self) -> str:
        """Say what is certified."""
        by = f"{self.method}, {len(self.counts)} parts"
        return f"{by}: within {self.distance:.4f}, at least {self.proved:.4f} somewhere"


def certify(
    probs: Array,
    labels: Labels,
    *,
    method: str = "bins",
    n_bins: int = 10,
    cells: int | None = None,
    lens: str | None = None,
    confidence: float = 0.95,
) -> Certified:
    """Certify by bins, or a rising curve at every score."""
    if method == "bins":
        found = caltest.certificate(probs, labels, n_bins=n_bins, lens=lens, confidence=confidence)
        return Certified(
            method,
            confidence,
            found.n_samples,
            found.level,
            found.distance,
            found.over,
            found.under,
            found.proved,
            len(found.miscalibrated),
            crosses=False,
            starts=found.starts,
            ends=found.ends,
            counts=found.counts,
            predicted=found.predicted,
            lower=found.lower,
            upper=found.upper,
            distances=found.distances,
        )
    if probs.shape[1] > 2:  # the top label
        scores, labels = probs.max(axis=1), (labels == probs.argmax(axis=1)).astype(int)
    else:
        scores = probs[:, 1]
    alpha = 1.0 - confidence
    pooled = pool(scores, np.asarray(labels), cells or cells_wanted(len(scores)))
    lower, upper = interval_bounds(pooled.counts, pooled.events, alpha)
    band = ConfidenceBand(pooled.starts, pooled.ends, lower, upper)
    over = pooled.scores - band.lower_at(pooled.scores)
    under = band.upper_at(pooled.scores) - pooled.scores
    first = np.flatnonzero(np.r_[True, np.diff(pooled.cell) > 0])
    distances, crosses = np.maximum.reduceat(np.maximum(over, under), first), band.crosses()
    sides = [max(0.0, float(each.max())) for each in (np.maximum(over, under), over, under)]
    gaps = [each[each < 0.0] for each in (over, under)]
    return Certified(
        method,
        confidence,
        len(scores),
        level_of(len(pooled.counts), alpha),
        *([1.0] * 3 if crosses else sides),
        proved=max((float(-gap.min()) for gap in gaps if len(gap)), default=0.0),
        ranges=sum(
            int(np.count_nonzero(np.diff(np.r_[False, each < 0.0].astype(int)) > 0))
            for each in (over, under)
        ),
        crosses=crosses,
        starts=pooled.starts,
        ends=pooled.ends,
        counts=pooled.counts,
        predicted=pooled.predicted,
        lower=lower,
        upper=upper,
        distances=distances,
    )


# ------------------------------------------------------------------ a curve that never falls
#
# The curve is P(event | score), where it does not decrease in the score.
#
# Rows with scores up to t have an event with probability at most p(t) each, so the Clopper–Pearson
# lower bound of any interval that ends at or before t is a lower bound of p(t); upper bounds are the
# mirror image. For any family of intervals that is chosen from the scores alone all of them hold at
# once, if every bound fails with probability at most α / (2 · number of intervals):
# docs/theory/bounds.md.
#
# Dimitriadis et al. take all intervals of the N distinct scores. Here neighbouring scores are pooled
# to G cells first, and intervals are those of whole cells: level α/(G² + G). That is rounding
# outwards: the lower bound of a cell holds from its LARGEST score on, the upper bound up to its
# SMALLEST score, so both hold for the curve at every original score and between, whatever the cells.

_CELLS_A_CUBE_ROOT = 4.0


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

    def crosses(self) -> bool:
        """Say whether the lower bound is above the upper one somewhere: no rising curve fits."""
        ticks = np.unique(np.r_[self.starts, self.ends])
        # At the ticks, and between them: the lower bound of the tick before, the upper of the next.
        below, above = self.lower_at(ticks), self.upper_at(ticks)
        return bool((below > above).any() or (below[:-1] > above[1:]).any())


# ------------------------------------------------------------------ how many rows it would need


def _smallest(enough: Callable[[float], bool], start: float, near: float) -> int | None:
    """Return a number of rows that is enough, fewer by a factor of ``near`` being too few."""
    low = high = min(max(2.0, start), _MOST_ROWS)
    while low >= 2.0 and enough(low):
        low, high = low / 2.0, low
    if low == high:
        high = 2.0 * low
        while not enough(high):
            if high > _MOST_ROWS:
                return None
            low, high = high, 2.0 * high
    while high > low * near and high - low > 1.0:
        middle = float(np.sqrt(low * high))
        low, high = (low, middle) if enough(middle) else (middle, high)
    return max(2, int(np.ceil(high)))


def _rows_for_bins(c: Certified, wanted: float, truth: Array) -> int | None:
    """Return how many rows are enough for all bins to be within ``wanted`` with the chance of 80%.

    A bin is if its count of events s has L(s) ≥ predicted − wanted and U(s) ≤ predicted + wanted. L(s)
    ≥ p is P(B ≥ s) ≤ δ for B ~ Bin(n, p): a quantile says which counts will do, and the binomial of the
    assumed truth how probable they are. (Rows that differ within the bin make it more so.)
    """
    if (np.abs(truth - c.predicted) >= wanted).any():
        return None

    def least_events(n: Array, p: Array) -> Array:
        """Return the smallest count whose lower bound is at least p."""
        found = binom.isf(c.level, n, np.clip(p, 0.0, 1.0)) + 1.0
        return np.where(p > 0.0, found, 0.0)

    def enough(rows: float) -> bool:
        n = np.maximum(np.floor(rows * c.counts / c.n_samples), 1.0)
        least = least_events(n, c.predicted - wanted)
        most = n - least_events(n, 1.0 - c.predicted - wanted)
        chances = binom.cdf(most, n, truth) - binom.cdf(least - 1.0, n, truth)
        return float(np.prod(np.clip(chances, 0.0, 1.0))) >= CHANCE

    return _smallest(enough, c.n_samples, 1.005)


def _rows_for_band(c: Certified, wanted: float, truth: Array) -> int | None:
    """Return how many rows are enough for the band to be within ``wanted`` for nine tenths of them.

    Scores are spread evenly within each cell, so that a larger sample can be cut more finely. Cells of
    a single score stay what they are; if there are few, each is bounded by its own events almost alone,
    and one of them that falls out is many rows: no fixed reserve does for all numbers of cells, and
    samples are drawn, always the same.
    """
    aim, few = (1.0 - _KEPT_FOR_CHANCE) * wanted, len(c.counts) <= _FEW_CELLS
    within = np.abs(truth - c.predicted) < (wanted if few else aim)
    if c.counts[within].sum() < SHARE * c.n_samples:
        return None
    wide, alpha = c.ends > c.starts, 1.0 - c.confidence

    def enough(rows: float) -> bool:
        cells = min(2 * cells_wanted(int(rows)), _MOST_CELLS_PLANNED)
        parts = np.where(wide, -(-cells // len(wide)), 1).astype(int)
        place = np.concatenate([(np.arange(k) + 0.5) / k for k in parts])
        scores = np.repeat(c.starts, parts) + np.repeat(c.ends - c.starts, parts) * place
        assumed = scores if truth is c.predicted else np.interp(scores, c.predicted, truth)
        shares, between = np.clip(assumed, 0.0, 1.0), np.repeat(wide, parts)
        expected = np.repeat(c.counts / parts, parts) * rows / c.n_samples
        lengths = np.unique(np.geomspace(1, len(expected), _LENGTHS).astype(int)).tolist()

        def near(counts: Array, events: Array, distance: float) -> bool:
            """Return whether the band of these events is so near, for enough rows."""
            lower, upper = interval_bounds(counts, events, alpha, lengths)
            # A score between others has the bounds of its neighbours, as rounding outwards gives.
            lower = np.where(between, np.r_[0.0, lower[:-1]], lower)
            upper = np.where(between, np.r_[upper[1:], 1.0], upper)
            inside = np.maximum(upper - scores, scores - lower) <= distance
            return float(counts[inside].sum() / counts.sum()) * (1.0 + 1e-12) >= SHARE

        if len(expected) > _FEW_CELLS:
            return near(expected, expected * shares, aim)
        draws, failed = np.random.default_rng(0), 0
        total = expected.sum()
        for _ in range(_DRAWS):
            counts = draws.multinomial(round(float(total)), expected / total)
            events = draws.binomial(counts, shares).astype(np.float64)
            failed += not near(counts.astype(np.float64), events, wanted)
            if failed > int((1.0 - CHANCE) * _DRAWS):
                return False
        return True

    # How bands of rising curves shrink.
    return _smallest(enough, c.n_samples * (c.distance_for(SHARE) / aim) ** 3, 1.03)
