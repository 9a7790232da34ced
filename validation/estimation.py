"""Squared calibration errors: published tables, known truths, and the p-values of the estimates.

``python -m validation.estimation networks --jobs 2``: DenseNet-40 on CIFAR-10 and DenseNet-BC on
CIFAR-100, test set, top-label and canonical, beside Tables 1 and 5 of Gruber and Bach 2024 (100 √risk,
mean ± standard error over the folds; rows cut by numpy's RandomState(0), folds not shuffled). Minutes
and peak memory of every row.

``python -m validation.estimation truth --jobs 2``: estimates of calibrated models (M1), which should
fall to 0, and of models of temperature 0.7, which should reach the truth, over n.

``python -m validation.estimation pvalues --jobs 2``: rejection rates at .05 of the p-value.
"""

from __future__ import annotations

import argparse
import resource
from collections.abc import Callable, Iterable, Sequence
from multiprocessing import get_context
from time import perf_counter
from typing import Any

import joblib
import numpy as np
from numpy.typing import NDArray
from scipy.special import softmax
from scipy.stats import binomtest

import caltest
from caltest.estimation import HistogramBinning
from caltest.simulation import Simulated, tempered
from validation._study import CONFIDENCE, REFERENCE, command_line, markdown, write_csv
from validation.generative import m1

Array = NDArray[np.float64]
#: Printed √risk × 100: Table 1 (top label) and Table 5 (canonical), DenseNet-40 on CIFAR-10.
PUBLISHED = {
    ("densenet40", "top_label"): {
        "binning(n_bins=15)": 6.14,
        "binning": 6.12,
        "kernel_density": 13.7,
        "kronecker_ridge": 6.13,
        "two_step_ridge": 6.11,
    },
    ("densenet40", None): {"kernel_density": 5.13, "kronecker_ridge": 5.13, "two_step_ridge": 5.13},
}
SIZES = (500, 2_000, 8_000)
NETWORKS = ("densenet40", "cifar100")
TEMPERATURE = 0.7
LEVEL = 0.05


# ------------------------------------------------------------------ published tables


def network(name: str) -> tuple[Array, NDArray[np.intp]]:
    """Return test predictions and labels."""
    if name == "densenet40":
        data = np.load(REFERENCE / "cifar10_densenet40_logits.npz")
        return softmax(data["test_logits"].astype(np.float64), axis=1), data["test_labels"].ravel()
    data = np.load(REFERENCE / "cifar100_densenet_bc_100.npz")
    return data["probs"], data["labels"].ravel()


def _measured(
    name: str, lens: str | None, scaling: Any, function: Any, options: argparse.Namespace, out: Any
) -> None:
    """Estimate by one function, and send the row back: in a process of its own, for its peak memory."""
    probs, labels = (each[: options.rows] for each in network(name))
    start, before = perf_counter(), resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    order = np.random.RandomState(0).choice(len(labels), len(labels), replace=False)
    found = caltest.estimate_squared_error(
        probs,
        labels,
        lens,
        [function],
        pvalue="none",
        order=order,
        regularization_scaling=scaling,
        rng=0,
        n_jobs=options.jobs,
    )
    row = found.recommended
    roots, estimates = np.sqrt(row.risks[row.best]), row.estimates[row.best]
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    out.put(
        {
            "network": name,
            "lens": lens or "canonical",
            "scaling": scaling,
            "function": row.label,
            "value": f"{row.value:.3g}",
            "root_risk_100": round(100 * float(roots.mean()), 4),
            "error": round(100 * float(roots.std(ddof=1)) / len(roots) ** 0.5, 4),
            "published": "" if options.rows else PUBLISHED.get((name, lens), {}).get(row.label, ""),
            "estimate": f"{row.estimate:.8f}",
            "estimate_error": f"{estimates.std(ddof=1) / len(estimates) ** 0.5:.2g}",
            "zero_root_risk_100": round(100 * float(np.sqrt(found.zero_risks).mean()), 4),
            "seconds": round(perf_counter() - start, 1),
            "megabytes_over_input": round((peak - before) / 1024),
        }
    )


def networks(options: argparse.Namespace) -> Iterable[dict[str, Any]]:
    """Yield a row for each network, lens, scaling and function."""
    cells: list[tuple[str, str | None, str, Any]] = []
    for name in options.networks:
        for lens in ("top_label", None):
            if lens:
                cells += [(name, lens, "usual", HistogramBinning(15)), (name, lens, "usual", "binning")]
            cells.append((name, lens, "usual", "kernel_density"))
            scalings = ("usual", "published") if name == "densenet40" else ("usual",)
            for scaling in scalings:
                cells += [(name, lens, scaling, f"{kind}_ridge") for kind in ("kronecker", "two_step")]
    context = get_context("spawn")
    for cell in cells:
        if not any(each in str(cell[-1]) for each in options.functions):
            continue
        out = context.Queue()
        process = context.Process(target=_measured, args=(*cell, options, out))
        process.start()
        row = out.get()
        process.join()
        print(row, flush=True)
        yield row


# ------------------------------------------------------------------ known truth

MODELS: dict[str, Callable[[int, int], Simulated]] = {
    "calibrated": lambda n, seed: m1(n, rng=seed),
    "temperature": lambda n, seed: tempered(n, temperature=TEMPERATURE, rng=seed),
}


def true_error(data: Simulated, lens: str | None) -> float:
    """Return the squared calibration error of the data's rows, from their true probabilities."""
    if lens is None:
        return float(((data.truth - data.probs) ** 2).sum(axis=1).mean())
    top = data.probs.argmax(axis=1)[:, None]
    gap = np.take_along_axis(data.truth - data.probs, top, axis=1)
    return float((gap**2).mean())


def truth(options: argparse.Namespace) -> Iterable[dict[str, Any]]:
    """Yield mean estimates over data sets beside the truth."""
    for name, draw in MODELS.items():
        for lens in ("top_label", None):
            for n in options.sizes[: None if lens else 2]:  # the full vector's ridges take O(n³)
                most = options.repetitions or 6
                count = max(3, min(most, most * 2_000 // n))
                start = perf_counter()
                calls = (joblib.delayed(_estimates)(draw(n, seed), lens, seed) for seed in range(count))
                found = joblib.Parallel(n_jobs=options.jobs)(calls)
                print(f"{name} {lens} n={n}: {perf_counter() - start:.0f} s", flush=True)
                for label in found[0]:
                    values = np.array([each[label] for each in found])
                    yield {
                        "model": name,
                        "lens": lens or "canonical",
                        "n": n,
                        "function": label,
                        "mean": f"{values.mean():.6f}",
                        "sd": f"{values.std(ddof=1):.6f}",
                        "data_sets": count,
                    }


def _estimates(data: Simulated, lens: str | None, seed: int) -> dict[str, float]:
    few = len(data.labels) <= 10_000  # the kernel density grows as n²
    functions = "all" if few else ("binning", "kronecker_ridge", "two_step_ridge")
    found = caltest.estimate_squared_error(
        data.probs, data.labels, lens, functions, pvalue="none", rng=seed
    )
    estimates = {row.label: row.estimate for row in found.functions}
    return {
        "truth": true_error(data, lens),
        "recommended": found.estimate,
        **dict(sorted(estimates.items())),
    }


# ------------------------------------------------------------------ p-values


def pvalues(options: argparse.Namespace) -> Iterable[dict[str, Any]]:
    """Yield rejection rates at .05."""
    functions = ("binning", "kronecker_ridge", "two_step_ridge")
    cases = (("held_out", options.repetitions or 500, options.resamples or 199),)
    for pvalue, count, draws in cases:
        for name, draw in MODELS.items():
            for n in (250, 1_000):
                calls = (
                    joblib.delayed(_pvalue)(draw(n, seed), functions, pvalue, draws, seed)
                    for seed in range(count)
                )
                found = np.array(joblib.Parallel(n_jobs=options.jobs)(calls))
                rejections = int(np.count_nonzero(found <= LEVEL))
                interval = binomtest(rejections, count).proportion_ci(CONFIDENCE)
                row = {
                    "pvalue": pvalue,
                    "model": name,
                    "n": n,
                    "rejections": rejections,
                    "data_sets": count,
                    "low": round(interval.low, 4),
                    "high": round(interval.high, 4),
                }
                print(row, flush=True)
                yield row


def _pvalue(
    data: Simulated, functions: tuple[str, ...], pvalue: Any, n_resamples: int, seed: int
) -> float:
    found = caltest.estimate_squared_error(
        data.probs,
        data.labels,
        "top_label",
        functions,
        pvalue=pvalue,
        n_resamples=n_resamples,
        rng=seed,
    )
    assert found.pvalue is not None
    return found.pvalue


STUDIES = {"networks": networks, "truth": truth, "pvalues": pvalues}


def parsed(arguments: Sequence[str] | None = None) -> argparse.Namespace:
    """Return the options."""
    given = command_line(__doc__)
    given.add_argument("study", choices=list(STUDIES))
    given.add_argument(
        "--repetitions", type=int, help="data sets a cell: 6 of truth, 500 of held-out p-values"
    )
    given.add_argument("--resamples", type=int, help="of a p-value (199)")
    given.add_argument("--sizes", type=int, nargs="+", default=list(SIZES), help="of truth")
    given.add_argument("--rows", type=int, help="of networks: the first so many (all)")
    given.add_argument("--functions", nargs="+", default=[""], help="of networks: parts of names (all)")
    given.add_argument("--networks", nargs="+", choices=NETWORKS, default=list(NETWORKS))
    return given.parse_args(arguments)


def main(arguments: Sequence[str] | None = None) -> None:
    """Run one study."""
    options = parsed(arguments)
    rows = list(STUDIES[options.study](options))
    for part in {each.get("network", options.study) for each in rows}:
        own = [each for each in rows if each.get("network", part) == part]
        write_csv(own, options.results / f"estimation_{part}.csv")
    print(markdown(rows))


if __name__ == "__main__":
    main()
