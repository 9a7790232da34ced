"""The witness at all places as a function of the labels: its standardised values, and its draws."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from caltest._parallel import ALONE, Workers
from caltest._sampling import LabelSampler
from caltest._tiles import Array, blocks
from caltest.localisation.places import Places
from caltest.multiplicity import StepDown

_ROWS = 4096  # of a tile
_HELD = 2**26  # weights kept in memory, 512 MiB; more are computed anew for every block of draws
_TOGETHER = 4  # blocks of draws for which they are computed together
_SUMS = 2**21  # sums of drawn labels in one pass over the weights
_FLOOR = 1.0  # the square of the weight of a row at the place


@dataclass(frozen=True, eq=False)
class Field:
    """Weighted sums over the rows near every place. L places, m classes.

    Attributes
    ----------
    probs
        (n, m) predictions.
    places
        Where.
    held
        (n, L) weights, or None: computed anew.
    totals
        (L,) Σ_j k, with the weight of a place at itself taken as 1.
    squares
        (L,) Σ_j k².
    stated
        (L, m) Σ_j k g_j.
    variances
        (L, m) Σ_j k² g_j (1 − g_j): of the sums of residuals, given the predictions, under H0.
    """

    probs: Array
    places: Places
    held: Array | None
    totals: Array
    squares: Array
    stated: Array
    variances: Array

    @classmethod
    def of(cls, probs: Array, places: Places, workers: Workers = ALONE) -> Field:
        """Compute weights and sums, a tile of rows at a time."""
        n, m, count = *probs.shape, len(places)
        held = np.empty((n, count)) if n * count <= _HELD else None
        totals, squares = np.zeros(count), np.zeros(count)
        stated, variances = np.zeros((count, m)), np.zeros((count, m))
        tiles = blocks(n, _ROWS)
        tasks = [(probs[rows], held is not None) for rows in tiles]
        parts = workers.map(partial(_tile, places), tasks, "weights")
        for rows, (weights, *sums) in zip(tiles, parts, strict=True):
            if held is not None:
                held[rows] = weights
            for whole, part in zip((totals, squares, stated, variances), sums, strict=True):
                whole += part
        return cls(probs, places, held, totals, squares, stated, variances)

    @property
    def spreads(self) -> Array:
        """(L, m) what sums of residuals are divided by: standard deviations, with the floor."""
        return np.sqrt(self.variances + _FLOOR)

    @property
    def effective_rows(self) -> Array:
        """(L,) (Σ k)² / Σ k²: as many rows of one weight would tell as much."""
        found = np.zeros_like(self.totals)
        return np.divide(self.totals**2, self.squares, out=found, where=self.squares > 0.0)

    def labelled(self, labels: NDArray[np.integer[Any]]) -> Array:
        """Return (B, m, L) weights summed over the rows with each label, for (B, n) labels.

        B·m·L numbers are held; B n L additions, however many classes there are.
        """
        draws, (n, m) = len(labels), self.probs.shape
        sums = np.zeros((draws * m, len(self.places)))
        offsets = np.arange(draws, dtype=np.int64) * m
        for rows in blocks(n, _ROWS):
            size = rows.stop - rows.start
            weights = self._weights(rows)
            where = (labels[:, rows].T + offsets).ravel()
            ends = np.arange(0, size * draws + 1, draws)
            member = sparse.csc_array((np.ones(len(where)), where, ends), shape=(len(sums), size))
            sums += member @ weights
        return sums.reshape(draws, m, -1)

    def _weights(self, rows: slice) -> Array:
        return self.places.weights(self.probs[rows]) if self.held is None else self.held[rows]

    def standardised(self, labels: NDArray[np.integer[Any]]) -> Array:
        """Return (B, L, m') z for (B, n) labels; of two classes the second alone, m' = 1."""
        sums = self.labelled(labels).transpose(0, 2, 1)
        sums = (sums - self.stated) / self.spreads
        return sums[:, :, 1:] if self.probs.shape[1] == 2 else sums

    def exceedances(
        self, observed: StepDown, sampler: LabelSampler, n_draws: int, workers: Workers
    ) -> NDArray[np.int64]:
        """Count the draws that reach the observed |z|, (H,), by step-down maxima."""
        size = sampler.block * (1 if self.held is not None else _TOGETHER)
        tasks = [(part.start, part.stop) for part in blocks(n_draws, size)]
        count = partial(_count, self, observed, sampler)
        total = np.zeros(len(observed.observed), dtype=np.int64)
        for counts in workers.map(count, tasks, "label draws"):
            total += counts
        return total


def _tile(places: Places, probs: Array, keep: bool) -> tuple[Array | None, Array, Array, Array, Array]:
    weights = places.weights(probs)
    squared = weights**2
    return (
        weights if keep else None,
        weights.sum(axis=0),
        squared.sum(axis=0),
        weights.T @ probs,
        squared.T @ (probs * (1.0 - probs)),
    )


def _count(
    field: Field, observed: StepDown, sampler: LabelSampler, start: int, stop: int
) -> NDArray[np.int64]:
    labels = sampler.draw(start, stop)
    # Weights that are not held are computed for every part: fewer and larger ones, then.
    fitting = max(1, (_SUMS if field.held is not None else _HELD) // field.stated.size)
    counts = np.zeros(len(observed.observed), dtype=np.int64)
    for draws in blocks(stop - start, fitting):
        z = field.standardised(labels[draws])
        counts += observed.count(np.abs(z).reshape(len(z), -1))
    return counts
