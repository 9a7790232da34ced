"""Tiles in arrays of another library: the same numbers as numpy's."""

from __future__ import annotations

import sys

import numpy as np
import pytest
from support import dirichlet, kernels_for

import caltest
from caltest import _arrays
from caltest._arrays import ArrayLibrary, current_library
from caltest.data import Rows
from caltest.exceptions import InputError
from caltest.kernels import Exponential, Gaussian, Kernel
from caltest.statistics import MMCE, BiasedSKCE, UnbiasedSKCE


@pytest.fixture
def torch():
    return pytest.importorskip("torch")


@pytest.fixture
def small_tiles(monkeypatch):
    """Several tiles, though rows are few."""
    monkeypatch.setattr("caltest.forms.pairs.TILE_ELSEWHERE", 128)


def example(m, n=300, seed=0):
    rng = np.random.default_rng(seed)
    return dirichlet(n, m, seed), rng.integers(0, m, n)


@pytest.mark.usefixtures("torch", "small_tiles")
@pytest.mark.parametrize("m", [2, 10, 40])
@pytest.mark.parametrize("kernel", [Gaussian(), Exponential()], ids=repr)
def test_torch_gives_the_numbers_of_numpy(kernel, m):
    """The estimate, and every draw of the exact null."""
    probs, y = example(m)
    statistic = UnbiasedSKCE(kernel)

    def numbers():
        tested = caltest.test(probs, y, statistic, rng=0, n_resamples=199)
        return caltest.estimate(probs, y, statistic), tested

    ours = numbers()
    with caltest.array_library("torch"):
        theirs = numbers()
    assert theirs[0] == pytest.approx(ours[0], rel=1e-12)
    draws = ours[1].null_distribution
    difference = np.abs(theirs[1].null_distribution - draws).max()
    assert 0.0 < difference <= 1e-12 * np.abs(draws).max()
    assert theirs[1].pvalue == ours[1].pvalue


@pytest.mark.usefixtures("torch", "small_tiles")
@pytest.mark.parametrize("name", kernels_for(3))
@pytest.mark.parametrize("statistic", [BiasedSKCE, UnbiasedSKCE])
def test_every_kernel(statistic, name):
    probs, _ = example(3)
    y = np.random.default_rng(1).integers(0, 3, (4, 300)).astype(np.uint8)
    measure = statistic(kernels_for(3)[name])
    expected = measure.given(Rows(probs)).of_labels(y)
    with caltest.array_library("torch", device="cpu"):
        form = measure.given(Rows(probs))
    assert form.of_labels(y) == pytest.approx(expected, rel=1e-11, abs=1e-12 * np.abs(expected).max())
    assert form.value(y[0]) == pytest.approx(expected[0], rel=1e-11, abs=1e-15)


@pytest.mark.usefixtures("torch", "small_tiles")
def test_a_kernel_of_ones_own_is_carried_over():
    class Constant(Kernel):
        bound = 1.0

        def __call__(self, x, y):
            assert isinstance(x, np.ndarray)
            return np.ones((len(x), len(y)))

        def paired(self, x, y):
            return np.ones(len(x))

    probs, y = example(3)
    ours = caltest.estimate(probs, y, UnbiasedSKCE(Constant()))
    with caltest.array_library("torch"):
        assert caltest.estimate(probs, y, UnbiasedSKCE(Constant())) == pytest.approx(ours, rel=1e-12)


@pytest.mark.usefixtures("torch")
def test_the_rest_is_as_ever():
    """Other statistics and nulls do not notice, and a form keeps the library it was made with."""
    probs, y = example(4)
    for statistic, null in (("skce_uq", "moments"), ("ece", None), ("skce_ul", "normal")):
        ours = caltest.test(probs, y, statistic, null=null, rng=0, n_resamples=99)
        with caltest.array_library("torch"):
            theirs = caltest.test(probs, y, statistic, null=null, rng=0, n_resamples=99)
        assert theirs.pvalue == pytest.approx(ours.pvalue, rel=1e-9)
    form = MMCE().given(Rows(probs[:, :2] / probs[:, :2].sum(axis=1, keepdims=True)))
    with caltest.array_library("torch"):
        assert form.arrays.is_numpy
        assert current_library() == ArrayLibrary("torch")
    assert current_library().is_numpy


def test_arrays_of_the_standard(small_tiles, monkeypatch):
    """A library that has the operators of arrays and no more than the array API standard."""
    monkeypatch.setattr(ArrayLibrary, "space", np)
    monkeypatch.setattr(ArrayLibrary, "take", lambda self, array: array)
    monkeypatch.setattr(ArrayLibrary, "put", lambda self, array: array)
    probs, y = example(4)
    for kernel in (Gaussian(), Exponential()):
        form = UnbiasedSKCE(kernel).given(Rows(probs))
        with caltest.array_library("cupy"):
            other = UnbiasedSKCE(kernel).given(Rows(probs))
        assert other.value(y) == pytest.approx(form.value(y), rel=1e-12)


def test_what_cannot_be_used_is_said(monkeypatch):
    with (
        pytest.raises(InputError, match="there is no array library 'tensorflow'"),
        caltest.array_library("tensorflow"),
    ):
        pass
    monkeypatch.setitem(sys.modules, "cupy", None)
    with pytest.raises(InputError, match="'cupy' is not installed"), caltest.array_library("cupy"):
        pass
    with (
        pytest.raises(InputError, match="device is 'cuda', but numpy"),
        caltest.array_library("numpy", device="cuda"),
    ):
        pass
    assert current_library() == _arrays.NUMPY


@pytest.mark.usefixtures("torch")
def test_a_device_that_is_not_there():
    with (
        pytest.raises(InputError, match="torch cannot use the device 'no such device'"),
        caltest.array_library("torch", device="no such device"),
    ):
        pass
