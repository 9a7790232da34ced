"""An audit in words: its headline, how large the error is, what to do, how sure it is, and the page."""

from __future__ import annotations

import math
from collections.abc import Iterable

from caltest._numbers import (
    confidence_text,
    counted,
    leading,
    outward_points,
    percents,
    points,
    pvalue,
    signed_points,
)
from caltest._visible import line, shortened, shown, shown_column, visible
from caltest.auditing.result import Audit, against_limit, shows
from caltest.auditing.views import Check, Group, Rest, View
from caltest.data.diagnose import advice_on_zeros
from caltest.forms import Side
from caltest.pvalues import CORRECTIONS, interval_of_adjusted
from caltest.text.pages import page, paragraph, row, said
from caltest.text.sizes import (
    LITTLE,
    beyond,
    exceeds,
    found_rest,
    impossible_rows,
    interval,
    left_by,
    means,
    rates,
    size,
    too,
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
    narrow_group,
    narrow_name,
    subject,
    told_view,
    view_name,
    where,
)

# ------------------------------------------------------------------ verdict


def chip(audit: Audit) -> tuple[str, str]:
    """Return the verdict in a few words, and what it means for the limit."""
    own = limit(audit)
    unlimited = (
        f"beyond the tolerance of {points(audit.tolerance)}" if audit.tolerance else "no limit set"
    )
    beside = {
        "material": f"larger than your limit of {own}",
        "small": f"within your limit of {own}",
        "found": f"may exceed your limit of {own}" if own else unlimited,
        "within": f"no average error is larger than {own}",
        "not found": "which does not prove calibration",
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
    if audit.tolerance is not None:
        by = f"by more than {points(audit.tolerance)}" if audit.tolerance else ""
        if audit.rounding:
            by += f"{' and' if by else 'by more than'} what rounding to {audit.rounding:g} explains"
        by = by or "in either direction"
        if not audit.rejected:
            return f"No prediction was shown to be wrong {by}."
        if not audit.found:
            return f"{impossible_rows(audit)}."
        view = audit.found[0].view
        return f"Some predictions of {lens_name(view)} are wrong {by}{where(view.group)}."
    if audit.verdict == "within":
        return f"No error was found, and no average error is larger than {limit(audit)}."
    if not audit.rejected:
        return "No error was found."
    worst = audit.worst
    if audit.verdict == "small":
        who = subject(told_view(audit) or audit.views[0])
        return f"{capital(who)} {_is(who)} slightly wrong, but within your limit of {limit(audit)}."
    if audit.verdict == "material" and (worst is None or not exceeds(audit, worst)):
        whole, part = beyond(audit)
        view = next(each for each in audit.views if each.lens == whole.lens)
        rows = left_by(whole) if isinstance(whole, Rest) else where(whole.group)
        some = " for some predictions" if part else ""
        who = subject(view)
        return f"{capital(who)} {_is(who)} wrong by more than your limit of {limit(audit)}{some}{rows}."
    if worst is not None:
        return f"{capital(subject(worst))} is {too(worst)}{where(worst.group)}."
    if audit.impossible and not audit.found:
        return f"{impossible_rows(audit)}."
    if not audit.found:
        rest = found_rest(audit)
        view = next(each for each in audit.views if each.lens == rest.lens)
        return f"{capital(subject(view))} is wrong on average{left_by(rest)}."
    strongest = told_view(audit) or audit.found[0].view
    if strongest.shape:
        extreme = "too extreme" if strongest.shape == "over" else "not extreme enough"
        return (
            f"The model is {TENDS[strongest.shape]}{where(strongest.group)}: its probabilities are "
            f"{extreme}."
        )
    if strongest.event is None:
        alone = listed(view_name(view) for view in audit.views if shows(audit, view))
        which = f"on average, those of {alone}" if alone else "no single class or group stands out"
        return f"The predicted probabilities are wrong{where(strongest.group)}; {which}."
    return (
        f"{capital(subject(strongest))} is wrong for some predictions{where(strongest.group)}; "
        "on average it may be right."
    )


def _is(who: str) -> str:
    return "are" if who == "the predicted probabilities" else "is"


# ------------------------------------------------------------------ what to do next
#
# First for who uses the probabilities, then for who maintains the model.

_MINOR = 0.1  # of the largest error: smaller ones of other classes do not decide the advice
DEVIATIONS = 3.0  # standard errors beyond which a slope or an intercept is clear

_MAINTAINER = "For whoever maintains the model: "
_HELD_OUT = "recalibrate it on held-out rows"
_AGAIN = "Then audit again, on rows that were used neither to fit nor to recalibrate the model."


def advice(audit: Audit) -> tuple[str, ...]:
    """Return what to do next, a sentence or two each."""
    if not audit.rejected:
        return tuple(_after_a_pass(audit))
    told = told_view(audit)
    group = told.group if told is not None else None
    texts = list(_use(audit, told))
    if audit.impossible:
        why = "a class that was not in the training data, a wrong label, or a lost small probability"
        about = (
            advice_on_zeros(audit.zeros, audit.n_classes, audit.clusters is not None)
            if audit.zeros
            else f"Look at the rows whose observed label had probability 0 ({why})."
        )
        about = f"{about[:1].lower()}{about[1:]}"
        texts.append(f"{_MAINTAINER}{about} Recalibration cannot change probabilities of 0 and 1.")
    if group is not None:
        texts.append(
            f"{_MAINTAINER}look at the data of that group (labels, missing inputs, how it differs from "
            f"the training rows), and recalibrate the group on held-out rows. One correction for all "
            "rows cannot fix an error in a single group."
        )
    elif told is None and not audit.impossible:
        texts.append(
            f"{_MAINTAINER}look at the data of these rows (labels, missing inputs, how they differ "
            "from others)."
        )
    elif told is not None and (audit.zeros is None or audit.worst is not None):
        # Else nothing more is known until the zeros are gone.
        by_classes = _of_two_classes if audit.n_classes == 2 else _of_more_classes
        texts.append(f"{_MAINTAINER}{by_classes(audit)}")
    return (*texts, *_close(audit), _AGAIN)


def _close(audit: Audit) -> Iterable[str]:
    """Say if the p-value is so close to the level that other draws might lie on the other side."""
    best = min(audit.checks, key=lambda check: check.adjusted)
    times = best.adjusted / best.pvalue if audit.correction != "westfall_young" else 1.0
    low, high = interval_of_adjusted(audit.pvalue, audit.n_resamples, times)
    every = audit.clusters is not None and audit.n_resamples + 1 == 2**audit.clusters  # signs
    if low < audit.alpha < high and not (every or audit.impossible):
        yield (
            f"p = {pvalue(audit.pvalue, audit.alpha)} is close to {audit.alpha:g}: another seed could "
            f"change the verdict. Use more resamples, n_resamples={10 * audit.n_resamples + 9}."
        )


def _use(audit: Audit, told: View | None) -> Iterable[str]:
    """Say whether the probabilities may be used, and where."""
    rows = where(told.group) if told is not None else ""
    own = limit(audit)
    if audit.verdict == "small":
        yield (
            f"Use the probabilities as they are where average errors up to {own} do not matter. The "
            "next steps remove even the small error."
        )
    elif audit.verdict == "found" and own is None and not audit.tolerance:
        yield (
            "Decide how large an average error matters to you, and set that as the limit "
            f"(materiality). If this error matters, do not rely on these probabilities{rows} until "
            "they are corrected."
        )
    elif audit.verdict == "found" and own is not None:
        if told is not None and _estimated_beyond(audit, told):
            yield (
                f"Do not rely on these probabilities{rows} until they are corrected: the error is "
                f"estimated to be beyond your limit of {own}, though it is not proved to be."
            )
        elif told is not None and against_limit(audit, told) == "inside":
            yield (
                f"Use the probabilities{rows} where only averages matter: the average error is within "
                f"your limit of {own}. Elsewhere, or in parts of these rows, it could be larger: audit "
                "again with more rows before you rely on them there."
            )
        else:
            yield (
                f"Whether the error{rows} exceeds your limit of {own} is not settled. Until it is, on "
                "more rows, do not rely on these probabilities where that would be costly."
            )
    else:
        yield f"Do not rely on these probabilities{rows} until they are corrected."


def _estimated_beyond(audit: Audit, view: View) -> bool:
    """Whether the mean error as estimated, without its interval, is beyond the limit."""
    predicted, observed = view.predicted or 0.0, view.observed or 0.0
    if audit.materiality_ratio is None:
        return abs(predicted - observed) > (audit.materiality or math.inf)
    return max(predicted, observed) > audit.materiality_ratio * min(predicted, observed)


def _of_two_classes(audit: Audit) -> str:
    """Advise by the line that fits."""
    return said("recalibrate", "of_two_classes", audit.recalibration, _HELD_OUT, DEVIATIONS)


def _of_more_classes(audit: Audit) -> str:
    """Advise one temperature only where no class is proved too high or too low."""
    overall = [check.view for check in audit.found if check.view.group is None]
    shown = [each for each in overall if shows(audit, each)]
    least = _MINOR * max((abs(each.error or 0.0) for each in shown), default=0.0)
    top: Side | None = next(
        (shows(audit, each) for each in shown if each.lens == "top_label"), None
    ) or next((each.shape for each in overall if each.event is None and each.shape), None)
    classes = [each for each in shown if each.lens.startswith("class:")]
    large = [each for each in classes if abs(each.error or 0.0) >= least]
    large = [each for each in large if against_limit(audit, each) != "inside"]
    classes = large if top or large else classes
    if top and not classes:
        of_top = any(each.lens == "top_label" for each in shown)
        return (
            f"{_HELD_OUT}. It is {TENDS[top]}{' in its top class' if of_top else ''}; temperature "
            "scaling is the first thing to try."
        )
    told = told_view(audit)
    if not classes and told is not None and told.event is not None:
        return (
            f"{_HELD_OUT}. Whether it is too extreme or too cautious was not shown; the "
            f"reliability diagram of {lens_name(told)} shows which predictions are off."
        )
    if not classes:
        return (
            f"{_HELD_OUT}. No single class stands out; caltest.witness shows near which predictions "
            "the error is found."
        )
    sides = {
        WRONG[side]: listed(lens_name(each) for each in classes if shows(audit, each) == side)
        for side in ("over", "under")
    }
    off = "; ".join(f"{names}: {side} on average" for side, names in sides.items() if names)
    with_temperature, alone = (" and a temperature", "may not") if top else ("", "cannot")
    these = "this class is" if len(classes) == 1 else "these classes are"
    return (
        f"{_HELD_OUT} class by class ({off}): an intercept for every class{with_temperature}, as "
        f"in vector scaling. Temperature scaling alone {alone} fix this. Check how {these} labelled."
    )


def _after_a_pass(audit: Audit) -> Iterable[str]:
    if audit.verdict == "within":
        yield (
            f"Use the probabilities as they are where average errors up to {limit(audit)} do not "
            "matter."
        )
    elif audit.at_most is not None:
        _, most = outward_points(0.0, audit.at_most)
        more = f"more {'rows' if audit.clusters is None else 'clusters'}"
        fewer = ", or with fewer groups" if audit.groups else ""
        own = limit(audit)
        if audit.at_most <= LITTLE and own is None:
            yield (
                f"Use the probabilities as they are where average errors up to {most} points do not "
                f"matter. If smaller ones matter, audit again with {more}{fewer}."
            )
        else:
            small = " in small groups" if audit.groups else ""
            known = f"errors above your limit of {own}" if own else f"large errors{small}"
            many = "; caltest.sample_size estimates how many" if audit.clusters is None else ""
            yield (
                f"These rows cannot rule out {known}. If that matters, audit again with "
                f"{more}{fewer}{many}."
            )
    else:
        yield "This does not prove calibration: an error may be too small for this many rows."
    yield from _close(audit)
    yield "Audit again when the model or its inputs change."


# ------------------------------------------------------------------ how sure


def certainty(audit: Audit) -> str:
    """Return how sure the answer is, in a sentence or two."""
    return said("audit", "certainty", audit, CORRECTIONS.get(audit.correction, ""))


def assumes(audit: Audit) -> str:
    """Return what the numbers rest on, in three short sentences."""
    return said("audit", "assumes", audit, CORRECTIONS.get(audit.correction, ""))


#: What a check looks at, for its row of evidence.
KINDS = {
    "citl": "mean",
    "ks": "cumulative difference",
    "ecd": "log score",
    "skce_uq": "kernel statistic",
    "scan": "any range of predictions",
}


def evidence(audit: Audit) -> tuple[tuple[str, str], ...]:
    """Return rows of p-values: of the whole, of the view in the headline, and of all others."""

    def p(value: float) -> str:
        return pvalue(value, audit.alpha)

    rows = [(f"Whole audit, {counted(audit.n_checks, 'check')}", f"p = {p(audit.pvalue)}")]
    told = told_view(audit)
    first = [check for check in audit.checks if told is not None and check.view.key == told.key]
    for check in sorted(first, key=lambda check: check.statistic != "citl")[:3]:
        of = group_name(check.view.group) if audit.n_classes == 2 else narrow_name(check.view, 60)
        column = audit.n_classes == 2 and check.view.group  # its name stays as it is
        name = f"{of if column else capital(of)}, {KINDS.get(check.statistic, check.statistic)}"
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
        rows.append(("Other groups, smallest p", f"adjusted p = {p(min(others))}"))
    return tuple(rows)


def _contains(view: View, other: View) -> bool:
    """Whether a view's rows contain another's, or are among them."""
    if view.group is None or other.group is None:
        return True
    one, two = set(view.group.conditions), set(other.group.conditions)
    return one <= two or two <= one


def evidence_note(audit: Audit) -> str:
    """Return what the p-values are made of."""
    return said("audit", "evidence_note", audit)


def finding(check: Check, audit: Audit) -> str:
    """Return what one check found, as a sentence."""
    view, parts = check.view, []
    if view.error is not None:
        parts.append(f"{means(view)}, {interval(view, audit.confidence)}")
    elif view.shape:
        parts.append(TENDS[view.shape])
    else:
        parts.append("wrong, in a direction that this check does not show")
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
    lenses = f"lens{'es' * (len(audit.lenses) > 1)}: {', '.join(map(shown, audit.lenses))}"
    name, beside = chip(audit)
    event = f" of {event_name(audit)}" if audit.event else ""
    rows = [
        ("verdict", f"{name} ({beside}), p = {pvalue(audit.pvalue, audit.alpha)}"),
        (
            "data",
            f"{audit.n_samples:,} predictions{event}, {audit.n_classes} classes; {lenses}",
        ),
        ("groups", ", ".join(map(shown_column, audit.groups)) or "none"),
        (
            "checks",
            f"{audit.n_checks:,}, of {counted(len(audit.views), 'view')}; overall level "
            f"{audit.alpha:g}",
        ),
    ]
    todo = ["What to do next", *(each for text in advice(audit) for each in row("", text))]
    skipped = ["Not checked"] if audit.skipped else []
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
    views = leading(worst_first(audit), MOST_FINDINGS)
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
    names = [narrow_group(v.group, room) if one else narrow_name(v, room) for v in views]
    width = max(map(len, names))
    lines = ["Errors in percentage points (predicted − observed); negative is too low"]
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
