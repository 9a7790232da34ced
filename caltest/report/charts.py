"""Where the marks of the report's pictures go: plain numbers, which templates draw as SVG."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from types import SimpleNamespace
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from caltest import pictures, pvalues
from caltest._numbers import number
from caltest.auditing.result import Audit
from caltest.auditing.views import Cumulative, Curves, Histogram, Part, Reliability, View
from caltest.pictures import BAD, DIAGONAL, GRID, Axis, Mark, Marks, told_apart
from caltest.text.sizes import RARE, is_tied
from caltest.text.vocabulary import outcomes_called


class Size(NamedTuple):
    """Of a picture: the whole, the plot in it, and the bars beneath the plot."""

    name: str
    width: int
    height: int
    left: float
    right: float
    top: float
    bottom: float
    floor: float  # of the bars

    def x(self, place: float) -> float:
        """Return where a place from 0 to 1 is."""
        return round(self.left + (self.right - self.left) * place, 1)

    def y(self, place: float) -> float:
        """Return how high a place from 0 to 1 is."""
        return round(self.bottom - (self.bottom - self.top) * place, 1)

    def without_rows(self) -> Size:
        """Return it with the plot in place of the bars too."""
        return self._replace(bottom=self.floor)


#: Of the first screen: where there is room, and on a phone or on paper.
FIRST = (Size("wide", 540, 332, 46, 520, 22, 244, 296), Size("narrow", 342, 306, 46, 322, 22, 218, 270))
SMALL = Size("small", 342, 306, 50, 322, 22, 258, 264)

Shown: TypeAlias = Sequence[View | Part]  # views and parts of which an error is shown

_BARS = 46.0  # height of the tallest
_HALF_LETTER = 3.6  # of the width of a figure, in labels
SMALL_ERROR = 0.1  # of the plot's width: what cannot be seen beside the diagonal
_CERTAIN = 0.9
_DIAMOND = "l5.4 5.4l-5.4 5.4l-5.4-5.4Z"


@dataclass
class Drawing:
    """An SVG picture: what it is for who cannot see it, and its elements, the lowest first."""

    size: Size
    label: str
    marks: list[SimpleNamespace] = field(default_factory=list)

    def path(self, kind: str, d: str) -> None:
        """Add a line or a shape."""
        self.marks.append(SimpleNamespace(tag="path", kind=kind, d=d))

    def box(self, kind: str, left: float, top: float, right: float, bottom: float) -> None:
        """Add a rectangle."""
        self.path(kind, f"M{left:.1f} {top:.1f}H{right:.1f}V{bottom:.1f}H{left:.1f}Z")

    def text(self, x: float, y: float, text: str, anchor: str = "start", kind: str = "") -> None:
        """Add a line of text."""
        where = {"x": round(x, 1), "y": round(y, 1), "anchor": anchor}
        self.marks.append(SimpleNamespace(tag="text", kind=kind, text=text, **where))

    def draw(self, marks: Marks, x: Axis, y: Axis, of_x: str, of_y: str) -> Drawing:
        """Add marks, on axes of these names, with room for their labels."""
        wide, last = max(len(label) for _, label in y.marks), len(x.marks[-1][1])
        left = max(self.size.left, round(2 * _HALF_LETTER * wide + 8, 1))
        right = min(self.size.right, round(self.size.width - 3 - _HALF_LETTER * last, 1))
        self.size = self.size._replace(left=left, right=right)
        for mark in marks:
            if mark.kind == "grid":
                self._grid(x, y, of_x, of_y)
            elif mark.kind == "rows":
                self._rows(x, mark)
            elif mark.kind == "text":
                at = self.size.x(mark.x) + mark.end[0], self.size.y(mark.y) + mark.end[1]
                self.text(*at, mark.label, "end" if mark.end[0] < 0 else "start", mark.style)
            else:
                across = [self.size.x(x.at(value)) for value in mark.x]
                upwards, ends = ([self.size.y(y.at(v)) for v in each] for each in (mark.y, mark.end))
                self._shapes(mark, across, upwards, ends)
        return self

    def _shapes(self, mark: Mark, x: list[float], y: list[float], end: list[float]) -> None:
        if mark.kind == "line":
            self.path(mark.style, "M" + "L".join(f"{a} {b}" for a, b in zip(x, y, strict=True)))
        elif mark.kind in ("area", "band"):
            corners = [*zip(x, end, strict=True), *zip(x[::-1], y[::-1], strict=True)]
            self.path(mark.style, f"M{'L'.join(f'{a} {b}' for a, b in corners)}Z")
        if mark.kind in ("intervals", "band"):
            kind = "ends" if mark.kind == "band" else f"int {mark.style}"
            for a, low, high in zip(x, y, end, strict=True):
                self.path(kind, f"M{a} {low}V{high}")
        elif mark.kind == "points":
            for a, b in zip(x, y, strict=True):
                if mark.style == BAD:
                    self.path("dot bad", f"M{a:.1f} {b - 5.4:.1f}{_DIAMOND}")
                else:
                    self.marks.append(SimpleNamespace(tag="circle", kind="dot ok", x=a, y=b))

    def _grid(self, x: Axis, y: Axis, of_x: str, of_y: str) -> None:
        """Add the grid, its labels, and what the axes are."""
        size = self.size
        for value, label in y.marks:
            at = size.y(y.at(value))
            self.path("grid", f"M{size.left} {at}H{size.right}")
            self.text(size.left - 6, at + 4, label, "end")
        self.text(0.0, 11.0, of_y, kind="lab")
        for value, label in x.thinned(7 if size.width > 400 else 6).marks:
            at = size.x(x.at(value))
            self.path("grid", f"M{at} {size.top}V{size.bottom}")
            self.text(at, size.floor + 15, label, "middle")
        self.text((size.left + size.right) / 2, size.floor + 32, of_x, "middle", "lab")

    def _rows(self, x: Axis, mark: Mark) -> None:
        """Add how many rows there are where, beneath the plot: areas are shares of the rows."""
        size = self.size
        ends = pairwise(size.x(x.at(edge)) for edge in mark.x)
        wide = [(a, b, count) for (a, b), count in zip(ends, mark.y, strict=True) if b > a]
        most = max((count / (b - a) for a, b, count in wide), default=0.0)
        for a, b, count in wide:
            if count:
                high = max(_BARS * count / (b - a) / most, 0.4)
                gap = 0.8 if b - a > 3.0 else 0.0
                self.box(mark.style, a + gap / 2, size.floor - high, b - gap / 2, size.floor)
        self.path("axis", f"M{size.left} {size.floor}H{size.right}")
        if mark.label:
            self.text(size.left - 6, size.floor - 8, mark.label, "end", "lab")


def parts_of(view: View) -> tuple[tuple[Part, ...], tuple[Part, ...]]:
    """Return the finest parts of a view, or the view itself where it has none; and even halves."""
    finest = max((part.of for part in view.parts), default=0)
    parts = tuple(part for part in view.parts if part.of == finest)
    halves = tuple(part for part in view.parts if part.of == 2)
    if not parts and view.predicted is not None and view.observed is not None:
        h, interval = view.histogram, (view.low or 0.0, view.high or 0.0)
        ends = (h.edges[0], h.edges[-1]) if h else (view.predicted, view.predicted)
        only = Part(1, 0, view.rows, view.predicted, view.observed, *interval, *ends)
        return (only,), ()
    uneven = any(is_tied(half, view.rows) or half.start == half.end for half in halves)
    return parts, () if finest == 2 or len(halves) != 2 or uneven else halves


def is_rare(parts: Sequence[Part], view: View) -> bool:
    """Whether a view is drawn in events per 1,000, on logarithmic axes."""
    if max(view.predicted or 0.0, view.observed or 0.0) >= RARE:
        return False
    predicted = [part.predicted for part in parts if part.predicted > 0.0]
    return len(predicted) > 1 and max(predicted) >= 10.0 * min(predicted)


def _x_axis(parts: Sequence[Part], h: Histogram | None, *more: float) -> Axis:
    """Return an axis of the predictions: nearly all of them, stretched where most are near the end."""
    values = [part.predicted for part in parts]
    middle = sorted(values)[len(values) // 2]
    if middle > _CERTAIN and 0.99 < max(values) < 0.99995 and len(values) > 2:
        return pictures.stretched_axis([min(values), max(values), *more])
    if h and sum(h.counts):
        cumulated = np.cumsum(h.counts) / sum(h.counts)
        first, last = np.searchsorted(cumulated, [0.005, 0.995])
        values += [h.edges[first], h.edges[min(last + 1, len(h.counts))]]
    return pictures.axis_of_probabilities([*values, *more])


def _rows_beneath(x: Axis, h: Histogram | None, parts: Sequence[Part]) -> Mark:
    """Return where the rows are: bins of equal width, or, on a scale that is bent, the parts."""
    if x.scale is pictures.LINEAR and h is not None:
        return Mark("rows", "bar", h.edges, h.counts, label="rows")
    if len(parts) == 1:
        return Mark("rows", "bar")
    inner = [(a.end + b.start) / 2 for a, b in pairwise(parts)]
    edges = [parts[0].start, *inner, parts[-1].end]
    return Mark("rows", "bar", edges, [part.rows for part in parts], label="rows")


def _with_intervals(x: Sequence[float], y: Sequence[float], ends: Any, bad: Sequence[bool]) -> Marks:
    low, high = zip(*ends, strict=True)
    return told_apart(x, low, bad, "intervals", high) + told_apart(x, y, bad)


def curve(view: View, label: str, shown: Shown) -> tuple[Drawing, ...]:
    """Draw observed against predicted, a dot a part; ``shown``: of which an error is."""
    parts, _ = parts_of(view)
    x, y = [part.predicted for part in parts], [part.observed for part in parts]
    ends = [part.true_rates for part in parts]
    lows, highs = [max(low, 0.0) for low, _ in ends], [min(high, 1.0) for _, high in ends]
    of_x, of_y = "predicted probability", "observed rate"
    if is_rare(parts, view):
        axis = pictures.axis_per_thousand([*x, *y, *highs])
        of_x, of_y = "predicted events per 1,000 rows (log scale)", "observed events per 1,000 rows"
    else:
        axis = _x_axis(parts, view.histogram, *x, *y, *lows, *highs)
        if axis.scale is pictures.STRETCHED:
            of_x += f" ({axis.scale.words})"
    marks = [GRID, DIAGONAL, *([Mark("line", "thin", x, y)] if len(parts) > 1 else [])]
    marks += _with_intervals(x, y, ends, [part in shown for part in parts])
    marks.append(_rows_beneath(axis, view.histogram, parts))
    # Each label stands in its corner, unless a dot or its interval is there.
    marks.append(Mark("text", "lab", 0.0, 1.0, (8, 16), "above: too low"))
    marks.append(Mark("text", "lab", 1.0, 0.0, (-8, -10), "below: too high"))
    return tuple(Drawing(size, label).draw(marks, axis, axis, of_x, of_y) for size in FIRST)


def errors(view: View, label: str, shown: Shown, limit: float | None) -> tuple[Drawing, ...]:
    """Draw the error by prediction: dots for parts, boxes for halves, the limit shaded."""
    parts, halves = parts_of(view)
    every = [end for part in (*parts, *halves) for end in (part.low, part.high)]
    if limit is not None:
        every += [-1.2 * limit, 1.2 * limit]
    y = pictures.axis_of_points(1.1 * min(every), 1.1 * max(every))
    ranked = crowded(parts)
    x = pictures.axis_of_probabilities([0.0, 1.0]) if ranked else _x_axis(parts, view.histogram)
    of_x = "share of the rows, from the lowest prediction" if ranked else "predicted probability"
    marks = [GRID]
    if limit is not None:
        marks.insert(0, Mark("area", "corridor", (x.low, x.high), (-limit, -limit), (limit, limit)))
    for half, ends in zip(halves, pairwise(_reach(halves)), strict=True):
        across = ends if ranked else (half.start, half.end)
        bad = " bad" * (half in shown)
        marks.append(Mark("area", f"half{bad}", across, (half.low, half.low), (half.high, half.high)))
        marks.append(Mark("line", f"halfmean{bad}", across, (half.error, half.error)))
    marks.append(Mark("line", "zero", (x.low, x.high), (0.0, 0.0)))
    places = [part.predicted for part in parts]
    if ranked:
        places = [(a + b) / 2 for a, b in pairwise(_reach(parts))]
    intervals = [(part.low, part.high) for part in parts]
    bad_parts = [part in shown for part in parts]
    marks += _with_intervals(places, [part.error for part in parts], intervals, bad_parts)
    if not ranked:
        marks.append(_rows_beneath(x, view.histogram, parts))
    if y.at(0.0) < 0.88:
        marks.append(Mark("text", "lab", 0.0, 1.0, (6, 13), "too high ▴"))
    if y.at(0.0) > 0.12:
        marks.append(Mark("text", "lab", 0.0, 0.0, (6, -5), "too low ▾"))
    wanted = [size.without_rows() if ranked else size for size in FIRST]
    of_y = "error (predicted − observed), points"
    return tuple(Drawing(size, label).draw(marks, x, y, of_x, of_y) for size in wanted)


def _reach(parts: Sequence[Part]) -> list[float]:
    """Return the shares of the rows at which parts begin and end."""
    rows = [part.rows for part in parts]
    return [0.0, *(np.cumsum(rows) / max(sum(rows), 1)).tolist()]


#: What the axes of a cumulative difference are, of probabilities and of distributions of numbers.
OF_ROWS = "share of the rows, from the lowest prediction", "points of all rows"
OF_LEVELS = "level of the predicted quantile", "stated − observed, points of the rows"


def cumulative(
    drawn: Cumulative, label: str, of: tuple[str, str] = OF_ROWS, sizes: Sequence[Size] = FIRST
) -> tuple[Drawing, ...]:
    """Draw the cumulative difference of a view, and the band that chance alone stays in."""
    values = (0.0, *drawn.difference)
    widest = max(drawn.bands or (drawn.band,))
    y = pictures.axis_of_points(1.1 * min(*values, -widest), 1.1 * max(*values, widest))
    x = pictures.axis_of_probabilities([0.0, 1.0])
    bands = drawn.bands and (drawn.bands[0], *drawn.bands)
    marks = pictures.cumulative((0.0, *drawn.share), values, bands or drawn.band)
    wanted = [size.without_rows() for size in sizes]
    return tuple(Drawing(size, label).draw(marks, x, y, *of) for size in wanted)


def over_time(c: Curves, label: str) -> Drawing:
    """Draw predicted and observed chances of the event over time."""
    marks = pictures.over_time(c.times, c.predicted, c.observed, c.kaplan_meier)
    y = pictures.axis_of_probabilities([0.0, *(value for mark in marks for value in mark.y)])
    return Drawing(SMALL, label).draw(
        marks, pictures.axis_of_times(c.times[-1]), y, "time", "chance of the event"
    )


def reliability(r: Reliability, label: str) -> Drawing:
    """Draw a reliability diagram: bins of equally many rows, and where they lie under calibration."""
    axis = pictures.axis_of_probabilities([*r.predicted, *r.observed, *r.low, *r.high])
    bad = [not low <= o <= high for o, low, high in zip(r.observed, r.low, r.high, strict=True)]
    marks = [Mark("band", "band", r.predicted, r.low, r.high), GRID, DIAGONAL]
    marks += told_apart(r.predicted, r.observed, bad)
    return Drawing(SMALL, label).draw(marks, axis, axis, "predicted probability", "observed rate")


def crowded(parts: Sequence[Part]) -> bool:
    """Whether most parts have nearly the same prediction, so that only ranks separate them."""
    predicted = [part.predicted for part in parts]
    if len(parts) < 4 or _x_axis(parts, None).scale is not pictures.LINEAR:
        return False
    near = 0.02 * (max(predicted) - min(predicted))
    return 2 * sum(b - a <= near for a, b in pairwise(predicted)) > len(parts) - 1


def small(parts: Sequence[Part]) -> bool:
    """Whether errors are too small to be seen beside a diagonal."""
    if len(parts) < 3:
        return False
    wide = max(part.predicted for part in parts) - min(part.predicted for part in parts)
    return max(part.most for part in parts) <= SMALL_ERROR * wide


# ------------------------------------------------------------------ the evidence among that of draws

_BINS, _FAR = 30, 2.0  # times what most draws reach, which the axis then leaves out
_ROOM = 0.82  # of its width is for the draws, if the observed value is far away from them
_NAME = 96.0  # wide is "rejects beyond"


def histogram(audit: Audit) -> SimpleNamespace | None:
    """Draw the largest evidence of every draw, and of the labels; None where it is not known.

    Of it: ``drawing``, ``reached`` (draws as large as the labels), ``draws``, ``beyond`` (draws off the
    axis), ``far`` (whether the labels are), and whether the p-value of the whole is that rank
    (``ranked``), larger (``doubled``: a check of two sides, or that few clusters carry) or smaller
    (``settled``: by a label of probability 0).
    """
    drawn = audit.null_distribution
    if drawn is None or not np.isfinite(drawn).any():
        return None
    draws, observed = np.sort(drawn[np.isfinite(drawn)]), audit.statistic
    span = float(min(draws[-1], _FAR * np.quantile(draws, 0.95)))  # few far out do not press the rest
    far = not math.isfinite(observed) or observed > _FAR * span
    end, most = 1.0, span if far else max(span, observed)
    if most > 0.0:  # one digit, and no smaller
        size = 10.0 ** math.floor(math.log10(most))
        end = next(k * size for k in (1.0, 2.0, 4.0, 6.0, 8.0, 10.0) if k * size >= most * (1 - 1e-12))
    ranked = audit.correction == "westfall_young"
    limit = pictures.critical(drawn, audit.alpha) if ranked else math.inf
    # Where the p-value of the whole is not that rank, the labels may lie on the other side.
    stands = limit <= end and (observed > limit) == audit.rejected
    reached = pvalues.count(drawn, observed, "greater")
    rank = (1 + reached) / (1 + len(drawn))
    label = (
        f"Strongest evidence of {len(drawn):,} draws: median "
        f"{number(float(np.median(draws)))}, largest {number(float(draws[-1]))}; of the observed "
        f"{outcomes_called(audit)} {number(observed)}, which {reached:,} reach."
    )
    return SimpleNamespace(
        drawing=_evidence(audit, draws, limit if stands else None, end, far, label),
        far=far,
        reached=reached,
        draws=len(drawn),
        beyond=len(drawn) - int(np.count_nonzero(draws <= end)),
        ranked=ranked,
        doubled=audit.pvalue > (1.0 + 1e-9) * rank,
        settled=audit.impossible > 0 and audit.pvalue < (1.0 - 1e-9) * rank,
    )


def _evidence(
    audit: Audit, draws: np.ndarray, limit: float | None, end: float, far: bool, label: str
) -> Drawing:
    size = Size("chance", 342, 220, 16, 326, 34, 180, 180)
    drawing = Drawing(size, label)
    share = _ROOM if far else 1.0

    def x(value: float) -> float:
        return size.x(share * value / end)

    counts, edges = np.histogram(draws, bins=_BINS, range=(0.0, end))
    for count, (left, right) in zip(counts.tolist(), pairwise(edges.tolist()), strict=True):
        if count:
            drawing.box("bar", x(left), size.y(count / max(counts)), x(right), size.bottom)
    drawing.path("axis", f"M{size.left} {size.bottom}H{x(end)}")
    if far:
        drawing.path("axis", f"M{x(end)} {size.bottom}h5l3 -6l4 12l3 -6H{size.right}")
    for k in range(5):
        drawing.text(x(end * k / 4), size.bottom + 16, number(end * k / 4), "middle")
    observed = size.x((1.0 + _ROOM) / 2) if far else x(audit.statistic)
    if limit is not None:
        drawing.path("threshold", f"M{x(limit)} {size.top - 2}V{size.bottom}")
        middle = min(max(x(limit), _NAME / 2), size.width - _NAME / 2)
        drawing.text(middle, size.top - 6, "rejects beyond", "middle")
    colour = "bad" if audit.rejected else "ok"
    drawing.path(f"labels {colour}", f"M{observed} {size.top - 2}V{size.bottom}")
    anchor = "end" if observed > 250 else "start" if observed < 90 else "middle"
    label = f"your {outcomes_called(audit)}: {number(audit.statistic)}"
    drawing.text(observed, size.top - 22, label, anchor, "strong")
    drawing.text(size.width / 2, size.bottom + 34, "strongest evidence of any check", "middle", "lab")
    return drawing
