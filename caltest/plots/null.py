"""Where an observed statistic lies among those of drawn labels."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import NDArray

from caltest._arguments import OneOf, arguments, axes
from caltest.exceptions import InputError
from caltest.pictures.axes import Array
from caltest.plots import canvas
from caltest.plots.display import PredictionsDisplay, ResultDisplay
from caltest.pvalues import TIE_TOLERANCE, count
from caltest.statistics import StatisticLike
from caltest.testing import test
from caltest.text.numbers import number
from caltest.text.summaries import statistic

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from caltest.results import CalibrationResult

_BARS = 40  # at most, or so
_STEPS = 1e6  # a finer lattice is none to the eye
_FEW, _SLIM = 4, 9  # fewer steps have bars of such a part of one, odd: it is in the middle
_LATTICE = 1e-3  # of a step: rounding of draws on a lattice


@arguments(result=OneOf("caltest.results:CalibrationResult", "give what caltest.test returns"))
@dataclass(frozen=True, eq=False)
class NullDisplay(ResultDisplay, PredictionsDisplay):
    """Plot the observed statistic against its distribution under calibration.

    Make it with ``from_result``.

    :meth:`from_predictions` and :meth:`from_estimator` run the test first.

    Values that are not finite are left out of the histogram. Narrow axes have the p-value as title,
    and no legend.

    Parameters
    ----------
    result
        What :func:`caltest.test` returned, with a null that simulates, such as "monte_carlo".

    Raises
    ------
    InputError
        If the result has no null distribution.

    Examples
    --------
    >>> import caltest, matplotlib.pyplot as plt
    >>> from caltest.plots import NullDisplay
    >>> digits = caltest.datasets.load_digits_predictions("logistic_regression")
    >>> result = caltest.test(digits.probs, digits.labels, rng=0)
    >>> display = NullDisplay.from_result(result)
    >>> int(display.extreme.sum()) + 1 == round(1000 * result.pvalue)
    True
    >>> plt.close(display.figure_)
    """

    result: CalibrationResult

    def __post_init__(self) -> None:
        if self.result.null_distribution is None:
            raise InputError(
                f"the null {self.result.null!r} draws no resamples, so there is no distribution to "
                "show; test with null='monte_carlo'."
            )

    @classmethod
    @arguments(ax=axes)
    def from_predictions(
        cls,
        probs: object,
        labels: object,
        statistic: StatisticLike | None = None,
        *,
        ax: Axes | Sequence[Axes] | None = None,
        **options: Any,
    ) -> Self:
        """Test predictions and labels, and draw the result.

        Parameters
        ----------
        probs, labels, statistic, **options
            As in :func:`caltest.test`.
        ax
            As in :meth:`~caltest.plots.Display.plot`.

        Returns
        -------
        NullDisplay
            Drawn; ``result`` is the test's.

        Raises
        ------
        InputError
            As in :func:`caltest.test`, or if the null draws no resamples.

        Examples
        --------
        >>> import matplotlib.pyplot as plt
        >>> from caltest.plots import NullDisplay
        >>> display = NullDisplay.from_predictions([0.2, 0.7, 0.9], [0, 1, 1], "brier", rng=0)
        >>> display.result.name
        'brier'
        >>> plt.close(display.figure_)
        """
        if statistic is not None:  # the default depends on the null
            options["statistic"] = statistic
        return cls(test(probs, labels, **options)).plot(ax)

    @property
    def extreme(self) -> NDArray[np.bool_]:
        """Which draws p counts, (B,); of two sides, those of the side with fewer."""
        draws = np.asarray(self.result.null_distribution)
        outwards = draws if self._from_above else -draws
        counted = np.zeros(len(draws), dtype=bool)  # those that are not numbers sort last, and count
        counted[np.argsort(outwards)[len(draws) - (self.result.exceedances or 0) :]] = True
        return counted

    @property
    def _from_above(self) -> bool:
        """Say whether large draws are extreme: of two sides, the one with as many as p counts."""
        result, draws = self.result, np.asarray(self.result.null_distribution)
        if result.alternative in ("greater", "less"):
            return result.alternative == "greater"
        above, below = (
            abs(count(draws, result.statistic, side) - (result.exceedances or 0))
            for side in ("greater", "less")
        )
        return above <= below

    def _grid(self) -> dict[str, Any]:
        return {"figsize": (6, 4)}

    def _draw(self, axes: list[Any], *, new: bool) -> None:
        (ax,), result, extreme = axes, self.result, self.extreme
        draws = np.asarray(result.null_distribution)
        finite, n_extreme = np.isfinite(draws), int(extreme.sum())
        as_extreme = (
            f"{n_extreme:,} of them at least as extreme" if n_extreme else "none of them as extreme"
        )
        rest, counted = draws[finite & ~extreme], draws[finite & extreme]
        ax.hist(
            [rest, counted],
            bins=_edges(rest, counted, result.statistic, from_above=self._from_above),
            stacked=True,
            color=[canvas.PALE, canvas.BLUE],
            label=[f"{len(draws):,} resamples if calibrated", as_extreme],
        )
        line = {**canvas.STYLES["found"], "linewidth": 2.2, "linestyle": "--", "zorder": 2}
        if math.isfinite(result.statistic):
            ax.axvline(result.statistic, label="observed", **line)
        else:
            ax.plot([], [], label=f"observed: {result.statistic}, off the axis", **line)
        ax.set_ylabel("resamples")
        ax.margins(y=0.15)
        canvas.tidy(ax, "y")
        name, p = canvas.lettering(result.name), f"p = {result.pvalue:.3g} ({result.guarantee})"
        if canvas.is_narrow(ax):
            ax.set_xlabel(f"{name}\nblue: {as_extreme.replace('of them ', '')}")
            canvas.heading(ax, p)
            return
        lines = [f"{p}, observed {number(statistic(result))}"]
        if result.pvalue_interval is not None:
            low, high = result.pvalue_interval
            between = f"p between {low:.2g} and {high:.2g} (95% interval)"
            lines.append(f"{result.n_resamples} resamples; with more, {between}")
        if result.alternative == "two-sided":
            lines.append("two-sided: p is twice the share of the smaller side")
        elif result.alternative == "less":
            lines.append("one-sided: small values count against calibration")
        ax.set_xlabel(f"{canvas.lettering(result.measures, 100) or name} ({name})")
        canvas.heading(ax, *lines)
        canvas.legend_below(ax, 3 if math.isfinite(result.statistic) else 2)


def _edges(rest: Array, counted: Array, observed: float, *, from_above: bool) -> Array:
    """Return edges of bars over the draws: one between those counted and the rest, none between ties.

    Draws on a lattice, multiples of 1/n for instance, have bars of whole steps of it: with others, bars
    of one point and of two would take turns.
    """
    draws = np.sort(np.concatenate([rest, counted]))
    if len(draws) == 0:
        return np.array([0.0, 1.0])
    rounding = TIE_TOLERANCE * float(np.abs(draws).max())
    gaps = np.diff(draws)
    gaps = gaps[gaps > rounding]
    if len(gaps) == 0:  # one value: a bar, with room around it
        room = np.linspace(-0.05, 0.05, _BARS + 2)
        return np.asarray(draws[0] + max(abs(float(draws[0])), 1.0) * room)
    extent = float(draws[-1] - draws[0])
    steps = gaps / gaps.min()
    if extent < _STEPS * gaps.min() and np.abs(steps - np.round(steps)).max() < _LATTICE:
        count_of_steps = round(extent / float(gaps.min()))
        step = extent / count_of_steps
        width, half = step * -(-(count_of_steps + 1) // _BARS), step / 2
        if count_of_steps < _FEW:
            width, half = step / _SLIM, step / _SLIM / 2
    else:
        quarters = np.quantile(draws, [0.25, 0.75])  # Freedman and Diaconis
        width = max(2.0 * float(np.ptp(quarters)) / len(draws) ** (1 / 3), extent / _BARS)
        half = rounding
    cut = draws[0] - half
    if len(rest) and len(counted):
        near, far = (counted.min(), rest.max()) if from_above else (counted.max(), rest.min())
        inside = min(near, far) + half < observed < max(near, far) - half
        cut = observed if inside else near - half if from_above else near + half
    first, last = np.floor((draws[0] - cut) / width), np.floor((draws[-1] - cut) / width) + 1.0
    return np.asarray(cut + width * np.arange(first, last + 1.0))
