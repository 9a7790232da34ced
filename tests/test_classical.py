"""Hosmer–Lemeshow, calibration in the large, Cox: hand counts, statsmodels, extremes, level, power."""

import numpy as np
import pytest
from scipy.special import expit, logit
from scipy.stats import chi2
from support import every_outcome

import caltest
from caltest.data import Rows
from caltest.forms.recalibration import Logits, fit_line
from caltest.statistics import CalibrationInTheLarge, CoxRecalibration, HosmerLemeshow


def binary(p):
    p = np.asarray(p, dtype=float)
    return Rows(np.column_stack([1.0 - p, p]))


def form(statistic, p):
    return statistic.given(p if isinstance(p, Rows) else binary(p))


def draw(p, rng, size=None):
    shape = len(p) if size is None else (size, len(p))
    return (rng.random(shape) < p).astype(np.intp)


# ---- Hosmer and Lemeshow


def test_equal_predictions_stay_in_one_group():
    assert form(HosmerLemeshow(10), np.full(50, 0.3)).chi_square.degrees == 1
    assert form(HosmerLemeshow(10), np.repeat([0.3, 0.6], 25)).chi_square.degrees == 2


def test_groups_of_certain_rows():
    p = [0.0] * 4 + [0.5] * 4 + [1.0] * 4
    hl = form(HosmerLemeshow(3), p)
    possible = np.array([0] * 4 + [1, 0, 0, 0] + [1] * 4)
    assert hl.value(possible) == pytest.approx(1.0)
    assert hl.chi_square.degrees == 1
    for row in (0, 8):
        impossible = possible.copy()
        impossible[row] = 1 - impossible[row]
        for null in ("monte_carlo", "moments", "chi2"):
            result = caltest.test(p, impossible, HosmerLemeshow(3), null=null, rng=0)
            assert result.statistic == np.inf
            assert 0 < result.pvalue <= 0.001
            assert result.to_dict()["statistic"] == "inf"


@pytest.mark.parametrize("probs", [[1e-20, 1.0], [1e-20, 1.0 - 2e-16], [1e-12, 1.0 - 1e-12]])
def test_groups_that_are_all_but_certain_do_not_drown_in_rounding(probs):
    rare = probs[0]
    rows = np.vstack([np.tile(probs, (50, 1)), np.tile([0.5, 0.5], (50, 1))])
    hl = form(HosmerLemeshow(2), Rows(rows))
    labels = np.array([1] * 50 + [1] * 20 + [0] * 30)
    assert hl.value(labels) == pytest.approx(25 / 12.5 + 50 * rare, rel=1e-9)
    assert hl.resolution < 1e-9
    labels[0] = 0
    assert hl.value(labels) == pytest.approx(1 / (50 * rare), rel=1e-9)


# ---- Calibration in the large


def test_citl_says_which_way():
    p = np.full(60, 0.7)
    for positives, side in ((57, "greater"), (27, "less")):
        y = [1] * positives + [0] * (60 - positives)
        assert caltest.test(p, y, "citl", alternative=side, rng=0).pvalue <= 0.002
        assert caltest.test(p, y, "citl", alternative=side, null="moments").pvalue < 1e-4
        other = {"greater": "less", "less": "greater"}[side]
        assert caltest.test(p, y, "citl", alternative=other, rng=0).pvalue > 0.99


@pytest.mark.parametrize(
    ("p", "y", "expected"),
    [
        ([0, 1, 1], [0, 1, 1], 0.0),
        ([0, 1, 1], [1, 1, 1], np.inf),
        ([0, 1, 1], [0, 0, 1], -np.inf),
        ([0, 1, 1], [1, 0, 1], np.inf),  # errors of both signs that cancel
        ([0, 1, 1], [1, 0, 0], -np.inf),
        ([1e-250, 0, 1], [0, 0, 1], 0.0),
        ([1e-250, 0, 1], [1, 0, 1], np.inf),
        ([0, 0.5, 1], [1, 1, 1], 3.0),  # an impossible label, and some variance
        ([0, 0.5, 1], [1, 1, 0], 1.0),
    ],
)
def test_citl_of_certain_predictions(p, y, expected):
    for null in ("monte_carlo", "moments", "normal"):
        result = caltest.test(p, y, "citl", null=null, rng=0)
        assert result.statistic == pytest.approx(expected)
        assert 0 < result.pvalue <= 1
        if np.isinf(expected):
            assert result.pvalue <= 0.002


def test_citl_sees_probabilities_that_one_minus_loses():
    rows = np.array([[1e-20, 1.0]] * 4)
    citl = form(CalibrationInTheLarge(), Rows(rows))
    assert citl.value(np.ones(4, int)) == pytest.approx(2e-10)
    assert citl.value(np.array([0, 1, 1, 1])) == pytest.approx(-0.5e10)


# ---- Cox


def by_statsmodels(p, y):
    """The same χ² by another route of statsmodels, weighted least squares."""
    import statsmodels.api as sm

    x, ones = logit(p), np.ones((len(p), 1))
    model = sm.GLM(y, np.column_stack([ones, x]), family=sm.families.Binomial())
    fit = model.fit(tol=1e-14, maxiter=200)
    return 2 * (fit.llf - np.where(y == 1, np.log(p), np.log1p(-p)).sum())


@pytest.mark.slow
@pytest.mark.parametrize("n", [30, 1000])
@pytest.mark.parametrize("seed", range(5))
def test_cox_against_statsmodels(n, seed):
    rng = np.random.default_rng(seed)
    p = expit(rng.normal(1, 1.5, n))
    y = draw(p**1.5, rng)
    ratio = by_statsmodels(p, y)
    assert caltest.estimate(p, y, "cox") == pytest.approx(ratio, rel=1e-8)
    result = caltest.test(p, y, "cox", null="chi2")
    assert result.pvalue == pytest.approx(chi2.sf(ratio, 2), rel=1e-6)


def test_cox_of_equal_predictions_by_hand():
    # Five of eight came true at 1/4: binomial likelihoods.
    y = np.array([1] * 5 + [0] * 3)
    ratio = 2 * (5 * np.log(5 / 8 / 0.25) + 3 * np.log(3 / 8 / 0.75))
    cox = form(CoxRecalibration(), np.full(8, 0.25))
    assert cox.value(y) == pytest.approx(ratio)
    assert cox.chi_square.degrees == 1
    assert cox.value(np.ones(8, int)) == pytest.approx(16 * np.log(4))


def test_logits_equal_up_to_rounding_tell_no_slope():
    p = 0.3 * (1 + 1e-15 * np.arange(8))
    y = np.array([0, 0, 0, 1, 0, 1, 1, 1])
    assert form(CoxRecalibration(), p).chi_square.degrees == 1
    expected = form(CoxRecalibration(), np.full(8, 0.3)).value(y)
    assert form(CoxRecalibration(), p).value(y) == pytest.approx(expected)


SEPARATED = {
    "upwards": ([-2.0, -1.0, 1.0, 2.0], [0, 0, 1, 1], 0.0),
    "downwards": ([-2.0, -1.0, 1.0, 2.0], [1, 1, 0, 0], 0.0),
    "one class": ([-2.0, -1.0, 1.0, 2.0], [1, 1, 1, 1], 0.0),
    "ties at the border": (
        [-2.0, 0.5, 0.5, 0.5, 2.0],
        [0, 0, 1, 1, 1],
        2 * np.log(2 / 3) + np.log(1 / 3),
    ),
    "ties, downwards": ([-2.0, 0.5, 0.5, 2.0], [1, 0, 1, 0], 2 * np.log(1 / 2)),
    "two rows": ([-1.0, 1.0], [1, 0], 0.0),
}


@pytest.mark.parametrize("case", SEPARATED)
def test_supremum_under_separation(case):
    x, y, supremum = SEPARATED[case]
    x, y = np.array(x), np.array(y)
    found = Logits.of(binary(expit(x)).probs).separated(y, np.ones(len(y)))
    assert found == pytest.approx(supremum, abs=1e-15)
    null = np.log(np.where(y == 1, expit(x), expit(-x))).sum()
    found = form(CoxRecalibration(), expit(x)).value(y)
    assert found == pytest.approx(2 * (supremum - null), rel=1e-12)
    # Steep lines approach it from below.
    a, b = np.meshgrid(np.linspace(-70, 70, 281), np.linspace(-60, 60, 241))
    eta = a[..., None] + b[..., None] * x
    best = (-np.logaddexp(0, (1 - 2 * y) * eta).sum(axis=-1)).max()
    assert supremum - 0.05 < best <= supremum + 1e-12


def test_rows_predicted_with_certainty():
    p, y = np.array([0.2, 0.4, 0.7, 0.9]), np.array([0, 1, 0, 1])
    more, right = np.r_[0.0, p, 1.0], np.r_[0, y, 1]
    cox = CoxRecalibration()
    assert form(cox, more).value(right) == pytest.approx(form(cox, p).value(y), rel=1e-12)
    assert form(cox, more).value(np.r_[1, y, 1]) == np.inf
    assert form(cox, more).value(np.r_[0, y, 0]) == np.inf
    assert form(cox, [0.0, 1.0]).value(np.array([0, 1])) == 0.0
    assert form(cox, [0.0, 1.0]).chi_square.degrees == 0
    for null in ("monte_carlo", "chi2"):
        assert 0 < caltest.test(more, np.r_[1, y, 1], "cox", null=null, rng=0).pvalue <= 0.001
        assert caltest.test([0.0, 1.0], [0, 1], "cox", null=null, rng=0).pvalue == 1.0


def test_wild_predictions_are_fitted_to_the_maximum():
    """Where Newton's method diverges, too: the score is 0 at every fit."""
    rng = np.random.default_rng(0)
    fitted = 0
    for _ in range(200):
        n = int(rng.integers(3, 60))
        x = np.clip(rng.standard_cauchy(n) * np.exp(rng.uniform(-3, 5)), -740, 700)
        y = (x > np.median(x)).astype(int)
        flipped = rng.integers(n, size=rng.integers(1, 3))
        y[flipped] = 1 - y[flipped]
        logits = Logits.of(np.column_stack([expit(-x), expit(x)]))
        y = y[logits.rows]
        weights = np.ones(len(y))
        if logits.separated(y, weights) is not None:
            continue
        fitted += 1
        line = fit_line(logits.values, y, weights)
        a, b = line.params
        misses = y - expit(a + b * logits.values)
        assert abs(misses.sum()) < 1e-6
        assert abs(misses @ logits.values) < 1e-6 * np.abs(logits.values).max()
        assert line.loglik >= logits.loglik(y, weights)
    assert fitted > 100


def test_separation_keeps_the_exact_null():
    p = expit(np.array([-3.0, -1.5, -0.5, 0.5, 1.5, 3.0]))
    outcomes, weights = every_outcome(binary(p).probs)
    values = form(CoxRecalibration(), p).of_labels(outcomes)
    assert np.isfinite(values).all()
    for level in (0.05, 0.2):
        # Exact p-values, by enumeration: P(p ≤ level) ≤ level.
        pvalues = np.array([weights[values >= value - 1e-9].sum() for value in values])
        assert weights[pvalues <= level].sum() <= level


# ---- All three


P200 = np.random.default_rng(7).beta(2, 1, 200)


def test_options_are_reported():
    assert HosmerLemeshow(5).parameters == {"groups": 5}
