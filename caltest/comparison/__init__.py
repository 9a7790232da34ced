"""Compare models: how far off is each, which is best calibrated, and how certain is that?"""

from caltest.comparison.ranking import compare
from caltest.comparison.result import Comparison, ModelDifference, ModelError

__all__ = ["Comparison", "ModelDifference", "ModelError", "compare"]
