"""Statistics of point forecasts, from errors V(x, y) with mean 0 under H0; and bets against H0.

No law of outcomes is stated, so none can be drawn. Two methods remain. *Signs*: the errors of every
row, or cluster, get random signs; this is right for many rows, and exact if errors are symmetric.
*Bets*: if V cannot be below a, Π (1 + λ (V_i − m)) has mean 1 at most for every λ ≤ 1 / (m − a), where
m is the mean of the V_i, even if rows differ: an arithmetic mean is no smaller than a geometric one.
The mean over a fixed grid of λ is evaluated once, at the end; it exceeds 1/α with probability α at most
(Markov), in samples of any size.
"""

# ruff: noqa: D102 -- a method that overrides another is documented where it is first defined.

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any, Literal

import numpy as np
import scipy
from scipy.special import logsumexp

from caltest._parallel import ALONE, Workers
from caltest._sums import Array, Places, blocks
from caltest.clusters import Clusters
from caltest.data import Rows
from caltest.forms.base import ROUNDING, Labels
from caltest.forms.features import RidgeForm, hat_features
from caltest.forms.signs import HasSigns, Signed, signed_sums
from caltest.laws import Point
from caltest.statistics.base import Listed

_STEPS = 200  # steps along the forecasts at which errors are summed
_BETS = 20  # steps, of these, at which bets are made
_NO_ROOM = 1e-300  # smallest room to lose; with none, any other outcome is infinite evidence
_USUAL = 3.0  # standard errors of a mean that the smallest λ of full weight is best for

# ------------------------------------------------------------------ bets


@lru_cache(maxsize=64)
def bets_of(count: float) -> tuple[Array, Array]:
    """Return a grid of λ, relative to the largest, and their weights.

    A share of 3/√n is best if gains can be as large as losses. For rare events, and amounts with few
    large ones, gains can be larger: the grid goes on to where two in n rows carry everything, with
    falling weights.
    """
    steps = np.arange(max(np.ceil(np.log2(count / 2.0)), 0.0) + 1.0)
    beyond = (steps - max(np.log2(count**0.5 / _USUAL), 0.0)).clip(min=0.0)
    weights = (1.0 + beyond) ** -1.5
    return 2.0**-steps, weights / weights.sum()


def mixed(logs: Array, weights: Any = None) -> float:
    """Return the logarithm of a mean, weighted or not, of numbers given by their logarithms."""
    if not np.isfinite(most := float(logs.max())):
        return most
    each = np.exp(logs - most)
    return most + float(np.log(each.mean() if weights is None else weights @ each))


_TERMS = np.arange(1.0, 23.0)  # terms of the series of log(1 + x)
_NEAR = 0.125  # bound of |x| up to which these terms are enough, for any number of rows
_STAYING = 2**15  # errors that stay in the cache while their powers are added up
_NOTHING = 45.0  # logarithm of the ratio to the rest at which a term is negligible


@dataclass(frozen=True, eq=False)
class Bets:
    """Bets on independent clusters: sums (G,), and their weights, (G,)."""

    sums: Array
    counts: Array

    @cached_property
    def _series(self) -> tuple[float, float, Array]:
        """Return the mean, the largest distance from it, and Σ ((s − s̄) / far)^k / k times 1, −1, ….

        The distance is infinite if weights differ, as the series is then of no use.
        """
        middle, added = float(self.sums.mean()), np.zeros(len(_TERMS))
        far = max(float(self.sums.max()) - middle, middle - float(self.sums.min()))
        if np.ptp(self.counts) > 0.0:
            return middle, np.inf, added
        for rows in blocks(len(self.sums), _STAYING):
            apart = (self.sums[rows] - middle) / (far or 1.0)
            power = np.ones(len(apart))
            for k in range(len(added)):
                power *= apart
                added[k] += power.sum()
        return middle, far, added * (-1.0) ** (_TERMS - 1.0) / _TERMS

    def log_wealth(self, room: float, mean: float = 0.0, sign: int = 1, times: float = 1.0) -> float:
        """Return the logarithm of the mean over λ of Π (1 + λ g), g = ±s − c m, each above −room.

        ``times`` repeats every cluster so many times. log Π is concave in λ, which shows from which λ
        on it is negligible; if all λ g are small, the series is used.
        """
        if not room > 0.0:  # nothing can be lost
            return np.inf if (sign * self.sums > self.counts * mean).any() else 0.0
        if not np.isfinite(room):
            return -np.inf
        shares, weights = bets_of(len(self.sums) * times)
        nothing = _NOTHING / times
        (middle, far, added), logs = self._series, np.full(len(shares), -np.inf)
        with np.errstate(divide="ignore", invalid="ignore"):
            lost = shares * (self.counts[0] * mean - sign * middle) / room
            tilts = sign * far * shares / room / (1.0 - lost)
            first = int(np.count_nonzero(~(np.abs(tilts) <= _NEAR)))
            powers = (np.ones((len(added), 1)) * tilts[first:]).cumprod(axis=0)
            logs[first:] = len(self.sums) * np.log1p(-lost[first:]) + added @ powers
            if first == len(shares) > 2:  # the largest may dominate
                one, two = logs[:2] = [self._at(share, room, mean, sign) for share in shares[:2]]
                first = 0 if one > two and two - 0.5 * (one - two) < one - nothing else first
            for k in range(first - 1, -1, -1):
                one, two = logs[k + 1 : k + 3] if k + 2 < len(shares) else (np.inf, np.inf)
                if one < two and one + 2.0 * (one - two) < logs.max() - nothing:
                    logs[: k + 1] = -np.inf
                    break
                logs[k] = self._at(shares[k], room, mean, sign)
        return mixed(times * logs, weights)

    def _at(self, share: float, room: float, mean: float, sign: int) -> float:
        gains = share * ((sign * self.sums - self.counts * mean) / room)
        return float(np.log1p(gains.clip(min=-1.0)).sum())

    def least_mean(self, least: float, level: float, sign: int = 1, times: float = 1.0) -> float:
        """Return a lower limit of ±Σ E sums / Σ counts, wrong with probability ``level`` at most.

        Each of the sums is at least ``least`` times its weight.
        """
        estimate, most = sign * float(self.sums.sum() / self.counts.sum()), float(self.counts.max())
        scale = max(estimate - least, 0.0)
        if not np.isfinite(least) or scale == 0.0:
            return least

        def against(mean: float) -> float:
            return self.log_wealth(most * (mean - least), mean, sign, times) + float(np.log(level))

        near = least + 1e-9 * scale
        if against(near) <= 0.0:
            return least
        return float(scipy.optimize.brentq(against, near, estimate, xtol=1e-7 * scale, rtol=1e-12))


# ------------------------------------------------------------------ forms

Kind = Literal["mean", "path", "slope"]


@dataclass(frozen=True, eq=False)
class ErrorForm(HasSigns):
    """T of sums Σ w h V, with directions h that depend on forecasts alone.

    "mean": of all errors; "slope": along the forecast; "path": the largest sum up to any forecast.
    """

    law: Point
    weights: Array
    kind: Kind

    effective, one_by_one = np.inf, True

    @property
    def resolution(self) -> float:
        return ROUNDING * float(np.abs(self.law.values).max() or 1.0)

    @cached_property
    def direction(self) -> Array:
        """Factor of an error: for the slope, the distance of the forecast from their mean; else 1."""
        if self.kind != "slope":
            return np.ones(len(self.weights))
        return self._apart / (np.abs(self._apart).max() or 1.0)

    @cached_property
    def _apart(self) -> Array:
        return self.law.values - float(self.weights @ self.law.values / self.weights.sum())

    @cached_property
    def steps(self) -> Places:
        """Step of the forecasts that a row is in, (n,), from the lowest on; ties stay together."""
        ranks = np.searchsorted(np.sort(self.law.values), self.law.values, "right")
        return np.unique(-(-ranks * _STEPS // len(ranks)), return_inverse=True)[1]

    def _sums(self, errors: Array, clusters: Clusters) -> Any:
        """Return the sums of every cluster, (G, K)."""
        each = self.weights * errors * self.direction
        if self.kind == "path":
            return clusters.sums_at(self.steps, each, int(self.steps.max()) + 1)
        return clusters.sums(each[:, None])

    def _finished(self, sums: Array) -> Array:
        if self.kind == "path":
            return np.asarray(np.abs(np.cumsum(sums, axis=1)).max(axis=1) / self.weights.sum())
        if self.kind == "mean":
            return np.asarray(sums[:, 0] / self.weights.sum())
        scale = float(self.weights @ (self._apart * self.direction))
        return sums[:, 0] / scale if scale > 0.0 else 0.0 * sums[:, 0]

    def of_labels(self, labels: Labels, workers: Workers = ALONE) -> Array:
        alone = Clusters.of(np.zeros(len(self.weights), np.intp), self.weights)
        sums = (self._sums(self.law.errors(y), alone) for y in labels)
        return np.concatenate([self._finished(_dense(each)) for each in sums])

    def signed(self, labels: Labels, clusters: Clusters) -> Signed:
        sums = self._sums(self.law.errors(labels), clusters)
        return signed_sums(sums, self._finished, self.kind == "path", self.resolution)

    def wealths(self, outcomes: Array, clusters: Clusters) -> tuple[float, float]:
        """Return log wealth of bets that forecasts are too high, and too low; −∞ if an end is unknown.

        For a path, bets are against both sides at once, and the second is −∞.
        """
        directions = [self.direction]
        if self.kind == "path":
            marks = np.unique(np.linspace(0, self.steps.max(), _BETS).astype(np.intp))
            directions = [1.0 * (self.steps <= mark) for mark in marks]
        each = self.weights * self.law.errors(outcomes)
        found = np.array([self._wealths(h, each, clusters) for h in directions]).T
        if self.kind == "path":
            unknown = np.isneginf(found).any() and not self.law.bounded
            return -np.inf if unknown else mixed(found), -np.inf
        return float(found[0, 0]), float(found[1, 0])

    def _wealths(self, direction: Array, each: Array, clusters: Clusters) -> list[float]:
        sums = clusters.sums(direction * each)
        (least, most), bets, found = self.law.ends, Bets(sums, np.ones(len(sums))), list[float]()
        for sign in (1, -1):
            with np.errstate(invalid="ignore"):
                worst = sign * direction * np.where(sign * direction > 0.0, least, most)
            worst = np.where(direction == 0.0, 0.0, worst) * self.weights
            found.append(bets.log_wealth(float(-clusters.sums(worst).min()), sign=sign))
        return found


def _dense(sums: Any) -> Array:
    return np.asarray(sums.toarray() if hasattr(sums, "toarray") else sums)


def evidence_of(form: Any, outcomes: Array, clusters: Clusters) -> float:
    """Return the evidence against both sides, as a logarithm; for a scan, the mean over slices."""
    if isinstance(form, ErrorForm):
        over, under = form.wealths(outcomes, clusters)
        return over if form.kind == "path" else float(np.logaddexp(over, under) - np.log(2.0))
    return mixed(slice_wealths(form, outcomes))


def slice_wealths(form: Any, outcomes: Array) -> Array:
    """Return the evidence of bets on every slice of independent rows, (K,), for the tested sides."""
    (least, most), w = form.law.ends, form.weights
    errors, logs = w * form.law.errors(outcomes), list[Array]()
    shares, weights = bets_of(len(w))
    for sign, room in ((1, -(w * least).min()), (-1, (w * most).max())):
        if form.side in (0, -sign):  # errors above 0 mean that outcomes are too rare
            bets = np.log1p(0.5 * shares[:, None] * sign * errors / max(room, _NO_ROOM))
            logs.append(logsumexp(form.cells.sums(bets), axis=0, b=weights[:, None]))
    return np.asarray(logsumexp(logs, axis=0) - np.log(len(logs)))


# ------------------------------------------------------------------ statistics


class _OfPoints(Listed, takes_weights=True):
    """A statistic of errors of point forecasts."""

    kind: Kind

    def given(self, predictions: Rows) -> ErrorForm:
        """Return the form for these forecasts."""
        return ErrorForm(predictions.law, predictions.weights, self.kind)  # type: ignore[arg-type]


class PointBias(_OfPoints, row="point_bias"):
    """Mean error of point forecasts, forecast less outcome: the mean of V, above 0 if too high.

    Examples
    --------
    >>> import caltest
    >>> caltest.estimate(caltest.predictive.Point([3.0, 5.0, 7.0]), [2.0, 5.0, 6.5], "point_bias")
    0.5
    """

    kind = "mean"


class PointCumulative(_OfPoints, row="point_cumulative"):
    """Largest mean of errors up to any forecast: are forecasts right wherever they are equal?

    Insurers call it auto-calibration (Denuit, Charpentier, Trufin 2021).

    Examples
    --------
    >>> import caltest
    >>> predicted = caltest.predictive.Point([1.0, 2.0, 3.0, 4.0])
    >>> caltest.estimate(predicted, [0.0, 2.0, 3.0, 5.0], "point_cumulative")
    0.25
    """

    kind = "path"


class PointSlope(_OfPoints, row="point_slope"):
    """Slope of errors along the forecast: 1 less the slope of outcomes on forecasts.

    Above 0, forecasts lie too far apart (Mincer and Zarnowitz 1969).

    Examples
    --------
    >>> import caltest
    >>> predicted = caltest.predictive.Point([1.0, 2.0, 3.0])
    >>> round(caltest.estimate(predicted, [1.5, 2.0, 2.5], "point_slope"), 3)
    0.5
    """

    kind = "slope"


class PointKernel(Listed, row="point_kernel"):
    """How well kernel ridge regression on the forecast predicts errors, each row left out in turn.

    Examples
    --------
    >>> import numpy as np, caltest
    >>> x = np.linspace(0.0, 1.0, 300)
    >>> y = x + np.sin(12.0 * x) + np.random.default_rng(0).normal(size=300)
    >>> caltest.test(caltest.predictive.Point(x), y, "point_kernel", rng=0).pvalue
    0.001
    """

    def given(self, predictions: Rows) -> RidgeForm:
        """Return the form for these forecasts and the learner."""
        law: Any = predictions.law
        ordered = np.sort(law.values)  # tied forecasts have their mean rank
        ranks = sum(np.searchsorted(ordered, law.values, side) for side in ("left", "right")) / 2.0
        columns = ((ranks - ranks.mean()) / (ranks.std() or 1.0))[:, None]
        usual = Listed.of_name["point_bias"]().given(predictions)
        return RidgeForm.of(law, predictions.weights, usual, hat_features(columns, 1))
