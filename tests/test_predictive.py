"""Predicted distributions of numbers: densities, entropies, draws, and tests of them."""

import joblib
import numpy as np
import pandas as pd
import pytest
import scipy.stats
from support import binomial_limits, sentence

import caltest
from caltest.laws import recognised
from caltest.predictive import Distribution, Ensemble, GaussianPredictions

RNG = np.random.default_rng(5)
N, D = 40, 3
MEAN = RNG.normal(size=(N, D))
FACTOR = RNG.normal(size=(N, D, D))
COVARIANCE = FACTOR @ FACTOR.swapaxes(1, 2) + np.eye(D)
LOCATION, SCALE = RNG.normal(size=N), RNG.uniform(0.5, 2.0, N)
MEMBERS = RNG.normal(LOCATION[:, None], SCALE[:, None], (N, 25))


def separate(n=N):
    return [scipy.stats.multivariate_normal(MEAN[i], COVARIANCE[i]) for i in range(n)]


def models():
    return {
        "gaussian": GaussianPredictions(LOCATION, SCALE**2),
        "gaussian, one variance": GaussianPredictions(LOCATION, 2.0),
        "gaussian vectors": GaussianPredictions(MEAN, COVARIANCE),
        "gaussian vectors, one covariance": GaussianPredictions(MEAN, COVARIANCE[0]),
        "vectors of one entry": GaussianPredictions(LOCATION[:, None], SCALE[:, None, None] ** 2),
        "student": Distribution(scipy.stats.t(4.0, LOCATION, SCALE)),
        "poisson": Distribution(scipy.stats.poisson(SCALE * 4)),
        "list": Distribution([scipy.stats.norm(m, s) for m, s in zip(LOCATION, SCALE, strict=True)]),
        "list of vectors": Distribution(separate()),
        "counts": Distribution([scipy.stats.multinomial(5, [0.2, 0.3, 0.5])] * N),
        "ensemble": Ensemble(MEMBERS),
        "ensemble of vectors": Ensemble(RNG.normal(size=(N, 30, 2))),
    }


MODELS = models()


@pytest.mark.slow
@pytest.mark.parametrize("name", MODELS)
def test_shapes(name):
    model = MODELS[name]
    shape = (N,) if model.dimension is None else (N, model.dimension)
    drawn = model.draw(np.random.default_rng(0), 6)
    assert drawn.shape == (6, *shape)
    assert model.entropy().shape == (N,)
    block = model.log_density(drawn)
    assert block.shape == (6, N)
    assert model.log_density(drawn[2]) == pytest.approx(block[2], rel=1e-12)
    assert model.outcomes(drawn[0]).shape == shape


@pytest.mark.slow
@pytest.mark.parametrize("name", MODELS)
def test_entropy_is_the_mean_surprise_of_draws(name):
    """Entropy, density and draws agree: this is what makes the ECD 0 on average."""
    model = MODELS[name]
    surprise = -model.log_density(model.draw(np.random.default_rng(1), 4000))
    error = surprise.std(axis=0) / np.sqrt(4000)
    assert np.abs((surprise.mean(axis=0) - model.entropy()) / error).max() < 5


def test_gaussians_are_scipys():
    model, drawn = GaussianPredictions(MEAN, COVARIANCE), MEAN + 0.3
    each = [d.logpdf(x) for d, x in zip(separate(), drawn, strict=True)]
    assert model.log_density(drawn) == pytest.approx(each, rel=1e-10)
    assert model.entropy() == pytest.approx([d.entropy() for d in separate()], rel=1e-12)
    drawn = GaussianPredictions(MEAN[:2], COVARIANCE[:2]).draw(np.random.default_rng(0), 40_000)
    for i in range(2):
        assert np.cov(drawn[:, i].T) == pytest.approx(COVARIANCE[i], abs=0.25)


def test_ensembles_are_scipys_kernel_densities():
    model = Ensemble(MEMBERS)
    each = [scipy.stats.gaussian_kde(m).logpdf(x)[0] for m, x in zip(MEMBERS, LOCATION, strict=True)]
    assert model.log_density(LOCATION) == pytest.approx(each, rel=1e-9)
    grid = np.linspace(-15, 15, 20_001)
    entropy = np.trapezoid(scipy.special.entr(scipy.stats.gaussian_kde(MEMBERS[0]).pdf(grid)), grid)
    assert model.entropy()[0] == pytest.approx(entropy, abs=1e-4)


def test_gaussian_identity():
    """ECD = (NEES − d) / 2."""
    for model, d in ((MODELS["gaussian"], 1), (MODELS["gaussian vectors"], D)):
        outcomes = model.draw(np.random.default_rng(3), 1)[0] * 1.2
        nees = caltest.estimate(model, outcomes, "nees")
        assert caltest.estimate(model, outcomes, "ecd") == pytest.approx(0.5 * (nees - d), rel=1e-12)
        errors = outcomes.reshape(N, -1) - np.reshape(model.mean, (N, -1))
        covariances = COVARIANCE if d > 1 else (SCALE**2)[:, None, None]
        by_hand = [e @ np.linalg.solve(c, e) for e, c in zip(errors, covariances, strict=True)]
        assert nees == pytest.approx(np.mean(by_hand), rel=1e-10)


def test_ecd_of_the_same_distribution_in_three_ways():
    outcomes = LOCATION + 0.7 * SCALE
    one = caltest.estimate(GaussianPredictions(LOCATION, SCALE**2), outcomes, "ecd")
    frozen = scipy.stats.norm(LOCATION, SCALE)
    assert caltest.estimate(Distribution(frozen), outcomes, "ecd") == pytest.approx(one, rel=1e-12)
    assert caltest.estimate(frozen, outcomes, "ecd") == pytest.approx(one, rel=1e-12)
    assert caltest.estimate(MODELS["list"], outcomes, "ecd") == pytest.approx(one, rel=1e-12)


@pytest.mark.slow
@pytest.mark.parametrize("alternative", ["two-sided", "greater", "less"])
@pytest.mark.parametrize("statistic", ["ecd", "nees"])
def test_chi2_is_the_exact_law(statistic, alternative):
    model = GaussianPredictions(MEAN, COVARIANCE)
    for stretch in (0.8, 1.0, 1.2):
        outcomes = MEAN + stretch * (model.draw(np.random.default_rng(2), 1)[0] - MEAN)
        options = {"alternative": alternative, "rng": 0}
        analytic = caltest.test(model, outcomes, statistic, null="chi2", **options)
        drawn = caltest.test(model, outcomes, statistic, n_resamples=4999, **options)
        assert analytic.guarantee == drawn.guarantee == "exact"
        low, high = drawn.pvalue_interval
        assert low - 0.01 <= analytic.pvalue <= high + 0.01
    total = N * caltest.estimate(model, outcomes, "nees")
    greater = caltest.test(model, outcomes, "nees", null="chi2", alternative="greater").pvalue
    assert greater == pytest.approx(scipy.stats.chi2(N * D).sf(total), rel=1e-9)


@pytest.mark.level
@pytest.mark.parametrize("name", ["gaussian vectors", "poisson", "ensemble"])
def test_size_and_power(name):
    model = MODELS[name]
    calibrated = model.draw(np.random.default_rng(8), 300)
    pvalues = [
        caltest.test(model, x, "ecd", rng=i, n_resamples=99).pvalue for i, x in enumerate(calibrated)
    ]
    low, high = binomial_limits(300, 0.1)
    assert low <= np.mean(np.array(pvalues) <= 0.1) <= high
    centre = calibrated.mean(axis=0)
    wider = np.round(centre + 2.0 * (calibrated[:20] - centre)).clip(min=0.0)
    if name != "poisson":
        wider = centre + 2.0 * (calibrated[:20] - centre)
    assert np.mean([caltest.test(model, x, "ecd", rng=0).pvalue for x in wider] <= np.array(0.05)) > 0.8


@pytest.mark.slow
def test_results():
    model = MODELS["ensemble"]
    result = caltest.test(model, LOCATION, "ecd", rng=3)
    again = caltest.test(model, LOCATION, "ecd", rng=3, n_jobs=2)
    assert again.pvalue == result.pvalue
    assert np.array_equal(again.null_distribution, result.null_distribution)
    with joblib.parallel_config(backend="loky", n_jobs=2):
        assert caltest.test(model, LOCATION, "ecd", rng=3).pvalue == result.pvalue
    fewer = caltest.test(model, LOCATION, "ecd", rng=3, n_resamples=70).null_distribution
    assert np.array_equal(fewer, result.null_distribution[:70])
    assert (result.n_classes, result.lens) == (None, None)
    assert "40 predicted distributions" in result.summary()
    assert result.to_dict()["n_classes"] is None


def test_own_function_of_outcomes():
    def mean_error(predicted, outcomes):
        return np.abs(outcomes - predicted.mean).mean()

    model = MODELS["gaussian"]
    outcomes = model.draw(np.random.default_rng(0), 1)[0]
    assert caltest.test(model, outcomes, mean_error, rng=0).pvalue > 0.01
    assert caltest.test(model, outcomes * 4, mean_error, rng=0).pvalue < 0.01


def test_outcomes_outside_the_support():
    model = Distribution(scipy.stats.uniform(LOCATION, SCALE))
    outcomes = LOCATION + 0.5 * SCALE
    assert np.isfinite(caltest.estimate(model, outcomes, "ecd"))
    outcomes[[3, 9]] += 5 * SCALE[[3, 9]]
    result = caltest.test(model, outcomes, "ecd", rng=0)
    assert (result.statistic, result.pvalue) == (np.inf, 0.002)
    assert "In 2 of 40 rows (counting from 0: 3, 9)" in result.warnings[0]


def test_recognised():
    assert recognised(np.ones((3, 2))) is None
    assert recognised([[0.5, 0.5]]) is None
    assert isinstance(recognised(scipy.stats.norm([0.0, 1.0])), Distribution)
    several = [scipy.stats.norm(0.0)] * 3
    for given in (several, pd.Series(several), np.array(several, dtype=object)):
        assert isinstance(recognised(given), Distribution)


WRONG = {
    "shape": (lambda: GaussianPredictions(MEAN, SCALE), "the covariance has shape"),
    "asymmetric": (lambda: GaussianPredictions(MEAN, FACTOR), "row 0 .* is not symmetric"),
    "negative": (lambda: GaussianPredictions(LOCATION, -(SCALE**2)), "0 .* is not positive definite"),
    "not finite": (lambda: GaussianPredictions([0.0, np.nan], 1.0), "the mean holds nan in row 1"),
    "words": (lambda: GaussianPredictions(["a", "b"], 1.0), "the mean could not be read"),
    "no distribution": (lambda: Distribution(3.0), "is 3.0, which states neither a cdf nor an entropy"),
    "no rows": (lambda: Distribution(scipy.stats.norm(0, 1)), "does not say how many rows"),
    "bad scale": (lambda: Distribution(scipy.stats.norm(0, [1.0, -1.0])), "the entropy nan at row 1"),
    "one member": (lambda: Ensemble([[1.0], [2.0]]), "at least two members per row"),
    "equal members": (lambda: Ensemble([[1.0, 2.0], [3.0, 3.0]]), "members of row 1 .* do not vary"),
    "rounding is no variation": (lambda: Ensemble(np.full((5, 3), 0.1)), "the members of row 0 .* do"),
    "no members": (lambda: Ensemble(np.zeros((0, 4))), r"has shape \(0, 4\)"),
    "infinite bandwidth": (lambda: Ensemble(MEMBERS, bandwidth=np.inf), "bandwidth is inf"),
    "not frozen": (lambda: Distribution(scipy.stats.gamma), "the distribution fails to draw"),
    "an empty list": (lambda: Distribution([]), "there are no distributions"),
    "two kinds": (lambda: Distribution([scipy.stats.norm(0), scipy.stats.multivariate_normal([0, 0])]),
        r"row 1 is about outcomes of shape \(2,\)"),
    "ragged": (lambda: Distribution([scipy.stats.norm([0, 1])]), "give a distribution of a number"),
    "matrices": (lambda: Distribution([scipy.stats.wishart(3, np.eye(2))] * 3),
        "the distribution of row 0"),
    "complex": (lambda: GaussianPredictions([1.0, 2j], 1.0), "could not be read as an array of real"),
    "masked": (lambda: GaussianPredictions(np.ma.array([1.0, 2.0], mask=[0, 1]), 1.0),
        "holds nan in row 1"),
    "another order of rows": (
        lambda: caltest.test(
            GaussianPredictions(pd.Series([0.0, 1.0], index=["a", "b"]), 1.0),
            pd.Series([1.0, 0.0], index=["b", "a"]),
            "ecd",
        ),
        "indexes of mean of predictions and outcomes",
    ),
    "consistency": (
        lambda: caltest.test(MODELS["gaussian"], LOCATION, lambda p, x: 1.0, null="consistency"),
        "possible here: monte_carlo",
    ),
    "bandwidth": (lambda: Ensemble(MEMBERS, bandwidth="best"), "bandwidth is 'best'"),
    "outcomes": (lambda: caltest.test(MODELS["gaussian"], LOCATION[:5], "ecd"),
        r"the outcomes have shape \(5,\), and the predictions are about \(40,\)"),
    "missing": (lambda: caltest.test(MODELS["gaussian"], [None] * N, "ecd"),
        "the outcomes holds nan in row 0|the outcomes could not be read"),
    "classes": (lambda: caltest.test(MODELS["gaussian"], LOCATION, "ckce"),
        "'ckce' is for probabilities of classes"),
    "nees of classes": (lambda: caltest.test([0.5, 0.5], [0, 1], "nees"), "'nees' is for Gaussian"),
    "nees of others": (lambda: caltest.test(MODELS["poisson"], np.ones(N), "nees"),
        "is for Gaussian predictions of numbers, and these are distributions of numbers"),
    "clip": (lambda: caltest.test(MODELS["gaussian"], LOCATION, caltest.statistics.ECD(clip=0.1)),
        "clip is for probabilities"),
    "lens": (lambda: caltest.test(MODELS["gaussian"], LOCATION, "ecd", lens="top_label"),
        "the lens 'top_label' is for classes"),
    "null": (lambda: caltest.test(MODELS["gaussian"], LOCATION, "ecd", null="moments"),
        "possible here: monte_carlo, normal, chi2"),
}  # fmt: skip


@pytest.mark.parametrize("case", WRONG)
def test_wrong_input(case):
    sentence(*WRONG[case])


class Table:
    """Normal distributions laid out as a table of one column, as skpro's are."""

    columns = ("demand",)

    def __init__(self, mean):
        self.mean_ = np.asarray(mean)[:, None]

    def __len__(self):
        return len(self.mean_)

    def cdf(self, values):
        return pd.DataFrame(scipy.stats.norm.cdf(values - self.mean_), columns=self.columns)

    def ppf(self, levels):
        return pd.DataFrame(scipy.stats.norm.ppf(levels) + self.mean_, columns=self.columns)

    def sample(self, n_samples):
        raise AssertionError("it takes no generator")


def test_a_table_of_one_column_is_a_distribution_a_row():
    mean = np.linspace(0.0, 3.0, 50)
    outcomes = np.random.default_rng(0).normal(mean)
    found = caltest.test(Table(mean), outcomes, "pit_ad", n_resamples=99, rng=0)
    normal = caltest.predictive.Normal(mean, sd=1.0)
    assert found.statistic == pytest.approx(caltest.estimate(normal, outcomes, "pit_ad"))
