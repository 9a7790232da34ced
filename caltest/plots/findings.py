"""Errors with their intervals: bounds, certificates, comparisons, risks of estimators, and power."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeAlias

import numpy as np

from caltest._arguments import OneOf, Whole, arguments, choose
from caltest._numbers import confidence_text, counted, points
from caltest._visible import quoted
from caltest.auditing.views import View
from caltest.exceptions import InputError
from caltest.pictures import BAD, GRID, LINEAR, OK, Array, Limits, Mark, told_apart
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
    colour_name: str


_SIDES = {
    "over": _Side(-1.0, "too high", "below", canvas.VERMILION, "orange"),
    "under": _Side(1.0, "too low", "above", canvas.BLUE, "blue"),
}

# ------------------------------------------------------------------ bounds

Against: TypeAlias = Literal["scores", "rows"]

_NAMED = 5  # places of a side
_LEAST_SHARE, _NEAR = 0.01, 1.5  # bins with less of the rows, further away, need not be on the axes
_LINE: dict[str, Any] = {"linewidth": 3.5, "solid_capstyle": "butt", "zorder": 5}
_LEAST_WIDTH = 0.008  # of the axis: of a range, so that it can be seen
_BAR, _LEAST_GAP = 7.0, 0.02  # points: the width of a bar; of the axis: between bars told apart


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
        limits = _diagram(ax, event, (x, x, y), observed="observed share")
        within = [(low <= v) & (v <= high) for v, (low, high) in zip(bins, limits, strict=True)]
        inside, label = np.all(within, axis=0), "15 bins of equal width"
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

    The band is grey, and the two dotted lines mark the certified distance. Ranges proved to be
    miscalibrated are shaded. What is certified of a bin is about its means alone: its bar is at the
    mean prediction, a thin line shows the range of its predictions, and the point is the observed
    rate, a filled diamond where the band excludes the diagonal.

    Parameters
    ----------
    result
        What :func:`caltest.certificate` returned.
    against
        "scores": the reliability diagram, with the band around its diagonal. "rows": the
        deviation from the diagonal in points, with rows side by side in the order of their scores,
        which spreads out scores that crowd near 1. Default: "rows" if bars of bins would touch each
        other against the scores, else "scores".

    Raises
    ------
    InputError
        If there is no such ``against``.

    Examples
    --------
    >>> import caltest, matplotlib.pyplot as plt
    >>> digits = caltest.datasets.load_digits_predictions("naive_bayes")
    >>> found = caltest.certificate(digits.probs, digits.labels)
    >>> display = caltest.plots.CertificateDisplay.from_result(found, against="scores")
    >>> display.ax_.get_xlabel()
    'predicted probability that the top class is right'
    >>> plt.close(display.figure_)
    """

    result: Certificate
    against: Against | None = None

    def __post_init__(self) -> None:
        c = self.result
        if self.against is None:
            crowded = np.diff(c.predicted) < _LEAST_GAP * (c.ends[-1] - c.starts[0])
            object.__setattr__(self, "against", "rows" if crowded.any() else "scores")
        choose("axis", self.against, {"scores": True, "rows": True})

    def _grid(self) -> dict[str, Any]:
        return {"figsize": (6.2, 7.6) if self.against == "scores" else (7.6, 5.6)}

    def _draw(self, axes: list[Any], *, new: bool) -> None:
        (ax,), c, ends = axes, self.result, np.array([0.0, 1.0])
        by_score = self.against == "scores"
        sure, distance = confidence_text(c.confidence), at_most(c.distance)
        event = f"probability that {lettering(c.event, canvas.CLAUSE)}"
        share, scores = np.cumsum(c.counts) / c.n_samples, np.stack([c.starts, c.ends], axis=1)
        places = scores if by_score else np.stack([np.r_[0.0, share[:-1]], share], axis=1)
        bounds = np.stack([c.lower, c.upper, c.estimates])
        if by_score:
            whole = scores.ravel()[[0, -1]]
            _diagram(ax, event, (whole, whole, bounds.ravel()), label=canvas.AS_PREDICTED)
            x = c.predicted
        else:
            bounds = 100.0 * (bounds - c.predicted)
            ax.set_xlabel("share of the rows, from the smallest score to the largest")
            ax.set_ylabel(f"{event}\nless the predicted one, points")
            draw(ax, Mark("line", "zero", ends, (0.0, 0.0), label=canvas.AS_PREDICTED), zorder=4)
            draw(ax, GRID)
            ax.set_xlim(-0.02, 1.02)
            x = places.mean(axis=1)
        for sign in (-1.0, 1.0):
            y = ends + sign * c.distance if by_score else np.full(2, 100.0 * sign * c.distance)
            label = f"±{distance} points" if sign > 0.0 else ""
            draw(ax, Mark("line", "limit", ends, y, label=label))
        along = (ends, ends) if by_score else (scores.ravel(), places.ravel())
        for name, side in _SIDES.items():
            ranges = [each for each in c.miscalibrated if each.direction == name]
            for k, (start, end) in enumerate(_merged(ranges, *along)):
                _shade(ax, start, end, side.colour, None if k else f"proved {side.too}")
        label = f"mean probability of each bin, {sure} band"
        if by_score:
            draw(ax, Mark("band", "band", x, bounds[0], bounds[1], label), linewidth=_BAR)
            ranges_label = "range of predictions in the bin"
            draw(ax, Mark("bars", "thin", c.starts, bounds[2], c.ends, ranges_label))
        else:
            look = {"color": canvas.WIDE_BAND, "edgecolor": canvas.NARROW_BAND, "linewidth": 0.8}
            ax.use_sticky_edges = False  # room below the boxes, too
            boxes = x, bounds[1] - bounds[0], np.diff(places)[:, 0], bounds[0]
            ax.bar(*boxes, **look, zorder=1, label=label)
        for mark in told_apart(x, bounds[2], (c.lower > c.predicted) | (c.upper < c.predicted)):
            more = ", proved wrong" if mark.style == BAD else ""
            draw(ax, mark._replace(label=f"observed share{more}"), markersize=6)
        each = f"{len(c.counts)} bins" if len(c.counts) > 1 else "one bin"
        claim = f"within ±{distance} points on average over each of {each}"
        heading(ax, f"n = {c.n_samples:,}, with {sure} confidence:", claim)
        canvas.legend_below(ax, 2)


def _draw_side(ax: Any, bound: SideBound) -> list[str]:
    """Draw the ranges in which predictions are wrong on one side; return what the title says."""
    (sign, too, beyond, colour, _), narrow = _SIDES[bound.side], canvas.is_narrow(ax)
    every, said = [place for place in bound.places if place.named], []
    if bound.found:
        least = "≥" if narrow else "predictions are at least"
        by = f"{least} {points(bound.bound)}" if bound.bound else "predictions are"
        said.append(f"some {by} {too}")
        if every and 0.0 < every[0].somewhere_by < bound.bound and not narrow:
            said[0] += f",\nin the worst range alone at least {points(every[0].somewhere_by)}"
    some = "" if len(every) <= _NAMED else f" ({_NAMED} of {len(every)} ranges)"
    title = f"range predicted {too}, its mean{some}"
    for place in every[:_NAMED]:
        ends = np.array(_shade(ax, place.low, place.high, colour))
        for end in (place.low, place.high):
            ax.axvline(end, color=colour, alpha=0.45, linewidth=0.6, zorder=1)
        if place.somewhere_by > 0.0:
            ax.plot(ends, ends + sign * place.somewhere_by, **_LINE, color=colour)
        mean = Mark("points", BAD, [place.predicted], [place.observed], label=title)
        edge = {"color": colour, "markeredgecolor": canvas.BLACK, "markersize": 6.5, "zorder": 6}
        draw(ax, mean, clip_on=False, **edge)
        title = ""
    if every and every[0].somewhere_by > 0.0:
        label = f"somewhere in the range, the true probability is {beyond} this line"
        ax.plot([], [], **_LINE, color=colour, label=label)
    return said


def _diagram(
    ax: Any, event: str, places: Sequence[Array], observed: str = "", label: str = ""
) -> tuple[Limits, Limits]:
    """Make axes those of a reliability diagram of an event, square if both directions are the same.

    ``places``: points, what else lies across, and all heights.
    """
    few, (points, rest, heights) = canvas.is_narrow(ax), places
    shown = points, rest, heights.clip(0.0, 1.0)
    limits = canvas.reliability_axes(ax, LINEAR, *shown, few=few, label=label)
    ax.set(xlabel=f"predicted {event}", ylabel=observed or event)
    ax.set_aspect("equal" if limits[0] == limits[1] else "auto")
    return limits


def _shade(ax: Any, low: float, high: float, colour: str, label: str | None = None) -> list[float]:
    """Shade a range, as wide as it takes to be seen; return its ends as they are shaded."""
    missing = max(0.0, _LEAST_WIDTH * float(np.ptp(ax.get_xlim())) - (high - low)) / 2.0
    ax.axvspan(low - missing, high + missing, color=colour, alpha=0.13, lw=0, zorder=0, label=label)
    return [low - missing, high + missing]


def _merged(ranges: Sequence[Any], scores: Array, places: Array) -> list[list[float]]:
    """Return ranges of scores as they lie along the axis, those as one between which no gap is seen."""
    merged: list[list[float]] = []
    for each in ranges:
        start = -float(np.interp(-each.low, -scores[::-1], -places[::-1]))  # the first place of ties, …
        end = float(np.interp(each.high, scores, places))  # … and the last one
        if merged and start - merged[-1][1] < _LEAST_WIDTH:
            merged[-1][1] = max(merged[-1][1], end)
        else:
            merged.append([start, end])
    return merged


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
        heading(left, "risk on held-out rows")

        values = np.array([each.estimate for each in functions])
        errors = np.array([each.standard_error for each in functions])
        right.axvline(0.0, **_ZERO, zorder=1)
        low, high = values - errors, values + errors
        draw(right, Mark("bars", "error", low, places, high, "standard error"), linewidth=6.0)
        draw(right, Mark("points", "value", values, places))
        right.set_xlabel("squared error", loc="left")
        lens = f"{lettering(result.lens)}, " if result.lens else ""
        heading(right, f"estimates, {lens}{result.n_test:,} rows")
        for ax, powers in ((left, (-3, 4)), (right, (-2, 4))):
            canvas.ranked_rows(ax, names, 0.08, powers)
            ax.get_yticklabels()[0].set_weight("bold")
            canvas.legend_below(ax, 2)
        left.ticklabel_format(axis="x", useOffset=False)
        right.tick_params(labelleft=not new)


# ------------------------------------------------------------------ power

_ENTRY_ROOM = 1.7  # inches: of a legend's entry
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
        ax.set_xscale("log")
        ax.xaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0), numticks=12))
        ax.xaxis.set_major_formatter("{x:,.0f}")
        ax.xaxis.set_minor_formatter(NullFormatter())
        ax.set_xlim(rows.min() / 1.1, rows.max() * 1.1)
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
