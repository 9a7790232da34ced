"""Distributions of numbers that are given as samples, or as objects that state them."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property, reduce
from itertools import pairwise
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr, ndtri

from caltest._arguments import Number, arguments, has
from caltest._sums import blocks
from caltest._visible import quoted
from caltest.exceptions import InputError
from caltest.laws.classes import Array
from caltest.laws.distributions import (
    GaussianPredictions,
    Predictive,
    Shaped,
    finite_table,
    masses_of_counts,
)

# ------------------------------------------------------------------ ensemble


_CELLS = 2**22  # numbers held at a time
_POINTS = 256  # at most, about every member, to integrate an entropy
_ROUNDING = 1e-14  # of the members, relative to the largest
_NARROWEST = 1e-6  # bandwidth
_A_SIDE = 16  # of these, at most, in one direction
#: Where ranges end over which expectations are integrated, from every member in bandwidths.
_CUTS = np.array([-9.0, -6.0, -4.0, -3.0, -2.0, -1.0, 0.0, 1.0, 2.0, 3.0, 4.0, 6.0, 9.0])
_NODES, _MASSES = np.polynomial.legendre.leggauss(8)  # in each of them


@arguments()
class Ensemble(Shaped):
    """Predictions given as samples: ensemble members, posterior draws, bootstrap forecasts.

    The predicted distribution of a row is the Gaussian kernel density of its members. That is the
    claim tested: the density is wider than the members, by the factor 1 + h² in variance.

    Parameters
    ----------
    members
        (n, S) numbers, or (n, S, d) vectors; S members per row.
    bandwidth
        h, the kernel's standard deviation in those of the members: a positive number, or the rule
        "scott" (default), h = S^(−1/(d+4)).

    Raises
    ------
    InputError
        If a row's members do not vary (in every direction), or the bandwidth is not positive.

    Notes
    -----
    The entropy of a kernel density has no closed form. It is integrated with Gauss–Hermite nodes
    about every member, from d = 5 on with a Halton sequence. It shifts the ECD by a constant: p-values
    do not depend on it.

    Examples
    --------
    >>> import numpy as np, caltest
    >>> rng = np.random.default_rng(0)
    >>> members = rng.normal(size=(100, 30))
    >>> caltest.test(caltest.predictive.Ensemble(members), rng.normal(size=100), "ecd", rng=0).name
    'ecd'
    """

    about = "ensembles of numbers"
    _by_row = ("members", "_points", "_kernel")

    def __init__(self, members: object, bandwidth: str | float = "scott") -> None:
        shapes = "(n, S) numbers or (n, S, d) vectors, at least two members per row"
        array = finite_table("members", members, shapes, ndim=(2, 3))
        if array.shape[1] < 2:
            raise InputError(f"members has shape {array.shape}; give {shapes}.")
        self.members, self.given, self._shape = array, members, array[:, 0].shape
        self._points = array.reshape(*array.shape[:2], -1)
        n, s, d = self._points.shape
        advice = "give a positive number such as 0.5, or 'scott'"
        positive = Number(_NARROWEST, 1.0 / _NARROWEST, "[]", advice)
        scott = isinstance(bandwidth, str) and bandwidth == "scott"
        h = s ** (-1.0 / (d + 4)) if scott else positive("bandwidth", bandwidth)
        centred = self._points - self._points.mean(axis=1, keepdims=True)
        covariance = np.einsum("nsi,nsj->nij", centred, centred) / (s - 1)
        least = np.linalg.eigvalsh(covariance)[:, 0]
        rounding = (_ROUNDING * np.abs(self._points).max(axis=(1, 2))) ** 2
        for row in np.flatnonzero(least <= rounding)[:1]:
            raise InputError(
                f"the members of row {row} (counting from 0) do not vary"
                f"{'' if d == 1 else ' in every direction'}; give more members, or leave the row out."
            )
        self._kernel = GaussianPredictions(np.zeros((n, d)), h**2 * covariance)

    def cdf(self, outcomes: Array) -> tuple[Array, Array]:
        """Return the mean of the members' kernels, twice."""
        found, sd = np.zeros(outcomes.shape), self._width("cdf")
        for member in self.members.T:
            found += ndtr((outcomes - member) / sd)
        found /= len(self.members.T)
        return found, found

    def _width(self, verb: str) -> Array:
        """Return the standard deviations of kernels, (n,); raise if members are vectors."""
        if self.dimension is not None:
            raise self.lacking(verb)
        return np.asarray(self._kernel.factors[:, 0, 0])

    def mean_and_variance(self) -> tuple[Array, Array]:
        """Return those of the densities, whose variance is 1 + h² times that of the members."""
        kernels = self._width("mean_and_variance") ** 2
        return self.members.mean(axis=1), self.members.var(axis=1) + kernels

    def expecting(self) -> tuple[Array, Array]:
        """Return eight points between any two of the cuts around members, and their masses."""
        sd = self._width("mean_and_variance")
        cuts = (self.members.T[:, None] + np.multiply.outer(_CUTS, sd)).reshape(-1, len(sd))
        points, masses = list[Array](), list[Array]()
        for low, high in pairwise(np.sort(cuts, axis=0)):
            half = 0.5 * (high - low)
            points.append(low + half * (_NODES[:, None] + 1.0))
            masses.append(half * _MASSES[:, None] * np.exp(self.log_density(points[-1])))
        return np.concatenate(points), np.concatenate(masses)

    def crps(self, outcomes: Array) -> Array:
        """Return E|X − y| − ½ E|X − X′|."""
        return np.asarray(self.crps_excess(outcomes) + 0.5 * self._own_distance)

    def crps_excess(self, outcomes: Array) -> Array:
        """Return E|X − y| − E|X − X′| (Grimit, Gneiting, Berrocal, Johnson 2006, Equation 5)."""
        return np.asarray(self._distance(outcomes, self._width("crps")) - self._own_distance)

    @cached_property
    def _own_distance(self) -> Array:
        """E|X − X′|, (n,)."""
        width = np.sqrt(2.0) * self._width("crps")
        return np.asarray(self._distance(self.members.T, width).mean(axis=0))

    def _distance(self, outcomes: Array, sd: Array) -> Array:
        """Return the mean of E|Z − y| over the members, of normal Z around each."""
        found = np.zeros(outcomes.shape)
        for member in self.members.T:
            z = (outcomes - member) / sd
            found += sd * (z * (2.0 * ndtr(z) - 1.0) + np.sqrt(2.0 / np.pi) * np.exp(-0.5 * z**2))
        return np.asarray(found / len(self.members.T))

    def log_density(self, outcomes: Array) -> Array:
        """Return the log kernel densities."""
        from scipy.special import logsumexp

        n, s, d = self._points.shape
        lead = outcomes.shape[: outcomes.ndim - len(self._shape)]
        flat = outcomes.reshape(-1, n, d)
        found = np.empty((len(flat), n))
        constant = np.log(s) + 0.5 * d * np.log(2.0 * np.pi) + self._kernel.log_scale
        for rows in blocks(n, max(1, _CELLS // (len(flat) * s * d))):
            whitener = self._kernel.whitener[rows]
            members = np.einsum("nij,nsj->nsi", whitener, self._points[rows])
            places = np.einsum("nij,bnj->bni", whitener, flat[:, rows])
            squares = ((places[:, :, None, :] - members) ** 2).sum(axis=3)
            found[:, rows] = logsumexp(-0.5 * squares, axis=2) - constant[rows]
        return np.asarray(found.reshape(*lead, n))

    def entropy(self) -> Array:
        """Return the integrated entropies."""
        return self._entropy

    @cached_property
    def _entropy(self) -> Array:
        nodes, weights = _normal_nodes(self._points.shape[2])
        total = np.zeros(self.n_samples)
        for member in range(self._points.shape[1]):
            centre = self._points[:, member]
            steps = np.einsum("nij,kj->kni", self._kernel.factors, nodes)
            total -= weights @ self.log_density((centre + steps).reshape(len(nodes), *self._shape))
        return np.asarray(total / self._points.shape[1])

    def draw(self, rng: np.random.Generator, size: int) -> Array:
        """Return a member chosen at random, plus kernel noise."""
        n, s, _ = self._points.shape
        chosen = self._points[np.arange(n), rng.integers(s, size=(size, n))]
        return np.asarray((chosen + self._kernel.draw(rng, size)).reshape(size, *self._shape))


def _normal_nodes(d: int) -> tuple[Array, Array]:
    """Return nodes (k, d) and weights (k,) that integrate against the standard normal."""
    a_side = min(_A_SIDE, int(_POINTS ** (1.0 / d) + 1e-9))
    if a_side >= 4:
        nodes, weights = np.polynomial.hermite_e.hermegauss(a_side)
        places = np.stack(np.meshgrid(*[nodes] * d, indexing="ij"), axis=-1).reshape(-1, d)
        products = reduce(np.multiply.outer, [weights / weights.sum()] * d)
        return places, np.ravel(products)
    from scipy.stats.qmc import Halton

    sequence = Halton(d, scramble=False).fast_forward(1)  # its first point is 0, at −∞ here
    return np.asarray(ndtri(sequence.random(_POINTS))), np.full(_POINTS, 1.0 / _POINTS)


# ------------------------------------------------------------------ objects


# Methods of either generation of SciPy.
_DRAWING, _QUANTILES, _DENSITY = ("rvs", "sample"), ("ppf", "icdf"), ("logpdf", "logpmf")
_ROUNDED = 1e-9  # by how much a cdf may leave [0, 1]
_NEVER = -1e3  # logarithm of a probability that counts as none
_WHOLE = np.array([0.01, 0.25, 0.5, 0.75, 0.99])[:, None]  # levels at which quantiles tell counts
_UNEVEN = 1e-6  # by how much one that is stated may, or fall


@arguments()
class Distribution(Shaped):
    """Predictions given as objects that state a distribution, such as those of ``scipy.stats``.

    Parameters
    ----------
    distribution
        One object with parameters of shape (n,), such as ``scipy.stats.gamma(a=shapes)``, or a sequence
        of n objects, one per row. It has ``cdf``, or ``entropy``, ``logpdf`` or ``logpmf``, and ``rvs``
        or ``sample``, which may be of vectors; statistics say what they need. Methods take blocks of
        outcomes, (B, n), or the outcomes of all rows, (n,) (``scipy.stats.dirichlet`` takes neither).
        Outcomes are drawn by ``rvs`` or ``sample``, else by ``ppf`` or ``icdf``, else by inverting
        ``cdf``, which asks for it some 70 times: of many rows give one of the others too.

    Raises
    ------
    InputError
        If it states too little, fails when it is asked, or an entropy is not finite.

    Examples
    --------
    >>> import numpy as np, scipy.stats, caltest
    >>> rng = np.random.default_rng(0)
    >>> rate = rng.uniform(1, 20, 300)
    >>> predicted = caltest.predictive.Distribution(scipy.stats.poisson(rate))
    >>> caltest.test(predicted, rng.poisson(0.8 * rate), "bias", rng=0).pvalue
    0.002
    """

    about = "distributions of numbers"
    instead = "use 'pit_ad' or another statistic of the cdf, or 'ecd' where they state a density"
    _by_row = ("_entropy",)

    def __init__(self, distribution: Any) -> None:
        self._alone = not isinstance(distribution, Sequence)
        if has(distribution, "columns") and np.size(distribution.columns) == 1:
            distribution = _Column(distribution)
        self._parts = [_counts(each) for each in ([distribution] if self._alone else distribution)]
        if not self._parts:
            raise InputError("there are no distributions; give one with parameters (n,), or a list.")
        entropies, shapes = list[Array | None](), list[tuple[int, ...]]()
        for row, part in enumerate(self._parts):
            name = "the distribution" if self._alone else f"the distribution of row {row}"
            entropy, rows, shape = _tried(part, name)
            if self._alone and len(rows) != 1:
                raise InputError(
                    f"{name} does not say how many rows it is about; give parameters of shape (n,), or "
                    "a list of n distributions."
                )
            if shapes and shape != shapes[0]:
                raise InputError(
                    f"{name} is about outcomes of shape {shape}, and that of row 0 about "
                    f"{shapes[0]}; give distributions of the same kind of outcome."
                )
            if not self._alone and rows not in ((), (1,)):
                raise _not_of_a_number(name, rows)
            entropies.append(entropy)
            shapes.append(shape)
        known = [np.atleast_1d(each) for each in entropies if each is not None]
        self._entropy = np.concatenate(known) if len(known) == len(entropies) else None
        self._shape = (*(rows if self._alone else (len(self._parts),)), *shapes[0])

    def _asked(self, names: Sequence[str], values: Array) -> Array:
        """Return what the first of these methods says of values (…, n) or (…, n, d)."""
        flat = values.reshape(-1, *self._shape)
        try:
            if self._alone:
                found = self._of_object(_method(self._parts[0], names), flat)
            else:
                each = (_method(p, names)(flat[:, k]) for k, p in enumerate(self._parts))
                found = np.stack([np.reshape(own, len(flat)) for own in each], axis=1)
            return found.astype(np.float64).reshape(values.shape[: values.ndim - len(self._shape) + 1])
        except Exception as error:
            raise InputError(
                f"the distributions fail to state their {names[0]} ({error}); see that it takes a "
                "number for every row, or a block of these, and returns as many."
            ) from error

    def _of_object(self, ask: Callable[[Array], Any], values: Array) -> Array:
        """Return what the one object, which may have more rows than these, says of (B, n, …)."""
        if self._places is not None:
            every = np.repeat(values[:, :1], self._n_stated, axis=1)
            every[:, self._places] = values
            values = every
        with suppress(Exception):  # what fails for a block may take the outcomes of all rows
            block = np.asarray(ask(values))
            if block.shape == values.shape[:2]:
                return block if self._places is None else block[:, self._places]
        each = np.stack([np.asarray(ask(own)) for own in values])
        return each if self._places is None else each[:, self._places]

    def cdf(self, outcomes: Array) -> tuple[Array, Array]:
        """Return P(Y < y), taken next to y, so that every atom is found, and P(Y ≤ y)."""
        if self.dimension is not None or not has(self._parts[0], "cdf"):
            raise self.lacking("cdf")
        ends = np.stack([np.nextafter(outcomes, -np.inf), outcomes])
        found = self._asked(["cdf"], ends)
        for place in np.argwhere(~((found >= -_ROUNDED) & (found <= 1.0 + _ROUNDED)))[:1]:
            raise InputError(
                f"the cdf of row {place[-1]} (counting from 0) is {found[tuple(place)]:g} at "
                f"{ends[tuple(place)]:g}; give distributions whose cdf is between 0 and 1."
            )
        below, at = np.clip(found, 0.0, 1.0)
        return below, at

    def chances(self, outcomes: Array) -> Array:
        """Return the chances of single numbers, by their logarithms where these are stated."""
        return np.exp(self.log_density(outcomes)) if self._are_counts else super().chances(outcomes)

    @property
    def _are_counts(self) -> bool:
        return all(isinstance(part, _Counts) for part in self._parts)

    def quantile(self, levels: Array) -> Array:
        """Return quantiles, by ``ppf`` if there is one."""
        stated = any(has(self._parts[0], each) for each in _QUANTILES)
        return self._asked(_QUANTILES, levels) if stated else super().quantile(levels)

    def take(self, rows: Any) -> Self:
        """Return the distributions of some rows; one object is still asked about all that it has."""
        places, found = np.arange(self.n_samples)[rows], super().take(rows)
        if self._alone:
            found._places = places if self._places is None else self._places[places]
            found._n_stated = self._n_stated or self.n_samples
        else:
            found._parts = [self._parts[k] for k in places]
        return found

    _places: NDArray[np.intp] | None = None  # of these rows among those of the object
    _n_stated = 0  # rows of the object, of which these are some

    def mean_and_variance(self) -> tuple[Array, Array]:
        """Return what the distributions state, by methods of either generation of SciPy's."""
        try:
            with warnings.catch_warnings(record=True) as early:  # of sums that end early, see below
                warnings.simplefilter("always", RuntimeWarning)
                asked = [[part.mean(), _method(part, ("var", "variance"))()] for part in self._parts]
            stated = np.array(asked, dtype=np.float64)
            both, count = stated[0] if self._alone else stated.T, self._n_stated or self.n_samples
            mean, variance = (np.broadcast_to(each, count) for each in both)
        except Exception:  # an object of the user's may raise anything
            raise self.lacking("mean_and_variance") from None
        some = slice(None) if self._places is None else self._places
        mean, variance = mean[some], variance[some]
        if early and self._are_counts and (found := masses_of_counts(self)) is not None:
            first, masses = found
            steps = np.arange(float(len(masses)))[:, None]
            centre = (masses * steps).sum(axis=0)
            mean, variance = first + centre, (masses * (steps - centre) ** 2).sum(axis=0)
        return mean, variance

    def entropy(self) -> Array:
        """Return the entropies that the distributions state; those of counts are added up."""
        if self._entropy is None:
            raise self.lacking("entropy")
        return self._entropies

    @cached_property
    def _entropies(self) -> Array:
        found: Any = self._entropy
        if len(rows := np.flatnonzero(np.isnan(found))):
            found, law = found.copy(), self.take(rows)
            places, masses = law.expecting()
            found[rows] = -(masses * np.maximum(law.log_density(places), _NEVER)).sum(axis=0)
        return np.asarray(found)

    def impossible(self, outcomes: Array) -> NDArray[np.bool_]:
        """Say in which rows the outcome has density 0, or lies where the cdf is 0 or begins at 1."""
        if self._entropy is not None:
            return super().impossible(outcomes)
        below, at = self.cdf(outcomes)
        return np.asarray((at == 0.0) | (below == 1.0))

    def log_density(self, outcomes: Array) -> Array:
        """Return log densities, or log probabilities of discrete distributions."""
        if self._entropy is None:
            raise self.lacking("log_density")
        return self._asked(_DENSITY, outcomes)

    def draw(self, rng: np.random.Generator, size: int) -> Array:
        """Return outcomes drawn by the distributions."""
        if not any(has(self._parts[0], each) for each in _DRAWING):
            return self.quantile(rng.random((size, self.n_samples)))
        if self._alone:
            drawn = _drawn(self._parts[0], (size, self._n_stated or self.n_samples), rng)
            return drawn if self._places is None else drawn[:, self._places]
        shape = (size, *self._shape[1:])
        return np.stack([_drawn(p, (size,), rng).reshape(shape) for p in self._parts], axis=1)


@dataclass(frozen=True)
class _Column:
    """Distributions laid out as a table of one column, as skpro's are."""

    table: Any

    def cdf(self, values: Array) -> Array:
        return self._of(self.table.cdf, values)

    def ppf(self, levels: Array) -> Array:
        return self._of(self.table.ppf, levels)

    def _of(self, ask: Callable[[Array], Any], values: Array) -> Array:
        column = np.broadcast_to(values, len(self.table))[:, None]
        return np.asarray(ask(column), dtype=np.float64)[:, 0]


@dataclass(frozen=True)
class _Counts:
    """Discrete distributions of either generation of SciPy's, or of the user's.

    Those of whole numbers are asked at these alone: between them some state no cdf, or another one.
    """

    part: Any
    whole: bool

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_") or name == "part":  # not there yet where it is unpickled
            raise AttributeError(name)
        return getattr(self.part, name)

    def cdf(self, values: Array) -> Array:
        return np.asarray(self.part.cdf(np.floor(values) if self.whole else values))

    def logpdf(self, values: Array) -> Array:
        if has(self.part, "logpmf"):
            return np.asarray(self.part.logpmf(values))
        with np.errstate(divide="ignore"):
            return np.asarray(np.log(self.part.pmf(values)))


def _counts(part: Any) -> Any:
    """Return a discrete distribution of a number as such; others as they are."""
    if not has(part, "cdf") or not (has(part, "pmf") or has(part, "logpmf")):
        return part
    whole = True
    with suppress(Exception):  # what the user's raise is said where it is tried
        quantiles = np.asarray(_method(part, _QUANTILES)(_WHOLE))
        whole = bool((quantiles == np.rint(quantiles)).all())
        if has(part, "pdf") and not np.any(part.pmf(quantiles) > 0.0):  # SciPy's newer ones state both
            return part
    return _Counts(part, whole)


@dataclass(frozen=True)
class _Steps:
    """Distributions of what an outcome is when it is raised to the next of the places, (n, K + 1)."""

    places: Array
    table: Array

    def cdf(self, values: Array) -> Array:
        rows = np.arange(len(self.table))
        count = np.searchsorted(self.places, values, "right") + 0 * rows
        return np.where(count > 0, self.table[rows, count - 1], 0.0)

    def mean(self) -> Array:
        return np.asarray(np.diff(self.table, prepend=0.0) @ self.places)

    def var(self) -> Array:
        return np.asarray(np.diff(self.table, prepend=0.0) @ self.places**2 - self.mean() ** 2)


def stepwise(thresholds: Sequence[float], cdf: Array) -> Predictive:
    """Return distributions of which P(Y ≤ t) is stated at some numbers t, and nothing between them.

    Of an outcome only the first of these that it is not above matters, see :func:`upwards`.
    """
    steps = np.diff(cdf, prepend=0.0, append=1.0)
    for row, k in np.argwhere(steps < -_UNEVEN)[:1]:
        found = f"the cdf of {{row}} is {cdf[row, min(k, len(thresholds) - 1)]:g} at {{at}}"
        raise InputError(
            f"{found}; give probabilities from 0 to 1 that do not decrease.",
            row=int(row),
            at=f"{thresholds[min(k, len(thresholds) - 1)]:g}",
        )
    table = np.maximum.accumulate(np.clip(np.column_stack([cdf, np.ones(len(cdf))]), 0.0, 1.0), axis=1)
    return Distribution(_Steps(_places(thresholds), table))


def upwards(thresholds: Sequence[float], outcomes: object) -> Array:
    """Return outcomes raised to the next of these numbers; those above all of them to one beyond."""
    places = _places(thresholds)
    return places[np.searchsorted(places[:-1], np.asarray(outcomes, dtype=np.float64))]


def _places(thresholds: Sequence[float]) -> Array:
    return np.append(thresholds, thresholds[-1] + np.diff([thresholds[0] - 1.0, *thresholds])[-1])


def _method(part: Any, names: Sequence[str]) -> Any:
    """Return the first of these methods that it has."""
    return getattr(part, next(name for name in names if has(part, name)))


def _tried(part: Any, name: str) -> tuple[Array | None, tuple[int, ...], tuple[int, ...]]:
    """Try all that will be asked; return the entropy, and the shapes of rows and of an outcome.

    The entropy is None without a density, and NaN for counts, where it is added up when it is needed.
    """
    counted, drawing = isinstance(part, _Counts), any(has(part, each) for each in _DRAWING)
    known = (
        not counted and drawing and has(part, "entropy") and any(has(part, each) for each in _DENSITY)
    )
    if not known and not has(part, "cdf"):
        raise InputError(
            f"{name} is {quoted(part)}, which states neither a cdf nor an entropy and a density; give "
            "one such as scipy.stats.norm(loc, scale), with parameters of shape (n,), or a list."
        )
    try:
        stated = np.asarray(part.entropy() if known else part.cdf(0.0), dtype=np.float64)
        right = np.isfinite(stated) if known else (stated >= 0.0) & (stated <= 1.0)
        shape, dense = (3, *stated.shape), known or counted
        drawn, density = np.zeros(shape), shape
        if right.all() and drawing:
            drawn = _drawn(part, shape, np.random.default_rng(0))
        if right.all() and dense:
            density = np.shape(_method(part, _DENSITY)(drawn))
    except Exception as error:
        raise InputError(
            f"{name} fails to draw, or to state its entropy, density or cdf ({error}); freeze it, as "
            "in scipy.stats.norm(loc, scale), and see that it takes a block of outcomes."
        ) from error
    for row in np.flatnonzero(~right)[:1]:
        raise InputError(
            f"{name} has the {'entropy' if known else 'cdf at 0'} {np.ravel(stated)[row]:g} at row "
            f"{row} (from 0); give parameters in their range, of a finite entropy."
        )
    entries = drawn.shape[len(shape) :]
    if density != shape or drawn.shape[: len(shape)] != shape or len(entries) > dense:
        raise _not_of_a_number(name, drawn.shape[1:])
    return (stated * (1.0 if known else np.nan) if dense else None), stated.shape, entries


def _not_of_a_number(name: str, shape: tuple[int, ...]) -> InputError:
    return InputError(
        f"{name} is about outcomes of shape {shape}; give a distribution of a number, or of a vector, "
        "a row."
    )


def _drawn(part: Any, shape: tuple[int, ...], rng: np.random.Generator) -> Array:
    """Draw by the method of either generation of scipy's distributions."""
    if has(part, "rvs"):
        size: Any = shape if len(shape) > 1 else shape[0]
        return np.asarray(part.rvs(size=size, random_state=rng), dtype=np.float64)
    return np.asarray(part.sample(shape[:1], rng=rng), dtype=np.float64)


@arguments()
class Ranks(Predictive):
    """Where outcomes lie in what was predicted of them, as P(Y < y) and P(Y ≤ y): (…, n, 2).

    Groups of rows then need not ask their distributions again.
    """

    instead = "use a statistic of ranks, such as 'pit_ad'"

    def __init__(self, law: Predictive) -> None:
        self.law, self.about = law, f"ranks in {law.about}"

    @property
    def n_samples(self) -> int:
        """Number of rows, n."""
        return self.law.n_samples

    @property
    def dimension(self) -> None:
        """None: it is of numbers."""

    @property
    def _crps(self) -> Any:
        raise self.lacking("crps")

    def of(self, outcomes: Array, rows: Any = slice(None)) -> Array:
        """Return the ranks of outcomes, all or of some rows."""
        law = self.law if rows == slice(None) else self.law.take(rows)
        return np.stack(law.cdf(outcomes), axis=-1)

    def cdf(self, outcomes: Array) -> tuple[Array, Array]:
        """Return both entries."""
        return outcomes[..., 0], outcomes[..., 1]

    def quantile(self, levels: Array) -> Array:
        """Return the ranks of the quantiles."""
        return self.of(self.law.quantile(levels))

    def level(self) -> Array:
        """Return the levels of the distributions, not of ranks in these."""
        return self.law.level()

    def spread(self) -> Array:
        """Return the spreads of the distributions."""
        return self.law.spread()

    def expecting(self) -> tuple[Array, Array]:
        """Return ranks and masses."""
        outcomes, masses = self.law.expecting()
        return self.of(outcomes), masses

    def take(self, rows: Any) -> Ranks:
        """Return those of some rows."""
        return Ranks(self.law.take(rows))

    def draw(self, rng: np.random.Generator, size: int) -> Array:
        """Return the ranks of drawn outcomes."""
        return self.of(self.law.draw(rng, size))

    def entropy(self) -> Array:
        """Return 0, that of a uniform number."""
        return np.zeros(self.n_samples)

    def log_density(self, outcomes: Array) -> Array:
        """Return 0, that of a uniform number."""
        return np.zeros(outcomes.shape[:-1])
