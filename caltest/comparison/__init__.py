"""Compare models: which is best calibrated, and how certain is that?"""

from caltest.comparison.ranking import Comparison, compare

__all__ = ["Comparison", "compare"]
