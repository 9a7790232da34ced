"""Kernels: how similar two predictions are, for kernel calibration errors.

A kernel is an inert description until ``fitted(probs)`` turns bandwidth rules into numbers; then it
is a function of two sets of predictions. Sums and positive multiples of kernels are kernels:
``Linear() + 2 * Gaussian()``.
"""

from caltest.kernels.base import (
    Exponential,
    Gaussian,
    Kernel,
    Linear,
    LinearGaussian,
    Scaled,
    Sum,
    fitted,
)
from caltest.kernels.matrix import MatrixKernel

__all__ = ["Exponential", "Gaussian", "Kernel", "Linear", "LinearGaussian", "MatrixKernel"]
__all__ += ["Scaled", "Sum", "fitted"]
