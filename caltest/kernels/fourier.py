"""Random Fourier features: a shift-invariant kernel as the mean of cosines of random directions.

By Bochner's theorem k(s − t) = E cos(ω·(s − t)) for directions ω from the kernel's spectral
distribution, so that cosines and sines of a few of them are features whose inner products are k on
average (Rahimi and Recht, "Random features for large-scale kernel machines", NeurIPS 2007).
"""

from __future__ import annotations

from functools import singledispatch

import numpy as np

from caltest._quoted import quoted
from caltest._seeds import generator
from caltest.exceptions import InputError
from caltest.kernels.base import Kernel, Scaled, Sum
from caltest.kernels.distances import Floats
from caltest.kernels.radial import Exponential, Gaussian, Linear, LinearGaussian, Matern


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
