"""The truth behind simulated predictions: mixtures, and what they say of a prediction."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import betainc

from caltest._arguments import Whole, anything, arguments, positive_number
from caltest._sampling import Rng, seed_of
from caltest.kernels.bandwidth import mean_tv_dirichlet
from caltest.simulation.draws import (
    ALPHA,
    N_CLASSES,
    N_SAMPLES,
    SHARE,
    Array,
    Simulated,
    checked_alpha,
    checked_beta,
    equal,
    labels,
    log,
    log_dirichlet,
)

# ------------------------------------------------------------------ mixture


@arguments(n_samples=N_SAMPLES, n_classes=N_CLASSES)
def m1(n_samples: int = 250, n_classes: int = 10, *, rng: Rng = None) -> Simulated:
    """Draw from M1, calibrated: the label is drawn from the stated probabilities (π = 0).

    Parameters
    ----------
    n_samples
        Number of rows n. Default 250, as published.
    n_classes
        Number of classes m; α = (0.1, …, 0.1). Default 10, as published.
    rng
        None, an integer, a SeedSequence or a Generator (SPEC 7).

    Returns
    -------
    Simulated
        With ``truth`` equal to ``probs``.

    Raises
    ------
    InputError
        If there is no row, or fewer than two classes.

    References
    ----------
    Widmann, Lindsten and Zachariah (2019). Calibration tests in multi-class classification: a
    unifying framework. NeurIPS 32, Appendix J.2.

    Examples
    --------
    >>> import caltest
    >>> from caltest.simulation import m1
    >>> calibrated = m1(rng=3)
    >>> caltest.test(calibrated.probs, calibrated.labels, rng=4).rejects(0.01)
    False
    """
    return mixture(n_samples, equal(n_classes), pi=0.0, rng=rng)


@arguments(n_samples=N_SAMPLES, n_classes=N_CLASSES)
def m2(n_samples: int = 250, n_classes: int = 10, *, rng: Rng = None) -> Simulated:
    """Draw from M2: half of the labels are of the first class whatever is stated (π = ½, β = e_1).

    Parameters
    ----------
    n_samples, n_classes, rng
        As in :func:`m1`.

    Returns
    -------
    Simulated
        With ``truth`` (g + e_1)/2.

    Raises
    ------
    InputError
        If there is no row, or fewer than two classes.

    References
    ----------
    Widmann et al. 2019, Appendix J.2.

    Examples
    --------
    >>> from caltest.simulation import m2
    >>> int((m2(n_samples=1000, rng=0).labels == 0).sum())
    537
    """
    return mixture(n_samples, equal(n_classes), pi=0.5, beta=np.eye(1, n_classes)[0], rng=rng)


@arguments(n_samples=N_SAMPLES, n_classes=N_CLASSES)
def m3(n_samples: int = 250, n_classes: int = 10, *, rng: Rng = None) -> Simulated:
    """Draw from M3: every class is equally likely whatever is stated (π = 1, β uniform).

    Parameters
    ----------
    n_samples, n_classes, rng
        As in :func:`m1`.

    Returns
    -------
    Simulated
        With a uniform ``truth``.

    Raises
    ------
    InputError
        If there is no row, or fewer than two classes.

    References
    ----------
    Widmann et al. 2019, Appendix J.2.

    Examples
    --------
    >>> from caltest.simulation import m3
    >>> m3(n_samples=1, n_classes=4, rng=0).truth
    array([[0.25, 0.25, 0.25, 0.25]])
    """
    return mixture(n_samples, equal(n_classes), pi=1.0, rng=rng)


@arguments(n_samples=N_SAMPLES, alpha=anything, pi=SHARE)
def mixture(
    n_samples: int = 250,
    alpha: ArrayLike = ALPHA,
    *,
    pi: float,
    beta: ArrayLike | None = None,
    rng: Rng = None,
) -> Simulated:
    """Draw g ~ Dir(α), Z ~ Ber(π) and Y ~ Cat(β) if Z, Y ~ Cat(g) else.

    Parameters
    ----------
    n_samples
        Number of rows n. Default 250, as published.
    alpha
        Dirichlet parameters (m,). Default (0.1, …, 0.1) of ten classes, as published.
    pi
        Share of the rows whose label has nothing to do with g, in [0, 1]; 0 is calibrated.
    beta
        Distribution (m,) of those labels. Default None: uniform.
    rng
        None, an integer, a SeedSequence or a Generator (SPEC 7).

    Returns
    -------
    Simulated
        With ``truth`` (1 − π) g + π β.

    Raises
    ------
    InputError
        If there is no row, or a parameter is outside its range.

    References
    ----------
    Widmann et al. 2019, Appendix J.2.

    Examples
    --------
    >>> from caltest.simulation import mixture
    >>> mixture(2, [1.0, 1.0], pi=1.0, beta=[0.25, 0.75], rng=0).truth
    array([[0.25, 0.75],
           [0.25, 0.75]])
    """
    a = checked_alpha(alpha)
    b = checked_beta(beta, len(a))
    seed = seed_of(rng)
    probs = np.exp(log_dirichlet(n_samples, a, seed))
    truth = (1.0 - pi) * probs + pi * b
    return Simulated(probs, labels(log(truth), seed), truth)


# ------------------------------------------------------------------ truth


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
