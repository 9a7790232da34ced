"""What an audit says: views, bounds, words and plain data; of hostile input too."""

from __future__ import annotations

import json
from dataclasses import FrozenInstanceError, replace

import numpy as np
import pandas as pd
import pytest
from audited import LIGHT, calibrated, one_bad_group
from support import binomial_limits, labels_from

import caltest
from caltest.auditing import View
from caltest.auditing.engine import bins_of, reliability
from caltest.binning import joint_bands
from caltest.bounds.lower import draws_needed
from caltest.data import sample
from caltest.simulation import tempered
from caltest.text import audit as words
from caltest.text.vocabulary import view_name

# ------------------------------------------------------------------ views


def test_views_say_what_the_data_say():
    probs, labels, group = one_bad_group(1200, 3, 3)
    audit = caltest.audit(probs, labels, groups=group, n_resamples=99, rng=0)
    for view in audit.views:
        rows = slice(None) if view.group is None else group == int(view.group.value)
        assert view.rows == len(labels[rows])
        if view.lens == "canonical":
            assert view.says is view.share is view.reliability is view.over is None
            ecd = caltest.estimate(probs[rows], labels[rows], "ecd")
            assert view.direction == ("over" if ecd > 0 else "under")
            continue
        p = probs[rows].max(axis=1) if view.lens == "top_label" else probs[rows, int(view.lens[6:])]
        y = labels[rows]
        event = y == probs[rows].argmax(axis=1) if view.lens == "top_label" else y == int(view.lens[6:])
        assert view.says == pytest.approx(p.mean())
        assert view.share == pytest.approx(event.mean())
        assert view.direction == ("over" if p.mean() > event.mean() else "under")
    bad = next(v for v in audit.views if v.lens == "top_label" and v.group and v.group.value == "0")
    assert bad.over > 0.05
    assert bad.under == 0.0
    assert [v.group is None for v in audit.views] == sorted(
        (v.group is None for v in audit.views), reverse=True
    )


def test_a_direction_that_is_none():
    probs = np.full((60, 2), 0.5)
    audit = caltest.audit(probs, [0, 1] * 30, **LIGHT)
    assert {view.direction for view in audit.views} == {None}
    assert not audit.rejected


def diagram(view, alpha):
    probs = view.rows.probs
    (band,) = joint_bands([(probs[:, 1], bins_of(probs))], alpha)
    return reliability(view, band)


def test_reliability_by_hand():
    view = sample(np.repeat([0.2, 0.8], 50), [1] * 20 + [0] * 30 + [1] * 50)
    found = diagram(view, 0.05)
    assert found.rows == (50, 50)
    assert found.says == pytest.approx((0.2, 0.8))
    assert found.share == (0.4, 1.0)
    assert found.low[0] < 0.2 < found.high[0] < 0.4
    assert found.low[1] < 0.8 < found.high[1] < 1.0


@pytest.mark.level
def test_reliability_holds_all_bins_at_once():
    repetitions, outside = 600, 0
    rng = np.random.default_rng(0)
    p = rng.random(200)
    for _ in range(repetitions):
        found = diagram(sample(p, (rng.random(200) < p).astype(int)), 0.1)
        share, low, high = (np.array(each) for each in (found.share, found.low, found.high))
        outside += ((share < low) | (share > high)).any()
    assert len(found.rows) == 10
    low, high = binomial_limits(repetitions, 0.1)
    assert 0.25 * low <= outside / repetitions <= high


@pytest.mark.slow
def test_bounds_are_those_of_the_family():
    probs, labels, group = one_bad_group(600, 3, 3)
    small = caltest.audit(probs, labels, groups=group, n_resamples=99, rng=0)
    bounded = [view for view in small.views if view.over is not None]
    assert len(bounded) == 1 + 3 + 4
    other = caltest.audit(probs, labels, groups=group, statistics="ecd", n_resamples=99, rng=0)
    assert {(v.lens, v.group, v.over, v.under) for v in other.views} == {
        (v.lens, v.group, v.over, v.under) for v in small.views
    }
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
        wrong += any(bound for view in audit.views for bound in (view.over, view.under))
    assert wrong / repetitions <= binomial_limits(repetitions, 0.2)[1]


# ------------------------------------------------------------------ hostile input


def test_hostile_groups():
    probs, labels = calibrated(900, 3, 8)
    names = ["<b>&\"'", "👩‍💻 é", "\x00\x1b]0;x", None, float("nan"), "a" * 500, 3, True, "(missing)"]
    cells = [names[k % 9] for k in range(900)]
    audit = caltest.audit(
        probs, labels, groups={"<col>\n": cells, "lone": ["x"] + ["y"] * 899}, **LIGHT
    )
    values = {view.group.value for view in audit.views if view.group and "col" in view.group.column}
    assert values == {*names[:3], "((missing))", *map(str, names[5:])}
    json.dumps(audit.to_dict(draws=True), allow_nan=False)
    text = str(audit)
    assert "\x1b" not in text
    assert "\x00" not in text
    assert "in '<col>\\n' = \\x00\\x1b]0;x" in view_name(
        next(view for view in audit.views if view.group and "\x00" in view.group.value)
    )
    assert ("lone = x", 1) in {(each.what, each.rows) for each in audit.skipped}


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
    assert sum(view.over is not None for view in audit.views) == 31
    assert len(json.dumps(audit.to_dict())) < 300_000
    assert len(str(audit).splitlines()) < 60


def test_one_class_only_and_what_is_impossible():
    labels = [0] * 100
    audit = caltest.audit(np.tile([0.9, 0.1], (100, 1)), labels, groups=["a", "b"] * 50, **LIGHT)
    assert audit.rejected
    certain = caltest.audit(np.tile([1.0, 0.0, 0.0], (100, 1)), labels, **LIGHT)
    assert certain.pvalue == 1.0
    never = caltest.audit(np.tile([1.0, 0.0, 0.0], (100, 1)), [0] * 99 + [1], **LIGHT)
    assert never.pvalue == 0.01
    assert "had probability 0" in never.warnings[0]
    plain = json.loads(json.dumps(never.to_dict(), allow_nan=False))
    assert {c["value"] for c in plain["checks"] if c["statistic"] == "ecd"} == {"inf"}


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
    assert len(audit.checks) == 4 * 3


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


def test_plain_data(wrong):
    data = wrong.to_dict()
    assert json.loads(json.dumps(data, allow_nan=False)) == data
    assert set(data) == {
        "caltest", "versions", "pvalue", "alpha", "rejected", "tolerance", "correction", "confidence",
        "n_samples", "n_classes", "classes", "lenses", "groups", "n_resamples", "seed", "statistic",
        "call", "warnings", "impossible", "verdict", "views", "checks", "skipped",
    }  # fmt: skip
    assert data["classes"] == ["cat", "dog", "<eel>"]
    assert data["groups"] == ["region", "x"]
    for check, plain in zip(wrong.checks, data["checks"], strict=True):
        view = data["views"][plain["view"]]
        assert view["lens"] == check.view.lens
        assert view["group"] == (
            None if check.view.group is None else {"column": "region", "value": check.view.group.value}
        )
        assert plain["adjusted"] == check.adjusted
    assert "null_distribution" not in data
    assert len(wrong.to_dict(draws=True)["null_distribution"]) == 99


def test_frame(wrong):
    frame = wrong.to_frame()
    assert len(frame) == len(wrong.checks)
    assert frame.columns.tolist() == [
        "lens", "event", "column", "group", "rows", "statistic", "value", "expected_low",
        "expected_high", "pvalue", "pvalue_low", "pvalue_high", "adjusted", "found", "direction",
        "says", "share", "over", "under",
    ]  # fmt: skip
    assert frame["found"].sum() == len(wrong.found)
    assert frame["adjusted"].is_monotonic_increasing


def test_frozen(wrong):
    with pytest.raises(FrozenInstanceError):
        wrong.pvalue = 1.0
    assert not wrong.null_distribution.flags.writeable


def test_words(wrong):
    text = str(wrong)
    assert words.verdict(wrong).startswith("The model is not calibrated: ")
    assert words.verdict(wrong) in " ".join(text.split())
    assert "the top label in region = 0" in text
    assert "over-confident" in text
    assert "column 'x': all rows have the one value 'y'" in " ".join(text.split())
    worst = words.worst(wrong)
    assert len({id(check.view) for check in worst}) == len(worst) <= words.MOST_WORST
    assert all(check.found for check in worst)
    advice = words.advice(wrong)
    assert advice[0].startswith("On all rows the model is over-confident: recalibrate the model")
    assert all(line == line.rstrip() for line in text.splitlines())


def test_words_of_a_group_that_stands_apart(wrong):
    """A group that errs as all rows do needs no advice of its own; one that errs more does."""
    group = "Look at the data of region = 0: labels"
    assert any(text.startswith(group) for text in words.advice(wrong))
    alone = replace(wrong, checks=tuple(c for c in wrong.checks if c.view.group))
    assert words.advice(alone)[0].startswith(group)
    like_all = View("top_label", "the top class is right", None, 100, 0.9, 0.7, "over")
    same = replace(like_all, group=caltest.auditing.Group("region", "a"), rows=50, share=0.72)
    other = replace(same, share=0.4)
    checks = [replace(wrong.checks[0], view=view, found=True) for view in (like_all, same, other)]
    assert not any("region = a" in text for text in words.advice(replace(wrong, checks=(*checks[:2],))))
    assert any("region = a" in text for text in words.advice(replace(wrong, checks=(*checks,))))


def test_words_of_a_finding():
    view = View("class:0", "the label is 'cat'", None, 1000, 0.10, 0.16, "under")
    check = caltest.auditing.Check(view, "ks", "x", 0.1, None, 0.001, (0.0, 0.01), 0.01, True)
    assert words.finding(check) == (
        "Class 'cat' (1,000 rows): it says 10% on average, and 16% came true; too little on average "
        "('ks', adjusted p = 0.01)."
    )
    noise = words.finding(replace(check, view=replace(view, share=0.11)))
    assert "and 11.0% came true; these means are not told apart ('ks'" in noise
    for value, told in ((0.02, ", but it is too sure"), (-0.02, ", but it is too timid"), (0.0, "")):
        entropic = replace(check, view=replace(view, share=0.11), statistic="ecd", value=value)
        assert f"these means are not told apart{told} ('ecd'" in words.finding(entropic)
    assert "too sure" not in words.finding(replace(entropic, value=0.02, found=False))
    whole = View("canonical", None, None, 1, direction="over")
    assert words.finding(replace(check, view=whole, statistic="ecd")).startswith(
        "The full probabilities (1 row): over-confident on average ("
    )
    for other in (
        replace(check, view=whole),
        replace(check, view=whole, statistic="ecd", found=False),
        replace(check, view=replace(whole, direction=None), statistic="ecd"),
    ):
        assert "(1 row): wrong, which way this check does not say (" in words.finding(other)


def test_words_when_nothing_is_found():
    probs, labels = calibrated(200, 3, 11)
    audit = caltest.audit(probs, labels, groups=["a", "b"] * 100, rng=0, n_resamples=199)
    assert not audit.rejected
    text = " ".join(str(audit).split())
    assert "No miscalibration was found: the smallest adjusted p-value" in text
    assert "This is no proof of calibration" in text
    hidden = words.hidden(audit, next(v for v in audit.views if v.lens == "top_label"))
    assert 0.05 < hidden < 0.25


def test_hidden_is_about_right():
    """An error of that size on average is found in about four of five cases, by a z test."""
    view = View("top_label", "the top class is right", None, 400, 0.8, 0.8)
    audit = caltest.audit(
        *calibrated(60, 3, 0), lenses="top_label", statistics="ecd", n_resamples=39, rng=0
    )
    size = words.hidden(audit, view)
    sd = np.sqrt(0.8 * 0.2 / 400)
    z = np.random.default_rng(0).normal(size / sd, 1.0, 100_000)
    assert (np.abs(z) > 1.959964).mean() == pytest.approx(0.8, abs=0.01)
