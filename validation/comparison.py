"""How `caltest.compare` keeps its level, what it finds, and how stable rankings of networks are.

``python -m validation.comparison tests --repetitions 1000 --jobs 2``: rejection rates of the pairwise
test at level .05. Every design has two models of the same rows and labels, with a truth g ~ Dir(α):

* equal: A puts the log-odds of class 0 too high by 1, B those of class 1: equal errors by symmetry;
* calibrated: A states g in a random half of the rows and the mean of g in the others, B the other way
  round: both calibrated and alike, so that the first-order term of the variance is 0;
* uninformed: A states g, B the mean of g in half of the rows: both calibrated, spread differently, so
  that biased statistics differ;
* sharper: A is too confident by a logit factor 1.25, B by 2;
* found: A is calibrated, B has its class 0 too high by 1.

``python -m validation.comparison levels --repetitions 5000 --jobs 2``: the same at .05, .01 and .001
with few rows of two classes, where errors are equal:

* half: A states the truth q ~ U(.05, .95), B its mean 1/2: both calibrated;
* swapped: each states the truth in half of the rows and 1/2 in the others, A where B does not: alike;
* rare: A states q ~ Beta(1, 19), B its mean .05: both calibrated;
* mirrored: A states q + .15, B q − .15, q ~ U(.2, .8): errors of equal size, and opposite;
* tempered: A multiplies the log-odds of q by 1.5, B divides them: signs differ, sizes nearly equal.

``python -m validation.comparison clusters --repetitions 400``: the first three designs at .05 where
rows of a cluster err together, drawn as by validation/clusters.py: by the comparison of rows in
clusters, and by that of rows taken as independent. Of two classes "equal" errors of "esce" are
opposite; clusters of "1–9" rows have any of these sizes, with equal chances.

``python -m validation.comparison networks --resamples 1000 --jobs 2``: DenseNet-121, ResNet-18,
VGG-19, GoogLeNet and DenseNet-40 on the CIFAR-10 test set. Their labels agree row by row, so all five
are ranked jointly; how often 500 rows give the order of all 10 000. Published, on other networks and
1000 subsamples of 500: CKCE 700, JKCE about 50%.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterable, Sequence
from time import perf_counter
from typing import Any, NamedTuple

import joblib
import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, logit, softmax
from scipy.stats import binomtest
from threadpoolctl import threadpool_limits

import caltest
from caltest.statistics import CKCE, ECE, JKCE, Statistic
from validation._study import CONFIDENCE, REFERENCE, command_line, markdown, write_csv
from validation.clusters import Design
from validation.clusters import draw as draw_clusters

Array = NDArray[np.float64]
Pair = dict[str, Array]

LEVEL = 0.05
ALPHAS = {"m=3, alpha=1": np.ones(3), "m=10, alpha=.1": np.full(10, 0.1)}
SIZES = (250, 500)
LEVELS = (0.05, 0.01, 0.001)
FEW_ROWS = (20, 50, 100, 200)
FEW_DESIGNS = ("half", "swapped", "rare", "mirrored", "tempered")
SIGNED = ("ecd", "esce", "brier", "citl", "spiegelhalter")
U_STATISTICS = ("skce_uq", "jkce")
NETWORKS = ("densenet121", "resnet18", "vgg19_bn", "googlenet")


# ------------------------------------------------------------------ size and power


def stated(g: Array, factor: float = 1.0, target: int | None = None, bias: float = 1.0) -> Array:
    """Return g with its logits multiplied by a factor, and those of one class raised."""
    logits = factor * np.log(np.maximum(g, 1e-300))
    if target is not None:
        logits[:, target] += bias
    return np.asarray(softmax(logits, axis=1))


def hidden(g: Array, rows: NDArray[np.bool_]) -> Array:
    """Return g, and its mean (all classes alike) in some rows."""
    return np.where(rows[:, None], 1.0 / g.shape[1], g)


DESIGNS: dict[str, Callable[[Array, NDArray[np.bool_]], Pair]] = {
    "equal": lambda g, _: {"a": stated(g, target=0), "b": stated(g, target=1)},
    "calibrated": lambda g, coin: {"a": hidden(g, coin), "b": hidden(g, ~coin)},
    "uninformed": lambda g, coin: {"a": g, "b": hidden(g, coin)},
    "sharper": lambda g, _: {"a": stated(g, 1.25), "b": stated(g, 2.0)},
    "found": lambda g, _: {"a": g, "b": stated(g, target=0)},
}


def draw(design: str, n: int, alpha: Array, rng: np.random.Generator) -> tuple[Pair, NDArray[np.intp]]:
    """Draw two models of the same rows, and the labels."""
    g = rng.dirichlet(alpha, n)
    labels = (rng.random((n, 1)) > g.cumsum(axis=1)[:, :-1]).sum(axis=1)
    return DESIGNS[design](g, rng.random(n) < 0.5), labels


def pvalue(
    design: str, alpha: str, n: int, statistic: str, resamples: int, seed: np.random.SeedSequence
) -> float:
    """Draw one data set and compare its two models."""
    data, test = seed.spawn(2)
    models, labels = draw(design, n, ALPHAS[alpha], np.random.default_rng(data))
    with threadpool_limits(1):
        found = caltest.compare(models, labels, statistic, n_resamples=resamples, rng=test)
    return float(found.pvalues[0, 1])


def repeated(
    options: argparse.Namespace, of_seed: Callable[..., Any], statistic: str, *cell: object, fast: bool
) -> Array:
    """Return the p-values of many data sets of a cell, which are the same for all statistics.

    ``of_seed(*cell, statistic, resamples, seed)`` is called for every one, fewer where that is slow.
    """
    start = perf_counter()
    called = [str(each) for each in cell]
    count = options.repetitions if fast else options.slow_repetitions
    resamples = 2 if statistic in U_STATISTICS else options.resamples  # they need none
    key = [ord(letter) for letter in "".join(called)]
    seeds = np.random.SeedSequence([options.seed, *key]).spawn(count)
    tasks = (joblib.delayed(of_seed)(*cell, statistic, resamples, seed) for seed in seeds)
    found = np.array(joblib.Parallel(n_jobs=options.jobs)(tasks))
    print(f"{' '.join([statistic, *called])}: {perf_counter() - start:.0f} s", flush=True)
    return found


def rate(pvalues: Array) -> dict[str, Any]:
    """Return how many are at most LEVEL, with the interval of the rate."""
    rejections = int(np.count_nonzero(pvalues <= LEVEL))
    interval = binomtest(rejections, len(pvalues)).proportion_ci(CONFIDENCE)
    return {
        "of": len(pvalues),
        "rate": round(rejections / len(pvalues), 4),
        "low": round(interval.low, 4),
        "high": round(interval.high, 4),
    }


def test_rates(options: argparse.Namespace) -> Iterable[dict[str, Any]]:
    """Yield the rejection rate of every design, size and statistic."""
    cells = [(s, d, a, n) for s in options.statistics for d in DESIGNS for a in ALPHAS for n in SIZES]
    for statistic, design, alpha, n in cells:
        exact = statistic in U_STATISTICS
        found = repeated(options, pvalue, statistic, design, alpha, n, fast=exact)
        yield {
            "statistic": statistic,
            "design": design,
            "predictions": alpha,
            "n": n,
            "resamples": "" if exact else options.resamples,
            "found": int(np.count_nonzero(found <= LEVEL)),
            **rate(found),
        }


# ------------------------------------------------------------------ level with few rows


def few_rows(rng: np.random.Generator, n: int) -> dict[str, tuple[Array, Array, Array]]:
    """Return the truth and both models of every design of few rows, all probabilities of class 1."""
    wide, middle, seldom = rng.uniform(0.05, 0.95, n), rng.uniform(0.2, 0.8, n), rng.beta(1, 19, n)
    coin, half, odds = rng.random(n) < 0.5, np.full(n, 0.5), logit(wide)
    return {
        "half": (wide, wide, half),
        "swapped": (wide, np.where(coin, wide, half), np.where(coin, half, wide)),
        "rare": (seldom, seldom, np.full(n, 0.05)),
        "mirrored": (middle, middle + 0.15, middle - 0.15),
        "tempered": (wide, expit(1.5 * odds), expit(odds / 1.5)),
    }


def level_pvalue(
    design: str, n: int, statistic: str, resamples: int, seed: np.random.SeedSequence
) -> float:
    """Draw one data set of two classes and compare its two models."""
    data, test = seed.spawn(2)
    rng = np.random.default_rng(data)
    truth, one, other = few_rows(rng, n)[design]
    labels = (rng.random(n) < truth).astype(np.intp)
    with threadpool_limits(1):
        found = caltest.compare(
            {"a": one, "b": other}, labels, statistic, n_resamples=resamples, rng=test
        )
    return float(found.pvalues[0, 1])


def level_rates(options: argparse.Namespace) -> Iterable[dict[str, Any]]:
    """Yield the rejection rates of every design with few rows, and statistic."""
    cells = [(s, d, n) for s in options.statistics for d in FEW_DESIGNS for n in options.sizes]
    for statistic, design, n in cells:
        fast = statistic in (*U_STATISTICS, *SIGNED)
        found = repeated(options, level_pvalue, statistic, design, n, fast=fast)
        row: dict[str, Any] = {"statistic": statistic, "design": design, "n": n, "of": len(found)}
        for level in LEVELS:
            rejections = int(np.count_nonzero(found <= level))
            row[f"at {level}"] = round(rejections / len(found), 4)
            top = binomtest(rejections, len(found)).proportion_ci(CONFIDENCE).high
            row[f"high {level}"] = round(top, 4)
        yield row


# ------------------------------------------------------------------ level of rows in clusters


class InClusters(NamedTuple):
    """Clusters that are drawn, and whether some of their rows are left out, so that sizes differ."""

    drawn: Design
    uneven: bool = False

    @property
    def cells(self) -> dict[str, Any]:
        """What it is called in the table."""
        of, size = self.drawn, f"1–{self.drawn.size}" if self.uneven else str(self.drawn.size)
        return {"clusters": of.clusters, "rows": size, "classes": of.classes, "latent": of.correlation}

    def __str__(self) -> str:
        return str(self.cells)


IN_CLUSTERS = (
    InClusters(Design(200, 10, 2, 0.5)),
    InClusters(Design(40, 5, 3, 0.5)),
    InClusters(Design(100, 5, 3, 0.5)),
    InClusters(Design(100, 9, 3, 0.5), uneven=True),
)
CLUSTER_DESIGNS = ("equal", "calibrated", "uninformed")


def pvalues_of_clusters(
    design: str, of: InClusters, statistic: str, resamples: int, seed: np.random.SeedSequence
) -> tuple[float, float]:
    """Draw one data set and compare its two models: of clusters, and as if rows were independent."""
    data, coins, test = seed.spawn(3)
    probs, labels, options = draw_clusters(of.drawn, data)
    codes = options["clusters"]
    rng = np.random.default_rng(coins)
    if of.uneven:
        sizes = rng.integers(1, of.drawn.size, of.drawn.clusters, endpoint=True)
        kept = np.arange(len(labels)) % of.drawn.size < sizes[codes]
        probs, labels, codes = probs[kept], labels[kept], codes[kept]
    models = DESIGNS[design](probs, rng.random(len(labels)) < 0.5)
    with threadpool_limits(1):
        found = [
            caltest.compare(
                models, labels, statistic, clusters=clusters, n_resamples=resamples, rng=test
            ).pvalues[0, 1]
            for clusters in (codes, None)
        ]
    return float(found[0]), float(found[1])


def cluster_rates(options: argparse.Namespace) -> Iterable[dict[str, Any]]:
    """Yield the rejection rates of every design of clusters, and statistic."""
    cells = [(s, d, c) for s in options.statistics for c in IN_CLUSTERS for d in CLUSTER_DESIGNS]
    for statistic, design, of in cells:
        if statistic == "ece" and of.drawn.classes > 2:
            continue  # refused: its bins hold too few clusters
        fast = statistic in (*U_STATISTICS, *SIGNED)
        found = repeated(options, pvalues_of_clusters, statistic, design, of, fast=fast)
        for column, are in zip(found.T, ("clusters", "alone"), strict=True):
            beside = {"statistic": statistic, "design": design, "rows taken as": are}
            yield {**of.cells, **beside, **rate(column)}


# ------------------------------------------------------------------ networks


def networks() -> tuple[Pair, NDArray[np.intp]]:
    """Return the predictions of the five networks, and the labels they share."""
    models, truths = {}, {}
    for name in NETWORKS:
        with np.load(REFERENCE / f"cifar10_{name}.npz") as arrays:
            models[name], truths[name] = arrays["probs"], arrays["labels"]
    with np.load(REFERENCE / "cifar10_densenet40_logits.npz") as arrays:
        models["densenet40"] = softmax(arrays["test_logits"].astype(np.float64), axis=1)
        truths["densenet40"] = arrays["test_labels"].ravel()
    labels = truths[NETWORKS[0]]
    for name, other in truths.items():
        if not np.array_equal(labels, other):
            raise SystemExit(f"the labels of {name} are not those of {NETWORKS[0]}: other rows")
    return models, labels


def network_statistics(rows: int) -> dict[str, Statistic]:
    """Return the source's statistics; λ is the one of so many rows, for all 10 000 too."""
    return {
        "ckce": CKCE(regularization=rows**-0.25),
        "jkce": JKCE(),
        "ece": ECE(caltest.binning.Uniform(3), distance="l1"),
    }


def network_ranking(options: argparse.Namespace) -> Iterable[dict[str, Any]]:
    """Yield how often the order of all rows is found, and every model's value and share of firsts."""
    models, labels = networks()
    models = {name: probs[: options.rows] for name, probs in models.items()}
    labels, size = labels[: options.rows], options.size
    for marginal in (False, True):
        chosen = dict(models)
        if marginal:
            chosen["marginal"] = np.full_like(models["densenet40"], 0.1)
        for name, statistic in network_statistics(size).items():
            start = perf_counter()
            found = caltest.compare(
                chosen,
                labels,
                statistic,
                size=size,
                n_resamples=options.resamples,
                rng=options.seed,
                n_jobs=options.jobs,
            )
            print(f"\n{found}\n{perf_counter() - start:.0f} s", flush=True)
            low, high = found.order_interval
            values = found.table()["value"]
            yield {
                "statistic": name,
                "design": "with marginal" if marginal else "five networks",
                "predictions": "CIFAR-10",
                "n": size,
                "resamples": found.n_resamples,
                "found": round(found.order_proportion * found.n_resamples),
                "of": found.n_resamples,
                "rate": round(found.order_proportion, 4),
                "low": round(low, 4),
                "high": round(high, 4),
                "detail": " < ".join(f"{model} {value:.5g}" for model, value in values.items()),
            }


STUDIES = {
    "tests": test_rates,
    "levels": level_rates,
    "clusters": cluster_rates,
    "networks": network_ranking,
}


def parsed(arguments: Sequence[str] | None = None) -> argparse.Namespace:
    """Return the options."""
    given = command_line(__doc__, seed=20_250_217)
    given.add_argument("study", choices=STUDIES)
    given.add_argument("--repetitions", type=int, default=1000)
    given.add_argument("--slow-repetitions", type=int, default=200, help="where resamples are needed")
    given.add_argument("--resamples", type=int, default=100)
    given.add_argument("--statistics", nargs="+", default=[*U_STATISTICS, "ckce", "ece"])
    given.add_argument("--sizes", nargs="+", type=int, default=FEW_ROWS, help="of levels: rows")
    given.add_argument("--rows", type=int, help="of networks: the first so many (all)")
    given.add_argument("--size", type=int, default=500, help="of networks: rows of a subsample")
    return given.parse_args(arguments)


def main(arguments: Sequence[str] | None = None) -> None:
    """Run one study, write its table."""
    options = parsed(arguments)
    rows: list[dict[str, Any]] = []
    for row in STUDIES[options.study](options):
        rows.append(row)  # written as they come: hours of work survive an interruption
        write_csv(rows, options.results / f"comparison_{options.study}.csv")
    print(markdown(rows))


if __name__ == "__main__":
    main()
