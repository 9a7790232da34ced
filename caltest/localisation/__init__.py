"""Locate errors: near which predictions a class is predicted too often or too rarely."""

from caltest.localisation.search import Witness, witness

__all__ = ["Witness", "witness"]
