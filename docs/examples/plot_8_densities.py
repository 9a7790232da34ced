"""
Is a forecast of a number calibrated? Predicted distributions
=============================================================

Some models predict a number, with a distribution around it. Such a forecast is calibrated if the
outcomes look like draws from the predicted distributions. The exact test works as it does for classes:
simulate outcomes from the predictions, and compare. The tracker below predicts standard deviations that
are a fifth too small.
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
# The entropic calibration difference is above 0: the outcomes are more surprising than the tracker
# expects, so it is overconfident. The normalised estimation error squared (NEES), which trackers are
# usually checked by, agrees. Its χ² distribution is exact for Gaussian predictions, so it needs no
# simulation:

nees = caltest.test(GaussianPredictions(mean, stated**2), outcome, "nees", null="chi2")
print(f"p = {nees.pvalue:.0e}, {nees.guarantee}")
caltest.plots.NullDisplay.from_result(result)
