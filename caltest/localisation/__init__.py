"""Where a model of probability vectors errs: which classes are over- and under-predicted near what."""

from caltest.localisation.search import Witness, witness

__all__ = ["Witness", "witness"]
