"""Where few labels are uncertain, the analytic null must not be fooled by a handful of atoms."""

from itertools import product

import numpy as np
import pytest
from scipy.stats import binom

import caltest
from caltest.kernels import Exponential, MatrixKernel
from caltest.statistics import BiasedSKCE

REPETITIONS = 60
FALSE_ALARM = 1e-4  # of a test that is right, in a rejection count above the limit


def binary(p):
    return np.column_stack([1.0 - p, p])


CASES = {
    "confident logits": (lambda r: binary(1 / (1 + np.exp(-r.normal(-14, 6, 400)))), "skce_uq"),
    "nearly certain rows and a few others": (
        lambda r: binary(np.r_[r.uniform(0, 1e-4, 300), np.linspace(0.2, 0.8, 20)]),
        "skce_uq",
    ),
    "one row carries the variance": (lambda r: binary(np.r_[np.full(300, 0.01), 0.2]), "ece_squared"),
    "two rows carry the variance": (lambda r: binary(np.r_[np.full(300, 0.01), 0.3, 0.3]),
        "ece_debiased"),
    "few positives": (lambda r: binary(np.full(500, 0.005)), "esce"),
    "a lattice": (lambda r: binary(np.full(60, 0.5)), "esce"),
    "few equal labels": (lambda r: np.full((30, 200), 1 / 200), "skce_uq"),
    "few equal pairs": (lambda r: np.full((40, 100), 1 / 100), "skce_ul"),
    "a lattice of pairs": (lambda r: np.full((300, 10), 1 / 10), "skce_ul"),
    "mostly certain pairs": (lambda r: binary(np.r_[np.zeros(400), np.full(30, 0.3)]), "skce_ul"),
    "rare events of nearly one weight": (lambda r: binary(r.beta(1, 99, 1500)), "brier"),
    "coins and a few rare events": (lambda r: binary(np.r_[np.full(25, 0.45), np.full(2000, 0.002)]),
        "ecd"),
    "three classes in equal rows": (lambda r: np.tile([0.14, 0.42, 0.44], (26, 1)), "ecd"),
    "a class that never comes": (lambda r: np.tile([0.83, 0.17, 0.0], (31, 1)), "ecd"),
    "ties but for noise": (
        lambda r: binary(np.r_[np.full(30, 0.5), np.full(30, 0.9)] + 1e-9 * r.standard_normal(60)),
        "skce_uq",
    ),
    "one class counts": (lambda r: np.tile([0.003, 0.497, 0.5], (100, 1)),
        BiasedSKCE(MatrixKernel([(Exponential(0.5), np.diag([1.0, 0.0, 0.0]))]))),
}  # fmt: skip


@pytest.mark.level
@pytest.mark.parametrize("case", CASES)
def test_moments_does_not_reject_calibrated_models(case):
    make, statistic = CASES[case]
    probs = make(np.random.default_rng(1))
    pvalues = []
    for seed in range(REPETITIONS):
        uniforms = np.random.default_rng(1000 + seed).random((len(probs), 1))
        labels = (probs.cumsum(axis=1)[:, :-1] < uniforms).sum(axis=1)
        result = caltest.test(probs, labels, statistic, null="moments", n_resamples=39, rng=seed)
        pvalues.append(result.pvalue)
    for level in (0.05, 0.1, 0.25):
        limit = binom.ppf(1 - FALSE_ALARM, REPETITIONS, level)
        assert np.count_nonzero(np.array(pvalues) <= level) <= limit


def test_falling_back_is_said():
    few = np.geomspace(1e-4, 2e-3, 100)
    result = caltest.test(few, [0] * 100, "brier", null="moments", n_resamples=49, rng=0)
    assert result.n_resamples == 49
    assert any("labels were drawn instead" in note for note in result.warnings)


@pytest.mark.parametrize(
    ("statistic", "noise"),
    [
        *product(["skce_uq", "skce_b", "mmce", "ckce", "ece_squared"], [0.0, 1e-9, 1e-3, 1e-2]),
        *product(["skce_ul"], [0.0, 1e-9, 1e-3]),
    ],
)
def test_noise_unties_no_predictions(statistic, noise):
    """A curve through these few atoms rejects up to 1.36 times too often, by enumeration."""
    rng = np.random.default_rng(2)
    p = np.repeat([0.5, 0.9], 30) + noise * rng.standard_normal(60)
    result = caltest.test(p, rng.random(60) < p, statistic, null="moments", n_resamples=19, rng=0)
    assert result.n_resamples == 19


def test_a_variance_lost_to_rounding_still_knows_its_surprises():
    from caltest.forms import Moments

    assert Moments.of_cumulants(0.0, 0.0, 0.0, surprises=2.0).surprises == 2.0


def test_a_function_that_learns_from_its_first_call_is_not_fitted_to_the_observed_labels():
    class Cached:
        first = None

        def __call__(self, probs, labels):
            if self.first is None:
                self.first = labels.copy()
            return float((labels == self.first).mean())

    probs = np.full((50, 2), 0.5)
    pvalues = []
    for seed in range(REPETITIONS):
        labels = np.random.default_rng(seed).integers(0, 2, 50)
        pvalues.append(caltest.test(probs, labels, Cached(), n_resamples=39, rng=seed).pvalue)
    limit = binom.ppf(1 - FALSE_ALARM, REPETITIONS, 0.1)
    assert np.count_nonzero(np.array(pvalues) <= 0.1) <= limit


def test_mass_that_rounding_took_is_no_one_classs():
    from caltest.data import Rows

    probs = np.full((2000, 200), 1 / 200) * (1 - 1e-4)
    draws = caltest.test(
        Rows(probs), np.arange(2000) % 200, lambda p, y: float((y == 199).sum()), n_resamples=400, rng=0
    ).null_distribution
    assert abs(draws.mean() - 10) < 5 * np.sqrt(10 / 400)
