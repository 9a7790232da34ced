"""Groups of rows: who belongs where, and the kernel between groups."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from caltest.data.containers import read_table
from caltest.exceptions import InputError, Row
from caltest.kernels import Gaussian, Kernel

Array: TypeAlias = NDArray[np.float64]


@dataclass(frozen=True)
class Equal(Kernel):
    """1 where two values are equal, else 0."""

    def __call__(self, x: Array, y: Array) -> Array:
        return np.equal(x, y.T).astype(np.float64)

    def paired(self, x: Array, y: Array) -> Array:
        return np.equal(x, y)[:, 0].astype(np.float64)

    @property
    def bound(self) -> float:
        return 1.0


@dataclass(frozen=True, eq=False)
class Groups:
    """The group of every row, and the kernel between groups.

    Attributes
    ----------
    values
        The groups as numbers, (n, 1).
    kernel
        A kernel of such numbers.
    """

    values: Array
    kernel: Kernel

    @classmethod
    def of(cls, given: object) -> Groups:
        """Read one column: text, booleans and integers name groups, floats are a quantity.

        Raises
        ------
        InputError
            If it is no column, or an entry is missing or not finite.

        Examples
        --------
        >>> Groups.of(["north", "south", "north"])
        <2, 3 rows>
        >>> Groups.of([18.5, 42.0])
        <quantity, 2 rows>
        """
        values = read_table(given, "groups").values
        if values.ndim == 2 and values.shape[1] == 1:
            values = values[:, 0]
        if values.ndim != 1 or not len(values):
            raise InputError(f"groups has shape {values.shape}; give one column, with an entry a row.")
        if values.dtype.kind != "f":
            _, codes = np.unique(values.astype(str), return_inverse=True)
            return cls(codes.astype(np.float64)[:, None], Equal())
        wrong = np.flatnonzero(~np.isfinite(values))
        if len(wrong):
            raise InputError(
                f"groups has the entry {values[wrong[0]]} in {Row(int(wrong[0]))}; "
                "give finite numbers, or names."
            )
        quantity = values.astype(np.float64)
        quantity -= quantity.min()
        quantity /= quantity.max() or 1.0
        column = quantity[:, None]
        return cls(column, Gaussian("median").fitted(column))

    @property
    def described(self) -> int | str:
        """How many groups, or that they are a quantity."""
        return int(self.values.max()) + 1 if isinstance(self.kernel, Equal) else "quantity"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Groups) and self._key == other._key

    def __hash__(self) -> int:
        return hash(self._key)

    @property
    def _key(self) -> tuple[Kernel, bytes]:
        return self.kernel, self.values.tobytes()

    def __repr__(self) -> str:
        return f"<{self.described}, {len(self.values)} rows>"
