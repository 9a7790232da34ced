"""What is said and drawn of slices that nobody named: headline, limit, advice, and every report."""

import json
from dataclasses import replace
from functools import cache

import jsonschema
import numpy as np
import pytest

import caltest
from caltest import auditing

NAMES = ("age", "region", *(f"x{k}" for k in range(18)))
CORNER = {"age": ("over", "67"), "region": ("=", "north")}


@cache
def audited(n=3_000, limit=0.05):
    """An audit of calibrated predictions in two groups."""
    rng = np.random.default_rng(1)
    p = rng.uniform(0.3, 0.7, n)
    labels = rng.random(n) < p
    sex = rng.choice(["F", "M"], n)
    return caltest.audit(
        p, labels, groups={"sex": sex}, materiality=limit, event="churn", n_resamples=99, rng=0
    )


def group(**conditions):
    named = auditing.Condition
    each = (named(column, value, relation) for column, (relation, value) in conditions.items())
    return auditing.Group(tuple(each))


def a_slice(audit, low, high, conditions=CORNER, rows=400, pvalue=0.01, **more):
    """A slice whose mean error lies between two ends."""
    view, side = audit.views[0], "over" if low > 0.0 else "under" if high < 0.0 else None
    limit, error = audit.materiality, (low + high) / 2
    inside = None if limit is None else -limit <= low and high <= limit
    return auditing.Slice(
        view.lens, view.event, group(**conditions), rows, side, predicted=0.4, observed=0.4 - error,
        low=low, high=high, inside=inside, rows_needed=None if inside else rows,
        adjusted_pvalue=pvalue, **more,
    )  # fmt: skip


def searched(*slices, audit=None, **more):
    """The audit, as if a search by features had found these slices."""
    audit = audit or audited()
    if slices:
        audit = replace(audit, pvalue=0.01)
    part = auditing.Bin
    bins = (
        part("at most 67", 2_000, 0.4, 0.41, -0.08, 0.06),
        part("over 67", 1_000, 0.4, 0.5, -0.2, -0.01),
    )
    by_feature = (auditing.ByFeature("age", "canonical", bins),) if slices else ()
    facts = {"features": NAMES, "n_slices": 16_090, "by_feature": by_feature, **more}
    return replace(audit, slices=slices, **facts)


def one_line(text):
    return " ".join(str(text).split())


@pytest.mark.parametrize(
    ("conditions", "name", "clause"),
    [
        ({"sex": ("=", "F"), "age": ("=", "old")}, "sex = F, age = old", "sex is F and age is old"),
        ({"age": ("at most", "30")}, "age at most 30", "age is at most 30"),
        (CORNER, "age over 67 and region = north", "age is over 67 and region is north"),
        (
            {"age": ("over", "31 and at most 45")},
            "age over 31 and at most 45",
            "age is over 31 and at most 45",
        ),
    ],
)
def test_conditions_have_words(conditions, name, clause):
    found = group(**conditions)
    assert found.label == found.words == name
    assert " and ".join(each.clause for each in found.conditions) == clause


def test_a_slice_leads_and_is_to_be_confirmed():
    audit = audited()
    audit = searched(a_slice(audit, -0.3, -0.1), at_least_by_features=0.031)
    assert (audit.verdict, audit.fails(), audit.worst.rule) == (
        "material", True, "age over 67 and region = north",
    )  # fmt: skip
    assert audit.headline == (
        "The predicted probability of churn is about 20 percentage points too low where age is over 67 "
        "and region is north."
    )
    text = one_line(audit)
    assert "predictions are off by at least 3.1 points given the features (95% confidence)" in text
    assert "with age over 67 and region = north named as a group (groups)" in text
    assert "look at the data of that slice" in text
    assert "features: age, region and 18 more; 16,090 slices searched" in text
    assert "features known before the outcome" in text
    assert len(str(audit).splitlines()) <= 40


def test_a_slice_is_part_of_all_rows_and_of_larger_slices():
    audit = audited()
    wide = a_slice(audit, -0.12, -0.06, {"age": ("over", "67")}, 900)
    audit = searched(a_slice(audit, -0.3, -0.1), wide)
    assert "9 percentage points too low where age is over 67, and 20 points" in audit.headline
    assert audit.story.whole.of is audit.slices[1]
    assert not audit.story.explains
    assert not audit.story.alone


@pytest.mark.parametrize(
    ("ends", "verdict", "place"),
    [
        ((-0.03, -0.01), "within", "within"),
        ((-0.06, -0.01), "undecided", "close"),
        ((-0.12, 0.01), "undecided", "estimated"),
        ((-0.12, -0.01), "likely", "likely"),
        ((-0.12, -0.06), "material", "beyond"),
    ],
)
def test_a_slice_counts_against_the_limit(ends, verdict, place):
    audit = audited(60_000)
    assert audit.verdict == "within"
    told = searched(a_slice(audit, *ends), audit=audit)
    assert (told.verdict, told.story.mark(told.slices[0]).place) == (verdict, place)


def test_within_says_what_it_does_not_vouch_for():
    audit, vouched = audited(60_000), "could still be off by more"
    assert vouched not in one_line(audit)
    told = one_line(searched(audit=audit))
    assert "16,090 slices by features were searched; one that nobody named could still" in told


def test_a_slice_without_direction_is_wrong_for_some_predictions():
    audit = audited(limit=None)
    told = searched(a_slice(audit, -0.12, 0.01), audit=audit)
    assert "is wrong for some predictions where age is over 67 and region is north" in told.headline
    ridge = replace(
        audit.checks[0], statistic="feature_ridge", view=audit.views[0], adjusted=0.01, found=True
    )
    told = searched(audit=replace(audit, pvalue=0.01, checks=(ridge, *audit.checks[1:])))
    assert "wrong for some predictions, depending on the features; on average" in told.headline


def test_reports_show_slices_and_features():
    audit = audited()
    first, other = (
        a_slice(audit, -0.3, -0.1),
        a_slice(audit, -0.2, -0.1, {"tenure": ("over", "2")}, shown=False),
    )
    audit = searched(first, other)
    data = json.loads(caltest.report.to_json(audit))
    jsonschema.validate(data, caltest.report.schema())
    assert [each["shown"] for each in data["slices"]] == [True, False]
    assert data["slices"][0]["rule"] == "age over 67 and region = north"
    assert data["slices"][0]["error"] == pytest.approx(-0.2)
    assert (data["worst"], data["story"]["subject"]["slice"]) == (None, 0)
    assert data["story"]["subject"]["view"] is None
    page = caltest.report.to_html(audit)
    assert "Where, by feature" in page
    assert "age: too low in one of two bins." in page
    assert "found by features" in page
    for text in (page, caltest.report.to_markdown(audit)):
        assert "So judge slices by a limit, not by p." in one_line(text)
        assert "tenure over" not in text.split("Reproduce this")[0]
    assert caltest.report.to_junit(audit).count("slice by features") == 1


def test_a_search_that_found_nothing_is_told():
    assert "16,090 slices searched; none was found." in one_line(caltest.report.to_html(searched()))


def test_pictures_of_slices_are_drawn():
    pytest.importorskip("matplotlib")
    audit = audited()
    titles = [ax.get_title(loc="left") for ax in searched(a_slice(audit, -0.3, -0.1)).plot().axes_]
    assert titles == ["Too low in one slice.", "age: too low in one of two bins."]
