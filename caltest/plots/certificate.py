"""How far a model's statements can be from the truth: bands around the diagonal."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from caltest._arguments import OneOf, arguments, axes, choose
from caltest.plots.display import (
    AS_PREDICTED,
    BLUE,
    BY_SIDE,
    CLAUSE,
    DASHED,
    FAINT,
    INSIDE,
    LEAST_WIDTH,
    NARROW_BAND,
    OUTSIDE,
    WIDE_BAND,
    ResultDisplay,
    heading,
    is_narrow,
    legend_below,
    lettering,
    reliability_axes,
    shade,
    tidy,
)
from caltest.text.bounds import at_most
from caltest.text.numbers import confidence_text

if TYPE_CHECKING:
    from typing import Self

    from matplotlib.axes import Axes

    from caltest.bounds import Certificate

Array: TypeAlias = NDArray[np.float64]
Against: TypeAlias = Literal["scores", "rows"]

_TAIL = 0.005  # share of the rows on either side that need not be on the axes
_LEAST_BOX = 0.006  # wide, so that it can be seen


@arguments(result=OneOf("caltest.bounds:Certificate", "give what caltest.certificate returns"))
@dataclass(frozen=True, eq=False)
class CertificateDisplay(ResultDisplay):
    """Plot a certificate: how far the true event rates can be from the predicted ones.

    Make it with ``from_result``.

    The band is grey, and the two dotted lines mark the certified distance. Ranges proved to be
    miscalibrated are shaded; ranges in which isotonic bounds cross are hatched and have no band.
    Points are the observed rates of the bins, as filled diamonds where the band excludes the
    diagonal. For the isotonic method a line shows the isotonic regression.

    Parameters
    ----------
    result
        What :func:`caltest.certificate` returned.
    against
        "scores" (default): the reliability diagram, with the band around its diagonal. "rows": the
        deviation from the diagonal in points, with rows side by side in the order of their scores,
        which spreads out scores that crowd near 1.

    Raises
    ------
    InputError
        If there is no such ``against``.

    Examples
    --------
    >>> import caltest, matplotlib.pyplot as plt
    >>> digits = caltest.datasets.load_digits_predictions("naive_bayes")
    >>> found = caltest.certificate(digits.probs, digits.labels)
    >>> display = caltest.CertificateDisplay.from_result(found)
    >>> display.ax_.get_xlabel()
    'predicted probability that the top class is right'
    >>> plt.close(display.figure_)
    """

    result: Certificate
    against: Against = "scores"

    def __post_init__(self) -> None:
        choose("axis", self.against, {"scores": True, "rows": True})

    @classmethod
    @arguments(ax=axes)
    def from_result(
        cls,
        result: Certificate,
        *,
        against: Against = "scores",
        ax: Axes | Sequence[Axes] | None = None,
    ) -> Self:
        """Draw a certificate: ``result`` and ``against`` as above, ``ax`` as in ``plot``."""
        return cls(result, against).plot(ax)

    def _grid(self) -> dict[str, Any]:
        return {"figsize": (6.2, 7.4) if self.against == "scores" else (7.6, 5.6)}

    def _key(self) -> str:
        if self.result.crossings:
            return "hatched: bounds cross"
        return f"grey: {confidence_text(self.result.confidence)} band, dotted: the distance"

    def _draw(self, axes: list[Any], *, new: bool) -> None:
        (ax,), c = axes, self.result
        by_score, bins = self.against == "scores", c.method == "bins"
        what = "mean probability of each bin" if bins else "probability at every score"
        band = f"{what}, {confidence_text(c.confidence)} band"
        event = f"that {lettering(c.event, CLAUSE)}"
        ends = np.array([0.0, 1.0])
        if by_score:
            axis = f"probability {event}"
            share = np.cumsum(c.counts) / c.n_samples  # cells with few rows at the ends are beyond
            seen = np.ones(len(share), bool) if bins else (share > _TAIL) & (share < 1.0 - _TAIL)
            seen |= not seen.any()
            heights = np.concatenate([each[seen] for each in (c.lower, c.upper, c.estimates)])
            inside = c.predicted[seen], np.array([c.starts[0], c.ends[-1]]), heights.clip(0.0, 1.0)
            few = is_narrow(ax)
            reliability_axes(ax, f"predicted {axis}", axis, *inside, label=AS_PREDICTED, few=few)
            _draw_distance(ax, c, ends)
            _shade(ax, c, ends, ends)
            left, right, low, high, x, y = c.starts, c.ends, c.lower, c.upper, c.predicted, c.estimates
        else:
            ax.plot(ends, np.zeros(2), **DASHED, zorder=4, label=AS_PREDICTED)
            _draw_distance(ax, c, np.zeros(2), 100.0)
            ax.set_xlim(-0.02, 1.02)
            ax.set_xlabel("share of the rows, from the smallest score to the largest")
            ax.set_ylabel(f"probability {event}\nless the predicted one, points")
            tidy(ax, "both")
            right = np.cumsum(c.counts) / c.n_samples
            left = np.r_[0.0, right[:-1]]
            _shade(
                ax,
                c,
                np.stack([c.starts, c.ends], axis=1).ravel(),
                np.stack([left, right], axis=1).ravel(),
            )
            low, high = (100.0 * (each - c.predicted) for each in (c.lower, c.upper))
            x, y = (left + right) / 2.0, 100.0 * (c.estimates - c.predicted)
        if bins:
            _draw_bins(ax, c, [left, right, low, high], [x, y], band)
        else:
            if by_score:
                ticks = np.unique(np.r_[c.starts, c.ends])
                lower, upper = c.band(ticks)
                if len(ticks) > 1:  # between: the lower bound of the one before, the upper of the next
                    steps = [
                        np.repeat(ticks, 2)[1:-1],
                        np.repeat(lower[:-1], 2),
                        np.repeat(upper[1:], 2),
                    ]
                else:
                    steps = [ticks, lower, upper]
                    ax.vlines(*steps, color=WIDE_BAND, linewidth=9.0, zorder=1, label=band)
            else:  # the bounds are level within a cell, and its scores rise along it
                scores = np.stack([c.starts, c.ends], axis=1)
                within = 100.0 * (np.stack(c.band(scores.mean(axis=1)))[:, :, None] - scores)
                if (
                    not c.crossings
                ):  # less than the cell allows is certified of the scores that are there
                    within = within.clip(-100.0 * c.distance, 100.0 * c.distance)
                steps = [np.stack([left, right], axis=1).ravel(), *within.reshape(2, -1)]
            possible = steps[1] <= steps[2]  # a lower bound above the upper one bounds no band
            if len(steps[0]) > 1 and possible.any():
                look = {"color": WIDE_BAND, "linewidth": 0.0, "zorder": 1, "label": band}
                ax.fill_between(*steps, where=possible, **look)
                for line in steps[1:]:
                    shown = np.where(possible, line, np.nan)
                    ax.plot(steps[0], shown, color=NARROW_BAND, linewidth=1.0, zorder=2)
            look = {"linewidth": 1.6 if by_score else 1.2, "marker": "o" if len(x) == 1 else None}
            ax.plot(x, y, color=BLUE, zorder=5, label="isotonic regression", **look)
        if c.crossings:
            claim = "nothing certified: the isotonic bounds cross"
        elif bins:
            count = f"{len(c.counts)} bins" if len(c.counts) > 1 else "one bin"
            claim = f"within ±{at_most(c.distance)} points on average over each of {count}"
        else:
            claim = f"within ±{at_most(c.distance)} points at every score seen"
            claim += ", if the curve never falls"
        sure = f"n = {c.n_samples:,}, with {confidence_text(c.confidence)} confidence"
        heading(ax, f"{sure}:", claim)
        legend_below(ax, 2)


def _draw_distance(ax: Any, c: Certificate, y: Array, scale: float = 1.0) -> None:
    """Draw the certified distance on both sides of the diagonal."""
    for sign in () if c.crossings else (-1.0, 1.0):
        label = f"±{at_most(c.distance)} points" if sign > 0.0 else None
        look = {"color": FAINT, "linewidth": 1.3, "linestyle": ":", "zorder": 4, "label": label}
        ax.plot([0.0, 1.0], y + sign * scale * c.distance, **look)


def _draw_bins(ax: Any, c: Certificate, box: list[Array], point: list[Array], label: str) -> None:
    from matplotlib.collections import PolyCollection

    left, right, low, high = box
    missing = np.maximum(0.0, _LEAST_BOX * np.ptp(ax.get_xlim()) - (right - left)) / 2.0
    left, right = left - missing, right + missing
    corners = np.stack([left, low, left, high, right, high, right, low], axis=1).reshape(-1, 4, 2)
    boxes = PolyCollection(list(corners), facecolor=WIDE_BAND, edgecolor=NARROW_BAND, linewidth=0.8)
    boxes.set(zorder=1, label=label)
    ax.add_collection(boxes)
    ax.autoscale_view()
    outside = (c.lower > c.predicted) | (c.upper < c.predicted)
    for chosen, look, more in ((~outside, INSIDE, ""), (outside, OUTSIDE, ", proved wrong")):
        if chosen.any():
            size = {"linestyle": "none", "markersize": 6, "zorder": 5}
            ax.plot(
                *(each[chosen] for each in point),
                **size,
                **look,
                label=f"observed share of the bin{more}",
            )


def _shade(ax: Any, c: Certificate, scores: Array, places: Array) -> None:
    """Shade the ranges proved wrong, and hatch where bounds cross: there, no side can be named."""
    for kind, title in (("over", "proved too high"), ("under", "proved too low")):
        label: str | None = title
        ranges = [each for each in c.miscalibrated if each.direction == kind and not c.crossings]
        for start, end in _merged(ranges, scores, places):
            shade(ax, start, end, BY_SIDE[kind], label)
            label = None
    crossing: str | None = "bounds cross"
    for start, end in _merged(c.crossings, scores, places):
        look = {"facecolor": "none", "edgecolor": FAINT, "hatch": "///", "linewidth": 0.0, "zorder": 0}
        ax.axvspan(start, end, label=crossing, **look)
        crossing = None


def _merged(ranges: Sequence[Any], scores: Array, places: Array) -> list[list[float]]:
    """Return ranges of scores as they lie along the axis, those as one between which no gap is seen."""
    merged: list[list[float]] = []
    for each in ranges:
        start, end = np.interp([each.low, each.high], scores, places).tolist()
        if merged and start - merged[-1][1] < LEAST_WIDTH:
            merged[-1][1] = max(merged[-1][1], end)
        else:
            merged.append([start, end])
    return merged
