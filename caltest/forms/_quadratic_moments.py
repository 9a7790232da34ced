"""Conditional moments of Q = Σ_{i≠j} D_iᵀ M_ij D_j + Σ_i l_i(y_i) under H0, given the predictions.

The linear part holds the diagonal i = j, where it counts, and whatever else a statistic adds:

* variance: 2 Σ_{i≠j} tr(M_ij Σ_j M_ijᵀ Σ_i) + Σ_i Var l_i, exact;
* third cumulant: 8 tr((MΣ)³) + 4 Σ_{i≠j} E(D_iᵀ M_ij D_j)³, and with a linear part also
  3·4 Σ_{i≠j} E[(D_iᵀ M_ij D_j)² l_i] + 3·2 Σ_{i≠j} c_iᵀ M_ij c_j + Σ_i κ₃(l_i), c_i = E[l_i D_i];
  all exact but for the trace when n is large.
"""

from __future__ import annotations

from functools import partial

import numpy as np

from caltest._parallel import Workers
from caltest._tiles import sum_over_tiles
from caltest.forms._cubic_trace import cubic_trace
from caltest.forms.base import Array
from caltest.forms.weights import Term


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
    n = len(probs)
    table = np.zeros_like(probs) if linear is None else linear
    means = np.einsum("ik,ik->i", probs, table)
    table = table - means[:, None]
    if len(terms) == 1 and terms[0].matrix is None:
        tile = partial(identity_tile, probs, probs * table, terms[0])
    else:
        tile = partial(_general_tile, probs, probs * table, terms)
    second, third, mixed, cross = sum_over_tiles(tile, n, workers, description="moments")
    trace, error = cubic_trace(probs, terms, workers)
    variance = 2.0 * second + np.sum(probs * table**2)
    cumulant = 8.0 * trace + 4.0 * third
    cumulant += 12.0 * mixed + 6.0 * cross + np.sum(probs * table**3)
    return float(np.sum(means)), float(variance), float(cumulant), 8.0 * error


def diagonal_table(probs: Array, terms: tuple[Term, ...]) -> Array:
    """Return the diagonal (e_k − g_i)ᵀ M_ii (e_k − g_i) as a linear part, (n, m)."""
    table = np.zeros_like(probs)
    for weights, matrix in terms:
        image = probs if matrix is None else probs @ matrix
        own = np.ones(probs.shape[1]) if matrix is None else np.diag(matrix)
        lengths = own - 2.0 * image + np.einsum("ik,ik->i", probs, image)[:, None]
        table += weights.diagonal()[:, None] * lengths
    return table


def identity_tile(probs: Array, tilted: Array, term: Term, rows: slice, columns: slice) -> Array:
    """Sum E h², E h³, E[h² l] and c·M c over the pairs of a tile, for M_ij = W_ij I.

    With a = g_i, b = g_j, s = a·b and P_pq = Σ_k a_k^p b_k^q, from tables of powers:
    E⟨D_i,D_j⟩² = s − (P21 + P12) + s²,
    E⟨D_i,D_j⟩³ = s + 3s² + 4s³ − 3(P21 + P12) + 2(P31 + P13) + 6 P22 − 6s (P21 + P12).
    """
    w = term.weights(rows, columns)
    if rows == columns:
        np.fill_diagonal(w, 0.0)
    a, b = probs[rows], probs[columns]
    a2, b2 = a * a, b * b
    b3 = b2 * b
    s = a @ b.T
    odd = np.hstack([a2, a]) @ np.hstack([b, b2]).T  # P21 + P12
    third = np.hstack([a, a2, a2 * a]) @ np.hstack([b - 3 * b2 + 2 * b3, 6 * b2 - 3 * b, 2 * b]).T
    square = s * s
    second = square + s
    second -= odd
    odd *= -6.0
    square *= 3.0
    third += square
    square *= 4.0 / 3.0
    odd += square
    odd *= s
    third += odd
    w2 = w * w
    mixed = cross = 0.0
    if tilted.any():
        mixed = 0.5 * (_mixed(w2, a, tilted[rows], b, s) + _mixed(w2.T, b, tilted[columns], a, s.T))
        cross = float(np.vdot(w, tilted[rows] @ tilted[columns].T))
    seconds = np.vdot(w2, second)
    w2 *= w
    return np.array([seconds, np.vdot(w2, third), mixed, cross])


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
