"""Where the errors lie: intervals of the score, each with a bound that holds for all together."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from caltest._tail import TIE_TOLERANCE
from caltest.bounds.result import Place
from caltest.bounds.shifts import Array, ShiftedScan


def largest_refuted(errors: Array, largest: Array, level: float) -> NDArray[np.intp]:
    """Return for every interval the last tolerance that is refuted there, −1 if none is.

    Let y* be the outcomes that have, with the uniforms of the labels, the shifted probabilities. Where
    a tolerance holds in an interval, the labels' standardised error is at most that of y*. So the
    largest over all pairs of an interval and a tolerance that hold is at most the maximum of y* over
    all pairs, which is exchangeable with ``largest``.

    Parameters
    ----------
    errors
        (L, G) standardised errors of the labels.
    largest
        (B,) of the draws, each the largest over all intervals and tolerances.
    level
        Chance that any of the tolerances returned is not below the truth of its interval.

    Examples
    --------
    >>> errors = np.array([[9.0, 5.0, 1.0], [2.0, 1.0, 0.0]])
    >>> largest_refuted(errors, np.linspace(0.0, 4.0, 99), 0.05).tolist()
    [1, -1]
    """
    allowed = int((len(largest) + 1) * level * (1.0 + 1e-12)) - 1  # draws that may reach it
    threshold = float(np.sort(largest)[::-1][allowed])
    refuted = errors > threshold + TIE_TOLERANCE * max(abs(threshold), float(np.abs(largest).max()))
    last = errors.shape[1] - 1 - np.argmax(refuted[:, ::-1], axis=1)
    return np.where(refuted.any(axis=1), last, -1)


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
    order = chosen[np.lexsort((-observed[chosen], pvalues[chosen], -somewhere_by[chosen]))]
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
