"""Which of several models is calibrated best, and how sure is that?"""

from caltest.comparison.ranking import compare
from caltest.comparison.result import Comparison

__all__ = ["Comparison", "compare"]
