"""Forms of the probability integral transform (PIT): where outcomes lie in what was predicted of them.

Of a law with distribution function F the score of an outcome at a level t is

    s_t(y) = clip((t − F(y−)) / (F(y) − F(y−)), 0, 1) − t,

which is 0 on average for every law, with atoms and without (Czado, Gneiting and Held 2009, Equation 2,
whose histogram it makes). Without atoms it is 1{F(y) ≤ t} − t. Nothing is drawn in addition.
"""

# ruff: noqa: D102 -- a method that overrides another is documented where it is first defined.

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from caltest._parallel import ALONE, Workers
from caltest.clusters import Clusters
from caltest.forms.base import Array, Moments
from caltest.forms.sums import OfNumbers
from caltest.laws import Outcomes, Predictive
from caltest.sampling import child_seed
from caltest.scores import ALL, Scores

STEPS = 200  #: The levels are multiples of 1/200, among which are the ends of usual intervals.
LEVELS = np.arange(1, STEPS) / STEPS
_ATOM = 1e-6  # less probability at one place counts as none
_ROUNDED = 1e-12
_DRAWN = 400  # of which moments are taken, whatever is observed


@dataclass(frozen=True, eq=False)
class Pit(Scores):
    """w_i s_t(y_i) at all levels t."""

    law: Predictive
    weights: Array  #: w, (n,).

    size = len(LEVELS)

    @property
    def n_samples(self) -> int:
        return len(self.weights)

    def sums(self, outcomes: Outcomes, rows: slice = ALL) -> Array:
        law, weights = self.law, self.weights
        if rows != ALL:
            law, weights = law.take(rows), weights[rows]
        of_draws = np.zeros(len(weights), dtype=np.intp)
        return _summed(*law.cdf(outcomes), weights, of_draws, len(outcomes))

    def by_cluster(self, outcomes: Outcomes, clusters: Clusters) -> Any:
        return _summed(*self.law.cdf(outcomes), self.weights, clusters.codes, clusters.count)


def _summed(below: Array, at: Array, weights: Array, owners: Any, count: int) -> Array:
    """Return sums of scores, (count, T), of outcomes (B, n): of row i of draw b, owners[i] + b."""
    from caltest.loops import rows as _loops

    slopes, starts = np.zeros((count, STEPS)), np.zeros((count, STEPS))
    below, at = np.atleast_2d(below), np.atleast_2d(at)
    _loops.rising_scores(below, at, weights, owners, _ATOM, slopes, starts)
    whole = np.bincount(owners, weights, count) if count > len(at) else weights.sum()
    rising, begun = (np.cumsum(found[:, :-1], axis=1) for found in (slopes, starts))
    return np.asarray(rising * LEVELS + begun - np.multiply.outer(whole, LEVELS))


@dataclass(frozen=True, eq=False)
class PitForm(OfNumbers):
    """T = g(S_t / Σ w), for S_t the sums of scores at the levels t."""

    law: Predictive
    weights: Array  #: (n,).
    tilts: Array | None  #: What scores are multiplied by, (n,); None: by 1.

    @cached_property
    def scores(self) -> Pit:
        return Pit(self.law, self.weights if self.tilts is None else self.weights * self.tilts)

    @property
    def by_blocks(self) -> bool:
        return False

    @property
    def resolution(self) -> float:
        """Rounding of a mean score, which is at most 1; of an atom, slopes cancel."""
        return _ROUNDED

    @property
    def direction(self) -> Array:
        """Of a distance: the mean over the levels, which rises as outcomes fall."""
        return np.full(len(LEVELS), 1.0 / STEPS)

    def reduce(self, sums: Array, fixed: Array) -> Array:
        return self.of_shares(sums / self.weights.sum())

    @abstractmethod
    def of_shares(self, shares: Array) -> Array:
        """Return the (B,) values from mean scores (B, T)."""


@dataclass(frozen=True, eq=False)
class PitDistance(PitForm):
    """A distance of the PIT from uniform: the same if all sums are turned."""

    distance: Callable[[Array], Array]

    def of_shares(self, shares: Array) -> Array:
        return self.distance(shares)


@dataclass(frozen=True, eq=False)
class PitMean(PitForm):
    """A weighted mean of the scores over the levels, with a sign."""

    of_levels: Array  #: The weights of the levels, (T,).

    even: ClassVar[bool] = False

    @property
    def direction(self) -> Array:
        return self.of_levels

    def of_shares(self, shares: Array) -> Array:
        return np.asarray(shares @ self.of_levels)


@dataclass(frozen=True, eq=False)
class DrawnMoments:
    """Moments of forms of one law from draws that are the same whatever is observed."""

    forms: tuple[PitForm, ...]

    def of(self, place: int, workers: Workers = ALONE) -> Moments:
        """Return those of one form."""
        return self._every[place]

    @cached_property
    def _every(self) -> list[Moments]:
        sampler, values = self.forms[0].law.sampler(child_seed(0, _DRAWN)), []
        for start in range(0, _DRAWN, sampler.block):
            drawn = sampler.draw(start, min(start + sampler.block, _DRAWN))
            values.append(np.stack([form.of_labels(drawn) for form in self.forms]))
        every = []
        for own in np.concatenate(values, axis=1):
            centred = own - own.mean()
            variance = float(centred @ centred) / (_DRAWN - 1)
            every.append(Moments.of_cumulants(float(own.mean()), variance, float(np.mean(centred**3))))
        return every
