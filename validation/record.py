"""The record in two figures: how often tests reject calibrated models, and wrong ones, in 12 panels.

``python -m validation record``; a part of it: ``--only level``, ``--only power times``, … The panels
are those of :mod:`validation._record_panels`.

*Level* (``record_level.csv``, ``record_level.png``): how many calibrated data sets have a p-value of at
most .01, .02, …, .2. ``guarantee`` is that of the results: "exact", "bound" (at most the level),
"asymptotic" or "approximate" (about the level); "peer" marks tests of others. Two lines of each panel
are the least and the most that an exact test has by chance: binomial limits, 99% for all levels and all
lines of ours at once (Bonferroni).

*Power* (``record_power.csv``, ``record_power.png``): how many data sets with one planted error are
rejected at 5%, by rows; for tests of others also how many calibrated ones (``false_alarms``).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from io import BytesIO
from pathlib import Path
from textwrap import fill
from typing import Any

import joblib
import matplotlib.pyplot as plt
import numpy as np
from matplotlib.ticker import NullLocator
from PIL import Image
from scipy.stats import binom

import caltest
from validation._cells import Options, Row, Table, batches, spread
from validation._record_panels import COMBINED, HL, NAIVE, PANELS, Panel

SEED = 20_261_128
ALPHA, SURE = 0.05, 0.01
LEVELS = tuple(np.arange(1, 21) / 100.0)
COUNTS = [f"p<={x:g}" for x in LEVELS]
LOW, HIGH = "99% band, least", "99% band, most"
Seed = np.random.SeedSequence
Found = dict[str, tuple[float, str]]  # p-values and guarantees by test

# ------------------------------------------------------------------ data sets


def tested(panel: Panel, rows: int, error: bool, names: Sequence[str], seed: Seed) -> Found:
    """Draw a data set and test it."""
    data, draws = seed.spawn(2)
    drawn = panel.draw(rows, error, np.random.default_rng(data))
    return {name: panel.tests[name](drawn, draws) for name in names}


def levels(panel: Panel, seed: Seed) -> dict[str, Row]:
    """Say at which levels each test rejects a calibrated data set."""
    found = tested(panel, panel.rows, False, list(panel.tests), seed)
    return {
        name: {"guarantee": says} | {k: p <= x + 1e-12 for k, x in zip(COUNTS, LEVELS, strict=True)}
        for name, (p, says) in found.items()
    }


def powers(panel: Panel, rows: int, seed: Seed) -> dict[str, Row]:
    """Say which tests reject a wrong model at 5%, and which tests of others a calibrated one."""
    wrong, right = seed.spawn(2)
    found = tested(panel, rows, True, panel.shown, wrong)
    others = [name for name, (_, says) in found.items() if says == "peer"]
    false = {name: p <= ALPHA for name, (p, _) in tested(panel, rows, False, others, right).items()}
    return {
        name: {"guarantee": says, "rejected": p <= ALPHA, "false_alarms": false.get(name, False)}
        for name, (p, says) in found.items()
    }


def count(
    table: Table,
    what: Row,
    names: Sequence[str],
    cell: tuple[int, ...],
    one: Callable[[Seed], dict[str, Row]],
    options: Options,
    wanted: int,
) -> None:
    """Count until data sets are enough; each test has a row."""
    wanted = 2 if options.quick else options.datasets or wanted
    key = {**what, "seed": SEED}
    with joblib.Parallel(n_jobs=options.jobs) as parallel:
        for begun, last, drawn in batches(table, {**key, "line": names[0]}, cell, options, wanted, 50):
            found, rows = spread(one, drawn, parallel), []
            for name in names:
                before = (table.get(**key, line=name) if begun else None) or {}
                mine = [each[name] for each in found]
                said = [row["guarantee"] for row in (*mine, before) if row]
                sums = {k: int(before.get(k, 0)) + sum(row[k] for row in mine) for k in [*mine[0]][1:]}
                about = {"guarantee": min(said), "caltest": caltest.__version__, "datasets": last}
                rows.append({**what, "line": name, "seed": SEED, **about, **sums})
            table.put(rows)
            print(f"{', '.join(map(str, what.values()))}: {last} of {wanted}, {options.seconds:.0f} s")


def run(options: Options) -> None:
    """Count, judge and draw."""
    key = ("panel", "rows", "line", "seed")
    level, power = (Table(options.results / f"record_{x}.csv", key) for x in ("level", "power"))
    for place, (name, panel) in enumerate(PANELS.items()):
        if options.wants(f"level {name}"):
            what = {"panel": name, "rows": panel.rows}
            one: Any = partial(levels, panel)
            count(level, what, list(panel.tests), (place,), one, options, panel.datasets)
    for place, (name, panel) in enumerate(PANELS.items()):
        for rows in panel.sizes[: 2 if options.quick else None]:
            if options.wants(f"power {name} {rows}"):
                what, one = {"panel": name, "rows": rows}, partial(powers, panel, rows)
                count(power, what, panel.shown, (100 + place, rows), one, options, panel.repeated)
    if options.pictures:
        judge(level)
        power.put(row | {"error": PANELS[row["panel"]].error} for row in power.where())
        for table, headline, panel_of in ((level, LEVEL, draw_level), (power, POWER, draw_power)):
            if {row["panel"] for row in table.where()} == set(PANELS):
                draw(table.path.with_suffix(".png"), headline, panel_of, table)


# ------------------------------------------------------------------ verdicts

_TIES = "outcomes fall into 24 cells: draws tie with the data, and ties count for the model"
_IMPUTED = "p-values of 20 imputations are combined, which is careful"
_BETS = "bets are fair for every distribution between the ends, and careful for most"
#: Why a line leaves the band.
WHY = {
    ("classes", HL): "few events are expected in the lowest tenths",
    ("groups", "8 z-tests, smallest p"): "eight tests, and no correction",
    ("clusters", COMBINED): "where few clusters count, the larger of two p-values is taken",
    ("clusters", NAIVE): "rows of a patient are taken as independent",
    ("clusters", HL): "rows of a patient are taken as independent",
    ("weights", "Hosmer–Lemeshow, weights as counts"): "weights are taken as copies of rows",
    ("quantiles", "KS of the PIT"): _TIES,
    ("quantiles", "coverage"): _TIES,
    ("quantiles", "95% interval, binomial"): "counts of 100 rows are few values",
    ("members", "KS of ranks, as if continuous"): "ranks among 20 draws are 21 values",
    ("times", COMBINED): f"{_IMPUTED}; two parts have half of the level each",
    ("times", "combined, follow-up known"): _IMPUTED,
    ("times", "D-calibration, our imputation"): _IMPUTED,
    ("times", "D-calibration, usual"): "spread mass makes counts too regular",
    ("monitoring", "Monitor"): "evidence is valid at any time, so at most the level",
    ("monitoring", "weekly tests, unadjusted"): "twenty tests, and no correction",
    (
        "monitoring",
        "weekly tests, Bonferroni",
    ): "few events are expected in the lowest tenths",
    ("features", "40 z-tests of slices, smallest p"): "forty tests, and no correction",
    ("points", "ends known"): _BETS,
    ("points", "rare events, ends known"): _BETS,
    ("points", "rare events, t test"): "errors of rare events are skewed",
}


def level_rows(table: Table, name: str) -> list[Row]:
    """Return the rows of a panel, without its band."""
    key = {"panel": name, "rows": PANELS[name].rows, "seed": SEED}
    return [row for line in PANELS[name].tests if (row := table.get(**key, line=line))]


def judge(table: Table) -> None:
    """Write the band of every panel, and at how many levels lines are above or below."""
    every = {name: rows for name in PANELS if (rows := level_rows(table, name))}
    ours = sum(row["guarantee"] != "peer" for rows in every.values() for row in rows)
    share = SURE / (2 * len(LEVELS) * max(ours, 1))
    for name, rows in every.items():
        of = int(rows[0]["datasets"])
        band = binom.ppf(share, of, LEVELS), binom.isf(share, of, LEVELS)
        about = {x: rows[0][x] for x in ("panel", "rows", "seed", "caltest", "datasets")}
        for row in rows:
            counts = np.array([int(row[k]) for k in COUNTS])
            row["above"], row["below"] = int((counts > band[1]).sum()), int((counts < band[0]).sum())
            row["comment"] = WHY.get((name, row["line"]), "") if row["above"] or row["below"] else ""
        ends = [
            {**about, "line": line, "guarantee": ""} | dict(zip(COUNTS, map(int, each), strict=True))
            for line, each in zip((LOW, HIGH), band, strict=True)
        ]
        table.put([*rows, *ends])


# ------------------------------------------------------------------ pictures

LEVEL = (
    "Calibrated models rejected (share), against the level of the test. Solid: caltest; dashed: others."
    "\nGrey: where the line of an exact test lies by chance (99%, all levels and solid lines at once)."
)
POWER = (
    "Wrong models rejected at level 5% (share), against rows. Thick: caltest; thin: tests of others"
    "\nthat keep 5% on calibrated models; dashed: those that do not, with their share of false alarms."
)
SAYS = {"exact": "exact", "bound": "at most", "asymptotic": "about", "approximate": "about"}
OURS = ("#0072B2", "#009E73", "#CC79A7", "#E69F00")
OTHERS = (("#D55E00", (0, (4, 1.5))), ("#333333", (0, (1.5, 1.2))), ("#8C510A", (0, (5, 1, 1, 1))))
HIGHEST = 0.3  # share that is drawn


def draw(path: Path, headline: str, panel: Callable[..., str], table: Table) -> None:
    """Draw the panels, three in a row; each has its legend below."""
    font = {"font.size": 9, "axes.titlesize": 9, "axes.linewidth": 0.7}
    with plt.rc_context(font):
        figure, axes = plt.subplots(4, 3, figsize=(9.0, 13.2), layout="constrained")
        for ax, name in zip(axes.flat, PANELS, strict=True):
            ax.spines[["top", "right"]].set_visible(False)
            title = fill(panel(ax, name, table), 38)
            ax.set_title(title, loc="left", x=-0.13, fontweight="bold")
            ax.legend(loc="upper left", bbox_to_anchor=(-0.15, -0.1), frameon=False, fontsize=9,
                      handlelength=1.8, labelspacing=0.25, borderpad=0.0)  # fmt: skip
        figure.get_layout_engine().set(w_pad=0.08)  # type: ignore[call-arg]
        figure.suptitle(headline, x=0.01, ha="left", fontsize=10)
        file = BytesIO()
        figure.savefig(file, dpi=200)
        plt.close(figure)
    Image.open(file).convert("RGB").quantize(64, dither=Image.Dither.NONE).save(path, optimize=True)


def looks(rows: Sequence[Row]) -> Iterator[tuple[Row, dict[str, Any]]]:
    """Yield rows with how their lines are drawn."""
    ours, others = iter(OURS), iter(OTHERS)
    for row in rows:
        if row["guarantee"] == "peer":
            color, style = next(others)
            yield row, {"color": color, "linestyle": style, "linewidth": 1.5}
        else:
            yield row, {"color": next(ours), "linewidth": 1.8, "zorder": 3}


def shares(row: Row) -> Any:
    """Return shares of rejections at level 0 and all others."""
    return np.array([0, *(int(row[k]) for k in COUNTS)]) / int(row["datasets"])


def draw_level(ax: Any, name: str, table: Table) -> str:
    """Draw shares of rejections against the level; return the title."""
    rows, x = level_rows(table, name), np.r_[0.0, LEVELS]
    box = {"color": "white", "alpha": 0.85, "pad": 1.0}
    kinds = [SAYS[row["guarantee"]] for row in rows if row["guarantee"] != "peer"]
    key = {"panel": name, "rows": PANELS[name].rows, "seed": SEED}
    low, high = (shares(table.get(**key, line=end) or {}) for end in (LOW, HIGH))
    ax.fill_between(x, low, high, color="#DDDDDD", linewidth=0.0)
    ax.plot(x, x, color="black", linewidth=0.6)
    for row, look in looks(rows):
        own = SAYS.get(row["guarantee"]) if len(set(kinds)) > 1 else None
        ax.plot(x, shares(row), label=row["line"] + (f" ({own})" if own else ""), **look)
        if (at := shares(row)[LEVELS.index(ALPHA) + 1]) > HIGHEST:  # beyond the panel
            place = float(np.interp(0.24, shares(row), x)) + 0.007
            ax.text(place, 0.24, f"{at:.0%} at level .05", color=look["color"], bbox=box, zorder=4)
    says = " or ".join(dict.fromkeys(kinds))
    ax.text(0.2, 0.29, says, ha="right", va="top", fontsize=11, fontweight="bold", bbox=box)
    ax.set(xlim=(0.0, 0.2), ylim=(0.0, HIGHEST), yticks=[0.0, 0.1, 0.2, 0.3])
    ax.set_xticks([0.0, 0.05, 0.1, 0.15, 0.2], ["0", ".05", ".1", ".15", ".2"])
    return PANELS[name].title


def draw_power(ax: Any, name: str, table: Table) -> str:
    """Draw shares of wrong models rejected against rows; return the title."""
    panel = PANELS[name]
    key = {"panel": name, "seed": SEED}
    every = [[table.get(**key, rows=n, line=line) for n in panel.sizes] for line in panel.shown]
    done = [[row for row in rows if row] for rows in every if any(rows)]
    for (first, look), rows in zip(looks([rows[0] for rows in done]), done, strict=True):
        of, label = np.array([int(row["datasets"]) for row in rows]), first["line"]
        false = np.array([int(row["false_alarms"]) for row in rows])
        sums = np.append(false, false.sum()), np.append(of, of.sum())
        if first["guarantee"] == "peer" and (sums[0] <= binom.isf(0.001, sums[1], ALPHA)).all():
            look |= {"linestyle": "-", "linewidth": 1.0}
        elif first["guarantee"] == "peer":
            label = fill(f"{label}: {min(false / of):.0%} to {max(false / of):.0%} false alarms", 36)
        power = np.array([int(row["rejected"]) for row in rows]) / of
        ax.plot([int(row["rows"]) for row in rows], power, marker=".", label=label, **look)
    ax.axhline(ALPHA, color="#999999", linewidth=0.6)
    ax.set(xscale="log", ylim=(0.0, 1.02), yticks=[0.0, 0.5, 1.0])
    ax.set_xticks(panel.sizes, [f"{n:,}".replace(",", " ") for n in panel.sizes])
    ax.xaxis.set_minor_locator(NullLocator())
    return f"{re.split('[,:]', panel.title)[0]}: {panel.error.partition(' (')[0]}"
