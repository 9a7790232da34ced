"""Kernels of a distance, linear kernels, and random Fourier features of both."""

# ruff: noqa: D102 -- a method that overrides another is documented where it is first defined.

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass, field
from math import sqrt
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike

from caltest._arguments import changed, choose, options
from caltest._sums import Array, Tile
from caltest._visible import quoted
from caltest.exceptions import InputError
from caltest.kernels.bandwidth import DISTANCES, Bandwidth, Distance, checked, exponent_tiles, resolve
from caltest.kernels.base import Joined, Kernel, Parameters, Scaled, Sum
from caltest.sampling import generator

# ------------------------------------------------------------------ radial


class _OfDistance(Kernel):
    distance: str = "euclidean"  # of some kernels, a field after the bandwidth
    _only_hilbertian: ClassVar[bool] = False


@dataclass(frozen=True)
class _WithBandwidth(_OfDistance):
    """What kernels with a bandwidth share."""

    bandwidth: float | str = "median"
    _fit: Bandwidth | None = field(default=None, init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "bandwidth", checked(self.bandwidth))
        if self.bandwidth == "mean_tv_dirichlet" and self.distance != "tv":
            raise InputError(
                "The bandwidth rule 'mean_tv_dirichlet' gives a total variation distance, but the "
                f"distance is {quoted(self.distance)}; use distance='tv' or the rule 'mean'."
            )
        # A function of the distance that is a mixture of Gaussians needs squares of negative type.
        if not choose("distance", self.distance, DISTANCES).hilbertian and self._only_hilbertian:
            raise InputError(
                f"{quoted(self, 200)} is not positive semi-definite, since the total variation "
                "distance is not Euclidean; use distance='euclidean' or 'hellinger', or the kernel "
                "Exponential."
            )

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


class _Radial(_WithBandwidth):
    """Functions of a distance, at most 1."""

    @abstractmethod
    def _profile(self, d: Array) -> Array:
        """Kernel values from distances or their squares, which are overwritten."""

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

    @property
    def bound(self) -> float:
        return 1.0


@options()
class Exponential(_Radial):
    r"""Exponential (Laplacian) kernel, :math:`\exp(-d(s, t) / \nu)`: the default of the SKCE.

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

    distance: str = "tv"

    def _profile(self, d: Array) -> Array:
        d *= -1.0 / self._width
        return np.exp(d, out=d)

    def is_on_a_line(self, m: int) -> bool:
        return m == 2 and self.distance != "hellinger"

    def on_a_line(self, points: Array) -> Array:
        return np.asarray(points[:, 1] * ((1.0 if self.distance == "tv" else sqrt(2.0)) / self._width))

    def _directions(self, stream: np.random.Generator, shape: tuple[int, int]) -> Array:
        if self.distance == "tv":  # exp(−Σ_k |s_k − t_k| / (2ν)): a Cauchy variable a coordinate
            return np.asarray(stream.standard_cauchy(shape) / (2.0 * self._width))
        normal = stream.standard_normal(shape)  # over an independent |normal|: a Cauchy vector a row
        return np.asarray(normal / np.sqrt(stream.chisquare(1.0, (shape[0], 1))) / self._width)


@options()
class Gaussian(_Radial):
    r"""Gaussian kernel, :math:`\exp(-d(s, t)^2 / (2 \gamma^2))`: smoother than the exponential.

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

    @property
    def kernels(self) -> tuple[Kernel, ...]:  # type: ignore[override]
        return Gaussian(self._width), Linear()

    @property
    def bound(self) -> float:
        return 2.0


@options()
class Linear(Kernel):
    """Linear kernel, the inner product s·t: sees errors that are linear in the predictions.

    Examples
    --------
    >>> import numpy as np
    >>> Linear()(np.array([[0.5, 0.5]]), np.array([[0.25, 0.75], [1.0, 0.0]]))
    array([[0.5, 0.5]])
    """

    def __call__(self, x: Array, y: Array) -> Array:
        gram: Array = x @ y.T
        return gram

    def paired(self, x: Array, y: Array) -> Array:
        values: Array = np.einsum("ij,ij->i", x, y)
        return values

    @property
    def bound(self) -> float:
        return 1.0


# ------------------------------------------------------------------ fourier
#
# By Bochner's theorem k(s − t) = E cos(ω·(s − t)) for directions ω from the kernel's spectral
# distribution, so that cosines and sines of a few of them are features whose inner products are k on
# average (Rahimi and Recht, "Random features for large-scale kernel machines", NeurIPS 2007).


def fourier_features(kernel: Any, probs: Array, count: int, seed: int = 0) -> Array:
    """Return features (n, F) whose inner products are k(g_i, g_j) on average.

    Parameters
    ----------
    kernel
        Its bandwidth fitted. Gaussian and Exponential kernels of any distance, which are
        shift-invariant (that of Hellinger in the square roots); the inner product, which is exact;
        sums and multiples of these.
    probs
        (n, m) predictions.
    count
        Directions of every shift-invariant part: 2 ``count`` columns, cosines and sines.
    seed
        Of the directions. Default 0: the same every time.

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
    directions = kernel._directions(generator(seed), (count, probs.shape[1]))
    points = probs if kernel.distance == "tv" else kernel._metric.embedded(probs)
    angles = points @ directions.T
    features = np.hstack([np.cos(angles), np.sin(angles)])
    features /= np.sqrt(count)
    return features


def has_fourier_features(kernel: Kernel) -> bool:
    """Say whether a kernel has random Fourier features here."""
    if isinstance(kernel, Sum | Scaled):
        return all(map(has_fourier_features, kernel.kernels))
    return isinstance(kernel, Linear | LinearGaussian | _Radial)
