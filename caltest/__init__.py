"""caltest: test, with valid p-values, whether a model's predicted probabilities can be trusted.

>>> import caltest
>>> digits = caltest.datasets.load_digits_predictions("logistic_regression")
>>> 0 < caltest.test(digits.probs, digits.labels, rng=1).pvalue <= 1
True
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from caltest import _printers
from caltest._version import __version__ as __version__
from caltest.exceptions import InputError as InputError
from caltest.exceptions import LongWorkWarning as LongWorkWarning

if TYPE_CHECKING:  # for editors and type checkers, what the table below has: a test compares them
    from caltest import binning as binning
    from caltest import bounds as bounds
    from caltest import data as data
    from caltest import datasets as datasets
    from caltest import estimation as estimation
    from caltest import files as files
    from caltest import kernels as kernels
    from caltest import lenses as lenses
    from caltest import nulls as nulls
    from caltest import planning as planning
    from caltest import plots as plots
    from caltest import predictive as predictive
    from caltest import report as report
    from caltest import simulation as simulation
    from caltest import statistics as statistics
    from caltest.auditing import Audit as Audit
    from caltest.auditing import assert_calibrated as assert_calibrated
    from caltest.auditing import audit as audit
    from caltest.auditing import sbc as sbc
    from caltest.auditing.ahead import AuditPlan as AuditPlan
    from caltest.auditing.ahead import plan as plan
    from caltest.binning import bin_table as bin_table
    from caltest.bounds import Certificate as Certificate
    from caltest.bounds import MiscalibrationBounds as MiscalibrationBounds
    from caltest.bounds import certificate as certificate
    from caltest.bounds import miscalibration_bounds as miscalibration_bounds
    from caltest.comparison import Comparison as Comparison
    from caltest.comparison import compare as compare
    from caltest.cox import Recalibration as Recalibration
    from caltest.cox import recalibration as recalibration
    from caltest.estimation import SquaredErrorEstimate as SquaredErrorEstimate
    from caltest.estimation import estimate_squared_error as estimate_squared_error
    from caltest.monitoring import Monitor as Monitor
    from caltest.monitoring import MonitorState as MonitorState
    from caltest.planning import PowerResult as PowerResult
    from caltest.planning import SampleSizeResult as SampleSizeResult
    from caltest.planning import power as power
    from caltest.planning import sample_size as sample_size
    from caltest.plots import BoundsDisplay as BoundsDisplay
    from caltest.plots import CertificateDisplay as CertificateDisplay
    from caltest.plots import ComparisonDisplay as ComparisonDisplay
    from caltest.plots import CumulativeDisplay as CumulativeDisplay
    from caltest.plots import MonitorDisplay as MonitorDisplay
    from caltest.plots import NullDisplay as NullDisplay
    from caltest.plots import PITDisplay as PITDisplay
    from caltest.plots import PowerDisplay as PowerDisplay
    from caltest.plots import ReliabilityDisplay as ReliabilityDisplay
    from caltest.plots import RiskDisplay as RiskDisplay
    from caltest.plots import SurvivalDisplay as SurvivalDisplay
    from caltest.results import CalibrationResult as CalibrationResult
    from caltest.scoring import Scorer as Scorer
    from caltest.scoring import scorer as scorer
    from caltest.testing import estimate as estimate
    from caltest.testing import test as test

#: What is imported on first use, by the module that has it; "" has modules themselves.
_NAMES = {
    "": "binning bounds data datasets estimation files kernels lenses nulls planning plots predictive "
    "report simulation statistics",
    "auditing": "Audit assert_calibrated audit sbc",
    "auditing.ahead": "AuditPlan plan",
    "binning": "bin_table",
    "bounds": "Certificate MiscalibrationBounds certificate miscalibration_bounds",
    "comparison": "Comparison compare",
    "cox": "Recalibration recalibration",
    "estimation": "SquaredErrorEstimate estimate_squared_error",
    "monitoring": "Monitor MonitorState",
    "planning": "PowerResult SampleSizeResult power sample_size",
    "plots": "BoundsDisplay CertificateDisplay ComparisonDisplay CumulativeDisplay MonitorDisplay "
    "NullDisplay PITDisplay PowerDisplay ReliabilityDisplay RiskDisplay SurvivalDisplay",
    "results": "CalibrationResult",
    "scoring": "Scorer scorer",
    "testing": "estimate test",
}
_HOMES = {name: module for module, names in _NAMES.items() for name in names.split()}

if not TYPE_CHECKING:  # checkers, which cannot compute it, take the names above
    __all__ = sorted([*_HOMES, "InputError", "LongWorkWarning", "__version__"])


def _later(module: str, name: str) -> Callable[..., Any]:
    """Return a function of a module, which is imported when it is called."""

    def call(*arguments: Any) -> Any:
        return getattr(importlib.import_module(f"caltest.{module}"), name)(*arguments)

    return call


# Results show themselves by these, and import none of these rooms.
_printers.written = _later("text", "written")
_printers.drawn = _later("plots", "drawn")
_printers.to_fragment = _later("report", "to_fragment")


def __getattr__(name: str) -> Any:
    """Import on first use, and once, so that `import caltest` costs nothing."""
    if name not in _HOMES:
        raise AttributeError(f"module 'caltest' has no attribute {name!r}")
    found: Any = importlib.import_module(f"caltest.{_HOMES[name] or name}")
    if _HOMES[name]:
        found = globals()[name] = getattr(found, name)
    return found


def __dir__() -> list[str]:
    return list(globals()["__all__"])
