"""
Which model is better calibrated? A comparison
==============================================

Four models predict the same rows. How far off is each, in points, and how much further than the
nearest one? An unbiased kernel calibration error stands beside these errors for each model.
"""

import caltest

models = ("neural_network", "logistic_regression", "isotonic_naive_bayes", "random_forest")
digits = {name: caltest.datasets.load_digits_predictions(name) for name in models}
labels = digits["neural_network"].labels
comparison = caltest.compare({name: each.probs for name, each in digits.items()}, labels, "skce_uq")
print(comparison)

# %%

caltest.plots.ComparisonDisplay.from_result(comparison)
