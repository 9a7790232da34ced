"""Power against the number of rows: what was simulated, with exact intervals, and the fitted curve."""

from __future__ import annotations

import textwrap
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from caltest._arguments import OneOf, arguments
from caltest._visible import shown
from caltest.planning import PowerResult, SampleSizeResult
from caltest.plots.lettering import lettering
from caltest.plots.style import BLUE, FAINT, NARROW_BAND, PALE, VERMILION, WIDE_BAND

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_TICKS = 8  # numbers of rows of which each has a tick of its own
_TICK_ROOM, _ENTRY_ROOM, _LETTER = 0.5, 1.7, 0.08  # inches: of a tick, a legend's entry, a letter
_SMALL = 2.0  # inches: narrower or lower axes have no legend
_LONG = 2.6  # inches: of the label of the vertical axis


@arguments(
    result=OneOf(
        "caltest.planning:PowerResult SampleSizeResult",
        "give what caltest.power or caltest.sample_size returns",
    )
)
@dataclass(frozen=True, eq=False)
class PowerDisplay:
    """Power against the number of rows. Make it with `from_result`.

    Attributes
    ----------
    result
        What is shown.
    figure_, ax_
        The picture; None before :meth:`plot`.

    Examples
    --------
    >>> import caltest, matplotlib.pyplot as plt
    >>> from caltest.simulation import m3
    >>> found = caltest.power(m3, [50, 100], "ecd", n_datasets=20, rng=0)
    >>> display = caltest.PowerDisplay.from_result(found)
    >>> display.result is found
    True
    >>> plt.close(display.figure_)
    """

    result: PowerResult | SampleSizeResult
    figure_: Figure | None = field(default=None, init=False, repr=False)
    ax_: Axes | None = field(default=None, init=False, repr=False)

    @classmethod
    @arguments()
    def from_result(
        cls, result: PowerResult | SampleSizeResult, *, ax: Axes | None = None
    ) -> PowerDisplay:
        """Draw the power.

        Parameters
        ----------
        result
            Of :func:`caltest.power` or :func:`caltest.sample_size`.
        ax
            Axes to draw in; their figure should have a layout that makes room for labels and the legend
            below, such as "constrained": without one, the legend is put inside. Axes of less than two
            inches get none. Default: a new figure.

        Returns
        -------
        PowerDisplay
            Drawn. Points: the shares of data sets rejected, the larger the more data sets, with their
            95% Clopper–Pearson intervals; of a power, with a band between these, and as diamonds the
            shares of calibrated models rejected, if asked for. Of a sample size, the fitted curve, the
            power wanted, and the number of rows found in its interval. The dotted line is the level.

        Raises
        ------
        InputError
            If the result is none of a power or a sample size.

        Examples
        --------
        >>> import caltest, matplotlib.pyplot as plt
        >>> from caltest.simulation import m3
        >>> found = caltest.power(m3, [50, 100, 200], "ecd", n_datasets=50, rng=0)
        >>> display = caltest.PowerDisplay.from_result(found)
        >>> display.ax_.get_xlabel()
        'rows'
        >>> plt.close(display.figure_)
        """
        return cls(result).plot(ax)

    @arguments()
    def plot(self, ax: Axes | None = None) -> PowerDisplay:
        """Draw the power.

        Parameters
        ----------
        ax
            As in :meth:`from_result`.

        Returns
        -------
        PowerDisplay
            Itself, with ``figure_`` and ``ax_`` set.
        """
        axes: Any = ax
        if axes is None:
            import matplotlib.pyplot as plt

            axes = plt.subplots(figsize=(6.4, 4.4), layout="constrained")[1]
        if isinstance(self.result, SampleSizeResult):
            _draw_answer(axes, self.result)
        elif len(self.result.points) > 1:
            _draw_band(axes, self.result)
        _draw_points(axes, self.result)
        _finish(axes, self.result)
        _draw_legend(axes, new=ax is None)
        object.__setattr__(self, "figure_", axes.figure)
        object.__setattr__(self, "ax_", axes)
        return self


def _draw_answer(ax: Any, result: SampleSizeResult) -> None:
    """Draw the curve, the power wanted, and the number of rows with its interval."""
    shown = [point.n for point in result.points]
    if result.n is not None:
        low, high = result.interval
        ends = (result.min_n if low is None else low, max(shown) if high is None else high)
        if result.reached == "yes":
            label = f"its 95% interval{', open' if high is None else ''}"
            ax.axvspan(*ends, color=WIDE_BAND, linewidth=0, zorder=0, label=label)
            shown += ends
        label = f"{'at most ' if result.reached == 'at the smallest' else ''}{result.n:,} rows"
        ax.axvline(result.n, color=VERMILION, linewidth=1.8, zorder=1, label=label)
    wanted = f"power wanted, {result.power:g}"
    ax.axhline(result.power, color=VERMILION, linewidth=1.2, linestyle=(0, (5, 2)), label=wanted)
    if min(shown) < max(shown):
        rows = np.geomspace(min(shown), max(shown), 200)
        ax.plot(rows, result.curve(rows), color=BLUE, linewidth=1.4, zorder=2, label="fitted curve")


def _draw_band(ax: Any, result: PowerResult) -> None:
    rows = [point.n for point in result.points]
    ends = np.array([point.interval for point in result.points])
    ax.fill_between(rows, *ends.T, color=NARROW_BAND, alpha=0.5, linewidth=0, zorder=0)
    ax.plot(rows, [point.power for point in result.points], color=BLUE, linewidth=1.2, zorder=2)


def _draw_points(ax: Any, result: PowerResult | SampleSizeResult) -> None:
    rows = np.array([point.n for point in result.points])
    shares = np.array([point.power for point in result.points])
    ends = np.array([point.interval for point in result.points]).T
    counts = np.array([point.n_datasets for point in result.points], dtype=np.float64)
    ax.vlines(rows, *ends, color=BLUE, linewidth=1.0, zorder=3)
    areas = 12.0 + 42.0 * counts / counts.max()
    ax.scatter(rows, shares, areas, color=BLUE, zorder=4, label="rejected, 95% interval")
    asked = [point for point in result.points if point.size is not None]
    if asked:
        own = np.array([point.n for point in asked])
        ax.vlines(own, *np.array([point.size_interval for point in asked]).T, color=FAINT, zorder=3)
        style = {"markerfacecolor": "white", "markeredgecolor": FAINT, "markersize": 6.0}
        sizes = [point.size for point in asked]
        ax.plot(own, sizes, "D", **style, zorder=4, label="rejected if calibrated")


def _finish(ax: Any, result: PowerResult | SampleSizeResult) -> None:
    label, ink = f"level, {result.alpha:g}", ax.xaxis.label.get_color()  # seen on a dark ground too
    ax.axhline(result.alpha, color=ink, linewidth=1.0, linestyle=(0, (1, 2)), label=label)
    _set_ticks(ax, result)
    ax.set_ylim(-0.02, 1.02)
    width, height = _inches(ax)
    ax.set_xlabel("rows")
    ax.set_ylabel("power: share of data sets rejected" if height > _LONG else "power")
    lens = f", {shown(result.lens)}" if result.lens else ""
    heading = f"{shown(result.statistic)}{lens}: {result.null}, level {result.alpha:g}"
    lines = textwrap.wrap(heading, max(int(width / _LETTER), 12), max_lines=3, placeholder=" …")
    ax.set_title("\n".join(lettering(each, len(heading)) for each in lines), loc="left", size="medium")
    ax.grid(axis="y", color=PALE, linewidth=0.6, zorder=0)
    ax.set_axisbelow(True)
    for side in ("top", "right"):
        ax.spines[side].set_visible(False)


def _inches(ax: Any) -> tuple[float, float]:
    box = ax.get_window_extent().transformed(ax.figure.dpi_scale_trans.inverted())
    return float(box.width), float(box.height)


def _set_ticks(ax: Any, result: PowerResult | SampleSizeResult) -> None:
    """Make the horizontal axis logarithmic; a few sizes that were asked for have their own ticks."""
    from matplotlib.ticker import (
        FixedLocator,
        LogLocator,
        NullFormatter,
        NullLocator,
        StrMethodFormatter,
    )

    ax.set_xscale("log")
    sizes = [point.n for point in result.points]
    room = max(_inches(ax)[0] / _TICK_ROOM, 2.0)  # so many ticks
    if len(sizes) == 1:
        ax.set_xlim(sizes[0] / 2.0, sizes[0] * 2.0)
    if len(sizes) == 1 or (isinstance(result, PowerResult) and len(sizes) <= _TICKS):
        ax.xaxis.set_major_locator(FixedLocator(_spaced(sizes, room)))
        ax.xaxis.set_minor_locator(NullLocator())
    else:
        subs = (1.0, 2.0, 5.0) if room > 2.5 * np.log10(sizes[-1] / sizes[0]) else (1.0,)
        ax.xaxis.set_major_locator(LogLocator(subs=subs, numticks=12))
    ax.xaxis.set_major_formatter(StrMethodFormatter("{x:,.0f}"))
    ax.xaxis.set_minor_formatter(NullFormatter())


def _spaced(sizes: list[int], most: float) -> list[int]:
    """Return the sizes that have room for a tick: the first, the last, and what lies well between.

    >>> _spaced([50, 52, 54, 60, 200, 1000, 1005], 8)
    [50, 200, 1005]
    """
    places = np.log(sizes)
    least = (places[-1] - places[0]) / most
    chosen = [0]
    for place in range(1, len(sizes) - 1):
        if min(places[place] - places[chosen[-1]], places[-1] - places[place]) >= least:
            chosen.append(place)
    return [sizes[place] for place in sorted({*chosen, len(sizes) - 1})]


def _draw_legend(ax: Any, *, new: bool) -> None:
    """Put the legend below, where there is room for it."""
    width, height = _inches(ax)
    style = {"fontsize": "small", "columnspacing": 1.2}
    if new:
        ax.figure.legend(loc="outside lower left", ncols=3, frameon=False, **style)
    elif min(width, height) < _SMALL:
        return
    elif ax.figure.get_layout_engine() is None:
        ax.legend(loc="best", framealpha=0.7, **style)
    else:
        below = {"loc": "upper left", "bbox_to_anchor": (-0.02, -0.15)}
        columns = max(1, min(3, int(width / _ENTRY_ROOM)))
        ax.legend(ncols=columns, frameon=False, **below, **style)
