"""A subsample of very many rows: a random sample of them that depends on their places alone."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from caltest._visible import quoted
from caltest.data.rows import Rows
from caltest.exceptions import InputError
from caltest.laws import Classes

SUBSAMPLED = 8192
"""Rows of a subsample: enough for a median distance, for quantiles and for landmarks."""

_MIXERS = (np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB))  # of SplitMix64
_STEP = np.uint64(0x9E3779B97F4A7C15)


def subsample(parts: Iterable[NDArray[np.float64]], size: int = SUBSAMPLED) -> Rows:
    """Return a random sample of the rows of ``parts``, each (rows, m), in random order.

    Which rows these are depends on their places alone: those whose number has the smallest hash value.
    Where the parts begin does not matter, nothing need be kept but the rows chosen so far, and equal
    rows are as frequent as among all.
    """
    if not isinstance(parts, Iterable):
        raise InputError(f"parts is {quoted(parts)}; give arrays of rows.")
    kept: NDArray[np.float64] | None = None
    values, first = np.empty(0, dtype=np.uint64), 1
    for part in parts:
        found, probs = np.arange(first, first + len(part), dtype=np.uint64) * _STEP, part
        for shift, mixer in zip((30, 27), _MIXERS, strict=True):
            found = (found ^ (found >> np.uint64(shift))) * mixer
        found ^= found >> np.uint64(31)
        first += len(part)
        if kept is not None:
            near = found < values[-1] if len(values) == size else slice(None)
            found = np.concatenate([values, found[near]])
            probs = np.concatenate([kept, part[near]])
        order = np.argsort(found)[:size]
        values, kept = found[order], probs[order]
    if kept is None:
        raise InputError("there is no part; give one array of rows at least.")
    return Rows(Classes(kept))
