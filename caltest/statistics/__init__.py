"""Statistics: the measures of miscalibration that tests and estimates use."""

from collections.abc import Callable
from typing import TypeAlias

from caltest._arguments import check_takes, choose, takes
from caltest._visible import quoted
from caltest.exceptions import InputError
from caltest.statistics.base import AllRowsNeededError, FunctionStatistic, Statistic
from caltest.statistics.ckce import CKCE, JKCE
from caltest.statistics.classical import (
    ECD,
    NEES,
    Brier,
    BrierMCB,
    CalibrationInTheLarge,
    CoxRecalibration,
    HosmerLemeshow,
    LogMCB,
    LogScore,
    Spiegelhalter,
)
from caltest.statistics.cumulative import KolmogorovSmirnov, Kuiper, LargestBinError, Scan
from caltest.statistics.ece import (
    ACE,
    ECE,
    ESCE,
    MCE,
    ClasswiseECE,
    DebiasedECE,
    ECESweep,
    SmoothECE,
    SquaredECE,
    TCal,
)
from caltest.statistics.members import EnergyScore, OmnibusOfVectors, VariogramScore
from caltest.statistics.numbers import (
    CRPS,
    ENCE,
    UCE,
    Bias,
    Coverage,
    DawidSebastiani,
    OmnibusOfNumbers,
    PitAndersonDarling,
    PitChiSquare,
    PitCramerVonMises,
    PitKolmogorovSmirnov,
    PitKuiper,
    SKCEOfNumbers,
    Spread,
)
from caltest.statistics.omnibus import Omnibus
from caltest.statistics.skce import MMCE, UCME, BiasedSKCE, LinearSKCE, UnbiasedSKCE
from caltest.statistics.times import (
    E50,
    E90,
    ICI,
    DCalibration,
    Events,
    EventSlope,
    GreenwoodNamDAgostino,
)

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
        ECESweep,
        ClasswiseECE,
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
    statistic.name: statistic
    for statistic in (
        PitKolmogorovSmirnov,
        PitKuiper,
        PitCramerVonMises,
        PitAndersonDarling,
        PitChiSquare,
        Bias,
        Spread,
        Coverage,
        CRPS,
        DawidSebastiani,
        ECD,
        NEES,
        UCE,
        ENCE,
        EnergyScore,
        VariogramScore,
        DCalibration,
        Events,
        EventSlope,
        GreenwoodNamDAgostino,
        ICI,
        E50,
        E90,
    )
}

__all__ = [
    "ACE",
    "CKCE",
    "CRPS",
    "E50",
    "E90",
    "ICI",
    "DCalibration",
    "Events",
    "EventSlope",
    "GreenwoodNamDAgostino",
    "DENSITY_STATISTICS",
    "ECD",
    "ECE",
    "ENCE",
    "ESCE",
    "JKCE",
    "MCE",
    "MMCE",
    "NEES",
    "UCE",
    "UCME",
    "AllRowsNeededError",
    "STATISTICS",
    "Bias",
    "BiasedSKCE",
    "Brier",
    "BrierMCB",
    "CalibrationInTheLarge",
    "ClasswiseECE",
    "Coverage",
    "CoxRecalibration",
    "DawidSebastiani",
    "DebiasedECE",
    "ECESweep",
    "EnergyScore",
    "FunctionStatistic",
    "HosmerLemeshow",
    "KolmogorovSmirnov",
    "Kuiper",
    "LargestBinError",
    "LinearSKCE",
    "LogMCB",
    "LogScore",
    "Omnibus",
    "OmnibusOfNumbers",
    "OmnibusOfVectors",
    "PitAndersonDarling",
    "PitChiSquare",
    "PitCramerVonMises",
    "PitKolmogorovSmirnov",
    "PitKuiper",
    "SKCEOfNumbers",
    "Scan",
    "SmoothECE",
    "Spiegelhalter",
    "Spread",
    "SquaredECE",
    "Statistic",
    "StatisticLike",
    "TCal",
    "UnbiasedSKCE",
    "VariogramScore",
    "find_statistic",
]

#: A name, an object, or a function of yours.
StatisticLike: TypeAlias = str | Statistic | Callable[..., float]


def find_statistic(statistic: StatisticLike) -> Statistic:
    """Return the statistic of a name, an object or a function."""
    if isinstance(statistic, str):
        return choose("statistic", statistic, STATISTICS | DENSITY_STATISTICS)()
    if isinstance(statistic, type) and issubclass(statistic, Statistic):
        return statistic()
    if isinstance(statistic, Statistic):
        return statistic
    if callable(statistic) and not isinstance(statistic, type):
        if not takes("probs", "labels", "weights", of=statistic):
            check_takes("statistic", statistic, "probs", "labels")
        return FunctionStatistic(statistic)
    raise InputError(
        f"statistic is {quoted(statistic)}; give a name, an object of caltest.statistics, "
        "or a function f(probs, labels) -> float."
    )
