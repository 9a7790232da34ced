"""Compare models: how far off is each, which differ, and how certain is that?"""

from caltest.comparison.errors import ModelDifference, ModelError
from caltest.comparison.models import Comparison, compare

__all__ = ["Comparison", "ModelDifference", "ModelError", "compare"]
