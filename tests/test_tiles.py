"""The pairwise engine against dense matrices, for tiles of every size and any workers."""

from __future__ import annotations

import numpy as np
import pytest
from support import dirichlet, kernels_for

from caltest._parallel import ALONE, Workers
from caltest._sums import (
    TILE,
    WIDE_TILE,
    blocks,
    multiply,
    quadratic_forms,
    sum_and_multiply,
    sum_over_strips,
    sum_over_tiles,
)
from caltest.kernels import Gaussian

SIZES = [1, 2, TILE - 1, TILE, TILE + 1, WIDE_TILE + 1, 3 * TILE + 7]


def symmetric(n):
    M = np.random.default_rng(n).normal(size=(n, n))
    return M + M.T


def tile_of(M):
    return lambda rows, columns: M[rows, columns].copy()


def test_blocks():
    assert blocks(5, 2) == [slice(0, 2), slice(2, 4), slice(4, 5)]
    assert blocks(4, 2) == [slice(0, 2), slice(2, 4)]
    assert blocks(1, 9) == [slice(0, 1)]
    assert blocks(0, 3) == []


@pytest.mark.parametrize("n", SIZES)
def test_multiply_and_quadratic_forms(n):
    M, V = symmetric(n), np.random.default_rng(0).normal(size=(n, 3))
    assert multiply(tile_of(M), V) == pytest.approx(M @ V, rel=1e-10, abs=1e-10)
    expected = np.einsum("ib,ij,jb->b", V, M, V)
    assert quadratic_forms(tile_of(M), V) == pytest.approx(expected, rel=1e-9, abs=1e-9)


@pytest.mark.parametrize("size", [1, 3, 20, 64, 1000])
def test_any_tile_size_gives_the_sum(size):
    M = symmetric(61)
    total = sum_over_tiles(lambda i, j: np.array([M[i, j].sum(), (M[i, j] ** 2).sum()]), 61, size=size)
    assert total == pytest.approx([M.sum(), (M**2).sum()], rel=1e-10)


@pytest.mark.parametrize("size", [1, 4, 7])
def test_every_pair_counts_once(size):
    """Tiles on and above the diagonal, those above twice: each ordered pair exactly once."""
    n = 11
    visits = np.zeros((n, n))

    def visit(rows, columns):
        visits[rows, columns] += 1
        if rows != columns:
            visits[columns, rows] += 1
        return 0.0

    sum_over_tiles(visit, n, size=size)
    assert (visits == 1).all()


def test_workers_do_not_change_a_bit():
    n = 5 * TILE + 3
    M, V = symmetric(n), np.random.default_rng(1).normal(size=(n, 5))
    for function in (multiply, quadratic_forms):
        alone = function(tile_of(M), V, ALONE)
        for jobs in (2, 3):
            assert np.array_equal(function(tile_of(M), V, Workers(jobs)), alone)


@pytest.mark.parametrize("n", SIZES)
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_sums_and_products_in_one_pass(n, dtype):
    M, V = symmetric(n), np.random.default_rng(0).normal(size=(n, 3)).astype(dtype)

    def function(rows, columns):
        block = M[rows, columns]
        return np.array([block.sum(), (block**2).sum()]), block.astype(dtype)

    sums, product = sum_and_multiply(function, V)
    assert sums == pytest.approx([M.sum(), (M**2).sum()], rel=1e-10, abs=1e-9)
    exact = dtype is np.float64
    assert product == pytest.approx(M @ V, rel=1e-10 if exact else 1e-4, abs=1e-10 if exact else 2e-4)
    again = sum_and_multiply(function, V, Workers(2))
    assert np.array_equal(again[0], sums)
    assert np.array_equal(again[1], product)


@pytest.mark.parametrize("size", [1, 7, 64])
def test_strips_see_every_pair_once(size):
    n = 50
    M = symmetric(n)

    def strip(rows, columns):
        assert columns[0] == rows
        return np.array([M[rows, c].sum() * (1.0 if c == rows else 2.0) for c in columns]).sum()

    assert sum_over_strips(strip, n, size=size) == pytest.approx(M.sum(), rel=1e-10)


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
