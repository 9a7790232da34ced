"""The smooth ECE of Błasiok and Nakkiran: kernel smoothing instead of bins."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar

import numpy as np
from scipy.fft import dct, idct

from caltest._arguments import Whole, arguments
from caltest.data import Predictions
from caltest.forms import Gridded
from caltest.forms.base import Array
from caltest.forms.sums import Cells
from caltest.statistics.base import Partwise, Statistic
from caltest.statistics.ece import two_classes

_ROUNDS = 22  # halvings of the bandwidth's interval: 2e-7


@arguments(grid=Whole(1, 1_000_000))
@dataclass(frozen=True)
class SmoothECE(Statistic):
    """Smooth ECE, the bandwidth σ at which ∫|residuals smoothed at width σ| equals σ, of two classes.

    Residuals y − p are put on a grid and smoothed by a Gaussian kernel reflected at 0 and 1. The
    integral falls as σ grows, so there is one such σ; no bins or bandwidth need be chosen. More than
    two classes are seen through the lens "top_label".

    Parameters
    ----------
    grid
        Cells of the grid on [0, 1]. Default 1024: a row moves by at most 0.0005.

    References
    ----------
    Błasiok and Nakkiran, "Smooth ECE: principled reliability diagrams via kernel smoothing",
    ICLR 2024, Definition 3 and Section 3.2.

    Examples
    --------
    >>> import caltest
    >>> round(caltest.estimate([0.2, 0.2, 0.9, 0.9], [0, 1, 1, 1], "smooth_ece"), 3)
    0.2
    """

    grid: int = 1024

    name: ClassVar[str] = "smooth_ece"
    measures: ClassVar[str] = "smooth expected calibration error"
    default_lens: ClassVar[str | None] = "top_label"

    @property
    def parameters(self) -> dict[str, Any]:
        """The grid."""
        return {"grid": self.grid}

    def given(self, predictions: Predictions) -> SmoothedResiduals:
        """Fix the predictions and their places on the grid."""
        return self._of_rows(predictions.n_samples, predictions)

    def in_parts(self, whole: int, glimpse: Callable[[], Predictions]) -> Partwise:
        """There is nothing to fit."""
        return Partwise(self, partial(self._of_rows, whole))

    def _of_rows(self, whole: int, predictions: Predictions) -> SmoothedResiduals:
        return SmoothedResiduals(two_classes(self, predictions), self.grid, whole)


@dataclass(frozen=True, eq=False)
class SmoothedResiduals(Gridded):
    """Residual sums on a grid of equal cells, finished by smoothing.

    Attributes
    ----------
    grid
        Cells of the grid.
    whole
        How many rows there are in all, where these are only some of them. Default None: these.
    """

    grid: int
    whole: int | None = None

    @property
    def n_cells(self) -> int:
        """Number of cells."""
        return self.grid

    def cells(self, scores: Array) -> Cells:
        """Return the cell of every score."""
        return np.minimum((scores * self.grid).astype(np.intp), self.grid - 1)

    @property
    def resolution(self) -> float:
        """Where the bisection ends, in units of all rows."""
        return 2.0 * 0.5**_ROUNDS * self.n_samples / (self.whole or self.n_samples)

    def finish(self, sums: Array) -> Array:
        """Find the σ at which the smoothed error equals σ, by bisection.

        Smoothing by a Gaussian reflected at both ends multiplies the cosine transform by
        exp(−σ² π² k²/2).
        """
        spectrum = dct(sums / (self.whole or self.n_samples), axis=1)
        decay = -0.5 * (np.pi * np.arange(self.grid)) ** 2
        low, high = np.zeros(len(sums)), np.ones(len(sums))
        for _ in range(_ROUNDS):
            width = 0.5 * (low + high)
            # Terms damped below 1e-16 are left out: few are left but for small widths.
            kept = min(self.grid, 2 + int(8.6 / (np.pi * width.min())))
            damped = spectrum[:, :kept] * np.exp(decay[:kept] * width[:, None] ** 2)
            error = np.abs(idct(damped, n=self.grid, axis=1)).sum(axis=1)
            too_narrow = error > width
            low = np.where(too_narrow, width, low)
            high = np.where(too_narrow, high, width)
        return np.asarray(0.5 * (low + high))
