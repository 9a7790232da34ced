"""Bandwidths: numbers, and rules that depend on the predictions."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import pairwise
from types import MappingProxyType
from typing import TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import betaln

from caltest._arguments import anything, arguments, as_float, real_array
from caltest._arrays import NUMPY
from caltest._visible import quoted
from caltest.exceptions import InputError
from caltest.kernels.distances import (
    ROUNDING,
    Distance,
    Floats,
    distance_named,
    distance_tile,
    suggestion,
)

# ------------------------------------------------------------------ selection


Blocks: TypeAlias = Callable[[], Iterable[Floats]]
"""A function that goes through the numbers, a block at a time, as often as it is called."""

COLLECTED = 2**20
"""Up to this many candidates are collected and selected from directly."""

# Doubles that are not negative are in the order of their bit patterns read as integers. So a value
# of a given rank is found digit by digit, by counting, and without rounding: these are the digits'
# places. Distances are below 2, whose highest bits (62 and 63) are 0.
_PLACES = dict(pairwise((62, 46, 30, 15, 0)))


def middle(low: int, high: int, blocks: Blocks) -> float:
    """Mean of the values of rank ``low`` and ``high`` (from 0), as in ``numpy.median``."""
    return float(_ranked(blocks, np.unique([low, high]), place=62, prefix=0).mean())


def _ranked(blocks: Blocks, ranks: NDArray[np.int64], place: int, prefix: int) -> Floats:
    """Values of ``ranks`` (ascending) among those whose bits from ``place`` on are ``prefix``."""
    finer = _PLACES[place]
    width = place - finer
    counts = np.zeros(1 << width, dtype=np.int64)
    for values in _matching(blocks, place, prefix):
        digits = values.view(np.int64) >> finer
        digits -= prefix << width
        found = np.bincount(digits)
        counts[: len(found)] += found
    ends = np.cumsum(counts)
    digits = np.searchsorted(ends, ranks, side="right")
    return np.concatenate(
        [
            _selected(
                blocks,
                ranks[digits == digit] - (ends[digit] - counts[digit]),
                finer,
                prefix << width | int(digit),
                int(counts[digit]),
            )
            for digit in np.unique(digits)
        ]
    )


def _selected(blocks: Blocks, ranks: NDArray[np.int64], place: int, prefix: int, count: int) -> Floats:
    """Do as ``_ranked``, knowing that ``count`` values match."""
    if place == 0:  # all bits are known
        return np.full(len(ranks), prefix, dtype=np.int64).view(np.float64)
    if count > COLLECTED:
        return _ranked(blocks, ranks, place, prefix)
    values = np.concatenate(list(_matching(blocks, place, prefix)))
    return np.partition(values, ranks)[ranks]


def _matching(blocks: Blocks, place: int, prefix: int) -> Iterator[Floats]:
    for values in blocks():
        yield values if place == 62 else values[values.view(np.int64) >> place == prefix]


# ------------------------------------------------------------------ bandwidth
#
# A bandwidth may depend on the predictions in any way, since a test holds them fixed; it never
# depends on the labels, nor on the order of the rows.


ALL_PAIRS_UP_TO = 5000
"""Above this number of rows, "median" and "mean" look at representative rows only."""

REPRESENTATIVES = 2048
"""How many representative rows they look at."""

SMALLEST = 1e-100
"""The smallest bandwidth: its square and their inverses are numbers too."""

TILE = 512
"""Rows and columns of a tile of the matrix of distances."""

HELD = 2**24
"""Up to this many distances (128 MiB) are kept in memory; more are computed anew in each pass."""


@dataclass(frozen=True, slots=True)
class Bandwidth:
    """A bandwidth and where it comes from.

    Parameters
    ----------
    value
        The bandwidth, in units of the distance; positive.
    rule
        The rule that gave it, or ``"given"``.
    notes
        What the user should know, one sentence each.
    """

    value: float
    rule: str = "given"
    notes: tuple[str, ...] = ()


def checked(rule: float | str) -> float | str:
    """Return ``rule`` if it is the name of a rule, else as a positive float.

    Raises
    ------
    InputError
        If it is neither.

    Examples
    --------
    >>> checked(1)
    1.0
    """
    if isinstance(rule, str):
        if rule not in RULES:
            raise InputError(f"There is no bandwidth rule {quoted(rule)}; {suggestion(rule, RULES)}.")
        return rule
    number = as_float(rule)
    if number is None or not SMALLEST <= number < math.inf:
        raise InputError(
            f"The bandwidth is {quoted(rule)}; give a positive number, at least {SMALLEST:g}, or the "
            "name of a rule "
            f"({', '.join(map(repr, RULES))})."
        )
    return number


def resolve(rule: float | str, probs: ArrayLike, distance: str = "tv") -> Bandwidth:
    """Turn a bandwidth rule into a number.

    Parameters
    ----------
    rule
        A positive number, which is returned as it is, or one of

        * ``"median"``: the median distance over the pairs i < j. For more than 5000 rows, over all
          pairs of 2048 representative rows: the predictions are put in the order of a fixed linear
          score, and evenly spaced ones are taken. Nothing is random, and the order of the rows
          does not matter;
        * ``"median_exact"``: the median over all pairs i < j, however many, in bounded memory;
        * ``"median_full"``: the median of the whole n×n matrix, its zero diagonal included, as in
          the published experiments [1]_; all pairs;
        * ``"mean"``: the mean distance over the pairs i < j, of the same rows as ``"median"``;
        * ``"mean_tv_dirichlet"``: the mean total variation distance of two draws of the Dirichlet
          distribution that has the mean and the total variance of those rows.
    probs
        Predictions (n, m), rows on the simplex.
    distance
        The distance: ``"tv"`` (default, as in [1]_), ``"euclidean"`` or ``"hellinger"``.

    Returns
    -------
    Bandwidth
        If the rule gives 0, as the median does when most predictions are equal, the mean of the
        positive distances is taken instead; if all predictions are equal, 1. A note says so.
        Distances up to 1e-7 count as 0.

    Raises
    ------
    InputError
        If the rule or the distance is unknown or does not fit the other, or if a number is not
        positive and finite.

    References
    ----------
    .. [1] Widmann, Lindsten and Zachariah (2019). Calibration tests in multi-class
       classification: a unifying framework. NeurIPS 32.

    Examples
    --------
    >>> resolve("median", [[1.0, 0.0], [0.5, 0.5], [0.4, 0.6]])
    Bandwidth(value=0.5, rule='median', notes=())
    """
    rule = checked(rule)
    if not isinstance(rule, str):
        return Bandwidth(rule)
    check_distance(rule, distance)
    unordered = np.asarray(probs, dtype=np.float64)
    rows = np.ascontiguousarray(unordered[fixed_order(unordered)])
    if rule not in EVERY_ROW and len(rows) > ALL_PAIRS_UP_TO:
        # The midpoints of equal strata.
        strata = (np.arange(REPRESENTATIVES) + 0.5) / REPRESENTATIVES
        rows = rows[(strata * len(rows)).astype(np.int64)]
    blocks = _distances(rows, distance_named(distance))
    value = RULES[rule](rows, blocks)
    return Bandwidth(value, rule) if value > ROUNDING else _fallback(rule, blocks)


def check_distance(rule: float | str, distance: str) -> None:
    """Raise InputError if a bandwidth rule makes no sense for a distance."""
    if rule == "mean_tv_dirichlet" and distance != "tv":
        raise InputError(
            "The bandwidth rule 'mean_tv_dirichlet' gives a total variation distance, but the "
            f"distance is {quoted(distance)}; use distance='tv' or the rule 'mean'."
        )


def _fallback(rule: str, blocks: Blocks) -> Bandwidth:
    total, count = 0.0, 0
    for block in blocks():
        positive = block[block > ROUNDING]
        total, count = total + float(positive.sum()), count + positive.size
    if count:
        what = rule.partition("_")[0]
        note = (
            f"The {what} distance of the predictions is 0, so the bandwidth is the mean of their "
            "positive distances."
        )
        return Bandwidth(total / count, rule, (note,))
    note = "All predictions are equal, so the bandwidth does not matter and is set to 1."
    return Bandwidth(1.0, rule, (note,))


# ------------------------------------------------------------------ rules


@arguments(alpha=anything)
def mean_tv_dirichlet(alpha: ArrayLike) -> float:
    r"""Mean total variation distance of two independent draws of a Dirichlet distribution.

    With :math:`\alpha_0 = \sum_i \alpha_i` and the beta function B, it is

    .. math:: \frac{2 B(\alpha_0, \alpha_0)}{\alpha_0}
              \sum_i \frac{1}{B(\alpha_i, \alpha_i) B(\alpha_0 - \alpha_i, \alpha_0 - \alpha_i)},

    half the sum of the Gini mean differences of the beta distributed components.

    Parameters
    ----------
    alpha
        Positive parameters (m,), m ≥ 2.

    Returns
    -------
    float
        In (0, 1).

    Raises
    ------
    InputError
        If there are fewer than two parameters, or one is not positive and finite.

    References
    ----------
    Widmann, Lindsten and Zachariah (2019). Calibration tests in multi-class classification: a
    unifying framework. NeurIPS 32, Appendix J.2.

    Examples
    --------
    Two uniform variables on [0, 1] are 1/3 apart in the mean:

    >>> round(mean_tv_dirichlet([1.0, 1.0]), 12)
    0.333333333333
    """
    a = real_array("alpha", alpha, "give at least two positive numbers")
    if a.ndim != 1 or len(a) < 2 or not np.all(np.isfinite(a)) or np.any(a <= 0):
        raise InputError(
            f"The Dirichlet parameters are {quoted(alpha)}; give at least two positive numbers."
        )
    total = a.sum()
    logs = betaln(total, total) - betaln(a, a) - betaln(total - a, total - a)
    return float(2 / total * np.exp(logs).sum())


def _mean_of_fitted_dirichlet(rows: Floats, _: Blocks) -> float:
    mean, variance = rows.mean(axis=0), float(rows.var(axis=0).sum())
    if variance <= ROUNDING**2:
        return 0.0
    # Var(G_i) = μ_i (1 − μ_i) / (α₀ + 1), summed over i. One-hot rows give α₀ = 0: a limit.
    total = max(float(np.sum(mean * (1 - mean))) / variance - 1, 1e-8)
    return mean_tv_dirichlet(total * mean[mean > 0])


def _mean(rows: Floats, blocks: Blocks) -> float:
    n = len(rows)
    return sum(float(block.sum()) for block in blocks()) / max(n * (n - 1) // 2, 1)


def _median(rows: Floats, blocks: Blocks) -> float:
    pairs = len(rows) * (len(rows) - 1) // 2
    return middle((pairs - 1) // 2, pairs // 2, blocks) if pairs else 0.0


def _median_full(rows: Floats, blocks: Blocks) -> float:
    # Sorted, the matrix is its n zeros and then each pair's distance twice.
    n = len(rows)
    ranks = [(n * n - 1) // 2, n * n // 2]
    if ranks[0] < n:
        return 0.0 if ranks[1] < n else middle(0, 0, blocks) / 2
    return middle((ranks[0] - n) // 2, (ranks[1] - n) // 2, blocks)


RULES: MappingProxyType[str, Callable[[Floats, Blocks], float]] = MappingProxyType(
    {
        "median": _median,
        "median_exact": _median,
        "median_full": _median_full,
        "mean": _mean,
        "mean_tv_dirichlet": _mean_of_fitted_dirichlet,
    }
)
"""The rules by name: functions of the rows and of the blocks of their distances."""

EVERY_ROW = frozenset({"median_exact", "median_full"})
"""The rules that never look at representative rows only."""


# ------------------------------------------------------------------ distances in blocks


def fixed_order(probs: Floats) -> NDArray[np.intp]:
    """Return an order of the rows that depends on the predictions alone, not on where they stand."""
    # 1, cos 1, cos 2, … are linearly independent over the rationals (Lindemann–Weierstrass), so
    # two rows of round numbers have the same score only if they are equal. einsum, unlike a matrix
    # product, gives a row the same score wherever it stands.
    score = np.einsum("ij,j->i", probs, np.cos(np.arange(probs.shape[1])))
    return np.argsort(score, kind="stable")


def _distances(rows: Floats, metric: Distance) -> Blocks:
    """Return a function that goes through the distances of all pairs i < j, in blocks."""
    cut = [slice(start, min(start + TILE, len(rows))) for start in range(0, len(rows), TILE)]
    tile = distance_tile(metric, rows, NUMPY)

    def blocks() -> Iterator[Floats]:
        for i, own in enumerate(cut):
            yield metric.condensed(rows[own])
            for other in cut[i + 1 :]:
                yield tile(own, other).ravel()

    if len(rows) * (len(rows) - 1) // 2 > HELD:
        return blocks
    held: list[Floats] = []

    def cached() -> Iterable[Floats]:
        if not held:
            held.extend(blocks())
        return held

    return cached
