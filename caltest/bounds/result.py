"""The results of bounds: frozen data."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from caltest._arguments import arguments, flag
from caltest._visible import visible
from caltest.forms import Side
from caltest.results import Result

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True)
class Place:
    """A range of predictions in which the model is proved wrong.

    Attributes
    ----------
    low, high
        Smallest and largest probability in it.
    rows
        Number of rows.
    predicted, observed
        Mean predicted probability, and observed rate of the event.
    somewhere_by
        Some predictions in it are wrong by more than this, not on average: holds for all places
        together.
    pvalue
        That it is wrong there at all: adjusted for all intervals and bounds.
    named
        Whether the summary names it: it overlaps none that says more.
    """

    low: float
    high: float
    rows: int
    predicted: float
    observed: float
    somewhere_by: float
    pvalue: float
    named: bool


@dataclass(frozen=True)
class SideBound:
    """What is proved in one direction: predictions too high, or too low.

    Attributes
    ----------
    side
        "over" (predictions too high) or "under" (too low).
    bound
        The model is wrong by more than this somewhere; 0 if nothing, or no amount, is proved.
    found
        Whether it is proved wrong at all on this side.
    pvalue
        That it is not, multiplied by the number of bounds.
    places
        Where it is wrong, the most telling first.
    """

    side: Side
    bound: float
    found: bool
    pvalue: float
    places: tuple[Place, ...] = field(repr=False)


@dataclass(frozen=True)
class ReliabilityPoints:
    """Reliability in 15 bins of equal width: mean probability, share of events and rows of each."""

    predicted: tuple[float, ...]
    observed: tuple[float, ...]
    rows: tuple[int, ...]


@dataclass(frozen=True)
class ViewBounds:
    """The bounds for one probability, such as that of one class.

    Attributes
    ----------
    event
        What it is the probability of, as a clause.
    lens
        Label of its lens; None for class 1 of two.
    over, under
        What is proved of either side.
    curve
        Its reliability, for pictures.
    """

    event: str
    lens: str | None
    over: SideBound
    under: SideBound
    curve: ReliabilityPoints = field(repr=False)

    @property
    def sides(self) -> tuple[SideBound, SideBound]:
        """Both sides, "over" first."""
        return self.over, self.under


@dataclass(frozen=True, repr=False)
class MiscalibrationBounds(Result):
    """Lower bounds on a model's largest errors, with the ranges of predictions where they occur.

    All amounts are differences of probabilities.

    Attributes
    ----------
    views
        What is proved for each probability: one, or one for each class.
    confidence
        Confidence with which all bounds are correct together.
    level
        The largest probability with which a single bound exceeds the truth.
    n_samples, n_classes, lens, n_resamples, seed, warnings
        As in :class:`caltest.CalibrationResult`; the lens may be "classwise".

    Examples
    --------
    >>> import caltest
    >>> sure = caltest.simulation.tempered(n_samples=300, temperature=0.4, rng=0)
    >>> found = caltest.miscalibration_bounds(sure.probs, sure.labels, rng=0)
    >>> found.over, found.under, found.confidence
    (0.146, 0.0, 0.95)
    >>> place = found.views[0].over.places[0]
    >>> place.rows, round(place.predicted, 2), round(place.observed, 2)
    (76, 0.9, 0.61)
    """

    views: tuple[ViewBounds, ...]
    confidence: float
    level: float
    n_samples: int
    n_classes: int
    lens: str | None
    n_resamples: int
    seed: int
    warnings: tuple[str, ...] = ()

    @property
    def over(self) -> float:
        """Some predictions are more than this too high; 0 if that is not proved."""
        return max(view.over.bound for view in self.views)

    @property
    def under(self) -> float:
        """Some predictions are more than this too low; 0 if that is not proved."""
        return max(view.under.bound for view in self.views)

    @arguments()
    def to_dict(self) -> dict[str, Any]:
        """Return plain data, ready for strict JSON."""
        return {"over": self.over, "under": self.under, **super().to_dict()}

    @arguments()
    def table(self) -> pd.DataFrame:
        """Return a table with a row for each probability and direction.

        Returns
        -------
        pandas.DataFrame
            Columns ``event`` (what the probability is about), ``side``, ``at_least`` (the bound),
            ``found`` and ``pvalue``, as in :class:`SideBound`.
        """
        import pandas as pd

        rows = [
            (visible(view.event), side.side, side.bound, side.found, side.pvalue)
            for view in self.views
            for side in view.sides
        ]
        return pd.DataFrame(rows, columns=["event", "side", "at_least", "found", "pvalue"])

    @arguments(overlapping=flag)
    def where(self, *, overlapping: bool = False) -> pd.DataFrame:
        """Return the ranges of predictions in which the model is wrong, strongest evidence first.

        Parameters
        ----------
        overlapping
            Return all intervals found, not only the most telling ones that do not overlap. Default
            False.

        Returns
        -------
        pandas.DataFrame
            Columns ``event``, ``side``, ``from`` and ``to`` (smallest and largest probability),
            ``rows``, ``says`` (mean probability), ``is`` (share of events), ``somewhere_by`` (by how
            much the model is wrong somewhere in it) and ``pvalue``, as in :class:`Place`.
        """
        import pandas as pd

        found = [
            (visible(view.event), side.side, *(getattr(place, name) for name in _OF_PLACES))
            for view in self.views
            for side in view.sides
            for place in side.places
            if place.named or overlapping
        ]
        columns = ["event", "side", "from", "to", *_OF_PLACES[2:]]
        return pd.DataFrame(found, columns=columns)


_OF_PLACES = ("low", "high", "rows", "predicted", "observed", "somewhere_by", "pvalue")
