"""Forms of predicted distributions of numbers: means, the PIT, and pairs of them by kernels."""

# ruff: noqa: D102 -- a method that overrides another is documented where it is first defined.

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, TypeAlias

import numpy as np

from caltest._parallel import ALONE, Workers
from caltest._sums import Mask, Places, blocks
from caltest.clusters import Clusters
from caltest.exceptions import Argument, InputError
from caltest.forms import base
from caltest.forms.base import ROUNDING, Array, Labels
from caltest.forms.signs import Comonotone, Signed, signed_pairs
from caltest.forms.sums import Sums, summed_cumulants
from caltest.laws import GaussianPredictions, Outcomes, Pool, Predictive, Quantiles
from caltest.sampling import child_seed
from caltest.scores import ALL, Function, Scores, steps_of

# ------------------------------------------------------------------ means

_TAIL = 0.5 ** np.arange(20, 4, -1)
#: Ends of cells of levels, which act as classes; the rarest have probability one in a million.
_ENDS = np.concatenate([[0.0], _TAIL, np.arange(2, 31) / 32, 1.0 - _TAIL[::-1], [1.0]])
_LEAST = 2.0**-53  # smallest level of a quantile


class NumberForm(Sums):
    """A form of predicted distributions of numbers, whose comonotone draws are their quantiles."""

    law: Predictive

    by_blocks = False

    #: Coefficients that turn the sums into one number, (K,); None if there are none.
    direction: Array | None = np.ones(1)

    @property
    def probs(self) -> Array:  # type: ignore[override]
        """Probabilities of the cells, (n, cells)."""
        return np.broadcast_to(np.diff(_ENDS), (self.law.n_samples, len(_ENDS) - 1))

    def cells_of(self, labels: Any) -> Places:
        """Return the cells of numbers; an atom belongs to the cell at its middle."""
        middle = np.mean(self.law.cdf(labels), axis=0)
        return np.asarray(np.searchsorted(_ENDS[1:-1], middle, side="right"))

    @cached_property
    def row_scores(self) -> Array | None:  # type: ignore[override]
        """Scores at the middles of the cells."""
        law, n = self.law, self.law.n_samples
        if law.dimension is not None:
            do = f"give {Argument('null', 'one_per_cluster')}, or an entry of the vectors at a time"
            raise InputError(f"signs of clusters need quantiles, which vectors do not have; {do}.")
        if self.direction is None:
            return None
        alone, middles = Clusters(np.arange(n), n), 0.5 * (_ENDS[1:] + _ENDS[:-1])
        at = (law.quantile(np.full(n, middle)) for middle in middles)
        return np.column_stack([self.scores.by_cluster(y, alone) @ self.direction for y in at])

    def comonotone(self) -> Comonotone:
        cells, scores = Comonotone.of(self), self.row_scores
        never = np.zeros(self.probs.shape, bool)
        falls = never if scores is None else np.gradient(scores, axis=1) < 0.0
        return ComonotoneNumbers(cells.sampler, cells.order, self.law, falls)


@dataclass(frozen=True, eq=False)
class ComonotoneNumbers(Comonotone):
    """Numbers at quantiles: first a cell of levels, in the order of cells, then the level inside."""

    law: Predictive
    falls: Mask  #: Whether scores fall as levels rise, (n, cells).

    def labels(self, quantiles: Array) -> Any:
        drawn, rows = self.sampler.at(quantiles), np.arange(self.law.n_samples)
        inside = quantiles - np.pad(self.sampler.cumulative, ((0, 0), (1, 0)))[rows, drawn]
        cells = np.asarray(drawn if self.order is None else self.order[rows, drawn], dtype=np.intp)
        levels = np.where(self.falls[rows, cells], _ENDS[cells + 1] - inside, _ENDS[cells] + inside)
        return self.law.quantile(levels.clip(_LEAST, 1.0 - _LEAST))


class MeanScore(base.HasNormalLimit, NumberForm):
    """A mean of scores, whose moments are sums over outcomes of every row."""

    even: ClassVar[bool] = False

    @property
    def has_limit(self) -> bool:  # type: ignore[override]
        return self.law.dimension is None and not isinstance(self.law, Quantiles)

    @cached_property
    def _terms(self) -> tuple[Array, Array]:
        """Terms of T for rows at some outcomes, and the masses of these, (n, K)."""
        alone = Clusters(np.arange(len(self.probs)), len(self.probs))
        outcomes, masses = self.law.expecting()
        terms = [self.reduce(self.scores.by_cluster(y, alone), self.fixed) for y in outcomes]
        return np.where(masses > 0.0, terms, 0.0).T, masses.T

    def cumulant_generator(self, t: float) -> tuple[float, float, float]:
        return summed_cumulants(*self._terms, t)


@dataclass(frozen=True, eq=False)
class MeanOfNumbers(MeanScore):
    """T = a mean of scores over predicted distributions of numbers."""

    law: Predictive  #: The predicted distributions f_i.
    weights: Array  #: (n,).
    of_rows: Callable[[Array], Array]  #: Takes outcomes (B, n, …), returns scores (B, n).
    resolution: float = 0.0

    @cached_property
    def scores(self) -> Function:
        """The mean, as scores."""
        shares = self.weights / self.weights.sum()
        return Function(lambda outcomes: self.of_rows(outcomes)[..., None], shares)

    def reduce(self, sums: Array, fixed: Array) -> Array:
        return sums[:, 0]


class MeanSurprise(MeanOfNumbers):
    """T = the mean of −log f_i(x_i) − H(f_i)."""

    @classmethod
    def of(cls, law: Predictive, weights: Array) -> MeanSurprise:
        """Compute the entropies."""
        entropy = law.entropy()
        rounding = ROUNDING * (1.0 + abs(float(entropy.mean())))
        return cls(law, weights, lambda x: -law.log_density(x) - entropy, rounding)


@dataclass(frozen=True, eq=False)
class MeanSquare(base.HasChiSquare, MeanOfNumbers):
    """T = the mean of factor · (x_i − μ_i)ᵀ C_i⁻¹ (x_i − μ_i) + offset, for Gaussian predictions."""

    factor: float = 1.0  #: Positive.
    offset: float = 0.0

    @classmethod
    def of(
        cls, law: GaussianPredictions, weights: Array, factor: float = 1.0, offset: float = 0.0
    ) -> MeanOfNumbers:
        """Return the form; with unequal weights, the law of the mean is unknown."""

        def of_rows(outcomes: Array) -> Array:
            return factor * law.squares(outcomes) + offset

        if steps_of(weights) is not None:
            return MeanOfNumbers(law, weights, of_rows)
        return cls(law, weights, of_rows, factor=factor, offset=offset)

    @property
    def chi_square(self) -> base.ChiSquare:
        """The law of the sum: n·d squares of independent standard normal variables."""
        n, d = self.law.n_samples, self.law.dimension or 1
        scale = n / self.factor
        return base.ChiSquare(n * d, scale, -self.offset * scale, exact=True)


# ------------------------------------------------------------------ probability integral transform
#
# It locates outcomes within their predicted distributions. For a law with distribution function F, the
# score of an outcome at a level t is
#
#     s_t(y) = clip((t − F(y−)) / (F(y) − F(y−)), 0, 1) − t,
#
# which has mean 0 for every law, with atoms and without (Czado, Gneiting and Held 2009, Equation 2,
# which defines the same histogram). Without atoms it is 1{F(y) ≤ t} − t. No random numbers are added.
#
# Quantile forecasts are evaluated at their own levels: an outcome that equals a quantile may lie in any
# of several cells, which gives a range of every sum. The value used is the one in the range that is
# best for the forecast, see :class:`caltest.predictive.Quantiles`.

STEPS = 200  #: The levels are multiples of 1/200, among which are the ends of usual intervals.
LEVELS = np.arange(1, STEPS) / STEPS
_ATOM = 1e-6  # smaller probabilities of one place are ignored
_ROUNDED = 1e-12  # rounding of a mean score
_DRAWN = 400  # draws that moments are computed from; they ignore the outcomes


def levels_of(law: Predictive) -> Array:
    """Return the levels at which the PIT of a law is evaluated."""
    return LEVELS if law.levels is None else law.levels


def level_counts(levels: Array) -> Array:
    """Return the weights of levels in a mean over (0, 1), in steps: half the gaps to neighbours."""
    ends = np.concatenate([[0.0], levels, [1.0]])
    return np.asarray(np.round(0.5 * STEPS * (ends[2:] - ends[:-2]), 9))


def _drawn(law: Predictive) -> Iterator[Outcomes]:
    """Yield draws, in blocks, that do not depend on the outcomes."""
    sampler = law.sampler(child_seed(0, _DRAWN))
    for start in range(0, _DRAWN, sampler.block):
        yield sampler.draw(start, min(start + sampler.block, _DRAWN))


@dataclass(frozen=True, eq=False)
class PitScores(Scores):
    """w_i s_t(y_i) at all levels t."""

    law: Predictive
    weights: Array  #: w, (n,).
    steps: int = STEPS  #: The levels are multiples of 1/steps.

    def __eq__(self, other: Any) -> bool:
        same = isinstance(other, PitScores) and self.law is other.law and self.steps == other.steps
        return same and self.weights is other.weights

    @property
    def size(self) -> int:
        return self.steps - 1

    def sums(self, outcomes: Outcomes, rows: slice = ALL) -> Array:
        law, weights = self.law, self.weights
        if rows != ALL:
            law, weights = law.take(rows), weights[rows]
        of_draws = np.zeros(len(weights), dtype=np.intp)
        return sums_of_scores(law.cdf(outcomes), weights, of_draws, len(outcomes), self.steps)

    def by_cluster(self, outcomes: Outcomes, clusters: Clusters) -> Any:
        found = self.law.cdf(outcomes)
        return sums_of_scores(found, self.weights, clusters.codes, clusters.count, self.steps)


def sums_of_scores(cdf: Sequence[Array], weights: Array, owners: Any, count: int, steps: int) -> Array:
    """Return sums of scores, (count, T), from F(y−), F(y) (B, n): of row i of draw b, owners[i] + b."""
    from caltest.loops import rows as _loops

    slopes, starts = np.zeros((count, steps)), np.zeros((count, steps))
    below, at = map(np.atleast_2d, cdf)
    _loops.rising_scores(below, at, weights, owners, _ATOM, slopes, starts)
    whole = np.bincount(owners, weights, count) if count > len(at) else weights.sum()
    rising, begun = (np.cumsum(found[:, :-1], axis=1) for found in (slopes, starts))
    levels = np.arange(1, steps) / steps
    return np.asarray(rising * levels + begun - np.multiply.outer(whole, levels))


@dataclass(frozen=True, eq=False)
class Ranges(Scores):
    """w_i s_t(y_i), combined over stated levels t: the smallest and the largest in open cells."""

    law: Quantiles
    weights: Array  #: w, (n,).
    of_levels: Array  #: Coefficients of the levels, (T, J).

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
class PitForm(NumberForm):
    """T = g(S_t / Σ w), for S_t the sums of scores at the levels t, or combinations of these."""

    law: Predictive
    weights: Array  #: (n,).
    tilts: Array | None  #: Factors of scores, (n,); None for 1.
    of_levels: Array | None  #: Coefficients of the levels, (T,) or (T, J); None to use every level.

    #: Rounding of a mean score, which is at most 1; at an atom, slopes cancel.
    resolution = _ROUNDED

    @cached_property
    def scores(self) -> PitScores | Ranges:
        weights = self.weights if self.tilts is None else self.weights * self.tilts
        if not isinstance(self.law, Quantiles):
            return PitScores(self.law, weights)
        levels = self.law.levels
        combined = np.eye(len(levels)) if self.of_levels is None else self.of_levels
        return Ranges(self.law, weights, combined.reshape(len(levels), -1))

    @property
    def shared_scores(self) -> Scores | None:  # type: ignore[override]
        return None if isinstance(self.law, Quantiles) else self.scores

    #: For a distance: the mean over the levels, which rises as outcomes fall.
    direction = np.full(len(LEVELS), 1.0 / STEPS)

    def reduce(self, sums: Array, fixed: Array) -> Array:
        shares = sums / self.weights.sum()
        if isinstance(self.scores, Ranges):
            return self.of_shares(np.clip(self.centre, *np.split(shares, 2, axis=1)))
        return self.of_shares(shares if self.of_levels is None else shares @ self.of_levels)

    @property
    @abstractmethod
    def centre(self) -> float:
        """The mean score that is best for the forecast."""

    @abstractmethod
    def of_shares(self, shares: Array) -> Array:
        """Return the (B,) values from mean scores (B, T), or (B, J) combined ones."""


@dataclass(frozen=True, eq=False)
class PitDistance(PitForm):
    """A distance of the PIT from uniform: unchanged if all sums change sign."""

    distance: Callable[[Array], Array]

    centre: ClassVar[float] = 0.0

    def of_shares(self, shares: Array) -> Array:
        return self.distance(shares)


@dataclass(frozen=True, eq=False)
class PitMean(MeanScore, PitForm):
    """A weighted mean of the scores over the levels, with a sign."""

    of_levels: Array

    @property
    def direction(self) -> Array:  # type: ignore[override]
        return self.of_levels

    @cached_property
    def centre(self) -> float:
        """The median of draws: neither side of it is unlikely, as could be with 0 if levels are few."""
        sums = np.concatenate([self.scores.sums(drawn)[:, 0] for drawn in _drawn(self.law)])
        return float(np.quantile(sums, 0.5, method="inverted_cdf") / self.weights.sum())

    def of_shares(self, shares: Array) -> Array:
        return shares.reshape(len(shares))


def drawn_moments(forms: Sequence[PitForm]) -> Iterator[base.Moments]:
    """Yield moments of forms of one law from draws that do not depend on the outcomes."""
    values = [[form.of_labels(drawn) for form in forms] for drawn in _drawn(forms[0].law)]
    for own in np.concatenate(values, axis=1):
        centred = own - own.mean()
        variance = float(centred @ centred) / (_DRAWN - 1)
        yield base.Moments.of_cumulants(float(own.mean()), variance, float(np.mean(centred**3)))


# ------------------------------------------------------------------ pairs, by kernels
# They are sums of features times centred waves. A Gaussian kernel of outcomes is Σ_k c_k cos ω_k (y −
# y′), with multiples ω_k of one frequency and its spectral density c_k there, up to 10⁻⁹ as long as
# distances are shorter than the period less 6.5 bandwidths. The characteristic function of a law gives
# the expectations of waves: in closed form for normal distributions, E cos ωZ = exp(−ω²σ²/2) cos ωμ,
# and as a mean for pools of members.

Waved: TypeAlias = GaussianPredictions | Pool

_WIDE = 6.5  # bandwidths beyond which the kernel, and its spectral density, are below 10⁻⁹
_MOST = 64  # frequencies; if outcomes may lie farther apart, the kernel is periodic
_HELD = 2**22  # sums of features held at a time: 32 MiB


@dataclass(frozen=True, eq=False)
class Waves(Scores):
    """s_i(y) = φ_i ⊗ (ψ(y) − E ψ(Z_i)) for waves ψ, and one more number: its squared length."""

    law: Waved
    features: Array  #: Weighted φ, (n, r).
    bandwidth: float  #: Bandwidth of the Gaussian kernel of outcomes.

    @property
    def size(self) -> int:
        return int(self.features.shape[1] * 2 * len(self._frequencies) + 1)

    @cached_property
    def _frequencies(self) -> Array:
        low, high = self.law.support()
        step = 2.0 * np.pi / ((high - low) / self.bandwidth + _WIDE)
        count = min(int(np.ceil(_WIDE / step)), _MOST)
        return np.asarray(np.arange(1, count + 1) * max(step, _WIDE / _MOST))

    @cached_property
    def _heights(self) -> Array:
        density = np.exp(-0.5 * self._frequencies**2) / np.sqrt(2.0 * np.pi)
        return np.asarray(np.sqrt(2.0 * self._frequencies[0] * density))

    @cached_property
    def _origin(self) -> float:
        return float(self.law.mean_and_variance()[0][0])

    def _at(self, numbers: Array) -> Array:
        """Return the waves ψ at numbers (n,), (n, 2K)."""
        angles = np.multiply.outer((numbers - self._origin) / self.bandwidth, self._frequencies)
        return np.hstack([np.cos(angles) * self._heights, np.sin(angles) * self._heights])

    @cached_property
    def _expected(self) -> Array:
        found = self.law.characteristic(self._frequencies / self.bandwidth, self._origin)
        return np.hstack([found.real * self._heights, found.imag * self._heights])

    def centred(self, outcomes: Array) -> Array:
        """Return ψ(y_i) − E ψ(Z_i), (n, 2K)."""
        return self._at(outcomes) - self._expected

    @cached_property
    def squares(self) -> Array:
        """|φ_i|², (n,)."""
        return np.asarray(np.einsum("nr,nr->n", self.features, self.features))

    def sums(self, outcomes: Outcomes, rows: slice = ALL) -> Array:
        found = np.empty((len(outcomes), self.size))
        for own, numbers in zip(found, outcomes, strict=True):
            waves = self.centred(numbers)
            own[:-1] = (self.features.T @ waves).ravel()
            own[-1] = self.squares @ np.einsum("nk,nk->n", waves, waves)
        return found

    def by_wave(self, outcomes: Outcomes, clusters: Clusters) -> Iterator[Array]:
        """Yield the sums of one wave after another, (G, r)."""
        for wave in self.centred(outcomes).T:
            yield clusters.sums(self.features * wave[:, None])


@dataclass(frozen=True, eq=False)
class WavePairs(NumberForm):
    """T = scale · Σ ⟨s_i, s_j⟩ over pairs i ≠ j; with clusters, over pairs of different ones."""

    waves: Waves
    scale: float

    direction = None

    @property
    def scores(self) -> Waves:
        return self.waves

    @property
    def law(self) -> Waved:  # type: ignore[override]
        """The predicted distributions."""
        return self.waves.law

    @property
    def resolution(self) -> float:
        return ROUNDING * self.scale * float(self.waves.squares.sum()) * self.law.n_samples

    def of_labels(self, labels: Labels, workers: Workers = ALONE) -> Array:
        cut = blocks(len(labels), max(1, _HELD // self.waves.size))
        return np.concatenate([super(WavePairs, self).of_labels(labels[part]) for part in cut])

    def reduce(self, sums: Array, fixed: Array) -> Array:
        squares = np.einsum("bk,bk->b", sums[:, :-1], sums[:, :-1])
        return np.asarray(self.scale * (squares - sums[:, -1]))

    def squares_of(self, labels: Labels, clusters: Clusters) -> Array:
        every = (self.waves.by_wave(numbers, clusters) for numbers in labels)
        return np.stack([sum((part**2).sum(axis=1) for part in each) for each in every])

    def apart(self, labels: Labels, clusters: Clusters) -> Array:
        sums = self.waves.sums(labels)
        sums[:, -1] = self.squares_of(labels, clusters).sum(axis=1)
        return clusters.share_between * self.reduce(sums, self.fixed)

    def signed(self, labels: Labels, clusters: Clusters) -> Signed:
        pairs = sum(part @ part.T for part in self.waves.by_wave(labels, clusters))
        return signed_pairs(pairs, self.scale * clusters.share_between, False, self.resolution)
