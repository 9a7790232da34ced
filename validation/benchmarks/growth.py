"""Exponents of growth: slopes of time and memory in rows, classes, groups and draws, on log scales."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure

from validation._study import save
from validation.benchmarks.cases import (
    AUDIT,
    AUDIT_OF_COLUMNS,
    DEFAULT_TEST,
    ECD_STREAM,
    ECD_TEST,
    FULL_TEST,
    LOW_RANK_STREAM,
    LOW_RANK_TEST,
    OF_DRAWS,
    OF_GROUPS,
)
from validation.benchmarks.store import Row

LEAST_MB = 1.0  # memory below is all the same


@dataclass(frozen=True)
class Series:
    """Cases that differ in one size alone, from ``least`` on.

    ``over`` is a column, "n" or "m", or what follows the number in the name of a case.
    """

    what: str
    least: int
    most_time: float
    m: int = 10
    jobs: int = 1
    most_memory: float | None = None
    over: str = "n"
    n: int = 0

    def size(self, row: Row) -> int:
        """Return the size that differs; 0 of a row that does not belong here."""
        fixed = {"n": str(self.n), "m": str(self.m), "jobs": str(self.jobs), "by": "caltest"}
        fixed.pop(self.over, None)
        named = re.fullmatch(re.escape(self.what).replace("\\*", r"(\d+)"), row["what"])
        if named is None or row["reason"] or any(row[name] != value for name, value in fixed.items()):
            return 0
        found = int(row[self.over] if self.over in row else named[1])
        return found if found >= self.least else 0


SERIES = (
    Series("SKCE_uq, TV", 10_000, 2.1),
    Series(LOW_RANK_TEST, 10_000, 1.05),
    Series(ECD_TEST, 25_000, 1.05),
    Series(DEFAULT_TEST, 12_500, 1.05),
    Series(AUDIT, 12_500, 1.05, jobs=2),
    Series(FULL_TEST, 20_000, 1.05, m=2),
    Series(LOW_RANK_STREAM, 1_000_000, 1.05, most_memory=0.1),
    Series(ECD_STREAM, 1_000_000, 1.05, most_memory=0.1),
    Series(AUDIT_OF_COLUMNS, 10_000, 1.05, m=2, jobs=2),
    Series(AUDIT, 10, 1.05, jobs=2, over="m", n=5_000),
    Series(OF_GROUPS, 10, 1.05, m=2, jobs=2, over="groups", n=50_000),
    Series(OF_DRAWS, 250, 1.05, over="draws", n=20_000),
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
    found = [row for row in rows if series.size(row)]
    newest = max((row["run"] for row in found), default="")
    found = sorted((row for row in found if row["run"] == newest), key=series.size)
    if len(found) < 3:
        return None
    sizes = [*map(series.size, found)]
    memory = [max(float(row["memory_mb"]), LEAST_MB) for row in found]
    return {
        "what": series.what,
        "m": series.m,
        "jobs": series.jobs,
        "over": series.over,
        "sizes": " ".join(map(str, sizes)),
        "time": slope(sizes, [float(row["best_s"]) for row in found]),
        "memory": slope(sizes, memory),
    }


#: Series of rows that the picture shows, as a reader would call them.
DRAWN = {
    (FULL_TEST, 10): "kernel test, all pairs",
    (DEFAULT_TEST, 10): "default test",
    (ECD_TEST, 10): "log-score test (ecd)",
    (AUDIT, 10): "audit",
    (AUDIT_OF_COLUMNS, 2): "audit of two classes, three columns of groups",
}


def draw(rows: Sequence[Row], path: Path) -> None:
    """Draw seconds against rows."""
    figure = Figure(figsize=(8, 4.2), layout="constrained")
    axes = figure.add_subplot(xscale="log", yscale="log", xlabel="rows", ylabel="seconds")
    for (what, m), name in DRAWN.items():
        newest: dict[int, tuple[str, float]] = {}
        for row in rows:
            if (row["what"], row["m"], row["by"], row["reason"]) == (what, str(m), "caltest", ""):
                found = row["run"], float(row["best_s"])
                newest[int(row["n"])] = max(found, newest.get(int(row["n"]), found))
        shown = [(n, seconds) for n, (_, seconds) in sorted(newest.items()) if n >= 1000]
        axes.plot([n for n, _ in shown], [seconds for _, seconds in shown], marker="o", label=name)
    axes.legend(frameon=False)
    save(figure, path)
