"""
How wrong is it, at least and at most? Bounds
=============================================

A p-value tells you that there is an error, but not how large it is. Two functions bound its size, each
with 95% confidence for any number of rows. ``miscalibration_bounds`` proves that some predictions are
wrong by *at least* a certain amount. ``certificate`` proves that no bin is wrong by *more* than a
certain amount on average.
"""

import math

import caltest

bayes = caltest.datasets.load_digits_predictions("naive_bayes")
least = caltest.miscalibration_bounds(bayes.probs, bayes.labels, rng=1)
print(least)

# %%
# The ranges of predictions in which errors are proved:

caltest.plots.BoundsDisplay.from_result(least)

# %%
# A certificate for the network: in every bin, the mean prediction is at most this far from the truth.

network = caltest.datasets.load_digits_predictions("neural_network")
most = caltest.certificate(network.probs, network.labels)
print(f"{math.ceil(1000 * most.distance) / 1000:.1%}")  # an upper bound, so rounded up
