"""Conditional moments of Σ_ij ⟨ψ_i, ψ_j⟩ ⟨D_i, D_j⟩ under H0, in time linear in the rows.

As in :mod:`caltest.forms._quadratic_moments`, but with W = ΨΨᵀ the sums over pairs i ≠ j are those
over all pairs, which factorise, less the diagonal. With C = Σ_i Σ_i ⊗ ψ_i ψ_iᵀ, the covariance of
Σ_i D_i ⊗ ψ_i, and w_i = |ψ_i|²:

* Σ_{i≠j} W_ij² tr(Σ_i Σ_j) = ‖C‖² − Σ_i w_i² tr Σ_i²;
* tr((M Σ)³) = tr C³ − 3 ⟨Σ_i w_i Σ_i² ⊗ ψ_i ψ_iᵀ, C⟩ + 2 Σ_i w_i³ tr Σ_i³, M without its diagonal;
* Σ_{i≠j} W_ij³ E⟨D_i, D_j⟩³, a small part of the skewness, is estimated from pairs of some rows.
"""

from __future__ import annotations

from functools import partial
from typing import NamedTuple

import numpy as np

from caltest._parallel import Workers
from caltest._seeds import generator
from caltest._tiles import blocks
from caltest.forms._quadratic_moments import identity_tile
from caltest.forms.base import Array
from caltest.forms.weights import LowRankWeights, Term
from caltest.kernels.bandwidth import fixed_order

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
