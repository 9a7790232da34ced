"""Paths: sums along the order of the scores, and their largest distance from 0."""

# ruff: noqa: D102 -- a method that overrides another is documented where it is first defined.

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Literal, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from caltest._parallel import ALONE, Workers
from caltest._sums import Mask, Places, blocks
from caltest.clusters import Clusters
from caltest.forms import base
from caltest.forms.base import ROUNDING, Array, Form, Labels
from caltest.forms.signs import OfOneEvent, Signed
from caltest.forms.sums import FEWEST_ROWS, HasEvents, Rows, Sums
from caltest.laws.classes import Bits
from caltest.scores import Steps, steps_of

# ------------------------------------------------------------------ cumulative


def strayed(paths: Array, functional: base.BrownianFunctional) -> Array:
    """Return the distance from 0 of paths (B, K) that start in 0, (B,)."""
    return apart(paths.min(axis=1, initial=0.0), paths.max(axis=1, initial=0.0), functional)


def apart(lowest: Array, highest: Array, functional: base.BrownianFunctional) -> Array:
    """Return that distance from the smallest and the largest value of every path, 0 included."""
    return np.asarray(highest - lowest if functional == "range" else np.maximum(highest, -lowest))


@dataclass(frozen=True, eq=False)
class CumulativeDifference(OfOneEvent, base.HasBrownianLimit, HasEvents):
    """Distance of C(x) = n⁻¹ Σ_{p_i ≤ x} (y_i − p_i) from 0, where it starts.

    All rows with one score are one step of C, so their order cannot matter. Given the predictions and
    under H0, C is a martingale in x.
    """

    functional: base.BrownianFunctional  #: "maximum" for max |C|, "range" for max C − min C.
    weights: Array  #: w of w (y − p), (n,), and n their sum.

    takes_bits = True

    @property
    def row_scores(self) -> Array:  # type: ignore[override]
        """Scores of the path's end."""
        return np.column_stack([-self.chances, 1.0 - self.chances]) * self.weights[:, None]

    @cached_property
    def _order(self) -> Places:
        return np.argsort(self.chances)  # equal scores in any order, which takes a fifth of the time

    @cached_property
    def _ordered(self) -> Array:
        return self.chances.take(self._order)

    @cached_property
    def _ends(self) -> Places:
        """Last row of every score, in sorted order, (K,)."""
        return np.flatnonzero(np.append(self._ordered[1:] != self._ordered[:-1], True))

    @cached_property
    def _expected(self) -> Array:
        """Σ_{p_i ≤ x} p_i at every score x, (K,)."""
        return np.cumsum(self._per_score(self._ordered, 1))

    @cached_property
    def _steps(self) -> Array | None:
        """Weights in sorted order, in the form that loops take."""
        steps = steps_of(self.weights)
        return None if steps is None else steps.take(self._order)

    @cached_property
    def _total(self) -> float:
        return float(self.weights.sum())

    def _per_score(self, ordered: Array, power: int) -> Array:
        """Sum values that depend on a row's score only, (n,) in order, within each score, (K,).

        Values are multiplied by a power of the weights.
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
    def brownian_limit(self) -> base.BrownianLimit:
        """The scale is the standard deviation of C at its end, n⁻¹ √(Σ w_i² p_i (1 − p_i))."""
        others = 1.0 - self._ordered
        variances = self._ordered * others
        steps = self._per_score(variances, 2)
        if self._steps is not None:
            variances *= self._steps**2
        total = float(variances.sum())
        surprises = base.effective_surprises(variances, np.minimum(self._ordered, others))
        step = float(np.vdot(steps, np.sqrt(steps))) / total / self._total if total > 0.0 else 0.0
        return base.BrownianLimit(self.functional, float(np.sqrt(total)) / self._total, surprises, step)

    def signed(self, labels: Labels, clusters: Clusters) -> Signed:
        steps, codes = (
            (self.weights * (labels - self.chances))[self._order],
            clusters.codes[self._order],
        )
        # A sign of 1 adds 2 r to −r.
        of_signs = partial(self._of_bits, codes, 2.0 * steps, np.cumsum(steps)[self._ends])
        return Signed(of_signs, clusters.count, True, self.resolution)

    def _finished(self, lowest: Array, highest: Array) -> Array:
        return apart(lowest, highest, self.functional) / self._total

    def value(self, labels: Labels, workers: Workers = ALONE) -> float:
        # Following one path takes less time than importing a compiled loop.
        if self._steps is None:
            # Labels become the last bits of scores: sorting numbers takes half the time of argsort.
            keys = np.sort(self.chances.view(np.int64) << 1 | labels)
            vars(self)["_ordered"] = (keys >> 1).view(np.float64)
            events = np.cumsum(keys & 1)
        else:
            events = np.cumsum((labels * self.weights).take(self._order))
        path = events[self._ends] - self._expected
        return float(strayed(path[None], self.functional)[0] / self._total)

    def of_labels(self, labels: Labels, workers: Workers = ALONE) -> Array:
        return self._of_bits(self._order, self._steps, self._expected, labels)

    def _of_bits(self, order: Places, steps: Array | None, expected: Array, labels: Labels) -> Array:
        from caltest.loops import rows as _loops

        lowest, highest = np.empty((2, len(labels)))
        for draws, words in Bits.of(labels):
            _loops.extremes(
                words.take(order), self._ends, steps, expected, lowest[draws], highest[draws]
            )
        return self._finished(lowest, highest)

    @property
    def by_events(self) -> bool:
        return self._steps is None and len(self.chances) >= FEWEST_ROWS

    @cached_property
    def _places(self) -> tuple[NDArray[np.int32], Array]:
        """Place of every row's score among the distinct ones; expected sums up to each."""
        sizes, place_of = np.diff(self._ends, prepend=-1), np.empty(len(self.chances), dtype=np.int32)
        place_of[self._order] = np.repeat(np.arange(len(sizes)), sizes)
        return place_of, np.append(0.0, self._expected)

    def of_events(self, rows: Rows, ends: Rows, column: int) -> Array:
        """Return the same values from events only: between two events C falls."""
        from caltest.loops import rows as _loops

        place_of, expected = self._places
        lowest, highest = np.empty(len(rows)), np.empty(len(rows))
        _loops.extremes_of_events(rows, ends, column, place_of, expected, lowest, highest)
        return apart(lowest, highest, self.functional) / len(place_of)


# ------------------------------------------------------------------ as many bins as rise

_HELD = 2**22  # numbers of a block of draws, 32 MiB
_ROUNDED = 1e-12  # tolerance of a bin's number for rows on an edge
_EQUAL = 1e-9  # rates of weighted rows that differ by less are equal up to rounding


@dataclass(frozen=True, eq=False)
class RisingBins(Form):
    """T = (Σ_b n_b/n |ȳ_b − p̄_b|^q)^(1/q), with as many bins as keep the rates ȳ_b in order.

    Bins have equal numbers of rows. Their number grows by one until the rates fall somewhere.
    """

    chances: Array  #: The probabilities p of class 1, (n,).
    weights: Array  #: (n,).
    norm: int  #: q.

    resolution = 2.0 * ROUNDING

    @cached_property
    def _groups(self) -> tuple[Places, Places, Array, Array]:
        """Return the rows in order, and the place there where each of the G distinct scores begins.

        Also return its weight, and the share of all rows that comes before its middle.
        """
        order = np.argsort(self.chances, kind="stable")
        starts = np.flatnonzero(np.diff(self.chances[order], prepend=-1.0))
        sizes = np.add.reduceat(self.weights[order], starts)
        ends = np.cumsum(sizes)
        return order, starts, sizes, (ends - 0.5 * sizes) / ends[-1]

    def _edges(self, bins: int, first: int = 0, last: int = -1) -> Places:
        """Return where bins begin, as in `EqualMass`, and the end, for bins around some scores."""
        middles = self._groups[-1]
        low, high = np.floor(middles[[first, last]] * bins)
        return np.unique(np.searchsorted(middles, (np.arange(low, high + 3.0) - _ROUNDED) / bins))

    def _rise(self, rates: Array) -> Mask:
        slack = 0.0 if steps_of(self.weights) is None else _EQUAL
        return np.asarray((np.diff(rates, axis=1) >= -slack).all(axis=1))

    def _bins(self, events: Array, sizes: Array) -> Places:
        """Return the number of bins, (B,), for the events of every score (B, G)."""
        rising = self._rise(events / sizes)  # then they rise in bins too
        found, left = np.where(rising, len(self.chances), 1), np.flatnonzero(~rising)
        kept = events[left]
        # Before the first event all rates are 0, and after the last row without one they are 1.
        first = int(kept.any(axis=0).argmax())
        last = int(np.flatnonzero((kept < sizes).any(axis=0)).max(initial=first))
        for bins in range(2, len(self.chances) + 1):
            if not len(left):
                break
            edges = self._edges(bins, first, last)
            inside, begins = slice(edges[0], edges[-1]), edges[:-1] - edges[0]
            sums, mass = (np.add.reduceat(each[..., inside], begins, -1) for each in (kept, sizes))
            if not (rising := self._rise(sums / mass)).all():
                left, kept = left[rising], kept[rising]
            found[left] = bins
        return found

    def of_labels(self, labels: Labels, workers: Workers = ALONE) -> Array:
        (order, starts, sizes, _), found = self._groups, np.empty(len(labels))
        for part in blocks(len(labels), max(1, _HELD // len(order))):
            events = np.add.reduceat(self.weights[order] * labels[part][:, order], starts, axis=1)
            residuals, counts = events - sizes * self.chances[order][starts], self._bins(events, sizes)
            for bins in np.unique(counts):
                own, edges = counts == bins, self._edges(int(bins))[:-1]
                mass = np.add.reduceat(sizes, edges)
                errors = np.abs(np.add.reduceat(residuals[own], edges, axis=1) / mass) ** self.norm
                found[part][own] = np.sum(errors * (mass / mass.sum()), axis=1) ** (1.0 / self.norm)
        return found


# ------------------------------------------------------------------ scan


#: Tested errors: predictions too high, or too low.
Side: TypeAlias = Literal["over", "under"]

_FEWEST_ROWS = 64  # in the shortest intervals: with fewer, only enormous errors could be found
_HALVINGS = 6  # more intervals raise the maximum by chance, which costs little with many rows
_MANY_ROWS = 1024
_MOST_HALVINGS = 8


class Level(NamedTuple):
    """Intervals of one length: ``width`` pieces long, one starting every ``step`` pieces."""

    step: int
    width: int


@dataclass(frozen=True, eq=False)
class Intervals:
    """Ranges of the rows in the order of their scores, as unions of neighbouring pieces."""

    order: Places  #: Rows in order, (n,).
    edges: Places  #: Starts of the pieces in that order, and the end, (K + 1,); pieces may be empty.
    levels: tuple[Level, ...]  #: The unions of pieces that are the L intervals.

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
        few, many = (int(np.log2(max(n / rows, 1.0))) for rows in (_FEWEST_ROWS, _MANY_ROWS))
        halvings = max(min(_HALVINGS, few), min(_MOST_HALVINGS, many))
        pieces = 2 ** (halvings + 1)
        edges, ordered = np.round(np.linspace(0, n, pieces + 1)).astype(np.intp), scores[order]
        cut = ordered[np.minimum(edges[1:-1], n - 1)]
        low = np.searchsorted(ordered, cut, side="left")
        high = np.searchsorted(ordered, cut, side="right")
        edges[1:-1] = np.where(edges[1:-1] - low <= high - edges[1:-1], low, high)
        halves = [pieces // 2 ** (j + 1) for j in range(halvings + 1)]
        return cls(order, edges, tuple(Level(half, 2 * half) for half in halves))

    @classmethod
    def of_cells(cls, cells: Places) -> Intervals:
        """Return the bins (n,), 0..K−1, as one interval each."""
        edges = np.concatenate([[0], np.cumsum(np.bincount(cells))]).astype(np.intp)
        return cls(np.argsort(cells, kind="stable"), edges, (Level(1, 1),))

    @cached_property
    def in_pieces(self) -> tuple[Places, Places]:
        """The first piece of every interval, and the piece after its last, (L,) each."""
        pieces = np.arange(len(self.edges))
        begins = [pieces[: -level.width : level.step] for level in self.levels]
        ends = [pieces[level.width :: level.step] for level in self.levels]
        return np.concatenate(begins), np.concatenate(ends)

    @cached_property
    def bounds(self) -> Places:
        """First row and row after the last, in order, of every interval, (L, 2)."""
        return np.column_stack([self.edges[places] for places in self.in_pieces])

    @cached_property
    def filled(self) -> Mask:
        """Mask of the intervals that hold rows, (L,): equal scores may leave some empty."""
        return np.asarray(self.bounds[:, 1] > self.bounds[:, 0])

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
class LargestError(OfOneEvent, Sums):
    """T = max_I Σ_{i in I} (p_i − y_i) / (√(Σ_I p_i (1 − p_i)) + 1), over intervals I.

    For the side "under" y − p is summed, for "both" the absolute sum is used. On one side, T is
    monotone in every label. The 1 keeps single surprises from dominating intervals of nearly certain
    rows.
    """

    intervals: Intervals  #: A function of the predictions only.
    side: str  #: "over" tests for predictions of class 1 that are too high; "both" for either error.
    weights: Array  #: w ≥ 0 of w (p − y), (n,), 1 on average.

    @cached_property
    def scores(self) -> Steps:
        """Residuals of the event, by piece of the intervals."""
        order, edges = self.intervals.order, self.intervals.edges
        piece = np.empty(len(order), dtype=np.intp)  # of every row
        piece[order] = np.repeat(np.arange(len(edges) - 1), np.diff(edges))
        return Steps.of_event(self.chances, self.weights, piece, len(edges) - 1)

    @property
    def even(self) -> bool:  # type: ignore[override]
        """True if both sides are tested."""
        return self.side == "both"

    @cached_property
    def _scale(self) -> Array:
        """√(Σ_I p_i (1 − p_i)) + 1, (L,)."""
        variances = self.weights**2 * (self.chances * (1.0 - self.chances))
        return np.asarray(np.sqrt(self._summed(variances).clip(min=0.0)) + 1.0)

    def _summed(self, values: Array) -> Array:
        running = np.concatenate([[0.0], np.cumsum(values[self.intervals.order])])
        starts, stops = self.intervals.bounds.T
        return np.asarray(running[stops] - running[starts])

    @property
    def resolution(self) -> float:
        """Rounding error of the sums of p."""
        return ROUNDING * float((self._summed(self.weights * self.chances) / self._scale).max() + 1.0)

    def reduce(self, sums: Array, fixed: Array) -> Array:
        values = np.full(len(sums), -np.inf)
        for level, errors in self.intervals.sums(sums):
            if self.side == "both":
                np.abs(errors, out=errors)
            elif self.side == "over":
                np.negative(errors, out=errors)
            errors /= self._scale[level]
            errors[:, ~self.intervals.filled[level]] = -np.inf
            np.maximum(values, errors.max(axis=1), out=values)
        return values
