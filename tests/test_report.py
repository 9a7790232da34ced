import base64
import hashlib
import json
import re
from dataclasses import replace
from html.parser import HTMLParser
from xml.etree import ElementTree

import audits
import jsonschema
import numpy as np
import pytest

import caltest
from caltest import auditing, report
from caltest.report.summary import first_screen, summarise
from caltest.text import audit as words
from caltest.text import captions
from caltest.text.advice import advice

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


# --- the first screen

VERDICTS = {
    "material": lambda: audits.binary(materiality=0.02),
    "undecided": lambda: audits.binary(-0.05, materiality=0.06),
    "found": audits.binary,
    "within": lambda: audits.binary(0.0, materiality=0.3),
    "within, and wrong": lambda: audits.slope(materiality=0.05),
    "not found": lambda: audits.binary(0.0),
}


@pytest.mark.slow
@pytest.mark.parametrize("verdict", VERDICTS)
def test_the_first_screen_has_the_audit_s_own_words(verdict):
    audit = VERDICTS[verdict]()
    assert audit.verdict == verdict.partition(",")[0]
    page = Page(report.to_html(audit, title="Readmission", command="caltest audit a.csv", date="May 4"))
    first = page.text("article")
    chip, why = words.chip(audit)
    for sentence in (chip, why, words.size(audit), words.assumes(audit), words.evidence_note(audit)):
        assert sentence in first
    for sentence in (*advice(audit), *(text for row in words.evidence(audit) for text in row)):
        assert sentence in first
    assert page.text("h1") == "Readmission"
    assert page.text("title").startswith(f"{chip}: Readmission")
    assert page.text("h2").startswith(audit.headline)
    assert "8,000 rows · groups: sex, age · audited May 4" in first or not audit.groups
    text = page.text()
    assert audit.call in text
    assert "caltest audit a.csv" in text
    assert "2 rows were given twice." in text
    assert "region = east" in text


def test_a_group_that_explains_leads_the_table_and_has_the_picture():
    first = first_screen(audits.binary(materiality=0.02))
    assert first.table_leads
    assert first.slices.title == "One group stands out."
    names = [row.name.short for row in first.slices.rows]
    assert names[:2] == ["All rows", "sex = F, age = old"]
    assert {*names[2:4]} == {"sex = F", "age = old"}
    assert [row.bad for row in first.slices.rows] == [True] * 4 + [False] * 5
    low, value, high = first.slices.rows[1].bar
    start, end = first.slices.corridor
    assert low < value < high < start < first.slices.zero < end
    assert first.slices.limit == "±2 points"
    assert first.figure.title.startswith("sex = F, age = old: shown too low in ")
    assert len({drawing.size.name for drawing in first.figure.drawings}) == 2


def test_no_mark_without_a_finding():
    """An interval that excludes 0 beside an adjusted p-value above alpha: shown nowhere."""
    made = audits.binary()
    view = next(each for each in made.views if each.group == audits.group(("age", "old")))
    close = replace(view, adjusted_pvalue=0.054)
    views = tuple(close if each is view else each for each in made.views)
    checks = tuple(
        replace(each, view=close, adjusted=0.054, found=False) if each.view == view else each
        for each in made.checks
    )
    audit = replace(made, views=views, checks=checks, pvalue=0.06)
    page = summarise(audit)
    (row,) = (row for row in page.first.slices.rows if row.name.short == "age = old")
    assert not row.bad
    (row,) = (row for row in page.views if row.name.short == "age = old")
    assert row.side is None
    assert "age = old" not in words.size(audit)


def test_a_group_that_is_shown_is_in_the_picture_whatever_its_column():
    """Twelve siblings of the group that explains, none shown, and one of another column, shown."""
    made = audits.binary()
    worst = replace(made.worst, group=audits.group(("region", "r0")))
    right = next(each for each in made.views if each.group and not each.direction)
    siblings = [replace(right, group=audits.group(("region", f"r{k}"))) for k in range(1, 13)]
    other = replace(worst, group=audits.group(("age", "old")), rows=worst.rows - 1)
    views = (made.views[0], worst, *siblings, other)
    checks = tuple(replace(made.checks[0], view=each, found=True) for each in (worst, other))
    first = first_screen(replace(made, views=views, checks=checks, rests=()))
    assert [row.name.short for row in first.slices.rows if row.bad][1:3] == ["region = r0", "age = old"]
    assert first.slices.more == 15 - 9


@pytest.mark.slow
def test_a_tenth_row_is_shown_rather_than_counted():
    for count in (9, 10, 11):
        audit = audits.audit([f"c{k}" for k in range(count)], (), wrong=False)
        for text in (Page(report.to_html(audit)).text(), report.to_markdown(audit), str(audit)):
            assert not re.search(r"\b1 more", text)


def test_a_bar_that_goes_on_has_an_arrow():
    made = audits.binary()
    wide = replace(made.views[2], low=-0.9, high=0.9)
    cut = replace(made, views=(*made.views[:2], wide, *made.views[3:]))
    for arrow in ("M5-5L0 0L5 5", "M-5-5L0 0L-5 5"):
        assert report.to_html(cut).count(f'd="{arrow}"') == 1
        assert arrow not in report.to_html(made)


def test_a_notebook_names_no_table_that_is_not_there():
    many = audits.audit([f"c{k}" for k in range(60)], ())
    assert "52 more classes in to_frame() ." in Page(report.to_fragment(many)).text()
    assert "52 more classes in the table below" in Page(report.to_html(many)).text()


@pytest.fixture(scope="module")
def channels():
    """Intervals that are too narrow in one of three channels, of few rows."""
    rng = np.random.default_rng(11)
    mean, channel = rng.uniform(50.0, 150.0, 600), np.array(["depot", "shop", "web"] * 200)
    law = caltest.predictive.Normal(mean, sd=np.where(channel == "web", 8.0, 10.0))
    y, groups = rng.normal(mean, 10.0), {"channel": channel}
    audit = caltest.audit(law, y, groups=groups, materiality=0.05, n_resamples=199, rng=1)
    return replace(audit, pvalue=0.5)  # as if it had not been found


def test_groups_that_were_named_come_before_those_that_the_audit_makes(channels):
    rows = [row.name.short for row in first_screen(channels).slices.rows]
    own = [name for name in rows if name.startswith("channel")]
    assert sorted(own) == ["channel = depot", "channel = shop", "channel = web"]
    few = next(text for text in words.unsettled(channels) if "not shown to be within" in text)
    assert "where channel is " in few  # and not a tenth that nobody named
    text = Page(report.to_html(channels)).text()
    assert "Spread: how far the predicted 90% quantile lies above the 10% quantile." in text
    assert "Level: the predicted median." in text
    assert "spread" not in captions.made_note(channels, channels.views[:1]).lower()


def test_what_is_not_settled_is_a_list_and_many_checks_are_folded(channels):
    assert channels.verdict == "undecided"
    page = report.to_html(channels)
    listed = page.partition('<ul class="size open">')[2].partition("</ul>")[0]
    assert listed.count("<li>") == len(words.unsettled(channels)) > 1
    assert "is not shown to be within 5 points: an" in report.to_markdown(channels)
    assert page.count('<details class="long">') == 1
    assert '<details class="long">' not in report.to_html(audits.binary())


def test_the_value_of_a_mean_has_one_sign_everywhere():
    """That of Python and of `caltest test`, which the page states below its table."""
    audit = caltest.audit([0.3] * 200, [1] * 100 + [0] * 100, statistics="citl", n_resamples=99, rng=0)
    (row,) = summarise(audit).checks
    assert audit.checks[0].value > 0.0
    assert (row.of.value, row.value) == (
        audit.checks[0].value,
        f"{audit.checks[0].value:.4g}".replace("-", "−"),
    )
    assert summarise(audit).views[0].error.startswith("−")
    assert "observed less predicted" in summarise(audit).measures[0][1]


def test_a_pass_is_never_shown_as_a_finding():
    for audit in (audits.binary(0.0), audits.audit(wrong=False), audits.binary(0.0, materiality=0.3)):
        page = report.to_html(audit)
        text = Page(page).text("main")
        assert "is shown to be wrong" in text or "inside the limit" in text
        assert 'class="dot bad"' not in page
        assert "shown to be wrong, " not in Page(page).text("article")  # the key of the dots
        for finding in ("◆ found", "◆ too", "stands out", "oo high in", "oo low in", "shows the error"):
            assert finding not in text
    view = audits.binary(0.0).views[0]
    beside = replace(audits.binary(0.0), views=(replace(view, low=0.001, high=0.02),))
    assert not any(row.bad for row in first_screen(beside).slices.rows)


@pytest.mark.parametrize(
    ("audit", "title", "note"),
    [
        (
            lambda: audits.binary(-0.3),
            "sex = F, age = old: too low in all five parts",
            "Dots: observed rate in each fifth of the predictions; ◆ proved wrong, ○ not.",
        ),
        (
            lambda: audits.slope(materiality=0.05),
            "Every tenth of the predictions is ins",
            "Boxes: the half of the rows",
        ),
        (lambda: audits.slope(bend=0.001), "Each tenth alone has too few rows to tell", "Dots: tenths"),
        (lambda: audits.binary(0.0), "No tenth of the predictions is shown to be wrong", "Dots"),
        (
            lambda: audits.binary(0.0, materiality=0.3),
            "Every tenth of the predictions is ins",
            "Dashed: your limit",
        ),
        (lambda: audits.rare(), "Shown too high in ", "events observed per 1,000 rows"),
        (lambda: audits.audit(), "Class bird: too low in all ten parts", "Dashed"),
    ],
)
def test_the_title_of_the_picture_is_what_its_intervals_show(audit, title, note):
    figure = first_screen(audit()).figure
    assert figure.title.startswith(title)
    assert note in figure.note


def test_titles_count_by_hand():
    audit = audits.binary()
    view = audit.views[0]

    def parts(*ends):
        return tuple(
            auditing.Part(len(ends), k, 50, 0.5, 0.5, low, high, 0.1 * k, 0.1 * k + 0.1)
            for k, (low, high) in enumerate(ends)
        )

    def titled(parts, halves=()):
        made = replace(audit, views=(replace(view, parts=(*parts, *halves)), *audit.views[1:]))
        return captions.parts_title(made, made.views[0], parts, halves)

    low, high, none = (-0.02, -0.01), (0.01, 0.02), (-0.01, 0.01)
    for ends, title in (
        ((low, low, none, none, none), "Shown too low in two of five parts of the predictions."),
        ((high,) * 5, "Too high in all five parts of the predictions."),
        ((high, none, none, none, low), "Shown too high in one, too low in one of five parts"),
        ((high, high), "Too high in both halves of the predictions."),
        ((none,) * 10, "Too low overall; each tenth alone has too few rows to tell."),
        ((none,) * 10, "The lower half too low, the upper half too high, on average."),
    ):
        halves = parts(low, high) if "half" in title else ()
        assert titled(parts(*ends), halves).startswith(title)
    text = titled(tuple(replace(part, of=10) for part in parts(low, none, none)))
    assert text == "Shown too low in one of three parts of the predictions."


def test_small_errors_are_drawn_as_errors_and_rare_events_on_a_log_axis():
    errors = first_screen(audits.slope(materiality=0.05)).figure.drawings[0]
    texts = [mark.text for mark in errors.marks if mark.tag == "text"]
    assert "error (predicted − observed), points" in texts
    assert sum(mark.kind == "half bad" for mark in errors.marks) == 2
    assert sum(mark.kind == "limit" for mark in errors.marks) == 2
    first = first_screen(audits.rare())
    texts = [mark.text for mark in first.figure.drawings[0].marks if mark.tag == "text"]
    assert "predicted events per 1,000 rows (log scale)" in texts
    assert first.slices.head == "Predicted ÷ observed"
    assert re.fullmatch(
        r"All rows: predicted .*: between 1\.\d\d and 1\.\d\d times the true rate \(95% confidence\)",
        first.slices.rows[0].words,
    )
    first = first_screen(audits.rare(materiality=0.005))  # bars, and what says them, are in points
    assert first.slices.head == "Error, points"
    assert re.search(r": between \S+ and \S+ points too high \(95% c", first.slices.rows[0].words)


def test_predictions_that_are_nearly_all_alike_are_drawn_by_rank():
    made = audits.slope()
    parts = tuple(
        replace(part, predicted=0.5 if part.of == 10 and not part.place else 1.0 - 1e-6)
        for part in made.views[0].parts
    )
    view = replace(made.views[0], parts=parts)
    drawing = first_screen(replace(made, views=(view,))).figure.drawings[0]
    texts = [mark.text for mark in drawing.marks if mark.tag == "text"]
    assert "share of the rows, from the lowest prediction" in texts
    dots = [mark.x for mark in drawing.marks if mark.tag == "circle"]
    assert len(set(dots)) == len(dots) >= 8


def test_the_cumulative_difference_is_drawn_only_where_no_interval_tells():
    audit = audits.slope(bend=0.001)
    figure = first_screen(replace(audit, views=(audits.path(audit.views[0], 0.02),))).figure
    assert figure.title == "Predicted too often."
    assert any(mark.kind == "band" for mark in figure.drawings[0].marks)
    told = audits.slope()
    figure = first_screen(replace(told, views=(audits.path(told.views[0], 0.02),))).figure
    assert "often" not in figure.title


@pytest.mark.slow
def test_of_many_classes_the_worst_are_shown_and_the_others_counted():
    first = first_screen(audits.audit([f"c{k}" for k in range(60)], ()))
    assert first.slices.noun == "Class"
    assert len(first.slices.rows) == 9
    assert first.slices.more == 52
    assert first.slices.rows[0].name.short == "c59"
    assert first.slices.title == "Too low in one class."
    assert "52 more classes" in report.to_html(audits.audit([f"c{k}" for k in range(60)], ()))


def test_the_page_s_script_is_the_one_it_allows():
    text = report.to_html(audits.audit())
    (script,) = re.findall(r"<script>(.*?)</script>", text, re.DOTALL)
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    assert f"script-src 'sha256-{digest}'" in text
    assert "default-src 'none'" in text
    assert "<script" not in report.to_fragment(audits.audit())


def test_a_notebook_shows_the_first_screen():
    audit = audits.binary()
    html = audit._repr_html_()
    assert html == report.to_fragment(audit)
    assert Page(html).text("h2") == audit.headline
    assert not re.search(r"\bid=", html)
    style = html[html.index("<style>") + 7 : html.index("</style>")].strip()
    assert style.startswith(".caltest {")
    depth = 0
    for k, character in enumerate(style):  # one rule, in which all others are
        depth += (character == "{") - (character == "}")
        assert depth > 0 or k < len(".caltest ") or k == len(style) - 1
    assert "Guarantee" not in html


# --- the rest of the page


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"tolerance": 0.02}, "if no prediction were wrong by more than 2 points"),
        ({"correction": "holm"}, "each check has its own, adjusted by “holm”"),
        ({"correction": "holm", "null_distribution": None}, "There is no common null distribution"),
        ({"statistic": float("inf")}, "your labels: ∞"),
        ({"pvalue": 0.02}, "larger than that rank"),
        ({"materiality": 0.03}, "limit 3 points"),
    ],
)
def test_what_is_said_follows_the_audit(changes, sentence):
    assert sentence in Page(report.to_html(audits.audit(**changes))).text()


def test_every_exact_stands_beside_what_it_assumes():
    article, rest = report.to_html(audits.audit()).split("</article>")
    assert "Assumes independent rows and labels that were not used to fit the model" in article
    for section in rest.split("<section")[1:]:
        if "exact" in section.lower():
            assert "ssumes independent rows and labels that were not used to fit the model" in section


def test_worst_views_first_then_the_strongest_evidence():
    made = summarise(audits.audit())
    assert [row.name.short for row in made.views[:3]] == [
        "Class bird",
        "Top class in region = west",
        "Top class",
    ]
    assert [bool(row.side) for row in made.views] == [True] * 3 + [False] * 4
    first = made.views[0]
    assert first.side == "too low"
    assert first.interval.startswith("−")
    assert first.at_least.endswith("too low")
    assert made.views[3].at_least == "not shown"
    assert made.pictures[0].name.short == "Class bird"
    assert len(made.pictures) == 6
    assert [row.of.found for row in made.checks] == sorted(
        (row.of.found for row in made.checks), reverse=True
    )


def test_intervals_are_rounded_outwards_and_no_zero_has_a_sign():
    made = audits.binary()
    view = replace(made.views[0], low=-0.0976, high=-0.0591)
    check = replace(made.checks[0], view=view)
    row = summarise(replace(made, views=(view,), checks=(check,), rests=())).views[0]
    assert row.interval == "−9.8 to −5.9"
    check = replace(made.checks[0], view=view, value=-0.0, expected=(-0.0, 0.03167))
    row = summarise(replace(made, views=(view,), checks=(check,), rests=())).checks[0]
    assert (row.value, row.expected) == ("0", "0 to 0.03167")
    for audit in (made, audits.slope(), audits.rare(), audits.binary(0.0)):
        assert not re.search(r"[−-]0(\.0+)?(?![\d.,])", Page(report.to_html(audit)).text("main"))


def test_rests_tell_what_a_group_explains():
    made = summarise(audits.binary())
    assert len(made.rests) == 12
    assert made.rests[0].of.found
    assert "Larger groups without the smaller ones" in Page(report.to_html(audits.binary())).text()
    assert "Larger groups without" not in Page(report.to_html(audits.slope())).text()


def test_bounds_that_were_not_sought_are_not_called_unshown():
    audit = audits.slope()
    unsought = replace(audit.views[0], at_least_over=None, at_least_under=None)
    without = replace(audit, views=(unsought,), checks=(replace(audit.checks[0], view=unsought),))
    page = Page(report.to_html(without)).text()
    assert page.count("not computed") == 1
    assert "Some predictions, at least, points" not in page
    some = replace(audit, views=(audit.views[0], replace(unsought, lens="top_label")))
    assert summarise(some).views[1].at_least == "–"
    page = Page(report.to_html(some)).text()
    assert page.count("“–”: not computed.") == 1
    assert "Some predictions, at least, points" in page
    assert "not computed" not in Page(report.to_html(audit)).text()


@pytest.mark.parametrize(
    ("lens", "event", "of", "shown"),
    [
        ("top_label", "the top class is right", ("c" * 90, "north"), "north"),
        ("top_label", "the top class is right", ("region", "north" * 20), " = northnorth"),
        ("class:0", f"the label is {'long' * 30!r}", ("c" * 90, "v" * 90), "Class “longl"),
        ("class:0", f"the label is {'long' * 30!r}", ("a", "north"), " in a = north"),
        ("class:0", f"the label is {'long' * 30!r}", None, "Class “longlonglong"),
    ],
)
def test_of_a_long_name_every_part_is_seen(lens, event, of, shown):
    made = audits.audit()
    group = audits.group(of) if of else None
    view = replace(made.views[1], lens=lens, event=event, group=group)
    audit = replace(made, views=(view,), checks=(replace(made.checks[0], view=view),))
    name = summarise(audit).views[0].name
    assert shown in name.short
    assert "…" in name.short
    assert len(name.short) <= 48
    for whole in of or ():
        assert whole in name.full


def test_what_was_skipped_is_said_whole():
    reason = "they are named here in a clause of more than forty-eight characters, so to say"
    what = "1,204 pairs of a class and a group, those with the fewest events"
    audit = replace(audits.audit(), skipped=(auditing.Skipped(what, None, reason),))
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
    assert "In 3 of 3,000 rows the model gave probability 0 to the observed label." in text
    assert "smaller than that rank: an event with predicted probability 0 was observed" in text
    assert "In 3 of 3,000 rows the model gave probability 0" in report.to_markdown(audit)
    size = first_screen(replace(audits.audit(), impossible=3)).size  # of all rows, and last of these
    assert size.endswith("In 3 of 3,000 rows the model gave probability 0 to the observed label.")
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
    assert "in the shaded bands, all marks of all diagrams at once, with 95% probability" in text


@pytest.mark.slow
def test_long_tables_are_cut_and_counted():
    audit = audits.audit([f"c{k}" for k in range(1000)], [f"g{k}" for k in range(300)])
    audit = replace(
        audit, skipped=tuple(auditing.Skipped(f"s{k}", k, "too few rows") for k in range(120))
    )
    page = report.to_html(audit)
    text = Page(page).text()
    assert len(audit.checks) == 3204
    assert "2,904 more checks are not shown here; all are in the JSON report" in text
    assert "1,101 more are in the JSON report ( views )" in text
    assert "70 more are in the JSON report" in text
    assert len(page) < 400_000
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
    view = replace(audit.views[0], group=audits.group(("<b>column</b> | `x`", name)))
    checks = [
        replace(check, view=view, statistic="f<i>\x00") if check.view is audit.views[0] else check
        for check in audit.checks
    ]
    return replace(
        audit,
        checks=tuple(checks),
        views=(view, *audit.views[1:]),
        skipped=tuple(auditing.Skipped(name, 3, f"of {name}") for name in audits.HOSTILE),
        warnings=audits.HOSTILE,
        groups=audits.HOSTILE,
        call="caltest.audit(probs, labels, groups='```\n</code>')",
    )


HIDDEN = "[\x00-\x08\x0b-\x1f\x7f\u202a-\u202e\u2066-\u2069\ufffe\uffff]"


def test_hostile_names_stay_text_in_html(hostile):
    text = report.to_html(
        hostile, title="<h1>&amp;", command="x '</pre><script>'", date="<b>\u202e</b>"
    )
    page = Page(text)
    assert page.count("script") == 1  # its own
    assert page.count("b") == page.count("img") == 0
    assert all(attributes.get("class", "")[:2] == "k " for tag, attributes in page.tags if tag == "i")
    assert page.count("h1") == 1
    assert page.text("h1") == "<h1>&amp;"
    assert "<script>alert('x')</script>" in page.text("main")
    assert "two\\nlines\\r\\nand\\ta tab" in page.text("main")
    assert "\\u202eright to left\\u2066" in page.text("main")
    assert re.search(r"x{3000}", text)
    assert any("x" * 3000 in title for title in page.titles)
    assert not re.search(HIDDEN, text)
    text.encode("utf-8")
    fragment = report.to_fragment(hostile)
    assert Page(fragment).count("script") == 0
    assert not re.search(HIDDEN, fragment)


@pytest.mark.slow
def test_hostile_groups_and_events_stay_text():
    for name in audits.HOSTILE:
        text = report.to_html(audits.binary(columns=(name, f"{name}2"), event=name))
        page = Page(text)
        assert page.count("script") == 1
        assert page.count("b") == page.count("img") == 0
        assert not re.search(HIDDEN, text)
        text.encode("utf-8")


def test_hostile_names_stay_in_their_cell_in_markdown(hostile):
    text = report.to_markdown(hostile, title="a\n# b", command="echo '````'")
    lines = text.split("\n")
    assert lines[0] == "## ◆ Error found: a\\\\n\\# b"
    tables = [line for line in lines if line.startswith("|")]
    assert {len(re.findall(r"(?<!\\)\|", line)) - 1 for line in tables} == {2, 7}
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


def test_a_single_view_without_an_event_has_no_picture_and_no_table_of_slices():
    view = auditing.View("canonical", None, None, 5)
    check = auditing.Check(view, "ecd", "a", float("-inf"), None, 0.5, (0.4, 0.6), 0.5, False)
    audit = replace(
        audits.audit(wrong=False), views=(view,), checks=(check,), pvalue=0.5, groups=(), n_samples=5
    )
    page = Page(report.to_html(audit))
    assert "−∞" in page.text()
    assert "Reliability diagrams" not in page.text()
    assert "How large the errors are" not in page.text()
    first = first_screen(audit)
    assert first.slices is None
    assert first.figure.title.endswith(" simulations gave evidence this strong.")
    assert first_screen(replace(audit, null_distribution=None)).figure is None
    jsonschema.validate(json.loads(report.to_json(audit)), report.schema())
