"""
Where is it wrong? A reliability diagram
========================================

A reliability diagram compares predicted probabilities with observed rates. A point off the diagonal
is either an error of the model or chance, and the bands help to decide. They are computed from labels
simulated from the model's own predictions, so they are exact for any number of rows.

If the model is calibrated, a given point falls outside the dark band with probability at most 5%.
*Any* point at all falls outside the light band with probability at most 5%. Use the light band as a
test of the whole curve, and the dark one for a single point chosen before looking.
"""

import caltest

forest = caltest.datasets.load_digits_predictions("random_forest")
display = caltest.ReliabilityDisplay.from_predictions(forest.probs, forest.labels, rng=1)

# %%
# The forest is right far more often than predicted: it is underconfident nearly everywhere.
#
# The same, one class at a time. The light band covers all panels together:

caltest.ReliabilityDisplay.from_predictions(
    forest.probs, forest.labels, lens="classwise", classes=[1, 3, 8], rng=1
)
