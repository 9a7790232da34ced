"""What a kernel is, and how kernels combine: sums, products, positive multiples."""

# ruff: noqa: D102 -- a method that overrides another is documented where it is first defined.

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable
from dataclasses import dataclass
from functools import reduce
from math import prod
from numbers import Real
from operator import iadd, imul
from typing import Self, TypeAlias

from numpy.typing import ArrayLike

from caltest._arguments import arguments, positive_number, real_kernel
from caltest._arrays import NUMPY, ArrayLibrary
from caltest._quoted import quoted
from caltest.exceptions import InputError
from caltest.kernels.distances import Floats
from caltest.kernels.norms import identity_norm
from caltest.kernels.tiles import ArrayTile, CombinedTile, KernelTile, ScaledTile

Parameters: TypeAlias = dict[str, float | str]
Terms: TypeAlias = "tuple[tuple[Kernel, Floats | None], ...]"


class Kernel(ABC):
    """A real-valued positive semi-definite kernel k(s, t) on the simplex.

    A kernel of your own derives from this class and defines ``__call__``, ``paired`` and ``bound``;
    make it a frozen dataclass.

    Examples
    --------
    >>> import numpy as np
    >>> from caltest.kernels import Exponential
    >>> kernel = Exponential(bandwidth=0.5)
    >>> points = np.array([[0.9, 0.1], [0.4, 0.6]])
    >>> kernel(points, points).round(3).tolist(), kernel.bound
    ([[1.0, 0.368], [0.368, 1.0]], 1.0)
    """

    __array_ufunc__ = None  # numpy scalars leave their product with a kernel to the kernel

    @abstractmethod
    def __call__(self, x: Floats, y: Floats) -> Floats:
        """Gram matrix (a, b) of k(x_i, y_j), for ``x`` (a, m) and ``y`` (b, m); a fresh array."""

    @abstractmethod
    def paired(self, x: Floats, y: Floats) -> Floats:
        """Values (a,) of k(x_i, y_i), for ``x`` (a, m) and ``y`` (a, m); a fresh array."""

    def tiles(self, points: Floats, library: ArrayLibrary = NUMPY) -> ArrayTile:
        """Gram matrix of fixed points (n, m), a block at a time: a function of two slices.

        A kernel of your own need not define it.
        """
        return KernelTile(self, points, library)

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
        return self.bound * identity_norm(p, q, m)

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


def _kernels(name: str, value: object) -> object:
    """Return several kernels, as a tuple or a list."""
    if isinstance(value, tuple | list) and value and all(isinstance(each, Kernel) for each in value):
        return value
    raise InputError(f"{name} is {quoted(value)}; give kernels, as in (Linear(), Gaussian()).")


class _Composite(Kernel):
    """What sums and products share."""

    kernels: tuple[Kernel, ...]

    def fitted(self, probs: ArrayLike) -> Self:
        return type(self)(tuple(kernel.fitted(probs) for kernel in self.kernels))  # type: ignore[call-arg]

    @property
    def parameters(self) -> Parameters:
        return merged_parameters(self.kernels)

    @property
    def notes(self) -> tuple[str, ...]:
        return merged_notes(self.kernels)


@arguments(kernels=_kernels)
@dataclass(frozen=True, repr=False)
class Sum(_Composite):
    """The sum of kernels, as ``+`` makes it.

    Examples
    --------
    >>> import numpy as np
    >>> from caltest.kernels import Exponential, Gaussian, Linear
    >>> Linear() + Gaussian(0.5)
    Linear() + Gaussian(bandwidth=0.5, distance='euclidean')
    """

    kernels: tuple[Kernel, ...]

    def __call__(self, x: Floats, y: Floats) -> Floats:
        return reduce(iadd, (kernel(x, y) for kernel in self.kernels))

    def tiles(self, points: Floats, library: ArrayLibrary = NUMPY) -> ArrayTile:
        return CombinedTile(tuple(kernel.tiles(points, library) for kernel in self.kernels), iadd)

    def paired(self, x: Floats, y: Floats) -> Floats:
        return reduce(iadd, (kernel.paired(x, y) for kernel in self.kernels))

    @property
    def bound(self) -> float:
        return sum(kernel.bound for kernel in self.kernels)

    def __repr__(self) -> str:
        return " + ".join(map(repr, self.kernels))


@arguments(kernels=_kernels)
@dataclass(frozen=True, repr=False)
class Product(_Composite):
    """The product of kernels, as ``*`` makes it.

    Examples
    --------
    >>> import numpy as np
    >>> from caltest.kernels import Exponential, Gaussian, Linear
    >>> Linear() * Gaussian(0.5)
    Linear() * Gaussian(bandwidth=0.5, distance='euclidean')
    """

    kernels: tuple[Kernel, ...]

    def __call__(self, x: Floats, y: Floats) -> Floats:
        return reduce(imul, (kernel(x, y) for kernel in self.kernels))

    def tiles(self, points: Floats, library: ArrayLibrary = NUMPY) -> ArrayTile:
        return CombinedTile(tuple(kernel.tiles(points, library) for kernel in self.kernels), imul)

    def paired(self, x: Floats, y: Floats) -> Floats:
        return reduce(imul, (kernel.paired(x, y) for kernel in self.kernels))

    @property
    def bound(self) -> float:
        return prod(kernel.bound for kernel in self.kernels)

    def __repr__(self) -> str:
        return " * ".join(map(_in_product, self.kernels))


@arguments(kernel=real_kernel, scale=positive_number)
@dataclass(frozen=True, repr=False)
class Scaled(Kernel):
    """A positive multiple of a kernel, as ``*`` with a number makes it.

    Examples
    --------
    >>> import numpy as np
    >>> from caltest.kernels import Exponential, Gaussian, Linear
    >>> (0.5 * Exponential(1.0)).bound
    0.5
    """

    kernel: Kernel
    scale: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "scale", float(self.scale))

    def __call__(self, x: Floats, y: Floats) -> Floats:
        gram = self.kernel(x, y)
        gram *= self.scale
        return gram

    def tiles(self, points: Floats, library: ArrayLibrary = NUMPY) -> ArrayTile:
        return ScaledTile(self.kernel.tiles(points, library), self.scale)

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


def _operands(kernel: Kernel, kind: type[Sum | Product]) -> tuple[Kernel, ...]:
    return kernel.kernels if isinstance(kernel, kind) else (kernel,)


def _in_product(kernel: Kernel) -> str:
    return f"({kernel!r})" if isinstance(kernel, Sum) else repr(kernel)


def merged_parameters(kernels: Iterable[Kernel]) -> Parameters:
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


def merged_notes(kernels: Iterable[Kernel]) -> tuple[str, ...]:
    """Return the notes of all, each once."""
    return tuple(dict.fromkeys(note for kernel in kernels for note in kernel.notes))
