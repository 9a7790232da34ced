"""What an audit advises follows from its verdict, and from what it found: a slope, a class, a group."""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np
import pytest
from audited import LIGHT, calibrated
from scipy.special import expit, logit
from support import dirichlet, labels_from

import caltest
from caltest.auditing import Group, View
from caltest.text.audit import advice

MAINTAINER = "For whoever maintains the model: "
RECALIBRATE = f"{MAINTAINER}recalibrate it on held-out rows"
LOGISTIC = f"{RECALIBRATE} by logistic recalibration (a slope and an intercept)"
ISOTONIC = "With thousands of rows, isotonic regression is an alternative (clipped away from 0 and 1)."
AGAIN = "Then audit again, on rows that were used neither to fit nor to recalibrate the model."


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
    options = {"n_resamples": 99, "rng": 0, **options}
    audit = caltest.audit(probs, labels, **options)
    assert audit.rejected
    return audit, for_maintainers(audit)


def for_maintainers(audit):
    """The one sentence for who maintains the model: what may be used is said before, and what then."""
    use, text, again = advice(audit)
    assert not use.startswith(MAINTAINER)
    assert again == AGAIN
    return text


@pytest.mark.parametrize(("intercept", "side"), [(-0.4, "high"), (0.4, "low")])
def test_temperature_scaling_cannot_fix_an_intercept(intercept, side):
    audit, text = advised(*two_classes(3000, intercept, 1.0, seed=2))
    line = audit.recalibration
    number = f"{line.in_the_large:.2f}".replace("-", "−")
    assert re.search(
        rf"^The predicted probability of class 1 is about \d+ .* too {side}\.$", audit.headline
    )
    assert text == (
        f"{RECALIBRATE} by adding an intercept on the logit scale, here {number} (standard error "
        f"{line.in_the_large_se:.2g}). Temperature scaling cannot fix this."
    )
    assert line.in_the_large == pytest.approx(intercept, abs=4 * line.in_the_large_se)


def test_a_risk_that_is_too_high_is_an_intercept_though_its_entropy_is_too_large():
    """Of rare events: to `ecd` the score is not extreme enough, which temperature would make worse."""
    rng = np.random.default_rng(1)
    risk = rng.beta(2, 60, 8000)
    labels = (rng.random(8000) < risk).astype(int)
    audit, text = advised(1.4 * risk, labels)
    (entropic,) = (c for c in audit.found if (c.view.lens, c.statistic) == ("canonical", "ecd"))
    assert entropic.value < 0.0
    assert re.search(r" is too high: about 1\.\d times the observed rate\.$", audit.headline)
    assert text.startswith(f"{RECALIBRATE} by adding an intercept on the logit scale, here −0.")
    assert "by temperature scaling" not in text


@pytest.mark.parametrize(("slope", "extreme"), [(0.6, "too extreme"), (1.7, "not extreme enough")])
def test_a_slope_is_a_temperature(slope, extreme):
    audit, text = advised(*two_classes(3000, 0.0, slope, seed=2))
    line = audit.recalibration
    assert text == (
        f"{RECALIBRATE} by temperature scaling: the probabilities are {extreme}. The best correction "
        f"on the logit scale has slope {line.slope:.2f} (standard error {line.slope_se:.2g}) and no "
        f"clear intercept. {ISOTONIC}"
    )
    confident = "overconfident" if slope < 1.0 else "underconfident"
    assert audit.headline.startswith(f"The model is {confident}: its probabilities are ")


def test_a_slope_and_an_intercept():
    _, text = advised(*two_classes(3000, -0.6, 0.6, seed=2))
    assert text.startswith(f"{LOGISTIC}: on the logit scale the best correction has slope 0.")
    assert text.endswith(f"Temperature scaling alone cannot fix the intercept. {ISOTONIC}")


OTHER = f"{MAINTAINER}recalibration is not clearly what is needed: "


def test_what_is_not_known_is_not_advised_on():
    """An error that is no line: too high below 1/2, and too high above, at its ends right."""
    rng = np.random.default_rng(3)
    p = rng.uniform(0.02, 0.98, 6000)
    truth = p - 0.1 * np.sin(6.0 * np.pi * p) * np.sin(np.pi * p)
    labels = (rng.random(6000) < truth).astype(int)
    audit, text = advised(p, labels, statistics="kuiper", n_resamples=999)
    line = audit.recalibration
    assert abs(line.slope - 1.0) < 3.0 * line.slope_se
    assert text.startswith(OTHER)
    assert "temperature" not in text


def test_three_standard_errors_decide():
    audit, _ = advised(*two_classes(1500, -0.4, 1.0, seed=2))
    line = replace(audit.recalibration, in_the_large=-0.3, in_the_large_se=0.1001, slope=1.0)
    other = for_maintainers(replace(audit, recalibration=line))
    assert other.startswith(OTHER)
    known = for_maintainers(replace(audit, recalibration=replace(line, in_the_large_se=0.0999)))
    assert "an intercept on the logit scale, here −0.30 (standard error 0.1)." in known
    nothing = replace(line, slope=np.nan, slope_se=np.nan, in_the_large=np.nan, in_the_large_se=np.nan)
    unfitted = for_maintainers(replace(audit, recalibration=nothing))
    assert unfitted.startswith(f"{MAINTAINER}no recalibration can be fitted")
    backwards = replace(line, slope=-0.5, slope_se=0.1)
    assert "rank them the wrong way round" in for_maintainers(replace(audit, recalibration=backwards))
    assert for_maintainers(replace(audit, recalibration=None)) == f"{LOGISTIC}. {ISOTONIC}"


def test_a_line_is_fitted_only_where_it_advises():
    assert caltest.audit(*two_classes(300, 0.0, 1.0, seed=1), **LIGHT).recalibration is None
    three = caltest.audit(dirichlet(300, 3, 0), [0] * 300, **LIGHT)
    assert three.rejected
    assert three.recalibration is None


def test_one_group_is_wrong_and_the_others_are_not():
    """An error in a group alone is no reason to recalibrate all rows."""
    wrong, right = two_classes(750, -0.8, 1.0, seed=2), two_classes(2250, 0.0, 1.0, seed=3)
    probs, labels = (np.concatenate(each) for each in zip(wrong, right, strict=True))
    audit, text = advised(probs, labels, groups={"site": ["a"] * 750 + ["b"] * 1000 + ["c"] * 1250})
    assert audit.worst.group == Group.of(site="a")
    assert audit.headline.endswith(" too high where site is a.")
    assert advice(audit)[0].endswith(
        "do not rely on these probabilities where site is a until they are corrected."
    )
    assert text.startswith(f"{MAINTAINER}look at the data of that group (labels, ")
    assert text.endswith("One correction for all rows cannot fix an error in a single group.")


def test_labels_that_the_scores_separate():
    p = np.linspace(0.2, 0.8, 400)
    audit, text = advised(p, (p > 0.5).astype(int))
    assert audit.recalibration.separated
    assert text.startswith(f"{MAINTAINER}no recalibration can be fitted")


# ------------------------------------------------------------------ more classes


def test_one_class_of_three_is_off():
    """One class stated half too large: classes are named, and more than a temperature is advised."""
    truth = dirichlet(3000, 3, 0)
    labels = labels_from(truth, np.random.default_rng(0))
    stated = truth * [1.0, 1.6, 1.0]
    audit, text = advised(stated / stated.sum(axis=1, keepdims=True), labels)
    assert audit.worst.lens == "class:1"
    assert re.search(
        r"class by class \(class 1: too high on average; class [02] and class [02]: too low on ",
        text,
    )
    assert "an intercept for every class" in text
    assert "Temperature scaling alone may not fix this." in text


def test_one_temperature_may_fix_classes_of_unequal_sizes():
    """Sharp predictions favour the largest class: its mean is too high, and one number fixes it."""
    truth = np.random.default_rng(0).dirichlet([1.0, 1.0, 3.0], 3000)
    labels = labels_from(truth, np.random.default_rng(0))
    audit, text = advised(truth**2 / (truth**2).sum(axis=1, keepdims=True), labels)
    assert next(view for view in audit.views if view.lens == "class:2").direction == "over"
    assert "a temperature" in text
    assert "alone may not fix this." in text


def test_all_classes_are_too_sure_alike():
    audit, text = advised(*_sharp(3000, 2))
    assert audit.worst.lens == "top_label"
    assert text == (
        f"{RECALIBRATE}. It is overconfident in its top class; temperature scaling is the first thing "
        "to try."
    )


def test_too_sure_and_a_class_off():
    audit, _ = advised(*_sharp(900, 3), lenses="top_label")
    check = audit.found[0]
    off = View(
        "class:0", "the label is class 0", None, 900, 0.5, 0.3, 0.1, 0.3, "over", adjusted_pvalue=0.01
    )
    classes = [replace(off, lens=f"class:{k}", event=f"the label is class {k}") for k in range(10, 15)]
    found = tuple(replace(check, view=view, statistic="ks", found=True) for view in classes)
    text = for_maintainers(replace(audit, checks=(*audit.checks, *found)))
    assert text.startswith(
        f"{RECALIBRATE} class by class (class 10, class 11, class 12 and 2 more: too high on average): "
        "an intercept for every class and a temperature, "
    )


def test_a_small_error_of_one_class_does_not_decide():
    """The top class is 14 points off, one class of a hundred .4 points: temperature comes first."""
    audit, _ = advised(*_sharp(900, 3), lenses="top_label")
    check, top = audit.found[0], audit.views[0]
    off = replace(
        top, lens="class:42", event="the label is class 42", predicted=0.014, observed=0.010,
        low=0.001, high=0.007, direction="over", parts=(),
    )  # fmt: skip
    found = replace(check, view=off, statistic="citl")
    small = replace(audit, views=(top, off), checks=(*audit.checks, found))
    assert "temperature scaling is the first thing to try" in for_maintainers(small)
    large = replace(off, predicted=0.15, low=0.1, high=0.17)
    other = replace(small, views=(top, large), checks=(*audit.checks, replace(found, view=large)))
    assert "class by class (class 42: too high on average)" in for_maintainers(other)
    limited = replace(other, materiality=0.2)
    assert "temperature scaling is the first thing to try" in for_maintainers(limited)


def test_what_a_group_s_own_interval_shows_outranks_its_fifths():
    """Its mean is within the limit, a fifth may be beyond: the mean is no open question."""
    audit, _ = advised(*two_classes(3000, -0.4, 1.0, seed=2))
    parts = tuple(replace(part, low=-0.01, high=0.05) for part in audit.views[0].parts)
    own = replace(audit.views[0], low=0.01, high=0.03, predicted=0.52, observed=0.5, parts=parts)
    checks = tuple(replace(each, view=own) for each in audit.checks)
    judged = replace(audit, views=(own,), checks=checks, rests=(), materiality=0.04)
    assert judged.verdict == "found"
    assert "is not settled" not in " ".join(advice(judged))
    assert "the average error is within your limit of 4 points" in advice(judged)[0]


def test_a_p_value_close_to_the_level_asks_for_more_resamples():
    audit, _ = advised(*two_classes(3000, -0.4, 1.0, seed=2), n_resamples=999)
    close = "p = {} is close to 0.05: another seed could change the verdict. Use more resamples, "
    for p, said in ((0.046, True), (0.053, True), (0.03, False), (0.08, False), (0.001, False)):
        text = " ".join(advice(replace(audit, pvalue=p)))
        assert (close.format(p) + "n_resamples=9999." in text) == said
    signs = replace(audit, pvalue=0.047, n_resamples=1023, clusters=10)  # all of them: no draws
    assert "another seed" not in " ".join(advice(signs))


def test_rounding_is_not_advised_where_it_is_refused():
    """Stated confidences in steps of 5%, some of them certain and wrong."""
    rng = np.random.default_rng(0)
    stated = np.round(rng.beta(4, 1, 900) * 20) / 20
    labels = (rng.random(900) < 0.9 * stated).astype(int)
    whole = caltest.audit(stated, labels, n_resamples=99, rng=0)
    assert "rounding=" in str(whole)
    one_third = caltest.audit(stated, labels, clusters=np.arange(900) // 3, n_resamples=99, rng=0)
    assert one_third.impossible
    assert "rounding=" not in str(one_third)


def _sharp(n, power):
    truth = dirichlet(n, 3, 0)
    sharp = truth**power
    labels = labels_from(truth, np.random.default_rng(0))
    return sharp / sharp.sum(axis=1, keepdims=True), labels


# ------------------------------------------------------------------ what may be used


def test_the_verdict_decides_whether_the_probabilities_may_be_used():
    """An error of about 8 points: without a limit, with lower and higher ones, and with a tolerance."""
    audit, _ = advised(*two_classes(3000, -0.4, 1.0, seed=2))
    own = audit.views[0]
    assert own.low < 0.08 < own.high
    refused = "Do not rely on these probabilities until they are corrected."
    for changes, verdict, first in (
        ({}, "found", "Decide how large an average error matters to you, "),
        ({"materiality": 0.02}, "material", refused),
        ({"materiality": 0.08}, "found", f"{refused[:-1]}: the error is estimated to be beyond "),
        ({"materiality": 0.09}, "found", "Whether the error exceeds your limit of 9 points is not "),
        (
            {"materiality": 0.5},
            "small",
            "Use the probabilities as they are where average errors ",
        ),
        ({"tolerance": 0.02}, "found", refused),
    ):
        judged = replace(audit, **changes)
        assert judged.verdict == verdict
        assert advice(judged)[0].startswith(first)


def test_nothing_found_advises_no_recalibration():
    for data in (calibrated(300, 3, 0), two_classes(300, 0.0, 1.0, seed=1)):
        audit = caltest.audit(*data, n_resamples=99, rng=0)
        assert not audit.rejected
        assert "recalibrate" not in " ".join(advice(audit))
