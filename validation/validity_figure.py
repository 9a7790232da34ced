"""The picture of the study of validity: heat maps of the size of every pair on every design.

Run by ``python -m validation validity`` on what is done so far. A colour says what is certain: it is
that of the end of the rate's 99 % interval nearest to the level, and white where the level is inside.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
from scipy.stats import binomtest

from caltest.plots.canvas import NARROW_BAND
from caltest.statistics import STATISTICS
from validation._cells import Row
from validation._designs import DESIGNS
from validation._study import save
from validation.validity import LEVELS

CONFIDENCE = 0.99
ORDER = {"exact": 0, "approximate": 1, "asymptotic": 2, "bound": 3}


def draw(rows: list[Row], path: Path) -> None:
    """Draw the heat maps: pairs by designs, exact pairs first."""
    places = list(STATISTICS)
    lines = sorted(
        {
            (ORDER[row["guarantee"]], row["null"], places.index(row["statistic"]), row["statistic"])
            for row in rows
        }
    )
    figure, axes = plt.subplots(
        1, 2, figsize=(13.5, 3.4 + 0.2 * len(lines)), sharey=True, layout="constrained"
    )
    for ax, level in zip(axes, LEVELS, strict=True):
        image = _map(ax, [row for row in rows if row["level"] == level], lines)
        ax.set_title(f"size at level {level:g}", loc="left", size="medium")
    labels = [f"{statistic}, {null}" for _, null, _, statistic in lines]
    axes[0].set_yticks(range(len(lines)), labels, fontsize="small")
    bar = figure.colorbar(image, ax=axes, shrink=0.35, ticks=[-2, -1, 0, 1, 2])
    bar.ax.set_yticklabels(["≤ ¼ level", "½ level", "the level", "2 × level", "≥ 4 × level"])
    counts = [row["datasets"] for row in rows]
    figure.suptitle(
        "Rejections of calibrated models; from the top: exact, approximate, asymptotic, bound. Colour: "
        "the end of the rate's 99 % interval\nnearest to the level; white: the level is inside. Cross: "
        "above simultaneous 99 % limits; triangle: below, without ties.\n"
        f"Grey: does not fit, or not run. {min(counts)} to {max(counts)} data sets",
        fontsize="medium",
    )
    save(figure, path)


def _map(ax: Any, rows: list[Row], lines: list[tuple[int, str, int, str]]) -> Any:
    """Draw one map; its colours are the rates over the level, on a scale of powers of two."""
    names = [design.name for design in DESIGNS if any(r["design"] == design.name for r in rows)]
    places = {(null, statistic): k for k, (_, null, _, statistic) in enumerate(lines)}
    grid = np.full((len(lines), len(names)), np.nan)
    for row in rows:
        y, x = places[row["null"], row["statistic"]], names.index(row["design"])
        level = row["level"]
        interval = binomtest(row["rejections"], row["datasets"]).proportion_ci(CONFIDENCE)
        nearest = np.clip(level, interval.low, interval.high)
        grid[y, x] = np.clip(np.log2(nearest / level), -2.0, 2.0)
        if row["verdict"] == "above":
            ax.plot(x, y, "x", color="black", markersize=5)
        elif row["verdict"] == "below":
            ax.plot(x, y, "v", color="black", markersize=3, mfc="none")
    ax.set_facecolor(NARROW_BAND)
    image = ax.imshow(grid, cmap="RdBu_r", vmin=-2.0, vmax=2.0, aspect="auto")
    ax.set_xticks(range(len(names)), names, rotation=90, fontsize="small")
    for edge in range(1, len(lines)):
        if lines[edge][0] != lines[edge - 1][0]:
            ax.axhline(edge - 0.5, color="black", linewidth=1.2)
    return image
