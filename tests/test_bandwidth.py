"""Bandwidth rules against numpy, simulation and hand-sized values."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support import P6 as P

from caltest.kernels import Exponential

DISTANCES = ("tv", "euclidean", "hellinger")
MEDIANS = ("median", "median_exact", "median_full")
RULES = (*MEDIANS, "mean")


def width(rule, probs, distance="tv", weights=None):
    """Return the bandwidth of a rule."""
    return Exponential(rule, distance).fitted(probs, weights).bandwidth


def dense(probs, name="tv"):
    """Distance matrix by broadcasting."""
    s, t = probs[:, None], probs[None]
    if name == "tv":
        return np.abs(s - t).sum(-1) / 2
    if name == "hellinger":
        return np.sqrt(((np.sqrt(s) - np.sqrt(t)) ** 2).sum(-1) / 2)
    return np.sqrt(((s - t) ** 2).sum(-1))


def upper(matrix):
    return matrix[np.triu_indices(len(matrix), 1)]


def tied(rng, n, m=3, grid=4):
    """Predictions on a coarse grid: many equal rows and equal distances."""
    return rng.multinomial(grid, np.full(m, 1 / m), size=n) / grid


@pytest.mark.parametrize(
    ("rule", "value"), [("median", 0.5), ("median_exact", 0.5), ("median_full", 0.425), ("mean", 0.45)]
)
def test_hand_sized_values(rule, value):
    assert width(rule, P) == pytest.approx(value, rel=1e-15)


@pytest.mark.parametrize("name", DISTANCES)
@pytest.mark.parametrize("n", [2, 3, 5, 8, 39, 600])
def test_rules_are_numpys(n, name):
    probs = np.random.default_rng(n).dirichlet(np.ones(4), n)
    d = dense(probs, name)
    expected = {"median": np.median(upper(d)), "median_full": np.median(d), "mean": upper(d).mean()}
    for rule, value in expected.items():
        assert width(rule, probs, name) == pytest.approx(value, rel=1e-9)


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 10**6), st.integers(2, 70), st.integers(1, 6))
def test_medians_of_tied_distances_and_of_rows_that_count_as_several(seed, n, grid):
    rng = np.random.default_rng(seed)
    probs, counts = tied(rng, n, grid=grid), rng.integers(1, 4, n)
    d = dense(probs)
    for rule, expected in [("median_exact", upper(d)), ("median_full", d)]:
        if np.median(expected) > 0:
            assert width(rule, probs) == pytest.approx(np.median(expected), rel=1e-14)
    full = dense(np.repeat(probs, counts, axis=0))
    if np.median(full) > 0:
        found = width("median_full", probs, weights=counts.astype(float))
        assert found == pytest.approx(np.median(full), rel=1e-14)


def test_representatives_are_close_to_all_pairs(monkeypatch):
    monkeypatch.setattr("caltest.kernels.bandwidth.ALL_PAIRS_UP_TO", 2000)
    probs = np.random.default_rng(4).dirichlet(np.full(3, 0.5), 2200)
    exact = width("median_exact", probs)
    assert width("median", probs) == pytest.approx(exact, rel=0.02)
    assert width("median", probs) != exact
    assert width("mean", probs) == pytest.approx(width("mean", probs[:2000]), 0.02)


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("name", DISTANCES)
def test_row_order_does_not_matter(rule, name):
    n, rng = 600, np.random.default_rng(5)
    for probs in (rng.dirichlet(np.full(10, 0.3), n), tied(rng, n)):
        shuffled = probs[rng.permutation(n)]
        assert width(rule, probs, name) == width(rule, shuffled, name)
        assert width(rule, probs, name) == width(rule, np.asfortranarray(shuffled), name)


# ------------------------------------------------------------------ fallbacks and errors


@pytest.mark.parametrize("rule", MEDIANS)
@pytest.mark.parametrize("name", DISTANCES)
def test_zero_median_falls_back_to_the_mean_of_the_positive(rule, name):
    rng = np.random.default_rng(8)
    probs = np.vstack([np.tile(rng.dirichlet(np.ones(10)), (60, 1)), rng.dirichlet(np.ones(10), 6)])
    d = upper(dense(probs, name))
    kernel = Exponential(rule, name).fitted(probs)
    assert kernel.bandwidth == pytest.approx(d[d > 1e-7].mean(), rel=1e-9)
    assert kernel.notes == (
        "The median distance of the predictions is 0, so the bandwidth is the mean of their "
        "positive distances.",
    )


def test_rounding_is_not_a_distance():
    probs = np.tile(P[:1], (50, 1))
    probs[::2, 0] += 1e-16
    probs[-1] = P[1]
    assert width("median", probs) == pytest.approx(0.6)


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("n", [1, 2, 30])
def test_constant_predictions_give_one(rule, n):
    kernel = Exponential(rule).fitted(np.full((n, 10), 0.1))
    assert kernel.bandwidth == 1.0
    assert kernel.notes == (
        "All predictions are equal, so the bandwidth does not matter and is set to 1.",
    )
