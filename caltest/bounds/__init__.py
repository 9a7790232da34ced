"""Proved lower and upper bounds for the error of a model."""

from caltest.bounds.certificates import Certificate, certificate
from caltest.bounds.lower import MiscalibrationBounds, miscalibration_bounds

__all__ = ["Certificate", "MiscalibrationBounds", "certificate", "miscalibration_bounds"]
