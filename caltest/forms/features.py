"""Features of rows, ΦΦᵀ for a kernel matrix: held as a whole, or computed when they are needed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from scipy.linalg import solve_triangular

from caltest._sampling import ROWS
from caltest._tiles import blocks
from caltest.forms.base import Array
from caltest.kernels import Kernel


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
class LandmarkFeatures:
    """Nyström's features φ(g) = R⁻¹ k(Z, g) of landmarks Z with k(Z, Z) = R Rᵀ, row by row.

    Attributes
    ----------
    kernel
        Its bandwidth fitted.
    probs
        The predictions, (n, m).
    landmarks
        Z, (F, m).
    factor
        R, (F, F), lower triangular.
    """

    kernel: Kernel
    probs: Array
    landmarks: Array
    factor: Array

    @property
    def shape(self) -> tuple[int, ...]:
        """(n, F)."""
        return len(self.probs), len(self.landmarks)

    def __getitem__(self, rows: Any) -> Array:
        """Return the features of some rows."""
        values = self.kernel(self.landmarks, self.probs[rows])
        return np.asarray(solve_triangular(self.factor, values, lower=True, overwrite_b=True).T)


def squared_lengths(features: Features) -> Array:
    """Return the squared lengths of all rows' features, (n,)."""
    parts = (features[rows] for rows in blocks(features.shape[0], ROWS))
    return np.concatenate([np.einsum("if,if->i", part, part) for part in parts])
