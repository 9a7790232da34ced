"""Statistics of predicted distributions of numbers: where outcomes lie in them, and their scores.

All of the PIT are functions of the same sums, see :mod:`caltest.forms.pit`: distances (Kolmogorov and
Smirnov, Kuiper, Cramér and von Mises, Anderson and Darling), the two words of a report (too high or too
low, too narrow or too wide), and the coverage of intervals.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any, ClassVar, Literal, Self, cast

import numpy as np
from numpy.typing import NDArray
from scipy.spatial.distance import pdist

from caltest._arguments import Number, arguments, choose
from caltest._parallel import ALONE, Workers
from caltest.binning import EqualMass, intervals
from caltest.data import Rows
from caltest.exceptions import InputError
from caltest.forms import Combined, Component
from caltest.forms.base import ROUNDING, Array, OneByOne
from caltest.forms.pit import (
    STEPS,
    DrawnMoments,
    PitDistance,
    PitForm,
    PitMean,
    levels_of,
    steps_of,
)
from caltest.forms.sums import MeanOfNumbers, MeanSquare
from caltest.forms.waves import Waved, WavePairs, Waves
from caltest.forms.weights import KernelWeights, incomplete_cholesky
from caltest.kernels import Exponential
from caltest.kernels.bandwidth import fixed_order, representatives
from caltest.laws import GaussianPredictions, Pool, Predictive
from caltest.pvalues import Alternative
from caltest.statistics.base import SIGNED, Statistic


class PitStatistic(Statistic):
    """Base class of statistics of the PIT."""

    laws = (Predictive,)
    of_quantiles = True

    @abstractmethod
    def given(self, predictions: Rows) -> PitForm:
        """Fix the predictions."""


class _Distance(PitStatistic):
    @staticmethod
    @abstractmethod
    def _of(levels: Array, shares: Array) -> Array:
        """Return the distances from mean scores (B, T) at the levels."""

    def given(self, predictions: Rows) -> PitForm:
        """Fix the predictions."""
        law: Any = predictions.law
        distance = partial(type(self)._of, levels_of(law))
        return PitDistance(law, predictions.weights, None, None, distance)


_EVENLY = 1.0 / STEPS
_CENTRAL = (0.5, 0.8, 0.9, 0.95)
_ROUNDED = 1e-9  # of levels


@arguments()
@dataclass(frozen=True)
class PitKolmogorovSmirnov(_Distance):
    """Largest distance of the PIT's distribution from the uniform one, over levels .005, .01, ….

    sup_t |n⁻¹ Σ_i s_t(y_i)|, with s_t(y) = clip((t − F(y−)) / (F(y) − F(y−)), 0, 1) − t, which is
    1{F(y) ≤ t} − t without atoms, and 0 on average for every distribution, counts included.

    References
    ----------
    Rosenblatt, "Remarks on a multivariate transformation", 1952; Czado, Gneiting, Held, "Predictive
    model assessment for count data", Biometrics 65 (2009), Equation 2.

    Examples
    --------
    >>> import numpy as np, caltest
    >>> rng = np.random.default_rng(0)
    >>> predicted = caltest.predictive.Normal(np.zeros(300), sd=1.0)
    >>> caltest.test(predicted, rng.normal(0.4, 1.0, 300), "pit_ks", rng=0).pvalue
    0.001
    """

    name = "pit_ks"
    measures = "largest distance of the PIT from uniform"

    @staticmethod
    def _of(levels: Array, shares: Array) -> Array:
        return np.asarray(np.abs(shares).max(axis=1))


@arguments()
@dataclass(frozen=True)
class PitKuiper(_Distance):
    """Range of the PIT's distribution less the uniform one: the largest error of an interval of levels.

    Examples
    --------
    >>> import caltest
    >>> predicted = caltest.predictive.Normal([0.0, 0.0], sd=1.0)
    >>> round(caltest.estimate(predicted, [-1.0, 1.0], "pit_kuiper"), 3)
    0.68
    """

    name = "pit_kuiper"
    measures = "largest error of a range of the PIT"

    @staticmethod
    def _of(levels: Array, shares: Array) -> Array:
        return np.asarray(shares.max(axis=1).clip(min=0.0) - shares.min(axis=1).clip(max=0.0))


@arguments()
@dataclass(frozen=True)
class PitCramerVonMises(_Distance):
    """Mean squared distance of the PIT's distribution from the uniform one.

    Examples
    --------
    >>> import caltest
    >>> predicted = caltest.predictive.Normal([0.0, 0.0], sd=1.0)
    >>> round(caltest.estimate(predicted, [3.0, 3.0], "pit_cvm"), 3)
    0.331
    """

    name = "pit_cvm"
    measures = "mean squared distance of the PIT from uniform"

    @staticmethod
    def _of(levels: Array, shares: Array) -> Array:
        return np.asarray((shares**2 * steps_of(levels)).sum(axis=1) * _EVENLY)


@arguments()
@dataclass(frozen=True)
class PitAndersonDarling(_Distance):
    """The same, with squared distances over t (1 − t): errors of the tails count as much as others.

    Examples
    --------
    >>> import caltest
    >>> predicted = caltest.predictive.Normal([0.0, 0.0], sd=1.0)
    >>> round(caltest.estimate(predicted, [3.0, 3.0], "pit_ad"), 2)
    4.88
    """

    name = "pit_ad"
    measures = "mean squared distance of the PIT from uniform, over its variance"

    @staticmethod
    def _of(levels: Array, shares: Array) -> Array:
        squares = (shares / np.sqrt(levels * (1.0 - levels))) ** 2
        return np.asarray((squares * steps_of(levels)).sum(axis=1) * _EVENLY)


_TENTHS = 10


@arguments()
@dataclass(frozen=True)
class PitChiSquare(_Distance):
    """Chi-square of the PIT's histogram with ten bars, divided by the number of rows.

    10 Σ_k (share of outcomes in bar k − 1/10)². Of members it is that of the rank histogram, whose bars
    share what lies across their ends.

    References
    ----------
    Pearson 1900; of ranks of ensembles: Hamill and Colucci, "Verification of Eta–RSM short-range
    ensemble forecasts", Monthly Weather Review 125 (1997).

    Examples
    --------
    >>> import caltest
    >>> predicted = caltest.predictive.Normal([0.0, 0.0], sd=1.0)
    >>> round(caltest.estimate(predicted, [3.0, 3.0], "pit_chi2"), 2)
    9.0
    """

    name = "pit_chi2"
    measures = "chi-square of the PIT's histogram"
    of_quantiles = False

    @staticmethod
    def _of(levels: Array, shares: Array) -> Array:
        ends = shares[:, STEPS // _TENTHS - 1 :: STEPS // _TENTHS]
        bars = np.diff(ends, prepend=0.0, append=0.0)
        return np.asarray(_TENTHS * (bars**2).sum(axis=1))


@arguments()
@dataclass(frozen=True)
class Coverage(PitStatistic):
    """Largest standardised error of the coverage of central intervals of 50, 80, 90 and 95%.

    Of quantile forecasts, of the stated intervals that are nearest to these.

    Raises
    ------
    InputError
        If a quantile forecast states no two levels as far from 0 as from 1.

    Examples
    --------
    >>> import numpy as np, caltest
    >>> rng = np.random.default_rng(0)
    >>> predicted = caltest.predictive.Normal(np.zeros(300), sd=1.0)
    >>> caltest.test(predicted, rng.normal(0.0, 1.5, 300), "coverage", rng=0).pvalue
    0.001
    """

    name = "coverage"
    measures = "largest standardised error of the coverage of central intervals"

    def given(self, predictions: Rows) -> PitForm:
        """Fix the predictions, and the intervals."""
        law: Any = predictions.law
        levels = levels_of(law)
        low, high = np.nonzero(np.abs(np.add.outer(levels, levels) - 1.0) < _ROUNDED)
        low, high = low[low < high], high[low < high]
        if not len(low):
            raise InputError(
                "'coverage' needs two stated levels as far from 0 as from 1, such as 0.05 and 0.95; "
                "use 'spread' or 'pit_ad'."
            )
        stated = np.round(levels[high] - levels[low], 9)
        nearest = np.unique([np.abs(stated - each).argmin() for each in _CENTRAL])
        every, sd = np.eye(len(levels)), np.sqrt(stated * (1.0 - stated))[nearest]
        inside = (every[high] - every[low])[nearest].T
        return PitDistance(law, predictions.weights, None, inside, partial(_largest, sd))


def _largest(sd: Array, errors: Array) -> Array:
    return np.asarray((np.abs(errors) / sd).max(axis=1))


class _Mean(PitStatistic):
    alternatives = SIGNED

    @staticmethod
    @abstractmethod
    def _signs(levels: Array) -> Array:
        """Return what levels count with, besides their steps."""

    def given(self, predictions: Rows) -> PitForm:
        """Fix the predictions."""
        law: Any = predictions.law
        levels = levels_of(law)
        of_levels = type(self)._signs(levels) * (steps_of(levels) * _EVENLY)
        return PitMean(law, predictions.weights, None, of_levels)


@arguments()
@dataclass(frozen=True)
class Bias(_Mean):
    """Half less the mean PIT: above 0 predictions are too high, below 0 too low.

    It is between −½ and ½ and about ranks, whatever the units: of a normal law, an error of the mean of
    δ standard deviations gives .28 δ.

    Examples
    --------
    >>> import caltest
    >>> predicted = caltest.predictive.Normal([0.0, 0.0], sd=1.0)
    >>> round(caltest.estimate(predicted, [-1.0, -1.0], "bias"), 2)
    0.34
    """

    name = "bias"
    measures = "half less the mean PIT, above 0 where predictions are too high"

    @staticmethod
    def _signs(levels: Array) -> Array:
        return np.ones_like(levels)


@arguments()
@dataclass(frozen=True)
class Spread(_Mean):
    """Whether predicted distributions are too wide (above 0) or too narrow (below 0).

    A quarter less the mean distance of the PIT from ½: between −¼ and ¼.

    Examples
    --------
    >>> import caltest
    >>> predicted = caltest.predictive.Normal([0.0, 0.0], sd=1.0)
    >>> round(caltest.estimate(predicted, [-3.0, 3.0], "spread"), 2)
    -0.25
    """

    name = "spread"
    measures = "a quarter less the mean distance of the PIT from its middle, above 0 where too wide"

    @staticmethod
    def _signs(levels: Array) -> Array:
        return np.asarray(np.sign(levels - 0.5))


# ------------------------------------------------------------------ scores


#: Levels of the quantiles whose mean pinball loss is the CRPS of laws without another form of it.
QUANTILES = (np.arange(99) + 0.5) / 99
_COUNTED = 1e-12  # probability that counts may have outside of a table, and is left out
_ELSEWHERE = 1e-9  # probability of other numbers that is none
_MOST_COUNTS = 2**24  # numbers of the table


def _expecting() -> tuple[Array, Array]:
    """Return levels and what quantiles there count, to add up the expected loss 2/99 Σ (τ_k EY − M_k).

    M_k = ∫ F⁻¹(u) du from 0 to τ_k, by Gauss and Legendre between the levels and in the tails.
    """
    nodes, masses = np.polynomial.legendre.leggauss(6)
    tail = 0.5 ** np.arange(48, 7, -1)
    ends = np.concatenate([tail, QUANTILES, 1.0 - tail[::-1]])
    width = np.diff(ends)[:, None]
    levels = (ends[:-1, None] + 0.5 * width * (nodes + 1.0)).ravel()
    above = len(QUANTILES) - np.searchsorted(QUANTILES, levels)
    return levels, (0.5 * width * masses).ravel() * (QUANTILES.sum() - above) * (2.0 / 99)


def pinball(outcomes: Array, levels: Array, quantiles: Iterable[Array]) -> Array:
    """Return twice the mean pinball loss (…, n) of quantiles (K, n): with many of them, the CRPS."""
    found = np.zeros(outcomes.shape)
    for level, at in zip(levels, quantiles, strict=True):
        over = outcomes - at
        found += np.where(over > 0.0, level, level - 1.0) * over
    return np.asarray(found * (2.0 / len(levels)))


@dataclass(frozen=True, eq=False)
class MeanCRPS(MeanOfNumbers):
    """T = the mean of CRPS(F_i, y_i) less its expectation, in closed form."""

    @property
    def resolution(self) -> float:
        """Rounding of the mean, of as much as it is at medians."""
        medians = self.law.quantile(np.full(self.law.n_samples, 0.5))
        return ROUNDING * float(np.abs(self._of_rows(medians[None])).mean())

    def _of_rows(self, outcomes: Array) -> Array:
        return np.asarray(self.law.crps_excess(outcomes))[..., None]


@dataclass(frozen=True, eq=False)
class MeanCRPSOfCounts(MeanCRPS):
    """The same of whole numbers: E|X − y| − E|X − X′|, from a table of probabilities."""

    first: Array  #: The least number of every row, (n,).
    masses: Array  #: Probabilities from there on, (K, n).

    @classmethod
    def of(cls, law: Predictive, weights: Array) -> MeanCRPSOfCounts | None:
        """Return the form; None if outcomes are no whole numbers, or too many."""
        first, last = (law.quantile(np.full(law.n_samples, u)) for u in (_COUNTED, 1.0 - _COUNTED))
        ends = np.concatenate([first, last])
        if (ends != np.rint(ends)).any() or (last - first).max() * len(first) > _MOST_COUNTS:
            return None
        below, at = law.cdf(first + np.arange((last - first).max() + 1.0)[:, None])
        total = (at - below).sum(axis=0)
        if total.min() < 1.0 - _ELSEWHERE:
            return None
        return cls(law, weights, first, (at - below) / total)

    @cached_property
    def _excess(self) -> Array:
        steps = 2.0 * np.cumsum(self.masses, axis=0) - 1.0
        distances = np.cumsum(np.insert(steps[:-1], 0, 0.0, axis=0), axis=0)
        return np.asarray(distances - (self.masses * distances).sum(axis=0))

    def _of_rows(self, outcomes: Array) -> Array:
        last, rows = len(self.masses) - 1, np.arange(len(self.first))
        inside = (outcomes - self.first).clip(0.0, last)
        place = inside.astype(np.intp)
        here, there = (self._excess[each, rows] for each in (place, np.minimum(place + 1, last)))
        outside = np.abs(outcomes - self.first - inside)
        return np.asarray(here + (inside - place) * (there - here) + outside)[..., None]


@dataclass(frozen=True, eq=False)
class MeanPinball(MeanCRPS):
    """The same by the mean loss of quantiles."""

    @cached_property
    def _expected(self) -> Array:
        levels, masses = _expecting()
        n = self.law.n_samples
        at = (mass * self.law.quantile(np.full(n, u)) for u, mass in zip(levels, masses, strict=True))
        return np.asarray(sum(at))

    @cached_property
    def _at(self) -> Array:
        law = self.law
        return np.stack([law.quantile(np.full(law.n_samples, level)) for level in QUANTILES])

    def _of_rows(self, outcomes: Array) -> Array:
        return np.asarray(pinball(outcomes, QUANTILES, self._at) - self._expected)[..., None]


@arguments()
@dataclass(frozen=True)
class CRPS(Statistic):
    """Continuous ranked probability score less its expectation: above 0 worse than predicted.

    n⁻¹ Σ_i [CRPS(F_i, y_i) − E CRPS(F_i, Z)], Z drawn from F_i, in the units of the outcome. Normal
    distributions, mixtures of these and ensembles have it in closed form. Of whole numbers it is the
    ranked probability score Σ_k (F(k) − 1{y ≤ k})², exactly as long as 10⁻¹⁰ of the probability in
    either tail may be left out. Of other distributions it is twice the mean pinball loss of 99
    quantiles, and its expectation an integral of quantiles between these: right to 10⁻⁹ of the spread
    where they are smooth.

    References
    ----------
    Gneiting and Raftery, "Strictly proper scoring rules, prediction, and estimation", JASA 102 (2007),
    Equations 20 and 21; Epstein, "A scoring system for probability forecasts of ranked categories",
    Journal of Applied Meteorology 8 (1969); Grimit, Gneiting, Berrocal, Johnson, "The continuous ranked
    probability score for circular variables", QJRMS 132 (2006), Equation 5, of mixtures.

    Examples
    --------
    >>> import caltest
    >>> predicted = caltest.predictive.Normal([0.0, 0.0], sd=1.0)
    >>> round(caltest.estimate(predicted, [0.0, 0.0], "crps"), 3)
    -0.33
    """

    name = "crps"
    measures = "continuous ranked probability score less its expectation, above 0 worse than predicted"
    alternatives = SIGNED
    laws = (Predictive,)

    def given(self, predictions: Rows) -> MeanCRPS:
        """Fix the predictions."""
        law: Any = predictions.law
        weights = predictions.weights
        if law.crps_excess(law.quantile(np.full(law.n_samples, 0.5))) is not None:
            return MeanCRPS(law, weights)
        return MeanCRPSOfCounts.of(law, weights) or MeanPinball(law, weights)


@dataclass(frozen=True, eq=False)
class MeanStandardisedSquare(MeanOfNumbers):
    """T = the mean of (y_i − μ_i)² / σ_i² − 1."""

    centre: Array  #: μ, (n,).
    variance: Array  #: σ², (n,).

    @property
    def resolution(self) -> float:
        """Rounding of the mean."""
        return ROUNDING

    def _of_rows(self, outcomes: Array) -> Array:
        return np.asarray((outcomes - self.centre) ** 2 / self.variance - 1.0)[..., None]


@arguments()
@dataclass(frozen=True)
class DawidSebastiani(Statistic):
    """Dawid–Sebastiani score less its expectation: above 0 errors are larger than predicted.

    n⁻¹ Σ_i [(y_i − μ_i)² / σ_i² − 1], with the predicted means μ and standard deviations σ: that is the
    score (y − μ)²/σ² + 2 log σ less its expectation. It knows a distribution by these two numbers. Of
    normal distributions it is twice the "ecd".

    Raises
    ------
    InputError
        If the distributions state no mean and variance, or these are infinite or 0.

    References
    ----------
    Dawid and Sebastiani, "Coherent dispersion criteria for optimal experimental design", Annals of
    Statistics 27 (1999); Gneiting and Raftery 2007, Equation 25.

    Examples
    --------
    >>> import caltest
    >>> predicted = caltest.predictive.Normal([0.0, 0.0], sd=2.0)
    >>> caltest.estimate(predicted, [2.0, 4.0], "dawid_sebastiani")
    1.5
    """

    name = "dawid_sebastiani"
    measures = (
        "squared errors over predicted variances less 1, above 0 where predictions are too narrow"
    )
    alternatives = SIGNED
    laws = (Predictive,)

    def given(self, predictions: Rows) -> MeanOfNumbers:
        """Fix the predictions."""
        law: Any = predictions.law
        mean, variance = finite_moments(self.name, law)
        if isinstance(law, GaussianPredictions) and predictions.are_alike:
            return MeanSquare(law, predictions.weights, 1.0, -1.0)
        return MeanStandardisedSquare(law, predictions.weights, mean, variance)


@dataclass(frozen=True, eq=False)
class BySpread(OneByOne):
    """T = a mean, over bins of rows of similar variance, of how far errors are from those predicted."""

    mean: Array  #: μ, (n,).
    weights: Array  #: (n,).
    cells: NDArray[np.intp]  #: The bin of every row, (n,).
    predicted: Array  #: Mean variance of the rows in every bin, (K,).
    shares: Array  #: Sum of weights in every bin, (K,).
    error: Callable[[Array, Array], Array]  #: Of mean variances and mean square errors, (K,).

    @property
    def resolution(self) -> float:
        """Rounding of the mean."""
        return ROUNDING * float(self.predicted.max())

    def value(self, labels: Any, workers: Workers = ALONE) -> float:
        """Return the value for the outcomes (n,)."""
        squares = np.bincount(self.cells, self.weights * (labels - self.mean) ** 2) / self.shares
        return float(self.error(self.predicted, squares))


@dataclass(frozen=True)
class _OfSpread(Statistic):
    laws = (Predictive,)
    reported = ("n_bins",)

    n_bins: int = 10

    @abstractmethod
    def _error(self, predicted: Array, squares: Array, shares: Array) -> Any:
        """Return the value from bins (K,)."""

    def given(self, predictions: Rows) -> BySpread:
        """Fix the predictions: bins of rows with similar predicted variances."""
        mean, variance = finite_moments(self.name, predictions.law)
        w = predictions.weights
        found = intervals(variance, EqualMass(self.n_bins).edges_of(variance, w))
        cells = np.unique(found, return_inverse=True)[1]
        shares = np.bincount(cells, w).astype(np.float64)
        error = partial(self._error, shares=shares / shares.sum())
        return BySpread(mean, w, cells, np.bincount(cells, w * variance) / shares, shares, error)


@arguments()
@dataclass(frozen=True)
class UCE(_OfSpread):
    """Uncertainty calibration error: how far squared errors are from predicted variances, in bins.

    Σ_k (n_k / n) |MSE_k − MV_k| over bins of rows of similar predicted variance.

    Parameters
    ----------
    n_bins
        Bins with as many rows each. Default 10, as in the source.

    References
    ----------
    Laves, Ihler, Fast, Kahrs, Ortmaier, "Well-calibrated regression uncertainty in medical imaging with
    deep learning", MIDL 2020, Equation 13.

    Examples
    --------
    >>> import caltest
    >>> predicted = caltest.predictive.Normal([0.0, 0.0], sd=[1.0, 3.0])
    >>> caltest.estimate(predicted, [2.0, 3.0], "uce")
    1.5
    """

    name = "uce"
    measures = "uncertainty calibration error"

    def _error(self, predicted: Array, squares: Array, shares: Array) -> Any:
        return shares @ np.abs(squares - predicted)


@arguments()
@dataclass(frozen=True)
class ENCE(_OfSpread):
    """Expected normalised calibration error: how far errors are from predicted ones, as their share.

    K⁻¹ Σ_k |√MV_k − √MSE_k| / √MV_k over bins of rows of similar predicted variance.

    Parameters
    ----------
    n_bins
        Bins with as many rows each. Default 10.

    References
    ----------
    Levi, Gispan, Giladi, Fetaya, "Evaluating and calibrating uncertainty prediction in regression
    tasks", Sensors 22 (2022), Equation 8.

    Examples
    --------
    >>> import caltest
    >>> predicted = caltest.predictive.Normal([0.0, 0.0], sd=[1.0, 3.0])
    >>> caltest.estimate(predicted, [2.0, 3.0], "ence")
    0.5
    """

    name = "ence"
    measures = "expected normalised calibration error"

    def _error(self, predicted: Array, squares: Array, shares: Array) -> Any:
        return np.mean(np.abs(1.0 - np.sqrt(squares / predicted)))


def finite_moments(name: str, law: Any) -> tuple[Array, Array]:
    """Return means and variances; raise unless these are finite, and variances above 0."""
    mean, variance = law.mean_and_variance()
    for row in np.flatnonzero(~(np.isfinite(mean) & np.isfinite(variance) & (variance > 0.0)))[:1]:
        raise InputError(
            f"the distribution of row {row} (counting from 0) has mean {mean[row]:g} and variance "
            f"{variance[row]:g}, and {name!r} needs finite ones, the variance above 0; use "
            "'pit_ad' or another statistic of the cdf."
        )
    return mean, variance


# ------------------------------------------------------------------ kernels


_ALL_PAIRS = 500  # rows up to which "auto" looks at all pairs
_RANK = 128
_positive = Number(0.0, np.inf, advice="give a positive number, in units of the outcome")


@arguments(bandwidth=_positive, outcome_bandwidth=_positive)
@dataclass(frozen=True)
class SKCEOfNumbers(Statistic):
    """Squared kernel calibration error of predicted numbers, unbiased: it may be negative.

    1/(n(n−1)) Σ_{i≠j} k(F_i, F_j) h_ij, with h_ij = l(y_i, y_j) − E l(Z_i, y_j) − E l(y_i, Z_j) +
    E l(Z_i, Z_j), Z drawn from F, k = exp(−W₂/ν) for the Wasserstein distance, and l Gaussian with
    bandwidth γ. Of normal distributions W₂² = (μ − μ′)² + (σ − σ′)²; of members F is the pool of all
    L + 1 values, and W₂² the mean square of differences of sorted pools. It detects every kind of
    miscalibration given enough rows. "skce_uq" stands for it where numbers are predicted.

    Parameters
    ----------
    bandwidth
        ν, in units of the outcome. Default None: the median of W₂ over pairs of predictions.
    outcome_bandwidth
        γ, in units of the outcome. Default None: the median of √((μ − μ′)² + σ² + σ′²), with means
        and variances of the predictions or pools.
    approximation
        None: k itself, O(n²). "nystrom": k by 128 features of its incomplete Cholesky factorisation,
        O(n); p-values stay exact. Default "auto": k itself up to 500 rows, else "nystrom".

    Raises
    ------
    InputError
        If vectors are predicted, or a bandwidth is not positive.

    Notes
    -----
    l is a sum of at most 64 waves, which is right to 10⁻⁹ for outcomes that are less than 55 γ apart,
    and repeats itself beyond.

    References
    ----------
    Widmann, Lindsten, Zachariah, "Calibration tests beyond classification", ICLR 2021, Equation 5 and
    Section 5.

    Examples
    --------
    >>> import numpy as np, caltest
    >>> rng = np.random.default_rng(0)
    >>> mean = rng.normal(size=200)
    >>> predicted = caltest.predictive.Normal(mean, sd=1.0)
    >>> caltest.test(predicted, rng.normal(mean, 1.6), "skce_uq", rng=0).pvalue
    0.001
    """

    bandwidth: float | None = None
    outcome_bandwidth: float | None = None
    approximation: Literal["auto", "nystrom"] | None = "auto"

    name = "skce_uq"
    measures = "squared kernel calibration error"
    laws = (GaussianPredictions, Pool)
    reported = ("bandwidth", "outcome_bandwidth", "approximation")

    def __post_init__(self) -> None:
        if self.approximation is not None:
            choose("approximation", self.approximation, dict.fromkeys(("auto", "nystrom")))

    def fitted(self, predictions: Rows) -> Self:
        """Take the bandwidths from the predictions, and decide on the approximation."""
        law = cast("Waved", predictions.law)
        if law.n_samples == 1:
            raise InputError(f"{self.name!r} compares rows, and there is 1; give 2 or more.")
        points, (mean, variance) = law.points(), law.mean_and_variance()
        some = representatives(points)
        first, second = (some[each] for each in np.triu_indices(len(some), 1))
        apart = pdist(points[some])
        squares = (mean[first] - mean[second]) ** 2 + variance[first] + variance[second]
        wide = np.sqrt(squares)
        width = float(np.median(wide) or wide.mean() or 1.0)  # many pools may hold one number only
        few = predictions.n_samples <= _ALL_PAIRS
        auto: Literal["nystrom"] | None = None if few else "nystrom"
        return replace(
            self,
            bandwidth=self.bandwidth or float(np.median(apart) or apart.mean() or width),
            outcome_bandwidth=self.outcome_bandwidth or width,
            approximation=auto if self.approximation == "auto" else self.approximation,
        )

    def given(self, predictions: Rows) -> WavePairs:
        """Fix the predictions."""
        found, law = self.fitted(predictions), cast("Waved", predictions.law)
        unit, points = cast("float", found.outcome_bandwidth), law.points()
        # Points whose distance is W₂ in these units; of two entries they would be two classes.
        points = np.pad((points - points[0]) / unit, ((0, 0), (0, 1)))
        kernel = Exponential(cast("float", found.bandwidth) / unit, "euclidean")
        rank = law.n_samples if found.approximation is None else _RANK
        factor = incomplete_cholesky(KernelWeights(kernel, points), fixed_order(points), rank)
        features = np.asarray(factor[0] * predictions.weights[:, None])
        return WavePairs(Waves(law, features, unit), 1.0 / predictions.whole.pairs)


# ------------------------------------------------------------------ omnibus


@arguments()
@dataclass(frozen=True)
class OmnibusOfNumbers(Statistic):
    """The default statistic of numbers: several kinds of error at once.

    The parts are "bias", "spread" and "pit_ad", and bias and spread that change with the level: the
    same scores times the rank of a row's predicted median, from −1 to 1. Each is standardised by its
    moments over draws that do not depend on the outcomes, and the statistic is the largest evidence;
    ``parts`` of the result has a p-value for each, adjusted for their number.

    Examples
    --------
    >>> import numpy as np, caltest
    >>> rng = np.random.default_rng(0)
    >>> predicted = caltest.predictive.Normal(np.zeros(300), sd=1.0)
    >>> result = caltest.test(predicted, rng.normal(0.0, 1.5, 300), rng=0)
    >>> [(part.name, part.adjusted) for part in result.parts]
    [('bias', 0.292), ('spread', 0.001), ('pit_ad', 0.001)]
    """

    name = "omnibus"
    measures = "evidence of its strongest part, −log of a tail probability"
    laws = (Predictive,)
    of_quantiles = True
    growth = None
    _more: ClassVar[tuple[Statistic, ...]] = ()

    def given(self, predictions: Rows) -> Combined:
        """Fix the predictions: every part as a function of the outcomes."""
        law: Any = predictions.law
        n, means = predictions.n_samples, (Bias(), Spread())
        _, places, counts = np.unique(law.level(), return_inverse=True, return_counts=True)
        forms: dict[str, Any] = {
            each.name: each.given(predictions) for each in (*means, PitAndersonDarling())
        }
        if len(counts) > 1:
            ranks = np.cumsum(counts) - 0.5 * (counts + 1)
            tilts = 2.0 * ranks[places] / (n - 1.0) - 1.0
            forms |= {
                f"{each.name}, by level": replace(each.given(predictions), tilts=tilts)
                for each in means
            }
        forms |= {each.name: each.given(predictions) for each in self._more}
        drawn, parts = DrawnMoments(tuple(forms.values())), []
        for place, (name, form) in enumerate(forms.items()):
            side: Alternative = "greater" if isinstance(form, PitDistance) else "two-sided"
            parts.append(Component(name, form, side, law=partial(drawn.of, place)))
        return Combined(tuple(parts))
