"""Cumulative differences: labels less predictions, added up in the order of the predictions."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from caltest._parallel import ALONE, Workers
from caltest._tiles import blocks
from caltest.forms.base import ROUNDING, Array, Form, Labels, effective_surprises
from caltest.forms.brownian import BrownianFunctional, BrownianLimit

_ENTRIES = 2**17  # labels of the draws taken at a time: what is made of them stays in the cache


@dataclass(frozen=True, eq=False)
class CumulativeDifference(Form):
    """How far C(x) = n⁻¹ Σ_{p_i ≤ x} (y_i − p_i) strays from 0, where it starts.

    All rows of one score are one step of C, so their order cannot matter. Given the predictions and
    under H0, C is a martingale in x.

    Attributes
    ----------
    scores
        The probabilities p of class 1, (n,).
    functional
        "maximum" for max |C|, "range" for max C − min C.
    """

    scores: Array
    functional: BrownianFunctional

    @cached_property
    def _order(self) -> NDArray[np.intp]:
        return np.argsort(self.scores, kind="stable")

    @cached_property
    def _ends(self) -> NDArray[np.intp]:
        """Return the last row of every score, in sorted order, (K,)."""
        ordered = self.scores[self._order]
        return np.append(np.flatnonzero(ordered[1:] != ordered[:-1]), len(ordered) - 1)

    @cached_property
    def _expected(self) -> Array:
        """Return Σ_{p_i ≤ x} p_i at every score x, (K,)."""
        sizes = np.diff(self._ends, prepend=-1)
        return np.cumsum(sizes * self.scores[self._order[self._ends]])

    @property
    def resolution(self) -> float:
        """Rounding of C: of a sum of K products, relative to the sum, and of a difference.

        At either end of the range it is at most K + 2 units in the last place (half an epsilon each).
        """
        rounding = np.finfo(np.float64).eps * len(self._ends) * float(self._expected[-1])
        return 2.0 * rounding / len(self.scores) + ROUNDING

    @property
    def brownian_limit(self) -> BrownianLimit:
        """The scale is the standard deviation of C at its end, n⁻¹ √(Σ p_i (1 − p_i))."""
        variances = self.scores * (1.0 - self.scores)
        total = float(variances.sum())
        scale = float(np.sqrt(total)) / len(self.scores)
        surprises = effective_surprises(variances, np.minimum(self.scores, 1.0 - self.scores))
        starts = np.append(0, self._ends[:-1] + 1)
        steps = np.add.reduceat(variances[self._order], starts) ** 1.5
        step = float(steps.sum()) / total / len(self.scores) if total > 0.0 else 0.0
        return BrownianLimit(self.functional, scale, surprises, step)

    def evaluate(self, labels: Labels, workers: Workers = ALONE) -> Array:
        """Return the (B,) values for ``labels`` (B, n) of 0 and 1."""
        fitting = max(1, _ENTRIES // len(self.scores))
        parts = [self._evaluate_block(labels[draws]) for draws in blocks(len(labels), fitting)]
        return np.concatenate(parts)

    def _evaluate_block(self, labels: Labels) -> Array:
        # Labels are counted in whole numbers, whatever their type: only p is ever rounded.
        counts = np.cumsum(labels.take(self._order, axis=1), axis=1, dtype=np.int64)
        if len(self._ends) < len(self.scores):
            counts = counts.take(self._ends, axis=1)
        differences = counts - self._expected
        highest = differences.max(axis=1, initial=0.0)
        lowest = differences.min(axis=1, initial=0.0)
        size = highest - lowest if self.functional == "range" else np.maximum(highest, -lowest)
        return np.asarray(size / len(self.scores))
