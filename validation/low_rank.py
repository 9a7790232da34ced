"""What a kernel of low rank costs in power, by its rank, and in the default test, by rows.

``python -m validation.low_rank --repetitions 200 --jobs 2`` and ``python -m validation.low_rank many``

1 000 rows of ten classes, three errors: a temperature too low (overconfident), a bias of the log-odds
of one class, and an error in a region of the simplex only. Every data set is tested by SKCE_uq with
the kernel itself and with approximations of rank 32 to 1 024; all tests are exact.

``many``: the default test with all pairs and with kernels of low rank, at both of its bandwidths, on
the same labels and draws: errors of ``validation/omnibus.py``, which shrink as the square root of the
rows grows, so that power stays between. ``lost`` is what low rank loses, with its standard error.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import Any

import joblib
import numpy as np
from numpy.typing import NDArray
from scipy.stats import binomtest
from threadpoolctl import threadpool_limits

import caltest
from caltest.data import Rows
from caltest.forms.kernel_matrices import Approximation
from caltest.simulation import log_dirichlet, tempered
from caltest.statistics import Omnibus, UnbiasedSKCE
from validation._designs import Design
from validation._study import command_line, markdown, write_csv
from validation.generative import classwise, local
from validation.omnibus import ROWS as OMNIBUS_ROWS
from validation.omnibus import SIZES, TRUTHS, pvalues

LEVEL, ROWS = 0.05, 1000
RANKS = (32, 64, 128, 256, 512, 1024)
ALPHA = [0.1] * 10
DESIGNS = (
    Design("calibrated", lambda seed: tempered(ROWS, ALPHA, temperature=1.0, rng=seed)),
    Design("temperature 0.8", lambda seed: tempered(ROWS, ALPHA, temperature=0.8, rng=seed)),
    Design("bias 0.4", lambda seed: classwise(ROWS, ALPHA, bias=0.4, rng=seed)),
    Design("local", lambda seed: local(ROWS, ALPHA, region=(0.5, 0.7), strength=0.5, rng=seed)),
)
APPROXIMATIONS: tuple[Approximation, ...] = ("nystrom", "fourier")
STATISTICS: dict[tuple[str, int], UnbiasedSKCE] = {
    ("none", ROWS): UnbiasedSKCE(),
    **{
        (how, rank): UnbiasedSKCE(approximation=how, rank=rank)
        for how in APPROXIMATIONS
        for rank in RANKS
    },
}


# ------------------------------------------------------------------ the default test, by rows


MANY = ((10, 1600), (10, 2800), (100, 1600), (3, 1600), (10, 5000))  # classes and rows
LIMIT = 0.02  # power lost from where on all pairs would stay


def _many(
    m: int, n: int, options: argparse.Namespace, seed: np.random.SeedSequence
) -> dict[tuple[str, float], NDArray[np.float64]]:
    """Return p-values (vectors, 2 × 3) of one set of predictions: of all pairs, and of low rank."""
    data, draws, truths = (int(each) for each in seed.generate_state(3))
    logs = log_dirichlet(n, np.full(m, 1.0 / m), data)
    predictions = Rows(np.exp(logs))
    blocks, cells = [predictions.sampler(draws).draw(0, options.resamples)], _cells(m, n)
    for number, (kind, size) in enumerate(cells):
        truth = TRUTHS[kind](logs, size)
        truth /= truth.sum(axis=1, keepdims=True)
        blocks.append(Rows(truth).sampler(truths + number).draw(0, options.vectors))
    labels, found = np.concatenate(blocks), []
    with threadpool_limits(1):
        for approximation in (None, "nystrom"):
            form = Omnibus(approximation=approximation).given(predictions)
            values = form.evidence(form.values(labels))
            found += [values[:, 0], values[:, 1], values.max(axis=1)]
    null, *others = np.split(np.column_stack(found), np.cumsum([len(b) for b in blocks])[:-1])
    return {c: pvalues(other, null, 1e-9) for c, other in zip(cells, others, strict=True)}


def _cells(m: int, n: int) -> list[tuple[str, float]]:
    """Return the errors: the smaller and the larger of each, for so many rows."""
    share, found = float(np.sqrt(OMNIBUS_ROWS / n)), []
    for kind, sizes in SIZES.items():
        power = kind.endswith("confident")
        found += [(kind, s**share if power else s * share) for s in sizes[m]]
    return [("calibrated", 0.0), *found]


def many(options: argparse.Namespace) -> None:
    """Compare the default test with all pairs and of low rank, and write the table as it grows."""
    rows = []
    for m, n in MANY:
        seeds = np.random.SeedSequence([options.seed, m, n]).spawn(options.sets)
        tasks = (joblib.delayed(_many)(m, n, options, seed) for seed in seeds)
        found = joblib.Parallel(n_jobs=options.jobs)(tasks)
        for kind, size in _cells(m, n):
            rejected = np.stack([each[kind, size] for each in found]) <= LEVEL  # sets, vectors, 6
            row = {
                "m": m,
                "n": n,
                "error": kind,
                "size": round(size, 4),
                "data_sets": rejected[..., 0].size,
            }
            for place, name in enumerate(("skce_uq/4", "skce_uq", "omnibus")):
                full, low = rejected[..., place], rejected[..., place + 3]
                by_set = (full.astype(float) - low).mean(axis=1)
                row |= {name: round(full.mean(), 4), f"{name}, low rank": round(low.mean(), 4)}
                error = by_set.std(ddof=1) / np.sqrt(len(by_set))
                row |= {f"lost, {name}": round(by_set.mean(), 4), f"error, {name}": round(error, 4)}
            rows.append(row)
        write_csv(rows, options.results / "low_rank_many.csv")
        print(f"{m} classes, {n} rows: done", flush=True)
    print(markdown(rows))


def parsed(arguments: Sequence[str] | None = None) -> argparse.Namespace:
    """Return the options."""
    given = command_line(str(__doc__), seed=20_261_121)
    given.add_argument("study", nargs="?", choices=("", "many"), default="")
    given.add_argument("--sets", type=int, default=40, help="of predictions, for many")
    given.add_argument("--vectors", type=int, default=10, help="of labels for a set and an error")
    given.add_argument("--repetitions", type=int, default=200, help="data sets a design")
    given.add_argument("--resamples", type=int, default=199)
    return given.parse_args(arguments)


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the study, print it and write it down."""
    options = parsed(arguments)
    if options.study == "many":
        many(options)
        return
    rows = []
    for number, design in enumerate(DESIGNS):
        seeds = np.random.SeedSequence(options.seed, spawn_key=(number,)).spawn(options.repetitions)
        tasks = (joblib.delayed(_pvalues)(number, options.resamples, seed) for seed in seeds)
        found = np.array(joblib.Parallel(n_jobs=options.jobs)(tasks))
        rows += [
            _row(design, how, rank, found[:, column]) for column, (how, rank) in enumerate(STATISTICS)
        ]
        print(f"{design.name}: done", flush=True)
    write_csv(rows, options.results / "low_rank_power.csv")
    print(markdown(rows))


def _pvalues(number: int, resamples: int, seed: np.random.SeedSequence) -> list[float]:
    data, tests = seed.spawn(2)
    simulated = DESIGNS[number].draw(data)
    with threadpool_limits(1):
        return [
            caltest.test(
                simulated.probs, simulated.labels, statistic, n_resamples=resamples, rng=tests
            ).pvalue
            for statistic in STATISTICS.values()
        ]


def _row(design: Design, approximation: str, rank: int, pvalues: NDArray[np.float64]) -> dict[str, Any]:
    rejected = int(np.count_nonzero(pvalues <= LEVEL))
    interval = binomtest(rejected, len(pvalues)).proportion_ci(0.95)
    return {
        "design": design.name,
        "approximation": approximation,
        "rank": rank,
        "rejected": rejected,
        "of": len(pvalues),
        "rate": round(rejected / len(pvalues), 3),
        "low": round(interval.low, 3),
        "high": round(interval.high, 3),
    }


if __name__ == "__main__":
    main()
