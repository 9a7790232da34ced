"""How models rank by a calibration error, and how often one is below another."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from caltest._arguments import OneOf, arguments, level_of_confidence
from caltest.pictures.marks import Mark
from caltest.plots import canvas
from caltest.plots.display import ResultDisplay
from caltest.text.numbers import confidence_text
from caltest.text.summaries import drawn, resamples_of, shown_names

if TYPE_CHECKING:
    from caltest.comparison import Comparison

_MOST = 125.0  # percent, where the colours end
_LONGEST_NAME, _MOST_LEVEL = 18, 5  # characters: of a column's name, and of one that is not turned
_DARK = 85.0  # percent; numbers are white above


@arguments(result=OneOf("caltest.comparison:Comparison", "give what caltest.compare returns"))
@dataclass(frozen=True, eq=False)
class ComparisonDisplay(ResultDisplay):
    """Plot a comparison: every model's error with its interval, and how often each beats another.

    Make it with ``from_result``.

    Left: the models in the order of the ranking, best on top, with their intervals; a value that
    is not finite is written out. Right: in what percentage of the resamples the row's model has a
    smaller error than the column's; bold if the two errors differ significantly.

    Parameters
    ----------
    result
        What :func:`caltest.compare` returned.

    Examples
    --------
    >>> import caltest, matplotlib.pyplot as plt
    >>> from caltest.datasets import load_digits_predictions
    >>> digits = [load_digits_predictions(name) for name in ("naive_bayes", "platt_svm")]
    >>> models = {each.model: each.probs for each in digits}
    >>> comparison = caltest.compare(models, digits[0].labels, "ece", n_resamples=50, rng=0)
    >>> display = caltest.ComparisonDisplay.from_result(comparison)
    >>> [label.get_text() for label in display.ax_.get_yticklabels()]
    ['1  platt_svm', '2  naive_bayes']
    >>> plt.close(display.figure_)
    """

    result: Comparison
    _parts = ": one for the intervals, and one for the proportions"

    def _grid(self) -> dict[str, Any]:
        side = 0.9 + 0.42 * max(len(self.result.names), 4)
        longest = max(map(len, shown_names(self.result, _LONGEST_NAME)))
        size = (7.0 + side, 1.5 + side + 0.075 * min(longest, 2 * _LONGEST_NAME))
        return {"mosaic": [[0, 1]], "figsize": size, "width_ratios": [4.2, side]}

    def _draw(self, axes: list[Any], *, new: bool) -> None:
        _draw_intervals(axes[0], self.result)
        _draw_proportions(axes[1], self.result, new=new)


def _draw_intervals(ax: Any, c: Comparison) -> None:
    order = c.order
    values, ends, calibrated = c.values[order], c.intervals[order], c.if_calibrated[order]
    places, finite = np.arange(len(order)), np.isfinite(ends).all(axis=1)
    if finite.any() and (c.signed or ends[finite].min() < 0.0):
        zero = {"color": canvas.FAINT, "linewidth": 0.9, "linestyle": (0, (4, 3)), "zorder": 1}
        ax.axvline(0.0, **zero, label="0: no error")
    percent = confidence_text(c.confidence)
    if finite.any():
        low, high = ends[finite].T
        canvas.draw(
            ax, Mark("bars", "error", low, places[finite], high, f"{percent} interval"), linewidth=5.0
        )
        canvas.draw(
            ax,
            Mark("points", "value", values[finite], places[finite], label="error on all rows"),
            zorder=3,
        )
    for place in places[~finite]:
        text, where = f"{values[place]:.4g}, interval unknown", ("axes fraction", "data")
        ax.annotate(text, (0.02, place), xycoords=where, color=canvas.VERMILION, va="center")
    biased = finite & (calibrated > 0.0)
    if biased.any():
        mean = Mark("points", "hollow", calibrated[biased], places[biased], label="mean if calibrated")
        canvas.draw(ax, mean, marker="D", markersize=5.5, markeredgecolor=canvas.VERMILION)
    names = shown_names(c, canvas.NAME)
    labels = [
        f"{place}  {canvas.lettering(names[i], 4 * canvas.NAME)}" for place, i in enumerate(order, 1)
    ]
    ax.set_yticks(places, labels)
    ax.set_ylim(len(order) - 0.5, -0.5)
    ax.margins(x=0.06)
    ax.ticklabel_format(axis="x", style="sci", scilimits=(-3, 4), useMathText=True)
    ax.locator_params(axis="x", nbins=5)
    canvas.tidy(ax, "x")
    statistic, lens = (
        canvas.lettering(c.statistic),
        canvas.lettering(c.lens) if c.lens else "full probabilities",
    )
    measures = canvas.lettering(c.measures.partition(";")[0], 100)
    distances = {each.get("distance") for each in c.parameters.values()} - {None}
    distance = f", distance {canvas.lettering(str(*distances))}" if len(distances) == 1 else ""
    label = statistic if canvas.is_narrow(ax) else canvas.wrapped(measures, canvas.inches(ax)[0])
    ax.set_xlabel(label, loc="left")  # on the right there may be a power of ten
    what = f"{statistic}{distance}: {lens}, {c.n_samples:,} rows"
    if c.n_clusters is not None:
        what += f" in {c.n_clusters:,} clusters"
    canvas.heading(ax, what, f"{percent} intervals")
    if ax.get_legend_handles_labels()[0]:
        canvas.legend_below(ax, 2)


def _draw_proportions(ax: Any, c: Comparison, *, new: bool) -> None:
    pairs, count = np.ix_(c.order, c.order), len(c.order)
    percent, adjusted = 100.0 * c.pair_proportions[pairs], c.adjusted_pvalues[pairs]
    tested = np.isfinite(c.difference_errors[pairs])
    shown = np.ma.masked_where(np.eye(count, dtype=bool), percent)
    ax.imshow(shown, cmap="Blues", vmin=0.0, vmax=_MOST, aspect="auto")
    for i, j in np.ndindex(count, count):
        if i == j:
            ax.text(j, i, "·", ha="center", va="center", color=canvas.FAINT)
            continue
        share = float(percent[i, j])  # one that is not quite 0 or 100 does not look as if it were
        number = ">99" if 99.0 < share < 100.0 else "<1" if 0.0 < share < 1.0 else f"{share:.0f}"
        apart = tested[i, j] and adjusted[i, j] <= level_of_confidence(c.confidence)
        style = "normal" if tested[i, j] else "italic"
        canvas.write_cell(ax, i, j, number, dark=share > _DARK, bold=bool(apart), style=style)
    numbers = [str(place) for place in range(1, count + 1)]
    names = shown_names(c, _LONGEST_NAME)
    named = [
        f"{place}  {canvas.lettering(names[i], 2 * _LONGEST_NAME)}"
        for place, i in enumerate(c.order, 1)
    ]
    canvas.heat_map_axes(ax, numbers, numbers)
    if new:  # in given axes there may be no room
        upright = max(map(len, named)) > _MOST_LEVEL
        ax.set_xticks(range(count), named, rotation=90 * upright, size="small")
    level = f"p ≤ {level_of_confidence(c.confidence):.2g}" + (
        f", {c.correction}" if c.correction else ""
    )
    italic = "" if tested.all() else "\nitalic: not tested"
    ax.set_xlabel(f"bold: errors differ ({level}){italic}")
    resamples = f"{c.n_resamples:,} {resamples_of(c)} of {c.size:,} {drawn(c)}"
    canvas.heading(ax, f"% of {resamples}", "with row's error below column's")
