"""Signs: a statistic as a function of one sign per cluster of rows, with the observed labels.

Rows of one cluster may depend on each other in any way. A statistic uses the labels through centred
scores s_i, which have mean 0 under H0, and so do their sums S_g over clusters. Flipping the sign of any
S_g leaves the mean and covariance of all of them unchanged: it gives the statistic as if the errors of
a cluster had pointed the other way. Scores are summed by cluster once; a draw of signs then takes as
many operations as there are clusters, not rows. Only paths visit the rows.

Quadratic forms are εᵀCε, C_gh = Σ_{i∈g, j∈h} W_ij ⟨D_i, D_j⟩. The diagonal of C does not depend on the
signs; a statistic without the pairs i = j leaves it out, since the contribution of pairs within a
cluster under H0 is unknown.
"""

# ruff: noqa: D102 -- a method that overrides another is documented where it is first defined.

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar, NamedTuple, TypeAlias

import numpy as np
import scipy
from numpy.typing import NDArray

from caltest._parallel import ALONE, Workers
from caltest._sums import WIDE_TILE, Places, blocks
from caltest._visible import quoted
from caltest.clusters import Clusters
from caltest.exceptions import Argument, InputError
from caltest.forms.base import Array, Form, Labels
from caltest.laws.classes import LabelSampler
from caltest.sampling import generator

Signs: TypeAlias = NDArray[np.int8]

_HELD = 2**22  # numbers of a block of draws that are held at a time: 32 MiB


class HasSigns(Form):
    """A form that can be evaluated for signs of clusters, with fixed outcomes."""

    #: The predictions of its labels, (n, m).
    probs: Array
    #: Contribution of every label of a row, if the value is one sum over rows, (n, m).
    row_scores: Array | None = None
    #: Whether label vectors are evaluated one by one, as signs that are all +1.
    one_by_one: ClassVar[bool] = False
    #: Effective clusters that it depends on, if known.
    effective: float | None = None
    #: Effective clusters that a bin needs on average, if bins are evaluated separately.
    fewest_of_a_bin: float = 0.0

    def cells_of(self, labels: Any) -> Places:
        """Return the columns of ``probs`` that observed labels (n,) stand for: themselves."""
        return np.asarray(labels)

    def comonotone(self) -> Comonotone:
        """Prepare labels at quantiles, in the order of the scores."""
        return Comonotone.of(self)

    def clusters_of_a_bin(self, labels: Labels, clusters: Clusters) -> float:
        """Return the effective clusters per bin, if bins are evaluated separately."""
        return np.inf

    @abstractmethod
    def signed(self, labels: Labels, clusters: Clusters) -> Signed:
        """Return the value as a function of the signs of clusters.

        Parameters
        ----------
        labels : array of shape (n,)
            The observed labels, which stay as they are.
        clusters : array of int of shape (n,)
            Which of G clusters each row belongs to.

        Returns
        -------
        Signed
            Takes signs ±1 of shape (B, G), returns (B,) values. A sign of −1 reverses the centred
            errors of a whole cluster; signs that are all +1 give the observed value.
        """

    def apart(self, labels: Labels, clusters: Clusters) -> Array:
        """Return the (B,) values for labels (B, n), with means over pairs between clusters only."""
        if not self.one_by_one:
            return self.of_labels(labels)
        return np.array([self.signed(y, clusters).observed for y in labels])


@dataclass(frozen=True, eq=False)
class OfOneEvent(HasSigns):
    """A form of two classes that depends on the probability of one."""

    chances: Array  #: The probabilities p of class 1, (n,).

    @property
    def probs(self) -> Array:  # type: ignore[override]
        """The predictions, (n, 2)."""
        return np.column_stack([1.0 - self.chances, self.chances])


class OverPairs(HasSigns):
    """T = scale · Σ_ij W_ij D_iᵀ A D_j: a dataclass with these fields."""

    scale: float
    diagonal: bool  #: Include the pairs i = j.

    @abstractmethod
    def images(self, rows: Places, residuals: Array) -> Array:
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
        if self.diagonal:  # every pair is included
            return self.of_labels(labels)
        between = self._of_all.of_labels(labels) - self.squares_of(labels, clusters).sum(axis=1)
        return np.asarray(self.scale * clusters.share_between * between)

    @cached_property
    def _of_all(self) -> Form:
        """The sum over all pairs, including i = j."""
        return replace(self, scale=1.0, diagonal=True)  # type: ignore[type-var]


# ------------------------------------------------------------------ functions of signs


@dataclass(frozen=True, eq=False)
class Signed(Form):
    """T as a function of signs (B, G) of clusters, ±1 instead of labels; all +1 is observed."""

    of_signs: Callable[[Signs], Array]  #: Takes some signs (b, G), bytes, returns (b,) values.
    count: int  #: Number of clusters G.
    even: bool  #: Whether T is unchanged if all signs flip.
    resolution: float = 0.0
    width: int = 1  #: Numbers held per draw.

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
    """Return T = finish(offset + Σ_g ε_g S_g) for sums S (G, K) over the rows, dense or sparse.

    ``offset`` is the mean of the sums under H0, (K,) or one number; ``impossible`` the observed value,
    if an impossible label makes it infinite.
    """
    count, width = sums.shape

    def of_signs(signs: Signs) -> Array:
        values = finish(np.asarray(signs.astype(np.float64) @ sums) + offset)
        if impossible is None:
            return values
        # Its probability under H0 is 0 under any dependence, so signs have no bearing on it.
        values = np.where(np.isfinite(values), values, 0.0)
        return np.where((signs > 0).all(axis=1), impossible, values)

    return Signed(of_signs, count, even, rounding, width)


def signed_pairs(pairs: Any, scale: float, keeps_own: bool, rounding: float) -> Signed:
    """Return T = scale · Σ_gh ε_g ε_h C_gh for C (G, G), which is overwritten.

    Its diagonal is a constant of T, or left out; if C is sparse, it is 0.
    """
    constant = scale * float(pairs.diagonal().sum()) * keeps_own
    dense = isinstance(pairs, np.ndarray)
    if dense:
        np.fill_diagonal(pairs, 0.0)

    def of_signs(signs: Signs) -> Array:
        numbers, products = signs.astype(np.float64), np.zeros(len(signs))
        if not dense:
            products = np.einsum("bg,bg->b", numbers @ pairs, numbers)
            return np.asarray(scale * products + constant)
        for columns in blocks(len(pairs), WIDE_TILE):  # C above its diagonal, half of it
            above = numbers[:, : columns.start] @ pairs[: columns.start, columns]
            above += numbers[:, columns] @ np.triu(pairs[columns, columns])
            products += np.einsum("bg,bg->b", above, numbers[:, columns])
        return np.asarray(2.0 * scale * products + constant)

    return Signed(of_signs, pairs.shape[0], True, rounding, pairs.shape[0])


# ------------------------------------------------------------------ comonotone labels

FEWEST_CLUSTERS = 20  #: Effective number; with fewer, signs reject calibrated models too often.

_SEED = 20  # seed of the draws that decide, the same for every test
_MOST, _FEWEST, _NUMBERS = 256, 32, 2**31  # draws, and numbers that they may take
_BLOCK = 16  # draws at a time
_UNSEEN = 5.0  # rare surprises expected in fewer clusters may be absent from all
_FINE = 40.0  # grid steps per standard deviation, times the root of the number of clusters
_LONGEST = 2**23  # points of the grid
_ROUNDING = 1e-11  # rounding of convolved probabilities


@dataclass(frozen=True, eq=False)
class Comonotone:
    """The labels of a form at given quantiles."""

    sampler: LabelSampler
    order: Places | None  #: The classes of every row by their scores, (n, m); None: by index.

    @classmethod
    def of(cls, form: HasSigns) -> Comonotone:
        """Sort the classes of every row by their scores."""
        if form.row_scores is None:
            return cls(LabelSampler.of(form.probs, 0), None)
        order = np.argsort(form.row_scores, axis=1, kind="stable")
        return cls(LabelSampler.of(np.take_along_axis(form.probs, order, axis=1), 0), order)

    def labels(self, quantiles: Array) -> Labels:
        """Return the labels (B, n) at quantiles (B, n)."""
        found = self.sampler.at(quantiles)
        return found if self.order is None else self.order[np.arange(found.shape[1]), found]


class Atoms(NamedTuple):
    """The laws of comonotone sums of clusters, as atoms, in ascending order within a cluster."""

    clusters: Places
    values: Array
    chances: Array

    @classmethod
    def of(cls, scores: Array, probs: Array, codes: Places, count: int) -> Atoms:
        """Return the law of Σ_{i∈g} s_i(y_i) less its mean, from scores and probabilities (n, m)."""
        order = np.argsort(scores, axis=1, kind="stable")
        ascending, chances = (np.take_along_axis(each, order, axis=1) for each in (scores, probs))
        quantiles = np.cumsum(chances, axis=1)[:, :-1].ravel().clip(max=1.0)
        steps, own = np.diff(ascending, axis=1).ravel(), np.repeat(codes, scores.shape[1] - 1)
        # A cluster starts at its lowest sum, and rises by a row's step at a quantile of that row.
        moves = np.flatnonzero((steps > 0.0) & (quantiles < 1.0))
        places = np.lexsort((quantiles[moves], own[moves]))
        own = np.concatenate([np.arange(count), own[moves][places]])
        order = np.argsort(own, kind="stable")  # the start of each cluster before its steps
        own = own[order]
        starts = np.concatenate([np.zeros(count), quantiles[moves][places]])[order]
        first = np.flatnonzero(np.diff(own, prepend=-1))
        total = np.cumsum(np.concatenate([np.zeros(count), steps[moves][places]])[order])
        values = total - np.repeat(total[first], np.diff(np.append(first, len(own))))
        ends = np.append(starts[1:], 1.0)
        ends[first[1:] - 1] = 1.0
        share = ends - starts
        return cls(own, values - np.bincount(own, share * values, count)[own], share)

    @property
    def effective(self) -> float:
        """Effective number of clusters."""
        squares = (self.values / (np.abs(self.values).max(initial=0.0) or 1.0)) ** 2
        fourth = float(self.chances @ squares**2)
        return float(self.chances @ squares) ** 2 / fourth if fourth > 0.0 else 0.0

    def superquantile(self, excess: float, sign: float) -> float:
        """Bound P(sign · Σ_g S_g ≥ sign · excess) for all sums at most these in the convex order.

        With S at most S⁺, P(S ≥ t) ≤ sup {a: the mean of the largest share a of S⁺ is at least t}. The
        law of the sum is convolved on a grid: an atom between two points is split between them with its
        mean unchanged, which makes the law larger in the convex order, never smaller.
        """
        values, target = sign * self.values, sign * excess
        first = np.flatnonzero(np.diff(self.clusters, prepend=-1))
        deviation = float(np.sqrt(self.chances @ values**2))
        if deviation == 0.0:
            return 1.0 if target <= 0.0 else _ROUNDING
        least = np.minimum.reduceat(values, first)
        width = float((np.maximum.reduceat(values, first) - least).sum())
        step = max(deviation / (_FINE * len(first) ** 0.5), width / _LONGEST)
        target -= 1e-9 * (deviation + abs(target))  # ties are included
        laws = []
        for cut, start in zip(np.split(np.arange(len(values)), first[1:]), least, strict=True):
            place = (values[cut] - start) / step
            below = np.floor(place).astype(np.intp)
            masses = np.zeros(int(below.max()) + 2)
            np.add.at(masses, below, self.chances[cut] * (1.0 - (place - below)))
            np.add.at(masses, below + 1, self.chances[cut] * (place - below))
            laws.append(masses)
        while len(laws) > 1:  # neighbours first, so that convolutions have about equal lengths
            pairs = zip(laws[::2], laws[1::2], strict=False)
            laws = [scipy.signal.convolve(*p).clip(min=0.0) for p in pairs] + laws[len(laws) // 2 * 2 :]
        masses = laws[0][::-1]
        points = float(least.sum()) + step * np.arange(len(masses))[::-1]
        gained = np.cumsum(masses * (points - target))  # of the largest share, from its mean on
        if gained[-1] >= 0.0:
            return 1.0
        reached = np.flatnonzero(gained >= 0.0)
        if not len(reached):
            return _ROUNDING
        last = int(reached[-1])
        more = float(gained[last]) / (target - float(points[last + 1]))
        return min(float(masses[: last + 1].sum()) + more + _ROUNDING, 1.0)


def effective_clusters(name: str, form: HasSigns, clusters: Clusters, labels: Labels) -> float:
    """Return the effective number of clusters that a statistic depends on.

    Raises
    ------
    InputError
        If a bin that counts by itself holds too few clusters for signs to be of use.
    """
    if form.effective is not None:
        return form.effective
    if form.row_scores is not None:
        here = Atoms.of(form.row_scores, form.probs, clusters.codes, clusters.count).effective
    else:
        here = _by_draws(name, form, clusters)
    return here if here < FEWEST_CLUSTERS else min(here, _of_rare_rows(form, clusters, labels))


def _by_draws(name: str, form: Any, clusters: Clusters) -> float:
    n, m = form.probs.shape
    width = form.features.shape[1] if hasattr(form, "features") else 1  # numbers per row and class
    count = int(np.clip(_NUMBERS // (n * m * width), _FEWEST, _MOST))
    stream, drawn = generator(_SEED), form.comonotone()
    squares, fourth = np.zeros((2, clusters.count))
    of_a_bin: list[float] = []
    for part in blocks(count, _BLOCK):
        # Stratify: over all draws, the quantiles of a cluster fall one into each of equal intervals.
        numbers = stream.random((part.stop - part.start, clusters.count))
        numbers += np.arange(part.start, part.stop)[:, None]
        labels = drawn.labels((numbers / count)[:, clusters.codes])
        found = form.squares_of(labels, clusters)
        squares += found.sum(axis=0)
        fourth += (found * found).sum(axis=0)
        of_a_bin.append(form.clusters_of_a_bin(labels[0].astype(np.intp), clusters))
    largest = float(squares.max(initial=0.0)) or 1.0
    total = float((fourth / largest**2).sum())
    effective = float((squares / largest).sum()) ** 2 / total / count if total > 0.0 else 0.0
    here = float(np.mean(of_a_bin))
    if here < form.fewest_of_a_bin:
        found = f"a bin of {quoted(name)} holds {here:.1f} clusters in effect, on average"
        do = f"take fewer bins, 'ece_squared', or {Argument('null', 'one_per_cluster')}"
        raise InputError(f"{found}, too few for their signs; {do}.")
    return min(effective, here)


def _of_rare_rows(form: HasSigns, clusters: Clusters, labels: Labels) -> float:
    """Return the effective clusters with rare surprises, if these could outweigh all that was observed.

    The result is infinite if they could not. If a form is not a sum of one score per row, its errors
    are those of the labels: a surprise moves one entry up and one down.
    """
    probs, codes, count = form.probs, clusters.codes, clusters.count
    rows, chances = np.arange(len(probs)), 1.0 - probs.max(axis=1)
    if form.row_scores is not None:
        table, scale = form.row_scores, 1.0
        errors = (table[rows, form.cells_of(labels)] - np.einsum("ik,ik->i", probs, table))[:, None]
    else:
        weights, scale = clusters.weights, 2.0
        table, errors = np.column_stack([np.zeros(len(probs)), weights]), -probs * weights[:, None]
        errors[rows, form.cells_of(labels)] += weights
        probs = np.column_stack([1.0 - chances, chances])  # of no surprise, and of one
    seen = sum(float(np.square(np.bincount(codes, each, count)).sum()) for each in errors.T)
    most = float(np.bincount(codes, np.ptp(table, axis=1), count).max()) ** 2
    if scale * _UNSEEN * most <= seen:
        return np.inf
    order = np.lexsort((chances, codes))
    first = np.diff(codes[order], prepend=-1) > 0
    rises = np.diff(chances[order], prepend=0.0)  # of the probability that a cluster is surprised
    rises[first] = chances[order][first]
    upwards = np.argsort(chances[order], kind="stable")
    rare = order[upwards][: np.searchsorted(np.cumsum(rises[upwards]), _UNSEEN, "right")]
    atoms = Atoms.of(table[rare], probs[rare], codes[rare], count)
    return atoms.effective if scale * float(atoms.chances @ atoms.values**2) > seen else np.inf
