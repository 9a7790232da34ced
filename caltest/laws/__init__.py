"""Laws: what a model predicted of its outcomes, of any kind."""

from caltest.laws.base import Law, Outcomes
from caltest.laws.classes import Classes
from caltest.laws.distributions import GaussianPredictions, Predictive, recognised
