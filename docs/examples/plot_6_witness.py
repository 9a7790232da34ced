"""
Near which predictions, and which class? The witness
====================================================

With many classes a model may be right about how sure it is, and wrong about what. The witness looks
near each of many predictions which classes came true more or less often than stated, and adjusts its
p-values for all places and classes.
"""

import caltest

bayes = caltest.datasets.load_digits_predictions("isotonic_naive_bayes")
witness = caltest.witness(bayes.probs, bayes.labels, rng=1)
print(witness)

# %%

caltest.WitnessDisplay.from_result(witness)
