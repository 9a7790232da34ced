"""What a model may predict of numbers: give one of these in place of probabilities of classes."""

from caltest.laws.distributions import Ensemble, FromScipy, GaussianPredictions, Predictive

__all__ = ["Ensemble", "FromScipy", "GaussianPredictions", "Predictive"]
