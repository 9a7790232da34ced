"""Exponents of growth: slopes of time and memory in n, on logarithmic scales."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from validation.benchmarks.cases import (
    AUDIT,
    DEFAULT_TEST,
    ECD_STREAM,
    ECD_TEST,
    FULL_TEST,
    LOW_RANK_STREAM,
    LOW_RANK_TEST,
)
from validation.benchmarks.store import Row

LEAST_MB = 1.0  # memory below is all the same


@dataclass(frozen=True)
class Series:
    """Rows that differ in n alone, from ``least`` rows on."""

    what: str
    least: int
    most_time: float
    m: int = 10
    jobs: int = 1
    most_memory: float | None = None


SERIES = (
    Series("SKCE_uq, TV", 10_000, 2.1),
    Series(LOW_RANK_TEST, 10_000, 1.05),
    Series(ECD_TEST, 25_000, 1.05),
    Series(DEFAULT_TEST, 12_500, 1.05),
    Series(AUDIT, 12_500, 1.05, jobs=2),
    Series(FULL_TEST, 20_000, 1.05, m=2),
    Series(LOW_RANK_STREAM, 1_000_000, 1.05, most_memory=0.1),
    Series(ECD_STREAM, 1_000_000, 1.05, most_memory=0.1),
)


def slope(sizes: Sequence[float], values: Sequence[float]) -> float:
    """Return the least-squares slope of log value in log size.

    Examples
    --------
    >>> round(slope([1, 2, 4], [3, 12, 48]), 12)
    2.0
    """
    return float(np.polyfit(np.log(sizes), np.log(values), 1)[0])


def exponents(rows: Sequence[Row], series: Series) -> dict[str, object] | None:
    """Return the exponents of one series, from rows of one run; None of fewer than three sizes."""
    found = [
        row
        for row in rows
        if (row["what"], row["by"]) == (series.what, "caltest")
        and (int(row["m"]), int(row["jobs"])) == (series.m, series.jobs)
        and int(row["n"]) >= series.least
        and not row["reason"]
    ]
    newest = max((row["run"] for row in found), default="")
    found = sorted((row for row in found if row["run"] == newest), key=lambda row: int(row["n"]))
    if len(found) < 3:
        return None
    sizes = [float(row["n"]) for row in found]
    memory = [max(float(row["memory_mb"]), LEAST_MB) for row in found]
    return {
        "what": series.what,
        "m": series.m,
        "jobs": series.jobs,
        "sizes": " ".join(row["n"] for row in found),
        "time": slope(sizes, [float(row["best_s"]) for row in found]),
        "memory": slope(sizes, memory),
    }
