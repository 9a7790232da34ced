"""Forms of the probability integral transform (PIT): where outcomes lie in what was predicted of them.

Of a law with distribution function F the score of an outcome at a level t is

    s_t(y) = clip((t − F(y−)) / (F(y) − F(y−)), 0, 1) − t,

which is 0 on average for every law, with atoms and without (Czado, Gneiting and Held 2009, Equation 2,
whose histogram it makes). Without atoms it is 1{F(y) ≤ t} − t. Nothing is drawn in addition.

Quantile forecasts are looked at at their own levels: an outcome that equals a quantile leaves open in
which of several cells it lies, and so a range of every sum. What counts is the value in the range that
speaks for the forecast most, see :class:`caltest.predictive.Quantiles`.
"""

# ruff: noqa: D102 -- a method that overrides another is documented where it is first defined.

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from caltest._parallel import ALONE, Workers
from caltest.clusters import Clusters
from caltest.exceptions import InputError
from caltest.forms.base import Array, Moments
from caltest.forms.sums import OfNumbers
from caltest.laws import Outcomes, Predictive, Quantiles
from caltest.sampling import child_seed
from caltest.scores import ALL, Scores

STEPS = 200  #: The levels are multiples of 1/200, among which are the ends of usual intervals.
LEVELS = np.arange(1, STEPS) / STEPS
_ATOM = 1e-6  # less probability at one place counts as none
_ROUNDED = 1e-12
_DRAWN = 400  # of which moments are taken, whatever is observed


def levels_of(law: Predictive) -> Array:
    """Return the levels at which the PIT of a law is looked at."""
    return LEVELS if law.levels is None else law.levels


def steps_of(levels: Array) -> Array:
    """Return what levels count in a mean over (0, 1), in steps: half the way between neighbours."""
    ends = np.concatenate([[0.0], levels, [1.0]])
    return np.asarray(np.round(0.5 * STEPS * (ends[2:] - ends[:-2]), 9))


def _drawn(law: Predictive) -> Iterator[Outcomes]:
    """Yield draws, in blocks, that are the same whatever is observed."""
    sampler = law.sampler(child_seed(0, _DRAWN))
    for start in range(0, _DRAWN, sampler.block):
        yield sampler.draw(start, min(start + sampler.block, _DRAWN))


@dataclass(frozen=True, eq=False)
class Pit(Scores):
    """w_i s_t(y_i) at all levels t."""

    law: Predictive
    weights: Array  #: w, (n,).
    steps: int = STEPS  #: The levels are multiples of 1/steps.

    @property
    def size(self) -> int:
        return self.steps - 1

    @property
    def n_samples(self) -> int:
        return len(self.weights)

    def sums(self, outcomes: Outcomes, rows: slice = ALL) -> Array:
        law, weights = self.law, self.weights
        if rows != ALL:
            law, weights = law.take(rows), weights[rows]
        of_draws = np.zeros(len(weights), dtype=np.intp)
        return _summed(*law.cdf(outcomes), weights, of_draws, len(outcomes), self.steps)

    def by_cluster(self, outcomes: Outcomes, clusters: Clusters) -> Any:
        found = self.law.cdf(outcomes)
        return _summed(*found, self.weights, clusters.codes, clusters.count, self.steps)


def _summed(below: Array, at: Array, weights: Array, owners: Any, count: int, steps: int) -> Array:
    """Return sums of scores, (count, T), of outcomes (B, n): of row i of draw b, owners[i] + b."""
    from caltest.loops import rows as _loops

    slopes, starts = np.zeros((count, steps)), np.zeros((count, steps))
    below, at = np.atleast_2d(below), np.atleast_2d(at)
    _loops.rising_scores(below, at, weights, owners, _ATOM, slopes, starts)
    whole = np.bincount(owners, weights, count) if count > len(at) else weights.sum()
    rising, begun = (np.cumsum(found[:, :-1], axis=1) for found in (slopes, starts))
    levels = np.arange(1, steps) / steps
    return np.asarray(rising * levels + begun - np.multiply.outer(whole, levels))


@dataclass(frozen=True, eq=False)
class Ranges(Scores):
    """w_i s_t(y_i), combined over stated levels t: the least that open cells allow, and the most."""

    law: Quantiles
    weights: Array  #: w, (n,).
    of_levels: Array  #: What is combined, (T, J).

    @property
    def n_samples(self) -> int:
        return len(self.weights)

    @property
    def size(self) -> int:
        return 2 * int(self.of_levels.shape[1])

    @cached_property
    def _tables(self) -> tuple[Array, Array]:
        levels = self.law.levels
        reached = np.tri(len(levels) + 1, len(levels), -1) == 0.0  # c ≤ k
        return self.law.over_cells((reached - levels) @ self.of_levels)

    def sums(self, outcomes: Outcomes, rows: slice = ALL) -> Array:
        least, most = self._tables
        count, codes = len(outcomes), len(least)
        places = (outcomes + codes * np.arange(count)[:, None]).ravel()

        def counted(weights: Array) -> Array:
            each = np.broadcast_to(weights[rows], outcomes.shape).ravel()
            found = np.bincount(places, each, count * codes).reshape(count, codes)
            return np.asarray(found, dtype=np.float64)

        up, down = counted(self.weights.clip(min=0.0)), counted(-self.weights.clip(max=0.0))
        return np.hstack([up @ least - down @ most, up @ most - down @ least])

    def by_cluster(self, outcomes: Outcomes, clusters: Clusters) -> Any:
        raise InputError("clusters of quantile forecasts need a lens, such as 'quantile:0.5'.")


@dataclass(frozen=True, eq=False)
class PitForm(OfNumbers):
    """T = g(S_t / Σ w), for S_t the sums of scores at the levels t, or combinations of these."""

    law: Predictive
    weights: Array  #: (n,).
    tilts: Array | None  #: What scores are multiplied by, (n,); None: by 1.
    of_levels: Array | None  #: What is combined, (T,) or (T, J); None: every level is looked at.

    @cached_property
    def scores(self) -> Pit | Ranges:
        weights = self.weights if self.tilts is None else self.weights * self.tilts
        if not isinstance(self.law, Quantiles):
            return Pit(self.law, weights)
        levels = self.law.levels
        combined = np.eye(len(levels)) if self.of_levels is None else self.of_levels
        return Ranges(self.law, weights, combined.reshape(len(levels), -1))

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
        shares = sums / self.weights.sum()
        if isinstance(self.scores, Ranges):
            return self.of_shares(np.clip(self.centre, *np.split(shares, 2, axis=1)))
        return self.of_shares(shares if self.of_levels is None else shares @ self.of_levels)

    @property
    @abstractmethod
    def centre(self) -> float:
        """The mean score that speaks for the forecast most."""

    @abstractmethod
    def of_shares(self, shares: Array) -> Array:
        """Return the (B,) values from mean scores (B, T), or (B, J) combined ones."""


@dataclass(frozen=True, eq=False)
class PitDistance(PitForm):
    """A distance of the PIT from uniform: the same if all sums are turned."""

    distance: Callable[[Array], Array]

    centre: ClassVar[float] = 0.0

    def of_shares(self, shares: Array) -> Array:
        return self.distance(shares)


@dataclass(frozen=True, eq=False)
class PitMean(PitForm):
    """A weighted mean of the scores over the levels, with a sign."""

    of_levels: Array

    even: ClassVar[bool] = False

    @property
    def direction(self) -> Array:
        return self.of_levels

    @cached_property
    def centre(self) -> float:
        """The median of draws: neither side of it is unlikely, as 0 may be where levels are few."""
        sums = np.concatenate([self.scores.sums(drawn)[:, 0] for drawn in _drawn(self.law)])
        return float(np.quantile(sums, 0.5, method="inverted_cdf") / self.weights.sum())

    def of_shares(self, shares: Array) -> Array:
        return shares.reshape(len(shares))


@dataclass(frozen=True, eq=False)
class DrawnMoments:
    """Moments of forms of one law from draws that are the same whatever is observed."""

    forms: tuple[PitForm, ...]

    def of(self, place: int, workers: Workers = ALONE) -> Moments:
        """Return those of one form."""
        return self._every[place]

    @cached_property
    def _every(self) -> list[Moments]:
        values = [
            np.stack([form.of_labels(drawn) for form in self.forms])
            for drawn in _drawn(self.forms[0].law)
        ]
        every = []
        for own in np.concatenate(values, axis=1):
            centred = own - own.mean()
            variance = float(centred @ centred) / (_DRAWN - 1)
            every.append(Moments.of_cumulants(float(own.mean()), variance, float(np.mean(centred**3))))
        return every
