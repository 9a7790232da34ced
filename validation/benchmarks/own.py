"""What is measured of caltest: functions of the input that return what is to be run.

All go through the public functions, checks of the input included.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import caltest
from caltest.binning import EqualWidth
from caltest.kernels import Exponential, Gaussian
from caltest.statistics import ECE, STATISTICS, LinearSKCE, Statistic, UnbiasedSKCE
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
    return lambda: {"value": caltest.estimate(seen, labels, statistic, lens=lens, n_jobs=jobs)}


def pvalue(
    probs: np.ndarray,
    labels: np.ndarray,
    *,
    jobs: int,
    null: str = "monte_carlo",
    draws: int = 999,
    lens: str | None = None,
    **given: Any,
) -> Measured:
    """Test, with the exact null unless another is named."""
    statistic, seen = statistic_of(**given), _one_column(probs)
    named = {} if statistic is None else {"statistic": statistic}
    how: Any = {"null": null, "n_resamples": draws, "lens": lens, "rng": 0, "n_jobs": jobs, **named}

    def run() -> dict[str, Any]:
        result = caltest.test(seen, labels, **how)
        return {"value": result.statistic, "pvalue": result.pvalue}

    return run


def from_file(
    *, path: str, few: str, jobs: int, null: str = "monte_carlo", draws: int = 999, **given: Any
) -> Measured:
    """Test rows that are read from a Parquet file block by block, never all at once."""
    scan = getattr(caltest.files, "scan", None)
    if scan is None:
        raise NotMeasured("caltest.files.scan does not exist in this version")
    statistic = statistic_of(**given)

    def run(file: str = path) -> dict[str, Any]:
        how: Any = {"null": null, "n_resamples": draws, "rng": 0, "n_jobs": jobs}
        result = caltest.test(scan(file), statistic=statistic, **how)
        return {"value": result.statistic, "pvalue": result.pvalue}

    run(few)
    return run


# ------------------------------------------------------------------ the input, written to files


def write_input(
    *, n: int, m: int, probs: str, labels: str, parquet: str | None = None, seed: int = 0
) -> Measured:
    """Write a simulated input to files: of two classes uniform probabilities, of more those of M1.

    The model is calibrated, so that nothing ends early.
    """
    if m == 2:
        rng = np.random.default_rng(seed)
        chance = rng.random(n)
        rows, drawn = np.column_stack([1.0 - chance, chance]), (rng.random(n) < chance).astype(np.intp)
    else:
        simulated = caltest.simulation.m1(n, m, rng=seed)
        rows, drawn = simulated.probs, simulated.labels
    np.save(probs, rows)
    np.save(labels, drawn)
    if parquet is not None:
        _write_parquet(rows, drawn, Path(parquet))
    return dict


def _write_parquet(rows: np.ndarray, drawn: np.ndarray, path: Path) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    columns = {f"{k}": rows[:, k] for k in range(rows.shape[1])}
    pq.write_table(pa.table(columns | {"label": drawn}), path, row_group_size=2**16)
