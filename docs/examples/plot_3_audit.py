"""
Which class, which group? An audit
==================================

Forecasts of where a patient will go, by a model that is too sure in one region. An audit asks all
classes and groups at once, and the probability that a calibrated model is called miscalibrated anywhere
stays below the level.
"""

import matplotlib.pyplot as plt
import numpy as np

import caltest

rng = np.random.default_rng(1)
rows = 4000
true = rng.dirichlet([4, 2, 1], rows)
labels = (rng.random((rows, 1)) > true.cumsum(axis=1)[:, :-1]).sum(axis=1)
region = rng.choice(["east", "north", "south", "west"], rows)
sharpened = true**1.8 / (true**1.8).sum(axis=1, keepdims=True)
probs = np.where((region == "south")[:, None], sharpened, true)

audit = caltest.audit(probs, labels, groups={"region": region}, lenses="top_label", rng=1)
print(audit)

# %%
# ``caltest.report.save(audit, "report.html")`` writes the same with its pictures. Here is every group's
# adjusted p-value by the strongest of its checks; left of the line is a finding.

table = audit.to_frame()
smallest = table.groupby(table["group"].fillna("all rows"))["adjusted"].min().sort_values()
figure, ax = plt.subplots(figsize=(7, 2.8), layout="constrained")
ax.scatter(smallest, smallest.index, color=["C3" if p <= audit.alpha else "C0" for p in smallest])
ax.axvline(audit.alpha, color="0.4", linewidth=1)
ax.set(xscale="log", xlabel="adjusted p-value", xlim=(5e-4, 1.5))
