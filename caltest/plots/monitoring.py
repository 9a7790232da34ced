"""The path of the evidence of a monitor, the error over time, and reliability then and now."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from caltest._arguments import OneOf, arguments
from caltest._visible import shortened
from caltest.laws import Survival
from caltest.pictures.marks import DIAGONAL, GRID, Mark, told_apart
from caltest.plots import canvas
from caltest.plots.canvas import draw, heading
from caltest.plots.display import ResultDisplay
from caltest.text.summaries import evidence_name

if TYPE_CHECKING:
    from caltest.monitoring import MonitorState

_MOST = 1e3  # powers of ten


@arguments(result=OneOf("caltest.monitoring:MonitorState", "give what Monitor.update returns"))
@dataclass(frozen=True, eq=False)
class MonitorDisplay(ResultDisplay):
    """Plot what a monitor has found: the path of the evidence, the error over time, reliability.

    Make it with ``from_result``.

    Left: the evidence after every batch, on a logarithmic scale, with the line of the alarm; below it
    predicted less observed in every batch, with limits that hold for all batches at once (a filled
    diamond: without 0). Right: reliability of the first rows and of the latest where evidence is
    strongest, all rows or a group; of numbers and times, how many outcomes lie in each tenth of what
    was predicted.

    Parameters
    ----------
    result
        What :meth:`caltest.Monitor.update` returned.

    Examples
    --------
    >>> import numpy as np, caltest, matplotlib.pyplot as plt
    >>> rng, monitor = np.random.default_rng(0), caltest.Monitor()
    >>> for _ in range(5):
    ...     p = rng.random(200)
    ...     state = monitor.update(p, rng.random(200) < p)
    >>> display = caltest.MonitorDisplay.from_result(state)
    >>> len(display.axes_)
    3
    >>> plt.close(display.figure_)
    """

    result: MonitorState
    _parts = ": one for the evidence, one for errors, and one for reliability"

    def _grid(self) -> dict[str, Any]:
        return {"mosaic": [[0, 2], [1, 2]], "figsize": (10.0, 5.2), "width_ratios": (1.6, 1.0)}

    def _draw(self, axes: list[Any], *, new: bool) -> None:
        s, (path, errors, shape) = self.result, axes
        ends = np.array([each.end for each in s.periods], float)
        logs = np.array([each.log_evalue for each in s.periods]) / math.log(10.0)
        goal = math.log10(s.threshold)
        draw(path, GRID, Mark("line", "line", np.r_[0.0, ends], np.r_[0.0, logs.clip(-_MOST, _MOST)]))
        path.axhline(goal, **canvas.DASHED)
        path.text(0.0, goal, f" alarm at {s.threshold:,.4g} to 1", va="bottom", fontsize="small")
        path.set_ylabel("evidence, powers of ten")
        heading(path, "Alarm" if s.alarm else "No alarm", f"{s.rows:,} rows")

        error = 100.0 * np.array([each.predicted - each.observed for each in s.periods])
        low, high = (
            100.0 * np.array([getattr(each, end) for each in s.periods]) for end in ("low", "high")
        )
        draw(errors, GRID, Mark("intervals", "error", ends, low, high))
        draw(errors, *told_apart(ends, error, (low > 0.0) | (high < 0.0)))
        errors.axhline(0.0, **canvas.DASHED)
        heading(errors, "Error in every batch", "all rows")
        errors.set_xlim(path.get_xlim())
        unit = "events per 100 rows" if s.about == Survival.about else "points"
        errors.set(xlabel="rows so far", ylabel=f"predicted − observed,\n{unit}")

        worst = s.worst
        both = [("first", worst.first, "hollow"), ("latest", worst.latest, "found")]
        for name, bins, style in both[: 1 if worst.latest is worst.first else 2]:
            rows, stated, seen = bins[bins[:, 0] > 0.0].T
            x = stated / rows if s.n_classes else (np.arange(len(bins)) + 0.5) / len(bins)
            label = f"{name} {bins[:, 0].sum():,.0f} rows"
            draw(shape, Mark("line", "line", x, seen / rows, label=label), **_LOOKS[style])
        draw(shape, GRID)
        if s.n_classes is None:
            shape.axhline(1.0, **canvas.DASHED)
            shape.set(
                xlabel="where outcomes lie in what was predicted",
                ylabel="outcomes, relative to uniform",
            )
        else:
            draw(shape, DIAGONAL)
            shape.set(xlabel="predicted", ylabel="observed", xlim=(0.0, 1.0), ylim=(0.0, 1.0))
        heading(shape, "Then and now", shortened(evidence_name(worst), 40))
        canvas.legend_below(shape)


_LOOKS: dict[str, dict[str, Any]] = {
    "hollow": {"color": canvas.FAINT, "marker": "o", "markerfacecolor": "white", "clip_on": False},
    "found": {"color": canvas.BLUE, "marker": "D", "markersize": 4.5, "clip_on": False},
}
