import numpy as np
import pytest
from scipy.integrate import dblquad

import caltest
from caltest import simulation
from caltest.exceptions import InputError
from caltest.kernels import Exponential
from caltest.simulation import ALPHA, Simulated, true_ece_tv, true_skce
from caltest.statistics import UnbiasedSKCE

MODELS = {
    "m1": simulation.m1,
    "m2": simulation.m2,
    "m3": simulation.m3,
    "mixture": lambda n, rng=None: simulation.mixture(n, [0.5, 1.0, 2.0], pi=0.3, rng=rng),
    "tempered": lambda n, rng=None: simulation.tempered(n, temperature=0.7, rng=rng),
    "softened": lambda n, rng=None: simulation.tempered(n, temperature=1.5, rng=rng),
    "local": lambda n, rng=None: simulation.local(n, rng=rng),
    "classwise": lambda n, rng=None: simulation.classwise(n, target=3, rng=rng),
    "noisy": lambda n, rng=None: simulation.noisy(n, scale=0.8, truth_draws=100, rng=rng),
}


@pytest.fixture(params=MODELS)
def model(request):
    return MODELS[request.param]


def standardised(values):
    """Return the mean of independent values in standard errors."""
    return values.mean() / (values.std(ddof=1) / np.sqrt(len(values)))


# ------------------------------------------------------------------ what every model promises


def test_shapes_and_simplex(model):
    simulated = model(40, rng=0)
    n, m = simulated.probs.shape
    assert n == 40
    assert simulated.truth.shape == (40, m)
    assert simulated.labels.shape == (40,)
    assert simulated.labels.min() >= 0
    assert simulated.labels.max() < m
    for rows in (simulated.probs, simulated.truth):
        assert rows.min() >= 0
        np.testing.assert_allclose(rows.sum(axis=1), 1, atol=1e-12)


def test_nothing_can_be_changed(model):
    simulated = model(5, rng=0)
    for array in (simulated.probs, simulated.labels, simulated.truth):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 0


def test_same_seed_same_numbers(model):
    first, again, other = model(20, rng=7), model(20, rng=7), model(20, rng=8)
    for name in ("probs", "labels", "truth"):
        np.testing.assert_array_equal(getattr(first, name), getattr(again, name))
    assert not np.array_equal(first.probs, other.probs)


def test_generator_advances(model):
    generator = np.random.default_rng(0)
    assert not np.array_equal(model(20, rng=generator).probs, model(20, rng=generator).probs)


@pytest.mark.level
def test_labels_follow_the_truth_given_what_is_stated(model):
    """E[f(stated) (onehot − truth)] = 0 for any f: three of them, all within 4.5 standard errors.

    Under a correct model one of 27 tests exceeds 4.5 with probability 2e-4.
    """
    simulated = model(20_000, rng=5)
    probs, m = simulated.probs, simulated.probs.shape[1]
    residuals = np.eye(m)[simulated.labels] - simulated.truth
    for weights in (probs, probs**2, (probs > 0.6) * (probs < 0.9)):
        assert abs(standardised((weights * residuals).sum(axis=1))) < 4.5


def test_data_and_exact_null_may_share_a_seed():
    """The labels are none of those that the test then draws from the same seed."""
    calibrated = simulation.m1(rng=11)
    result = caltest.test(calibrated.probs, calibrated.labels, rng=11, n_resamples=200)
    assert not np.isclose(result.null_distribution, result.statistic, rtol=1e-12).any()


@pytest.mark.parametrize("alpha", [[1e-300] * 3, [1e-5] * 10, [1e-8, 5.0, 1e-3]])
def test_tiny_alpha_gives_hard_rows_not_nan(alpha):
    simulated = simulation.mixture(200, alpha, pi=0.0, rng=0)
    np.testing.assert_allclose(simulated.probs.sum(axis=1), 1, atol=1e-12)
    assert (simulated.probs == 1).any()
    assert (simulated.probs[np.arange(200), simulated.labels] > 0).all()
    assert np.isfinite(simulation.noisy(50, alpha, truth_draws=10, rng=0).truth).all()
    assert np.isfinite(simulation.tempered(50, alpha, temperature=0.01, rng=0).probs).all()


# ------------------------------------------------------------------ Dirichlet


def test_dirichlet_moments():
    alpha = np.array([0.05, 0.4, 2.0])
    probs = simulation.mixture(200_000, alpha, pi=0.0, rng=1).probs
    mean = alpha / alpha.sum()
    assert np.abs(standardised(probs[:, 0] - mean[0])) < 4.5
    np.testing.assert_allclose(probs.mean(axis=0), mean, atol=0.004)  # 4.5 standard errors
    np.testing.assert_allclose(probs.var(axis=0), mean * (1 - mean) / (alpha.sum() + 1), rtol=0.02)


def test_mean_tv_of_two_draws():
    probs = simulation.mixture(200_000, ALPHA, pi=0.0, rng=2).probs
    distances = 0.5 * np.abs(probs[::2] - probs[1::2]).sum(axis=1)
    assert abs(standardised(distances - simulation.mean_tv_dirichlet(ALPHA))) < 4.5


# ------------------------------------------------------------------ mixtures


def test_m1_is_calibrated_by_construction():
    calibrated = simulation.m1(rng=0)
    np.testing.assert_array_equal(calibrated.truth, calibrated.probs)
    assert calibrated.probs.shape == (250, 10)
    assert calibrated.ece == 0


def test_m2_and_m3_have_the_stated_truth():
    half, uniform = simulation.m2(50, 4, rng=0), simulation.m3(50, 4, rng=0)
    np.testing.assert_allclose(half.truth, (half.probs + np.eye(4)[0]) / 2)
    np.testing.assert_array_equal(uniform.truth, 0.25)


def test_ece_by_hand():
    simulated = Simulated(
        np.array([[0.5, 0.5], [1.0, 0.0]]), np.array([0, 0]), np.array([[0.3, 0.7], [1.0, 0.0]])
    )
    assert simulated.ece == pytest.approx(0.1)


@pytest.mark.level
@pytest.mark.parametrize(
    ("alpha", "beta", "pi"),
    [
        (ALPHA, None, 1.0),
        (ALPHA, np.eye(10)[0], 0.5),
        ((0.1, 0.1), None, 1.0),
        ((0.5, 1.0, 3.0), (0.2, 0.2, 0.6), 0.7),
    ],
)
def test_true_ece_against_a_million_draws(alpha, beta, pi):
    """Within 4.5 standard errors, which are below 5e-4."""
    g = np.random.default_rng(0).dirichlet(alpha, size=1_000_000)
    b = np.full(len(alpha), 1 / len(alpha)) if beta is None else np.asarray(beta)
    distances = pi * 0.5 * np.abs(b - g).sum(axis=1)
    assert abs(standardised(distances - true_ece_tv(alpha, beta, pi))) < 4.5


def test_true_ece_closed_cases():
    assert true_ece_tv(ALPHA, np.eye(10)[0], 0.5) == pytest.approx(0.45)  # ½ (1 − E g_1)
    assert true_ece_tv(ALPHA, None, 0.0) == 0
    assert true_ece_tv([1.0, 1.0], [0.5, 0.5], 1.0) == pytest.approx(0.25)


@pytest.mark.level
def test_true_skce_of_a_uniform_variable_against_quadrature():
    """For m = 2 and Dir(1, 1), ⟨β − g, β − g′⟩ = 2 (β_1 − x)(β_1 − y) with uniform x and y."""
    nu, b = 0.3, 0.2

    def integrand(y, x):
        return 2 * np.exp(-abs(x - y) / nu) * (b - x) * (b - y)

    below, _ = dblquad(integrand, 0, 1, 0, lambda x: x)
    value, error = true_skce([1.0, 1.0], [b, 1 - b], 1.0, bandwidth=nu)
    assert error < 2e-3
    assert abs(value - 2 * below) < 4.5 * error


@pytest.mark.level
def test_true_skce_scales_with_pi_squared():
    whole, half = true_skce(ALPHA, None, 1.0), true_skce(ALPHA, None, 0.5)
    assert half.value == pytest.approx(whole.value / 4)
    assert true_skce(ALPHA, None, 0.0) == (0.0, 0.0)


@pytest.mark.level
def test_unbiased_estimates_average_to_the_true_skce():
    kernel = Exponential(simulation.mean_tv_dirichlet(ALPHA))
    draws = (simulation.m3(rng=seed) for seed in range(400))
    values = np.array([caltest.estimate(s.probs, s.labels, UnbiasedSKCE(kernel)) for s in draws])
    truth = true_skce(ALPHA, None, 1.0)
    error = np.hypot(values.std(ddof=1) / 20, truth.standard_error)
    assert abs(values.mean() - truth.value) < 4.5 * error


# ------------------------------------------------------------------ models that err in one way


def test_temperature():
    sharp = simulation.tempered(200, [1.0] * 3, temperature=0.5, rng=0)
    np.testing.assert_allclose(
        sharp.probs, sharp.truth**2 / (sharp.truth**2).sum(axis=1, keepdims=True)
    )
    same = simulation.tempered(200, [1.0] * 3, temperature=1.0, rng=0)
    np.testing.assert_allclose(same.probs, same.truth, atol=1e-14)
    assert sharp.ece > 0.05


def test_local_errs_only_inside():
    simulated = simulation.local(500, region=(0.6, 0.8), strength=1.0, rng=0)
    confidence = simulated.probs.max(axis=1)
    inside = (confidence >= 0.6) & (confidence <= 0.8)
    assert 20 < inside.sum() < 480
    np.testing.assert_array_equal(simulated.truth[~inside], simulated.probs[~inside])
    np.testing.assert_allclose(simulated.truth[inside], 0.1)


def test_classwise_moves_the_odds_of_one_class():
    simulated = simulation.classwise(100, [1.0] * 4, target=2, bias=0.7, rng=0)

    def odds(p):
        return p[:, 2] / (1 - p[:, 2])

    np.testing.assert_allclose(odds(simulated.probs) / odds(simulated.truth), np.exp(0.7))
    others = [0, 1, 3]
    ratio = simulated.truth[:, others] / simulated.probs[:, others]
    np.testing.assert_allclose(ratio, ratio[:, :1] * np.ones(3))


def test_noise_of_zero_is_calibrated():
    simulated = simulation.noisy(50, scale=0.0, rng=0)
    np.testing.assert_array_equal(simulated.truth, simulated.probs)
    assert simulated.truth_error == 0


def test_noise_truth_of_two_classes_against_quadrature():
    """E[q w]/E[w] is a ratio of integrals over the one log-ratio."""
    alpha, scale = np.array([0.8, 0.3]), 0.9
    simulated = simulation.noisy(3, alpha, scale=scale, truth_draws=20_000, rng=0)
    logit = np.log(simulated.probs[:, 0] / simulated.probs[:, 1])
    shift = np.linspace(-12, 12, 20_001) * scale  # the difference of two normals: scale √2
    density = np.exp(-(shift**2) / (4 * scale**2))
    q = 1 / (1 + np.exp(-(logit[:, None] - shift)))
    weights = density * q ** alpha[0] * (1 - q) ** alpha[1]
    expected = (q * weights).sum(axis=1) / weights.sum(axis=1)
    assert simulated.truth_error < 0.01
    np.testing.assert_allclose(simulated.truth[:, 0], expected, atol=4.5 * simulated.truth_error)


# ------------------------------------------------------------------ errors


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: simulation.m1(0), "n_samples is 0; give a positive integer."),
        (lambda: simulation.m1(2.5), "n_samples is 2.5; give a positive integer."),
        (lambda: simulation.m2(10, 1), "n_classes is 1; give an integer of at least 2."),
        (lambda: simulation.mixture(10, [1.0, 0.0], pi=0.0), "give at least two positive numbers"),
        (lambda: simulation.mixture(10, [1.0], pi=0.0), "give at least two positive numbers"),
        (lambda: simulation.mixture(10, pi=1.5), r"pi is 1.5; give a number in \[0, 1\]."),
        (lambda: simulation.mixture(10, pi=0.5, beta=[0.5, 0.5]), "give 10 probabilities"),
        (lambda: simulation.mixture(10, pi=0.5, rng=-1), "rng is -1"),
        (lambda: simulation.tempered(10, temperature=0.0), "temperature is 0.0"),
        (lambda: simulation.local(10, strength=2.0), "strength is 2.0"),
        (lambda: simulation.local(10, region=(0.9, 0.5)), "low <= high"),
        (lambda: simulation.local(10, region=lambda g: g), "it must return booleans of shape"),
        (lambda: simulation.classwise(10, target=10), r"give a class in 0..9"),
        (lambda: simulation.classwise(10, bias=np.inf), "give a finite number"),
        (lambda: simulation.noisy(10, scale=-1.0), "scale is -1.0"),
        (lambda: simulation.noisy(10, truth_draws=1), "truth_draws is 1"),
        (lambda: true_skce(ALPHA, None, 1.0, bandwidth=0.0), "bandwidth is 0.0"),
        (lambda: true_skce(ALPHA, None, 1.0, n_draws=100), "at least 200"),
        (lambda: true_ece_tv(ALPHA, None, -0.1), "pi is -0.1"),
    ],
)
def test_wrong_parameters(call, message):
    with pytest.raises(InputError, match=message):
        call()
