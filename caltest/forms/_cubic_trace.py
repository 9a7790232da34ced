"""tr((MΣ)³) for M = Σ_l W_l ⊗ A_l off the diagonal, Σ = blockdiag(Σ_1, …, Σ_n): the bulk of the skewness.

Exact where m n³ is small. Else the W_l are compressed to a basis Q of r smooth functions of the
predictions, W ≈ Q C Qᵀ (a Nyström approximation), and the trace is taken in the small space. The error
is estimated: the share of tr((MΣ)²) that the compression misses, known exactly, times the size of the
smallest eigenvalues that it keeps.
"""

from __future__ import annotations

import numpy as np
from scipy.linalg import eigh

from caltest._parallel import Workers
from caltest._seeds import generator
from caltest._tiles import blocks, multiply
from caltest.forms.base import Array
from caltest.forms.weights import Term

EXACT_WORK = 1e9  # m n³ up to which the trace is exact
RANK = 32
DENSE_SIZE = 800  # r m up to which the compressed operator is a matrix; above, probes


def cubic_trace(
    probs: Array, terms: tuple[Term, ...], second: float, workers: Workers
) -> tuple[float, float]:
    """Return tr((MΣ)³) and an estimate of its error; ``second`` is tr((MΣ)²)."""
    n, m = probs.shape
    if len(terms) == 1 and terms[0].matrix is None and m * float(n) ** 3 <= EXACT_WORK:
        return _exact(probs, terms[0]), 0.0
    basis, cores = _compress(probs, terms, workers)
    matrices = [np.eye(m) if term.matrix is None else term.matrix for term in terms]
    if basis.shape[1] * m <= DENSE_SIZE:
        return _dense(probs, basis, cores, matrices, second)
    return _probed(probs, basis, cores, [term.matrix for term in terms], second)


def _exact(probs: Array, term: Term) -> float:
    """Expand Σ_i = diag(g_i) − g_i g_iᵀ in all three factors: m + 1 products of n×n matrices.

    With H_ij = W_ij g_i·g_j and B_c = W diag(G_c) W:
    Σ_c Σ_ij B_c,ij (W_ij g_ic (g_jc − 3 g_jc²) + 3 H_ij g_ic g_jc) − tr(H³).
    """
    everything = slice(0, len(probs))
    w = term.weights(everything, everything)
    np.fill_diagonal(w, 0.0)
    h = w * (probs @ probs.T)
    total = -float(np.vdot(h @ h, h))
    for g in probs.T:
        between = (w * g) @ w
        total += g @ (between * w) @ (g - 3.0 * g**2) + 3.0 * g @ (between * h) @ g
    return float(total)


def _compress(
    probs: Array, terms: tuple[Term, ...], workers: Workers
) -> tuple[Array, list[Array]]:
    """Return Q (n, r) orthonormal and cores C_l (r, r) with W_l ≈ Q C_l Qᵀ off the diagonal."""
    test = _smooth_functions(probs, RANK // len(terms))
    roots = []
    for term in terms:
        image = multiply(term.weights, test, workers, description="moments")
        values, vectors = eigh(test.T @ image)
        kept = values > 1e-10 * max(float(values[-1]), 0.0)
        roots.append(image @ (vectors[:, kept] / np.sqrt(values[kept])))
    basis = _orthonormal(np.hstack(roots))
    cores = []
    for term, root in zip(terms, roots, strict=True):
        projected = basis.T @ root
        cores.append(projected @ projected.T - (basis.T * term.weights.diagonal()) @ basis)
    return basis, cores


def _smooth_functions(probs: Array, count: int) -> Array:
    """Return (n, r) fixed functions of the predictions, so that the row order does not matter."""
    n, m = probs.shape
    count = min(count, n)
    centred = probs - probs.mean(axis=0)
    spread = np.sqrt(2.0 * np.mean(np.sum(centred**2, axis=1)))
    if spread < 1e-12:
        return np.ones((n, 1))
    stream = generator(0)
    scales = np.geomspace(0.5, 8.0, count) / spread
    waves = np.cos(
        centred @ (stream.standard_normal((m, count)) * scales)
        + stream.uniform(0, 2 * np.pi, count)
    )
    return _orthonormal(waves)


def _orthonormal(columns: Array) -> Array:
    """Return an orthonormal basis of the span of a few columns, through their small Gram matrix."""
    values, vectors = eigh(columns.T @ columns)
    kept = values > 1e-12 * float(values[-1])
    return np.asarray(columns @ (vectors[:, kept] / np.sqrt(values[kept])))


def _dense(
    probs: Array, basis: Array, cores: list[Array], matrices: list[Array], second: float
) -> tuple[float, float]:
    """Trace of (CS)³ with S = (Q ⊗ I)ᵀ Σ (Q ⊗ I) as an (rm × rm) matrix."""
    r, m = basis.shape[1], probs.shape[1]
    small = np.zeros((r, m, r, m))
    for rows in blocks(len(probs), max(1, 2**21 // (r * m))):
        q, g = basis[rows], probs[rows]
        joint = (q[:, :, None] * g[:, None, :]).reshape(len(q), r * m)
        small -= (joint.T @ joint).reshape(r, m, r, m)
        for c in range(m):
            small[:, c, :, c] += (q.T * g[:, c]) @ q
    core = sum(np.kron(c, a) for c, a in zip(cores, matrices, strict=True))
    product = core @ small.reshape(r * m, r * m)
    square = product @ product
    missed = max(0.0, second - float(np.trace(square)))
    kept = np.sort(np.abs(np.linalg.eigvals(product)))[r:]  # each Σ_i has a null direction
    edge = float(np.quantile(kept, 0.25)) if len(kept) else 0.0
    return float(np.vdot(square, product.T)), missed * edge


def _probed(
    probs: Array,
    basis: Array,
    cores: list[Array],
    matrices: list[Array | None],
    second: float,
) -> tuple[float, float]:
    """Estimate the traces in the small space by Hutchinson's probes, where rm is too large."""
    r, m = basis.shape[1], probs.shape[1]
    count = int(np.clip(6400 // m, 8, 64))
    probes = generator(0, 1).choice([-1.0, 1.0], size=(r, count, m))

    def apply(x: Array) -> Array:
        image = np.zeros((r, count * m))
        for rows in blocks(len(probs), max(1, 2**22 // (count * m))):
            q, g = basis[rows], probs[rows, None, :]
            v = (q @ x.reshape(r, -1)).reshape(len(q), count, m)
            v = g * (v - np.einsum("ipk,ik->ip", v, probs[rows])[:, :, None])
            image += q.T @ v.reshape(len(q), -1)
        out = np.zeros((r, count, m))
        for core, matrix in zip(cores, matrices, strict=True):
            part = (core @ image).reshape(r, count, m)
            out += part if matrix is None else part @ matrix
        return out

    once = apply(probes)
    twice = apply(once)
    cubes = np.einsum("rpk,rpk->p", probes, apply(twice))
    squares = np.einsum("rpk,rpk->p", probes, twice)
    standard_error = float(np.std(cubes, ddof=1) / np.sqrt(count))
    missed = max(0.0, second - float(np.mean(squares)))
    ratio = float(np.mean(cubes)) / max(float(np.mean(squares)), 1e-300)
    return float(np.mean(cubes)), standard_error + missed * 0.25 * abs(ratio)
