"""Laws: predicted distributions of outcomes of every kind."""

from caltest.laws.base import Predictive, Ranks
from caltest.laws.classes import Classes, Law, Outcomes
from caltest.laws.gaussian import GaussianPredictions, Normal
from caltest.laws.members import Members, Pool, Pools
from caltest.laws.objects import recognised
from caltest.laws.points import Point
from caltest.laws.quantiles import Quantiles
from caltest.laws.sets import Covered, Sets
from caltest.laws.survival import Survival
