"""Kernels of low rank: Nyström's and Fourier's features, and the statistics made of them."""

from dataclasses import replace

import numpy as np
import pytest
from ridge import some_labels
from support import binomial_limits, central_moments, dirichlet, every_outcome

import caltest
from caltest import blocks, estimate
from caltest.data import Rows
from caltest.kernels import Exponential, Gaussian, Linear, LinearGaussian, MatrixKernel
from caltest.kernels.base import fourier_features
from caltest.statistics import JKCE, BiasedSKCE, Omnibus, UnbiasedSKCE
from validation.generative import m1, m3

SHIFT_INVARIANT = [
    Gaussian(0.4), Gaussian(0.3, "hellinger"), Exponential(0.3), Exponential(0.3, "euclidean"),
    Exponential(0.3, "hellinger"), LinearGaussian(0.5), 2 * Linear() + 0.5 * Gaussian(0.3),
]  # fmt: skip
MATRIX = np.array([[2.0, 1.0, 0.0], [1.0, 2.0, 0.5], [0.0, 0.5, 1.0]])


@pytest.mark.parametrize("kernel", SHIFT_INVARIANT, ids=repr)
def test_fourier_features_have_the_kernel_as_their_mean(kernel):
    probs = dirichlet(6, 4, 2)
    phi = fourier_features(kernel, probs, 100_000)
    assert phi @ phi.T == pytest.approx(kernel(probs, probs), abs=0.012)  # 4 standard errors


def test_the_inner_product_is_exact():
    probs = dirichlet(6, 4, 2)
    assert np.array_equal(fourier_features(Linear(), probs, 5), probs)


@pytest.mark.parametrize("statistic", [BiasedSKCE, UnbiasedSKCE, JKCE])
@pytest.mark.parametrize("m", [2, 3, 12])
def test_full_rank_is_the_kernel_itself(statistic, m):
    probs = np.vstack([dirichlet(40, m, 3), np.eye(m)[:1], np.eye(m)[:1]])
    labels = some_labels(probs)
    full, low = statistic(), statistic(approximation="nystrom", rank=42)
    assert estimate(probs, labels, low) == pytest.approx(estimate(probs, labels, full), rel=1e-9)


def test_a_matrix_kernel_of_one_part():
    probs = dirichlet(30, 3, 5)
    labels, kernel = some_labels(probs), MatrixKernel([(Gaussian(0.5), MATRIX)])
    for statistic in (BiasedSKCE, UnbiasedSKCE):
        low = estimate(probs, labels, statistic(kernel, "nystrom", 30))
        assert low == pytest.approx(estimate(probs, labels, statistic(kernel)), rel=1e-9)


@pytest.mark.parametrize("approximation", ["nystrom", "fourier"])
@pytest.mark.parametrize("statistic", [BiasedSKCE, UnbiasedSKCE])
def test_definition_with_few_columns(statistic, approximation):
    """The mean of ⟨φ_i, φ_j⟩ ⟨D_i, D_j⟩, over all pairs or those with i ≠ j."""
    probs = dirichlet(50, 3, 1)
    labels, measure = some_labels(probs), statistic(Gaussian(0.4), approximation, 6)
    phi = measure.fitted(Rows(probs))._fit.features
    assert phi.shape == (50, 6)
    residuals = np.eye(3)[labels] - probs
    h = (phi @ phi.T) * (residuals @ residuals.T)
    expected = h.mean() if statistic is BiasedSKCE else (h.sum() - np.trace(h)) / (50 * 49)
    assert estimate(probs, labels, measure) == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize("statistic", [BiasedSKCE, UnbiasedSKCE])
def test_moments_by_enumeration(statistic):
    probs = dirichlet(5, 3, 8)
    probs[0], probs[1] = [0.0, 1.0, 0.0], [0.99, 0.005, 0.005]
    form = statistic(Gaussian(0.4), "fourier", 4).given(Rows(probs))
    outcomes, chances = every_outcome(probs)
    mean, variance, third = central_moments(form.of_labels(outcomes), chances)
    moments = form.moments()
    assert moments.mean == pytest.approx(mean, rel=1e-9, abs=1e-15)
    assert moments.variance == pytest.approx(variance, rel=1e-9)
    assert moments.skewness == pytest.approx(third / variance**1.5, rel=1e-8)


def test_moments_of_many_rows_agree_with_those_over_pairs():
    probs = dirichlet(5000, 3, 4)
    form = UnbiasedSKCE(Gaussian(0.4), "nystrom", 12).given(Rows(probs))
    fast, exact = form.moments(), form.pairs.moments()
    assert fast.mean == exact.mean == 0.0
    assert fast.variance == pytest.approx(exact.variance, rel=1e-9)
    assert fast.skewness == pytest.approx(exact.skewness, abs=4 * fast.skewness_error + 1e-9)


def test_the_order_of_rows_and_the_number_of_workers_change_nothing():
    probs = dirichlet(300, 4, 6)
    labels, order = some_labels(probs), np.random.default_rng(1).permutation(300)
    low = UnbiasedSKCE(approximation="nystrom", rank=20)
    assert estimate(probs[order], labels[order], low) == pytest.approx(
        estimate(probs, labels, low), rel=1e-9
    )
    one, two = (caltest.test(probs, labels, low, rng=0, n_jobs=jobs) for jobs in (1, 2))
    assert np.array_equal(one.null_distribution, two.null_distribution)


def test_what_a_result_says_of_it():
    probs = dirichlet(300, 4, 6)
    result = caltest.test(probs, some_labels(probs), UnbiasedSKCE(approximation="nystrom", rank=20))
    assert result.guarantee == "exact"
    assert result.parameters["approximation"] == "nystrom"
    assert result.parameters["rank"] == 20
    assert 0.0 < result.parameters["trace_error"] < 1.0
    fourier = UnbiasedSKCE(approximation="fourier", rank=20).fitted(Rows(probs)).parameters
    assert fourier["rank"] == 20
    assert "trace_error" not in fourier


def test_auto_is_full_as_long_as_it_is_fast():
    few, many = (Rows(np.tile([[0.3, 0.6, 0.1], [0.5, 0.4, 0.1]], (n // 2, 1))) for n in (1500, 1502))
    measure = UnbiasedSKCE(approximation="auto", rank=4)
    assert measure.fitted(few).approximation is None
    assert "approximation" not in measure.fitted(few).parameters
    fitted = measure.fitted(many)
    assert fitted.parameters["approximation"] == "nystrom"
    assert fitted.parameters["rank"] == 2  # as many as there are distinct predictions
    assert fitted.given(many).features.shape == (1502, 2)


def test_auto_takes_all_pairs_where_they_are_one_pass():
    many = Rows(np.tile([[0.3, 0.7], [0.6, 0.4]], (20_000, 1)))
    assert UnbiasedSKCE(approximation="auto").fitted(many).approximation is None
    assert UnbiasedSKCE(Gaussian(), approximation="auto").fitted(many).approximation == "nystrom"


@pytest.mark.level
@pytest.mark.parametrize("approximation", ["nystrom", "fourier"])
def test_size_and_power(approximation):
    """Exact whatever the rank; 8 columns of 250 rows see M3."""
    statistic = UnbiasedSKCE(approximation=approximation, rank=8)
    rejected = {}
    for name, model in {"calibrated": m1, "M3": m3}.items():
        rejected[name] = 0
        for seed in range(200):
            data = model(100, rng=seed)
            result = caltest.test(data.probs, data.labels, statistic, n_resamples=99, rng=seed)
            rejected[name] += result.rejects(0.05)
    low, high = binomial_limits(200, 0.05)
    assert low <= rejected["calibrated"] / 200 <= high
    assert rejected["M3"] > 100


@pytest.mark.slow
def test_bandwidths_have_one_set_of_features():
    """Their sums are added up once; each is close to its own kernel, and has its own pairs i = j."""
    rows = Rows(dirichlet(1600, 3, 4))
    whole = Omnibus().given(rows)
    narrow, wide = (part.form for part in whole.components[:2])
    assert narrow.scores is wide.scores
    labels = rows.sampler(1).draw(0, 64)
    together = whole.values(labels)[:, :2]
    kernel = Exponential().fitted(rows.probs)
    for form, share, found in zip((narrow, wide), (0.25, 1.0), together.T, strict=True):
        alone = replace(form, shared=None).of_labels(labels)
        assert found == pytest.approx(alone, rel=1e-10, abs=1e-12 * np.abs(alone).max())
        own = replace(kernel, bandwidth=share * kernel.bandwidth)
        assert np.corrcoef(UnbiasedSKCE(own).given(rows).of_labels(labels), alone)[0, 1] > 0.995


# ------------------------------------------------------------------ very many rows


def test_features_that_are_computed_when_needed(monkeypatch):
    """Landmarks from a subsample; if all rows are landmarks, it is the kernel, but for rounding."""
    probs = np.repeat(dirichlet(40, 3, 2), 5, axis=0)
    labels, kernel = some_labels(probs), Gaussian(0.4)
    monkeypatch.setattr("caltest.forms.kernel_matrices.HELD_UP_TO", 100)
    for statistic in (BiasedSKCE, UnbiasedSKCE):
        low = statistic(kernel, "nystrom", 60)
        form = low.given(Rows(probs))
        assert not isinstance(form.features, np.ndarray)
        assert form.features.shape[0] == 200
        assert estimate(probs, labels, low) == pytest.approx(
            estimate(probs, labels, statistic(kernel)), rel=1e-3
        )
    few = UnbiasedSKCE(kernel, "nystrom", 7).given(Rows(probs))
    phi = few.features[:]
    assert phi.shape == (200, 7)
    assert np.array_equal(few.features[3:5], phi[3:5])
    landmarks = few.features.function.args[1]
    gram, between = kernel(landmarks, landmarks), kernel(probs, landmarks)
    assert phi @ phi.T == pytest.approx(between @ np.linalg.solve(gram, between.T), abs=2e-3)


@pytest.mark.parametrize("approximation", ["nystrom", "fourier"])
@pytest.mark.parametrize("m", [3, 20])
def test_rounded_features_add_up(monkeypatch, approximation, m):
    monkeypatch.setattr("caltest.forms.kernel_matrices.HELD_UP_TO", 100)
    probs = dirichlet(3000, m, 1)
    form = UnbiasedSKCE(Gaussian(0.4), approximation, 31).given(Rows(probs))
    labels = np.stack([some_labels(probs), np.zeros(3000, int), np.full(3000, m - 1)])
    sums = form.scores.sums(labels.astype(np.uint8)).reshape(3, m + 1, -1)[:, :-1]
    phi = form.features[:].astype(np.float64)
    unit = 2.0**-13
    assert np.array_equal(phi / unit, np.rint(phi / unit))
    for row, own in zip(labels, sums, strict=True):
        counted = np.stack([phi[row == k].sum(axis=0) for k in range(m)])
        assert own == pytest.approx(counted - probs.T @ phi, rel=1e-12, abs=1e-11)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("statistic", "lens"),
    [
        (UnbiasedSKCE(approximation="nystrom", rank=5), None),
        (BiasedSKCE(approximation="fourier", rank=6), None),
        ("ecd", None),
        ("ece", "top_label"),
    ],
)
def test_rows_one_after_the_other_give_the_numbers_of_draws_one_after_the_other(
    monkeypatch, statistic, lens
):
    probs = dirichlet(9000, 4, 3)
    labels = some_labels(probs)
    by_draws = caltest.test(probs, labels, statistic, lens=lens, n_resamples=130, rng=5)
    monkeypatch.setattr(blocks, "_MANY_ROWS", 1000)
    for jobs in (1, 2):
        by_rows = caltest.test(probs, labels, statistic, lens=lens, n_resamples=130, rng=5, n_jobs=jobs)
        largest = np.abs(by_draws.null_distribution).max()
        assert by_rows.null_distribution == pytest.approx(
            by_draws.null_distribution, abs=1e-12 * largest
        )
        assert by_rows.pvalue == by_draws.pvalue


def test_equal_labels_give_equal_numbers_whichever_way_rows_are_taken(monkeypatch):
    """Nearly certain labels: all draws are the observed ones, and must tie."""
    monkeypatch.setattr(blocks, "_MANY_ROWS", 100)
    probs = np.tile([1 - 1e-14, 5e-15, 5e-15], (300, 1))
    for statistic in ("ecd", UnbiasedSKCE(approximation="nystrom", rank=3)):
        assert caltest.test(probs, np.zeros(300, int), statistic, n_resamples=99, rng=0).pvalue == 1.0
