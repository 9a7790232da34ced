"""T-Cal: squared errors in bins of many scales, debiased, the largest in units of its deviation."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Self

import numpy as np

from caltest._arguments import arguments
from caltest.binning import EqualMass
from caltest.data import Rows
from caltest.forms import MultiscaleBins
from caltest.forms.base import Array
from caltest.statistics.base import BinaryStatistic

_HALVINGS = 19  # bins of the finest scale are no more than 2¹⁹,
_HALVINGS_IN_PARTS = 10  # and 1024 where rows come a part at a time: the sums of all draws are held


@arguments()
@dataclass(frozen=True)
class TCal(BinaryStatistic):
    """T-Cal: a debiased binned error, at whichever number of bins shows it best, for two classes.

    T = max_s U_s/√Var U_s over the scales s.

    Scale s = 0, 1, 2, … has 2^s bins of equal numbers of rows, down to ``min_rows`` rows per bin; equal
    scores stay together. With residuals r = y − p,

        U_s = Σ_b n_b⁻¹ Σ_{i≠j in b} r_i r_j = Σ_b [(Σ r)² − Σ r²]/n_b

    is the squared error of the binned predictions (times n) without its bias: 0 on average if the
    model is calibrated, with variance 2 Σ_b [(Σ v)² − Σ v²]/n_b², v = p (1 − p), given the predictions.
    A wide error stands out in few bins and a narrow one in many, and no number of bins need be chosen.
    A scale of variance 0 is left out; if none is left, T is 0. (Only labels of probability 0 can make U
    positive there: T is then +∞.)
    With more than two classes, the top class is tested (the lens "top_label").

    Parameters
    ----------
    min_rows
        Smallest number of rows per bin of the finest scale, except for ties. Default 10.

    Raises
    ------
    InputError
        If there are more than two classes and the lens leaves them so.

    Notes
    -----
    The source takes bins of equal width (of full vectors, cubes), and rejects if U exceeds a threshold
    at any scale, each at its share of the level. With equal numbers of rows no bin is empty where
    scores crowd, and the maximum has one exact null. Of a file that is read a block at a time, bins are
    those of a sample of its rows, 1024 at most.

    References
    ----------
    Lee, Huang, Hassani, Dobriban, "T-Cal: an optimal test for the calibration of predictive models",
    JMLR 24 (2023).

    Examples
    --------
    Right on average, but not for either score: U is −0.4 in one bin, and 2.4 in two.

    >>> import caltest
    >>> labels = [1] * 6 + [0] * 4 + [1] * 4 + [0] * 6
    >>> round(caltest.estimate([0.2] * 10 + [0.8] * 10, labels, "t_cal"), 6)
    7.905694
    """

    min_rows: int = 10
    _edges: tuple[Array, ...] | None = field(default=None, repr=False, compare=False, kw_only=True)

    name = "t_cal"
    measures = "largest standardised squared error over bins of many scales"
    reported = ("min_rows",)
    of_parts = True
    growth = None  # more rows have more scales

    def fitted(self, predictions: Rows) -> Self:
        """Of parts, take bins of equal mass of a sample of the scores: all are too many to sort."""
        scores = self.probability(predictions)
        if predictions.part_of is None:
            return self
        rows = predictions.part_of.rows
        edges = self._edges_of(scores, rows, _HALVINGS_IN_PARTS, predictions.weights)
        return replace(self, _edges=edges)

    def given(self, predictions: Rows) -> MultiscaleBins:
        """Fix the predictions and their bins."""
        scores, weights = self.probability(predictions), predictions.weights
        edges = self._edges or self._edges_of(scores, len(scores), _HALVINGS, weights)
        finest = edges[0]
        merges = [
            np.append(0, np.searchsorted(finer, coarser) + 1) for finer, coarser in pairwise(edges)
        ]
        cells, whole = np.searchsorted(finest, scores, side="left"), predictions.whole.total
        return MultiscaleBins(scores, cells, len(finest) + 1, weights, whole, tuple(merges))

    def _edges_of(self, scores: Array, n: int, most: int, weights: Array) -> tuple[Array, ...]:
        """Return the inner edges of the bins of n rows, scale by scale, the finest first."""
        halvings = min(max((n // self.min_rows).bit_length() - 1, 0), most)
        order = np.argsort(scores, kind="stable")
        ordered = scores[order], weights[order]
        return tuple(EqualMass(2**s).edges_of(*ordered)[1:-1] for s in range(halvings, -1, -1))
