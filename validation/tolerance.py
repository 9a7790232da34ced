"""Tests with a tolerance, and lower bounds of the largest error: level, coverage, networks, speed.

``python -m validation.tolerance size --repetitions 2000``: share of rejections at level .05 by
``caltest.test(..., tolerance=0.05)``, statistics "scan", "max_bin" and "citl", n = 400 scores uniform
on (.3, 1):

* boundary: the truth is .05 below every score: the hardest model of the hypothesis, exactly the level
  but for ties;
* mixed: .05 below in the lower half of the scores, .05 above in the upper half;
* beyond: .15 below every score, for comparison.

``python -m validation.tolerance coverage``: n = 4 000, five classes, α = 1; share
of data sets in which a bound of ``caltest.miscalibration_bounds`` exceeds the largest true error of
its rows (over: level .025, under: level .025), in which any does, in which ``somewhere_by`` of any
place exceeds the largest error in that place (of either side; level .05), and in which a place is
named in which no row is wrong. 79 draws show the level (400 data sets, 2000
of the calibrated model); 499, the default, bound a little more (40). Models:
temperature .8, .5, 1.5 and 1 (calibrated); "local", overconfident
where the largest probability is in (.6, .8); "mixed", too high below .7 and too low above.

``python -m validation.tolerance networks``: the bounds of four networks on the CIFAR-10 test set.

``python -m validation.tolerance speed``: seconds and seconds of all cores for 10 000 and
1 000 000 rows, best of three.
"""

from __future__ import annotations

import argparse
import resource
from collections.abc import Callable, Iterable, Sequence
from time import perf_counter, process_time
from typing import Any

import joblib
import numpy as np
from numpy.typing import NDArray
from scipy.stats import binomtest
from threadpoolctl import threadpool_limits

import caltest
from caltest.bounds.lower import SideBound
from caltest.simulation import Simulated, tempered
from validation._study import CONFIDENCE, REFERENCE, command_line, markdown, write_csv
from validation.generative import local

Array = NDArray[np.float64]

LEVEL, TOLERANCE = 0.05, 0.05
STATISTICS = ("scan", "max_bin", "citl")
NETWORKS = ("resnet18", "vgg19_bn", "densenet121", "googlenet")
ALPHA = np.ones(5)


def rate(count: int, of: int) -> dict[str, Any]:
    """Return a share with its Clopper–Pearson interval."""
    interval = binomtest(count, of).proportion_ci(CONFIDENCE)
    return {
        "found": count,
        "of": of,
        "rate": round(count / of, 4),
        "low": round(interval.low, 4),
        "high": round(interval.high, 4),
    }


# ------------------------------------------------------------------ size

TRUTHS: dict[str, Callable[[Array], Array]] = {
    "boundary": lambda c: c - TOLERANCE,
    "mixed": lambda c: np.where(c < 0.65, c - TOLERANCE, np.minimum(c + TOLERANCE, 1.0)),
    "beyond": lambda c: c - 3.0 * TOLERANCE,
}


def rejected(truth: str, resamples: int, seed: np.random.SeedSequence) -> list[bool]:
    """Draw one data set and test it with every statistic."""
    data, test = seed.spawn(2)
    rng = np.random.default_rng(data)
    scores = rng.uniform(0.3, 1.0, 400)
    labels = (rng.random(400) < TRUTHS[truth](scores)).astype(int)
    options: Any = {"tolerance": TOLERANCE, "alternative": "over", "n_resamples": resamples}
    with threadpool_limits(1):
        return [
            caltest.test(scores, labels, statistic, rng=test, **options).rejects(LEVEL)
            for statistic in STATISTICS
        ]


def sizes(options: argparse.Namespace) -> Iterable[dict[str, Any]]:
    """Yield the rejection rate of every truth and statistic."""
    resamples = options.resamples or 199
    for number, truth in enumerate(TRUTHS):
        seeds = np.random.SeedSequence([options.seed, number]).spawn(options.repetitions)
        tasks = (joblib.delayed(rejected)(truth, resamples, seed) for seed in seeds)
        found = np.array(joblib.Parallel(n_jobs=options.jobs)(tasks))
        for statistic, column in zip(STATISTICS, found.T, strict=True):
            row = {"truth": truth, "statistic": statistic, "resamples": resamples}
            yield {**row, **rate(int(column.sum()), len(column))}


# ------------------------------------------------------------------ coverage


def mixed(n: int, rng: np.random.SeedSequence) -> Simulated:
    """State a top class that is claimed .1 too much below .7, and .1 too little above."""
    data, draws = rng.spawn(2)
    stated = tempered(n, ALPHA, temperature=1.0, rng=data)
    top = stated.probs.argmax(axis=1)
    confidence = stated.probs.max(axis=1)
    right = confidence + np.where(confidence < 0.7, -0.1, np.minimum(0.1, 1.0 - confidence))
    truth = stated.probs * ((1.0 - right) / np.maximum(1.0 - confidence, 1e-300))[:, None]
    truth[np.arange(n), top] = right
    uniforms = np.random.default_rng(draws).random((n, 1))
    labels = (uniforms > truth.cumsum(axis=1)[:, :-1]).sum(axis=1)
    return Simulated(stated.probs.copy(), labels, truth)


MODELS: dict[str, Callable[[np.random.SeedSequence], Simulated]] = {
    "temperature 1": lambda seed: tempered(4000, ALPHA, temperature=1.0, rng=seed),
    "temperature 0.8": lambda seed: tempered(4000, ALPHA, temperature=0.8, rng=seed),
    "temperature 0.5": lambda seed: tempered(4000, ALPHA, temperature=0.5, rng=seed),
    "temperature 1.5": lambda seed: tempered(4000, ALPHA, temperature=1.5, rng=seed),
    "local": lambda seed: local(4000, ALPHA, region=(0.6, 0.8), strength=0.4, rng=seed),
    "mixed": lambda seed: mixed(4000, seed),
}


#: Model, draws and data sets.
COVERED = (
    *((name, 79, 2000 if name == "temperature 1" else 400) for name in MODELS),
    *((name, 499, 40) for name in MODELS),
)


def bounds_of(model: str, resamples: int, seed: np.random.SeedSequence) -> dict[str, float]:
    """Draw one data set; return its bounds, the truth, and whether anything said is false."""
    data, draws = seed.spawn(2)
    simulated = MODELS[model](data)
    top = simulated.probs.argmax(axis=1)
    rows = np.arange(len(top))
    stated, true = simulated.probs[rows, top], simulated.truth[rows, top]
    with threadpool_limits(1):
        found = caltest.miscalibration_bounds(
            simulated.probs, simulated.labels, lens="top_label", n_resamples=resamples, rng=draws
        )
    (view,) = found.views
    result: dict[str, float] = {}
    for side, errors in ((view.over, stated - true), (view.under, true - stated)):
        largest = max(float(errors.max()), 0.0)
        result[side.side] = side.bound
        result[f"true_{side.side}"] = largest
        result[f"above_{side.side}"] = side.bound > largest + 1e-9
        result[f"places_{side.side}"] = max([place.somewhere_by for place in side.places], default=0.0)
        result |= false_places(side, stated, errors)
    return result


def false_places(side: SideBound, stated: Array, errors: Array) -> dict[str, float]:
    """Say whether a bound of a place is above the truth there, or no row of a place is wrong."""
    amount = wrong = False
    for place in side.places:
        inside = errors[(stated >= place.low - 1e-12) & (stated <= place.high + 1e-12)]
        largest = max(float(inside.max()), 0.0)
        amount |= place.somewhere_by > largest + 1e-9
        wrong |= largest <= 1e-12
    return {f"amount_{side.side}": amount, f"wrong_{side.side}": wrong}


def coverage(options: argparse.Namespace) -> Iterable[dict[str, Any]]:
    """Yield, for every model, how often something false is said, and how close the bounds are."""
    for model, resamples, most in COVERED:
        start, number = perf_counter(), list(MODELS).index(model)
        count = min(most, options.repetitions)
        seeds = np.random.SeedSequence([options.seed, 10 + number]).spawn(count)
        tasks = (joblib.delayed(bounds_of)(model, options.resamples or resamples, s) for s in seeds)
        found = joblib.Parallel(n_jobs=options.jobs)(tasks)
        columns = {name: np.array([each[name] for each in found]) for name in found[0]}
        print(f"{model}: {perf_counter() - start:.0f} s", flush=True)
        row: dict[str, Any] = {"model": model, "resamples": options.resamples or resamples}
        for side in ("over", "under"):
            row[f"true_{side}"] = round(float(columns[f"true_{side}"].mean()), 4)
            row[f"bound_{side}"] = round(float(columns[side].mean()), 4)
            row[f"place_{side}"] = round(float(columns[f"places_{side}"].mean()), 4)
            row[f"false_{side}"] = int(columns[f"above_{side}"].sum())
        for kind in ("above", "amount", "wrong"):
            either = columns[f"{kind}_over"] | columns[f"{kind}_under"]
            share = rate(int(either.sum()), len(either))
            row |= {f"{kind}_{name}": share[name] for name in ("found", "rate", "high")}
        yield {**row, "of": count}


# ------------------------------------------------------------------ networks and speed


def networks(options: argparse.Namespace) -> Iterable[dict[str, Any]]:
    """Yield the bounds of every network and the places that its summary names."""
    for name in NETWORKS:
        with np.load(REFERENCE / f"cifar10_{name}.npz") as arrays:
            probs, labels = arrays["probs"][: options.rows], arrays["labels"][: options.rows]
        found = caltest.miscalibration_bounds(
            probs, labels, n_resamples=options.resamples or 499, rng=options.seed
        )
        print(f"\n{name}\n{found}", flush=True)
        for side in found.views[0].sides:
            for place in [place for place in side.places if place.named]:
                row = {"network": name, "side": side.side, "bound": side.bound}
                row |= {"from": round(place.low, 5), "to": round(place.high, 5), "rows": place.rows}
                row |= {"says": round(place.predicted, 4), "is": round(place.observed, 4)}
                yield {**row, "somewhere_by": place.somewhere_by, "pvalue": place.pvalue}
            if not side.places:
                row = {"network": name, "side": side.side, "bound": side.bound}
                empty = dict.fromkeys(("from", "to", "rows", "says", "is", "somewhere_by"), "")
                yield {**row, **empty, "pvalue": round(side.pvalue, 4)}


def speed(options: argparse.Namespace) -> Iterable[dict[str, Any]]:
    """Yield the best time of three, and the largest memory so far, of a model that is wrong."""
    for n in (options.rows,) if options.rows else (10_000, 1_000_000):
        rng = np.random.default_rng(options.seed)
        scores = rng.beta(5.0, 1.0, n)
        labels = (rng.random(n) < np.clip(scores - 0.1, 0.0, 1.0)).astype(int)
        for jobs in (1, 2):
            times, cpu = [], []
            for _ in range(3):
                start, used = perf_counter(), process_time()
                found = caltest.miscalibration_bounds(scores, labels, rng=0, n_jobs=jobs)
                times.append(perf_counter() - start)
                cpu.append(process_time() - used)
            yield {
                "n": n,
                "resamples": found.n_resamples,
                "jobs": jobs,
                "seconds": round(min(times), 2),
                "cpu_seconds": round(min(cpu), 2),
                "memory_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024,
                "over": found.over,
                "under": found.under,
            }


STUDIES = {"size": sizes, "coverage": coverage, "networks": networks, "speed": speed}


def parsed(arguments: Sequence[str] | None = None) -> argparse.Namespace:
    """Return the options."""
    given = command_line(__doc__, seed=20_260_101)
    given.add_argument("study", choices=STUDIES)
    given.add_argument("--repetitions", type=int, default=2000, help="data sets of a cell, at most")
    given.add_argument("--resamples", type=int, help="199 of size, 79 and 499 of coverage, 499 else")
    given.add_argument("--rows", type=int, help="of networks (all) and speed")
    return given.parse_args(arguments)


def main(arguments: Sequence[str] | None = None) -> None:
    """Run one study."""
    options = parsed(arguments)
    rows = list(STUDIES[options.study](options))
    print(markdown(rows))
    write_csv(rows, options.results / f"tolerance_{options.study}.csv")


if __name__ == "__main__":
    main()
