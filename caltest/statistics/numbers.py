"""Statistics of predicted distributions of numbers: where outcomes lie in them, and their scores.

All of the PIT are functions of the same sums, see :mod:`caltest.forms.pit`: distances (Kolmogorov and
Smirnov, Kuiper, Cramér and von Mises, Anderson and Darling), the two words of a report (too high or too
low, too narrow or too wide), and the coverage of intervals.
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any, ClassVar

import numpy as np

from caltest._arguments import arguments
from caltest.data import Rows
from caltest.forms import Combined, Component
from caltest.forms.base import Array
from caltest.forms.pit import LEVELS, STEPS, DrawnMoments, PitDistance, PitForm, PitMean
from caltest.forms.sums import MeanOfNumbers
from caltest.laws import GaussianPredictions, Predictive
from caltest.pvalues import Alternative
from caltest.statistics.base import SIGNED, Statistic


class PitStatistic(Statistic):
    """Base class of statistics of the PIT."""

    laws = (Predictive,)

    @abstractmethod
    def given(self, predictions: Rows) -> PitForm:
        """Fix the predictions."""


class _Distance(PitStatistic):
    @staticmethod
    @abstractmethod
    def _of(shares: Array) -> Array:
        """Return the distances from mean scores (B, T)."""

    def given(self, predictions: Rows) -> PitForm:
        """Fix the predictions."""
        law: Any = predictions.law
        return PitDistance(law, predictions.weights, None, type(self)._of)


_EVENLY = 1.0 / STEPS
_SPREADS = np.sqrt(LEVELS * (1.0 - LEVELS))
_CENTRAL = np.array([0.5, 0.8, 0.9, 0.95])
_ENDS = np.round(STEPS * np.array([(1.0 - _CENTRAL) / 2.0, (1.0 + _CENTRAL) / 2.0])).astype(int) - 1


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
    def _of(shares: Array) -> Array:
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
    def _of(shares: Array) -> Array:
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
    def _of(shares: Array) -> Array:
        return np.asarray((shares**2).sum(axis=1) * _EVENLY)


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
    def _of(shares: Array) -> Array:
        return np.asarray(((shares / _SPREADS) ** 2).sum(axis=1) * _EVENLY)


@arguments()
@dataclass(frozen=True)
class Coverage(_Distance):
    """Largest standardised error of the coverage of central intervals of 50, 80, 90 and 95%.

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

    @staticmethod
    def _of(shares: Array) -> Array:
        low, high = shares[:, _ENDS[0]], shares[:, _ENDS[1]]
        return np.asarray((np.abs(high - low) / np.sqrt(_CENTRAL * (1.0 - _CENTRAL))).max(axis=1))


class _Mean(PitStatistic):
    alternatives = SIGNED
    _levels: ClassVar[Array]

    def given(self, predictions: Rows) -> PitForm:
        """Fix the predictions."""
        law: Any = predictions.law
        return PitMean(law, predictions.weights, None, type(self)._levels)


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
    _levels = np.full(len(LEVELS), _EVENLY)


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
    _levels = np.sign(LEVELS - 0.5) * _EVENLY


# ------------------------------------------------------------------ scores


#: Levels of the quantiles whose mean pinball loss is the CRPS, but for normal distributions.
_QUANTILES = (np.arange(99) + 0.5) / 99


@dataclass(frozen=True, eq=False)
class MeanCRPS(MeanOfNumbers):
    """T = the mean of CRPS(F_i, y_i) less its expectation."""

    @cached_property
    def _expected(self) -> Array:
        law = self.predictive
        if isinstance(law, GaussianPredictions):
            return np.asarray(law.factors[:, 0, 0] / np.sqrt(np.pi))
        return np.asarray(self._scores(self._at).mean(axis=0))

    @cached_property
    def _at(self) -> Array:
        law = self.predictive
        return np.stack([law.quantile(np.full(law.n_samples, level)) for level in _QUANTILES])

    def _scores(self, outcomes: Array) -> Array:
        found = np.zeros(outcomes.shape)
        for level, quantiles in zip(_QUANTILES, self._at, strict=True):
            over = outcomes - quantiles
            found += np.where(over > 0.0, level, level - 1.0) * over
        return found * (2.0 / len(_QUANTILES))

    def _of_rows(self, outcomes: Array) -> Array:
        law = self.predictive
        if isinstance(law, GaussianPredictions):
            return np.asarray(law.crps(outcomes) - self._expected)[..., None]
        return np.asarray(self._scores(outcomes) - self._expected)[..., None]


@arguments()
@dataclass(frozen=True)
class CRPS(Statistic):
    """Continuous ranked probability score less its expectation: above 0 worse than predicted.

    n⁻¹ Σ_i [CRPS(F_i, y_i) − E CRPS(F_i, Z)], Z drawn from F_i, in the units of the outcome. Normal
    distributions have it in closed form; of others it is twice the mean pinball loss of 99 quantiles.

    References
    ----------
    Gneiting and Raftery, "Strictly proper scoring rules, prediction, and estimation", JASA 102 (2007),
    Equations 20 and 21.

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
        return MeanCRPS(law, predictions.weights)


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
    growth = None

    def given(self, predictions: Rows) -> Combined:
        """Fix the predictions: every part as a function of the outcomes."""
        law: Any = predictions.law
        n, means = predictions.n_samples, (Bias(), Spread())
        medians = law.quantile(np.full(n, 0.5))
        _, places, counts = np.unique(medians, return_inverse=True, return_counts=True)
        forms = {each.name: each.given(predictions) for each in (*means, PitAndersonDarling())}
        if len(counts) > 1:
            ranks = np.cumsum(counts) - 0.5 * (counts + 1)
            tilts = 2.0 * ranks[places] / (n - 1.0) - 1.0
            forms |= {
                f"{each.name}, by level": replace(each.given(predictions), tilts=tilts)
                for each in means
            }
        drawn, parts = DrawnMoments(tuple(forms.values())), []
        for place, (name, form) in enumerate(forms.items()):
            side: Alternative = "two-sided" if isinstance(form, PitMean) else "greater"
            parts.append(Component(name, form, side, law=partial(drawn.of, place)))
        return Combined(tuple(parts))
