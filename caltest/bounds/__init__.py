"""What is proved of a model, in units of probability."""

from caltest.bounds.certificates import Certificate, certificate
from caltest.bounds.lower import miscalibration_bounds
from caltest.bounds.result import MiscalibrationBounds

__all__ = ["Certificate", "MiscalibrationBounds", "certificate", "miscalibration_bounds"]
