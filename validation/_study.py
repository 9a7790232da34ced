"""Repeated tests of simulated data sets: what the size and the power study share."""

from __future__ import annotations

import argparse
import csv
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter
from typing import Any, NamedTuple

import joblib
import numpy as np
from numpy.typing import NDArray
from scipy.stats import binomtest
from threadpoolctl import threadpool_limits

import caltest
from caltest.data import Predictions, sample
from caltest.forms import Form
from caltest.lenses import seen
from caltest.named import possible_nulls
from caltest.nulls import NULLS
from caltest.simulation import Simulated
from caltest.statistics import STATISTICS

RESULTS = Path(os.environ.get("CALTEST_VALIDATION_RESULTS", Path(__file__).parent / "results"))
REFERENCE = Path(
    os.environ.get("CALTEST_REFERENCE_DATA", Path(__file__).resolve().parents[2] / "shared" / "data")
)
TIED = 1e-10  # relative to the largest value, as in the package
CONFIDENCE = 0.99  # of the binomial intervals: many cells, one table

Pair = tuple[str, str]


@dataclass(frozen=True)
class Design:
    """A way to draw a data set, with a name."""

    name: str
    draw: Callable[[np.random.SeedSequence], Simulated]


class Outcome(NamedTuple):
    """One test: its p-value and the share of resamples equal to the observed value."""

    pvalue: float
    ties: float


class Cell(NamedTuple):
    """All tests of one pair on one design."""

    statistic: str
    null: str
    guarantee: str
    pvalues: NDArray[np.float64]
    ties: float

    def row(self, level: float) -> dict[str, Any]:
        """Return the rejection rate at ``level`` with its Clopper–Pearson interval."""
        rejections = int(np.count_nonzero(self.pvalues <= level))
        interval = binomtest(rejections, len(self.pvalues)).proportion_ci(CONFIDENCE)
        return {
            "level": level,
            "rejections": rejections,
            "repetitions": len(self.pvalues),
            "rate": round(rejections / len(self.pvalues), 5),
            "low": round(interval.low, 5),
            "high": round(interval.high, 5),
        }


def fixed(statistic: str, simulated: Simulated) -> tuple[Form, Predictions]:
    """Return a registered statistic as a function of the labels, and the predictions it sees."""
    measure = STATISTICS[statistic]()
    view, _ = seen(sample(simulated.probs, simulated.labels), None, measure.default_lens)
    predictions = view.predictions
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


def run(
    design: Design,
    pairs: Sequence[Pair],
    repetitions: int,
    resamples: int,
    seed: np.random.SeedSequence,
    jobs: int,
) -> list[Cell]:
    """Test ``repetitions`` data sets of ``design`` by every pair."""
    start = perf_counter()
    tasks = (joblib.delayed(_test_one)(design, pairs, resamples, s) for s in seed.spawn(repetitions))
    outcomes = np.array(joblib.Parallel(n_jobs=jobs)(tasks), dtype=np.float64)
    print(f"{design.name}: {repetitions} data sets in {perf_counter() - start:.0f} s", flush=True)
    return [
        Cell(statistic, null, NULLS[null].guarantee, results[:, 0], float(np.nanmean(results[:, 1])))
        for (statistic, null), results in zip(pairs, outcomes.transpose(1, 0, 2), strict=True)
    ]


def _test_one(
    design: Design, pairs: Sequence[Pair], resamples: int, seed: np.random.SeedSequence
) -> list[Outcome]:
    data, tests = seed.spawn(2)
    simulated = design.draw(data)
    with threadpool_limits(1):
        return [_outcome(simulated, *pair, resamples, tests) for pair in pairs]


def _outcome(
    simulated: Simulated, statistic: str, null: str, resamples: int, rng: np.random.SeedSequence
) -> Outcome:
    result = caltest.test(
        simulated.probs, simulated.labels, statistic, null=null, n_resamples=resamples, rng=rng
    )
    draws = result.null_distribution
    if draws is None:
        return Outcome(result.pvalue, 0.0)
    near = np.abs(draws - result.statistic) <= TIED * max(np.abs(draws).max(), abs(result.statistic))
    return Outcome(result.pvalue, float(near.mean()))


# ------------------------------------------------------------------ command line and tables


def parser(description: str, results: str) -> argparse.ArgumentParser:
    """Return the options that both studies have; ``results`` names the CSV file."""
    made = argparse.ArgumentParser(description=description)
    made.add_argument("--repetitions", type=int, default=2000, help="data sets a design")
    made.add_argument("--resamples", type=int, default=999)
    made.add_argument("--jobs", type=int, default=1)
    made.add_argument("--seed", type=int, default=20_190_410)
    made.add_argument("--designs", type=int, nargs="+", help="which designs, counted from 0 (all)")
    made.add_argument("--results", default=results, help="name of the CSV file")
    made.add_argument("--statistics", nargs="+", choices=list(STATISTICS), default=list(STATISTICS))
    made.add_argument("--nulls", nargs="+", choices=list(NULLS), default=list(NULLS))
    return made


def cells(
    designs: Sequence[Design], options: argparse.Namespace
) -> Iterator[tuple[Design, Simulated, Cell]]:
    """Run every design; a design's seed depends on its place in the list only."""
    for number, design in enumerate(designs):
        if options.designs and number not in options.designs:
            continue
        seed = np.random.SeedSequence(options.seed, spawn_key=(number,))
        example = design.draw(np.random.SeedSequence(0))
        pairs = fitting_pairs(example, options.statistics, options.nulls)
        for cell in run(design, pairs, options.repetitions, options.resamples, seed, options.jobs):
            yield design, example, cell


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
