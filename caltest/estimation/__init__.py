"""Estimate the squared calibration error, and choose the estimator by its risk on held-out rows."""

from caltest.estimation.estimate import FunctionRisk, SquaredErrorEstimate, estimate_squared_error
from caltest.estimation.functions import (
    FUNCTIONS,
    DirichletKernelDensity,
    EstimationFunction,
    Fitted,
    HistogramBinning,
    KroneckerKernelRidge,
    PlugIn,
    Temperature,
    TwoStepKernelRidge,
    risk,
)

__all__ = ["FUNCTIONS", "HistogramBinning", "DirichletKernelDensity", "EstimationFunction", "Fitted"]
__all__ += ["FunctionRisk", "KroneckerKernelRidge", "PlugIn", "SquaredErrorEstimate", "Temperature"]
__all__ += ["TwoStepKernelRidge", "estimate_squared_error", "risk"]
