"""What an audit says: views, bounds, words and plain data; of hostile input too."""

import json
from dataclasses import FrozenInstanceError, replace

import numpy as np
import pandas as pd
import pytest
from audited import LIGHT, calibrated, one_bad_group
from support import binomial_limits, labels_from

import caltest
from caltest import auditing
from caltest.auditing.diagrams import bins_of, reliability
from caltest.auditing.story import in_order
from caltest.binning import joint_bands
from caltest.bounds.lower import draws_needed
from caltest.data import sample
from caltest.simulation import tempered
from caltest.text import audit as words
from caltest.text.advice import advice
from caltest.text.vocabulary import view_name

# ------------------------------------------------------------------ views


@pytest.mark.slow
def test_views_say_what_the_data_say():
    probs, labels, group = one_bad_group(1200, 3, 3)
    audit = caltest.audit(probs, labels, groups=group, n_resamples=99, rng=0)
    for view in audit.views:
        rows = slice(None) if view.group is None else group == int(view.group.value)
        assert view.rows == len(labels[rows])
        if view.lens == "canonical":
            assert view.predicted is view.observed is view.low is view.reliability is None
            assert view.at_least_over is view.direction is view.binned_error is None
            assert view.parts == ()
            continue
        p = probs[rows].max(axis=1) if view.lens == "top_label" else probs[rows, int(view.lens[6:])]
        y = labels[rows]
        event = y == probs[rows].argmax(axis=1) if view.lens == "top_label" else y == int(view.lens[6:])
        assert view.predicted == pytest.approx(p.mean())
        assert view.observed == pytest.approx(event.mean())
        assert view.error == pytest.approx(p.mean() - event.mean())
        assert view.low < view.error < view.high
        assert view.direction == ("over" if view.low > 0 else "under" if view.high < 0 else None)
        assert view.class_index == (None if view.lens == "top_label" else int(view.lens[6:]))
        assert {part.of for part in view.parts} == ({10, 2} if view.group is None else {5})
        assert view.adjusted_pvalue == min(c.adjusted for c in audit.checks if c.view is view)
    bad = next(v for v in audit.views if v.lens == "top_label" and v.group and v.group.value == "0")
    assert bad.direction == bad.shape == "over"
    assert bad.at_least_over > 0.05
    assert bad.at_least_under == 0.0
    assert audit.worst is bad
    assert [v.group is None for v in audit.views] == sorted(
        (v.group is None for v in audit.views), reverse=True
    )


def test_a_direction_that_is_none():
    audit = caltest.audit(np.full((60, 2), 0.5), [0, 1] * 30, **LIGHT)
    assert {view.direction for view in audit.views} == {None}
    assert not audit.rejected


def diagram(view, alpha):
    probs = view.rows.probs
    (band,) = joint_bands([(probs[:, 1], bins_of(probs))], alpha)
    return reliability(view, band)


def test_reliability_by_hand():
    found = diagram(sample(np.repeat([0.2, 0.8], 50), [1] * 20 + [0] * 30 + [1] * 50), 0.05)
    assert found.rows == (50, 50)
    assert found.predicted == pytest.approx((0.2, 0.8))
    assert found.observed == (0.4, 1.0)
    assert found.low[0] < 0.2 < found.high[0] < 0.4
    assert found.low[1] < 0.8 < found.high[1] < 1.0


@pytest.mark.level
def test_reliability_holds_all_bins_at_once():
    repetitions, outside = 600, 0
    rng = np.random.default_rng(0)
    p = rng.random(200)
    for _ in range(repetitions):
        found = diagram(sample(p, (rng.random(200) < p).astype(int)), 0.1)
        observed, low, high = (np.array(each) for each in (found.observed, found.low, found.high))
        outside += ((observed < low) | (observed > high)).any()
    assert len(found.rows) == 10
    low, high = binomial_limits(repetitions, 0.1)
    assert 0.25 * low <= outside / repetitions <= high


@pytest.mark.slow
def test_bounds_are_those_of_the_family():
    probs, labels, group = one_bad_group(600, 3, 3)
    small = caltest.audit(probs, labels, groups=group, n_resamples=99, rng=0)
    bounded = [view for view in small.views if view.at_least_over is not None]
    assert len(bounded) == 1 + 3 + 4
    other = caltest.audit(probs, labels, groups=group, statistics="ecd", n_resamples=99, rng=0)
    found = {(v.lens, v.group, v.at_least_over, v.at_least_under) for v in other.views}
    assert found == {(v.lens, v.group, v.at_least_over, v.at_least_under) for v in small.views}
    assert draws_needed(0.05 / 16) == 319
    assert all(view.reliability is not None for view in bounded)
    assert small.confidence == 0.95


@pytest.mark.level
def test_bounds_fail_no_more_often_than_said():
    """Bounds of all views at once, calibrated: any above 0 is false."""
    repetitions, wrong = 60, 0
    for seed in range(repetitions):
        data = tempered(300, np.ones(3), temperature=1.0, rng=seed)
        audit = caltest.audit(
            data.probs,
            data.labels,
            groups=np.arange(300) % 2,
            statistics="ecd",
            alpha=0.2,
            n_resamples=39,
            rng=seed,
        )
        wrong += any(
            bound for view in audit.views for bound in (view.at_least_over, view.at_least_under)
        )
    assert wrong / repetitions <= binomial_limits(repetitions, 0.2)[1]


# ------------------------------------------------------------------ hostile input


def test_hostile_groups():
    probs, labels = calibrated(900, 3, 8)
    names = ["<b>&\"'", "👩‍💻 é", "\x00\x1b]0;x", None, float("nan"), "a" * 500, 3, True, "(missing)"]
    cells = [names[k % 9] for k in range(900)]
    audit = caltest.audit(
        probs, labels, groups={"<col>\n": cells, "lone": ["x"] + ["y"] * 899}, **LIGHT
    )
    groups = [view.group for view in audit.views if view.group]
    values = {each.value for each in groups if each.column == "<col>\n"}
    assert values == {*names[:3], "((missing))", *map(str, names[5:])}
    crossed = {each for each in groups if len(each.conditions) == 2}
    assert crossed == {
        auditing.Group.of(**{"<col>\n": names[0], "lone": "y"})
    }  # the others have all its rows
    json.dumps(audit.to_dict(draws=True), allow_nan=False)
    text = str(audit)
    assert "\x1b" not in text
    assert "\x00" not in text
    assert "where '<col>\\n' is \\x00\\x1b]0;x" in view_name(
        next(view for view in audit.views if view.group and "\x00" in view.group.value)
    )
    assert ("lone = x", 1) in {(each.what, each.rows) for each in audit.skipped}


@pytest.mark.slow
def test_three_hundred_groups():
    probs, labels = calibrated(3000, 3, 9)
    group = [f"g{k % 300}" for k in range(3000)]
    audit = caltest.audit(
        probs,
        labels,
        groups=group,
        min_rows=10,
        statistics="ecd",
        lenses="top_label",
        n_resamples=99,
        rng=0,
    )
    assert len(audit.checks) == 301
    assert sum(view.at_least_over is not None for view in audit.views) == 31
    assert len(json.dumps(audit.to_dict())) < 370_000
    assert len(str(audit).splitlines()) < 60


def test_one_class_only_and_what_is_impossible():
    labels = [0] * 100
    audit = caltest.audit(np.tile([0.9, 0.1], (100, 1)), labels, groups=["a", "b"] * 50, **LIGHT)
    assert audit.rejected
    assert caltest.audit(np.tile([1.0, 0.0, 0.0], (100, 1)), labels, **LIGHT).pvalue == 1.0
    never = caltest.audit(np.tile([1.0, 0.0, 0.0], (100, 1)), [0] * 99 + [1], **LIGHT)
    assert never.pvalue == 0.01
    assert "had probability 0" in never.warnings[0]
    plain = json.loads(json.dumps(never.to_dict(), allow_nan=False))
    assert {c["value"] for c in plain["checks"] if c["statistic"] == "ecd"} == {"inf"}


@pytest.mark.slow
def test_a_thousand_classes():
    rng = np.random.default_rng(0)
    probs = rng.dirichlet(np.full(1000, 0.05), 300)
    audit = caltest.audit(
        probs,
        labels_from(probs, rng),
        groups=["a", "b"] * 150,
        **{**LIGHT, "lenses": ("canonical", "top_label", "classwise")},
    )
    assert audit.n_classes == 1000
    assert audit.skipped
    assert len(audit.checks) == (2 + 3) * 3


# ------------------------------------------------------------------ the result


@pytest.fixture(scope="module")
def wrong():
    probs, labels, group = one_bad_group(1500, 3, 3, t=0.3)
    frame = pd.DataFrame(probs, columns=["cat", "dog", "<eel>"])
    names = np.array(["cat", "dog", "<eel>"])[labels]
    return caltest.audit(
        frame, names, groups=pd.DataFrame({"region": group, "x": "y"}), alpha=0.1, n_resamples=99, rng=0
    )


@pytest.mark.slow
def test_the_call_repeats_it(wrong):
    assert wrong.call == (
        "caltest.audit(probs, labels, groups=groups[['region', 'x']], alpha=0.1, n_resamples=99, rng=0)"
    )
    probs, labels, group = one_bad_group(300, 3, 3, t=0.3)
    first = caltest.audit(
        probs, labels, groups=group, lenses=["top_label"], statistics=["ks", "ecd"], n_resamples=99
    )
    again = eval(first.call, {"caltest": caltest, "probs": probs, "labels": labels, "groups": group})
    assert again.to_dict(draws=True) == first.to_dict(draws=True)


@pytest.mark.slow
def test_plain_data(wrong):
    data = wrong.to_dict()
    assert json.loads(json.dumps(data, allow_nan=False)) == data
    assert set(data) == {
        "caltest", "versions", "verdict", "headline", "pvalue", "alpha", "rejected", "materiality",
        "sides", "set_sizes", "described",
        "materiality_ratio", "at_most", "tolerance", "rounding", "unseen", "correction", "confidence",
        "n_samples", "n_classes", "classes", "event", "about", "lenses", "groups", "n_checks",
        "n_resamples", "seed", "statistic", "call", "warnings", "premises", "impossible", "clusters",
        "effective_n", "sampled", "worst", "views", "checks", "rests",
        "skipped", "sensitivity", "remedies", "usual", "units", "times", "rows_needed",
        "guaranteed", "ends", "could_miss", "posterior", "time_unit", "functional", "unit", "story",
        "features", "slices", "by_feature", "n_slices", "at_least_by_features",
    }  # fmt: skip
    assert data["classes"] == ["cat", "dog", "<eel>"]
    assert data["groups"] == ["region", "x"]
    for check, plain in zip(wrong.checks, data["checks"], strict=True):
        view = data["views"][plain["view"]]
        assert view["lens"] == check.view.lens
        group = check.view.group
        condition = {"column": "region", "value": group.value, "relation": "="} if group else None
        assert view["group"] == ({"conditions": [condition]} if group else None)
        assert view["error"] == check.view.error
        assert plain["adjusted"] == check.adjusted
    worst = data["views"][data["worst"]]
    assert (worst["lens"], worst["direction"]) == (wrong.worst.lens, wrong.worst.direction)
    assert [part["error"] for part in worst["parts"]] == [part.error for part in wrong.worst.parts]
    assert [rest["error"] for rest in data["rests"]] == [rest.error for rest in wrong.rests]
    assert [each["chosen"] for each in data["remedies"]].count(True) == 1
    assert [each["after"] for each in data["remedies"]] == [each.after for each in wrong.remedies]
    assert data["usual"] == vars(wrong.usual)
    assert "null_distribution" not in data
    assert len(wrong.to_dict(draws=True)["null_distribution"]) == 99


def test_frame(wrong):
    frame = wrong.to_frame()
    assert len(frame) == len(wrong.checks)
    assert frame.columns.tolist() == [
        "lens", "event", "column", "group", "rows", "statistic", "value", "expected_low",
        "expected_high", "pvalue", "pvalue_low", "pvalue_high", "adjusted", "found", "predicted",
        "observed", "error", "low", "high", "direction", "shape", "at_least_over", "at_least_under",
        "own_low", "own_high",
    ]  # fmt: skip
    assert frame["found"].sum() == len(wrong.found)
    assert frame["adjusted"].is_monotonic_increasing


def test_frozen(wrong):
    with pytest.raises(FrozenInstanceError):
        wrong.pvalue = 1.0
    assert not wrong.null_distribution.flags.writeable


def test_words(wrong):
    text = " ".join(str(wrong).split())
    assert wrong.verdict == "found"
    assert wrong.headline == wrong.headline
    assert wrong.headline in text
    assert wrong.headline.startswith("The model's confidence in its top class is about ")
    assert wrong.headline.endswith(" too high overall, and 19 points too high where region is 0.")
    assert text.startswith("Error found, no limit set. The model")
    assert "column 'x': all rows have the one value 'y'" in text
    first = in_order(wrong)
    assert first[0] is wrong.worst
    named = [each.of for each in wrong.story.named]
    assert first[: len(named)] == named
    assert advice(wrong)[0] == (
        "Decide how large an average error matters to you, and set that as the limit "
        "(materiality). If this error matters, do not rely on these probabilities, least of all where "
        "region is 0, until they are corrected."
    )
    assert "p-values" not in text.partition("What to do next")[2].partition("Adjusted")[0]
    assert all(line == line.rstrip() for line in str(wrong).splitlines())


def test_words_of_a_finding(wrong):
    ends = {"low": -0.085, "high": -0.036, "direction": "under"}
    view = auditing.View(
        "class:0", "the label is 'cat'", None, 1000, predicted=0.10, observed=0.16, **ends
    )
    check = auditing.Check(view, "ks", "x", 0.1, None, 0.001, (0.0, 0.01), 0.01, True)
    assert words.finding(check, wrong) == (
        "Class cat (1,000 rows): predicted 10.0%, observed 16.0%, between 3.6 and 8.5 points too low "
        "(90% confidence) ('ks', adjusted p = 0.01)."
    )
    noise = replace(view, observed=0.11, low=-0.035, high=0.014, direction=None)
    assert words.finding(replace(check, view=noise), wrong) == (
        "Class cat (1,000 rows): predicted 10.0%, observed 11.0%, between 3.5 points too low and "
        "1.4 points too high (90% confidence) ('ks', adjusted p = 0.01)."
    )
    whole = auditing.View("canonical", None, None, 1)
    for shape, told in (
        ("over", "overconfident"),
        ("under", "underconfident"),
        (None, "wrong, in a direction that this check does not show"),
    ):
        text = words.finding(replace(check, view=replace(whole, shape=shape)), wrong)
        assert text == f"All classes together (1 row): {told} ('ks', adjusted p = 0.01)."


def test_words_when_nothing_is_found():
    probs, labels = calibrated(200, 3, 11)
    audit = caltest.audit(probs, labels, groups=["a", "b"] * 100, rng=0, n_resamples=199)
    assert not audit.rejected
    assert (audit.verdict, audit.headline, audit.worst) == ("not found", "No error was found.", None)
    text = " ".join(str(audit).split())
    assert text.startswith("No error found, which does not prove calibration. ")
    assert audit.sensitivity.power == 0.8
    assert 0.05 < audit.sensitivity.error < 0.25
    assert "an audit like this would find it 4 times in 5" in text
    assert audit.at_most == max(
        max(-each.low, each.high) for view in audit.views if view.event for each in (view, *view.parts)
    )


def test_what_is_told_of_a_group():
    group = auditing.Group((auditing.Condition("sex", "F"), auditing.Condition("age", "65 and over")))
    assert auditing.Group.of(sex="F", age="65 and over") == group
    assert (group.column, group.value) == ("sex × age", "F × 65 and over")
    assert group.label == "sex = F, age = 65 and over"
    assert group.parents() == (auditing.Group.of(age="65 and over"), auditing.Group.of(sex="F"))
    assert auditing.Group.of(sex="F").parents() == (None,)
    rest = auditing.Rest(
        "canonical", group, group.parents()[0], 100, False, predicted=0.25, observed=0.125
    )
    assert rest.error == 0.125
