"""After deployment: evidence that is valid at any time, and a state kept in one file."""

from caltest.monitoring.monitor import Monitor
from caltest.monitoring.state import Evidence, MonitorState, Period

__all__ = ["Evidence", "Monitor", "MonitorState", "Period"]
