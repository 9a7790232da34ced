"""Marks: what a picture shows, in a few columns. Displays draw them with matplotlib, reports as SVG."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, NamedTuple, TypeAlias

import numpy as np

from caltest.pictures.axes import Array

#: line: through points; points; intervals: upright, from y to end; bars: lying, from x to end;
#: area: between y and end; band: of points, from y to end; rows: how many there are between edges x;
#: text: at x and y, shares of the plot, shifted by end, pixels; grid: that of the axes.
Kind: TypeAlias = Literal["line", "points", "intervals", "bars", "area", "band", "rows", "text", "grid"]


class Mark(NamedTuple):
    """Marks of one kind and class of style, in values of the axes; ``end`` is where each ends."""

    kind: Kind
    style: str = ""
    x: Any = ()
    y: Any = ()
    end: Any = ()
    label: str = ""


Marks: TypeAlias = list[Mark]

GRID = Mark("grid", "grid")
DIAGONAL = Mark("line", "diag", (0.0, 1.0), (0.0, 1.0))
OK, BAD = "ok", "bad"  # a hollow circle; a filled diamond: shown to be wrong


def told_apart(x: Any, y: Any, bad: Any, kind: Kind = "points", end: Any = None) -> Marks:
    """Return marks in two classes, of what is shown to be wrong and of the rest; none without marks."""
    x, y, bad = np.asarray(x), np.asarray(y), np.asarray(bad, bool)
    ends = y if end is None else np.asarray(end)
    return [
        Mark(kind, style, x[chosen], y[chosen], ends[chosen])
        for style, chosen in ((OK, ~bad), (BAD, bad))
        if chosen.any()
    ]


def reliability(predicted: Any, observed: Any, band: Sequence[Any], bad: Any) -> Marks:
    """Return a reliability diagram of bins: their band, the diagonal, and points."""
    return [
        Mark("band", "band", predicted, *band),
        GRID,
        DIAGONAL,
        *told_apart(predicted, observed, bad),
    ]


def cumulative(shares: Any, differences: Any, band: Any, *labels: str) -> Marks:
    """Return a cumulative difference: its path, from 0, and the band that chance alone stays in."""
    of_band, of_path = labels or ("", "")
    ends, reach = (shares, np.asarray(band)) if np.ndim(band) else ((0.0, 1.0), np.full(2, band))
    return [
        Mark("area", "band", ends, -reach, reach, of_band),
        GRID,
        Mark("line", "zero", (0.0, 1.0), (0.0, 0.0)),
        Mark("line", "line", shares, differences, label=of_path),
    ]


def over_time(times: Any, predicted: Any, observed: Any, kaplan_meier: Any, *labels: str) -> Marks:
    """Return predicted and observed chances of an event until every time, where these are known."""
    names, found = labels or ("", "", ""), [GRID]
    curves = ("line", observed), ("thin", kaplan_meier), ("diag", predicted)
    for (style, curve), label in zip(curves, names, strict=True):
        values = np.array(curve, dtype=np.float64)  # not a number where it is not known
        known = np.isfinite(values)
        at, there = (np.append(0.0, np.asarray(each)[known]) for each in (times, values))
        found.append(Mark("line", style, at, there, label=label))
    return found


def critical(draws: Any, alpha: float) -> float:
    """Return what one more of these B draws exceeds with probability at most alpha: the k-th largest.

    k = ⌊alpha (B + 1)⌋: p = (1 + #{draws at least as large})/(B + 1) is at most alpha beyond it alone.
    Infinite where p is above alpha whatever is observed, as draws are too few.
    """
    count = len(draws)
    k = np.count_nonzero(np.arange(1, count + 1) / (count + 1) <= alpha)  # as p-values are compared
    return float(np.sort(draws)[-k]) if k else np.inf


def path_of(scores: Array, labels: Any, weights: Array) -> tuple[Array, Array, Array]:
    """Return the path of cumulative differences: without its start, a place a distinct score.

    These are the scores (K,), in increasing order, the share of the rows up to each, as rows count, and
    the sum of predicted less observed of these rows, divided by that of all weights.
    """
    order = np.argsort(scores, kind="stable")
    ordered, counted = scores[order], weights[order]
    ends = np.append(np.flatnonzero(np.diff(ordered)), len(scores) - 1)
    sums = np.stack([counted, counted * (ordered - labels[order])]).cumsum(axis=1)[:, ends]
    return ordered[ends], *(sums / weights.sum())
