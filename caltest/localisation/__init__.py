"""Where a model of probability vectors errs: which classes are over- and under-predicted near what."""

from caltest.localisation.localise import witness
from caltest.localisation.result import Witness

__all__ = ["Witness", "witness"]
