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
    weighted = caltest.estimate(Point(x), y, "point_bias", weights=x)
    assert weighted == pytest.approx(np.average(x - y, weights=x))


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


def test_an_audit_finds_the_group_in_units_of_the_outcome():
    x, y = _shares(1200)
    old = np.arange(1200) % 4 == 0
    y = (y - 9 * old).clip(0, 100)
    for more, exact in (({"low": 0, "high": 100}, True), ({"low": 0}, False), ({}, False)):
        found = caltest.audit(
            Point(x, **more), y, groups={"age": np.where(old, "old", "young")},
            features={"old": old * 1, "z": x % 3}, materiality=2, unit="EUR", n_resamples=199, rng=0,
        )  # fmt: skip
        assert (found.verdict, found.functional, found.unit) == ("material", "mean", "EUR")
        view = found.worst
        assert (view.group.value, view.exact, view.direction) == ("old", exact, "over")
        assert view.error == pytest.approx(np.mean(x[old] - y[old]))
        assert found.slices[0].error == pytest.approx(view.error)
    assert caltest.audit(Point(x), x + 0.1, materiality=50, rng=0).verdict != "within"


def test_a_mean_is_within_a_limit_by_exact_ends_alone():
    x, y = _shares(3000)
    assert caltest.audit(Point(x, low=0, high=100), y, materiality=3, rng=0).verdict == "within"
    one = caltest.audit(Point(x, low=0), y, materiality={"too_low": None, "too_high": 30}, rng=0)
    assert caltest.audit(Point(x, low=0), y, materiality_ratio=1.5, rng=0).verdict != "material"
    assert one.verdict == "within"  # that outcomes are larger than they look is not asked


def test_what_few_rows_carry_is_not_looked_at():
    x, y = np.ones(200), np.zeros(200)
    y[:3] = 60.0
    with pytest.raises(caltest.InputError, match="3 rows in effect"):
        caltest.audit(Point(x), y)
    assert caltest.test(Point(x), y).pvalue == 1.0


def test_slices_are_searched_by_bets():
    x, y = _shares(600)
    known = Point(x, low=0, high=100)
    found = caltest.test(known, y, features={"a": np.arange(600) % 7}, rng=0)
    assert (found.name, found.guarantee, found.pvalue > 0.05) == ("feature_scan", "exact", True)
    y = (y + 20 * (np.arange(600) % 7 == 3)).clip(0, 100)
    assert caltest.test(known, y, features={"a": np.arange(600) % 7}, rng=0).pvalue < 0.001
