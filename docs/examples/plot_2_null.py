"""
Could it be chance? The observed value among simulated ones
===========================================================

On its own, the value of a calibration error does not tell you whether a model is good or bad.
Compare it with the values you would see if *this* model were calibrated: simulate labels from its
own predictions, and compute the error for each simulation. The p-value is the share of simulations
whose error is at least as large as the observed one, with the observed data counted as one of them.
"""

import caltest

# %%
# Take a well calibrated network and a miscalibrated forest, and compute the ECE of the top label for
# both. Both values are above 0, as an ECE always is. The network's is typical of a calibrated model:

network = caltest.datasets.load_digits_predictions("neural_network")
result = caltest.test(network.probs, network.labels, "ece", lens="top_label", rng=1)
caltest.plots.NullDisplay.from_result(result)

# %%
# The forest's is not. None of 999 simulated values comes near it, so the p-value is as small as 999
# simulations allow:

forest = caltest.datasets.load_digits_predictions("random_forest")
result = caltest.test(forest.probs, forest.labels, "ece", lens="top_label", rng=1)
caltest.plots.NullDisplay.from_result(result)
