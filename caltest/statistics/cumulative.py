"""Statistics along the order of the scores: Kolmogorov–Smirnov, Kuiper, scans."""

from __future__ import annotations

from dataclasses import field, replace
from typing import Any, ClassVar, Self

import numpy as np

from caltest._arguments import choose, options
from caltest.binning import Binning, EqualMass
from caltest.data import Rows
from caltest.forms import CumulativeDifference, GriddedDifference, Intervals, LargestError
from caltest.forms.base import Array
from caltest.statistics.base import Listed

# ------------------------------------------------------------------ cumulative

#: Cells of scores where rows are too many to be sorted.
_GRID = 1024


@options()
class _InOrder(Listed, takes_weights=True):
    _edges: Array | None = field(default=None, repr=False, compare=False, kw_only=True)

    def fitted(self, predictions: Rows) -> Self:
        """Of parts, look at C at quantiles of a sample of the scores only: all are too many to sort."""
        scores = self.probability(predictions)
        if predictions.part_of is None:
            return self
        shares = np.arange(1, _GRID) / _GRID
        return replace(self, _edges=np.unique(np.quantile(scores, shares, method="inverted_cdf")))

    def given(self, predictions: Rows) -> CumulativeDifference | GriddedDifference:
        """Fix the predictions and their order."""
        scores, weights, edges = self.probability(predictions), predictions.weights, self._edges
        how: Any = self.how
        if edges is None:
            return CumulativeDifference(scores, how, weights)
        cells, whole = np.searchsorted(edges, scores, side="left"), predictions.whole.total
        return GriddedDifference(scores, cells, len(edges) + 1, weights, whole, how)


class KolmogorovSmirnov(_InOrder, row="ks"):
    """Kolmogorov–Smirnov calibration error: the largest cumulative difference, for two classes.

    max_x |C(x)|, C(x) = n⁻¹ Σ_{p_i ≤ x} (y_i − p_i).

    Errors of the rows below a score are added up and divided by n; the statistic is the largest
    absolute value over all scores, in units of probability, not standardised. There is nothing to
    choose, and an error is weighted by the share of rows that have it. Tied scores are one step.
    With two classes, using the other class's probability gives a different value, because C then
    starts at the other end; :class:`Kuiper` gives the same.
    With more than two classes, the top class is tested (the lens "top_label").

    Raises
    ------
    InputError
        If there are more than two classes and the lens leaves them so.

    References
    ----------
    Gupta, Rahimi, Ajanthan, Mensink, Sminchisescu, Hartley, "Calibration of neural networks using
    splines", ICLR 2021; Arrieta-Ibarra, Gujral, Tannen, Tygert, Xu, "Metrics of calibration for
    probabilistic predictions", JMLR 23 (2022): ECCE-MAD.

    Examples
    --------
    C is 0.15 after the rows of 0.2 and −0.05 after those of 0.9:

    >>> import caltest
    >>> round(caltest.estimate([0.2, 0.2, 0.9, 0.9], [0, 1, 1, 0], "ks"), 6)
    0.15
    """


class Kuiper(_InOrder, row="kuiper"):
    """Kuiper calibration error: the range of the cumulative differences, for two classes.

    max_x C(x) − min_x C(x), with C as in :class:`KolmogorovSmirnov`, and C = 0 at the start.

    Errors of the rows between two scores are added up and divided by n; the statistic is the
    largest absolute value over all pairs of scores, in units of probability, not standardised. It
    is at least the Kolmogorov–Smirnov error and at most twice that, and detects errors of opposite
    signs better. Both of two classes give the same value. Ties and lens as in
    :class:`KolmogorovSmirnov`.

    Raises
    ------
    InputError
        If there are more than two classes and the lens leaves them so.

    References
    ----------
    Arrieta-Ibarra, Gujral, Tannen, Tygert, Xu, "Metrics of calibration for probabilistic
    predictions", JMLR 23 (2022): ECCE-R.

    Examples
    --------
    C is 0.15 after the rows of 0.2 and −0.05 after those of 0.9:

    >>> import caltest
    >>> round(caltest.estimate([0.2, 0.2, 0.9, 0.9], [0, 1, 1, 0], "kuiper"), 6)
    0.2
    """


# ------------------------------------------------------------------ scan


_SIDES = {"over": "over", "under": "under", "both": None}


@options()
class _LargestSigned(Listed, takes_weights=True):
    side: str = "both"

    reported: ClassVar[tuple[str, ...]] = ("side",)

    def __post_init__(self) -> None:
        choose("side", self.side, _SIDES)

    def _largest(self, predictions: Rows, intervals: Intervals) -> LargestError:
        scores, w = self.probability(predictions), predictions.weights
        # The 1 under the sum is a row of average weight.
        side: Any = _SIDES[self.side]
        return LargestError(scores, intervals, side, w / w.mean())


class Scan(_LargestSigned, row="scan"):
    """Scan statistic: the largest standardised error of any range of predictions, for two classes.

    T = max_I Σ_{i in I} (p_i − y_i) / (√(Σ_I p_i (1 − p_i)) + 1), over intervals I of n, n/2, n/4, …
    rows in the order of p, each overlapping the next by half, down to 64 rows and n/64 (of more than
    65 536 rows, 1024 and n/256). Equal scores stay together. No bins are chosen: errors of any length
    are seen, where they are.
    With more than two classes, the top class is tested (the lens "top_label").

    Parameters
    ----------
    side
        Which errors to look for: "over" (predictions too high: the event is observed less often
        than predicted), "under" (too low) or "both" (default). With a ``tolerance``,
        :func:`caltest.test` sets it to the side that is tested.

    Raises
    ------
    InputError
        If there is no such side, or there are more than two classes.

    Notes
    -----
    With one side, T is monotone in every label. So it can test whether the model is wrong by more
    than a tolerance, and bound its largest error (:func:`caltest.miscalibration_bounds`).

    References
    ----------
    Dümbgen and Spokoiny, "Multiscale testing of qualitative hypotheses", Annals of Statistics 29
    (2001), for scans over all scales; the intervals here are a coarse net of them.

    Examples
    --------
    Of 60 rows predicted at 0.5, 15 have the event: (30 − 15)/(√15 + 1).

    >>> import caltest
    >>> round(caltest.estimate([0.5] * 60, [1] * 15 + [0] * 45, "scan"), 6)
    3.078196
    """

    def given(self, predictions: Rows) -> LargestError:
        """Fix the predictions and their intervals."""
        return self._largest(predictions, Intervals.dyadic(self.probability(predictions)))


@options()
class LargestBinError(_LargestSigned, row="max_bin"):
    """Largest standardised error of any bin, for two classes: like "scan", with bins you choose.

    T = max_b Σ_{i in b} (p_i − y_i) / (√(Σ_b p_i (1 − p_i)) + 1).

    Parameters
    ----------
    side
        As in :class:`Scan`.
    binning
        A binning of :mod:`caltest.binning`. Default ``EqualMass(10)``: bins of equal weight.

    Raises
    ------
    InputError
        If there is no such side, the binning is none, or there are more than two classes.

    Examples
    --------
    Of 60 rows predicted at 0.5, 15 have the event: (30 − 15)/(√15 + 1).

    >>> import caltest
    >>> round(caltest.estimate([0.5] * 60, [1] * 15 + [0] * 45, "max_bin"), 6)
    3.078196
    """

    binning: Binning = field(default_factory=lambda: EqualMass(10))

    reported = ("side", "binning")

    def given(self, predictions: Rows) -> LargestError:
        """Fix the predictions and their bins."""
        return self._largest(predictions, Intervals.of_cells(self.binning.cells(predictions)))
