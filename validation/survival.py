"""Times until an event, some censored: size, power, and coverage of intervals at a horizon.

``python -m validation.survival size --repetitions 120``: calibrated exponential times whose rates
differ between rows; 20, 50 and 75% censored, by a known end of study, by random limits, or by limits
that depend on the predictors; 50, 200 and 2 000 rows. Rejections at 5% of the default, of single
statistics, and of the usual D-calibration, which spreads a censored row over the cells that are left.

``python -m validation.survival power --repetitions 60``: hazards a quarter larger, Weibull times of
shape 1.3, hazards that cross, and one group of a quarter of the rows whose hazard is twice as large.

``python -m validation.survival coverage --repetitions 2000``: intervals of an audit at a horizon with
5, 20 and 100 expected events, of models that are right or whose hazards are wrong by half: the share
that holds the true mean risk, and of calibrated models the share that is called material.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterable, Sequence
from time import perf_counter
from typing import Any, NamedTuple

import joblib
import numpy as np
from numpy.typing import NDArray
from scipy.optimize import brentq
from scipy.stats import binomtest, chi2

import caltest
from caltest.auditing.plan import Options
from caltest.auditing.times import _Sizing, _Where
from caltest.data import sample_of_law
from caltest.predictive import Survival
from caltest.statistics import GreenwoodNamDAgostino
from validation._study import command_line, markdown, write_csv

SEED = 20_261_125
ALPHA = 0.05
GRID = np.concatenate([np.linspace(0.05, 3.0, 60), np.linspace(3.25, 12.0, 36)])
Array = NDArray[np.float64]

SHARES = (0.2, 0.5, 0.75)
WAYS = ("end of study", "random", "by predictors")
ERRORS: dict[str, Callable[[np.random.Generator, Array], Array]] = {
    "hazards × 1.25": lambda rng, x: rng.exponential(0.8, len(x)),
    "Weibull, shape 1.3": lambda rng, x: rng.weibull(1.3, len(x)),
    "crossing hazards": lambda rng, x: rng.weibull(np.where(x > 0.0, 1.5, 0.7)),
    "a quarter × 2": lambda rng, x: rng.exponential(np.where(rng.random(len(x)) < 0.25, 0.5, 1.0)),
}


class Cohort(NamedTuple):
    """What was predicted and seen of some rows."""

    rate: Array
    time: Array
    event: NDArray[np.bool_]
    limit: Array

    def law(self, known: bool = False) -> Survival:
        """Return the predictions."""
        limit = np.minimum(self.limit, GRID[-1]) if known else None
        return Survival(np.exp(-np.outer(self.rate, GRID)), GRID, limit=limit)

    @property
    def outcomes(self) -> tuple[Array, NDArray[np.bool_]]:
        """Times and events, within the grid."""
        last = np.minimum(self.limit, GRID[-1])
        return np.minimum(self.time, last), self.event & (self.time <= last)


def _limits(rng: np.random.Generator, way: str, scale: float, x: Array) -> Array:
    if way == "end of study":  # rows enter evenly over two units of time
        return np.maximum(scale + 2.0 * rng.random(len(x)) - 1.0, 0.02)
    return rng.exponential(scale, len(x)) * (np.exp(-0.7 * x) if way == "by predictors" else 1.0)


def scale_of(way: str, share: float) -> float:
    """Return the scale of limits by which such a share of calibrated rows is censored."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=20_000)
    time = rng.exponential(np.exp(-0.7 * x))

    def off(log: float) -> float:
        limits = _limits(np.random.default_rng(1), way, float(np.exp(log)), x)
        return float(np.mean(time > limits)) - share

    return float(np.exp(brentq(off, -5.0, 5.0)))


def cohort(rng: np.random.Generator, n: int, way: str, scale: float, error: str = "") -> Cohort:
    """Draw predictions, times and limits."""
    x = rng.normal(size=n)
    rate = np.exp(0.7 * x)
    unit = ERRORS[error](rng, x) if error else rng.exponential(size=n)
    time, limit = unit / rate, _limits(rng, way, scale, x)
    return Cohort(rate, np.minimum(time, limit), time <= limit, limit)


def spread_mass(found: Cohort) -> float:
    """Return the p-value of D-calibration as usual (Haider et al. 2020): a censored row is spread."""
    time, event = found.outcomes
    left = np.exp(-found.rate * time)
    counts = np.histogram(left[event], bins=10, range=(0.0, 1.0))[0].astype(float)
    for s in left[~event]:
        cell = min(int(10.0 * s), 9)
        counts[:cell] += 0.1 / s
        counts[cell] += 1.0 - 0.1 * cell / s
    expected = counts.sum() / 10.0
    return float(chi2.sf(((counts - expected) ** 2 / expected).sum(), 9))


STATISTICS = ("omnibus", "pit_ad", "d_calibration", "events", "event_slope")


def pvalues(found: Cohort, seed: int) -> dict[str, float]:
    """Return the p-values of one data set, by what they are of."""
    options: dict[str, Any] = {"n_resamples": 199, "rng": seed}
    default = {} if len(found.time) > 50_000 else {"default": None}
    p = {}
    law = found.law()
    for name in (*default, *STATISTICS[1:]):
        measure = () if name == "default" else (name,)
        p[name] = caltest.test(law, found.outcomes, *measure, **options).pvalue
    p["gnd"] = caltest.test(law, found.outcomes, GreenwoodNamDAgostino(horizon=0.5), **options).pvalue
    p["default, limits known"] = caltest.test(found.law(True), found.outcomes, **options).pvalue
    p["D-calibration, spread mass"] = spread_mass(found)
    return p


def _one(n: int, way: str, scale: float, error: str, seed: np.random.SeedSequence) -> dict[str, float]:
    rng = np.random.default_rng(seed)
    try:
        return pvalues(cohort(rng, n, way, scale, error), int(rng.integers(2**31)))
    except caltest.InputError:  # no stratum is left until the horizon
        return {}


def _rates(jobs: int, count: int, cell: int, *case: Any) -> Iterable[dict[str, Any]]:
    seeds = np.random.SeedSequence(SEED, spawn_key=(cell,)).spawn(count)
    found = joblib.Parallel(jobs)(joblib.delayed(_one)(*case, seed) for seed in seeds)
    for name in next((each for each in found if each), {}):
        each = [one[name] for one in found if one]
        hits = int(np.sum(np.array(each) <= ALPHA))
        low, high = binomtest(hits, len(each)).proportion_ci(0.99)
        yield {
            "statistic": name, "datasets": len(each), "rejected": hits,
            "rate": round(hits / len(each), 4), "low": round(low, 4), "high": round(high, 4),
        }  # fmt: skip


def size(given: argparse.Namespace) -> list[dict[str, Any]]:
    """Run calibrated models."""
    rows, cell = list[dict[str, Any]](), 0
    for n in given.sizes:
        count = max(given.repetitions // (1 if n < 1000 else 5), 1)
        for way in WAYS:
            for share in SHARES:
                start, cell = perf_counter(), cell + 1
                what = {"rows": n, "limits": way, "censored": share}
                case = n, way, scale_of(way, share), ""
                rows += [what | found for found in _rates(given.jobs, count, cell, *case)]
                print(f"{what}: {perf_counter() - start:.0f} s", flush=True)
    return rows


def power(given: argparse.Namespace) -> list[dict[str, Any]]:
    """Run models that are wrong."""
    rows, cell = list[dict[str, Any]](), 1000
    for error in ERRORS:
        for share in SHARES:
            cell += 1
            what = {"error": error, "rows": 200, "limits": "random", "censored": share}
            case = 200, "random", scale_of("random", share), error
            rows += [what | found for found in _rates(given.jobs, given.repetitions, cell, *case)]
            print(what, flush=True)
    return rows


# ------------------------------------------------------------------ intervals at a horizon


def _sized(n: int, way: str, factor: float, seed: np.random.SeedSequence) -> tuple[bool, bool, bool]:
    """Say whether intervals hold the true mean risk, and that of the ratio the true one; material."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=n)
    rate = 0.1 * np.exp(0.7 * x)
    time = rng.exponential(1.0 / (rate * factor))
    limit = rng.exponential(2.0, n) * (np.exp(-0.7 * x) if way == "by predictors" else 1.0)
    times = np.linspace(0.1, 3.0, 30)
    law = Survival(np.exp(-np.outer(rate, times)), times)
    whole = sample_of_law(law, (np.minimum(time, limit), time <= limit))
    assert whole is not None
    options = Options.of(lenses="until:1", materiality=0.01)
    found = _Sizing.of(whole, options, 1, 0).of_rows(_Where("until:1", 1.0, None, None))
    _, predicted, _, low, high = found.sizes
    truth = predicted - float(np.mean(-np.expm1(-rate * factor)))
    count = found.events
    assert count.low is not None
    assert count.high is not None
    beyond = low > 0.01 or high < -0.01
    return low <= truth <= high, count.low <= factor <= count.high, beyond


def coverage(given: argparse.Namespace) -> list[dict[str, Any]]:
    """Run intervals at a horizon: the level of a single view, 96% (four fifths of 5% are missed)."""
    rows, cell = list[dict[str, Any]](), 2000
    for events in (5, 20, 100):
        for way in ("random", "by predictors"):
            for factor in (1.0, 1.5):
                cell += 1
                n = round(events / 0.095)
                seeds = np.random.SeedSequence(SEED, spawn_key=(cell,)).spawn(given.repetitions)
                one = joblib.delayed(_sized)
                held = np.array(
                    joblib.Parallel(given.jobs)(one(n, way, factor, each) for each in seeds)
                )
                risk, ratio, beyond = held.mean(axis=0).round(4).tolist()
                rows.append(
                    {
                        "events": events, "rows": n, "limits": way, "hazards": factor,
                        "datasets": len(held), "risk": risk, "ratio": ratio, "stated": 0.96,
                        "beyond 1 point": beyond,
                    }
                )  # fmt: skip
                print(rows[-1], flush=True)
    return rows


PARTS: dict[str, Callable[[argparse.Namespace], list[dict[str, Any]]]] = {
    "size": size,
    "power": power,
    "coverage": coverage,
}


def parsed(arguments: Sequence[str] | None = None) -> argparse.Namespace:
    """Return the options."""
    given = command_line(__doc__ or "")
    given.add_argument("study", choices=list(PARTS))
    given.add_argument("--repetitions", type=int, default=120)
    given.add_argument("--sizes", type=int, nargs="+", default=[50, 200, 2000])
    return given.parse_args(arguments)


def main(arguments: Sequence[str] | None = None) -> None:
    """Run a part."""
    given = parsed(arguments)
    rows = PARTS[given.study](given)
    write_csv(rows, given.results / f"survival_{given.study}.csv")
    print(markdown(rows))


if __name__ == "__main__":
    main()
