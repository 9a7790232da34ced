"""What is proved of a model: where it is wrong, and by how much at least and at most."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeAlias

import numpy as np

from caltest._arguments import OneOf, Whole, arguments, choose
from caltest._numbers import confidence_text, points, probabilities
from caltest._visible import quoted
from caltest.exceptions import InputError
from caltest.pictures import BAD, GRID, LINEAR, Array, Limits, Mark, told_apart
from caltest.plots import canvas
from caltest.plots.canvas import ResultDisplay, draw, heading, lettering
from caltest.text.summaries import at_most

if TYPE_CHECKING:
    from caltest.bounds import Certificate, MiscalibrationBounds
    from caltest.bounds.lower import SideBound


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
_MOST_NAMED = 10  # bins whose mean predictions have room above them
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

    def _key(self) -> str:
        found = [_SIDES[each.side] for each in self.result.views[self.view].sides if each.found]
        named = [f"{side.colour_name}: {side.too}" for side in found]
        return ", ".join([*named, "line: bound"] if named else ["circles: 15 bins"])

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

    def _key(self) -> str:
        return f"grey: {confidence_text(self.result.confidence)} band, dotted: the distance"

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
            if len(x) <= _MOST_NAMED and not canvas.is_narrow(ax):
                means = [each.replace(" − ", "\n− ") for each in probabilities(c.predicted)]
                above = canvas.scale_above(ax, x, means, 2.0)
                above.set_xlabel("mean prediction of each bin", size="small")
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
