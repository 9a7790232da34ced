"""Generative models with a known miscalibration, of the papers and of our own studies.

Every model draws g ~ Dir(α) and returns predictions, observed labels, and the truth, P(Y = k | stated
probabilities). In a *mixture* (Widmann, Lindsten and Zachariah 2019, Appendix J.2) g is stated, and the
label is drawn from g with probability 1 − π and from a fixed β else; M1, M2 and M3 are its members.
*Local*, *classwise* and *noisy* models each go wrong in one way that real models do, as
:func:`caltest.simulation.tempered` does.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import betainc, betaln, log_softmax, softmax

from caltest._sums import Array, blocks
from caltest.sampling import Rng, generator, seed_of
from caltest.simulation import ALPHA, Simulated, drawn_labels, log_dirichlet

Region: TypeAlias = "tuple[float, float] | Callable[[Array], NDArray[np.bool_]]"

_SMALLEST_PROB = 1e-300  # below, a stated probability has lost its logarithm
_ENTRIES = 2**21  # of an array held at a time
_BLOCK = 100  # rows of a block whose pairs are all used

_NOISE, _TRUTH = ((0, 0, stream) for stream in (2, 3))


def _drawn(n: int, alpha: ArrayLike, rng: Rng) -> tuple[Array, int, Array]:
    """Return α, the seed of a data set, and log g of its rows."""
    a, seed = np.asarray(alpha, dtype=np.float64), seed_of(rng)
    return a, seed, log_dirichlet(n, a, seed)


def _log(probs: Array) -> Array:
    with np.errstate(divide="ignore"):
        return np.asarray(np.log(probs))


def equal(n_classes: int) -> Array:
    """Return the published α of ``n_classes`` classes."""
    return np.full(n_classes, ALPHA[0])


def _beta(beta: ArrayLike | None, m: int) -> Array:
    """Return β; None is uniform."""
    return np.full(m, 1.0 / m) if beta is None else np.asarray(beta, dtype=np.float64)


# ------------------------------------------------------------------ mixtures


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

    """
    return mixture(n_samples, equal(n_classes), pi=0.0, rng=rng)


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

    """
    return mixture(n_samples, equal(n_classes), pi=0.5, beta=np.eye(1, n_classes)[0], rng=rng)


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

    """
    return mixture(n_samples, equal(n_classes), pi=1.0, rng=rng)


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

    """
    a, seed, logs = _drawn(n_samples, alpha, rng)
    probs, b = np.exp(logs), _beta(beta, len(a))
    truth = (1.0 - pi) * probs + pi * b
    return Simulated(probs, drawn_labels(_log(truth), seed), truth)


class Estimate(NamedTuple):
    """A number and its standard error, 0 where it is exact."""

    value: float
    standard_error: float


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

    """
    a = np.asarray(alpha, dtype=np.float64)
    b = _beta(beta, len(a))
    total = a.sum()
    parts = b * betainc(a, total - a, b) - a / total * betainc(a + 1.0, total - a, b)
    return float(pi * parts.sum())


def mean_tv_dirichlet(alpha: ArrayLike) -> float:
    r"""Return the mean total variation distance of two draws from a Dirichlet, of positive parameters.

    With :math:`\alpha_0 = \sum_i \alpha_i` and the beta function B, it is

    .. math:: \frac{2 B(\alpha_0, \alpha_0)}{\alpha_0}
              \sum_i \frac{1}{B(\alpha_i, \alpha_i) B(\alpha_0 - \alpha_i, \alpha_0 - \alpha_i)},

    half the sum of the Gini mean differences of the beta distributed components.

    References
    ----------
    Widmann, Lindsten and Zachariah (2019). Calibration tests in multi-class classification: a
    unifying framework. NeurIPS 32, Appendix J.2.

    Examples
    --------
    Two uniform variables on [0, 1] are 1/3 apart in the mean:

    >>> round(mean_tv_dirichlet([1.0, 1.0]), 12)
    0.333333333333
    """
    a = np.asarray(alpha, dtype=np.float64)
    total = a.sum()
    logs = betaln(total, total) - betaln(a, a) - betaln(total - a, total - a)
    return float(2 / total * np.exp(logs).sum())


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

    """
    a = np.asarray(alpha, dtype=np.float64)
    b = _beta(beta, len(a))
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

    """
    a, seed, logs = _drawn(n_samples, alpha, rng)
    probs = np.exp(logs)
    confidence = probs.max(axis=1)
    low, high = (0.0, 1.0) if callable(region) else region
    inside = region(probs) if callable(region) else (confidence >= low) & (confidence <= high)
    truth = np.where(inside[:, None], (1.0 - strength) * probs + strength / len(a), probs)
    return Simulated(probs, drawn_labels(_log(truth), seed), truth)


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

    """
    _, seed, logs = _drawn(n_samples, alpha, rng)
    shifted = logs.copy()
    shifted[:, target] -= bias
    shifted = np.asarray(log_softmax(shifted, axis=1))
    return Simulated(np.exp(logs), drawn_labels(shifted, seed), np.exp(shifted))


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
        With ``truth`` as a mean over these draws.

    """
    a, seed, logs = _drawn(n_samples, alpha, rng)
    noise = generator(seed, *_NOISE).standard_normal(logs.shape)
    stated = np.asarray(softmax(logs + scale * noise, axis=1))
    drawn = drawn_labels(logs, seed)
    if scale == 0.0:
        return Simulated(stated, drawn, stated.copy())
    logits = np.log(np.maximum(stated, _SMALLEST_PROB))
    stream = generator(seed, *_TRUTH)
    truth = np.empty_like(stated)
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
    return Simulated(stated, drawn, truth)
