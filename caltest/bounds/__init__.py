"""Proven bounds: how wrong a model is at least, and how wrong it can be at most."""

from caltest.bounds.certificates import Certificate, certificate
from caltest.bounds.lower import MiscalibrationBounds, miscalibration_bounds

__all__ = ["Certificate", "MiscalibrationBounds", "certificate", "miscalibration_bounds"]
