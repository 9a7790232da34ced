"""Kernels: closed forms, positive semi-definiteness, bounds, fitting, compositions, errors."""

import json
import pickle
from dataclasses import FrozenInstanceError, replace
from math import exp, inf, sqrt

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support import P6 as P
from support import dirichlet, kernels_for

import caltest
from caltest.exceptions import InputError
from caltest.kernels import (
    Exponential,
    Gaussian,
    Kernel,
    Linear,
    LinearGaussian,
    MatrixKernel,
    Scaled,
    Sum,
)
from caltest.statistics import STATISTICS

ONE, TWO = np.array([[1.0, 0.0]]), np.array([[0.0, 1.0]])  # TV 1, Euclidean √2, Hellinger 1

KERNELS = [
    Exponential(), Exponential(distance="euclidean"), Exponential(0.3, distance="hellinger"),
    Gaussian(), Gaussian(0.2, distance="hellinger"), Linear(), LinearGaussian(),
    Linear() + Exponential(), 2.5 * Exponential(), 3 * (Linear() + Gaussian()) + Exponential(0.5),
]  # fmt: skip


def name(kernel):
    return repr(kernel)


# ------------------------------------------------------------------ closed forms


@pytest.mark.parametrize(
    ("kernel", "value"),
    [
        (Exponential(2.0), exp(-1 / 2)), (Exponential(2.0, distance="euclidean"), exp(-sqrt(2) / 2)),
        (Exponential(2.0, distance="hellinger"), exp(-1 / 2)), (Gaussian(2.0), exp(-2 / 8)),
        (Gaussian(2.0, distance="hellinger"), exp(-1 / 8)), (Linear(), 0.0),
        (LinearGaussian(1.0), exp(-1)), (Linear() + 2 * Gaussian(1.0), 2 * exp(-1)),
    ],
    ids=name,
)  # fmt: skip
def test_closed_forms(kernel, value):
    assert kernel(ONE, TWO) == pytest.approx(np.array([[value]]), rel=1e-14)
    assert kernel.paired(ONE, TWO) == pytest.approx(np.array([value]), rel=1e-14)


def test_hand_sized_gram_matrix():
    kernel = Exponential().fitted(P)
    tv = np.abs(P[:, None] - P[None]).sum(-1) / 2
    assert kernel.bandwidth == pytest.approx(0.5)
    np.testing.assert_allclose(kernel(P, P), np.exp(-tv / 0.5), rtol=1e-14)


def test_linear_gaussian_is_the_sum():
    both = Linear() + Gaussian()
    np.testing.assert_allclose(LinearGaussian().fitted(P)(P, P), both.fitted(P)(P, P), rtol=1e-14)


# ------------------------------------------------------------------ properties


@settings(max_examples=15, deadline=None)
@given(st.integers(0, 10**6), st.integers(2, 15), st.integers(2, 6), st.sampled_from([0.1, 1, 9]))
def test_gram_matrices_are_positive_semi_definite_and_bounded(seed, n, m, alpha):
    rng = np.random.default_rng(seed)
    probs = np.vstack([rng.dirichlet(np.full(m, alpha), n), np.eye(m)])
    probs = probs[rng.integers(0, len(probs), n)]  # with repeated rows
    for kernel in KERNELS:
        fitted = kernel.fitted(probs)
        gram = fitted(probs, probs)
        np.testing.assert_allclose(gram, gram.T, atol=1e-7)
        assert np.linalg.eigvalsh((gram + gram.T) / 2)[0] > -1e-6 * n * fitted.bound
        assert np.abs(gram).max() <= fitted.bound * (1 + 1e-12)
        np.testing.assert_allclose(fitted.paired(probs, probs[::-1]), np.diag(gram[:, ::-1]),
                                   atol=1e-6)  # fmt: skip


@pytest.mark.parametrize("kernel", KERNELS, ids=name)
def test_the_bound_is_attained_at_a_corner(kernel):
    fitted = kernel.fitted(P)
    corner = np.eye(3)[:1]
    assert fitted(corner, corner)[0, 0] == pytest.approx(fitted.bound)


@pytest.mark.parametrize("kernel", KERNELS, ids=name)
def test_results_are_fresh_arrays_and_inputs_are_kept(kernel):
    fitted, x = kernel.fitted(P), P.copy()
    fitted(x, x)[:] = 0
    assert fitted(x, x)[0, 0] > 0
    assert np.array_equal(x, P)


# ------------------------------------------------------------------ fitting


@pytest.mark.parametrize("kernel", KERNELS, ids=name)
def test_kernels_are_values(kernel):
    assert pickle.loads(pickle.dumps(kernel)) == kernel
    assert hash(kernel.fitted(P)) == hash(kernel.fitted(P[::-1]))
    assert kernel.fitted(P) == kernel.fitted(P[::-1])
    assert kernel.fitted(P).fitted(P[:2]) == kernel.fitted(P)
    assert kernel.terms == ((kernel, None),)
    assert pickle.loads(pickle.dumps(kernel.fitted(P))).parameters == kernel.fitted(P).parameters
    json.dumps(kernel.fitted(P).parameters)


def test_representations():
    assert repr(Exponential()) == "Exponential(bandwidth='median', distance='tv')"
    assert repr(LinearGaussian(1)) == "LinearGaussian(bandwidth=1.0)"
    shown = repr(2 * (Linear() + LinearGaussian(0.5)) + Linear())
    assert shown == "2.0 * (Linear() + LinearGaussian(bandwidth=0.5)) + Linear()"
    assert eval(repr(KERNELS[-1])) == KERNELS[-1]


def test_a_fitted_kernel_equals_the_given_one_but_knows_its_rule():
    fitted = Exponential("median_full").fitted(P)
    assert fitted == Exponential(fitted.bandwidth)
    assert fitted.parameters == {
        "bandwidth": pytest.approx(0.425),
        "bandwidth_rule": "median_full",
        "distance": "tv",
    }
    assert Exponential(0.5).parameters["bandwidth_rule"] == "given"
    assert Exponential().parameters["bandwidth_rule"] == "median"
    assert replace(fitted, bandwidth=0.1).parameters["bandwidth_rule"] == "given"
    assert Exponential(0.5).fitted(P) == Exponential(0.5)


def test_parameters_of_compositions_do_not_collide():
    assert set((Linear() + Gaussian(1.0)).parameters) == {"bandwidth", "bandwidth_rule", "distance"}
    both = Exponential(0.5) + Gaussian(2.0)
    assert both.parameters["bandwidth_1"] == 0.5
    assert both.parameters["bandwidth_2"] == 2.0
    assert (3 * Gaussian(1.0)).parameters["scale"] == 3.0


def test_notes_reach_the_user_once():
    constant = np.full((4, 3), 1 / 3)
    kernel = (2 * Exponential() + Gaussian() + Linear()).fitted(constant)
    assert kernel.notes == (
        "All predictions are equal, so the bandwidth does not matter and is set to 1.",
    )
    assert Exponential().fitted(P).notes == Linear().notes == ()


def test_an_unfitted_kernel_cannot_be_called():
    for kernel in (Exponential(), Gaussian(), LinearGaussian(), 2 * Exponential("mean")):
        with pytest.raises(InputError, match=r"still a rule; call fitted\(probs\)"):
            kernel(P, P)
        with pytest.raises(InputError, match=r"still a rule; call fitted\(probs\)"):
            kernel.paired(P, P)


# ------------------------------------------------------------------ compositions


def test_compositions():
    a, b, c = Exponential(0.5), Gaussian(0.5), Linear()
    assert a + b + c == Sum((a, b, c))
    assert a * 2 == 2 * a == np.float64(2) * a == Scaled(a, 2.0)
    np.testing.assert_allclose((2 * (a + b) + c)(P, P), 2 * (a(P, P) + b(P, P)) + c(P, P))
    assert (2 * (a + b) + 3 * c).bound == 7
    with pytest.raises(TypeError):
        a + 1
    with pytest.raises(TypeError):
        a * "b"
    with pytest.raises(TypeError):
        a * b


def test_a_kernel_of_the_users_own():
    class Constant(Kernel):
        bound = 1.0

        def __call__(self, x, y):
            return np.ones((len(x), len(y)))

        def paired(self, x, y):
            return np.ones(len(x))

    kernel = (Constant() + Exponential()).fitted(P)
    assert kernel(P, P)[0, 0] == 2
    assert Constant().terms[0][1] is None
    assert kernel.bound == 2


# ------------------------------------------------------------------ errors


def test_a_kernel_is_frozen():
    with pytest.raises(FrozenInstanceError):
        Exponential().bandwidth = 1.0


# ------------------------------------------------------------------ norms and matrix kernels


@pytest.mark.parametrize(
    ("p", "q", "norm"), [(2, 2, 1), (1, 1, 1), (inf, inf, 1), (2, 1, 2), (inf, 1, 4), (1, inf, 1)]
)
def test_norm_of_a_scalar_kernel(p, q, norm):
    assert (3 * Exponential()).norm_bound(p, q, 4) == pytest.approx(3 * norm)
    same = MatrixKernel([(3 * Exponential(), np.eye(4))])
    assert same.norm_bound(p, q, 4) == pytest.approx(3 * norm)


def test_norm_of_a_matrix_kernel():
    a = np.array([[2.0, -1.0, 0.0], [-1.0, 2.0, -1.0], [0.0, -1.0, 2.0]])
    kernel = MatrixKernel([(Exponential(1.0), a), (0.5 * Linear(), np.ones((3, 3)))])
    assert kernel.norm_bound(1, 1, 3) == pytest.approx(4 + 1.5)
    assert kernel.norm_bound(inf, inf, 3) == pytest.approx(4 + 1.5)
    assert kernel.norm_bound(2, 2, 3) == pytest.approx(2 + sqrt(2) + 1.5)
    v = np.random.default_rng(0).normal(size=(3, 2000))
    for p in (1, 1.5, 2, 3, inf):
        for q in (1, 1.5, 2, 3, inf):
            ratio = np.linalg.norm(a @ v, q, axis=0) / np.linalg.norm(v, p, axis=0)
            bound = MatrixKernel([(Linear(), a)]).norm_bound(p, q, 3)
            assert ratio.max() <= bound * (1 + 1e-12)


def test_matrix_kernel():
    a, b = np.diag([1.0, 0, 0]), np.ones((3, 3))
    kernel = MatrixKernel([(Exponential(), a), (Gaussian("mean"), b)])
    fitted = kernel.fitted(P)
    assert fitted.terms[0][0] == Exponential().fitted(P)
    assert np.array_equal(fitted.terms[1][1], b)
    assert fitted == kernel.fitted(P[::-1])
    assert hash(fitted) == hash(kernel.fitted(P))
    assert fitted != kernel
    assert fitted.parameters["bandwidth_rule_2"] == "mean"
    assert fitted.notes == ()
    assert not callable(fitted)
    assert "3×3 matrix" in repr(kernel)
    assert pickle.loads(pickle.dumps(fitted)) == fitted
    a[0, 0] = 5
    assert kernel.parts[0][1][0, 0] == 1
    with pytest.raises(ValueError, match="read-only"):
        kernel.parts[0][1][0, 0] = 2


def test_rounding_in_a_matrix_is_accepted():
    v = np.random.default_rng(1).normal(size=(4, 2))
    MatrixKernel([(Linear(), v @ v.T)])  # of rank 2: eigenvalues of about -1e-16


def test_matrices_must_fit_the_classes():
    kernel = MatrixKernel([(Linear(), np.eye(4))])
    with pytest.raises(InputError, match="are 4×4, but there are 3 classes; give 3×3"):
        kernel.fitted(P)
    with pytest.raises(InputError, match="are 4×4, but there are 3 classes"):
        kernel.norm_bound(2, 2, 3)


@pytest.mark.parametrize("null", ["monte_carlo", "moments", "normal", "bootstrap"])
@pytest.mark.parametrize("scale", [1e-40, 1e40])
def test_the_unit_of_a_kernel_changes_no_pvalue(null, scale):
    rng = np.random.default_rng(5)
    probs = rng.dirichlet(np.ones(3), 60)
    labels = (rng.random((60, 1)) >= probs.cumsum(1)[:, :-1]).sum(1)
    kind = STATISTICS["skce_ul" if null == "normal" else "skce_uq"]
    one, other = (
        caltest.test(probs, labels, kind(Scaled(Gaussian(), each)), null=null, n_resamples=49, rng=1)
        for each in (1.0, scale)
    )
    assert one.pvalue == pytest.approx(other.pvalue, rel=1e-9)


# ------------------------------------------------------------------ tiles of kernels


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name in kernels_for(3) if "matrix" not in name])
@pytest.mark.parametrize("m", [2, 20, 80])
def test_tiles_are_blocks_of_the_gram_matrix(name, m):
    """Norms inside the product or beside it, half of the diagonal or all of it."""
    probs = np.vstack([dirichlet(60, m, 0, 0.3), np.eye(m)[:2], np.eye(m)[:2]])
    kernel = kernels_for(m)[name].fitted(probs)
    tile = kernel.tiles(probs)
    for rows, columns in (
        (slice(0, 64), slice(0, 64)),
        (slice(3, 9), slice(5, 63)),
        (slice(1, 2),) * 2,
    ):
        block = tile(rows, columns)
        assert block == pytest.approx(kernel(probs[rows], probs[columns]), rel=1e-12, abs=1e-13)
        block[:] = 7.0  # it is the caller's
    assert tile(slice(0, 64), slice(0, 64)) == pytest.approx(kernel(probs, probs), rel=1e-12, abs=1e-13)


@pytest.mark.parametrize("m", [3, 40])
@pytest.mark.parametrize("width", [1e-7, 1e-30, 1e-100])
def test_narrow_kernels_stay_bounded(m, width):
    """Rounding of a distance over a tiny bandwidth is no overflow."""
    probs = np.repeat(dirichlet(20, m, 1), 2, axis=0)
    block = Gaussian(width).tiles(probs)(slice(0, 40), slice(0, 40))
    assert np.isfinite(block).all()
    assert block.min() >= 0.0
    assert block.max() <= 1.0
