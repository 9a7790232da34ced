"""Plan a test: its power, and the number of rows it needs, by simulation."""

from caltest.planning.pilot import Pilot, pilot
from caltest.planning.result import PowerPoint, PowerResult, SampleSizeResult
from caltest.planning.search import sample_size
from caltest.planning.simulate import power

__all__ = ["Pilot", "PowerPoint", "PowerResult", "SampleSizeResult", "pilot", "power", "sample_size"]
