"""Members of ensembles, posterior draws, paths: size of every statistic, joint power, strata, others.

``python -m validation members``.

*Sizes* (``members.csv``; designs added up, ``members_summary.csv``): 2, 9, 20 and 100 members, 100
rows, numbers and whole numbers with ties; vectors of three entries with correlation .9, and paths of
eight horizons of an autoregression; every statistic that members have, on shared data sets and draws.

*Joint* (``members_joint.csv``): two entries whose correlation is .5 and stated as 0, 20 members: shares
of data sets in which one joint audit, pairs of entries, scores and marginal ranks reject at 5%; and the
same of vectors that are calibrated.

*Groups* (``members_groups.csv``): calibrated ensembles, 1,000 rows that are alike, the top tenth by the
mean or the spread of the members, or of the pool of members and outcome; and the default audit, which
cuts rows into tenths of the latter.

*Others* (``members_others.csv``): tests of other packages, written down from their formulas, and ours
on the same data: calibrated, and with draws that are too wide or too narrow.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np
from scipy.special import betainc, logsumexp
from scipy.stats import kstest

import caltest
from caltest.predictive import Members
from validation import _sizes
from validation._cells import Options, Row, counted
from validation._sizes import LABELS, Cell, Data
from validation._study import write_csv

SEED = 20_261_125
N = 100
SIZES = (2, 9, 20, 100)
HORIZONS = 8

PIT = ("pit_ks", "pit_kuiper", "pit_cvm", "pit_ad", "pit_chi2", "bias", "spread", "coverage")
OF_NUMBERS = (*PIT, "crps", "skce_uq", "omnibus")
OF_RANKS = ("pit_ks", "bias", "spread")
LENSES = ("entry:0", "pair:0,1", "ranks:average", "ranks:band_depth")

Array = np.ndarray


def correlated(rng: np.random.Generator, shape: tuple[int, ...], correlation: float) -> Array:
    """Draw standard normal vectors, all of whose entries have a correlation."""
    shared = rng.normal(size=(*shape[:-1], 1))
    own = rng.normal(size=shape)
    return np.asarray(correlation**0.5 * shared + (1.0 - correlation) ** 0.5 * own)


def path(rng: np.random.Generator, shape: tuple[int, ...]) -> Array:
    """Draw paths of an autoregression that begins at 0, horizons last."""
    steps = rng.normal(size=shape)
    for horizon in range(1, shape[-1]):
        steps[..., horizon] += 0.8 * steps[..., horizon - 1]
    return steps


def numbers(size: int, whole: bool, seed: np.random.SeedSequence) -> Data:
    """Draw members and outcomes that are exchangeable."""
    rng = np.random.default_rng(seed)
    pool = rng.normal(size=(N, 1)) + rng.uniform(0.5, 2.0, (N, 1)) * rng.normal(size=(N, size + 1))
    pool = np.round(pool) if whole else pool
    return Data(Members(pool[:, 1:]), pool[:, 0])


def vectors(size: int, kind: str, lens: str | None, seed: np.random.SeedSequence) -> Data:
    """Draw vectors or paths."""
    rng = np.random.default_rng(seed)
    if kind == "vectors":
        pool = rng.normal(size=(N, 1, 3)) + correlated(rng, (N, size + 1, 3), 0.9)
    else:
        pool = rng.normal(size=(N, 1, 1)) + path(rng, (N, size + 1, HORIZONS))
    return Data(Members(pool[:, 1:]), pool[:, 0], {} if lens is None else {"lens": lens})


def cells() -> Iterator[Cell]:
    """Yield the cells; new ones go to the end."""
    number = 0
    for size in SIZES:
        for whole in (False, True):
            design = f"{size} members, {'whole numbers' if whole else 'numbers'}"
            yield Cell(number, design, partial(numbers, size, whole), LABELS, OF_NUMBERS, 600)
            number += 1
    for kind in ("vectors", "paths"):
        for size in (2, 20):
            for lens in (None, *LENSES):
                design = f"{size} members, {kind}" + ("" if lens is None else f", {lens}")
                statistics = ("energy",) if lens is None else OF_RANKS
                yield Cell(number, design, partial(vectors, size, kind, lens), LABELS, statistics, 600)
                number += 1


# ------------------------------------------------------------------ joint


ROWS, DRAWS = (60, 100), 20
RIVALS: dict[str, Callable[[Any, Array, dict[str, Any]], float]] = {
    "joint audit": lambda law, y, given: caltest.audit(law, y, n_jobs=1, **given).pvalue,
    "pair": lambda law, y, given: caltest.test(law, y, "bias", lens="pair:0,1", **given).pvalue,
    "energy": lambda law, y, given: caltest.test(law, y, "energy", **given).pvalue,
    "marginal ranks": lambda law, y, given: 2.0 * min(
        caltest.test(law, y, "pit_ks", lens=f"entry:{k}", **given).pvalue for k in range(2)
    ),
}  # fmt: skip


def rejected(rows: int, correlation: float, seed: np.random.SeedSequence) -> dict[str, bool]:
    """Say what rejects at 5% that entries are independent, as stated."""
    rng = np.random.default_rng(seed)
    centre = rng.normal(size=(rows, 2))
    law = Members(centre[:, None] + rng.normal(size=(rows, DRAWS, 2)))
    outcomes = centre + correlated(rng, (rows, 2), correlation)
    given = {"n_resamples": 199, "rng": int(rng.integers(2**31))}
    return {name: rival(law, outcomes, given) <= 0.05 for name, rival in RIVALS.items()}


# ------------------------------------------------------------------ groups


TENTHS = ("mean of members", "mean of pool", "spread of members", "spread of pool")


def in_tenths(size: int, seed: np.random.SeedSequence) -> dict[str, bool]:
    """Say in which top tenths of calibrated ensembles a test rejects at 5%, and if an audit does."""
    rng = np.random.default_rng(seed)
    pool = rng.normal(size=(1000, size + 1))
    given: dict[str, Any] = {"n_resamples": 199, "rng": int(rng.integers(2**31))}
    found = {}
    for name in TENTHS:
        known = pool[:, 1:] if name.endswith("members") else pool
        by = known.mean(axis=1) if name.startswith("mean") else known.std(axis=1)
        top = np.argsort(by)[-100:]
        statistic = "bias" if name.startswith("mean") else "spread"
        result = caltest.test(Members(pool[top, 1:]), pool[top, 0], statistic, **given)
        found[name] = result.pvalue <= 0.05
    return found | {
        "audit": caltest.audit(Members(pool[:, 1:]), pool[:, 0], n_jobs=1, **given).rejected
    }


# ------------------------------------------------------------------ other packages' tests


def continuous_ranks(draws: Array, truth: Array, _: np.random.Generator) -> float:
    """Kolmogorov–Smirnov of ranks 0, …, L against the uniform law on (0, L), as sbi's ``check_sbc``."""
    ranks = (draws < truth[:, None]).sum(axis=1)
    return float(kstest(ranks, "uniform", args=(0.0, draws.shape[1])).pvalue)


def curve_and_grid(draws: Array, truth: Array, rng: np.random.Generator) -> float:
    """Two-sample Kolmogorov–Smirnov of a coverage curve and its grid, as sbi's ``check_tarp``.

    Coverage is the share of draws closer than the truth to a random reference (Lemos et al. 2023).
    """
    reference = rng.uniform(truth.min(axis=0), truth.max(axis=0), truth.shape)
    inside = (distance(draws, reference[:, None]) < distance(truth, reference)[:, None]).mean(axis=1)
    counts, grid = np.histogram(inside, bins=len(truth) // 10)
    return float(kstest(np.append(0.0, np.cumsum(counts) / len(truth)), grid).pvalue)


def distance(points: Array, others: Array) -> Array:
    """Return Euclidean distances."""
    return np.asarray(np.sqrt(((points - others) ** 2).sum(axis=-1)))


def ordered_pit(draws: Array, truth: Array, _: np.random.Generator) -> float:
    """Order statistics of smoothed PIT values, the default of arviz-stats' posterior predictive checks.

    Every ordered value has a beta law; p-values below ½ are combined as Cauchy numbers (Tesso and
    Vehtari 2026, Equation 24).
    """
    n = len(truth)
    least, place = 1e-4 / draws.shape[1], np.arange(1, n + 1)
    ordered = np.sort(smoothed(draws, truth).clip(least, 1.0 - least))
    below = betainc(place, place[::-1], ordered)
    p = 2.0 * np.minimum(below, 1.0 - below)
    return float(0.5 - np.arctan(np.where(p < 0.5, np.tan((0.5 - p) * np.pi), 0.0).mean()) / np.pi)


def smoothed(draws: Array, truth: Array) -> Array:
    """Return shares of draws below, with generalised Pareto tails."""
    size = draws.shape[1]
    tail = int(3.0 * size**0.5) if size > 225 else size // 5
    found = (draws < truth[:, None]).mean(axis=1)
    for sign in (-1.0, 1.0):
        ordered = np.sort(sign * draws, axis=1)
        cut, over = ordered[:, -tail - 1], sign * truth - ordered[:, -tail - 1]
        rows = np.flatnonzero(over > 0.0)
        shape, scale = pareto(ordered[rows, -tail:] - cut[rows, None])
        beyond = np.maximum(1.0 + shape * over[rows] / scale, 0.0) ** (-1.0 / shape) * tail / size
        found[rows] = beyond if sign < 0.0 else 1.0 - beyond
    return found


def pareto(sorted_: Array) -> tuple[Array, Array]:
    """Fit generalised Pareto laws to rows (Zhang and Stephens 2009; Vehtari et al. 2024, Appendix)."""
    n = sorted_.shape[1]
    m = 30 + int(n**0.5)
    steps = 1.0 - np.sqrt(m / (np.arange(1, m + 1) - 0.5))
    slopes = steps / (3.0 * sorted_[:, [int(n / 4 + 0.5) - 1]]) + 1.0 / sorted_[:, [-1]]
    shapes = np.log1p(-slopes[:, :, None] * sorted_[:, None]).mean(axis=2)
    likelihood = n * (np.log(-slopes / shapes) - shapes - 1.0)
    weights = np.exp(likelihood - logsumexp(likelihood, axis=1, keepdims=True))
    slope = (weights * slopes).sum(axis=1)
    shape = np.log1p(-slope[:, None] * sorted_).mean(axis=1)
    return (n * shape + 5.0) / (n + 10.0), -shape / slope


def others() -> Iterator[tuple[str, str, int, int, int, float, Callable[..., float]]]:
    """Yield a test, ours, rows, draws, entries (0: numbers), a wrong spread, and its function."""
    for draws in (20, 100, 1000):
        yield "ranks against a continuous law", "pit_ks", 1000, draws, 0, 0.9, continuous_ranks
    for draws in (100, 1000):
        yield "ordered smoothed PIT", "pit_ad", 300, draws, 0, 0.85, ordered_pit
    yield "coverage curve against its grid", "energy", 1000, 100, 2, 1.2, curve_and_grid


def side_by_side(
    theirs: Callable[..., float],
    ours: str,
    rows: int,
    draws: int,
    entries: int,
    wrong: float,
    seed: np.random.SeedSequence,
) -> dict[str, bool]:
    """Say whether their test and ours reject at 5%: calibrated draws, then of a wrong spread."""
    rng = np.random.default_rng(seed)
    found = {}
    for what, scale in (("level", 1.0), ("power", wrong)):
        shape = (entries,) * bool(entries)
        centre = rng.normal(size=(rows, *shape))
        members = centre[:, None] + scale * rng.normal(size=(rows, draws, *shape))
        truth = centre + rng.normal(size=(rows, *shape))
        given: dict[str, Any] = {"n_resamples": 199, "rng": int(rng.integers(2**31))}
        found[what] = theirs(members, truth, rng) <= 0.05
        found[f"ours_{what}"] = caltest.test(Members(members), truth, ours, **given).pvalue <= 0.05
    return found


# ------------------------------------------------------------------ run


def _line(row: Row) -> Row:
    """Keep whole numbers, of which values tie, apart, and what is seen through lenses."""
    words = row["design"].split(", ")
    return {"statistic": row["statistic"], "null": row["null"], "predicted": ", ".join(words[1:])}


def run(options: Options) -> None:
    """Run the cells, and judge them by design and statistic; joint power; groups; other tests."""
    table = _sizes.run(cells(), "members.csv", options, SEED)
    if table.where():
        write_csv(_sizes.summary(table, _line), options.results / "members_summary.csv")
    joint = (
        (100 + number, {"rows": rows, "correlation": rho}, partial(rejected, rows, rho))
        for number, (rows, rho) in enumerate((rows, rho) for rows in ROWS for rho in (0.0, 0.5))
    )
    counted("members_joint", joint, options, SEED, 1000)
    groups = ((200 + k, {"members": n}, partial(in_tenths, n)) for k, n in enumerate((9, 20, 50)))
    counted("members_groups", groups, options, SEED, 200)
    tests = (
        (300 + number, {"test": test, "ours": ours, "rows": rows, "draws": draws},
         partial(side_by_side, theirs, ours, rows, draws, entries, wrong))
        for number, (test, ours, rows, draws, entries, wrong, theirs) in enumerate(others())
    )  # fmt: skip
    counted("members_others", tests, options, SEED, 500)
