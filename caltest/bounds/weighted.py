"""Exact intervals of the mean error of rows that count differently, for any number of rows.

Let rows be independent, with events y_i of unknown probability q_i, and D_i ≥ 0. For λ, ν > 0 and any
q with Σ D_i q_i ≤ b

    log P(Σ D_i y_i ≥ s) ≤ Σ log(1 − q_i + q_i e^{λ D_i}) − λ s ≤ F = Σ h(λ D_i, ν D_i) + ν b − λ s,
    h(x, z) = max over q in [0, 1] of log(1 − q + q e^x) − z q,  at q = 1/z − 1/(e^x − 1), clipped.

F < log(level) refutes that constraint, *whatever λ and ν are*: a search that stops early makes an
interval wider, never too short. Let rows have weights w_i and predictions c_i of the population, and be
kept at the rates s_1 with the event and s_0 without. At the mean error e of the population the values
w_i (c_i − y_i − e) / s_{y_i} have expectations that sum to 0: Σ D_i q_i = b, with

    D_i = w_i ((1 − c_i + e) / s_1 + (c_i − e) / s_0),    b = Σ w_i (c_i − e) / s_0.

Without rates D_i = w_i. Where D_i < 0, the row counts |D_i| if it has no event. By convexity the rows
of a cluster, in whatever dependence, are like one row that counts Σ |D_i|.

For fixed λ and ν, F is convex in e, and h(λ D, ν D) in D. So what refutes two errors e refutes all
between, by which intervals close in from outside. And a row may be split among two nodes of a grid
whose mean is D: F becomes larger by a hair, and its time does not depend on the number of rows.

Source of the bound: Chernoff (1952) and Hoeffding (1963), here for the worst q_i.
"""

from __future__ import annotations

import math
from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

Array: TypeAlias = NDArray[np.float64]
Labels: TypeAlias = NDArray[np.integer]
Codes: TypeAlias = NDArray[np.intp] | None

_RATIO = 1.05  # of nodes: D² grows by less than .0006 of itself, and intervals by half of that
_NODES = 283  # to a millionth of the largest; below, the next node is 0
_SLACK = 1e-9  # of log(level), far more than what rounding may do
_LEAST_RATE = 1e-10  # of the largest: below, rounding decides where an interval ends
_STEPS, _CLOSE = 40, 1e-4  # towards an end of the interval; the next step is its square, or so
_LEAST = 1e-12  # of the largest size
_MOST = 700.0  # λ times the largest D


def error_bounds(
    scores: Array,
    labels: Labels,
    level: float,
    weights: Array,
    kept: Array | None = None,
    codes: Codes = None,
) -> tuple[float, float]:
    """Return bounds of the mean error, predicted less true rate, each missed with ``level`` at most.

    Parameters
    ----------
    scores, labels
        Predictions of the population and events, (n,).
    level
        Of a side.
    weights
        What rows count, at least one of them above 0.
    kept
        Of rows without and with the event the share that was kept, (n, 2); default: all.
    codes
        The clusters of rows, from 0; default: rows are independent.

    Examples
    --------
    >>> low, high = error_bounds(np.full(100, 0.1), np.arange(100) < 10, 0.025, np.ones(100))
    >>> round(low, 3), round(high, 3)
    (-0.1, 0.062)
    """
    w, kept = weights / weights.max(), np.ones((1, 2)) if kept is None else kept
    if kept.min() < _LEAST_RATE * kept.max():
        return float(scores.min()) - 1.0, float(scores.max())
    high = _end(scores, labels, level, w, kept, codes)
    return -_end(1.0 - scores, 1 - labels, level, w, kept[:, ::-1], codes), high


class _Supposed(NamedTuple):
    """What is known at a supposed error: sizes D with their counts, b, and Σ D y."""

    sizes: Array
    counts: Array
    most: float
    seen: float

    def shares(self, rate: float, nu: float) -> tuple[Array, Array]:
        """Return q, and e^h e^(ν D q − λ D)."""
        x = rate * self.sizes
        q = np.clip(1.0 / (nu * self.sizes) - np.exp(-x) / -np.expm1(-x), 0.0, 1.0)
        return q, q + (1.0 - q) * np.exp(-x)

    def value(self, rate: float, nu: float) -> float:
        """Return F at λ and ν."""
        q, scaled = self.shares(rate, nu)
        each = self.sizes * (rate - nu * q) + np.log(scaled)
        return float(self.counts @ each) + nu * self.most - rate * self.seen

    def best(self, rate: float) -> tuple[float, float]:
        """Return λ and ν where F is about least: λ by Newton's method from ``rate`` on, ν exactly."""
        low, high, last = 0.0, math.inf, _MOST / float(self.sizes.max())
        while True:
            rate = min(rate, last)
            most = self.sizes / -np.expm1(-rate * self.sizes)
            # Σ D q is piecewise linear in 1/ν: a row's q leaves 0 at ``most`` − D, is 1 at ``most``.
            corners = np.concatenate([most * np.exp(-rate * self.sizes), most])
            order = np.argsort(corners, kind="stable")
            rises = np.cumsum(np.concatenate([self.counts, -self.counts])[order])
            sums = np.cumsum(rises[:-1] * np.diff(corners[order]))
            nu = 1.0 / float(np.interp(self.most, np.append(0.0, sums), corners[order]))
            q, scaled = self.shares(rate, nu)
            tilted = q / scaled
            gap = float(self.counts @ (self.sizes * tilted)) - self.seen  # dF/dλ, which rises
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
    """Return the nodes of a grid down from the largest value, and the counts split among them.

    Few values stay as they are, but for those that are 0 or nearly.
    """
    if len(values) <= _NODES:
        return np.maximum(values, _LEAST * values.max()), counts
    nodes = np.append(values.max() * _RATIO ** -np.arange(float(_NODES)), 0.0)
    depth = np.log(nodes[0] / np.maximum(values, nodes[-2])) / math.log(_RATIO)
    place = np.minimum(depth.astype(np.intp), _NODES - 1)
    low = nodes[place + 1]
    above = counts * np.clip((values - low) / (nodes[place] - low), 0.0, 1.0)
    found: Array = np.bincount(place, above, _NODES).astype(np.float64)
    found[1:] += np.bincount(place + 1, counts - above, _NODES + 1)[1:_NODES]  # what is 0 adds nothing
    own = found > 0.0
    return nodes[:-1][own], found[own]


def _end(scores: Array, labels: Labels, level: float, w: Array, kept: Array, codes: Codes) -> float:
    """Return the largest mean error that is not refuted."""
    without, event = kept.min() / kept.T
    slope = without - event
    sizes, slopes, counts = w * (event + scores * slope), w * slope, np.ones(len(w))
    most = float((w * without) @ scores), float((w * without).sum())
    seen = float(labels @ sizes), float(labels @ slopes)
    rounding = 1e-15 * float(w.sum())  # b is taken to be larger by it, and Σ D y smaller
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
        # Errors that no q can have: below 0 is a convex function of e.
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
        if far > refuted:  # of no use, or all is refuted that can be
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
