"""The last panel of :class:`caltest.plots.RiskDisplay`: what the functions estimate."""

from __future__ import annotations

from typing import Any

import numpy as np

from caltest.estimation import FunctionRisk, SquaredErrorEstimate
from caltest.plots.lettering import CLAUSE, lettering
from caltest.plots.style import BLACK, BLUE, PALE

_NO_ERROR = 1e-8  # a range of squared errors that is rounding
_GAP = 0.13  # of the axis: room for a number


def name(function: FunctionRisk) -> str:
    """Return the label, options as given in a line of their own."""
    return lettering(function.label, 2 * CLAUSE).replace("(", "\n(", 1)


def draw_estimates(ax: Any, result: SquaredErrorEstimate) -> None:
    """Draw estimates with their standard errors, least risk on top."""
    functions = result.functions
    places = np.arange(len(functions))
    values = np.array([each.estimate for each in functions])
    errors = np.array([each.standard_error for each in functions])
    ax.axvline(0.0, color=BLACK, linewidth=1.2, linestyle=(0, (5, 2)), zorder=1)
    ax.hlines(
        *(places, values - errors, values + errors), color=BLUE, linewidth=6.0, label="standard error"
    )
    ax.plot(values, places, "|", color=BLACK, markersize=13, markeredgewidth=1.8, zorder=3)
    names = [f"{place}  {name(each)}" for place, each in enumerate(functions, 1)]
    ax.set_yticks(places, names)
    ax.get_yticklabels()[0].set_weight("bold")
    ax.set_ylim(len(functions) - 0.5, -0.5)
    ax.margins(x=0.08)
    ax.grid(axis="x", color=PALE, linewidth=0.6, zorder=0)
    ax.ticklabel_format(axis="x", style="sci", scilimits=(-2, 4), useMathText=True)
    ax.locator_params(axis="x", nbins=5)
    tidy(ax)
    if np.ptp(ax.get_xlim()) < _NO_ERROR:
        ax.set_xlim(-_NO_ERROR, _NO_ERROR)
    ax.set_xlabel("squared error; its root on top", loc="left")
    lens = f"{lettering(result.lens)}, " if result.lens else ""
    ax.set_title(f"estimates, {lens}{result.n_test:,} rows", loc="left", size="medium", pad=16)
    _draw_roots(ax)


def _draw_roots(ax: Any) -> None:
    """Write the roots of the squared errors, in units of probability, along the top."""
    from matplotlib.ticker import MaxNLocator

    left, right = ax.get_xlim()
    if right <= 0.0:
        return
    roots = MaxNLocator(8, steps=[1, 2, 5, 10]).tick_values(0.0, float(np.sqrt(right)))
    shown: list[float] = []
    for square in (float(root) ** 2 for root in roots if root >= 0.0):
        clear = not shown or square - shown[-1] > _GAP * (right - left)
        if square <= right and clear:
            shown.append(square)
    top = ax.secondary_xaxis("top")
    top.set_xticks(shown, [f"{np.sqrt(square):.4g}" for square in shown])
    top.tick_params(labelsize="small", length=2, pad=1)
    top.spines["top"].set_visible(False)


def tidy(ax: Any) -> None:
    """Put the grid behind, and leave out the frame above and on the right."""
    ax.set_axisbelow(True)
    for side in ("top", "right"):
        ax.spines[side].set_visible(False)
