"""Weights W_ij of pairs of rows, positive semi-definite: a tile at a time, or as features, W = ΦΦᵀ.

Features of many rows are rounded to integer multiples of a power of two, of two bytes each, and their
sums are exact: this takes a quarter of the memory and of the time. Rounding changes the kernel, by a
few 1e-5 of its values. Any kernel makes an exact test.
"""

# ruff: noqa: D102 -- a method that overrides another is documented where it is first defined.

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any, Literal, NamedTuple, TypeAlias, cast, get_args

import numpy as np
import scipy

from caltest._arguments import choose
from caltest._sums import Array, Places, Tile, blocks
from caltest._visible import quoted
from caltest.data import Rows, subsample
from caltest.exceptions import Argument, InputError
from caltest.kernels import Kernel, MatrixKernel
from caltest.kernels.bandwidth import fixed_order, representatives
from caltest.kernels.base import fourier_features, has_fourier_features
from caltest.laws.classes import Bits
from caltest.sampling import ROWS
from caltest.scores import RoundedFeatures, steps_of

# ------------------------------------------------------------------ features


_FAR = 800.0  # distance at which exp(−x) is 0
_GATHERED = 2**22  # numbers of predictions of pairs held at a time
_SINGLE = 100  # classes from which on distances are computed in single precision, before rounding
_EVEN = 32.0  # times the mean weight: with a larger maximum, features are not rounded


@dataclass(frozen=True, eq=False)
class ComputedFeatures:
    """Features of any predictions, computed when needed, and rounded."""

    function: Callable[[Array], Array]  #: Takes predictions (rows, m), returns (rows, F).
    probs: Array  #: The predictions, (n, m).
    width: int  #: F.
    bound: float  #: Bound of their squared length.
    by: Array  #: Factor of every row's features, (n,).

    @property
    def shape(self) -> tuple[int, int]:
        return len(self.probs), self.width

    def part(self, rows: Any) -> Array | RoundedFeatures:
        """Return the features of some rows, in the form that is summed."""
        values = RoundedFeatures.of(self.function(self.probs[rows]), float(np.sqrt(self.bound)))
        return scaled_rows(values, self.by[rows])

    def __getitem__(self, rows: Any) -> Array:
        """Return the features of some rows."""
        return self.part(rows)[:]

    def held(self) -> Array | RoundedFeatures:
        """Return the features of all rows, computed once."""
        alike = replace(self, by=np.ones(len(self.by)))
        parts = [alike.part(rows) for rows in blocks(len(self.by), ROWS)]
        pieces = np.concatenate([cast("RoundedFeatures", part).pieces for part in parts], axis=1)
        return scaled_rows(replace(cast("RoundedFeatures", parts[0]), pieces=pieces), self.by)


Summed: TypeAlias = Array | RoundedFeatures | ComputedFeatures


@dataclass(frozen=True, eq=False)
class MappedFeatures:
    """Linear functions of other features, whose sums can then be shared by several kernels."""

    base: Summed
    by: Array  #: (F, K).
    bound: float  #: Approximate bound of their squared length.

    @property
    def shape(self) -> tuple[int, int]:
        return int(self.base.shape[0]), int(self.by.shape[1])

    def __getitem__(self, rows: Any) -> Array:
        """Return the features of some rows."""
        return np.asarray(self.base[rows] @ self.by)


#: An (n, F) table of features that is read some rows at a time.
Features: TypeAlias = Summed | MappedFeatures


def landmark_features(kernel: Kernel, landmarks: Array, inverse: Array, probs: Array) -> Array:
    """Return Nyström features φ(g) = R⁻¹ k(Z, g) for landmarks Z (F, m) with k(Z, Z) = R Rᵀ."""
    if probs.shape[1] >= _SINGLE and getattr(kernel, "distance", "") == "tv":
        probs, landmarks = probs.astype(np.float32), landmarks.astype(np.float32)
    return np.asarray(kernel(probs, landmarks).astype(np.float64, copy=False) @ inverse.T)


def scaled_rows(features: Array | RoundedFeatures, by: Array) -> Array | RoundedFeatures:
    """Return features with those of row i multiplied by s_i.

    Rounded features are rounded again, unless a few rows have so much weight that little would be left
    of the others.
    """
    if steps_of(by) is None:
        return features
    values = features[:] * by[:, None]
    largest = float(np.abs(values).max(initial=0.0))
    if isinstance(features, np.ndarray) or largest == 0.0 or by.max() > _EVEN * by.mean():
        return values
    return RoundedFeatures.of(values, largest)


def longest(features: Features) -> float:
    """Return a bound of the squared length of a row's features."""
    if isinstance(features, ComputedFeatures):  # the bound of k(g, g), plus rounding
        return features.bound * (1.0 + 1.0 / 64.0) * float(features.by.max()) ** 2
    if isinstance(features, MappedFeatures):
        return features.bound
    return float(LowRankWeights(features).diagonal().max())


# ------------------------------------------------------------------ weights


class Weights(ABC):
    """A symmetric n×n matrix W that depends on the predictions only, computed in tiles."""

    #: The same as one pass along a line, for two classes, if possible.
    chain: Chain | None = None

    @abstractmethod
    def __call__(self, rows: slice, columns: slice) -> Array:
        """Return the block of W for two slices, as a new array."""

    @abstractmethod
    def at(self, rows: Places, columns: Places) -> Array:
        """Return the entries of W for pairs of rows, arrays of one shape."""

    @abstractmethod
    def diagonal(self) -> Array:
        """Return the diagonal of W, (n,)."""

    def whole_rows(self, rows: Places) -> Array:
        """Return some rows of W."""
        every = slice(0, len(self.diagonal()))
        return np.concatenate([self(slice(row, row + 1), every) for row in rows])

    def size(self) -> float:
        """Return a bound of Σ_ij |W_ij|."""
        diagonal = self.diagonal()
        return float(np.abs(diagonal).max() * len(diagonal) ** 2)


class Term(NamedTuple):
    """One summand W ⊗ A: weights W of the rows, A (m, m) for the classes (None: the identity)."""

    weights: Weights
    matrix: Array | None


@dataclass(frozen=True, eq=False)
class Chain:
    """W_ij = exp(−|x_i − x_j|) for numbers x: along the line, a step is one factor for all before it.

    Sums over all pairs are one pass, O(n).
    """

    order: Places  #: The rows along the line.
    decay: Array  #: W between each row and the row before it, in that order; 0 for the first.
    steps: Array  #: Factors s in s_i s_j W_ij, in that order.

    @property
    def places(self) -> Array:
        """Positions of rows along the line, with steps cut where W becomes 0, (n,)."""
        with np.errstate(divide="ignore"):
            return np.cumsum(np.minimum(-np.log(self.decay), _FAR))

    def sums(self, expected: Array, labels: Any) -> Array:
        """Return Σ_{i<j} W_ij d_i d_j, d = s y − e, for labels (B, n), or signs, and e in order."""
        from caltest.loops import rows as _loops

        sums = np.empty(len(labels))
        for draws, words in Bits.of(labels):
            _loops.chain_sums(words.take(self.order), self.steps, expected, self.decay, sums[draws])
        return sums


@dataclass(frozen=True, eq=False)
class KernelWeights(Weights):
    """W_ij = k(g_i, g_j), computed anew for every tile."""

    kernel: Kernel  #: Real-valued, its bandwidth fitted.
    probs: Array  #: The predictions, (n, m).

    @cached_property
    def tile(self) -> Tile:
        """The kernel matrix as a function of two slices, with work on single rows done once."""
        return self.kernel.tiles(self.probs)

    @cached_property
    def chain(self) -> Chain | None:  # type: ignore[override]
        if not self.kernel.is_on_a_line(self.probs.shape[1]):
            return None
        line = self.kernel.on_a_line(self.probs)  # type: ignore[attr-defined]
        order = np.argsort(line, kind="stable")
        return Chain(order, np.exp(-np.diff(line[order], prepend=-np.inf)), np.ones(len(line)))

    def __call__(self, rows: slice, columns: slice) -> Array:
        return self.tile(rows, columns)

    def at(self, rows: Places, columns: Places) -> Array:
        one, other = rows.ravel(), columns.ravel()
        parts = blocks(len(one), max(1, _GATHERED // self.probs.shape[1]))
        found = [self.kernel.paired(self.probs[one[p]], self.probs[other[p]]) for p in parts]
        return np.concatenate(found).reshape(rows.shape)

    def diagonal(self) -> Array:
        return self.kernel.paired(self.probs, self.probs)

    def whole_rows(self, rows: Places) -> Array:
        return self.kernel(self.probs[rows], self.probs)


@dataclass(frozen=True, eq=False)
class ProductWeights(Weights):
    """W_ij = V_ij U_ij: the kernel on a product of spaces, for instance predictions and groups."""

    first: Weights
    second: Weights

    def __call__(self, rows: slice, columns: slice) -> Array:
        block = self.first(rows, columns)
        block *= self.second(rows, columns)
        return block

    def at(self, rows: Places, columns: Places) -> Array:
        return self.first.at(rows, columns) * self.second.at(rows, columns)

    def diagonal(self) -> Array:
        return self.first.diagonal() * self.second.diagonal()


@dataclass(frozen=True, eq=False)
class ScaledWeights(Weights):
    """s_i s_j W_ij, for weighted rows."""

    weights: Weights  #: W.
    by: Array  #: s, (n,).

    @cached_property
    def chain(self) -> Chain | None:  # type: ignore[override]
        found = self.weights.chain
        return None if found is None else replace(found, steps=self.by[found.order])

    def __call__(self, rows: slice, columns: slice) -> Array:
        block = self.weights(rows, columns)
        block *= self.by[rows, None]
        block *= self.by[columns]
        return block

    def at(self, rows: Places, columns: Places) -> Array:
        return self.weights.at(rows, columns) * self.by[rows] * self.by[columns]

    def diagonal(self) -> Array:
        return self.weights.diagonal() * self.by**2

    def whole_rows(self, rows: Places) -> Array:
        return self.by[rows, None] * self.weights.whole_rows(rows) * self.by

    def size(self) -> float:
        return float(np.abs(self.weights.diagonal()).max() * self.by.sum() ** 2)


def scaled(weights: Weights, by: Array) -> Weights:
    """Return s_i s_j W_ij; for ones, W itself."""
    return weights if steps_of(by) is None else ScaledWeights(weights, by)


@dataclass(frozen=True, eq=False)
class DenseWeights(Weights):
    """W held as a dense matrix: 8 n² bytes."""

    matrix: Array  #: W, (n, n), symmetric.

    def __call__(self, rows: slice, columns: slice) -> Array:
        return self.matrix[rows, columns].copy()

    def at(self, rows: Places, columns: Places) -> Array:
        return np.asarray(self.matrix[rows, columns])

    def diagonal(self) -> Array:
        return np.diagonal(self.matrix).copy()


@dataclass(frozen=True, eq=False)
class LowRankWeights(Weights):
    """W = ΦΦᵀ of low rank."""

    features: Features  #: Φ, (n, F).

    def __call__(self, rows: slice, columns: slice) -> Array:
        return np.asarray(self._of(rows) @ self._of(columns).T)

    def at(self, rows: Places, columns: Places) -> Array:
        one, other = self._of(rows.ravel()), self._of(columns.ravel())
        return np.asarray(np.einsum("if,if->i", one, other)).reshape(rows.shape)

    def diagonal(self) -> Array:
        parts = (self._of(rows) for rows in blocks(self.features.shape[0], ROWS))
        return np.concatenate([np.einsum("if,if->i", part, part) for part in parts])

    def whole_rows(self, rows: Places) -> Array:
        return np.asarray(self._of(rows) @ self._of(slice(None)).T)

    def _of(self, rows: Any) -> Array:
        return self.features[rows].astype(np.float64, copy=False)


def without_diagonal(tile: Tile) -> Tile:
    """Return the matrix with 0 on its diagonal."""

    def altered(rows: slice, columns: slice) -> Array:
        block = tile(rows, columns)
        if rows == columns:
            np.fill_diagonal(block, 0.0)
        return block

    return altered


# ------------------------------------------------------------------ from weights to features


_EQUAL = 1e-9  # residuals of a matrix that differ by less than this share are tied
_EXHAUSTED = 1e-12  # share of the largest diagonal entry below which a residual is rounding


class Cholesky(NamedTuple):
    """An incomplete factorisation: L (n, r), the share of the trace left out, and the r pivots."""

    factor: Array
    missing: float
    pivots: Places


def incomplete_cholesky(
    weights: Weights,
    order: Places,
    columns: int,
    fewest: int | None = None,
    enough: float = 0.0,
    exhausted: float = _EXHAUSTED,
) -> Cholesky:
    """Approximate W by LLᵀ with few columns: the pivoted incomplete Cholesky factorisation.

    The next pivot is always the row with the largest residual, of tied rows the first in ``order``:
    with an order that depends on the predictions alone, the order of the rows changes nothing.
    W − LLᵀ is positive semi-definite, so that its trace bounds its every eigenvalue.

    Parameters
    ----------
    weights
        W, positive semi-definite.
    order
        An order of the rows, (n,).
    columns
        Largest number of columns of L; fewer are used if only rounding is left.
    fewest, enough
        Stop after ``fewest`` columns if no more than the share ``enough`` of the trace is left out.
        Default: all columns.
    exhausted
        Share of the largest diagonal entry below which the residual of an entry is rounding.

    Returns
    -------
    Cholesky
        L, (n, r); tr(W − LLᵀ) / tr W; and the pivot rows, (r,), in the order chosen.

    References
    ----------
    Fine and Scheinberg, "Efficient SVM training using low-rank kernel representations", JMLR 2
    (2002).

    Examples
    --------
    >>> weights = DenseWeights(np.array([[2.0, 1.0], [1.0, 1.0]]))
    >>> factor, missing, pivots = incomplete_cholesky(weights, np.arange(2), 1)
    >>> (factor @ factor.T).round(6), round(missing, 6), pivots
    (array([[2. , 1. ], [1. , 0.5]]), 0.166667, array([0]))
    """
    n = len(order)
    rank = np.empty(n, dtype=np.intp)
    rank[order] = np.arange(n)
    residual = weights.diagonal()
    trace, floor = float(residual.sum()), exhausted * float(residual.max())
    factor = np.empty((min(columns, n), n))  # rows of it are contiguous
    pivots = np.empty(len(factor), dtype=np.intp)
    for number, column in enumerate(factor):
        largest = float(residual.max())
        sufficient = fewest is not None and number >= fewest and residual.sum() <= enough * trace
        if largest <= floor or sufficient:
            factor, pivots = factor[:number], pivots[:number]
            break
        tied = np.flatnonzero(residual >= (1.0 - _EQUAL) * largest)
        pivots[number] = pivot = int(tied[rank[tied].argmin()])
        column[:] = weights(slice(pivot, pivot + 1), slice(0, n))[0]
        column -= factor[:number, pivot] @ factor[:number]
        column /= np.sqrt(residual[pivot])
        residual -= column**2
        np.maximum(residual, 0.0, out=residual)
        residual[pivot] = 0.0
    missing = float(residual.sum()) / trace if trace > 0 else 0.0
    return Cholesky(np.ascontiguousarray(factor.T), missing, pivots)


# ------------------------------------------------------------------ kernels of low rank


Approximation: TypeAlias = Literal["auto", "nystrom", "fourier"]

RANK = 256

#: Rows up to which features are held, 200 MB of them, and everything is fitted to all rows.\
#: \
#: For more rows, bandwidths and features are fitted to a subsample, see ``caltest.data.subsample``, and
#: features are computed when needed.
HELD_UP_TO = 100_000

#: Rows up to which "auto" uses the kernel itself, and features are fitted to all rows and not rounded.\
#: \
#: For more rows, features are fitted to some, evenly spaced in an order that depends on the predictions
#: alone, and rounded, for fast sums. For two classes, the exponential kernel of most distances takes
#: one pass over the rows, however many.
FULL_ROWS = 1500

#: The same for rows in clusters: all pairs are summed once, and draws are signs of clusters.
FULL_ROWS_OF_CLUSTERS = 5000


@dataclass(frozen=True, eq=False)
class LowRank:
    """Features whose inner products approximate a kernel, for certain predictions.

    Attributes
    ----------
    predictions
        The predictions that they belong to.
    features
        Weighted Φ, (n, F); for very many rows, computed when needed.
    missing
        Share of the trace that ΦΦᵀ leaves out; None for random features, which leave out nothing on
        average.
    of_parts
        Whether it was fitted to a sample of rows that are read in parts.
    fitted_to
        Predictions that it was fitted to, and the features as a function of predictions.
    """

    predictions: Rows
    features: Features
    missing: float | None
    of_parts: bool
    fitted_to: tuple[Array, Callable[[Array], Array]]

    @classmethod
    def of(
        cls, kernel: Kernel | MatrixKernel, predictions: Rows, method: Approximation, rank: int
    ) -> LowRank:
        """Approximate a fitted kernel with at most ``rank`` columns (Fourier features: about).

        Features are a function of a prediction. For few rows it is fitted to all and its values are
        held; for more, to some; for very many, or for rows in parts, values are computed when needed.
        """
        (part, _), probs, n = kernel.terms[0], predictions.probs, predictions.n_samples
        of_parts = predictions.part_of is not None
        held = n <= HELD_UP_TO and not of_parts
        few = held and n <= FULL_ROWS
        some = fitting_rows(predictions).probs if few or not held else probs[representatives(probs)]
        exact: Features
        if method == "fourier":
            function, missing = partial(fourier_features, part, count=(rank + 1) // 2), None
            exact = function(probs) if few else probs
        else:
            order = fixed_order(some) if few else np.arange(len(some))
            exact, missing, pivots = incomplete_cholesky(KernelWeights(part, some), order, rank)
            factor = np.tril(exact[pivots])
            inverse = scipy.linalg.solve_triangular(factor, np.eye(len(factor)), lower=True)
            function = partial(landmark_features, part, some[pivots], inverse)
        found: Features
        if few:
            found = scaled_rows(exact[:], predictions.weights)
        else:
            width = int(function(probs[:1]).shape[1])
            found = ComputedFeatures(function, probs, width, part.bound, predictions.weights)
            found = found.held() if held else found
        return cls(predictions, found, missing, of_parts, (some, function))

    def of_rows(self, predictions: Rows) -> LowRank:
        """Return the same features for other rows; they must be computed ones."""
        given: Any = self.features
        base = cast("ComputedFeatures", getattr(given, "base", given))
        features: Any = replace(base, probs=predictions.probs, by=predictions.weights)
        if given is not base:
            features = replace(given, base=features)
        return replace(self, predictions=predictions, features=features)

    def of_kernel(self, kernel: Kernel, rank: int) -> LowRank:
        """Return linear functions of these features that approximate a wider kernel, K ≈ Ψ C CᵀΨᵀ.

        For the rows that features are fitted to, with K ≈ LLᵀ, C minimises the distance of ΨC from L.
        """
        some, function = self.fitted_to
        own, order = function(some), np.arange(len(some))
        wide = incomplete_cholesky(KernelWeights(kernel, some), order, rank).factor
        q, r = np.linalg.qr(own)
        by = scipy.linalg.solve_triangular(r, q.T @ wide)
        largest = ((own @ by) ** 2).sum(axis=1).max() * self.predictions.weights.max() ** 2
        bound = (1.0 + 1.0 / 64.0) * float(largest)
        features = MappedFeatures(cast("Summed", self.features), by, bound)
        return replace(self, features=features, missing=None)


def fitting_rows(predictions: Rows) -> Rows:
    """Return the rows that bandwidths and features are fitted to: all, or a subsample of very many."""
    if predictions.n_samples <= HELD_UP_TO or predictions.part_of is not None:
        return predictions
    places = subsample(predictions.n_samples)
    return Rows(predictions.law.take(places)) if predictions.are_alike else predictions.take(places)


def chosen(
    approximation: Approximation | None, kernel: Kernel | MatrixKernel, predictions: Rows
) -> Approximation | None:
    """Return the method that "auto" resolves to."""
    if approximation != "auto":
        return approximation
    if predictions.part_of is not None:
        return "nystrom"
    if isinstance(kernel, Kernel) and kernel.is_on_a_line(predictions.n_classes):
        return None
    few = FULL_ROWS if predictions.clusters is None else FULL_ROWS_OF_CLUSTERS
    return None if predictions.n_samples <= few else "nystrom"


def check_approximation(kernel: Kernel | MatrixKernel, method: object) -> None:
    """Raise if a kernel has no such approximation; None means no approximation."""
    if method is None:
        return
    choose("approximation", method, dict.fromkeys(get_args(Approximation)))
    if len(kernel.terms) > 1:
        why = "an approximation takes one kernel between predictions and one matrix between classes"
        do = "leave the approximation out"
        raise InputError(f"kernel has {len(kernel.terms)} parts, and {why}; {do}.")
    if method == "fourier" and not has_fourier_features(kernel.terms[0][0]):
        do = f"use {Argument('approximation', 'nystrom')}, which takes any kernel"
        raise InputError(f"there are no Fourier features of {quoted(kernel.terms[0][0], 200)}; {do}.")
