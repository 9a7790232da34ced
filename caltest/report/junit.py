"""An audit as JUnit's XML, in the form that continuous integration reads."""

from __future__ import annotations

from collections import Counter
from xml.etree import ElementTree

from caltest._visible import visible
from caltest.auditing.result import Audit, Check
from caltest.report._text import sentence
from caltest.text import audit as words
from caltest.text.numbers import counted
from caltest.text.vocabulary import lens_name

_QUOTES = ("'", '"')


def document(audit: Audit) -> str:
    """Return one test suite, with a test case for each hypothesis and for what was skipped."""
    settled = 1 if audit.impossible else 0
    counts = {
        "tests": str(settled + len(audit.checks) + len(audit.skipped)),
        "failures": str(settled + len(audit.found)),
        "errors": "0",
        "skipped": str(len(audit.skipped)),
    }
    suites = ElementTree.Element("testsuites", {"name": "caltest", **counts})
    suite = ElementTree.SubElement(suites, "testsuite", {"name": "caltest audit", **counts})
    properties = ElementTree.SubElement(suite, "properties")
    for name, value in _properties(audit):
        ElementTree.SubElement(properties, "property", {"name": name, "value": value})
    times: Counter[tuple[str, str]] = Counter()
    if settled:
        _impossible(suite, times, audit)
    for check in audit.checks:
        _case(suite, times, check, audit)
    for each in audit.skipped:
        rows = "" if each.rows is None else f" ({each.rows:,} rows)"
        case = _named(suite, times, "caltest.skipped", f"{each.what}{rows}")
        ElementTree.SubElement(case, "skipped", {"message": sentence(each.reason)})
    ElementTree.SubElement(suite, "system-out").text = sentence(words.verdict(audit))
    ElementTree.indent(suites)
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{ElementTree.tostring(suites, "unicode")}\n'


def _impossible(suite: ElementTree.Element, times: Counter[tuple[str, str]], audit: Audit) -> None:
    """Add a case that fails: without it, a rejection by such labels alone would pass."""
    case = _named(suite, times, "caltest.labels", "no label has probability 0")
    message = f"{counted(audit.impossible, 'row')}: a label came true that has probability 0"
    ElementTree.SubElement(case, "failure", {"type": "miscalibration", "message": message})


def _properties(audit: Audit) -> list[tuple[str, str]]:
    return [
        ("pvalue", repr(audit.pvalue)),
        ("alpha", repr(audit.alpha)),
        ("rejected", str(audit.rejected).lower()),
        ("tolerance", "none" if audit.tolerance is None else repr(audit.tolerance)),
        ("correction", audit.correction),
        ("n_resamples", str(audit.n_resamples)),
        ("seed", str(audit.seed)),
        *(("warning", sentence(text)) for text in audit.warnings),
    ]


def _case(
    suite: ElementTree.Element, times: Counter[tuple[str, str]], check: Check, audit: Audit
) -> None:
    case = _named(suite, times, f"caltest.{check.view.lens}", _name(check))
    if check.found:
        failure = ElementTree.SubElement(
            case, "failure", {"type": "miscalibration", "message": sentence(words.finding(check))}
        )
        failure.text = (
            f"{visible(check.statistic)} = {check.value:.6g} ({visible(check.measures)})\n"
            f"p = {check.pvalue:.6g}, adjusted for all hypotheses {check.adjusted:.6g}, "
            f"alpha = {audit.alpha:g}"
        )


def _name(check: Check) -> str:
    """Return the name of a case: no two checks have the same one, whatever groups are called."""
    name, group = lens_name(check.view), check.view.group
    if group:
        name += f" in {_apart(group.column, '=')} = {_apart(group.value)}"
    return f"{name}: {_apart(check.statistic, ': ')}"


def _apart(text: str, mark: str | None = None) -> str:
    """Quote a name that hides something, or holds the mark that is to follow or to precede it."""
    plain = visible(text) == text and "\\" not in text and not text.startswith(_QUOTES)
    return text if plain and not (mark and mark in text) else repr(text)


def _named(
    suite: ElementTree.Element, times: Counter[tuple[str, str]], classname: str, name: str
) -> ElementTree.Element:
    """Add a case; one whose name has been given is numbered."""
    both = visible(classname), visible(name)
    times[both] += 1
    number = f" [{times[both]}]" if times[both] > 1 else ""
    return ElementTree.SubElement(
        suite, "testcase", {"classname": both[0], "name": f"{both[1]}{number}"}
    )
