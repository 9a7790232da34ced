"""caltest: test, with valid p-values, whether a model's predicted probabilities can be trusted.

>>> import caltest
>>> digits = caltest.datasets.load_digits_predictions("logistic_regression")
>>> 0 < caltest.test(digits.probs, digits.labels, rng=1).pvalue <= 1
True
"""

from __future__ import annotations

import importlib
from typing import Any

from caltest import _printers
from caltest._version import __version__ as __version__
from caltest.exceptions import InputError as InputError
from caltest.exceptions import LongWorkWarning as LongWorkWarning

#: What is imported on first use, by the module that has it; "" has modules themselves. Editors and type
#: checkers read ``__init__.pyi``, and a test keeps the two equal.
_NAMES = {
    "": "binning bounds data datasets estimation files kernels lenses nulls planning plots predictive "
    "report simulation statistics",
    "auditing": "Audit assert_calibrated audit sbc",
    "auditing.plan_rows": "AuditPlan plan",
    "binning": "bin_table",
    "bounds": "certificate miscalibration_bounds",
    "comparison": "Comparison compare",
    "cox": "Recalibration recalibration",
    "estimation": "estimate_squared_error",
    "monitoring": "Monitor MonitorState",
    "planning": "power sample_size",
    "plots": "ReliabilityDisplay",
    "results": "CalibrationResult",
    "scoring": "Scorer scorer",
    "testing": "estimate test",
}
_HOMES = {name: module for module, names in _NAMES.items() for name in names.split()}

__all__ = sorted([*_HOMES, "InputError", "LongWorkWarning", "__version__"])


def __getattr__(name: str) -> Any:
    """Import on first use, and once, so that `import caltest` costs nothing."""
    if name not in _HOMES:
        raise AttributeError(f"module 'caltest' has no attribute {name!r}")
    found: Any = importlib.import_module(f"caltest.{_HOMES[name] or name}")
    if _HOMES[name]:
        found = globals()[name] = getattr(found, name)
    return found


def __dir__() -> list[str]:
    return __all__


def _room(name: str) -> Any:
    return importlib.import_module(f"caltest.{name}")


# Results show themselves by these, and import none of these rooms.
_printers.written = lambda *given: _room("text").written(*given)
_printers.drawn = lambda *given: _room("plots").drawn(*given)
_printers.to_fragment = lambda *given: _room("report").to_fragment(*given)
_printers.pictured = lambda *given: _room("report.summary").pictured(*given)
