"""Where the errors lie: intervals of the score, each with a bound that holds for all together."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray
from scipy.special import bdtr

from caltest._sums import law_of_sum
from caltest.bounds.result import Place
from caltest.bounds.shifts import Array, ShiftedScan
from caltest.forms import Side

_EXACT_ROWS = 8192  # of an interval: in more, the binomial is about as sharp
_ROUNDING = 1e-13  # of a chance, at most


def largest_refuted(
    scan: ShiftedScan, labels: NDArray[np.intp], side: Side, level: float
) -> NDArray[np.intp]:
    """Return for every interval the last tolerance that is refuted there, −1 if none is.

    Notes
    -----
    Let S count the events of an interval I, and S^ε those of independent rows with the probabilities
    max(p − ε, 0). An amount ε is refuted in I if P(S^ε ≤ S) is at most level/K, K the number of
    different intervals. Let e be the largest p − q in I. All q are at least max(p − e, 0), so S is
    stochastically no smaller than S^e, and P(S^e ≤ S) is at most level/K with a chance of at most
    level/K. P(S^ε ≤ s) does not fall as ε grows, so this is also the chance that any ε from e on is
    refuted in I. Over K intervals, whatever e is in each and however they overlap, the chances add up
    to ``level`` at most: in every finite sample, and without a draw.

    What is refuted in a part of an interval is refuted in the interval, whose e is no smaller.

    That intervals which overlap depend on each other is not used: a joint law of all of them would have
    to be one for whatever e is in each, and the maximum over all tolerances, which is, has the higher
    threshold.

    S^ε is a Poisson binomial. In intervals of many rows it is replaced by the binomial of the same
    mean, whose lower tail is the heavier one at s ≤ mean − 1: Hoeffding, "On the distribution of the
    number of successes in independent trials", Annals of Mathematical Statistics 27 (1956), Theorem 4.

    Parameters
    ----------
    scan, labels
        The rows in order, and their labels.
    side
        "over" for p − q; "under" is the same of the rows without an event.
    level
        Chance that any of the tolerances returned is not below the truth of its interval.

    Examples
    --------
    >>> scan = ShiftedScan.of(np.full((100, 2), 0.5), np.array([0, 1000, 2000, 3000]))
    >>> labels = np.repeat([0, 1], [80, 20])  # 20 of 100 where 50 were predicted
    >>> largest_refuted(scan, labels, "over", 0.05).tolist()
    [2]
    """
    bounds = scan.intervals.bounds
    pairs = np.unique(bounds[scan.intervals.filled], axis=0)
    allowed = level / len(pairs)
    p = scan.probs[:, 1 if side == "over" else 0]
    counted = np.concatenate([[0], np.cumsum(labels if side == "over" else 1 - labels)])
    events = counted[bounds[:, 1]] - counted[bounds[:, 0]]
    found = _by_binomials(scan.expected(side), np.diff(bounds, axis=1), events[:, None], allowed)
    for index in np.flatnonzero(scan.intervals.filled & (np.diff(bounds, axis=1)[:, 0] <= _EXACT_ROWS)):
        inside = p[slice(*bounds[index])]

        def refuted(g: int, inside: Array = inside, least: int = int(events[index])) -> bool:
            chances = np.maximum(inside - scan.tolerances[g], 0.0)
            law = law_of_sum(np.column_stack([1.0 - chances, chances]))
            return float(law[: least + 1].sum()) + _ROUNDING <= allowed

        found[index] = _gallop(refuted, int(found[index]), len(scan.grid))
    starts, stops = bounds.T
    holds = (starts[:, None] <= starts) & (stops <= stops[:, None]) & scan.intervals.filled
    return np.asarray(np.where(holds, found, -1).max(axis=1))


def _by_binomials(expected: Array, rows: Array, events: Array, allowed: float) -> NDArray[np.intp]:
    """Return the last refuted column of the means (L, G), −1 if none is."""
    means = np.maximum(expected, 0.0)  # of no rows: nothing is refuted
    share = np.clip(means / np.maximum(rows, 1), 0.0, 1.0)
    refuted = (events <= means - 1.0) & (bdtr(events, rows, share) + _ROUNDING <= allowed)
    return np.asarray(refuted.sum(axis=1) - 1, dtype=np.intp)  # the first so many, as means fall


def _gallop(holds: Callable[[int], bool], known: int, count: int) -> int:
    """Return the last of 0..count − 1 for which it holds; it holds up to ``known``, then up to some."""
    step = 1
    while known + step < count and holds(known + step):
        known, step = known + step, 2 * step
    beyond = min(known + step, count)
    while beyond - known > 1:
        middle = (known + beyond) // 2
        known, beyond = (middle, beyond) if holds(middle) else (known, middle)
    return known


def places(
    scan: ShiftedScan,
    labels: NDArray[np.intp],
    found: NDArray[np.bool_],
    somewhere_by: Array,
    pvalues: Array,
    observed: Array,
) -> tuple[Place, ...]:
    """Describe the intervals that were found, the most telling first.

    Named are those that overlap none named before.

    Parameters
    ----------
    scan, labels
        The rows in order, and their labels.
    found
        (L,) whether the model is wrong there.
    somewhere_by, pvalues, observed
        (L,) bounds, adjusted p-values and standardised errors.
    """
    scores = scan.probs[:, 1]
    bounds = scan.intervals.bounds
    chosen = np.flatnonzero(found & scan.intervals.filled)
    rows = np.diff(bounds, axis=1)[:, 0]  # of equal bounds, that of the shortest interval says most
    order = chosen[
        np.lexsort((-observed[chosen], pvalues[chosen], rows[chosen], -somewhere_by[chosen]))
    ]
    taken = np.zeros(len(scores), dtype=bool)
    seen: set[tuple[int, int]] = set()
    described = []
    for index in order.tolist():
        start, stop = (int(each) for each in bounds[index])
        if (start, stop) in seen:  # equal scores may make intervals the same
            continue
        seen.add((start, stop))
        alone = not taken[start:stop].any()
        taken[start:stop] |= alone
        described.append(
            Place(
                low=float(scores[start]),
                high=float(scores[stop - 1]),
                rows=stop - start,
                says=float(scores[start:stop].mean()),
                share=float(labels[start:stop].mean()),
                somewhere_by=float(somewhere_by[index]),
                pvalue=float(pvalues[index]),
                named=alone,
            )
        )
    return tuple(described)
