"""What a model may predict of numbers: give one of these in place of probabilities of classes."""

from caltest.laws.distributions import GaussianPredictions, Normal, Predictive
from caltest.laws.members import Members
from caltest.laws.numbers import Distribution, Ensemble
from caltest.laws.quantiles import Quantiles
from caltest.laws.survival import Survival

__all__ = [
    "Distribution",
    "Ensemble",
    "GaussianPredictions",
    "Members",
    "Normal",
    "Predictive",
    "Quantiles",
    "Survival",
]
