"""Binned sums: statistics of the counts of every label in every bin."""

# ruff: noqa: D102 -- a method that overrides another is documented where it is first defined.

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import Any, ClassVar, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from caltest._narrow import over_columns
from caltest._parallel import ALONE, Workers
from caltest._tiles import blocks
from caltest.forms._pair_moments import quadratic_moments
from caltest.forms.base import (
    CERTAIN,
    ROUNDING,
    Array,
    ChiSquare,
    HasChiSquare,
    HasLeadingSum,
    HasMoments,
    Labels,
    Moments,
    effective_surprises,
)
from caltest.forms.signs import Clusters, HasSigns, SignedSums
from caltest.forms.sums import Additive, LinearSum
from caltest.forms.weights import ConstantWeights, Term, scaled

# ------------------------------------------------------------------ binned


Indices: TypeAlias = NDArray[np.intp]
Distance: TypeAlias = Literal["tv", "l1", "l2", "sqeuclidean"]

_FEWEST_OF_A_BIN = 5.0
_TABLE = 2**20  # counts held at a time
_SPARSE = 16  # times the rows: with more cells times classes, only counts above 0 are visited


@dataclass(frozen=True, eq=False)
class Binned(HasSigns, HasLeadingSum, Additive):
    """T = ending(Σ_k f(S_bk)) for the residuals summed over every bin, S_b = Σ_{i in b} w_i D_i."""

    probs: Array  #: The predictions, (n, m).
    cells: Indices  #: The bin of every row, (n,), 0..K−1, none empty.
    weights: Array | None = field(default=None, kw_only=True)  #: w, (n,), positive; None for ones.

    @abstractmethod
    def entries(self, residuals: Array, cells: Indices, classes: Indices) -> Array:
        """Return f(S_bk), elementwise."""

    @abstractmethod
    def ending(self, sums: Array) -> Array:
        """Return the (B,) statistics from Σ_k f(S_bk), (B, K)."""

    @property
    def n_samples(self) -> int:
        return len(self.probs)

    @cached_property
    def sizes(self) -> Array:
        """Rows of every bin, (K,), or their weights."""
        return self._per_bin(None)

    def _per_bin(self, values: Array | None) -> Array:
        """Sum what depends on rows over every bin, as rows count."""
        w = self.weights
        each = values if w is None else w if values is None else w * values
        return np.bincount(self.cells, weights=each).astype(np.float64)

    @cached_property
    def total(self) -> float:
        """Rows, or the sum of their weights."""
        return float(self.n_samples if self.weights is None else self.weights.sum())

    @property
    def counts_squared(self) -> Array | float:
        """w², by which variances of rows are multiplied."""
        return 1.0 if self.weights is None else self.weights**2

    @property
    def n_cells(self) -> int:
        """Number of bins K."""
        return len(self.sizes)

    @property
    def sums_of_a_draw(self) -> tuple[int, ...]:
        """A count for every bin and class."""
        return self.n_cells, int(self.probs.shape[1])

    @cached_property
    def expected(self) -> Array:
        """Predictions summed over every bin, (K, m)."""
        return np.stack([self._per_bin(column) for column in self.probs.T], axis=1)

    def leading(self, workers: Workers = ALONE) -> LinearSum:
        """Return the count of one class in one bin, that of the largest variance."""
        uncertain = np.stack([self._per_bin(v) for v in (self.probs * (1 - self.probs)).T])
        k, b = np.unravel_index(uncertain.argmax(), uncertain.shape)
        table = np.zeros_like(self.probs)
        own = self.cells == b
        table[own, k] = 1.0 if self.weights is None else self.weights[own]
        return LinearSum(table, self.probs)

    def contributions(self, rows: slice, labels: Labels) -> Array:
        """Count the labels of every bin, (B, K, m)."""
        cells, shape = self.cells[rows], (len(labels), *self.sums_of_a_draw)
        if len(labels) == 1:  # sooner counted than a loop is compiled
            keys, each = (
                cells * shape[2] + labels[0],
                None if self.weights is None else self.weights[rows],
            )
            found = np.bincount(keys, weights=each, minlength=shape[1] * shape[2])
            return found.reshape(shape).astype(np.float64)
        from caltest.loops import rows as _loops

        counts = np.zeros(shape)
        if self.weights is None:
            _loops.bin_counts(labels, cells, counts)
        else:
            _loops.bin_steps(labels, cells, self.weights[rows], counts)
        return counts

    def finish(self, sums: Array) -> Array:
        return self._of_residuals(sums - self.expected)

    def _of_residuals(self, sums: Array) -> Array:
        """Return the (B,) statistics from S, (B, K, m) or (B, K m)."""
        cells, classes = np.ogrid[: self.n_cells, : self.probs.shape[1]]
        sums = sums.reshape(len(sums), self.n_cells, -1)
        return self.ending(self.entries(sums, cells, classes).sum(axis=2))

    def signed(self, labels: Labels, clusters: Clusters) -> SignedSums:
        residuals = -self.probs
        residuals[np.arange(len(residuals)), labels] += 1.0
        if self.weights is not None:
            residuals *= self.weights[:, None]
        observed = self.value(labels)
        # A bin whose rows are all of one cluster has two values, of its sign: a column is enough.
        least, most = np.full(self.n_cells, clusters.count), np.full(self.n_cells, -1)
        np.minimum.at(least, self.cells, clusters.codes)
        np.maximum.at(most, self.cells, clusters.codes)
        alone, shared = np.flatnonzero(least == most), np.flatnonzero(least != most)
        places = np.zeros(self.n_cells, dtype=np.intp)
        places[alone], places[shared] = np.arange(len(alone)), np.arange(len(shared))
        mixed = (least != most)[self.cells]
        own = np.zeros((len(alone), residuals.shape[1]))
        np.add.at(own, places[self.cells[~mixed]], residuals[~mixed])
        marks = (np.ones(len(alone)), (least[alone], np.arange(len(alone))))
        sums = clusters.sums_at(places[self.cells], residuals, len(shared), mixed)
        lengths, squares = np.einsum("kc,kc->k", own, own), sums.multiply(sums).tocoo()
        entries = (squares.data, (squares.row, squares.col // residuals.shape[1]))
        by_bin = sparse.csr_array(entries, shape=(clusters.count, len(shared)))
        sizes = np.asarray(by_bin.sum(axis=1), dtype=np.float64)
        np.add.at(sizes, least[alone], lengths)
        cells, classes = np.ogrid[: self.n_cells, : self.probs.shape[1]]
        both = [self.entries(sign * own, cells[alone], classes).sum(axis=1) for sign in (1.0, -1.0)]
        return SignedSums(
            sparse.hstack([sparse.csr_array(marks, shape=(clusters.count, len(alone))), sums]).tocsr(),
            partial(self._of_signs, alone, shared, both),
            even=False,
            rounding=self.resolution,
            impossible=None if np.isfinite(observed) else observed,
            sizes=sizes,
            of_a_bin=_clusters_of_a_bin(lengths, by_bin) if self.counts_bins else np.inf,
        )

    def _of_signs(
        self, alone: NDArray[np.intp], shared: NDArray[np.intp], both: list[Array], sums: Array
    ) -> Array:
        """Return (B,) values from the signs of bins of one cluster, and the residuals of the others."""
        cells, classes = np.ogrid[: self.n_cells, : self.probs.shape[1]]
        rest = sums[:, len(alone) :].reshape(len(sums), len(shared), classes.size)
        table = np.empty((len(sums), self.n_cells))
        table[:, alone] = np.where(sums[:, : len(alone)] > 0.0, *both)
        table[:, shared] = self.entries(rest, cells[shared], classes).sum(axis=2)
        return self.ending(table)

    def of_labels(self, labels: Labels, workers: Workers = ALONE) -> Array:
        if self.expected.size > max(_TABLE, _SPARSE * self.n_samples):
            return np.array([self._evaluate_visited(row) for row in labels])
        fitting = max(1, _TABLE // self.expected.size)
        parts = [super(Binned, self).of_labels(labels[b]) for b in blocks(len(labels), fitting)]
        return np.concatenate(parts)

    def _evaluate_visited(self, labels: Labels) -> float:
        """Evaluate one label vector by correcting Σ_k f(−E_bk) where a label was counted."""
        m = self.probs.shape[1]
        keys, places, counts = np.unique(
            self.cells * m + labels.astype(np.intp), return_inverse=True, return_counts=True
        )
        if self.weights is not None:
            counts = np.bincount(places.reshape(-1), weights=self.weights)
        cells, classes = keys // m, keys % m
        missing = -self.expected[cells, classes]
        change = self.entries(missing + counts, cells, classes)
        change -= self.entries(missing, cells, classes)
        sums = self._without_labels + np.bincount(cells, weights=change)
        return float(self.ending(sums[None, :])[0])

    @cached_property
    def _without_labels(self) -> Array:
        cells, classes = np.ogrid[: self.n_cells, : self.probs.shape[1]]
        return np.asarray(self.entries(-self.expected, cells, classes).sum(axis=1))


def _clusters_of_a_bin(alone: Array, shared: Any) -> float:
    """Return the effective clusters of a bin, bins weighted by the size of their sums.

    ``alone`` (K,) are squared lengths of bins of one cluster, ``shared`` (G, L) those that clusters add
    to the others. Where few clusters meet in a bin, its sum is far from normal: small residuals of one
    sign add up as they came, and cancel when signs are drawn.
    """
    total, fourth = np.asarray(shared.sum(axis=0)), np.asarray(shared.multiply(shared).sum(axis=0))
    effective = np.append(np.ones(len(alone)), total**2 / np.where(fourth > 0.0, fourth, 1.0))
    lengths = np.sqrt(np.append(alone, total))
    return float(effective @ lengths / lengths.sum()) if lengths.sum() > 0.0 else np.inf


@dataclass(frozen=True, eq=False)
class BinnedDistance(Binned):
    """The distance between labels and predictions of a bin: its mean over the rows, or maximum.

    Both are means over the rows as they count.
    """

    counts_bins: ClassVar[bool] = True
    distance: Distance  #: Between the mean label and the mean prediction of a bin.
    maximum: bool  #: Take the largest bin's; else the mean, bins weighted by their rows.

    @property
    def fewest_of_a_bin(self) -> float:
        """Of three and more classes: with fewer, 11 to 38% of calibrated models were rejected at 5%.

        Of two classes, and of the largest distance, no such excess was seen (`validation/clusters.py`).
        """
        return 0.0 if self.maximum or self.probs.shape[1] == 2 else _FEWEST_OF_A_BIN

    def entries(self, residuals: Array, cells: Indices, classes: Indices) -> Array:
        return np.abs(residuals) if self.distance in ("tv", "l1") else residuals**2

    @property
    def resolution(self) -> float:
        """Rounding of distances of at most 2, of their squares before a root is taken."""
        return float(np.sqrt(2.0 * ROUNDING)) if self.distance == "l2" else 2.0 * ROUNDING

    def ending(self, sums: Array) -> Array:
        distances = np.sqrt(sums.clip(min=0.0)) if self.distance == "l2" else sums
        power = 2 if self.distance == "sqeuclidean" else 1
        distances = distances / self.sizes**power
        if self.distance == "tv":
            distances *= 0.5
        if self.maximum:
            return np.asarray(distances.max(axis=1))
        return np.asarray(distances @ (self.sizes / self.total))


@dataclass(frozen=True, eq=False)
class BinnedSquares(HasMoments, Binned):
    """T = Σ_b (α_b ‖S_b‖² + β_b · S_b) + constant: quadratic, with conditional moments."""

    quadratic: Array  #: α, (K,).
    linear: Array  #: β, (K, m).
    constant: float

    def entries(self, residuals: Array, cells: Indices, classes: Indices) -> Array:
        return residuals * (self.quadratic[cells] * residuals + self.linear[cells, classes])

    @property
    def resolution(self) -> float:
        """Rounding of the sum over the bins."""
        linear = np.abs(self.linear).max(axis=1)
        return ROUNDING * float(self.quadratic @ self.sizes**2 + linear @ self.sizes)

    def ending(self, sums: Array) -> Array:
        return np.asarray(sums.sum(axis=1) + self.constant)

    def moments(self, workers: Workers = ALONE) -> Moments:
        """Return mean, variance and skewness under H0; of the independent bins cumulants add."""
        squared = np.einsum("ik,ik->i", self.probs, self.probs)[:, None]
        table = self.quadratic[self.cells, None] * (1.0 - 2.0 * self.probs + squared)
        slope, w = self.linear[self.cells], self.weights
        if w is not None:
            table *= w[:, None] ** 2
            slope *= w[:, None]
        table += slope - np.einsum("ik,ik->i", self.probs, slope)[:, None]
        if self.probs.shape[1] == 2:
            cumulants = _binary_cumulants(self.probs[:, 1], self.cells, self.quadratic, table, w)
        else:
            cumulants = np.zeros(4)
            order = np.argsort(self.cells, kind="stable")
            for b, rows in enumerate(np.split(order, np.cumsum(np.bincount(self.cells)[:-1]))):
                pairs = ConstantWeights(float(self.quadratic[b]), len(rows))
                term = Term(scaled(pairs, None if w is None else w[rows]), None)
                cumulants += quadratic_moments(self.probs[rows], (term,), table[rows], workers)
        mean, variance, third, error = (float(value) for value in cumulants)
        own = self.counts_squared * (1.0 - np.einsum("ik,ik->i", self.probs, self.probs))
        others = np.bincount(self.cells, weights=own)[self.cells] - own
        means = np.einsum("ik,ik->i", self.probs, table)
        alone = np.einsum("ik,ik->i", self.probs, (table - means[:, None]) ** 2)
        shares = 2.0 * self.quadratic[self.cells] ** 2 * own * others.clip(min=0.0) + alone
        surprises = effective_surprises(shares, 1.0 - over_columns(np.maximum, self.probs))
        return Moments.of_cumulants(mean + self.constant, variance, third, error, surprises)


def _binary_cumulants(
    p: Array, cells: Indices, quadratic: Array, table: Array, weights: Array | None
) -> Array:
    """Return the first three cumulants and 0 for two classes, where ⟨D_i, D_j⟩ = 2 d_i d_j.

    The sums over pairs and triples of different rows are power sums of the bins: O(n).
    """

    def total(values: Array) -> Array:
        return np.bincount(cells, weights=values).astype(np.float64)

    a = 2.0 * quadratic
    mean = (1 - p) * table[:, 0] + p * table[:, 1]
    zero, one = table[:, 0] - mean, table[:, 1] - mean
    v, skew = p * (1 - p), p * (1 - p) * (1 - 2 * p)
    c = v * (one - zero)  # E[l d]
    e = p * (1 - p) ** 2 * one + (1 - p) * p**2 * zero  # E[d² l]
    if weights is not None:
        v, skew, c, e = v * weights**2, skew * weights**3, c * weights, e * weights**2
    pairs = total(v) ** 2 - total(v**2)
    triples = total(v) ** 3 - 3 * total(v) * total(v**2) + 2 * total(v**3)
    variance = 2 * a**2 * pairs + total(p * one**2 + (1 - p) * zero**2)
    third = a**3 * (8 * triples + 4 * (total(skew) ** 2 - total(skew**2)))
    third += 12 * a**2 * (total(e) * total(v) - total(e * v)) + 6 * a * (total(c) ** 2 - total(c**2))
    third += total(p * one**3 + (1 - p) * zero**3)
    return np.array([mean.sum(), variance.sum(), third.sum(), 0.0])


# ------------------------------------------------------------------ pearson


@dataclass(frozen=True, eq=False)
class PearsonGroups(HasMoments, HasChiSquare, Binned):
    """T = Σ_b S_b² / (n_b p̄_b (1 − p̄_b)) for the residuals S_b of class 1 in every bin, two classes.

    Where rows count w, p̄_b is their mean as they count, and n_b is Σ w².

    A bin whose predictions are all 0 or all 1 adds nothing, and +∞ if one of them was wrong.
    """

    @cached_property
    def _rarer(self) -> Indices:
        # The two classes' residuals are opposite; the smaller sum has the smaller rounding.
        return np.asarray(self.expected.argmin(axis=1))

    @cached_property
    def _precisions(self) -> Array:
        """1/(n_b p̄_b (1 − p̄_b)), (K,); 0 where that is infinite."""
        variances = self.expected.prod(axis=1) / self.sizes
        if self.weights is not None:
            variances *= self._per_bin(self.weights) / self.sizes
        varied = variances > CERTAIN
        return np.where(varied, 1.0 / np.where(varied, variances, 1.0), 0.0)

    def entries(self, residuals: Array, cells: Indices, classes: Indices) -> Array:
        """Return the terms of the bins, in the column of the rarer class."""
        terms = self._precisions[cells] * residuals**2
        least = 0.5 if self.weights is None else 0.5 * float(self.weights.min())
        wrong = (self._precisions[cells] == 0.0) & (residuals > least)
        return np.where(classes == self._rarer[cells], np.where(wrong, np.inf, terms), 0.0)

    def ending(self, sums: Array) -> Array:
        return np.asarray(sums.sum(axis=1))

    @property
    def resolution(self) -> float:
        """Rounding of the sum over the bins."""
        return ROUNDING * float(self._precisions @ self.expected.min(axis=1) ** 2)

    @cached_property
    def _variances(self) -> Array:
        """Of the rows' residuals, (n,)."""
        return over_columns(np.multiply, self.probs)

    def _summed(self, values: Array, power: int) -> Array:
        """Sum cumulants of rows over every bin: the k-th of w d is w^k times that of d."""
        each = values if self.weights is None else self.weights**power * values
        return np.bincount(self.cells, weights=each).astype(np.float64)

    @cached_property
    def chi_square(self) -> ChiSquare:
        """As many degrees of freedom as bins that can vary."""
        return ChiSquare(int(np.count_nonzero(self._summed(self._variances, 2) > CERTAIN)))

    def moments(self, workers: Workers = ALONE) -> Moments:
        """Return mean, variance and skewness under H0, exactly.

        With the cumulants κ of S_b, sums of those of Bernoulli variables, S_b² has the cumulants
        κ₂, κ₄ + 2κ₂² and κ₆ + 12κ₄κ₂ + 10κ₃² + 8κ₂³; bins are independent.
        """
        v, w = self._variances, self._precisions
        k2, k3 = self._summed(v, 2), self._summed(v * (self.probs[:, 0] - self.probs[:, 1]), 3)
        k4, k6 = self._summed(v * (1 - 6 * v), 4), self._summed(v * (1 - 30 * v * (1 - 4 * v)), 6)
        third = k6 + 12 * k4 * k2 + 10 * k3**2 + 8 * k2**3
        # Row i's share: its own S² and its pairs with the others of its bin.
        own = self.counts_squared
        shares = w[self.cells] ** 2 * own * v * (own * (1 - 6 * v) + 2 * k2[self.cells])
        return Moments.of_cumulants(
            float(w @ k2),
            float(w**2 @ (k4 + 2 * k2**2)),
            float(w**3 @ third),
            surprises=effective_surprises(shares, over_columns(np.minimum, self.probs)),
        )
