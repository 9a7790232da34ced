"""Squares of features: ‖Σ_i ψ_i ⊗ D_i‖², a quadratic form of low rank, in time linear in n."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.sparse import csc_array

from caltest._parallel import ALONE, Workers
from caltest._sampling import ROWS
from caltest._tiles import blocks
from caltest.forms._low_rank_moments import is_worthwhile, low_rank_moments
from caltest.forms._quadratic_moments import diagonal_table
from caltest.forms.additive import Additive, Linear
from caltest.forms.base import Array, Labels, Moments
from caltest.forms.features import Features
from caltest.forms.pairwise import Pairwise
from caltest.forms.weights import LowRankWeights, Term

_HELD = 2**22  # sums of features held at a time: 32 MiB
_FEW = 4  # classes up to which a matrix product sums features by label sooner than visits of each


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
    """

    probs: Array
    features: Features
    matrix: Array | None = None
    scale: float = 1.0
    diagonal: bool = True

    @property
    def n_samples(self) -> int:
        """Number of rows n."""
        return len(self.probs)

    @property
    def sums_of_a_draw(self) -> int:
        """A sum for every class and feature, and one of the pairs i = j."""
        return int(self.probs.shape[1]) * self.features.shape[1] + 1

    @property
    def pairs(self) -> Pairwise:
        """The same form as a sum over pairs."""
        term = Term(LowRankWeights(self.features), self.matrix)
        return Pairwise(self.probs, (term,), scale=self.scale, diagonal=self.diagonal)

    @property
    def resolution(self) -> float:
        """Rounding of the sum over all pairs."""
        return self.pairs.resolution

    def moments(self, workers: Workers = ALONE) -> Moments:
        """Return mean, variance and skewness under H0, given the predictions."""
        n, (m, f) = self.n_samples, (self.probs.shape[1], self.features.shape[1])
        if self.matrix is not None or not is_worthwhile(n, m, f):
            return self.pairs.moments(workers)
        linear = self._own if self.diagonal else np.zeros_like(self.probs)
        cumulants = low_rank_moments(self.probs, self.features[:], linear, workers)
        return Moments.of_cumulants(*cumulants, self.pairs.surprises).scaled(self.scale)

    @cached_property
    def _own(self) -> Array:
        """Return ⟨ψ_i, ψ_i⟩ D_iᵀ A D_i for every label of row i, (n, m)."""
        return diagonal_table(self.probs, self.pairs.kernel_terms)

    def evaluate(self, labels: Labels, workers: Workers = ALONE) -> Array:
        """Return the (B,) values for ``labels`` (B, n)."""
        fitting = max(1, _HELD // (self.features.shape[1] * self.probs.shape[1]))
        parts = [super(FeatureSquares, self).evaluate(labels[b]) for b in blocks(len(labels), fitting)]
        return np.concatenate(parts)

    def contributions(self, rows: slice, labels: Labels) -> Array:
        """Sum the features of the rows by label, (B, m F), and last what the pairs i = j add."""
        b, m, f = len(labels), self.probs.shape[1], self.features.shape[1]
        sums = np.zeros((b, m * f + 1))
        by_label = _by_product if m <= _FEW else _by_visits
        sums[:, :-1] = by_label(self.features[rows], labels, m).reshape(b, -1)
        if not self.diagonal:
            sums[:, -1] = Linear(self._own[rows], self.probs[rows]).evaluate(labels)
        return sums

    def finish(self, sums: Array) -> Array:
        """Subtract the expected sums; return squared norms, less what the pairs i = j add."""
        residuals = sums[:, :-1].reshape(len(sums), self.probs.shape[1], -1) - self._expected
        images = residuals if self.matrix is None else self.matrix @ residuals
        return np.asarray(self.scale * (np.einsum("bkf,bkf->b", residuals, images) - sums[:, -1]))

    @cached_property
    def _expected(self) -> Array:
        parts = (self.probs[rows].T @ self.features[rows] for rows in blocks(self.n_samples, ROWS))
        return np.asarray(sum(parts))


def _by_product(features: Array, labels: Labels, m: int) -> Array:
    """Multiply with indicators of all classes but the last, which has what the others leave."""
    indicators = labels[:, None, :] == np.arange(m - 1, dtype=labels.dtype)[:, None]
    sums = np.empty((len(labels), m, features.shape[1]))
    sums[:, :-1] = indicators.astype(np.float64) @ features
    sums[:, -1] = features.sum(axis=0) - sums[:, :-1].sum(axis=1)
    return sums


def _by_visits(features: Array, labels: Labels, m: int) -> Array:
    """Add the features of every row to the sums of its labels: a product with a sparse matrix."""
    draws = len(labels)
    targets = (labels.T + m * np.arange(draws)).astype(np.int32).ravel()
    starts = draws * np.arange(len(features) + 1, dtype=np.int32)
    indicators = csc_array((np.ones(len(targets)), targets, starts), shape=(draws * m, len(features)))
    return np.asarray(indicators @ features).reshape(draws, m, -1)
