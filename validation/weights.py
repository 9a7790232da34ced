"""Where rows count differently, or were sampled by their label: size of every exact test; intervals.

``python -m validation weights --jobs 2``; ``weights.csv`` and, designs
added up, ``weights_summary.csv``; ``weights_intervals.csv``. Calibrated models, labels drawn from their
predictions, all registered statistics on shared data sets and draws of labels.

*Survey weights* depend on nothing: lognormal, of σ = 1 (the effective number of rows is about a third
of them) and 1.5 (a tenth). *Importance weights* are functions of the predictions: drawn from a
Dirichlet distribution of ones, and of interest where the first class is more frequent, so that a row
counts g_1², or its density in another distribution over that in this one.

*Rates*: rows of a large population are kept by their label, one in a hundred or in ten of those without
the event (Beta(.3, 20)), or at three rates of three classes (Dirichlet(10, 1, .5)).

*Intervals* of mean errors, where few rows carry the weight: how often the exact interval and one of t
miss the true error, their mean lengths, and how often an audit's verdict is false.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any, TypeAlias

import joblib
import numpy as np

import caltest
from caltest.auditing.sizes import Design, enough_clusters
from caltest.statistics import STATISTICS
from validation import _sizes
from validation._cells import Options, Table, batches, spread
from validation._sizes import BLOCK, LABELS, Cell, Data
from validation._study import write_csv

SEED = 20_261_123

Array: TypeAlias = np.ndarray
Weights: TypeAlias = Callable[[np.random.Generator, Array], Array]


def labels_of(rng: np.random.Generator, probs: Array) -> Array:
    """Draw labels from predictions."""
    return np.asarray((np.cumsum(probs, axis=1)[:, :-1] < rng.random((len(probs), 1))).sum(axis=1))


def survey(sigma: float) -> Weights:
    """Return weights that depend on nothing."""
    return lambda rng, probs: rng.lognormal(0.0, sigma, len(probs))


def towards_the_first_class(rng: np.random.Generator, probs: Array) -> Array:
    """Return Dirichlet(3, 1, …) over Dirichlet(1, 1, …), but for a factor."""
    return np.asarray(probs[:, 0] ** 2)


def towards_sure_rows(rng: np.random.Generator, probs: Array) -> Array:
    """Return what counts confident rows up to hundreds of times as much as unsure ones."""
    return np.asarray(np.exp(6.0 * probs.max(axis=1)))


def weighted(n: int, m: int, weights: Weights, seed: np.random.SeedSequence) -> Data:
    """Draw a data set whose rows count differently."""
    rng = np.random.default_rng(seed)
    probs = rng.dirichlet(np.ones(m), n)
    return Data(probs, labels_of(rng, probs), {"weights": weights(rng, probs)})


def thinned(
    n: int, alpha: tuple[float, ...], rates: Mapping[int, float], seed: np.random.SeedSequence
) -> Data:
    """Draw a population, and keep rows by their label."""
    rng = np.random.default_rng(seed)
    probs = rng.dirichlet(alpha, n)
    labels = labels_of(rng, probs)
    kept = rng.random(n) < np.array([rates.get(k, 1.0) for k in range(len(alpha))])[labels]
    return Data(probs[kept], labels[kept], {"sampling_rates": rates})


def cells() -> Iterator[Cell]:
    """Yield the cells; new ones go to the end."""
    designs: list[tuple[str, Callable[[np.random.SeedSequence], Data]]] = [
        ("survey σ=1, m=3, n=300", partial(weighted, 300, 3, survey(1.0))),
        ("importance g², m=3, n=300", partial(weighted, 300, 3, towards_the_first_class)),
        ("1% of class 0, about 450 kept", partial(thinned, 20_000, (20.0, 0.3), {0: 0.01})),
        ("survey σ=1.5, m=2, n=300", partial(weighted, 300, 2, survey(1.5))),
        ("importance of sure rows, m=2, n=300", partial(weighted, 300, 2, towards_sure_rows)),
        ("10% of class 0, about 400 kept", partial(thinned, 3_500, (20.0, 0.3), {0: 0.1})),
        (
            "rates .05, .5, 1, about 400 kept",
            partial(thinned, 2_500, (10.0, 1.0, 0.5), {0: 0.05, 1: 0.5}),
        ),
        ("survey σ=1, m=10, n=300", partial(weighted, 300, 10, survey(1.0))),
        ("importance g², m=10, n=300", partial(weighted, 300, 10, towards_the_first_class)),
        ("survey σ=1.5, m=3, n=60", partial(weighted, 60, 3, survey(1.5))),
    ]
    for number, (name, draw) in enumerate(designs):
        yield Cell(number, name, draw, LABELS, tuple(STATISTICS))


# ------------------------------------------------------------------ intervals

LIMITS = (0.02, 0.001)  # levels of a side: of an audit of one view, and of one of twenty
LIMIT = 0.01  # the materiality limit of its audits, or five times as much where an error is hidden

#: Predictions, true probabilities, and how rows count.
Known: TypeAlias = tuple[Array, Array, Mapping[str, object]]


def heavy(rows: int, few: int, weight: float, by: float, rng: np.random.Generator) -> Known:
    """Return rows at .02, and a few that carry the weight, whose predictions are too high."""
    true = np.full(rows + few, 0.02)
    counts = np.r_[np.ones(rows), np.full(few, weight)]
    return true + np.where(counts > 1.0, by, 0.0), true, {"weights": counts}


def hidden(rng: np.random.Generator) -> Known:
    """Return twenty rows of weight 1 000 that hide an error of 7.2 points of all."""
    stated = np.r_[rng.uniform(0.1, 0.3, 5000), np.full(20, 0.1)]
    weights = np.r_[np.ones(5000), np.full(20, 1000.0)]
    return stated, stated + np.where(weights > 1.0, 0.09, 0.0), {"weights": weights}


def surveyed(rng: np.random.Generator) -> Known:
    """Return a survey of 1 000 rows, of which a hundred count in effect."""
    true = rng.beta(1.0, 9.0, 1000)
    return true, true, {"weights": rng.lognormal(0.0, 1.5, 1000)}


def rare(rng: np.random.Generator) -> Known:
    """Return a population of which one in a hundred without the event is kept."""
    true = rng.beta(0.3, 20.0, 20_000)
    return true, true, {"sampling_rates": {0: 0.01}}


def together(rng: np.random.Generator) -> Known:
    """Return single rows, and clusters of rare events that all rows share."""
    true = np.r_[rng.uniform(0.05, 0.95, 4000), np.full(10_000, 0.01)]
    return true, true, {"clusters": np.r_[np.arange(4000), 4000 + np.arange(10_000) // 50]}


KNOWN: dict[str, Callable[[np.random.Generator], Known]] = {
    "1 000 rows, 100 of weight 100, at .02": partial(heavy, 1000, 100, 100.0, 0.0),
    "30 000 rows, 50 of weight 600, errors up to .009": partial(heavy, 30_000, 50, 600.0, 0.009),
    "20 rows of weight 1 000 hide 7.2 points": hidden,
    "lognormal weights, σ = 1.5": surveyed,
    "1% of class 0 kept, Beta(.3, 20)": rare,
    "4 000 rows, 200 clusters × 50 at .01, all or none": together,
}


def measured(draw: Callable[[np.random.Generator], Known], seed: np.random.SeedSequence) -> list[float]:
    """Return what exact intervals and those of t miss, their lengths, and false verdicts."""
    rng = np.random.default_rng(seed)
    stated, true, options = draw(rng)
    codes = np.asarray(options.get("clusters", np.arange(len(true))))
    labels = (rng.random(int(codes.max()) + 1)[codes] < true).astype(int)
    share = np.ones(len(true))
    if "sampling_rates" in options:
        rows = (rng.random(len(true)) < 0.01) | (labels == 1)
        stated, true, labels = stated[rows], true[rows], labels[rows]
        share = 1.0 / (0.01 + 0.99 * true)
    share = np.asarray(options.get("weights", share))
    error = float(share @ (stated - true) / share.sum())
    whole = caltest.data.sample(stated, labels, **options)
    rates: Any = options.get("sampling_rates")
    scores, design = whole.rows.probs[:, 1], Design.of(whole.rows, rates)
    found: list[float] = []
    for level in LIMITS:
        for by_t in (False, True):
            by = by_t or design.carried(scores) >= enough_clusters(level)
            *_, low, high = design.interval(scores, labels, level, by)
            found += [not low <= error <= high, high - low]
    limit = LIMIT if abs(error) <= LIMIT else 5.0 * LIMIT
    verdict = caltest.audit(
        stated, labels, materiality=limit, n_resamples=99, rng=int(rng.integers(2**31)), **options
    ).verdict
    wrong = abs(error) > limit
    return [*found, verdict == "material" and not wrong, verdict in ("within", "small") and wrong]


def intervals(options: Options) -> None:
    """Run designs whose true errors are known."""
    table = Table(options.results / "weights_intervals.csv", ("design", "seed"))
    wanted = options.datasets or (1 if options.quick else 1000)
    names = [
        f"{what} at {level:g}"
        for level in LIMITS
        for what in ("missed", "length", "missed by t", "length of t")
    ]
    with joblib.Parallel(n_jobs=options.jobs) as parallel:
        for number, (name, draw) in enumerate(KNOWN.items()):
            if not options.wants(f"intervals: {name}"):
                continue
            key = {"design": name, "seed": SEED}
            for row, last, drawn in batches(table, key, (300 + number,), options, wanted, BLOCK):
                found = np.array(spread(partial(measured, draw), drawn, parallel), dtype=np.float64)
                counts = dict(zip([*names, "false material", "false within"], found.T, strict=True))
                done, sums = last - len(found), {}  # type: ignore[var-annotated]
                for what, each in counts.items():
                    before = float(row.get(what, 0.0))
                    total = float(each.sum())
                    length = what.startswith("length")
                    sums[what] = (before * done + total) / last if length else int(before + total)
                table.put([{**key, "caltest": caltest.__version__, "datasets": last, **sums}])
                print(f"intervals: {name}: {last} of {wanted}, {options.seconds:.0f} s", flush=True)


def run(options: Options) -> None:
    """Run the cells, and judge them: by design, and by statistic."""
    table = _sizes.run(cells(), "weights.csv", options, SEED)
    if table.where():
        lines = _sizes.summary(table, lambda row: {"statistic": row["statistic"]})
        write_csv(lines, options.results / "weights_summary.csv")
    intervals(options)
