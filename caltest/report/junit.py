"""An audit as JUnit's XML, in the form that continuous integration reads."""

from __future__ import annotations

from xml.etree import ElementTree

from caltest.auditing import words
from caltest.auditing.result import Audit, Check
from caltest.report._text import sentence, visible


def document(audit: Audit) -> str:
    """Return one test suite, with a test case for each hypothesis and for what was skipped."""
    counts = {
        "tests": str(len(audit.checks) + len(audit.skipped)),
        "failures": str(len(audit.found)),
        "errors": "0",
        "skipped": str(len(audit.skipped)),
    }
    suites = ElementTree.Element("testsuites", {"name": "caltest", **counts})
    suite = ElementTree.SubElement(suites, "testsuite", {"name": "caltest audit", **counts})
    properties = ElementTree.SubElement(suite, "properties")
    for name, value in _properties(audit):
        ElementTree.SubElement(properties, "property", {"name": name, "value": value})
    for check in audit.checks:
        _case(suite, check, audit)
    for each in audit.skipped:
        rows = "" if each.rows is None else f" ({each.rows:,} rows)"
        case = _named(suite, "caltest.skipped", f"{each.what}{rows}")
        ElementTree.SubElement(case, "skipped", {"message": sentence(each.reason)})
    ElementTree.SubElement(suite, "system-out").text = sentence(words.verdict(audit))
    ElementTree.indent(suites)
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{ElementTree.tostring(suites, "unicode")}\n'


def _properties(audit: Audit) -> list[tuple[str, str]]:
    return [
        ("pvalue", repr(audit.pvalue)),
        ("alpha", repr(audit.alpha)),
        ("rejected", str(audit.rejected).lower()),
        ("tolerance", "none" if audit.tolerance is None else repr(audit.tolerance)),
        ("correction", audit.correction),
        ("n_resamples", str(audit.n_resamples)),
        ("seed", str(audit.seed)),
    ]


def _case(suite: ElementTree.Element, check: Check, audit: Audit) -> None:
    name = f"{words.view_name(check.view)}: {check.statistic}"
    case = _named(suite, f"caltest.{check.view.lens}", name)
    if check.found:
        failure = ElementTree.SubElement(
            case, "failure", {"type": "miscalibration", "message": sentence(words.finding(check))}
        )
        failure.text = (
            f"{visible(check.statistic)} = {check.value:.6g} ({visible(check.measures)})\n"
            f"p = {check.pvalue:.6g}, adjusted for all hypotheses {check.adjusted:.6g}, "
            f"alpha = {audit.alpha:g}"
        )


def _named(suite: ElementTree.Element, classname: str, name: str) -> ElementTree.Element:
    names = {"classname": visible(classname), "name": visible(name)}
    return ElementTree.SubElement(suite, "testcase", names)
