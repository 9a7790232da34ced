"""Where a model is wrong at least: places on the reliability diagram."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from caltest._arguments import OneOf, Whole, arguments, axes
from caltest._visible import quoted
from caltest.exceptions import InputError
from caltest.plots.display import (
    BLACK,
    BY_SIDE,
    CLAUSE,
    FAINT,
    OUTSIDE,
    ResultDisplay,
    heading,
    is_narrow,
    legend_below,
    lettering,
    reliability_axes,
    shade,
)
from caltest.text.numbers import confidence_text, points

if TYPE_CHECKING:
    from typing import Self

    from matplotlib.axes import Axes

    from caltest.bounds import MiscalibrationBounds

_NAMED = 5  # places of a side
_LEAST_SHARE, _NEAR = 0.01, 1.5  # bins with less of the rows, further away, need not be on the axes
_TOO = {"over": "too high", "under": "too low"}
_COLOURS = {"over": "orange", "under": "blue"}
_LINE: dict[str, Any] = {"linewidth": 3.5, "solid_capstyle": "butt", "zorder": 5}


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
    >>> display = caltest.BoundsDisplay.from_result(bounds)
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

    @classmethod
    @arguments(ax=axes)
    def from_result(
        cls, result: MiscalibrationBounds, *, view: int = 0, ax: Axes | Sequence[Axes] | None = None
    ) -> Self:
        """Draw bounds: ``result`` and ``view`` as above, ``ax`` as in ``plot``."""
        return cls(result, view).plot(ax)

    def _grid(self) -> dict[str, Any]:
        found = sum(side.found for side in self.result.views[self.view].sides)
        return {"figsize": (6.2, 6.6 + 0.8 * found)}

    def _key(self) -> str:
        found = [each.side for each in self.result.views[self.view].sides if each.found]
        named = [f"{_COLOURS[side]}: {_TOO[side]}" for side in found]
        return ", ".join([*named, "line: bound"] if named else ["circles: 15 bins"])

    def _draw(self, axes: list[Any], *, new: bool) -> None:
        (ax,), view = axes, self.result.views[self.view]
        narrow = is_narrow(ax)
        predicted = f"predicted probability that {lettering(view.event, CLAUSE)}"
        bins = np.array([view.curve.predicted, view.curve.observed])
        filled = np.array(view.curve.rows) >= _LEAST_SHARE * self.result.n_samples
        filled |= np.ptp(bins[0]) <= _NEAR * np.ptp(bins[0][filled])
        shown = [bins[:, filled]]
        for bound in view.sides:
            sign = -1.0 if bound.side == "over" else 1.0
            for place in [each for each in bound.places if each.named][:_NAMED]:
                line = [[x, x + sign * place.somewhere_by] for x in (place.low, place.high)]
                shown.append(np.array([[place.predicted, place.observed], *line]).T)
        x, y = np.concatenate(shown, axis=1)
        reliability_axes(ax, predicted, "observed share", x, x, y.clip(0.0, 1.0), few=narrow)
        (left, right), (low, high) = ax.get_xlim(), ax.get_ylim()
        inside = (left <= bins[0]) & (bins[0] <= right) & (low <= bins[1]) & (bins[1] <= high)
        look = {"markerfacecolor": "white", "markeredgecolor": FAINT, "markersize": 5.5, "zorder": 4}
        label = "15 bins of equal width"
        if not inside.all():
            label += f", of which {np.count_nonzero(~inside)} with few rows are beyond the axes"
        ax.plot(*bins[:, inside], "o", clip_on=False, label=label, **look)
        lines = []
        for bound in view.sides:
            colour, too = BY_SIDE[bound.side], _TOO[bound.side]
            every = [place for place in bound.places if place.named]
            if bound.found:
                least = "≥" if narrow else "predictions are at least"
                by = f"{least} {points(bound.bound)}" if bound.bound else "predictions are"
                lines.append(f"some {by} {too}")
                if every and 0.0 < every[0].somewhere_by < bound.bound and not narrow:
                    lines[-1] += f",\nin the worst range alone at least {points(every[0].somewhere_by)}"
            some = "" if len(every) <= _NAMED else f" ({_NAMED} of {len(every)} ranges)"
            title: str | None = f"range predicted {too}, its mean{some}"
            for place in every[:_NAMED]:
                ends = shade(ax, place.low, place.high, colour)
                for end in (place.low, place.high):
                    ax.axvline(end, color=colour, alpha=0.45, linewidth=0.6, zorder=1)
                if place.somewhere_by > 0.0:
                    shift = -place.somewhere_by if bound.side == "over" else place.somewhere_by
                    ax.plot(ends, [end + shift for end in ends], **_LINE, color=colour)
                mark = OUTSIDE | {
                    "color": colour,
                    "markeredgecolor": BLACK,
                    "markersize": 6.5,
                    "linestyle": "none",
                }
                ax.plot(
                    [place.predicted], [place.observed], zorder=6, clip_on=False, label=title, **mark
                )
                title = None
            if every and every[0].somewhere_by > 0.0:
                beyond = "below" if bound.side == "over" else "above"
                label = f"somewhere in the range, the true probability is {beyond} this line"
                ax.plot([], [], **_LINE, color=colour, label=label)
        sure = f"with {confidence_text(self.result.confidence)} confidence:"
        lines = lines or ["the scan shows no error"]
        heading(ax, f"n = {self.result.n_samples:,}, {sure}", *lines)
        legend_below(ax)
