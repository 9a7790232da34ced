"""The one place that counts exceedances: ties, two sides and the Monte-Carlo error of a p-value."""

from __future__ import annotations

from typing import Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy.special import betaincinv

Alternative: TypeAlias = Literal["greater", "less", "two-sided"]

# Two evaluations of one value may differ in the order of their sums. The worst seen is some 1e-13 of
# the largest value; a wider tolerance can only make a p-value larger.
TIE_TOLERANCE = 1e-10


def exceeds(draws: NDArray[np.float64], observed: float, resolution: float = 0.0) -> NDArray[np.bool_]:
    """Say which draws are at least as large as ``observed``, ties counted for the null.

    Values that differ by no more than ``resolution``, or by rounding, are tied.
    """
    finite = np.abs(draws[np.isfinite(draws)])
    scale = max(float(finite.max(initial=0.0)), abs(observed) if np.isfinite(observed) else 0.0)
    return ~(draws < observed - TIE_TOLERANCE * scale - resolution)  # a NaN counts for the null


def count(
    draws: NDArray[np.float64],
    observed: float,
    alternative: Alternative,
    resolution: float = 0.0,
) -> int:
    """Count the draws at least as extreme as ``observed``; of two sides, the side with fewer.

    Examples
    --------
    >>> count(np.array([1.0, 2.0, 3.0]), 2.0, "greater")
    2
    >>> count(np.array([1.0, 2.0, 3.0]), 0.0, "two-sided")
    0
    """
    if alternative == "greater":
        return int(np.count_nonzero(exceeds(draws, observed, resolution)))
    if alternative == "less":
        return int(np.count_nonzero(exceeds(-draws, -observed, resolution)))
    sides: tuple[Alternative, ...] = ("greater", "less")
    return min(count(draws, observed, side, resolution) for side in sides)


def pvalue(exceedances: int, resamples: int, alternative: Alternative) -> float:
    """Return (1 + exceedances) / (1 + resamples), doubled for two sides, at most 1."""
    one_sided = (1 + exceedances) / (1 + resamples)
    return min(1.0, 2.0 * one_sided) if alternative == "two-sided" else one_sided


def interval(
    exceedances: int, resamples: int, alternative: Alternative, confidence: float = 0.95
) -> tuple[float, float]:
    """Clopper–Pearson interval of the p-value that infinitely many resamples would give."""
    x, rest, beyond = exceedances, resamples - exceedances, (1.0 - confidence) / 2.0
    low = 0.0 if x == 0 else float(betaincinv(x, rest + 1, beyond))
    high = 1.0 if rest == 0 else float(betaincinv(x + 1, rest, 1.0 - beyond))
    sides = 2.0 if alternative == "two-sided" else 1.0
    return min(1.0, sides * low), min(1.0, sides * high)


def combine_sides(greater: float, less: float, alternative: Alternative) -> float:
    """Return the p-value of ``alternative`` from the two one-sided ones."""
    if alternative == "greater":
        return greater
    if alternative == "less":
        return less
    return min(1.0, 2.0 * min(greater, less))
