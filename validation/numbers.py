"""Predicted distributions of numbers: size of every statistic, power, and published rates.

``python -m validation numbers --jobs 2``.

*Sizes* (``numbers.csv``; designs added up, ``numbers_summary.csv``): calibrated normal, heavy-tailed
(t₃), Poisson, zero-inflated (0 with probability .3, else gamma) and mixed normal predictions, and
forecasts of 23 quantiles of a normal and of a Poisson variable, 100 rows each; all statistics that a
law can answer, on shared data sets and draws; events through lenses; clusters of four rows that share
their uniform number.

*Power* (``numbers_power.csv``): 500 normal predictions, and outcomes that are a quarter of a standard
deviation higher, spread 1.3 times as wide, as skewed as a gamma variable of shape 2, with the tails of
t₃, or spread by level; shares of data sets in which each statistic rejects at 5%.

*Published rates* (``numbers_published.csv``): Arnold, Henzi and Ziegel, a Kolmogorov–Smirnov test of
PIT values of 360 rows; Widmann, Lindsten and Zachariah 2021, kernel tests of few rows, of a calibrated
model and of one that is not.
"""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import joblib
import numpy as np
import scipy.stats

import caltest
from caltest.data.sample import whole_sample
from caltest.predictive import Distribution, Normal, Quantiles
from validation import _sizes
from validation._cells import Options, Row, Table, batches, spread
from validation._mixtures import NormalMixture
from validation._sizes import BLOCK, LABELS, SIGNS, Cell, Data
from validation._study import REFERENCE, write_csv

SEED = 20_261_124
N = 100
LEVELS = [0.01, 0.025, *(np.arange(1, 20) / 20).round(2), 0.975, 0.99]

PIT = ("pit_ks", "pit_kuiper", "pit_cvm", "pit_ad", "bias", "spread", "coverage")
SCORES = ("crps", "ecd", "dawid_sebastiani")
EVENTS = ("citl", "brier", "ks", "skce_uq")

Array = np.ndarray


class ZeroInflated:
    """0 with probability .3, else gamma; no density, as it has an atom."""

    def __init__(self, shape: Array) -> None:
        self._gamma = scipy.stats.gamma(shape)

    def cdf(self, x: Array) -> Array:
        """Return P(Y ≤ x)."""
        return np.asarray(np.where(np.asarray(x) < 0.0, 0.0, 0.3 + 0.7 * self._gamma.cdf(x)))

    def ppf(self, levels: Array) -> Array:
        """Return quantiles."""
        return np.asarray(self._gamma.ppf(np.clip((levels - 0.3) / 0.7, 0.0, 1.0)))


def law_of(name: str, rng: np.random.Generator, n: int = N) -> Any:
    """Return predictions."""
    place, scale, rate = rng.normal(size=n), rng.uniform(0.5, 2.0, n), rng.uniform(0.2, 15.0, n)
    means, parts = place[:, None] + np.array([0.0, 3.0, 6.0]), rng.dirichlet(np.ones(3), n)
    made: dict[str, Callable[[], Any]] = {
        "normal": lambda: Normal(place, sd=scale),
        "t, 3 degrees of freedom": lambda: Distribution(scipy.stats.t(3.0, place, scale)),
        "Poisson": lambda: Distribution(scipy.stats.poisson(rate)),
        "zero-inflated": lambda: Distribution(ZeroInflated(rate)),
        "mixture of normals": lambda: NormalMixture(means, rng.uniform(0.2, 2.0, (n, 3)), parts),
    }
    return made[name]()


def calibrated(name: str, seed: np.random.SeedSequence, share: int = 1) -> Data:
    """Draw predictions and outcomes; so many rows share one uniform number."""
    rng = np.random.default_rng(seed)
    law, codes = law_of(name, rng), np.arange(N) // share
    outcomes = law.quantile(rng.random(codes[-1] + 1)[codes])
    return Data(law, outcomes, {} if share == 1 else {"clusters": codes})


def quantiles(name: str, seed: np.random.SeedSequence) -> Data:
    """Draw 23 quantiles a row, and outcomes."""
    rng = np.random.default_rng(seed)
    law = law_of(name, rng)
    values = np.stack([law.quantile(np.full(N, level)) for level in LEVELS], axis=1)
    return Data(Quantiles(LEVELS, values), law.quantile(rng.random(N)))


def event(name: str, lens: str, seed: np.random.SeedSequence) -> Data:
    """Draw predictions and outcomes, seen through a lens."""
    whole = calibrated(name, seed)
    view = caltest.lenses.through(whole_sample(whole.probs, whole.labels), lens)[0]
    return Data(view.rows.probs, view.labels)


def cells() -> Iterator[Cell]:
    """Yield the cells; new ones go to the end."""
    laws = {
        "normal": (*PIT, *SCORES, "nees", "skce_uq", "omnibus"),
        "t, 3 degrees of freedom": (*PIT, *SCORES, "omnibus"),
        "Poisson": (*PIT, *SCORES, "omnibus"),
        "zero-inflated": (*PIT, "crps", "omnibus"),
        "mixture of normals": (*PIT, *SCORES, "omnibus"),
    }
    number = 0
    for name, statistics in laws.items():
        yield Cell(number, name, partial(calibrated, name), LABELS, statistics, 600)
        number += 1
    for name in ("normal", "Poisson"):
        design = f"quantiles, {name}"
        yield Cell(number, design, partial(quantiles, name), LABELS, (*PIT, "omnibus"), 600)
        number += 1
    for name in ("normal", "Poisson"):
        for lens in ("interval:0.8", "quantile:0.9", "below:1"):
            design = f"{lens} of {name}"
            yield Cell(number, design, partial(event, name, lens), LABELS, EVENTS, 600)
            number += 1
    for name in ("normal", "Poisson"):
        design = f"clusters of four, {name}"
        draw = partial(calibrated, name, share=4)
        yield Cell(number, design, draw, SIGNS, ("bias", "spread", "pit_ad", "crps", "omnibus"), 300)
        number += 1


# ------------------------------------------------------------------ power

ERRORS: dict[str, Callable[[np.random.Generator, Array], Array]] = {
    "none": lambda rng, level: rng.normal(size=len(level)),
    "a quarter of a standard deviation higher": lambda rng, level: rng.normal(0.25, 1.0, len(level)),
    "spread 1.3 times as wide": lambda rng, level: rng.normal(0.0, 1.3, len(level)),
    "skewed": lambda rng, level: (rng.gamma(2.0, size=len(level)) - 2.0) / np.sqrt(2.0),
    "tails of t₃": lambda rng, level: rng.standard_t(3.0, len(level)) / np.sqrt(3.0),
    "spread by level": lambda rng, level: rng.normal(size=len(level)) * np.where(level > 0, 1.3, 0.77),
}
AUDIT = "audit"
POWERED = ("omnibus", "pit_ks", "pit_cvm", "pit_ad", "bias", "spread", "coverage", *SCORES)


def rejected(error: str, seed: np.random.SeedSequence) -> list[bool]:
    """Say which statistics, and whether the default audit, reject at 5%."""
    rng = np.random.default_rng(seed)
    level = rng.normal(size=500)
    law, outcomes = Normal(level, sd=1.0), level + ERRORS[error](rng, level)
    options: dict[str, Any] = {"n_resamples": 199, "rng": int(rng.integers(2**31))}
    found = [caltest.test(law, outcomes, name, **options).pvalue <= 0.05 for name in POWERED]
    options["n_resamples"] = 499
    return [*found, caltest.audit(law, outcomes, n_jobs=1, **options).rejected]


def power(options: Options) -> None:
    """Run errors that are known."""
    table = Table(options.results / "numbers_power.csv", ("error", "seed"))
    wanted = options.datasets or (1 if options.quick else 400)
    with joblib.Parallel(n_jobs=options.jobs) as parallel:
        for number, error in enumerate(ERRORS):
            if not options.wants(f"power: {error}"):
                continue
            key = {"error": error, "seed": SEED}
            for row, last, drawn in batches(table, key, (100 + number,), options, wanted, BLOCK):
                found = np.array(spread(partial(rejected, error), drawn, parallel)).sum(axis=0)
                counts = dict(zip((*POWERED, AUDIT), found.tolist(), strict=True))
                counts = {name: int(row.get(name, 0)) + each for name, each in counts.items()}
                table.put([{**key, "caltest": caltest.__version__, "datasets": last, **counts}])
                print(f"power: {error}: {last} of {wanted}, {options.seconds:.0f} s", flush=True)


# ------------------------------------------------------------------ published rates


def of_pit(bias: float, dispersion: float, seed: np.random.SeedSequence) -> bool:
    """Test one data set of Arnold, Henzi and Ziegel: 360 rows, outcomes N(0, 1), at 5%."""
    rng = np.random.default_rng(seed)
    law = Normal(np.full(360, bias), variance=1.0 + dispersion)
    seed_of_draws = int(rng.integers(2**31))
    return caltest.test(law, rng.normal(size=360), "pit_ks", rng=seed_of_draws).pvalue <= 0.05


def of_kernels(n: int, centre: float | None, seed: np.random.SeedSequence) -> bool:
    """Test one data set of Widmann, Lindsten and Zachariah 2021, of one dimension, at 5%."""
    rng = np.random.default_rng(seed)
    mean = rng.random(n)
    outcomes = rng.normal(mean if centre is None else centre, 0.1, n)
    seed_of_draws = int(rng.integers(2**31))
    law = Normal(mean, sd=0.1)
    return caltest.test(law, outcomes, "skce_uq", n_resamples=199, rng=seed_of_draws).pvalue <= 0.05


def published() -> Iterator[tuple[str, float, Callable[[np.random.SeedSequence], bool]]]:
    """Yield what was published: a description, the rate of rejections, and one data set of ours."""
    with (REFERENCE / "arnold_henzi_ziegel_n360.csv").open(newline="") as file:
        rates = {
            (round(float(row["bias"]), 2), round(float(row["dispersion"]), 2)): float(row["rej_0.05"])
            for row in csv.DictReader(file)
            if (row["type"], row["method"]) == ("pit", "ptest")
        }
    for errors in ((0.0, 0.0), (0.1, 0.0), (0.0, 0.2), (0.2, 0.2)):
        name = "Arnold et al., bias {:g}, dispersion {:g}".format(*errors)
        yield name, rates[errors], partial(of_pit, *errors)
    for model, centre in (("calibrated", None), ("uncalibrated", 0.1)):
        with (REFERENCE / f"widmann2021_tests_{model}_model.csv").open(newline="") as file:
            errs = {
                int(row["nsamples"]): float(row["testerror"])
                for row in csv.DictReader(file)
                if (row["test"], row["dim"]) == ("SKCE (B = n)", "1")
            }
        for n in (4, 16, 64):
            rate = errs[n] if centre is None else 1.0 - errs[n]
            yield f"Widmann et al. 2021, {model}, {n} rows", rate, partial(of_kernels, n, centre)


def compared(options: Options) -> None:
    """Run what was published."""
    if not REFERENCE.is_dir():
        print("published rates are left out: CALTEST_REFERENCE_DATA names no folder", flush=True)
        return
    table = Table(options.results / "numbers_published.csv", ("design", "seed"))
    wanted = options.datasets or (1 if options.quick else 1000)
    with joblib.Parallel(n_jobs=options.jobs) as parallel:
        for number, (name, rate, one) in enumerate(published()):
            if not options.wants(f"published: {name}"):
                continue
            key = {"design": name, "seed": SEED}
            for row, last, drawn in batches(table, key, (200 + number,), options, wanted, 100):
                count = int(row.get("rejected", 0)) + sum(spread(one, drawn, parallel))
                found = {"published": rate, "datasets": last, "rejected": count, "rate": count / last}
                table.put([{**key, "caltest": caltest.__version__, **found}])
                print(f"published: {name}: {last} of {wanted}, {options.seconds:.0f} s", flush=True)


def _line(row: Row) -> Row:
    """Keep forecasts of quantiles that outcomes may equal, which are conservative, apart."""
    ties = row["design"] == "quantiles, Poisson"
    predicted = "quantiles, with ties" if ties else "others"
    return {"statistic": row["statistic"], "null": row["null"], "predicted": predicted}


def run(options: Options) -> None:
    """Run the cells, and judge them by design and statistic; power; published rates."""
    table = _sizes.run(cells(), "numbers.csv", options, SEED)
    if table.where():
        write_csv(_sizes.summary(table, _line), options.results / "numbers_summary.csv")
    power(options)
    compared(options)
