"""One panel of a reliability diagram: the computed arrays, without a picture."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import isotonic_regression

from caltest._parallel import Workers
from caltest._sampling import DRAWS, LabelSampler
from caltest._tiles import blocks
from caltest.binning import Binning, ConsistencyBand, EqualWidth, reliability_curve, share_bands
from caltest.data import Sample
from caltest.exceptions import InputError
from caltest.lenses import ClassWise, Lens, TopK, TopLabel
from caltest.plots.bands import Array, curve_bands, rounded
from caltest.results import CalibrationResult
from caltest.statistics import ECE, BrierMCB, Statistic
from caltest.testing import test

_GRID = 128  # scores at even ranks, and as many at even distances, where bands of curves are taken
_BARS = 20  # of the histogram, where the binning does not say


@dataclass(frozen=True, eq=False)
class Panel:
    """A reliability curve, its bands, and the test that goes with it.

    Attributes
    ----------
    title
        Which probability this is about.
    predicted_label, observed_label
        The axes, in words.
    predicted
        (K,) mean prediction of every bin; for the isotonic curve, the scores of a grid.
    observed
        (K,) share of events in every bin; for the isotonic curve, the fit at the grid.
    counts
        (K,) rows of every bin; None for the isotonic curve.
    line
        For the isotonic curve, both ends of all its level pieces, (scores, values); else None.
    pointwise, simultaneous
        Bands with arrays ``low`` and ``high`` (K,), both ends inside.
    histogram
        Numbers of predictions, and the edges between which they are counted.
    result
        The test whose statistic is the distance of this curve from the diagonal.
    """

    title: str
    predicted_label: str
    observed_label: str
    predicted: Array = field(repr=False)
    observed: Array = field(repr=False)
    counts: NDArray[np.intp] | None = field(repr=False)
    line: tuple[Array, Array] | None = field(repr=False)
    pointwise: ConsistencyBand = field(repr=False)
    simultaneous: ConsistencyBand = field(repr=False)
    histogram: tuple[NDArray[np.intp], Array] = field(repr=False)
    result: CalibrationResult = field(repr=False)

    @property
    def outside(self) -> NDArray[np.bool_]:
        """Which points the simultaneous band leaves out, (K,)."""
        return self.simultaneous.leaves_out(self.observed)


@dataclass(frozen=True)
class PanelPlan:
    """How panels are made.

    Attributes
    ----------
    binning
        The bins; None for the isotonic curve.
    alpha, joint
        Probability outside a pointwise band, and outside a panel's simultaneous band.
    n_resamples, seed, workers
        Of the draws.
    """

    binning: Binning | None
    alpha: float
    joint: float
    n_resamples: int
    seed: int
    workers: Workers

    def panel(self, whole: Sample, lens: Lens | None) -> Panel:
        """Compute the panel of one view."""
        view = lens.view(whole) if lens else whole
        if view.rows.n_classes != 2:
            raise InputError(
                f"a reliability diagram shows one probability, and there are "
                f"{view.rows.n_classes} classes through this lens; give 'top_label', "
                "'classwise', 'class:0' or 'top:5'."
            )
        statistic: Statistic = ECE(self.binning) if self.binning else BrierMCB()
        result = test(
            whole.rows,
            whole.labels,
            statistic,
            lens=lens,
            n_resamples=self.n_resamples,
            rng=self.seed,
            n_jobs=self.workers.n_jobs,
        )
        words = _words(view, lens)
        bars = self.binning if isinstance(self.binning, EqualWidth) else EqualWidth(_BARS)
        scores = view.rows.probs[:, 1]
        histogram = (
            np.bincount(bars.cells_of_scores(scores), minlength=bars.n_bins),
            bars.edges_of(scores),
        )
        make = _isotonic if self.binning is None else _binned
        return make(self, view, words, histogram, result)


def _words(view: Sample, lens: Lens | None) -> tuple[str, str, str]:
    """Return the title and the axes' labels."""
    if isinstance(lens, TopLabel):
        return (
            "Top class",
            "predicted probability that the top class is right",
            "share that was right",
        )
    if isinstance(lens, TopK):
        inside = f"the label among the top {lens.k}"
        return f"Top {lens.k}", f"predicted probability of {inside}", f"share with {inside}"
    name = view.rows.classes[1] if view.rows.classes else "class 1"
    name = (
        name if name.startswith("class ") or not isinstance(lens, ClassWise | None) else f"class {name}"
    )
    return name[:1].upper() + name[1:], f"predicted probability of {name}", f"share in {name}"


def _binned(
    plan: PanelPlan,
    view: Sample,
    words: tuple[str, str, str],
    histogram: tuple[NDArray[np.intp], Array],
    result: CalibrationResult,
) -> Panel:
    assert plan.binning is not None
    probs = view.rows.probs
    curve = reliability_curve(probs, view.labels, plan.binning)
    point, all_bins = share_bands(probs[:, 1], curve.cells, plan.alpha, plan.joint)
    return Panel(
        *words,
        predicted=curve.predicted,
        observed=curve.observed,
        counts=curve.counts,
        line=None,
        pointwise=point,
        simultaneous=all_bins,
        histogram=histogram,
        result=result,
    )


def _isotonic(
    plan: PanelPlan,
    view: Sample,
    words: tuple[str, str, str],
    histogram: tuple[NDArray[np.intp], Array],
    result: CalibrationResult,
) -> Panel:
    probs = view.rows.probs
    scores, group = np.unique(probs[:, 1], return_inverse=True)
    group = group.reshape(-1)
    sizes = np.bincount(group).astype(np.float64)
    grid = _grid(scores)
    fit = _fit(group, sizes, view.labels)
    sampler = LabelSampler.of(probs, plan.seed)
    tasks = [(part.start, part.stop) for part in blocks(plan.n_resamples, DRAWS)]
    curves = partial(_drawn_curves, sampler, group, sizes, grid)
    draws = np.concatenate(list(plan.workers.map(curves, tasks, "label draws")))
    point, everywhere = curve_bands(fit[grid], draws, plan.alpha, plan.joint)
    steps = np.flatnonzero(np.diff(rounded(fit)))
    ends = np.unique(np.concatenate([[0], steps, steps + 1, [len(scores) - 1]]))
    return Panel(
        *words,
        predicted=scores[grid],
        observed=rounded(fit[grid]),
        counts=None,
        line=(scores[ends], fit[ends]),
        pointwise=point,
        simultaneous=everywhere,
        histogram=histogram,
        result=result,
    )


def _fit(group: NDArray[np.intp], sizes: Array, labels: NDArray[np.integer]) -> Array:
    """Return the isotonic regression of the labels on the scores, tied scores pooled."""
    events = np.bincount(group, weights=labels, minlength=len(sizes))
    return np.asarray(isotonic_regression(events / sizes, weights=sizes).x)


def _drawn_curves(
    sampler: LabelSampler,
    group: NDArray[np.intp],
    sizes: Array,
    grid: NDArray[np.intp],
    start: int,
    stop: int,
) -> Array:
    return np.stack([_fit(group, sizes, labels)[grid] for labels in sampler.draw(start, stop)])


def _grid(scores: Array) -> NDArray[np.intp]:
    """Choose among the sorted, different scores: evenly by rank, and evenly along the axis."""
    if len(scores) <= 2 * _GRID:
        return np.arange(len(scores))
    ranks = np.linspace(0, len(scores) - 1, _GRID).round().astype(np.intp)
    places = np.searchsorted(scores, np.linspace(scores[0], scores[-1], _GRID))
    return np.unique(np.concatenate([ranks, places]))
