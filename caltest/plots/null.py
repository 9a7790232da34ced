"""Where an observed statistic lies among those of drawn labels."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from caltest._arguments import OneOf, arguments
from caltest.exceptions import InputError
from caltest.plots.bands import Array
from caltest.plots.lettering import lettering
from caltest.plots.style import BLUE, PALE, VERMILION, is_narrow
from caltest.results import CalibrationResult

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_BARS = 40


@dataclass(frozen=True, eq=False)
class NullDisplay:
    """Histogram of the statistics of the resamples, with the observed one. Make it with `from_result`.

    Attributes
    ----------
    result
        The test.
    draws
        Its null distribution, in which values that are not finite are left out of the histogram.
    extreme
        Which draws are at least as extreme as the observed value: those that p counts.
    figure_, axes_
        The picture; None before :meth:`plot`.

    Examples
    --------
    >>> import caltest, matplotlib.pyplot as plt
    >>> sure = caltest.simulation.tempered(n_samples=300, temperature=0.4, rng=0)
    >>> found = caltest.test(sure.probs, sure.labels, "ecd", rng=0)
    >>> display = caltest.NullDisplay.from_result(found)
    >>> len(display.draws), int(display.extreme.sum())
    (999, 0)
    >>> plt.close(display.figure_)
    """

    result: CalibrationResult
    draws: Array = field(repr=False)
    extreme: NDArray[np.bool_] = field(repr=False)
    figure_: Figure | None = field(default=None, init=False, repr=False)
    axes_: Axes | None = field(default=None, init=False, repr=False)

    @classmethod
    @arguments(result=OneOf("caltest.results:CalibrationResult", "give what caltest.test returns"))
    def from_result(cls, result: CalibrationResult, *, ax: Axes | None = None) -> NullDisplay:
        """Draw the null distribution of a result.

        Parameters
        ----------
        result
            Of a null that resamples, "monte_carlo" for instance.
        ax
            Axes to draw in. Default: a new figure.

        Returns
        -------
        NullDisplay
            Drawn.

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
        if result.null_distribution is None:
            raise InputError(
                f"the null {result.null!r} draws no resamples, so there is no distribution to show; "
                "test with null='monte_carlo'."
            )
        draws = result.null_distribution
        return cls(result, draws, _extreme(draws, result)).plot(ax)

    @arguments()
    def plot(self, ax: Axes | None = None) -> NullDisplay:
        """Draw the histogram.

        Parameters
        ----------
        ax
            Axes to draw in; narrow ones get the p-value as title, and no legend. Default: a new figure.

        Returns
        -------
        NullDisplay
            Itself, with ``figure_`` and ``axes_`` set.
        """
        axes: Any = ax
        if axes is None:
            import matplotlib.pyplot as plt

            axes = plt.subplots(figsize=(6, 4), layout="constrained")[1]
        self._draw(axes)
        object.__setattr__(self, "figure_", axes.figure)
        object.__setattr__(self, "axes_", axes)
        return self

    def _count_in_words(self) -> str:
        count = int(self.extreme.sum())
        return f"{count:,} of them at least as extreme" if count else "none of them as extreme"

    def _draw(self, ax: Any) -> None:
        result = self.result
        finite = np.isfinite(self.draws)
        edges = _edges(self.draws[finite], result.statistic, self.extreme[finite])
        parts = [self.draws[finite & ~self.extreme], self.draws[finite & self.extreme]]
        ax.hist(
            parts,
            bins=edges,
            stacked=True,
            color=[PALE, BLUE],
            label=[f"{len(self.draws):,} draws if calibrated", self._count_in_words()],
        )
        line = {"color": VERMILION, "linewidth": 2.2, "linestyle": "--"}
        if math.isfinite(result.statistic):
            ax.axvline(result.statistic, label="observed", **line)
        else:
            ax.plot([], [], label=f"observed: {result.statistic}, off the axis", **line)
        ax.set_ylabel("resamples")
        ax.margins(y=0.15)
        if is_narrow(ax):
            ax.set_xlabel(lettering(result.name), size="small")
            ax.set_title(_words(result)[0].partition(",")[0], loc="left", size="small")
            return
        name = lettering(result.name)
        ax.set_xlabel(f"{lettering(result.measures, 100) or name} ({name})")
        ax.set_title("\n".join(_words(result)), loc="left", size="medium")
        below = {"loc": "upper left", "bbox_to_anchor": (-0.02, -0.16), "ncols": 3}
        ax.legend(fontsize="small", frameon=False, columnspacing=1.2, **below)


def _extreme(draws: Array, result: CalibrationResult) -> NDArray[np.bool_]:
    """Say which draws p counts; of two sides, those of the side with fewer."""
    order = np.argsort(draws)
    from_above = result.alternative == "greater" or (
        result.alternative == "two-sided"
        and (draws >= result.statistic).sum() <= (draws <= result.statistic).sum()
    )
    count = result.exceedances or 0
    counted = np.zeros(len(draws), dtype=bool)
    counted[order[len(draws) - count :] if from_above else order[:count]] = True
    return counted


def _edges(draws: Array, observed: float, extreme: NDArray[np.bool_]) -> Array:
    """Return edges of bars over the draws, one of them at the observed value if it is among them."""
    if len(draws) == 0:
        return np.array([0.0, 1.0])
    low, high = float(draws.min()), float(draws.max())
    pad = (high - low) or max(abs(low), 1.0) * 0.1
    if high == low:
        low, high = low - pad / 2, high + pad / 2
    edges = np.linspace(low, high, _BARS + 1)
    if low < observed < high and extreme.any():
        edges += observed - edges[np.argmin(np.abs(edges - observed))]
        step = edges[1] - edges[0]
        edges = np.concatenate([[edges[0] - step], edges, [edges[-1] + step]])
    return edges


def _words(result: CalibrationResult) -> list[str]:
    lines = [f"p = {result.pvalue:.3g} ({result.guarantee}), observed {result.statistic:.4g}"]
    if result.pvalue_interval is not None:
        low, high = result.pvalue_interval
        between = f"p between {low:.2g} and {high:.2g} (95% interval)"
        lines.append(f"{result.n_resamples} resamples; with more, {between}")
    if result.alternative != "greater":
        lines.append(
            "two-sided: p is twice the share of the smaller side"
            if result.alternative == "two-sided"
            else "one-sided: small values count against calibration"
        )
    return lines
