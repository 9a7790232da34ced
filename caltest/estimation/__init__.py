"""Estimate the squared calibration error, and choose the estimator by its risk on held-out rows."""

# ruff: noqa: F403, F405 -- the names of `__all__`, which are listed once

from caltest.estimation.estimate import *
from caltest.estimation.functions import *

__all__ = ["FUNCTIONS", "HistogramBinning", "DirichletKernelDensity", "EstimationFunction", "Fitted"]
__all__ += ["FunctionRisk", "KroneckerKernelRidge", "PlugIn", "SquaredErrorEstimate", "Temperature"]
__all__ += ["TwoStepKernelRidge", "estimate_squared_error", "risk"]
