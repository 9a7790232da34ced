"""Kernels: similarities of two predictions, for kernel calibration errors.

A kernel is an inert description until ``fitted(probs)`` turns bandwidth rules into numbers; then it
is a function of two sets of predictions. Sums and positive multiples of kernels are kernels:
``Linear() + 2 * Gaussian()``.
"""

# ruff: noqa: F403, F405 -- the names of `__all__`, which are listed once

from caltest.kernels.base import *

__all__ = ["Exponential", "Gaussian", "Kernel", "Linear", "LinearGaussian", "MatrixKernel"]
__all__ += ["Scaled", "Sum", "fitted"]
