"""Bandwidth rules against numpy, simulation and hand-sized values."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support import P6 as P

from caltest.exceptions import InputError
from caltest.kernels import bandwidth
from caltest.kernels.bandwidth import (
    DISTANCES,
    RULES,
    Bandwidth,
    checked,
    distance_named,
    mean_tv_dirichlet,
    resolve,
)

MEDIANS = ("median", "median_exact", "median_full")


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


@pytest.fixture
def small_limits(monkeypatch):
    """Limits that bring every branch of the exact selection within reach of small data."""
    monkeypatch.setattr(bandwidth, "TILE", 7)
    monkeypatch.setattr(bandwidth, "HELD", 50)
    monkeypatch.setattr(bandwidth, "COLLECTED", 5)
    monkeypatch.setattr(bandwidth, "ALL_PAIRS_UP_TO", 40)
    monkeypatch.setattr(bandwidth, "REPRESENTATIVES", 20)


# ------------------------------------------------------------------ distances


@pytest.mark.parametrize("name", DISTANCES)
def test_distances_are_their_definitions(name):
    x = np.random.default_rng(0).dirichlet(np.full(5, 0.3), 30)
    metric = distance_named(name)
    np.testing.assert_allclose(metric.pairwise(x[:10], x), dense(x, name)[:10], atol=1e-7)
    np.testing.assert_allclose(metric.paired(x, x[::-1]), np.diag(dense(x, name)[:, ::-1]))
    np.testing.assert_allclose(metric.condensed(x), upper(dense(x, name)), atol=1e-7)
    assert metric.condensed(x[:1]).shape == (0,)


@pytest.mark.parametrize("name", DISTANCES)
@pytest.mark.parametrize("m", [2, 10, 1000])
def test_equal_predictions_are_at_distance_zero(name, m):
    x = np.random.default_rng(1).dirichlet(np.full(m, 0.2), 50)
    assert np.all(np.diag(distance_named(name).pairwise(x, x.copy())) == 0)


def test_unknown_distance():
    with pytest.raises(InputError, match=r"no distance 'euclidian'; did you mean 'euclidean'\?"):
        distance_named("euclidian")


# ------------------------------------------------------------------ rules


@pytest.mark.parametrize(
    ("rule", "value"),
    [("median", 0.5), ("median_exact", 0.5), ("median_full", 0.425), ("mean", 0.45)],
)
def test_hand_sized_values(rule, value):
    assert resolve(rule, P) == Bandwidth(pytest.approx(value, rel=1e-15), rule)


@pytest.mark.parametrize("name", DISTANCES)
@pytest.mark.parametrize("n", [2, 3, 5, 8, 39, 40])
@pytest.mark.usefixtures("small_limits")
def test_medians_are_numpys(n, name):
    probs = np.random.default_rng(n).dirichlet(np.ones(4), n)
    d = dense(probs, name)
    for rule in ("median", "median_exact"):
        assert resolve(rule, probs, name).value == pytest.approx(np.median(upper(d)), rel=1e-9)
    assert resolve("median_full", probs, name).value == pytest.approx(np.median(d), rel=1e-9)
    assert resolve("mean", probs, name).value == pytest.approx(upper(d).mean(), rel=1e-9)


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 10**6), st.integers(2, 70), st.integers(1, 6))
def test_medians_of_tied_distances(seed, n, grid):
    probs = tied(np.random.default_rng(seed), n, grid=grid)
    d = dense(probs)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(bandwidth, "TILE", 16)
        patch.setattr(bandwidth, "HELD", 100)
        patch.setattr(bandwidth, "COLLECTED", 3)
        for rule, expected in [("median_exact", upper(d)), ("median_full", d)]:
            if np.median(expected) > 0:
                assert resolve(rule, probs).value == pytest.approx(np.median(expected), rel=1e-14)


@pytest.mark.parametrize("collected", [bandwidth.COLLECTED, 0])
def test_selection_is_exact_on_any_values(collected, monkeypatch):
    monkeypatch.setattr(bandwidth, "COLLECTED", collected)
    rng = np.random.default_rng(2)
    mixed = [rng.random(500), np.full(300, 0.25), np.zeros(20), 10.0 ** -rng.integers(1, 300, 99)]
    values = np.concatenate(mixed)
    ordered = np.sort(values)
    alike = [(part, None) for part in mixed]
    weighed = [(part, np.full(len(part), 2.0)) for part in mixed]
    for rank in (0, 10, 19, 20, 150, 400, 700, len(values) - 1):
        assert bandwidth.quantile(alike, rank + 0.5, rank + 0.5) == ordered[rank]
        assert bandwidth.quantile(weighed, 2 * rank + 1, 2 * rank + 1) == ordered[rank]
        between = bandwidth.quantile(alike, rank + 0.9, rank + 1.1)
        assert between == 0.5 * (ordered[rank] + ordered[min(rank + 1, len(values) - 1)])


@pytest.mark.slow
@pytest.mark.parametrize("n", [2100, 2101])
def test_above_the_real_thresholds(n):
    probs = tied(np.random.default_rng(3), n, m=4, grid=30)
    expected = np.median(upper(distance_named("tv").pairwise(probs, probs)))
    for rule in ("median", "median_exact"):
        assert resolve(rule, probs).value == expected


def test_representatives_are_close_to_all_pairs():
    probs = np.random.default_rng(4).dirichlet(np.full(3, 0.5), 5200)
    exact = resolve("median_exact", probs).value
    assert resolve("median", probs).value == pytest.approx(exact, rel=0.02)
    assert resolve("median", probs).value != exact
    assert resolve("mean", probs).value == pytest.approx(resolve("mean", probs[:5000]).value, 0.02)


@pytest.mark.slow
@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("name", DISTANCES)
@pytest.mark.usefixtures("small_limits")
def test_row_order_does_not_matter(rule, name):
    if rule == "mean_tv_dirichlet" and name != "tv":
        pytest.skip("refused")
    n, rng = 90, np.random.default_rng(5)
    for probs in (rng.dirichlet(np.full(10, 0.3), n), tied(rng, n)):
        expected = resolve(rule, probs, name)
        for _ in range(3):
            shuffled = probs[rng.permutation(n)]
            assert resolve(rule, shuffled, name) == expected
            assert resolve(rule, np.asfortranarray(shuffled), name) == expected


# ------------------------------------------------------------------ the Dirichlet rule


@pytest.mark.parametrize("alpha", [[0.1] * 10, [0.3, 2.0, 5.0], [20.0, 0.5]])
def test_mean_tv_dirichlet_is_the_simulated_total_variation(alpha):
    x, y = np.random.default_rng(6).dirichlet(alpha, (2, 40_000))
    tv = np.abs(x - y).sum(axis=1) / 2
    assert abs(tv.mean() - mean_tv_dirichlet(alpha)) < 4 * tv.std() / 200


def test_mean_tv_dirichlet_limits():
    assert mean_tv_dirichlet([1, 1]) == pytest.approx(1 / 3, rel=1e-12)
    assert mean_tv_dirichlet([1e-9] * 4) == pytest.approx(0.75, rel=1e-6)  # one-hot draws
    assert 0 < mean_tv_dirichlet([1e5] * 3) < 0.01


def test_dirichlet_rule_recovers_its_parameters():
    probs = np.random.default_rng(7).dirichlet([0.5, 1.0, 2.0], 4000)
    value = resolve("mean_tv_dirichlet", probs).value
    assert value == pytest.approx(mean_tv_dirichlet([0.5, 1.0, 2.0]), rel=0.03)


def test_dirichlet_rule_on_one_hot_rows_and_absent_classes():
    one_hot = np.eye(4)[[0, 0, 1, 2]]
    assert resolve("mean_tv_dirichlet", one_hot).value == pytest.approx(1 - 6 / 16, rel=1e-6)


@pytest.mark.parametrize("alpha", [[1.0], [1.0, 0.0], [1.0, np.nan], [1.0, -1.0], [[1.0, 1.0]]])
def test_dirichlet_parameters_are_checked(alpha):
    with pytest.raises(InputError, match="at least two positive numbers"):
        mean_tv_dirichlet(alpha)


# ------------------------------------------------------------------ fallbacks and errors


@pytest.mark.parametrize("rule", MEDIANS)
@pytest.mark.parametrize("name", DISTANCES)
def test_zero_median_falls_back_to_the_mean_of_the_positive(rule, name):
    rng = np.random.default_rng(8)
    confident = rng.dirichlet(np.ones(10))
    probs = np.vstack([np.tile(confident, (60, 1)), rng.dirichlet(np.ones(10), 6)])
    d = upper(dense(probs, name))
    result = resolve(rule, probs, name)
    assert result.value == pytest.approx(d[d > 1e-7].mean(), rel=1e-9)
    assert result.notes == (
        "The median distance of the predictions is 0, so the bandwidth is the mean of their "
        "positive distances.",
    )


def test_rounding_is_not_a_distance():
    probs = np.tile(P[:1], (50, 1))
    probs[::2, 0] += 1e-16
    probs[-1] = P[1]
    result = resolve("median", probs)
    assert result.value == pytest.approx(0.6)
    assert result.notes


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("n", [1, 2, 30])
def test_constant_predictions_give_one(rule, n):
    result = resolve(rule, np.full((n, 10), 0.1))
    assert result == Bandwidth(
        1.0,
        rule,
        ("All predictions are equal, so the bandwidth does not matter and is set to 1.",),
    )


def test_numbers_are_returned():
    assert resolve(2, P) == Bandwidth(2.0, "given")
    assert type(checked(np.float32(0.5))) is float


@pytest.mark.parametrize("wrong", [0, -1.0, np.nan, np.inf, True, None, 1e-200, [1.0]])
def test_wrong_numbers(wrong):
    with pytest.raises(
        InputError, match=r"give a positive number, at least 1e-.*, or the name of a rule"
    ):
        checked(wrong)


def test_unknown_rule_and_unfit_distance():
    with pytest.raises(InputError, match=r"rule 'medain'; did you mean 'median'\?"):
        resolve("medain", P)
    with pytest.raises(InputError, match="; use 'median', 'median_exact'"):
        resolve("silverman", P)
    with pytest.raises(InputError, match="use distance='tv' or the rule 'mean'"):
        resolve("mean_tv_dirichlet", P, "euclidean")
