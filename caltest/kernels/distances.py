"""Distances between predictions, and tiles of kernel and distance matrices."""

# ruff: noqa: D102 -- a method that overrides another is documented where it is first defined.

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy.spatial.distance import cdist, pdist, squareform

from caltest._arguments import closest
from caltest._arrays import ArrayLibrary, exp, sqrt
from caltest._visible import quoted
from caltest.exceptions import InputError

# ------------------------------------------------------------------ distances


Floats: TypeAlias = NDArray[np.float64]

ROUNDING = 1e-7
"""Distances up to this are rounding error: of predictions in single precision, and of the matrix
products under the square root of the Euclidean and the Hellinger distance."""


_COORDINATE_BY_COORDINATE = 32  # columns; above, a matrix product is faster


class Distance(ABC):
    """A distance on the simplex, for all pairs of two sets of predictions or row by row.

    Every call returns a fresh array, which the caller may overwrite.
    """

    @abstractmethod
    def pairwise(self, x: Floats, y: Floats) -> Floats:
        """Distances (a, b) of every row of ``x`` (a, m) to every row of ``y`` (b, m)."""

    @abstractmethod
    def paired(self, x: Floats, y: Floats) -> Floats:
        """Distances (a,) of the rows of ``x`` (a, m) to the same rows of ``y`` (a, m)."""

    def condensed(self, x: Floats) -> Floats:
        """Distances (a(a − 1)/2,) of the pairs i < j of the rows of ``x`` (a, m), row by row."""
        tile = self.pairwise(x, x)
        return np.concatenate([row[i + 1 :] for i, row in enumerate(tile)])


class Cityblock(Distance):
    """The sum of absolute differences, in [0, 2]."""

    def pairwise(self, x: Floats, y: Floats) -> Floats:
        d: Floats = cdist(x, y, "cityblock")
        return d

    def condensed(self, x: Floats) -> Floats:
        d: Floats = pdist(x, "cityblock")
        return d

    def paired(self, x: Floats, y: Floats) -> Floats:
        d: Floats = np.abs(x - y).sum(axis=1)
        return d


class TotalVariation(Distance):
    """Half the sum of absolute differences, in [0, 1]: the largest difference over events."""

    def pairwise(self, x: Floats, y: Floats) -> Floats:
        d = CITYBLOCK.pairwise(x, y)
        d *= 0.5
        return d

    def condensed(self, x: Floats) -> Floats:
        d = CITYBLOCK.condensed(x)
        d *= 0.5
        return d

    def paired(self, x: Floats, y: Floats) -> Floats:
        d = CITYBLOCK.paired(x, y)
        d *= 0.5
        return d


class Hilbertian(Distance):
    """A distance that is Euclidean after a map of the simplex, so that its square is at hand.

    The squares come from matrix products and carry their rounding, about 1e-15. Under the square
    root that would make equal predictions 3e-8 apart; distances below ``ROUNDING`` are set to 0.
    """

    @abstractmethod
    def embedded(self, x: Floats) -> Floats:
        """Points whose Euclidean distances these are, (a, m), for ``x`` (a, m); perhaps ``x``."""

    @abstractmethod
    def squared(self, x: Floats, y: Floats) -> Floats:
        """Squared distances (a, b), never negative."""

    @abstractmethod
    def squared_paired(self, x: Floats, y: Floats) -> Floats:
        """Squared distances (a,), row by row."""

    def pairwise(self, x: Floats, y: Floats) -> Floats:
        d = self.squared(x, y)
        d[d < ROUNDING**2] = 0.0
        return np.sqrt(d, out=d)

    def paired(self, x: Floats, y: Floats) -> Floats:
        d = self.squared_paired(x, y)
        return np.sqrt(d, out=d)


class Euclidean(Hilbertian):
    """The Euclidean distance, in [0, √2]."""

    def embedded(self, x: Floats) -> Floats:
        return x

    def squared(self, x: Floats, y: Floats) -> Floats:
        inner: Floats = x @ y.T
        return self.squared_from(inner, x, y)

    def squared_from(self, inner: Floats, x: Floats, y: Floats) -> Floats:
        """Squared distances from the inner products (a, b), which are overwritten."""
        inner *= -2.0
        inner += _squared_norms(x)[:, np.newaxis]
        inner += _squared_norms(y)
        return np.maximum(inner, 0.0, out=inner)

    def squared_paired(self, x: Floats, y: Floats) -> Floats:
        return _squared_norms(x - y)

    def condensed(self, x: Floats) -> Floats:
        if x.shape[1] > _COORDINATE_BY_COORDINATE:
            return super().condensed(x)
        d: Floats = pdist(x, "euclidean")
        return d


class Hellinger(Hilbertian):
    """The Euclidean distance of the square roots over √2, in [0, 1]."""

    def embedded(self, x: Floats) -> Floats:
        return np.sqrt(0.5 * x)

    def squared(self, x: Floats, y: Floats) -> Floats:
        d = EUCLIDEAN.squared(np.sqrt(x), np.sqrt(y))
        d *= 0.5
        return d

    def squared_paired(self, x: Floats, y: Floats) -> Floats:
        d = EUCLIDEAN.squared_paired(np.sqrt(x), np.sqrt(y))
        d *= 0.5
        return d


def _squared_norms(x: Floats) -> Floats:
    norms: Floats = np.einsum("ij,ij->i", x, x)
    return norms


CITYBLOCK, EUCLIDEAN = Cityblock(), Euclidean()

DISTANCES = MappingProxyType({"tv": TotalVariation(), "euclidean": EUCLIDEAN, "hellinger": Hellinger()})
"""The distances by name."""


def distance_named(name: str) -> Distance:
    """Look up a distance by its name.

    Parameters
    ----------
    name
        ``"tv"`` (total variation, ½ Σ|s − t|), ``"euclidean"`` (√Σ(s − t)²) or ``"hellinger"``
        (√(½ Σ(√s − √t)²)).

    Returns
    -------
    Distance
        With ``pairwise(x, y)`` and ``paired(x, y)``.

    Raises
    ------
    InputError
        If there is no such distance.

    Examples
    --------
    >>> import numpy as np
    >>> distance_named("tv").pairwise(np.array([[0.7, 0.3]]), np.array([[0.7, 0.3], [0.2, 0.8]]))
    array([[0. , 0.5]])
    """
    if not isinstance(name, str) or name not in DISTANCES:
        raise InputError(f"There is no distance {quoted(name)}; {suggestion(name, DISTANCES)}.")
    return DISTANCES[name]


def suggestion(name: object, names: Iterable[str]) -> str:
    """Say which of ``names`` an unknown ``name`` may have meant, and what they all are.

    Examples
    --------
    >>> suggestion("meen", ["mean", "median"])
    "did you mean 'mean'? The choices are 'mean', 'median'"
    """
    names = list(names)
    close = closest(name.lower() if isinstance(name, str) else name, names)
    choices = ", ".join(map(repr, names))
    return f"did you mean {close!r}? The choices are {choices}" if close else f"use {choices}"


# ------------------------------------------------------------------ tiles
#
# A *tile* of a kernel is a function of two slices of the rows of its points. Distances that come from
# inner products take one matrix product: with u_i the point and h_i = ½|u_i|²,
#
#     −½|u_i − u_j|² = (u_i, −h_i, 1) · (u_j, 1, −h_j),
#
# so that no pass over the block adds norms. Points are centred first, which keeps the rounding small.

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
