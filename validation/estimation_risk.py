"""Calibration estimation risk: does it find the truth, in which precision, and at what cost?

``python -m validation.estimation_risk simulation --trials 100``: 500 rows of five classes, truths
q ~ Dir(0.106, …, 0.106) (a model that states q is right for 80 % of the rows; of the source's setting
only rows, classes and the 100 trials are kept: the temperatures are ours), labels drawn from q. The
model states softmax(log q / t), t = 0.5 (overconfident) and 2 (underconfident). Risk of
Temperature(s), whose calibration curve is the truth for s = t, over a grid of s: the U-statistic and
the mean over disjoint pairs; mean and standard deviation over the trials. "excess" is the mean squared
error of h over the pairs of rows: the mean of risk(s) − risk(t), "gap", has to equal it. "least" counts
the trials in which the U-statistic is least at s. An h does not tell a calibration curve from its
negative, so there is a second, shallower minimum at the temperature whose curve is about the negative.

``python -m validation.estimation_risk precision``: DenseNet-40 on CIFAR-10, top-label, 6400 training
and 1600 validation rows in each of five folds, "published" scaling. √risk × 100 for every λ by the
package, and by the dense formulas with the kernel matrix and its eigenvalues in single precision.

``python -m validation.estimation_risk cost``: seconds and megabytes of Kronecker ridge regression on
one fold (6400 training, 1600 validation, 2000 test rows): the decomposition with the features of all
rows, and every λ after it (risk on the validation rows, h(g, g) on the test rows), λ = 1e8 to 1e-9 in
half steps. Processor time of one thread; medians of ``--runs``, one for a hundred classes. "9_values"
is the decomposition and nine λ spread evenly, "1_values" the decomposition and the largest λ alone.
"""

from __future__ import annotations

import argparse
import tracemalloc
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from time import process_time
from typing import Any

import joblib
import matplotlib.pyplot as plt
import numpy as np
from matplotlib.ticker import NullFormatter
from numpy.typing import NDArray
from scipy.special import softmax
from threadpoolctl import threadpool_limits

from caltest.estimation import (
    EstimationFunction,
    KroneckerKernelRidge,
    Temperature,
    TwoStepKernelRidge,
    risk,
)
from caltest.plots.canvas import BLACK, BLUE, FAINT, NARROW_BAND, VERMILION
from validation._study import REFERENCE, command_line, markdown, save, write_csv

Array = NDArray[np.float64]
Labels = NDArray[np.intp]
Row = dict[str, Any]

TRUE = (0.5, 2.0)
GRID = np.geomspace(0.25, 4.0, 33)  # 0.5 and 2 are on it
ROWS, CLASSES, CONCENTRATION = 500, 5, 0.106
TRAINING, VALIDATION = 6400, 1600  # of 10 000 rows
KINDS = {"u": "U-statistic, all pairs", "linear": "disjoint pairs"}
LOOKS = {"u": (BLUE, "-"), "linear": (VERMILION, (0, (5, 1.5)))}
COUNTS = (1, 9, 18, 35)


def residuals(probs: Array, labels: Labels) -> Array:
    """Return the residuals (n, k) of labels: for two classes of class 1 alone."""
    if probs.shape[1] == 2:
        return np.asarray(labels[:, None] - probs[:, 1:])
    return np.asarray(np.eye(probs.shape[1])[labels] - probs)


# ------------------------------------------------------------------ simulation


def linear_risk(gram: Array, probs: Array, labels: Labels) -> float:
    """Return the risk of h, given at all pairs, from the disjoint pairs (0, 1), (2, 3), … of rows."""
    own, first = residuals(probs, labels), np.arange(0, len(probs) // 2 * 2, 2)
    products = np.einsum("ik,ik->i", own[first], own[first + 1])
    return float(np.mean((products - gram[first, first + 1]) ** 2))


def trial(seed: np.random.SeedSequence) -> Array:
    """Return risk, linear risk and mean squared error of h, (temperatures, 3, grid)."""
    rng = np.random.default_rng(seed)
    truth = rng.dirichlet(np.full(CLASSES, CONCENTRATION), ROWS).clip(1e-300)
    labels = (rng.random((ROWS, 1)) > truth.cumsum(axis=1)[:, :-1]).sum(axis=1)
    pairs = ~np.eye(ROWS, dtype=bool)
    found = np.empty((len(TRUE), 3, len(GRID)))
    with threadpool_limits(1):
        for place, true in enumerate(TRUE):
            probs = softmax(np.log(truth) / true, axis=1)
            right = Temperature(true).fit(probs, labels).gram(probs, probs)
            for number, temperature in enumerate(GRID):
                h = Temperature(temperature).fit(probs, labels)
                gram = h.gram(probs, probs)
                gap = np.mean((gram - right)[pairs] ** 2)
                risks = risk(h, probs, labels), linear_risk(gram, probs, labels)
                found[place, :, number] = *risks, gap
    return found


def simulation(options: argparse.Namespace) -> list[Row]:
    """Repeat the trial; draw the picture."""
    seeds = np.random.SeedSequence(options.seed).spawn(options.trials)
    tasks = (joblib.delayed(trial)(seed) for seed in seeds)
    found = np.array(joblib.Parallel(n_jobs=options.jobs)(tasks))
    rows = []
    for place, true in enumerate(TRUE):
        best = int(np.abs(GRID - true).argmin())
        least = np.bincount(found[:, place, 0].argmin(axis=1), minlength=len(GRID))
        for number, temperature in enumerate(GRID):
            row: Row = {"true": true, "temperature": round(float(temperature), 4)}
            for kind, name in enumerate(KINDS):
                values = found[:, place, kind, number]
                row |= {f"{name}_mean": values.mean(), f"{name}_sd": values.std(ddof=1)}
                gaps = values - found[:, place, kind, best]
                row |= {f"{name}_gap_mean": gaps.mean(), f"{name}_gap_sd": gaps.std(ddof=1)}
            row |= {"excess": round(found[:, place, 2, number].mean(), 12), "least": int(least[number])}
            rows.append({key: _short(value) for key, value in row.items()} | {"trials": options.trials})
    draw(rows, options.results / "estimation_risk_simulation.png")
    return rows


def _short(value: Any) -> Any:
    return float(f"{value:.5g}") if isinstance(value, float | np.floating) else value


def draw(rows: list[Row], path: Path) -> None:
    """Draw both risks, and what they are above those of the truth; a column for each model."""
    figure, axes = plt.subplots(
        2, 2, figsize=(9.0, 6.8), sharex=True, sharey="row", layout="constrained"
    )
    for line, kind in zip(axes, ("", "_gap"), strict=True):
        for ax, true in zip(line, TRUE, strict=True):
            _draw_risks(ax, [row for row in rows if row["true"] == true], kind)
    for ax, true in zip(axes[0], TRUE, strict=True):
        kind = "overconfident" if true < 1.0 else "underconfident"
        ax.set_title(f"The model states softmax(log q / {true:g}): {kind}", loc="left", size="medium")
        ax.set_ylim(bottom=0.0)
    for ax in axes[1]:
        ax.axhline(0.0, color=FAINT, linewidth=0.9, zorder=1)
        ax.set_xlabel("temperature of h")
    axes[0, 0].set(xscale="log", xlim=(GRID[0], GRID[-1]), ylabel="risk")
    axes[0, 0].set_xticks([0.25, 0.5, 1.0, 2.0, 4.0], ["0.25", "0.5", "1", "2", "4"])
    axes[0, 0].xaxis.set_minor_formatter(NullFormatter())
    axes[1, 0].set(ylabel="risk less that of the truth", ylim=(-0.0006, 0.0026))
    title = f"mean ± standard deviation over {rows[0]['trials']} data sets of {ROWS} rows; "
    title += "dotted upright: the model's temperature"
    handles = axes[0, 0].get_legend_handles_labels()
    figure.legend(*handles, loc="outside upper center", ncols=2, frameon=False, title=title)
    save(figure, path)


def _draw_risks(ax: Any, rows: list[Row], kind: str) -> None:
    for zorder, (name, (color, line)) in enumerate(LOOKS.items()):
        mean, sd = (np.array([row[f"{name}{kind}{key}"] for row in rows]) for key in ("_mean", "_sd"))
        look = {"color": color, "zorder": 4 - zorder}
        ax.fill_between(GRID, mean - sd, mean + sd, alpha=0.2, linewidth=0.0, **look)
        ax.plot(GRID, mean, linestyle=line, linewidth=1.8, label=KINDS[name], **look)
    ax.axvline(rows[0]["true"], color=BLACK, linewidth=1.1, linestyle=(0, (1.2, 1.8)), zorder=2)
    ax.spines[["top", "right"]].set_visible(False)
    ax.grid(axis="y", color=NARROW_BAND, alpha=0.35, linewidth=0.7)


# ------------------------------------------------------------------ networks


def densenet40(dtype: type = np.float64) -> tuple[Array, Labels]:
    """Return predictions and labels, in the published order."""
    with np.load(REFERENCE / "cifar10_densenet40_logits.npz") as arrays:
        probs = softmax(arrays["test_logits"].astype(dtype), axis=1)
        labels = arrays["test_labels"].ravel()
    order = np.random.RandomState(0).choice(len(labels), len(labels), replace=False)
    return probs[order], labels[order]


def cifar100() -> tuple[Array, Labels]:
    """Return predictions and labels of one hundred classes."""
    with np.load(REFERENCE / "cifar100_densenet_bc_100.npz") as arrays:
        probs, labels = arrays["probs"].astype(np.float64), arrays["labels"].ravel()
    return probs / probs.sum(axis=1, keepdims=True), labels


def top_label(probs: Array, labels: Labels) -> tuple[Array, Labels]:
    """Return confidences and whether the top class was right."""
    confidence = probs.max(axis=1)
    return np.column_stack([1 - confidence, confidence]), (probs.argmax(axis=1) == labels).astype(int)


# ------------------------------------------------------------------ precision


def shares(rows: int) -> tuple[int, int, int]:
    """Return how many rows are for training, validation and test."""
    training, validation = rows * TRAINING // 10_000, rows * VALIDATION // 10_000
    return training, validation, rows - training - validation


def dense_single(train: Array, fold: Array, r: Array, own: Array) -> Callable[[float, bool], float]:
    """Return the risk for c, of the Kronecker or the two-step ridge, all in single precision."""

    def kernel(a: Array, b: Array) -> Any:
        return np.exp(-((a[:, None].astype(np.float32) - b[None].astype(np.float32)) ** 2))

    r, own = r.astype(np.float32), own.astype(np.float32)
    values, vectors = np.linalg.eigh(kernel(train, train))
    phi, b = kernel(fold, train) @ vectors, vectors.T @ r
    products = np.outer(own, own)

    def found(c: float, kronecker: bool) -> float:
        c32 = np.float32(c)
        if kronecker:
            h = phi @ (np.outer(b, b) / (np.outer(values, values) + c32)) @ phi.T
        else:
            curve = phi @ (b / (values + c32))
            h = np.outer(curve, curve)
        gaps = (products - h).astype(np.float64)
        np.fill_diagonal(gaps, 0.0)
        return float(np.vdot(gaps, gaps) / (len(own) * (len(own) - 1.0)))

    return found


def precision(options: argparse.Namespace) -> list[Row]:
    """Compare the risks of every λ."""
    probs, labels = (each[: options.rows] for each in top_label(*densenet40(np.float32)))
    probs = probs.astype(np.float64)
    training, validation, _ = shares(len(probs))
    folds = np.array_split(np.arange(training + validation), 5)
    functions = (
        TwoStepKernelRidge(regularization_scaling="published"),
        KroneckerKernelRidge(regularization_scaling="published"),
    )
    found = {f.name: np.empty((2, 5, len(f.search_space(2)))) for f in functions}
    for number, fold in enumerate(folds):
        train = np.concatenate([rows for rows in folds if rows is not fold])
        r, own = (residuals(probs[rows], labels[rows]) for rows in (train, fold))
        single = dense_single(probs[train, 1], probs[fold, 1], r[:, 0], own[:, 0])
        for f in functions:
            values = f.search_space(2)
            surfaces = f.learned(probs[train], r, values)(probs[fold])
            for place, (value, surface) in enumerate(zip(values, surfaces, strict=True)):
                c = value * training ** f.powers["published"]
                found[f.name][0, number, place] = surface.risk(own)
                found[f.name][1, number, place] = single(c, f.name == "kronecker_ridge")
        print(f"fold {number}", flush=True)
    roots = {name: 100.0 * np.sqrt(each).mean(axis=1) for name, each in found.items()}
    return [
        {"function": f.name, "regularization": _short(value), "package": _short(a), "single": _short(b)}
        for f in functions
        for value, a, b in zip(f.search_space(2), *roots[f.name], strict=True)
    ]


# ------------------------------------------------------------------ cost


def cost(options: argparse.Namespace) -> Iterable[Row]:
    """Yield a row for every data set."""
    ten, hundred = densenet40(), cifar100()
    sets = {
        "CIFAR-10, top-label": top_label(*ten),
        "CIFAR-10, ten classes": ten,
        "CIFAR-100, one hundred classes": hundred,
    }
    for name, (probs, labels) in sets.items():
        probs, labels = probs[: options.rows], labels[: options.rows]
        count = 1 if "hundred" in name else options.runs
        function = KroneckerKernelRidge()
        values = 10.0 ** np.arange(8.0, -9.5, -0.5)
        with threadpool_limits(1):
            runs = [_timed(function, values, probs, labels) for _ in range(count)]
            tracemalloc.start()
            rank = _timed(function, values[-1:], probs, labels)[2]
            peak = tracemalloc.get_traced_memory()[1] / 2**20
            tracemalloc.stop()
        decomposition = float(np.median([each[0] for each in runs]))
        each_value = np.median([each[1] for each in runs], axis=0)
        row: Row = {"data": name, "rank": rank, "decomposition": _short(decomposition)}
        row |= {"least_a_value": _short(each_value.min()), "most_a_value": _short(each_value.max())}
        for some in COUNTS:
            chosen = np.linspace(0, len(values) - 1, some).round().astype(int)[-some:]
            row[f"{some}_values"] = _short(decomposition + each_value[chosen].sum())
        print(row, flush=True)
        yield row | {"peak_mb": round(peak), "runs": count}


def _timed(
    function: EstimationFunction, values: Array, probs: Array, labels: Labels
) -> tuple[float, Array, int]:
    """Return seconds of what all values share, seconds of every value, and the rank."""
    r = (
        labels[:, None] - probs[:, 1:]
        if probs.shape[1] == 2
        else np.eye(probs.shape[1])[labels] - probs
    )
    training, validating, _ = shares(len(probs))
    train, fold, test = np.split(np.arange(len(probs)), [training, training + validating])
    start = process_time()
    surfaces = function.learned(probs[train], r[train], values.tolist())
    paths = zip(surfaces(probs[fold]), surfaces(probs[test]), strict=True)
    seconds, rank = [], 0
    for validation, held_out in paths:
        if not seconds:
            rank = surfaces.args[0].values.size  # type: ignore[attr-defined]
            shared, start = process_time() - start, process_time()
        validation.risk(r[fold])
        held_out.diagonal()
        seconds.append(process_time() - start)
        start = process_time()
    return shared, np.array(seconds), rank


STUDIES = {"simulation": simulation, "precision": precision, "cost": cost}


def parsed(arguments: Sequence[str] | None = None) -> argparse.Namespace:
    """Return the options."""
    given = command_line(__doc__, seed=20_241_009)
    given.add_argument("study", choices=STUDIES)
    given.add_argument("--trials", type=int, default=100, help="of simulation")
    given.add_argument("--runs", type=int, default=3, help="of cost")
    given.add_argument("--rows", type=int, help="of precision and cost: the first so many (all)")
    return given.parse_args(arguments)


def main(arguments: Sequence[str] | None = None) -> None:
    """Run one study; write its CSV, print the table."""
    options = parsed(arguments)
    rows = list(STUDIES[options.study](options))
    write_csv(rows, options.results / f"estimation_risk_{options.study}.csv")
    print(markdown(rows))


if __name__ == "__main__":
    main()
