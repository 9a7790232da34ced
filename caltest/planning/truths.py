"""What is true where a model states something else: errors that are stated.

All functions return probabilities of the shape of those stated. A probability of 0 stays 0 under a
temperature and a bias.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import softmax

from caltest.text.numbers import points

Array = NDArray[np.float64]


class Truth(NamedTuple):
    """What is true instead of what is stated.

    Attributes
    ----------
    probs
        P(Y = k | stated), (n, m).
    assumed
        What was assumed, as a clause.
    notes
        Sentences a reader should know.
    careful
        Of a fit, the truth at the end of its 95% interval that is nearest to calibrated; None where
        there is no such end: nothing was fitted, or the interval holds what the model states.
    """

    probs: Array
    assumed: str
    notes: tuple[str, ...] = ()
    careful: Truth | None = None


def mean_distance(stated: Array, truth: Array) -> float:
    """Return the mean total variation distance between rows of probabilities, (N, m) each."""
    distance = float(0.5 * np.abs(stated - truth).sum(axis=1).mean())
    return distance if distance > 1e-12 else 0.0  # no more than rounding


# ------------------------------------------------------------------ stated errors


def tempered(stated: Array, temperature: float) -> Array:
    """Return the truth g of a model that states softmax(log g / t): stated^t, renormalised.

    Examples
    --------
    >>> tempered(np.array([[0.5, 0.25, 0.25]]), 2.0).round(3).tolist()
    [[0.667, 0.167, 0.167]]
    """
    with np.errstate(divide="ignore"):
        return np.asarray(softmax(temperature * np.log(stated), axis=1))


def of_temperature(stated: Array, temperature: float) -> Truth:
    """Return the truth, and say what it means."""
    kind = "over-confident" if temperature < 1.0 else "under-confident"
    kind = "calibrated" if temperature == 1.0 else kind
    clause = f"stated logits are the true ones divided by {temperature:.4g} ({kind})"
    return Truth(tempered(stated, temperature), clause)


def of_bias(stated: Array, column: int, bias: float, name: str) -> Truth:
    """Return the truth if the log-odds of one class are stated too high by ``bias``.

    The other classes share what is left in proportion, as stated.

    Examples
    --------
    >>> of_bias(np.array([[0.5, 0.5]]), 1, np.log(3.0), "class 1").probs.round(3).tolist()
    [[0.75, 0.25]]
    """
    with np.errstate(divide="ignore"):
        logs = np.log(stated)
    logs[:, column] -= bias
    too = "high" if bias >= 0.0 else "low"
    clause = f"the log-odds of {name} are stated {abs(bias):.4g} too {too}"
    return Truth(np.asarray(softmax(logs, axis=1)), clause)


def of_overconfidence(stated: Array, excess: float) -> Truth:
    """Return the truth if the top class is stated too surely by ``excess``; below 0, not surely enough.

    No probability leaves [0, 1]. The other classes change in proportion, and alike if they are all 0.

    Examples
    --------
    >>> of_overconfidence(np.array([[0.5, 0.25, 0.25], [1.0, 0.0, 0.0]]), 0.1).probs.round(3).tolist()
    [[0.4, 0.3, 0.3], [0.9, 0.05, 0.05]]
    """
    rows, top = np.arange(len(stated)), stated.argmax(axis=1)
    right = np.clip(stated[rows, top] - excess, 0.0, 1.0)
    others = stated.copy()
    others[rows, top] = 0.0
    empty = others.sum(axis=1) == 0.0
    others[empty] = 1.0
    others[rows, top] = 0.0
    truth = others / others.sum(axis=1, keepdims=True) * (1.0 - right)[:, None]
    truth[rows, top] = right
    surely = "too surely" if excess >= 0.0 else "not surely enough"
    return Truth(truth, f"the top class is stated {points(abs(excess))} {surely}")
