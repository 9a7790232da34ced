"""Pairwise forms: T = Σ_ij W_ij ⟨D_i, D_j⟩, and its Gram matrix, through tiles."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property, partial
from typing import ClassVar, NamedTuple

import numpy as np
from scipy.linalg import eigh, helmert

from caltest._parallel import ALONE, Workers
from caltest._tiles import TILE, WIDE_TILE, Tile, blocks, sum_over_tiles
from caltest.forms._quadratic_moments import diagonal_table, quadratic_moments
from caltest.forms.base import ROUNDING, Array, Form, Labels, Moments, TailBound, effective_surprises
from caltest.forms.weights import Term

_COLUMNS = 2048  # columns of residuals a tile is multiplied with at a time
_ALONE_BELOW = 1e7  # pairs times draws; less is done sooner than workers start
_SAVING_UP_TO = 16  # classes; above, dropping one of the m coordinates saves too little


class _Coordinates(NamedTuple):
    """Residuals in coordinates: ⟨D_i, A D_j⟩ = (H[y_i] − (GH)_i) · (H[y_j] − (GH)_j)."""

    of_class: Array  # H, (m, d)
    of_mean: Array  # G H, (n, d)

    def residuals(self, labels: Labels, rows: slice) -> Array:
        """Return (rows, B·d) coordinates for (B, n) labels."""
        drawn = self.of_class[labels[:, rows].T]
        drawn -= self.of_mean[rows, None, :]
        return drawn.reshape(len(drawn), -1)


@dataclass(frozen=True, eq=False)
class Pairwise(Form):
    """T = scale · Σ_ij D_iᵀ M_ij D_j with M_ij = Σ_l W_l,ij A_l, over i ≠ j or over all pairs.

    Attributes
    ----------
    probs
        The predictions, (n, m).
    kernel_terms
        The summands of M.
    scale
        Factor of the sum.
    diagonal
        Count the pairs i = j.
    """

    probs: Array
    kernel_terms: tuple[Term, ...]
    scale: float
    diagonal: bool

    parallel_inside: ClassVar[bool] = True

    @cached_property
    def _coordinates(self) -> tuple[_Coordinates, ...]:
        factors = [_factor(term.matrix, self.probs.shape[1]) for term in self.kernel_terms]
        return tuple(_Coordinates(factor, self.probs @ factor) for factor in factors)

    @property
    def resolution(self) -> float:
        """Rounding of the sum over all pairs."""
        sizes = [
            np.abs(term.weights.diagonal()).max()
            * (1.0 if term.matrix is None else np.abs(term.matrix).max())
            for term in self.kernel_terms
        ]
        return ROUNDING * abs(self.scale) * len(self.probs) ** 2 * float(sum(sizes))

    def evaluate(self, labels: Labels, workers: Workers = ALONE) -> Array:
        """Return the (B,) values for ``labels`` (B, n)."""
        tile = partial(self._tile_sums, labels)
        n, draws = len(self.probs), len(labels)
        size = WIDE_TILE if draws > 1 else TILE
        hands = workers if draws * float(n) ** 2 > _ALONE_BELOW else ALONE
        return self.scale * sum_over_tiles(
            tile, n, hands, size=size, description="label draws" if draws > 2 else "observed value"
        )

    def _tile_sums(self, labels: Labels, rows: slice, columns: slice) -> Array:
        total = np.zeros(len(labels))
        for term, coordinates in zip(self.kernel_terms, self._coordinates, strict=True):
            weights = term.weights(rows, columns)
            if rows == columns and not self.diagonal:
                np.fill_diagonal(weights, 0.0)
            d = coordinates.of_class.shape[1]
            for draws in blocks(len(labels), max(1, _COLUMNS // d)):
                right = coordinates.residuals(labels[draws], columns)
                left = right if rows == columns else coordinates.residuals(labels[draws], rows)
                sums = np.einsum("ic,ic->c", left, weights @ right)
                total[draws] += sums.reshape(-1, d).sum(axis=1)
        return total

    def moments(self, workers: Workers = ALONE) -> Moments:
        """Return mean, variance and skewness under H0, given the predictions."""
        linear = diagonal_table(self.probs, self.kernel_terms) if self.diagonal else None
        cumulants = quadratic_moments(self.probs, self.kernel_terms, linear, workers)
        return Moments.of_cumulants(*cumulants, self.surprises).scaled(self.scale)

    @property
    def surprises(self) -> float:
        """Return the effective number of unlikely labels, or of pairs of equal ones if that is less."""
        lengths = np.einsum("ik,ik->i", self.probs, self.probs)
        labels = effective_surprises(1.0 - lengths, 1.0 - self.probs.max(axis=1))
        sums = self.probs.sum(axis=0)
        return min(labels, 0.5 * float(sums @ sums - lengths.sum()))


@dataclass(frozen=True, eq=False)
class BoundedPairwise(Pairwise):
    """A pairwise form with a distribution-free bound.

    Attributes
    ----------
    tail_bound
        What the bound needs.
    """

    tail_bound: TailBound


@dataclass(frozen=True, eq=False)
class UStatistic(BoundedPairwise):
    """The mean of h_ij over the pairs i ≠ j: a pairwise form with a Gram matrix to resample."""

    def gram(self, labels: Labels) -> Tile:
        """Return h_ij = D_iᵀ M_ij D_j, the diagonal included, as a tile function."""
        everything = slice(0, len(self.probs))
        residuals = [c.residuals(labels[None, :], everything) for c in self._coordinates]
        return partial(_gram_tile, self.kernel_terms, residuals)


def _gram_tile(terms: tuple[Term, ...], residuals: list[Array], rows: slice, columns: slice) -> Array:
    def summands() -> Iterator[Array]:
        for term, residual in zip(terms, residuals, strict=True):
            tile = term.weights(rows, columns)
            tile *= residual[rows] @ residual[columns].T
            yield tile

    return np.asarray(sum(summands()))


def _factor(matrix: Array | None, m: int) -> Array:
    """Return H (m, d) with ⟨D, A D'⟩ = ⟨HᵀD, HᵀD'⟩ for residuals, whose entries sum to 0.

    Only the part of A in the subspace of vectors with sum 0 counts, so d ≤ m − 1.
    """
    if matrix is None and m > _SAVING_UP_TO:
        return np.eye(m)
    basis = np.ascontiguousarray(helmert(m).T)
    if matrix is None:
        return basis
    values, vectors = eigh(basis.T @ matrix @ basis)
    kept = values > 1e-14 * max(float(values[-1]), 0.0)
    if not kept.any():  # A acts on constants only: h is 0
        return np.zeros((m, 1))
    return np.asarray(basis @ vectors[:, kept] * np.sqrt(values[kept]))
