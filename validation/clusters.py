"""Rows of a cluster depend on each other: size and power of signs of clusters, and of one row each.

``python -m validation clusters --jobs 2``. Calibrated models: centres c_g ~ Dirichlet(.7), predictions
of the rows of cluster g ~ Dirichlet(.001 + 5 c_g), labels the inverse distribution function of the
prediction at Φ(√ρ a_g + √(1 − ρ) e_i) with standard normal a and e: each row by itself is calibrated,
and rows of a cluster err together. Clusters are of equal size, or sizes fall by the factor 1 − 4/G from
each to the next, so that the largest of G = 20 holds a fifth of the rows.

``clusters.csv``: every statistic that has a form of signs, on shared data sets and signs; the omnibus
with rows taken as independent beside it, and tests of one row a cluster.
``clusters_power.csv``: the same on models that err. Where every row is a cluster of its own the exact
test stands beside the signs of clusters; where not, one row a cluster does.
``clusters_intervals.csv``: intervals of mean errors in clusters, and of rows whose weights differ, at
three levels of a side: which is of t by its predictions, and how often either end misses the error.
``clusters_summary.csv``: by number and sizes of clusters, how many cells are above their limits.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from itertools import product
from typing import NamedTuple, TypeAlias

import joblib
import numpy as np
from scipy.special import ndtr

import caltest
from caltest.auditing.sizes import Design as Rows
from caltest.auditing.sizes import enough_clusters
from validation import _sizes, copies
from validation._cells import Options, Row, Table, batches, spread
from validation._sizes import BLOCK, LABELS, LEVELS, ONE, RESAMPLES, SIGNS, Cell, Data
from validation._study import write_csv

SEED = 20_261_122
EQUAL = {20: 10, 50: 6, 200: 3}  # rows of a cluster, by number of clusters
CORRELATIONS, CLASSES = (0.0, 0.3, 0.8), (2, 3, 10)
NAMED = ("omnibus", "skce_uq", "ecd", "ks")


class Design(NamedTuple):
    """Clusters of so many rows, classes, the correlation of the latent cause, and how it errs."""

    clusters: int
    size: int  # on average
    classes: int
    correlation: float
    equal: bool = True
    temperature: float = 1.0  # of the labels' true distribution: the logits over so much
    shift: float = 0.0  # of the logit of the last class

    def __str__(self) -> str:
        sizes = str(self.size) if self.equal else f"{self.size} on average"
        wrong = f", temperature {self.temperature:g}" * (self.temperature != 1.0)
        wrong += f", last class {self.shift:+g}" * (self.shift != 0.0)
        return f"{self.clusters} × {sizes}, m={self.classes}, ρ={self.correlation:g}{wrong}"

    @property
    def codes(self) -> np.ndarray:
        """The cluster of every row."""
        if self.equal:
            return np.repeat(np.arange(self.clusters), self.size)
        shares = (1.0 - 4.0 / self.clusters) ** np.arange(self.clusters)
        sizes = np.round(self.clusters * self.size * shares / shares.sum()).astype(int)
        return np.repeat(np.arange(self.clusters), sizes.clip(min=1))


def draw(design: Design, seed: np.random.SeedSequence) -> Data:
    """Draw a data set."""
    rng, codes = np.random.default_rng(seed), design.codes
    centres = rng.dirichlet(np.full(design.classes, 0.7), design.clusters)
    gammas = rng.standard_gamma(0.001 + 5.0 * centres[codes])
    probs = gammas / gammas.sum(axis=1, keepdims=True)
    rho, shared = design.correlation, rng.standard_normal(design.clusters)
    latent = np.sqrt(rho) * shared[codes] + np.sqrt(1.0 - rho) * rng.standard_normal(len(codes))
    truth = probs
    if design.temperature != 1.0 or design.shift:
        truth = probs ** (1.0 / design.temperature)
        truth[:, -1] *= np.exp(design.shift)
        truth /= truth.sum(axis=1, keepdims=True)
    labels = (np.cumsum(truth, axis=1)[:, :-1] < ndtr(latent)[:, None]).sum(axis=1)
    return Data(probs, labels, {"clusters": codes})


PREPARED = Design(200, 10, 2, 0.5)
GRID = tuple(
    Design(clusters, EQUAL[clusters], classes, correlation, equal)
    for equal, correlation, classes, clusters in product((True, False), (0.8, 0.3, 0.0), CLASSES, EQUAL)
)
POWER_ALONE = (
    Design(300, 1, 2, 0.0, temperature=1.5),
    Design(300, 1, 3, 0.0, temperature=1.5),
    Design(300, 1, 3, 0.0, shift=0.5),
    Design(300, 1, 10, 0.0, temperature=1.3),
)
POWER_TOGETHER = (
    Design(50, 6, 3, 0.3, temperature=2.0),
    Design(200, 3, 3, 0.3, temperature=1.5),
    Design(200, 3, 2, 0.8, shift=0.7),
)
AUDITED = (Design(40, 5, 3, 0.5), Design(100, 5, 3, 0.5), PREPARED)


def cells() -> Iterator[Cell]:
    """Yield the cells of size, the most important ones first; new ones go to the end."""
    every = _sizes.with_signs(draw(GRID[0], np.random.SeedSequence(0)))
    yield Cell(
        0, str(PREPARED), partial(draw, PREPARED), SIGNS, ("omnibus", "skce_uq", "ecd", "ks"), 1000
    )
    yield Cell(1, str(PREPARED), partial(draw, PREPARED), LABELS, ("omnibus",), 400)
    for number, design in enumerate(GRID):
        yield Cell(10 + number, str(design), partial(draw, design), SIGNS, every)
    for number, design in enumerate(GRID):
        yield Cell(10 + number, str(design), partial(draw, design), LABELS, ("omnibus",), 400)
    for number, design in enumerate(GRID):
        if design.classes == 3:
            yield Cell(10 + number, str(design), partial(draw, design), ONE, ("ecd", "skce_uq"), 400)


def power_cells() -> Iterator[Cell]:
    """Yield the cells of power."""
    every = _sizes.with_signs(draw(GRID[0], np.random.SeedSequence(0)))
    for number, design in enumerate(POWER_ALONE):
        for null in (SIGNS, LABELS):
            yield Cell(100 + number, str(design), partial(draw, design), null, every, 400)
    for number, design in enumerate(POWER_TOGETHER):
        for null, names in ((SIGNS, every), (ONE, NAMED)):
            yield Cell(200 + number, str(design), partial(draw, design), null, names, 400)


# ------------------------------------------------------------------ audits


def audited(design: Design, seed: np.random.SeedSequence) -> tuple[float, bool, bool]:
    """Audit a data set, with a group across clusters and one within them.

    Return the p-value, and whether the intervals of all views and those of all their parts hold 0.
    """
    data, draws = seed.spawn(2)
    drawn, codes = draw(design, data), design.codes
    groups = {"visit": np.arange(len(codes)) % 2, "site": codes % 3}
    audit = caltest.audit(
        drawn.probs, drawn.labels, groups=groups, n_resamples=RESAMPLES, rng=draws, **drawn.options
    )
    views = [view for view in audit.views if view.low is not None]
    holds = all(_holds(view.low, view.high) for view in views)
    return audit.pvalue, holds, holds and all(_holds(p.low, p.high) for v in views for p in v.parts)


def _holds(low: float | None, high: float | None) -> bool:
    """Say whether an interval holds 0, the true error but for rounding."""
    return low is not None and high is not None and low <= 1e-9 and high >= -1e-9


def audits(options: Options) -> None:
    """Run audits."""
    table = Table(options.results / "clusters_audits.csv", ("design", "resamples", "seed"))
    wanted = options.datasets or (2 if options.quick else 1000)
    with joblib.Parallel(n_jobs=options.jobs) as parallel:
        for number, design in enumerate(AUDITED):
            if not options.wants(f"audits: {design}"):
                continue
            key = {"design": str(design), "resamples": RESAMPLES, "seed": SEED}
            for row, last, drawn in batches(table, key, (300 + number,), options, wanted, BLOCK):
                found = np.array(spread(partial(audited, design), drawn, parallel))
                counts = {f"p<={x:g}": found[:, 0] <= x + 1e-12 for x in LEVELS}
                counts |= {"views hold": found[:, 1] > 0.0, "all hold": found[:, 2] > 0.0}
                counted = {k: int(row.get(k, 0)) + int(np.count_nonzero(v)) for k, v in counts.items()}
                table.put([{**key, "caltest": caltest.__version__, "datasets": last, **counted}])
                print(f"audits: {design}: {last} of {wanted}, {options.seconds:.0f} s", flush=True)


# ------------------------------------------------------------------ intervals

SIDES = (0.05, 0.01, 0.0025)
#: Predictions, true probabilities, weights, and clusters; None where rows are independent.
Known: TypeAlias = tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray | None]


def known(
    sizes: np.ndarray,
    rates: Callable[[np.random.Generator, int], np.ndarray],
    rng: np.random.Generator,
    *,
    stated: float | None = None,
    spread_of_weights: float = 0.0,
) -> Known:
    """Return calibrated rows in clusters of these sizes; or of one prediction, which is wrong."""
    codes = np.repeat(np.arange(len(sizes)), sizes)
    true = rates(rng, len(codes))
    weights = rng.lognormal(0.0, spread_of_weights, len(sizes))[codes]
    return true if stated is None else np.full(len(codes), stated), true, weights, codes


def beta(a: float, b: float) -> Callable[[np.random.Generator, int], np.ndarray]:
    """Return predictions of single rows."""
    return lambda rng, n: rng.beta(a, b, n)


def always(rate: float) -> Callable[[np.random.Generator, int], np.ndarray]:
    """Return predictions that are all alike."""
    return lambda rng, n: np.full(n, rate)


def mixed(rng: np.random.Generator, n: int) -> np.ndarray:
    """Return predictions of 4 000 rows, and of rare events."""
    return np.append(rng.uniform(0.05, 0.95, 4000), np.full(n - 4000, 0.01))


def alone(rng: np.random.Generator, few: bool) -> Known:
    """Return independent rows, of which a few carry the weight, or lognormal ones."""
    true = np.full(1100, 0.02) if few else rng.beta(1.0, 9.0, 1000)
    weights = np.r_[np.ones(1000), np.full(100, 100.0)] if few else rng.lognormal(0.0, 1.5, 1000)
    return true, true, weights, None


LOGNORMAL = np.ceil(np.random.default_rng(0).lognormal(2.6, 1.0, 80)).astype(int)
MIXED = np.r_[np.ones(4000, int), np.full(200, 50)]
#: How data are drawn, and the latent correlation inside clusters; 1: all rows share their quantile.
INTERVALS: dict[str, tuple[Callable[[np.random.Generator], Known], float]] = {
    "100 × 20, Beta(2, 2)": (partial(known, np.full(100, 20), beta(2, 2)), 0.3),
    "40 × 25, Beta(2, 2)": (partial(known, np.full(40, 25), beta(2, 2)), 0.3),
    "80 of lognormal sizes, Beta(2, 2)": (partial(known, LOGNORMAL, beta(2, 2)), 0.3),
    "200 × 20, Beta(1, 40)": (partial(known, np.full(200, 20), beta(1, 40)), 0.3),
    "200 × 20, Beta(1, 40), all or none": (partial(known, np.full(200, 20), beta(1, 40)), 1.0),
    "60 × 100 at .02, all or none": (partial(known, np.full(60, 100), always(0.02)), 1.0),
    "4 000 rows, 200 × 50 at .01, all or none": (partial(known, MIXED, mixed), 1.0),
    "900 × 5 at .05, all or none": (partial(known, np.full(900, 5), always(0.05)), 1.0),
    "200 × 10, Beta(2, 3), weights of clusters": (
        partial(known, np.full(200, 10), beta(2, 3), spread_of_weights=0.5),
        0.5,
    ),
    "120 × 10 at .15, predicted .5": (partial(known, np.full(120, 10), always(0.15), stated=0.5), 0.5),
    "1 000 rows, 100 of weight 100, at .02": (partial(alone, few=True), 0.0),
    "1 000 rows of lognormal weights, Beta(1, 9)": (partial(alone, few=False), 0.0),
}


def interval_ends(
    draw: Callable[[np.random.Generator], Known], correlation: float, seed: np.random.SeedSequence
) -> list[float]:
    """Return if the interval of a side is of t, which ends miss, and lengths, also of the exact one."""
    rng = np.random.default_rng(seed)
    stated, true, weights, codes = draw(rng)
    cause = np.sqrt(1.0 - correlation) * rng.standard_normal(len(true))
    if codes is not None:
        cause += np.sqrt(correlation) * rng.standard_normal(int(codes.max()) + 1)[codes]
    labels, design = (ndtr(cause) < true).astype(int), Rows(weights, codes)
    error, found = float(weights @ (stated - true) / weights.sum()), list[float]()
    for side in SIDES:
        by_t = design.carried(stated) >= enough_clusters(side)
        *_, low, high = design.interval(stated, labels, side, by_t)
        exact = design.interval(stated, labels, side)
        found += [by_t, low > error, high < error, high - low, exact[3] - exact[2]]
    return found


def intervals(options: Options) -> None:
    """Run designs whose true errors are known."""
    table = Table(options.results / "clusters_intervals.csv", ("design", "seed"))
    wanted = options.datasets or (1 if options.quick else 1000)
    what = ("by t", "low missed", "high missed", "length", "exact length")
    names = [f"{each} at {side:g}" for side in SIDES for each in what]
    with joblib.Parallel(n_jobs=options.jobs) as parallel:
        for number, (name, drawn_by) in enumerate(INTERVALS.items()):
            if not options.wants(f"intervals: {name}"):
                continue
            key = {"design": name, "seed": SEED}
            for row, last, drawn in batches(table, key, (400 + number,), options, wanted, BLOCK):
                found = np.array(spread(partial(interval_ends, *drawn_by), drawn, parallel), float)
                before = np.array([float(row.get(each, 0.0)) for each in names])
                mean = np.array(["length" in each for each in names])
                sums = np.where(mean, before * (last - len(found)), before) + found.sum(axis=0)
                values = np.where(mean, sums / last, sums).tolist()
                kept = {k: v if m else int(v) for k, v, m in zip(names, values, mean, strict=True)}
                table.put([{**key, "caltest": caltest.__version__, "datasets": last, **kept}])
                print(f"intervals: {name}: {last} of {wanted}, {options.seconds:.0f} s", flush=True)


def _group(row: Row) -> Row:
    """Return what the classes and correlations of a line of the summary have in common."""
    clusters = row["design"].partition(", m=")[0]
    return {"clusters": clusters, "null": row["null"], "statistic": row["statistic"]}


def run(options: Options) -> None:
    """Run the cells, and judge them."""
    table = _sizes.run(cells(), "clusters.csv", options, SEED)
    if table.where():
        write_csv(_sizes.summary(table, _group), options.results / "clusters_summary.csv")
    _sizes.run(power_cells(), "clusters_power.csv", options, SEED)
    copies.run(options)
    audits(options)
    intervals(options)
