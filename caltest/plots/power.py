"""Power against the number of rows: what was simulated, with exact intervals, and the fitted curve."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from caltest.planning import PowerResult, SampleSizeResult
from caltest.plots.style import BLACK, BLUE, FAINT, NARROW_BAND, PALE, VERMILION, WIDE_BAND

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_TICKS = 8  # numbers of rows of which each has a tick of its own


@dataclass(frozen=True, eq=False)
class PowerDisplay:
    """Power against the number of rows. Make it with `from_result`.

    Attributes
    ----------
    result
        What is shown.
    figure_, ax_
        The picture; None before :meth:`plot`.
    """

    result: PowerResult | SampleSizeResult
    figure_: Figure | None = field(default=None, init=False, repr=False)
    ax_: Axes | None = field(default=None, init=False, repr=False)

    @classmethod
    def from_result(
        cls, result: PowerResult | SampleSizeResult, *, ax: Axes | None = None
    ) -> PowerDisplay:
        """Draw the power.

        Parameters
        ----------
        result
            Of :func:`caltest.power` or :func:`caltest.sample_size`.
        ax
            Axes to draw in. Default: a new figure.

        Returns
        -------
        PowerDisplay
            Drawn. Points: the shares of data sets rejected, the larger the more data sets, with their
            95% Clopper–Pearson intervals; of a power, with a band between these, and as diamonds the
            shares of calibrated models rejected, if asked for. Of a sample size, the fitted curve, the
            power wanted, and the number of rows found in its interval. The dotted line is the level.

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

    def plot(self, ax: Axes | None = None) -> PowerDisplay:
        """Draw the power.

        Parameters
        ----------
        ax
            Axes to draw in. Default: a new figure.

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
        object.__setattr__(self, "figure_", axes.figure)
        object.__setattr__(self, "ax_", axes)
        return self


def _draw_answer(ax: Any, result: SampleSizeResult) -> None:
    """Draw the curve, the power wanted, and the number of rows with its interval."""
    if result.n is not None:
        low, high = result.interval
        ends = (result.min_n if low is None else low, result.max_n if high is None else high)
        ax.axvspan(*ends, color=WIDE_BAND, linewidth=0, zorder=0, label="its 95% interval")
        label = f"{'at most ' if result.reached == 'at the smallest' else ''}{result.n:,} rows"
        ax.axvline(result.n, color=VERMILION, linewidth=1.8, zorder=1, label=label)
    wanted = f"power wanted, {result.power:g}"
    ax.axhline(result.power, color=VERMILION, linewidth=1.2, linestyle=(0, (5, 2)), label=wanted)
    sizes = [point.n for point in result.points]
    rows = np.geomspace(min(sizes), max(sizes), 200)
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
    from matplotlib.ticker import (
        FixedLocator,
        LogLocator,
        NullFormatter,
        NullLocator,
        StrMethodFormatter,
    )

    label = f"level, {result.alpha:g}"
    ax.axhline(result.alpha, color=BLACK, linewidth=1.0, linestyle=(0, (1, 2)), label=label)
    ax.set_xscale("log")
    if isinstance(result, PowerResult) and len(result.points) <= _TICKS:
        ax.xaxis.set_major_locator(FixedLocator([point.n for point in result.points]))
        ax.xaxis.set_minor_locator(NullLocator())
    else:
        ax.xaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0), numticks=12))
    ax.xaxis.set_major_formatter(StrMethodFormatter("{x:,.0f}"))
    ax.xaxis.set_minor_formatter(NullFormatter())
    ax.set_ylim(-0.02, 1.02)
    ax.set_xlabel("rows")
    ax.set_ylabel("power: share of data sets rejected")
    lens = f", {result.lens}" if result.lens else ""
    heading = f"{result.statistic}{lens}: {result.null}, level {result.alpha:g}"
    ax.set_title(heading, loc="left", size="medium", parse_math=False)
    ax.grid(axis="y", color=PALE, linewidth=0.6, zorder=0)
    ax.set_axisbelow(True)
    for side in ("top", "right"):
        ax.spines[side].set_visible(False)
    below = {"loc": "upper left", "bbox_to_anchor": (-0.02, -0.15), "ncols": 3}
    ax.legend(fontsize="small", frameon=False, columnspacing=1.2, **below)
