"""What an audit says does not contradict itself, claims no more than is shown, and stays readable."""

from __future__ import annotations

import json
import re
from dataclasses import replace

import numpy as np
import pytest
from audited import LIGHT, calibrated, one_bad_group
from support import binomial_limits, dirichlet, labels_from

import caltest
from caltest import InputError
from caltest.auditing import Group, View, engine
from caltest.auditing.engine import bins_of
from caltest.pvalues import CORRECTIONS
from caltest.text import audit as words
from caltest.text.vocabulary import group_name, narrow_name, view_name


@pytest.fixture(scope="module")
def wrong():
    probs, labels, group = one_bad_group(1500, 3, 3, t=0.3)
    return caltest.audit(probs, labels, groups={"region": group}, n_resamples=99, rng=0)


@pytest.fixture(scope="module")
def right():
    return caltest.audit(*calibrated(200, 3, 11), groups=["a", "b"] * 100, rng=0, n_resamples=199)


# ------------------------------------------------------------------ bounds agree with checks


def test_bounds_without_a_finding_are_lowered_to_nothing(monkeypatch):
    """Bounds and checks are different tests: here every bound says something."""
    monkeypatch.setattr(engine, "bounds", lambda _, __, looks, *___: dict.fromkeys(looks, (0.1, 0.2)))
    probs, labels, group = one_bad_group(1500, 3, 3, t=0.3)
    audit = caltest.audit(probs, labels, groups=group, n_resamples=99, rng=0)
    found = {check.view.key for check in audit.found}
    bounded = [view for view in audit.views if view.over is not None]
    assert {view.key in found for view in bounded} == {True, False}
    for view in bounded:
        assert (view.over, view.under) == ((0.1, 0.2) if view.key in found else (0.0, 0.0))
    none = caltest.audit(*calibrated(300, 3, 0), n_resamples=99, rng=0)
    assert not none.rejected
    assert {view.over for view in none.views} == {None, 0.0}
    assert "at least" not in str(none).replace("With at least", "")


# ------------------------------------------------------------------ bands


@pytest.mark.level
def test_no_diagram_of_a_calibrated_model_shows_a_mark_outside(monkeypatch):
    """All views of one probability are drawn; the chance that any shows a mark outside is alpha."""
    monkeypatch.setattr(
        engine, "bounded_looks", lambda looks, _: ([look for look in looks if look.event], 0)
    )
    monkeypatch.setattr(engine, "bounds", lambda _, __, looks, *___: dict.fromkeys(looks, (0.0, 0.0)))
    repetitions, outside = 120, 0
    for seed in range(repetitions):
        probs = dirichlet(240, 3, seed)
        audit = caltest.audit(
            probs,
            labels_from(probs, np.random.default_rng(seed)),
            groups=np.arange(240) % 4,
            statistics="ecd",
            lenses=("top_label", "classwise"),
            alpha=0.3,
            n_resamples=19,
            rng=seed,
        )
        shown = [view.reliability for view in audit.views]
        assert len(shown) == 4 * 5
        outside += any(
            ((np.array(r.share) < r.low) | (np.array(r.share) > r.high)).any() for r in shown
        )
    low, high = binomial_limits(repetitions, 0.3)
    assert 0.2 * low <= outside / repetitions <= high


@pytest.mark.slow
@pytest.mark.parametrize("most", [10**9, 0])
def test_bands_are_of_all_views_that_could_be_drawn(monkeypatch, most):
    """What all bands leave out, drawn or not, adds up to alpha at most."""
    monkeypatch.setattr(engine, "_MOST_IN_BANDS", most)
    monkeypatch.setattr(engine, "_MOST_PICTURED", 0)
    seen, make = [], engine._bands

    def heard(source, looks, always, chosen, level):
        assert len(always) == 8
        bands = make(source, looks, always, looks, level)
        seen.extend((source.at(look).probs, band) for look, band in bands.items())
        return make(source, looks, always, chosen, level)

    monkeypatch.setattr(engine, "_bands", heard)
    probs, labels, group = one_bad_group(600, 3, 3)
    caltest.audit(probs, labels, groups=group, n_resamples=99, rng=0)
    assert len(seen) == 4 * 5
    outside = 0.0
    for pair, band in seen:
        cells = bins_of(pair)
        for b, (low, high) in enumerate(zip(band.low, band.high, strict=True)):
            law = np.ones(1)
            for p in pair[cells == b, 1]:
                law = np.convolve(law, [1.0 - p, p])
            share = np.arange(len(law)) / (len(law) - 1)
            outside += law[(share < low) | (share > high)].sum()
    assert outside <= 0.05
    assert outside >= (0.049 if most else 0.01)


# ------------------------------------------------------------------ directions


def test_advice_follows_the_findings(wrong):
    check = wrong.checks[0]
    whole = View("canonical", None, None, 100, direction="over")
    kernel = replace(check, view=whole, statistic="skce_uq", found=True)
    told = replace(kernel, statistic="ecd")
    untold = replace(told, found=False)
    quiet = words.advice(replace(wrong, checks=(kernel, untold)))
    assert quiet[0].startswith("On all rows the probabilities are off, in no one direction")
    assert not any("confident" in text or "by temperature scaling" in text for text in quiet)
    loud = words.advice(replace(wrong, checks=(kernel, told)))
    assert loud[0].startswith("On all rows the model is over-confident: ")
    assert words.worst(replace(wrong, checks=(kernel, told))) == (told,)
    assert words.worst(replace(wrong, checks=(kernel, untold))) == (kernel,)
    top = View("top_label", "the top class is right", None, 1000, 0.80, 0.79, "over")
    noise = replace(check, view=top, statistic="ks", found=True)
    assert "; these means are not told apart ('ks'" in words.finding(noise)
    assert words.advice(replace(wrong, checks=(noise,)))[0] == quiet[0]
    opposite = replace(noise, view=replace(top, share=0.95, direction="under"))
    assert words.advice(replace(wrong, checks=(opposite, told)))[0] == quiet[0]


def test_a_group_that_only_seems_to_err_the_other_way_is_not_set_apart(wrong):
    top = View("top_label", "the top class is right", None, 10_000, 0.80, 0.78, "over")
    group = replace(top, group=Group("g", "a"), rows=100, share=0.805, direction="under")
    checks = tuple(replace(wrong.checks[0], view=v, found=True, statistic="ks") for v in (top, group))
    assert not any("g = a" in text for text in words.advice(replace(wrong, checks=checks)))


# ------------------------------------------------------------------ impossible labels


def impossible(**options):
    probs, labels = calibrated(400, 4, 0)
    probs, labels = probs.copy(), labels.copy()
    probs[:3] = [0.5, 0.5, 0.0, 0.0]
    labels[:3] = 3
    options = {"lenses": "top_label", "statistics": "ks", "n_resamples": 99, "rng": 0, **options}
    return caltest.audit(probs, labels, **options)


@pytest.mark.parametrize("tolerance", [None, 0.0])
def test_an_impossible_label_rejects_whatever_the_checks_find(tolerance):
    audit = impossible(
        tolerance=tolerance, **({} if tolerance is None else {"statistics": None, "n_resamples": 199})
    )
    assert not audit.found
    assert audit.rejected
    assert audit.pvalue == 1 / (1 + audit.n_resamples)
    assert audit.impossible == 3
    assert audit.verdict.endswith(
        ": a label came true that the model calls impossible, in 3 rows; 0 of 1 check found an error "
        f"(p = {audit.pvalue:g})."
    )
    assert any("probability 0" in text for text in words.advice(audit))
    assert not any("stands out" in text for text in words.advice(audit)[:1])
    json.dumps(audit.to_dict(), allow_nan=False)
    with pytest.raises(AssertionError, match="calls impossible, in 3 rows"):
        raise AssertionError(str(audit).replace("\n", " "))


def test_with_a_tolerance_above_0_an_impossible_label_is_one_like_any_other():
    audit = impossible(tolerance=0.3, statistics=None, n_resamples=199)
    assert (audit.impossible, audit.rejected) == (0, False)
    assert impossible(statistics="ks").impossible == 3
    assert caltest.audit(*calibrated(100, 3, 0), **LIGHT).impossible == 0


# ------------------------------------------------------------------ how sure


@pytest.mark.parametrize("correction", CORRECTIONS)
def test_certainty_carries_the_condition(right, correction):
    text = words.certainty(replace(right, correction=correction))
    condition = CORRECTIONS[correction]
    if condition == CORRECTIONS["holm"]:
        assert text.startswith(
            "If the model were calibrated in every group, the chance of finding any error"
        )
    else:
        assert f"Adjusted by {correction!r}, which controls the {condition}: " in text


def test_p_values_are_on_the_side_of_alpha_where_they_are(right):
    text = words.verdict(replace(right, pvalue=0.0504))
    assert "is 0.0504, above the level 0.05." in text
    assert "(p = 0.0496)" in words.verdict(replace(right, pvalue=0.0496, alpha=0.0498))


def test_what_could_be_missed_is_never_nothing(right):
    large = replace(
        right,
        views=tuple(replace(view, rows=10**8) for view in right.views),
    )
    text = " ".join(words.advice(large))
    assert " 0 points" not in text
    assert "an average error of some 0.0" in text
    certain = replace(right, views=tuple(replace(v, says=v.says and 1.0) for v in right.views))
    assert words.advice(certain)[0].endswith("an error may be too small for this many rows.")


def test_no_minus_nothing():
    probs = np.full((60, 2), 0.5)
    audit = caltest.audit(probs, [0, 1] * 30, **LIGHT)
    assert "-0.0" not in re.split(r"[\[\], :{}]+", json.dumps(audit.to_dict(draws=True)))
    assert "-0 " not in str(audit)


# ------------------------------------------------------------------ names


def test_a_long_name_leaves_no_other_out():
    view = View("class:x", f"the label is {'c' * 300!r}", Group("column" * 50, "value" * 50), 100)
    name = view_name(view)
    assert len(name) < 100
    assert name.startswith("class 'ccccc")
    assert " in columncolumn" in name
    assert " = valuevalue" in name
    for most in (16, 20, 36, 50):
        narrow = narrow_name(view, most)
        assert len(narrow) <= most
        assert " = v" in narrow
    assert narrow_name(replace(view, group=None), 16) == "class 'cccccccc…"
    shown = view_name(replace(view, event="the label is 'cat'", group=Group("a\nb", " \u202e")))
    assert shown == "class 'cat' in a\\nb = ' \\u202e'"


@pytest.mark.slow
def test_tables_are_no_wider_than_a_hundred_columns():
    probs, labels, group = one_bad_group(1200, 3, 3, t=0.2)
    cells = [f"{'a long value of a group ' * 4}{g}" for g in group]
    audit = caltest.audit(
        probs, labels, groups={"a long name of a column": cells}, n_resamples=99, rng=0
    )
    lines = str(audit).splitlines()
    assert max(map(len, lines)) <= 100
    head = next(k for k, text in enumerate(lines) if text.startswith("  found"))
    assert lines[head].endswith("points at least")
    assert any(text.endswith(" over") and " = a long" in text for text in lines[head:])


def test_groups_that_differ_by_what_is_hidden_stay_apart():
    cells = ["a\x00", "a\x01", "a", "a "] * 60
    audit = caltest.audit(*calibrated(240, 3, 0), groups={"g": cells}, **LIGHT)
    groups = {view.group.value for view in audit.views if view.group}
    assert groups == {"a\x00", "a\x01", "a", "a "}
    assert {group_name(Group("g", value)) for value in groups} == {
        r"g = a\x00",
        r"g = a\x01",
        "g = a",
        "g = 'a '",
    }


def test_groups_that_are_the_labels_are_warned_of():
    probs, labels = calibrated(240, 3, 0)
    names = np.array(["x", "y", "z"])[labels]
    audit = caltest.audit(probs, labels, groups={"truth": names, "half": names == "x"}, **LIGHT)
    (warning,) = audit.warnings
    assert warning.startswith("Column 'truth' of groups groups the rows as the labels do")
    assert "Note: Column 'truth'" in str(audit)


# ------------------------------------------------------------------ plain data of changed audits


def test_plain_data_of_a_changed_audit(wrong):
    copied = replace(wrong, checks=tuple(replace(c, view=replace(c.view)) for c in wrong.checks))
    assert copied.to_dict() == wrong.to_dict()
    assert str(copied) == str(wrong)
    with pytest.raises(InputError, match=r"looks at 'canonical'.*not among the audit's views"):
        replace(wrong, views=wrong.views[1:]).to_dict()
