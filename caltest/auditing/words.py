"""The audit in words: one place for printer, report and command line."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

from scipy.special import ndtri

from caltest._prose import confidence_text, counted, percents, points, pvalue
from caltest.auditing.names import group_name as group_name
from caltest.auditing.names import lens_name as lens_name
from caltest.auditing.names import narrow_name as narrow_name
from caltest.auditing.names import of_class
from caltest.auditing.names import view_name as view_name
from caltest.auditing.result import Audit, Check, Group, View
from caltest.forms import Side
from caltest.multiplicity import CORRECTIONS

MOST_WORST = 5
_NAMED = 3  # groups or classes in one piece of advice
_POWER = 0.8
_DEVIATIONS = 3.0  # from where a difference of two means is told

TOO = {"over": "too much", "under": "too little"}
_TENDS = {"over": "over-confident", "under": "under-confident"}
_SIGNED = "ecd"  # of probability vectors, the statistic that says which way they err


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
        side = _signed(check)
        return f"{_TENDS[side]} on average" if side else "wrong, which way this check does not say"
    side = shown_direction(view)
    if side is None:
        return "in which direction it errs on average cannot be told"
    words = _TENDS if view.lens == "top_label" else TOO
    return f"{words[side]} on average"


def shown_direction(view: View) -> Side | None:
    """Return which way one probability errs on average, if its error is beyond the noise; else None.

    Examples
    --------
    >>> shown_direction(View("top_label", "", None, 900, says=0.91, share=0.84, direction="over"))
    'over'
    >>> shown_direction(View("top_label", "", None, 900, says=0.91, share=0.90, direction="over"))
    """
    if view.says is None or view.share is None:
        return None
    return view.direction if abs(view.says - view.share) > _DEVIATIONS * _deviation(view) else None


def _signed(check: Check) -> Side | None:
    """Return which way a probability vector errs, if this check has found it."""
    return check.view.direction if check.found and check.statistic == _SIGNED else None


def shown_directions(audit: Audit) -> dict[tuple[str, Group | None], Side | None]:
    """Return which way every view with a finding errs on average; None where that is not shown."""
    found: dict[tuple[str, Group | None], Side | None] = {}
    for check in audit.found:
        side = _signed(check) if check.view.says is None else shown_direction(check.view)
        found[check.view.key] = found.get(check.view.key) or side
    return found


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


def certainty(audit: Audit) -> str:
    """Return how sure the answer is, in a sentence or two."""
    true = "calibrated" if audit.tolerance is None else "within the tolerance"
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
    signed = (check for check in checks if check.view.says is None and _signed(check))
    return next(signed, checks[0])


def _size(view: View) -> float:
    if view.says is None or view.share is None:
        return 0.0
    return max(abs(view.says - view.share), view.over or 0.0, view.under or 0.0)


def advice(audit: Audit) -> tuple[str, ...]:
    """Return what to do next, a sentence or two each."""
    if not audit.rejected:
        return (*_what_could_hide(audit), *_more_rows(audit))
    found = [check.view for check in audit.found]
    directions = shown_directions(audit)
    texts = [*_impossible(audit), *_recalibrate(found, directions), *_groups(found, directions)]
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


def _recalibrate(
    found: list[View], directions: dict[tuple[str, Group | None], Side | None]
) -> Iterable[str]:
    overall = [view for view in found if view.group is None]
    tops = [view for view in overall if not of_class(view)]
    if tops:
        sure = [view for view in tops if view.lens == "top_label" or view.event is None]
        sides = {side for view in sure if (side := directions[view.key])}
        side = sides.pop() if len(sides) == 1 else None
        if side:
            yield (
                f"On all rows the model is {_TENDS[side]}: recalibrate the model on held-out rows, "
                "by temperature scaling for a start, or isotonic regression if there are thousands of "
                "them."
            )
        else:
            yield (
                "On all rows the probabilities are off, in no one direction that could be told: "
                "recalibrate the model on held-out rows, by more than one temperature (isotonic "
                "regression if there are thousands of them)."
            )
    names = _names(lens_name(view) for view in overall if of_class(view))
    if names:
        yield (
            f"One temperature for all classes may not mend {names}: recalibrate class by class (vector "
            "scaling, or isotonic regression of each class), and look at how these are labelled."
        )


def _groups(
    found: list[View], directions: dict[tuple[str, Group | None], Side | None]
) -> Iterable[str]:
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


def _apart(
    view: View, whole: View | None, directions: dict[tuple[str, Group | None], Side | None]
) -> bool:
    """Say whether a group errs in another way than all rows do, as far as can be told."""
    if whole is None or {directions[view.key], directions[whole.key]} == {"over", "under"}:
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
