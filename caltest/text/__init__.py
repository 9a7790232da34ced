"""All sentences that users read of results, and only here.

A result does not import its words. When it is printed it calls :func:`written` (through
:mod:`caltest._printers`), which finds them by the name of its class: a new result has its function in
:mod:`caltest.text.summaries`, and its line in the table. The function gathers facts; a page of
sentences is a template in ``templates/``, which :mod:`caltest.text.pages` fills.
"""

from __future__ import annotations

from importlib import import_module

#: By the name of a result's class: the module here, and the function in it, that sums it up.
SUMMARIES = {
    "Audit": "audit.summary",
    "AuditPlan": "summaries.audit_plan",
    "CalibrationResult": "summaries.calibration",
    "ChiSquareTest": "summaries.chi_square",
    "Certificate": "summaries.certificate",
    "Comparison": "summaries.comparison",
    "MiscalibrationBounds": "summaries.bounds",
    "MonitorState": "summaries.monitor",
    "Recalibration": "summaries.recalibration",
    "Simulation": "summaries.planning",
    "SquaredErrorEstimate": "summaries.estimation",
}


def written(result: object, what: str) -> str:
    """Return a text about a result: its "summary", or that of another function of its module.

    A result of a derived class has the texts of its base.
    """
    name = next(each.__name__ for each in type(result).__mro__ if each.__name__ in SUMMARIES)
    module, _, summary = SUMMARIES[name].partition(".")
    write = getattr(import_module(f".{module}", __name__), summary if what == "summary" else what)
    text: str = write(result)
    return text
