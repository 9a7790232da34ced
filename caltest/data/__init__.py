"""Predictions, and the labels that came true: the only validation in the package."""

from caltest.data.impossible import impossible_labels
from caltest.data.sample import Predictions, Sample, check_index, sample

__all__ = ["Predictions", "Sample", "check_index", "impossible_labels", "sample"]
