"""Promises of one side, prediction sets, and forecasts that are not alike: level and power.

``python -m validation promises``; a part of it: ``--only promises_sides``, ``--only promises_sets``, …

*Sides* (``promises_sides.csv``): limits of one side, 2 points too high, where the mean of every group
is wrong by exactly the limit, by nothing, or by much on the side that does not matter. In how many data
sets an audit calls the error material, likely or within, and rejects at 5%.

*Sets* (``promises_sets.csv``): prediction sets whose claim is right, and not. In how many data sets an
audit rejects at 5%; ``shown`` counts data sets in which an interval of coverage by size or by class
that nobody asked to test lies below what is stated.

*Ragged* (``promises_ragged.csv``): members and quantiles that are missing in some rows. In how many
data sets an audit, and a test of the bias, reject at 5%.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

import caltest
from validation._cells import Options, Part, counted

SEED = 20_261_128
ALPHA = 0.05
RESAMPLES = 199
LIMIT = 0.02

Rng: TypeAlias = np.random.Generator
Array: TypeAlias = NDArray[np.float64]
Seed: TypeAlias = np.random.SeedSequence


# ------------------------------------------------------------------ limits of one side

#: By how much predictions are too high in truth.
ERRORS = {
    "at the limit": LIMIT,
    "calibrated": 0.0,
    "10 points too low": -0.1,
    "6 points too high": 0.06,
}


def one_side(rows: int, groups: int, error: float, seed: Seed) -> dict[str, bool]:
    """Audit events, by groups of equal size, with a limit of one side, and with one of two."""
    drawn, draws = seed.spawn(2)
    rng = np.random.default_rng(drawn)
    p = rng.uniform(0.2, 0.8, rows)
    y = (rng.random(rows) < p - error).astype(int)
    by = {"groups": {"group": np.arange(rows) % groups}} if groups > 1 else {}
    given: dict[str, Any] = {"n_resamples": RESAMPLES, "rng": draws, **by}
    one = caltest.audit(p, y, materiality={"too_high": LIMIT}, **given)
    two = caltest.audit(p, y, materiality=LIMIT, **given)
    found = {f"{name}_{word}": each.verdict == word for name, each in (("one", one), ("two", two))
             for word in ("material", "likely", "within")}  # fmt: skip
    nearer = all(a.low >= b.low for a, b in zip(one.views, two.views, strict=True))
    return {**found, "rejected": one.rejected, "nearer": nearer}


def sides() -> Iterator[Part]:
    """Yield limits of one side."""
    cell = 0
    for rows, groups in ((300, 1), (2_000, 4), (5_000, 1)):
        for name, error in ERRORS.items():
            cell, design = cell + 1, {"rows": rows, "groups": groups, "error": name}
            yield cell, design, partial(one_side, rows, groups, error)


# ------------------------------------------------------------------ prediction sets

CLASSES = 5


def hard_rows(count: int, rng: Rng) -> tuple[Array, NDArray[np.intp]]:
    """Draw probabilities of five classes, easy rows and hard ones, and labels from other ones."""
    scale = np.where(rng.random(count) < 0.5, 3.0, 0.7)[:, None]
    logits = scale * rng.normal(size=(count, CLASSES))
    true = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
    labels = (true.cumsum(axis=1) < rng.random((count, 1))).sum(axis=1).clip(max=CLASSES - 1)
    stated = np.exp(1.8 * logits)
    return stated / stated.sum(axis=1, keepdims=True), labels


def split(calibration: int, rows: int, level: float, rng: Rng, by_class: bool = False) -> Any:
    """Return sets of split conformal prediction, labels, and how many rows calibrated each class."""
    p, y = hard_rows(calibration, rng)
    q, labels = hard_rows(rows, rng)
    scores = 1.0 - p[np.arange(len(y)), y] + 1e-9 * rng.random(len(y))
    cut = np.empty(CLASSES)
    counts = {}
    for k in range(CLASSES):
        own = np.sort(scores[y == k] if by_class else scores)
        place = int(np.ceil(level * (len(own) + 1))) - 1
        cut[k] = own[place] if place < len(own) else np.inf
        counts[k] = len(own)
    return 1.0 - q <= cut, labels, counts if by_class else calibration


def exact(rows: int, level: float, rng: Rng, together: int = 1) -> Any:
    """Return sets that cover with the stated probability in every row, so many rows alike."""
    covered = rng.random(rows)[np.arange(rows) // together * together] < level
    labels = rng.integers(CLASSES, size=rows)
    place = rng.random((rows, CLASSES))  # the lowest places are in the set, as many in either case
    place[np.arange(rows), labels] = np.where(covered, -1.0, 2.0)
    size = rng.integers(1, CLASSES, size=(rows, 1))
    members = place.argsort(axis=1).argsort(axis=1) < size
    return members, labels


def sets_of(case: str, rows: int, rng: Rng) -> tuple[Any, Any, dict[str, Any]]:
    """Return sets, labels and options of a case."""
    if case.startswith("exact"):
        short = 0.03 if "short" in case else 0.0
        together = 4 if "clusters" in case else 1
        options: dict[str, Any] = {"claims": ("size", "class")} if "claims" in case else {}
        options |= {"clusters": np.arange(rows) // together} if together > 1 else {}
        members, labels = exact(rows, 0.9 - short, rng, together)
        return members, labels, options
    words = case.split(", ")
    count = int(words[1].split()[0])
    by_class = "by class" in case
    members, labels, counts = split(count, rows, 0.9, rng, by_class)
    options = {"calibration_rows": counts} if "known" in case else {}
    if "size" in case:
        options["claims"] = ("size",)
    if by_class:
        options["claims"] = ("class",)
    return members, labels, options


CASES = (
    "exact", "exact, claims", "exact, clusters", "exact, 3 points short",
    "exact, 3 points short, claims", "split, 100 rows", "split, 100 rows, known",
    "split, 500 rows, known", "split, 20000 rows", "split, 20000 rows, size claimed",
    "split, 500 rows, known, by class",
)  # fmt: skip


def sets_in(case: str, rows: int, seed: Seed) -> dict[str, bool]:
    """Audit sets."""
    drawn, draws = seed.spawn(2)
    members, labels, options = sets_of(case, rows, np.random.default_rng(drawn))
    clusters = options.pop("clusters", None)
    sets = caltest.predictive.Sets(members, 0.9, **options)
    audit = caltest.audit(sets, labels, clusters=clusters, n_resamples=RESAMPLES, rng=draws)
    return {
        "rejected": audit.rejected,
        "shown": any(view.low > 0.0 for view in audit.described),
        "average": bool(audit.views[0].low > 0.0),
    }


def sets() -> Iterator[Part]:
    """Yield prediction sets."""
    for number, case in enumerate(CASES):
        for place, rows in enumerate((500, 2_000)):
            yield 1001 + 10 * number + place, {"case": case, "rows": rows}, partial(sets_in, case, rows)


# ------------------------------------------------------------------ ragged forecasts


def members(shift: float, rng: Rng, rows: int = 300) -> tuple[Any, Array]:
    """Draw ensembles of 2 to 20 members."""
    centre = rng.normal(size=(rows, 1))
    values = centre + rng.normal(size=(rows, 20))
    values[np.arange(20) >= rng.integers(2, 21, size=(rows, 1))] = np.nan
    return caltest.predictive.Members(values), centre[:, 0] + shift + rng.normal(size=rows)


def quantiles(shift: float, rng: Rng, rows: int = 300) -> tuple[Any, Array]:
    """Draw quantiles of numbers, a third of them not stated."""
    from scipy.stats import norm

    levels, centre = np.array([0.05, 0.25, 0.5, 0.75, 0.95]), rng.normal(size=rows)
    values = centre[:, None] + norm.ppf(levels)
    values[rng.random(rows) < 1 / 2, 1::2] = np.nan
    return caltest.predictive.Quantiles(levels, values), centre + shift + rng.normal(size=rows)


def counts(shift: float, rng: Rng, rows: int = 300) -> tuple[Any, Array]:
    """Draw quantiles of counts, many of which outcomes equal, a third of them not stated."""
    from scipy.stats import poisson

    levels, mean = np.array([0.05, 0.25, 0.5, 0.75, 0.95]), rng.uniform(0.5, 8.0, rows)
    values = poisson(mean[:, None]).ppf(levels)
    values[rng.random(rows) < 1 / 2, 1::2] = np.nan
    return caltest.predictive.Quantiles(levels, values), rng.poisson(mean * np.exp(shift))


FORECASTS: Mapping[str, Callable[[float, Rng], tuple[Any, Array]]] = {
    "members": members, "quantiles": quantiles, "quantiles of counts": counts
}  # fmt: skip


def ragged_in(name: str, shift: float, seed: Seed) -> dict[str, bool]:
    """Audit forecasts that are not alike, and test their bias."""
    drawn, draws = seed.spawn(2)
    forecast, outcomes = FORECASTS[name](shift, np.random.default_rng(drawn))
    audit = caltest.audit(forecast, outcomes, n_resamples=RESAMPLES, rng=draws)
    bias = caltest.test(forecast, outcomes, "bias", n_resamples=RESAMPLES, rng=draws)
    return {"audit": audit.rejected, "bias": bias.pvalue <= ALPHA}


def ragged() -> Iterator[Part]:
    """Yield forecasts with what is missing, right ones and such that are too low."""
    for number, name in enumerate(FORECASTS):
        for place, shift in enumerate((0.0, 0.25)):
            cell = 2001 + 10 * number + place
            yield cell, {"forecast": name, "shift": shift}, partial(ragged_in, name, shift)


def run(options: Options) -> None:
    """Count verdicts and rejections."""
    counted("promises_sides", sides(), options, SEED, 600, 100)
    counted("promises_sets", sets(), options, SEED, 600, 100)
    counted("promises_ragged", ragged(), options, SEED, 600, 100)
