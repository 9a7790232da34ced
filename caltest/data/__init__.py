"""Predictions, and the labels that came true: the only validation in the package."""

from caltest.data.glimpse import GLIMPSED, glimpse
from caltest.data.impossible import impossible_labels, impossible_rows
from caltest.data.sample import Rows, Sample, check_index, merged_notes, predictions, sample

__all__ = [
    "GLIMPSED",
    "Rows",
    "Sample",
    "check_index",
    "glimpse",
    "impossible_labels",
    "impossible_rows",
    "merged_notes",
    "predictions",
    "sample",
]
