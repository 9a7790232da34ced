"""Predicted distributions of numbers: what a model of a continuous outcome says, one a row.

A classifier predicts probabilities of classes, a regression or a tracker a distribution of numbers or
vectors. The claim is the same, that the outcome is a draw from what was predicted, and so is the exact
null: draw outcomes from the predicted distributions, which are held fixed. Give one of these objects
instead of probabilities::

    caltest.test(caltest.predictive.Gaussian(mean, covariance), outcomes, "ecd")
"""

from __future__ import annotations

from caltest.predictive.base import Predictive, PredictiveSample
from caltest.predictive.ensemble import Ensemble
from caltest.predictive.frozen import FromScipy
from caltest.predictive.gaussian import Gaussian

__all__ = ["Ensemble", "FromScipy", "Gaussian", "Predictive", "PredictiveSample", "recognised"]


def recognised(given: object) -> Predictive | None:
    """Return predicted distributions if these are some, wrapped if they are scipy's; else None."""
    if isinstance(given, Predictive):
        return given
    first = given[0] if isinstance(given, list | tuple) and given else given
    if hasattr(first, "rvs") and hasattr(first, "entropy"):
        return FromScipy(given)
    return None
