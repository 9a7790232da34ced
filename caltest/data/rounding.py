"""Values that were stated in steps: 0%, 5%, …, 100%, or three decimals."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from caltest.data.diagnose import Suspect
from caltest.exceptions import InputError

_ON_GRID = 1e-9  # how far from a multiple of the step a multiple may be
_ON_GRID_COARSE = 1e-7  # of float32


def in_steps(suspect: Suspect, step: float) -> NDArray[np.float64]:
    """Return the values (n, m), or (n, 1), as exact multiples of a step of which 1 is a multiple.

    A row may then sum to 1 within half a step an entry, where an entry of 0 was rounded down only.

    Raises
    ------
    InputError
        If a value is no multiple, or a row sums to what no probabilities do that round to it.
    """
    values, per_one = suspect.values, round(1.0 / step)
    counts = np.round(values * per_one)
    stated = np.asarray(counts / per_one)
    off = np.abs(values - stated) > (_ON_GRID_COARSE if suspect.table.coarse else _ON_GRID)
    if off.any():
        raise InputError(
            "probs has values that are not multiples of {step}, in {wrong} of {rows} rows: {entry}; "
            "give as rounding the step in which they were stated, or leave it out.",
            step=f"{step:.6g}",
            wrong=int(off.any(axis=1).sum()),
            rows=len(off),
            entry=suspect.entry(off),
        )
    width = stated.shape[1]
    if width == 1:
        return stated
    sums = stated.sum(axis=1)
    least, most = 1.0 - 0.5 * step * width, 1.0 + 0.5 * step * (counts > 0).sum(axis=1)
    wrong = (sums < max(least, 0.5 * step) - _ON_GRID) | (sums > most + _ON_GRID)
    if wrong.any():
        row = int(np.argmax(wrong))
        raise InputError(
            "probs has rows that no probabilities round to in steps of {step}, {wrong} of {rows}: "
            "{row} sums to {found}; give one column for every class, or correct these rows.",
            step=f"{step:.6g}",
            wrong=int(wrong.sum()),
            rows=len(wrong),
            row=row,
            found=f"{sums[row]:.6g}",
        )
    return stated
