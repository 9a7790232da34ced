"""An audit in words: its verdict, how sure it is, what was found, what to do, and the page."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple, TypeAlias

from scipy.special import ndtri

from caltest._visible import line, shortened, shown, shown_column, visible
from caltest.auditing.result import Audit, Check, Group, View
from caltest.forms import Side
from caltest.pvalues import CORRECTIONS
from caltest.text.numbers import (
    confidence_text,
    counted,
    page,
    paragraph,
    percents,
    points,
    pvalue,
    row,
)
from caltest.text.vocabulary import (
    DEVIATIONS,
    SIGNED,
    TENDS,
    TOO,
    beyond_noise,
    deviation,
    group_name,
    lens_name,
    narrow_name,
    shown_direction,
    shown_directions,
    signed,
    view_name,
)

# ------------------------------------------------------------------ what was found


MOST_WORST = 5
_NOT_TOLD = "these means are not told apart"


def verdict(audit: Audit) -> str:
    """Return the answer in one sentence."""
    n_checks = counted(len(audit.checks), "check")
    if audit.tolerance is None:
        wrong, right = "The model is not calibrated", "No miscalibration was found"
    else:
        by = f"by more than {points(audit.tolerance)}" if audit.tolerance else ""
        wrong = f"The model is wrong {by}".rstrip()
        right = f"It was not shown that the model is wrong {by}".rstrip()
    p = pvalue(audit.pvalue, audit.alpha)
    if not audit.rejected:
        return (
            f"{right}: the smallest adjusted p-value of {n_checks} is {p}, above the level "
            f"{audit.alpha:g}."
        )
    impossible = ""
    if audit.impossible:
        rows = counted(audit.impossible, "row")
        impossible = f"a label came true that the model calls impossible, in {rows}; "
    return f"{wrong}: {impossible}{len(audit.found):,} of {n_checks} found an error (p = {p})."


def impossible(audit: Audit) -> str | None:
    """Return in how many rows a label of probability 0 came true, as a sentence; None if in none."""
    if not audit.impossible:
        return None
    rows = counted(audit.impossible, "row")
    return f"In {rows} a label came true that has probability 0, which a calibrated model never has."


def certainty(audit: Audit) -> str:
    """Return how sure the answer is, in a sentence or two."""
    true = "calibrated" if audit.tolerance is None else "within the tolerance"
    true += " in every group" if audit.groups else ""
    controls = CORRECTIONS.get(audit.correction, "")
    adjusted = f"Adjusted by {audit.correction!r}, which controls the {controls}: "
    if controls.startswith("false discovery rate"):
        return (
            f"{adjusted}of the errors found, a share of at most {audit.alpha:g} is then false on "
            "average."
        )
    draws = f"{audit.n_resamples:,} draws of the labels"
    chance = f"the chance of finding any error would be at most {audit.alpha:g}"
    many = "however many checks and rows there are"
    if ", of " in controls:
        return f"{adjusted}if the model were {true}, {chance} then, {many} ({draws})."
    how = f"adjusted by {audit.correction!r}, {draws}"
    if audit.correction == "westfall_young":
        how = f"ranked among {draws} from the predictions, all checks on the same draws"
    return f"If the model were {true}, {chance}, {many} ({how})."


def finding(check: Check) -> str:
    """Return what one check found, as a sentence; it does not say that there is no direction."""
    view, parts = check.view, []
    if view.says is None or view.share is None:
        side = signed(check)
        tendency = f"{TENDS[side]} on average" if side else "wrong, which way this check does not say"
    else:
        says, share = percents(view.says, view.share)
        parts.append(f"it says {says} on average, and {share} came true")
        side, tendency = shown_direction(view), _NOT_TOLD
        if side is not None:
            tendency = f"{(TENDS if view.lens == 'top_label' else TOO)[side]} on average"
        elif check.found and check.statistic == SIGNED and check.value:
            tendency += f", but it is too {'sure' if check.value > 0.0 else 'timid'}"
    name = view_name(view)
    return (
        f"{name[:1].upper()}{name[1:]} ({counted(view.rows, 'row')}): "
        f"{'; '.join([*parts, tendency])} ({check.statistic!r}, adjusted p = {check.adjusted:.3g})."
    )


def proved(view: View, confidence: float) -> str | None:
    """Return what is proved of a view in units of probability, as a sentence; None if nothing is."""
    sides = [("over", view.over), ("under", view.under)]
    texts = [f"at least {points(bound)} {TOO[side]}" for side, bound in sides if bound]
    if not texts:
        return None
    return f"With {confidence_text(confidence)} confidence it claims {' and '.join(texts)} somewhere."


def worst(audit: Audit) -> tuple[Check, ...]:
    """Return the checks that tell most: one a view, those of one probability first, worst error first.

    The error is what is proved of it, or what is said less what came true.
    """
    checks: dict[tuple[str, Group | None], list[Check]] = {}
    for check in audit.found:
        checks.setdefault(check.view.key, []).append(check)

    def order(check: Check) -> tuple[bool, float]:
        view, size = check.view, 0.0
        if view.says is not None and view.share is not None:
            size = max(abs(view.says - view.share), view.over or 0.0, view.under or 0.0)
        return view.event is None, -size

    return tuple(sorted(map(telling, checks.values()), key=order)[:MOST_WORST])


def telling(checks: Sequence[Check]) -> Check:
    """Return which check of a view is told: the first, the strongest.

    Of a probability vector it is the one that says which way it errs, if that one has found it.
    """
    telling_sides = (check for check in checks if check.view.says is None and signed(check))
    return next(telling_sides, checks[0])


# ------------------------------------------------------------------ the page


MOST_FINDINGS = 10
_WIDTH = 100  # of a line of a table
_NARROWEST = 16  # of a view's name there
_SKIPPED = 8  # lines


def summary(audit: Audit) -> str:
    """Return the verdict, how sure it is, where the model is wrong, and what to do next."""
    lenses = ", ".join(map(shown, audit.lenses))
    n_views = counted(len(audit.views), "view")
    rows = [
        (
            "looked at",
            f"{audit.n_samples:,} predictions of {audit.n_classes} classes, through {lenses}",
        ),
        ("groups", ", ".join(map(shown_column, audit.groups)) or "none"),
        ("checks", f"{len(audit.checks):,} in {n_views}, together at level {audit.alpha:g}"),
    ]
    found = [
        " ".join(text for text in (finding(check), proved(check.view, audit.confidence)) if text)
        for check in worst(audit)
    ]
    todo = ["What to do next", *(each for text in advice(audit) for each in row("", text))]
    skipped = ["Not looked at"] if audit.skipped else []
    for entry in audit.skipped[:_SKIPPED]:
        many = f" ({entry.rows:,} rows)" if entry.rows is not None else ""
        skipped += row("", f"{entry.what}{many}: {entry.reason}")
    if (more := len(audit.skipped) - _SKIPPED) > 0:
        skipped += row("", f"and {more:,} more, in skipped")
    answer = paragraph(verdict(audit)) + paragraph(certainty(audit))
    blocks = [answer, *found, _table(audit), todo, skipped]
    return page("Calibration audit", rows, *blocks, notes=audit.warnings)


def _table(audit: Audit) -> list[str]:
    """Lay out the findings: the name of each view in what room the other columns leave."""
    if not audit.found:
        return []
    table = [("rows", "by", "says", "true", "adj. p", "points at least")]
    for check in audit.found[:MOST_FINDINGS]:
        view = check.view
        says, share = ("–", "–")
        if view.says is not None and view.share is not None:
            says, share = percents(view.says, view.share)
        sides = (("over", view.over), ("under", view.under))
        bounds = ", ".join(f"{100.0 * bound:.4g} {side}" for side, bound in sides if bound)
        table.append(
            (
                f"{view.rows:,}",
                shortened(visible(check.statistic), 10),
                says,
                share,
                pvalue(check.adjusted, audit.alpha),
                bounds or ("–" if view.over is None else "not shown"),
            )
        )
    widths = [max(map(len, column)) for column in zip(*table, strict=True)]
    room = max(_NARROWEST, _WIDTH - 4 - sum(widths) - 2 * (len(widths) - 1))
    names = [narrow_name(check.view, room) for check in audit.found[:MOST_FINDINGS]]
    width = max(map(len, ["found", *names]))
    lines = []
    for name, (rows, statistic, *numbers, least) in zip(["found", *names], table, strict=True):
        right = [f"{each:>{w}}" for each, w in zip(numbers, widths[2:-1], strict=True)]
        cells = [f"{rows:>{widths[0]}}", f"{statistic:<{widths[1]}}", *right, least]
        lines.append(f"  {name:<{width}}  {'  '.join(cells)}")
    more = len(audit.found) - MOST_FINDINGS
    return lines + ([f"  and {more:,} more, in to_frame()"] if more > 0 else [])


def failure(audit: Audit) -> str:
    """Return what a failed test of one's own says: the verdict, the page, and how to repeat it."""
    beyond = "" if audit.tolerance is None else f" beyond the tolerance of {audit.tolerance:g}"
    p = pvalue(audit.pvalue, audit.alpha)
    verdict = f"the model is miscalibrated{beyond}, p = {p} at alpha = {audit.alpha:g}"
    return f"{verdict}\n\n{audit.summary().rstrip()}\n\nTo repeat it: {line(audit.call)}"


# ------------------------------------------------------------------ what to do


_Directions: TypeAlias = dict[tuple[str, Group | None], Side | None]

_NAMED = 3  # groups or classes in one piece of advice
_POWER = 0.8

_HELD_OUT = "recalibrate the model on held-out rows"
_OFTEN = {"over": "too often", "under": "too seldom"}


def advice(audit: Audit) -> tuple[str, ...]:
    """Return what to do next, a sentence or two each."""
    if not audit.rejected:
        return tuple(_what_could_hide(audit))
    found = [check.view for check in audit.found]
    directions = shown_directions(audit)
    overall = [view for view in found if view.group is None]
    texts = []
    if audit.impossible:
        texts.append(
            "Look at the rows whose label has probability 0 (rounded away, a class that was not in the "
            "training data, a wrong label?); a temperature does not mend a probability of 0."
        )
    if audit.n_classes == 2 and overall:
        texts.append(_of_two_classes(audit))
    elif audit.n_classes != 2:
        texts += _of_more_classes(overall, directions)
    whole = {view.lens: view for view in overall}
    groups = [
        group_name(view.group)
        for view in found
        if view.group and _apart(view, whole.get(view.lens), directions)
    ]
    if groups:
        texts.append(
            f"Look at the data of {_names(groups)}: labels, missing inputs, what differs from the rows "
            "that the model was fitted to. A recalibration of all rows alike does not mend a group "
            "that differs."
        )
    if not texts:
        texts.append(
            "The error is in how probability is shared among the classes, for which no one class or "
            "group stands out: caltest.witness shows near which predictions."
        )
    texts.append(
        "Then audit again, on rows that were used neither to fit nor to recalibrate the model."
    )
    return tuple(texts)


def _of_two_classes(audit: Audit) -> str:
    """Advise by the line that fits: an intercept is an error no temperature mends, a slope is one."""
    fit, name = audit.recalibration, audit.classes[1]
    name = name if name == "class 1" else repr(name)
    name = lens_name(View("canonical", f"the label is {name}", None, audit.n_samples))
    otherwise = "or by isotonic regression if there are thousands of them"
    logistic = f"{_HELD_OUT} by logistic recalibration (intercept and slope), {otherwise}."
    if fit is None:
        return f"On all rows the probabilities are off: {logistic}"

    def text(value: float, error: float) -> str:
        return f"{value:.2f} (standard error {error:.2g})"

    # Where the data do not tell, a number is NaN, and not beyond any.
    bent = abs(fit.slope - 1.0) > DEVIATIONS * fit.slope_se
    slope, intercept = text(fit.slope, fit.slope_se), text(fit.intercept, fit.intercept_se)
    if bent and abs(fit.intercept) > DEVIATIONS * fit.intercept_se:
        return (
            f"On all rows the logit of {name} needs a slope of {slope} and an intercept of "
            f"{intercept}, of which a temperature mends the slope alone: {logistic}"
        )
    if bent:
        too = "extreme" if fit.slope < 1.0 else "timid"
        return (
            f"On all rows the probabilities are too {too}: the logit needs a slope of {slope}, and no "
            f"intercept that could be told from 0. A temperature is such a slope: {_HELD_OUT} by "
            f"temperature scaling, {otherwise}."
        )
    if abs(fit.in_the_large) > DEVIATIONS * fit.in_the_large_se:
        often = _OFTEN["over" if fit.in_the_large < 0.0 else "under"]
        return (
            f"On all rows {name} is said {often}: its logit needs an intercept of "
            f"{text(fit.in_the_large, fit.in_the_large_se)}, and its slope could not be told from 1. "
            f"No temperature mends an intercept: {logistic}"
        )
    return (
        "On all rows the probabilities are off, by no intercept and no slope of the logit that "
        "could be told from 0 and 1: the reliability diagram shows where; isotonic regression on "
        "held-out rows, if there are thousands of them, mends more than a line can."
    )


def _of_more_classes(overall: list[View], directions: _Directions) -> Iterable[str]:
    """Advise one temperature only where no class is said too often or too seldom."""
    tops = [view for view in overall if not view.lens.startswith("class:")]
    classes = [view for view in overall if view.lens.startswith("class:")]
    sure = [view for view in tops if view.lens == "top_label" or view.event is None]
    sides = {side for view in sure if (side := directions[view.key])}
    side = sides.pop() if len(sides) == 1 else None
    wrongly = {
        often: _names(lens_name(view) for view in classes if directions[view.key] == one)
        for one, often in _OFTEN.items()
    }
    off = ", and ".join(f"{names} {often}" for often, names in wrongly.items() if names)
    if off and side:
        yield (
            f"On all rows the model is {TENDS[side]}, and on average it says {off}: {_HELD_OUT}, by a "
            "temperature with an intercept for every class (as vector scaling has), or isotonic "
            "regression of each class if there are thousands of them, and look at how these classes "
            "are labelled."
        )
    elif off:
        yield (
            f"On all rows the model on average says {off}: {_HELD_OUT}, class by class (an intercept "
            "for each, as vector scaling has; or isotonic regression of each, if there are thousands "
            "of them), and look at how these classes are labelled."
        )
    elif side:
        yield (
            f"On all rows the model is {TENDS[side]}: {_HELD_OUT}, by temperature scaling for a start, "
            "or isotonic regression if there are thousands of them."
        )
    elif tops:
        yield (
            "On all rows the probabilities are off, in no one direction that could be told: "
            f"{_HELD_OUT}, by more than one temperature (isotonic regression if there are thousands of "
            "them)."
        )
    if classes and not off:
        yield (
            f"One temperature for all classes may not mend {_names(map(lens_name, classes))}: "
            "recalibrate class by class (vector scaling, or isotonic regression of each class), and "
            "look at how these are labelled."
        )


def _apart(view: View, whole: View | None, directions: _Directions) -> bool:
    """Say whether a group errs in another way than all rows do, as far as can be told."""
    if whole is None or {directions[view.key], directions[whole.key]} == {"over", "under"}:
        return True
    if view.says is None or view.share is None or whole.says is None or whole.share is None:
        return False
    return beyond_noise((view.says - view.share) - (whole.says - whole.share), view)


def _names(names: Iterable[str]) -> str:
    each = list(dict.fromkeys(names))
    text = ", ".join(each[:_NAMED])
    return text if len(each) <= _NAMED else f"{text} and {len(each) - _NAMED:,} more"


def hidden(audit: Audit, view: View) -> float | None:
    """Return how large an average error of a view might be, and be missed in one case of five.

    It is an approximation: the normal one, for the mean of the one probability, at the level that
    Bonferroni leaves to one of so many checks. None without one probability.
    """
    if view.says is None:
        return None
    level = audit.alpha / (2.0 * len(audit.checks))
    return float(min(1.0, deviation(view) * (ndtri(_POWER) - ndtri(level))))


def _what_could_hide(audit: Audit) -> Iterable[str]:
    def missed(view: View) -> str:
        error = min(1.0, (hidden(audit, view) or 0.0) + (audit.tolerance or 0.0))
        return points(float(f"{error:.2g}"))

    goal = "of calibration" if audit.tolerance is None else "that errors are within the tolerance"
    views = [view for view in audit.views if hidden(audit, view)]
    if views:
        first = views[0]
        text = view_name(first) if first.group else f"{lens_name(first)} on all rows"
        yield (
            f"This is no proof {goal}: with so many checks, an average error of some "
            f"{missed(first)} of {text} would be missed in about one case of five."
        )
    else:
        yield f"This is no proof {goal}: an error may be too small for this many rows."
    if groups := [view for view in views if view.group]:
        small = min(groups, key=lambda view: view.rows)
        name = f"{view_name(small)} ({counted(small.rows, 'row')})"
        yield f"In small groups more can hide: some {missed(small)} of {name}."
    yield (
        "Audit again with more rows, or fewer looks, if such errors matter; caltest.certificate says "
        "how far the probabilities can be off at most."
    )


# ------------------------------------------------------------------ facts of a report


class Fact(NamedTuple):
    """A term, what it is here, and what that means."""

    term: str
    value: str
    note: str


def facts(audit: Audit) -> tuple[Fact, ...]:
    """Return the p-value, what is controlled, why it is exact, and what was looked at."""
    side = f"{'At or below' if audit.rejected else 'Above'} alpha = {audit.alpha:g}"
    draws, checks = counted(audit.n_resamples, "draw"), counted(len(audit.checks), "check")
    if audit.pvalue <= (1.0 + 1e-9) / (audit.n_resamples + 1):
        side += f"; the smallest that {draws} can show"
    if audit.rejected and audit.impossible:
        side += "; a label of probability 0 came true"

    told = CORRECTIONS.get(audit.correction, "").partition(", ")[2]
    condition = told if told.startswith("of ") else ""  # else it is valid however tests depend
    proviso = f" That is proved {condition} only." if condition else ""
    chance = f"at most {confidence_text(audit.alpha)}"
    claim = f"the model were calibrated{' in every group' if audit.groups else ''}"
    if audit.tolerance:
        claim = f"no probability looked at were wrong by more than {points(audit.tolerance)}"
    controlled = "family-wise error"
    control = f"If {claim}, the chance of any finding among {checks} would be {chance}.{proviso}"
    if audit.correction.startswith("fdr"):
        controlled = "false discovery rate"
        control = f"Of what is found by {checks}, a share of {chance} is false on average.{proviso}"

    exact = audit.correction == "westfall_young" and audit.tolerance is None
    model = "the model" if audit.tolerance is None else "the worst model within the tolerance"
    guarantee = "exact" if exact else "valid"
    why = (
        f"By {draws} of the labels from {model}: for any number of rows, if they are independent and "
        "not training data"
    )
    if condition:
        guarantee = "conditional"
        why += ". Each check by itself is valid; all together are if they depend as “Controlled” says"

    rows = f"{counted(audit.n_samples, 'prediction')} of {counted(audit.n_classes, 'class', 'classes')}"
    skipped = f"; {len(audit.skipped):,} skipped" if audit.skipped else ""
    return (
        Fact("p-value of the whole", pvalue(audit.pvalue, audit.alpha), f"{side}."),
        Fact("Controlled", controlled, control),
        Fact("Guarantee", guarantee, f"{why}."),
        Fact("Looked at", checks, f"{counted(len(audit.views), 'view')} of {rows}{skipped}."),
    )


def findings_counted(audit: Audit) -> str:
    """Return how many checks there are, and how many found an error."""
    found = len(audit.found)
    right = "calibrated" if audit.tolerance is None else "within the tolerance"
    return (
        f"A check is one hypothesis: that what is looked at is {right}, by one statistic. "
        f"Of {counted(len(audit.checks), 'check')}, {found:,} found an error: the adjusted p-value "
        f"is at or below alpha = {audit.alpha:g}."
    )
