"""Label functions: any statistic that is neither additive nor pairwise, a user's own included."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from caltest._parallel import ALONE, Workers
from caltest.exceptions import InputError
from caltest.forms.base import Array, Form, Labels
from caltest.predictive import Predictive


@dataclass(frozen=True, eq=False)
class LabelFunction(Form):
    """T = function(probs, labels), evaluated one label vector at a time.

    Attributes
    ----------
    function
        Takes the predictions and the labels (n,) or outcomes, returns a number.
    predictions
        Probabilities (n, m), read-only, or predicted distributions.
    """

    function: Callable[[Any, Any], float]
    predictions: Array | Predictive

    def evaluate(self, labels: Labels, workers: Workers = ALONE) -> Array:
        """Return the (B,) values for ``labels`` (B, n)."""
        return np.array([self._evaluate_one(row) for row in labels], dtype=np.float64)

    def _evaluate_one(self, labels: Labels) -> float:
        numbers = labels.dtype if labels.dtype.kind == "f" else np.intp
        returned = self.function(self.predictions, labels.astype(numbers))
        try:
            value = float(returned)
        except (TypeError, ValueError):
            value = np.nan
        if np.isnan(value):
            name = getattr(self.function, "__name__", repr(self.function))
            raise InputError(
                f"the statistic {name} returned {returned!r} on {len(labels)} rows; "
                "it must return one number, for every vector of labels."
            )
        return value
