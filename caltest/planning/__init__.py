"""Plan a test by simulation: its power, and the number of rows it needs."""

from caltest.planning.pilot import Pilot, pilot
from caltest.planning.simulate import PowerPoint, PowerResult, SampleSizeResult, power, sample_size

__all__ = ["Pilot", "PowerPoint", "PowerResult", "SampleSizeResult", "pilot", "power", "sample_size"]
