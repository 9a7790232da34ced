"""Probabilities of exactly 0: where they come from, as far as predictions tell, and what to do.

A wrong cause is worse than none: one is named only where hardly anything else looks like it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

Array: TypeAlias = NDArray[np.float64]
Cause: TypeAlias = Literal["decisions", "clipping", "precision", "steps", "blocks"]

_FEWEST_ROWS = 20  # fewer may look like anything
_MOST = 1_000_000  # entries that are looked at
_MOST_TIED = 2_000  # rows in which ties are looked for: in many, what is rounded is tied too
_ON_GRID = 1e-7  # of numbers of single precision, which are rounded themselves
_DECIMALS = (1, 2, 3, 4, 5)
_MOST_VOTES = 1000
_MANY = 30  # different values: as many shares of blocks have no small common denominator
_SINGLE, _DOUBLE = 2.0**-24, 2.0**-53  # from 1 to the number before it
_CLIPPED_AT = [10.0**-k for k in range(8, 31)]


@dataclass(frozen=True)
class Zeros:
    """Why probabilities are 0.

    Attributes
    ----------
    cause
        "decisions": all are 0 or 1. "clipping": many are the same small number, 1 minus which is 1.
        "precision": others are next to 0 or 1 as near as numbers come. "steps": all are multiples of a
        step. "blocks": there are few, as there are shares of the rows of a block.
    step
        That of which all are multiples; None where that is not the cause, or is not known.
    rounded
        Whether steps can be of nothing but rounding, since rows do not sum to 1.
    """

    cause: Cause
    step: float | None = None
    rounded: bool = False


def why_zero(probs: Array, off: float = 0.0) -> Zeros | None:
    """Return why entries of predictions (n, m) are 0; None if that is not plain.

    ``off`` is by how much sums of rows differed from 1 at most, before rows were divided by them.
    """
    if len(probs) < _FEWEST_ROWS:
        return None
    some = probs[:: -(-probs.size // _MOST)]
    values, times = _inner(some)
    if len(values) == 0:
        return Zeros("decisions")
    columns = some.T if some.shape[1] == 2 else ()
    for column in columns:
        found, times = _inner(column)
        if len(found) and times[0] > 2 and np.isclose(found[0], _CLIPPED_AT, rtol=1e-3, atol=0.0).any():
            return Zeros("clipping")
    if any(_precision_ends(_inner(each)[0]) for each in (some, *columns) if not each.all()):
        return Zeros("precision")
    if off > 0.9 * 10.0 ** -_DECIMALS[-1]:  # by so much sums of rounded numbers are off at least
        return _rounded(some)
    per_one, sure = _grid(values)
    if per_one:
        return Zeros("steps", 1.0 / per_one) if sure else None
    tied = probs[:: -(-len(probs) // _MOST_TIED)]
    values, times = _inner(tied[(tied > 0.01) & (tied < 0.99)])
    return Zeros("blocks") if times.sum() >= max(_MANY, 2 * len(values)) else None


def _inner(values: Array) -> tuple[Array, NDArray[np.intp]]:
    """Return the different values between 0 and 1 in their order, and how often each occurs."""
    found, times = np.unique(values, return_counts=True)
    inner = (found > 0.0) & (found < 1.0)
    return found[inner], times[inner]


def _precision_ends(values: Array) -> bool:
    """Whether sorted values between 0 and 1 go on to where numbers end, near 0 or near 1."""
    if np.count_nonzero(values < 1e-20) > 2 and 1e-46 < values[0] < 1e-30:
        return True
    for unit in (_SINGLE, _DOUBLE):  # what one column next to 1 leaves to the other; or half precision
        counts = values[values < 40.0 * unit] / unit
        if len(counts) > 9 and np.all(np.abs(counts - np.round(counts)) < 2e-3 * counts):
            return True
    return False


def _rounded(probs: Array) -> Zeros | None:
    """Find the step in rows that did sum to 1: they are as they were stated."""
    rows = probs[(probs < 1.0).all(axis=1)]
    off = {d: np.abs(rows - np.round(rows, d)).max(axis=1, initial=0.0) < _ON_GRID for d in _DECIMALS}
    whole = np.count_nonzero(off[_DECIMALS[-1]])
    if whole < max(_FEWEST_ROWS, 0.05 * len(rows)):
        return None
    decimals = next(d for d in _DECIMALS if np.count_nonzero(off[d]) >= 0.9 * whole)
    steps = step_of(_inner(rows[off[decimals]])[0])
    return Zeros("steps", 10.0**-decimals if steps is None else steps, rounded=True)


def step_of(values: Array) -> float | None:
    """Return the step of which all of some different values are multiples, where that is no chance."""
    per_one, sure = _grid(values)
    return 1.0 / per_one if sure else None


def _grid(values: Array) -> tuple[int, bool]:
    """Return 1 over the largest step of which all values are multiples, 0 for none; is it no chance?"""
    if len(values) == 0:
        return 0, False
    few = values[:: max(1, len(values) // 100)]
    for per_one in (*(10**d for d in _DECIMALS), *range(2, _MOST_VOTES + 1)):
        if all(np.all(np.abs(x - np.round(x * per_one) / per_one) < _ON_GRID) for x in (few, values)):
            break
    else:
        return 0, False
    counts = np.unique(np.round(values * per_one).astype(np.int64))
    shared = int(np.gcd.reduce(np.append(counts, per_one)))
    counts, per_one = counts // shared, per_one // shared
    small = np.unique(np.minimum(counts, per_one - counts))
    filled = len(counts) >= 3 and 2 * len(counts) >= per_one - 1
    in_a_row = small[0] <= 2 and np.median(np.diff(small, append=small[-1:])) == 1.0
    percents = 100 % per_one == 0
    return per_one, bool(filled or len(counts) >= _MANY or (len(small) >= 5 and (in_a_row or percents)))


#: What to do about each cause but steps, of which it depends on what they are.
_ADVICE = {
    "decisions": "Every probability is 0 or 1, as of class decisions or of trees with pure leaves: "
    "give probabilities (predict_proba), of leaves of more rows.",
    "clipping": "Zeros come from clipping: 1 minus so small a number is 1. Compute probabilities from "
    "logits in float64 by softmax, a column for every class, and do not clip them.",
    "precision": "Zeros are probabilities too small for the numbers that hold them. Compute them "
    "from logits in float64 by softmax, a column for every class (of two, expit(-z) and expit(z)).",
    "blocks": "There are few different probabilities, as of isotonic regression, bins or a tree, where "
    "a block of rows without the event has probability 0. Fit it on more rows, or keep 0 and 1 out: (k "
    "+ 1)/(n + 2) for k events of n, or IsotonicRegression(y_min=1/(n + 2), y_max=1 - 1/(n + 2)) of n "
    "rows.",
}


def advice(zeros: Zeros, n_classes: int, clustered: bool = False) -> str:
    """Return why probabilities are 0 and what to do: no rounding for rows in clusters."""
    if zeros.step is None:
        return _ADVICE[zeros.cause]
    per_one, step = round(1.0 / zeros.step), f"{zeros.step:.6g}"
    votes = f"give (votes + 1)/({per_one} + {n_classes})"
    if 10 ** _DECIMALS[-1] % per_one:
        return f"Every probability is a multiple of 1/{per_one}, a share of {per_one} votes: {votes}."
    save = "save more digits" + ("" if clustered else f", or {ask_about_one(zeros.step, n_classes)}")
    if zeros.rounded or per_one > _MOST_VOTES:
        return f"Zeros are rounded, to multiples of {step}: {save}."
    return (
        f"Every probability is a multiple of {step}. If they are rounded, {save}. If they are shares "
        f"of {per_one} votes, {votes}."
    )


def ask_about_one(step: float, n_classes: int) -> str:
    """Say how to test one probability that was rounded to a step."""
    lens = "" if n_classes == 2 else "lens='top_label', "
    return f"ask about one probability: caltest.test(..., {lens}rounding={step:.6g})"
