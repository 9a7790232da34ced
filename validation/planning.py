"""Sample sizes: do their intervals hold the right answer, how long does it take, what are pilots worth?

``python -m validation.planning coverage``: the design of ``caltest.sample_size`` with
its default number of data sets, on tests whose power is known: of a one- and a two-sided z-test, of a
χ² with 20 degrees of freedom, of a test with a power that is normal in n, and of one whose true level
is .0013 where .05 is claimed (a bound). Rows needed for a power of .8 or .9: 120, 700 and 4 000. And
where the power does not go on as it began: it levels off at .85, at .81, or at .78, below the .8 that
is wanted, or grows with the logarithm of n.
Columns: answers whose 95% interval holds the power with so many rows, answers "not reached", mean and
standard deviation of the logarithm of answer over truth, the mean power of the answers, and the mean
number of data sets.

``python -m validation.planning speed``: seconds of ``caltest.sample_size`` with the defaults, ten
classes, predictions Dir(0.1), an error of temperature that takes about 600, 1 000 and 2 000 rows by the
default statistic on one core, and by "ecd" and "ks"; and of a model that is calibrated, temperature 1,
so that no number of rows is found, by the default statistic and by one whose time grows with n².

``python -m validation.planning pilots``: binary models that state p of Beta(2, 2), where the truth is
logit P = slope · logit p: calibrated (slope 1), or a little overconfident (.85). Of each, pilots with
labels, whose own error is estimated, and power planned with it for "ecd". Columns: the error and the
power that are true; the mean error that pilots show, the mean and the 10% and 90% quantiles of the
power planned, pilots that do not show that their model is miscalibrated; and of the end of the
estimate's 95% interval that is nearest to calibrated, how many pilots have such an end, the mean power
planned at it, and how many promise more than is true by more than two standard errors.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from time import perf_counter, process_time
from typing import Any, NamedTuple

import numpy as np
from scipy.optimize import brentq
from scipy.special import expit, logit
from scipy.stats import chi2, ncx2, norm

import caltest
from caltest.planning import PowerResult, pilot
from caltest.planning.simulate import PowerPoint, search
from caltest.simulation import tempered
from validation._pilots import Kind, estimated
from validation._study import command_line, markdown, write_csv

LEVEL = 0.05
TEMPERATURES = {
    "omnibus": (0.82, 0.87, 0.91, 1.0),
    "ecd": (0.87,),
    "ks": (0.87,),
    "skce_uq": (1.0,),
}

#: How an error is estimated, the slope that is true, rows of a pilot, and rows that are planned.
PILOTS: tuple[tuple[Kind, float, int, int], ...] = (
    ("logistic", 1.0, 50, 200),
    ("logistic", 1.0, 200, 1000),
    ("logistic", 1.0, 1000, 4000),
    ("isotonic", 1.0, 200, 1000),
    ("logistic", 0.85, 200, 1000),
    ("logistic", 0.85, 1000, 2000),
)
DATASETS = 100  # of a power that is planned

#: Power as a function of a strength d and the number of rows.
FAMILIES: dict[str, Callable[[float, float], float]] = {
    "z, one side": lambda d, n: norm.cdf(norm.ppf(LEVEL) + d * np.sqrt(n)),
    "z, two sides": lambda d, n: (
        norm.cdf(norm.ppf(LEVEL / 2) + d * np.sqrt(n)) + norm.cdf(norm.ppf(LEVEL / 2) - d * np.sqrt(n))
    ),
    "chi-square, 20": lambda d, n: ncx2.sf(chi2.isf(LEVEL, 20), 20, n * d * d),
    "normal in n": lambda d, n: norm.cdf(norm.ppf(LEVEL) + d * n),
    "bound": lambda d, n: norm.cdf(-3.0 + d * np.sqrt(n)),
    "levels off at .85": lambda d, n: LEVEL + 0.80 * -np.expm1(-d * n),
    "levels off at .81": lambda d, n: LEVEL + 0.76 * -np.expm1(-d * n),
    "levels off at .78": lambda d, n: LEVEL + 0.73 * -np.expm1(-d * n),
    "logarithm": lambda d, n: np.minimum(LEVEL + d * np.log(n), 1.0),
}
#: Those that are such as the fitted curve takes for granted, and one that never has a power of .8.
USUAL = ("z, one side", "z, two sides", "chi-square, 20", "normal in n", "bound")
NEVER = "levels off at .78"


def strength(family: str, rows: int, power: float) -> float:
    """Return d for which so many rows have the power."""
    return float(np.exp(brentq(lambda d: FAMILIES[family](np.exp(d), rows) - power, -16.0, 1.5)))


def coverage(options: argparse.Namespace) -> Iterable[dict[str, Any]]:
    """Search again and again where the answer is known."""
    for place, family in enumerate(FAMILIES):
        for rows, power in ((120, 0.8), (700, 0.8), (4000, 0.8), (700, 0.9)):
            if family not in USUAL and power > 0.8:
                continue
            seen = 0.7 if family == NEVER else power
            of_rows = partial(FAMILIES[family], strength(family, rows, seen))
            rng = np.random.default_rng([options.seed, place, rows, round(100 * power)])
            truth = np.inf if family == NEVER else rows
            found = [searched(of_rows, power, rng) for _ in range(options.repetitions)]
            yield {"test": family, "rows": truth, "power": power} | held(found, truth, of_rows)


class Answer(NamedTuple):
    """A number of rows, None if the power is not reached; the interval of its power, and the work."""

    rows: int | None
    low: float
    high: float
    datasets: int


def searched(power: Callable[[float], float], wanted: float, rng: np.random.Generator) -> Answer:
    """Search once, with the defaults."""
    points: dict[int, PowerPoint] = {}

    def count(n: int, start: int, stop: int) -> PowerPoint:
        """Draw how many of the data sets are rejected."""
        point = PowerPoint(n, stop - start, int(rng.binomial(stop - start, power(n))))
        points[n] = points[n] + point if n in points else point
        return point

    n = search(count, wanted, 50, 20_000, 200)
    interval = points[20_000 if n is None else n].interval
    return Answer(n, *interval, sum(point.n_datasets for point in points.values()))


def held(found: Sequence[Answer], truth: float, power: Callable[[float], float]) -> dict[str, Any]:
    """Summarise answers whose truth is known."""
    answers = np.array([each.rows for each in found if each.rows is not None], dtype=float)
    errors = np.log(answers / truth) if np.isfinite(truth) and len(answers) else np.array([np.nan])
    powers = [power(20_000 if each.rows is None else each.rows) for each in found]
    return {
        "held": sum(each.low <= p <= each.high for each, p in zip(found, powers, strict=True)),
        "of": len(found),
        "not_reached": len(found) - len(answers),
        "mean_log_error": round(float(errors.mean()), 4),
        "sd_log_error": round(float(errors.std()), 4),
        "mean_power": round(float(np.mean(powers)), 4),
        "datasets": round(float(np.mean([each.datasets for each in found]))),
    }


def speed(options: argparse.Namespace) -> Iterable[dict[str, Any]]:
    """Time searches."""
    for statistic in options.statistics:
        for temperature in TEMPERATURES[statistic]:
            model = partial(tempered, temperature=temperature)
            start, used = perf_counter(), process_time()
            found = caltest.sample_size(
                model, statistic, n_datasets=options.datasets // 2, rng=options.seed, n_jobs=1
            )
            yield {
                "statistic": statistic,
                "temperature": temperature,
                "n": found.n,
                "low": round(found.interval[0], 3),
                "high": round(found.interval[1], 3),
                "datasets": sum(point.n_datasets for point in found.points),
                "seconds": round(perf_counter() - start, 1),
                "cpu_seconds": round(process_time() - used, 1),
            }


def pilots(options: argparse.Namespace) -> Iterable[dict[str, Any]]:
    """Plan with the error that a pilot shows, again and again."""
    for kind, slope, size, rows in PILOTS:
        if size > options.largest:
            continue
        rng = np.random.default_rng([options.seed, size, rows, round(100 * slope), len(kind)])
        whole = rng.beta(2.0, 2.0, 20_000)
        true = pilot(whole, truth=expit(slope * logit(whole)))
        ask = partial(caltest.power, n=rows, statistic="ecd", n_jobs=options.jobs)
        power = ask(true, n_datasets=options.datasets, rng=options.seed).power
        made = [planned(kind, slope, size, rng, ask) for _ in range(2 * options.repetitions // 5)]
        best = np.array([each[0] for each in made])
        careful = np.array([each[1] for each in made if each[1] is not None])
        limit = power + 2.0 * np.sqrt(0.25 / DATASETS)
        yield {
            "recalibration": kind,
            "slope": slope,
            "pilot_rows": size,
            "rows": rows,
            "pilots": len(made),
            "true_error": round(true.error, 4),
            "true_power": power,
            "mean_error": round(float(np.mean([each[2] for each in made])), 4),
            "mean_power": round(float(best.mean()), 3),
            "power_10": round(float(np.quantile(best, 0.1)), 3),
            "power_90": round(float(np.quantile(best, 0.9)), 3),
            "not_shown": sum(each[3] for each in made),
            "careful": len(careful),
            "mean_careful": round(float(careful.mean()), 3) if len(careful) else "",
            "too_much": int((careful > limit).sum()),
        }


def planned(
    kind: Kind, slope: float, size: int, rng: np.random.Generator, ask: Callable[..., PowerResult]
) -> tuple[float, float | None, float, bool]:
    """Plan with a new pilot: the power, that at its careful end, the error, and whether it is noted."""
    while True:
        p = rng.beta(2.0, 2.0, size)
        labels = (rng.random(size) < expit(slope * logit(p))).astype(int)
        seed = int(rng.integers(2**32))
        if (found := estimated(p, labels, kind)) is None:  # separated
            continue
        whole = pilot(p, truth=found.truth)
        best = ask(whole, n_datasets=DATASETS, rng=seed).power
        if found.careful is None:
            return best, None, whole.error, not found.shown
        end = ask(pilot(p, truth=found.careful), n_datasets=DATASETS, rng=seed).power
        return best, end, whole.error, not found.shown


STUDIES = {"coverage": coverage, "speed": speed, "pilots": pilots}


def parsed(arguments: Sequence[str] | None = None) -> argparse.Namespace:
    """Return the options."""
    given = command_line(__doc__, seed=20_260_101)
    given.add_argument("study", choices=STUDIES)
    given.add_argument(
        "--repetitions", type=int, default=100, help="of coverage; two fifths are pilots"
    )
    given.add_argument("--datasets", type=int, default=400, help="of pilots")
    given.add_argument("--largest", type=int, default=1000, help="rows of pilots")
    given.add_argument(
        "--statistics", nargs="+", choices=TEMPERATURES, default=list(TEMPERATURES), help="of speed"
    )
    return given.parse_args(arguments)


def main(arguments: Sequence[str] | None = None) -> None:
    """Run one study."""
    options = parsed(arguments)
    rows = []
    for row in STUDIES[options.study](options):
        rows.append(row)
        print(row, flush=True)
        write_csv(rows, options.results / f"planning_{options.study}.csv")
    print(markdown(rows))


if __name__ == "__main__":
    main()
