"""Time and peak memory, next to a plain NumPy implementation on the same input.

``python -m validation.benchmarks.speed``, and with ``--scores`` for linear and cumulative statistics

Every case runs in a process of its own, through the public functions, checks of the input included.
Time is the best of several runs. Memory is the peak resident set during the first run above what was
resident before it, the input included in the latter: the kernel's own high-water mark, reset before the
run where the system allows (Linux), else the growth of ``ru_maxrss``. Predictions are M1's; "plain" is
the textbook formula with n×n arrays, no loop over rows, all BLAS threads.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np

import caltest
from caltest.kernels import Exponential
from caltest.simulation import m1
from caltest.statistics import LinearSKCE, UnbiasedSKCE
from validation._study import RESULTS, markdown, write_csv

BANDWIDTH = 0.7
FEWEST, SECONDS = 3, 2.0  # runs of a case, at least; and seconds of them, at least
ONCE_ABOVE = 15.0  # seconds; a case this long is run once

Work = Callable[[np.ndarray, np.ndarray, int], object]


def plain(probs: np.ndarray, labels: np.ndarray, jobs: int) -> float:
    """Return SKCE_uq by the formula, with n×n arrays."""
    n, m = probs.shape
    residuals = np.eye(m)[labels] - probs
    distances = np.zeros((n, n))
    for column in probs.T:
        distances += np.abs(column[:, None] - column)
    h = np.exp(-0.5 / BANDWIDTH * distances) * (residuals @ residuals.T)
    return float((h.sum() - np.trace(h)) / (n * (n - 1)))


def given(probs: np.ndarray, labels: np.ndarray, jobs: int) -> float:
    """Estimate with the bandwidth given."""
    return caltest.estimate(probs, labels, UnbiasedSKCE(Exponential(BANDWIDTH)), n_jobs=jobs)


def median(probs: np.ndarray, labels: np.ndarray, jobs: int) -> float:
    """Estimate with the median heuristic, the default."""
    return caltest.estimate(probs, labels, "skce_uq", n_jobs=jobs)


def linear(probs: np.ndarray, labels: np.ndarray, jobs: int) -> float:
    """Estimate SKCE_ul with the bandwidth given."""
    return caltest.estimate(probs, labels, LinearSKCE(Exponential(BANDWIDTH)), n_jobs=jobs)


def exact(probs: np.ndarray, labels: np.ndarray, jobs: int) -> float:
    """Test by 999 draws of the labels."""
    statistic = UnbiasedSKCE(Exponential(BANDWIDTH))
    return caltest.test(probs, labels, statistic, rng=0, n_jobs=jobs).pvalue


def moments(probs: np.ndarray, labels: np.ndarray, jobs: int) -> float:
    """Test by the conditional moments."""
    statistic = UnbiasedSKCE(Exponential(BANDWIDTH))
    return caltest.test(probs, labels, statistic, null="moments", n_jobs=jobs).pvalue


def tested(statistic: str, null: str) -> Work:
    """Return a test of a registered pair, 999 draws if it draws."""

    def work(probs: np.ndarray, labels: np.ndarray, jobs: int) -> float:
        return caltest.test(probs, labels, statistic, null=null, rng=0, n_jobs=jobs).pvalue

    return work


def drawn_in_a_loop(probs: np.ndarray, labels: np.ndarray, jobs: int) -> float:
    """Rank the ECD among 999 draws, as a script would: one vector of labels at a time."""
    rng, cumulative = np.random.default_rng(0), probs.cumsum(axis=1)
    surprise = -np.log(np.maximum(probs, 1e-300))
    rows, last = np.arange(len(probs)), probs.shape[1] - 1
    observed, draws = surprise[rows, labels].mean(), []
    for _ in range(999):
        drawn = (cumulative < rng.random((len(probs), 1))).sum(axis=1).clip(max=last)
        draws.append(surprise[rows, drawn].mean())
    return float((1 + np.sum(np.array(draws) >= observed)) / 1000)


WORK: dict[str, Work] = {
    "plain NumPy": plain,
    "estimate": given,
    "estimate, median": median,
    "estimate, SKCE_ul": linear,
    "exact test, 999 draws": exact,
    "moments test": moments,
    "ECD, 999 draws in a loop": drawn_in_a_loop,
    "ECD, 999 draws": tested("ecd", "monte_carlo"),
    "ECD, moments": tested("ecd", "moments"),
    "Brier, moments": tested("brier", "moments"),
    "KS, 999 draws": tested("ks", "monte_carlo"),
    "KS, brownian": tested("ks", "brownian"),
    "Hosmer-Lemeshow, 999 draws": tested("hosmer_lemeshow", "monte_carlo"),
    "Cox, 999 draws": tested("cox", "monte_carlo"),
}


@dataclass(frozen=True)
class Case:
    """One line of the table."""

    work: str
    n: int
    m: int
    jobs: int


CASES = (
    Case("plain NumPy", 1_000, 10, 1),
    Case("estimate", 1_000, 10, 1),
    Case("estimate, median", 1_000, 10, 1),
    Case("estimate, SKCE_ul", 1_000, 10, 1),
    Case("exact test, 999 draws", 1_000, 10, 1),
    Case("moments test", 1_000, 10, 1),
    Case("plain NumPy", 1_000, 1_000, 1),
    Case("estimate", 1_000, 1_000, 1),
    Case("estimate, median", 1_000, 1_000, 1),
    Case("plain NumPy", 10_000, 10, 2),
    Case("estimate", 10_000, 10, 1),
    Case("estimate", 10_000, 10, 2),
    Case("estimate, median", 10_000, 10, 2),
    Case("exact test, 999 draws", 10_000, 10, 2),
    Case("moments test", 10_000, 10, 2),
    Case("plain NumPy", 10_000, 100, 2),
    Case("estimate", 10_000, 100, 2),
    Case("estimate, median", 10_000, 100, 2),
    Case("estimate", 10_000, 1_000, 2),
    Case("estimate, median", 10_000, 1_000, 2),
    Case("estimate", 20_000, 10, 2),
    Case("estimate", 50_000, 10, 2),
    Case("estimate, median", 50_000, 10, 2),
)
SCORES = (
    Case("ECD, 999 draws in a loop", 100_000, 10, 1),
    Case("ECD, 999 draws", 100_000, 10, 1),
    Case("ECD, 999 draws", 100_000, 10, 2),
    Case("ECD, moments", 100_000, 10, 1),
    Case("ECD, moments", 1_000_000, 10, 1),
    Case("Brier, moments", 1_000_000, 10, 1),
    Case("KS, 999 draws", 100_000, 10, 1),
    Case("KS, brownian", 1_000_000, 10, 1),
    Case("Hosmer-Lemeshow, 999 draws", 100_000, 10, 1),
    Case("Cox, 999 draws", 10_000, 10, 1),
)

# ------------------------------------------------------------------ one case, in its own process


def measure(case: Case) -> dict[str, Any]:
    """Run one case; return seconds and megabytes."""
    work = WORK[case.work]
    small = m1(50, 3, rng=0)
    work(small.probs, small.labels, case.jobs)  # imports, and the first call of every library
    simulated = m1(case.n, case.m, rng=0)
    probs, labels = np.array(simulated.probs), np.array(simulated.labels)
    del simulated
    before = _reset_peak()
    seconds = [_seconds(work, probs, labels, case.jobs)]
    grown = (_peak() - before) / 1e3
    while seconds[0] < ONCE_ABOVE and (len(seconds) < FEWEST or sum(seconds) < SECONDS):
        seconds.append(_seconds(work, probs, labels, case.jobs))
    return {"seconds": min(seconds), "runs": len(seconds), "megabytes": grown, "memory": _source()}


def _seconds(work: Work, probs: np.ndarray, labels: np.ndarray, jobs: int) -> float:
    start = perf_counter()
    work(probs, labels, jobs)
    return perf_counter() - start


_CLEAR, _STATUS = Path("/proc/self/clear_refs"), Path("/proc/self/status")


def _source() -> str:
    return "VmHWM" if _CLEAR.exists() else "ru_maxrss"


def _reset_peak() -> float:
    """Reset the high-water mark to what is resident now, if possible; return it in kB."""
    if _CLEAR.exists():
        _CLEAR.write_text("5")
    return _peak()


def _peak() -> float:
    if _CLEAR.exists():
        lines = _STATUS.read_text().splitlines()
        return float(next(line.split()[1] for line in lines if line.startswith("VmHWM")))
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak / 1024 if sys.platform == "darwin" else float(peak)


# ------------------------------------------------------------------ all cases


def main() -> None:
    """Run every case, write the CSV, print the table and the aims."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--case", type=int, help=argparse.SUPPRESS)
    parser.add_argument("--scores", action="store_true", help="linear and cumulative statistics")
    options = parser.parse_args()
    if options.case is not None:
        print(json.dumps(measure((CASES + SCORES)[options.case])))
        return
    chosen = range(len(CASES), len(CASES + SCORES)) if options.scores else range(len(CASES))
    rows: list[dict[str, Any]] = []
    for number in chosen:
        case = (CASES + SCORES)[number]
        load = os.getloadavg()[0] if hasattr(os, "getloadavg") else float("nan")
        command = [sys.executable, "-m", "validation.benchmarks.speed", "--case", str(number)]
        output = subprocess.run(command, check=True, capture_output=True, text=True).stdout
        rows.append(_row(case, json.loads(output), rows) | {"load": round(load, 2)})
        print(rows[-1], flush=True)
    write_csv(rows, RESULTS / ("speed_scores.csv" if options.scores else "speed.csv"))
    print(markdown(rows))
    if not options.scores:
        print()
        print(markdown(aims(rows)))


def _row(case: Case, measured: dict[str, Any], rows: list[dict[str, Any]]) -> dict[str, Any]:
    seconds = measured["seconds"]
    estimates = case.work.startswith("estimate") and "ul" not in case.work
    peer = "plain NumPy" if estimates else f"{case.work} in a loop"
    same = [row for row in rows if (row["work"], row["n"], row["m"]) == (peer, case.n, case.m)]
    ratio = round(same[0]["milliseconds"] / (1e3 * seconds), 1) if same else ""
    return {
        "work": case.work,
        "n": case.n,
        "m": case.m,
        "jobs": case.jobs,
        "milliseconds": float(f"{1e3 * seconds:.4g}"),
        "runs": measured["runs"],
        "megabytes": round(measured["megabytes"], 1),
        "memory": measured["memory"],
        "plain / this": ratio,
        "ns · cores / n²": float(f"{1e9 * seconds * case.jobs / case.n**2:.3g}"),
    }


def aims(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Compare with what was aimed at."""

    def find(work: str, n: int, m: int = 10, jobs: int | None = None) -> dict[str, Any]:
        return [
            row
            for row in rows
            if (row["work"], row["n"], row["m"]) == (work, n, m) and jobs in (None, row["jobs"])
        ][-1]

    flat = [find("estimate", n, jobs=2)["ns · cores / n²"] for n in (10_000, 20_000, 50_000)]
    times = {
        (work, n): find(work, n)["milliseconds"]
        for work, n in (
            ("estimate", 1_000),
            ("estimate, median", 1_000),
            ("estimate", 10_000),
            ("estimate", 50_000),
            ("estimate, median", 50_000),
            ("exact test, 999 draws", 10_000),
            ("moments test", 1_000),
            ("moments test", 10_000),
        )
    }
    checks = [
        ("n=1 000, bandwidth given: ms", times["estimate", 1_000], 5),
        ("n=1 000, median: ms", times["estimate, median", 1_000], 10),
        ("n=50 000, bandwidth given: s", times["estimate", 50_000] / 1e3, 4),
        ("n=50 000, median: s", times["estimate, median", 50_000] / 1e3, 4),
        ("n=50 000, median: MB", find("estimate, median", 50_000)["megabytes"], 500),
        ("time × cores / n² from 10 000 on: largest / smallest", max(flat) / min(flat), 1.25),
        ("exact test, n=10 000: s", times["exact test, 999 draws", 10_000] / 1e3, 20),
        (
            "moments test / estimate, n=1 000",
            times["moments test", 1_000] / times["estimate", 1_000],
            5,
        ),
        (
            "moments test / estimate, n=10 000",
            times["moments test", 10_000] / times["estimate", 10_000],
            5,
        ),
    ]
    return [
        {
            "aim": name,
            "at most": most,
            "measured": f"{value:.3g}",
            "met": "yes" if value <= most else "no",
        }
        for name, value, most in checks
    ]


if __name__ == "__main__":
    main()
