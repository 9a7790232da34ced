"""An audit as plain data, in the order of the report: templates lay out, and decide nothing."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from caltest._visible import visible, visible_page
from caltest.auditing.result import Audit, Check, View
from caltest.report._text import Name, sentence
from caltest.report.charts import Histogram, histogram
from caltest.report.views import (
    Looked,
    Picture,
    ViewRow,
    named,
    picture,
    scale_of,
    view_row,
    with_diagram,
    worst_first,
)
from caltest.text import audit as words
from caltest.text.audit import Fact, advice, facts, findings_counted
from caltest.text.numbers import confidence_text, number, points, pvalue

_WORST = 4  # views in words, on the first screen
_GAUGES = 20
_LISTED = 10  # views with a finding, in a comment
_ROWS = 200  # of the table of hypotheses
_SKIPPED = 50
_NAMED = 12  # of what is left out
_WHAT = 200  # characters of what was skipped, a clause that may hold names


@dataclass(frozen=True)
class CheckRow:
    """A hypothesis: what was measured, and how sure it is."""

    name: Name
    rows: str
    statistic: str
    value: str
    expected: str
    pvalue: str
    interval: str
    adjusted: str
    found: bool


@dataclass(frozen=True)
class Some:
    """Names of what is not shown in full, and how many more there are."""

    names: tuple[Name, ...]
    more: int


@dataclass(frozen=True)
class Report:
    """All that a report says.

    Attributes
    ----------
    title, verdict, advice
        Sentences of the first screen.
    gate
        What lets more pass than the defaults, as a sentence; None if nothing does.
    rejected
        Whether the verdict is "rejected".
    facts
        How sure it is.
    impossible
        In how many rows a label of probability 0 came true, as a sentence; None if in none.
    findings, more_findings
        The worst views in words, and number of others with a finding.
    found_views, more_found_views
        The views with a finding in numbers, and number of others.
    worst, more_worst
        The views of one probability in numbers, the worst first, and number of others.
    scale
        Where the gauges of ``worst`` end, in points.
    pictures, not_pictured
        Reliability diagrams, and the views with a finding that have one which is not shown.
    null
        The null distribution; None where p-values are not jointly drawn.
    found, others, left_out
        The checks with a finding, the others, and number of those not in either.
    tolerance, correction
        The error that is allowed, if any is, and how p-values were adjusted.
    counted
        How many checks there are, and how many findings, as a sentence.
    measures
        What every statistic measures.
    skipped, more_skipped
        What was not looked at: name, rows and reason; and number of others.
    notes
        What a reader should know.
    call, command, settings, versions
        What repeats the audit.
    confidence
        With which all bounds hold together, as text.
    """

    title: str
    verdict: str
    advice: tuple[str, ...]
    gate: str | None
    rejected: bool
    facts: tuple[Fact, ...]
    impossible: str | None
    findings: tuple[str, ...]
    more_findings: int
    found_views: tuple[ViewRow, ...]
    more_found_views: int
    worst: tuple[ViewRow, ...]
    more_worst: int
    scale: str
    pictures: tuple[Picture, ...]
    not_pictured: Some
    null: Histogram | None
    found: tuple[CheckRow, ...]
    others: tuple[CheckRow, ...]
    left_out: int
    tolerance: str | None
    correction: str
    counted: str
    measures: tuple[tuple[str, str], ...]
    skipped: tuple[tuple[Name, str, str], ...]
    more_skipped: int
    notes: tuple[str, ...]
    call: str
    command: str | None
    settings: tuple[tuple[str, str], ...]
    versions: tuple[tuple[str, str], ...]
    confidence: str


def summarise(
    audit: Audit, *, title: str | None, command: str | None, gate: str | None = None
) -> Report:
    """Return what a report says of an audit.

    Parameters
    ----------
    audit
        The audit.
    title
        What the report is about; by default, "Calibration audit".
    command
        The shell command that repeats the audit, if there is one.
    gate
        What lets more pass than the defaults, as a sentence.
    """
    looked = worst_first(audit)
    found = [each for each in looked if each.found]
    single = [each for each in looked if each.view.says is not None]
    shown, scale = single[:_GAUGES], scale_of(single[:_GAUGES])
    pictured, not_pictured = with_diagram(looked)
    checks = sorted(audit.checks, key=lambda check: not check.found)[:_ROWS]
    return Report(
        title=visible(title) if title else "Calibration audit",
        verdict=sentence(words.verdict(audit)),
        advice=tuple(sentence(text) for text in advice(audit)),
        gate=None if gate is None else sentence(gate),
        rejected=audit.rejected,
        facts=facts(audit),
        impossible=words.impossible(audit),
        findings=tuple(_finding(each, audit) for each in found[:_WORST]),
        more_findings=max(len(found) - _WORST, 0),
        found_views=tuple(view_row(each, audit, scale) for each in found[:_LISTED]),
        more_found_views=max(len(found) - _LISTED, 0),
        worst=tuple(view_row(each, audit, scale) for each in shown),
        more_worst=len(single) - len(shown),
        scale=points(scale),
        pictures=tuple(picture(k, each) for k, each in enumerate(pictured, 1)),
        not_pictured=_some([each.view for each in not_pictured]),
        null=histogram(audit),
        found=tuple(_check_row(check, audit) for check in checks if check.found),
        others=tuple(_check_row(check, audit) for check in checks if not check.found),
        left_out=len(audit.checks) - len(checks),
        tolerance=None if audit.tolerance is None else points(audit.tolerance),
        correction=audit.correction,
        counted=findings_counted(audit),
        measures=_measures(audit),
        skipped=_skipped(audit),
        more_skipped=max(len(audit.skipped) - _SKIPPED, 0),
        notes=tuple(sentence(text) for text in audit.warnings),
        call=visible_page(audit.call),
        command=None if command is None else visible_page(command),
        settings=_settings(audit),
        versions=_versions(audit),
        confidence=confidence_text(audit.confidence),
    )


def _finding(each: Looked, audit: Audit) -> str:
    proved = words.proved(each.view, audit.confidence)
    return sentence(" ".join(text for text in (words.finding(each.told), proved) if text))


def _check_row(check: Check, audit: Audit) -> CheckRow:
    low, high = check.pvalue_interval
    return CheckRow(
        name=named(check.view),
        rows=f"{check.view.rows:,}",
        statistic=Name.of(check.statistic).short,
        value=number(check.value),
        expected="" if check.expected is None else " to ".join(number(end) for end in check.expected),
        pvalue=pvalue(check.pvalue, audit.alpha),
        interval=f"{low:.2g} to {high:.2g}",
        adjusted=pvalue(check.adjusted, audit.alpha),
        found=check.found,
    )


def _measures(audit: Audit) -> tuple[tuple[str, str], ...]:
    each = dict.fromkeys((check.statistic, check.measures) for check in audit.checks)
    return tuple((Name.of(statistic).short, sentence(measures)) for statistic, measures in each)


def _skipped(audit: Audit) -> tuple[tuple[Name, str, str], ...]:
    return tuple(
        (
            Name.of(each.what, _WHAT),
            "" if each.rows is None else f"{each.rows:,}",
            sentence(each.reason),
        )
        for each in audit.skipped[:_SKIPPED]
    )


def _some(views: Sequence[View]) -> Some:
    names = tuple(named(view) for view in views[:_NAMED])
    return Some(names, len(views) - len(names))


def _settings(audit: Audit) -> tuple[tuple[str, str], ...]:
    tolerance = "none" if audit.tolerance is None else points(audit.tolerance)
    return (
        ("seed", str(audit.seed)),
        ("label draws", f"{audit.n_resamples:,}"),
        ("alpha", f"{audit.alpha:g}"),
        ("tolerance", tolerance),
        ("correction", audit.correction),
        ("lenses", sentence(", ".join(audit.lenses))),
        ("groups", sentence(", ".join(audit.groups)) or "none"),
    )


def _versions(audit: Audit) -> tuple[tuple[str, str], ...]:
    data = audit.to_dict()
    return ("caltest", data["caltest"]), *data["versions"].items()
