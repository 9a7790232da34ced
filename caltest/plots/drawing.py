"""How a panel of a reliability diagram is drawn."""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from caltest.plots.bands import Array
from caltest.plots.lettering import CLAUSE, lettering
from caltest.plots.panel import Panel
from caltest.plots.style import BLACK, BLUE, FAINT, NARROW_BAND, VERMILION, WIDE_BAND, short

Indices: TypeAlias = NDArray[np.intp]
Look: TypeAlias = dict[str, Any]

_NAMES = {"ece": "ECE", "mcb_brier": "Brier MCB"}
_INSIDE: Look = {"marker": "o", "color": BLUE, "markeredgecolor": BLACK, "markeredgewidth": 0.6}
_OUTSIDE: Look = {"marker": "D", "color": "white", "markeredgecolor": VERMILION, "markeredgewidth": 1.8}


def grid_of_axes(n_panels: int) -> Any:
    """Return the axes of a new figure, in the three to five columns that leave fewest places empty."""
    import matplotlib.pyplot as plt

    if n_panels == 1:
        return np.array([plt.subplots(figsize=(6, 7.2), layout="constrained")[1]])
    columns = n_panels if n_panels <= 5 else min((5, 4, 3), key=lambda c: -n_panels % c)
    rows = -(-n_panels // columns)
    size = (2.5 * columns + 0.5, 3.15 * rows + 0.9)
    figure, axes = plt.subplots(rows, columns, figsize=size, layout="constrained", squeeze=False)
    for empty in axes.ravel()[n_panels:]:
        figure.delaxes(empty)
    return axes.ravel()[:n_panels]


def draw_panel(ax: Any, panel: Panel, *, small: bool, labelled: bool) -> None:
    """Draw diagonal, bands, curve and counts; ``labelled``: name the axes."""
    ax.plot([0, 1], [0, 1], color=BLACK, linewidth=0.9, linestyle=(0, (4, 3)), zorder=3)
    if panel.line is None:
        _draw_bins(ax, panel, width=5.0 if small else 9.0)
    else:
        _draw_curve(ax, panel, marks=10 if small else 20)
    ax.set(xlim=(-0.03, 1.03), ylim=(-0.03, 1.03))
    ticks = [0, 0.5, 1] if small else np.linspace(0, 1, 6)
    ax.set_xticks(ticks)
    ax.set_yticks(ticks)
    ax.tick_params(labelsize="small", labelbottom=False)
    heading, details = _heading(panel, small=small)
    size = "small" if small else "medium"
    ax.set_title(f"{heading}\n{details}", loc="left", size=size)
    below = _draw_counts(ax, panel, small=small)
    below.set_xticks(ticks)
    if labelled:
        below.set_xlabel(lettering(panel.predicted_label, CLAUSE), size=size)
        ax.set_ylabel(lettering(panel.observed_label, CLAUSE), size=size)


def _heading(panel: Panel, *, small: bool) -> tuple[str, str]:
    result = panel.result
    name, p = _NAMES[result.name], f"p = {result.pvalue:.3g}"
    title = lettering(panel.title)
    if small:
        return title, f"{name} {result.statistic:.2g}, {p}"
    return f"{title}, n = {result.n_samples:,}", f"{name} {result.statistic:.3g}, {p} (exact)"


def _draw_bins(ax: Any, panel: Panel, width: float) -> None:
    """Draw bars for the bands, and a point for every bin."""
    for band, colour, order in ((panel.simultaneous, WIDE_BAND, 1), (panel.pointwise, NARROW_BAND, 2)):
        ax.vlines(panel.predicted, band.low, band.high, color=colour, linewidth=width, zorder=order)
        for end in band:  # a band of no height is seen by its ends
            ax.plot(panel.predicted, end, "_", color=colour, markersize=width, zorder=order)
    size = 0.62 * width + 0.5
    for chosen, look in ((~panel.outside, _INSIDE), (panel.outside, _OUTSIDE)):
        _draw_points(ax, panel.predicted[chosen], panel.observed[chosen], size, look)


def _draw_curve(ax: Any, panel: Panel, marks: int) -> None:
    """Draw ribbons for the bands, and the curve, marked where it is outside."""
    assert panel.line is not None
    for band, colour, order in ((panel.simultaneous, WIDE_BAND, 1), (panel.pointwise, NARROW_BAND, 2)):
        ax.fill_between(*_steps(panel.predicted, *band), color=colour, linewidth=0.8, zorder=order)
    ax.plot(*panel.line, color=BLUE, linewidth=2.0, zorder=4, clip_on=False)
    if len(panel.predicted) == 1:  # one score has no line
        _draw_points(ax, panel.predicted, panel.observed, 6.0, _INSIDE)
    shown = _spread(panel.predicted, np.flatnonzero(panel.outside), marks)
    _draw_points(ax, panel.predicted[shown], panel.observed[shown], 5.0, _OUTSIDE)


def _steps(x: Array, low: Array, high: Array) -> tuple[Array, Array, Array]:
    """Return a band that holds between its points too.

    Curve and band increase: from one point to the next, the curve stays above the low end of the
    first and below the high end of the second.
    """
    if len(x) < 2:
        return x, low, high
    return np.repeat(x, 2)[1:-1], np.repeat(low[:-1], 2), np.repeat(high[1:], 2)


def _draw_points(ax: Any, x: Array, y: Array, size: float, look: Look) -> None:
    if len(x):  # a line of no points, not clipped, would make the layout reserve room for a corner
        ax.plot(x, y, linestyle="none", markersize=size, zorder=5, clip_on=False, **look)


def _spread(x: Array, chosen: Indices, stretches: int) -> Indices:
    """Thin out points that crowd: of those in one stretch of the axis, the first stays."""
    return chosen[np.unique((x[chosen] * stretches).astype(int), return_index=True)[1]]


def _draw_counts(ax: Any, panel: Panel, *, small: bool) -> Any:
    """Draw the histogram of the predictions beneath, on a log scale: rare ones matter here."""
    from matplotlib.ticker import NullLocator

    counted, edges = panel.histogram
    below = _axes_beneath(ax)
    used = counted > 0
    left, width = edges[:-1][used], np.diff(edges)[used]
    look = {"align": "edge", "color": FAINT, "edgecolor": "white"}
    below.bar(left, counted[used] - 0.5, width, bottom=0.5, **look)
    below.set_yscale("log")
    top = float(counted.max())
    below.set_ylim(0.5, (2 * top) ** (1.0 if small else 1.45))
    ticks = [t for t in (1, 10, 100, 1000, 10**4, 10**5, 10**6) if t <= top]
    below.set_yticks(ticks[:: max(1, len(ticks) // 2)], minor=False)
    below.yaxis.set_major_formatter(lambda value, _: short(value))
    below.yaxis.set_minor_locator(NullLocator())
    below.tick_params(labelsize="small", labelbottom=True)
    for side in ("top", "right"):
        below.spines[side].set_visible(False)
    if not small:
        below.set_ylabel("predictions\n(log scale)", size="small")
        if len(counted) <= 20:
            for x, wide, number in zip(left, width, counted[used], strict=True):
                below.annotate(
                    short(number),
                    (x + wide / 2, number),
                    xytext=(0, 2),
                    textcoords="offset points",
                    ha="center",
                    size="x-small",
                )
    return below


def _axes_beneath(ax: Any) -> Any:
    """Cut axes in two, the lower part small; axes outside any grid get an inset below instead."""
    place = ax.get_subplotspec()
    if place is None:
        return ax.inset_axes([0.0, -0.25, 1.0, 0.2], sharex=ax)
    upper, lower = place.subgridspec(2, 1, height_ratios=[5, 1])
    ax.set_subplotspec(upper)
    return ax.figure.add_subplot(lower, sharex=ax)


def add_legend(figure: Any, panels: tuple[Panel, ...], percent: str) -> None:
    """Explain the marks, outside the axes."""
    # Several panels share a label below, where a legend would cover it.
    loc, columns = ("lower", 2) if len(panels) == 1 else ("upper", 3)
    entries = _entries(panels, f"{percent} band if calibrated:")
    style = {"fontsize": "small", "frameon": False}
    figure.legend(handles=entries, loc=f"outside {loc} center", ncols=columns, **style)


def add_legend_inside(ax: Any, panels: tuple[Panel, ...], percent: str, *, short: bool) -> None:
    """Explain the marks in the emptier corner of axes; ``short``: the bands only, in few words."""
    above = float((panels[0].observed - panels[0].predicted).sum()) > 0
    entries = _entries(panels, f"{percent} band if calibrated:")
    if short:
        entries = entries[:2]
        for entry, words in zip(entries, ("each alone", "all together"), strict=True):
            entry.set_label(f"{percent}, {words}")
    ax.legend(handles=entries, loc="lower right" if above else "upper left", fontsize="x-small")


def _entries(panels: tuple[Panel, ...], band: str) -> list[Any]:
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch

    curve = panels[0].line is not None
    point = "point" if curve else "bin"
    every = f"all {point}s" + (" of all panels" if len(panels) > 1 else " together")
    line: Look = {"color": BLUE, "linewidth": 2.0} if curve else {"linestyle": "none", **_INSIDE}
    entries: list[Any] = [
        Patch(color=NARROW_BAND, label=f"{band} each {point} alone"),
        Patch(color=WIDE_BAND, label=f"{band} {every}"),
        Line2D([], [], color=BLACK, linewidth=0.9, linestyle=(0, (4, 3)), label="share as predicted"),
    ]
    if curve or not all(panel.outside.all() for panel in panels):
        entries.append(Line2D([], [], label="isotonic regression" if curve else "bin", **line))
    if any(panel.outside.any() for panel in panels):
        label = f"{'' if curve else 'bin '}outside the lighter band"
        entries.append(Line2D([], [], linestyle="none", label=label, **_OUTSIDE))
    return entries
