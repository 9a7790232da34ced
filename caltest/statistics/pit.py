"""Statistics of the PIT: where outcomes lie in predicted distributions of numbers; their omnibus.

All are functions of the same sums, see :mod:`caltest.forms.numbers`: distances (Kolmogorov and
Smirnov, Kuiper, Cramér and von Mises, Anderson and Darling), the two words of a report (too high or too
low, too narrow or too wide), and the coverage of intervals.
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import replace
from functools import partial
from typing import Any, ClassVar

import numpy as np

from caltest._arguments import options
from caltest.data import Rows
from caltest.exceptions import InputError
from caltest.forms import Combined, Component
from caltest.forms.base import Array
from caltest.forms.numbers import (
    STEPS,
    DrawnMoments,
    PitDistance,
    PitForm,
    PitMean,
    level_counts,
    levels_of,
)
from caltest.laws import Predictive
from caltest.pvalues import Alternative
from caltest.statistics.base import SIGNED, Statistic


class PitStatistic(Statistic, takes_weights=True):
    """Base class of statistics of the PIT."""

    laws = (Predictive,)
    of_quantiles = True

    @abstractmethod
    def given(self, predictions: Rows) -> PitForm:
        """Fix the predictions."""


class _Distance(PitStatistic, takes_weights=True):
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


@options()
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


@options()
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


@options()
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
        return np.asarray((shares**2 * level_counts(levels)).sum(axis=1) * _EVENLY)


@options()
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
        return np.asarray((squares * level_counts(levels)).sum(axis=1) * _EVENLY)


_TENTHS = 10


@options()
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


@options()
class Coverage(PitStatistic, takes_weights=True):
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


class _Mean(PitStatistic, takes_weights=True):
    alternatives = SIGNED

    @staticmethod
    @abstractmethod
    def _signs(levels: Array) -> Array:
        """Return what levels count with, besides their steps."""

    def given(self, predictions: Rows) -> PitForm:
        """Fix the predictions."""
        law: Any = predictions.law
        levels = levels_of(law)
        of_levels = type(self)._signs(levels) * (level_counts(levels) * _EVENLY)
        return PitMean(law, predictions.weights, None, of_levels)


@options()
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


@options()
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


# ------------------------------------------------------------------ omnibus


@options()
class OmnibusOfNumbers(Statistic, takes_weights=True):
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
