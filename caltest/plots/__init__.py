"""Plots: audits, reliability diagrams, null distributions, comparisons and more.

matplotlib is imported when something is drawn, not before.
"""

from typing import Any

from caltest.exceptions import InputError
from caltest.plots.canvas import Display, ResultDisplay
from caltest.plots.distributions import PITDisplay, SurvivalDisplay
from caltest.plots.findings import (
    AuditDisplay,
    BoundsDisplay,
    ComparisonDisplay,
    MonitorDisplay,
    NullDisplay,
    PowerDisplay,
)
from caltest.plots.panel import Panel
from caltest.plots.reliability import ReliabilityDisplay

__all__ = ["AuditDisplay", "BoundsDisplay", "ComparisonDisplay", "Display", "MonitorDisplay", "Panel"]
__all__ += ["NullDisplay", "PITDisplay", "PowerDisplay", "ReliabilityDisplay", "SurvivalDisplay"]

_DISPLAYS = ResultDisplay.__subclasses__()
#: Displays by the class name of the result they show.
PICTURES = {name: each for each in _DISPLAYS for name in each.shows[0].partition(":")[2].split()}


def drawn(result: object, ax: Any, options: dict[str, Any]) -> Display:
    """Return the display of a result, drawn; derived classes are drawn like their base."""
    for each in type(result).__mro__:
        if each.__name__ in PICTURES:
            return PICTURES[each.__name__].from_result(result, ax=ax, **options)
    do = "caltest.ReliabilityDisplay shows predictions and labels"
    raise InputError(f"there is no picture of a result of the kind {type(result).__name__}; {do}.")
