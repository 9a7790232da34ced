"""
Where is it wrong? A reliability diagram
========================================

A reliability diagram shows, for rows with about the same stated probability, how often the event came
true. Points off the diagonal are errors, or chance. The bands tell which: labels are drawn from the
predictions, which are held fixed, so they hold in every finite sample.

A point leaves the dark band by chance in at most 5% of all cases (in less, where a bin has few rows:
labels are counted); *any* point leaves the light one in at most 5%. So the light band is a test, the
dark one is for a point that was chosen beforehand.
"""

import caltest

forest = caltest.datasets.load_digits_predictions("random_forest")
display = caltest.ReliabilityDisplay.from_predictions(forest.probs, forest.labels, rng=1)

# %%
# The forest is right far more often than it says: it claims too little, nearly everywhere.
#
# One class at a time, with one light band for all panels together:

caltest.ReliabilityDisplay.from_predictions(
    forest.probs, forest.labels, lens="classwise", classes=[1, 3, 8], rng=1
)

# %%
# Without bins: predicted less observed, added up from the lowest prediction to the highest. Where the
# path falls, predictions are too low. A calibrated model's path stays in the band with probability 95%:

caltest.CumulativeDisplay.from_predictions(forest.probs, forest.labels, rng=1)
