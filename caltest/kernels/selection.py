"""Values of given ranks among many numbers, exact and in bounded memory."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import pairwise
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from caltest.kernels.distances import Floats

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
