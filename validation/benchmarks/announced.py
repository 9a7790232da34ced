"""How long work is announced to take, and how long it takes.

``python -m validation.benchmarks.announced`` measures it.

In the package a warning comes where more than a minute is expected, after five seconds at the earliest.
Here that is scaled down, so that cases of a second are announced, after fewer tasks, which is harder.
Writes ``benchmarks_announced.csv`` to validation/results.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np

import caltest
from caltest import _parallel
from validation.benchmarks import inputs
from validation.benchmarks.store import Store

LONG = 0.3  # seconds, in place of a minute
FIELDS = ("case", "announced_s", "took_s", "ratio")
RESULTS = Path(__file__).resolve().parents[1] / "results"
UNITS = {"second": 1.0, "minute": 60.0, "hour": 3600.0}

Call = Callable[[], Any]


def _classes(n: int, m: int) -> tuple[np.ndarray, np.ndarray]:
    made = caltest.simulation.tempered(n, [10.0 / m] * m, temperature=1.0, rng=0)
    return made.probs, made.labels


def _binary(n: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    p = rng.random(n)
    return p, (rng.random(n) < p).astype(int)


def cases() -> Iterator[tuple[str, Call]]:
    """Yield thirty calls that take seconds."""
    for n, m in ((8_000, 10), (3_000, 100), (60_000, 10), (4_000, 1_000)):
        given = _classes(n, m)
        for jobs in (1, 2):
            yield (
                f"test, {n} × {m}, {jobs} workers",
                lambda g=given, j=jobs: caltest.test(*g, rng=0, n_jobs=j),
            )
    for n, jobs in ((4_000, 1), (6_000, 2)):
        given = _classes(n, 10)
        yield (
            f"skce_uq of all pairs, {n} × 10, {jobs} workers",
            lambda g=given, j=jobs: caltest.test(*g, "skce_uq", rng=0, n_jobs=j),
        )
    given = _classes(20_000, 10)
    yield "skce_uq of all pairs, moments", lambda: caltest.test(*given, "skce_uq", null="moments")
    wide = _classes(30_000, 10)
    yield "estimate of all pairs", lambda: caltest.estimate(*wide, "skce_uq")
    for n in (200_000, 1_000_000):
        given_of = _binary(n)
        yield f"ecd, {n} × 2", lambda g=given_of: caltest.test(*g, "ecd", rng=0, n_resamples=199)
        yield f"ks, {n} × 2", lambda g=given_of: caltest.test(*g, "ks", rng=0, n_resamples=199)
    p, y = _binary(20_000)
    yield "cox", lambda: caltest.test(p, y, "cox", rng=0, n_resamples=199)
    yield "a function of one's own", lambda: caltest.test(p, y, _own, rng=0, n_resamples=1999)
    for n, jobs in ((20_000, 1), (100_000, 2), (300_000, 2)):
        binary = _binary(n)
        groups = inputs.groups(binary[1])
        yield (
            f"audit, {n} rows, three columns of groups, {jobs} workers",
            lambda b=binary, g=groups, j=jobs: caltest.audit(*b, groups=g, rng=0, n_jobs=j),
        )
    for n, m, jobs in (
        (10_000, 10, 1),
        (50_000, 10, 2),
        (5_000, 100, 1),
        (10_000, 300, 2),
        (5_000, 1_000, 2),
    ):
        many = _classes(n, m)
        yield (
            f"audit, {n} × {m}, {jobs} workers",
            lambda g=many, j=jobs: caltest.audit(*g, rng=0, n_jobs=j),
        )
    columns = np.random.default_rng(2).normal(size=(30_000, 20))
    more = _binary(30_000)
    yield "audit by 20 features", lambda: caltest.audit(*more, features=columns, rng=0)
    for n in (20_000, 60_000):
        numbers = inputs.normals(np.zeros(n))
        law = caltest.predictive.Normal(numbers.mean, numbers.sd)
        yield f"audit of normals, {n}", lambda a=law, b=numbers.outcomes: caltest.audit(a, b, rng=0)
    drawn, outcomes = inputs.members(np.zeros(20_000))
    yield "audit of members", lambda: caltest.audit(caltest.predictive.Members(drawn), outcomes, rng=0)
    rate, time, event = inputs.times(np.zeros(5_000))
    at = np.linspace(0.05, 6.0, 50)
    curves = caltest.predictive.Survival(np.exp(-np.outer(rate, at)), at)
    yield "audit of times", lambda: caltest.audit(curves, (time, event), rng=0)
    clusters = np.arange(20_000) // 5
    yield "signs of clusters", lambda: caltest.test(*given, clusters=clusters, rng=0)


def _own(probs: np.ndarray, labels: np.ndarray) -> float:
    return float(np.abs(np.cumsum(labels - probs[:, 1])).max())


def announced(call: Call) -> tuple[float | None, float]:
    """Return the seconds that were announced, None if none were, and those that it took.

    It is called once before, so that nothing is compiled in it.
    """
    _parallel.LONG = 1e9
    call()
    _parallel.LONG = LONG
    _parallel.duration = lambda seconds: f"{seconds:.3f} seconds"  # not rounded as for people
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        begin = perf_counter()
        call()
        took = perf_counter() - begin
    said = [str(each.message) for each in caught if issubclass(each.category, caltest.LongWorkWarning)]
    found = re.search(r"takes about ([\d,.]+) (second|minute|hour)", said[0]) if said else None
    return found and float(found[1].replace(",", "")) * UNITS[found[2]], took


def main() -> None:
    """Measure all."""
    store = Store(RESULTS / "benchmarks_announced.csv", FIELDS, ("case",))
    for name, call in cases():
        said, took = announced(call)
        row = {"case": name, "announced_s": said, "took_s": round(took, 3)}
        store.put(**row, ratio=None if said is None else round(said / took, 2))
        print(name, said, round(took, 2), flush=True)


if __name__ == "__main__":
    main()
