"""Means over disjoint pairs of rows: sums of independent terms, whose law is known."""

# ruff: noqa: D102 -- a method that overrides another is documented where it is first defined.

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from math import comb

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from caltest._parallel import ALONE, Workers
from caltest._tiles import (
    Array,
    blocks,
)
from caltest.clusters import Clusters
from caltest.exceptions import InputError
from caltest.forms.base import (
    CERTAIN,
    ROUNDING,
    HasCumulantGenerator,
    HasTerms,
    Labels,
    Lattice,
    TailBound,
)
from caltest.forms.signs import HasSigns, Signed, signed_pairs
from caltest.forms.sums import LinearSum, tilted_cumulants

_OUTCOMES = 2**22  # of all pairs, up to which they are looked through for a lattice
_AT_ONCE = 2**21  # outcomes that are held


@dataclass(frozen=True, eq=False)
class PairMean(HasSigns, HasCumulantGenerator, HasTerms):
    """T = ⌊n/2⌋⁻¹ Σ_p h_p, with h_p = D_iᵀ M_p D_j for pair p of rows i and j, and M_p = Σ_l w_lp A_l.

    Given the predictions, the terms are independent with mean 0, and the law of each is known under
    H0: the two labels of a pair are a and b with probability g_ia g_jb.
    """

    probs: Array  #: The predictions, (n, m).
    rows: NDArray[np.intp]  #: Rows i and j of every pair, (2, ⌊n/2⌋); none stands twice.
    #: Pairs (w_l, A_l): w_l (⌊n/2⌋,) kernel values of the pairs, A_l (m, m) or None, the identity.
    components: tuple[tuple[Array, Array | None], ...]
    tail_bound: TailBound | None = None  #: A distribution-free bound, of pairs of equal weight.

    @cached_property
    def _predictions(self) -> tuple[Array, Array]:
        """Those of the first and of the second member of every pair, (⌊n/2⌋, m) each."""
        return self.probs[self.rows[0]], self.probs[self.rows[1]]

    @cached_property
    def _expected(self) -> tuple[Array, Array, Array]:
        """M_p g_j, to be read at the first label, M_p g_i, at the second; and g_i M_p g_j."""

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

    def apart(self, labels: Labels, clusters: Clusters) -> Array:
        return self.one_by_one(labels, clusters)

    def _between(self, labels: Labels, clusters: Clusters) -> tuple[NDArray[np.intp], Array]:
        """Return the clusters of both rows of every pair, (2, ⌊n/2⌋), and h; 0 inside of one."""
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
            raise InputError(
                "every pair of rows that 'skce_ul' looks at is of one cluster; take 'skce_uq', or "
                "pairing='random'."
            )
        places = np.concatenate([first, second]), np.concatenate([second, first])
        pairs = sparse.csr_array((np.tile(values, 2), places), shape=(clusters.count,) * 2)
        return signed_pairs(pairs, 0.5 / between, 0.0, self.resolution)

    def _outcomes(self) -> Iterator[tuple[slice, Array, Array]]:
        """Yield the m² values of h of every pair and their probabilities, each (pairs, m²)."""
        m, (at_first, at_second, constant) = self.probs.shape[1], self._expected
        for pairs in blocks(len(constant), max(1, _AT_ONCE // m**2)):
            values = constant[pairs, None, None] - at_first[pairs, :, None] - at_second[pairs, None, :]
            for weights, matrix in self.components:
                A = np.eye(m) if matrix is None else matrix
                values = values + weights[pairs, None, None] * A
            g, h = (each[pairs] for each in self._predictions)
            chances = g[:, :, None] * h[:, None, :]
            yield pairs, values.reshape(len(values), -1), chances.reshape(len(values), -1)

    @property
    def resolution(self) -> float:
        """Rounding of the mean."""
        sizes = [np.abs(w).mean() * (1.0 if A is None else np.abs(A).max()) for w, A in self.components]
        return 4.0 * ROUNDING * float(sum(sizes))

    @cached_property
    def lattice(self) -> Lattice:
        """The lattice of nearly equal kernel values and predictions, which only count equal labels."""
        n = self.rows.shape[1]
        if n * self.probs.shape[1] ** 2 > _OUTCOMES:
            return Lattice()  # so many outcomes of a pair crowd
        parts = [(values, chances) for _, values, chances in self._outcomes()]
        values, chances = (np.concatenate(each) for each in zip(*parts, strict=True))
        return LinearSum(values / n, chances).lattice

    @cached_property
    def surprises(self) -> float:
        """Effective number of pairs, (Σ κ₂)² / Σ |κ₄| of the terms: few where few pairs can be large.

        The variance of rare events sits on pairs in which both are events, not on those with one.
        """
        second, fourth = self._central_moments()
        if not len(second) or second.max() <= 0.0:
            return 0.0
        scale = second.max()
        second, fourth = second / scale, fourth / scale / scale
        flatness = float(np.abs(fourth - 3.0 * second**2).sum())
        return float(second.sum() ** 2) / max(flatness, CERTAIN)

    def _central_moments(self) -> tuple[Array, Array]:
        """Return E h² and E h⁴ of every pair, (⌊n/2⌋,) each.

        For h = w ⟨D, D'⟩ the labels a and b give h/w = U_a − V_b + 1[a = b], U = s − g' and V = g: the
        two parts are independent but for equal labels.
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
            apart = sum(
                comb(power, k) * (-1) ** k * of_u[power - k] * of_v[k] for k in range(power + 1)
            )
            same = np.einsum("pk,pk->p", g * h, (1.0 + u - g) ** power - (u - g) ** power)
            found.append(w**power * np.maximum(apart + same, 0.0))
        return found[0], found[1]

    def cumulant_generator(self, t: float) -> tuple[float, float, float]:
        """Return K(t), K'(t), K''(t) of T under H0: sums over the independent pairs."""
        n = self.rows.shape[1]
        if self._plain:
            sums = self._factorised(t / n)
        else:  # all m² outcomes of every pair, O(n m²)
            parts = [tilted_cumulants(values, mass, t / n) for _, values, mass in self._outcomes()]
            sums = np.asarray(sum(parts))
        return float(sums[0]), float(sums[1] / n), float(sums[2] / n**2)

    def _factorised(self, t: float) -> Array:
        """Sum over pairs of the cumulant generator of h_p = w ⟨D, D'⟩ and its derivatives, in O(nm).

        With s = g·g' and exponents τ(s − g'_a − g_b) for labels a and b,
        E exp(τ(1[a=b] + s − g'_a − g_b)) = Σ_{a≠b} g_a g'_b e^{…} + e^τ Σ_a g_a g'_a e^{…}.
        All terms are positive, so nothing cancels: the sum over b ≠ a is one from either side.
        """
        weights, (g, h) = self.components[0][0], self._predictions
        tau = t * weights[:, None]
        s = np.einsum("pk,pk->p", g, h)[:, None]
        u, v = g * np.exp(-tau * (h - s)), h * np.exp(-tau * g)
        others = [sums_of_others(v * g**k) for k in range(3)]
        # The derivatives bring down the value of h: s − g'_a − g_b, and 1 more for equal labels.
        apart, same = s - h, 1.0 + s - h - g
        equal = g * h * np.exp(tau * same)
        mass = (u * others[0] + equal).sum(axis=1)
        slope = (equal * same + u * (apart * others[0] - others[1])).sum(axis=1) / mass
        bends = equal * same**2 + u * (apart**2 * others[0] - 2 * apart * others[1] + others[2])
        bend = bends.sum(axis=1) / mass
        sums = np.log(mass).sum(), weights @ slope, weights**2 @ (bend - slope**2)
        return np.array(sums)


def sums_of_others(values: Array) -> Array:
    """Return, for every entry of a row, the sum of the others, without a subtraction."""
    sums = np.zeros_like(values)
    np.cumsum(values[:, :-1], axis=1, out=sums[:, 1:])
    sums[:, :-1] += np.cumsum(values[:, :0:-1], axis=1)[:, ::-1]
    return sums
