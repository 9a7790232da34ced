"""Power of every statistic against the number of rows, and the rows needed for a power of 80 %.

``python -m validation power_curves``: ten classes, predictions Dir(0.1), six ways to err; every
statistic of the registry at level .05 by the null that needs no resamples where it has one
("moments"), else by 199 exact draws; 50 to 2000 rows. Power is counted by :func:`caltest.power`,
400 data sets a point in full, the same for every statistic. The rows needed are those at which the
curve that is fitted to all points reaches 0.8, with its 95 % interval;
beyond four times the most rows simulated they are not stated.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.ticker import NullLocator
from scipy.stats import binomtest

import caltest
from caltest.plots.canvas import BLACK, BLUE, PALE, VERMILION
from caltest.simulation import tempered
from caltest.statistics import STATISTICS
from validation._cells import Options, Row, Table
from validation._power_curve import fit
from validation._study import fitting_pairs, markdown, save, write_csv
from validation.generative import classwise, local, m1, mixture, noisy

SEED = 20_190_423
SIZES = (50, 100, 200, 500, 1000, 2000)
DATASETS, BLOCK = 400, 20
LEVEL, WANTED = 0.05, 0.8
KEY = ("alternative", "statistic", "null", "rows", "seed")
ALPHA = (0.1,) * 10
ALTERNATIVES: dict[str, Any] = {
    "overconfident, t = 0.8": partial(tempered, alpha=ALPHA, temperature=0.8),
    "underconfident, t = 1.25": partial(tempered, alpha=ALPHA, temperature=1.25),
    "log-odds of one class + 0.5": partial(classwise, alpha=ALPHA, bias=0.5),
    "noise 0.7 on the logits": partial(noisy, alpha=ALPHA, scale=0.7, truth_draws=2),
    "10 % of labels at random": partial(mixture, alpha=ALPHA, pi=0.1),
    "wrong where top in (.5, .9)": partial(local, alpha=ALPHA, strength=0.3),
}
HIGHLIGHTED = {"omnibus": (BLACK, "-"), "skce_uq": (BLUE, "-"), "ecd": (VERMILION, (0, (5, 1.5)))}
HIGHLIGHTED |= {"ece": ("#009E73", (0, (1.2, 1.2))), "ckce": ("#CC79A7", (0, (3, 1, 1, 1)))}


@dataclass
class Cell:
    """A statistic on an alternative with so many rows, and how many data sets are done."""

    alternative: str
    statistic: str
    null: str
    rows: int
    done: int

    @property
    def key(self) -> Row:
        """Its columns."""
        what = {"alternative": self.alternative, "statistic": self.statistic, "null": self.null}
        return {**what, "rows": self.rows, "seed": SEED}

    def __str__(self) -> str:
        return f"{self.alternative} / {self.statistic} / {self.null} / {self.rows} rows"


def nulls() -> dict[str, str]:
    """Return the null of every statistic that fits ten classes."""
    pairs = fitting_pairs(m1(60, 10, rng=0), list(STATISTICS), ["monte_carlo", "moments"])
    return dict.fromkeys((name for name, _ in pairs), "monte_carlo") | {
        name: null for name, null in pairs if null == "moments"
    }


def run(options: Options) -> None:
    """Run blocks of data sets, that cell first of which the least is done; then fit and draw."""
    table = Table(options.results / "power_curves.csv", KEY)
    block = 2 if options.quick else BLOCK
    wanted = options.datasets or (2 if options.quick else DATASETS)
    sizes = SIZES[:2] if options.quick else SIZES
    alternatives = list(ALTERNATIVES)[: 1 if options.quick else None]
    null_of = nulls()
    todo = [
        Cell(alternative, statistic, null, rows, 0)
        for rows in sizes
        for alternative in alternatives
        for statistic, null in null_of.items()
    ]
    todo = [cell for cell in todo if options.wants(str(cell))]
    for cell in todo:
        known = table.get(**cell.key)
        cell.done = int(known["datasets"]) if known else 0
    while todo := [cell for cell in todo if cell.done < wanted]:
        if options.over:
            break
        cell = min(todo, key=lambda each: each.done)
        table.put([_more(cell, min(block, wanted - cell.done), table, options.jobs)])
        print(f"{cell}: {cell.done} of {wanted}, {options.seconds:.0f} s", flush=True)
    rows = needed(table) if options.pictures else []
    if rows:
        write_csv(rows, options.results / "power_rows_needed.csv")
        draw(table, rows, options.results / "power_curves.png")
        print(markdown(rows))


def _more(cell: Cell, block: int, table: Table, jobs: int) -> Row:
    """Run one more block; its data sets hang on the alternative, the rows and the block's number."""
    place = list(ALTERNATIVES).index(cell.alternative)
    found = caltest.power(
        ALTERNATIVES[cell.alternative],
        cell.rows,
        cell.statistic,
        null=cell.null,
        alpha=LEVEL,
        n_datasets=block,
        n_resamples=199,
        rng=np.random.SeedSequence(SEED, spawn_key=(place, cell.done)),
        n_jobs=jobs,
    ).points[0]
    known = table.get(**cell.key)
    rejections = (int(known["rejections"]) if known else 0) + found.rejections
    cell.done += found.n_datasets
    return {**cell.key, "datasets": cell.done, "rejections": rejections, "caltest": caltest.__version__}


def needed(table: Table) -> list[Row]:
    """Fit the rows needed for the wanted power."""
    rows = []
    pairs = dict.fromkeys((row["alternative"], row["statistic"]) for row in table.where(seed=SEED))
    for alternative, statistic in pairs:
        mine = sorted(
            (int(r["rows"]), int(r["rejections"]), int(r["datasets"]))
            for r in table.where(alternative=alternative, statistic=statistic, seed=SEED)
        )
        n, rejections, of = zip(*mine, strict=True)
        stated = {"rows_for_80": "", "low": "", "high": ""}
        if max(r / k for _, r, k in mine) > 2.0 * LEVEL:
            found = fit(n, rejections, of, LEVEL, WANTED)
            if found.curve.n <= 4 * max(n):
                stated["rows_for_80"] = f"{found.curve.n:.0f}"
                stated["low"], stated["high"] = f"{found.low:.0f}", f"{found.high:.0f}"
        rows.append(
            {
                "alternative": alternative,
                "statistic": statistic,
                **stated,
                "power_at_most_rows": f"{mine[-1][1] / mine[-1][2]:.3f}",
                "most_rows": mine[-1][0],
                "datasets": min(of),
            }
        )
    return rows


def draw(table: Table, rows: list[Row], path: Path) -> None:
    """Draw the curves, and the rows needed."""
    names = [name for name in ALTERNATIVES if any(row["alternative"] == name for row in rows)]
    figure, axes = plt.subplots(
        2,
        len(names),
        figsize=(2.6 + 2.7 * len(names), 9.6),
        layout="constrained",
        squeeze=False,
        height_ratios=[1, 1.5],
        sharey="row",
    )
    order = [name for name in STATISTICS if any(row["statistic"] == name for row in rows)]
    for (upper, lower), alternative in zip(axes.T, names, strict=True):
        _curves(upper, table, alternative, order)
        _rows_needed(lower, [r for r in rows if r["alternative"] == alternative], order)
    axes[0, 0].set_ylabel("power at level .05")
    counts = [int(row["datasets"]) for row in rows]
    several = f"{min(counts)} to {max(counts)}" if min(counts) < max(counts) else f"{min(counts)}"
    title = (
        f"{several} data sets a point; bars: 95 % intervals; grey: the other statistics; "
        f"▶: more than {4 * SIZES[-1]} rows, or no sign of power"
    )
    figure.legend(
        *axes[0, 0].get_legend_handles_labels(),
        loc="outside upper center",
        ncols=len(HIGHLIGHTED),
        frameon=False,
        title=title,
    )
    for ax in axes.flat:
        ax.spines[["top", "right"]].set_visible(False)
    save(figure, path, dpi=80)


def _curves(ax: Any, table: Table, alternative: str, order: list[str]) -> None:
    for statistic in order:
        found = table.where(alternative=alternative, statistic=statistic, seed=SEED)
        points = np.array(sorted((int(r["rows"]), *_estimate(r)) for r in found)).T
        if statistic not in HIGHLIGHTED:
            ax.plot(*points[:2], color=PALE, zorder=1, linewidth=0.8)
            continue
        color, style = HIGHLIGHTED[statistic]
        look = {"color": color, "linestyle": style, "linewidth": 1.8, "elinewidth": 0.9}
        ax.errorbar(*points[:2], points[2:], zorder=3, label=statistic, **look)
    ax.set(xscale="log", ylim=(-0.02, 1.02), xlabel="rows n")
    ax.set_title(alternative, loc="left", size="medium")
    ax.set_xticks(SIZES, [str(n) for n in SIZES], fontsize="small")
    ax.xaxis.set_minor_locator(NullLocator())
    ax.axhline(WANTED, color=PALE, linewidth=0.9, linestyle=(0, (4, 3)))


def _estimate(row: Row) -> tuple[float, float, float]:
    """Return a power, and how far below and above it its interval reaches."""
    found = binomtest(int(row["rejections"]), int(row["datasets"]))
    interval, rate = found.proportion_ci(0.95), found.statistic
    return rate, rate - interval.low, interval.high - rate


def _rows_needed(ax: Any, rows: list[Row], order: list[str]) -> None:
    for row in rows:
        y = order.index(row["statistic"])
        color = HIGHLIGHTED.get(row["statistic"], (BLACK, ""))[0]
        if not row["rows_for_80"]:
            ax.plot(4 * SIZES[-1], y, ">", color=PALE, markersize=5)
            continue
        low = max(float(row["low"]), SIZES[0] / 4.0)
        high = min(float(row["high"]), 4.0 * SIZES[-1])
        ax.plot([low, high], [y, y], color=color, linewidth=1.4)
        ax.plot(float(row["rows_for_80"]), y, "o", color=color, markersize=5)
    ax.set(xscale="log", xlim=(SIZES[0] / 4.0, 5.0 * SIZES[-1]), xlabel="rows for a power of 80 %")
    ax.set_yticks(range(len(order)), order, fontsize="small")
    ax.set_ylim(len(order) - 0.5, -0.5)
    ax.grid(axis="y", alpha=0.35, linewidth=0.7)
