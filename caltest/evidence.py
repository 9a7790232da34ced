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
_LOG_2 = float(np.log(2.0))


def evidence(z: ArrayLike, skewness: ArrayLike, alternative: Alternative) -> Array:
    """Return −log P(a value at least as extreme as z under H0), approximately.

    Parameters
    ----------
    z
        Standardised statistics; may be infinite.
    skewness
        Their skewness under H0, of a shape that goes with ``z``.
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
    if alternative == "greater":
        return np.asarray(-log_ndtr(-normal))
    if alternative == "less":
        return np.asarray(-log_ndtr(normal))
    return np.asarray(-log_ndtr(-np.abs(normal)) - _LOG_2)


def _nearly_normal(z: Array, skewness: Array) -> Array:
    """Return (∛(1 + s z/2) − 1 + s²/36) · 6/s, which grows with z and is z where s is 0."""
    flat = np.abs(skewness) < _SYMMETRIC
    s = np.where(flat, 1.0, skewness)
    return np.where(flat, z, (np.cbrt(1.0 + 0.5 * s * z) - 1.0 + s * s / 36.0) * (6.0 / s))


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
    Mean, standard deviation and skewness of a row are those of all *other* rows, of which the observed
    one is one. All rows are so treated alike, and what was exchangeable stays exchangeable: ranks
    among the draws are exact. That a row is not part of its own standard is what lets an observed
    value stand out by more than √B.

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
    finite = values[np.isfinite(values)]
    margin = TIE_TOLERANCE * float(np.abs(finite).max(initial=0.0)) + resolution
    mean, deviation, skewness = _of_the_others(values)
    deviation[deviation <= margin] = 0.0  # only rounding varies
    away = values - mean
    away[0] = _less_extreme(float(away[0]), alternative, margin)
    away[np.abs(away) <= margin * (deviation == 0.0)] = 0.0
    with np.errstate(divide="ignore", invalid="ignore"):  # a constant, and what differs from it
        z = np.where(away == 0.0, 0.0, away / deviation)
    return evidence(z, np.where(deviation > 0.0, skewness, 0.0), alternative)


def _less_extreme(away: float, alternative: Alternative, margin: float) -> float:
    """Move a difference from the mean by ``margin``, away from what counts against H0."""
    if alternative == "two-sided":
        return float(np.sign(away)) * max(abs(away) - margin, 0.0)
    return away - margin if alternative == "greater" else away + margin


def _of_the_others(values: Array) -> tuple[Array, Array, Array]:
    """Return mean, standard deviation and skewness of all finite values but one, for every one."""
    usable = np.isfinite(values)
    count = np.maximum(np.count_nonzero(usable) - usable, 1)
    centre = float(np.median(values[usable])) if usable.any() else 0.0
    d = np.where(usable, values - centre, 0.0)
    sums = [np.sum(d**k) - d**k for k in (1, 2, 3)]
    far = int(np.argmax(np.abs(d)))  # where what is left may be lost in what is taken away
    rest = np.delete(d, far)
    for k, each in enumerate(sums, start=1):
        each[far] = np.sum(rest**k)
    first, second, third = (each / count for each in sums)
    variance = np.maximum(second - first**2, 0.0)
    deviation = np.sqrt(variance)
    cumulant = third - 3.0 * first * second + 2.0 * first**3
    with np.errstate(divide="ignore", invalid="ignore"):
        skewness = np.where(variance > 0.0, cumulant / (variance * deviation), 0.0)
    return centre + first, deviation, np.nan_to_num(skewness, posinf=0.0, neginf=0.0)
