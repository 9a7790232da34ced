"""Statistics of the order of rows: do errors follow errors?

H0 is that every forecast is the law of the outcome given all earlier outcomes and forecasts, which is
more than calibration. Then the PITs of laws without atoms are independent and uniform, and hits of
equal probability are independent, whatever the forecasts depend on: drawing outcomes is exact. If
probabilities of events vary, they may depend on earlier outcomes, so drawing with fixed ones is wrong.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NoReturn

import numpy as np
import scipy
from scipy.special import betainc, ndtri

from caltest._numbers import counted, figures
from caltest._parallel import ALONE, Workers
from caltest._sums import Array, Places
from caltest.data import Rows
from caltest.exceptions import Argument, InputError
from caltest.forms import Form
from caltest.forms.base import HasNormalLimit, Labels
from caltest.sampling import generator
from caltest.statistics.base import Listed

_ATOM = 1e-6  # smaller probabilities of one place are ignored
_ALIKE = 1e-9  # tolerance for equal probabilities
AS_MANY = "No more hits follow hits than so many must"  #: If their number alone explains it.


@dataclass(frozen=True, eq=False)
class InOrder(Form):
    """A form of rows in an order of their own."""

    rows: Places  #: In order, (n,).


@dataclass(frozen=True, eq=False)
class HitPairs(InOrder):
    """T = Σ over pairs of hits: neighbours have weight 1, or all pairs near^gap."""

    hit: int  #: The class that is a hit.
    chance: float
    near: float

    def of_labels(self, labels: Labels, workers: Workers = ALONE) -> Array:
        """Return the (B,) values for labels (B, n)."""
        hits = (labels[:, self.rows] == self.hit).astype(np.float64)
        before = scipy.signal.lfilter([0.0, self.near or 1.0], [1.0, -self.near], hits, axis=1)
        return np.asarray((hits * before).sum(axis=1))

    def in_words(self, labels: Labels, found: bool) -> str:
        """Describe how many hits follow each other, and whether these are more than in random order."""
        n, count, value = len(labels), int((labels == self.hit).sum()), self.value(labels)
        share = count * max(count - 1, 0) / max(n * (n - 1), 1)  # of all pairs
        so, rng, least = "Hits are not shown to follow hits", generator(0), value * (1.0 - _ALIKE)
        if found:
            as_many = sum(self.value(rng.permutation(labels)) >= least for _ in range(199))
            so = AS_MANY if as_many > 9 else "Hits follow hits"
        what = f"{value:,.0f} came right after another"
        what = f"Σ {self.near}^gap is {figures(value, 3)}" if self.near else what
        mean = figures(share * self.value(np.full(n, self.hit)), 2)
        hits = f"{counted(count, 'hit')} in {counted(n, 'row')}, {figures(n * self.chance, 3)}"
        return f"{so}: {what}, and {mean} in random order ({hits} predicted)."


@dataclass(frozen=True, eq=False)
class EventsAfter(InOrder, HasNormalLimit):
    """Normal score of Σ y_{t−1} y_t, for probabilities that may depend on earlier outcomes."""

    chances: Array  #: Probabilities p, in order, (n,).

    def of_labels(self, labels: Labels, workers: Workers = ALONE) -> NoReturn:
        """Raise: outcomes drawn with fixed probabilities would not depend on each other."""
        text = "chances that vary may depend on earlier outcomes, so that none are drawn; give {null}."
        raise InputError(text, null=Argument("null", "normal"))

    def _counts(self, labels: Labels) -> tuple[int, Array]:
        y = labels[self.rows] == 1
        return int(np.count_nonzero(y[1:] & y[:-1])), self.chances[1:][y[:-1]]

    def value(self, labels: Labels, workers: Workers = ALONE) -> float:
        """Return the value for one label vector."""
        came, p = self._counts(labels)
        tail = 1.0 - float(np.prod(1.0 - p)) if came else 1.0  # probability of at least one
        if came > 1:  # beyond the mean plus one, equal chances have the heaviest tail (Hoeffding)
            tail = float(betainc(came, len(p) - came + 1, p.mean()))
        return float(np.clip(-ndtri(tail), -9.0, 37.0))  # the scores of tails 1 and 1e-300

    def cumulant_generator(self, t: float) -> tuple[float, float, float]:
        """Return the cumulant generating function, with derivatives, of a standard normal variable."""
        return 0.5 * t**2, t, 1.0

    def in_words(self, labels: Labels, found: bool) -> str:
        """Describe how many events followed an event, and how many were predicted."""
        came, p = self._counts(labels)
        followed = f"After {counted(len(p), 'event')} another came {counted(came, 'time')}"
        return f"{followed}, where {figures(float(p.sum()), 3)} were predicted."


@dataclass(frozen=True, eq=False)
class PitLags(InOrder):
    """T = the largest of |z_k(u)|, k = 1 to 5, and of |Σ_k z_k(|u − ½|)|/√5, u = PIT."""

    law: Any

    def _scores(self, outcomes: Labels) -> Array:
        """Return z of PITs at each lag, and of their distances from ½ at all lags, (B, K + 1)."""
        below, at = self.law.cdf(outcomes)
        n, u = len(self.rows), 0.5 * (below + at)[:, self.rows]
        each = np.stack([u, np.abs(u - 0.5)])
        each -= each.mean(axis=2, keepdims=True)
        each /= np.sqrt(np.maximum((each**2).sum(axis=2, keepdims=True), 1e-300))
        lags = range(1, min(6, max(n, 2)))
        z = [(each[..., k:] * each[..., :-k]).sum(axis=2) * n / max(n - k, 1) ** 0.5 for k in lags]
        return np.column_stack([*(own[0] for own in z), sum(own[1] for own in z) / len(z) ** 0.5])

    def of_labels(self, labels: Labels, workers: Workers = ALONE) -> Array:
        """Return the (B,) values for labels (B, n)."""
        return np.asarray(np.abs(self._scores(labels)).max(axis=1))

    def in_words(self, labels: Labels, found: bool) -> str:
        """Describe which PITs are most correlated."""
        z = self._scores(labels[None])[0]
        lag = int(np.abs(z).argmax()) + 1
        what = f"PITs of rows {lag} apart" if lag < len(z) else "|PIT − ½| of rows up to 5 apart"
        return f"Most correlated are {what} (z = {z[lag - 1]:+.2f})."


class OfOrder(Listed):
    """A statistic of the order of rows."""

    @staticmethod
    def in_time(predictions: Rows) -> Places:
        """Return the rows in order, (n,); raise if there is no order, or if two rows share a place."""
        if (order := predictions.order) is None:
            text = "this statistic looks at the order of rows; give {test} an {order}."
            raise InputError(text, test=Argument("caltest.test"), order=Argument("order"))
        rows = np.argsort(order, kind="stable")
        for place in np.flatnonzero(np.diff(order[rows]) == 0)[:1]:
            row = rows[place] if predictions.places is None else predictions.places[rows[place]]
            text = "order is the same in {row} and another; give one series, or several as groups."
            raise InputError(text, row=int(row))
        return rows


class OfHits(OfOrder):
    """A statistic of hits: the rarer of two classes if all have the same probability, else class 1."""

    near = 0.0  #: Factor by which a pair's weight falls with each row in between.

    def given(self, predictions: Rows) -> HitPairs | EventsAfter:
        """Return the form for these probabilities and this order."""
        p, rows = self.probability(predictions), self.in_time(predictions)
        if np.ptp(p) <= _ALIKE:
            hit = int(p.mean() <= 0.5)
            return HitPairs(rows, hit, float(p[0] if hit else 1.0 - p[0]), self.near)
        if self.near:
            raise InputError(f"{self.name!r} is of hits of one chance, and these vary; use 'runs'.")
        return EventsAfter(rows, p[rows])


class Runs(OfHits, row="runs", takes_weights=False):
    """Number of hits that follow a hit: do hits cluster?

    A hit is an event, or an outcome beyond a predicted quantile (an equal one is not a hit).
    Distributions need a lens such as "quantile:0.01", through which a hit is the rarer of both classes;
    without one, quantile forecasts use their outermost level, the lower of two. The p-value is exact,
    because hits of equal probability are independent if forecasts used all earlier outcomes. Too many
    hits raise the number too: the result reports whether it is more than in random order.

    For events whose probabilities vary, the value is the normal score of Σ y_{t−1} y_t, the number of
    events that follow one: from the probability of so many or more among independent events that all
    have the mean probability, which makes large numbers most probable. It is about right, and
    conservative; nothing is simulated, because probabilities may depend on earlier outcomes.

    Notes
    -----
    The hypothesis is more than calibration: each forecast is right given *all* earlier outcomes and
    forecasts. The test finds a calibrated model that neglects yesterday's outcome.

    References
    ----------
    Christoffersen, "Evaluating interval forecasts", International Economic Review 39 (1998).

    Examples
    --------
    >>> import numpy as np, caltest
    >>> at_risk = caltest.predictive.Quantiles([0.05], np.full((100, 1), -1.6))
    >>> returns = np.where(np.arange(100) // 5 % 10, 0.1, -2.0)
    >>> caltest.test(at_risk, returns, "runs", order=True, rng=0).statistic
    8.0
    """


class Decay(OfHits, row="decay", takes_weights=False):
    """Σ .9^gap over all pairs of hits, a gap being how many rows the second comes after the first.

    Like "runs" it is about hits, and exact; it finds hits that are close together, but not consecutive.
    Refused for events whose probabilities vary.

    Examples
    --------
    >>> import numpy as np, caltest
    >>> at_risk = caltest.predictive.Quantiles([0.05], np.full((100, 1), -1.6))
    >>> returns = np.where(np.isin(np.arange(100), range(40, 60, 2)), -2.0, 0.1)
    >>> found = caltest.test(at_risk, returns, "decay", order=True, rng=0)
    >>> found.pvalue, found.order[:16]
    (0.001, 'Hits follow hits')
    """

    near = 0.9


class Autocorrelation(OfOrder, row="autocorrelation", takes_weights=False):
    """Largest standardised autocorrelation: of PITs 1 to 5 rows apart, and of |PIT − ½| over all five.

    The first finds means that lag behind, the second spreads that lag ("volatility clusters"). Both use
    deviations from the sample mean, so PITs that are wrong on average do not raise them. Exact for
    distributions without atoms, and members without ties, if forecasts used all earlier outcomes.

    Raises
    ------
    InputError
        If distributions have atoms, as those of counts do, or if vectors are predicted.

    References
    ----------
    Diebold, Gunther, Tay, "Evaluating density forecasts", International Economic Review 39 (1998).

    Examples
    --------
    >>> import numpy as np, caltest
    >>> walk = np.cumsum(np.random.default_rng(0).normal(size=200))
    >>> predicted = caltest.predictive.Normal(np.append(0.0, 0.5 * walk[:-1]), sd=1.0)
    >>> caltest.test(predicted, walk, "autocorrelation", order=True, rng=0).pvalue
    0.001
    """

    def given(self, predictions: Rows) -> PitLags:
        """Return the form for these predictions, and the order."""
        rows, law = self.in_time(predictions), predictions.law
        sampler: Any = law.sampler(0)
        below, at = law.cdf(sampler.draw(0, sampler.block))  # type: ignore[attr-defined]
        if (at - below).max() > _ATOM and np.ptp(at - below) > _ALIKE:
            found = "the distributions have atoms, so that their PITs are not alike in all rows"
            raise InputError(f"{found}; use 'runs' through a lens, such as 'quantile:0.95'.")
        return PitLags(rows, law)
