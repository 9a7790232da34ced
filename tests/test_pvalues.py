"""Counting exceedances: ties, infinities, two sides, Clopper–Pearson."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binomtest

from caltest import pvalues

DRAWS = np.array([1.0, 2.0, 2.0, 3.0])
SIDES = ["greater", "less", "two-sided"]


@pytest.mark.parametrize(
    ("observed", "greater", "less", "both"),
    [(2.0, 3, 3, 3), (0.0, 4, 0, 0), (4.0, 0, 4, 0), (3.0, 1, 4, 1), (2.5, 1, 3, 1)],
)
def test_hand_counts(observed, greater, less, both):
    assert [pvalues.count(DRAWS, observed, side) for side in SIDES] == [greater, less, both]


def test_pvalues():
    assert pvalues.pvalue(0, 99, "greater") == 0.01
    assert pvalues.pvalue(99, 99, "less") == 1.0
    assert pvalues.pvalue(0, 99, "two-sided") == 0.02
    assert pvalues.pvalue(99, 99, "two-sided") == 1.0


def test_rounding_is_a_tie():
    """Sums in another order are equal, whatever the scale."""
    for scale in (1e-12, 1.0, 1e12):
        draws = scale * np.array([0.3, 1.0, -1.0])
        assert pvalues.count(draws, scale * (0.1 + 0.2), "greater") == 2
        assert pvalues.count(draws, scale * 0.3 * (1 + 1e-6), "greater") == 1


def test_infinities():
    draws = np.array([-np.inf, 0.0, 1.0, np.inf])
    assert pvalues.count(draws, np.inf, "greater") == 1
    assert pvalues.count(draws, -np.inf, "greater") == 4
    assert pvalues.count(draws, 1.0, "greater") == 2
    assert pvalues.count(draws, -np.inf, "less") == 1
    assert pvalues.count(np.full(3, np.inf), np.inf, "greater") == 3


def test_a_draw_that_is_not_a_number_counts_for_the_null():
    draws = np.array([np.nan, 0.0, np.nan])
    assert pvalues.count(draws, 1.0, "greater") == 2
    assert pvalues.count(draws, -1.0, "less") == 2


@given(st.lists(st.integers(-3, 3), min_size=1, max_size=9), st.integers(-4, 4), st.sampled_from(SIDES))
def test_never_zero_never_above_one(draws, observed, side):
    values = np.array(draws, dtype=float)
    count = pvalues.count(values, observed, side)
    assert 0.0 < pvalues.pvalue(count, len(values), side) <= 1.0
    low, high = pvalues.interval(count, len(values), side)
    share = min(1.0, (2 if side == "two-sided" else 1) * count / len(values))
    assert 0.0 <= low <= share + 1e-12
    assert share - 1e-12 <= high <= 1.0


@pytest.mark.parametrize(("count", "resamples"), [(0, 99), (3, 99), (50, 99), (99, 99), (7, 10_000)])
def test_interval_is_clopper_pearson(count, resamples):
    expected = binomtest(count, resamples).proportion_ci(0.95, "exact")
    found = pvalues.interval(count, resamples, "greater")
    assert found == pytest.approx((expected.low, expected.high), rel=1e-6)
    assert pvalues.interval(count, resamples, "two-sided") == pytest.approx(
        (min(1, 2 * found[0]), min(1, 2 * found[1]))
    )


def test_combining_sides():
    assert [pvalues.combine_sides(0.2, 0.9, side) for side in SIDES] == [0.2, 0.9, 0.4]
    assert pvalues.combine_sides(0.6, 0.7, "two-sided") == 1.0
