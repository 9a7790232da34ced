"""Predictions, and the labels that came true: the only validation in the package."""

from caltest.data.labels import impossible_labels, impossible_rows
from caltest.data.sample import (
    GLIMPSED,
    Rows,
    Sample,
    check_index,
    glimpse,
    merged_notes,
    named_sample,
    predictions,
    sample,
)

__all__ = [
    "GLIMPSED",
    "Rows",
    "Sample",
    "check_index",
    "glimpse",
    "impossible_labels",
    "impossible_rows",
    "merged_notes",
    "named_sample",
    "predictions",
    "sample",
]
