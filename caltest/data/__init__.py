"""Predictions, and the labels that came true: the only validation in the package."""

from caltest.data.counting import Extent
from caltest.data.hashing import GLIMPSED, glimpse
from caltest.data.labels import impossible_labels, impossible_rows
from caltest.data.rows import Rows, Sample, merged_notes, without_zeros
from caltest.data.sample import check_index, named_sample, predictions, sample

__all__ = [
    "GLIMPSED",
    "Rows",
    "Sample",
    "Extent",
    "check_index",
    "glimpse",
    "impossible_labels",
    "impossible_rows",
    "merged_notes",
    "named_sample",
    "predictions",
    "sample",
    "without_zeros",
]
