"""Distributions of numbers, for models of a continuous outcome.

A classifier predicts probabilities of classes, a regression or a tracker a distribution of numbers or
vectors. Both claim that the outcome is a draw from the predicted distribution, and both have the same
exact null: draw outcomes from the predicted distributions, which are held fixed. Pass one of these
objects instead of probabilities::

    caltest.test(caltest.predictive.GaussianPredictions(mean, covariance), outcomes, "ecd")
"""

from __future__ import annotations

import warnings
from abc import abstractmethod
from collections.abc import Callable, Sequence
from copy import copy
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Self, TypeAlias

import numpy as np
from scipy.special import erfcx, expit

from caltest._sums import Mask, blocks
from caltest._visible import attempt
from caltest.alignment import column_names, in_order_of
from caltest.exceptions import InputError
from caltest.laws.classes import Array, Law, read_only
from caltest.sampling import DRAWS, generator

_NUMBERS = 2**22  # drawn outcomes held at a time
_DOUBLINGS = 500  # doublings of the search range; floats end before
_OUTER = 1e-12, 1.0 - 1e-12  # levels between which a table of counts reaches; the rest is left out
_ELSEWHERE = 1e-9  # largest probability of other numbers that is taken as 0
_MOST_COUNTS = 2**24  # largest table of counts, in numbers

#: Properties that not every law states, by the method that returns them.
_STATED = {
    "cdf": "distribution function",
    "quantile": "quantiles",
    "entropy": "density",
    "log_density": "density",
    "mean_and_variance": "mean and variance of a number",
    "crps": "score in units of the outcome",
    "draw": "draws",
    "take": "law of some rows",
}

#: Takes outcomes (…, n), returns their CRPS less its expectation.
Excess: TypeAlias = Callable[[Array], Array]


class Predictive(Law):
    """Base class of predicted distributions: one per row, of a number or a vector; immutable."""

    #: Levels (K,) if only quantiles at these are stated; None if the whole distribution is.
    levels: Array | None = None
    atoms = True  #: Whether single numbers may have positive probability; if not, P(Y < y) is P(Y ≤ y).
    #: Name of the groups that rows are sorted into by `level`.
    level_name = "predicted level"

    @property
    @abstractmethod
    def dimension(self) -> int | None:
        """Number of entries d of an outcome that is a vector; None if it is a number."""

    entries: tuple[str, ...] = ()  #: Names of the entries of a vector, if they have any.

    # A law defines those of these that it can compute; asking for another raises `lacking`.
    entropy: Callable[[], Array]  #: Takes nothing, returns the (n,) entropies, in nats.
    #: Takes outcomes (…, n) or (…, n, d), returns logarithms (…, n) of their density or probability.
    log_density: Callable[[Array], Array]
    draw: Callable[[np.random.Generator, int], Array]  #: Returns that many outcomes of every row.
    cdf: Callable[[Array], tuple[Array, Array]]  #: Takes y (…, n), returns P(Y < y) and P(Y ≤ y).
    mean_and_variance: Callable[[], tuple[Array, Array]]  #: Means and variances of numbers, (n,).

    def __getattr__(self, name: str) -> Any:
        if name in _STATED:
            raise self.lacking(name)
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    def lacking(self, verb: str) -> InputError:
        """Return the error for a property that the law does not state, with what to use instead."""
        of = f"{self.about} state" if self.dimension is None else "the outcomes are vectors, which have"
        return InputError(f"{of} no {_STATED[verb]}, as this needs; {self.instead}.")

    def chances(self, outcomes: Array) -> Array:
        """Return the probabilities of single numbers (…, n), 0 except at atoms."""
        below, at = self.cdf(outcomes)
        return np.asarray(at - below)

    def quantile(self, levels: Array) -> Array:
        """Return the smallest numbers y with P(Y ≤ y) at least the levels (…, n), between 0 and 1."""
        low, high = -np.ones(levels.shape), np.ones(levels.shape)
        for end, above in ((low, True), (high, False)):
            for _ in range(_DOUBLINGS):
                out = (self.cdf(end)[1] >= levels) == above
                if not out.any():
                    break
                end[out] *= 4.0
        # Bisect by the number of floats in between, which takes few steps even next to an atom at 0.
        first, last = _ordered(low), _ordered(high)
        while (apart := last > first + 1).any():
            middle = np.where(apart, first // 2 + last // 2 + (first & last & 1), last)
            enough = self.cdf(_ordered(middle, back=True))[1] >= levels
            first, last = np.where(enough, first, middle), np.where(enough, middle, last)
        return np.asarray(_ordered(last, back=True))

    def level(self) -> Array:
        """Return the medians, (n,)."""
        return self._quantiles(0.5)

    def central(self, level: float) -> tuple[Array, Array]:
        """Return the ends of central intervals, (n,) each."""
        tail = 0.5 * (1.0 - level)
        return self._quantiles(tail), self._quantiles(1.0 - tail)

    def spread(self) -> Array:
        """Return how far the 90% quantile is above the 10% quantile, (n,)."""
        low, high = self._quantiles(0.1), self._quantiles(0.9)
        return np.subtract(high, low, out=np.zeros(len(low)), where=high > low)  # both may be infinite

    def _quantiles(self, level: float) -> Array:
        return self.quantile(np.full(self.n_samples, level))

    def crps(self, outcomes: Array) -> Array:
        """Return CRPS(F, y) at numbers (…, n); without a closed form, with a relative error of 10⁻⁴."""
        excess, expected = self._crps
        return np.asarray(excess(outcomes) + expected)

    def crps_excess(self, outcomes: Array) -> Array:
        """Return CRPS(F, y) − E CRPS(F, Y) at numbers (…, n)."""
        return self._crps[0](outcomes)

    def crps_size(self) -> float:
        """Return the mean absolute value of ``crps_excess`` at the medians."""
        return float(np.abs(self.crps_excess(self._quantiles(0.5)[None])).mean())

    @cached_property
    def _crps(self) -> tuple[Excess, Array]:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", RuntimeWarning)  # by far quantiles, checked below
            return _crps_of_counts(self) or _crps_of_quantiles(self)

    def expecting(self) -> tuple[Array, Array]:
        """Return outcomes and masses (K, n) such that E g(Y) is Σ masses · g, or very nearly."""
        if (found := masses_of_counts(self)) is not None:
            first, masses = found
            return first + np.arange(float(len(masses)))[:, None], masses
        low, high = panels(self)[:2]
        levels, masses = _nodes(low, high)
        shape = -1, self.n_samples
        return self.quantile(levels.reshape(shape)), masses.reshape(shape)

    def take(self, rows: Any) -> Predictive:
        """Return the distributions of some rows; your own subclass need not define it."""
        raise self.lacking("take")

    def sampler(self, seed: int, first: int = 0) -> OutcomeSampler:
        """Prepare to draw outcomes from ``seed``."""
        return OutcomeSampler(self.draw, self.n_samples * (self.dimension or 1), seed)

    def impossible(self, outcomes: Array) -> Mask:
        """Return a mask of the rows whose outcome has density 0; all False without a density."""
        if not hasattr(type(self), "log_density"):
            return np.zeros(self.n_samples, dtype=np.bool_)
        return np.asarray(self.log_density(outcomes) == -np.inf)

    def chance(self, outcomes: Array) -> float:
        """Return a lower bound of the probability of the outcomes: a density guarantees none."""
        return 0.0

    def observed(self, outcomes: Array) -> Array:
        """Return outcomes as numbers, read-only."""
        return read_only(outcomes, np.float64)

    def outcomes(self, values: object) -> Array:
        """Check outcomes, and return them as (n,) or (n, d)."""
        n, d = self.n_samples, self.dimension
        wanted = (n,) if d is None else (n, d)
        array = finite_table("the outcomes", values)
        columns = column_names(values)
        if d is not None and columns and self.entries and array.shape == wanted:
            places = in_order_of(self.entries, columns, "the table of outcomes", "predictions are of")
            array = array[:, places]
        if d in (None, 1) and array.shape in ((n,), (n, 1)):
            array = array.reshape(wanted)
        if array.shape != wanted:
            found = f"the outcomes have shape {np.shape(array)}, and the predictions are about {wanted}"
            raise InputError(f"{found}; give one outcome per row.")
        return array


def _ordered(values: Any, back: bool = False) -> Any:
    """Map floats to integers in the same order, neighbours to neighbours, or back again."""
    bits = values if back else values.view(np.int64)
    turned = np.where(bits < 0, np.iinfo(np.int64).min - bits, bits)
    return turned.view(np.float64) if back else turned


# ------------------------------------------------------------------ expectations
#
# E|X − y| less its expectation equals the CRPS less its own. For whole numbers, a table of
# probabilities gives it. For other laws both are integrals of quantiles Q(u): with M(p) = ∫ Q du from 0
# to p, E|X − Q(p)| is (2p − 1) Q(p) + EX − 2 M(p), and E|X − X′| is ∫ (4u − 2) Q du. They are summed
# over panels of the logit of u, which are halved where quantiles jump. The slope of E|X − y| is
# 2F(y) − 1, so cubics interpolate within a panel.

_LOBATTO = np.array([-1.0, -((3.0 / 7.0) ** 0.5), 0.0, (3.0 / 7.0) ** 0.5, 1.0])
_MASSES = np.array([0.1, 49.0 / 90.0, 32.0 / 45.0, 49.0 / 90.0, 0.1])
_SIMPSON = np.array([1.0, 0.0, 4.0, 0.0, 1.0]) / 3.0  # same points; the difference estimates the error
_TAIL = 2.0**-40  # probability below which quantiles are extrapolated
_ENDS = 4.0 * np.sinh(np.linspace(-1.0, 1.0, 105) * np.arcsinh(-0.25 * np.log(_TAIL)))[:, None]
_HALVED, _ROUNDS = 8, 40  # panels of a row that are halved at a time, and the most rounds
_PRECISE = 1e-5  # error of an integral, relative to the mean distance from the median
_HEAVIEST = 0.98  # largest tail exponent of quantiles; at 1 the mean is infinite


def _whole(*ends: Array) -> bool:
    return all(bool((each == np.rint(each)).all()) for each in ends)


def masses_of_counts(law: Predictive) -> tuple[Array, Array] | None:
    """Return the first whole number of every row, (n,), and the probabilities from it on, (K, n).

    None if outcomes are not whole numbers, or if there are too many of them.
    """
    first, last = law.quantile(np.multiply.outer(_OUTER, np.ones(law.n_samples)))
    if not _whole(first, last) or (last - first).max() * len(first) > _MOST_COUNTS:
        return None
    masses = law.chances(first + np.arange((last - first).max() + 1.0)[:, None])
    total = masses.sum(axis=0)
    return None if total.min() < 1.0 - _ELSEWHERE else (first, masses / total)


def _crps_of_counts(law: Predictive) -> tuple[Excess, Array] | None:
    if (found := masses_of_counts(law)) is None:
        return None
    (first, masses), rows = found, np.arange(law.n_samples)
    steps, most = 2.0 * np.cumsum(masses, axis=0) - 1.0, len(masses) - 1
    distances = np.cumsum(np.insert(steps[:-1], 0, 0.0, axis=0), axis=0)
    table = distances - (masses * distances).sum(axis=0)

    def excess(outcomes: Array) -> Array:
        inside = (outcomes - first).clip(0.0, most)
        place = inside.astype(np.intp)
        here, there = (table[each, rows] for each in (place, np.minimum(place + 1, most)))
        return np.asarray(here + (inside - place) * (there - here) + np.abs(outcomes - first - inside))

    mean = (masses * np.arange(most + 1.0)[:, None]).sum(axis=0)
    return excess, np.asarray(0.5 * (mean - table[0]))


def _nodes(low: Array, high: Array) -> tuple[Array, Array]:
    """Return levels and masses (5, P, n) in panels of logits."""
    half = 0.5 * (high - low)
    at = low + half * (1.0 + _LOBATTO[:, None, None])
    return expit(at), half * _MASSES[:, None, None] * expit(at) * expit(-at)


def panels(law: Predictive) -> Array:
    """Return logits where panels begin and end, error, ∫ q du, ∫ (4u − 2) q du and ends, (9, P, n).

    q are quantiles less the median; the ends come with the probabilities of single numbers. Counts too
    many for a table are spread over ±½. To correct for that, E|X − y| loses a quarter of the
    probability of y, and E|X − X′| a third of that of X.
    """
    some = law.quantile(expit(_ENDS[::13] + np.zeros(law.n_samples)))
    centre, counted = some[4], _whole(*some)

    def over(low: Array, high: Array) -> Array:
        levels, masses = _nodes(low, high)
        q, jumps = law.quantile(levels), np.zeros(levels.shape)
        if counted:
            below, at = law.cdf(q)
            jumps = at - below
            q += (levels - below) / np.where(jumps > 0.0, jumps, np.inf) - 0.5 * (jumps > 0.0)
        _refuse(q[0] > q[-1], "do not rise with their level")
        q -= centre
        rough = (masses * (_SIMPSON / _MASSES)[:, None, None] * q).sum(axis=0)
        added = (masses * q).sum(axis=0)
        spread = (masses * ((4.0 * levels - 2.0) * q - jumps / 3.0)).sum(axis=0)
        ends = q[0], q[-1], jumps[0], jumps[-1]
        return np.stack([low, high, np.abs(added - rough), added, spread, *ends])

    ends = np.broadcast_to(_ENDS, (len(_ENDS), law.n_samples))
    cut = blocks(len(ends) - 1, max(1, _NUMBERS // (5 * law.n_samples)))
    found = np.concatenate([over(ends[:-1][part], ends[1:][part]) for part in cut], axis=1)
    for _ in range(_ROUNDS):
        amiss = found[2].sum(axis=0) > _PRECISE * np.abs(found[3]).sum(axis=0)
        if not amiss.any():
            return np.take_along_axis(found, np.argsort(found[:1], axis=1), axis=1)
        worst = np.argpartition(-found[2], _HALVED, axis=0)[None, :_HALVED]
        low, high = np.take_along_axis(found[:2], worst, axis=1)
        middle = 0.5 * (low + high)
        halves = over(np.concatenate([low, middle]), np.concatenate([middle, high]))
        np.put_along_axis(found, worst, halves[:, :_HALVED], axis=1)
        found = np.concatenate([found, halves[:, _HALVED:]], axis=1)
    _refuse(amiss, "jump too often for their integral")
    return found


def _refuse(amiss: Mask, what: str) -> None:
    """Raise if quantiles of any row (…, n) are amiss."""
    for place in np.argwhere(amiss)[:1]:
        text = f"the CRPS needs integrals of quantiles, and those of {{row}} {what}"
        do = "use 'pit_ad' or another statistic of the cdf"
        raise InputError(f"{text}; {do}.", row=int(place[-1]))


def _beyond(law: Predictive, centre: Array) -> Array:
    """Return ∫ |q| du over both tails, (2, n), extrapolated from how log q bends in the logit of u."""
    step, sides = -0.25 * np.log(_TAIL), np.array([-1.0, 1.0])[:, None]
    levels = expit(np.multiply.outer([4.0, 3.0, 2.0], sides * step))
    sizes = sides * (law.quantile(np.broadcast_to(levels, (3, 2, len(centre)))) - centre)
    _refuse(~(sizes >= 0.0), "do not rise with their level")
    last, before, first = np.log(np.maximum(sizes, np.finfo(float).tiny))
    falls = 1.0 - (3.0 * last - 4.0 * before + first) / (2.0 * step)
    _refuse(falls < 1.0 - _HEAVIEST, "grow as if the mean were infinite")
    bends = np.maximum(2.0 * before - last - first, 1e-8) / step**2
    found = np.sqrt(0.5 * np.pi / bends) * erfcx(falls / np.sqrt(2.0 * bends))
    return np.asarray(sizes[0] * _TAIL * found)


def _crps_of_quantiles(law: Predictive) -> tuple[Excess, Array]:
    centre, rows = law.level(), np.arange(law.n_samples)
    below, above = _beyond(law, centre)
    low, high, _, integrals, spreads, first, last, *jumps = panels(law)
    levels = expit(np.vstack([low, high[-1:]]))
    q, jump = np.vstack([first, last[-1:]]), np.vstack([jumps[0], jumps[1][-1:]])
    distance = spreads.sum(axis=0) + 2.0 * (below + above)
    reached = np.cumsum(np.vstack([-below, integrals]), axis=0)
    slopes = 2.0 * levels - 1.0
    table = slopes * q + reached[-1] + above - 2.0 * reached - distance - 0.25 * jump
    ends = np.ascontiguousarray(q.T)

    def excess(outcomes: Array) -> Array:
        flat = outcomes.reshape(-1, len(rows)) - centre
        found = [np.searchsorted(own, y) for own, y in zip(ends, flat.T, strict=True)]
        place = np.stack(found, axis=1).clip(1, len(q) - 1)
        inside = flat.clip(q[0], q[-1])
        z, start, rise = (each[place - 1, rows] for each in (q, table, slopes))
        to, end, fall = (each[place, rows] for each in (q, table, slopes))
        width = to - z
        x = (inside - z) / np.where(width > 0.0, width, 1.0)
        rise, fall = width * rise, width * fall
        cubic = x * (x * (rise + fall - 2.0 * (end - start)) + 3.0 * (end - start) - 2.0 * rise - fall)
        return np.asarray(start + x * (rise + cubic) + np.abs(flat - inside)).reshape(outcomes.shape)

    return excess, 0.5 * distance


# ------------------------------------------------------------------ rows of one shape


class Shaped(Predictive):
    """A law that has the shape of one draw, (n,) or (n, d), and can select rows of its arrays."""

    _shape: tuple[int, ...]
    #: Names of the attributes, arrays or laws, that have one entry per row or one for all rows.
    _by_row: tuple[str, ...] = ()

    def take(self, rows: Any) -> Self:
        """Return the distributions of some rows."""
        found = copy(self)
        for name in self._by_row:
            own = getattr(self, name)
            if isinstance(own, Law):
                setattr(found, name, own.take(rows))
            elif own is not None and len(own) == self.n_samples:
                setattr(found, name, own[rows])
        for name in vars(self):
            if isinstance(getattr(type(self), name, None), cached_property):
                del found.__dict__[name]
        numbered = isinstance(rows, np.ndarray) and rows.dtype == np.intp
        count = len(rows if numbered else np.arange(self.n_samples)[rows])
        found._shape = (count, *self._shape[1:])
        return found

    @property
    def n_samples(self) -> int:
        """Number of rows, n."""
        return self._shape[0]

    @property
    def dimension(self) -> int | None:
        """Number of entries of an outcome; None if it is a number."""
        return self._shape[1] if len(self._shape) == 2 else None


class Ranks(Shaped):
    """Ranks of outcomes in their predicted distributions, as P(Y < y) and P(Y ≤ y): (…, n, 2).

    The shape is (…, n) if both are equal. Groups of rows then need not evaluate their distributions
    again.
    """

    instead = "use a statistic of ranks, such as 'pit_ad'"
    _by_row = ("law",)

    def __init__(self, law: Predictive) -> None:
        self.law, self.about, self._shape = law, f"ranks in {law.about}", (law.n_samples,)

    @property
    def _crps(self) -> Any:
        raise self.lacking("crps")

    def of(self, outcomes: Array, rows: Any = slice(None)) -> Array:
        """Return the ranks of outcomes, for all rows or some."""
        law = self.law if rows == slice(None) else self.law.take(rows)
        found = law.cdf(outcomes)
        return np.stack(found, axis=-1) if law.atoms else found[1]

    def cdf(self, outcomes: Array) -> tuple[Array, Array]:
        """Return P(Y < y) and P(Y ≤ y), which the ranks already are."""
        return (outcomes[..., 0], outcomes[..., 1]) if self.law.atoms else (outcomes, outcomes)

    def quantile(self, levels: Array) -> Array:
        """Return the ranks of the quantiles."""
        return self.of(self.law.quantile(levels))

    def level(self) -> Array:
        """Return the medians of the distributions, not of their ranks."""
        return self.law.level()

    def spread(self) -> Array:
        """Return the spreads of the distributions."""
        return self.law.spread()

    def expecting(self) -> tuple[Array, Array]:
        """Return ranks of the outcomes and masses that expectations are computed from."""
        outcomes, masses = self.law.expecting()
        return self.of(outcomes), masses

    def draw(self, rng: np.random.Generator, size: int) -> Array:
        """Return the ranks of drawn outcomes."""
        return self.of(self.law.draw(rng, size))


@dataclass(frozen=True, eq=False)
class OutcomeSampler:
    """Draws outcomes of all rows together: the grid has blocks of draws only.

    Attributes
    ----------
    outcomes
        Takes a generator and a number of draws, returns (draws, n) or (draws, n, d) outcomes.
    size
        Numbers per draw, n·d.
    seed
        The seed of the grid.
    """

    outcomes: Callable[[np.random.Generator, int], Array]
    size: int
    seed: int

    @property
    def block(self) -> int:
        """Draws per block: fewer if rows are many, so that memory stays bounded."""
        return max(1, min(DRAWS, _NUMBERS // self.size))

    def draw(self, start: int, stop: int) -> Array:
        """Return draws ``start`` (a multiple of the block) to ``stop``."""
        first = (start + part.start for part in blocks(stop - start, self.block))
        streams = (generator(self.seed, each // self.block) for each in first)
        drawn = [self.outcomes(each, self.block) for each in streams]
        return (drawn[0] if len(drawn) == 1 else np.concatenate(drawn))[: stop - start]


def as_stated(values: Any) -> Any:
    """Return float32 or half-precision numbers as written: 0.1, and not the nearest such float."""
    array = attempt(lambda: np.asarray(values))
    coarse = array is not None and array.dtype.kind == "f" and array.dtype.itemsize < 8
    return array.astype(str).astype(np.float64) if array is not None and coarse else values


def in_columns(what: str, at: Array, table: Array, called: Sequence[float]) -> tuple[Array, Array]:
    """Return numbers (K,) in order, and the columns of a table (n, K) that name them, in that order."""
    order = np.argsort(called, kind="stable")
    if not np.allclose(np.sort(at), np.take(called, order), rtol=1e-9, atol=0.0):
        stated, given = (", ".join(f"{number:g}" for number in each[:8]) for each in (called, at))
        found = f"the columns state {stated} by their names, and {what} holds {given}"
        raise InputError(f"{found}; give what the columns state, or a table without names.")
    return np.sort(at), table[:, order]


def finite_table(
    what: str,
    values: object,
    do: str = "",
    *,
    ndim: tuple[int, ...] = (),
    low: float = -np.inf,
    high: float = np.inf,
    fine: Callable[[Any], Any] = np.isfinite,
) -> Array:
    """Return finite float64 numbers of one of the dimensions ``ndim``, if any, within two bounds.

    ``do`` is advice on numbers to pass; ``fine`` marks accepted numbers, by default finite ones.
    """
    if values is None:
        raise InputError(f"{what} could not be read: this is None; give numbers.")
    try:
        plain = type(values) is np.ndarray and values.dtype.kind in "fiu"
        read: Any = values if plain else np.ma.array(values)  # a masked entry is missing
        if read.dtype == object and hasattr(values, "to_numpy"):  # such as one of pandas' own types
            read = np.ma.array(values.to_numpy(object, na_value=np.nan))
        if read.dtype.kind in "cmM":
            raise TypeError
        array = read.astype(np.float64)
        array = array if plain else np.array(np.ma.filled(array, np.nan))
    except Exception as error:  # an object that calls itself an array may raise anything
        dates = getattr(getattr(values, "dtype", None), "kind", "") in tuple("mM")
        found = ": these are dates or times" if dates else " as an array of real numbers"
        days = ", such as days since a date" if dates else ""
        if isinstance(error, ValueError) and "inhomogeneous" in str(error) and fine is not np.isfinite:
            days = ", rows of one length, with NaN where one is missing"
        raise InputError(f"{what} could not be read{found}; give numbers{days}.") from None
    if not (right := fine(array)).all():
        broken = np.argwhere(~right)
        row = broken[0][0] if array.ndim else 0
        do = "give finite numbers, and leave rows without an outcome out"
        text = f"{{what}} holds {{found}} in {{row}}; {do}."
        raise InputError(text, what=what, found=array[tuple(broken[0])], row=int(row))
    if ndim and (array.ndim not in ndim or array.size == 0):
        raise InputError(f"{what} has shape {array.shape}; give {do}.")
    bounded = low > -np.inf or high < np.inf
    for place in np.argwhere((array < low) | (array > high))[:1] if bounded else ():
        text = f"{what} is {array[tuple(place)]:g}{' in {row}' if len(place) else ''}; give {do}."
        raise InputError(text, row=int(place[0]) if len(place) else None)
    array.flags.writeable = False
    return array
