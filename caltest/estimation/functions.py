"""Plug-in estimation functions: h(p, p') = ⟨ĉ(p), ĉ(p')⟩ for an estimate ĉ of E[r | p]."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array
from scipy.special import gammaln, softmax

from caltest._arguments import arguments, positive_number
from caltest._tiles import blocks
from caltest.binning import EqualWidth
from caltest.estimation.base import Array, EstimationFunction, PlugIn, Smoother, coordinates

_SMALLEST_PROB = 1e-300  # below, a stated probability has lost its logarithm
_ENTRIES = 2**20  # of kernel values held at a time


@arguments()
@dataclass(frozen=True)
class HistogramBinning(EstimationFunction):
    """ĉ(p) is the mean residual of the training rows in p's bin; two classes.

    Bins of equal width; the bin of p that no training row is in gives the mean of all residuals.

    Parameters
    ----------
    n_bins
        Default 15, the literature's.

    Raises
    ------
    InputError
        If ``n_bins`` is no positive whole number.

    References
    ----------
    Guo et al., "On calibration of modern neural networks", ICML 2017; Gruber and Bach, "Optimizing
    estimators of squared calibration errors in classification", 2024, Equations 23 and 24.

    Examples
    --------
    >>> h = HistogramBinning(2).fit([0.2, 0.4, 0.7, 0.9], [0, 1, 1, 1])
    >>> h.diagonal(np.array([[0.9, 0.1], [0.1, 0.9]])).round(4)
    array([0.04, 0.04])
    """

    n_bins: int = 15

    name: ClassVar[str] = "binning"
    is_a: ClassVar[str] = "mean residuals of equal-width bins"
    tuned: ClassVar[str] = "n_bins"
    two_classes_only: ClassVar[bool] = True

    def search_space(self, n_classes: int) -> tuple[int, ...]:
        """Return 5, 10, …, 90 bins, as published."""
        return tuple(range(5, 91, 5))

    def given(self, probs: Array) -> _Bins:
        """Fix the training predictions."""
        cells = EqualWidth(self.n_bins).cells_of_scores(probs[:, 1])
        return _Bins(self.n_bins, cells)


@dataclass(frozen=True, eq=False)
class _Bins(Smoother):
    """The bins of the training rows."""

    n_bins: int
    cells: NDArray[np.intp]

    def at(self, probs: Array) -> _BinnedCurve:
        return _BinnedCurve(self, EqualWidth(self.n_bins).cells_of_scores(probs[:, 1]))

    def means(self, residuals: Array) -> Array:
        """Return the mean residual of every bin, (bins, B, k)."""
        n = len(residuals)
        flat = residuals.reshape(n, -1)
        counts = np.bincount(self.cells, minlength=self.n_bins)
        member = csr_array((np.ones(n), (self.cells, np.arange(n))), shape=(self.n_bins, n))
        sums = np.asarray(member @ flat)
        sums[counts == 0] = flat.mean(axis=0)
        means = sums / np.maximum(counts, 1)[:, None]
        return np.asarray(means.reshape(self.n_bins, *residuals.shape[1:]))


@dataclass(frozen=True, eq=False)
class _BinnedCurve(PlugIn):
    bins: _Bins
    cells: NDArray[np.intp]

    def curves(self, residuals: Array) -> Array:
        return self.bins.means(residuals)[self.cells]


@arguments(bandwidth=positive_number)
@dataclass(frozen=True)
class DirichletKernelDensity(EstimationFunction):
    """ĉ(p) = Σ_i κ(p; g_i) onehot(y_i) / Σ_i κ(p; g_i) − p, κ(·; g) the density of Dir(g/b + 1).

    Ratios of densities are computed from their logarithms, so that they are numbers for every p, on
    the boundary of the simplex too: a p_k of 0 counts as 1e-300.

    Parameters
    ----------
    bandwidth
        b. Default 0.01: a Dirichlet density about 0.05 wide near the middle of an edge.

    Raises
    ------
    InputError
        If ``bandwidth`` is not positive.

    References
    ----------
    Popordanoska, Sayer and Blaschko, "A consistent and differentiable L_p canonical calibration error
    estimator", NeurIPS 2022; Gruber and Bach 2024, Equations 25 and 26.

    Examples
    --------
    >>> h = DirichletKernelDensity(0.1).fit([0.2, 0.4, 0.7, 0.9], [0, 1, 1, 1])
    >>> h.diagonal(np.array([[0.9, 0.1], [0.1, 0.9], [1.0, 0.0]])).round(4)
    array([0.0021, 0.01  , 0.    ])
    """

    bandwidth: float = 0.01

    name: ClassVar[str] = "kernel_density"
    is_a: ClassVar[str] = "ratio of Dirichlet kernel densities"
    tuned: ClassVar[str] = "bandwidth"

    def search_space(self, n_classes: int) -> tuple[float, ...]:
        """Return 15 values from 1e-5 to 0.1, evenly by their logarithm, and 0.2, 0.4, …, 1."""
        return (*np.logspace(-5, -1, 15).tolist(), *np.linspace(0.2, 1.0, 5).tolist())

    def given(self, probs: Array) -> _Densities:
        """Fix the training predictions."""
        powers = probs / self.bandwidth
        return _Densities(probs, powers, gammaln(powers + 1.0).sum(axis=1))


@dataclass(frozen=True, eq=False)
class _Densities(Smoother):
    """Dirichlet densities about the training rows: log κ_i(p) = Σ_k powers_ik log p_k − constant_i."""

    train: Array
    powers: Array
    constants: Array

    def at(self, probs: Array) -> _DensityCurve:
        return _DensityCurve(self, probs)


@dataclass(frozen=True, eq=False)
class _DensityCurve(PlugIn):
    densities: _Densities
    probs: Array

    def curves(self, residuals: Array) -> Array:
        n, draws, k = residuals.shape
        known = coordinates(self.densities.train)
        events = np.hstack([residuals.reshape(n, -1), known])  # of r and g; r + g is the label
        logs, here = np.log(np.maximum(self.probs, _SMALLEST_PROB)), coordinates(self.probs)
        found = np.empty((len(here), draws, k))
        for rows in blocks(len(here), max(1, _ENTRIES // n)):
            weights = logs[rows] @ self.densities.powers.T
            weights -= self.densities.constants
            weights -= weights.max(axis=1, keepdims=True)
            np.exp(weights, out=weights)
            weights /= weights.sum(axis=1, keepdims=True)
            means = weights @ events
            offsets = means[:, draws * k :] - here[rows]
            found[rows] = means[:, : draws * k].reshape(-1, draws, k) + offsets[:, None, :]
        return found


@arguments(temperature=positive_number)
@dataclass(frozen=True)
class Temperature(EstimationFunction):
    """ĉ(p) = softmax(t log p) − p: the error of a model that states softmax(log q / t) for a truth q.

    It learns nothing from labels; its risk, as a function of t, is smallest where t is the model's. As
    h does not tell a curve from its negative, there is a second, shallower minimum on the other side
    of 1.

    Parameters
    ----------
    temperature
        t, as in :func:`caltest.simulation.tempered`. Default 1: calibrated, h = 0.

    Raises
    ------
    InputError
        If ``temperature`` is not positive.

    References
    ----------
    Gruber and Bach 2024, Section 5.1.

    Examples
    --------
    >>> h = Temperature(0.5).fit([[0.9, 0.05, 0.05]] * 2, [0, 1])
    >>> h.diagonal(np.array([[0.9, 0.05, 0.05], [1 / 3, 1 / 3, 1 / 3]])).round(4)
    array([0.0728, 0.    ])
    """

    temperature: float = 1.0

    name: ClassVar[str] = "temperature"
    is_a: ClassVar[str] = "a temperature of the logits"
    tuned: ClassVar[str] = "temperature"

    def search_space(self, n_classes: int) -> tuple[float, ...]:
        """Return 41 values from 1/16 to 16, evenly by their logarithm."""
        return tuple(np.geomspace(0.0625, 16.0, 41).tolist())

    def given(self, probs: Array) -> _Tempered:
        """Keep the temperature: training rows teach nothing."""
        return _Tempered(self.temperature)


@dataclass(frozen=True, eq=False)
class _Tempered(Smoother):
    temperature: float

    def at(self, probs: Array) -> _TemperedCurve:
        logs = np.log(np.maximum(probs, _SMALLEST_PROB))
        truth: Any = softmax(self.temperature * logs, axis=1)
        return _TemperedCurve(coordinates(np.where(probs > 0.0, truth, 0.0)) - coordinates(probs))


@dataclass(frozen=True, eq=False)
class _TemperedCurve(PlugIn):
    curve: Array

    def curves(self, residuals: Array) -> Array:
        shape = (len(self.curve), residuals.shape[1], self.curve.shape[1])
        return np.broadcast_to(self.curve[:, None, :], shape)
