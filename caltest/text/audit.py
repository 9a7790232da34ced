"""An audit in words: its verdict, how sure it is, what was found, and the page."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import astuple, dataclass, fields
from typing import TypeAlias

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
    table,
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
    of_class,
    shown_direction,
    shown_directions,
    signed,
    view_name,
)

# ------------------------------------------------------------------ audit


MOST_FINDINGS = 10
_WIDTH = 100  # of a line of a table
_NARROWEST = 16  # of a view's name there
_SKIPPED = 8  # lines
MOST_WORST = 5

_NOT_TOLD = "these means are not told apart"


def gap(view: View) -> str | None:
    """Return what is said and what came true, as a clause; None without an event.

    Examples
    --------
    >>> gap(View("top_label", "the top class is right", None, 100, says=0.91, share=0.84))
    'it says 91.0% on average, and 84.0% came true'
    """
    if view.says is None or view.share is None:
        return None
    says, share = percents(view.says, view.share)
    return f"it says {says} on average, and {share} came true"


def proved(view: View, confidence: float) -> str | None:
    """Return what is proved of a view in units of probability, as a sentence; None if nothing is.

    Examples
    --------
    >>> proved(View("top_label", "", None, 9, over=0.062, under=0.0), 0.95)
    'With 95% confidence it claims at least 6.2 points too much somewhere.'
    """
    sides = [("over", view.over), ("under", view.under)]
    texts = [f"at least {points(bound)} {TOO[side]}" for side, bound in sides if bound]
    if not texts:
        return None
    return f"With {confidence_text(confidence)} confidence it claims {' and '.join(texts)} somewhere."


def finding(check: Check) -> str:
    """Return what one check found, as a sentence.

    Examples
    --------
    >>> view = View("top_label", "the top class is right", None, 900, 0.91, 0.84, "over")
    >>> print(finding(Check(view, "ks", "error", 0.1, (0.0, 0.05), 0.001, (0.0, 0.004), 0.002, True)))
    The top label (900 rows): it says 91.0% on average, and 84.0% came true; over-confident on average
    ('ks', adjusted p = 0.002).
    """
    view = check.view
    parts = [text for text in (gap(view), _tendency(check)) if text]
    name = view_name(view)
    return (
        f"{name[:1].upper()}{name[1:]} ({counted(view.rows, 'row')}): {'; '.join(parts)} "
        f"({check.statistic!r}, adjusted p = {check.adjusted:.3g})."
    )


def _tendency(check: Check) -> str:
    """Return which way a view errs, where that is shown; it does not say that there is none."""
    view = check.view
    if view.says is None:
        side = signed(check)
        return f"{TENDS[side]} on average" if side else "wrong, which way this check does not say"
    side = shown_direction(view)
    if side is not None:
        words = TENDS if view.lens == "top_label" else TOO
        return f"{words[side]} on average"
    if check.found and check.statistic == SIGNED and check.value:
        return f"{_NOT_TOLD}, but it is too {'sure' if check.value > 0.0 else 'timid'}"
    return _NOT_TOLD


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
    found = f"{len(audit.found):,} of {n_checks} found an error"
    if audit.rejected and audit.impossible:
        rows = counted(audit.impossible, "row")
        return (
            f"{wrong}: a label came true that the model calls impossible, in {rows}; {found} (p = {p})."
        )
    if audit.rejected:
        return f"{wrong}: {found} (p = {p})."
    return (
        f"{right}: the smallest adjusted p-value of {n_checks} is {p}, above the level {audit.alpha:g}."
    )


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
    if controls.startswith("false discovery rate"):
        return (
            f"Adjusted by {audit.correction!r}, which controls the {controls}: of the errors found, a "
            f"share of at most {audit.alpha:g} is then false on average."
        )
    draws = f"{audit.n_resamples:,} draws of the labels"
    chance = f"the chance of finding any error would be at most {audit.alpha:g}"
    if ", of " in controls:
        return (
            f"Adjusted by {audit.correction!r}, which controls the {controls}: if the model were "
            f"{true}, {chance} then, however many checks and rows there are ({draws})."
        )
    how = (
        f"ranked among {draws} from the predictions, all checks on the same draws"
        if audit.correction == "westfall_young"
        else f"adjusted by {audit.correction!r}, {draws}"
    )
    return f"If the model were {true}, {chance}, however many checks and rows there are ({how})."


def worst(audit: Audit) -> tuple[Check, ...]:
    """Return the checks that tell most: one a view, those of one probability first, worst error first.

    The error is what is proved of it, or what is said less what came true.
    """
    checks: dict[tuple[str, Group | None], list[Check]] = {}
    for check in audit.found:
        checks.setdefault(check.view.key, []).append(check)
    best = [telling(each) for each in checks.values()]
    ordered = sorted(best, key=lambda check: (check.view.event is None, -_size(check.view)))
    return tuple(ordered[:MOST_WORST])


def telling(checks: Sequence[Check]) -> Check:
    """Return which check of a view is told: the first, the strongest.

    Of a probability vector it is the one that says which way it errs, if that one has found it.
    """
    telling_sides = (check for check in checks if check.view.says is None and signed(check))
    return next(telling_sides, checks[0])


def _size(view: View) -> float:
    if view.says is None or view.share is None:
        return 0.0
    return max(abs(view.says - view.share), view.over or 0.0, view.under or 0.0)


# ------------------------------------------------------------------ the page


@dataclass(frozen=True)
class _Finding:
    """One finding, as cells of a table but for the view's name, which takes what room is left."""

    rows: str
    statistic: str
    says: str
    share: str
    adjusted: str
    at_least: str


_HEAD = _Finding("rows", "by", "says", "true", "adj. p", "points at least")


def _cells(check: Check, alpha: float) -> _Finding:
    """Return the cells of one check."""
    view = check.view
    says, share = ("–", "–")
    if view.says is not None and view.share is not None:
        says, share = percents(view.says, view.share)
    bounds = [f"{100.0 * bound:.4g} {side}" for side, bound in _sides(view) if bound]
    return _Finding(
        rows=f"{view.rows:,}",
        statistic=shortened(visible(check.statistic), 10),
        says=says,
        share=share,
        adjusted=pvalue(check.adjusted, alpha),
        at_least=", ".join(bounds) or ("–" if view.over is None else "not shown"),
    )


def _sides(view: View) -> tuple[tuple[str, float | None], tuple[str, float | None]]:
    return ("over", view.over), ("under", view.under)


def summary(audit: Audit) -> str:
    """Return the verdict, how sure it is, where the model is wrong, and what to do next."""
    lenses = ", ".join(map(shown, audit.lenses))
    rows = [
        (
            "looked at",
            f"{audit.n_samples:,} predictions of {audit.n_classes} classes, through {lenses}",
        ),
        ("groups", ", ".join(map(shown_column, audit.groups)) or "none"),
        (
            "checks",
            f"{len(audit.checks):,} in {counted(len(audit.views), 'view')}, together at level "
            f"{audit.alpha:g}",
        ),
    ]
    lines = ["Calibration audit", *table(rows), ""]
    lines += [*paragraph(verdict(audit)), *paragraph(certainty(audit))]
    for check in worst(audit):
        text = " ".join(t for t in (finding(check), proved(check.view, audit.confidence)) if t)
        lines += ["", *paragraph(text)]
    if audit.found:
        lines += ["", *_table(audit)]
    lines += ["", "What to do next"]
    for text in advice(audit):
        lines += row("", text)
    lines += _skipped(audit)
    for warning in audit.warnings:
        lines += ["", *paragraph(f"Note: {warning}")]
    return page(lines)


def _table(audit: Audit) -> list[str]:
    shown = audit.found[:MOST_FINDINGS]
    cells = _aligned([_HEAD, *(_cells(check, audit.alpha) for check in shown)])
    room = max(_NARROWEST, _WIDTH - 4 - max(map(len, cells)))
    names = ["found", *(narrow_name(check.view, room) for check in shown)]
    width = max(map(len, names))
    lines = [f"  {name:<{width}}  {each}" for name, each in zip(names, cells, strict=True)]
    more = len(audit.found) - MOST_FINDINGS
    if more > 0:
        lines.append(f"  and {more:,} more, in to_frame()")
    return lines


def _aligned(lines: Sequence[_Finding]) -> list[str]:
    """Lay cells out in columns: numbers to the right, text to the left, nothing after the last."""
    columns = list(zip(*(astuple(each) for each in lines), strict=True))
    padded = []
    for name, column in zip((each.name for each in fields(_Finding)), columns, strict=True):
        width = max(map(len, column))
        text = name == "statistic"
        padded.append([cell.ljust(width) if text else cell.rjust(width) for cell in column])
    padded[-1] = list(columns[-1])
    return ["  ".join(row) for row in zip(*padded, strict=True)]


def _skipped(audit: Audit) -> list[str]:
    if not audit.skipped:
        return []
    lines = ["", "Not looked at"]
    for each in audit.skipped[:_SKIPPED]:
        rows = f" ({each.rows:,} rows)" if each.rows is not None else ""
        lines += row("", f"{each.what}{rows}: {each.reason}")
    more = len(audit.skipped) - _SKIPPED
    return lines + (row("", f"and {more:,} more, in skipped") if more > 0 else [])


def failure(audit: Audit) -> str:
    """Return what a failed test of one's own says: the verdict, the page, and how to repeat it."""
    beyond = "" if audit.tolerance is None else f" beyond the tolerance of {audit.tolerance:g}"
    p = pvalue(audit.pvalue, audit.alpha)
    verdict = f"the model is miscalibrated{beyond}, p = {p} at alpha = {audit.alpha:g}"
    return f"{verdict}\n\n{audit.summary().rstrip()}\n\nTo repeat it: {line(audit.call)}"


# ------------------------------------------------------------------ audit advice


_Directions: TypeAlias = dict[tuple[str, Group | None], Side | None]

_NAMED = 3  # groups or classes in one piece of advice
_POWER = 0.8

_HELD_OUT = "recalibrate the model on held-out rows"
_OFTEN = {"over": "too often", "under": "too seldom"}


def advice(audit: Audit) -> tuple[str, ...]:
    """Return what to do next, a sentence or two each."""
    if not audit.rejected:
        return (*_what_could_hide(audit), *_more_rows(audit))
    found = [check.view for check in audit.found]
    directions = shown_directions(audit)
    overall = [view for view in found if view.group is None]
    if audit.n_classes == 2:
        recalibrate = _of_two_classes(audit, overall)
    else:
        recalibrate = _of_more_classes(overall, directions)
    texts = [*_impossible(audit), *recalibrate, *_groups(found, directions)]
    if not texts:
        texts.append(
            "The error is in how probability is shared among the classes, for which no one class or "
            "group stands out: caltest.witness shows near which predictions."
        )
    texts.append(
        "Then audit again, on rows that were used neither to fit nor to recalibrate the model."
    )
    return tuple(texts)


def _impossible(audit: Audit) -> Iterable[str]:
    if audit.impossible:
        yield (
            "Look at the rows whose label has probability 0 (rounded away, a class that was not in the "
            "training data, a wrong label?); a temperature does not mend a probability of 0."
        )


def _of_two_classes(audit: Audit, overall: list[View]) -> Iterable[str]:
    """Advise by the line that fits: an intercept is an error no temperature mends, a slope is one."""
    if not overall:
        return
    line, name = audit.recalibration, _second(audit)
    otherwise = "or by isotonic regression if there are thousands of them"
    logistic = f"{_HELD_OUT} by logistic recalibration (intercept and slope), {otherwise}."
    if line is None:
        yield f"On all rows the probabilities are off: {logistic}"
        return
    slope, intercept = _text(line.slope, line.slope_se), _text(line.intercept, line.intercept_se)
    if _told(line.slope - 1.0, line.slope_se) and _told(line.intercept, line.intercept_se):
        yield (
            f"On all rows the logit of {name} needs a slope of {slope} and an intercept of "
            f"{intercept}, of which a temperature mends the slope alone: {logistic}"
        )
    elif _told(line.slope - 1.0, line.slope_se):
        too = "extreme" if line.slope < 1.0 else "timid"
        yield (
            f"On all rows the probabilities are too {too}: the logit needs a slope of {slope}, and no "
            f"intercept that could be told from 0. A temperature is such a slope: {_HELD_OUT} by "
            f"temperature scaling, {otherwise}."
        )
    elif _told(line.in_the_large, line.in_the_large_se):
        often = _OFTEN["over" if line.in_the_large < 0.0 else "under"]
        large = _text(line.in_the_large, line.in_the_large_se)
        yield (
            f"On all rows {name} is said {often}: its logit needs an intercept of {large}, and its "
            "slope could not be told from 1. "
            f"No temperature mends an intercept: {logistic}"
        )
    else:
        yield (
            "On all rows the probabilities are off, by no intercept and no slope of the logit that "
            "could be told from 0 and 1: the reliability diagram shows where; isotonic regression on "
            "held-out rows, if there are thousands of them, mends more than a line can."
        )


def _second(audit: Audit) -> str:
    """Return what the class is called whose probability the line recalibrates."""
    name = audit.classes[1]
    told = name if name == "class 1" else repr(name)
    return lens_name(View("canonical", f"the label is {told}", None, audit.n_samples))


def _told(difference: float, error: float) -> bool:
    """Return whether a difference is told from none; where the data do not tell, NaN, it is not."""
    return abs(difference) > DEVIATIONS * error


def _text(value: float, error: float) -> str:
    return f"{value:.2f} (standard error {error:.2g})"


def _of_more_classes(overall: list[View], directions: _Directions) -> Iterable[str]:
    """Advise one temperature only where no class is said too often or too seldom."""
    tops = [view for view in overall if not of_class(view)]
    classes = [view for view in overall if of_class(view)]
    sure = [view for view in tops if view.lens == "top_label" or view.event is None]
    sides = {side for view in sure if (side := directions[view.key])}
    side = sides.pop() if len(sides) == 1 else None
    off = _said_wrongly(classes, directions)
    names = _names(map(lens_name, classes))
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
    if names and not off:
        yield (
            f"One temperature for all classes may not mend {names}: recalibrate class by class (vector "
            "scaling, or isotonic regression of each class), and look at how these are labelled."
        )


def _said_wrongly(classes: list[View], directions: _Directions) -> str:
    """Return which classes are said too often or too seldom on average, where that is told."""
    parts = []
    for side, often in _OFTEN.items():
        names = _names(lens_name(view) for view in classes if directions[view.key] == side)
        parts += [f"{names} {often}"] if names else []
    return ", and ".join(parts)


def _groups(found: list[View], directions: _Directions) -> Iterable[str]:
    overall = {view.lens: view for view in found if view.group is None}
    names = _names(
        group_name(view.group)
        for view in found
        if view.group and _apart(view, overall.get(view.lens), directions)
    )
    if names:
        yield (
            f"Look at the data of {names}: labels, missing inputs, what differs from the rows that the "
            "model was fitted to. A recalibration of all rows alike does not mend a group that differs."
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
    goal = "of calibration" if audit.tolerance is None else "that errors are within the tolerance"
    views = [view for view in audit.views if hidden(audit, view)]
    if not views:
        yield f"This is no proof {goal}: an error may be too small for this many rows."
        return
    first = views[0]
    text = view_name(first) if first.group else f"{lens_name(first)} on all rows"
    yield (
        f"This is no proof {goal}: with so many checks, an average error of some "
        f"{_missed(audit, first)} of {text} would be missed in about one case of five."
    )
    groups = [view for view in views if view.group]
    if groups:
        small = min(groups, key=lambda view: view.rows)
        name = f"{view_name(small)} ({counted(small.rows, 'row')})"
        yield f"In small groups more can hide: some {_missed(audit, small)} of {name}."


def _missed(audit: Audit, view: View) -> str:
    error = min(1.0, (hidden(audit, view) or 0.0) + (audit.tolerance or 0.0))
    return points(float(f"{error:.2g}"))


def _more_rows(audit: Audit) -> Iterable[str]:
    yield (
        "Audit again with more rows, or fewer looks, if such errors matter; caltest.certificate says "
        "how far the probabilities can be off at most."
    )
