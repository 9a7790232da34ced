"""Size of every statistic's exact test where rows count differently, or were sampled by their label.

``python -m validation weights --jobs 2``; ``weights.csv`` and, designs
added up, ``weights_summary.csv``. Calibrated models, labels drawn from their
predictions, all registered statistics on shared data sets and draws of labels.

*Survey weights* depend on nothing: lognormal, of σ = 1 (the effective number of rows is about a third
of them) and 1.5 (a tenth). *Importance weights* are functions of the predictions: drawn from a
Dirichlet distribution of ones, and of interest where the first class is more frequent, so that a row
counts g_1², or its density in another distribution over that in this one.

*Rates*: rows of a large population are kept by their label, one in a hundred or in ten of those without
the event (Beta(.3, 20)), or at three rates of three classes (Dirichlet(10, 1, .5)).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import TypeAlias

import numpy as np

from caltest.statistics import STATISTICS
from validation import _sizes
from validation._cells import Options
from validation._sizes import LABELS, Cell, Data
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


def run(options: Options) -> None:
    """Run the cells, and judge them: by design, and by statistic."""
    table = _sizes.run(cells(), "weights.csv", options, SEED)
    if table.where():
        lines = _sizes.summary(table, lambda row: {"statistic": row["statistic"]})
        write_csv(lines, options.results / "weights_summary.csv")
