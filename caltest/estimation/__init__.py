"""Estimate the squared calibration error, and choose the estimator by its risk on held-out rows."""

from caltest.estimation.base import EstimationFunction, Fitted, linear_risk, risk
from caltest.estimation.estimate import FunctionRisk, SquaredErrorEstimate, estimate_squared_error
from caltest.estimation.functions import (
    FUNCTIONS,
    DirichletKernelDensity,
    HistogramBinning,
    KroneckerKernelRidge,
    Temperature,
    TwoStepKernelRidge,
)
from caltest.estimation.pipeline import CalibrationPipeline

__all__ = [
    "FUNCTIONS",
    "HistogramBinning",
    "CalibrationPipeline",
    "DirichletKernelDensity",
    "EstimationFunction",
    "Fitted",
    "FunctionRisk",
    "KroneckerKernelRidge",
    "SquaredErrorEstimate",
    "Temperature",
    "TwoStepKernelRidge",
    "estimate_squared_error",
    "linear_risk",
    "risk",
]
