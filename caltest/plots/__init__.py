"""Pictures: reliability diagrams, places that are wrong, a statistic among its draws, comparisons.

matplotlib is imported when something is drawn, not before.
"""

from caltest.plots.bounds import BoundsDisplay
from caltest.plots.certificate import CertificateDisplay
from caltest.plots.comparison import ComparisonDisplay
from caltest.plots.display import Display
from caltest.plots.null import NullDisplay
from caltest.plots.power import PowerDisplay
from caltest.plots.reliability import Panel, ReliabilityDisplay
from caltest.plots.risk import RiskDisplay
from caltest.plots.witness import WitnessDisplay

__all__ = [
    "BoundsDisplay",
    "CertificateDisplay",
    "ComparisonDisplay",
    "Display",
    "NullDisplay",
    "Panel",
    "PowerDisplay",
    "ReliabilityDisplay",
    "RiskDisplay",
    "WitnessDisplay",
]
