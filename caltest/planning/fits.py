"""Truths behind stated probabilities: assumed, or fitted to the labels of a pilot."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import brentq, isotonic_regression, minimize_scalar
from scipy.special import chdtri, expit, logit, softmax

from caltest._arguments import choose
from caltest.cox import Recalibration, recalibration
from caltest.data import Rows, Sample
from caltest.exceptions import Argument, InputError
from caltest.testing import test
from caltest.text.numbers import points

# ------------------------------------------------------------------ truths
#
# All functions return probabilities of the shape of those stated. A probability of 0 stays 0 under a
# temperature and a bias.


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


# ------------------------------------------------------------------ fits
#
# Every fit of one or two numbers has a careful end: of what a likelihood ratio does not reject at 5%,
# what is nearest to calibrated. All functions return probabilities of the shape of those stated.

#: What is asked for where a fit's careful end is, and what is advised where there is no fit.
CAREFUL, _STATED = Argument("careful", True), Argument("temperature", 0.8)

_STEEPEST = 100.0  # temperature that is looked for, and one over it
_LEVEL = 0.05  # of the intervals of fits, and of the tests whether there is anything to fit
_ISOTONIC = (
    "Isotonic regression bends to every accident of the pilot, so that the power is overstated, much "
    "so if the pilot is small; a stated error, or recalibration='logistic', is safer."
)


def by_temperature(pilot: Sample) -> Truth:
    """Fit one temperature by maximum likelihood: the truth is stated^t, renormalised."""
    stated, labels = pilot.rows.probs, pilot.labels
    possible = stated[np.arange(len(labels)), labels] > 0.0
    t, low, high = _fitted_temperature(stated[possible], labels[possible])
    interval = f"(95% interval {low:.3g} to {high:.3g})"
    fit = f"a temperature of {t:.3g} {interval}"
    careful = None
    if not low <= 1.0 <= high:
        end = low if low > 1.0 else high
        clause = f"a temperature of {end:.3g}, the careful end of {t:.3g} {interval}"
        careful = Truth(tempered(stated, end), f"as fitted to the pilot, {clause}")
    notes: tuple[str, ...] = _noise(f"{fit} holds 1", stated, careful)
    left_out = int(np.count_nonzero(~possible))
    if left_out:
        notes = (
            f"{left_out} of {len(labels)} labels of the pilot were called impossible; the temperature "
            "was fitted to the other rows, and no simulated label is an impossible one.",
            *notes,
        )
    return Truth(tempered(stated, t), f"as fitted to the pilot, {fit}", notes, careful)


def _fitted_temperature(stated: Array, labels: NDArray[np.intp]) -> tuple[float, float, float]:
    """Return t and its 95% interval: what a likelihood ratio does not reject."""
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
            "should be; state an error instead, {instance} for instance.",
            instance=_STATED,
        )
    most = surprise(log_t) + 0.5 * _allowed(1)
    low, high = (_crossing(surprise, most, log_t, side * end) for side in (-1.0, 1.0))
    return float(np.exp(log_t)), float(np.exp(low)), float(np.exp(high))


def _allowed(degrees: int) -> float:
    """Return how large twice a difference of log-likelihoods may be: a quantile of χ²."""
    return float(chdtri(degrees, _LEVEL))


def _crossing(function: Callable[[float], float], height: float, start: float, end: float) -> float:
    """Return where a function, lower at the start, reaches the height; the end if it does not."""
    if function(end) <= height:
        return end
    return float(brentq(lambda x: function(x) - height, start, end))


def by_line(pilot: Sample) -> Truth:
    """Fit logit P(y = 1) = a + b · logit p (Cox); predictions of 0 and 1 stay."""
    _check_two(pilot.rows, "logistic")
    found: Recalibration = recalibration(pilot.rows, pilot.labels)
    a, b = found.intercept, 1.0 if np.isnan(found.slope) else found.slope
    if np.isnan(a):
        raise InputError(
            "no logistic recalibration fits the pilot's labels, which are separated by the "
            "probabilities or all of one class; state an error instead, {instance} for instance.",
            instance=_STATED,
        )
    p = pilot.rows.probs[:, 1]
    fit = _line_text(a, b)
    careful, degrees = None, found.test_both.degrees
    closer = _closest_line(p, pilot.labels, (a, b), degrees)
    if closer is not None:
        clause = f"as fitted to the pilot, {_line_text(*closer)}, the careful end of {fit}"
        careful = Truth(_on_line(p, *closer), clause)
    finding = f"{fit} may be 0 + 1 · logit p (p = {found.test_both.pvalue:.2g})"
    if found.test_both.statistic == np.inf:
        finding = f"{fit} may be 0 + 1 · logit p, where predictions are not 0 or 1"
    notes = _noise(finding, pilot.rows.probs, careful)
    own = found.warnings[len(pilot.rows.notes) :]  # the first are those of the predictions
    return Truth(_on_line(p, a, b), f"as fitted to the pilot, {fit}", (*own, *notes), careful)


def _line_text(a: float, b: float) -> str:
    return f"logit P = {a:.3g} {'+' if b >= 0.0 else '−'} {abs(b):.3g} · logit p"


def _on_line(p: Array, a: float, b: float) -> Array:
    """Return the two columns of the truth on a line; predictions of 0 and 1 stay."""
    inside = (p > 0.0) & (p < 1.0)
    truth = p.copy()
    truth[inside] = expit(a + b * logit(p[inside]))
    return np.column_stack([1.0 - truth, truth])


def _closest_line(
    p: Array, labels: NDArray[np.intp], line: tuple[float, float], degrees: int
) -> tuple[float, float] | None:
    """Return the line nearest to calibrated, on the way from the fit, that is not rejected at 5%.

    None: to be calibrated is not rejected either.
    """
    inside = (p > 0.0) & (p < 1.0)
    logits, signs = logit(p[inside]), np.where(labels[inside] == 1, -1.0, 1.0)

    def between(share: float) -> tuple[float, float]:
        return share * line[0], 1.0 + share * (line[1] - 1.0)

    def surprise(share: float) -> float:
        a, b = between(share)
        return float(np.logaddexp(0.0, signs * (a + b * logits)).sum())

    share = _crossing(surprise, surprise(1.0) + 0.5 * _allowed(max(degrees, 1)), 1.0, 0.0)
    return between(share) if share > 0.0 else None


def by_isotonic(pilot: Sample) -> Truth:
    """Fit the curve that never falls and has the least squared error."""
    _check_two(pilot.rows, "isotonic")
    scores, group = np.unique(pilot.rows.probs[:, 1], return_inverse=True)
    sizes = np.bincount(group.reshape(-1)).astype(np.float64)
    events = np.bincount(group.reshape(-1), weights=pilot.labels, minlength=len(scores))
    fit = np.clip(isotonic_regression(events / sizes, weights=sizes).x, 0.0, 1.0)[group.reshape(-1)]
    pair = np.column_stack([1.0 - fit, fit])
    same = test(pilot.rows, pilot.labels, "mcb_log", n_resamples=199, rng=0).pvalue
    finding = f"an exact test of what isotonic regression gains has p = {same:.2g}"
    notes = (_undecided(finding), _ISOTONIC) if same > _LEVEL else (_ISOTONIC,)
    return Truth(pair, "as fitted to the pilot, an isotonic regression", notes)


def _check_two(predictions: Rows, name: str) -> None:
    if predictions.n_classes != 2:
        raise InputError(
            "{given} is for two classes, and the pilot has {found}; give 'temperature'.",
            given=Argument("recalibration", name),
            found=predictions.n_classes,
        )


def _undecided(finding: str) -> str:
    return (
        f"The pilot does not show that its model is miscalibrated: {finding}. What is planned for "
        "may be noise; state the smallest error that matters instead (temperature=, bias=, "
        "overconfidence=)."
    )


def _noise(finding: str, stated: Array, careful: Truth | None) -> tuple[str, ...]:
    """Say what an estimate is worth: noise of the pilot is taken for miscalibration."""
    if careful is None:
        return (_undecided(finding),)
    error = points(float(f"{mean_distance(stated, careful.probs):.2g}"))
    return (
        "A fit takes some of the pilot's noise for miscalibration, so that the power is overstated, "
        "the more so the smaller the pilot, and no interval of the simulation knows it. The end of the "
        f"fit's 95% interval nearest to calibrated has an error of {error}: careful=True (--careful) "
        "plans for that.",
    )


#: Ways to estimate, by name.
RECALIBRATIONS = {"temperature": by_temperature, "logistic": by_line, "isotonic": by_isotonic}


def estimated(known: Sample | None, recalibration: str | None, careful: bool) -> Truth:
    """Return the truth as the pilot's labels tell it, or at the careful end of what they tell."""
    if recalibration is not None:
        choose("recalibration", recalibration, RECALIBRATIONS)
    if known is None:
        raise InputError(
            "{argument} is {found}, which needs the pilot's labels; give them.",
            argument="recalibration",
            found=repr(recalibration),
        )
    kind = recalibration or ("logistic" if known.rows.n_classes == 2 else "temperature")
    made = RECALIBRATIONS[kind](known)
    if not careful:
        return made
    if kind == "isotonic":
        raise InputError(
            "{careful} needs a fit with an interval, and an isotonic regression has none; give "
            "{other}.",
            careful=CAREFUL,
            other=Argument("recalibration", "logistic"),
        )
    if made.careful is None:
        raise InputError(
            "{careful} has nothing to plan for: the pilot does not show that its model is "
            "miscalibrated; state the smallest error that matters instead, {instance} for instance.",
            careful=CAREFUL,
            instance=_STATED,
        )
    return made.careful._replace(notes=made.notes[:-1])  # the last says that there is this
