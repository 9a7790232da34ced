"""Type I error of every (statistic, null) pair: how often are calibrated models rejected?

``python -m validation.size --repetitions 2000 --jobs 2``

Data sets are calibrated by construction: ten classes and 250 rows as published (M1), two and three
classes with 50 rows, and 50 or 250 rows most of whose entries are exactly 0 or 1; then 500 rows of one
probability, where classical tests go wrong: even, extreme, rare events, and the top class of a
confident model. Pairs come from the registries: what is registered is studied. A pair of guarantee
"exact" must have its level inside the 99 % Clopper–Pearson interval of its rate, or below it where ties
make it conservative.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from caltest.data import sample
from caltest.lenses import TopLabel
from caltest.simulation import Simulated, m1
from validation._study import RESULTS, Cell, Design, cells, markdown, parser, write_csv

LEVELS = (0.01, 0.05, 0.1)
MANY_TIES = 0.005  # share of draws equal to the observed value

Array: TypeAlias = NDArray[np.float64]
Draw: TypeAlias = Callable[[np.random.SeedSequence], Simulated]


def with_zeros_and_ones(n: int, m: int, seed: np.random.SeedSequence) -> Simulated:
    """Draw calibrated predictions whose entries below 0.2 are set to exactly 0; most rows are hard."""
    start, labels = seed.spawn(2)
    probs = np.array(m1(n, m, rng=start).probs)
    probs[probs < np.minimum(0.2, probs.max(axis=1, keepdims=True))] = 0.0
    probs /= probs.sum(axis=1, keepdims=True)
    uniforms = np.random.default_rng(labels).random((n, 1))
    cumulative = np.cumsum(probs, axis=1)
    drawn = (cumulative <= uniforms * cumulative[:, -1:]).sum(axis=1)
    return Simulated(probs, drawn, probs.copy())


def of_one_probability(draw: Callable[[np.random.Generator], Array]) -> Draw:
    """Draw calibrated labels of two classes from probabilities of class 1."""

    def simulate(seed: np.random.SeedSequence) -> Simulated:
        rng = np.random.default_rng(seed)
        p = draw(rng)
        probs = np.column_stack([1.0 - p, p])
        return Simulated(probs, (rng.random(len(p)) < p).astype(np.intp), probs.copy())

    return simulate


def top_label(n: int, seed: np.random.SeedSequence) -> Simulated:
    """See M1 through its top class."""
    whole = m1(n, 10, rng=seed)
    view = TopLabel().view(sample(whole.probs, whole.labels))
    return Simulated(view.predictions.probs, view.labels, view.predictions.probs)


DESIGNS = (
    Design("M1, m=10, n=250", lambda seed: m1(250, 10, rng=seed)),
    Design("M1, m=2, n=50", lambda seed: m1(50, 2, rng=seed)),
    Design("M1, m=3, n=50", lambda seed: m1(50, 3, rng=seed)),
    Design("zeros and ones, m=3, n=50", lambda seed: with_zeros_and_ones(50, 3, seed)),
    Design("zeros and ones, m=10, n=250", lambda seed: with_zeros_and_ones(250, 10, seed)),
    Design("p uniform, n=500", of_one_probability(lambda rng: rng.random(500))),
    Design("p Beta(0.5 0.5), n=500", of_one_probability(lambda rng: rng.beta(0.5, 0.5, 500))),
    Design("rare events Beta(1 99), n=500", of_one_probability(lambda rng: rng.beta(1, 99, 500))),
    Design("top label of M1, n=500", lambda seed: top_label(500, seed)),
)


def verdict(row: dict[str, Any], cell: Cell) -> str:
    """Say in a word or two how rate and level compare."""
    if row["low"] > row["level"]:
        return "above"
    if row["high"] >= row["level"]:
        return "inside"
    return "below (ties)" if cell.ties > MANY_TIES else "below"


def main() -> None:
    """Run the study, write the CSV and print the table."""
    options = parser(__doc__.splitlines()[0], "size.csv").parse_args()
    rows = []
    for design, example, cell in cells(DESIGNS, options):
        n, m = example.probs.shape
        for level in LEVELS:
            row = cell.row(level)
            what = {"statistic": cell.statistic, "null": cell.null, "guarantee": cell.guarantee}
            where = {"design": design.name.partition(",")[0], "m": m, "n": n}
            rows.append(
                what | where | row | {"verdict": verdict(row, cell), "ties": round(cell.ties, 4)}
            )
        write_csv(rows, RESULTS / options.results)  # a long study: keep what is done
    print(markdown([_short(rows[i : i + len(LEVELS)]) for i in range(0, len(rows), len(LEVELS))]))
    for row in rows:
        if row["guarantee"] == "exact" and row["verdict"] in ("above", "below"):
            print(f"an exact pair is not exact: {row}")


def _short(levels: list[dict[str, Any]]) -> dict[str, Any]:
    first = levels[0]
    short = {key: first[key] for key in ("design", "m", "n", "statistic", "null", "guarantee", "ties")}
    return short | {f"{row['level']:g}": f"{row['rate']:.4f} {row['verdict']}" for row in levels}


if __name__ == "__main__":
    main()
