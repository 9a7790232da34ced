"""The pairwise engine against dense matrices, for tiles of every size and any workers."""

from __future__ import annotations

import numpy as np
import pytest

from caltest._parallel import ALONE, Workers
from caltest._tiles import TILE, WIDE_TILE, blocks, multiply, quadratic_forms, sum_over_tiles

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
