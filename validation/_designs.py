"""Calibrated data sets on which tests are tried: nineteen designs, easy and hostile.

Ten classes and 250 rows as published (M1), two and three classes with 50 rows, and 50 or 250 rows most
of whose entries are exactly 0 or 1; 500 rows of one probability, where classical tests go wrong: even,
extreme, rare events, and the top class of a confident model; few rows, many classes, rare classes,
coarse predictions with ties, nearly uniform ones; rows sorted by label, and equal predictions for all
rows. Labels are drawn from the predictions.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from caltest.data import sample
from caltest.lenses import through
from caltest.simulation import Simulated
from validation.generative import m1, mixture

Array: TypeAlias = NDArray[np.float64]
Draw: TypeAlias = Callable[[np.random.SeedSequence], Simulated]


@dataclass(frozen=True)
class Design:
    """A way to draw a data set, with a name."""

    name: str
    draw: Draw


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
    view = through(sample(whole.probs, whole.labels), "top_label")[0]
    return Simulated(view.rows.probs, view.labels, view.rows.probs)


def coarse(n: int, m: int, steps: int, seed: np.random.SeedSequence) -> Simulated:
    """Draw calibrated predictions that are multiples of 1/steps: equal rows, zeros and ones."""
    rng = np.random.default_rng(seed)
    probs = rng.multinomial(steps, np.full(m, 1.0 / m), n) / steps
    labels = (np.cumsum(probs, axis=1) <= rng.random((n, 1)) * (1.0 - 1e-12)).sum(axis=1)
    return Simulated(probs, labels.astype(np.intp), probs.copy())


def sorted_by_label(draw: Draw) -> Draw:
    """Sort the rows of a data set by label, as many files are."""

    def simulate(seed: np.random.SeedSequence) -> Simulated:
        data = draw(seed)
        order = np.argsort(data.labels, kind="stable")
        return Simulated(data.probs[order], data.labels[order], data.truth[order])

    return simulate


def _mixture(n: int, alpha: Sequence[float]) -> Draw:
    return lambda seed: mixture(n, alpha, pi=0.0, rng=seed)


#: A design's seeds hang on its place: new ones go to the end.
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
    Design("few rows: Dir(1), m=3, n=12", _mixture(12, [1.0] * 3)),
    Design("Dir(0.1), m=100, n=100", _mixture(100, [0.1] * 100)),
    Design("rare classes: Dir(2 .02 .02), m=3, n=250", _mixture(250, [2.0, 0.02, 0.02])),
    Design("coarse: multiples of 1/4, m=3, n=60", lambda seed: coarse(60, 3, 4, seed)),
    Design("coarse: multiples of 1/2, m=2, n=30", lambda seed: coarse(30, 2, 2, seed)),
    Design("nearly uniform: Dir(20), m=5, n=100", _mixture(100, [20.0] * 5)),
    Design("sorted by label: Dir(1), m=3, n=100", sorted_by_label(_mixture(100, [1.0] * 3))),
    Design("constant p = .5, n=21", of_one_probability(lambda rng: np.full(21, 0.5))),
    Design("constant p = .02, n=550", of_one_probability(lambda rng: np.full(550, 0.02))),
    Design(
        "two values .97 and .6, n=65", of_one_probability(lambda rng: np.repeat([0.97, 0.6], [40, 25]))
    ),
)
