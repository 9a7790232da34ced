"""Kernels of low rank: sums of features of the rows, their squares, and what is known of these."""

# ruff: noqa: D102 -- a method that overrides another is documented where it is first defined.

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, partial

import numpy as np
from numpy.typing import NDArray

from caltest._parallel import ALONE, Workers, added
from caltest._tiles import Array, blocks
from caltest._work import Work
from caltest.clusters import Clusters
from caltest.forms._pair_moments import IdentitySums, diagonal_table
from caltest.forms.base import ROUNDING, HasLeadingSum, HasMoments, Labels, Moments
from caltest.forms.pairs import Pairwise, leading_sum
from caltest.forms.signs import (
    JointSums,
    OverPairs,
    Signed,
    signed_sums,
    squared_norms,
    with_own_pairs,
)
from caltest.forms.sums import ClusterSums, LinearSum, Sums
from caltest.forms.weights import ComputedFeatures, Features, LowRankWeights, Term, longest
from caltest.kernels.bandwidth import fixed_order
from caltest.sampling import DRAWS, ROWS, generator
from caltest.scores import (
    ALL,
    Entries,
    FeatureResiduals,
    Table,
    fixed_residuals,
    residuals_of,
)

# ------------------------------------------------------------------ feature squares


_HELD = 2**22  # sums of features held at a time: 32 MiB
_STAYING = 2**17  # sums of a draw that stay in the second-level cache, while rows are added
_MOST_ROWS = 2**16  # whose numbers two bytes tell apart
_USUAL = 1000  # draws
_MOST_HELD = 2**25  # numbers of clusters: 256 MiB


@dataclass(frozen=True, eq=False)
class FeatureSquares(OverPairs, HasMoments, HasLeadingSum, Sums):
    """T = scale · Σ_ij ⟨ψ_i, ψ_j⟩ D_iᵀ A D_j over all pairs, or over those with i ≠ j.

    Over all pairs it is the squared norm of Σ_i ψ_i ⊗ D_i in the metric A: the features are summed by
    label, and what the predictions lead to expect is subtracted. A draw of the labels costs O(nF).
    """

    probs: Array  #: The predictions, (n, m).
    features: Features  #: Ψ, (n, F), which depend on the predictions only.
    matrix: Array | None = None  #: A, (m, m), positive semi-definite; None is the identity.
    scale: float = 1.0
    diagonal: bool = True  #: Count the pairs i = j.
    whole: float | None = None  #: Number of all rows, where these are only some of them, or weight.
    #: The class of every feature whose residuals alone count, (F,), over all pairs; None: all classes.
    targets: NDArray[np.intp] | None = None

    @cached_property
    def scores(self) -> FeatureResiduals:
        """Features times residuals, and beside them what the pairs i = j add."""
        return FeatureResiduals(self.probs, self.features, None if self.diagonal else self._own_table)

    def _own_table(self, rows: slice, features: Array) -> Table:
        """Return what the pairs i = j of some rows add."""
        probs = self.probs[rows]
        if rows != ALL or isinstance(self.features, ComputedFeatures):
            return Table(diagonal_table(probs, (Term(LowRankWeights(features), self.matrix),)), probs)
        return Table(self._own, probs)

    def work(self, draws: int) -> Work:
        labels = float(draws) * len(self.probs)
        return {"label": labels, "feature": labels * self.features.shape[1]}

    @cached_property
    def pairs(self) -> Pairwise:
        """The same form as a sum over pairs."""
        term = Term(LowRankWeights(self.features), self.matrix)
        return Pairwise(self.probs, (term,), scale=self.scale, diagonal=self.diagonal)

    @cached_property
    def resolution(self) -> float:
        """Rounding of the sum over all pairs, of these rows with the whole."""
        size = 1.0 if self.matrix is None else float(np.abs(self.matrix).max())
        pairs = float(len(self.probs)) * (self.whole or len(self.probs))
        return ROUNDING * abs(self.scale) * pairs * size * longest(self.features)

    def moments(self, workers: Workers = ALONE) -> Moments:
        (n, m), f = self.probs.shape, self.features.shape[1]
        if self.matrix is not None or not is_worthwhile(n, m, f):
            return self.pairs.moments(workers)
        linear = self._own if self.diagonal else np.zeros_like(self.probs)
        cumulants = low_rank_moments(self.probs, self.features[:].astype(np.float64), linear, workers)
        return Moments.of_cumulants(*cumulants, self.pairs.surprises).scaled(self.scale)

    def leading(self, workers: Workers = ALONE) -> LinearSum:
        features, matrix = self.features[:].astype(np.float64), self.matrix

        def images(vectors: Array) -> Array:
            found = features @ (features.T @ vectors)
            return np.asarray(found if matrix is None else found @ matrix)

        return leading_sum(self.probs, images)

    def cluster_sums(self, labels: Labels, clusters: Clusters) -> ClusterSums:
        if self.targets is not None:
            return super().cluster_sums(labels, clusters)
        sums = JointSums(self._in_metric(labels), self.features, clusters).held()
        return ClusterSums(sums, np.empty(0), 0.0, np.empty(0))

    def of_cluster_sums(self, found: ClusterSums, share_between: float = 1.0) -> Signed:
        if self.targets is not None:
            return super().of_cluster_sums(found, share_between)
        sums, scale, own = found.turned, self.scale, 0.0
        if not self.diagonal:  # the mean is over pairs of different clusters
            scale *= share_between
            own = float((sums * sums).sum())
        return signed_sums(sums, partial(squared_norms, scale, own), True, self.resolution)

    @property
    def features_of_a_class(self) -> int:  # type: ignore[override]
        """As many as there are."""
        return int(self.features.shape[1])

    def images(self, rows: NDArray[np.intp], residuals: Array) -> Array:
        f = self.features.shape[1]
        features = self.features[rows.ravel()].astype(np.float64).reshape(*rows.shape, f)
        seen = residuals if self.matrix is None else residuals @ self.matrix
        if rows.shape[1] <= f:
            return np.asarray(features @ features.swapaxes(1, 2) @ seen)
        return np.asarray(features @ (features.swapaxes(1, 2) @ seen))

    def _in_metric(self, labels: Labels) -> Array:
        """Return residuals in the metric of the classes, (n, m)."""
        residuals = residuals_of(self.probs, labels)
        if self.matrix is None:
            return residuals
        values, vectors = np.linalg.eigh(self.matrix)
        return np.asarray(residuals @ (vectors * np.sqrt(values.clip(min=0.0))))

    def signed(self, labels: Labels, clusters: Clusters) -> Signed:
        """Choose what takes the fewest operations: sums by cluster, or pairs of clusters or rows."""
        if self.targets is not None:
            return self.of_cluster_sums(self.cluster_sums(labels, clusters))
        (n, m), f = self.probs.shape, self.features.shape[1]
        count, width = clusters.count, m * f
        may_hold, may_pair = count * width <= _MOST_HELD, count**2 <= _MOST_HELD
        sums, pairs = (count if may_hold else n) * width * _USUAL, count**2 * (0.5 * width + _USUAL)
        of_rows = 0.5 * n**2 * (m + f) + count**2 * _USUAL
        if may_pair and of_rows < min(sums, pairs) and not isinstance(self.features, ComputedFeatures):
            return self.pairs.signed(labels, clusters)
        if may_hold and not (may_pair and pairs < sums):
            return self.of_cluster_sums(self.cluster_sums(labels, clusters), clusters.share_between)
        whole, scale = JointSums(self._in_metric(labels), self.features, clusters), self.scale
        if not self.diagonal:  # the mean is over pairs of different clusters
            scale *= clusters.share_between
        if may_pair:
            return with_own_pairs(whole.pairs(), scale, self.diagonal, self.resolution)
        return whole.signed(scale, self.diagonal, self.resolution)

    @cached_property
    def _own(self) -> Array:
        """⟨ψ_i, ψ_i⟩ D_iᵀ A D_i for every label of row i, (n, m)."""
        return diagonal_table(self.probs, self.pairs.kernel_terms)

    def of_labels(self, labels: Labels, workers: Workers = ALONE) -> Array:
        size, n = self.probs.shape[1] * self.features.shape[1], len(self.probs)
        at_once = max(1, _HELD // size)
        if isinstance(self.features, ComputedFeatures):
            cut = blocks(n, ROWS)
            return np.concatenate(
                [
                    self.reduce(
                        added((self.scores.sums(labels[part][:, rows], rows) for rows in cut), np.add),
                        self.fixed,
                    )
                    for part in blocks(len(labels), at_once)
                ]
            )
        staying = self.matrix is None and self.targets is None and size > _STAYING and n <= _MOST_ROWS
        evaluate, at_once = (self._squares, DRAWS) if staying else (super().of_labels, at_once)
        return np.concatenate([evaluate(labels[part]) for part in blocks(len(labels), at_once)])

    @cached_property
    def _pieces(self) -> tuple[Array, Array]:
        """The features of all rows, and what they lead to expect by class, a few of them at a time."""
        from caltest.loops.kernels import WIDTH

        features = self.features[:]
        count = -(-features.shape[1] // WIDTH)
        padded = np.zeros((len(features), count * WIDTH), dtype=features.dtype)
        padded[:, : features.shape[1]] = features
        expected = -fixed_residuals(self.probs, self.scores.usual).T @ padded
        pieces = (
            np.ascontiguousarray(each.reshape(len(each), count, WIDTH).transpose(1, 0, 2))
            for each in (padded, expected)
        )
        return next(pieces), next(pieces)

    def _squares(self, labels: Labels) -> Array:
        """Return the values of all rows of many classes, whose sums by label are never held."""
        from caltest.loops import kernels as _kernel_loops

        features, expected = self._pieces
        entries = Entries.of(labels, self.scores.usual, self.probs.shape[1], len(self.probs))
        squares = np.zeros(len(labels))
        _kernel_loops.squares_by_class(
            features, entries.rows, entries.keys, entries.counts, expected, squares
        )
        own = 0.0 if self.diagonal else Table(self._own, self.probs).sums(labels)[:, 0]
        return np.asarray(self.scale * (squares - own))

    def reduce(self, sums: Array, fixed: Array) -> Array:
        """Return squared norms, less what the pairs i = j add."""
        m, f = self.probs.shape[1], self.features.shape[1]
        residuals, own = np.split(sums.reshape(len(sums), -1, f), [m], axis=1)
        if self.targets is not None:
            chosen = residuals[:, self.targets, np.arange(len(self.targets))]
            return np.asarray(self.scale * np.einsum("bf,bf->b", chosen, chosen))
        images = residuals if self.matrix is None else self.matrix @ residuals
        squares = np.einsum("bkf,bkf->b", residuals, images)
        return np.asarray(self.scale * (squares - own[:, :, 0].sum(axis=1)))


# ------------------------------------------------------------------ low rank moments
#
# As in :mod:`caltest.forms._pair_moments`, but with W = ΨΨᵀ the sums over pairs i ≠ j are those
# over all pairs, which factorise, less the diagonal. With C = Σ_i Σ_i ⊗ ψ_i ψ_iᵀ, the covariance of
# Σ_i D_i ⊗ ψ_i, and w_i = |ψ_i|²:
#
# * Σ_{i≠j} W_ij² tr(Σ_i Σ_j) = ‖C‖² − Σ_i w_i² tr Σ_i²;
# * tr((M Σ)³) = tr C³ − 3 ⟨Σ_i w_i Σ_i² ⊗ ψ_i ψ_iᵀ, C⟩ + 2 Σ_i w_i³ tr Σ_i³, M without its diagonal;
# * Σ_{i≠j} W_ij³ E⟨D_i, D_j⟩³, a small part of the skewness, is estimated from pairs of some rows.


_ROWS = 2048
_FEWEST = 4096  # rows; fewer leave too small samples
_LARGEST = 2500  # m F; C has this many rows: 50 MB
_SAMPLES, _SAMPLED = 16, 1024  # disjoint samples of rows, and rows of each at most


def is_worthwhile(n: int, m: int, f: int) -> bool:
    """Say whether this takes less time than a sum over pairs."""
    return n >= _FEWEST and m * f <= _LARGEST and n * (f + 7 * m) > (m * f) ** 2


def low_rank_moments(
    probs: Array, features: Array, linear: Array, workers: Workers
) -> tuple[float, float, float, float]:
    """Return mean, variance, third cumulant and the standard error of the third cumulant.

    ``features`` are Ψ, (n, F), and ``linear`` is what the diagonal i = j adds, (n, m). With the centred
    linear part l, v = E[l D] = g∘l and U = E[l D Dᵀ] = diag(v) − v gᵀ − g vᵀ.
    """
    means = np.einsum("ik,ik->i", probs, linear)
    table = linear - means[:, None]
    v = probs * table
    tasks = [(part,) for part in blocks(len(probs), _ROWS)]
    covariance = np.asarray(sum(workers.map(partial(_covariance, probs, features), tasks, "moments")))
    inner = partial(_inner_products, probs, features, v, covariance)
    squares, mixed = sum(workers.map(inner, tasks, "skewness"))
    # What the sums over all pairs have too much of: those over the diagonal i = j.
    w = np.einsum("if,if->i", features, features)
    p2, p3, p4 = (np.sum(probs**power, axis=1) for power in (2, 3, 4))
    gv, g2v = np.sum(probs * v, axis=1), np.sum(probs**2 * v, axis=1)
    own_second = w**2 @ (p2 - 2.0 * p3 + p2**2)  # Σ w² tr Σ²
    own_third = w**3 @ (p3 - 3.0 * p4 + 3.0 * p2 * p3 - p2**3)  # Σ w³ tr Σ³
    own_mixed = w**2 @ (gv - 3.0 * g2v + 2.0 * p2 * gv)  # Σ w² tr(U Σ)
    own_cross = w @ np.sum(v * v, axis=1)  # Σ w |v|²
    third, error = _sampled_cubes(probs, features)
    variance = 2.0 * (np.vdot(covariance, covariance) - own_second) + np.sum(probs * table**2)
    trace = np.vdot(covariance @ covariance, covariance) - 3.0 * squares + 2.0 * own_third
    cumulant = 8.0 * trace + 4.0 * third + 12.0 * (mixed - own_mixed) + np.sum(probs * table**3)
    cumulant += 6.0 * (np.sum((v.T @ features) ** 2) - own_cross)
    return float(means.sum()), float(variance), float(cumulant), 4.0 * error


def _joint(probs: Array, features: Array) -> Array:
    """Return g ⊗ ψ, (rows, mF)."""
    return (probs[:, :, None] * features[:, None, :]).reshape(len(probs), -1)


def _covariance(probs: Array, features: Array, rows: slice) -> Array:
    """Return Σ_i Σ_i ⊗ ψ_i ψ_iᵀ over some rows, (mF, mF)."""
    q, joint, f = features[rows], _joint(probs[rows], features[rows]), features.shape[1]
    total = -(joint.T @ joint)
    for k, weighted in enumerate(np.split(joint, probs.shape[1], axis=1)):
        own = slice(k * f, (k + 1) * f)
        total[own, own] += weighted.T @ q
    return np.asarray(total)


def _inner_products(
    probs: Array, features: Array, tilted: Array, covariance: Array, rows: slice
) -> Array:
    """Return ⟨w Σ² ⊗ ψψᵀ, C⟩ and ⟨U ⊗ ψψᵀ, C⟩, summed over some rows."""
    g, q, v = probs[rows], features[rows], tilted[rows]
    m, f = g.shape[1], q.shape[1]
    corners = [covariance[k * f : (k + 1) * f, k * f : (k + 1) * f] for k in range(m)]
    alone = np.stack([np.einsum("if,if->i", q @ corner, q) for corner in corners], axis=1)
    images = (_joint(g, q) @ covariance).reshape(-1, m, f)
    beside = np.einsum("ikf,if->ik", images, q)
    w = np.einsum("if,if->i", q, q)[:, None]
    g2 = g * g
    # Σ² = diag(g²) − g² gᵀ − g g²ᵀ + |g|² g gᵀ
    squares = w * (g2 * alone - 2.0 * g2 * beside + g2.sum(axis=1, keepdims=True) * g * beside)
    return np.array([squares.sum(), np.sum(v * alone - 2.0 * v * beside)])


def _sampled_cubes(probs: Array, features: Array) -> tuple[float, float]:
    """Estimate Σ_{i≠j} W_ij³ E⟨D_i, D_j⟩³ from disjoint random samples; return the error too."""
    n = len(probs)
    size = min(_SAMPLED, n // _SAMPLES)
    shuffled = fixed_order(probs)[generator(0).permutation(n)]
    every, found = slice(0, size), []
    for sample in blocks(_SAMPLES * size, size):
        g, weights = probs[shuffled[sample]], LowRankWeights(features[shuffled[sample]])
        sums = IdentitySums(g, np.zeros_like(g), weights)(every, every)
        found.append(sums[1] * n * (n - 1) / (size * (size - 1)))
    return float(np.mean(found)), float(np.std(found, ddof=1) / np.sqrt(_SAMPLES))
