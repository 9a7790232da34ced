"""The pictures of an audit as marks on axes, which reports and displays draw."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from types import SimpleNamespace
from typing import Any, TypeAlias

import numpy as np

from caltest import pictures, pvalues
from caltest._numbers import number
from caltest.auditing.result import Audit
from caltest.auditing.views import Cumulative, Curves, Part, PitHistogram, View
from caltest.lenses import within
from caltest.pictures import DIAGONAL, GRID, Axis, Mark, Picture, told_apart

Shown: TypeAlias = Sequence[View | Part]  # views and parts of which an error is shown


# ------------------------------------------------------------------ of distributions and times

#: What the axes of a cumulative difference are, of probabilities and of distributions of numbers.
OF_ROWS = "share of the rows, from the lowest prediction", "points of all rows"
OF_LEVELS = "level of the predicted quantile", "stated − observed, points of the rows"


def cumulative(drawn: Cumulative, of: tuple[str, str] = OF_ROWS) -> Picture:
    """Draw the cumulative difference of a view, and the band that chance alone stays in."""
    values = (0.0, *drawn.difference)
    widest = max(drawn.bands or (drawn.band,))
    y = pictures.axis_of_points(1.1 * min(*values, -widest), 1.1 * max(*values, widest))
    x = pictures.axis_of_probabilities([0.0, 1.0])
    bands = drawn.bands and (drawn.bands[0], *drawn.bands)
    marks = pictures.cumulative((0.0, *drawn.share), values, bands or drawn.band)
    return Picture(marks, x, y, *of)


def pit(drawn: PitHistogram, outcomes: str) -> Picture:
    """Draw in which tenths, or at which ranks, of what was predicted outcomes lie."""
    count = len(drawn.share)
    edges, even = np.linspace(0.0, 1.0, count + 1), 1.0 / count
    x = pictures.axis_of_probabilities([0.0, 1.0])
    of_x = f"where {outcomes} lie in what was predicted (PIT)"
    if drawn.kind == "rank":
        ends = tuple((float(k), label) for k, label in ((0, "lowest"), (0.5, "middle"), (1, "highest")))
        x, of_x = Axis(0.0, 1.0, ends), f"rank of {outcomes} among what was predicted, {count} bins"
    y = pictures.axis_of_probabilities([0.0, 1.15 * max(*drawn.share, drawn.high or even)])
    marks, outside = [GRID], np.array(drawn.outside)
    for style, chosen in (("bar", ~outside), ("bar bad", outside)):
        marks.append(Mark("columns", style, edges, np.where(chosen, drawn.share, 0.0)))
    if drawn.low is not None and drawn.high is not None:
        marks.append(Mark("area", "over", (0.0, 1.0), (drawn.low,) * 2, (drawn.high,) * 2))
    marks.append(Mark("line", "diag", (0.0, 1.0), (even, even)))
    return Picture(marks, x, y, of_x, f"share of {outcomes}")


def coverage_of(audit: Audit, view: View) -> list[View]:
    """Return what is stated of the same numbers and rows as a view: its intervals, or else all."""
    entry, _ = within(view.lens)
    beside = [
        each
        for each in audit.views
        if each.low is not None and each.group == view.group and within(each.lens)[0] == entry
    ]
    intervals = [each for each in beside if within(each.lens)[1].startswith("interval:")]
    return sorted(intervals if len(intervals) > 1 else beside, key=lambda each: each.predicted or 0.0)


def coverage(views: Sequence[View], shown: Shown, outcomes: str) -> Picture:
    """Draw how often what was stated of numbers was observed: a dot each, with its interval."""
    x, y = [view.predicted or 0.0 for view in views], [view.observed or 0.0 for view in views]
    axis = pictures.axis_of_probabilities([0.0, 1.0])
    marks = [GRID, DIAGONAL, Mark("line", "thin", x, y)]
    marks += pictures.with_intervals(
        x, y, [each.true_rates for each in views], [v in shown for v in views]
    )
    of_x, of_y = "stated probability", "observed share"
    if all(":interval:" in f":{view.lens.split('/')[-1]}" for view in views):
        of_x, of_y = "stated probability of the interval", f"share of {outcomes} in it"
        marks.append(Mark("text", "lab", 0.0, 1.0, (8, 16), "above: too wide"))
        marks.append(Mark("text", "lab", 1.0, 0.0, (-8, -10), "below: too narrow"))
    return Picture(marks, axis, axis, of_x, of_y)


def over_time(c: Curves, unit: str = "") -> Picture:
    """Draw predicted and observed chances of the event over time."""
    marks = pictures.over_time(c.times, c.predicted, c.observed, c.kaplan_meier)
    y = pictures.axis_of_probabilities([0.0, *(value for mark in marks for value in mark.y)])
    of_x = f"time, {unit}" if unit else "time"
    return Picture(marks, pictures.axis_of_times(c.times[-1]), y, of_x, "chance of the event")


# ------------------------------------------------------------------ errors of views


_APART = 0.13  # of an axis: labels that do not touch


def ticks(axis: Axis, limits: tuple[float, float] | None) -> tuple[tuple[float, str], ...]:
    """Return the labels of an axis, those of the limits first, and of others what has room beside them.

    Limits that are close to each other have one label.
    """
    if limits is None:
        return axis.marks
    ratio = limits[0] > 0.0
    texts = [f"{end:.3g}×" if ratio else f"{100.0 * end:+.3g}".replace("-", "−") for end in limits]
    ends = tuple(zip(limits, texts, strict=True))
    if axis.at(limits[1]) - axis.at(limits[0]) < _APART:
        ends = ((1.0 if ratio else 0.0, texts[1] if ratio else f"±{texts[1][1:]}"),)
    others = [
        (value, label)
        for value, label in axis.marks
        if all(abs(axis.at(value) - axis.at(end)) >= _APART for end, _ in ends)
    ]
    return tuple(sorted([*ends, *others]))


def slices(t: Any) -> Picture:
    """Draw the errors of a table of views: their own intervals thick, all together thin."""
    marks, count = [Mark("line", "zero", (t.zero, t.zero), (0.5, 0.5 - len(t.rows)))], len(t.rows)
    for row, place in zip(t.rows, range(0, -count, -1), strict=True):
        low, value, high = row.bar
        kind, own = "bad" if row.bad else "ok", getattr(row, "own", None) or (low, high)
        for style, ends in (("joint", (low, high)), ("own", own)):
            marks.append(Mark("bars", f"{style} {kind}", ends[:1], (place,), ends[1:]))
        marks += told_apart([value], [place], [row.bad])
        for end in () if t.corridor is None or getattr(row, "pointless", None) else t.corridor:
            marks.append(Mark("line", "limit", (end, end), (place + 0.5, place - 0.5)))
        at = (place - 0.5 + count) / count
        marks.append(Mark("text", kind, 1.0, at, (6, 4), row.error))
    names = tuple((-float(k), row.name.short) for k, row in enumerate(t.rows))
    of_x = f"◂ {t.ends[0]}    {t.head[:1].lower()}{t.head[1:]}    {t.ends[1]} ▸"
    x = replace(t.axis, marks=ticks(t.axis, t.corridor))
    return Picture(marks, x, Axis(0.5 - count, 0.5, names), of_x)


# ------------------------------------------------------------------ the evidence among that of draws

_BINS, _FAR = 30, 2.0  # times what most draws reach, which the axis then leaves out
_ROOM = 0.82  # of its width is for the draws, if the observed value is far away from them


def histogram(audit: Audit, outcomes: str) -> SimpleNamespace | None:
    """Draw the largest evidence of every draw, and of the labels; None where it is not known.

    Of it: ``picture``, ``label``, ``reached`` (draws as large as the labels), ``draws``, ``beyond``
    (draws off the axis), ``far`` (whether the labels are), and whether the p-value of the whole is that
    rank (``ranked``), larger (``doubled``: a check of two sides, or that few clusters carry) or smaller
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
        f"{outcomes} {number(observed)}, which {reached:,} reach."
    )
    return SimpleNamespace(
        picture=_evidence(audit, outcomes, draws, limit if stands else None, end, far),
        label=label,
        far=far,
        reached=reached,
        draws=len(drawn),
        beyond=len(drawn) - int(np.count_nonzero(draws <= end)),
        ranked=ranked,
        doubled=audit.pvalue > (1.0 + 1e-9) * rank,
        settled=audit.impossible > 0 and audit.pvalue < (1.0 - 1e-9) * rank,
    )


def _evidence(
    audit: Audit, outcomes: str, draws: np.ndarray, limit: float | None, end: float, far: bool
) -> Picture:
    counts, edges = np.histogram(draws, bins=_BINS, range=(0.0, end))
    ticks = tuple((end * k / 4, number(end * k / 4)) for k in range(5))
    x, y = Axis(0.0, end / _ROOM if far else end, ticks), Axis(0.0, 1.0, ())
    marks = [GRID, Mark("columns", "bar", edges, counts / max(counts)), _level("axis", 0.0, end)]
    if far:  # the axis is broken
        step = 0.015 * end
        zigzag = [end, end + step, end + 2 * step, end + 3 * step, x.high]
        marks.append(Mark("line", "axis", zigzag, (0.0, 0.0, 0.06, 0.0, 0.0)))
    observed = end * (1.0 + 1.0 / _ROOM) / 2 if far else audit.statistic
    for style, at, text, up in (
        ("threshold", limit, "rejects beyond", -6),
        (f"labels {'bad' if audit.rejected else 'ok'}", observed,
         f"your {outcomes}: {number(audit.statistic)}", -22),
    ):  # fmt: skip
        if at is not None:
            marks.append(Mark("line", style, (at, at), (0.0, 1.0)))
            marks.append(Mark("text", "strong" if up == -22 else "", x.at(at), 1.0, (0, up), text))
    return Picture(marks, x, y, "strongest evidence of any check")


def _level(style: str, start: float, end: float) -> Mark:
    return Mark("line", style, (start, end), (0.0, 0.0))
