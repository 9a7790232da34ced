"""
How many rows do you need? A power curve
========================================

Suppose a model's confidence in its top class is five points too high. How many rows do you need to
detect that with a power of 0.8? The answer is simulated from a pilot set of predictions; the bars show
the uncertainty of the simulation.
"""

import numpy as np

import caltest
from caltest.planning import pilot

stated = np.random.default_rng(1).dirichlet([4, 2, 1], 500)
matters = pilot(stated, overconfidence=0.05)
needed = caltest.sample_size(matters, "ks", n_datasets=200, rng=1)
print(needed)

# %%

caltest.plots.PowerDisplay.from_result(needed)
