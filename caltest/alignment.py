"""Alignment: rows and columns with names are matched by name, or refused.

Rows have names in a pandas index and in xarray coordinates. All arguments must name them alike, in one
order; the default index means that rows correspond by position. Columns with the same names in another
order, or in another form ("cat", "P(cat)", "prob_cat"), are matched.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import takewhile
from typing import Any, NamedTuple

import numpy as np

from caltest._arguments import has
from caltest._visible import attempt, quoted
from caltest.exceptions import InputError
from caltest.spelling import number_of, spelled

# ------------------------------------------------------------------ rows

_DEFAULT = re.compile(r"dim_\d+")  # xarray's name for an unnamed dimension
#: Names of member dimensions in xarray arrays, including ArviZ's.
MEMBERS = ("member", "number", "realization", "realisation", "ensemble", "draw", "chain")
#: Names of row dimensions, the first that exists being used, and of columns.
_OBSERVED = ("obs", "obs_id", "observation")
_ROWS = ("row", "rows", "case", "simulation", *_OBSERVED, "time", "sample", "samples")
_COLUMNS = ("class", "classes", "category", "label", "quantile", "level", "entry", "variable")
_WRONG = {
    "rows": "the {kind} of {first} and {second} differ: {row} is {one} in {first} and {other} in "
    "{second}; {align}, or {by_place} both if rows correspond by position.",
    "dimensions": "the rows of {first} are along {one}, and those of {second} along {other}; give both "
    "along one dimension, or .values of both if rows correspond by position.",
    "unsaid": "{what} has the dimensions {names}, which do not say what a row is; call that of rows "
    "'row', as .rename({first}='row') does, or give .values with rows first.",
    "columns": "{what} has the columns {found}, and {whose} {names}; name both alike, or give one of "
    "them without names, in the order of the other.",
}


class RowNames(NamedTuple):
    """The names that an argument has for its rows."""

    what: str  #: Name of the argument in messages.
    index: Any  #: A pandas index; None for xarray without coordinates.
    dimension: str | None = None  #: xarray's row dimension, "" if unnamed; None for other data.


def row_names(data: Any, what: str) -> Iterator[RowNames]:
    """Yield the names that an argument, or each of several columns in it, has for its rows.

    An object built from other input, such as a law, has the names of that input, its ``given``.
    """
    if data is None or isinstance(data, np.ndarray | str):  # most are, and checks take time
        return
    if isinstance(data, list) and (len(data) > 3 or not any(has(x, "index", "ndim") for x in data)):
        return
    data = data.to_native() if has(data, "to_native") else data  # narwhals objects
    if isinstance(data, RowNames):
        yield data
    elif isinstance(data, Mapping | tuple | list):  # such as a list of times and events
        for name, column in data.items() if isinstance(data, Mapping) else enumerate(data[:3]):
            yield from row_names(column, f"{what}[{quoted(name)}]")
    elif is_xarray(data):
        first = str(data.dims[0]) if data.dims else ""
        index = data.indexes.get(first) if first in data.coords else None
        yield RowNames(what, index, "" if _DEFAULT.fullmatch(first) else first)
    elif index := [getattr(data, name) for name in ("index", "time_index") if has(data, name)]:
        if has(index[0], "equals", "tolist"):
            yield RowNames(what, index[0])
    elif has(data, "given"):
        given = data.given if isinstance(data.given, Mapping) else {"": data.given}
        for name, own in given.items():
            yield from row_names(own, f"{name} of {what}" if name else what)


def check_rows(parts: Mapping[str, Any]) -> None:
    """Raise if arguments, passed by name, have equally many rows but different names for them."""
    known: list[RowNames] = []
    for what, data in parts.items():
        for found in row_names(data, what):
            for other in known:
                _check_pair(other, found)
            if not any(x.index is found.index and x.dimension == found.dimension for x in known):
                known.append(found)


def _check_pair(one: RowNames, other: RowNames) -> None:
    """Raise if two indexes differ, unless one is the default and the other no reordering of it."""
    facts: dict[str, Any] = {"first": one.what, "second": other.what}
    if one.dimension and other.dimension and one.dimension != other.dimension:
        facts |= {"one": quoted(one.dimension), "other": quoted(other.dimension)}
        raise InputError(_WRONG["dimensions"], **facts)
    first, second = one.index, other.index
    if first is None or second is None or len(first) != len(second) or first.equals(second):
        return
    count, values = list(range(len(first))), (first.tolist(), second.tolist())
    if values[0] == values[1]:  # equal up to their types
        return
    same = attempt(lambda: set(values[0]) == set(values[1]))  # None if values are not hashable
    if not same and count in values:
        rest = values[1] if values[0] == count else values[0]
        places = np.array([number_of(as_spelled(value)) for value in rest])
        if not (np.isin(places, count) & (places != count)).any():
            return
    row = next((k for k, pair in enumerate(zip(*values, strict=True)) if pair[0] != pair[1]), 0)
    kind, by_place, align = "pandas indexes", "call .reset_index(drop=True) on", "align them"
    if one.dimension is not None or other.dimension is not None:
        kind, by_place = "coordinates of the rows", "give .values of"
    elif same and first.is_unique and " " not in one.what + other.what:
        align = f"give {other.what}.loc[{one.what}.index], as the rows are the same"
    facts |= {"one": quoted(values[0][row]), "other": quoted(values[1][row]), "align": align}
    raise InputError(_WRONG["rows"], kind=kind, row=row, by_place=by_place, **facts)


# ------------------------------------------------------------------ dimensions that have names


def is_xarray(data: Any) -> bool:
    """Return whether data are an array with named dimensions and perhaps coordinates, like xarray's."""
    named = not isinstance(data, np.ndarray) and has(data, "dims", "coords", "values")
    return named and not callable(data.values)


def rows_first(data: Any, what: str, *beside: Any) -> Any:
    """Return an array with named dimensions with its rows first, then its members.

    Rows are along the dimension that ``beside`` has, if any, or along one with a name for rows.

    Raises
    ------
    InputError
        If neither shows which dimension it is.
    """
    if not is_xarray(data) or len(data.dims) < 2:
        return data
    members = [name for name in data.dims if name in MEMBERS]
    others = [name for name in data.dims if name not in members]
    told = [x.dims[0] for x in beside if is_xarray(x) and len(x.dims) == 1 and x.dims[0] in others]
    told += [name for name in _ROWS if name in others]
    rest = [name for name in others if name not in _COLUMNS]
    if len(rest) == 1 or all(_DEFAULT.fullmatch(str(name)) for name in data.dims):
        told += others[:1] if len(rest) > 1 else rest
    if not told and len(others) > 1:
        names = ", ".join(map(quoted, data.dims))
        raise InputError(_WRONG["unsaid"], what=what, names=names, first=others[0])
    rows = told[:1] or others
    order = (*rows, *members, *[name for name in others if name not in rows])
    return data if order == tuple(data.dims) else data.transpose(*order)


def in_dimensions(given: Any, outcomes: Any) -> Any:
    """Return outcomes with dimensions in the order of the predictions', if both have named ones."""
    given = next(iter(given.values()), None) if isinstance(given, dict) else given
    if not is_xarray(given):
        return outcomes
    if has(outcomes, "data_vars"):
        names = [given.name, *([*outcomes.data_vars] if len(outcomes.data_vars) == 1 else ())]
        outcomes = next((outcomes[name] for name in names if name in outcomes.data_vars), outcomes)
    if not is_xarray(outcomes) or not {*outcomes.dims} <= {*given.dims}:
        return outcomes
    outcomes = outcomes.transpose(*[name for name in given.dims if name in outcomes.dims])
    for name in outcomes.dims[1:]:
        coords = [x.coords[name].values.tolist() for x in (given, outcomes) if name in x.coords]
        if coords[1:] and coords[0] != coords[1]:
            text = "the coordinates of {name} differ in predictions and outcomes; align them."
            raise InputError(text, name=quoted(name))
    return outcomes


# ------------------------------------------------------------------ columns


def column_names(data: Any) -> tuple[str, ...]:
    """Return the names of a frame's columns, or of xarray's coordinates, if there are any."""
    if type(data) is np.ndarray:  # most are
        return ()
    if is_xarray(data) and len(data.dims) > 1:
        last = data.dims[-1]
        return tuple(map(str, data.coords[last].values)) if last in data.coords else ()
    # Arrow tables, and others.
    own = next((getattr(data, name) for name in ("column_names", "columns") if has(data, name)), ())
    return attempt(lambda: tuple(map(str, getattr(own, "values", own)))) or ()


def bare(names: Sequence[str]) -> tuple[tuple[str, ...], str]:
    """Drop the start and end that all names share, up to a delimiter; return the rest, and what went.

    >>> bare(["P(cat)", "P(dog)"]), bare(["cat_prob", "dog_prob"])
    ((('cat', 'dog'), 'P(…)'), (('cat', 'dog'), '…_prob'))
    """
    start, end = _shared(names), _shared([name[::-1] for name in names])
    start = start[: 1 + max(start.rfind(each) for each in "_-.:/|= ([{<'\"")]
    end = end[: 1 + max(end.rfind(each) for each in "_-.:/|= )]}>'\"")][::-1]
    rest = tuple(name[len(start) : len(name) - len(end)] for name in names)
    if len(names) < 2 or not all(rest):
        return tuple(names), ""
    return rest, f"{start}…{end}" if end else start


def _shared(names: Sequence[str]) -> str:
    alike = takewhile(lambda letters: len(set(letters)) == 1, zip(*names, strict=False))
    return "".join(letters[0] for letters in alike)


def forms(names: Sequence[str]) -> Iterator[tuple[Callable[[str], str], tuple[str, ...]]]:
    """Yield forms that names may take elsewhere: unchanged, spelled, bare, and in lower case.

    Each comes with the function that makes it from a name. A form that merges two names is left out.
    """
    yield str, tuple(names)
    for some in (names, bare(names)[0]):
        for change in (as_spelled, lambda name: as_spelled(name).casefold()):
            form = tuple(map(change, some))
            if len(set(form)) == len(form):
                yield change, form


def as_spelled(name: Any) -> str:
    """Return the normalised spelling of a name; "" if it is missing or cannot be written."""
    return attempt(lambda: spelled(name)) or ""


def matched(names: Sequence[str], columns: Sequence[str]) -> list[int] | None:
    """Return the place of every name among columns with the same names, in any form; else None.

    >>> matched(["cat", "dog"], ["P(Dog)", "P(Cat)"])
    [1, 0]
    """
    for _, form in forms(names) if len(names) == len(columns) else ():
        for _, other in forms(columns):
            if set(form) == set(other):
                return [other.index(name) for name in form]
    return None


def stated_numbers(names: Sequence[str], *, counted: bool = True) -> list[float]:
    """Return the numbers at the ends of names, if all have one after the same letters; else none.

    >>> stated_numbers(["p5", "p50"]), stated_numbers(["surv_365.0", "surv_730.0", "surv_b"])
    ([5.0, 50.0], [])
    """
    ends = [re.fullmatch(r"(.*?)(\d+(?:\.\d+)?(?:e[+-]?\d+)?)(\D*)", name) for name in names]
    found = [end for end in ends if end]
    alike = len(found) == len(names) and len({(end[1], end[3]) for end in found}) == 1
    numbers = [float(end[2]) for end in found] if alike else []
    return numbers if counted or not are_counted(names) else []


def are_counted(names: Sequence[str]) -> bool:
    """Return whether names are only numbers from 0 or 1: "0", "1", or "p1", "p2"."""
    return stated_numbers(names) in ([*range(len(names))], [*range(1, len(names) + 1)])


def in_order_of(names: Sequence[str], columns: Sequence[str], what: str, whose: str) -> list[int]:
    """Return the place of every name among the columns of an argument.

    Raises
    ------
    InputError
        If the columns have other names, unless either names are numbers only.
    """
    places = matched(names, columns)
    if places is None and len(names) == len(columns) and (are_counted(names) or are_counted(columns)):
        places = [*range(len(names))]
    if places is None:
        found, called = (", ".join(map(quoted, some[:8])) for some in (columns, names))
        raise InputError(_WRONG["columns"], what=what, found=found, whose=whose, names=called)
    return places
