"""Evidence: statistics of any kind on one scale, the negative logarithm of their tails under H0.

Statistics that are ranked together (the largest of several, the smallest of their p-values) must speak
one language. A skewed statistic and a symmetric one that are both three standard deviations out do not
say the same, so mean, standard deviation and skewness are all taken out, by Wilson and Hilferty's
cube root, which takes a gamma variable of that skewness to a nearly normal one.

No validity hangs on this: whatever is computed alike from the observed labels and from the draws can be
ranked among the draws. Only power does.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import log_ndtr

from caltest._tail import TIE_TOLERANCE, Alternative

Array = NDArray[np.float64]

_SYMMETRIC = 1e-6  # less skewness is none
# More says that the statistic hangs on few unlikely labels, where no curve fits; the largest skewness
# of a weighted sum of centred χ²₁ variables is √8.
_MOST_SKEWED = 3.0
# How far towards −2/s, where the cube root is infinitely steep and a gamma variable ends, it is
# followed: its slope in z is 4 there. Beyond, the slope is 1, so that no value seems impossible.
_FOLLOWED = 7.0 / 8.0
_TIED = 1e-9  # evidence of one value, computed twice
_LOG_2 = float(np.log(2.0))


def evidence(z: ArrayLike, skewness: ArrayLike, alternative: Alternative) -> Array:
    """Return −log P(a value at least as extreme as z under H0), approximately.

    Parameters
    ----------
    z
        Standardised statistics; may be infinite.
    skewness
        Their skewness under H0, of a shape that goes with ``z``. More than 3 counts as 3.
    alternative
        Which values are extreme. Of two sides, the smaller tail is doubled.

    Returns
    -------
    ndarray
        It grows with how extreme z is, from 0 on, and is NaN only where ``z`` is.

    References
    ----------
    Wilson and Hilferty, "The distribution of chi-square", PNAS 17 (1931).

    Examples
    --------
    >>> evidence([1.959964, 0.0], 0.0, "two-sided").round(4) + 0.0
    array([2.9957, 0.    ])
    >>> bool(evidence(3.0, 1.0, "greater") < evidence(3.0, 0.0, "greater"))
    True
    """
    normal = _nearly_normal(np.asarray(z, dtype=np.float64), np.asarray(skewness, dtype=np.float64))
    return _of_normal(normal, alternative)


def _of_normal(normal: Array, alternative: Alternative) -> Array:
    if alternative == "greater":
        return np.asarray(-log_ndtr(-normal))
    if alternative == "less":
        return np.asarray(-log_ndtr(normal))
    return np.asarray(-log_ndtr(-np.abs(normal)) - _LOG_2)


def _nearly_normal(z: Array, skewness: Array) -> Array:
    """Return (∛(1 + s z/2) − 1 + s²/36) · 6/s, which grows with z and is z where s is 0."""
    flat = np.abs(skewness) < _SYMMETRIC
    s = np.where(flat, 1.0, np.clip(skewness, -_MOST_SKEWED, _MOST_SKEWED))
    x = 0.5 * s * z
    curve = (np.cbrt(1.0 + np.maximum(x, -_FOLLOWED)) - 1.0 + s * s / 36.0) * (6.0 / s)
    return np.where(flat, z, curve + np.minimum(x + _FOLLOWED, 0.0) * (2.0 / s))


def evidence_of_draws(
    values: ArrayLike, alternatives: Sequence[Alternative], resolutions: ArrayLike = 0.0
) -> Array:
    """Return the evidence of the observed labels and of every draw, each standardised by the others.

    Parameters
    ----------
    values
        (1 + B, H) statistics: the first row of the observed labels, the others of B draws.
    alternatives
        (H,) which values count against H0.
    resolutions
        (H,) how far two evaluations of one value may differ by rounding. Default 0.

    Returns
    -------
    ndarray of shape (1 + B, H)
        Row by row as extreme as the tail that it is in, see :func:`evidence`.

    Notes
    -----
    Mean, standard deviation and skewness are those of all rows but one, the farthest from the median.
    All rows are so treated alike, and what was exchangeable stays exchangeable: ranks among the draws
    are exact. That the farthest row is not part of the standard is what lets an observed value stand
    out by more than √B. Evidence is no more than what a row's rank says, except of the row that no
    other one reaches.

    Rounding counts for the null: the observed value is taken as less extreme by as much as rounding may
    have moved it.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> draws = rng.normal(size=(999, 2)) * [1.0, 100.0]
    >>> found = evidence_of_draws(np.vstack([[5.0, 100.0], draws]), ["greater", "two-sided"])
    >>> (found[0] > found[1:].max(axis=0)).tolist()
    [True, False]
    """
    table = np.atleast_2d(np.asarray(values, dtype=np.float64))
    margins = np.broadcast_to(np.asarray(resolutions, dtype=np.float64), table.shape[1:])
    found = np.empty_like(table)
    for number, alternative in enumerate(alternatives):
        found[:, number] = _column(table[:, number], alternative, float(margins[number]))
    return found


def _column(values: Array, alternative: Alternative, resolution: float) -> Array:
    finite = np.isfinite(values)
    margin = TIE_TOLERANCE * float(np.abs(values[finite]).max(initial=0.0)) + resolution
    mean, deviation, skewness = _standard(values[finite])
    if deviation <= margin:
        found = _of_normal(_beside_a_constant(values - mean, margin), alternative)
        observed = found[:1]
    else:
        normal = _nearly_normal((values - mean) / deviation, np.asarray(skewness))
        found = _of_normal(normal, alternative)
        ends = (values[0] + [-margin, margin] - mean) / deviation
        low, high = _nearly_normal(ends, np.asarray(skewness))
        observed = _of_normal(np.array([_least_extreme(low, high, alternative)]), alternative)
    lowered = _tempered(found, found, finite)
    lowered[:1] = _tempered(observed, found, finite[:1])
    return lowered


def _beside_a_constant(away: Array, margin: float) -> Array:
    """Standardise where only rounding varies: what differs from the constant is infinitely far."""
    normal = np.copysign(np.where(np.abs(away) > margin, np.inf, 0.0), away)
    normal[np.isnan(away)] = np.nan
    return normal


def _tempered(found: Array, rows: Array, finite: NDArray[np.bool_]) -> Array:
    """Lower evidence to what its rank among all rows says, where that says something.

    A row that k ≥ 1 others reach has a tail of k/N by the look of it, of N rows; a curve that says much
    less does not fit (a rare event, say, that happens in a few draws). What differs from a constant
    alone says 1/N.
    """
    total = len(rows)
    ordered = np.sort(rows)  # NaN last: it reaches everything
    others = total - np.searchsorted(ordered, found - _TIED, side="left") - 1
    with np.errstate(divide="ignore"):
        seen = -np.log(others / total)
    seen[(others == 0) & np.isinf(found)] = np.log(total)
    return np.where(finite, np.minimum(found, seen), found)


def _least_extreme(low: float, high: float, alternative: Alternative) -> float:
    """Return the value from ``low`` to ``high`` that counts least against H0.

    Of two sides, it is the one nearest to the middle of the law, which of a skewed one is not its mean.
    """
    if alternative == "two-sided":
        return float(np.clip(0.0, low, high))
    return low if alternative == "greater" else high


def _standard(finite: Array) -> tuple[float, float, float]:
    """Return mean, standard deviation and skewness of all values but the farthest from the median.

    They hang on the set of values only, not on their order: of two that are equally far, the larger
    one is left out.
    """
    if len(finite) < 2:
        return float(finite.sum()), 0.0, 0.0
    ordered = np.sort(finite)
    centre = float(np.median(ordered))
    lower = centre - ordered[0] > ordered[-1] - centre
    d = (ordered[1:] if lower else ordered[:-1]) - centre
    size = float(np.abs(d).max()) or 1.0
    d /= size  # third powers neither overflow nor vanish
    first, second, third = (float(np.mean(d**k)) for k in (1, 2, 3))
    variance = max(second - first**2, 0.0)
    deviation = variance**0.5
    cumulant = third - 3.0 * first * second + 2.0 * first**3
    skewness = cumulant / (variance * deviation) if variance > 0.0 else 0.0
    return centre + size * first, size * deviation, skewness
