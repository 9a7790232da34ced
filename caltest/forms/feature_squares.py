"""Squares of features: ‖Σ_i ψ_i ⊗ D_i‖², a quadratic form of low rank, in time linear in n."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.sparse import csc_array

from caltest._parallel import ALONE, Workers
from caltest._tiles import blocks
from caltest.forms._low_rank_moments import is_worthwhile, low_rank_moments
from caltest.forms._quadratic_moments import diagonal_table
from caltest.forms.additive import Additive, Linear
from caltest.forms.base import ROUNDING, Array, Labels, Moments
from caltest.forms.features import ComputedFeatures, Features, exact_rows, longest
from caltest.forms.pairwise import Pairwise, leading_sum
from caltest.forms.weights import LowRankWeights, Term

_HELD = 2**22  # sums of features held at a time: 32 MiB
_VISITED = 64  # draws that visit rows at a time: their sums stay in the third-level cache
# Classes up to which a matrix product sums features by label sooner than visits of each row, in double
# and in single precision.
_FEW, _FEW_SINGLE = 4, 16


@dataclass(frozen=True, eq=False)
class FeatureSquares(Additive):
    """T = scale · Σ_ij ⟨ψ_i, ψ_j⟩ D_iᵀ A D_j over all pairs, or over those with i ≠ j.

    Over all pairs it is the squared norm of Σ_i ψ_i ⊗ D_i in the metric A: the features are summed by
    label, and what the predictions lead to expect is subtracted. A draw of the labels costs O(nF).

    Attributes
    ----------
    probs
        The predictions, (n, m).
    features
        Ψ, (n, F), which depend on the predictions only.
    matrix
        A, (m, m), positive semi-definite; None is the identity.
    scale
        Factor of the sum. Default 1.
    diagonal
        Count the pairs i = j. Default True.
    whole
        How many rows all sums are of, where these are only some of them. Default None: these.
    """

    probs: Array
    features: Features
    matrix: Array | None = None
    scale: float = 1.0
    diagonal: bool = True
    whole: int | None = None

    @property
    def n_samples(self) -> int:
        """Number of rows n."""
        return len(self.probs)

    @property
    def sums_of_a_draw(self) -> tuple[int, ...]:
        """A sum for every class and feature, and one of the pairs i = j."""
        return (int(self.probs.shape[1]) * self.features.shape[1] + 1,)

    @cached_property
    def pairs(self) -> Pairwise:
        """The same form as a sum over pairs."""
        term = Term(LowRankWeights(self.features), self.matrix)
        return Pairwise(self.probs, (term,), scale=self.scale, diagonal=self.diagonal)

    @cached_property
    def resolution(self) -> float:
        """Rounding of the sum over all pairs, of these rows with the whole."""
        size = 1.0 if self.matrix is None else float(np.abs(self.matrix).max())
        pairs = float(self.n_samples) * (self.whole or self.n_samples)
        return ROUNDING * abs(self.scale) * pairs * size * longest(self.features)

    def moments(self, workers: Workers = ALONE) -> Moments:
        """Return mean, variance and skewness under H0, given the predictions."""
        n, (m, f) = self.n_samples, (self.probs.shape[1], self.features.shape[1])
        if self.matrix is not None or not is_worthwhile(n, m, f):
            return self.pairs.moments(workers)
        linear = self._own if self.diagonal else np.zeros_like(self.probs)
        cumulants = low_rank_moments(self.probs, self.features[:], linear, workers)
        return Moments.of_cumulants(*cumulants, self.pairs.surprises).scaled(self.scale)

    @property
    def repeats(self) -> float:
        """How many rows share their predictions, on average over what they add to the variance."""
        return self.pairs.repeats

    def leading(self, workers: Workers = ALONE) -> Linear:
        """Return the sum whose square carries most of the variance."""
        features, matrix = self.features[:], self.matrix

        def images(vectors: Array) -> Array:
            found = features @ (features.T @ vectors)
            return np.asarray(found if matrix is None else found @ matrix)

        return leading_sum(self.probs, images)

    @cached_property
    def _own(self) -> Array:
        """Return ⟨ψ_i, ψ_i⟩ D_iᵀ A D_i for every label of row i, (n, m)."""
        return diagonal_table(self.probs, self.pairs.kernel_terms)

    def _own_of(self, rows: slice, features: Array) -> Array:
        """Return the same for some rows, from their features where these are not held."""
        if not isinstance(self.features, ComputedFeatures):
            return self._own[rows]
        return diagonal_table(self.probs[rows], (Term(LowRankWeights(features), self.matrix),))

    def evaluate(self, labels: Labels, workers: Workers = ALONE) -> Array:
        """Return the (B,) values for ``labels`` (B, n)."""
        fitting = max(1, _HELD // (self.features.shape[1] * self.probs.shape[1]))
        parts = [super(FeatureSquares, self).evaluate(labels[b]) for b in blocks(len(labels), fitting)]
        return np.concatenate(parts)

    def contributions(self, rows: slice, labels: Labels) -> Array:
        """Sum the features of the rows by label, less what is expected, (B, m F + 1).

        Last comes what the pairs i = j add.
        """
        (size,), m = self.sums_of_a_draw, self.probs.shape[1]
        features, probs = self.features[rows], self.probs[rows]
        by_label = np.empty((len(labels), size))
        _sum_by_label(features, labels, m, exact_rows(self.features), by_label[:, :-1])
        by_label[:, :-1] -= (probs.T @ features).ravel()
        by_label[:, -1] = 0.0
        if not self.diagonal:
            by_label[:, -1] = Linear(self._own_of(rows, features), probs).evaluate(labels)
        return by_label

    def finish(self, sums: Array) -> Array:
        """Return squared norms, less what the pairs i = j add."""
        residuals = sums[:, :-1].reshape(len(sums), self.probs.shape[1], -1)
        images = residuals if self.matrix is None else self.matrix @ residuals
        return np.asarray(self.scale * (np.einsum("bkf,bkf->b", residuals, images) - sums[:, -1]))


def _sum_by_label(features: Array, labels: Labels, m: int, exact: int, sums: Array) -> None:
    """Write the features' sums by label into ``sums``, (B, m F)."""
    if exact and m <= _FEW_SINGLE:
        _by_product(features, labels, m, exact, np.float32, sums)
    elif m <= _FEW:
        _by_product(features, labels, m, len(features), np.float64, sums)
    else:
        for draws in blocks(len(labels), _VISITED):
            _by_visits(features, labels[draws], m, sums[draws])


def _by_product(
    features: Array, labels: Labels, m: int, size: int, dtype: type[np.floating], sums: Array
) -> None:
    """Multiply with indicators of all classes but the last, which has what the others leave.

    In single precision, ``size`` rows at a time, whose sums are exact.
    """
    classes = np.arange(m - 1, dtype=labels.dtype)[:, None]
    values, everything = features.astype(dtype, copy=False), features.sum(axis=0)
    for draws in blocks(len(labels), _VISITED):
        total = sums[draws].reshape(-1, m, features.shape[1])
        total[:] = 0.0
        for rows in blocks(len(features), size):
            indicators = (labels[draws, None, rows] == classes).astype(dtype)
            product = indicators.reshape(-1, indicators.shape[2]) @ values[rows]
            total[:, :-1] += product.reshape(len(total), m - 1, -1)
        total[:, -1] = everything - total[:, :-1].sum(axis=1)


def _by_visits(features: Array, labels: Labels, m: int, sums: Array) -> None:
    """Add the features of every row to the sums of its labels: a product with a sparse matrix."""
    draws = len(labels)
    targets = (labels.T + m * np.arange(draws)).astype(np.int32).ravel()
    starts = draws * np.arange(len(features) + 1, dtype=np.int32)
    indicators = csc_array((np.ones(len(targets)), targets, starts), shape=(draws * m, len(features)))
    sums[:] = np.asarray(indicators @ features).reshape(draws, -1)
