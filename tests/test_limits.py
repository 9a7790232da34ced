"""Limits of mean errors, and the rows that show a view to be inside one."""

import numpy as np
import pytest
from scipy.stats import binom

from caltest import auditing
from caltest.auditing.limits import Goal, Wanted, rows_in_all, rows_needed
from caltest.bounds.intervals import error_bounds, mean_bounds

POINTS, RATIO = auditing.Limit.of(0.02, None), auditing.Limit.of(None, 1.25)
GOAL = Goal(POINTS, 0.05)


@pytest.mark.parametrize(
    ("limit", "predicted", "ends", "place"),
    [
        (POINTS, 0.1, (-0.01, 0.019), "inside"),
        (POINTS, 0.1, (-0.01, 0.021), "across"),
        (POINTS, 0.1, (0.021, 0.03), "beyond"),
        (POINTS, 0.1, (-0.03, -0.021), "beyond"),
        (RATIO, 0.1, (-0.02, 0.015), "inside"),
        (RATIO, 0.1, (-0.05, -0.03), "beyond"),
        (RATIO, 0.1, (0.021, 0.05), "beyond"),
        (
            auditing.Limit.of(0.02, 1.25),
            0.01,
            (-0.015, 0.01),
            "inside",
        ),  # points are wider where events are rare
        (auditing.Limit.of(0.02, 1.25), 0.5, (-0.1, 0.05), "inside"),  # the ratio where they are not
        (auditing.Limit.of(0.02, 1.25), 0.5, (0.11, 0.2), "beyond"),
    ],
)
def test_an_interval_is_inside_across_or_beyond(limit, predicted, ends, place):
    assert limit.place(predicted, *ends) == place


def test_no_limit_is_false():
    assert POINTS
    assert not auditing.Limit()


def chance(n, predicted, limit, level):
    """Return how often both limits of a calibrated view lie inside, by enumeration."""
    events = np.arange(n + 1)
    low, high = mean_bounds(np.full(n + 1, float(n)), events.astype(float), level)
    least, most = limit.allowed(predicted)
    return binom.pmf(events, n, predicted)[(low >= least) & (high <= most)].sum()


@pytest.mark.parametrize(
    "predicted", [pytest.param(0.001, marks=pytest.mark.slow), 0.02, 0.1, 0.5, 0.97, 0.0, 1.0]
)
@pytest.mark.parametrize("limit", [POINTS, RATIO, auditing.Limit.of(0.05, 1.1)])
def test_so_many_rows_are_needed(predicted, limit):
    (needed,) = rows_needed([Wanted(predicted, 1.0, False)], Goal(limit, 0.05))
    if predicted == 0.0 and limit.under is None:
        assert needed is None  # no rate but 0 is inside, and none proves it
        return
    assert chance(needed, predicted, limit, 0.05) >= 0.8
    assert chance(int(0.97 * needed) - 2, predicted, limit, 0.05) < 0.83


def test_many_views_need_more_and_shares_count():
    views = [Wanted(0.1, 1.0, False), Wanted(0.1, 0.5, False)]
    one, half = rows_needed(views, GOAL)
    assert half == pytest.approx(2 * one, rel=1e-3)
    assert 1.5 * one < rows_in_all(views[:1] * 21, GOAL) < 2.5 * one
    assert rows_needed([], GOAL) == []


def test_rows_by_the_bound_are_those_that_the_bound_takes():
    (needed,) = rows_needed([Wanted(0.1, 1.0, True)], GOAL)
    labels = np.arange(needed) < round(0.1 * needed)
    weights = np.where(np.arange(needed) % 2, 1.0, 1.0 + 1e-9)  # not alike, but nearly
    low, high = error_bounds(np.full(needed, 0.1), labels, 0.05, weights)
    assert POINTS.place(0.1, low, high) == "inside"
    few = needed // 3
    low, high = error_bounds(np.full(few, 0.1), np.arange(few) < round(0.1 * few), 0.05, weights[:few])
    assert POINTS.place(0.1, low, high) == "across"
