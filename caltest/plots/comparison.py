"""How models rank by a calibration error, and how often one is below another."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from caltest._arguments import OneOf, arguments, level_of_confidence
from caltest.plots.display import (
    BLACK,
    BLUE,
    FAINT,
    NAME,
    SMALL,
    VERMILION,
    ResultDisplay,
    heading,
    heat_map_axes,
    inches,
    lettering,
    tidy,
    write_cell,
)
from caltest.text.comparison import resamples_of, shown_names
from caltest.text.numbers import confidence_text

if TYPE_CHECKING:
    from caltest.comparison import Comparison

_MOST = 125.0  # percent, where the colours end
_DARK = 85.0  # percent; numbers are white above


@arguments(result=OneOf("caltest.comparison:Comparison", "give what caltest.compare returns"))
@dataclass(frozen=True, eq=False)
class ComparisonDisplay(ResultDisplay):
    """Intervals of every model, and how often one ranks before another. Make it with ``from_result``.

    Left: the models in the order of the ranking, best on top, with their intervals; a value that is not
    finite is named instead. Right: in how many percent of the resamples the model of a row has a
    smaller error than the model of a column; bold where the two are told apart.

    Parameters
    ----------
    result
        Of :func:`caltest.compare`.

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
        size = (7.0 + side, 1.3 + side)
        return {"mosaic": [[0, 1]], "figsize": size, "width_ratios": [4.2, side]}

    def _draw(self, axes: list[Any], *, new: bool) -> None:
        _draw_intervals(axes[0], self.result)
        _draw_proportions(axes[1], self.result)


def _draw_intervals(ax: Any, c: Comparison) -> None:
    order = c.order
    values, ends, calibrated = c.values[order], c.intervals[order], c.if_calibrated[order]
    places, finite = np.arange(len(order)), np.isfinite(ends).all(axis=1)
    if finite.any() and (c.signed or ends[finite].min() < 0.0):
        ax.axvline(0.0, color=FAINT, linewidth=0.9, linestyle=(0, (4, 3)), zorder=1)
    ax.hlines(places[finite], *ends[finite].T, color=BLUE, linewidth=5.0, zorder=2)
    tick = {"markersize": 13, "markeredgewidth": 1.8, "color": BLACK, "linestyle": "none"}
    ax.plot(values[finite], places[finite], "|", zorder=3, **tick)
    for place in places[~finite]:
        text, where = f"{values[place]:.4g}, interval unknown", ("axes fraction", "data")
        ax.annotate(text, (0.02, place), xycoords=where, color=VERMILION, va="center")
    biased = finite & (calibrated > 0.0)
    if biased.any():
        look = {"markersize": 5.5, "markerfacecolor": "white", "markeredgecolor": VERMILION}
        ax.plot(calibrated[biased], places[biased], "D", **look, zorder=4, label="mean if calibrated")
        below = -max(0.16, 0.45 / inches(ax)[1])
        ax.legend(loc="upper left", bbox_to_anchor=(0.0, below), **SMALL)
    names = shown_names(c, NAME)
    labels = [f"{place}  {lettering(names[i], 4 * NAME)}" for place, i in enumerate(order, 1)]
    ax.set_yticks(places, labels)
    ax.set_ylim(len(order) - 0.5, -0.5)
    ax.margins(x=0.06)
    ax.ticklabel_format(axis="x", style="sci", scilimits=(-3, 4), useMathText=True)
    ax.locator_params(axis="x", nbins=5)
    tidy(ax, "x")
    statistic, lens = lettering(c.statistic), f", {lettering(c.lens)}" if c.lens else ""
    ax.set_xlabel(statistic)
    what = f"{statistic}{lens} on {c.n_samples:,} rows"
    heading(ax, what, f"{confidence_text(c.confidence)} intervals")


def _draw_proportions(ax: Any, c: Comparison) -> None:
    pairs, count = np.ix_(c.order, c.order), len(c.order)
    percent, adjusted = 100.0 * c.pair_proportions[pairs], c.adjusted_pvalues[pairs]
    tested = np.isfinite(c.difference_errors[pairs])
    shown = np.ma.masked_where(np.eye(count, dtype=bool), percent)
    ax.imshow(shown, cmap="Blues", vmin=0.0, vmax=_MOST, aspect="auto")
    for i, j in np.ndindex(count, count):
        if i == j:
            ax.text(j, i, "·", ha="center", va="center", color=FAINT)
            continue
        share = float(percent[i, j])  # one that is not quite 0 or 100 does not look as if it were
        number = ">99" if 99.0 < share < 100.0 else "<1" if 0.0 < share < 1.0 else f"{share:.0f}"
        apart = tested[i, j] and adjusted[i, j] <= level_of_confidence(c.confidence)
        style = "normal" if tested[i, j] else "italic"
        write_cell(ax, i, j, number, dark=share > _DARK, bold=bool(apart), style=style)
    numbers = [str(place) for place in range(1, count + 1)]
    heat_map_axes(ax, numbers, numbers)
    meaning = "bold: told apart" + (f" ({c.correction})" if c.correction else "")
    ax.set_xlabel(meaning if tested.all() else f"{meaning}; italic: not tested")
    resamples = f"{c.n_resamples:,} {resamples_of(c)} of {c.size:,} rows"
    heading(ax, "row's error below column's, in % of", resamples)
