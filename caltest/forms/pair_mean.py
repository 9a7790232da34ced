"""The mean of h over disjoint consecutive pairs: linear in time, a sum of independent terms."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TypeAlias

import numpy as np

from caltest._parallel import ALONE, Workers
from caltest._tiles import blocks
from caltest.forms.additive import tilted_cumulants
from caltest.forms.base import (
    ROUNDING,
    Array,
    Form,
    Labels,
    Lattice,
    TailBound,
    effective_surprises,
)

Component: TypeAlias = "tuple[Array, Array | None]"


@dataclass(frozen=True, eq=False)
class PairMean(Form):
    """T = ⌊n/2⌋⁻¹ Σ_p h_p, with h_p = D_{2p}ᵀ M_p D_{2p+1} and M_p = Σ_l w_lp A_l.

    Given the predictions, the terms are independent with mean 0, and the law of each is known under
    H0: the two labels of a pair are a and b with probability g_{2p,a} g_{2p+1,b}.

    Attributes
    ----------
    probs
        The predictions, (n, m); an odd last row is not used.
    components
        Pairs (w_l, A_l): w_l (⌊n/2⌋,) kernel values of the pairs, A_l (m, m) or None, the identity.
    tail_bound
        What Hoeffding's bound needs.
    """

    probs: Array
    components: tuple[Component, ...]
    tail_bound: TailBound

    @cached_property
    def first(self) -> Array:
        """Predictions of the first member of every pair, (⌊n/2⌋, m)."""
        return self.probs[0 : 2 * (len(self.probs) // 2) : 2]

    @cached_property
    def second(self) -> Array:
        """Predictions of the second member of every pair, (⌊n/2⌋, m)."""
        return self.probs[1 : 2 * (len(self.probs) // 2) : 2]

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
        a = labels[:, 0 : 2 * len(pairs) : 2]
        b = labels[:, 1 : 2 * len(pairs) : 2]
        h = self._constant - self._at_first[pairs, a] - self._at_second[pairs, b]
        for weights, matrix in self.components:
            h += weights * ((a == b) if matrix is None else matrix[a, b])
        return np.asarray(h)

    @property
    def resolution(self) -> float:
        """Rounding of the mean."""
        sizes = [np.abs(w).mean() * (1.0 if A is None else np.abs(A).max()) for w, A in self.components]
        return 4.0 * ROUNDING * float(sum(sizes))

    @property
    def lattice(self) -> Lattice:
        """The lattice of equal, uniform predictions: they only count equal labels."""
        weights, matrix = self.components[0]
        alike = len(self.components) == 1 and matrix is None and len(weights) > 0
        if not alike or np.ptp(weights) > 1e-9 * weights.max() or np.ptp(self.probs) > 1e-12:
            return Lattice()
        return Lattice(float(weights[0]) / len(weights))

    @property
    def surprises(self) -> float:
        """Effective number of pairs whose labels are equal though unlikely so, or the reverse."""
        g, h = self.first, self.second
        equal = np.einsum("pk,pk->p", g, h)
        odd = np.einsum("pk,pk->p", g * h, g + h)
        variances = sum(np.asarray(w) ** 2 for w, _ in self.components) * (equal - odd + equal**2)
        likeliest = g.max(axis=1) * h.max(axis=1)
        return effective_surprises(np.asarray(variances), np.minimum(equal, 1.0 - likeliest))

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
        m = self.probs.shape[1]
        total = np.zeros(3)
        for rows in blocks(len(self.first), max(1, 2**21 // m**2)):
            values = (
                self._constant[rows, None, None]
                - self._at_first[rows, :, None]
                - self._at_second[rows, None, :]
            )
            for weights, matrix in self.components:
                A = np.eye(m) if matrix is None else matrix
                values = values + weights[rows, None, None] * A
            chances = self.first[rows, :, None] * self.second[rows, None, :]
            size = len(values)
            total += tilted_cumulants(values.reshape(size, -1), chances.reshape(size, -1), t)
        return total


def sums_of_others(values: Array) -> Array:
    """Return, for every entry of a row, the sum of the others, without a subtraction."""
    sums = np.zeros_like(values)
    np.cumsum(values[:, :-1], axis=1, out=sums[:, 1:])
    sums[:, :-1] += np.cumsum(values[:, :0:-1], axis=1)[:, ::-1]
    return sums
