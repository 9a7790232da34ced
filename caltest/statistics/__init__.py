"""Statistics: measures of miscalibration, one family a file. A new one is a file and a line here."""

from caltest.statistics.base import FunctionStatistic, Statistic
from caltest.statistics.skce import BiasedSKCE, LinearSKCE, UnbiasedSKCE

STATISTICS: dict[str, type[Statistic]] = {
    statistic.name: statistic for statistic in (BiasedSKCE, UnbiasedSKCE, LinearSKCE)
}

__all__ = [
    "STATISTICS",
    "BiasedSKCE",
    "FunctionStatistic",
    "LinearSKCE",
    "Statistic",
    "UnbiasedSKCE",
]
