from __future__ import annotations

import json
import re
from dataclasses import replace
from html.parser import HTMLParser
from xml.etree import ElementTree

import audits
import jsonschema
import numpy as np
import pytest

from caltest import report
from caltest.auditing.result import Check, Group, Reliability, Skipped, View
from caltest.report import charts
from caltest.report.summary import summarise
from caltest.text import audit as words
from caltest.text.numbers import probability_axis
from caltest.text.vocabulary import shown_directions

FORMATS = {
    ".html": report.to_html,
    ".md": report.to_markdown,
    ".json": report.to_json,
    ".xml": report.to_junit,
}
VOID = {"meta", "link", "br", "img", "hr", "input"}
SVG_EMPTY = {"line", "rect", "circle", "polygon", "path"}


class Page(HTMLParser):
    """Tags that are opened and closed in order, and the text of some."""

    def __init__(self, text):
        super().__init__(convert_charrefs=True)
        self.open, self.tags, self.texts, self.titles = [], [], [], []
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))
        self.titles += [value for name, value in attrs if name == "title"]
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        assert tag in SVG_EMPTY
        self.tags.append((tag, dict(attrs)))

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.texts.append((tuple(self.open), data))

    def count(self, tag):
        return sum(name == tag for name, _ in self.tags)

    def text(self, *inside):
        return " ".join(
            " ".join(data for within, data in self.texts if not inside or inside[0] in within).split()
        )


@pytest.fixture(scope="module")
def found():
    """A real audit with findings, with groups."""
    return audits.real("random_forest", n_resamples=399)


# --- what a report says


def test_first_screen_says_verdict_certainty_place_and_advice():
    audit = audits.audit()
    page = Page(report.to_html(audit, title="Animals", command="caltest audit a.csv"))
    text = page.text()
    first = text[text.index("Animals") : text.index("What the model says, and what came true")]
    assert words.verdict(audit) in first
    assert "✗ Rejected" in first
    assert "0.005 At or below alpha = 0.05; the smallest that 199 draws can show." in first
    assert (
        "error If the model were calibrated in every group, the chance of any finding among 22" in first
    )
    worst = next(check for check in audit.found if check.view.lens == "class:2")
    for check in (worst, next(c for c in audit.found if c.view.group)):
        assert words.finding(check) in first
    assert "at least 8 points too little somewhere" in first
    for advice in words.advice(audit):
        assert advice in first
    assert "$" not in first
    assert audit.call in text
    assert "caltest audit a.csv" in text
    assert "2 rows were given twice." in text
    assert "region = east" in text


def test_nothing_found_is_no_proof():
    page = Page(report.to_html(audits.audit(wrong=False)))
    assert "○ Not rejected" in page.text()
    assert "No class and no group was found to be wrong. That is no proof" in page.text()
    assert "✗" not in page.text("main")
    assert page.text("h1") == "Calibration audit"
    comment = report.to_markdown(audits.audit(wrong=False))
    assert comment.startswith("## ○ Not rejected: Calibration audit\n")
    assert "No class and no group was found" in comment


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"tolerance": 0.02}, "wrong by more than 2 points"),
        ({"tolerance": 0.02}, "of the labels from the worst model within the tolerance"),
        ({"tolerance": 0.0}, "the worst model within the tolerance"),
        ({"correction": "fdr_bh"}, "a share of at most 5% is false on average"),
        ({"correction": "holm"}, "each check has its own, adjusted by “holm”"),
        ({"correction": "holm", "null_distribution": None}, "There is no common null distribution"),
        ({"statistic": float("inf")}, "the labels: ∞"),
        ({"skipped": ()}, "11 views of 3,000 predictions of 3 classes."),
        ({"pvalue": 0.02}, "larger than that rank"),
    ],
)
def test_what_is_claimed_follows_the_audit(changes, sentence):
    text = Page(report.to_html(audits.audit(**changes))).text()
    assert sentence in text
    exact = "Guarantee exact" in text
    assert exact == (not {"tolerance", "correction"} & set(changes))


def test_worst_views_first_then_the_strongest_evidence():
    made = summarise(audits.audit(), title=None, command=None)
    assert [row.name.short for row in made.worst[:3]] == [
        "The top label in region = west",
        "Class 'bird'",
        "The top label",
    ]
    assert [row.found for row in made.worst] == [True] * 3 + [False] * 4
    rest = [row.adjusted for row in made.worst[3:]]
    assert rest == sorted(rest, key=float)
    west = made.worst[0]
    assert west.direction == "▲ claims too much"
    assert west.proved == "8 points too much"
    assert made.worst[1].proved == "8 points too little"
    assert made.worst[3].proved == "not shown"
    assert made.pictures[0].name.short == "The top label"
    assert len(made.pictures) == 6


def _with_first(audit, view, check=None):
    """Return the audit with another first view, and its first check of that."""
    first = check or replace(audit.checks[0], view=view)
    return replace(audit, views=(view,), checks=(first,))


@pytest.mark.parametrize(
    ("says", "share", "direction", "told"),
    [
        (0.315, 0.316, "under", "cannot be told"),  # a gap of a tenth of a point, in 900 rows
        (0.416, 0.316, "over", "▲ claims too much"),
        (0.216, 0.316, "under", "▼ claims too little"),
    ],
)
def test_a_direction_is_told_where_it_is_shown(says, share, direction, told):
    made = audits.audit()
    view = View("class:2", "the label is 'bird'", None, 900, says, share, direction, 0.0, 0.0)
    audit = _with_first(made, view, replace(made.checks[0], view=view, found=True))
    assert summarise(audit, title=None, command=None).found_views[0].direction == told
    assert f" | 900 | {told} | " in report.to_markdown(audit)
    shown = shown_directions(audit)[view.key]
    assert {"over": "▲", "under": "▼", None: "c"}[shown] == told[0]


@pytest.mark.parametrize(
    ("statistic", "found", "told"),
    [("ecd", True, "▲ claims too much"), ("ecd", False, None), ("skce_uq", True, "cannot be told")],
)
def test_of_a_vector_only_a_finding_of_the_signed_statistic_tells_the_direction(statistic, found, told):
    made = audits.audit()
    view = replace(made.views[0], direction="over")
    audit = _with_first(
        made, view, replace(made.checks[0], view=view, statistic=statistic, found=found)
    )
    rows = summarise(audit, title=None, command=None).found_views
    assert [row.direction for row in rows] == ([told] if told else [])


@pytest.mark.parametrize(
    ("correction", "value", "condition"),
    [
        ("westfall_young", "exact", None),
        ("holm", "valid", None),
        ("fdr_by", "valid", None),
        ("fdr_bh", "conditional", "of independent or positively dependent tests"),
        ("sidak", "conditional", "of independent or positively dependent tests"),
        ("hommel", "conditional", "of independent or positively dependent tests"),
        ("fdr_tsbh", "conditional", "of independent tests"),
        ("fdr_tsbky", "conditional", "of independent tests"),
    ],
)
def test_a_claim_carries_the_condition_of_its_correction(correction, value, condition):
    audit = audits.audit(correction=correction)
    text = Page(report.to_html(audit)).text()
    assert f"Guarantee {value} By" in text
    proviso = f"That is proved {condition} only."
    for shown in (text, report.to_markdown(audit)):
        assert (proviso in shown) if condition else ("That is proved" not in shown)


@pytest.mark.parametrize(
    ("lens", "event", "group", "shown"),
    [
        ("top_label", "the top class is right", Group("c" * 90, "north"), "= north"),
        (
            "top_label",
            "the top class is right",
            Group("region", "north" * 20),
            "in region = northnorth",
        ),
        ("class:0", f"the label is {'long' * 30!r}", Group("c" * 90, "v" * 90), "Class 'longl…"),
        ("class:0", f"the label is {'long' * 30!r}", Group("a", "north"), " in a = north"),
        ("class:0", f"the label is {'long' * 30!r}", None, "Class 'longlonglong"),
    ],
)
def test_of_a_long_name_every_part_is_seen(lens, event, group, shown):
    view = replace(audits.audit().views[1], lens=lens, event=event, group=group)
    name = summarise(_with_first(audits.audit(), view), title=None, command=None).worst[0].name
    assert shown in name.short
    assert "…" in name.short
    assert len(name.short) <= 48
    for whole in (group.column, group.value) if group else ():
        assert whole in name.full
    assert lens == "top_label" or event.removeprefix("the label is ") in name.full


def test_what_was_skipped_is_said_whole():
    reason = "they are named here in a clause of more than forty-eight characters, so to say"
    what = "1,204 pairs of a class and a group, those with the fewest events"
    audit = replace(audits.audit(), skipped=(Skipped(what, None, reason),))
    text = Page(report.to_html(audit)).text()
    assert what in text
    assert reason in text
    assert what in report.to_markdown(audit)


def test_a_label_that_was_called_impossible_is_said_everywhere():
    made = audits.audit(wrong=False)
    audit = replace(made, impossible=3, pvalue=1 / (audits.DRAWS + 1))
    assert audit.rejected
    assert not audit.found
    text = Page(report.to_html(audit)).text()
    assert "In 3 rows a label came true that has probability 0" in text
    assert "Beyond that, no class and no group was found to be wrong." in text
    assert "draws can show; a label of probability 0 came true." in text
    assert "smaller than that rank: a label came true that has probability 0" in text
    assert "In 3 rows a label came true that has probability 0" in report.to_markdown(audit)
    assert json.loads(report.to_json(audit))["impossible"] == 3
    (suite,) = ElementTree.fromstring(report.to_junit(audit))
    assert suite.get("failures") == "1"
    assert suite.find("testcase").get("name") == "no label has probability 0"
    assert suite.find("testcase/failure").get("message").startswith("3 rows: ")
    assert int(suite.get("tests")) == len(suite.findall("testcase"))
    (suite,) = ElementTree.fromstring(report.to_junit(made))
    assert suite.get("failures") == "0"


def test_bands_hold_for_all_diagrams_at_once():
    text = Page(report.to_html(audits.audit())).text()
    assert "in the grey bands, all of them in all diagrams at once, with at least 95%" in text


def test_no_zero_has_a_sign():
    made = audits.audit()
    check = replace(made.checks[0], value=-0.0, expected=(-0.0, 0.03167))
    audit = replace(made, checks=(check, *made.checks[1:]))
    row = summarise(audit, title=None, command=None).found[0]
    assert (row.value, row.expected) == ("0", "0 to 0.03167")
    assert "p alone, 95% interval" in Page(report.to_html(audit)).text("thead")


@pytest.mark.slow
def test_bounds_that_were_not_sought_are_not_called_unshown(found):
    unsought = replace(found.views[1], over=None, under=None)
    audit = replace(found, views=(unsought,), checks=(replace(found.checks[0], view=unsought),))
    assert summarise(audit, title=None, command=None).worst[0].proved == "not sought"


@pytest.mark.slow
def test_long_tables_are_cut_and_counted():
    audit = audits.audit([f"c{k}" for k in range(1000)], [f"g{k}" for k in range(300)])
    audit = replace(audit, skipped=tuple(Skipped(f"s{k}", k, "too few rows") for k in range(120)))
    page = report.to_html(audit)
    text = Page(page).text()
    assert len(audit.checks) == 3204
    assert "3,004 more checks are not shown here; all are in the JSON report" in text
    assert "70 more are in the JSON report" in text
    assert len(page) < 200_000
    assert len(report.to_markdown(audit)) < 10_000
    assert len(json.loads(report.to_json(audit))["checks"]) == 3204
    assert ElementTree.fromstring(report.to_junit(audit)).get("tests") == str(3204 + 120)


@pytest.mark.slow
def test_the_report_of_a_real_audit_is_the_same_for_every_number_of_workers(found):
    again = audits.real("random_forest", n_resamples=399, n_jobs=2)
    for write in FORMATS.values():
        assert write(found) == write(found)
        assert write(found) == write(again)


# --- names of any kind


@pytest.fixture(scope="module")
def hostile():
    audit = audits.audit(audits.HOSTILE, audits.HOSTILE[::-1])
    name = audits.HOSTILE[0]
    group = Group("<b>column</b> | `x`", name)
    view = replace(audit.views[0], group=group)
    checks = [
        replace(check, view=view, statistic="f<i>\x00") if check.view is audit.views[0] else check
        for check in audit.checks
    ]
    return replace(
        audit,
        checks=tuple(checks),
        views=(view, *audit.views[1:]),
        skipped=tuple(Skipped(name, 3, f"of {name}") for name in audits.HOSTILE),
        warnings=audits.HOSTILE,
        groups=audits.HOSTILE,
        call="caltest.audit(probs, labels, groups='```\n</code>')",
    )


def test_hostile_names_stay_text_in_html(hostile):
    text = report.to_html(hostile, title="<h1>&amp;", command="x '</pre><script>'")
    page = Page(text)
    assert page.count("script") == 0
    assert page.count("b") == page.count("i") == page.count("img") == 0
    assert page.count("h1") == 1
    assert page.text("h1") == "<h1>&amp;"
    assert "<script>alert('x')</script>" in page.text("main")
    assert "two\\nlines\\r\\nand\\ta tab" in page.text("main")
    assert "\\u202eright to left\\u2066" in page.text("main")
    assert re.search(r"x{3000}", text)
    assert any("x" * 3000 in title for title in page.titles)
    assert not re.search("[\x00-\x08\x0b-\x1f\x7f\u202a-\u202e\u2066-\u2069\ufffe\uffff]", text)
    text.encode("utf-8")


def test_hostile_names_stay_in_their_cell_in_markdown(hostile):
    text = report.to_markdown(hostile, title="a\n# b", command="echo '````'")
    lines = text.split("\n")
    assert lines[0] == "## ✗ Rejected: a\\\\n\\# b"
    tables = [line for line in lines if line.startswith("|")]
    widths = [len(re.findall(r"(?<!\\)\|", line)) - 1 for line in tables]
    assert set(widths) == {3, 7}
    prose = re.sub(r"(?ms)^(`{3,})\w*\n.*?^\1$", "", text)
    prose = re.sub(r"(`+).+?\1", "", prose)
    assert not re.search(r"(?<!\\)<(?!/?(details|summary)>)", prose)
    assert "@g" not in prose
    fences = [line for line in lines if re.match(r"`{3,}", line)]
    assert fences == ["`````sh", "`````", "````python", "````"]


def test_hostile_names_are_whole_in_json_and_legal_in_xml(hostile):
    data = json.loads(report.to_json(hostile))
    assert tuple(data["classes"]) == audits.HOSTILE
    jsonschema.validate(data, report.schema())
    suites = ElementTree.fromstring(report.to_junit(hostile).encode("utf-8"))
    names = [case.get("name") for case in suites.iter("testcase")]
    assert any("<script>alert('x')</script>" in name for name in names)


def test_a_single_view_without_groups_or_diagram():
    view = View("canonical", None, None, 5)
    check = Check(view, "ecd", "a", float("-inf"), None, 0.5, (0.4, 0.6), 0.5, False)
    audit = replace(audits.audit(wrong=False), views=(view,), checks=(check,), pvalue=0.5, groups=())
    page = Page(report.to_html(audit))
    assert "−∞" in page.text()
    assert "What the model says, and what came true" not in page.text()
    assert "1 view of" in page.text()
    jsonschema.validate(json.loads(report.to_json(audit)), report.schema())


# --- pictures


def test_reliability_diagram_by_hand():
    drawn = charts.diagram(Reliability((0.0, 0.5), (0.25, 1.0), (9, 9), (0.0, 0.25), (0.25, 0.75)))
    left, top, side = 52.0, 12.0, 252.0
    assert [(p.x, p.y) for p in drawn.points] == [
        (left, top + 0.75 * side),
        (left + 0.5 * side, top),
    ]
    assert [(p.low, p.high) for p in drawn.points] == [
        (top + side, top + 0.75 * side),
        (top + 0.75 * side, top + 0.25 * side),
    ]
    assert [p.outside for p in drawn.points] == [False, True]
    assert drawn.outside == 1
    assert (drawn.low, drawn.high) == ("0%", "100%")


@pytest.mark.parametrize(
    ("smallest", "largest", "axis"),
    [
        (0.0, 1.0, (0.0, 1.0, 0.2)),
        (0.91, 0.99, (0.9, 1.0, 0.02)),
        (0.999, 1.0, (0.999, 1.0, 0.0002)),
        (1.0, 1.0, (0.9999, 1.0, 0.0001)),
        (0.0, 0.0, (0.0, 0.0001, 0.0001)),
        (0.31, 0.31, (0.3099, 0.31, 0.0001)),
        (0.45, 0.62, (0.45, 0.65, 0.05)),
    ],
)
def test_axes_are_no_longer_than_what_is_shown(smallest, largest, axis):
    marks = probability_axis(smallest, largest)
    assert (marks[0], marks[-1], marks[1] - marks[0]) == pytest.approx(axis, abs=1e-9)


def test_histogram_by_hand():
    drawn = np.repeat([1.0, 2.0, 3.0], [10, 7, 2])
    made = charts.histogram(
        replace(audits.audit(), null_distribution=drawn, statistic=2.5, alpha=0.1, pvalue=0.15)
    )
    assert [bar.height for bar in made.bars] == [150.0, 105.0, 30.0]
    assert made.observed == pytest.approx(300.0 * 2.5 / 4.0)
    assert made.threshold == pytest.approx(300.0 * 3.0 / 4.0)  # of 20, two may be as large
    assert (made.reached, made.draws, made.beyond) == (2, 19, 0)
    assert not made.far
    assert not made.doubled


@pytest.mark.parametrize("observed", [0.5, 2.0, 20.0, 48.0, 60.0, 100.0, 150.0, 246.0, 273.0, 299.0])
def test_the_name_of_the_threshold_is_beside_the_line_of_the_labels(observed):
    for limit in (0.0, 10.0, 45.0, 100.0, 246.0, 300.0):  # of 300, where evidence ends at 6
        drawn = np.r_[np.zeros(88), limit / 50.0, np.full(10, 6.0)]
        made = charts.histogram(
            audits.audit(null_distribution=drawn, statistic=observed / 50.0, alpha=0.11)
        )
        assert (made.observed, made.threshold) == pytest.approx((observed, limit))
        middle = made.named
        assert abs(middle - observed) >= 46.0 + 3.0
        assert middle - 46.0 >= -10.0
        assert middle + 46.0 <= 316.0
        assert abs(middle - limit) <= 110.0  # near its own line


def test_what_is_far_out_breaks_the_axis_and_is_counted():
    drawn = np.append(np.linspace(0.0, 4.0, 97), [60.0, np.inf, np.nan])
    made = charts.histogram(replace(audits.audit(), null_distribution=drawn, statistic=500.0))
    assert made.far
    assert made.value == "500"
    assert made.beyond == 3
    assert sum(bar.height > 0 for bar in made.bars) > 12
    assert max(bar.x + bar.width for bar in made.bars) <= 246.0 < made.observed < 300.0
    assert charts.histogram(replace(audits.audit(), null_distribution=np.array([np.inf]))) is None


def test_gauge_is_on_the_side_of_its_error():
    made = charts.gauge(0.05, 0.1, 0.0, 0.2)
    assert made.under is None
    assert 80.0 < made.gap < made.over < 154.0
    assert charts.gauge(None, None, 0.4, 0.2).under == 6.0
