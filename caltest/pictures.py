"""The content of pictures, for any renderer: marks, and the axes on which they lie.

Displays draw both with matplotlib, reports as SVG. An axis knows positions of values, labelled ticks,
and its own ends.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any, Literal, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, logit

from caltest._numbers import probabilities, probability_axis, unit

Array: TypeAlias = NDArray[np.float64]
Limits: TypeAlias = tuple[float, float]

_RARE = 0.1  # the scale is logarithmic if all predictions are below this, or above 1 minus this, …
_DECADE = 10.0  # … and they differ by more than this factor
_NEARLY_ONE = 0.9999  # labels beyond have too many nines
_LEAST = 1e-16  # smaller probabilities have no position of their own
_MARGIN, _LEAST_SPAN = 0.04, 1e-6  # as a share of the span; in units of the axis
_FAR = 2.5  # multiple of the errors of interest at which an interval is cut off
_SHOWN_ANYWAY = 1.5  # multiple of the span needed
_LEAST_SHARE = 1 / 3  # of an axis shared by both directions

_STEPS = tuple(round(lead * 10.0**power, 9) for power in range(-6, 13) for lead in (1.0, 2.0, 5.0))
_STRETCHED = (
    0.0001, 0.001, 0.01, 0.05, 0.2, 0.5, 0.8, 0.9, 0.95, 0.99, 0.999, 0.9999, 0.99999,
)  # fmt: skip
_RATIOS = (
    0.02, 0.05, 0.1, 0.2, 0.3, 0.5, 0.7, 0.8, 0.9, 0.95, 1.0, 1.05, 1.1, 1.25, 1.5, 2.0, 3.0, 5.0,
    10.0, 20.0, 50.0, 100.0,
)  # fmt: skip


# ------------------------------------------------------------------ scales


@dataclass(frozen=True)
class Scale:
    """The scale of an axis; ``forward`` gives positions along it."""

    words: str  #: Suffix of the axis label.
    forward: Callable[[Any], Any]
    inverse: Callable[[Any], Any]

    def limits(self, values: Array) -> Limits:
        """Return ends of an axis with room around values, ignoring values without a position."""
        inside = values[np.abs(self.forward(values)) < -np.log10(_LEAST)]
        low, high = (float(end(self.forward(inside))) for end in (np.min, np.max))
        room = _MARGIN * (high - low) if high - low > _LEAST_SPAN else 0.05
        return float(self.inverse(low - room)), float(self.inverse(high + room))

    def span(self, ends: Limits) -> float:
        """Return the length of a range on the axis."""
        return float(self.forward(ends[1]) - self.forward(ends[0]))

    def marks(self, ends: Limits, most: int) -> dict[float, str]:
        """Return tick labels between the ends of an axis, with about ``most`` spaces between them."""
        if self is LINEAR:
            marks = probability_axis(max(ends[0], 0.0), min(ends[1], 1.0), most)
        else:
            most -= self is NEAR_ONE  # its labels are longer
            for leading in ((1, 2, 5), (1, 3), (1,)):
                small = sorted(k * 10.0**power for power in range(-16, 0) for k in leading)
                marks = small if self is NEAR_ZERO else [1.0 - each for each in reversed(small)]
                marks = [each for each in marks if ends[0] <= each <= ends[1]]
                if len(marks) <= most + 1:
                    break
            marks = marks[:: -(-len(marks) // (most + 1))]
        inside = [each for each in marks if ends[0] - 1e-12 <= each <= ends[1] + 1e-12]
        texts = {each: f"{each:.12g}".replace("e-0", "e−") for each in inside}
        return texts | {each: probabilities([each])[0] for each in inside if each > _NEARLY_ONE}

    def bars(self, ends: Limits, count: int) -> Array:
        """Return the edges of bars that look equally wide, (count + 1,)."""
        low, high = max(ends[0], 0.0), min(ends[1], 1.0)
        edges = self.inverse(np.linspace(self.forward(low), self.forward(high), count + 1))
        edges[[0, -1]] = low, high
        return np.asarray(edges)


def _log(values: Any) -> Any:
    return np.log10(np.maximum(values, _LEAST))


LINEAR = Scale("", lambda values: np.asarray(values) + 0.0, lambda places: np.asarray(places) + 0.0)
NEAR_ZERO = Scale(" (log scale)", _log, lambda places: np.power(10.0, places))
NEAR_ONE = Scale(
    " (log scale of the distance to 1)",
    lambda values: -_log(1.0 - np.asarray(values)),
    lambda places: 1.0 - np.power(10.0, -np.asarray(places)),
)
STRETCHED = Scale(" (stretched towards the ends)", logit, expit)


def scale_of(predicted: Array) -> Scale:
    """Return the scale for predictions: logarithmic if they span orders of magnitude near 0 or 1.

    That is: all below 0.1; or below 0.5, with half of them below a tenth of the largest.
    """
    middle = float(np.median(predicted))
    for scale, low, half, high in (
        (NEAR_ZERO, float(predicted.min()), middle, float(predicted.max())),
        (NEAR_ONE, 1.0 - float(predicted.max()), 1.0 - middle, 1.0 - float(predicted.min())),
    ):
        if (high < _RARE or (high < 0.5 and half < _RARE * high)) and high > _DECADE * low > 0.0:
            return scale
    return LINEAR


# ------------------------------------------------------------------ axes that end on a tick


@dataclass(frozen=True)
class Axis:
    """An axis from one value to another on a scale, with labelled ticks."""

    low: float
    high: float
    marks: tuple[tuple[float, str], ...]
    scale: Scale = LINEAR

    def at(self, value: float) -> float:
        """Return the position of a value, from 0 to 1; values beyond are put at the end."""
        inside = min(max(value, self.low), self.high)
        return self.scale.span((self.low, inside)) / self.scale.span((self.low, self.high))

    def thinned(self, most: int) -> Axis:
        """Return the axis with no more labels than there is room for; the grid stays."""
        step = math.ceil(len(self.marks) / most)
        start = next((k % step for k, (value, _) in enumerate(self.marks) if value == 0.0), 0)
        numbered = enumerate(self.marks)
        kept = tuple((value, label if k % step == start else "") for k, (value, label) in numbered)
        return Axis(self.low, self.high, kept, self.scale)


def axis_of_probabilities(values: Sequence[float]) -> Axis:
    """Return an axis of probabilities in percent, no longer than the values need."""
    marks = probability_axis(min(values), max(values), most=6)
    digits = max(0, -math.floor(math.log10(marks[1] - marks[0]) + 1e-6) - 2)
    return Axis(marks[0], marks[-1], tuple((mark, f"{100.0 * mark:.{digits}f}%") for mark in marks))


def axis_of_levels(values: Sequence[float]) -> Axis:
    """Return an axis of predictions: of probabilities, or of finite numbers."""
    if not unit().of_outcomes:
        return axis_of_probabilities(values)
    inside = [value for value in values if math.isfinite(value)]
    room = _MARGIN * (max(inside) - min(inside)) or 1.0
    return axis_between(min(inside) - room, max(inside) + room)


def axis_between(low: float, high: float, most: int = 5) -> Axis:
    """Return an axis between two values, such as times."""
    power = 10.0 ** math.floor(math.log10((high - low) / 4.0))
    step = next(k * power for k in (1.0, 2.0, 2.5, 5.0, 10.0) if k * power >= (high - low) / most)
    steps = range(math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9) + 1)
    return Axis(low, high, tuple((step * k, f"{step * k:,.6g}".replace("-", "−")) for k in steps))


def _between(values: Sequence[float], choice: Sequence[float], text: Any, scale: Scale) -> Axis:
    """Return an axis that ends on the nearest ticks, of a choice, around the values."""
    low = max((mark for mark in choice if mark <= min(values)), default=choice[0])
    high = min((mark for mark in choice if mark >= max(values)), default=choice[-1])
    return Axis(low, high, tuple((mark, text(mark)) for mark in choice if low <= mark <= high), scale)


def logarithmic_axis(values: Sequence[float]) -> Axis:
    """Return a logarithmic axis of small probabilities, in events per 1,000 rows, or of numbers."""
    times, most = (1.0, math.inf) if unit().of_outcomes else (1000.0, 1.0)
    positive, choice = [x for x in values if 0.0 < x < math.inf], [s for s in _STEPS if s <= most]
    return _between(positive, choice, lambda mark: f"{times * mark:,.6g}", NEAR_ZERO)


def stretched_axis(values: Sequence[float]) -> Axis:
    """Return an axis stretched towards 0% and 100%."""
    return _between(values, _STRETCHED, lambda mark: f"{100.0 * mark:.6g}%", STRETCHED)


def axis_of_rows(low: float, high: float) -> Axis:
    """Return a logarithmic axis of numbers of rows."""
    marks = tuple((each, f"{each:,.0f}") for each in _STEPS if max(low, 1.0) <= each <= high)
    marks = marks if len(marks) > 1 else axis_between(low, high).marks
    return Axis(low, high, marks, NEAR_ZERO).thinned(7)


def axis_of_points(low: float, high: float, most: int = 7) -> Axis:
    """Return an axis of errors in percentage points, or in units of outcomes, including 0."""
    low, high = min(low, 0.0), max(high, 0.0)
    if unit().of_outcomes:
        room = 0.035 * (high - low) or 1.0
        axis = axis_between(low - room, high + room, most)
        return replace(axis, marks=tuple((x, f"{'+' * (x > 0.0)}{text}") for x, text in axis.marks))
    span = max(high - low, 1e-6)
    step = next((each for each in _STEPS if each >= 1e-4 and span * 100.0 / each <= most), _STEPS[-1])
    first, last = math.ceil(100.0 * low / step - 1e-9), math.floor(100.0 * high / step + 1e-9)
    digits = max(0, -math.floor(math.log10(step) + 1e-9))
    marks = tuple(
        (k * step / 100.0, f"{k * step:+.{digits}f}".replace("-", "−") if k else "0")
        for k in range(first, last + 1)
    )
    return Axis(low - 0.035 * span, high + 0.035 * span, marks)


def axis_of_ratios(low: float, high: float, most: int = 6) -> Axis:
    """Return a logarithmic axis of ratios, including 1."""
    low, high = max(min(low, 0.95), 0.01) / 1.06, min(max(high, 1.05), 150.0) * 1.06
    inside = [mark for mark in _RATIOS if low <= mark <= high]
    room = math.log(high / low) / (most + 1)
    kept = [1.0]
    for mark in sorted(inside, key=lambda each: abs(math.log(each))):
        if all(abs(math.log(mark / other)) >= room for other in kept):
            kept.append(mark)
    return Axis(low, high, tuple((mark, f"{mark:g}×") for mark in sorted(kept)), NEAR_ZERO)


def axis_of_bars(bars: Sequence[Sequence[float]], limit: float, *, as_ratio: bool) -> Axis:
    """Return an axis of errors or ratios for bars (low end, estimate, high end) and a limit."""
    low, value, high = np.array(bars).T
    if as_ratio:
        return axis_of_ratios(min(low.clip(min=0.05)), max(high.clip(max=50.0)), most=3)
    reach = np.sort(np.nan_to_num(np.maximum(-low, high), posinf=0.0))
    # Wide intervals of small groups must not squeeze the rest.
    far = _FAR * max(limit, reach[len(reach) // 2], *abs(value))
    start, end = max(min(*low, -1.05 * limit), -far), min(max(*high, 1.05 * limit), far)
    return axis_of_points(float(start), float(end), most=6 if max(-start, end) < 0.1 else 4)


def zoomed(scale: Scale, points: Array, rest: Array, values: Array, most: int = 5) -> tuple[Axis, Axis]:
    """Return both axes of a diagram: for points, for the rest unless it is far, and for all values.

    Both axes have the same ends, unless the points would then be crowded together.
    """
    across, whole = scale.limits(points), scale.limits(np.concatenate([points, rest]))
    if scale.span(whole) <= _SHOWN_ANYWAY * scale.span(across):
        across = whole
    upwards = scale.limits(values)
    both = min(across[0], upwards[0]), max(across[1], upwards[1])
    if scale.span(across) >= _LEAST_SHARE * scale.span(both):
        across = upwards = both
    x, y = (Axis(*each, tuple(scale.marks(each, most).items()), scale) for each in (across, upwards))
    return x, y


# ------------------------------------------------------------------ marks

#: line: through points; points; intervals: vertical, from y to end; bars: horizontal, from x to end;
#: area: between y and end; band: at points, from y to end; columns: from 0 to y, between edges x; rows:
#: counts between edges x, beneath the plot; text: at x and y, as shares of the plot, shifted by end in
#: pixels; grid: that of the axes.
Kind: TypeAlias = Literal[
    "line", "points", "intervals", "bars", "area", "band", "columns", "rows", "text", "grid"
]


class Mark(NamedTuple):
    """Marks of one kind and style, in values of the axes; ``end`` is where each one ends."""

    kind: Kind
    style: str = ""
    x: Any = ()
    y: Any = ()
    end: Any = ()
    label: str = ""


Marks: TypeAlias = list[Mark]


class Picture(NamedTuple):
    """Marks, lowest first, with their axes and axis labels."""

    marks: Marks
    x: Axis
    y: Axis
    of_x: str = ""
    of_y: str = ""


GRID = Mark("grid", "grid")
DIAGONAL = Mark("line", "diag", (0.0, 1.0), (0.0, 1.0))
OK, BAD = "ok", "bad"  # a hollow circle; a filled diamond for errors that are proved


def told_apart(
    x: Any, y: Any, bad: Any, kind: Kind = "points", end: Any = None, labels: Any = ("", "")
) -> Marks:
    """Return marks in two styles, for the rest and for proved errors; none for an empty class."""
    x, y, bad = np.asarray(x), np.asarray(y), np.asarray(bad, bool)
    ends = y if end is None else np.asarray(end)
    return [
        Mark(kind, style, x[chosen], y[chosen], ends[chosen], label)
        for style, chosen, label in zip((OK, BAD), (~bad, bad), labels, strict=True)
        if chosen.any()
    ]


def cumulative(shares: Any, differences: Any, band: Any, *labels: str) -> Picture:
    """Draw a cumulative difference: its path, and its band under calibration."""
    of_band, of_path = labels or ("", "")
    ends, reach = (shares, np.asarray(band)) if np.ndim(band) else ((0.0, 1.0), np.full(2, band))
    low, high = (1.1 * end([*differences, *way]) for end, way in ((min, -reach), (max, reach)))
    marks = [
        Mark("area", "band", ends, -reach, reach, of_band),
        GRID,
        Mark("line", "zero", (ends[0], ends[-1]), (0.0, 0.0)),
        Mark("line", "line", shares, differences, label=of_path),
    ]
    return Picture(marks, axis_of_probabilities([0.0, 1.0]), axis_of_points(low, high))


def over_time(times: Any, *curves: Any, unit: str = "", labels: Any = ("",) * 3) -> Picture:
    """Draw the probability of an event until each time: observed, Kaplan–Meier, and predicted."""
    marks = [GRID]
    for style, curve, label in zip(("line", "thin", "diag"), curves, labels, strict=True):
        values = np.array(curve, dtype=np.float64)  # NaN where unknown
        known = np.isfinite(values)
        at, there = (np.append(0.0, np.asarray(each)[known]) for each in (times, values))
        marks.append(Mark("line", style, at, there, label=label))
    y = axis_of_probabilities([0.0, *(value for mark in marks for value in mark.y)])
    of_x = f"time, {unit}" if unit else "time"
    return Picture(marks, axis_between(0.0, times[-1]), y, of_x, "chance of the event")


def in_lines(names: Sequence[str], bars: Mark, points: Marks, of_x: str) -> Picture:
    """Draw points on bars in named lines, line k at height −k, with a vertical line at 0."""
    y = Axis(0.5 - len(names), 0.5, tuple((-float(k), name) for k, name in enumerate(names)))
    ends = [0.0, *bars.x, *bars.end]
    room = max(0.08 * (max(ends) - min(ends)), 1e-6)
    upright = Mark("line", "zero", (0.0, 0.0), (y.low, y.high))
    x = axis_between(min(ends) - room, max(ends) + room)
    return Picture([GRID, upright, bars, *points], x, y, of_x)


def along(bins: Sequence[Any], bad: Sequence[bool]) -> Picture:
    """Draw observed rates in bins of a feature, with intervals, in lines; predicted rates dashed."""
    places = -np.arange(len(bins), dtype=np.float64)
    stated, seen = [each.predicted for each in bins], [each.observed for each in bins]
    low, high = np.clip([each.true_rates for each in bins], *unit().ends).T
    y = Axis(0.5 - len(bins), 0.5, tuple(zip(places.tolist(), (b.name for b in bins), strict=True)))
    marks = [GRID, Mark("line", "diag", stated, places), *told_apart(low, places, bad, "bars", high)]
    x = axis_of_levels([*stated, *seen, *low, *high])
    marks += told_apart(seen, places, bad)
    return Picture(marks, x, y, unit().observed.removeprefix("observed "))


def critical(draws: Any, alpha: float) -> float:
    """Return what one more draw exceeds with probability at most alpha: the k-th largest of B draws.

    k = ⌊alpha (B + 1)⌋: p = (1 + #{draws at least as large})/(B + 1) is at most alpha only for larger
    values. Infinite if p always exceeds alpha because draws are too few.
    """
    count = len(draws)
    k = np.count_nonzero(np.arange(1, count + 1) / (count + 1) <= alpha)  # as p-values are compared
    return float(np.sort(draws)[-k]) if k else np.inf


def pair(points: Array, stated: float, observed: float) -> Picture:
    """Draw true values minus means of draws for two parameters, with two 2-sigma ellipses.

    Dashed: by the correlation of the draws; solid: by the observed correlation.
    """
    angle = np.linspace(0.0, 2.0 * math.pi, 73)
    marks = [GRID, *told_apart(points[:, 0], points[:, 1], np.zeros(len(points)))]
    for style, rho in (("diag", stated), ("line", observed)):
        other = rho * np.cos(angle) + math.sqrt(max(1.0 - rho**2, 0.0)) * np.sin(angle)
        marks.append(Mark("line", style, 2.0 * np.cos(angle), 2.0 * other))
    end = max(3, math.ceil(float(np.abs(points).max(initial=0.0))))
    axis = axis_between(float(-end), float(end))
    return Picture(marks, axis, axis)


def path_of(scores: Array, labels: Any, weights: Array) -> tuple[Array, Array, Array]:
    """Return the path of cumulative differences, without its start: one point per distinct score.

    Return the scores (K,), in increasing order; the share of rows up to each, by weight; and the sum of
    predicted minus observed over these rows, divided by the total weight.
    """
    order = np.argsort(scores, kind="stable")
    ordered, counted = scores[order], weights[order]
    ends = np.append(np.flatnonzero(np.diff(ordered)), len(scores) - 1)
    sums = np.stack([counted, counted * (ordered - labels[order])]).cumsum(axis=1)[:, ends]
    return ordered[ends], *(sums / weights.sum())


# ------------------------------------------------------------------ parts of one probability

_SMALL_ERROR = 0.1  # share of the plot's width: smaller errors cannot be seen beside the diagonal
_CERTAIN = 0.9


def _x_axis(parts: Sequence[Any], h: Any, *more: float) -> Axis:
    """Return an axis for predictions: nearly all of them, stretched if most are near the end."""
    values = [part.predicted for part in parts]
    middle = sorted(values)[len(values) // 2]
    near = middle > _CERTAIN and 0.99 < max(values) < 0.99995 and len(values) > 2
    if near and not unit().of_outcomes:
        return stretched_axis([min(values), max(values), *more])
    if h and sum(h.counts):
        first, last = np.searchsorted(np.cumsum(h.counts) / sum(h.counts), [0.005, 0.995])
        values += [h.edges[first], h.edges[min(last + 1, len(h.counts))]]
    return axis_of_levels([*values, *more])


def _rows_beneath(x: Axis, h: Any, parts: Sequence[Any]) -> Mark:
    """Return the rows beneath a plot: in bins of equal width, or by part on a nonlinear scale."""
    if x.scale is LINEAR and h is not None:
        return Mark("rows", "bar", h.edges, h.counts, label="rows")
    edges = [parts[0].start, *[(a.end + b.start) / 2 for a, b in pairwise(parts)], parts[-1].end]
    return Mark("rows", "bar", edges, [part.rows for part in parts], label="rows")


def with_intervals(x: Any, y: Any, low: Any, high: Any, bad: Any, labels: Any = ("", "")) -> Marks:
    """Return points with their intervals, in two styles."""
    return told_apart(x, low, bad, "intervals", high) + told_apart(x, y, bad, labels=labels)


def curve(parts: Sequence[Any], h: Any, shown: Sequence[Any], fit: Any, *, rare: bool) -> Picture:
    """Draw observed against predicted, with a dot per part; ``shown``: parts with a proved error.

    ``h``: histogram of the predictions; ``rare``: logarithmic axes, for probabilities in events per
    1,000; ``fit``: an isotonic curve, or None.
    """
    x, y = [part.predicted for part in parts], [part.observed for part in parts]
    low, high = zip(*(part.true_rates for part in parts), strict=True)
    lows, highs = np.clip([low, high], *unit().ends)
    of_x, of_y = unit().predicted, unit().observed
    if rare:
        axis = logarithmic_axis([*x, *y, *highs])
        if not unit().of_outcomes:
            of_x, of_y = "predicted events per 1,000 rows", "observed events per 1,000 rows"
    else:
        axis = _x_axis(parts, h, *x, *y, *lows, *highs)
    of_x += axis.scale.words
    marks = [GRID, Mark("line", "diag", (axis.low, axis.high), (axis.low, axis.high))]
    marks = [*marks, Mark("line", "thin", x, y)] if fit is None else [*_isotonic(fit, axis), *marks]
    marks += with_intervals(x, y, low, high, [part in shown for part in parts])
    # Each label is put in its corner, unless a dot or interval is there.
    above = Mark("text", "lab", 0.0, 1.0, (8, 16), "above: too low")
    below = Mark("text", "lab", 1.0, 0.0, (-8, -10), "below: too high")
    return Picture([*marks, _rows_beneath(axis, h, parts), above, below], axis, axis, of_x, of_y)


def _isotonic(fit: Any, axis: Axis) -> Marks:
    """Return an isotonic curve and its band within an axis."""
    at, mean = np.array([fit.at, fit.mean])
    here = (np.minimum(at, mean) >= axis.low) & (np.maximum(at, mean) <= axis.high)
    line = Mark("line", "line", at[here], mean[here])
    if fit.low is None:
        return [line]
    band = np.array([fit.low, fit.high], dtype=np.float64).clip(axis.low, axis.high)
    known = np.isfinite(band[0])
    return [Mark("area", "band", at[known], *band[:, known]), line]


def errors(
    parts: Sequence[Any], halves: Sequence[Any], h: Any, shown: Sequence[Any], lines: Sequence[float]
) -> Picture:
    """Draw the error by prediction: dots for parts, boxes for halves, the limit as dashed lines."""
    every = [end for part in (*parts, *halves) for end in (part.low, part.high)]
    every = [*filter(math.isfinite, every), *(1.2 * end for end in lines)]
    y = axis_of_points(1.1 * min(every), 1.1 * max(every))
    ranked = crowded(parts)
    x = axis_of_probabilities([0.0, 1.0]) if ranked else _x_axis(parts, h)
    of_x = "share of the rows, from the lowest prediction" if ranked else unit().predicted
    marks = [GRID, *(Mark("line", "limit", (x.low, x.high), (end, end)) for end in lines)]
    for half, ends in zip(halves, pairwise(_reach(halves)), strict=True):
        across = ends if ranked else (half.start, half.end)
        kind = BAD if half in shown else OK
        marks.append(Mark("area", f"half {kind}", across, (half.low, half.low), (half.high, half.high)))
        marks.append(Mark("line", f"halfmean {kind}", across, (half.error, half.error)))
    marks.append(Mark("line", "zero", (x.low, x.high), (0.0, 0.0)))
    middles = [(a + b) / 2 for a, b in pairwise(_reach(parts))]
    places = middles if ranked else [part.predicted for part in parts]
    error, low, high = zip(*((part.error, part.low, part.high) for part in parts), strict=True)
    marks += with_intervals(places, error, low, high, [part in shown for part in parts])
    if not ranked:
        marks.append(_rows_beneath(x, h, parts))
    if y.at(0.0) < 0.88:
        marks.append(Mark("text", "lab", 0.0, 1.0, (6, 13), "too high ▴"))
    if y.at(0.0) > 0.12:
        marks.append(Mark("text", "lab", 0.0, 0.0, (6, -5), "too low ▾"))
    return Picture(marks, x, y, of_x, f"error (predicted − {unit().seen}), {unit().heading}")


def _reach(parts: Sequence[Any]) -> list[float]:
    """Return the shares of the rows at which parts begin and end."""
    rows = [part.rows for part in parts]
    return [0.0, *(np.cumsum(rows) / max(sum(rows), 1)).tolist()]


def crowded(parts: Sequence[Any]) -> bool:
    """Whether most parts have nearly the same prediction, so that only ranks separate them."""
    predicted = [part.predicted for part in parts]
    if len(parts) < 4 or _x_axis(parts, None).scale is not LINEAR:
        return False
    near = 0.02 * (max(predicted) - min(predicted))
    return sum(bool(b - a <= near) for a, b in pairwise(predicted)) > (len(parts) - 1) / 2


def small(parts: Sequence[Any]) -> bool:
    """Whether errors are too small to see beside a diagonal."""
    if len(parts) < 3:
        return False
    wide = max(part.predicted for part in parts) - min(part.predicted for part in parts)
    return bool(max(part.most for part in parts) <= _SMALL_ERROR * wide)


def reliability(r: Any) -> Picture:
    """Draw a reliability diagram: bins of equally many rows, and where they lie under calibration."""
    axis = axis_of_probabilities([*r.predicted, *r.observed, *r.low, *r.high])
    bad = [not low <= o <= high for o, low, high in zip(r.observed, r.low, r.high, strict=True)]
    marks = [Mark("band", "band", r.predicted, r.low, r.high), GRID, DIAGONAL]
    marks += told_apart(r.predicted, r.observed, bad)
    return Picture(marks, axis, axis, "predicted probability", "observed rate")
