"""Statistics: the measures of miscalibration that tests and estimates use."""

from collections.abc import Callable
from typing import Any, TypeAlias

from caltest._arguments import check_takes, choose, takes
from caltest._visible import quoted
from caltest.exceptions import InputError
from caltest.laws import Classes, Law
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
from caltest.statistics.numbers import (
    CRPS,
    ENCE,
    UCE,
    DawidSebastiani,
    EnergyScore,
    OmnibusOfVectors,
    SKCEOfNumbers,
    VariogramScore,
)
from caltest.statistics.omnibus import Omnibus
from caltest.statistics.pit import (
    Bias,
    Coverage,
    OmnibusOfNumbers,
    PitAndersonDarling,
    PitChiSquare,
    PitCramerVonMises,
    PitKolmogorovSmirnov,
    PitKuiper,
    Spread,
)
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

__all__ = [
    # of classes, in the order in which they are listed
    "Omnibus",
    "UnbiasedSKCE",
    "BiasedSKCE",
    "LinearSKCE",
    "UCME",
    "MMCE",
    "CKCE",
    "JKCE",
    "ECE",
    "MCE",
    "ACE",
    "ESCE",
    "SquaredECE",
    "DebiasedECE",
    "ECESweep",
    "ClasswiseECE",
    "SmoothECE",
    "BrierMCB",
    "LogMCB",
    "KolmogorovSmirnov",
    "Kuiper",
    "Scan",
    "LargestBinError",
    "TCal",
    "ECD",
    "LogScore",
    "Brier",
    "Spiegelhalter",
    "HosmerLemeshow",
    "CalibrationInTheLarge",
    "CoxRecalibration",
    # of numbers and times
    "PitKolmogorovSmirnov",
    "PitKuiper",
    "PitCramerVonMises",
    "PitAndersonDarling",
    "PitChiSquare",
    "Bias",
    "Spread",
    "Coverage",
    "CRPS",
    "DawidSebastiani",
    "NEES",
    "UCE",
    "ENCE",
    "EnergyScore",
    "VariogramScore",
    "DCalibration",
    "Events",
    "EventSlope",
    "GreenwoodNamDAgostino",
    "ICI",
    "E50",
    "E90",
    # what stands for others by the same name, and what is said of statistics
    "DENSITY_STATISTICS",
    "AllRowsNeededError",
    "STATISTICS",
    "FunctionStatistic",
    "OmnibusOfNumbers",
    "OmnibusOfVectors",
    "SKCEOfNumbers",
    "Statistic",
    "StatisticLike",
    "find_statistic",
]

_NAMED: list[Any] = [each for each in map(globals().get, __all__) if hasattr(each, "measures")]

STATISTICS: dict[str, type[Statistic]] = {each.name: each for each in _NAMED if Classes in each.laws}

#: Statistics that look at predicted distributions of numbers (:mod:`caltest.predictive`).
DENSITY_STATISTICS: dict[str, type[Statistic]] = {
    each.name: each
    for each in _NAMED
    if each is ECD or (each.name not in STATISTICS and not {Classes, Law} & set(each.laws))
}

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
