"""Label functions: any statistic that is neither additive nor pairwise, a user's own included."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from caltest._parallel import ALONE, Workers
from caltest._visible import quoted
from caltest.exceptions import InputError
from caltest.forms.base import Array, Form, Labels
from caltest.laws import Law
from caltest.pvalues import TIE_TOLERANCE


@dataclass(frozen=True, eq=False)
class LabelFunction(Form):
    """T = function(probs, labels), evaluated one label vector at a time."""

    #: Takes the predictions and the labels (n,) or outcomes, returns a number.
    function: Callable[[Any, Any], float]
    predictions: Array | Law  #: Probabilities (n, m), read-only, or predicted distributions.

    @property
    def _name(self) -> str:
        return getattr(self.function, "__name__", None) or quoted(self.function)

    def of_labels(self, labels: Labels, workers: Workers = ALONE) -> Array:
        """Return the (B,) values for ``labels`` (B, n)."""
        return np.array([self._evaluate_one(row) for row in labels], dtype=np.float64)

    def check_unmoved(self, labels: Labels, value: float) -> None:
        """Raise if the function gives another value for labels that it has seen.

        A function that remembers (a counter, a running mean) has no one value that could be reported.
        ``value`` is what the observed labels (n,) had before the draws.
        """
        again = self._evaluate_one(labels)
        if again == value or abs(again - value) <= TIE_TOLERANCE * max(abs(again), abs(value)):
            return
        raise InputError(
            f"the statistic {self._name} returned {value:.6g} for the observed labels, and {again:.6g} "
            "for the same labels after the draws; it must depend on its two arguments alone, without "
            "memory of earlier calls or random numbers of its own."
        )

    def _evaluate_one(self, labels: Labels) -> float:
        numbers = labels.dtype if labels.dtype.kind == "f" else np.intp
        returned = self.function(self.predictions, labels.astype(numbers))  # a copy, theirs to change
        masked = isinstance(returned, np.ma.MaskedArray) and np.ma.is_masked(returned)
        try:
            value = np.nan if masked else float(returned)
        except (TypeError, ValueError, OverflowError):
            value = np.nan
        if np.isnan(value):
            raise InputError(
                f"the statistic {self._name} returned {quoted(returned)} on {len(labels)} rows; "
                "it must return one number, for every vector of labels."
            )
        return value
