"""
Which class is wrong, near which predictions? The witness
=========================================================

With many classes, a model's confidence may be right while it confuses some classes with others. The
witness looks at the neighbourhoods of many predictions, and finds the classes that were observed more
or less often there than predicted. Its p-values are adjusted for all places and classes.
"""

import caltest

bayes = caltest.datasets.load_digits_predictions("isotonic_naive_bayes")
witness = caltest.witness(bayes.probs, bayes.labels, rng=1)
print(witness)

# %%

caltest.WitnessDisplay.from_result(witness)
