"""
Is it chance? A statistic among its draws
=========================================

The value of a calibration error has no unit that tells good from bad. What does is its distribution if
*this* model were calibrated: labels are drawn from its own predictions, and the statistic is evaluated
on them. The p-value is the share of draws that reach the observed value, counting the observed one.
"""

import caltest

# %%
# A well calibrated network, and a miscalibrated forest, by the same statistic, the ECE of the top
# label. Both values are above 0, as an ECE always is. The network's is one that a calibrated model
# would have:

network = caltest.datasets.load_digits_predictions("neural_network")
result = caltest.test(network.probs, network.labels, "ece", lens="top_label", rng=1)
caltest.NullDisplay.from_result(result)

# %%
# The forest's is not. None of 999 draws comes near it, and p is as small as 999 draws allow:

forest = caltest.datasets.load_digits_predictions("random_forest")
result = caltest.test(forest.probs, forest.labels, "ece", lens="top_label", rng=1)
caltest.NullDisplay.from_result(result)
