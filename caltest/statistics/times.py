"""Statistics of times until an event: observed less expected events, D-calibration, risk at a horizon.

If follow-up is unknown, events and risk at a horizon use times as observed, censored or not; statistics
of the PIT use imputed times, see :mod:`caltest.laws.survival`.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import scipy

from caltest._arguments import Number, options
from caltest._parallel import ALONE, Workers
from caltest._sums import Mask, Places
from caltest.data import Rows
from caltest.exceptions import Argument, InputError
from caltest.forms import MeanOfNumbers
from caltest.forms.base import Array, ChiSquare, HasChiSquare, OneByOne
from caltest.forms.predictive import LEVELS, STEPS, sums_of_scores
from caltest.statistics.base import Listed
from caltest.statistics.distributions import PitChiSquare

_horizon = Number(0.0, np.inf, advice="give a time, in the units of the outcomes")

# ------------------------------------------------------------------ events


@dataclass(frozen=True, eq=False)
class EventMean(MeanOfNumbers):
    """T = a mean of observed less expected events, perhaps with factors that depend on predictions."""

    law: Any
    horizon: float = np.inf
    tilts: Array | None = None  #: Factors of residuals, (n,); None for 1.


def ranks(values: Array) -> Array:
    """Return ranks from −1, the lowest value, to 1, the highest; ties share their mean rank."""
    _, places, counts = np.unique(values, return_inverse=True, return_counts=True)
    middle = np.cumsum(counts) - 0.5 * (counts + 1)
    return np.asarray(2.0 * middle[places] / max(len(values) - 1.0, 1.0) - 1.0)


@options(horizon=_horizon)
class _Events(Listed, takes_weights=True):
    horizon: float | None = None
    cause: str | None = None

    reported = ("horizon", "cause")

    def given(self, predictions: Rows) -> EventMean:
        """Return the form for these predictions."""
        law: Any = predictions.law.of_cause(self.cause)  # type: ignore[attr-defined]
        at = np.inf if self.horizon is None else self.horizon
        tilts = ranks(-law.level()) if self.name == "event_slope" else None

        def residuals(outcomes: Array) -> Array:
            came, expected = law.events(outcomes, at)
            found: Array = came - expected
            return found if tilts is None else found * tilts

        return EventMean(law, predictions.weights, residuals, horizon=at, tilts=tilts)


class Events(_Events, row="events"):
    """Events observed less those expected, per row: above 0 predicted risks are too low.

    n⁻¹ Σ_i [δ_i − Λ_i(X_i)], with the predicted cumulative hazard Λ until the row's event or its
    censoring: 0 on average under any censoring that does not depend on the time given the prediction.
    If the end of follow-up is unknown, its p-value comes from random signs of rows, and is at least
    that of a Poisson number of events: about right.

    Parameters
    ----------
    horizon : float, optional
        Look at events until this time. Default None: at all.
    cause : str, optional
        With competing events, look at those of this cause. Default None: at all.

    References
    ----------
    Crowson, Atkinson, Therneau, "Assessing calibration of prognostic risk scores", Statistical Methods
    in Medical Research 25 (2016).

    Examples
    --------
    >>> import numpy as np, caltest
    >>> predicted = caltest.predictive.Survival([[0.5, 0.0]] * 4, [1.0, 2.0])
    >>> outcomes = [1.0, 1.0, 1.0, 1.0], [1, 1, 0, 0]
    >>> round(caltest.estimate(predicted, outcomes, "events"), 3)  # 2 events, and 4 log 2 expected
    -0.193
    """


class EventSlope(_Events, row="event_slope"):
    """Events less expected ones, with weights from −1, the lowest predicted risk, to 1, the highest.

    Above 0 there are more events than expected at high risks, or fewer at low ones: predictions differ
    too little; below 0, too much. It is the score test of a calibration slope, with ranks of the
    predicted risks.

    Parameters
    ----------
    horizon : float, optional
        Look at events until this time. Default None: at all.
    cause : str, optional
        With competing events, look at those of this cause. Default None: at all.

    Examples
    --------
    >>> import numpy as np, caltest
    >>> predicted = caltest.predictive.Survival([[0.5, 0.0], [0.9, 0.0]], [1.0, 2.0])
    >>> round(caltest.estimate(predicted, ([1.0, 1.0], [1, 0]), "event_slope"), 3)
    0.206
    """


# ------------------------------------------------------------------ D-calibration


class DCalibration(PitChiSquare, row="d_calibration"):
    """Chi-square of the PIT in ten cells, per row: is each tenth of the predictions as frequent?

    Σ_k (share_k − 0.1)² / 0.1. Censored times are imputed, so the test has its exact level; the usual
    test spreads a censored row over all later cells and then uses the chi-square law, which has hardly
    any power if many rows are censored.

    References
    ----------
    Haider, Hoehn, Davis, Greiner, "Effective ways to build and evaluate individual survival
    distributions", JMLR 21 (2020), Section 3.5.

    Examples
    --------
    >>> import numpy as np, caltest
    >>> predicted = caltest.predictive.Survival([[0.5, 0.0]] * 2, [1.0, 2.0])
    >>> round(caltest.estimate(predicted, ([0.1, 0.15], [1, 1]), "d_calibration"), 3)
    9.0
    """


_FOLLOWED = 10.0  # fewest followed rows for which a share is shown


class Shares(NamedTuple):
    """Shares of times at or below predicted quantiles, as long as enough rows are followed."""

    levels: Array
    shares: Array
    reach: Array  #: Width of a band, relative to that of rows all followed to the end.


def observed_shares(law: Any, outcomes: Array, weights: Array) -> Shares:
    """Return Kaplan–Meier shares of times (n,) at or below the quantiles of all levels.

    The time scale is u, the predicted probability of the event until then, uniform under calibration.
    Rows are used until their follow-up ends, and nothing is imputed. An event at a time of positive
    probability is spread evenly over it. The band is that of Hall and Wellner (1980), (1 − u)(1 + C(u))
    times that of n complete outcomes, C(u) = n ∫₀ᵘ dv / ((1 − v) Y(v)), with Y rows followed.
    """
    shown = law.as_seen(outcomes)
    low, high = law.cdf(np.abs(shown))
    came, owners, total = law.until(shown)[1], np.zeros(len(weights), np.intp), float(weights.sum())

    def until(ends: Array, counted: Array) -> Array:
        found = sums_of_scores((low, ends), counted, owners, 1, STEPS)[0]
        return np.append(0.0, found + counted.sum() * LEVELS)

    events, lost = until(high, weights * came), until(low, weights * ~came)
    followed = total - events - lost
    kept = len(weights) * followed[1:] >= _FOLLOWED * total
    end = len(kept) if kept.all() else max(int(kept.argmin()), 1)
    half_lost, came_then = 0.5 * np.diff(lost)[:end], np.diff(events)[:end]
    left = followed[:end] - half_lost
    survival: Any = np.cumprod(1.0 - came_then / left)
    levels = LEVELS[:end]
    passed = -np.diff(np.log1p(-np.append(0.0, levels)))
    spread = np.cumsum(total * passed / (left - 0.5 * came_then))
    return Shares(levels, 1.0 - survival, (1.0 - levels) * (1.0 + spread))


# ------------------------------------------------------------------ risk at a horizon


class ProductLimit(NamedTuple):
    """Kaplan–Meier probability of no event until a time, and the parts of its interval."""

    survival: float
    left: float  #: Rows still followed just after it, which end the estimate.
    at_risk: Array  #: Rows at risk before every single event, in order.
    variance: float  #: Greenwood's variance of the probability.


def kaplan_meier(time: Array, event: Any, horizon: float) -> ProductLimit | None:
    """Return the Kaplan–Meier estimate at a time; None if no row is followed until then.

    If 2 marks an event of another cause, it is Aalen and Johansen's, also as a product: rows with such
    an event stay at risk, except for the share that is censored by then (Geskus 2011).
    """
    early = np.sort(time[(event == 1) & (time <= horizon)])
    ordered = np.sort(time)
    ties = np.arange(len(early)) - np.searchsorted(early, early)
    at_risk = (len(time) - np.searchsorted(ordered, early) - ties).astype(np.float64)  # at each event
    left = len(time) - float(np.searchsorted(ordered, horizon)) - float(np.sum(early == horizon))
    if (event == 2).any():
        order = np.lexsort((event == 0, time))
        lost, at = event[order] == 0, time[order]
        kept = np.append(1.0, np.cumprod(1.0 - lost / np.arange(len(time), 0, -1))) * len(time)
        own = kept[:-1][(event[order] == 1) & (at <= horizon)]  # n Ĝ, rows not censored by then
        at_risk = np.maximum((1.0 - np.cumsum(1.0 / own)) * own + 1.0, 1.0)
        until = np.sum((at < horizon) | ~lost & (at == horizon))
        left = float(kept[until] * (1.0 - np.sum(1.0 / own)))
    if left <= 0.0 and (not len(at_risk) or at_risk[-1] > 1.0):
        return None
    survival = float(np.prod(1.0 - 1.0 / at_risk))
    with np.errstate(divide="ignore"):
        sums = float(np.sum(1.0 / (at_risk * (at_risk - 1.0))))
    return ProductLimit(survival, left, at_risk, survival**2 * sums if survival else 0.0)


def incidence(time: Array, event: Any, horizon: float, weights: Array) -> tuple[float, Array]:
    """Return the Aalen–Johansen risk until a time for weighted rows.

    Also return the influence of every row, (n,): its weight times the derivative of the risk by it.
    """
    order = np.lexsort((event == 0, time))
    w, lost = weights[order], event[order] == 0
    left, whole = np.cumsum(w[::-1])[::-1], float(weights.sum())
    after = np.maximum(left - w, 1e-300)
    kept = np.cumprod(np.append(1.0, np.where(lost, after / np.maximum(left, 1e-300), 1.0)))[:-1]
    each = (event[order] == 1) & (time[order] <= horizon)
    each = np.divide(each, kept * whole, out=np.zeros(len(w)), where=each)
    came = np.cumsum(w * each)
    later = lost * (came[-1] - came) / after  # extra weight of later events after this loss
    found = np.empty(len(w))
    earlier = np.cumsum(later * w / np.maximum(left, 1e-300))
    found[order] = w * (each - came[-1] / whole + later - earlier)
    return float(came[-1]), found


_FEWEST_EVENTS = 5.0  # expected events of a stratum
STRATA = 10
_BLOCK = 10, 0.02  # fewest rows with one prediction that form a stratum, and least share
_GAP = 0.2  # share of a stratum's spread
_FOR_GAPS, _BESIDE = 50, 10  # rows: fewer have such gaps by chance; and rows on either side of one


def parts_of(risk: Array, expected: Array, most: int = STRATA) -> list[Places]:
    """Cut rows by their risk into up to ten parts of equal expected events, five at least."""
    return [rows for rows, _ in _parts(risk, expected, most)]


def strata_of(risk: Array, expected: Array, most: int = STRATA) -> list[Places]:
    """Cut these parts further, so that rows within a stratum are similar.

    A prediction shared by many rows is a stratum by itself, and no stratum spans a wide gap. Both
    depend on the predictions alone.
    """
    least, found = max(_BLOCK[0], _BLOCK[1] * len(risk)), list[Places]()
    for rows, starts in _parts(risk, expected, most):
        block = np.diff(np.append(starts, len(rows))) >= least
        cuts = starts[1:][block[1:] | block[:-1]]
        found += [piece for alike in np.split(rows, cuts) for piece in _at_gaps(risk, alike)]
    return found


def _parts(risk: Array, expected: Array, most: int) -> list[tuple[Places, Places]]:
    """Return parts in the order of risk, and the places in each where a new risk starts."""
    count = int(min(most, expected.sum() // _FEWEST_EVENTS))
    if count < 1:
        return []
    order = np.argsort(risk, kind="stable")
    _, first = np.unique(risk[order], return_index=True)  # equal risks stay together
    starts = np.cumsum(expected[order])[first] - expected[order][first]
    part = np.minimum((starts / max(expected.sum(), 1e-300) * count).astype(np.intp), count - 1)
    cuts = np.flatnonzero(np.diff(part)) + 1
    levels, rows = np.split(first, cuts), np.split(order, first[cuts])
    return [(own, level - level[0]) for own, level in zip(rows, levels, strict=True)]


def _at_gaps(risk: Array, rows: Places) -> list[Places]:
    """Cut rows in the order of risk at gaps wider than a fifth of their spread, the widest first."""
    if len(rows) < _FOR_GAPS:
        return [rows]
    ordered = risk[rows]
    gaps = np.diff(ordered)[_BESIDE - 1 : 1 - _BESIDE]
    at = int(gaps.argmax())
    if gaps[at] <= _GAP * (ordered[-1] - ordered[0]):
        return [rows]
    low, high = np.split(rows, [at + _BESIDE])
    return [*_at_gaps(risk, low), *_at_gaps(risk, high)]


# Standard deviations exceeded by chance in 1% of cases: 4 Φ(−2.807). With 5%, intervals of continuous
# risks would be 2% wider, and would miss as often.
_REACH = 2.807


def follows(time: Array, event: Mask, risk: Array, horizon: float) -> bool:
    """Return whether censoring before a time significantly depends on the risk.

    This is the score test of a Cox model for censoring, with censoring as the event: each censored row
    adds its risk less the mean risk of the rows still followed. The largest |sum| up to any time is
    used, so that high risks that leave early and low ones that leave late do not cancel; it tends to
    the maximum of Brownian motion. Nothing here compares events with predictions: the martingales of
    censoring and of events are orthogonal, so this choice does not favour strata that agree.
    """
    spread = float(np.ptp(risk))
    if spread == 0.0:
        return False
    order = np.lexsort((event == 0, time))  # at ties, events come before censoring
    at, x = time[order], (risk[order] - risk.min()) / spread
    lost = np.flatnonzero((event[order] == 0) & (at < horizon))
    if not len(lost):
        return False
    starts = np.append(0, np.flatnonzero(np.diff(at[lost])) + 1)
    left, count = len(x) - lost[starts], np.diff(np.append(starts, len(lost)))
    mean, square = (np.cumsum((x**k)[::-1])[::-1][lost[starts]] / left for k in (1, 2))
    sums = np.cumsum(np.add.reduceat(x[lost], starts) - count * mean)
    spreads = count * (left - count) / np.maximum(left - 1, 1) * (square - mean**2)
    return bool(np.abs(sums).max() > _REACH * np.sqrt(max(float(spreads.sum()), 0.0)))


@dataclass(frozen=True, eq=False)
class AtHorizon(OneByOne):
    """A statistic of predicted risks at a time, and of the outcomes until then."""

    law: Any
    horizon: float
    risk: Array

    def value(self, labels: Any, workers: Workers = ALONE) -> float:
        """Return the value for outcomes (n,)."""
        return self.of_times(*self.law.until(labels))

    @abstractmethod
    def of_times(self, time: Array, event: Mask) -> float:
        """Return the value from times and events."""


@dataclass(frozen=True, eq=False)
class GNDForm(HasChiSquare, AtHorizon):
    """Greenwood, Nam and D'Agostino's sum."""

    strata: tuple[Places, ...]

    @property
    def chi_square(self) -> ChiSquare:
        """One degree of freedom for every stratum: nothing was fitted to these rows."""
        return ChiSquare(
            len(self.strata),
            caveat="The chi-square law is that of many events in every tenth, and p-values are too "
            "small with fewer: of 200 rows, 14 to 30% of calibrated models are rejected at 5%. "
            f"{Argument('null', 'monte_carlo')}, the default, is right.",
        )

    def law_of(self, labels: Any) -> ChiSquare:
        """Return the law with one degree of freedom for every stratum that adds to the sum."""
        law = self.chi_square
        added = len(self._terms(*self.law.until(labels)))
        if not (left := law.degrees - added):
            return law
        note = (
            f"{left} of {law.degrees} groups add nothing, since no event came there or no row was "
            f"followed until {self.horizon:g}; the chi-square law has {added} degrees of freedom. "
        )
        return replace(law, degrees=added, caveat=note + law.caveat)

    def of_times(self, time: Array, event: Mask) -> float:
        """Return the sum."""
        return float(sum(self._terms(time, event)))

    def _terms(self, time: Array, event: Mask) -> list[float]:
        """Return the terms of the strata whose variance can be estimated."""
        terms = []
        for rows in self.strata:
            found = kaplan_meier(time[rows], event[rows], self.horizon)
            if found is not None and found.variance > 0.0:
                error = 1.0 - found.survival - float(self.risk[rows].mean())
                terms.append(error**2 / found.variance)
        return terms


@options(horizon=_horizon)
class _AtHorizon(Listed):
    horizon: float | None = None

    reported = ("horizon",)

    def _fixed(self, predictions: Rows) -> tuple[Any, float, Array]:
        law: Any = predictions.law
        at = self.horizon or law.horizon
        if at is None:
            own, view = f"caltest.statistics.{type(self).__name__}(horizon=365)", "--lens until:365"
            do = f"give it, as in {Argument(own, shell=view)}"
            raise InputError(f"{self.name!r} looks at one time; {do}.")
        law.check_horizon(float(at))
        if not predictions.are_alike:
            raise InputError(f"{self.name!r} takes no weights; use 'events'.")
        return law, float(at), law.risk(float(at))


class GreenwoodNamDAgostino(_AtHorizon, row="gnd"):
    """Greenwood–Nam–D'Agostino chi-square of risk at a time in tenths: for comparison.

    Σ_k (1 − KM_k − mean risk_k)² / Greenwood's variance, over up to ten groups of similar risk with as
    many expected events each, five at least; a prediction that many rows share is a group by itself.
    With ``null="chi2"`` it has as many degrees of freedom as there are groups with an event and with
    rows that are followed so long, because the others add nothing; one less, as published, is for
    models that were fitted to these rows. That law is rough, because Greenwood's variance rests on few
    events: with 200 rows it rejects 14 to 30% of calibrated models at 5%.

    Parameters
    ----------
    horizon : float, optional
        The time. Default None: that of the predictions, if risk at one time is predicted.

    References
    ----------
    Demler, Paynter, Cook, "Tests of calibration and goodness-of-fit in the survival setting",
    Statistics in Medicine 34 (2015).

    Examples
    --------
    >>> import numpy as np, caltest
    >>> predicted = caltest.predictive.Survival(risk=[0.5] * 40, times=1.0)
    >>> outcomes = np.repeat([0.5, 2.0], 20), np.repeat([1, 0], 20)
    >>> round(caltest.estimate(predicted, outcomes, "gnd"), 9)
    0.0
    """

    def given(self, predictions: Rows) -> GNDForm:
        """Return the form for these predictions."""
        law, at, risk = self._fixed(predictions)
        return GNDForm(law, at, risk, tuple(strata_of(risk, risk)))


_NEAR = 0.05, 0.15  # share of rows on either side: near the ends of the predictions, and elsewhere
_POINTS = 100


@dataclass(frozen=True, eq=False)
class SmoothErrors(AtHorizon):
    """A summary of |predicted − observed risk|, from local Kaplan–Meier estimates.

    The distance from the mean predicted risk of the same rows is smoothed: the mean of a window at an
    end is off its centre, and its observed risk alone would be too close to the middle.
    """

    summary: Callable[[Array], Any]  #: Summary of the errors.

    def of_times(self, time: Array, event: Mask) -> float:
        """Return the summary."""
        predicted, observed = self.curve(time, event)
        return float(self.summary(np.abs(predicted - observed)))

    def curve(self, time: Array, event: Mask) -> tuple[Array, Array]:
        """Return predicted risks at evenly spaced rows, and the observed risk of similar rows."""
        n, sorted_by = len(self.risk), np.lexsort((~event, time))
        places = ((np.arange(_POINTS) + 0.5) * n / _POINTS).astype(np.intp)
        predicted, (least, most) = np.sort(self.risk)[places], (max(k * n, 10.0) for k in _NEAR)

        ranks = scipy.stats.rankdata(self.risk)
        came, risk = event[sorted_by] & (time[sorted_by] <= self.horizon), self.risk[sorted_by]
        ordered, found = ranks[sorted_by], []
        for centre, own in zip(np.sort(ranks)[places], predicted, strict=True):
            half = float(np.clip(min(centre, n - centre), least, most))
            centre = min(max(centre, half), n - half)
            near = np.maximum(1.0 - (np.abs(ordered - centre) / half) ** 2, 0.0)
            left = np.cumsum(near[::-1])[::-1]
            with np.errstate(divide="ignore", invalid="ignore"):
                falls = np.where(came & (near > 0.0), 1.0 - near / left, 1.0)
            found.append(own + 1.0 - float(np.prod(falls)) - float(near @ risk) / left[0])
        return predicted, np.clip(found, 0.0, 1.0)


#: Summaries of distances, by the word in the table.
SUMMARIES: dict[str, Callable[[Array], Any]] = {
    "mean size": np.mean,
    "median size": partial(np.quantile, q=0.5),
    "90% quantile": partial(np.quantile, q=0.9),
}


class _Smooth(_AtHorizon, takes_weights=True):
    def given(self, predictions: Rows) -> SmoothErrors:
        """Return the form for these predictions."""
        return SmoothErrors(*self._fixed(predictions), SUMMARIES[self.how])


class ICI(_Smooth, row="ici"):
    """Integrated calibration index at a time: mean distance of predicted from observed risk.

    The distance at a prediction is between the Kaplan–Meier risk and the mean predicted risk of the 30%
    of rows with the nearest predictions, fewer at both ends, with lower weights for farther rows (Beran
    1981). It only describes: for calibrated predictions it is above 0 by chance, too.

    Parameters
    ----------
    horizon : float, optional
        The time. Default None: that of the predictions, if risk at one time is predicted.

    References
    ----------
    Austin, Harrell, van Klaveren, "Graphical calibration curves and the integrated calibration index
    (ICI) for survival models", Statistics in Medicine 39 (2020).

    Examples
    --------
    >>> import numpy as np, caltest
    >>> predicted = caltest.predictive.Survival(risk=[0.4] * 40, times=1.0)
    >>> outcomes = np.tile([0.5, 2.0], 20), np.tile([1, 0], 20)
    >>> round(caltest.estimate(predicted, outcomes, "ici"), 3)
    0.1
    """


class E50(_Smooth, row="e50"):
    """Median distance of predicted from observed risk at a time, as of :class:`ICI`.

    Examples
    --------
    >>> import numpy as np, caltest
    >>> predicted = caltest.predictive.Survival(risk=[0.4] * 40, times=1.0)
    >>> outcomes = np.tile([0.5, 2.0], 20), np.tile([1, 0], 20)
    >>> round(caltest.estimate(predicted, outcomes, "e50"), 3)
    0.1
    """


class E90(_Smooth, row="e90"):
    """90% quantile of the distance of predicted from observed risk at a time, as of :class:`ICI`.

    Examples
    --------
    >>> import numpy as np, caltest
    >>> predicted = caltest.predictive.Survival(risk=[0.4] * 40, times=1.0)
    >>> outcomes = np.tile([0.5, 2.0], 20), np.tile([1, 0], 20)
    >>> round(caltest.estimate(predicted, outcomes, "e90"), 3)
    0.1
    """
