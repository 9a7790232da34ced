"""Gridded forms: functions of the residuals of one probability, summed over the cells of a grid."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from caltest.forms.additive import Additive
from caltest.forms.base import ROUNDING, Array, Labels, Moments
from caltest.forms.brownian import BrownianFunctional, BrownianLimit

Cells: TypeAlias = NDArray[np.intp]


@dataclass(frozen=True, eq=False)
class Gridded(Additive):
    """T = finish(R), R_c = Σ (y_i − p_i) over the rows whose score p lies in cell c of a grid.

    Attributes
    ----------
    scores
        The probabilities p of class 1, (n,).
    """

    scores: Array

    @property
    @abstractmethod
    def n_cells(self) -> int:
        """Number of cells."""

    @abstractmethod
    def cells(self, scores: Array) -> Cells:
        """Return the cell of every score."""

    @property
    def n_samples(self) -> int:
        """Number of rows n."""
        return len(self.scores)

    @property
    def sums_of_a_draw(self) -> tuple[int, ...]:
        """A sum for every cell."""
        return (self.n_cells,)

    def contributions(self, rows: slice, labels: Labels) -> Array:
        """Sum the residuals of every cell, (B, cells)."""
        scores = self.scores[rows]
        sums = np.zeros((len(labels), self.n_cells))
        if len(scores) == 0:
            return sums
        place = self.cells(scores)
        order = np.argsort(place, kind="stable")
        starts = np.flatnonzero(np.diff(place[order], prepend=-1))
        counts = np.add.reduceat(labels.take(order, axis=1), starts, axis=1, dtype=np.int32)
        sums[:, place[order[starts]]] = counts - np.add.reduceat(scores[order], starts)
        return sums


@dataclass(frozen=True, eq=False)
class _Edged(Gridded):
    """Cells between edges.

    Attributes
    ----------
    edges
        The inner edges of the cells, increasing, (K − 1,); a score on an edge is in the cell below it.
    whole
        How many rows n are in all, where these are only some of them.
    """

    edges: Array
    whole: int

    @property
    def n_cells(self) -> int:
        """Number of cells K."""
        return len(self.edges) + 1

    def cells(self, scores: Array) -> Cells:
        """Return how many edges lie below each score."""
        return np.searchsorted(self.edges, scores, side="left")

    @property
    def resolution(self) -> float:
        """Rounding of sums over the rows, in units of all."""
        return ROUNDING * self.n_samples / self.whole * float(np.sqrt(self.n_cells))


@dataclass(frozen=True, eq=False)
class GriddedBins(_Edged):
    """T = measure(R, E, sizes, n) of residuals R, expected events E and rows of every bin.

    Attributes
    ----------
    measure
        Takes residuals (B, K), expected events (K,), rows (K,), all of bins that are not empty, and n;
        returns the (B,) statistics.
    """

    measure: Callable[[Array, Array, Array, int], Array]

    @property
    def sums_of_a_draw(self) -> tuple[int, ...]:
        """Residuals, expected events and rows of every bin."""
        return 3, self.n_cells

    def contributions(self, rows: slice, labels: Labels) -> Array:
        """Return the sums of every bin, (B, 3, K)."""
        scores = self.scores[rows]
        place = self.cells(scores)
        sums = np.empty((len(labels), *self.sums_of_a_draw))
        sums[:, 0] = super().contributions(rows, labels)
        sums[:, 1] = np.bincount(place, weights=scores, minlength=self.n_cells)
        sums[:, 2] = np.bincount(place, minlength=self.n_cells)
        return sums

    def finish(self, sums: Array) -> Array:
        """Measure the bins that are not empty."""
        used = sums[0, 2] > 0
        return self.measure(sums[:, 0, used], sums[0, 1, used], sums[0, 2, used], self.whole)


@dataclass(frozen=True, eq=False)
class GriddedDifference(_Edged):
    """How far C(x) = n⁻¹ Σ_{p_i ≤ x} (y_i − p_i) strays from 0, looked at where x is an edge of a grid.

    Attributes
    ----------
    functional
        "maximum" for max |C|, "range" for max C − min C.
    """

    functional: BrownianFunctional

    def finish(self, sums: Array) -> Array:
        """Add up the cells."""
        path = np.cumsum(sums, axis=1)
        highest, lowest = path.max(axis=1, initial=0.0), path.min(axis=1, initial=0.0)
        size = highest - lowest if self.functional == "range" else np.maximum(highest, -lowest)
        return np.asarray(size / self.whole)

    def moments(self) -> Moments:
        """Return the moments under H0 of ``whole`` rows like these, nearly: a Brownian path's."""
        variance = float(np.mean(self.scores * (1.0 - self.scores)))
        scale = float(np.sqrt(variance / self.whole))
        return BrownianLimit(self.functional, scale, float(self.whole)).moments
