"""Standard errors of U-statistics of degree two on the same rows, of their differences and sums.

For a U-statistic U, the mean of h(X_i, X_j) over the pairs i ≠ j (Hoeffding 1948, eq. 5.13),

    var U = 4(n − 2)/(n(n − 1)) ζ₁ + 2/(n(n − 1)) ζ₂,  ζ₁ = cov(h₁₂, h₁₃),  ζ₂ = var h₁₂.

For calibrated models ζ₁ is 0 and the second term is all there is; the jackknife, which stands for the
first term, would take it twice. Here both ζ are estimated without bias, from the row sums
r_i = Σ_{j≠i} h_ij and Q = Σ_{i≠j} h_ij²; a negative estimate becomes 0. The difference of two
U-statistics on the same rows is the U-statistic of the difference of their h; so with sums.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from itertools import combinations
from typing import NamedTuple

import numpy as np

from caltest._parallel import ALONE, Workers
from caltest._tiles import Array, Tile, multiply, sum_over_tiles

FEWEST_ROWS = 4  # Σ h_ij h_kl over four different rows is needed


class StandardErrors(NamedTuple):
    """Standard errors of K numbers, (K,), and of their differences and sums, (K, K)."""

    values: Array
    differences: Array
    sums: Array


def standard_errors(tiles: Sequence[Tile], n: int, workers: Workers = ALONE) -> StandardErrors:
    """Return the standard errors of U-statistics on the same n rows, in O(K n² (m + K)) time.

    Parameters
    ----------
    tiles
        h of every statistic, (n, n), as tile functions; the diagonal is not used.
    n
        Rows, at least 4.

    References
    ----------
    Hoeffding, "A class of statistics with asymptotically normal distribution", Annals of Mathematical
    Statistics 19 (1948).

    Examples
    --------
    >>> x = np.array([0.0, 1.0, 2.0, 4.0, 8.0])
    >>> half_squares = lambda i, j: 0.5 * (x[i, None] - x[None, j]) ** 2  # U is the variance
    >>> standard_errors([half_squares], 5).values.round(3)
    array([6.88])
    """
    off_diagonal = [partial(_off_diagonal, tile) for tile in tiles]
    ones = np.ones((n, 1))
    rows = np.hstack([multiply(tile, ones, workers) for tile in off_diagonal]).T
    squares = sum_over_tiles(partial(_products, off_diagonal), n, workers)
    values = np.array([_error(row, q) for row, q in zip(rows, np.diagonal(squares), strict=True)])
    differences, sums = np.zeros((len(tiles), len(tiles))), np.diag(2.0 * values)
    for a, b in combinations(range(len(tiles)), 2):
        for found, sign in ((differences, -1.0), (sums, 1.0)):
            square = squares[a, a] + squares[b, b] + 2.0 * sign * squares[a, b]
            found[a, b] = found[b, a] = _error(rows[a] + sign * rows[b], max(square, 0.0))
    return StandardErrors(values, differences, sums)


def _off_diagonal(tile: Tile, rows: slice, columns: slice) -> Array:
    block = tile(rows, columns)
    if rows == columns:
        np.fill_diagonal(block, 0.0)
    return block


def _products(tiles: Sequence[Tile], rows: slice, columns: slice) -> Array:
    """Return the (K, K) sums of products of one tile's entries."""
    entries = np.stack([tile(rows, columns).ravel() for tile in tiles])
    return np.asarray(entries @ entries.T)


def _error(row_sums: Array, squares: float) -> float:
    """Return the standard error of a U-statistic from its r_i and Q."""
    n, total = len(row_sums), float(row_sums.sum())
    pairs, chained = n * (n - 1), float(row_sums @ row_sums) - squares  # Σ h_ij h_ik, j ≠ k
    apart = total**2 - 4.0 * chained - 2.0 * squares  # Σ h_ij h_kl, four different rows
    squared_mean = apart / (pairs * (n - 2) * (n - 3))
    first = max(chained / (pairs * (n - 2)) - squared_mean, 0.0)
    second = max(squares / pairs - squared_mean, 0.0)
    return float(np.sqrt((4.0 * (n - 2) * first + 2.0 * second) / pairs))
