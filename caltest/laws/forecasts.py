"""Forecasts as other packages hold them, known by what they have: no package is imported."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from caltest._arguments import has
from caltest._visible import attempt, quoted
from caltest.exceptions import InputError
from caltest.laws.distributions import Predictive
from caltest.laws.members import Members
from caltest.laws.numbers import Distribution
from caltest.laws.quantiles import Quantiles, level_called

#: How dimensions of members are called in arrays of xarray, ArviZ's among them.
_MEMBERS = ("member", "number", "realization", "realisation", "ensemble", "draw", "chain")
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
    # A series of polars has an entropy and a sample too, and no density.
    if has(first, "entropy", "logpdf") or has(first, "entropy", "logpmf") or has(first, "cdf"):
        return Distribution(several)
    if has(first, *_PATHS) or has(first, *_OF_QUANTILES):
        return _of_paths(several if isinstance(several, list | tuple) else [several])
    return None


def _of_dimensions(given: Any) -> Members | None:
    """Read an array whose dimensions have names, one of members among them, or a set of one array."""
    if not has(given, "dims", "coords"):
        return None
    # Stacked chains and draws are called sample, as rows may be too.
    stacked = ("sample",) if "chain" in given.coords else ()
    own = [name for name in given.dims if name in (*_MEMBERS, *stacked)]
    if own and has(given, "data_vars"):
        if len(arrays := list(given.data_vars)) > 1:
            found = ", ".join(map(quoted, arrays))
            raise InputError(f"the predictions hold {found}; give one of them, as in group['…'].")
        given = given[arrays[0]]
    if not own:
        return None
    others = [name for name in given.dims if name not in own]
    if len(others) not in (1, 2):
        raise InputError(
            f"the predictions have the dimensions {', '.join(map(quoted, given.dims))}; besides that "
            "of members leave one of rows, and one of entries that belong together if there are some, "
            "as .stack(row=[…]) does."
        )
    array = given.transpose(*others, *own)
    values = np.asarray(array.values).reshape(*array.shape[: len(others)], -1)
    named = len(others) == 2 and others[1] in given.coords
    names = given.coords[others[1]].values.tolist() if named else None
    law = Members(np.moveaxis(values, -1, 1), names)
    law.given = array
    return law


def _of_series(given: Any) -> Members | None:
    """Read a series of sampled values: times are rows, and components entries (Darts)."""
    if not has(given, "all_values", "components", "is_stochastic"):
        return None
    values = given.all_values()
    if not given.is_stochastic:
        raise InputError("the series holds one value a time; predict samples, as by num_samples=100.")
    one = values.shape[1] == 1
    return Members(values[:, 0] if one else values.swapaxes(1, 2), None if one else [*given.components])


def _of_table(given: Any) -> Quantiles | None:
    """Read a frame with columns (variable, level) or (variable, coverage, side), as sktime's."""
    if attempt(lambda: given.columns.nlevels) not in (2, 3):
        return None
    sides = {"lower": -1.0, "upper": 1.0}
    names = [tuple(name) for name in given.columns]
    ends = [(sides.get(name[-1], 0.0), name[1]) for name in names]
    levels = attempt(lambda: [0.5 + 0.5 * side * float(at) if side else float(at) for side, at in ends])
    if levels is None or not all(0.0 < level < 1.0 for level in levels):
        return None
    if len(variables := dict.fromkeys(name[0] for name in names)) > 1:
        found = ", ".join(map(quoted, variables))
        raise InputError(f"the predictions are of {found}; give one of them, as in frame[['…']].")
    order = np.argsort(levels)
    return Quantiles(np.array(levels)[order], given.iloc[:, order])


def _of_paths(forecasts: Sequence[Any]) -> Predictive:
    """Read sampled paths, a row each, or quantiles, a row for every horizon (GluonTS)."""
    quantiles = has(forecasts[0], *_OF_QUANTILES)
    arrays = [np.asarray(each.forecast_array if quantiles else each.samples) for each in forecasts]
    known = {tuple(each.forecast_keys) if quantiles else np.shape(each.samples) for each in forecasts}
    if len(known) > 1 or arrays[0].ndim != 2:
        raise InputError(
            f"the forecasts have {'the keys' if quantiles else 'samples of shapes'} "
            f"{' and '.join(map(str, sorted(known)[:2]))}; give all of them the same, of one entry."
        )
    if not quantiles:
        return Members(np.stack(arrays), [str(k + 1) for k in range(arrays[0].shape[1])])
    levels = {k: level for k, name in enumerate(known.pop()) if (level := level_called(name))}
    order = sorted(levels, key=lambda k: levels[k])
    return Quantiles([levels[k] for k in order], np.concatenate([each[order].T for each in arrays]))
