"""Weights of pairs of rows: the symmetric n×n matrices that pairwise forms are made of."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple, Protocol

import numpy as np

from caltest.forms.base import Array
from caltest.kernels import Kernel


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

    def __call__(self, rows: slice, columns: slice) -> Array:
        """Return the kernel matrix of two blocks of predictions."""
        return self.kernel(self.probs[rows], self.probs[columns])

    def diagonal(self) -> Array:
        """Return k(g_i, g_i)."""
        return self.kernel.paired(self.probs, self.probs)
