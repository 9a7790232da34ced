"""Accuracy of the null "moments": its p-values against the exact conditional distribution.

``python -m validation.moments --jobs 2``

For fixed predictions, labels are drawn under H0 (50 000 times, 10 000 for networks) and the statistic
is evaluated for all draws. The share of draws whose ``moments`` p-value is at most .05, .01 and .001 is
then the level that the analytic null really has; its ratio to the nominal one should be 1. P-values are
those of ``caltest.test``, with the statistic's own alternative: they fall from the median of the draws
outwards, so that a few of them, by bisection, say how many draws are rejected. Where the package finds
that no curve fits, it draws labels itself; that is exact, and the rows say so in place of a level.
Where values tie, as those of ``citl`` and ``esce`` do, the exact p-value itself has a level below the
nominal one: ``exact_ratio`` says by how much, and the aim is around all between that and 1. Three sets
of predictions each:

* M1, 250 rows, ten classes;
* rare events: 500 rows, P(event) ~ Beta(1, 19), and Beta(1, 99), where few events decide;
* 2000 rows of real networks (CIFAR-10), if ``CALTEST_REFERENCE_DATA`` names a folder that holds them.
"""

from __future__ import annotations

import argparse
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from time import perf_counter
from typing import Any

import numpy as np

from caltest._parallel import ALONE, Workers
from caltest._sums import blocks
from caltest.data import Rows
from caltest.forms import Form, HasMoments, Moments
from caltest.forms.base import HasCumulantGenerator, HasLeadingSum
from caltest.laws.classes import LabelSampler
from caltest.nulls import NULLS
from caltest.nulls.base import Trial
from caltest.pvalues import Alternative
from caltest.sampling import DRAWS
from caltest.simulation import Simulated
from caltest.statistics import STATISTICS
from validation._study import REFERENCE, command_line, fixed, markdown, write_csv
from validation.generative import m1, mixture

AIMS = {0.05: 0.1, 0.01: 0.1, 0.001: 0.25}  # largest relative error of a level
SETS = 3
SEED = 4
RESAMPLES = 999  # where the package draws labels: its default
NO_CURVE = {
    "rate": "",
    "ratio": "",
    "exact_ratio": "",
    "standard_error": "",
    "aim": "",
    "verdict": "exact",
}
NETWORKS = ("densenet121", "resnet18", "vgg19_bn")

PValue = Callable[[float], float]


@dataclass(frozen=True)
class Case:
    """Predictions to hold fixed."""

    name: str
    number: int
    simulated: Simulated
    draws: int


@dataclass(frozen=True)
class Remembered(HasMoments, HasLeadingSum):
    """The moments of a form, found once for many observed values."""

    form: Any
    known: Moments
    direction: Any

    @classmethod
    def of(cls, form: Any) -> Remembered:
        """Find them."""
        return cls(form, form.moments(ALONE), form.leading(ALONE))

    @property
    def resolution(self) -> float:
        """How far two evaluations may differ."""
        return float(self.form.resolution)

    @property
    def repeats(self) -> float:
        """How many rows share what they add."""
        return float(self.form.repeats)

    def of_labels(self, labels: Any, workers: Workers = ALONE) -> Any:
        """Return the form's values."""
        return self.form.of_labels(labels, workers)

    def moments(self, workers: Workers = ALONE) -> Moments:
        """Return them."""
        return self.known

    def leading(self, workers: Workers = ALONE) -> Any:
        """Return the sum whose square carries most of the variance."""
        return self.direction


def cases(draws: int, network_draws: int) -> Iterator[Case]:
    """Yield the sets of predictions."""
    for number in range(SETS):
        yield Case("M1, n=250, m=10", number, m1(rng=100 + number), draws)
    for number in range(SETS):
        for b in (19, 99):
            rare = mixture(500, [float(b), 1.0], pi=0.0, rng=200 + number)
            yield Case(f"Beta(1, {b}), n=500, m=2", number, rare, draws)
    for number, network in enumerate(NETWORKS):
        path = REFERENCE / f"cifar10_{network}.npz"
        if not path.exists():
            print(f"left out, as it is not in CALTEST_REFERENCE_DATA: {path.name}")
            continue
        with np.load(path) as arrays:
            probs, labels = arrays["probs"][:2000], arrays["labels"][:2000]
        rows = Simulated(probs, labels, probs)  # as under H0
        yield Case("CIFAR-10 network, n=2000, m=10", number, rows, network_draws)


def alternative(statistic: str) -> Alternative:
    """Return the statistic's own alternative."""
    return STATISTICS[statistic]().alternatives[0]


def answers(statistic: str, form: Form, predictions: Rows, labels: np.ndarray) -> tuple[str, PValue]:
    """Return by which means the package answers here, and its p-value of any observed value."""
    null, measure, side = NULLS["moments"](), STATISTICS[statistic](), alternative(statistic)

    trial = Trial(predictions, labels, RESAMPLES, SEED, ALONE)

    def ask(known: Any, observed: float) -> Any:
        question = trial.question(measure, known, side)
        vars(question)["observed"] = observed  # in place of that of the labels
        return null.answer(question)

    first = ask(form, form.value(labels))
    if first.n_resamples is not None:
        return f"{first.n_resamples} draws", lambda observed: ask(form, observed).pvalue
    if isinstance(form, HasCumulantGenerator):
        means = "exact law" if null.guarantee_for(form) == "exact" else "saddlepoint"
        return means, lambda observed: ask(form, observed).pvalue
    assert isinstance(form, HasMoments)
    remembered = Remembered.of(form)
    return "Pearson III", lambda observed: ask(remembered, observed).pvalue


def rejected(
    values: np.ndarray, pvalue: PValue, level: float, median: int | None = None
) -> tuple[int, int]:
    """Return from where on, and up to where, the p-values of sorted values are at most ``level``.

    They fall from the median outwards, which has this place among them, or stands in the middle.
    """
    middle = len(values) // 2 if median is None else median
    above = _first(len(values) - middle, lambda k: pvalue(values[middle + k]) <= level)
    below = _first(middle, lambda k: pvalue(values[middle - 1 - k]) <= level)
    return middle + above, middle - below


def exact_pvalues(values: np.ndarray, resolution: float, side: Alternative) -> np.ndarray:
    """Return the share of the sorted values that are as extreme as each; ties count."""
    above = len(values) - np.searchsorted(values, values - resolution, side="left")
    below = np.searchsorted(values, values + resolution, side="right")
    counts = {"greater": above, "less": below, "two-sided": 2 * np.minimum(above, below)}[side]
    return np.minimum(counts / len(values), 1.0)


def _first(count: int, holds: Callable[[int], bool]) -> int:
    """Return the first of 0 to count − 1 from which on it holds; count if it never does."""
    low, high = 0, count
    while low < high:
        half = (low + high) // 2
        low, high = (low, half) if holds(half) else (half + 1, high)
    return low


def exact_values(form: Form, predictions: Rows, draws: int, workers: Workers) -> np.ndarray:
    """Return the statistic of ``draws`` label vectors drawn under H0, sorted."""
    sampler = LabelSampler.of(predictions.probs, SEED)
    batches = blocks(draws, 50 * DRAWS)
    values = [form.of_labels(sampler.draw(batch.start, batch.stop), workers) for batch in batches]
    return np.sort(np.concatenate(values))


def study(case: Case, statistic: str, workers: Workers) -> Iterator[dict[str, Any]]:
    """Yield the level that the package's p-value really has at each nominal one."""
    start = perf_counter()
    form, predictions = fixed(statistic, case.simulated)
    if not NULLS["moments"].fits(form):
        return
    labels = LabelSampler.of(predictions.probs, SEED).draw(0, 1)[0]
    answered, pvalue = answers(statistic, form, predictions, labels)
    drawn = answered.endswith("draws")
    values = np.empty(0) if drawn else exact_values(form, predictions, case.draws, workers)
    exact = exact_pvalues(values, form.resolution, alternative(statistic))
    for level in AIMS:
        yield {
            "predictions": case.name,
            "set": case.number + 1,
            "statistic": statistic,
            "answered_by": answered,
            "draws": len(values),
            "level": level,
            **(NO_CURVE if drawn else _level(values, pvalue, exact, level)),
        }
    print(f"{case.name} {case.number + 1}, {statistic}: {perf_counter() - start:.0f} s", flush=True)


def _level(values: np.ndarray, pvalue: PValue, exact: np.ndarray, level: float) -> dict[str, Any]:
    above, below = rejected(values, pvalue, level)
    count, aim = len(values) - above + below, AIMS[level]
    ratio = count / len(values) / level
    reached = float(np.mean(exact <= level)) / level
    error = float(np.sqrt(max(count, 1))) / len(values) / level
    return {
        "rate": count / len(values),
        "ratio": round(ratio, 4),
        "exact_ratio": round(reached, 4),
        "standard_error": round(error, 4),
        "aim": aim,
        "verdict": verdict(ratio, reached, error, aim),
    }


def verdict(ratio: float, exact: float, error: float, aim: float) -> str:
    """Compare a level with the aim: above the nominal one, or below what the exact p-value reaches."""
    excess = max(ratio - 1.0, exact - ratio) - aim
    if excess <= 0.0:
        return "met"
    return "undecided" if excess <= 2.0 * error else "missed"


def parsed(arguments: Sequence[str] | None = None) -> argparse.Namespace:
    """Return the options."""
    given = command_line(__doc__)
    given.add_argument("--draws", type=int, default=50_000)
    given.add_argument("--network-draws", type=int, default=10_000)
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
    pooled = _pooled(rows)
    print(markdown(pooled) if pooled else "no curve is used")


def _pooled(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return ratios by set, and their mean with its standard error, one line a statistic and level."""
    groups: dict[tuple[Any, ...], list[dict[str, Any]]] = defaultdict(list)
    for row in rows:
        if row["verdict"] != "exact":
            groups[row["predictions"], row["statistic"], row["answered_by"], row["level"]].append(row)
    lines = []
    for (predictions, statistic, answered, level), group in groups.items():
        ratio, exact = (float(np.mean([row[k] for row in group])) for k in ("ratio", "exact_ratio"))
        error = float(np.sqrt(np.sum([row["standard_error"] ** 2 for row in group]))) / len(group)
        lines.append(
            {
                "predictions": predictions,
                "statistic": statistic,
                "answered_by": answered,
                "level": level,
                "real / nominal, by set": ", ".join(f"{row['ratio']:.3f}" for row in group),
                "mean ± standard error": f"{ratio:.3f} ± {error:.3f}",
                "exact": f"{exact:.3f}",
                "aim": f"± {group[0]['aim']:g}",
                "verdict": verdict(ratio, exact, error, group[0]["aim"]),
            }
        )
    return lines


if __name__ == "__main__":
    main()
