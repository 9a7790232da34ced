"""Predictions, and the labels that came true: the only validation in the package."""

from caltest.data.sample import Predictions, Sample, sample

__all__ = ["Predictions", "Sample", "sample"]
