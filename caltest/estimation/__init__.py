"""Which estimator of a squared calibration error is to be believed: calibration estimation risk."""

from caltest.estimation.base import EstimationFunction, Fitted
from caltest.estimation.candidates import FUNCTIONS
from caltest.estimation.estimate import estimate_squared_error
from caltest.estimation.functions import DirichletKernelDensity, HistogramBinning, Temperature
from caltest.estimation.pipeline import CalibrationPipeline
from caltest.estimation.result import FunctionRisk, SquaredErrorEstimate
from caltest.estimation.ridge import KroneckerKernelRidge, TwoStepKernelRidge
from caltest.estimation.risk import linear_risk, risk

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
