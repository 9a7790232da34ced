"""`sample_size`: answers and intervals where the truth is known, and the fitted curve."""

from __future__ import annotations

import json

import numpy as np
import pytest
from planned import P, Q, citl, constant, exact_power
from scipy.stats import norm
from support import binomial_limits

import caltest
from caltest.planning.curve import PowerCurve, fit
from caltest.planning.search import Search
from caltest.planning.simulate import PowerPoint
from validation.generative import m1, m2


@pytest.mark.level
def test_sample_size_of_a_binomial_test():
    found = caltest.sample_size(constant(), **citl, n_datasets=600, rng=0)
    low, high = found.interval
    assert found.reached == "yes"
    assert low < found.n < high < 1.3 * low
    assert abs(exact_power(found.n) - 0.8) < 0.06
    closed = norm.isf(0.05) * np.sqrt(P * (1 - P)) + norm.ppf(0.8) * np.sqrt(Q * (1 - Q))
    assert found.n == pytest.approx((closed / (Q - P)) ** 2, rel=0.15)
    assert found.curve(found.n) == pytest.approx(0.8, abs=0.01)
    assert sum(point.n_datasets for point in found.points) >= 600


@pytest.mark.slow
def test_a_higher_power_takes_more_rows():
    some, more = (
        caltest.sample_size(constant(), **citl, power=power, n_datasets=150, rng=0)
        for power in (0.5, 0.95)
    )
    assert 2 * some.n < more.n


def test_a_power_that_is_not_reached():
    found = caltest.sample_size(m1, "ecd", min_n=20, max_n=80, n_datasets=50, rng=0)
    assert (found.n, found.reached, found.interval[1]) == (None, "no", None)
    assert [point.n for point in found.points] == [20, 40, 80]
    assert "A power of 0.8 is not reached with max_n = 80 rows" in found.summary()
    assert json.loads(json.dumps(found.to_dict(), allow_nan=False))["n"] is None


def test_a_power_that_is_reached_at_once():
    found = caltest.sample_size(m2, "ecd", min_n=200, n_datasets=50, rng=0)
    assert (found.n, found.reached) == (200, "at the smallest")
    assert found.interval[0] is None
    assert len(found.points) == 1
    assert "is already reached with min_n = 200 rows" in found.summary()


def oracle(power, seed, most=20_000):
    """A search that counts rejections of a test whose power is known."""
    rng = np.random.default_rng(seed)

    def count(n, start, stop):
        return PowerPoint(n, stop - start, int(rng.binomial(stop - start, power(n))))

    return Search(count, 0.05, 0.8, 50, most)


def z_test(n, at=700.0):
    return norm.cdf(norm.ppf(0.05) + (norm.ppf(0.8) - norm.ppf(0.05)) * np.sqrt(n / at))


def searched(power, seeds):
    """Search where the power is known; return the searches and their answers."""
    for seed in range(seeds):
        search = oracle(power, seed)
        search.double()
        search.refine(400)
        yield search, search.answer()


@pytest.mark.level
def test_intervals_hold_what_they_should():
    found = [answer for _, answer in searched(z_test, 30)]
    ends = [(low, high or np.inf) for low, high in (each["interval"] for each in found)]
    low, high = binomial_limits(30, 0.95)
    assert low <= np.mean([one <= 700 <= other for one, other in ends]) <= high
    assert np.isfinite(ends).all(axis=1).mean() > 0.8
    assert np.median([other / one for one, other in ends]) < 1.35
    answers = np.array([each["n"] for each in found])
    assert np.mean(np.log(answers / 700.0)) == pytest.approx(0.0, abs=0.03)


@pytest.mark.level
@pytest.mark.parametrize(
    ("power", "truth"),
    [
        (lambda n: 0.05 + 0.73 * -np.expm1(-n / 300), np.inf),  # levels off at .78
        (lambda n: 0.05 + 0.76 * -np.expm1(-n / 300), 300 * np.log(76)),
        (lambda n: 0.05 + 0.80 * -np.expm1(-n / 300), 300 * np.log(16)),
        (lambda n: min(0.05 + 0.1 * np.log(n), 1.0), np.exp(7.5)),
    ],
)
def test_intervals_where_the_power_levels_off(power, truth):
    held, furthest = 0, []
    for search, answer in searched(power, 12):
        low, high = answer["interval"]
        held += (low or 0) <= np.ceil(truth) <= (high or np.inf)
        doubled = max(n for n, point in ((p.n, p) for p in search.points) if point.n_datasets == 24)
        furthest.append(search.points[-1].n <= 2 * doubled)
        assert (answer["n"] is None) == (answer["reached"] == "no")
        if answer["reached"] == "yes" and high is None:
            assert "does not exclude that the power levels off" in search.notes()[-1]
    assert held >= 12 * binomial_limits(12, 0.93)[0]
    assert all(furthest)  # no end of work where there is no answer


def test_counts_on_no_curve_are_said_to_be():
    def saw(n):
        return 0.95 if n % 100 < 50 else 0.3

    ((search, _),) = list(searched(saw, 1))
    search.points = [PowerPoint(n, 200, round(200 * saw(n))) for n in range(310, 1000, 25)]
    assert "lie on no curve" in search.notes()[0]
    low, high = search.answer()["interval"]
    assert high is None or high > 1.5 * low


@pytest.mark.slow
def test_the_interval_holds_the_answer_and_stays_inside():
    never = caltest.sample_size(m1, "ecd", min_n=20, max_n=80, n_datasets=50, rng=0)
    assert (never.n, never.interval) == (None, (80, None))
    once = caltest.sample_size(m2, "ecd", min_n=200, n_datasets=50, rng=0)
    assert (once.n, once.interval) == (200, (None, 200))
    for at in (10.0, 48.0, 55.0, 900.0, 1050.0, 4000.0):
        for seed in range(3):
            search = oracle(lambda n, at=at: z_test(n, at), seed, 1000)
            search.double()
            if search.undecided:
                search.refine(80)
            found = search.answer()
            low, high = found["interval"]
            assert 50 <= (low or 50) <= (found["n"] or 1000) <= (high or 1000) <= 1000


def test_the_curve():
    truth = PowerCurve(0.05, 1.0, 120.0, 0.5, 0.8)
    assert truth(truth.n) == pytest.approx(0.8)
    assert truth(120.0) == pytest.approx(0.525)
    assert truth(1e-9) == pytest.approx(0.05, abs=1e-4)
    flat = PowerCurve(0.05, 0.79, 120.0, 0.5, 0.8)
    assert flat(1e6) == pytest.approx(0.79)
    assert (flat.n, flat.to_dict()["n"]) == (np.inf, "inf")
    n = [100, 200, 300, 400, 800, 1600]
    counts = [round(100_000 * float(truth(rows))) for rows in n]
    found = fit(n, counts, [100_000] * 6, 0.05, 0.8)
    assert found.curve.n == pytest.approx(truth.n, rel=0.01)
    assert found.curve.exponent == pytest.approx(0.5, rel=0.1)
    assert found.curve.highest == 1.0
    assert found.low < found.curve.n < found.high < 1.05 * found.low
    nothing = fit([50, 100], [2, 1], [24, 24], 0.05, 0.8)
    assert nothing.high == np.inf
    assert nothing.low > 100
    everything = fit([50], [24], [24], 0.05, 0.8)
    assert everything.low == 0.0
    assert everything.high < 60
    level = fit([100, 400, 1600, 6400], [200, 296, 300, 299], [400] * 4, 0.05, 0.8)
    assert (level.curve.n, level.high) == (np.inf, np.inf)
    assert level.curve.highest == pytest.approx(0.75, abs=0.03)
    again = fit([100, 100, 200, 200], [20, 20, 60, 40], [50, 50, 60, 60], 0.05, 0.8)
    assert again == fit([100, 200], [40, 100], [100, 120], 0.05, 0.8)
