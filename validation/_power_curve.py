"""A curve of power against the number of rows, and the number of rows at which it reaches a power.

The curve is α + s(Φ(−z_α + r·n^γ) − α), with z_α the upper α quantile of the normal distribution: α
without data, α + s(1 − α) in the end. Where s = 1 and γ = ½ it is the power of a one-sided z-test
exactly; quadratic statistics rise faster. A share s below 1 is the power against a model that is wrong
in a share s of its data sets only, and levels off: the power wanted is reached late, or never. Near the
answer, where most data sets are simulated, the form hardly matters.

The likelihood of binomial counts is evaluated on a grid, so that it cannot fail to converge. The
interval of the number of rows, n*, holds what a likelihood ratio does not reject, γ and s at their best
for every n*; it has no upper end if a curve that levels off below the power wanted is not rejected.
What is likely of γ beforehand (log-normal about 0.7) counts as little as a few data sets do, and so
does that s is 1. Counts that lie on no such curve (a power in steps, say) widen the interval.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import gammaincc, ndtr, ndtri, xlogy

from caltest._sums import Array
from caltest.results import Facts

_LIKELY, _SPREAD = np.log(0.7), 0.8  # mean and standard deviation of log γ beforehand
_EXPONENTS = np.geomspace(0.2, 32.0, 24)  # the last is nearly a step
_PENALTY = 1.0  # of s < 1, in units of log-likelihood
# Heights where curves level off: between the power wanted (0) and 1, and as shares of the power wanted.
_ABOVE = np.array([1.0, 0.95, 0.85, 0.7, 0.5, 0.3, 0.1, 0.02])
_BELOW = np.array([0.999, 0.97, 0.93, 0.85, 0.6])
_COARSE, _FINE, _SCALES = 60, 150, 30  # points of the grids of n*, and of where a curve is half-way
# Half the 95% quantile of χ² with one degree of freedom is 1.92. Where data sets lie depends on earlier
# counts, and the curve is no more than close to the truth: with 1.92, 89 to 95 of 100 intervals held.
_DROP = 2.5
_SIMPLE = 1.92  # a curve with s = 1 is the answer unless others are so much more likely
UNLIKELY = 0.01  # p-value of the deviance, below which counts lie on no curve
_WIDEST = 1e3  # times a likelihood ratio: enough for any interval to be open
_BEYOND = 16.0  # the grid goes so many times beyond the numbers of rows simulated
_MOST_Z = 37.0  # beyond, the normal tail is 0
_SHORTEST = 1e-16  # a power is not closer to 1: one data set that is not rejected is enough against it


@dataclass(frozen=True)
class PowerCurve(Facts):
    """The fitted curve.

    Attributes
    ----------
    alpha
        Its height without data: the level.
    highest
        Where it levels off: 1 unless the counts say otherwise.
    middle
        Number of rows with which it is half-way between the two: not a whole number.
    exponent
        How steep it is, γ.
    power
        The power wanted.
    """

    alpha: float
    highest: float
    middle: float
    exponent: float
    power: float

    derived: ClassVar[tuple[str, ...]] = ("n",)

    @property
    def n(self) -> float:
        """Where it reaches the power wanted: not a whole number; infinite if it does not."""
        share = (self.highest - self.alpha) / (1.0 - self.alpha)
        if share * (1.0 - self.alpha) <= self.power - self.alpha:
            return float("inf")
        rise = _rise(self.alpha, self.alpha + (self.power - self.alpha) / share)
        return float(self.middle * (rise / _half(self.alpha)) ** (1.0 / self.exponent))

    def __call__(self, n: ArrayLike) -> Array:
        """Return the power with ``n`` rows."""
        rows = np.asarray(n, dtype=np.float64)
        with np.errstate(over="ignore"):
            height = ndtri(self.alpha) + _half(self.alpha) * (rows / self.middle) ** self.exponent
        share = (self.highest - self.alpha) / (1.0 - self.alpha)
        return np.asarray(self.alpha + share * (ndtr(height) - self.alpha))


class Fit(NamedTuple):
    """The best curve, and the 95% interval of n*; an end may be infinite or 0.

    ``misfit`` is the p-value of the deviance: small if the counts lie on no such curve.
    """

    curve: PowerCurve
    low: float
    high: float
    misfit: float


def _rise(alpha: float, power: Any) -> Any:
    return ndtri(power) - ndtri(alpha)


def _half(alpha: float) -> float:
    return float(_rise(alpha, 0.5 * (1.0 + alpha)))


def fit(
    n: Sequence[int], rejections: Sequence[int], of: Sequence[int], alpha: float, power: float
) -> Fit:
    """Fit the curve to ``rejections`` among ``of`` data sets of ``n`` rows.

    Examples
    --------
    >>> found = fit([100, 200, 400, 800], [40, 64, 91, 100], [100] * 4, alpha=0.05, power=0.8)
    >>> round(found.curve.n), round(found.curve(200).item(), 2)
    (285, 0.64)
    """
    rows, place = np.unique(np.asarray(n, dtype=np.float64), return_inverse=True)
    counts = np.array([rows, np.bincount(place, rejections), np.bincount(place, of)])
    likelihoods = partial(_log_likelihoods, counts, alpha)
    # With the share ``least`` a curve levels off at the power wanted; with 1, the first, it rises to 1.
    least = (power - alpha) / (1.0 - alpha)
    shares = np.where(_ABOVE == 1.0, 1.0, least + (1.0 - least) * _ABOVE)
    rises = _rise(alpha, alpha + (power - alpha) / shares)
    grid = np.geomspace(rows[0] / _BEYOND, rows[-1] * _BEYOND, _COARSE)
    coarse = likelihoods(grid, _EXPONENTS, shares, rises)
    steep = coarse.max(axis=(0, 2))
    exponents = _EXPONENTS[steep >= steep.max() - 3.0 * _DROP]
    profile = coarse.max(axis=(1, 2))
    kept = np.flatnonzero(profile >= profile.max() - 2.0 * _DROP)
    first, last = max(kept[0] - 1, 0), min(kept[-1] + 1, _COARSE - 1)
    fine = np.geomspace(grid[first], grid[last], _FINE)
    found = likelihoods(fine, exponents, shares, rises)
    # Of curves that never reach the power, half of the rise is at ``middles``.
    middles, below = np.geomspace(grid[0], grid[-1], _SCALES), least * _BELOW
    flat = likelihoods(middles, _EXPONENTS, below, np.full(len(below), _half(alpha)))
    never = float(flat.max())
    best = max(float(found.max()), never)
    simple = found[:, :, :1].max() >= best - _SIMPLE  # s = 1 is likely enough
    if simple or found.max() >= best:
        likely = found[:, :, :1] if simple else found
        row, column, k = np.unravel_index(likely.argmax(), likely.shape)
        share, exponent = float(shares[k]), float(exponents[column])
        middle = float(fine[row]) * float(_half(alpha) / rises[k]) ** (1.0 / exponent)
    else:
        row, column, k = np.unravel_index(flat.argmax(), flat.shape)
        share, exponent, middle = float(below[k]), float(_EXPONENTS[column]), float(middles[row])
    curve = PowerCurve(alpha, alpha + share * (1.0 - alpha), middle, exponent, power)
    misfit, wider = _misfit(counts, curve)
    inside = np.flatnonzero(found.max(axis=(1, 2)) >= best - _DROP * wider)
    if not len(inside):  # no curve that reaches the power is likely
        return Fit(curve, float(fine[-1]), np.inf, misfit)
    lowest = 0.0 if inside[0] == 0 and first == 0 else float(fine[inside[0]])
    open_end = inside[-1] == _FINE - 1 and last == _COARSE - 1
    highest = np.inf if open_end or never >= best - _DROP * wider else float(fine[inside[-1]])
    return Fit(curve, lowest, highest, misfit)


def _log_likelihoods(
    counts: Array, alpha: float, at: Array, exponents: Array, shares: Array, rises: Array
) -> Array:
    """Return log-likelihoods of curves that have risen by ``rises`` at ``at``, (at, exponents, shares).

    Of counts: rows, rejections and data sets, (3, points).
    """
    n, rejections, of = counts
    with np.errstate(over="ignore"):
        growth = (n / at[:, None, None]) ** exponents[:, None]
    growth = np.minimum(growth[:, :, None, :], 2.0 * _MOST_Z / rises[:, None])
    risen = ndtr(ndtri(alpha) + rises[:, None] * growth)
    power = alpha + shares[:, None] * (risen - alpha)
    short = np.maximum(1.0 - power, _SHORTEST)
    found = np.log(power) @ rejections + np.log(short) @ (of - rejections)
    found -= 0.5 * ((np.log(exponents[:, None]) - _LIKELY) / _SPREAD) ** 2
    return np.asarray(found - np.where(shares < 1.0, _PENALTY, 0.0))


def _misfit(counts: Array, curve: PowerCurve) -> tuple[float, float]:
    """Return the p-value of the deviance, and by how much the counts scatter too much, at least 1.

    The heterogeneity factor of Finney's probit analysis: it widens the interval where the counts lie on
    no curve.
    """
    n, rejections, of = counts
    others, power = of - rejections, curve(n)
    found = xlogy(rejections, power).sum() + xlogy(others, 1.0 - power).sum()
    saturated = xlogy(rejections, rejections / of).sum() + xlogy(others, others / of).sum()
    deviance, degrees = max(2.0 * float(saturated - found), 0.0), max(len(n) - 2, 1)
    pvalue = float(gammaincc(0.5 * degrees, 0.5 * deviance))
    wider = max(deviance / degrees, 1.0) if pvalue < UNLIKELY else 1.0
    return pvalue, min(wider, _WIDEST)
