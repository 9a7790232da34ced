"""After deployment: evidence that may be looked at any time, and a state that is kept in one file."""

from caltest.monitoring.monitor import Monitor
from caltest.monitoring.state import Evidence, MonitorState, Period

__all__ = ["Evidence", "Monitor", "MonitorState", "Period"]
