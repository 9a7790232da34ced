"""Widmann et al. 2019, J.3: four networks on CIFAR-10, estimates and p-values beside published.

``python -m validation widmann_networks``: the 10 000 test predictions of each; ECE with ten uniform
bins and with median-variance bins of at least 100 rows, SKCE with the median of the full distance
matrix. "published" p-values are compared with ours in the authors' conventions ("theirs":
Hoeffding's t² for negative t too, b/B of 1000 resamples, ddof = 0) and in ours. The difference of
resampled p-values is a matter of chance: where both are below 0.01 it counts as agreement. The
rows' sums are off by up to 4e-7; ours renormalises them, which moves estimates by as much:
``widmann_networks_rows.csv`` has the estimates from the rows as they are too, which agree to 1e-9.
"exact" (999 draws) and "moments" are ours, without a published counterpart.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path
from time import perf_counter
from typing import Any

import matplotlib.pyplot as plt
import numpy as np

import caltest
from caltest.binning import MedianVariance, Uniform
from caltest.data import Rows
from caltest.kernels import Exponential
from caltest.nulls import Bound, NormalApproximation
from caltest.plots.canvas import BLACK, BLUE, NARROW_BAND, VERMILION
from caltest.results import CalibrationResult
from caltest.statistics import ECE, BiasedSKCE, LinearSKCE, UnbiasedSKCE
from validation._cells import Options, Row, Table
from validation._study import REFERENCE, markdown, save, write_csv
from validation.widmann_compared import read

SEED = 20_190_421
NETWORKS = ("densenet121", "resnet18", "vgg19_bn", "googlenet")
KERNEL = Exponential("median_full")
STATISTICS = {
    "ECE_uniform": ECE(Uniform(10)),
    "ECE_dynamic": ECE(MedianVariance(100)),
    "SKCEb_median": BiasedSKCE(KERNEL),
    "SKCEuq_median": UnbiasedSKCE(KERNEL),
    "SKCEul_median": LinearSKCE(KERNEL, pairing="rows"),
}
#: Tests: statistic, null, and whether their convention differs.
TESTS: dict[str, tuple[str, Any]] = {
    "ECE_uniform": ("ECE_uniform", "consistency"),
    "ECE_dynamic": ("ECE_dynamic", "consistency"),
    "SKCEb_median_distribution_free": ("SKCEb_median", Bound()),
    "SKCEuq_median_distribution_free": ("SKCEuq_median", Bound()),
    "SKCEul_median_distribution_free": ("SKCEul_median", Bound()),
    "SKCEuq_median_asymptotic": ("SKCEuq_median", "bootstrap"),
    "SKCEul_median_asymptotic": ("SKCEul_median", NormalApproximation()),
    "ECE_uniform exact": ("ECE_uniform", "monte_carlo"),
    "ECE_dynamic exact": ("ECE_dynamic", "monte_carlo"),
    "SKCEb_median moments": ("SKCEb_median", "moments"),
    "SKCEuq_median moments": ("SKCEuq_median", "moments"),
    "SKCEul_median moments": ("SKCEul_median", "moments"),
    "SKCEuq_median exact": ("SKCEuq_median", "monte_carlo"),
}


def of_network(network: str, rows: int | None, resamples: int) -> Iterator[Row]:
    """Run every test on a network; without ``rows``, beside the published numbers."""
    data = np.load(REFERENCE / f"cifar10_{network}.npz")
    probs, labels = data["probs"][:rows], data["labels"][:rows]
    whole = rows is None
    estimates = _of(network, "widmann2019_networks_errors.csv") if whole else {}
    pvalues = _of(network, "widmann2019_networks_pvalues.csv") if whole else {}
    for name, (statistic, null) in TESTS.items():
        start = perf_counter()
        test = partial(caltest.test, probs, labels, STATISTICS[statistic], rng=SEED)
        result = test(null=null, n_resamples=resamples)
        theirs = _theirs(result, test, name, len(labels))
        yield {
            "network": network,
            "test": name,
            "rows": len(labels),
            "resamples": resamples,
            "seed": SEED,
            "caltest": caltest.__version__,
            "estimate": f"{result.statistic:.12g}",
            "published_estimate": f"{float(estimates[statistic]):.12g}" if whole else "",
            "difference": f"{result.statistic - float(estimates[statistic]):.1e}" if whole else "",
            "pvalue": f"{result.pvalue:.8g}",
            "in_their_convention": f"{theirs:.8g}",
            "published_pvalue": f"{float(pvalues[name]):.8g}" if whole and name in pvalues else "",
            "seconds": round(perf_counter() - start, 2),
        }


def _of(network: str, name: str) -> Row:
    return next(row for row in read(name) if row["model"] == network)


def _theirs(result: CalibrationResult, test: Any, name: str, n: int) -> float:
    """Return the p-value in the published convention."""
    if name.endswith("distribution_free") and "SKCEb" not in name:
        return float(np.exp(-(n // 2) * result.statistic**2 / 8.0))
    if name == "SKCEul_median_asymptotic":
        return float(test(null=NormalApproximation(ddof=0)).pvalue)
    if result.exceedances is not None and result.n_resamples:
        return result.exceedances / result.n_resamples
    return float(result.pvalue)


def as_they_are(network: str, rows: int | None) -> Iterator[Row]:
    """Estimate from rows that are not renormalised, as the published code did."""
    data = np.load(REFERENCE / f"cifar10_{network}.npz")
    probs, labels = data["probs"][:rows], data["labels"][:rows]
    published = _of(network, "widmann2019_networks_errors.csv")
    for name, statistic in STATISTICS.items():
        raw = caltest.estimate(Rows(probs), labels, statistic)
        ours = caltest.estimate(probs, labels, statistic)
        theirs = float(published[name]) if rows is None else raw
        yield {
            "network": network,
            "estimator": name,
            "published": f"{theirs:.12g}" if rows is None else "",
            "rows_as_they_are": f"{raw:.12g}",
            "relative_difference": f"{abs(raw / theirs - 1.0):.1e}",
            "rows_renormalised": f"{ours:.12g}",
            "relative_difference_renormalised": f"{abs(ours / theirs - 1.0):.1e}",
            "row_sums_off_by": f"{np.abs(probs.sum(axis=1) - 1.0).max():.1e}",
        }


def agrees(row: Row) -> bool:
    """Whether estimate and p-value agree with what is published, up to the rows' renormalisation."""
    ours, published = float(row["estimate"]), float(row["published_estimate"])
    if abs(ours - published) > 1e-6 * abs(published):
        return False
    if row["published_pvalue"] == "":
        return True
    p, q = float(row["in_their_convention"]), float(row["published_pvalue"])
    return abs(p - q) < 1e-6 or max(p, q) < 0.01


def draw(rows: list[Row], path: Path) -> None:
    """Draw Figures 83 and 84: estimates and p-values."""
    figure, axes = plt.subplots(1, 3, figsize=(12.5, 4.8), layout="constrained")
    networks = [name for name in NETWORKS if any(row["network"] == name for row in rows)]
    names = ("ECE_uniform", "ECE_dynamic"), ("SKCEb_median", "SKCEuq_median", "SKCEul_median")
    for ax, group in zip(axes[:2], names, strict=True):
        labels = [(s, n) for s in group for n in networks]
        for y, (statistic, network) in enumerate(labels):
            row = next(r for r in rows if r["network"] == network and TESTS[r["test"]][0] == statistic)
            _points(ax, y, row["estimate"], row["published_estimate"])
        ax.set_yticks(range(len(labels)), [f"{s.removesuffix('_median')}, {n}" for s, n in labels])
        ax.set_title(f"estimates: {group[0][:4].rstrip('_')}", loc="left", size="medium")
        ax.axvline(0.0, color=NARROW_BAND, linewidth=1.0)
    tests = list(TESTS)
    for y, test in enumerate(tests):
        for place, row in enumerate(r for r in rows if r["test"] == test):
            _points(axes[2], y + 0.14 * (place - 1.5), row["pvalue"], row["published_pvalue"], 0.002)
    axes[2].set_yticks(range(len(tests)), [t.replace("_median", "").replace("_", " ") for t in tests])
    axes[2].set_xlim(-0.03, 1.03)
    axes[2].set_title("p-values, four networks a test", loc="left", size="medium")
    for ax in axes:
        ax.invert_yaxis()
        ax.spines[["top", "right"]].set_visible(False)
        ax.tick_params(labelsize="small")
    handles = axes[2].get_legend_handles_labels()
    marks = [axes[2].plot([], [], "o", color=c, mfc=f)[0] for c, f in ((BLUE, BLUE), (BLACK, "none"))]
    figure.legend(
        [*handles[0], *marks], ["ours", "published"], loc="outside upper center", ncols=2, frameon=False
    )
    save(figure, path)


def _points(ax: Any, y: float, ours: str, published: str, least: float = 0.0) -> None:
    ax.plot(float(ours), y, "o", color=BLUE, markersize=4)
    if published:
        far = abs(float(ours) - float(published)) > max(0.01 * abs(float(published)), least)
        ax.plot(float(published), y, "o", color=VERMILION if far else BLACK, mfc="none", markersize=8)


def run(options: Options) -> None:
    """Test what is not in the table yet, a network at a time."""
    name, resamples = "widmann_networks", 99 if options.quick else 1000
    networks, rows = (NETWORKS[:1], 500) if options.quick else (NETWORKS, None)
    table = Table(options.results / f"{name}.csv", ("network", "test", "rows", "resamples", "seed"))
    for network in networks:
        known = table.where(network=network, resamples=resamples, rows=rows or 10_000)
        if options.over or not options.wants(network) or len(known) == len(TESTS):
            continue
        table.put(of_network(network, rows, resamples))
        print(f"{network}: {options.seconds:.0f} s", flush=True)
    found = table.where(resamples=resamples, rows=rows or 10_000)
    if len(found) < len(networks) * len(TESTS):
        return
    raw = [row for network in networks for row in as_they_are(network, rows)]
    write_csv(raw, options.results / f"{name}_rows.csv")
    draw(found, options.results / f"{name}.png")
    if not options.quick:
        bad = [row for row in found if not agrees(row)]
        print(f"{len(found)} tests, {len(bad)} differ from what is published")
        if bad:
            print(markdown(bad))
