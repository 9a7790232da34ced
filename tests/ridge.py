"""What the tests of the CKCE share: its dense formula, kernels, groups."""

import numpy as np
from support import kernels_for

from caltest.kernels import Kernel, LinearGaussian

REAL_VALUED = [name for name, kernel in kernels_for(2).items() if isinstance(kernel, Kernel)]
GROUPS = ["a", "b", "b", "a", "c", "a"]
CLASSES = np.array([[2.0, 0.5, 0.0], [0.5, 1.0, -0.3], [0.0, -0.3, 0.7]])  # positive definite


def dense(K, D, regularization, A=None):
    """tr(Wᵀ K W) with W = K_λ⁻¹ D, by a linear solver."""
    n, m = D.shape
    W = np.linalg.solve(K + regularization * n * np.eye(n), D)
    return np.trace(W.T @ K @ W @ (np.eye(m) if A is None else A))


def kernel_matrix(probs, kernel=None):
    return (kernel or LinearGaussian()).fitted(probs)(probs, probs)


def some_labels(probs, seed=0):
    """Labels that do not come from the predictions."""
    return np.random.default_rng(seed).integers(0, probs.shape[1], len(probs))
