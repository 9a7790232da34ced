"""Kernels on the probability simplex, real- and matrix-valued; each knows its bound.

A kernel is an inert description until ``fitted(probs)`` turns bandwidth rules into numbers; then it
is a function of two sets of predictions. Sums, products and positive multiples of kernels are
kernels: ``Linear() + 2 * Gaussian()``.
"""

# ruff: noqa: D102 -- a method that overrides another is documented where it is first defined.

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from functools import reduce
from math import inf, isfinite, prod, sqrt
from numbers import Real
from operator import iadd, imul
from typing import Self, TypeAlias, cast

import numpy as np
from numpy.typing import ArrayLike

from caltest.bandwidth import Bandwidth, check_distance, checked, resolve
from caltest.distances import EUCLIDEAN, Distance, Floats, Hilbertian, distance_named
from caltest.exceptions import InputError

Parameters: TypeAlias = dict[str, float | str]
Terms: TypeAlias = "tuple[tuple[Kernel, Floats | None], ...]"


class Kernel(ABC):
    """A real-valued positive semi-definite kernel k(s, t) on the simplex.

    A kernel of your own derives from this class and defines ``__call__``, ``paired`` and ``bound``;
    make it a frozen dataclass.
    """

    __array_ufunc__ = None  # numpy scalars leave their product with a kernel to the kernel

    @abstractmethod
    def __call__(self, x: Floats, y: Floats) -> Floats:
        """Gram matrix (a, b) of k(x_i, y_j), for ``x`` (a, m) and ``y`` (b, m); a fresh array."""

    @abstractmethod
    def paired(self, x: Floats, y: Floats) -> Floats:
        """Values (a,) of k(x_i, y_i), for ``x`` (a, m) and ``y`` (a, m); a fresh array."""

    @property
    @abstractmethod
    def bound(self) -> float:
        """An upper bound of the absolute value of k(s, t) over the simplex."""

    def fitted(self, probs: ArrayLike) -> Kernel:
        """Replace bandwidth rules by numbers read off the predictions ``probs`` (n, m)."""
        return self

    @property
    def parameters(self) -> Parameters:
        """What the kernel was computed with, flat and fit for JSON."""
        return {}

    @property
    def notes(self) -> tuple[str, ...]:
        """What the user should know about the fit, one sentence each."""
        return ()

    @property
    def terms(self) -> Terms:
        """The matrix-valued kernel Σ k_l A_l as pairs (k_l, A_l); None stands for the identity."""
        return ((self, None),)

    def norm_bound(self, p: float, q: float, m: int) -> float:
        """Bound the norm of k(s, t)·I, from l_p to l_q on ``m`` classes, over the simplex."""
        return self.bound * _identity_norm(p, q, m)

    def __add__(self, other: Kernel) -> Kernel:
        if not isinstance(other, Kernel):
            return NotImplemented
        return Sum(_operands(self, Sum) + _operands(other, Sum))

    def __mul__(self, other: Kernel | float) -> Kernel:
        if isinstance(other, Kernel):
            return Product(_operands(self, Product) + _operands(other, Product))
        if isinstance(other, Real):
            return Scaled(self, other)
        return NotImplemented

    def __rmul__(self, other: float) -> Kernel:
        return self * other


# ------------------------------------------------------------------ kernels with a bandwidth


class _WithBandwidth(Kernel):
    """What kernels with a bandwidth share; bounded by 1 unless they say otherwise."""

    bandwidth: float | str
    distance: str
    _fit: Bandwidth | None

    def __post_init__(self) -> None:
        object.__setattr__(self, "bandwidth", checked(self.bandwidth))
        check_distance(self.bandwidth, self.distance)
        self._check(distance_named(self.distance))
        if self._fit and self._fit.value != self.bandwidth:  # by dataclasses.replace
            object.__setattr__(self, "_fit", None)

    def _check(self, metric: Distance) -> None:
        """Refuse distances for which this is no kernel."""

    @abstractmethod
    def _profile(self, d: Floats) -> Floats:
        """Kernel values from distances or their squares, which may be overwritten."""

    def __call__(self, x: Floats, y: Floats) -> Floats:
        return self._profile(distance_named(self.distance).pairwise(x, y))

    def paired(self, x: Floats, y: Floats) -> Floats:
        return self._profile(distance_named(self.distance).paired(x, y))

    @property
    def bound(self) -> float:
        return 1.0

    def fitted(self, probs: ArrayLike) -> Self:
        if not isinstance(self.bandwidth, str):
            return self
        fit = resolve(self.bandwidth, probs, self.distance)
        # Every subclass is a dataclass with these fields.
        return replace(self, bandwidth=fit.value, _fit=fit)  # type: ignore[type-var]

    @property
    def parameters(self) -> Parameters:
        given = self.bandwidth if isinstance(self.bandwidth, str) else "given"
        return {
            "bandwidth": self.bandwidth,
            "bandwidth_rule": self._fit.rule if self._fit else given,
            "distance": self.distance,
        }

    @property
    def notes(self) -> tuple[str, ...]:
        return self._fit.notes if self._fit else ()

    @property
    def _width(self) -> float:
        if isinstance(self.bandwidth, str):
            raise InputError(
                f"The bandwidth of {self!r} is still a rule; call fitted(probs) to get a number."
            )
        return self.bandwidth


@dataclass(frozen=True)
class Exponential(_WithBandwidth):
    r"""The exponential (Laplacian) kernel :math:`\exp(-d(s, t) / \nu)`.

    Parameters
    ----------
    bandwidth
        ν, in units of the distance, or a rule (:func:`caltest.bandwidth.resolve`). The default is
        the median distance.
    distance
        ``"tv"`` (default, as in [1]_), ``"euclidean"`` or ``"hellinger"``.

    Raises
    ------
    InputError
        If the bandwidth or the distance cannot be used.

    References
    ----------
    .. [1] Widmann, Lindsten and Zachariah (2019). Calibration tests in multi-class
       classification: a unifying framework. NeurIPS 32.

    Examples
    --------
    >>> import numpy as np
    >>> p = np.array([[1.0, 0.0], [0.5, 0.5], [0.0, 1.0]])
    >>> kernel = Exponential().fitted(p)
    >>> kernel
    Exponential(bandwidth=0.5, distance='tv')
    >>> kernel(p, p).round(3)
    array([[1.   , 0.368, 0.135],
           [0.368, 1.   , 0.368],
           [0.135, 0.368, 1.   ]])
    """

    bandwidth: float | str = "median"
    distance: str = "tv"
    _fit: Bandwidth | None = field(default=None, repr=False, compare=False, kw_only=True)

    def _profile(self, d: Floats) -> Floats:
        d *= -1.0 / self._width
        return np.exp(d, out=d)


@dataclass(frozen=True)
class Gaussian(_WithBandwidth):
    r"""The Gaussian kernel :math:`\exp(-d(s, t)^2 / (2 \gamma^2))`.

    Parameters
    ----------
    bandwidth
        γ, in units of the distance, or a rule (:func:`caltest.bandwidth.resolve`). The default is
        the median distance.
    distance
        ``"euclidean"`` (default) or ``"hellinger"``. With the total variation distance the function
        is not positive semi-definite.

    Raises
    ------
    InputError
        If the bandwidth or the distance cannot be used.

    Examples
    --------
    >>> import numpy as np
    >>> Gaussian(1.0)(np.array([[1.0, 0.0]]), np.array([[0.0, 1.0]])).round(6)
    array([[0.367879]])
    """

    bandwidth: float | str = "median"
    distance: str = "euclidean"
    _fit: Bandwidth | None = field(default=None, repr=False, compare=False, kw_only=True)

    def _check(self, metric: Distance) -> None:
        _check_hilbertian(self, metric)

    def _profile(self, d: Floats) -> Floats:
        return _gaussian(d, self._width)

    def __call__(self, x: Floats, y: Floats) -> Floats:
        return self._profile(cast(Hilbertian, distance_named(self.distance)).squared(x, y))

    def paired(self, x: Floats, y: Floats) -> Floats:
        return self._profile(cast(Hilbertian, distance_named(self.distance)).squared_paired(x, y))


@dataclass(frozen=True)
class Matern(_WithBandwidth):
    r"""The Matérn kernel: with a = √(2·smoothness) d(s, t)/bandwidth, a polynomial in a times e⁻ᵃ.

    The polynomial is 1 for smoothness ½ (the exponential kernel), 1 + a for 3/2 and 1 + a + a²/3
    for 5/2.

    Parameters
    ----------
    bandwidth
        In units of the distance, or a rule (:func:`caltest.bandwidth.resolve`). The default is the
        median distance.
    smoothness
        0.5, 1.5 (default) or 2.5.
    distance
        ``"euclidean"`` (default) or ``"hellinger"``; ``"tv"`` only with smoothness ½, since with
        others the function is not positive semi-definite.

    Raises
    ------
    InputError
        If the bandwidth, the smoothness or the distance cannot be used.

    References
    ----------
    Rasmussen and Williams (2006). Gaussian Processes for Machine Learning, section 4.2.

    Examples
    --------
    >>> import numpy as np
    >>> Matern(1.0)(np.array([[1.0, 0.0]]), np.array([[0.0, 1.0]])).round(6)
    array([[0.297821]])
    """

    bandwidth: float | str = "median"
    smoothness: float = 1.5
    distance: str = "euclidean"
    _fit: Bandwidth | None = field(default=None, repr=False, compare=False, kw_only=True)

    def _check(self, metric: Distance) -> None:
        if self.smoothness not in (0.5, 1.5, 2.5):
            raise InputError(
                f"The smoothness of the Matérn kernel is {self.smoothness!r}; use 0.5, 1.5 or 2.5."
            )
        if self.smoothness != 0.5:
            _check_hilbertian(self, metric)

    def _profile(self, d: Floats) -> Floats:
        d *= sqrt(2 * self.smoothness) / self._width
        decay = np.exp(-d)
        if self.smoothness == 0.5:
            return decay
        polynomial = d + 1.0 if self.smoothness == 1.5 else (d / 3.0 + 1.0) * d + 1.0
        decay *= polynomial
        return decay

    @property
    def parameters(self) -> Parameters:
        return {**super().parameters, "smoothness": self.smoothness}


@dataclass(frozen=True)
class LinearGaussian(_WithBandwidth):
    r"""Inner product plus Gaussian kernel: :math:`s \cdot t + \exp(-|s - t|^2 / (2 \gamma^2))`.

    Parameters
    ----------
    bandwidth
        γ, in units of the Euclidean distance, or a rule (:func:`caltest.bandwidth.resolve`). The
        default is the median distance.

    Raises
    ------
    InputError
        If the bandwidth cannot be used.

    References
    ----------
    Moskvichev and Sejdinovic. The conditional kernel calibration error.

    Examples
    --------
    >>> import numpy as np
    >>> LinearGaussian(1.0)(np.array([[1.0, 0.0]]), np.array([[1.0, 0.0], [0.0, 1.0]])).round(6)
    array([[2.      , 0.367879]])
    """

    bandwidth: float | str = "median"
    distance: str = field(default="euclidean", init=False, repr=False)
    _fit: Bandwidth | None = field(default=None, repr=False, compare=False, kw_only=True)

    def _profile(self, d: Floats) -> Floats:
        return _gaussian(d, self._width)

    def __call__(self, x: Floats, y: Floats) -> Floats:
        inner: Floats = x @ y.T
        values = self._profile(EUCLIDEAN.squared_from(inner.copy(), x, y))
        values += inner
        return values

    def paired(self, x: Floats, y: Floats) -> Floats:
        values = self._profile(EUCLIDEAN.squared_paired(x, y))
        values += Linear().paired(x, y)
        return values

    @property
    def bound(self) -> float:
        return 2.0


def _gaussian(squares: Floats, width: float) -> Floats:
    squares *= -0.5 / (width * width)
    return np.exp(squares, out=squares)


def _check_hilbertian(kernel: _WithBandwidth, metric: Distance) -> None:
    # A function of the distance that is a mixture of Gaussians needs squares of negative type.
    if not isinstance(metric, Hilbertian):
        raise InputError(
            f"{kernel!r} is not positive semi-definite, since the total variation distance is not "
            "Euclidean; use distance='euclidean' or 'hellinger', or the kernel Exponential."
        )


# ------------------------------------------------------------------ other kernels, and compositions


@dataclass(frozen=True)
class Linear(Kernel):
    """The inner product s·t.

    Examples
    --------
    >>> import numpy as np
    >>> Linear()(np.array([[0.5, 0.5]]), np.array([[0.25, 0.75], [1.0, 0.0]]))
    array([[0.5, 0.5]])
    """

    def __call__(self, x: Floats, y: Floats) -> Floats:
        gram: Floats = x @ y.T
        return gram

    def paired(self, x: Floats, y: Floats) -> Floats:
        values: Floats = np.einsum("ij,ij->i", x, y)
        return values

    @property
    def bound(self) -> float:
        return 1.0


class _Composite(Kernel):
    """What sums and products share."""

    kernels: tuple[Kernel, ...]

    def fitted(self, probs: ArrayLike) -> Self:
        return type(self)(tuple(kernel.fitted(probs) for kernel in self.kernels))  # type: ignore[call-arg]

    @property
    def parameters(self) -> Parameters:
        return _merged_parameters(self.kernels)

    @property
    def notes(self) -> tuple[str, ...]:
        return _merged_notes(self.kernels)


@dataclass(frozen=True, repr=False)
class Sum(_Composite):
    """The sum of kernels, as ``+`` makes it.

    Examples
    --------
    >>> Linear() + Gaussian(0.5)
    Linear() + Gaussian(bandwidth=0.5, distance='euclidean')
    """

    kernels: tuple[Kernel, ...]

    def __call__(self, x: Floats, y: Floats) -> Floats:
        return reduce(iadd, (kernel(x, y) for kernel in self.kernels))

    def paired(self, x: Floats, y: Floats) -> Floats:
        return reduce(iadd, (kernel.paired(x, y) for kernel in self.kernels))

    @property
    def bound(self) -> float:
        return sum(kernel.bound for kernel in self.kernels)

    def __repr__(self) -> str:
        return " + ".join(map(repr, self.kernels))


@dataclass(frozen=True, repr=False)
class Product(_Composite):
    """The product of kernels, as ``*`` makes it.

    Examples
    --------
    >>> Linear() * Gaussian(0.5)
    Linear() * Gaussian(bandwidth=0.5, distance='euclidean')
    """

    kernels: tuple[Kernel, ...]

    def __call__(self, x: Floats, y: Floats) -> Floats:
        return reduce(imul, (kernel(x, y) for kernel in self.kernels))

    def paired(self, x: Floats, y: Floats) -> Floats:
        return reduce(imul, (kernel.paired(x, y) for kernel in self.kernels))

    @property
    def bound(self) -> float:
        return prod(kernel.bound for kernel in self.kernels)

    def __repr__(self) -> str:
        return " * ".join(map(_in_product, self.kernels))


@dataclass(frozen=True, repr=False)
class Scaled(Kernel):
    """A positive multiple of a kernel, as ``*`` with a number makes it.

    Examples
    --------
    >>> (0.5 * Exponential(1.0)).bound
    0.5
    """

    kernel: Kernel
    scale: float

    def __post_init__(self) -> None:
        if not isfinite(self.scale) or self.scale <= 0:
            raise InputError(f"The kernel is multiplied by {self.scale!r}; use a positive number.")
        object.__setattr__(self, "scale", float(self.scale))

    def __call__(self, x: Floats, y: Floats) -> Floats:
        gram = self.kernel(x, y)
        gram *= self.scale
        return gram

    def paired(self, x: Floats, y: Floats) -> Floats:
        values = self.kernel.paired(x, y)
        values *= self.scale
        return values

    @property
    def bound(self) -> float:
        return self.scale * self.kernel.bound

    def fitted(self, probs: ArrayLike) -> Scaled:
        return Scaled(self.kernel.fitted(probs), self.scale)

    @property
    def parameters(self) -> Parameters:
        inner = self.kernel.parameters
        return {**inner, "scale": self.scale * float(inner.get("scale", 1.0))}

    @property
    def notes(self) -> tuple[str, ...]:
        return self.kernel.notes

    def __repr__(self) -> str:
        return f"{self.scale!r} * {_in_product(self.kernel)}"


# ------------------------------------------------------------------ matrix-valued kernels


@dataclass(frozen=True, init=False, repr=False, eq=False)
class MatrixKernel:
    r"""The matrix-valued kernel :math:`\sum_l k_l(s, t) A_l`.

    Parameters
    ----------
    parts
        Pairs (k_l, A_l): a real-valued kernel, and a symmetric positive semi-definite matrix (m, m)
        which says how residuals of the classes are weighed against each other. Asymmetry and
        negative eigenvalues up to 1e-10 of the matrix's scale are taken for rounding.

    Raises
    ------
    InputError
        If there is no part, or a part is not such a pair, or the matrices differ in size.

    References
    ----------
    Widmann, Lindsten and Zachariah (2019). Calibration tests in multi-class classification: a
    unifying framework. NeurIPS 32, section 4.

    Examples
    --------
    Only the first of three classes counts:

    >>> MatrixKernel([(Exponential(), np.diag([1.0, 0.0, 0.0]))])
    MatrixKernel([(Exponential(bandwidth='median', distance='tv'), 3×3 matrix)])
    """

    parts: tuple[tuple[Kernel, Floats], ...]

    def __init__(self, parts: Iterable[tuple[Kernel, ArrayLike]]) -> None:
        pairs = list(parts)
        kernels = [kernel for kernel, _ in pairs]
        for i, kernel in enumerate(kernels):
            if not isinstance(kernel, Kernel):
                raise InputError(
                    f"Part {i} of the matrix kernel has {kernel!r} as its kernel; "
                    "use a real-valued kernel such as Exponential()."
                )
        matrices = [_psd_matrix(matrix, i) for i, (_, matrix) in enumerate(pairs)]
        sizes = sorted({len(matrix) for matrix in matrices})
        if len(sizes) != 1:
            raise InputError(
                f"The matrices of the matrix kernel have {sizes} rows; "
                "give at least one, all m×m for m classes."
            )
        object.__setattr__(self, "parts", tuple(zip(kernels, matrices, strict=True)))

    def fitted(self, probs: ArrayLike) -> MatrixKernel:
        """Replace bandwidth rules by numbers read off the predictions ``probs`` (n, m)."""
        probs = np.asarray(probs, dtype=np.float64)
        self._check_classes(probs.shape[1])
        return MatrixKernel((kernel.fitted(probs), matrix) for kernel, matrix in self.parts)

    @property
    def terms(self) -> Terms:
        """The pairs (k_l, A_l)."""
        return self.parts

    @property
    def parameters(self) -> Parameters:
        """What the kernels were computed with, flat and fit for JSON."""
        return _merged_parameters(kernel for kernel, _ in self.parts)

    @property
    def notes(self) -> tuple[str, ...]:
        """What the user should know about the fit, one sentence each."""
        return _merged_notes(kernel for kernel, _ in self.parts)

    def norm_bound(self, p: float, q: float, m: int) -> float:
        """Bound the norm of the kernel, from l_p to l_q on ``m`` classes, over the simplex."""
        self._check_classes(m)
        return sum(kernel.bound * _matrix_norm(matrix, p, q) for kernel, matrix in self.parts)

    def _check_classes(self, m: int) -> None:
        size = len(self.parts[0][1])
        if size != m:
            raise InputError(
                f"The matrices of the matrix kernel are {size}×{size}, but there are {m} classes; "
                f"give {m}×{m} matrices."
            )

    def __eq__(self, other: object) -> bool:
        return isinstance(other, MatrixKernel) and self._key() == other._key()

    def __hash__(self) -> int:
        return hash(self._key())

    def _key(self) -> tuple[tuple[Kernel, bytes], ...]:
        return tuple((kernel, matrix.tobytes()) for kernel, matrix in self.parts)

    def __repr__(self) -> str:
        shown = (f"({k!r}, {len(a)}×{len(a)} matrix)" for k, a in self.parts)
        return f"MatrixKernel([{', '.join(shown)}])"


AnyKernel: TypeAlias = Kernel | MatrixKernel
"""What a statistic takes: ``fitted``, ``terms``, ``parameters``, ``notes``, ``norm_bound``."""


def _psd_matrix(matrix: ArrayLike, part: int) -> Floats:
    """Copy a matrix, read-only, after checking that it is symmetric positive semi-definite."""
    a = np.array(matrix, dtype=np.float64)
    where = f"Matrix {part} of the matrix kernel"
    if a.ndim != 2 or a.shape[0] != a.shape[1] or not a.size or not np.all(np.isfinite(a)):
        raise InputError(f"{where} has shape {a.shape}; give a finite m×m matrix for m classes.")
    asymmetry = np.abs(a - a.T).max()
    if asymmetry > 1e-10 * np.abs(a).max():
        raise InputError(
            f"{where} is not symmetric (entries differ from their mirror images by up to "
            f"{asymmetry:.3g}); use (A + A.T) / 2."
        )
    a = (a + a.T) / 2 + 0.0  # no negative zeros: equal matrices have equal bytes
    eigenvalues = np.linalg.eigvalsh(a)
    if eigenvalues[0] < -1e-10 * np.abs(eigenvalues).max():
        raise InputError(
            f"{where} is not positive semi-definite (its smallest eigenvalue is "
            f"{eigenvalues[0]:.3g}); a kernel needs eigenvalues of at least 0."
        )
    a.flags.writeable = False
    return a


# ------------------------------------------------------------------ norms and bookkeeping


def _identity_norm(p: float, q: float, m: int) -> float:
    """Norm of the identity from l_p to l_q on ``m`` coordinates."""
    if not (p >= 1 and q >= 1):
        raise InputError(f"The norms are l_{p} and l_{q}; use exponents from 1 to infinity.")
    return max(1.0, float(np.power(float(m), 1 / q - 1 / p)))


def _matrix_norm(a: Floats, p: float, q: float) -> float:
    """Bound the norm of a matrix from l_p to l_q: the best way through l_1, l_2 or l_∞."""
    m = len(a)
    return min(
        _identity_norm(p, r, m) * float(np.linalg.norm(a, r)) * _identity_norm(r, q, m)
        for r in (1, 2, inf)
    )


def _operands(kernel: Kernel, kind: type[Sum | Product]) -> tuple[Kernel, ...]:
    return kernel.kernels if isinstance(kernel, kind) else (kernel,)


def _in_product(kernel: Kernel) -> str:
    return f"({kernel!r})" if isinstance(kernel, Sum) else repr(kernel)


def _merged_parameters(kernels: Iterable[Kernel]) -> Parameters:
    """Union of the parameters; where two kernels share a name, all get the number of the kernel."""
    each = [kernel.parameters for kernel in kernels]
    merged = {name: value for parameters in each for name, value in parameters.items()}
    if len(merged) == sum(map(len, each)):
        return merged
    return {
        f"{name}_{i}": value
        for i, parameters in enumerate(each, start=1)
        for name, value in parameters.items()
    }


def _merged_notes(kernels: Iterable[Kernel]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(note for kernel in kernels for note in kernel.notes))
