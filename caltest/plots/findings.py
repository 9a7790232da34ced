"""Errors with their intervals: bounds, certificates, comparisons, risks of estimators, and power."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from caltest import pictures
from caltest._arguments import OneOf, Whole, arguments
from caltest._numbers import confidence_text, counted, points
from caltest._visible import quoted
from caltest.auditing.views import View
from caltest.exceptions import InputError
from caltest.pictures import BAD, DIAGONAL, GRID, LINEAR, OK, Mark, Picture, told_apart
from caltest.planning import PowerResult, SampleSizeResult
from caltest.plots import canvas
from caltest.plots.canvas import ResultDisplay, draw, heading, lettering
from caltest.text.summaries import at_most, shown_names
from caltest.text.vocabulary import subject

if TYPE_CHECKING:
    from caltest.bounds import Certificate, MiscalibrationBounds
    from caltest.bounds.lower import SideBound
    from caltest.comparison import Comparison
    from caltest.estimation import FunctionRisk, SquaredErrorEstimate


class _Side(NamedTuple):
    """What is said and drawn of predictions that are wrong in one direction."""

    sign: float  # of observed − predicted
    too: str
    beyond: str  # where the truth is, on the diagram
    colour: str


_SIDES = {
    "over": _Side(-1.0, "too high", "below", canvas.VERMILION),
    "under": _Side(1.0, "too low", "above", canvas.BLUE),
}

# ------------------------------------------------------------------ bounds

_NAMED = 5  # places of a side
_LEAST_SHARE, _NEAR = 0.01, 1.5  # bins with less of the rows, further away, need not be on the axes
_LINE: dict[str, Any] = {"linewidth": 3.5, "solid_capstyle": "butt", "zorder": 5}
_LEAST_WIDTH = 0.008  # of the axis: of a range, so that it can be seen


@arguments(
    result=OneOf(
        "caltest.bounds:MiscalibrationBounds", "give what caltest.miscalibration_bounds returns"
    ),
    view=Whole(0, advice="give the number of one, counted from 0"),
)
@dataclass(frozen=True, eq=False)
class BoundsDisplay(ResultDisplay):
    """Plot proven errors on the reliability diagram: the ranges in which predictions are wrong.

    Make it with ``from_result``.

    Each range with a proven error is shaded; its mark is at the mean predicted probability and the
    observed rate. The bold line across it, parallel to the diagonal, is the bound: for some rows
    of the range the true probability is beyond this line, which need not be so for their mean. The
    title gives the bound for all rows, and the one of the worst range if it is lower. Open circles
    are 15 bins of equal width; the axes are zoomed to the ranges and to bins with at least 1% of
    the rows. If there are more than five ranges in one direction, the five with the strongest
    evidence are drawn, as the legend says.

    Parameters
    ----------
    result
        What :func:`caltest.miscalibration_bounds` returned.
    view
        If the lens was "classwise": which of the probabilities to show, counted from 0. Default 0.

    Raises
    ------
    InputError
        If ``view`` is not the number of a view.

    Examples
    --------
    >>> import caltest, matplotlib.pyplot as plt
    >>> digits = caltest.datasets.load_digits_predictions("naive_bayes")
    >>> bounds = caltest.miscalibration_bounds(digits.probs, digits.labels, rng=0)
    >>> display = caltest.plots.BoundsDisplay.from_result(bounds)
    >>> display.ax_.get_xlabel()
    'predicted probability that the top class is right'
    >>> plt.close(display.figure_)
    """

    result: MiscalibrationBounds
    view: int = 0

    def __post_init__(self) -> None:
        count = len(self.result.views)
        if self.view >= count:
            raise InputError(
                f"view is {quoted(self.view)}, and there are {count}; give the number of one, counted "
                "from 0."
            )

    def _grid(self) -> dict[str, Any]:
        found = sum(side.found for side in self.result.views[self.view].sides)
        return {"figsize": (6.2, 6.6 + 0.8 * found)}

    def _draw(self, axes: list[Any], *, new: bool) -> None:
        (ax,), view = axes, self.result.views[self.view]
        event = f"probability that {lettering(view.event, canvas.CLAUSE)}"
        bins = np.array([view.curve.predicted, view.curve.observed])
        filled = np.array(view.curve.rows) >= _LEAST_SHARE * self.result.n_samples
        filled |= np.ptp(bins[0]) <= _NEAR * np.ptp(bins[0][filled])
        shown = [bins[:, filled]]
        for bound in view.sides:
            sign = _SIDES[bound.side].sign
            for place in [each for each in bound.places if each.named][:_NAMED]:
                line = [[x, x + sign * place.somewhere_by] for x in (place.low, place.high)]
                shown.append(np.array([[place.predicted, place.observed], *line]).T)
        x, y = np.concatenate(shown, axis=1)
        x_axis, y_axis = pictures.zoomed(LINEAR, x, x, y.clip(0.0, 1.0))
        diagram = Picture([GRID, DIAGONAL], x_axis, y_axis, f"predicted {event}", "observed share")
        canvas.show(ax, diagram)
        ax.set_aspect("equal" if x_axis == y_axis else "auto")
        ends = (x_axis, y_axis)
        clipped = [v.clip(axis.low, axis.high) for v, axis in zip(bins, ends, strict=True)]
        inside, label = np.all(bins == np.array(clipped), axis=0), "15 bins of equal width"
        if not inside.all():
            label += f", of which {np.count_nonzero(~inside)} with few rows are beyond the axes"
        x, y = bins[:, inside]
        draw(ax, Mark("points", "hollow", x, y, label=label), markersize=5.5, clip_on=False)
        lines = [line for bound in view.sides for line in _draw_side(ax, bound)]
        sure = f"with {confidence_text(self.result.confidence)} confidence:"
        heading(ax, f"n = {self.result.n_samples:,}, {sure}", *(lines or ["the scan shows no error"]))
        canvas.legend_below(ax)


@arguments(result=OneOf("caltest.bounds:Certificate", "give what caltest.certificate returns"))
@dataclass(frozen=True, eq=False)
class CertificateDisplay(ResultDisplay):
    """Plot a certificate: how far the true event rates can be from the predicted ones.

    Make it with ``from_result``.

    Rows lie side by side in the order of their scores; what is drawn is the deviation from the
    prediction, in points. The band is grey; two dotted lines mark the certified distance. Ranges
    proved to be miscalibrated are shaded. What is certified of a bin is about its means alone: its box
    is as wide as its share of the rows, and the point is the observed rate less the mean prediction, a
    filled diamond where the band excludes 0.

    Parameters
    ----------
    result
        What :func:`caltest.certificate` returned.

    Examples
    --------
    >>> import caltest, matplotlib.pyplot as plt
    >>> digits = caltest.datasets.load_digits_predictions("naive_bayes")
    >>> found = caltest.certificate(digits.probs, digits.labels)
    >>> display = caltest.plots.CertificateDisplay.from_result(found)
    >>> display.ax_.get_xlabel()
    'share of the rows, from the smallest score to the largest'
    >>> plt.close(display.figure_)
    """

    result: Certificate
    _size = 7.6, 5.6

    def _draw(self, axes: list[Any], *, new: bool) -> None:
        (ax,), c = axes, self.result
        sure, distance = confidence_text(c.confidence), at_most(c.distance)
        share = np.cumsum(c.counts) / c.n_samples
        places = np.column_stack([np.r_[0.0, share[:-1]], share]).ravel()
        scores = np.column_stack([c.starts, c.ends]).ravel()
        low, high, seen = (each - c.predicted for each in (c.lower, c.upper, c.estimates))
        x = pictures.axis_of_probabilities([0.0, 1.0])
        y = pictures.axis_of_points(1.05 * min(-c.distance, *low), 1.05 * max(c.distance, *high))
        label = f"mean probability of each bin, {sure} band"
        marks = [Mark("area", "band", places, np.repeat(low, 2), np.repeat(high, 2), label), GRID]
        named = set()
        for each in c.miscalibrated:  # of ties, from the first place to the last
            start = -np.interp(-each.low, -scores[::-1], -places[::-1])
            side, ends = _SIDES[each.direction], (start, np.interp(each.high, scores, places))
            label = "" if side in named else f"proved {side.too}"
            marks.append(Mark("area", side.too, ends, np.full(2, y.low), np.full(2, y.high), label))
            named.add(side)
        for sign in (-1.0, 1.0):
            label = f"±{distance} points" if sign > 0.0 else ""
            marks.append(Mark("line", "limit", (0.0, 1.0), np.full(2, sign * c.distance), label=label))
        marks.append(Mark("line", "zero", (0.0, 1.0), (0.0, 0.0), label=canvas.AS_PREDICTED))
        for mark in told_apart(places.reshape(-1, 2).mean(axis=1), seen, (low > 0.0) | (high < 0.0)):
            more = ", proved wrong" if mark.style == BAD else ""
            marks.append(mark._replace(label=f"observed share{more}"))
        of_x = "share of the rows, from the smallest score to the largest"
        of_y = f"probability that {lettering(c.event, canvas.CLAUSE)}\nless the predicted one, points"
        bins = f"{len(c.counts)} bins" if len(c.counts) > 1 else "one bin"
        claim = f"within ±{distance} points on average over each of {bins}"
        sure = f"n = {c.n_samples:,}, with {sure} confidence:"
        canvas.show(ax, Picture(marks, x, y, of_x, of_y), sure, claim)
        canvas.legend_below(ax, 2)


def _draw_side(ax: Any, bound: SideBound) -> list[str]:
    """Draw the ranges in which predictions are wrong on one side; return what the title says."""
    sign, too, beyond, colour = _SIDES[bound.side]
    every, said = [place for place in bound.places if place.named], []
    if bound.found:
        by = f"predictions are at least {points(bound.bound)}" if bound.bound else "predictions are"
        said.append(f"some {by} {too}")
        if every and 0.0 < every[0].somewhere_by < bound.bound:
            said[0] += f",\nin the worst range alone at least {points(every[0].somewhere_by)}"
    some = "" if len(every) <= _NAMED else f" ({_NAMED} of {len(every)} ranges)"
    title = f"range predicted {too}, its mean{some}"
    line = f"somewhere in the range, the true probability is {beyond} this line"
    for place in every[:_NAMED]:
        missing = max(0.0, _LEAST_WIDTH * float(np.ptp(ax.get_xlim())) - (place.high - place.low)) / 2.0
        ends = np.array([place.low - missing, place.high + missing])
        ax.axvspan(*ends, color=colour, alpha=0.13, linewidth=0.6, zorder=0)
        if place.somewhere_by > 0.0:
            ax.plot(ends, ends + sign * place.somewhere_by, **_LINE, color=colour, label=line)
            line = ""
        mean = Mark("points", BAD, [place.predicted], [place.observed], label=title)
        draw(ax, mean, color=colour, markeredgecolor=canvas.BLACK, markersize=6.5, zorder=6)
        title = ""
    return said


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
            values = [Mark("points", "value", value, own)]
            if ax is axes[1]:
                values = told_apart(value, own, low > 0.0)
            draw(ax, Mark("bars", "error", low, own, high, f"{sure} interval"), linewidth=5.0)
            draw(ax, *(mark._replace(label=_SHOWN[mark.style]) for mark in values))
            canvas.ranked_rows(ax, names)
            ax.axvline(0.0, **canvas.STYLES["zero"])
        axes[1].tick_params(labelleft=not new)
        what = subject(View(c.probability, c.event, None, c.n_samples))
        heading(axes[0], f"Off by: {lettering(what, canvas.CLAUSE)}")
        heading(axes[1], f"Further off than {names[0]}")
        here = "points, mean absolute error over tenths"
        if len(c.errors) > len(names):
            here += ",\nof all rows; errors in groups are printed, not drawn"
        axes[0].set_xlabel(here, loc="left")
        over = "" if c.n_clusters is None else f" over {counted(c.n_clusters, 'cluster')}"
        axes[1].set_xlabel(f"points, paired interval{over}", loc="left")
        for ax in axes:
            canvas.legend_below(ax, 3)


# ------------------------------------------------------------------ estimators


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
    affect the choice. The dashed line is h = 0, which treats the model as calibrated. Right: the
    estimates of the squared error; bars show one standard error.

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
    ['√ mean validation risk × 100', 'squared error']
    >>> plt.close(display.figure_)
    """

    result: SquaredErrorEstimate
    _parts = ": one for risks, and one for estimates"

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
        bars = "standard error of the difference to function 1"
        draw(left, Mark("bars", "error", low, places, high, bars), linewidth=6.0)
        draw(left, Mark("points", "value", value, places, label="best option"), zorder=5)
        left.axvline(zero, **canvas.STYLES["zero"], label="h = 0: calibrated")
        left.set_xlabel("√ mean validation risk × 100", loc="left")
        heading(left, "risk on held-out rows")

        values = np.array([each.estimate for each in functions])
        errors = np.array([each.standard_error for each in functions])
        right.axvline(0.0, **canvas.STYLES["zero"])
        low, high = values - errors, values + errors
        draw(right, Mark("bars", "error", low, places, high, "standard error"), linewidth=6.0)
        draw(right, Mark("points", "value", values, places))
        right.set_xlabel("squared error", loc="left")
        lens = f"{lettering(result.lens)}, " if result.lens else ""
        heading(right, f"estimates, {lens}{result.n_test:,} rows")
        for ax in axes:
            canvas.ranked_rows(ax, names)
            ax.get_yticklabels()[0].set_weight("bold")
            canvas.legend_below(ax, 2)
        left.ticklabel_format(axis="x", useOffset=False)
        right.tick_params(labelleft=not new)


# ------------------------------------------------------------------ power


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
    power you want and the number of rows found. The dotted line is the level.

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

    def _draw(self, axes: list[Any], *, new: bool) -> None:
        from matplotlib.ticker import LogLocator, NullFormatter

        (ax,), result, points = axes, self.result, self.result.points
        rows, shares = np.array([(point.n, point.power) for point in points]).T
        low, high = np.array([point.interval for point in points]).T
        counts = np.array([point.n_datasets for point in points], dtype=np.float64)
        if isinstance(result, SampleSizeResult):
            if result.n is not None:
                label = f"{'at most ' if result.reached == 'at the smallest' else ''}{result.n:,} rows"
                ax.axvline(result.n, **canvas.STYLES["found"], label=label)
            look = canvas.DASHED | {"color": canvas.VERMILION}
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
        ax.set_xscale("log")
        ax.xaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0), numticks=12))
        ax.xaxis.set_major_formatter("{x:,.0f}")
        ax.xaxis.set_minor_formatter(NullFormatter())
        ax.set_xlim(rows.min() / 1.1, rows.max() * 1.1)
        ax.set_ylim(-0.03, 1.03)
        ax.set(xlabel="rows", ylabel="power: share of data sets rejected")
        lens = f", {lettering(result.lens)}" if result.lens else ""
        what = f"{lettering(result.statistic, canvas.CLAUSE)}{lens}"
        by = "exact p-values" if result.null == "monte_carlo" else f"null {lettering(result.null)}"
        heading(ax, f"How often {what} rejects at level {result.alpha:g}, {by}")
        canvas.tidy(ax, "y")
        canvas.legend_below(ax, 2)
