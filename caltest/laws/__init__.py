"""Laws: what a model predicted of its outcomes, of any kind."""

from caltest.laws.classes import Classes, Law, Outcomes
from caltest.laws.distributions import GaussianPredictions, Normal, Predictive
from caltest.laws.numbers import Ranks, recognised
from caltest.laws.quantiles import Quantiles
from caltest.laws.survival import Survival
