"""Errors as estimated from a pilot's labels: what of them is noise is what a study shows."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import brentq
from scipy.special import chdtri, expit, logit

import caltest
from caltest.binning import DistinctScores

Array = NDArray[np.float64]
Kind = Literal["logistic", "isotonic"]

_LEVEL = 0.05  # of the intervals of fits, and of the tests whether there is anything to fit


class Estimated(NamedTuple):
    """The truth as a pilot shows it, and at the end of its 95% interval nearest to calibrated."""

    truth: Array
    careful: Array | None  # None if the pilot does not show an error, or there is no such end
    shown: bool  # whether the pilot shows that its model is miscalibrated


def _farthest(surprise: Callable[[float], float], best: float, last: float, degrees: int = 1) -> float:
    """Return where, on the way from the best fit to the last, a likelihood ratio begins to reject.

    The last if it never does.
    """
    height = surprise(best) + 0.5 * float(chdtri(degrees, _LEVEL))
    if surprise(last) <= height:
        return last
    return float(brentq(lambda x: surprise(x) - height, best, last))


def estimated(p: Array, labels: NDArray[np.intp], kind: Kind) -> Estimated | None:
    """Fit to the pilot's labels: Cox's line, or a curve that never falls; None if none fits."""
    if kind == "isotonic":
        pooled = DistinctScores.of(p, np.ones(len(p)))
        truth = pooled.rising(labels).clip(0.0, 1.0)[pooled.group]
        same = caltest.test(p, labels, "mcb_log", n_resamples=199, rng=0).pvalue
        return Estimated(truth, None, same <= _LEVEL)
    found = caltest.recalibration(p, labels)
    a, b = found.intercept, 1.0 if np.isnan(found.slope) else found.slope
    if np.isnan(a):
        return None
    logits, signs = logit(p), np.where(labels == 1, -1.0, 1.0)

    def line(share: float) -> Array:
        """Return the logits on the way from calibrated to the fit."""
        return share * a + (1.0 + share * (b - 1.0)) * logits

    def surprise(share: float) -> float:
        return float(np.logaddexp(0.0, signs * line(share)).sum())

    share = _farthest(surprise, 1.0, 0.0, max(found.test_both.degrees, 1))
    return Estimated(expit(line(1.0)), expit(line(share)) if share > 0.0 else None, share > 0.0)
