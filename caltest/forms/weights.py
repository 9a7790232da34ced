"""Weights of pairs of rows: the symmetric n×n matrices that pairwise forms are made of."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple, Protocol, cast

import numpy as np
from numpy.typing import NDArray

from caltest._arrays import ArrayLibrary
from caltest.forms.base import Array
from caltest.forms.features import Features, squared_lengths
from caltest.kernels import Kernel
from caltest.kernels.tiles import Tile

_EQUAL = 1e-9  # residuals of a matrix that differ by less than this share are tied
_EXHAUSTED = 1e-12  # of the largest diagonal entry: what is left is rounding


class Weights(Protocol):
    """A symmetric n×n matrix W that depends on the predictions only, a tile at a time."""

    def __call__(self, rows: slice, columns: slice) -> Array:
        """Return the block of W at two slices, as a new array."""
        ...

    def diagonal(self) -> Array:
        """Return the diagonal of W, (n,)."""
        ...


def carried(weights: Weights, library: ArrayLibrary) -> Tile:
    """Return a function of two slices that gives blocks of W as arrays of a library."""
    if isinstance(weights, KernelWeights):
        return weights.kernel.tiles(weights.probs, library)
    return lambda rows, columns: library.put(weights(rows, columns))


class Term(NamedTuple):
    """One summand W ⊗ A: weights W of the rows, A (m, m) of the classes (None: the identity)."""

    weights: Weights
    matrix: Array | None


@dataclass(frozen=True)
class ConstantWeights:
    """W_ij = value for all pairs of n rows.

    Attributes
    ----------
    value, n
        The constant, and the number of rows.
    """

    value: float
    n: int

    def __call__(self, rows: slice, columns: slice) -> Array:
        """Return a constant block."""
        return np.full((rows.stop - rows.start, columns.stop - columns.start), self.value)

    def diagonal(self) -> Array:
        """Return the constant n times."""
        return np.full(self.n, self.value)


@dataclass(frozen=True, eq=False)
class KernelWeights:
    """W_ij = k(g_i, g_j), computed anew for every tile.

    Attributes
    ----------
    kernel
        A real-valued kernel with its bandwidth fitted.
    probs
        The predictions, (n, m).
    """

    kernel: Kernel
    probs: Array

    @cached_property
    def tile(self) -> Tile:
        """The kernel matrix as a function of two slices, what depends on single rows done once."""
        return self.kernel.tiles(self.probs)

    def __call__(self, rows: slice, columns: slice) -> Array:
        """Return the kernel matrix of two blocks of predictions."""
        return cast(Array, self.tile(rows, columns))

    def diagonal(self) -> Array:
        """Return k(g_i, g_i)."""
        return self.kernel.paired(self.probs, self.probs)


@dataclass(frozen=True, eq=False)
class ProductWeights:
    """W_ij = Π_l W_l,ij: the kernel on a product of spaces, for instance predictions and groups.

    Attributes
    ----------
    factors
        The W_l, at least one.
    """

    factors: tuple[Weights, ...]

    def __call__(self, rows: slice, columns: slice) -> Array:
        """Multiply the blocks, entry by entry."""
        first, *others = self.factors
        block = first(rows, columns)
        for factor in others:
            block *= factor(rows, columns)
        return block

    def diagonal(self) -> Array:
        """Multiply the diagonals."""
        return np.asarray(np.prod([factor.diagonal() for factor in self.factors], axis=0))


@dataclass(frozen=True, eq=False)
class DenseWeights:
    """W held as a whole: 8 n² bytes.

    Attributes
    ----------
    matrix
        W, (n, n), symmetric.
    """

    matrix: Array

    def __call__(self, rows: slice, columns: slice) -> Array:
        """Copy a block."""
        return self.matrix[rows, columns].copy()

    def diagonal(self) -> Array:
        """Copy the diagonal."""
        return np.diagonal(self.matrix).copy()


@dataclass(frozen=True, eq=False)
class LowRankWeights:
    """W = ΨΨᵀ of low rank.

    Attributes
    ----------
    features
        Ψ, (n, F).
    """

    features: Features

    def __call__(self, rows: slice, columns: slice) -> Array:
        """Return the inner products of two blocks of features."""
        return np.asarray(self.features[rows] @ self.features[columns].T)

    def diagonal(self) -> Array:
        """Return the squared lengths of the features."""
        return squared_lengths(self.features)


class Cholesky(NamedTuple):
    """An incomplete factorisation: L (n, r), the share of the trace left out, and the r pivots."""

    factor: Array
    missing: float
    pivots: NDArray[np.intp]


def incomplete_cholesky(
    weights: Weights,
    order: NDArray[np.intp],
    columns: int,
    fewest: int | None = None,
    enough: float = 0.0,
    exhausted: float = _EXHAUSTED,
) -> Cholesky:
    """Approximate W by LLᵀ, L of few columns: the pivoted incomplete Cholesky factorisation.

    The next pivot is always the row with the largest residual, of tied rows the first in ``order``:
    with an order that depends on the predictions alone, the order of the rows changes nothing.
    W − LLᵀ is positive semi-definite, so that its trace bounds its every eigenvalue.

    Parameters
    ----------
    weights
        W, positive semi-definite.
    order
        (n,) an order of the rows.
    columns
        The most columns L has. It has fewer if nothing is left but rounding.
    fewest, enough
        Stop after ``fewest`` columns if no more than the share ``enough`` of the trace is left out.
        Default: all columns.
    exhausted
        Share of the largest diagonal entry below which what is left of an entry is rounding.

    Returns
    -------
    Cholesky
        L, (n, r); tr(W − LLᵀ) / tr W; and the rows taken as pivots, (r,), in the order taken.

    References
    ----------
    Fine and Scheinberg, "Efficient SVM training using low-rank kernel representations", JMLR 2
    (2002).

    Examples
    --------
    >>> weights = DenseWeights(np.array([[2.0, 1.0], [1.0, 1.0]]))
    >>> factor, missing, pivots = incomplete_cholesky(weights, np.arange(2), 1)
    >>> (factor @ factor.T).round(6), round(missing, 6), pivots
    (array([[2. , 1. ], [1. , 0.5]]), 0.166667, array([0]))
    """
    n = len(order)
    rank = np.empty(n, dtype=np.intp)
    rank[order] = np.arange(n)
    residual = weights.diagonal()
    trace, floor = float(residual.sum()), exhausted * float(residual.max())
    factor = np.empty((min(columns, n), n))  # rows of it are contiguous
    pivots = np.empty(len(factor), dtype=np.intp)
    for number, column in enumerate(factor):
        largest = float(residual.max())
        sufficient = fewest is not None and number >= fewest and residual.sum() <= enough * trace
        if largest <= floor or sufficient:
            factor, pivots = factor[:number], pivots[:number]
            break
        tied = np.flatnonzero(residual >= (1.0 - _EQUAL) * largest)
        pivots[number] = pivot = int(tied[rank[tied].argmin()])
        column[:] = weights(slice(pivot, pivot + 1), slice(0, n))[0]
        column -= factor[:number, pivot] @ factor[:number]
        column /= np.sqrt(residual[pivot])
        residual -= column**2
        np.maximum(residual, 0.0, out=residual)
        residual[pivot] = 0.0
    missing = float(residual.sum()) / trace if trace > 0 else 0.0
    return Cholesky(np.ascontiguousarray(factor.T), missing, pivots)
