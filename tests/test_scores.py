"""Scores against their expectation, and the normal null of linear forms."""

import numpy as np
import pytest
from scipy.stats import norm
from support import dirichlet, labels_from

import caltest

RNG = np.random.default_rng(0)
P = RNG.random(80)
Y = (RNG.random(80) < P).astype(int)
PROBS = dirichlet(80, 4, 0)
LABELS = labels_from(PROBS, RNG)


def test_brier_of_many_classes():
    score = np.mean(((np.eye(4)[LABELS] - PROBS) ** 2).sum(axis=1))
    expected = score - np.mean(1 - (PROBS**2).sum(axis=1))
    assert caltest.estimate(PROBS, LABELS, "brier") == pytest.approx(expected, rel=1e-12)


def test_log_score_is_the_ecd():
    assert caltest.estimate(PROBS, LABELS, "log_score") == caltest.estimate(PROBS, LABELS, "ecd")


def test_spiegelhalters_z_as_published():
    z = np.sum((Y - P) * (1 - 2 * P)) / np.sqrt(np.sum((1 - 2 * P) ** 2 * P * (1 - P)))
    result = caltest.test(P, Y, "spiegelhalter", null="normal")
    assert result.statistic == pytest.approx(z, rel=1e-12)
    assert result.pvalue == pytest.approx(2 * norm.sf(abs(z)), rel=1e-9)
    assert result.guarantee == "asymptotic"


def test_p_values_of_score_and_z_agree():
    for probs, labels in ((P, Y), (PROBS, LABELS)):
        for null in ("monte_carlo", "moments", "normal"):
            one = caltest.test(probs, labels, "brier", null=null, rng=0).pvalue
            other = caltest.test(probs, labels, "spiegelhalter", null=null, rng=0).pvalue
            assert one == pytest.approx(other, rel=1e-6)


@pytest.mark.parametrize("null", ["monte_carlo", "moments", "normal"])
def test_z_where_no_label_can_move_it(null):
    halves = caltest.test([0.5] * 6, [0, 1, 1, 1, 1, 1], "spiegelhalter", null=null, rng=0)
    assert (halves.statistic, halves.pvalue) == (0.0, 1.0)
    certain = caltest.test([0.0, 1.0], [0, 1], "spiegelhalter", null=null, rng=0)
    assert (certain.statistic, certain.pvalue) == (0.0, 1.0)
    broken = caltest.test([0.0, 1.0, 1.0], [0, 1, 0], "spiegelhalter", null=null, rng=0)
    assert broken.statistic == np.inf
    assert 0 < broken.pvalue <= 0.002


def test_one_sided_p_values_of_the_normal_null_add_to_one():
    sides = [
        caltest.test(P, Y, "ecd", null="normal", alternative=s).pvalue for s in ("greater", "less")
    ]
    assert sum(sides) == pytest.approx(1.0)


@pytest.mark.slow
@pytest.mark.parametrize("statistic", ["brier", "spiegelhalter"])
def test_a_wrong_label_of_a_saturated_model_counts(statistic):
    """Softmax saturates: 1 − p is 1e-30, not 0, and one wrong label is all the evidence there is."""
    for m in (2, 3):
        probs = np.full((10_000, m), 1e-30)
        probs[:, 0] = 1.0
        labels = np.zeros(len(probs), dtype=int)
        assert caltest.test(probs, labels, statistic, rng=0).pvalue == 1.0
        labels[7] = 1
        for null in ("monte_carlo", "moments"):
            assert caltest.test(probs, labels, statistic, null=null, rng=0).pvalue <= 0.002


def test_uniform_rows_tell_nothing_of_the_brier_score():
    result = caltest.test(np.full((7, 3), 1 / 3), [0] * 7, "spiegelhalter", rng=0)
    assert (result.statistic, result.pvalue) == (0.0, 1.0)


@pytest.mark.parametrize("null", ["monte_carlo", "moments", "normal"])
def test_the_least_of_chances_counts(null):
    """1e-120 is as good as impossible, but it is not 0."""
    probs = [[0.5, 0.5]] * 20 + [[1 - 1e-120, 1e-120]] * 20
    labels = [0] * 38 + [1, 1]
    for statistic in ("brier", "spiegelhalter", "ecd"):
        assert caltest.test(probs, labels, statistic, null=null, rng=0).pvalue <= 0.002


def test_a_normal_p_value_that_is_no_good_says_so():
    probs = np.r_[np.full(300, 0.5), np.full(5, 1e-3)]
    labels = np.r_[np.zeros(150, dtype=int), np.ones(150, dtype=int), np.zeros(5, dtype=int)]
    (note,) = caltest.test(probs, labels, "ecd", null="normal").warnings[-1:]
    assert "far from normal" in note
    assert not any("normal" in note for note in caltest.test(P, Y, "ecd", null="normal").warnings)
