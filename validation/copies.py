"""The warning of copied rows: on rows that are copies, and on rows that only look alike.

``python -m validation clusters --only copies``; ``copies.csv``. 3 000 rows a data set; it is the
warnings of :func:`caltest.test` that are counted.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TypeAlias

import joblib
import numpy as np
from scipy.stats import binomtest
from sklearn.isotonic import IsotonicRegression

import caltest
from validation._cells import Options, seeds, spread
from validation._study import CONFIDENCE, write_csv

SEED = 20_261_124
ROWS, DATASETS = 3000, 400
COPIES, REPEATED = "Rows look like copies", "share their predictions, to the last digit"
Drawn: TypeAlias = tuple[np.ndarray, np.ndarray]
Draw: TypeAlias = Callable[[np.random.Generator], Drawn]


def _events(rng: np.random.Generator, chances: np.ndarray) -> np.ndarray:
    return (rng.random(len(chances)) < chances).astype(int)


def again(share: float, times: int = 1) -> Draw:
    """Draw rows of which some stand again, or all of them ``times`` times."""

    def draw(rng: np.random.Generator) -> Drawn:
        n = ROWS // times if times > 1 else round(ROWS / (1 + share))
        p = rng.beta(0.7, 1.5, n)
        labels = _events(rng, p)
        rows = np.tile(np.arange(n), times)
        rows = np.append(rows, rng.choice(n, round(share * n), replace=False))
        return p[rows], labels[rows]

    return draw


def scores(decimals: int | None, step: bool = False) -> Draw:
    """Draw scores, rounded or not; with a step the true rate is .2 below .4 and .7 above."""

    def draw(rng: np.random.Generator) -> Drawn:
        p = rng.beta(0.7, 1.5, ROWS)
        p = p if decimals is None else np.round(p, decimals)
        return p, _events(rng, np.where(p > 0.4, 0.7, 0.2) if step else p)

    return draw


def tree(errors: bool) -> Draw:
    """Draw what a tree of 150 leaves says, whose rates were found in 40 other rows each."""

    def draw(rng: np.random.Generator) -> Drawn:
        truth = rng.beta(0.7, 1.5, 150)
        stated = rng.binomial(40, truth) / 40 if errors else truth
        leaves = rng.integers(0, 150, ROWS)
        return np.clip(stated, 0.02, 0.98)[leaves], _events(rng, truth[leaves])

    return draw


def isotonic(rng: np.random.Generator) -> Drawn:
    """Draw what an isotonic regression on 600 other rows says."""
    x = rng.random(600)
    fitted = IsotonicRegression(out_of_bounds="clip").fit(x, rng.random(600) < x)
    p = np.clip(fitted.predict(rng.random(ROWS)), 0.01, 0.99)
    return p, _events(rng, p)


def patients(rng: np.random.Generator) -> Drawn:
    """Draw ten rows per patient with the same prediction, whose labels are independent."""
    p = np.repeat(rng.beta(0.7, 1.5, ROWS // 10), 10)
    return p, _events(rng, p)


DESIGNS: dict[str, tuple[bool, Draw]] = {
    "every row ten times": (True, again(0.0, 10)),
    "20% of the rows once more": (True, again(0.2)),
    "3% of the rows once more": (True, again(0.03)),
    "continuous scores": (False, scores(None)),
    "scores of three decimals": (False, scores(3)),
    "a step in the true rate": (False, scores(3, step=True)),
    "a tree of 150 leaves": (False, tree(errors=False)),
    "a tree of 150 leaves with errors": (False, tree(errors=True)),
    "isotonic regression": (False, isotonic),
    "ten rows per patient": (False, patients),
}


def warned(draw: Draw, seed: np.random.SeedSequence) -> tuple[bool, bool]:
    """Say whether a test warns of copies, and whether it asks for clusters."""
    found = caltest.test(*draw(np.random.default_rng(seed)), "citl", n_resamples=1, rng=0)
    found = [str(each) for each in found.premises]
    return any(COPIES in each for each in found), any(REPEATED in each for each in found)


def run(options: Options) -> None:
    """Count the warnings."""
    rows, sets = [], options.datasets or (2 if options.quick else DATASETS)
    with joblib.Parallel(n_jobs=options.jobs) as parallel:
        for number, (name, (copied, draw)) in enumerate(DESIGNS.items()):
            if not options.wants(f"copies: {name}"):
                continue
            found = np.array(spread(partial(warned, draw), seeds(SEED, (number,), 0, sets), parallel))
            count = int(found[:, 0].sum())
            interval = binomtest(count, len(found)).proportion_ci(CONFIDENCE)
            rows.append(
                {
                    "rows": name,
                    "copied": copied,
                    "of": len(found),
                    "warned": count,
                    "low": round(interval.low, 4),
                    "high": round(interval.high, 4),
                    "asked for clusters": int(found[:, 1].sum()),
                }
            )
    if rows:
        write_csv(rows, options.results / "copies.csv")
