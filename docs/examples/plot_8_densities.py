"""
Predicted distributions of numbers
==================================

A forecast of a number is calibrated if what comes true is a draw from what was predicted. The exact
null is the same: draw outcomes from the predicted distributions, which are held fixed. Here is a
tracker whose stated standard deviations are too small by a fifth.
"""

import numpy as np

import caltest
from caltest.predictive import GaussianPredictions

rng = np.random.default_rng(1)
mean = rng.normal(size=300)
stated = rng.uniform(0.5, 2.0, size=300)
outcome = rng.normal(mean, 1.25 * stated)

result = caltest.test(GaussianPredictions(mean, stated**2), outcome, "ecd", rng=1)
print(f"{result.statistic:.2f}", result.pvalue, result.guarantee)

# %%
# The entropic calibration difference is above 0: the outcomes surprise the tracker more than it
# expects, so it is over-confident. NEES says the same, with a χ² law that is exact for Gaussian
# predictions:

print(caltest.test(GaussianPredictions(mean, stated**2), outcome, "nees", null="chi2").pvalue)
caltest.NullDisplay.from_result(result)
