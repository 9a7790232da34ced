"""Read predictions, labels and groups from files: CSV, Parquet, Arrow, JSON lines, NPZ or NPY."""

from caltest.files.reading import can_scan, read, read_pilot, read_with_groups, scan, scan_arrays
from caltest.files.stored import Stored

__all__ = ["Stored", "can_scan", "read", "read_pilot", "read_with_groups", "scan", "scan_arrays"]
