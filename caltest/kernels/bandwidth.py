"""Distances between predictions, and bandwidths: numbers, or rules that depend on the predictions."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike

from caltest._arguments import as_float, choose
from caltest._parallel import check_fits
from caltest._sums import Array, Places, Tile, blocks
from caltest._visible import quoted
from caltest.exceptions import InputError

# ------------------------------------------------------------------ distances


#: Distances up to this are rounding error, from predictions in single precision and from the matrix
#: products under the square root of the Euclidean and the Hellinger distance.
ROUNDING = 1e-7

_HARMLESS = 1e-9  # rounding of an exponent; if it may be larger, exponents are cut at 0


def _squared_norms(x: Array) -> Array:
    return np.asarray(np.einsum("ij,ij->i", x, x))


@dataclass(frozen=True)
class Distance:
    """A distance on the simplex, defined by points that represent the predictions.

    All arrays are new, and the caller may overwrite them. Squares of Euclidean distances come from
    matrix products and carry rounding errors of about 1e-15. Under the square root these would make
    equal predictions 3e-8 apart, so distances below ``ROUNDING`` are set to 0.
    """

    embedded: Callable[[Array], Array]  #: Maps predictions (a, m) to points, perhaps the same array.
    hilbertian: bool  #: Whether distances are Euclidean; else sums of absolute differences.

    def pairwise(self, x: Array, y: Array) -> Array:
        """Return distances (a, b) from every row of ``x`` (a, m) to every row of ``y`` (b, m)."""
        if not self.hilbertian:
            return _cityblock(self.embedded(x), self.embedded(y).T)
        return _roots(self.squared(x, y))

    def squared(self, x: Array, y: Array) -> Array:
        """Return squared Euclidean distances (a, b), never negative."""
        centre = self.embedded(np.full(x.shape[1], 1.0 / x.shape[1]))  # keeps rounding small
        u, v = self.embedded(x) - centre, self.embedded(y) - centre
        squares: Array = u @ v.T
        squares *= -2.0
        squares += _squared_norms(u)[:, None]
        squares += _squared_norms(v)
        return np.maximum(squares, 0.0, out=squares)

    def paired(self, x: Array, y: Array) -> Array:
        """Return distances (a,) from the rows of ``x`` (a, m) to the same rows of ``y`` (a, m)."""
        apart = self.embedded(x) - self.embedded(y)
        if self.hilbertian:
            return np.sqrt(_squared_norms(apart))
        return np.asarray(np.abs(apart).sum(axis=1))

    def tiles(self, points: Array) -> Tile:
        """Return distances of all pairs of rows of ``points`` (n, m), as a function of tiles."""
        u = self.embedded(points)
        if self.hilbertian:
            exponents = exponent_tiles(u, 1.0)
            return lambda rows, columns: _roots(-2.0 * exponents(rows, columns))
        transposed = np.ascontiguousarray(u.T)
        return lambda rows, columns: _cityblock(u[rows], transposed[:, columns], rows == columns)


def _cityblock(x: Array, y: Array, within: bool = False) -> Array:
    """Return distances (a, b) of points (a, m) to others (m, b), or to themselves."""
    from caltest.loops import kernels as _kernel_loops

    d = np.empty((len(x), y.shape[1]), dtype=x.dtype)
    _kernel_loops.cityblock(x, np.ascontiguousarray(y), within, d)
    return d


def _roots(squares: Array) -> Array:
    squares[squares < ROUNDING**2] = 0.0
    return np.sqrt(squares, out=squares)


def exponent_tiles(points: Array, width: float) -> Tile:
    """Return tiles of −½|u_i − u_j|² for points in units of a width, above 0 by rounding at most.

    They take one matrix product: with h_i = ½|u_i|², −½|u_i − u_j|² = (u_i, −h_i, 1) · (u_j, 1, −h_j),
    so norms need no extra pass over the tile. Points are centred first, which keeps rounding small.
    """
    u = (points - points.mean(axis=0)) / width
    norms = 0.5 * _squared_norms(u)[:, None]
    ones = np.ones_like(norms)
    left, right = np.hstack([u, -norms, ones]), np.ascontiguousarray(np.hstack([u, ones, -norms]).T)
    bounded = np.finfo(float).eps * u.shape[1] * float(norms.max(initial=0.0)) > _HARMLESS

    def tile(rows: slice, columns: slice) -> Array:
        products: Array = left[rows] @ right[:, columns]
        return np.minimum(products, 0.0, out=products) if bounded else products

    return tile


#: Total variation, ½ Σ|s − t|; √Σ(s − t)²; and √(½ Σ(√s − √t)²).
DISTANCES = {
    "tv": Distance(lambda x: 0.5 * x, hilbertian=False),
    "euclidean": Distance(lambda x: x, hilbertian=True),
    "hellinger": Distance(lambda x: np.sqrt(0.5 * x), hilbertian=True),
}


# ------------------------------------------------------------------ pairs of rows


TILE = 512  # rows and columns of a tile of the matrix of distances
_ROUNDING_OF_SHARES = 1e-12  # share of the weight of all pairs


@dataclass(frozen=True, eq=False)
class Pairs:
    """The distances of all pairs i < j of rows; a pair has the product of its rows' weights."""

    rows: Array  #: Predictions (n, m).
    weights: Array  #: (n,), positive; all ones if weights are equal.
    metric: Distance

    @cached_property
    def _alike(self) -> bool:
        return bool((self.weights == 1.0).all())

    @cached_property
    def _known(self) -> tuple[Array, Array | None]:
        """All distances, and the weights of pairs; None if all weights are 1."""
        n = len(self.rows)
        do = "take the bandwidth rule 'median', which looks at some of them"
        check_fits((8.0 if self._alike else 24.0) * n * n, f"a distance for every pair of {n} rows", do)
        cut, tile = blocks(n, TILE), self.metric.tiles(self.rows)
        distances, counts = [np.empty(0)], [np.empty(0)]
        for place, own in enumerate(cut):
            for other in cut[place:]:
                pairs = tile(own, other)
                chosen = ~np.tri(len(pairs), dtype=bool) if other == own else np.s_[:]
                distances.append(pairs[chosen].ravel())
                if not self._alike:
                    counts.append(np.outer(self.weights[own], self.weights[other])[chosen].ravel())
        return np.concatenate(distances), None if self._alike else np.concatenate(counts)

    def mean(self, positive: bool = False) -> float:
        """Return the mean distance, of all pairs or of the positive ones; 0 if there are none."""
        d, counts = self._known
        if not (chosen := d > ROUNDING if positive else np.ones(len(d), dtype=bool)).any():
            return 0.0
        return float(np.average(d[chosen], weights=None if counts is None else counts[chosen]))

    def median(self, zeros: float = 0.0) -> float:
        """Return the median of the distances, with additional zeros of that weight."""
        w, (d, counts) = self.weights, self._known
        total = 0.5 * float(w @ (w.sum() - w))
        below, slack = 0.5 * (total - zeros), _ROUNDING_OF_SHARES * total
        if below + slack <= 0.0:
            return 0.0
        ends = np.array([below - slack, below + slack])  # the median is the middle of these
        if counts is None:
            places = (np.ceil(ends).astype(np.intp) - 1).clip(0, len(d) - 1)
            found = _in_order(d, places)
        else:
            order = np.argsort(d)
            places = np.searchsorted(np.cumsum(counts[order]), ends)
            found = d[order[places.clip(max=len(d) - 1)]]
        return float(np.where(ends > 0.0, found, 0.0).mean())


_SAMPLED = 10_000  # values whose quantiles are within about a hundredth of those of all


def _in_order(values: Array, places: Places) -> Array:
    """Return the values at neighbouring places in sorted order, searched near quantiles of a sample."""
    sample = np.sort(values[:: max(len(values) // _SAMPLED, 1)])
    ranks = (places[0] / len(values) + np.array([-0.02, 0.02])) * len(sample)
    low, high = sample[ranks.astype(np.intp).clip(0, len(sample) - 1)]
    near, inside = values[(values >= low) & (values <= high)], places - np.count_nonzero(values < low)
    if inside.min() < 0 or inside.max() >= len(near):
        near, inside = values, places
    return np.asarray(np.partition(near, inside)[inside])


# ------------------------------------------------------------------ bandwidth
#
# A bandwidth may depend on the predictions in any way, because a test holds them fixed; it never
# depends on the labels, or on the order of the rows.


ALL_PAIRS_UP_TO = 5000  # rows; with more, "median" and "mean" use representative ones only
REPRESENTATIVES = 2048  # rows that they use, and that features are fitted to
SMALLEST = 1e-100  # smallest bandwidth whose square and their inverses are floats


@dataclass(frozen=True, slots=True)
class Bandwidth:
    """A bandwidth and where it comes from."""

    value: float  #: In units of the distance; positive.
    rule: str = "given"  #: The rule that it comes from.
    notes: tuple[str, ...] = ()  #: Remarks for the user, one sentence each.


def checked(rule: float | str) -> float | str:
    """Return ``rule`` if it is the name of a rule, else as a positive float."""
    if isinstance(rule, str):
        choose("bandwidth rule", rule, RULES)
        return rule
    if (number := as_float(rule)) is None or not SMALLEST <= number < math.inf:
        do = f"give a positive number, at least {SMALLEST:g}, or the name of a rule"
        raise InputError(f"The bandwidth is {quoted(rule)}; {do} ({', '.join(map(repr, RULES))}).")
    return number


def resolve(rule: str, probs: ArrayLike, metric: Distance, weights: Array | None = None) -> Bandwidth:
    """Turn a bandwidth rule into a number.

    Parameters
    ----------
    rule
        One of

        * ``"median"``: the median distance over the pairs i < j. For more than 5000 rows, over all
          pairs of 2048 representative rows: the predictions are put in the order of a fixed linear
          score, and evenly spaced ones are taken. Nothing is random, and the order of the rows
          does not matter;
        * ``"median_exact"``: the median over all pairs i < j, which have to fit into memory;
        * ``"median_full"``: the median of the whole n×n matrix, its zero diagonal included, as in
          the published experiments [1]_; all pairs;
        * ``"mean"``: the mean distance over the pairs i < j, of the same rows as ``"median"``.
    probs
        Predictions (n, m), rows on the simplex.
    metric
        The distance.
    weights
        Weights of rows, (n,), positive; a pair has the product of both. Representative rows are then at
        equal shares of the weight. Default None: equal weights.

    Returns
    -------
    Bandwidth
        If the rule gives 0, as the median does when most predictions are equal, the mean of the
        positive distances is used instead; if all predictions are equal, 1. A note says so. Distances
        up to 1e-7 are treated as 0.

    References
    ----------
    .. [1] Widmann, Lindsten and Zachariah (2019). Calibration tests in multi-class
       classification: a unifying framework. NeurIPS 32.

    Examples
    --------
    >>> resolve("median", [[1.0, 0.0], [0.5, 0.5], [0.4, 0.6]], DISTANCES["tv"])
    Bandwidth(value=0.5, rule='median', notes=())
    """
    rows = np.asarray(probs, dtype=np.float64)
    places = fixed_order(rows)
    counted = np.ones(len(rows)) if weights is None else weights[places]
    if rule not in ("median_exact", "median_full") and len(rows) > ALL_PAIRS_UP_TO:
        places, counted = _midpoints(places, counted)
    pairs = Pairs(np.ascontiguousarray(rows[places]), counted, metric)
    if (value := RULES[rule](pairs)) > ROUNDING:
        return Bandwidth(value, rule)
    if (mean := pairs.mean(positive=True)) == 0.0:
        note = "All predictions are equal, so the bandwidth does not matter and is set to 1."
        return Bandwidth(1.0, rule, (note,))
    found = f"The {rule.partition('_')[0]} distance of the predictions is 0"
    note = f"{found}, so the bandwidth is the mean of their positive distances."
    return Bandwidth(mean, rule, (note,))


def fixed_order(probs: Array) -> Places:
    """Return an order of the rows that depends on the predictions only, not on the rows' positions."""
    # 1, cos 1, cos 2, … are linearly independent over the rationals (Lindemann–Weierstrass), so two
    # rows of round numbers have the same score only if they are equal. einsum, unlike a matrix product,
    # gives a row the same score in any position.
    return np.argsort(np.einsum("ij,j->i", probs, np.cos(np.arange(probs.shape[1]))), kind="stable")


def representatives(probs: Array) -> Places:
    """Return the places of evenly spaced rows in that order; all rows if they are few."""
    order = fixed_order(probs)
    return _midpoints(order, np.ones(len(order)))[0] if len(order) > REPRESENTATIVES else order


def _midpoints(order: Places, weights: Array) -> tuple[Places, Array]:
    """Return rows at the midpoints of equal shares of the weight, and the number of times for each."""
    ends = np.cumsum(weights)
    shares = (np.arange(REPRESENTATIVES) + 0.5) / REPRESENTATIVES
    places = np.searchsorted(ends, shares * ends[-1], side="right")
    places, counts = np.unique(places.clip(max=len(order) - 1), return_counts=True)
    return order[places], counts.astype(np.float64)


# ------------------------------------------------------------------ rules


#: The bandwidth rules by name: functions of pairs of rows.
RULES: dict[str, Callable[[Pairs], float]] = {
    "median": Pairs.median,
    "median_exact": Pairs.median,
    # i < j is half of the matrix
    "median_full": lambda pairs: pairs.median(0.5 * float(pairs.weights @ pairs.weights)),
    "mean": Pairs.mean,
}
