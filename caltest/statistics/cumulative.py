"""Cumulative differences: Kolmogorov–Smirnov and Kuiper, without bins, kernels or bandwidths."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import ClassVar

import numpy as np

from caltest._arguments import arguments
from caltest.data import Predictions
from caltest.forms import CumulativeDifference, GriddedDifference
from caltest.forms.base import Array
from caltest.forms.paths import BrownianFunctional
from caltest.statistics.base import Partwise, Statistic
from caltest.statistics.ece import two_classes

#: Cells of scores where rows are too many to be sorted.
GRID = 1024


@dataclass(frozen=True)
class _Cumulative(Statistic):
    functional: ClassVar[BrownianFunctional]
    default_lens: ClassVar[str | None] = "top_label"

    def given(self, predictions: Predictions) -> CumulativeDifference:
        """Fix the predictions and their order."""
        return CumulativeDifference(two_classes(self, predictions), self.functional)

    def in_parts(self, whole: int, glimpse: Callable[[], Predictions]) -> Partwise:
        """Look at C at quantiles of a glimpse of the scores only: all are too many to sort."""
        shares = np.arange(1, GRID) / GRID
        edges = np.unique(np.quantile(two_classes(self, glimpse()), shares, method="inverted_cdf"))
        return Partwise(self, partial(self._on_grid, whole, edges))

    def _on_grid(self, whole: int, edges: Array, predictions: Predictions) -> GriddedDifference:
        return GriddedDifference(two_classes(self, predictions), edges, whole, self.functional)


@arguments()
@dataclass(frozen=True)
class KolmogorovSmirnov(_Cumulative):
    """Kolmogorov–Smirnov calibration error: max_x |C(x)|, C(x) = n⁻¹ Σ_{p_i ≤ x} (y_i − p_i).

    The largest absolute error of the rows below any score, added up and divided by n: in units of
    probability, and not standardised. It has nothing to choose, and weights an error by the share of
    rows that make it. Tied scores count as one step. Of two classes, the other one's probability
    gives another value (C then starts at the other end); that of :class:`Kuiper` stays. More than
    two classes are seen through the lens "top_label".

    Raises
    ------
    InputError
        If there are more than two classes and the lens leaves them so.

    References
    ----------
    Gupta, Rahimi, Ajanthan, Mensink, Sminchisescu, Hartley, "Calibration of neural networks using
    splines", ICLR 2021; Arrieta-Ibarra, Gujral, Tannen, Tygert, Xu, "Metrics of calibration for
    probabilistic predictions", JMLR 23 (2022): ECCE-MAD.

    Examples
    --------
    C is 0.15 after the rows of 0.2 and −0.05 after those of 0.9:

    >>> import caltest
    >>> round(caltest.estimate([0.2, 0.2, 0.9, 0.9], [0, 1, 1, 0], "ks"), 6)
    0.15
    """

    name: ClassVar[str] = "ks"
    measures: ClassVar[str] = "Kolmogorov–Smirnov calibration error"
    functional: ClassVar[BrownianFunctional] = "maximum"


@arguments()
@dataclass(frozen=True)
class Kuiper(_Cumulative):
    """Kuiper calibration error: max_x C(x) − min_x C(x), with C and the start C = 0 as of "ks".

    The largest absolute error of the rows between any two scores, added up and divided by n: in
    units of probability, and not standardised. It is at least the Kolmogorov–Smirnov error and at
    most twice that, and sees errors of opposite signs better. Either of two classes gives the same
    value. Ties and lens as in :class:`KolmogorovSmirnov`.

    Raises
    ------
    InputError
        If there are more than two classes and the lens leaves them so.

    References
    ----------
    Arrieta-Ibarra, Gujral, Tannen, Tygert, Xu, "Metrics of calibration for probabilistic
    predictions", JMLR 23 (2022): ECCE-R.

    Examples
    --------
    C is 0.15 after the rows of 0.2 and −0.05 after those of 0.9:

    >>> import caltest
    >>> round(caltest.estimate([0.2, 0.2, 0.9, 0.9], [0, 1, 1, 0], "kuiper"), 6)
    0.2
    """

    name: ClassVar[str] = "kuiper"
    measures: ClassVar[str] = "Kuiper calibration error"
    functional: ClassVar[BrownianFunctional] = "range"
