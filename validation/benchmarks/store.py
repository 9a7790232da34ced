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
TIMES_KEY = ("what", "by", "n", "m", "jobs")
LIMITS = ("run", "what", "per_second")
LIMITS_KEY = ("what",)
FINDINGS = ("run", "by", "version", "name", "claim", "numbers", "shown", "reason")
FINDINGS_KEY = ("name",)
GROWTH = ("what", "m", "jobs", "sizes", "time", "memory")


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
