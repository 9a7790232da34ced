"""A few of very many rows, to fit a statistic to: the same ones in whatever parts the rows come."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from caltest._quoted import quoted
from caltest.data.sample import Rows
from caltest.exceptions import InputError

Array = NDArray[np.float64]
Hashes = NDArray[np.uint64]

GLIMPSED = 8192
"""Rows of a glimpse: enough for a median distance, for quantiles and for landmarks."""

_MIXERS = (np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB))  # of SplitMix64
_STEP = np.uint64(0x9E3779B97F4A7C15)


def glimpse(parts: Iterable[Array], size: int = GLIMPSED) -> Rows:
    """Return a random sample of the rows, in random order.

    Which rows these are depends on their places alone: those whose number has the smallest hash value.
    Where the parts begin does not matter, nothing need be kept but the rows chosen so far, and equal
    rows are as frequent as among all.

    Parameters
    ----------
    parts
        Predictions, (rows, m) each, together all rows, in their order.
    size
        How many rows at most. Default 8192.

    Examples
    --------
    >>> probs = np.linspace(0.0, 1.0, 1000).reshape(-1, 2)
    >>> one = glimpse([probs], 5).probs
    >>> other = glimpse([probs[:300], probs[300:]], 5).probs
    >>> one.shape, bool((one == other).all())
    ((5, 2), True)
    """
    if not isinstance(parts, Iterable):
        raise InputError(f"parts is {quoted(parts)}; give arrays of rows.")
    kept: Array | None = None
    values, first = np.empty(0, dtype=np.uint64), 0
    for part in parts:
        found, probs = _mixed(np.arange(first, first + len(part), dtype=np.uint64)), part
        first += len(part)
        if kept is not None:
            near = found < values[-1] if len(values) == size else slice(None)
            found = np.concatenate([values, found[near]])
            probs = np.concatenate([kept, part[near]])
        order = np.argsort(found)[:size]
        values, kept = found[order], probs[order]
    if kept is None:
        raise InputError("there is no part; give one array of rows at least.")
    return Rows(kept)


def _mixed(numbers: Hashes) -> Hashes:
    """Return hash values of whole numbers, all different: those of SplitMix64."""
    with np.errstate(over="ignore"):
        values = (numbers + np.uint64(1)) * _STEP
        for shift, mixer in zip((30, 27), _MIXERS, strict=True):
            values = (values ^ (values >> np.uint64(shift))) * mixer
        return values ^ (values >> np.uint64(31))
