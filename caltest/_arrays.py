"""Arrays of another library: where the tiles of sums over pairs are computed, if not by numpy."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from importlib import import_module
from typing import Any

import numpy as np

from caltest._arguments import arguments, choose
from caltest._visible import quoted
from caltest.exceptions import InputError

LIBRARIES = {"numpy": "numpy", "torch": "torch", "cupy": "cupy"}


@dataclass(frozen=True)
class ArrayLibrary:
    """A library of arrays and the device they live on.

    Attributes
    ----------
    name
        "numpy", "torch" or "cupy".
    device
        As the library names it, such as "cuda"; None for the library's own choice.
    """

    name: str = "numpy"
    device: str | None = None

    @property
    def is_numpy(self) -> bool:
        """Whether nothing moves."""
        return self.name == "numpy"

    @property
    def space(self) -> Any:
        """The module with the functions."""
        return import_module(LIBRARIES[self.name])

    def put(self, array: Any) -> Any:
        """Carry a numpy array over to the library and its device."""
        if self.is_numpy:
            return array
        if self.name == "torch":
            own = array if array.flags.writeable else array.copy()  # torch knows no read-only arrays
            return self.space.asarray(np.ascontiguousarray(own), device=self.device)
        return self.space.asarray(array)

    def take(self, array: Any) -> Any:
        """Bring an array back to numpy."""
        if self.is_numpy:
            return array
        return array.cpu().numpy() if self.name == "torch" else self.space.asnumpy(array)

    def cityblock(self, x: Any, y: Any) -> Any:
        """Return Σ_k |x_ik − y_jk| of all pairs of rows of two arrays that are not numpy's."""
        if self.name == "torch":
            return self.space.cdist(x, y, p=1.0)
        total = self.space.abs(x[:, None, 0] - y[None, :, 0])
        for k in range(1, x.shape[1]):
            total += self.space.abs(x[:, None, k] - y[None, :, k])
        return total


NUMPY = ArrayLibrary()
_current: ContextVar[ArrayLibrary] = ContextVar("array_library", default=NUMPY)


def current_library() -> ArrayLibrary:
    """Return the library asked for by :func:`array_library`."""
    return _current.get()


@contextmanager
@arguments()
def array_library(name: str, *, device: str | None = None) -> Iterator[None]:
    """Compute sums over pairs of rows with the arrays of another library, on a GPU for instance.

    Within the ``with`` block the kernel statistics that look at all pairs (``skce_b``, ``skce_uq``,
    ``mmce``) compute their tiles there: distances, kernels, and the sums of one label vector or of
    all draws, in double precision. Everything else is done by numpy as ever; so are kernels of one's
    own, whose tiles are then carried over. Labels are drawn by numpy, so that a seed gives the same
    labels, and p-values agree with numpy's but for rounding.

    Parameters
    ----------
    name
        "torch", "cupy" (each has to be installed) or "numpy".
    device
        Device of the library's arrays, such as ``"cuda"`` or ``"cuda:1"`` of torch. Default: the
        library's own choice, the CPU for torch.

    Raises
    ------
    InputError
        If the library is unknown or not installed, or the device cannot be used.

    Examples
    --------
    >>> import caltest
    >>> with caltest.array_library("numpy"):
    ...     round(caltest.estimate([[1, 0], [0, 1]], [1, 0], "skce_b"), 6)
    0.632121
    """
    choose("array library", name, dict.fromkeys(LIBRARIES, True))
    library = ArrayLibrary(name, device)
    _check(library)
    token = _current.set(library)
    try:
        yield
    finally:
        _current.reset(token)


def _check(library: ArrayLibrary) -> None:
    """Raise if the library or its device cannot be used."""
    try:
        library.space  # noqa: B018 -- imports it
    except ImportError as error:
        raise InputError(
            f"the array library {library.name!r} is not installed; install it, or leave it out."
        ) from error
    if library.device is not None and library.name != "torch":
        raise InputError(
            f"device is {quoted(library.device)}, but {library.name} has its own way to choose a "
            "device; leave it out."
        )
    try:
        library.put(np.zeros(1))
    except Exception as error:
        raise InputError(
            f"{library.name} cannot use the device {quoted(library.device)}: "
            f"{str(error).splitlines()[0]}"
        ) from error


def exp(x: Any) -> Any:
    """Return eˣ, in place where the library can."""
    return _in_place("exp", x)


def sqrt(x: Any) -> Any:
    """Return √x, in place where the library can."""
    return _in_place("sqrt", x)


def _in_place(name: str, x: Any) -> Any:
    if isinstance(x, np.ndarray):
        return getattr(np, name)(x, out=x)
    if hasattr(x, f"{name}_"):  # of torch
        return getattr(x, f"{name}_")()
    return getattr(x.__array_namespace__(), name)(x)
