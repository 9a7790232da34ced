"""Predicted distributions of numbers: what a model of a continuous outcome says, one a row.

A classifier predicts probabilities of classes, a regression or a tracker a distribution of numbers or
vectors. The claim is the same, that the outcome is a draw from what was predicted, and so is the exact
null: draw outcomes from the predicted distributions, which are held fixed. Give one of these objects
instead of probabilities::

    caltest.test(caltest.predictive.GaussianPredictions(mean, covariance), outcomes, "ecd")
"""

from __future__ import annotations

from collections.abc import Iterable

from caltest._arguments import arguments, has
from caltest.predictive.base import Predictive, PredictiveSample
from caltest.predictive.distributions import Ensemble, FromScipy, GaussianPredictions

__all__ = [
    "Ensemble",
    "FromScipy",
    "GaussianPredictions",
    "Predictive",
    "PredictiveSample",
    "recognised",
]


@arguments()
def recognised(given: object) -> Predictive | None:
    """Return predicted distributions if these are some, wrapped if they are scipy's; else None."""
    if isinstance(given, Predictive):
        return given
    objects = isinstance(given, Iterable) and has(given, "dtype") and str(given.dtype) == "object"  # type: ignore[attr-defined]
    several = list(given) if objects else given  # type: ignore[call-overload]
    first = several[0] if isinstance(several, list | tuple) and several else several
    # A series of polars has an entropy and a sample too, and no density.
    if has(first, "entropy", "logpdf") or has(first, "entropy", "logpmf"):
        return FromScipy(several)
    return None
