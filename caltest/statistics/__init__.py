"""Statistics: the measures of miscalibration that tests and estimates use."""

# ruff: noqa: F403, F405 -- every statistic of the modules below is public

from collections.abc import Callable
from typing import TypeAlias

from caltest._arguments import made
from caltest.laws import Classes
from caltest.statistics.base import *
from caltest.statistics.ckce import *
from caltest.statistics.classical import *
from caltest.statistics.distributions import *
from caltest.statistics.ece import *
from caltest.statistics.features import *
from caltest.statistics.features import OfFeatures
from caltest.statistics.omnibus import *
from caltest.statistics.order import *
from caltest.statistics.order import OfOrder
from caltest.statistics.points import *
from caltest.statistics.skce import *
from caltest.statistics.table import TABLE
from caltest.statistics.times import *

_EVERY: dict[str, type[Statistic]] = {name: Listed.of_name[name] for name in TABLE}

#: Statistics of residuals and features, for classes through a lens and for numbers.
FEATURE_STATISTICS = {name: each for name, each in _EVERY.items() if issubclass(each, OfFeatures)}

_OTHERS = {name: each for name, each in _EVERY.items() if not issubclass(each, OfFeatures | OfOrder)}

#: Statistics of predicted classes, in the order of the table.
STATISTICS = {name: each for name, each in _OTHERS.items() if Classes in each.laws}

#: Statistics of predicted distributions of numbers (:mod:`caltest.predictive`).
DENSITY_STATISTICS = {name: each for name, each in _OTHERS.items() if {*each.laws} != {Classes}}

#: A name, an object, or your own function.
StatisticLike: TypeAlias = str | Statistic | Callable[..., float]

__all__ = [each.__name__ for each in _EVERY.values()]
__all__ += ["AllRowsNeededError", "FunctionStatistic", "Learned", "SKCEOfNumbers", "Statistic"]
__all__ += ["StatisticLike", "DENSITY_STATISTICS", "FEATURE_STATISTICS", "STATISTICS"]


def find_statistic(statistic: StatisticLike) -> Statistic:
    """Return the statistic for a name, an object or a function."""
    if callable(statistic) and not isinstance(statistic, type | Statistic):
        return FunctionStatistic(statistic)
    do = "give a name, an object of caltest.statistics, or a function f(probs, labels) -> float"
    return made("statistic", statistic, _EVERY | STATISTICS, Statistic, do)  # type: ignore[type-abstract]
