"""Moments of statistics over pairs under H0: quadratic forms, and the trace that skewness needs."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TypeAlias

import numpy as np
import scipy

from caltest._parallel import Workers
from caltest._sums import Array, Tile, blocks, multiply, sum_and_multiply, sum_over_tiles
from caltest.forms import kernel_matrices
from caltest.forms.kernel_matrices import Term, Weights, incomplete_cholesky, without_diagonal
from caltest.kernels.bandwidth import fixed_order
from caltest.sampling import generator

# ------------------------------------------------------------------ quadratic moments
#
# The linear part holds the diagonal i = j, if included, and any other linear term of a statistic:
#
# * variance: 2 Σ_{i≠j} tr(M_ij Σ_j M_ijᵀ Σ_i) + Σ_i Var l_i, exact;
# * third cumulant: 8 tr((MΣ)³) + 4 Σ_{i≠j} E(D_iᵀ M_ij D_j)³, and with a linear part also
#   3·4 Σ_{i≠j} E[(D_iᵀ M_ij D_j)² l_i] + 3·2 Σ_{i≠j} c_iᵀ M_ij c_j + Σ_i κ₃(l_i), c_i = E[l_i D_i];
#   all exact but for the trace when n is large.


#: Takes a power and two arrays (n,), returns Σ_{i≠j} W_ij^power x_i y_j.
Pairs: TypeAlias = Callable[[int, Array, Array], float]

#: Mean, variance, third cumulant, and the standard error of the third.
Cumulants: TypeAlias = tuple[float, float, float, float]


def quadratic_moments(
    probs: Array, terms: tuple[Term, ...], linear: Array | None, workers: Workers
) -> Cumulants:
    """Return mean, variance, third cumulant and its standard error, for M_ij = Σ_l W_l,ij A_l.

    ``linear`` is l_i(k), (n, m); None for none.
    """
    table = np.zeros_like(probs) if linear is None else linear
    means = np.einsum("ik,ik->i", probs, table)
    table = table - means[:, None]
    n, tilted = len(probs), probs * table
    probes, image = None, None
    tile = partial(identity_tile, probs, tilted if tilted.any() else None, terms[0].weights)
    if _plain(terms) and not _is_exact(probs, terms):
        # The pass with the probes is shared; their error dwarfs its rounding.
        probes = _dealt(probs)
        vectors = _spread(probs, probes).reshape(n, -1).astype(np.float32)
        sums, image = sum_and_multiply(tile, vectors, workers, description="moments")
    else:
        general = partial(_general_tile, probs, tilted, terms)
        of_tile = (lambda *cut: tile(*cut)[0]) if _plain(terms) else general
        sums = sum_over_tiles(of_tile, n, workers, description="moments")
    trace, error = _cubic_trace(probs, terms, workers, probes, image)
    second, third, mixed, cross = sums
    variance = 2.0 * second + np.sum(probs * table**2)
    cumulant = 8.0 * trace + 4.0 * third
    cumulant += 12.0 * mixed + 6.0 * cross + np.sum(probs * table**3)
    return float(np.sum(means)), float(variance), float(cumulant), 8.0 * error


def chain_moments(chain: kernel_matrices.Chain, probs: Array, linear: Array | None) -> Cumulants:
    """Return the cumulants for two classes if W is a chain: all exact, O(n).

    ⟨D_i, D_j⟩ = 2 d_i d_j for d = y − p, so that M_ij = 2 W_ij acts on numbers.
    """
    from caltest.loops import rows as _loops

    def pairs(power: int, one: Array, other: Array) -> float:
        return _loops.chain_pairs(chain.decay**power, one, other)

    table = None if linear is None else linear[chain.order]
    triples = partial(_loops.chain_triples, chain.decay**2)  # W_ij W_jk = W_ik
    return binary_cumulants(probs[chain.order], chain.steps, table, pairs, triples)


def binary_cumulants(
    probs: Array, steps: Array, linear: Array | None, pairs: Pairs, triples: Callable[[Array], float]
) -> Cumulants:
    """Return the cumulants for two classes and weights s_i s_j W_ij whose sums are fast.

    ``pairs`` takes k, x and y and returns Σ_{i≠j} W_ij^k x_i y_j; ``triples`` takes v and returns
    Σ W_ij W_jk W_ki v_i v_j v_k over three different rows.
    """
    p, s = probs[:, 1], steps
    v, skew = p * (1.0 - p) * s**2, p * (1.0 - p) * (1.0 - 2.0 * p) * s**3
    variance = 8.0 * pairs(2, v, v)
    cumulant = 64.0 * triples(v) + 32.0 * pairs(3, skew, skew)
    if linear is None:
        return 0.0, variance, cumulant, 0.0
    means = np.einsum("ik,ik->i", probs, linear)
    zero, one = (linear - means[:, None]).T
    c, e = v / s * (one - zero), v * ((1.0 - p) * one + p * zero)  # E[l d] and E[l d²]
    cumulant += 48.0 * pairs(2, e, v) + 12.0 * pairs(1, c, c)
    cumulant += float(np.sum(p * one**3 + (1.0 - p) * zero**3))
    variance += float(np.sum(p * one**2 + (1.0 - p) * zero**2))
    return float(means.sum()), variance, cumulant, 0.0


def diagonal_table(probs: Array, terms: tuple[Term, ...]) -> Array:
    """Return the diagonal (e_k − g_i)ᵀ M_ii (e_k − g_i) as a linear part, (n, m)."""
    if _plain(terms):  # w_i (1 − 2 g_ik + |g_i|²); for many classes, passes take the time
        own = terms[0].weights.diagonal()
        found = probs * (-2.0 * own)[:, None]
        found += (own * (1.0 + np.einsum("ik,ik->i", probs, probs)))[:, None]
        return np.asarray(found)
    table = np.zeros_like(probs)
    for weights, matrix in terms:
        image = probs if matrix is None else probs @ matrix
        own = np.ones(probs.shape[1]) if matrix is None else np.diag(matrix)
        lengths = own - 2.0 * image + np.einsum("ik,ik->i", probs, image)[:, None]
        table += weights.diagonal()[:, None] * lengths
    return table


def _plain(terms: tuple[Term, ...]) -> bool:
    """Return whether M_ij = W_ij I."""
    return len(terms) == 1 and terms[0].matrix is None


def identity_tile(
    probs: Array, tilted: Array | None, weights: Tile, rows: slice, columns: slice
) -> tuple[Array, Array]:
    """Return sums over the pairs of a tile for M_ij = W_ij I, and W without its diagonal.

    They are those of E h², E h³, E[h² l] and c·M c, for c = E[l D], which is ``tilted``, (n, m).
    With a = g_i, b = g_j, s = a·b, P_pq = Σ_k a_k^p b_k^q and q = s² + s − P21 − P12:
    E⟨D_i,D_j⟩² = q,
    E⟨D_i,D_j⟩³ = s − 3(P21 + P12) + 2(P31 + P13) + 6 P22 − 3s² − 2s³ + 6s q.
    """
    w, a, b = without_diagonal(weights)(rows, columns), probs[rows], probs[columns]
    of_square, _, of_cube, _ = _powers(a)
    _, for_square, _, for_cube = _powers(b)
    s = a @ b.T
    q = of_square @ for_square.T
    linear = of_cube @ for_cube.T
    square = s * s
    q += square
    w2 = w * w
    w3 = w2 * w
    second = np.vdot(w2, q)
    third = np.vdot(w3, linear) - 3.0 * np.vdot(w3, square)
    w3 *= s
    third += 6.0 * np.vdot(w3, q) - 2.0 * np.vdot(w3, square)
    mixed = cross = 0.0
    if tilted is not None:
        c, d = tilted[rows], tilted[columns]
        mixed = 0.5 * (_mixed(w2, a, c, b, s) + _mixed(w2.T, b, d, a, s.T))
        cross = float(np.vdot(w, c @ d.T))
    return np.array([second, third, mixed, cross]), w


def _powers(probs: Array) -> tuple[Array, Array, Array, Array]:
    """Return tables whose products are sums of products of powers: two for squares, two for cubes."""
    second = probs * probs
    third = second * probs
    weighed = np.hstack([probs - 3 * second + 2 * third, 6 * second - 3 * probs, 2 * probs])
    squares = np.hstack([probs - second, -probs]), np.hstack([probs, second])
    return *squares, np.hstack([probs, second, third]), weighed


def _mixed(w2: Array, g: Array, tilted: Array, other: Array, s: Array) -> float:
    """Sum W² tr(U_i Σ_j), U_i = E[l_i D_i D_iᵀ] = diag(v) − v gᵀ − g vᵀ with v = g∘l."""
    outer = tilted @ (other - other**2).T - 2.0 * (g * tilted) @ other.T
    return float(np.vdot(w2, outer + 2.0 * s * (tilted @ other.T)))


def _general_tile(
    probs: Array, tilted: Array, terms: tuple[Term, ...], rows: slice, columns: slice
) -> Array:
    """Compute these sums for any M_ij, by enumerating the m outcomes of both rows: O(m²) per pair."""
    m = probs.shape[1]
    a, b = probs[rows], probs[columns]
    sums, images = np.zeros(4), []
    for weights, matrix in terms:
        w, A = without_diagonal(weights)(rows, columns), np.eye(m) if matrix is None else matrix
        sums[3] += np.vdot(w, tilted[rows] @ A @ tilted[columns].T)
        images.append((w, A, a @ A, b @ A, a @ A @ b.T))
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
# It is most of the third cumulant of a quadratic form. For few rows it is exact. For many, M is first
# approximated by M̂ of low rank, whose trace is exact; random probes z then estimate the rest, zᵀ(A³ −
# Â³)z with A = CᵀMC and Σ = CCᵀ. The two parts complement each other: if few eigenvalues carry the
# trace, M̂ has them and the rest is small; if many carry it, the probes' error is small (about γ²/(2√p)
# in a skewness γ, with p probes).


EXACT_WORK = 2e9  # operations up to which the trace is exact
_SMALL_SPACE = 240  # rank times classes of the low-rank part, its rank at least 4
_LARGEST_SPACE = 800  # above, there is no low-rank part
_PIVOTS = 160
_PROBE_COLUMNS = 24  # probes times classes, with at least two probes


def _is_exact(probs: Array, terms: tuple[Term, ...]) -> bool:
    """Return whether the trace is exact, as rows are few."""
    n, m = (float(size) for size in probs.shape)
    return (m * n**3 if _plain(terms) else (m * n) ** 3) <= EXACT_WORK


def _dealt(probs: Array) -> Array:
    """Return probes: random signs (n, p, m), assigned in an order that does not depend on row order."""
    n, m = probs.shape
    signs = np.empty((n, max(2, _PROBE_COLUMNS // m), m))
    signs[fixed_order(probs)] = generator(0).choice([-1.0, 1.0], size=signs.shape)
    return signs


def _cubic_trace(
    probs: Array, terms: tuple[Term, ...], workers: Workers, probes: Array | None, image: Array | None
) -> tuple[float, float]:
    """Return tr((MΣ)³) and the standard error of the estimate (0 if exact).

    ``image`` is M C z, if the caller has computed it for the probes z.
    """
    if _is_exact(probs, terms):
        plain = _plain(terms)
        return _exact_identity(probs, terms[0].weights) if plain else _exact_matrices(probs, terms), 0.0
    if np.count_nonzero(probs.max(axis=1) < 1.0) < 2:  # Σ_i = 0 for the others
        return 0.0, 0.0
    (n, m), probes = probs.shape, _dealt(probs) if probes is None else probes

    def applied(z: Array) -> Array:
        """Return M C z; tiles are multiplied by probes in single precision."""
        flat = _spread(probs, z).reshape(n, -1)
        total, rough = np.zeros_like(flat), flat.astype(np.float32)
        for weights, matrix in terms:
            product = multiply(without_diagonal(weights), rough, workers, description="skewness")
            total += product if matrix is None else (product.reshape(-1, m) @ matrix).reshape(n, -1)
        return total

    once = _gather(probs, (applied(probes) if image is None else image).reshape(probes.shape))
    cubes = np.sum(once * _gather(probs, applied(once).reshape(probes.shape)), axis=(0, 2))
    trace, small = _of_low_rank(probs, terms)
    small_once = small(probes)
    cubes -= np.sum(small_once * small(small_once), axis=(0, 2))
    return trace + float(cubes.mean()), float(np.std(cubes, ddof=1)) / np.sqrt(len(cubes))


def _exact_identity(probs: Array, weights: Weights) -> float:
    """Expand Σ_i = diag(g_i) − g_i g_iᵀ in all three factors: m + 1 products of n×n matrices.

    With H_ij = W_ij g_i·g_j and B_c = W diag(G_c) W:
    Σ_c Σ_ij B_c,ij (W_ij g_ic (g_jc − 3 g_jc²) + 3 H_ij g_ic g_jc) − tr(H³).
    """
    w = _whole(weights, len(probs))
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
        product += _whole(weights, n)[:, None, :, None] * image
    flat = product.reshape(n * m, n * m)
    return float(np.vdot(flat @ flat, flat.T))


def _whole(weights: Weights, n: int) -> Array:
    return without_diagonal(weights)(slice(0, n), slice(0, n))


def _spread(probs: Array, z: Array) -> Array:
    """Return C z, C_i = diag(√g_i) − g_i √g_iᵀ, for z (n, p, m)."""
    scaled = np.sqrt(probs)[:, None, :] * z
    return np.asarray(scaled - probs[:, None, :] * scaled.sum(axis=2, keepdims=True))


def _gather(probs: Array, v: Array) -> Array:
    """Return Cᵀ v."""
    inner = np.sum(probs[:, None, :] * v, axis=2, keepdims=True)
    return np.asarray(np.sqrt(probs)[:, None, :] * (v - inner))


def _of_low_rank(probs: Array, terms: tuple[Term, ...]) -> tuple[float, Callable[[Array], Array]]:
    """Return tr((M̂Σ)³) and z → CᵀM̂C z, for M̂ = Σ_l (R C_l Rᵀ) ⊗ A_l with R of few columns.

    Its columns are the directions that matter most under the rows' variances.
    """
    n, m = probs.shape
    rank = min(max(_SMALL_SPACE // m, 4), 128)
    if rank * m > _LARGEST_SPACE:
        return 0.0, np.zeros_like
    matrices = [np.eye(m) if term.matrix is None else term.matrix for term in terms]
    scale = np.sqrt(1.0 - np.einsum("ik,ik->i", probs, probs).clip(max=1.0))
    order = fixed_order(probs)
    scaled = (kernel_matrices.ScaledWeights(term.weights, scale) for term in terms)
    factors = [incomplete_cholesky(each, order, _PIVOTS).factor for each in scaled]
    # The leading left singular vectors of a tall matrix, through its small Gram matrix.
    factor = np.hstack(factors)
    values, vectors = scipy.linalg.eigh(factor.T @ factor)
    kept = values > 1e-12 * max(float(values[-1]), 0.0)
    values, vectors = values[kept][-rank:], vectors[:, kept][:, -rank:]
    basis = np.asarray(factor @ (vectors / np.sqrt(values)))
    cores = []
    for term, factor in zip(terms, factors, strict=True):
        projected = basis.T @ factor
        own = scale**2 * term.weights.diagonal()
        cores.append(projected @ projected.T - (basis.T * own) @ basis)
    root = np.zeros_like(basis)
    np.divide(basis, scale[:, None], out=root, where=scale[:, None] > 1e-150)
    root[probs.max(axis=1) >= 1.0] = 0.0
    core = sum(np.kron(c, a) for c, a in zip(cores, matrices, strict=True))
    product = core @ _compressed_covariance(probs, root)

    def applied(z: Array) -> Array:
        spread = _spread(probs, z)
        inner = root.T @ spread.reshape(n, -1)
        total = np.zeros_like(spread)
        for core, matrix in zip(cores, matrices, strict=True):
            total += (root @ (core @ inner)).reshape(z.shape) @ matrix
        return _gather(probs, total)

    return float(np.vdot(product @ product, product.T)), applied


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


# ------------------------------------------------------------------ low rank moments
#
# As above, but with W = ΨΨᵀ the sums over pairs i ≠ j are those over all pairs, which factorise, less
# the diagonal. With C = Σ_i Σ_i ⊗ ψ_i ψ_iᵀ, the covariance of Σ_i D_i ⊗ ψ_i, and w_i = |ψ_i|²:
#
# * Σ_{i≠j} W_ij² tr(Σ_i Σ_j) = ‖C‖² − Σ_i w_i² tr Σ_i²;
# * tr((M Σ)³) = tr C³ − 3 ⟨Σ_i w_i Σ_i² ⊗ ψ_i ψ_iᵀ, C⟩ + 2 Σ_i w_i³ tr Σ_i³, M without its diagonal;
# * Σ_{i≠j} W_ij³ E⟨D_i, D_j⟩³, a small part of the skewness, is estimated from pairs of some rows.

_ROWS = 2048
_FEWEST = 4096  # rows; fewer leave too small samples
_LARGEST = 2500  # m F; C has this many rows: 50 MB
_SAMPLES, _SAMPLED = 16, 1024  # disjoint samples of rows, and most rows in each


def is_worthwhile(n: int, m: int, f: int) -> bool:
    """Return whether this takes less time than a sum over pairs."""
    return n >= _FEWEST and m * f <= _LARGEST and n * (f + 7 * m) > (m * f) ** 2


def low_rank_moments(probs: Array, features: Array, linear: Array, workers: Workers) -> Cumulants:
    """Return mean, variance, third cumulant and the standard error of the third cumulant.

    ``features`` are Ψ, (n, F), and ``linear`` holds the terms of the diagonal i = j, (n, m). With the
    linear part l, v = E[l D] = g∘l and U = E[l D Dᵀ] = diag(v) − v gᵀ − g vᵀ.
    """
    means = np.einsum("ik,ik->i", probs, linear)
    table = linear - means[:, None]
    v = probs * table
    tasks = [(part,) for part in blocks(len(probs), _ROWS)]
    covariance = np.asarray(sum(workers.map(partial(_covariance, probs, features), tasks, "moments")))
    inner = partial(_inner_products, probs, features, v, covariance)
    squares, mixed = sum(workers.map(inner, tasks, "skewness"))
    # Excess of the sums over all pairs: those over the diagonal i = j.
    w = np.einsum("if,if->i", features, features)
    p2, p3, p4 = (np.sum(probs**power, axis=1) for power in (2, 3, 4))
    gv, g2v = np.sum(probs * v, axis=1), np.sum(probs**2 * v, axis=1)
    own_second = w**2 @ (p2 - 2.0 * p3 + p2**2)  # Σ w² tr Σ²
    own_third = w**3 @ (p3 - 3.0 * p4 + 3.0 * p2 * p3 - p2**3)  # Σ w³ tr Σ³
    own_mixed = w**2 @ (gv - 3.0 * g2v + 2.0 * p2 * gv)  # Σ w² tr(U Σ)
    own_cross = w @ np.sum(v * v, axis=1)  # Σ w |v|²
    third, error = _sampled_cubes(probs, features)
    variance = 2.0 * (np.vdot(covariance, covariance) - own_second) + np.sum(probs * table**2)
    trace = np.vdot(covariance @ covariance, covariance) - 3.0 * squares + 2.0 * own_third
    cumulant = 8.0 * trace + 4.0 * third + 12.0 * (mixed - own_mixed) + np.sum(probs * table**3)
    cumulant += 6.0 * (np.sum((v.T @ features) ** 2) - own_cross)
    return float(means.sum()), float(variance), float(cumulant), 4.0 * error


def _joint(probs: Array, features: Array) -> Array:
    """Return g ⊗ ψ, (rows, mF)."""
    return (probs[:, :, None] * features[:, None, :]).reshape(len(probs), -1)


def _covariance(probs: Array, features: Array, rows: slice) -> Array:
    """Return Σ_i Σ_i ⊗ ψ_i ψ_iᵀ over some rows, (mF, mF)."""
    q, joint, f = features[rows], _joint(probs[rows], features[rows]), features.shape[1]
    total = -(joint.T @ joint)
    for k, weighted in enumerate(np.split(joint, probs.shape[1], axis=1)):
        own = slice(k * f, (k + 1) * f)
        total[own, own] += weighted.T @ q
    return np.asarray(total)


def _inner_products(probs: Array, features: Array, v: Array, covariance: Array, rows: slice) -> Array:
    """Return ⟨w Σ² ⊗ ψψᵀ, C⟩ and ⟨U ⊗ ψψᵀ, C⟩, summed over some rows."""
    g, q, v = probs[rows], features[rows], v[rows]
    m, f = g.shape[1], q.shape[1]
    corners = [covariance[k * f : (k + 1) * f, k * f : (k + 1) * f] for k in range(m)]
    alone = np.stack([np.einsum("if,if->i", q @ corner, q) for corner in corners], axis=1)
    beside = np.einsum("ikf,if->ik", (_joint(g, q) @ covariance).reshape(-1, m, f), q)
    w = np.einsum("if,if->i", q, q)[:, None]
    g2 = g * g
    # Σ² = diag(g²) − g² gᵀ − g g²ᵀ + |g|² g gᵀ
    squares = w * (g2 * alone - 2.0 * g2 * beside + g2.sum(axis=1, keepdims=True) * g * beside)
    return np.array([squares.sum(), np.sum(v * alone - 2.0 * v * beside)])


def _sampled_cubes(probs: Array, features: Array) -> tuple[float, float]:
    """Estimate Σ_{i≠j} W_ij³ E⟨D_i, D_j⟩³ from disjoint random samples, with its standard error."""
    n = len(probs)
    size = min(_SAMPLED, n // _SAMPLES)
    shuffled = fixed_order(probs)[generator(0).permutation(n)]
    every, found = slice(0, size), []
    for sample in blocks(_SAMPLES * size, size):
        g, weights = probs[shuffled[sample]], kernel_matrices.LowRankWeights(features[shuffled[sample]])
        sums, _ = identity_tile(g, None, weights, every, every)
        found.append(sums[1] * n * (n - 1) / (size * (size - 1)))
    return float(np.mean(found)), float(np.std(found, ddof=1) / np.sqrt(_SAMPLES))
