"""Predictions, labels and groups from a file: CSV, Parquet, NPZ or NPY."""

from caltest.files.reading import read, read_with_groups

__all__ = ["read", "read_with_groups"]
