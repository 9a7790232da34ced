"""Numbers with their intervals: errors of models, risks of estimators, power by the number of rows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from caltest._arguments import OneOf, arguments
from caltest._numbers import confidence_text, counted
from caltest.auditing.views import View
from caltest.pictures import BAD, OK, Mark, told_apart
from caltest.planning import PowerResult, SampleSizeResult
from caltest.plots import canvas
from caltest.plots.canvas import ResultDisplay, draw, heading, lettering
from caltest.text.summaries import shown_names
from caltest.text.vocabulary import subject

if TYPE_CHECKING:
    from caltest.comparison import Comparison
    from caltest.estimation import FunctionRisk, SquaredErrorEstimate

# ------------------------------------------------------------------ models

_SHOWN = {"value": "error", BAD: "shown", OK: "not shown"}


@arguments(result=OneOf("caltest.comparison:Comparison", "give what caltest.compare returns"))
@dataclass(frozen=True, eq=False)
class ComparisonDisplay(ResultDisplay):
    """Plot a comparison: how far off every model is, and how much further than the nearest one.

    Make it with ``from_result``.

    Both in percentage points, of all rows; models are in the order of their mean absolute errors, the
    smallest on top. Left: these errors, over tenths of the model's own predictions, with their exact
    intervals. Right: their differences to that of the first model, with paired intervals; a filled
    diamond is a difference that is shown, a hollow circle one that is not.

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
    >>> comparison = caltest.compare(models, digits[0].labels, "ece")
    >>> display = caltest.plots.ComparisonDisplay.from_result(comparison)
    >>> [label.get_text() for label in display.ax_.get_yticklabels()]
    ['platt_svm', 'naive_bayes']
    >>> plt.close(display.figure_)
    """

    result: Comparison
    _parts = ": one for errors, and one for differences"

    def _grid(self) -> dict[str, Any]:
        longest = max(len(each) for each in shown_names(self.result, canvas.NAME))
        size = 8.4 + 0.07 * min(longest, 2 * canvas.NAME), 1.9 + 0.36 * max(len(self.result.names), 3)
        return {"mosaic": [[0, 1]], "figsize": size}

    def _draw(self, axes: list[Any], *, new: bool) -> None:
        c, sure = self.result, confidence_text(self.result.confidence)
        nearest, *others = c.nearest
        by_name = dict(zip(c.names, shown_names(c, canvas.NAME), strict=True))
        names = [lettering(by_name[each], 4 * canvas.NAME) for each in c.nearest]
        of_model = {each.model: each.absolute for each in c.errors[: len(names)]}
        errors = 100.0 * np.array([of_model[each] for each in c.nearest]).T
        gaps = 100.0 * np.array([c.gap(each, nearest).absolute for each in others]).T
        places = np.arange(len(names))
        for ax, (low, value, high), own in zip(axes, (errors, gaps), (places, places[1:]), strict=True):
            draw(ax, Mark("bars", "error", low, own, high, f"{sure} interval"), linewidth=5.0)
            values = [Mark("points", "value", value, own)]
            if ax is axes[1]:
                values = told_apart(value, own, low > 0.0)
            draw(ax, *(mark._replace(label=_SHOWN[mark.style]) for mark in values))
            canvas.ranked_rows(ax, names, 0.06, (-3, 4))
            ax.axvline(0.0, **canvas.DASHED | {"color": canvas.FAINT, "zorder": 1})
        axes[1].tick_params(labelleft=not new)
        what = subject(View(c.probability, c.event, None, c.n_samples))
        width = canvas.inches(axes[0])[0]
        heading(axes[0], canvas.wrapped(f"Off by: {lettering(what, canvas.CLAUSE)}", width))
        heading(axes[1], canvas.wrapped(f"Further off than {names[0]}", width))
        here = "points, mean absolute error over tenths"
        if len(c.errors) > len(names):
            here += ",\nof all rows; errors in groups are printed, not drawn"
        axes[0].set_xlabel(here, loc="left")
        over = "" if c.n_clusters is None else f" over {counted(c.n_clusters, 'cluster')}"
        axes[1].set_xlabel(f"points, paired interval{over}", loc="left")
        for ax in axes:
            canvas.legend_below(ax, 3)


# ------------------------------------------------------------------ estimators

_ROOM = 0.5  # beyond what one chooses from: where other options still are shown
_ZERO: dict[str, Any] = {"color": canvas.BLACK, "linewidth": 1.2, "linestyle": (0, (5, 2))}
_NO_ERROR = 1e-8  # a range of squared errors that is rounding
_GAP = 0.13  # of the axis: room for a number


@arguments(
    result=OneOf(
        "caltest.estimation:SquaredErrorEstimate", "give what caltest.estimate_squared_error returns"
    )
)
@dataclass(frozen=True, eq=False)
class RiskDisplay(ResultDisplay):
    """Plot how estimators of the squared error compare on held-out rows, and what they estimate.

    Make it with ``from_result``.

    Estimators have a line each, the one with the lowest risk on top. Left: the root of the validation
    risk (mean over the folds), times 100. The tick is the best option; its bar is one standard error,
    over the folds, of the difference to the best estimator: variation that all folds share does not
    affect the choice. Circles are the other options that were tried; those with a much larger risk lie
    beyond the axis. The dashed line is h = 0, which treats the model as calibrated. Right: the
    estimates of the squared error, with their roots on top; bars show one standard error.

    Parameters
    ----------
    result
        What :func:`caltest.estimate_squared_error` returned.

    Examples
    --------
    >>> import caltest, matplotlib.pyplot as plt
    >>> digits = caltest.datasets.load_digits_predictions("naive_bayes")
    >>> found = caltest.estimate_squared_error(
    ...     digits.probs, digits.labels, "top_label", ["two_step_ridge"], pvalue="none", rng=0
    ... )
    >>> display = caltest.plots.RiskDisplay.from_result(found)
    >>> [axes.get_xlabel() for axes in display.axes_]
    ['√ mean validation risk × 100', 'squared error; its root on top']
    >>> plt.close(display.figure_)
    """

    result: SquaredErrorEstimate
    _parts = ": one for risks, and one for estimates"

    def _key(self) -> str:
        return "dashed: h = 0"

    def _grid(self) -> dict[str, Any]:
        lines = sum(self._name(each).count("\n") + 1 for each in self.result.functions)
        return {"mosaic": [[0, 1]], "figsize": (9.6, 2.6 + 0.24 * max(lines, 3))}

    def _name(self, function: FunctionRisk) -> str:
        """Return the rank and the label, options as given in a line of their own."""
        label = lettering(function.label, 2 * canvas.CLAUSE).replace("(", "\n(", 1)
        return f"{self.result.functions.index(function) + 1}  {label}"

    def _draw(self, axes: list[Any], *, new: bool) -> None:
        (left, right), result, functions = axes, self.result, self.result.functions
        names, places = [self._name(each) for each in functions], np.arange(len(functions))
        best = np.stack([each.risks[each.best] for each in functions])
        # The root of the mean, and not the mean of the roots, is smallest at the option that is chosen.
        errors = (best - best[0]).std(axis=1, ddof=1) / np.sqrt(best.shape[1])
        low, value, high = (
            100.0 * np.sqrt(np.maximum(best.mean(axis=1) + sign * errors, 0.0)) for sign in (-1, 0, 1)
        )
        zero = 100.0 * float(np.sqrt(result.zero_risks.mean()))
        most = max(zero, *high) + _ROOM * (max(zero, *high) - min(zero, *low))
        bars = "standard error of the difference to function 1"
        draw(left, Mark("bars", "error", low, places, high, bars), linewidth=6.0)
        others = [
            (root, place)
            for place, each in enumerate(functions)
            for k, root in enumerate(100.0 * np.sqrt(each.risks.mean(axis=1)))
            if k != each.best and root <= most
        ]
        roots, lines = np.reshape(others, (-1, 2)).T
        draw(left, Mark("points", "hollow", roots, lines, label="another option"), zorder=3)
        draw(left, Mark("points", "value", value, places, label="best option"), zorder=5)
        left.axvline(zero, **_ZERO, label="h = 0: calibrated")
        left.set_xlabel("√ mean validation risk × 100", loc="left")
        heading(left, "risk on held-out rows", pad=16)

        values = np.array([each.estimate for each in functions])
        errors = np.array([each.standard_error for each in functions])
        right.axvline(0.0, **_ZERO, zorder=1)
        low, high = values - errors, values + errors
        draw(right, Mark("bars", "error", low, places, high, "standard error"), linewidth=6.0)
        draw(right, Mark("points", "value", values, places))
        right.set_xlabel("squared error; its root on top", loc="left")
        lens = f"{lettering(result.lens)}, " if result.lens else ""
        heading(right, f"estimates, {lens}{result.n_test:,} rows", pad=16)
        for ax, powers in ((left, (-3, 4)), (right, (-2, 4))):
            canvas.ranked_rows(ax, names, 0.08, powers)
            ax.get_yticklabels()[0].set_weight("bold")
            if np.ptp(ax.get_xlim()) < _NO_ERROR:
                ax.set_xlim(-_NO_ERROR, _NO_ERROR)
            canvas.legend_below(ax, 2)
        left.ticklabel_format(axis="x", useOffset=False)
        right.tick_params(labelleft=not new)
        _roots_above(right)


def _roots_above(ax: Any) -> None:
    """Write roots along the top of an axis of squares, as far apart as they can be read."""
    from matplotlib.ticker import MaxNLocator

    start, end = ax.get_xlim()
    shown: list[float] = []
    for root in MaxNLocator(8, steps=[1, 2, 5, 10]).tick_values(0.0, float(np.sqrt(max(end, 0.0)))):
        if 0.0 <= root**2 <= end and (not shown or root**2 - shown[-1] ** 2 > _GAP * (end - start)):
            shown.append(float(root))
    if shown:
        canvas.scale_above(ax, [root**2 for root in shown], [f"{root:.4g}" for root in shown], 2)


# ------------------------------------------------------------------ power

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
    shares of calibrated models rejected, if you asked for them. For a sample size, lines show the
    power you want and the number of rows found. The dotted line is the level. In axes that you give,
    the legend is placed below if their figure has a layout, and inside otherwise; axes under two
    inches have none.

    Parameters
    ----------
    result
        What :func:`caltest.power` or :func:`caltest.sample_size` returned.

    Examples
    --------
    >>> import caltest, matplotlib.pyplot as plt
    >>> from functools import partial
    >>> model = partial(caltest.simulation.tempered, temperature=0.5)
    >>> found = caltest.power(model, [50, 100, 200], "ecd", n_datasets=50, rng=0)
    >>> display = caltest.plots.PowerDisplay.from_result(found)
    >>> display.ax_.get_xlabel()
    'rows'
    >>> plt.close(display.figure_)
    """

    result: PowerResult | SampleSizeResult

    _size = 6.4, 4.4

    def _key(self) -> str:
        first = "dots: rejected" if isinstance(self.result, PowerResult) else "dashed: power wanted"
        return f"{first}, dotted: level {self.result.alpha:g}"

    def _draw(self, axes: list[Any], *, new: bool) -> None:
        (ax,), result, points = axes, self.result, self.result.points
        rows, shares = np.array([(point.n, point.power) for point in points]).T
        low, high = np.array([point.interval for point in points]).T
        counts = np.array([point.n_datasets for point in points], dtype=np.float64)
        if isinstance(result, SampleSizeResult):
            if result.n is not None:
                label = f"{'at most ' if result.reached == 'at the smallest' else ''}{result.n:,} rows"
                ax.axvline(result.n, **canvas.STYLES["found"], label=label)
            look = {"color": canvas.VERMILION, "linewidth": 1.2, "linestyle": (0, (5, 2))}
            ax.axhline(result.power, **look, label=f"power wanted, {result.power:g}")
        elif len(rows) > 1:
            draw(ax, Mark("area", "between", rows, low, high, "between the intervals"))
            draw(ax, Mark("line", "line", rows, shares), linewidth=1.2, zorder=2)
        draw(ax, Mark("intervals", "error", rows, low, high), linewidth=1.0, zorder=3)
        areas = 12.0 + 42.0 * counts / counts.max()
        whole: dict[str, Any] = {"zorder": 4, "clip_on": False}  # at 0 and 1 too
        ax.scatter(rows, shares, areas, color=canvas.BLUE, label="rejected, 95% interval", **whole)
        asked = [point for point in points if point.size is not None]
        if asked:
            own, sizes = [point.n for point in asked], [point.size for point in asked]
            ends = np.array([point.size_interval for point in asked]).T
            draw(ax, Mark("intervals", "error", own, *ends), color=canvas.FAINT, zorder=3)
            of_calibrated = Mark("points", "hollow", own, sizes, label="rejected if calibrated")
            draw(ax, of_calibrated, marker="D", markersize=6.0, **whole)
        label, ink = f"level, {result.alpha:g}", ax.xaxis.label.get_color()  # seen on a dark ground too
        ax.axhline(result.alpha, color=ink, linewidth=1.0, linestyle=(0, (1, 2)), label=label)
        _set_ticks(ax, result)
        ax.set_ylim(-0.03, 1.03)
        width, height = canvas.inches(ax)
        ax.set_xlabel("rows")
        ax.set_ylabel("power: share of data sets rejected" if height > _LONG else "power")
        lens = f", {lettering(result.lens)}" if result.lens else ""
        what = f"{lettering(result.statistic, canvas.CLAUSE)}{lens}"
        by = "exact p-values" if result.null == "monte_carlo" else f"null {lettering(result.null)}"
        heading(ax, canvas.wrapped(f"How often {what} rejects at level {result.alpha:g}, {by}", width))
        canvas.tidy(ax, "y")
        if new:
            ax.figure.legend(loc="outside lower left", ncols=3, columnspacing=1.2, **canvas.SMALL)
        elif min(width, height) >= _SMALL:
            canvas.legend_below(ax, max(1, min(3, int(width / _ENTRY_ROOM))))


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
