"""Binnings: partitions of the rows by their predictions. Nothing is dropped, no bin is empty.

Bins on an axis are right-closed, (a, b], and the first one holds its left end too: a value on an edge
is in the bin below it, 0 in the first and 1 in the last.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from caltest._arguments import arguments, positive_integer, real_array
from caltest._quoted import quoted
from caltest.exceptions import InputError

Array: TypeAlias = NDArray[np.float64]
Cells: TypeAlias = NDArray[np.intp]


class Binning(ABC):
    """A rule that cuts predictions into bins. Subclasses are frozen dataclasses of options."""

    @abstractmethod
    def cells(self, probs: Array) -> Cells:
        """Return the bin of every row of ``probs`` (n, m): (n,) integers 0..K−1, all of them used."""


class ScoreBinning(Binning):
    """A binning of one score, the probability of class 1 of two classes."""

    @abstractmethod
    def cells_of_scores(self, scores: Array) -> Cells:
        """Return the bin of every score (n,)."""

    def cells(self, probs: Array) -> Cells:
        """Return the bin of every row by its probability of class 1."""
        if probs.shape[1] != 2:
            raise InputError(
                f"{type(self).__name__} bins one score, and there are {probs.shape[1]} classes; "
                "give a lens such as 'top_label', or use the binnings Uniform or MedianVariance."
            )
        return _occupied(self.cells_of_scores(probs[:, 1]))


@arguments()
@dataclass(frozen=True)
class Uniform(Binning):
    """Cut every class axis into equal intervals; the cells of the simplex that hold rows are the bins.

    Parameters
    ----------
    n_bins
        Intervals an axis. Default 10, the literature's.

    References
    ----------
    Vaicenavicius et al. 2019; Widmann et al. 2019, Appendix J.

    Examples
    --------
    >>> Uniform(10).cells(np.array([[0.0, 1.0], [0.1, 0.9], [0.45, 0.55]])).tolist()
    [1, 0, 2]
    """

    n_bins: int = 10

    def cells(self, probs: Array) -> Cells:
        """Return the occupied cell of every row, numbered in lexicographic order."""
        dtype = np.uint8 if self.n_bins <= 255 else np.uint32
        places = _interval(probs, np.arange(1, self.n_bins) / self.n_bins).astype(dtype)
        rows = np.ascontiguousarray(places).view(np.dtype((np.void, places[0].nbytes))).ravel()
        return np.unique(rows, return_inverse=True)[1].reshape(-1)


@arguments()
@dataclass(frozen=True)
class EqualWidth(ScoreBinning):
    """Cut [0, 1] into equal intervals; those that hold scores are the bins.

    Parameters
    ----------
    n_bins
        Number of intervals. Default 15, the literature's.

    Examples
    --------
    >>> EqualWidth(2).cells(np.array([[0.5, 0.5], [0.4, 0.6], [1.0, 0.0]])).tolist()
    [0, 1, 0]
    """

    n_bins: int = 15

    def cells_of_scores(self, scores: Array) -> Cells:
        """Return the interval of every score."""
        return _interval(scores, np.arange(1, self.n_bins) / self.n_bins)


@arguments()
@dataclass(frozen=True)
class EqualMass(ScoreBinning):
    """Cut the sorted scores into bins of equal numbers of rows; equal scores stay together.

    A group of equal scores goes to the bin in which its middle lies, so heavy ties leave fewer bins.

    Parameters
    ----------
    n_bins
        Number of bins. Default 15, the literature's.

    Examples
    --------
    >>> probs = np.array([[0.9, 0.1], [0.1, 0.9], [0.8, 0.2], [0.2, 0.8]])
    >>> EqualMass(2).cells(probs).tolist()
    [0, 1, 0, 1]
    """

    n_bins: int = 15

    def cells_of_scores(self, scores: Array) -> Cells:
        """Return the bin of every score's middle rank."""
        _, group, counts = np.unique(scores, return_inverse=True, return_counts=True)
        twice_middle = 2 * np.cumsum(counts) - counts  # of the ranks 1/2, 3/2, …, times two
        n_bins = min(self.n_bins, len(scores))  # more cannot be told apart
        return np.asarray(twice_middle * n_bins // (2 * len(scores)))[group.reshape(-1)]


@arguments()
@dataclass(frozen=True, init=False)
class FromEdges(ScoreBinning):
    """Cut the scores at given edges.

    Parameters
    ----------
    edges
        Increasing, the first at or below every score and the last at or above.

    Examples
    --------
    >>> FromEdges([0, 0.5, 1]).cells(np.array([[0.5, 0.5], [0.4, 0.6]])).tolist()
    [0, 1]
    """

    edges: tuple[float, ...]

    def __init__(self, edges: Sequence[float]) -> None:
        values = real_array("edges", edges, "give increasing numbers")
        if values.ndim != 1 or len(values) < 2 or not (np.diff(values) > 0).all():
            raise InputError(f"edges is {quoted(edges)}; give at least two numbers that increase.")
        object.__setattr__(self, "edges", tuple(float(v) for v in values))

    def cells_of_scores(self, scores: Array) -> Cells:
        """Return the interval of every score."""
        outside = np.flatnonzero((scores < self.edges[0]) | (scores > self.edges[-1]))
        if len(outside):
            raise InputError(
                f"the score {scores[outside[0]]:g} of row {outside[0]} (counting from 0) lies outside "
                f"the edges {self.edges[0]:g} to {self.edges[-1]:g}; give edges that cover all scores."
            )
        return _interval(scores, np.asarray(self.edges[1:-1]))


@arguments(min_size=positive_integer)
@dataclass(frozen=True)
class MedianVariance(Binning):
    """Split bins at the median of the class that varies most, as long as both halves stay large.

    A bin's rows are split into those below the median of that class (of classes that vary alike, the
    first) and the others. A bin is final if it has fewer than 2·``min_size`` rows, or if a half would
    have fewer than ``min_size``.

    Parameters
    ----------
    min_size
        Smallest bin. Default 5; published results on networks of 10 000 rows used 100.

    References
    ----------
    Vaicenavicius et al. 2019; Widmann et al. 2019, Appendix J.

    Examples
    --------
    >>> P = [[0.4, 0.1, 0.5], [0.5, 0.3, 0.2], [0.3, 0.7, 0], [0.1, 0, 0.9], [0.8, 0.1, 0.1]]
    >>> MedianVariance(2).cells(np.array(P)).tolist()
    [0, 0, 1, 0, 1]
    """

    min_size: int = 5

    def cells(self, probs: Array) -> Cells:
        """Return the bin of every row."""
        cells = np.zeros(len(probs), dtype=np.intp)
        pending, final = [np.arange(len(probs))], 0
        while pending:
            rows = pending.pop()
            halves = self._split(probs, rows)
            if halves is None:
                cells[rows] = final
                final += 1
            else:
                pending.extend(halves)
        return cells

    def _split(self, probs: Array, rows: Cells) -> tuple[Cells, Cells] | None:
        if len(rows) < max(2, 2 * self.min_size):
            return None
        inside = probs[rows]
        variances = inside.var(axis=0, ddof=1)
        # Variances that differ by rounding are equal: the order of the rows must not choose.
        widest = int(np.argmax(variances >= (1.0 - 1e-9) * variances.max()))
        below = inside[:, widest] < np.median(inside[:, widest])
        smaller = min(int(below.sum()), int((~below).sum()))
        return None if smaller < self.min_size else (rows[below], rows[~below])


def inner_edges(binning: Binning, scores: Array) -> Array | None:
    """Return the inner edges of the bins of one score, those of equal mass from ``scores`` (n,).

    None if the bins are not intervals that some scores tell.
    """
    if isinstance(binning, EqualWidth):
        return np.arange(1, binning.n_bins) / binning.n_bins
    if isinstance(binning, FromEdges):
        return np.asarray(binning.edges[1:-1])
    if isinstance(binning, EqualMass):
        return quantile_edges(scores, binning.n_bins)
    return None


def quantile_edges(scores: Array, n_cells: int) -> Array:
    """Return the inner edges, at most ``n_cells`` − 1, of cells with equally many of the scores (n,).

    Examples
    --------
    >>> quantile_edges(np.array([0.1, 0.2, 0.3, 0.4]), 2).tolist()
    [0.2]
    """
    shares = np.arange(1, n_cells) / n_cells
    return np.unique(np.quantile(scores, shares, method="inverted_cdf"))


def _interval(values: Array, inner_edges: Array) -> Cells:
    """Return how many inner edges lie below each value."""
    return np.searchsorted(inner_edges, values, side="left")


def _occupied(cells: Cells) -> Cells:
    return np.unique(cells, return_inverse=True)[1].reshape(-1)
