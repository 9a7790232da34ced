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
from caltest.statistics.times import STRATA, Product, kaplan_meier, strata_of


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

    There are ten strata, with five expected events each; fewer where they are not so many, or all rows
    of a stratum end before that time. None with less than the ``fewest``.
    """
    for count in range(STRATA, fewest - 1, -1):
        strata = strata_of(risk, expected, count)
        each = [kaplan_meier(time[rows], event[rows], horizon) for rows in strata]
        if len(strata) < fewest or None in each:
            continue
        shares = np.array([len(rows) for rows in strata]) / len(risk)
        found = [(1.0 - one.survival, product_bounds(one, level)) for one in each if one is not None]
        own, (least, most) = np.array([r for r, _ in found]), np.array([ends for _, ends in found]).T
        mean = float(shares @ own)
        low, high = (
            float(np.linalg.norm(shares * far)) for far in (own - (1.0 - most), 1.0 - least - own)
        )
        return Sizing(mean, max(mean - low, 0.0), min(mean + high, 1.0))
    return None


def scaled_risk(risk: Array, weights: Array, ratio: float) -> float:
    """Return the mean risk if all hazards were so many times as large."""
    with np.errstate(divide="ignore"):
        return float(weights @ -np.expm1(ratio * np.log1p(-risk)) / weights.sum())
