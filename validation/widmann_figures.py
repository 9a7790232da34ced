"""Pictures of Widmann et al. 2019: Figures 1 and 2, and Appendices J.2.3 and J.2.4 on a page each.

Run by ``python -m validation widmann`` on what is done so far; numbers of data sets are in the titles.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.ticker import MaxNLocator
from scipy.stats import beta as beta_distribution

from caltest.plots.canvas import BLACK, BLUE, FAINT, NARROW_BAND, VERMILION
from validation._cells import Options, Row, Table
from validation._study import REFERENCE, save
from validation.generative import true_ece_tv, true_skce
from validation.widmann import LEVELS, MODELS, SEED, Design, tables
from validation.widmann_compared import TESTS, once, read, where

GREEN, PURPLE, SKY = "#009E73", "#CC79A7", "#56B4E9"  # of the same palette

ESTIMATORS = {
    "ECE_uniform": "ECE, uniform bins",
    "ECE_dynamic": "ECE, data-dependent bins",
    "SKCEb_median": "SKCE_b",
    "SKCEuq_median": "SKCE_uq",
    "SKCEul_median": "SKCE_ul",
}
#: Rows of Figure 2: name of a method, colour, line.
CURVES = {
    "bounds": (
        ("D_b median", BLUE, "-"),
        ("D_uq median", VERMILION, (0, (5, 1.5))),
        ("D_ul median", GREEN, (0, (1.2, 1.2))),
    ),
    "approximations": (
        ("A_uq median", BLUE, "-"),
        ("A_ul median", VERMILION, (0, (5, 1.5))),
        ("C_uniform", GREEN, (0, (1.2, 1.2))),
        ("C_dynamic", PURPLE, (0, (3, 1, 1, 1))),
    ),
    "ours": (
        ("exact_uq median", BLUE, "-"),
        ("moments_uq median", SKY, (0, (5, 1.5))),
        ("moments_ul median", VERMILION, (0, (3, 1, 1, 1))),
        ("exact_uniform", GREEN, (0, (1.2, 1.2))),
        ("exact_dynamic", PURPLE, (0, (1.2, 1.2))),
    ),
}
LOOKS = {2: (BLUE, "-"), 10: (VERMILION, (0, (5, 1.5))), 100: (GREEN, (0, (1.2, 1.2)))}
LOOKS |= {1000: (BLACK, (0, (3, 1, 1, 1)))}
APPENDIX = (
    *(name for name, _, _ in (*CURVES["bounds"], *CURVES["approximations"])),
    "exact_uq median",
    "moments_uq median",
)


def truth(design: Design, estimator: str) -> float:
    """Return the true value of what is estimated; SKCE with the median distance as bandwidth."""
    return _true_ece(design) if estimator.startswith("ECE") else _true_skce(design)


def _true_ece(design: Design) -> float:
    return true_ece_tv(*design.parameters(), design.pi)


@cache
def _true_skce(design: Design) -> float:
    draws = min(200_000, max(2000, 2_000_000 // design.m))  # a standard error of 0.3 % for M3
    g, other = np.random.default_rng(0).dirichlet(design.parameters()[0], (2, draws))
    median = float(np.median(0.5 * np.abs(g - other).sum(axis=1)))
    return true_skce(*design.parameters(), design.pi, bandwidth=median, n_draws=draws).value


def _save(figure: Any, path: Path, dpi: int = 100) -> None:
    for ax in figure.axes:
        ax.spines[["top", "right"]].set_visible(False)
    save(figure, path, dpi)


def _published(name: str) -> list[Row]:
    return once(read(name)) if REFERENCE.is_dir() else []


# ------------------------------------------------------------------ Figure 1


def figure_1(estimates: Table, path: Path) -> None:
    """Draw the distributions of the estimates, their means and the true values."""
    published = _published("widmann2019_mean_estimates.csv")
    figure, axes = plt.subplots(5, 3, figsize=(10.5, 6.6), layout="constrained")
    for line, (name, title) in zip(axes, ESTIMATORS.items(), strict=True):
        for ax, (model, design) in zip(line, MODELS.items(), strict=True):
            (row,) = estimates.where(**design.columns, estimator=name, seed=SEED)
            _interval(ax, {key: float(row[key]) for key in row if key[0] == "q" or key == "mean"})
            theirs = [r for r in published if r["estimator"] == name and _same(r, design)]
            for each in theirs[:1]:
                ax.plot(float(each["mean_estimate"]), 0.0, "o", color=BLACK, mfc="none", markersize=9)
            ax.axvline(truth(design, name), color=VERMILION, linewidth=1.4, linestyle=(0, (4, 2)))
            ax.set(yticks=[], ylim=(-0.6, 0.6))
            ax.xaxis.set_major_locator(MaxNLocator(4))
            if name == "ECE_uniform":
                ax.set_title(f"{model}, {int(row['datasets']):,} data sets", loc="left", size="medium")
            if model == "M1":
                ax.set_ylabel(title, rotation=0, ha="right", va="center")
    figure.supxlabel(
        "estimate: 1 to 99 % (thin), 5 to 95 %, 25 to 75 % (thick) and mean (blue line); "
        "dashed: the truth; circle: published mean",
        size="medium",
    )
    _save(figure, path)


def _same(row: Row, design: Design) -> bool:
    columns = where(row)
    return all(str(columns[key]) == str(value) for key, value in design.columns.items())


def _interval(ax: Any, q: dict[str, float]) -> None:
    for low, high, width in (("0.01", "0.99", 1.2), ("0.05", "0.95", 4.0), ("0.25", "0.75", 10.0)):
        ends = [q[f"q{low}"], q[f"q{high}"]]
        ax.plot(ends, [0.0, 0.0], color=NARROW_BAND, linewidth=width, solid_capstyle="butt")
    ax.plot([q["mean"]] * 2, [-0.35, 0.35], color=BLUE, linewidth=2.0)


# ------------------------------------------------------------------ Figure 2


def curve(errors: Table, design: Design, method: str) -> tuple[np.ndarray, int] | None:
    """Return the test errors at all levels, and the number of data sets."""
    known = errors.where(**design.columns, method=method, seed=SEED)
    if not known:
        return None
    n = int(known[0]["datasets"])
    rejected = np.array([int(known[0][f"p<={level:g}"]) / n for level in LEVELS])
    return (rejected if design.pi == 0.0 else 1.0 - rejected), n


def figure_2(errors: Table, path: Path) -> None:
    """Draw test errors against the level, published numbers as circles."""
    published = _published("widmann2019_test_errors.csv")
    theirs = {ours: test for test, (ours, _, _) in TESTS.items()}
    figure, axes = plt.subplots(
        3, 3, figsize=(10.5, 9.6), sharex=True, sharey=True, layout="constrained"
    )
    for line, (title, methods) in zip(axes, CURVES.items(), strict=True):
        for ax, (model, design) in zip(line, MODELS.items(), strict=True):
            _diagonal(ax)
            for method, color, style in methods:
                found = curve(errors, design, method)
                if found is None:
                    continue
                values, n = found
                label = f"{method.removesuffix(' median')} ({n:,})"
                ax.plot(LEVELS, values, color=color, linestyle=style, linewidth=1.7, label=label)
                points = [
                    (float(row["level"]), float(row["error"]))
                    for row in published
                    if row["test"] == theirs.get(method) and _same(row, design)
                ]
                ax.plot(*np.array(points or [(np.nan, np.nan)]).T, "o", color=color, mfc="none")
            if title == "bounds":
                kind = "type I error" if design.pi == 0.0 else "type II error"
                ax.set_title(f"{model}: {kind}", loc="left", size="medium")
            if model == "M1":
                ax.set_ylabel(title)
            if model == "M3":
                ax.legend(frameon=False, loc="upper left", bbox_to_anchor=(1.0, 1.0), fontsize="small")
    figure.supxlabel(
        "level; circles: published (10⁴ data sets); in brackets: our data sets", size="medium"
    )
    _save(figure, path)


def _diagonal(ax: Any) -> None:
    ax.plot([0.0, 1.0], [0.0, 1.0], color=FAINT, linewidth=0.9, linestyle=(0, (4, 3)), zorder=1)


# ------------------------------------------------------------------ the appendix


def appendix_estimates(estimates: Table, path: Path) -> None:
    """Draw J.2.3: estimates against the number of classes."""
    published = _published("widmann2019_mean_estimates.csv")
    lines = [(alpha, beta) for alpha in (0.1, 1.0) for beta in ("uniform", "e1")]
    figure, axes = plt.subplots(4, 5, figsize=(13.0, 9.5), sharex=True, layout="constrained")
    shifts = {0.0: 0.85, 0.5: 1.0, 1.0: 1.18}
    colors = {0.0: BLUE, 0.5: VERMILION, 1.0: BLACK}
    for place, (line, (alpha, beta)) in enumerate(zip(axes, lines, strict=True)):
        for ax, (name, title) in zip(line, ESTIMATORS.items(), strict=True):
            for pi, shift in shifts.items():
                for m in LOOKS:
                    design = Design(alpha, beta if pi else "any", m, pi)
                    _mark(ax, estimates, published, design, name, m * shift, colors[pi])
            if place == 0:
                ax.set_title(title, loc="left", size="medium")
        line[0].set_ylabel(f"α = {alpha:g}, β {'uniform' if beta == 'uniform' else '= e₁'}")
    axes[0, 0].set_xscale("log")  # of all, for they share it
    axes[0, 0].set_xticks(list(LOOKS), [str(m) for m in LOOKS])
    axes[0, 0].minorticks_off()
    handles = [axes[0, 0].plot([], [], "o", color=color)[0] for color in colors.values()]
    names = [f"π = {pi:g}" for pi in colors]
    text = "mean and 5 to 95 % of the estimates; circle: published mean; dash: the truth"
    figure.legend(handles, names, loc="outside upper center", ncols=3, frameon=False, title=text)
    figure.supxlabel("classes m", size="medium")
    _save(figure, path)


def _mark(
    ax: Any, estimates: Table, published: list[Row], design: Design, name: str, x: float, color: str
) -> None:
    for row in estimates.where(**design.columns, estimator=name, seed=SEED):
        ax.plot([x, x], [float(row["q0.05"]), float(row["q0.95"])], color=color, linewidth=1.6)
        ax.plot(x, float(row["mean"]), "o", color=color, markersize=4)
        ax.plot(x, truth(design, name), "_", color=color, markersize=16, markeredgewidth=1.4)
    for row in published:
        if row["estimator"] == name and _same(row, design):
            ax.plot(x, float(row["mean_estimate"]), "o", color=color, mfc="none", markersize=9)


def appendix_errors(errors: Table, path: Path) -> None:
    """Draw J.2.4: test errors against the level, a line for every number of classes."""
    lines: Sequence[tuple[float, str, float]] = [
        (alpha, beta, pi)
        for pi in (0.0, 0.5, 1.0)
        for alpha in (0.1, 1.0)
        for beta in (("any",) if pi == 0.0 else ("uniform", "e1"))
        if any(errors.where(alpha=alpha, beta=beta, pi=pi, seed=SEED))
    ]
    figure, axes = plt.subplots(
        len(lines),
        len(APPENDIX),
        figsize=(14.5, 1.6 * len(lines) + 0.4),
        sharex=True,
        sharey=True,
        layout="constrained",
        squeeze=False,
    )
    for place, (line, (alpha, beta, pi)) in enumerate(zip(axes, lines, strict=True)):
        for ax, method in zip(line, APPENDIX, strict=True):
            _diagonal(ax)
            for m, (color, style) in LOOKS.items():
                found = curve(errors, Design(alpha, beta, m, pi), method)
                if found is not None:
                    ax.plot(LEVELS, found[0], color=color, linestyle=style, linewidth=1.4)
                    ax.fill_between(LEVELS, *_interval_of(*found), color=color, alpha=0.15, linewidth=0)
            if place == 0:
                ax.set_title(method.removesuffix(" median"), loc="left", size="medium")
        kind = "type I" if pi == 0.0 else "type II"
        model = f"π = {pi:g}" + ("" if pi == 0.0 else f", β {'uniform' if beta != 'e1' else '= e₁'}")
        line[0].set_ylabel(f"{kind} error\nα = {alpha:g}\n{model}", size="small")
    axes[0, 0].set(xticks=[0, 0.5, 1], yticks=[0, 0.5, 1])  # of all, for they share them
    styles = [axes[0, 0].plot([], [], color=c, linestyle=s)[0] for c, s in LOOKS.values()]
    names = [f"m = {m}" for m in LOOKS]
    text = "bands: 95 % intervals, level by level; where there is no line, nothing has been run"
    figure.legend(styles, names, loc="outside upper center", ncols=4, frameon=False, title=text)
    figure.supxlabel("level", size="medium")
    _save(figure, path, dpi=80)


def _interval_of(rates: np.ndarray, n: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the ends of Clopper–Pearson intervals of rates in n data sets."""
    counts = np.rint(rates * n)
    low = np.nan_to_num(beta_distribution.ppf(0.025, counts, n - counts + 1), nan=0.0)
    return low, np.nan_to_num(beta_distribution.ppf(0.975, counts + 1, n - counts), nan=1.0)


def run(options: Options) -> None:
    """Draw what there is."""
    estimates, errors = tables(options)
    known = estimates.where(estimator="ECE_uniform", seed=SEED)
    if len([d for d in MODELS.values() if any(_same_columns(r, d) for r in known)]) == len(MODELS):
        figure_1(estimates, options.results / "widmann_figure1.png")
    figure_2(errors, options.results / "widmann_figure2.png")
    appendix_estimates(estimates, options.results / "widmann_j23.png")
    appendix_errors(errors, options.results / "widmann_j24.png")


def _same_columns(row: Row, design: Design) -> bool:
    return all(float(row[k]) == v if k != "beta" else row[k] == v for k, v in design.columns.items())
