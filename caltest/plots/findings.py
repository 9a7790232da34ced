"""Displays of results: audits, tests, monitors, bounds, comparisons and power."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from caltest import _printers, pictures
from caltest._arguments import Whole, arguments
from caltest._numbers import confidence_text, counted, number, points
from caltest._visible import quoted
from caltest.auditing.diagrams import among_draws
from caltest.auditing.views import View
from caltest.exceptions import InputError
from caltest.pictures import DIAGONAL, GRID, Axis, Mark, Picture, in_lines, told_apart, with_intervals
from caltest.planning import PowerResult, SampleSizeResult
from caltest.plots import canvas
from caltest.plots.canvas import ResultDisplay, lettering
from caltest.results import CalibrationResult
from caltest.text.summaries import loss_name, shown_names
from caltest.text.vocabulary import subject

if TYPE_CHECKING:
    from caltest.auditing.result import Audit
    from caltest.bounds import MiscalibrationBounds
    from caltest.bounds.lower import SideBound
    from caltest.comparison import Comparison
    from caltest.monitoring import MonitorState

#: By side: sign of observed − predicted, direction of the error, and where the truth lies.
_SIDES = {"over": (-1.0, "too high", "below"), "under": (1.0, "too low", "above")}

# ------------------------------------------------------------------ bounds

_NAMED = 5  # places named per side
_LEAST_WIDTH = 0.008  # smallest width of a range, as a share of the axis, so that it can be seen


@arguments(view=Whole(0, advice="give the number of one, counted from 0"))
@dataclass(frozen=True, eq=False)
class BoundsDisplay(ResultDisplay):
    """Plot proven errors on the reliability diagram: the ranges in which predictions are wrong.

    Make it with ``from_result``.

    Each range with a proven error is shaded; its mark is at the mean predicted probability and the
    observed rate. The bold line across it, parallel to the diagonal, is the bound: for some rows of the
    range the true probability is beyond this line, which need not hold for their mean. The title gives
    the bound for all rows, and the one of the worst range if it is lower. Open circles are 15 bins of
    equal width. If there are more than five ranges in one direction, the five with the strongest
    evidence are drawn, as the legend says.

    Parameters
    ----------
    result : MiscalibrationBounds
        What :func:`caltest.miscalibration_bounds` returned.
    view : int, default 0
        If the lens was "classwise": which of the probabilities to show, counted from 0.

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
    shows = "caltest.bounds:MiscalibrationBounds", "give what caltest.miscalibration_bounds returns"
    view: int = 0

    def __post_init__(self) -> None:
        super().__post_init__()
        count = len(self.result.views)
        if self.view >= count:
            do = "give the number of one, counted from 0"
            raise InputError(f"view is {quoted(self.view)}, and there are {count}; {do}.")

    def _grid(self) -> dict[str, Any]:
        found = sum(side.found for side in self.result.views[self.view].sides)
        return {"figsize": (6.2, 6.6 + 0.8 * found)}

    def _pictures(self) -> list[tuple[Any, ...]]:
        result, view = self.result, self.result.views[self.view]
        bins = np.array([view.curve.predicted, view.curve.observed])
        places = [each for bound in view.sides for each in bound.places if each.named]
        ends = [end for each in places for end in (each.low, each.high, each.observed)]
        axis = pictures.axis_of_probabilities([*bins.ravel(), *ends])
        points_of_bins = Mark("points", "hollow", bins[0], bins[1], label="15 bins of equal width")
        marks = [GRID, DIAGONAL, points_of_bins]
        lines = [line for bound in view.sides for line in _add_side(marks, axis, bound)]
        of = f"predicted probability that {lettering(view.event, canvas.CLAUSE)}", "observed share"
        sure = f"n = {result.n_samples:,}, with {confidence_text(result.confidence)} confidence:"
        return [(Picture(marks, axis, axis, *of), sure, *(lines or ["the scan shows no error"]))]


def _add_side(marks: pictures.Marks, axis: pictures.Axis, bound: SideBound) -> list[str]:
    """Add the ranges in which predictions are wrong on one side; return lines for the title."""
    sign, too, beyond = _SIDES[bound.side]
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
        missing = max(0.0, _LEAST_WIDTH * (axis.high - axis.low) - (place.high - place.low)) / 2.0
        ends = np.array([place.low - missing, place.high + missing])
        marks.append(Mark("area", too, ends, np.full(2, axis.low), np.full(2, axis.high)))
        if place.somewhere_by > 0.0:
            marks.append(Mark("line", too, ends, ends + sign * place.somewhere_by, label=line))
        marks.append(Mark("points", too, [place.predicted], [place.observed], label=title))
    return said


# ------------------------------------------------------------------ models


@dataclass(frozen=True, eq=False)
class ComparisonDisplay(ResultDisplay):
    """Plot a comparison: how far off every model is, and how much further than the nearest one.

    Make it with ``from_result``.

    Both are in percentage points, on all rows (for point forecasts, the loss in units of the outcome);
    models are sorted by their mean absolute errors, the smallest on top. Left: these errors, over
    tenths of the model's own predictions, with their exact intervals. Right: their differences to that
    of the first model, with paired intervals; a filled diamond is a difference that was found, a hollow
    circle one that was not.

    Parameters
    ----------
    result : Comparison
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
    shows = "caltest.comparison:Comparison", "give what caltest.compare returns"
    _parts = ": one for errors, and one for differences"

    def _grid(self) -> dict[str, Any]:
        longest = max(len(each) for each in shown_names(self.result, canvas.NAME))
        size = 8.4 + 0.07 * min(longest, 2 * canvas.NAME), 1.9 + 0.36 * max(len(self.result.names), 3)
        return {"mosaic": [[0, 1]], "figsize": size, "sharey": True}

    _columns = 3

    def _pictures(self) -> list[tuple[Any, ...]]:
        c, bars = self.result, f"{confidence_text(self.result.confidence)} interval"
        nearest, *others = c.nearest
        by_name = dict(zip(c.names, shown_names(c, canvas.NAME), strict=True))
        names, places = [by_name[each] for each in c.nearest], -np.arange(len(c.names))
        scale, loss, told = (1.0, f"mean {loss_name(c)}", "") if c.functional else (100.0, "", bars)
        sizes = {x.model: getattr(x, c.measure) for x in c.errors[: len(names)]}
        # A loss has no interval of its own.
        low, value, high = scale * np.array([np.broadcast_to(sizes[x], 3) for x in c.nearest]).T
        here = loss or "points, mean absolute error over tenths"
        here += ",\nof all rows; errors in groups are printed, not drawn" * (len(c.errors) > len(names))
        points = [Mark("points", "value", value, places, label="error")]
        errors = in_lines(names, Mark("bars", "error", low, places, high, told), points, here)
        low, value, high = scale * np.array([getattr(c.gap(x, nearest), c.measure) for x in others]).T
        over = "" if c.n_clusters is None else f" over {counted(c.n_clusters, 'cluster')}"
        points = told_apart(value, places[1:], low > 0.0, labels=("not shown", "shown"))
        wide = Mark("bars", "error", low, places[1:], high, bars)
        gaps = in_lines(names, wide, points, f"{loss or 'points'}, paired interval{over}")
        what = lettering(subject(View(c.probability, c.event, None, c.n_samples)), canvas.CLAUSE)
        further = f"Further off than {lettering(names[0], canvas.CLAUSE)}"
        return [(errors, "Loss" if loss else f"Off by: {what}"), (gaps, further)]


# ------------------------------------------------------------------ power


@dataclass(frozen=True, eq=False)
class PowerDisplay(ResultDisplay):
    """Plot power against the number of rows.

    Make it with ``from_result``.

    Points are the shares of data sets rejected, with their 95% Clopper–Pearson intervals. For a power,
    a band joins the intervals, and diamonds show the shares of calibrated models rejected, if you asked
    for them. For a sample size, lines show the power you want and the number of rows found. The dotted
    line is the level.

    Parameters
    ----------
    result : PowerResult or SampleSizeResult
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
    shows = (
        "caltest.planning:PowerResult SampleSizeResult",
        "give what caltest.power or caltest.sample_size returns",
    )

    _size = 6.4, 4.4
    _columns = 2

    def _pictures(self) -> list[tuple[Any, ...]]:
        result, every = self.result, self.result.points
        rows, shares = np.array([(point.n, point.power) for point in every]).T
        low, high = np.array([point.interval for point in every]).T
        x = pictures.axis_of_rows(rows.min() / 1.1, rows.max() * 1.1)
        y = pictures.Axis(-0.03, 1.03, tuple(pictures.LINEAR.marks((0.0, 1.0), 5).items()))
        across, marks = (x.low, x.high), [GRID]
        if isinstance(result, SampleSizeResult):
            if result.n is not None:
                label = f"{'at most ' if result.reached == 'at the smallest' else ''}{result.n:,} rows"
                marks.append(Mark("line", "found", (result.n,) * 2, (y.low, y.high), label=label))
            label = f"power wanted, {result.power:g}"
            marks.append(Mark("line", "wanted", across, (result.power,) * 2, label=label))
        elif len(rows) > 1:
            marks.append(Mark("area", "band", rows, low, high, "between the intervals"))
            marks.append(Mark("line", "line", rows, shares))
        named = "rejected, 95% interval", ""
        marks += with_intervals(rows, shares, low, high, np.zeros(len(rows)), named)
        asked = [(point.n, point.size, *point.size_interval) for point in every if point.size_interval]
        if asked:
            own, sizes, *ends = np.array(asked).T
            marks.append(Mark("intervals", "calibrated", own, *ends))
            marks.append(Mark("points", "calibrated", own, sizes, label="rejected if calibrated"))
        label = f"level, {result.alpha:g}"
        marks.append(Mark("line", "level", across, (result.alpha,) * 2, label=label))
        lens = f", {lettering(result.lens)}" if result.lens else ""
        what = f"{lettering(result.statistic, canvas.CLAUSE)}{lens}"
        by = "exact p-values" if result.null == "monte_carlo" else f"null {lettering(result.null)}"
        title = f"How often {what} rejects at level {result.alpha:g}, {by}"
        return [(Picture(marks, x, y, "rows", "power: share of data sets rejected"), title)]


# ------------------------------------------------------------------ an audit


@dataclass(frozen=True, eq=False)
class AuditDisplay(ResultDisplay):
    """Plot the pictures that lead the report of an audit: the errors of views, and where they are.

    Make it with ``from_result``.

    One picture shows errors, predicted less observed, of the headline and of other views. The thick bar
    is the view's own interval, which decides what is within the limit; the thin bar is the simultaneous
    one, which decides what is beyond it. Dashed lines are the limit. A filled diamond is an error that
    was found, a hollow circle one that was not. The other picture is the one beside it in the report:
    observed against predicted, a PIT or rank histogram, or the observed evidence among that of
    simulations.

    Parameters
    ----------
    result : Audit
        What :func:`caltest.audit` returned.

    Examples
    --------
    >>> import caltest, matplotlib.pyplot as plt
    >>> sure = caltest.simulation.tempered(n_samples=300, temperature=0.4, rng=0)
    >>> found = caltest.audit(sure.probs, sure.labels, n_resamples=99, rng=0)
    >>> [ax.get_xlabel() for ax in found.plot().axes_]
    ['predicted probability (stretched towards the ends)', '◂ too low    error, points    too high ▸']
    >>> plt.close("all")
    """

    result: Audit
    shows = "caltest.auditing.result:Audit", "give what caltest.audit returns"
    _parts = ": one for each picture of the first screen"

    def _grid(self) -> dict[str, Any]:
        if not (found := self._pictures()):
            raise InputError("this audit has no picture: no event, and no draws, were looked at.")
        size = 5.6 * len(found), max(4.4, 1.6 + 0.34 * max(len(each[0].y.marks) for each in found))
        return {"mosaic": [list(range(len(found)))], "figsize": size}

    def _pictures(self) -> list[tuple[Any, ...]]:
        found = _printers.pictured(self.result)
        return [(picture, lettering(title, 2 * canvas.CLAUSE)) for title, picture in found]


# ------------------------------------------------------------------ the statistic

_FAR = 3.0  # ranges of the draws; beyond, the axis is broken


@dataclass(frozen=True, eq=False)
class NullDisplay(ResultDisplay):
    """Plot the observed statistic against its distribution under calibration.

    Make it with ``from_result``.

    Values that are not finite are left out of the histogram.

    Parameters
    ----------
    result : CalibrationResult
        What :func:`caltest.test` returned, with a null that simulates, such as "monte_carlo".

    Raises
    ------
    InputError
        If the result has no null distribution.

    Examples
    --------
    >>> import caltest, matplotlib.pyplot as plt
    >>> digits = caltest.datasets.load_digits_predictions("logistic_regression")
    >>> result = caltest.test(digits.probs, digits.labels, "ecd", rng=0)
    >>> display = caltest.plots.NullDisplay.from_result(result)
    >>> display.ax_.get_title(loc="left").splitlines()[0]
    'p = 0.006 (exact)'
    >>> plt.close(display.figure_)
    """

    result: CalibrationResult
    shows = "caltest.results:CalibrationResult", "give what caltest.test returns"

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.result.null_distribution is None:
            found = f"the null {self.result.null!r} draws no resamples"
            do = "test with null='monte_carlo'"
            raise InputError(f"{found}, so there is no distribution to show; {do}.")

    _size = 6.0, 4.0

    def _pictures(self) -> list[tuple[Any, ...]]:
        result, observed = self.result, self.result.statistic
        every = np.asarray(result.null_distribution)
        draws = every[np.isfinite(every)] if np.isfinite(every).any() else np.zeros(1)
        low, high = float(draws.min()), float(draws.max())
        high = max(high, low + 1e-9 * max(abs(low), 1.0))
        far = not low - _FAR * (high - low) < observed < high + _FAR * (high - low)
        ends = (low, high) if far else (min(low, observed), max(high, observed))
        name = f"{lettering(result.measures, 100) or lettering(result.name)} ({lettering(result.name)})"
        text, bad = f"observed: {number(observed)}", result.rejects(result.alpha)
        shown = among_draws(draws, observed, text, name, bad=bad, ends=ends, far=far)
        as_extreme = f"{result.exceedances or 'none'} of them at least as extreme"
        many = f"{len(every):,} resamples if calibrated, {as_extreme}"
        return [(shown, f"p = {result.pvalue:.3g} ({result.guarantee})", many)]


# ------------------------------------------------------------------ the path


@dataclass(frozen=True, eq=False)
class MonitorDisplay(ResultDisplay):
    """Plot what a monitor has found: the path of the evidence, the error over time, reliability.

    Make it with ``from_result``.

    Left: the evidence after every batch, on a logarithmic scale, with the line of the alarm and the row
    at which it was reached (a filled diamond); below it predicted less observed in every batch, with
    limits that hold for all batches at once (a filled diamond: limits without 0); for numbers, the
    event with the strongest evidence, as the title tells. Right, where evidence is strongest, for all
    rows or a group: reliability of the first rows and of the latest, in bins of about equal counts; for
    numbers and times, how many outcomes lie in each tenth of the predicted distribution, with bands: if
    the model is calibrated, all marks lie within them with a probability of 95%, whichever group is
    shown, in a picture that is looked at once. A filled mark is outside its band. For point forecasts
    of a mean there is no such picture.

    Parameters
    ----------
    result : MonitorState
        What :meth:`caltest.Monitor.update` returned.

    Examples
    --------
    >>> import numpy as np, caltest, matplotlib.pyplot as plt
    >>> rng, monitor = np.random.default_rng(0), caltest.Monitor()
    >>> for _ in range(5):
    ...     p = rng.random(200)
    ...     state = monitor.update(p, rng.random(200) < p)
    >>> display = caltest.plots.MonitorDisplay.from_result(state)
    >>> len(display.axes_)
    3
    >>> plt.close(display.figure_)
    """

    result: MonitorState
    shows = "caltest.monitoring:MonitorState", "give what Monitor.update returns"
    _parts = ": one for the evidence, one for errors, and one for reliability"

    def _grid(self) -> dict[str, Any]:
        if len(self.result.pictures) == 2:  # for means
            return {"mosaic": [[0], [1]], "figsize": (6.4, 5.2)}
        return {"mosaic": [[0, 2], [1, 2]], "figsize": (10.0, 5.2), "width_ratios": (1.6, 1.0)}

    def _pictures(self) -> list[tuple[Any, ...]]:
        blank = "no row has its outcome yet", Picture([], *2 * (Axis(0.0, 1.0, ()),))
        found = self.result.pictures
        found = found if len(found) == 2 else [*found, blank, blank][:3]
        return [(picture, lettering(title, 3 * canvas.CLAUSE)) for title, picture in found]
