"""The loops of statistics over pairs: weights, and sums of many label vectors."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix

from caltest._parallel import Workers
from caltest._tiles import Tile, blocks, multiply
from caltest.forms.base import Array, Labels
from caltest.forms.features import Features, squared_lengths
from caltest.kernels import Kernel

# ------------------------------------------------------------------ weights


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
        return self.tile(rows, columns)

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


# ------------------------------------------------------------------ many labels
#
# Two ways, for a tile of T rows and B label vectors of m classes:
#
# * :class:`ResidualSums` multiplies W with residuals in d coordinates: a matrix product of T² B d
#   multiplications, at the full rate of the processor.
# * :class:`LabelSums` adds up rows of W that have equal labels, T² B additions whatever the number of
#   classes, at a fifth of that rate: with fixed D⁰ and Δ_i = D_i − D⁰_i of one entry or two,
#
#       ⟨D_i, D_j⟩ = ⟨Δ_i, Δ_j⟩ + ⟨Δ_i, D⁰_j⟩ + ⟨D⁰_i, Δ_j⟩ + ⟨D⁰_i, D⁰_j⟩,
#
#   and only the first term hangs on both labels. D⁰_i is −g_i, so that Δ_i = e_{y_i}; or, of a
#   confident model, e_{r_i} − g_i for the most likely class r_i, so that Δ_i = e_{y_i} − e_{r_i} is 0
#   for most rows.


_COLUMNS = 2048  # columns of residuals a tile is multiplied with at a time
_KEPT = 2**23  # coordinates of a strip's rows held for all its tiles
_HELD = 2**17  # sums of rows held at a time; they stay in the second-level cache


class Coordinates(NamedTuple):
    """Residuals in coordinates: ⟨D_i, A D_j⟩ = (H[y_i] − (GH)_i) · (H[y_j] − (GH)_j)."""

    of_class: Any  # H, (m, d)
    of_mean: Any  # G H, (n, d)

    def residuals(self, labels: Labels, rows: slice) -> Any:
        """Return (rows, B·d) coordinates for (B, n) labels."""
        drawn = self.of_class[labels[:, rows].T]
        drawn -= self.of_mean[rows, None, :]
        return drawn.reshape(len(drawn), -1)


@dataclass(frozen=True, eq=False)
class ResidualSums:
    """The sums of D_iᵀ (W_ij A) D_j.

    Attributes
    ----------
    tile
        W, a block at a time.
    coordinates
        Of the residuals under A.
    labels
        (B, n).
    diagonal
        Count the pairs i = j.
    """

    tile: Tile
    coordinates: Coordinates
    labels: Labels
    diagonal: bool

    def __call__(self, rows: slice, columns: list[slice]) -> Array:
        """Return the (B,) sums over a strip, tiles beside the diagonal counted twice."""
        d = self.coordinates.of_class.shape[1]
        parts = blocks(len(self.labels), max(1, _COLUMNS // d))
        few = len(self.labels) * d * (rows.stop - rows.start) <= _KEPT
        kept = [self._residuals(draws, rows) for draws in parts] if few else None
        total = np.zeros(len(self.labels))
        for block in columns:
            weights = self.tile(rows, block)
            if block == rows and not self.diagonal:
                clear_diagonal(weights)
            for number, draws in enumerate(parts):
                own = self._residuals(draws, rows) if kept is None else kept[number]
                other = own if block == rows else self._residuals(draws, block)
                sums = (own * (weights @ other)).sum(0).reshape(-1, d).sum(1)
                total[draws] += (1.0 if block == rows else 2.0) * sums
        return total

    def _residuals(self, draws: slice, rows: slice) -> Any:
        return self.coordinates.residuals(self.labels[draws], rows)


@dataclass(frozen=True, eq=False)
class LabelSums:
    """The sums of W_ij ⟨Δ_i, Δ_j⟩.

    Attributes
    ----------
    tile
        W, a block at a time.
    labels
        (B, n).
    m
        Number of classes.
    usual
        r, (n,); None where Δ_i = e_{y_i}.
    diagonal
        Count the pairs i = j.
    dtype
        Of the tiles; with np.float32, W must be such that sums over a block of rows are exact.
    """

    tile: Tile
    labels: Labels
    m: int
    usual: Labels | None
    diagonal: bool
    dtype: Any = np.float64

    def __call__(self, rows: slice, columns: list[slice]) -> Array:
        """Return the (B,) sums over a strip, tiles beside the diagonal counted twice."""
        size = rows.stop - rows.start
        parts = blocks(len(self.labels), max(4, _HELD // (self.m * size)))
        members = [self._members(self.labels[draws, rows], rows) for draws in parts]
        total = np.zeros(len(self.labels))
        for block in columns:
            weights = self.tile(rows, block).astype(self.dtype, copy=False)
            if block == rows and not self.diagonal:
                clear_diagonal(weights)
            factor = 1.0 if block == rows else 2.0
            for draws, of_class in zip(parts, members, strict=True):
                sums = (of_class @ weights).reshape(-1, self.m * weights.shape[1])
                total[draws] += factor * self._at_labels(sums, draws, block)
        return total

    def _members(self, labels: Labels, rows: slice) -> csr_matrix:
        """Return the Δ_i of (draws, rows) labels, as a matrix with a row for each draw and class."""
        draws, size = labels.shape
        first = np.arange(draws)[:, None] * self.m
        if self.usual is None:
            order = np.argsort(labels, axis=1, kind="stable")
            ends = np.cumsum(np.bincount((first + labels).ravel(), minlength=draws * self.m))
            counted = np.ones(labels.size, self.dtype), order.ravel(), np.concatenate([[0], ends])
            return csr_matrix(counted, shape=(draws * self.m, size))
        usual = self.usual[rows]
        number, place = np.nonzero(labels != usual)
        ones = np.ones(len(place), self.dtype)
        which = number * self.m + np.stack([labels[number, place], usual[place]])
        entries = np.concatenate([ones, -ones]), (which.ravel(), np.tile(place, 2))
        return csr_matrix(entries, shape=(draws * self.m, size))

    def _at_labels(self, sums: Array, draws: slice, block: slice) -> Array:
        """Return Σ_j ⟨sums_j, Δ_j⟩ over a block of rows, for (draws, m · block) sums."""
        width = block.stop - block.start
        place = np.arange(len(sums))[:, None] * sums.shape[1] + np.arange(width)
        flat = sums.ravel()
        labels = self.labels[draws, block] * np.intp(width)
        found = flat.take(labels + place).sum(axis=1, dtype=np.float64)
        if self.usual is not None:
            usual = self.usual[block] * np.intp(width)
            found -= flat.take(usual + place).sum(axis=1, dtype=np.float64)
        return np.asarray(found)


class LinearPart(NamedTuple):
    """What of Σ_ij W_ij ⟨D_i, D_j⟩ hangs on one label at most: constant + 2 Σ_i table[i, y_i]."""

    table: Array  # W D⁰, of a confident model less its entry at r_i; (n, m)
    constant: float

    @classmethod
    def of(
        cls, tile: Tile, probs: Array, usual: Labels | None, diagonal: bool, workers: Workers
    ) -> LinearPart:
        """Multiply W with D⁰."""
        fixed = -probs
        every = np.arange(len(probs))
        if usual is not None:
            fixed[every, usual] += 1.0
        table = multiply(tile if diagonal else _OffDiagonal(tile), fixed, workers)
        constant = float(np.vdot(fixed, table))
        if usual is not None:
            table -= table[every, usual][:, None]
        return cls(table, constant)

    def sums(self, labels: Labels) -> Array:
        """Return it for (B, n) labels."""
        total = np.full(len(labels), self.constant)
        for rows in blocks(labels.shape[1], 4096):
            place = np.arange(rows.stop - rows.start)
            total += 2.0 * self.table[rows][place, labels[:, rows]].sum(axis=1)
        return total


@dataclass(frozen=True, eq=False)
class _OffDiagonal:
    """A tile function without its diagonal."""

    tile: Tile

    def __call__(self, rows: slice, columns: slice) -> Array:
        weights = self.tile(rows, columns)
        if rows == columns:
            clear_diagonal(weights)
        return weights


@dataclass(frozen=True, eq=False)
class Rounded:
    """A tile function rounded to steps, so that sums in single precision are exact.

    Attributes
    ----------
    tile
        W, a block at a time.
    scale
        Steps in 1, a power of two. Sums of up to 2^24 steps are exact.
    """

    tile: Tile
    scale: float

    def __call__(self, rows: slice, columns: slice) -> Array:
        weights = self.tile(rows, columns)
        weights *= self.scale
        np.rint(weights, out=weights)
        weights *= 1.0 / self.scale
        return weights


def clear_diagonal(weights: Any) -> None:
    """Set the diagonal of a square tile to 0."""
    np.fill_diagonal(weights, 0.0)
