"""Reliability diagrams with exact consistency bands: what is computed, and how it is drawn."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import isotonic_regression
from scipy.stats import rankdata

from caltest._arguments import arguments, axes, check_draws, choose, level_of_confidence
from caltest._parallel import Workers
from caltest._tiles import blocks
from caltest._visible import quoted
from caltest.binning import Binning, ConsistencyBand, EqualMass, reliability_curve, share_bands
from caltest.comparison.ranking import wholes_of
from caltest.data import Rows, Sample, sample, without_zeros
from caltest.data.clusters import refuse_clusters
from caltest.exceptions import InputError
from caltest.laws.classes import LabelSampler
from caltest.lenses import ClassWise, Lens, TopLabel, find_lens
from caltest.plots.display import (
    AS_PREDICTED,
    BLUE,
    DASHED,
    INSIDE,
    NARROW_BAND,
    OUTSIDE,
    SMALL,
    WIDE_BAND,
    PredictionsDisplay,
    event_labels,
    is_narrow,
    legend_below,
    rows_of,
)
from caltest.plots.models import MOST_MODELS, draw_models
from caltest.plots.panel import Panel, draw_panel
from caltest.plots.scales import LINEAR, Scale, scale_of
from caltest.sampling import DRAWS, Rng, seed_of
from caltest.statistics import ECE, BrierMCB
from caltest.testing import test
from caltest.text.numbers import confidence_text

if TYPE_CHECKING:
    from typing import Self

    from matplotlib.axes import Axes

Array: TypeAlias = NDArray[np.float64]
Indices: TypeAlias = NDArray[np.intp]
Curve: TypeAlias = Literal["binned", "corp"]

_CURVES = dict.fromkeys(("binned", "corp"), True)
_MOST_PANELS = 20
_GRID = 128  # scores at even ranks, and as many at even distances, where bands of curves are taken
_BINS, _ROWS_OF_A_BIN, _FEWEST_BINS = 15, 20, 5  # of equal counts, where the caller does not say
_BINS_OF_MODELS = 10  # where several share a diagram
_ROUNDING = 1e-9  # of levels such as 1 − 0.95, which are meant as 0.05
_DECIMALS = 12  # of isotonic fits; equal fits may differ by rounding, and then count as equal


@dataclass(frozen=True, eq=False)
class ReliabilityDisplay(PredictionsDisplay):
    """Plot a reliability diagram with exact bands: observed rates against predicted probabilities.

    Make it with :meth:`from_predictions`.

    The bands show where the points of a calibrated model would lie; they are computed for labels
    drawn from the predictions, with the predictions held fixed. The dark band is for a single
    point chosen beforehand. The light band is for all points of all panels: if the model is
    calibrated, any point at all falls outside it with probability at most 1 − ``confidence``, for
    every number of rows. The title gives the number of points outside, and a p-value for the whole
    curve's distance from the diagonal. These are two tests, each at its own level, and one may
    find an error that the other misses.

    If all predictions are below 0.1 (or above 0.9), the axes are zoomed, and logarithmic if
    predictions differ by more than a factor of ten; axis labels say so. The bars below count
    predictions in intervals of equal width along the axis, with a note of how many lie beyond it.

    Attributes
    ----------
    panels
        What was computed: one :class:`Panel` for each probability shown.
    names
        Names of the models, if several share one diagram; each panel is then one model.
    curve
        "binned" or "corp".
    confidence
        Of the bands.

    Examples
    --------
    >>> import caltest, matplotlib.pyplot as plt
    >>> sure = caltest.simulation.tempered(n_samples=300, temperature=0.4, rng=0)
    >>> display = caltest.ReliabilityDisplay.from_predictions(sure.probs, sure.labels, rng=0)
    >>> display.curve, [int(panel.outside.sum()) for panel in display.panels]
    ('binned', [5])
    >>> plt.close(display.figure_)
    """

    panels: tuple[Panel, ...]
    curve: Curve
    confidence: float
    names: tuple[str, ...] = ()
    _parts = ": one for each panel"

    @classmethod
    @arguments(ax=axes)
    def from_predictions(
        cls,
        probs: object,
        labels: object,
        *,
        lens: str | Lens | None = None,
        class_names: Sequence[str | int] | None = None,
        classes: Sequence[int | str] | None = None,
        binning: Binning | None = None,
        curve: Curve = "binned",
        confidence: float = 0.95,
        weights: object = None,
        sampling_rates: Mapping[Any, float] | None = None,
        n_resamples: int = 999,
        rng: Rng = None,
        n_jobs: int | None = None,
        ax: Axes | Sequence[Axes] | None = None,
    ) -> Self:
        """Compute and draw the reliability diagram of predictions and labels.

        Parameters
        ----------
        probs, labels
            As in :func:`caltest.test`. To compare two to four models on the same rows, give their
            predictions by name, as in ``{"before": probs, "after": calibrated}``. They are drawn
            in one diagram, and the simultaneous bands hold for all of them together.
        lens
            Which probability is shown: "top_label", "class:3", "top:5" or another lens that leaves
            two classes; "classwise" draws a panel for each class. Default: class 1 of two classes,
            the top label of more.
        class_names
            Names of the classes, in the order of the columns, as in :func:`caltest.test`. Default None.
        classes
            Columns or names of the classes to show with "classwise", at most 20. Default: all.
        binning
            Bins of the binned curve. Default ``EqualMass(15)``, or ``EqualMass(10)`` for several
            models, with fewer bins (at least 5) if they would hold fewer than 20 rows each. Bins
            of equal mass are the default because, for a rare event, nearly all rows would share
            one bin of equal width.
        curve
            "binned" (default): the observed rate in every bin against the mean prediction. "corp":
            the isotonic regression of the labels on the predictions, which needs no bins.
        confidence
            Of the bands. Default 0.95. With several panels the simultaneous band holds for all of
            them together, at level (1 − confidence) / panels each.
        weights
            How much each row counts, as in :func:`caltest.test`. Rates, means and bins of equal
            mass are weighted; the bars below count rows. Default None: all rows have equal weight.
        sampling_rates
            If rows were sampled by their label: for each class, the share of its rows that was
            kept, as in :func:`caltest.test`. Predictions are transformed to what they mean among
            the rows kept, and the axes say so. Default None: rows were not sampled by label.
        n_resamples
            Number of simulated label sets, for the p-value and for the bands of the isotonic
            curve. The bands of the binned curve are computed without simulation unless rows have
            weights. Default 999.
        rng, n_jobs
            As in :func:`caltest.test`.
        ax
            Axes to draw in, or a sequence of them for several panels. The bars are drawn below.
            Default: a new figure.

        Returns
        -------
        ReliabilityDisplay
            Drawn. Each panel names the statistic that measures its curve's distance from the
            diagonal, with its exact p-value: the ECE in the same bins, or the miscalibration part
            of the Brier score (MCB). A panel's p-value is its own, not adjusted for other panels.

        Raises
        ------
        InputError
            If the input is not a set of predictions and labels, the lens leaves more than two
            classes, there are too many panels, or too few simulated label sets for the bands.

        Notes
        -----
        Binned curve: the count of events in a bin is Poisson binomial, and bins are independent,
        so both bands are exact without simulation. Isotonic curve: the bands are order statistics
        of simulated curves, and the hull of the least extreme ones
        (:func:`caltest.plots.reliability.curve_bands`).

        References
        ----------
        Bröcker and Smith, "Increasing the reliability of reliability diagrams", Weather and
        Forecasting 22 (2007), for consistency bars; Dimitriadis, Gneiting and Jordan, "Stable
        reliability diagrams for probabilistic classifiers", PNAS 118 (2021), for CORP.

        Examples
        --------
        >>> import matplotlib.pyplot as plt
        >>> from caltest.datasets import load_digits_predictions
        >>> from caltest.plots import ReliabilityDisplay
        >>> digits = load_digits_predictions("random_forest")
        >>> display = ReliabilityDisplay.from_predictions(digits.probs, digits.labels, rng=0)
        >>> (panel,) = display.panels
        >>> panel.title, panel.result.pvalue, int(panel.outside.sum()), len(panel.outside)
        ('Top class', 0.001, 13, 15)
        >>> plt.close(display.figure_)
        """
        choose("curve", curve, _CURVES)
        alpha = level_of_confidence(confidence)
        check_draws("n_resamples", n_resamples, alpha)
        counting: dict[str, Any] = {
            "weights": weights,
            "sampling_rates": sampling_rates,
            "class_names": class_names,
        }
        names: tuple[str, ...] = ()
        if isinstance(probs, Mapping):
            views = _of_models(probs, labels, lens, classes, counting)
            names = tuple(str(name) for name in probs)
        else:
            whole = without_zeros(sample(probs, labels, **counting))
            refuse_clusters(whole.rows.clusters, "the band of a picture")
            views = [(whole, each) for each in _lenses(lens, classes, whole.rows)]
        if curve == "corp" and binning is not None:
            raise InputError("the isotonic curve has no bins; leave binning out, or curve='corp'.")
        if curve == "binned" and binning is None:
            rows, most = views[0][0].rows.n_samples, _BINS_OF_MODELS if names else _BINS
            binning = EqualMass(max(_FEWEST_BINS, min(most, rows // _ROWS_OF_A_BIN)))
        levels, draws = (alpha, alpha / len(views)), (n_resamples, seed_of(rng), Workers(n_jobs))
        kept = sampling_rates is not None
        panels = tuple(_panel(each, through, kept, binning, levels, *draws) for each, through in views)
        return cls(panels, curve, confidence, names).plot(ax)

    def _grid(self) -> dict[str, Any]:
        """Return one panel, or the three to five columns that leave fewest places empty."""
        count = len(self.panels)
        if not count:
            raise InputError("there are no panels; make the display with from_predictions.")
        if count == 1 or self.names:
            return {"figsize": (6, 7.2 + 0.2 * len(self.names))}
        columns = count if count <= 5 else min((5, 4, 3), key=lambda c: -count % c)
        mosaic = rows_of(count, columns)
        return {"mosaic": mosaic, "figsize": (2.5 * columns + 0.5, 3.15 * len(mosaic) + 0.9)}

    def _draw(self, axes: list[Any], *, new: bool) -> None:
        single, narrow = len(axes) == 1, not new and is_narrow(axes[0])
        columns = len(axes) if not new or single else len(self._grid()["mosaic"][0])
        percent = confidence_text(self.confidence)
        if self.names:
            draw_models(axes[0], self.panels, self.names, self._scale(), percent, new=new)
            return
        look: dict[str, Any] = {"small": narrow or not single, "labelled": single or not new}
        look["key"] = f"dark: {percent} band, light: of all" if narrow else ""
        look["scale"] = scale = self._scale()
        counts = [
            draw_panel(ax, panel, first=not narrow and place % columns == 0, **look)
            for place, (ax, panel) in enumerate(zip(axes, self.panels, strict=True))
        ]
        entries = self._legend(f"{percent} band if calibrated:")
        if not new:  # others than the first leave as much room, so that all are of one height
            for place, below in enumerate(() if narrow else counts):
                legend_below(below, 2, handles=entries)
                for each in below.get_legend().findobj() if place else ():
                    each.set_alpha(0.0)
            return
        # Several panels share a label below, where a legend would cover it.
        where, columns = ("lower", 2) if single else ("upper", 3)
        figure = axes[0].figure
        figure.legend(handles=entries, loc=f"outside {where} center", ncols=columns, **SMALL)
        if not single:
            words = f", {scale.words}" if scale.words else ""
            figure.supxlabel(f"predicted probability of the class{words}", size="medium")
            figure.supylabel(f"share in the class{words}", size="medium")

    def _scale(self) -> Scale:
        """Return the scale that suits all panels."""
        found = {scale_of(panel.middle) for panel in self.panels}
        return found.pop() if len(found) == 1 else LINEAR

    def _legend(self, band: str) -> list[Any]:
        from matplotlib.lines import Line2D
        from matplotlib.patches import Patch

        curve = self.panels[0].line is not None
        point = "point" if curve else "bin"
        every = f"all {point}s" + (" of all panels" if len(self.panels) > 1 else " together")
        name = "isotonic regression" if curve else "bin"
        line: dict[str, Any] = {"color": BLUE, "linewidth": 2.0, "label": name}
        points = {"linestyle": "none", "label": name, **INSIDE}
        if all(len(panel.predicted) == 1 for panel in self.panels):  # one score has no line
            line = points
        entries: list[Any] = [
            Patch(color=NARROW_BAND, label=f"{band} each {point} alone"),
            Patch(color=WIDE_BAND, label=f"{band} {every}"),
            Line2D([], [], **DASHED, label=AS_PREDICTED),
        ]
        if curve or not all(panel.outside.all() for panel in self.panels):
            entries.append(Line2D([], [], **(line if curve else points)))
        if any(panel.outside.any() for panel in self.panels):
            label = f"{'' if curve else 'bin '}outside the lighter band"
            entries.append(Line2D([], [], linestyle="none", label=label, **OUTSIDE))
        return entries


# ------------------------------------------------------------------ what is computed


def _lenses(
    lens: str | Lens | None, classes: Sequence[int | str] | None, predictions: Rows
) -> list[Lens | None]:
    """Return the lens of every panel."""
    if not isinstance(lens, str) or lens != "classwise":
        if classes is not None:
            raise InputError("classes chooses the panels of lens='classwise'; give both, or neither.")
        found = find_lens(lens)
        return [TopLabel() if found is None and predictions.n_classes > 2 else found]
    # By name: columns "1", "2", … are not those of these numbers.
    every = predictions.classes or range(predictions.n_classes)
    chosen: Sequence[int | str] = every if classes is None else classes
    if isinstance(chosen, str) or not isinstance(chosen, Sequence | np.ndarray):
        raise InputError(f"classes is {quoted(classes)}; give columns or names, as in [0, 1, 2].")
    if not 1 <= len(chosen) <= _MOST_PANELS:
        raise InputError(
            f"that makes {len(chosen)} panels, and a figure holds 1 to {_MOST_PANELS}; choose classes, "
            "as in classes=[0, 1, 2], or look at all at once with lens='top_label'."
        )
    return [ClassWise(which) for which in chosen]


def _of_models(
    models: Mapping[str, Any],
    labels: object,
    lens: str | Lens | None,
    classes: Sequence[int | str] | None,
    counting: Mapping[str, Any],
) -> list[tuple[Sample, Lens | None]]:
    """Return what every model predicts for the same rows, and the lens through which all are seen."""
    if classes is not None or (isinstance(lens, str) and lens == "classwise"):
        raise InputError(
            "several models are shown by one probability; give lens='top_label' or that of one class, "
            "such as 'class:0', and leave classes out."
        )
    if len(models) > MOST_MODELS:
        raise InputError(f"there are {len(models)} models; one diagram holds 2 to {MOST_MODELS}.")
    wholes, through = wholes_of(models, labels, lens, "top_label", counting)
    for whole in wholes.values():
        refuse_clusters(whole.rows.clusters, "the band of a picture")
    return [(whole, through) for whole in wholes.values()]


def _panel(
    whole: Sample,
    lens: Lens | None,
    kept: bool,
    binning: Binning | None,
    levels: tuple[float, float],
    n_resamples: int,
    seed: int,
    workers: Workers,
) -> Panel:
    """Compute the panel of one view; of the isotonic curve without a binning."""
    view = lens.view(whole) if lens else whole
    if view.rows.n_classes != 2:
        raise InputError(
            f"a reliability diagram shows one probability, and there are {view.rows.n_classes} classes "
            "through this lens; give 'top_label', 'classwise', 'class:0' or 'top:5'."
        )
    result = test(
        whole.rows,
        whole.labels,
        ECE(binning) if binning else BrierMCB(),
        lens=lens,
        n_resamples=n_resamples,
        rng=seed,
        n_jobs=workers.n_jobs,
    )
    scores, weights = view.rows.probs[:, 1], view.rows.weights
    sampler = LabelSampler.of(view.rows.probs, seed)

    def drawn_bands(
        observed: Array, curves: Callable[[int, int], Array]
    ) -> tuple[ConsistencyBand, ConsistencyBand]:
        tasks = [(part.start, part.stop) for part in blocks(n_resamples, DRAWS)]
        draws = np.concatenate(list(workers.map(curves, tasks, "label draws")))
        return curve_bands(observed, draws, *levels)

    shown = event_labels(view.rows, lens, kept)
    last: dict[str, Any] = {"scores": np.sort(scores), "result": result}
    if binning:
        curve = reliability_curve(view.rows, view.labels, binning)
        observed = curve.observed
        if view.rows.are_alike:
            bands = share_bands(scores, curve.cells, *levels)
        else:
            observed = np.round(observed, _DECIMALS)
            bands = drawn_bands(observed, partial(_drawn_shares, sampler, curve.cells, weights))
        return Panel(*shown, curve.predicted, observed, curve.counts, None, *bands, **last)
    values, group = np.unique(scores, return_inverse=True)
    group = group.reshape(-1)
    sizes = np.bincount(group, weights=weights).astype(np.float64)
    grid = np.arange(len(values))
    if len(values) > 2 * _GRID:  # evenly by rank, and evenly along the axis
        ranks = np.linspace(0, len(values) - 1, _GRID).round().astype(np.intp)
        places = np.searchsorted(values, np.linspace(values[0], values[-1], _GRID))
        grid = np.unique(np.concatenate([ranks, places]))
    fit = _fit(group, sizes, weights, view.labels)
    curves = partial(_drawn_curves, sampler, group, sizes, weights, grid)
    bands = drawn_bands(fit[grid], curves)
    steps = np.flatnonzero(np.diff(np.round(fit, _DECIMALS)))
    ends = np.unique(np.concatenate([[0], steps, steps + 1, [len(values) - 1]]))
    fitted = np.round(fit[grid], _DECIMALS)
    return Panel(*shown, values[grid], fitted, None, (values[ends], fit[ends]), *bands, **last)


def _fit(group: Indices, sizes: Array, weights: Array, labels: NDArray[np.integer]) -> Array:
    """Return the isotonic regression of the labels on the scores, tied scores pooled."""
    events = np.bincount(group, weights=weights * labels, minlength=len(sizes))
    return np.asarray(isotonic_regression(events / sizes, weights=sizes).x)


def _drawn_curves(
    sampler: LabelSampler,
    group: Indices,
    sizes: Array,
    weights: Array,
    grid: Indices,
    start: int,
    stop: int,
) -> Array:
    drawn = sampler.draw(start, stop)
    return np.stack([_fit(group, sizes, weights, labels)[grid] for labels in drawn])


def _drawn_shares(
    sampler: LabelSampler, cells: Indices, weights: Array, start: int, stop: int
) -> Array:
    """Return the shares of events in every bin, as rows count, (draws, K)."""
    whole = np.bincount(cells, weights=weights)
    drawn = sampler.draw(start, stop)
    return np.stack([np.bincount(cells, weights=weights * labels) for labels in drawn]) / whole


def curve_bands(
    observed: Array, draws: Array, alpha: float, joint: float
) -> tuple[ConsistencyBand, ConsistencyBand]:
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
        raise InputError(
            f"n_resamples is {len(draws)}, too few for the bands of this picture; "
            f"give at least {int(np.ceil(1 / most - _ROUNDING)) - 1}."
        )
    curves = np.round(np.vstack([observed, draws]), _DECIMALS)
    ordered = np.sort(curves[1:], axis=0)
    k = int(total * alpha / 2 + _ROUNDING)
    point = ConsistencyBand(ordered[k - 1], ordered[-k])
    below, above = (rankdata(each, method="max", axis=0) for each in (curves, -curves))
    ranks = np.sort(np.minimum(below, above), axis=1)
    groups, sizes = np.unique(ranks, axis=0, return_inverse=True, return_counts=True)[1:]
    shares = np.cumsum(sizes)[groups.reshape(-1)] / total  # of curves that are as extreme, or more so
    kept = curves[shares >= min(joint + _ROUNDING, shares.max())]  # the least extreme ones always
    low, high = np.minimum(kept.min(axis=0), point.low), np.maximum(kept.max(axis=0), point.high)
    return point, ConsistencyBand(low, high)
