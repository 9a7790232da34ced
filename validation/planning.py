"""Sample sizes: do their intervals hold the right answer, and how long does it take?

``python -m validation.planning coverage``: the design of ``caltest.sample_size`` with
its default numbers of data sets, on tests whose power is known: of a one- and a two-sided z-test, of a
χ² with 20 degrees of freedom, of a test with a power that is normal in n, and of one whose true level
is .0013 where .05 is claimed (a bound). Rows needed for a power of .8 or .9: 120, 700 and 4 000.
Columns: share of answers whose 95% interval holds the truth, mean and standard deviation of the
logarithm of answer over truth, median ratio of the interval's ends.

``python -m validation.planning speed``: seconds of ``caltest.sample_size`` with the defaults, ten
classes, predictions Dir(0.1), an error of temperature that takes about 600, 1 000 and 2 000 rows by the
default statistic on one core, and by "ecd" and "ks".
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from time import perf_counter, process_time
from types import SimpleNamespace
from typing import Any

import numpy as np
from scipy.optimize import brentq
from scipy.stats import chi2, ncx2, norm

import caltest
from caltest.planning.datasets import Counted
from caltest.planning.result import PowerPoint
from caltest.planning.search import _Search
from caltest.simulation import tempered
from validation._study import command_line, markdown, write_csv

LEVEL = 0.05
TEMPERATURES = {"omnibus": (0.82, 0.87, 0.91), "ecd": (0.87,), "ks": (0.87,)}

#: Power as a function of a strength d and the number of rows.
FAMILIES: dict[str, Callable[[float, float], float]] = {
    "z, one side": lambda d, n: norm.cdf(norm.ppf(LEVEL) + d * np.sqrt(n)),
    "z, two sides": lambda d, n: (
        norm.cdf(norm.ppf(LEVEL / 2) + d * np.sqrt(n)) + norm.cdf(norm.ppf(LEVEL / 2) - d * np.sqrt(n))
    ),
    "chi-square, 20": lambda d, n: ncx2.sf(chi2.isf(LEVEL, 20), 20, n * d * d),
    "normal in n": lambda d, n: norm.cdf(norm.ppf(LEVEL) + d * n),
    "bound": lambda d, n: norm.cdf(-3.0 + d * np.sqrt(n)),
}


class Known:
    """Counts rejections of a test whose power is known, instead of simulating data sets."""

    asked = SimpleNamespace(alpha=LEVEL)

    def __init__(self, power: Callable[[float], float], rng: np.random.Generator) -> None:
        self.power, self.rng = power, rng

    def count(self, n: int, start: int, stop: int) -> Counted:
        """Draw how many of the data sets are rejected."""
        hits = int(self.rng.binomial(stop - start, self.power(n)))
        return Counted(PowerPoint(n, stop - start, hits), None, None)  # type: ignore[arg-type]


def strength(family: str, rows: int, power: float) -> float:
    """Return d for which so many rows have the power."""
    return float(np.exp(brentq(lambda d: FAMILIES[family](np.exp(d), rows) - power, -16.0, 1.5)))


def coverage(options: argparse.Namespace) -> Iterable[dict[str, Any]]:
    """Search again and again where the answer is known."""
    for place, family in enumerate(FAMILIES):
        for rows, power in ((120, 0.8), (700, 0.8), (4000, 0.8), (700, 0.9)):
            of_rows = partial(FAMILIES[family], strength(family, rows, power))
            rng = np.random.default_rng([options.seed, place, rows, round(100 * power)])
            held, errors, widths = 0, [], []
            for _ in range(options.repetitions):
                search = _Search(Known(of_rows, rng), power, 50, 20_000)  # type: ignore[arg-type]
                search.double()
                if search.undecided:
                    search.refine(400)
                found = search.answer()
                low, high = found["interval"][0] or 1, found["interval"][1] or 10**9
                held += low <= rows <= high
                errors.append(np.log(found["n"] / rows))
                widths.append(high / low)
            yield {
                "test": family,
                "rows": rows,
                "power": power,
                "held": held,
                "of": options.repetitions,
                "mean_log_error": round(float(np.mean(errors)), 4),
                "sd_log_error": round(float(np.std(errors)), 4),
                "width": round(float(np.median(widths)), 3),
            }


def speed(options: argparse.Namespace) -> Iterable[dict[str, Any]]:
    """Time searches."""
    for statistic in options.statistics:
        for temperature in TEMPERATURES[statistic]:
            model = partial(tempered, temperature=temperature)
            start, used = perf_counter(), process_time()
            found = caltest.sample_size(
                model, statistic, n_datasets=options.datasets, rng=options.seed, n_jobs=1
            )
            yield {
                "statistic": statistic,
                "temperature": temperature,
                "n": found.n,
                "low": found.interval[0],
                "high": found.interval[1],
                "datasets": sum(point.n_datasets for point in found.points),
                "seconds": round(perf_counter() - start, 1),
                "cpu_seconds": round(process_time() - used, 1),
            }


STUDIES = {"coverage": coverage, "speed": speed}


def parsed(arguments: Sequence[str] | None = None) -> argparse.Namespace:
    """Return the options."""
    given = command_line(__doc__, seed=20_260_101)
    given.add_argument("study", choices=STUDIES)
    given.add_argument("--repetitions", type=int, default=300, help="of coverage")
    given.add_argument("--datasets", type=int, default=400, help="of speed")
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
