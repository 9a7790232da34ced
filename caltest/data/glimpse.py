"""A few of very many rows, to fit a statistic to: the same ones in whatever order the rows come."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from caltest.data.sample import Predictions

Array = NDArray[np.float64]
Hashes = NDArray[np.uint64]

GLIMPSED = 8192
"""Rows of a glimpse: enough for a median distance, for quantiles and for landmarks."""

_MIXERS = (np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB))  # of SplitMix64
_STEP = np.uint64(0x9E3779B97F4A7C15)


def glimpse(parts: Iterable[Array], size: int = GLIMPSED) -> Predictions:
    """Return the rows with the smallest hash values, of all that are different.

    A hash value depends on the row alone, so that neither the order of the rows nor where the parts
    begin changes what is chosen, and nothing need be kept but the rows chosen so far. It is as good as
    random: the rows are a random sample of the different ones, in random order. Of equal rows there is
    one.

    Parameters
    ----------
    parts
        Predictions, (rows, m) each, together all rows.
    size
        How many rows at most. Default 8192.

    Examples
    --------
    >>> probs = np.linspace(0.0, 1.0, 1000).reshape(-1, 2)
    >>> one = glimpse([probs], 5).probs
    >>> other = glimpse([probs[300:], probs[300:], probs[:300]], 5).probs
    >>> one.shape, bool((one == other).all())
    ((5, 2), True)
    """
    kept: Array | None = None
    values = np.empty(0, dtype=np.uint64)
    for probs in parts:
        found = _hashed(probs)
        if len(values) == size:
            near = found < values[-1]
            found, probs = found[near], probs[near]
        if kept is not None:
            found, probs = np.concatenate([values, found]), np.concatenate([kept, probs])
        values, first = np.unique(found, return_index=True)
        values, kept = values[:size], probs[first[:size]]
    if kept is None:
        raise ValueError("there is no part")
    return Predictions(kept)


def _hashed(probs: Array) -> Hashes:
    """Return a hash value of every row: numbers times fixed odd factors, added up and mixed."""
    with np.errstate(over="ignore"):
        factors = _mixed(_STEP * np.arange(1, probs.shape[1] + 1, dtype=np.uint64)) | np.uint64(1)
        bits = (np.ascontiguousarray(probs) + 0.0).view(np.uint64)  # −0 is 0
        return _mixed(((bits ^ (bits >> np.uint64(32))) * factors).sum(axis=1, dtype=np.uint64))


def _mixed(values: Hashes) -> Hashes:
    for shift, mixer in zip((30, 27), _MIXERS, strict=True):
        values = (values ^ (values >> np.uint64(shift))) * mixer
    return values ^ (values >> np.uint64(31))
