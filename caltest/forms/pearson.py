"""Pearson's chi-square over groups of two classes: counted against expected events."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from caltest._parallel import ALONE, Workers
from caltest.forms.base import CERTAIN, ROUNDING, Array, ChiSquare, Moments, effective_surprises
from caltest.forms.binned import Binned, Indices


@dataclass(frozen=True, eq=False)
class PearsonGroups(Binned):
    """T = Σ_b S_b² / (n_b p̄_b (1 − p̄_b)) for the residuals S_b of class 1 in every bin, two classes.

    A bin whose predictions are all 0 or all 1 adds nothing, and +∞ if one of them was wrong.
    """

    @cached_property
    def _rarer(self) -> Indices:
        # The two classes' residuals are opposite; the smaller sum has the smaller rounding.
        return np.asarray(self.expected.argmin(axis=1))

    @cached_property
    def _precisions(self) -> Array:
        """1/(n_b p̄_b (1 − p̄_b)), (K,); 0 where that is infinite."""
        variances = self.expected.prod(axis=1) / self.sizes
        varied = variances > CERTAIN
        return np.where(varied, 1.0 / np.where(varied, variances, 1.0), 0.0)

    def entries(self, residuals: Array, cells: Indices, classes: Indices) -> Array:
        """Return the terms of the bins, in the column of the rarer class."""
        terms = self._precisions[cells] * residuals**2
        wrong = (self._precisions[cells] == 0.0) & (residuals > 0.5)
        return np.where(classes == self._rarer[cells], np.where(wrong, np.inf, terms), 0.0)

    def ending(self, sums: Array) -> Array:
        """Add the bins."""
        return np.asarray(sums.sum(axis=1))

    @property
    def resolution(self) -> float:
        """Rounding of the sum over the bins."""
        return ROUNDING * float(self._precisions @ self.expected.min(axis=1) ** 2)

    @cached_property
    def _variances(self) -> Array:
        """Of the rows' residuals, (n,)."""
        return np.asarray(self.probs.prod(axis=1))

    def _per_bin(self, values: Array) -> Array:
        return np.bincount(self.cells, weights=values).astype(np.float64)

    @property
    def chi_square(self) -> ChiSquare:
        """As many degrees of freedom as bins that can vary."""
        return ChiSquare(int(np.count_nonzero(self._per_bin(self._variances) > CERTAIN)))

    def moments(self, workers: Workers = ALONE) -> Moments:
        """Return mean, variance and skewness under H0, exactly.

        With the cumulants κ of S_b, sums of those of Bernoulli variables, S_b² has the cumulants
        κ₂, κ₄ + 2κ₂² and κ₆ + 12κ₄κ₂ + 10κ₃² + 8κ₂³; bins are independent.
        """
        v, w = self._variances, self._precisions
        k2, k3 = self._per_bin(v), self._per_bin(v * (self.probs[:, 0] - self.probs[:, 1]))
        k4, k6 = self._per_bin(v * (1 - 6 * v)), self._per_bin(v * (1 - 30 * v * (1 - 4 * v)))
        third = k6 + 12 * k4 * k2 + 10 * k3**2 + 8 * k2**3
        # Row i's share: its own S² and its pairs with the others of its bin.
        shares = w[self.cells] ** 2 * v * (1 - 6 * v + 2 * k2[self.cells])
        return Moments.of_cumulants(
            float(w @ k2),
            float(w**2 @ (k4 + 2 * k2**2)),
            float(w**3 @ third),
            surprises=effective_surprises(shares, self.probs.min(axis=1)),
        )
