"""Signs: a statistic as a function of a sign for every cluster of rows, the labels as observed.

Rows of one cluster may depend on each other in any way. A statistic sees the labels through centred
scores s_i, which are 0 on average under H0, and so are their sums S_g over clusters. Turning the sign
of any S_g leaves mean and covariance of all of them as they are: what a statistic would be, had the
errors of a cluster pointed the other way. Scores are added up by cluster once; a draw of signs then
costs as many operations as there are clusters, not rows. Only paths go over the rows.

Quadratic forms have εᵀCε, C_gh = Σ_{i∈g, j∈h} W_ij ⟨D_i, D_j⟩. The diagonal of C does not depend on the
signs; of a statistic that leaves out the pairs i = j it is left out, since it is unknown what pairs of
one cluster add under H0.
"""

# ruff: noqa: D102 -- a method that overrides another is documented where it is first defined.

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import Any, ClassVar, TypeAlias

import numpy as np
from numpy.typing import NDArray

from caltest._parallel import ALONE, Workers
from caltest._tiles import WIDE_TILE, blocks
from caltest._work import Work
from caltest.clusters import Clusters
from caltest.forms.base import Array, Form, Labels

Signs: TypeAlias = NDArray[np.int8]

_HELD = 2**22  # numbers of a block of draws that are held at a time: 32 MiB


class HasSigns(Form):
    """A form that knows its values for signs of clusters, the outcomes fixed."""

    #: What is predicted of the labels that it takes, (n, m).
    probs: Array
    #: Features of a class that a row adds up, about.
    features_of_a_class: ClassVar[int] = 1
    #: Effective clusters that a bin must hold on average, where every bin counts by itself.
    fewest_of_a_bin: float = 0.0

    @property
    def row_scores(self) -> Array | None:
        """What every label of a row adds to a sum that is one number, (n, m); None of other forms."""
        return None

    def clusters_of_a_bin(self, labels: Labels, clusters: Clusters) -> float:
        """Return the effective clusters of a bin, where every bin's sum counts by itself."""
        return np.inf

    @abstractmethod
    def signed(self, labels: Labels, clusters: Clusters) -> Signed:
        """Return the value as a function of the signs of clusters.

        Parameters
        ----------
        labels
            The observed labels, (n,), which stay as they are.
        clusters
            Which of G clusters each row belongs to.

        Returns
        -------
        Signed
            Takes signs ±1 of shape (B, G), returns (B,) values. A sign of −1 reverses the centred
            errors of a whole cluster; signs that are all +1 give the observed value.
        """

    def squares_of(self, labels: Labels, clusters: Clusters) -> Array:
        """Return |S_g|², the size of what every cluster adds, (B, G) for labels (B, n)."""
        scores: Any = self.row_scores
        centred = scores - np.einsum("ik,ik->i", self.probs, scores)[:, None]
        rows = np.arange(len(centred))
        return np.stack([clusters.sums(centred[rows, y]) ** 2 for y in labels.astype(np.intp)])

    def apart(self, labels: Labels, clusters: Clusters) -> Array:
        """Return the (B,) values for labels (B, n), means over pairs being of different clusters."""
        return self.of_labels(labels)

    def one_by_one(self, labels: Labels, clusters: Clusters) -> Array:
        """Return the same of a form whose values are known for one label vector at a time."""
        return np.array([self.signed(y.astype(np.intp), clusters).observed for y in labels])


class OfOneEvent(HasSigns):
    """A form of two classes that looks at the probability of one."""

    chances: Array  #: The probabilities p of class 1, (n,).

    @property
    def probs(self) -> Array:  # type: ignore[override]
        """The predictions, (n, 2)."""
        return np.column_stack([1.0 - self.chances, self.chances])


class OverPairs(HasSigns):
    """T = scale · Σ_ij W_ij D_iᵀ A D_j: a dataclass with these fields."""

    scale: float
    diagonal: bool  #: Count the pairs i = j.

    @abstractmethod
    def images(self, rows: NDArray[np.intp], residuals: Array) -> Array:
        """Return Σ_j W_ij A D_j within clusters of the rows (c, k), for D (B, c, k, m)."""

    def squares_of(self, labels: Labels, clusters: Clusters) -> Array:
        found, draws = np.empty((len(labels), clusters.count)), labels.astype(np.intp)
        for own, rows in clusters.of_equal_size(len(labels) * self.probs.shape[1]):
            residuals = np.tile(-self.probs[rows], (len(labels), 1, 1, 1))
            there = draws[:, rows, None]
            ones = np.take_along_axis(residuals, there, axis=3) + 1.0
            np.put_along_axis(residuals, there, ones, axis=3)
            found[:, own] = np.einsum("bckm,bckm->bc", residuals, self.images(rows, residuals))
        return found.clip(min=0.0)

    def apart(self, labels: Labels, clusters: Clusters) -> Array:
        if self.diagonal:  # every pair counts
            return self.of_labels(labels)
        between = self._of_all.of_labels(labels) - self.squares_of(labels, clusters).sum(axis=1)
        return np.asarray(self.scale * clusters.share_between * between)

    @cached_property
    def _of_all(self) -> Form:
        """The sum over all pairs, those with i = j among them."""
        return replace(self, scale=1.0, diagonal=True)  # type: ignore[type-var]


# ------------------------------------------------------------------ functions of signs


@dataclass(frozen=True, eq=False)
class Signed(Form):
    """T as a function of signs (B, G) of clusters: in place of labels, ±1; ones are observed."""

    of_signs: Callable[[Signs], Array]  #: Takes some signs (b, G), bytes, returns (b,) values.
    count: int  #: Number of clusters G.
    even: bool  #: Whether T is the same if all signs are turned.
    rounding: float  #: How far two evaluations of one value may differ.
    width: int = 1  #: Numbers that are held a draw.
    of_a_draw: Work = field(default_factory=dict)  #: What one draw takes.

    @property
    def resolution(self) -> float:
        return self.rounding

    def work(self, draws: int) -> Work:
        return {kind: draws * each for kind, each in self.of_a_draw.items()}

    def of_labels(self, labels: Labels, workers: Workers = ALONE) -> Array:
        """Return the (B,) values for signs (B, G)."""
        size = max(1, _HELD // max(self.width, labels.shape[1]))
        return np.concatenate([self.of_signs(labels[b]) for b in blocks(len(labels), size)])

    @property
    def observed(self) -> float:
        """The observed value."""
        return self.value(np.ones(self.count, dtype=np.int8))


def signed_sums(
    sums: Any,
    finish: Callable[[Array], Array],
    even: bool,
    rounding: float,
    offset: Any = 0.0,
    impossible: float | None = None,
) -> Signed:
    """Return T = finish(offset + Σ_g ε_g S_g): sums S (G, K) over the rows, dense or sparse.

    ``offset`` is what sums are under H0 on average, (K,) or one number; ``impossible`` the observed
    value, if a label that cannot be makes it infinite.
    """
    count, width = sums.shape
    numbers = float(sums.size if isinstance(sums, np.ndarray) else sums.nnz)
    of_signs = partial(_of_sums, sums, finish, offset, impossible)
    return Signed(of_signs, count, even, rounding, width, {"feature": numbers})


def _of_sums(
    sums: Any, finish: Callable[[Array], Array], offset: Any, impossible: float | None, signs: Signs
) -> Array:
    values = finish(np.asarray(signs.astype(np.float64) @ sums) + offset)
    if impossible is None:
        return values
    # Under H0 it has probability 0, whatever the dependence: signs say nothing of it.
    values = np.where(np.isfinite(values), values, 0.0)
    return np.where((signs > 0).all(axis=1), impossible, values)


def signed_path(
    steps: Array,
    codes: NDArray[np.intp],
    ends: NDArray[np.intp],
    finish: Callable[[Array, Array], Array],
    count: int,
    rounding: float,
) -> Signed:
    """Return how far the path of Σ ε_g(i) r_i along an order strays from 0.

    Steps r and clusters of the rows are in order; the path is looked at after the rows ``ends``.
    """
    of_signs = partial(_of_path, steps, codes, ends, finish)
    return Signed(of_signs, count, True, rounding, 1, {"label": float(len(steps))})


def _of_path(
    steps: Array,
    codes: NDArray[np.intp],
    ends: NDArray[np.intp],
    finish: Callable[[Array, Array], Array],
    signs: Signs,
) -> Array:
    from caltest.loops import rows as _loops

    lowest, highest = np.empty(len(signs)), np.empty(len(signs))
    _loops.extremes_of_signs(signs, codes, steps, ends, lowest, highest)
    return finish(lowest, highest)


def signed_pairs(between: Any, scale: float, constant: float, rounding: float) -> Signed:
    """Return T = scale · Σ_{g≠h} ε_g ε_h C_gh + constant.

    C (G, G) is 0 on its diagonal: sparse, or dense and read above it alone.
    """
    numbers = float(between.size if isinstance(between, np.ndarray) else between.nnz)
    of_signs = partial(_of_pairs, between, scale, constant)
    return Signed(of_signs, between.shape[0], True, rounding, between.shape[0], {"feature": numbers})


def with_own_pairs(pairs: Array, scale: float, keeps_own: bool, rounding: float) -> Signed:
    """Return the same of C with its diagonal, which is a constant of T or no part of it."""
    own = float(pairs.diagonal().sum())
    np.fill_diagonal(pairs, 0.0)
    return signed_pairs(pairs, scale, scale * own * keeps_own, rounding)


def _of_pairs(between: Any, scale: float, constant: float, signs: Signs) -> Array:
    numbers, products = signs.astype(np.float64), np.zeros(len(signs))
    if not isinstance(between, np.ndarray):
        products = np.einsum("bg,bg->b", numbers @ between, numbers)
        return np.asarray(scale * products + constant)
    for columns in blocks(len(between), WIDE_TILE):  # C above its diagonal, that is half of it
        above = numbers[:, : columns.start] @ between[: columns.start, columns]
        above += numbers[:, columns] @ np.triu(between[columns, columns])
        products += np.einsum("bg,bg->b", above, numbers[:, columns])
    return np.asarray(2.0 * scale * products + constant)


def signed_chain(
    residuals: Array,
    codes: NDArray[np.intp],
    decay: Array,
    own: Array,
    scale: float,
    constant: float,
    rounding: float,
) -> Signed:
    """Return the same where C is of exp(−|x_i − x_j|) along a line: one pass over the rows per draw.

    Residuals d, clusters and the decay from the row before are in the order of the line; ``own`` (G,)
    are the sums of pairs inside every cluster, i = j among them.
    """
    alone = float(own.sum() - residuals @ residuals)
    of_signs = partial(_of_chain, residuals, codes, decay, scale, constant - scale * alone)
    return Signed(of_signs, len(own), True, rounding, 1, {"label": float(len(residuals))})


def _of_chain(
    residuals: Array,
    codes: NDArray[np.intp],
    decay: Array,
    scale: float,
    constant: float,
    signs: Signs,
) -> Array:
    from caltest.loops import rows as _loops

    sums = np.empty(len(signs))
    _loops.chain_sums_of_signs(signs, codes, residuals, decay, sums)
    return np.asarray(2.0 * scale * sums + constant)


def chained(residuals: Array, positions: Array, codes: NDArray[np.intp], count: int) -> Array:
    """Return Σ_{i,j∈g} W_ij d_i d_j of every cluster, (B, G), for d (B, n) along a line."""
    from caltest.loops import rows as _loops

    order = np.lexsort((positions, codes))
    grouped, place = codes[order], positions[order]
    inside = np.exp(-np.diff(place, prepend=place[:1]).clip(min=0.0))
    decay = np.where(np.diff(grouped, prepend=-1) > 0, 0.0, inside)
    found, terms = np.empty((len(residuals), count)), np.empty(len(order))
    for own, each in zip(found, residuals, strict=True):
        along = each[order]
        _loops.chain_terms(decay, along, terms)
        own[:] = np.bincount(grouped, 2.0 * terms + along**2, count)
    return found


@dataclass(frozen=True, eq=False)
class JointSums:
    """Σ_{i∈g} D_i ⊗ ψ_i of clusters, too wide to be added up in one go: blocks of rows."""

    residuals: Array  #: D, (n, m), in the metric of the classes.
    features: Any  #: Ψ, (n, F), of which some rows are asked for at a time.
    clusters: Clusters

    @property
    def width(self) -> int:
        """Numbers of a cluster."""
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

    def squares(self) -> float:
        """Return the sum of their squares."""
        parts = self._of_clusters(slice(None))
        return float(sum(np.vdot(part, part) for _, part in parts))

    def _of_clusters(self, classes: slice) -> Iterator[tuple[slice, Array]]:
        """Yield Σ_{i∈g} D_i ⊗ ψ_i of some classes for as many clusters at a time as fit."""
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
            if len(rows) == stop - start:  # a row each
                joint = sums.reshape(len(rows), residuals.shape[1], -1)
                np.multiply(own[:, :, None], features[:, None, :], out=joint)
            else:
                for number, end in enumerate(ends[start:stop] - first):
                    sums[number] = (own[place:end].T @ features[place:end]).ravel()
                    place = int(end)
            yield slice(start, stop), sums
            start, first = stop, int(ends[stop - 1])

    def signed(self, scale: float, keeps_own: bool, rounding: float) -> Signed:
        """Return T = scale · |Σ_g ε_g S_g|², perhaps without pairs of one cluster, nothing held."""
        own = 0.0 if keeps_own else self.squares()
        cost = {"feature": float(len(self.residuals)) * self.width}
        of_signs = partial(self._of_signs, scale, own)
        return Signed(of_signs, self.clusters.count, True, rounding, self.width, cost)  # type: ignore[arg-type]

    def _of_signs(self, scale: float, own: float, signs: Signs) -> Array:
        total = np.zeros((len(signs), self.width))
        for rows in blocks(len(self.residuals), max(1, _HELD // self.width)):
            features = np.asarray(self.features[rows], dtype=np.float64)
            joint = self.residuals[rows][:, :, None] * features[:, None, :]
            own_signs = signs[:, self.clusters.codes[rows]].astype(np.float64)
            total += own_signs @ joint.reshape(len(features), -1)
        return squared_norms(scale, own, total)


def squared_norms(scale: float, own: float, sums: Array) -> Array:
    """Return |Σ|² of sums (B, K), less what does not count."""
    return np.asarray(scale * (np.einsum("bk,bk->b", sums, sums) - own))
