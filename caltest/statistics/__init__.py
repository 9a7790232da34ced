"""Statistics: the measures of miscalibration that tests and estimates use."""

from caltest.statistics.base import AllRowsNeededError, FunctionStatistic, Partwise, Statistic
from caltest.statistics.ckce import CKCE, JKCE
from caltest.statistics.classical import (
    BrierMCB,
    CalibrationInTheLarge,
    CoxRecalibration,
    HosmerLemeshow,
    LogMCB,
)
from caltest.statistics.cumulative import KolmogorovSmirnov, Kuiper, LargestBinError, Scan
from caltest.statistics.ece import ACE, ECE, ESCE, MCE, DebiasedECE, SmoothECE, SquaredECE
from caltest.statistics.omnibus import Omnibus
from caltest.statistics.scores import ECD, NEES, Brier, LogScore, Spiegelhalter
from caltest.statistics.skce import MMCE, BiasedSKCE, LinearSKCE, UnbiasedSKCE
from caltest.statistics.t_cal import TCal
from caltest.statistics.ucme import UCME

STATISTICS: dict[str, type[Statistic]] = {
    statistic.name: statistic
    for statistic in (
        Omnibus,
        UnbiasedSKCE,
        BiasedSKCE,
        LinearSKCE,
        UCME,
        MMCE,
        CKCE,
        JKCE,
        ECE,
        MCE,
        ACE,
        ESCE,
        SquaredECE,
        DebiasedECE,
        SmoothECE,
        BrierMCB,
        LogMCB,
        KolmogorovSmirnov,
        Kuiper,
        Scan,
        LargestBinError,
        TCal,
        ECD,
        LogScore,
        Brier,
        Spiegelhalter,
        HosmerLemeshow,
        CalibrationInTheLarge,
        CoxRecalibration,
    )
}

#: Statistics that look at predicted distributions of numbers (:mod:`caltest.predictive`).
DENSITY_STATISTICS: dict[str, type[Statistic]] = {
    statistic.name: statistic for statistic in (ECD, NEES)
}

__all__ = [
    "ACE",
    "CKCE",
    "DENSITY_STATISTICS",
    "ECD",
    "ECE",
    "ESCE",
    "JKCE",
    "MCE",
    "MMCE",
    "NEES",
    "UCME",
    "AllRowsNeededError",
    "Partwise",
    "STATISTICS",
    "BiasedSKCE",
    "Brier",
    "BrierMCB",
    "CalibrationInTheLarge",
    "CoxRecalibration",
    "DebiasedECE",
    "FunctionStatistic",
    "HosmerLemeshow",
    "KolmogorovSmirnov",
    "Kuiper",
    "LargestBinError",
    "LinearSKCE",
    "LogMCB",
    "LogScore",
    "Omnibus",
    "Scan",
    "SmoothECE",
    "Spiegelhalter",
    "SquaredECE",
    "Statistic",
    "TCal",
    "UnbiasedSKCE",
]
