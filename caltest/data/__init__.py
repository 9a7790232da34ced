"""Predictions and observed labels: the place where all input is read and checked."""

from caltest.data.rows import Rows, Sample, subsample
from caltest.data.sample import predictions, sample

__all__ = ["Rows", "Sample", "predictions", "sample", "subsample"]
