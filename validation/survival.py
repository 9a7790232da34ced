"""Times until an event, some censored: size, power, coverage of intervals, another package.

``python -m validation survival``; a part of it: ``--only survival_size``, ``--only survival_others``, …

*Size* (``survival_size.csv``): calibrated exponential times whose rates differ between rows; 20, 50 and
75% censored, by a known end of study, by random limits, or by limits that depend on the predictors; 50,
200 and 2 000 rows. In how many data sets the default, single statistics and the usual D-calibration,
which spreads a censored row over the cells that are left, reject at 5%.

*Power* (``survival_power.csv``): hazards a quarter larger, Weibull times of shape 1.3, hazards that
cross, and one group of a quarter of the rows whose hazard is twice as large.

*Coverage* (``survival_coverage.csv``): intervals of an audit at a horizon with 5, 20 and 100 expected
events, of models that are right or whose hazards are wrong by half: in how many data sets they hold the
true mean risk and ratio, and lie beyond a limit of 1 point.

*Others* (``survival_others.csv``, where it is installed): the tests of SurvivalEVAL and ours on
the same data sets, those of size and power.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import cache, partial
from importlib.util import find_spec
from itertools import product
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import brentq
from scipy.stats import chi2

import caltest
from caltest.auditing.plan import Look, Scope
from caltest.auditing.sizes import Family
from caltest.auditing.times import Risk
from caltest.data.sample import sample_of_law
from caltest.lenses import find_lens
from caltest.predictive import Survival
from caltest.statistics import GreenwoodNamDAgostino
from validation._cells import Options as Run
from validation._cells import Part, Row, counted

SEED = 20_261_125
ALPHA = 0.05
GRID = np.concatenate([np.linspace(0.05, 3.0, 60), np.linspace(3.25, 12.0, 36)])
Array = NDArray[np.float64]

SIZES = (50, 200, 2000)
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
        return Survival(np.exp(-np.outer(self.rate, GRID)), GRID, follow_up=limit)

    @property
    def outcomes(self) -> tuple[Array, NDArray[np.bool_]]:
        """Times and events, within the grid."""
        last = np.minimum(self.limit, GRID[-1])
        return np.minimum(self.time, last), self.event & (self.time <= last)


def _limits(rng: np.random.Generator, way: str, scale: float, x: Array) -> Array:
    if way == "end of study":  # rows enter evenly over two units of time
        return np.maximum(scale + 2.0 * rng.random(len(x)) - 1.0, 0.02)
    return rng.exponential(scale, len(x)) * (np.exp(-0.7 * x) if way == "by predictors" else 1.0)


@cache
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


STATISTICS = ("default", "pit_ad", "d_calibration", "events", "event_slope")


def pvalues(found: Cohort, seed: int) -> dict[str, float]:
    """Return the p-values of one data set, by what they are of."""
    options: dict[str, Any] = {"n_resamples": 199, "rng": seed}
    law, p = found.law(), dict[str, float]()
    for name in STATISTICS:
        measure = () if name == "default" else (name,)
        p[name] = caltest.test(law, found.outcomes, *measure, **options).pvalue
    try:
        gnd = GreenwoodNamDAgostino(horizon=0.5)
        p["gnd"] = caltest.test(law, found.outcomes, gnd, **options).pvalue
    except caltest.InputError:  # no row is seen for so long
        p["gnd"] = 1.0
    p["default, limits known"] = caltest.test(found.law(True), found.outcomes, **options).pvalue
    p["D-calibration, spread mass"] = spread_mass(found)
    return p


Tests = Callable[[Cohort, int], dict[str, float]]


def rejected(
    tests: Tests, n: int, way: str, share: float, error: str, seed: np.random.SeedSequence
) -> dict[str, bool]:
    """Say which tests reject a data set at 5%."""
    rng = np.random.default_rng(seed)
    found = tests(cohort(rng, n, way, scale_of(way, share), error), int(rng.integers(2**31)))
    return {name: p <= ALPHA for name, p in found.items()}


Design = tuple[int, Row]  # the number of a cell, and what it is


def sizes(*rows: int) -> Iterator[Design]:
    """Yield designs of calibrated models."""
    every = ((n, way, share) for n in SIZES for way in WAYS for share in SHARES)
    for number, (n, way, share) in enumerate(every):
        if n in rows:
            yield 1 + number, {"error": "", "rows": n, "limits": way, "censored": share}


def powers() -> Iterator[Design]:
    """Yield designs of models that are wrong."""
    for number, (error, share) in enumerate((error, share) for error in ERRORS for share in SHARES):
        yield 1001 + number, {"error": error, "rows": 200, "limits": "random", "censored": share}


def parts(designs: Iterable[Design], tests: Tests) -> Iterator[Part]:
    """Yield cells in which rejections are counted."""
    for cell, design in designs:
        given = design["rows"], design["limits"], design["censored"], design["error"]
        yield cell, design, partial(rejected, tests, *given)


# ------------------------------------------------------------------ another package


def theirs(found: Cohort, seed: int) -> dict[str, float]:
    """Return p-values of SurvivalEVAL 0.9, of the predictions that ours see, and of ours."""
    from SurvivalEVAL.evaluations.calibration.distributional import d_calibration, ksd_calibration
    from SurvivalEVAL.evaluations.calibration.single_time import one_calibration

    law, (time, event) = found.law(), found.outcomes
    left, came, many = 1.0 - law.cdf(time)[1], event.astype(int), {"n_resamples": 199}
    given: dict[str, Any] = {**many, "rng": seed}
    return {
        "d_calibration": d_calibration(left, came)[1],
        "one_calibration": one_calibration(law.risk(0.5), time, came, 0.5)[0],
        "ksd_calibration": ksd_calibration(left, came, **many, seed=seed)[0],
        "ours": caltest.test(law, (time, event), **given).pvalue,
        "ours, d_calibration": caltest.test(law, (time, event), "d_calibration", **given).pvalue,
    }


def have(*names: str) -> bool:
    """Whether packages are installed; else say that what needs them is left out."""
    missing = [name for name in names if find_spec(name) is None]
    if missing:
        print(f"{' and '.join(missing)} not installed: what needs it is left out", flush=True)
    return not missing


# ------------------------------------------------------------------ intervals at a horizon


def _sized(n: int, way: str, factor: float, seed: np.random.SeedSequence) -> dict[str, bool]:
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
    scope = Scope(whole.rows, "until:1", "until:1", find_lens("until:1"))
    seen, level = (
        Risk.of(Look(scope, None, None, n, np.inf), alone=False),
        Family.of(ALPHA, 1, 0).of_view,
    )
    observed, (low, high) = seen.bounds(level), seen.ratio(level)[1:]
    error = {"low": seen.predicted - observed.high, "high": seen.predicted - observed.low}
    truth = seen.predicted - float(np.mean(-np.expm1(-rate * factor)))
    return {
        "risk": error["low"] <= truth <= error["high"],
        "ratio": low <= factor <= high,
        "beyond 1 point": error["low"] > 0.01 or error["high"] < -0.01,
    }


def coverages() -> Iterator[Part]:
    """Yield designs of intervals: of a single view, 96% (four fifths of 5% are missed)."""
    every = product((5, 20, 100), ("random", "by predictors"), (1.0, 1.5))
    for number, (events, way, factor) in enumerate(every):
        n = round(events / 0.095)
        design = {"events": events, "rows": n, "limits": way, "hazards": factor}
        yield 2001 + number, design, partial(_sized, n, way, factor)


# ------------------------------------------------------------------ run


def run(options: Run) -> None:
    """Count rejections and intervals; another package's where it is installed."""
    rows = (50,) if options.quick else (50, 200, 2000)
    counted("survival_size", parts(sizes(*rows), pvalues), options, SEED, 400)
    counted("survival_power", parts(powers(), pvalues), options, SEED, 400)
    counted("survival_coverage", coverages(), options, SEED, 2000, 500)
    if have("SurvivalEVAL"):
        counted("survival_others", parts([*sizes(200), *powers()], theirs), options, SEED, 500, 100)
        if not options.quick:
            random = (each for each in sizes(2000) if each[1]["limits"] == "random")
            counted("survival_others", parts(random, theirs), options, SEED, 500)
