"""Bounds of places (``somewhere_by``): how often one is not below the truth.

``python -m validation.places``: predictions held fixed, labels drawn from the true probabilities
20 000 times. The bounds are functions of the counts of events in every interval, so that an interval's
bound fails exactly if the count is at or below a critical one; ``same`` says in how many of the first
data sets the package's own bounds fail exactly where the counts say so. ``limit`` is the largest count
that a test of the level would show in 9 999 of 10 000 records, simultaneously over all cells.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.stats import binom

from caltest.bounds.intervals import largest_refuted
from caltest.bounds.lower import SIDES, TOLERANCES, ShiftedScan
from validation._study import command_line, markdown, write_csv

Array = NDArray[np.float64]

LEVELS = (0.2, 0.05, 0.01)
FALSE_ALARM = 1e-4

#: Scores, and how much too high they are.
DESIGNS: dict[str, tuple[Array, Callable[[Array], Array]]] = {
    "20 rows, 0.5": (np.full(20, 0.5), lambda p: np.full_like(p, 0.2)),
    "40 rows": (np.linspace(0.2, 0.9, 40), lambda p: np.full_like(p, 0.1)),
    "130 rows, ties": (np.round(np.linspace(0.15, 0.95, 130), 1), lambda p: np.full_like(p, 0.05)),
    "300 rows, rare": (np.linspace(0.005, 0.06, 300), lambda p: np.minimum(p, 0.01)),
    "300 rows": (np.linspace(0.2, 0.8, 300), lambda p: np.full_like(p, 0.1)),
    "300 rows, both sides": (
        np.linspace(0.2, 0.8, 300),
        lambda p: np.where(p < 0.5, 0.1, -0.1),
    ),
    "600 rows near 1": (np.linspace(0.9, 0.999, 600), lambda p: np.full_like(p, 0.03)),
    "1000 rows, calibrated": (np.linspace(0.05, 0.95, 1000), np.zeros_like),
    "4000 rows, a tenth wrong": (
        np.linspace(0.02, 0.98, 4000),
        lambda p: np.where(np.abs(p - 0.7) < 0.05, 0.1, 0.0),
    ),
}


def scan_of(name: str) -> tuple[ShiftedScan, Array]:
    """Return the scan of a design, and the true probabilities of its rows in order."""
    scores, error = DESIGNS[name]
    scan = ShiftedScan.of(np.column_stack([1.0 - scores, scores]), TOLERANCES)
    p = scan.probs[:, 1]
    return scan, np.clip(p - error(p), 0.0, 1.0)


def largest_errors(scan: ShiftedScan, truth: Array) -> dict[str, Array]:
    """Return the largest error of either side in every interval, at least 0, (L,)."""
    p = scan.probs[:, 1]
    found = {}
    for side, errors in (("over", p - truth), ("under", truth - p)):
        inside = [errors[a:b].max(initial=0.0) for a, b in scan.intervals.bounds]
        found[side] = np.round(inside, 12)
    return found


def critical(scan: ShiftedScan, errors: dict[str, Array], level: float) -> dict[str, Array]:
    """Return the largest count of every interval that refutes its true error, −1 if none does."""
    bounds = scan.intervals.bounds
    allowed = level / 2 / len(np.unique(bounds[scan.intervals.filled], axis=0))
    found = {}
    for side in SIDES:
        p = scan.probs[:, 1 if side == "over" else 0]
        most = []
        for (a, b), error in zip(bounds, errors[side], strict=True):
            law = np.ones(1)
            for chance in np.maximum(p[a:b] - error, 0.0):
                law = np.convolve(law, [1.0 - chance, chance])
            most.append(np.searchsorted(np.cumsum(law), allowed, side="right") - 1)
        found[side] = np.array(most)
    return found


def misses(
    scan: ShiftedScan, events: NDArray[np.integer[Any]], most: dict[str, Array]
) -> NDArray[np.bool_]:
    """Say which data sets (B, L) of counts have a bound that is not below the truth."""
    rows = np.diff(scan.intervals.bounds, axis=1)[:, 0]
    filled = scan.intervals.filled
    wrong = ((events <= most["over"]) | (rows - events <= most["under"])) & filled
    return np.asarray(wrong.any(axis=1))


def said(scan: ShiftedScan, labels: NDArray[np.intp], errors: dict[str, Array], level: float) -> bool:
    """Say whether the package's bounds for labels, in order, are somewhere not below the truth."""
    wrong = False
    for side in SIDES:
        refuted = largest_refuted(scan, labels, side, level / 2)
        amounts = np.where(refuted >= 0, scan.tolerances[refuted], -1.0)
        wrong |= bool((amounts >= errors[side]).any())
    return wrong


def study(options: argparse.Namespace) -> Iterable[dict[str, Any]]:
    """Yield the share of data sets with a false bound, for every design and level."""
    cells = len(DESIGNS) * len(LEVELS)
    for number, name in enumerate(DESIGNS):
        scan, truth = scan_of(name)
        errors = largest_errors(scan, truth)
        rng = np.random.default_rng([options.seed, number])
        starts, stops = scan.intervals.bounds.T
        counts, first = [], []
        for _ in range(options.repetitions):
            labels = (rng.random(len(truth)) < truth).astype(np.intp)
            running = np.concatenate([[0], np.cumsum(labels)])
            counts.append(running[stops] - running[starts])
            if len(first) < options.compared:
                first.append(labels)
        for level in LEVELS:
            wrong = misses(scan, np.array(counts), critical(scan, errors, level))
            same = [
                said(scan, labels, errors, level) == bool(w)
                for labels, w in zip(first, wrong, strict=False)
            ]
            limit = binom.ppf(1.0 - FALSE_ALARM / cells, len(wrong), level)
            yield {
                "design": name,
                "level": level,
                "intervals": int(scan.intervals.filled.sum()),
                "of": len(wrong),
                "false": int(wrong.sum()),
                "rate": round(float(wrong.mean()), 4),
                "limit": int(limit),
                "same": f"{sum(same)} of {len(same)}",
            }


def parsed(arguments: Sequence[str] | None = None) -> argparse.Namespace:
    """Return the options."""
    given = command_line(__doc__, seed=20_261_201)
    given.add_argument("--repetitions", type=int, default=20_000)
    given.add_argument("--compared", type=int, default=10, help="with the package's own bounds")
    return given.parse_args(arguments)


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the study."""
    options = parsed(arguments)
    rows = list(study(options))
    print(markdown(rows))
    write_csv(rows, options.results / "places.csv")


if __name__ == "__main__":
    main()
