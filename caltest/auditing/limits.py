"""Limits for mean errors: what lies beyond, what is proved to be within, and the rows needed.

An error matters if it is beyond the limit: in points of probability, as a ratio of predicted to true
rate, or both, in which case the wider one applies. A joint interval beyond the limit proves that an
error matters. The claim that *no* error of V views matters needs no correction: each view is shown to
be within by its own two one-sided tests at level α. The claim is an intersection and its opposite a
union: if any view is truly beyond the limit, the claim has to pass that view's test, with probability
at most α (Berger 1982; two one-sided tests: Schuirmann 1987).
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import chain
from typing import Any, Literal, NamedTuple, Self, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy.special import betainc, ndtr

from caltest._sums import Array
from caltest.forms import Side

Place: TypeAlias = Literal["beyond", "inside", "across"]

_MOST_ROWS = 2.0**40  # most rows considered
_CLOSE = 1e-4  # relative precision of a number of rows
_ALIKE = 0.98  # of a spread: from here on events are nearly binomial


BOTH: tuple[Side, ...] = ("under", "over")


class Limit(NamedTuple):
    """The mean error that matters: in points, as a ratio, or the wider of both; one-sided or two-sided.

    Attributes
    ----------
    under, over
        Limits in points, for predictions that are too low and too high; None if not given.
    ratio
        Limit for the ratio of predicted to true rate, in either direction.
    sides
        Sides that matter and are tested: on others, intervals have no end.
    """

    under: float | None = None
    over: float | None = None
    ratio: float | None = None
    sides: tuple[Side, ...] = BOTH

    @classmethod
    def of(cls, materiality: Any, ratio: float | None, sides: tuple[Side, ...] = BOTH) -> Self:
        """Return the limit for a number, or for numbers by side (None: that side does not matter)."""
        if not isinstance(materiality, Mapping):
            under, over = (materiality if side in sides else None for side in BOTH)
            return cls(under, over, ratio, sides)
        points = materiality.get("too_low"), materiality.get("too_high")
        if sides == ("over",) and points[1] is None:  # for sets: coverage that is too low
            points = points[::-1]
        matter = (side for side, each in zip(BOTH, points, strict=True) if each is not None)
        return cls(*points, ratio, tuple(matter))

    def __bool__(self) -> bool:
        return any(each is not None for each in (self.under, self.over, self.ratio))

    @property
    def only(self) -> Side | None:
        """The only side that matters; None if both do."""
        return self.sides[0] if len(self.sides) == 1 else None

    @property
    def drawn(self) -> tuple[float, ...]:
        """Errors or ratios at which it is drawn; none for points with a ratio, which differ by view."""
        by = self.ratio or 1.0
        ends = (-(self.under or 0.0), self.over or 0.0) if self.ratio is None else (1.0 / by, by)
        one = bool(self) and (self.ratio is None or self.under is self.over is None)
        return tuple(end for side, end in zip(BOTH, ends, strict=True) if one and side in self.sides)

    def allowed(self, predicted: float) -> tuple[float, float]:
        """Return the interval of true rates for which a predicted mean has no error that matters."""
        times = self.ratio or 1.0
        least = min(predicted - (self.over or 0.0), predicted / times)
        most = max(predicted + (self.under or 0.0), predicted * times)
        ends = least if "over" in self.sides else -math.inf, most
        return ends if "under" in self.sides else (ends[0], math.inf)

    def cut(
        self, predicted: float, low: float, high: float, *, ends: tuple[float, float] = (0.0, 1.0)
    ) -> tuple[float, float]:
        """Return the interval of an error, extended to the range on a side that does not matter.

        On such a side the true mean may take any value up to ``ends``, by default those of a rate.
        """
        least = low if "over" in self.sides else predicted - ends[1]
        return least, high if "under" in self.sides else predicted - ends[0]

    def shown(self, of: Any) -> Any:
        """Return an error with its interval for display: a missing end is replaced by the estimate."""
        ends = {"under": {"low": of.error}, "over": {"high": of.error}}
        return replace(of, **ends.get(self.only or "", {}))

    def place(self, predicted: float, low: float, high: float) -> Place:
        """Return where the interval of an error (predicted minus true rate) lies against the limit."""
        least, most = self.allowed(predicted)
        if predicted - low < least or predicted - high > most:
            return "beyond"
        return "inside" if least <= predicted - high and predicted - low <= most else "across"

    def exceeded(self, predicted: float, error: float) -> bool:
        """Return whether an error, as a number, is beyond the limit; False without a limit."""
        return bool(self) and self.place(predicted, error, error) == "beyond"


class Wanted(NamedTuple):
    """A view whose mean should be proved to be within a limit.

    Attributes
    ----------
    predicted
        Its predicted mean.
    share
        Effective rows per row.
    by_bound
        Whether its interval is Chernoff's, which is wider, instead of Clopper and Pearson's.
    part
        Its share of all rows.
    spread
        Variance of its number of events, relative to that if all predictions were equal: at most 1.
    least
        Fewest rows of the view for which such intervals exist.
    """

    predicted: float
    share: float
    by_bound: bool
    part: float = 1.0
    spread: float = 1.0
    least: float = 0.0

    @classmethod
    def of(cls, scores: Array, weights: Array, share: tuple[float, bool], part: float) -> Wanted:
        """Return the requirement for predictions that differ."""
        mean, each = (float(np.average(x, weights=weights)) for x in (scores, scores * (1.0 - scores)))
        spread = each / (mean * (1.0 - mean)) if 0.0 < mean < 1.0 else 1.0
        return cls(mean, *share, part, min(spread, 1.0))


class Goal(NamedTuple):
    """The aim that views are proved to be within a limit.

    Attributes
    ----------
    limit, level
        The limit, and the one-sided level of each view's own interval.
    power
        The probability wanted.
    error
        The true error of each view, in the direction that is harder to settle.
    """

    limit: Limit
    level: float
    power: float = 0.8
    error: float = 0.0


def rows_needed(wanted: Sequence[Wanted], goal: Goal) -> list[int | None]:
    """Return the rows needed for each view alone; None if no number suffices."""
    if not wanted:
        return []

    def enough(n: Array) -> NDArray[np.bool_]:
        return np.asarray(chances(n, wanted, goal) >= goal.power)

    low, high = np.zeros(len(wanted)), np.full(len(wanted), 1.0)
    while len(short := np.flatnonzero(~enough(high) & (high < _MOST_ROWS))):
        low[short], high[short] = high[short], 4.0 * high[short]
    never = high >= _MOST_ROWS
    while (high - low > np.maximum(1.0, _CLOSE * high)).any():
        middle = np.floor((low + high) / 2.0)
        narrow, done = middle <= low, enough(np.maximum(middle, 1.0))
        low = np.where(done | narrow, low, middle)
        high = np.where(done & ~narrow, middle, high)
    found = [max(n / each.share, each.least) for n, each in zip(high.tolist(), wanted, strict=True)]
    never |= np.isinf(found)
    return [None if out else math.ceil(n) for out, n in zip(never.tolist(), found, strict=True)]


def quickest(ways: Sequence[Sequence[Wanted]], goal: Goal) -> tuple[list[Wanted], list[int | None]]:
    """Return, for each view, the way of proof that needs fewest rows, and the rows needed."""
    needed = iter(rows_needed(list(chain(*ways)), goal))
    rows = [[next(needed) or math.inf for _ in each] for each in ways]
    best = [each.index(min(each)) for each in rows]
    chosen = [each[k] for each, k in zip(ways, best, strict=True)]
    found = [each[k] for each, k in zip(rows, best, strict=True)]
    return chosen, [None if n == math.inf else int(n) for n in found]


def rows_in_all(wanted: Sequence[Wanted], goal: Goal) -> int | None:
    """Return the fewest rows in total that prove all views within the limit with this probability.

    Their probabilities are multiplied, which is conservative if views share rows. None if no number
    suffices.
    """
    alone = rows_needed(wanted, goal)
    if not wanted or None in alone:
        return None
    few = max(math.ceil((n or 0) / each.part) for n, each in zip(alone, wanted, strict=True))
    together, enough = partial(joint_chance, wanted=wanted, goal=goal), few
    while together(enough) < goal.power:
        enough *= 2
    return few + bisect_left(range(few, enough), goal.power, key=together)


def joint_chance(n: int, wanted: Sequence[Wanted], goal: Goal) -> float:
    """Return the probability that all views are proved within the limit with ``n`` rows in total."""
    rows = np.floor(n * np.array([each.part * each.share for each in wanted]))
    return float(chances(np.maximum(rows, 1.0), wanted, goal).prod())


def chances(n: Array, wanted: Sequence[Wanted], goal: Goal) -> Array:
    """Return the probability that each view is proved within the limit with ``n`` effective rows."""
    predicted = np.array([each.predicted for each in wanted])
    least, most = np.array([goal.limit.allowed(each.predicted) for each in wanted]).T
    by_bound = np.array([each.by_bound for each in wanted])
    first = _fewest(n, least, goal.level, by_bound)  # fewest events for which the lower limit is inside
    last = n - _fewest(n, 1.0 - most, goal.level, by_bound)
    spread, found = np.array([each.spread for each in wanted]), []
    for truth in (predicted - goal.error, predicted + goal.error):
        rate = np.clip(truth, 0.0, 1.0)
        found.append(_at_most(last, n, rate, spread) - _at_most(first - 1.0, n, rate, spread))
    return np.where(last >= first, np.minimum(*found), 0.0)


def _at_most(events: Array, n: Array, rate: Array, spread: Array) -> Array:
    """Return P(at most so many events): binomial, or normal if predictions differ."""
    found = betainc(np.maximum(n - events, 1e-300), np.maximum(events, 0.0) + 1.0, 1.0 - rate)
    deviation = np.sqrt(np.maximum(n * spread * rate * (1.0 - rate), 1e-300))
    found = np.where(spread < _ALIKE, ndtr((events + 0.5 - n * rate) / deviation), found)
    return np.where(events < 0.0, 0.0, np.where(events >= n, 1.0, found))


def _fewest(n: Array, rate: Array, level: float, by_bound: NDArray[np.bool_]) -> Array:
    """Return the fewest events in n rows whose lower limit reaches the rate; n + 1 if none does."""
    rate = np.clip(rate, 0.0, 1.0)
    low, high = np.floor(n * rate) - 1.0, n + 1.0
    far = np.ceil(n * rate + 10.0 * np.sqrt(n * rate * (1.0 - rate)) + 100.0)
    high = np.where(by_bound, high, np.minimum(high, far))
    low = np.where(rate > 0.0, low, -1.0)
    high = np.where(rate > 0.0, high, 0.0)
    while (high - low > 1.0).any():
        middle = np.floor((low + high) / 2.0)
        k, open_ = np.maximum(middle, 0.0), high - low > 1.0
        tail = betainc(np.maximum(k, 1.0), np.maximum(n - k, 0.0) + 1.0, rate)  # of k or more events
        inside = np.where(k > 1.0, tail <= level, (k == 1.0) & (level >= n * rate))
        seen, least = k / n, np.clip(rate, 1e-300, 1.0)
        with np.errstate(divide="ignore", invalid="ignore"):
            hits = np.where(seen > 0.0, seen * np.log(seen / least), 0.0)
            misses = np.where(seen < 1.0, (1.0 - seen) * (np.log1p(-seen) - np.log1p(-least)), 0.0)
        inside = np.where(by_bound, (seen > least) & (n * (hits + misses) >= -math.log(level)), inside)
        low = np.where(open_ & ~inside, middle, low)
        high = np.where(open_ & inside, middle, high)
    return high
