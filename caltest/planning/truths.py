"""What is true where a model states something else: errors that are stated, and errors as estimated.

All functions return probabilities of the shape of those stated. A probability of 0 stays 0 under a
temperature and a bias.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import isotonic_regression, minimize_scalar
from scipy.special import expit, logit, ndtri, softmax

from caltest._prose import points
from caltest.cox import Recalibration, recalibration
from caltest.data import Predictions, Sample
from caltest.exceptions import InputError

Array = NDArray[np.float64]

_STEEPEST = 100.0  # temperature that is looked for, and one over it
_ISOTONIC = (
    "Isotonic regression bends to every accident of the pilot, so that the power is overstated, much "
    "so if the pilot is small; a stated error, or recalibration='logistic', is safer."
)


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
    """

    probs: Array
    assumed: str
    notes: tuple[str, ...] = ()


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
    truth = others * ((1.0 - right) / others.sum(axis=1))[:, None]
    truth[rows, top] = right
    surely = "too surely" if excess >= 0.0 else "not surely enough"
    return Truth(truth, f"the top class is stated {points(abs(excess))} {surely}")


# ------------------------------------------------------------------ errors as estimated


def by_temperature(pilot: Sample) -> Truth:
    """Fit one temperature by maximum likelihood: the truth is stated^t, renormalised."""
    stated, labels = pilot.predictions.probs, pilot.labels
    possible = stated[np.arange(len(labels)), labels] > 0.0
    t, error = _fitted_temperature(stated[possible], labels[possible])
    low, high = (t + side * ndtri(0.975) * error for side in (-1.0, 1.0))
    fit = f"a temperature of {t:.3g} (95% interval {low:.3g} to {high:.3g})"
    notes: tuple[str, ...] = _noise(f"{fit} holds 1", bool(low <= 1.0 <= high))
    left_out = int(np.count_nonzero(~possible))
    if left_out:
        notes = (
            f"{left_out} of {len(labels)} labels of the pilot were called impossible; the temperature "
            "was fitted to the other rows, and no simulated label is an impossible one.",
            *notes,
        )
    return Truth(tempered(stated, t), f"as fitted to the pilot, {fit}", notes)


def _fitted_temperature(stated: Array, labels: NDArray[np.intp]) -> tuple[float, float]:
    """Return t and its standard error."""
    with np.errstate(divide="ignore"):
        logs = np.log(stated)
    finite = np.where(stated > 0.0, logs, 0.0)
    own = finite[np.arange(len(labels)), labels].sum()

    def surprise(log_t: float) -> float:
        heights = np.exp(log_t) * logs
        highest = heights.max(axis=1, keepdims=True)
        return float((highest[:, 0] + np.log(np.exp(heights - highest).sum(axis=1))).sum()) - float(
            np.exp(log_t) * own
        )

    end = np.log(_STEEPEST)
    log_t = float(minimize_scalar(surprise, bounds=(-end, end), method="bounded").x)
    weights = softmax(np.exp(log_t) * logs, axis=1)
    means = (weights * finite).sum(axis=1, keepdims=True)
    information = float((weights * (finite - means) ** 2).sum())
    if abs(log_t) > 0.99 * end or information < 1e-9:
        raise InputError(
            "no temperature fits the pilot's labels: they do not tell how steep the probabilities "
            "should be; state an error instead, temperature=0.8 for instance."
        )
    return float(np.exp(log_t)), 1.0 / float(np.sqrt(information))


def by_line(pilot: Sample) -> Truth:
    """Fit logit P(y = 1) = a + b · logit p (Cox); predictions of 0 and 1 stay."""
    _check_two(pilot.predictions, "logistic")
    found: Recalibration = recalibration(pilot.predictions, pilot.labels)
    a, b = found.intercept, 1.0 if np.isnan(found.slope) else found.slope
    if np.isnan(a):
        raise InputError(
            "no logistic recalibration fits the pilot's labels, which are separated by the "
            "probabilities or all of one class; state an error instead, temperature=0.8 for instance."
        )
    p = pilot.predictions.probs[:, 1]
    inside = (p > 0.0) & (p < 1.0)
    truth = p.copy()
    truth[inside] = expit(a + b * logit(p[inside]))
    fit = f"logit P = {a:.3g} {'+' if b >= 0.0 else '−'} {abs(b):.3g} · logit p"
    same = found.test_both.pvalue > 0.05
    notes = _noise(f"{fit} may be 0 + 1 · logit p (p = {found.test_both.pvalue:.2g})", same)
    pair = np.column_stack([1.0 - truth, truth])
    return Truth(pair, f"as fitted to the pilot, {fit}", (*found.warnings, *notes))


def by_isotonic(pilot: Sample) -> Truth:
    """Fit the curve that never falls and has the least squared error."""
    _check_two(pilot.predictions, "isotonic")
    scores, group = np.unique(pilot.predictions.probs[:, 1], return_inverse=True)
    sizes = np.bincount(group.reshape(-1)).astype(np.float64)
    events = np.bincount(group.reshape(-1), weights=pilot.labels, minlength=len(scores))
    fit = np.clip(isotonic_regression(events / sizes, weights=sizes).x, 0.0, 1.0)[group.reshape(-1)]
    pair = np.column_stack([1.0 - fit, fit])
    return Truth(pair, "as fitted to the pilot, an isotonic regression", (_ISOTONIC,))


def _check_two(predictions: Predictions, name: str) -> None:
    if predictions.n_classes != 2:
        raise InputError(
            f"recalibration={name!r} is for two classes, and the pilot has {predictions.n_classes}; "
            "give 'temperature'."
        )


def _noise(finding: str, undecided: bool) -> tuple[str, ...]:
    """Say what an estimate is worth: noise of the pilot is taken for miscalibration."""
    if undecided:
        return (
            f"The pilot does not show that its model is miscalibrated: {finding}. What is planned for "
            "may be noise; state the smallest error that matters instead (temperature=, bias=, "
            "overconfidence=).",
        )
    return (
        "A fit takes some of the pilot's noise for miscalibration, so that the power is overstated "
        "somewhat, more so if the pilot is small.",
    )


#: Ways to estimate, by name.
RECALIBRATIONS = {"temperature": by_temperature, "logistic": by_line, "isotonic": by_isotonic}
