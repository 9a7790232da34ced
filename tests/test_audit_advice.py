"""What an audit advises follows from what it found: an intercept, a slope, a class, or nothing."""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np
import pytest
from audited import LIGHT, calibrated
from scipy.special import expit, logit
from support import dirichlet, labels_from

import caltest
from caltest.auditing import View
from caltest.text import audit as words

LOGISTIC = (
    "recalibrate the model on held-out rows by logistic recalibration (intercept and slope), or by "
    "isotonic regression if there are thousands of them."
)


@pytest.fixture(autouse=True)
def _without_bounds(monkeypatch):
    """Advice follows from findings: bounds, most of an audit's work, are not looked at."""
    monkeypatch.setattr("caltest.auditing.engine.bounds", lambda *_: {})


def two_classes(n, intercept, slope, beta=(3, 3), seed=0):
    """Predictions whose truth is expit(intercept + slope · logit p), and labels."""
    rng = np.random.default_rng(seed)
    truth = rng.beta(*beta, n)
    return expit((logit(truth) - intercept) / slope), (rng.random(n) < truth).astype(int)


def advised(probs, labels, **options):
    options = {"statistics": ["ks", "ecd"], "n_resamples": 99, "rng": 0, **options}
    audit = caltest.audit(probs, labels, **options)
    assert audit.rejected
    return audit, words.advice(audit)[0]


@pytest.mark.parametrize(
    ("intercept", "often"), [(-0.4, "too often"), (0.4, "too seldom")], ids=["over", "under"]
)
def test_an_intercept_is_not_mended_by_a_temperature(intercept, often):
    audit, text = advised(*two_classes(3000, intercept, 1.0, seed=2))
    line = audit.recalibration
    assert text == (
        f"On all rows class 1 is said {often}: its logit needs an intercept of {line.in_the_large:.2f} "
        f"(standard error {line.in_the_large_se:.2g}), and its slope could not be told from 1. No "
        f"temperature mends an intercept: {LOGISTIC}"
    )
    assert line.in_the_large == pytest.approx(intercept, abs=4 * line.in_the_large_se)


def test_a_risk_that_is_too_high_is_an_intercept_though_its_entropy_is_too_large():
    """Of rare events: to `ecd` the score is too timid, of which a temperature would make the worse."""
    rng = np.random.default_rng(1)
    risk = rng.beta(2, 60, 8000)
    labels = (rng.random(8000) < risk).astype(int)
    audit, text = advised(1.4 * risk, labels)
    (entropic,) = (c for c in audit.found if (c.view.lens, c.statistic) == ("canonical", "ecd"))
    assert entropic.value < 0.0
    assert text.startswith("On all rows class 1 is said too often: its logit needs an intercept of -0.")
    assert "temperature scaling" not in " ".join(words.advice(audit))


@pytest.mark.parametrize(("slope", "too"), [(0.6, "extreme"), (1.7, "timid")])
def test_a_slope_is_a_temperature(slope, too):
    audit, text = advised(*two_classes(3000, 0.0, slope, seed=2))
    line = audit.recalibration
    assert text == (
        f"On all rows the probabilities are too {too}: the logit needs a slope of {line.slope:.2f} "
        f"(standard error {line.slope_se:.2g}), and no intercept that could be told from 0. A "
        "temperature is such a slope: recalibrate the model on held-out rows by temperature scaling, "
        "or by isotonic regression if there are thousands of them."
    )


def test_a_slope_and_an_intercept():
    audit, text = advised(*two_classes(3000, -0.6, 0.6, seed=2))
    assert text.startswith("On all rows the logit of class 1 needs a slope of 0.")
    assert text.endswith(f", of which a temperature mends the slope alone: {LOGISTIC}")
    named = words.advice(replace(audit, classes=("no", "y\nes")))[0]
    assert named.startswith("On all rows the logit of class 'y\\nes' needs")


def test_what_is_not_told_is_not_advised_on():
    """An error that is no line: too high below 1/2, and too high above, at its ends right."""
    rng = np.random.default_rng(3)
    p = rng.uniform(0.02, 0.98, 6000)
    truth = p - 0.1 * np.sin(6.0 * np.pi * p) * np.sin(np.pi * p)
    labels = (rng.random(6000) < truth).astype(int)
    audit, text = advised(p, labels, statistics="kuiper")
    line = audit.recalibration
    assert abs(line.slope - 1.0) < 3.0 * line.slope_se
    assert text.startswith(
        "On all rows the probabilities are off, by no intercept and no slope of the logit that could "
        "be told from 0 and 1: "
    )
    assert "temperature" not in " ".join(words.advice(audit))


def test_how_much_is_told_decides():
    """Three standard errors, as of all else that a summary tells."""
    audit, _ = advised(*two_classes(1500, -0.4, 1.0, seed=2))
    line = replace(audit.recalibration, in_the_large=-0.3, in_the_large_se=0.1001, slope=1.0)
    untold = words.advice(replace(audit, recalibration=line))[0]
    assert "by no intercept and no slope" in untold
    told = words.advice(replace(audit, recalibration=replace(line, in_the_large_se=0.0999)))[0]
    assert "an intercept of -0.30 (standard error 0.1)" in told
    nothing = replace(line, slope=np.nan, slope_se=np.nan, in_the_large=np.nan, in_the_large_se=np.nan)
    assert words.advice(replace(audit, recalibration=nothing))[0] == untold
    without = words.advice(replace(audit, recalibration=None))[0]
    assert without == f"On all rows the probabilities are off: {LOGISTIC}"


def test_a_line_is_fitted_only_where_it_advises():
    assert caltest.audit(*two_classes(300, 0.0, 1.0, seed=1), **LIGHT).recalibration is None
    three = caltest.audit(dirichlet(300, 3, 0), [0] * 300, **LIGHT)
    assert three.rejected
    assert three.recalibration is None


def test_of_two_classes_one_group_is_wrong_and_all_rows_are_not():
    """A finding in a group alone is no reason to recalibrate all rows."""
    probs, labels = two_classes(1500, -0.6, 1.0, seed=2)
    audit = caltest.audit(probs, labels, groups=["a"] * 750 + ["b"] * 750, n_resamples=99, rng=0)
    group = replace(audit, checks=tuple(c for c in audit.checks if c.view.group))
    assert words.advice(group)[0].startswith("Look at the data of ")


def test_labels_that_the_scores_separate():
    p = np.linspace(0.2, 0.8, 400)
    audit, text = advised(p, (p > 0.5).astype(int))
    assert audit.recalibration.separated
    assert "by no intercept and no slope" in text


# ------------------------------------------------------------------ more classes


def test_one_class_of_three_is_off():
    """One class stated half too large: which classes are named, and no temperature alone is advised."""
    truth = dirichlet(3000, 3, 0)
    labels = labels_from(truth, np.random.default_rng(0))
    stated = truth * [1.0, 1.6, 1.0]
    _, text = advised(stated / stated.sum(axis=1, keepdims=True), labels)
    assert text.startswith("On all rows the model ")
    assert re.search(
        r"says class 1 too often, and class ([02]), class (?!\1)[02] too seldom: recal", text
    )
    assert "an intercept for " in text
    assert "temperature scaling" not in text


def test_all_classes_are_too_sure_alike():
    truth = dirichlet(3000, 3, 0)
    labels = labels_from(truth, np.random.default_rng(0))
    sharp = truth**2
    _, text = advised(sharp / sharp.sum(axis=1, keepdims=True), labels)
    assert text == (
        "On all rows the model is over-confident: recalibrate the model on held-out rows, by "
        "temperature scaling for a start, or isotonic regression if there are thousands of them."
    )


def test_too_sure_and_a_class_off():
    audit, _ = advised(*_sharp(), lenses="top_label")
    check = audit.found[0]
    off = View("class:0", "the label is class 0", None, 900, 0.5, 0.3, "over")
    classes = [replace(off, lens=f"class:{k}", event=f"the label is class {k}") for k in range(10, 15)]
    found = tuple(replace(check, view=view, statistic="ks", found=True) for view in classes)
    text = words.advice(replace(audit, checks=(*audit.checks, *found)))[0]
    assert text.startswith(
        "On all rows the model is over-confident, and on average it says class 10, class 11, class 12 "
        "and 2 more too often: recalibrate the model on held-out rows, by a temperature with an "
        "intercept for every class"
    )


def _sharp():
    truth = dirichlet(900, 3, 0)
    sharp = truth**3
    labels = labels_from(truth, np.random.default_rng(0))
    return sharp / sharp.sum(axis=1, keepdims=True), labels


def test_nothing_found_advises_no_recalibration():
    for data in (calibrated(300, 3, 0), two_classes(300, 0.0, 1.0, seed=1)):
        audit = caltest.audit(*data, n_resamples=99, rng=0)
        assert not audit.rejected
        assert "recalibrate" not in " ".join(words.advice(audit))
