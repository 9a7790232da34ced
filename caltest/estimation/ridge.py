"""Kernel ridge regression of residual products: the Kronecker and the two-step estimation function.

With K = ΦΦᵀ the kernel matrix of the n training rows, Φ (n, r) of orthogonal columns with squared
lengths λ_1 ≥ … ≥ λ_r (the eigenvalues), φ(p) the features of p and R the residuals, B = ΦᵀR gives

    Kronecker:  h(p, p') = φ(p)ᵀ [(B Bᵀ) ∘ L] φ(p'),   L_ij = 1 / (λ_i λ_j + c),
    two-step:   ĉ(p) = Bᵀ (Λ + c)⁻¹ φ(p),

which is the paper's Equations 29 and 32 without a division by an eigenvalue. Features, and all that
costs O(n r²), are computed once for a whole path of c; a value of c costs O(r²) a row.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, ClassVar, Literal, TypeAlias

import numpy as np

from caltest._arguments import arguments, choose, positive_number, real_kernel
from caltest.estimation.base import (
    Array,
    EstimationFunction,
    PlugIn,
    Smoother,
    Surface,
    coordinates,
)
from caltest.estimation.spectrum import EigenFeatures, Spectrum
from caltest.kernels import Gaussian, Kernel

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
