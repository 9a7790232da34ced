"""
Is a regressor right on average? Point forecasts
================================================

A regressor predicts one number a row. If it is the mean, then outcomes of rows with similar forecasts
have that mean. Here a tree has learned its rows by heart, and its forecasts lie too far apart. A linear
model was held back too much, and its forecasts lie too close together.
"""

import matplotlib.pyplot as plt
from sklearn.datasets import make_friedman1
from sklearn.linear_model import Ridge
from sklearn.tree import DecisionTreeRegressor

import caltest

X, y = make_friedman1(6000, noise=3.0, random_state=0)
tree, linear = DecisionTreeRegressor(min_samples_leaf=4, random_state=0), Ridge(alpha=100.0)
figure, axes = plt.subplots(2, 2, figsize=(12, 8.5), layout="constrained")
for ax, model in zip(axes, (tree, linear), strict=True):
    predicted = caltest.predictive.Point(model.fit(X[:3000], y[:3000]).predict(X[3000:]))
    audit = caltest.audit(predicted, y[3000:], rng=1)
    audit.plot(ax=ax)
    print(f"{type(model).__name__}: {audit.headline}")

# %%
# Marks are tenths of the rows, with intervals that are all correct together; the curve is isotonic
# regression of outcomes on forecasts. Above the diagonal, forecasts are too low. No ends of outcomes
# are known here, so all of it is about right. A slope of the errors above 0 means that forecasts lie
# too far apart:

for model in (tree, linear):
    predicted = caltest.predictive.Point(model.predict(X[3000:]))
    found = caltest.test(predicted, y[3000:], "point_slope", rng=1)
    print(f"{type(model).__name__}: slope {found.statistic:.2f}, p = {found.pvalue}")
