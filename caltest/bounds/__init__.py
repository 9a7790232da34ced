"""Proven bounds: how wrong a model is at least, and how wrong it can be at most."""

from caltest.bounds.certificates import Certificate, certificate
from caltest.bounds.lower import miscalibration_bounds
from caltest.bounds.result import MiscalibrationBounds

__all__ = ["Certificate", "MiscalibrationBounds", "certificate", "miscalibration_bounds"]
