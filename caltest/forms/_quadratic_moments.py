"""Conditional moments of Q = Σ_{i≠j} D_iᵀ M_ij D_j + Σ_i l_i(y_i) under H0, given the predictions.

The linear part holds the diagonal i = j, where it counts, and whatever else a statistic adds:

* variance: 2 Σ_{i≠j} tr(M_ij Σ_j M_ijᵀ Σ_i) + Σ_i Var l_i, exact;
* third cumulant: 8 tr((MΣ)³) + 4 Σ_{i≠j} E(D_iᵀ M_ij D_j)³, and with a linear part also
  3·4 Σ_{i≠j} E[(D_iᵀ M_ij D_j)² l_i] + 3·2 Σ_{i≠j} c_iᵀ M_ij c_j + Σ_i κ₃(l_i), c_i = E[l_i D_i];
  all exact but for the trace when n is large.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any, NamedTuple

import numpy as np

from caltest._parallel import Workers
from caltest._tiles import Tile, sum_and_multiply, sum_over_tiles
from caltest.forms._cubic_trace import Probes, cubic_trace, is_exact
from caltest.forms.base import Array
from caltest.forms.weights import Term

_POWERS_UP_TO = 64  # classes up to which powers of all predictions are held


def quadratic_moments(
    probs: Array, terms: tuple[Term, ...], linear: Array | None, workers: Workers
) -> tuple[float, float, float, float]:
    """Return mean, variance, third cumulant and the standard error of the third cumulant.

    Parameters
    ----------
    probs
        (n, m) predictions.
    terms
        M_ij = Σ_l W_l,ij A_l.
    linear
        l_i(k), (n, m); None for none.
    workers
        Who does the work.
    """
    table = np.zeros_like(probs) if linear is None else linear
    means = np.einsum("ik,ik->i", probs, table)
    table = table - means[:, None]
    if len(terms) == 1 and terms[0].matrix is None:
        tile = IdentitySums(probs, probs * table, terms[0].weights)
        sums, trace, error = _identity_sums(tile, terms, workers)
    else:
        general = partial(_general_tile, probs, probs * table, terms)
        sums = sum_over_tiles(general, len(probs), workers, description="moments")
        trace, error = cubic_trace(probs, terms, workers)
    second, third, mixed, cross = sums
    variance = 2.0 * second + np.sum(probs * table**2)
    cumulant = 8.0 * trace + 4.0 * third
    cumulant += 12.0 * mixed + 6.0 * cross + np.sum(probs * table**3)
    return float(np.sum(means)), float(variance), float(cumulant), 8.0 * error


def _identity_sums(
    tile: IdentitySums, terms: tuple[Term, ...], workers: Workers
) -> tuple[Array, float, float]:
    """Return the sums over pairs, tr((MΣ)³) and its standard error; the weights are computed twice."""
    n = len(tile.probs)
    if is_exact(tile.probs, terms):
        sums = sum_over_tiles(tile, n, workers, description="moments")
        return sums, *cubic_trace(tile.probs, terms, workers)
    probes = Probes.of(tile.probs)
    vectors = probes.columns.astype(np.float32)  # rounding is nothing beside the probes' own error
    sums, image = sum_and_multiply(tile.with_weights, vectors, workers, description="moments")
    return sums, *cubic_trace(tile.probs, terms, workers, probes, image)


def diagonal_table(probs: Array, terms: tuple[Term, ...]) -> Array:
    """Return the diagonal (e_k − g_i)ᵀ M_ii (e_k − g_i) as a linear part, (n, m)."""
    table = np.zeros_like(probs)
    for weights, matrix in terms:
        image = probs if matrix is None else probs @ matrix
        own = np.ones(probs.shape[1]) if matrix is None else np.diag(matrix)
        lengths = own - 2.0 * image + np.einsum("ik,ik->i", probs, image)[:, None]
        table += weights.diagonal()[:, None] * lengths
    return table


@dataclass(frozen=True, eq=False)
class IdentitySums:
    """Sums of E h², E h³, E[h² l] and c·M c over the pairs of a tile, for M_ij = W_ij I.

    With a = g_i, b = g_j, s = a·b, P_pq = Σ_k a_k^p b_k^q and q = s² + s − P21 − P12:
    E⟨D_i,D_j⟩² = q,
    E⟨D_i,D_j⟩³ = s − 3(P21 + P12) + 2(P31 + P13) + 6 P22 − 3s² − 2s³ + 6s q.

    Attributes
    ----------
    probs
        (n, m) predictions.
    tilted
        c = E[l D], (n, m).
    weights
        W.
    """

    probs: Array
    tilted: Array
    weights: Tile

    @cached_property
    def _has_linear(self) -> bool:
        return bool(self.tilted.any())

    @cached_property
    def _powers(self) -> _Powers | None:
        """Powers of all predictions, where they are few."""
        return _Powers.of(self.probs) if self.probs.shape[1] <= _POWERS_UP_TO else None

    def __call__(self, rows: slice, columns: slice) -> Array:
        """Return the four sums of a tile."""
        return self._sums(rows, columns)[0]

    def with_weights(self, rows: slice, columns: slice) -> tuple[Array, Any]:
        """Return the four sums of a tile, and W without its diagonal in single precision."""
        sums, w = self._sums(rows, columns)
        return sums, w.astype(np.float32)

    def _sums(self, rows: slice, columns: slice) -> tuple[Array, Array]:
        w = self.weights(rows, columns)
        if rows == columns:
            np.fill_diagonal(w, 0.0)
        left, right = self._powers_of(rows), self._powers_of(columns)
        a, b = self.probs[rows], self.probs[columns]
        s = a @ b.T
        q = left.of_square @ right.for_square.T
        linear = left.of_cube @ right.for_cube.T
        square = s * s
        q += square
        w2 = w * w
        w3 = w2 * w
        second = np.vdot(w2, q)
        third = np.vdot(w3, linear) - 3.0 * np.vdot(w3, square)
        w3 *= s
        third += 6.0 * np.vdot(w3, q) - 2.0 * np.vdot(w3, square)
        mixed = cross = 0.0
        if self._has_linear:
            c, d = self.tilted[rows], self.tilted[columns]
            mixed = 0.5 * (_mixed(w2, a, c, b, s) + _mixed(w2.T, b, d, a, s.T))
            cross = float(np.vdot(w, c @ d.T))
        return np.array([second, third, mixed, cross]), w

    def _powers_of(self, rows: slice) -> _Powers:
        known = self._powers
        return _Powers.of(self.probs[rows]) if known is None else known.rows(rows)


def identity_tile(probs: Array, tilted: Array, term: Term, rows: slice, columns: slice) -> Array:
    """Return the four sums of one tile."""
    return IdentitySums(probs, tilted, term.weights)(rows, columns)


class _Powers(NamedTuple):
    """Tables whose products are sums of products of powers of predictions, (n, 2m) and (n, 3m)."""

    of_square: Array  # a − a², −a
    for_square: Array  # b, b²
    of_cube: Array  # a, a², a³
    for_cube: Array  # b − 3b² + 2b³, 6b² − 3b, 2b

    @classmethod
    def of(cls, probs: Array) -> _Powers:
        """Compute them."""
        second = probs * probs
        third = second * probs
        return cls(
            np.hstack([probs - second, -probs]),
            np.hstack([probs, second]),
            np.hstack([probs, second, third]),
            np.hstack([probs - 3 * second + 2 * third, 6 * second - 3 * probs, 2 * probs]),
        )

    def rows(self, rows: slice) -> _Powers:
        """Return those of some rows."""
        return _Powers(*(table[rows] for table in self))


def _mixed(w2: Array, g: Array, tilted: Array, other: Array, s: Array) -> float:
    """Sum W² tr(U_i Σ_j), U_i = E[l_i D_i D_iᵀ] = diag(v) − v gᵀ − g vᵀ with v = g∘l."""
    outer = tilted @ (other - other**2).T - 2.0 * (g * tilted) @ other.T
    return float(np.vdot(w2, outer + 2.0 * s * (tilted @ other.T)))


def _general_tile(
    probs: Array, tilted: Array, terms: tuple[Term, ...], rows: slice, columns: slice
) -> Array:
    """Sum the same for any M_ij, by enumerating the m outcomes of both rows: O(m²) a pair."""
    m = probs.shape[1]
    a, b = probs[rows], probs[columns]
    matrices = [np.eye(m) if term.matrix is None else term.matrix for term in terms]
    weights = [term.weights(rows, columns) for term in terms]
    sums = np.zeros(4)
    for w, matrix in zip(weights, matrices, strict=True):
        if rows == columns:
            np.fill_diagonal(w, 0.0)
        sums[3] += np.vdot(w, tilted[rows] @ matrix @ tilted[columns].T)
    images = [(w, A, a @ A, b @ A, a @ A @ b.T) for w, A in zip(weights, matrices, strict=True)]
    loads_a, loads_b = np.zeros_like(a), np.zeros_like(b)
    np.divide(tilted[rows], a, out=loads_a, where=a > 0)
    np.divide(tilted[columns], b, out=loads_b, where=b > 0)
    for p, q in np.ndindex(m, m):
        h = np.zeros((len(a), len(b)))
        for w, A, image_a, image_b, inner in images:
            h += w * (inner + A[p, q] - image_a[:, q, None] - image_b[None, :, p])
        square = a[:, p, None] * b[None, :, q] * h * h
        load = 0.5 * (loads_a[:, p, None] + loads_b[None, :, q])
        sums[:3] += square.sum(), np.vdot(square, h), np.vdot(square, load)
    return sums
