"""Bounds of the mean probability of rows whose probabilities differ: the bins of a certificate."""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy.special import betaincinv

Array: TypeAlias = NDArray[np.float64]

LARGEST_LEVEL = 0.25  # of a single bound, for the proof in `mean_bounds`


def mean_bounds(counts: Array, events: Array, level: float) -> tuple[Array, Array]:
    r"""Return bounds of the mean of a group's probabilities, which may all differ.

    Parameters
    ----------
    counts, events
        Rows and events of every group, (K,); counts ≥ 1. They need not be whole numbers.
    level
        Probability at most with which a single bound fails, up to 1/4.

    Returns
    -------
    tuple of arrays
        Lower and upper bounds, (K,). Clopper and Pearson's, but for one event (or one row without),
        where they are level / n (or 1 − level / n).

    Notes
    -----
    *Claim.* Let S be the sum of n independent events of probabilities with mean q, and L(0) = 0,
    L(1) = δ/n, L(s) for s ≥ 2 the q at which P(B ≥ s) = δ, B ~ Bin(n, q). If δ ≤ 1/4, then
    P(L(S) > q) ≤ δ.

    *Proof.* L increases, so {L(S) > q} = {S ≥ s} for the smallest s with L(s) > q. If there is none, or
    q = 0, nothing is to be shown. If s = 1: q < δ/n, and P(S ≥ 1) ≤ nq < δ. Else s ≥ 2 and
    P(B ≥ s) < δ. Then s ≥ nq + 1: for nq ≤ 1 plainly; for nq > 1, P(B ≥ nq) > 1/4 ≥ δ (Greenberg and
    Mohri 2014), so s is above the smallest whole number that is not below nq. And for
    s − 1 ≥ nq Hoeffding's theorem says P(S ≤ s − 1) ≥ P(B ≤ s − 1), that is, P(S ≥ s) ≤ P(B ≥ s) < δ.
    The upper bound is that of the rows without an event, mirrored.

    Clopper and Pearson's own L(1) = 1 − (1 − δ)^(1/n) is above δ/n, and fails: if one row has all the
    probability, nq = a, then P(S ≥ 1) = a, which can reach n(1 − (1 − δ)^(1/n)), about δ + δ²/2.

    References
    ----------
    Hoeffding, "On the distribution of the number of successes in independent trials", Annals of
    Mathematical Statistics 27 (1956), Theorem 4; Greenberg and Mohri, "Tight lower bound on the
    probability of a binomial exceeding its expectation", Statistics and Probability Letters 86 (2014).

    Examples
    --------
    >>> low, high = mean_bounds(np.array([10.0, 10.0]), np.array([1.0, 8.0]), 0.025)
    >>> low.round(4).tolist(), high.round(4).tolist()
    ([0.0025, 0.4439], [0.445, 0.9748])
    """
    return _lower(counts, events, level), 1.0 - _lower(counts, counts - events, level)


def _lower(counts: Array, events: Array, level: float) -> Array:
    found = betaincinv(np.maximum(events, 1.0), counts - np.maximum(events, 1.0) + 1.0, level)
    return np.where(events > 1.0, found, np.clip(events, 0.0, 1.0) * level / counts)
