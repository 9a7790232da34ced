"""Exact consistency bands of counts: where shares of events lie if the model is calibrated.

Labels are drawn from the predictions, the predictions held fixed; what follows is the law of the
share of events under H0, given the predictions. A *pointwise* band leaves out any one point with
probability at most α, a *simultaneous* one leaves out any point at all with probability at most α.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Sequence
from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from caltest._sums import law_of_sum

Array: TypeAlias = NDArray[np.float64]

_TIED = 1e-9  # tails that differ by less, relatively, are equal but for rounding
_HALVINGS = 60  # of the interval that holds the level of the simultaneous band


class Band(NamedTuple):
    """Lower and upper ends, both of them inside."""

    low: Array
    high: Array

    def leaves_out(self, values: Array) -> NDArray[np.bool_]:
        """Say which values lie outside."""
        return np.asarray((values < self.low) | (values > self.high))


class CountLaw:
    """The number of events among independent rows of given probabilities: a Poisson binomial.

    Attributes
    ----------
    below, above
        P(C ≤ c) and P(C ≥ c) for c = 0..n.

    Examples
    --------
    >>> law = CountLaw(np.array([0.5, 0.5]))
    >>> law.below.tolist(), law.above.tolist()
    ([0.25, 0.75, 1.0], [1.0, 0.75, 0.25])
    """

    def __init__(self, probs: Array) -> None:
        # Errors are absolute, some 1e-15: far below any tail that a band asks for.
        mass = law_of_sum(np.column_stack([1.0 - probs, probs]))
        self.below = np.cumsum(mass)
        self.above = np.cumsum(mass[::-1])[::-1]

    def limits(self, tail: float) -> tuple[int, int]:
        """Return the narrowest limits beyond which, on each side, lies at most ``tail``."""
        low = int(np.searchsorted(self.below, tail, side="right"))
        high = len(self.above) - 1 - int(np.searchsorted(self.above[::-1], tail, side="right"))
        return low, high

    def coverage(self, tail: float) -> float:
        """Return the probability of the limits."""
        low, high = self.limits(tail)
        return float(self.below[high] - (self.below[low - 1] if low else 0.0))


def share_bands(
    scores: Array, cells: NDArray[np.intp], alpha: float, joint: float
) -> tuple[Band, Band]:
    """Return the pointwise and the simultaneous band of the share of events in every bin.

    Bins share no row, so their counts are independent Poisson binomials, and the probability that
    all stay within limits is a product: both bands are exact, without a draw. Each side of a bin's
    pointwise band leaves out at most α/2; the simultaneous band cuts all tails at the one level, the
    largest (up to α/2) for which the product is at least 1 − α.

    Parameters
    ----------
    scores
        Predicted probabilities of the event, (n,).
    cells
        The bin of every row, (n,), 0..K−1, none empty.
    alpha, joint
        Probability outside, of the pointwise and of the simultaneous band.

    Examples
    --------
    >>> point, all_bins = share_bands(np.full(100, 0.5), np.arange(100) % 2, 0.05, 0.05)
    >>> point.low.tolist(), all_bins.low.tolist()
    ([0.36, 0.36], [0.34, 0.34])
    """
    sizes, laws = _laws(scores, cells)

    def band(tail: float) -> Band:
        low, high = np.array([law.limits(tail) for law in laws]).T
        return Band(low / sizes, high / sizes)

    return band(alpha / 2), band(_simultaneous_tail(laws, joint))


def joint_bands(views: Sequence[tuple[Array, NDArray[np.intp]]], alpha: float) -> list[Band]:
    """Return bands of the shares of events in the bins of several views, simultaneous over them all.

    Every bin has two tails. What the limits of all tails leave out adds up to at most ``alpha``: the
    probability that any share of a calibrated model leaves its band, however the views' rows overlap.
    Counts are whole numbers, so that a tail leaves out less than its part of ``alpha``; what is left
    over by some is used by others. All tails begin with the same part, and the limit whose tail would
    be the smallest is the next to move in, if what is left allows; limits whose tails are equal, as
    those of a symmetric law, move together or not at all.

    Parameters
    ----------
    views
        Predicted probabilities of the event (n,), and the bin of every row, 0..K−1, none empty.
    alpha
        Probability outside, of all bands together.

    Examples
    --------
    >>> one, other = joint_bands([(np.full(50, 0.5), np.arange(50) % 2)] * 2, 0.05)
    >>> one.low.tolist(), other.high.tolist()
    ([0.24, 0.24], [0.76, 0.76])
    """
    found = [_laws(scores, cells) for scores, cells in views]
    laws = [law for _, each in found for law in each]
    tails = [side for law in laws for side in (law.below, law.above[::-1])]
    part = alpha / max(1, len(tails))
    limits = np.array([np.searchsorted(tail, part, side="right") for tail in tails])
    spent = [
        float(tail[limit - 1]) if limit else 0.0 for tail, limit in zip(tails, limits, strict=True)
    ]
    left = alpha - math.fsum(spent)
    waiting = [(float(tail[limits[number]]), number) for number, tail in enumerate(tails)]
    heapq.heapify(waiting)
    while waiting and waiting[0][0] <= alpha / 2:
        mass = waiting[0][0] * (1.0 + _TIED)
        alike = []
        while waiting and waiting[0][0] <= mass:
            alike.append(heapq.heappop(waiting))
        cost = math.fsum(each - spent[number] for each, number in alike)
        if cost > left:
            continue  # these tails stay as they are
        left -= cost
        for each, number in alike:
            spent[number] = each
            limits[number] += 1
            heapq.heappush(waiting, (float(tails[number][limits[number]]), number))
    sizes = np.concatenate([each for each, _ in found])
    low, high = limits[::2] / sizes, (sizes - limits[1::2]) / sizes
    ends = np.cumsum([len(each) for each, _ in found])[:-1]
    return [Band(*pair) for pair in zip(np.split(low, ends), np.split(high, ends), strict=True)]


def _laws(scores: Array, cells: NDArray[np.intp]) -> tuple[NDArray[np.intp], list[CountLaw]]:
    """Return the sizes of the bins, and the laws of their counts."""
    order = np.argsort(cells, kind="stable")
    sizes = np.bincount(cells)
    return sizes, [CountLaw(part) for part in np.split(scores[order], np.cumsum(sizes)[:-1])]


def _simultaneous_tail(laws: list[CountLaw], alpha: float) -> float:
    """Return the largest tail, up to α/2, whose limits hold jointly with probability 1 − α."""

    def holds(tail: float) -> bool:
        return float(np.prod([law.coverage(tail) for law in laws])) >= 1.0 - alpha

    if holds(alpha / 2):
        return alpha / 2
    good, bad = alpha / (2 * len(laws)), alpha / 2  # the first is Bonferroni's
    for _ in range(_HALVINGS):
        middle = (good + bad) / 2
        good, bad = (middle, bad) if holds(middle) else (good, middle)
    return good
