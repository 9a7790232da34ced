"""Kernels of a distance, linear kernels, and random Fourier features of both."""

# ruff: noqa: D102 -- a method that overrides another is documented where it is first defined.

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass, field, replace
from functools import singledispatch
from math import sqrt
from operator import iadd
from typing import Self, cast

import numpy as np
from numpy.typing import ArrayLike

from caltest._arguments import arguments, as_float
from caltest._arrays import NUMPY, ArrayLibrary, exp
from caltest._sampling import generator
from caltest._visible import quoted
from caltest.exceptions import InputError
from caltest.kernels.bandwidth import Bandwidth, check_distance, checked, resolve
from caltest.kernels.base import Kernel, Parameters, Scaled, Sum
from caltest.kernels.distances import (
    CITYBLOCK,
    EUCLIDEAN,
    ArrayTile,
    CombinedTile,
    Distance,
    DistanceTile,
    ExponentTile,
    Floats,
    GaussianTile,
    Hilbertian,
    InnerTile,
    MetricTile,
    distance_named,
    distance_tile,
)

# ------------------------------------------------------------------ radial


_HUGE = 1e300  # twice as much is a number still


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

    def tiles(self, points: Floats, library: ArrayLibrary = NUMPY) -> ArrayTile:
        return DistanceTile(
            distance_tile(distance_named(self.distance), points, library), self._profile
        )

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


@arguments()
@dataclass(frozen=True)
class Exponential(_WithBandwidth):
    r"""The exponential (Laplacian) kernel :math:`\exp(-d(s, t) / \nu)`.

    Parameters
    ----------
    bandwidth
        ν, in units of the distance, or a rule (:mod:`caltest.kernels.bandwidth`). The default is
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

    def tiles(self, points: Floats, library: ArrayLibrary = NUMPY) -> ArrayTile:
        if self.distance != "tv" or not library.is_numpy or self._width > _HUGE:
            return super().tiles(points, library)
        twice = replace(self, bandwidth=2.0 * self._width)  # one pass less than halving distances
        return DistanceTile(MetricTile(CITYBLOCK, points), twice._profile)

    def _profile(self, d: Floats) -> Floats:
        d *= -1.0 / self._width
        return cast(Floats, exp(d))


@arguments()
@dataclass(frozen=True)
class Gaussian(_WithBandwidth):
    r"""The Gaussian kernel :math:`\exp(-d(s, t)^2 / (2 \gamma^2))`.

    Parameters
    ----------
    bandwidth
        γ, in units of the distance, or a rule (:mod:`caltest.kernels.bandwidth`). The default is
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

    def tiles(self, points: Floats, library: ArrayLibrary = NUMPY) -> ArrayTile:
        embedded = cast(Hilbertian, distance_named(self.distance)).embedded(points)
        return GaussianTile(ExponentTile.of(embedded, self._width, library))

    def paired(self, x: Floats, y: Floats) -> Floats:
        return self._profile(cast(Hilbertian, distance_named(self.distance)).squared_paired(x, y))


@arguments()
@dataclass(frozen=True)
class Matern(_WithBandwidth):
    r"""The Matérn kernel: with a = √(2·smoothness) d(s, t)/bandwidth, a polynomial in a times e⁻ᵃ.

    The polynomial is 1 for smoothness ½ (the exponential kernel), 1 + a for 3/2 and 1 + a + a²/3
    for 5/2.

    Parameters
    ----------
    bandwidth
        In units of the distance, or a rule (:mod:`caltest.kernels.bandwidth`). The default is the
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
        if as_float(self.smoothness) not in (0.5, 1.5, 2.5):
            raise InputError(
                f"The smoothness of the Matérn kernel is {quoted(self.smoothness)}; use 0.5, 1.5 or "
                "2.5."
            )
        if self.smoothness != 0.5:
            _check_hilbertian(self, metric)

    def _profile(self, d: Floats) -> Floats:
        d *= sqrt(2 * self.smoothness) / self._width
        decay = cast(Floats, exp(-d))
        if self.smoothness == 0.5:
            return decay
        polynomial = d + 1.0 if self.smoothness == 1.5 else (d / 3.0 + 1.0) * d + 1.0
        decay *= polynomial
        return decay

    @property
    def parameters(self) -> Parameters:
        return {**super().parameters, "smoothness": self.smoothness}


@arguments()
@dataclass(frozen=True)
class LinearGaussian(_WithBandwidth):
    r"""Inner product plus Gaussian kernel: :math:`s \cdot t + \exp(-|s - t|^2 / (2 \gamma^2))`.

    Parameters
    ----------
    bandwidth
        γ, in units of the Euclidean distance, or a rule (:mod:`caltest.kernels.bandwidth`). The
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

    def tiles(self, points: Floats, library: ArrayLibrary = NUMPY) -> ArrayTile:
        gaussian = GaussianTile(ExponentTile.of(points, self._width, library))
        return CombinedTile((gaussian, Linear().tiles(points, library)), iadd)

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
            f"{quoted(kernel, 200)} is not positive semi-definite, since the total variation distance "
            "is not Euclidean; use distance='euclidean' or 'hellinger', or the kernel Exponential."
        )


@arguments()
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

    def tiles(self, points: Floats, library: ArrayLibrary = NUMPY) -> ArrayTile:
        return InnerTile(library.put(points))

    def paired(self, x: Floats, y: Floats) -> Floats:
        values: Floats = np.einsum("ij,ij->i", x, y)
        return values

    @property
    def bound(self) -> float:
        return 1.0


# ------------------------------------------------------------------ fourier
#
# By Bochner's theorem k(s − t) = E cos(ω·(s − t)) for directions ω from the kernel's spectral
# distribution, so that cosines and sines of a few of them are features whose inner products are k on
# average (Rahimi and Recht, "Random features for large-scale kernel machines", NeurIPS 2007).


def fourier_features(kernel: Kernel, probs: Floats, count: int, seed: int = 0) -> Floats:
    """Return features (n, F) whose inner products are k(g_i, g_j) on average.

    Parameters
    ----------
    kernel
        Its bandwidth fitted. Gaussian, Exponential and Matérn kernels of any distance, which are
        shift-invariant (that of Hellinger in the square roots); the inner product, which is exact;
        sums and multiples of these.
    probs
        (n, m) predictions.
    count
        Directions of every shift-invariant part: 2 ``count`` columns, cosines and sines.
    seed
        Of the directions. Default 0: the same every time.

    Raises
    ------
    InputError
        If the kernel is none of these.

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
    if not has_fourier_features(kernel):
        raise InputError(
            f"there are no Fourier features of {quoted(kernel, 200)}; use Gaussian, Exponential, "
            "Matern, "
            "Linear or LinearGaussian kernels, sums and multiples of them, or Nyström's approximation."
        )
    directions = _directions(kernel, generator(seed), (count, probs.shape[1]))
    points = np.sqrt(0.5 * probs) if getattr(kernel, "distance", "") == "hellinger" else probs
    angles = points @ directions.T
    features = [np.cos(angles), np.sin(angles)]
    for part in features:
        part /= np.sqrt(count)
    return np.hstack([probs, *features] if isinstance(kernel, LinearGaussian) else features)


def has_fourier_features(kernel: Kernel) -> bool:
    """Say whether a kernel has random Fourier features here."""
    if isinstance(kernel, Sum):
        return all(map(has_fourier_features, kernel.kernels))
    if isinstance(kernel, Scaled):
        return has_fourier_features(kernel.kernel)
    return isinstance(kernel, Exponential | Gaussian | Linear | LinearGaussian | Matern)


@singledispatch
def _directions(kernel: Kernel, stream: np.random.Generator, shape: tuple[int, int]) -> Floats:
    """Draw from the spectral distribution of a kernel, (count, m)."""
    raise TypeError(f"{quoted(kernel, 200)} is not shift-invariant")


@_directions.register(Gaussian)
@_directions.register(LinearGaussian)
def _(kernel: Gaussian | LinearGaussian, stream: np.random.Generator, shape: tuple[int, int]) -> Floats:
    return np.asarray(stream.standard_normal(shape) / kernel._width)


@_directions.register
def _(kernel: Exponential, stream: np.random.Generator, shape: tuple[int, int]) -> Floats:
    if kernel.distance == "tv":  # exp(−Σ_k |s_k − t_k| / (2ν)): a Cauchy variable a coordinate
        return np.asarray(stream.standard_cauchy(shape) / (2.0 * kernel._width))
    return _student(stream, shape, 1.0) / kernel._width


@_directions.register
def _(kernel: Matern, stream: np.random.Generator, shape: tuple[int, int]) -> Floats:
    if kernel.smoothness == 0.5:
        return _directions(Exponential(kernel._width, kernel.distance), stream, shape)
    return _student(stream, shape, 2.0 * kernel.smoothness) / kernel._width


def _student(stream: np.random.Generator, shape: tuple[int, int], degrees: float) -> Floats:
    """Draw multivariate t variables: a normal vector over an independent χ, one a row."""
    normal = stream.standard_normal(shape)
    return np.asarray(normal / np.sqrt(stream.chisquare(degrees, (shape[0], 1)) / degrees))
