"""Tests of "wrong by no more than a tolerance", under the least favourable model within it.

Scores p_i of an event, events independent with probabilities q_i. "At most ε too high" is
H0(ε): q_i ≥ p_i − ε for every row. Let a statistic T not increase in any label y_i. Draw all of
H0(ε) from common uniforms u_i, y_i = 1[u_i ≤ q_i]: each y_i is at least 1[u_i ≤ max(p_i − ε, 0)], so
T is nowhere stochastically larger than under that one model. Its Monte-Carlo p-value is therefore
valid for all of H0(ε), in every finite sample. T may depend on p and ε in any way, since neither is
random here. "At most ε too low" is the same with min(p_i + ε, 1) and a T that does not
decrease.

Either way: the smaller p-value is doubled, which is sharp as ε → 0 (both tails of one model are then
nearly disjoint: without the doubling a level of α would be 2α), and no sharper rule is known to be
valid for every ε. It costs most if ε is large: for a model that is off by ε everywhere on one side,
only that side can reject. Measured with "scan", 400 rows, ε = .05, level .05: rejected are .022 of
models that are .05 too high everywhere, .018 of those that are .05 too high in one half of the scores
and too low in the other, and .004 of calibrated ones (500 data sets each). If only one side matters,
test only that: it gets all of α.

Rounded probabilities: one stated in steps of r is within r/2 of what was meant, and a sum of k of them
within k r/2. If what was meant is right, the stated probability is within that tolerance of the truth.
Of an event and its opposite, the test uses the one that sums fewer values. For all classes at once
there is no such test: no single distribution is the hardest of those that round to a row.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Literal, NamedTuple, TypeAlias

import numpy as np

from caltest._numbers import points
from caltest._visible import quoted
from caltest.data import Rows, Sample
from caltest.exceptions import Argument, InputError
from caltest.forms import LargestError, Side
from caltest.lenses import Lens, show
from caltest.nulls import Answer, ConditionalMoments, MonteCarlo, Null, Question
from caltest.nulls.base import Trial
from caltest.pvalues import Alternative
from caltest.statistics import STATISTICS, Statistic

#: Directions of miscalibration to test; the first is the default.
ToleranceAlternative: TypeAlias = Literal["two-sided", "over", "under"]

ALTERNATIVES: tuple[ToleranceAlternative, ...] = ("two-sided", "over", "under")
#: Nulls that give the distribution of a statistic under a single model: here the shifted one.
_NULLS: tuple[type[Null], ...] = (MonteCarlo, ConditionalMoments)


class SidedAnswer(NamedTuple):
    """The answer for the side with the smaller p-value, which is doubled if both were tested."""

    question: Question  # asked of the shifted model
    answer: Answer
    side: Side


class RoundedView(NamedTuple):
    """One probability as it was stated."""

    view: Sample  # with two classes; the second is the event
    n_summed: int  # number of stated values that add up to its probability
    tolerance: float  # largest error from rounding
    step: float  # step to which the values were rounded


def rounded_view(whole: Sample, lens: Lens | None, rounding: float) -> RoundedView:
    """Return one probability of predictions that were read with this ``rounding``, seen through a lens.

    Raises
    ------
    InputError
        If there is more than one probability, or a sum of so many values that it is uninformative.
    """
    assert whole.rows.stated is not None  # the caller read it with a rounding
    stated = replace(whole.rows.shown_as(whole.rows.stated, whole.rows.classes), stated=None)
    n, m = stated.probs.shape
    view = show(stated, lens)
    seen = view.sample(whole.labels)
    if seen.rows.n_classes != 2:
        found = f"rounding needs a single probability, and {seen.rows.n_classes} are tested"
        do = f"give {Argument('lens', 'top_label')}, 'class:0' or another lens of one probability"
        raise InputError(f"{found}; {do}, or probabilities that are not rounded.")
    # In each row, the number of classes that the event consists of.
    inside = np.sum(view.outcomes(np.repeat(np.arange(m)[:, None], n, axis=1)) == 1, axis=0)
    of_event, of_others = int(inside.max()), int(m - inside.min())
    column, n_summed = (1, of_event) if of_event <= of_others else (0, of_others)
    tolerance = 0.5 * rounding * n_summed
    if tolerance >= 1.0:
        why = f"the event adds up {n_summed} values, so any probability is possible"
        do = "give a lens of fewer classes, or probabilities that are not rounded"
        raise InputError(f"rounding is {rounding:.6g}, and {why}; {do}.")
    per_one = round(1.0 / rounding)  # a sum of multiples of the step is a multiple
    one = np.minimum(np.round(seen.rows.probs[:, column] * per_one) / per_one, 1.0)
    pair = np.column_stack([1.0 - one, one] if column else [one, 1.0 - one])
    stated_view = Sample(seen.rows.shown_as(pair, seen.rows.classes), seen.labels)
    return RoundedView(stated_view, n_summed, tolerance, rounding)


def check_possible(measure: Statistic, null: Null, alternative: str | None) -> ToleranceAlternative:
    """Return the alternative, or raise if there is no such test."""
    if not measure.monotone:
        names = ", ".join(name for name, each in STATISTICS.items() if each.monotone)
        found = f"{measure.name!r} is not monotone in the labels"
        why = "no model within the tolerance is the least favourable one"
        raise InputError(f"{found}, so {why}; possible here: {names}.")
    if not isinstance(null, _NULLS):
        found = f"the null {null.name!r} cannot test a single given model, which a tolerance needs"
        raise InputError(f"{found}; possible here: {', '.join(each.name for each in _NULLS)}.")
    for known in ALTERNATIVES:
        if alternative in (known, None):
            return known
    found = f"the alternative {quoted(alternative)} cannot be combined with a tolerance"
    raise InputError(f"{found}; give 'over' (predictions too high), 'under' (too low) or 'two-sided'.")


def shifted(predictions: Rows, side: Side, tolerance: float) -> Rows:
    """Return the least favourable model: all probabilities shifted by the tolerance."""
    column = 1 if side == "over" else 0
    lowered = np.maximum(predictions.probs[:, column] - tolerance, 0.0)
    raised = np.where(lowered > 0.0, predictions.probs[:, 1 - column] + tolerance, 1.0).clip(max=1.0)
    pair = np.column_stack([raised, lowered] if column else [lowered, raised])
    return predictions.shown_as(pair, predictions.classes)


def one_sided(measure: Statistic, side: Side) -> tuple[Statistic, Alternative]:
    """Return the monotone statistic for one side, and the direction of its test.

    A statistic without sides grows with the labels: the smaller it is, the more the model is too high.
    """
    if measure.sided is not None:
        return replace(measure, **{measure.sided: side}), "greater"  # type: ignore[type-var]
    return measure, "less" if side == "over" else "greater"


def sided_answer(
    measure: Statistic, null: Null, trial: Trial, tolerance: float, alternative: ToleranceAlternative
) -> SidedAnswer:
    """Test one side, or both sides with the smaller p-value doubled."""
    rows = trial.rows
    if (m := rows.n_classes) != 2:
        why = f"a tolerance is about one probability, and there are {m} classes through the lens"
        do = "give a lens such as 'top_label' or 'class:0', or 'below:10' of numbers"
        raise InputError(f"{why}; {do}.")
    sides: tuple[Side, ...] = ("over", "under") if alternative == "two-sided" else (alternative,)
    found = []
    for side in sides:
        sided, counting = one_sided(measure, side)
        hardest = shifted(rows, side, tolerance)
        sided = sided.fitted(rows)
        form = sided.given(hardest if sided.sided is None else rows)
        if isinstance(form, LargestError):  # its intervals are those of the predictions
            form = replace(form, chances=hardest.probs[:, 1])
        if not null.fits(form):
            why = f"the null {null.name!r} needs {null.requires}, which {measure.name!r} is not"
            do = f"possible here: {', '.join(each.name for each in _NULLS if each.fits(form))}"
            raise InputError(f"{why}; {do}.")
        question = replace(trial, rows=hardest).question(sided, form, counting)
        found.append(SidedAnswer(question, null.answer(question), side))
    least = min(found, key=lambda one: one.answer.pvalue)
    if len(found) == 1:
        return least
    p, ends = least.answer.pvalue, least.answer.pvalue_interval
    interval = None if ends is None else (min(1.0, 2.0 * ends[0]), min(1.0, 2.0 * ends[1]))
    answer = replace(least.answer, pvalue=min(1.0, 2.0 * p), pvalue_interval=interval)
    return least._replace(answer=answer)


def claim(of: str, alternative: ToleranceAlternative, tolerance: float) -> str:
    """Return H0 in words, for the probability of an event."""
    direction = {"over": "too high", "under": "too low", "two-sided": "wrong"}[alternative]
    if tolerance:
        more = f"more than {points(tolerance)}"
        direction = f"wrong by {more}" if alternative == "two-sided" else f"{more} {direction}"
    return f"no predicted probability that {of} is {direction}"
