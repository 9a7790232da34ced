"""An audit in words: its verdict, how sure it is, what was found, and the page."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import astuple, dataclass, fields

from caltest._visible import line, shortened, shown, shown_column, visible
from caltest.auditing.result import Audit, Check, Group, View
from caltest.pvalues import CORRECTIONS
from caltest.text.audit_advice import advice
from caltest.text.directions import SIGNED, TENDS, TOO, shown_direction, signed
from caltest.text.layout import page, paragraph, row, table
from caltest.text.names import narrow_name, view_name
from caltest.text.numbers import confidence_text, counted, percents, points, pvalue

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
