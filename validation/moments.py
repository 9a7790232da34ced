"""Accuracy of the null "moments": its p-values against the exact conditional distribution.

``python -m validation.moments --draws 100000 --jobs 2``

For fixed predictions, labels are drawn under H0 and the statistic is evaluated for all draws. The share
of draws whose ``moments`` p-value is at most .05, .01 and .001 is then the level that the analytic null
really has; its ratio to the nominal one should be 1. The moments are computed once, and the p-value
falls in the statistic, so each level is a critical value. Three sets of predictions each:

* M1, 250 rows, ten classes;
* rare events: 500 rows, P(event) ~ Beta(1, 99), where the exact pair term of the third cumulant matters
  (rows "without pair term" leave it out);
* 2000 rows of real networks (CIFAR-10), if ``CALTEST_REFERENCE_DATA`` names a folder that holds them.
"""

from __future__ import annotations

import argparse
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import product
from time import perf_counter
from typing import Any

import numpy as np

from caltest._parallel import ALONE, Workers
from caltest._sampling import DRAWS, LabelSampler
from caltest._tiles import blocks
from caltest.data import Predictions
from caltest.forms import Form, HasCumulantGenerator, HasMoments
from caltest.nulls import NULLS
from caltest.nulls.moments import pearson3_tail
from caltest.nulls.saddlepoint import tail
from caltest.simulation import Simulated, m1, mixture
from caltest.statistics import STATISTICS, UnbiasedSKCE
from validation._study import REFERENCE, command_line, fixed, markdown, write_csv

AIMS = {0.05: 0.1, 0.01: 0.1, 0.001: 0.25}  # largest relative error of a level
SETS = 3
SEED = 4
NETWORKS = ("densenet121", "resnet18", "vgg19_bn")

Tail = Callable[[float], float]


@dataclass(frozen=True)
class Case:
    """Predictions to hold fixed."""

    name: str
    number: int
    simulated: Simulated
    draws: int


@dataclass(frozen=True)
class Curve:
    """An analytic tail P(T ≥ x) with where it starts and how wide it is."""

    tail: Tail
    mean: float
    deviation: float
    skewness: float
    skewness_error: float = 0.0

    def critical(self, level: float) -> float:
        """Return the smallest x whose p-value is at most ``level``, by bisection."""
        low, high = self.mean, self.mean + 60.0 * self.deviation
        for _ in range(80):
            middle = 0.5 * (low + high)
            low, high = (low, middle) if self.tail(middle) <= level else (middle, high)
        return high


def cases(draws: int, network_draws: int) -> Iterator[Case]:
    """Yield the sets of predictions."""
    for number in range(SETS):
        yield Case("M1, n=250, m=10", number, m1(rng=100 + number), draws)
    for number in range(SETS):
        rare = mixture(500, [99.0, 1.0], pi=0.0, rng=200 + number)
        yield Case("Beta(1, 99), n=500, m=2", number, rare, draws)
    for number, network in enumerate(NETWORKS):
        path = REFERENCE / f"cifar10_{network}.npz"
        if not path.exists():
            print(f"left out, as it is not in CALTEST_REFERENCE_DATA: {path.name}")
            continue
        with np.load(path) as arrays:
            probs, labels = arrays["probs"][:2000], arrays["labels"][:2000]
        rows = Simulated(probs, labels, probs)  # as under H0
        yield Case("CIFAR-10 network, n=2000, m=10", number, rows, network_draws)


def curves(form: Form, statistic: str, predictions: Predictions) -> Iterator[tuple[str, Curve]]:
    """Yield the tails to compare, as the null "moments" takes them."""
    if isinstance(form, HasCumulantGenerator):
        generator = form.cumulant_generator
        _, mean, variance = generator(0.0)
        deviation = float(np.sqrt(variance))
        step = 1e-3 / deviation
        third = (generator(step)[2] - generator(-step)[2]) / (2.0 * step)
        yield "saddlepoint", Curve(lambda x: tail(generator, x), mean, deviation, third / variance**1.5)
        return
    assert isinstance(form, HasMoments)
    moments = form.moments(ALONE)
    names = {"Pearson III": moments}
    if statistic == UnbiasedSKCE.name and predictions.n_samples <= 500:
        share = 4.0 * pair_term(predictions) / moments.variance**1.5
        names["without pair term"] = replace(moments, skewness=moments.skewness - share)
    for name, known in names.items():
        yield (
            name,
            Curve(
                lambda x, known=known: pearson3_tail(known, x),
                known.mean,
                float(np.sqrt(known.variance)),
                known.skewness,
                known.skewness_error,
            ),
        )


def pair_term(predictions: Predictions) -> float:
    """Return Σ_{i≠j} E h_ij³ / (n(n − 1))³ for SKCE_uq, by enumerating the labels of every pair."""
    g, n = predictions.probs, predictions.n_samples
    kernel = UnbiasedSKCE().fitted(predictions).kernel
    weights = kernel(g, g)
    np.fill_diagonal(weights, 0.0)
    inner = g @ g.T
    total = np.zeros_like(weights)
    for a, b in product(range(g.shape[1]), repeat=2):
        h = inner + (a == b) - g[:, b, None] - g[None, :, a]
        total += g[:, a, None] * g[None, :, b] * h**3
    return float(np.vdot(weights**3, total)) / (n * (n - 1.0)) ** 3


def exact_values(form: Form, predictions: Predictions, draws: int, workers: Workers) -> np.ndarray:
    """Return the statistic of ``draws`` label vectors drawn under H0, sorted."""
    sampler = LabelSampler.of(predictions.probs, SEED)
    batches = blocks(draws, 50 * DRAWS)
    values = [form.evaluate(sampler.draw(batch.start, batch.stop), workers) for batch in batches]
    return np.sort(np.concatenate(values))


def study(case: Case, statistic: str, workers: Workers) -> Iterator[dict[str, Any]]:
    """Yield the level that each curve really has at each nominal one."""
    start = perf_counter()
    form, predictions = fixed(statistic, case.simulated)
    if not NULLS["moments"].fits(form):
        return
    values = exact_values(form, predictions, case.draws, workers)
    for name, curve in curves(form, statistic, predictions):
        for level, aim in AIMS.items():
            reached = len(values) - int(np.searchsorted(values, curve.critical(level), side="left"))
            ratio = reached / len(values) / level
            error = float(np.sqrt(max(reached, 1))) / len(values) / level
            yield {
                "predictions": case.name,
                "set": case.number + 1,
                "statistic": statistic,
                "curve": name,
                "skewness": round(curve.skewness, 4),
                "skewness_error": round(curve.skewness_error, 4),
                "draws": case.draws,
                "level": level,
                "rate": reached / len(values),
                "ratio": round(ratio, 4),
                "standard_error": round(error, 4),
                "aim": aim,
                "verdict": verdict(ratio, error, aim),
            }
    print(f"{case.name} {case.number + 1}, {statistic}: {perf_counter() - start:.0f} s", flush=True)


def verdict(ratio: float, error: float, aim: float) -> str:
    """Compare the error of a level with the aim, given its own standard error."""
    excess = abs(ratio - 1.0) - aim
    if excess <= 0.0:
        return "met"
    return "undecided" if excess <= 2.0 * error else "missed"


def parsed(arguments: Sequence[str] | None = None) -> argparse.Namespace:
    """Return the options."""
    given = command_line(__doc__)
    given.add_argument("--draws", type=int, default=100_000)
    given.add_argument("--network-draws", type=int, default=20_000)
    given.add_argument("--statistics", nargs="+", choices=list(STATISTICS), default=list(STATISTICS))
    return given.parse_args(arguments)


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the study, write the CSV and print the table."""
    options = parsed(arguments)
    workers = Workers(options.jobs)
    rows = [
        row
        for case in cases(options.draws, options.network_draws)
        for statistic in options.statistics
        for row in study(case, statistic, workers)
    ]
    write_csv(rows, options.results / "moments.csv")
    print(markdown(_pooled(rows)))


def _pooled(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return ratios by set, and their mean with its standard error, one line a curve and level."""
    groups: dict[tuple[Any, ...], list[dict[str, Any]]] = defaultdict(list)
    for row in rows:
        groups[row["predictions"], row["statistic"], row["curve"], row["level"]].append(row)
    lines = []
    for (predictions, statistic, curve, level), group in groups.items():
        ratio = float(np.mean([row["ratio"] for row in group]))
        error = float(np.sqrt(np.sum([row["standard_error"] ** 2 for row in group]))) / len(group)
        lines.append(
            {
                "predictions": predictions,
                "statistic": statistic,
                "curve": curve,
                "level": level,
                "real / nominal, by set": ", ".join(f"{row['ratio']:.3f}" for row in group),
                "mean ± standard error": f"{ratio:.3f} ± {error:.3f}",
                "aim": f"± {group[0]['aim']:g}",
                "verdict": verdict(ratio, error, group[0]["aim"]),
            }
        )
    return lines


if __name__ == "__main__":
    main()
