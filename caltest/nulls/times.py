"""The null of events less expected ones, where follow-up is not known: random signs of rows."""

from __future__ import annotations

from dataclasses import replace
from typing import cast

import numpy as np
from scipy.special import gammainc, gammaincc, ndtr

from caltest._arguments import options
from caltest._sums import Array, Places
from caltest.clusters import Clusters
from caltest.forms import FEWEST_CLUSTERS
from caltest.nulls.base import Answer, ComponentAnswer, Null, Question, ranked
from caltest.pvalues import Alternative, combine_sides
from caltest.resampling import draws_of_signs
from caltest.sampling import child_seed
from caltest.statistics import Events, EventSlope
from caltest.statistics.times import EventMean

_SIGNS = 5  # key of the seed of signs
TIES = 1e-10  # of values of variance 1: how far equal ones may differ by rounding


@options()
class EventSigns(Null):
    """p-value of events less expected ones of censored times: the residuals of rows get random signs.

    Residuals are 0 on average whatever censors rows, if that does not depend on the time given the
    prediction. Signs are right as events become many; with few, a Poisson number of events is: of a
    plain sum the larger of both p-values counts, of any other that or the normal one of the variance
    that is predicted. With clusters, signs are of clusters; where few events of whole clusters are
    expected, that variance is the one of clusters whose rows share everything.

    Assumption: censoring does not depend on the time, given the prediction, and events are many.

    Examples
    --------
    >>> import numpy as np, caltest
    >>> predicted = caltest.predictive.Survival([[0.5, 0.1]] * 60, [1.0, 2.0])
    >>> outcomes = np.tile([0.3, 0.6, 0.9], 20), np.tile([1, 1, 0], 20)
    >>> caltest.test(predicted, outcomes, "events", rng=0).null
    'event_signs'
    """

    name = "event_signs"
    guarantee = "asymptotic"
    requires = "events of censored times ('events', 'event_slope')"
    forms = (EventMean,)
    resamples = True

    def answer(self, question: Question) -> Answer:
        """Return the p-value."""
        form = cast("EventMean", question.form)
        rows, seen, side = question.rows, question.labels, question.alternative
        codes = np.arange(rows.n_samples) if rows.clusters is None else rows.clusters
        clusters = Clusters.of(codes, rows.weights)
        sums = np.column_stack([form.scores.by_cluster(seen, clusters)[:, 0]])
        values = signed(sums, question.n_resamples, question.seed)
        found = ranked(values[1:, 0], float(values[0, 0]), side, TIES)
        came, expected = form.law.events(seen, form.horizon)
        if form.tilts is not None or rows.clusters is not None or not rows.are_alike:
            counts = rows.weights if form.tilts is None else rows.weights * form.tilts
            few = of_sum(counts, came, expected, side, rows.clusters)
        else:
            few = of_count(float(came.sum()), float(expected.sum()), side)
        p = max(found.pvalue, few)
        return replace(found, pvalue=p, statistic=question.observed, null_distribution=None)


def signed(sums: Array, count: int, seed: int) -> Array:
    """Return values of sums (G, H) with signs drawn, and, first, as they are; of variance about 1."""
    scale = np.sqrt((sums**2).sum(axis=0))
    sums = sums / np.where(scale > 0.0, scale, 1.0)
    draws = draws_of_signs(len(sums), count, child_seed(seed, _SIGNS))
    parts = [draws.draw(start, stop) @ sums for start, stop in draws.tasks()]
    return np.concatenate(parts)


def of_sum(
    counts: Array, came: Array, expected: Array, alternative: Alternative, clusters: Places | None
) -> float:
    """Return the normal p-value of Σ counts · (events − expected), of the variance that is predicted.

    Where hardly any event came, all residuals have one sign, and random signs of them say too much: of
    clusters, where few events of whole clusters are expected. Their rows may then share everything.
    """
    variance, events = if_shared(counts, expected, clusters)
    if events >= FEWEST_CLUSTERS:
        variance = float(counts**2 @ expected)
    z = float(counts @ (came - expected)) / variance**0.5 if variance > 0.0 else 0.0
    return combine_sides(float(ndtr(-z)), float(ndtr(z)), alternative)


def if_shared(counts: Array, expected: Array, clusters: Places | None) -> tuple[float, float]:
    """Return the variance of Σ counts · (events − expected) if rows of a cluster share everything.

    And how many events of whole clusters are then expected, in effect: v³ / c², with the variance v and
    the third moment c.
    """
    sizes = np.abs(counts)
    whole = sizes if clusters is None else np.bincount(clusters, sizes)[clusters]
    second, third = (float((sizes * expected) @ whole**power) for power in (1, 2))
    return second, second * (second / third) ** 2 if third > 0.0 else 0.0


def of_count(events: float, expected: float, alternative: Alternative = "two-sided") -> float:
    """Return the p-value of a Poisson number of events."""
    many = float(gammainc(events, expected)) if events else 1.0
    return combine_sides(many, float(gammaincc(events + 1.0, expected)), alternative)


def beside_events(question: Question, answer: Answer) -> Answer:
    """Add events less expected ones to the answer of completed times: each has half of the level."""
    rows, seen = question.rows, replace(question, labels=question.rows.law.seen)
    parts = [replace(each, adjusted=min(1.0, 2.0 * each.adjusted)) for each in answer.parts]
    causes = rows.law.causes or (None,)  # type: ignore[attr-defined]
    for measure in (kind(cause=cause) for cause in causes for kind in (Events, EventSlope)):
        own = EventSigns().answer(seen.question(measure, measure.given(rows), "two-sided"))
        value, p = float(own.statistic or 0.0), own.pvalue
        name = f"{measure.name} of {measure.cause}" if measure.cause else measure.name
        parts.append(ComponentAnswer(name, value, p, min(1.0, 4.0 * len(causes) * p)))
    note = (
        "Events less expected ones have half of the level, by random signs of rows, which is about "
        "right; the parts of completed times have the other half."
    )
    p = min(1.0, 2.0 * answer.pvalue, *(each.adjusted for each in parts))
    both = replace(answer, pvalue_interval=None, exceedances=None, guarantee="asymptotic")
    return replace(both, pvalue=p, parts=tuple(parts), notes=(*answer.notes, note))
