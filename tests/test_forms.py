"""Forms: evaluation against plain loops, blocks of draws against single ones."""

import numpy as np
import pytest
from support import P6, Y6, dirichlet, h_matrix, matrix_kernel

from caltest.data import Rows
from caltest.forms import LabelFunction, LinearSum
from caltest.kernels import Exponential, MatrixKernel
from caltest.nulls import possible_nulls
from caltest.statistics import BiasedSKCE, LinearSKCE, UnbiasedSKCE

SKCES = [BiasedSKCE, UnbiasedSKCE, LinearSKCE]


def test_a_matrix_that_sees_only_constants_gives_zero():
    kernel = MatrixKernel([(Exponential(0.5), np.ones((3, 3)))])
    for statistic in SKCES:
        assert statistic(kernel).given(Rows(P6)).value(Y6) == pytest.approx(0.0, abs=1e-15)


@pytest.mark.parametrize("parts", [1, 2])
def test_gram(parts):
    kernel = matrix_kernel(3, parts)
    gram = UnbiasedSKCE(kernel).given(Rows(P6)).gram(Y6)
    h = h_matrix(kernel, P6, Y6)
    assert gram(slice(0, 6), slice(0, 6)) == pytest.approx(h, rel=1e-11, abs=1e-13)
    assert gram(slice(1, 3), slice(2, 6)) == pytest.approx(h[1:3, 2:6], rel=1e-11, abs=1e-13)


def test_terms_of_the_linear_skce():
    kernel = matrix_kernel(3, 2)
    h = h_matrix(kernel, P6, Y6)
    terms = LinearSKCE(kernel, pairing="rows").given(Rows(P6)).terms(Y6)
    assert terms == pytest.approx([h[0, 1], h[2, 3], h[4, 5]], rel=1e-11)


def test_what_each_form_offers():
    """What it declares decides which nulls are possible."""
    always = {"monte_carlo", "consistency"}
    assert {of.name: set(possible_nulls(of().given(Rows(P6)))) - always for of in SKCES} == {
        "skce_b": {"moments", "bound"},
        "skce_uq": {"moments", "bound", "bootstrap"},
        "skce_ul": {"moments", "bound", "normal"},
    }
    assert set(possible_nulls(LabelFunction(max, P6))) == always


def test_linear_form_is_a_sum_of_table_entries():
    rng = np.random.default_rng(0)
    probs = dirichlet(9000, 3, 1)  # three blocks of rows
    table, labels = rng.normal(size=(9000, 3)), rng.integers(0, 3, (4, 9000)).astype(np.uint8)
    form = LinearSum(table, probs)
    expected = [sum(table[i, k] for i, k in enumerate(y)) for y in labels]
    assert form.of_labels(labels) == pytest.approx(expected, rel=1e-10)
    assert form.of_labels(labels)[2] == pytest.approx(form.value(labels[2]), rel=1e-12)


def test_label_function_sees_plain_labels():
    seen = []

    def statistic(probs, labels):
        seen.append((probs.flags.writeable, labels.dtype))
        return labels.sum()

    form = LabelFunction(statistic, Rows(P6).probs)
    assert form.of_labels(np.array([[0, 1, 0, 0, 2, 2]], dtype=np.uint8)).tolist() == [5.0]
    assert seen == [(False, np.dtype(np.intp))]
