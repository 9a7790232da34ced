"""All sentences that users read of results, and only here.

A result does not import its words. When it is printed it asks :func:`written`, which finds them by the
name of its class: a new result has its file here, and its line in the table.
"""

from __future__ import annotations

from importlib import import_module

#: By the name of a result's class: which module here writes of it.
_MODULES = {
    "Audit": "audit",
    "CalibrationResult": "calibration",
    "Certificate": "certificate",
    "Comparison": "comparison",
    "MiscalibrationBounds": "bounds",
    "Recalibration": "recalibration",
    "Simulation": "planning",
    "SquaredErrorEstimate": "estimation",
    "Witness": "localisation",
}


def written(result: object, what: str) -> str:
    """Return what is written of a result.

    Parameters
    ----------
    result
        The result; one of a derived class is written of as its base is.
    what
        The function of its module: "summary", of an audit also "verdict".
    """
    name = next(each.__name__ for each in type(result).__mro__ if each.__name__ in _MODULES)
    text: str = getattr(import_module(f"caltest.text.{_MODULES[name]}"), what)(result)
    return text
