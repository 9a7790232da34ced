"""Pictures: reliability diagrams, where a statistic lies among its draws, how models compare.

matplotlib is imported when something is drawn, not before.
"""

from caltest.plots.comparison import ComparisonDisplay
from caltest.plots.null import NullDisplay
from caltest.plots.panel import Panel
from caltest.plots.reliability import ReliabilityDisplay

__all__ = ["ComparisonDisplay", "NullDisplay", "Panel", "ReliabilityDisplay"]
