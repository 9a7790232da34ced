"""Distributions of numbers, for models of a continuous outcome.

A classifier predicts probabilities of classes, a regression or a tracker a distribution of numbers or
vectors. The claim is the same, that the outcome is a draw from what was predicted, and so is the exact
null: draw outcomes from the predicted distributions, which are held fixed. Give one of these objects
instead of probabilities::

    caltest.test(caltest.predictive.GaussianPredictions(mean, covariance), outcomes, "ecd")
"""

from __future__ import annotations

import warnings
from abc import abstractmethod
from collections.abc import Callable
from copy import copy
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Self, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy.special import erfcx, expit, ndtr, ndtri

from caltest._arguments import arguments
from caltest._sums import blocks
from caltest.exceptions import Argument, InputError
from caltest.laws.classes import Array, Law, read_only
from caltest.sampling import DRAWS, generator

_NUMBERS = 2**22  # of drawn outcomes held at a time
_DOUBLINGS = 500  # floats end before
_OUTER = 1e-12, 1.0 - 1e-12  # levels between which counts have a table; what is outside is left out
_ELSEWHERE = 1e-9  # probability of other numbers that is none
_MOST_COUNTS = 2**24  # numbers of the table

#: What not all laws state, by the method that says it.
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

Excess: TypeAlias = Callable[[Array], Array]
"""Takes outcomes (…, n), returns their CRPS less its expectation."""


class Predictive(Law):
    """Base class of predicted distributions: one per row, of a number or a vector; immutable."""

    #: Levels (K,) of the quantiles that are all that is stated; None: whole distributions are.
    levels: Array | None = None
    #: What rows are sorted by, as a name of groups.
    level_name = "predicted level"

    @property
    @abstractmethod
    def dimension(self) -> int | None:
        """Number of entries d of an outcome that is a vector; None if it is a number."""

    # A law defines those of these that it can answer; what it lacks is said where it is asked for.
    entropy: Callable[[], Array]  #: Takes nothing, returns the (n,) entropies, in nats.
    #: Takes outcomes (…, n) or (…, n, d), returns logarithms (…, n) of their density or probability.
    log_density: Callable[[Array], Array]
    draw: Callable[[np.random.Generator, int], Array]  #: Returns so many outcomes of every row.
    cdf: Callable[[Array], tuple[Array, Array]]  #: Takes y (…, n), returns P(Y < y) and P(Y ≤ y).
    mean_and_variance: Callable[[], tuple[Array, Array]]  #: Returns those of numbers, (n,) each.

    def __getattr__(self, name: str) -> Any:
        if name in _STATED:
            raise self.lacking(name)
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    def lacking(self, verb: str) -> InputError:
        """Return the error that says what a law does not state, and what to do."""
        whose = (
            f"{self.about} state" if self.dimension is None else "the outcomes are vectors, which have"
        )
        return InputError(f"{whose} no {_STATED[verb]}, as this needs; {self.instead}.")

    def chances(self, outcomes: Array) -> Array:
        """Return the chances of single numbers (…, n), which are 0 but for atoms."""
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
        # Halve the number of floats between: also next to an atom at 0 there are few steps.
        first, last = _ordered(low), _ordered(high)
        while (apart := last > first + 1).any():
            middle = np.where(apart, first // 2 + last // 2 + (first & last & 1), last)
            enough = self.cdf(_ordered(middle, back=True))[1] >= levels
            first, last = np.where(enough, first, middle), np.where(enough, middle, last)
        return np.asarray(_ordered(last, back=True))

    def level(self) -> Array:
        """Return the medians, (n,)."""
        return self.quantile(np.full(self.n_samples, 0.5))

    def central(self, level: float) -> tuple[Array, Array]:
        """Return the ends of central intervals, (n,) each."""
        tail = 0.5 * (1.0 - level)
        low, high = (self.quantile(np.full(self.n_samples, tau)) for tau in (tail, 1.0 - tail))
        return low, high

    def spread(self) -> Array:
        """Return how far the 90% quantile is above the 10% quantile, (n,)."""
        low, high = (self.quantile(np.full(self.n_samples, tau)) for tau in (0.1, 0.9))
        return np.asarray(high - low)

    def crps(self, outcomes: Array) -> Array:
        """Return CRPS(F, y) at numbers (…, n); without a closed form, right to 10⁻⁴ of it."""
        excess, expected = self._crps
        return np.asarray(excess(outcomes) + expected)

    def crps_excess(self, outcomes: Array) -> Array:
        """Return CRPS(F, y) − E CRPS(F, Y) at numbers (…, n)."""
        return self._crps[0](outcomes)

    @cached_property
    def _crps(self) -> tuple[Excess, Array]:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", RuntimeWarning)  # of quantiles far out, which are looked at
            return _crps_of_counts(self) or _crps_of_quantiles(self)

    def expecting(self) -> tuple[Array, Array]:
        """Return outcomes and masses (K, n), so that E g(Y) is Σ masses · g, or very nearly."""
        if (found := masses_of_counts(self)) is not None:
            first, masses = found
            return first + np.arange(float(len(masses)))[:, None], masses
        low, high = panels(self)[:2]
        levels, masses = _nodes(low, high)
        shape = -1, self.n_samples
        return self.quantile(levels.reshape(shape)), masses.reshape(shape)

    def take(self, rows: Any) -> Predictive:
        """Return the distributions of some rows; a subclass of your own need not define it."""
        raise self.lacking("take")

    def sampler(self, seed: int, first: int = 0) -> OutcomeSampler:
        """Prepare to draw outcomes from ``seed``."""
        return OutcomeSampler(self.draw, self.n_samples * (self.dimension or 1), seed)

    def impossible(self, outcomes: Array) -> NDArray[np.bool_]:
        """Say in which rows the outcome has density 0."""
        return np.asarray(self.log_density(outcomes) == -np.inf)

    def chance(self, outcomes: Array) -> float:
        """Return a lower limit of the probability of the outcomes: a density promises none."""
        return 0.0

    def observed(self, outcomes: Array) -> Array:
        """Return outcomes as numbers, read-only."""
        return read_only(outcomes, np.float64)

    def outcomes(self, values: object) -> Array:
        """Check outcomes, and return them as (n,) or (n, d)."""
        n, d = self.n_samples, self.dimension
        wanted = (n,) if d is None else (n, d)
        array = finite_table("the outcomes", values)
        if array.ndim == 2 and array.shape[1] == 1 and d is None:
            array = array[:, 0]
        if array.ndim == 1 and d == 1:
            array = array[:, None]
        if array.shape != wanted:
            raise InputError(
                f"the outcomes have shape {np.shape(array)}, and the predictions are about {wanted}; "
                "give one outcome per row."
            )
        return array


def _ordered(values: Any, back: bool = False) -> Any:
    """Return whole numbers in the order of floats, neighbours next to each other; or back."""
    bits = values if back else values.view(np.int64)
    turned = np.where(bits < 0, np.iinfo(np.int64).min - bits, bits)
    return turned.view(np.float64) if back else turned


# ------------------------------------------------------------------ expectations
#
# E|X − y| less its expectation is the CRPS less its own. Whole numbers have a table of probabilities.
# For other laws both are integrals of quantiles Q(u): with M(p) = ∫ Q du from 0 to p, E|X − Q(p)| is
# (2p − 1) Q(p) + EX − 2 M(p), and E|X − X′| is ∫ (4u − 2) Q du. They are added up over panels of the
# logit of u, which are halved where quantiles jump; the slope of E|X − y| is 2F(y) − 1, so that cubics
# lead from one end of a panel to the other.

_LOBATTO = np.array([-1.0, -((3.0 / 7.0) ** 0.5), 0.0, (3.0 / 7.0) ** 0.5, 1.0])
_MASSES = np.array([0.1, 49.0 / 90.0, 32.0 / 45.0, 49.0 / 90.0, 0.1])
_SIMPSON = np.array([1.0, 0.0, 4.0, 0.0, 1.0]) / 3.0  # of the same ends and middle: says the error
_TAIL = 2.0**-40  # probability from which on quantiles are extrapolated
_ENDS = 4.0 * np.sinh(np.linspace(-1.0, 1.0, 105) * np.arcsinh(-0.25 * np.log(_TAIL)))[:, None]
_HALVED, _ROUNDS = 8, 40  # panels of a row that are halved at a time, and how often
_PRECISE = 1e-5  # error of an integral, relative to the mean distance from the median
_HEAVIEST = 0.98  # power of quantiles in tails; at 1 the mean is infinite


def _whole(*ends: Array) -> bool:
    return all(bool((each == np.rint(each)).all()) for each in ends)


def masses_of_counts(law: Predictive) -> tuple[Array, Array] | None:
    """Return the first whole number of every row, (n,), and the probabilities from it on, (K, n).

    None if outcomes are no whole numbers, or too many.
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
        outside = np.abs(outcomes - first - inside)
        return np.asarray(here + (inside - place) * (there - here) + outside)

    mean = (masses * np.arange(most + 1.0)[:, None]).sum(axis=0)
    return excess, np.asarray(0.5 * (mean - table[0]))


def _nodes(low: Array, high: Array) -> tuple[Array, Array]:
    """Return levels and masses (5, P, n) in panels of logits."""
    half = 0.5 * (high - low)
    at = low + half * (1.0 + _LOBATTO[:, None, None])
    return expit(at), half * _MASSES[:, None, None] * expit(at) * expit(-at)


def panels(law: Predictive) -> Array:
    """Return logits where panels begin and end, error, ∫ q du, ∫ (4u − 2) q du and ends, (9, P, n).

    q are quantiles less the median, at the ends with the chances of single numbers. Counts that are too
    many for a table are spread over ±½, as E|X − y| takes back by a quarter of the chance of y, and
    E|X − X′| by a third of that of X.
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


def _refuse(amiss: NDArray[np.bool_], what: str) -> None:
    """Raise if quantiles of some rows (…, n) are amiss."""
    for place in np.argwhere(amiss)[:1]:
        raise InputError(
            f"the CRPS needs integrals of quantiles, and those of {{row}} {what}; use 'pit_ad' or "
            "another statistic of the cdf.",
            row=int(place[-1]),
        )


def _beyond(law: Predictive, centre: Array) -> Array:
    """Return ∫ |q| du over both tails, (2, n), from how log q bends in the logit of u before."""
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
        (z, start, rise), (to, end, fall) = (
            [each[at, rows] for each in (q, table, slopes)] for at in (place - 1, place)
        )
        width = to - z
        x = (inside - z) / np.where(width > 0.0, width, 1.0)
        rise, fall = width * rise, width * fall
        cubic = x * (x * (rise + fall - 2.0 * (end - start)) + 3.0 * (end - start) - 2.0 * rise - fall)
        return np.asarray(start + x * (rise + cubic) + np.abs(flat - inside)).reshape(outcomes.shape)

    return excess, 0.5 * distance


# ------------------------------------------------------------------ rows of one shape


class Shaped(Predictive):
    """Knows the shape of one draw, (n,) or (n, d), and takes rows out of what belongs to them."""

    _shape: tuple[int, ...]
    #: Names of what has an entry for every row, or one for all: arrays, or laws.
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
        found._shape = (len(np.arange(self.n_samples)[rows]), *self._shape[1:])
        return found

    @property
    def n_samples(self) -> int:
        """Number of rows, n."""
        return self._shape[0]

    @property
    def dimension(self) -> int | None:
        """Number of entries of an outcome; None if it is a number."""
        return self._shape[1] if len(self._shape) == 2 else None


@dataclass(frozen=True, eq=False)
class OutcomeSampler:
    """Draws outcomes of all rows together: the grid has blocks of draws only.

    Attributes
    ----------
    outcomes
        Takes a generator and a number of draws, returns (draws, n) or (draws, n, d) outcomes.
    size
        Numbers in one draw, n·d.
    seed
        The seed of the grid.
    """

    outcomes: Callable[[np.random.Generator, int], NDArray[np.float64]]
    size: int
    seed: int

    @property
    def block(self) -> int:
        """Draws in a block: fewer where rows are many, so that memory stays bounded."""
        return max(1, min(DRAWS, _NUMBERS // self.size))

    def draw(self, start: int, stop: int) -> NDArray[np.float64]:
        """Return draws ``start`` (a multiple of the block) to ``stop``."""
        parts = [
            self.outcomes(generator(self.seed, (start + part.start) // self.block), self.block)
            for part in blocks(stop - start, self.block)
        ]
        return np.concatenate(parts)[: stop - start]


def finite_table(
    what: str,
    values: object,
    do: str = "",
    *,
    ndim: tuple[int, ...] = (),
    low: float = -np.inf,
    high: float = np.inf,
) -> Array:
    """Return finite float64 numbers, of these dimensions if any are said, between two bounds.

    ``do`` says which numbers to give.
    """
    if values is None:
        raise InputError(f"{what} could not be read: this is None; give numbers.")
    try:
        read: Any = np.ma.array(values)  # a masked entry is missing
        if read.dtype.kind in "cmM":
            raise TypeError
        array = np.array(np.ma.filled(read.astype(np.float64), np.nan))
    except Exception:  # what calls itself an array may raise anything
        dates = getattr(getattr(values, "dtype", None), "kind", "") in tuple("mM")
        found = ": these are dates or times" if dates else " as an array of real numbers"
        days = ", such as days since a date" if dates else ""
        raise InputError(f"{what} could not be read{found}; give numbers{days}.") from None
    broken = np.argwhere(~np.isfinite(array))
    if len(broken):
        row = broken[0][0] if array.ndim else 0
        raise InputError(
            "{what} holds {found} in {row}; give finite numbers, and leave rows without an outcome "
            "out.",
            what=what,
            found=array[tuple(broken[0])],
            row=int(row),
        )
    if ndim and (array.ndim not in ndim or array.size == 0):
        raise InputError(f"{what} has shape {array.shape}; give {do}.")
    for place in np.argwhere((array < low) | (array > high))[:1]:
        raise InputError(
            f"{what} is {array[tuple(place)]:g}{' in {row}' if len(place) else ''}; give {do}.",
            row=int(place[0]) if len(place) else None,
        )
    array.flags.writeable = False
    return array


# ------------------------------------------------------------------ gaussian predictions


_FAR = 6.5  # standard deviations


@arguments()
class GaussianPredictions(Shaped):
    """Predictions that are normal distributions, of numbers or vectors.

    Parameters
    ----------
    mean
        (n,) for numbers, or (n, d) for vectors.
    covariance
        Variances (n,) or a shared one, for numbers; covariance matrices (n, d, d), or a shared one
        (d, d), for vectors. Variances, not standard deviations.

    Raises
    ------
    InputError
        If shapes do not fit, or a covariance is not symmetric and positive definite.

    Examples
    --------
    >>> import numpy as np, caltest
    >>> rng = np.random.default_rng(0)
    >>> mean = rng.normal(size=200)
    >>> predicted = caltest.predictive.GaussianPredictions(mean, 1.0)
    >>> outcomes = rng.normal(mean, 1.5)  # the model is overconfident
    >>> result = caltest.test(predicted, outcomes, "nees", null="chi2")
    >>> round(result.statistic, 2), result.guarantee, result.pvalue < 1e-6
    (2.38, 'exact', True)
    """

    about = "Gaussian predictions of numbers"
    _second = "covariance"  #: What the second argument is called.
    _by_row = ("mean", "_centre", "_factor", "whitener", "log_scale")

    def __init__(self, mean: object, covariance: object) -> None:
        location = finite_table("the mean", mean, "(n,) numbers or (n, d) vectors", ndim=(1, 2))
        self.mean, self.given, self._shape = location, mean, location.shape
        self._centre = location.reshape(len(location), -1)
        n, d = self._centre.shape
        spread = finite_table(f"the {self._second}", covariance)
        given = spread.shape
        if d == 1 and spread.ndim <= 1:
            spread = spread.reshape(-1, 1, 1)
        elif spread.ndim == 2:
            spread = spread[None]
        if spread.shape not in ((n, d, d), (1, d, d)):
            wanted = f"({n},) variances" if self.dimension is None else f"({n}, {d}, {d}) matrices"
            raise InputError(
                f"the {self._second} has shape {given}; for means of shape {self.mean.shape} "
                f"give {wanted}, or one for all rows."
            )
        asymmetric = np.abs(spread - spread.swapaxes(1, 2)).max(axis=(1, 2))
        sizes = np.abs(spread).max(axis=(1, 2))
        for row in np.flatnonzero(asymmetric > 1e-8 * sizes)[:1]:
            raise InputError(
                f"the covariance of row {row} (counting from 0) is not symmetric; give a covariance "
                "matrix, not its factor."
            )
        try:
            factor = np.linalg.cholesky(spread)
        except np.linalg.LinAlgError:
            smallest = np.linalg.eigvalsh(spread)[:, 0]
            row = int(np.argmax(smallest <= 0)) if (smallest <= 0).any() else int(smallest.argmin())
            raise InputError(
                f"the {self._second} of {{row}} is not positive definite, its smallest eigenvalue is "
                f"{smallest[row]:.3g}; give a {self._second} of full rank.",
                row=row,
            ) from None
        self._factor = np.asarray(factor, dtype=np.float64)
        self.log_scale = np.asarray(np.log(np.einsum("ijj->ij", factor)).sum(axis=1))
        self.whitener = np.linalg.inv(self._factor)

    def squares(self, outcomes: Array) -> Array:
        """Return the normalised squared errors (x − μ)ᵀ C⁻¹ (x − μ), (…, n)."""
        lead = outcomes.shape[: outcomes.ndim - self.mean.ndim]
        errors = outcomes.reshape(*lead, *self._centre.shape) - self._centre
        whitened = np.einsum("nij,...nj->...ni", self._of_rows(self.whitener), errors)
        return np.asarray(np.einsum("...i,...i->...", whitened, whitened))

    def _of_rows(self, matrices: Any) -> Any:
        n, d = self._centre.shape
        return np.broadcast_to(matrices, (n, d, d))

    def _z(self, outcomes: Array) -> Array:
        if self.dimension is not None:
            raise self.lacking("cdf")
        return np.asarray((outcomes - self.mean) * self._of_rows(self.whitener)[:, 0, 0])

    def cdf(self, outcomes: Array) -> tuple[Array, Array]:
        """Return Φ(z) twice."""
        found = np.asarray(ndtr(self._z(outcomes)))
        return found, found

    def quantile(self, levels: Array) -> Array:
        """Return μ + σ Φ⁻¹."""
        self._z(self.mean)
        return np.asarray(self.mean + self.factors[:, 0, 0] * ndtri(levels))

    def crps(self, outcomes: Array) -> Array:
        """Return σ [z (2 Φ(z) − 1) + 2 φ(z) − 1/√π] (Gneiting and Raftery 2007, below Equation 21)."""
        z = self._z(outcomes)
        density = np.exp(-0.5 * z**2) * np.sqrt(2.0 / np.pi)
        return np.asarray(self.factors[:, 0, 0] * (z * (2.0 * ndtr(z) - 1.0) + density - np.pi**-0.5))

    def crps_excess(self, outcomes: Array) -> Array:
        """Return the CRPS less its expectation, σ/√π."""
        return np.asarray(self.crps(outcomes) - self.factors[:, 0, 0] / np.sqrt(np.pi))

    def mean_and_variance(self) -> tuple[Array, Array]:
        """Return μ and σ²."""
        self._z(self.mean)
        return self.mean, self.factors[:, 0, 0] ** 2

    def support(self) -> tuple[float, float]:
        """Return numbers between which outcomes of all rows lie, but for 10⁻¹⁰ of each."""
        far = _FAR * self.factors[:, 0, 0]
        return float((self.mean - far).min()), float((self.mean + far).max())

    def points(self) -> Array:
        """Return points (n, 2) whose distances are Wasserstein's, W₂² = (μ − μ′)² + (σ − σ′)²."""
        return np.column_stack([self.mean, self.factors[:, 0, 0]])

    def characteristic(self, frequencies: Array, origin: float) -> NDArray[np.complex128]:
        """Return E exp iω(Z − origin), (n, K)."""
        squares = np.multiply.outer(self.factors[:, 0, 0], frequencies) ** 2
        waves = np.exp(1j * np.multiply.outer(self.mean - origin, frequencies))
        return np.asarray(np.exp(-0.5 * squares) * waves)

    def entropy(self) -> Array:
        """Return ½ d (1 + log 2π) + ½ log |C|."""
        n, d = self._centre.shape
        return np.broadcast_to(0.5 * d * (1.0 + np.log(2.0 * np.pi)) + self.log_scale, (n,))

    def log_density(self, outcomes: Array) -> Array:
        """Return the log densities."""
        d = self._centre.shape[1]
        constant = 0.5 * d * np.log(2.0 * np.pi) + self.log_scale
        return np.asarray(-0.5 * self.squares(outcomes) - constant)

    def draw(self, rng: np.random.Generator, size: int) -> Array:
        """Return outcomes μ + L z."""
        normal = rng.standard_normal((size, *self._centre.shape))
        drawn = self._centre + np.einsum("nij,...nj->...ni", self.factors, normal)
        return np.asarray(drawn.reshape(size, *self._shape))

    @property
    def factors(self) -> Array:
        """The Cholesky factors L, (n, d, d)."""
        return np.asarray(self._of_rows(self._factor))


# ------------------------------------------------------------------ normal, by its spread


_FITS = (0.8, 1.25)  # of a mean square that is 1 where units fit
_AMISS = (0.25, 4.0)


@arguments()
class Normal(GaussianPredictions):
    """Predictions that are normal distributions, as mean and standard deviation.

    Parameters
    ----------
    mean
        (n,) for numbers, or (n, d) for vectors.
    sd
        Standard deviations, (n,) or one for all rows; for vectors (n, d), of independent entries.
    variance
        Instead: variances, (n,) or one for all; for vectors covariance matrices, (n, d, d) or (d, d).
        Matrices given as ``sd`` are refused.

    Raises
    ------
    InputError
        If neither or both of ``sd`` and ``variance`` are given, shapes do not fit, or one is not
        positive.

    Examples
    --------
    >>> import numpy as np, caltest
    >>> rng = np.random.default_rng(0)
    >>> mean = rng.normal(size=300)
    >>> predicted = caltest.predictive.Normal(mean, sd=1.0)
    >>> outcomes = rng.normal(mean, 1.5)  # the predicted distributions are too narrow
    >>> result = caltest.test(predicted, outcomes, "spread", rng=0)
    >>> result.statistic < 0, result.pvalue
    (True, 0.002)
    """

    about = "normal distributions of numbers"
    _second = "variance"

    def __init__(self, mean: Any, sd: object = None, *, variance: object = None) -> None:
        if (sd is None) == (variance is None):
            raise InputError(
                "{which} of {sd} and {variance} given; give one of them.",
                which="neither" if sd is None else "both",
                sd=Argument("sd", ...),
                variance=Argument("variance", ...),
            )
        self._states = "variance" if sd is None else "sd"
        if sd is not None:
            do = "standard deviations above 0 whose squares are numbers, and the mean first"
            spread, size = finite_table("sd", sd, do, low=1e-150, high=1e150), np.shape(mean)
            squares = spread**2
            alone = len(size) == 1 or size[1:] == (1,)
            right = [size, (1, *size[1:]), *[(), (1,), size[:1]] * alone]
            square = spread.shape == size == size[:1] * 2 and not alone and bool(np.ptp(spread))
            if spread.shape not in right or (square and (spread == spread.T).all()):
                seen = ", like a covariance matrix" if square else ""
                raise InputError(
                    f"sd has shape {spread.shape}{seen}; give {size}, as the mean has, or variances or "
                    "covariance matrices as {variance}.",
                    variance=Argument("variance", ...),
                )
            variance = squares[:, :, None] * np.eye(size[1]) if spread.ndim == 2 else squares
        super().__init__(mean, variance)

    def remarks(self, outcomes: Array) -> tuple[str, ...]:
        """Say so where the spread looks like its square, or its root."""
        if self.dimension is not None:
            return ()
        sd, errors = self.factors[:, 0, 0], outcomes - self.mean
        other = sd**0.5 if self._states == "sd" else sd**2
        with np.errstate(over="ignore", divide="ignore", invalid="ignore"):  # infinite fits nothing
            as_stated, as_other = (float(np.mean((errors / each) ** 2)) for each in (sd, other))
        if _AMISS[0] <= as_stated <= _AMISS[1] or not _FITS[0] <= as_other <= _FITS[1]:
            return ()
        meant = "variances" if self._states == "sd" else "standard deviations"
        instead = "variance" if self._states == "sd" else "sd"
        return (
            f"Squared errors fit the values of {self._states} if these are {meant}: if so, give them "
            f"as {instead}.",
        )
