"""Other packages' p-values, run as they are: level, and power against a planted error, beside ours.

``python -m validation others``. The packages are installed with pip (``pip install mapie probcal
calzone-tool pycaleva calibration-belt model-diagnostics arviz-stats arviz-base``), best in an
environment that has caltest already. One that is not there is left out, which is printed; its rows in
the record stay.

Every test sees the same data sets of a design: calibrated, and with labels of an error that the design
names. A data set that a test cannot take (it raises, or returns no number) counts as not rejected, and
is counted besides. Whether ten classes, of which these packages take none at once, are calibrated is
asked of the top label, by them and by us.
"""

from __future__ import annotations

import contextlib
import io
import warnings
from collections.abc import Callable, Iterator
from functools import cache, partial
from importlib.metadata import PackageNotFoundError, version
from typing import Any, NamedTuple

import joblib
import numpy as np
from scipy.special import expit, logit
from scipy.stats import binomtest

import caltest
from caltest.predictive import Members
from validation import _sizes
from validation._cells import Options, Row, Table, batches, spread
from validation._study import CONFIDENCE, write_csv

SEED = 20_261_124
LEVEL = 0.05
DATASETS, BLOCK = 1000, 50
COUNTS = ("level", "level_failed", "power", "power_failed")

Array = np.ndarray


class Data(NamedTuple):
    """One probability a row and the event, or members and outcomes of numbers."""

    predicted: Array
    outcomes: Array


class Design(NamedTuple):
    """Predictions, and outcomes that agree with them or have the error."""

    name: str
    error: str
    draw: Callable[[np.random.Generator, bool], Data]


class Test(NamedTuple):
    """A test as its package has it (several of ours, on the same draws), ours beside it, designs."""

    package: str
    names: tuple[str, ...]
    ours: str
    pvalues: Callable[[Data, np.random.SeedSequence], list[float]]
    designs: frozenset[str]


# ------------------------------------------------------------------ designs


def events(
    predicted: Callable[[np.random.Generator], Array],
    error: Callable[[Array], Array],
    rng: np.random.Generator,
    wrong: bool,
) -> Data:
    """Draw probabilities and events."""
    p = predicted(rng)
    truth = error(p) if wrong else p
    return Data(p, (rng.random(len(p)) < truth).astype(np.int64))


def top_label(rng: np.random.Generator, wrong: bool) -> Data:
    """Draw ten classes; keep the largest probability, and whether that class was observed."""
    probs = rng.dirichlet(np.full(10, 0.5), 1000)
    truth = probs**0.85 if wrong else probs
    truth = truth / truth.sum(axis=1, keepdims=True)
    labels = (truth.cumsum(axis=1)[:, :-1] < rng.random((1000, 1))).sum(axis=1)
    return Data(probs.max(axis=1), (labels == probs.argmax(axis=1)).astype(np.int64))


def ensemble(draws: int, rng: np.random.Generator, wrong: bool) -> Data:
    """Draw members and the outcome, which is one of them or has a quarter more spread."""
    centre = rng.normal(size=(200, 1))
    members = centre + rng.normal(size=(200, draws))
    return Data(members, centre[:, 0] + (1.25 if wrong else 1.0) * rng.normal(size=200))


def slope(by: float) -> Callable[[Array], Array]:
    """Return an error: true log-odds are so many times the predicted ones."""
    return lambda p: np.asarray(expit(by * logit(p)))


DESIGNS = (
    Design("200 rows, p uniform", "underconfident: true log-odds 1.35 times as large",
           partial(events, lambda rng: rng.random(200), slope(1.35))),
    Design("5 000 rows, p uniform", "overconfident: true log-odds .93 times as large",
           partial(events, lambda rng: rng.random(5000), slope(0.93))),
    Design("1 000 rows, rare events: p ~ Beta(1, 99)", "events 1.7 times as often",
           partial(events, lambda rng: rng.beta(1.0, 99.0, 1000),
                   lambda p: np.minimum(1.7 * p, 1.0))),
    Design("1 000 rows, ties: p one of .1, …, .9", "curved: too high at both ends, too low between",
           partial(events, lambda rng: rng.integers(1, 10, 1000) / 10.0,
                   lambda p: p - 0.06 * np.cos(2.0 * np.pi * p))),
    Design("1 000 rows, top label of ten classes", "overconfident: true probabilities to the power .85",
           top_label),
    Design("200 rows, 20 members of normal distributions", "outcomes spread a quarter more",
           partial(ensemble, 20)),
    Design("200 rows, 1 000 members of normal distributions", "outcomes spread a quarter more",
           partial(ensemble, 1000)),
)  # fmt: skip
EVENTS = frozenset(design.name for design in DESIGNS[:5])
MEDIUM = EVENTS - {DESIGNS[1].name}
SOME = frozenset(DESIGNS[place].name for place in (0, 3))
SMALL, MEMBERS = frozenset([DESIGNS[0].name]), frozenset(design.name for design in DESIGNS[5:])


# ------------------------------------------------------------------ other packages


def mapie(name: str, data: Data) -> float:
    """MAPIE: limits of cumulative differences, and Spiegelhalter's z of one side."""
    from mapie.metrics import calibration

    return float(getattr(calibration, f"{name}_p_value")(data.outcomes, data.predicted))


def probcal(name: str, data: Data, **options: Any) -> float:
    """Probcal: each function has a result with the p-value."""
    from probcal import metrics

    return float(getattr(metrics, name)(data.outcomes, data.predicted, **options).p_value)


def probcal_e(data: Data) -> float:
    """Probcal: an e-value of tenths by the predictions, as a p-value."""
    edges = np.unique(np.quantile(data.predicted, np.arange(1, 10) / 10.0))
    return probcal("hl_e_test", data, grades=np.searchsorted(edges, data.predicted))


def calzone(metric: str, data: Data) -> float:
    """Calzone: two columns of probabilities."""
    from calzone.metrics import CalibrationMetrics

    made = CalibrationMetrics(class_to_calculate=1, num_bins=10)
    rows = np.column_stack([1.0 - data.predicted, data.predicted])
    return float(made.calculate_metrics(data.outcomes.copy(), rows, [metric])[f"{metric} p-value"])


def pycaleva(data: Data) -> float:
    """Pycaleva: Hosmer–Lemeshow for data that the model was not fitted to."""
    from pycaleva import CalibrationEvaluator

    made = CalibrationEvaluator(data.outcomes, data.predicted, outsample=True, n_groups=10)
    return float(made.hosmerlemeshow(verbose=False).pvalue)


def pycaleva_belt(data: Data) -> float:
    """Pycaleva: the test of its calibration belt."""
    from pycaleva.calbelt import CalibrationBelt

    return float(CalibrationBelt(data.outcomes, data.predicted, outsample=True).stats().pvalue)


def belt(data: Data) -> float:
    """calibration-belt: likelihood ratio of a polynomial of chosen degree (Nattino et al. 2014)."""
    from calibration import CalibrationBelt

    return float(CalibrationBelt(data.outcomes, data.predicted).test()[1])


def bias(data: Data) -> float:
    """model-diagnostics: t-test of the mean error."""
    from model_diagnostics.calibration import compute_bias

    return float(compute_bias(data.outcomes, data.predicted)["p_value"][0])


@cache
def bands(rows: int) -> tuple[Array, Array, Array]:
    """arviz-stats: the points and simultaneous bands of so many PIT values, the same at every call."""
    from arviz_stats.ecdf_utils import ecdf_pit

    points, _, low, high = ecdf_pit(np.linspace(0.0, 1.0, rows), 1.0 - LEVEL, 1000)
    return points, low, high


def ecdf(data: Data) -> float:
    """arviz-stats: 0 where the distribution function of PIT values leaves the bands."""
    from arviz_stats.ecdf_utils import compute_ecdf

    points, low, high = bands(len(data.outcomes))
    found = compute_ecdf((data.predicted <= data.outcomes[:, None]).mean(axis=1), points)
    return float(np.all((low <= found) & (found <= high)))


def ours(statistics: tuple[str, ...], data: Data, seed: np.random.SeedSequence) -> list[float]:
    """Ours, by the exact null, on the same draws."""
    law = Members(data.predicted) if data.predicted.ndim == 2 else data.predicted
    cell = _sizes.Cell(0, "", partial(_sizes.Data, law), _sizes.LABELS, statistics)
    return [each.pvalue for each in _sizes.tested(cell, _sizes.Data(law, data.outcomes), seed)]


def theirs() -> Iterator[tuple[str, str, str, Callable[[Data], float], frozenset[str]]]:
    """Yield the tests of other packages: package, name, ours, function, designs."""
    for name, same in (("kolmogorov_smirnov", "ks"), ("kuiper", "kuiper"),
                       ("spiegelhalter", "spiegelhalter")):  # fmt: skip
        yield "mapie", f"{name}_p_value", same, partial(mapie, name), EVENTS
    for name, same in (("hosmer_lemeshow", "hosmer_lemeshow"), ("spiegelhalter_z", "spiegelhalter"),
                       ("calibration_test", "cox")):  # fmt: skip
        yield "probcal", name, same, partial(probcal, name), EVENTS
    yield "probcal", "hl_e_test", "hosmer_lemeshow", probcal_e, EVENTS
    linear = partial(probcal, "skce_test", method="asymptotic")
    yield "probcal", "skce_test, asymptotic", "skce_uq", linear, MEDIUM
    drawn = partial(probcal, "skce_test", n_boot=_sizes.RESAMPLES)
    yield "probcal", "skce_test, bootstrap", "skce_uq", drawn, SMALL
    for name, same in (("HL-C", "hosmer_lemeshow"), ("SpiegelhalterZ", "spiegelhalter")):
        yield "calzone-tool", name, same, partial(calzone, name), EVENTS
    yield "model-diagnostics", "compute_bias", "citl", bias, EVENTS
    yield "arviz-stats", "ecdf_pit", "pit_ad", ecdf, MEMBERS
    yield "calibration-belt", "CalibrationBelt.test", "cox", belt, SOME
    yield "pycaleva", "hosmerlemeshow", "hosmer_lemeshow", pycaleva, SOME
    yield "pycaleva", "CalibrationBelt", "cox", pycaleva_belt, SOME


def tests() -> Iterator[Test]:
    """Yield all tests."""
    for names, designs in (
        (("ks", "kuiper", "spiegelhalter", "hosmer_lemeshow", "citl"), EVENTS),
        (("skce_uq", "omnibus"), MEDIUM),
        (("pit_ks", "pit_ad"), MEMBERS),
        (("cox",), SMALL),
    ):
        yield Test("caltest", names, "", partial(ours, names), designs)
    for package, name, same, pvalue, designs in theirs():
        yield Test(package, (name,), same, partial(_alone, pvalue), designs)


def _alone(pvalue: Callable[[Data], float], data: Data, _: np.random.SeedSequence) -> list[float]:
    """Return what a test says; no number where it cannot take the data."""
    with warnings.catch_warnings(), contextlib.redirect_stdout(io.StringIO()):
        warnings.simplefilter("ignore")
        try:
            return [pvalue(data)]
        except ImportError:
            raise
        except Exception:  # counted, and no rejection
            return [np.nan]


# ------------------------------------------------------------------ run


def tested(design: Design, test: Test, seed: np.random.SeedSequence) -> np.ndarray:
    """Say what is rejected and what could not be taken: calibrated data, then those with the error.

    Returns
    -------
    (names, 4) array of bool
    """
    *data, draws = seed.spawn(3)
    found = []
    for wrong, child in enumerate(data):
        drawn = design.draw(np.random.default_rng(child), bool(wrong))
        p = np.array(test.pvalues(drawn, draws), dtype=np.float64)
        found += [p <= LEVEL, np.isnan(p)]
    return np.stack(found, axis=1)


def installed(package: str) -> str | None:
    """Return the version of a package; None if it is not there."""
    try:
        return version(package) if package != "caltest" else caltest.__version__
    except PackageNotFoundError:
        return None


def run(options: Options) -> None:
    """Run every test on every design that it is for."""
    table = Table(options.results / "others.csv", ("package", "test", "design", "seed"))
    wanted = options.datasets or (1 if options.quick else DATASETS)
    asked = list(tests())
    versions = {test.package: installed(test.package) for test in asked}
    for package in [name for name, found in versions.items() if found is None]:
        print(f"{package} is left out: it is not installed", flush=True)
    with joblib.Parallel(n_jobs=options.jobs) as parallel:
        for test in [each for each in asked if versions[each.package] is not None]:
            for number, design in enumerate(DESIGNS):
                what = f"{test.package} / {', '.join(test.names)} / {design.name}"
                if design.name not in test.designs or not options.wants(what):
                    continue
                key = {"package": test.package, "design": design.name, "seed": SEED}
                first = {**key, "test": test.names[0]}
                for begun, last, drawn in batches(table, first, (number,), options, wanted, BLOCK):
                    found = np.sum(spread(partial(tested, design, test), drawn, parallel), axis=0)
                    rows: list[Row] = []
                    for name, counts in zip(test.names, found.tolist(), strict=True):
                        row = (table.get(**key, test=name) if begun else None) or {}
                        sums = {x: int(row.get(x, 0)) + n for x, n in zip(COUNTS, counts, strict=True)}
                        about = {"ours": test.ours, "error": design.error, "datasets": last}
                        named = {**key, "test": name, "version": versions[test.package]}
                        rows.append({**named, **about, **sums})
                    table.put(rows)
                    print(f"{what}: {last} of {wanted}, {options.seconds:.0f} s", flush=True)
    if table.where():
        write_csv(summary(table), options.results / "others_summary.csv")


def summary(table: Table) -> list[Row]:
    """Return shares of rejections, whether the level is kept, and ours of the same design beside.

    Intervals hold together for all lines.
    """
    mine = {(row["test"], row["design"]): row for row in table.where(package="caltest")}
    rows, confidence = [], 1.0 - (1.0 - CONFIDENCE) / len(table.where())
    for row in table.where():
        of = int(row["datasets"])
        found = binomtest(int(row["level"]), of).proportion_ci(confidence)
        beside = mine.get((row["ours"], row["design"]))
        rows.append(
            {
                **{name: row[name] for name in ("design", "error", "package", "version", "test")},
                "datasets": of,
                **_shares(row),
                "low": round(float(found.low), 4),
                "high": round(float(found.high), 4),
                "verdict": "above" if found.low > LEVEL else "below" if found.high < LEVEL else "kept",
                "not taken": int(row["level_failed"]) + int(row["power_failed"]),
                "ours": row["ours"] if beside else "",
                **{f"our {name}": x for name, x in (_shares(beside) if beside else _NONE).items()},
            }
        )
    return rows


_NONE = {"level": "", "power": ""}


def _shares(row: Row) -> Row:
    return {name: round(int(row[name]) / int(row["datasets"]), 3) for name in ("level", "power")}
