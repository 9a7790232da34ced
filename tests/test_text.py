"""How numbers, names and ranges are written in sentences."""

import html
import re
from dataclasses import replace
from types import SimpleNamespace

import audits
import pytest
from pages import page as docs_page

from caltest import auditing
from caltest.report import to_html
from caltest.story import Story
from caltest.text import laid_out, paragraph, row, sizes, summaries, vocabulary
from caltest.tolerance import claim

SURE, LESS_SURE = (
    SimpleNamespace(confidence=level, limit=SimpleNamespace(only=None)) for level in (0.95, 0.9)
)
TOP = auditing.View(
    "top_label", "the top class is right", None, 900, predicted=0.91, observed=0.84, low=0.03,
    high=0.11, direction="over",
)  # fmt: skip
NORTH = auditing.View("top_label", "", auditing.Group.of(region_of_the_world="north"), 100)
CROSSED = replace(NORTH, group=auditing.Group.of(region_of_the_world="north", sex="F"))
RISK = auditing.View(
    "canonical",
    "the label is 'readmission'",
    None,
    900,
    predicted=0.02,
    observed=0.01,
    direction="over",
)

WRITTEN = [
    (summaries.at_most, (0.05201,), "5.3"),
    (summaries.at_most, (0.0031,), "0.31"),
    (summaries.at_most, (1.0,), "100"),
    (summaries.at_least, (0.05299,), "5.2"),
    (summaries.at_least, (0.00319,), "0.31"),
    (vocabulary.lens_name, (TOP,), "the top class"),
    (vocabulary.lens_name, (RISK,), "readmission"),
    (vocabulary.lens_name, (auditing.View("class:cat", "the label is 'cat'", None, 100),), "class cat"),
    (vocabulary.lens_name, (auditing.View("class:2", "the label is class 2", None, 100),), "class 2"),
    (vocabulary.lens_name, (auditing.View("canonical", None, None, 100),), "all classes together"),
    (vocabulary.lens_name, (auditing.View("top:2", "the label is among the top 2", None, 100),),
        "the probability that the label is among the top 2"),
    (vocabulary.subject, (TOP,), "the model's confidence in its top class"),
    (vocabulary.subject, (RISK,), "the predicted probability of readmission"),
    (vocabulary.subject, (auditing.View("canonical", None, None, 100),), "the predicted probabilities"),
    (vocabulary.where, (None,), ""),
    (vocabulary.where, (CROSSED.group,), " where region_of_the_world is north and sex is F"),
    (vocabulary.group_name, (None,), "all rows"),
    (vocabulary.group_name, (CROSSED.group,), "region_of_the_world = north, sex = F"),
    (vocabulary.listed, (["cat"],), "cat"),
    (vocabulary.listed, (["cat", "dog", "cat"],), "cat and dog"),
    (vocabulary.listed, (["cat", "dog", "owl", "bee", "ant"],), "cat, dog, owl and 2 more"),
    (vocabulary.listed, (["sex = F", "sex = F, age = old"],), "sex = F; and sex = F, age = old"),
    (sizes.times, (replace(RISK, low=0.005, high=0.012), SURE),
        "between 1.33 and 2.50 times the true rate (95% confidence)"),
    (sizes.times, (replace(RISK, low=0.005, high=0.02), SURE),
        "at least 1.33 times the true rate (95% confidence)"),
    (vocabulary.shown_event, ("re-admitted within_30 days",), "re-admitted within_30 days"),
    (vocabulary.shown_event, ("sepsis? yes",), "“sepsis? yes”"),
    (sizes.too, (TOP, audits.audit()), "about 7 percentage points too high"),
    (sizes.too, (RISK, audits.audit()), "too high: about 2 times the observed rate"),
    (sizes.interval, (TOP, SURE), "between 3.0 and 11.0 points too high (95% confidence)"),
    (sizes.interval, (replace(TOP, low=-0.0312, high=0.002), LESS_SURE),
        "between 3.2 points too low and 0.2 points too high (90% confidence)"),
    (vocabulary.view_name, (NORTH,), "the top class where region_of_the_world is north"),
    (vocabulary.narrow_name, (NORTH, 48), "top class in region_of_the_world = north"),
    (vocabulary.narrow_name, (NORTH, 30), "top class: region_of_… = north"),
    (vocabulary.narrow_name, (NORTH, 16), "top class: north"),
    (vocabulary.narrow_name, (CROSSED, 30), "top class: north, F"),
    (claim, ("the top class is right", "over", 0.02),
        "no predicted probability that the top class is right is more than 2 points too high"),
]  # fmt: skip


@pytest.mark.parametrize(("write", "given", "text"), WRITTEN)
def test_written(write, given, text):
    assert write(*given) == text


def test_lines_are_not_broken_at_hyphens():
    text = " ".join(["held-out"] * 40)
    for lines in (paragraph(text), row("data", text)):
        assert len(lines) > 2
        assert not any(line.endswith("-") for line in lines)


def test_a_page_is_lines_that_obey_nobody():
    lead = dict.fromkeys(("about", "chip", "why", "headline", "size", "brief"), "")
    blocks = [["  x::y", "::error::z"]]
    text = laid_out(Story("found"), [("rows", "a\nb")], blocks, [], ["one\x1b"], **lead)
    assert text == "\n  x::y\n\\x3a:error::z\n\n  rows       a\\nb\n\nNote: one\\x1b"


def test_the_glossary_of_reports_is_that_of_the_site():
    text = docs_page("docs/glossary.md")
    audit = replace(audits.audit(), clusters=30, effective_n=100.0)
    words = re.findall("<dt>(.*)</dt><dd>(.*)</dd>", to_html(audit).partition('id="reading"')[2])
    assert len(words) == 15
    for word, meaning in words:
        assert f"\n## {word}\n\n{html.unescape(meaning)}" in text, word
    without = to_html(audits.binary(tolerance=0.02)).partition('id="reading"')[2]
    assert [word for word, _ in words if f"<dt>{word}</dt>" not in without] == [
        "Full probability vector", "Top class", "Classwise", "Cluster",
        "Weight, effective number of rows",
    ]  # fmt: skip
    assert "if no prediction were wrong by more than 2 points." in without


def test_groups_of_long_names_are_told_apart_by_their_values():
    groups = [auditing.Group.of(**{"age at first visit": "65+", "sex": sex}) for sex in "fm"]
    views = [replace(NORTH, group=group) for group in groups]
    named = [vocabulary.narrow_name(view, 24, rows_alone=True) for view in views]
    assert named == ["65+, f", "65+, m"]
    named = vocabulary.narrow_name(views[0], 60, rows_alone=True)
    assert named == "age at first visit = 65+, sex = f"
