"""Several models in one reliability diagram: each has a colour, a mark, and bars of its own."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from caltest.plots.display import (
    AS_PREDICTED,
    BLACK,
    BLUE,
    CLAUSE,
    DASHED,
    GREEN,
    PALE,
    PURPLE,
    SMALL,
    VERMILION,
    heading,
    inches,
    is_narrow,
    legend_below,
    lettering,
    tidy,
    wrapped,
)
from caltest.plots.panel import BARS, TAIL, Panel, axes_below, axis_of_counts, counted_in_bars
from caltest.plots.scales import Scale, zoomed

_LOOKS = ((BLUE, "o", "-"), (VERMILION, "s", (0, (5, 1.5))), (GREEN, "^", "-."), (PURPLE, "D", ":"))
_MARKS = ("circles", "squares", "triangles", "diamonds")
MOST_MODELS = len(_LOOKS)
_BAND, _BAR = 0.22, 5.0  # opacity, and width in points


def draw_models(
    ax: Any, panels: Sequence[Panel], names: Sequence[str], scale: Scale, percent: str, *, new: bool
) -> None:
    """Draw one probability of several models: curves, where these lie if calibrated, and predictions.

    A bar is the simultaneous band of one bin; a mark outside its bar is filled.
    """
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch

    first, narrow = panels[0], is_narrow(ax)
    scores = np.sort(np.concatenate([panel.scores for panel in panels]))
    every = [each for p in panels for each in (p.predicted, p.observed, *p.simultaneous)]
    most = np.quantile(scores, [TAIL, 1.0 - TAIL], method="inverted_cdf")
    points = np.concatenate([*(panel.predicted for panel in panels), most])
    across, upwards = zoomed(scale, points, scores[[0, -1]], np.concatenate(every))
    scale.set(ax, across, upwards, 2 if narrow else 5)
    ends = max(upwards[0], 0.0), min(upwards[1], 1.0)
    ax.plot([0.0, 1.0], [0.0, 1.0], **DASHED, zorder=3)
    tidy(ax, "both")
    below, highest = axes_below(ax), 0
    entries: list[Any] = []
    for panel, name, (colour, mark, dashes) in zip(panels, names, _LOOKS, strict=False):
        x, outside = panel.predicted, panel.outside
        low, high = (np.clip(end, *ends) for end in panel.simultaneous)
        look: dict[str, Any] = {"color": colour, "linestyle": dashes, "linewidth": 1.3}
        marks: dict[str, Any] = {"linestyle": "none", "markeredgecolor": colour, "clip_on": False}
        if panel.line is None or len(x) == 1:
            ax.vlines(x, low, high, color=colour, alpha=_BAND, linewidth=_BAR, zorder=1)
            ax.plot(x, np.clip(panel.observed, *ends), **look, zorder=4)
            shown = np.arange(len(x))
        else:
            # Curve and band increase: between points, as far as from one to the next.
            wide, steps = np.repeat(x, 2)[1:-1], (np.repeat(low[:-1], 2), np.repeat(high[1:], 2))
            ax.fill_between(wide, *steps, color=colour, alpha=_BAND, linewidth=0.0, zorder=1)
            curve, fit = panel.line
            ax.plot(curve, np.clip(fit, *ends), **{**look, "linewidth": 2.0}, zorder=4)
            shown = np.flatnonzero(outside)[:: max(1, int(outside.sum()) // 8)]
        for filled in (True, False):
            chosen = shown[outside[shown] == filled]
            if not len(chosen):  # what is not clipped would have the layout reserve room for a corner
                continue
            y = np.clip(panel.observed[chosen], *ends)
            face = {"markerfacecolor": colour if filled else "white", "markeredgewidth": 1.4}
            ax.plot(x[chosen], y, mark, **marks, **face, markersize=5.5, zorder=5)
        edges, counted = counted_in_bars(panel.scores, scale, across, BARS // 2)
        below.stairs(counted, edges, color=colour, linestyle=dashes, linewidth=1.3)
        highest = max(highest, int(counted.max()))
        label = ", ".join([lettering(name), *panel.measured])
        open_mark: dict[str, Any] = {"marker": mark, "markersize": 5.5, "markerfacecolor": "white"}
        entries.append(Line2D([], [], **look, **open_mark, label=label))
    axis_of_counts(below, highest)
    what = "point" if first.line is not None else "bin"
    filled_mark: dict[str, Any] = {"marker": "o", "color": BLACK}
    if any(panel.outside.any() for panel in panels):
        label = f"filled: {what} outside its band"
        entries.append(Line2D([], [], linestyle="none", label=label, **filled_mark))
    band = f"{percent} band if calibrated: all {what}s of all models together"
    entries += [Patch(color=PALE, label=band), Line2D([], [], **DASHED, label=AS_PREDICTED)]
    small = "small" if narrow else "medium"
    heading(ax, f"{lettering(first.title)}, n = {first.result.n_samples:,}", size=small)
    words = f", {scale.words}" if scale.words else ""
    ax.set_ylabel(f"{lettering(first.observed_label, CLAUSE)}{words}", size=small)
    ax.tick_params(labelsize="small", labelbottom=False)
    below.set_ylabel("rows", size="small")
    label = f"{lettering(first.predicted_label, CLAUSE)}{words}"
    if narrow:  # which is which is written below, in place of a legend
        marked = zip(_MARKS, names, strict=False)
        key = ", ".join(f"{mark}: {lettering(name)}" for mark, name in marked)
        label = wrapped(f"{label}\n{key}; filled: outside", inches(ax)[0], small=True)
    below.set_xlabel(label, size=small)
    if new:
        ax.figure.legend(handles=entries, loc="outside lower center", ncols=1, **SMALL)
    elif not narrow:
        legend_below(below, handles=entries)
