"""Features of rows, ΦΦᵀ for a kernel matrix: held as a whole, or computed when they are needed.

Features of many rows are rounded to multiples of a fixed power of two, as coarse as
single precision takes to add up a block of them without any rounding. What is rounded is the kernel,
by a few 1e-5 of its values; sums are then exact, whatever the order in which they are taken, and a
matrix product in single precision takes half the time. Any kernel makes an exact test.
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from math import ceil, log2
from typing import Any, ClassVar, Protocol

import numpy as np
from scipy.linalg import solve_triangular

from caltest._sampling import ROWS
from caltest._tiles import blocks
from caltest.forms.base import (
    Array,
)
from caltest.kernels import Kernel
from caltest.kernels.radial import fourier_features

#: Rows whose rounded features single precision adds up without rounding: 2^10 numbers of 2^13 steps.
EXACT_ROWS = 1024
_STEPS = 2**13


class Features(Protocol):
    """An (n, F) table of features, of which some rows are asked for at a time: an array is one."""

    @property
    def shape(self) -> tuple[int, ...]:
        """(n, F)."""
        ...

    def __getitem__(self, rows: Any) -> Array:
        """Return the features of some rows."""
        ...


@dataclass(frozen=True, eq=False)
class ComputedFeatures:
    """Features of any predictions, computed when they are needed, and rounded.

    Attributes
    ----------
    kernel
        Its bandwidth fitted.
    probs
        The predictions, (n, m).
    """

    kernel: Kernel
    probs: Array

    exact_rows: ClassVar[int] = EXACT_ROWS

    @property
    def shape(self) -> tuple[int, ...]:
        """(n, F)."""
        return len(self.probs), self._count

    @property
    @abstractmethod
    def _count(self) -> int:
        """Number of features F."""

    @property
    @abstractmethod
    def _largest(self) -> float:
        """A bound of the absolute value of a feature."""

    @property
    def longest(self) -> float:
        """A bound of a row's squared length: that of k(g, g), and what rounding adds."""
        return self.kernel.bound * (1.0 + 1.0 / 64.0)

    @abstractmethod
    def _of(self, probs: Array) -> Array:
        """Return the features of predictions, (rows, F), before they are rounded."""

    def __getitem__(self, rows: Any) -> Array:
        """Return the features of some rows."""
        return rounded(self._of(self.probs[rows]), self._largest)


@dataclass(frozen=True, eq=False)
class LandmarkFeatures(ComputedFeatures):
    """Nyström's features φ(g) = R⁻¹ k(Z, g) of landmarks Z with k(Z, Z) = R Rᵀ.

    Attributes
    ----------
    landmarks
        Z, (F, m).
    factor
        R, (F, F), lower triangular.
    """

    landmarks: Array
    factor: Array

    @property
    def _count(self) -> int:
        return len(self.landmarks)

    @property
    def _largest(self) -> float:
        return float(np.sqrt(self.kernel.bound))

    def _of(self, probs: Array) -> Array:
        values = self.kernel(self.landmarks, probs)
        return np.asarray(solve_triangular(self.factor, values, lower=True, overwrite_b=True).T)


@dataclass(frozen=True, eq=False)
class FourierFeatures(ComputedFeatures):
    """Random Fourier features, see :mod:`caltest.kernels.radial`.

    Attributes
    ----------
    directions
        Of every part of the kernel that is shift-invariant.
    """

    directions: int

    @property
    def _count(self) -> int:
        return int(self._of(self.probs[:1]).shape[1])

    @property
    def _largest(self) -> float:
        return float(np.sqrt(self.kernel.bound))

    def _of(self, probs: Array) -> Array:
        return fourier_features(self.kernel, probs, self.directions)


@dataclass(frozen=True, eq=False)
class RoundedFeatures:
    """Features that are held, rounded.

    Attributes
    ----------
    values
        (n, F), as :func:`rounded` leaves them.
    """

    values: Array

    exact_rows: ClassVar[int] = EXACT_ROWS

    @property
    def shape(self) -> tuple[int, ...]:
        """(n, F)."""
        return self.values.shape

    def __getitem__(self, rows: Any) -> Array:
        """Return the features of some rows."""
        return np.asarray(self.values[rows])


def rounded(features: Array, largest: float) -> Array:
    """Round features of at most ``largest`` to multiples of a power of two; a fresh array.

    Examples
    --------
    >>> (rounded(np.array([0.3, -2.0]), 1.0) * 2**13).tolist()
    [2458.0, -8192.0]
    """
    unit = 2.0 ** ceil(log2(largest)) / _STEPS
    multiples = features / unit
    np.rint(multiples, out=multiples)
    np.clip(multiples, -_STEPS, _STEPS, out=multiples)
    multiples *= unit
    return multiples


def exact_rows(features: Features) -> int:
    """Return how many rows' features single precision adds up without rounding; 0 if none."""
    return features.exact_rows if isinstance(features, ComputedFeatures | RoundedFeatures) else 0


def squared_lengths(features: Features) -> Array:
    """Return the squared lengths of all rows' features, (n,)."""
    parts = (features[rows] for rows in blocks(features.shape[0], ROWS))
    return np.concatenate([np.einsum("if,if->i", part, part) for part in parts])


def longest(features: Features) -> float:
    """Return a bound of the squared length of a row's features."""
    if isinstance(features, ComputedFeatures):
        return features.longest
    return float(squared_lengths(features).max())
