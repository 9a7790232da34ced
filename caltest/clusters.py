"""Clusters: groups of rows that belong together, and sums over them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import scipy

from caltest._parallel import check_fits
from caltest._sums import WIDE_TILE, Array, Places, Tile, blocks
from caltest.sampling import generator

_HELD = 2**22  # numbers of predictions held at a time: 32 MiB


def folds_of(n_rows: int, clusters: Places | None, count: int, seed: int = 0) -> Places:
    """Return a random fold for every row, (n,); rows of one cluster are in one fold."""
    units = np.arange(n_rows) if clusters is None else np.unique(clusters, return_inverse=True)[1]
    return np.asarray((generator(seed).permutation(int(units.max()) + 1) % count)[units])


@dataclass(frozen=True, eq=False)
class Clusters:
    """The assignment of rows to clusters."""

    codes: Places  #: The cluster of every row, (n,), 0..G−1.
    count: int  #: Number of clusters G.
    weights: Array = None  # type: ignore[assignment]  #: Weights of rows, (n,); ones by default.

    def __post_init__(self) -> None:
        if self.weights is None:
            object.__setattr__(self, "weights", np.ones(len(self.codes)))

    @classmethod
    def of(cls, codes: Places, weights: Array) -> Clusters:
        """Return the clusters of some rows, renumbered."""
        if (codes[1:] > codes[:-1]).all():  # every row is its own cluster
            return cls(np.arange(len(codes)), len(codes), weights)
        here, own = np.unique(codes, return_inverse=True)
        return cls(own, len(here), weights)

    @cached_property
    def _members(self) -> Any:
        return _membership(self.codes, self.count)

    @cached_property
    def share_between(self) -> float:
        """Ratio of all pairs of different rows to pairs from different clusters, weighted."""
        sums, total = np.bincount(self.codes, self.weights), float(self.weights.sum())
        between = total**2 - float(sums @ sums)
        return (total**2 - float(self.weights @ self.weights)) / between if between > 0.0 else 0.0

    def of_equal_size(self, width: int) -> Iterator[tuple[Places, Places]]:
        """Yield clusters of one size k, (c,), and their rows, (c, k); few at a time if k is large."""
        order, sizes = np.argsort(self.codes, kind="stable"), np.bincount(self.codes)
        starts = np.cumsum(sizes) - sizes
        for size in np.unique(sizes):
            own = np.flatnonzero(sizes == size)
            for part in blocks(len(own), max(1, _HELD // (int(size) * max(int(size), width)))):
                yield own[part], order[starts[own[part], None] + np.arange(size)]

    def sums(self, values: Array) -> Array:
        """Sum values of rows, (n,) or (n, K), within every cluster: (G,) or (G, K)."""
        if values.ndim == 1:
            return np.bincount(self.codes, values, self.count).astype(np.float64, copy=False)
        return np.asarray(self._members @ values)

    def sums_at(self, places: Places, values: Array, size: int) -> Any:
        """Sum values (n,) or (n, m) by cluster and place 0..size−1: sparse, (G, size m).

        Places belong to rows, (n,), or to every value.
        """
        width = 1 if values.ndim == 1 else values.shape[1]
        columns = places.reshape(len(places), -1) * width + np.arange(width)
        entries = (values.ravel(), (np.repeat(self.codes, width), columns.ravel()))
        return scipy.sparse.csr_array(entries, shape=(self.count, size * width))

    def pairs(self, tile: Tile) -> Array:
        """Sum an n×n symmetric matrix over the clusters of both rows, (G, G), each tile once."""
        do = "take a kernel of low rank (the approximation 'nystrom')"
        check_fits(16.0 * self.count**2, f"a number for every pair of {self.count} clusters", do)
        found = np.zeros((self.count, self.count))
        cut = blocks(len(self.codes), WIDE_TILE)
        known = []
        for rows in cut:
            clusters, codes = np.unique(self.codes[rows], return_inverse=True)
            known.append((clusters, _membership(codes, len(clusters))))
        for first, rows in enumerate(cut):
            g, of_g = known[first]
            for columns, (h, of_h) in zip(cut[first:], known[first:], strict=True):
                sums = of_h @ (of_g @ tile(rows, columns)).T
                found[np.ix_(h, g)] += sums
                if columns != rows:
                    found[np.ix_(g, h)] += sums.T
        return found


def _membership(codes: Places, count: int) -> Any:
    """Return the membership of rows in clusters, (G, rows) of 0 and 1."""
    n = len(codes)
    return scipy.sparse.csr_array((np.ones(n), (codes, np.arange(n))), shape=(count, n))
