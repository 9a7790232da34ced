"""Sums over cells of the predictions: bins of all classes, and cells of one event along its scores."""

# ruff: noqa: D102 -- a method that overrides another is documented where it is first defined.

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Literal, TypeAlias

import numpy as np
import scipy

from caltest._parallel import ALONE, Workers
from caltest._sums import blocks, over_columns
from caltest.clusters import Clusters
from caltest.forms import base
from caltest.forms.base import ROUNDING, Array, HasMoments, Labels, Moments
from caltest.forms.kernel_matrices import LowRankWeights, Term
from caltest.forms.moments import binary_cumulants, quadratic_moments
from caltest.forms.paths import strayed
from caltest.forms.signs import OfOneEvent
from caltest.forms.sums import LinearSum, Sums
from caltest.scores import Cells, Residuals, Scores, Steps

Distance: TypeAlias = Literal["tv", "l1", "l2", "sqeuclidean"]

_FEWEST_OF_A_BIN = 5.0
_TABLE = 2**20  # counts held at a time
_SPARSE = 16  # times the rows; with more cells times classes, only counts above 0 are visited
_ALONE = 1.0 + 1e-9  # effective rows up to which a bin is treated as holding one row

# ------------------------------------------------------------------ bins of all classes


@dataclass(frozen=True, eq=False)
class Binned(base.HasLeadingSum, Sums):
    """T = ending(Σ_k f(S_bk)) for the residuals summed over every bin, S_b = Σ_{i in b} w_i D_i.

    Sums that depend on the predictions only are computed alongside: for every bin its weighted number
    of rows n_b, Σ w², and the expected count of every class.
    """

    probs: Array  #: The predictions, (n, m).
    cells: Cells  #: The bin of every row, (n,), 0..K−1.
    n_cells: int  #: Number of bins K.
    weights: Array  #: w, (n,), positive.
    total: float  #: Total weight.

    @abstractmethod
    def known(self, fixed: Array) -> Any:
        """Return the quantities of the bins that f and the ending use, from sums (2 + m, K)."""

    @abstractmethod
    def entries(self, residuals: Array, cells: Cells, classes: Cells, known: Any) -> Array:
        """Return f(S_bk), elementwise."""

    @abstractmethod
    def ending(self, sums: Array, known: Any) -> Array:
        """Return the (B,) statistics from Σ_k f(S_bk), (B, K)."""

    @cached_property
    def scores(self) -> Residuals:
        """Residuals, by bin and class."""
        return Residuals(self.probs, self.weights, self.cells, self.n_cells)

    @cached_property
    def fixed(self) -> Array:
        """Weight of every bin, Σ w² and expected counts, (2 + m, K)."""
        return np.vstack([self.per_bin(1.0), self.per_bin(self.weights), self.scores.expected.T])

    @cached_property
    def here(self) -> Any:
        """Quantities of the bins of these rows."""
        return self.known(self.fixed)

    def per_bin(self, values: Array | float) -> Array:
        """Sum values of rows over every bin, with weights."""
        return np.bincount(self.cells, self.weights * values, self.n_cells).astype(np.float64)

    def leading(self, workers: Workers = ALONE) -> LinearSum:
        """Return the count of one class in one bin, the one with the largest variance."""
        uncertain = np.stack([self.per_bin(v) for v in (self.probs * (1 - self.probs)).T])
        k, b = np.unravel_index(uncertain.argmax(), uncertain.shape)
        table = np.zeros_like(self.probs)
        own = self.cells == b
        table[own, k] = self.weights[own]
        return LinearSum(table, self.probs)

    def reduce(self, sums: Array, fixed: Array) -> Array:
        known = self.here if fixed is self.fixed else self.known(fixed)
        cells, classes = np.ogrid[: self.n_cells, : self.probs.shape[1]]
        residuals = sums.reshape(len(sums), self.n_cells, -1)
        return self.ending(self.entries(residuals, cells, classes, known).sum(axis=2), known)

    def of_labels(self, labels: Labels, workers: Workers = ALONE) -> Array:
        size = self.scores.size
        if size > max(_TABLE, _SPARSE * len(self.probs)):
            return np.array([self._evaluate_visited(row) for row in labels])
        parts = blocks(len(labels), max(1, _TABLE // size))
        return np.concatenate([super(Binned, self).of_labels(labels[part]) for part in parts])

    def _evaluate_visited(self, labels: Labels) -> float:
        """Evaluate one label vector by correcting Σ_k f(−E_bk) in cells that contain a label."""
        m, expected, known = self.probs.shape[1], self.scores.expected, self.here
        keys, places = np.unique(self.scores.places(labels.astype(np.intp)[None]), return_inverse=True)
        counts = np.bincount(places.reshape(-1), self.weights)
        cells, classes = keys // m, keys % m
        missing = -expected[cells, classes]
        change = self.entries(missing + counts, cells, classes, known)
        change -= self.entries(missing, cells, classes, known)
        sums = self._without_labels + np.bincount(cells, change, self.n_cells)
        return float(self.ending(sums[None, :], known)[0])

    @cached_property
    def _without_labels(self) -> Array:
        cells, classes = np.ogrid[: self.n_cells, : self.probs.shape[1]]
        return np.asarray(self.entries(-self.scores.expected, cells, classes, self.here).sum(axis=1))


@dataclass(frozen=True, eq=False)
class BinnedDistance(Binned):
    """The distance between labels and predictions of a bin: the mean over rows, or the maximum.

    Both are weighted means over the rows.
    """

    distance: Distance  #: Between the mean label and the mean prediction of a bin.
    maximum: bool  #: Use the largest distance; else the mean, with bins weighted by rows.

    @property
    def fewest_of_a_bin(self) -> float:  # type: ignore[override]
        """For three and more classes: with fewer, 11 to 38% of calibrated models were rejected at 5%.

        For two classes, and for the largest distance, no such excess was seen
        (`validation/clusters.py`).
        """
        return 0.0 if self.maximum or self.probs.shape[1] == 2 else _FEWEST_OF_A_BIN

    def clusters_of_a_bin(self, labels: Labels, clusters: Clusters) -> float:
        """Return the effective clusters per bin, with bins weighted by the size of their sums.

        If few clusters meet in a bin, its sum is far from normal: small residuals of one sign add up in
        the data, and cancel when signs are drawn.
        """
        sums = self.scores.by_cluster(labels, clusters)
        squares = sums.multiply(sums).tocoo()
        width = self.probs.shape[1] if self.cells.ndim == 1 else 1
        entries = (squares.data, (squares.row, squares.col // width))
        by_bin = scipy.sparse.csr_array(entries, shape=(clusters.count, squares.shape[1] // width))
        total, fourth = (np.asarray(each.sum(axis=0)) for each in (by_bin, by_bin.multiply(by_bin)))
        lengths = np.sqrt(total)
        effective = total**2 / np.where(fourth > 0.0, fourth, 1.0)
        return float(effective @ lengths / lengths.sum()) if lengths.sum() > 0.0 else np.inf

    @property
    def resolution(self) -> float:
        """Rounding of distances of at most 2, or of their squares before taking a root."""
        rounding = float(np.sqrt(2.0 * ROUNDING)) if self.distance == "l2" else 2.0 * ROUNDING
        return rounding * float(self.weights.sum()) / self.total

    def known(self, fixed: Array) -> Array:
        return np.where(fixed[0] > 0.0, fixed[0], 1.0)

    def entries(self, residuals: Array, cells: Cells, classes: Cells, known: Any) -> Array:
        return np.abs(residuals) if self.distance in ("tv", "l1") else residuals**2

    def ending(self, sums: Array, known: Any) -> Array:
        distances = np.sqrt(sums.clip(min=0.0)) if self.distance == "l2" else sums
        distances = distances / known ** (2 if self.distance == "sqeuclidean" else 1)
        if self.distance == "tv":
            distances *= 0.5
        if self.maximum:
            return np.asarray(distances.max(axis=1))
        return np.asarray(distances @ (known / self.total))


@dataclass(frozen=True, eq=False)
class ClassBins(BinnedDistance):
    """T = Σ_k Σ_b |S_bk| / total, where every class has bins of its own: cells (n, m)."""

    @cached_property
    def fixed(self) -> Array:
        """Zeros, as the sizes of the bins cancel."""
        return np.zeros((1, self.n_cells))


@dataclass(frozen=True, eq=False)
class BinnedSquares(HasMoments, Binned):
    """T = Σ_b (α_b ‖S_b‖² + β_b · S_b) + constant, the mean squared error of bins, perhaps debiased.

    For bins b of n_b rows in n, α = 1/(n_b n) and β = 0. For the debiased form, Σ_k ȳ_k (1 − ȳ_k)/(n_b
    − 1) is subtracted from every bin: with S = counts − E and Σ_k ȳ_k² = ‖S + E‖²/n_b², its term is
    ‖S‖²/(n_b − 1) + (2 S·E + ‖E‖²)/(n_b (n_b − 1)) − n_b/(n_b − 1), over n. For rows of weights w, n_b
    and n are sums of weights, and n_b − 1 is (Σ w)²/Σ w² − 1: dividing Σ_k ȳ_k (1 − ȳ_k) by it
    estimates the variance of a mean label without bias. A bin of one row has no such estimate and adds
    0. For two classes it is the squared error of the one probability, half the squared norm.
    """

    debiased: bool = False

    def known(self, fixed: Array) -> Any:
        (sizes, squares), expected = fixed[:2], fixed[2:].T
        share = 0.5 if self.probs.shape[1] == 2 else 1.0
        filled = np.where(sizes > 0.0, sizes, 1.0)
        if not self.debiased:
            quadratic = np.where(sizes > 0.0, share / (filled * self.total), 0.0)
            return quadratic, np.zeros_like(expected), 0.0
        effective = sizes**2 / np.where(squares > 0.0, squares, 1.0)
        per_pair = np.zeros_like(sizes)
        np.divide(share, sizes * (effective - 1.0) * self.total, out=per_pair, where=effective > _ALONE)
        constant = float(per_pair @ (np.einsum("bk,bk->b", expected, expected) - sizes**2))
        return effective * per_pair, 2.0 * per_pair[:, None] * expected, constant

    def entries(self, residuals: Array, cells: Cells, classes: Cells, known: Any) -> Array:
        quadratic, linear, _ = known
        return np.asarray(residuals * (quadratic[cells] * residuals + linear[cells, classes]))

    def ending(self, sums: Array, known: Any) -> Array:
        return np.asarray(sums.sum(axis=1) + known[2])

    @property
    def resolution(self) -> float:
        """Rounding error of the sum over the bins."""
        quadratic, linear, _ = self.here
        sizes, steep = self.fixed[0], np.abs(linear).max(axis=1)
        return ROUNDING * float(quadratic @ sizes**2 + steep @ sizes)

    def moments(self, workers: Workers = ALONE) -> Moments:
        """Return mean, variance and skewness under H0; bins are independent, so cumulants add."""
        (quadratic, linear, constant), w = self.here[:3], self.weights
        squared = np.einsum("ik,ik->i", self.probs, self.probs)[:, None]
        table = w[:, None] ** 2 * quadratic[self.cells, None] * (1.0 - 2.0 * self.probs + squared)
        slope = linear[self.cells] * w[:, None]
        table += slope - np.einsum("ik,ik->i", self.probs, slope)[:, None]
        if self.probs.shape[1] == 2:
            cumulants = np.array(binary_cumulants(self.probs, w, table, self._pairs, self._triples))
        else:
            cumulants = np.zeros(4)
            order = np.argsort(self.cells, kind="stable")
            for b, rows in enumerate(np.split(order, np.cumsum(np.bincount(self.cells)[:-1]))):
                term = Term(LowRankWeights(np.sqrt(quadratic[b]) * w[rows, None]), None)
                cumulants += quadratic_moments(self.probs[rows], (term,), table[rows], workers)
        mean, variance, third, error = cumulants.tolist()
        own = w**2 * (1.0 - squared[:, 0])
        others = np.bincount(self.cells, weights=own)[self.cells] - own
        means = np.einsum("ik,ik->i", self.probs, table)
        alone = np.einsum("ik,ik->i", self.probs, (table - means[:, None]) ** 2)
        shares = 2.0 * quadratic[self.cells] ** 2 * own * others.clip(min=0.0) + alone
        surprises = base.effective_surprises(shares, 1.0 - over_columns(np.maximum, self.probs))
        return Moments.of_cumulants(mean + constant, variance, third, error, surprises)

    def _in_bins(self, values: Array) -> Array:
        return np.bincount(self.cells, values, self.n_cells).astype(np.float64)

    def _pairs(self, power: int, one: Array, other: Array) -> float:
        """Return Σ_{i≠j} W_ij^power x_i y_j for W_ij = α_b within a bin and 0 between bins, O(n)."""
        total = self._in_bins
        return float(self.here[0] ** power @ (total(one) * total(other) - total(one * other)))

    def _triples(self, v: Array) -> float:
        """Return Σ W_ij W_jk W_ki v_i v_j v_k over three different rows, O(n)."""
        first, second, third = (self._in_bins(v**power) for power in (1, 2, 3))
        return float(self.here[0] ** 3 @ (first**3 - 3.0 * first * second + 2.0 * third))


@dataclass(frozen=True, eq=False)
class PearsonGroups(base.HasChiSquare, BinnedSquares):
    """T = Σ_b S_b² / (n_b p̄_b (1 − p̄_b)) for the residuals S_b of class 1 in every bin, two classes.

    If rows have weights w, p̄_b is their weighted mean, and n_b is Σ w². A bin with predictions of 0 or
    1 only adds 0, or +∞ if one of them was wrong.
    """

    def known(self, fixed: Array) -> Any:
        """Return α_b = 1/(2 n_b p̄_b (1 − p̄_b)), or 0 if that is infinite, and the rarer classes."""
        (sizes, squares), expected = fixed[:2], fixed[2:]
        variances = expected.prod(axis=0) * squares / np.where(sizes > 0.0, sizes, 1.0) ** 2
        varied = variances > base.CERTAIN
        quadratic = np.where(varied, 0.5 / np.where(varied, variances, 1.0), 0.0)
        return quadratic, np.zeros_like(expected.T), 0.0, expected.argmin(axis=0)

    def entries(self, residuals: Array, cells: Cells, classes: Cells, known: Any) -> Array:
        """Return the terms of the bins.

        The residuals of the two classes are opposite; the rarer class's has the smaller rounding error,
        and is used for both.
        """
        quadratic, rarer = known[0][cells], known[3][cells]
        wrong = (quadratic == 0.0) & (residuals > 0.5 * float(self.weights.min()))
        return np.where(classes == rarer, np.where(wrong, np.inf, 2.0 * quadratic * residuals**2), 0.0)

    @property
    def resolution(self) -> float:
        """Rounding error of the sum over the bins."""
        return 2.0 * ROUNDING * float(self.here[0] @ self.fixed[2:].min(axis=0) ** 2)

    @cached_property
    def chi_square(self) -> base.ChiSquare:
        """One degree of freedom for every bin that can vary."""
        variances = self.per_bin(self.weights * over_columns(np.multiply, self.probs))
        return base.ChiSquare(int(np.count_nonzero(variances > base.CERTAIN)))


# ------------------------------------------------------------------ cells of one event


@dataclass(frozen=True, eq=False)
class EventCells(OfOneEvent, Sums):
    """T = reduce(R), R_c = Σ w (y_i − p_i) over the rows in cell c, of one event."""

    cells: Cells  #: The cell of every row, (n,), 0..K−1.
    n_cells: int  #: Number of cells K.
    weights: Array  #: w, (n,).
    total: float  #: Total weight.

    @cached_property
    def scores(self) -> Scores:
        """Residuals of the event, by cell."""
        return Steps.of_event(self.chances, self.weights, self.cells, self.n_cells)


@dataclass(frozen=True, eq=False)
class GriddedDifference(HasMoments, EventCells):
    """Distance of C(x) = n⁻¹ Σ_{p_i ≤ x} (y_i − p_i) from 0, with x on the edges of a grid."""

    functional: base.BrownianFunctional  #: "maximum" for max |C|, "range" for max C − min C.

    @property
    def resolution(self) -> float:
        """Rounding error of sums over the rows, in units of all rows."""
        return ROUNDING * len(self.chances) / self.total * float(np.sqrt(self.n_cells))

    def reduce(self, sums: Array, fixed: Array) -> Array:
        return strayed(np.cumsum(sums, axis=1), self.functional) / self.total

    def moments(self, workers: Workers = ALONE) -> Moments:
        """Return approximate moments under H0 for all rows, if they are like these: a Brownian path's.

        Weights have mean 1.
        """
        variance = float(np.mean(self.weights**2 * self.chances * (1.0 - self.chances)))
        scale = float(np.sqrt(variance / self.total))
        return base.BrownianLimit(self.functional, scale, float(self.total)).moments


_ROUNDS = 22  # bisections of the bandwidth, to 2e-7


@dataclass(frozen=True, eq=False)
class SmoothedResiduals(EventCells):
    """The bandwidth that equals the error of residuals smoothed with it, on a grid of equal cells."""

    @property
    def resolution(self) -> float:
        """Precision of the bisection, in units of all rows."""
        return 2.0 * 0.5**_ROUNDS * float(self.weights.sum()) / self.total

    def reduce(self, sums: Array, fixed: Array) -> Array:
        """Find the σ at which the smoothed error equals σ, by bisection.

        Smoothing by a Gaussian reflected at both ends multiplies the cosine transform by
        exp(−σ² π² k²/2).
        """
        spectrum = scipy.fft.dct(sums / self.total, axis=1)
        decay = -0.5 * (np.pi * np.arange(self.n_cells)) ** 2
        low, high = np.zeros(len(sums)), np.ones(len(sums))
        for _ in range(_ROUNDS):
            width = 0.5 * (low + high)
            # Terms damped below 1e-16 are dropped; few remain unless the width is small.
            kept = min(self.n_cells, 2 + int(8.6 / (np.pi * width.min())))
            damped = spectrum[:, :kept] * np.exp(decay[:kept] * width[:, None] ** 2)
            too_narrow = np.abs(scipy.fft.idct(damped, n=self.n_cells, axis=1)).sum(axis=1) > width
            low = np.where(too_narrow, width, low)
            high = np.where(too_narrow, high, width)
        return np.asarray(0.5 * (low + high))


# ------------------------------------------------------------------ bins of many scales

_CANCELLED = 1e-12  # share of (Σ v)² below which (Σ v)² − Σ v² is rounding
_IMPOSSIBLE = 1e-9  # values of U above it, if its variance is 0, are not rounding


@dataclass(frozen=True, eq=False)
class MultiscaleBins(base.Form):
    """The largest U/√Var U over the scales: U = Σ_b n_b⁻¹ Σ_{i≠j in b} r_i r_j, r = w (y − p).

    Bins of a coarser scale are unions of those of the next finer one, so all scales together cost
    little more than the finest.
    """

    chances: Array  #: p, (n,).
    weights: Array  #: w, (n,).
    cells: Cells  #: The bin of every row at the finest scale, (n,), 0..K−1.
    merges: tuple[Cells, ...]  #: Bins of a scale that start a bin of the next coarser scale.

    @cached_property
    def _scores(self) -> tuple[Steps, Steps]:
        """Scores r and r² for every bin of the finest scale."""
        p, w = self.chances, self.weights**2
        residuals = Steps.of_event(p, self.weights, self.cells, int(self.cells.max()) + 1)
        return residuals, replace(residuals, base=w * p**2, steps=w * (1.0 - 2.0 * p))

    @cached_property
    def _scales(self) -> list[tuple[Cells | None, Array, float]]:
        """For every scale, the finer bins that start its bins, 1/n_b, and the deviation of U."""
        variances = self.weights**2 * self.chances * (1.0 - self.chances)
        summed = (self.weights, variances, variances**2)
        fixed: Array = np.stack([np.bincount(self.cells, each) for each in summed])
        found = list[tuple[Cells | None, Array, float]]()
        for starts in (None, *self.merges):
            fixed = _merged(fixed, starts)
            sizes, variances, squares = fixed
            shares, whole = 1.0 / np.where(sizes > 0.0, sizes, 1.0), variances**2
            pairs = np.where(whole - squares > _CANCELLED * whole, whole - squares, 0.0)
            found.append((starts, shares, float(np.sqrt(2.0 * np.sum(pairs * shares**2)))))
        return found

    @property
    def resolution(self) -> float:
        """Rounding error of a standardised sum."""
        return ROUNDING * float(np.sqrt(len(self.chances)))

    def of_labels(self, labels: Labels, workers: Workers = ALONE) -> Array:
        (sums, own), found = (each.sums(labels) for each in self._scores), np.full(len(labels), -np.inf)
        for starts, shares, deviation in self._scales:
            sums, own = _merged(sums, starts), _merged(own, starts)
            errors = (sums**2 - own) @ shares
            if deviation > 0.0:
                np.maximum(found, errors / deviation, out=found)
            else:
                found[errors > _IMPOSSIBLE] = np.inf
        return np.where(found == -np.inf, 0.0, found)


def _merged(values: Array, starts: Cells | None) -> Array:
    return values if starts is None else np.add.reduceat(values, starts, axis=-1)
