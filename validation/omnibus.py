"""Power of the omnibus statistic and of its parts, and of ways to combine them.

``python -m validation.omnibus``

Predictions are drawn from the symmetric Dirichlet distribution with parameters 1/m, 500 rows, and
labels from a truth that differs from them in one way (see `TRUTHS`); every error has two sizes, at
which the best single statistic has a power of about 0.75 and 0.95. Ten label vectors are drawn for
every set of predictions and error, and ranked among 499 draws under H0, which all of that set share:
each p-value is exact. ``best`` is the most powerful single statistic of the cell, ``ratio`` the
omnibus' power over its power. ``best_at_fourth`` says why it is below 1: the power of that best one
at a quarter of the level, which is what Bonferroni's correction for four parts would leave of it.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import joblib
import matplotlib.pyplot as plt
import numpy as np
from numpy.typing import NDArray
from scipy.special import log_softmax
from scipy.stats import binomtest
from threadpoolctl import threadpool_limits

from caltest.data import Rows
from caltest.forms import Combined, Component
from caltest.kernels import Exponential
from caltest.lenses import TopLabel
from caltest.pvalues import count
from caltest.simulation import log_dirichlet
from caltest.statistics import KolmogorovSmirnov, Omnibus, UnbiasedSKCE
from validation._study import CONFIDENCE, command_line, markdown, save, write_csv

Array = NDArray[np.float64]

ROWS, CLASSES, LEVEL = 500, (2, 3, 10, 100), 0.05
SINGLE = ("skce_uq/4", "skce_uq", "skce_uq*4", "ecd", "ks", "kuiper")
OWN = [0, 1, 3, 5]  # the omnibus' parts among them
COMBINED = ("min_p", "fisher", "cauchy", "min_p_of_six", "fisher_of_six", "cauchy_of_six")


# ------------------------------------------------------------------ truths


def temperature(logs: Array, t: float) -> Array:
    """Return the truth where predictions are too sharp (t < 1) or too flat."""
    return np.asarray(np.exp(log_softmax(t * logs, axis=1)))


def bias(logs: Array, shift: float) -> Array:
    """Return the truth where the logit of class 0 is too high by ``shift``."""
    moved = logs.copy()
    moved[:, 0] -= shift
    return np.asarray(np.exp(log_softmax(moved, axis=1)))


def noise(logs: Array, share: float) -> Array:
    """Return the truth where labels are uniformly wrong now and then."""
    return np.asarray((1.0 - share) * np.exp(logs) + share / logs.shape[1])


def local_confidence(logs: Array, error: float) -> Array:
    """Return a truth whose top class is likelier from .5 to .7, less likely to .9: zero in the mean.

    The second class takes, or gives, the rest.
    """
    truth = np.exp(logs)
    rows, order = np.arange(len(logs)), np.argsort(-logs, axis=1, kind="stable")
    top, second = truth[rows, order[:, 0]], truth[rows, order[:, 1]]
    sign = np.where(top < 0.7, 1.0, -1.0) * ((top >= 0.5) & (top <= 0.9))
    moved = np.clip(error * sign, -0.95 * top, 0.95 * second)
    truth[rows, order[:, 0]] += moved
    truth[rows, order[:, 1]] -= moved
    return truth


def local_groups(logs: Array, error: float) -> Array:
    """Return a truth in which the first half of the classes is likelier or less likely together.

    Where its probability is from .2 to .5 it is raised, from .5 to .8 lowered: zero in the mean.
    """
    truth = np.exp(logs)
    half = truth.shape[1] // 2
    share = truth[:, :half].sum(axis=1)
    sign = np.where(share < 0.5, 1.0, -1.0) * ((share >= 0.2) & (share <= 0.8))
    moved = error * sign
    truth[:, :half] *= (1.0 + moved / np.maximum(share, 1e-300))[:, None]
    truth[:, half:] *= (1.0 - moved / np.maximum(1.0 - share, 1e-300))[:, None]
    return np.clip(truth, 0.0, None)


TRUTHS: dict[str, Callable[[Array, float], Array]] = {
    "calibrated": lambda logs, _: np.exp(logs),
    "overconfident": temperature,
    "underconfident": temperature,
    "bias": bias,
    "noise": noise,
    "local, confidence": local_confidence,
    "local, groups": local_groups,
}
#: How large each error is, by the number of classes: the best single power is near .75 and .95.
SIZES: dict[str, dict[int, tuple[float, ...]]] = {
    "overconfident": {2: (0.79, 0.69), 3: (0.82, 0.77), 10: (0.855, 0.82), 100: (0.87, 0.84)},
    "underconfident": {2: (1.29, 1.4), 3: (1.23, 1.32), 10: (1.17, 1.25), 100: (1.16, 1.22)},
    "bias": {2: (0.35, 0.47), 3: (0.42, 0.55), 10: (0.9, 1.2), 100: (-3.1, -3.8)},
    "noise": {2: (0.065, 0.09), 3: (0.042, 0.065), 10: (0.016, 0.023), 100: (0.004, 0.01)},
    "local, confidence": {2: (0.12, 0.15), 3: (0.12, 0.145), 10: (0.12, 0.17), 100: (0.13, 0.18)},
    "local, groups": {2: (0.12, 0.165), 3: (0.145, 0.2), 10: (0.19, 0.25), 100: (0.22, 0.3)},
}
TUNING: dict[str, tuple[float, ...]] = {
    "overconfident": (0.9, 0.85, 0.8, 0.75, 0.7, 0.65, 0.6, 0.5),
    "underconfident": (1.1, 1.15, 1.2, 1.3, 1.4, 1.5, 1.7, 2.0),
    "bias": (0.2, 0.3, 0.4, 0.5, 0.6, 0.8, 1.0, 1.2, 1.5),
    "noise": (0.005, 0.01, 0.015, 0.02, 0.03, 0.05, 0.08, 0.12),
    "local, confidence": (0.04, 0.06, 0.08, 0.1, 0.12, 0.15, 0.2, 0.25, 0.3),
    "local, groups": (0.04, 0.06, 0.08, 0.1, 0.12, 0.15, 0.2),
}


# ------------------------------------------------------------------ one set of predictions


def candidates(predictions: Rows) -> Combined:
    """Return the single statistics, the omnibus' own parts as it has them."""
    own = Omnibus().given(predictions).components
    kernel = Exponential().fitted(predictions.probs)
    wide = UnbiasedSKCE(replace(kernel, bandwidth=4.0 * float(kernel.bandwidth)))
    if predictions.n_classes == 2:
        ks = Component("ks", KolmogorovSmirnov().given(predictions))
    else:
        view = TopLabel().show(predictions)
        ks = Component("ks", KolmogorovSmirnov().given(view.rows), view=view)
    fine, plain, entropic, cumulative = own
    return Combined((fine, plain, Component("wide", wide.given(predictions)), entropic, ks, cumulative))


def combinations(found: Array) -> Array:
    """Return min-p, Fisher's and Cauchy's combination of evidence (B, P), (B, 3)."""
    with np.errstate(divide="ignore"):
        p = np.clip(np.exp(-found), 1e-300, 1.0 - 1e-12)
        cauchy = np.mean(1.0 / np.tan(np.pi * p), axis=1)
    return np.column_stack([found.max(axis=1), found.sum(axis=1), cauchy])


def pvalues(observed: Array, draws: Array, resolution: float) -> Array:
    """Rank every row of ``observed`` (V, S) among the draws (B, S), column by column."""
    found = np.empty_like(observed)
    for column in range(observed.shape[1]):
        for row, value in enumerate(observed[:, column]):
            reached = count(draws[:, column], float(value), "greater", resolution)
            found[row, column] = (1 + reached) / (1 + len(draws))
    return found


def one_set(
    m: int, cells: list[tuple[str, float]], vectors: int, resamples: int, seed: np.random.SeedSequence
) -> dict[tuple[str, float], Array]:
    """Return the p-values (vectors, statistics) of every error, for one set of predictions."""
    data, draws, truths = (int(each) for each in seed.generate_state(3))
    logs = log_dirichlet(ROWS, np.full(m, 1.0 / m), data)
    predictions = Rows(np.exp(logs))
    form = candidates(predictions)
    blocks = [predictions.sampler(draws).draw(0, resamples)]
    for number, (kind, size) in enumerate(cells):
        truth = TRUTHS[kind](logs, size)
        truth /= truth.sum(axis=1, keepdims=True)
        blocks.append(Rows(truth).sampler(truths + number).draw(0, vectors))
    with threadpool_limits(1):
        found = form.evidence(form.values(np.concatenate(blocks)))
    values = np.hstack([found, combinations(found[:, OWN]), combinations(found)])
    null, *others = np.split(values, np.cumsum([len(block) for block in blocks])[:-1])
    return {
        cell: pvalues(other, null, form.resolution) for cell, other in zip(cells, others, strict=True)
    }


# ------------------------------------------------------------------ the study


def rates(
    m: int, cells: list[tuple[str, float]], options: argparse.Namespace
) -> Iterator[dict[str, Any]]:
    """Yield the rejection rates of every error with m classes."""
    seeds = np.random.SeedSequence([options.seed, m]).spawn(options.sets)
    given = (m, cells, options.vectors, options.resamples)
    tasks = (joblib.delayed(one_set)(*given, seed) for seed in seeds)
    found = joblib.Parallel(n_jobs=options.jobs)(tasks)
    for kind, size in cells:
        p = np.concatenate([each[kind, size] for each in found])
        names = (*SINGLE, *COMBINED)
        rate = dict(zip(names, (p <= LEVEL).mean(axis=0), strict=True))
        best = max(SINGLE, key=lambda name: rate[name])
        limits = binomtest(int((p[:, len(SINGLE)] <= LEVEL).sum()), len(p)).proportion_ci(CONFIDENCE)
        row = {"m": m, "n": ROWS, "error": kind, "size": size, "data_sets": len(p)}
        row |= {name: round(float(value), 4) for name, value in rate.items()}
        row |= {"omnibus": row["min_p"], "low": round(limits.low, 4), "high": round(limits.high, 4)}
        row |= {"best": best, "ratio": round(rate["min_p"] / max(rate[best], 1e-9), 3)}
        fourth = p[:, SINGLE.index(best)] <= LEVEL / len(OWN)
        yield row | {"best_at_fourth": round(float(fourth.mean()), 4)}


def power(options: argparse.Namespace) -> None:
    """Write the table as its rows come, and print it."""
    rows: list[dict[str, Any]] = []
    for m in options.classes:
        cells = [("calibrated", 0.0)]
        cells += [(kind, size) for kind, sizes in SIZES.items() for size in sizes[m]]
        rows += rates(m, cells, options)
        write_csv(rows, options.results / "omnibus_power.csv")
    print(markdown(rows))
    picture(rows, options.results / "omnibus_power.png")


def tune(options: argparse.Namespace) -> None:
    """Print the best single power over a range of sizes."""
    for m in options.classes:
        cells = [(kind, size) for kind, sizes in TUNING.items() for size in sizes]
        for row in rates(m, cells, options):
            print(m, row["error"], row["size"], row["best"], row[row["best"]], row["min_p"], flush=True)


def picture(rows: Iterable[dict[str, Any]], path: Path) -> None:
    """Draw the power of the omnibus and of the kernel statistic against that of the best single one."""
    wrong = [row for row in rows if row["error"] != "calibrated"]
    figure, axes = plt.subplots(figsize=(6, 5.4), layout="constrained")
    best = [row[row["best"]] for row in wrong]
    axes.plot([0, 1], [0, 1], color="0.6", lw=1)
    axes.plot([0, 1], [0, 0.9], color="0.6", lw=1, ls=":")
    for shown, mark in (("omnibus", "o"), ("skce_uq", "x"), ("ecd", "+")):
        axes.plot(best, [row[shown] for row in wrong], mark, label=shown, alpha=0.8)
    axes.set(
        xlabel="power of the best single statistic", ylabel="power", xlim=(0.5, 1.01), ylim=(0, 1.02)
    )
    axes.legend(loc="lower left", frameon=False)
    axes.set_title("500 rows, level 0.05; dotted: nine tenths of the best", fontsize=10)
    save(figure, path, dpi=120)


def parsed(arguments: Sequence[str] | None = None) -> argparse.Namespace:
    """Return the options."""
    given = command_line(__doc__, seed=20_261_121)
    given.add_argument("--sets", type=int, default=200, help="of predictions")
    given.add_argument("--vectors", type=int, default=10, help="of labels for a set and an error")
    given.add_argument("--resamples", type=int, default=499)
    given.add_argument("--classes", type=int, nargs="+", choices=CLASSES, default=list(CLASSES))
    given.add_argument("--tune", action="store_true", help="print powers over a range of sizes")
    return given.parse_args(arguments)


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the study, or look for sizes."""
    options = parsed(arguments)
    (tune if options.tune else power)(options)


if __name__ == "__main__":
    main()
