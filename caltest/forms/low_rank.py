"""Kernels of low rank: sums of features of the rows, their squares, and what is known of these."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, partial
from typing import NamedTuple

import numpy as np
from scipy.sparse import csc_array

from caltest._parallel import ALONE, Workers
from caltest._sampling import generator
from caltest._tiles import blocks
from caltest.forms._pair_moments import diagonal_table, identity_tile
from caltest.forms._pair_sums import LowRankWeights, Term
from caltest.forms.base import (
    ROUNDING,
    Array,
    HasLeadingSum,
    HasMoments,
    Labels,
    Moments,
)
from caltest.forms.features import ComputedFeatures, Features, exact_rows, longest
from caltest.forms.pairs import Pairwise, leading_sum
from caltest.forms.sums import Additive, LinearSum
from caltest.kernels.bandwidth import fixed_order

# ------------------------------------------------------------------ feature squares


_HELD = 2**22  # sums of features held at a time: 32 MiB
_VISITED = 64  # draws that visit rows at a time: their sums stay in the third-level cache
# Classes up to which a matrix product sums features by label sooner than visits of each row, in double
# and in single precision.
_FEW, _FEW_SINGLE = 4, 16


@dataclass(frozen=True, eq=False)
class FeatureSquares(HasMoments, HasLeadingSum, Additive):
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

    def leading(self, workers: Workers = ALONE) -> LinearSum:
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

    def of_labels(self, labels: Labels, workers: Workers = ALONE) -> Array:
        """Return the (B,) values for ``labels`` (B, n)."""
        fitting = max(1, _HELD // (self.features.shape[1] * self.probs.shape[1]))
        parts = [super(FeatureSquares, self).of_labels(labels[b]) for b in blocks(len(labels), fitting)]
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
            by_label[:, -1] = LinearSum(self._own_of(rows, features), probs).of_labels(labels)
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


# ------------------------------------------------------------------ low rank moments
#
# As in :mod:`caltest.forms._pair_moments`, but with W = ΨΨᵀ the sums over pairs i ≠ j are those
# over all pairs, which factorise, less the diagonal. With C = Σ_i Σ_i ⊗ ψ_i ψ_iᵀ, the covariance of
# Σ_i D_i ⊗ ψ_i, and w_i = |ψ_i|²:
#
# * Σ_{i≠j} W_ij² tr(Σ_i Σ_j) = ‖C‖² − Σ_i w_i² tr Σ_i²;
# * tr((M Σ)³) = tr C³ − 3 ⟨Σ_i w_i Σ_i² ⊗ ψ_i ψ_iᵀ, C⟩ + 2 Σ_i w_i³ tr Σ_i³, M without its diagonal;
# * Σ_{i≠j} W_ij³ E⟨D_i, D_j⟩³, a small part of the skewness, is estimated from pairs of some rows.


_ROWS = 2048
_FEWEST = 4096  # rows; fewer leave too small samples
_LARGEST = 2500  # m F; C has this many rows: 50 MB
_SAMPLES, _SAMPLED = 16, 1024  # disjoint samples of rows, and rows of each at most


def is_worthwhile(n: int, m: int, f: int) -> bool:
    """Say whether this takes less time than a sum over pairs."""
    return n >= _FEWEST and m * f <= _LARGEST and n * (f + 7 * m) > (m * f) ** 2


def low_rank_moments(
    probs: Array, features: Array, linear: Array, workers: Workers
) -> tuple[float, float, float, float]:
    """Return mean, variance, third cumulant and the standard error of the third cumulant.

    Parameters
    ----------
    probs
        (n, m) predictions.
    features
        Ψ, (n, F).
    linear
        What the diagonal i = j adds, (n, m).
    workers
        Who does the work.
    """
    means = np.einsum("ik,ik->i", probs, linear)
    table = linear - means[:, None]
    rows = _Rows(probs, features, probs * table)
    tasks = [(part,) for part in blocks(len(probs), _ROWS)]
    covariance = np.asarray(sum(workers.map(rows.covariance, tasks, "moments")))
    inner = partial(rows.inner_products, covariance)
    squares, mixed = sum(workers.map(inner, tasks, "skewness"))
    own = rows.own_terms()
    third, error = _sampled_cubes(probs, features)
    variance = 2.0 * (np.vdot(covariance, covariance) - own.second) + np.sum(probs * table**2)
    trace = np.vdot(covariance @ covariance, covariance) - 3.0 * squares + 2.0 * own.third
    cumulant = 8.0 * trace + 4.0 * third + 12.0 * (mixed - own.mixed) + np.sum(probs * table**3)
    cumulant += 6.0 * (np.sum((rows.tilted.T @ features) ** 2) - own.cross)
    return float(means.sum()), float(variance), float(cumulant), 4.0 * error


class _Own(NamedTuple):
    """Sums over the diagonal i = j, which the sums over all pairs are too large by."""

    second: float  # Σ w² tr Σ²
    third: float  # Σ w³ tr Σ³
    mixed: float  # Σ w² tr(U Σ)
    cross: float  # Σ w |v|²


class _Rows(NamedTuple):
    """Rows with predictions g, features ψ and v = E[l D] = g∘l for the centred linear part l.

    With U = E[l D Dᵀ] = diag(v) − v gᵀ − g vᵀ.
    """

    probs: Array
    features: Array
    tilted: Array

    def _joint(self, rows: slice) -> Array:
        """Return g ⊗ ψ, (rows, mF)."""
        joint = self.probs[rows, :, None] * self.features[rows, None, :]
        return joint.reshape(len(joint), -1)

    def covariance(self, rows: slice) -> Array:
        """Return Σ_i Σ_i ⊗ ψ_i ψ_iᵀ over some rows, (mF, mF)."""
        q, joint, f = self.features[rows], self._joint(rows), self.features.shape[1]
        total = -(joint.T @ joint)
        for k, weighted in enumerate(np.split(joint, self.probs.shape[1], axis=1)):
            own = slice(k * f, (k + 1) * f)
            total[own, own] += weighted.T @ q
        return np.asarray(total)

    def inner_products(self, covariance: Array, rows: slice) -> Array:
        """Return ⟨w Σ² ⊗ ψψᵀ, C⟩ and ⟨U ⊗ ψψᵀ, C⟩, summed over some rows."""
        g, q, v = self.probs[rows], self.features[rows], self.tilted[rows]
        m, f = g.shape[1], q.shape[1]
        corners = [covariance[k * f : (k + 1) * f, k * f : (k + 1) * f] for k in range(m)]
        alone = np.stack([np.einsum("if,if->i", q @ corner, q) for corner in corners], axis=1)
        images = (self._joint(rows) @ covariance).reshape(-1, m, f)
        beside = np.einsum("ikf,if->ik", images, q)
        w = np.einsum("if,if->i", q, q)[:, None]
        g2 = g * g
        # Σ² = diag(g²) − g² gᵀ − g g²ᵀ + |g|² g gᵀ
        squares = w * (g2 * alone - 2.0 * g2 * beside + g2.sum(axis=1, keepdims=True) * g * beside)
        return np.array([squares.sum(), np.sum(v * alone - 2.0 * v * beside)])

    def own_terms(self) -> _Own:
        """Return the sums over the diagonal."""
        g, v = self.probs, self.tilted
        w = np.einsum("if,if->i", self.features, self.features)
        p2, p3, p4 = (np.sum(g**power, axis=1) for power in (2, 3, 4))
        gv, g2v = np.sum(g * v, axis=1), np.sum(g**2 * v, axis=1)
        return _Own(
            second=float(w**2 @ (p2 - 2.0 * p3 + p2**2)),
            third=float(w**3 @ (p3 - 3.0 * p4 + 3.0 * p2 * p3 - p2**3)),
            mixed=float(w**2 @ (gv - 3.0 * g2v + 2.0 * p2 * gv)),
            cross=float(w @ np.sum(v * v, axis=1)),
        )


def _sampled_cubes(probs: Array, features: Array) -> tuple[float, float]:
    """Estimate Σ_{i≠j} W_ij³ E⟨D_i, D_j⟩³ from disjoint random samples; return the error too."""
    n = len(probs)
    size = min(_SAMPLED, n // _SAMPLES)
    shuffled = fixed_order(probs)[generator(0).permutation(n)]
    found = []
    for sample in blocks(_SAMPLES * size, size):
        g, q = probs[shuffled[sample]], features[shuffled[sample]]
        every = slice(0, size)
        sums = identity_tile(g, np.zeros_like(g), Term(LowRankWeights(q), None), every, every)
        found.append(sums[1] * n * (n - 1) / (size * (size - 1)))
    return float(np.mean(found)), float(np.std(found, ddof=1) / np.sqrt(_SAMPLES))
