"""The usual numbers, against those of other packages."""

import numpy as np
import pytest
from sklearn.metrics import accuracy_score, brier_score_loss, log_loss, roc_auc_score

import caltest
from caltest.auditing.estimates import usual_numbers
from caltest.data import sample

RNG = np.random.default_rng(3)
P = RNG.beta(1.0, 3.0, 3000)
Y = (RNG.random(3000) < P**1.3).astype(int)
W = RNG.exponential(1.0, 3000)


@pytest.mark.parametrize("weights", [None, W])
def test_numbers_of_two_classes(weights):
    found = usual_numbers(sample(P, Y, weights=weights))
    given = {"sample_weight": weights}
    assert found.brier == pytest.approx(brier_score_loss(Y, P, **given))
    assert found.log_loss == pytest.approx(log_loss(Y, P, **given))
    assert found.auc == pytest.approx(roc_auc_score(Y, P, **given))
    assert found.accuracy is None
    parts = found.miscalibration - found.discrimination + found.uncertainty
    assert parts == pytest.approx(found.brier)
    line = caltest.recalibration(P, Y, weights=weights)
    assert (found.slope, found.intercept) == pytest.approx((line.slope, line.in_the_large))
    assert found.ece == pytest.approx(caltest.estimate(P, Y, "ece", weights=weights))
    assert found.miscalibration == pytest.approx(caltest.estimate(P, Y, "mcb_brier", weights=weights))
    assert (found.ici is None) == (weights is not None)


def test_the_smooth_curve_knows_a_known_error():
    """Of P(event) = p^1.3, Austin and Steyerberg's indices are those of p − p^1.3, or about."""
    p = RNG.beta(1.0, 3.0, 60_000)
    found = usual_numbers(sample(p, (RNG.random(60_000) < p**1.3).astype(int)))
    true = p - p**1.3
    for index, value in (
        (found.ici, true.mean()), (found.e50, np.median(true)), (found.e90, np.quantile(true, 0.9))
    ):  # fmt: skip
        assert index == pytest.approx(value, abs=0.01)
    assert found.observed_to_expected == pytest.approx((p**1.3).mean() / p.mean(), rel=0.03)


def test_numbers_of_many_classes_are_of_the_top_class():
    digits = caltest.datasets.load_digits_predictions("naive_bayes")
    found = usual_numbers(sample(digits.probs, digits.labels))
    assert found.lens == "top_label"
    assert found.auc is None
    assert found.accuracy == pytest.approx(accuracy_score(digits.labels, digits.probs.argmax(axis=1)))
    assert found.ece == pytest.approx(
        caltest.estimate(digits.probs, digits.labels, "ece", lens="top_label")
    )


def test_rows_that_determine_little():
    found = usual_numbers(sample(np.full(20, 0.3), np.zeros(20, int)))
    assert found.ici == pytest.approx(0.3)
    assert np.isnan(found.auc)
    assert np.isnan(found.slope)
    assert found.observed_to_expected == 0.0
