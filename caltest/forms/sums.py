"""Sums: statistics that are added up over the rows and finished cheaply.

The sums over any rows merge by addition, so that rows can come a block at a time, in any number.
"""

# ruff: noqa: D102 -- a method that overrides another is documented where it is first defined.

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from caltest._narrow import over_columns
from caltest._parallel import ALONE, Workers, added
from caltest._sampling import ROWS
from caltest._tiles import blocks
from caltest._work import Work
from caltest.forms.base import (
    CERTAIN,
    ROUNDING,
    Array,
    ChiSquare,
    Form,
    HasChiSquare,
    HasCumulantGenerator,
    HasLatticeTerms,
    HasLeadingSum,
    HasMoments,
    Labels,
    Lattice,
    LatticeTerms,
    Moments,
    effective_surprises,
)
from caltest.forms.paths import BrownianFunctional, BrownianLimit, strayed
from caltest.forms.signs import AddsByCluster, Clusters, ClusterSums, OfOneEvent, SignedSums
from caltest.predictive import GaussianPredictions, Predictive

# ------------------------------------------------------------------ additive


_ENTRIES = 2**16  # of a table looked at at a time, which stay in the cache
_SAFE_EXPONENT = 600.0  # exp overflows at 709
_SAME = 1e-9  # entries that differ by this, relatively, differ by rounding only
_SURE = 0.1  # of a step: rounding of a sum up to which it is clear on which point of a lattice it lies
_CROWDED = 0.4  # with a larger spread about lattice points, the law has no gaps that count


class Additive(Form):
    """T = finish(Σ_i s(g_i, y_i)).

    The sums over any rows merge by addition, so an additive form never needs all rows at once.
    """

    @property
    @abstractmethod
    def n_samples(self) -> int:
        """Number of rows n."""

    @property
    def sums_of_a_draw(self) -> tuple[int, ...] | None:
        """The shape of the sums of one label vector; None if rows had better come all at once."""
        return None

    def work(self, draws: int) -> Work:
        return {"label": float(draws) * self.n_samples}

    @abstractmethod
    def contributions(self, rows: slice, labels: Labels) -> Array:
        """Return Σ_{i in rows} s(g_i, y_i) as (B, …) for ``labels`` (B, rows)."""

    @abstractmethod
    def finish(self, sums: Array) -> Array:
        """Return the (B,) statistics from the (B, …) sums over all rows."""

    def of_labels(self, labels: Labels, workers: Workers = ALONE) -> Array:
        parts = (self.contributions(rows, labels[:, rows]) for rows in blocks(self.n_samples, ROWS))
        return self.finish(added(parts, np.add))


@dataclass(frozen=True, eq=False)
class _TableSum(Additive):
    """A function of Σ_i A[i, y_i] for a table A that depends on the predictions only."""

    table: Array  #: A, (n, m). Entries of classes with probability 0 may be infinite.
    probs: Array  #: The predictions, (n, m).

    @property
    def n_samples(self) -> int:
        return len(self.table)

    def contributions(self, rows: slice, labels: Labels) -> Array:
        from caltest.loops import rows as _loops

        sums = np.zeros(len(labels))
        _loops.table_sums(self.table[rows], labels, sums)
        return sums


@dataclass(frozen=True, eq=False)
class LinearSum(
    AddsByCluster, HasMoments, HasLeadingSum, HasCumulantGenerator, HasLatticeTerms, _TableSum
):
    """T = Σ_i A[i, y_i] for a table A that depends on the predictions only.

    Given the predictions, T is a sum of independent terms, and all its cumulants are known.
    """

    @property
    def sums_of_a_draw(self) -> tuple[int, ...]:
        """One number: the statistic."""
        return ()

    def value(self, labels: Labels, workers: Workers = ALONE) -> float:
        # One label vector is added up sooner than a compiled loop is imported.
        n, m = self.table.shape
        entries = self.table.take(labels + np.arange(0, n * m, m))
        return float(self.finish(np.array([entries.sum()]))[0])

    def finish(self, sums: Array) -> Array:
        return sums

    @property
    def row_scores(self) -> Array:
        return self._finite

    def cluster_sums(self, labels: Labels, clusters: Clusters) -> ClusterSums:
        entries = self._finite[np.arange(self.n_samples), labels]
        means = np.einsum("ik,ik->i", self.probs, self._finite)
        observed = float(self.table[np.arange(self.n_samples), labels].sum())
        turned = clusters.sums(entries - means)[:, None]
        return ClusterSums(turned, np.array([means.sum(), observed]))

    def of_cluster_sums(self, found: ClusterSums, share_between: float = 1.0) -> SignedSums:
        offset, observed = float(found.fixed[0]), float(self.finish(found.fixed[1:])[0])
        return SignedSums(
            found.turned,
            partial(_finished_alone, self.finish),
            even=False,
            rounding=self.resolution,
            offset=offset,
            impossible=None if np.isfinite(observed) else observed,
        )

    @cached_property
    def resolution(self) -> float:
        """Rounding of the sum of the table's entries; Σ_i max_k |A_ik| is at most √n ‖A‖."""
        return ROUNDING * float(np.sqrt(self.n_samples) * np.linalg.norm(self._finite))

    @cached_property
    def _finite(self) -> Array:
        if self.probs.min() > 0.0 and np.isfinite(self.table).all():
            return self.table
        return np.where((self.probs > 0) & np.isfinite(self.table), self.table, 0.0)

    @cached_property
    def _variances(self) -> Array:
        """Of what the rows add, (n,)."""
        return np.concatenate([(probs * each**2).sum(axis=0) for probs, each in self._centred()])

    @cached_property
    def _mean_and_variance(self) -> tuple[float, float]:
        mean = float(np.vdot(self.probs, self._finite))
        if self.probs.shape[1] > 2:
            return mean, float(self._variances.sum())
        (other, one), (start, end) = self.probs.T, self._finite.T
        steps = end - start  # which a row takes or does not
        return mean, float(np.vdot(other * one * steps, steps))

    def _centred(self) -> Iterator[tuple[Array, Array]]:
        """Yield, some rows at a time, predictions and entries less their means, (m, rows)."""
        for rows in blocks(self.n_samples, max(1, _ENTRIES // self.probs.shape[1])):
            # Class by class, since NumPy's loops are as long as the last axis.
            probs, finite = (np.ascontiguousarray(x[rows].T) for x in (self.probs, self._finite))
            yield probs, finite - (probs * finite).sum(axis=0)

    @cached_property
    def lattice(self) -> Lattice:
        """The lattice of statistics whose steps are (nearly) multiples of one.

        A label other than the likeliest moves T by a step. Given how often it moves by which multiple,
        T spreads by the standard deviation of what is left of the steps.
        """
        for span in self._mean_steps():
            left, unlike = 0.0, 0.0
            for rows in blocks(self.n_samples, ROWS):
                steps, weights = self._steps(rows)
                rest = np.abs(steps - span * np.round(steps / span))
                rest[weights == 0.0] = 0.0
                unlike = max(unlike, float(rest.max()))
                left += float(np.vdot(weights, rest**2))
                if left >= (_CROWDED * span) ** 2:
                    break
            else:
                return Lattice(span, float(np.sqrt(left)) if unlike > _SAME * span else 0.0)
        return Lattice()

    def lattice_terms(self, most: int) -> LatticeTerms | None:
        span, spread = self.lattice
        if span <= 0.0 or spread > 0.0:
            return None
        possible = self.probs > 0.0
        lowest = np.where(possible, self._finite, np.inf).min(axis=1)
        steps = np.where(possible, (self._finite - lowest[:, None]) / span, 0.0)
        whole = np.round(steps)
        rounding = np.abs(steps - whole).max(axis=1).sum() + self.resolution / span
        moving = whole.max(axis=1) > 0.0
        longest = int(whole.max(initial=0.0))
        if rounding > _SURE or int(moving.sum()) * longest > most or not moving.any():
            return None
        masses = np.zeros((int(moving.sum()), longest + 1))
        rows = np.arange(len(masses))
        for column in range(self.probs.shape[1]):
            places = whole[moving, column].astype(np.intp)
            masses[rows, places] += self.probs[moving, column]
        return LatticeTerms(float(lowest.sum()), span, masses)

    def _mean_steps(self) -> Iterator[float]:
        """Yield the mean step, and the mean of those that are not below it."""
        least = 0.0
        for _ in range(2):
            total = np.zeros(2)
            for rows in blocks(self.n_samples, ROWS):
                steps, weights = self._steps(rows)
                weights = np.where(steps >= least * (1.0 - _SAME), weights, 0.0)
                total += weights.sum(), np.vdot(weights, steps)
            if total[1] <= 0.0:
                return
            least = float(total[1] / total[0])
            yield least

    def _steps(self, rows: slice) -> tuple[Array, Array]:
        """Return the steps from the likeliest labels, and the variances of the labels' indicators."""
        probs, finite = self.probs[rows], self._finite[rows]
        likeliest = finite[np.arange(len(probs)), probs.argmax(axis=1), None]
        steps = np.abs(finite - likeliest)
        moving = steps > _SAME * np.abs(finite).max(axis=1, keepdims=True)
        return steps, np.where(moving, probs * (1.0 - probs), 0.0)

    @property
    def surprises(self) -> float:
        """Effective number of labels other than the likeliest."""
        return effective_surprises(self._variances, 1.0 - over_columns(np.maximum, self.probs))

    @property
    def reach(self) -> float:
        """The range of all entries, that of a row at least."""
        return float(self._finite.max() - self._finite.min())

    def leading(self, workers: Workers = ALONE) -> LinearSum:
        return self  # it is one sum

    def moments(self, workers: Workers = ALONE) -> Moments:
        third = sum(float(np.vdot(probs * each**2, each)) for probs, each in self._centred())
        return Moments.of_cumulants(*self._mean_and_variance, third, surprises=self.surprises)

    def cumulant_generator(self, t: float) -> tuple[float, float, float]:
        """K(t) = Σ_i log Σ_k g_ik exp(t A_ik)."""
        if t == 0.0:
            return 0.0, *self._mean_and_variance
        total = np.zeros(3)
        for rows in blocks(self.n_samples, ROWS):
            total += tilted_cumulants(self._finite[rows], self.probs[rows], t)
        return float(total[0]), float(total[1]), float(total[2])


def _finished_alone(finish: Callable[[Array], Array], sums: Array) -> Array:
    """Finish sums that are one number each, (B, 1)."""
    return finish(sums[:, 0])


@dataclass(frozen=True, eq=False)
class Standardised(AddsByCluster, _TableSum):
    """T = Σ_i A[i, y_i] / √(its variance under H0), for a table A whose rows are 0 on average.

    The variance is added up beside the sum, so that some rows can be taken at a time. Where no label
    can move the sum, T is 0, or infinite if a label of probability 0 was observed.
    """

    @property
    def sums_of_a_draw(self) -> tuple[int, ...]:
        """The sum and its variance."""
        return (2,)

    @property
    def resolution(self) -> float:
        """Rounding of a standardised sum, of some of very many rows."""
        return ROUNDING * float(np.sqrt(self.n_samples))

    def contributions(self, rows: slice, labels: Labels) -> Array:
        """Return the sum over the rows and its variance, (B, 2)."""
        sums = super().contributions(rows, labels)
        return np.column_stack([sums, np.full(len(labels), self._variance(rows))])

    def _variance(self, rows: slice) -> float:
        return float(np.einsum("ik,ik,ik->", self.probs[rows], self.table[rows], self.table[rows]))

    @property
    def row_scores(self) -> Array:
        return self.table

    def cluster_sums(self, labels: Labels, clusters: Clusters) -> ClusterSums:
        entries = self.table[np.arange(self.n_samples), labels]
        return ClusterSums(clusters.sums(entries)[:, None], np.array([self._variance(slice(None))]))

    def of_cluster_sums(self, found: ClusterSums, share_between: float = 1.0) -> SignedSums:
        finish = partial(self._with_variance, float(found.fixed[0]))
        return SignedSums(found.turned, finish, even=False, rounding=self.resolution)

    def _with_variance(self, variance: float, sums: Array) -> Array:
        return self.finish(np.column_stack([sums, np.full(len(sums), variance)]))

    def finish(self, sums: Array) -> Array:
        total, variance = sums.T
        sure = np.where(np.abs(total) > 0.5, np.copysign(np.inf, total), 0.0)
        scale = np.sqrt(np.maximum(variance, CERTAIN))
        return np.where(variance > CERTAIN, total / scale, sure)


def tilted_cumulants(values: Array, weights: Array, t: float) -> Array:
    """Return Σ_i K_i(t), K_i'(t), K_i''(t) of variables of ``values[i]``, chances ``weights[i]``."""
    exponents = t * values
    each = np.ones(values.shape[1])
    shift = np.zeros(len(values))
    if max(exponents.max(), -exponents.min()) > _SAFE_EXPONENT:
        shift = exponents.max(axis=1)
        exponents -= shift[:, None]
    tilted = np.exp(exponents, out=exponents)
    tilted *= weights
    mass = tilted @ each
    tilted /= mass[:, None]
    mean = (tilted * values) @ each  # as a product: a sum over few columns is slow
    centred = values - mean[:, None]
    centred *= centred
    variance = np.vdot(tilted, centred)
    return np.array([np.sum(np.log(mass) + shift), mean.sum(), variance])


# ------------------------------------------------------------------ gridded


Cells: TypeAlias = NDArray[np.intp]


@dataclass(frozen=True, eq=False)
class Gridded(OfOneEvent, AddsByCluster, Additive):
    """T = finish(R), R_c = Σ (y_i − p_i) over the rows whose score p lies in cell c of a grid."""

    scores: Array  #: The probabilities p of class 1, (n,).
    weights: Array | None = field(default=None, kw_only=True)  #: w of w (y − p), (n,); None for ones.

    @property
    @abstractmethod
    def n_cells(self) -> int:
        """Number of cells."""

    @abstractmethod
    def cells(self, scores: Array) -> Cells:
        """Return the cell of every score."""

    @property
    def n_samples(self) -> int:
        return len(self.scores)

    @property
    def sums_of_a_draw(self) -> tuple[int, ...]:
        """A sum for every cell."""
        return (self.n_cells,)

    def contributions(self, rows: slice, labels: Labels) -> Array:
        """Sum the residuals of every cell, (B, cells)."""
        from caltest.loops import rows as _loops

        scores, sums = self.scores[rows], np.zeros((len(labels), self.n_cells))
        cells = self.cells(scores)
        if self.weights is None:
            _loops.cell_sums(labels, cells, sums)
        else:
            steps = self.weights[rows]
            scores = steps * scores
            _loops.cell_steps(labels, cells, steps, sums)
        sums -= np.bincount(cells, weights=scores, minlength=self.n_cells)
        return sums

    def cluster_sums(self, labels: Labels, clusters: Clusters) -> ClusterSums:
        residuals, cells = labels - self.scores, self.cells(self.scores)
        if self.weights is not None:
            residuals *= self.weights
        turned = clusters.sums_at(cells, residuals, self.n_cells)
        return ClusterSums(turned, self.expected(cells))

    def of_cluster_sums(self, found: ClusterSums, share_between: float = 1.0) -> SignedSums:
        finish = partial(self.finish_residuals, found.fixed)
        return SignedSums(found.turned, finish, even=True, rounding=self.resolution)

    def expected(self, cells: Cells) -> Array:
        """Return what is to be known of the cells besides residuals; here nothing."""
        return np.empty(0)

    def finish_residuals(self, expected: Array, sums: Array) -> Array:
        """Return the (B,) statistics from the residuals of all rows by cell, (B, K)."""
        return self.finish(sums)


@dataclass(frozen=True, eq=False)
class _Edged(Gridded):
    """Cells between edges."""

    edges: Array  #: The inner ones, increasing, (K − 1,); a score on an edge is in the cell below it.
    whole: float  #: How many rows n are in all, where these are only some of them, or their weight.

    @property
    def n_cells(self) -> int:
        return len(self.edges) + 1

    def cells(self, scores: Array) -> Cells:
        return np.searchsorted(self.edges, scores, side="left")

    @property
    def resolution(self) -> float:
        """Rounding of sums over the rows, in units of all."""
        return ROUNDING * self.n_samples / self.whole * float(np.sqrt(self.n_cells))


@dataclass(frozen=True, eq=False)
class GriddedBins(_Edged):
    """T = measure(R, E, sizes, n) of residuals R, expected events E and rows of every bin.

    Where rows have weights, sizes and n are sums of these.
    """

    #: Takes residuals (B, K), expected events (K,), rows (K,), all of bins that are not empty, and n;
    #: returns the (B,) statistics.
    measure: Callable[[Array, Array, Array, float], Array]

    @property
    def sums_of_a_draw(self) -> tuple[int, ...]:
        """Residuals, expected events and rows of every bin."""
        return 3, self.n_cells

    def contributions(self, rows: slice, labels: Labels) -> Array:
        """Return the sums of every bin, (B, 3, K)."""
        scores, w = self.scores[rows], None if self.weights is None else self.weights[rows]
        place = self.cells(scores)
        sums = np.empty((len(labels), *self.sums_of_a_draw))
        sums[:, 0] = super().contributions(rows, labels)
        sums[:, 1:] = _in_cells(place, scores, w, self.n_cells)
        return sums

    def expected(self, cells: Cells) -> Array:
        """Return expected events and rows of every bin, (2, K)."""
        return _in_cells(cells, self.scores, self.weights, self.n_cells)

    def finish_residuals(self, expected: Array, sums: Array) -> Array:
        used = expected[1] > 0
        events, sizes = expected[:, used]
        return self.measure(sums[:, used], events, sizes, self.whole)

    def finish(self, sums: Array) -> Array:
        used = sums[0, 2] > 0
        return self.measure(sums[:, 0, used], sums[0, 1, used], sums[0, 2, used], self.whole)


def _in_cells(cells: Cells, scores: Array, weights: Array | None, count: int) -> Array:
    """Return expected events and rows of every cell, (2, K), as rows count."""
    expected = scores if weights is None else weights * scores
    return np.stack([np.bincount(cells, each, count) for each in (expected, weights)]).astype(float)


@dataclass(frozen=True, eq=False)
class GriddedDifference(HasMoments, _Edged):
    """How far C(x) = n⁻¹ Σ_{p_i ≤ x} (y_i − p_i) strays from 0 where x is an edge of a grid."""

    functional: BrownianFunctional  #: "maximum" for max |C|, "range" for max C − min C.

    def finish(self, sums: Array) -> Array:
        return strayed(np.cumsum(sums, axis=1), self.functional) / self.whole

    def moments(self, workers: Workers = ALONE) -> Moments:
        """Return the moments under H0 of ``whole`` rows like these, nearly: a Brownian path's.

        Weights are 1 on average.
        """
        variances = self.scores * (1.0 - self.scores)
        if self.weights is not None:
            variances *= self.weights**2
        variance = float(np.mean(variances))
        scale = float(np.sqrt(variance / self.whole))
        return BrownianLimit(self.functional, scale, float(self.whole)).moments


# ------------------------------------------------------------------ densities


class DensityForm(Form):
    """A statistic as a function of outcomes (B, n) or (B, n, d); the distributions are inside."""


@dataclass(frozen=True, eq=False)
class MeanSurprise(DensityForm):
    """T = n⁻¹ Σ_i [−log f_i(x_i) − H(f_i)]."""

    predictive: Predictive  #: The predicted distributions f_i.

    @cached_property
    def _entropy(self) -> float:
        return float(self.predictive.entropy().mean())

    @property
    def resolution(self) -> float:
        """Rounding of the mean."""
        return ROUNDING * (1.0 + abs(self._entropy))

    def of_labels(self, labels: Labels, workers: Workers = ALONE) -> Array:
        return np.asarray(-self.predictive.log_density(labels).mean(axis=1) - self._entropy)


@dataclass(frozen=True, eq=False)
class MeanSquare(HasChiSquare, DensityForm):
    """T = factor · n⁻¹ Σ_i (x_i − μ_i)ᵀ C_i⁻¹ (x_i − μ_i) + offset, of Gaussian predictions."""

    predictive: GaussianPredictions
    factor: float = 1.0  #: Positive.
    offset: float = 0.0

    @property
    def chi_square(self) -> ChiSquare:
        """The law of the sum: n·d squares of independent standard normal variables."""
        n, d = self.predictive.n_samples, self.predictive.dimension or 1
        scale = n / self.factor
        return ChiSquare(n * d, scale, -self.offset * scale, exact=True)

    def of_labels(self, labels: Labels, workers: Workers = ALONE) -> Array:
        return np.asarray(self.factor * self.predictive.squares(labels).mean(axis=1) + self.offset)
