"""Columns that describe the rows, known before the outcome: numbers, dates, and categories."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any, cast

import narwhals as nw
import numpy as np

from caltest._arguments import as_float, has
from caltest._numbers import shortest_between
from caltest._sums import Places
from caltest._visible import as_text, attempt, quoted, shown_column
from caltest.data.containers import cells_of, columns_of, entries_of, is_framed, listed, native_of
from caltest.exceptions import Argument, InputError, Phrase, Row
from caltest.laws.base import as_stated
from caltest.spelling import column_of, different, is_missing, moment_of, no_value, number_of, spelled

#: Advice for rows that are read block by block.
READ_WHOLE = "read the file whole, by caltest.files.read"
_MOST_LEVELS = 1000
_PARTS = 10  # parts of numbers, if few values are needed
_START = np.datetime64("1970-01-01", "us")
#: Units for writing dates, in microseconds.
_UNITS = {"D": 86_400_000_000, "h": 3_600_000_000, "m": 60_000_000, "s": 1_000_000, "ms": 1000, "us": 1}


@dataclass(frozen=True, eq=False)
class Feature:
    """One column of n rows.

    Attributes
    ----------
    name
        Name of the column.
    values
        Numbers, (n,) of float64, NaN if missing; or the place of each row's level, (n,) of intp, −1 if
        missing.
    levels
        The values of a category as text; empty for numbers.
    dates
        Whether numbers are seconds since 1970.
    """

    name: str
    values: np.ndarray
    levels: tuple[str, ...] = ()
    dates: bool = False

    def written(self, low: float, high: float) -> str:
        """Return the shortest number, or date, from the first on and below the second, as text."""
        if not self.dates:
            return shortest_between(low, high)
        first, last = round(low * 1e6), round(high * 1e6)
        ends = ((unit, -(-first // size) * size) for unit, size in _UNITS.items())
        unit, end = next(each for each in ends if each[1] == first or each[1] < last)
        return str(np.datetime64(end, "us").astype(f"datetime64[{unit}]"))

    @property
    def varies(self) -> bool:
        """Whether there are two different values."""
        first = np.full_like(self.values, self.values[0])
        return not np.array_equal(self.values, first, equal_nan=True)

    def between(self, low: float, high: float) -> float:
        """Return the shortest number, or date, in that range as a number."""
        text = self.written(low, high)
        return float(np.datetime64(text, "us").astype(np.int64)) / 1e6 if self.dates else float(text)

    def codes(self) -> tuple[Places, Places]:
        """Return each value's place among those that occur; for numbers also its part of a few."""
        _, places, counts = np.unique(self.values, return_inverse=True, return_counts=True)
        places = places.reshape(-1)
        parts = _PARTS * (np.cumsum(counts) - 1) // len(places)
        return places, places if self.levels else parts[places]


@dataclass(frozen=True, eq=False)
class Features:
    """Columns of the same n rows, with notes on how they were read."""

    columns: tuple[Feature, ...]
    notes: tuple[str, ...] = ()
    #: Objects that statistics computed from all rows, by their options.
    made: dict[Any, Any] = field(default_factory=dict, repr=False)

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the columns."""
        return tuple(each.name for each in self.columns)

    def take(self, rows: Any) -> Features:
        """Return the features of some rows."""
        if isinstance(rows, slice) and rows == slice(None):
            return self
        columns = tuple(replace(each, values=each.values[rows]) for each in self.columns)
        return replace(self, columns=columns, made={})


# ------------------------------------------------------------------ how they are read


def read_features(
    features: Any, n_rows: int, counting: Places | None = None, what: str = "features", **beside: object
) -> Features:
    """Read columns that describe the rows and were known before the outcome.

    Numbers written as text are numbers, unless they are codes with leading zeros; dates and times are
    seconds since 1970 (in UTC if they have a zone), time spans are days. All other text is a category.

    Parameters
    ----------
    features
        A data frame, a dict of columns, an array (n, d), or one column.
    n_rows
        Number of rows n.
    counting
        Places of the rows to keep. Default None: all of them.
    what
        Name of the argument in messages. Default "features".
    **beside
        Other data with the same rows, by name.

    Raises
    ------
    InputError
        If these are not such columns, or if a category has too many values.

    Examples
    --------
    >>> found = read_features({"age": ["31", "7.5", None], "zip": ["007", "010", ""]}, 3)
    >>> [(each.name, each.values.tolist(), each.levels) for each in found.columns]
    [('age', [31.0, 7.5, nan], ()), ('zip', [0, 1, -1], ('007', '010'))]
    """
    columns, every, notes = _by_name(features), list[Feature](), list[str]()
    read = columns_of(columns, what, "feature 0", n_rows, _entries, beside)
    for name, entries in read.items():
        if isinstance(entries, np.ndarray) and entries.dtype != object:
            every.append(Feature(name, _numbers(entries), (), entries.dtype.kind == "M"))
        else:
            every.append(_read(name, entries, notes, what))
    found = Features(tuple(every)).take(slice(None) if counting is None else counting)
    kept = tuple(each for each in found.columns if each.varies)
    if not kept:
        do = "give columns whose values differ"
        raise InputError(f"every column of {what} has one value in all rows; {do}.")
    if same := [each.name for each in found.columns if not each.varies]:
        notes.append(f"Left out of features, as all rows have one value: {listed(same)}.")
    return Features(kept, tuple(notes))


def read_order(order: Any, n_rows: int, counting: Places | None, **beside: object) -> Places:
    """Return the place of every row with weight among the numbers, or instants, of one column.

    They are compared as written, including integers of any size and nanoseconds. The arguments are
    described in :func:`read_features`.

    Raises
    ------
    InputError
        If it is not one column with a number or a date in every row of positive weight.
    """
    found = columns_of(_by_name(order), "order", "order", n_rows, _entries, beside)
    rows, cells = np.arange(n_rows) if counting is None else counting, next(iter(found.values()))
    if isinstance(cells, np.ndarray) and cells.dtype.kind in "iufM":
        keys, bad = cells[rows], ~np.isfinite(cells[rows])
    else:
        keys = np.array([_moment(cells[row]) for row in rows], object)
        dated = isinstance(keys[0], datetime)
        bad = np.array([key is None or isinstance(key, datetime) != dated for key in keys])
    but: Any = f", and has {len(found)} columns" if len(found) > 1 else ""
    for row in rows[bad][:1].tolist():
        but = but or Phrase(", and {row} is {found}", {"row": Row(row), "found": quoted(cells[row])})
    if but:
        text = "{order} needs one column, with a number or a date (2024-01-31) in every row{but}; {do}."
        raise InputError(text, order=Argument("order"), but=but, do="write these, or sort the rows")
    return np.unique(keys, return_inverse=True)[1]


def _moment(cell: Any) -> datetime | float | None:
    """Return a date, or a number, with integers of any size; None if it is neither."""
    text = spelled(cell) or ""
    if (moment := moment_of(text)) is not None:
        return cast("datetime", moment.item())
    number = int(text) if text.removeprefix("-").isdecimal() else _number(cell)
    return number if abs(number) < np.inf else None


def _by_name(given: Any) -> Any:
    """Return the columns of an array by name; other containers unchanged."""
    table = None
    if not (given is None or isinstance(given, Mapping) or is_framed(given) or has(given, "columns")):
        table = attempt(lambda: np.asanyarray(given))
    if table is not None and table.dtype.names:
        return {name: table[name] for name in table.dtype.names}
    if table is None or table.ndim != 2:
        return given
    return {f"feature {place}": table[:, place] for place in range(table.shape[1])}


def _entries(column: Any, what: str) -> np.ndarray | list[Any]:
    """Return numbers, times, time spans and declared categories as arrays; others as a list."""
    native, values = native_of(column, what), column
    if isinstance(native, nw.Series):
        dtype = native.dtype
        if dtype.is_numeric():
            values = attempt(native.to_numpy)
            if values is None or values.dtype.kind not in "iuf":
                values = attempt(lambda: native.cast(nw.Float64).to_numpy())
        elif dtype in (nw.Datetime, nw.Date, nw.Duration):
            values = attempt(native.to_numpy)
        elif dtype in (nw.Categorical, nw.Enum):
            return np.array(native.to_list(), dtype=object)
    if type(values) is np.ndarray and values.dtype.kind in "iufMm":
        values = values[:, 0] if values.shape[1:] == (1,) else values
        if values.ndim == 1:
            return values
    # Lists in a named column are wrong cells; in a nameless one they are rows.
    return (what != "features" and cells_of(column, what)) or entries_of(column, what)


def _numbers(values: np.ndarray) -> np.ndarray:
    """Return numbers, seconds since 1970, or days; NaN if missing."""
    kind = values.dtype.kind
    if kind not in "Mm":
        return np.asarray(as_stated(values).astype(np.float64))
    spans = values.astype("M8[us]") - _START if kind == "M" else values.astype("m8[us]")
    return np.asarray(spans / np.timedelta64(1, "s" if kind == "M" else "D"))


def _number(cell: Any) -> float:
    """Return the number that a cell is, or that its text is; NaN if it is not a number."""
    text = (as_text(cell) or "").strip()
    known = as_float(float(text) if text in ("inf", "-inf") else cell)
    return number_of(text) if known is None else known


def _read(name: str, cells: Any, notes: list[str], of: str) -> Feature:
    """Read entries as numbers or dates if all are, else as a category; arrays are declared."""
    what = f"column {quoted(name)} of {of}"
    written, distinct = different(cells, what)
    every = distinct.tolist()
    for place, cell in enumerate(every):
        simple = isinstance(cell, str | bytes | float | int)
        if not simple and (hasattr(cell, "__len__") or " at 0x" in (as_text(cell) or " at 0x")):
            raise no_value(what, int(np.argmax(written == place)), cell)
    absent = np.array([is_missing(cell) for cell in every], np.bool_)
    numbers = np.array([_number(cell) for cell in every])
    declared, no_number = isinstance(cells, np.ndarray), np.isnan(numbers) & ~absent
    if not (declared or no_number.any()):
        return Feature(name, numbers[written])
    codes, texts, merged, _ = column_of(cells, what, "level", read=(written, distinct))
    known = [text for text in texts if text and not is_missing(text)]
    if known and not declared and all(moment_of(text) is not None for text in known):
        moments = np.array([moment_of(text) or np.datetime64("NaT") for text in texts], "M8[us]")
        return Feature(name, _numbers(moments)[codes], (), True)
    row = int(np.argmax(no_number[written]))
    levels = sorted(text for text in texts if text)
    if len(levels) > _MOST_LEVELS:
        text = (
            f"{{argument}} has {len(levels):,} different values that are not all numbers ({{found}} in "
            f"{{row}}), and a category may have {_MOST_LEVELS:,}; merge values, or leave it out."
        )
        raise InputError(text, argument=what, found=quoted(cells[row]), row=row)
    notes += merged
    if not declared and 2 * np.count_nonzero(~np.isnan(numbers)[written]) > len(cells):
        holds = f"Column {shown_column(name)!r} holds numbers, but {quoted(cells[row])} in {Row(row)}"
        notes.append(f"{holds}: it is read as a category, each value a level.")
    place_of: dict[str | None, int] = {text: place for place, text in enumerate(levels)}
    values = np.array([place_of.get(text, -1) for text in texts], np.intp)
    return Feature(name, values[codes], tuple(levels))


def refuse_tolerance(features: Features | None) -> None:
    """Raise if a tolerance is set while features are searched for any error."""
    if features is not None:
        do = f"leave one out, or give {Argument('materiality')} instead"
        text = "are searched for errors of any size, and a tolerance or rounding allows some"
        raise InputError(f"{Argument('features')} {text}; {do}.")
