"""Kernel matrices of low rank, for statistics that are sums over pairs of rows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

import numpy as np

from caltest._choices import choose, positive_integer
from caltest._seeds import generator
from caltest.data import Predictions
from caltest.exceptions import InputError
from caltest.forms import (
    Features,
    FeatureSquares,
    KernelWeights,
    LandmarkFeatures,
    incomplete_cholesky,
)
from caltest.kernels import Kernel, MatrixKernel
from caltest.kernels.bandwidth import fixed_order
from caltest.kernels.fourier import fourier_features, has_fourier_features

Approximation: TypeAlias = Literal["auto", "nystrom", "fourier"]

APPROXIMATIONS = dict.fromkeys(("auto", "nystrom", "fourier"), True)
RANK = 256

HELD_UP_TO = 100_000
"""Rows up to which features are held, 200 MB of them, and every row may become a landmark."""

_CANDIDATES = 8192  # for landmarks, where rows are more

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
        if method == "fourier":
            return cls(predictions, fourier_features(part, probs, (rank + 1) // 2), None)
        order = fixed_order(probs)
        if len(probs) <= HELD_UP_TO:
            factor, missing, _ = incomplete_cholesky(KernelWeights(part, probs), order, rank)
            return cls(predictions, factor, missing)
        some = probs[order[generator(0).permutation(len(probs))[:_CANDIDATES]]]
        found = incomplete_cholesky(KernelWeights(part, some), np.arange(len(some)), rank)
        landmarks, factor = some[found.pivots], np.tril(found.factor[found.pivots])
        return cls(predictions, LandmarkFeatures(part, probs, landmarks, factor), found.missing)

    @property
    def parameters(self) -> dict[str, Any]:
        """What a reader of a result should know of it."""
        found: dict[str, Any] = {"rank": self.features.shape[1]}
        return found if self.missing is None else found | {"trace_error": self.missing}

    def form(self, kernel: Kernel | MatrixKernel, scale: float, *, diagonal: bool) -> FeatureSquares:
        """Return scale · Σ_ij ⟨φ_i, φ_j⟩ D_iᵀ A D_j over all pairs, or over those with i ≠ j."""
        _, matrix = kernel.terms[0]
        return FeatureSquares(self.predictions.probs, self.features, matrix, scale, diagonal)


def chosen(approximation: Approximation | None, predictions: Predictions) -> Approximation | None:
    """Return what "auto" stands for."""
    if approximation != "auto":
        return approximation
    size = float(predictions.n_samples) ** 2 * (predictions.n_classes - 1)
    return None if size <= FULL_UP_TO else "nystrom"


def check_approximation(kernel: Kernel | MatrixKernel, method: object, rank: object) -> None:
    """Raise if a kernel cannot be approximated so; None is no approximation."""
    positive_integer("rank", rank)
    if method is None:
        return
    choose("approximation", method, APPROXIMATIONS)  # type: ignore[arg-type]
    if len(kernel.terms) > 1:
        raise InputError(
            f"kernel has {len(kernel.terms)} parts, and an approximation takes one kernel between "
            "predictions and one matrix between classes; leave the approximation out."
        )
    if method == "fourier" and not has_fourier_features(kernel.terms[0][0]):
        raise InputError(
            f"there are no Fourier features of {kernel.terms[0][0]!r}; use approximation='nystrom', "
            "which takes any kernel."
        )
