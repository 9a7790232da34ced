"""The mean of h over disjoint pairs of rows: linear in time, a sum of independent terms."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from math import comb
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from caltest._parallel import ALONE, Workers
from caltest._tiles import blocks
from caltest.forms.additive import Linear, tilted_cumulants
from caltest.forms.base import CERTAIN, ROUNDING, Array, Form, Labels, Lattice, TailBound, repeats

Component: TypeAlias = "tuple[Array, Array | None]"

_OUTCOMES = 2**22  # of all pairs, up to which they are looked through for a lattice


@dataclass(frozen=True, eq=False)
class PairMean(Form):
    """T = ⌊n/2⌋⁻¹ Σ_p h_p, with h_p = D_iᵀ M_p D_j for pair p of rows i and j, and M_p = Σ_l w_lp A_l.

    Given the predictions, the terms are independent with mean 0, and the law of each is known under
    H0: the two labels of a pair are a and b with probability g_ia g_jb.

    Attributes
    ----------
    probs
        The predictions, (n, m).
    rows
        Rows i and j of every pair, (2, ⌊n/2⌋); none stands twice.
    components
        Pairs (w_l, A_l): w_l (⌊n/2⌋,) kernel values of the pairs, A_l (m, m) or None, the identity.
    tail_bound
        What Hoeffding's bound needs.
    """

    probs: Array
    rows: NDArray[np.intp]
    components: tuple[Component, ...]
    tail_bound: TailBound

    @cached_property
    def first(self) -> Array:
        """Predictions of the first member of every pair, (⌊n/2⌋, m)."""
        return np.asarray(self.probs[self.rows[0]])

    @cached_property
    def second(self) -> Array:
        """Predictions of the second member of every pair, (⌊n/2⌋, m)."""
        return np.asarray(self.probs[self.rows[1]])

    @cached_property
    def _at_first(self) -> Array:
        """M_p g_second, (⌊n/2⌋, m), to be read at the first label."""
        return self._weighted(self.second)

    @cached_property
    def _at_second(self) -> Array:
        """M_p g_first, (⌊n/2⌋, m), to be read at the second label."""
        return self._weighted(self.first)

    @cached_property
    def _constant(self) -> Array:
        return np.asarray(np.einsum("pk,pk->p", self.first, self._at_first))

    def _weighted(self, probs: Array) -> Array:
        products = (w[:, None] * (probs if A is None else probs @ A) for w, A in self.components)
        return np.asarray(sum(products))

    def _block_terms(self, labels: Labels) -> Array:
        """Return h_p for (B, n) labels as (B, ⌊n/2⌋)."""
        pairs = np.arange(len(self.first))
        a, b = labels[:, self.rows[0]], labels[:, self.rows[1]]
        h = self._constant - self._at_first[pairs, a] - self._at_second[pairs, b]
        for weights, matrix in self.components:
            h += weights * ((a == b) if matrix is None else matrix[a, b])
        return np.asarray(h)

    @property
    def resolution(self) -> float:
        """Rounding of the mean."""
        sizes = [np.abs(w).mean() * (1.0 if A is None else np.abs(A).max()) for w, A in self.components]
        return 4.0 * ROUNDING * float(sum(sizes))

    @cached_property
    def lattice(self) -> Lattice:
        """The lattice of nearly equal kernel values and predictions, which only count equal labels."""
        m = self.probs.shape[1]
        if len(self.first) * m**2 > _OUTCOMES:
            return Lattice()  # so many outcomes of a pair crowd
        values, chances = self._outcomes(slice(None))
        return Linear(values / len(values), chances).lattice

    @cached_property
    def surprises(self) -> float:
        """Effective number of pairs, (Σ κ₂)² / Σ |κ₄| of the terms: few where few pairs can be large.

        The variance of rare events sits on pairs in which both come true, not on those with one.
        """
        second, fourth = self._central_moments()
        if not len(second) or second.max() <= 0.0:
            return 0.0
        scale = second.max()
        second, fourth = second / scale, fourth / scale / scale
        flatness = float(np.abs(fourth - 3.0 * second**2).sum())
        return float(second.sum() ** 2) / max(flatness, CERTAIN)

    @property
    def repeats(self) -> float:
        """How many rows share their predictions, on average over the uncertainty."""
        return repeats(self.probs)

    def _central_moments(self) -> tuple[Array, Array]:
        """Return E h² and E h⁴ of every pair, (⌊n/2⌋,) each.

        For h = w ⟨D, D'⟩ the labels a and b give h/w = U_a − V_b + 1[a = b], U = s − g' and V = g: the
        two parts are independent but for equal labels.
        """
        if len(self.components) > 1 or self.components[0][1] is not None:
            second, fourth = np.empty(len(self.first)), np.empty(len(self.first))
            for rows in blocks(len(self.first), max(1, 2**21 // self.probs.shape[1] ** 2)):
                values, chances = self._outcomes(rows)
                second[rows] = np.einsum("pk,pk->p", chances, values**2)
                fourth[rows] = np.einsum("pk,pk->p", chances, values**4)
            return second, fourth
        g, h, w = self.first, self.second, self.components[0][0]
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

    def terms(self, labels: Labels) -> Array:
        """Return the terms h_p for one label vector, (⌊n/2⌋,)."""
        terms: Array = self._block_terms(labels[None, :])[0]
        return terms

    def evaluate(self, labels: Labels, workers: Workers = ALONE) -> Array:
        """Return the (B,) values for ``labels`` (B, n)."""
        return np.asarray(self._block_terms(labels).mean(axis=1))

    def cumulant_generator(self, t: float) -> tuple[float, float, float]:
        """Return K(t), K'(t), K''(t) of T under H0: sums over the independent pairs."""
        pairs = len(self.first)
        if len(self.components) == 1 and self.components[0][1] is None:
            sums = self._factorised(t / pairs)
        else:
            sums = self._enumerated(t / pairs)
        return float(sums[0]), float(sums[1] / pairs), float(sums[2] / pairs**2)

    def _factorised(self, t: float) -> Array:
        """Sum over pairs of the cumulant generator of h_p = w ⟨D, D'⟩ and its derivatives, in O(nm).

        With s = g·g' and exponents τ(s − g'_a − g_b) for labels a and b,
        E exp(τ(1[a=b] + s − g'_a − g_b)) = Σ_{a≠b} g_a g'_b e^{…} + e^τ Σ_a g_a g'_a e^{…}.
        All terms are positive, so nothing cancels: the sum over b ≠ a is one from either side.
        """
        weights = self.components[0][0]
        tau = t * weights[:, None]
        g, h = self.first, self.second
        s = np.einsum("pk,pk->p", g, h)[:, None]
        u, v = g * np.exp(-tau * (h - s)), h * np.exp(-tau * g)
        others = [sums_of_others(v * g**k) for k in range(3)]
        # The derivatives bring down the value of h: s − g'_a − g_b, and 1 more for equal labels.
        apart, same = s - h, 1.0 + s - h - g
        equal = g * h * np.exp(tau * same)
        mass = (u * others[0] + equal).sum(axis=1)
        slope = (equal * same + u * (apart * others[0] - others[1])).sum(axis=1) / mass
        bend = (equal * same**2 + u * (apart**2 * others[0] - 2 * apart * others[1] + others[2])).sum(
            axis=1
        ) / mass
        return np.array(
            [
                np.sum(np.log(mass)),
                np.sum(weights * slope),
                np.sum(weights**2 * (bend - slope**2)),
            ]
        )

    def _enumerated(self, t: float) -> Array:
        """Sum the same for any M_p, from all m² outcomes of every pair, in O(n m²)."""
        total = np.zeros(3)
        for rows in blocks(len(self.first), max(1, 2**21 // self.probs.shape[1] ** 2)):
            total += tilted_cumulants(*self._outcomes(rows), t)
        return total

    def _outcomes(self, pairs: slice) -> tuple[Array, Array]:
        """Return the m² values of h of every pair, and their probabilities, each (pairs, m²)."""
        values = (
            self._constant[pairs, None, None]
            - self._at_first[pairs, :, None]
            - self._at_second[pairs, None, :]
        )
        for weights, matrix in self.components:
            A = np.eye(self.probs.shape[1]) if matrix is None else matrix
            values = values + weights[pairs, None, None] * A
        chances = self.first[pairs, :, None] * self.second[pairs, None, :]
        return values.reshape(len(values), -1), chances.reshape(len(values), -1)


def sums_of_others(values: Array) -> Array:
    """Return, for every entry of a row, the sum of the others, without a subtraction."""
    sums = np.zeros_like(values)
    np.cumsum(values[:, :-1], axis=1, out=sums[:, 1:])
    sums[:, :-1] += np.cumsum(values[:, :0:-1], axis=1)[:, ::-1]
    return sums
