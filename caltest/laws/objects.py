"""Objects that state distributions, such as SciPy's, and forecasts of other packages.

They are recognised by their attributes: no package is imported.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Self

import numpy as np

from caltest._arguments import arguments, has
from caltest._sums import Mask
from caltest._visible import attempt, quoted
from caltest.alignment import MEMBERS, check_rows, rows_first
from caltest.exceptions import InputError
from caltest.laws.base import Predictive, Shaped, masses_of_counts
from caltest.laws.classes import Array
from caltest.laws.members import Members
from caltest.laws.quantiles import Quantiles, level_called

# Method names of both generations of SciPy's distributions.
_DRAWING, _QUANTILES, _DENSITY = ("rvs", "sample"), ("ppf", "icdf"), ("logpdf", "logpmf")
_ROUNDED = 1e-9  # tolerance for a cdf outside of [0, 1]
_NEVER = -1e3  # logarithm of a probability that is treated as 0
_WHOLE = np.array([0.01, 0.25, 0.5, 0.75, 0.99])[:, None]  # levels at which quantiles reveal counts
_UNEVEN = 1e-6  # the same tolerance for stated probabilities, and for a decrease


@arguments()
class Distribution(Shaped):
    """Predictions given as objects that state a distribution, such as those of ``scipy.stats``.

    Parameters
    ----------
    distribution : frozen distribution, or sequence of them
        One object with parameters of shape (n,), such as ``scipy.stats.gamma(a=shapes)``, or a sequence
        of n objects, one per row. It has ``cdf``, or ``entropy``, ``logpdf`` or ``logpmf``, and ``rvs``
        or ``sample``, which may give vectors; statistics tell what they need. Methods take blocks of
        outcomes, (B, n), or the outcomes of all rows, (n,) (``scipy.stats.dirichlet`` takes neither).
        Outcomes are drawn by ``rvs`` or ``sample``, else by ``ppf`` or ``icdf``, else by inverting
        ``cdf``, which evaluates it some 70 times: for many rows give one of the others too.

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
    _by_row = ("_entropy", "_places")

    def __init__(self, distribution: Any) -> None:
        self._alone = not isinstance(distribution, Sequence)
        args = getattr(distribution, "args", ()) or ()
        parameters = {f"parameter {k}": x for k, x in enumerate(args)}
        parameters |= getattr(distribution, "kwds", {}) or {}  # of SciPy's
        self.given = parameters or distribution
        check_rows(parameters)
        if has(distribution, "columns") and np.size(distribution.columns) == 1:
            distribution = _Column(distribution)
        self._parts = [_counts(each) for each in ([distribution] if self._alone else distribution)]
        if not self._parts:
            raise _refused("there are no distributions")
        rows_of = ["" if self._alone else f" of row {row}" for row in range(len(self._parts))]
        names = [f"the distribution{of}" for of in rows_of]
        tried = [_tried(part, name, self._alone) for part, name in zip(self._parts, names, strict=True)]
        entropies, rows, shapes = zip(*tried, strict=True)
        for name, shape in zip(names, shapes, strict=True):
            if shape != shapes[0]:
                found = f"{name} is about outcomes of shape {shape}, that of row 0 of {shapes[0]}"
                raise _refused(found)
        known = [np.atleast_1d(each) for each in entropies if each is not None]
        self._entropy = np.concatenate(known) if len(known) == len(entropies) else None
        self._shape = (*(rows[0] if self._alone else (len(self._parts),)), *shapes[0])
        # The rows of the object that these are: an object is always asked about all of its rows.
        self._places, self._known = np.arange(self.n_samples), self.n_samples

    def _asked(self, names: Sequence[str], values: Array) -> Array:
        """Return the result of the first method that exists at values (…, n) or (…, n, d)."""
        flat = values.reshape(-1, *self._shape)
        try:
            if self._alone:
                every = np.repeat(flat[:, :1], self._known, axis=1)
                every[:, self._places] = flat
                found = _of_block(_method(self._parts[0], names), every)[:, self._places]
            else:
                each = (_method(p, names)(flat[:, k]) for k, p in enumerate(self._parts))
                found = np.stack([np.reshape(own, len(flat)) for own in each], axis=1)
            return found.astype(np.float64).reshape(values.shape[: values.ndim - len(self._shape) + 1])
        except Exception as error:
            fails = f"the distributions fail to state their {names[0]} ({error})"
            do = "see that it takes a number for every row, or a block of these, and returns as many"
            raise InputError(f"{fails}; {do}.") from error

    def cdf(self, outcomes: Array) -> tuple[Array, Array]:
        """Return P(Y < y), taken at the float below y so that every atom is found, and P(Y ≤ y)."""
        if self.dimension is not None or not has(self._parts[0], "cdf"):
            raise self.lacking("cdf")
        ends = np.stack([np.nextafter(outcomes, -np.inf), outcomes])
        found = self._asked(["cdf"], ends)
        for place in np.argwhere(~((found >= -_ROUNDED) & (found <= 1.0 + _ROUNDED)))[:1]:
            at = tuple(place)
            text = f"the cdf of row {at[-1]} (counting from 0) is {found[at]:g} at {ends[at]:g}"
            raise InputError(f"{text}; give distributions whose cdf is between 0 and 1.")
        below, at = np.clip(found, 0.0, 1.0)
        return below, at

    def chances(self, outcomes: Array) -> Array:
        """Return the probabilities of single numbers, from their logarithms if these are stated."""
        return np.exp(self.log_density(outcomes)) if self._are_counts else super().chances(outcomes)

    @property
    def _are_counts(self) -> bool:
        return all(isinstance(part, _Counts) for part in self._parts)

    def quantile(self, levels: Array) -> Array:
        """Return quantiles, by ``ppf`` or ``icdf`` if there is one."""
        stated = any(has(self._parts[0], each) for each in _QUANTILES)
        return self._asked(_QUANTILES, levels) if stated else super().quantile(levels)

    def take(self, rows: Any) -> Self:
        """Return the distributions of some rows; a single object still evaluates all its rows."""
        found = super().take(rows)
        if not self._alone:
            found._parts = [self._parts[k] for k in np.arange(self.n_samples)[rows]]
        return found

    def mean_and_variance(self) -> tuple[Array, Array]:
        """Return what the distributions state, by methods of either generation of SciPy's."""
        try:
            with warnings.catch_warnings(record=True) as early:  # sums cut short, see below
                warnings.simplefilter("always", RuntimeWarning)
                asked = [[part.mean(), _method(part, ("var", "variance"))()] for part in self._parts]
            stated = np.array(asked, dtype=np.float64)
            of_rows = (np.broadcast_to(each, self._known)[self._places] for each in stated[0])
            mean, variance = of_rows if self._alone else stated.T
        except Exception:  # an object of the user's own may raise anything
            raise self.lacking("mean_and_variance") from None
        if early and self._are_counts and (found := masses_of_counts(self)) is not None:
            first, masses = found
            steps = np.arange(float(len(masses)))[:, None]
            centre = (masses * steps).sum(axis=0)
            mean, variance = first + centre, (masses * (steps - centre) ** 2).sum(axis=0)
        return mean, variance

    def entropy(self) -> Array:
        """Return the entropies that the distributions state; for counts they are summed here."""
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

    def impossible(self, outcomes: Array) -> Mask:
        """Return a mask of outcomes with density 0, or where the cdf is 0 or begins at 1."""
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
        """Return outcomes drawn by the distributions, or by their quantiles if they cannot draw."""
        if not any(has(self._parts[0], each) for each in _DRAWING):
            return self.quantile(rng.random((size, self.n_samples)))
        if self._alone:
            return _drawn(self._parts[0], (size, self._known), rng)[:, self._places]
        shape = (size, *self._shape[1:])
        return np.stack([_drawn(p, (size,), rng).reshape(shape) for p in self._parts], axis=1)


@dataclass(frozen=True)
class _Column:
    """Distributions laid out as a table of one column, as in skpro."""

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
    """Discrete distributions of either generation of SciPy's, or of the user's own.

    For whole numbers, only these are looked up: in between, some state no cdf, or a different one.
    """

    part: Any
    whole: bool

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_") or name == "part":  # not set yet while unpickling
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
    """Wrap a discrete distribution of a number; return others unchanged."""
    if not has(part, "cdf") or not (has(part, "pmf") or has(part, "logpmf")):
        return part
    whole = True
    with suppress(Exception):  # errors of a user's object are reported where it is tried
        quantiles = np.asarray(_method(part, _QUANTILES)(_WHOLE))
        whole = bool((quantiles == np.rint(quantiles)).all())
        if has(part, "pdf") and not np.any(part.pmf(quantiles) > 0.0):  # SciPy's newer ones state both
            return part
    return _Counts(part, whole)


@dataclass(frozen=True)
class _Steps:
    """Distributions of an outcome that is raised to the next of the places, (n, K + 1)."""

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
    """Return distributions whose P(Y ≤ t) is stated at some numbers t only, with nothing in between.

    Only the first t that an outcome does not exceed matters, see :func:`upwards`.
    """
    for row, k in np.argwhere(np.diff(cdf, prepend=0.0, append=1.0) < -_UNEVEN)[:1]:
        found = f"the cdf of {{row}} is {cdf[row, min(k, len(thresholds) - 1)]:g} at {{at}}"
        text = f"{found}; give probabilities from 0 to 1 that do not decrease."
        raise InputError(text, row=int(row), at=f"{thresholds[min(k, len(thresholds) - 1)]:g}")
    table = np.maximum.accumulate(np.clip(np.column_stack([cdf, np.ones(len(cdf))]), 0.0, 1.0), axis=1)
    return Distribution(_Steps(_places(thresholds), table))


def upwards(thresholds: Sequence[float], outcomes: object) -> Array:
    """Return outcomes raised to the next threshold; outcomes above all thresholds go to one beyond."""
    places = _places(thresholds)
    return places[np.searchsorted(places[:-1], np.asarray(outcomes, dtype=np.float64))]


def _places(thresholds: Sequence[float]) -> Array:
    return np.append(thresholds, thresholds[-1] + np.diff([thresholds[0] - 1.0, *thresholds])[-1])


def _method(part: Any, names: Sequence[str]) -> Any:
    """Return the first of these methods that the object has."""
    return getattr(part, next(name for name in names if has(part, name)))


def _of_block(ask: Callable[[Array], Any], values: Array) -> Array:
    """Call a method on values (B, n, …) at once, or, if that fails, once for each draw."""
    with suppress(Exception):
        block = np.asarray(ask(values))
        if block.shape == values.shape[:2]:
            return block
    return np.stack([np.asarray(ask(own)) for own in values]).reshape(values.shape[:2])


def _refused(what: str) -> InputError:
    such = "such as scipy.stats.norm(loc, scale) with parameters of shape (n,), or a list of n"
    do = f"give a distribution of a number or a vector, {such}; methods take blocks of outcomes"
    return InputError(f"{what}; {do}.")


def _tried(part: Any, name: str, alone: bool) -> tuple[Array | None, tuple[int, ...], tuple[int, ...]]:
    """Try every method needed; return the entropy, and the shapes of rows and of an outcome.

    The entropy is None without a density, and NaN for counts, whose entropy is summed when needed.
    """
    counted, drawing = isinstance(part, _Counts), any(has(part, each) for each in _DRAWING)
    known = not counted and drawing and has(part, "entropy") and any(has(part, x) for x in _DENSITY)
    if not known and not has(part, "cdf"):
        neither = "states neither a cdf nor an entropy and a density"
        raise _refused(f"{name} is {quoted(part)}, which {neither}")
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
        found = f"{name} fails to draw, or to state its entropy, density or cdf ({error})"
        raise _refused(found) from error
    for row in np.flatnonzero(~right)[:1]:
        what = f"the {'entropy' if known else 'cdf at 0'} {np.ravel(stated)[row]:g} at row {row}"
        raise _refused(f"{name} has {what} (from 0), as where parameters are out of their range")
    if alone and stated.ndim != 1:
        raise _refused(f"{name} does not say how many rows it is about")
    entries = drawn.shape[len(shape) :]
    ragged = density != shape or drawn.shape[: len(shape)] != shape or len(entries) > dense
    if ragged or (not alone and stated.size != 1):
        raise _refused(f"{name} is about outcomes of shape {drawn.shape[1:]}")
    return (stated * (1.0 if known else np.nan) if dense else None), stated.shape, entries


def _drawn(part: Any, shape: tuple[int, ...], rng: np.random.Generator) -> Array:
    """Draw by the method of either generation of SciPy's distributions."""
    if has(part, "rvs"):
        size: Any = shape if len(shape) > 1 else shape[0]
        return np.asarray(part.rvs(size=size, random_state=rng), dtype=np.float64)
    return np.asarray(part.sample(shape[:1], rng=rng), dtype=np.float64)


# ------------------------------------------------------------------ forecasts of other packages

_PATHS, _OF_QUANTILES = ("samples", "prediction_length"), ("forecast_array", "forecast_keys")


def recognised(given: object) -> Predictive | None:
    """Return the input as predicted distributions, wrapping objects that state them; else None."""
    if isinstance(given, Predictive):
        return given
    for read in (_of_dimensions, _of_series, _of_table):
        if (law := read(given)) is not None:
            return law
    objects = isinstance(given, Iterable) and has(given, "dtype") and str(given.dtype) == "object"  # type: ignore[attr-defined]
    several = list(given) if objects else given  # type: ignore[call-overload]
    first = several[0] if isinstance(several, list | tuple) and several else several
    # A polars series has an entropy and a sample too, but no density.
    if has(first, "entropy", "logpdf") or has(first, "entropy", "logpmf") or has(first, "cdf"):
        found = Distribution(several)
        found.given = given if objects else found.given
        return found
    if has(first, *_PATHS) or has(first, *_OF_QUANTILES):
        return _of_paths(several if isinstance(several, list | tuple) else [several])
    return None


def _of_dimensions(given: Any) -> Members | None:
    """Read an array with named dimensions, one of them for members, or a data set of one such array."""
    if not has(given, "dims", "coords"):
        return None
    # Stacked chains and draws are called sample, as rows may be too.
    stacked = ("sample",) if "chain" in given.coords else ()
    own = [name for name in given.dims if name in (*MEMBERS, *stacked)]
    if own and has(given, "data_vars"):
        if len(arrays := list(given.data_vars)) > 1:
            found = ", ".join(map(quoted, arrays))
            raise InputError(f"the predictions hold {found}; give one of them, as in group['…'].")
        given = given[arrays[0]]
    if not own:
        return None
    others = [name for name in given.dims if name not in own]
    if len(others) not in (1, 2):
        found = f"the predictions have the dimensions {', '.join(map(quoted, given.dims))}"
        do = "leave one of rows, and one of entries that belong together if there are some"
        raise InputError(f"{found}; besides that of members {do}, as .stack(row=[…]) does.")
    if others[1:]:
        others = [*rows_first(given.isel(dict.fromkeys(own, 0)), "the forecast").dims]
    array = given.transpose(*others, *own)
    values = np.asarray(array.values).reshape(*array.shape[: len(others)], -1)
    named = len(others) == 2 and others[1] in given.coords
    names = given.coords[others[1]].values.tolist() if named else None
    law = Members(np.moveaxis(values, -1, 1), names)
    law.given = array
    return law


def _of_series(given: Any) -> Members | None:
    """Read a series of sampled values: times become rows, components entries (Darts)."""
    if not has(given, "all_values", "components", "is_stochastic"):
        return None
    values = given.all_values()
    if not given.is_stochastic:
        raise InputError("the series holds one value a time; predict samples, as by num_samples=100.")
    one = values.shape[1] == 1
    return Members(values[:, 0] if one else values.swapaxes(1, 2), None if one else [*given.components])


def _of_table(given: Any) -> Quantiles | None:
    """Read a frame with columns (variable, level) or (variable, coverage, side), like sktime's."""
    if attempt(lambda: given.columns.nlevels) not in (2, 3):
        return None
    names = [tuple(name) for name in given.columns]
    ends = [({"lower": -1.0, "upper": 1.0}.get(name[-1], 0.0), name[1]) for name in names]
    levels = attempt(lambda: [0.5 + 0.5 * side * float(at) if side else float(at) for side, at in ends])
    if levels is None or not all(0.0 < level < 1.0 for level in levels):
        return None
    if len(variables := dict.fromkeys(name[0] for name in names)) > 1:
        found = ", ".join(map(quoted, variables))
        raise InputError(f"the predictions are of {found}; give one of them, as in frame[['…']].")
    order = np.argsort(levels)
    return Quantiles(np.array(levels)[order], given.iloc[:, order])


def _of_paths(forecasts: Sequence[Any]) -> Predictive:
    """Read sampled paths, one row per path, or quantiles, one row per horizon (GluonTS)."""
    quantiles = has(forecasts[0], *_OF_QUANTILES)
    arrays = [np.asarray(each.forecast_array if quantiles else each.samples) for each in forecasts]
    known = {tuple(each.forecast_keys) if quantiles else np.shape(each.samples) for each in forecasts}
    if len(known) > 1 or arrays[0].ndim != 2:
        what = "the keys" if quantiles else "samples of shapes"
        both = " and ".join(map(str, sorted(known)[:2]))
        raise InputError(f"the forecasts have {what} {both}; give all of them the same, of one entry.")
    if not quantiles:
        return Members(np.stack(arrays), [str(k + 1) for k in range(arrays[0].shape[1])])
    levels = {k: level for k, name in enumerate(known.pop()) if (level := level_called(name))}
    order = sorted(levels, key=lambda k: levels[k])
    return Quantiles([levels[k] for k in order], np.concatenate([each[order].T for each in arrays]))
