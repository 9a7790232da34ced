"""An audit as plain data, in the order of the report: templates lay out, and decide nothing."""

from __future__ import annotations

from collections.abc import Sequence
from types import SimpleNamespace
from typing import NamedTuple

from caltest._visible import shortened, visible, visible_page
from caltest.auditing.result import Audit, Check, Group, View
from caltest.forms import Side
from caltest.report.charts import diagram, gauge, histogram
from caltest.text import audit as words
from caltest.text.audit import facts, findings_counted
from caltest.text.numbers import (
    confidence_text,
    counted,
    number,
    percents,
    points,
    pvalue,
    signed_points,
)
from caltest.text.vocabulary import (
    TOO,
    lens_name,
    narrow_name,
    shown_directions,
)

_WORST = 4  # views in words, on the first screen
_GAUGES = 20
_LISTED = 10  # views with a finding, in a comment
_ROWS = 200  # of the table of hypotheses
_SKIPPED = 50
_NAMED = 12  # of what is left out
_DIAGRAMS = 6
_NAME = 48  # characters of a name that are shown
_WHAT = 200  # of what was skipped, a clause that may hold names
_SENTENCE = 1500
_ENDS = (0.01, 0.02, 0.05, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.75)  # of the line of a gauge
_CLAIMS = {"over": "▲ claims too much", "under": "▼ claims too little"}


def sentence(text: str) -> str:
    """Return a sentence with names in it as it is shown: nothing hidden in it, and not endless."""
    return shortened(visible(text), _SENTENCE)


def name(text: str, most: int = _NAME) -> SimpleNamespace:
    """Return a name as it is shown, ``short``, and in ``full`` where that is more, else None."""
    shown = visible(text)
    short = shortened(shown, most)
    return SimpleNamespace(short=short, full=None if short == shown else shown)


class _Looked(NamedTuple):
    """A view, its strongest check and the one that is told, any finding, and which way is shown."""

    view: View
    check: Check
    told: Check
    found: bool
    direction: Side | None

    @property
    def gap(self) -> float | None:
        """What is said less what came true."""
        view = self.view
        return None if view.says is None or view.share is None else view.says - view.share

    @property
    def error(self) -> float:
        """What is proved, or the gap."""
        return max(self.view.over or 0.0, self.view.under or 0.0, abs(self.gap or 0.0))


def summarise(
    audit: Audit, *, title: str | None, command: str | None, gate: str | None = None
) -> SimpleNamespace:
    """Return what a report says of an audit; ``gate``: what lets more pass than the defaults."""
    looked = _worst_first(audit)
    found = [each for each in looked if each.found]
    single = [each for each in looked if each.view.says is not None]
    worst = single[:_GAUGES]
    largest = max((each.error for each in worst), default=0.0)
    scale = next((end for end in _ENDS if end >= largest), 1.0)
    pictured = _pictured(looked)
    kept = {id(each) for each in pictured}
    unpictured = [_named(each.view) for each in single if each.found and id(each) not in kept]
    checks = sorted(audit.checks, key=lambda check: not check.found)[:_ROWS]
    measures = dict.fromkeys((check.statistic, check.measures) for check in audit.checks)
    tolerance = None if audit.tolerance is None else points(audit.tolerance)
    versions = audit.to_dict()
    return SimpleNamespace(
        # The first screen.
        title=visible(title) if title else "Calibration audit",
        verdict=sentence(words.verdict(audit)),
        advice=[sentence(text) for text in words.advice(audit)],
        gate=None if gate is None else sentence(gate),
        rejected=audit.rejected,
        facts=facts(audit),
        impossible=words.impossible(audit),
        findings=[
            sentence(" ".join(filter(None, told)))
            for told in (
                (words.finding(each.told), words.proved(each.view, audit.confidence))
                for each in found[:_WORST]
            )
        ],
        more_findings=max(len(found) - _WORST, 0),
        # Views in numbers: with a finding; of one probability, the worst first.
        found_views=[_view_row(each, audit, scale) for each in found[:_LISTED]],
        more_found_views=max(len(found) - _LISTED, 0),
        worst=[_view_row(each, audit, scale) for each in worst],
        more_worst=len(single) - len(worst),
        scale=points(scale),
        # Pictures, and the views with a finding that have none.
        pictures=[_picture(k, each.view) for k, each in enumerate(pictured, 1)],
        not_pictured=unpictured[:_NAMED],
        more_not_pictured=max(len(unpictured) - _NAMED, 0),
        null=histogram(audit),
        # Checks.
        found=[_check_row(check, audit) for check in checks if check.found],
        others=[_check_row(check, audit) for check in checks if not check.found],
        left_out=len(audit.checks) - len(checks),
        counted=findings_counted(audit),
        measures=[(name(statistic).short, sentence(text)) for statistic, text in measures],
        tolerance=tolerance,
        correction=audit.correction,
        confidence=confidence_text(audit.confidence),
        # The rest.
        skipped=[
            (
                name(each.what, _WHAT),
                "" if each.rows is None else f"{each.rows:,}",
                sentence(each.reason),
            )
            for each in audit.skipped[:_SKIPPED]
        ],
        more_skipped=max(len(audit.skipped) - _SKIPPED, 0),
        notes=[sentence(text) for text in audit.warnings],
        call=visible_page(audit.call),
        command=None if command is None else visible_page(command),
        settings=[
            ("seed", str(audit.seed)),
            ("label draws", f"{audit.n_resamples:,}"),
            ("alpha", f"{audit.alpha:g}"),
            ("tolerance", tolerance or "none"),
            ("correction", audit.correction),
            ("lenses", sentence(", ".join(audit.lenses))),
            ("groups", sentence(", ".join(audit.groups)) or "none"),
        ],
        versions=[("caltest", versions["caltest"]), *versions["versions"].items()],
    )


def _worst_first(audit: Audit) -> list[_Looked]:
    """Return the views with a finding, of one probability, by their error; others, by evidence."""
    checks: dict[tuple[str, Group | None], list[Check]] = {}
    for check in audit.checks:
        checks.setdefault(check.view.key, []).append(check)
    shown = shown_directions(audit)
    looked = [
        _Looked(each[0].view, each[0], words.telling(each), any(c.found for c in each), shown.get(key))
        for key, each in checks.items()
    ]
    return sorted(
        looked,
        key=lambda each: (not each.found, each.view.says is None, -each.error if each.found else 0.0),
    )


def _pictured(looked: Sequence[_Looked]) -> list[_Looked]:
    """Choose the diagrams: that of the top label on all rows, then the worst."""
    drawable = [each for each in looked if each.view.reliability is not None]
    whole = [each for each in drawable if each.view.group is None]
    first = [each for each in whole if each.view.lens == "top_label"][:1] or whole[:1]
    return [*first, *(each for each in drawable if each not in first)][:_DIAGRAMS]


def _named(view: View) -> SimpleNamespace:
    """Return what is looked at, as a heading or the head of a row.

    What is too long is shortened part by part: of a class and of a group something is always seen.
    """
    what = lens_name(view)
    if what.startswith("class ") and view.event:
        what = f"class {view.event.removeprefix('the label is ').removeprefix('class ')}"
    whole = visible(f"{what} in {view.group.label}" if view.group else what)
    short = narrow_name(view, _NAME)
    full = None if short == whole else whole[:1].upper() + whole[1:]
    return SimpleNamespace(short=short[:1].upper() + short[1:], full=full)


def _view_row(each: _Looked, audit: Audit, scale: float) -> SimpleNamespace:
    view, gap = each.view, each.gap
    says, share = ("", "") if gap is None else percents(view.says or 0.0, view.share or 0.0, 1)
    proved = "not sought"
    if view.over is not None or view.under is not None:
        sides = (("over", view.over), ("under", view.under))
        proved = "; ".join(f"{points(bound)} {TOO[side]}" for side, bound in sides if bound)
    return SimpleNamespace(
        name=_named(view),
        rows=f"{view.rows:,}",
        found=each.found,
        direction=_CLAIMS.get(str(each.direction), "cannot be told" if each.found else ""),
        says=says,
        share=share,
        gap="" if gap is None else signed_points(gap),
        proved=proved or "not shown",
        adjusted=pvalue(each.check.adjusted, audit.alpha),
        gauge=gauge(gap, view.over, view.under, scale),
    )


def _picture(place: int, view: View) -> SimpleNamespace:
    """Return the reliability diagram of a view that has one, and its numbers."""
    r = view.reliability
    assert r is not None
    drawn = diagram(r)
    bins = [
        (f"{rows:,}", *percents(says, share, 1), " to ".join(percents(low, high, 1)), point.outside)
        for rows, says, share, low, high, point in zip(
            r.rows, r.says, r.share, r.low, r.high, drawn.points, strict=True
        )
    ]
    return SimpleNamespace(
        number=place,
        name=_named(view),
        rows=counted(view.rows, "row"),
        seen=f"{drawn.outside} of {counted(len(bins), 'bin')} outside the band",
        diagram=drawn,
        bins=bins,
    )


def _check_row(check: Check, audit: Audit) -> SimpleNamespace:
    low, high = check.pvalue_interval
    return SimpleNamespace(
        name=_named(check.view),
        rows=f"{check.view.rows:,}",
        statistic=name(check.statistic).short,
        value=number(check.value),
        expected="" if check.expected is None else " to ".join(number(end) for end in check.expected),
        pvalue=pvalue(check.pvalue, audit.alpha),
        interval=f"{low:.2g} to {high:.2g}",
        adjusted=pvalue(check.adjusted, audit.alpha),
        found=check.found,
    )
