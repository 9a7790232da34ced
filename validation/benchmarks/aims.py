"""What was aimed at, beside what was measured."""

from __future__ import annotations

from collections.abc import Sequence

from validation.benchmarks.cases import (
    BINARY_TEST,
    ECD_FILE,
    FULL_TEST,
    LOW_RANK_FILE,
    LOW_RANK_TEST,
)
from validation.benchmarks.growth import SERIES
from validation.benchmarks.store import Row

#: What, n, m, workers, column, unit, at most.
_SINGLE: tuple[tuple[str, int, int, int, str, str, float], ...] = (
    ("SKCE_uq, TV", 1_000, 10, 1, "best_s", "s", 0.003),
    ("SKCE_uq, TV, median heuristic", 1_000, 10, 1, "best_s", "s", 0.007),
    ("SKCE_uq, TV", 1_000, 1_000, 1, "best_s", "s", 0.080),
    ("SKCE_uq, Gaussian", 1_000, 1_000, 1, "best_s", "s", 0.025),
    ("SKCE_uq, Gaussian", 50_000, 10, 1, "limit", "times the limit", 2.0),
    ("SKCE_uq, Gaussian", 50_000, 10, 1, "memory_mb", "MB", 300.0),
    ("SKCE_uq, TV", 50_000, 10, 1, "memory_mb", "MB", 300.0),
    (FULL_TEST, 10_000, 10, 2, "best_s", "s", 8.0),
    (LOW_RANK_TEST, 10_000, 10, 2, "best_s", "s", 1.5),
    (LOW_RANK_FILE, 1_000_000, 10, 2, "best_s", "s", 60.0),
    (LOW_RANK_FILE, 1_000_000, 10, 2, "memory_mb", "MB", 1000.0),
    (ECD_FILE, 1_000_000, 10, 2, "best_s", "s", 60.0),
    (ECD_FILE, 1_000_000, 10, 2, "memory_mb", "MB", 1000.0),
    (LOW_RANK_TEST, 50_000, 1_000, 2, "best_s", "s", 120.0),
    (LOW_RANK_TEST, 50_000, 1_000, 2, "memory_mb", "MB", 4000.0),
)
_MOMENTS = "SKCE_uq, p-value from moments"


def aims(times: Sequence[Row], growth: Sequence[Row]) -> list[dict[str, str]]:
    """Return all aims of which something was measured."""
    found = []
    for what, n, m, jobs, column, unit, most in _SINGLE:
        row = _row(times, what, n, m, jobs)
        if row is not None and (column != "limit" or row["limit_s"]):
            value = (
                float(row["best_s"]) / float(row["limit_s"])
                if column == "limit"
                else float(row[column])
            )
            found.append(_line(f"{what}, n = {n}, m = {m}: {unit}", value, most))
    found += _ratios(times)
    for series in SERIES:
        for row in growth:
            if row["what"] == series.what:
                what = f"{series.what}: exponent of"
                found.append(_line(f"{what} time", float(row["time"]), series.most_time))
                if series.most_memory is not None:
                    found.append(_line(f"{what} memory", float(row["memory"]), series.most_memory))
    return found


def _ratios(times: Sequence[Row]) -> list[dict[str, str]]:
    found = []
    for jobs in (1, 2):
        ours = _row(times, BINARY_TEST, 10_000, 2, jobs)
        theirs = _row(times, BINARY_TEST, 10_000, 2, 1, "probcal")
        if ours and theirs and ours["run"] == theirs["run"]:
            what = f"{BINARY_TEST}, n = 10 000: times as fast as probcal, {jobs} worker(s)"
            ratio = float(theirs["best_s"]) / float(ours["best_s"])
            found.append(_line(what, ratio, 100.0, at_least=True))
    for n in (1_000, 10_000):
        both = _row(times, _MOMENTS, n, 10, 1), _row(times, "SKCE_uq, TV", n, 10, 1)
        if both[0] and both[1] and both[0]["run"] == both[1]["run"]:
            ratio = float(both[0]["best_s"]) / float(both[1]["best_s"])
            found.append(_line(f"{_MOMENTS}, n = {n}: times the estimate", ratio, 4.0))
    return found


def _row(times: Sequence[Row], what: str, n: int, m: int, jobs: int, by: str = "caltest") -> Row | None:
    key = (what, by, str(n), str(m), str(jobs))
    names = ("what", "by", "n", "m", "jobs")
    found = [row for row in times if tuple(row[name] for name in names) == key and not row["reason"]]
    return found[0] if found else None


def _line(aim: str, value: float, bound: float, *, at_least: bool = False) -> dict[str, str]:
    met = value >= bound if at_least else value <= bound
    return {
        "aim": aim,
        "bound": f"{'≥' if at_least else '≤'} {bound:g}",
        "measured": f"{value:.3g}",
        "met": "yes" if met else "no",
    }
