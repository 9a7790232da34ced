"""What is measured of caltest: functions of the input that return what is to be run.

All go through the public functions, checks of the input included.
"""

from __future__ import annotations

import inspect
import os
import subprocess
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory, mkdtemp
from typing import Any

import numpy as np

import caltest
from caltest.binning import EqualWidth, reliability_curve
from caltest.kernels import Exponential, Gaussian
from caltest.statistics import ECE, STATISTICS, LinearSKCE, Statistic, UnbiasedSKCE
from validation.benchmarks import inputs
from validation.benchmarks.child import Measured, NotMeasured

_KERNELS: dict[str, Callable[[Any], Any]] = {"tv": Exponential, "gaussian": Gaussian}


def statistic_of(
    statistic: str | None,
    kernel: str = "tv",
    bandwidth: float | str = "median",
    approximation: str | None = None,
    rank: int = 256,
    bins: int = 0,
) -> Any:
    """Return a statistic from plain values; None is the default of `caltest.test`, which has a name."""
    if statistic == "skce_uq":
        how: Any = approximation
        return UnbiasedSKCE(_KERNELS[kernel](bandwidth), how, rank)
    if statistic == "skce_ul":
        return LinearSKCE(_KERNELS[kernel](bandwidth), pairing="rows")
    if statistic == "ece":
        return ECE(EqualWidth(bins)) if bins else ECE()
    made: Statistic | None = STATISTICS[statistic]() if statistic else None
    return made


def _one_column(probs: np.ndarray) -> np.ndarray:
    """Give two classes as peers take them: one probability a row."""
    return np.ascontiguousarray(probs[:, 1]) if probs.shape[1] == 2 else probs


def estimate(
    probs: np.ndarray, labels: np.ndarray, *, jobs: int, lens: str | None = None, **given: Any
) -> Measured:
    """Estimate a statistic, without a p-value."""
    statistic, seen = statistic_of(**given), _one_column(probs)
    named = {} if statistic is None else {"statistic": statistic}
    how: Any = {"lens": lens, "n_jobs": jobs, **named}
    return lambda: {"value": caltest.estimate(seen, labels, **how)}


def pvalue(
    probs: np.ndarray,
    labels: np.ndarray,
    *,
    jobs: int,
    null: str = "monte_carlo",
    draws: int = 999,
    lens: str | None = None,
    size: int = 0,
    weighted: bool = False,
    **given: Any,
) -> Measured:
    """Test, with the exact null unless another is named; clusters are of ``size`` rows, if any."""
    statistic, seen = statistic_of(**given), _one_column(probs)
    named: dict[str, Any] = {} if statistic is None else {"statistic": statistic}
    if size:
        named["clusters"] = np.arange(len(labels)) // size
    if weighted:
        named["weights"] = np.random.default_rng(1).exponential(size=len(labels))
    how: Any = {"null": null, "n_resamples": draws, "lens": lens, "rng": 0, "n_jobs": jobs, **named}

    def run() -> dict[str, Any]:
        result = caltest.test(seen, labels, **how)
        return {"value": result.statistic, "pvalue": result.pvalue}

    return run


def call(
    probs: np.ndarray,
    labels: np.ndarray,
    *,
    jobs: int,
    function: str,
    groups: int = 0,
    columns: bool = False,
    features: int = 0,
    **given: Any,
) -> Measured:
    """Call a function of the package; ``groups`` of fifty rows at least, ``features`` by chance.

    Or in ``columns`` of groups, three of them.
    """
    work, seen, how = getattr(caltest, function), _one_column(probs), dict(given)
    takes = inspect.signature(work).parameters
    how |= {name: value for name, value in (("rng", 0), ("n_jobs", jobs)) if name in takes}
    if groups:
        most = max(1, min(groups, len(labels) // 50))
        how["groups"] = {"group": np.random.default_rng(1).integers(0, most, len(labels))}
    if columns:
        how["groups"] = inputs.groups(labels)
    if features:
        how["features"] = np.random.default_rng(2).normal(size=(len(labels), features))

    def run() -> dict[str, Any]:
        return {"pvalue": getattr(work(seen, labels, **how), "pvalue", "")}

    return run


def bin_table(probs: np.ndarray, labels: np.ndarray, *, jobs: int) -> Measured:
    """Tabulate ten bins of equal width."""
    seen = _one_column(probs)
    return lambda: {"value": float(caltest.bin_table(seen, labels).frequency.iloc[0])}


def diagram(probs: np.ndarray, labels: np.ndarray, *, jobs: int) -> Measured:
    """Take the points of a reliability diagram of ten bins, without bands."""
    seen, bins = _one_column(probs), EqualWidth(10)

    def run() -> dict[str, Any]:
        given = caltest.data.sample(seen, labels)
        curve = reliability_curve(given.rows, given.labels, bins)
        return {"value": float(curve.observed[0])}

    return run


def numbers(
    probs: np.ndarray, labels: np.ndarray, *, jobs: int, of: str, function: str, **given: Any
) -> Measured:
    """Call a function with predicted numbers or times, and their outcomes."""
    law, outcomes = _laws()[of](labels)
    work, how = getattr(caltest, function), dict(given)
    takes = inspect.signature(work).parameters
    how |= {name: value for name, value in (("rng", 0), ("n_jobs", jobs)) if name in takes}

    def run() -> dict[str, Any]:
        found = work(law(), outcomes, **how)
        return {"value": found} if isinstance(found, float) else {"pvalue": found.pvalue}

    return run


def _laws() -> dict[str, Callable[[np.ndarray], tuple[Callable[[], Any], Any]]]:
    """Return what makes a law and outcomes; that the law is made is measured."""

    def of_normals(labels: np.ndarray) -> tuple[Callable[[], Any], Any]:
        mean, sd, outcomes = inputs.normals(labels)
        return partial(caltest.predictive.Normal, mean, sd), outcomes

    def of_members(labels: np.ndarray) -> tuple[Callable[[], Any], Any]:
        drawn, outcomes = inputs.members(labels)
        return partial(caltest.predictive.Members, drawn), outcomes

    def of_points(labels: np.ndarray) -> tuple[Callable[[], Any], Any]:
        chance = np.random.default_rng(len(labels)).random(len(labels))
        return partial(caltest.predictive.Point, chance, low=0.0, high=1.0), labels.astype(float)

    def of_times(labels: np.ndarray) -> tuple[Callable[[], Any], Any]:
        rate, time, event = inputs.times(labels)
        at = np.linspace(0.05, 6.0, 50)
        return partial(caltest.predictive.Survival, np.exp(-np.outer(rate, at)), at), (time, event)

    return {
        "times": of_times,
        "normals": of_normals,
        "members": of_members,
        "posterior": of_members,
        "points": of_points,
    }


def from_file(
    *, path: str, few: str, jobs: int, null: str = "monte_carlo", draws: int = 999, **given: Any
) -> Measured:
    """Test rows that are read from a file block by block, never all at once."""
    scan = getattr(caltest.files, "scan", None)
    if scan is None:
        raise NotMeasured("caltest.files.scan does not exist in this version")
    statistic = statistic_of(**given)
    named = {} if statistic is None else {"statistic": statistic}

    def run(file: str = path) -> dict[str, Any]:
        how: Any = {"null": null, "n_resamples": draws, "rng": 0, "n_jobs": jobs, **named}
        result = caltest.test(scan(file), **how)
        return {"value": result.statistic, "pvalue": result.pvalue}

    run(few)
    return run


# ------------------------------------------------------------------ processes of their own


def import_time(*, jobs: int) -> Measured:
    """Import the package in a new process; what Python itself takes to start is left out."""
    code = "from time import perf_counter as now; s = now(); import caltest; print(now() - s)"
    _python("-c", code)  # whose bytecode is there from now on
    return lambda: {"seconds": float(_python("-c", code))}


def command(*, jobs: int, arguments: str, compiled: bool) -> Measured:
    """Run a command of the package; ``compiled`` or not: with loops that are there, or with none.

    Bytecode is there in both, as it is after an installation.
    """

    def run() -> dict[str, Any]:
        with TemporaryDirectory() as folder:
            _python("-m", "caltest", *arguments.split(), folder=None if compiled else folder)
        return {}

    run()
    return run


def first_audit(*, jobs: int) -> Measured:
    """Audit 1 000 rows twice in a new process that finds no loops: the first less the second."""
    code = """
import numpy as np, caltest
from time import perf_counter as now
rng = np.random.default_rng(0)
p = rng.random(1000)
y = (rng.random(1000) < p).astype(int)
s = now(); caltest.audit(p, y, rng=0); t = now(); caltest.audit(p, y, rng=0); print(2 * t - s - now())
"""

    def run() -> dict[str, Any]:
        with TemporaryDirectory() as folder:
            return {"seconds": float(_python("-c", code, folder=folder))}

    return run


def audit_of_file(*, jobs: int, page: bool) -> Measured:
    """Audit a file of 1 000 rows with one group column by a command, with a page or without."""
    folder = Path(mkdtemp())
    rng = np.random.default_rng(0)
    p = rng.random(1000).round(6)
    rows = zip(p, rng.random(1000) < p, rng.integers(0, 4, 1000), strict=True)
    text = "".join(f"{a},{int(b)},site {c}\n" for a, b, c in rows)
    (folder / "rows.csv").write_text(f"p,y,site\n{text}")
    options = [
        "--columns",
        "p",
        "--label",
        "y",
        "--group",
        "site",
        "--seed",
        "1",
        "--fail-on",
        "never",
    ]
    options += ["--report", str(folder / "page.html")] if page else []

    def run() -> dict[str, Any]:
        _python("-m", "caltest", "audit", str(folder / "rows.csv"), *options)
        return {}

    run()
    return run


def _python(*arguments: str, folder: str | None = None) -> str:
    """Return what Python prints, in an empty folder; PYTHONPATH says which package it is that runs."""
    env = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    env |= {} if folder is None else {"NUMBA_CACHE_DIR": folder}
    with TemporaryDirectory() as empty:
        return subprocess.run(
            [sys.executable, *arguments],
            cwd=empty, env=env, capture_output=True, text=True, check=True,
        ).stdout  # fmt: skip


# ------------------------------------------------------------------ the input, written to files


def write_input(
    *, n: int, m: int, probs: str, labels: str, table: str | None = None, seed: int = 0
) -> Measured:
    """Write a simulated input to files: of two classes uniform probabilities, of more those of M1.

    The model is calibrated, so that nothing ends early.
    """
    if m == 2:
        rng = np.random.default_rng(seed)
        chance = rng.random(n)
        rows, drawn = np.column_stack([1.0 - chance, chance]), (rng.random(n) < chance).astype(np.intp)
    else:
        simulated = caltest.simulation.tempered(n, [0.1] * m, temperature=1.0, rng=seed)
        rows, drawn = simulated.probs, simulated.labels
    np.save(probs, rows)
    np.save(labels, drawn)
    if table is not None:
        _write_table(rows, drawn, Path(table))
    return dict


def _write_table(rows: np.ndarray, drawn: np.ndarray, path: Path) -> None:
    import pyarrow as pa
    import pyarrow.csv
    import pyarrow.parquet

    if path.suffix == ".csv":
        rows = rows.round(7)  # as people write them
    columns = {f"{k}": rows[:, k] for k in range(rows.shape[1])}
    table = pa.table(columns | {"label": drawn})
    if path.suffix == ".csv":
        pyarrow.csv.write_csv(table, path)
    else:
        pyarrow.parquet.write_table(table, path, row_group_size=2**16)
