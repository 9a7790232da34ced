"""Monitoring: false alarms, rows to a false alarm, delays, published e-values, time and memory.

False alarms (``monitor_levels.csv``): 1 000 calibrated streams of 10 000 rows a design, each taken in
at once (tests show that batches change no number): how many ever raise an alarm at α = .05, beside the
largest number that chance allows for all designs at once, at 99%. Of mode "change"
(``monitor_changes.csv``): mean rows to the first alarm, of streams cut at 10 000 rows, which only makes
it shorter, beside the mean run length that was asked for.

Delays (``monitor_delays.csv``): the median row of the alarm, and the share of streams with one, beside
weekly exact tests (the omnibus on 500 rows, 20 weeks, at .05/20 each), ``probcal.monitor`` where it is
installed, and the power of one exact test of all rows.

Published (``monitor_published.csv``): rejection rates of e-values of 360 rows by Arnold, Henzi and
Ziegel, and the share of streams in which ours ever reach 20. Speed (``monitor_speed.csv``).
"""

from __future__ import annotations

import ast
import csv
import resource
import subprocess
import sys
from collections.abc import Callable
from functools import partial
from time import perf_counter
from typing import Any

import joblib
import numpy as np
import scipy.stats
from scipy.special import expit, logit

import caltest
from caltest.predictive import Distribution, Normal, Predictive, Quantiles, Survival
from validation._cells import Options, Row, Table, batches, spread
from validation._study import REFERENCE, ROOT

SEED = 20_261_125
N, STREAMS = 10_000, 1000
BLOCK = 20
WEEK, WEEKS = 500, 20

Array = np.ndarray
Stream = tuple[Any, Any, dict[str, Any], dict[str, Any]]  # predicted, outcomes, of update, of Monitor


def labels(rng: np.random.Generator, probs: Array) -> Array:
    """Draw labels."""
    below = np.cumsum(probs, axis=1)[:, :-1]
    return (rng.random((len(probs), 1)) > below).sum(axis=1)


def of_classes(m: int, alpha: float, rng: np.random.Generator) -> Stream:
    """Draw predictions of classes from a Dirichlet distribution, and labels."""
    probs = rng.dirichlet(np.full(m, alpha), N)
    return probs, labels(rng, probs), {}, {}


def of_events(draw: Callable[[np.random.Generator], Array], rng: np.random.Generator) -> Stream:
    """Draw one probability a row, and events."""
    p = draw(rng)
    return p, rng.random(N) < p, {}, {}


def with_zeros(rng: np.random.Generator) -> Stream:
    """Five classes, of which most are impossible in a row; ties."""
    probs = rng.multinomial(3, np.full(5, 0.2), N) / 3.0
    return probs, labels(rng, probs), {}, {}


def grouped(rng: np.random.Generator) -> Stream:
    """One probability, ten groups."""
    p, events, _, _ = of_events(lambda rng: rng.uniform(0.05, 0.6, N), rng)
    return p, events, {"groups": {"g": rng.integers(10, size=N)}}, {}


def clustered(rng: np.random.Generator) -> Stream:
    """Clusters of four rows with a latent correlation of .8."""
    p, shared = rng.uniform(0.02, 0.6, N), rng.normal(size=N // 4).repeat(4)
    latent = np.sqrt(0.8) * shared + np.sqrt(0.2) * rng.normal(size=N)
    return p, scipy.stats.norm.cdf(latent) < p, {"clusters": np.arange(N) // 4}, {}


def of_the_past(rng: np.random.Generator) -> Stream:
    """Predictions that are means of past outcomes."""
    p, events, mean = np.empty(N), np.empty(N, int), 0.5
    for t, u in enumerate(rng.random(N)):
        p[t] = min(max(mean, 0.02), 0.98)
        events[t] = u < p[t]
        mean = 0.9 * mean + 0.1 * events[t]
    return p, events, {}, {}


def at_the_limit(rng: np.random.Generator) -> Stream:
    """Every probability too high, or too low, by the tolerance exactly."""
    p = rng.uniform(0.05, 0.95, N)
    side = rng.choice([-1.0, 1.0])
    return p, rng.random(N) < p + 0.02 * side, {}, {"tolerance": 0.02}


def of_normals(rng: np.random.Generator) -> Stream:
    """Draw numbers."""
    mean, sd = rng.normal(size=N), rng.uniform(0.5, 2.0, N)
    return Normal(mean, sd=sd), rng.normal(mean, sd), {}, {}


def of_counts(rng: np.random.Generator) -> Stream:
    """Draw counts."""
    rate = rng.uniform(0.2, 8.0, N)
    return Distribution(scipy.stats.poisson(rate)), rng.poisson(rate), {}, {}


def of_quantiles(rng: np.random.Generator) -> Stream:
    """Quantiles of counts, which outcomes may equal."""
    rate, levels = rng.uniform(0.2, 8.0, N), [0.05, 0.25, 0.5, 0.75, 0.95]
    values = scipy.stats.poisson(rate[:, None]).ppf(levels)
    return Quantiles(levels, values), rng.poisson(rate), {}, {}


class Pool(Normal):
    """Rows of values of which the outcome is one: its rank is all that is claimed."""

    def __init__(self, pool: Array) -> None:
        super().__init__(np.zeros(len(pool)), sd=1.0)
        self.pool = pool

    def cdf(self, outcomes: Array) -> tuple[Array, Array]:
        """Return the shares of the pool below, and at or below."""
        here = outcomes[:, None]
        return (self.pool < here).mean(axis=1), (self.pool <= here).mean(axis=1)


def of_members(rng: np.random.Generator) -> Stream:
    """Nine members and the outcome, rounded, so that there are ties."""
    pool = rng.normal(rng.normal(size=(N, 1)), 1.0, (N, 10)).round(1)
    return Pool(pool), pool[np.arange(N), rng.integers(10, size=N)], {}, {}


def of_times(rng: np.random.Generator) -> Stream:
    """Curves of times, about half of them censored by what depends on the prediction."""
    hazard, times = rng.uniform(0.2, 1.5, N), np.linspace(0.2, 4.0, 20)
    law = Survival(np.exp(-np.outer(hazard, times)), times)
    time, end = law.quantile(rng.random(N)), rng.exponential(1.0 / (rng.uniform(0.5, 1.5, N) * hazard))
    return law, (np.minimum(time, end), time <= end), {}, {}


def of_a_statistic(rng: np.random.Generator) -> Stream:
    """Four classes, and the Brier score alone."""
    predicted, drawn, given, _ = of_classes(4, 0.7, rng)
    return predicted, drawn, given, {"statistic": "brier"}


LEVELS: dict[str, Callable[[np.random.Generator], Stream]] = {
    "2 classes": partial(of_classes, 2, 1.0),
    "3 classes": partial(of_classes, 3, 0.7),
    "10 classes": partial(of_classes, 10, 0.3),
    "100 classes": partial(of_classes, 100, 0.1),
    "rare events": partial(of_events, lambda rng: rng.beta(0.3, 20.0, N)),
    "ties: 0, 0.1, …, 1": partial(of_events, lambda rng: rng.integers(11, size=N) / 10.0),
    "zeros": with_zeros,
    "ten groups": grouped,
    "clusters of four, correlation 0.8": clustered,
    "predictions from past outcomes": of_the_past,
    "at a limit of 2 points": at_the_limit,
    "normal distributions": of_normals,
    "counts": of_counts,
    "quantiles of counts": of_quantiles,
    "ensembles of nine, with ties": of_members,
    "censored times": of_times,
    "the Brier score of 4 classes": of_a_statistic,
}


def alarm_row(make: Callable[..., Stream], options: dict[str, Any], seed: Any) -> float:
    """Return the row of the first alarm; infinity without one."""
    predicted, outcomes, given, own = make(np.random.default_rng(seed))
    found = caltest.Monitor(**own, **options).update(predicted, outcomes, **given).alarm_row
    return float("inf") if found is None else float(found)


def levels(options: Options) -> None:
    """Count false alarms."""
    table = Table(options.results / "monitor_levels.csv", ("design", "seed"))
    with joblib.Parallel(n_jobs=options.jobs) as parallel:
        for number, (design, make) in enumerate(LEVELS.items()):
            if not options.wants(f"levels: {design}"):
                continue
            wanted = options.datasets or (1 if options.quick else STREAMS)
            key = {"design": design, "seed": SEED}
            for row, last, drawn in batches(table, key, (number,), options, wanted, BLOCK):
                rows = np.array(spread(partial(alarm_row, make, {}), drawn, parallel))
                count = int(row.get("alarms", 0)) + int(np.isfinite(rows).sum())
                most = int(scipy.stats.binom.ppf(1.0 - 0.01 / len(LEVELS), last, 0.05))
                found = {"rows": N, "datasets": last, "alarms": count, "rate": count / last}
                found |= {"allowed": most, "verdict": "above" if count > most else "at most α"}
                table.put([{**key, "caltest": caltest.__version__, **found}])
            print(f"levels: {design}: {wanted}, {options.seconds:.0f} s", flush=True)


# ------------------------------------------------------------------ rows to a false alarm


def changes(options: Options) -> None:
    """Average the rows to the first false alarm of mode "change"."""
    table = Table(options.results / "monitor_changes.csv", ("design", "asked", "seed"))
    designs = {
        "2 classes": LEVELS["2 classes"],
        "3 classes": LEVELS["3 classes"],
        "ten groups": grouped,
        "clusters of four, correlation 0.8": clustered,
        "normal distributions": of_normals,
    }
    wanted = options.datasets or (1 if options.quick else 400)
    with joblib.Parallel(n_jobs=options.jobs) as parallel:
        for number, (design, make) in enumerate(designs.items()):
            if not options.wants(f"changes: {design}"):
                continue
            asked = 1000
            key = {"design": design, "asked": asked, "seed": SEED}
            how = {"mode": "change", "mean_run_length": float(asked)}
            for row, last, drawn in batches(table, key, (50 + number,), options, wanted, BLOCK):
                rows = np.minimum(spread(partial(alarm_row, make, how), drawn, parallel), N)
                rows = rows / (4 if "clusters" in design else 1)  # clusters are counted there
                total = float(row.get("total", 0)) + rows.sum()
                least = min(float(row.get("least", np.inf)), rows.min())
                found = {"datasets": last, "total": total, "mean": total / last, "least": least}
                table.put([{**key, "caltest": caltest.__version__, **found}])
            print(f"changes: {design}: {wanted}, {options.seconds:.0f} s", flush=True)


# ------------------------------------------------------------------ delays


def _wrong(m: int, error: Callable[[Array], Array], start: int, rng: np.random.Generator) -> Stream:
    probs = rng.dirichlet(np.ones(m), N)
    true = probs.copy()
    true[start:] = error(probs[start:])
    return probs, labels(rng, true), {}, {}


def _tempered(probs: Array) -> Array:
    powers = probs**0.8
    return powers / powers.sum(axis=1, keepdims=True)


def _odds(probs: Array) -> Array:
    moved = probs * np.r_[1.6, np.ones(probs.shape[1] - 1)]
    return moved / moved.sum(axis=1, keepdims=True)


def _local(probs: Array) -> Array:
    moved = probs.copy()
    shift = 0.4 * np.minimum(probs[:, 0], probs[:, 1]) * np.sign(np.sin(8.0 * probs[:, 0]))
    moved[:, 0] += shift
    moved[:, 1] -= shift
    return moved


def _shifted(start: int, rng: np.random.Generator) -> Stream:
    p = rng.beta(1.0, 4.0, N)
    true = expit(logit(p) + 0.3 * (np.arange(N) >= start))
    return p, rng.random(N) < true, {}, {}


def _one_group(rng: np.random.Generator) -> Stream:
    p, groups = rng.uniform(0.05, 0.6, N), rng.integers(10, size=N)
    return p, rng.random(N) < p + 0.1 * (groups == 3), {"groups": {"g": groups}}, {}


def _sooner(start: int, rng: np.random.Generator) -> Stream:
    hazard, times = rng.uniform(0.2, 1.5, N), np.linspace(0.02, 4.0, 200)
    true = hazard * np.where(np.arange(N) >= start, 1.25, 1.0)
    time, end = rng.exponential(1.0 / true), rng.exponential(1.0 / hazard)
    law = Survival(np.exp(-np.outer(hazard, times)), times)
    return law, (np.minimum(time, end), time <= end), {}, {}


DELAYS: dict[str, Callable[[np.random.Generator], Stream]] = {
    "temperature 1.25, 3 classes": partial(_wrong, 3, _tempered, 0),
    "temperature 1.25, 10 classes": partial(_wrong, 10, _tempered, 0),
    "odds of one class × 1.6, 10 classes": partial(_wrong, 10, _odds, 0),
    "local error, 3 classes": partial(_wrong, 3, _local, 0),
    "odds of one class × 1.6 after row 5000, 3 classes": partial(_wrong, 3, _odds, N // 2),
    "log-odds + 0.3": partial(_shifted, 0),
    "log-odds + 0.3 after row 5000": partial(_shifted, N // 2),
    "10 points in one group of ten": _one_group,
    "hazards × 1.25, half of the times censored": partial(_sooner, 0),
    "hazards × 1.25 after row 5000, half of the times censored": partial(_sooner, N // 2),
}


def of_rows(predicted: Any, outcomes: Any, part: slice) -> tuple[Any, Any]:
    """Return some of the rows."""
    if isinstance(predicted, Survival):
        return predicted.take(part), tuple(each[part] for each in outcomes)
    return predicted[part], outcomes[part]


def exactly(predicted: Any, resamples: int) -> dict[str, Any]:
    """Return options of a test whose p-value can be as small as is needed."""
    if isinstance(predicted, Survival):  # the default combines completions, and halves its level
        return {"statistic": "events", "n_resamples": 5 * resamples}
    return {"n_resamples": resamples}


def weekly(make: Callable[..., Stream], resamples: int, seed: Any) -> float:
    """Return the end of the first week whose exact test rejects at α divided by the weeks."""
    predicted, outcomes, _, _ = make(np.random.default_rng(seed))
    for week in range(WEEKS):
        part = slice(week * WEEK, (week + 1) * WEEK)
        found = caltest.test(
            *of_rows(predicted, outcomes, part), **exactly(predicted, resamples), rng=week
        )
        if found.pvalue <= 0.05 / WEEKS:
            return float(part.stop)
    return float("inf")


def at_the_end(make: Callable[..., Stream], resamples: int, seed: Any) -> float:
    """Return the last row if one exact test of all rows rejects."""
    predicted, outcomes, _, _ = make(np.random.default_rng(seed))
    found = caltest.test(predicted, outcomes, **exactly(predicted, resamples), rng=0)
    return float(N) if found.pvalue <= 0.05 else float("inf")


def by_probcal(make: Callable[..., Stream], seed: Any) -> float:
    """Return the end of the first week in which probcal's monitor raises an alarm."""
    from probcal.monitor import CalibrationMonitor

    predicted, outcomes, given, _ = make(np.random.default_rng(seed))
    groups = given.get("groups", {}).get("g")
    other = CalibrationMonitor(grades=None if groups is None else tuple(range(10)), plug_in_window=8)
    for week in range(WEEKS):
        part = slice(week * WEEK, (week + 1) * WEEK)
        grade = None if groups is None else groups[part]
        if other.update(outcomes[part].astype(int), predicted[part], grade=grade).alarm:
            return float(part.stop)
    return float("inf")


def delays(options: Options) -> None:
    """Compare delays."""
    table = Table(options.results / "monitor_delays.csv", ("design", "method", "seed"))
    resamples = 19 if options.quick else 399
    methods: dict[str, tuple[Callable[..., Any], int]] = {
        "ever, α = .05": (lambda make: partial(alarm_row, make, {}), 60),
        "change, mean run length 10 000": (
            lambda make: partial(alarm_row, make, {"mode": "change"}),
            200,
        ),
        "weekly exact tests, Bonferroni": (lambda make: partial(weekly, make, resamples), 20),
        "one exact test of all rows": (lambda make: partial(at_the_end, make, min(resamples, 199)), 20),
    }
    try:
        import probcal.monitor  # noqa: F401
    except ImportError:
        print("probcal is not installed, and left out", flush=True)
    else:
        methods["probcal.monitor, weekly"] = (lambda make: partial(by_probcal, make), 20)
    with joblib.Parallel(n_jobs=options.jobs) as parallel:
        for number, (design, make) in enumerate(DELAYS.items()):
            for method, (task, usual) in methods.items():
                binary = not {"classes", "hazards"} & set(design.split())
                if not options.wants(f"delays: {design}: {method}") or (
                    "probcal" in method and not binary
                ):
                    continue
                wanted = options.datasets or (1 if options.quick else usual)
                key = {"design": design, "method": method, "seed": SEED}
                for _, last, drawn in batches(table, key, (100 + number,), options, wanted, wanted):
                    rows = np.array(spread(task(make), drawn, parallel))
                    late = 5000 if "after row" in design else 0
                    false = np.mean(rows <= late) if late else 0.0
                    found = {
                        "datasets": last,
                        "alarms": float(np.isfinite(rows).mean()),
                        "median_row": float(np.median(rows[rows > late])),
                        "before_change": float(false),
                    }
                    table.put([{**key, "caltest": caltest.__version__, **found}])
            print(f"delays: {design}, {options.seconds:.0f} s", flush=True)


# ------------------------------------------------------------------ published e-values


def reached(bias: float, dispersion: float, seed: Any) -> bool:
    """Say whether evidence on 360 rows ever reaches 20: outcomes N(0, 1)."""
    rng = np.random.default_rng(seed)
    law: Predictive = Normal(np.full(360, bias), variance=1.0 + dispersion)
    return caltest.Monitor().update(law, rng.normal(size=360)).alarm


def published(options: Options) -> None:
    """Stand beside published rates."""
    if not REFERENCE.is_dir():
        print("published rates are left out: CALTEST_REFERENCE_DATA names no folder", flush=True)
        return
    with (REFERENCE / "arnold_henzi_ziegel_n360.csv").open(newline="") as file:
        known: dict[tuple[float, float], Row] = {}
        for row in csv.DictReader(file):
            if row["type"] == "pit":
                place = round(float(row["bias"]), 2), round(float(row["dispersion"]), 2)
                known.setdefault(place, {})[row["method"]] = float(row["rej_0.05"])
    table = Table(options.results / "monitor_published.csv", ("bias", "dispersion", "seed"))
    wanted = options.datasets or (1 if options.quick else 2000)
    errors = ((0.0, 0.0), (0.1, 0.0), (0.2, 0.0), (0.0, 0.2), (0.2, 0.2), (0.0, -0.2), (0.3, 0.3))
    with joblib.Parallel(n_jobs=options.jobs) as parallel:
        for number, (bias, dispersion) in enumerate(errors):
            if not options.wants(f"published: {bias} {dispersion}"):
                continue
            key = {"bias": bias, "dispersion": dispersion, "seed": SEED}
            for row, last, drawn in batches(table, key, (200 + number,), options, wanted, 500):
                one = partial(reached, bias, dispersion)
                count = int(row.get("reached", 0)) + sum(spread(one, drawn, parallel))
                found = {"datasets": last, "reached": count, "rate": count / last}
                table.put([{**key, **found, **known[bias, dispersion], "caltest": caltest.__version__}])
            print(f"published: {bias} {dispersion}, {options.seconds:.0f} s", flush=True)


# ------------------------------------------------------------------ time and memory

SIZES = ((1_000_000, 2), (1_000_000, 10), (10_000, 1000))


def measured(n: int, m: int, batch: int = 50_000) -> Row:
    """Stream rows in batches, and say how long it took, and how much memory more."""
    rng, monitor = np.random.default_rng(0), caltest.Monitor()
    probs = rng.dirichlet(np.ones(m), 100)
    monitor.update(probs, labels(rng, probs))  # loops are compiled, or read from disk
    before, seconds = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, 0.0
    for start in range(0, n, batch):
        probs = rng.dirichlet(np.ones(m), min(batch, n - start))
        drawn, began = labels(rng, probs), perf_counter()
        state = monitor.update(probs, drawn)
        seconds += perf_counter() - began
    memory = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024.0
    assert state.rows == n + 100
    return {"rows": n, "classes": m, "batch": batch, "seconds": seconds, "MiB": memory}


def speed(options: Options) -> None:
    """Measure, each in a process of its own."""
    table = Table(options.results / "monitor_speed.csv", ("rows", "classes"))
    for n, m in SIZES:
        if options.wants(f"speed: {n} {m}") and not options.over:
            n, batch = (1000, 500) if options.quick else (n, 2000 if m > 100 else 50_000)
            call = f"from validation.monitor import measured; print(measured({n}, {m}, {batch}))"
            done = subprocess.run(
                [sys.executable, "-c", call], cwd=ROOT, capture_output=True, text=True, check=True
            )
            table.put([{**ast.literal_eval(done.stdout), "caltest": caltest.__version__}])
            print(f"speed: {n} rows, {m} classes, {options.seconds:.0f} s", flush=True)


def run(options: Options) -> None:
    """Run all parts."""
    levels(options)
    changes(options)
    delays(options)
    published(options)
    speed(options)
