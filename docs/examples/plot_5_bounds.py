"""
How wrong is it, at least and at most? Bounds
=============================================

A p-value says that there is an error, not how large it is. These two say what is certain, each with
95% confidence for every number of rows: somewhere the error is *at least* so much, and on average over
every bin it is *at most* so much.
"""

import math

import caltest

bayes = caltest.datasets.load_digits_predictions("naive_bayes")
least = caltest.miscalibration_bounds(bayes.probs, bayes.labels, rng=1)
print(least)

# %%
# The stretches in which it is proved:

caltest.BoundsDisplay.from_result(least)

# %%
# A certificate of the network. No bin's mean statement is further from the truth than this:

network = caltest.datasets.load_digits_predictions("neural_network")
most = caltest.certificate(network.probs, network.labels)
print(f"{math.ceil(1000 * most.distance) / 1000:.1%}")  # an upper bound, so rounded up
caltest.CertificateDisplay.from_result(most)
