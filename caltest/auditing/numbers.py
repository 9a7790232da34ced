"""What an audit of predicted distributions of numbers says besides: in units, and level by level."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy.special import stdtrit
from scipy.stats import binom

from caltest.auditing.sizes import Design
from caltest.data import Rows
from caltest.exceptions import InputError
from caltest.laws import Predictive

Array: TypeAlias = NDArray[np.float64]

_STATED = 0.95  # probability of the interval that is widened


@dataclass(frozen=True)
class InUnits:
    """Errors in units of the outcome: estimates, which prove nothing.

    Attributes
    ----------
    rows
        How many rows they are of.
    predicted, observed
        Mean predicted mean, and mean outcome; None where distributions state no mean.
    low, high
        About where the mean error lies, predicted less observed: a t interval of its own, with the
        audit's confidence.
    factor
        By what the distance of the ends of 95% intervals from the median would have to be multiplied
        for them to contain 95% of these outcomes; None where there is no such number, and of quantile
        forecasts.
    factor_low, factor_high
        Its interval from order statistics, with the audit's confidence; None where rows have weights or
        come in clusters.
    """

    rows: int
    predicted: float | None
    observed: float | None
    low: float | None
    high: float | None
    factor: float | None
    factor_low: float | None
    factor_high: float | None

    @classmethod
    def of(cls, rows: Rows, outcomes: Array, design: Design, level: float) -> InUnits:
        """Estimate what correction some rows would need."""
        law: Any = rows.law
        predicted = observed = low = high = None
        with suppress(InputError):  # distributions need not state a mean
            (mean, _), w = law.mean_and_variance(), rows.weights
            predicted, observed = float(w @ mean / w.sum()), float(w @ outcomes / w.sum())
            error = design.stretch * (predicted - observed)
            predicted = observed + error
            sums = design.sums(w * (design.stretch * (mean - outcomes) - error))
            k = len(sums)
            half = float("inf")
            if k > 1:
                spread = (k / (k - 1.0) * float(sums @ sums)) ** 0.5 / float(w.sum())
                half = float(stdtrit(k - 1, 1.0 - level / 2)) * spread
            low, high = error - half, error + half
        widening = _widening(law, outcomes, design.plain, level)
        return cls(rows.n_samples, predicted, observed, low, high, *widening)


def _widening(
    law: Predictive, outcomes: Array, plain: bool, level: float
) -> tuple[float | None, float | None, float | None]:
    """Return by what the ends of intervals have to move away from the median, with an interval."""
    # Of quantile forecasts outcomes are known as cells, and few members have no such quantiles.
    if law.levels is not None or (1.0 - _STATED) * getattr(law, "size", np.inf) < 4.0:
        return None, None, None
    n = law.n_samples
    low, middle, high = (law.quantile(np.full(n, tau)) for tau in (0.025, 0.5, 0.975))
    over = outcomes - middle
    room = np.where(over > 0.0, high - middle, low - middle)
    with np.errstate(divide="ignore", invalid="ignore"):
        times = np.sort(np.where(over == 0.0, 0.0, over / room))
    ranks = np.ceil(_STATED * n), binom.ppf(level / 2, n, _STATED), 1 + binom.isf(level / 2, n, _STATED)
    factor, *ends = (float(times[int(min(max(rank, 1), n)) - 1]) for rank in ranks)
    if not np.isfinite(factor):
        return None, None, None
    return factor, *(ends if plain else (None, None))
