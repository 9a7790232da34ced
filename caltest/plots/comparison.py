"""How models rank by a calibration error, and how often one is below another."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from caltest._arguments import OneOf, arguments, axes, level_of_confidence
from caltest.comparison import Comparison
from caltest.exceptions import InputError
from caltest.plots.lettering import NAME, lettering
from caltest.plots.style import BLACK, BLUE, FAINT, PALE, VERMILION
from caltest.text.comparison import resamples_of, shown_names
from caltest.text.numbers import confidence_text

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_DARK = 0.68  # of the colour scale; numbers are white above


@arguments(comparison=OneOf("caltest.comparison:Comparison", "give what caltest.compare returns"))
@dataclass(frozen=True, eq=False)
class ComparisonDisplay:
    """Intervals of every model, and how often one ranks before another. Make it with `from_comparison`.

    Attributes
    ----------
    comparison
        What is shown.
    figure_, axes_
        The picture: the figure, and its left and right axes; None before :meth:`plot`.

    Examples
    --------
    >>> import caltest, matplotlib.pyplot as plt
    >>> sure = caltest.simulation.tempered(n_samples=300, temperature=0.4, rng=0)
    >>> models = {"sure": sure.probs, "true": sure.truth}
    >>> found = caltest.compare(models, sure.labels, "skce_uq", n_resamples=50, rng=0)
    >>> display = caltest.ComparisonDisplay.from_comparison(found)
    >>> display.comparison is found, len(display.axes_)
    (True, 2)
    >>> plt.close(display.figure_)
    """

    comparison: Comparison
    figure_: Figure | None = field(default=None, init=False, repr=False)
    axes_: tuple[Axes, Axes] | None = field(default=None, init=False, repr=False)

    @classmethod
    @arguments(ax=axes)
    def from_comparison(
        cls, comparison: Comparison, *, ax: Sequence[Axes] | None = None
    ) -> ComparisonDisplay:
        """Draw a comparison.

        Parameters
        ----------
        comparison
            Of :func:`caltest.compare`.
        ax
            Two axes to draw in. Default: a new figure.

        Returns
        -------
        ComparisonDisplay
            Drawn. Left: the models in the order of the ranking, best on top, with their intervals; a
            value that is not finite is named instead. Right: in how many percent of the resamples
            the model of a row has a smaller error than the model of a column; bold where the two are
            told apart.

        Raises
        ------
        InputError
            If ``ax`` are not two.

        Examples
        --------
        >>> import caltest, matplotlib.pyplot as plt
        >>> from caltest.datasets import load_digits_predictions
        >>> digits = [load_digits_predictions(name) for name in ("naive_bayes", "platt_svm")]
        >>> models = {each.model: each.probs for each in digits}
        >>> comparison = caltest.compare(models, digits[0].labels, "ece", n_resamples=50, rng=0)
        >>> display = caltest.ComparisonDisplay.from_comparison(comparison)
        >>> [label.get_text() for label in display.axes_[0].get_yticklabels()]
        ['1  platt_svm', '2  naive_bayes']
        >>> plt.close(display.figure_)
        """
        return cls(comparison).plot(ax)

    @arguments(ax=axes)
    def plot(self, ax: Sequence[Axes] | None = None) -> ComparisonDisplay:
        """Draw intervals and proportions.

        Parameters
        ----------
        ax
            As in :meth:`from_comparison`.

        Returns
        -------
        ComparisonDisplay
            Itself, with ``figure_`` and ``axes_`` set.
        """
        axes: Any = _new_axes(len(self.comparison.names)) if ax is None else np.ravel(np.array(ax))
        if len(axes) != 2:
            raise InputError(f"there are {len(axes)} axes; give two, for intervals and proportions.")
        left, right = axes
        _draw_intervals(left, self.comparison)
        _draw_proportions(right, self.comparison)
        object.__setattr__(self, "figure_", left.figure)
        object.__setattr__(self, "axes_", (left, right))
        return self


def _new_axes(n_models: int) -> Any:
    import matplotlib.pyplot as plt

    side = 0.9 + 0.42 * max(n_models, 4)
    size = (7.0 + side, 1.3 + side)
    return plt.subplots(1, 2, figsize=size, width_ratios=[4.2, side], layout="constrained")[1]


def _draw_intervals(ax: Any, comparison: Comparison) -> None:
    c, order = comparison, comparison.order
    places, finite = np.arange(len(order)), np.isfinite(c.intervals[order]).all(axis=1)
    values, ends = c.values[order], c.intervals[order]
    if finite.any() and (c.signed or ends[finite].min() < 0.0):
        ax.axvline(0.0, color=FAINT, linewidth=0.9, linestyle=(0, (4, 3)), zorder=1)
    ax.hlines(places[finite], *ends[finite].T, color=BLUE, linewidth=5.0, zorder=2)
    tick = {"markersize": 13, "markeredgewidth": 1.8, "color": BLACK, "linestyle": "none"}
    ax.plot(values[finite], places[finite], "|", zorder=3, **tick)
    for place in places[~finite]:
        ax.annotate(
            f"{values[place]:.4g}, interval unknown",
            (0.02, place),
            xycoords=("axes fraction", "data"),
            color=VERMILION,
            va="center",
        )
    biased = finite & (c.if_calibrated[order] > 0.0)
    if biased.any():
        ax.plot(
            c.if_calibrated[order][biased],
            places[biased],
            "D",
            markersize=5.5,
            markerfacecolor="white",
            markeredgecolor=VERMILION,
            zorder=4,
            label="mean if calibrated",
        )
        ax.legend(loc="upper left", bbox_to_anchor=(0.0, -0.16), frameon=False, fontsize="small")
    short = shown_names(c, NAME)
    names = [f"{place}  {lettering(short[i], 4 * NAME)}" for place, i in enumerate(order, 1)]
    ax.set_yticks(places, names)
    ax.set_ylim(len(order) - 0.5, -0.5)
    ax.margins(x=0.06)
    ax.ticklabel_format(axis="x", style="sci", scilimits=(-3, 4), useMathText=True)
    ax.locator_params(axis="x", nbins=5)
    ax.grid(axis="x", color=PALE, linewidth=0.6, zorder=0)
    ax.set_axisbelow(True)
    for side in ("top", "right"):
        ax.spines[side].set_visible(False)
    statistic = lettering(c.statistic)
    ax.set_xlabel(statistic)
    lens = f", {lettering(c.lens)}" if c.lens else ""
    heading = f"{statistic}{lens} on {c.n_samples:,} rows\n{confidence_text(c.confidence)} intervals"
    ax.set_title(heading, loc="left", size="medium")


def _draw_proportions(ax: Any, comparison: Comparison) -> None:
    c, order = comparison, comparison.order
    percent = 100.0 * c.pair_proportions[np.ix_(order, order)]
    adjusted = c.adjusted_pvalues[np.ix_(order, order)]
    tested = np.isfinite(c.difference_errors[np.ix_(order, order)])
    count = len(order)
    shown = np.ma.masked_where(np.eye(count, dtype=bool), percent)
    ax.imshow(shown, cmap="Blues", vmin=0.0, vmax=125.0, aspect="auto")
    for i, j in np.ndindex(count, count):
        if i == j:
            ax.text(j, i, "·", ha="center", va="center", color=FAINT)
            continue
        apart = tested[i, j] and adjusted[i, j] <= level_of_confidence(c.confidence)
        ax.text(
            *(j, i, _number(float(percent[i, j]))),
            ha="center",
            va="center",
            color="white" if percent[i, j] > 125.0 * _DARK else BLACK,
            weight="bold" if apart else "normal",
            style="normal" if tested[i, j] else "italic",
        )
    numbers = [str(place) for place in range(1, count + 1)]
    ax.set_xticks(range(count), numbers)
    ax.set_yticks(range(count), numbers)
    ax.tick_params(length=0)
    for side in ("top", "right", "bottom", "left"):
        ax.spines[side].set_visible(False)
    meaning = "bold: told apart" + (f" ({c.correction})" if c.correction else "")
    ax.set_xlabel(meaning if tested.all() else f"{meaning}; italic: not tested")
    ax.set_title(
        f"row's error below column's, in % of\n{c.n_resamples:,} {resamples_of(c)} of {c.size:,} rows",
        loc="left",
        size="medium",
    )


def _number(percent: float) -> str:
    """Write a percentage; one that is not quite 0 or 100 does not look as if it were.

    >>> _number(100.0), _number(99.8), _number(50.0), _number(0.2)
    ('100', '>99', '50', '<1')
    """
    if 99.0 < percent < 100.0:
        return ">99"
    return "<1" if 0.0 < percent < 1.0 else f"{percent:.0f}"
