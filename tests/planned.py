"""A constant model, and the power of a test of it that is known exactly."""

import numpy as np
from scipy.stats import binom

from caltest.planning import pilot

P, Q = 0.3, 0.4  # what a constant model says, and what is true


def constant(truth=Q, rows=10):
    """A pilot whose predictions are all P, where ``truth`` is right."""
    return pilot(np.full(rows, P), truth=np.tile([1.0 - truth, truth], (rows, 1)))


def exact_power(n, truth=Q, alpha=0.05, resamples=199):
    """Power of the exact one-sided test of so many draws of the count of events, a binomial."""
    events = np.arange(n + 1)
    reached = binom.sf(events - 1, n, P)  # that a draw's count is as large
    allowed = round(alpha * (resamples + 1), 9) // 1 - 1
    return float(binom.pmf(events, n, truth) @ binom.cdf(allowed, resamples, reached))


citl = {"statistic": "citl", "alternative": "greater"}
