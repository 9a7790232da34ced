"""caltest: test, with valid p-values, whether a model's predicted probabilities can be trusted.

>>> import caltest
>>> digits = caltest.datasets.load_digits_predictions("logistic_regression")
>>> 0 < caltest.test(digits.probs, digits.labels, rng=1).pvalue <= 1
True
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from caltest._version import __version__
from caltest.exceptions import InputError, LongWorkWarning

if TYPE_CHECKING:
    from caltest import (
        binning,
        bounds,
        data,
        datasets,
        estimation,
        files,
        kernels,
        lenses,
        nulls,
        planning,
        plots,
        predictive,
        report,
        simulation,
        statistics,
    )
    from caltest.auditing import Audit, assert_calibrated, audit
    from caltest.bounds import Certificate, MiscalibrationBounds, certificate, miscalibration_bounds
    from caltest.comparison import Comparison, compare
    from caltest.cox import Recalibration, recalibration
    from caltest.estimation import SquaredErrorEstimate, estimate_squared_error
    from caltest.localisation import Witness, witness
    from caltest.planning import PowerResult, SampleSizeResult, power, sample_size
    from caltest.plots import (
        BoundsDisplay,
        CertificateDisplay,
        ComparisonDisplay,
        CumulativeDisplay,
        NullDisplay,
        PowerDisplay,
        ReliabilityDisplay,
        RiskDisplay,
        WitnessDisplay,
    )
    from caltest.results import CalibrationResult
    from caltest.scoring import Scorer, scorer
    from caltest.testing import estimate, test

__all__ = [
    "Audit",
    "BoundsDisplay",
    "CalibrationResult",
    "Certificate",
    "CertificateDisplay",
    "Comparison",
    "ComparisonDisplay",
    "CumulativeDisplay",
    "InputError",
    "LongWorkWarning",
    "MiscalibrationBounds",
    "NullDisplay",
    "PowerDisplay",
    "PowerResult",
    "Recalibration",
    "ReliabilityDisplay",
    "RiskDisplay",
    "SampleSizeResult",
    "Scorer",
    "SquaredErrorEstimate",
    "Witness",
    "WitnessDisplay",
    "__version__",
    "assert_calibrated",
    "audit",
    "bin_table",
    "binning",
    "bounds",
    "certificate",
    "compare",
    "data",
    "datasets",
    "estimate",
    "estimate_squared_error",
    "estimation",
    "files",
    "kernels",
    "lenses",
    "miscalibration_bounds",
    "nulls",
    "planning",
    "plots",
    "power",
    "predictive",
    "recalibration",
    "report",
    "sample_size",
    "scorer",
    "simulation",
    "statistics",
    "test",
    "witness",
]

_HOMES = {
    "Audit": "auditing",
    "BoundsDisplay": "plots",
    "CalibrationResult": "results",
    "Certificate": "bounds",
    "CertificateDisplay": "plots",
    "Comparison": "comparison",
    "ComparisonDisplay": "plots",
    "CumulativeDisplay": "plots",
    "MiscalibrationBounds": "bounds",
    "NullDisplay": "plots",
    "PowerDisplay": "plots",
    "PowerResult": "planning",
    "ReliabilityDisplay": "plots",
    "RiskDisplay": "plots",
    "SampleSizeResult": "planning",
    "Scorer": "scoring",
    "Recalibration": "cox",
    "SquaredErrorEstimate": "estimation",
    "Witness": "localisation",
    "WitnessDisplay": "plots",
    "assert_calibrated": "auditing",
    "audit": "auditing",
    "bin_table": "binning",
    "certificate": "bounds",
    "compare": "comparison",
    "estimate": "testing",
    "estimate_squared_error": "estimation",
    "miscalibration_bounds": "bounds",
    "power": "planning",
    "recalibration": "cox",
    "sample_size": "planning",
    "scorer": "scoring",
    "test": "testing",
    "witness": "localisation",
}


def __getattr__(name: str) -> Any:
    """Import on first use, and once, so that `import caltest` costs nothing."""
    if name not in __all__:
        raise AttributeError(f"module 'caltest' has no attribute {name!r}")
    found: Any = importlib.import_module(f"caltest.{_HOMES.get(name, name)}")
    if name in _HOMES:
        found = globals()[name] = getattr(found, name)
    return found


def __dir__() -> list[str]:
    return sorted(__all__)
