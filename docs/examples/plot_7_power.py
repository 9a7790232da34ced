"""
How many rows does it take? A power curve
=========================================

How many rows find a model that states its top class five points too surely, with probability 0.8?
Simulated from a pilot set of predictions; the bars are exact intervals of the simulation.
"""

import numpy as np

import caltest
from caltest.planning import pilot

stated = np.random.default_rng(1).dirichlet([4, 2, 1], 500)
matters = pilot(stated, overconfidence=0.05)
needed = caltest.sample_size(matters, "ks", n_datasets=200, rng=1)
print(needed)

# %%

caltest.PowerDisplay.from_result(needed)
