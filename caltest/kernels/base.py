"""Kernels: functions of a distance, linear ones, their sums and multiples, and matrix-valued ones."""

# ruff: noqa: D102 -- a method that overrides another is documented where it is first defined.

from __future__ import annotations

import math
import operator
from abc import ABC, abstractmethod
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import reduce
from itertools import chain
from numbers import Real
from typing import Any, Self, TypeAlias, TypeVar, cast

import numpy as np
from numpy.typing import ArrayLike

from caltest import _arguments
from caltest._arguments import arguments, changed, choose, options, real_array
from caltest._sums import Array, Tile
from caltest._visible import quoted
from caltest.exceptions import InputError
from caltest.kernels.bandwidth import DISTANCES, Bandwidth, Distance, checked, exponent_tiles, resolve
from caltest.sampling import generator

Parameters: TypeAlias = dict[str, float | str]
K = TypeVar("K")
Terms: TypeAlias = "tuple[tuple[Kernel, Array | None], ...]"


class Kernel(ABC):
    """Base class of kernels: positive semi-definite functions k(s, t) of two predictions.

    Your own kernel derives from this class and defines ``__call__``, ``paired`` and ``bound``; make it
    a frozen dataclass.

    Examples
    --------
    >>> import numpy as np
    >>> from caltest.kernels import Exponential
    >>> kernel = Exponential(bandwidth=0.5)
    >>> points = np.array([[0.9, 0.1], [0.4, 0.6]])
    >>> kernel(points, points).round(3).tolist(), kernel.bound
    ([[1.0, 0.368], [0.368, 1.0]], 1.0)
    """

    __array_ufunc__ = None  # leave products with NumPy scalars to the kernel

    @abstractmethod
    def __call__(self, x: Array, y: Array) -> Array:
        """Gram matrix (a, b) of k(x_i, y_j), for ``x`` (a, m) and ``y`` (b, m); a fresh array."""

    @abstractmethod
    def paired(self, x: Array, y: Array) -> Array:
        """Values (a,) of k(x_i, y_i), for ``x`` (a, m) and ``y`` (a, m); a fresh array."""

    def tiles(self, points: Array) -> Tile:
        """Return the Gram matrix of fixed points (n, m) as a function of two slices.

        Your own kernel need not define it.
        """
        return lambda rows, columns: self(points[rows], points[columns])

    def is_on_a_line(self, m: int) -> bool:
        """Whether k(g_i, g_j) = exp(−|x_i − x_j|) for some number x of each prediction of m classes.

        Then ``on_a_line`` returns these numbers of predictions (n, m).
        """
        return False

    @property
    @abstractmethod
    def bound(self) -> float:
        """An upper bound of the absolute value of k(s, t) over the simplex."""

    def fitted(self, probs: ArrayLike, weights: Array | None = None) -> Kernel:
        """Replace bandwidth rules by numbers computed from the predictions ``probs`` (n, m).

        ``weights`` (n,) are those of the rows, equal by default.
        """
        return self

    @property
    def parameters(self) -> Parameters:
        """The parameters in force, flat and ready for JSON."""
        return {}

    @property
    def notes(self) -> tuple[str, ...]:
        """Remarks on the fit for the user, one sentence each."""
        return ()

    @property
    def terms(self) -> Terms:
        """The matrix-valued kernel Σ k_l A_l as pairs (k_l, A_l); None stands for the identity."""
        return ((self, None),)

    def norm_bound(self, p: float, q: float, m: int) -> float:
        """Bound the norm of k(s, t)·I, from l_p to l_q on ``m`` classes, over the simplex."""
        return self.bound * identity_norm(p, q, m)

    def __add__(self, other: Kernel) -> Kernel:
        return Sum.of(self, other) if isinstance(other, Kernel) else NotImplemented

    def __mul__(self, other: float) -> Kernel:
        if not isinstance(other, Real):
            return NotImplemented
        return Scaled(self, other)

    __rmul__ = __mul__


def identity_norm(p: float, q: float, m: int) -> float:
    """Norm of the identity from l_p to l_q on ``m`` coordinates."""
    return max(1.0, float(np.power(float(m), 1 / q - 1 / p)))


def check_size(most: float) -> None:
    """Raise if powers of a kernel's values, up to ``most``, overflow or underflow."""
    low, high = _arguments.positive_number.low, _arguments.positive_number.high
    if most != math.inf and not low <= most <= high:
        do = f"scale it so that these lie between {low:g} and {high:g}"
        raise InputError(f"the kernel has values of at most {most:.3g}; {do}.")


def _kernels(name: str, value: object) -> object:
    """Accept several kernels, as a tuple or a list."""
    if isinstance(value, tuple | list) and value and all(isinstance(each, Kernel) for each in value):
        return value
    raise InputError(f"{name} is {quoted(value)}; give kernels, as in (Linear(), Gaussian()).")


class Composed:
    """A combination of kernels, with their parameters."""

    kernels: tuple[Kernel, ...]

    @property
    def parameters(self) -> Parameters:
        """Union of the parameters; if kernels share a name, all get the number of their kernel."""
        each = [list(kernel.parameters.items()) for kernel in self.kernels]
        if len(merged := dict(chain.from_iterable(each))) == sum(map(len, each)):
            return merged
        return {f"{name}_{i}": value for i, own in enumerate(each, start=1) for name, value in own}

    @property
    def notes(self) -> tuple[str, ...]:
        """The notes of all kernels, without repetition."""
        return tuple(dict.fromkeys(chain.from_iterable(kernel.notes for kernel in self.kernels)))


class Joined(Composed, Kernel):
    """Kernels whose values are combined entry by entry, and so are their bounds."""

    def _join(self, values: Iterable[Any]) -> Any:
        """Combine numbers or arrays, the first of which may be overwritten; here by a sum."""
        return reduce(operator.iadd, values)

    def __call__(self, x: Array, y: Array) -> Array:
        return np.asarray(self._join(kernel(x, y) for kernel in self.kernels))

    def tiles(self, points: Array) -> Tile:
        each, join = [kernel.tiles(points) for kernel in self.kernels], self._join
        return lambda rows, columns: np.asarray(join(tile(rows, columns) for tile in each))

    def paired(self, x: Array, y: Array) -> Array:
        return np.asarray(self._join(kernel.paired(x, y) for kernel in self.kernels))

    @property
    def bound(self) -> float:
        return cast("float", self._join(kernel.bound for kernel in self.kernels))


@arguments(kernels=_kernels)
@dataclass(frozen=True, repr=False)
class Sum(Joined):
    """A sum of kernels; made by ``+``.

    Examples
    --------
    >>> from caltest.kernels import Gaussian, Linear
    >>> Linear() + Gaussian(0.5)
    Linear() + Gaussian(bandwidth=0.5, distance='euclidean')
    """

    kernels: tuple[Kernel, ...]

    def __post_init__(self) -> None:
        check_size(self.bound)

    @classmethod
    def of(cls, *kernels: Kernel) -> Sum:
        """Add kernels; sums among them are flattened."""
        parts = (each.kernels if isinstance(each, Sum) else (each,) for each in kernels)
        return cls(tuple(chain.from_iterable(parts)))

    def fitted(self, probs: ArrayLike, weights: Array | None = None) -> Sum:
        return Sum(tuple(fitted(kernel, probs, weights) for kernel in self.kernels))

    def __repr__(self) -> str:
        return " + ".join(map(repr, self.kernels))


@arguments(kernel=_arguments.real_kernel, scale=_arguments.positive_number)
@dataclass(frozen=True, repr=False)
class Scaled(Joined):
    """A positive multiple of a kernel; made by ``*`` with a number.

    Examples
    --------
    >>> from caltest.kernels import Exponential
    >>> (0.5 * Exponential(1.0)).bound
    0.5
    """

    kernel: Kernel
    scale: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "scale", float(self.scale))
        check_size(self.bound)

    @property
    def kernels(self) -> tuple[Kernel, ...]:  # type: ignore[override]
        return (self.kernel,)

    def fitted(self, probs: ArrayLike, weights: Array | None = None) -> Scaled:
        return Scaled(fitted(self.kernel, probs, weights), self.scale)

    def _join(self, values: Iterable[Any]) -> Any:
        (value,) = values
        value *= self.scale
        return value

    @property
    def parameters(self) -> Parameters:
        inner = self.kernel.parameters
        return {**inner, "scale": self.scale * float(inner.get("scale", 1.0))}

    def __repr__(self) -> str:
        inner = f"({self.kernel!r})" if isinstance(self.kernel, Sum) else repr(self.kernel)
        return f"{self.scale!r} * {inner}"


def fitted(kernel: K, probs: ArrayLike, weights: Array | None) -> K:
    """Fit a kernel to predictions; your own kernel may take no weights."""
    counted = () if weights is None or (weights == 1.0).all() else (weights,)
    return cast("K", cast("Any", kernel).fitted(probs, *counted))


# ------------------------------------------------------------------ radial


@dataclass(frozen=True)
class _WithBandwidth(Kernel):
    """Code shared by kernels with a bandwidth."""

    distance = "euclidean"  # in some kernels, a field after the bandwidth
    _only_hilbertian = False

    bandwidth: float | str = "median"
    _fit: Bandwidth | None = field(default=None, init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "bandwidth", checked(self.bandwidth))
        # A function of the distance that is a mixture of Gaussians needs squares of negative type.
        if not choose("distance", self.distance, DISTANCES).hilbertian and self._only_hilbertian:
            why = "since the total variation distance is not Euclidean"
            do = "use distance='euclidean' or 'hellinger', or the kernel Exponential"
            raise InputError(f"{quoted(self, 200)} is not positive semi-definite, {why}; {do}.")

    @property
    def _metric(self) -> Distance:
        return DISTANCES[self.distance]

    def fitted(self, probs: ArrayLike, weights: Array | None = None) -> Self:
        if not isinstance(self.bandwidth, str):
            return self
        fit = resolve(self.bandwidth, probs, self._metric, weights)
        return changed(self, bandwidth=fit.value, _fit=fit)

    @property
    def parameters(self) -> Parameters:
        given = self.bandwidth if isinstance(self.bandwidth, str) else "given"
        rule = self._fit.rule if self._fit else given
        return {"bandwidth": self.bandwidth, "bandwidth_rule": rule, "distance": self.distance}

    @property
    def notes(self) -> tuple[str, ...]:
        return self._fit.notes if self._fit else ()

    @property
    def _width(self) -> float:
        if isinstance(self.bandwidth, str):
            do = "call fitted(probs) to get a number"
            raise InputError(f"The bandwidth of {self!r} is still a rule; {do}.")
        return self.bandwidth


class _Radial(_WithBandwidth):
    """Functions of a distance, at most 1."""

    bound = 1.0

    @abstractmethod
    def _profile(self, d: Array) -> Array:
        """Return kernel values from distances or their squares, which are overwritten."""

    @abstractmethod
    def _directions(self, stream: np.random.Generator, shape: tuple[int, int]) -> Array:
        """Draw from the spectral distribution, (count, m)."""

    def __call__(self, x: Array, y: Array) -> Array:
        return self._profile(self._metric.pairwise(x, y))

    def tiles(self, points: Array) -> Tile:
        tile, profile = self._metric.tiles(points), self._profile
        return lambda rows, columns: profile(tile(rows, columns))

    def paired(self, x: Array, y: Array) -> Array:
        return self._profile(self._metric.paired(x, y))


@options()
class Exponential(_Radial):
    r"""Exponential (Laplacian) kernel, :math:`\exp(-d(s, t) / \nu)`: the default of the SKCE.

    Parameters
    ----------
    bandwidth : float or str, default "median"
        ν, in units of the distance, or a rule: "median" of the distances between rows (of 2048
        rows that represent all, if there are more than 5000), "mean" likewise; or "median_exact" over
        all pairs, and "median_full", which counts each row with itself too.
    distance : {"tv", "euclidean", "hellinger"}, default "tv"
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

    distance: str = "tv"

    def _profile(self, d: Array) -> Array:
        d *= -1.0 / self._width
        return np.exp(d, out=d)

    def is_on_a_line(self, m: int) -> bool:
        return m == 2 and self.distance != "hellinger"

    def on_a_line(self, points: Array) -> Array:
        unit = 1.0 if self.distance == "tv" else math.sqrt(2.0)
        return np.asarray(points[:, 1] * (unit / self._width))

    def _directions(self, stream: np.random.Generator, shape: tuple[int, int]) -> Array:
        if self.distance == "tv":  # exp(−Σ_k |s_k − t_k| / (2ν)): a Cauchy variable per coordinate
            return np.asarray(stream.standard_cauchy(shape) / (2.0 * self._width))
        normal = stream.standard_normal(shape)  # over an independent |normal|: a Cauchy vector per row
        return np.asarray(normal / np.sqrt(stream.chisquare(1.0, (shape[0], 1))) / self._width)


@options()
class Gaussian(_Radial):
    r"""Gaussian kernel, :math:`\exp(-d(s, t)^2 / (2 \gamma^2))`: smoother than the exponential.

    Parameters
    ----------
    bandwidth : float or str, default "median"
        γ, in units of the distance, or a rule, as in :class:`Exponential`.
    distance : {"euclidean", "hellinger"}, default "euclidean"
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

    distance: str = "euclidean"

    _only_hilbertian = True

    def _profile(self, d: Array) -> Array:
        d *= -0.5 / (self._width * self._width)
        return np.exp(d, out=d)

    def __call__(self, x: Array, y: Array) -> Array:
        return self._profile(self._metric.squared(x, y))

    def tiles(self, points: Array) -> Tile:
        exponents = exponent_tiles(self._metric.embedded(points), self._width)

        def tile(rows: slice, columns: slice) -> Array:
            found = exponents(rows, columns)
            return np.exp(found, out=found)

        return tile

    def paired(self, x: Array, y: Array) -> Array:
        return self._profile(self._metric.paired(x, y) ** 2)

    def _directions(self, stream: np.random.Generator, shape: tuple[int, int]) -> Array:
        return np.asarray(stream.standard_normal(shape) / self._width)


@options()
class LinearGaussian(_WithBandwidth, Joined):
    r"""Inner product plus Gaussian kernel, the default of the CKCE.

    :math:`s \cdot t + \exp(-|s - t|^2 / (2 \gamma^2))`.

    Parameters
    ----------
    bandwidth : float or str, default "median"
        γ, in units of the Euclidean distance, or a rule, as in :class:`Exponential`.

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

    bound = 2.0

    @property
    def kernels(self) -> tuple[Kernel, ...]:  # type: ignore[override]
        return Gaussian(self._width), Linear()


@options()
class Linear(Kernel):
    """Linear kernel, the inner product s·t: it finds errors that are linear in the predictions.

    Examples
    --------
    >>> import numpy as np
    >>> Linear()(np.array([[0.5, 0.5]]), np.array([[0.25, 0.75], [1.0, 0.0]]))
    array([[0.5, 0.5]])
    """

    bound = 1.0

    def __call__(self, x: Array, y: Array) -> Array:
        return np.asarray(x @ y.T)

    def paired(self, x: Array, y: Array) -> Array:
        return np.asarray(np.einsum("ij,ij->i", x, y))


# ------------------------------------------------------------------ matrix-valued


@arguments()
@dataclass(frozen=True, init=False, repr=False, eq=False)
class MatrixKernel(Composed):
    r"""Matrix-valued kernel, :math:`\sum_l k_l(s, t) A_l`: classes may be weighted or related.

    Parameters
    ----------
    parts : sequence of pairs (Kernel, array of shape (m, m))
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

    >>> import numpy as np
    >>> from caltest.kernels import Exponential
    >>> MatrixKernel([(Exponential(), np.diag([1.0, 0.0, 0.0]))])
    MatrixKernel([(Exponential(bandwidth='median', distance='tv'), 3×3 matrix)])
    """

    parts: tuple[tuple[Kernel, Array], ...]

    def __init__(self, parts: Iterable[tuple[Kernel, ArrayLike]]) -> None:
        pairs = [*parts] if np.iterable(parts) else []
        two = [isinstance(x, tuple | list) and len(x) == 2 and isinstance(x[0], Kernel) for x in pairs]
        if not pairs or not all(two):
            do = "give pairs of a real-valued kernel, such as Exponential(), and its m×m matrix"
            raise InputError(f"parts is {quoted(parts)}; {do}.")
        checked = tuple((kernel, _psd_matrix(matrix, i)) for i, (kernel, matrix) in enumerate(pairs))
        if len(sizes := sorted({len(matrix) for _, matrix in checked})) > 1:
            found = f"The matrices of the matrix kernel have {' and '.join(map(str, sizes))} rows"
            raise InputError(f"{found}; give them all m×m for m classes.")
        for kernel, matrix in checked:
            if matrix.any():
                check_size(kernel.bound * float(np.abs(matrix).max()))
        object.__setattr__(self, "parts", checked)

    def fitted(self, probs: ArrayLike, weights: Array | None = None) -> MatrixKernel:
        """Replace bandwidth rules by numbers computed from the predictions ``probs`` (n, m)."""
        probs = np.asarray(probs, dtype=np.float64)
        self._check_classes(probs.shape[1])
        return MatrixKernel((fitted(kernel, probs, weights), matrix) for kernel, matrix in self.parts)

    @property
    def terms(self) -> Terms:
        """The pairs (k_l, A_l)."""
        return self.parts

    @property
    def kernels(self) -> tuple[Kernel, ...]:  # type: ignore[override]
        """The kernels k_l."""
        return tuple(kernel for kernel, _ in self.parts)

    def norm_bound(self, p: float, q: float, m: int) -> float:
        """Bound the norm of the kernel, from l_p to l_q on ``m`` classes, over the simplex."""
        self._check_classes(m)
        ways = [(r, identity_norm(p, r, m), identity_norm(r, q, m)) for r in (1, 2, math.inf)]
        return sum(  # the best way through l_1, l_2 or l_∞
            kernel.bound * min(a * float(np.linalg.norm(matrix, r)) * b for r, a, b in ways)
            for kernel, matrix in self.parts
        )

    def _check_classes(self, m: int) -> None:
        if (size := len(self.parts[0][1])) != m:
            found = f"The matrices of the matrix kernel are {size}×{size}, but there are {m} classes"
            raise InputError(f"{found}; give {m}×{m} matrices.")

    def __eq__(self, other: object) -> bool:
        return isinstance(other, MatrixKernel) and self._key() == other._key()

    def __hash__(self) -> int:
        return hash(self._key())

    def _key(self) -> tuple[tuple[Kernel, bytes], ...]:
        return tuple((kernel, matrix.tobytes()) for kernel, matrix in self.parts)

    def __repr__(self) -> str:
        pairs = (f"({k!r}, {len(a)}×{len(a)} matrix)" for k, a in self.parts)
        return f"MatrixKernel([{', '.join(pairs)}])"


def _psd_matrix(matrix: ArrayLike, part: int) -> Array:
    """Copy a matrix, read-only, after checking that it is symmetric positive semi-definite."""
    where = f"Matrix {part} of the matrix kernel"
    a = real_array(where, matrix, "give a finite m×m matrix for m classes").copy()
    if a.ndim != 2 or a.shape[0] != a.shape[1] or not a.size or not np.all(np.isfinite(a)):
        raise InputError(f"{where} has shape {a.shape}; give a finite m×m matrix for m classes.")
    if (asymmetry := np.abs(a - a.T).max()) > 1e-10 * np.abs(a).max():
        found = f"entries differ from their mirror images by up to {asymmetry:.3g}"
        raise InputError(f"{where} is not symmetric ({found}); use (A + A.T) / 2.")
    a = (a + a.T) / 2 + 0.0  # no negative zeros: equal matrices have equal bytes
    if (eigenvalues := np.linalg.eigvalsh(a))[0] < -1e-10 * np.abs(eigenvalues).max():
        found = f"not positive semi-definite (its smallest eigenvalue is {eigenvalues[0]:.3g})"
        raise InputError(f"{where} is {found}; a kernel needs eigenvalues of at least 0.")
    a.flags.writeable = False
    return a


# ------------------------------------------------------------------ fourier
#
# By Bochner's theorem k(s − t) = E cos(ω·(s − t)) for directions ω from the kernel's spectral
# distribution, so cosines and sines for a few directions are features whose inner products are k on
# average (Rahimi and Recht, "Random features for large-scale kernel machines", NeurIPS 2007).


def fourier_features(kernel: Any, probs: Array, count: int, seed: int = 0) -> Array:
    """Return features (n, F) whose inner products are k(g_i, g_j) on average.

    Parameters
    ----------
    kernel
        A kernel with a fitted bandwidth. Gaussian and Exponential kernels of any distance are
        shift-invariant (Hellinger's in the square roots); the inner product is exact; sums and
        multiples of these are supported.
    probs
        (n, m) predictions.
    count
        Number of directions for every shift-invariant part: 2 ``count`` columns, cosines and sines.
    seed
        Seed of the directions. Default 0: the same every time.

    Examples
    --------
    >>> p = np.array([[0.9, 0.1], [0.2, 0.8]])
    >>> features = fourier_features(Gaussian(0.5), p, 10_000)
    >>> features.shape, (features @ features.T).round(2)[0], Gaussian(0.5)(p, p).round(2)[0]
    ((2, 20000), array([1.  , 0.14]), array([1.  , 0.14]))
    """
    if isinstance(kernel, Sum):
        parts = enumerate(kernel.kernels)
        return np.hstack([fourier_features(part, probs, count, seed + i) for i, part in parts])
    if isinstance(kernel, Scaled):
        return np.asarray(np.sqrt(kernel.scale) * fourier_features(kernel.kernel, probs, count, seed))
    if isinstance(kernel, Linear):
        return probs.copy()
    if isinstance(kernel, LinearGaussian):
        return np.hstack([probs, fourier_features(Gaussian(kernel._width), probs, count, seed)])
    points = probs if kernel.distance == "tv" else kernel._metric.embedded(probs)
    angles = points @ kernel._directions(generator(seed), (count, probs.shape[1])).T
    features = np.hstack([np.cos(angles), np.sin(angles)])
    features /= np.sqrt(count)
    return features


def has_fourier_features(kernel: Kernel) -> bool:
    """Return whether random Fourier features are available for a kernel."""
    if isinstance(kernel, Sum | Scaled):
        return all(map(has_fourier_features, kernel.kernels))
    return isinstance(kernel, Linear | LinearGaussian | _Radial)
