"""Pilot sets: the predictions of a model, and what is assumed or estimated to be true of them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Literal, TypeAlias

import numpy as np
from scipy.optimize import brentq, minimize_scalar
from scipy.special import chdtri, expit, logit, softmax

from caltest import data
from caltest._arguments import (
    Number,
    arguments,
    check_takes,
    choose,
    flag,
    positive_number,
    real_array,
    whole_number,
)
from caltest._numbers import points
from caltest._sums import Array
from caltest._visible import quoted
from caltest.binning import DistinctScores
from caltest.cox import recalibration as fitted_line
from caltest.data import Rows, Sample, sample
from caltest.data.rows import on_average_one, refuse_clusters
from caltest.exceptions import Argument, InputError, Phrase
from caltest.laws.classes import LabelSampler
from caltest.sampling import seed_of
from caltest.simulation import Simulated
from caltest.testing import test

Kind: TypeAlias = Literal["temperature", "logistic", "isotonic"]
Assumption: TypeAlias = "Callable[[Array], object] | Array"

#: What is asked for where a fit's careful end is, and what is advised where there is no fit.
_CAREFUL, _STATED = Argument("careful", True), Argument("temperature", 0.8)
_WAYS = Phrase(
    "{temperature}, {bias}, {overconfidence} or, with the pilot's labels, {recalibration}",
    {
        "temperature": _STATED,
        "bias": Argument("bias", 0.5),
        "overconfidence": Argument("overconfidence", 0.05),
        "recalibration": Argument("recalibration", "temperature"),
    },
)


@dataclass(frozen=True, eq=False)
class Pilot:
    """A model to plan with: its predictions, and what is assumed of the truth.

    Make it with :func:`pilot`.

    Called with a number of rows and a generator, it draws a data set: rows with replacement, with their
    weights, and of each a label from its truth. So it is a model as :func:`caltest.power` takes them.

    Attributes
    ----------
    predictions
        The pilot's predictions, of N rows and m classes.
    truth
        P(Y = k | predictions), (N, m), read-only.
    assumed
        The assumption in words.
    notes
        Sentences a reader of a plan should know.
    """

    predictions: Rows
    truth: Array = field(repr=False)
    assumed: str
    notes: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        self.truth.flags.writeable = False

    @property
    def error(self) -> float:
        """By how much it is assumed to be wrong: the mean total variation distance to the truth."""
        return _mean_distance(self.predictions.probs, self.truth, self.predictions.weights)

    def __call__(self, n_samples: int, *, rng: np.random.Generator) -> Sample:
        """Draw a data set of ``n_samples`` rows."""
        rows = rng.integers(0, self.predictions.n_samples, n_samples)
        labels = LabelSampler.of(self.truth[rows], seed_of(rng)).draw(0, 1)[0]
        drawn = self.predictions.take(rows)
        if not drawn.are_alike:
            drawn = replace(drawn, weights=on_average_one(drawn.weights))
        return Sample(drawn, labels.astype(np.intp))


@arguments(
    temperature=positive_number,
    bias=Number(advice="give log-odds, such as 0.5"),
    overconfidence=Number(-1.0, 1.0, advice="give a difference of probabilities, 0.05 for five points"),
    careful=flag,
)
def pilot(
    probs: object,
    labels: object = None,
    *,
    weights: object = None,
    temperature: float | None = None,
    bias: float | None = None,
    target: int | str | None = None,
    overconfidence: float | None = None,
    truth: Assumption | None = None,
    recalibration: Kind | None = None,
    careful: bool = False,
) -> Pilot:
    """Describe the model to plan for: its predictions, and how wrong they are assumed to be.

    Make one assumption: state an error, such as the smallest one that matters, or give a pilot
    with labels, whose own error is estimated by recalibration.

    Parameters
    ----------
    probs
        Predictions, in any form that :func:`caltest.data.sample` takes, or its result, or a
        :class:`caltest.simulation.Simulated`, whose known truth is used.
    labels
        Observed classes, (N,). Needed for ``recalibration`` only. Default None: not known.
    weights
        How much each row counts, (N,), as in :func:`caltest.test`. Rows to come are assumed to have
        weights like these: every row is drawn with its own, and the tests planned take them. They go
        with an error that you state, because a fit counts all rows alike. Default None: those of
        ``probs``, if it has any; otherwise all rows have equal weight.
    temperature
        t > 0: predicted logits are the true ones divided by t, as in
        :func:`caltest.simulation.tempered`. Below 1 the model is overconfident, above 1
        underconfident.
    bias
        How much too high the predicted log-odds of class ``target`` are; negative: too low.
    target
        Column or name of the class with the bias. Default None: class 1 of two.
    overconfidence
        How much too high the confidence in the top class is: 0.05 for five points; negative: too
        low. All probabilities stay within [0, 1].
    truth
        The true probabilities P(Y = k | probs), (N, m), or P(Y = 1 | probs), (N,), for two
        classes; or a function that takes predictions (N, m) and returns them.
    recalibration
        How to estimate the pilot's own error: "temperature" (maximum likelihood of t), "logistic"
        (Cox's intercept and slope; two classes) or "isotonic" (two classes). Default None: if
        nothing else is assumed and there are labels, "logistic" for two classes and "temperature"
        for more.
    careful
        With "temperature" or "logistic", assume the end of the 95% interval that is nearest to
        calibrated, so that noise in the pilot does not make the plan too optimistic: of 100 such
        plans few promise too much. Default False: the best fit, whose power is overstated.

    Returns
    -------
    Pilot
        ``error`` describes how wrong the model is assumed to be, and ``notes`` lists caveats.

    Raises
    ------
    InputError
        If the input is not a set of predictions, or there is not exactly one usable assumption.

    Notes
    -----
    The pilot's labels are never redrawn together with their predictions. That would treat the
    labels as the truth, each with probability 1, and the pilot's noise as miscalibration, so every
    model would look easy to reject. A fit of one or two numbers absorbs little of the noise, an
    isotonic regression much.

    Examples
    --------
    >>> import caltest
    >>> from caltest.planning import pilot
    >>> digits = caltest.datasets.load_digits_predictions("logistic_regression")
    >>> sure = pilot(digits.probs, overconfidence=0.05)
    >>> sure.assumed, round(sure.error, 3)
    ('the confidence in the top class is 5 points too high', 0.05)
    >>> own = pilot(digits.probs, digits.labels)
    >>> own.assumed
    'as fitted to the pilot, a temperature of 1.15 (95% interval 1.04 to 1.29)'
    """
    if isinstance(probs, Simulated):
        if labels is not None or truth is not None:
            raise InputError("simulated data know their labels and their truth; give these data alone.")
        truth, probs = probs.truth, probs.probs
    if isinstance(probs, Sample):
        if labels is not None:
            raise InputError("the pilot is a Sample, which has labels; give no others.")
        labels, probs = probs.labels, probs.rows
    known = None if labels is None else sample(probs, labels, weights=weights)
    predictions = data.predictions(probs, weights) if known is None else known.rows
    refuse_clusters(predictions.clusters, "a pilot")
    if bias is None and target is not None:
        raise InputError(
            "{argument} is {found}, which is the class of a bias; give {bias} too, or leave it out.",
            argument="target",
            found=quoted(target),
            bias=Argument("bias", 0.5),
        )
    errors: dict[str, tuple[Any, Callable[..., tuple[Array, str]]]] = {
        "temperature": (temperature, _of_temperature),
        "bias": (bias, partial(_of_bias, target=target)),
        "overconfidence": (overconfidence, _of_overconfidence),
        "truth": (truth, _as_given),
    }
    stated = [name for name, (value, _) in errors.items() if value is not None]
    if recalibration is not None or (not stated and known is not None):
        stated.append("recalibration")
    if len(stated) != 1:
        both = " and ".join(f"{{{name}}}" for name in stated)
        found = f"both {both} are assumed" if stated else "nothing is assumed to be true"
        raise InputError(
            "{found} of the pilot; give one of {ways}.",
            found=Phrase(found, {name: Argument(name, ...) for name in stated}),
            ways=_WAYS,
        )
    (way,) = stated
    if careful and way != "recalibration":
        raise InputError(
            "{careful} is for an error as fitted, and {way} states one; give one.",
            careful=_CAREFUL,
            way=Argument(way, ...),
        )
    notes = predictions.notes
    if not predictions.are_alike:
        if way == "recalibration":
            raise InputError(
                "the pilot has weights, and a fit to its labels counts all rows alike; state an error, "
                "{instance} for instance, or leave the weights out.",
                instance=Argument("overconfidence", 0.05),
            )
        share = predictions.effective / predictions.n_samples
        notes += (
            "Rows to come are assumed to have weights like those of the pilot, with which 100 rows are "
            f"worth {100 * share:.0f} of equal weight.",
        )
    if way == "recalibration":
        true, assumed, of_fit = _estimated(known, recalibration, careful)
        return Pilot(predictions, true, assumed, (*notes, *of_fit))
    value, truth_of = errors[way]
    return Pilot(predictions, *truth_of(predictions, value), notes)


def _mean_distance(stated: Array, truth: Array, weights: Array | None = None) -> float:
    """Return the mean total variation distance between rows of probabilities, (N, m) each."""
    distance = float(0.5 * np.average(np.abs(stated - truth).sum(axis=1), weights=weights))
    return distance if distance > 1e-12 else 0.0  # no more than rounding


# ------------------------------------------------------------------ stated errors
#
# All functions return probabilities of the shape of those stated, and the assumption as a clause. A
# probability of 0 stays 0 under a temperature and a bias.


def _tempered(stated: Array, temperature: float) -> Array:
    """Return the truth g of a model that states softmax(log g / t): stated^t, renormalised."""
    with np.errstate(divide="ignore"):
        return np.asarray(softmax(temperature * np.log(stated), axis=1))


def _of_temperature(predictions: Rows, temperature: float) -> tuple[Array, str]:
    kind = "overconfident" if temperature < 1.0 else "underconfident"
    kind = "calibrated" if temperature == 1.0 else kind
    clause = f"stated logits are the true ones divided by {temperature:.4g} ({kind})"
    return _tempered(predictions.probs, temperature), clause


def _of_bias(predictions: Rows, bias: float, target: int | str | None) -> tuple[Array, str]:
    """Lower the log-odds of one class; the others share what is left in proportion, as stated."""
    m, names = predictions.n_classes, predictions.classes or ()
    column = whole_number(target)
    if target is None and m == 2:
        column = 1
    elif isinstance(target, str) and target in names:
        column = names.index(target)
    if column is None or column >= m:
        raise InputError(
            "{what}, and the pilot has {m} classes; give a column from 0 to {last}{named}.",
            what=Phrase(
                "a bias needs the class it is of ({target})", {"target": Argument("target", ...)}
            )
            if target is None
            else Phrase("{target} is {found}", {"target": Argument("target"), "found": quoted(target)}),
            m=m,
            last=m - 1,
            named=" or a class's name" if names else "",
        )
    with np.errstate(divide="ignore"):
        logs = np.log(predictions.probs)
    logs[:, column] -= bias
    name = names[column] if names else column
    too = "high" if bias >= 0.0 else "low"
    clause = f"the log-odds of class {name} are stated {abs(bias):.4g} too {too}"
    return np.asarray(softmax(logs, axis=1)), clause


def _of_overconfidence(predictions: Rows, excess: float) -> tuple[Array, str]:
    """Return the truth if the confidence in the top class is too high by ``excess``; below 0, too low.

    No probability leaves [0, 1]. The other classes change in proportion, and alike if they are all 0.
    """
    stated = predictions.probs
    rows, top = np.arange(len(stated)), stated.argmax(axis=1)
    right = np.clip(stated[rows, top] - excess, 0.0, 1.0)
    others = stated.copy()
    others[rows, top] = 0.0
    empty = others.sum(axis=1) == 0.0
    others[empty] = 1.0
    others[rows, top] = 0.0
    truth = others / others.sum(axis=1, keepdims=True) * (1.0 - right)[:, None]
    truth[rows, top] = right
    direction = "too high" if excess >= 0.0 else "too low"
    return truth, f"the confidence in the top class is {points(abs(excess))} {direction}"


def _as_given(predictions: Rows, truth: Assumption) -> tuple[Array, str]:
    given: object = truth
    if callable(truth) and not isinstance(truth, type):
        check_takes("truth", truth, "probs")
        given = truth(predictions.probs.copy())
    read = np.array(real_array("truth", given, "give probabilities (N, m), or a function"))
    if predictions.n_classes == 2 and read.shape == (predictions.n_samples,):
        read = np.column_stack([1.0 - read, read])
    if read.shape != predictions.probs.shape:
        raise InputError(
            f"truth has shape {read.shape}, and the pilot's predictions {predictions.probs.shape}; "
            "give the probabilities that are true, row by row."
        )
    sums = read.sum(axis=1)
    wrong = np.flatnonzero(~((read >= 0.0).all(axis=1) & (np.abs(sums - 1.0) <= 1e-6)))
    if len(wrong):
        row = int(wrong[0])
        raise InputError(
            f"row {row} of truth (counting from 0) does not hold probabilities: it sums to "
            f"{sums[row]:.6g}, its smallest entry is {read[row].min():.3g}; give entries of at "
            "least 0 that sum to 1."
        )
    name = getattr(truth, "__name__", None)
    return read / sums[:, None], f"the truth is as given{f' by {name}' if name else ''}"


# ------------------------------------------------------------------ fits
#
# Every fit of one or two numbers has a careful end: of what a likelihood ratio does not reject at 5%,
# what is nearest to calibrated; none where that is what the model states. All functions return the
# same, and notes.

_Truth: TypeAlias = tuple[Array, str, tuple[str, ...]]

_STEEPEST = 100.0  # temperature that is looked for, and one over it
_LEVEL = 0.05  # of the intervals of fits, and of the tests whether there is anything to fit
_ISOTONIC = (
    "Isotonic regression bends to every accident of the pilot, so that the power is overstated, much "
    "so if the pilot is small; a stated error, or recalibration='logistic', is safer."
)


def _farthest(surprise: Callable[[float], float], best: float, last: float, degrees: int = 1) -> float:
    """Return where, on the way from the best fit to the last, a likelihood ratio begins to reject.

    The last if it never does.
    """
    height = surprise(best) + 0.5 * float(chdtri(degrees, _LEVEL))
    if surprise(last) <= height:
        return last
    return float(brentq(lambda x: surprise(x) - height, best, last))


def _by_temperature(pilot: Sample, careful: bool) -> _Truth:
    """Fit one temperature by maximum likelihood: the truth is stated^t, renormalised."""
    probs, everyone = pilot.rows.probs, pilot.labels
    possible = probs[np.arange(len(everyone)), everyone] > 0.0
    stated, labels = probs[possible], everyone[possible]
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
    ends = [_farthest(surprise, log_t, side * end) for side in (-1.0, 1.0)]
    t, low, high = (float(np.exp(each)) for each in (log_t, *ends))
    interval = f"(95% interval {low:.3g} to {high:.3g})"
    fit = f"a temperature of {t:.3g} {interval}"
    end_of_fit = None
    if not low <= 1.0 <= high:
        nearest = low if low > 1.0 else high
        clause = f"a temperature of {nearest:.3g}, the careful end of {t:.3g} {interval}"
        end_of_fit = _tempered(probs, nearest), clause
    notes: tuple[str, ...] = ()
    if left_out := int(np.count_nonzero(~possible)):
        notes = (
            f"{left_out} of {len(everyone)} labels of the pilot had predicted probability 0; the "
            "temperature was fitted to the other rows, and no simulated label is an impossible one.",
        )
    return _fitted(probs, (_tempered(probs, t), fit), end_of_fit, f"{fit} holds 1", notes, careful)


def _by_line(pilot: Sample, careful: bool) -> _Truth:
    """Fit logit P(y = 1) = a + b · logit p (Cox); predictions of 0 and 1 stay."""
    found = fitted_line(pilot.rows, pilot.labels)
    a, b = found.intercept, 1.0 if np.isnan(found.slope) else found.slope
    if np.isnan(a):
        raise InputError(
            "no logistic recalibration fits the pilot's labels, which are separated by the "
            "probabilities or all of one class; state an error instead, {instance} for instance.",
            instance=_STATED,
        )
    p = pilot.rows.probs[:, 1]
    inside = (p > 0.0) & (p < 1.0)
    logits, signs = logit(p[inside]), np.where(pilot.labels[inside] == 1, -1.0, 1.0)

    def line(share: float) -> tuple[float, float]:
        """Return the line on the way from calibrated to the fit."""
        return share * a, 1.0 + share * (b - 1.0)

    def surprise(share: float) -> float:
        intercept, slope = line(share)
        return float(np.logaddexp(0.0, signs * (intercept + slope * logits)).sum())

    def made(intercept: float, slope: float) -> tuple[Array, str]:
        sign = "+" if slope >= 0.0 else "−"
        truth = p.copy()
        truth[inside] = expit(intercept + slope * logits)
        text = f"logit P = {intercept:.3g} {sign} {abs(slope):.3g} · logit p"
        return np.column_stack([1.0 - truth, truth]), text

    truth, fit = made(a, b)
    share = _farthest(surprise, 1.0, 0.0, max(found.test_both.degrees, 1))
    end_of_fit = None
    if share > 0.0:  # else to be calibrated is not rejected either
        end, closer = made(*line(share))
        end_of_fit = end, f"{closer}, the careful end of {fit}"
    finding = f"{fit} may be 0 + 1 · logit p (p = {found.test_both.pvalue:.2g})"
    if found.test_both.statistic == np.inf:
        finding = f"{fit} may be 0 + 1 · logit p, where predictions are not 0 or 1"
    own = found.warnings[len(pilot.rows.notes) :]  # the first are those of the predictions
    return _fitted(pilot.rows.probs, (truth, fit), end_of_fit, finding, own, careful)


def _by_isotonic(pilot: Sample, careful: bool) -> _Truth:
    """Fit the curve that never falls and has the least squared error."""
    if careful:
        raise InputError(
            "{careful} needs a fit with an interval, and an isotonic regression has none; give "
            "{other}.",
            careful=_CAREFUL,
            other=Argument("recalibration", "logistic"),
        )
    pooled = DistinctScores.of(pilot.rows.probs[:, 1], pilot.rows.weights)
    fit = pooled.rising(pilot.labels).clip(0.0, 1.0)[pooled.group]
    pair = np.column_stack([1.0 - fit, fit])
    same = test(pilot.rows, pilot.labels, "mcb_log", n_resamples=199, rng=0).pvalue
    finding = f"an exact test of what isotonic regression gains has p = {same:.2g}"
    notes = (_undecided(finding), _ISOTONIC) if same > _LEVEL else (_ISOTONIC,)
    return pair, "as fitted to the pilot, an isotonic regression", notes


def _undecided(finding: str) -> str:
    return (
        f"The pilot does not show that its model is miscalibrated: {finding}. What is planned for "
        "may be noise; state the smallest error that matters instead (temperature=, bias=, "
        "overconfidence=)."
    )


def _fitted(
    stated: Array,
    best: tuple[Array, str],
    end: tuple[Array, str] | None,
    finding: str,
    notes: tuple[str, ...],
    careful: bool,
) -> _Truth:
    """Return a fit, or its careful end, with what it is worth: noise is taken for miscalibration."""
    if careful and end is None:
        raise InputError(
            "{careful} has nothing to plan for: the pilot does not show that its model is "
            "miscalibrated; state the smallest error that matters instead, {instance} for instance.",
            careful=_CAREFUL,
            instance=_STATED,
        )
    truth, clause = end if careful and end else best
    if end is None:
        notes = (*notes, _undecided(finding))
    elif not careful:
        error = points(float(f"{_mean_distance(stated, end[0]):.2g}"))
        notes = (
            *notes,
            "A fit mistakes some of the pilot's noise for miscalibration, so the power is overstated, "
            "most of all with a small pilot; the intervals of the simulation do not include this. The "
            f"end of the fit's 95% interval that is nearest to calibration has an error of {error}: "
            "careful=True (--careful) plans for that.",
        )
    return truth, f"as fitted to the pilot, {clause}", notes


#: Ways to estimate, by name.
_RECALIBRATIONS = {"temperature": _by_temperature, "logistic": _by_line, "isotonic": _by_isotonic}


def _estimated(known: Sample | None, recalibration: str | None, careful: bool) -> _Truth:
    """Return the truth as the pilot's labels tell it, or at the careful end of what they tell."""
    if recalibration is not None:
        choose("recalibration", recalibration, _RECALIBRATIONS)
    if known is None:
        raise InputError(
            "{argument} is {found}, which needs the pilot's labels; give them.",
            argument="recalibration",
            found=repr(recalibration),
        )
    kind = recalibration or ("logistic" if known.rows.n_classes == 2 else "temperature")
    if kind != "temperature" and known.rows.n_classes != 2:
        raise InputError(
            "{given} is for two classes, and the pilot has {found}; give 'temperature'.",
            given=Argument("recalibration", kind),
            found=known.rows.n_classes,
        )
    return _RECALIBRATIONS[kind](known, careful)
