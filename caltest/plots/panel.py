"""Panels of a reliability diagram: one curve each, with its exact bands and test."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, TypeAlias

import numpy as np
import scipy
from numpy.typing import NDArray

from caltest._parallel import Workers
from caltest._sums import blocks
from caltest._visible import quoted
from caltest.binning import Binning, ConsistencyBand, DistinctScores, reliability_curve, share_bands
from caltest.comparison.models import wholes_of
from caltest.data import Sample
from caltest.data.rows import refuse_clusters, without_zeros
from caltest.data.sample import whole_sample
from caltest.exceptions import InputError
from caltest.laws.classes import LabelSampler
from caltest.lenses import ClassWise, Lens, lens_of, one_probability
from caltest.pictures import Array, Limits
from caltest.plots import canvas
from caltest.results import CalibrationResult
from caltest.sampling import DRAWS
from caltest.statistics import ECE, BrierMCB
from caltest.testing import test

Indices: TypeAlias = NDArray[np.intp]
Bands: TypeAlias = tuple[ConsistencyBand, ConsistencyBand]
Draws: TypeAlias = tuple[int, int, Workers]  # number of draws, their seed, and the worker pool

MOST_MODELS = 4  # in one diagram
_STATISTICS = {"ece": "ECE", "mcb_brier": "Brier MCB"}
_NOTHING = 1e-12  # distances from the diagonal below it are rounding
_MOST_PANELS = 20
_GRID = 128  # scores at even ranks, and as many at even distances, where bands of curves are computed
_ROUNDING = 1e-9  # of levels such as 1 − 0.95, meant as 0.05
_DECIMALS = 12  # decimals of isotonic fits, so that equal fits that differ by rounding are equal


@dataclass(frozen=True, eq=False)
class Panel:
    """One reliability curve with its bands and its test.

    Attributes
    ----------
    title : str
        Which probability this is about.
    predicted_label, observed_label : str
        The axes, in words.
    predicted : array of shape (K,)
        Mean prediction of every bin; for the isotonic curve, the scores of a grid.
    observed : array of shape (K,)
        Share of events in every bin; for the isotonic curve, the fit at the grid.
    counts : array of int of shape (K,), or None
        Rows of every bin; None for the isotonic curve.
    line : tuple of two arrays, or None
        For the isotonic curve, both ends of all its level pieces, (scores, values); else None.
    pointwise, simultaneous : ConsistencyBand
        Bands with arrays ``low`` and ``high`` (K,), both ends inside.
    scores : array of shape (n,)
        The predictions, in increasing order.
    result : CalibrationResult
        The test whose statistic is the distance of this curve from the diagonal.
    """

    title: str
    predicted_label: str
    observed_label: str
    predicted: Array = field(repr=False)
    observed: Array = field(repr=False)
    counts: Indices | None = field(repr=False)
    line: tuple[Array, Array] | None = field(repr=False)
    pointwise: ConsistencyBand = field(repr=False)
    simultaneous: ConsistencyBand = field(repr=False)
    scores: Array = field(repr=False)
    result: CalibrationResult = field(repr=False)

    @property
    def in_points(self) -> bool:
        """Whether the band consists of single points: for bins, or for a curve with one score."""
        return self.line is None or len(self.predicted) == 1

    @property
    def middle(self) -> Array:
        """The predictions that determine the axes: those of bins, or the range of nearly all rows."""
        if self.line is None:
            return self.predicted
        return np.asarray(np.quantile(self.scores, [0.01, 0.99], method="inverted_cdf"))

    @property
    def outside(self) -> NDArray[np.bool_]:
        """Whether each point lies outside the simultaneous band, (K,)."""
        return self.simultaneous.leaves_out(self.observed)

    @property
    def measured(self) -> tuple[str, str]:
        """The distance from the diagonal and its p-value, as text."""
        value = f"{self.result.statistic:.2g}" if self.result.statistic > _NOTHING else "0"
        return f"{_STATISTICS[self.result.name]} {value}", f"p = {self.result.pvalue:.3g}"


def views_of(
    probs: object, labels: object, lens: Any, classes: Any, counting: Mapping[str, Any]
) -> list[tuple[Sample, Lens | None]]:
    """Return the predictions of each panel, and the lens through which they are seen."""
    classwise = isinstance(lens, str) and lens == "classwise"
    if isinstance(probs, Mapping):
        if classes is not None or classwise:
            do = "give lens='top_label' or that of one class, such as 'class:0', and leave classes out"
            raise InputError(f"several models are shown by one probability; {do}.")
        if len(probs) > MOST_MODELS:
            raise InputError(f"there are {len(probs)} models; one diagram holds 2 to {MOST_MODELS}.")
        wholes, lens_used = wholes_of(probs, labels, lens, "top_label", counting)
        for each in wholes.values():
            refuse_clusters(each.rows.clusters, "the band of a picture")
        return [(each, lens_used) for each in wholes.values()]
    whole = without_zeros(whole_sample(probs, labels, **counting))
    refuse_clusters(whole.rows.clusters, "the band of a picture")
    if not classwise:
        if classes is not None:
            raise InputError("classes chooses the panels of lens='classwise'; give both, or neither.")
        return [(whole, lens_of(whole.rows, lens, "top_label"))]
    # By name, because columns called "1", "2", … need not be in these positions.
    chosen = (whole.rows.classes or range(whole.rows.n_classes)) if classes is None else classes
    if isinstance(chosen, str) or not isinstance(chosen, Sequence | np.ndarray):
        raise InputError(f"classes is {quoted(classes)}; give columns or names, as in [0, 1, 2].")
    if not 1 <= len(chosen) <= _MOST_PANELS:
        found = f"that makes {len(chosen)} panels, and a figure holds 1 to {_MOST_PANELS}"
        do = "choose classes, as in classes=[0, 1, 2], or look at all at once with lens='top_label'"
        raise InputError(f"{found}; {do}.")
    return [(whole, ClassWise(which)) for which in chosen]


def panel_of(
    whole: Sample, lens: Lens | None, bins: Binning | None, levels: Limits, draws: Draws, *, kept: bool
) -> Panel:
    """Compute the panel of one view; without bins, its curve is isotonic.

    ``levels``: for the pointwise and the simultaneous band; ``draws``: number of draws, seed and worker
    pool; ``kept``: whether rows were sampled by label.
    """
    do = "give 'top_label', 'classwise', 'class:0' or 'top:5'"
    view, _ = one_probability(whole, lens, "a reliability diagram shows", do)
    n_resamples, seed, workers = draws
    options: dict[str, Any] = {"n_resamples": n_resamples, "rng": seed, "n_jobs": workers.n_jobs}
    result = test(whole.rows, whole.labels, ECE(bins) if bins else BrierMCB(), lens=lens, **options)
    scores, weights = view.rows.probs[:, 1], view.rows.weights
    shown = canvas.event_labels(view.rows, lens, kept)
    last: dict[str, Any] = {"scores": np.sort(scores), "result": result}

    def drawn_bands(rates: Callable[[Any], Array], places: Indices) -> tuple[Array, Bands]:
        """Return a curve, computed from labels, and its bands at some places."""
        drawn = partial(_drawn, LabelSampler.of(view.rows.probs, seed), rates, places)
        tasks = [(part.start, part.stop) for part in blocks(n_resamples, DRAWS)]
        curves = np.concatenate(list(workers.map(drawn, tasks, "label draws")))
        curve = rates(view.labels)
        return curve, curve_bands(curve[places], curves, *levels)

    if bins:
        curve = reliability_curve(view.rows, view.labels, bins)
        observed = curve.observed
        if view.rows.are_alike:
            bands = share_bands(scores, curve.cells, *levels)
        else:
            observed = np.round(observed, _DECIMALS)
            rates = partial(_rates, curve.cells, curve.mass, weights)
            bands = drawn_bands(rates, np.arange(len(observed)))[1]
        return Panel(*shown, curve.predicted, observed, curve.counts, None, *bands, **last)
    pooled = DistinctScores.of(scores, weights)
    values = pooled.scores
    grid = np.arange(len(values))
    if len(values) > 2 * _GRID:  # evenly by rank, and evenly along the axis
        ranks = np.linspace(0, len(values) - 1, _GRID).round().astype(np.intp)
        places = np.searchsorted(values, np.linspace(values[0], values[-1], _GRID))
        grid = np.unique(np.concatenate([ranks, places]))
    fit, bands = drawn_bands(pooled.rising, grid)
    steps = np.flatnonzero(np.diff(np.round(fit, _DECIMALS)))
    ends = np.unique(np.concatenate([[0], steps, steps + 1, [len(values) - 1]]))
    fitted = np.round(fit[grid], _DECIMALS)
    return Panel(*shown, values[grid], fitted, None, (values[ends], fit[ends]), *bands, **last)


def _rates(cells: Indices, mass: Array, weights: Array, labels: NDArray[np.integer]) -> Array:
    """Return the share of events in each bin."""
    return np.asarray(np.bincount(cells, weights * labels, len(mass)) / mass)


def _drawn(
    sampler: LabelSampler, rates: Callable[[Any], Array], places: Indices, start: int, stop: int
) -> Array:
    return np.stack([rates(labels)[places] for labels in sampler.draw(start, stop)])


def curve_bands(observed: Array, draws: Array, alpha: float, joint: float) -> Bands:
    """Return the pointwise and the simultaneous band of a curve, from drawn curves.

    As :func:`caltest.binning.share_bands`, for curves that are no shares of bins. The observed curve
    and the B drawn ones are exchangeable under H0. Pointwise: the observed value lies beyond the k-th
    smallest, or largest, of the draws with probability at most k/(B + 1) each. Simultaneous: all B + 1
    curves are ordered by how extreme they are, and the band is the hull of those that are not among the
    most extreme share α. Being defined symmetrically in all B + 1, this leaves the observed curve out
    with probability at most α. A curve is as extreme as its most extreme pointwise rank; ties are
    decided by the next one, and so on (extreme rank lengths).

    Parameters
    ----------
    observed
        The curve on a grid, (K,).
    draws
        The curves of drawn labels, (B, K).
    alpha, joint
        As in :func:`caltest.binning.share_bands`.

    Raises
    ------
    InputError
        If there are too few draws for a level.

    References
    ----------
    Myllymäki, Mrkvička, Grabarnik, Seijo, Hahn, "Global envelope tests for spatial processes",
    Journal of the Royal Statistical Society B 79 (2017).
    """
    total = len(draws) + 1
    most = min(alpha / 2, joint)
    if total * most < 1 - _ROUNDING:
        do = f"give at least {int(np.ceil(1 / most - _ROUNDING)) - 1}"
        raise InputError(f"n_resamples is {len(draws)}, too few for the bands of this picture; {do}.")
    curves = np.round(np.vstack([observed, draws]), _DECIMALS)
    ordered = np.sort(curves[1:], axis=0)
    k = int(total * alpha / 2 + _ROUNDING)
    point = ConsistencyBand(ordered[k - 1], ordered[-k])
    below, above = (scipy.stats.rankdata(each, method="max", axis=0) for each in (curves, -curves))
    ranks = np.sort(np.minimum(below, above), axis=1)
    groups, sizes = np.unique(ranks, axis=0, return_inverse=True, return_counts=True)[1:]
    shares = np.cumsum(sizes)[groups.reshape(-1)] / total  # share of curves at least as extreme
    kept = curves[shares >= min(joint + _ROUNDING, shares.max())]  # always keeps the least extreme ones
    low, high = np.minimum(kept.min(axis=0), point.low), np.maximum(kept.max(axis=0), point.high)
    return point, ConsistencyBand(low, high)
