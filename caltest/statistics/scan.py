"""Signed errors where they are largest: a scan over intervals of the score, and over bins."""

from __future__ import annotations

from dataclasses import dataclass, field, fields, replace
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from caltest._arguments import arguments, choose
from caltest._tail import Alternative
from caltest.binning import Binning, EqualMass
from caltest.data import Predictions
from caltest.forms import Intervals, LargestError, Side
from caltest.statistics.base import Statistic
from caltest.statistics.ece import two_classes

_SIDES = {"over": "over", "under": "under", "both": None}


@dataclass(frozen=True)
class _LargestSigned(Statistic):
    side: str = "both"

    growth: ClassVar[float | None] = None  # the 1 under the sum counts less, the more rows there are
    default_lens: ClassVar[str | None] = "top_label"
    monotone: ClassVar[bool] = True

    def __post_init__(self) -> None:
        choose("side", self.side, _SIDES)

    def one_sided(self, side: Side) -> tuple[Statistic, Alternative]:
        """Return the statistic of one side: large values count."""
        return replace(self, side=side), "greater"

    def given(self, predictions: Predictions) -> LargestError:
        """Fix the predictions and their intervals."""
        return self.given_shifted(predictions, predictions)

    def given_shifted(self, predictions: Predictions, shifted: Predictions) -> LargestError:
        """Fix the intervals by the predictions, and what is expected in them by shifted ones."""
        two_classes(self, predictions)
        return LargestError(shifted.probs, self._intervals(predictions), self._side)

    def _intervals(self, predictions: Predictions) -> Intervals:
        raise NotImplementedError

    @property
    def _side(self) -> Side | None:
        return _SIDES[self.side]  # type: ignore[return-value]

    @property
    def parameters(self) -> dict[str, Any]:
        """Which errors count."""
        return {"side": self.side}


@arguments()
@dataclass(frozen=True)
class Scan(_LargestSigned):
    """Scan of the scores: the largest standardised error of any stretch of them, of two classes.

    T = max_I Σ_{i in I} (p_i − y_i) / (√(Σ_I p_i (1 − p_i)) + 1), over intervals I of n, n/2, n/4, …
    rows in the order of p, each overlapping the next by half, down to 64 rows and n/64 (of more than
    65 536 rows, 1024 and n/256). Equal scores stay together. No bins are chosen: errors of any length
    are seen, where they are. More than two classes are seen through the lens "top_label".

    Parameters
    ----------
    side
        "over" counts where the model claims too much (the event comes true less often than said),
        "under" where it claims too little, "both" (default) either. With a ``tolerance``,
        :func:`caltest.test` sets it to the side that is tested.

    Raises
    ------
    InputError
        If there is no such side, or there are more than two classes.

    Notes
    -----
    On one side T moves one way in every label, and so can test whether the model is wrong by more
    than a tolerance, and bound its largest error (:func:`caltest.miscalibration_bounds`).

    References
    ----------
    Dümbgen and Spokoiny, "Multiscale testing of qualitative hypotheses", Annals of Statistics 29
    (2001), for scans over all scales; the intervals here are a coarse net of them.

    Examples
    --------
    Of 60 rows that say 0.5, 15 came true: (30 − 15)/(√15 + 1).

    >>> import caltest
    >>> round(caltest.estimate([0.5] * 60, [1] * 15 + [0] * 45, "scan"), 6)
    3.078196
    """

    name: ClassVar[str] = "scan"
    measures: ClassVar[str] = "largest standardised error of any stretch of the scores"

    def _intervals(self, predictions: Predictions) -> Intervals:
        return Intervals.dyadic(predictions.probs[:, 1])


@arguments()
@dataclass(frozen=True)
class LargestBinError(_LargestSigned):
    """The largest standardised signed error of a bin, of two classes: "scan" with bins of one's own.

    T = max_b Σ_{i in b} (p_i − y_i) / (√(Σ_b p_i (1 − p_i)) + 1).

    Parameters
    ----------
    side
        As in :class:`Scan`.
    binning
        A binning of :mod:`caltest.binning`. Default ``EqualMass(10)``: bins that can err alike.

    Raises
    ------
    InputError
        If there is no such side, the binning is none, or there are more than two classes.

    Examples
    --------
    Of 60 rows that say 0.5, 15 came true: (30 − 15)/(√15 + 1).

    >>> import caltest
    >>> round(caltest.estimate([0.5] * 60, [1] * 15 + [0] * 45, "max_bin"), 6)
    3.078196
    """

    binning: Binning = field(default_factory=lambda: EqualMass(10))

    name: ClassVar[str] = "max_bin"
    measures: ClassVar[str] = "largest standardised error of a bin"

    def _intervals(self, predictions: Predictions) -> Intervals:
        cells: NDArray[np.intp] = self.binning.cells(predictions.probs)
        return Intervals.of_cells(cells)

    @property
    def parameters(self) -> dict[str, Any]:
        """Which errors count, the binning and its options."""
        binning: Any = self.binning
        options = {each.name: getattr(binning, each.name) for each in fields(binning)}
        return {"side": self.side, "binning": type(binning).__name__, **options}
