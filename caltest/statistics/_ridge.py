"""Kernel ridge regression of the labels on the predictions: the numerics of the CKCE.

With a kernel matrix K and K_c = K + c I, c = λ n, the CKCE is Σ_ij W_ij ⟨D_i, D_j⟩ for
W = K_c⁻¹ K K_c⁻¹. From features with K = ΦΦᵀ, W = ΨΨᵀ for Ψ = Φ (ΦᵀΦ + c I)⁻¹.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import blas, eigh, lapack

from caltest._arguments import Number, choose
from caltest._memory import check_fits
from caltest._tiles import blocks
from caltest.exceptions import InputError
from caltest.forms import Weights

Array: TypeAlias = NDArray[np.float64]

#: Rules for λ, as functions of the number of rows; cross-validation is none.
RULES: dict[str, Callable[[int], float] | None] = {"n^-1/4": lambda n: n**-0.25, "cv": None}

LARGEST = 1e6  # λ; beyond, the CKCE is SKCE_b over λ² but for rounding
BYTES_A_PAIR = 17  # peak of `dense_weights`: two n×n matrices; measured 16.3 at n = 10 000
GRID = 10.0 ** np.arange(-6.0, 0.25, 0.5)  # values of λ that cross-validation compares
_NEGLIGIBLE = 1e-13  # share of the largest eigenvalue of W below which one is dropped
_ROWS = 512


def dense_weights(kernel_matrix: Weights, n: int, c: float) -> Array:
    """Return W = K_c⁻¹ − c K_c⁻², (n, n), by a Cholesky factorisation: 2 n³ operations.

    Raises
    ------
    InputError
        If c is so small that K_c is singular in double precision.
    """
    k = np.empty((n, n))
    for rows in blocks(n, _ROWS):
        k[rows] = kernel_matrix(rows, slice(0, n))
    k[np.diag_indices(n)] += c
    # LAPACK and BLAS write in place, column by column: of the transpose of a symmetric matrix.
    factor, failed = lapack.dpotrf(k.T, lower=1, overwrite_a=1)
    if not failed:
        inverse, failed = lapack.dpotri(factor, lower=1, overwrite_c=1)
    if failed:
        raise InputError(
            f"the kernel matrix plus λ n = {c:.3g} on its diagonal is singular to rounding; "
            "give a larger regularization."
        )
    _mirror(inverse)
    w = blas.dsyrk(-c, inverse, beta=1.0, c=inverse.copy(order="F"), lower=1, overwrite_c=1)
    _mirror(w)
    return np.asarray(w)


def _mirror(a: Array) -> None:
    """Write the lower triangle over the upper one."""
    for rows in blocks(len(a), _ROWS):
        corner = np.tril(a[rows, rows])
        a[rows, rows] = corner + np.tril(corner, -1).T
        a[rows, rows.stop :] = a[rows.stop :, rows].T


def feature_weights(features: Array, c: float) -> Array:
    """Return Ψ, (n, r), orthogonal columns with ΨΨᵀ = W; directions of no weight are left out."""
    values, vectors = eigh(features.T @ features)
    values = values.clip(min=0.0)
    weights = values / (values + c) ** 2
    kept = weights > _NEGLIGIBLE * weights.max()
    return np.asarray(features @ (vectors[:, kept] / (values[kept] + c)))


def cross_validated(features: Array, probs: Array, label_kernel: Array | None) -> float:
    """Return the λ of GRID whose regression of the labels on the predictions has the least risk.

    The risk is that of leave-one-out cross-validation, in the mean over labels drawn from the
    predictions. The labels are Y = G + D, their regression is HY with H = K K_c⁻¹, and
    leaving row i out makes its residual ((I − H) Y)_i / (1 − H_ii), so that the mean of its squared
    norm is

        (‖((I − H) G)_i‖² + Σ_j (I − H)_ij² tr Σ_j) / (1 − H_ii)².

    With K = U diag(s) Uᵀ all this takes O(n r²) for every λ, and no n×n matrix.
    """
    n = len(probs)
    values, vectors = eigh(features.T @ features)
    kept = values > 1e-14 * values[-1]
    values = values[kept]
    u = features @ (vectors[:, kept] / np.sqrt(values))
    squares = u * u
    metric = np.eye(probs.shape[1]) if label_kernel is None else label_kernel
    variances = probs @ np.diag(metric) - _squared_lengths(probs, metric)
    inner = u.T @ probs
    spread = (u.T * variances) @ u

    def risk(regularization: float) -> float:
        shrunk = values / (values + regularization * n)
        leverage = squares @ shrunk
        left_out = (1.0 - leverage) ** -2
        bias = probs - u @ (shrunk[:, None] * inner)
        own = _squared_lengths(bias, metric) + variances * (1.0 - 2.0 * leverage)
        between = ((u.T * left_out) @ u) * np.outer(shrunk, shrunk)
        return float(left_out @ own + np.vdot(between, spread))

    return float(GRID[np.argmin([risk(value) for value in GRID])])


def _squared_lengths(vectors: Array, metric: Array) -> Array:
    return np.asarray(np.einsum("ik,ik->i", vectors @ metric, vectors))


def check_regularization(value: object) -> None:
    """Raise unless it is a positive number or the name of a rule."""
    if isinstance(value, str):
        choose("rule for the regularization", value, RULES)
        return
    advice = f"give a positive number up to {LARGEST:g}, 'n^-1/4' or 'cv'"
    Number(0.0, LARGEST, "(]", advice)("regularization", value)


def check_memory(n: int) -> None:
    """Raise if the exact inverse of n rows needs more memory than there is."""
    check_fits(
        float(BYTES_A_PAIR) * n**2, f"method='exact' of {n} rows", "use method='nystrom' or 'fourier'"
    )
