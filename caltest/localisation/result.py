"""The result of a search for places: frozen, inert."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from caltest._arguments import Whole, arguments, flag, level_of_confidence
from caltest._tiles import Array
from caltest._visible import visible
from caltest.results import Result, plain

if TYPE_CHECKING:
    import pandas as pd

_LONG = ("rows", "centres", "values", "standardised", "pvalues", "stated", "shares", "weights")


@dataclass(frozen=True, eq=False)
class Witness(Result):
    """Where which classes are over- and under-predicted. Arrays are read-only.

    A place is a point seen with one kernel: L = points times kernels, kernel by kernel.

    Attributes
    ----------
    rows
        (L,) the row of the data that a place is; −1 for a point given that is none.
    centres
        (L, m) the predictions that the places are.
    kernels
        Name and options of every kernel, its bandwidth for instance.
    values
        (L, m) the witness w, of the rows within reach: positive where a class is under-predicted,
        negative where over-predicted.
    standardised
        (L, m) z, values over their exact standard deviation under H0, with a floor.
    pvalues
        (L, m) in (0, 1], adjusted for all places and classes.
    stated, shares
        (L, m) near the place, weighted means: of the probabilities stated, and of what came true. NaN
        where no row is near.
    weights
        (L,) effective number of rows near, (Σ k)² / Σ k².
    told
        At most five places with a p-value of at most 1 − confidence that say different things, most
        telling first.
    classes
        Names of the classes, if known.
    confidence
        Of all claims together.
    n_samples, n_classes
        Rows, and classes as the lens shows them.
    lens
        Label of the lens; None for the full probability vector.
    n_resamples
        Label draws.
    seed
        Integer that, given as ``rng``, repeats the numbers.
    warnings
        Sentences a reader should know.

    Examples
    --------
    >>> import caltest
    >>> sure = caltest.simulation.tempered(n_samples=300, temperature=0.4, rng=0)
    >>> found = caltest.witness(sure.probs, sure.labels, n_resamples=99, rng=0)
    >>> found.pvalue, len(found.told)
    (0.01, 3)
    >>> place = found.told[0]
    >>> float(found.pvalues[place].min()), int(found.pvalues[place].argmin())
    (0.01, 3)
    """

    rows: NDArray[np.intp] = field(repr=False)
    centres: Array = field(repr=False)
    kernels: tuple[dict[str, Any], ...]
    values: Array = field(repr=False)
    standardised: Array = field(repr=False)
    pvalues: Array = field(repr=False)
    stated: Array = field(repr=False)
    shares: Array = field(repr=False)
    weights: Array = field(repr=False)
    told: tuple[int, ...]
    classes: tuple[str, ...] | None
    confidence: float
    n_samples: int
    n_classes: int
    lens: str | None
    n_resamples: int
    seed: int
    warnings: tuple[str, ...] = ()

    @property
    def n_places(self) -> int:
        """How many places, L."""
        return len(self.weights)

    @property
    def pvalue(self) -> float:
        """The smallest adjusted p-value: an exact one of the model being calibrated."""
        return float(self.pvalues.min())

    @property
    def level(self) -> float:
        """1 − confidence: claims are made where the adjusted p-value is at most this."""
        return level_of_confidence(self.confidence)

    @property
    def names(self) -> tuple[str, ...]:
        """What the classes are called."""
        return self.classes or tuple(f"class {c}" for c in range(self.n_classes))

    @property
    def tested(self) -> tuple[int, ...]:
        """The classes tested: all, of two the second only, as the first mirrors it."""
        return (1,) if self.n_classes == 2 else tuple(range(self.n_classes))

    @arguments()
    def claims(self, place: int) -> tuple[int, ...]:
        """Return the classes tested and significant at a place, the largest |z| first."""
        place = Whole(0, self.n_places - 1)("place", place)
        found = [c for c in self.tested if self.pvalues[place, c] <= self.level]
        return tuple(sorted(found, key=lambda c: (-abs(self.standardised[place, c]), c)))

    @arguments(significant=flag)
    def table(self, *, significant: bool = False) -> pd.DataFrame:
        """Return a row for every place and class tested, the largest |z| first.

        Parameters
        ----------
        significant
            Only those with an adjusted p-value of at most 1 − confidence. Default False: all.

        Returns
        -------
        pandas.DataFrame
            Columns ``place`` (its number), ``row`` (of the data, −1 for a point given), ``kernel`` (its
            number), ``class``, ``weight`` (effective number of rows near), ``stated``, ``share``,
            ``difference`` (share less stated), ``standardised`` and ``adjusted`` p-value.
        """
        import pandas as pd

        chosen = np.zeros(self.pvalues.shape, dtype=bool)
        chosen[:, self.tested] = True
        if significant:
            chosen &= self.pvalues <= self.level
        places, classes = np.nonzero(chosen)
        z = self.standardised[chosen]
        found = pd.DataFrame(
            {
                "place": places,
                "row": self.rows[places],
                "kernel": places // (self.n_places // len(self.kernels)),
                "class": np.array([visible(name) for name in self.names], dtype=object)[classes],
                "weight": self.weights[places],
                "stated": self.stated[chosen],
                "share": self.shares[chosen],
                "difference": self.shares[chosen] - self.stated[chosen],
                "standardised": z,
                "adjusted": self.pvalues[chosen],
            }
        )
        return found.iloc[np.argsort(-np.abs(z), kind="stable")].reset_index(drop=True)

    @arguments(arrays=flag)
    def to_dict(self, *, arrays: bool = False) -> dict[str, Any]:
        """Return plain data, ready for strict JSON: a number that is not finite becomes a string.

        Parameters
        ----------
        arrays
            Include the arrays of all places. Default False: they are long; the places told are
            there with their claims in any case, under ``findings``.
        """
        return self._plain(*(() if arrays else _LONG)) | {
            "pvalue": self.pvalue,
            "n_places": self.n_places,
            "findings": [self._finding(place) for place in self.told],
        }

    def _finding(self, place: int) -> dict[str, Any]:
        claims = [
            {
                "class": self.names[c],
                "stated": float(self.stated[place, c]),
                "share": float(self.shares[place, c]),
                "standardised": float(self.standardised[place, c]),
                "pvalue": float(self.pvalues[place, c]),
            }
            for c in self.claims(place)
        ]
        return {
            "place": place,
            "row": int(self.rows[place]),
            "centre": plain(self.centres[place]),
            "weight": float(self.weights[place]),
            "claims": claims,
        }
