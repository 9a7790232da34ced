"""
Which classes and groups are wrong? An audit
============================================

A model predicts where a patient will be discharged to, and is overconfident in one region. An audit
checks all classes and groups at once, and keeps the overall false-alarm rate at or below the level you
choose.
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
# ``caltest.report.save(audit, "report.html")`` writes the same as a page with plots. Below is the
# smallest adjusted p-value of every group. Groups left of the line are findings.

table = audit.to_frame()
smallest = table.groupby(table["group"].fillna("all rows"))["adjusted"].min().sort_values()
figure, ax = plt.subplots(figsize=(7, 2.8), layout="constrained")
ax.scatter(smallest, smallest.index, color=["C3" if p <= audit.alpha else "C0" for p in smallest])
ax.axvline(audit.alpha, color="0.4", linewidth=1)
ax.set(xscale="log", xlabel="adjusted p-value", xlim=(5e-4, 1.5))
