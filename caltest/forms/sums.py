"""Sums: statistics that are sums over the rows, with a cheap last step.

A form is written once, as a function of sums of scores (:mod:`caltest.scores`). Drawn outcomes, signs
of clusters and blocks of rows all change these sums, never the form.
"""

# ruff: noqa: D102 -- a method that overrides another is documented where it is first defined.

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any, ClassVar, NamedTuple, TypeAlias

import numpy as np
import scipy
from numpy.typing import NDArray

from caltest._parallel import ALONE, Workers
from caltest._sums import Places, blocks, over_columns
from caltest.clusters import Clusters
from caltest.forms import base
from caltest.forms.base import Array, Form, Labels, Lattice, Moments
from caltest.forms.signs import HasSigns, Signed, signed_sums
from caltest.lenses.classes import taken
from caltest.sampling import ROWS
from caltest.scores import Scores, Table

_ENTRIES = 2**16  # table entries processed at a time, which stay in the cache
_SAFE_EXPONENT = 600.0  # exp overflows at 709
_SAME = 1e-9  # relative difference up to which entries are equal
_SURE = 0.1  # of a step: rounding of a sum below which its point of a lattice is clear
_CROWDED = 0.4  # with a larger spread about lattice points, gaps of the law are negligible

# ------------------------------------------------------------------ sums


class ClusterSums(NamedTuple):
    """Sums over rows, by cluster and in total; those of blocks of rows are merged by addition."""

    turned: Any  #: Centred sums of scores by cluster, (G, K), dense or sparse.
    observed: Array  #: Sums of scores of the observed outcomes, (K,).
    offset: Any  #: Means of these sums under H0, (K,) or one number.
    fixed: Array  #: Sums that depend on predictions alone.


class Sums(HasSigns):
    """T = reduce(Σ_i s_i(y_i), Σ_i f_i), with scores s, and f that depends on the predictions alone.

    Rows may be some of all: the sums of any parts are added, and any part's form finishes them.
    """

    #: Whether T is unchanged if all sums change sign.
    even: ClassVar[bool] = True
    #: The scores, if other forms have exactly the same ones, so that they are summed only once.
    shared_scores: Scores | None = None
    #: Whether many rows are better processed in blocks.
    by_blocks: bool = True

    @property
    @abstractmethod
    def scores(self) -> Scores:
        """The scores s."""

    @property
    def fixed(self) -> Array:
        """Σ f; here nothing."""
        return np.empty(0)

    @abstractmethod
    def reduce(self, sums: Array, fixed: Array) -> Array:
        """Return the (B,) statistics from sums (B, K) over all rows."""

    def of_labels(self, labels: Labels, workers: Workers = ALONE) -> Array:
        return self.reduce(self.scores.sums(labels), self.fixed)

    def cluster_sums(self, labels: Labels, clusters: Clusters) -> ClusterSums:
        """Return the sums of these rows for the observed labels (n,)."""
        turned, observed = self.scores.by_cluster(labels, clusters), self.scores.sums(labels[None])[0]
        return ClusterSums(turned, observed, self.scores.offset, self.fixed)

    def of_cluster_sums(self, found: ClusterSums, share_between: float = 1.0) -> Signed:
        """Return the form of signs from the sums of all rows; ``share_between`` is of all clusters."""
        finish = partial(self.reduce, fixed=found.fixed)
        observed = float(finish(found.observed[None])[0])
        impossible = None if np.isfinite(observed) else observed
        return signed_sums(found.turned, finish, self.even, self.resolution, found.offset, impossible)

    def squares_of(self, labels: Labels, clusters: Clusters) -> Array:
        """Return |S_g|², the squared size of every cluster's sum, (B, G) for labels (B, n)."""
        found = np.empty((len(labels), clusters.count))
        for own, y in zip(found, labels, strict=True):
            sums = scipy.sparse.csr_array(self.scores.by_cluster(y, clusters))
            own[:] = sums.multiply(sums).sum(axis=1)
        return found

    def signed(self, labels: Labels, clusters: Clusters) -> Signed:
        return self.of_cluster_sums(self.cluster_sums(labels, clusters), clusters.share_between)


# ------------------------------------------------------------------ sums over events
#
# With many classes, each is observed in few rows. One sort of a draw's labels finds the rows of all
# classes, and the statistic of a class then visits the rows of that class only: O(n) per draw for all
# classes together, instead of O(n m) for one class after another.

Rows: TypeAlias = NDArray[np.int32]

FEWEST_ROWS = 2048  # with fewer, calls take longer than rows
_LABELS = 2**22  # labels of draws sorted at a time, 16 MB
_MOST_EVENTS = 1 / 8  # of the rows; with more, sorting them takes longer than visiting all rows


class HasEvents(Form):
    """A form of two classes that may be evaluated from the rows in which class 1 was observed."""

    @property
    @abstractmethod
    def by_events(self) -> bool:
        """Whether these rows are enough, and faster than all rows if they are few."""

    @abstractmethod
    def of_events(self, rows: Rows, ends: Rows, column: int) -> Array:
        """Return (B,) values from (B, n) rows sorted by class, with the ends of classes, (B, m + 1)."""


def of_events(form: Form, share: float) -> HasEvents | None:
    """Return the form if it is evaluated from rows of class 1; None if that gains nothing.

    ``share`` is the expected share of rows in class 1.
    """
    return form if share <= _MOST_EVENTS and isinstance(form, HasEvents) and form.by_events else None


class OfOneClass(NamedTuple):
    """A statistic of one class."""

    rows: Places | None  #: Rows that it uses; None for all.
    column: int  #: The class.
    form: HasEvents
    place: int  #: Its place among all values.


@dataclass(frozen=True, eq=False)
class EventColumns:
    """Statistics of single classes on the same rows."""

    parts: tuple[OfOneClass, ...]

    @classmethod
    def of(cls, found: list[OfOneClass]) -> tuple[EventColumns, ...]:
        """Group statistics that use the same rows."""
        by_rows: dict[int, list[OfOneClass]] = {}
        for each in found:
            by_rows.setdefault(id(each.rows), []).append(each)
        return tuple(cls(tuple(parts)) for parts in by_rows.values())

    def of_labels(self, full: Labels) -> Array:
        """Return (B, H) values for the full labels (B, n)."""
        from caltest.loops import rows as _loops

        rows, classes = self.parts[0].rows, max(each.column for each in self.parts) + 1
        labels = full if rows is None else taken(full, rows)
        found = np.empty((len(labels), len(self.parts)))
        for draws in blocks(len(labels), max(1, _LABELS // labels.shape[1])):
            drawn: Any = labels[draws]
            places = np.empty(drawn.shape, dtype=np.int32)
            ends = np.empty((len(drawn), classes + 1), dtype=np.int32)
            _loops.rows_by_class(drawn, places, ends)
            # Class by class, so that the data of a class stay in the cache.
            for number, each in enumerate(self.parts):
                found[draws, number] = each.form.of_events(places, ends, each.column)
        return found


# ------------------------------------------------------------------ one sum


@dataclass(frozen=True, eq=False)
class LinearSum(base.HasMoments, base.HasLeadingSum, base.HasCumulantGenerator, HasEvents, Sums):
    """T = Σ_i A[i, y_i] for a table A that depends on the predictions only, perhaps standardised.

    Given the predictions, T is a sum of independent terms, and all its cumulants are known.
    """

    table: Array  #: A, (n, m). Entries of classes with probability 0 may be infinite.
    probs: Array  #: The predictions, (n, m).
    #: Divide by the standard deviation under H0, with rows of A that have mean 0. If no label can move
    #: the sum, T is 0, or infinite if a label of probability 0 was observed.
    standardised: bool = False

    even: ClassVar[bool] = False
    takes_bits = True

    @cached_property
    def scores(self) -> Table:
        """The entries of A."""
        return Table(self.table, self.probs)

    @cached_property
    def _square(self) -> float:
        """The variance, if rows of A have mean 0."""
        return float(np.vdot(self.probs * self.table, self.table))

    @property
    def fixed(self) -> Array:
        """The variance that standardises a sum."""
        return np.array([self._square] if self.standardised else [])

    def reduce(self, sums: Array, fixed: Array) -> Array:
        total = sums[:, 0]
        if not len(fixed):
            return total
        if fixed[0] > base.CERTAIN:
            return np.asarray(total / np.sqrt(fixed[0]))
        return np.where(np.abs(total) > 0.5, np.copysign(np.inf, total), 0.0)

    @property
    def row_scores(self) -> Array:  # type: ignore[override]
        return self._finite

    @cached_property
    def resolution(self) -> float:
        """Rounding of the sum of the table's entries; Σ_i max_k |A_ik| is at most √n ‖A‖."""
        size = 1.0 if self.standardised else float(np.linalg.norm(self._finite))
        return base.ROUNDING * float(np.sqrt(len(self.probs))) * size

    @cached_property
    def _unit(self) -> float:
        """The divisor of the sum."""
        return float(np.sqrt(max(self.fixed[0], base.CERTAIN))) if self.standardised else 1.0

    @cached_property
    def _finite(self) -> Array:
        """A, in units of T, with 0 for impossible labels."""
        return self.scores.finite / self._unit if self.standardised else self.scores.finite

    @cached_property
    def _central(self) -> tuple[Array, float]:
        """Variances of the rows' terms, (n,), and the sum of their third cumulants."""
        variances, third = [], 0.0
        for rows in blocks(len(self.table), max(1, _ENTRIES // self.probs.shape[1])):
            # Class by class, since NumPy's loops run along the last axis.
            probs, finite = (np.array(x[rows].T, order="C") for x in (self.probs, self._finite))
            finite -= (probs * finite).sum(axis=0)
            probs *= finite
            weighed = probs * finite
            variances.append(weighed.sum(axis=0))
            third += float(np.vdot(weighed, finite))
        return np.concatenate(variances), third

    @cached_property
    def _mean_and_variance(self) -> tuple[float, float]:
        return float(np.vdot(self.probs, self._finite)), float(self._central[0].sum())

    @cached_property
    def lattice(self) -> Lattice:
        """The lattice of statistics whose steps are (nearly) multiples of one.

        A label other than the likeliest moves T by a step. Given the number of moves by each multiple,
        T varies by the standard deviation of the remainders of the steps.
        """
        for span in self._mean_steps():
            left, unlike = 0.0, 0.0
            for rows in blocks(len(self.table), ROWS):
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

    def lattice_terms(self, most: int) -> base.LatticeTerms | None:
        """Return whole numbers whose sum gives T, so that its law can be computed exactly.

        None if T is not such a sum, or has more than ``most`` possible values.
        """
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
            masses[rows, whole[moving, column].astype(np.intp)] += self.probs[moving, column]
        return base.LatticeTerms(float(lowest.sum()), span, masses)

    def _mean_steps(self) -> Iterator[float]:
        """Yield the mean step, and the mean of the steps that are not below it."""
        least = 0.0
        for _ in range(2):
            total = np.zeros(2)
            for rows in blocks(len(self.table), ROWS):
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
        steps = np.abs(finite - finite[np.arange(len(probs)), probs.argmax(axis=1), None])
        moving = steps > _SAME * np.abs(finite).max(axis=1, keepdims=True)
        return steps, np.where(moving, probs * (1.0 - probs), 0.0)

    @property
    def surprises(self) -> float:
        """Effective number of labels other than the likeliest."""
        return base.effective_surprises(self._central[0], 1.0 - over_columns(np.maximum, self.probs))

    @property
    def reach(self) -> float:  # type: ignore[override]
        """The range of all entries, a bound for that of every row."""
        return float(self._finite.max() - self._finite.min())

    def leading(self, workers: Workers = ALONE) -> LinearSum:
        return self  # it is one sum already

    def moments(self, workers: Workers = ALONE) -> Moments:
        third = self._central[1]
        return Moments.of_cumulants(*self._mean_and_variance, third, surprises=self.surprises)

    def cumulant_generator(self, t: float) -> tuple[float, float, float]:
        """K(t) = Σ_i log Σ_k g_ik exp(t A_ik)."""
        if t == 0.0:
            return 0.0, *self._mean_and_variance
        return summed_cumulants(self._finite, self.probs, t)

    @property
    def by_events(self) -> bool:
        possible = type(self) in (LinearSum, EventSum) and len(self.probs) >= FEWEST_ROWS
        return possible and bool(np.isfinite(self.table).all())

    @cached_property
    def _events(self) -> tuple[float, Array]:
        """The sum without events, and the change by each event."""
        return float(self.table[:, 0].sum()), np.ascontiguousarray(self.table[:, 1] - self.table[:, 0])

    def of_events(self, rows: Rows, ends: Rows, column: int) -> Array:
        """Return the same values up to rounding."""
        from caltest.loops import rows as _loops

        without, added = self._events
        sums = np.full((len(rows), 1), without)
        _loops.sums_of_events(rows, ends, column, added, sums[:, 0])
        return self.reduce(sums, self.fixed)


class EventSum(LinearSum):
    """T = Σ_i w_i (y_i − p_i) for an event, perhaps standardised."""

    slopes: Array  #: w, (n,), possibly negative.

    def __init__(self, slopes: Array, probs: Array, standardised: bool = False) -> None:
        vars(self).update(slopes=slopes, probs=probs, standardised=standardised)

    @cached_property
    def table(self) -> Array:
        return np.column_stack([-self.slopes * self.probs[:, 1], self.slopes * self.probs[:, 0]])

    @cached_property
    def _square(self) -> float:
        return float(np.vdot(self.probs[:, 0] * self.probs[:, 1] * self.slopes, self.slopes))

    @property
    def _mean_and_variance(self) -> tuple[float, float]:
        return 0.0, self._square / self._unit**2

    @property
    def reach(self) -> float:  # type: ignore[override]
        return float(max(self.slopes.max(), -self.slopes.min())) / self._unit

    def value(self, labels: Labels, workers: Workers = ALONE) -> float:
        came = labels.astype(np.float64)
        errors = came * self.probs[:, 0]  # y − p is p₀ if y = 1, as 1 − p₁ would lose a small p₀
        errors += (came - 1.0) * self.probs[:, 1]
        return float(self.reduce(np.array([[np.vdot(self.slopes, errors)]]), self.fixed)[0])


def summed_cumulants(values: Array, weights: Array, t: float) -> tuple[float, float, float]:
    """Return the sums of :func:`tilted_cumulants` over all rows, block by block."""
    each = [tilted_cumulants(values[r], weights[r], t) for r in blocks(len(values), ROWS)]
    k, slope, curvature = np.sum(each, axis=0).tolist()
    return k, slope, curvature


def tilted_cumulants(values: Array, weights: Array, t: float) -> Array:
    """Return Σ_i K_i(t), K_i'(t), K_i''(t) for variables ``values[i]`` with masses ``weights[i]``."""
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
    return np.array([np.sum(np.log(mass) + shift), mean.sum(), np.vdot(tilted, centred)])
