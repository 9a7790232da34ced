"""Tail probabilities from a cumulant generating function (Barndorff-Nielsen's r*)."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from scipy.special import ndtr

#: t -> K(t), K'(t), K''(t)
CumulantGenerator = Callable[[float], tuple[float, float, float]]

_ROUNDS = 100
# Φ(−w − c) with c = log(u/w)/w is trusted for |c| up to this: in a distribution of few atoms, or at
# the end of any, c is large and the formula means nothing. Chernoff's bound is valid there.
_TRUSTED = 0.5


def tail(cumulants: CumulantGenerator, x: float, limit: float = np.inf) -> float:
    """Return P(T ≥ x), with a relative error that stays small far into the tail.

    Parameters
    ----------
    cumulants
        K and its first two derivatives, finite at least for |t| < ``limit``.
    x
        Where the tail starts.
    limit
        End of the interval of t in which K is finite, on the side of the tail.

    Notes
    -----
    With K'(t) = x, w = sign(t) √(2(tx − K(t))) and u = t √K''(t), the tail is
    Φ(−w − log(u/w)/w): Barndorff-Nielsen, "Inference on full or partial parameters based on the
    standardized signed log likelihood ratio", Biometrika 73 (1986). Where that formula cannot be
    trusted, or x lies at or beyond the end of the distribution, so that no such t exists, Chernoff's
    bound exp(K(t) − tx) is returned.

    Examples
    --------
    >>> standard_normal = lambda t: (t * t / 2, t, 1.0)
    >>> round(tail(standard_normal, 1.959964), 6)
    0.025
    """
    if np.isinf(x):
        return float(np.finfo(float).tiny) if x > 0 else 1.0
    _, mean, variance = cumulants(0.0)
    if variance <= 0.0:
        return 1.0 if x <= mean else float(np.finfo(float).tiny)
    scale = float(np.sqrt(variance))
    z = (x - mean) / scale
    if abs(z) < 1e-3:
        correction = shape(cumulants)[0] / 6.0
        return float(ndtr(-z - correction)) if abs(correction) < _TRUSTED else 1.0
    t = _solve(cumulants, x, z / scale, scale, limit)
    k, slope, curvature = cumulants(t)
    exponent = min(0.0, k - t * x)
    chernoff = float(np.exp(exponent)) if z > 0 else 1.0
    if not (abs(slope - x) <= 1e-6 * scale and curvature > 0.0 and exponent < 0.0):
        return chernoff
    w = float(np.sign(t) * np.sqrt(-2.0 * exponent))
    u = t * float(np.sqrt(curvature))
    correction = float(np.log(u / w) / w)
    return float(ndtr(-w - correction)) if abs(correction) < _TRUSTED else chernoff


def shape(cumulants: CumulantGenerator) -> tuple[float, float]:
    """Return skewness and excess kurtosis, by central differences of K''; infinite for a constant."""
    variance = cumulants(0.0)[2]
    if variance <= 0.0:
        return np.inf, np.inf
    step = 0.01  # in standard deviations of t
    above = cumulants(step / float(np.sqrt(variance)))[2] / variance
    below = cumulants(-step / float(np.sqrt(variance)))[2] / variance
    return float((above - below) / (2.0 * step)), float((above + below - 2.0) / step**2)


def nearly_normal(cumulants: CumulantGenerator, within: float) -> bool:
    """Say whether skewness and excess kurtosis are small: then many outcomes count."""
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        return all(abs(value) <= within for value in shape(cumulants))


def _solve(cumulants: CumulantGenerator, x: float, start: float, scale: float, limit: float) -> float:
    """Solve K'(t) = x by Newton's method, kept inside a shrinking bracket."""
    low, high = (0.0, limit) if start > 0 else (-np.inf, 0.0)
    t = min(start, 0.9 * limit)
    for _ in range(_ROUNDS):
        k, slope, curvature = cumulants(t)
        if not np.isfinite([k, slope, curvature]).all():  # too far out
            low, high = (low, t) if t > 0 else (t, high)
            t = 0.5 * t if np.isinf(low) or np.isinf(high) else 0.5 * (low + high)
            continue
        if abs(slope - x) <= 1e-7 * scale or high - low <= 1e-12 * abs(t):
            break
        low, high = (t, high) if slope < x else (low, t)
        step = t - (slope - x) / curvature if curvature > 0 else np.nan
        if low < step < high:
            t = step if abs(step) < 4 * abs(t) else 4 * t
        elif np.isinf(low) or np.isinf(high):
            t *= 4
        else:
            t = 0.5 * (low + high)
    return float(t)
