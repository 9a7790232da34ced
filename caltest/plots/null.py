"""Where an observed statistic lies among those of drawn labels."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from caltest._arguments import OneOf, arguments
from caltest.exceptions import InputError
from caltest.plots.display import (
    BLUE,
    PALE,
    SMALL,
    VERMILION,
    ResultDisplay,
    heading,
    is_narrow,
    lettering,
)

if TYPE_CHECKING:
    from caltest.results import CalibrationResult

_BARS = 40


@arguments(result=OneOf("caltest.results:CalibrationResult", "give what caltest.test returns"))
@dataclass(frozen=True, eq=False)
class NullDisplay(ResultDisplay):
    """Histogram of the resamples' statistics, with the observed one. Make it with ``from_result``.

    Values that are not finite are left out of the histogram. Narrow axes get the p-value as title, and
    no legend.

    Parameters
    ----------
    result
        Of :func:`caltest.test`, by a null that resamples, "monte_carlo" for instance.

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

    @property
    def extreme(self) -> NDArray[np.bool_]:
        """Which draws p counts, (B,); of two sides, those of the side with fewer."""
        result, draws = self.result, np.asarray(self.result.null_distribution)
        order, count = np.argsort(draws), result.exceedances or 0
        from_above = result.alternative == "greater" or (
            result.alternative == "two-sided"
            and (draws >= result.statistic).sum() <= (draws <= result.statistic).sum()
        )
        counted = np.zeros(len(draws), dtype=bool)
        counted[order[len(draws) - count :] if from_above else order[:count]] = True
        return counted

    def _grid(self) -> dict[str, Any]:
        return {"figsize": (6, 4)}

    def _draw(self, axes: list[Any], *, new: bool) -> None:
        (ax,), result, extreme = axes, self.result, self.extreme
        draws = np.asarray(result.null_distribution)
        finite, count = np.isfinite(draws), int(extreme.sum())
        as_extreme = f"{count:,} of them at least as extreme" if count else "none of them as extreme"
        ax.hist(
            [draws[finite & ~extreme], draws[finite & extreme]],
            bins=_edges(draws[finite], result.statistic, extreme[finite]),
            stacked=True,
            color=[PALE, BLUE],
            label=[f"{len(draws):,} draws if calibrated", as_extreme],
        )
        line = {"color": VERMILION, "linewidth": 2.2, "linestyle": "--"}
        if math.isfinite(result.statistic):
            ax.axvline(result.statistic, label="observed", **line)
        else:
            ax.plot([], [], label=f"observed: {result.statistic}, off the axis", **line)
        ax.set_ylabel("resamples")
        ax.margins(y=0.15)
        name, p = lettering(result.name), f"p = {result.pvalue:.3g} ({result.guarantee})"
        if is_narrow(ax):
            ax.set_xlabel(name)
            heading(ax, p)
            return
        lines = [f"{p}, observed {result.statistic:.4g}"]
        if result.pvalue_interval is not None:
            low, high = result.pvalue_interval
            between = f"p between {low:.2g} and {high:.2g} (95% interval)"
            lines.append(f"{result.n_resamples} resamples; with more, {between}")
        if result.alternative == "two-sided":
            lines.append("two-sided: p is twice the share of the smaller side")
        elif result.alternative == "less":
            lines.append("one-sided: small values count against calibration")
        ax.set_xlabel(f"{lettering(result.measures, 100) or name} ({name})")
        heading(ax, *lines)
        below = {"loc": "upper left", "bbox_to_anchor": (-0.02, -0.16), "ncols": 3}
        ax.legend(columnspacing=1.2, **SMALL, **below)


def _edges(
    draws: NDArray[np.float64], observed: float, extreme: NDArray[np.bool_]
) -> NDArray[np.float64]:
    """Return edges of bars over the draws, one of them at the observed value if it is among them."""
    if len(draws) == 0:
        return np.array([0.0, 1.0])
    low, high = float(draws.min()), float(draws.max())
    if high == low:
        pad = max(abs(low), 1.0) * 0.1
        low, high = low - pad / 2, high + pad / 2
    edges = np.linspace(low, high, _BARS + 1)
    if low < observed < high and extreme.any():
        edges += observed - edges[np.argmin(np.abs(edges - observed))]
        step = edges[1] - edges[0]
        edges = np.concatenate([[edges[0] - step], edges, [edges[-1] + step]])
    return edges
