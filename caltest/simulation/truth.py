"""True calibration errors of the family of Appendix J.2."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import betainc

from caltest._arguments import Whole, anything, arguments, positive_number
from caltest._seeds import Rng, seed_of
from caltest.kernels.bandwidth import mean_tv_dirichlet
from caltest.simulation.draws import (
    SHARE,
    Array,
    checked_alpha,
    checked_beta,
    log_dirichlet,
)

_BLOCK = 100  # rows of a block whose pairs are all used


class Estimate(NamedTuple):
    """A number and its standard error (0 where it is exact)."""

    value: float
    standard_error: float


@arguments(alpha=anything, pi=SHARE)
def true_ece_tv(alpha: ArrayLike, beta: ArrayLike | None, pi: float) -> float:
    r"""Return the expected calibration error (total variation) of a mixture, in closed form.

    .. math:: π \sum_i \Bigl[β_i I(β_i; α_i, α_0 - α_i)
              - \frac{α_i}{α_0} I(β_i; α_i + 1, α_0 - α_i)\Bigr],

    with α₀ = Σ α_i and I the regularised incomplete beta function: π times the mean TV(β, g).

    Parameters
    ----------
    alpha, beta, pi
        As in :func:`mixture`.

    Returns
    -------
    float
        In [0, 1].

    Raises
    ------
    InputError
        If a parameter is outside its range.

    References
    ----------
    Widmann et al. 2019, Appendix J.2.

    Examples
    --------
    A uniform variable is 1/4 from 1/2 in the mean:

    >>> from caltest.simulation import true_ece_tv
    >>> true_ece_tv([1.0, 1.0], [0.5, 0.5], pi=1.0)
    0.25
    """
    a = checked_alpha(alpha)
    b = checked_beta(beta, len(a))
    total = a.sum()
    parts = b * betainc(a, total - a, b) - a / total * betainc(a + 1.0, total - a, b)
    return float(pi * parts.sum())


@arguments(alpha=anything, pi=SHARE, bandwidth=positive_number, n_draws=Whole(2 * _BLOCK))
def true_skce(
    alpha: ArrayLike,
    beta: ArrayLike | None,
    pi: float,
    *,
    bandwidth: float | None = None,
    n_draws: int = 100_000,
    rng: Rng = 0,
) -> Estimate:
    """Return the SKCE of a mixture, kernel exp(−TV/ν) I, with its Monte-Carlo standard error.

    It is π² E[exp(−TV(g, g′)/ν) ⟨β − g, β − g′⟩] for independent g, g′ ~ Dir(α), taken over all pairs
    inside each of ``n_draws``/100 blocks of 100 draws; the standard error is that of the mean of the
    blocks. With π = 0 it is 0, exactly.

    Parameters
    ----------
    alpha, beta, pi
        As in :func:`mixture`.
    bandwidth
        ν > 0. Default None: the mean total variation distance of two draws of Dir(α).
    n_draws
        Draws of g, at least 200. Default 100 000: a relative error below 1 % for M2 and M3.
    rng
        None, an integer, a SeedSequence or a Generator (SPEC 7). Default 0: the same number always.

    Returns
    -------
    Estimate
        ``value`` and ``standard_error``.

    Raises
    ------
    InputError
        If a parameter is outside its range.

    References
    ----------
    Widmann et al. 2019, Definition 2 and Appendix J.2.

    Examples
    --------
    >>> from caltest.simulation import ALPHA, true_skce
    >>> value, error = true_skce(ALPHA, None, pi=1.0)
    >>> print(f"{value:.4f}, standard error {error:.4f}")
    0.0156, standard error 0.0001
    """
    a = checked_alpha(alpha)
    b = checked_beta(beta, len(a))
    width = mean_tv_dirichlet(a) if bandwidth is None else bandwidth
    if pi == 0.0:
        return Estimate(0.0, 0.0)
    seed = seed_of(rng)
    blocks = np.exp(log_dirichlet(n_draws // _BLOCK * _BLOCK, a, seed)).reshape(-1, _BLOCK, len(a))
    values = pi**2 * np.array([_mean_over_pairs(g, b, width) for g in blocks])
    return Estimate(float(values.mean()), float(values.std(ddof=1) / np.sqrt(len(values))))


def _mean_over_pairs(g: Array, beta: Array, bandwidth: float) -> float:
    i, j = np.triu_indices(len(g), 1)
    distance = 0.5 * np.abs(g[i] - g[j]).sum(axis=1)
    bias = beta - g
    return float(np.mean(np.exp(-distance / bandwidth) * (bias @ bias.T)[i, j]))
