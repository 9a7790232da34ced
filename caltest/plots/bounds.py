"""Where a model is wrong at least: places on the reliability diagram."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from caltest.bounds import MiscalibrationBounds
from caltest.bounds.result import Place, SideBound, ViewBounds
from caltest.bounds.words import points
from caltest.exceptions import InputError
from caltest.plots.style import BLACK, BLUE, FAINT, PALE, VERMILION

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_COLOURS = {"over": VERMILION, "under": BLUE}
_TOO = {"over": "too much", "under": "too little"}
_NAMED = 5
_LEAST_WIDTH = 0.008  # of a shaded place, so that it can be seen


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
    """

    bounds: MiscalibrationBounds
    view: int = 0
    figure_: Figure | None = field(default=None, init=False, repr=False)
    ax_: Axes | None = field(default=None, init=False, repr=False)

    @classmethod
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
            probability and the share that came true, and the bar beside it reaches from the diagonal as
            far as the model is proved wrong there. Open circles are 15 bins of equal width.

        Raises
        ------
        InputError
            If there is no such view.

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
        if not 0 <= view < len(bounds.views):
            raise InputError(
                f"view is {view!r}, and there are {len(bounds.views)}; give one, counted from 0."
            )
        return cls(bounds, view).plot(ax)

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
    """Shade the most telling places of a side, and draw how far each is proved wrong."""
    colour = _COLOURS[side.side]
    named = [place for place in side.places if place.named][:_NAMED]
    for number, place in enumerate(named):
        low, high = place.low, place.high
        missing = max(0.0, _LEAST_WIDTH - (high - low)) / 2.0
        ax.axvspan(low - missing, high + missing, color=colour, alpha=0.13, linewidth=0, zorder=0)
        for end in (low, high):
            ax.axvline(end, color=colour, alpha=0.45, linewidth=0.6, zorder=1)
        proved = _proved(place, side)
        ax.plot([place.says] * 2, proved, color=colour, linewidth=4.5, solid_capstyle="butt", zorder=5)
        ax.plot(
            *(place.says, place.share, "D"),
            color=colour,
            markeredgecolor=BLACK,
            markeredgewidth=0.6,
            markersize=6.5,
            zorder=6,
            clip_on=False,
            label=f"place that claims {_TOO[side.side]}, mean of its rows" if number == 0 else None,
        )
    if named and named[0].at_least > 0.0:
        ax.plot([], [], color=colour, linewidth=4.5, label=f"{_TOO[side.side]} there by at least this")


def _proved(place: Place, side: SideBound) -> list[float]:
    """Return the ends of the bar: from the diagonal, as far as the error is proved."""
    sign = -1.0 if side.side == "over" else 1.0
    return [place.says, place.says + sign * place.at_least]


def _dress(ax: Any, view: ViewBounds, bounds: MiscalibrationBounds) -> None:
    ax.set(xlim=(-0.03, 1.03), ylim=(-0.03, 1.03), aspect="equal")
    ax.set_xlabel(f"predicted probability that {view.event}")
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
    sure = f"n = {bounds.n_samples:,}, with {100.0 * bounds.confidence:.4g}% confidence"
    lines = [f"claims {each} somewhere" for each in proved] or ["nowhere proved wrong"]
    ax.set_title("\n".join([f"{sure}:", *lines]), loc="left", size="medium")
    ax.legend(loc="upper left", fontsize="small", framealpha=0.9)
