"""CKCE and JKCE: the formulas, published numbers, features beside the exact inverse, p-values."""

from __future__ import annotations

from dataclasses import replace
from itertools import product

import numpy as np
import pytest
from scipy.special import softmax
from support import (
    P6,
    Y6,
    binomial_limits,
    central_moments,
    dirichlet,
    every_outcome,
    kernels_for,
    labels_from,
    residuals,
    tied,
)

import caltest
from caltest import InputError, estimate
from caltest.data import Predictions
from caltest.forms import (
    DenseWeights,
    FeatureSquares,
    KernelWeights,
    Pairwise,
    ProductWeights,
    _low_rank_moments,
    feature_squares,
    incomplete_cholesky,
)
from caltest.forms._quadratic_moments import _identity_tile
from caltest.kernels import Exponential, Gaussian, Kernel, Linear, LinearGaussian, MatrixKernel
from caltest.simulation import m1, m2, m3
from caltest.statistics import CKCE, JKCE, UnbiasedSKCE, _ridge, ckce

REAL_VALUED = [name for name, kernel in kernels_for(2).items() if isinstance(kernel, Kernel)]
GROUPS = ["a", "b", "b", "a", "c", "a"]
CLASSES = np.array([[2.0, 0.5, 0.0], [0.5, 1.0, -0.3], [0.0, -0.3, 0.7]])  # positive definite


def dense(K, D, regularization, A=None):
    """tr(Wᵀ K W) with W = K_λ⁻¹ D, by a linear solver."""
    n, m = D.shape
    W = np.linalg.solve(K + regularization * n * np.eye(n), D)
    return np.trace(W.T @ K @ W @ (np.eye(m) if A is None else A))


def kernel_matrix(probs, kernel=None):
    return (kernel or LinearGaussian()).fitted(probs)(probs, probs)


def some_labels(probs, seed=0):
    """Labels that do not come from the predictions."""
    return np.random.default_rng(seed).integers(0, probs.shape[1], len(probs))


# ------------------------------------------------------------------ definitions


@pytest.mark.parametrize("method", ["auto", "exact", "nystrom"])
@pytest.mark.parametrize("m", [2, 3, 12])
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
    phi = _ridge.fourier_features(kernel, probs, 20, 7)
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


def test_fourier_features_have_the_kernel_as_their_mean():
    probs, kernel = dirichlet(6, 3, 2), LinearGaussian(0.5)
    phi = _ridge.fourier_features(kernel, probs, 200_000, 0)
    assert phi @ phi.T == pytest.approx(kernel(probs, probs), abs=0.01)  # 4 standard errors


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
    probs = dirichlet(120, 4, 0, 0.5)
    K = kernel_matrix(probs)
    for columns in (1, 5, 40):
        factor, missing = incomplete_cholesky(DenseWeights(K), np.arange(120), columns)
        rest = K - factor @ factor.T
        assert factor.shape == (120, columns)
        assert missing == pytest.approx(np.trace(rest) / np.trace(K), rel=1e-8, abs=1e-15)
        assert np.linalg.eigvalsh(rest)[0] > -1e-10


def test_the_factorisation_ends_where_nothing_is_left():
    probs = tied(200, 3, 0)
    distinct = len(np.unique(probs, axis=0))
    factor, missing = incomplete_cholesky(DenseWeights(kernel_matrix(probs)), np.arange(200), 100)
    assert factor.shape == (200, distinct)
    assert missing < 1e-14


def statistics():
    """One of every method, each where it approximates."""
    return {
        "exact": CKCE(method="exact"),
        "nystrom": CKCE(features=5),
        "fourier": CKCE(method="fourier", features=5),
        "cv": CKCE(regularization="cv"),
    }


@pytest.mark.parametrize("name", statistics())
@pytest.mark.parametrize("probs", [dirichlet(150, 4, 3, 0.3), tied(150, 4, 1)], ids=["smooth", "tied"])
def test_row_order(probs, name):
    labels, order = some_labels(probs), np.random.default_rng(9).permutation(150)
    statistic = statistics()[name]
    one, other = estimate(probs, labels, statistic), estimate(probs[order], labels[order], statistic)
    assert other == pytest.approx(one, rel=1e-9)


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
    block = form.evaluate(labels)
    assert block == pytest.approx(form.pairs.evaluate(labels), rel=1e-10)
    assert block == pytest.approx(np.array([form.value(row.astype(np.intp)) for row in labels]))
    D, A = residuals(probs, labels[0]), np.eye(m) if matrix is None else matrix
    assert block[0] == pytest.approx(np.trace(A @ D.T @ features @ features.T @ D), rel=1e-10)


@pytest.mark.parametrize("name", statistics())
def test_workers_do_not_change_a_number(name):
    probs = dirichlet(300, 5, 0)
    labels = some_labels(probs)
    one, two = (
        caltest.test(probs, labels, statistics()[name], rng=0, n_resamples=150, n_jobs=jobs)
        for jobs in (1, 2)
    )
    assert np.array_equal(one.null_distribution, two.null_distribution)


# ------------------------------------------------------------------ moments, by enumeration


@pytest.mark.parametrize("shape", [(5, 2), (5, 3)])
@pytest.mark.parametrize(
    "make",
    [
        lambda m: CKCE(),
        lambda m: CKCE(Exponential(0.3), 0.02),
        lambda m: CKCE(features=2),
        lambda m: CKCE(method="fourier", features=2),
        lambda m: CKCE(groups=GROUPS[:5]),
        lambda m: CKCE(features=3, groups=[0.1, 0.4, 0.2, 0.9, 0.3]),
        lambda m: CKCE(MatrixKernel([(Gaussian(0.4), CLASSES[:m, :m])])),
        lambda m: CKCE(MatrixKernel([(Gaussian(0.4), CLASSES[:m, :m])]), features=3),
    ],
    ids=[
        "exact",
        "exponential",
        "nystrom",
        "fourier",
        "groups",
        "quantity",
        "labels",
        "low rank labels",
    ],
)
def test_moments(make, shape):
    n, m = shape
    probs = dirichlet(n, m, n + m)
    probs[0] = np.eye(m)[1]
    probs[1] = [0.99] + [0.01 / (m - 1)] * (m - 1)
    form = make(m).given(Predictions(probs))
    outcomes, chances = every_outcome(probs)
    mean, variance, third = central_moments(form.evaluate(outcomes), chances)
    moments = form.moments()
    assert moments.mean == pytest.approx(mean, rel=1e-9)
    assert moments.variance == pytest.approx(variance, rel=1e-9)
    assert moments.skewness == pytest.approx(third / variance**1.5, rel=1e-8)


@pytest.fixture
def many_rows(monkeypatch):
    """Take the path for many rows whatever their number."""

    def moments(form):
        with monkeypatch.context() as patch:
            patch.setattr(feature_squares, "is_worthwhile", lambda n, m, f: True)
            return form.moments()

    return moments


@pytest.mark.parametrize(("n", "m"), [(6, 2), (5, 3)])
def test_moments_without_pairs(n, m, many_rows, monkeypatch):
    """By enumeration, all but the sum that is estimated from samples; that, here, over all rows."""

    def over_all_rows(probs, features):
        form = FeatureSquares(probs, features)
        every, none = slice(0, n), np.zeros_like(probs)
        return _identity_tile(probs, none, form.pairs.kernel_terms[0], every, every)[1], 0.0

    monkeypatch.setattr(_low_rank_moments, "_sampled_cubes", over_all_rows)
    probs = np.vstack([dirichlet(n - 2, m, 3), np.eye(m)[:1], [[0.99] + [0.01 / (m - 1)] * (m - 1)]])
    form = FeatureSquares(probs, np.random.default_rng(0).normal(size=(n, 2)))
    outcomes, chances = every_outcome(probs)
    mean, variance, third = central_moments(form.evaluate(outcomes), chances)
    moments = many_rows(form)
    assert moments.mean == pytest.approx(mean, rel=1e-9)
    assert moments.variance == pytest.approx(variance, rel=1e-9)
    assert moments.skewness == pytest.approx(third / variance**1.5, rel=1e-8)


@pytest.mark.parametrize(("m", "alpha"), [(2, 0.5), (3, 0.2), (10, 0.1)])
def test_sampled_moments(m, alpha, many_rows):
    probs = dirichlet(500, m, 1, alpha)
    order = np.random.default_rng(0).permutation(500)
    form, other = (CKCE(features=12).given(Predictions(p)) for p in (probs, probs[order]))
    exact, sampled, shuffled = form.moments(), many_rows(form), many_rows(other)
    assert sampled.variance == pytest.approx(exact.variance, rel=1e-9)
    assert 0.0 < sampled.skewness_error < 0.02
    assert abs(sampled.skewness - exact.skewness) < 5 * sampled.skewness_error
    assert shuffled.skewness == pytest.approx(sampled.skewness, rel=1e-6)
    assert sampled.surprises == exact.surprises


# ------------------------------------------------------------------ p-values

TRIALS = 300


@pytest.mark.parametrize("null", ["monte_carlo", "moments"])
@pytest.mark.parametrize("name", [*statistics(), "groups", "jkce"])
def test_type_i_error(name, null):
    """Reject a calibrated model as often as stated: 1 in 10 000 such tests fails by chance."""
    rejections = np.zeros(2)
    for trial in range(TRIALS):
        rng = np.random.default_rng([trial, 17])
        probs = rng.dirichlet([0.5, 1.0, 0.7], 60)
        labels = labels_from(probs, rng)
        statistic = {
            **statistics(),
            "groups": CKCE(groups=rng.integers(0, 3, 60)),
            "jkce": JKCE(),
        }[name]
        p = caltest.test(probs, labels, statistic, null=null, n_resamples=99, rng=trial).pvalue
        rejections += p <= np.array([0.05, 0.2])
    for rate, level in zip(rejections / TRIALS, (0.05, 0.2), strict=True):
        low, high = binomial_limits(TRIALS, level)
        assert low <= rate <= high


@pytest.mark.parametrize("make", [m2, m3])
def test_power(make):
    """The mixtures of Widmann et al. 2019, M2 and M3: as good as rejected always, as by SKCE."""
    found = {}
    for name in ("ckce", "jkce", "skce_uq"):
        data = [make(100, 10, rng=seed) for seed in range(40)]
        found[name] = np.mean(
            [caltest.test(d.probs, d.labels, name, null="moments").pvalue <= 0.05 for d in data]
        )
    assert min(found.values()) > 0.9


# ------------------------------------------------------------------ regularization


@pytest.mark.parametrize("A", [None, CLASSES])
def test_cross_validation_is_leave_one_out_in_the_mean(A):
    """Against the mean over drawn labels, each row left out and predicted by the others."""
    probs = dirichlet(12, 3, 4)
    kernel, metric = Gaussian(0.4), np.eye(3) if A is None else A
    K, n = kernel(probs, probs), 12

    def left_out(regularization, labels):
        total, Y = 0.0, np.eye(3)[labels]
        for i in range(n):
            others = np.delete(np.arange(n), i)
            inner = K[np.ix_(others, others)] + regularization * n * np.eye(n - 1)
            error = Y[i] - K[i, others] @ np.linalg.solve(inner, Y[others])
            total += error @ metric @ error
        return total

    draws = [labels_from(probs, np.random.default_rng(seed)) for seed in range(300)]
    risks = {value: np.mean([left_out(value, y) for y in draws]) for value in _ridge.GRID[::2]}
    statistic = CKCE(kernel if A is None else MatrixKernel([(kernel, A)]), "cv")
    chosen = statistic.fitted(Predictions(probs)).regularization
    best = min(risks, key=risks.get)
    assert 0.09 < chosen / best < 11  # the neighbours of the best of every other value


@pytest.mark.parametrize("method", ["exact", "nystrom", "fourier"])
def test_cross_validation_sees_no_labels(method):
    probs = dirichlet(200, 3, 0)
    statistic = CKCE(regularization="cv", method=method)
    fitted = statistic.fitted(Predictions(probs))
    assert fitted.regularization in _ridge.GRID
    assert fitted.parameters["regularization_rule"] == "cv"
    forms = [s.given(Predictions(probs)) for s in (statistic, fitted)]
    labels = some_labels(probs)
    assert forms[0].value(labels) == forms[1].value(labels)


def test_more_rows_are_regularized_less():
    chosen = [
        CKCE(regularization="cv").fitted(Predictions(dirichlet(n, 3, 1))).regularization
        for n in (20, 200, 2000)
    ]
    assert chosen[0] > chosen[1] > chosen[2]


# ------------------------------------------------------------------ groups


def test_groups_multiply_the_kernel():
    labels = np.array([g == h for g, h in product(GROUPS, GROUPS)]).reshape(6, 6)
    expected = dense(kernel_matrix(P6) * labels, residuals(P6, Y6), 6**-0.25)
    for method in ("exact", "nystrom"):
        found = estimate(P6, Y6, CKCE(groups=GROUPS, method=method))
        assert found == pytest.approx(expected, rel=1e-10)


def test_numeric_groups_are_smoothed():
    age = np.array([20.0, 35.0, 31.0, 62.0, 48.0, 22.0])
    distances = np.abs(age[:, None] - age)
    width = np.median(distances[np.triu_indices(6, 1)])
    K = kernel_matrix(P6) * np.exp(-(distances**2) / (2 * width**2))
    expected = dense(K, residuals(P6, Y6), 6**-0.25)
    assert estimate(P6, Y6, CKCE(groups=age)) == pytest.approx(expected, rel=1e-10)
    assert estimate(P6, Y6, CKCE(groups=1e9 * age)) == pytest.approx(expected, rel=1e-10)


def test_names_of_groups_do_not_matter():
    values = [
        estimate(P6, Y6, CKCE(groups=groups))
        for groups in (GROUPS, np.array(GROUPS, dtype=object), [3, 1, 1, 3, 7, 3])
    ]
    assert values == pytest.approx([values[0]] * 3, rel=1e-12)
    one_group = estimate(P6, Y6, CKCE(groups=[True] * 6))
    assert one_group == pytest.approx(estimate(P6, Y6, "ckce"), rel=1e-12)


def test_groups_find_what_cancels_overall():
    """Too high in one group, too low in the other: calibrated, but in neither group."""
    rng = np.random.default_rng(0)
    p, group = rng.uniform(0.3, 0.7, 600), np.arange(600) % 2
    labels = (rng.random(600) < p + np.where(group, 0.2, -0.2)).astype(int)
    assert caltest.test(p, labels, "ckce", rng=0).pvalue > 0.05
    found = caltest.test(p, labels, CKCE(groups=group), rng=0)
    assert found.pvalue == 0.001
    assert found.parameters["groups"] == 2


def test_groups_are_compared_by_what_they_hold():
    assert CKCE(groups=GROUPS) == CKCE(groups=list(GROUPS))
    assert hash(CKCE(groups=GROUPS)) == hash(CKCE(groups=list(GROUPS)))
    assert CKCE(groups=GROUPS) != CKCE(groups=GROUPS[::-1])
    assert CKCE(groups=GROUPS) != CKCE()
    assert "groups=<3, 6 rows>" in repr(CKCE(groups=GROUPS))


def test_products_of_weights():
    first, second = KernelWeights(Gaussian(0.5), P6), KernelWeights(Linear(), P6)
    both, rows = ProductWeights((first, second)), slice(1, 4)
    assert np.array_equal(both(rows, rows), first(rows, rows) * second(rows, rows))
    assert np.array_equal(both.diagonal(), first.diagonal() * second.diagonal())


# ------------------------------------------------------------------ options


def test_parameters_say_what_was_done(monkeypatch):
    probs = dirichlet(50, 3, 0)
    labels = some_labels(probs)

    def parameters(**options):
        return caltest.test(probs, labels, CKCE(**options), n_resamples=9, rng=0).parameters

    assert parameters() == {
        "kernel": "LinearGaussian",
        "bandwidth": LinearGaussian().fitted(probs).bandwidth,
        "bandwidth_rule": "median",
        "distance": "euclidean",
        "regularization": 50**-0.25,
        "regularization_rule": "n^-1/4",
        "method": "exact",
    }
    assert parameters(regularization=0.2)["regularization_rule"] == "given"
    low_rank = parameters(features=8)
    assert (low_rank["method"], low_rank["features"]) == ("nystrom", 8)
    assert 0 < low_rank["trace_error"] < 0.02
    assert parameters(method="fourier", seed=5)["feature_seed"] == 5
    monkeypatch.setattr(ckce, "EXACT_UP_TO", 49)
    assert parameters()["method"] == "nystrom"
    assert isinstance(CKCE().given(Predictions(probs)), FeatureSquares)
    assert isinstance(CKCE(method="exact").given(Predictions(probs)), Pairwise)


def test_a_coarse_factorisation_is_said():
    probs = dirichlet(60, 5, 0, 0.3)
    result = caltest.test(probs, some_labels(probs), CKCE(features=2), n_resamples=9, rng=0)
    assert any("leave out" in note and "% of its trace" in note for note in result.warnings)


def test_options_of_a_fitted_statistic_can_be_replaced():
    predictions = Predictions(dirichlet(50, 3, 0))
    fitted = CKCE(features=5).fitted(predictions)
    assert fitted.fitted(predictions) is fitted
    other = replace(fitted, features=9, regularization=0.5).fitted(predictions)
    assert other.parameters["features"] == 9
    assert other.parameters["regularization_rule"] == "given"
    elsewhere = fitted.fitted(Predictions(dirichlet(30, 3, 1)))
    assert elsewhere.regularization == fitted.regularization
    assert elsewhere.parameters["regularization_rule"] == "n^-1/4"


def test_too_little_memory_is_said_beforehand(monkeypatch):
    monkeypatch.setattr(_ridge, "available_memory", lambda: 4e9)
    predictions = Predictions(np.broadcast_to([0.5, 0.5], (20_000, 2)))
    message = r"about 6.8 GB of memory for 20000 rows, but 4 GB are available; use method='nystrom'"
    with pytest.raises(InputError, match=message):
        CKCE(method="exact").given(predictions)
    assert _ridge.available_memory() > 1e6


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"kernel": "gaussian"}, "kernel is 'gaussian'; give an object of caltest.kernels"),
        ({"kernel": MatrixKernel([(Gaussian(), np.eye(3))] * 2)}, "kernel has 2 parts; ckce takes one"),
        ({"regularization": 0.0}, r"regularization is 0.0; give a positive number up to 1e\+06, 'n"),
        ({"regularization": 1e12}, "regularization is 1000000000000.0; give a positive number up to"),
        ({"regularization": True}, "regularization is True; give a positive number"),
        ({"regularization": float("nan")}, "regularization is nan; give a positive number"),
        (
            {"regularization": "n^-1/3"},
            "there is no rule for the regularization 'n.-1/3'; did you mean",
        ),
        ({"method": "cholesky"}, "there is no method 'cholesky'"),
        ({"features": 0}, "features is 0; give a positive whole number"),
        ({"features": 20, "method": "exact"}, "features goes with method='nystrom' or 'fourier'"),
        (
            {"method": "fourier", "kernel": Exponential()},
            "not Exponential.*; method='nystrom' takes any",
        ),
        ({"method": "fourier", "kernel": Gaussian(distance="hellinger")}, "method='nystrom' takes any"),
        ({"method": "fourier", "groups": GROUPS}, "does not go with groups; use method='nystrom'"),
        ({"groups": [0.5, float("inf")]}, r"groups has the entry inf in row 1 \(counting from 0\)"),
        ({"groups": [[1, 2], [3, 4]]}, r"groups has shape \(2, 2\); give one column"),
        ({"groups": ["a", None]}, "groups has missing values"),
        ({"seed": -1}, "seed is -1; give a whole number that is not negative"),
    ],
)
def test_bad_options(options, message):
    with pytest.raises(InputError, match=message):
        CKCE(**options)


def test_groups_of_another_length():
    with pytest.raises(InputError, match="groups has 4 entries, but there are 6 rows; give one a row"):
        estimate(P6, Y6, CKCE(groups=GROUPS[:4]))


def test_a_singular_matrix_is_refused():
    probs = np.tile(P6, (30, 1))
    with pytest.raises(InputError, match="singular to rounding; give a larger regularization"):
        estimate(probs, np.tile(Y6, 30), CKCE(regularization=1e-30, method="exact"))


def test_calibrated_model_is_not_rejected_at_any_size():
    data = m1(3000, 10, rng=1)
    result = caltest.test(data.probs, data.labels, "ckce", rng=0)
    assert result.parameters["method"] == "nystrom"
    assert result.pvalue > 0.01


def test_columns_too_few_for_a_small_regularization_are_said():
    probs = dirichlet(2500, 10, 0)
    statistic = CKCE(LinearGaussian(0.3), regularization=1e-5, method="nystrom")
    (note,) = statistic.fitted(Predictions(probs)).notes
    assert "much for so small a regularization" in note
    assert CKCE(method="nystrom").fitted(Predictions(probs[:600])).notes == ()


@pytest.mark.parametrize("alpha", [0.1, 1.0])
def test_the_default_columns_are_enough(alpha):
    probs = dirichlet(700, 10, 1, alpha)
    labels = labels_from(probs, np.random.default_rng(1))
    exact = caltest.estimate(probs, labels, CKCE(method="exact"))
    assert caltest.estimate(probs, labels, CKCE(method="nystrom")) == pytest.approx(exact, rel=3e-3)
