"""Point forecasts: what is known of their errors, by what is known of outcomes."""

import json

import jsonschema
import numpy as np
import pytest
import scipy.special
import scipy.stats
from support import binomial_limits

import caltest
from caltest.predictive import Point
from caltest.statistics import points as of_points


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


@pytest.mark.parametrize("unit", [1.0, 1e30, 1e-30])
@pytest.mark.parametrize(("n", "mean", "times"), [(7, 0.2, 1.0), (6000, 0.01, 1.0), (6000, 0.3, 0.01)])
def test_bets_are_the_mean_of_products_though_few_shares_are_looked_at(n, mean, times, unit):
    sums = np.random.default_rng(n).beta(2, 5, n) - 0.3
    for counts in (np.ones(n), 1.0 + np.arange(n) % 2):
        for sign in (1, -1):
            room = float((counts * mean - sign * sums).max()) * 1.01
            shares, weights = of_points.bets_of(n * times)
            gains = shares[:, None] * (sign * sums - counts * mean) / room
            plain = scipy.special.logsumexp(times * np.log1p(gains).sum(axis=1), b=weights)
            found = of_points.Bets(unit * sums, counts).log_wealth(
                unit * room, unit * mean, sign, times
            )
            assert found == pytest.approx(plain, rel=1e-12, abs=1e-12)


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
    certain, given = Point(np.zeros(600), low=0, high=100), {"a": np.arange(600) % 7}
    assert caltest.test(certain, y, features=given, rng=0).pvalue == pytest.approx(0.0, abs=1e-99)
    asked = {"materiality": {"too_low": 1, "too_high": None}, "statistics": "point_bias"}
    assert not caltest.audit(certain, 0 * y, features=given, rng=0, **asked).rejected


@pytest.mark.parametrize(
    ("made", "name"),
    [
        (lambda x: x - 6, "shift"),
        (lambda x: 0.8 * x, "factor"),
        (lambda x: 10 + 0.5 * x, "line"),
        (lambda x: 40 + 2.4 * np.sign(x - 40) * np.sqrt(abs(x - 40)), "isotonic"),
    ],
)
def test_the_correction_that_was_planted_is_chosen(made, name):
    rng = np.random.default_rng(0)
    x = rng.uniform(20, 60, 1200)
    y = made(x) + rng.normal(0, 3, 1200)
    found = caltest.audit(Point(x, low=-20, high=110), y, statistics="point_cumulative", rng=0)
    (best,) = (each for each in found.remedies if each.chosen)
    assert (best.name, best.clear, best.leaves) == (name, True, False)
    assert best.slope is None or 30 * best.slope + best.shift == pytest.approx(made(30), abs=0.5)
    assert (best.loss, best.loss - best.gain) == pytest.approx((np.mean((x - y) ** 2), 9), rel=0.1)
    curve = found.views[0].isotonic
    known = [each for each in zip(curve.at, curve.low, curve.high, strict=True) if each[1] is not None]
    assert all(low <= made(at) <= high for at, low, high in known)


def test_an_expectile_is_corrected_by_asymmetric_squares():
    rng = np.random.default_rng(0)
    x, noise = rng.uniform(20, 60, 1000), rng.normal(0, 2, 1000)
    y = x + noise - scipy.stats.expectile(noise, 0.8)
    given = Point(x + 4, "expectile:0.8")
    found = caltest.audit(given, y, statistics="point_bias", n_resamples=99, rng=0)
    (best,) = (each for each in found.remedies if each.chosen)
    assert (best.name, round(best.shift, 1), round(best.after, 1)) == ("shift", -4.0, 0.0)


def test_ends_that_are_not_known_are_null_in_json_and_said():
    x, y = _shares(600)
    for more, sides in (({}, 3), ({"low": 0}, {"too_low": None, "too_high": 0.1})):
        found = caltest.audit(
            Point(x, **more), y, statistics="point_bias", materiality=sides, n_resamples=99, rng=0
        )
        data = json.loads(json.dumps(found.to_dict(), allow_nan=False))
        jsonschema.validate(data, caltest.report.schema())
        parts = [part[end] for part in data["views"][0]["parts"] for end in ("low", "high")]
        assert (None in parts, "inf" in str(parts), data["at_most"]) == (True, False, None)
        assert found.story.mark(found.views[0]).place == ("few" if more else "ends")
    flat = caltest.audit(Point(np.full(600, 30.0)), y, statistics="point_bias", n_resamples=99, rng=0)
    assert "Isotonic" not in caltest.report.to_html(flat)  # of one forecast there is nothing to draw


@pytest.mark.level
def test_rows_that_are_said_to_be_needed_are_enough():
    def found(rows, seed):
        x, y = _shares(rows, seed)
        given = Point(x, low=0, high=100)
        return caltest.audit(given, y, statistics="point_bias", materiality=1.5, rng=0)

    needed = found(250, 0).rows_needed
    assert 38 <= sum(found(needed, seed).verdict == "within" for seed in range(1, 61)) <= 59


@pytest.mark.level
def test_bets_keep_their_level_though_rows_differ_and_signs_do_about():
    rng, p, trials = np.random.default_rng(0), {True: [], False: []}, 400
    for k in range(trials):
        right_on_average = (rng.random(100) < np.repeat([0.6, 0.4], 50)) * 1.0
        bets = Point(np.full(100, 0.5), low=0, high=1)
        p[True].append(caltest.test(bets, right_on_average, rng=k).pvalue)
        x = rng.uniform(0.2, 0.8, 150)
        near_ends = rng.beta(0.6 * x, 0.6 * (1 - x))
        p[False].append(caltest.test(Point(x), near_ends, n_resamples=199, rng=k).pvalue)
    for exact, found in p.items():
        rate = np.mean(np.array(found) <= 0.05)
        assert rate <= binomial_limits(trials, 0.05 if exact else 0.075)[1]
    assert rate > 0.0


def test_slopes_that_few_forecasts_carry_are_not_looked_at():
    rng = np.random.default_rng(0)
    x = np.append(np.full(6, 100.0), np.zeros(600))
    found = caltest.test(Point(x), x + rng.exponential(size=606) - 1, "point_slope", rng=0)
    assert (found.pvalue, "too few" in found.summary()) == (1.0, True)


def test_symmetric_rows_of_a_cluster_need_not_add_up_to_a_symmetric_sum():
    x, y = _shares(400)
    one = caltest.test(Point(x, symmetric=True), y, clusters=np.arange(400) // 2, rng=0)
    assert one.guarantee == "asymptotic"


def test_groups_in_which_what_is_rare_did_not_occur_are_not_looked_at():
    rng = np.random.default_rng(0)
    x, branch = np.full(6000, 10.0), np.where(np.arange(6000) < 600, np.arange(6000) % 10, 10)
    y = 100.0 * x * (rng.random(6000) < 0.01)
    found = caltest.audit(Point(x), y, groups={"branch": branch}, n_resamples=199, rng=0)
    assert not found.rejected
    assert {view.rows for view in found.views} == {6000, 5400}
    assert sum("rows in effect" in each.reason for each in found.skipped) == 10


def test_what_is_guaranteed_rests_on_bets_alone():
    x, y = _shares()
    with pytest.raises(caltest.InputError, match="nothing is exact"):
        caltest.audit(Point(x + 9), y, guaranteed=True)
    assert not caltest.audit(Point(x + 9, low=0), y, guaranteed=True, rng=0).rejected
    assert caltest.audit(Point(x - 9, low=0), y, guaranteed=True, rng=0).rejected


def test_weights_that_differ_in_few_rows_are_no_function_of_outcomes():
    x, y = _shares(60)
    weights = np.where(np.arange(60) % 10 == 3, 2.0, 1.0)
    assert caltest.test(Point(x, low=0, high=100), y, weights=weights, rng=0).pvalue > 0.05


def test_of_expectiles_forecasts_and_their_errors_are_shown():
    x, y = _shares()
    view = caltest.audit(Point(x, "expectile:0.8", low=0, high=100), y, rng=0).views[0]
    assert view.predicted == pytest.approx(x.mean())
    assert view.error == pytest.approx(np.mean(2 * np.abs((y <= x) - 0.8) * (x - y)))


def test_slices_of_amounts_that_are_too_low_are_found_by_bets():
    rng = np.random.default_rng(0)
    rate, area = rng.uniform(0.1, 0.4, 2000), rng.choice(["city", "town"], 2000)
    y = rng.poisson(rate * np.where((area == "city") & (rate > 0.3), 2.0, 1.0))
    found = caltest.audit(Point(rate, low=0), y, features={"area": area, "rate": rate}, rng=0)
    assert "area = city" in found.slices[0].rule
    assert found.slices[0].adjusted_pvalue < 0.001
    assert not caltest.audit(
        Point(rate, low=0), rng.poisson(rate), features={"area": area}, rng=0
    ).rejected
