"""Where the marks of the report's pictures go: plain numbers, which templates draw as SVG."""

from __future__ import annotations

import math
from types import SimpleNamespace

import numpy as np

from caltest import pvalues
from caltest.auditing.result import Audit, Reliability
from caltest.text.numbers import number, probability_axis

_SIDE, _LEFT, _TOP = 252.0, 52.0, 12.0  # of the square of a reliability diagram
_BINS, _WIDE, _HIGH = 30, 300.0, 150.0  # of the histogram
_ROOM = 0.82  # of its width is for the draws, if the observed value is far away from them
_NAME, _GAP = 92.0, 3.0  # of "rejects beyond", at most, and to the line beside it
_EDGE = (-10.0, 316.0)  # of the picture
_FAR = 2.0  # times what most draws reach, which the axis then leaves out


def diagram(reliability: Reliability) -> SimpleNamespace:
    """Lay a reliability diagram out, on axes no longer than its points need.

    Of it: ``x_ticks`` and ``y_ticks``, places and labels; ``low`` and ``high``, the first and the last
    label; ``band``, its corners as SVG writes them; ``points``, one a bin: its place, the ends of its
    band, and whether it is ``outside``, as so many are.
    """
    r = reliability
    marks = probability_axis(min(*r.says, *r.share, *r.low), max(*r.says, *r.share, *r.high))
    low, high = marks[0], marks[-1]

    def x(value: float) -> float:
        return round(_LEFT + _SIDE * (value - low) / (high - low), 2)

    def y(value: float) -> float:
        return round(_TOP + _SIDE * (high - value) / (high - low), 2)

    digits = max(0, -math.floor(math.log10(marks[1] - low) + 1e-6) - 2)
    labels = [f"{100.0 * mark:.{digits}f}%" for mark in marks]
    bins = list(zip(r.says, r.share, r.low, r.high, strict=True))
    band = [f"{x(s)},{y(h)}" for s, _, _, h in bins] + [f"{x(s)},{y(b)}" for s, _, b, _ in bins[::-1]]
    points = [
        SimpleNamespace(x=x(s), y=y(t), low=y(b), high=y(h), outside=not b <= t <= h)
        for s, t, b, h in bins
    ]
    return SimpleNamespace(
        x_ticks=[(x(mark), label) for mark, label in zip(marks, labels, strict=True)],
        y_ticks=[(y(mark), label) for mark, label in zip(marks, labels, strict=True)],
        band=" ".join(band),
        points=points,
        outside=sum(point.outside for point in points),
        low=labels[0],
        high=labels[-1],
    )


def histogram(audit: Audit) -> SimpleNamespace | None:
    """Lay out the largest evidence of every draw, and of the labels; None where it is not known."""
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
    width = _WIDE * (_ROOM if far else 1.0)
    at = round(_WIDE * (0.5 + _ROOM / 2) if far else width * observed / end, 2)
    counts, edges = np.histogram(draws, bins=_BINS, range=(0.0, end))
    bars = [
        SimpleNamespace(
            x=round(width * left / end, 2),
            y=round(_HIGH - _HIGH * count / max(counts), 2),
            width=round(width / _BINS, 2),
            height=round(_HIGH * count / max(counts), 2),
        )
        for count, left in zip(counts.tolist(), edges[:-1].tolist(), strict=True)
        if count
    ]
    # The draw that the evidence of the labels must exceed for a rejection, if it is ranked at all.
    ranked, limit = audit.correction == "westfall_young", None
    allowed = math.floor(audit.alpha * (len(drawn) + 1) * (1.0 + 1e-12))
    if ranked and allowed and np.sort(drawn)[-allowed] <= end:
        limit = round(width * float(np.sort(drawn)[-allowed]) / end, 2)
    reached = pvalues.count(drawn, observed, "greater")
    rank = (1 + reached) / (1 + len(drawn))
    return SimpleNamespace(
        bars=bars,
        ticks=[(round(width * k / 4, 2), number(end * k / 4)) for k in range(5)],
        observed=at,
        threshold=limit,
        named=_named(limit or 0.0, at),
        far=far,  # beyond the axis, which is then broken
        value=number(observed),
        median=number(float(np.median(draws))),
        most=number(float(draws[-1])),
        reached=reached,
        draws=len(drawn),
        beyond=len(drawn) - int(np.count_nonzero(draws <= end)),
        # Whether the p-value of the whole is that rank; or larger, as that of a check of two sides is;
        # or smaller, for a label of probability 0 came true.
        ranked=ranked,
        doubled=audit.pvalue > (1.0 + 1e-9) * rank,
        settled=audit.impossible > 0 and audit.pvalue < (1.0 - 1e-9) * rank,
    )


def _named(limit: float, observed: float) -> float:
    """Return where the middle of the threshold's name is: near it, and off the line of the labels."""
    half = _NAME / 2
    middle = min(max(limit, half + _EDGE[0]), _EDGE[1] - half)
    if abs(middle - observed) >= half + _GAP:
        return middle
    left, right = observed - half - _GAP, observed + half + _GAP
    before = observed >= limit  # beside the line, on the side of the threshold, if there is room
    return left if (before and left - half >= _EDGE[0]) or right + half > _EDGE[1] else right


def gauge(gap: float | None, over: float | None, under: float | None, scale: float) -> SimpleNamespace:
    """Lay a view's errors out, proved and mean, on a line from −scale to scale that is 160 long."""

    def at(error: float | None) -> float | None:
        return None if error is None else round(80.0 + 74.0 * max(-1.0, min(error / scale, 1.0)), 2)

    return SimpleNamespace(under=at(-under if under else None), over=at(over or None), gap=at(gap))
