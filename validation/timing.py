"""Widmann et al. 2019, Appendix J.4: time of the estimators against rows, for 2 to 1000 classes.

``python -m validation timing``: one thread, predictions Dir(0.1), kernel exp(−TV/ν)·I with the median
heuristic and with a given bandwidth, shortest of several runs. Published (Julia, one core of 3.6 GHz,
2019): SKCE_uq with the median, n = 1000: 23.5 ms of 10 classes and 176 ms of 1000; SKCE_ul, n = 1000,
10 classes: 24 µs, which is the estimate alone; ours is a whole call, input checked.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from time import perf_counter

import matplotlib.pyplot as plt
import numpy as np
from threadpoolctl import threadpool_limits

import caltest
from caltest.binning import MedianVariance, Uniform
from caltest.kernels import Exponential
from caltest.plots.canvas import BLACK, BLUE, VERMILION
from caltest.statistics import ECE, BiasedSKCE, LinearSKCE, Statistic, UnbiasedSKCE
from validation._cells import Options, Row, Table
from validation._study import markdown, save
from validation.generative import mixture

SEED = 20_190_422
SIZES = (50, 100, 250, 500, 1000)
CLASSES = (2, 10, 100, 1000)
ESTIMATORS: dict[str, Statistic] = {
    "ECE, uniform bins": ECE(Uniform(10)),
    "ECE, data-dependent bins": ECE(MedianVariance(5)),
    "SKCE_b, median": BiasedSKCE(Exponential("median_full")),
    "SKCE_uq, median": UnbiasedSKCE(Exponential("median_full")),
    "SKCE_ul, median": LinearSKCE(Exponential("median_full"), pairing="rows"),
    "SKCE_ul, bandwidth given": LinearSKCE(Exponential(0.5), pairing="rows"),
}
#: (estimator, classes): seconds for 1000 rows.
PUBLISHED = {
    ("SKCE_uq, median", 10): 0.0235,
    ("SKCE_uq, median", 1000): 0.176,
    ("SKCE_ul, bandwidth given", 10): 24e-6,
}
LOOKS = {2: (BLUE, "-"), 10: (VERMILION, (0, (5, 1.5)))}
LOOKS |= {100: ("#009E73", (0, (1.2, 1.2))), 1000: (BLACK, (0, (3, 1, 1, 1)))}


def shortest(call: Callable[[], float], seconds: float) -> tuple[float, int]:
    """Return the shortest time of a call, and of how many."""
    call()
    best, runs, start = np.inf, 0, perf_counter()
    while runs < 3 or perf_counter() - start < seconds:
        begun = perf_counter()
        call()
        best, runs = min(best, perf_counter() - begun), runs + 1
    return float(best), runs


def measure(n: int, m: int, seconds: float) -> list[Row]:
    """Time all estimators on one data set."""
    drawn = mixture(n, np.full(m, 0.1), pi=0.0, rng=np.random.SeedSequence(SEED, spawn_key=(n, m)))
    rows = []
    for name, statistic in ESTIMATORS.items():
        with threadpool_limits(1):
            best, runs = shortest(
                partial(caltest.estimate, drawn.probs, drawn.labels, statistic), seconds
            )
        published = PUBLISHED.get((name, m), "") if n == 1000 else ""
        what = {"estimator": name, "rows": n, "classes": m, "seed": SEED}
        numbers = {"seconds": best, "runs": runs, "published": published}
        rows.append({**what, "caltest": caltest.__version__, **numbers})
    return rows


def draw(rows: list[Row], path: Path) -> None:
    """Draw a panel for each estimator."""
    figure, axes = plt.subplots(
        2, 3, figsize=(10.5, 6.6), sharex=True, sharey=True, layout="constrained"
    )
    for ax, name in zip(axes.flat, ESTIMATORS, strict=True):
        for m, (color, style) in LOOKS.items():
            mine = sorted(
                (int(r["rows"]), float(r["seconds"]))
                for r in rows
                if r["estimator"] == name and int(r["classes"]) == m
            )
            ax.plot(
                *np.array(mine or [(np.nan, np.nan)]).T,
                "o",
                color=color,
                linestyle=style,
                linewidth=1.6,
                markersize=4,
                label=f"{m} classes",
            )
            if (name, m) in PUBLISHED:
                ax.plot(1000, PUBLISHED[name, m], "*", color=color, mfc="none", markersize=13)
        ax.set(xscale="log", yscale="log")
        ax.set_title(name, loc="left", size="medium")
        ax.spines[["top", "right"]].set_visible(False)
        ax.grid(axis="y", alpha=0.35, linewidth=0.7)
    for ax in axes[1]:
        ax.set_xlabel("rows n")
    figure.supylabel("seconds", size="medium")
    figure.legend(
        *axes[0, 0].get_legend_handles_labels(),
        loc="outside upper center",
        ncols=4,
        frameon=False,
        title="one thread, shortest run; star: published (Julia, 3.6 GHz, 2019)",
    )
    save(figure, path)


def run(options: Options) -> None:
    """Measure what is not in the table yet."""
    table = Table(options.results / "timing.csv", ("estimator", "rows", "classes", "seed"))
    for m in CLASSES[:2] if options.quick else CLASSES:
        for n in SIZES[:2] if options.quick else SIZES:
            if options.over or not options.wants(f"rows={n} classes={m}"):
                continue
            if not table.where(rows=n, classes=m, seed=SEED):
                table.put(measure(n, m, 0.0 if options.quick else 0.4))
    print(markdown([row for row in table.where(seed=SEED) if row["published"]] or table.where()))
    draw(table.where(seed=SEED), options.results / "timing.png")
