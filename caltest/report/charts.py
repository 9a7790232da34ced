"""Where the marks of the report's pictures go: plain numbers, which templates draw as SVG."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from caltest import pvalues
from caltest.auditing.result import Audit, Reliability
from caltest.text.numbers import number

_SIDE, _LEFT, _TOP = 252.0, 52.0, 12.0  # of the square of a reliability diagram
_STEPS = (0.25, 0.2, 0.1, 0.05, 0.02, 0.01, 0.005, 0.002, 0.001, 0.0005, 0.0002, 0.0001)
_MOST_STEPS = 5
_BINS, _WIDE, _HIGH = 30, 300.0, 150.0  # of the histogram
_ROOM = 0.82  # of its width is for the draws, if the observed value is far away from them
_NAME, _GAP = 92.0, 3.0  # of "rejects beyond", at most, and to the line beside it
_EDGE = (-10.0, 316.0)  # of the picture
_FAR = 2.0  # times what most draws reach, which the axis then leaves out


@dataclass(frozen=True)
class Tick:
    """A mark on an axis."""

    at: float
    label: str


@dataclass(frozen=True)
class Point:
    """A bin: where it is, where its band begins and ends, and whether it lies outside."""

    x: float
    y: float
    low: float
    high: float
    outside: bool


@dataclass(frozen=True)
class Diagram:
    """A reliability diagram.

    Attributes
    ----------
    x_ticks, y_ticks
        Marks on the axes.
    band
        Corners of the band, as SVG writes them.
    points
        One a bin.
    outside
        Number of bins outside their band.
    low, high
        Where both axes begin and end, as text.
    """

    x_ticks: tuple[Tick, ...]
    y_ticks: tuple[Tick, ...]
    band: str
    points: tuple[Point, ...]
    outside: int
    low: str
    high: str


@dataclass(frozen=True)
class Bar:
    """A bar of the histogram."""

    x: float
    y: float
    width: float
    height: float


@dataclass(frozen=True)
class Histogram:
    """The largest evidence of every draw, and of the labels.

    Attributes
    ----------
    bars
        Of the draws.
    ticks
        Marks on the axis of evidence.
    observed
        Where the evidence of the labels is.
    threshold
        What the evidence must exceed for a rejection; None if that is not known, or not on the axis.
    named
        Where the middle of the threshold's name is: beside the line of the labels, not across it.
    far
        Whether the labels' evidence is beyond the axis, which is then broken.
    value, median, most
        The evidence of the labels, of the median draw and of the most extreme one, as text.
    reached
        Number of draws with at least the evidence of the labels.
    draws
        Number of draws.
    beyond
        Number of those that are beyond the axis.
    ranked
        Whether the p-value of the whole is the rank of the labels among the draws.
    doubled
        Whether it is larger than that, as the p-value of a check of two sides is.
    settled
        Whether it is smaller than that, for a label of probability 0 came true.
    """

    bars: tuple[Bar, ...]
    ticks: tuple[Tick, ...]
    observed: float
    threshold: float | None
    named: float
    far: bool
    value: str
    median: str
    most: str
    reached: int
    draws: int
    beyond: int
    ranked: bool
    doubled: bool
    settled: bool


@dataclass(frozen=True)
class Gauge:
    """What is proved of a view, and its mean error, on a line from "too little" to "too much".

    Attributes
    ----------
    under, over
        Ends of the bars to the left and to the right of the middle; None for none.
    gap
        Where the mean error is.
    """

    under: float | None
    over: float | None
    gap: float | None


def diagram(reliability: Reliability) -> Diagram:
    """Lay a reliability diagram out, on axes no longer than its points need."""
    r = reliability
    values = np.array([*r.says, *r.share, *r.low, *r.high])
    low, high, step = _axis(float(values.min()), float(values.max()))

    def x(value: float) -> float:
        return round(_LEFT + _SIDE * (value - low) / (high - low), 2)

    def y(value: float) -> float:
        return round(_TOP + _SIDE * (high - value) / (high - low), 2)

    marks = [low + k * step for k in range(round((high - low) / step) + 1)]
    digits = max(0, -math.floor(math.log10(step) + 1e-9) - 2)
    labels = [f"{100.0 * mark:.{digits}f}%" for mark in marks]
    upper = [f"{x(s)},{y(h)}" for s, h in zip(r.says, r.high, strict=True)]
    lower = [f"{x(s)},{y(b)}" for s, b in zip(r.says, r.low, strict=True)]
    points = tuple(
        Point(x(s), y(t), y(b), y(h), not b <= t <= h)
        for s, t, b, h in zip(r.says, r.share, r.low, r.high, strict=True)
    )
    return Diagram(
        tuple(Tick(x(mark), text) for mark, text in zip(marks, labels, strict=True)),
        tuple(Tick(y(mark), text) for mark, text in zip(marks, labels, strict=True)),
        " ".join([*upper, *reversed(lower)]),
        points,
        sum(point.outside for point in points),
        labels[0],
        labels[-1],
    )


def _axis(smallest: float, largest: float) -> tuple[float, float, float]:
    """Return where an axis of probabilities begins and ends, and the distance of its marks."""
    for step in reversed(_STEPS):
        low, high = math.floor(smallest / step + 1e-9), math.ceil(largest / step - 1e-9)
        if high == low:
            low, high = (low, high + 1) if low == 0 else (low - 1, high)
        if high - low <= _MOST_STEPS:
            return low * step, min(high * step, 1.0), step
    return 0.0, 1.0, 0.25


def histogram(audit: Audit) -> Histogram | None:
    """Lay the null distribution out; None where it is not known."""
    drawn = audit.null_distribution
    if drawn is None or not np.isfinite(drawn).any():
        return None
    draws = np.sort(drawn[np.isfinite(drawn)])
    observed, span = audit.statistic, _span(draws)
    far = not math.isfinite(observed) or observed > _FAR * span
    end = _rounded_up(span if far else max(span, observed))
    width = _WIDE * (_ROOM if far else 1.0)
    threshold = _threshold(audit)
    at = round(_WIDE * (0.5 + _ROOM / 2) if far else width * observed / end, 2)
    limit = None if threshold is None or threshold > end else round(width * threshold / end, 2)
    reached = pvalues.count(drawn, observed, "greater")
    rank = (1 + reached) / (1 + len(drawn))
    return Histogram(
        _bars(draws, end, width),
        tuple(Tick(round(width * k / 4, 2), number(end * k / 4)) for k in range(5)),
        at,
        limit,
        _named(limit or 0.0, at),
        far,
        number(observed),
        number(float(np.median(draws))),
        number(float(draws[-1])),
        reached,
        len(drawn),
        len(drawn) - int(np.count_nonzero(draws <= end)),
        audit.correction == "westfall_young",
        audit.pvalue > (1.0 + 1e-9) * rank,
        audit.impossible > 0 and audit.pvalue < (1.0 - 1e-9) * rank,
    )


def _named(limit: float, observed: float) -> float:
    """Return where the middle of the threshold's name is: near it, and off the line of the labels."""
    half = _NAME / 2
    middle = min(max(limit, half + _EDGE[0]), _EDGE[1] - half)
    if abs(middle - observed) >= half + _GAP:
        return middle
    left, right = observed - half - _GAP, observed + half + _GAP
    before = observed >= limit  # beside the line, on the side of the threshold, if there is room
    if (before and left - half >= _EDGE[0]) or right + half > _EDGE[1]:
        return left
    return right


def _span(draws: NDArray[np.float64]) -> float:
    """Return up to where draws, in order, are shown: a few that are far out do not press the rest."""
    return float(min(draws[-1], _FAR * np.quantile(draws, 0.95)))


def _bars(draws: NDArray[np.float64], end: float, width: float) -> tuple[Bar, ...]:
    counts, edges = np.histogram(draws, bins=_BINS, range=(0.0, end))
    scale = _HIGH / max(int(counts.max()), 1)
    return tuple(
        Bar(
            round(width * left / end, 2),
            round(_HIGH - scale * count, 2),
            round(width / _BINS, 2),
            round(scale * count, 2),
        )
        for count, left in zip(counts.tolist(), edges[:-1].tolist(), strict=True)
        if count
    )


def _rounded_up(value: float) -> float:
    """Return a number of one digit, 1, 2, 4, 6 or 8, that is no smaller; 1 if it is 0."""
    if value <= 0.0:
        return 1.0
    size = 10.0 ** math.floor(math.log10(value))
    return next(k * size for k in (1.0, 2.0, 4.0, 6.0, 8.0, 10.0) if k * size >= value * (1 - 1e-12))


def _threshold(audit: Audit) -> float | None:
    """Return the draw that the labels' evidence must exceed for a rejection, if it is ranked at all."""
    if audit.null_distribution is None or audit.correction != "westfall_young":
        return None
    allowed = math.floor(audit.alpha * (len(audit.null_distribution) + 1) * (1.0 + 1e-12))
    if allowed < 1:
        return None
    value = float(np.sort(audit.null_distribution)[-allowed])
    return value if math.isfinite(value) else None


def gauge(gap: float | None, over: float | None, under: float | None, scale: float) -> Gauge:
    """Lay a view's errors out, on a line from −scale to scale that is 160 long."""

    def at(error: float) -> float:
        return round(80.0 + 74.0 * max(-1.0, min(error / scale, 1.0)), 2)

    return Gauge(
        at(-under) if under else None,
        at(over) if over else None,
        None if gap is None else at(gap),
    )
