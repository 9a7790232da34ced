"""`sample_size`: answers that reach the power wanted, and intervals where the power is known."""

import json
from functools import partial

import numpy as np
import pytest
from planned import P, Q, citl, constant
from scipy.stats import binom, norm
from support import binomial_limits

import caltest
from validation.generative import m1, m2


def power_of_z_test(n):
    """Power of the approximate test of a constant prediction, by the law of the events."""
    events = np.arange(n + 1)
    rejected = events >= n * P + norm.isf(0.05) * np.sqrt(n * P * (1 - P))
    return float(binom.pmf(events, n, Q) @ rejected)


@pytest.mark.level
def test_the_number_of_rows_reaches_the_power_wanted():
    """Where the power of every number is known: it is hardly below 0.8, and intervals hold it."""
    ask = partial(caltest.sample_size, constant(), **citl, null="normal")
    found = [ask(n_datasets=100, rng=seed) for seed in range(16)]
    powers = np.array([power_of_z_test(each.n) for each in found])
    low, high = np.array([each.interval for each in found]).T
    assert np.mean((low <= powers) & (powers <= high)) >= binomial_limits(16, 0.95)[0]
    assert powers.mean() >= 0.8
    assert powers.min() > 0.65
    closed = norm.isf(0.05) * np.sqrt(P * (1 - P)) + norm.ppf(0.8) * np.sqrt(Q * (1 - Q))
    fewest, rows = (closed / (Q - P)) ** 2, np.mean([each.n for each in found])
    assert fewest < rows < 1.4 * fewest
    for each in found[:5]:
        (point,) = [point for point in each.points if point.n == each.n]
        assert (point.interval, each.reached) == (each.interval, "yes")
        assert point.power >= 0.8


@pytest.mark.slow
def test_a_higher_power_takes_more_rows():
    some, more = (
        caltest.sample_size(constant(), **citl, power=power, n_datasets=150, rng=0)
        for power in (0.5, 0.95)
    )
    assert 2 * some.n < more.n


def test_a_power_that_is_not_reached():
    found = caltest.sample_size(m1, "ecd", min_n=20, max_n=80, n_datasets=50, rng=0)
    assert (found.n, found.reached, found.interval) == (None, "no", found.points[-1].interval)
    assert [point.n for point in found.points] == [20, 40, 80]
    assert "A power of 0.8 is not reached with the most rows allowed, 80: with" in found.summary()
    assert json.loads(json.dumps(found.to_dict(), allow_nan=False))["n"] is None


def test_a_power_that_is_reached_at_once():
    found = caltest.sample_size(m2, "ecd", min_n=200, n_datasets=50, rng=0)
    assert (found.n, found.reached, len(found.points)) == (200, "at the smallest", 1)
    assert "is already reached with the fewest rows asked for, 200, where" in found.summary()
