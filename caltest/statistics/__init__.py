"""Statistics: measures of miscalibration, one family a file. A new one is a file and a line here."""

from caltest.statistics.base import FunctionStatistic, Statistic
from caltest.statistics.corp import BrierMCB, LogMCB
from caltest.statistics.ece import ACE, ECE, ESCE, MCE, DebiasedECE, SquaredECE
from caltest.statistics.skce import MMCE, BiasedSKCE, LinearSKCE, UnbiasedSKCE
from caltest.statistics.smooth_ece import SmoothECE

STATISTICS: dict[str, type[Statistic]] = {
    statistic.name: statistic
    for statistic in (
        UnbiasedSKCE,
        BiasedSKCE,
        LinearSKCE,
        MMCE,
        ECE,
        MCE,
        ACE,
        ESCE,
        SquaredECE,
        DebiasedECE,
        SmoothECE,
        BrierMCB,
        LogMCB,
    )
}

__all__ = [
    "ACE",
    "ECE",
    "ESCE",
    "MCE",
    "MMCE",
    "STATISTICS",
    "BiasedSKCE",
    "BrierMCB",
    "DebiasedECE",
    "FunctionStatistic",
    "LinearSKCE",
    "LogMCB",
    "SmoothECE",
    "SquaredECE",
    "Statistic",
    "UnbiasedSKCE",
]
