"""Comonotone labels: all rows of a cluster are surprised together, as much as their chances allow.

One uniform number u is drawn a cluster, and every row takes the label at that quantile, its classes in
the order of the statistic's own scores: S_g, what a cluster adds, is then a function of u alone. Of all
ways in which rows of a cluster may depend on each other it has the widest law in the convex order
(Denuit et al. 2002, "The concept of comonotonicity in actuarial science and finance: theory"). Of what
is no sum of one score a row, classes are in the order of their index, by convention.

How many clusters count in effect, (Σ_g E|S_g|²)² / Σ_g E|S_g|⁴ of such labels, depends on predictions,
weights and clusters alone: of rare events in large clusters few do, whatever was observed. What they do
not tell is whether errors of common rows cancel inside clusters, so that rare ones carry what is left.
So the sums that were observed are looked at, too: it can only make the number smaller.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from caltest._tiles import blocks
from caltest._visible import quoted
from caltest.clusters import Clusters
from caltest.exceptions import InputError
from caltest.forms.base import Array, Labels
from caltest.forms.signs import HasSigns
from caltest.laws.classes import LabelSampler
from caltest.sampling import generator

FEWEST_CLUSTERS = 20  #: Effective ones; with fewer, signs reject calibrated models too often.

_SEED = 20  # of the draws that decide: the same whatever is tested
_MOST, _FEWEST, _NUMBERS = 256, 32, 2**31  # draws, and numbers that they may take
_BLOCK = 16  # draws at a time
_UNSEEN = 5.0  # rare surprises that are expected in so many clusters may be absent from all
_FINE = 40.0  # steps of the grid in a standard deviation, times the root of the number of clusters
_LONGEST = 2**23  # points of the grid
_ROUNDING = 1e-11  # of probabilities that were convolved


@dataclass(frozen=True, eq=False)
class Comonotone:
    """The labels of a form at given quantiles."""

    sampler: LabelSampler
    order: NDArray[np.intp] | None  #: The classes of every row by their scores, (n, m); None: by index.

    @classmethod
    def of(cls, form: HasSigns) -> Comonotone:
        """Put the classes of every row in order."""
        if form.row_scores is None:
            return cls(LabelSampler.of(form.probs, 0), None)
        order = np.argsort(form.row_scores, axis=1, kind="stable")
        return cls(LabelSampler.of(np.take_along_axis(form.probs, order, axis=1), 0), order)

    def labels(self, quantiles: Array) -> Labels:
        """Return the labels (B, n) at quantiles (B, n)."""
        found = self.sampler.at(quantiles)
        return found if self.order is None else self.order[np.arange(found.shape[1]), found]


class Atoms(NamedTuple):
    """The laws of comonotone sums of clusters: atom by atom, those of a cluster in ascending order."""

    clusters: NDArray[np.intp]
    values: Array
    chances: Array

    @classmethod
    def of(cls, scores: Array, probs: Array, codes: NDArray[np.intp], count: int) -> Atoms:
        """Return the law of Σ_{i∈g} s_i(y_i) less its mean, from scores and chances (n, m)."""
        order = np.argsort(scores, axis=1, kind="stable")
        ascending, chances = (np.take_along_axis(each, order, axis=1) for each in (scores, probs))
        quantiles = np.cumsum(chances, axis=1)[:, :-1].ravel().clip(max=1.0)
        steps, own = np.diff(ascending, axis=1).ravel(), np.repeat(codes, scores.shape[1] - 1)
        # A cluster starts at its lowest sum, and climbs by a row's step at a quantile of that row.
        moves = np.flatnonzero((steps > 0.0) & (quantiles < 1.0))
        places = np.lexsort((quantiles[moves], own[moves]))
        own = np.concatenate([np.arange(count), own[moves][places]])
        order = np.argsort(own, kind="stable")  # the start of each before its steps
        own = own[order]
        starts = np.concatenate([np.zeros(count), quantiles[moves][places]])[order]
        climbed = np.concatenate([np.zeros(count), steps[moves][places]])[order]
        first = np.flatnonzero(np.diff(own, prepend=-1))
        total = np.cumsum(climbed)
        values = total - np.repeat(total[first], np.diff(np.append(first, len(own))))
        ends = np.append(starts[1:], 1.0)
        ends[first[1:] - 1] = 1.0
        share = ends - starts
        means = np.bincount(own, share * values, count)
        return cls(own, values - means[own], share)

    @property
    def effective(self) -> float:
        """Effective number of clusters."""
        squares = (self.values / (np.abs(self.values).max(initial=0.0) or 1.0)) ** 2
        fourth = float(self.chances @ squares**2)
        return float(self.chances @ squares) ** 2 / fourth if fourth > 0.0 else 0.0

    def superquantile(self, excess: float, sign: float) -> float:
        """Bound P(sign · Σ_g S_g ≥ sign · excess) for all sums at most these in the convex order.

        With S at most S⁺, P(S ≥ t) ≤ sup {a: the mean of the largest share a of S⁺ is at least t}. The
        law of the sum is convolved on a grid: an atom between two points is split between these so that
        its mean stays, which makes the law larger in the convex order, never smaller.
        """
        from scipy.signal import convolve  # slow to import

        values, target = sign * self.values, sign * excess
        first = np.flatnonzero(np.diff(self.clusters, prepend=-1))
        deviation = float(np.sqrt(self.chances @ values**2))
        if deviation == 0.0:
            return 1.0 if target <= 0.0 else _ROUNDING
        least = np.minimum.reduceat(values, first)
        width = float((np.maximum.reduceat(values, first) - least).sum())
        step = max(deviation / (_FINE * len(first) ** 0.5), width / _LONGEST)
        target -= 1e-9 * (deviation + abs(target))  # ties count
        laws = []
        for cut, start in zip(np.split(np.arange(len(values)), first[1:]), least, strict=True):
            place = (values[cut] - start) / step
            below = np.floor(place).astype(np.intp)
            masses = np.zeros(int(below.max()) + 2)
            np.add.at(masses, below, self.chances[cut] * (1.0 - (place - below)))
            np.add.at(masses, below + 1, self.chances[cut] * (place - below))
            laws.append(masses)
        while len(laws) > 1:  # neighbours first, so that what is convolved is of one length, about
            pairs = zip(laws[::2], laws[1::2], strict=False)
            laws = [convolve(*p).clip(min=0.0) for p in pairs] + laws[len(laws) // 2 * 2 :]
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
    """Return how many clusters a statistic depends on in effect.

    Raises
    ------
    InputError
        If a bin that counts by itself holds too few clusters for signs to be of use.
    """
    if form.row_scores is not None:
        here = Atoms.of(form.row_scores, form.probs, clusters.codes, clusters.count).effective
    else:
        here = _by_draws(name, form, clusters)
    return here if here < FEWEST_CLUSTERS else min(here, _of_rare_rows(form, clusters, labels))


def _by_draws(name: str, form: HasSigns, clusters: Clusters) -> float:
    n, m = form.probs.shape
    count = int(np.clip(_NUMBERS // (n * m * form.features_of_a_class), _FEWEST, _MOST))
    stream, drawn = generator(_SEED), Comonotone.of(form)
    squares, fourth = np.zeros((2, clusters.count))
    of_a_bin: list[float] = []
    for part in blocks(count, _BLOCK):
        # The quantiles of a cluster over all draws are one in each of as many equal intervals.
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
        raise InputError(
            f"a bin of {quoted(name)} holds {here:.1f} clusters in effect, on average, "
            "too few for signs of clusters; take fewer bins, 'ece_squared', or "
            "null='one_per_cluster'."
        )
    return min(effective, here)


def _of_rare_rows(form: HasSigns, clusters: Clusters, labels: Labels) -> float:
    """Return how many clusters carry the rare surprises, if these could outweigh all that was observed.

    Infinite if they could not. Of what is no sum of one score a row, errors are those of the labels:
    a surprise moves one entry up and one down.
    """
    probs, codes, count = form.probs, clusters.codes, clusters.count
    rows, chances = np.arange(len(probs)), 1.0 - probs.max(axis=1)
    if form.row_scores is not None:
        table, scale = form.row_scores, 1.0
        errors = (table[rows, labels] - np.einsum("ik,ik->i", probs, table))[:, None]
    else:
        weights, scale = clusters.weights, 2.0
        table, errors = np.column_stack([np.zeros(len(probs)), weights]), -probs * weights[:, None]
        errors[rows, labels] += weights
        probs = np.column_stack([1.0 - chances, chances])  # of no surprise, and of one
    seen = sum(float(np.square(np.bincount(codes, each, count)).sum()) for each in errors.T)
    most = float(np.bincount(codes, np.ptp(table, axis=1), count).max()) ** 2
    if scale * _UNSEEN * most <= seen:
        return np.inf
    order = np.lexsort((chances, codes))
    first = np.diff(codes[order], prepend=-1) > 0
    rises = np.diff(chances[order], prepend=0.0)  # of the chance that a cluster is surprised
    rises[first] = chances[order][first]
    upwards = np.argsort(chances[order], kind="stable")
    rare = order[upwards][: np.searchsorted(np.cumsum(rises[upwards]), _UNSEEN, "right")]
    atoms = Atoms.of(table[rare], probs[rare], codes[rare], count)
    return atoms.effective if scale * float(atoms.chances @ atoms.values**2) > seen else np.inf
