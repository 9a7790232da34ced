"""Estimation functions h(p, p') of squared calibration errors, and their risk.

With r the residual of a label, an estimation function h(p, p') estimates ⟨E[r | p], E[r | p']⟩; the
squared calibration error is the mean of h(g, g). Residuals for two classes are scalars, y − P(class 1),
with one coordinate; for m > 2 classes they are onehot(y) − g.

The risk measures how far h(g_i, g_j) is from ⟨r_i, r_j⟩, on rows that h was not fitted to. For i ≠ j,
⟨r_i, r_j⟩ has the mean ⟨E[r | g_i], E[r | g_j]⟩, so the risk of h is that of the truth plus the mean
squared error of h: smaller is better, and the calibration error need not be known.

All functions but Kronecker ridge are plug-ins, h(p, p') = ⟨ĉ(p), ĉ(p')⟩ for an estimate ĉ of E[r | p].

Source: Gruber and Bach, "Optimizing estimators of squared calibration errors in classification", 2024,
Equations 16 to 20 and 30.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, cached_property, partial
from typing import Any, ClassVar, Literal, Self, TypeAlias

import numpy as np
import scipy
from scipy.special import gammaln, softmax

from caltest._arguments import OneOf, among, arguments, options, positive_number, real_kernel
from caltest._parallel import single_threaded_blas
from caltest._sums import Array, blocks
from caltest.binning import EqualWidth, intervals
from caltest.data import sample
from caltest.data.rows import check_alike
from caltest.exceptions import InputError
from caltest.forms.base import Labels
from caltest.forms.kernel_matrices import KernelWeights, incomplete_cholesky
from caltest.kernels import Gaussian, Kernel
from caltest.scores import residuals_of


def coordinates(probs: Array) -> Array:
    """Return predictions as points for a kernel: for two classes, the probability of class 1."""
    return probs[:, 1:] if probs.shape[1] == 2 else probs


def residuals(probs: Array, labels: Labels) -> Array:
    """Return the residuals (n, k) of labels (n,) under predictions (n, m)."""
    return np.ascontiguousarray(coordinates(residuals_of(probs, labels)))


# ------------------------------------------------------------------ fitted functions


class Surface(ABC):
    """A fitted h evaluated at e predictions."""

    #: Remarks on the fit for readers of results.
    notes: tuple[str, ...] = ()

    @abstractmethod
    def factors(self) -> tuple[Array, Array]:
        """Return (e, q) matrices U and V with h(p, p') = ⟨U(p), V(p')⟩."""

    def squares(self, own: Array) -> float:
        """Return Σ_ij (⟨r_i, r_j⟩ − h(p_i, p_j))² over all pairs, for residuals r (e, k) of these rows.

        It is ‖RᵀR‖² − 2 ⟨RᵀU, RᵀV⟩ + ⟨UᵀU, VᵀV⟩, with k² operations per row if q is k.
        """
        left, right = self.factors()
        pairs = (own.T @ own,) * 2, (own.T @ left, own.T @ right), (left.T @ left, right.T @ right)
        first, mixed, last = (float(np.vdot(*pair)) for pair in pairs)
        return first - 2.0 * mixed + last

    def diagonal(self) -> Array:
        """Return h(p, p), (e,)."""
        return np.asarray(np.einsum("eq,eq->e", *self.factors()))

    def mean(self) -> float:
        """Return the mean of h(p, p): the squared calibration error."""
        return float(self.diagonal().mean())

    def risk(self, own: Array) -> float:
        """Return the mean of (⟨r_i, r_j⟩ − h(p_i, p_j))² over i ≠ j, for residuals r of these rows."""
        same = (np.einsum("ek,ek->e", own, own) - self.diagonal()) ** 2
        # Rounding must not make it negative.
        return max(self.squares(own) - float(same.sum()), 0.0) / (len(own) * (len(own) - 1.0))


@dataclass(frozen=True, eq=False)
class PlugIn(Surface):
    """h(p, p') = ⟨ĉ(p), ĉ(p')⟩ for an estimate ĉ (e, k) of the calibration curve E[r | p]."""

    curve: Array
    notes: tuple[str, ...] = ()

    def factors(self) -> tuple[Array, Array]:
        """Return the curve twice."""
        return self.curve, self.curve


#: Fitted functions, one for each value of the tuned option.
Path: TypeAlias = Iterator[Surface]
#: A function from predictions (e, m) to the fitted h at them.
Surfaces: TypeAlias = Callable[[Array], Path]


class EstimationFunction(ABC):
    """Base class of estimators of the squared error, before fitting.

    Examples
    --------
    >>> import numpy as np
    >>> from caltest.estimation import HistogramBinning
    >>> stated = np.array([[0.9, 0.1], [0.8, 0.2], [0.2, 0.8], [0.1, 0.9]])
    >>> fitted = HistogramBinning(n_bins=2).fit(stated, [0, 0, 1, 0])
    >>> fitted.diagonal(stated).round(4).tolist()
    [0.0225, 0.0225, 0.1225, 0.1225]
    """

    #: Registered name.
    name: ClassVar[str]
    #: A noun phrase for it, for reports.
    is_a: ClassVar[str]
    #: The option that a search tunes.
    tuned: ClassVar[str]
    #: Whether it handles two classes only.
    two_classes_only: ClassVar[bool] = False

    @abstractmethod
    def learned(self, train: Array, residuals: Array, values: Sequence[Any]) -> Surfaces:
        """Learn from training predictions (n, m) and residuals (n, k), for values of the option."""

    #: Values of the tuned option to try, for any number of classes.
    space: ClassVar[tuple[Any, ...]]

    def search_space(self, n_classes: int) -> tuple[Any, ...]:
        """Return the values of the tuned option to try."""
        return self.space

    @arguments()
    def fit(self, probs: object, labels: object) -> Fitted:
        """Fit to training rows.

        Parameters
        ----------
        probs : array of shape (n,) or (n, m), or data frame
            As in :func:`caltest.test`.
        labels : array of shape (n,)
            As in :func:`caltest.test`.

        Returns
        -------
        Fitted
            With ``diagonal(probs)`` and ``gram(probs_a, probs_b)``.

        Raises
        ------
        InputError
            If the input is not a set of predictions and labels, or there are too many classes.
        """
        known, own = _rows(probs, labels, "an estimation function")
        self.check_classes(known.shape[1])
        return Fitted(self, self.learned(known, own, (getattr(self, self.tuned),)))

    def check_classes(self, n_classes: int) -> None:
        """Raise if the function cannot handle so many classes."""
        if self.two_classes_only and n_classes > 2:
            found = f"{self.name!r} measures one probability, and there are {n_classes} classes"
            raise InputError(f"{found}; give a lens such as 'top_label', or another function.")

    def with_value(self, value: Any) -> Self:
        """Return a copy with another value of the tuned option."""
        return replace(self, **{self.tuned: value})  # type: ignore[type-var]

    @property
    def parameters(self) -> dict[str, Any]:
        """The options in use, flat and ready for JSON."""
        return {k: v if isinstance(v, str | int | float) else repr(v) for k, v in vars(self).items()}


@dataclass(frozen=True, eq=False)
class Fitted:
    """A fitted estimator of the squared error.

    Attributes
    ----------
    function : EstimationFunction
        The function and its options.
    surfaces : callable
        The fitted h, as a function of predictions.
    """

    function: EstimationFunction
    surfaces: Surfaces = field(repr=False)

    def diagonal(self, probs: Array) -> Array:
        """Return h(p, p) for predictions (e, m), (e,): their mean estimates the squared error."""
        return next(self.surfaces(probs)).diagonal()

    def gram(self, first: Array, second: Array) -> Array:
        """Return h(p, p') for predictions (a, m) and (b, m), (a, b)."""
        one, other = (next(self.surfaces(probs)).factors() for probs in (first, second))
        return np.asarray(one[0] @ other[1].T)


@arguments(h=OneOf("caltest.estimation:Fitted", "give what the fit of an estimation function returns"))
def risk(h: Fitted, probs: object, labels: object) -> float:
    """Estimate an estimator's risk from all pairs of rows.

    The U-statistic (n(n − 1))⁻¹ Σ_{i≠j} (⟨r_i, r_j⟩ − h(g_i, g_j))².

    Parameters
    ----------
    h : Fitted
        A fitted estimation function.
    probs : array of shape (n,) or (n, m)
        Predictions of n rows that h was not fitted to, as in :func:`caltest.test`. For two classes, r
        is the scalar y − P(class 1).
    labels : array of shape (n,)
        As in :func:`caltest.test`.

    Returns
    -------
    float
        In O(n k²) operations for h = ⟨ĉ, ĉ'⟩ and O(n r²) for kernel ridge regression of rank r
        (Equation 30).

    Raises
    ------
    InputError
        If the input is not a set of predictions and labels.

    Examples
    --------
    >>> from caltest.estimation import HistogramBinning, risk
    >>> h = HistogramBinning(2).fit([0.2, 0.4, 0.7, 0.9], [0, 1, 1, 1])
    >>> round(risk(h, [0.3, 0.3, 0.8, 0.8], [0, 1, 1, 1]), 6)
    0.017083
    """
    rows, own = _rows(probs, labels)
    with single_threaded_blas():
        return next(h.surfaces(rows)).risk(own)


def _rows(probs: object, labels: object, what: str = "a risk") -> tuple[Array, Array]:
    """Return predictions (n, m) and residuals (n, k) of independent rows of equal weight."""
    checked = sample(probs, labels)
    check_alike(checked.rows, what, "leave them out")
    return checked.rows.probs, residuals(checked.rows.probs, checked.labels)


_SMALLEST_PROB = 1e-300  # lower bound of a probability before taking its logarithm
_ENTRIES = 2**20  # kernel values held at a time

# ------------------------------------------------------------------ curves


class _PlugIn(EstimationFunction):
    """A function whose curve is recomputed for each value of its tuned option."""

    def learned(self, train: Array, residuals: Array, values: Sequence[Any]) -> Surfaces:
        """Keep the rows: nothing else is shared between values of the option."""
        return partial(self._at, train, residuals, values)

    def _at(self, train: Array, residuals: Array, values: Sequence[Any], probs: Array) -> Path:
        for value in values:
            yield PlugIn(self.with_value(value).curve(train, residuals, probs))

    @abstractmethod
    def curve(self, train: Array, residuals: Array, probs: Array) -> Array:
        """Return the curve at ``probs``, (e, k)."""


@options()
class HistogramBinning(_PlugIn):
    """Estimate the error by histogram binning, for two classes.

    ĉ(p) is the mean residual of the training rows in p's bin.

    Bins have equal width; a bin without a training row gives the mean of all residuals.

    Parameters
    ----------
    n_bins : int, default 15
        Number of bins. Default 15, as in the literature.

    References
    ----------
    Guo et al., "On calibration of modern neural networks", ICML 2017; Gruber and Bach, "Optimizing
    estimators of squared calibration errors in classification", 2024, Equations 23 and 24.

    Examples
    --------
    >>> h = HistogramBinning(2).fit([0.2, 0.4, 0.7, 0.9], [0, 1, 1, 1])
    >>> h.diagonal(np.array([[0.9, 0.1], [0.1, 0.9]])).round(4)
    array([0.04, 0.04])
    """

    n_bins: int = 15

    name: ClassVar[str] = "binning"
    is_a: ClassVar[str] = "mean residuals of equal-width bins"
    tuned: ClassVar[str] = "n_bins"
    two_classes_only: ClassVar[bool] = True
    space = tuple(range(5, 91, 5))  # as published

    def curve(self, train: Array, residuals: Array, probs: Array) -> Array:
        """Average the residuals in each bin."""
        rules = EqualWidth(self.n_bins)
        cells, here = (intervals(p, rules.edges_of(p)) for p in (train[:, 1], probs[:, 1]))
        counts = np.bincount(cells, minlength=self.n_bins)
        sums = np.bincount(cells, residuals[:, 0], self.n_bins)
        return np.where(counts > 0, sums / np.maximum(counts, 1), residuals.mean(axis=0))[here, None]


@options(bandwidth=positive_number)
class DirichletKernelDensity(_PlugIn):
    """Estimate the error by smoothing labels with Dirichlet kernels.

    ĉ(p) = Σ_i κ(p; g_i) onehot(y_i) / Σ_i κ(p; g_i) − p, κ(·; g) the density of Dir(g/b + 1).

    Ratios of densities are computed from their logarithms, so that they are numbers for every p, on
    the boundary of the simplex too: a p_k of 0 counts as 1e-300.

    Parameters
    ----------
    bandwidth : float, default 0.01
        b. Default 0.01: a Dirichlet density about 0.05 wide near the middle of an edge.

    References
    ----------
    Popordanoska, Sayer and Blaschko, "A consistent and differentiable L_p canonical calibration error
    estimator", NeurIPS 2022; Gruber and Bach 2024, Equations 25 and 26.

    Examples
    --------
    >>> h = DirichletKernelDensity(0.1).fit([0.2, 0.4, 0.7, 0.9], [0, 1, 1, 1])
    >>> h.diagonal(np.array([[0.9, 0.1], [0.1, 0.9], [1.0, 0.0]])).round(4)
    array([0.0021, 0.01  , 0.    ])
    """

    bandwidth: float = 0.01

    name: ClassVar[str] = "kernel_density"
    is_a: ClassVar[str] = "ratio of Dirichlet kernel densities"
    tuned: ClassVar[str] = "bandwidth"
    space = tuple(np.append(np.logspace(-5, -1, 15), np.linspace(0.2, 1.0, 5)).tolist())

    def curve(self, train: Array, residuals: Array, probs: Array) -> Array:
        """Normalise the densities."""
        constants = gammaln(train / self.bandwidth + 1.0).sum(axis=1)
        powers, logs = train / self.bandwidth, np.log(np.maximum(probs, _SMALLEST_PROB))
        here, k = coordinates(probs), residuals.shape[1]
        events = np.hstack([residuals, coordinates(train)])  # of r and g; r + g is the label
        found = np.empty((len(here), k))
        for rows in blocks(len(here), max(1, _ENTRIES // len(residuals))):
            weights = softmax(logs[rows] @ powers.T - constants, axis=1)  # κ of the training rows
            means = weights @ events
            found[rows] = means[:, :k] + (means[:, k:] - here[rows])
        return found


@options(temperature=positive_number)
class Temperature(_PlugIn):
    """Estimate the error by fitting one temperature to the model.

    ĉ(p) = softmax(t log p) − p: the error of a model that predicts softmax(log q / t) where q is
    the truth.

    It learns nothing from labels; its risk, as a function of t, is smallest where t is the model's. As
    h does not tell a curve from its negative, there is a second, shallower minimum on the other side
    of 1.

    Parameters
    ----------
    temperature : float, default 1
        t, as in :func:`caltest.simulation.tempered`. Default 1: calibrated, h = 0.

    References
    ----------
    Gruber and Bach 2024, Section 5.1.

    Examples
    --------
    >>> h = Temperature(0.5).fit([[0.9, 0.05, 0.05]] * 2, [0, 1])
    >>> h.diagonal(np.array([[0.9, 0.05, 0.05], [1 / 3, 1 / 3, 1 / 3]])).round(4)
    array([0.0728, 0.    ])
    """

    temperature: float = 1.0

    name: ClassVar[str] = "temperature"
    is_a: ClassVar[str] = "a temperature of the logits"
    tuned: ClassVar[str] = "temperature"
    space = tuple(np.geomspace(0.0625, 16.0, 41).tolist())

    def curve(self, train: Array, residuals: Array, probs: Array) -> Array:
        """Return the same curve for all residuals: training rows are not used."""
        truth: Any = softmax(self.temperature * np.log(np.maximum(probs, _SMALLEST_PROB)), axis=1)
        return coordinates(np.where(probs > 0.0, truth, 0.0)) - coordinates(probs)


# ------------------------------------------------------------------ spectrum


_ROUNDING = 1e-14  # of the largest diagonal entry or eigenvalue: smaller remainders are rounding
_DENSE_UP_TO = 10_000  # rows for which the full kernel matrix is decomposed unless its rank is low
_COLUMNS = 100_000_000  # entries of a low-rank factor for more rows
_FEWEST_COLUMNS = 250  # fewest columns of such a factor
_WORTH_A_NOTE = 1e-9  # share of the trace left out


@dataclass(frozen=True, eq=False)
class Spectrum:
    """Eigenvalues of a kernel matrix, largest first, with features φ(p) = k(p, anchors) · transform.

    ``features`` are those of the training rows, Φ (n, r); ``missing`` is the share of the trace that
    they leave out: 0 except for rounding, unless n is large.
    """

    kernel: Kernel
    anchors: Array
    transform: Array
    values: Array
    features: Array
    missing: float

    @classmethod
    def of(cls, kernel: Kernel, points: Array) -> Spectrum:
        """Decompose the kernel matrix of ``points`` (n, d).

        Pivoted Cholesky is tried first: kernels of few coordinates have a low rank (8 for one
        coordinate, 600 for ten classes), so it takes only O(n r²). Otherwise all eigenvectors of K are
        computed in O(n³), up to 10 000 rows; for more rows, as many columns as fit.
        """
        fitted, n = kernel.fitted(points), len(points)
        dense = n <= _DENSE_UP_TO
        most = max(1, n // 3) if dense else min(n, max(_FEWEST_COLUMNS, _COLUMNS // n))
        weights = KernelWeights(fitted, points)
        factor, missing, pivots = incomplete_cholesky(weights, np.arange(n), most, exhausted=_ROUNDING)
        if dense and len(pivots) == most:
            values, vectors = scipy.linalg.eigh(fitted(points, points), overwrite_a=True, driver="evd")
            kept = slice(int(np.searchsorted(values, _ROUNDING * values[-1])), None)
            values, vectors = values[kept][::-1], vectors[:, kept][:, ::-1]
            roots = np.sqrt(values)
            return cls(fitted, points, vectors / roots, values, vectors * roots, 0.0)
        values, vectors = scipy.linalg.eigh(factor.T @ factor)
        values, vectors = values[::-1].clip(min=0.0), np.ascontiguousarray(vectors[:, ::-1])
        transform = scipy.linalg.solve_triangular(factor[pivots], vectors, lower=True, trans="T")
        return cls(fitted, points[pivots], transform, values, factor @ vectors, missing)

    @property
    def notes(self) -> tuple[str, ...]:
        """A note if part of the kernel matrix was left out."""
        if self.missing < _WORTH_A_NOTE:
            return ()
        kept = f"{len(self.values)} features were kept; they leave out {self.missing:.2g} of its trace"
        return (f"Of the kernel matrix of {len(self.features)} rows, {kept}.",)

    def at(self, probs: Array) -> Array:
        """Return the features of predictions, (e, r)."""
        return self.kernel(coordinates(probs), self.anchors) @ self.transform


# ------------------------------------------------------------------ ridge
#
# With K = ΦΦᵀ the kernel matrix of the n training rows, Φ (n, r) of orthogonal columns with squared
# lengths λ_1 ≥ … ≥ λ_r (the eigenvalues), φ(p) the features of p and R the residuals, B = ΦᵀR gives
#
#     Kronecker:  h(p, p') = φ(p)ᵀ [(B Bᵀ) ∘ L] φ(p'),   L_ij = 1 / (λ_i λ_j + c),
#     two-step:   ĉ(p) = Bᵀ (Λ + c)⁻¹ φ(p),
#
# which is the paper's Equations 29 and 32 without dividing by an eigenvalue. Features, and everything
# that costs O(n r²), are computed once for a whole path of c; each value of c costs O(r²) per row.


Scaling: TypeAlias = Literal["usual", "published"]
_SCALING = among("usual", "published")

_NEGLIGIBLE = 1e-10  # eigenvalues whose pairs add no more than this to h are left out
_NEGLIGIBLE_SHARE = 1e-8  # at most this share of the trace is left out


@options(regularization=positive_number, kernel=real_kernel, regularization_scaling=_SCALING)
class Ridge(EstimationFunction):
    """Base class of kernel ridge regressions."""

    regularization: float = 1e-3
    kernel: Kernel = field(default_factory=lambda: Gaussian(0.5**0.5))
    regularization_scaling: Scaling = "usual"

    tuned: ClassVar[str] = "regularization"
    powers: ClassVar[dict[str, float]]
    #: Exponents of the regularization: from, to (exclusive), step; for two classes and for more.
    exponents: ClassVar[tuple[tuple[float, float, float], ...]]

    def learned(self, train: Array, residuals: Array, values: Sequence[float]) -> Surfaces:
        """Decompose the kernel matrix once for all values."""
        power = self.powers[self.regularization_scaling]
        constants = [float(value * len(train) ** power) for value in values]
        spectrum = Spectrum.of(self.kernel, coordinates(train))
        return partial(self._at, spectrum, spectrum.features.T @ residuals, constants)

    _at: ClassVar[Callable[..., Path]]  #: Takes spectrum, images of residuals, constants, predictions.

    def search_space(self, n_classes: int) -> tuple[float, ...]:
        """Return powers of ten, as published.

        "two_step_ridge": 1e-1 to 1e-9 for two classes, 1e4 to 10^-4.5 in half steps for more.
        "kronecker_ridge": 1e-1, 1e-3, …, 1e-17 for two classes, 1e8 to 1e-9 in half steps for more.
        """
        return tuple((10.0 ** np.arange(*self.exponents[n_classes > 2])).tolist())


class TwoStepKernelRidge(Ridge):
    """Estimate the error by kernel ridge regression of the residuals on the predictions.

    h = ⟨ĉ, ĉ'⟩, called "U-statistic" in the source.

    ĉ(p) = Rᵀ (K + c I)⁻¹ k(p), c = λ n.

    Parameters
    ----------
    regularization : float, default 0.001
        λ > 0.
    kernel : Kernel, default ``Gaussian(0.5**0.5)``
        A kernel of :mod:`caltest.kernels` on the probability of class 1 for two classes, on the full
        vector for more. Default exp(−‖p − p'‖²), as in the paper.
    regularization_scaling : {"usual", "published"}, default "usual"
        "usual" (default): c = λ n; "published": c = λ n^0.75, as the paper's authors computed.

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
    exponents = (-1.0, -10.0, -1.0), (4.0, -5.0, -0.5)

    @staticmethod
    def _at(spectrum: Spectrum, images: Array, constants: Sequence[float], probs: Array) -> Path:
        phi = spectrum.at(probs)
        for constant in constants:
            yield PlugIn(phi @ (images / (spectrum.values + constant)[:, None]), spectrum.notes)


class KroneckerKernelRidge(Ridge):
    """Estimate the squared error directly, by kernel ridge regression on pairs of rows.

    h is the regression of ⟨r_i, r_j⟩ on pairs of predictions, with the kernel k ⊗ k.

    Parameters
    ----------
    regularization : float, default 0.001
        λ > 0.
    kernel : Kernel, default ``Gaussian(0.5**0.5)``
        As in :class:`TwoStepKernelRidge`.
    regularization_scaling : {"usual", "published"}, default "usual"
        "usual" (default): c = λ n², there are n² pairs; "published": c = λ n^1.5, as the paper's
        authors computed.

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
    exponents = (-1.0, -18.0, -2.0), (8.0, -9.5, -0.5)

    @staticmethod
    def _at(spectrum: Spectrum, images: Array, constants: Sequence[float], probs: Array) -> Path:
        phi, outer = spectrum.at(probs), images @ images.T
        products = cache(lambda: phi.T @ phi)  # for all constants, if any needs it
        # n · (sum of the eigenvalues left out) / c bounds what their pairs add to h. Pairs of a kept
        # and an omitted one add about √(share of the trace left out) of h.
        tails = np.cumsum(spectrum.values[::-1])[::-1]
        share = _NEGLIGIBLE_SHARE * tails[:1].sum()
        for constant in constants:
            left_out = min(_NEGLIGIBLE * constant / len(spectrum.features), share)
            rank = max(1, int(np.count_nonzero(tails > left_out)))
            values = spectrum.values[:rank]
            middle = outer[:rank, :rank] / (np.outer(values, values) + constant)
            yield _Kronecker(phi[:, :rank], middle, products, spectrum.notes)


@dataclass(frozen=True, eq=False)
class _Kronecker(Surface):
    """h(p, p') = φ(p)ᵀ M φ(p'), with M = (B Bᵀ) ∘ L; ``products`` is ΦᵀΦ for all features."""

    features: Array
    middle: Array
    products: Callable[[], Array]
    notes: tuple[str, ...]

    @cached_property
    def _left(self) -> Array:
        return np.asarray(self.features @ self.middle)

    def factors(self) -> tuple[Array, Array]:
        return self._left, self.features

    def mean(self) -> float:
        rank = len(self.middle)
        return float(np.vdot(self.middle, self.products()[:rank, :rank])) / len(self.features)

    def squares(self, own: Array) -> float:
        """Return ‖RRᵀ‖² − 2 ⟨RRᵀ, ΦMΦᵀ⟩ + ‖ΦMΦᵀ‖², the paper's Equation 30."""
        phi, left, rank = self.features, self._left, len(self.middle)
        few = len(phi) < rank
        values = left @ phi.T if few else self.middle @ self.products()[:rank, :rank]
        last = float(np.vdot(values, values if few else values.T))
        outer, crossed = own.T @ own, float(np.vdot(own, left @ (phi.T @ own)))
        return float(np.vdot(outer, outer)) - 2.0 * crossed + last


_EVERY = HistogramBinning, DirichletKernelDensity, KroneckerKernelRidge, TwoStepKernelRidge, Temperature
#: Estimation functions by name.
FUNCTIONS: dict[str, type[EstimationFunction]] = {each.name: each for each in _EVERY}
