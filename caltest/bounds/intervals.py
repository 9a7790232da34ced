"""Intervals for a mean and for a mean error, exact for any number of rows.

Also approximate intervals for events and for risk until a horizon, with censored rows; and the
tolerances that the rows of an interval of scores refute.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Callable
from functools import partial
from itertools import chain, product
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import scipy
from numpy.typing import NDArray
from scipy.special import bdtr, betaincinv, gammainccinv, gammaincinv

from caltest._sums import Array
from caltest.binning import law_of_events
from caltest.forms import Side
from caltest.statistics.times import ProductLimit, follows, incidence, kaplan_meier, strata_of

Labels: TypeAlias = NDArray[np.integer[Any]]
Codes: TypeAlias = NDArray[np.intp] | None
Rates: TypeAlias = Array | None
Ends: TypeAlias = tuple[float, float]

LARGEST_LEVEL = 0.25  # of a single bound, for the proof in `mean_bounds`
_RATES = -12.0, 6.5  # range of log λ, with λ in units of 1 / largest weight


def mean_bounds(counts: Array, events: Array, level: float) -> tuple[Array, Array]:
    """Return bounds for the mean of a group's probabilities, which may all differ.

    ``counts`` are (K,) numbers of rows, at least 1, and ``events`` need not be whole; a single bound
    fails with probability at most ``level``, which may be up to 1/4. Bounds are Clopper and Pearson's,
    except for one event (or one row without), where they are level / n (or 1 − level / n).

    If L(1), the lower bound for one event, were Clopper and Pearson's, 1 − (1 − δ)^(1/n), which is
    above δ/n, it would fail if one row had all the probability: P(an event) can reach about δ + δ²/2.
    The proof is in docs/theory/bounds.md (Hoeffding 1956, Theorem 4; Greenberg and Mohri 2014).
    """

    def lower(events: Array) -> Array:
        found = betaincinv(np.maximum(events, 1.0), counts - np.maximum(events, 1.0) + 1.0, level)
        return np.where(events > 1.0, found, np.clip(events, 0.0, 1.0) * level / counts)

    return lower(events), 1.0 - lower(counts - events)


def absolute_bounds(stated: Array, counts: Array, events: Array, level: float) -> Ends:
    """Return one-sided bounds, at ``level`` each, for the mean absolute error of (P,) groups.

    It is the largest of the 2^P mean errors obtained by choosing a sign for each group. Changing the
    sign of a group means predicting the opposite event there, so each of them is a mean error of all
    rows, with the bounds of :func:`mean_bounds`; all hold at once, at ``level`` / 2^P.

    Groups have ``counts`` rows and ``events``; ``stated`` are mean predictions. P is 12 or fewer.

    Examples
    --------
    >>> two = np.array([500.0, 500.0])
    >>> low, high = absolute_bounds(np.array([0.2, 0.8]), two, np.array([150, 350]), 0.025)
    >>> round(low, 3), round(high, 3)  # 10 points too low, and 10 too high: 0 on average
    (0.064, 0.138)
    """
    turned = np.array(list(product((False, True), repeat=len(counts))))
    n = np.full(len(turned), float(counts.sum()))
    seen = np.where(turned, counts - events, events).sum(axis=1)
    stated = np.where(turned, 1.0 - stated, stated) @ counts / n
    least, most = mean_bounds(n, seen, level / len(turned))
    return max(float((stated - most).max()), 0.0), float((stated - least).max())


# ------------------------------------------------------------------ a mean error
#
# Let rows be independent, with events y_i of unknown probability q_i, and D_i ≥ 0. For λ, ν > 0 and any
# q with Σ D_i q_i ≤ b
#
#     log P(Σ D_i y_i ≥ s) ≤ Σ log(1 − q_i + q_i e^{λ D_i}) − λ s ≤ F = Σ h(λ D_i, ν D_i) + ν b − λ s,
#     h(x, z) = max over q in [0, 1] of log(1 − q + q e^x) − z q,  at q = 1/z − 1/(e^x − 1), clipped.
#
# F < log(level) refutes that constraint, *whatever λ and ν are*: a search that stops early makes an
# interval wider, never too short. Let rows have weights w_i and predictions c_i of the population, and
# be kept at the rates s_1 with the event and s_0 without. If e is the mean error of the population, the
# values w_i (c_i − y_i − e) / s_{y_i} have expectations that sum to 0: Σ D_i q_i = b, with
#
#     D_i = w_i ((1 − c_i + e) / s_1 + (c_i − e) / s_0),    b = Σ w_i (c_i − e) / s_0.
#
# Without rates D_i = w_i. If D_i < 0, the row has size |D_i| and its event is y_i = 0. By convexity the
# rows of a cluster, however dependent, can be replaced by one row of size Σ |D_i|.
#
# For fixed λ and ν, F is convex in e, and h(λ D, ν D) in D. So if two errors e are refuted, all errors
# between them are, and intervals close in from outside. And a row may be split between two nodes of a
# grid with mean D: F grows only slightly, and computing time does not depend on the number of rows.
#
# Source of the bound: Chernoff (1952) and Hoeffding (1963), here for the worst q_i.

_RATIO = 1.05  # of nodes: D² grows by less than 0.06%, and intervals by half of that
_NODES = 283  # down to a millionth of the largest; below, the next node is 0
_SLACK = 1e-9  # relative to log(level), far more than rounding errors
_LEAST_RATE = 1e-10  # relative to the largest: below, rounding would decide where an interval ends
_STEPS, _CLOSE = 40, 1e-4  # towards an end of the interval; the next step squares the error, about
_LEAST = 1e-12  # relative to the largest size
_MOST = 700.0  # λ times the largest D


def error_bounds(
    scores: Array, labels: Labels, level: float, weights: Array, kept: Rates = None, codes: Codes = None
) -> Ends:
    """Return one-sided bounds, at ``level`` each, for the mean error (predicted minus true rate).

    Parameters
    ----------
    scores, labels
        Predictions in the population, and events, (n,).
    level
        Level of one side.
    weights
        Weights of rows, at least one of them above 0.
    kept
        Sampling rates of rows without and with the event, (n, 2); default: all rows were kept.
    codes
        Clusters of rows, from 0; default: rows are independent.

    Examples
    --------
    >>> low, high = error_bounds(np.full(100, 0.1), np.arange(100) < 10, 0.025, np.ones(100))
    >>> round(low, 3), round(high, 3)
    (-0.1, 0.062)
    """
    w, kept = weights / weights.max(), np.ones((1, 2)) if kept is None else kept
    if kept.min() < _LEAST_RATE * kept.max():
        return float(scores.min()) - 1.0, float(scores.max())
    high = _largest(scores, labels, level, w, kept, codes)
    return -_largest(1.0 - scores, 1 - labels, level, w, kept[:, ::-1], codes), high


class _Supposed(NamedTuple):
    """The rows at a supposed error: sizes D with their counts, b, and Σ D y."""

    sizes: Array
    counts: Array
    most: float
    seen: float

    def shares(self, rate: float, nu: float) -> tuple[Array, Array]:
        """Return q and e^h e^(ν D q − λ D)."""
        x = rate * self.sizes
        q = np.clip(1.0 / (nu * self.sizes) - np.exp(-x) / -np.expm1(-x), 0.0, 1.0)
        return q, q + (1.0 - q) * np.exp(-x)

    def value(self, rate: float, nu: float) -> float:
        """Return F at λ and ν."""
        q, scaled = self.shares(rate, nu)
        each = self.sizes * (rate - nu * q) + np.log(scaled)
        return float(self.counts @ each) + nu * self.most - rate * self.seen

    def best(self, rate: float) -> Ends:
        """Return λ and ν that nearly minimise F: λ by Newton's method from ``rate``, ν exactly."""
        low, high, last = 0.0, math.inf, _MOST / float(self.sizes.max())
        while True:
            rate = min(rate, last)
            most = self.sizes / -np.expm1(-rate * self.sizes)
            # Σ D q is piecewise linear in 1/ν: a row's q leaves 0 at ``most`` − D and reaches 1 at
            # ``most``.
            corners = np.concatenate([most * np.exp(-rate * self.sizes), most])
            order = np.argsort(corners, kind="stable")
            rises = np.cumsum(np.concatenate([self.counts, -self.counts])[order])
            sums = np.cumsum(rises[:-1] * np.diff(corners[order]))
            nu = 1.0 / float(np.interp(self.most, np.append(0.0, sums), corners[order]))
            q, scaled = self.shares(rate, nu)
            tilted = q / scaled
            gap = float(self.counts @ (self.sizes * tilted)) - self.seen  # dF/dλ, which is increasing
            free, rest = self.counts * ((q > 0.0) & (q < 1.0)), most - self.sizes * tilted
            rest -= float(free @ rest) / max(float(free.sum()), 1e-300)
            spread = self.sizes**2 * tilted * (1.0 - tilted)
            curve = float(self.counts @ spread) + float(free @ (rest * rest))
            low, high = (low, rate) if gap > 0.0 else (rate, high)
            if gap * gap <= _CLOSE * curve or min(high, last) <= low * (1.0 + _LEAST):
                return rate, nu
            rate *= math.exp(min(max(-gap / max(rate * curve, 1e-300), -2.0), 2.0))
            if not low < rate < high:
                rate = math.sqrt(low * high)


def _pooled(values: Array, counts: Array) -> tuple[Array, Array]:
    """Return the nodes of a grid below the largest value, with the counts split among them.

    Few values stay unchanged, unless they are nearly 0.
    """
    if len(values) <= _NODES:
        return np.maximum(values, _LEAST * values.max()), counts
    nodes = np.append(values.max() * _RATIO ** -np.arange(float(_NODES)), 0.0)
    depth = np.log(nodes[0] / np.maximum(values, nodes[-2])) / math.log(_RATIO)
    place = np.minimum(depth.astype(np.intp), _NODES - 1)
    low = nodes[place + 1]
    above = counts * np.clip((values - low) / (nodes[place] - low), 0.0, 1.0)
    found: Array = np.bincount(place, above, _NODES).astype(np.float64)
    found[1:] += np.bincount(place + 1, counts - above, _NODES + 1)[1:_NODES]  # zero values add nothing
    own = found > 0.0
    return nodes[:-1][own], found[own]


def _largest(scores: Array, labels: Labels, level: float, w: Array, kept: Array, codes: Codes) -> float:
    """Return the largest mean error that is not refuted."""
    without, event = kept.min() / kept.T
    slope = without - event
    sizes, slopes, counts = w * (event + scores * slope), w * slope, np.ones(len(w))
    most = float((w * without) @ scores), float((w * without).sum())
    seen = float(labels @ sizes), float(labels @ slopes)
    rounding = 1e-15 * float(w.sum())  # b is increased and Σ D y decreased by it
    if codes is not None and not slope.any():
        sizes, codes = np.bincount(codes, sizes).astype(np.float64), None
        slopes, counts = np.zeros(1), np.ones(len(sizes))
    if codes is None and len(sizes) > _NODES and slopes.min() == slopes.max():
        sizes, counts = _pooled(sizes, counts)
        slopes = slopes[:1]

    def at(error: float) -> _Supposed:
        here = sizes - error * slopes
        turned = float(np.minimum(here, 0.0) @ counts)
        here = np.abs(here) if codes is None else np.bincount(codes, np.abs(here)).astype(np.float64)
        b, s = (value - error * share - turned for value, share in (most, seen))
        return _Supposed(*_pooled(here, counts[: len(here)]), b + rounding, s - rounding)

    start = (most[0] - seen[0]) / (most[1] - seen[1])  # the estimate
    error = float(scores.max())
    inner, outer = at(start), at(error)
    for _ in range(_STEPS):
        if outer.most >= 0.0:
            break
        # Some errors are impossible for every q; whether they are is a convex function of e.
        error = start + (error - start) * max(inner.most, 0.0) / (inner.most - outer.most)
        outer = at(error)
    if inner.seen <= 0.0 or error <= start:
        return error
    tried = (start + error) / 2.0
    refuted, rate = math.log(level) * (1.0 + _SLACK), 1.0
    for _ in range(_STEPS):
        here = at(tried)
        if min(here.most, here.seen) <= 0.0:
            break
        rate, nu = here.best(rate)
        near, far = inner.value(rate, nu), outer.value(rate, nu)
        if far > refuted:  # no progress, or everything that can be refuted is
            if tried == error:
                break
            tried = (tried + error) / 2.0 if error - tried > 1e-6 * (error - start) else error
            continue
        tried = start + (error - start) * (near - refuted) / (near - far)
        close = error - tried <= _CLOSE * (tried - start)
        error = tried
        if close:
            break
        outer = at(error)
    return error


# ------------------------------------------------------------------ events, and risk until a horizon
#
# For times until an event, some of them censored; limits hold approximately. The number of events is
# treated as Poisson (Garwood 1936), although the number expected in the observed part is random as
# well. Risk is Kaplan–Meier within strata of similar predicted risk, with beta-product limits (Fay,
# Brittain, Proschan 2013), averaged; limits of the average are combined from those of the strata
# (MOVER; Zou and Donner 2008).


class Sizing(NamedTuple):
    """An estimate with its limits."""

    estimate: float
    low: float
    high: float


def events_bounds(events: float, level: float) -> Ends:
    """Return one-sided limits, at ``level`` each, for the mean of a Poisson count.

    Examples
    --------
    >>> low, high = events_bounds(5.0, 0.025)
    >>> round(low, 3), round(high, 3)
    (1.623, 11.668)
    """
    low = float(gammaincinv(events, level)) if events else 0.0
    return low, float(gammainccinv(events + 1.0, level))


def ratio_bounds(events: float, expected: Array, counts: Array, codes: Codes, level: float) -> Ends:
    """Return limits for the ratio of observed to expected events, for rows with weights.

    This holds however rows of a cluster depend on each other. With N = Σ counts · events and any λ,
    exp(λ N − ratio · Σ E_c (e^(λ C_c) − 1) / C_c) is at most 1 on average, where E_c is Σ counts ·
    expected and C_c is Σ counts in a cluster: by convexity its rows are at worst a single event of size
    C_c. Each λ gives a limit (Chernoff), and the best one is returned.

    Examples
    --------
    >>> import numpy as np
    >>> each, one = np.full(40, 0.5), np.zeros(40, dtype=np.intp)
    >>> low, high = ratio_bounds(20.0, each, np.ones(40), None, 0.025)  # of rows by themselves
    >>> round(low, 3), round(high, 3)
    (0.509, 1.736)
    >>> low, high = ratio_bounds(20.0, each, np.ones(40), one, 0.025)  # of one cluster
    >>> round(low, 3), round(high, 3)
    (0.0, 10.753)
    """
    if codes is not None:
        expected = np.bincount(codes, counts * expected) / np.bincount(codes, counts)
        counts = np.bincount(codes, counts).astype(np.float64)
    most, far = float(counts.max()), -math.log(level)

    def limit(at: float, side: float) -> float:
        rate = side * math.exp(at) / most
        with np.errstate(over="ignore"):
            whole = abs(float(expected @ np.expm1(rate * counts)))
        return (far - rate * events) / max(whole, 1e-300)

    least = partial(scipy.optimize.minimize_scalar, limit, bounds=_RATES, method="bounded")
    low, high = (float(least(args=(side,)).fun) for side in (1.0, -1.0))
    return max(0.0, -low), high


def product_bounds(found: ProductLimit, level: float) -> Ends:
    """Return beta-product limits, at about ``level`` each, for a survival probability.

    A product of Beta(Y, 1) over single events with Y rows at risk, with one more factor for the lower
    limit, is approximated by a beta distribution with the same mean and variance. Without censoring
    these are Clopper and Pearson's limits.

    Examples
    --------
    >>> import numpy as np
    >>> time, event = np.arange(1.0, 11.0), np.arange(10) < 3
    >>> low, high = product_bounds(kaplan_meier(time, event, 3.0), 0.025)
    >>> round(low, 3), round(high, 3)  # 7 of 10
    (0.348, 0.933)
    """
    low = _quantile(np.append(found.at_risk, found.left), level) if found.left else 0.0
    return low, 1.0 if not len(found.at_risk) else _quantile(found.at_risk, 1.0 - level)


def _quantile(counts: Array, level: float) -> float:
    first, second = float(np.prod(counts / (counts + 1.0))), float(np.prod(counts / (counts + 2.0)))
    scale = (first - second) / max(second - first**2, 1e-300)
    return float(betaincinv(first * scale, (1.0 - first) * scale, level))


class StratifiedRisk(NamedTuple):
    """The risk until a horizon, averaged over strata of similar predicted risk."""

    unknown: float  # share of rows in strata where nobody was followed until then
    limits: Callable[[float], Sizing]  # the risk and its limits at a level


def risk_bounds(
    time: Array,
    event: NDArray[np.bool_],
    risk: Array,
    expected: Array,
    horizon: float,
    fewest: int = 1,
    apart: Codes = None,
    weights: Array | None = None,
    reach: Callable[[Array, float], Ends] | None = None,
) -> StratifiedRisk | None:
    """Return the risk until a horizon, averaged over strata of similar predicted risk, with limits.

    There are about ten strata by predicted risk, or fewer with five expected events each; None if there
    are fewer than ``fewest``, unless the risk stands for what was ``expected`` and every stratum has a
    single risk. A stratum in which censoring depends on the risk is halved repeatedly, as long as five
    events are expected in each half. If it still does, the remaining rows are not like those lost: if
    curves do not cross, Kaplan and Meier's risk lies between the least and the largest risk there, and
    limits are widened by their distances from the mean.

    In a stratum where no row was followed until the horizon, the risk may be anything between the value
    proved while rows were followed and 1. The estimate continues its hazards at the same ratio to the
    predicted ones as before; or as predicted, if the ``expected`` part of what was observed is not
    known and the risk stands for it. Rows with different numbers in ``apart`` have their own strata.

    With ``fewest`` 0, all rows form a stratum if there are no others, and no hazards are continued,
    because those of competing events do not continue by themselves: the estimate adds no events. Then
    rows may have ``weights``, and ``reach`` returns how far limits lie at a level, from the
    contribution of each row.
    """

    def halved(rows: NDArray[np.intp]) -> list[tuple[NDArray[np.intp], bool]]:
        """Return these rows or halves of them, with whether censoring depends on the risk there."""
        if not follows(time[rows], event[rows], risk[rows], horizon):
            return [(rows, False)]
        if len(halves := strata_of(risk[rows], expected[rows], 2)) < 2:
            return [(rows, True)]
        return [each for half in halves for each in halved(rows[half])]

    apart = np.zeros(len(risk), np.intp) if apart is None else apart
    w, added = np.ones(len(risk)) if weights is None else weights, np.zeros(len(risk))
    whole = float(w.sum())
    strata, single = list[NDArray[np.intp]](), int(apart.any() or not fewest)
    for code in np.unique(apart):
        alike = np.flatnonzero(apart == code)
        strata += [alike[part] for part in strata_of(risk[alike], expected[alike])] or [alike] * single
    same = expected is risk and not any(np.ptp(risk[rows]) for rows in strata)
    if len(strata) < (1 if same else fewest):
        return None
    each = list[tuple[float, float, float, ProductLimit, bool, Array]]()
    for rows, lost in chain.from_iterable(map(halved, strata)):
        found, stated = kaplan_meier(time[rows], event[rows], horizon), risk[rows]
        seen: Any = found or kaplan_meier(time[rows], event[rows], float(time[rows].max()))
        share = float(w[rows].sum()) / whole
        own = observed = 1.0 - seen.survival
        if reach:
            own, values = incidence(time[rows], event[rows], horizon, w[rows])
            observed, added[rows] = own, share * values
        elif found is None and fewest:
            came = float(np.sum((event[rows] == 1) & (time[rows] <= horizon)))
            due = 0.0 if expected is risk else float(expected[rows].sum())
            ratio = came / due if due > 0.0 else 1.0
            own = max(scaled_risk(stated, np.ones(len(rows)), ratio), own)
        wider = lost * np.array([stated.max() - stated.mean(), stated.mean() - stated.min()])
        each.append((share, own, observed, seen, found is not None, wider))

    def limits(level: float) -> Sizing:
        mean, missing, squares = 0.0, np.zeros(2), np.zeros(2)
        for share, own, observed, seen, followed, wider in each:
            least, most = product_bounds(seen, level)
            squares[0] += (share * (observed - 1.0 + most)) ** 2
            if followed:
                squares[1] += (share * (1.0 - least - observed)) ** 2
            else:
                missing += share * (own - observed), share * (1.0 - own)
            missing += share * wider
            mean += share * own
        low, high = missing + (reach(added, level) if reach else np.sqrt(squares))
        return Sizing(mean, max(mean - float(low), 0.0), min(mean + float(high), 1.0))

    unknown = min(math.fsum(share for share, *_, followed, _ in each if not followed), 1.0)
    return StratifiedRisk(unknown, limits)


def scaled_risk(risk: Array, weights: Array, ratio: float) -> float:
    """Return the mean risk if all hazards were multiplied by ``ratio``."""
    with np.errstate(divide="ignore", over="ignore"):
        logs = np.maximum(np.log1p(-risk), -1e200)  # a certain event becomes none at ratio 0
        return float(weights @ -np.expm1(ratio * logs) / weights.sum())


# ------------------------------------------------------------------ intervals of scores that refute


_EXACT_ROWS = 8192  # rows of an interval; for more, the binomial bound is about as sharp
_ROUNDING_OF_A_CHANCE = 1e-13  # largest rounding error of a probability


def largest_refuted(scan: Any, labels: NDArray[np.intp], side: Side, level: float) -> NDArray[np.intp]:
    """Return for each interval the largest tolerance that is refuted there, −1 if none is.

    ``scan`` is a :class:`~caltest.bounds.lower.ShiftedScan`, and labels are in the order of its rows;
    ``level`` is the probability that any returned tolerance is not below the true error of its
    interval.

    Let S be the number of events in an interval and S^ε that of independent rows with the probabilities
    max(p − ε, 0). Then ε is refuted if P(S^ε ≤ S) is at most level/K, with K the number of distinct
    intervals: "Places" in docs/theory/bounds.md has the proof. For intervals of many rows, the Poisson
    binomial S^ε is replaced by the binomial with the same mean, whose lower tail is heavier at s ≤ mean
    − 1.
    """
    bounds = scan.intervals.bounds
    allowed = level / len(np.unique(bounds[scan.intervals.filled], axis=0))
    p = scan.probs[:, 1 if side == "over" else 0]
    counted = np.concatenate([[0], np.cumsum(labels if side == "over" else 1 - labels)])
    events = counted[bounds[:, 1]] - counted[bounds[:, 0]]
    rows, means = np.diff(bounds, axis=1), np.maximum(scan.expected_and_scale[side][0], 0.0)
    tails = bdtr(events[:, None], rows, np.clip(means / np.maximum(rows, 1), 0.0, 1.0))
    unlikely = (events[:, None] <= means - 1.0) & (tails + _ROUNDING_OF_A_CHANCE <= allowed)
    found = np.asarray(unlikely.sum(axis=1) - 1, dtype=np.intp)  # refuted ones come first: means fall

    def refuted(index: int, g: int) -> bool:
        """Return whether so few events are too unlikely for probabilities lowered by a tolerance."""
        law = law_of_events(np.maximum(p[slice(*bounds[index])] - scan.tolerances[g], 0.0))
        return float(law[: events[index] + 1].sum()) + _ROUNDING_OF_A_CHANCE <= allowed

    for index in np.flatnonzero(scan.intervals.filled & (rows[:, 0] <= _EXACT_ROWS)).tolist():
        found[index] = _gallop(partial(refuted, index), int(found[index]), len(scan.grid))
    starts, stops = bounds.T
    holds = (starts[:, None] <= starts) & (stops <= stops[:, None]) & scan.intervals.filled
    return np.asarray(np.where(holds, found, -1).max(axis=1))


def _gallop(holds: Callable[[int], bool], known: int, count: int) -> int:
    """Return the last of 0..count − 1 for which ``holds``, true up to some place from ``known`` on."""
    step = 1
    while known + step < count and holds(known + step):
        known, step = known + step, 2 * step
    between = range(known + 1, min(known + step, count))
    return known + bisect_left(between, True, key=lambda place: not holds(place))
