"""What every predicted distribution promises, and the sample of its outcomes."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar, TypeAlias

import numpy as np
from numpy.typing import NDArray

from caltest._sampling import OutcomeSampler
from caltest.data import check_index
from caltest.exceptions import InputError

Array: TypeAlias = NDArray[np.float64]


class Predictive(ABC):
    """n predicted distributions of numbers, or of vectors of d numbers; not to be changed once made."""

    #: What was done to the input and is worth telling.
    notes: tuple[str, ...] = ()
    #: There are none; as an attribute of predictions of any kind.
    n_classes: ClassVar[None] = None
    #: What the parameters were read from: outcomes in another order of rows are recognised.
    _given: object = None

    @property
    @abstractmethod
    def n_samples(self) -> int:
        """Number of rows, n."""

    @property
    @abstractmethod
    def dimension(self) -> int | None:
        """Number of entries d of an outcome that is a vector; None if it is a number."""

    @abstractmethod
    def entropy(self) -> Array:
        """Return the (n,) entropies, in nats."""

    @abstractmethod
    def log_density(self, outcomes: Array) -> Array:
        """Return the logarithms (…, n) of density or probability at outcomes (…, n) or (…, n, d)."""

    @abstractmethod
    def draw(self, rng: np.random.Generator, size: int) -> Array:
        """Return ``size`` outcomes of every row, (size, n) or (size, n, d)."""

    def sampler(self, seed: int) -> OutcomeSampler:
        """Prepare to draw outcomes from ``seed``."""
        return OutcomeSampler(self.draw, self.n_samples * (self.dimension or 1), seed)

    def impossible(self, outcomes: Array) -> NDArray[np.intp]:
        """Return the rows whose outcome has density 0."""
        return np.flatnonzero(self.log_density(outcomes) == -np.inf)

    def chance(self, outcomes: Array) -> float:
        """Return a lower limit of the probability of the outcomes: a density promises none."""
        return 0.0

    def outcomes(self, values: object) -> Array:
        """Check outcomes, and return them as (n,) or (n, d).

        Raises
        ------
        InputError
            If they are not as many finite numbers as the predictions are about.
        """
        check_index(self._given, values, "predictions", "outcomes")
        n, d = self.n_samples, self.dimension
        wanted = (n,) if d is None else (n, d)
        array = numbers("the outcomes", values)
        if array.ndim == 2 and array.shape[1] == 1 and d is None:
            array = array[:, 0]
        if array.ndim == 1 and d == 1:
            array = array[:, None]
        if array.shape != wanted:
            raise InputError(
                f"the outcomes have shape {np.shape(array)}, and the predictions are about {wanted}; "
                "give one outcome a row."
            )
        return array


@dataclass(frozen=True, eq=False)
class PredictiveSample:
    """Predicted distributions with the outcomes that came true.

    Attributes
    ----------
    rows
        What the model said, of n rows.
    labels
        The outcomes, (n,) or (n, d).
    """

    rows: Predictive
    labels: Array


def numbers(what: str, values: object) -> Array:
    """Return finite float64 numbers."""
    try:
        read: Any = np.ma.array(values)  # a masked entry is missing
        if read.dtype.kind == "c":
            raise TypeError
        array = np.array(np.ma.filled(read.astype(np.float64), np.nan))
    except Exception:  # what calls itself an array may raise anything
        raise InputError(
            f"{what} could not be read as an array of real numbers; give numbers."
        ) from None
    broken = np.argwhere(~np.isfinite(array))
    if len(broken):
        place = tuple(int(i) for i in broken[0])
        raise InputError(
            f"{what} holds {array[place]} in row {place[0] if place else 0} (counting from 0); "
            "give finite numbers, and leave rows without an outcome out."
        )
    array.flags.writeable = False
    return array
