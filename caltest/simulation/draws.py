"""Simulated data, how predictions and labels are drawn, and checks of parameters."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import log_softmax

from caltest._arguments import Number, Whole, real_array
from caltest._sampling import generator
from caltest._visible import quoted
from caltest.exceptions import InputError

Array: TypeAlias = NDArray[np.float64]

#: The α of the published simulations: ten classes, most predictions confident.
ALPHA: tuple[float, ...] = (0.1,) * 10

N_SAMPLES = Whole(1, advice="give a positive integer")
N_CLASSES = Whole(2, 100_000, "give an integer of at least 2")
SHARE = Number(0.0, 1.0, "[]", "give a number in [0, 1]")

_SMALLEST_ALPHA = 1e-300  # below, log g is no number

# Streams of random numbers. Three numbers a key: the nulls use one or two, so that data and test may
# share a seed.
_PREDICTIONS, _LABELS, NOISE, TRUTH = ((0, 0, stream) for stream in range(4))


@dataclass(frozen=True, eq=False)
class Simulated:
    """Predictions, labels and the truth.

    Attributes
    ----------
    probs
        What the model states, (n, m), rows on the simplex, read-only.
    labels
        What came true, (n,) integers in 0..m−1, read-only.
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


def labels(log_truth: Array, seed: int) -> NDArray[np.intp]:
    """Draw a label a row, as the largest of log p_k + Gumbel noise: never one with p_k = 0."""
    gumbel = generator(seed, *_LABELS).gumbel(size=log_truth.shape)
    return np.asarray(np.argmax(log_truth + gumbel, axis=1))


def log(probs: Array) -> Array:
    """Return log p, −inf where p is 0."""
    with np.errstate(divide="ignore"):
        return np.asarray(np.log(probs))


def equal(n_classes: int) -> Array:
    """Return the published α of ``n_classes`` classes."""
    return np.full(n_classes, ALPHA[0])


def checked_alpha(alpha: ArrayLike) -> Array:
    """Return α as an array of positive numbers."""
    a = real_array("alpha", alpha, "give at least two positive numbers")
    if a.ndim != 1 or len(a) < 2 or not np.all(np.isfinite(a)) or np.any(a < _SMALLEST_ALPHA):
        raise InputError(f"alpha is {quoted(alpha)}; give at least two positive numbers.")
    return a


def checked_beta(beta: ArrayLike | None, m: int) -> Array:
    """Return β as an array of m probabilities; None is uniform."""
    if beta is None:
        return np.full(m, 1.0 / m)
    b = real_array("beta", beta, f"give {m} probabilities that sum to 1")
    if b.shape != (m,) or not np.all(b >= 0) or abs(b.sum() - 1.0) > 1e-9:
        raise InputError(
            f"beta is {quoted(beta)}; give {m} probabilities that sum to 1, as alpha has {m}."
        )
    return b
