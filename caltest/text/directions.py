"""Which way a model errs: where that is shown, and the words for it.

Whether a view of an audit is called over-confident is decided by :func:`shown_direction`, or, of a
probability vector, by :func:`signed`.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

from caltest.auditing.result import Audit, Check, Group, View
from caltest.forms import Side

#: How a model errs whose confidence does.
TENDS: Mapping[str, str] = {"over": "over-confident", "under": "under-confident"}
#: How any one probability errs.
TOO: Mapping[str, str] = {"over": "too much", "under": "too little"}
#: The statistic that says which way probabilities err: above 0 they are too sure.
SIGNED = "ecd"

#: From where a difference is told from none, in its standard deviations.
DEVIATIONS = 3.0


def shown_direction(view: View) -> Side | None:
    """Return which way one probability errs on average, if its error is beyond the noise; else None.

    Examples
    --------
    >>> shown_direction(View("top_label", "", None, 900, says=0.91, share=0.84, direction="over"))
    'over'
    >>> shown_direction(View("top_label", "", None, 900, says=0.91, share=0.90, direction="over"))
    """
    if view.says is None or view.share is None:
        return None
    return view.direction if beyond_noise(view.says - view.share, view) else None


def signed(check: Check) -> Side | None:
    """Return which way a probability vector errs, if this check has found it."""
    return check.view.direction if check.found and check.statistic == SIGNED else None


def shown_directions(audit: Audit) -> dict[tuple[str, Group | None], Side | None]:
    """Return which way every view with a finding errs on average; None where that is not shown."""
    found: dict[tuple[str, Group | None], Side | None] = {}
    for check in audit.found:
        side = signed(check) if check.view.says is None else shown_direction(check.view)
        found[check.view.key] = found.get(check.view.key) or side
    return found


def beyond_noise(difference: float, view: View) -> bool:
    """Return whether a difference of means is more than chance makes of so many rows."""
    return abs(difference) > DEVIATIONS * deviation(view)


def deviation(view: View) -> float:
    """Return the standard deviation of the share under calibration, at most."""
    says = view.says or 0.0
    return math.sqrt(says * (1.0 - says) / view.rows)
