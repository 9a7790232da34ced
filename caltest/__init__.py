"""caltest: do a model's probabilities mean what they say? A p-value you can trust.

>>> import caltest
>>> digits = caltest.datasets.load_digits_predictions("logistic_regression")
>>> 0 < caltest.test(digits.probs, digits.labels, rng=1).pvalue <= 1
True
"""

from caltest import data, datasets, files, kernels, lenses, nulls, statistics
from caltest._version import __version__
from caltest.exceptions import InputError
from caltest.result import CalibrationResult
from caltest.testing import estimate, test

__all__ = [
    "CalibrationResult",
    "InputError",
    "__version__",
    "data",
    "datasets",
    "estimate",
    "files",
    "kernels",
    "lenses",
    "nulls",
    "statistics",
    "test",
]
