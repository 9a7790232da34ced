"""Paths: sums along the order of the scores, and how far they stray."""

# ruff: noqa: D102 -- a method that overrides another is documented where it is first defined.

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from caltest._narrow import over_columns
from caltest._parallel import ALONE, Workers
from caltest._tiles import blocks
from caltest._work import Work
from caltest.forms.base import ROUNDING, Array, Form, Labels, Moments, effective_surprises
from caltest.forms.signs import Clusters, HasSigns, OfOneEvent, SignedPath, SignedSums

# ------------------------------------------------------------------ brownian


BrownianFunctional: TypeAlias = Literal["maximum", "range"]

_MEAN_OF_ABSOLUTE = float(np.sqrt(2.0 / np.pi))
_OVERSHOOT = 0.5826  # −ζ(1/2)/√(2π)
_CATALAN = 0.9159655941772190
#: E T, E T², E T³, and how many boundaries T measures the distance of.
_MOMENTS: dict[BrownianFunctional, tuple[float, float, float, int]] = {
    "maximum": (float(np.sqrt(np.pi / 2.0)), 2.0 * _CATALAN, _MEAN_OF_ABSOLUTE * np.pi**3 / 8.0, 1),
    "range": (2.0 * _MEAN_OF_ABSOLUTE, 4.0 * float(np.log(2.0)), _MEAN_OF_ABSOLUTE * np.pi**2 / 1.5, 2),
}


@dataclass(frozen=True)
class BrownianLimit:
    """The limit of a statistic T under H0: T/``scale`` tends to a functional of Brownian motion."""

    functional: BrownianFunctional  #: "maximum" for sup |W| on [0, 1], "range" for sup W − inf W.
    scale: float  #: σ, the standard deviation of the path at its end; 0 if all labels are certain.
    surprises: float  #: Unlikely labels that make the path, :func:`effective_surprises`.
    step: float = 0.0  #: Standard deviation of its steps, averaged in the time of the variance.

    @property
    def moments(self) -> Moments:
        """Mean, variance and skewness, the mean less what a path of steps misses between them.

        P(sup |W| > x) = 4 Σ_{k≥1} (−1)^{k−1} Q((2k − 1) x) gives sup |W| the moments √(π/2), 2 G
        (Catalan's constant) and √(2/π) π³/8; P(range > x) = 8 Σ_{k≥1} (−1)^{k−1} k Q(k x) gives the
        range 2 √(2/π), 4 log 2 and √(2/π) 2π²/3. A walk overshoots a boundary by about 0.583 of a step,
        so the range, with two boundaries, lacks twice that (Siegmund 1985, Section 10.4). Both are
        at least |W(1)|, whose mean is √(2/π).
        """
        if self.scale == 0.0:
            return Moments(0.0, 0.0, 0.0, surprises=self.surprises)
        first, second, third, ends = _MOMENTS[self.functional]
        mean = max(first - ends * _OVERSHOOT * self.step / self.scale, _MEAN_OF_ABSOLUTE)
        cumulant = third - 3.0 * first * second + 2.0 * first**3
        standard = Moments.of_cumulants(mean, second - first**2, cumulant, surprises=self.surprises)
        return standard.scaled(self.scale)


class HasBrownianLimit(Form):
    """A functional of a path that tends to Brownian motion under H0, given the predictions."""

    @property
    @abstractmethod
    def brownian_limit(self) -> BrownianLimit:
        """The functional and the scale."""


# ------------------------------------------------------------------ cumulative


def strayed(paths: Array, functional: BrownianFunctional) -> Array:
    """Return how far paths (B, K) that start in 0 stray from it, (B,)."""
    return apart(paths.min(axis=1, initial=0.0), paths.max(axis=1, initial=0.0), functional)


def apart(lowest: Array, highest: Array, functional: BrownianFunctional) -> Array:
    """Return the same from the least and the largest value of every path, 0 included."""
    return np.asarray(highest - lowest if functional == "range" else np.maximum(highest, -lowest))


@dataclass(frozen=True, eq=False)
class CumulativeDifference(OfOneEvent, HasBrownianLimit):
    """How far C(x) = n⁻¹ Σ_{p_i ≤ x} (y_i − p_i) strays from 0, where it starts.

    All rows of one score are one step of C, so their order cannot matter. Given the predictions and
    under H0, C is a martingale in x.
    """

    scores: Array  #: The probabilities p of class 1, (n,).
    functional: BrownianFunctional  #: "maximum" for max |C|, "range" for max C − min C.
    weights: Array | None = None  #: w of w (y − p), (n,), and n their sum; None for ones.

    @property
    def row_scores(self) -> Array:
        """Those of the path's end."""
        steps = np.ones(len(self.scores)) if self.weights is None else self.weights
        return np.column_stack([-self.scores, 1.0 - self.scores]) * steps[:, None]

    @cached_property
    def _order(self) -> NDArray[np.intp]:
        return np.argsort(self.scores)  # equal scores in any order, which takes a fifth of the time

    @cached_property
    def _ordered(self) -> Array:
        return self.scores.take(self._order)

    @cached_property
    def _ends(self) -> NDArray[np.intp]:
        """Return the last row of every score, in sorted order, (K,)."""
        last = np.append(self._ordered[1:] != self._ordered[:-1], True)
        return np.flatnonzero(last)

    @cached_property
    def _expected(self) -> Array:
        """Return Σ_{p_i ≤ x} p_i at every score x, (K,)."""
        return np.cumsum(self._per_score(self._ordered, 1))

    @cached_property
    def _steps(self) -> Array | None:
        """Return the weights in sorted order."""
        return None if self.weights is None else self.weights.take(self._order)

    @cached_property
    def _total(self) -> float:
        return float(len(self.scores) if self.weights is None else self.weights.sum())

    def _per_score(self, ordered: Array, power: int) -> Array:
        """Add up what depends on a row's score alone, (n,) in order, over the rows of each, (K,).

        It is multiplied by a power of the weights.
        """
        if self._steps is not None:
            starts = np.append(0, self._ends[:-1] + 1)
            return np.asarray(np.add.reduceat(self._steps**power * ordered, starts))
        if len(self._ends) == len(ordered):
            return ordered
        return np.diff(self._ends, prepend=-1) * ordered[self._ends]

    @property
    def resolution(self) -> float:
        """Rounding of C: of a sum of K products, relative to the sum, and of a difference.

        At either end of the range it is at most K + 2 units in the last place (half an epsilon each).
        """
        rounding = np.finfo(np.float64).eps * len(self._ends) * float(self._expected[-1])
        return 2.0 * rounding / self._total + ROUNDING

    @property
    def brownian_limit(self) -> BrownianLimit:
        """The scale is the standard deviation of C at its end, n⁻¹ √(Σ w_i² p_i (1 − p_i))."""
        others = 1.0 - self._ordered
        variances = self._ordered * others
        steps = self._per_score(variances, 2)
        if self._steps is not None:
            variances *= self._steps**2
        total = float(variances.sum())
        scale = float(np.sqrt(total)) / self._total
        surprises = effective_surprises(variances, np.minimum(self._ordered, others))
        weighted = float(np.vdot(steps, np.sqrt(steps)))
        step = weighted / total / self._total if total > 0.0 else 0.0
        return BrownianLimit(self.functional, scale, surprises, step)

    def work(self, draws: int) -> Work:
        return {"label": float(draws) * len(self.scores)}

    def signed(self, labels: Labels, clusters: Clusters) -> SignedPath:
        residuals = (labels - self.scores)[self._order]
        return SignedPath(
            residuals if self._steps is None else self._steps * residuals,
            clusters.codes[self._order],
            self._ends,
            self._finished,
            clusters.count,
            self.resolution,
        )

    def _finished(self, lowest: Array, highest: Array) -> Array:
        return apart(lowest, highest, self.functional) / self._total

    def value(self, labels: Labels, workers: Workers = ALONE) -> float:
        # One path is followed sooner than a compiled loop is imported.
        events = labels.take(self._order)
        steps = events if self._steps is None else self._steps * events
        path = np.cumsum(steps)[self._ends] - self._expected
        return float(strayed(path[None], self.functional)[0] / self._total)

    def of_labels(self, labels: Labels, workers: Workers = ALONE) -> Array:
        from caltest.loops import rows as _loops

        lowest, highest = np.empty(len(labels)), np.empty(len(labels))
        if self._steps is None:
            _loops.extremes(labels, self._order, self._ends, self._expected, lowest, highest)
        else:
            along = self._order, self._ends, self._steps, self._expected
            _loops.extremes_of_steps(labels, *along, lowest, highest)
        return self._finished(lowest, highest)


# ------------------------------------------------------------------ scan


Positions: TypeAlias = NDArray[np.intp]
#: Which errors count: claiming too much, too little, or either.
Side: TypeAlias = Literal["over", "under"]

_FEWEST_ROWS = 64  # of the shortest intervals: in fewer, only enormous errors could be found
_HALVINGS = 6  # more intervals raise the level of chance; of many rows, where that costs little, more
_MANY_ROWS = 1024
_MOST_HALVINGS = 8
_ORDERED = 2**22  # labels put in order at a time


class Level(NamedTuple):
    """Intervals of one length: ``width`` pieces long, one starting every ``step`` pieces."""

    step: int
    width: int


@dataclass(frozen=True, eq=False)
class Intervals:
    """Ranges of the rows in the order of their scores, as unions of neighbouring pieces."""

    order: Positions  #: (n,) the rows in order.
    edges: Positions  #: (K + 1,) where pieces begin in that order, and the end; pieces may be empty.
    levels: tuple[Level, ...]  #: Which unions of pieces are the L intervals.

    @classmethod
    def dyadic(cls, scores: Array) -> Intervals:
        """Return intervals of n, n/2, n/4, … rows, each overlapping the next by half.

        Equal scores stay together: an end that would cut them moves to the nearer end of their group.
        The shortest have at least 64 rows and n/64; of more than 65 536 rows, at least 1024 and n/256.

        Examples
        --------
        >>> Intervals.dyadic(np.linspace(0, 1, 128)).bounds.tolist()
        [[0, 128], [0, 64], [32, 96], [64, 128]]
        """
        n = len(scores)
        order = np.argsort(scores, kind="stable")
        halvings = max(
            min(_HALVINGS, int(np.log2(max(n / _FEWEST_ROWS, 1.0)))),
            min(_MOST_HALVINGS, int(np.log2(max(n / _MANY_ROWS, 1.0)))),
        )
        pieces = 2 ** (halvings + 1)
        edges, ordered = np.round(np.linspace(0, n, pieces + 1)).astype(np.intp), scores[order]
        cut = ordered[np.minimum(edges[1:-1], n - 1)]
        low = np.searchsorted(ordered, cut, side="left")
        high = np.searchsorted(ordered, cut, side="right")
        edges[1:-1] = np.where(edges[1:-1] - low <= high - edges[1:-1], low, high)
        halves = [pieces // 2 ** (j + 1) for j in range(halvings + 1)]
        return cls(order, edges, tuple(Level(half, 2 * half) for half in halves))

    @classmethod
    def of_cells(cls, cells: Positions) -> Intervals:
        """Return the bins (n,), 0..K−1, each an interval of its own."""
        edges = np.concatenate([[0], np.cumsum(np.bincount(cells))]).astype(np.intp)
        return cls(np.argsort(cells, kind="stable"), edges, (Level(1, 1),))

    @cached_property
    def in_pieces(self) -> tuple[Positions, Positions]:
        """The first piece, and that after the last, of every interval, (L,) each."""
        pieces = np.arange(len(self.edges))
        begins = [pieces[: -level.width : level.step] for level in self.levels]
        ends = [pieces[level.width :: level.step] for level in self.levels]
        return np.concatenate(begins), np.concatenate(ends)

    @cached_property
    def bounds(self) -> Positions:
        """First row and row after the last, in order, of every interval, (L, 2)."""
        return np.column_stack([self.edges[places] for places in self.in_pieces])

    @cached_property
    def filled(self) -> NDArray[np.bool_]:
        """Which intervals hold rows, (L,): equal scores may leave some without."""
        return np.asarray(self.bounds[:, 1] > self.bounds[:, 0])

    def pieces(self, labels: Labels, order: Positions, steps: Array | None = None) -> NDArray[Any]:
        """Sum labels (B, n), times steps (n,), over every piece of an order of theirs: (B, K)."""
        from caltest.loops import rows as _loops

        if steps is not None:
            sums = np.empty((len(labels), len(self.edges) - 1))
            _loops.piece_steps(labels, order, self.edges, steps, sums)
            return sums
        counts = np.empty((len(labels), len(self.edges) - 1), dtype=np.int64)
        _loops.piece_sums(labels, order, self.edges, counts)
        return counts

    def sums(self, pieces: NDArray[np.generic]) -> Iterator[tuple[slice, Array]]:
        """Yield the sums over intervals of (B, K, …) pieces, level by level: (B, length, …)."""
        running = np.zeros((len(pieces), len(self.edges), *pieces.shape[2:]))
        np.cumsum(pieces, axis=1, out=running[:, 1:])
        start = 0
        for step, width in self.levels:
            found = running[:, width::step] - running[:, :-width:step]
            yield slice(start, start + found.shape[1]), found
            start += found.shape[1]


@dataclass(frozen=True, eq=False)
class LargestError(HasSigns):
    """T = max_I Σ_{i in I} (p_i − y_i) / (√(Σ_I p_i (1 − p_i)) + 1), over intervals I.

    For the side "under" it is y − p that is summed, for None its absolute sum. On one side, T moves
    one way in every label. The 1 keeps intervals of nearly certain rows from having a say that single
    surprises give them.
    """

    probs: Array  #: The predictions of two classes, (n, 2).
    intervals: Intervals  #: They depend on predictions only.
    side: Side | None  #: "over" counts where class 1 is predicted too high; None either.
    weights: Array | None = None  #: w ≥ 0 of w (p − y), (n,), 1 on average; None for ones.

    @cached_property
    def _expected(self) -> Array:
        """Return Σ_I p_i, (L,)."""
        p = self.probs[:, 1]
        return self._summed(p if self.weights is None else self.weights * p)

    @cached_property
    def _scale(self) -> Array:
        """Return √(Σ_I p_i (1 − p_i)) + 1, (L,)."""
        variances = over_columns(np.multiply, self.probs)
        if self.weights is not None:
            variances = self.weights**2 * variances
        return np.asarray(np.sqrt(self._summed(variances).clip(min=0.0)) + 1.0)

    def _summed(self, values: Array) -> Array:
        running = np.concatenate([[0.0], np.cumsum(values[self.intervals.order])])
        starts, stops = self.intervals.bounds.T
        return np.asarray(running[stops] - running[starts])

    @property
    def resolution(self) -> float:
        """Rounding of the sums of p."""
        return ROUNDING * float((self._expected / self._scale).max() + 1.0)

    def work(self, draws: int) -> Work:
        return {"label": float(draws) * len(self.probs)}

    def signed(self, labels: Labels, clusters: Clusters) -> SignedSums:
        intervals = self.intervals
        sizes = np.diff(intervals.edges)
        pieces = np.empty(len(labels), dtype=np.intp)
        pieces[intervals.order] = np.repeat(np.arange(len(sizes)), sizes)
        residuals = labels - self.probs[:, 1]
        if self.weights is not None:
            residuals *= self.weights
        sums = clusters.sums_at(pieces, residuals, len(sizes))
        return SignedSums(sums, self._of_pieces, even=self.side is None, rounding=self.resolution)

    def _of_pieces(self, sums: Array) -> Array:
        """Return the (B,) values from sums of y − p over the pieces, (B, K)."""
        values = np.full(len(sums), -np.inf)
        for level, errors in self.intervals.sums(sums):
            values = np.maximum(values, self._largest(level, -errors))
        return values

    def _largest(self, level: slice, errors: Array) -> Array:
        """Return the largest of Σ_I (p_i − y_i) over the intervals of a level, standardised."""
        if self.side is None:
            np.abs(errors, out=errors)
        elif self.side == "under":
            np.negative(errors, out=errors)
        errors /= self._scale[level]
        errors[:, ~self.intervals.filled[level]] = -np.inf
        return np.asarray(errors.max(axis=1))

    def of_labels(self, labels: Labels, workers: Workers = ALONE) -> Array:
        values = np.full(len(labels), -np.inf)
        for draws in blocks(len(labels), max(1, _ORDERED // labels.shape[1])):
            pieces = self.intervals.pieces(labels[draws], self.intervals.order, self.weights)
            for level, events in self.intervals.sums(pieces):
                errors = self._largest(level, self._expected[level] - events)
                values[draws] = np.maximum(values[draws], errors)
        return values
