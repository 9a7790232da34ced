"""Bins of predictions: the predicted and the observed rate of each, and bands for the observed one.

One convention everywhere: bins on an axis are right-closed, (a, b], and the first one includes its left
end too. A prediction on an edge is in the bin below it, 0 in the first and 1 in the last; equal
predictions share a bin. Nothing is dropped, and no bin of a partition is empty.

Bands are for the rate of events in every bin. With the predictions held fixed and labels drawn from
them, the number of events in a bin is Poisson binomial under H0. A *pointwise* band misses any one
point with probability at most α, a *simultaneous* one misses any point at all with probability at most
α.
"""

from __future__ import annotations

import heapq
import math
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import numpy as np
import scipy
from numpy.typing import NDArray

from caltest._arguments import Whole, arguments, options, positive_integer, real_array
from caltest._sums import Array, Mask, Places, law_of_sum
from caltest._visible import quoted
from caltest.data import Rows
from caltest.data.rows import without_zeros
from caltest.data.sample import whole_sample
from caltest.exceptions import InputError
from caltest.lenses import Lens, one_probability

if TYPE_CHECKING:
    import pandas as pd

Cells: TypeAlias = Places

__all__ = ["Binning", "ConsistencyBand", "EqualMass", "EqualWidth", "FromEdges", "MedianVariance"]
__all__ += ["ScoreBinning", "Uniform", "bin_table", "share_bands"]

_COUNT_UP_TO = 32  # edges; with more, or few values, binary search is faster than comparing all
_ROUNDING = 1e-12  # tolerance for shares of the rows' weight
_DIGITS = 26  # leading binary digits of scores, whose sums over up to 2²⁷ rows are exact
_TIED = 1e-9  # tails that differ by less, relatively, are equal up to rounding
_HALVINGS = 60  # bisections of the interval that holds the level of the simultaneous band

# ---------------------------------------------------------------------- partitions


class Binning(ABC):
    """Base class of the rules that cut predictions into bins.

    Subclasses are frozen dataclasses of options.
    """

    @abstractmethod
    def cells(self, rows: Rows) -> Cells:
        """Return the bin of every row, (n,) integers 0..K−1, all of them used."""


class ScoreBinning(Binning):
    """Base class of binnings of one probability: intervals between edges."""

    @abstractmethod
    def edges_of(self, scores: Array, weights: Array | None = None) -> Array:
        """Return the edges of the bins, (K + 1,); the outer ones enclose all ``scores``.

        ``weights`` (n,) are those of the rows; None if all are equal.
        """

    def cells(self, rows: Rows) -> Cells:
        """Return the bin of every row by its probability of class 1, from left to right."""
        if rows.n_classes != 2:
            found = f"{type(self).__name__} bins one score, and there are {rows.n_classes} classes"
            do = "give a lens such as 'top_label', or use the binnings Uniform or MedianVariance"
            raise InputError(f"{found}; {do}.")
        scores = rows.probs[:, 1]
        cells = intervals(scores, self.edges_of(scores, rows.weights))
        used = np.bincount(cells) > 0
        return cells if used.all() else (np.cumsum(used) - 1)[cells]


@options()
class Uniform(Binning):
    """Bins of full probability vectors: a grid of equal cells, empty ones left out.

    Parameters
    ----------
    n_bins : int, default 10
        Intervals per axis. Default 10, as in the literature.

    References
    ----------
    Vaicenavicius et al. 2019; Widmann et al. 2019, Appendix J.

    Examples
    --------
    >>> rows = Rows(np.array([[0.0, 1.0], [0.1, 0.9], [0.45, 0.55]]))
    >>> Uniform(10).cells(rows).tolist()
    [1, 0, 2]
    """

    n_bins: int = 10

    def cells(self, rows: Rows) -> Cells:
        """Return the occupied cell of every row, numbered in lexicographic order."""
        dtype = np.uint8 if self.n_bins <= 255 else np.uint32
        places = intervals(rows.probs, _even_edges(self.n_bins)).astype(dtype)
        each = np.ascontiguousarray(places).view(np.dtype((np.void, places[0].nbytes))).ravel()
        return np.unique(each, return_inverse=True)[1].reshape(-1)


@options()
class EqualWidth(ScoreBinning):
    """Bins of equal width on [0, 1]; empty ones are left out.

    Parameters
    ----------
    n_bins : int, default 15
        Number of intervals. Default 15, as in the literature.

    Examples
    --------
    >>> EqualWidth(2).cells(Rows(np.array([[0.5, 0.5], [0.4, 0.6], [1.0, 0.0]]))).tolist()
    [0, 1, 0]
    """

    n_bins: int = 15

    def edges_of(self, scores: Array, weights: Array | None = None) -> Array:
        """Return k/K, k = 0..K, for any scores."""
        return _even_edges(self.n_bins)


@options()
class EqualMass(ScoreBinning):
    """Bins of equal numbers of rows; equal predictions stay together.

    A group of equal scores goes to the bin in which its middle lies, so heavy ties leave fewer bins.

    Parameters
    ----------
    n_bins : int, default 15
        Number of bins. Default 15, as in the literature.

    Examples
    --------
    >>> probs = np.array([[0.9, 0.1], [0.1, 0.9], [0.8, 0.2], [0.2, 0.8]])
    >>> EqualMass(2).cells(Rows(probs)).tolist()
    [0, 1, 0, 1]
    """

    n_bins: int = 15

    def edges_of(self, scores: Array, weights: Array | None = None) -> Array:
        """Return 0, the largest score of every bin but the last, and 1."""
        if weights is None or (weights == weights[0]).all():
            values, counts = np.unique(scores, return_counts=True)
        else:
            values, group = np.unique(scores, return_inverse=True)
            counts = np.bincount(group.reshape(-1), weights=weights)
        ends, n_bins = np.cumsum(counts), min(self.n_bins, len(scores))  # more bins cannot differ
        bounds = (np.arange(1, n_bins) - _ROUNDING) * ends[-1] / n_bins
        first = np.unique(np.searchsorted(ends - 0.5 * counts, bounds))
        first = first[(first > 0) & (first < len(values))]
        return np.concatenate([[0.0], values[first - 1], [1.0]])


@options()
class FromEdges(ScoreBinning):
    """Bins between edges that you give.

    Parameters
    ----------
    edges : sequence of float
        Increasing, the first at or below every score and the last at or above.

    Examples
    --------
    >>> FromEdges([0, 0.5, 1]).cells(Rows(np.array([[0.5, 0.5], [0.4, 0.6]]))).tolist()
    [0, 1]
    """

    edges: Sequence[float]

    def __post_init__(self) -> None:
        values = real_array("edges", self.edges, "give increasing numbers")
        if values.ndim != 1 or len(values) < 2 or not (np.diff(values) > 0).all():
            raise InputError(f"edges is {quoted(self.edges)}; give at least two numbers that increase.")
        object.__setattr__(self, "edges", tuple(float(v) for v in values))

    def edges_of(self, scores: Array, weights: Array | None = None) -> Array:
        """Return the edges passed, which must cover the scores."""
        low, high = self.edges[0], self.edges[-1]
        for row in np.flatnonzero((scores < low) | (scores > high))[:1]:
            found = f"the score {scores[row]:g} of row {row} (counting from 0) lies outside the edges"
            raise InputError(f"{found} {low:g} to {high:g}; give edges that cover all scores.")
        return np.asarray(self.edges)


@options(min_size=positive_integer)
class MedianVariance(Binning):
    """Bins of full probability vectors, split at the median of the class that varies most.

    A bin is split as long as both halves stay large.

    A bin's rows are split into those below the median of that class (the first of classes that vary
    equally) and the others: as published, so these halves, which have no edges, are [a, b). A bin is
    final if it has fewer than 2·``min_size`` rows, or if a half would have fewer than ``min_size``.

    Parameters
    ----------
    min_size : int, default 5
        Smallest bin. Default 5; published results on networks of 10 000 rows used 100.

    References
    ----------
    Vaicenavicius et al. 2019; Widmann et al. 2019, Appendix J.

    Examples
    --------
    >>> P = [[0.4, 0.1, 0.5], [0.5, 0.3, 0.2], [0.3, 0.7, 0], [0.1, 0, 0.9], [0.8, 0.1, 0.1]]
    >>> MedianVariance(2).cells(Rows(np.array(P))).tolist()
    [0, 0, 1, 0, 1]
    """

    min_size: int = 5

    def cells(self, rows: Rows) -> Cells:
        """Return the bin of every row; medians and variances are weighted."""
        probs = rows.probs
        weights = rows.weights
        cells = np.zeros(len(probs), dtype=np.intp)
        pending, final = [np.arange(len(probs))], 0
        while pending:
            some = pending.pop()
            if len(some) >= max(2, 2 * self.min_size):
                inside, own = probs[some], weights[some]
                shares = own / own.sum()
                variances = shares @ (inside - shares @ inside) ** 2
                # Variances that differ by rounding are equal: the order of the rows must not decide.
                widest = int(np.argmax(variances >= (1.0 - 1e-9) * variances.max()))
                below = inside[:, widest] < _median(inside[:, widest], own)
                if min(np.count_nonzero(below), np.count_nonzero(~below)) >= self.min_size:
                    pending += [some[below], some[~below]]
                    continue
            cells[some] = final
            final += 1
        return cells


def _median(values: Array, weights: Array) -> float:
    """Return the weighted median of numbers (n,)."""
    order = np.argsort(values)
    ends = np.cumsum(weights[order]) / weights.sum()
    place = int(np.searchsorted(ends, 0.5 - _ROUNDING))
    after = min(place + (ends[place] <= 0.5 + _ROUNDING), len(order) - 1)
    return float(0.5 * (values[order[place]] + values[order[after]]))


def _even_edges(n_bins: int) -> Array:
    """Return k/K, k = 0..K, each rounded once: 3/10 is the float 0.3."""
    return np.arange(n_bins + 1) / n_bins


def intervals(values: Array, edges: Array) -> Cells:
    """Return the interval of each value, 0..K−1: the number of inner edges below it."""
    inner = edges[1:-1]
    if len(inner) > _COUNT_UP_TO or values.size <= _COUNT_UP_TO:
        return np.searchsorted(inner, values, side="left")
    values, below = np.ascontiguousarray(values), np.zeros(values.shape, dtype=np.uint8)
    for edge in inner:
        below += edge < values
    return below.astype(np.intp)


# ---------------------------------------------------------------------- isotonic regression


def rising(events: Array, sizes: Array) -> Array:
    """Return the non-decreasing rates closest to the observed ones, (K,); sizes are above 0."""
    return np.asarray(scipy.optimize.isotonic_regression(events / sizes, weights=sizes).x)


@dataclass(frozen=True, eq=False)
class DistinctScores:
    """Rows pooled by score: distinct scores (K,), increasing; the group and the weight of every row.

    ``sizes`` are the weights of the rows of every score, (K,).
    """

    scores: Array
    group: Cells
    weights: Array
    sizes: Array

    @classmethod
    def of(cls, scores: Array, weights: Array) -> DistinctScores:
        """Pool rows, with weights above 0."""
        distinct, group = np.unique(scores, return_inverse=True)
        group = group.reshape(-1)
        return cls(distinct, group, weights, np.bincount(group, weights).astype(np.float64))

    def counted(self, which: NDArray[Any]) -> Array:
        """Return the weight of the rows that ``which`` (n,) marks, for every score, (K,)."""
        return np.bincount(self.group, self.weights * which, len(self.sizes)).astype(np.float64)

    def rising(self, labels: NDArray[Any]) -> Array:
        """Return the isotonic regression of labels 0 and 1 at every score, (K,)."""
        return rising(self.counted(labels), self.sizes)


# ---------------------------------------------------------------------- curves and tables


@dataclass(frozen=True, eq=False)
class ReliabilityCurve:
    """Predicted and observed rates of one probability, in all bins with rows, from left to right."""

    # Edges: bins are (low, high], and the first one includes its low end. A binning without edges has
    # the smallest and the largest score here.
    low: Array
    high: Array
    # Smallest and largest score, number of rows, their weight, the weight of rows with the event, and
    # mean score of every bin.
    smallest: Array
    largest: Array
    counts: Cells
    mass: Array
    events: Array
    predicted: Array
    cells: Cells  # the bin of every row, (n,), 0..K−1

    @property
    def observed(self) -> Array:
        """Weighted rate of the event in every bin, (K,)."""
        return self.events / self.mass


def reliability_curve(rows: Rows, labels: NDArray[np.integer], binning: Binning) -> ReliabilityCurve:
    """Return the reliability curve of P(class 1) and labels 0 and 1, for tables and diagrams."""
    scores, cells = np.ascontiguousarray(rows.probs[:, 1]), binning.cells(rows)
    counts, mass, added = np.bincount(cells), np.bincount(cells, rows.weights), rows.weighted(scores)
    events = np.bincount(cells, labels if rows.are_alike else labels * rows.weights)
    smallest, largest = np.ones(len(counts)), np.zeros(len(counts))
    np.minimum.at(smallest, cells, scores)
    np.maximum.at(largest, cells, scores)
    # Leading digits are summed without rounding, so sums do not depend on the order of the rows.
    units = np.ldexp(1.0, np.frexp(np.maximum(largest, 1e-280))[1] - _DIGITS)[cells]
    leading = np.rint(added / units) * units
    sums = np.bincount(cells, leading) + np.bincount(cells, added - leading)
    means = np.minimum(np.maximum(sums / mass, smallest), largest)  # exact for equal scores
    by_score = np.lexsort((largest, smallest, means))
    low, high = smallest, largest = smallest[by_score], largest[by_score]
    if isinstance(binning, ScoreBinning):
        edges = binning.edges_of(scores, rows.weights)
        low, high = (edges[intervals(largest, edges) + end] for end in (0, 1))
    by_bin: Any = [each[by_score] for each in (counts, mass, events, means)]
    return ReliabilityCurve(*(low, high, smallest, largest, *by_bin, np.argsort(by_score)[cells]))


@arguments(bins=Whole(1, 100_000))
def bin_table(
    probs: object,
    labels: object,
    *,
    bins: int = 10,
    lens: str | Lens | None = None,
    class_names: Sequence[str | int] | None = None,
    clip: float | None = None,
    weights: object = None,
    sampling_rates: Mapping[Any, float] | None = None,
) -> pd.DataFrame:
    """Tabulate the calibration error of every bin: unsigned, signed and entropic.

    Parameters
    ----------
    probs : array of shape (n,) or (n, m), or data frame
        As in :func:`caltest.test`.
    labels : array of shape (n,)
        As in :func:`caltest.test`.
    bins : int, default 10
        Number of bins of equal width on [0, 1]. Bins are (a, b], as everywhere in the package; the
        first one includes 0.
    lens : str or Lens, optional
        As in :func:`caltest.test`; default "top_label" with more than two classes.
    class_names : sequence of str or int, optional
        Names of the classes, in the order of the columns, as in :func:`caltest.test`.
    clip : float, optional
        As in :class:`caltest.statistics.ECD`.
    weights : array of shape (n,), optional
        How much each row counts, as in :func:`caltest.test`. Default None: all rows have equal
        weight.
    sampling_rates : dict of class to float, optional
        If rows were sampled by their label: for each class, the share of its rows that was kept,
        as in :func:`caltest.test`. The table then describes what the predictions mean among the
        rows kept. Default None: rows were not sampled by label.

    Returns
    -------
    pandas.DataFrame
        One row per bin, and a last row, "weighted sum", in which bins are weighted by their number
        of rows. Columns: ``count``; ``confidence``, the mean predicted probability of the event;
        ``frequency``, the share of rows in which it was observed; ``ece`` = |frequency −
        confidence|; ``esce`` = frequency − confidence, below 0 if the event is predicted too
        often; ``ecd``, the entropic calibration difference, above 0 if the model is overconfident.
        Bins without rows have NaN. With weights, all columns except ``count`` are weighted, and
        ``share`` is each bin's share of the total weight.

    Raises
    ------
    InputError
        If the input is not a set of predictions and labels.

    References
    ----------
    Sumler et al. 2025, Tables I and II.

    Examples
    --------
    >>> import caltest
    >>> table = caltest.bin_table([0.2, 0.2, 0.9, 0.9], [0, 1, 1, 1], bins=2)
    >>> table.round(3)
                  count  confidence  frequency  ece  esce    ecd
    [0, 0.5]          2        0.20       0.50  0.3   0.3  0.416
    (0.5, 1]          2        0.90       1.00  0.1   0.1 -0.220
    weighted sum      4        0.55       0.75  0.2   0.2  0.098
    """
    import pandas as pd

    counting: dict[str, Any] = {"weights": weights, "sampling_rates": sampling_rates}
    whole = without_zeros(whole_sample(probs, labels, class_names=class_names, **counting))
    view, _ = one_probability(whole, lens, "a table is of")
    n, law, edges = view.rows.n_samples, view.rows.law, _even_edges(int(bins))
    curve = reliability_curve(view.rows, view.labels, EqualWidth(int(bins)))
    places, share = np.searchsorted(edges, curve.low), curve.mass / curve.mass.sum()

    def column(values: NDArray[Any], total: float, empty: float = np.nan) -> NDArray[Any]:
        found = np.full(len(edges), empty)
        found[places], found[-1] = values, total
        return found

    table = {"count": column(curve.counts, n, 0)}
    if not view.rows.are_alike:
        table["share"] = column(share, 1.0)
    surprise = law.surprises(clip)[np.arange(n), view.labels]  # type: ignore[attr-defined]
    ecd = np.bincount(curve.cells, view.rows.weighted(surprise)) / curve.mass
    error = curve.observed - curve.predicted
    means = {"confidence": curve.predicted, "frequency": curve.observed}
    means |= {"ece": np.abs(error), "esce": error, "ecd": ecd}
    table |= {name: column(each, float(share @ each)) for name, each in means.items()}
    names = [f"({low:g}, {high:g}]" for low, high in pairwise(edges)]
    return pd.DataFrame(table, index=[names[0].replace("(", "["), *names[1:], "weighted sum"])


# ---------------------------------------------------------------------- bands


class ConsistencyBand(NamedTuple):
    """The lower and upper ends of a consistency band; both ends belong to it."""

    low: Array
    high: Array

    def leaves_out(self, values: Array) -> Mask:
        """Return a mask of the values outside the band."""
        return np.asarray((values < self.low) | (values > self.high))


def law_of_events(chances: Array) -> Array:
    """Return the probabilities of 0, 1, … N events, and 0, (N + 2,)."""
    from caltest.loops import rows as _loops

    law, other = np.empty((2, len(chances) + 2))
    _loops.law_of_events(chances, law, other)
    return law


_FEW_EVENTS = 2**13  # below this, adding events one by one is faster


class CountLaw:
    """The number C of events among independent rows with known probabilities: P(C ≤ c) and P(C ≥ c)."""

    def __init__(self, probs: Array, compiled: bool = False) -> None:
        # Errors are absolute, some 1e-15: far below any tail that a band uses.
        if compiled and len(probs) <= _FEW_EVENTS:
            mass = law_of_events(probs)[:-1]
        else:
            mass = law_of_sum(np.column_stack([1.0 - probs, probs]))
        self.below = np.cumsum(mass)
        self.above = np.cumsum(mass[::-1])[::-1]

    def limits(self, tail: float) -> tuple[int, int]:
        """Return the narrowest limits with probability at most ``tail`` beyond them, on each side."""
        high = len(self.above) - 1 - int(np.searchsorted(self.above[::-1], tail, side="right"))
        return int(np.searchsorted(self.below, tail, side="right")), high

    def coverage(self, tail: float) -> float:
        """Return the probability of the limits."""
        low, high = self.limits(tail)
        return float(self.below[high] - (self.below[low - 1] if low else 0.0))


def share_bands(
    scores: Array, cells: Places, alpha: float, joint: float
) -> tuple[ConsistencyBand, ConsistencyBand]:
    """Return the pointwise and simultaneous bands for the observed rate of every bin.

    Bins share no row, so their counts are independent Poisson binomials, and the probability that all
    stay within limits is a product: both bands are exact, without simulation. Each side of a bin's
    pointwise band leaves out at most α/2; the simultaneous band cuts all tails at one level, the
    largest (up to α/2) for which the product is at least 1 − α. ``alpha`` is that of the pointwise
    band, ``joint`` that of the simultaneous one.
    """
    sizes, laws = _laws(scores, cells)

    def band(tail: float) -> ConsistencyBand:
        low, high = np.array([law.limits(tail) for law in laws]).T
        return ConsistencyBand(low / sizes, high / sizes)

    def holds(tail: float) -> bool:
        return float(np.prod([law.coverage(tail) for law in laws])) >= 1.0 - joint

    if holds(joint / 2):
        return band(alpha / 2), band(joint / 2)
    good, bad = joint / (2 * len(laws)), joint / 2  # the first is Bonferroni's level
    for _ in range(_HALVINGS):
        middle = (good + bad) / 2
        good, bad = (middle, bad) if holds(middle) else (good, middle)
    return band(alpha / 2), band(good)


def joint_bands(views: Sequence[tuple[Array, Places]], alpha: float) -> list[ConsistencyBand]:
    """Return bands for the rates of events in the bins of several views, simultaneous over all of them.

    Every bin has two tails. The probabilities beyond the limits of all tails sum to at most ``alpha``,
    which bounds the probability that any rate of a calibrated model leaves its band, however the views'
    rows overlap. Counts are integers, so a tail leaves out less than its part of ``alpha``; the
    remainder is used by other tails. All tails start with the same part, and the limit whose tail would
    be smallest moves in next, if the remainder allows; limits with equal tails, as for a symmetric law,
    move together or not at all. A view is the scores of its rows, (n,), and their bins, 0..K−1, none
    empty.
    """
    found = [_laws(scores, cells, compiled=True) for scores, cells in views]
    laws = [law for _, each in found for law in each]
    tails = [side for law in laws for side in (law.below, law.above[::-1])]
    part = alpha / max(1, len(tails))
    limits = np.array([np.searchsorted(tail, part, side="right") for tail in tails])
    spent = [float(tail[end - 1]) if end else 0.0 for tail, end in zip(tails, limits, strict=True)]
    left = alpha - math.fsum(spent)
    waiting = [(float(tail[limits[number]]), number) for number, tail in enumerate(tails)]
    heapq.heapify(waiting)
    while waiting and waiting[0][0] <= alpha / 2:
        mass = waiting[0][0] * (1.0 + _TIED)
        alike = []
        while waiting and waiting[0][0] <= mass:
            alike.append(heapq.heappop(waiting))
        cost = math.fsum(each - spent[number] for each, number in alike)
        if cost > left:
            continue  # these tails stay unchanged
        left -= cost
        for each, number in alike:
            spent[number] = each
            limits[number] += 1
            heapq.heappush(waiting, (float(tails[number][limits[number]]), number))
    sizes = np.concatenate([each for each, _ in found])
    low, high = limits[::2] / sizes, (sizes - limits[1::2]) / sizes
    ends = np.cumsum([len(each) for each, _ in found])[:-1]
    return list(map(ConsistencyBand, np.split(low, ends), np.split(high, ends)))


def _laws(scores: Array, cells: Places, compiled: bool = False) -> tuple[Places, list[CountLaw]]:
    """Return the sizes of the bins, and the laws of their counts."""
    order = np.argsort(cells, kind="stable")
    sizes = np.bincount(cells)
    return sizes, [CountLaw(part, compiled) for part in np.split(scores[order], np.cumsum(sizes)[:-1])]
