"""One panel of a reliability diagram: what it holds, and how it is drawn."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from caltest.binning import ConsistencyBand
from caltest.plots.display import (
    BLUE,
    CLAUSE,
    DASHED,
    FAINT,
    INSIDE,
    NARROW_BAND,
    OUTSIDE,
    WIDE_BAND,
    heading,
    inches,
    lettering,
    short,
    tidy,
    wrapped,
)
from caltest.plots.scales import Scale, zoomed
from caltest.results import CalibrationResult

Array: TypeAlias = NDArray[np.float64]
Indices: TypeAlias = NDArray[np.intp]

_STATISTICS = {"ece": "ECE", "mcb_brier": "Brier MCB"}
BARS, _BARS_OF_ROWS = 48, 4.0  # of the histogram at most, and times the cubic root of the rows
TAIL = 0.005  # share of the predictions on either side that need not be on the axes
_NOTHING = 1e-12  # a distance from the diagonal that is rounding


@dataclass(frozen=True, eq=False)
class Panel:
    """One reliability curve with its bands and its test.

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
    scores
        (n,) the predictions, in increasing order.
    result
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
    def middle(self) -> Array:
        """The predictions by which the axes are chosen: of the bins, or of nearly all rows."""
        if self.line is None:
            return self.predicted
        return np.asarray(np.quantile(self.scores, [0.01, 0.99], method="inverted_cdf"))

    @property
    def outside(self) -> NDArray[np.bool_]:
        """Which points the simultaneous band leaves out, (K,)."""
        return self.simultaneous.leaves_out(self.observed)

    @property
    def measured(self) -> tuple[str, str]:
        """The distance from the diagonal, and its p-value, as they are written."""
        value = f"{self.result.statistic:.2g}" if self.result.statistic > _NOTHING else "0"
        return f"{_STATISTICS[self.result.name]} {value}", f"p = {self.result.pvalue:.3g}"


def draw_panel(
    ax: Any, panel: Panel, *, scale: Scale, small: bool, labelled: bool, key: str, first: bool
) -> Any:
    """Draw diagonal, bands, curve and predictions; ``labelled``: name axes; ``first``: counts too.

    Returns the axes of the predictions. ``key``: what stands below, in place of a legend.
    """
    words = f", {scale.words}" if scale.words else ""
    predicted, observed = (
        f"{lettering(each, CLAUSE)}{words}" for each in (panel.predicted_label, panel.observed_label)
    )
    heights = [panel.predicted, panel.observed, *panel.simultaneous, *panel.pointwise]
    most = np.quantile(panel.scores, [TAIL, 1.0 - TAIL], method="inverted_cdf")
    points = np.concatenate([panel.predicted, most])
    across, upwards = zoomed(scale, points, panel.scores[[0, -1]], np.concatenate(heights))
    scale.set(ax, across, upwards, 2 if small else 5)
    ax.plot([0.0, 1.0], [0.0, 1.0], **DASHED, zorder=3)
    tidy(ax, "both")
    ax.tick_params(labelsize="small", labelbottom=False)
    ends = max(upwards[0], 0.0), min(upwards[1], 1.0)
    bands = (panel.simultaneous, WIDE_BAND, 1), (panel.pointwise, NARROW_BAND, 2)
    wide = 5.0 if small else 9.0
    if panel.line is None or len(panel.predicted) == 1:
        for band, colour, order in bands:
            low, high = (np.clip(end, *ends) for end in band)
            ax.vlines(panel.predicted, low, high, color=colour, linewidth=wide, zorder=order)
            for end in (low, high):  # a band of no height is seen by its ends
                ax.plot(panel.predicted, end, "_", color=colour, markersize=wide, zorder=order)
        marks: list[Any] = [(~panel.outside, INSIDE), (panel.outside, OUTSIDE)]
        size = 0.62 * wide + 0.5
    else:
        for band, colour, order in bands:
            # Curve and band increase: between points, as far as from one to the next.
            x = np.repeat(panel.predicted, 2)[1:-1]
            low, high = np.repeat(band.low[:-1], 2), np.repeat(band.high[1:], 2)
            ax.fill_between(
                x, np.clip(low, *ends), np.clip(high, *ends), color=colour, linewidth=0.8, zorder=order
            )
        x, y = panel.line
        ax.plot(x, np.clip(y, *ends), color=BLUE, linewidth=2.0, zorder=4, clip_on=False)
        outside = np.flatnonzero(panel.outside)  # of those in one range of the axis, the first
        stretch = scale.forward(panel.predicted[outside]) / scale.span(across) * (10 if small else 20)
        spread = outside[np.unique(np.floor(stretch), return_index=True)[1]]
        marks, size = [(spread, OUTSIDE)], 5.0
    for chosen, look in marks:
        x, y = panel.predicted[chosen], panel.observed[chosen]
        if len(x):  # a line of no points, not clipped, would make the layout reserve room for a corner
            at = np.clip(y, *ends)
            ax.plot(x, at, linestyle="none", markersize=size, zorder=5, clip_on=False, **look)
            without_place = np.flatnonzero(at != y)  # on a logarithmic axis
            for place in without_place[:1] if small else without_place:
                where = {"xytext": (size, 0), "textcoords": "offset points", "va": "center"}
                ax.annotate(f"{y[place]:g}", (x[place], at[place]), **where, size="x-small")
    title, (error, p) = lettering(panel.title), panel.measured
    size_of_text, number = "small" if small else "medium", np.count_nonzero(panel.outside)
    lines = title, f"{error}, {p}"
    if not small:
        what = f"{number} of {len(panel.outside)} bins" if number else "no bin"
        if panel.line is not None:
            what = "the curve leaves" if number else "the curve is inside"
        found = f"{what}{'' if panel.line is not None else ' outside'} the band"
        lines = f"{title}, n = {panel.result.n_samples:,}", f"{found}; {error}, {p} (exact)"
    heading(ax, *lines, size=size_of_text)
    if labelled:
        ax.set_ylabel(observed, size=size_of_text)
    below = _draw_counts(ax, panel.scores, scale, across, small=small, labelled=first or not small)
    if labelled:
        label = wrapped(f"{predicted}\n{key}", inches(ax)[0], small=True) if small else predicted
        below.set_xlabel(label, size=size_of_text)
    return below


def axes_below(ax: Any) -> Any:
    """Make axes beneath others, a fifth as high, with the same horizontal axis."""
    place = ax.get_subplotspec()
    if place is None:  # outside any grid
        return ax.inset_axes([0.0, -0.25, 1.0, 0.2], sharex=ax)
    upper, lower = place.subgridspec(2, 1, height_ratios=[5, 1])
    ax.set_subplotspec(upper)
    return ax.figure.add_subplot(lower, sharex=ax)


def counted_in_bars(
    scores: Array, scale: Scale, across: tuple[float, float], most: int
) -> tuple[Array, Indices]:
    """Return the edges of bars that look equally wide, at most so many, and the rows in each."""
    edges = scale.bars(across, int(min(most, _BARS_OF_ROWS * len(scores) ** (1.0 / 3.0))))
    first, *others = np.searchsorted(scores, edges, side="right")  # bars are (a, b], as all bins …
    first = np.searchsorted(scores, edges[0], side="left")  # … and the first holds its low end
    return edges, np.diff([first, *others])


def axis_of_counts(below: Any, most: int) -> None:
    """Make axes those of numbers of rows, up to a largest one."""
    from matplotlib.ticker import MaxNLocator

    below.set_ylim(0.0, 1.08 * max(most, 1))
    below.yaxis.set_major_locator(MaxNLocator(2, integer=True))
    below.yaxis.set_major_formatter(lambda value, _: short(value))
    below.tick_params(labelsize="small", labelbottom=True)
    tidy(below)


def _draw_counts(
    ax: Any, scores: Array, scale: Scale, across: tuple[float, float], *, small: bool, labelled: bool
) -> Any:
    """Draw how many predictions there are beneath, in bars that look equally wide."""
    below = axes_below(ax)
    edges, counted = counted_in_bars(scores, scale, across, BARS // 2 if small else BARS)
    below.bar(edges[:-1], counted, np.diff(edges), align="edge", color=FAINT, linewidth=0.0)
    axis_of_counts(below, int(counted.max()))
    if labelled:
        below.set_ylabel("rows", size="small")
    for beyond, side in (((scores < across[0]).sum(), 0.0), ((scores > across[1]).sum(), 1.0)):
        if beyond:
            text = f"{'← ' if side == 0.0 else ''}{short(beyond)} beyond{' →' if side else ''}"
            look = {"ha": "right" if side else "left", "va": "top", "size": "x-small"}
            below.text(side, 1.0, text, transform=below.transAxes, **look)
    return below
