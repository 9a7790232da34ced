"""CKCE: groups and other options."""

from dataclasses import replace
from itertools import product

import numpy as np
import pytest
from ridge import GROUPS, dense, kernel_matrix, some_labels
from support import P6, Y6, dirichlet, labels_from, residuals

import caltest
from caltest import InputError, _parallel, estimate
from caltest.data import Rows
from caltest.kernels import LinearGaussian
from caltest.statistics import CKCE, ckce

# ------------------------------------------------------------------ groups


def test_groups_multiply_the_kernel():
    labels = np.array([g == h for g, h in product(GROUPS, GROUPS)]).reshape(6, 6)
    expected = dense(kernel_matrix(P6) * labels, residuals(P6, Y6), 6**-0.25)
    for method in ("exact", "nystrom"):
        found = estimate(P6, Y6, CKCE(groups=GROUPS, method=method))
        assert found == pytest.approx(expected, rel=1e-10)


def test_numeric_groups_are_smoothed():
    age = np.array([20.0, 35.0, 31.0, 62.0, 48.0, 22.0])
    distances = np.abs(age[:, None] - age)
    width = np.median(distances[np.triu_indices(6, 1)])
    K = kernel_matrix(P6) * np.exp(-(distances**2) / (2 * width**2))
    expected = dense(K, residuals(P6, Y6), 6**-0.25)
    assert estimate(P6, Y6, CKCE(groups=age)) == pytest.approx(expected, rel=1e-10)
    assert estimate(P6, Y6, CKCE(groups=1e9 * age)) == pytest.approx(expected, rel=1e-10)


def test_groups_find_what_cancels_overall():
    """Too high in one group, too low in the other: calibrated, but in neither group."""
    rng = np.random.default_rng(0)
    p, group = rng.uniform(0.3, 0.7, 600), np.arange(600) % 2
    labels = (rng.random(600) < p + np.where(group, 0.2, -0.2)).astype(int)
    assert caltest.test(p, labels, "ckce", rng=0).pvalue > 0.05
    found = caltest.test(p, labels, CKCE(groups=group), rng=0)
    assert found.pvalue == 0.001
    assert found.parameters["groups"] == 2


def test_groups_are_compared_by_what_they_hold():
    assert CKCE(groups=GROUPS) == CKCE(groups=list(GROUPS))
    assert hash(CKCE(groups=GROUPS)) == hash(CKCE(groups=list(GROUPS)))
    assert CKCE(groups=GROUPS) != CKCE(groups=GROUPS[::-1])
    assert CKCE(groups=GROUPS) != CKCE()
    assert "groups=<3, 6 rows>" in repr(CKCE(groups=GROUPS))


# ------------------------------------------------------------------ options


def test_parameters_say_what_was_done(monkeypatch):
    probs = dirichlet(50, 3, 0)
    labels = some_labels(probs)

    def parameters(**options):
        return caltest.test(probs, labels, CKCE(**options), n_resamples=9, rng=0).parameters

    assert parameters() == {
        "kernel": "LinearGaussian", "bandwidth": LinearGaussian().fitted(probs).bandwidth,
        "bandwidth_rule": "median", "distance": "euclidean", "regularization": 50**-0.25,
        "regularization_rule": "n^-1/4", "method": "exact",
    }  # fmt: skip
    assert parameters(regularization=0.2)["regularization_rule"] == "given"
    low_rank = parameters(features=8)
    assert (low_rank["method"], low_rank["features"]) == ("nystrom", 8)
    assert 0 < low_rank["trace_error"] < 0.02
    assert parameters(method="fourier", seed=5)["feature_seed"] == 5
    monkeypatch.setattr(ckce, "EXACT_UP_TO", 49)
    assert parameters()["method"] == "nystrom"


def test_a_coarse_factorisation_is_said():
    probs = dirichlet(60, 5, 0, 0.3)
    result = caltest.test(probs, some_labels(probs), CKCE(features=2), n_resamples=9, rng=0)
    assert any("leave out" in note and "% of its trace" in note for note in result.warnings)


def test_options_of_a_fitted_statistic_can_be_replaced():
    predictions = Rows(dirichlet(50, 3, 0))
    fitted = CKCE(features=5).fitted(predictions)
    assert fitted.fitted(predictions) is fitted
    other = replace(fitted, features=9, regularization=0.5).fitted(predictions)
    assert other.parameters["features"] == 9
    assert other.parameters["regularization_rule"] == "given"
    elsewhere = fitted.fitted(Rows(dirichlet(30, 3, 1)))
    assert elsewhere.regularization == fitted.regularization
    assert elsewhere.parameters["regularization_rule"] == "n^-1/4"


def test_too_little_memory_is_said_beforehand(monkeypatch):
    monkeypatch.setattr(_parallel, "available", lambda: 4e9)
    predictions = Rows(np.broadcast_to([0.5, 0.5], (20_000, 2)))
    message = r"of 20000 rows needs about 6.8 GB of memory, but 4 GB are available; use"
    with pytest.raises(InputError, match=message):
        CKCE(method="exact").given(predictions)
    assert _parallel.available() > 1e6


def test_a_singular_matrix_is_refused():
    probs = np.tile(P6, (30, 1))
    with pytest.raises(InputError, match="singular to rounding; give a larger regularization"):
        estimate(probs, np.tile(Y6, 30), CKCE(regularization=1e-30, method="exact"))


def test_columns_too_few_for_a_small_regularization_are_said():
    probs = dirichlet(2500, 10, 0)
    statistic = CKCE(LinearGaussian(0.3), regularization=1e-5, method="nystrom")
    (note,) = statistic.fitted(Rows(probs)).notes
    assert "much for so small a regularization" in note
    assert CKCE(method="nystrom").fitted(Rows(probs[:600])).notes == ()


@pytest.mark.parametrize("alpha", [0.1, 1.0])
def test_the_default_columns_are_enough(alpha):
    probs = dirichlet(700, 10, 1, alpha)
    labels = labels_from(probs, np.random.default_rng(1))
    exact = caltest.estimate(probs, labels, CKCE(method="exact"))
    assert caltest.estimate(probs, labels, CKCE(method="nystrom")) == pytest.approx(exact, rel=3e-3)
