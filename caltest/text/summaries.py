"""Summaries of all results except audits: facts for the templates, and tables."""

from __future__ import annotations

import math
from collections.abc import Iterable
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from caltest import pictures
from caltest._numbers import in_units, outward_points, percent, percents, points, without_rounding
from caltest._visible import CLAUSE, shortened, shown, shown_column, visible
from caltest.auditing.views import View
from caltest.binning import joint_bands
from caltest.exceptions import Argument, Premise
from caltest.laws import Survival
from caltest.nulls import GUARANTEES
from caltest.pictures import DIAGONAL, GRID, Axis, Mark, Picture, told_apart
from caltest.spelling import alike
from caltest.text import filled, vocabulary, width
from caltest.text.vocabulary import group_name, is_stated, lens_name, limit, listed, subject, where

if TYPE_CHECKING:  # whoever has a result has loaded its module; others need not be
    from caltest.auditing.plan_rows import AuditPlan, PlannedView
    from caltest.bounds.certificates import Certificate
    from caltest.bounds.lower import MiscalibrationBounds, SideBound
    from caltest.comparison import Comparison, ModelError
    from caltest.cox import ChiSquareTest, Recalibration
    from caltest.estimation.estimate import FunctionRisk, SquaredErrorEstimate
    from caltest.monitoring import Evidence, MonitorState
    from caltest.planning.simulate import Interval, Simulation
    from caltest.results import CalibrationResult

# ------------------------------------------------------------------ a test, and a recalibration

_UNRESOLVED = 1e-9  # approximate tails below it are not printed

_COUNTS_AGAINST = {
    "greater": "at least this large",
    "less": "this small or smaller",
    "two-sided": "at least this extreme in either direction",
}


def calibration(result: CalibrationResult) -> str:
    """Return the summary of a test: what was tested, found, and may be concluded."""
    apart = ("effective_n", "clusters", "sampling_rates")
    p = f"{'at most ' if result.guarantee == 'bound' else ''}{result.pvalue:.3g}"
    if result.guarantee == "approximate" and result.pvalue < _UNRESOLVED:
        p = f"below {_UNRESOLVED:g}"
    options = {name: each for name, each in result.parameters.items() if name not in apart}
    facts: dict[str, Any] = {"t": result, "p": p, "value": statistic(result), "options": options}
    facts |= {"worth": GUARANTEES[result.guarantee], "extreme": _COUNTS_AGAINST, "rounded": rounded}
    return filled("test", (*result.premises, *result.warnings), result.story, **facts)


def statistic(result: CalibrationResult) -> float:
    """Return the statistic, or 0 if it is rounding error relative to the draws."""
    draws = result.null_distribution
    finite = draws[np.isfinite(draws)] if draws is not None else np.empty(0)
    return without_rounding(result.statistic, *([np.abs(finite).max()] if len(finite) else []))


def rounded(step: float, n_summed: int = 1) -> str:
    """Return the range a rounded probability stands for, with 70% as the example, and that of a sum.

    Examples
    --------
    >>> rounded(0.05), rounded(0.001, 5)  # doctest: +NORMALIZE_WHITESPACE
    ('to 5%: a stated 70% means 67.5 to 72.5%',
     'to 0.1%: a stated 70% means 69.95 to 70.05%, and a sum of 5 is good to ±0.25 points')
    """
    stated = round(0.7 / step) * step
    low, high = max(stated - 0.5 * step, 0.0), min(stated + 0.5 * step, 1.0)
    text = f"to {100.0 * step:.4g}%: a stated {100.0 * stated:.6g}% means "
    text += f"{100.0 * low:.6g} to {100.0 * high:.6g}%"
    summed = f", and a sum of {n_summed} is good to ±{points(0.5 * step * n_summed)}"
    return text + summed * (n_summed > 1)


def recalibration(result: Recalibration) -> str:
    """Return the summary of a recalibration line."""
    return filled("recalibration", result.warnings, r=result, chi_square=chi_square)


def chi_square(test: ChiSquareTest) -> str:
    """Write a likelihood-ratio test."""
    if test.degrees == 0:
        return "a certain prediction was wrong" if test.statistic else "nothing to test"
    freedom = f"{test.degrees} degree{'s' * (test.degrees > 1)} of freedom"
    return f"χ² = {test.statistic:.4g}, {freedom}, p = {test.pvalue:.3g}"


# ------------------------------------------------------------------ lower bounds

_PLACES = 5  # places named per side


def bounds(b: MiscalibrationBounds) -> str:
    """Return the summary of lower bounds: what is proved on each side, and where."""
    layout = "  {:<24}  {:>18}  {:>18}"
    table = [layout.format("", "too high by", "too low by")]
    for view in b.views:
        name = shortened(visible(view.event.removeprefix("the label is ")), 24)
        known = (points(side.bound) if side.bound > 0.0 else "unknown amount" for side in view.sides)
        by = (each if side.found else "not shown" for side, each in zip(view.sides, known, strict=True))
        table.append(layout.format(name, *by))
    found = [
        f"{f'at least {points(bound)} ' if bound > 0.0 else ''}too {way}"
        for way, bound, sides in (
            ("high", b.over, [view.over for view in b.views]),
            ("low", b.under, [view.under for view in b.views]),
        )
        if any(side.found for side in sides)
    ]
    return filled("bounds", b.warnings, b.story, b=b, table=table, found=found, places=_places)


def _places(side: SideBound) -> list[str]:
    """Return the named places as a table, from low to high probability."""
    named = [place for place in side.places if place.named]
    layout = "  {:>9}  {:>9}  {:>8}  {:>9}  {:>8}  {}"
    lines = [layout.format("from", "to", "rows", "predicted", "observed", "some wrong by")]
    for place in sorted(named[:_PLACES], key=lambda place: place.low):
        ends = percents(place.low, place.high, 1)
        rates = percents(place.predicted, place.observed, 1)
        least = f"> {points(place.somewhere_by)}" if place.somewhere_by > 0.0 else "not shown"
        lines.append(layout.format(*ends, f"{place.rows:,}", *rates, least))
    if len(named) > _PLACES:
        lines.append(f"  and {len(named) - _PLACES} more, in {Argument('where()')}")
    return lines


# ------------------------------------------------------------------ certificates

_RANGES = 6  # ranges named


def certificate(c: Certificate) -> str:
    """Return the summary of a certificate: the certified limit, and errors it proves."""
    largest = sorted(sorted(c.miscalibrated, key=lambda each: -each.at_least)[:_RANGES])
    facts: dict[str, Any] = {"at_most": at_most, "at_least": at_least, "between": _of_scores}
    return filled("certificate", c.warnings, c.story, c=c, largest=largest, **facts)


def _of_scores(low: float, high: float) -> str:
    """Return a range of predicted probabilities in words."""
    first, last = percents(low, high, 1)
    return f"where {first} is predicted" if low == high else f"where {first} to {last} is predicted"


def at_most(distance: float) -> str:
    """Write a distance in points, rounded up."""
    scale = 10 if distance >= 0.01 else 100
    return f"{math.ceil(100.0 * distance * scale * (1.0 - 1e-9)) / scale:g}"


def at_least(distance: float) -> str:
    """Write a distance in points, rounded down."""
    scale = 10 if distance >= 0.01 else 100
    return f"{math.floor(100.0 * distance * scale * (1.0 + 1e-9)) / scale:g}"


# ------------------------------------------------------------------ a comparison

_NAME = 32  # characters of a model's name
_COLUMN = 20  # the same in tables
_LOSSES = {"log_loss": "log loss", "brier": "Brier score", "crps": "CRPS", "squared": "squared error"}
_LOSSES |= {"median": "absolute error", "quantile": "quantile score", "expectile": "asymmetric error"}


def comparison(c: Comparison) -> str:
    """Return the summary of a comparison: nearest model, errors, scores and next steps."""
    story, lead = c.story, c.nearest
    findings: list[Any] = [story.subject, *story.others]
    names = dict(zip(c.names, shown_names(c), strict=True))
    ranked = sorted(c.errors[: len(lead)], key=lambda each: lead.index(each.model))
    by_loss = sorted(ranked, key=lambda each: getattr(each, c.loss))
    least = by_loss[0].model
    kinds = [c.loss, *(["brier"] if c.loss == "log_loss" else [])]
    points = (c.functional or "").partition(":")[0]
    own, rated = (1.0 if points else 0.01), c.loss == "crps"  # of points: the rate at or below
    heads = [f"more than {shortened(names[each], 14)} (about)" for each in (lead[0], least)]

    def gap(each: ModelError, best: str, kind: str, unit: float = own) -> str:
        if each.model == best:
            return "nearest" if each in ranked else "–"
        return in_units(getattr(c.gap(each.model, best, each.group), kind), "+", "", unit)

    def mean(each: ModelError) -> str:
        low, high = each.predicted - each.high, each.predicted - each.low
        if points and rated:
            return in_units((low, each.observed, high))
        return in_units((each.low, each.error, each.high), "+", "", own)

    def cells(each: ModelError) -> tuple[str, ...]:
        size = f"{getattr(each, c.loss):.4g}" if points else in_units(each.absolute)
        return shortened(names[each.model], _COLUMN), size, mean(each)

    def scores(each: ModelError) -> Iterable[str]:
        yield shortened(names[each.model], _COLUMN)
        for kind in kinds:
            yield from (f"{getattr(each, kind):.4g}", gap(each, least, kind, 1.0))
        u: Any = each.units
        if u is not None:
            ends = () if u.low is None else (u.low, u.predicted - u.observed, u.high)
            yield in_units(ends, "+", "", 1.0) if ends else "–"

    titles = [text for kind in kinds for text in (_LOSSES[kind], heads[1])]
    return filled(
        "comparison",
        c.warnings,
        story,
        c=c,
        names=names,
        values=dict(zip(c.names, c.values.tolist(), strict=False)),
        gaps=[each for each in findings if each.kind in ("worse", "alike")],
        elsewhere=[each.of for each in findings if each.kind == "turned"],
        worst=[each for each in findings if each.kind in ("error", "unproved")],
        errors={each.model: each for each in ranked},
        whole=[(*cells(each), gap(each, lead[0], c.measure)) for each in ranked],
        more=heads[0],
        scores=[tuple(scores(each)) for each in by_loss],
        titles=(*titles, *(["mean error (about)"] if c.loss == "crps" else [])),
        parts=[
            (group_name(each.group), *cells(each), gap(each, lead[0], c.measure), f"{each.rows:,}")
            for each in c.errors[len(lead) :]
        ],
        listed=lambda models: listed(names[each] for each in models),
        place=lambda each: where(each.group) or " overall",
        probability=subject(View(c.probability, c.event, None, c.n_samples)),
        loss=loss_name(c),
        points=points,
        mean=mean,
        numbers=c.n_classes is None,
        stated=is_stated(c.probability),
        impossible=[each.model for each in ranked if not math.isfinite(getattr(each, c.loss))],
    )


def loss_name(c: Comparison) -> str:
    """Return the name of the loss used to compare models."""
    return _LOSSES.get((c.functional or "").partition(":")[0], _LOSSES[c.loss])


def shown_names(c: Comparison, most: int = _NAME) -> list[str]:
    """Return short distinct names: longer ones if necessary, and as a last resort numbered."""
    for room in (most, 4 * most):
        names = [shown(name, room) for name in c.names]
        if len(set(names)) == len(names):
            return names
    return [f"{name} ({number})" for number, name in enumerate(names, 1)]


# ------------------------------------------------------------------ an estimate of a squared error

_CLEAR = 2.0  # standard errors
_ZERO = "none (h = 0)"


def estimation(found: SquaredErrorEstimate) -> str:
    """Return the summary of an estimate: table of functions, the recommended one, and the p-value."""
    names = [_name(each) for each in found.functions]
    wide = max(len(_ZERO), *map(len, names))
    layout = f"  {{:<{wide}}}  {{:<20}}  {{:<14}}  {{}}"
    table = [layout.format("function", "best option", "√risk × 100", "squared error")]
    for name, each in zip(names, found.functions, strict=True):
        risk, error = _root(each.risk, each.risk_error), _with_error(each.estimate, each.standard_error)
        table.append(layout.format(name, _option(each), risk, error))
    risks = found.zero_risks
    zero = _root(float(risks.mean()), float(risks.std(ddof=1) / len(risks) ** 0.5))
    table.append(layout.format(_ZERO, "", zero, "0"))
    twins = (found.recommended.name, found.recommended.value)
    others = [each for each in found.functions[1:] if (each.name, each.value) != twins]
    gaps = [(_name(each), *found.gap(each)) for each in others]
    near = [name for name, gap, error in gaps if not gap > _CLEAR * error]
    facts: dict[str, Any] = {"e": found, "table": table, "others": others, "near": near}
    facts |= {"clear": _CLEAR, "named": _name, "option": _option, "with_error": _with_error}
    return filled("estimation", found.warnings, second=gaps[0][1:] if gaps else None, **facts)


def _name(function: FunctionRisk) -> str:
    return shown(function.label, CLAUSE)


def _root(risk: float, error: float) -> str:
    """Write 100 times the root of a mean risk, which ranks functions, with its error."""
    root = risk**0.5
    return f"{100 * root:.3f} ± {50 * error / root if root > 0.0 else 0.0:.3f}"


def _option(function: FunctionRisk) -> str:
    return f"{function.tuned} {function.value:.3g}"


def _with_error(value: float, error: float) -> str:
    return f"{without_rounding(value):.5g} ± {without_rounding(error):.2g}"


# ------------------------------------------------------------------ power and sample size


def planning(result: Simulation) -> str:
    """Return the summary of a power analysis: assumption, test and result."""
    null = any(point.false_rejections is not None for point in result.points)
    layout = "  {:>10}  {:>9}  {:>8}  {:>16}"
    head = layout.format("rows", "data sets", "rejected", "95% interval")
    table = [head + ("  if calibrated" if null else "")]
    for point in result.points:
        power, interval = percent(point.power, 1), _between(point.interval)
        line = layout.format(f"{point.n:,}", f"{point.n_datasets:,}", power, interval)
        if point.size is not None and point.size_interval is not None:
            line += f"  {percent(point.size, 1)} ({_between(point.size_interval)})"
        table.append(line)
    found = next((point for point in result.points if point.n == getattr(result, "n", None)), None)
    facts: dict[str, Any] = {"sized": hasattr(result, "max_n"), "between": _between, "found": found}
    return filled("planning", result.warnings, result.story, s=result, table=table, **facts)


def audit_plan(result: AuditPlan) -> str:
    """Return the summary of an audit plan: the rows needed, and the views that need most."""

    def name(view: PlannedView) -> str:
        whole = View(view.lens, view.event, view.group, 0)
        lens = "" if view.lens == "canonical" else f"{lens_name(whole)}, "
        if view.without is None:
            return f"{lens}{group_name(view.group)}"
        return f"{lens}{group_name(view.group)} without {group_name(view.without)}"

    room = min(44, width() - 46)  # of a name
    layout = f"  {{:{room}}}  {{:>6}}  {{:>9}}  {{:>10}}  {{:>11}}"
    table = [layout.format("", "share", "predicted", "own rows", "rows in all")]
    for view in result.views[:_PLANNED]:
        needed = [f"{each:,}" if each is not None else "no number" for each in (view.rows, view.n)]
        shares = percent(view.share, 1), percent(view.predicted, 1)
        table.append(layout.format(shortened(name(view), room), *shares, *needed))
    if (more := len(result.views) - _PLANNED) > 0:
        table.append(f"  {more:,} more need no more rows than these.")
    groups = [each for view in result.views if view.group for each in view.group.conditions]
    notes: list[Any] = [f"Not looked at: {each.what} ({each.reason})." for each in result.skipped]
    notes = [*_look_alikes(groups), *notes, *result.warnings]
    facts = {"a": result, "table": table, "inside": vocabulary.inside(result), "name": name}
    return filled("plan", notes, result.story, limit=limit(result), **facts)


_PLANNED = 12  # views in a table


def _look_alikes(groups: Iterable[Any]) -> list[Premise]:
    """Return questions about values in a column that may mean the same."""
    values: dict[str, dict[str, None]] = {}
    for each in groups:
        values.setdefault(each.column, {})[each.value] = None
    names = [name for name in values if name]
    return [x for name in names for x in alike(values[name], f"column {shown_column(name)!r}", "group")]


def _between(interval: Interval) -> str:
    return " to ".join(percent(end, 1) for end in interval)


# ------------------------------------------------------------------ monitoring

_BILLION = math.log(1e9)
_BETS = {
    "sharper": "Predictions are not extreme enough",
    "flatter": "Predictions are too extreme",
    "shift": "The odds are shifted, or their slope is wrong",
    "tilt": "The odds are shifted, as learned from earlier rows",
    "local": "The error depends on the prediction, as learned from earlier rows",
    "moved": "Outcomes are shifted, or spread otherwise than predicted",
    "shape": "Outcomes are spread otherwise than predicted, as learned from earlier rows",
    "sooner": "Events come sooner than predicted",
    "later": "Events come later than predicted",
}


def monitor(state: MonitorState) -> str:
    """Return the summary of a monitor: alarm, proved error and its place, odds, and next steps."""
    times, change = state.about == Survival.about, state.mode == "change"
    means = any(each.kind == "mean" for each in state.evidence)
    unit, per = ("units", 0.01) if means else ("events per 100 rows" if times else "points", 1.0)
    named = not (times or means)

    def cells(each: Evidence) -> Iterable[str]:
        yield f"{'◆' if each.found else ' '} {shortened(evidence_name(each), 32)}"
        yield f"{each.rows:,}"
        yield from [] if state.clusters is None else [f"{each.clusters:,}"]
        yield " to ".join(outward_points(per * each.low, per * each.high))
        yield score(each.log_evalue)
        if len(state.evidence) > 1:
            yield score(math.log(each.adjusted) if each.adjusted else -math.inf)
        yield from [shortened(visible(each.event), 40)] * named

    def since(each: Evidence) -> str:
        at = state.date_of(each.since)
        row = f"row {each.since:,}{f' ({shown(at)})' if at else ''}"
        return f"about {row}" if each.since else "the first row"

    def place(each: Evidence) -> str:
        value = shown(each.value or "")
        return "" if each.column is None else f" where {shown(each.column)} is {value}"

    adjusted = ["adjusted"] if len(state.evidence) > 1 else []
    heads = ["  where", "rows", *["clusters"] * (state.clusters is not None), f"error in {unit} (95%)"]
    heads += ["score" if change else "odds to 1", *adjusted, *["probability that"] * named]
    p = "" if state.pvalue is None else f"= {state.pvalue:.3g}" if state.pvalue > 1e-9 else "< 1e-9"
    rows = [tuple(cells(x)) for x in sorted(state.evidence, key=lambda x: -x.adjusted)]
    facts: dict[str, Any] = {"s": state, "threshold": math.log(state.threshold), "p": p, "rows": rows}
    facts |= {"heads": heads, "since": since, "where": place, "between": partial(_between_points, unit)}
    facts |= {"odds": odds, "score": score, "BETS": _BETS, "TIMES": Survival.about, "per": per}
    return filled("monitor", _look_alikes(state.evidence), state.story, **facts)


def evidence_name(each: Evidence) -> str:
    """Return the rows that the evidence is about."""
    return "all rows" if each.column is None else f"{shown(each.column)} = {shown(each.value or '')}"


def odds(log_evalue: float) -> str:
    """Write evidence as odds.

    Examples
    --------
    >>> import math
    >>> odds(math.log(312.0)), odds(math.log(0.3)), odds(100.0)
    ('about 310 to 1', 'about 1 to 3.3', 'more than a billion to 1')
    """
    size = score(abs(log_evalue))
    about = "" if size.startswith("more") or not log_evalue else "about "
    return f"{about}{size} to 1" if log_evalue >= 0.0 else f"{about}1 to {size}"


def score(logarithm: float) -> str:
    """Write a number with two digits, given its logarithm."""
    if logarithm > _BILLION:
        return "more than a billion"
    value = float(f"{math.exp(logarithm):.2g}")
    return f"{value:,.0f}" if value >= 10.0 else f"{value:.2g}" if value > 1e-9 else "0"


def _between_points(unit: str, low: float, high: float) -> str:
    """Write the interval of a mean error (predicted minus observed) in words."""
    ends = outward_points(low, high)
    if low > 0.0 or high < 0.0:
        near, far = (ends[0], ends[1]) if low > 0.0 else (ends[1], ends[0])
        return f"{near.strip('−')} to {far.strip('−')} {unit} too {'high' if low > 0.0 else 'low'}"
    return f"between {ends[0].strip('−')} {unit} too low and {ends[1]} too high"


# ------------------------------------------------------------------ a monitor

_MOST_POWERS = 12.0  # powers of ten; larger ones are drawn there
_POWERS = {-6: "1 to a million", -3: "1 to 1,000", 0: "1 to 1", 3: "1,000 to 1", 6: "a million to 1"}
_POWERS |= {9: "a billion to 1", 12: "a trillion to 1"}
_LEVEL = 0.05  # error level of limits and bands


def monitor_pictures(state: MonitorState) -> list[tuple[str, Picture]]:
    """Return pictures, with titles: evidence, error by batch, and reliability then and now."""
    ends = np.array([0.0, *(each.end for each in state.periods)])
    x = pictures.axis_between(0.0, 1.03 * max(float(ends[-1]), 1.0))
    goal, alarm = math.log10(state.threshold), [state.alarm_row] if state.alarm else []
    logs = np.array([0.0, *(each.log_evalue for each in state.periods)]) / math.log(10.0)
    logs = logs.clip(-_MOST_POWERS / 2.0, _MOST_POWERS)
    low, high = min(-1.0, float(logs.min())) - 0.3, max(goal, float(logs.max())) + 0.6
    odds = tuple((float(k), text) for k, text in _POWERS.items() if low < k < high)
    if state.mode == "change":
        odds = tuple((k, text.removesuffix(" to 1")) for k, text in odds if k >= 0.0)
    marks = [GRID, Mark("line", "threshold", (x.low, x.high), (goal, goal))]
    marks.append(Mark("line", "line", ends, logs))
    marks += told_apart(alarm, [goal] * len(alarm), [True] * len(alarm))
    what = "odds against the model" if state.mode == "ever" else "change score"
    picture = Picture(marks, x, Axis(low, high, odds), "rows so far", what)
    found = [("Evidence after every batch, and the alarm (dashed)", picture)]
    if not state.evidence:
        return found
    error, *limits = np.array([(e.predicted - e.observed, e.low, e.high) for e in state.periods]).T
    kind = state.evidence[0].kind
    axis_of = pictures.axis_between if kind == "mean" else pictures.axis_of_points
    y = axis_of(1.1 * min(limits[0]), 1.1 * max(limits[1]))
    bad = limits[0] * limits[1] > 0.0
    marks = [GRID, Mark("line", "zero", (x.low, x.high), (0.0, 0.0))]
    marks += pictures.with_intervals(ends[1:], error, limits[0], limits[1], bad)
    unit = {"count": "events per 100 rows", "mean": "units"}.get(kind, "points")
    alone = "" if bad.any() else "; a single one may have too few rows to show it"
    alone += f": {state.periods[0].event}"
    title = f"Error in every batch, limits hold for all of them together{alone}"
    found.append((title, Picture(marks, x, y, "rows so far", f"predicted − observed, {unit}")))
    return found if kind == "mean" else [*found, _then_and_now(state, state.worst)]


def _then_and_now(state: MonitorState, worst: Evidence) -> tuple[str, Picture]:
    """Return the reliability of the first and the latest rows; for ranks, shares of outcomes."""
    ranks, marks, values = state.n_classes is None, [GRID], [0.0]
    series = [("thin", worst.first), ("line", worst.latest)]
    series = series[: 2 - np.array_equal(worst.first, worst.latest)]
    drawn, areas = [], list[Mark]()
    for _, (rows, stated, seen) in ((style, bins.T) for style, bins in series):
        count = np.full(len(rows), round(rows.sum())) if ranks else rows.astype(int)
        at = (np.arange(len(rows)) + 0.5) / len(rows) if ranks else stated / np.maximum(rows, 1.0)
        chance = np.full(len(rows), 1.0 / len(rows)) if ranks else at.clip(0.0, 1.0)
        made = np.repeat(chance, count), np.repeat(np.arange(len(rows)), count)
        drawn.append((at, seen / np.maximum(count, 1), made))
    bands = joint_bands([each[2] for each in drawn], _LEVEL / len(state.evidence))
    for (style, _), (at, share, _), band in zip(series, drawn, bands, strict=True):
        areas.append(Mark("area", "band", at, band.low, band.high))
        marks.append(Mark("line", style, at, share))
        marks += told_apart(at, share, band.leaves_out(share))
        values += [*share, *band.low, *band.high, *([] if ranks else at)]
    marks, y = [*areas, *marks], pictures.axis_of_probabilities(values)
    then, now = (f"{bins[:, 0].sum():,.0f} rows" for bins in (worst.first, worst.latest))
    title = f"Then (thin: first {then}) and now (latest {now}), 95% bands: {evidence_name(worst)}"
    if ranks:
        marks.append(Mark("line", "diag", (0.0, 1.0), (1.0 / len(worst.first),) * 2))
        of = "where outcomes lie in what was predicted", "share of outcomes"
        return title, Picture(marks, pictures.axis_of_probabilities([0.0, 1.0]), y, *of)
    return title, Picture([*marks, DIAGONAL], y, y, "predicted probability", "observed rate")
