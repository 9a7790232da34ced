"""Type I error of the ECE by consistency resampling and by the exact null, on calibrated M1 data.

``python -m validation.consistency --jobs 2``. Published (Widmann et al. 2019, 10⁴
data sets, n = 250, m = 10, α = 0.1, level .05): uniform bins 1.0, median-variance bins .2018.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence

import joblib
import numpy as np
from scipy.stats import binomtest
from threadpoolctl import threadpool_limits

import caltest
from caltest.binning import MedianVariance, Uniform
from caltest.statistics import ECE
from validation._study import CONFIDENCE, command_line, markdown, write_csv
from validation.generative import m1

LEVEL = 0.05
STATISTICS = {"uniform": ECE(Uniform(10)), "median-variance": ECE(MedianVariance(5))}
NULLS = ("consistency", "monte_carlo")


def pvalues(seed: np.random.SeedSequence, resamples: int) -> list[float]:
    """Test one data set in every way."""
    data, test = seed.spawn(2)
    drawn = m1(rng=data)
    with threadpool_limits(1):
        return [
            caltest.test(
                drawn.probs, drawn.labels, statistic, null=null, n_resamples=resamples, rng=test
            ).pvalue
            for statistic in STATISTICS.values()
            for null in NULLS
        ]


def parsed(arguments: Sequence[str] | None = None) -> argparse.Namespace:
    """Return the options."""
    given = command_line(__doc__, seed=20_190_412)
    given.add_argument("--repetitions", type=int, default=400)
    given.add_argument("--resamples", type=int, default=199)
    return given.parse_args(arguments)


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the study."""
    given = parsed(arguments)
    seeds = np.random.SeedSequence(given.seed).spawn(given.repetitions)
    tasks = (joblib.delayed(pvalues)(seed, given.resamples) for seed in seeds)
    found = np.array(joblib.Parallel(n_jobs=given.jobs)(tasks))
    rows = []
    for (binning, null), column in zip(
        [(b, n) for b in STATISTICS for n in NULLS], found.T, strict=True
    ):
        count = int(np.count_nonzero(column <= LEVEL))
        interval = binomtest(count, len(column)).proportion_ci(CONFIDENCE)
        rows.append(
            {
                "binning": binning,
                "null": null,
                "level": LEVEL,
                "rejections": count,
                "repetitions": len(column),
                "low": round(interval.low, 4),
                "high": round(interval.high, 4),
            }
        )
    write_csv(rows, given.results / "consistency.csv")
    print(markdown(rows))


if __name__ == "__main__":
    main()
