"""Point forecasts: what is known of their errors, by what is known of outcomes."""

import numpy as np
import pytest

import caltest
from caltest.predictive import Point


def _shares(n=400, seed=0):
    rng = np.random.default_rng(seed)
    x = rng.uniform(20, 60, n)
    return x, (x + rng.normal(0, 10, n)).clip(0, 100)


def test_guarantee_is_what_ends_allow_for():
    x, y = _shares()
    for more, guarantee in (
        ({}, "asymptotic"),
        ({"low": 0}, "asymptotic"),
        ({"low": 0, "high": 100}, "exact"),
        ({"symmetric": True}, "exact"),
    ):
        found = caltest.test(Point(x + 4, **more), y, rng=0)
        assert (found.guarantee, found.pvalue < 0.05) == (guarantee, True)
    low = caltest.test(Point(x - 4, low=0), y, alternative="less", rng=0)
    assert (low.guarantee, low.pvalue < 0.05) == ("exact", True)


def test_a_median_is_a_quantile_forecast_of_one_level():
    x, y = _shares()
    by_quantiles = caltest.test(caltest.predictive.Quantiles([0.5], x[:, None]), y, rng=0)
    assert caltest.test(Point(x, "median"), y, rng=0).pvalue == by_quantiles.pvalue


def test_slope_is_one_less_that_of_outcomes():
    x, y = _shares()
    slope = np.polyfit(x, y, 1)[0]
    assert caltest.estimate(Point(x), y, "point_slope") == pytest.approx(1 - slope)
    assert caltest.estimate(Point(x), y, "point_bias") == pytest.approx(np.mean(x - y))


@pytest.mark.parametrize(
    ("given", "found"),
    [
        ({"functional": "mode"}, "give 'mean'"),
        ({"functional": "quantile"}, "give 'mean'"),
        ({"low": 3, "high": 2}, "the smallest and the largest"),
        ({"low": 1.5}, "below low"),
        ({"functional": "expectile:0.7", "symmetric": True}, "leave it out"),
    ],
)
def test_what_is_no_forecast_is_refused(given, found):
    with pytest.raises(caltest.InputError, match=found):
        Point([1.0, 2.0, 3.0], **given)
