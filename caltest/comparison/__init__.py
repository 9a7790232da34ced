"""Compare models: the error of each, their differences, and the certainty of both."""

from caltest.comparison.errors import ModelDifference, ModelError
from caltest.comparison.models import Comparison, compare

__all__ = ["Comparison", "ModelDifference", "ModelError", "compare"]
