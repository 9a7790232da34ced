"""The audit in words: one place for printer, report and command line."""

from __future__ import annotations

import math
from collections.abc import Iterable

from scipy.special import ndtri

from caltest._prose import confidence_text, percents, points
from caltest.auditing.result import Audit, Check, View

MOST_WORST = 5
_NAMED = 3  # groups or classes in one piece of advice
_POWER = 0.8
_DEVIATIONS = 3.0  # from where a difference of two means is told

TOO = {"over": "too much", "under": "too little"}
_TENDS = {"over": "over-confident", "under": "under-confident"}
_WHOLE = {"canonical": "the full probabilities", "sorted": "the ordered probabilities"}
_RATES = ("fdr_bh", "fdr_by", "fdr_tsbh", "fdr_tsbky")


def lens_name(view: View) -> str:
    """Return what is looked at, whatever the rows.

    Examples
    --------
    >>> lens_name(View("top_label", "the top class is right", None, 100))
    'the top label'
    >>> lens_name(View("class:cat", "the label is 'cat'", None, 100))
    "class 'cat'"
    >>> lens_name(View("top:2", "the label is among the top 2", None, 100))
    'the probability that the label is among the top 2'
    """
    if view.lens == "top_label":
        return "the top label"
    if view.event is None:
        return _WHOLE.get(view.lens, f"the lens {view.lens}")
    if view.lens != "canonical" and not _of_class(view):
        return f"the probability that {view.event}"
    name = view.event.removeprefix("the label is ")
    return name if name.startswith("class ") else f"class {name}"


def view_name(view: View) -> str:
    """Return what is looked at, and in which rows.

    Examples
    --------
    >>> from caltest.auditing import Group
    >>> view_name(View("top_label", "the top class is right", Group("region", "north"), 100))
    'the top label in region = north'
    """
    return lens_name(view) + (f" in {view.group.label}" if view.group else "")


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
    parts = [text for text in (gap(view), _tendency(view)) if text]
    name = view_name(view)
    return (
        f"{name[:1].upper()}{name[1:]} ({counted(view.rows, 'row')}): {'; '.join(parts)} "
        f"({check.statistic!r}, adjusted p = {check.adjusted:.2g})."
    )


def _tendency(view: View) -> str:
    """Return which way a view errs, if that can be told; what was found may be something else."""
    if view.says is None or view.share is None:
        tends = _TENDS.get(str(view.direction))
        return f"{tends} on average" if tends else "wrong, though not on average"
    if view.direction is None or abs(view.says - view.share) <= _DEVIATIONS * _deviation(view):
        return "wrong in parts, though hardly on average"
    words = _TENDS if view.lens == "top_label" else TOO
    return f"{words[view.direction]} on average"


def _deviation(view: View) -> float:
    """Return the standard deviation of the share under calibration, at most."""
    says = view.says or 0.0
    return math.sqrt(says * (1.0 - says) / view.rows)


def verdict(audit: Audit) -> str:
    """Return the answer in one sentence."""
    n_checks = counted(len(audit.checks), "check")
    if audit.tolerance is None:
        wrong, right = "The model is not calibrated", "No miscalibration was found"
    else:
        by = f"by more than {points(audit.tolerance)}" if audit.tolerance else ""
        wrong = f"The model is wrong {by}".rstrip()
        right = f"It was not shown that the model is wrong {by}".rstrip()
    if audit.rejected:
        found = len(audit.found)
        return f"{wrong}: {found:,} of {n_checks} found an error (p = {audit.pvalue:.2g})."
    return (
        f"{right}: the smallest adjusted p-value of {n_checks} is {audit.pvalue:.2g}, above the level "
        f"{audit.alpha:g}."
    )


def certainty(audit: Audit) -> str:
    """Return how sure the answer is, in a sentence or two."""
    true = "calibrated" if audit.tolerance is None else "within the tolerance"
    if audit.correction in _RATES:
        return (
            f"Adjusted by {audit.correction!r}: of the errors found, a share of at most "
            f"{audit.alpha:g} is false on average."
        )
    how = (
        f"ranked among {audit.n_resamples:,} draws of the labels from the predictions, all checks on "
        "the same draws"
        if audit.correction == "westfall_young"
        else f"adjusted by {audit.correction!r}, {audit.n_resamples:,} draws of the labels"
    )
    return (
        f"If the model were {true}, the chance of finding any error would be at most {audit.alpha:g}, "
        f"however many checks and rows there are ({how})."
    )


def worst(audit: Audit) -> tuple[Check, ...]:
    """Return the checks that tell most: one a view, those of one probability first, worst error first.

    The error is what is proved of it, or what is said less what came true.
    """
    best: dict[int, Check] = {}
    for check in audit.found:
        best.setdefault(id(check.view), check)
    ordered = sorted(best.values(), key=lambda check: (check.view.event is None, -_size(check.view)))
    return tuple(ordered[:MOST_WORST])


def _size(view: View) -> float:
    if view.says is None or view.share is None:
        return 0.0
    return max(abs(view.says - view.share), view.over or 0.0, view.under or 0.0)


def advice(audit: Audit) -> tuple[str, ...]:
    """Return what to do next, a sentence or two each."""
    if not audit.rejected:
        return (*_what_could_hide(audit), *_more_rows(audit))
    found = [check.view for check in audit.found]
    texts = [*_recalibrate(found), *_groups(found)]
    if not texts:
        texts.append(
            "The error is in how probability is shared among the classes, for which no one class or "
            "group stands out: caltest.witness shows near which predictions."
        )
    texts.append(
        "Then audit again, on rows that were used neither to fit nor to recalibrate the model."
    )
    return tuple(texts)


def _recalibrate(found: list[View]) -> Iterable[str]:
    overall = [view for view in found if view.group is None]
    tops = [view for view in overall if not _of_class(view)]
    if tops:
        sure = [view.direction for view in tops if view.lens == "top_label" or view.event is None]
        tends = _TENDS.get(str(sure[0])) if sure else None
        wrong = f"the model is {tends}" if tends else "the probabilities are off"
        yield (
            f"On all rows {wrong}: recalibrate the model on held-out rows, by temperature scaling for "
            "a start, or isotonic regression if there are thousands of them."
        )
    names = _names(lens_name(view) for view in overall if _of_class(view))
    if names:
        yield (
            f"One temperature for all classes may not mend {names}: recalibrate class by class (vector "
            "scaling, or isotonic regression of each class), and look at how these are labelled."
        )


def _of_class(view: View) -> bool:
    return view.lens.startswith("class:")


def _groups(found: list[View]) -> Iterable[str]:
    overall = {view.lens: view for view in found if view.group is None}
    names = _names(
        view.group.label for view in found if view.group and _apart(view, overall.get(view.lens))
    )
    if names:
        yield (
            f"Look at the data of {names}: labels, missing inputs, what differs from the rows that the "
            "model was fitted to. A recalibration of all rows alike does not mend a group that differs."
        )


def _apart(view: View, whole: View | None) -> bool:
    """Say whether a group errs in another way than all rows do, as far as can be told."""
    if whole is None or view.direction != whole.direction:
        return True
    if view.says is None or view.share is None or whole.says is None or whole.share is None:
        return False
    difference = abs((view.says - view.share) - (whole.says - whole.share))
    return difference > _DEVIATIONS * _deviation(view)


def _names(names: Iterable[str]) -> str:
    each = list(dict.fromkeys(names))
    text = ", ".join(each[:_NAMED])
    return text if len(each) <= _NAMED else f"{text} and {len(each) - _NAMED:,} more"


def hidden(audit: Audit, view: View) -> float | None:
    """Return how large an average error of a view might be, and be missed in one case of five.

    It is an approximation: the normal one, for the mean of the one probability, at the level that
    Bonferroni leaves to one of so many checks.

    Examples
    --------
    None without one probability.
    """
    if view.says is None:
        return None
    level = audit.alpha / (2.0 * len(audit.checks))
    return float(min(1.0, _deviation(view) * (ndtri(_POWER) - ndtri(level))))


def _what_could_hide(audit: Audit) -> Iterable[str]:
    goal = "of calibration" if audit.tolerance is None else "that errors are within the tolerance"
    views = [view for view in audit.views if view.says is not None]
    if not views:
        yield f"This is no proof {goal}: an error may be too small for this many rows."
        return
    first = views[0]
    text = view_name(first) if first.group else f"{lens_name(first)} on all rows"
    yield (
        f"This is no proof {goal}: with so many checks, an average error of some "
        f"{_missed(audit, first, 3)} of {text} would be missed in about one case of five."
    )
    groups = [view for view in views if view.group]
    if groups:
        small = min(groups, key=lambda view: view.rows)
        name = f"{view_name(small)} ({counted(small.rows, 'row')})"
        yield f"In small groups more can hide: some {_missed(audit, small, 2)} of {name}."


def _missed(audit: Audit, view: View, digits: int) -> str:
    error = (hidden(audit, view) or 0.0) + (audit.tolerance or 0.0)
    return points(min(1.0, round(error, digits)))


def _more_rows(audit: Audit) -> Iterable[str]:
    yield (
        "Audit again with more rows, or fewer looks, if such errors matter; caltest.certificate says "
        "how far the probabilities can be off at most."
    )


def counted(number: int, what: str) -> str:
    """Return a number of things.

    Examples
    --------
    >>> counted(1, "check"), counted(1200, "check")
    ('1 check', '1,200 checks')
    """
    return f"{number:,} {what}{'' if number == 1 else 's'}"
