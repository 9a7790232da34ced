"""Mean estimates on simulated data, ours beside the published ones (Widmann et al. 2019, Figure 1).

``python -m validation.estimates --repetitions 2000 --jobs 2`` needs the reference data, whose folder
the environment variable CALTEST_REFERENCE_DATA names (default: ../shared/data beside the project).
"""

from __future__ import annotations

import argparse
import csv
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import joblib
import numpy as np
from threadpoolctl import threadpool_limits

from caltest.binning import MedianVariance, Uniform
from caltest.data import Predictions
from caltest.kernels import Exponential
from caltest.kernels.bandwidth import mean_tv_dirichlet
from caltest.simulation import mixture
from caltest.statistics import ECE, BiasedSKCE, LinearSKCE, Statistic, UnbiasedSKCE
from validation._study import RESULTS, markdown, write_csv

REFERENCE = Path(
    os.environ.get("CALTEST_REFERENCE_DATA", Path(__file__).parents[2] / "shared" / "data")
)
PUBLISHED_REPETITIONS = 10_000
N = 250

_SKCE: dict[str, Callable[[Exponential], Statistic]] = {
    "SKCEb": BiasedSKCE,
    "SKCEuq": UnbiasedSKCE,
    "SKCEul": LinearSKCE,
}


def estimators(alpha: np.ndarray) -> dict[str, Statistic]:
    """Return the estimators under their published names."""
    found: dict[str, Statistic] = {
        "ECE_uniform": ECE(Uniform(10)),
        "ECE_dynamic": ECE(MedianVariance(5)),
    }
    for name, make in _SKCE.items():
        found[f"{name}_median"] = make(Exponential("median_full"))
        found[f"{name}_mean"] = make(Exponential(mean_tv_dirichlet(alpha)))
    return found


def estimate_all(alpha: np.ndarray, beta: np.ndarray, pi: float, seed: Any) -> dict[str, float]:
    """Estimate everything on one data set."""
    with threadpool_limits(1):
        drawn = mixture(N, alpha, pi=pi, beta=beta, rng=seed)
        predictions = Predictions(drawn.probs)
        found = estimators(alpha)
        return {k: s.given(predictions).value(drawn.labels) for k, s in found.items()}


def design(alpha: float, beta: str, m: int) -> tuple[np.ndarray, np.ndarray]:
    """Return α and β as vectors of m classes."""
    return np.full(m, alpha), np.eye(m)[0] if beta == "e1" else np.full(m, 1.0 / m)


def main() -> None:
    """Run the study and print every estimate that differs by more than 4 standard errors."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--repetitions", type=int, default=2000)
    options.add_argument("--jobs", type=int, default=1)
    options.add_argument("--seed", type=int, default=20_190_411)
    given = options.parse_args()
    with (REFERENCE / "widmann2019_mean_estimates.csv").open() as file:
        published = list(csv.DictReader(file))
    designs = sorted({(r["alpha"], r["beta"], r["m"], r["pi"]) for r in published})
    rows = []
    parallel = joblib.Parallel(n_jobs=given.jobs)
    for number, key in enumerate(designs):
        alpha, beta = design(float(key[0]), key[1], int(key[2]))
        seeds = np.random.SeedSequence(given.seed, spawn_key=(number,)).spawn(given.repetitions)
        task = joblib.delayed(estimate_all)
        drawn = parallel(task(alpha, beta, float(key[3]), seed) for seed in seeds)
        for line in published:
            if (line["alpha"], line["beta"], line["m"], line["pi"]) == key:
                values = np.array([found[line["estimator"]] for found in drawn])
                rows.append(_row(line, values))
        print(f"{number + 1} of {len(designs)} designs", flush=True)
    write_csv(rows, RESULTS / "estimates.csv")
    far = [row for row in rows if abs(row["z"]) > 4]
    print(f"{len(rows)} estimates, {len(far)} beyond 4 standard errors")
    print(f"z: mean {np.mean([r['z'] for r in rows]):.2f}, sd {np.std([r['z'] for r in rows]):.2f}")
    if far:
        print(markdown(far))


def _row(published: dict[str, str], values: np.ndarray) -> dict[str, Any]:
    """Compare; the standard error is that of both means."""
    error = float(values.std(ddof=1))
    error *= np.sqrt(1.0 / len(values) + 1.0 / PUBLISHED_REPETITIONS)
    mean, theirs = float(values.mean()), float(published["mean_estimate"])
    keys = ("estimator", "alpha", "beta", "m", "pi")
    return {
        **{key: published[key] for key in keys},
        "published": f"{theirs:.6g}",
        "ours": f"{mean:.6g}",
        "standard_error": f"{error:.2g}",
        "z": round((mean - theirs) / error, 2),
    }


if __name__ == "__main__":
    main()
