"""Simulated predictions and labels with known truth, to plan tests with."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import log_softmax, softmax

from caltest._arguments import Whole, anything, arguments, positive_number, real_array, wrong
from caltest._sums import Array
from caltest.sampling import Rng, generator, seed_of

__all__ = ["Simulated", "tempered"]

#: The α of the published simulations: ten classes, most predictions confident.
ALPHA: tuple[float, ...] = (0.1,) * 10
_SMALLEST_ALPHA = 1e-300  # below, log g is not a number
_POSITIVE = "give at least two positive numbers"

# Streams of random numbers. Keys have three numbers: the nulls use one or two, so data and test may
# share a seed.
_PREDICTIONS, _LABELS = ((0, 0, stream) for stream in range(2))


@dataclass(frozen=True, eq=False)
class Simulated:
    """Simulated predictions and labels, with the true probabilities.

    Attributes
    ----------
    probs : array of shape (n, m)
        Predicted probabilities, rows on the simplex, read-only.
    labels : array of int of shape (n,)
        Observed labels, integers in 0..m−1, read-only.
    truth : array of shape (n, m)
        P(Y = k | probs) row by row, read-only: equal to ``probs`` for a calibrated model.

    Examples
    --------
    >>> from caltest.simulation import tempered
    >>> simulated = tempered(n_samples=1000, temperature=0.5, rng=1)
    >>> simulated.probs.shape, round(simulated.ece, 2)
    ((1000, 10), 0.15)
    """

    probs: Array = field(repr=False)
    labels: NDArray[np.intp] = field(repr=False)
    truth: Array = field(repr=False)

    def __post_init__(self) -> None:
        for array in (self.probs, self.labels, self.truth):
            array.flags.writeable = False

    @property
    def ece(self) -> float:
        """The mean total variation distance between stated and true probabilities over these rows."""
        return float(0.5 * np.abs(self.probs - self.truth).sum(axis=1).mean())


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


def drawn_labels(log_truth: Array, seed: int) -> NDArray[np.intp]:
    """Draw one label per row, as the largest of log p_k + Gumbel noise: never one with p_k = 0."""
    gumbel = generator(seed, *_LABELS).gumbel(size=log_truth.shape)
    return np.asarray(np.argmax(log_truth + gumbel, axis=1))


@arguments(
    n_samples=Whole(1, advice="give a positive integer"), alpha=anything, temperature=positive_number
)
def tempered(
    n_samples: int = 250, alpha: ArrayLike = ALPHA, *, temperature: float, rng: Rng = None
) -> Simulated:
    """Simulate a model whose probabilities are all too extreme, or not extreme enough.

    Draw g ~ Dir(α). Labels come from g, and softmax(log g / t) is predicted: overconfident for t < 1,
    underconfident above.

    Parameters
    ----------
    n_samples : int, default 250
        Number of rows n.
    alpha : array of shape (m,), default (0.1, …, 0.1)
        Dirichlet parameters (m,) of g. Default (0.1, …, 0.1) for ten classes: most predictions are
        confident.
    temperature : float
        t > 0; 1 is calibrated.
    rng : int, SeedSequence or Generator, optional
        Seed, as in :func:`caltest.test`.

    Returns
    -------
    Simulated
        With ``truth`` g, which the predicted probabilities determine.

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
    a, seed = real_array("alpha", alpha, _POSITIVE), seed_of(rng)
    if a.ndim != 1 or len(a) < 2 or not np.all(np.isfinite(a)) or np.any(a < _SMALLEST_ALPHA):
        raise wrong("alpha", alpha, _POSITIVE)
    logs = log_dirichlet(n_samples, a, seed)
    probs = np.asarray(softmax(logs / temperature, axis=1))
    return Simulated(probs, drawn_labels(logs, seed), np.exp(logs))
