"""Tests of equal error: have two models, on the same rows, errors of the same size?

Of errors with a sign, |θ_i| = |θ_j| says that θ_i = θ_j or that θ_i = −θ_j. Both must be rejected (an
intersection-union test): the p-value is the larger one of those of S_i − S_j and of S_i + S_j. The size
|S_i| itself is half-normal where θ_i is 0, so that |S_i| − |S_j| has no normal law.

What happens seldom leaves no trace in a standard error that is estimated from the rows, if it did not
happen. A standard error is therefore at least what it would be if model i were calibrated, and if model
j were.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from scipy.special import stdtr

from caltest._tiles import Array
from caltest.comparison.resampling import ModelStatistic, signs
from caltest.comparison.u_statistics import StandardErrors
from caltest.multiplicity import SMALLEST

#: Draws of labels from the predictions of each model.
LABEL_DRAWS = 200


class Equality(NamedTuple):
    """Of every pair: the difference of the errors' sizes, its standard error, and a p-value, (K, K)."""

    differences: Array
    errors: Array
    pvalues: Array


def biases_of(candidates: Sequence[ModelStatistic], signed: bool) -> Array:
    """Return every model's mean size if it is calibrated; U-statistics have no bias."""
    own = [np.zeros(1) if each.gram else each.drawn[number] for number, each in enumerate(candidates)]
    return np.array([np.mean(np.abs(values) if signed else values) for values in own])


def equality(
    candidates: Sequence[ModelStatistic],
    biases: Array,
    errors: StandardErrors,
    degrees: float,
    signed: bool,
    resolution: float,
) -> Equality:
    """Test every pair, by t with so many degrees of freedom; equal errors have difference 0 and p 1.

    Without a sign, a model's bias is at most what it is if calibrated: a bin that is far off has none.
    Of equal errors, the difference of i's and j's values therefore lies between −bias j and bias i on
    average, and only what is outside of that interval counts. With a sign there is none if calibrated.
    """
    values = np.array([each.value for each in candidates])
    keys = np.abs(values) if signed else values
    drawn = np.stack([each.drawn for each in candidates])
    tied = signs(keys[:, None], keys, resolution) == 0
    with np.errstate(invalid="ignore"):  # inf − inf
        differences = np.where(tied, 0.0, keys[:, None] - keys)
        apart = np.maximum(errors.differences, _if_calibrated(drawn, -1.0))
        if not signed:
            known = np.isfinite(biases)
            reach = np.where(known, biases, 0.0)
            beyond = differences - np.clip(differences, -reach, reach[:, None])
            hidden = tied | ~(known & known[:, None])
            return Equality(differences, apart, np.where(hidden, 1.0, _pvalues(beyond, apart, degrees)))
        together = np.maximum(errors.sums, _if_calibrated(drawn, 1.0))
        pvalues = np.maximum(
            _pvalues(values[:, None] - values, apart, degrees),
            _pvalues(values[:, None] + values, together, degrees),
        )
    alike = np.signbit(values[:, None]) == np.signbit(values)
    return Equality(differences, np.where(alike, apart, together), np.where(tied, 1.0, pvalues))


def _if_calibrated(drawn: Array, sign: float) -> Array:
    """Return the standard deviation of S_i ± S_j, (K, K), if i or j is calibrated, the larger one.

    ``drawn`` is (K, K, draws): model i's value for labels from model k. Labels that another model calls
    impossible can make it infinite; those draws do not count.
    """
    count = len(drawn)
    found = np.zeros((count, count))
    for i in range(count):
        for j in range(i):
            for values in drawn[i, [i, j]] + sign * drawn[j, [i, j]]:
                finite = values[np.isfinite(values)]
                if len(finite) > 1:
                    spread = np.std(finite - finite[0], ddof=1)  # exactly 0 where nothing varies
                    found[i, j] = found[j, i] = max(found[i, j], spread)
    return found


def _pvalues(differences: Array, errors: Array, degrees: float) -> Array:
    """Return two-sided p-values; 1 where the standard error is unknown or nothing varies."""
    usable = np.isfinite(differences) & np.isfinite(errors) & (errors > 0.0)
    t = np.abs(np.where(usable, differences, 0.0)) / np.where(usable, errors, 1.0)
    return np.where(usable, np.clip(2.0 * stdtr(degrees, -t), SMALLEST, 1.0), 1.0)
