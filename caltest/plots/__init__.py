"""Pictures: reliability diagrams with exact bands, and where a statistic lies among its draws.

matplotlib is imported when something is drawn, not before.
"""

from caltest.plots.null import NullDisplay
from caltest.plots.panel import Panel
from caltest.plots.reliability import ReliabilityDisplay

__all__ = ["NullDisplay", "Panel", "ReliabilityDisplay"]
