"""A function with its data on the way to other processes."""

from __future__ import annotations

import io
import pickle
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any
from uuid import uuid4

import cloudpickle
import numpy as np
from numpy.typing import NDArray

from caltest.exceptions import InputError

LARGE = 2**20  # bytes of an array that travels apart, as joblib's own limit for memory mapping


@dataclass(frozen=True, eq=False)
class Parcel:
    """A packed function, to be called like the function.

    Attributes
    ----------
    head
        The function, pickled, but for its large arrays.
    arrays
        These travel beside it: joblib maps them into the memory of processes of the same machine, Ray
        into that of all on a machine, so that they are written once.
    key
        By which a process knows the parcel that it received last, which it keeps. None: it does not.
    """

    head: NDArray[np.uint8]
    arrays: list[NDArray[Any]]
    key: str | None

    @classmethod
    def of(cls, function: Callable[..., Any], keep: bool = True) -> Parcel:
        """Pack a function with all its data.

        Raises
        ------
        InputError
            If something inside cannot be packed.
        """
        arrays: list[NDArray[Any]] = []
        packed = io.BytesIO()
        try:
            _Packer(packed, arrays).dump(function)
        except Exception as error:  # whatever the objects inside raise
            raise InputError(
                f"the statistic, or what it works with, cannot be sent to other processes ({error}): "
                "keep open files, locks and connections out of it, or take the backend 'threading'."
            ) from None
        head = np.frombuffer(packed.getbuffer(), dtype=np.uint8)
        return cls(head, arrays, uuid4().hex if keep else None)

    @cached_property
    def function(self) -> Callable[..., Any]:
        """The function: what it has computed for one task is there for the next."""
        # Sums over arrays at odd addresses go another way, and may round differently.
        aligned = [np.require(each, requirements="A") for each in self.arrays]
        function: Callable[..., Any] = _Unpacker(self.head, aligned).load()
        return function

    def __call__(self, *task: Any) -> Any:
        return self.function(*task)

    def __reduce__(self) -> tuple[Any, ...]:
        return _received, (self.head, self.arrays, self.key)

    def __sizeof__(self) -> int:  # Ray keeps what is large, and sends the rest with every task
        return self.head.nbytes + sum(each.nbytes for each in self.arrays)


class _Packer(cloudpickle.Pickler):  # type: ignore[misc]
    def __init__(self, file: io.BytesIO, arrays: list[NDArray[Any]]) -> None:
        super().__init__(file)
        self.arrays = arrays

    def persistent_id(self, value: Any) -> int | None:
        large = isinstance(value, np.ndarray) and value.nbytes > LARGE and not value.dtype.hasobject
        if not large:
            return None
        self.arrays.append(value)
        return len(self.arrays) - 1


class _Unpacker(pickle.Unpickler):
    def __init__(self, head: NDArray[np.uint8], arrays: list[NDArray[Any]]) -> None:
        super().__init__(io.BytesIO(head.data))
        self.arrays = arrays

    def persistent_load(self, number: int) -> NDArray[Any]:
        return self.arrays[number]


_last: dict[str, Parcel] = {}  # the parcel that this process received last


def _received(head: NDArray[np.uint8], arrays: list[NDArray[Any]], key: str | None) -> Parcel:
    if key is None:
        return Parcel(head, arrays, key)
    if key not in _last:
        _last.clear()
        _last[key] = Parcel(head, arrays, key)
    return _last[key]
