"""The nulls with random signs of rows: for events less expected ones, and errors of point forecasts.

For bounded outcomes, bets make the latter exact, see :mod:`caltest.statistics.points`.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, cast

import numpy as np
from scipy.special import gammainc, gammaincc, ndtr

from caltest._arguments import options
from caltest._sums import Array, Places
from caltest.clusters import Clusters
from caltest.data.rows import effective_number
from caltest.forms import FEWEST_CLUSTERS
from caltest.forms.features import ScanForm
from caltest.laws import Point
from caltest.nulls.base import Answer, ComponentAnswer, Guarantee, Null, Question, ranked
from caltest.pvalues import Alternative, combine_sides
from caltest.resampling import columns_of, draws_of_signs, signed_columns, table
from caltest.sampling import child_seed
from caltest.statistics import Events, EventSlope
from caltest.statistics.points import ErrorForm, evidence_of
from caltest.statistics.times import EventMean

_SIGNS = 5  # key of the seed of signs
TIES = 1e-10  # rounding tolerance for ties, for values of variance 1


@options()
class EventSigns(Null):
    """p-value of events less expected ones of censored times: the residuals of rows get random signs.

    Residuals are 0 on average under any censoring that does not depend on the time given the
    prediction. Random signs are right for many events, a Poisson number of events for few. For a plain
    sum the p-value is the larger of these two; for any other statistic, the larger of the one by signs
    and the normal one with the predicted variance. With clusters, signs are drawn by cluster; if few
    events of whole clusters are expected, that variance is the one of clusters whose rows share
    everything.

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
        sums = np.column_stack([form.scores.by_cluster(seen, Clusters.of(codes, rows.weights))[:, 0]])
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
    """Return values of sums (G, H), first unchanged, then with drawn signs, of variance about 1."""
    scale = np.sqrt((sums**2).sum(axis=0))
    sums = sums / np.where(scale > 0.0, scale, 1.0)
    draws = draws_of_signs(len(sums), count, child_seed(seed, _SIGNS))
    return np.concatenate([draws.draw(start, stop) @ sums for start, stop in draws.tasks()])


def of_sum(
    counts: Array, came: Array, expected: Array, alternative: Alternative, clusters: Places | None
) -> float:
    """Return the normal p-value of Σ counts · (events − expected), with the predicted variance.

    If hardly any event occurred, all residuals have one sign, and their random signs overstate the
    evidence. So it is for clusters if few events of whole clusters are expected. Rows of a cluster may
    then share everything.
    """
    variance, events = if_shared(counts, expected, clusters)
    if events >= FEWEST_CLUSTERS:
        variance = float(counts**2 @ expected)
    z = float(counts @ (came - expected)) / variance**0.5 if variance > 0.0 else 0.0
    return combine_sides(float(ndtr(-z)), float(ndtr(z)), alternative)


def if_shared(counts: Array, expected: Array, clusters: Places | None) -> tuple[float, float]:
    """Return the variance of Σ counts · (events − expected) if rows of a cluster share everything.

    Also return the effective number of events of whole clusters expected then: v³ / c², with the
    variance v and the third moment c.
    """
    sizes = np.abs(counts)
    whole = sizes if clusters is None else np.bincount(clusters, sizes)[clusters]
    second, third = (float((sizes * expected) @ whole**power) for power in (1, 2))
    return second, second * (second / third) ** 2 if third > 0.0 else 0.0


def of_count(events: float, expected: float, alternative: Alternative = "two-sided") -> float:
    """Return the p-value of a number of events that has a Poisson law."""
    many = float(gammainc(events, expected)) if events else 1.0
    return combine_sides(many, float(gammaincc(events + 1.0, expected)), alternative)


def beside_events(question: Question, answer: Answer) -> Answer:
    """Add events less expected ones to the answer from imputed times; each gets half of the level."""
    rows, seen = question.rows, replace(question, labels=question.rows.law.seen)
    parts = [replace(each, adjusted=min(1.0, 2.0 * each.adjusted)) for each in answer.parts]
    causes = rows.law.causes or (None,)  # type: ignore[attr-defined]
    for measure in (kind(cause=cause) for cause in causes for kind in (Events, EventSlope)):
        own = EventSigns().answer(seen.question(measure, measure.given(rows), "two-sided"))
        value, p = float(own.statistic or 0.0), own.pvalue
        name = f"{measure.name} of {measure.cause}" if measure.cause else measure.name
        parts.append(ComponentAnswer(name, value, p, min(1.0, 4.0 * len(causes) * p)))
    half = "Events less expected ones have half of the level, by random signs of rows"
    note = f"{half}, which is about right; the parts of completed times have the other half."
    p = min(1.0, 2.0 * answer.pvalue, *(each.adjusted for each in parts))
    both = replace(answer, pvalue_interval=None, exceedances=None, guarantee="asymptotic")
    return replace(both, pvalue=p, parts=tuple(parts), notes=(*answer.notes, note))


# ------------------------------------------------------------------ errors of point forecasts

FEWEST_ROWS = 50.0  #: Effective rows, by the size of errors, above which random signs are right.


@options()
class PointErrors(Null):
    """p-value of errors of point forecasts, the default there: exact where outcomes have ends.

    With both ends of the range of outcomes, p is 1 over the winnings of fixed bets; with one end, this
    holds for the side that it bounds; each of two sides has half of the level. Otherwise errors get
    random signs, by cluster if there are any: about right if at least 50 effective rows carry them, (Σ
    V²)² / Σ V⁴, and p is 1 with fewer. Signs of rows are exact if outcomes are symmetric.

    Assumption: rows, or clusters, are independent; without ends, no rare outcomes carry the mean.

    Examples
    --------
    >>> import numpy as np, caltest
    >>> share = np.tile([0.2, 0.4], 50)
    >>> caltest.test(caltest.predictive.Point(share + 0.2, low=0, high=1), share, rng=0).null
    'point_errors'
    """

    name = "point_errors"
    guarantee = "asymptotic"
    requires = "errors of point forecasts"
    resamples = True

    @classmethod
    def fits(cls, form: Any) -> bool:
        """Accept statistics of point forecasts."""
        return isinstance(getattr(form, "law", None), Point)

    def answer(self, question: Question) -> Answer:
        """Return the p-value."""
        form, rows, side = cast("Any", question.form), question.rows, question.alternative
        codes = np.arange(rows.n_samples) if rows.clusters is None else rows.clusters
        ps = exact_pvalues(form, question.labels, Clusters.of(codes, rows.weights))
        if (p := ps.get(side)) is not None:
            return Answer(p, guarantee="exact")
        columns = signed_columns(columns_of(form), question.labels, codes, rows.weights)
        draws = draws_of_signs(int(codes.max()) + 1, question.n_resamples, question.seed)
        values = table(columns, draws, question.workers)
        signs: Any = dict.fromkeys(("greater", "less", side))
        for each in signs:
            signs[each] = ranked(values[1:, 0], float(values[0, 0]), each, form.resolution)
        found: Answer = signs[side]
        even = rows.law.symmetric and rows.clusters is None  # type: ignore[attr-defined]
        exact: Guarantee | None = "exact" if even else None
        notes: tuple[str, ...] = ()
        carried = carrying(form, question.labels, codes)
        if isinstance(form, ScanForm):  # every slice needs to be carried
            carried *= form.cells.sums(np.ones((1, rows.n_samples))).min() / rows.n_samples
        if not exact and carried < FEWEST_ROWS:
            few = f"Errors are carried by {carried:.0f} rows in effect, too few for random signs"
            notes = (f"{few} ({FEWEST_ROWS:.0f} would do): only exact answers count.",)
            signs = {name: replace(each, pvalue=1.0) for name, each in signs.items()}
            found = replace(signs[side], pvalue_interval=None)
        for own, other in (("less", "greater"), ("greater", "less")):
            if side == "two-sided" and (p := ps.get(own)) is not None and not exact:
                both = min(1.0, 2.0 * min(p, signs[other].pvalue))
                found = replace(found, pvalue=both, pvalue_interval=None, exceedances=None)
        return replace(found, statistic=question.observed, guarantee=exact, notes=notes)


def carrying(form: Any, outcomes: Array, codes: Places) -> float:
    """Return the effective number of rows, or clusters, behind a value: (Σ S²)² / Σ S⁴."""
    errors = form.weights * form.law.errors(outcomes)
    errors = errors * form.direction if isinstance(form, ErrorForm) else errors
    return effective_number(np.bincount(codes, errors).astype(float) ** 2)


def exact_pvalues(form: Any, outcomes: Array, clusters: Clusters) -> dict[str, float]:
    """Return the p-values of bets, by alternative, that the ends of outcomes allow."""
    law, found = form.law, dict[str, float]()
    if law.bounded and isinstance(form, ScanForm) and clusters.count == law.n_samples:
        found["greater"] = evidence_of(form, outcomes, clusters)
    elif isinstance(form, ErrorForm) and (law.bounded or form.kind == "mean"):
        over, under = form.wealths(outcomes, clusters)
        found |= {"greater": over} if law.high is not None else {}
        found |= {"less": under} if law.low is not None and form.kind != "path" else {}
        found |= {"two-sided": evidence_of(form, outcomes, clusters)} if law.bounded else {}
    return {name: float(np.exp(-max(log, 0.0))) for name, log in found.items()}
