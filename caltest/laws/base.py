"""A law: what was predicted of n rows, a distribution of the outcome each."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

Array: TypeAlias = NDArray[np.float64]
#: What was observed: numbers of classes, or numbers or vectors.
Outcomes: TypeAlias = NDArray[Any]


class Sampler(Protocol):
    """Draws outcomes on the grid of seeds, see :mod:`caltest.sampling`."""

    @property
    def seed(self) -> int:
        """The seed of the grid."""
        ...

    @property
    def block(self) -> int:
        """Draws in a block of the grid."""
        ...

    def draw(self, start: int, stop: int) -> Outcomes:
        """Return draws ``start`` (a multiple of the block) to ``stop``, (stop − start, n)."""
        ...


class Law(ABC):
    """What was predicted of n rows; immutable.

    It can be drawn from, and that is all that an exact null needs. What more a law can (chances of
    classes, a density) the statistics ask of it that need it: `Statistic.laws` says of which laws a
    statistic can be.
    """

    #: What the predictions are, as messages say it.
    about: str = "distributions of numbers"
    #: What was done to the input and is worth telling.
    notes: tuple[str, ...] = ()
    #: Number of classes m; None if outcomes are no classes.
    n_classes: int | None = None
    #: What the parameters were read from: outcomes in another order of rows are recognised.
    given: object = None

    @property
    @abstractmethod
    def n_samples(self) -> int:
        """Number of rows, n."""

    @abstractmethod
    def take(self, rows: Any) -> Law:
        """Return the law of some rows."""

    @abstractmethod
    def sampler(self, seed: int, first: int = 0) -> Sampler:
        """Prepare to draw from ``seed``; of rows that start with block ``first`` of many."""

    @abstractmethod
    def impossible(self, outcomes: Outcomes) -> NDArray[np.bool_]:
        """Say in which rows the outcome could not be."""

    @abstractmethod
    def chance(self, outcomes: Outcomes) -> float:
        """Return the probability of all the outcomes, or what it is at least."""

    def outcomes(self, values: Any) -> Outcomes:
        """Check what was observed, as a user gives it."""
        return np.asarray(values)

    @abstractmethod
    def observed(self, outcomes: Outcomes) -> Outcomes:
        """Return outcomes that were checked, read-only, of the law's own type."""


def read_only(array: np.ndarray, dtype: Any) -> np.ndarray:
    """Return a view of an array that cannot be written to."""
    view = np.ascontiguousarray(array, dtype=dtype).view()
    view.flags.writeable = False
    return view
