"""
Did recalibration help? Before and after
========================================

One reliability diagram shows a random forest whose probabilities are too low, and the same forest after
temperature scaling. Each model has its own colour, mark and bars. If a model is calibrated, its points
lie inside the bars; the bars hold for all points of both models together. A filled mark is outside its
bar.
"""

from sklearn.calibration import CalibratedClassifierCV
from sklearn.datasets import load_digits
from sklearn.ensemble import RandomForestClassifier
from sklearn.frozen import FrozenEstimator
from sklearn.model_selection import train_test_split

import caltest

X, y = load_digits(return_X_y=True)
X_fit, X_rest, y_fit, y_rest = train_test_split(X, y, train_size=0.3, random_state=0)
X_fix, X_new, y_fix, y_new = train_test_split(X_rest, y_rest, train_size=0.5, random_state=0)

model = RandomForestClassifier(random_state=0).fit(X_fit, y_fit)
fixed = CalibratedClassifierCV(FrozenEstimator(model), method="temperature").fit(X_fix, y_fix)

display = caltest.ReliabilityDisplay.from_estimator(
    {"before": model, "after": fixed}, X_new, y_new, rng=0
)
