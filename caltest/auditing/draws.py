"""The p-values of an audit: every hypothesis on the same draws, alone and jointly adjusted.

Labels are drawn from the full predictions, and every lens and group sees the same draws. Each worker
holds one block of label draws at a time; all statistics are held, (1 + B, H) numbers.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Sequence
from hashlib import sha256
from itertools import groupby
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from caltest._arguments import MOST_RESAMPLES
from caltest._numbers import counted
from caltest._parallel import check_fits
from caltest._sums import Array
from caltest._visible import quoted
from caltest.auditing.options import WESTFALL_YOUNG, Options
from caltest.auditing.plan import BIAS, EVENTS, MEAN, Hypothesis, Look, around, form_of
from caltest.auditing.views import Check
from caltest.auditing.views import View as Seen
from caltest.data import Sample
from caltest.exceptions import Argument, InputError, Phrase
from caltest.forms import HasSigns, LabelFunction
from caltest.forms.base import CERTAIN
from caltest.lenses import Reduction
from caltest.nulls import ClusterSigns, MonteCarlo
from caltest.nulls.base import Trial, ranked
from caltest.nulls.clusters import Confirmation
from caltest.pvalues import Alternative, StepDown, adjusted, evidence_of_draws
from caltest.resampling import Column, Draws, draws_of_signs, signed_columns, table
from caltest.sampling import child_seed
from caltest.statistics import FeatureScan
from caltest.statistics.order import OfHits, OfOrder
from caltest.tolerance import rounded_view, sided_answer

Labels: TypeAlias = NDArray[Any]

# Predicted numbers in the looks of a batch; forms hold about twice as many, in 8 bytes each.
_HELD = 2**24
_TABLES = 4.0  # tables of draws × hypotheses held at a time, with their ranks
_EXPECTED = (0.025, 0.975)
_FASTER = "fewer draws ({draws}), groups or statistics take less"


class Answers(NamedTuple):
    """Results for H hypotheses: each alone, adjusted, and the audit as a whole."""

    values: Array  # of the observed labels, (H,)
    pvalues: Array
    intervals: tuple[tuple[float, float], ...]  # Monte-Carlo
    adjusted: Array  # at least the unadjusted p-value
    expected: tuple[tuple[float, float], ...] | None  # range of 95% of the draws under a single null
    evidence: Array  # −log of the tail
    largest: Array | None  # largest evidence in each draw, (B,), if p-values are jointly drawn
    threshold: float | None = None  # evidence from which on a check is found
    table: Array | None = None  # observed values, then those of draws, (1 + B, H)
    few: NDArray[np.bool_] | None = None  # which ones few clusters carry, for rows in clusters, (H,)

    def check(self, h: int, view: Seen, of: Hypothesis, level: float, labels: Labels) -> Check:
        """Return one hypothesis as a check of a view, whose adjusted p-value may be larger."""
        together, order = max(float(self.adjusted[h]), view.adjusted_pvalue), ""
        if isinstance(of[1], OfOrder) and together <= level:
            ((seen, form),) = columns_of_looks([of], 0)
            order = form.in_words(labels if seen is None else seen.outcomes(labels[None])[0], True)
        return Check(
            view=view,
            statistic=of[1].name,
            measures=of[1].measures,
            value=float(self.values[h]) + 0.0,  # −0 is 0
            expected=None if self.expected is None else self.expected[h],
            pvalue=float(self.pvalues[h]),
            pvalue_interval=self.intervals[h],
            adjusted=together,
            found=together <= level,
            order=order,
        )


def key_of(*names: str) -> list[int]:
    """Return whole numbers derived from some names, the same on every machine."""
    found: list[int] = np.frombuffer(sha256(repr(names).encode()).digest(), ">u4", 4).tolist()
    return found


def draw_all(
    hypotheses: Sequence[Hypothesis], trial: Trial, rests: Sequence[Subtraction] = ()
) -> tuple[Array, Array, Confirmation | None]:
    """Evaluate all statistics on the observed labels and on shared draws, as in `caltest.test`.

    Return (1 + B, H) values, those of remaining rows last; the rounding error between two evaluations
    of each, (H,); and with clusters, the confirmation of hypotheses that few clusters carry.
    """
    whole, labels, n_resamples = trial.rows, trial.labels, trial.n_resamples
    seed, workers = trial.seed, trial.workers
    check_fits(
        _TABLES * 8.0 * n_resamples * len(hypotheses),
        f"an audit of {len(hypotheses)} hypotheses with {n_resamples} draws each",
        "take fewer draws, groups or statistics",
    )
    batches: list[list[int]] = [[]]  # hypotheses whose forms are held at once
    sizes = [0]
    for look, each in groupby(range(len(hypotheses)), key=lambda h: hypotheses[h][0]):
        places = list(each)
        size = look.n_rows * (look.scope.first.n_classes or 1) * len(places)
        if batches[-1] and sizes[-1] + size > _HELD:
            batches.append([])
            sizes.append(0)
        batches[-1] += places
        sizes[-1] += size
    faster = Phrase(_FASTER, {"draws": Argument("n_resamples")})
    workers = workers.doing(f"an audit of {counted(len(labels), 'row')}", faster)
    if (clusters := whole.clusters) is None:
        draws = Draws(whole.sampler(seed), labels, n_resamples)
        draws = draws.held(workers) if len(batches) > 1 else draws
    else:
        draws = draws_of_signs(int(clusters.max()) + 1, n_resamples, seed)
    values, resolutions = np.empty((1 + draws.count, len(hypotheses))), np.zeros(len(hypotheses))
    # Outcomes equal to a predicted quantile count as below or as above.
    opened = np.empty(values.shape) if getattr(whole.law, "levels", None) is not None else None
    confirmed: Confirmation | None = None

    def confirm(some: Sequence[Hypothesis], columns: Sequence[Column], values: Array) -> Confirmation:
        names, sides = zip(*((each.name, each.alternatives[0]) for _, each in some), strict=True)
        found = Confirmation.of(trial, (names, sides), columns, values)
        return found if confirmed is None else confirmed.beside(found)

    def drawn_as(columns: Sequence[Column]) -> Sequence[Column]:
        return columns if clusters is None else signed_columns(columns, labels, clusters, whole.weights)

    for here, hands in zip(batches, workers.parts(sizes), strict=True):
        closed, apart_too = hands.parts([1, opened is not None])
        some = [hypotheses[h] for h in here]
        columns = columns_of_looks(some, seed)
        for (_, statistic), column in zip(some, columns, strict=True):
            if clusters is not None and not isinstance(column.form, HasSigns):
                raise InputError(
                    f"{statistic.name!r} has no form for rows in clusters; leave it out, or test "
                    f"it alone with {Argument('null', 'one_per_cluster')}."
                )
        drawn = drawn_as(columns)
        values[:, here] = table(drawn, draws, closed)
        if opened is not None:
            apart, columns = columns, [_opened(*pair) for pair in zip(some, columns, strict=True)]
            opened[:, here] = table(drawn_as(columns), draws, apart_too)
            nearer = _nearest(values[:, here], opened[:, here])[0] == opened[0, here]
            columns = [b if near else a for a, b, near in zip(apart, columns, nearer, strict=True)]
        resolutions[here] = [form.resolution for _, form in drawn]
        if clusters is not None:
            nearest = _nearest(values[:, here], None if opened is None else opened[:, here])
            confirmed = confirm(some, columns, nearest)
        for column, h in zip(drawn, here, strict=True):
            if isinstance(column.form, LabelFunction):
                column.form.check_unmoved(column.outcomes(labels[None])[0], float(values[0, h]))
    if opened is not None:
        opened, _ = with_rests(opened, resolutions, rests)
    values, resolutions = with_rests(values, resolutions, rests)
    values = _nearest(values, opened)
    if confirmed is not None and rests:
        left = [(each.remaining, MEAN) for each in rests]
        confirmed = confirm(left, columns_of_looks(left, seed), values[:, len(hypotheses) :])
    return values, resolutions, confirmed


def _opened(hypothesis: Hypothesis, column: Column) -> Column:
    """Return a column whose event excludes outcomes equal to the quantile; only means have one."""
    (look, statistic), view = hypothesis, column.view
    if view is None or view.see_open is None or isinstance(statistic, FeatureScan):
        return column
    if statistic != MEAN:
        found = f"of quantile forecasts events are checked by their mean, and not by {statistic.name!r}"
        raise InputError(f"{found}; give {MEAN.name!r} for the lens {look.scope.label!r}.")
    return column._replace(view=view.opened)


def _nearest(values: Array, opened: Array | None) -> Array:
    """Return, for each column, the table whose observed value is nearer to the median of its draws.

    The claim of a quantile allows every count between that of the closed and that of the open event,
    and so every value between both: evidence counts only if it stands whichever is right. If the median
    lies between the two values, use it in place of the first: neither side is unlikely.
    """
    if opened is None:
        return values
    middles = np.median(values[1:], axis=0), np.median(opened[1:], axis=0)
    nearer = np.abs(opened[0] - middles[1]) < np.abs(values[0] - middles[0])
    found, middle = np.where(nearer, opened, values), np.where(nearer, middles[1], middles[0])
    found[0] = np.where((values[0] - middles[0]) * (opened[0] - middles[1]) < 0.0, middle, found[0])
    return found


def columns_of_looks(hypotheses: Sequence[Hypothesis], seed: int) -> list[Column]:
    """Return views with their statistics; a view or the labels through a lens are computed once."""
    views: dict[Look, Reduction] = {}
    columns = []
    for look, statistic in hypotheses:
        view = views.get(look) or views.setdefault(look, look.view())
        if isinstance(statistic, FeatureScan) and statistic.side == "under" and view.see_open:
            view = view.opened  # the version of the event that favours the forecast most
        view = view.strict if isinstance(statistic, OfHits) else view
        columns.append(Column(view, form_of(look, statistic.shuffled(seed), view.rows)))
    return columns


# ------------------------------------------------------------------ all other rows of larger groups

_LEAST_LEFT = 1e-6  # of a parent's variance: smaller differences are rounding


class Subtraction(NamedTuple):
    """A group, its parent with one condition less, their mean checks, and the remaining rows."""

    look: Look
    parent: Look
    own: int  # indices of the hypotheses
    of_parent: int
    ratio: float  # variance of the group's label sum over that of the remaining rows
    rows: int  # number of remaining rows

    @property
    def remaining(self) -> Look:
        """The rows of the parent outside the group."""
        return self.parent.without(self.look)


def subtractions(hypotheses: Sequence[Hypothesis], min_rows: int) -> list[Subtraction]:
    """List groups and parents whose means are checked, to check the remaining rows too.

    Like groups, the remaining rows must be at least ``min_rows``.
    """
    of_means = (MEAN, EVENTS, BIAS)
    places = {h[0]: k for k, h in enumerate(hypotheses) if h[1] in of_means and h[0].event}
    pairs, variances, found = list(around(places, min_rows)), dict[Look, float](), []
    for look in {look for pair in pairs for look in pair}:
        seen = look.view().rows  # with times every row varies
        spread = seen.probs[:, 0] * seen.probs[:, 1] if seen.n_classes else np.ones(look.n_rows)
        variances[look] = float(seen.weights**2 @ spread)
    for look, whole in pairs:
        own, left = variances[look], variances[whole] - variances[look]
        if left > _LEAST_LEFT * variances[whole] and own > CERTAIN:
            rows = whole.n_rows - look.n_rows
            found.append(Subtraction(look, whole, places[look], places[whole], own / left, rows))
    return found


def with_rests(values: Array, resolutions: Array, rests: Sequence[Subtraction]) -> tuple[Array, Array]:
    """Add mean checks of the remaining rows: the parent's sum minus the group's."""
    more = np.empty((len(values), len(rests)))
    rounding = np.empty(len(rests))
    for k, each in enumerate(rests):
        part, whole = each.ratio**0.5, (each.ratio + 1.0) ** 0.5
        more[:, k] = values[:, each.of_parent] * whole - values[:, each.own] * part
        rounding[k] = resolutions[each.of_parent] * whole + resolutions[each.own] * part
    return np.hstack([values, more]), np.concatenate([resolutions, rounding])


# ------------------------------------------------------------------ p-values


def check_resolution(
    alternatives: Sequence[Alternative],
    correction: str,
    alpha: float,
    n_resamples: int,
    n_clusters: int | None = None,
    factor: float = 1.0,
) -> None:
    """Raise if the smallest p-value possible with so many draws is above the level after adjustment.

    ``n_clusters`` is given if the draws are all sign vectors there are; ``factor`` multiplies p-values
    when several answers are combined.
    """
    sides = 2 if "two-sided" in alternatives else 1
    count = len(alternatives)

    def enough(draws: int) -> bool:
        smallest = min(1.0, factor * sides / (1 + draws))
        if correction != WESTFALL_YOUNG:
            smallest = float(adjusted([smallest] + [1.0] * (count - 1), correction)[0])
        return smallest <= alpha  # compared exactly as in the result, rounding included

    if enough(n_resamples):
        return
    needed = bisect_left(range(MOST_RESAMPLES + 1), True, lo=n_resamples, key=enough)
    if needed > MOST_RESAMPLES:
        raise InputError(
            f"alpha = {alpha:g} is out of reach for {count:,} hypotheses adjusted by "
            f"{quoted(correction)}, with any number of resamples that is possible; look at fewer."
        )
    if n_clusters is not None:
        few = f"too few for any p-value to reach alpha = {alpha:g}; give rows of more clusters."
        found = counted(n_clusters, "cluster")
        raise InputError(f"{{argument}} names {{found}}, {few}", argument="clusters", found=found)
    looks = f" of {count:,} hypotheses adjusted by {quoted(correction)}" if count > 1 else ""
    few = f"with which not every p-value{looks} can reach alpha = {alpha:g}; give at least {needed:,}."
    raise InputError(f"{{argument}} is {{found}}, {few}", argument="n_resamples", found=n_resamples)


def answers(
    values: Array,
    resolutions: Array,
    alternatives: Sequence[Alternative],
    correction: str,
    level: float = 0.05,
    confirmed: Confirmation | None = None,
) -> Answers:
    """Rank the observed labels among the draws, for each hypothesis alone and for all jointly."""
    observed, draws = values[0], values[1:]
    found, expected = [], []
    for h, side in enumerate(alternatives):
        found.append(ranked(draws[:, h], float(observed[h]), side, float(resolutions[h])))
        numbers = draws[~np.isnan(draws[:, h]), h]
        low = high = float("nan")
        if len(numbers):
            low, high = np.quantile(numbers, _EXPECTED, method="inverted_cdf").tolist()
        expected.append((low + 0.0, high + 0.0))  # −0 is 0
    if confirmed is not None:
        found = confirmed.larger(found, alternatives)
    pvalues = np.array([each.pvalue for each in found])
    evidence = evidence_of_draws(values, alternatives, resolutions)
    evidence[np.isnan(evidence)] = 0.0  # all rows alike: an undefined value is no evidence
    largest, threshold = evidence[1:].max(axis=1) + 0.0, None
    if correction != WESTFALL_YOUNG:
        together = adjusted(pvalues, correction)
    elif confirmed is not None and len(confirmed.places):
        together = confirmed.together(evidence, alternatives)
    else:
        test = StepDown.of(evidence[0])
        together = test.pvalues(test.count(evidence[1:]), len(draws))
        if allowed := math.floor(level * (len(draws) + 1) * (1.0 + 1e-12)):
            threshold = float(np.sort(largest)[-min(allowed, len(draws))])
    return Answers(
        values=observed,
        pvalues=pvalues,
        intervals=tuple(each.pvalue_interval or (0.0, 1.0) for each in found),
        adjusted=np.maximum(together, pvalues),
        expected=tuple(expected),
        evidence=evidence[0],
        largest=largest,
        threshold=threshold,
        table=values,
        few=None if confirmed is None else confirmed.few,
    )


def tolerated(
    hypotheses: Sequence[Hypothesis], labels: NDArray[np.intp], options: Options, tolerance: float
) -> Answers:
    """Test every hypothesis on both sides, with a seed that does not depend on other hypotheses.

    For rounded predictions, the error from rounding is added to the tolerance, lens by lens. For rows
    in clusters, the mean under the least favourable model is tested by signs: under all other models
    within the tolerance, sums in every cluster are smaller on average.
    """
    found = []
    for look, statistic in hypotheses:
        own = child_seed(options.seed, *key_of("tolerance", *look.key, statistic.name))
        allowed = tolerance
        if options.rounding is None:
            view = look.sample(labels)
        else:
            rows = Sample(look.scope.whole.take(look.where), labels[look.where])
            rounded = rounded_view(rows, look.scope.lens, options.rounding)
            view, allowed = rounded.view, tolerance + rounded.tolerance
        null = MonteCarlo() if view.rows.clusters is None else ClusterSigns()
        trial = Trial(view.rows, view.labels, options.n_resamples, own, options.workers)
        found.append(sided_answer(statistic, null, trial, allowed, "two-sided"))
    pvalues = np.array([each.answer.pvalue for each in found])
    return Answers(
        values=np.array([each.answer.statistic for each in found]),
        pvalues=pvalues,
        intervals=tuple(each.answer.pvalue_interval or (0.0, 1.0) for each in found),
        adjusted=adjusted(pvalues, options.correction),
        expected=None,
        evidence=-np.log(pvalues),
        largest=None,
    )
