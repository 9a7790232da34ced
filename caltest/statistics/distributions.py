"""Statistics of predicted distributions of numbers: the PIT, scores and kernels; also for vectors.

Statistics of the PIT are functions of the same sums (:mod:`caltest.forms.predictive`): distances, the
mean (too high or too low), the spread (too narrow or too wide), and the coverage of intervals.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Literal, Self, cast

import numpy as np
import scipy

from caltest._arguments import Number, among, options
from caltest._parallel import ALONE, Workers
from caltest._sums import Places, blocks
from caltest.binning import EqualMass, intervals
from caltest.data import Rows
from caltest.exceptions import InputError
from caltest.forms import LinearSum, MeanOfNumbers, MeanSquare, predictive
from caltest.forms.base import ROUNDING, Array, OneByOne
from caltest.forms.kernel_matrices import KernelWeights, incomplete_cholesky
from caltest.forms.predictive import STEPS, PitDistance, PitForm, PitMean, Waved, level_counts
from caltest.kernels import Exponential
from caltest.kernels.bandwidth import fixed_order, representatives
from caltest.laws import GaussianPredictions, Pool, Pools
from caltest.laws.members import fair_scores, standardised
from caltest.statistics.base import Listed
from caltest.statistics.table import SKCE

# ------------------------------------------------------------------ the PIT

_CENTRAL = (0.5, 0.8, 0.9, 0.95)
_ROUNDED = 1e-9  # tolerance of levels


def _mean_square(levels: Array, shares: Array) -> Array:
    return np.asarray((shares**2 * level_counts(levels)).sum(axis=1) * (1.0 / STEPS))


def _mean_square_of_z(levels: Array, shares: Array) -> Array:
    return _mean_square(levels, shares / np.sqrt(levels * (1.0 - levels)))


def _chi_square_of_tenths(levels: Array, shares: Array) -> Array:
    bars = np.diff(shares[:, STEPS // 10 - 1 :: STEPS // 10], prepend=0.0, append=0.0)
    return np.asarray(10 * (bars**2).sum(axis=1))


#: Distances from mean scores (B, T) at levels (T,), by the word in the table.
DISTANCES: dict[str, Callable[[Array, Array], Array]] = {
    "largest": lambda _, shares: np.abs(shares).max(axis=1),
    "range": lambda _, shares: shares.max(axis=1).clip(min=0.0) - shares.min(axis=1).clip(max=0.0),
    "mean square": _mean_square,
    "mean square of z": _mean_square_of_z,
    "χ² of tenths": _chi_square_of_tenths,
}


class AtLevels(Listed, takes_weights=True):
    """A statistic of the PIT, from mean scores at levels: a distance, or a signed mean."""

    def given(self, predictions: Rows) -> PitForm:
        """Return the form for these predictions."""
        law: Any = predictions.law
        levels = predictive.levels_of(law)
        if self.how in DISTANCES:
            distance = partial(DISTANCES[self.how], levels)
            return PitDistance(law, predictions.weights, None, None, distance)
        signs = np.ones_like(levels) if self.how == "mean" else np.sign(levels - 0.5)
        return PitMean(law, predictions.weights, None, signs * (level_counts(levels) * (1.0 / STEPS)))


class PitKolmogorovSmirnov(AtLevels, row="pit_ks"):
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


class PitKuiper(AtLevels, row="pit_kuiper"):
    """Range of the PIT's distribution less the uniform one: the largest error of an interval of levels.

    Examples
    --------
    >>> import caltest
    >>> predicted = caltest.predictive.Normal([0.0, 0.0], sd=1.0)
    >>> round(caltest.estimate(predicted, [-1.0, 1.0], "pit_kuiper"), 3)
    0.68
    """


class PitCramerVonMises(AtLevels, row="pit_cvm"):
    """Mean squared distance of the PIT's distribution from the uniform one.

    Examples
    --------
    >>> import caltest
    >>> predicted = caltest.predictive.Normal([0.0, 0.0], sd=1.0)
    >>> round(caltest.estimate(predicted, [3.0, 3.0], "pit_cvm"), 3)
    0.331
    """


class PitAndersonDarling(AtLevels, row="pit_ad"):
    """Anderson–Darling distance of the PIT from uniform: tails count as much as the rest.

    Examples
    --------
    >>> import caltest
    >>> predicted = caltest.predictive.Normal([0.0, 0.0], sd=1.0)
    >>> round(caltest.estimate(predicted, [3.0, 3.0], "pit_ad"), 2)
    4.88
    """


class PitChiSquare(AtLevels, row="pit_chi2"):
    """Chi-square of the PIT's histogram with ten bars, divided by the number of rows.

    10 Σ_k (share of outcomes in bar k − 1/10)². For members it is the chi-square of the rank histogram;
    ranks that lie across two bars are shared between them.

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


class Coverage(AtLevels, row="coverage"):
    """Largest standardised error of the coverage of central intervals of 50, 80, 90 and 95%.

    For quantile forecasts, the stated intervals nearest to these count.

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

    def given(self, predictions: Rows) -> PitForm:
        """Return the form for these predictions and the intervals."""
        law: Any = predictions.law
        levels = predictive.levels_of(law)
        low, high = np.nonzero(np.abs(np.add.outer(levels, levels) - 1.0) < _ROUNDED)
        low, high = low[low < high], high[low < high]
        if not len(low):
            found = "'coverage' needs two stated levels as far from 0 as from 1, such as 0.05 and 0.95"
            raise InputError(f"{found}; use 'spread' or 'pit_ad'.")
        stated = np.round(levels[high] - levels[low], 9)
        nearest = np.unique([np.abs(stated - each).argmin() for each in _CENTRAL])
        every, sd = np.eye(len(levels)), np.sqrt(stated * (1.0 - stated))[nearest]
        inside = (every[high] - every[low])[nearest].T
        return PitDistance(law, predictions.weights, None, inside, partial(_largest_z, sd))


def _largest_z(sd: Array, errors: Array) -> Array:
    return np.asarray((np.abs(errors) / sd).max(axis=1))


class Bias(AtLevels, row="bias"):
    """Half less the mean PIT: above 0 predictions are too high, below 0 too low.

    It is between −½ and ½, and depends on ranks only, not on units: for normal distributions, an error
    of the mean of δ standard deviations gives .28 δ.

    Examples
    --------
    >>> import caltest
    >>> predicted = caltest.predictive.Normal([0.0, 0.0], sd=1.0)
    >>> round(caltest.estimate(predicted, [-1.0, -1.0], "bias"), 2)
    0.34
    """


class Spread(AtLevels, row="spread"):
    """Whether predicted distributions are too wide (above 0) or too narrow (below 0).

    A quarter less the mean distance of the PIT from ½: between −¼ and ¼.

    Examples
    --------
    >>> import caltest
    >>> predicted = caltest.predictive.Normal([0.0, 0.0], sd=1.0)
    >>> round(caltest.estimate(predicted, [-3.0, 3.0], "spread"), 2)
    -0.25
    """


# ------------------------------------------------------------------ scores


def pinball(outcomes: Array, levels: Array, quantiles: Iterable[Array]) -> Array:
    """Return twice the mean pinball loss (…, n) of quantiles (K, n); with many quantiles, the CRPS."""
    found = np.zeros(outcomes.shape)
    for level, at in zip(levels, quantiles, strict=True):
        over = outcomes - at
        found += np.where(over > 0.0, level, level - 1.0) * over
    return np.asarray(found * (2.0 / len(levels)))


class CRPS(Listed, row="crps"):
    """Continuous ranked probability score less its expectation: above 0 worse than predicted.

    n⁻¹ Σ_i [CRPS(F_i, y_i) − E CRPS(F_i, Z)], Z drawn from F_i, in the units of the outcome. Normal
    distributions and ensembles have it in closed form. For whole numbers it is the ranked probability
    score Σ_k (F(k) − 1{y ≤ k})², exactly as long as 10⁻¹² of the probability in either tail may be left
    out. For other distributions it is integrated adaptively over quantiles: the score and its
    expectation are right to 10⁻⁴ of the score, for heavy tails and atoms too.

    Raises
    ------
    InputError
        If quantiles grow as if the mean were infinite (with a tail index of .98 or more), do not rise
        with their level, or jump too often to be integrated.

    References
    ----------
    Gneiting and Raftery, "Strictly proper scoring rules, prediction, and estimation", JASA 102 (2007),
    Equations 20 and 21; Epstein, "A scoring system for probability forecasts of ranked categories",
    Journal of Applied Meteorology 8 (1969); Grimit, Gneiting, Berrocal, Johnson, "The continuous ranked
    probability score for circular variables", QJRMS 132 (2006), Equation 5, of ensembles.

    Examples
    --------
    >>> import caltest
    >>> predicted = caltest.predictive.Normal([0.0, 0.0], sd=1.0)
    >>> round(caltest.estimate(predicted, [0.0, 0.0], "crps"), 3)
    -0.33
    """

    def given(self, predictions: Rows) -> MeanOfNumbers:
        """Return the form for these predictions."""
        law: Any = predictions.law
        return MeanOfNumbers(law, predictions.weights, law.crps_excess, ROUNDING * law.crps_size())


class DawidSebastiani(Listed, row="dawid_sebastiani"):
    """Dawid–Sebastiani score less its expectation: above 0 errors are larger than predicted.

    n⁻¹ Σ_i [(y_i − μ_i)² / σ_i² − 1], with the predicted means μ and standard deviations σ: that is the
    score (y − μ)²/σ² + 2 log σ less its expectation. It uses only these two numbers of a distribution.
    For normal distributions it is twice the "ecd".

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

    def given(self, predictions: Rows) -> MeanOfNumbers:
        """Return the form for these predictions."""
        law: Any = predictions.law
        mean, variance = finite_moments(self.name, law)
        if isinstance(law, GaussianPredictions) and predictions.are_alike:
            return MeanSquare.of(law, predictions.weights, 1.0, -1.0)

        def excess(outcomes: Array) -> Array:
            return (outcomes - mean) ** 2 / variance - 1.0

        return MeanOfNumbers(law, predictions.weights, excess, ROUNDING)


@dataclass(frozen=True, eq=False)
class BySpread(OneByOne):
    """T = mean difference, over bins of rows of similar variance, of observed and predicted error."""

    mean: Array  #: μ, (n,).
    weights: Array  #: (n,).
    cells: Places  #: The bin of every row, (n,).
    predicted: Array  #: Mean variance of the rows in every bin, (K,).
    shares: Array  #: Sum of weights in every bin, (K,).
    relative: bool  #: Whether standard deviations are compared, relative to the predicted ones.

    @property
    def resolution(self) -> float:
        """Rounding error of the mean."""
        return ROUNDING * float(self.predicted.max())

    def value(self, labels: Any, workers: Workers = ALONE) -> float:
        """Return the value for the outcomes (n,)."""
        squares = np.bincount(self.cells, self.weights * (labels - self.mean) ** 2) / self.shares
        if self.relative:
            return float(np.mean(np.abs(1.0 - np.sqrt(squares / self.predicted))))
        return float((self.shares / self.shares.sum()) @ np.abs(squares - self.predicted))


@options()
class _BySpread(Listed, takes_weights=True):
    n_bins: int = 10

    reported = ("n_bins",)

    def given(self, predictions: Rows) -> BySpread:
        """Return the form for these predictions: bins of rows with similar predicted variances."""
        mean, variance = finite_moments(self.name, predictions.law)
        w = predictions.weights
        found = intervals(variance, EqualMass(self.n_bins).edges_of(variance, w))
        cells = np.unique(found, return_inverse=True)[1]
        shares = np.bincount(cells, w).astype(np.float64)
        predicted = np.bincount(cells, w * variance) / shares
        return BySpread(mean, w, cells, predicted, shares, relative=self.how == "mean share")


class UCE(_BySpread, row="uce"):
    """Uncertainty calibration error: how far squared errors are from predicted variances, in bins.

    Σ_k (n_k / n) |MSE_k − MV_k| over bins of rows of similar predicted variance.

    Parameters
    ----------
    n_bins : int, default 10
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


class ENCE(_BySpread, row="ence"):
    """Expected normalised calibration error: how far errors are from predicted ones, as their share.

    K⁻¹ Σ_k |√MV_k − √MSE_k| / √MV_k over bins of rows of similar predicted variance.

    Parameters
    ----------
    n_bins : int, default 10
        Bins with as many rows each.

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


def finite_moments(name: str, law: Any) -> tuple[Array, Array]:
    """Return means and variances; raise unless they are finite, and variances above 0."""
    mean, variance = law.mean_and_variance()
    for row in np.flatnonzero(~(np.isfinite(mean) & np.isfinite(variance) & (variance > 0.0)))[:1]:
        raise InputError(
            f"the distribution of row {row} (counting from 0) has mean {mean[row]:g} and variance "
            f"{variance[row]:g}, and {name!r} needs finite ones, the variance above 0; use "
            "'pit_ad' or another statistic of the cdf."
        )
    return mean, variance


# ------------------------------------------------------------------ kernels


_ALL_PAIRS = 500  # rows up to which "auto" uses all pairs
_RANK = 128
_positive = Number(0.0, np.inf, advice="give a positive number, in units of the outcome")


@options(bandwidth=_positive, outcome_bandwidth=_positive, approximation=among("auto", "nystrom"))
class SKCEOfNumbers(Listed, takes_weights=True):
    """Squared kernel calibration error of predicted numbers, unbiased: it may be negative.

    1/(n(n−1)) Σ_{i≠j} k(F_i, F_j) h_ij, with h_ij = l(y_i, y_j) − E l(Z_i, y_j) − E l(y_i, Z_j) + E
    l(Z_i, Z_j), Z drawn from F, k = exp(−W₂/ν) for the Wasserstein distance, and l Gaussian with
    bandwidth γ. For normal distributions W₂² = (μ − μ′)² + (σ − σ′)²; for members F is the pool of all
    L + 1 values, and W₂² the mean square of differences of sorted pools. It detects every kind of
    miscalibration given enough rows. Where numbers are predicted, "skce_uq" is this statistic.

    Parameters
    ----------
    bandwidth : float, optional
        ν, in units of the outcome. Default None: the median of W₂ over pairs of predictions.
    outcome_bandwidth : float, optional
        γ, in units of the outcome. Default None: the median of √((μ − μ′)² + σ² + σ′²), with means
        and variances of the predictions or pools.
    approximation : {"auto", "nystrom"} or None, default "auto"
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
    measures = SKCE
    laws = (GaussianPredictions, Pool)
    reported = ("bandwidth", "outcome_bandwidth", "approximation")

    def fitted(self, predictions: Rows) -> Self:
        """Compute the bandwidths from the predictions, and choose the approximation."""
        law = cast("Waved", predictions.law)
        if law.n_samples == 1:
            raise InputError(f"{self.name!r} compares rows, and there is 1; give 2 or more.")
        points, (mean, variance) = law.points(), law.mean_and_variance()
        some = representatives(points)
        first, second = (some[each] for each in np.triu_indices(len(some), 1))
        apart = scipy.spatial.distance.pdist(points[some])
        wide = np.sqrt((mean[first] - mean[second]) ** 2 + variance[first] + variance[second])
        width = float(np.median(wide) or wide.mean() or 1.0)  # pools may be mostly constant
        auto: Literal["nystrom"] | None = None if predictions.n_samples <= _ALL_PAIRS else "nystrom"
        return replace(
            self,
            bandwidth=self.bandwidth or float(np.median(apart) or apart.mean() or width),
            outcome_bandwidth=self.outcome_bandwidth or width,
            approximation=auto if self.approximation == "auto" else self.approximation,
        )

    def given(self, predictions: Rows) -> predictive.WavePairs:
        """Return the form for these predictions."""
        found, law = self.fitted(predictions), cast("Waved", predictions.law)
        unit, points = cast("float", found.outcome_bandwidth), law.points()
        # Points at distance W₂ in these units; the pad keeps two entries from passing as two classes.
        points = np.pad((points - points[0]) / unit, ((0, 0), (0, 1)))
        kernel = Exponential(cast("float", found.bandwidth) / unit, "euclidean")
        rank = law.n_samples if found.approximation is None else _RANK
        factor = incomplete_cholesky(KernelWeights(kernel, points), fixed_order(points), rank)
        waves = predictive.Waves(law, np.asarray(factor[0] * predictions.weights[:, None]), unit)
        return predictive.WavePairs(waves, 1.0 / predictions.whole.pairs)


# ------------------------------------------------------------------ vectors


_HELD = 2**16  # numbers of pools processed at a time


class EnergyScore(Listed, row="energy"):
    """Energy score of vectors less its mean over the pool: above 0 worse than predicted.

    n⁻¹ Σ_i of L⁻¹ Σ_k ‖x_k − y‖ − (2 L (L − 1))⁻¹ Σ_{k,l} ‖x_k − x_l‖ over the other L values of the
    pool, entries divided by their standard deviations in the pool, so that units do not matter. It
    finds errors of location and spread; lenses of pairs and "omnibus" find errors of dependence.

    References
    ----------
    Gneiting and Raftery, "Strictly proper scoring rules, prediction, and estimation", JASA 102 (2007),
    Equation 22; fair for any number of members: Ferro, "Fair scores for ensemble forecasts", QJRMS 140
    (2014).

    Examples
    --------
    >>> import numpy as np, caltest
    >>> rng = np.random.default_rng(0)
    >>> members = caltest.predictive.Members(rng.normal(size=(200, 19, 3)))
    >>> caltest.test(members, rng.normal(0.0, 1.4, size=(200, 3)), "energy", rng=0).pvalue
    0.002
    """

    def given(self, predictions: Rows) -> LinearSum:
        """Return the form for these predictions."""
        law = cast("Pools", predictions.law)
        scores, between = np.empty(law.pool.shape[:2]), scipy.spatial.distance
        for rows in blocks(law.n_samples, max(1, _HELD // law.pool[0].size)):
            points = standardised(law.pool[rows])
            distances = np.stack([between.squareform(between.pdist(own)).sum(axis=0) for own in points])
            scores[rows] = fair_scores(distances, distances.sum(axis=1, keepdims=True), law.size)
        table = predictions.weighted(scores - scores.mean(axis=1, keepdims=True))
        probs = np.broadcast_to(1.0 / law.size, table.shape)
        return LinearSum(np.ascontiguousarray(table) / predictions.whole.total, probs)
