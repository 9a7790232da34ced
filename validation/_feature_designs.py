"""Data with features: calibrated designs, easy and hostile, and models that are wrong in a slice.

Features are known before the outcome, and outcomes are drawn from what is predicted, or from the true
probabilities of a wrong model.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, logit, ndtr
from scipy.stats import norm

from caltest.auditing import Condition
from caltest.predictive import Members, Normal, Quantiles, Survival

Array = NDArray[Any]
Columns = dict[str, Array]
Rng = np.random.Generator


@dataclass(frozen=True)
class Data:
    """Predictions, outcomes, features by name, and options of tests and of audits alone.

    ``true`` are the true probabilities of the event, where what is predicted is one probability.
    """

    predicted: Any
    outcomes: Any
    features: Columns
    options: dict[str, Any] = field(default_factory=dict)
    of_audits: dict[str, Any] = field(default_factory=dict)
    true: Array | None = None


class Design(NamedTuple):
    """A way to draw a data set, with a name."""

    name: str
    draw: Callable[[Rng], Data]


def named(x: Array) -> Columns:
    """Return the columns of a matrix, by names."""
    return {f"x{place}": column for place, column in enumerate(x.T)}


def events(p: Array, features: Columns, rng: Rng, true: Array | None = None, **options: Any) -> Data:
    """Draw events, from predictions unless true probabilities are given."""
    q = p if true is None else true
    return Data(p, (rng.random(len(p)) < q).astype(int), features, options, true=q)


# ------------------------------------------------------------------ rules


def covered(rule: Iterable[Condition], features: Columns) -> NDArray[np.bool_]:
    """Say which rows a rule is about, from its conditions alone."""
    inside = np.ones(len(next(iter(features.values()))), bool)
    for each in rule:
        values = np.asarray(features[each.column])
        if values.dtype.kind not in "fiu":
            missing = np.array([value is None for value in values])
            inside &= missing if each.value == "(missing)" else values.astype(str) == each.value
            continue
        values = values.astype(float)
        if each.value.startswith("("):
            inside &= np.isnan(values) == (each.value == "(missing)")
        elif each.relation == "over":
            low, _, high = each.value.partition(" and at most ")
            inside &= (values > float(low)) & (values <= float(high or np.inf))
        elif each.relation == "at most":
            inside &= values <= float(each.value)
        else:
            inside &= np.isclose(values, float(each.value))
    return inside


# ------------------------------------------------------------------ calibrated


def numbers(n: int, d: int, rng: Rng) -> Data:
    """Draw independent numbers, of which the first predicts."""
    x = rng.normal(size=(n, d))
    return events(expit(x[:, 0] - 1.0), named(x), rng)


def rare(rng: Rng) -> Data:
    """Draw rare events."""
    x = rng.normal(size=(3000, 8))
    return events(np.minimum(rng.beta(1.0, 99.0, 3000) * np.exp(0.5 * x[:, 0]), 0.9), named(x), rng)


def tied(rng: Rng) -> Data:
    """Draw predictions of nine values, and features of few whole numbers."""
    x = rng.poisson(1.5, (500, 6)).astype(float)
    return events(np.clip(1.0 + x[:, 0] + rng.integers(0, 3, 500), 1.0, 9.0) / 10.0, named(x), rng)


def many_levels(rng: Rng) -> Data:
    """Draw a category of 50 levels, some of them rare, and two numbers."""
    shares = rng.dirichlet(np.full(50, 0.7))
    town, x = rng.choice(50, 2000, p=shares), rng.normal(size=(2000, 2))
    towns = np.array([f"town {k}" for k in range(50)])
    effect = np.random.default_rng(1).normal(size=50)
    return events(expit(effect[town] + x[:, 0] - 1.0), {"town": towns[town], **named(x)}, rng)


def missing(rng: Rng) -> Data:
    """Draw features that are missing by rules that know other features, and nothing of outcomes."""
    x = rng.normal(size=(800, 6))
    region = rng.choice(np.array(["north", "south", "east"], dtype=object), 800)
    p = expit(x[:, 0] - 0.5)
    columns = named(x)
    columns["x1"] = np.where(x[:, 0] > 0.8, np.nan, x[:, 1])  # the higher risks
    columns["x2"] = np.where(x[:, 2] > 1.0, np.nan, x[:, 2])  # its own largest values
    columns["x3"] = np.where(rng.random(800) < 0.97, np.nan, x[:, 3])
    columns["region"] = np.where(x[:, 4] > 0.5, None, region)
    return events(p, columns, rng)


def zeros_and_ones(rng: Rng) -> Data:
    """Draw predictions of which most are exactly 0 or 1."""
    x = rng.normal(size=(500, 4))
    p = expit(4.0 * x[:, 0])
    p[p < 0.2], p[p > 0.8] = 0.0, 1.0
    return events(p, named(x), rng)


def one_probability(rng: Rng) -> Data:
    """Draw events of one probability."""
    return events(np.full(600, 0.05), named(rng.normal(size=(600, 5))), rng)


def weighted(rng: Rng) -> Data:
    """Draw rows whose weights depend on a feature."""
    x = rng.normal(size=(800, 6))
    weights = np.exp(0.8 * rng.normal(size=800) + 0.4 * x[:, 1])
    return events(expit(x[:, 0] - 1.0), named(x), rng, weights=weights)


def in_clusters(codes: Array, rng: Rng, true: Callable[[Array, Array], Array] | None = None) -> Data:
    """Draw rows of clusters that err together, with features of rows and of clusters."""
    clusters = codes.max() + 1
    x = rng.normal(size=(len(codes), 6))
    x[:, 4:] = rng.normal(size=(clusters, 2))[codes]
    p = expit(x[:, 0] + 0.7 * x[:, 4] - 0.5)
    q = p if true is None else true(p, x)
    shared = rng.normal(size=clusters)[codes]
    y = ndtr(np.sqrt(0.5) * shared + np.sqrt(0.5) * rng.normal(size=len(codes))) > 1.0 - q
    return Data(p, y.astype(int), named(x), {"clusters": codes}, true=q)


def unequal(rng: Rng) -> Array:
    """Return the clusters of 120 of unequal size."""
    return np.repeat(np.arange(120), rng.integers(2, 25, 120))


def three_classes(rng: Rng) -> Data:
    """Draw three classes."""
    x = rng.normal(size=(600, 6))
    p = np.exp(np.c_[x[:, 0], 0.7 * x[:, 1], np.zeros(600)])
    p /= p.sum(axis=1, keepdims=True)
    return Data(p, (p.cumsum(axis=1)[:, :-1] < rng.random((600, 1))).sum(axis=1), named(x))


def normals(rng: Rng) -> Data:
    """Draw numbers from predicted normal distributions."""
    x = rng.normal(size=(500, 6))
    mean, sd = x[:, 0], np.exp(0.4 * x[:, 1])
    return Data(Normal(mean, sd), mean + sd * rng.normal(size=500), named(x))


def ensembles(rng: Rng) -> Data:
    """Draw 20 members and outcomes around the same centres."""
    x = rng.normal(size=(400, 6))
    center = x[:, :1] + 0.5 * x[:, 1:2]
    members = center + rng.normal(size=(400, 20))
    return Data(Members(members), center[:, 0] + rng.normal(size=400), named(x))


def quantiles(rng: Rng) -> Data:
    """Draw numbers from distributions of which seven quantiles are stated."""
    x = rng.normal(size=(500, 6))
    levels = np.array([0.025, 0.1, 0.25, 0.5, 0.75, 0.9, 0.975])
    stated = Quantiles(levels, x[:, :1] + norm.ppf(levels))
    return Data(stated, x[:, 0] + rng.normal(size=500), named(x))


def times(n: int, rate: float, known: bool, rng: Rng) -> Data:
    """Draw times until an event; rows with high features are followed for less."""
    x = rng.normal(size=(n, 6))
    hazard, grid = rate * np.exp(0.7 * x[:, 0]), np.linspace(0.1, 3.0, 30)
    time = rng.exponential(1.0 / hazard)
    limit = np.minimum(rng.exponential(2.0, n) * np.exp(-0.5 * x[:, 1]), 3.0)
    law = Survival(np.exp(-np.outer(hazard, grid)), grid, follow_up=limit if known else None)
    return Data(law, (np.minimum(time, limit), time <= limit), named(x))


def sampled(rng: Rng) -> Data:
    """Draw a population, and keep one in ten of the rows without the event."""
    x = rng.normal(size=(6000, 6))
    p = np.minimum(rng.beta(1.0, 20.0, 6000) * np.exp(0.4 * x[:, 0]), 0.9)
    y = (rng.random(6000) < p).astype(int)
    kept = rng.random(6000) < np.where(y == 1, 1.0, 0.1)
    return Data(p[kept], y[kept], named(x[kept]), {"sampling_rates": {0: 0.1}})


def beside_groups(rng: Rng) -> Data:
    """Draw groups beside features."""
    drawn = numbers(800, 6, rng)
    site, sex = rng.choice(list("ABCDE"), 800), rng.choice(["F", "M"], 800)
    return Data(**{**vars(drawn), "of_audits": {"groups": {"site": site, "sex": sex}}})


def kinds(rng: Rng) -> Data:
    """Draw features of all kinds: a copy, the prediction, a constant, booleans, dates, a category."""
    x = rng.normal(size=(400, 3))
    p = expit(x[:, 0])
    day = np.datetime64("2025-01-01") + rng.integers(0, 365, 400)
    columns = {
        **named(x), "copy": x[:, 1].copy(), "prediction": p, "constant": np.zeros(400),
        "member": rng.random(400) < 0.2, "day": day, "plan": rng.choice(["basic", "plus"], 400),
    }  # fmt: skip
    return events(p, columns, rng)


#: A design's seeds hang on its place: new ones go to the end.
CALIBRATED = (
    Design("800 rows, 8 features", partial(numbers, 800, 8)),
    Design("200 rows, 2 features", partial(numbers, 200, 2)),
    Design("1 000 rows, 20 features", partial(numbers, 1000, 20)),
    Design("600 rows, 50 features", partial(numbers, 600, 50)),
    Design("3 000 rows, rare events, 8 features", rare),
    Design("ties: predictions of 9 values, whole numbers, n=500", tied),
    Design("a category of 50 levels, n=2 000", many_levels),
    Design("missing by rules that know no outcome, n=800", missing),
    Design("predictions of 0 and 1, n=500", zeros_and_ones),
    Design("constant p = .05, n=600", one_probability),
    Design("weights that depend on a feature, n=800", weighted),
    Design("150 clusters of 5, features of clusters",
           lambda rng: in_clusters(np.repeat(np.arange(150), 5), rng)),
    Design("120 clusters of 2 to 24, features of clusters", lambda rng: in_clusters(unequal(rng), rng)),
    Design("three classes, n=600", three_classes),
    Design("normal distributions, n=500", normals),
    Design("20 members, n=400", ensembles),
    Design("seven quantiles, n=500", quantiles),
    Design("times, follow-up known, n=600", partial(times, 600, 0.6, True)),
    Design("times, follow-up unknown, n=600", partial(times, 600, 0.6, False)),
    Design("times, 3% events, follow-up unknown, n=1 000", partial(times, 1000, 0.025, False)),
    Design("one in ten without the event kept", sampled),
    Design("groups beside features, n=800", beside_groups),
    Design("features of all kinds, n=400", kinds),
)  # fmt: skip


# ------------------------------------------------------------------ wrong in a slice


def in_corner(x: Array) -> NDArray[np.bool_]:
    """Say which rows are in the corner of 16%: two features above their upper two fifths."""
    return (x[:, 1:3] > norm.ppf(0.6)).all(axis=1)


def corner(n: int, d: int, by: float, rng: Rng, **options: Any) -> Data:
    """Draw predictions that are too low in a corner of two features."""
    x = rng.normal(size=(n, d))
    p = expit(x[:, 0] - 1.0)
    return events(p, named(x), rng, np.minimum(p + by * in_corner(x), 1.0), **options)


def interaction(n: int, d: int, by: float, rng: Rng) -> Data:
    """Draw odds that depend on the product of two features, which the model ignores."""
    x = rng.normal(size=(n, d))
    p = expit(x[:, 0] - 1.0)
    return events(p, named(x), rng, expit(logit(p) + by * x[:, 1] * x[:, 2]))


def one_feature(n: int, d: int, by: float, rng: Rng) -> Data:
    """Draw odds that depend on a feature that the model ignores."""
    x = rng.normal(size=(n, d))
    p = expit(x[:, 0] - 1.0)
    return events(p, named(x), rng, expit(logit(p) + by * x[:, 1]))


def rare_corner(rng: Rng) -> Data:
    """Draw rare events that are three times as often in a corner."""
    x = rng.normal(size=(5000, 8))
    p = rng.beta(1.0, 40.0, 5000)
    return events(p, named(x), rng, np.minimum(p * np.where(in_corner(x), 3.0, 1.0), 1.0))


def level_and_number(rng: Rng) -> Data:
    """Draw predictions that are too high for old customers of one region of eight, missing ages too."""
    region = rng.choice(np.array(["N", "NE", "E", "SE", "S", "SW", "W", "NW"]), 4000)
    x = rng.normal(size=(4000, 3))
    age = np.round(rng.uniform(18.0, 90.0, 4000))
    p = expit(x[:, 0])
    q = np.maximum(p - 0.25 * ((region == "W") & (age > 60.0)), 0.0)
    columns = {"region": region, "age": np.where(x[:, 1] > 1.5, np.nan, age), **named(x)}
    return events(p, columns, rng, q)


def weighted_corner(rng: Rng) -> Data:
    """Draw rows with weights, and predictions that are too low in a corner."""
    return corner(3000, 6, 0.2, rng, weights=rng.lognormal(0.0, 0.7, 3000))


def corner_of_clusters(rng: Rng) -> Data:
    """Draw rows of 300 clusters, and predictions that are too low in a corner."""
    codes = np.repeat(np.arange(300), 8)
    return in_clusters(codes, rng, lambda p, x: np.minimum(p + 0.25 * in_corner(x), 1.0))


PLANTED = (
    Design("3 000 rows, 8 features: a corner 20 points too low", partial(corner, 3000, 8, 0.2)),
    Design("3 000 rows, 8 features: a corner 8 points too low", partial(corner, 3000, 8, 0.08)),
    Design("1 500 rows, 20 features: a corner 20 points too low", partial(corner, 1500, 20, 0.2)),
    Design("3 000 rows, 8 features: interaction", partial(interaction, 3000, 8, 0.5)),
    Design("5 000 rows, rare events: a corner 3 times too low", rare_corner),
    Design("4 000 rows: one region and age 25 points too high", level_and_number),
    Design("3 000 rows with weights: a corner 20 points too low", weighted_corner),
    Design("300 clusters of 8: a corner 25 points too low", corner_of_clusters),
    Design("3 000 rows, 8 features, calibrated", partial(numbers, 3000, 8)),
)

#: Of the same error size, 8 features or 20.
POWER: dict[str, Callable[[int, int, Rng], Data]] = {
    "calibrated": numbers,
    "corner of 16% by 18 points": lambda n, d, rng: corner(n, d, 0.18, rng),
    "interaction": lambda n, d, rng: interaction(n, d, 0.55, rng),
    "one feature": lambda n, d, rng: one_feature(n, d, 0.43, rng),
}
