"""Forms of features: a scan over all slices, and a learner of residuals.

Given the columns X and the predictions, outcomes are drawn from the predictions under H0, for any
columns. Slices and kernels depend on X and the predictions only, so a search over thousands of slices
is one more statistic. Both use *residuals*: y − p for an event; the mean PIT less ½ for a number; each
has mean 0.
"""

# ruff: noqa: D102 -- a method that overrides another is documented where it is first defined.

from __future__ import annotations

import sys
from collections.abc import Sequence
from copy import deepcopy
from dataclasses import dataclass, replace
from functools import cached_property, partial
from itertools import combinations
from typing import Any, TypeAlias

import numpy as np
import scipy
from numpy.typing import NDArray

from caltest._arguments import has
from caltest._parallel import ALONE, Workers
from caltest._sums import Array, Mask, Places, blocks
from caltest._visible import attempt, quoted
from caltest.clusters import Clusters
from caltest.data.features import Feature, Features
from caltest.exceptions import InputError
from caltest.forms.base import Labels
from caltest.forms.low_rank import squared_norms
from caltest.forms.signs import FEWEST_CLUSTERS, HasSigns, Signed, signed_sums
from caltest.laws import Law, Point
from caltest.sampling import child_seed, generator

#: A column, its relation to a value ("=", "over", "at most"), and the value as text.
Condition: TypeAlias = tuple[str, str, str]

# ------------------------------------------------------------------ slices

_ALONE, _CROSSED = 8, 4  # bins of a numeric column alone, and crossed with another
_LEVELS, _CROSSED_LEVELS = 200, 12  # most levels of a category, the most frequent ones
_NEAR = 0.01  # share of rows that a cut at a round number may be off its quantile
_MOST_CROSSED = 60  # most columns that are crossed; if there are more, each is tested alone
_LEAST_VARIANCE = 1.0  # variance of the number of events in a slice; with less, nothing could be found
_HELD = 2**22  # sums held at a time
_EVERY = "others"  # name for the levels of a category that are not used alone


@dataclass(frozen=True, eq=False)
class Bins:
    """Bins of one column, and the spans of bins that make slices: (S, 2) first bins, and ends."""

    column: Feature
    codes: NDArray[np.uint8]
    count: int
    spans: Places
    ends: tuple[tuple[float, float], ...] = ()  # for numbers: the smallest and largest of every bin
    names: tuple[str, ...] = ()  # for a category

    @classmethod
    def of(cls, column: Feature, crossed: bool, min_rows: int) -> Bins:
        """Cut numbers at their quantiles, with ties together; merge rare levels of a category."""
        if column.levels:
            return cls._of_levels(column, crossed, min_rows)
        values, most = column.values, _CROSSED if crossed else _ALONE
        missing = np.isnan(values)
        known = np.sort(values[~missing])
        if not len(known):
            return cls(column, np.zeros(len(values), np.uint8), 1, np.empty((0, 2), np.intp))
        different = np.unique(known)
        near = np.multiply.outer([-_NEAR, _NEAR], np.ones(most - 1)) + np.arange(1, most) / most
        places = np.ceil(near * len(known)).astype(np.intp).clip(1, len(known)) - 1
        round_ones = [column.between(*ends) for ends in zip(*known[places].tolist(), strict=True)]
        cuts = different[:-1] if len(different) <= most else np.unique(round_ones)
        cuts = cuts[cuts < known[-1]]
        codes = np.where(missing, len(cuts) + 1, np.searchsorted(cuts, values, side="left"))
        first = known[np.append(0, np.searchsorted(known, cuts, side="right"))]
        k = len(cuts) + 1
        spans = [(a, b) for a in range(k) for b in range(a + 1, k + 1) if b - a < k]
        spans += [(k, k + 1)] * bool(missing.any())
        ends = tuple(zip(first.tolist(), np.append(cuts, known[-1]).tolist(), strict=True))
        return cls(column, codes.astype(np.uint8), k + 1, _pairs(spans), ends)

    @classmethod
    def _of_levels(cls, column: Feature, crossed: bool, min_rows: int) -> Bins:
        counts = np.bincount(column.values + 1, minlength=len(column.levels) + 1)
        often = np.argsort(-counts[1:], kind="stable")[: _CROSSED_LEVELS if crossed else _LEVELS]
        kept = [level for level in sorted(often.tolist()) if counts[level + 1] >= min_rows]
        place = np.full(len(counts), len(kept), np.uint8)  # all other levels
        place[np.array(kept, np.intp) + 1] = np.arange(len(kept))
        place[0] = len(kept) + 1
        spans = [(k, k + 1) for k in [*range(len(kept)), *[len(kept) + 1] * bool(counts[0])]]
        names = (*(column.levels[level] for level in kept), _EVERY)
        return cls(column, place[column.values + 1], len(kept) + 2, _pairs(spans), names=names)

    def condition(self, first: int, end: int) -> Condition:
        """Return the condition that selects the rows in these bins."""
        name, k = self.column.name, len(self.ends or self.names)
        if first == k:
            missing = "(missing)"
            while missing in self.names:
                missing = f"({missing})"
            return name, "=", missing
        if self.names:
            return name, "=", self.names[first]
        (least, _), (_, most), write = self.ends[first], self.ends[end - 1], self.column.written
        if least == most:
            return name, "=", write(least, least)
        over = write(self.ends[first - 1][1], least) if first else ""
        if end == k:
            return name, "over", over
        upper = write(most, self.ends[end][0])
        return (name, "over", f"{over} and at most {upper}") if over else (name, "at most", upper)

    def called(self, k: int) -> str:
        """Return the name of one bin: "at most 31", "31 to 45", "over 45", "north"."""
        _, relation, value = self.condition(k, k + 1)
        over, between, upper = value.partition(" and at most ")
        alone = f"{'' if relation == '=' else relation} {value}".strip()
        return f"{over} to {upper}" if between else alone


def _pairs(spans: list[tuple[int, int]]) -> Places:
    return np.array(spans, np.intp).reshape(-1, 2)


@dataclass(frozen=True, eq=False)
class Cells:
    """All slices: intervals of bins and levels of one column, and products of those of two.

    They are rectangles in small tables, one for each column and one for each pair, and their sums all
    come from the sums of the tables.
    """

    bins: tuple[Bins, ...]  #: Bins of every column alone, then of every column crossed.
    codes: NDArray[np.uint8]  #: Bin numbers from 1 on, (n, 2d + 1); the last column is ones.
    tables: Places  #: For each table its two columns, start, height and width, (T, 5).
    corners: Places  #: Places in the tables, (K, 4).
    which: Places  #: Bins of two columns, the second unused if there is one, and spans, (K, 6).

    @classmethod
    def of(cls, features: Features, min_rows: int) -> Cells:
        """Return the slices with at least so many rows, each only once."""
        d, start = len(features.columns), 0
        bins = [Bins.of(x, crossed, min_rows) for crossed in (False, True) for x in features.columns]
        pairs = [(j, 2 * d) for j in range(d)]
        pairs += combinations(range(d, 2 * d), 2) if d <= _MOST_CROSSED else []
        tables, corners, which = [], [], []
        for j, k in pairs:
            one, (other, width) = bins[j], (_pairs([(0, 1)]), 2)
            if k < 2 * d:
                other, width = bins[k].spans, bins[k].count + 1
            a, b = np.repeat(one.spans, len(other), axis=0).T
            u, v = np.tile(other, (len(one.spans), 1)).T
            place = [start + x * width + y for x, y in ((b, v), (a, v), (b, u), (a, u))]
            corners.append(np.column_stack(place))
            which.append(np.column_stack([np.full(len(a), j), np.full(len(a), k), a, b, u, v]))
            tables.append((j, k, start, one.count + 1, width))
            start += (one.count + 1) * width
        codes = np.column_stack([*(each.codes for each in bins), 0 * bins[0].codes]) + np.uint8(1)
        every = np.concatenate(corners), np.concatenate(which)
        found = cls(tuple(bins), np.ascontiguousarray(codes), np.array(tables), *every)
        n = len(codes)
        rows, marks = found.sums(np.stack([np.ones(n), generator(0).random(n)]))
        kept = np.flatnonzero((rows >= max(min_rows, 2)) & (rows < n))
        # Equal slices have equal sums of fixed random numbers.
        _, first = np.unique(marks[kept].round(9), return_index=True)
        return found.kept(kept[np.sort(first)])

    @property
    def count(self) -> int:
        """Number of slices, K."""
        return len(self.corners)

    def kept(self, places: Any) -> Cells:
        """Return a part of the slices."""
        return replace(self, corners=self.corners[places], which=self.which[places])

    def is_crossed(self, k: int) -> bool:
        """Whether a slice uses two columns."""
        return bool(self.which[k, 1] < len(self.bins))

    @property
    def _tables(self) -> tuple[Any, ...]:
        d, starts = len(self.bins) // 2, self.tables[:, 2]
        pairs = np.zeros((d if len(starts) > d else 0, d), np.intp)
        pairs[tuple(self.tables[d:, :2].T - d)] = starts[d:]
        places = starts[:d] + 1, pairs, np.array([each.count + 1 for each in self.bins[d:]])
        table = np.empty(self.tables[-1, 2] + self.tables[-1, 3] * self.tables[-1, 4])
        return self.codes, places, self.tables[:, 2:].copy(), np.ascontiguousarray(self.corners), table

    def sums(self, values: Any) -> Array:
        """Return the sums of values (B, n) over all slices, (B, K)."""
        from caltest.loops import features as _loops

        found = np.empty((len(values), self.count))
        given: Any = values, *self._tables, found
        _loops.cell_sums(*given)
        return found

    def moments(self, values: Array, clusters: Clusters) -> Array:
        """Return Σ_g S_g² and Σ_g S_g⁴ over the sums S_g of clusters in every slice, (2, K)."""
        from caltest.loops import features as _loops

        ends = np.cumsum(np.bincount(clusters.codes, minlength=clusters.count))
        found = np.zeros((2, self.count))
        given: Any = values, np.argsort(clusters.codes, kind="stable"), ends, *self._tables, found
        _loops.cluster_moments(*given)
        return found

    def rows(self, k: int) -> Mask:
        """Return a mask of the rows in a slice, (n,)."""
        j, other, a, b, u, v = self.which[k].tolist()
        one, two = self.codes[:, j], self.codes[:, other]
        return np.asarray((one > a) & (one <= b) & (two > u) & (two <= v))

    def conditions(self, k: int) -> tuple[Condition, ...]:
        """Return the conditions that select the rows in a slice."""
        j, other, a, b, u, v = self.which[k].tolist()
        first = self.bins[j].condition(a, b)
        return (first, self.bins[other].condition(u, v)) if self.is_crossed(k) else (first,)


# ------------------------------------------------------------------ residuals


_DRAWS_OF_VARIANCE = 32


@dataclass(frozen=True, eq=False)
class ResidualForm(HasSigns):
    """A form of residuals r_i(y_i), with mean 0."""

    law: Law
    weights: Array  #: (n,).
    usual: Any  #: The form of their sum, which defines comonotone outcomes.

    one_by_one = True

    @property
    def probs(self) -> Array:  # type: ignore[override]
        return np.asarray(self.usual.probs)

    def cells_of(self, labels: Any) -> Places:
        return np.asarray(self.usual.cells_of(labels))

    def comonotone(self) -> Any:
        return self.usual.comonotone()

    @property
    def of_event(self) -> bool:
        """Whether outcomes are 0 or 1."""
        return self.law.n_classes == 2

    def residuals(self, outcomes: Any, rows: slice = slice(None)) -> Array:
        """Return the residuals of outcomes (B, n), for some rows."""
        if self.of_event:
            return np.asarray(outcomes[:, rows] - self.law.probs[rows, 1])  # type: ignore[attr-defined]
        law: Any = self.law
        if isinstance(law, Point):
            return -law.errors(outcomes)[:, rows]
        below, at = law.cdf(outcomes)
        return np.asarray(0.5 * (below + at)[:, rows] - 0.5)

    @cached_property
    def variances(self) -> Array:
        """Variances of residuals, (n,); for numbers, from draws that ignore the outcomes."""
        if self.of_event:
            return np.asarray(self.law.probs.prod(axis=1))  # type: ignore[attr-defined]
        if isinstance(self.law, Point):  # no variance is stated
            return np.full(self.law.n_samples, float(np.square(self.law.values).mean()) or 1.0)
        drawn = self.law.sampler(child_seed(0, _DRAWS_OF_VARIANCE)).draw(0, _DRAWS_OF_VARIANCE)
        return np.asarray(np.mean(self.residuals(drawn) ** 2, axis=0))


# ------------------------------------------------------------------ scan

#: Shifts of the log odds at which roots are computed; cubics interpolate between them.
_SHIFTS = 0.01 * 2.0 ** np.append(np.arange(6), np.arange(5.5, 10.5, 0.5))


@dataclass(frozen=True, eq=False)
class RootCurves:
    """Signed roots of likelihood ratios as functions of the count of events, (K, G)."""

    knots: Array
    heights: Array
    slopes: Array

    @classmethod
    def of(cls, cells: Cells, p: Array) -> RootCurves:
        """Compute ±√(2 (θO − K(θ))), K(θ) = Σ log(1 + p (e^θ − 1)), where θ gives the mean O."""
        possible, certain = p > 0.0, p == 1.0
        with np.errstate(divide="ignore"):
            no, yes = np.where(certain, 0.0, -np.log1p(-p)), np.where(possible, -np.log(p), 0.0)
        ends = np.stack([no, certain, yes, possible, p, p * (1.0 - p)])
        none, least, every, most, mean, variance = cells.sums(ends)
        rows: dict[float, tuple[Array, Array, Array]] = {
            -np.inf: (least, -np.sqrt(2.0 * none), np.zeros(len(mean))),
            0.0: (mean, np.zeros(len(mean)), 1.0 / np.sqrt(np.maximum(variance, 1e-300))),
            np.inf: (most, np.sqrt(2.0 * every), np.zeros(len(mean))),
        }
        for shift in np.concatenate([-_SHIFTS, _SHIFTS]).tolist():
            grown = p * np.expm1(shift)
            k, count = cells.sums(np.stack([np.log1p(grown), (p + grown) / (1.0 + grown)]))
            height = np.sign(shift) * np.sqrt(2.0 * np.maximum(shift * count - k, 0.0))
            slope = shift / np.where(height == 0.0, np.inf, height)
            rows[shift] = count, height, np.where(height == 0.0, rows[0.0][2], slope)
        each = (np.column_stack(x) for x in zip(*(rows[s] for s in sorted(rows)), strict=True))
        return cls(*map(np.ascontiguousarray, each))


@dataclass(frozen=True, eq=False)
class ScanForm(ResidualForm):
    """T = the largest |root| of a slice: of the likelihood ratio of one shift of the log odds.

    With weights, for numbers, and for signs of clusters, it is a sum of residuals over its standard
    deviation; for signs, over that among the signs.
    """

    cells: Cells
    side: int = 0  #: 1 tests for events observed too often, −1 too rarely; 0 both.
    by_counts: bool = False
    dropped: int = 0  #: Slices dropped because too few clusters carry them.
    effective: float | None = None  #: Smallest effective number of clusters that carry a slice.
    chosen: Places | None = None  #: Slices with a value of their own, beside the largest of all others.

    resolution = 1e-9

    @classmethod
    def of(
        cls, given: tuple[Law, Array, Any], cells: Cells, side: int, clusters: Places | None
    ) -> ScanForm:
        """Leave out slices where nothing could be found."""
        found, (law, w, _) = cls(*given, cells, side), given
        deviations = w * np.sqrt(found.variances)
        variance = cells.sums(found.variances[None])[0]
        keep = (variance > _LEAST_VARIANCE) | isinstance(law, Point)  # no variance is stated
        effective = np.full(cells.count, np.inf)
        if clusters is not None:
            # Effective clusters with the event, and without, if rows of one share everything.
            second, fourth = cells.moments(deviations, Clusters.of(clusters, w))
            effective = second**2 / np.where(fourth > 0.0, fourth, np.inf)
            if found.of_event:
                rows, events = cells.sums(np.stack([w, w * law.probs[:, 1]]))  # type: ignore[attr-defined]
                effective *= np.minimum(events, rows - events) / np.where(rows > 0.0, rows, np.inf)
        few = keep & (effective < FEWEST_CLUSTERS)
        keep &= ~few
        if not keep.any():
            why = "no slice by features has enough rows, events or clusters to be looked at"
            do = "lower the least number of rows of a slice, or leave the features out"
            raise InputError(f"{why}; {do}.")
        cells = cells.kept(np.flatnonzero(keep))
        known = None if clusters is None else float(effective[keep].min())
        exact = found.of_event and bool((w == 1.0).all()) and clusters is None
        return replace(found, cells=cells, by_counts=exact, dropped=int(few.sum()), effective=known)

    @cached_property
    def _curves(self) -> RootCurves:
        return RootCurves.of(self.cells, self.law.probs[:, 1])  # type: ignore[attr-defined]

    @cached_property
    def _scale(self) -> Array:
        return np.asarray(np.sqrt(self.cells.sums((self.weights**2 * self.variances)[None])[0]))

    def among(self, chosen: Places) -> ScanForm:
        """Return the form whose values are |roots| of some slices, and the largest of all others."""
        found = replace(self, chosen=chosen)
        if self.by_counts:
            vars(found)["_curves"] = self._curves
        return found

    def roots(self, outcomes: Any) -> Array:
        """Return the signed roots of all slices, (B, K), above 0 if more was observed."""
        if not self.by_counts:
            return np.asarray(self.cells.sums(self.weights * self.residuals(outcomes)) / self._scale)
        from caltest.loops import features as _loops

        counts = self.cells.sums(np.asarray(outcomes, np.uint8))
        _loops.roots(counts, self._curves.knots, self._curves.heights, self._curves.slopes, counts)
        return np.asarray(counts)

    def sizes(self, roots: Array) -> Array:
        """Return the sizes of roots on the tested side; the roots are overwritten."""
        if not self.side:
            return np.abs(roots, out=roots)
        roots *= self.side
        return roots.clip(min=0.0, out=roots)

    def _largest(self, roots: Array) -> Array:
        sizes = self.sizes(roots)
        if self.chosen is None:
            return np.asarray(sizes.max(axis=1))
        own = sizes[:, self.chosen]
        sizes[:, self.chosen] = 0.0
        return np.column_stack([own, sizes.max(axis=1)])

    def of_labels(self, labels: Labels, workers: Workers = ALONE) -> Array:
        cut = blocks(len(labels), max(1, _HELD // max(self.cells.count, len(self.weights))))
        return np.concatenate([self._largest(self.roots(labels[part])) for part in cut])

    def of_signs(self, labels: Labels, clusters: Clusters) -> Any:
        """Return a function of signs (B, G) whose values are roots, (B, K)."""
        values = self.weights * self.residuals(labels[None])[0]
        second, _ = self.cells.moments(values, clusters)
        scale = np.sqrt(np.where(second > 0.0, second, np.inf))
        return lambda signs: self.cells.sums(signs[:, clusters.codes] * values) / scale

    def signed(self, labels: Labels, clusters: Clusters) -> Signed:
        roots, width = self.of_signs(labels, clusters), max(len(self.weights), self.cells.count)
        given: Any = lambda signs: self._largest(roots(signs))  # noqa: E731
        return Signed(given, clusters.count, True, self.resolution, width)


# ------------------------------------------------------------------ ridge

_UP_TO = 1500  # rows up to which all pairs are compared; beyond, landmarks are used
_LANDMARKS = 384
_WIDTH, _NUMBERS = 256, 2**27  # most features of a row, and of all rows
_RIDGE = 0.01  # times the number of rows
_NEGLIGIBLE = 0.02  # smallest share of a direction that the ridge keeps
_AT_ONCE = 2**14  # rows processed at once


def standardised(features: Features, *more: Array) -> Array:
    """Return a learner's columns, (n, D): ranks of numbers, and levels, with variance 1.

    Missing entries are 0, and get a column of their own. All levels of a category together have
    variance 1.
    """
    found = list[Array]()
    for each in (*(Feature("", column) for column in more), *features.columns):
        missing = each.values < 0 if each.levels else np.isnan(each.values)
        if each.levels:
            counts = np.bincount(each.values[~missing], minlength=len(each.levels))
            often = np.argsort(-counts, kind="stable")[:_CROSSED_LEVELS]
            own = [(each.values == level) * 1.0 for level in often if counts[level]]
        else:
            own = [np.where(missing, np.nan, scipy.stats.rankdata(each.values, nan_policy="omit"))]
        own = [_of_variance_one(x) / max(len(own) - 1, 1) ** 0.5 for x in own]
        found += [*own, _of_variance_one(missing * 1.0)] if missing.any() else own
    return np.column_stack(found)


def _of_variance_one(values: Any) -> Array:
    mean, deviation = np.nanmean(values), np.nanstd(values)
    return np.asarray(np.nan_to_num((values - mean) / (deviation if deviation > 0.0 else 1.0)))


def hat_features(columns: Array, count: int) -> Array:
    """Return features Φ (n, F) of a Gaussian kernel of columns (n, D); ΦΦᵀ is a ridge's hat matrix.

    Its centres are all rows, or landmarks; ``count`` columns have variance 1 in total. Directions of
    which a ridge of n/100 keeps little are left out.
    """
    n, centres = len(columns), columns
    if n > _UP_TO:
        centres = columns[np.sort(generator(0).choice(n, _LANDMARKS, replace=False))]

    def kernel(some: Array) -> Array:
        squares = (some**2).sum(axis=1)[:, None] + (centres**2).sum(axis=1) - 2.0 * some @ centres.T
        return np.asarray(np.exp(squares.clip(min=0.0) / (-2.0 * count)))

    values, vectors = np.linalg.eigh(kernel(centres))
    own = values > 1e-9 * values[-1]
    values, root = values[own], vectors[:, own] / np.sqrt(values[own])
    most, kind = len(values), "f8"
    if n > _UP_TO:
        parts = (kernel(columns[rows]) @ root for rows in blocks(n, _AT_ONCE))
        values, turned = np.linalg.eigh(sum(each.T @ each for each in parts))
        root, most, kind = root @ turned, max(16, min(_WIDTH, _NUMBERS // n)), "f4"
    ridge = _RIDGE * n
    kept = values / (values + ridge) >= _NEGLIGIBLE
    kept[:-most] = False
    found, directions = np.empty((n, kept.sum()), kind), root[:, kept] / np.sqrt(values[kept] + ridge)
    for rows in blocks(n, _AT_ONCE):
        found[rows] = kernel(columns[rows]) @ directions
    return found


@dataclass(frozen=True, eq=False)
class RidgeForm(ResidualForm):
    """T = Σ_{i≠j} r_i W_ij r_j, W_ij = H_ij / √((1 − H_ii)(1 − H_jj)), H = K (K + λ)⁻¹.

    It approximates the score of a learner that leaves out each row in turn: how well kernel ridge
    regression on the columns and the prediction predicts residuals.
    """

    features: Array  #: Ψ, (n, F), with W_ij = ⟨ψ_i, ψ_j⟩.

    @classmethod
    def of(cls, law: Law, weights: Array, usual: Any, hat: Array) -> RidgeForm:
        """Remove each row's effect on its own prediction; the hat features are overwritten."""
        own = np.einsum("if,if->i", hat, hat, dtype=np.float64).clip(max=1.0 - 1e-6)
        hat /= np.sqrt(1.0 - own).astype(hat.dtype)[:, None]
        return cls(law, weights, usual, hat)

    @cached_property
    def _squares(self) -> Array:
        return np.asarray(np.einsum("if,if->i", self.features, self.features, dtype=np.float64))

    @cached_property
    def resolution(self) -> float:
        """Rounding error of the sum."""
        size = float(self._squares @ (self.weights**2 * self.variances))
        return (1e-12 if self.features.dtype == np.float64 else 1e-6) * size

    def of_labels(self, labels: Labels, workers: Workers = ALONE) -> Array:
        sums, own = np.zeros((len(labels), self.features.shape[1])), np.zeros(len(labels))
        whole = None if self.of_event else self.residuals(labels)
        for rows in blocks(len(self.weights), _AT_ONCE):
            seen = self.residuals(labels, rows) if whole is None else whole[:, rows]
            seen = seen * self.weights[rows]
            sums += seen.astype(self.features.dtype) @ self.features[rows]
            own += seen**2 @ self._squares[rows]
        return np.asarray(np.einsum("bf,bf->b", sums, sums) - own)

    def _by_cluster(self, labels: Labels, clusters: Clusters) -> Array:
        seen = self.weights * self.residuals(labels[None])[0]
        return clusters.sums(seen[:, None] * self.features)

    def squares_of(self, labels: Labels, clusters: Clusters) -> Array:
        """Return |S_g|², the squared size of every cluster's sum, (B, G) for labels (B, n)."""
        each = (self._by_cluster(y, clusters) for y in labels)
        return np.array([np.einsum("gf,gf->g", sums, sums) for sums in each])

    def signed(self, labels: Labels, clusters: Clusters) -> Signed:
        sums = self._by_cluster(labels, clusters)
        own = float(np.einsum("gf,gf->", sums, sums))
        return signed_sums(sums, partial(squared_norms, 1.0, own), True, self.resolution)


# ------------------------------------------------------------------ any learner


def foretold(model: Any, columns: Array, residuals: Array, here: Mask) -> Array:
    """Return predictions for these rows by a copy of the model, fitted to all other rows.

    The copy is made of the unfitted model, with the same random state in every fit.
    """
    base: Any = sys.modules.get("sklearn.base")
    learner = deepcopy(model) if base is None else base.clone(model, safe=False)
    if has(learner, "get_params", "set_params"):
        options = learner.get_params().items()
        free = (name for name, value in options if name.endswith("random_state") and value is None)
        learner.set_params(**dict.fromkeys(free, 0))
    learner.fit(columns[~here], residuals[~here])
    told, n = learner.predict(columns[here]), np.count_nonzero(here)
    found = attempt(lambda: np.asarray(told, np.float64).reshape(-1))
    if found is None or len(found) != n or not np.isfinite(found).all():
        do = "give a model whose predict(X) returns a finite number for every row of X"
        raise InputError(f"{quoted(model)} predicted {quoted(told)} for {n:,} rows; {do}.")
    return found


@dataclass(frozen=True, eq=False)
class LearnerForm(ResidualForm):
    """T = Σ w_i r_i f_i / Σ w_i, where f_i is predicted by a learner fitted to the other folds.

    The learner is fitted anew to every vector of labels; for signs of clusters, to residuals with these
    signs. No cluster is predicted from itself.
    """

    columns: Array  #: Input of the learner, (n, D).
    model: Any
    folds: Places  #: The fold of every row, (n,).

    parallel_inside, one_by_one = True, False

    @cached_property
    def resolution(self) -> float:
        """Rounding error of a fit, in which threads may add numbers in any order."""
        return 1e-9 * float(np.average(self.variances, weights=self.weights))

    def _refitted_to(self, outcomes: Any, signs: Any = 1.0) -> float:
        residuals, found = signs * self.residuals(outcomes[None])[0], np.empty(len(self.folds))
        for fold in range(int(self.folds.max()) + 1):
            here = self.folds == fold
            found[here] = foretold(self.model, self.columns, residuals, here)
        return float(np.average(residuals * found, weights=self.weights))

    def _refitted(self, given: Sequence[tuple[Any, ...]], workers: Workers) -> Array:
        """Return the value of each, in an order that hides the first, which may be observed.

        Otherwise a model with a memory could single it out from the draws.
        """
        order, values = generator(0).permutation(len(given)), np.empty(len(given))
        tasks = [given[k] for k in order.tolist()]
        values[order] = list(workers.map(self._refitted_to, tasks, "fits of the learner"))
        if abs(self._refitted_to(*given[0]) - values[0]) > self.resolution:
            found = f"{quoted(self.model)} predicts other numbers when fitted to the same data again"
            do = "give a model without memory, whose random numbers have a fixed seed"
            raise InputError(f"{found}; {do}.")
        return values

    def of_labels(self, labels: Labels, workers: Workers = ALONE) -> Array:
        return self._refitted([(outcomes,) for outcomes in labels], workers)

    def squares_of(self, labels: Labels, clusters: Clusters) -> Array:
        """Return every cluster's sum of residuals, squared, (B, G)."""
        return np.array([clusters.sums(each) ** 2 for each in self.weights * self.residuals(labels)])

    def signed(self, labels: Labels, clusters: Clusters) -> Signed:
        def of_signs(signs: Any, workers: Workers = ALONE) -> Array:
            return self._refitted([(labels, each[clusters.codes]) for each in signs], workers)

        return Refitted(of_signs, clusters.count, False, self.resolution)


class Refitted(Signed):
    """A learner as a function of signs; workers fit several at the same time."""

    parallel_inside = True

    def of_labels(self, labels: Labels, workers: Workers = ALONE) -> Array:
        return self.of_signs(labels, workers)  # type: ignore[call-arg]
