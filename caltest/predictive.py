"""Predicted distributions and other statements about outcomes: pass one instead of probabilities."""

from caltest.laws.base import Predictive
from caltest.laws.gaussian import Ensemble, GaussianPredictions, Normal
from caltest.laws.members import Members
from caltest.laws.objects import Distribution
from caltest.laws.points import Point
from caltest.laws.quantiles import Quantiles
from caltest.laws.sets import Sets
from caltest.laws.survival import Survival

__all__ = ["Distribution", "Ensemble", "GaussianPredictions", "Members", "Normal", "Predictive"]
__all__ += ["Point", "Quantiles", "Sets", "Survival"]
