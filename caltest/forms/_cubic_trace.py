"""tr((MΣ)³) for M_ij = Σ_l W_l,ij A_l off the diagonal, Σ = blockdiag(Σ_1, …, Σ_n).

It is most of the third cumulant of a quadratic form. For few rows it is taken exactly. For many, M is
first approximated by M̂ of low rank, whose trace is exact; random probes z then estimate the rest,
zᵀ(A³ − Â³)z with A = CᵀMC and Σ = CCᵀ. The two parts complement each other: where few eigenvalues
carry the trace, M̂ has them and the rest is small; where many carry it, the probes' error is small
(about γ²/(2√p) in a skewness γ, with p probes).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import eigh

from caltest._parallel import Workers
from caltest._seeds import generator
from caltest._tiles import blocks, multiply
from caltest.forms.base import Array
from caltest.forms.weights import Term, Weights
from caltest.kernels.bandwidth import fixed_order

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
        As of :func:`caltest.forms._quadratic_moments.quadratic_moments`.
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
