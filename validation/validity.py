"""Validity of every (statistic, null) pair: how often is a calibrated model rejected at .01 and .05?

``python -m validation validity``: the nine designs of :mod:`validation.size` and six more (few
rows, many classes, rare classes, coarse predictions with ties, nearly uniform ones), all pairs of
the registries that fit, 199 resamples, 2000 data sets in full. ``size*.csv``, 2000 data sets with
999 resamples, count for their pairs where this table has fewer data sets.

Verdicts of exact pairs are simultaneous: with K cells of exact pairs and levels, the number of
rejections has to be inside the two-sided binomial limits of .01/K; below them is right where draws
tie with the observed value, for ties count for the null. Others are shown by the same limits.
"""

from __future__ import annotations

import csv
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import joblib
import matplotlib.pyplot as plt
import numpy as np
from scipy.stats import binom

import caltest
from caltest.nulls import NULLS
from caltest.simulation import Simulated, mixture
from caltest.statistics import STATISTICS
from validation._cells import Options, Row, Table, seeds, spread
from validation._study import RESULTS, Design, Pair, _test_one, fitting_pairs
from validation.size import DESIGNS as SIZE_DESIGNS
from validation.size import MANY_TIES

SEED = 20_190_410
RESAMPLES = 199
DATASETS, BLOCK = 2000, 50
LEVELS = (0.01, 0.05)
SHRUNK = 200  # data sets at the level that are added to the colours: few data sets are pale
SURE = 0.01  # that any exact cell is outside the limits, if all are exact
KEY = ("design", "statistic", "null", "resamples", "seed")


def coarse(n: int, m: int, steps: int, seed: np.random.SeedSequence) -> Simulated:
    """Draw calibrated predictions that are multiples of 1/steps: equal rows, zeros and ones."""
    rng = np.random.default_rng(seed)
    probs = rng.multinomial(steps, np.full(m, 1.0 / m), n) / steps
    labels = (np.cumsum(probs, axis=1) <= rng.random((n, 1)) * (1.0 - 1e-12)).sum(axis=1)
    return Simulated(probs, labels.astype(np.intp), probs.copy())


def _mixture(n: int, alpha: Sequence[float]) -> Any:
    return lambda seed: mixture(n, alpha, pi=0.0, rng=seed)


DESIGNS = (
    *SIZE_DESIGNS,
    Design("few rows: Dir(1), m=3, n=12", _mixture(12, [1.0] * 3)),
    Design("Dir(0.1), m=100, n=100", _mixture(100, [0.1] * 100)),
    Design("rare classes: Dir(2 .02 .02), m=3, n=250", _mixture(250, [2.0, 0.02, 0.02])),
    Design("coarse: multiples of 1/4, m=3, n=60", lambda seed: coarse(60, 3, 4, seed)),
    Design("coarse: multiples of 1/2, m=2, n=30", lambda seed: coarse(30, 2, 2, seed)),
    Design("nearly uniform: Dir(20), m=5, n=100", _mixture(100, [20.0] * 5)),
)


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


def pairs(design: Design) -> list[Pair]:
    """Return the pairs of the registries that fit; a null is possible where it says so."""
    return fitting_pairs(design.draw(np.random.SeedSequence(0)), list(STATISTICS), list(NULLS))


def known(folder: Path = RESULTS) -> dict[tuple[str, str, str], Row]:
    """Return the cells of the earlier study: (design, statistic, null) to counts."""
    names: dict[str, list[tuple[int, int, str]]] = defaultdict(list)
    for design in SIZE_DESIGNS:
        m, n = design.draw(np.random.SeedSequence(0)).probs.shape[::-1]
        names[design.name.partition(",")[0]].append((m, n, design.name))
    found: dict[tuple[str, str, str], Row] = {}
    for path in sorted(folder.glob("size*.csv")):
        with path.open(newline="") as file:
            for row in csv.DictReader(file):
                for m, n, name in names[row["design"]]:
                    if (str(m), str(n)) == (row["m"], row["n"]):
                        key = (name, row["statistic"], row["null"])
                        cell = found.setdefault(key, {"ties": float(row["ties"])})
                        cell["datasets"] = int(row["repetitions"])
                        cell[float(row["level"])] = int(row["rejections"])
    return found


def run(options: Options) -> None:
    """Run blocks of data sets, that cell first of which the least is done; then judge and draw."""
    table = Table(options.results / "validity.csv", KEY)
    todo = list(_cells(options, table))
    block, wanted = (5, 5) if options.quick else (BLOCK, DATASETS)
    with joblib.Parallel(n_jobs=options.jobs) as parallel:
        while todo and not options.over:
            cell = min(todo, key=lambda each: each.urgency)
            last = min(cell.done + block, wanted)
            task = partial(_test_one, cell.design, [cell.pair], RESAMPLES)
            drawn = seeds(SEED, (cell.number,), cell.done, last)
            found = np.array(spread(task, drawn, parallel), dtype=np.float64)[:, 0]
            _add(found, cell, table)
            todo = [each for each in todo if each.done < wanted]
            print(f"{cell}: {cell.done} of {wanted}, {options.seconds:.0f} s", flush=True)
    rows = judged(table)
    if rows and options.pictures:
        _report(rows)
        draw(rows, options.results / "validity.png")


def _cells(options: Options, table: Table) -> Iterator[Cell]:
    earlier = known()
    for number, design in enumerate(DESIGNS):
        if options.quick and number not in (1, 12):
            continue
        for pair in pairs(design):
            cell = Cell(number, design, pair)
            if not options.wants(str(cell)):
                continue
            if not options.quick and (design.name, *pair) in earlier and options.minutes is not None:
                continue  # with little time, what nobody has looked at yet
            row = table.get(**cell.key)
            cell.done = int(row["datasets"]) if row else 0
            if cell.done < (5 if options.quick else DATASETS):
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


# ------------------------------------------------------------------ verdicts and picture


def judged(table: Table) -> list[Row]:
    """Return a row for every pair, design and level, with its verdict."""
    cells = {key: cell for key, cell in known().items() if key[1] in STATISTICS and key[2] in NULLS}
    for row in table.where():
        key = (row["design"], row["statistic"], row["null"])
        if key not in cells or int(row["datasets"]) >= cells[key]["datasets"]:
            counts: Row = {level: int(row[f"p<={level:g}"]) for level in LEVELS}
            cells[key] = counts | {"datasets": int(row["datasets"]), "ties": float(row["ties"])}
    guarantees = {key: NULLS[key[2]].guarantee for key in cells}
    exact = len(LEVELS) * sum(each == "exact" for each in guarantees.values())
    share = SURE / max(exact, 1) / 2.0
    return [
        {
            **dict(zip(("design", "statistic", "null"), key, strict=True)),
            "level": level,
            "guarantee": guarantees[key],
            "datasets": cell["datasets"],
            "rejections": cell[level],
            "verdict": verdict(cell[level], cell["datasets"], level, share, cell["ties"]),
        }
        for key, cell in cells.items()
        for level in LEVELS
    ]


def verdict(rejections: int, datasets: int, level: float, share: float, ties: float) -> str:
    """Say where the count is: inside the binomial limits, above or below."""
    if binom.sf(rejections - 1, datasets, level) < share:
        return "above"
    if binom.cdf(rejections, datasets, level) < share:
        return "below (ties)" if ties > MANY_TIES else "below"
    return "inside"


def _report(rows: list[Row]) -> None:
    for guarantee in ("exact", "approximate", "asymptotic", "bound"):
        mine = [row for row in rows if row["guarantee"] == guarantee]
        counts = dict(Counter(row["verdict"] for row in mine))
        print(f"{guarantee}: {len(mine)} cells, {counts}", flush=True)
    for row in rows:
        if row["guarantee"] == "exact" and row["verdict"] in ("above", "below"):
            print(f"an exact pair is outside the limits: {row}", flush=True)


def draw(rows: list[Row], path: Path) -> None:
    """Draw the heat maps: pairs by designs, exact pairs first."""
    order = {"exact": 0, "approximate": 1, "asymptotic": 2, "bound": 3}
    lines = sorted(
        {
            (order[r["guarantee"]], r["null"], list(STATISTICS).index(r["statistic"]), r["statistic"])
            for r in rows
        }
    )
    names = [d.name for d in DESIGNS if any(r["design"] == d.name for r in rows)]
    places = {(null, statistic): k for k, (_, null, _, statistic) in enumerate(lines)}
    figure, axes = plt.subplots(
        1, 2, figsize=(13.5, 2.8 + 0.19 * len(lines)), sharey=True, layout="constrained"
    )
    for ax, level in zip(axes, LEVELS, strict=True):
        grid = np.full((len(lines), len(names)), np.nan)
        for row in rows:
            if row["level"] == level:
                y, x = places[row["null"], row["statistic"]], names.index(row["design"])
                rate = (row["rejections"] + SHRUNK * level) / (row["datasets"] + SHRUNK)
                grid[y, x] = np.clip(np.log2(rate / level), -2.0, 2.0)
                if row["verdict"] == "above":
                    ax.plot(x, y, "x", color="black", markersize=5)
                elif row["verdict"] == "below":
                    ax.plot(x, y, "v", color="black", markersize=3, mfc="none")
        image = ax.imshow(grid, cmap="RdBu_r", vmin=-2.0, vmax=2.0, aspect="auto")
        ax.set_xticks(range(len(names)), names, rotation=90, fontsize="x-small")
        ax.set_title(f"size at level {level:g}", loc="left", size="medium")
        for edge in range(1, len(lines)):
            if lines[edge][0] != lines[edge - 1][0]:
                ax.axhline(edge - 0.5, color="black", linewidth=1.2)
    counts = [row["datasets"] for row in rows]
    at_least = f"{min(counts)} to {max(counts)}"
    labels = [f"{statistic}, {null}" for _, null, _, statistic in lines]
    axes[0].set_yticks(range(len(lines)), labels, fontsize="x-small")
    bar = figure.colorbar(image, ax=axes, shrink=0.35, ticks=[-2, -1, 0, 1, 2])
    bar.ax.set_yticklabels(["≤ ¼ level", "½ level", "the level", "2 × level", "≥ 4 × level"])
    figure.suptitle(
        "Rejections of calibrated models; from the top: exact, approximate, asymptotic, bound. "
        f"Cross: above simultaneous 99 % limits; triangle: below, without ties. {at_least} data sets",
        fontsize="medium",
    )
    figure.savefig(path, dpi=80, metadata={"Software": None})
    plt.close(figure)
