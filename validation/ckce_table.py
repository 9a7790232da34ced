"""CKCE and JKCE: published numbers, features beside the exact inverse, time and memory.

``python -m validation.ckce_table published`` (or ``features``, ``speed``) needs the reference data,
whose folder the environment variable CALTEST_REFERENCE_DATA names (default: ../shared/data beside the
project). Every timed case runs in a process of its own, through the public functions; memory is the
peak above what was resident before.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from collections.abc import Callable, Sequence
from functools import cache
from time import perf_counter
from typing import Any, NamedTuple

import numpy as np
from scipy.special import softmax

import caltest
from caltest.kernels import LinearGaussian
from caltest.statistics import CKCE, JKCE
from validation._study import REFERENCE, ROOT, command_line, markdown, write_csv
from validation.benchmarks.child import peak, reset_peak
from validation.generative import m1

FEATURES = (50, 100, 200, 500)
SEEDS = 10  # of Fourier features

Data = tuple[np.ndarray, np.ndarray]


@cache
def densenet40() -> Data:
    """Return the CIFAR-10 test set as DenseNet-40 sees it."""
    with np.load(REFERENCE / "cifar10_densenet40_logits.npz") as data:
        probs = softmax(data["test_logits"].astype(np.float64), axis=1)
        return probs, data["test_labels"].ravel().astype(np.intp)


@cache
def cifar100() -> Data:
    """Return the CIFAR-100 test set as DenseNet-BC-100 sees it."""
    with np.load(REFERENCE / "cifar100_densenet_bc_100.npz") as data:
        return data["probs"], data["labels"].ravel().astype(np.intp)


def marginal() -> Data:
    """Return the model that says 0.1 always, and as many labels of each class."""
    return np.full((10_000, 10), 0.1), np.arange(10_000) % 10


def simulated(n: int, m: int) -> Callable[[], Data]:
    """Return calibrated predictions, M1's."""

    def draw() -> Data:
        drawn = m1(n, m, rng=0)
        return np.array(drawn.probs), np.array(drawn.labels)

    return draw


# ------------------------------------------------------------------ published numbers


@cache
def exact(data: Callable[[], Data], rows: int | None, factor: float) -> float:
    """Return the CKCE by Cholesky factorisation, its bandwidth ``factor`` times the median."""
    probs, labels = first(data, rows)
    return caltest.estimate(probs, labels, CKCE(kernel_for(probs, factor), method="exact"))


def first(data: Callable[[], Data], rows: int | None) -> Data:
    """Return the first rows."""
    probs, labels = data()
    return probs[:rows], labels[:rows]


def kernel_for(probs: np.ndarray, factor: float) -> LinearGaussian:
    """Return the kernel with ``factor`` times the median as bandwidth."""
    return LinearGaussian(factor * LinearGaussian().fitted(probs.astype(np.float64)).bandwidth)


def published(options: argparse.Namespace) -> list[dict[str, Any]]:
    """Compare with Table 1 and with independent implementations."""
    n = options.rows
    probs, labels = first(densenet40, n)
    half = kernel_for(probs, 0.5)
    rows = [
        ("CKCE ×10, γ = median/2", 0.0956, 10 * exact(densenet40, n, 0.5)),
        ("CKCE ×10, γ = median", 0.0959, 10 * exact(densenet40, n, 1.0)),
        ("JKCE ×100, γ = median/2", 0.07061, 100 * caltest.estimate(probs, labels, JKCE(half))),
        ("marginal: CKCE ×10", 0.0, 10 * caltest.estimate(*first(marginal, n), "ckce")),
        ("marginal: JKCE ×100", -0.0099, 100 * caltest.estimate(*first(marginal, n), "jkce")),
    ]
    return [
        {"number": name, "reference": "" if n else reference, "ours": f"{ours:.6g}"}
        for name, reference, ours in rows
    ]


# ------------------------------------------------------------------ features


def features(options: argparse.Namespace) -> list[dict[str, Any]]:
    """Compare features with the exact inverse."""
    rows = []
    for name, data in (("DenseNet-40, m = 10", densenet40), ("CIFAR-100, m = 100", cifar100)):
        truth, (probs, labels) = exact(data, options.rows, 1.0), first(data, options.rows)
        for count in FEATURES:
            result = caltest.test(probs, labels, CKCE(features=count), n_resamples=1, rng=0)
            fourier = [
                caltest.estimate(probs, labels, CKCE(method="fourier", features=count, seed=seed))
                for seed in range(SEEDS)
            ]
            errors = np.array(fourier) / truth - 1.0
            rows.append(
                {
                    "data": name,
                    "exact": f"{truth:.8g}",
                    "features": count,
                    "nystrom: relative error": f"{result.statistic / truth - 1.0:.2g}",
                    "nystrom: trace error": f"{result.parameters['trace_error']:.2g}",
                    "fourier: root mean square": f"{np.sqrt(np.mean(errors**2)):.2g}",
                    "fourier: largest": f"{np.abs(errors).max():.2g}",
                }
            )
    return rows


# ------------------------------------------------------------------ time and memory


class Case(NamedTuple):
    """One line of the table."""

    data: str
    method: str
    work: str


DATA: dict[str, Callable[[], Data]] = {
    "M1, n = 2 000, m = 10": simulated(2_000, 10),
    "M1, n = 10 000, m = 10": simulated(10_000, 10),
    "M1, n = 100 000, m = 10": simulated(100_000, 10),
    "CIFAR-100, n = 10 000, m = 100": cifar100,
}
WORK = ("estimate", "test, 999 draws", "test, moments")
CASES = (
    *(Case("M1, n = 2 000, m = 10", "exact", work) for work in WORK),
    Case("M1, n = 10 000, m = 10", "exact", "estimate"),
    *(Case(data, method, work) for data in DATA for method in ("nystrom", "fourier") for work in WORK),
)


def measure(case: Case, rows: int | None, jobs: int) -> dict[str, Any]:
    """Run one case; return seconds and megabytes."""
    statistic = CKCE(method=case.method)  # type: ignore[arg-type]
    _run(case.work, statistic, *simulated(60, 3)(), jobs)  # imports, and first calls
    probs, labels = first(DATA[case.data], rows)
    before = reset_peak()
    start = perf_counter()
    _run(case.work, statistic, probs, labels, jobs)
    seconds = perf_counter() - start
    return {"seconds": seconds, "megabytes": (peak() - before) / 1e3}


def _run(work: str, statistic: CKCE, probs: np.ndarray, labels: np.ndarray, jobs: int) -> None:
    if work == "estimate":
        caltest.estimate(probs, labels, statistic, n_jobs=jobs)
    else:
        null = "moments" if "moments" in work else "monte_carlo"
        caltest.test(probs, labels, statistic, null=null, rng=0, n_jobs=jobs)


def timed(options: argparse.Namespace) -> list[dict[str, Any]]:
    """Run every case in a process of its own."""
    rows = []
    for number in options.cases:
        load = os.getloadavg()[0] if hasattr(os, "getloadavg") else float("nan")
        command = [sys.executable, "-m", "validation.ckce_table", "case", "--cases", str(number)]
        command += ["--jobs", str(options.jobs)]
        command += ["--rows", str(options.rows)] if options.rows else []
        output = subprocess.run(command, check=True, capture_output=True, text=True, cwd=ROOT).stdout
        found = json.loads(output)
        rows.append(
            CASES[number]._asdict()
            | {
                "jobs": options.jobs,
                "seconds": float(f"{found['seconds']:.3g}"),
                "megabytes": round(found["megabytes"]),
                "load": round(load, 2),
            }
        )
        print(rows[-1], flush=True)
    return rows


STUDIES = {
    "published": (published, "ckce"),
    "features": (features, "ckce_features"),
    "speed": (timed, "speed_ckce"),
}


def parsed(arguments: Sequence[str] | None = None) -> argparse.Namespace:
    """Return the options."""
    given = command_line(__doc__)
    given.add_argument("study", choices=[*STUDIES, "case"])
    given.add_argument("--rows", type=int, help="the first so many (all)")
    given.add_argument(
        "--cases", type=int, nargs="+", choices=range(len(CASES)), default=list(range(len(CASES)))
    )
    return given.parse_args(arguments)


def main(arguments: Sequence[str] | None = None) -> None:
    """Run one study, write its CSV, print its table."""
    options = parsed(arguments)
    if options.study == "case":
        print(json.dumps(measure(CASES[options.cases[0]], options.rows, options.jobs)))
        return
    study, name = STUDIES[options.study]
    rows = study(options)
    write_csv(rows, options.results / f"{name}.csv")
    print(markdown(rows), flush=True)


if __name__ == "__main__":
    main()
