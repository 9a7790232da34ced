"""Validity of every (statistic, null) pair: how often is a calibrated model rejected at .01 and .05?

``python -m validation validity``: the designs of :mod:`validation._designs`, all pairs of the
registries that fit, 199 resamples, 2000 data sets in full. The data set of a number is the same for all
pairs of a design.

``validity_summary.csv`` counts, for every null, cells whose number of rejections is outside binomial
limits. These are simultaneous for exact pairs: with K cells of exact pairs and levels, the two-sided
limits of a cell are those of .01/K. Below them is right where draws tie with the observed value, for
ties count for the null. Others are shown by the same limits.

``validity_pooled.csv`` adds up, for each exact pair, the designs without ties, which a bias of a few
parts in a hundred would show, in a single cell unseen. Designs are drawn independently of each other,
so the sum of rejections of a pair is binomial if it is exact; the pairs of one design are tried on the
same data sets, so their sums over pairs are not, and are not shown. Limits are simultaneous again, over
the pairs and levels. Designs where draws tie with the observed value are left out, for their cells are
conservative and would hide an excess elsewhere: they are judged one by one. A statistic whose draws tie
on every design has no line.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import joblib
import numpy as np
from scipy.stats import binom, binomtest

import caltest
from caltest.nulls import NULLS
from caltest.statistics import STATISTICS
from validation._cells import Options, Row, Table, seeds, spread
from validation._designs import DESIGNS, Design
from validation._study import Pair, fitting_pairs, markdown, write_csv

SEED = 20_190_410
RESAMPLES = 199
DATASETS, BLOCK = 2000, 50
LEVELS = (0.01, 0.05)
SURE = 0.01  # that any exact cell is outside the limits, if all are exact
TIED = 1e-10  # relative to the largest value, as in the package
MANY_TIES = 0.005  # share of draws equal to the observed value
KEY = ("design", "statistic", "null", "resamples", "seed")


class Outcome(NamedTuple):
    """One test: its p-value and the share of resamples equal to the observed value."""

    pvalue: float
    ties: float


@dataclass
class Cell:
    """A pair on a design, and how many data sets are done."""

    number: int
    design: Design
    pair: Pair
    done: int = 0

    @property
    def key(self) -> Row:
        """Its columns."""
        what = {"design": self.design.name, "statistic": self.pair[0], "null": self.pair[1]}
        return {**what, "resamples": RESAMPLES, "seed": SEED}

    @property
    def urgency(self) -> tuple[int, int, bool]:
        """The least comes first: exact pairs; consistency resampling, slow and known to fail, last."""
        slow = self.pair[1] == "consistency"
        return (10 * (self.done + BLOCK) if slow else self.done), slow, self.pair[1] != "monte_carlo"

    def __str__(self) -> str:
        return f"{self.design.name} / {self.pair[0]} / {self.pair[1]}"


# ------------------------------------------------------------------ tests


def pairs(design: Design) -> list[Pair]:
    """Return the pairs of the registries that fit; a null is possible where it says so."""
    return fitting_pairs(design.draw(np.random.SeedSequence(0)), list(STATISTICS), list(NULLS))


def tested(design: Design, pair: Pair, seed: np.random.SeedSequence) -> Outcome:
    """Draw a data set and test it."""
    data, draws = seed.spawn(2)
    simulated, (statistic, null) = design.draw(data), pair
    result = caltest.test(
        simulated.probs, simulated.labels, statistic, null=null, n_resamples=RESAMPLES, rng=draws
    )
    drawn = result.null_distribution
    if drawn is None:
        return Outcome(result.pvalue, 0.0)
    near = np.abs(drawn - result.statistic) <= TIED * max(np.abs(drawn).max(), abs(result.statistic))
    return Outcome(result.pvalue, float(near.mean()))


def run(options: Options) -> None:
    """Run blocks of data sets, that cell first of which the least is done; then judge and draw."""
    table = Table(options.results / "validity.csv", KEY)
    wanted = options.datasets or (2 if options.quick else DATASETS)
    todo = [cell for cell in _cells(options, table) if cell.done < wanted]
    with joblib.Parallel(n_jobs=options.jobs) as parallel:
        while todo and not options.over:
            cell = min(todo, key=lambda each: each.urgency)
            last = min(cell.done + BLOCK, wanted)
            task = partial(tested, cell.design, cell.pair)
            drawn = seeds(SEED, (cell.number,), cell.done, last)
            _add(np.array(spread(task, drawn, parallel), dtype=np.float64), cell, table)
            todo = [each for each in todo if each.done < wanted]
            print(f"{cell}: {cell.done} of {wanted}, {options.seconds:.0f} s", flush=True)
    rows = judged(table)
    if rows and options.pictures:
        from validation.validity_figure import draw

        _report(rows, options)
        draw(rows, options.results / "validity.png")


def _cells(options: Options, table: Table) -> Iterator[Cell]:
    for number, design in enumerate(DESIGNS):
        if options.quick and number not in (1, 12):
            continue
        for pair in pairs(design):
            cell = Cell(number, design, pair)
            if options.wants(str(cell)):
                row = table.get(**cell.key)
                cell.done = int(row["datasets"]) if row else 0
                yield cell


def _add(found: Any, cell: Cell, table: Table) -> None:
    """Add p-values and shares of ties to the table."""
    row = table.get(**cell.key)
    n, done = len(found), cell.done
    cell.done += n
    before = [int(row[f"p<={x:g}"]) if row else 0 for x in LEVELS]
    ties = float(row["ties"]) if row else 0.0
    counts = {
        f"p<={x:g}": b + int(np.count_nonzero(found[:, 0] <= x))
        for x, b in zip(LEVELS, before, strict=True)
    }
    numbers = {"datasets": cell.done, **counts}
    numbers["ties"] = (done * ties + n * float(np.nanmean(found[:, 1]))) / cell.done
    guarantee = NULLS[cell.pair[1]].guarantee
    table.put([{**cell.key, "guarantee": guarantee, "caltest": caltest.__version__, **numbers}])


# ------------------------------------------------------------------ verdicts


def judged(table: Table) -> list[Row]:
    """Return a row for every pair, design and level, with its verdict."""
    cells = [row for row in table.where() if row["statistic"] in STATISTICS and row["null"] in NULLS]
    exact = len(LEVELS) * sum(NULLS[row["null"]].guarantee == "exact" for row in cells)
    share = SURE / max(exact, 1) / 2.0
    return [
        {
            **{name: row[name] for name in ("design", "statistic", "null")},
            "level": level,
            "guarantee": NULLS[row["null"]].guarantee,
            "datasets": int(row["datasets"]),
            "rejections": int(row[f"p<={level:g}"]),
            "ties": float(row["ties"]),
            "verdict": verdict(
                int(row[f"p<={level:g}"]), int(row["datasets"]), level, share, float(row["ties"])
            ),
        }
        for row in cells
        for level in LEVELS
    ]


def verdict(rejections: int, datasets: int, level: float, share: float, ties: float) -> str:
    """Say where the count is: inside the binomial limits, above or below."""
    if binom.sf(rejections - 1, datasets, level) < share:
        return "above"
    if binom.cdf(rejections, datasets, level) < share:
        return "below (ties)" if ties > MANY_TIES else "below"
    return "inside"


def summary(rows: list[Row]) -> list[Row]:
    """Count the verdicts of every null and level."""
    found = []
    for guarantee in ("exact", "approximate", "asymptotic", "bound"):
        nulls = dict.fromkeys(row["null"] for row in rows if row["guarantee"] == guarantee)
        for null, level in [(null, level) for null in nulls for level in LEVELS]:
            mine = [row for row in rows if (row["null"], row["level"]) == (null, level)]
            rates = [row["rejections"] / row["datasets"] for row in mine]
            verdicts = Counter(row["verdict"] for row in mine)
            found.append(
                {
                    "guarantee": guarantee,
                    "null": null,
                    "level": level,
                    "cells": len(mine),
                    "fewest_datasets": min(row["datasets"] for row in mine),
                    "most_datasets": max(row["datasets"] for row in mine),
                    "smallest_rate": round(min(rates), 4),
                    "largest_rate": round(max(rates), 4),
                    **{name: verdicts[name] for name in ("inside", "above", "below", "below (ties)")},
                }
            )
    return found


def pooled(rows: list[Row]) -> list[Row]:
    """Add up an exact pair's designs without ties, level by level; limits are simultaneous."""
    exact = [row for row in rows if row["guarantee"] == "exact" and row["ties"] <= MANY_TIES]
    groups = dict.fromkeys((row["statistic"], row["null"], row["level"]) for row in exact)
    share = SURE / max(len(groups), 1) / 2.0
    found = []
    for statistic, null, level in groups:
        mine = [r for r in exact if (r["statistic"], r["null"], r["level"]) == (statistic, null, level)]
        datasets, rejections = (sum(row[name] for row in mine) for name in ("datasets", "rejections"))
        low, high = binomtest(rejections, datasets).proportion_ci(1.0 - 2.0 * share)
        found.append(
            {
                "statistic": statistic,
                "null": null,
                "level": level,
                "designs_without_ties": len(mine),
                "datasets": datasets,
                "rejections": rejections,
                "rate": round(rejections / datasets, 5),
                "low": round(float(low), 5),
                "high": round(float(high), 5),
                "verdict": verdict(rejections, datasets, level, share, 0.0),
            }
        )
    return found


def _report(rows: list[Row], options: Options) -> None:
    """Write and print both tables, and what is not as promised."""
    sums = pooled(rows)
    for name, table in (("summary", summary(rows)), ("pooled", sums)):
        if table:
            write_csv(table, options.results / f"validity_{name}.csv")
            print(markdown(table), flush=True)
    for row in [*sums, *(row for row in rows if row["guarantee"] == "exact")]:
        if row["verdict"] in ("above", "below"):
            print(f"an exact pair is outside the limits: {row}", flush=True)
