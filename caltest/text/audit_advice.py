"""What to do after an audit, by what it found: nothing is advised on that could not be told."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeAlias

from scipy.special import ndtri

from caltest.auditing.result import Audit, Group, View
from caltest.forms import Side
from caltest.text.directions import DEVIATIONS, TENDS, beyond_noise, deviation, shown_directions
from caltest.text.names import group_name, lens_name, of_class, view_name
from caltest.text.numbers import counted, points

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
