"""What a kernel of low rank costs in power, by its rank.

``python -m validation.low_rank --repetitions 200 --jobs 2``

1 000 rows of ten classes, three errors: a temperature too low (overconfident), a bias of the log-odds
of one class, and an error in a region of the simplex only. Every data set is tested by SKCE_uq with
the kernel itself and with approximations of rank 32 to 1 024; all tests are exact.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import Any

import joblib
import numpy as np
from numpy.typing import NDArray
from scipy.stats import binomtest
from threadpoolctl import threadpool_limits

import caltest
from caltest.simulation import classwise, local, tempered
from caltest.statistics import UnbiasedSKCE
from caltest.statistics.skce import Approximation
from validation._designs import Design
from validation._study import command_line, markdown, write_csv

LEVEL, ROWS = 0.05, 1000
RANKS = (32, 64, 128, 256, 512, 1024)
ALPHA = [0.1] * 10
DESIGNS = (
    Design("calibrated", lambda seed: tempered(ROWS, ALPHA, temperature=1.0, rng=seed)),
    Design("temperature 0.8", lambda seed: tempered(ROWS, ALPHA, temperature=0.8, rng=seed)),
    Design("bias 0.4", lambda seed: classwise(ROWS, ALPHA, bias=0.4, rng=seed)),
    Design("local", lambda seed: local(ROWS, ALPHA, region=(0.5, 0.7), strength=0.5, rng=seed)),
)
APPROXIMATIONS: tuple[Approximation, ...] = ("nystrom", "fourier")
STATISTICS: dict[tuple[str, int], UnbiasedSKCE] = {
    ("none", ROWS): UnbiasedSKCE(),
    **{
        (how, rank): UnbiasedSKCE(approximation=how, rank=rank)
        for how in APPROXIMATIONS
        for rank in RANKS
    },
}


def parsed(arguments: Sequence[str] | None = None) -> argparse.Namespace:
    """Return the options."""
    given = command_line(str(__doc__), seed=20_261_121)
    given.add_argument("--repetitions", type=int, default=200, help="data sets a design")
    given.add_argument("--resamples", type=int, default=199)
    return given.parse_args(arguments)


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the study, print it and write it down."""
    options = parsed(arguments)
    rows = []
    for number, design in enumerate(DESIGNS):
        seeds = np.random.SeedSequence(options.seed, spawn_key=(number,)).spawn(options.repetitions)
        tasks = (joblib.delayed(_pvalues)(number, options.resamples, seed) for seed in seeds)
        found = np.array(joblib.Parallel(n_jobs=options.jobs)(tasks))
        rows += [
            _row(design, how, rank, found[:, column]) for column, (how, rank) in enumerate(STATISTICS)
        ]
        print(f"{design.name}: done", flush=True)
    write_csv(rows, options.results / "low_rank_power.csv")
    print(markdown(rows))


def _pvalues(number: int, resamples: int, seed: np.random.SeedSequence) -> list[float]:
    data, tests = seed.spawn(2)
    simulated = DESIGNS[number].draw(data)
    with threadpool_limits(1):
        return [
            caltest.test(
                simulated.probs, simulated.labels, statistic, n_resamples=resamples, rng=tests
            ).pvalue
            for statistic in STATISTICS.values()
        ]


def _row(design: Design, approximation: str, rank: int, pvalues: NDArray[np.float64]) -> dict[str, Any]:
    rejected = int(np.count_nonzero(pvalues <= LEVEL))
    interval = binomtest(rejected, len(pvalues)).proportion_ci(0.95)
    return {
        "design": design.name,
        "approximation": approximation,
        "rank": rank,
        "rejected": rejected,
        "of": len(pvalues),
        "rate": round(rejected / len(pvalues), 3),
        "low": round(interval.low, 3),
        "high": round(interval.high, 3),
    }


if __name__ == "__main__":
    main()
