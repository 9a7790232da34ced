"""Compare models: which is best calibrated, and how certain is that?"""

from caltest.comparison.ranking import compare
from caltest.comparison.result import Comparison

__all__ = ["Comparison", "compare"]
