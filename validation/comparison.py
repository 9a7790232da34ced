"""How stable the rankings of networks by a calibration error are, as in the paper of the CKCE.

``python -m validation.comparison networks --resamples 1000 --jobs 2``: DenseNet-121, ResNet-18,
VGG-19, GoogLeNet and DenseNet-40 on the CIFAR-10 test set. Their labels agree row by row, so all five
are ranked jointly; how often 500 rows give the order of all 10 000. Published, on other networks and
1000 subsamples of 500: CKCE 700, JKCE about 50%.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Sequence
from time import perf_counter
from typing import Any

import joblib
import numpy as np
from numpy.typing import NDArray
from scipy.special import softmax
from statsmodels.stats.proportion import proportion_confint
from threadpoolctl import threadpool_limits

import caltest
from caltest.data import sample
from caltest.sampling import generator
from caltest.statistics import CKCE, ECE, JKCE, Statistic
from validation._study import REFERENCE, command_line, markdown, write_csv

Array = NDArray[np.float64]
Pair = dict[str, Array]

NETWORKS = ("densenet121", "resnet18", "vgg19_bn", "googlenet")


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


def values_of(
    probs: Array, labels: NDArray[np.intp], statistic: Statistic, options: argparse.Namespace
) -> tuple[float, list[float]]:
    """Return the statistic of one model on all rows, and on subsamples, the same ones for all models.

    Options that are rules (a bandwidth) are fitted once, on all rows.
    """
    rows = sample(probs, labels).rows
    fitted = statistic.fitted(rows)

    def on(number: int) -> float:
        stream = generator(options.seed, number)
        drawn = np.sort(stream.choice(len(labels), size=options.size, replace=False, shuffle=False))
        with threadpool_limits(1):
            return fitted.given(rows.take(drawn)).value(labels[drawn])

    tasks = (joblib.delayed(on)(number) for number in range(options.resamples))
    subsampled = joblib.Parallel(n_jobs=options.jobs)(tasks)
    return fitted.given(rows).value(labels), list(subsampled)


def network_ranking(options: argparse.Namespace) -> Iterable[dict[str, Any]]:
    """Yield how often the order of all rows is found, and every model's value."""
    models, labels = networks()
    models = {name: probs[: options.rows] for name, probs in models.items()}
    labels, size = labels[: options.rows], options.size
    for marginal in (False, True):
        chosen = dict(models)
        if marginal:
            chosen["marginal"] = np.full_like(models["densenet40"], 0.1)
        for name, statistic in network_statistics(size).items():
            start = perf_counter()
            found = {each: values_of(p, labels, statistic, options) for each, p in chosen.items()}
            ranked = sorted(found, key=lambda each: found[each][0])
            drawn = np.array([found[each][1] for each in ranked])
            same = int(np.count_nonzero((np.diff(drawn, axis=0) >= 0.0).all(axis=0)))
            low, high = proportion_confint(same, options.resamples, method="wilson")
            print(f"{name}: {perf_counter() - start:.0f} s", flush=True)
            yield {
                "statistic": name,
                "design": "with marginal" if marginal else "five networks",
                "predictions": "CIFAR-10",
                "n": size,
                "resamples": options.resamples,
                "found": same,
                "of": options.resamples,
                "rate": round(same / options.resamples, 4),
                "low": round(float(low), 4),
                "high": round(float(high), 4),
                "detail": " < ".join(f"{each} {found[each][0]:.5g}" for each in ranked),
            }


def parsed(arguments: Sequence[str] | None = None) -> argparse.Namespace:
    """Return the options."""
    given = command_line(__doc__, seed=20_250_217)
    given.add_argument("study", choices=["networks"])
    given.add_argument("--resamples", type=int, default=100)
    given.add_argument("--rows", type=int, help="the first so many (all)")
    given.add_argument("--size", type=int, default=500, help="rows of a subsample")
    return given.parse_args(arguments)


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the study, write its table."""
    options = parsed(arguments)
    rows: list[dict[str, Any]] = []
    for row in network_ranking(options):
        rows.append(row)  # written as they come: hours of work survive an interruption
        write_csv(rows, options.results / "comparison_networks.csv")
    print(markdown(rows))


if __name__ == "__main__":
    main()
