"""Simulate predictions and labels with a known miscalibration.

Every model draws g ~ Dir(α) and returns a :class:`Simulated`: predictions, observed labels, and the
truth, P(Y = k | stated probabilities). In a *mixture* (Widmann, Lindsten and Zachariah 2019, Appendix
J.2) g is stated, and the label is drawn from g with probability 1 − π and from a fixed β else; M1, M2
and M3 are its named members. *Tempered*, *local*, *classwise* and *noisy* models each go wrong in one
way that real models do. All raise an :class:`caltest.InputError` if there is no row, fewer than two
classes, or a parameter outside its range.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import betainc, log_softmax, softmax

from caltest._arguments import (
    Number,
    Whole,
    anything,
    arguments,
    as_float,
    check_takes,
    positive_number,
    real_array,
    wrong,
)
from caltest._sums import Array, blocks
from caltest.exceptions import InputError
from caltest.kernels.bandwidth import mean_tv_dirichlet
from caltest.sampling import Rng, generator, seed_of

__all__ = [
    "ALPHA",
    "Estimate",
    "Simulated",
    "classwise",
    "local",
    "m1",
    "m2",
    "m3",
    "mean_tv_dirichlet",
    "mixture",
    "noisy",
    "tempered",
    "true_ece_tv",
    "true_skce",
]

#: The α of the published simulations: ten classes, most predictions confident.
ALPHA: tuple[float, ...] = (0.1,) * 10

Region: TypeAlias = "tuple[float, float] | Callable[[Array], NDArray[np.bool_]]"

_N_SAMPLES = Whole(1, advice="give a positive integer")
_N_CLASSES = Whole(2, 100_000, "give an integer of at least 2")
_SHARE = Number(0.0, 1.0, "[]", "give a number in [0, 1]")

_SMALLEST_ALPHA = 1e-300  # below, log g is not a number
_SMALLEST_PROB = 1e-300  # below, a stated probability has lost its logarithm
_ENTRIES = 2**21  # of an array held at a time
_BLOCK = 100  # rows of a block whose pairs are all used

# Streams of random numbers. Three numbers a key: the nulls use one or two, so that data and test may
# share a seed.
_PREDICTIONS, _LABELS, _NOISE, _TRUTH = ((0, 0, stream) for stream in range(4))


@dataclass(frozen=True, eq=False)
class Simulated:
    """Simulated predictions and labels, with the true probabilities.

    Attributes
    ----------
    probs
        What the model states, (n, m), rows on the simplex, read-only.
    labels
        Observed labels, (n,) integers in 0..m−1, read-only.
    truth
        P(Y = k | probs) row by row, (n, m), read-only: equal to ``probs`` for a calibrated model.
    truth_error
        Largest standard error of an entry of ``truth``: 0 where it is known exactly.

    Examples
    --------
    >>> from caltest.simulation import m2
    >>> simulated = m2(n_samples=1000, rng=1)
    >>> simulated.probs.shape, round(simulated.ece, 2)
    ((1000, 10), 0.45)
    """

    probs: Array = field(repr=False)
    labels: NDArray[np.intp] = field(repr=False)
    truth: Array = field(repr=False)
    truth_error: float = 0.0

    def __post_init__(self) -> None:
        for array in (self.probs, self.labels, self.truth):
            array.flags.writeable = False

    @property
    def ece(self) -> float:
        """The mean total variation distance of stated and true probabilities over these rows."""
        return float(0.5 * np.abs(self.probs - self.truth).sum(axis=1).mean())


def _drawn(n: int, alpha: ArrayLike, rng: Rng) -> tuple[Array, int, Array]:
    """Return α, checked, the seed of a data set, and log g of its rows."""
    a, seed = _checked_alpha(alpha), seed_of(rng)
    return a, seed, log_dirichlet(n, a, seed)


def log_dirichlet(n: int, alpha: Array, seed: int) -> Array:
    """Return log g, (n, m), for g ~ Dir(α).

    If γ ~ Gamma(α + 1) and u is uniform, γ u^{1/α} ~ Gamma(α) (Marsaglia and Tsang 2000). Its
    logarithm does not underflow for small α, as the variable itself does.
    """
    stream = generator(seed, *_PREDICTIONS)
    shape = (int(n), len(alpha))
    log_gammas = np.log(stream.standard_gamma(alpha + 1.0, shape))
    log_gammas -= stream.standard_exponential(shape) / alpha
    return np.asarray(log_softmax(log_gammas, axis=1))


def _labels(log_truth: Array, seed: int) -> NDArray[np.intp]:
    """Draw a label a row, as the largest of log p_k + Gumbel noise: never one with p_k = 0."""
    gumbel = generator(seed, *_LABELS).gumbel(size=log_truth.shape)
    return np.asarray(np.argmax(log_truth + gumbel, axis=1))


def _log(probs: Array) -> Array:
    with np.errstate(divide="ignore"):
        return np.asarray(np.log(probs))


def equal(n_classes: int) -> Array:
    """Return the published α of ``n_classes`` classes."""
    return np.full(n_classes, ALPHA[0])


def _checked_alpha(alpha: ArrayLike) -> Array:
    """Return α as an array of positive numbers."""
    a = real_array("alpha", alpha, "give at least two positive numbers")
    if a.ndim != 1 or len(a) < 2 or not np.all(np.isfinite(a)) or np.any(a < _SMALLEST_ALPHA):
        raise wrong("alpha", alpha, "give at least two positive numbers")
    return a


def _checked_beta(beta: ArrayLike | None, m: int) -> Array:
    """Return β as an array of m probabilities; None is uniform."""
    if beta is None:
        return np.full(m, 1.0 / m)
    b = real_array("beta", beta, f"give {m} probabilities that sum to 1")
    if b.shape != (m,) or not np.all(b >= 0) or abs(b.sum() - 1.0) > 1e-9:
        raise wrong("beta", beta, f"give {m} probabilities that sum to 1, as alpha has {m}")
    return b


# ------------------------------------------------------------------ mixtures


@arguments(n_samples=_N_SAMPLES, n_classes=_N_CLASSES)
def m1(n_samples: int = 250, n_classes: int = 10, *, rng: Rng = None) -> Simulated:
    """Simulate M1, a calibrated model: labels are drawn from the predictions (π = 0).

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


@arguments(n_samples=_N_SAMPLES, n_classes=_N_CLASSES)
def m2(n_samples: int = 250, n_classes: int = 10, *, rng: Rng = None) -> Simulated:
    """Simulate M2: half of the labels are set to class 0, whatever is predicted (π = ½, β = e_1).

    Parameters
    ----------
    n_samples, n_classes, rng
        As in :func:`m1`.

    Returns
    -------
    Simulated
        With ``truth`` (g + e_1)/2.

    Examples
    --------
    >>> from caltest.simulation import m2
    >>> int((m2(n_samples=1000, rng=0).labels == 0).sum())
    537
    """
    return mixture(n_samples, equal(n_classes), pi=0.5, beta=np.eye(1, n_classes)[0], rng=rng)


@arguments(n_samples=_N_SAMPLES, n_classes=_N_CLASSES)
def m3(n_samples: int = 250, n_classes: int = 10, *, rng: Rng = None) -> Simulated:
    """Simulate M3: all classes are equally likely, whatever is predicted (π = 1, β uniform).

    Parameters
    ----------
    n_samples, n_classes, rng
        As in :func:`m1`.

    Returns
    -------
    Simulated
        With a uniform ``truth``.

    Examples
    --------
    >>> from caltest.simulation import m3
    >>> m3(n_samples=1, n_classes=4, rng=0).truth
    array([[0.25, 0.25, 0.25, 0.25]])
    """
    return mixture(n_samples, equal(n_classes), pi=1.0, rng=rng)


@arguments(n_samples=_N_SAMPLES, alpha=anything, pi=_SHARE)
def mixture(
    n_samples: int = 250,
    alpha: ArrayLike = ALPHA,
    *,
    pi: float,
    beta: ArrayLike | None = None,
    rng: Rng = None,
) -> Simulated:
    """Simulate a model whose predictions apply to a share 1 − π of the rows only.

    Draw g ~ Dir(α) and Z ~ Ber(π); the label is drawn from β if Z = 1, and from g otherwise.

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
        As in :func:`m1`.

    Returns
    -------
    Simulated
        With ``truth`` (1 − π) g + π β.

    Examples
    --------
    >>> from caltest.simulation import mixture
    >>> mixture(2, [1.0, 1.0], pi=1.0, beta=[0.25, 0.75], rng=0).truth
    array([[0.25, 0.75],
           [0.25, 0.75]])
    """
    a, seed, logs = _drawn(n_samples, alpha, rng)
    probs, b = np.exp(logs), _checked_beta(beta, len(a))
    truth = (1.0 - pi) * probs + pi * b
    return Simulated(probs, _labels(_log(truth), seed), truth)


class Estimate(NamedTuple):
    """A number and its standard error, 0 where it is exact."""

    value: float
    standard_error: float


@arguments(alpha=anything, pi=_SHARE)
def true_ece_tv(alpha: ArrayLike, beta: ArrayLike | None, pi: float) -> float:
    r"""Return the true expected calibration error (total variation) of a mixture, in closed form.

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

    Examples
    --------
    >>> from caltest.simulation import true_ece_tv
    >>> true_ece_tv([1.0, 1.0], [0.5, 0.5], pi=1.0)  # a uniform variable is 1/4 from 1/2 in the mean
    0.25
    """
    a = _checked_alpha(alpha)
    b = _checked_beta(beta, len(a))
    total = a.sum()
    parts = b * betainc(a, total - a, b) - a / total * betainc(a + 1.0, total - a, b)
    return float(pi * parts.sum())


@arguments(alpha=anything, pi=_SHARE, bandwidth=positive_number, n_draws=Whole(2 * _BLOCK))
def true_skce(
    alpha: ArrayLike,
    beta: ArrayLike | None,
    pi: float,
    *,
    bandwidth: float | None = None,
    n_draws: int = 100_000,
    rng: Rng = 0,
) -> Estimate:
    """Return the true SKCE of a mixture, kernel exp(−TV/ν) I, with its Monte Carlo standard error.

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
        As in :func:`mixture`. Default 0: the same number always.

    Returns
    -------
    Estimate
        ``value`` and ``standard_error``.

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
    a = _checked_alpha(alpha)
    b = _checked_beta(beta, len(a))
    width = mean_tv_dirichlet(a) if bandwidth is None else bandwidth
    if pi == 0.0:
        return Estimate(0.0, 0.0)
    seed = seed_of(rng)
    groups = np.exp(log_dirichlet(n_draws // _BLOCK * _BLOCK, a, seed)).reshape(-1, _BLOCK, len(a))
    i, j = np.triu_indices(_BLOCK, 1)
    means = []
    for g in groups:
        distance = 0.5 * np.abs(g[i] - g[j]).sum(axis=1)
        bias = b - g
        means.append(float(np.mean(np.exp(-distance / width) * (bias @ bias.T)[i, j])))
    values = pi**2 * np.array(means)
    return Estimate(float(values.mean()), float(values.std(ddof=1) / np.sqrt(len(values))))


# ------------------------------------------------------------------ errors of one kind


@arguments(n_samples=_N_SAMPLES, alpha=anything, temperature=positive_number)
def tempered(
    n_samples: int = 250, alpha: ArrayLike = ALPHA, *, temperature: float, rng: Rng = None
) -> Simulated:
    """Simulate a model whose probabilities are all too extreme, or not extreme enough.

    Labels come from g, and softmax(log g / t) is predicted: overconfident for t < 1, underconfident
    above.

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
    _, seed, logs = _drawn(n_samples, alpha, rng)
    probs = np.asarray(softmax(logs / temperature, axis=1))
    return Simulated(probs, _labels(logs, seed), np.exp(logs))


@arguments(n_samples=_N_SAMPLES, alpha=anything, strength=_SHARE)
def local(
    n_samples: int = 250,
    alpha: ArrayLike = ALPHA,
    *,
    region: Region = (0.5, 0.9),
    strength: float = 0.5,
    rng: Rng = None,
) -> Simulated:
    """Simulate a model that is overconfident in one region and calibrated elsewhere.

    Parameters
    ----------
    n_samples, alpha, rng
        As in :func:`mixture`.
    region
        Where the model is wrong: a closed range (low, high) of the largest stated probability, or a
        function that takes probabilities (n, m) and returns (n,) booleans. Default (0.5, 0.9).
    strength
        How far the truth there lies on the way from g to the uniform distribution, in [0, 1].
        Default 0.5.

    Returns
    -------
    Simulated
        With ``truth`` (1 − strength) g + strength/m in the region, g elsewhere.

    Examples
    --------
    >>> from caltest.simulation import local
    >>> first_class = local(1000, [1.0, 1.0, 1.0], region=lambda g: g[:, 0] > 0.5, rng=0)
    >>> wrong = (first_class.truth != first_class.probs).any(axis=1)
    >>> bool((wrong == (first_class.probs[:, 0] > 0.5)).all())
    True
    """
    a, seed, logs = _drawn(n_samples, alpha, rng)
    probs = np.exp(logs)
    if callable(region) and not isinstance(region, type):
        check_takes("region", region, "probs")
        inside = np.asarray(region(probs))
        if inside.shape != (len(probs),) or inside.dtype != bool:
            raise InputError(
                f"region returned {inside.dtype} of shape {inside.shape}; "
                f"it must return booleans of shape ({len(probs)},)."
            )
    else:
        ends = [as_float(each) for each in region] if isinstance(region, Sequence) else []
        low, high = ends if len(ends) == 2 else (None, None)
        if low is None or high is None or not low <= high:
            raise wrong("region", region, "give (low, high) with low <= high, or a function")
        confidence = probs.max(axis=1)
        inside = np.asarray((low <= confidence) & (confidence <= high))
    truth = np.where(inside[:, None], (1.0 - strength) * probs + strength / len(a), probs)
    return Simulated(probs, _labels(_log(truth), seed), truth)


@arguments(n_samples=_N_SAMPLES, alpha=anything, target=Whole(0), bias=Number())
def classwise(
    n_samples: int = 250,
    alpha: ArrayLike = ALPHA,
    *,
    target: int = 0,
    bias: float = 1.0,
    rng: Rng = None,
) -> Simulated:
    """Simulate a model that predicts one class too often or too rarely, by a constant in log-odds.

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
    a, seed, logs = _drawn(n_samples, alpha, rng)
    if target >= len(a):
        raise wrong("target", target, f"give a class in 0..{len(a) - 1}")
    shifted = logs.copy()
    shifted[:, target] -= bias
    shifted = np.asarray(log_softmax(shifted, axis=1))
    return Simulated(np.exp(logs), _labels(shifted, seed), np.exp(shifted))


@arguments(
    n_samples=_N_SAMPLES,
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
    """Simulate a model whose log-probabilities carry random noise, which makes it overconfident.

    Labels come from g; softmax(log g + scale · noise) is predicted.

    Given the stated probabilities, the noise is not known, so P(Y | stated) is a mean over the g that
    may stand behind it. In log-ratio coordinates the density of Dir(α) is ∏ g_k^α_k up to a constant;
    with standard normal noise ε, the truth is therefore E[q w]/E[w], q = softmax(log stated − scale ·
    ε) and w = ∏ q_k^α_k. Pairs ±ε are used.

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

    Examples
    --------
    >>> from caltest.simulation import noisy
    >>> blurred = noisy(100, scale=1.0, rng=0)
    >>> bool(blurred.probs.max(axis=1).mean() > blurred.truth.max(axis=1).mean())
    True
    """
    a, seed, logs = _drawn(n_samples, alpha, rng)
    noise = generator(seed, *_NOISE).standard_normal(logs.shape)
    stated = np.asarray(softmax(logs + scale * noise, axis=1))
    drawn = _labels(logs, seed)
    if scale == 0.0:
        return Simulated(stated, drawn, stated.copy(), 0.0)
    logits = np.log(np.maximum(stated, _SMALLEST_PROB))
    stream = generator(seed, *_TRUTH)
    truth, largest = np.empty_like(stated), 0.0
    size = max(1, _ENTRIES // (2 * truth_draws * len(a)))
    for rows in blocks(len(stated), size):
        noise = scale * stream.standard_normal((truth_draws, *logits[rows].shape))
        signs = np.stack([logits[rows] - noise, logits[rows] + noise])
        q_logs = log_softmax(signs, axis=-1)
        heights = q_logs @ a
        weights = np.exp(heights - heights.max(axis=(0, 1)))
        weights /= weights.sum(axis=(0, 1))
        q = np.exp(q_logs)
        truth[rows] = np.einsum("sdr,sdrk->rk", weights, q)
        deviations = np.einsum("sdr,sdrk->drk", weights, q - truth[rows])  # pairs are independent
        largest = max(largest, float(np.sqrt((deviations**2).sum(axis=0)).max()))
    return Simulated(stated, drawn, truth, largest)
