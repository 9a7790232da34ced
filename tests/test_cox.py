"""`recalibration`: statsmodels, hand counts, known slopes, lines that do not exist, printing."""

import json
from dataclasses import FrozenInstanceError

import numpy as np
import pytest
from scipy.special import expit, logit
from scipy.stats import chi2

import caltest
from caltest import InputError, recalibration
from caltest.simulation import tempered


@pytest.fixture
def data():
    rng = np.random.default_rng(0)
    p = expit(rng.normal(1, 1.5, 400))
    return p, (rng.random(400) < expit(0.3 + 0.7 * logit(p))).astype(int)


@pytest.mark.slow
def test_against_statsmodels(data):
    import statsmodels.api as sm

    p, y = data
    x, binomial = logit(p), sm.families.Binomial()
    line = sm.GLM(y, np.column_stack([np.ones(400), x]), family=binomial).fit(tol=1e-14)
    level = sm.GLM(y, np.ones(400), family=binomial, offset=x).fit(tol=1e-14)
    none = np.where(y == 1, np.log(p), np.log1p(-p)).sum()
    fit = recalibration(p, y)
    assert (fit.intercept, fit.slope) == pytest.approx(tuple(line.params), rel=1e-8)
    assert (fit.intercept_se, fit.slope_se) == pytest.approx(tuple(line.bse), rel=1e-7)
    intervals = [fit.intercept_interval, fit.slope_interval]
    assert np.array(intervals) == pytest.approx(line.conf_int(), rel=1e-7)
    assert fit.in_the_large == pytest.approx(level.params[0], rel=1e-8)
    assert fit.in_the_large_se == pytest.approx(level.bse[0], rel=1e-7)
    for test, statistic, degrees in (
        (fit.test_both, 2 * (line.llf - none), 2),
        (fit.test_in_the_large, 2 * (level.llf - none), 1),
        (fit.test_slope, 2 * (line.llf - level.llf), 1),
    ):
        assert test.statistic == pytest.approx(statistic, rel=1e-8)
        assert test.degrees == degrees
        assert test.pvalue == pytest.approx(chi2.sf(statistic, degrees), rel=1e-7)


def test_the_whole_is_the_statistic_and_the_sum(data):
    fit = recalibration(*data)
    assert fit.test_both.statistic == pytest.approx(caltest.estimate(*data, "cox"), rel=1e-12)
    parts = fit.test_in_the_large.statistic + fit.test_slope.statistic
    assert fit.test_both.statistic == pytest.approx(parts, rel=1e-12)
    assert fit.test_both.pvalue == pytest.approx(caltest.test(*data, "cox", null="chi2").pvalue)


@pytest.mark.parametrize("temperature", [0.5, 1.0, 2.0])
def test_the_slope_of_binary_predictions_is_their_temperature(temperature):
    sample = tempered(n_samples=20_000, alpha=[1.0, 1.0], temperature=temperature, rng=0)
    fit = recalibration(sample.probs, sample.labels)
    assert abs(fit.slope - temperature) < 4 * fit.slope_se
    assert abs(fit.intercept) < 4 * fit.intercept_se
    reading = {0.5: "overconfident", 1.0: "does not differ significantly from 1", 2.0: "underconfident"}
    assert reading[temperature] in " ".join(str(fit).split())


def test_naming_the_other_class(data):
    p, y = data
    fit, other = recalibration(p, y), recalibration(1 - p, 1 - y)
    assert other.intercept == pytest.approx(-fit.intercept, rel=1e-8)
    assert other.slope == pytest.approx(fit.slope, rel=1e-8)


def test_row_order(data):
    p, y = data
    order = np.random.default_rng(1).permutation(len(p))
    fit, other = recalibration(p, y), recalibration(p[order], y[order])
    assert other.slope == pytest.approx(fit.slope, rel=1e-12)
    assert other.test_both.statistic == pytest.approx(fit.test_both.statistic, rel=1e-10)


def test_lens(data):
    sure = tempered(n_samples=300, temperature=0.5, rng=0)
    assert recalibration(sure.probs, sure.labels).lens == "top_label"
    assert recalibration(sure.probs, sure.labels, lens="class:3").lens == "class:3"
    assert recalibration(*data).lens is None
    with pytest.raises(InputError, match="one probability, and there are 10 classes"):
        recalibration(sure.probs, sure.labels, lens="sorted")
    with pytest.raises(InputError):
        recalibration([0.2, 1.7], [0, 1])


def test_equal_predictions_by_hand():
    fit = recalibration([0.25] * 8, [1] * 5 + [0] * 3)
    assert fit.intercept == fit.in_the_large == pytest.approx(logit(5 / 8) - logit(1 / 4))
    assert fit.intercept_se == pytest.approx((8 * 5 / 8 * 3 / 8) ** -0.5)
    assert np.isnan(fit.slope)
    assert (fit.test_both.degrees, fit.test_in_the_large.degrees, fit.test_slope.degrees) == (1, 1, 0)
    assert fit.test_both.statistic == pytest.approx(fit.test_in_the_large.statistic)
    assert fit.test_slope.pvalue == 1.0
    assert not fit.separated
    assert any("tell no slope" in note for note in fit.warnings)


LINELESS = {
    "separated": ([0.1, 0.2, 0.8, 0.9], [0, 0, 1, 1], "separate the labels"),
    "one class": ([0.1, 0.2, 0.8, 0.9], [1, 1, 1, 1], "of one class"),
    "one class, equal": ([0.1] * 4, [0] * 4, "of one class"),
    "two rows": ([0.1, 0.9], [1, 0], "separate the labels"),
}


@pytest.mark.parametrize("case", LINELESS)
def test_lines_that_do_not_exist(case):
    p, y, says = LINELESS[case]
    fit = recalibration(p, y)
    assert fit.separated
    assert np.isnan([fit.slope, fit.slope_se, *fit.slope_interval]).all()
    likelihood = np.log(np.where(np.array(y) == 1, p, 1 - np.array(p))).sum()
    assert fit.test_both.statistic == pytest.approx(-2 * likelihood)
    assert 0 < fit.test_both.pvalue < 1
    assert any(says in note for note in fit.warnings)
    assert "cannot be estimated from these data" in fit.summary()
    json.dumps(fit.to_dict(), allow_nan=False)


def test_certain_rows():
    p, y = np.array([0.2, 0.4, 0.7, 0.9]), np.array([0, 1, 0, 1])
    fit, right = recalibration(p, y), recalibration(np.r_[0.0, p, 1.0], np.r_[0, y, 1])
    assert right.slope == pytest.approx(fit.slope)
    assert right.n_samples == 6
    assert "2 of 6 rows were predicted with certainty" in right.warnings[-1]
    wrong = recalibration(np.r_[0.0, p, 1.0], np.r_[1, y, 1])
    assert wrong.slope == pytest.approx(fit.slope)
    for test in (wrong.test_both, wrong.test_in_the_large, wrong.test_slope):
        assert test.statistic == np.inf
        assert 0 < test.pvalue < 1e-300
    assert "proves the model miscalibrated" in wrong.warnings[-1]
    json.dumps(wrong.to_dict(), allow_nan=False)
    nothing = recalibration([0.0, 1.0], [0, 1])
    assert nothing.test_both.pvalue == 1.0
    assert "nothing to test" in str(nothing)


def test_probabilities_at_the_end_of_the_numbers():
    for tiny in (1e-300, 5e-324):
        fit = recalibration(np.array([[1.0, tiny], [tiny, 1.0], [0.5, 0.5]]), [1, 0, 1])
        assert fit.test_both.statistic > 1000
        assert 0 < fit.test_both.pvalue < 1e-100
        json.dumps(fit.to_dict(), allow_nan=False)


def test_summary():
    fit = recalibration([0.2, 0.4, 0.7, 0.9, 0.6, 0.3], [0, 1, 0, 1, 1, 0])
    assert str(fit) == fit.summary()
    assert fit.summary().splitlines() == SUMMARY


SUMMARY = """\
The slope does not differ significantly from 1.

A calibrated model has intercept 0 and slope 1.
The p-values come from likelihood-ratio tests and are valid only as the number of rows grows;
caltest.test(…, 'cox') gives an exact one.

  fitted     logit P(y = 1) = intercept + slope · logit p, 6 rows
  intercept  -0.08779  (95% interval -1.945 to 1.769)
  slope      1.07  (95% interval -0.8355 to 2.975)
  at slope 1 intercept -0.08706  (95% interval -1.917 to 1.743)
  tests      intercept 0 and slope 1: χ² = 0.014, 2 degrees of freedom, p = 0.993
             intercept 0 at slope 1: χ² = 0.008702, 1 degree of freedom, p = 0.926
             slope 1: χ² = 0.005295, 1 degree of freedom, p = 0.942
""".splitlines()


def test_frozen(data):
    with pytest.raises(FrozenInstanceError):
        recalibration(*data).slope = 1.0
