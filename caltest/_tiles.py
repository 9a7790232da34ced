"""The one pairwise engine: sums over an n×n symmetric matrix, a tile at a time, never n² memory.

A *tile function* ``tile(rows, columns)`` returns the block of a symmetric n×n matrix at two slices.
Only tiles on and above the diagonal are computed. Tiles are grouped in strips (all tiles of one block
of rows), a strip is one task, and results are added in a fixed order: neither the number of workers
nor their kind changes a number.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from caltest._parallel import ALONE, Workers

Array: TypeAlias = NDArray[np.float64]
Tile: TypeAlias = Callable[[slice, slice], Array]

TILE = 256  # rows of a tile: the two or three buffers in use stay in the second-level cache
WIDE_TILE = 512  # where a tile is multiplied with many columns, which is most of the work


def blocks(n: int, size: int) -> list[slice]:
    """Cut range(n) into consecutive slices of ``size``."""
    return [slice(start, min(start + size, n)) for start in range(0, n, size)]


def sum_over_strips(
    function: Callable[[slice, list[slice]], Any],
    n: int,
    workers: Workers = ALONE,
    *,
    size: int = TILE,
    description: str = "pairs",
) -> Array:
    """Sum ``function(rows, columns)`` over strips: a block of rows, and the blocks from it onwards.

    For functions that prepare something for all tiles of a strip. What lies beside the diagonal the
    function itself counts twice.
    """
    return np.asarray(sum(workers.map(function, _strips(n, size), description)), dtype=np.float64)


def sum_over_tiles(
    function: Callable[[slice, slice], Any],
    n: int,
    workers: Workers = ALONE,
    *,
    size: int = TILE,
    description: str = "pairs",
) -> Array:
    """Sum ``function(rows, columns)``, numbers or arrays of a fixed shape, over all tiles.

    Its terms must be symmetric in the pair: tiles below the diagonal are not computed, those above
    count twice.
    """
    strip = partial(_sum_strip, function)
    return sum_over_strips(strip, n, workers, size=size, description=description)


def multiply(
    tile: Tile, vectors: Any, workers: Workers = ALONE, *, description: str = "pairs"
) -> Array:
    """Multiply the matrix of ``tile`` with ``vectors`` (n, r), each tile computed once.

    Tiles and vectors may be in single precision; their products are summed in double precision.
    """
    alone = partial(_without_sums, tile)
    return sum_and_multiply(alone, vectors, workers, description=description)[1]


def sum_and_multiply(
    function: Callable[[slice, slice], tuple[Any, Any]],
    vectors: Any,
    workers: Workers = ALONE,
    *,
    description: str = "pairs",
) -> tuple[Array, Array]:
    """Sum over all tiles and multiply a matrix with ``vectors`` (n, r) in one pass.

    ``function(rows, columns)`` returns the sums of a tile, as in :func:`sum_over_tiles`, and the tile
    of the matrix, in the precision of the vectors.
    """
    product = np.zeros(vectors.shape)
    total: Any = 0.0
    strip = partial(_product_strip, function, vectors)
    for sums, pieces in workers.map(strip, _strips(len(vectors), TILE), description):
        total = total + sums
        for rows, piece in pieces:
            product[rows] += piece
    return np.asarray(total), product


def quadratic_forms(
    tile: Tile, vectors: Array, workers: Workers = ALONE, *, description: str = "pairs"
) -> Array:
    """Return v' M v for the matrix M of ``tile`` and every column v of ``vectors`` (n, r)."""
    form = partial(_quadratic_tile, tile, vectors)
    return sum_over_tiles(form, len(vectors), workers, size=WIDE_TILE, description=description)


def _strips(n: int, size: int) -> list[tuple[slice, list[slice]]]:
    cut = blocks(n, size)
    return [(rows, cut[index:]) for index, rows in enumerate(cut)]


def _sum_strip(function: Callable[[slice, slice], Any], rows: slice, columns: list[slice]) -> Any:
    on_diagonal, *above = columns
    total = np.array(function(rows, on_diagonal), dtype=np.float64)
    for block in above:
        total += 2.0 * np.asarray(function(rows, block))
    return total


def _without_sums(tile: Tile, rows: slice, columns: slice) -> tuple[float, Array]:
    return 0.0, tile(rows, columns)


def _product_strip(
    function: Callable[[slice, slice], tuple[Any, Any]],
    vectors: Any,
    rows: slice,
    columns: list[slice],
) -> tuple[Any, list[tuple[slice, Any]]]:
    own = np.zeros(vectors[rows].shape)
    pieces = [(rows, own)]
    total: Any = 0.0
    for block in columns:
        sums, entries = function(rows, block)
        total = total + (sums if block == rows else 2.0 * sums)
        own += entries @ vectors[block]
        if block != rows:
            pieces.append((block, entries.T @ vectors[rows]))
    return total, pieces


def _quadratic_tile(tile: Tile, vectors: Array, rows: slice, columns: slice) -> Array:
    products = tile(rows, columns) @ vectors[columns]
    return np.asarray(np.einsum("ib,ib->b", vectors[rows], products))
