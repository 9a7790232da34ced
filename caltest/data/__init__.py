"""Predictions and observed labels: where all input is read and checked."""

from caltest.data.containers import check_index
from caltest.data.labels import impossible_labels, impossible_rows
from caltest.data.rows import Rows, Sample, merged_notes, without_zeros
from caltest.data.sample import named_sample, predictions, sample
from caltest.data.subsampling import SUBSAMPLED, subsample
from caltest.data.weights import Extent

__all__ = [
    "SUBSAMPLED",
    "Rows",
    "Sample",
    "Extent",
    "check_index",
    "subsample",
    "impossible_labels",
    "impossible_rows",
    "merged_notes",
    "named_sample",
    "predictions",
    "sample",
    "without_zeros",
]
