"""Where a model is wrong at least: places on the reliability diagram."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from caltest._arguments import OneOf, Whole, arguments
from caltest._visible import quoted
from caltest.bounds import MiscalibrationBounds
from caltest.bounds.result import Place, SideBound, ViewBounds
from caltest.exceptions import InputError
from caltest.plots.lettering import CLAUSE, lettering
from caltest.plots.style import BLACK, BLUE, FAINT, PALE, VERMILION
from caltest.text.numbers import confidence_text, points

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_COLOURS = {"over": VERMILION, "under": BLUE}
_TOO = {"over": "too much", "under": "too little"}
_NAMED = 5
_LEAST_WIDTH = 0.008  # of a shaded place, so that it can be seen
_LINE: dict[str, Any] = {"linewidth": 3.5, "solid_capstyle": "butt", "zorder": 5}


@arguments(
    bounds=OneOf(
        "caltest.bounds:MiscalibrationBounds", "give what caltest.miscalibration_bounds returns"
    ),
    view=Whole(0, advice="give the number of one, counted from 0"),
)
@dataclass(frozen=True, eq=False)
class BoundsDisplay:
    """The places where a model is wrong, on its reliability diagram. Make it with `from_bounds`.

    Attributes
    ----------
    bounds
        What is shown.
    view
        Which of its probabilities, counted from 0.
    figure_, ax_
        The picture: the figure and the axes; None before :meth:`plot`.

    Examples
    --------
    >>> import caltest, matplotlib.pyplot as plt
    >>> sure = caltest.simulation.tempered(n_samples=300, temperature=0.4, rng=0)
    >>> found = caltest.miscalibration_bounds(sure.probs, sure.labels, rng=0)
    >>> display = caltest.BoundsDisplay.from_bounds(found)
    >>> display.bounds is found, display.view
    (True, 0)
    >>> plt.close(display.figure_)
    """

    bounds: MiscalibrationBounds
    view: int = 0
    figure_: Figure | None = field(default=None, init=False, repr=False)
    ax_: Axes | None = field(default=None, init=False, repr=False)

    def __post_init__(self) -> None:
        count = len(self.bounds.views)
        if self.view >= count:
            raise InputError(
                f"view is {quoted(self.view)}, and there are {count}; give the number of one, counted "
                "from 0."
            )

    @classmethod
    @arguments()
    def from_bounds(
        cls, bounds: MiscalibrationBounds, *, view: int = 0, ax: Axes | None = None
    ) -> BoundsDisplay:
        """Draw the reliability curve, and shade where it is proved wrong.

        Parameters
        ----------
        bounds
            Of :func:`caltest.miscalibration_bounds`.
        view
            Which of the probabilities, counted from 0, if it was "classwise". Default 0.
        ax
            Axes to draw in. Default: a new figure.

        Returns
        -------
        BoundsDisplay
            Drawn. A place is shaded over the range of its probabilities; its mark is at the mean
            probability and the share that came true. The bold line across it, parallel to the diagonal,
            is what is proved: somewhere in the range the truth is beyond it, which says nothing of the
            mean. Open circles are 15 bins of equal width. Of more than five places of a side the most
            telling five are drawn, and the legend says so.

        Raises
        ------
        InputError
            If ``view`` is not the number of a view.

        Examples
        --------
        >>> import caltest, matplotlib.pyplot as plt
        >>> digits = caltest.datasets.load_digits_predictions("naive_bayes")
        >>> bounds = caltest.miscalibration_bounds(digits.probs, digits.labels, rng=0)
        >>> display = caltest.BoundsDisplay.from_bounds(bounds)
        >>> display.ax_.get_xlabel()
        'predicted probability that the top class is right'
        >>> plt.close(display.figure_)
        """
        return cls(bounds, view).plot(ax)

    @arguments()
    def plot(self, ax: Axes | None = None) -> BoundsDisplay:
        """Draw diagonal, places, bins and bars.

        Parameters
        ----------
        ax
            As in :meth:`from_bounds`.

        Returns
        -------
        BoundsDisplay
            Itself, with ``figure_`` and ``ax_`` set.
        """
        axes: Any = _new_axes() if ax is None else ax
        view = self.bounds.views[self.view]
        axes.plot([0, 1], [0, 1], color=BLACK, linewidth=0.9, linestyle=(0, (4, 3)), zorder=3)
        axes.plot(
            *(view.curve.says, view.curve.share, "o"),
            markerfacecolor="white",
            markeredgecolor=FAINT,
            markersize=5.5,
            zorder=4,
            clip_on=False,
            label="15 bins of equal width",
        )
        for side in view.sides:
            _mark(axes, side)
        _dress(axes, view, self.bounds)
        object.__setattr__(self, "figure_", axes.figure)
        object.__setattr__(self, "ax_", axes)
        return self


def _new_axes() -> Any:
    import matplotlib.pyplot as plt

    return plt.subplots(figsize=(6.2, 6.6), layout="constrained")[1]


def _mark(ax: Any, side: SideBound) -> None:
    """Shade the most telling places of a side, and draw beyond what each is proved to err somewhere."""
    colour = _COLOURS[side.side]
    every = [place for place in side.places if place.named]
    named = every[:_NAMED]
    title = f"place that claims {_TOO[side.side]}, mean of its rows"
    if len(named) < len(every):
        title += f" ({len(named)} of {len(every)} places)"
    for number, place in enumerate(named):
        missing = max(0.0, _LEAST_WIDTH - (place.high - place.low)) / 2.0
        low, high = place.low - missing, place.high + missing
        ax.axvspan(low, high, color=colour, alpha=0.13, linewidth=0, zorder=0)
        for end in (place.low, place.high):
            ax.axvline(end, color=colour, alpha=0.45, linewidth=0.6, zorder=1)
        if place.somewhere_by > 0.0:
            ax.plot([low, high], _proved(low, high, place, side), **_LINE, color=colour)
        ax.plot(
            *(place.says, place.share, "D"),
            color=colour,
            markeredgecolor=BLACK,
            markeredgewidth=0.6,
            markersize=6.5,
            zorder=6,
            clip_on=False,
            label=title if number == 0 else None,
        )
    if named and named[0].somewhere_by > 0.0:
        beyond = "below" if side.side == "over" else "above"
        ax.plot([], [], **_LINE, color=colour, label=f"the truth is {beyond} this line somewhere on it")


def _proved(low: float, high: float, place: Place, side: SideBound) -> list[float]:
    """Return the heights of the line at both ends: the diagonal, less or more what is proved."""
    sign = -1.0 if side.side == "over" else 1.0
    return [low + sign * place.somewhere_by, high + sign * place.somewhere_by]


def _dress(ax: Any, view: ViewBounds, bounds: MiscalibrationBounds) -> None:
    ax.set(xlim=(-0.03, 1.03), ylim=(-0.03, 1.03), aspect="equal")
    ax.set_xlabel(f"predicted probability that {lettering(view.event, CLAUSE)}")
    ax.set_ylabel("share that came true")
    ax.grid(color=PALE, linewidth=0.5, alpha=0.6, zorder=0)
    ax.set_axisbelow(True)
    for edge in ("top", "right"):
        ax.spines[edge].set_visible(False)
    proved = [
        f"{_TOO[side.side]} by at least {points(side.bound)}" if side.bound else f"{_TOO[side.side]}"
        for side in view.sides
        if side.found
    ]
    sure = f"n = {bounds.n_samples:,}, with {confidence_text(bounds.confidence)} confidence"
    lines = [f"claims {each} somewhere" for each in proved] or ["the scan shows no error"]
    ax.set_title("\n".join([f"{sure}:", *lines]), loc="left", size="medium")
    ax.legend(loc="upper left", fontsize="small", framealpha=0.9)
