"""Scores: K weighted numbers per row, with mean 0 under the law of the row.

Only this code depends on what an outcome is: scores are a label's entry in a table, the residuals of
all classes, features times residuals, or any function. Forms use their sums: over all rows, for drawn
labels; over clusters, whose signs are drawn; over blocks of rows, which are added.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cached_property
from math import ceil, log2
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from caltest._parallel import added
from caltest._sums import Array, Places, blocks
from caltest.clusters import Clusters
from caltest.laws import Outcomes
from caltest.laws.classes import Bits, likeliest
from caltest.sampling import ROWS

Cells: TypeAlias = Places
ALL = slice(None)


def steps_of(weights: Array) -> Array | None:
    """Return weights in the form that compiled loops take: None if all are 1."""
    return None if (weights == 1.0).all() else weights


class Scores(ABC):
    """Scores s_i(y_i) of n rows: K numbers per row, most of which may be 0."""

    #: Means of the sums under the law, (K,) or one number.
    offset: Any = 0.0

    @property
    @abstractmethod
    def size(self) -> int:
        """Number of sums, K."""

    @abstractmethod
    def sums(self, outcomes: Outcomes, rows: slice = ALL) -> Array:
        """Return Σ_i s_i(y_i) over some rows, (B, K), for their outcomes (B, …)."""

    def by_cluster(self, outcomes: Outcomes, clusters: Clusters) -> Any:
        """Return centred sums by cluster, (G, K), for the observed outcomes (n, …).

        Sums of features are computed by :class:`caltest.forms.low_rank.JointSums` instead.
        """
        raise NotImplementedError


@dataclass(frozen=True, eq=False)
class Table(Scores):
    """s_i(y) = A[i, y] for a table A, one number per row; or w_i A[i, y], plus a constant."""

    entries: Array  #: A, (n, m). Entries of classes with probability 0 may be infinite.
    probs: Array  #: The predictions, (n, m).
    by: Array | None = None  #: w, (n,); None if all are 1.
    plus: float = 0.0  #: Constant that is added for any labels.

    size = 1

    @cached_property
    def finite(self) -> Array:
        """A, with 0 for impossible labels."""
        if self.probs.min() > 0.0 and np.isfinite(self.entries).all():
            return self.entries
        return np.where((self.probs > 0) & np.isfinite(self.entries), self.entries, 0.0)

    @cached_property
    def means(self) -> Array:
        """Mean entry of every row, (n,)."""
        return np.asarray(np.einsum("ik,ik->i", self.probs, self.finite))

    @property
    def offset(self) -> Any:
        """The mean of the sum."""
        return float(self.means.sum())

    def sums(self, outcomes: Outcomes, rows: slice = ALL) -> Array:
        """Sum the entries of the labels."""
        entries = self.entries[rows]
        by = np.ones(len(entries)) if self.by is None else self.by[rows]
        found = np.full((len(outcomes), 1), self.plus)
        if len(outcomes) == 1 and not isinstance(outcomes, Bits):  # faster than importing a loop
            n, m = entries.shape
            found += (by * entries.take(outcomes[0] + np.arange(0, n * m, m))).sum()
            return found
        from caltest.loops import rows as _loops

        if not isinstance(outcomes, Bits):
            _loops.table_sums(entries, by, outcomes, found[:, 0])
            return found
        for draws, words in outcomes:
            _loops.sums_of_bits(entries, by, words, found[draws, 0])
        return found

    def by_cluster(self, outcomes: Outcomes, clusters: Clusters) -> Any:
        """Sum by cluster."""
        return clusters.sums(self.finite[np.arange(len(outcomes)), outcomes] - self.means)[:, None]


@dataclass(frozen=True, eq=False)
class Steps(Scores):
    """s_i(y) = a_i + b_i y for an event y = 0 or 1, in the cell of the row."""

    base: Array  #: a, (n,).
    steps: Array  #: b, (n,).
    cells: Cells  #: The cell of every row, (n,).
    count: int  #: Number of cells K.

    @classmethod
    def of_event(cls, chances: Array, weights: Array, cells: Cells, size: int) -> Steps:
        """Return the residuals w (y − p) of an event, in cells."""
        return cls(-weights * chances, weights, cells, size)

    @property
    def size(self) -> int:
        """Number of cells."""
        return self.count

    @cached_property
    def _without(self) -> Array:
        return np.bincount(self.cells, self.base, self.count).astype(float)

    def sums(self, outcomes: Outcomes, rows: slice = ALL) -> Array:
        """Sum the steps of events, and the rows' values without events."""
        base, steps, cells = self.base[rows], self.steps[rows], self.cells[rows]
        if len(outcomes) == 1:  # faster than importing a compiled loop
            found = np.bincount(cells, steps * outcomes[0], self.count)[None].astype(float)
        else:
            from caltest.loops import rows as _loops

            found = np.zeros((len(outcomes), self.count))
            _loops.cell_sums(outcomes, cells, steps_of(steps), found)
        without = self._without if rows == ALL else np.bincount(cells, base, self.count)
        return np.asarray(found + without)

    def by_cluster(self, outcomes: Outcomes, clusters: Clusters) -> Any:
        """Sum by cluster and cell."""
        return clusters.sums_at(self.cells, self.base + self.steps * outcomes, self.count)


@dataclass(frozen=True, eq=False)
class Residuals(Scores):
    """s_i(y) = w_i (e_y − g_i) in the cell of the row: a number for every cell and class.

    Every class may have cells of its own.
    """

    probs: Array  #: The predictions g, (n, m).
    weights: Array  #: w, (n,).
    cells: Cells  #: The cell of every row, (n,); or of every row for each class, (n, m).
    count: int  #: Number of cells.

    @property
    def size(self) -> int:
        """Number of cells times classes."""
        return self.count * int(self.probs.shape[1])

    @cached_property
    def expected(self) -> Array:
        """Expected counts in every cell, (cells, m)."""
        return self._expected(ALL)

    def _expected(self, rows: slice) -> Array:
        probs, weights = self.probs[rows].T, self.weights[rows]
        cells = np.broadcast_to(self.cells[rows].T, probs.shape)
        found = [np.bincount(c, weights * p, self.count) for c, p in zip(cells, probs, strict=True)]
        return np.stack(found, axis=1)

    def places(self, outcomes: Outcomes, rows: slice = ALL) -> Cells:
        """Return the index of the number that every label (B, n) adds to."""
        cells = self.cells[rows]
        if cells.ndim == 2:
            cells = cells[np.arange(len(cells)), outcomes]
        return np.asarray(cells * self.probs.shape[1] + outcomes)

    def sums(self, outcomes: Outcomes, rows: slice = ALL) -> Array:
        """Count the labels in every cell, less their expectation."""
        cells, weights, m = self.cells[rows], self.weights[rows], self.probs.shape[1]
        expected = self.expected if rows == ALL else self._expected(rows)
        counts = np.zeros((len(outcomes), self.count, m))
        if len(outcomes) == 1 or cells.ndim == 2:  # faster than compiling a loop
            for own, labels in zip(counts, outcomes, strict=True):
                places = self.places(labels[None], rows)[0]
                own[:] = np.bincount(places, weights, self.size).reshape(-1, m)
        else:
            from caltest.loops import rows as _loops

            _loops.bin_counts(outcomes, cells, steps_of(weights), counts)
        return np.asarray(counts.reshape(len(outcomes), -1) - expected.ravel())

    def by_cluster(self, outcomes: Outcomes, clusters: Clusters) -> Any:
        """Sum by cluster, cell and class."""
        own = residuals_of(self.probs, outcomes) * self.weights[:, None]
        return clusters.sums_at(self.cells, own, self.count)


def residuals_of(probs: Array, labels: Outcomes) -> Array:
    """Return D = e_y − g, (n, m)."""
    found = -probs
    found[np.arange(len(found)), labels] += 1.0
    return found


# ------------------------------------------------------------------ features times residuals
#
# For fixed D⁰ and Δ_i = D_i − D⁰_i with one or two entries that are not 0, Σ_i ψ_i ⊗ D_i is a constant
# plus a sum over the entries of the Δ_i. D⁰_i is −g_i, so that Δ_i = e_{y_i}; or, if the model is
# confident enough, e_{r_i} − g_i for the most likely class r_i, so that Δ_i = e_{y_i} − e_{r_i} is 0
# for most rows.


def usual_classes(probs: Array) -> NDArray[np.int32]:
    """Return the most likely class of every row, (n,); −1 for all if most labels are others."""
    if float(np.mean(1.0 - probs.max(axis=1))) < 0.5:
        return likeliest(probs).astype(np.int32)
    return np.full(len(probs), -1, dtype=np.int32)


def fixed_residuals(probs: Array, usual: NDArray[np.int32]) -> Array:
    """Return D⁰, (n, m)."""
    fixed = -probs
    if usual[0] >= 0:
        fixed[np.arange(len(fixed)), usual] += 1.0
    return fixed


_STEPS = 2**13  # most steps; the sum of three fits into two bytes


@dataclass(frozen=True, eq=False)
class RoundedFeatures:
    """Features that are integer multiples of one unit, in pieces that suit compiled loops."""

    pieces: NDArray[np.int16]  #: (C, n, W), padded with 0 beyond F.
    width: int  #: F.
    unit: float
    rows: slice = field(default_factory=lambda: ALL)  #: Selected rows.

    @classmethod
    def of(cls, features: Array, largest: float) -> RoundedFeatures:
        """Round features (n, F) whose values are at most ``largest``."""
        from caltest.loops.kernels import WIDTH

        n, width = features.shape
        unit, count = 2.0 ** ceil(log2(largest)) / _STEPS, -(-width // WIDTH)
        multiples = features / unit
        np.rint(multiples, out=multiples)
        np.clip(multiples, -_STEPS, _STEPS, out=multiples)
        padded = np.zeros((n, count * WIDTH), dtype=np.int16)
        padded[:, :width] = multiples
        pieces = padded.reshape(n, count, WIDTH).transpose(1, 0, 2)
        return cls(np.ascontiguousarray(pieces), width, unit)

    @property
    def shape(self) -> tuple[int, int]:
        """(n, F)."""
        return self.pieces[0, self.rows].shape[0], self.width

    def part(self, rows: slice) -> RoundedFeatures:
        """Return the features of some rows, in the form that is summed."""
        return replace(self, rows=rows)

    def __getitem__(self, rows: Any) -> Array:
        """Return the features of some rows."""
        multiples = self.pieces[:, self.rows][:, rows].transpose(1, 0, 2)
        return np.asarray(multiples.reshape(len(multiples), -1)[:, : self.width] * self.unit)


@dataclass(frozen=True, eq=False)
class Entries:
    """The non-zero entries of the Δ_i of B label vectors, sorted by class in tiles of rows.

    The key of an entry is twice the class, plus 1 if the entry is −1.
    """

    rows: NDArray[np.unsignedinteger]  #: In the tile, (B, 2n); a tile's begin at twice its start.
    ends: NDArray[np.int32]  #: Starts by key, where the key before ends, (B, tiles, 2m + 1).
    size: int  #: Rows of a tile.

    @classmethod
    def of(cls, labels: Outcomes, usual: NDArray[np.int32], m: int, size: int) -> Entries:
        """Sort labels (B, n) of m classes."""
        from caltest.loops import kernels as _kernel_loops

        draws, n = labels.shape
        rows = np.empty((draws, 2 * n), dtype=np.uint16)
        ends = np.empty((draws, -(-n // size), 2 * m + 1), dtype=np.int32)
        if labels.dtype == np.intp:  # observed labels; saves compiling for another type
            labels = labels.astype(np.uint8 if m <= 2**8 else np.uint16 if m <= 2**16 else np.uint32)
        _kernel_loops.sort_by_class(labels, usual, size, rows, ends)
        return cls(rows, ends, size)

    def of_tile(self, rows: slice) -> tuple[Any, Any]:
        """Return the rows and their ends for one tile."""
        return self.rows[:, 2 * rows.start : 2 * rows.stop], self.ends[:, rows.start // self.size]


@dataclass(frozen=True, eq=False)
class FeatureResiduals(Scores):
    """s_i(y) = ψ_i ⊗ (e_y − g_i), and one more row that begins with numbers of its own."""

    probs: Array  #: The predictions g, (n, m).
    features: Any  #: Ψ, (n, F), read some rows at a time.
    owns: tuple[Callable[[slice, Any], Table], ...]  #: Take rows and their features; at most F.

    @property
    def shape(self) -> tuple[int, int]:
        """(m + 1, F)."""
        return int(self.probs.shape[1]) + 1, int(self.features.shape[1])

    @property
    def size(self) -> int:
        """(m + 1) F."""
        return self.shape[0] * self.shape[1]

    @cached_property
    def usual(self) -> NDArray[np.int32]:
        """The most likely classes."""
        return usual_classes(self.probs)

    @cached_property
    def expected(self) -> Array:
        """Sum of the fixed residuals times features over all rows, (m, F)."""
        cut = blocks(len(self.probs), ROWS)
        fixed = (fixed_residuals(self.probs[r], self.usual[r]).T @ self.features[r] for r in cut)
        return np.asarray(sum(fixed))

    @cached_property
    def all_owns(self) -> tuple[Table, ...]:
        """The tables for all rows."""
        return tuple(own(ALL, self.features) for own in self.owns)

    def sums(self, outcomes: Outcomes, rows: slice = ALL) -> Array:
        """Sum the features of the rows by label, less their expectation."""
        from caltest.loops import kernels as _kernel_loops

        (m, f), usual, whole = self.shape, self.usual[rows], rows == ALL
        plain = isinstance(self.features, np.ndarray)
        if whole and not plain and not isinstance(self.features, RoundedFeatures):
            # Features are computed once for all uses, some rows at a time.
            cut = blocks(len(self.probs), ROWS)
            return added((self.sums(outcomes[:, own], own) for own in cut), np.add)
        part = self.features[rows] if plain else self.features.part(rows)
        rounded = isinstance(part, RoundedFeatures)
        size = ROWS if rounded else int(np.clip(32 * (m - 1), 512, ROWS))
        entries = Entries.of(outcomes, usual, m - 1, size)
        sums = np.zeros((len(outcomes), m, f))
        if rounded:
            steps = np.zeros((len(outcomes), m - 1, len(part.pieces), part.pieces.shape[2]))
            first, of_tiles = part.rows.start or 0, (entries.rows, entries.ends, size)
            _kernel_loops.steps_by_class(part.pieces, first, *of_tiles, part.unit, steps)
            sums[:, :-1] = steps.reshape(len(outcomes), m - 1, -1)[:, :, :f]
        else:
            _kernel_loops.sums_by_class(part, entries.rows, entries.ends, size, sums)
        fixed = self.expected if whole else fixed_residuals(self.probs[rows], usual).T @ part[:]
        sums[:, :-1] += fixed
        owns = self.all_owns if whole else (own(rows, part[:]) for own in self.owns)
        for place, own in enumerate(owns):
            sums[:, -1, place] = own.sums(outcomes)[:, 0]
        return sums.reshape(len(outcomes), -1)


# ------------------------------------------------------------------ any function


@dataclass(frozen=True, eq=False)
class Function(Scores):
    """Any function of outcomes with mean 0 under the law."""

    function: Callable[[Outcomes], Array]  #: Takes outcomes (B, n, …), returns (B, n, K).
    weights: Array  #: w, (n,).
    size: int = 1  #: K.

    def sums(self, outcomes: Outcomes, rows: slice = ALL) -> Array:
        """Sum the function's values over all rows; it cannot take some."""
        return np.asarray(np.einsum("i,bik->bk", self.weights, self.function(outcomes)))

    def by_cluster(self, outcomes: Outcomes, clusters: Clusters) -> Any:
        """Sum by cluster."""
        return clusters.sums(self.weights[:, None] * self.function(outcomes[None])[0])
