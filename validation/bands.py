"""Bands of an audit's reliability diagrams: how often any mark of a calibrated model lies outside.

``python -m validation.bands``: predictions held fixed, labels drawn from them 6 000 times; every view
of one probability (top label, classes; all rows, groups) has a diagram. Drawn always are those of all
rows, and of the top label in groups. ``all`` is the share of data sets in which any mark of any
diagram lies outside its band, ``always`` that of the diagrams drawn always; ``equal_parts`` is the
latter if every diagram has an equal part of the level. ``sum`` is what all limits leave out, added up:
the level, but for the last step. Views that share rows err together, which keeps the rate below it.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.stats import binom

from caltest._sums import blocks
from caltest.auditing.diagrams import bins_of
from caltest.binning import ConsistencyBand, CountLaw, joint_bands, share_bands
from validation._study import command_line, markdown, write_csv

Array = NDArray[np.float64]

LEVELS = (0.05, 0.01)
FALSE_ALARM = 1e-4


def rounded(probs: Array) -> Array:
    """Round to tenths, rows still adding up to 1."""
    found = np.round(probs, 1)
    found[:, -1] = np.maximum(1.0 - found[:, :-1].sum(axis=1), 0.0)
    return found / found.sum(axis=1, keepdims=True)


def designs() -> dict[str, tuple[Array, int]]:
    """Return predictions, and how many groups there are, by name."""
    rng = np.random.default_rng(20_261_202)
    rare = rng.beta(1.0, 49.0, 1000)
    few = rng.uniform(0.1, 0.9, 30)
    return {
        "30 rows, one view": (np.column_stack([1.0 - few, few]), 0),
        "1000 rows, rare events, 5 groups": (np.column_stack([1.0 - rare, rare]), 5),
        "240 rows, 3 classes, 4 groups": (rng.dirichlet(np.ones(3), 240), 4),
        "600 rows, 3 classes, ties, 4 groups": (rounded(rng.dirichlet(np.ones(3), 600)), 4),
        "2000 rows, 10 classes, 8 groups": (rng.dirichlet(np.full(10, 0.3), 2000), 8),
    }


def views_of(
    probs: Array, groups: int
) -> list[tuple[NDArray[np.intp], int | None, NDArray[np.intp], Array]]:
    """Return rows, class (None: the top label), bins and probabilities of every view."""
    n, m = probs.shape
    parts = [np.arange(n), *(np.flatnonzero(np.arange(n) % groups == g) for g in range(groups))]
    found = []
    for rows in parts:
        for column in (1,) if m == 2 else (None, *range(m)):
            p = probs[rows].max(axis=1) if column is None else probs[rows, column]
            found.append((rows, column, bins_of(np.column_stack([1.0 - p, p])), p))
    return found


def left_out(p: Array, cells: NDArray[np.intp], band: ConsistencyBand) -> float:
    """Return the chances of all bins to lie outside, added up."""
    total = 0.0
    for b, (low, high) in enumerate(zip(band.low, band.high, strict=True)):
        law = CountLaw(p[cells == b])
        share = np.arange(len(law.below)) / (len(law.below) - 1)
        mass = np.diff(law.below, prepend=0.0)
        total += float(mass[(share < low) | (share > high)].sum())
    return total


def study(options: argparse.Namespace) -> Iterable[dict[str, Any]]:
    """Yield the share of data sets with a mark outside."""
    made = designs()
    for number, (name, (probs, groups)) in enumerate(made.items()):
        views = views_of(probs, groups)
        pairs = [(p, cells) for _, _, cells, p in views]
        always = np.array(
            [
                len(rows) == len(probs) or column is None or probs.shape[1] == 2
                for rows, column, *_ in views
            ]
        )
        bands = {level: bands_of(pairs, always, level) for level in LEVELS}
        equal = {
            level: [share_bands(*pair, level, level / len(views))[1] for pair in pairs]
            for level in LEVELS
        }
        outside = {level: np.zeros(3, dtype=int) for level in LEVELS}
        rng = np.random.default_rng([options.seed, number])
        limits, top = probs.cumsum(axis=1)[:, :-1], probs.argmax(axis=1)
        for part in blocks(options.repetitions, 1000):
            uniforms = rng.random((part.stop - part.start, len(probs)))
            labels = sum((uniforms > limit).astype(np.int8) for limit in limits.T)
            marked = {level: np.zeros((2, len(uniforms), len(views)), dtype=bool) for level in LEVELS}
            for place, (rows, column, cells, _) in enumerate(views):
                came = labels[:, rows] == (top[rows] if column is None else column)
                shares = (came.astype(float) @ np.eye(cells.max() + 1)[cells]) / np.bincount(cells)
                for level in LEVELS:
                    for kind, each in enumerate((bands, equal)):
                        out = each[level][place].leaves_out(shares)
                        marked[level][kind, :, place] = out.any(axis=1)
            for level in LEVELS:
                new, old = marked[level]
                found = new, new & always, old & always
                outside[level] += [int(each.any(axis=1).sum()) for each in found]
        for level in LEVELS:
            cells = len(made) * len(LEVELS)
            every, shown, before = (outside[level] / options.repetitions).round(4)
            yield {
                "design": name,
                "views": len(views),
                "drawn_always": int(always.sum()),
                "level": level,
                "of": options.repetitions,
                "all": every,
                "always": shown,
                "equal_parts": before,
                "sum": round(sum(left_out(*p, b) for p, b in zip(pairs, bands[level], strict=True)), 4),
                "found": int(outside[level][0]),
                "limit": int(binom.ppf(1.0 - FALSE_ALARM / cells, options.repetitions, level)),
            }


def bands_of(
    pairs: list[tuple[Array, NDArray[np.intp]]], always: NDArray[np.bool_], level: float
) -> list[ConsistencyBand]:
    """Return the bands as an audit divides its level."""
    share = 0.8 if not always.all() else 1.0
    found: dict[int, ConsistencyBand] = {}
    for chosen, part in ((always, share), (~always, 1.0 - share)):
        places = np.flatnonzero(chosen).tolist()
        if places:
            bands = joint_bands([pairs[place] for place in places], part * level)
            found |= dict(zip(places, bands, strict=True))
    return [found[place] for place in range(len(pairs))]


def parsed(arguments: Sequence[str] | None = None) -> argparse.Namespace:
    """Return the options."""
    given = command_line(__doc__, seed=20_261_203)
    given.add_argument("--repetitions", type=int, default=6000)
    return given.parse_args(arguments)


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the study."""
    options = parsed(arguments)
    rows = list(study(options))
    print(markdown(rows))
    write_csv(rows, options.results / "bands.csv")


if __name__ == "__main__":
    main()
