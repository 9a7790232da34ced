"""Laws: what a model predicted of its outcomes, of any kind."""

from caltest.laws.classes import Classes, Law, Outcomes
from caltest.laws.distributions import GaussianPredictions, Normal, Predictive
from caltest.laws.forecasts import recognised
from caltest.laws.members import Members, Pool, Pools
from caltest.laws.numbers import Ranks
from caltest.laws.quantiles import Quantiles
from caltest.laws.survival import Survival
