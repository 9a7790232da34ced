"""The eigenvalues and features of a kernel matrix, for a whole path of regularizations at once."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from scipy.linalg import eigh, solve_triangular

from caltest.estimation.base import Array
from caltest.forms import KernelWeights, incomplete_cholesky
from caltest.kernels import Kernel

_ROUNDING = 1e-14  # of the largest diagonal entry or eigenvalue: what is left then is rounding
_DENSE_UP_TO = 10_000  # rows whose kernel matrix is decomposed as a whole if it has no low rank
_COLUMNS = 100_000_000  # entries of a factor of more rows
_FEWEST_COLUMNS = 250  # of such a factor
_WORTH_A_NOTE = 1e-9  # share of the trace that is left out


@dataclass(frozen=True, eq=False)
class Spectrum:
    """The eigenvalues of a kernel matrix, and its features φ(p) = k(p, anchors) · transform.

    Attributes
    ----------
    kernel
        The kernel, its bandwidth a number.
    anchors, transform
        (s, d) points and (s, r) matrix.
    values
        Eigenvalues (r,), largest first.
    features
        Φ of the training rows, (n, r).
    missing
        Share of the trace that the features leave out: 0 but for rounding, where n is not too large.
    """

    kernel: Kernel
    anchors: Array
    transform: Array
    values: Array
    features: Array
    missing: float
    _last: dict[str, Array] = field(default_factory=dict, init=False, repr=False)

    @classmethod
    def of(cls, kernel: Kernel, points: Array) -> Spectrum:
        """Decompose the kernel matrix of ``points`` (n, d).

        Pivoted Cholesky first: kernels of few coordinates have a low rank (8 for one coordinate, 600
        for ten classes), and O(n r²) is all it takes. Else the eigenvectors of all of K, in O(n³), up
        to 10 000 rows; beyond, the columns that fit.
        """
        fitted, n = kernel.fitted(points), len(points)
        dense = n <= _DENSE_UP_TO
        most = max(1, n // 3) if dense else min(n, max(_FEWEST_COLUMNS, _COLUMNS // n))
        weights = KernelWeights(fitted, points)
        factor, missing, pivots = incomplete_cholesky(weights, np.arange(n), most, exhausted=_ROUNDING)
        if dense and len(pivots) == most:
            values, vectors = eigh(fitted(points, points), overwrite_a=True, driver="evd")
            kept = slice(int(np.searchsorted(values, _ROUNDING * values[-1])), None)
            values, vectors = values[kept][::-1], vectors[:, kept][:, ::-1]
            roots = np.sqrt(values)
            return cls(fitted, points, vectors / roots, values, vectors * roots, 0.0)
        values, vectors = eigh(factor.T @ factor)
        values, vectors = values[::-1].clip(min=0.0), np.ascontiguousarray(vectors[:, ::-1])
        transform = solve_triangular(factor[pivots], vectors, lower=True, trans="T")
        return cls(fitted, points[pivots], transform, values, factor @ vectors, missing)

    @property
    def notes(self) -> tuple[str, ...]:
        """Say so where the kernel matrix was replaced by a part of it."""
        if self.missing < _WORTH_A_NOTE:
            return ()
        return (
            f"Of the kernel matrix of {len(self.features)} rows, {len(self.values)} features were "
            f"kept; they leave out {self.missing:.2g} of its trace.",
        )

    def outer(self, residuals: Array, place: int) -> Array:
        """Return B Bᵀ, (r, r), B = Φᵀ of one of the vectors of residuals (n, B, k).

        A single vector's is kept: a path of regularizations asks for it again and again.
        """
        if residuals.shape[1] > 1:
            b = self.features.T @ residuals[:, place]
            return b @ b.T
        if self._last.get("residuals") is not residuals:
            b = self.features.T @ residuals[:, 0]
            self._last.update(residuals=residuals, outer=b @ b.T)
        return self._last["outer"]

    def at(self, points: Array) -> EigenFeatures:
        """Return the features of points (e, d)."""
        return EigenFeatures(self.kernel(points, self.anchors) @ self.transform)


@dataclass(frozen=True, eq=False)
class EigenFeatures:
    """Features φ (e, r) of some predictions."""

    values: Array

    @cached_property
    def products(self) -> Array:
        """Inner products of the columns, (r, r)."""
        return self.values.T @ self.values
