"""Pairs: sums over all pairs of rows, or over some.

With fixed D⁰ and Δ_i = D_i − D⁰_i of one entry or two,

    ⟨D_i, D_j⟩ = ⟨Δ_i, Δ_j⟩ + ⟨Δ_i, D⁰_j⟩ + ⟨D⁰_i, Δ_j⟩ + ⟨D⁰_i, D⁰_j⟩,

and only the first term depends on both labels: of Σ_ij W_ij ⟨D_i, D_j⟩ for many label vectors it is
what is left to do for each, over the pairs of rows of one class. D⁰_i is −g_i, so that Δ_i = e_{y_i};
or, where the model is sure enough, e_{r_i} − g_i for the most likely class r_i, so that
Δ_i = e_{y_i} − e_{r_i} is 0 for most rows. Where W is the exponential of distances on a line, the sum
is one pass along the line.
"""

# ruff: noqa: D102 -- a method that overrides another is documented where it is first defined.

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from caltest._parallel import ALONE, Workers
from caltest._tiles import (
    TILE,
    Array,
    Tile,
    blocks,
    multiply,
    sum_over_strips,
    sum_over_tiles,
)
from caltest._work import Work
from caltest.clusters import Clusters
from caltest.forms._pair_moments import chain_moments, diagonal_table, quadratic_moments
from caltest.forms.base import (
    CERTAIN,
    ROUNDING,
    HasLeadingSum,
    HasMoments,
    Labels,
    Moments,
    TailBound,
    effective_surprises,
)
from caltest.forms.signs import OverPairs, Signed, chained, signed_chain, with_own_pairs
from caltest.forms.sums import LinearSum
from caltest.forms.weights import (
    Chain,
    KernelWeights,
    Term,
    without_diagonal,
)
from caltest.kernels.bandwidth import GaussianTiles
from caltest.sampling import DRAWS, generator
from caltest.scores import Entries, Table, fixed_residuals, residuals_of, usual_classes

# ------------------------------------------------------------------ many label vectors


_HELD = 2**17  # numbers that stay in the second-level cache
_SORTED = 2**23  # entries held at a time, for all draws of a pass: some 50 MB


@dataclass(frozen=True, eq=False)
class _LabelSums:
    """The sums of W_ij Δ_iᵀ A Δ_j over a strip for B label vectors; tiles beside the diagonal twice."""

    tile: Tile  # W, a block at a time
    matrix: Array | None  # A
    labels: Labels  # (B, n)
    usual: NDArray[np.int32]
    m: int

    @cached_property
    def _entries(self) -> Entries:
        return Entries.of(self.labels, self.usual, self.m, TILE)

    def __call__(self, rows: slice, columns: list[slice]) -> Array:
        from caltest.loops import kernels as _kernel_loops

        total, sums = np.zeros(len(self.labels)), np.empty(len(self.labels))
        own = self._entries.of_tile(rows)
        for block in columns:
            weights, other = self.tile(rows, block), self._entries.of_tile(block)
            if self.matrix is None:
                _kernel_loops.pair_sums(weights, *own, *other, sums)
            else:
                _kernel_loops.matrix_pair_sums(weights, *own, *other, self.matrix, sums)
            total += sums if block == rows else 2.0 * sums
        return total


# ------------------------------------------------------------------ pairwise


_ALONE_BELOW = 1e7  # pairs times draws and classes; less is done sooner than workers start
_FEW = 64  # classes, up to which products with residuals take less time than looking labels up
_ROUNDS = 4  # of the power method
_LOOKED_AT, _LOOKED_THROUGH = 512, 2**25  # rows whose share of the variance is computed; numbers
# What rows that carry the variance count, and pairs of them: 6 rows, or 30 pairs, are as few as 10
# unlikely labels.
_OF_ROWS, _OF_PAIRS = 1.6, 0.33


@dataclass(frozen=True, eq=False)
class Pairwise(OverPairs, HasMoments, HasLeadingSum):
    """T = scale · Σ_ij D_iᵀ M_ij D_j with M_ij = Σ_l W_l,ij A_l, over i ≠ j or over all pairs."""

    probs: Array  #: The predictions, (n, m).
    kernel_terms: tuple[Term, ...]  #: The summands of M.
    scale: float
    diagonal: bool  #: Count the pairs i = j.
    tail_bound: TailBound | None = None  #: A distribution-free bound.

    parallel_inside: ClassVar[bool] = True

    @property
    def resolution(self) -> float:
        """Rounding of the sum over all pairs."""
        sizes = [
            term.weights.size() * (1.0 if term.matrix is None else np.abs(term.matrix).max())
            for term in self.kernel_terms
        ]
        return ROUNDING * abs(self.scale) * float(sum(sizes))

    def work(self, draws: int) -> Work:
        n, m = self.probs.shape
        if self._chain is not None:
            return {"label": float(draws) * n}
        pairs = len(self.kernel_terms) * 0.5 * float(n) ** 2
        return {"coordinate": pairs * m, "pair": pairs * draws}

    def of_labels(self, labels: Labels, workers: Workers = ALONE) -> Array:
        n, m = self.probs.shape
        if self._chain is not None:
            return self.scale * self._of_chain(self._chain, labels, workers)
        hands = workers if len(labels) * float(n) ** 2 * m > _ALONE_BELOW else ALONE
        if len(labels) == 1:
            y = labels[0].astype(np.intp)
            one = partial(self._tile_sum_of_many, y)
            if m <= _FEW:
                one = partial(self._tile_sum, residuals_of(self.probs, y))
            return self.scale * sum_over_tiles(one, n, hands, description="observed value")[None]
        total, usual = np.zeros(len(labels)), usual_classes(self.probs)
        for term in self.kernel_terms:
            total += self._linear_part(term, usual, hands, labels)
        for draws in blocks(len(labels), max(1, _SORTED // n)):
            for weights, matrix in self.kernel_terms:
                sums = _LabelSums(self._counted(weights), matrix, labels[draws], usual, m)
                total[draws] += sum_over_strips(sums, n, hands, size=TILE, description="label draws")
        return self.scale * total

    def signed(self, labels: Labels, clusters: Clusters) -> Signed:
        residuals, scale = residuals_of(self.probs, labels), self.scale
        if not self.diagonal:  # the mean is over pairs of different clusters
            scale *= clusters.share_between
        if self._chain is None:
            images = [residuals if A is None else residuals @ A for _, A in self.kernel_terms]
            tile = partial(_gram_tile, self.kernel_terms, images, residuals)
            return with_own_pairs(clusters.pairs(tile), scale, self.diagonal, self.resolution)
        order, decay, places = self._chain.order, self._chain.decay, self._chain.places
        d, codes = self._along(self._chain, labels[None])[0], clusters.codes[order]
        (own,) = chained(d[None], places, codes, clusters.count)
        constant = 2.0 * scale * float(own.sum()) * self.diagonal
        return signed_chain(d, codes, decay, own, 2.0 * scale, constant, self.resolution)

    @property
    def is_u_statistic(self) -> bool:  # type: ignore[override]
        """Whether it is a mean over pairs i ≠ j of equal weight."""
        return self.tail_bound is not None and not self.diagonal

    def gram(self, labels: Labels) -> Tile:
        residuals = residuals_of(self.probs, labels.astype(np.intp))
        images = [residuals if A is None else residuals @ A for _, A in self.kernel_terms]
        return partial(_gram_tile, self.kernel_terms, images, residuals)

    def squares_of(self, labels: Labels, clusters: Clusters) -> Array:
        if self._chain is None:
            return super().squares_of(labels, clusters)
        d, codes = self._along(self._chain, labels), clusters.codes[self._chain.order]
        return 2.0 * chained(d, self._chain.places, codes, clusters.count).clip(min=0.0)

    def images(self, rows: NDArray[np.intp], residuals: Array) -> Array:
        found = np.zeros(residuals.shape)
        for some in blocks(rows.shape[1], max(1, _SORTED // rows.size)):
            pairs = np.broadcast_arrays(rows[:, some, None], rows[:, None, :])
            for weights, matrix in self.kernel_terms:
                seen = residuals if matrix is None else residuals @ matrix
                found[:, :, some] += weights.at(*pairs) @ seen
        return found

    def _along(self, chain: Chain, labels: Labels) -> Array:
        """Return residuals along the line, as rows count, (B, n)."""
        residuals = np.asarray(labels[:, chain.order] - self.probs[chain.order, 1])
        return residuals if chain.steps is None else residuals * chain.steps

    def _counted(self, tile: Tile) -> Tile:
        """Return the tiles of the pairs that count."""
        return tile if self.diagonal else without_diagonal(tile)

    def _linear_part(
        self, term: Term, usual: NDArray[np.int32], workers: Workers, labels: Labels
    ) -> Array:
        """Return what depends on one label at most of a term, (B,): W D⁰ A is multiplied once."""
        (weights, matrix), fixed = term, fixed_residuals(self.probs, usual)
        images = fixed if matrix is None else fixed @ matrix
        table = multiply(self._counted(weights), images, workers)
        constant = float(np.vdot(fixed, table))
        if usual[0] >= 0:
            table -= table[np.arange(len(table)), usual][:, None]
        return constant + 2.0 * Table(table, self.probs).sums(labels)[:, 0]

    @property
    def _chain(self) -> Chain | None:
        (weights, matrix), *others = self.kernel_terms
        if others or matrix is not None:
            return None
        return weights.chain

    def _of_chain(self, chain: Chain, labels: Labels, workers: Workers) -> Array:
        """Return the sums of two classes, where ⟨D_i, D_j⟩ = 2 d_i d_j for d = y − p."""
        scores = self.probs[:, 1]
        hands = workers if labels.size > _ALONE_BELOW else ALONE
        tasks = [(labels[draws],) for draws in blocks(len(labels), DRAWS)]
        work = partial(chain.sums, scores)
        sums = 4.0 * np.concatenate(list(hands.map(work, tasks, "label draws")))
        if self.diagonal:
            own = 2.0 * self.probs[:, ::-1] ** 2
            if chain.steps is not None:
                own *= self.kernel_terms[0].weights.diagonal()[:, None]
            sums += Table(own, self.probs).sums(labels)[:, 0]
        return np.asarray(sums)

    def _tile_sum(self, residuals: Array, rows: slice, columns: slice) -> float:
        """Sum over the pairs of a tile, for one label vector, by its residuals (n, m)."""
        total = 0.0
        d, e = residuals[rows], residuals[columns]
        for weights, matrix in self.kernel_terms:
            block = weights(rows, columns)
            if rows == columns and not self.diagonal:
                np.fill_diagonal(block, 0.0)
            total += float(np.vdot(d, block @ (e if matrix is None else e @ matrix)))
        return total

    def _tile_sum_of_many(self, labels: Labels, rows: slice, columns: slice) -> float:
        """Do the same of many classes: with the inner products that a Gaussian kernel is made of."""
        total = 0.0
        g, h, y, z = self.probs[rows], self.probs[columns], labels[rows], labels[columns]
        for weights, matrix in self.kernel_terms:
            # Σ W_ij (1[y_i = y_j] − g_i[y_j] − g_j[y_i] + ⟨g_i, g_j⟩)
            images = h if matrix is None else h @ matrix
            products = g @ images.T
            tile = weights.tile if isinstance(weights, KernelWeights) else None
            if isinstance(tile, GaussianTiles) and tile.points is self.probs and matrix is None:
                block = tile.of_products(products.copy(), rows, columns)  # made of them too
            else:
                block = weights(rows, columns)
            if rows == columns and not self.diagonal:
                np.fill_diagonal(block, 0.0)
            products -= np.take(g if matrix is None else g @ matrix, z, axis=1)
            products -= np.take(images, y, axis=1).T
            products += y[:, None] == z if matrix is None else matrix[y[:, None], z]
            total += float(np.vdot(block, products))
        return total

    def moments(self, workers: Workers = ALONE) -> Moments:
        linear = diagonal_table(self.probs, self.kernel_terms) if self.diagonal else None
        if self._chain is not None:
            cumulants = chain_moments(self._chain, self.probs, linear)
        else:
            cumulants = quadratic_moments(self.probs, self.kernel_terms, linear, workers)
        return Moments.of_cumulants(*cumulants, self.surprises).scaled(self.scale)

    def leading(self, workers: Workers = ALONE) -> LinearSum:
        """By the power method."""

        def images(vectors: Array) -> Array:
            products = (
                multiply(weights, vectors if matrix is None else vectors @ matrix, workers)
                for weights, matrix in self.kernel_terms
            )
            return np.asarray(sum(products))

        return leading_sum(self.probs, images)

    @cached_property
    def surprises(self) -> float:
        """Return the effective number of unlikely labels, or of pairs of equal ones if that is less.

        Of all labels, and of those in the rows that carry the variance: a narrow kernel may leave few
        of these, or few pairs, whatever the others are.
        """
        lengths = np.einsum("ik,ik->i", self.probs, self.probs)
        unlike = 1.0 - self.probs.max(axis=1)
        labels = effective_surprises(1.0 - lengths, unlike)
        sums = self.probs.sum(axis=0)
        found = min(labels, 0.5 * float(sums @ sums - lengths.sum()))
        rows, shares, squares, stands_for = self._shares
        # A row that stands for w rows is w rows of that share: w u unlikely labels, not one of w s.
        carrying = effective_surprises(stands_for * shares, stands_for * unlike[rows])
        pairs = float(stands_for @ shares) ** 2 / max(2.0 * float(stands_for @ squares), CERTAIN)
        return float(min(found, _OF_ROWS * carrying, _OF_PAIRS * pairs))

    @cached_property
    def _shares(self) -> tuple[NDArray[np.intp], Array, Array, Array]:
        """Return rows, Σ_j s_ij and Σ_j s_ij² of each, and how many rows each stands for.

        s_ij = W_ij² tr(Σ_i Σ_j); matrices A_l count as the identity. All rows, or so many that are
        drawn by their own variance.
        """
        g, n = self.probs, len(self.probs)
        most = int(np.clip(_LOOKED_THROUGH // g.size, 32, _LOOKED_AT))
        own = 1.0 - np.einsum("ik,ik->i", g, g)
        rows, stands_for = np.arange(n), np.ones(n)
        uncertain = int(np.count_nonzero(own > 0.0))
        if n > most and uncertain > 0:
            size = min(most, uncertain)
            rows = np.sort(generator(0).choice(n, size, replace=False, p=own / own.sum()))
            stands_for = (own.sum() / (size * own[rows])).clip(min=1.0)
        shares, squares = np.empty(len(rows)), np.empty(len(rows))
        second = g * g
        for part in blocks(len(rows), max(1, _HELD // n)):
            some = rows[part]
            products = g[some] @ g.T
            each = products - g[some] @ second.T - second[some] @ g.T + products**2
            weights: Any = sum(term.weights.whole_rows(some) ** 2 for term in self.kernel_terms)
            each *= weights
            each[np.arange(len(some)), some] = 0.0
            shares[part], squares[part] = each.sum(axis=1), np.einsum("ij,ij->i", each, each)
        largest = float(shares.max()) or 1.0  # what follows has no unit
        return rows, (shares / largest).clip(min=0.0), squares / largest**2, stands_for


def leading_sum(probs: Array, images: Callable[[Array], Array]) -> LinearSum:
    """Return Σ_i ⟨a_i, D_i⟩, a the leading direction of V → M (ΣV), (ΣV)_i = g_i∘v_i − g_i (g_i·v_i).

    It is asked for where one direction carries nearly all of the variance, so that few rounds do.
    ``images`` takes V, (n, m), to MV.
    """
    vectors = np.zeros_like(probs)
    vectors[:, np.sum(probs * (1.0 - probs), axis=0).argmax()] = 1.0
    for _ in range(_ROUNDS):
        spread = probs * vectors
        spread -= probs * spread.sum(axis=1, keepdims=True)
        vectors = images(spread)
        size = np.abs(vectors).max()
        if size == 0.0:
            break
        vectors /= size
    return LinearSum(vectors, probs)


def _gram_tile(
    terms: tuple[Term, ...], images: list[Array], residuals: Array, rows: slice, columns: slice
) -> Array:
    tiles = (
        term.weights(rows, columns) * (image[rows] @ residuals[columns].T)
        for term, image in zip(terms, images, strict=True)
    )
    return np.asarray(sum(tiles))
