"""Conditional moments, cumulants and p-values against complete enumeration of all label vectors."""

from dataclasses import replace

import numpy as np
import pytest
from support import central_moments, dirichlet, every_outcome, kernels_for

import caltest
from caltest._parallel import Workers
from caltest.data import Rows
from caltest.forms import LinearSum
from caltest.kernels import Exponential, Gaussian
from caltest.statistics import STATISTICS, BiasedSKCE, LinearSKCE, UnbiasedSKCE

SHAPES = [(5, 2), (4, 3), (5, 3)]


def mixed(n, m):
    """Predictions with an exact zero, a certain row and a rare class among them."""
    probs = dirichlet(n, m, 10 * n + m)
    probs[0] = np.eye(m)[1]
    probs[1] = [0.0] * (m - 2) + [0.3, 0.7]
    probs[2] = [0.99] + [0.01 / (m - 1)] * (m - 1)
    return probs


@pytest.mark.parametrize("statistic", [BiasedSKCE, UnbiasedSKCE])
@pytest.mark.parametrize("name", kernels_for(2))
@pytest.mark.parametrize(("n", "m"), SHAPES)
def test_quadratic_moments(statistic, name, n, m):
    probs = mixed(n, m)
    form = statistic(kernels_for(m)[name]).given(Rows(probs))
    outcomes, chances = every_outcome(probs)
    mean, variance, third = central_moments(form.of_labels(outcomes), chances)
    moments = form.moments()
    assert moments.mean == pytest.approx(mean, rel=1e-9, abs=1e-14)
    assert moments.variance == pytest.approx(variance, rel=1e-9)
    assert moments.skewness == pytest.approx(third / variance**1.5, rel=1e-9, abs=1e-9)
    assert moments.skewness_error == 0.0
    if statistic is UnbiasedSKCE:
        assert moments.mean == 0.0


@pytest.mark.slow
def test_moments_do_not_depend_on_tiles_or_workers():
    probs = dirichlet(700, 4, 0)
    form = UnbiasedSKCE().given(Rows(probs))
    assert form.moments() == form.moments(Workers(2))
    shuffled = np.random.default_rng(1).permutation(probs)
    other = UnbiasedSKCE().given(Rows(shuffled)).moments()
    assert other.variance == pytest.approx(form.moments().variance, rel=1e-10)
    assert other.skewness == pytest.approx(form.moments().skewness, rel=1e-8)


def generator_by_enumeration(values, chances, t):
    tilted = chances * np.exp(t * values)
    mass = tilted.sum()
    mean = tilted @ values / mass
    return np.log(mass), mean, tilted @ (values - mean) ** 2 / mass


@pytest.mark.parametrize("name", kernels_for(2))
@pytest.mark.parametrize(("n", "m"), [(4, 2), (5, 3)])
def test_linear_skce_cumulants(name, n, m):
    probs = np.random.default_rng(0).permutation(mixed(n, m))
    form = LinearSKCE(kernels_for(m)[name]).given(Rows(probs))
    outcomes, chances = every_outcome(probs)
    values = form.of_labels(outcomes)
    for t in (-30.0, -1.0, -1e-3, 0.0, 0.1, 2.0, 25.0):
        expected = generator_by_enumeration(values, chances, t)
        assert form.cumulant_generator(t) == pytest.approx(expected, rel=1e-9, abs=1e-11)


def test_factorised_and_enumerated_cumulants_agree():
    probs = dirichlet(50, 6, 3, 0.3)
    form = LinearSKCE(Gaussian(0.5)).given(Rows(probs))
    weights, _ = form.components[0]
    same = replace(form, components=((weights, np.eye(6)),))
    for t in (-20.0, 0.0, 3.0, 100.0):
        assert form.cumulant_generator(t) == pytest.approx(same.cumulant_generator(t), rel=1e-9)


def test_linear_form_cumulants_with_impossible_classes():
    probs = mixed(4, 3)
    with np.errstate(divide="ignore"):
        table = -np.log(probs)  # infinite where a class is impossible
    form = LinearSum(table, probs)
    outcomes, chances = every_outcome(probs)
    possible = chances > 0
    values = form.of_labels(outcomes[possible])
    assert np.isfinite(values).all()
    for t in (-4.0, -0.5, 0.0, 0.3, 0.9):
        expected = generator_by_enumeration(values, chances[possible], t)
        assert form.cumulant_generator(t) == pytest.approx(expected, rel=1e-10, abs=1e-12)
    assert form.value(outcomes[np.argmax(chances == 0)]) == np.inf


# ------------------------------------------------------------------ the trace for many rows


@pytest.fixture
def many_rows(monkeypatch):
    """Take the path for many rows whatever their number."""

    def approximate(form):
        with monkeypatch.context() as patch:
            patch.setattr("caltest.forms.moments.EXACT_WORK", 0.0)
            return form.moments()

    return approximate


@pytest.mark.parametrize("statistic", [BiasedSKCE, UnbiasedSKCE])
@pytest.mark.parametrize(("m", "alpha"), [(10, 0.1), (3, 1.0), (2, 0.3)])
def test_low_rank_and_probes(statistic, m, alpha, many_rows):
    kernel = Gaussian() if m == 2 else Exponential()  # of two classes the other is exact, always
    form = statistic(kernel).given(Rows(dirichlet(400, m, 5, alpha)))
    exact, approximate = form.moments(), many_rows(form)
    assert exact.skewness_error == 0.0 < approximate.skewness_error < 0.05
    assert approximate.variance == exact.variance
    assert abs(approximate.skewness - exact.skewness) <= 5 * approximate.skewness_error + 1e-6


def test_low_rank_and_probes_with_a_matrix_kernel(many_rows):
    probs = dirichlet(150, 3, 6, 0.5)
    form = UnbiasedSKCE(kernels_for(3)["matrix_2"]).given(Rows(probs))
    exact, approximate = form.moments(), many_rows(form)
    assert abs(approximate.skewness - exact.skewness) <= 5 * approximate.skewness_error + 1e-6


def test_low_rank_and_probes_ignore_the_row_order(many_rows):
    probs = dirichlet(300, 5, 7, 0.3)
    one = many_rows(UnbiasedSKCE().given(Rows(probs)))
    shuffled = np.random.default_rng(0).permutation(probs)
    other = many_rows(UnbiasedSKCE().given(Rows(shuffled)))
    assert other.skewness == pytest.approx(one.skewness, rel=1e-6)


def test_low_rank_and_probes_with_certain_rows(many_rows):
    certain = np.eye(3)[np.arange(90) % 3]
    assert many_rows(UnbiasedSKCE().given(Rows(certain))).variance == 0.0
    some = np.vstack([certain, dirichlet(200, 3, 8)])
    form = UnbiasedSKCE().given(Rows(some))
    exact, approximate = form.moments(), many_rows(form)
    assert abs(approximate.skewness - exact.skewness) <= 5 * approximate.skewness_error + 1e-6


# ------------------------------------------------------------------ p-values


def events(n):
    """Probabilities of an event, irregular, so that sums over rows are on no lattice."""
    ones = np.random.default_rng(8).uniform(0.2, 0.7, n)
    return np.column_stack([1.0 - ones, ones])


def exact_tail(form, probs, x):
    """P(T ≥ x) of a sum over rows: all outcomes of either half of them, the others at class 0."""
    n, half = len(probs), len(probs) // 2
    zero = form.value(np.zeros(n, dtype=int))
    sums, chances = [], []
    for part in (slice(0, half), slice(half, n)):
        outcomes, mass = every_outcome(probs[part])
        labels = np.zeros((len(outcomes), n), dtype=int)
        labels[:, part] = outcomes
        sums.append(form.of_labels(labels) - zero)
        chances.append(mass)
    order = np.argsort(sums[1])
    above = np.append(np.cumsum(chances[1][order][::-1])[::-1], 0.0)
    return chances[0] @ above[np.searchsorted(sums[1][order], x - 1e-12 - zero - sums[0])]


def nearest(values, share):
    """The place of the value that this share of all are at least as large as."""
    return int(np.argsort(-values)[int(share * len(values))])


@pytest.mark.parametrize("statistic", ["brier", "log_score"])
@pytest.mark.parametrize("level", [0.05, 0.01])
def test_pvalues_of_a_sum_are_the_exact_tail(statistic, level):
    """Both sides and twice the smaller one; all 2^24 outcomes are counted."""
    probs = events(24)
    form = STATISTICS[statistic]().given(Rows(probs))
    drawn = (np.random.default_rng(9).random((4000, 24)) < probs[:, 1]).astype(int)
    values = form.of_labels(drawn)
    for side, signed in (("greater", values), ("less", -values)):
        labels = drawn[nearest(signed, level)]
        tail = exact_tail(form, probs, form.value(labels))
        exact = tail if side == "greater" else 1.0 - tail  # no outcome is tied
        assert exact == pytest.approx(level, rel=0.4)
        one, two = (
            caltest.test(probs, labels, statistic, null="moments", alternative=each)
            for each in (side, "two-sided")
        )
        assert one.n_resamples is two.n_resamples is None
        assert one.pvalue == pytest.approx(exact, rel=0.01)
        assert two.pvalue == pytest.approx(2.0 * exact, rel=0.01)


@pytest.fixture(scope="module")
def many_draws():
    """Predictions, and 100 000 label vectors drawn from them without the package's sampler."""
    probs = dirichlet(120, 3, 12)
    u = np.random.default_rng(11).random((100_000, 120))
    limits = np.cumsum(probs, axis=1)
    return probs, (u > limits[:, 0]).astype(np.uint8) + (u > limits[:, 1])


@pytest.mark.level
@pytest.mark.parametrize("statistic", ["skce_uq", "skce_b", "skce_ul"])
def test_pvalues_of_a_kernel_statistic_are_the_exact_tail(statistic, many_draws):
    """The share of the draws has a standard error of 1.4 % at .05, of 3.1 % at .01."""
    probs, drawn = many_draws
    values = STATISTICS[statistic]().given(Rows(probs)).of_labels(drawn)
    for level, tolerance in ((0.05, 0.05), (0.01, 0.08)):
        result = caltest.test(probs, drawn[nearest(values, level)], statistic, null="moments")
        assert result.n_resamples is None
        assert result.pvalue == pytest.approx(level, rel=tolerance)
