"""Time of exact p-values of the ECE, and of the smooth ECE beside the reference package's.

``python -m validation.benchmarks.ece``; the peer is measured where ``relplot`` is installed.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Callable
from itertools import pairwise
from time import perf_counter

import numpy as np

import caltest
from caltest.data import Predictions
from caltest.statistics import ECE, SmoothECE
from validation._study import RESULTS, markdown, write_csv

N, CLASSES, DRAWS = 50_000, 10, 999


def best_of(function: Callable[[], object], rounds: int = 3) -> float:
    """Return the shortest time in seconds."""
    times = []
    for _ in range(rounds):
        start = perf_counter()
        function()
        times.append(perf_counter() - start)
    return min(times)


def plain_ece(confidence: np.ndarray, right: np.ndarray, n_bins: int = 15) -> float:
    """Return the ECE as most scripts compute it: a loop over the bins."""
    edges = np.linspace(0, 1, n_bins + 1)
    total = 0.0
    for low, high in pairwise(edges):
        inside = (confidence > low) & (confidence <= high)
        if inside.any():
            total += abs(right[inside].mean() - confidence[inside].mean()) * inside.mean()
    return total


def main() -> None:
    """Measure, print a table and write it."""
    rng = np.random.default_rng(0)
    probs = rng.dirichlet(np.full(CLASSES, 0.1), N)
    labels = (probs.cumsum(axis=1) < rng.random((N, 1))).sum(axis=1).clip(max=CLASSES - 1)
    confidence, right = probs.max(axis=1), probs.argmax(axis=1) == labels
    drawn = rng.random(N) < confidence
    exact = best_of(lambda: caltest.test(probs, labels, ECE(), lens="top_label", rng=0))
    loop = best_of(lambda: plain_ece(confidence, drawn)) * DRAWS
    rows = [
        _row("top-label ECE, 15 bins, 999 exact draws", exact, loop, "999 times a loop over the bins")
    ]
    form = SmoothECE().given(Predictions(np.column_stack([1.0 - confidence, confidence])))
    ours = best_of(lambda: form.value(right.astype(int)), 10)
    if importlib.util.find_spec("relplot"):
        import relplot

        theirs = best_of(lambda: relplot.smECE(confidence, right.astype(float)), 10)
        rows.append(_row("smooth ECE, one evaluation", ours, theirs, "relplot"))
    else:
        rows.append(_row("smooth ECE, one evaluation", ours, float("nan"), "relplot: not installed"))
    write_csv(rows, RESULTS / "speed_ece.csv")
    print(markdown(rows))


def _row(what: str, ours: float, theirs: float, peer: str) -> dict[str, object]:
    ratio = round(theirs / ours, 1)
    return {
        "what": what,
        "seconds": f"{ours:.4g}",
        "peer": peer,
        "peer_seconds": f"{theirs:.4g}",
        "times_faster": ratio,
    }


if __name__ == "__main__":
    main()
