"""Many label vectors at once: rows of weights added up in double and in single precision."""

from __future__ import annotations

import numpy as np
import pytest
from support import dirichlet, tied

import caltest
from caltest._parallel import Workers
from caltest._tiles import TILE
from caltest.data import Rows
from caltest.exceptions import InputError
from caltest.forms import DenseWeights, KernelWeights, Pairwise, Term
from caltest.forms.pairs import EXACT_DIGITS, Rounded
from caltest.kernels import Exponential, Gaussian, Linear
from caltest.statistics import BiasedSKCE, UnbiasedSKCE

ROWS = 2 * TILE + 31  # three tiles, the last one short


def predictions(m, alpha, seed=0):
    return dirichlet(ROWS, m, seed, alpha)


def labels(m, draws, seed=1):
    return np.random.default_rng(seed).integers(0, m, (draws, ROWS)).astype(np.uint8)


def directly(probs, weights, y, diagonal):
    W = weights.copy()
    if not diagonal:
        np.fill_diagonal(W, 0.0)
    D = np.eye(probs.shape[1])[y] - probs
    return np.array([np.vdot(each, W @ each) for each in D])


@pytest.mark.parametrize("diagonal", [False, True])
@pytest.mark.parametrize("single", [False, True])
@pytest.mark.parametrize(
    ("m", "alpha"),
    [(2, 1.0), (3, 0.02), (5, 1.0), (10, 1.0), (10, 0.05), (40, 1.0), (40, 0.01)],
    ids=lambda value: f"{value:g}",
)
def test_sums_are_those_of_a_plain_formula(m, alpha, single, diagonal):
    """Confident and doubtful models, few and many classes: every way of adding up."""
    probs, y = predictions(m, alpha), labels(m, 30)
    weights = KernelWeights(Gaussian(0.4), probs)
    form = Pairwise(probs, (Term(weights, None),), 1.0, diagonal, single=single)
    tile = Rounded(weights, 2.0**EXACT_DIGITS) if single and form._adds_rows else weights
    expected = directly(probs, tile(slice(0, ROWS), slice(0, ROWS)), y, diagonal)
    scale = np.abs(expected).max()
    assert form.of_labels(y) == pytest.approx(expected, rel=1e-12, abs=1e-12 * scale)


def test_all_ways_are_taken():
    """The parameters above reach each of them."""
    ways = set()
    for m, alpha in ((2, 1.0), (10, 1.0), (10, 0.05)):
        form = UnbiasedSKCE(Gaussian(0.4)).given(Rows(predictions(m, alpha)))
        ways.add((form._adds_rows, form._usual is not None))
    assert ways >= {(False, True), (True, False), (True, True)}


@pytest.mark.parametrize("single", [False, True])
@pytest.mark.parametrize("alpha", [1.0, 0.05])
def test_draws_do_not_depend_on_their_company(alpha, single):
    """A label vector has the same number, to the last bit, among two or 200, whoever computes it."""
    probs, y = predictions(10, alpha), labels(10, 200)
    statistic = BiasedSKCE(Exponential(0.4), precision="single" if single else "double")
    form = statistic.given(Rows(probs))
    values = form.of_labels(y)
    assert np.array_equal(form.of_labels(y[150:152]), values[150:152])
    assert np.array_equal(form.of_labels(np.repeat(y[7:8], 2, axis=0)), values[[7, 7]])
    for jobs in (2, 3):
        assert np.array_equal(form.of_labels(y, Workers(jobs)), values)


@pytest.mark.parametrize("size", [0.37, 1.0, 5.0])
def test_rounding_is_to_steps_whose_sums_are_exact(size):
    n = TILE
    W = np.random.default_rng(0).uniform(-size, size, (n, n))
    W = W + W.T
    np.fill_diagonal(W, 2.0 * size)
    rounded = Rounded.of(DenseWeights(W))
    step = 1.0 / rounded.scale
    found = rounded(slice(0, n), slice(0, n))
    assert np.abs(found - W).max() <= step / 2
    assert 2.0 * size <= step * 2**EXACT_DIGITS < 4.0 * size
    steps = found / step
    assert np.array_equal(steps, np.rint(steps))
    assert np.array_equal(found.astype(np.float32), found)
    assert np.array_equal(found.astype(np.float32).sum(axis=0, dtype=np.float32), found.sum(axis=0))


@pytest.mark.parametrize("kernel", [Gaussian(), Exponential(), Linear()], ids=repr)
@pytest.mark.parametrize(("m", "alpha"), [(10, 1.0), (10, 0.1), (100, 1.0)])
def test_single_precision_moves_statistics_by_a_fraction_of_their_spread(kernel, m, alpha):
    given = Rows(predictions(m, alpha))
    draws = given.sampler(0).draw(0, 199)
    exact = UnbiasedSKCE(kernel).given(given).of_labels(draws)
    rough = UnbiasedSKCE(kernel, precision="single").given(given).of_labels(draws)
    assert 0.0 < np.abs(rough - exact).max() <= 1e-4 * exact.std()


@pytest.mark.parametrize("precision", ["double", "single"])
def test_ties_stay_ties(precision):
    """Predictions with many equal rows: label vectors of equal counts have equal statistics."""
    probs = np.tile([[0.5, 0.25, 0.25, 0.0], [0.25, 0.25, 0.25, 0.25]], (ROWS // 2, 1))
    y = np.random.default_rng(2).integers(0, 3, len(probs)).astype(np.uint8)
    swapped = y.reshape(-1, 2)[np.random.default_rng(3).permutation(len(y) // 2)].ravel()
    form = UnbiasedSKCE(Exponential(0.3), precision=precision).given(Rows(probs))
    one, other = form.of_labels(np.stack([y, swapped]))
    assert abs(one - other) <= form.resolution


@pytest.mark.parametrize("precision", ["double", "single"])
def test_certain_predictions_give_no_evidence(precision):
    probs = np.eye(6)[np.arange(300) % 6]
    statistic = UnbiasedSKCE(Exponential(0.5), precision=precision)
    result = caltest.test(probs, np.arange(300) % 6, statistic, rng=0, n_resamples=99)
    assert (result.statistic, result.pvalue) == (0.0, 1.0)


def test_pvalues_of_both_precisions_agree():
    probs = tied(300, 5, 0) * 0.8 + 0.04
    y = np.random.default_rng(4).integers(0, 5, 300)
    found = [
        caltest.test(probs, y, UnbiasedSKCE(precision=each), rng=1, n_resamples=199)
        for each in ("double", "single")
    ]
    assert found[0].statistic == found[1].statistic
    assert abs(found[0].pvalue - found[1].pvalue) <= 1 / 200
    assert "precision" not in found[0].parameters
    assert found[1].parameters["precision"] == "single"


def test_unknown_precision():
    with pytest.raises(InputError, match="there is no precision 'half'"):
        UnbiasedSKCE(precision="half")


def test_one_draw_is_rounded_as_many_are():
    """A lone draw must not be told from the observed labels by the rounding of the weights."""
    probs = np.full((60, 6), 0.0002)
    probs[:, 0] = 0.999
    form = UnbiasedSKCE(Gaussian(0.3), precision="single").given(Rows(probs))
    labels = np.zeros((3, 60), dtype=np.uint8)
    labels[1, 4] = 2
    assert np.array_equal(form.of_labels(labels[:1]), form.of_labels(labels)[:1])
    assert np.array_equal(form.of_labels(labels[1:2]), form.of_labels(labels)[1:2])
    assert form.value(labels[1]) == pytest.approx(form.of_labels(labels[1:2])[0], rel=1e-3, abs=1e-7)


@pytest.mark.parametrize("factor", [1e-40, 1e-39, 1e37, 1e40])
def test_weights_beyond_single_precision_are_kept_in_double(factor):
    probs = np.random.default_rng(0).dirichlet(np.ones(6), 80)
    labels = np.random.default_rng(1).integers(0, 6, (3, 80)).astype(np.uint8)
    single, double = (
        UnbiasedSKCE(factor * Gaussian(0.3), precision=each).given(Rows(probs)).of_labels(labels)
        for each in ("single", "double")
    )
    assert single == pytest.approx(double, rel=1e-9)
