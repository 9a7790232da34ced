"""Rows that look like copies of each other, or like repeated measurements: noticed without being asked.

Of two independent rows with the same predictions g, the labels differ with probability 1 − |g|². If the
labels of many such pairs hardly ever differ, the rows are one row several times, or the labels were
used to fit the model. Labels that differ as often as they should prove nothing about dependence; but
where most rows share predictions of full precision with a few others, one may ask.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from caltest.data.rows import Sample

_ENOUGH = 20.0  # pairs that should differ
_HARDLY = 0.01  # of these
_MOST_ROWS = 16  # of one prediction, on average, that are taken for one patient's and no tree's leaf
_LOOKED_AT = 256  # predictions whose digits are looked at
_MOST_PARTS = 1000  # of a whole: a share of so many rows or votes, or of three decimals
_ROUND = 3.1e-8  # how far from such a share a number of single precision is


def copied_rows(sample: Sample) -> tuple[str, ...]:
    """Say so where rows look like copies; ask where they look like repeated measurements.

    Rows in clusters are not checked: they are known to belong together.

    Examples
    --------
    >>> from caltest.data import sample
    >>> rng = np.random.default_rng(0)
    >>> p = rng.random(200)
    >>> labels = (rng.random(200) < p).astype(int)
    >>> copied_rows(sample(p, labels))
    ()
    >>> copied_rows(sample(np.tile(p, 2), np.tile(labels, 2)))[0].partition(":")[0]
    'Rows look like copies of each other'
    """
    if sample.rows.clusters is not None:
        return ()
    expected, seen, rows, predictions = shared_predictions(sample)
    if expected >= _ENOUGH and seen <= _HARDLY * expected:
        return (
            "Rows look like copies of each other: of the pairs of rows with the same predictions "
            f"about {expected:,.0f} should have different labels, and {seen:,.0f} have. "
            "Leave copies out, or say which rows belong together (clusters=); if the labels were used "
            "to fit the model, test it on other rows.",
        )
    few = 0 < rows <= _MOST_ROWS * len(predictions)
    if 2 * rows >= len(sample.labels) and few and _of_full_precision(predictions):
        return (
            f"{rows:,} of {len(sample.labels):,} rows share their predictions, to the last "
            "digit, with others. If these are repeated measurements (of a patient, a user, a day), "
            "p-values take them for more evidence than they are: say which belong together "
            "(clusters=).",
        )
    return ()


def shared_predictions(sample: Sample) -> tuple[float, float, int, NDArray[np.float64]]:
    """Count pairs of rows with the same predictions, in O(n log n).

    Returns how many of them have different labels on average, if rows are independent; how many have;
    the number of rows that share their predictions with another one; and these predictions, each once.
    """
    probs, labels = sample.rows.probs, sample.labels
    # Few rows are alike in the last column, as a rule, and only these are looked at on.
    rows = _tied(probs[:, -1])
    keys = np.zeros(len(rows), dtype=np.uint64)
    for column in probs.T:
        keys *= np.uint64(0x9E3779B97F4A7C15)
        keys ^= (column[rows] + 0.0).view(np.uint64)  # 0 and −0 are equal
        keys ^= keys >> np.uint64(29)
    alike = _tied(keys)
    rows, keys = rows[alike], keys[alike]
    if not len(rows):
        return 0.0, 0.0, 0, probs[:0]
    order = np.lexsort((labels[rows], keys))
    rows, keys = rows[order], keys[order]
    first = np.diff(keys, prepend=~keys[:1]) != 0
    own = first | (np.diff(labels[rows], prepend=-1) != 0)
    sizes = np.diff(np.flatnonzero(np.append(first, True)))
    counts = np.diff(np.flatnonzero(np.append(own, True)))
    predictions = probs[rows[first]]
    unlike = 1.0 - np.einsum("ik,ik->i", predictions, predictions)
    pairs = 0.5 * sizes * (sizes - 1.0)
    seen = float(pairs.sum() - np.sum(0.5 * counts * (counts - 1.0)))
    return float(pairs @ unlike), seen, len(rows), predictions


def _tied(values: NDArray[np.generic]) -> NDArray[np.intp]:
    """Return the places of values that occur more than once."""
    order = np.argsort(values)
    ordered = values[order]
    ends = np.ones(1, dtype=np.bool_)
    new = np.concatenate([ends[: len(values)], ordered[1:] != ordered[:-1]])
    return np.sort(order[~(new & np.append(new[1:], ends[: len(values)]))])


def _of_full_precision(predictions: NDArray[np.float64]) -> bool:
    """Say whether most predictions are neither rounded nor shares of few rows or votes."""
    values = predictions[:: -(-len(predictions) // _LOOKED_AT)].max(axis=1)
    parts = np.arange(1, _MOST_PARTS + 1)
    away = np.abs(values[:, None] * parts - np.round(values[:, None] * parts)) / parts
    return bool(np.mean(away.min(axis=1) > _ROUND) > 0.5)
