"""Σ_ij W_ij ⟨D_i, D_j⟩ of many label vectors at once, a strip of tiles at a time.

Two ways, for a tile of T rows and B label vectors of m classes:

* :class:`ResidualSums` multiplies W with residuals in d coordinates: a matrix product of T² B d
  multiplications, at the full rate of the processor.
* :class:`LabelSums` adds up rows of W that have equal labels, T² B additions whatever the number of
  classes, at a fifth of that rate: with fixed D⁰ and Δ_i = D_i − D⁰_i of one entry or two,

      ⟨D_i, D_j⟩ = ⟨Δ_i, Δ_j⟩ + ⟨Δ_i, D⁰_j⟩ + ⟨D⁰_i, Δ_j⟩ + ⟨D⁰_i, D⁰_j⟩,

  and only the first term hangs on both labels. D⁰_i is −g_i, so that Δ_i = e_{y_i}; or, of a
  confident model, e_{r_i} − g_i for the most likely class r_i, so that Δ_i = e_{y_i} − e_{r_i} is 0
  for most rows.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from scipy.sparse import csr_matrix

from caltest._arrays import NUMPY, ArrayLibrary
from caltest._parallel import Workers
from caltest._tiles import Tile, blocks, multiply
from caltest.forms.base import Array, Labels

_COLUMNS = 2048  # columns of residuals a tile is multiplied with at a time
_KEPT = 2**23  # coordinates of a strip's rows held for all its tiles
_HELD = 2**17  # sums of rows held at a time; they stay in the second-level cache


class Coordinates(NamedTuple):
    """Residuals in coordinates: ⟨D_i, A D_j⟩ = (H[y_i] − (GH)_i) · (H[y_j] − (GH)_j)."""

    of_class: Any  # H, (m, d)
    of_mean: Any  # G H, (n, d)

    def residuals(self, labels: Labels, rows: slice, library: ArrayLibrary = NUMPY) -> Any:
        """Return (rows, B·d) coordinates for (B, n) labels."""
        wanted = labels[:, rows].T
        drawn = self.of_class[wanted if library.is_numpy else library.put(wanted.astype(np.int64))]
        drawn -= self.of_mean[rows, None, :]
        return drawn.reshape(len(drawn), -1)


@dataclass(frozen=True, eq=False)
class ResidualSums:
    """The sums of D_iᵀ (W_ij A) D_j, for arrays of any library.

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
    arrays
        Where the arrays live.
    """

    tile: Tile
    coordinates: Coordinates
    labels: Labels
    diagonal: bool
    arrays: ArrayLibrary = NUMPY

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
                total[draws] += (1.0 if block == rows else 2.0) * self.arrays.take(sums)
        return total

    def _residuals(self, draws: slice, rows: slice) -> Any:
        return self.coordinates.residuals(self.labels[draws], rows, self.arrays)


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
    if isinstance(weights, np.ndarray):
        np.fill_diagonal(weights, 0.0)
    elif hasattr(weights, "fill_diagonal_"):
        weights.fill_diagonal_(0.0)
    else:
        weights.reshape(-1)[:: len(weights) + 1] = 0.0
