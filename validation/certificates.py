"""How often certificates hold, how close they come, how many rows they need, and how long they take.

``python -m validation.certificates coverage``: share of simulated data sets in which ALL bounds hold at
once, at confidence 95%; the truth is known for every row. Designs, with scores c:

* calibrated: c uniform, q = c;
* sharp: q uniform in logits as above, c = softmax of logits / 0.8, too extreme;
* mixed: c uniform, q ~ Beta(0.1 c, 0.1 (1 − c)): within a bin most rows are nearly sure either way, so
  that counts vary far less than a binomial. The mean over the rows of a bin is the truth there; given
  the score alone, the probability is c;
* flat: c uniform, q = 1/2: every interval counts, the worst for the isotonic band.

``… widths``: certified distances of calibrated models, bins and isotonic, side by side; and what
pooling scores costs or gains against the published family of all intervals of distinct scores.

``… plan``: rows that `samples_for` asks for, and how often samples of that size get there.

``… speed``: seconds, on scores without ties.

``… networks``: the sentences for four networks on the CIFAR-10 test set, and a picture.

``--repetitions`` and ``--rows`` are the most data sets of a cell and the most rows of one.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterable, Sequence
from time import perf_counter
from typing import Any

import joblib
import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, logit
from scipy.stats import binomtest

import caltest
from validation._study import CONFIDENCE, REFERENCE, command_line, markdown, write_csv
from validation.isotonic import Certified, certify

Array = NDArray[np.float64]
Drawn = tuple[Array, Array, Array]

NETWORKS = ("resnet18", "googlenet", "vgg19_bn", "densenet121")
METHODS = ("bins", "isotonic")
SIZES = {200: 1000, 2000: 1000, 10_000: 200}
WIDTHS = {1000: 50, 2000: 20, 10_000: 20, 100_000: 5, 1_000_000: 1}
SPEEDS = (10_000, 100_000, 1_000_000)
WANTED = {
    "bins": ((0.1, 200), (0.05, 200), (0.02, 50)),
    "isotonic": ((0.2, 200), (0.1, 50), (0.05, 10), (0.02, 0)),
}


# ------------------------------------------------------------------ designs: score, truth given it, q


def _calibrated(n: int, rng: np.random.Generator) -> Drawn:
    c = rng.random(n)
    return c, c, c


def _sharp(n: int, rng: np.random.Generator) -> Drawn:
    q = rng.random(n)
    return expit(logit(q) / 0.8), q, q


def _mixed(n: int, rng: np.random.Generator) -> Drawn:
    c = rng.random(n)
    return c, c, rng.beta(0.1 * c, 0.1 * (1.0 - c))


def _confident(n: int, rng: np.random.Generator) -> Drawn:
    """Scores like those of the top class of ten: 0.1 to 1, most of them near 1."""
    c = 0.1 + 0.9 * rng.beta(2.0, 0.15, n)
    return c, c, c


def _flat(n: int, rng: np.random.Generator) -> Drawn:
    half = np.full(n, 0.5)
    return rng.random(n), half, half


Design = Callable[[int, np.random.Generator], Drawn]
COVERED: dict[str, Design] = {
    "calibrated": _calibrated,
    "sharp": _sharp,
    "mixed": _mixed,
    "flat": _flat,
}
SHAPES: dict[str, Design] = {"uniform": _calibrated, "confident": _confident}


def certified(
    design: Design, n: int, seed: np.random.SeedSequence, **options: Any
) -> tuple[Certified, Drawn]:
    """Draw a data set, and certify it."""
    rng = np.random.default_rng(seed)
    drawn = design(n, rng)
    labels = rng.random(n) < drawn[2]
    return certify(np.column_stack([1.0 - drawn[0], drawn[0]]), labels, **options), drawn


def seeds(options: argparse.Namespace, name: str, count: int) -> list[np.random.SeedSequence]:
    """Return the seeds of one cell of a study."""
    return np.random.SeedSequence([options.seed, *map(ord, name)]).spawn(count)


# ------------------------------------------------------------------ studies


def sizes(options: argparse.Namespace, all_of_them: Iterable[int]) -> list[int]:
    """Return the numbers of rows that are asked for."""
    return [n for n in all_of_them if options.rows is None or n <= options.rows]


def holds(found: Certified, drawn: Drawn) -> tuple[bool, bool]:
    """Return whether all bounds hold, and whether the certified and the proved distance do."""
    c, given_score, q = drawn
    if found.method == "isotonic":
        order = np.argsort(c)
        lower, upper = found.band(c[order])
        truth = given_score[order]
        distance = float(np.abs(truth - c[order]).max())
    else:
        lower, upper = found.lower, found.upper
        cells = np.searchsorted(found.starts, c, side="right") - 1
        truth = np.bincount(cells, weights=q) / np.bincount(cells)
        distance = float(np.abs(truth - found.predicted).max())
    inside = bool(((lower <= truth) & (truth <= upper)).all())
    return inside, found.proved <= distance <= found.distance


def coverage(options: argparse.Namespace) -> Iterable[dict[str, Any]]:
    """Yield the share of data sets in which everything holds."""
    for method in METHODS:
        for name, design in COVERED.items():
            for n in sizes(options, SIZES):
                count = min(SIZES[n], options.repetitions)

                def once(seed: np.random.SeedSequence) -> tuple[bool, bool]:
                    found, drawn = certified(design, n, seed, method=method)  # noqa: B023
                    return holds(found, drawn)

                tasks = (joblib.delayed(once)(s) for s in seeds(options, f"{name}{n}", count))
                results = np.array(joblib.Parallel(n_jobs=options.jobs)(tasks))
                kept, near = (int(total) for total in results.sum(axis=0))
                interval = binomtest(kept, count).proportion_ci(CONFIDENCE)
                yield {
                    "method": method,
                    "design": name,
                    "n": n,
                    "data_sets": count,
                    "all_bounds_hold": round(kept / count, 4),
                    "low": round(interval.low, 4),
                    "high": round(interval.high, 4),
                    "distances_hold": round(near / count, 4),
                }


def widths(options: argparse.Namespace) -> Iterable[dict[str, Any]]:
    """Yield mean certified distances."""
    kinds: dict[str, dict[str, Any]] = {
        "10 bins": {},
        "20 bins": {"n_bins": 20},
        "isotonic": {"method": "isotonic"},
        "isotonic, all scores": {"method": "isotonic"},
    }
    for name, design in SHAPES.items():
        for n in sizes(options, WIDTHS):
            count = min(WIDTHS[n], options.repetitions)
            for kind, chosen in kinds.items():
                if kind.endswith("all scores"):
                    if n > 2000:
                        continue
                    chosen = chosen | {"cells": n}
                made = [
                    certified(design, n, s, **chosen)[0] for s in seeds(options, f"{name}{n}", count)
                ]
                values = [[c.distance, c.distance_for(0.9), c.distance_for(0.5)] for c in made]
                mean = np.mean(values, axis=0)
                yield {
                    "scores": name,
                    "n": n,
                    "data_sets": count,
                    "kind": kind,
                    "parts": round(float(np.mean([len(c.counts) for c in made]))),
                    "distance": round(mean[0], 4),
                    "for_90_percent": round(mean[1], 4),
                    "for_50_percent": round(mean[2], 4),
                }


def plan(options: argparse.Namespace) -> Iterable[dict[str, Any]]:
    """Yield rows asked for, and how often so many rows do."""
    for name, design in SHAPES.items():
        for method in METHODS:
            (first,) = seeds(options, f"pilot{name}", 1)
            pilot, _ = certified(design, 2000, first, method=method)
            for distance, most in WANTED[method]:
                n = pilot.samples_for(distance)
                assert n is not None
                few = options.rows is None or n <= options.rows
                count = min(most, options.repetitions) if few else 0
                found = reached(design, n, method, seeds(options, f"{name}{n}", count))
                yield {
                    "scores": name,
                    "method": method,
                    "wanted": distance,
                    "of_the_rows": 1.0 if method == "bins" else 0.9,
                    "pilot_rows": 2000,
                    "rows_asked_for": n,
                    "data_sets": count,
                    "reached": round(float((found <= distance).mean()), 3) if count else "",
                    "median_distance": round(float(np.median(found)), 4) if count else "",
                }


def reached(design: Design, n: int, method: str, chosen: list[np.random.SeedSequence]) -> Array:
    """Return the distances of samples of n rows, as a plan counts them."""
    made = (certified(design, n, s, method=method)[0] for s in chosen)
    return np.array([c.distance if method == "bins" else c.distance_for(0.9) for c in made])


def speed(options: argparse.Namespace) -> Iterable[dict[str, Any]]:
    """Yield seconds."""
    for n in sizes(options, SPEEDS):
        for name, design in SHAPES.items():
            for method in METHODS:
                (seed,) = seeds(options, f"speed{n}", 1)
                rng = np.random.default_rng(seed)
                c, _, q = design(n, rng)
                probs, labels = np.column_stack([1.0 - c, c]), rng.random(n) < q
                start = perf_counter()
                found = certify(probs, labels, method=method)
                certifying = perf_counter() - start
                start = perf_counter()
                found.samples_for(0.02)
                yield {
                    "n": n,
                    "distinct_scores": len(np.unique(c)),
                    "scores": name,
                    "method": method,
                    "parts": len(found.counts),
                    "seconds": round(certifying, 3),
                    "seconds_to_plan_2_points": round(perf_counter() - start, 3),
                }


def networks(options: argparse.Namespace) -> Iterable[dict[str, Any]]:
    """Print what is certified of the networks, yield the numbers, and draw."""
    made = {}
    for name in NETWORKS:
        with np.load(REFERENCE / f"cifar10_{name}.npz") as arrays:
            probs, labels = arrays["probs"][: options.rows], arrays["labels"][: options.rows]
        made[name] = caltest.certificate(probs, labels)
        for method in METHODS:
            found = certify(probs, labels, method=method)
            print(f"\n{name}\n{found}", flush=True)
            yield {
                "network": name,
                "method": method,
                "distance": round(found.distance, 4),
                "over": round(found.over, 4),
                "under": round(found.under, 4),
                "for_90_percent": round(found.distance_for(0.9), 4),
                "for_50_percent": round(found.distance_for(0.5), 4),
                "proved": round(found.proved, 4),
                "ranges_proved": found.ranges,
                "rows_for_2_points": found.samples_for(0.02),
            }


STUDIES = {
    "coverage": coverage,
    "widths": widths,
    "plan": plan,
    "speed": speed,
    "networks": networks,
}


def parsed(arguments: Sequence[str] | None = None) -> argparse.Namespace:
    """Return the options."""
    given = command_line(__doc__, seed=20_220_304)
    given.add_argument("study", choices=STUDIES)
    given.add_argument("--repetitions", type=int, default=1000, help="data sets of a cell, at most")
    given.add_argument("--rows", type=int, help="of a data set, at most")
    return given.parse_args(arguments)


def main(arguments: Sequence[str] | None = None) -> None:
    """Run one study, and write its table."""
    options = parsed(arguments)
    rows = list(STUDIES[options.study](options))
    print(markdown(rows))
    write_csv(rows, options.results / f"certificates_{options.study}.csv")


if __name__ == "__main__":
    main()
