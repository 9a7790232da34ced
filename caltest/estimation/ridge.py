"""Kernel ridge regression of residuals: Kronecker and two-step, by eigenvalues."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, ClassVar, Literal, TypeAlias

import numpy as np
from scipy.linalg import eigh, solve_triangular

from caltest._arguments import arguments, choose, positive_number, real_kernel
from caltest.estimation.base import (
    Array,
    EstimationFunction,
    PlugIn,
    Smoother,
    Surface,
    coordinates,
)
from caltest.forms import KernelWeights, incomplete_cholesky
from caltest.kernels import Gaussian, Kernel

# ------------------------------------------------------------------ spectrum


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


# ------------------------------------------------------------------ ridge
#
# With K = ΦΦᵀ the kernel matrix of the n training rows, Φ (n, r) of orthogonal columns with squared
# lengths λ_1 ≥ … ≥ λ_r (the eigenvalues), φ(p) the features of p and R the residuals, B = ΦᵀR gives
#
#     Kronecker:  h(p, p') = φ(p)ᵀ [(B Bᵀ) ∘ L] φ(p'),   L_ij = 1 / (λ_i λ_j + c),
#     two-step:   ĉ(p) = Bᵀ (Λ + c)⁻¹ φ(p),
#
# which is the paper's Equations 29 and 32 without a division by an eigenvalue. Features, and all that
# costs O(n r²), are computed once for a whole path of c; a value of c costs O(r²) a row.


Scaling: TypeAlias = Literal["usual", "published"]

_NEGLIGIBLE = 1e-10  # a tail of eigenvalues whose pairs add no more than that to h is left out
_NEGLIGIBLE_SHARE = 1e-8  # of the trace: no more is left out than that


@dataclass(frozen=True)
class _Ridge(EstimationFunction):
    regularization: float = 1e-3
    kernel: Kernel = field(default_factory=lambda: Gaussian(0.5**0.5))
    regularization_scaling: Scaling = "usual"

    tuned: ClassVar[str] = "regularization"
    powers: ClassVar[dict[str, float]]

    def __post_init__(self) -> None:
        choose("regularization_scaling", self.regularization_scaling, self.powers)

    def _constant(self, n: int) -> float:
        return float(self.regularization * n ** self.powers[self.regularization_scaling])

    @abstractmethod
    def _over(self, spectrum: Spectrum, constant: float) -> _RidgeSmoother: ...

    def given(self, probs: Array) -> _RidgeSmoother:
        """Fix the training predictions."""
        return self._over(self._spectrum(probs), self._constant(len(probs)))

    def _spectrum(self, probs: Array) -> Spectrum:
        return Spectrum.of(self.kernel, coordinates(probs))

    def path(
        self, values: Sequence[Any], train: Array, *places: Array
    ) -> Iterator[tuple[Surface, ...]]:
        """Yield h at the places for every value; one decomposition serves all."""
        spectrum = self._spectrum(train)
        seen = [spectrum.at(coordinates(probs)) for probs in places]
        for value in values:
            smoother = self._over(spectrum, self.with_value(value)._constant(len(train)))
            yield tuple(smoother.surface(features) for features in seen)


@dataclass(frozen=True, eq=False)
class _RidgeSmoother(Smoother):
    spectrum: Spectrum
    constant: float

    @abstractmethod
    def surface(self, features: EigenFeatures) -> Surface:
        """Return h where the features are known."""

    def at(self, probs: Array) -> Surface:
        return self.surface(self.spectrum.at(coordinates(probs)))


@arguments(regularization=positive_number, kernel=real_kernel)
@dataclass(frozen=True)
class TwoStepKernelRidge(_Ridge):
    """ĉ by kernel ridge regression of the residuals on the predictions, h = ⟨ĉ, ĉ'⟩ ("U-statistic").

    ĉ(p) = Rᵀ (K + c I)⁻¹ k(p), c = λ n.

    Parameters
    ----------
    regularization
        λ > 0. Default 0.001.
    kernel
        A kernel of :mod:`caltest.kernels` on the probability of class 1 of two classes, on the full
        vector of more. Default exp(−‖p − p'‖²), the paper's.
    regularization_scaling
        "usual" (default): c = λ n; "published": c = λ n^0.75, as the paper's authors computed.

    Raises
    ------
    InputError
        If an option cannot be used.

    References
    ----------
    Gruber and Bach 2024, Equation 32; Stock et al., "A comparative study of pairwise learning methods
    based on kernel ridge regression", Neural Computation 30 (2018).

    Examples
    --------
    >>> h = TwoStepKernelRidge(0.01).fit([0.2, 0.4, 0.7, 0.9], [0, 1, 1, 1])
    >>> h.diagonal(np.array([[0.9, 0.1], [0.1, 0.9]])).round(4)
    array([0.0042, 0.034 ])
    """

    name: ClassVar[str] = "two_step_ridge"
    is_a: ClassVar[str] = "kernel ridge regression of the residuals"
    powers: ClassVar[dict[str, float]] = {"usual": 1.0, "published": 0.75}

    def search_space(self, n_classes: int) -> tuple[float, ...]:
        """Return 1e-1 to 1e-9 for two classes, 1e4 to 10^-4.5 in half steps for more, as published."""
        exponents = np.arange(-1.0, -10.0, -1.0) if n_classes == 2 else np.arange(4.0, -5.0, -0.5)
        return tuple((10.0**exponents).tolist())

    def _over(self, spectrum: Spectrum, constant: float) -> _TwoStep:
        return _TwoStep(spectrum, constant)


class _TwoStep(_RidgeSmoother):
    def surface(self, features: EigenFeatures) -> _TwoStepCurve:
        return _TwoStepCurve(self.spectrum, self.constant, features)


@dataclass(frozen=True, eq=False)
class _TwoStepCurve(PlugIn):
    spectrum: Spectrum
    constant: float
    features: EigenFeatures

    @property
    def notes(self) -> tuple[str, ...]:
        return self.spectrum.notes

    def curves(self, residuals: Array) -> Array:
        flat = self.spectrum.features.T @ residuals.reshape(len(residuals), -1)
        flat /= (self.spectrum.values + self.constant)[:, None]
        return (self.features.values @ flat).reshape(-1, *residuals.shape[1:])


@arguments(regularization=positive_number, kernel=real_kernel)
@dataclass(frozen=True)
class KroneckerKernelRidge(_Ridge):
    """h by kernel ridge regression of ⟨r_i, r_j⟩ on pairs of predictions, with the kernel k ⊗ k.

    Parameters
    ----------
    regularization
        λ > 0. Default 0.001.
    kernel
        As of :class:`TwoStepKernelRidge`.
    regularization_scaling
        "usual" (default): c = λ n², there are n² pairs; "published": c = λ n^1.5, as the paper's
        authors computed.

    Raises
    ------
    InputError
        If an option cannot be used.

    References
    ----------
    Gruber and Bach 2024, Equations 27 to 31; Stock et al. 2018.

    Examples
    --------
    >>> h = KroneckerKernelRidge(0.01).fit([0.2, 0.4, 0.7, 0.9], [0, 1, 1, 1])
    >>> h.diagonal(np.array([[0.9, 0.1], [0.1, 0.9]])).round(4)
    array([-0.0443,  0.0376])
    """

    name: ClassVar[str] = "kronecker_ridge"
    is_a: ClassVar[str] = "kernel ridge regression of pairs of residuals"
    powers: ClassVar[dict[str, float]] = {"usual": 2.0, "published": 1.5}

    def search_space(self, n_classes: int) -> tuple[float, ...]:
        """Return 1e-1, 1e-3, …, 1e-17 for two classes, 1e8 to 1e-9 in half steps for more."""
        exponents = np.arange(-1.0, -18.0, -2.0) if n_classes == 2 else np.arange(8.0, -9.5, -0.5)
        return tuple((10.0**exponents).tolist())

    def _over(self, spectrum: Spectrum, constant: float) -> _Kronecker:
        return _Kronecker(spectrum, constant)


class _Kronecker(_RidgeSmoother):
    def surface(self, features: EigenFeatures) -> _KroneckerSurface:
        return _KroneckerSurface(self.spectrum, self.constant, features)


@dataclass(frozen=True, eq=False)
class _KroneckerSurface(Surface):
    spectrum: Spectrum
    constant: float
    features: EigenFeatures

    @property
    def notes(self) -> tuple[str, ...]:
        return self.spectrum.notes

    @cached_property
    def _rank(self) -> int:
        """How many eigenvalues count: n · (sum of the others) / c bounds what pairs of others add to h.

        Pairs of one that counts and one that does not add √(share of the trace left out) of h or so.
        """
        values = self.spectrum.values
        tails = np.cumsum(values[::-1])[::-1]
        left_out = min(
            _NEGLIGIBLE * self.constant / len(self.spectrum.features),
            _NEGLIGIBLE_SHARE * tails[:1].sum(),
        )
        return max(1, int(np.count_nonzero(tails > left_out)))

    def _middles(self, residuals: Array) -> Iterator[Array]:
        """Yield (B Bᵀ) ∘ L, (r, r), for every vector of residuals."""
        rank = self._rank
        values = self.spectrum.values[:rank]
        denominators = np.outer(values, values)
        denominators += self.constant
        for place in range(residuals.shape[1]):
            yield self.spectrum.outer(residuals, place)[:rank, :rank] / denominators

    def diagonals(self, residuals: Array) -> Array:
        phi = self.features.values[:, : self._rank]
        found = [np.einsum("er,er->e", phi @ middle, phi) for middle in self._middles(residuals)]
        return np.stack(found, axis=1)

    def factors(self, residuals: Array) -> tuple[Array, Array]:
        (middle,) = self._middles(residuals)
        phi = self.features.values[:, : self._rank]
        return phi @ middle, phi

    def means(self, residuals: Array) -> Array:
        products = self.features.products[: self._rank, : self._rank]
        sums = [np.vdot(middle, products) for middle in self._middles(residuals)]
        return np.array(sums) / len(self.features.values)

    def squares(self, residuals: Array, own: Array) -> tuple[Array, Array]:
        """Return ‖RRᵀ‖² − 2 ⟨RRᵀ, ΦMΦᵀ⟩ + ‖ΦMΦᵀ‖² (the paper's Equation 30), M the middle; and h(p, p).

        ΦM, most of the work, serves both.
        """
        phi = self.features.values[:, : self._rank]
        squares, diagonals = np.empty(own.shape[1]), np.empty(own.shape[:2])
        for number, middle in enumerate(self._middles(residuals)):
            one, left = own[:, number], phi @ middle
            diagonals[:, number] = np.einsum("er,er->e", left, phi)
            if len(phi) < self._rank:
                values = left @ phi.T
                last = np.vdot(values, values)
            else:
                turned = middle @ self.features.products[: self._rank, : self._rank]
                last = np.vdot(turned, turned.T)
            outer = one.T @ one
            crossed = np.vdot(one, left @ (phi.T @ one))
            squares[number] = np.vdot(outer, outer) - 2.0 * crossed + last
        return squares, diagonals
