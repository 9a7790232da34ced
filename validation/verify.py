"""Run one block of every file of the record again, and compare it with the record, row by row.

``python -m validation.verify [STUDY…]``: without names, those blocks that verified.csv says are not yet
run; it can be stopped, and goes on where it was. A block is the cheapest part of a file that means
something: its command is in the file. Numbers are equal up to 1e-12 of their size, and texts are the
same; columns of time, memory, load and version are left out.
"""

from __future__ import annotations

import argparse
import csv
import importlib
import re
import shlex
import shutil
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from unittest.mock import patch

import matplotlib as mpl

import caltest
from validation import __main__ as studies
from validation._blocks import BLOCKS, DIFFERS, KEYS, NOT_RUN, Block
from validation._cells import Row, Table
from validation._study import RESULTS

EQUAL = 1e-12
NOT_YET = "not run: not yet, for it takes minutes of one core"
LEFT_OUT = re.compile(r"caltest|versions?|seconds.*|.*_seconds|.*_mb|.*megabytes.*|memory.*|load")
#: Columns from which on there are results; those before say which row it is.
RESULT = (
    "seed", "caltest", "datasets", "of", "data_sets", "mean", "found", "rejected", "rate", "hypotheses",
    "rows_asked_for", "parts", "trials", "value", "held", "pilots", "true_over",
)  # fmt: skip


def rows_of(path: Path) -> list[Row]:
    """Read a file."""
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


def difference(a: str, b: str) -> float:
    """Return how far two entries are apart, by the size of the larger; of texts 0 or infinity."""
    if a == b:
        return 0.0
    try:
        x, y = float(a), float(b)
    except ValueError:
        return float("inf")
    return abs(x - y) / max(abs(x), abs(y))


def compared(
    again: Sequence[Row], record: Sequence[Row], keys: Sequence[str] | None = None
) -> tuple[int, float, list[str]]:
    """Return how many rows are compared, the largest difference, and the columns that differ."""
    head = list(again[0])
    if keys is None:
        keys = head[: next((k for k, name in enumerate(head) if name in RESULT), 0)]
    known: dict[Any, Row] = {tuple(row[key] for key in keys): row for row in record}
    if whole := len(known) < len(record):  # rows without a name of their own are taken in order
        known = dict(enumerate(record))
    largest, columns = 0.0, dict[str, None]()
    for place, row in enumerate(again):
        other = known.get(place if whole else tuple(row[key] for key in keys), {})
        for name in head:
            if not LEFT_OUT.fullmatch(name):
                far = difference(row[name], other.get(name, "no such row"))
                largest = max(largest, far)
                if far > EQUAL:
                    columns[name] = None
    return len(again), largest, list(columns)


@contextmanager
def cut(block: Block) -> Iterator[None]:
    """Leave some entries of a table of the module, or of what a function of it returns."""
    name, _, piece = block.part.partition("[")
    if not name:
        yield
        return
    module = importlib.import_module(f"validation.{block.module}")
    whole: Any = getattr(module, name)
    first, last = (int(each) if each else None for each in piece.rstrip("]").split(":"))

    def some(table: Any) -> Any:
        return dict([*table.items()][first:last]) if isinstance(table, dict) else table[first:last]

    kept = (lambda *given: some(whole(*given))) if callable(whole) else some(whole)
    with patch.object(module, name, kept):
        yield


def made_again(block: Block, folder: Path) -> None:
    """Run the command of a block."""
    for name in block.given.split():
        shutil.copy(RESULTS / f"{name}.csv", folder)
    first, *arguments = shlex.split(block.command)
    arguments += ["--results", str(folder)]
    with cut(block):
        if first.startswith("."):
            importlib.import_module(f"validation{first}").main(arguments)
        else:
            studies.main([first, *arguments])


def verify(block: Block) -> Iterator[Row]:
    """Run a block, and yield a line of each of its files."""
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        made_again(block, folder)
        for name in block.files.split():
            record = rows_of(RESULTS / f"{name}.csv")
            rows, largest, columns = compared(rows_of(folder / f"{name}.csv"), record, KEYS.get(name))
            why = DIFFERS.get(name) or f"{', '.join(columns)}, not explained"
            yield {
                "file": f"{name}.csv",
                "block": block.text,
                "rows_compared": rows,
                "of": len(record),
                "equal": f"no: {why}" if columns else "yes",
                "largest_difference": f"{largest:.2g}",
                "day": f"{datetime.now(UTC):%Y-%m-%d}",
                "version": caltest.__version__,
            }


def lines_not_run(table: Table) -> Iterator[Row]:
    """Yield a line of every file that is not run again, or not yet."""
    for pattern, why in NOT_RUN.items():
        for path in sorted(RESULTS.glob(f"{pattern}.csv")):
            yield _not_run(path.name, "", f"not run: {why}")
    for block in BLOCKS:
        for name in block.files.split():
            if not table.where(file=f"{name}.csv"):
                yield _not_run(f"{name}.csv", block.text, NOT_YET)


def _not_run(name: str, block: str, why: str) -> Row:
    of = len(rows_of(RESULTS / name))
    return {"file": name, "block": block, "rows_compared": 0, "of": of, "equal": why}


def main(arguments: Sequence[str] | None = None) -> int:
    """Run blocks; return how many lines say no."""
    given = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    given.add_argument("study", nargs="*", help="studies, modules or files (without .csv)")
    asked = given.parse_args(arguments).study
    mpl.use("Agg")
    table = Table(RESULTS / "verified.csv", ("file",))
    table.put(lines_not_run(table))
    for block in BLOCKS:
        files = [f"{name}.csv" for name in block.files.split()]
        if {block.module, *block.files.split()} & set(asked) or (
            not asked and any(table.where(file=name, equal=NOT_YET) for name in files)
        ):
            table.put(verify(block))
            for name in files:
                print(f"{name}: {table.where(file=name)[0]['equal']}", flush=True)
    return sum(row["equal"].startswith("no:") for row in table.where())


if __name__ == "__main__":
    sys.exit(main())
