"""Figures 2 and 4(a) of Moskvichev and Sejdinovic (2025): ranking by CKCE, JKCE and ECE, and shift.

``python -m validation.ckce_figures ranking`` and ``… shift`` write a PNG and a CSV each.

ranking, Figure 2: truths g ~ Dir(0.1, …, 0.1) of ten classes, labels drawn from them. Two models are
calibrated, g itself and the marginal (0.1, …, 0.1); two are not, softmax(clr(g)/t) with t = 2
(underconfident) and t = 0.5 (overconfident). How often is the error of the calibrated model strictly
below that of the miscalibrated one, on the same rows and labels? The text does not list the sample
sizes: six are taken.

shift, Figure 4(a): x in [−1, 1] from a truncated normal of scale 0.25 and location α; 1000 labels with
P(Y = 1 | x) = 1/(1 + exp(−x)); the model says 1/(1 + exp(−5x)). Only P(x) depends on α. The source
draws one data set for each α; here every trial does, the first is shown as points, and the means and
the central 90 % of all are added. The text does not list the α: steps of 0.05 are taken.

Both: kernel p·q + exp(−‖p − q‖²/(2γ²)) for CKCE and JKCE, λ = n^(−1/4), ECE with three bins on each
axis and the L1 distance. The text says that γ is chosen by the median heuristic but not by which: half
the median distance is taken, which reproduces the published JKCE. JKCE is the unbiased estimate. CKCE
is exact for ten classes, where the default features would err by up to 6 %; for two, whose predictions
lie on a line, incomplete Cholesky factorisation gives the same to rounding.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from time import perf_counter
from typing import Any

import joblib
import matplotlib.pyplot as plt
import numpy as np
from matplotlib.ticker import NullLocator
from numpy.typing import NDArray
from scipy import special
from scipy.stats import truncnorm
from statsmodels.stats.proportion import proportion_confint
from threadpoolctl import threadpool_limits

from caltest.binning import Uniform
from caltest.data import Rows
from caltest.kernels import LinearGaussian
from caltest.plots.canvas import BLACK, BLUE, FAINT, NARROW_BAND, PALE, VERMILION
from caltest.statistics import CKCE, ECE, JKCE
from validation._study import command_line, markdown, save, write_csv
from validation.generative import m1

Array = NDArray[np.float64]
Row = dict[str, Any]
Draw = Callable[[np.random.SeedSequence], Any]

SIZES = (50, 100, 200, 500, 1000, 2000)
CLASSES = 10
CALIBRATED = {"truth": "calibrated: the truth", "marginal": "calibrated: the marginal"}
MISCALIBRATED = {"under": "underconfident (t = 2)", "over": "overconfident (t = 0.5)"}

SHIFTS = np.linspace(-1.0, 1.0, 41)
SHIFTED_ROWS = 1000
SCALE = 0.25
SHARE = 0.9  # of the trials between the ends of a band

LOOKS: dict[str, Row] = {
    "CKCE": {"color": BLUE, "marker": "o", "linestyle": "-"},
    "JKCE": {"color": VERMILION, "marker": "s", "linestyle": (0, (5, 1.5))},
    "ECE": {"color": BLACK, "marker": "^", "linestyle": (0, (1.2, 1.2))},
}


def errors(probs: Array, labels: NDArray[np.intp], method: str) -> dict[str, float]:
    """Estimate the three calibration errors of a model."""
    kernel = LinearGaussian(0.5 * LinearGaussian().fitted(probs).bandwidth)
    statistics = {
        "CKCE": CKCE(kernel, method=method),
        "JKCE": JKCE(kernel),
        "ECE": ECE(Uniform(3), distance="l1"),
    }
    predictions = Rows(probs)
    return {name: each.given(predictions).value(labels) for name, each in statistics.items()}


def trials(draw: Draw, count: int, key: tuple[int, ...], parallel: joblib.Parallel) -> list[Any]:
    """Run ``draw`` as often as asked; a trial's seed depends on the key and its number only."""
    seeds = (np.random.SeedSequence(key[0], spawn_key=(*key[1:], trial)) for trial in range(count))
    return list(parallel(joblib.delayed(_single_threaded)(draw, seed) for seed in seeds))


def _single_threaded(draw: Draw, seed: np.random.SeedSequence) -> Any:
    with threadpool_limits(1):
        return draw(seed)


# ------------------------------------------------------------------ Figure 2


def models(truth: Array) -> dict[str, Array]:
    """Return the stated probabilities."""
    logits = np.log(truth)  # clr(truth) but for a number a row, which softmax forgets
    return {
        "truth": truth,
        "marginal": np.full_like(truth, 1.0 / CLASSES),
        "under": special.softmax(logits / 2.0, axis=1),
        "over": special.softmax(logits / 0.5, axis=1),
    }


def ranked(n: int, seed: np.random.SeedSequence) -> dict[str, dict[str, float]]:
    """Estimate the errors of all four models on one data set."""
    drawn = m1(n, CLASSES, rng=seed)
    return {name: errors(probs, drawn.labels, "exact") for name, probs in models(drawn.truth).items()}


def proportions(options: argparse.Namespace, parallel: joblib.Parallel) -> list[Row]:
    """Count how often a calibrated model is below a miscalibrated one, with Wilson intervals."""
    rows, count = [], options.trials
    for n in options.sizes:
        start = perf_counter()
        found = trials(partial(ranked, n), count, (options.seed, 2, n), parallel)
        print(f"Figure 2, n = {n}: {perf_counter() - start:.0f} s", flush=True)
        for good in CALIBRATED:
            for bad in MISCALIBRATED:
                for statistic in LOOKS:
                    below = sum(each[good][statistic] < each[bad][statistic] for each in found)
                    low, high = proportion_confint(below, count, method="wilson")
                    what = {"statistic": statistic, "calibrated": good, "miscalibrated": bad, "n": n}
                    ends = {"low": round(low, 4), "high": round(high, 4)}
                    rows.append(
                        what | {"trials": count, "below": below, "proportion": below / count} | ends
                    )
    return rows


def draw_figure_2(rows: list[Row], path: Path) -> None:
    """Draw a panel for each pair of models."""
    figure, axes = plt.subplots(
        2, 2, figsize=(9.0, 6.8), sharex=True, sharey=True, layout="constrained"
    )
    for line, (good, above) in zip(axes, CALIBRATED.items(), strict=True):
        for ax, (bad, right) in zip(line, MISCALIBRATED.items(), strict=True):
            ax.axhline(0.5, color=FAINT, linewidth=0.9, linestyle=(0, (4, 3)), zorder=1)
            for place, statistic in enumerate(LOOKS):
                names = {"statistic": statistic, "calibrated": good, "miscalibrated": bad}
                _draw_proportions(ax, [row for row in rows if names.items() <= row.items()], place - 1)
            ax.set_title(f"{above}\nagainst {right}", loc="left", size="medium")
    for ax in axes[1]:
        ax.set_xlabel("rows n")
    axes[0, 0].set(xscale="log", ylim=(-0.03, 1.03), yticks=np.linspace(0.0, 1.0, 6))
    sizes = sorted({row["n"] for row in rows})
    axes[0, 0].set_xticks(sizes, [f"{n:,}" for n in sizes])
    axes[0, 0].xaxis.set_minor_locator(NullLocator())
    figure.supylabel(
        "share of trials in which the calibrated model has the smaller error", size="medium"
    )
    handles = axes[0, 0].get_legend_handles_labels()
    title = f"{rows[0]['trials']} trials, 95 % Wilson intervals; dashed: a coin's toss"
    figure.legend(*handles, loc="outside upper center", ncols=3, frameon=False, title=title)
    _save(figure, path)


def _draw_proportions(ax: Any, rows: list[Row], place: int) -> None:
    """Draw one curve, set aside a little so that intervals do not cover each other."""
    n, share, low, high = (
        np.array([row[key] for row in rows]) for key in ("n", "proportion", "low", "high")
    )
    look = {"markersize": 5.5, "linewidth": 1.4, "elinewidth": 1.4, "capsize": 3.0, "zorder": 3}
    name = rows[0]["statistic"]
    ax.errorbar(n * 1.09**place, share, [share - low, high - share], label=name, **look, **LOOKS[name])


# ------------------------------------------------------------------ Figure 4(a)


def inputs(shift: float) -> Any:
    """Return the distribution of x."""
    ends = (np.array([-1.0, 1.0]) - shift) / SCALE
    return truncnorm(*ends, loc=shift, scale=SCALE)


def shifted(shift: float, seed: np.random.SeedSequence) -> dict[str, float]:
    """Estimate the errors of the model on one data set."""
    rng = np.random.default_rng(seed)
    x = inputs(shift).rvs(SHIFTED_ROWS, random_state=rng)
    labels = (rng.random(SHIFTED_ROWS) < special.expit(x)).astype(np.intp)
    return errors(np.column_stack([special.expit(-5.0 * x), special.expit(5.0 * x)]), labels, "nystrom")


def under_shift(options: argparse.Namespace, parallel: joblib.Parallel) -> list[Row]:
    """Estimate the errors for every location."""
    rows, count = [], options.trials
    start = perf_counter()
    for number, shift in enumerate(SHIFTS):
        found = trials(partial(shifted, shift), count, (options.seed, 4, number), parallel)
        for statistic in LOOKS:
            values = np.array([each[statistic] for each in found])
            low, high = np.quantile(values, [0.5 - SHARE / 2, 0.5 + SHARE / 2])
            estimates = {"first": values[0], "mean": values.mean(), "low": low, "high": high}
            what = {
                "statistic": statistic,
                "alpha": round(shift, 3),
                "n": SHIFTED_ROWS,
                "trials": count,
            }
            rows.append(what | {key: float(f"{value:.5g}") for key, value in estimates.items()})
    print(f"Figure 4(a): {perf_counter() - start:.0f} s", flush=True)
    return rows


def draw_figure_4a(rows: list[Row], path: Path) -> None:
    """Draw the setting, the estimates, and the estimates over their means."""
    figure, axes = plt.subplots(1, 3, figsize=(11.5, 4.4), layout="constrained")
    _draw_setting(axes[0])
    for name, look in LOOKS.items():
        mine = [row for row in rows if row["statistic"] == name]
        first, *curves = (
            np.array([row[key] for row in mine]) for key in ("first", "mean", "low", "high")
        )
        _draw_estimates(axes[1], *curves, look)
        _draw_estimates(axes[2], *(curve / curves[0].mean() for curve in curves), look)
        axes[1].plot(SHIFTS, first, **look | {"linestyle": "none"}, markersize=3.5)
        axes[1].plot([], [], label=name, **look)
    axes[1].set_title("Estimates, unscaled", loc="left", size="medium")
    axes[1].set_ylim(bottom=0.0)
    axes[2].set_title("Estimates, each over its mean over α", loc="left", size="medium")
    axes[2].set_ylim(bottom=0.0)
    for ax in axes[1:]:
        ax.set(xlabel="location α of the inputs", xlim=(-1.04, 1.04))
    title = f"points: one data set of {SHIFTED_ROWS:,} rows for each α; lines and bands: mean and "
    title += f"central {100 * SHARE:.0f} % of {rows[0]['trials']} trials"
    handles = axes[1].get_legend_handles_labels()
    figure.legend(*handles, loc="outside upper center", ncols=3, frameon=False, title=title)
    _save(figure, path)


def _draw_setting(ax: Any) -> None:
    x = np.linspace(-1.0, 1.0, 201)
    for shift in (-1.0, 0.0, 1.0):
        density = inputs(shift).pdf(x)
        ax.fill_between(x, 0.3 * density / density.max(), color=PALE, linewidth=0.0)
    ax.plot(x, special.expit(x), color=BLACK, linewidth=2.0)
    ax.plot(x, special.expit(5.0 * x), color=BLUE, linewidth=2.0)
    ax.annotate("truth", (-0.95, 0.35), color=BLACK)
    ax.annotate("model", (0.18, 0.85), color=BLUE, ha="right")
    ax.set(ylim=(0.0, 1.0), xlim=(-1.04, 1.04), xlabel="x", ylabel="P(Y = 1 | x)")
    ax.set_title("Setting; grey: x for α = −1, 0, 1", loc="left", size="medium")


def _draw_estimates(ax: Any, mean: Array, low: Array, high: Array, look: Row) -> None:
    """Draw the mean, and a band between the ends."""
    ax.fill_between(SHIFTS, low, high, color=look["color"], alpha=0.18, linewidth=0.0)
    ax.plot(SHIFTS, mean, color=look["color"], linestyle=look["linestyle"], linewidth=1.8)


def _save(figure: Any, path: Path) -> None:
    for ax in figure.axes:
        ax.spines[["top", "right"]].set_visible(False)
        ax.grid(axis="y", color=NARROW_BAND, alpha=0.35, linewidth=0.7)
        ax.set_axisbelow(True)
    save(figure, path)


STUDIES = {
    "ranking": (proportions, draw_figure_2, "ckce_figure2"),
    "shift": (under_shift, draw_figure_4a, "ckce_figure4a"),
}


def parsed(arguments: Sequence[str] | None = None) -> argparse.Namespace:
    """Return the options."""
    given = command_line(__doc__, seed=20_250_217)
    given.add_argument("study", choices=STUDIES)
    given.add_argument("--trials", type=int, default=100)
    given.add_argument("--sizes", type=int, nargs="+", default=list(SIZES), help="of ranking")
    return given.parse_args(arguments)


def main(arguments: Sequence[str] | None = None) -> None:
    """Run one study; write the CSV and the picture, print the table."""
    options = parsed(arguments)
    study, draw, name = STUDIES[options.study]
    with joblib.Parallel(n_jobs=options.jobs) as parallel:
        rows = study(options, parallel)
    write_csv(rows, options.results / f"{name}.csv")
    draw(rows, options.results / f"{name}.png")
    print(markdown(rows), flush=True)


if __name__ == "__main__":
    main()
