"""Kernel matrices of low rank, for statistics that are sums over pairs of rows."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Literal, TypeAlias

import numpy as np

from caltest._arguments import choose
from caltest._quoted import quoted
from caltest._sampling import ROWS
from caltest._tiles import blocks
from caltest.data import Predictions, glimpse
from caltest.exceptions import InputError
from caltest.forms import (
    ComputedFeatures,
    Features,
    FeatureSquares,
    FourierFeatures,
    KernelWeights,
    LandmarkFeatures,
    RoundedFeatures,
    incomplete_cholesky,
    rounded,
)
from caltest.kernels import Kernel, MatrixKernel
from caltest.kernels.bandwidth import fixed_order
from caltest.kernels.fourier import fourier_features, has_fourier_features

Approximation: TypeAlias = Literal["auto", "nystrom", "fourier"]

APPROXIMATIONS = dict.fromkeys(("auto", "nystrom", "fourier"), True)
RANK = 256

HELD_UP_TO = 100_000
"""Rows up to which features are held, 200 MB of them, and everything is fitted to all rows.

Of more rows a glimpse is what bandwidths and features are fitted to, see :mod:`caltest.data.glimpse`,
and features are computed when they are needed.
"""

ROUNDED_FROM = 4096
"""Rows up to which features are kept as they are; of more they are rounded, to be added up fast."""

#: n² (m − 1) up to which "auto" takes the kernel itself: 999 draws in some two seconds on two cores.
#: That is 12 000 rows of two classes, 4 000 of ten, 1 200 of a hundred.
FULL_UP_TO = 1.5e8


@dataclass(frozen=True, eq=False)
class LowRank:
    """Features whose inner products stand for a kernel, of given predictions.

    Attributes
    ----------
    predictions
        What they were made for.
    features
        Φ, (n, F); of very many rows, computed when they are needed.
    missing
        Share of the trace that ΦΦᵀ leaves out; None of random features, which leave out nothing on
        average.
    """

    predictions: Predictions
    features: Features
    missing: float | None

    @classmethod
    def of(
        cls, kernel: Kernel | MatrixKernel, predictions: Predictions, method: Approximation, rank: int
    ) -> LowRank:
        """Approximate a fitted kernel with ``rank`` columns at most (of the Fourier kind, about)."""
        part, _ = kernel.terms[0]
        probs = predictions.probs
        if len(probs) > HELD_UP_TO:
            return cls.fitted_to(kernel, fitting_rows(predictions), method, rank).of_rows(predictions)
        features: Features
        if method == "fourier":
            features, missing = fourier_features(part, probs, _directions(rank)), None
        else:
            weights, order = KernelWeights(part, probs), fixed_order(probs)
            features, missing, _ = incomplete_cholesky(weights, order, rank)
        if len(probs) > ROUNDED_FROM:
            features = RoundedFeatures(rounded(features, float(np.sqrt(part.bound))))
        return cls(predictions, features, missing)

    @classmethod
    def fitted_to(
        cls, kernel: Kernel | MatrixKernel, rows: Predictions, method: Approximation, rank: int
    ) -> LowRank:
        """Approximate a kernel by features, of these rows and of any others, that are computed."""
        part, _ = kernel.terms[0]
        if method == "fourier":
            return cls(rows, FourierFeatures(part, rows.probs, _directions(rank)), None)
        found = incomplete_cholesky(KernelWeights(part, rows.probs), np.arange(rows.n_samples), rank)
        landmarks, factor = rows.probs[found.pivots], np.tril(found.factor[found.pivots])
        return cls(rows, LandmarkFeatures(part, rows.probs, landmarks, factor), found.missing)

    def of_rows(self, predictions: Predictions) -> LowRank:
        """Return the same features of other rows; they must be computed ones."""
        if not isinstance(self.features, ComputedFeatures):
            raise TypeError("features that are held are of the rows that they were made for")
        features = replace(self.features, probs=predictions.probs)
        return replace(self, predictions=predictions, features=features)

    @property
    def parameters(self) -> dict[str, Any]:
        """What a reader of a result should know of it."""
        found: dict[str, Any] = {"rank": self.features.shape[1]}
        return found if self.missing is None else found | {"trace_error": self.missing}

    def form(
        self,
        kernel: Kernel | MatrixKernel,
        scale: float,
        *,
        diagonal: bool,
        whole: int | None = None,
    ) -> FeatureSquares:
        """Return scale · Σ_ij ⟨φ_i, φ_j⟩ D_iᵀ A D_j over all pairs, or over those with i ≠ j."""
        _, matrix = kernel.terms[0]
        probs = self.predictions.probs
        return FeatureSquares(probs, self.features, matrix, scale, diagonal, whole)


def _directions(rank: int) -> int:
    return (rank + 1) // 2


def fitting_rows(predictions: Predictions) -> Predictions:
    """Return the rows that bandwidths and features are fitted to: all, or a glimpse of very many."""
    if predictions.n_samples <= HELD_UP_TO:
        return predictions
    return glimpse(predictions.probs[rows] for rows in blocks(predictions.n_samples, ROWS))


def chosen(approximation: Approximation | None, predictions: Predictions) -> Approximation | None:
    """Return what "auto" stands for."""
    if approximation != "auto":
        return approximation
    size = float(predictions.n_samples) ** 2 * (predictions.n_classes - 1)
    return None if size <= FULL_UP_TO else "nystrom"


def check_approximation(kernel: Kernel | MatrixKernel, method: object) -> None:
    """Raise if a kernel cannot be approximated so; None is no approximation."""
    if method is None:
        return
    choose("approximation", method, APPROXIMATIONS)
    if len(kernel.terms) > 1:
        raise InputError(
            f"kernel has {len(kernel.terms)} parts, and an approximation takes one kernel between "
            "predictions and one matrix between classes; leave the approximation out."
        )
    if method == "fourier" and not has_fourier_features(kernel.terms[0][0]):
        raise InputError(
            f"there are no Fourier features of {quoted(kernel.terms[0][0], 200)}; use "
            "approximation='nystrom', which takes any kernel."
        )
