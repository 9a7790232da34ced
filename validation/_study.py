"""What studies share: folders, registered statistics on simulated data, command lines, tables."""

from __future__ import annotations

import argparse
import csv
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import matplotlib.pyplot as plt
from PIL import Image

import caltest
from caltest.data import Rows, sample
from caltest.forms import Form
from caltest.lenses import through
from caltest.nulls import possible_nulls
from caltest.simulation import Simulated
from caltest.statistics import STATISTICS

ROOT = Path(__file__).resolve().parents[1]
RESULTS = ROOT / "validation" / "results"
REFERENCE = Path(os.environ.get("CALTEST_REFERENCE_DATA", ROOT.parent / "shared" / "data"))
CONFIDENCE = 0.99  # of the binomial intervals: many cells, one table

Pair = tuple[str, str]


def fixed(statistic: str, simulated: Simulated) -> tuple[Form, Rows]:
    """Return a registered statistic as a function of the labels, and the predictions it sees."""
    measure = STATISTICS[statistic]()
    view, _ = through(sample(simulated.probs, simulated.labels), None, measure.default_lens)
    predictions = view.rows
    return measure.given(predictions), predictions


def fitting_pairs(simulated: Simulated, statistics: Sequence[str], nulls: Sequence[str]) -> list[Pair]:
    """Return the (statistic, null) pairs of the registries that fit such predictions."""
    pairs = []
    for name in statistics:
        try:
            form, _ = fixed(name, simulated)
        except caltest.InputError as error:
            print(f"{name} is left out: {error}", flush=True)
            continue
        pairs += [(name, null) for null in possible_nulls(form) if null in nulls]
    return pairs


def command_line(description: str, seed: int | None = None) -> argparse.ArgumentParser:
    """Return the options that every module with a command line of its own has."""
    made = argparse.ArgumentParser(
        description=description, formatter_class=argparse.RawTextHelpFormatter
    )
    made.add_argument("--jobs", type=int, default=1, help="processes; -1: all cores")
    made.add_argument(
        "--results", type=Path, metavar="DIR", default=RESULTS, help="where results go (the record)"
    )
    if seed is not None:
        made.add_argument("--seed", type=int, default=seed)
    return made


def save(figure: Any, path: Path, dpi: int = 100) -> None:
    """Save a picture in 128 colours, which look the same in a third of the bytes, and close it."""
    figure.savefig(path, dpi=dpi, metadata={"Software": None})
    plt.close(figure)
    with Image.open(path) as image:
        few = image.convert("RGB").quantize(128, dither=Image.Dither.NONE)
    few.save(path, optimize=True)


def write_csv(rows: Sequence[Mapping[str, Any]], path: Path) -> None:
    """Write rows of one set of columns."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, fieldnames=list(rows[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)


def markdown(rows: Sequence[Mapping[str, Any]]) -> str:
    """Return rows of one set of columns as a Markdown table."""
    head = list(rows[0])
    lines = ["| " + " | ".join(head) + " |", "|" + " --- |" * len(head)]
    lines += ["| " + " | ".join(str(row[name]) for name in head) + " |" for row in rows]
    return "\n".join(lines)
