"""Calibration estimation functions against loops and dense linear algebra."""

import pickle

import numpy as np
import pytest
from scipy.stats import dirichlet as dirichlet_law
from support import dirichlet, labels_from, tied

import caltest
from caltest.estimation import (
    DirichletKernelDensity,
    EstimationFunction,
    HistogramBinning,
    KroneckerKernelRidge,
    Temperature,
    TwoStepKernelRidge,
)
from caltest.estimation import functions as module
from caltest.kernels import Exponential, Gaussian, Linear

FUNCTIONS = {
    "binning": HistogramBinning(4),
    "kernel_density": DirichletKernelDensity(0.1),
    "two_step_ridge": TwoStepKernelRidge(0.01),
    "kronecker_ridge": KroneckerKernelRidge(0.001),
    "temperature": Temperature(1.5),
}
CASES = [(name, m) for name in FUNCTIONS for m in (2, 3) if (name, m) != ("binning", 3)]


def rows(m, n=30, others=7, seed=1):
    """Training predictions, labels that they do not fit, and other predictions."""
    train, places = dirichlet(n, m, seed), dirichlet(others, m, seed + 1)
    return train, labels_from(np.roll(train, 1, axis=1), np.random.default_rng(seed)), places


def plain_residuals(probs, labels):
    """Scalars of two classes, as columns; vectors of more."""
    if probs.shape[1] == 2:
        return (labels - probs[:, 1])[:, None]
    return np.eye(probs.shape[1])[labels] - probs


def points(probs):
    return probs[:, 1:] if probs.shape[1] == 2 else probs


def gaussian(a, b):
    """exp(−‖p − p'‖²) by a double loop."""
    return np.array([[np.exp(-((s - t) ** 2).sum()) for t in points(b)] for s in points(a)])


# ------------------------------------------------------------------ binning


def bin_of(score, n_bins):
    """Right-closed intervals, the first with its left end."""
    edges = np.arange(1, n_bins) / n_bins
    return next((place for place, edge in enumerate(edges) if score <= edge), n_bins - 1)


@pytest.mark.parametrize("n_bins", [1, 3, 15, 90])
@pytest.mark.parametrize("probs", [dirichlet(25, 2, 3), tied(25, 2, 3)], ids=["smooth", "tied"])
def test_binning_is_the_mean_residual_of_the_bin(n_bins, probs):
    labels = np.random.default_rng(1).integers(0, 2, 25)
    edges = np.linspace(0.0, 1.0, 11)
    places = np.vstack([dirichlet(20, 2, 4), np.eye(2), np.column_stack([1.0 - edges, edges])])
    r = labels - probs[:, 1]
    bins = [bin_of(score, n_bins) for score in probs[:, 1]]
    curve = []
    for score in places[:, 1]:
        inside = [r[row] for row in range(25) if bins[row] == bin_of(score, n_bins)]
        curve.append(np.mean(inside) if inside else np.mean(r))
    fitted = HistogramBinning(n_bins).fit(probs, labels)
    assert fitted.diagonal(places) == pytest.approx(np.square(curve), abs=1e-14)
    assert fitted.gram(places, places[:5]) == pytest.approx(np.outer(curve, curve[:5]), abs=1e-14)


# ------------------------------------------------------------------ kernel density


@pytest.mark.parametrize("bandwidth", [0.05, 0.3, 1.0])
@pytest.mark.parametrize("m", [2, 3, 5])
def test_kernel_density_is_a_ratio_of_dirichlet_densities(m, bandwidth):
    train, labels, places = rows(m)
    curves = []
    for p in places:
        weights = np.array([dirichlet_law.pdf(p, g / bandwidth + 1.0) for g in train])
        assert weights.min() > 1e-250
        curves.append(weights @ np.eye(m)[labels] / weights.sum() - p)
    curves = points(np.array(curves))
    fitted = DirichletKernelDensity(bandwidth).fit(train, labels)
    assert fitted.diagonal(places) == pytest.approx((curves**2).sum(axis=1), rel=1e-10)
    assert fitted.gram(places, places) == pytest.approx(curves @ curves.T, rel=1e-9, abs=1e-14)


def test_kernel_density_of_a_narrow_kernel_is_the_nearest_rows_label():
    train, labels, _ = rows(3)
    found = DirichletKernelDensity(1e-5).fit(train, labels).diagonal(train)
    assert found == pytest.approx((plain_residuals(train, labels) ** 2).sum(axis=1), rel=1e-9)


@pytest.mark.parametrize("bandwidth", [1e-5, 1e-3, 0.1, 1.0])
@pytest.mark.parametrize("m", [2, 3, 20])
def test_kernel_density_is_a_probability_everywhere(m, bandwidth):
    train = np.vstack([dirichlet(20, m, 0, 0.02), tied(20, m, 0), np.eye(m), np.full((1, m), 1 / m)])
    labels = np.random.default_rng(0).integers(0, m, len(train))
    places = np.vstack([train, dirichlet(20, m, 5, 0.02), dirichlet(5, m, 6, 50.0)])
    function = DirichletKernelDensity(bandwidth)
    surface = next(function.learned(train, plain_residuals(train, labels), [bandwidth])(places))
    stated = surface.curve + points(places)
    assert np.isfinite(stated).all()
    assert stated.min() >= -1e-12
    assert stated.max() <= 1.0 + 1e-12
    if m > 2:
        assert stated.sum(axis=1) == pytest.approx(1.0, abs=1e-11)


def test_kernel_density_on_the_boundary_is_a_limit():
    train, labels, _ = rows(3)
    corner, near = np.array([[1.0, 0.0, 0.0]]), np.array([[1.0 - 2e-280, 1e-280, 1e-280]])
    fitted = DirichletKernelDensity(0.01).fit(train, labels)
    nearest = plain_residuals(train, labels)[train[:, 0].argmax()] + train[train[:, 0].argmax()]
    assert fitted.diagonal(corner) == pytest.approx(((nearest - corner) ** 2).sum(), abs=1e-12)
    assert fitted.diagonal(near) == pytest.approx(fitted.diagonal(corner), abs=1e-12)


# ------------------------------------------------------------------ kernel ridge regression


@pytest.mark.parametrize(("scaling", "power"), [("usual", 1.0), ("published", 0.75)])
@pytest.mark.parametrize("m", [2, 3])
def test_two_step_ridge_is_the_dense_formula(m, scaling, power):
    train, labels, places = rows(m)
    for strength in (1e2, 1e-2, 1e-5):
        c = strength * 30.0**power
        inverse = np.linalg.inv(gaussian(train, train) + c * np.eye(30))
        curves = gaussian(places, train) @ inverse @ plain_residuals(train, labels)
        fitted = TwoStepKernelRidge(strength, regularization_scaling=scaling).fit(train, labels)
        assert fitted.gram(places, places) == pytest.approx(curves @ curves.T, rel=1e-7, abs=1e-12)
        assert fitted.diagonal(places) == pytest.approx((curves**2).sum(axis=1), rel=1e-7, abs=1e-12)


@pytest.mark.parametrize(("scaling", "power"), [("usual", 2.0), ("published", 1.5)])
@pytest.mark.parametrize("m", [2, 3])
def test_kronecker_ridge_solves_the_system_of_all_pairs(m, scaling, power):
    train, labels, places = rows(m, n=6)
    r = plain_residuals(train, labels)
    system = np.zeros((36, 36))
    K, V = gaussian(train, train), gaussian(places, train)
    for i, j, s, t in np.ndindex(6, 6, 6, 6):
        system[6 * i + j, 6 * s + t] = K[i, s] * K[j, t]
    target = np.array([r[i] @ r[j] for i in range(6) for j in range(6)])
    for strength in (1e3, 1e-2, 1e-6):
        c = strength * 6.0**power
        expected = V @ np.linalg.solve(system + c * np.eye(36), target).reshape(6, 6) @ V.T
        fitted = KroneckerKernelRidge(strength, regularization_scaling=scaling).fit(train, labels)
        assert fitted.gram(places, places) == pytest.approx(expected, rel=1e-6, abs=1e-12)
        assert fitted.diagonal(places) == pytest.approx(np.diagonal(expected), rel=1e-6, abs=1e-12)


def test_a_kernel_of_another_kind():
    train, labels, places = rows(3)
    kernel = Exponential(0.4, distance="euclidean")
    K, V = kernel(train, train), kernel(places, train)
    curves = V @ np.linalg.solve(K + 0.3 * np.eye(30), plain_residuals(train, labels))
    found = TwoStepKernelRidge(0.01, kernel=kernel).fit(train, labels)
    assert found.diagonal(places) == pytest.approx((curves**2).sum(axis=1), rel=1e-9)


def test_a_rule_for_the_bandwidth_looks_at_the_training_rows():
    train, labels, places = rows(3)
    fixed = TwoStepKernelRidge(kernel=Gaussian().fitted(train)).fit(train, labels)
    ruled = TwoStepKernelRidge(kernel=Gaussian()).fit(train, labels)
    assert ruled.diagonal(places) == pytest.approx(fixed.diagonal(places), rel=1e-12)


@pytest.mark.parametrize("kind", [TwoStepKernelRidge, KroneckerKernelRidge])
def test_a_kernel_that_is_zero_on_the_training_rows_teaches_nothing(kind):
    fitted = kind(kernel=Linear()).fit([[1.0, 0.0]] * 6, [0, 1] * 3)
    assert np.all(fitted.gram(np.eye(2), np.eye(2)) == 0.0)


def values_at(function, train, labels, places, strengths):
    """h at all pairs of places, for every strength of regularisation."""
    surfaces = function.learned(train, plain_residuals(train, labels), strengths)(places)
    return np.array([left @ right.T for left, right in [surface.factors() for surface in surfaces]])


@pytest.mark.parametrize("name", ["two_step_ridge", "kronecker_ridge"])
def test_decompositions_agree(name, monkeypatch):
    """Eigenvectors of all of K, and of a complete Cholesky factor."""
    train, labels, places = rows(6, n=150)
    function, strengths = FUNCTIONS[name], (1e4, 1.0, 1e-2, 1e-4, 1e-6)
    dense = values_at(function, train, labels, places, strengths)
    assert module.Spectrum.of(function.kernel, train).anchors is train
    monkeypatch.setattr(module, "_DENSE_UP_TO", 0)
    factored = values_at(function, train, labels, places, strengths)
    assert module.Spectrum.of(function.kernel, train).anchors is not train
    assert factored == pytest.approx(dense, rel=1e-6, abs=1e-12)


@pytest.mark.parametrize("name", ["two_step_ridge", "kronecker_ridge"])
def test_columns_that_do_not_fit_are_left_out(name, monkeypatch):
    """Then K is that of the Nyström approximation on the pivots, at other places too."""
    train, labels, places = rows(6, n=150)
    monkeypatch.setattr(module, "_DENSE_UP_TO", 0)
    monkeypatch.setattr(module, "_FEWEST_COLUMNS", 12)
    monkeypatch.setattr(module, "_COLUMNS", 0)
    spectrum = module.Spectrum.of(FUNCTIONS[name].kernel, train)
    anchors = spectrum.anchors
    assert len(anchors) == 12
    inner = np.linalg.inv(gaussian(anchors, anchors))
    K = gaussian(train, anchors) @ inner @ gaussian(anchors, train)
    V = gaussian(places, anchors) @ inner @ gaussian(anchors, train)
    assert spectrum.missing == pytest.approx(1.0 - np.trace(K) / 150.0, rel=1e-6)
    r, strength = plain_residuals(train, labels), 1e-3
    if name == "two_step_ridge":
        curves = V @ np.linalg.solve(K + strength * 150 * np.eye(150), r)
        expected = curves @ curves.T
    else:
        values, vectors = np.linalg.eigh(K)
        turned = vectors.T @ r
        middle = turned @ turned.T / (np.outer(values, values) + strength * 150**2)
        expected = V @ vectors @ middle @ vectors.T @ V.T
    found = values_at(FUNCTIONS[name], train, labels, places, (strength,))[0]
    assert found == pytest.approx(expected, rel=1e-6, abs=1e-10)


@pytest.mark.parametrize("m", [2, 8])
def test_tails_of_eigenvalues_left_out_do_not_show(m, monkeypatch):
    """At predictions unlike those of the training rows too."""
    train, labels, places = rows(m, n=150, others=40)
    places = np.vstack([places, np.eye(m)])
    function = KroneckerKernelRidge()
    strengths = function.search_space(m)
    found = values_at(function, train, labels, places, strengths)
    monkeypatch.setattr("caltest.estimation.functions._NEGLIGIBLE", 0.0)
    whole = values_at(function, train, labels, places, strengths)
    changes, largest = (np.abs(each).max(axis=(1, 2)) for each in (found - whole, whole))
    assert changes.max() > 0.0
    assert np.all(changes < 1e-10 + 1e-7 * largest)


# ------------------------------------------------------------------ all functions


@pytest.mark.parametrize(("name", "m"), CASES)
def test_the_diagonal_is_that_of_the_gram_matrix_which_is_symmetric(name, m):
    train, labels, places = rows(m)
    fitted = FUNCTIONS[name].fit(train, labels)
    gram = fitted.gram(places, places)
    assert fitted.diagonal(places) == pytest.approx(np.diagonal(gram), rel=1e-10)
    assert gram == pytest.approx(gram.T, rel=1e-10)
    assert fitted.gram(places[:2], places[3:]) == pytest.approx(gram[:2, 3:], rel=1e-10)


@pytest.mark.parametrize(("name", "m"), CASES)
def test_all_values_at_once_are_one_after_the_other(name, m):
    train, labels, places = rows(m)
    function = FUNCTIONS[name]
    values = function.search_space(m)
    surfaces = list(function.learned(train, plain_residuals(train, labels), values)(places))
    assert len(surfaces) == len(values)
    for value, surface in zip(values, surfaces, strict=True):
        alone = function.with_value(value).fit(train, labels).diagonal(places)
        assert surface.diagonal() == pytest.approx(alone, rel=1e-12, abs=1e-300)
        assert surface.mean() == pytest.approx(alone.mean(), rel=1e-9)


@pytest.mark.parametrize(("name", "m"), CASES)
def test_a_fitted_function_can_be_pickled(name, m):
    train, labels, places = rows(m)
    fitted = FUNCTIONS[name].fit(train, labels)
    again = pickle.loads(pickle.dumps(fitted))
    assert again.diagonal(places).tolist() == fitted.diagonal(places).tolist()


@pytest.mark.parametrize(("name", "m"), CASES)
def test_labels_teach_and_row_order_does_not(name, m):
    train, labels, places = rows(m)
    order = np.random.default_rng(0).permutation(30)
    found = FUNCTIONS[name].fit(train, labels).diagonal(places)
    again = FUNCTIONS[name].fit(train[order], labels[order]).diagonal(places)
    assert again == pytest.approx(found, rel=1e-8, abs=1e-13)
    other = FUNCTIONS[name].fit(train, (labels + 1) % m).diagonal(places)
    assert np.allclose(other, found) == (name == "temperature")


def test_temperature():
    p = np.array([[0.7, 0.2, 0.1], [1.0, 0.0, 0.0], [0.5, 0.5, 0.0], [1e-320, 0.5, 0.5]])
    truth = np.array([[0.49 / 0.54, 0.04 / 0.54, 0.01 / 0.54], [1, 0, 0], [0.5, 0.5, 0], [0, 0.5, 0.5]])
    curves = truth - p
    fitted = Temperature(2.0).fit(p, [0, 0, 0, 1])
    assert fitted.gram(p, p) == pytest.approx(curves @ curves.T, abs=1e-15)
    assert np.all(Temperature(1.0).fit(p, [0, 0, 0, 1]).diagonal(p[:1]) < 1e-30)


# ------------------------------------------------------------------ options and hostile input


@pytest.mark.parametrize("name", FUNCTIONS)
def test_options(name):
    function = FUNCTIONS[name]
    assert function.with_value(getattr(function, function.tuned)) == function
    assert set(function.parameters) >= {function.tuned}
    assert all(isinstance(each, str | int | float) for each in function.parameters.values())
    assert (isinstance(function, EstimationFunction), function.name) == (True, name)


HOSTILE = {
    "two rows": (np.array([[0.3, 0.7], [0.6, 0.4]]), [0, 1]),
    "two equal rows": (np.array([[0.3, 0.7], [0.3, 0.7]]), [0, 1]),
    "constant predictions": (np.full((20, 2), 0.5), [0, 1] * 10),
    "equal labels": (dirichlet(20, 2, 0), [1] * 20),
    "certain": (np.eye(2)[[0, 1] * 10], [0, 1] * 10),
    "all wrong": (np.eye(2)[[0, 1] * 10], [1, 0] * 10),
    "three classes, constant": (np.full((20, 3), 1 / 3), [0, 1] * 10),
    "three classes, all wrong": (np.eye(3)[[0, 1] * 10], [1, 2] * 10),
    "three classes, two rows": (np.array([[0.2, 0.3, 0.5], [0.0, 0.0, 1.0]]), [2, 2]),
}


@pytest.mark.slow
@pytest.mark.parametrize("case", HOSTILE)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_hostile_input(name, case):
    probs, labels = HOSTILE[case]
    m = probs.shape[1]
    if FUNCTIONS[name].two_classes_only and m > 2:
        pytest.skip("two classes only")
    for value in FUNCTIONS[name].search_space(m):
        fitted = FUNCTIONS[name].with_value(value).fit(probs, labels)
        places = np.vstack([np.eye(m), probs])
        found = fitted.gram(places, places)
        assert np.isfinite(found).all()
        assert fitted.diagonal(places) == pytest.approx(np.diagonal(found), rel=1e-6, abs=1e-12)
        assert np.isfinite(caltest.estimation.risk(fitted, probs, labels))
