"""Models that err in one way: temperature, a region, a class, noise."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import log_softmax, softmax

from caltest._arguments import (
    Number,
    Whole,
    anything,
    arguments,
    as_float,
    check_takes,
    positive_number,
)
from caltest._sampling import Rng, generator, seed_of
from caltest._visible import quoted
from caltest.exceptions import InputError
from caltest.simulation.draws import (
    ALPHA,
    N_SAMPLES,
    NOISE,
    SHARE,
    TRUTH,
    Array,
    Simulated,
    checked_alpha,
    labels,
    log,
    log_dirichlet,
)

Region: TypeAlias = "tuple[float, float] | Callable[[Array], NDArray[np.bool_]]"

_SMALLEST_PROB = 1e-300  # below, a stated probability has lost its logarithm
_ENTRIES = 2**21  # of an array held at a time


@arguments(n_samples=N_SAMPLES, alpha=anything, temperature=positive_number)
def tempered(
    n_samples: int = 250, alpha: ArrayLike = ALPHA, *, temperature: float, rng: Rng = None
) -> Simulated:
    """State softmax(log g / t) where the truth is g: over-confident for t < 1, under-confident above.

    Parameters
    ----------
    n_samples, alpha, rng
        As in :func:`mixture`.
    temperature
        t > 0; 1 is calibrated.

    Returns
    -------
    Simulated
        With ``truth`` g, which the stated probabilities determine.

    Raises
    ------
    InputError
        If there is no row, or a parameter is outside its range.

    References
    ----------
    Guo, Pleiss, Sun and Weinberger (2017). On calibration of modern neural networks. ICML 34: the
    temperature that this model lacks.

    Examples
    --------
    >>> from caltest.simulation import tempered
    >>> sure = tempered(n_samples=1000, temperature=0.5, rng=0)
    >>> bool(sure.probs.max(axis=1).mean() > sure.truth.max(axis=1).mean())
    True
    """
    a = checked_alpha(alpha)
    seed = seed_of(rng)
    logs = log_dirichlet(n_samples, a, seed)
    probs = np.asarray(softmax(logs / temperature, axis=1))
    return Simulated(probs, labels(logs, seed), np.exp(logs))


@arguments(n_samples=N_SAMPLES, alpha=anything, strength=SHARE)
def local(
    n_samples: int = 250,
    alpha: ArrayLike = ALPHA,
    *,
    region: Region = (0.5, 0.9),
    strength: float = 0.5,
    rng: Rng = None,
) -> Simulated:
    """State g, which is over-confident in one region and calibrated elsewhere.

    Parameters
    ----------
    n_samples, alpha, rng
        As in :func:`mixture`.
    region
        Where the model errs: a closed range (low, high) of the largest stated probability, or a
        function that takes probabilities (n, m) and returns (n,) booleans. Default (0.5, 0.9).
    strength
        How far the truth there lies on the way from g to the uniform distribution, in [0, 1].
        Default 0.5.

    Returns
    -------
    Simulated
        With ``truth`` (1 − strength) g + strength/m in the region, g elsewhere.

    Raises
    ------
    InputError
        If there is no row, or a parameter is outside its range.

    Examples
    --------
    >>> from caltest.simulation import local
    >>> first_class = local(1000, [1.0, 1.0, 1.0], region=lambda g: g[:, 0] > 0.5, rng=0)
    >>> wrong = (first_class.truth != first_class.probs).any(axis=1)
    >>> bool((wrong == (first_class.probs[:, 0] > 0.5)).all())
    True
    """
    a = checked_alpha(alpha)
    seed = seed_of(rng)
    probs = np.exp(log_dirichlet(n_samples, a, seed))
    inside = _inside(region, probs)
    truth = np.where(inside[:, None], (1.0 - strength) * probs + strength / len(a), probs)
    return Simulated(probs, labels(log(truth), seed), truth)


@arguments(n_samples=N_SAMPLES, alpha=anything, target=Whole(0), bias=Number())
def classwise(
    n_samples: int = 250,
    alpha: ArrayLike = ALPHA,
    *,
    target: int = 0,
    bias: float = 1.0,
    rng: Rng = None,
) -> Simulated:
    """State g, which puts the log-odds of one class too high (or too low) by a constant.

    Parameters
    ----------
    n_samples, alpha, rng
        As in :func:`mixture`.
    target
        The class, 0..m−1. Default 0.
    bias
        How much too high; negative: too low. The other classes share what is left in proportion, as
        stated. Default 1: the odds are 2.7 times what they should be.

    Returns
    -------
    Simulated
        With ``truth`` proportional to g, the target's entry first multiplied by exp(−bias).

    Raises
    ------
    InputError
        If there is no row, or a parameter is outside its range.

    Examples
    --------
    >>> import numpy as np
    >>> from caltest.simulation import classwise
    >>> pushed = classwise(1, [5.0, 5.0], target=1, bias=np.log(3.0), rng=0)
    >>> odds = pushed.probs[0, 1] / pushed.probs[0, 0]
    >>> true_odds = pushed.truth[0, 1] / pushed.truth[0, 0]
    >>> round(float(odds / true_odds), 12)
    3.0
    """
    a = checked_alpha(alpha)
    if target >= len(a):
        raise InputError(f"target is {quoted(target)}; give a class in 0..{len(a) - 1}.")
    seed = seed_of(rng)
    logs = log_dirichlet(n_samples, a, seed)
    shifted = logs.copy()
    shifted[:, target] -= bias
    shifted = np.asarray(log_softmax(shifted, axis=1))
    return Simulated(np.exp(logs), labels(shifted, seed), np.exp(shifted))


@arguments(
    n_samples=N_SAMPLES,
    alpha=anything,
    scale=Number(0.0, math.inf, "[)", "give a number of at least 0"),
    truth_draws=Whole(2, advice="give at least 2"),
)
def noisy(
    n_samples: int = 250,
    alpha: ArrayLike = ALPHA,
    *,
    scale: float = 0.5,
    truth_draws: int = 1000,
    rng: Rng = None,
) -> Simulated:
    """State softmax(log g + scale · noise) where labels come from g: noise makes over-confident.

    Given what is stated, the noise is not known, so P(Y | stated) is a mean over the g that may stand
    behind it. In log-ratio coordinates the density of Dir(α) is ∏ g_k^α_k up to a constant; with
    standard normal noise ε, the truth is therefore E[q w]/E[w], q = softmax(log stated − scale · ε)
    and w = ∏ q_k^α_k. Pairs ±ε are used.

    Parameters
    ----------
    n_samples, alpha, rng
        As in :func:`mixture`.
    scale
        Standard deviation of the noise on every logit, ≥ 0; 0 is calibrated. Default 0.5.
    truth_draws
        Pairs ±ε a row, at least 2. Default 1000.

    Returns
    -------
    Simulated
        With ``truth`` to the standard error ``truth_error``.

    Raises
    ------
    InputError
        If there is no row, or a parameter is outside its range.

    Examples
    --------
    >>> from caltest.simulation import noisy
    >>> blurred = noisy(100, scale=1.0, rng=0)
    >>> bool(blurred.probs.max(axis=1).mean() > blurred.truth.max(axis=1).mean())
    True
    """
    a = checked_alpha(alpha)
    seed = seed_of(rng)
    logs = log_dirichlet(n_samples, a, seed)
    noise = generator(seed, *NOISE).standard_normal(logs.shape)
    stated = np.asarray(softmax(logs + scale * noise, axis=1))
    truth, error = _truth_behind_noise(stated, a, scale, truth_draws, seed)
    return Simulated(stated, labels(logs, seed), truth, error)


def _truth_behind_noise(
    stated: Array, alpha: Array, scale: float, draws: int, seed: int
) -> tuple[Array, float]:
    if scale == 0.0:
        return stated.copy(), 0.0
    logits = np.log(np.maximum(stated, _SMALLEST_PROB))
    stream = generator(seed, *TRUTH)
    truth, largest = np.empty_like(stated), 0.0
    size = max(1, _ENTRIES // (2 * draws * len(alpha)))
    for start in range(0, len(stated), size):
        rows = slice(start, start + size)
        noise = scale * stream.standard_normal((draws, *logits[rows].shape))
        signs = np.stack([logits[rows] - noise, logits[rows] + noise])
        q_logs = log_softmax(signs, axis=-1)
        heights = q_logs @ alpha
        weights = np.exp(heights - heights.max(axis=(0, 1)))
        weights /= weights.sum(axis=(0, 1))
        q = np.exp(q_logs)
        truth[rows] = np.einsum("sdr,sdrk->rk", weights, q)
        deviations = np.einsum("sdr,sdrk->drk", weights, q - truth[rows])  # pairs are independent
        largest = max(largest, float(np.sqrt((deviations**2).sum(axis=0)).max()))
    return truth, largest


def _inside(region: Region, probs: Array) -> NDArray[np.bool_]:
    if callable(region) and not isinstance(region, type):
        check_takes("region", region, "probs")
        inside = np.asarray(region(probs))
        if inside.shape != (len(probs),) or inside.dtype != bool:
            raise InputError(
                f"region returned {inside.dtype} of shape {inside.shape}; "
                f"it must return booleans of shape ({len(probs)},)."
            )
        return inside
    ends = [as_float(each) for each in region] if isinstance(region, Sequence) else []
    low, high = ends if len(ends) == 2 else (None, None)
    if low is None or high is None or not low <= high:
        raise InputError(
            f"region is {quoted(region)}; give (low, high) with low <= high, or a function."
        )
    confidence = probs.max(axis=1)
    return np.asarray((low <= confidence) & (confidence <= high))
