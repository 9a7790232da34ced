"""Type I error where rows of a cluster depend on each other: by signs of clusters, and without them.

``python -m validation.clusters --jobs 2``. Calibrated models: centres c_g ~ Dirichlet(.7), predictions
of the rows of cluster g ~ Dirichlet(.001 + 5 c_g), labels the inverse distribution function of the
prediction at Φ(√ρ a_g + √(1 − ρ) e_i) with standard normal a and e: each row by itself is calibrated,
and rows of a cluster err together.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import NamedTuple

import joblib
import numpy as np
from scipy.special import ndtr
from scipy.stats import binomtest
from threadpoolctl import threadpool_limits

import caltest
from validation._study import CONFIDENCE, command_line, markdown, write_csv

LEVEL = 0.05


class Design(NamedTuple):
    """So many clusters of so many rows, classes, and the correlation of the latent cause."""

    clusters: int
    size: int
    classes: int
    correlation: float


DESIGNS = (
    Design(40, 5, 3, 0.5),
    Design(100, 5, 3, 0.5),
    Design(20, 10, 3, 0.3),
    Design(100, 2, 10, 0.8),
    Design(200, 10, 2, 0.5),
)
STATISTICS = {
    "skce_uq": ("skce_uq", None),
    "ecd": ("ecd", None),
    "ks, top label": ("ks", "top_label"),
    "omnibus": ("omnibus", None),
}


class Drawn(NamedTuple):
    """A data set."""

    probs: np.ndarray
    labels: np.ndarray
    clusters: np.ndarray


def draw(design: Design, seed: np.random.SeedSequence) -> Drawn:
    """Draw a calibrated data set."""
    rng = np.random.default_rng(seed)
    codes = np.repeat(np.arange(design.clusters), design.size)
    centres = rng.dirichlet(np.full(design.classes, 0.7), design.clusters)
    gammas = rng.standard_gamma(0.001 + 5.0 * centres[codes])
    probs = gammas / gammas.sum(axis=1, keepdims=True)
    rho, shared = design.correlation, rng.standard_normal(design.clusters)
    latent = np.sqrt(rho) * shared[codes] + np.sqrt(1.0 - rho) * rng.standard_normal(len(codes))
    labels = (np.cumsum(probs, axis=1)[:, :-1] < ndtr(latent)[:, None]).sum(axis=1)
    return Drawn(probs, labels, codes)


def pvalues(design: Design, seed: np.random.SeedSequence, resamples: int) -> list[float]:
    """Test one data set in every way: with clusters, and without."""
    data, test = seed.spawn(2)
    drawn = draw(design, data)
    with threadpool_limits(1):
        return [
            caltest.test(
                drawn.probs,
                drawn.labels,
                statistic,
                lens=lens,
                clusters=clusters,
                n_resamples=resamples,
                rng=test,
            ).pvalue
            for clusters in (drawn.clusters, None)
            for statistic, lens in STATISTICS.values()
        ]


def parsed(arguments: Sequence[str] | None = None) -> argparse.Namespace:
    """Return the options."""
    given = command_line(__doc__, seed=20_261_122)
    given.add_argument("--repetitions", type=int, default=1000)
    given.add_argument("--resamples", type=int, default=199)
    given.add_argument("--designs", type=int, nargs="+", default=list(range(len(DESIGNS))))
    return given.parse_args(arguments)


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the study; what each design finds is written before the next begins."""
    given = parsed(arguments)
    rows = []
    for number in given.designs:
        design = DESIGNS[number]
        seeds = [
            np.random.SeedSequence(given.seed, spawn_key=(number, each))
            for each in range(given.repetitions)
        ]
        tasks = (joblib.delayed(pvalues)(design, seed, given.resamples) for seed in seeds)
        found = np.array(joblib.Parallel(n_jobs=given.jobs)(tasks))
        ways = [(name, rows_are) for rows_are in ("clusters", "alone") for name in STATISTICS]
        for (statistic, rows_are), column in zip(ways, found.T, strict=True):
            count = int(np.count_nonzero(column <= LEVEL + 1e-12))
            interval = binomtest(count, len(column)).proportion_ci(CONFIDENCE)
            rows.append(
                {
                    **design._asdict(),
                    "statistic": statistic,
                    "rows taken as": rows_are,
                    "level": LEVEL,
                    "rejected": round(count / len(column), 4),
                    "repetitions": len(column),
                    "low": round(interval.low, 4),
                    "high": round(interval.high, 4),
                }
            )
        write_csv(rows, given.results / "clusters.csv")
    print(markdown(rows))


if __name__ == "__main__":
    main()
