"""`audit`: every class, group and statistic at once, and one exact answer."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import narwhals as nw
import numpy as np
from numpy.typing import NDArray

from caltest._arguments import arguments, level_of_confidence
from caltest._parallel import Workers, single_threaded_blas
from caltest._sampling import Rng, child_seed, seed_of
from caltest.auditing.answers import (
    Answers,
    answers,
    check_resolution,
    checked_correction,
    draw_all,
    key_of,
    tolerated,
)
from caltest.auditing.groups import Grouping, equal_to_labels, read_groups
from caltest.auditing.plan import (
    CANONICAL,
    LENSES,
    Lenses,
    Look,
    Plan,
    Source,
    Statistics,
    Wanted,
    make_plan,
)
from caltest.auditing.result import Audit, Check, Reliability, View
from caltest.binning import ConsistencyBand, EqualMass, joint_bands, reliability_curve, share_bands
from caltest.bounds.lower import BoundsPlan, draws_needed
from caltest.cox import recalibration_of
from caltest.data import Sample, impossible_labels, sample
from caltest.forms import Side
from caltest.pvalues import Alternative
from caltest.tolerance import event

# ------------------------------------------------------------------ asked


def call_text(
    groups: tuple[object, tuple[str, ...]], seed: int, **options: tuple[object, object]
) -> str:
    """Write a call of :func:`caltest.audit`, with the options that are not the defaults.

    Parameters
    ----------
    groups
        What was given, and the names of its columns.
    seed
        What repeats the numbers, given as ``rng``.
    options
        By name: what was given, and the default.

    Examples
    --------
    >>> call_text((None, ()), 7, alpha=(0.1, 0.05), min_rows=(50, 50))
    'caltest.audit(probs, labels, alpha=0.1, rng=7)'
    """
    parts = ["probs", "labels"]
    given, columns = groups
    if given is not None:
        native: Any = nw.from_native(given, eager_only=True, allow_series=True, pass_through=True)
        frame = isinstance(native, nw.DataFrame)
        parts.append(f"groups=groups[{list(columns)!r}]" if frame else "groups=groups")
    for name, (value, default) in options.items():
        if not _same(value, default):
            parts.append(f"{name}={_written(value)}")
    return f"caltest.audit({', '.join([*parts, f'rng={seed}'])})"


def _same(value: object, default: object) -> bool:
    if isinstance(value, list | tuple) and isinstance(default, tuple):
        return len(value) == len(default) and all(
            isinstance(one, str) and one == other for one, other in zip(value, default, strict=True)
        )
    return value is default or (isinstance(value, int | float | np.generic) and value == default)


def _written(value: object) -> str:
    """Write a value as it would be typed; functions by their name."""
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{name!r}: {_written(each)}" for name, each in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(_written(each) for each in value) + "]"
    if isinstance(value, tuple):
        return (
            "(" + ", ".join(_written(each) for each in value) + ("," if len(value) == 1 else "") + ")"
        )
    if isinstance(value, np.generic):
        return repr(value.item())
    if isinstance(value, type) or (callable(value) and hasattr(value, "__name__")):
        return str(value.__name__)
    return repr(value)


# ------------------------------------------------------------------ bounded


MOST_GROUPS = 30
MOST_CLASSES = 10
_DRAWS = 499
_MOST_WORK = 1e9  # rows times draws: a minute or two at worst on one core
_MOST_FOR_ONE = 1e10
_ROWS_OF_A_DRAW = 5_000  # what a draw costs besides its rows
_TOP_LABEL = "top_label"


@dataclass(frozen=True)
class Bounded:
    """What is proved of one look: it claims at least this much too much, or too little, somewhere."""

    over: float
    under: float


#: What is proved of a look in which no check found an error.
NOTHING = Bounded(0.0, 0.0)


def family(looks: Iterable[Look], alpha: float) -> tuple[Look, ...]:
    """Return the looks whose error is bounded, chosen from the predictions alone.

    The top label on all rows (or what one probability the audit looks at on all rows), the classes
    with the most expected events on all rows, and the top label in the largest groups: as many of
    them, in this order, as can be bounded in minutes.
    """
    single = [look for look in looks if look.event is not None]
    overall = [look for look in single if look.group is None]
    first = [look for look in overall if look.scope.column is None and look.scope.label != CANONICAL]
    first += [look for look in overall if look.scope.label == CANONICAL]
    classes = [look for look in overall if look.scope.column is not None]
    classes.sort(key=lambda look: (-look.expected, look.key))
    named = first[0].scope.label if first else None
    label = _TOP_LABEL if any(look.scope.label == _TOP_LABEL for look in single) else named
    groups = [look for look in single if look.group and look.scope.label == label]
    groups.sort(key=lambda look: (-look.n_rows, look.key))
    wanted = [*first, *groups[:MOST_GROUPS], *classes[:MOST_CLASSES]]
    kept = [*first, *classes[:MOST_CLASSES], *groups[:MOST_GROUPS]]
    while kept and _work(kept, alpha) > (_MOST_WORK if len(kept) > 1 else _MOST_FOR_ONE):
        kept.pop()
    return tuple(look for look in wanted if look in kept)


def _work(looks: Sequence[Look], alpha: float) -> float:
    return _draws(len(looks), alpha) * sum(look.n_rows + _ROWS_OF_A_DRAW for look in looks)


def _draws(count: int, alpha: float) -> int:
    return max(_DRAWS, draws_needed(alpha / (2 * count)))


def bounds(
    source: Source,
    labels: NDArray[np.intp],
    looks: Sequence[Look],
    alpha: float,
    seed: int,
    workers: Workers,
) -> dict[Look, Bounded]:
    """Bound the error of every look, all bounds together with confidence 1 − alpha (Bonferroni).

    The draws of a look are its own: another look changes the level only.
    """
    if not looks:
        return {}
    level, n_draws = alpha / (2 * len(looks)), _draws(len(looks), alpha)
    found = {}
    for look in looks:
        plan = BoundsPlan(
            level=level,
            family=2 * len(looks),
            n_draws=n_draws,
            seed=child_seed(seed, *key_of("bounds", *look.key)),
            workers=workers,
        )
        view = source.sample(look, labels)
        lens = None if look.scope.lens is None else look.scope.label
        each = plan.view(event(lens, view.rows), view, lens)
        found[look] = Bounded(each.over.bound, each.under.bound)
    return found


# ------------------------------------------------------------------ described


_MOST_BINS = 15
_ROWS_OF_A_BIN = 20
_ROUNDING = 1e-12  # of means of probabilities


def described(
    look: Look, sample: Sample, bounded: Bounded | None, band: ConsistencyBand | None
) -> View:
    """Return the view of a look.

    Parameters
    ----------
    look, sample
        What is looked at, with its predictions and labels.
    bounded
        Its bounds, if it has any.
    band
        The band of its reliability diagram; None: no diagram.
    """
    if look.event is None:
        return View(
            lens=look.scope.label,
            event=None,
            group=look.group,
            rows=look.n_rows,
            direction=_direction(_entropic(sample)),
        )
    p = sample.rows.probs[:, 1]
    says, share = float(p.mean()), float(sample.labels.mean())
    return View(
        lens=look.scope.label,
        event=look.event,
        group=look.group,
        rows=look.n_rows,
        says=says,
        share=share,
        direction=_direction(says - share),
        over=bounded.over if bounded else None,
        under=bounded.under if bounded else None,
        reliability=None if band is None else reliability(sample, band),
    )


def _entropic(sample: Sample) -> float:
    """Return the entropic calibration difference, above 0 where the model claims too much."""
    table = sample.rows.surprises()
    return float(table[np.arange(len(table)), sample.labels].mean())


def _direction(error: float) -> Side | None:
    if math.isnan(error) or abs(error) <= _ROUNDING:
        return None
    return "over" if error > 0.0 else "under"


def _binning(n_rows: int) -> EqualMass:
    """Return the bins of a diagram: up to 15, of at least 20 rows or so."""
    return EqualMass(int(np.clip(n_rows // _ROWS_OF_A_BIN, 1, _MOST_BINS)))


def bins_of(probs: NDArray[np.float64]) -> NDArray[np.intp]:
    """Return the bin of every row of two classes, from left to right, as in the diagram."""
    return _binning(len(probs)).cells(probs)


def reliability(sample: Sample, band: ConsistencyBand) -> Reliability:
    """Return the reliability diagram of one probability, with a band of its bins."""
    probs = sample.rows.probs
    curve = reliability_curve(probs, sample.labels, _binning(len(probs)))
    return Reliability(
        says=tuple(curve.predicted.tolist()),
        share=tuple(curve.observed.tolist()),
        rows=tuple(curve.counts.tolist()),
        low=tuple(band.low.tolist()),
        high=tuple(band.high.tolist()),
    )


# ------------------------------------------------------------------ engine


ALPHA = 0.05
MIN_ROWS = 50
N_RESAMPLES = 999

_MOST_IN_BANDS = 2_000_000  # rows of all views: a second or two
_OF_ALWAYS = 0.8  # of the level of all bands, for the diagrams that are drawn whatever is found
_MOST_PICTURED = 30  # reliability diagrams, besides those of views whose error is bounded


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
    level, rows, draws = float(alpha), int(min_rows), int(n_resamples)
    error = None if tolerance is None else float(tolerance)
    name = checked_correction(correction, error is not None)
    wanted = Wanted.of(lenses, statistics, error is not None)
    seed, workers = seed_of(rng), Workers(n_jobs, progress)
    whole = sample(probs, labels)
    groupings = read_groups(groups, len(whole.labels), probs=probs, labels=labels)
    source = Source(whole.rows)
    plan = make_plan(source, groupings, wanted, rows, draws)
    check_resolution(_alternatives(plan, error), name, level, draws)
    with single_threaded_blas():
        found = _answered(source, whole, plan, error, name, draws, seed, workers)
        bounded = bounds(source, whole.labels, family(plan.looks, level), level, seed, workers)
        views = _views(source, whole, plan, found, bounded, level)
    impossible = 0 if error else len(whole.rows.impossible(whole.labels))
    pvalue = min(float(found.adjusted.min()), 1.0 / (1 + draws) if impossible else 1.0)
    two_classes = whole.rows.n_classes == 2
    return Audit(
        pvalue=pvalue,
        alpha=level,
        checks=_checks(plan, views, found, level),
        views=tuple(views[look] for look in plan.looks),
        skipped=plan.skipped,
        tolerance=error,
        correction=name,
        confidence=level_of_confidence(level),
        n_samples=len(whole.labels),
        n_classes=whole.rows.n_classes,
        classes=_class_names(whole),
        lenses=plan.lenses,
        groups=plan.columns,
        n_resamples=draws,
        seed=seed,
        statistic=float(found.evidence.max()) + 0.0,
        null_distribution=found.largest,
        call=call_text(
            (groups, plan.columns),
            seed,
            lenses=(lenses, LENSES),
            statistics=(statistics, None),
            alpha=(alpha, ALPHA),
            tolerance=(tolerance, None),
            correction=(correction, None),
            min_rows=(min_rows, MIN_ROWS),
            n_resamples=(n_resamples, N_RESAMPLES),
        ),
        warnings=_warnings(whole, groupings, error),
        impossible=impossible,
        recalibration=recalibration_of(whole) if two_classes and pvalue <= level else None,
    )


def _answered(
    source: Source,
    whole: Sample,
    plan: Plan,
    tolerance: float | None,
    correction: str,
    n_resamples: int,
    seed: int,
    workers: Workers,
) -> Answers:
    """Return the p-values of all hypotheses."""
    if tolerance is not None:
        return tolerated(
            source, whole.labels, plan.hypotheses, tolerance, correction, n_resamples, seed, workers
        )
    drawn = draw_all(source, whole.labels, plan.hypotheses, n_resamples, seed, workers)
    return answers(drawn, _alternatives(plan, tolerance), correction)


def _views(
    source: Source,
    whole: Sample,
    plan: Plan,
    found: Answers,
    bounded: dict[Look, Bounded],
    level: float,
) -> dict[Look, View]:
    """Describe every look; those with bounds or findings have a reliability diagram.

    Bounds are kept where a check of the look found an error; a bound may always be lowered.
    """
    strongest = [
        int(h) for h in np.argsort(-found.evidence, kind="stable") if found.adjusted[h] <= level
    ]
    pictured = dict.fromkeys(plan.hypotheses[h].look for h in strongest)
    chosen = {*list(pictured)[:_MOST_PICTURED], *bounded}
    bands = _bands(source, plan.looks, bounded, chosen, level)
    kept = {look: each if look in pictured else NOTHING for look, each in bounded.items()}
    return {
        look: described(
            look,
            source.sample(look, whole.labels),
            kept.get(look),
            bands.get(look),
        )
        for look in plan.looks
    }


def _bands(
    source: Source,
    looks: Sequence[Look],
    always: Collection[Look],
    chosen: Collection[Look],
    level: float,
) -> dict[Look, ConsistencyBand]:
    """Return the bands of the reliability diagrams of the chosen looks.

    Looks that are drawn always, which the predictions alone determine, have most of the level; which
    others are drawn depends on labels, so that all of them share what is left.
    """
    single = [look for look in looks if look.event is not None]
    first = [look for look in single if look in always]
    rest = [look for look in single if look not in always]
    share = _OF_ALWAYS if first and rest else 1.0
    bands = _bands_of(source, first, chosen, (share if first else 0.0) * level)
    return bands | _bands_of(source, rest, chosen, (1.0 - share if first else 1.0) * level)


def _bands_of(
    source: Source, looks: Sequence[Look], chosen: Collection[Look], level: float
) -> dict[Look, ConsistencyBand]:
    """Return the bands of those of the looks that are chosen, at a level of all looks together.

    Of very many rows, each look has an equal part of the level; else what counts leave is shared.
    """
    drawn = [look for look in looks if look in chosen]
    if not drawn:
        return {}
    together = sum(look.n_rows for look in looks) <= _MOST_IN_BANDS
    wanted = looks if together else drawn
    views = []
    for look in wanted:
        probs = source.at(look).probs
        views.append((probs[:, 1], bins_of(probs)))
    if together:
        found = joint_bands(views, level)
    else:
        part = level / len(looks)
        found = [share_bands(scores, cells, part, part)[1] for scores, cells in views]
    return {look: band for look, band in zip(wanted, found, strict=True) if look in chosen}


def _checks(plan: Plan, views: dict[Look, View], found: Answers, level: float) -> tuple[Check, ...]:
    """Return the checks, the strongest evidence first."""
    order = np.lexsort((-found.evidence, found.pvalues, found.adjusted))
    checks = []
    for h in order.tolist():
        hypothesis = plan.hypotheses[h]
        checks.append(
            Check(
                view=views[hypothesis.look],
                statistic=hypothesis.statistic.name,
                measures=hypothesis.statistic.measures,
                value=float(found.values[h]) + 0.0,  # −0 is 0
                expected=None if found.expected is None else found.expected[h],
                pvalue=float(found.pvalues[h]),
                pvalue_interval=found.intervals[h],
                adjusted=float(found.adjusted[h]),
                found=bool(found.adjusted[h] <= level),
            )
        )
    return tuple(checks)


def _warnings(
    whole: Sample, groupings: tuple[Grouping, ...], tolerance: float | None
) -> tuple[str, ...]:
    impossible = () if tolerance else impossible_labels(whole)
    return (*whole.rows.notes, *equal_to_labels(groupings, whole.labels), *impossible)


def _class_names(whole: Sample) -> tuple[str, ...]:
    names = whole.rows.classes
    return names or tuple(f"class {k}" for k in range(whole.rows.n_classes))


def _alternatives(plan: Plan, tolerance: float | None) -> list[Alternative]:
    if tolerance is None:
        return [hypothesis.statistic.alternatives[0] for hypothesis in plan.hypotheses]
    return ["two-sided" for _ in plan.hypotheses]
