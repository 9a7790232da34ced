"""Power against the number of rows: what was simulated, with exact intervals, and the fitted curve."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from caltest._arguments import OneOf, arguments
from caltest.pictures.marks import Mark
from caltest.planning import PowerResult, SampleSizeResult
from caltest.plots import canvas
from caltest.plots.display import ResultDisplay

_TICKS = 8  # numbers of rows of which each has a tick of its own
_TICK_ROOM, _ENTRY_ROOM = 0.5, 1.7  # inches: of a tick, of a legend's entry
_SMALL = 2.0  # inches: narrower or lower axes have no legend
_LONG = 2.6  # inches: of the label of the vertical axis


@arguments(
    result=OneOf(
        "caltest.planning:PowerResult SampleSizeResult",
        "give what caltest.power or caltest.sample_size returns",
    )
)
@dataclass(frozen=True, eq=False)
class PowerDisplay(ResultDisplay):
    """Plot power against the number of rows.

    Make it with ``from_result``.

    Points are the shares of data sets rejected, larger for more data sets, with their 95%
    Clopper–Pearson intervals. For a power, a band joins the intervals, and diamonds show the
    shares of calibrated models rejected, if you asked for them. For a sample size, the plot shows
    the fitted curve, the power you want, and the number of rows found with its interval. The
    dotted line is the level. In axes that you give, the legend is placed below if their figure has
    a layout, and inside otherwise; axes under two inches have none.

    Parameters
    ----------
    result
        What :func:`caltest.power` or :func:`caltest.sample_size` returned.

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

    result: PowerResult | SampleSizeResult

    def _grid(self) -> dict[str, Any]:
        return {"figsize": (6.4, 4.4)}

    def _key(self) -> str:
        first = "dots: rejected" if isinstance(self.result, PowerResult) else "dashed: power wanted"
        return f"{first}, dotted: level {self.result.alpha:g}"

    def _draw(self, axes: list[Any], *, new: bool) -> None:
        (ax,), result = axes, self.result
        rows = np.array([point.n for point in result.points])
        shares = np.array([point.power for point in result.points])
        low, high = np.array([point.interval for point in result.points]).T
        counts = np.array([point.n_datasets for point in result.points], dtype=np.float64)
        if isinstance(result, SampleSizeResult):
            _draw_answer(ax, result)
        elif len(rows) > 1:
            canvas.draw(ax, Mark("area", "between", rows, low, high, "between the intervals"))
            canvas.draw(ax, Mark("line", "line", rows, shares), linewidth=1.2, zorder=2)
        canvas.draw(ax, Mark("intervals", "error", rows, low, high), linewidth=1.0, zorder=3)
        areas = 12.0 + 42.0 * counts / counts.max()
        whole: dict[str, Any] = {"zorder": 4, "clip_on": False}  # at 0 and 1 too
        ax.scatter(rows, shares, areas, color=canvas.BLUE, label="rejected, 95% interval", **whole)
        asked = [point for point in result.points if point.size is not None]
        if asked:
            own, sizes = [point.n for point in asked], [point.size for point in asked]
            ends = np.array([point.size_interval for point in asked]).T
            canvas.draw(ax, Mark("intervals", "error", own, *ends), color=canvas.FAINT, zorder=3)
            of_calibrated = Mark("points", "hollow", own, sizes, label="rejected if calibrated")
            canvas.draw(ax, of_calibrated, marker="D", markersize=6.0, **whole)
        label, ink = f"level, {result.alpha:g}", ax.xaxis.label.get_color()  # seen on a dark ground too
        ax.axhline(result.alpha, color=ink, linewidth=1.0, linestyle=(0, (1, 2)), label=label)
        _set_ticks(ax, result)
        ax.set_ylim(-0.03, 1.03)
        width, height = canvas.inches(ax)
        ax.set_xlabel("rows")
        ax.set_ylabel("power: share of data sets rejected" if height > _LONG else "power")
        lens = f", {canvas.lettering(result.lens)}" if result.lens else ""
        what = f"{canvas.lettering(result.statistic, canvas.CLAUSE)}{lens}"
        by = (
            "exact p-values"
            if result.null == "monte_carlo"
            else f"null {canvas.lettering(result.null)}"
        )
        canvas.heading(
            ax, canvas.wrapped(f"How often {what} rejects at level {result.alpha:g}, {by}", width)
        )
        canvas.tidy(ax, "y")
        if new:
            ax.figure.legend(loc="outside lower left", ncols=3, columnspacing=1.2, **canvas.SMALL)
        elif min(width, height) >= _SMALL:
            canvas.legend_below(ax, max(1, min(3, int(width / _ENTRY_ROOM))))


def _draw_answer(ax: Any, result: SampleSizeResult) -> None:
    """Draw the curve, the power wanted, and the number of rows with its interval."""
    shown = [point.n for point in result.points]
    if result.n is not None:
        low, high = result.interval
        ends = (result.min_n if low is None else low, max(shown) if high is None else high)
        if result.reached == "yes":
            label = f"its 95% interval{', open' if high is None else ''}"
            ax.axvspan(*ends, color=canvas.WIDE_BAND, linewidth=0, zorder=0, label=label)
            shown += ends
        label = f"{'at most ' if result.reached == 'at the smallest' else ''}{result.n:,} rows"
        ax.axvline(result.n, color=canvas.VERMILION, linewidth=1.8, zorder=1, label=label)
    wanted = f"power wanted, {result.power:g}"
    ax.axhline(result.power, color=canvas.VERMILION, linewidth=1.2, linestyle=(0, (5, 2)), label=wanted)
    if min(shown) < max(shown):
        rows = np.geomspace(min(shown), max(shown), 200)
        fitted = Mark("line", "line", rows, result.curve(rows), label="fitted curve")
        canvas.draw(ax, fitted, linewidth=1.4, zorder=2)


def _set_ticks(ax: Any, result: PowerResult | SampleSizeResult) -> None:
    """Make the horizontal axis logarithmic; a few sizes that were asked for have their own ticks."""
    from matplotlib.ticker import FixedLocator, LogLocator, NullFormatter, NullLocator

    ax.set_xscale("log")
    sizes = [point.n for point in result.points]
    room = max(canvas.inches(ax)[0] / _TICK_ROOM, 2.0)  # so many ticks
    if len(sizes) == 1:
        ax.set_xlim(sizes[0] / 2.0, sizes[0] * 2.0)
    if len(sizes) == 1 or (isinstance(result, PowerResult) and len(sizes) <= _TICKS):
        places, chosen = np.log(sizes), [0]  # the first, the last, and what lies well between
        least = (places[-1] - places[0]) / room
        for place in range(1, len(sizes) - 1):
            if min(places[place] - places[chosen[-1]], places[-1] - places[place]) >= least:
                chosen.append(place)
        own = [sizes[place] for place in sorted({*chosen, len(sizes) - 1})]
        ax.xaxis.set_major_locator(FixedLocator(own))
        ax.xaxis.set_minor_locator(NullLocator())
    else:
        subs = (1.0, 2.0, 5.0) if room > 2.5 * np.log10(sizes[-1] / sizes[0]) else (1.0,)
        ax.xaxis.set_major_locator(LogLocator(subs=subs, numticks=12))
    ax.xaxis.set_major_formatter("{x:,.0f}")
    ax.xaxis.set_minor_formatter(NullFormatter())
