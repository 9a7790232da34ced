"""Long studies that can be stopped: rows by key in a CSV file, and a record of every run.

A study is cut into cells. What a cell found is written before the next begins, to a file that is
replaced as a whole, so that a run may be stopped at any time and goes on where it was. A row holds the
seed and the version it was made with, and whatever decides its numbers is part of its key: rows of
other settings are other rows, which a run neither uses nor removes.
"""

from __future__ import annotations

import csv
import os
import platform
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from time import monotonic
from typing import Any

import joblib
import numpy as np
from threadpoolctl import threadpool_limits

import caltest

Row = dict[str, Any]

RUNS = "runs.csv"
_RUN = ("study", "mode", "caltest", "python", "numpy", "scipy", "processor")


@dataclass(frozen=True)
class Options:
    """How a study is to be run.

    Attributes
    ----------
    results
        Folder of the CSV files and pictures.
    quick
        At sizes that show only that everything runs.
    jobs
        Processes.
    minutes
        Begin no cell later than so many minutes after the start; None: no limit.
    only
        Run the cells whose description holds all these texts, the commands whose name has these words.
    datasets
        Data sets a cell, of studies that count these; None: as many as the mode says.
    pictures
        Draw, and compare with published numbers, when the cells are done.
    started
        When the run began, on the monotonic clock.
    asked
        What was found to be asked for: filled while a study runs.
    """

    results: Path
    quick: bool = False
    jobs: int = 1
    minutes: float | None = None
    only: tuple[str, ...] = ()
    datasets: int | None = None
    pictures: bool = True
    started: float = field(default_factory=monotonic)
    asked: list[str] = field(default_factory=list)

    @property
    def seconds(self) -> float:
        """Seconds since the start."""
        return monotonic() - self.started

    @property
    def over(self) -> bool:
        """Whether no cell should begin any more."""
        return self.minutes is not None and self.seconds > 60.0 * self.minutes

    def wants(self, description: str) -> bool:
        """Whether a cell is asked for."""
        return self._noted(description, all(text in description for text in self.only))

    def names(self, command: str) -> bool:
        """Whether a command is asked for."""
        words = " ".join(self.only).split()
        return self._noted(command, set(words) <= set(command.split()))

    def _noted(self, what: str, wanted: bool) -> bool:
        if wanted:
            self.asked.append(what)
        return wanted


class Table:
    """A CSV file of rows, of which no two have the same key; one process at a time writes it."""

    def __init__(self, path: Path, key: Sequence[str]) -> None:
        self.path, self.key = path, tuple(key)
        self._rows: dict[tuple[str, ...], Row] = {}
        if path.exists():
            with path.open(newline="") as file:
                self._rows = {self._of(row): row for row in csv.DictReader(file)}

    def _of(self, row: Mapping[str, Any]) -> tuple[str, ...]:
        return tuple(_text(row[name]) for name in self.key)

    def get(self, **key: Any) -> Row | None:
        """Return the row of a key, every entry a text; None if there is none."""
        return self._rows.get(self._of(key))

    def where(self, **known: Any) -> list[Row]:
        """Return the rows with these entries."""
        wanted = {name: _text(value) for name, value in known.items()}
        return [
            row for row in self._rows.values() if all(row[k] == value for k, value in wanted.items())
        ]

    def put(self, rows: Iterable[Row]) -> None:
        """Add rows or replace those of the same keys, and write the file."""
        for row in rows:
            texts = {name: _text(value) for name, value in row.items()}
            self._rows[self._of(texts)] = texts
        self.path.parent.mkdir(parents=True, exist_ok=True)
        unfinished = self.path.with_suffix(".tmp")
        with unfinished.open("w", newline="") as file:
            names = list(dict.fromkeys(name for each in self._rows.values() for name in each))
            writer = csv.DictWriter(file, fieldnames=names, lineterminator="\n")
            writer.writeheader()
            writer.writerows(self._rows.values())
        unfinished.replace(self.path)


def _text(value: Any) -> str:
    return f"{value:.6g}" if isinstance(value, float) else str(value)


def spread(
    task: Callable[[np.random.SeedSequence], Any],
    seeds: Iterable[np.random.SeedSequence],
    parallel: joblib.Parallel,
) -> list[Any]:
    """Do the task for every seed, a thread a process; the order is that of the seeds."""
    return list(parallel(joblib.delayed(_alone)(task, seed) for seed in seeds))


def _alone(task: Callable[[np.random.SeedSequence], Any], seed: np.random.SeedSequence) -> Any:
    with threadpool_limits(1):
        return task(seed)


def seeds(seed: int, cell: Sequence[int], first: int, last: int) -> list[np.random.SeedSequence]:
    """Return the seeds of data sets ``first`` to ``last`` (not included) of a cell."""
    return [np.random.SeedSequence(seed, spawn_key=(*cell, number)) for number in range(first, last)]


def batches(
    table: Table, key: Row, cell: Sequence[int], options: Options, wanted: int, size: int
) -> Iterator[tuple[Row, int, list[np.random.SeedSequence]]]:
    """Yield, until enough data sets of a cell are in the table: its row, how many they will be, seeds.

    ``size`` data sets come at a time, and the row of the key is read anew each time.
    """
    while not options.over:
        row = table.get(**key) or {}
        done = int(row.get("datasets", 0))
        if done >= wanted:
            return
        last = min(done + size, wanted)
        yield row, last, seeds(int(key["seed"]), cell, done, last)


Part = tuple[int, Row, Callable[[np.random.SeedSequence], dict[str, bool]]]


def counted(
    name: str, parts: Iterable[Part], options: Options, seed: int, datasets: int, block: int = 25
) -> None:
    """Count, for designs of a file, in how many data sets what is named happens.

    A part is the number of its cell, its design, and a function of a seed that says what happens in
    one data set. Data sets come a block at a time, and the file is written after each.
    """
    table: Table | None = None
    with joblib.Parallel(n_jobs=options.jobs) as parallel:
        for cell, design, one in parts:
            table = table or Table(options.results / f"{name}.csv", (*design, "seed"))
            what = f"{name}: " + ", ".join(map(str, design.values()))
            if not options.wants(what):
                continue
            wanted = options.datasets or (1 if options.quick else datasets)
            key = {**design, "seed": seed}
            for row, last, drawn in batches(table, key, (cell,), options, wanted, block):
                found = spread(one, drawn, parallel)
                counts = {x: int(row.get(x, 0)) + sum(each[x] for each in found) for x in found[0]}
                table.put([{**key, "caltest": caltest.__version__, "datasets": last, **counts}])
                print(f"{what}: {last} of {wanted}, {options.seconds:.0f} s", flush=True)


def record(study: str, options: Options, seconds: float) -> None:
    """Write down for how long a study has been run until when, and with which versions."""
    table = Table(options.results / RUNS, _RUN)
    key = {
        "study": study,
        "mode": "quick" if options.quick else "full",
        "caltest": caltest.__version__,
        "python": platform.python_version(),
        "numpy": version("numpy"),
        "scipy": version("scipy"),
        "processor": f"{platform.machine()}, {os.cpu_count()} cores",
    }
    known = table.get(**key) or {"runs": 0, "seconds": 0}
    numbers = {"runs": int(known["runs"]) + 1, "seconds": int(known["seconds"]) + round(seconds)}
    finished = datetime.now(UTC).strftime("%Y-%m-%d %H:%M")
    table.put([{**key, **numbers, "finished": finished}])
