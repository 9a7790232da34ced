"""The bounds: frozen, inert."""

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
    """An interval of the score in which the model is wrong.

    Attributes
    ----------
    low, high
        Smallest and largest probability in it.
    rows
        Number of rows.
    says, share
        Mean probability, and share of rows in which the event came true.
    somewhere_by
        Somewhere in it the model is wrong by more than this, not on average: holds for all places
        together.
    pvalue
        That it is wrong there at all: adjusted for all intervals and bounds.
    named
        Whether the summary names it: it overlaps none that says more.
    """

    low: float
    high: float
    rows: int
    says: float
    share: float
    somewhere_by: float
    pvalue: float
    named: bool


@dataclass(frozen=True)
class SideBound:
    """What is proved of one side.

    Attributes
    ----------
    side
        "over" (claims too much) or "under" (claims too little).
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

    says: tuple[float, ...]
    share: tuple[float, ...]
    rows: tuple[int, ...]


@dataclass(frozen=True)
class ViewBounds:
    """The bounds of one probability.

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
    """By how much a model is wrong at least, on which side, and where. All amounts are probabilities.

    Attributes
    ----------
    views
        What is proved of each probability: one, or one for each class.
    confidence
        With which all bounds hold together.
    level
        Chance of one bound to be above its truth.
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
    >>> place.rows, round(place.says, 2), round(place.share, 2)
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
        """Somewhere the model claims more than this too much; 0: not proved."""
        return max(view.over.bound for view in self.views)

    @property
    def under(self) -> float:
        """Somewhere the model claims more than this too little; 0: not proved."""
        return max(view.under.bound for view in self.views)

    @arguments()
    def to_dict(self) -> dict[str, Any]:
        """Return plain data, ready for strict JSON."""
        return {"over": self.over, "under": self.under, **super().to_dict()}

    @arguments()
    def table(self) -> pd.DataFrame:
        """Return a row for each probability and side.

        Returns
        -------
        pandas.DataFrame
            Columns ``event`` (what the probability is about), ``side``, ``at_least`` (the bound),
            ``found`` and ``pvalue``, as in :class:`SideBound`.
        """
        import pandas as pd

        rows = [
            {
                "event": visible(view.event),
                "side": side.side,
                "at_least": side.bound,
                "found": side.found,
                "pvalue": side.pvalue,
            }
            for view in self.views
            for side in view.sides
        ]
        return pd.DataFrame(rows)

    @arguments(overlapping=flag)
    def where(self, *, overlapping: bool = False) -> pd.DataFrame:
        """Return the intervals of the score in which the model is wrong, the most telling first.

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

        columns = ["event", "side", "from", "to", "rows", "says", "is", "somewhere_by", "pvalue"]
        found = [
            (
                visible(view.event),
                side.side,
                p.low,
                p.high,
                p.rows,
                p.says,
                p.share,
                p.somewhere_by,
                p.pvalue,
            )
            for view in self.views
            for side in view.sides
            for p in side.places
            if p.named or overlapping
        ]
        return pd.DataFrame(found, columns=columns)
