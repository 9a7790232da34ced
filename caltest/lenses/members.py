"""Lenses of members that are vectors: one number of each, whose place in its pool is the vector's.

All of them see the same places, so that answers over entries, pairs and ranks are exact together.
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from caltest._arguments import arguments, choose
from caltest._visible import quoted
from caltest.data import Rows
from caltest.exceptions import InputError
from caltest.laws import Pool, Pools
from caltest.lenses.base import ALL, Array, Lens, View
from caltest.lenses.numbers import Distribution, OfNumbers


class OfVectors(OfNumbers):
    """A lens of members that are vectors: a number of each, seen through a lens of numbers."""

    of_vectors = True

    @property
    def inner(self) -> Lens:
        """What looks at the number."""
        return Distribution()

    @abstractmethod
    def _values(self, law: Pools) -> Array:
        """Return the numbers of all that the pools hold, (n, N)."""

    def show(self, predictions: Rows) -> View:
        """Return the view of the number, and what places are in it."""
        self.check(predictions)
        law = predictions.law
        if not isinstance(law, Pools):
            raise InputError(
                f"the lens {quoted(self.label)} is for members that are vectors, and these are "
                f"{law.about} that are numbers; give a lens such as 'interval:0.9'."
            )
        values = self._values(law)
        view = self.inner.show(predictions.shown_as(Pool(np.sort(values, axis=1))))
        table = np.ascontiguousarray(view.seen(values.T).swapaxes(0, 1)).reshape(*values.shape, -1)
        unit = 1.0
        if table.dtype.kind == "f":  # ranks, which are counts of the pool
            table = np.rint(table * law.size).astype(np.min_scalar_type(law.size))
            unit = 1.0 / law.size
        return View(view.rows, partial(_placed, table, unit), self.label)

    def _of_law(self, predictions: Rows, law: Any) -> View:
        return self.show(predictions)


def _placed(
    table: NDArray[Any], unit: float, outcomes: NDArray[Any], rows: slice = ALL
) -> NDArray[Any]:
    """Return what a table (n, N, K) has at places (…, r) of rows; without the last axis if K is 1."""
    from caltest.loops import rows as _loops

    own, flat = table[rows], np.atleast_2d(outcomes)
    found = np.empty((*flat.shape, table.shape[2]), np.uint8 if unit == 1.0 else np.float64)
    _loops.at_places(own, flat, unit, found)
    return found.reshape(outcomes.shape if table.shape[2] == 1 else (*outcomes.shape, table.shape[2]))


@arguments()
@dataclass(frozen=True)
class Entry(OfVectors):
    """Of vectors: one entry, such as a parameter or a horizon, seen through a lens of numbers.

    Parameters
    ----------
    entry
        Its name among those of the members.
    within
        A lens of numbers. Default None, "distribution": where the entry lies among the members'.

    Examples
    --------
    >>> import numpy as np, caltest
    >>> rng = np.random.default_rng(0)
    >>> draws = caltest.predictive.Members(rng.normal(size=(200, 19, 2)), names=["mu", "tau"])
    >>> truth = rng.normal(0.0, [1.0, 2.0], size=(200, 2))
    >>> caltest.test(draws, truth, "spread", lens="entry:tau", rng=0).pvalue
    0.002
    """

    entry: str
    within: Lens | None = None

    claim: ClassVar[str] = "the entry follows its members"

    @property
    def inner(self) -> Lens:
        """What looks at the entry."""
        return self.within or Distribution()

    @property
    def label(self) -> str:
        """Its name, and what looks at it."""
        return f"entry:{self.entry}/{self.inner.label}"

    def _values(self, law: Pools) -> Array:
        choose("entry", self.entry, dict.fromkeys(law.names))
        return law.entry(self.entry)


@arguments()
@dataclass(frozen=True)
class Pair(OfVectors):
    """Of vectors: how two entries go together: the product of both, less their means in the pool.

    Through it "bias" is above 0 where predicted correlations are too high, below 0 where too low.

    Parameters
    ----------
    first, second
        Names of entries.

    Examples
    --------
    >>> import numpy as np, caltest
    >>> rng = np.random.default_rng(0)
    >>> draws = caltest.predictive.Members(rng.normal(size=(300, 19, 2)), names=["a", "b"])
    >>> truth = rng.multivariate_normal([0, 0], [[1, 0.8], [0.8, 1]], size=300)
    >>> caltest.test(draws, truth, "bias", lens="pair:a,b", rng=0).pvalue
    0.002
    """

    first: str
    second: str

    claim: ClassVar[str] = "two entries go together as those of the members do"

    @property
    def label(self) -> str:
        """Both names."""
        return f"pair:{self.first},{self.second}"

    def _values(self, law: Pools) -> Array:
        for each in (self.first, self.second):
            choose("entry", each, dict.fromkeys(law.names))
        pair = (law.entry(each) for each in (self.first, self.second))
        one, other = (values - values.mean(axis=1, keepdims=True) for values in pair)
        return np.asarray(one * other)


@arguments()
@dataclass(frozen=True)
class VectorRanks(OfVectors):
    """Of vectors: how far out in the pool a whole vector lies.

    Parameters
    ----------
    by
        "average": the mean rank of its entries; outcomes that lie too high give too few low ranks, and
        too weak predicted dependence too many at both ends. "band_depth": how central its entries are,
        Σ_k (N − r_k)(r_k − 1); too narrow predictions give too many low ones.

    References
    ----------
    Thorarinsdottir, Scheuerer, Heinz, "Assessing the calibration of high-dimensional ensemble forecasts
    using rank histograms", Journal of Computational and Graphical Statistics 25 (2016), Equations 7 and
    8.

    Examples
    --------
    >>> import numpy as np, caltest
    >>> rng = np.random.default_rng(0)
    >>> draws = caltest.predictive.Members(rng.normal(size=(300, 9, 4)))
    >>> truth = rng.normal(0.0, 1.4, size=(300, 4))
    >>> caltest.test(draws, truth, "bias", lens="ranks:band_depth", rng=0).pvalue
    0.002
    """

    by: str

    claim: ClassVar[str] = "vectors lie as far out as their members do"

    def __post_init__(self) -> None:
        choose("ranks", self.by, dict.fromkeys(("average", "band_depth")))

    @property
    def label(self) -> str:
        """Which ranks."""
        return f"ranks:{self.by}"

    def _values(self, law: Pools) -> Array:
        found = np.zeros(law.pool.shape[:2])
        for name in law.names:
            values = law.entry(name)
            shares = np.stack(Pool(np.sort(values, axis=1)).cdf(values.T)).swapaxes(1, 2)
            below, upto = np.rint(shares * law.size)
            found += below + upto if self.by == "average" else (law.size - upto) * below + upto - below
        return found
