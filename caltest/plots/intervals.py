"""Numbers with their intervals: errors of models, risks of estimators, power by the number of rows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from caltest._arguments import OneOf, arguments
from caltest._numbers import confidence_text, counted
from caltest.auditing.views import View
from caltest.pictures import BAD, OK, Array, Mark, told_apart
from caltest.planning import PowerResult, SampleSizeResult
from caltest.plots import canvas
from caltest.plots.canvas import draw, heading, lettering
from caltest.plots.display import ResultDisplay
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

_PANELS_IN_A_ROW = 4
_ROOM = 1.5  # curves are shown so many times as far up as the best options, fixed ones and h = 0 reach
_WIDE = 11.0  # inches: room for a legend of three columns
_DASHES: tuple[Any, ...] = ((0, (1, 1.2)), (0, (6, 1.5, 1, 1.5)), (0, (9, 2)), (0, (3, 1, 1, 1, 1, 1)))
_ZERO: dict[str, Any] = {"color": canvas.BLACK, "linewidth": 1.2, "linestyle": (0, (5, 2))}
_MEAN = "mean ± standard error of the difference to function 1"
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

    There is one panel per tuned estimator (one for all if none is tuned), lowest risk first. It
    shows the root of the validation risk (mean over the folds), times 100, against the tuned
    option, with a diamond at the best value. The band is one standard error, over the folds, of
    the difference to the best estimator; variation that all folds share does not affect the
    choice. Estimators with fixed options are horizontal lines, and so is h = 0, which treats the
    model as calibrated. All panels have the same vertical scale, that of the risks from which one
    chooses: higher values are arrows at the top edge, and the highest is written out. The last
    panel shows the estimates of the squared error, with their roots above; bars show one standard
    error.

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
    ['regularization', 'squared error; its root on top']
    >>> plt.close(display.figure_)
    """

    result: SquaredErrorEstimate
    _parts = ": one for every tuned function (one for all if none is tuned), and one for the estimates"

    def _key(self) -> str:
        return "dashed: h = 0, diamond: best" if self._tuned() else "dashed: h = 0"

    def _tuned(self) -> list[FunctionRisk]:
        return [each for each in self.result.functions if len(each.values) > 1]

    def _grid(self) -> dict[str, Any]:
        count = max(1, len(self._tuned()))
        rows = 1 if count <= _PANELS_IN_A_ROW else 2
        columns = -(-count // rows)
        mosaic = [[*row, count] for row in canvas.rows_of(count, columns)]
        lines = sum(_name(self.result, each).count("\n") + 1 for each in self.result.functions)
        size = 0.7 + 2.1 * columns + 4.3, max(2.9 * rows, 1.9 + 0.24 * lines) + 0.7
        return {"mosaic": mosaic, "figsize": size, "width_ratios": [2.1] * columns + [4.3]}

    def _draw(self, axes: list[Any], *, new: bool) -> None:
        *panels, last = axes
        result, tuned = self.result, self._tuned()
        low, high = _limits(result)
        zero = float(_roots(result, result.zero_risks[None, :])[0][0])
        columns = len(self._grid()["width_ratios"]) - 1
        for place, ax in enumerate(panels):
            if new and place:
                ax.sharey(panels[0])
                ax.tick_params(labelleft=place % columns == 0)
            ax.set_ylim(low, high)
            if tuned:
                _draw_curve(ax, result, tuned[place], high)
            ax.axhline(zero, **_ZERO, label="h = 0: calibrated")
            _draw_given(ax, result, as_points=not tuned)
            ax.ticklabel_format(axis="y", useOffset=False, scilimits=(-6, 6))
            canvas.tidy(ax, "y")
            title, weight = "options as given", "normal"
            if tuned:
                title = _name(result, tuned[place])
                weight = "bold" if tuned[place] is result.recommended else "normal"
            heading(ax, title, pad=16, weight=weight)
            if not new or place % columns == 0:
                ax.set_ylabel("√ mean validation risk × 100")
        _draw_estimates(last, result)
        found = [ax.get_legend_handles_labels() for ax in (panels[0], last)]
        handles, labels = ([*one, *two] for one, two in zip(*found, strict=True))
        if new:
            columns = 3 if last.figure.get_figwidth() > _WIDE else 2
            last.figure.legend(handles, labels, loc="outside lower left", ncols=columns, **canvas.SMALL)
        else:
            canvas.legend_below(panels[0], handles=handles, labels=labels)


def _name(result: SquaredErrorEstimate, function: FunctionRisk) -> str:
    """Return the rank and the label, options as given in a line of their own."""
    label = lettering(function.label, 2 * canvas.CLAUSE).replace("(", "\n(", 1)
    return f"{result.functions.index(function) + 1}  {label}"


def _roots(result: SquaredErrorEstimate, risks: Array) -> tuple[Array, Array]:
    """Return 100 times the root of the mean of risks (G, F), (G,), and the ends of a band, (2, G).

    Folds differ in their risk by much more than functions do, and in common: the band is one standard
    error of the difference to the best function, fold by fold, as :meth:`SquaredErrorEstimate.gap`. The
    root of the mean, and not the mean of the roots, is smallest where the value that is chosen is.
    """
    least = result.recommended.risks[result.recommended.best]
    with np.errstate(all="ignore"):  # a risk may be infinite
        means = risks.mean(axis=1)
        errors = (risks - least).std(axis=1, ddof=1) / np.sqrt(len(least))
        ends = [np.sqrt(np.maximum(means + sign * errors, 0.0)) for sign in (-1.0, 1.0)]
        return 100.0 * np.sqrt(means), 100.0 * np.stack(ends)


def _limits(result: SquaredErrorEstimate) -> tuple[float, float]:
    """Return the vertical range: what one chooses from, and some room above for the curves."""

    def ends(*values: Any) -> tuple[float, float]:
        every = np.concatenate([np.ravel(each) for each in values])
        finite = every[np.isfinite(every)]
        return (float(finite.min()), float(finite.max())) if len(finite) else (0.0, 1.0)

    curves = [_roots(result, each.risks) for each in result.functions]
    chosen = [band[:, f.best] for f, (_, band) in zip(result.functions, curves, strict=True)]
    low, high = ends(*chosen, _roots(result, result.zero_risks[None, :])[0])
    low = min([low, *(ends(mean)[0] for mean, _ in curves)])
    span = max(high - low, 1e-3 * high, 1e-3)
    highest = ends(*(band[1] for _, band in curves))[1]
    high = min(max(high, highest), high + (_ROOM - 1.0) * span)
    low = min([low, *(ends(band[0][mean <= high])[0] for mean, band in curves if (mean <= high).any())])
    return low - 0.06 * span, high + 0.06 * span


def _draw_curve(ax: Any, result: SquaredErrorEstimate, function: FunctionRisk, top: float) -> None:
    """Draw the risk along the tuned option, and say what lies above the top."""
    from matplotlib.ticker import LogLocator, NullLocator

    (mean, ends), values = _roots(result, function.risks), function.values
    draw(ax, Mark("area", "error", values, *ends), alpha=0.22, linewidth=0, zorder=1)
    of_values = Mark("line", "line", values, mean, label=_MEAN)
    draw(ax, of_values, marker="o", markersize=3.0, linewidth=1.4, zorder=2)
    best = Mark("points", BAD, [function.value], [mean[function.best]], label="best value")
    draw(ax, best, markersize=7.0, zorder=4)
    above = ~(mean <= top)
    if above.any():
        arrows = Mark("points", "error", values[above], np.full(above.sum(), top))
        draw(ax, arrows, marker="^", markersize=5.0, zorder=5, clip_on=False)
        highest = mean[above].max() if np.isfinite(mean[above]).all() else np.inf
        where = {"xycoords": "axes fraction", "textcoords": "offset points", "va": "bottom"}
        note = f"▲ above, up to {highest:,.3g}"
        ax.annotate(note, (0.0, 1.0), (0, 4), **where, fontsize="small", color=canvas.BLUE)
    ax.set_xlabel(lettering(function.tuned))
    if (values > 0.0).all():  # few ticks: powers of ten; of a short range, 1, 2, 5, 10, …
        ax.set_xscale("log")
        ax.xaxis.set_minor_locator(NullLocator())
        if values.max() < 100.0 * values.min():
            ax.xaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0), numticks=12))
            ax.xaxis.set_major_formatter("{x:g}")
        else:
            ax.xaxis.set_major_locator(LogLocator(numticks=3))


def _draw_given(ax: Any, result: SquaredErrorEstimate, *, as_points: bool) -> None:
    """Draw functions whose options were given: as lines, or, if all are such, as points."""
    given = [each for each in result.functions if len(each.values) == 1]
    for place, each in enumerate(given):
        mean, ends = _roots(result, each.risks)
        if as_points:
            label = _MEAN if place == 0 else "_"
            ax.errorbar([place], mean, abs(ends - mean), fmt="D", color=canvas.VERMILION, label=label)
        else:
            look = {"linestyle": _DASHES[place % len(_DASHES)], "linewidth": 1.6, "color": canvas.FAINT}
            ax.axhline(mean[0], label=_name(result, each).replace("\n", ""), **look)
    if as_points:
        ax.set_xticks(range(len(given)), [str(place) for place in range(1, len(given) + 1)])
        ax.set_xlabel("function")
        ax.set_xlim(-0.6, len(given) - 0.4)


def _draw_estimates(ax: Any, result: SquaredErrorEstimate) -> None:
    """Draw estimates with their standard errors, lowest risk on top, and their roots along the top."""
    from matplotlib.ticker import MaxNLocator

    functions, places = result.functions, np.arange(len(result.functions))
    values = np.array([each.estimate for each in functions])
    errors = np.array([each.standard_error for each in functions])
    ax.axvline(0.0, **_ZERO, zorder=1)
    bars = Mark("bars", "error", values - errors, places, values + errors, "standard error")
    draw(ax, bars, linewidth=6.0)
    draw(ax, Mark("points", "value", values, places))
    canvas.ranked_rows(ax, [_name(result, each) for each in functions], 0.08, (-2, 4))
    ax.get_yticklabels()[0].set_weight("bold")
    if np.ptp(ax.get_xlim()) < _NO_ERROR:
        ax.set_xlim(-_NO_ERROR, _NO_ERROR)
    ax.set_xlabel("squared error; its root on top", loc="left")
    lens = f"{lettering(result.lens)}, " if result.lens else ""
    heading(ax, f"estimates, {lens}{result.n_test:,} rows", pad=16)
    left, right = ax.get_xlim()
    if right <= 0.0:
        return
    roots = MaxNLocator(8, steps=[1, 2, 5, 10]).tick_values(0.0, float(np.sqrt(right)))
    shown: list[float] = []
    for square in (float(root) ** 2 for root in roots if root >= 0.0):
        if square <= right and (not shown or square - shown[-1] > _GAP * (right - left)):
            shown.append(square)
    canvas.scale_above(ax, shown, [f"{np.sqrt(square):.4g}" for square in shown], 2)


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
