"""Sums missing from NumPy: over tiles of a matrix, over few columns; laws of sums of whole numbers."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, TypeAlias

import numpy as np
import scipy
from numpy.typing import NDArray

from caltest._parallel import ALONE, Function, Workers

Array: TypeAlias = NDArray[np.float64]
#: Indices: of rows, columns, cells, or codes of clusters.
Places: TypeAlias = NDArray[np.intp]
Mask: TypeAlias = NDArray[np.bool_]
Tile: TypeAlias = Callable[[slice, slice], Array]

# ------------------------------------------------------------------ tiles
#
# The only pairwise engine: sums over an n×n symmetric matrix, tile by tile, without n² memory.
#
# A *tile function* ``tile(rows, columns)`` returns the block of a symmetric n×n matrix at two slices.
# Only tiles on and above the diagonal are computed. Tiles are grouped in strips (all tiles of one block
# of rows), a strip is one task, and results are added in a fixed order: neither the number of workers
# nor their kind changes a number.


TILE = 256  # rows of a tile: the two or three buffers in use stay in the second-level cache
WIDE_TILE = 512  # for multiplying a tile with many columns, which is most of the work


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

    For functions that prepare something for all tiles of a strip. The function itself doubles tiles off
    the diagonal.
    """
    return np.asarray(sum(_over_strips(function, n, workers, size, description)), dtype=np.float64)


def sum_over_tiles(
    function: Callable[[slice, slice], Any],
    n: int,
    workers: Workers = ALONE,
    *,
    size: int = TILE,
    description: str = "pairs",
) -> Array:
    """Sum ``function(rows, columns)``, numbers or arrays of a fixed shape, over all tiles.

    Its terms must be symmetric in the pair: tiles below the diagonal are not computed, those above are
    doubled.
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
    of the matrix, which is multiplied in the precision of the vectors.
    """
    product = np.zeros(vectors.shape)
    total: Any = 0.0
    strip = partial(_product_strip, function, vectors)
    for sums, pieces in _over_strips(strip, len(vectors), workers, TILE, description):
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


def _over_strips(
    function: Function, n: int, workers: Workers, size: int, description: str
) -> Iterator[Any]:
    cut = blocks(n, size)
    tasks = [(rows, cut[index:]) for index, rows in enumerate(cut)]
    return workers.map(function, tasks, description, sizes=[len(columns) for _, columns in tasks])


def _sum_strip(function: Callable[[slice, slice], Any], rows: slice, columns: list[slice]) -> Any:
    on_diagonal, *above = columns
    total = np.array(function(rows, on_diagonal), dtype=np.float64)
    for block in above:
        total += 2.0 * np.asarray(function(rows, block))
    return total


def _without_sums(tile: Tile, rows: slice, columns: slice) -> tuple[float, Array]:
    return 0.0, tile(rows, columns)


def _product_strip(
    function: Callable[[slice, slice], tuple[Any, Any]], vectors: Any, rows: slice, columns: list[slice]
) -> tuple[Any, list[tuple[slice, Any]]]:
    own = np.zeros(vectors[rows].shape)
    pieces = [(rows, own)]
    total: Any = 0.0
    for block in columns:
        sums, entries = function(rows, block)
        entries = entries.astype(vectors.dtype, copy=False)
        total = total + (sums if block == rows else 2.0 * sums)
        own += entries @ vectors[block]
        if block != rows:
            pieces.append((block, entries.T @ vectors[rows]))
    return total, pieces


def _quadratic_tile(tile: Tile, vectors: Array, rows: slice, columns: slice) -> Array:
    products = tile(rows, columns) @ vectors[columns]
    return np.asarray(np.einsum("ib,ib->b", vectors[rows], products))


# ------------------------------------------------------------------ few columns


_FEW = 16  # columns
_FEW_SUMMANDS = 7  # with more, NumPy adds in another order


def over_columns(combine: np.ufunc, table: NDArray[Any]) -> NDArray[Any]:
    """Return ``combine.reduce(table, axis=1)`` of a table (n, m) of floats, to the last bit.

    Examples
    --------
    >>> over_columns(np.maximum, np.array([[0.2, 0.8], [0.7, 0.3]])).tolist()
    [0.8, 0.7]
    """
    if table.shape[1] > (_FEW_SUMMANDS if combine is np.add else _FEW):
        return np.asarray(combine.reduce(table, axis=1))
    found = table[:, 0].copy()
    for column in table.T[1:]:
        combine(found, column, out=found)
    return found


# ------------------------------------------------------------------ sums of whole numbers


_STEEPEST = 1024.0  # largest tilt; beyond, only the largest possible value matters
_NEAR = 1e-6  # tolerance of a tilt: any tilt is valid, those near the best are most accurate


def law_of_sum(masses: Array) -> Array:
    """Return P(S = s) for a sum of N independent numbers, from the product of their polynomials.

    Errors are absolute, some 1e-15.

    Parameters
    ----------
    masses
        The law of each number on 0..K, (N, K + 1).

    Returns
    -------
    ndarray of shape (N K + 1,)
        The law of their sum.

    Examples
    --------
    >>> law_of_sum(np.full((2, 2), 0.5)).tolist()
    [0.25, 0.5, 0.25]
    """
    count, most = len(masses), masses.shape[1] - 1
    factors = np.zeros((2 ** int(count - 1).bit_length(), most + 1))
    factors[:, 0] = 1.0
    factors[:count] = masses
    while len(factors) > 1:
        width = 2 * factors.shape[1] - 1
        length = scipy.fft.next_fast_len(width, real=True)
        product = scipy.fft.rfft(factors[::2], length) * scipy.fft.rfft(factors[1::2], length)
        factors = scipy.fft.irfft(product, length)[:, :width]
    law = np.clip(factors[0, : count * most + 1], 0.0, None)
    return np.asarray(law / law.sum())


def tail_of_sum(masses: Array, least: int) -> float:
    """Return P(S ≥ least), with a relative error that stays small far into the tail.

    Let S have the law P, and P_t(s) = P(s) exp(t s − K(t)). Then, for any t ≥ 0,

        P(S ≥ x) = exp(K(t) − t x) Σ_{s ≥ x} exp(−t (s − x)) P_t(S = s),

    which is an identity, not an approximation. If the mean of P_t is near x, the sum begins where P_t
    is largest: the absolute error of `law_of_sum` becomes a relative one of some 1e-15 standard
    deviations of S (below 1e-10 with a million numbers).

    Parameters
    ----------
    masses
        The law of each number on 0..K, (N, K + 1).
    least
        The start of the tail.

    Examples
    --------
    >>> masses = np.full((400, 2), 0.5)
    >>> round(tail_of_sum(masses, 400) / 0.5**400, 9)  # all of them
    1.0
    """
    steps = np.arange(masses.shape[1])
    most = int(np.where(masses > 0.0, steps, 0).max(axis=1).sum())
    if least <= 0:
        return 1.0
    if least > most:
        return 0.0
    with np.errstate(divide="ignore"):
        logs = np.log(masses)
    tilt = _tilt(logs, steps, min(float(least), most - 0.5))
    tilted, exponent = _tilted(logs, steps, tilt)
    law = law_of_sum(tilted)[least:]
    total = float(law @ np.exp(-tilt * np.arange(len(law))))
    return min(1.0, float(np.exp(exponent - tilt * least)) * total)


def _tilted(logs: Array, steps: Places, tilt: float) -> tuple[Array, float]:
    """Return the tilted law of every number, and K(t)."""
    exponents = logs + tilt * steps
    highest = exponents.max(axis=1, keepdims=True)
    tilted = np.exp(exponents - highest)
    totals = tilted.sum(axis=1, keepdims=True)
    return tilted / totals, float(np.sum(highest + np.log(totals)))


def _tilt(logs: Array, steps: Places, mean: float) -> float:
    """Return approximately the t that tilts the sum to the mean ``mean``; 0 instead of negative t."""

    def missing(tilt: float) -> float:
        return mean - float((_tilted(logs, steps, tilt)[0] @ steps).sum())

    if missing(0.0) <= 0.0:
        return 0.0
    high = 1.0
    while missing(high) > 0.0 and high < _STEEPEST:
        high *= 2.0
    if high >= _STEEPEST:
        return high
    return float(scipy.optimize.brentq(missing, 0.0, high, xtol=_NEAR, rtol=_NEAR))
