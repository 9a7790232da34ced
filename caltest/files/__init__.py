"""Predictions, labels and groups from a file: CSV, Parquet, NPZ or NPY."""

from caltest.files.reading import read, read_pilot, read_with_groups
from caltest.files.scan import can_scan, scan, scan_arrays
from caltest.files.stored import Stored

__all__ = ["Stored", "can_scan", "read", "read_pilot", "read_with_groups", "scan", "scan_arrays"]
