"""Gram matrices of fixed points, a block at a time: what depends on single points is done once.

A *tile* of a kernel is a function of two slices of the rows of its points. Distances that come from
inner products take one matrix product: with u_i the point and h_i = ½|u_i|²,

    −½|u_i − u_j|² = (u_i, −h_i, 1) · (u_j, 1, −h_j),

so that no pass over the block adds norms. Points are centred first, which keeps the rounding small.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from scipy.spatial.distance import squareform

from caltest._arrays import ArrayLibrary, exp, sqrt
from caltest.kernels.distances import ROUNDING, Distance, Floats, Hilbertian

#: Columns up to which points are copied with their norms; above, the passes saved are worth little.
WITH_NORMS_UP_TO = 16

_HALVED_FROM = 64  # columns; the other half is a copy, which costs as much as some columns
_HARMLESS = 1e-9  # rounding of an exponent; above, exponents are kept from being positive


class ArrayTile(Protocol):
    """A symmetric matrix, a block at a time."""

    def __call__(self, rows: slice, columns: slice) -> Any:
        """Return the block at two slices, as a new array of the library."""
        ...


@dataclass(frozen=True, eq=False)
class KernelTile:
    """The tiles of any kernel, computed by numpy.

    Attributes
    ----------
    kernel
        Takes two sets of points, returns their Gram matrix.
    points
        (n, m).
    arrays
        Where the tiles are wanted.
    """

    kernel: Callable[[Floats, Floats], Floats]
    points: Floats
    arrays: ArrayLibrary

    def __call__(self, rows: slice, columns: slice) -> Any:
        """Compute a tile and carry it over."""
        return self.arrays.put(self.kernel(self.points[rows], self.points[columns]))


@dataclass(frozen=True, eq=False)
class InnerTile:
    """Inner products of points.

    Attributes
    ----------
    points
        (n, m), an array of the library.
    """

    points: Any

    def __call__(self, rows: slice, columns: slice) -> Any:
        """Multiply."""
        return self.points[rows] @ self.points[columns].T


@dataclass(frozen=True, eq=False)
class ExponentTile:
    """Minus half the squared distances of scaled points, at most rounding above 0.

    Attributes
    ----------
    left
        (n, k): points with their norms, or (n, m) points.
    right
        (k, n): its counterpart, or the same points transposed.
    norms
        Half the squared norms of the points, (n,); None where ``left`` and ``right`` hold them.
    factor
        Of the inner products, where ``norms`` is given.
    bounded
        Whether rounding may be above what does no harm, so that positive values become 0.
    """

    left: Any
    right: Any
    norms: Any
    factor: float
    bounded: bool

    @classmethod
    def of(cls, points: Floats, width: float, library: ArrayLibrary) -> ExponentTile:
        """Prepare points (n, m), in units of ``width``."""
        if points.shape[1] > WITH_NORMS_UP_TO:
            factor = 1.0 / (width * width)
            norms = 0.5 * factor * np.einsum("ij,ij->i", points, points)
            there = library.put(points)
            return cls(there, there.T, library.put(norms), factor, True)
        u = (points - points.mean(axis=0)) / width
        norms = 0.5 * np.einsum("ij,ij->i", u, u)[:, None]
        ones = np.ones_like(norms)
        left, right = np.hstack([u, -norms, ones]), np.hstack([u, ones, -norms])
        rounding = np.finfo(float).eps * u.shape[1] * float(norms.max(initial=0.0))
        right = np.ascontiguousarray(right.T)
        return cls(library.put(left), library.put(right), None, 1.0, rounding > _HARMLESS)

    def __call__(self, rows: slice, columns: slice) -> Any:
        """Return a tile of exponents."""
        products = self.left[rows] @ self.right[:, columns]
        return self.of_products(products, rows, columns)

    def of_products(self, products: Any, rows: slice, columns: slice) -> Any:
        """Return the same from the products of a tile, which are overwritten."""
        if self.norms is not None:
            products *= self.factor
            products -= self.norms[rows, None]
            products -= self.norms[columns]
        if self.bounded:
            products[products > 0.0] = 0.0
        return products


@dataclass(frozen=True, eq=False)
class GaussianTile:
    """exp(−½|u_i − u_j|²).

    Attributes
    ----------
    exponents
        Tiles of the exponents.
    """

    exponents: ExponentTile

    @property
    def takes_products(self) -> bool:
        """Whether it is made of inner products of the points, which a sum may need too."""
        return self.exponents.norms is not None

    def __call__(self, rows: slice, columns: slice) -> Any:
        """Return a tile."""
        return exp(self.exponents(rows, columns))

    def of_products(self, products: Any, rows: slice, columns: slice) -> Any:
        """Return the tile from inner products, which are overwritten."""
        return exp(self.exponents.of_products(products, rows, columns))


@dataclass(frozen=True, eq=False)
class DistanceTile:
    """A function of distances.

    Attributes
    ----------
    distances
        Tiles of the distances.
    profile
        The function; it may overwrite its argument.
    """

    distances: ArrayTile
    profile: Callable[[Any], Any]

    def __call__(self, rows: slice, columns: slice) -> Any:
        """Return a tile."""
        return self.profile(self.distances(rows, columns))


@dataclass(frozen=True, eq=False)
class RootTile:
    """Euclidean distances.

    Attributes
    ----------
    exponents
        Minus half their squares.
    """

    exponents: ExponentTile

    def __call__(self, rows: slice, columns: slice) -> Any:
        """Return a tile; distances of up to ROUNDING become 0."""
        squares = self.exponents(rows, columns)
        squares *= -2.0
        squares[squares < ROUNDING**2] = 0.0
        return sqrt(squares)


@dataclass(frozen=True, eq=False)
class MetricTile:
    """Distances, computed by numpy.

    Attributes
    ----------
    metric
        The distance.
    points
        (n, m).
    """

    metric: Distance
    points: Floats

    def __call__(self, rows: slice, columns: slice) -> Floats:
        """Return a tile; on the diagonal, half of it is computed where points are long."""
        if rows == columns and self.points.shape[1] > _HALVED_FROM:
            return np.asarray(squareform(self.metric.condensed(self.points[rows]), checks=False))
        return self.metric.pairwise(self.points[rows], self.points[columns])


@dataclass(frozen=True, eq=False)
class CityblockTile:
    """Half the sums of absolute differences, by a library other than numpy.

    Attributes
    ----------
    points
        (n, m), an array of the library.
    arrays
        The library.
    """

    points: Any
    arrays: ArrayLibrary

    def __call__(self, rows: slice, columns: slice) -> Any:
        """Return a tile."""
        distances = self.arrays.cityblock(self.points[rows], self.points[columns])
        distances *= 0.5
        return distances


@dataclass(frozen=True, eq=False)
class CombinedTile:
    """The sum or the product of tiles, entry by entry.

    Attributes
    ----------
    tiles
        At least one.
    combine
        ``operator.iadd`` or ``operator.imul``.
    """

    tiles: tuple[ArrayTile, ...]
    combine: Callable[[Any, Any], Any]

    def __call__(self, rows: slice, columns: slice) -> Any:
        """Return a tile."""
        first, *others = self.tiles
        block = first(rows, columns)
        for other in others:
            block = self.combine(block, other(rows, columns))
        return block


@dataclass(frozen=True, eq=False)
class ScaledTile:
    """A multiple of a tile.

    Attributes
    ----------
    tile, scale
        The tile and the factor.
    """

    tile: ArrayTile
    scale: float

    def __call__(self, rows: slice, columns: slice) -> Any:
        """Return a tile."""
        block = self.tile(rows, columns)
        block *= self.scale
        return block


def distance_tile(metric: Distance, points: Floats, library: ArrayLibrary) -> ArrayTile:
    """Return the tiles of the distances of points (n, m)."""
    if isinstance(metric, Hilbertian):
        return RootTile(ExponentTile.of(metric.embedded(points), 1.0, library))
    if library.is_numpy:
        return MetricTile(metric, points)
    return CityblockTile(library.put(points), library)
