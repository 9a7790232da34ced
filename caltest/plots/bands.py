"""Exact consistency bands of curves: where a reliability curve lies if the model is calibrated.

As in :mod:`caltest.binning`, for curves that are no shares of bins: their law under H0, given the
predictions, is that of drawn curves.
"""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy.stats import rankdata

from caltest.binning import ConsistencyBand
from caltest.exceptions import InputError

Array: TypeAlias = NDArray[np.float64]

_ROUNDING = 1e-9  # of levels such as 1 − 0.95, which are meant as 0.05
_DECIMALS = 12  # of isotonic fits; equal fits may differ by rounding, and then count as equal


def curve_bands(
    observed: Array, draws: Array, alpha: float, joint: float
) -> tuple[ConsistencyBand, ConsistencyBand]:
    """Return the pointwise and the simultaneous band of a curve, from drawn curves.

    The observed curve and the B drawn ones are exchangeable under H0. Pointwise: the observed value
    lies beyond the k-th smallest, or largest, of the draws with probability at most k/(B + 1) each.
    Simultaneous: all B + 1 curves are ordered by how extreme they are, and the band is the hull of
    those that are not among the most extreme share α. Being defined symmetrically in all B + 1, this
    leaves the observed curve out with probability at most α. A curve is as extreme as its most
    extreme pointwise rank; ties are decided by the next one, and so on (extreme rank lengths).

    Parameters
    ----------
    observed
        The curve on a grid, (K,).
    draws
        The curves of drawn labels, (B, K).
    alpha, joint
        As in :func:`caltest.binning.share_bands`.

    Raises
    ------
    InputError
        If there are too few draws for a level.

    References
    ----------
    Myllymäki, Mrkvička, Grabarnik, Seijo, Hahn, "Global envelope tests for spatial processes",
    Journal of the Royal Statistical Society B 79 (2017).
    """
    total = len(draws) + 1
    most = min(alpha / 2, joint)
    if total * most < 1 - _ROUNDING:
        raise InputError(
            f"n_resamples is {len(draws)}, too few for the bands of this picture; "
            f"give at least {int(np.ceil(1 / most - _ROUNDING)) - 1}."
        )
    curves = rounded(np.vstack([observed, draws]))
    ordered = np.sort(curves[1:], axis=0)
    k = int(total * alpha / 2 + _ROUNDING)
    point = ConsistencyBand(ordered[k - 1], ordered[-k])
    shares = _share_as_extreme(curves)
    kept = curves[shares >= min(joint + _ROUNDING, shares.max())]  # the least extreme ones always
    low, high = np.minimum(kept.min(axis=0), point.low), np.maximum(kept.max(axis=0), point.high)
    return point, ConsistencyBand(low, high)


def _share_as_extreme(curves: Array) -> Array:
    """Return, for every curve, the share of all curves that are at least as extreme."""
    low = rankdata(curves, method="max", axis=0)
    high = rankdata(-curves, method="max", axis=0)
    ranks = np.sort(np.minimum(low, high), axis=1)
    groups, sizes = np.unique(ranks, axis=0, return_inverse=True, return_counts=True)[1:]
    return np.asarray(np.cumsum(sizes)[groups.reshape(-1)] / len(curves))


def rounded(curve: Array) -> Array:
    """Round a curve as the curves of :func:`curve_bands` are."""
    return np.asarray(np.round(curve, _DECIMALS), dtype=np.float64)
