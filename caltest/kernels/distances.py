"""Distances between predictions: how far apart two points of the probability simplex lie."""

# ruff: noqa: D102 -- a method that overrides another is documented where it is first defined.

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable
from types import MappingProxyType
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy.spatial.distance import cdist, pdist

from caltest._arguments import closest
from caltest._quoted import quoted
from caltest.exceptions import InputError

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
