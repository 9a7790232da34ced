"""The labels against all draws, for every tolerance of a scan."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import NDArray

from caltest import _tail
from caltest._parallel import Workers
from caltest._sampling import DRAWS
from caltest._tiles import blocks
from caltest.bounds.shifts import SIDES, Array, ShiftedScan
from caltest.forms import Side
from caltest.multiplicity import StepDown


@dataclass(frozen=True, eq=False)
class _Counted:
    """What a block of draws adds: (G,) and (L,) counts."""

    reached: NDArray[np.int64]
    steps: NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Compared:
    """What all draws say of one side.

    Attributes
    ----------
    observed
        (L,) standardised errors, tolerance 0.
    pvalues
        (G,) of every tolerance.
    adjusted
        (L,) of every interval, tolerance 0, adjusted for their number.
    """

    observed: Array
    pvalues: Array
    adjusted: Array

    @classmethod
    def of(cls, observed: Array, parts: Sequence[_Counted], n_draws: int) -> Compared:
        """Add the blocks."""
        reached = np.sum([part.reached for part in parts], axis=0)
        steps = np.sum([part.steps for part in parts], axis=0)
        return cls(
            observed[:, 0],
            np.array([_tail.pvalue(int(count), n_draws, "greater") for count in reached]),
            StepDown.of(observed[:, 0]).pvalues(steps, n_draws),
        )


def compared(
    scan: ShiftedScan, labels: NDArray[np.intp], n_draws: int, seed: int, workers: Workers
) -> dict[Side, Compared]:
    """Compare labels, in order, with draws; a block of draws is held at a time and worker."""
    observed = {side: scan.errors(labels, side) for side in SIDES}
    tasks = [(part.start, part.stop) for part in blocks(n_draws, DRAWS)]
    compare = partial(_compare, scan, observed, seed)
    parts = list(workers.map(compare, tasks, "label draws"))
    return {
        side: Compared.of(observed[side], [part[side] for part in parts], n_draws) for side in SIDES
    }


def _compare(
    scan: ShiftedScan, observed: dict[Side, Array], seed: int, start: int, stop: int
) -> dict[Side, _Counted]:
    drawn = scan.draw(seed, start, stop)
    return {side: _count(observed[side], *drawn[side]) for side in SIDES}


def _count(observed: Array, maxima: Array, first: Array) -> _Counted:
    highest = observed.max(axis=0)
    reached = [
        _tail.count(column, value, "greater")
        for column, value in zip(maxima.T, highest.tolist(), strict=True)
    ]
    steps = StepDown.of(observed[:, 0]).count(first)
    return _Counted(np.array(reached), steps)
