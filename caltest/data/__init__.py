"""Predictions and observed labels: where all input is read and checked."""

from caltest.data.attributes import Extent
from caltest.data.containers import check_index
from caltest.data.diagnose import impossible_labels, impossible_rows
from caltest.data.premises import check_members, premises_of
from caltest.data.rows import SUBSAMPLED, Rows, Sample, merged_notes, subsample, without_zeros
from caltest.data.sample import named_sample, predictions, sample, sample_of_law, whole_sample

__all__ = [
    "SUBSAMPLED",
    "Rows",
    "Sample",
    "Extent",
    "check_members",
    "premises_of",
    "check_index",
    "subsample",
    "impossible_labels",
    "impossible_rows",
    "merged_notes",
    "named_sample",
    "predictions",
    "sample",
    "sample_of_law",
    "whole_sample",
    "without_zeros",
]
