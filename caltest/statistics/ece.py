"""Binned and smoothed calibration errors."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, fields, replace
from functools import partial
from typing import Any, ClassVar, Self, cast

import numpy as np
from scipy.fft import dct, idct

from caltest._arguments import Whole, arguments, choose
from caltest.binning import Binning, EqualMass, EqualWidth, ScoreBinning, Uniform
from caltest.data import Extent, Rows
from caltest.exceptions import InputError
from caltest.forms import BinnedDistance, BinnedSquares, Gridded, GriddedBins, LinearSum
from caltest.forms.base import Array
from caltest.forms.binned import Distance
from caltest.forms.sums import Cells
from caltest.pvalues import Alternative
from caltest.statistics.base import SIGNED, AllRowsNeededError, Partwise, RowSum, Statistic

# ------------------------------------------------------------------ ece


_ALONE = 1.0 + 1e-9  # effective rows of a bin that holds one
_DISTANCES = dict.fromkeys(("tv", "l1", "l2", "sqeuclidean"), True)


@dataclass(frozen=True)
class _BinnedStatistic(Statistic):
    binning: Binning | None = None

    def fitted(self, predictions: Rows) -> Self:
        """Choose the default binning by the number of classes."""
        if self.binning is not None:
            return self
        default = EqualWidth(15) if predictions.n_classes == 2 else Uniform(10)
        return replace(self, binning=default)

    def _cells(self, predictions: Rows) -> Any:
        return cast("Binning", self.fitted(predictions).binning).cells(predictions)

    def in_parts(self, whole: Extent, subsample: Callable[[], Rows]) -> Partwise:
        """Bin one probability; the bins of equal mass are those of a subsample of the rows."""
        rows = subsample()
        fitted = self.fitted(rows)
        if rows.n_classes > 2 or not isinstance(fitted.binning, ScoreBinning):
            raise AllRowsNeededError(f"bins of {type(fitted.binning).__name__} are found in all rows.")
        edges = fitted.binning.edges_of(rows.probs[:, 1], rows.weights)
        return Partwise(fitted, partial(fitted._on_grid, whole.total, edges[1:-1]))

    def _on_grid(self, whole: float, edges: Array, predictions: Rows) -> GriddedBins:
        scores, weights = two_classes(self, predictions), predictions.weights
        return GriddedBins(scores, edges, whole, self._measure, weights=weights)

    def _measure(self, residuals: Array, expected: Array, sizes: Array, n: float) -> Array:
        """Return the values of bins of one probability, see :class:`GriddedBins`."""
        raise NotImplementedError

    @property
    def parameters(self) -> dict[str, Any]:
        """The binning and its options."""
        if self.binning is None:
            return {}
        options = {f.name: getattr(self.binning, f.name) for f in fields(cast("Any", self.binning))}
        return {"binning": type(self.binning).__name__, **options}


@dataclass(frozen=True)
class _DistanceStatistic(_BinnedStatistic):
    distance: Distance = "tv"

    maximum: ClassVar[bool] = False

    def __post_init__(self) -> None:
        choose("distance", self.distance, _DISTANCES)

    def given(self, predictions: Rows) -> BinnedDistance:
        """Fix the predictions and their bins."""
        cells = self._cells(predictions)
        return BinnedDistance(
            predictions.probs, cells, self.distance, self.maximum, weights=predictions.weights
        )

    def _measure(self, residuals: Array, expected: Array, sizes: Array, n: float) -> Array:
        # Both classes have the same error, in size.
        errors = np.abs(residuals) / sizes
        factor = {"tv": 1.0, "l1": 2.0, "l2": np.sqrt(2.0), "sqeuclidean": 2.0 * errors}[self.distance]
        distances = factor * errors
        return np.asarray(distances.max(axis=1) if self.maximum else distances @ (sizes / n))

    @property
    def parameters(self) -> dict[str, Any]:
        """The binning, its options and the distance."""
        return {**super().parameters, "distance": self.distance}


@arguments()
@dataclass(frozen=True)
class ECE(_DistanceStatistic):
    """Expected calibration error: the mean difference between predicted and observed, over bins.

    ECE = Σ_b |b|/n · d(mean one-hot label in b, mean prediction in b).

    Parameters
    ----------
    binning
        A binning of :mod:`caltest.binning`. Default ``EqualWidth(15)`` for two classes (a lens makes
        two), ``Uniform(10)`` on the simplex otherwise: the literature's.
    distance
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

    name: ClassVar[str] = "ece"
    measures: ClassVar[str] = "expected calibration error"


@arguments()
@dataclass(frozen=True)
class MCE(_DistanceStatistic):
    """Maximum calibration error: the largest difference between predicted and observed in any bin.

    Parameters
    ----------
    binning, distance
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

    name: ClassVar[str] = "mce"
    measures: ClassVar[str] = "maximum calibration error"
    maximum: ClassVar[bool] = True


@arguments()
@dataclass(frozen=True)
class ACE(ECE):
    """Adaptive calibration error: the ECE with equally filled bins, for two classes.

    With more than two classes, the top class is tested (the lens "top_label") unless you choose
    another lens.

    Parameters
    ----------
    binning
        Default ``EqualMass(15)``; equal scores stay together.
    distance
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

    name: ClassVar[str] = "ace"
    measures: ClassVar[str] = "adaptive calibration error"
    default_lens: ClassVar[str | None] = "top_label"


@arguments()
@dataclass(frozen=True)
class SquaredECE(_BinnedStatistic):
    """Squared ECE: the mean squared difference between predicted and observed, over bins.

    Σ_b |b|/n · ‖mean one-hot label in b − mean prediction in b‖², a quadratic form in the labels.

    For two classes, it is the squared error of the one probability (half the squared norm).

    Parameters
    ----------
    binning
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

    name: ClassVar[str] = "ece_squared"
    measures: ClassVar[str] = "squared expected calibration error"

    def given(self, predictions: Rows) -> BinnedSquares:
        """Fix the predictions and their bins."""
        cells, weights = self._cells(predictions), predictions.weights
        sizes = np.bincount(cells, weights=weights).astype(np.float64)
        quadratic = _share(predictions) / (sizes * predictions.total)
        linear = np.zeros((len(sizes), predictions.n_classes))
        return BinnedSquares(predictions.probs, cells, quadratic, linear, 0.0, weights=weights)

    def _measure(self, residuals: Array, expected: Array, sizes: Array, n: float) -> Array:
        return np.asarray((residuals**2 / sizes).sum(axis=1) / n)


@arguments()
@dataclass(frozen=True)
class DebiasedECE(_BinnedStatistic):
    """Squared ECE, corrected for its upward bias.

    The estimated variance of a bin's mean label, Σ_k ȳ_k (1 − ȳ_k)/(|b| − 1), is subtracted from its
    squared error. The result is unbiased for the squared error of the binned predictions, and may be
    negative. A bin of one row has no such estimate and contributes 0. Two classes
    are handled as in :class:`SquaredECE`.

    Parameters
    ----------
    binning
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

    name: ClassVar[str] = "ece_debiased"
    measures: ClassVar[str] = "debiased squared expected calibration error"

    def given(self, predictions: Rows) -> BinnedSquares:
        """Fix the predictions and their bins.

        With S = counts − E and Σ_k ȳ_k² = ‖S + E‖²/|b|², a bin's term is
        ‖S‖²/(|b| − 1) + (2 S·E + ‖E‖²)/(|b| (|b| − 1)) − |b|/(|b| − 1), over n. Of rows of weights w,
        |b| and n are their sums, and |b| − 1 is (Σ w)²/Σ w² − 1: a mean label's variance is
        Σ_k ȳ_k (1 − ȳ_k) over that, without bias.
        """
        cells, n, weights = self._cells(predictions), predictions.total, predictions.weights
        sizes = np.bincount(cells, weights=weights).astype(np.float64)
        columns = predictions.weighted(predictions.probs).T
        expected = np.stack([np.bincount(cells, weights=p) for p in columns], axis=1)
        effective = sizes
        if weights is not None:
            effective = sizes**2 / np.bincount(cells, weights=weights**2)
        many = effective > _ALONE
        per_pair = np.zeros_like(sizes)
        np.divide(_share(predictions), sizes * (effective - 1.0) * n, out=per_pair, where=many)
        constant = per_pair @ (np.einsum("bk,bk->b", expected, expected) - sizes**2)
        return BinnedSquares(
            predictions.probs,
            cells,
            effective * per_pair,
            2.0 * per_pair[:, None] * expected,
            float(constant),
            weights=weights,
        )

    def in_parts(self, whole: Extent, subsample: Callable[[], Rows]) -> Partwise:
        """Bin one probability of rows of equal weight."""
        if not whole.are_alike:
            raise AllRowsNeededError(f"{self.name!r} needs all rows at once, where they have weights.")
        return super().in_parts(whole, subsample)

    def _measure(self, residuals: Array, expected: Array, sizes: Array, n: float) -> Array:
        residuals, expected, sizes = (each[..., sizes > 1] for each in (residuals, expected, sizes))
        share = (residuals + expected) / sizes
        debiased = (residuals / sizes) ** 2 - share * (1.0 - share) / (sizes - 1.0)
        return np.asarray(debiased @ (sizes / n))


@arguments()
@dataclass(frozen=True)
class ESCE(RowSum):
    """Expected signed calibration error: observed event rate less mean predicted, for two classes.

    Below 0 the event was predicted too often, above 0 not often enough. More than two classes are seen
    through the lens "top_label", where the event is that the top class is right: below 0 is then
    overconfident, above 0 underconfident. Weighted by their rows, the signed errors of any bins add
    up to the same number, so there is no binning to choose: it is calibration in the large.

    References
    ----------
    Sumler et al. 2025.

    Examples
    --------
    >>> import caltest
    >>> round(caltest.estimate([0.2, 0.2, 0.9, 0.9], [0, 1, 1, 1], "esce"), 6)
    0.2
    """

    name: ClassVar[str] = "esce"
    measures: ClassVar[str] = "expected signed calibration error, observed less predicted"
    monotone: ClassVar[bool] = True
    alternatives: ClassVar[tuple[Alternative, ...]] = SIGNED
    default_lens: ClassVar[str | None] = "top_label"

    def of_rows(self, rows: Rows, whole: float) -> LinearSum:
        """Return T = Σ_i (y_i − p_i)/n."""
        p = two_classes(self, rows)
        return LinearSum(rows.weighted(np.column_stack([-p, 1.0 - p])) / whole, rows.probs)


def _share(predictions: Rows) -> float:
    """Return what a squared norm counts: with two classes, both columns hold the same error."""
    return 0.5 if predictions.n_classes == 2 else 1.0


def two_classes(statistic: Statistic, predictions: Rows) -> Any:
    """Return the probabilities of class 1 of two classes.

    Raises
    ------
    InputError
        If there are more classes.
    """
    if predictions.n_classes != 2:
        raise InputError(
            f"{statistic.name!r} measures one probability, and there are {predictions.n_classes} "
            "classes; give a lens such as 'top_label' or 'class:0'."
        )
    return predictions.probs[:, 1]


# ------------------------------------------------------------------ smooth ece


_ROUNDS = 22  # halvings of the bandwidth's interval: 2e-7


@arguments(grid=Whole(1, 1_000_000))
@dataclass(frozen=True)
class SmoothECE(RowSum):
    """Smooth ECE: a calibration error from smoothed residuals, without bins, for two classes.

    It is the bandwidth σ at which ∫|residuals smoothed at width σ| equals σ.

    Residuals y − p are put on a grid and smoothed by a Gaussian kernel reflected at 0 and 1. The
    integral falls as σ grows, so there is one such σ; no bins or bandwidth need be chosen.
    With more than two classes, the top class is tested (the lens "top_label").

    Parameters
    ----------
    grid
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

    name: ClassVar[str] = "smooth_ece"
    measures: ClassVar[str] = "smooth expected calibration error"
    default_lens: ClassVar[str | None] = "top_label"

    @property
    def parameters(self) -> dict[str, Any]:
        """The grid."""
        return {"grid": self.grid}

    def of_rows(self, rows: Rows, whole: float) -> SmoothedResiduals:
        """Put the rows on the grid."""
        return SmoothedResiduals(two_classes(self, rows), self.grid, whole, weights=rows.weights)


@dataclass(frozen=True, eq=False)
class SmoothedResiduals(Gridded):
    """Residual sums on a grid of equal cells, finished by smoothing.

    Attributes
    ----------
    grid
        Cells of the grid.
    whole
        How many rows there are in all, where these are only some of them, or of what weight. Default
        None: these.
    """

    grid: int
    whole: float | None = None

    @property
    def n_cells(self) -> int:
        """Number of cells."""
        return self.grid

    def cells(self, scores: Array) -> Cells:
        """Return the cell of every score."""
        return np.minimum((scores * self.grid).astype(np.intp), self.grid - 1)

    @property
    def resolution(self) -> float:
        """Where the bisection ends, in units of all rows."""
        return 2.0 * 0.5**_ROUNDS * self.n_samples / (self.whole or self.n_samples)

    def finish(self, sums: Array) -> Array:
        """Find the σ at which the smoothed error equals σ, by bisection.

        Smoothing by a Gaussian reflected at both ends multiplies the cosine transform by
        exp(−σ² π² k²/2).
        """
        spectrum = dct(sums / (self.whole or self.n_samples), axis=1)
        decay = -0.5 * (np.pi * np.arange(self.grid)) ** 2
        low, high = np.zeros(len(sums)), np.ones(len(sums))
        for _ in range(_ROUNDS):
            width = 0.5 * (low + high)
            # Terms damped below 1e-16 are left out: few are left but for small widths.
            kept = min(self.grid, 2 + int(8.6 / (np.pi * width.min())))
            damped = spectrum[:, :kept] * np.exp(decay[:kept] * width[:, None] ** 2)
            error = np.abs(idct(damped, n=self.grid, axis=1)).sum(axis=1)
            too_narrow = error > width
            low = np.where(too_narrow, width, low)
            high = np.where(too_narrow, high, width)
        return np.asarray(0.5 * (low + high))
