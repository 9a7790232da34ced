"""Reliability diagrams with exact consistency bands, of one model or several: how they are drawn."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, Self, TypeAlias, get_args

import numpy as np

from caltest._arguments import arguments, axes, check_draws, choose, level_of_confidence
from caltest._numbers import confidence_text
from caltest._parallel import Workers
from caltest.binning import Binning, ConsistencyBand, EqualMass
from caltest.exceptions import InputError
from caltest.lenses import Lens
from caltest.pictures import BAD, LINEAR, OK, Limits, Mark, Scale, scale_of, told_apart
from caltest.plots import canvas
from caltest.plots.canvas import PredictionsDisplay, draw, heading, lettering
from caltest.plots.panel import Panel, panel_of, views_of
from caltest.sampling import Rng, seed_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Curve: TypeAlias = Literal["binned", "corp"]

_BINS, _ROWS_OF_A_BIN, _FEWEST_BINS = 15, 20, 5  # of equal counts, where the caller does not say
_BINS_OF_MODELS = 10  # where several share a diagram
_BARS, _BARS_OF_ROWS = 48, 4.0  # of the histogram at most, and times the cubic root of the rows
_TAIL = 0.005  # share of the predictions on either side that need not be on the axes
#: Of models that share a diagram: colour, mark and line.
_LOOKS = (
    (canvas.BLUE, "o", "-"),
    (canvas.VERMILION, "s", (0, (5, 1.5))),
    (canvas.GREEN, "^", "-."),
    (canvas.PURPLE, "D", ":"),
)


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
        (:func:`caltest.plots.panel.curve_bands`).

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
        choose("curve", curve, dict.fromkeys(get_args(Curve)))
        alpha = level_of_confidence(confidence)
        check_draws("n_resamples", n_resamples, alpha)
        counting = {"weights": weights, "sampling_rates": sampling_rates, "class_names": class_names}
        views = views_of(probs, labels, lens, classes, counting)
        names = tuple(str(name) for name in probs) if isinstance(probs, Mapping) else ()
        if curve == "corp" and binning is not None:
            raise InputError("the isotonic curve has no bins; leave binning out, or curve='corp'.")
        if curve == "binned" and binning is None:
            fitting = views[0][0].rows.n_samples // _ROWS_OF_A_BIN
            binning = EqualMass(max(_FEWEST_BINS, min(_BINS_OF_MODELS if names else _BINS, fitting)))
        levels, draws = (alpha, alpha / len(views)), (n_resamples, seed_of(rng), Workers(n_jobs))
        kept = sampling_rates is not None
        panels = [panel_of(whole, seen, binning, levels, draws, kept=kept) for whole, seen in views]
        return cls(tuple(panels), curve, confidence, names).plot(ax)

    def _grid(self) -> dict[str, Any]:
        """Return one panel, or the three to five columns that leave fewest places empty."""
        count = len(self.panels)
        if not count:
            raise InputError("there are no panels; make the display with from_predictions.")
        if count == 1 or self.names:
            return {"figsize": (6, 7.2 + 0.2 * len(self.names))}
        columns = count if count <= 5 else min((5, 4, 3), key=lambda c: -count % c)
        mosaic = canvas.rows_of(count, columns)
        return {"mosaic": mosaic, "figsize": (2.5 * columns + 0.5, 3.15 * len(mosaic) + 0.9)}

    def _draw(self, axes: list[Any], *, new: bool) -> None:
        single, narrow = len(axes) == 1, not new and canvas.is_narrow(axes[0])
        columns = len(axes) if not new or single else len(self._grid()["mosaic"][0])
        percent, figure = confidence_text(self.confidence), axes[0].figure
        found = {scale_of(panel.middle) for panel in self.panels}
        scale = found.pop() if len(found) == 1 else LINEAR
        if self.names:
            below, entries = _draw_models(axes[0], self.panels, self.names, scale, percent)
            counts, where, wide = [below], "lower", 1
        else:
            look: dict[str, Any] = {"small": narrow or not single, "labelled": single or not new}
            counts = [
                _draw_panel(ax, panel, scale, first=not narrow and place % columns == 0, **look)
                for place, (ax, panel) in enumerate(zip(axes, self.panels, strict=True))
            ]
            entries = self._legend(f"{percent} band if calibrated:")
            # Several panels share a label below, where a legend would cover it.
            where, wide = ("lower", 2) if single or not new else ("upper", 3)
        if new:
            figure.legend(handles=entries, loc=f"outside {where} center", ncols=wide, **canvas.SMALL)
        # Others than the first leave as much room, so that all are of one height.
        for place, below in enumerate(() if new or narrow else counts):
            canvas.legend_below(below, wide, handles=entries)
            for each in below.get_legend().findobj() if place else ():
                each.set_alpha(0.0)
        if new and not single:
            words = f", {scale.words}" if scale.words else ""
            figure.supxlabel(f"predicted probability of the class{words}", size="medium")
            figure.supylabel(f"share in the class{words}", size="medium")

    def _legend(self, band: str) -> list[Any]:
        curve = self.panels[0].line is not None
        point = "point" if curve else "bin"
        every = f"all {point}s" + (" of all panels" if len(self.panels) > 1 else " together")
        entries = [
            ("point band", f"{band} each {point} alone"),
            ("band", f"{band} {every}"),
            ("diag", canvas.AS_PREDICTED),
        ]
        if curve and any(len(panel.predicted) > 1 for panel in self.panels):  # one score has no line
            entries.append(("curve", "isotonic regression"))
        elif curve or not all(panel.outside.all() for panel in self.panels):
            entries.append((OK, "isotonic regression" if curve else "bin"))
        if any(panel.outside.any() for panel in self.panels):
            entries.append((BAD, f"{'' if curve else 'bin '}outside the lighter band"))
        return [canvas.entry(*each) for each in entries]


def _frame(
    ax: Any, panels: Sequence[Panel], scale: Scale, *, few: bool
) -> tuple[Limits, Limits, tuple[str, str]]:
    """Make the axes of panels; return the ends across, the heights that are shown, and the labels."""
    scores = np.concatenate([panel.scores for panel in panels])
    most = np.quantile(scores, [_TAIL, 1.0 - _TAIL], method="inverted_cdf")
    points = np.concatenate([*(panel.predicted for panel in panels), most])
    heights = [y for p in panels for y in (p.predicted, p.observed, *p.simultaneous, *p.pointwise)]
    rest = np.array([scores.min(), scores.max()])
    across, upwards = canvas.reliability_axes(ax, scale, points, rest, np.concatenate(heights), few=few)
    ax.tick_params(labelsize="small", labelbottom=False)
    words, labels = f", {scale.words}" * bool(scale.words), panels[0]
    predicted, observed = (
        f"{lettering(each, canvas.CLAUSE)}{words}"
        for each in (labels.predicted_label, labels.observed_label)
    )
    return across, (max(upwards[0], 0.0), min(upwards[1], 1.0)), (predicted, observed)


def _band(panel: Panel, band: ConsistencyBand, ends: Limits, style: str) -> Mark:
    if panel.in_points:
        return Mark("band", style, panel.predicted, np.clip(band.low, *ends), np.clip(band.high, *ends))
    # Curve and band increase: between points, as far as from one to the next.
    x, low, high = (np.repeat(each, 2) for each in (panel.predicted, band.low[:-1], band.high[1:]))
    return Mark("area", style, x[1:-1], np.clip(low, *ends), np.clip(high, *ends))


def _draw_panel(
    ax: Any, panel: Panel, scale: Scale, *, small: bool, labelled: bool, first: bool
) -> Any:
    """Draw diagonal, bands, curve and predictions; ``labelled``: name axes; ``first``: counts too.

    Returns the axes of the predictions.
    """
    across, ends, (predicted, observed) = _frame(ax, [panel], scale, few=small)
    wide, size = 5.0 if small else 9.0, 5.0
    for band, style in ((panel.simultaneous, "band"), (panel.pointwise, "point band")):
        draw(ax, _band(panel, band, ends, style), linewidth=wide if panel.in_points else 0.8)
    if panel.line is None or panel.in_points:
        marks, size = told_apart(panel.predicted, panel.observed, panel.outside), 0.62 * wide + 0.5
    else:
        x, y = panel.line
        draw(ax, Mark("line", "curve", x, np.clip(y, *ends)), clip_on=False)
        outside = np.flatnonzero(panel.outside)  # of those in one range of the axis, the first
        stretch = scale.forward(panel.predicted[outside]) / scale.span(across) * (10 if small else 20)
        spread = outside[np.unique(np.floor(stretch), return_index=True)[1]]
        marks = [Mark("points", BAD, panel.predicted[spread], panel.observed[spread])]
    for mark in marks:
        draw(ax, mark._replace(y=np.clip(mark.y, *ends)), markersize=size, clip_on=False)
    title, measured = lettering(panel.title), ", ".join(panel.measured)
    text, number = "small" if small else "medium", np.count_nonzero(panel.outside)
    found = "no bin outside the band"
    if panel.line is not None:
        found = f"the curve {'leaves' if number else 'is inside'} the band"
    elif number:
        found = f"{number} of {len(panel.outside)} bins outside the band"
    lines = f"{title}, n = {panel.result.n_samples:,}", f"{found}; {measured} (exact)"
    heading(ax, *((title, measured) if small else lines), size=text)
    bars = _BARS // 2 if small else _BARS
    below = _rows_below(ax, [panel], scale, across, bars, labelled=first or not small)
    inside = np.searchsorted(panel.scores, across[0]), np.searchsorted(panel.scores, across[1], "right")
    for beyond, at, label in (
        (inside[0], "left", "← {:,} beyond"),
        (len(panel.scores) - inside[1], "right", "{:,} beyond →"),
    ):
        if beyond:
            where = {"ha": at, "va": "top", "size": "x-small", "transform": below.transAxes}
            below.text(float(at == "right"), 1.0, label.format(beyond), **where)
    if labelled:
        ax.set_ylabel(observed, size=text)
        width = canvas.inches(ax)[0]
        below.set_xlabel(canvas.wrapped(predicted, width, small=small), size=text)
    return below


def _draw_models(
    ax: Any, panels: Sequence[Panel], names: Sequence[str], scale: Scale, percent: str
) -> tuple[Any, list[Any]]:
    """Draw one probability of several models: curves, where these lie if calibrated, and predictions.

    A bar is the simultaneous band of one bin; a mark outside its bar is filled. Returns the axes of the
    predictions, and the entries of the legend.
    """
    first, narrow = panels[0], canvas.is_narrow(ax)
    across, ends, (predicted, observed) = _frame(ax, panels, scale, few=narrow)
    names = [lettering(name) for name in names]
    entries: list[Any] = []
    for panel, name, (colour, mark, dashes) in zip(panels, names, _LOOKS, strict=False):
        x, y, outside = panel.predicted, np.clip(panel.observed, *ends), panel.outside
        look: dict[str, Any] = {"color": colour, "linestyle": dashes, "linewidth": 1.3}
        band, shown = _band(panel, panel.simultaneous, ends, "band"), np.arange(len(x))
        if panel.line is None or panel.in_points:
            draw(ax, band._replace(kind="intervals"), color=colour, linewidth=canvas.BAR, **canvas.BAND)
            draw(ax, Mark("line", "curve", x, y), **look)
        else:
            draw(ax, band, color=colour, **canvas.BAND)
            curve = Mark("line", "curve", panel.line[0], np.clip(panel.line[1], *ends))
            draw(ax, curve, color=colour, linestyle=dashes)
            shown = np.flatnonzero(outside)[:: max(1, int(outside.sum()) // 8)]
        form = canvas.of_one(ax, told_apart(x[shown], y[shown], outside[shown]), colour, mark)
        entries.append(canvas.entry("curve", ", ".join([name, *panel.measured]), **look, **form))
    what = "point" if first.line is not None else "bin"
    if any(panel.outside.any() for panel in panels):
        entries.append(canvas.filled(f"filled: {what} outside its band"))
    label = f"{percent} band if calibrated: all {what}s of all models together"
    entries.append(canvas.entry("band", label, color=canvas.PALE))
    entries.append(canvas.entry("diag", canvas.AS_PREDICTED))
    small = "small" if narrow else "medium"
    heading(ax, f"{lettering(first.title)}, n = {first.result.n_samples:,}", size=small)
    ax.set_ylabel(observed, size=small)
    below = _rows_below(ax, panels, scale, across, _BARS // 2, labelled=True)
    below.set_xlabel(canvas.wrapped(predicted, canvas.inches(ax)[0], small=narrow), size=small)
    return below, entries


def _rows_below(
    ax: Any, panels: Sequence[Panel], scale: Scale, across: Limits, most: int, *, labelled: bool
) -> Any:
    """Draw how many predictions there are, beneath, in bars that look equally wide."""
    from matplotlib.ticker import EngFormatter, MaxNLocator

    place, highest = ax.get_subplotspec(), 1
    if place is None:  # outside any grid
        below = ax.inset_axes([0.0, -0.25, 1.0, 0.2], sharex=ax)
    else:  # a fifth as high
        upper, lower = place.subgridspec(2, 1, height_ratios=[5, 1])
        ax.set_subplotspec(upper)
        below = ax.figure.add_subplot(lower, sharex=ax)
    for panel, (colour, _, dashes) in zip(panels, _LOOKS, strict=False):
        scores = panel.scores
        edges = scale.bars(across, int(min(most, _BARS_OF_ROWS * len(scores) ** (1.0 / 3.0))))
        first, *others = np.searchsorted(scores, edges, side="right")  # bars are (a, b], as all bins …
        first = np.searchsorted(scores, edges[0], side="left")  # … and the first holds its low end
        counted = np.diff([first, *others])
        if len(panels) == 1:
            draw(below, Mark("columns", "bar", edges, counted), color=canvas.FAINT)
        else:
            below.stairs(counted, edges, color=colour, linestyle=dashes, linewidth=1.3)
        highest = max(highest, int(counted.max()))
    below.set_ylim(0.0, 1.08 * highest)
    below.yaxis.set_major_locator(MaxNLocator(2, integer=True))
    below.yaxis.set_major_formatter(EngFormatter(sep=""))  # 9.4k
    below.tick_params(labelsize="small", labelbottom=True)
    canvas.tidy(below)
    if labelled:
        below.set_ylabel("rows", size="small")
    return below
