"""How often calibrated models are rejected: all statistics on the same data sets and the same draws.

A cell is a design, and a way to test it. Of every data set the draws (of labels, or of signs of
clusters) are made once, and all statistics are ranked among them. Data sets come in blocks, and what a
block found is written before the next begins. The first data set of a block is tested by
:func:`caltest.test` too, statistic by statistic, and the p-values must be the same (but where a lens
draws labels of its own). With clusters every test is :func:`caltest.test` itself.

Limits are simultaneous: with K lines of a summary those of each are binomial limits at .01/K. If all
tests are exact, no line is outside in 99 of 100 records.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import joblib
import numpy as np
from scipy.stats import binom, binomtest

import caltest
from caltest._parallel import ALONE
from caltest.data.sample import whole_sample
from caltest.forms import Combined, HasSigns
from caltest.lenses import Reduction, show, through
from caltest.nulls import answer_of
from caltest.resampling import Draws, columns_of
from caltest.resampling import table as values_of
from caltest.sampling import seed_of
from caltest.statistics import STATISTICS, find_statistic
from validation._cells import Options, Row, Table, seeds, spread

LEVELS = (0.01, 0.05, 0.1)
SURE = 0.01  # that any cell is outside the limits, if all tests are exact
RESAMPLES = 199
BLOCK = 25
FEW = 20  # effective clusters, below which a result warns
KEY = ("design", "null", "statistic", "resamples", "seed")
SIGNS, LABELS, ONE = "cluster_signs", "monte_carlo", "one_per_cluster"


class Data(NamedTuple):
    """A data set, and what its rows count by: the arguments of :func:`caltest.test`."""

    probs: Any
    labels: np.ndarray
    options: Mapping[str, Any] = {}


class Found(NamedTuple):
    """What a test found of a data set; the effective number of clusters is infinite without any."""

    pvalue: float
    effective: float


@dataclass(frozen=True)
class Cell:
    """A design, a way to test it and statistics; a cell's seeds hang on its number."""

    number: int
    design: str
    draw: Callable[[np.random.SeedSequence], Data]
    null: str
    statistics: tuple[str, ...]
    datasets: int = 1000

    def __str__(self) -> str:
        return f"{self.design} / {self.null}"


# ------------------------------------------------------------------ one data set


def tested(cell: Cell, data: Data, rng: np.random.SeedSequence) -> list[Found]:
    """Test a data set by all statistics of a cell; draws of labels are shared."""
    if cell.null != LABELS:
        return [_alone(cell, name, data, rng) for name in cell.statistics]
    options = {name: x for name, x in data.options.items() if name not in ("clusters", "lens")}
    lens = data.options.get("lens")
    whole = whole_sample(data.probs, data.labels, **options)
    seed, views = seed_of(rng), dict[str, Reduction]()
    asked = []
    for name in cell.statistics:
        statistic = find_statistic(name).shuffled(seed)
        view = show(whole.rows, lens, statistic.default_lens)
        fitted = statistic.fitted(view.rows)
        form = fitted.given(view.rows)
        own = None if view.label is None else views.setdefault(view.label, view)
        asked.append((fitted, form, columns_of(form, own)))
    every = [column for _, _, columns in asked for column in columns]
    draws = Draws(whole.rows.sampler(seed), whole.labels, RESAMPLES)
    table, found, last = values_of(every, draws, ALONE), [], 0
    for statistic, form, columns in asked:
        first, last = last, last + len(columns)
        side = statistic.alternatives[0]
        found.append(Found(answer_of(form, table[:, first:last], side, ALONE).pvalue, np.inf))
    return found


def _alone(cell: Cell, name: str, data: Data, rng: np.random.SeedSequence) -> Found:
    """Test by :func:`caltest.test` alone."""
    options = {k: v for k, v in data.options.items() if cell.null != LABELS or k != "clusters"}
    given = {"null": cell.null, "n_resamples": RESAMPLES, "rng": rng, **options}
    try:
        result = caltest.test(data.probs, data.labels, name, **given)
    except caltest.InputError:  # 'ece' of bins in which too few clusters count is refused
        return Found(1.0, 0.0)
    few = any("Few clusters carry" in warning for warning in result.warnings)
    return Found(result.pvalue, 0.0 if few else np.inf)


def _of_one(cell: Cell, seed: np.random.SeedSequence) -> list[Found]:
    data, draws = seed.spawn(2)
    drawn = cell.draw(data)
    found = tested(cell, drawn, draws)
    if cell.null == LABELS and seed.spawn_key[-1] % BLOCK == 0:
        for name, mine in zip(cell.statistics, found, strict=True):
            lens = find_statistic(name).default_lens is not None
            lens = lens and np.ndim(drawn.probs) == 2 and drawn.probs.shape[1] > 2
            if lens or "lens" in drawn.options:  # alone it draws labels of the lens
                continue
            theirs = _alone(cell, name, drawn, draws)
            if theirs.pvalue != mine.pvalue:
                raise AssertionError(f"{cell}, {name}, {seed.spawn_key}: {mine} here, {theirs} there")
    return found


# ------------------------------------------------------------------ many data sets


def run(cells: Iterable[Cell], path: str, options: Options, seed: int) -> Table:
    """Run blocks of data sets of cells, one cell after another; return the table of counts.

    A quick run takes one cell in five.
    """
    table = Table(options.results / path, KEY)
    cells = [*cells][:: 5 if options.quick and not options.only else 1]
    with joblib.Parallel(n_jobs=options.jobs) as parallel:
        for cell in cells:
            if not options.wants(str(cell)):
                continue
            wanted = options.datasets or (1 if options.quick else cell.datasets)
            done = _done(table, cell, seed)
            while done < wanted and not options.over:
                last = min(done + BLOCK, wanted)
                drawn = seeds(seed, (cell.number,), done, last)
                found = np.array(spread(partial(_of_one, cell), drawn, parallel), dtype=np.float64)
                table.put(_rows(table, cell, found, done, seed))
                done = last
                print(f"{cell}: {done} of {wanted}, {options.seconds:.0f} s", flush=True)
    return table


def _key(cell: Cell, statistic: str, seed: int) -> Row:
    return {
        "design": cell.design,
        "null": cell.null,
        "statistic": statistic,
        "resamples": RESAMPLES,
        "seed": seed,
    }


def _done(table: Table, cell: Cell, seed: int) -> int:
    rows = [table.get(**_key(cell, name, seed)) for name in cell.statistics]
    return min((int(row["datasets"]) if row else 0) for row in rows)


def _rows(table: Table, cell: Cell, found: np.ndarray, done: int, seed: int) -> Iterable[Row]:
    """Add what data sets (n, statistics, 2) found to the counts."""
    for place, name in enumerate(cell.statistics):
        key = _key(cell, name, seed)
        row = table.get(**key)
        pvalues, effective = found[:, place].T
        counts = {f"p<={x:g}": pvalues <= x + 1e-12 for x in LEVELS}
        counts["warned"] = effective < FEW
        yield {
            **key,
            "caltest": caltest.__version__,
            "datasets": done + len(found),
            **{
                what: (int(row[what]) if row else 0) + int(np.count_nonzero(each))
                for what, each in counts.items()
            },
        }


# ------------------------------------------------------------------ verdicts


def summary(table: Table, group: Callable[[Row], Row]) -> list[Row]:
    """Add up the designs of a group, and say which sums are outside their simultaneous limits.

    Designs are drawn independently of each other, so that the sums of an exact test are binomial.
    """
    groups: dict[tuple[tuple[str, Any], ...], list[Row]] = {}
    for row in table.where():
        groups.setdefault(tuple(group(row).items()), []).append(row)
    share = SURE / max(len(groups) * len(LEVELS), 1) / 2.0
    found = []
    for key, rows in groups.items():
        of = sum(int(row["datasets"]) for row in rows)
        for level in LEVELS:
            counts = [int(row[f"p<={level:g}"]) for row in rows]
            rates = [count / int(row["datasets"]) for count, row in zip(counts, rows, strict=True)]
            low, high = binomtest(sum(counts), of).proportion_ci(1.0 - 2.0 * share)
            verdict = "inside"
            if binom.sf(sum(counts) - 1, of, level) < share:
                verdict = "above"
            elif binom.cdf(sum(counts), of, level) < share:
                verdict = "below"
            found.append(
                {
                    **dict(key),
                    "level": level,
                    "cells": len(rows),
                    "datasets": of,
                    "rate": round(sum(counts) / of, 4),
                    "low": round(float(low), 4),
                    "high": round(float(high), 4),
                    "smallest": round(min(rates), 4),
                    "largest": round(max(rates), 4),
                    "verdict": verdict,
                    "warned": round(sum(int(row["warned"]) for row in rows) / of, 4),
                }
            )
    return found


def with_signs(data: Data) -> tuple[str, ...]:
    """Return the registered statistics that have a form of signs of clusters."""
    whole = caltest.data.sample(data.probs, data.labels)
    found = []
    for name, made in STATISTICS.items():
        statistic = made()
        rows = through(whole, None, statistic.default_lens)[0].rows
        form = statistic.fitted(rows).given(rows)
        parts = form.components if isinstance(form, Combined) else ()
        if (
            all(isinstance(part.form, HasSigns) for part in parts)
            if parts
            else isinstance(form, HasSigns)
        ):
            found.append(name)
    return tuple(found)
