"""Moments of statistics over pairs under H0: quadratic forms, and the trace that skewness needs."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import eigh

from caltest._parallel import Workers
from caltest._sampling import generator
from caltest._tiles import Tile, blocks, multiply, sum_and_multiply, sum_over_tiles
from caltest.forms._pair_sums import Term, Weights
from caltest.forms.base import Array
from caltest.kernels.bandwidth import fixed_order

# ------------------------------------------------------------------ quadratic moments
#
# The linear part holds the diagonal i = j, where it counts, and whatever else a statistic adds:
#
# * variance: 2 Σ_{i≠j} tr(M_ij Σ_j M_ijᵀ Σ_i) + Σ_i Var l_i, exact;
# * third cumulant: 8 tr((MΣ)³) + 4 Σ_{i≠j} E(D_iᵀ M_ij D_j)³, and with a linear part also
#   3·4 Σ_{i≠j} E[(D_iᵀ M_ij D_j)² l_i] + 3·2 Σ_{i≠j} c_iᵀ M_ij c_j + Σ_i κ₃(l_i), c_i = E[l_i D_i];
#   all exact but for the trace when n is large.


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


# ------------------------------------------------------------------ cubic trace
#
# It is most of the third cumulant of a quadratic form. For few rows it is taken exactly. For many, M is
# first approximated by M̂ of low rank, whose trace is exact; random probes z then estimate the rest,
# zᵀ(A³ − Â³)z with A = CᵀMC and Σ = CCᵀ. The two parts complement each other: where few eigenvalues
# carry the trace, M̂ has them and the rest is small; where many carry it, the probes' error is small
# (about γ²/(2√p) in a skewness γ, with p probes).


EXACT_WORK = 2e9  # operations up to which the trace is exact
_SMALL_SPACE = 240  # rank times classes of the low-rank part, its rank at least 4
_LARGEST_SPACE = 800  # above, there is no low-rank part
_PIVOTS = 160
_PROBE_COLUMNS = 24  # probes times classes, with at least two probes


class Probes(NamedTuple):
    """Random signs z, and C z as the columns of a matrix."""

    signs: Array  # (n, p, m)
    columns: Array  # (n, p m)

    @classmethod
    def of(cls, probs: Array) -> Probes:
        """Deal them, in an order that the rows' order cannot change."""
        n, m = probs.shape
        count = max(2, _PROBE_COLUMNS // m)
        signs = np.empty((n, count, m))
        signs[fixed_order(probs)] = generator(0).choice([-1.0, 1.0], size=(n, count, m))
        return cls(signs, _spread(probs, signs).reshape(n, -1))


def is_exact(probs: Array, terms: tuple[Term, ...]) -> bool:
    """Say whether rows are so few that the trace is exact."""
    n, m = probs.shape
    if len(terms) == 1 and terms[0].matrix is None:
        return bool(m * float(n) ** 3 <= EXACT_WORK)
    return bool((m * float(n)) ** 3 <= EXACT_WORK)


def cubic_trace(
    probs: Array,
    terms: tuple[Term, ...],
    workers: Workers,
    probes: Probes | None = None,
    image: Array | None = None,
) -> tuple[float, float]:
    """Return tr((MΣ)³) and the standard error of the estimate (0 where it is exact).

    Parameters
    ----------
    probs, terms, workers
        As of :func:`caltest.forms._pair_moments.quadratic_moments`.
    probes, image
        The probes, and M C z, where a caller has multiplied them already.
    """
    if is_exact(probs, terms):
        if len(terms) == 1 and terms[0].matrix is None:
            return _exact_identity(probs, terms[0].weights), 0.0
        return _exact_matrices(probs, terms), 0.0
    uncertain = np.flatnonzero(probs.max(axis=1) < 1.0)  # Σ_i = 0 for the others
    if len(uncertain) < 2:
        return 0.0, 0.0
    small = _Small.of(probs, terms, uncertain)
    probes = Probes.of(probs) if probes is None else probes
    if image is None:
        image = _image(terms, probes.columns, probes.signs.shape[2], workers)
    once = _gather(probs, image.reshape(probes.signs.shape))
    again = _spread(probs, once).reshape(image.shape)
    twice = _gather(probs, _image(terms, again, once.shape[2], workers).reshape(once.shape))
    cubes = np.sum(once * twice, axis=(0, 2))
    small_once = small.apply(probs, probes.signs)
    cubes -= np.sum(small_once * small.apply(probs, small_once), axis=(0, 2))
    error = float(np.std(cubes, ddof=1)) / np.sqrt(len(cubes))
    return small.trace + float(cubes.mean()), error


def _exact_identity(probs: Array, weights: Weights) -> float:
    """Expand Σ_i = diag(g_i) − g_i g_iᵀ in all three factors: m + 1 products of n×n matrices.

    With H_ij = W_ij g_i·g_j and B_c = W diag(G_c) W:
    Σ_c Σ_ij B_c,ij (W_ij g_ic (g_jc − 3 g_jc²) + 3 H_ij g_ic g_jc) − tr(H³).
    """
    w = _off_diagonal(weights, len(probs))
    h = w * (probs @ probs.T)
    total = -float(np.vdot(h @ h, h))
    for g in probs.T:
        between = (w * g) @ w
        total += 3.0 * g @ (between * h) @ g
        between *= w
        total += g @ between @ (g - 3.0 * g**2)
    return float(total)


def _exact_matrices(probs: Array, terms: tuple[Term, ...]) -> float:
    """Build MΣ as one matrix: (n m)³ operations."""
    n, m = probs.shape
    product = np.zeros((n, m, n, m))
    for weights, matrix in terms:
        A = np.eye(m) if matrix is None else matrix
        # A Σ_j = A diag(g_j) − (A g_j) g_jᵀ
        image = A[:, None, :] * probs - (probs @ A.T).T[:, :, None] * probs
        product += _off_diagonal(weights, n)[:, None, :, None] * image
    flat = product.reshape(n * m, n * m)
    return float(np.vdot(flat @ flat, flat.T))


def _off_diagonal(weights: Weights, n: int) -> Array:
    w = weights(slice(0, n), slice(0, n))
    np.fill_diagonal(w, 0.0)
    return w


def _spread(probs: Array, z: Array) -> Array:
    """Return C z, C_i = diag(√g_i) − g_i √g_iᵀ, for z (n, p, m)."""
    root = np.sqrt(probs)[:, None, :]
    scaled = root * z
    return np.asarray(scaled - probs[:, None, :] * scaled.sum(axis=2, keepdims=True))


def _gather(probs: Array, v: Array) -> Array:
    """Return Cᵀ v."""
    inner = np.sum(probs[:, None, :] * v, axis=2, keepdims=True)
    return np.asarray(np.sqrt(probs)[:, None, :] * (v - inner))


def _image(terms: tuple[Term, ...], flat: Array, m: int, workers: Workers) -> Array:
    """Return M v for the columns of ``flat`` (n, p m); the tiles meet them in single precision."""
    total = np.zeros_like(flat)
    rough = flat.astype(np.float32)
    for weights, matrix in terms:
        tile = _Single(weights)
        image = multiply(tile, rough, workers, description="skewness")
        total += image if matrix is None else (image.reshape(-1, m) @ matrix).reshape(image.shape)
    return total


@dataclass(frozen=True, eq=False)
class _Single:
    """Tiles without their diagonal, in single precision: far better than the probes are."""

    weights: Weights

    def __call__(self, rows: slice, columns: slice) -> Any:
        tile = self.weights(rows, columns).astype(np.float32)
        if rows == columns:
            np.fill_diagonal(tile, 0.0)
        return tile


class _Small(NamedTuple):
    """M̂ = Σ_l (R C_l Rᵀ) ⊗ A_l, and tr((M̂Σ)³)."""

    root: Array  # R, (n, r); 0 in rows that are certain
    cores: list[Array]  # C_l, (r, r)
    matrices: list[Array]  # A_l, (m, m)
    trace: float

    @classmethod
    def of(cls, probs: Array, terms: tuple[Term, ...], uncertain: NDArray[np.intp]) -> _Small:
        """Compress the weights to the directions that matter most under the rows' variances."""
        n, m = probs.shape
        matrices = [np.eye(m) if term.matrix is None else term.matrix for term in terms]
        rank = min(max(_SMALL_SPACE // m, 4), 128)
        if rank * m > _LARGEST_SPACE:
            return cls(np.zeros((n, 1)), [np.zeros((1, 1))] * len(terms), matrices, 0.0)
        scale = np.sqrt(1.0 - np.einsum("ik,ik->i", probs, probs).clip(max=1.0))
        factors = [_pivoted_cholesky(term.weights, scale) for term in terms]
        basis = _leading(np.hstack(factors), rank)
        cores = []
        for term, factor in zip(terms, factors, strict=True):
            projected = basis.T @ factor
            own = scale**2 * term.weights.diagonal()
            cores.append(projected @ projected.T - (basis.T * own) @ basis)
        root = np.zeros_like(basis)
        np.divide(basis, scale[:, None], out=root, where=scale[:, None] > 1e-150)
        root[np.setdiff1d(np.arange(n), uncertain)] = 0.0
        core = sum(np.kron(c, a) for c, a in zip(cores, matrices, strict=True))
        product = core @ _compressed_covariance(probs, root)
        trace = float(np.vdot(product @ product, product.T))
        return cls(root, cores, matrices, trace)

    def apply(self, probs: Array, z: Array) -> Array:
        """Return Â z = CᵀM̂C z."""
        spread = _spread(probs, z)
        inner = self.root.T @ spread.reshape(len(probs), -1)
        total = np.zeros_like(spread)
        for core, matrix in zip(self.cores, self.matrices, strict=True):
            total += (self.root @ (core @ inner)).reshape(z.shape) @ matrix
        return _gather(probs, total)


def _pivoted_cholesky(weights: Weights, scale: Array) -> Array:
    """Return L (n, r) with L Lᵀ ≈ diag(scale) W diag(scale), greedily by the largest residual."""
    n = len(scale)
    rows = np.zeros((min(_PIVOTS, n), n))
    residual = scale**2 * weights.diagonal()
    floor = 1e-12 * float(residual.max(initial=0.0))
    for number in range(len(rows)):
        pivot = int(residual.argmax())
        if residual[pivot] <= floor:
            return rows[:number].T
        row = scale * scale[pivot] * weights(slice(pivot, pivot + 1), slice(0, n))[0]
        row -= rows[:number, pivot] @ rows[:number]
        rows[number] = row / np.sqrt(residual[pivot])
        residual = np.maximum(residual - rows[number] ** 2, 0.0)
        residual[pivot] = 0.0
    return rows.T


def _leading(factor: Array, rank: int) -> Array:
    """Return the leading left singular vectors of a tall matrix, through its small Gram matrix."""
    values, vectors = eigh(factor.T @ factor)
    kept = values > 1e-12 * max(float(values[-1]), 0.0)
    values, vectors = values[kept][-rank:], vectors[:, kept][:, -rank:]
    return np.asarray(factor @ (vectors / np.sqrt(values)))


def _compressed_covariance(probs: Array, root: Array) -> Array:
    """Return Σ_i (r_i r_iᵀ) ⊗ Σ_i as an (rm × rm) matrix."""
    r, m = root.shape[1], probs.shape[1]
    total = np.zeros((r, m, r, m))
    for rows in blocks(len(probs), 4096):
        q, g = root[rows], probs[rows]
        joint = (q[:, :, None] * g[:, None, :]).reshape(len(q), r * m)
        total -= (joint.T @ joint).reshape(r, m, r, m)
        for c in range(m):
            total[:, c, :, c] += (q.T * g[:, c]) @ q
    return total.reshape(r * m, r * m)
