"""The summary of an audit: its words laid out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import astuple, dataclass, fields

from caltest._prose import counted, page, paragraph, percents, pvalue, row, table
from caltest._visible import shortened, shown, visible
from caltest.auditing.result import Audit, Check, View
from caltest.auditing.shown import shown_column
from caltest.auditing.words import (
    advice,
    certainty,
    finding,
    narrow_name,
    proved,
    verdict,
    worst,
)

MOST_FINDINGS = 10
_WIDTH = 100  # of a line of a table
_NARROWEST = 16  # of a view's name there
_SKIPPED = 8  # lines


@dataclass(frozen=True)
class Line:
    """One finding, as cells of a table but for the view's name, which takes what room is left."""

    rows: str
    statistic: str
    says: str
    share: str
    adjusted: str
    at_least: str


_HEAD = Line("rows", "by", "says", "true", "adj. p", "points at least")


def line(check: Check, alpha: float) -> Line:
    """Return the cells of one check."""
    view = check.view
    says, share = ("–", "–")
    if view.says is not None and view.share is not None:
        says, share = percents(view.says, view.share)
    bounds = [f"{100.0 * bound:.4g} {side}" for side, bound in _sides(view) if bound]
    return Line(
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
    cells = _aligned([_HEAD, *(line(check, audit.alpha) for check in shown)])
    room = max(_NARROWEST, _WIDTH - 4 - max(map(len, cells)))
    names = ["found", *(narrow_name(check.view, room) for check in shown)]
    width = max(map(len, names))
    lines = [f"  {name:<{width}}  {each}" for name, each in zip(names, cells, strict=True)]
    more = len(audit.found) - MOST_FINDINGS
    if more > 0:
        lines.append(f"  and {more:,} more, in to_frame()")
    return lines


def _aligned(lines: Sequence[Line]) -> list[str]:
    """Lay cells out in columns: numbers to the right, text to the left, nothing after the last."""
    columns = list(zip(*(astuple(each) for each in lines), strict=True))
    padded = []
    for name, column in zip((each.name for each in fields(Line)), columns, strict=True):
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
