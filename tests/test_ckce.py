"""CKCE and JKCE: the formulas, published numbers, features beside the exact inverse, p-values."""

from dataclasses import replace

import numpy as np
import pytest
from ridge import CLASSES, REAL_VALUED, dense, kernel_matrix, some_labels
from scipy.special import softmax
from support import (
    P6,
    Y6,
    central_moments,
    dirichlet,
    every_outcome,
    kernels_for,
    residuals,
    some_fast,
    tied,
)

import caltest
from caltest import estimate
from caltest.binning import EqualWidth
from caltest.data import Rows
from caltest.forms import FeatureSquares, low_rank
from caltest.forms.kernel_matrices import DenseWeights, incomplete_cholesky
from caltest.forms.moments import identity_tile
from caltest.kernels import Gaussian, LinearGaussian, MatrixKernel
from caltest.kernels.base import fourier_features
from caltest.statistics import CKCE, ECE, JKCE, UnbiasedSKCE

# ------------------------------------------------------------------ definitions


@pytest.mark.parametrize("method", ["auto", "exact", "nystrom"])
@pytest.mark.parametrize("m", some_fast([2, 3, 12], 3))
@pytest.mark.parametrize("name", REAL_VALUED)
def test_definition(name, m, method):
    probs = np.vstack([dirichlet(25, m, 1, 0.5), np.eye(m)[:1], np.eye(m)[:1]])
    labels, kernel = some_labels(probs), kernels_for(m)[name]
    for regularization, value in (("n^-1/4", 27**-0.25), (0.01, 0.01)):
        expected = dense(kernel_matrix(probs, kernel), residuals(probs, labels), value)
        found = estimate(probs, labels, CKCE(kernel, regularization, method=method))
        assert found == pytest.approx(expected, rel=1e-8)


@pytest.mark.parametrize("method", ["exact", "nystrom"])
def test_label_kernel(method):
    """A matrix kernel of one part: its matrix compares the labels."""
    D, A = residuals(P6, Y6), CLASSES
    found = estimate(P6, Y6, CKCE(MatrixKernel([(Gaussian(0.5), A)]), 0.1, method=method))
    assert found == pytest.approx(dense(kernel_matrix(P6, Gaussian(0.5)), D, 0.1, A), rel=1e-10)


@pytest.mark.parametrize("method", ["exact", "nystrom"])
def test_constant_predictions(method):
    """K = k 11ᵀ, so that CKCE = k |Σ D_i|² / (k n + λ n)²: 0 if each class is as frequent as said."""
    probs = np.full((40, 4), 0.25)
    statistic = CKCE(regularization=0.3, method=method)
    k, labels = 1.25, np.zeros(40, dtype=int)
    expected = k * np.sum((40 * (np.eye(4)[0] - 0.25)) ** 2) / (k * 40 + 0.3 * 40) ** 2
    assert estimate(probs, labels, statistic) == pytest.approx(expected, rel=1e-12)
    assert estimate(probs, np.arange(40) % 4, statistic) == pytest.approx(0.0, abs=1e-14)


@pytest.mark.parametrize("kernel", [LinearGaussian(0.4), Gaussian(0.4)])
def test_fourier_features_as_published(kernel):
    """|Dᵀ Φ (ΦᵀΦ + λ n I)⁻¹|², Φ = [p, cos/√D_f, sin/√D_f] with frequencies from N(0, γ⁻² I)."""
    probs = dirichlet(50, 3, 0)
    labels = some_labels(probs)
    phi = fourier_features(kernel, probs, 20, 7)
    linear = 3 if isinstance(kernel, LinearGaussian) else 0
    assert phi.shape == (50, 40 + linear)
    assert np.array_equal(phi[:, :linear], probs[:, :linear])
    cosines, sines = phi[:, linear : linear + 20], phi[:, linear + 20 :]
    assert cosines**2 + sines**2 == pytest.approx(1 / 20)
    c = 50 * 50**-0.25
    W = residuals(probs, labels).T @ phi @ np.linalg.inv(phi.T @ phi + c * np.eye(phi.shape[1]))
    statistic = CKCE(kernel, method="fourier", features=20, seed=7)
    assert estimate(probs, labels, statistic) == pytest.approx(np.sum(W**2), rel=1e-9)
    other = estimate(probs, labels, replace(statistic, seed=8))
    assert other != pytest.approx(np.sum(W**2), rel=1e-6)


def test_jkce_is_the_unbiased_skce_with_the_kernel_of_the_ckce():
    assert JKCE().kernel == CKCE().kernel == LinearGaussian("median")
    assert estimate(P6, Y6, JKCE()) == estimate(P6, Y6, UnbiasedSKCE(LinearGaussian()))
    assert (
        caltest.test(P6, Y6, "jkce", n_resamples=9, rng=0).measures == "joint kernel calibration error"
    )


# ------------------------------------------------------------------ published numbers

POINT = Gaussian(1e-3)  # on predictions 0.3 apart: 1 if they are equal, else 0


@pytest.mark.parametrize("p", [0.2, 0.5, 0.9])
@pytest.mark.parametrize("method", ["exact", "nystrom"])
def test_toy_model(p, method):
    """Moskvichev and Sejdinovic 2025, Appendix A: CKCE is 0.1 whatever p, JKCE is not.

    P(Y = 1) = 0.5 where 0.3 is predicted (a share p of the rows) and where 0.6 is. With kernel
    1[q = q'] a group of n_a rows is shrunk by n_a / (n_a + λ n) only.
    """
    n, regularization = 400, 1e-6
    first = round(p * n)
    positive = np.repeat([0.3, 0.6], [first, n - first])
    probs, labels = np.column_stack([1 - positive, positive]), np.arange(n) % 2
    ckce = estimate(probs, labels, CKCE(POINT, regularization, method=method))
    shrinkage = [(share / (share + regularization)) ** 2 for share in (p, 1 - p)]
    assert ckce == pytest.approx(0.08 * shrinkage[0] + 0.02 * shrinkage[1], rel=1e-6)
    assert ckce == pytest.approx(0.1, rel=1e-4)
    # The mean over the pairs i = j too is the plug-in estimate, which is the population value here.
    own = np.sum(residuals(probs, labels) ** 2)
    plug_in = (n * (n - 1) * estimate(probs, labels, JKCE(POINT)) + own) / n**2
    assert plug_in == pytest.approx(0.1 * p**2 - 0.04 * p + 0.02, rel=1e-10)
    ece = estimate(probs, labels, ECE(EqualWidth(10), distance="l1"))
    assert ece == pytest.approx(0.2 + 0.2 * p, rel=1e-10)


@pytest.mark.level
def test_marginal_model():
    """Their Table 1: JKCE ×100 is −.010 and CKCE 0 for 10 000 rows of 0.1, of 1 000 labels each."""
    probs, labels = np.full((10_000, 10), 0.1), np.arange(10_000) % 10
    assert 100 * estimate(probs, labels, "jkce") == pytest.approx(-100 * 1.1 * 0.9 / 9999, rel=1e-9)
    assert estimate(probs, labels, "ckce") == pytest.approx(0.0, abs=1e-20)


@pytest.fixture(scope="module")
def densenet(reference):
    data = reference("cifar10_densenet40_logits.npz")
    return softmax(data["test_logits"].astype(np.float64), axis=1), data["test_labels"].ravel().astype(
        int
    )


@pytest.mark.slow
@pytest.mark.parametrize(("factor", "published"), [(0.5, 0.0956), (1.0, 0.0959)])
def test_densenet(densenet, factor, published):
    """CKCE ×10 of the whole test set; 0.096 in Table 1. Where "exact" is slow, "nystrom" is as good."""
    probs, labels = densenet
    width = LinearGaussian().fitted(probs).bandwidth
    result = caltest.test(probs, labels, CKCE(LinearGaussian(factor * width)), null="moments", n_jobs=2)
    assert 10 * result.statistic == pytest.approx(published, abs=5e-5)
    assert result.parameters["method"] == "nystrom"
    assert result.parameters["trace_error"] < 1e-4
    assert result.pvalue < 1e-9


def test_densenet_jkce(densenet):
    """JKCE ×100: 0.071 in Table 1, where γ is half the median."""
    probs, labels = densenet
    kernel = LinearGaussian(0.5 * LinearGaussian().fitted(probs).bandwidth)
    assert 100 * estimate(probs, labels, JKCE(kernel)) == pytest.approx(0.07061, abs=5e-6)


@pytest.mark.level
def test_features_beside_the_exact_inverse(densenet):
    probs, labels = densenet[0][:1200], densenet[1][:1200]
    exact = dense(kernel_matrix(probs), residuals(probs, labels), 1200**-0.25)
    assert estimate(probs, labels, "ckce") == pytest.approx(exact, rel=1e-10)
    errors = [estimate(probs, labels, CKCE(features=f)) / exact - 1 for f in (10, 30, 100)]
    assert np.abs(errors) == pytest.approx(0.0, abs=0.05)
    assert abs(errors[2]) < 1e-6 < abs(errors[1]) < abs(errors[0])
    fourier = CKCE(method="fourier", features=200)
    seeds = [estimate(probs, labels, replace(fourier, seed=s)) / exact - 1 for s in range(5)]
    assert np.abs(seeds) == pytest.approx(0.0, abs=0.02)


# ------------------------------------------------------------------ features


def test_incomplete_factorisation():
    K = kernel_matrix(dirichlet(120, 4, 0, 0.5))
    for columns in (1, 5, 40):
        factor, missing, _ = incomplete_cholesky(DenseWeights(K), np.arange(120), columns)
        rest = K - factor @ factor.T
        assert factor.shape == (120, columns)
        assert missing == pytest.approx(np.trace(rest) / np.trace(K), rel=1e-8, abs=1e-15)
        assert np.linalg.eigvalsh(rest)[0] > -1e-10


def test_the_factorisation_ends_where_nothing_is_left():
    probs = tied(200, 3, 0)
    distinct = len(np.unique(probs, axis=0))
    factor, missing, _ = incomplete_cholesky(DenseWeights(kernel_matrix(probs)), np.arange(200), 100)
    assert factor.shape == (200, distinct)
    assert missing < 1e-14


def statistics():
    """One of every method, each where it approximates."""
    return {
        "exact": CKCE(method="exact"),
        "nystrom": CKCE(features=5),
        "fourier": CKCE(method="fourier", features=5),
    }


def test_tied_pivots_with_groups_ignore_the_row_order():
    """Certain predictions are all as good a pivot as any, in every group."""
    probs = np.eye(3)[np.arange(90) % 3]
    labels, groups = some_labels(probs), np.arange(90) % 4
    order = np.random.default_rng(2).permutation(90)
    one = estimate(probs, labels, CKCE(features=5, groups=groups))
    other = estimate(probs[order], labels[order], CKCE(features=5, groups=groups[order]))
    assert other == pytest.approx(one, rel=1e-9)


@pytest.mark.parametrize(
    ("m", "matrix"),
    [(2, None), (3, None), (7, None), (3, CLASSES), (3, np.diag([1.0, 0.0, 0.0])), (9, np.eye(9) + 1)],
)
def test_feature_squares(m, matrix):
    """Summed by label and pair by pair: the same."""
    probs = dirichlet(300, m, 0, 0.4)
    features = np.random.default_rng(1).normal(size=(300, 6))
    form = FeatureSquares(probs, features, matrix)
    labels = np.random.default_rng(2).integers(0, m, (70, 300)).astype(np.uint8)
    block = form.of_labels(labels)
    assert block == pytest.approx(form.pairs.of_labels(labels), rel=1e-10)
    assert block == pytest.approx(np.array([form.value(row.astype(np.intp)) for row in labels]))
    D, A = residuals(probs, labels[0]), np.eye(m) if matrix is None else matrix
    assert block[0] == pytest.approx(np.trace(A @ D.T @ features @ features.T @ D), rel=1e-10)


# ------------------------------------------------------------------ moments, by enumeration


@pytest.fixture
def many_rows(monkeypatch):
    """Take the path for many rows whatever their number."""

    def moments(form):
        with monkeypatch.context() as patch:
            patch.setattr(low_rank, "is_worthwhile", lambda n, m, f: True)
            return form.moments()

    return moments


@pytest.mark.parametrize(("n", "m"), [(6, 2), (5, 3)])
def test_moments_without_pairs(n, m, many_rows, monkeypatch):
    """By enumeration, all but the sum that is estimated from samples; that, here, over all rows."""

    def over_all_rows(probs, features):
        form = FeatureSquares(probs, features)
        every = slice(0, n)
        return identity_tile(probs, None, form.pairs.kernel_terms[0].weights, every, every)[0][1], 0.0

    monkeypatch.setattr("caltest.forms.moments._sampled_cubes", over_all_rows)
    probs = np.vstack([dirichlet(n - 2, m, 3), np.eye(m)[:1], [[0.99] + [0.01 / (m - 1)] * (m - 1)]])
    form = FeatureSquares(probs, np.random.default_rng(0).normal(size=(n, 2)))
    outcomes, chances = every_outcome(probs)
    mean, variance, third = central_moments(form.of_labels(outcomes), chances)
    moments = many_rows(form)
    assert moments.mean == pytest.approx(mean, rel=1e-9)
    assert moments.variance == pytest.approx(variance, rel=1e-9)
    assert moments.skewness == pytest.approx(third / variance**1.5, rel=1e-8)


@pytest.mark.parametrize(("m", "alpha"), [(2, 0.5), (3, 0.2), (10, 0.1)])
def test_sampled_moments(m, alpha, many_rows):
    probs = dirichlet(500, m, 1, alpha)
    order = np.random.default_rng(0).permutation(500)
    form, other = (CKCE(features=12).given(Rows(p)) for p in (probs, probs[order]))
    exact, sampled, shuffled = form.moments(), many_rows(form), many_rows(other)
    assert sampled.variance == pytest.approx(exact.variance, rel=1e-9)
    assert 0.0 < sampled.skewness_error < 0.02
    assert abs(sampled.skewness - exact.skewness) < 5 * sampled.skewness_error
    assert shuffled.skewness == pytest.approx(sampled.skewness, rel=1e-6)
    assert sampled.surprises == exact.surprises


# ------------------------------------------------------------------ p-values
