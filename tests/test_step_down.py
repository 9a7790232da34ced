"""Westfall and Young's step-down maxima: hand counts, a plain loop, streaming, family-wise error."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support import binomial_limits

from caltest import InputError
from caltest.pvalues import StepDown, adjusted, step_down


def plain_loop(observed, draws):
    """The definition, one hypothesis at a time."""
    order = np.argsort(-np.asarray(observed), kind="stable")
    found, largest = np.empty(len(order)), 0.0
    for place, h in enumerate(order):
        maxima = [max(draw[k] for k in order[place:]) for draw in draws]
        raw = (1 + sum(value >= observed[h] - 1e-12 for value in maxima)) / (1 + len(draws))
        largest = max(largest, raw)
        found[h] = largest
    return found


def test_by_hand():
    draws = [[0.0, 5.0, 0.0], [2.0, 0.0, 0.0], [0.0, 0.0, 2.0], [0.0, 0.0, 0.0]]
    # 4 is reached once by maxima over all; 2 by those over the last two: twice; 1: once, but not below.
    assert step_down([2.0, 4.0, 1.0], draws).tolist() == [0.6, 0.4, 0.6]


@given(st.integers(1, 6), st.integers(1, 12), st.integers(0, 10_000), st.sampled_from([1, 3, 1000]))
def test_agrees_with_a_plain_loop(hypotheses, n_draws, seed, grid):
    """Ties are many on a coarse grid."""
    rng = np.random.default_rng(seed)
    values = np.round(grid * rng.normal(size=(n_draws + 1, hypotheses))) / grid
    observed, draws = values[0], values[1:]
    found = step_down(observed, draws)
    assert found.tolist() == plain_loop(observed, draws).tolist()
    assert found.min() >= 1.0 / (n_draws + 1)
    assert found.max() <= 1.0
    order = rng.permutation(hypotheses)
    assert step_down(observed[order], draws[:, order]).tolist() == found[order].tolist()


def test_streaming_is_the_same():
    rng = np.random.default_rng(0)
    observed, draws = rng.normal(size=20) + 1.0, rng.normal(size=(500, 20))
    whole = step_down(observed, draws)
    test = StepDown.of(observed)
    counts = sum(test.count(part) for part in reversed(np.array_split(draws, 5)))
    assert test.pvalues(counts, 500).tolist() == whole.tolist()


def test_one_hypothesis_is_the_usual_pvalue_and_copies_cost_nothing():
    draws = np.arange(99.0)[:, None]
    assert step_down([95.0], draws).tolist() == [0.05]
    copies = np.repeat(draws, 50, axis=1)
    assert step_down(np.full(50, 95.0), copies).tolist() == [0.05] * 50


def test_rounding_is_a_tie():
    assert step_down([0.1 + 0.2], [[0.3], [0.1]]).tolist() == [2 / 3]
    assert step_down([0.0, 0.3], [[0.0, 0.1 + 0.2]]).tolist() == [1.0, 1.0]


def test_values_that_are_no_numbers_count_for_the_null():
    assert step_down([np.nan, 1.0], [[0.0, 0.0]]).tolist() == [1.0, 0.5]
    assert step_down([0.5, 1.0], [[np.nan, 0.0], [0.0, 0.0]]).tolist() == [2 / 3, 2 / 3]
    assert step_down([np.inf, -np.inf], [[0.0, 0.0], [np.inf, -np.inf]]).tolist() == [2 / 3, 1.0]


def test_wrong_input():
    with pytest.raises(InputError, match="3 columns for 2 hypotheses"):
        step_down([1.0, 2.0], [[1.0, 2.0, 3.0]])
    with pytest.raises(InputError, match="no draws"):
        step_down([1.0, 2.0], np.empty((0, 2)))


def normals(rng, size, hypotheses, correlation):
    shared = rng.normal(size=(size, 1))
    own = rng.normal(size=(size, hypotheses))
    return np.sqrt(correlation) * shared + np.sqrt(1.0 - correlation) * own


@pytest.mark.slow
@pytest.mark.parametrize("correlation", [0.0, 0.9])
@pytest.mark.parametrize("false", [0, 3])
def test_family_wise_error(correlation, false):
    """Exact if all hypotheses are true; controlled if the first are false, and others are not."""
    rng = np.random.default_rng(7)
    repetitions, rejected = 2000, 0
    for _ in range(repetitions):
        values = normals(rng, 40, 8, correlation)  # 39 draws and the observed ones
        observed = values[0].copy()
        observed[:false] += 10.0
        rejected += (step_down(observed, values[1:])[false:] <= 0.05).any()
    low, high = binomial_limits(repetitions, 0.05)
    assert rejected / repetitions <= high
    assert rejected / repetitions >= low  # with 39 draws, .05 is reached exactly


@pytest.mark.level
def test_more_power_than_holm_where_statistics_hang_together():
    rng = np.random.default_rng(3)
    wins = []
    for _ in range(20):
        values = normals(rng, 400, 30, 0.95)
        observed = values[0] + 2.5
        single = (1 + (values[1:] >= observed).sum(axis=0)) / 400
        wins.append((step_down(observed, values[1:]) <= adjusted(single)).mean())
    assert np.mean(wins) > 0.9
