"""caltest: do a model's probabilities mean what they say? A p-value you can trust.

>>> import caltest
>>> digits = caltest.datasets.load_digits_predictions("logistic_regression")
>>> 0 < caltest.test(digits.probs, digits.labels, rng=1).pvalue <= 1
True
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from caltest._version import __version__
from caltest.exceptions import InputError

if TYPE_CHECKING:
    from caltest import (
        binning,
        data,
        datasets,
        estimation,
        files,
        kernels,
        lenses,
        nulls,
        plots,
        predictive,
        simulation,
        statistics,
    )
    from caltest.comparison import Comparison, compare
    from caltest.cox import Recalibration, recalibration
    from caltest.estimation import SquaredErrorEstimate, estimate_squared_error
    from caltest.plots import ComparisonDisplay, NullDisplay, ReliabilityDisplay
    from caltest.result import CalibrationResult
    from caltest.tables import bin_table
    from caltest.testing import estimate, test

__all__ = [
    "CalibrationResult",
    "Comparison",
    "ComparisonDisplay",
    "InputError",
    "NullDisplay",
    "Recalibration",
    "ReliabilityDisplay",
    "SquaredErrorEstimate",
    "__version__",
    "bin_table",
    "binning",
    "compare",
    "data",
    "datasets",
    "estimate",
    "estimate_squared_error",
    "estimation",
    "files",
    "kernels",
    "lenses",
    "nulls",
    "plots",
    "predictive",
    "recalibration",
    "simulation",
    "statistics",
    "test",
]

_HOMES = {
    "CalibrationResult": "result",
    "Comparison": "comparison",
    "ComparisonDisplay": "plots",
    "NullDisplay": "plots",
    "ReliabilityDisplay": "plots",
    "Recalibration": "cox",
    "SquaredErrorEstimate": "estimation",
    "bin_table": "tables",
    "compare": "comparison",
    "estimate": "testing",
    "estimate_squared_error": "estimation",
    "recalibration": "cox",
    "test": "testing",
}


def __getattr__(name: str) -> Any:
    """Import on first use, so that `import caltest` costs nothing."""
    if name not in __all__:
        raise AttributeError(f"module 'caltest' has no attribute {name!r}")
    if name in _HOMES:
        return getattr(importlib.import_module(f"caltest.{_HOMES[name]}"), name)
    return importlib.import_module(f"caltest.{name}")


def __dir__() -> list[str]:
    return sorted(__all__)
