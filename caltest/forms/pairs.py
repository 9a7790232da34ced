"""Pairs: sums over all pairs of rows, or over some.

For fixed D⁰ and Δ_i = D_i − D⁰_i with one or two entries that are not 0,

    ⟨D_i, D_j⟩ = ⟨Δ_i, Δ_j⟩ + ⟨Δ_i, D⁰_j⟩ + ⟨D⁰_i, Δ_j⟩ + ⟨D⁰_i, D⁰_j⟩,

only the first term depends on both labels: in Σ_ij W_ij ⟨D_i, D_j⟩ for many label vectors, it is the
only work left for each, over the pairs of rows of one class. D⁰_i is −g_i, so that Δ_i = e_{y_i}; or,
if the model is confident enough, e_{r_i} − g_i for the most likely class r_i, so that Δ_i = e_{y_i} −
e_{r_i} is 0 for most rows. If W is the exponential of distances on a line, the sum is one pass along
the line.
"""

# ruff: noqa: D102 -- a method that overrides another is documented where it is first defined.

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property, partial
from math import comb

import numpy as np
import scipy

from caltest._parallel import ALONE, Workers
from caltest._sums import TILE, Array, Places, Tile, blocks, multiply, sum_over_strips, sum_over_tiles
from caltest.clusters import Clusters
from caltest.exceptions import InputError
from caltest.forms import base
from caltest.forms.base import ROUNDING, Labels, Moments, TailBound
from caltest.forms.kernel_matrices import Chain, Term, without_diagonal
from caltest.forms.moments import chain_moments, diagonal_table, quadratic_moments
from caltest.forms.signs import HasSigns, OverPairs, Signed, Signs, signed_pairs
from caltest.forms.sums import LinearSum, tilted_cumulants
from caltest.sampling import generator
from caltest.scores import Entries, Table, fixed_residuals, residuals_of, usual_classes

# ------------------------------------------------------------------ many label vectors


_HELD = 2**17  # numbers that stay in the second-level cache
_SORTED = 2**23  # entries held at a time, for all draws of a pass: some 50 MB


def _label_sums(
    entries: Entries, matrix: Array | None, tile: Tile, rows: slice, columns: list[slice]
) -> Array:
    """Return Σ W_ij Δ_iᵀ A Δ_j over a strip for B label vectors; off-diagonal tiles are doubled."""
    from caltest.loops import kernels as _kernel_loops

    total, sums = np.zeros(len(entries.rows)), np.empty(len(entries.rows))
    matrix = np.empty((0, 0)) if matrix is None else matrix
    for block in columns:
        pairs = entries.of_tile(rows), entries.of_tile(block)
        _kernel_loops.pair_sums(tile(rows, block), *pairs, matrix, sums)
        total += sums if block == rows else 2.0 * sums
    return total


# ------------------------------------------------------------------ pairwise


_ALONE_BELOW = 1e7  # pairs times draws and classes; less takes less time than starting workers
_ROUNDS = 4  # rounds of the power method
_LOOKED_AT, _LOOKED_THROUGH = 512, 2**25  # rows with a computed share of the variance; numbers
# Weights of rows that carry the variance, and of pairs of them: 6 rows, or 30 pairs, are as few as 10
# unlikely labels.
_OF_ROWS, _OF_PAIRS = 1.6, 0.33


@dataclass(frozen=True, eq=False)
class Pairwise(OverPairs, base.HasMoments, base.HasLeadingSum):
    """T = scale · Σ_ij D_iᵀ M_ij D_j with M_ij = Σ_l W_l,ij A_l, over i ≠ j or over all pairs."""

    probs: Array  #: The predictions, (n, m).
    kernel_terms: tuple[Term, ...]  #: The summands of M.
    scale: float
    diagonal: bool  #: Include the pairs i = j.
    tail_bound: TailBound | None = None  #: A distribution-free bound.

    takes_bits = True

    @property
    def parallel_inside(self) -> bool:  # type: ignore[override]
        """True unless the sum is one pass along a line."""
        return self._chain is None

    @property
    def resolution(self) -> float:
        """Rounding error of the sum over all pairs."""
        sizes = [w.size() * (1.0 if A is None else np.abs(A).max()) for w, A in self.kernel_terms]
        return ROUNDING * abs(self.scale) * float(sum(sizes))

    def of_labels(self, labels: Labels, workers: Workers = ALONE) -> Array:
        n, m = self.probs.shape
        if (chain := self._chain) is not None:  # ⟨D_i, D_j⟩ = 2 d_i d_j for d = y − p
            found = 4.0 * chain.sums(self.probs[chain.order, 1] * chain.steps, labels)
            if self.diagonal:
                own = 2.0 * self.probs[:, ::-1] ** 2
                own[chain.order] *= chain.steps[:, None] ** 2
                found += Table(own, self.probs).sums(labels)[:, 0]
            return self.scale * found
        hands = workers if len(labels) * float(n) ** 2 * m > _ALONE_BELOW else ALONE
        if len(labels) == 1:
            one = partial(self._tile_sum, residuals_of(self.probs, labels[0].astype(np.intp)))
            return self.scale * sum_over_tiles(one, n, hands, description="observed value")[None]
        total, usual = np.zeros(len(labels)), usual_classes(self.probs)
        fixed = fixed_residuals(self.probs, usual)
        for weights, matrix in self.kernel_terms:  # terms that depend on at most one label
            table = multiply(self._counted(weights), fixed if matrix is None else fixed @ matrix, hands)
            constant = float(np.vdot(fixed, table))
            if usual[0] >= 0:
                table -= table[np.arange(n), usual][:, None]
            total += constant + 2.0 * Table(table, self.probs).sums(labels)[:, 0]
        for draws in blocks(len(labels), max(1, _SORTED // n)):
            entries = Entries.of(labels[draws], usual, m, TILE)
            for weights, matrix in self.kernel_terms:
                sums = partial(_label_sums, entries, matrix, self._counted(weights))
                total[draws] += sum_over_strips(sums, n, hands, description="label draws")
        return self.scale * total

    def signed(self, labels: Labels, clusters: Clusters) -> Signed:
        scale = self.scale
        if not self.diagonal:  # the mean is over pairs of different clusters
            scale *= clusters.share_between
        chain = self._chain
        if chain is None:
            pairs = clusters.pairs(self.gram(labels))
            return signed_pairs(pairs, scale, self.diagonal, self.resolution)
        d, codes = self._along(chain, labels[None])[0], clusters.codes[chain.order]
        own = float(_chained(d[None], chain.places, codes, clusters.count).sum())
        constant = 2.0 * scale * (own * self.diagonal - (own - float(d @ d)))
        turned = replace(chain, order=codes, steps=2.0 * d)  # a sign of 1 adds 2 d to −d

        def of_signs(signs: Signs) -> Array:
            return 4.0 * scale * turned.sums(d, signs) + constant

        return Signed(of_signs, clusters.count, True, self.resolution)

    def gram(self, labels: Labels) -> Tile:
        """Return h of a mean over pairs as a tile function, including its diagonal."""
        residuals = residuals_of(self.probs, labels.astype(np.intp))
        images = [residuals if A is None else residuals @ A for _, A in self.kernel_terms]

        def tile(rows: slice, columns: slice) -> Array:
            terms = zip(self.kernel_terms, images, strict=True)
            tiles = (t.weights(rows, columns) * (a[rows] @ residuals[columns].T) for t, a in terms)
            return np.asarray(sum(tiles))

        return tile

    def squares_of(self, labels: Labels, clusters: Clusters) -> Array:
        if self._chain is None:
            return super().squares_of(labels, clusters)
        d, codes = self._along(self._chain, labels), clusters.codes[self._chain.order]
        return 2.0 * _chained(d, self._chain.places, codes, clusters.count).clip(min=0.0)

    def images(self, rows: Places, residuals: Array) -> Array:
        found = np.zeros(residuals.shape)
        for some in blocks(rows.shape[1], max(1, _SORTED // rows.size)):
            pairs = np.broadcast_arrays(rows[:, some, None], rows[:, None, :])
            for weights, matrix in self.kernel_terms:
                seen = residuals if matrix is None else residuals @ matrix
                found[:, :, some] += weights.at(*pairs) @ seen
        return found

    def _along(self, chain: Chain, labels: Labels) -> Array:
        """Return weighted residuals along the line, (B, n)."""
        return np.asarray(labels[:, chain.order] - self.probs[chain.order, 1]) * chain.steps

    def _counted(self, tile: Tile) -> Tile:
        """Return the tiles of the pairs included in the sum."""
        return tile if self.diagonal else without_diagonal(tile)

    @property
    def _chain(self) -> Chain | None:
        (weights, matrix), *others = self.kernel_terms
        return None if others or matrix is not None else weights.chain

    def _tile_sum(self, residuals: Array, rows: slice, columns: slice) -> float:
        """Sum over the pairs of a tile for one label vector, from its residuals (n, m)."""
        total = 0.0
        d, e = residuals[rows], residuals[columns]
        for weights, matrix in self.kernel_terms:
            block = self._counted(weights)(rows, columns)
            total += float(np.vdot(d, block @ (e if matrix is None else e @ matrix)))
        return total

    def moments(self, workers: Workers = ALONE) -> Moments:
        linear = diagonal_table(self.probs, self.kernel_terms) if self.diagonal else None
        if self._chain is not None:
            cumulants = chain_moments(self._chain, self.probs, linear)
        else:
            cumulants = quadratic_moments(self.probs, self.kernel_terms, linear, workers)
        return Moments.of_cumulants(*cumulants, self.surprises).scaled(self.scale)

    def leading(self, workers: Workers = ALONE) -> LinearSum:
        """Find the leading sum by the power method."""

        def images(v: Array) -> Array:
            products = (multiply(w, v if A is None else v @ A, workers) for w, A in self.kernel_terms)
            return np.asarray(sum(products))

        return leading_sum(self.probs, images)

    @cached_property
    def surprises(self) -> float:
        """Effective number of unlikely labels, or of pairs of equal ones if that is less.

        Both are counted for all rows, and for those that carry the variance: with a narrow kernel, few
        rows or pairs may carry it.
        """
        lengths = np.einsum("ik,ik->i", self.probs, self.probs)
        unlike = 1.0 - self.probs.max(axis=1)
        labels = base.effective_surprises(1.0 - lengths, unlike)
        sums = self.probs.sum(axis=0)
        found = min(labels, 0.5 * float(sums @ sums - lengths.sum()))
        rows, shares, squares, stands_for = self._shares
        # A row that stands for w rows means w rows of that share: w u unlikely labels, not one with w
        # s.
        carrying = base.effective_surprises(stands_for * shares, stands_for * unlike[rows])
        pairs = float(stands_for @ shares) ** 2 / max(2.0 * float(stands_for @ squares), base.CERTAIN)
        return float(min(found, _OF_ROWS * carrying, _OF_PAIRS * pairs))

    @cached_property
    def _shares(self) -> tuple[Places, Array, Array, Array]:
        """Return rows, Σ_j s_ij and Σ_j s_ij² for each, and the number of rows that each stands for.

        s_ij = W_ij² tr(Σ_i Σ_j); matrices A_l are treated as the identity. Rows are all, or a sample
        drawn with probabilities proportional to their own variance.
        """
        g, n = self.probs, len(self.probs)
        most = int(np.clip(_LOOKED_THROUGH // g.size, 32, _LOOKED_AT))
        own = 1.0 - np.einsum("ik,ik->i", g, g)
        rows, stands_for = np.arange(n), np.ones(n)
        uncertain = int(np.count_nonzero(own > 0.0))
        if n > most and uncertain > 0:
            size = min(most, uncertain)
            rows = np.sort(generator(0).choice(n, size, replace=False, p=own / own.sum()))
            stands_for = (own.sum() / (size * own[rows])).clip(min=1.0)
        shares, squares = np.empty(len(rows)), np.empty(len(rows))
        second = g * g
        for part in blocks(len(rows), max(1, _HELD // n)):
            some = rows[part]
            products = g[some] @ g.T
            each = products - g[some] @ second.T - second[some] @ g.T + products**2
            each *= sum(term.weights.whole_rows(some) ** 2 for term in self.kernel_terms)
            each[np.arange(len(some)), some] = 0.0
            shares[part], squares[part] = each.sum(axis=1), np.einsum("ij,ij->i", each, each)
        largest = float(shares.max()) or 1.0  # the rest does not depend on the unit
        return rows, (shares / largest).clip(min=0.0), squares / largest**2, stands_for


def _chained(residuals: Array, positions: Array, codes: Places, count: int) -> Array:
    """Return Σ_{i,j∈g} W_ij d_i d_j of every cluster, (B, G), for d (B, n) along a line."""
    from caltest.loops import rows as _loops

    order = np.lexsort((positions, codes))
    grouped, place = codes[order], positions[order]
    inside = np.exp(-np.diff(place, prepend=place[:1]).clip(min=0.0))
    decay = np.where(np.diff(grouped, prepend=-1) > 0, 0.0, inside)
    found, terms = np.empty((len(residuals), count)), np.empty(len(order))
    for own, each in zip(found, residuals, strict=True):
        along = each[order]
        _loops.chain_terms(decay, along, terms)
        own[:] = np.bincount(grouped, 2.0 * terms + along**2, count)
    return found


def leading_sum(probs: Array, images: Callable[[Array], Array]) -> LinearSum:
    """Return Σ_i ⟨a_i, D_i⟩, a the leading direction of V → M (ΣV), (ΣV)_i = g_i∘v_i − g_i (g_i·v_i).

    It is used if one direction carries nearly all of the variance, so few rounds are enough. ``images``
    maps V, (n, m), to MV.
    """
    vectors = np.zeros_like(probs)
    vectors[:, np.sum(probs * (1.0 - probs), axis=0).argmax()] = 1.0
    for _ in range(_ROUNDS):
        spread = probs * vectors
        spread -= probs * spread.sum(axis=1, keepdims=True)
        vectors = images(spread)
        size = np.abs(vectors).max()
        if size == 0.0:
            break
        vectors /= size
    return LinearSum(vectors, probs)


# ------------------------------------------------------------------ disjoint pairs


_OUTCOMES = 2**22  # outcomes of all pairs, up to which a lattice is searched for
_AT_ONCE = 2**21  # outcomes held at a time


@dataclass(frozen=True, eq=False)
class PairMean(HasSigns, base.HasCumulantGenerator, base.HasTerms):
    """T = ⌊n/2⌋⁻¹ Σ_p h_p, with h_p = D_iᵀ M_p D_j for pair p of rows i and j, and M_p = Σ_l w_lp A_l.

    Given the predictions, the terms are independent with mean 0, and the law of each is known under
    H0: the two labels of a pair are a and b with probability g_ia g_jb.
    """

    probs: Array  #: The predictions, (n, m).
    rows: Places  #: Rows i and j of every pair, (2, ⌊n/2⌋); none occurs twice.
    #: Pairs (w_l, A_l): w_l (⌊n/2⌋,) kernel values of the pairs, A_l (m, m) or None, the identity.
    components: tuple[tuple[Array, Array | None], ...]
    tail_bound: TailBound | None = None  #: A distribution-free bound, for pairs of equal weight.

    one_by_one = True

    @cached_property
    def _predictions(self) -> tuple[Array, Array]:
        """Predictions of the first and second row of every pair, (⌊n/2⌋, m) each."""
        return self.probs[self.rows[0]], self.probs[self.rows[1]]

    @cached_property
    def _expected(self) -> tuple[Array, Array, Array]:
        """M_p g_j, indexed by the first label; M_p g_i, indexed by the second; and g_i M_p g_j."""

        def weighted(probs: Array) -> Array:
            products = (w[:, None] * (probs if A is None else probs @ A) for w, A in self.components)
            return np.asarray(sum(products))

        g, h = self._predictions
        at_first = weighted(h)
        return at_first, weighted(g), np.asarray(np.einsum("pk,pk->p", g, at_first))

    @cached_property
    def _plain(self) -> bool:
        """Whether M_p = w_p I."""
        return len(self.components) == 1 and self.components[0][1] is None

    def _values(self, labels: Labels) -> Array:
        """Return h_p for (B, n) labels as (B, ⌊n/2⌋)."""
        at_first, at_second, constant = self._expected
        pairs = np.arange(len(constant))
        a, b = labels[:, self.rows[0]], labels[:, self.rows[1]]
        h = constant - at_first[pairs, a] - at_second[pairs, b]
        for weights, matrix in self.components:
            h += weights * ((a == b) if matrix is None else matrix[a, b])
        return np.asarray(h)

    def of_labels(self, labels: Labels, workers: Workers = ALONE) -> Array:
        return np.asarray(self._values(labels).mean(axis=1))

    def terms(self, labels: Labels) -> Array:
        return np.asarray(self._values(labels[None, :])[0])

    def _between(self, labels: Labels, clusters: Clusters) -> tuple[Places, Array]:
        """Return the clusters of both rows of every pair, (2, ⌊n/2⌋), and h, or 0 within a cluster."""
        codes, values = clusters.codes[self.rows], self.terms(labels)
        return codes, np.where(codes[0] != codes[1], values, 0.0)

    def squares_of(self, labels: Labels, clusters: Clusters) -> Array:
        found = np.empty((len(labels), clusters.count))
        for own, y in zip(found, labels.astype(np.intp), strict=True):
            codes, values = self._between(y, clusters)
            own[:] = np.bincount(codes.ravel(), np.tile(values**2, 2), clusters.count)
        return found

    def signed(self, labels: Labels, clusters: Clusters) -> Signed:
        (first, second), values = self._between(labels, clusters)
        counts = clusters.weights[self.rows].prod(axis=0)
        between = float(counts[first != second].sum() / counts.mean())
        if between == 0.0:
            do = "take 'skce_uq', or pairing='random'"
            raise InputError(f"every pair of rows that 'skce_ul' looks at is of one cluster; {do}.")
        places = np.concatenate([first, second]), np.concatenate([second, first])
        pairs = scipy.sparse.csr_array((np.tile(values, 2), places), shape=(clusters.count,) * 2)
        return signed_pairs(pairs, 0.5 / between, False, self.resolution)

    def _outcomes(self) -> Iterator[tuple[slice, Array, Array]]:
        """Yield the m² values of h of every pair and their probabilities, each (pairs, m²)."""
        m, (at_first, at_second, constant) = self.probs.shape[1], self._expected
        for pairs in blocks(len(constant), max(1, _AT_ONCE // m**2)):
            values = constant[pairs, None, None] - at_first[pairs, :, None] - at_second[pairs, None, :]
            for weights, matrix in self.components:
                values = values + weights[pairs, None, None] * (np.eye(m) if matrix is None else matrix)
            g, h = (each[pairs] for each in self._predictions)
            chances = g[:, :, None] * h[:, None, :]
            yield pairs, values.reshape(len(values), -1), chances.reshape(len(values), -1)

    @property
    def resolution(self) -> float:
        """Rounding error of the mean."""
        sizes = [np.abs(w).mean() * (1.0 if A is None else np.abs(A).max()) for w, A in self.components]
        return 4.0 * ROUNDING * float(sum(sizes))

    @cached_property
    def lattice(self) -> base.Lattice:
        """The lattice for nearly equal kernel values and predictions: only equal labels matter."""
        n = self.rows.shape[1]
        if n * self.probs.shape[1] ** 2 > _OUTCOMES:
            return base.Lattice()  # so many outcomes of pairs are dense
        parts = [(values, chances) for _, values, chances in self._outcomes()]
        values, chances = (np.concatenate(each) for each in zip(*parts, strict=True))
        return LinearSum(values / n, chances).lattice

    @cached_property
    def surprises(self) -> float:
        """Effective number of pairs, (Σ κ₂)² / Σ |κ₄| of the terms: few if few pairs can be large.

        For rare events, the variance sits on pairs in which both are events, not on those with one.
        """
        second, fourth = self._central_moments()
        scale = second.max(initial=0.0)
        if scale == 0.0:
            return 0.0
        second, fourth = second / scale, fourth / scale / scale
        flatness = float(np.abs(fourth - 3.0 * second**2).sum())
        return float(second.sum() ** 2) / max(flatness, base.CERTAIN)

    def _central_moments(self) -> tuple[Array, Array]:
        """Return E h² and E h⁴ of every pair, (⌊n/2⌋,) each.

        For h = w ⟨D, D'⟩ the labels a and b give h/w = U_a − V_b + 1[a = b], U = s − g' and V = g: the
        two parts are independent except for equal labels.
        """
        g, h = self._predictions
        if not self._plain:
            second, fourth = np.empty(len(g)), np.empty(len(g))
            for pairs, values, chances in self._outcomes():
                second[pairs] = np.einsum("pk,pk->p", chances, values**2)
                fourth[pairs] = np.einsum("pk,pk->p", chances, values**4)
            return second, fourth
        w = self.components[0][0]
        u = np.einsum("pk,pk->p", g, h)[:, None] - h
        of_u = [np.einsum("pk,pk->p", g, u**k) for k in range(5)]
        of_v = [np.einsum("pk,pk->p", h, g**k) for k in range(5)]
        found = []
        for power in (2, 4):
            ks = range(power + 1)
            apart = sum(comb(power, k) * (-1) ** k * of_u[power - k] * of_v[k] for k in ks)
            same = np.einsum("pk,pk->p", g * h, (1.0 + u - g) ** power - (u - g) ** power)
            found.append(w**power * np.maximum(apart + same, 0.0))
        return found[0], found[1]

    def cumulant_generator(self, t: float) -> tuple[float, float, float]:
        """Return K(t), K'(t), K''(t) of T under H0: sums over the independent pairs."""
        n = self.rows.shape[1]
        if self._plain:
            k, slope, bend = self._factorised(t / n)
        else:  # all m² outcomes of every pair, O(n m²)
            parts = [tilted_cumulants(values, mass, t / n) for _, values, mass in self._outcomes()]
            k, slope, bend = sum(parts).tolist()  # type: ignore[union-attr]
        return k, slope / n, bend / n**2

    def _factorised(self, t: float) -> tuple[float, float, float]:
        """Sum over pairs of the cumulant generator of h_p = w ⟨D, D'⟩ and its derivatives, in O(nm).

        With s = g·g' and exponents τ(s − g'_a − g_b) for labels a and b,
        E exp(τ(1[a=b] + s − g'_a − g_b)) = Σ_{a≠b} g_a g'_b e^{…} + e^τ Σ_a g_a g'_a e^{…}.
        All terms are positive, so nothing cancels: the sum over b ≠ a is computed from either side.
        """
        weights, (g, h) = self.components[0][0], self._predictions
        tau = t * weights[:, None]
        s = np.einsum("pk,pk->p", g, h)[:, None]
        u, v = g * np.exp(-tau * (h - s)), h * np.exp(-tau * g)
        others = [sums_of_others(v * g**k) for k in range(3)]
        # The derivatives multiply by the value of h: s − g'_a − g_b, plus 1 for equal labels.
        apart, same = s - h, 1.0 + s - h - g
        equal = g * h * np.exp(tau * same)
        mass = (u * others[0] + equal).sum(axis=1)
        slope = (equal * same + u * (apart * others[0] - others[1])).sum(axis=1) / mass
        bends = equal * same**2 + u * (apart**2 * others[0] - 2 * apart * others[1] + others[2])
        bend = bends.sum(axis=1) / mass
        return float(np.log(mass).sum()), float(weights @ slope), float(weights**2 @ (bend - slope**2))


def sums_of_others(values: Array) -> Array:
    """Return, for every entry of a row, the sum of the other entries, without subtraction."""
    sums = np.zeros_like(values)
    np.cumsum(values[:, :-1], axis=1, out=sums[:, 1:])
    sums[:, :-1] += np.cumsum(values[:, :0:-1], axis=1)[:, ::-1]
    return sums
