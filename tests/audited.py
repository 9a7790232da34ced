"""Data for the tests of audits: calibrated, and wrong in one group."""

import numpy as np
from support import dirichlet, labels_from

from caltest.simulation import tempered

LIGHT = {"lenses": ("canonical", "top_label"), "n_resamples": 99, "rng": 3}


def calibrated(n, m, seed):
    probs = dirichlet(n, m, seed)
    return probs, labels_from(probs, np.random.default_rng(seed + 1000))


def one_bad_group(n, m, seed, t=0.4, groups=4):
    """Group "0" is overconfident, the others are calibrated."""
    group = np.arange(n) % groups
    bad = tempered(n, np.ones(m), temperature=t, rng=seed)
    good = tempered(n, np.ones(m), temperature=1.0, rng=seed + 10**6)
    probs = np.where((group == 0)[:, None], bad.probs, good.probs)
    return probs, np.where(group == 0, bad.labels, good.labels), group
