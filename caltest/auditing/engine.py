"""`audit`: every class, group and statistic at once, and one exact answer; and a test made of it."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from functools import partial
from hashlib import sha256
from itertools import groupby
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from caltest._arguments import arguments, level_of_confidence
from caltest._memory import check_fits
from caltest._parallel import Workers, single_threaded_blas
from caltest._sampling import Rng, child_seed, seed_of
from caltest._work import announce, together
from caltest.auditing.groups import equal_to_labels, read_groups
from caltest.auditing.plan import (
    LENSES,
    WESTFALL_YOUNG,
    Hypothesis,
    Lenses,
    Look,
    Plan,
    Scope,
    Source,
    Statistics,
    Wanted,
    bounded_looks,
    call_of,
    check_resolution,
    form_of,
    make_plan,
)
from caltest.auditing.result import Audit, Check, Reliability, View
from caltest.binning import ConsistencyBand, EqualMass, joint_bands, reliability_curve, share_bands
from caltest.bounds.lower import BoundsPlan
from caltest.cox import recalibration_of
from caltest.data import Sample, impossible_labels, sample
from caltest.exceptions import Argument, InputError, Phrase
from caltest.forms import LabelFunction
from caltest.lenses import Reducer, event
from caltest.nulls import MonteCarlo
from caltest.pvalues import (
    Alternative,
    StepDown,
    adjusted,
    check_correction,
    count,
    evidence_of_draws,
    interval,
    pvalue,
)
from caltest.resampling import Column, LabelDraws, LabelView, Reduce, table
from caltest.text.numbers import counted
from caltest.tolerance import sided_answer

Array: TypeAlias = NDArray[np.float64]
Labels: TypeAlias = NDArray[Any]

ALPHA = 0.05
MIN_ROWS = 50
N_RESAMPLES = 999


@arguments()
def audit(
    probs: object,
    labels: object,
    *,
    groups: object = None,
    lenses: Lenses = LENSES,
    statistics: Statistics | None = None,
    alpha: float = ALPHA,
    tolerance: float | None = None,
    correction: str | None = None,
    min_rows: int = MIN_ROWS,
    n_resamples: int = N_RESAMPLES,
    rng: Rng = None,
    n_jobs: int | None = None,
    progress: bool = False,
) -> Audit:
    """Look at a model from many sides at once, and give one exact answer.

    Parameters
    ----------
    probs, labels
        As in :func:`caltest.test`; probabilities of classes.
    groups
        What groups the rows: a data frame of columns, a dict of columns, or one series or list, of
        n entries each, known before the labels. Values are compared as text, missing ones are a
        group of their own. Default None: all rows only.
    lenses
        What is looked at, on all rows and in every group: "canonical" (the full probability
        vector), "top_label", "classwise" (every class by itself), or any lens of
        :func:`caltest.test`. Default: these three, less the pairs of a class and a group where
        they would take more than minutes (they are named then); ask for "classwise" alone to have
        them.
    statistics
        A name, an object or a function, as in :func:`caltest.test`, or several: each looks through
        every lens that it fits; or a dict of them by lens. Default None: "skce_uq" and "ecd" of
        probability vectors, "ks" and "ecd" of one probability, "scan" with a tolerance. "skce_uq"
        has a kernel of low rank where rows are many (``approximation="auto"`` of
        :class:`caltest.statistics.UnbiasedSKCE`), and is no default for more than 100 000 rows.
    alpha
        Level of the whole. Default 0.05.
    tolerance
        Ask whether the model is wrong by more than this anywhere, as :func:`caltest.test` does, one
        probability at a time. Default None.
    correction
        How p-values are adjusted for their number: "westfall_young" (default), or one of
        `caltest.pvalues.CORRECTIONS`, "holm" (default with a tolerance) or "fdr_bh" for
        instance.
    min_rows
        Groups of fewer rows, or of one, are skipped, and named. Default 50: in fewer, only errors of
        some 20 points could be seen, and every look more makes it harder for the others to be found.
    n_resamples
        Label draws. Default 999.
    rng, n_jobs, progress
        As in :func:`caltest.test`.

    Returns
    -------
    Audit
        Frozen; ``print`` it, or call ``.to_frame()``, ``.to_dict()``, ``.summary()``.

    Raises
    ------
    InputError
        If the input is no set of predictions, labels and groups; if there is nothing to test; or if
        so many hypotheses cannot reach ``alpha`` with so few resamples.

    Notes
    -----
    *One set of draws.* If the model is calibrated, labels are draws from its predictions. Labels are
    so drawn ``n_resamples`` times, with predictions and groups held fixed, and every hypothesis (a
    lens, on all rows or a group, by a statistic) sees the same draws. Each statistic is put on one
    scale, its tail under H0 (:mod:`caltest.pvalues`), observed labels and draws alike, and Westfall
    and Young's step-down maxima adjust for the number of hypotheses, whatever their dependence.

    *What is controlled.* If the model is calibrated, the chance of any finding is at most ``alpha``
    in every finite sample, ties aside exactly ``alpha``: whatever the statistics, users' functions
    included. What is looked at hangs on predictions and groups only. If some hypotheses are false,
    the chance that a true one is found is at most ``alpha`` too, where true means that, row by row
    and given the full prediction and the groups, what the lens looks at comes true with the
    probability that is said: then the draws have the joint law of all true ones ("subset
    pivotality"), over all groups, and over lenses that look at single classes. A weaker reading of a
    lens, right on average over all rows of one *reduced* prediction though not given the full one,
    leaves the law of the other labels open; with "holm" (each p-value by itself, any dependence)
    only that of the one hypothesis matters, and "fdr_bh" controls the share of false findings among
    all.

    *Adjusted p-values* are multiples of 1/(B + 1), and none is below the p-value alone; of two sides
    the latter is doubled. ``pvalue`` of the whole is the smallest adjusted one.

    *With a tolerance* each hypothesis has draws of its own, from the model within the tolerance that
    is hardest to tell, and a seed that hangs on what it is; p-values are adjusted by "holm".

    *A label of probability 0* is impossible under H0, and one that came true rejects it, whatever the
    checks found: ``pvalue`` is then 1/(B + 1). With a tolerance above 0 it is a label like any other.

    *Bounds* say by how much the model is wrong at least (:func:`caltest.miscalibration_bounds`): of
    the top label on all rows and in the 30 largest groups, and of the ten classes with the most
    events. All hold together with confidence 1 − alpha, whatever was found (Bonferroni; fewer where
    rows are so many that it would take long). Where no check of a view found an error its bounds are
    lowered to 0, which leaves them bounds: checks and bounds are made of different statistics, and
    what they say should agree.

    *Reliability diagrams* have bands that hold for all bins of all views of one probability at once,
    drawn or not, with probability 1 − alpha at least. Those that are drawn whatever is found, because
    their error is bounded, have four fifths of alpha, all others the rest. What the counts of events,
    whole numbers, leave of alpha in some bins is used in others. That views share rows is not used.

    *Numbers stay.* A lens, group or statistic more leaves the draws, and so values and p-values
    alone, of all others as they are; adjusted ones and bounds hang on how many there are.

    References
    ----------
    Westfall and Young, "Resampling-based multiple testing", 1993; Romano and Wolf, "Exact and
    approximate stepdown methods for multiple hypothesis testing", JASA 100 (2005).

    Examples
    --------
    >>> import caltest
    >>> digits = caltest.datasets.load_digits_predictions("naive_bayes")
    >>> halves = ["first" if row < 400 else "second" for row in range(len(digits.labels))]
    >>> found = caltest.audit(digits.probs, digits.labels, groups=halves, n_resamples=99, rng=0)
    >>> found.pvalue, found.rejected, found.checks[0].view.lens
    (0.01, True, 'canonical')
    """
    given = {"lenses": lenses, "statistics": statistics, "alpha": alpha, "tolerance": tolerance}
    given |= {"correction": correction, "min_rows": min_rows, "n_resamples": n_resamples}
    level, rows, draws = float(alpha), int(min_rows), int(n_resamples)
    error = None if tolerance is None else float(tolerance)
    name = correction
    if name is None:
        name = WESTFALL_YOUNG if error is None else "holm"
    if name == WESTFALL_YOUNG and error is not None:
        raise InputError(
            "with a tolerance every p-value has draws of its own, which 'westfall_young' cannot "
            "adjust jointly; give correction='holm', or leave it out."
        )
    if name != WESTFALL_YOUNG:
        check_correction(name, WESTFALL_YOUNG)
    wanted = Wanted.of(lenses, statistics, error is not None)
    seed, workers = seed_of(rng), Workers(n_jobs, progress)
    whole = sample(probs, labels)
    groupings = read_groups(groups, len(whole.labels), probs=probs, labels=labels)
    source = Source(whole.rows)
    plan = make_plan(source, groupings, wanted, rows, draws)
    sides = [statistic.alternatives[0] for _, statistic in plan.hypotheses]
    check_resolution(sides if error is None else ["two-sided"] * len(sides), name, level, draws)
    with single_threaded_blas():
        if error is None:
            drawn = draw_all(source, whole.labels, plan.hypotheses, draws, seed, workers)
            found = answers(*drawn, sides, name)
        else:
            found = tolerated(source, whole.labels, plan.hypotheses, error, name, draws, seed, workers)
        looks, n_draws = bounded_looks(plan.looks, level)
        bounded = bounds(source, whole.labels, looks, n_draws, level, seed, workers)
        views = _views(source, whole, plan, found, bounded, level)
    checks = tuple(
        Check(
            view=views[plan.hypotheses[h][0]],
            statistic=plan.hypotheses[h][1].name,
            measures=plan.hypotheses[h][1].measures,
            value=float(found.values[h]) + 0.0,  # −0 is 0
            expected=None if found.expected is None else found.expected[h],
            pvalue=float(found.pvalues[h]),
            pvalue_interval=found.intervals[h],
            adjusted=float(found.adjusted[h]),
            found=bool(found.adjusted[h] <= level),
        )
        for h in np.lexsort((-found.evidence, found.pvalues, found.adjusted)).tolist()
    )
    n_classes = whole.rows.n_classes
    impossible = 0 if error else len(whole.rows.impossible(whole.labels))
    p = min(float(found.adjusted.min()), 1.0 / (1 + draws) if impossible else 1.0)
    return Audit(
        pvalue=p,
        alpha=level,
        checks=checks,
        views=tuple(views[look] for look in plan.looks),
        skipped=plan.skipped,
        tolerance=error,
        correction=name,
        confidence=level_of_confidence(level),
        n_samples=len(whole.labels),
        n_classes=n_classes,
        classes=whole.rows.classes or tuple(f"class {k}" for k in range(n_classes)),
        lenses=plan.lenses,
        groups=plan.columns,
        n_resamples=draws,
        seed=seed,
        statistic=float(found.evidence.max()) + 0.0,
        null_distribution=found.largest,
        call=call_of(audit, groups, plan.columns, seed, given),
        warnings=(
            *whole.rows.notes,
            *equal_to_labels(groupings, whole.labels),
            *(() if error else impossible_labels(whole)),
        ),
        impossible=impossible,
        recalibration=recalibration_of(whole) if n_classes == 2 and p <= level else None,
    )


# ------------------------------------------------------------------ p-values
#
# Labels are drawn from the full predictions, and every lens and group sees the same draws. Of the
# labels one block of draws is held at a time and worker, of the statistics all: (1 + B, H) numbers.

# Predicted numbers of the looks of a batch; forms hold about as many, in 8 bytes each, twice.
_HELD = 2**24
_TABLES = 4.0  # tables of draws and hypotheses that are held at a time, with their ranks
_EXPECTED = (0.025, 0.975)
_FASTER = Phrase(
    "fewer draws ({draws}), groups or statistics take less", {"draws": Argument("n_resamples")}
)


class Answers(NamedTuple):
    """What is found of H hypotheses, each alone and adjusted for all, and of the whole."""

    values: Array  # of the observed labels, (H,)
    pvalues: Array
    intervals: tuple[tuple[float, float], ...]  # Monte-Carlo
    adjusted: Array  # never below the p-value alone
    expected: tuple[tuple[float, float], ...] | None  # where 95% of the draws of the one null lie
    evidence: Array  # −log of the tail
    largest: Array | None  # evidence of every draw, (B,), where p-values are jointly drawn


def key_of(*names: str) -> list[int]:
    """Return whole numbers that stand for some names, the same on every machine."""
    found: list[int] = np.frombuffer(sha256(repr(names).encode()).digest(), ">u4", 4).tolist()
    return found


def draw_all(
    source: Source,
    labels: NDArray[np.intp],
    hypotheses: Sequence[Hypothesis],
    n_resamples: int,
    seed: int,
    workers: Workers,
) -> tuple[Array, Array]:
    """Evaluate all statistics on the observed labels and on the same draws, those of `caltest.test`.

    Return (1 + B, H) values, and how far two evaluations of one may differ by rounding, (H,).
    """
    check_fits(
        _TABLES * 8.0 * n_resamples * len(hypotheses),
        f"an audit of {len(hypotheses)} hypotheses with {n_resamples} draws each",
        "take fewer draws, groups or statistics",
    )
    batches: list[list[tuple[Look, list[int]]]] = [[]]  # of looks whose forms are held at once
    held = 0
    for look, each in groupby(range(len(hypotheses)), key=lambda h: hypotheses[h][0]):
        places = list(each)
        size = look.n_rows * source.n_classes(look) * len(places)
        if batches[-1] and held + size > _HELD:
            batches.append([])
            held = 0
        batches[-1].append((look, places))
        held += size
    values, resolutions = np.empty((1 + n_resamples, len(hypotheses))), np.zeros(len(hypotheses))
    draws = LabelDraws(source.predictions.sampler(seed), labels, n_resamples)
    draws = draws.held(workers) if len(batches) > 1 else draws
    for batch in batches:
        reduced: dict[Scope, Reduce | None] = {}  # looks of a lens share its labels
        columns: list[Column] = []
        for look, places in batch:
            scope, predictions = look.scope, source.at(look)
            if scope not in reduced:
                reducer = source.reducer(scope)
                reduced[scope] = None if reducer is None else partial(_of_all, reducer)
            share = float(predictions.probs[:, 1].mean())
            view = LabelView(look.rows, reduced[scope], scope.column, share)
            statistics = [hypotheses[h][1].shuffled(seed) for h in places]
            columns += [Column(view, form_of(look, each, predictions)) for each in statistics]
        here = [h for _, places in batch for h in places]
        if batch is batches[0]:  # the others are like it
            # Views of one class each meet the rows in which it is drawn.
            parts = [
                together([form.work(n_resamples)], 1.0 if view.event is None else view.share)
                for view, form in columns
            ]
            work = together(parts, len(hypotheses) / len(here))
            announce(f"an audit of {counted(len(labels), 'row')}", work, workers, _FASTER)
        values[:, here] = table(columns, draws, workers)
        resolutions[here] = [form.resolution for _, form in columns]
        for (view, form), h in zip(columns, here, strict=True):
            if isinstance(form, LabelFunction):
                form.check_unmoved(view.labels(labels[None])[0], float(values[0, h]))
    return values, resolutions


def _of_all(reducer: Reducer, labels: Labels, rows: slice) -> Labels:
    return reducer(labels)


def answers(
    values: Array, resolutions: Array, alternatives: Sequence[Alternative], correction: str
) -> Answers:
    """Rank the observed labels among the draws, each hypothesis alone and all together."""
    observed, draws = values[0], values[1:]
    counts, expected = [], []
    for h, side in enumerate(alternatives):
        counts.append(count(draws[:, h], float(observed[h]), side, float(resolutions[h])))
        numbers = draws[~np.isnan(draws[:, h]), h]
        low = high = float("nan")
        if len(numbers):
            low, high = np.quantile(numbers, _EXPECTED, method="inverted_cdf").tolist()
        expected.append((low + 0.0, high + 0.0))  # −0 is 0
    found = list(zip(counts, alternatives, strict=True))
    pvalues = np.array([pvalue(each, len(draws), side) for each, side in found])
    evidence = evidence_of_draws(values, alternatives, resolutions)
    evidence[np.isnan(evidence)] = 0.0  # of all rows alike: what is no number says nothing
    if correction == WESTFALL_YOUNG:
        test = StepDown.of(evidence[0])
        together = test.pvalues(test.count(evidence[1:]), len(draws))
    else:
        together = adjusted(pvalues, correction)
    return Answers(
        values=observed,
        pvalues=pvalues,
        intervals=tuple(interval(each, len(draws), side) for each, side in found),
        adjusted=np.maximum(together, pvalues),
        expected=tuple(expected),
        evidence=evidence[0],
        largest=evidence[1:].max(axis=1) + 0.0,
    )


def tolerated(
    source: Source,
    labels: NDArray[np.intp],
    hypotheses: Sequence[Hypothesis],
    tolerance: float,
    correction: str,
    n_resamples: int,
    seed: int,
    workers: Workers,
) -> Answers:
    """Test every hypothesis on both sides; its seed depends on what it is, not on the others."""
    found = []
    for look, statistic in hypotheses:
        own = child_seed(seed, *key_of("tolerance", *look.key, statistic.name))
        view = source.sample(look, labels)
        found.append(
            sided_answer(
                statistic, MonteCarlo(), view, tolerance, "two-sided", n_resamples, own, workers
            )
        )
    pvalues = np.array([each.answer.pvalue for each in found])
    return Answers(
        values=np.array([each.value for each in found]),
        pvalues=pvalues,
        intervals=tuple(each.answer.pvalue_interval or (0.0, 1.0) for each in found),
        adjusted=adjusted(pvalues, correction),
        expected=None,
        evidence=-np.log(pvalues),
        largest=None,
    )


# ------------------------------------------------------------------ views


_MOST_IN_BANDS = 2_000_000  # rows of all views: a second or two
_OF_ALWAYS = 0.8  # of the level of all bands, for the diagrams that are drawn whatever is found
_MOST_PICTURED = 30  # reliability diagrams, besides those of views whose error is bounded
_MOST_BINS = 15
_ROWS_OF_A_BIN = 20
_ROUNDING = 1e-12  # of means of probabilities


def bounds(
    source: Source,
    labels: NDArray[np.intp],
    looks: Sequence[Look],
    n_draws: int,
    alpha: float,
    seed: int,
    workers: Workers,
) -> dict[Look, tuple[float, float]]:
    """Bound how much too much and too little looks claim, together with confidence 1 − alpha.

    That is Bonferroni's. The draws of a look are its own: another look changes the level only.
    """
    found = {}
    for look in looks:
        own = child_seed(seed, *key_of("bounds", *look.key))
        plan = BoundsPlan(alpha / (2 * len(looks)), 2 * len(looks), n_draws, own, workers)
        view = source.sample(look, labels)
        lens = None if look.scope.lens is None else look.scope.label
        each = plan.view(event(lens, view.rows), view, lens)
        found[look] = (each.over.bound, each.under.bound)
    return found


def _views(
    source: Source,
    whole: Sample,
    plan: Plan,
    found: Answers,
    bounded: Mapping[Look, tuple[float, float]],
    level: float,
) -> dict[Look, View]:
    """Describe every look; those with bounds or findings have a reliability diagram.

    Bounds are kept where a check of the look found an error; a bound may always be lowered.
    """
    order = np.argsort(-found.evidence, kind="stable").tolist()
    wrong = dict.fromkeys(plan.hypotheses[h][0] for h in order if found.adjusted[h] <= level)
    bands = _bands(source, plan.looks, bounded, {*list(wrong)[:_MOST_PICTURED], *bounded}, level)
    views = {}
    for look in plan.looks:
        seen = source.sample(look, whole.labels)
        says = share = over = under = None
        if look.event is None:  # the entropic calibration difference
            error = float(seen.rows.surprises()[np.arange(look.n_rows), seen.labels].mean())
        else:
            says, share = float(seen.rows.probs[:, 1].mean()), float(seen.labels.mean())
            error = says - share
        if look in bounded:
            over, under = bounded[look] if look in wrong else (0.0, 0.0)
        errs = not math.isnan(error) and abs(error) > _ROUNDING
        views[look] = View(
            lens=look.scope.label,
            event=look.event,
            group=look.group,
            rows=look.n_rows,
            says=says,
            share=share,
            direction=("over" if error > 0.0 else "under") if errs else None,
            over=over,
            under=under,
            reliability=reliability(seen, bands[look]) if look in bands else None,
        )
    return views


def _bands(
    source: Source,
    looks: Sequence[Look],
    always: Collection[Look],
    chosen: Collection[Look],
    level: float,
) -> dict[Look, ConsistencyBand]:
    """Return the bands of the reliability diagrams of the chosen looks.

    Looks that are drawn always, which the predictions alone determine, have most of the level; which
    others are drawn depends on labels, so that all of them share what is left. Of very many rows, each
    look has an equal part of the level; else what counts leave is shared.
    """
    single = [look for look in looks if look.event is not None]
    first = [look for look in single if look in always]
    rest = [look for look in single if look not in always]
    share = _OF_ALWAYS if first and rest else float(bool(first))
    bands: dict[Look, ConsistencyBand] = {}
    for part, alpha in ((first, share * level), (rest, (1.0 - share) * level)):
        drawn = [look for look in part if look in chosen]
        if not drawn:
            continue
        together = sum(look.n_rows for look in part) <= _MOST_IN_BANDS
        wanted = part if together else drawn
        probs = [source.at(look).probs for look in wanted]
        views = [(pair[:, 1], bins_of(pair)) for pair in probs]
        if together:
            found = joint_bands(views, alpha)
        else:
            own = alpha / len(part)
            found = [share_bands(scores, cells, own, own)[1] for scores, cells in views]
        bands |= {look: band for look, band in zip(wanted, found, strict=True) if look in chosen}
    return bands


def _binning(n_rows: int) -> EqualMass:
    """Return the bins of a diagram: up to 15, of at least 20 rows or so."""
    return EqualMass(int(np.clip(n_rows // _ROWS_OF_A_BIN, 1, _MOST_BINS)))


def bins_of(probs: Array) -> NDArray[np.intp]:
    """Return the bin of every row of two classes, from left to right, as in the diagram."""
    return _binning(len(probs)).cells(probs)


def reliability(sample: Sample, band: ConsistencyBand) -> Reliability:
    """Return the reliability diagram of one probability, with a band of its bins."""
    probs = sample.rows.probs
    curve = reliability_curve(probs, sample.labels, _binning(len(probs)))
    parts = (curve.predicted, curve.observed, curve.counts, band.low, band.high)
    return Reliability(*(tuple(part.tolist()) for part in parts))


# ------------------------------------------------------------------ a test of one's own


@arguments()
def assert_calibrated(
    probs: object, labels: object, *, alpha: float = 0.05, rng: Rng = 0, **options: Any
) -> Audit:
    """Fail if a model is found to be miscalibrated.

    Parameters
    ----------
    probs, labels
        (n, m) or (n,) probabilities and (n,) labels, as of :func:`caltest.audit`.
    alpha
        Level: a calibrated model fails with at most this probability, over all findings together.
        Default 0.05. In a test that runs often choose a smaller one, with enough draws for it.
    rng
        As of :func:`caltest.audit`, but 0 by default: on the same data a test says the same.
    **options
        All others of :func:`caltest.audit`: ``groups``, ``lenses``, ``statistics``, ``tolerance``, ….

    Returns
    -------
    Audit
        If calibration (within the tolerance) is not rejected. That is no proof of it.

    Raises
    ------
    AssertionError
        If it is rejected. The message is the audit's summary, with the call that repeats it.
    InputError
        A ValueError. If the input is wrong: that is no finding.

    Examples
    --------
    >>> import caltest
    >>> digits = caltest.datasets.load_digits_predictions("neural_network")
    >>> found = caltest.assert_calibrated(digits.probs, digits.labels, lenses=["top_label"])
    >>> found.pvalue > 0.05
    True

    >>> forest = caltest.datasets.load_digits_predictions("random_forest")
    >>> caltest.assert_calibrated(forest.probs, forest.labels, tolerance=0.02, lenses=["top_label"])
    Traceback (most recent call last):
    AssertionError: the model is miscalibrated beyond the tolerance of 0.02, p = 0.002 at alpha = 0.05
    ...
    """
    __tracebackhide__ = True  # pytest then shows the line of the test
    found = audit(probs, labels, alpha=alpha, rng=rng, **options)
    if found.rejected:
        raise AssertionError(found._written("failure"))
    return found
