"""`audit`: every class, group and statistic at once, with one exact answer; and a form for tests."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from caltest._arguments import arguments
from caltest._parallel import single_threaded_blas
from caltest._visible import quoted
from caltest.auditing import options as usual
from caltest.auditing import points, slices
from caltest.auditing.diagrams import views_of
from caltest.auditing.draws import answers, check_resolution, draw_all, key_of, subtractions, tolerated
from caltest.auditing.estimates import InUnits, remedies, usual_numbers
from caltest.auditing.groups import by_prediction, claimed, known_before, notes_on, read_groups, sought
from caltest.auditing.limits import Limit
from caltest.auditing.options import CANONICAL, TOP_LABEL, Lenses, Options, Statistics, call_of
from caltest.auditing.plan import MEAN, Look, make_plan
from caltest.auditing.result import Audit, FailOn, gate_of
from caltest.auditing.sizes import Design, Sizes, sensitivity
from caltest.auditing.story import corrected
from caltest.auditing.times import SizesOfTimes, answers_of_times, curves_of, share_of_level
from caltest.auditing.views import Skipped, View
from caltest.bounds.intervals import LARGEST_LEVEL
from caltest.bounds.lower import bounds_of, draws_needed
from caltest.cox import recalibration_of
from caltest.data import Sample
from caltest.data.diagnose import advice_on_zeros, impossible_labels
from caltest.data.features import refuse_tolerance
from caltest.data.premises import premises_of
from caltest.data.rows import as_order, described, in_time, without_zeros
from caltest.data.sample import named_sample, sample_of_law
from caltest.exceptions import Argument, InputError, Premise
from caltest.laws import Covered, Point, Pools, Predictive, Survival
from caltest.lenses import Entry, Until
from caltest.nulls.base import Trial
from caltest.pvalues import Alternative
from caltest.resampling import draws_of_signs
from caltest.sampling import Rng, child_seed
from caltest.statistics.order import AS_MANY

#: Options that describe the rows.
_OF_ROWS = ("weights", "clusters", "sampling_rates", "logits")


def _name(name: str, value: object) -> str:
    """Return the name of an event or unit, checked."""
    if isinstance(value, str) and value.strip():
        return value
    example = {"event": "readmission", "time_unit": "days", "unit": "EUR"}[name]
    raise InputError(argument=name, found=quoted(value), do=f"give its name, such as {example!r}")


@arguments(event=_name, time_unit=_name, unit=_name, order=as_order)
def audit(
    probs: object,
    labels: object,
    *,
    groups: object = None,
    features: object = None,
    order: object = None,
    learner: object = None,
    intersections: int = usual.INTERSECTIONS,
    materiality: usual.Materiality = None,
    materiality_ratio: float | None = None,
    event: str | None = None,
    time_unit: str | None = None,
    unit: str | None = None,
    class_names: Sequence[str | int] | None = None,
    weights: object = None,
    clusters: object = None,
    sampling_rates: Mapping[Any, float] | None = None,
    logits: bool = False,
    lenses: Lenses = usual.LENSES,
    statistics: Statistics | None = None,
    alpha: float = usual.ALPHA,
    tolerance: float | None = None,
    rounding: float | None = None,
    correction: str | None = None,
    guaranteed: bool = False,
    min_rows: int = usual.MIN_ROWS,
    n_resamples: int = usual.N_RESAMPLES,
    rng: Rng = None,
    n_jobs: int | None = None,
    progress: bool = False,
) -> Audit:
    """Audit a model: how wrong it is, in which classes and groups, and whether that matters.

    All checks together give one p-value, which stays valid however many there are.

    Parameters
    ----------
    probs : array of shape (n,) or (n, m), data frame, or predictive distribution
        Predictions, as in :func:`caltest.test`.
    labels : array of shape (n,) or (n, d), or (time, event)
        Observed classes or outcomes, as in :func:`caltest.test`.
    groups : data frame, dict of columns, or one column, optional
        Columns that group the rows, such as age or region, known before the outcome. A column with
        more than 20 different numbers is cut at its quantiles into five ranges.
    features : data frame, dict of columns, array of shape (n, d), or one column, optional
        Columns in which to search for groups that nobody has named, as in :func:`caltest.test`.
    order : array of shape (n,), or True, optional
        The order of time, as in :func:`caltest.test`, for "runs", "decay" and "autocorrelation".
    learner : regressor, optional
        What learns from ``features`` and half of the rows where predictions are wrong; the other half
        gives ``at_least_by_features``. Default None: kernel ridge regression.
    intersections : int, default 2
        How many group columns may be crossed, at most 3: with 2, women over 65 too.
    materiality : float, or dict by side, optional
        The mean error that matters, in units of probability: 0.02 for 2 percentage points. The verdict
        then says whether errors are larger, within the limit, or neither yet. By side:
        ``{"too_low": None, "too_high": 0.02}``, where None does not matter.
    materiality_ratio : float, optional
        The same as a ratio of predicted to true rate, in either direction: 1.25. Of both, the wider
        one counts, view by view.
    event : str, optional
        Name of class 1 of two, or of the event whose time is predicted.
    time_unit : str, optional
        The unit of times until an event, such as "days".
    unit : str, optional
        For point forecasts, the unit of the outcome, such as "EUR".
    class_names : sequence of str or int, optional
        Names of the classes, as in :func:`caltest.test`.
    weights : array of shape (n,), optional
        How much each row counts, as in :func:`caltest.test`. P-values and intervals stay exact; there
        are no bounds, bands or sensitivity.
    clusters : array of shape (n,), optional
        Which rows may depend on each other, as in :func:`caltest.test`. P-values are then right for
        many clusters; intervals are exact, except t intervals of one or two views carried by many.
    sampling_rates : dict of class to float, optional
        The share of each class that was kept, as in :func:`caltest.test`. For two classes, sizes of
        errors and the limit refer to the whole population.
    logits : bool, default False
        Whether ``probs`` holds logits instead of probabilities.
    lenses : str, Lens, or sequence of them, default ("canonical", "top_label", "classwise")
        What to check, in all rows and every group: the full vector, the top class, every class by
        itself, or any lens of :func:`caltest.test`.
    statistics : str, Statistic, callable, or sequence or dict of them, optional
        What to measure, as in :func:`caltest.test`; a dict is by lens. Default None: "skce_uq" (up to
        100 000 rows) and "ecd" for probability vectors; "ks", "ecd" (not for clusters) and "citl" for
        one probability; "scan" with a tolerance.
    alpha : float, default 0.05
        Overall level: the largest probability of a finding if the model is calibrated.
    tolerance : float, optional
        Ask whether the model is wrong by more than this anywhere.
    rounding : float, optional
        The step to which probabilities were rounded, such as 0.05.
    correction : str, optional
        How p-values are adjusted for the number of checks: "westfall_young" (default), "holm" (default
        with a tolerance or rounding), "fdr_bh" ….
    guaranteed : bool, default False
        Whether to use exact bounds alone. For any number of clusters every interval then holds, and an
        error is found only if the exact interval of its mean excludes 0.
    min_rows : int, default 50
        Groups with fewer rows are skipped and listed: they could only show errors of some 20 points.
    n_resamples : int, default 999
        Number of simulated label sets.
    rng : int, SeedSequence or Generator, optional
        As in :func:`caltest.test`.
    n_jobs : int, optional
        As in :func:`caltest.test`.
    progress : bool, default False
        As in :func:`caltest.test`.

    Returns
    -------
    Audit
        Frozen; ``print`` it, or call ``.to_frame()``, ``.to_dict()``, ``.summary()``, ``.plot()``.

    Raises
    ------
    InputError
        If the input cannot be read, or so many checks need more simulated label sets.

    See Also
    --------
    caltest.assert_calibrated : The same in a test suite.
    caltest.plan : How many rows an audit needs.

    Notes
    -----
    "westfall_young" adjusts all checks jointly (Westfall and Young 1993). Intervals of errors are
    correct together with confidence 1 − alpha.

    Guides: :doc:`/audit`, :doc:`/reading`, :doc:`/clusters`, :doc:`/weights`. Theory:
    :doc:`/theory/many`, :doc:`/theory/verdicts`.

    Examples
    --------
    Risks 15 points too low in one region; 2 points would matter:

    >>> import numpy as np, caltest
    >>> rng = np.random.default_rng(0)
    >>> risk = rng.uniform(0.1, 0.8, 2000)
    >>> region = np.where(rng.random(2000) < 0.3, "south", "north")
    >>> defaulted = rng.random(2000) < risk + 0.15 * (region == "south")
    >>> known = {"event": "default", "rng": 0}
    >>> audit = caltest.audit(risk, defaulted, groups={"region": region}, materiality=0.02, **known)
    >>> audit.verdict, str(audit.worst.group), round(audit.worst.error, 2)
    ('material', 'region = south', -0.15)
    >>> audit.headline.partition("about ")[2]
    '4.6 percentage points too low overall, and 15 points too low where region is south.'

    The same group, named by nobody:

    >>> found = caltest.audit(risk, defaulted, features={"region": region}, **known)
    >>> found.slices[0].rule, found.slices[0].adjusted_pvalue
    ('region = south', 0.001)
    """
    given = dict(locals())
    own: Any = ("probs", "labels", "groups", "features", "order", "event", "time_unit", "unit")
    own = (*own, "class_names", "learner", *_OF_ROWS)
    reading = {name: given[name] for name in ("event", "class_names", "rounding", *_OF_ROWS)}
    if of_times := isinstance(getattr(probs, "law", probs), Survival):
        reading["event"] = None
    elif time_unit is not None:
        raise InputError("{argument} is of times until an event; leave it out.", argument="time_unit")
    numbers = sample_of_law(probs, labels, **reading)
    of_classes = numbers is None  # sets are not classes here: they claim only "at least"
    whole, called = named_sample(probs, labels, **reading) if numbers is None else (numbers, None)
    n_given, whole = whole.rows.n_samples, without_zeros(whole)
    law: Any = whole.rows.law
    if of_times:
        law.event, law.time_unit = event or law.event, time_unit
        called = law.event
    options = Options.of(law, **{name: value for name, value in given.items() if name not in own})
    beside = {name: given[name] for name in ("probs", "labels", "weights", "clusters")}
    groupings = read_groups(groups, n_given, whole.rows.places, **beside)
    own_columns = tuple(each.column for each in groupings)
    sets = law.of if isinstance(law, Covered) else None
    called = called if sets is None else law.names[1]
    some = features if sets is None or "features" in sets.claims else None
    rows = described(whole.rows, some, n_given, **beside, groups=groups)
    rows = in_time(rows, order, n_given, **beside, groups=groups)
    if options.tolerance is not None:
        refuse_tolerance(rows.features)
    named = rows.features.names if rows.features else ()
    if learner is not None and not named:
        do = f"give {Argument('features', ...)}, or leave it out"
        raise InputError(f"{Argument('learner', ...)} learns from features, and there are none; {do}.")
    whole, late = sought(replace(whole, rows=rows), own_columns)
    groupings, afterwards = known_before(groupings, whole)
    doubts = (*afterwards, *late, *(x for each in groupings for x in each.doubts), *premises_of(whole))
    apart: Any = ()
    if sets is not None:
        more = read_groups(None if some is features else features, n_given, whole.rows.places, **beside)
        checked = {"class": sets.names, "groups": own_columns, "features": named}
        for claim in (each for each in sets.claims if not checked.get(each, True)):
            raise InputError(f"claims has {claim!r}, and none were given; give them, or claim less.")
        groupings, apart = claimed(sets, groupings, more, options.min_rows)
    levels = not of_times or (law.follow_up is None and usual.DISTRIBUTION in options.lenses)
    of_points = isinstance(law, Point)
    if isinstance(law, Predictive) and law.dimension is None and levels and not of_points:
        groupings += tuple(by_prediction(law, own_columns, options.min_rows))
    # weights that leave out no row need not be repeated in the call
    counted = [] if whole.rows.are_alike and whole.rows.places is None else ["weights"]
    counted += [] if whole.rows.clusters is None else ["clusters"]
    counted += [] if learner is None else ["learner"]
    counted += [] if order is None or order is True else ["order"]
    columns = {"groups": own_columns, "features": named}
    in_clusters = options.tolerance is not None and whole.rows.clusters is not None
    if of_points and law.bounded and correction is not None:
        do = "are adjusted by means of evidence; leave it out"
        raise InputError(f"{Argument('correction')} is of draws, and bets on point forecasts {do}.")
    if guaranteed and (law.seen is not None or in_clusters):
        exact, other = Argument("guaranteed", True), Argument("follow_up")
        what = "censored times whose follow-up is not known"
        if in_clusters:
            what, other = "a tolerance or rounding in clusters", Argument("materiality")
        raise InputError(
            f"{exact} takes exact bounds alone, and none is known for {what}; give {other} instead, or "
            f"leave out {exact}."
        )
    design = replace(Design.of(whole.rows, sampling_rates), guaranteed=guaranteed)
    level, error, draws = options.alpha, options.tolerance, options.n_resamples
    if error is not None and sampling_rates is not None:
        raise InputError(
            "a tolerance is about probabilities of all rows, and these are those of the rows kept; "
            f"leave out {Argument('tolerance', ...)}; keep {Argument('sampling_rates', ...)}."
        )
    if (n_clusters := whole.rows.n_clusters) is not None:
        draws = draws_of_signs(n_clusters, draws, options.seed).count  # all signs, if there are few
    plan = make_plan(whole.rows, groupings, options, draws)
    if of_points:
        rate = 1.0 if points.even(whole) else points.rate_of(whole)
        counts = whole.rows.weights, whole.rows.clusters
        design = points.PointDesign(*counts, guaranteed=guaranteed, law=law, rate=rate)
        plan, draws = points.trusted(plan, whole, rate, guaranteed), 0 if law.bounded else draws
    if error is not None and n_clusters and any(each != MEAN for _, each in plan.hypotheses):
        raise InputError(
            "of rows in clusters only means are tested within a tolerance, or what rounding explains; "
            f"leave out {Argument('statistics', ...)}, or give {Argument('statistics', MEAN.name)}."
        )
    rests = subtractions(plan.hypotheses, options.min_rows) if error is None else []
    asked_of = [each for _, each in plan.hypotheses] + [MEAN] * len(rests)
    sides: list[Alternative] = [each.sides(law)[0] for each in asked_of]
    sides = sides if error is None else ["two-sided"] * len(sides)
    all_signs, censored = n_clusters if draws < options.n_resamples else None, law.seen is not None
    factor = share_of_level(plan.hypotheses) if censored else 1.0
    if not (of_points and law.bounded):  # else nothing is drawn
        check_resolution(sides, options.correction, level, draws, all_signs, factor)
    forgiven = bool(error or rounding)  # a stated 0 may be a small probability
    forgiven |= censored and law.horizon is not None  # the time has no stated uncertainty
    zero = np.zeros(whole.rows.n_samples, dtype=np.bool_)
    zero[[] if forgiven else whole.rows.impossible(whole.labels)] = True
    impossible = int(zero.sum())
    with single_threaded_blas():
        scans = slices.searches(plan, options.seed)
        trial = Trial(whole.rows, whole.labels, options.n_resamples, options.seed, options.workers)
        if of_points:
            trial = replace(trial, rows=points.as_clusters(whole.rows))
            found, logs = points.answers_of_points(plan.hypotheses, rests, whole, options, rate)
            resolutions = np.zeros(len(found.values))
        elif censored:
            n_slices = slices.count_of(scans)
            sizes: Any = SizesOfTimes.of_rows(whole.rows, plan.looks, rests, options, n_slices)
            found = answers_of_times([*sizes.risks.values()], plan.hypotheses, whole, options)
            resolutions = np.zeros(len(found.values))
        elif error is None:
            values, resolutions, confirmed = draw_all(plan.hypotheses, trial, rests)
            found = answers(values, resolutions, sides, options.correction, level, confirmed)
        else:
            found = tolerated(plan.hypotheses, whole.labels, options, error)
        plain = design.plain and of_classes
        bounded = bounds(*bounded_looks(plan.looks, level), whole.labels, options) if plain else {}
        if not censored:
            n_slices = slices.count_of(scans)
            kind = points.SizesOfPoints if of_points else Sizes
            sizes = kind.of(design, plan.looks, len(rests), level, options.limit, n_slices)
        least = None if censored else slices.at_least(scans, sizes, whole.labels, learner, options.seed)
        views = views_of(plan, whole.labels, found, bounded, sizes, zero)
        left = [
            sizes.of_rest(each, views, whole.labels, float(found.adjusted[h]))
            for h, each in enumerate(rests, start=len(plan.hypotheses))
        ]
        views, left, in_all = sizes.with_rows_needed(views, left, rests, whole.labels)
        skipped = sizes.vouched(plan, whole.labels, options.min_rows)
        unclaimed, small = _unclaimed(whole, apart, options, sizes) if apart else ((), ())
        bets = [each for each in scans if of_points and not np.isnan(logs[each.place])]
        listed = points.named(bets, logs, whole, level) if bets else []
        if by_draws := [each for each in scans if each not in bets]:
            drawn = slices.named(by_draws, plan, trial, found, (sides, resolutions), options)
            share = 2.0 if of_points and points.bet_on(law) else 1.0  # of the level, with bets
            drawn = [each._replace(adjusted=share * each.adjusted) for each in drawn]
            listed += [each for each in drawn if each.adjusted <= level]
        by_slice, every_slice, by_feature = slices.slices_of(listed, sizes, whole.labels)
    by_evidence = np.lexsort((-found.evidence, found.pvalues, found.adjusted)).tolist()
    in_order = ((h, plan.hypotheses[h]) for h in by_evidence if h < len(plan.hypotheses))
    strongest = (plan.hypotheses[h][0].scope.lens for h in by_evidence if h < len(plan.hypotheses))
    cause = next((lens.cause for lens in strongest if isinstance(lens, Until)), None)
    every: list[Any] = [*views.values(), *left, *every_slice]
    p = min(1.0 / (1 + draws) if impossible else 1.0, *(each.adjusted_pvalue for each in every))
    warnings = [*sizes.notes(plan.looks), *notes_on(groupings), *slices.notes(scans)]
    if found.few is not None and found.few.any():
        warnings.append(_few_carry(found.few.tolist(), draws, level))
    warnings += () if forgiven else impossible_labels(whole)
    line = recalibration_of(whole) if whole.rows.n_classes == 2 and p <= level and plain else None
    describes = of_classes and error is None and sampling_rates is None
    examined = {look.scope.asked for look in plan.looks}
    checks = tuple(found.check(h, views[of[0]], of, level, whole.labels) for h, of in in_order)
    if options.limit and any(each.order and AS_MANY not in each.order for each in checks):
        seen = "Errors follow errors, as these checks prove; intervals suppose that they do not, "
        seen += "and are too short"
        do = "let forecasts use the latest outcomes; for intervals audit again by weeks, say, as "
        do += f"{Argument('clusters')}, without {Argument('order')}"
        doubts += (Premise("independent rows", seen, do, withholds=True),)
    audited = Audit(
        pvalue=p,
        checks=checks,
        views=tuple(views[look] for look in plan.looks),
        rests=tuple(left),
        slices=every_slice,
        by_feature=by_feature,
        features=() if whole.rows.features is None else whole.rows.features.names,
        n_slices=sum(each.form.cells.count for each in scans),
        at_least_by_features=least,
        skipped=(*skipped, *small),
        described=unclaimed,
        set_sizes=None if sets is None else sets.sizes(whole.rows.weights),
        event=called,
        time_unit=time_unit,
        lenses=tuple(name for name in options.lenses if name in examined),
        groups=plan.columns,
        n_resamples=draws,
        statistic=float(found.evidence.max()) + 0.0,
        null_distribution=found.largest,
        call=call_of(audit, given, columns, counted, options.seed, not of_classes),
        warnings=tuple(warnings),
        premises=doubts,
        impossible=impossible,
        zeros=advice_on_zeros(whole.rows) if of_classes and impossible else "",
        recalibration=line,
        rows_in_all=in_all,
        sensitivity=sensitivity(plan, found, level) if p > level and design.plain else None,
        sampled=sampling_rates is not None,
        functional=law.functional if of_points else None,
        unit=unit or "",
        ends=(law.low is not None, law.high is not None) if of_points else (False, False),
        times=curves_of(whole, plan.looks, cause) if censored and whole.rows.are_alike else None,
        usual=usual_numbers(whole, line) if describes else None,
        **plan.stated(whole.rows, options),
    )
    subject = audited.story.subject
    by_key = {each.key: look for look, each in {**views, **by_slice}.items()}
    look = None if subject is None or not hasattr(subject.of, "event") else by_key[subject.of.key]
    if of_times or sets is not None:
        return audited
    if not (of_classes or of_points):
        look = look and by_key[corrected(audited.story).key]
        where, at = (slice(None), design) if look is None else (look.where, design.at(look.places))
        rows, outcomes = whole.rows.take(where), whole.labels[where]
        if isinstance(law, Pools):
            if look is None or not isinstance(look.scope.lens, Entry):
                return audited
            entry, outcomes = rows.law.of_entry(look.scope.lens.entry, outcomes)  # type: ignore[attr-defined]
            rows = rows.shown_as(entry)
        return replace(audited, units=InUnits.of(rows, outcomes, at, level))
    if not audited.rejected or look is None or (audited.usual is None and not of_points):
        return audited
    shown = {each.of.key: by_key[each.of.key] for each in audited.story.named if each.kind == "mean"}
    unshown = sorted(set(by_key) - set(shown), key=lambda key: -by_key[key].n_rows)
    others = {key: by_key[key] for key in unshown if by_key[key].event is not None}
    how = (points.PointFolds,) if of_points else ()
    tried = remedies(whole, look, shown, others, options.limit, options.seed, *how)
    return replace(audited, remedies=tried)


def _unclaimed(
    whole: Sample, apart: Sequence[Any], options: Options, sizes: Sizes
) -> tuple[tuple[View, ...], Iterable[Skipped]]:
    """Return views of what sets do not claim, as a family of their own, and the groups left out."""
    plan = make_plan(whole.rows, apart, replace(options, intersections=1))
    looks, sizes = [each for each in plan.looks if each.group], replace(sizes, limit=Limit())
    level, labels = min(options.alpha / (2 * max(len(looks), 1)), LARGEST_LEVEL), whole.labels
    sized = ((look, sizes.of_mean(look, look.sample(labels), labels, level)) for look in looks)
    views = (View(x.scope.label, x.event, x.group, x.n_rows, **facts) for x, facts in sized)
    return tuple(replace(view, direction=view.side) for view in views), plan.skipped


def _few_carry(few: Sequence[bool], draws: int, level: float) -> str:
    """Return a note on how many checks few clusters carry, and whether these can find anything."""
    n_few, n = sum(few), len(few)
    said = (
        f"In {n_few:,} of {n:,} checks few clusters carry the statistic, judged by the predictions. "
        "Each of their p-values is the larger of two: by random signs of clusters, and by labels for "
        "which all rows of a cluster are surprised together. It is approximate."
    )
    said += " They share the level with the other checks in proportion to their number." * (n_few < n)
    needed = max(math.ceil(2 * n / (size * level)) for size in (n_few, n - n_few) if size)
    if needed <= draws + 1:
        return said
    more = f"give {Argument('n_resamples', needed)}"
    return f"{said} With so few draws the smaller share cannot be found: {more}."


# ------------------------------------------------------------------ looks with a bounded error

MOST_GROUPS = 30
MOST_CLASSES = 10
_DRAWS = 499
_MOST_BOUNDING = 1e9  # rows times draws: at worst a minute or two on one core
_MOST_FOR_ONE = 1e10
_ROWS_OF_A_DRAW = 5_000  # cost of a draw beyond its rows


def bounded_looks(looks: Iterable[Look], alpha: float) -> tuple[tuple[Look, ...], int]:
    """Choose, from the predictions alone, the looks whose error is bounded, and the number of draws.

    In this order, as many as can be bounded in minutes: the top label on all rows (or the only
    probability audited there), the classes with the most expected events on all rows, and the top label
    in the largest groups.
    """
    single = [look for look in looks if look.event is not None]
    overall = [look for look in single if look.group is None]
    general = [look for look in overall if look.scope.column is None]
    first = sorted(general, key=lambda look: look.scope.label == CANONICAL)
    classes = [look for look in overall if look.scope.column is not None]
    classes = sorted(classes, key=lambda look: (-look.expected, look.key))[:MOST_CLASSES]
    named = first[0].scope.label if first else None
    label = TOP_LABEL if any(look.scope.label == TOP_LABEL for look in single) else named
    groups = [look for look in single if look.group and look.scope.label == label]
    groups = sorted(groups, key=lambda look: (-look.n_rows, look.key))[:MOST_GROUPS]
    kept = [*first, *classes, *groups]
    while kept:
        n_draws = max(_DRAWS, draws_needed(alpha / (2 * len(kept))))
        work = n_draws * sum(look.n_rows + _ROWS_OF_A_DRAW for look in kept)
        if work <= (_MOST_BOUNDING if len(kept) > 1 else _MOST_FOR_ONE):
            return tuple(look for look in [*first, *groups, *classes] if look in kept), n_draws
        kept.pop()
    return (), 0


def bounds(
    looks: Sequence[Look], n_draws: int, labels: NDArray[np.intp], options: Options
) -> dict[Look, tuple[float, float]]:
    """Bound overprediction and underprediction in these looks, jointly with confidence 1 − alpha.

    This is Bonferroni's method. Draws are independent of other looks, which change only the level.
    """
    found = {}
    for look in looks:
        own = child_seed(options.seed, *key_of("bounds", *look.key))
        level, count = options.alpha / (2 * len(looks)), 2 * len(looks)
        lens = None if look.scope.lens is None else look.scope.label
        each = bounds_of(look.sample(labels), lens, level, count, n_draws, own, options.workers)
        found[look] = (each.over.bound, each.under.bound)
    return found


# ------------------------------------------------------------------ an assertion for tests


@arguments()
def assert_calibrated(
    probs: object,
    labels: object,
    *,
    logits: bool = False,
    alpha: float = 0.05,
    rng: Rng = 0,
    fail_on: FailOn | None = None,
    **options: Any,
) -> Audit:
    """Fail a test, as ``assert`` does, if the model is found to be miscalibrated.

    Parameters
    ----------
    probs : array of shape (n,) or (n, m), data frame, or predictive distribution
        Predicted probabilities, or a predictive distribution, as in :func:`caltest.audit`.
    labels : array of shape (n,)
        Observed classes or outcomes, as in :func:`caltest.audit`.
    logits : bool, default False
        Whether ``probs`` holds logits, as in :func:`caltest.audit`.
    alpha : float, default 0.05
        Level: a calibrated model fails with at most this probability, over all checks together. For a
        test that runs often choose a smaller level, and enough ``n_resamples`` for it.
    rng : int, SeedSequence or Generator, default 0
        As in :func:`caltest.audit`, but 0 by default, so that the test gives the same answer on
        the same data.
    fail_on : {"material", "likely", "undecided", "found", "never"}, optional
        What fails: "material" (an error proved to be beyond the limit), "likely" (that, or probably
        beyond it), "undecided" (these, or not proved to be within it), "found" (any error), or "never".
        Default None: "likely" if ``materiality`` or ``materiality_ratio`` is given, "found" if not.
    **options : any
        All other options of :func:`caltest.audit`: ``groups``, ``lenses``, ``statistics``,
        ``tolerance``, ….

    Returns
    -------
    Audit
        The audit, if nothing that ``fail_on`` names was found. Only ``fail_on="undecided"`` then proves
        something: that average errors are within the limit.

    Raises
    ------
    AssertionError
        If something was found. The message is the audit's summary, with the call that repeats it.
    InputError
        A ValueError. If the input is wrong, or ``fail_on`` needs a limit, which says nothing about
        the model.

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
    AssertionError: error found, p = 0.002 at alpha = 0.05: Some predictions of the top class are
    wrong by more than 2 points.
    ...
    """
    __tracebackhide__ = True  # pytest then shows the line of the test
    limits = (options.get(name) for name in ("materiality", "materiality_ratio"))
    on = gate_of(fail_on, any(limit is not None for limit in limits))
    found = audit(probs, labels, logits=logits, alpha=alpha, rng=rng, **options)
    if found.fails(on):
        raise AssertionError(found._written("failure"))
    return found
