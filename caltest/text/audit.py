"""An audit in words: its headline, how large the error is, what to do, how sure it is, and the page."""

from __future__ import annotations

import math
from collections.abc import Iterable

from caltest._visible import line, shortened, shown, shown_column, shown_value, visible
from caltest.auditing.result import Audit
from caltest.auditing.views import Check, Group, Part, View
from caltest.pvalues import CORRECTIONS
from caltest.text.advice import advice
from caltest.text.numbers import (
    about_points,
    confidence_text,
    counted,
    outward_points,
    page,
    paragraph,
    percents,
    points,
    pvalue,
    row,
    signed_points,
)
from caltest.text.vocabulary import (
    TENDS,
    WRONG,
    capital,
    event_name,
    group_name,
    lens_name,
    limit,
    listed,
    narrow_name,
    subject,
    view_name,
    where,
)

# ------------------------------------------------------------------ verdict

RARE = 0.05  # predicted and observed rates below which an error is told as a ratio
_TOLD_RATIO = 1.25


def chip(audit: Audit) -> tuple[str, str]:
    """Return the verdict in a few words, and what it means for the limit."""
    own = limit(audit)
    beyond = (
        f"beyond the tolerance of {points(audit.tolerance)}" if audit.tolerance else "you set no limit"
    )
    beside = {
        "material": f"larger than your limit of {own}",
        "small": f"inside your limit of {own}",
        "found": f"not shown to exceed your limit of {own}" if own else beyond,
        "within": f"no average error can be larger than your limit of {own}",
        "not found": "which is no proof that there is none",
    }
    names = {
        "material": "Material error",
        "small": "Small error",
        "found": "Error found",
        "within": "Within your limit",
        "not found": "No error found",
    }
    return names[audit.verdict], beside[audit.verdict]


def headline(audit: Audit) -> str:
    """Return the answer in one sentence: event, group, direction and size, where they are proved."""
    if audit.verdict == "within":
        return f"No error was found, and on average none can be larger than {limit(audit)}."
    if audit.tolerance is not None:
        by = f"by more than {points(audit.tolerance)}" if audit.tolerance else ""
        if audit.rounding:
            by += f"{' and' if by else 'by more than'} what rounding to {audit.rounding:g} explains"
        by = by or "in either direction"
        if not audit.rejected:
            return f"It was not shown that any prediction is wrong {by}."
        if not audit.found:
            return f"{_impossible(audit)}."
        view = audit.found[0].view
        return f"Some predictions of {lens_name(view)} are wrong {by}{where(view.group)}."
    if not audit.rejected:
        return "No error was found."
    worst = audit.worst
    if audit.verdict == "small":
        who = subject(worst or (audit.found[0].view if audit.found else audit.views[0]))
        return f"{capital(who)} {_is(who)} slightly wrong, but inside your limit of {limit(audit)}."
    if worst is not None:
        return f"{capital(subject(worst))} is {too(worst)}{where(worst.group)}."
    if audit.impossible and not audit.found:
        return f"{_impossible(audit)}."
    if not audit.found:
        view, rows = left_over(audit)
        return f"{capital(subject(view))} is wrong on average{rows}."
    strongest = audit.found[0].view
    shaped = next((check.view for check in audit.found if check.view.shape), None)
    if shaped is not None:
        extreme = "more" if shaped.shape == "over" else "less"
        return (
            f"The model is {TENDS[shaped.shape or '']}{where(shaped.group)}: its probabilities are "
            f"{extreme} extreme than what was observed."
        )
    if strongest.event is None:
        return (
            f"The predicted probabilities are wrong{where(strongest.group)}; no one class or "
            "group stands out."
        )
    return (
        f"{capital(subject(strongest))} is wrong for some predictions{where(strongest.group)}; "
        "on average it may be right."
    )


def _is(who: str) -> str:
    return "are" if who == "the predicted probabilities" else "is"


def left_over(audit: Audit) -> tuple[View, str]:
    """Return what is found where no check of a view is: a lens, and in which rows a group leaves."""
    rest = min(audit.rests, key=lambda each: each.adjusted_pvalue)
    view = next(each for each in audit.views if each.key == (rest.lens, rest.group))
    (left,) = set(rest.group.conditions) - set(rest.parent.conditions if rest.parent else ())
    start = f"{where(rest.parent)} and" if rest.parent else " where"
    return view, f"{start} {shown_column(left.column)} is not {shown_value(left.value)}"


def _impossible(audit: Audit) -> str:
    rows = counted(audit.impossible, "row")
    certain = "was certain and wrong: it " if audit.n_classes == 2 else ""
    return f"In {rows} the model {certain}gave probability 0 to what was then observed"


def impossible(audit: Audit) -> str | None:
    """Return in how many rows a label of probability 0 was observed; None if in none."""
    return f"{_impossible(audit)}." if audit.impossible else None


def rates(view: View) -> tuple[float, float]:
    """Return what is predicted on average, and what was observed; 0 without an event."""
    return view.predicted or 0.0, view.observed or 0.0


def is_rare(view: View) -> bool:
    """Say whether an error of a view is told as a ratio, and its rates per 1,000."""
    low, high = sorted(rates(view))
    return view.lens != "top_label" and 0.0 < low <= high / _TOLD_RATIO and high <= RARE


def too(view: View) -> str:
    """Return which way and by how much a view's mean is wrong, of one with a direction."""
    side, (predicted, observed) = WRONG[view.direction or ""], rates(view)
    if is_rare(view):
        return f"{side}: about {predicted / observed:.2g} times the observed rate"
    return f"about {about_points(abs(predicted - observed))} {side}"


def interval(view: View | Part, confidence: float) -> str:
    """Return where the error lies: "between 5.9 and 9.8 points too low (95% confidence)"."""
    low, high = view.low or 0.0, view.high or 0.0
    sure = f"({confidence_text(confidence)} confidence)"
    if low > 0.0 or high < 0.0:
        ends = outward_points(*sorted((abs(low), abs(high))))
        return f"between {ends[0]} and {ends[1]} points {'too high' if low > 0.0 else 'too low'} {sure}"
    under, over = outward_points(low, high)
    return f"between {under.lstrip('−')} points too low and {over} points too high {sure}"


def times(view: View, confidence: float) -> str:
    """Return between which multiples of the true rate a rare event's prediction lies."""
    predicted, low, high = view.predicted or 0.0, view.low or 0.0, view.high or 0.0
    sure = f"({confidence_text(confidence)} confidence)"
    least = f"{math.floor(100.0 * predicted / (predicted - low)) / 100.0:.2f}"
    if high >= predicted:  # the true rate may be 0
        return f"at least {least} times the true rate {sure}"
    most = f"{math.ceil(100.0 * predicted / (predicted - high)) / 100.0:,.2f}"
    return f"between {least} and {most} times the true rate {sure}"


# ------------------------------------------------------------------ how large


def size(audit: Audit) -> str:
    """Return the paragraph below the headline: the size, and where else."""
    texts: list[str] = []
    view = audit.worst
    if audit.rejected and audit.impossible and audit.found:
        texts.append(f"{_impossible(audit)}.")
    if audit.verdict in ("small", "within"):
        texts += [*_largest(audit), *_halves(audit)]
        if audit.verdict == "small":
            texts.append(f"{audit.n_samples:,} rows are enough to prove even so small an error.")
    elif view is not None:
        texts += [_sizes(view, audit), *_worst_part(view), *_elsewhere(view, audit)]
    elif audit.rejected:
        strongest = audit.found[0].view if audit.found else None
        halves = list(_halves(audit))
        texts += halves
        if strongest is not None and strongest.event is not None:
            texts.append(_sizes(strongest, audit, counts=not halves))
        texts += [proved for proved in (at_least(strongest, audit),) if proved and not halves]
    else:
        texts += [*_would_have_been_found(audit), *_largest(audit)]
    if audit.verdict == "found" and limit(audit):
        texts += _undecided(audit)
    return " ".join(texts)


def _sizes(view: View, audit: Audit, counts: bool = True) -> str:
    predicted, observed = percents(*rates(view), 1)
    means = f"Predicted {predicted}, observed {observed}"
    if not counts:
        return f"On average: {means[:1].lower()}{means[1:]}."
    expected, seen = (rate * view.rows for rate in rates(view))
    rows = counted(view.rows, "row")
    events = f"Of {rows} the model expected {expected:,.0f} events; {seen:,.0f} were observed."
    if view.lens == "top_label":
        events = f"Of {rows} the model expected to be right in {expected:,.0f}; it was in {seen:,.0f}."
    told = times(view, audit.confidence) if is_rare(view) else interval(view, audit.confidence)
    return f"{means}: {told}. {events}"


_STRIKING = 1.5  # times the mean error, from where on a part of a view is told besides


def _worst_part(view: View) -> Iterable[str]:
    """Tell the tenth or fifth that is furthest off, if it is much further off than the mean."""
    finest = [part for part in view.parts if part.of > 2]
    part = max(finest, key=lambda each: max(each.low, -each.high), default=None)
    if part is None or is_rare(view) or max(part.low, -part.high) < _STRIKING * abs(view.error or 0.0):
        return
    name = {0: "lowest", len(finest) - 1: "highest"}.get(part.place)
    predicted, observed = percents(part.predicted, part.observed)
    noun = PARTS[part.of]
    if name:
        rows = f"the {noun} of these rows with the {name} predictions"
    else:
        rows = f"the {noun} with predictions from {' to '.join(percents(part.start, part.end))}"
    yield f"It differs by prediction: in {rows}, predicted {predicted}, observed {observed}."


def _undecided(audit: Audit) -> Iterable[str]:
    """Say where an error beyond the limit remains possible, though none is shown."""
    every: list[tuple[float, View, Part | None]] = []
    for view in audit.views:
        if view.low is not None and view.high is not None:
            every.append((_farthest(view, audit), view, None))
            every += [(_farthest(part, audit), view, part) for part in view.parts]
    if not every:
        return
    far, view, within = max(every, key=lambda one: one[0])
    if audit.materiality is not None:
        remains = f"one of up to {outward_points(0.0, far)[1]} points remains possible"
    elif far < math.inf:
        remains = f"a factor of up to {math.ceil(100.0 * far) / 100.0:,.2f} remains possible"
    else:
        remains = "no factor is ruled out"
    name = group_name(view.group)
    if audit.n_classes > 2:
        name = f"the predictions of {view_name(view)}" if within else view_name(view)
    part = f"a {PARTS[within.of]} of " if within else ""
    yield (
        f"No average error is shown to exceed your limit of {limit(audit)}; for lack of rows "
        f"{remains} (in {part}{name})."
    )


def _farthest(of: View | Part, audit: Audit) -> float:
    """Return the largest error that an interval holds: in points, or as a ratio."""
    predicted, low, high = of.predicted or 0.0, of.low or 0.0, of.high or 0.0
    if audit.materiality_ratio is None:
        return max(-low, high)
    if high >= predicted or predicted <= 0.0:  # the true rate may be 0, or what is predicted is
        return math.inf
    return max(predicted / (predicted - high), (predicted - low) / predicted)


#: What parts are called.
PARTS = {10: "tenth", 5: "fifth", 2: "half"}


def _elsewhere(view: View, audit: Audit) -> Iterable[str]:
    """Say which groups include the worst one and are wrong with it, and that others are not found."""
    found = {check.view.key for check in audit.found}
    own = set(view.group.conditions) if view.group else set()
    alike = [each for each in audit.views if each.lens == view.lens and each.key != view.key]
    around = [
        each
        for each in alike
        if each.direction == view.direction
        and each.key in found
        and (each.group is None or set(each.group.conditions) < own)
    ]
    if view.group and around:
        side = WRONG[view.direction or ""]
        names = listed(group_name(each.group) for each in around)
        yield f"{capital(side)} only because they contain these rows: {names}."
    others = [
        each
        for each in alike
        if each not in around and each.group and not own <= set(each.group.conditions)
    ]
    worse = [each for each in others if each.key in found and each.direction]
    if view.group and others and not any(each.key in found for each in others):
        yield "No error was found in the other groups."
    elif worse and view.group is None:
        yield f"Errors were found in {counted(len(worse), 'group')} too."
    elif worse:
        yield f"Also wrong on average: {listed(group_name(each.group) for each in worse)}."


def _largest(audit: Audit) -> Iterable[str]:
    """Say how large an average error can be: of all parts that have intervals, and of all rows."""
    if audit.at_most is None:
        return
    _, most = outward_points(0.0, audit.at_most)
    sure = f"({confidence_text(audit.confidence)} confidence)"
    parts = "tenth of the predictions"
    if audit.groups:
        parts += ", group or fifth of a group"
    elif audit.n_classes > 2:
        parts += " of any class"
    if audit.rejected or audit.verdict == "within":
        yield f"No {parts} is wrong by more than {most} points on average {sure}."
        return
    whole = next((view for view in audit.views if view.low is not None and view.group is None), None)
    if whole is None:
        return
    _, over_all = outward_points(0.0, max(-(whole.low or 0.0), whole.high or 0.0))
    yield (
        f"Larger errors remain possible where rows are few: on average up to {over_all} points "
        f"over all rows, and up to {most} in some {parts} {sure}."
    )


def _halves(audit: Audit) -> Iterable[str]:
    """Tell the halves of all rows, if both are proved wrong, in opposite directions."""
    view = next((each for each in audit.views if each.group is None and each.parts), None)
    halves = [part for part in (view.parts if view else ()) if part.of == 2]
    if len(halves) == 2 and all(part.low > 0.0 or part.high < 0.0 for part in halves):
        lower, upper = (
            f"{about_points(abs(part.error), 'point')} {'too high' if part.low > 0.0 else 'too low'} "
            f"({' to '.join(outward_points(*sorted((abs(part.low), abs(part.high)))))})"
            for part in halves
        )
        sure = confidence_text(audit.confidence)
        both = f"The half of the rows with lower predictions is {lower}, the other half {upper}"
        yield f"{both}, with {sure} confidence."


def at_least(view: View | None, audit: Audit) -> str | None:
    """Return how wrong some predictions are at least, as a sentence; None if nothing is proved."""
    sides = [] if view is None else [("over", view.at_least_over), ("under", view.at_least_under)]
    texts = [
        f"{'some predictions are' if not k else 'others'} at least {points(bound)} {WRONG[side]}"
        for k, (side, bound) in enumerate((side, bound) for side, bound in sides if bound)
    ]
    if not texts:
        return None
    return f"{capital('; '.join(texts))} ({confidence_text(audit.confidence)} confidence)."


def _would_have_been_found(audit: Audit) -> Iterable[str]:
    told = audit.sensitivity
    if told is None or told.error is None:
        return
    view = audit.views[told.view]
    yield (
        f"If {subject(view)} were too high, or too low, by about {about_points(told.error)} "
        f"throughout{where(view.group)}, this audit would have found it 4 times in 5."
    )


# ------------------------------------------------------------------ how sure


def certainty(audit: Audit) -> str:
    """Return how sure the answer is, in a sentence or two."""
    true = "calibrated" if audit.tolerance is None else "within the tolerance"
    true += " in every group" if audit.groups else ""
    controls = CORRECTIONS.get(audit.correction, "")
    if controls.startswith("false discovery rate"):
        return (
            f"Adjusted by {audit.correction!r}: of the errors found, a share of at most "
            f"{audit.alpha:g} is false on average."
        )
    rate = confidence_text(audit.alpha)
    draws = f"{audit.n_resamples:,} label sets simulated from the predictions"
    checks = f"all {audit.n_checks:,} checks" if audit.n_checks > 1 else "the one check"
    if audit.correction == "westfall_young":
        return (
            f"If the model is {true}, an audit like this reports an error in at most {rate} of "
            f"cases: the data are compared with {draws}, {checks} on the same ones."
        )
    condition = f", {controls.partition(', ')[2]}" if ", of " in controls else ""
    return (
        f"If the model is {true}, an audit like this reports an error in at most {rate} of cases"
        f"{condition} (adjusted by {audit.correction!r}, {draws})."
    )


def assumes(audit: Audit) -> str:
    """Return what the numbers rest on, in three short sentences."""
    rate = confidence_text(audit.alpha)
    sized = sum(view.low is not None for view in audit.views)
    exact = ", exact for this number of rows" if audit.correction == "westfall_young" else ""
    false_alarms = f"False-alarm rate of the verdict at most {rate}{exact}."
    if CORRECTIONS.get(audit.correction, "").startswith("false discovery rate"):
        false_alarms = f"Of the errors found, at most {rate} are false on average."
    together = (
        f"all {counted(sized, 'view')} and their parts together" if sized > 1 else "all parts together"
    )
    intervals = (
        f" Intervals: exact, {confidence_text(audit.confidence)} for {together}." if sized else ""
    )
    return (
        "Assumes independent rows whose labels were not used to fit the model. "
        f"{false_alarms}{intervals}"
    )


#: What a check looks at, for its row of evidence.
KINDS = {
    "citl": "mean",
    "ks": "cumulative difference",
    "ecd": "confidence (logarithmic score)",
    "skce_uq": "kernel statistic",
    "scan": "any stretch of predictions",
}


def evidence(audit: Audit) -> tuple[tuple[str, str], ...]:
    """Return rows of p-values: of the whole, of the view that is told, and of all others."""

    def p(value: float) -> str:
        return pvalue(value, audit.alpha)

    rows = [(f"Whole audit, {counted(audit.n_checks, 'check')}", f"p = {p(audit.pvalue)}")]
    told = audit.worst or (audit.found[0].view if audit.found else None)
    first = [check for check in audit.checks if told is not None and check.view.key == told.key]
    for check in sorted(first, key=lambda check: check.statistic != "citl")[:3]:
        name = f"{capital(group_name(check.view.group))}, {KINDS.get(check.statistic, check.statistic)}"
        rows.append((name, f"adjusted p = {p(check.adjusted)}"))
    around: set[tuple[str, Group | None]] = set()
    if told is not None and told.group is not None:
        around = {each.key for each in audit.views if _contains(each, told)}
    others = [
        check.adjusted
        for check in audit.checks
        if around and check.view.group and check.view.key not in around
    ]
    if others:
        rows.append(("Other groups, smallest", f"adjusted p = {p(min(others))}"))
    return tuple(rows)


def _contains(view: View, other: View) -> bool:
    """Whether a view's rows contain another's, or are among them."""
    if view.group is None or other.group is None:
        return True
    one, two = set(view.group.conditions), set(other.group.conditions)
    return one <= two or two <= one


def evidence_note(audit: Audit) -> str:
    """Return what the p-values are made of."""
    smallest = pvalue(1.0 / (1 + audit.n_resamples), audit.alpha)
    draws = counted(audit.n_resamples, "simulated label set")
    if audit.correction != "westfall_young":
        return f"{draws} for each check, adjusted by {audit.correction!r}."
    return (
        f"p at or below {audit.alpha:g}: an error is found. Adjusted: for all checks together. From "
        f"{draws}; {smallest} is the smallest p they allow."
    )


def finding(check: Check, audit: Audit) -> str:
    """Return what one check found, as a sentence."""
    view, parts = check.view, []
    if view.error is not None:
        predicted, observed = percents(*rates(view), 1)
        parts.append(f"predicted {predicted}, observed {observed}, {interval(view, audit.confidence)}")
    elif view.shape:
        parts.append(TENDS[view.shape])
    else:
        parts.append("wrong, in no direction that this check can tell")
    name = view_name(view)
    return (
        f"{capital(name)} ({counted(view.rows, 'row')}): {'; '.join(parts)} "
        f"({check.statistic!r}, adjusted p = {check.adjusted:.3g})."
    )


# ------------------------------------------------------------------ the page

MOST_FINDINGS = 10
_WIDTH = 100  # of a line of a table
_NARROWEST = 16  # of a view's name there
_SKIPPED = 8  # lines


def worst_first(audit: Audit) -> list[View]:
    """Return the views of an event: that which explains the finding, then by proved error, and size."""
    single = [view for view in audit.views if view.error is not None]
    return sorted(
        single,
        key=lambda view: (view is not audit.worst, -view.proved, -abs(view.error or 0.0)),
    )


def summary(audit: Audit) -> str:
    """Return the verdict, how large the error is, where, what to do next, and how sure it is."""
    lenses = ", ".join(map(shown, audit.lenses))
    name, beside = chip(audit)
    event = f" of {event_name(audit)}" if audit.event else ""
    rows = [
        ("verdict", f"{name}, {beside} (p = {pvalue(audit.pvalue, audit.alpha)})"),
        (
            "looked at",
            f"{audit.n_samples:,} predictions{event}, {audit.n_classes} classes, through {lenses}",
        ),
        ("groups", ", ".join(map(shown_column, audit.groups)) or "none"),
        (
            "checks",
            f"{audit.n_checks:,} of {counted(len(audit.views), 'view')}, together at level "
            f"{audit.alpha:g}",
        ),
    ]
    todo = ["What to do next", *(each for text in advice(audit) for each in row("", text))]
    skipped = ["Not looked at"] if audit.skipped else []
    for entry in audit.skipped[:_SKIPPED]:
        many = f" ({counted(entry.rows, 'row')})" if entry.rows is not None else ""
        skipped += row("", f"{entry.what}{many}: {entry.reason}")
    if (more := len(audit.skipped) - _SKIPPED) > 0:
        skipped += row("", f"and {more:,} more, in skipped")
    sure = [*paragraph(certainty(audit)), *paragraph(assumes(audit))]
    answer = [*paragraph(headline(audit)), *paragraph(size(audit))]
    p = pvalue(audit.pvalue, audit.alpha)
    brief = f"{name.lower()}, p = {p}, n = {audit.n_samples:,}, {counted(audit.n_checks, 'check')}"
    blocks = answer, _table(audit), todo, sure, skipped
    return page(
        "Calibration audit",
        rows,
        *blocks,
        notes=audit.warnings,
        headline=headline(audit),
        brief=brief,
    )


def _table(audit: Audit) -> list[str]:
    """Lay out the views of an event: names in what room the other columns leave."""
    views = worst_first(audit)[:MOST_FINDINGS]
    if not views:
        return []
    sure = confidence_text(audit.confidence)
    table = [("rows", "predicted", "observed", "error", f"{sure} interval", "adj. p", "found by")]
    for view in views:
        predicted, observed = percents(*rates(view), 1)
        low, high = outward_points(view.low or 0.0, view.high or 0.0)
        found = [check.statistic for check in audit.found if check.view.key == view.key]
        by = ", ".join(shortened(visible(each), 10) for each in found[:3])
        table.append(
            (
                f"{view.rows:,}",
                predicted,
                observed,
                signed_points(view.error or 0.0),
                f"{low} to {high}",
                pvalue(view.adjusted_pvalue, audit.alpha),
                by or "–",
            )
        )
    widths = [max(map(len, column)) for column in zip(*table, strict=True)]
    room = max(_NARROWEST, _WIDTH - 4 - sum(widths) - 2 * (len(widths) - 1))
    one = len({view.lens for view in views}) == 1  # then only rows differ
    names = [shortened(group_name(v.group), room) if one else narrow_name(v, room) for v in views]
    width = max(map(len, names))
    lines = ["Errors in points, predicted less observed; below 0 is too low"]
    for name, cells in zip(["", *names], table, strict=True):
        *numbers, found_by = cells
        right = [f"{each:>{w}}" for each, w in zip(numbers, widths, strict=False)]
        lines.append(f"  {name:<{width}}  {'  '.join(right)}  {found_by}".rstrip())
    more = sum(view.error is not None for view in audit.views) - len(views)
    return lines + ([f"  and {more:,} more, in to_frame()"] if more > 0 else [])


def failure(audit: Audit) -> str:
    """Return what a failed test of one's own says: the headline, the page, and how to repeat it."""
    name, _ = chip(audit)
    p = pvalue(audit.pvalue, audit.alpha)
    verdict = f"{name.lower()}, p = {p} at alpha = {audit.alpha:g}: {headline(audit)}"
    return f"{verdict}\n\n{audit.summary().rstrip()}\n\nTo repeat it: {line(audit.call)}"
