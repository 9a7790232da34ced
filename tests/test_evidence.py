"""Evidence: one scale for all statistics, and ranks among the draws that stay exact."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import gamma, norm, skew
from support import binomial_limits

from caltest.pvalues import evidence, evidence_of_draws, step_down


def test_of_a_normal_it_is_the_logarithm_of_the_tail():
    z = np.array([-2.0, 0.0, 1.0, 5.0, 40.0])
    assert evidence(z, 0.0, "greater") == pytest.approx(-norm.logsf(z))
    assert evidence(z, 0.0, "less") == pytest.approx(-norm.logcdf(z))
    assert evidence(z, 0.0, "two-sided") == pytest.approx(-norm.logsf(np.abs(z)) - np.log(2.0))


@pytest.mark.parametrize("shape", [2.0, 8.0, 50.0])
def test_of_a_gamma_it_is_nearly_that_too(shape):
    law = gamma(shape)
    tails = np.array([0.2, 0.01, 1e-4])
    z = (law.isf(tails) - shape) / np.sqrt(shape)
    found = evidence(z, 2.0 / np.sqrt(shape), "greater")
    assert found == pytest.approx(-np.log(tails), rel=0.05)
    assert (
        np.abs(evidence(z, 0.0, "greater") + np.log(tails)).max()
        > 5 * np.abs(found + np.log(tails)).max()
    )
    assert evidence(-z, -2.0 / np.sqrt(shape), "less") == pytest.approx(found)


@given(
    st.lists(st.floats(-1e6, 1e6), min_size=2, max_size=20),
    st.floats(-5.0, 5.0),
    st.sampled_from(["greater", "less", "two-sided"]),
)
def test_it_grows_with_how_extreme_a_value_is(z, skewness, alternative):
    found = evidence(np.sort(np.array(z)), skewness, alternative)
    assert found.min() >= -1e-9
    steps = np.diff(found)
    if alternative == "greater":
        assert (steps >= -1e-9).all()
    elif alternative == "less":
        assert (steps <= 1e-9).all()
    else:  # falls, then grows
        assert (np.diff(np.sign(np.where(np.abs(steps) < 1e-9, 0.0, steps))) >= -1).all()


def test_infinite_values():
    for skewness in (-2.0, 0.0, 2.0):
        assert evidence(np.inf, skewness, "greater") == np.inf
        assert evidence(-np.inf, skewness, "greater") == 0.0
        assert evidence(-np.inf, skewness, "two-sided") == np.inf


def plain_loop(values, alternative):
    """The definition, one row at a time."""
    far = max(values, key=lambda value: (abs(value - np.median(values)), value))
    others = np.delete(values, list(values).index(far))
    by_curve = [
        float(evidence((value - others.mean()) / others.std(), skew(others), alternative))
        for value in values
    ]
    found = []
    for one in by_curve:
        reached = sum(other >= one - 1e-9 for other in by_curve) - 1
        found.append(min(one, -np.log(reached / len(values))) if reached else one)
    return np.array(found)


@pytest.mark.parametrize("alternative", ["greater", "less", "two-sided"])
def test_agrees_with_a_plain_loop(alternative):
    rng = np.random.default_rng(1)
    for values in (rng.gamma(2.0, size=60), rng.normal(size=60) * 1e-3 + 5.0, rng.integers(0, 3, 60)):
        found = evidence_of_draws(np.asarray(values, dtype=float)[:, None], [alternative])[:, 0]
        assert found == pytest.approx(plain_loop(values, alternative), rel=1e-5, abs=1e-5)


@given(st.integers(0, 10**6), st.sampled_from([1e-200, 1e-9, 1.0, 1e100, 1e250]))
def test_units_do_not_matter(seed, unit):
    values = np.round(np.random.default_rng(seed).gamma(1.0, size=(40, 1)) * 8) / 8
    one = evidence_of_draws(values, ["two-sided"])
    assert evidence_of_draws(values * unit, ["two-sided"]) == pytest.approx(one, rel=1e-6, abs=1e-6)


@pytest.mark.slow
@given(st.integers(0, 10**6), st.sampled_from([1, 2, 1000]))
def test_all_rows_are_treated_alike(seed, grid):
    """Which row comes first changes nothing but the allowance for rounding."""
    values = np.round(np.random.default_rng(seed).normal(size=(12, 2)) * grid) / grid
    sides = ["greater", "two-sided"]
    found = evidence_of_draws(values, sides)
    for row in range(12):
        order = np.r_[row, np.delete(np.arange(12), row)]
        again = evidence_of_draws(values[order], sides)
        assert again[0] == pytest.approx(found[row], rel=1e-6, abs=1e-7)
        rest = again[1:][np.argsort(order[1:])]
        assert rest == pytest.approx(np.delete(found, row, axis=0), rel=1e-6, abs=1e-7)


def test_an_observed_value_stands_out_by_more_than_the_root_of_the_draws():
    values = np.r_[1e6, np.random.default_rng(0).normal(size=99)]
    found = evidence_of_draws(values[:, None], ["greater"])[:, 0]
    assert found[0] > 1e6
    assert found[1:].max() < 10.0


def test_ties_of_a_skewed_statistic_with_two_sides_count_for_the_null():
    """The middle of a skewed law is not its mean: less extreme is not always nearer to the mean."""
    values = np.zeros((40, 1))
    values[39] = 1.0
    found = evidence_of_draws(values, ["two-sided"])[:, 0]
    assert step_down(found[:1], found[1:, None]).tolist() == [1.0]


def test_a_constant_says_nothing_and_what_differs_from_it_alone_as_much_as_its_rank():
    same = np.full((50, 1), 0.3)
    for side in ("greater", "less", "two-sided"):
        found = evidence_of_draws(same, [side])
        assert np.ptp(found) == 0.0
        assert np.isfinite(found).all()
    one = same.copy()
    one[0] = 0.4
    assert evidence_of_draws(one, ["greater"])[0, 0] == pytest.approx(np.log(50))
    assert evidence_of_draws(one, ["less"])[0, 0] == 0.0


def test_rare_events_among_the_draws_do_not_drown_a_finding():
    """Of 60 statistics that hardly ever move, each moves in one draw or two."""
    rng = np.random.default_rng(6)
    rare = np.zeros((1000, 60))
    for column in rare.T:
        column[1 + rng.choice(999, size=rng.integers(1, 3), replace=False)] = 1.0
    clear = np.r_[8.0, rng.normal(size=999)][:, None]
    found = evidence_of_draws(np.hstack([rare, clear]), ["greater"] * 61)
    assert step_down(found[0], found[1:])[-1] == 0.001


@pytest.mark.parametrize("z", [6.0, 10.0, 20.0, 40.0])
def test_an_observed_value_far_out_leaves_the_draws_in_their_places(z):
    rng = np.random.default_rng(0)
    values = np.vstack([np.r_[z, np.zeros(19)], rng.normal(size=(999, 20))])
    for side in ("greater", "two-sided"):
        found = evidence_of_draws(values, [side] * 20)
        assert found[1:].max() < 13.0
        assert step_down(found[0], found[1:])[0] == 0.001


def test_rounding_says_nothing():
    values = np.full((100, 1), 0.1 + 0.2)
    values[::2] = 0.3
    assert np.ptp(evidence_of_draws(values, ["two-sided"])) == 0.0
    coarse = 1.0 + 1e-6 * np.arange(100.0)[:, None]
    assert np.ptp(evidence_of_draws(coarse, ["two-sided"], 1e-3)) == 0.0
    assert np.ptp(evidence_of_draws(coarse, ["two-sided"])) > 0.0


def test_the_observed_value_is_less_extreme_by_its_resolution():
    values = np.random.default_rng(2).normal(size=(100, 1))
    for side in ("greater", "less", "two-sided"):
        values[0] = -3.0 if side == "less" else 3.0
        exact = evidence_of_draws(values, [side])[0, 0]
        assert evidence_of_draws(values, [side], 0.5)[0, 0] < exact
    assert evidence_of_draws(np.r_[0.2, np.zeros(9), 1.0][:, None], ["two-sided"], 5.0)[0, 0] == 0.0


def test_values_that_are_not_finite():
    values = np.random.default_rng(3).normal(size=(30, 1))
    values[[0, 5]] = np.inf
    values[7] = np.nan
    found = evidence_of_draws(values, ["greater"])[:, 0]
    assert found[0] == found[5] == np.inf
    assert np.isnan(found[7])
    assert np.isnan(found).sum() == 1
    assert np.isnan(evidence_of_draws(np.full((5, 1), np.nan), ["greater"])).all()


LAWS = {
    "normal": lambda rng, size: rng.normal(size=size),
    "cauchy": lambda rng, size: rng.standard_cauchy(size),
    "rare event": lambda rng, size: (rng.random(size) < 0.03).astype(float),
    "constant": lambda rng, size: np.zeros(size),
    "few values": lambda rng, size: rng.integers(0, 3, size).astype(float),
    "sometimes infinite": lambda rng, size: np.where(rng.random(size) < 0.02, np.inf, rng.random(size)),
    "heavy": lambda rng, size: rng.pareto(0.5, size),
}


@pytest.mark.level
@pytest.mark.parametrize("name", LAWS)
def test_ranks_among_draws_are_exact(name):
    """P(p ≤ .05) is at most .05 for any law, and .05 where there are no ties."""
    rng, repetitions, draws = np.random.default_rng(4), 800, 39
    sides = ["greater", "two-sided", "less"]
    rejected = 0
    for _ in range(repetitions):
        values = np.stack([LAWS[name](rng, draws + 1) for _ in sides], axis=1)
        table = evidence_of_draws(values, sides)
        rejected += step_down(table[0], table[1:]).min() <= 0.05
    low, high = binomial_limits(repetitions, 0.05)
    assert rejected / repetitions <= high
    if name in ("normal", "cauchy", "heavy"):
        assert rejected / repetitions >= low


def test_a_skewed_and_a_symmetric_statistic_speak_one_language():
    """Neither takes the place of the largest more often than the other."""
    rng = np.random.default_rng(5)
    values = np.stack([rng.gamma(0.5, size=20_000), rng.normal(size=20_000)], axis=1)
    table = evidence_of_draws(values, ["greater", "greater"])
    extreme = table.max(axis=1) > np.quantile(table.max(axis=1), 0.98)
    assert 0.35 < (table[extreme, 0] > table[extreme, 1]).mean() < 0.65
    plain = (values - values.mean(axis=0)) / values.std(axis=0)
    extreme = plain.max(axis=1) > np.quantile(plain.max(axis=1), 0.98)
    assert (plain[extreme, 0] > plain[extreme, 1]).mean() > 0.85
