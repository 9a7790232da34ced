"""Clusters whose rows share everything, some of them rare: the worst case of signs of clusters.

``python -m validation rare_clusters --jobs 2``. Calibrated models. One uniform number u a cluster: a
row has the event if u is below its prediction. Or rows agree in part (a latent cause of correlation ρ).
Then few clusters may carry all variance, whatever is observed: common rows hide rare clusters. How many
count is judged from the predictions; where few do, comonotone labels confirm what signs find.

``rare_clusters.csv``: how often calibrated models are rejected, statistic by statistic.
``rare_clusters_summary.csv``: designs added up.
``rare_clusters_audits.csv``: audits of 25 groups, and how often an interval misses.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import TypeAlias

import joblib
import numpy as np
from scipy.special import ndtr

import caltest
from validation import _sizes
from validation._cells import Options, Row, Table, batches, spread
from validation._sizes import BLOCK, LEVELS, RESAMPLES, SIGNS, Cell, Data
from validation._study import write_csv

SEED = 20_261_125
Array: TypeAlias = np.ndarray
Rng: TypeAlias = np.random.Generator

#: A design draws predictions (n,) or (n, m), clusters (n,) and weights (n,) or None.
Design: TypeAlias = Callable[[Rng], tuple[Array, Array, Array | None]]


def stacked(*kinds: tuple[int, int, Callable[[Rng, int], Array], float]) -> Design:
    """Return so many clusters of so many rows of some predictions and weight, kind by kind."""

    def design(rng: Rng) -> tuple[Array, Array, Array | None]:
        scores, codes, weights, last = [], [], [], 0
        for count, size, predicted, weight in kinds:
            scores.append(predicted(rng, count * size))
            codes.append(last + np.repeat(np.arange(count), size))
            weights.append(np.full(count * size, weight))
            last += count
        alike = len({weight for *_, weight in kinds}) == 1
        return (
            np.concatenate(scores),
            np.concatenate(codes),
            None if alike else np.concatenate(weights),
        )

    return design


def always(p: float) -> Callable[[Rng, int], Array]:
    """Return predictions that are all the same."""
    return lambda rng, n: np.full(n, p)


def uniform(low: float, high: float) -> Callable[[Rng, int], Array]:
    """Return uniform predictions."""
    return lambda rng, n: rng.uniform(low, high, n)


def beta(a: float, b: float) -> Callable[[Rng, int], Array]:
    """Return predictions of a beta distribution."""
    return lambda rng, n: rng.beta(a, b, n)


def nested(scales: int, predicted: Callable[[Rng, int], Array]) -> Design:
    """Return sizes 1, 2, 4, …: about as many rows of each."""
    rows = 2 ** (scales - 1)
    kinds = [(max(rows // 2**k, 2), 2**k, predicted, 1.0) for k in range(scales)]
    return stacked(*kinds)


def weighted(predicted: Callable[[Rng, int], Array], heavy: int) -> Design:
    """Return three scales of weights: 1, 30 and 1 000."""
    return stacked((400, 5, predicted, 1.0), (60, 5, predicted, 30.0), (heavy, 5, predicted, 1000.0))


def ten_classes(clusters: int, size: int, rare: float) -> Design:
    """Return ten classes, the first of them rare, and equal otherwise but for noise."""

    def design(rng: Rng) -> tuple[Array, Array, Array | None]:
        others = np.repeat(rng.dirichlet(np.full(9, 2.0), clusters), size, axis=0)
        probs = np.column_stack([np.full(clusters * size, rare), (1.0 - rare) * others])
        return probs, np.repeat(np.arange(clusters), size), None

    return design


SHARED: dict[str, Design] = {
    "4000 rows, 200 × 50 at .01": stacked(
        (4000, 1, uniform(0.05, 0.95), 1.0), (200, 50, always(0.01), 1.0)
    ),
    "600 × 10 at .004, 150 × 10 at .5": stacked(
        (600, 10, always(0.004), 1.0), (150, 10, always(0.5), 1.0)
    ),
    "20 × 10 at .3": stacked((20, 10, always(0.3), 1.0)),
    "30 × 10 at .1": stacked((30, 10, always(0.1), 1.0)),
    "600 × 10 at .01": stacked((600, 10, always(0.01), 1.0)),
    "1100 × 10 at .01": stacked((1100, 10, always(0.01), 1.0)),
    "2000 × 5 at .01": stacked((2000, 5, always(0.01), 1.0)),
    "4000 × 3 at .01": stacked((4000, 3, always(0.01), 1.0)),
    "nested sizes to 64, uniform": nested(7, uniform(0.05, 0.95)),
    "nested sizes to 256, uniform": nested(9, uniform(0.05, 0.95)),
    "nested sizes to 64, .05": nested(7, always(0.05)),
    "nested sizes to 128, Beta(.5, 5)": nested(8, beta(0.5, 5.0)),
    "weights 1, 30, 1000 (20), uniform": weighted(uniform(0.05, 0.95), 20),
    "weights 1, 30, 1000 (60), uniform": weighted(uniform(0.05, 0.95), 60),
    "weights 1, 30, 1000 (20), .05": weighted(always(0.05), 20),
    "weights 1, 30, 1000 (5), Beta(1, 9)": weighted(beta(1.0, 9.0), 5),
    "rare among confident": stacked((500, 4, beta(0.2, 0.2), 1.0), (40, 25, always(0.02), 1.0)),
    "one large cluster": stacked((300, 4, uniform(0.1, 0.9), 1.0), (1, 400, always(0.5), 1.0)),
    "two kinds, both rare": stacked((300, 5, always(0.02), 1.0), (50, 30, always(0.02), 1.0)),
    "many small, Beta(1, 60)": stacked((1500, 2, beta(1.0, 60.0), 1.0)),
}
TEN: dict[str, Design] = {
    "ten classes, one at .002, 100 × 10": ten_classes(100, 10, 0.002),
    "ten classes, one at .02, 60 × 10": ten_classes(60, 10, 0.02),
    "ten classes, one at .002, 400 × 5": ten_classes(400, 5, 0.002),
}
PARTLY = (
    "4000 rows, 200 × 50 at .01",
    "nested sizes to 64, uniform",
    "weights 1, 30, 1000 (20), uniform",
    "two kinds, both rare",
)
NAMES = ("citl", "ks", "brier", "ecd", "omnibus")
OF_TEN = ("skce_uq", "ecd", "brier", "omnibus")


def draw(design: Design, rho: float, seed: np.random.SeedSequence) -> Data:
    """Draw a data set; ρ = 1: the rows of a cluster share their quantile."""
    rng = np.random.default_rng(seed)
    probs, codes, weights = design(rng)
    shared, own = rng.standard_normal(codes.max() + 1)[codes], rng.standard_normal(len(codes))
    quantiles = ndtr(np.sqrt(rho) * shared + np.sqrt(1.0 - rho) * own)
    if probs.ndim == 1:
        labels = (quantiles > 1.0 - probs).astype(int)
    else:
        labels = (np.cumsum(probs, axis=1)[:, :-1] < quantiles[:, None]).sum(axis=1)
    options = {"clusters": codes} if weights is None else {"clusters": codes, "weights": weights}
    return Data(probs, labels, options)


def draw_options(clusters: int, rare: float, size: int, seed: np.random.SeedSequence) -> Data:
    """Draw clusters of two options, one of which is right, and of rare events that come together."""
    rng = np.random.default_rng(seed)
    first, together = rng.random(clusters) < 0.5, rng.random(clusters) < rare
    labels = np.column_stack([first, ~first, *[together] * size]).astype(int).ravel()
    codes = np.repeat(np.arange(clusters), 2 + size)
    return Data(np.tile([0.5, 0.5, *[rare] * size], clusters), labels, {"clusters": codes})


def cells() -> Iterator[Cell]:
    """Yield the cells; new ones go to the end."""
    for number, (name, design) in enumerate(SHARED.items()):
        yield Cell(number, name, partial(draw, design, 1.0), SIGNS, NAMES, 1000 if number < 2 else 300)
    for number, (name, design) in enumerate(TEN.items()):
        yield Cell(50 + number, name, partial(draw, design, 1.0), SIGNS, OF_TEN, 300)
    for number, name in enumerate(PARTLY):
        label = f"{name}, ρ = .5"
        yield Cell(70 + number, label, partial(draw, SHARED[name], 0.5), SIGNS, NAMES, 300)
    for number, kind in enumerate(((600, 0.004, 4), (120, 0.02, 4), (300, 0.008, 10))):
        label = "{} × two options and {:g} of {} rows, ρ = ±1".format(kind[0], *kind[1:])
        yield Cell(90 + number, label, partial(draw_options, *kind), SIGNS, NAMES, 300)


# ------------------------------------------------------------------ audits

AUDITED: dict[str, Design] = {
    "4000 rows, 200 × 50 at .01, 25 groups": SHARED["4000 rows, 200 × 50 at .01"],
    "200 × 10, uniform, 25 groups": stacked((200, 10, uniform(0.05, 0.95), 1.0)),
    "weights 1, 30, 1000 (60), uniform, 25 groups": SHARED["weights 1, 30, 1000 (60), uniform"],
}


def audited(design: Design, seed: np.random.SeedSequence) -> tuple[float, bool]:
    """Audit a data set in 25 groups of clusters; return p, and whether all intervals hold 0."""
    data, draws = seed.spawn(2)
    drawn = draw(design, 1.0, data)
    group = drawn.options["clusters"] * 7 % 25
    audit = caltest.audit(
        drawn.probs, drawn.labels, groups=group, n_resamples=RESAMPLES, rng=draws, **drawn.options
    )
    errors = [*audit.views, *(part for view in audit.views for part in view.parts), *audit.rests]
    sized = [(each.low, each.high) for each in errors if each.low is not None]
    return audit.pvalue, all(low <= 1e-9 and high >= -1e-9 for low, high in sized)


def audits(options: Options) -> None:
    """Run audits."""
    table = Table(options.results / "rare_clusters_audits.csv", ("design", "resamples", "seed"))
    wanted = options.datasets or (1 if options.quick else 200)
    with joblib.Parallel(n_jobs=options.jobs) as parallel:
        for number, (name, design) in enumerate(AUDITED.items()):
            if not options.wants(f"audits: {name}"):
                continue
            key = {"design": name, "resamples": RESAMPLES, "seed": SEED}
            for row, last, drawn in batches(table, key, (300 + number,), options, wanted, BLOCK):
                found = np.array(spread(partial(audited, design), drawn, parallel))
                counts = {f"p<={x:g}": found[:, 0] <= x + 1e-12 for x in LEVELS}
                counts["all hold"] = found[:, 1] > 0.0
                counted = {k: int(row.get(k, 0)) + int(np.count_nonzero(v)) for k, v in counts.items()}
                table.put([{**key, "caltest": caltest.__version__, "datasets": last, **counted}])
                print(f"audits: {name}: {last} of {wanted}, {options.seconds:.0f} s", flush=True)


def _group(row: Row) -> Row:
    kind = {"ρ = .5": "agree in part", "ρ = ±1": "agree, or cancel"}
    return {
        "rows of a cluster": kind.get(row["design"][-6:], "agree"),
        "statistic": row["statistic"],
    }


def run(options: Options) -> None:
    """Run the cells, and judge them."""
    table = _sizes.run(cells(), "rare_clusters.csv", options, SEED)
    if table.where():
        write_csv(_sizes.summary(table, _group), options.results / "rare_clusters_summary.csv")
    audits(options)
