"""The law of a sum of independent whole numbers, and its tail however far out."""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy import fft
from scipy.optimize import brentq

Array: TypeAlias = NDArray[np.float64]

_STEEPEST = 1024.0  # tilt: beyond, the most that is possible is all that counts
_NEAR = 1e-6  # of a tilt: any will do, those near the best are the most accurate


def law_of_sum(masses: Array) -> Array:
    """Return P(S = s) of the sum of N independent numbers: the product of their polynomials, by halves.

    Errors are absolute, some 1e-15.

    Parameters
    ----------
    masses
        (N, K + 1) the law of each number, on 0..K.

    Returns
    -------
    ndarray of shape (N K + 1,)
        The law of their sum.

    Examples
    --------
    >>> law_of_sum(np.full((2, 2), 0.5)).tolist()
    [0.25, 0.5, 0.25]
    """
    count, most = len(masses), masses.shape[1] - 1
    factors = np.zeros((2 ** int(count - 1).bit_length(), most + 1))
    factors[:, 0] = 1.0
    factors[:count] = masses
    while len(factors) > 1:
        width = 2 * factors.shape[1] - 1
        length = fft.next_fast_len(width, real=True)
        product = fft.rfft(factors[::2], length) * fft.rfft(factors[1::2], length)
        factors = fft.irfft(product, length)[:, :width]
    law = np.clip(factors[0, : count * most + 1], 0.0, None)
    return np.asarray(law / law.sum())


def tail_of_sum(masses: Array, least: int) -> float:
    """Return P(S ≥ least), with a relative error that stays small far into the tail.

    Let S have the law P, and P_t(s) = P(s) exp(t s − K(t)). Then, for any t ≥ 0,

        P(S ≥ x) = exp(K(t) − t x) Σ_{s ≥ x} exp(−t (s − x)) P_t(S = s),

    which is an identity, not an approximation. With the mean of P_t near x the sum begins where P_t is
    largest: the absolute error of `law_of_sum` becomes a relative one of some 1e-15 standard deviations
    of S (below 1e-10 with a million numbers).

    Parameters
    ----------
    masses
        (N, K + 1) the law of each number, on 0..K.
    least
        Where the tail begins.

    Examples
    --------
    >>> masses = np.full((400, 2), 0.5)
    >>> round(tail_of_sum(masses, 400) / 0.5**400, 9)  # all of them
    1.0
    """
    steps = np.arange(masses.shape[1])
    most = int(np.where(masses > 0.0, steps, 0).max(axis=1).sum())
    if least <= 0:
        return 1.0
    if least > most:
        return 0.0
    with np.errstate(divide="ignore"):
        logs = np.log(masses)
    tilt = _tilt(logs, steps, min(float(least), most - 0.5))
    tilted, exponent = _tilted(logs, steps, tilt)
    law = law_of_sum(tilted)[least:]
    total = float(law @ np.exp(-tilt * np.arange(len(law))))
    return min(1.0, float(np.exp(exponent - tilt * least)) * total)


def _tilted(logs: Array, steps: NDArray[np.intp], tilt: float) -> tuple[Array, float]:
    """Return the tilted law of every number, and K(t)."""
    exponents = logs + tilt * steps
    highest = exponents.max(axis=1, keepdims=True)
    tilted = np.exp(exponents - highest)
    totals = tilted.sum(axis=1, keepdims=True)
    return tilted / totals, float(np.sum(highest + np.log(totals)))


def _tilt(logs: Array, steps: NDArray[np.intp], mean: float) -> float:
    """Return about the t for which the tilted mean of the sum is ``mean``; 0 if that is below 0."""

    def missing(tilt: float) -> float:
        return mean - float((_tilted(logs, steps, tilt)[0] @ steps).sum())

    if missing(0.0) <= 0.0:
        return 0.0
    high = 1.0
    while missing(high) > 0.0 and high < _STEEPEST:
        high *= 2.0
    if high >= _STEEPEST:
        return high
    return float(brentq(missing, 0.0, high, xtol=_NEAR, rtol=_NEAR))
