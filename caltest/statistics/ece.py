"""Binned and smoothed calibration errors, of one number of bins or of many; scans of ranges."""

from __future__ import annotations

from dataclasses import field
from itertools import pairwise
from typing import ClassVar, Self, cast, get_args

import numpy as np

from caltest._arguments import OneOf, Whole, among, changed, options
from caltest.binning import Binning, EqualMass, EqualWidth, ScoreBinning, Uniform, intervals
from caltest.data import Rows
from caltest.forms import BinnedDistance, BinnedSquares, Intervals, LargestError
from caltest.forms.base import Array
from caltest.forms.cells import ClassBins, Distance, MultiscaleBins, SmoothedResiduals
from caltest.forms.paths import RisingBins
from caltest.scores import Cells
from caltest.statistics.base import AllRowsNeededError, Listed

# ------------------------------------------------------------------ ece

_distance = among(*get_args(Distance))


@options()
class _Binned(Listed):
    binning: Binning | None = None

    reported: ClassVar[tuple[str, ...]] = ("binning",)

    def fitted(self, predictions: Rows) -> Self:
        """Choose the default binning by the number of classes.

        For rows in parts, one probability can be binned; bins of equal mass then come from a sample.
        """
        default = EqualWidth(15) if predictions.n_classes == 2 else Uniform(10)
        found = self if self.binning is not None else changed(self, binning=default)
        if predictions.part_of is None:
            return found
        binning = found.binning
        if predictions.n_classes > 2 or not isinstance(binning, ScoreBinning):
            raise AllRowsNeededError(f"bins of {type(binning).__name__} are found in all rows.")
        return changed(found, _fit=binning.edges_of(predictions.probs[:, 1], predictions.weights)[1:-1])

    def _bins(self, predictions: Rows) -> tuple[Array, Cells, int, Array, float]:
        """Return the arguments that all binned forms start with."""
        probs, weights = predictions.probs, predictions.weights
        if self._fit is None:
            cells = cast("Binning", self.fitted(predictions).binning).cells(predictions)
            return probs, cells, int(cells.max()) + 1, weights, predictions.whole.total
        cells = np.searchsorted(self._fit, probs[:, 1], side="left")
        return probs, cells, len(self._fit) + 1, weights, predictions.whole.total


@options(distance=_distance)
class _Distance(_Binned, takes_weights=True):
    distance: Distance = "tv"

    reported = ("binning", "distance")

    def given(self, predictions: Rows) -> BinnedDistance:
        """Return the form for these predictions and their bins."""
        return BinnedDistance(*self._bins(predictions), self.distance, self.how == "largest size")


class ECE(_Distance, row="ece"):
    """Expected calibration error: the mean difference between predicted and observed, over bins.

    ECE = Σ_b |b|/n · d(mean one-hot label in b, mean prediction in b).

    Parameters
    ----------
    binning : Binning, optional
        A binning of :mod:`caltest.binning`. Default ``EqualWidth(15)`` for two classes (a lens makes
        two), ``Uniform(10)`` on the simplex otherwise: the literature's.
    distance : {"tv", "l1", "l2", "sqeuclidean"}, default "tv"
        "tv" (default; for two classes it is the usual |accuracy − confidence|), "l1", "l2" or
        "sqeuclidean".

    Raises
    ------
    InputError
        If the distance is not one of these, or the binning does not fit the number of classes.

    References
    ----------
    Guo et al. 2017 (top label); Vaicenavicius et al. 2019; Widmann et al. 2019, Equation 3.

    Examples
    --------
    >>> import caltest
    >>> round(caltest.estimate([0.2, 0.2, 0.9, 0.9], [0, 1, 1, 1], "ece"), 6)
    0.2
    """


class MCE(_Distance, row="mce"):
    """Maximum calibration error: the largest difference between predicted and observed in any bin.

    Parameters
    ----------
    binning : Binning, optional
        As in :class:`ECE`.
    distance : {"tv", "l1", "l2", "sqeuclidean"}, default "tv"
        As in :class:`ECE`.

    References
    ----------
    Naeini, Cooper, Hauskrecht 2015.

    Examples
    --------
    >>> import caltest
    >>> round(caltest.estimate([0.2, 0.2, 0.9, 0.9], [0, 1, 1, 1], "mce"), 6)
    0.3
    """


@options(distance=_distance)
class ACE(ECE, row="ace"):
    """Adaptive calibration error: the ECE with equally filled bins, for two classes.

    With more than two classes, the top class is tested (the lens "top_label") unless you choose
    another lens.

    Parameters
    ----------
    binning : Binning, default ``EqualMass(15)``
        Default ``EqualMass(15)``; equal scores stay together.
    distance : {"tv", "l1", "l2", "sqeuclidean"}, default "tv"
        As in :class:`ECE`.

    References
    ----------
    Nixon et al. 2019.

    Examples
    --------
    >>> import caltest
    >>> round(caltest.estimate([0.2, 0.2, 0.9, 0.9], [0, 1, 1, 1], "ace"), 6)
    0.2
    """

    binning: Binning | None = field(default_factory=lambda: EqualMass(15))


class SquaredECE(_Binned, row="ece_squared"):
    """Squared ECE: the mean squared difference between predicted and observed, over bins.

    Σ_b |b|/n · ‖mean one-hot label in b − mean prediction in b‖², a quadratic form in the labels.

    For two classes, it is the squared error of the one probability (half the squared norm).

    Parameters
    ----------
    binning : Binning, optional
        As in :class:`ECE`.

    References
    ----------
    Kumar, Liang, Ma 2019 (its square root, for the top label).

    Examples
    --------
    >>> import caltest
    >>> round(caltest.estimate([0.2, 0.2, 0.9, 0.9], [0, 1, 1, 1], "ece_squared"), 6)
    0.05
    """

    def given(self, predictions: Rows) -> BinnedSquares:
        """Return the form for these predictions and their bins."""
        return BinnedSquares(*self._bins(predictions), debiased=self.name == "ece_debiased")


class DebiasedECE(SquaredECE, row="ece_debiased"):
    """Squared ECE, corrected for its upward bias.

    The estimated variance of a bin's mean label, Σ_k ȳ_k (1 − ȳ_k)/(|b| − 1), is subtracted from its
    squared error. The result is unbiased for the squared error of the binned predictions, and may be
    negative. A bin of one row has no such estimate and contributes 0. Two classes
    are handled as in :class:`SquaredECE`.

    Parameters
    ----------
    binning : Binning, optional
        As in :class:`ECE`.

    References
    ----------
    Kumar, Liang, Ma, "Verified uncertainty calibration", NeurIPS 2019, Section 5.

    Examples
    --------
    >>> import caltest
    >>> round(caltest.estimate([0.2, 0.2, 0.9, 0.9], [0, 1, 1, 1], "ece_debiased"), 6)
    -0.075
    """


# ------------------------------------------------------------------ class by class


_BINNING = OneOf("caltest.binning:ScoreBinning", "give a binning of one score, such as EqualWidth(15)")


@options(binning=_BINNING)
class ClasswiseECE(Listed, row="classwise_ece"):
    """Class-wise ECE: the mean over the classes of the binned error of each class's probability.

    (1/m) Σ_k Σ_b |b|/n · |share of class k in b − mean predicted probability of k in b|, where
    every class k has bins b of its own.

    With many classes most predictions are near 0, and so is the mean over the classes: compare it with
    that of other models of the same classes only.

    Parameters
    ----------
    binning : ScoreBinning, default ``EqualWidth(15)``
        Bins of each class's probability. Default ``EqualWidth(15)``, the literature's;
        ``EqualMass(15)`` for the adaptive error of Nixon et al.

    Raises
    ------
    InputError
        If the binning is not one of a single score.

    References
    ----------
    Kull, Perello-Nieto, Kängsepp, Silva Filho, Song, Flach, "Beyond temperature scaling", NeurIPS
    2019, Equation 4; Nixon, Dusenberry, Zhang, Jerfel, Tran, "Measuring calibration in deep learning",
    2019: static calibration error.

    Examples
    --------
    Class 0 is predicted 60% and observed half the time, class 1 30% and half, class 2 10% and never.

    >>> import caltest
    >>> round(caltest.estimate([[0.6, 0.3, 0.1]] * 4, [0, 1, 0, 1], "classwise_ece"), 6)
    0.133333
    """

    binning: ScoreBinning = field(default_factory=EqualWidth)

    reported = ("binning",)

    def fitted(self, predictions: Rows) -> Self:
        """Find the bins of every class; for rows in parts, from a sample."""
        columns, weights = predictions.probs.T, predictions.weights
        return changed(self, _fit=tuple(self.binning.edges_of(p, weights) for p in columns))

    def given(self, predictions: Rows) -> ClassBins:
        """Return the form for these predictions and their bins."""
        probs, edges = predictions.probs, self._fit or self.fitted(predictions)._fit
        cells = np.stack([intervals(*each) for each in zip(probs.T, edges, strict=True)], axis=1)
        count, total = max(map(len, edges)) - 1, predictions.n_classes * predictions.whole.total
        return ClassBins(probs, cells, count, predictions.weights, total, "l1", maximum=False)


# ------------------------------------------------------------------ as many bins as rise


@options(norm=Whole(1, 2, "give 1 or 2", "give 1 or 2"))
class ECESweep(Listed, row="ece_sweep"):
    """ECE sweep: a binned error whose number of bins is chosen by the labels, for two classes.

    (Σ_b |b|/n · |observed rate − mean prediction|^q)^(1/q), over bins of equal numbers of rows.

    The number of bins grows from 2 as long as the observed rate nowhere falls from one bin to the next;
    the last such number is used, and 1 bin if the rate falls from the first of 2 to the second. The
    search is done anew for every drawn label set, so the p-value is exact. With more than two classes,
    the top class is tested (the lens "top_label").

    Parameters
    ----------
    norm : int, default 2
        q, 1 or 2. Default 2, the source's.

    Raises
    ------
    InputError
        If ``norm`` is neither, or there are more than two classes and the lens leaves them so.

    Notes
    -----
    Bins are those of :class:`~caltest.binning.EqualMass`: equal predictions stay in one bin, which the
    source splits by the order of the rows. There are at most as many as rows. A file is read whole.

    References
    ----------
    Roelofs, Cain, Shlens, Mozer, "Mitigating bias in calibration error estimation", AISTATS 2022.

    Examples
    --------
    Rates rise over 2 bins, 0.5 and 1, but not over 3.

    >>> import caltest
    >>> from caltest.statistics import ECESweep
    >>> round(caltest.estimate([0.1, 0.2, 0.7, 0.9], [1, 0, 1, 1], ECESweep(norm=1)), 6)
    0.275
    """

    norm: int = 2

    reported = ("norm",)

    def given(self, predictions: Rows) -> RisingBins:
        """Return the form for these predictions and their order."""
        return RisingBins(self.probability(predictions), predictions.weights, self.norm)


# ------------------------------------------------------------------ smooth ece


@options(grid=Whole(1, 1_000_000))
class SmoothECE(Listed, row="smooth_ece"):
    """Smooth ECE: a calibration error from smoothed residuals, without bins, for two classes.

    It is the bandwidth σ at which ∫|residuals smoothed at width σ| equals σ.

    Residuals y − p are put on a grid and smoothed by a Gaussian kernel reflected at 0 and 1. The
    integral falls as σ grows, so there is one such σ; no bins or bandwidth need be chosen.
    With more than two classes, the top class is tested (the lens "top_label").

    Parameters
    ----------
    grid : int, default 1024
        Cells of the grid on [0, 1]. Default 1024: a row moves by at most 0.0005.

    References
    ----------
    Błasiok and Nakkiran, "Smooth ECE: principled reliability diagrams via kernel smoothing",
    ICLR 2024, Definition 3 and Section 3.2.

    Examples
    --------
    >>> import caltest
    >>> round(caltest.estimate([0.2, 0.2, 0.9, 0.9], [0, 1, 1, 1], "smooth_ece"), 3)
    0.2
    """

    grid: int = 1024

    reported = ("grid",)

    def given(self, predictions: Rows) -> SmoothedResiduals:
        """Put the rows on the grid."""
        p, size = self.probability(predictions), self.grid
        cells = np.minimum((p * size).astype(np.intp), size - 1)
        return SmoothedResiduals(p, cells, size, predictions.weights, predictions.whole.total)


# ------------------------------------------------------------------ bins of many scales


_HALVINGS = 19  # the finest scale has at most 2¹⁹ bins


@options()
class TCal(Listed, row="t_cal"):
    """T-Cal: a debiased binned error, at whichever number of bins shows it best, for two classes.

    T = max_s U_s/√Var U_s over the scales s.

    Scale s = 0, 1, 2, … has 2^s bins of equal numbers of rows, down to ``min_rows`` rows per bin; equal
    scores stay together. With residuals r = y − p,

        U_s = Σ_b n_b⁻¹ Σ_{i≠j in b} r_i r_j = Σ_b [(Σ r)² − Σ r²]/n_b

    is the squared error of the binned predictions (times n) without its bias: 0 on average if the
    model is calibrated, with variance 2 Σ_b [(Σ v)² − Σ v²]/n_b², v = p (1 − p), given the predictions.
    A wide error stands out in few bins and a narrow one in many, and no number of bins need be chosen.
    A scale of variance 0 is left out; if none is left, T is 0. (Only labels of probability 0 can make U
    positive there: T is then +∞.)
    With more than two classes, the top class is tested (the lens "top_label").

    Parameters
    ----------
    min_rows : int, default 10
        Smallest number of rows per bin of the finest scale, except for ties.

    Raises
    ------
    InputError
        If there are more than two classes and the lens leaves them so.

    Notes
    -----
    The source takes bins of equal width (of full vectors, cubes), and rejects if U exceeds a threshold
    at any scale, each at its share of the level. With equal numbers of rows no bin is empty where
    scores crowd, and the maximum has one exact null.

    References
    ----------
    Lee, Huang, Hassani, Dobriban, "T-Cal: an optimal test for the calibration of predictive models",
    JMLR 24 (2023).

    Examples
    --------
    Right on average, but not for either score: U is −0.4 in one bin, and 2.4 in two.

    >>> import caltest
    >>> labels = [1] * 6 + [0] * 4 + [1] * 4 + [0] * 6
    >>> round(caltest.estimate([0.2] * 10 + [0.8] * 10, labels, "t_cal"), 6)
    7.905694
    """

    min_rows: int = 10

    reported = ("min_rows",)

    def given(self, predictions: Rows) -> MultiscaleBins:
        """Return the form for these predictions and their bins."""
        scores, weights = self.probability(predictions), predictions.weights
        halvings = min(max((len(scores) // self.min_rows).bit_length() - 1, 0), _HALVINGS)
        order = np.argsort(scores, kind="stable")
        ordered, scales = (scores[order], weights[order]), range(halvings, -1, -1)
        edges = [EqualMass(2**s).edges_of(*ordered)[1:-1] for s in scales]
        merges = (np.append(0, np.searchsorted(*each) + 1) for each in pairwise(edges))
        cells = np.searchsorted(edges[0], scores, side="left")
        return MultiscaleBins(scores, weights, cells, tuple(merges))


# ------------------------------------------------------------------ scan

_side = among("over", "under", "both")


@options(side=_side)
class _LargestSigned(Listed, takes_weights=True):
    side: str = "both"

    reported: ClassVar[tuple[str, ...]] = ("side",)

    def _largest(self, predictions: Rows, intervals: Intervals) -> LargestError:
        scores, w = self.probability(predictions), predictions.weights
        # The 1 under the sum acts as a row of average weight.
        return LargestError(scores, intervals, self.side, w / w.mean())


class Scan(_LargestSigned, row="scan"):
    """Scan statistic: the largest standardised error of any range of predictions, for two classes.

    T = max_I Σ_{i in I} (p_i − y_i) / (√(Σ_I p_i (1 − p_i)) + 1), over intervals I of n, n/2, n/4, …
    rows in the order of p, each overlapping the next by half, down to 64 rows and n/64 (with more than
    65 536 rows, 1024 and n/256). Equal scores stay together. No bins need be chosen: errors of any
    length are found where they are. With more than two classes, the top class is tested (the lens
    "top_label").

    Parameters
    ----------
    side : {"over", "under", "both"}, default "both"
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
        """Return the form for these predictions and their intervals."""
        return self._largest(predictions, Intervals.dyadic(self.probability(predictions)))


@options(side=_side)
class LargestBinError(_LargestSigned, row="max_bin"):
    """Largest standardised error of any bin, for two classes: like "scan", with bins you choose.

    T = max_b Σ_{i in b} (p_i − y_i) / (√(Σ_b p_i (1 − p_i)) + 1).

    Parameters
    ----------
    side : {"over", "under", "both"}, default "both"
        As in :class:`Scan`.
    binning : Binning, default ``EqualMass(10)``
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
        """Return the form for these predictions and their bins."""
        return self._largest(predictions, Intervals.of_cells(self.binning.cells(predictions)))
