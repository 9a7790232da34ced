"""Nulls: tails against known distributions, resamples against their definitions, size and power."""

from itertools import product
from math import comb, exp, log

import numpy as np
import pytest
from scipy.special import ndtr
from scipy.stats import gamma, norm, pearson3
from support import P6, Y6, binomial_limits, dirichlet, every_outcome, h_matrix, labels_from, tied

import caltest
from caltest.data import Rows
from caltest.forms import LinearSum, Moments
from caltest.kernels import Exponential, Gaussian, MatrixKernel
from caltest.nulls import Bound, NormalApproximation
from caltest.nulls.moments import pearson3_tail, tail
from caltest.sampling import generator
from caltest.statistics import STATISTICS, BiasedSKCE, LinearSKCE, UnbiasedSKCE

SKCES = ["skce_b", "skce_uq", "skce_ul"]

# ------------------------------------------------------------------ Pearson type III


@pytest.mark.parametrize("skewness", [-3.0, -0.4, 0.05, 0.4, 1.0, 2.0, 7.0])
@pytest.mark.parametrize("z", [-2.5, -0.5, 0.0, 0.6, 3.0, 12.0, 60.0])
def test_pearson3_is_the_shifted_gamma(skewness, z):
    if skewness < 0 and z >= -2.0 / skewness:
        pytest.skip("beyond the end of the curve")
    moments = Moments(mean=-4.0, variance=9.0, skewness=skewness)
    expected = pearson3(skewness).sf(z)
    found = pearson3_tail(moments, -4.0 + 3.0 * z)
    if skewness > 0:
        assert found == pytest.approx(expected, rel=1e-8, abs=1e-300)
    else:  # a curve with an end on this side may be replaced by a heavier one
        assert expected * (1 - 1e-8) <= found <= 1.0


def test_pearson3_edges():
    assert pearson3_tail(Moments(0, 1, 2.0), -1.0) == 1.0  # where the exponential starts
    assert pearson3_tail(Moments(0, 1, 2.0), -5.0) == 1.0
    assert pearson3_tail(Moments(0, 1, 0.0), 10.0) == pytest.approx(norm.sf(10.0), rel=1e-10)
    assert pearson3_tail(Moments(0, 1, 1.01e-4), 6.0) == pytest.approx(norm.sf(6.0), rel=0.01)
    assert pearson3_tail(Moments(2.0, 0, 0), 2.0) == 1.0
    assert pearson3_tail(Moments(2.0, 0, 0), 2.0 + 1e-12) == 1.0
    assert pearson3_tail(Moments(2.0, 0, 0), 2.1) == 0.0


# ------------------------------------------------------------------ saddlepoint


def of_normal(t):
    return 0.3 * t + 2.0 * t * t, 0.3 + 4.0 * t, 4.0


@pytest.mark.parametrize("z", [-30.0, -3.0, -1e-4, 0.0, 1e-4, 0.5, 3.0, 30.0])
def test_saddlepoint_is_exact_for_the_normal(z):
    assert tail(of_normal, 0.3 + 2.0 * z) == pytest.approx(ndtr(-z), rel=1e-8)


@pytest.mark.parametrize(("shape", "tolerance"), [(0.5, 0.15), (1.0, 0.08), (10.0, 5e-3)])
@pytest.mark.parametrize("chance", [0.9, 0.5, 0.1, 1e-3, 1e-9, 1e-60])
def test_saddlepoint_of_the_gamma(shape, tolerance, chance):
    def cumulants(t):
        return -shape * np.log(1 - t), shape / (1 - t), shape / (1 - t) ** 2

    with np.errstate(invalid="ignore"):  # it has no cumulants for t > 1
        assert tail(cumulants, gamma(shape).isf(chance)) == pytest.approx(chance, rel=tolerance)


def of_chi_squares(weights):
    def cumulants(t):
        shrunk = 1.0 - 2.0 * t * weights
        return (
            -0.5 * np.log(shrunk).sum(),
            np.sum(weights / shrunk),
            np.sum(2 * (weights / shrunk) ** 2),
        )

    return cumulants


@pytest.mark.parametrize("x", [0.5, 3.0, 10.0, 60.0, 400.0])
def test_saddlepoint_of_weighted_chi_squares(x):
    """Weights in equal pairs: a sum of two exponentials, of means 4 and 1."""
    expected = (4 * exp(-x / 4) - exp(-x)) / 3
    with np.errstate(invalid="ignore"):  # none for t > 1/4
        found = tail(of_chi_squares(np.array([2.0, 2.0, 0.5, 0.5])), x)
    assert found == pytest.approx(expected, rel=0.05)


def linear_of(table, probs):
    return LinearSum(np.asarray(table, float), np.asarray(probs, float))


@pytest.mark.parametrize("chances", [np.full(60, 0.3), np.linspace(0.05, 0.6, 60)])
def test_saddlepoint_of_a_poisson_binomial(chances):
    """Half-way between two lattice points, on both sides: within 12 % down to 1e-5."""
    law = np.ones(1)
    for p in chances:
        law = np.convolve(law, [1 - p, p])
    form = linear_of(np.tile([0.0, 1.0], (60, 1)), np.column_stack([1 - chances, chances]))
    for k in range(61):
        for exact, found in (
            (law[k:].sum(), tail(form.cumulant_generator, k - 0.5)),
            (law[:k].sum(), tail(lambda t: flipped(form.cumulant_generator(-t)), 0.5 - k)),
        ):
            if exact > 1e-5:
                assert found == pytest.approx(exact, rel=0.12)


def flipped(cumulants):
    return cumulants[0], -cumulants[1], cumulants[2]


def test_saddlepoint_at_and_beyond_the_end():
    chances = np.array([0.2, 0.7, 0.4])
    form = linear_of(np.tile([0.0, 1.0], (3, 1)), np.column_stack([1 - chances, chances]))
    assert tail(form.cumulant_generator, 3.0) == pytest.approx(chances.prod(), rel=1e-4)  # the atom
    assert tail(form.cumulant_generator, 3.2) < 1e-100
    assert tail(form.cumulant_generator, 0.0) == pytest.approx(1.0, abs=0.1)
    assert tail(form.cumulant_generator, -0.2) == 1.0


def test_saddlepoint_of_a_constant():
    form = linear_of([[1.0, 5.0], [2.0, 7.0]], [[1.0, 0.0], [1.0, 0.0]])
    assert tail(form.cumulant_generator, 3.0) == 1.0
    assert tail(form.cumulant_generator, 3.5) < 1e-300


def test_saddlepoint_never_returns_a_value_that_is_not_a_number():
    chances = np.array([0.2, 0.7, 0.4])
    form = linear_of(np.tile([0.0, 1.0], (3, 1)), np.column_stack([1 - chances, chances]))
    with np.errstate(all="ignore"):
        assert tail(form.cumulant_generator, np.inf) < 1e-300
        assert tail(form.cumulant_generator, -np.inf) == 1.0


# ------------------------------------------------------------------ resamples by their definitions


def test_bootstrap_is_resampling_with_replacement():
    kernel = Exponential(0.5)
    n, draws = 6, 300  # two batches of counts
    result = caltest.test(P6, Y6, UnbiasedSKCE(kernel), null="bootstrap", n_resamples=draws, rng=4)
    h = h_matrix(kernel, P6, Y6)
    centred = h - h.mean(0) - h.mean(1)[:, None] + h.mean()
    expected = []
    for number, size in ((0, 256), (1, 44)):
        for counts in generator(4, number).multinomial(n, np.full(n, 1 / n), size=size):
            drawn = np.repeat(np.arange(n), counts)
            total = sum(centred[drawn[k], drawn[j]] for k, j in product(range(n), repeat=2) if k != j)
            expected.append(total / n)
    expected = np.array(expected)
    assert n * result.null_distribution == pytest.approx(expected, rel=1e-9, abs=1e-12)
    reached = np.sum(expected >= n * result.statistic)
    assert result.pvalue == pytest.approx((1 + reached) / (1 + draws))


def test_nothing_to_resample():
    """Certain predictions that come true: all h are 0, and so is all evidence."""
    probs = np.eye(3)[np.arange(30) % 3]
    assert caltest.test(probs, np.arange(30) % 3, null="bootstrap", rng=0).pvalue == 1.0


def test_monte_carlo_ranks_drawn_labels():
    """Against its own null distribution, on both sides."""
    for side, sign in (("greater", 1), ("less", -1)):

        def statistic(probs, labels):
            return float(probs[np.arange(len(labels)), labels].sum())

        result = caltest.test(P6, Y6, statistic, alternative=side, n_resamples=200, rng=3)
        draws = sign * result.null_distribution
        assert result.pvalue == (1 + np.sum(draws >= sign * result.statistic - 1e-9)) / 201


# ------------------------------------------------------------------ bounds


@pytest.mark.parametrize(("p", "q"), [(1, 1), (2, 2), (2, 1), (1, 2), (3, 1.5), (np.inf, np.inf)])
def test_bound_for_any_norms(p, q):
    """B_{p;q} = 2^{1+1/p−1/q} sup‖k‖_{p;q} of Lemma H.1, k = φ I, sup φ = 2."""
    m, probs = 3, np.tile([1.0, 0.0, 0.0], (200, 1))
    labels = np.arange(200) % 3
    constant = 2 ** (1 + 1 / p - 1 / q) * 2.0 * max(1.0, m ** (1 / q - 1 / p))
    result = caltest.test(probs, labels, UnbiasedSKCE(2.0 * Gaussian(1.0)), null=Bound(p, q))
    assert result.statistic > 0
    assert result.pvalue == pytest.approx(exp(-100 * result.statistic**2 / (2 * constant**2)), rel=1e-9)


def test_bound_of_a_matrix_kernel_bounds_every_pair():
    A = np.array([[2.0, -1.0], [-1.0, 2.0]])
    kernel = MatrixKernel([(Gaussian(0.3), A)])
    for p in (1.0, 2.0, np.inf):
        constant = UnbiasedSKCE(kernel).given(Rows(np.eye(2))).tail_bound.constant(p, p)
        largest = 0.0
        for seed in range(50):
            probs, labels = dirichlet(4, 2, seed, 0.1), np.random.default_rng(seed).integers(0, 2, 4)
            largest = max(largest, np.abs(h_matrix(kernel, probs, labels)).max())
        assert 3.0 < largest <= constant + 1e-12


def test_negative_estimates_have_bound_one():
    probs = np.tile([0.5, 0.5], (10, 1))
    labels = np.arange(10) % 2
    for statistic in ("skce_uq", LinearSKCE(pairing="rows")):
        result = caltest.test(probs, labels, statistic, null="bound")
        assert result.statistic < 0
        assert result.pvalue == 1.0


# ------------------------------------------------------------------ options


def test_normal_with_terms_that_do_not_vary():
    result = caltest.test(np.full(10, 0.5), np.ones(10, int), "skce_ul", null="normal")
    assert result.pvalue == 1.0
    assert any("do not vary" in note for note in result.warnings)


# ------------------------------------------------------------------ size: p-values as distributions

LEVELS = (0.05, 0.1, 0.2)
DATA_SETS = 250
# Rows of the data, and whether p-values have ties enough to stay below the level.
DESIGNS = {
    "m=2, n=30": lambda seed: dirichlet(30, 2, seed),
    "m=3, n=40, sparse": lambda seed: dirichlet(40, 3, seed, 0.2),
    "m=3, n=36, ties, zeros and ones": lambda seed: tied(36, 3, seed),
}


def pvalues(design, statistic, null, n_resamples=39, **options):
    """p-values of calibrated data sets; whether the statistic has ties."""
    found, ties = [], 0
    for seed in range(DATA_SETS):
        probs = DESIGNS[design](seed)
        labels = labels_from(probs, np.random.default_rng([1, seed]))
        result = caltest.test(
            probs, labels, statistic, null=null, n_resamples=n_resamples, rng=seed, **options
        )
        found.append(result.pvalue)
        draws = result.null_distribution
        if draws is not None:
            ties += len(np.unique(draws.round(12))) < 0.95 * len(draws)
    return np.array(found), ties > 0


#: Half a minute each; they see one design.
SLOW = ("cox", "smooth_ece", "omnibus")


@pytest.mark.level
@pytest.mark.parametrize(
    ("statistic", "design"),
    [
        (statistic, design)
        for statistic in STATISTICS
        for design in DESIGNS
        if statistic not in SLOW or design == "m=3, n=40, sparse"
    ],
)
def test_monte_carlo_is_exact(statistic, design):
    """Rejection rates within binomial limits; each limit is crossed with probability 5e-5."""
    found, ties = pvalues(design, statistic, "monte_carlo")
    for level in LEVELS:
        low, high = binomial_limits(DATA_SETS, level)
        rate = np.mean(found <= level + 1e-12)
        assert rate <= high
        assert ties or rate >= low


@pytest.mark.level
def test_two_sides_of_a_function_are_exact():
    def score(probs, labels):
        return float(np.log(np.maximum(probs[np.arange(len(labels)), labels], 1e-300)).sum())

    found, _ = pvalues("m=2, n=30", score, None, alternative="two-sided")
    for level in LEVELS:
        low, high = binomial_limits(DATA_SETS, level)
        assert low <= np.mean(found <= level + 1e-12) <= high


@pytest.mark.level
@pytest.mark.parametrize("statistic", SKCES)
@pytest.mark.parametrize("ones", [[0.1, 0.7, 0.5], [0.0, 0.7, 0.98]])
def test_exact_over_all_labels(statistic, ones):
    """n = 3: P(p ≤ α), over all eight label vectors and 150 seeds each, is at most α.

    Given the labels the seeds are independent, so the limit is five standard errors above.
    """
    probs = np.column_stack([1 - np.array(ones), ones])
    outcomes, chances = every_outcome(probs)
    seeds = 150
    found = np.array(
        [
            [
                caltest.test(probs, y, statistic, n_resamples=19, rng=1000 * number + seed).pvalue
                for seed in range(seeds)
            ]
            for number, y in enumerate(outcomes)
            if chances[number] > 0
        ]
    )
    chances = chances[chances > 0]
    for level in (0.05, 0.1, 0.25, 0.5):
        rejected = (found <= level + 1e-12).mean(axis=1)
        error = np.sqrt(chances**2 @ (rejected * (1 - rejected) / seeds))
        assert chances @ rejected <= level + 5 * error + 1e-3


@pytest.mark.level
@pytest.mark.parametrize("statistic", SKCES)
@pytest.mark.parametrize("design", list(DESIGNS)[:2])
def test_moments_hold_their_level_nearly(statistic, design):
    """An approximation: 1.3 times the level, then the binomial limit (5e-5)."""
    found, _ = pvalues(design, statistic, "moments")
    for level in LEVELS:
        assert np.mean(found <= level) <= binomial_limits(DATA_SETS, min(1.3 * level, 1))[1]
        assert np.mean(found <= level) >= binomial_limits(DATA_SETS, 0.7 * level)[0]


@pytest.mark.level
@pytest.mark.parametrize("statistic", SKCES)
def test_bound_never_rejects_calibrated_models(statistic):
    for design in list(DESIGNS)[:2]:
        found, _ = pvalues(design, statistic, "bound")
        assert found.min() > 0.2


# ------------------------------------------------------------------ validity at the edges


def confident(n, m, surprises):
    """Rows that name one class nearly for sure: ``surprises`` of them are expected to be wrong."""
    rng = np.random.default_rng(n + m)
    doubts = rng.dirichlet(np.ones(m - 1), n) * (surprises / n) * rng.exponential(size=(n, 1))
    return np.column_stack([1 - doubts.sum(axis=1), doubts])


@pytest.mark.parametrize("m", [2, 3])
@pytest.mark.parametrize("surprises", [1e-16, 1e-12, 1e-8, 1e-4, 0.03])
@pytest.mark.parametrize("statistic", SKCES)
def test_confident_and_right_is_calibrated(statistic, surprises, m):
    """The model is nearly certain and always right: the one likely outcome is no evidence.

    P(T ≥ t) is at least the probability of the observed labels, here above 0.9.
    """
    probs = confident(60, m, surprises)
    assert caltest.test(probs, np.zeros(60, dtype=int), statistic, null="moments").pvalue >= 0.9


@pytest.mark.level
@pytest.mark.parametrize("surprises", [0.1, 0.3, 1.0, 3.0, 10.0])
@pytest.mark.parametrize("statistic", SKCES)
def test_moments_with_few_expected_surprises(statistic, surprises):
    """Rejections at .05 and .01 of confident calibrated models: at most twice the level."""
    probs = confident(60, 2, surprises)
    drawn = (np.random.default_rng(0).random((200, 60)) < probs[:, 1]).astype(int)
    found = np.array([caltest.test(probs, y, statistic, null="moments").pvalue for y in drawn])
    for level in (0.05, 0.01):
        assert np.mean(found <= level) <= binomial_limits(200, 2 * level)[1]


@pytest.mark.parametrize("statistic", SKCES)
def test_moments_of_two_or_three_rows(statistic):
    """The exact tail is known by enumeration: p is nowhere below a fifth of it."""
    kernel = Exponential(0.5)
    for ones in ([0.1, 0.9], [0.5, 0.5], [0.2, 0.4, 0.7]):
        probs = np.column_stack([1 - np.array(ones), ones])
        outcomes, chances = every_outcome(probs)
        measure = STATISTICS[statistic](kernel)
        values = measure.given(Rows(probs)).of_labels(outcomes)
        for y, value in zip(outcomes, values, strict=True):
            exact = chances[values >= value - 1e-12].sum()
            assert caltest.test(probs, y, measure, null="moments").pvalue >= exact / 5


@pytest.mark.parametrize("null", ["monte_carlo", "moments"])
@pytest.mark.parametrize("statistic", SKCES)
def test_certain_predictions(statistic, null):
    probs, truth = np.eye(3)[np.arange(40) % 3], np.arange(40) % 3
    assert caltest.test(probs, truth, statistic, null=null, rng=0).pvalue == 1.0
    constant = np.tile([1.0, 0.0], (40, 1))
    assert caltest.test(constant, np.ones(40, int), statistic, null=null, rng=0).pvalue <= 0.001


# ------------------------------------------------------------------ power


def overconfident(n, m, seed):
    truth = dirichlet(n, m, seed)
    claimed = truth**4 / (truth**4).sum(axis=1, keepdims=True)
    return claimed, labels_from(truth, np.random.default_rng([2, seed]))


@pytest.mark.parametrize("null", ["monte_carlo", "moments", "bootstrap"])
def test_power_of_the_quadratic_skce(null):
    assert caltest.test(*overconfident(300, 3, 0), null=null, rng=0).pvalue < 0.01


@pytest.mark.parametrize("statistic", SKCES)
@pytest.mark.parametrize("null", ["monte_carlo", "moments"])
def test_power(statistic, null):
    assert caltest.test(*overconfident(1000, 3, 1), statistic, null=null, rng=0).pvalue < 0.01


@pytest.mark.parametrize("statistic", SKCES)
def test_power_of_the_bound(statistic):
    probs, labels = np.tile([0.95, 0.05], (400, 1)), np.ones(400, dtype=int)
    assert caltest.test(probs, labels, statistic, null="bound").pvalue < 1e-10


def test_power_of_the_normal():
    probs, labels = np.tile([0.8, 0.2], (400, 1)), np.random.default_rng(0).integers(0, 2, 400)
    assert caltest.test(probs, labels, "skce_ul", null=NormalApproximation()).pvalue < 1e-3


def test_moments_resolve_what_draws_cannot():
    """A binomial in disguise: p far below 1/(B + 1), right to 20 %."""
    n, kernel = 1000, Gaussian(1.0)
    probs, labels = np.full(n, 0.5), (np.arange(n) < 620).astype(int)
    tails = 2 * sum(comb(n, k) for k in range(620, n + 1)) / 2**n
    for statistic in (UnbiasedSKCE, BiasedSKCE):
        p = caltest.test(probs, labels, statistic(kernel), null="moments").pvalue
        assert abs(log(p) - log(tails)) < 0.1 * abs(log(tails))
    p = caltest.test(probs, labels, LinearSKCE(kernel), null="moments").pvalue
    assert 0 < p < 1
