"""The summary of an audit: its words laid out."""

from __future__ import annotations

from dataclasses import dataclass

from caltest._prose import paragraph, percents, points, row, shortened
from caltest.auditing.result import Audit, Check, View
from caltest.auditing.words import (
    TOO,
    advice,
    certainty,
    counted,
    finding,
    proved,
    verdict,
    view_name,
    worst,
)

MOST_FINDINGS = 10
_WIDTH = 36  # of a view's name in a table
_SKIPPED = 8  # lines


@dataclass(frozen=True)
class Line:
    """One finding, as cells of a table."""

    what: str
    rows: str
    statistic: str
    says: str
    share: str
    adjusted: str
    at_least: str


def line(check: Check) -> Line:
    """Return the cells of one check."""
    view = check.view
    says, share = ("–", "–")
    if view.says is not None and view.share is not None:
        says, share = percents(view.says, view.share)
    bounds = [f"{points(bound)} {TOO[side]}" for side, bound in _sides(view) if bound]
    return Line(
        what=view_name(view),
        rows=f"{view.rows:,}",
        statistic=check.statistic,
        says=says,
        share=share,
        adjusted=f"{check.adjusted:.2g}",
        at_least=", ".join(bounds) or ("–" if view.over is None else "not shown"),
    )


def _sides(view: View) -> tuple[tuple[str, float | None], tuple[str, float | None]]:
    return ("over", view.over), ("under", view.under)


def summary(audit: Audit) -> str:
    """Return the verdict, how sure it is, where the model is wrong, and what to do next."""
    lenses = ", ".join(audit.lenses)
    rows = [
        (
            "looked at",
            f"{audit.n_samples:,} predictions of {audit.n_classes} classes, through {lenses}",
        ),
        ("groups", ", ".join(audit.groups) or "none"),
        (
            "checks",
            f"{len(audit.checks):,} in {counted(len(audit.views), 'view')}, together at level "
            f"{audit.alpha:g}",
        ),
    ]
    lines = ["Calibration audit", *(row(name, text) for name, text in rows), ""]
    lines += [*paragraph(verdict(audit)), *paragraph(certainty(audit))]
    for check in worst(audit):
        text = " ".join(t for t in (finding(check), proved(check.view, audit.confidence)) if t)
        lines += ["", *paragraph(text)]
    if audit.found:
        lines += ["", *_table(audit)]
    lines += ["", "What to do next"]
    for text in advice(audit):
        lines += [row("", text)]
    lines += _skipped(audit)
    for warning in audit.warnings:
        lines += ["", *paragraph(f"Note: {warning}")]
    return "\n".join(lines)


def _table(audit: Audit) -> list[str]:
    head = f"  {'found':<{_WIDTH}}  {'rows':>8}  {'by':<10}  {'says':>7}  {'true':>7}"
    lines = [f"{head}  {'adj. p':>7}  at least"]
    for check in audit.found[:MOST_FINDINGS]:
        each = line(check)
        lines.append(
            f"  {shortened(each.what, _WIDTH):<{_WIDTH}}  {each.rows:>8}  "
            f"{shortened(each.statistic, 10):<10}  {each.says:>7}  {each.share:>7}  "
            f"{each.adjusted:>7}  {each.at_least}"
        )
    more = len(audit.found) - MOST_FINDINGS
    if more > 0:
        lines.append(f"  and {more:,} more, in to_frame()")
    return lines


def _skipped(audit: Audit) -> list[str]:
    if not audit.skipped:
        return []
    lines = ["", "Not looked at"]
    for each in audit.skipped[:_SKIPPED]:
        rows = f" ({each.rows:,} rows)" if each.rows is not None else ""
        lines.append(row("", f"{each.what}{rows}: {each.reason}"))
    more = len(audit.skipped) - _SKIPPED
    return lines + ([row("", f"and {more:,} more, in skipped")] if more > 0 else [])
