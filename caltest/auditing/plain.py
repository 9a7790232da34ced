"""Audits as plain data: what the result takes apart."""

from __future__ import annotations

import platform
from typing import TYPE_CHECKING, Any

import numpy as np

from caltest._visible import visible
from caltest.exceptions import InputError

if TYPE_CHECKING:
    from caltest.auditing.result import Check, Group


def place_of(check: Check, place: dict[tuple[str, Group | None], int]) -> int:
    """Return where the view of a check is.

    Raises
    ------
    InputError
        If it is nowhere.
    """
    view = check.view
    if view.key not in place:
        where = f" in {view.group.label!r}" if view.group else ""
        raise InputError(
            f"a check by {check.statistic!r} looks at {view.lens!r}{where}, which is not among the "
            "audit's views; put its view there too."
        )
    return place[view.key]


def versions() -> dict[str, str]:
    """Return what the numbers were made with."""
    import scipy

    return {
        "python": platform.python_version(),
        "numpy": np.__version__,
        "scipy": scipy.__version__,
    }


def cells(check: Check) -> dict[str, Any]:
    """Return one row of the table of all checks."""
    view = check.view
    low, high = check.expected or (float("nan"), float("nan"))
    return {
        "lens": visible(view.lens),
        "event": None if view.event is None else visible(view.event),
        "column": visible(view.group.column) if view.group else None,
        "group": visible(view.group.value) if view.group else None,
        "rows": view.rows,
        "statistic": visible(check.statistic),
        "value": check.value,
        "expected_low": low,
        "expected_high": high,
        "pvalue": check.pvalue,
        "pvalue_low": check.pvalue_interval[0],
        "pvalue_high": check.pvalue_interval[1],
        "adjusted": check.adjusted,
        "found": check.found,
        "direction": view.direction,
        "says": view.says,
        "share": view.share,
        "over": view.over,
        "under": view.under,
    }
