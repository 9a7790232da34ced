"""Does `caltest.witness` keep its level, does it find errors, and in the right place and class?

``python -m validation.witness size --repetitions 1000 --jobs 2``: how often a calibrated model gets any
claim at level .05 (family-wise error).

``python -m validation.witness found --repetitions 100 --resamples 199``: models that err in one way.

* region: m = 3, g uniform on the simplex; where class 0 has more than 0.6, the truth lies half-way to
  the uniform distribution, and nowhere else;
* confidence: ten classes as published (M1); so where the largest probability is in (0.5, 0.9);
* class: m = 3, g uniform; the log-odds of class 1 are too high by 1 everywhere.
* pair: ten classes in pairs that are told apart badly, a few others mixed in; where the two of one pair
  have more than 0.7 together, 0.3 of what the first is said to be is the second's.

Counted are: ``found`` any claim; ``place`` the first place told is one around which more than half of
the weight is of wrong rows; ``class`` its main claim is of a class that is wrong there, the way round
it is told; ``false`` any claim, of all places, of a class that is right in every row within reach (at
most .05 is promised); ``skce_uq`` rejects, for comparison.

``python -m validation.witness networks``: what is said of ResNet-18 and GoogLeNet on the CIFAR-10 test
set.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Sequence
from functools import partial
from time import perf_counter
from typing import Any

import joblib
import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.stats import binomtest
from threadpoolctl import threadpool_limits

import caltest
from caltest.localisation import Places, kernels_of
from caltest.simulation import Simulated, classwise, local, m1
from validation._designs import Draw, of_one_probability, with_zeros_and_ones
from validation._study import CONFIDENCE, REFERENCE, command_line, markdown, write_csv

Array = NDArray[np.float64]

LEVEL = 0.05
TRADED = 0.3
CLASSES = ["airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck"]
NETWORKS = ("resnet18", "googlenet")


def traded(n: int, seed: np.random.SeedSequence) -> Simulated:
    """Draw ten classes in pairs that are told apart badly; of one pair a class is said too often."""
    rng = np.random.default_rng(seed)
    pair = rng.integers(5, size=n)
    g = rng.standard_gamma(np.where(np.arange(10) // 2 == pair[:, None], 1.0, 0.05))
    g /= g.sum(axis=1, keepdims=True)
    wrong = g[:, 2] + g[:, 3] > 0.7
    truth = g.copy()
    truth[wrong, 3] += TRADED * g[wrong, 2]
    truth[wrong, 2] *= 1.0 - TRADED
    labels = (rng.random((n, 1)) > truth.cumsum(axis=1)[:, :-1]).sum(axis=1)
    return Simulated(g, labels, truth)


CALIBRATED: dict[str, Draw] = {
    "M1, m=10, n=250": lambda seed: m1(250, 10, rng=seed),
    "M1, m=3, n=50": lambda seed: m1(50, 3, rng=seed),
    "zeros and ones, m=10, n=250": lambda seed: with_zeros_and_ones(250, 10, seed),
    "rare events Beta(1 99), n=500": of_one_probability(lambda rng: rng.beta(1, 99, 500)),
}


def region(n: int, seed: np.random.SeedSequence) -> Simulated:
    """Draw three classes, overconfident where class 0 has more than 0.6."""
    return local(n, np.ones(3), region=lambda g: g[:, 0] > 0.6, strength=0.5, rng=seed)


WRONG: dict[str, Draw] = {
    "region, n=500": lambda seed: region(500, seed),
    "region, n=2000": lambda seed: region(2000, seed),
    "confidence, n=500": lambda seed: local(500, region=(0.5, 0.9), strength=0.5, rng=seed),
    "class, n=500": lambda seed: classwise(500, np.ones(3), target=1, bias=1.0, rng=seed),
    "pair, n=1000": lambda seed: traded(1000, seed),
    "pair, n=3000": lambda seed: traded(3000, seed),
}


def claims(simulated: Simulated, resamples: int, seed: np.random.SeedSequence) -> dict[str, bool]:
    """Search one data set, and compare what is claimed with the truth."""
    with threadpool_limits(1):
        w = caltest.witness(simulated.probs, simulated.labels, n_resamples=resamples, rng=seed)
        found = {"found": w.pvalue <= LEVEL}
        if np.array_equal(simulated.truth, simulated.probs):
            return found
        test = caltest.test(simulated.probs, simulated.labels, null="moments", rng=seed)
    points = w.centres[: w.n_places // len(w.kernels)]
    near = Places.of(kernels_of(None, simulated.probs), points).weights(simulated.probs)
    errors = simulated.truth - simulated.probs
    errors[np.abs(errors) < 1e-12] = 0.0
    reached = near.T @ np.abs(errors) > 0.0
    found["false"] = bool((w.pvalues[~reached] <= LEVEL).any())
    found["skce_uq"] = test.pvalue <= LEVEL
    if w.identified:
        first = w.identified[0]
        wrong = (errors != 0.0).any(axis=1)
        main = w.claims(first)[0]
        found["place"] = near[wrong, first].sum() > 0.5 * near[:, first].sum()
        found["class"] = bool(near[:, first] @ errors[:, main] * w.standardised[first, main] > 0.0)
    return found


def rates(designs: dict[str, Draw], options: argparse.Namespace) -> Iterable[dict[str, Any]]:
    """Yield how often each thing happened, of the data sets in which it could."""
    for name, draw in designs.items():
        start = perf_counter()
        key = [ord(letter) for letter in name]
        seeds = np.random.SeedSequence([options.seed, *key]).spawn(options.repetitions)
        tasks = (joblib.delayed(_one)(draw, options.resamples, seed) for seed in seeds)
        outcomes = joblib.Parallel(n_jobs=options.jobs)(tasks)
        print(f"{name}: {perf_counter() - start:.0f} s", flush=True)
        for what in dict.fromkeys(key for outcome in outcomes for key in outcome):
            known = [bool(outcome[what]) for outcome in outcomes if what in outcome]
            interval = binomtest(sum(known), len(known)).proportion_ci(CONFIDENCE)
            yield {
                "design": name,
                "what": what,
                "count": sum(known),
                "of": len(known),
                "rate": round(sum(known) / len(known), 4),
                "low": round(interval.low, 4),
                "high": round(interval.high, 4),
            }


def _one(draw: Draw, resamples: int, seed: np.random.SeedSequence) -> dict[str, bool]:
    data, test = seed.spawn(2)
    return claims(draw(data), resamples, test)


def networks(options: argparse.Namespace) -> Iterable[dict[str, Any]]:
    """Print what is said of the networks, and yield the claims of the places told."""
    for network in NETWORKS:
        with np.load(REFERENCE / f"cifar10_{network}.npz") as arrays:
            probs = pd.DataFrame(arrays["probs"][: options.rows], columns=CLASSES)
            labels = arrays["labels"][: options.rows]
        start = perf_counter()
        w = caltest.witness(
            probs, labels, n_resamples=options.resamples, rng=options.seed, n_jobs=options.jobs
        )
        print(f"\n{network}, {perf_counter() - start:.1f} s\n{w}", flush=True)
        for place in w.identified:
            for c in w.claims(place):
                yield {
                    "network": network,
                    "row": int(w.rows[place]),
                    "weight": round(float(w.weights[place])),
                    "class": w.names[c],
                    "stated": round(float(w.predicted[place, c]), 5),
                    "share": round(float(w.observed[place, c]), 5),
                    "standardised": round(float(w.standardised[place, c]), 2),
                    "adjusted": round(float(w.pvalues[place, c]), 4),
                }


STUDIES = {
    "size": partial(rates, CALIBRATED),
    "found": partial(rates, WRONG),
    "networks": networks,
}


def parsed(arguments: Sequence[str] | None = None) -> argparse.Namespace:
    """Return the options."""
    given = command_line(__doc__, seed=20_120_313)
    given.add_argument("study", choices=STUDIES)
    given.add_argument("--repetitions", type=int, default=1000)
    given.add_argument("--resamples", type=int, default=999)
    given.add_argument("--rows", type=int, help="of networks: the first so many (all)")
    return given.parse_args(arguments)


def main(arguments: Sequence[str] | None = None) -> None:
    """Run one study, write its table."""
    options = parsed(arguments)
    rows = list(STUDIES[options.study](options))
    write_csv(rows, options.results / f"witness_{options.study}.csv")
    print(markdown(rows))


if __name__ == "__main__":
    main()
