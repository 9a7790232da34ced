"""Kernels of low rank: sums of features of the rows, their squares, and the moments of these."""

# ruff: noqa: D102 -- a method that overrides another is documented where it is first defined.

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any

import numpy as np

from caltest._parallel import ALONE, Workers
from caltest._sums import Array, Places, blocks
from caltest.clusters import Clusters
from caltest.forms import base, kernel_matrices
from caltest.forms.base import Form, Labels
from caltest.forms.kernel_matrices import ComputedFeatures, LowRankWeights, MappedFeatures, Term
from caltest.forms.moments import diagonal_table, is_worthwhile, low_rank_moments
from caltest.forms.pairs import Pairwise, leading_sum
from caltest.forms.signs import OverPairs, Signed, Signs, signed_pairs, signed_sums
from caltest.forms.sums import ClusterSums, LinearSum, Sums
from caltest.sampling import DRAWS
from caltest.scores import Entries, FeatureResiduals, RoundedFeatures, Table, residuals_of

# ------------------------------------------------------------------ feature squares


_HELD = 2**22  # sums of features held at a time: 32 MiB
_STAYING = 2**17  # sums of a draw that stay in the second-level cache while rows are added
_MOST_ROWS = 2**16  # that two bytes can number
_USUAL = 1000  # typical number of draws
_MOST_HELD = 2**25  # most numbers held for clusters: 256 MiB


@dataclass(frozen=True, eq=False)
class FeatureSquares(OverPairs, base.HasMoments, base.HasLeadingSum, Sums):
    """T = scale · Σ_ij ⟨ψ_i, ψ_j⟩ D_iᵀ A D_j over all pairs, or over those with i ≠ j.

    Over all pairs it is the squared norm of Σ_i ψ_i ⊗ D_i in the metric A: the features are summed by
    label, and their expected sums are subtracted. A draw of the labels costs O(nF).
    """

    probs: Array  #: The predictions, (n, m).
    features: kernel_matrices.Features  #: Ψ, (n, F), a function of the predictions only.
    matrix: Array | None = None  #: A, (m, m), positive semi-definite; None is the identity.
    scale: float = 1.0
    diagonal: bool = True  #: Include the pairs i = j.
    whole: float | None = None  #: Number of all rows, or their weight, if these are only some of them.
    #: Sums shared by several forms, and the place of this one's number of pairs i = j.
    shared: tuple[FeatureResiduals, int] | None = None

    @cached_property
    def scores(self) -> FeatureResiduals:
        """Features times residuals, and the terms of the pairs i = j."""
        if self.shared is not None:
            return self.shared[0]
        return FeatureResiduals(self.probs, self._base, () if self.diagonal else (self._own_table,))

    @property
    def shared_scores(self) -> FeatureResiduals | None:  # type: ignore[override]
        return None if self.shared is None else self.shared[0]

    @property
    def _base(self) -> Any:
        """The features that are summed."""
        return self.features.base if isinstance(self.features, MappedFeatures) else self.features

    def _own_table(self, rows: slice, features: Any) -> Table:
        """Return the terms of the pairs i = j for some rows, from the features that are summed."""
        if isinstance(self.features, MappedFeatures):
            features = replace(self.features, base=features)
        weights, probs = LowRankWeights(features), self.probs[rows]
        if self.matrix is None:  # w_i |e_y − g_i|², whose table is as large as the predictions
            own, squares = weights.diagonal(), np.einsum("ik,ik->i", probs, probs)
            return Table(probs, probs, -2.0 * own, float(own @ (1.0 + squares)))
        return Table(diagonal_table(probs, (Term(weights, self.matrix),)), probs)

    @property
    def summed(self) -> tuple[int, ...]:
        """Key of the features that are summed for this form."""
        base = self._base
        each = (base.function, base.probs, base.by) if isinstance(base, ComputedFeatures) else (base,)
        return tuple(map(id, (self.probs, *each)))

    @cached_property
    def pairs(self) -> Pairwise:
        """The same form as a sum over pairs."""
        term = Term(LowRankWeights(self.features), self.matrix)
        return Pairwise(self.probs, (term,), scale=self.scale, diagonal=self.diagonal)

    @cached_property
    def resolution(self) -> float:
        """Rounding error of the sum over all pairs, of these rows with all rows."""
        size = 1.0 if self.matrix is None else float(np.abs(self.matrix).max())
        pairs = float(len(self.probs)) * (self.whole or len(self.probs))
        return base.ROUNDING * abs(self.scale) * pairs * size * kernel_matrices.longest(self.features)

    def moments(self, workers: Workers = ALONE) -> base.Moments:
        (n, m), f = self.probs.shape, self.features.shape[1]
        if self.matrix is not None or not is_worthwhile(n, m, f):
            return self.pairs.moments(workers)
        linear = np.zeros_like(self.probs)
        if self.diagonal:
            linear = diagonal_table(self.probs, self.pairs.kernel_terms)
        cumulants = low_rank_moments(self.probs, self.features[:].astype(np.float64), linear, workers)
        return base.Moments.of_cumulants(*cumulants, self.pairs.surprises).scaled(self.scale)

    def leading(self, workers: Workers = ALONE) -> LinearSum:
        features, matrix = self.features[:].astype(np.float64), self.matrix

        def images(vectors: Array) -> Array:
            found = features @ (features.T @ vectors)
            return np.asarray(found if matrix is None else found @ matrix)

        return leading_sum(self.probs, images)

    def cluster_sums(self, labels: Labels, clusters: Clusters) -> ClusterSums:
        sums = JointSums(self._in_metric(labels), self.features, clusters).held()
        return ClusterSums(sums, np.empty(0), 0.0, np.empty(0))

    def of_cluster_sums(self, found: ClusterSums, share_between: float = 1.0) -> Signed:
        sums, scale, own = found.turned, self.scale, 0.0
        if not self.diagonal:  # the mean is over pairs of different clusters
            scale *= share_between
            own = float((sums * sums).sum())
        return signed_sums(sums, partial(squared_norms, scale, own), True, self.resolution)

    def images(self, rows: Places, residuals: Array) -> Array:
        f = self.features.shape[1]
        features = self.features[rows.ravel()].astype(np.float64).reshape(*rows.shape, f)
        seen = residuals if self.matrix is None else residuals @ self.matrix
        turned = features.swapaxes(1, 2)
        found = features @ turned @ seen if rows.shape[1] <= f else features @ (turned @ seen)
        return np.asarray(found)

    def _in_metric(self, labels: Labels) -> Array:
        """Return residuals in the metric of the classes, (n, m)."""
        residuals = residuals_of(self.probs, labels)
        if self.matrix is None:
            return residuals
        values, vectors = np.linalg.eigh(self.matrix)
        return np.asarray(residuals @ (vectors * np.sqrt(values.clip(min=0.0))))

    def signed(self, labels: Labels, clusters: Clusters) -> Signed:
        """Choose the way with the fewest operations: sums by cluster, or pairs of clusters."""
        count, width = clusters.count, self.probs.shape[1] * int(self.features.shape[1])
        may_hold, may_pair = count * width <= _MOST_HELD, count**2 <= _MOST_HELD
        if may_hold and not (may_pair and count * (0.5 * width + _USUAL) < width * _USUAL):
            return super().signed(labels, clusters)
        whole, scale = JointSums(self._in_metric(labels), self.features, clusters), self.scale
        if not self.diagonal:  # the mean is over pairs of different clusters
            scale *= clusters.share_between
        if may_pair:
            return signed_pairs(whole.pairs(), scale, self.diagonal, self.resolution)
        return whole.signed(scale, self.diagonal, self.resolution)

    def of_labels(self, labels: Labels, workers: Workers = ALONE) -> Array:
        size, n = self.probs.shape[1] * self.features.shape[1], len(self.probs)
        at_once = max(1, _HELD // size)
        staying = self.matrix is None and size > _STAYING and n <= _MOST_ROWS
        staying &= isinstance(self.features, RoundedFeatures)
        evaluate, at_once = (self._squares, DRAWS) if staying else (super().of_labels, at_once)
        return np.concatenate([evaluate(labels[part]) for part in blocks(len(labels), at_once)])

    @cached_property
    def _expected_pieces(self) -> Array:
        """Expected sums of features by class, over all rows, in their unit and pieces."""
        features: Any = self.features
        count, _, width = features.pieces.shape
        found = np.zeros((self.probs.shape[1], count * width))
        found[:, : features.width] = self.scores.expected / -features.unit
        return np.ascontiguousarray(found.reshape(-1, count, width).transpose(1, 0, 2))

    def _squares(self, labels: Labels) -> Array:
        """Return the values of all rows for many classes, without holding sums by label."""
        from caltest.loops import kernels as _kernel_loops

        features: Any = self.features
        entries = Entries.of(labels, self.scores.usual, self.probs.shape[1], len(self.probs))
        squares, given = np.zeros(len(labels)), (features.pieces, entries.rows, entries.ends)
        _kernel_loops.squares_by_class(*given, self._expected_pieces, squares)
        own = 0.0 if self.diagonal else self.scores.all_owns[0].sums(labels)[:, 0]
        return np.asarray(self.scale * (features.unit**2 * squares - own))

    def reduce(self, sums: Array, fixed: Array) -> Array:
        """Return squared norms, less the terms of the pairs i = j."""
        m, f = self.probs.shape[1], self._base.shape[1]
        residuals, own = np.split(sums.reshape(len(sums), -1, f), [m], axis=1)
        if isinstance(self.features, MappedFeatures):
            residuals = residuals @ self.features.by
        images = residuals if self.matrix is None else self.matrix @ residuals
        squares = np.einsum("bkf,bkf->b", residuals, images)
        if self.diagonal:
            return np.asarray(self.scale * squares)
        place = 0 if self.shared is None else self.shared[1]
        return np.asarray(self.scale * (squares - own[:, 0, place]))


def sharing(forms: Sequence[Form]) -> tuple[Form, ...]:
    """Return the forms, with sums in common if features are the same."""
    found, alike = list(forms), dict[tuple[int, ...], list[tuple[int, FeatureSquares]]]()
    for place, form in enumerate(forms):
        if isinstance(form, FeatureSquares) and not form.diagonal:
            alike.setdefault(form.summed, []).append((place, form))
    for each in alike.values():
        _, first = each[0]
        if 1 < len(each) <= first._base.shape[1]:
            owns = tuple(form._own_table for _, form in each)
            scores = FeatureResiduals(first.probs, first._base, owns)
            for number, (place, form) in enumerate(each):
                found[place] = replace(form, shared=(scores, number))
    return tuple(found)


# ------------------------------------------------------------------ sums of clusters


@dataclass(frozen=True, eq=False)
class JointSums:
    """Σ_{i∈g} D_i ⊗ ψ_i of clusters, too wide to be computed in one go: in blocks of rows."""

    residuals: Array  #: D, (n, m), in the metric of the classes.
    features: Any  #: Ψ, (n, F), read some rows at a time.
    clusters: Clusters

    @property
    def width(self) -> int:
        """Numbers per cluster."""
        return int(self.residuals.shape[1] * self.features.shape[1])

    def held(self) -> Array:
        """Return the sums of all clusters, (G, mF)."""
        sums = np.empty((self.clusters.count, self.width))
        for clusters, part in self._of_clusters(slice(None)):
            sums[clusters] = part
        return sums

    def pairs(self) -> Array:
        """Return their inner products, (G, G), some classes at a time."""
        m, count = self.residuals.shape[1], self.clusters.count
        pairs = np.zeros((count, count))
        for classes in blocks(m, max(1, _HELD // (count * self.features.shape[1]))):
            sums = np.concatenate([part for _, part in self._of_clusters(classes)])
            pairs += sums @ sums.T
        return pairs

    def _of_clusters(self, classes: slice) -> Iterator[tuple[slice, Array]]:
        """Yield Σ_{i∈g} D_i ⊗ ψ_i for some classes, for as many clusters at a time as fit."""
        codes, count = self.clusters.codes, self.clusters.count
        order = np.argsort(codes, kind="stable")
        ends = np.cumsum(np.bincount(codes, minlength=count))
        residuals = self.residuals[:, classes]
        width = residuals.shape[1] * self.features.shape[1]
        start = first = 0
        while start < count:
            most = max(1, _HELD // self.features.shape[1])
            stop = max(start + 1, int(np.searchsorted(ends, first + most, side="right")))
            stop = min(stop, start + max(1, 4 * _HELD // width))
            rows = order[first : ends[stop - 1]]
            features = np.asarray(self.features[rows], dtype=np.float64)
            own, sums, place = residuals[rows], np.empty((stop - start, width)), 0
            if len(rows) == stop - start:  # one row each
                joint = sums.reshape(len(rows), residuals.shape[1], -1)
                np.multiply(own[:, :, None], features[:, None, :], out=joint)
            else:
                for number, end in enumerate(ends[start:stop] - first):
                    sums[number] = (own[place:end].T @ features[place:end]).ravel()
                    place = int(end)
            yield slice(start, stop), sums
            start, first = stop, int(ends[stop - 1])

    def signed(self, scale: float, keeps_own: bool, rounding: float) -> Signed:
        """Return T = scale · |Σ_g ε_g S_g|², perhaps without pairs in one cluster, holding no sums."""
        parts = () if keeps_own else self._of_clusters(slice(None))
        own = float(sum(np.vdot(part, part) for _, part in parts))

        def of_signs(signs: Signs) -> Array:
            total = np.zeros((len(signs), self.width))
            for clusters, part in self._of_clusters(slice(None)):
                total += signs[:, clusters].astype(np.float64) @ part
            return squared_norms(scale, own, total)

        return Signed(of_signs, self.clusters.count, True, rounding, self.width)


def squared_norms(scale: float, own: float, sums: Array) -> Array:
    """Return |Σ|² of sums (B, K), less the terms left out."""
    return np.asarray(scale * (np.einsum("bk,bk->b", sums, sums) - own))
