"""Intervals of events and of risk at a time, of which some rows are censored: about right.

The number of events is taken as Poisson's (Garwood 1936), though the number expected of what was seen
is random as well. Risk is Kaplan and Meier's within strata of similar predicted risk, with beta-product
limits (Fay, Brittain, Proschan 2013), averaged; limits of the average are put together from those of
the strata (MOVER; Zou and Donner 2008).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import betaincinv, gammainccinv, gammaincinv

from caltest._sums import Array
from caltest.statistics.times import Product, kaplan_meier, strata_of


class Sizing(NamedTuple):
    """An estimate, and its limits."""

    estimate: float
    low: float
    high: float


def events_bounds(events: float, level: float) -> tuple[float, float]:
    """Return limits of the mean of a Poisson number, each missed with ``level`` at most.

    Examples
    --------
    >>> low, high = events_bounds(5.0, 0.025)
    >>> round(low, 3), round(high, 3)
    (1.623, 11.668)
    """
    low = float(gammaincinv(events, level)) if events else 0.0
    return low, float(gammainccinv(events + 1.0, level))


def product_bounds(found: Product, level: float) -> tuple[float, float]:
    """Return beta-product limits of a chance of no event, each missed with about ``level``.

    A product of Beta(Y, 1) over single events with Y rows at risk, and of one more for the lower limit,
    is matched by a beta law of the same mean and variance. Without censoring these are Clopper and
    Pearson's limits.

    Examples
    --------
    >>> import numpy as np
    >>> time, event = np.arange(1.0, 11.0), np.arange(10) < 3
    >>> low, high = product_bounds(kaplan_meier(time, event, 3.0), 0.025)
    >>> round(low, 3), round(high, 3)  # 7 of 10
    (0.348, 0.933)
    """
    low = _quantile(np.append(found.at_risk, found.left), level) if found.left else 0.0
    return low, 1.0 if not len(found.at_risk) else _quantile(found.at_risk, 1.0 - level)


def _quantile(counts: Array, level: float) -> float:
    first, second = float(np.prod(counts / (counts + 1.0))), float(np.prod(counts / (counts + 2.0)))
    scale = (first - second) / max(second - first**2, 1e-300)
    return float(betaincinv(first * scale, (1.0 - first) * scale, level))


def risk_bounds(
    time: Array,
    event: NDArray[np.bool_],
    risk: Array,
    expected: Array,
    horizon: float,
    level: float,
    fewest: int = 1,
) -> Sizing | None:
    """Return the risk at a time, averaged over strata of similar predicted risk, with its limits.

    There are ten strata, or fewer with five expected events each, by the predictions alone; None with
    less than the ``fewest``. In a stratum of which no row was followed until that time the risk may be
    anything between 0 and 1; in the estimate it stands as predicted.
    """
    strata = strata_of(risk, expected)
    if len(strata) < fewest:
        return None
    mean, missing, squares = 0.0, np.zeros(2), np.zeros(2)
    for rows in strata:
        share, found = len(rows) / len(risk), kaplan_meier(time[rows], event[rows], horizon)
        own = float(risk[rows].mean()) if found is None else 1.0 - found.survival
        mean += share * own
        if found is None:
            missing += share * own, share * (1.0 - own)
        else:
            least, most = product_bounds(found, level)
            squares += (share * (own - 1.0 + most)) ** 2, (share * (1.0 - least - own)) ** 2
    low, high = missing + np.sqrt(squares)
    return Sizing(mean, max(mean - float(low), 0.0), min(mean + float(high), 1.0))


def scaled_risk(risk: Array, weights: Array, ratio: float) -> float:
    """Return the mean risk if all hazards were so many times as large."""
    with np.errstate(divide="ignore"):
        return float(weights @ -np.expm1(ratio * np.log1p(-risk)) / weights.sum())
