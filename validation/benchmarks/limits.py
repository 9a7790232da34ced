"""The machine's own limits, on one core: rates of what the work is made of, and its least time.

Rates are the best of many short runs on blocks that fit in the second-level cache. No program on this
core does the same arithmetic, with the same libraries, in less than the least time; that is what
measured times are divided by.
"""

from __future__ import annotations

import importlib.metadata
import os
import platform
from collections.abc import Callable
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np

from validation.benchmarks.child import Measured

TILE, WIDE, COLUMNS = 256, 512, 256  # rows of a tile; of one that is multiplied with many columns
INNER = (2, 10, 1000)  # classes

Rates = dict[str, float]


def rates(*, seconds: float = 0.3) -> Measured:
    """Return a function that measures all rates, a second; each for so long."""
    works = _works()
    return lambda: {"rates": {name: _rate(*work, seconds) for name, work in works.items()}}


def _works() -> dict[str, tuple[Callable[[], object], float]]:
    rng = np.random.default_rng(0)
    works: dict[str, tuple[Callable[[], object], float]] = {}
    for name, dtype in (("float64", np.float64), ("float32", np.float32)):
        tile = (rng.random((TILE, TILE)) - 1.0).astype(dtype)
        works[f"exp {name}"] = (_exp(tile), tile.size)
        for inner in INNER:
            left, right = (rng.random(shape).astype(dtype) for shape in ((TILE, inner), (inner, TILE)))
            works[f"product {name} {TILE}x{inner}x{TILE}"] = (
                _product(left, right),
                2.0 * TILE * TILE * inner,
            )
        wide, many = (rng.random(shape).astype(dtype) for shape in ((WIDE, WIDE), (WIDE, COLUMNS)))
        works[f"product {name} {WIDE}x{WIDE}x{COLUMNS}"] = (
            _product(wide, many),
            2.0 * WIDE * WIDE * COLUMNS,
        )
        works[f"uniform {name}"] = (_uniform(rng, dtype), TILE * TILE)
    return works


def _exp(tile: np.ndarray) -> Callable[[], object]:
    out = np.empty_like(tile)
    return lambda: np.exp(tile, out=out)


def _product(left: np.ndarray, right: np.ndarray) -> Callable[[], object]:
    out = np.empty((left.shape[0], right.shape[1]), left.dtype)
    return lambda: np.matmul(left, right, out=out)


def _uniform(rng: np.random.Generator, dtype: Any) -> Callable[[], object]:
    out: np.ndarray = np.empty(TILE * TILE, dtype)
    return lambda: rng.random(out=out, dtype=dtype)


def _rate(work: Callable[[], object], amount: float, seconds: float) -> float:
    work()
    best, start = float("inf"), perf_counter()
    while perf_counter() - start < seconds:
        before = perf_counter()
        work()
        best = min(best, perf_counter() - before)
    return amount / best


def machine() -> dict[str, object]:
    """Return what the rates are of."""
    info = Path("/proc/cpuinfo")
    names = (
        [line for line in info.read_text().splitlines() if "model name" in line]
        if info.exists()
        else []
    )
    return {
        "processor": names[0].partition(":")[2].strip() if names else platform.processor(),
        "cores": os.cpu_count(),
        "system": platform.platform(terse=True),
        "python": platform.python_version(),
        **{name: importlib.metadata.version(name) for name in ("numpy", "numba")},
    }


# ------------------------------------------------------------------ the least time


def least_seconds(
    kind: str, n: int, m: int, rates: Rates, *, draws: int = 0, jobs: int = 1, dtype: str = "float64"
) -> float | None:
    """Return the least time of some work with these rates; None where no limit is stated.

    Parameters
    ----------
    kind
        "pairs": one exponential and one inner product of m numbers for each of n²/2 pairs of rows.
        Distances that are no products, such as the total variation, come on top of it. "null": the
        same, the quadratic form of m − 1 columns (residuals sum to 0) a draw, through half of the
        matrix, and n uniform numbers a draw. "draws": the n uniform numbers a draw. "": none.
    n, m
        Rows and classes.
    draws
        Of the labels.
    jobs
        Cores: with two, half the time.
    """
    if not kind or not rates:
        return None
    pairs, uniforms = 0.5 * n**2, n * draws / rates[f"uniform {dtype}"]
    inner = min(INNER, key=lambda known: abs(known - m))
    each = 1.0 / rates[f"exp {dtype}"] + 2.0 * m / rates[f"product {dtype} {TILE}x{inner}x{TILE}"]
    wide = rates[f"product {dtype} {WIDE}x{WIDE}x{COLUMNS}"]
    seconds = {
        "pairs": pairs * each,
        "null": pairs * each + pairs * 2.0 * (m - 1) * draws / wide + uniforms,
        "draws": uniforms,
    }[kind]
    return seconds / jobs
