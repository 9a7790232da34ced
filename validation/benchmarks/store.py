"""CSV files that are written again after every row, so that a run that is ended leaves what it has."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

Row = dict[str, str]

TIMES = (
    "run", "group", "what", "by", "version", "n", "m", "jobs", "best_s", "median_s", "runs",
    "memory_mb", "held_mb", "value", "pvalue", "limit_s", "limit32_s", "load", "reason",
)  # fmt: skip
LIMITS = ("run", "what", "per_second")
FINDINGS = ("run", "by", "version", "name", "claim", "numbers", "shown", "reason")
MACHINE = ("run", "processor", "cores", "system", "python", "numpy", "numba", "load")
LOOPS = ("run", "loop", "one", "m", "compiled_ns", "plain_ns", "plain", "load")
BEFORE = (
    "run", "commit", "group", "what", "n", "m", "jobs", "pairs", "before_s", "now_s", "ratio",
    "before_mb", "now_mb", "before_value", "now_value", "before_pvalue", "now_pvalue", "by", "version",
    "peer_s", "peer_mb", "peer_value", "peer_pvalue", "load", "reason",
)  # fmt: skip
GROWTH = ("what", "m", "jobs", "over", "sizes", "time", "memory")


class Store:
    """Rows of a CSV file, one for each key."""

    def __init__(self, path: Path, fields: Sequence[str], key: Sequence[str]) -> None:
        self.path, self.fields, self.key = path, tuple(fields), tuple(key)
        self.rows = self._read()

    def _read(self) -> list[Row]:
        if not self.path.exists():
            return []
        with self.path.open(newline="") as file:
            return [row for row in csv.DictReader(file) if set(row) == set(self.fields)]

    def keep(self, known: Iterable[tuple[Any, ...]]) -> None:
        """Forget rows that nothing measures any more."""
        keys = {tuple(str(part) for part in key) for key in known}
        self.rows = [row for row in self.rows if self._key(row) in keys]

    def put(self, **found: Any) -> Row:
        """Add a row, in place of the one that has its key, and write the file."""
        row = {name: _text(found.get(name, "")) for name in self.fields}
        places = [self._key(other) for other in self.rows]
        if self._key(row) in places:
            self.rows[places.index(self._key(row))] = row
        else:
            self.rows.append(row)
        self.write()
        return row

    def _key(self, row: Row) -> tuple[str, ...]:
        return tuple(row[name] for name in self.key)

    def write(self) -> None:
        """Write all rows to a new file, then put it in the place of the old one."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        half = self.path.with_suffix(".part")
        with half.open("w", newline="") as file:
            writer = csv.DictWriter(file, fieldnames=self.fields, lineterminator="\n")
            writer.writeheader()
            writer.writerows(self.rows)
        half.replace(self.path)


def _text(value: Any) -> str:
    if value is None:
        return ""
    return f"{value:.6g}" if isinstance(value, float) else str(value)


# ------------------------------------------------------------------ the files of a folder


def times(folder: Path) -> Store:
    """Return time and memory of all cases."""
    return Store(folder / "benchmarks_times.csv", TIMES, ("what", "by", "n", "m", "jobs"))


def before(folder: Path) -> Store:
    """Return those beside an older checkout."""
    return Store(folder / "benchmarks_before.csv", BEFORE, ("what", "n", "m", "jobs"))


def limits(folder: Path) -> Store:
    """Return the rates of the machine."""
    return Store(folder / "benchmarks_limits.csv", LIMITS, ("what",))


def machine(folder: Path) -> Store:
    """Return what the machine of every run was."""
    return Store(folder / "benchmarks_machine.csv", MACHINE, ("run",))


def loops(folder: Path) -> Store:
    """Return the nanoseconds of the compiled loops."""
    return Store(folder / "loops.csv", LOOPS, ("loop", "m"))


def growth(folder: Path) -> Store:
    """Return the exponents of time and memory."""
    return Store(folder / "benchmarks_growth.csv", GROWTH, ("what", "over"))


def findings(folder: Path) -> Store:
    """Return what was found in other packages."""
    return Store(folder / "benchmarks_findings.csv", FINDINGS, ("name",))
