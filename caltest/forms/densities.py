"""Forms of outcomes that are numbers: predicted distributions take the place of predicted classes."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from caltest._parallel import ALONE, Workers
from caltest.forms.base import ROUNDING, Array, ChiSquare, Form, Labels
from caltest.predictive import Gaussian, Predictive


class DensityForm(Form):
    """A statistic as a function of outcomes (B, n) or (B, n, d); the distributions are inside."""


@dataclass(frozen=True, eq=False)
class MeanSurprise(DensityForm):
    """T = n⁻¹ Σ_i [−log f_i(x_i) − H(f_i)].

    Attributes
    ----------
    predictive
        The predicted distributions f_i.
    """

    predictive: Predictive

    @cached_property
    def _entropy(self) -> float:
        return float(self.predictive.entropy().mean())

    @property
    def resolution(self) -> float:
        """Rounding of the mean."""
        return ROUNDING * (1.0 + abs(self._entropy))

    def evaluate(self, labels: Labels, workers: Workers = ALONE) -> Array:
        """Return the (B,) values for the outcomes ``labels``."""
        return np.asarray(-self.predictive.log_density(labels).mean(axis=1) - self._entropy)


@dataclass(frozen=True, eq=False)
class MeanSquare(DensityForm):
    """T = factor · n⁻¹ Σ_i (x_i − μ_i)ᵀ C_i⁻¹ (x_i − μ_i) + offset, of Gaussian predictions.

    Attributes
    ----------
    predictive
        The predicted distributions.
    factor, offset
        Scale and shift; the factor is positive.
    """

    predictive: Gaussian
    factor: float = 1.0
    offset: float = 0.0

    @property
    def chi_square(self) -> ChiSquare:
        """The law of the sum: n·d squares of independent standard normal variables."""
        n, d = self.predictive.n_samples, self.predictive.dimension or 1
        scale = n / self.factor
        return ChiSquare(n * d, scale, -self.offset * scale, exact=True)

    def evaluate(self, labels: Labels, workers: Workers = ALONE) -> Array:
        """Return the (B,) values for the outcomes ``labels``."""
        return np.asarray(self.factor * self.predictive.squares(labels).mean(axis=1) + self.offset)
