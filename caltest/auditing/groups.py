"""Columns that group the rows, read from containers of any kind."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import product
from typing import Any, TypeAlias

import narwhals as nw
import numpy as np
from numpy.typing import NDArray

from caltest._arguments import has
from caltest._visible import quoted, shown_column, shown_group, shown_value
from caltest.auditing.result import Skipped
from caltest.data.containers import check_named, listed, native_of
from caltest.data.sample import check_index
from caltest.exceptions import InputError

Places: TypeAlias = NDArray[np.intp]

MISSING = "(missing)"
EMPTY = "(empty)"
MOST_VALUES = 1000
FEWEST_ROWS = 2  # of a group: no statistic of pairs can do with one
_NAMED = 20  # of the groups of a column that are too small
_ONLY_NAME = "group"  # of a column that came without one


@dataclass(frozen=True, eq=False)
class Grouping:
    """The groups that one column makes.

    Attributes
    ----------
    column
        Its name.
    values
        The values, as text: numbers in their order, then text in its own. Not made fit to be shown.
    rows
        The rows of each value, in increasing order.
    """

    column: str
    values: tuple[str, ...]
    rows: tuple[Places, ...]


def read_groups(groups: object, n_rows: int, **beside: object) -> tuple[Grouping, ...]:
    """Read group columns.

    Parameters
    ----------
    groups
        None, a data frame (pandas, polars, pyarrow), a dict of columns, or one column: a series or
        a list, whose name, if it has none, is "group".
    n_rows
        Rows that every column must have.
    beside
        By name, what has the same rows: pandas indexes are compared with those of ``groups``.

    Returns
    -------
    tuple of Grouping
        One a column. Values are compared as text, character by character; missing ones are a group
        of their own.

    Raises
    ------
    InputError
        If there are no such columns, their length is another, or one has more than 1000 values.

    Examples
    --------
    >>> (grouping,) = read_groups({"age": [30, None, 4, 30]}, 4)
    >>> grouping.values, [rows.tolist() for rows in grouping.rows]
    (('4', '30', '(missing)'), [[2], [0, 3], [1]])
    """
    if groups is None:
        return ()
    each = groups.values() if isinstance(groups, Mapping) else [groups]
    for (name, data), column in product(beside.items(), each):
        check_index(data, column, name, "groups")
    columns = _columns(groups)
    if not columns:
        raise InputError("groups has no column; give one at least, or leave groups out.")
    return tuple(_grouping(name, cells, n_rows) for name, cells in columns.items())


def equal_to_labels(groupings: Iterable[Grouping], labels: Places) -> tuple[str, ...]:
    """Warn of columns that group the rows as the labels do, a sentence a column.

    Examples
    --------
    >>> equal_to_labels(read_groups({"truth": ["b", "a", "b"]}, 3), np.array([1, 0, 1]))[0][:61]
    "Column 'truth' of groups groups the rows as the labels do: it"
    >>> equal_to_labels(read_groups({"region": ["b", "b", "a"]}, 3), np.array([1, 0, 1]))
    ()
    """
    n_labels = len(np.unique(labels))
    return tuple(
        f"Column {shown_column(grouping.column)!r} of groups groups the rows as the labels do: its "
        "p-values, bounds and diagrams mean nothing, for groups must be known before the labels are; "
        "leave it out."
        for grouping in groupings
        if len(grouping.rows) == n_labels > 1
        and all((labels[rows] == labels[rows[0]]).all() for rows in grouping.rows)
    )


def _columns(groups: object) -> dict[str, list[Any]]:
    """Return the cells of every column by name."""
    if isinstance(groups, Mapping):
        check_named(list(groups), "groups")
        read = [
            (_named(name), _cells(cells, f"column {quoted(name)}")) for name, cells in groups.items()
        ]
        return _distinct(read)
    native = native_of(groups, "groups")
    if isinstance(native, nw.DataFrame):
        check_named(native.columns, "groups")
        return _distinct([(_named(name), native.get_column(name).to_list()) for name in native.columns])
    if isinstance(native, nw.Series):
        name = native.name
        check_named([name], "groups")
        return {_ONLY_NAME if name in (None, "") else _named(name): native.to_list()}
    return {_ONLY_NAME: _cells(groups, "groups")}


def _distinct(columns: list[tuple[str, list[Any]]]) -> dict[str, list[Any]]:
    names = [name for name, _ in columns]
    if len(set(names)) < len(names):
        raise InputError(
            f"groups has two columns of one name among {listed(names)}; rename one of them."
        )
    return dict(columns)


def _named(name: object) -> str:
    return str(name) or EMPTY


def _cells(column: object, what: str) -> list[Any]:
    """Return the cells of one column."""
    native = native_of(column, what)
    if isinstance(native, nw.Series):
        return native.to_list()
    cells: Any = None
    if not isinstance(column, str | bytes) and has(column, "__len__"):
        with contextlib.suppress(Exception):  # what calls itself an array may raise anything
            cells = column.tolist() if hasattr(column, "tolist") else list(column)  # type: ignore[call-overload]
    if not isinstance(cells, list):
        raise InputError(
            f"{what} is of type {type(column).__name__}; give a data frame, a dict of columns, or one "
            "column with an entry a row."
        )
    ndim = column.ndim if has(column, "ndim") else 1  # type: ignore[attr-defined]
    nested = next((cell for cell in cells if isinstance(cell, list | tuple | np.ndarray)), None)
    if ndim != 1 or nested is not None:
        raise InputError(
            f"{what} is a table without column names; give a data frame or a dict of columns, as in "
            "{'region': […], 'age': […]}."
        )
    return cells


def _grouping(column: str, cells: list[Any], n_rows: int) -> Grouping:
    if len(cells) != n_rows:
        raise InputError(
            f"column {quoted(column)} of groups has {len(cells)} entries for {n_rows} rows of probs; "
            "give one for every row."
        )
    codes: dict[Any, int] = {}
    texts: dict[str | None, int] = {}
    member = np.empty(n_rows, dtype=np.intp)
    for row, cell in enumerate(cells):
        key = (type(cell), cell)
        try:
            member[row] = codes[key]
        except (KeyError, TypeError):
            member[row] = texts.setdefault(_text(cell), len(texts))
            if len(texts) > MOST_VALUES:
                raise _too_many(column, cells) from None
            _remember(codes, key, int(member[row]))
    names = _value_names(list(texts))
    order = sorted(range(len(names)), key=lambda code: _place(names[code], code == texts.get(None)))
    by_code = np.argsort(member, kind="stable")
    parts = np.split(by_code, np.cumsum(np.bincount(member, minlength=len(names)))[:-1])
    return Grouping(column, tuple(names[c] for c in order), tuple(parts[c] for c in order))


def _value_names(texts: list[str | None]) -> list[str]:
    """Name what is missing, and what is empty, as no other value is named."""
    named = [text for text in texts if text]

    def free(name: str) -> str:
        while name in named:
            name = f"({name})"
        return name

    return [text or free(MISSING if text is None else EMPTY) for text in texts]


def _remember(codes: dict[Any, int], key: tuple[type, Any], code: int) -> None:
    """Keep the code of a value that can be looked up; NaN is unequal to itself, and cannot."""
    try:
        codes[key] = code
    except TypeError:
        return


def _too_many(column: str, cells: list[Any]) -> InputError:
    distinct = len({_text(cell) for cell in cells})
    numbers = all(isinstance(cell, int | float) for cell in cells[:MOST_VALUES])
    advice = (
        f"cut it into ranges first, as in pandas.qcut(groups[{quoted(column)}], 5)"
        if numbers
        else "leave it out, or merge values"
    )
    return InputError(
        f"column {quoted(column)} of groups has {distinct:,} different values, more than the "
        f"{MOST_VALUES:,} that are possible; {advice}."
    )


def _text(cell: Any) -> str | None:
    """Return a value as text; whole numbers alike, whether a column stores them as floats or not.

    None is a missing value.
    """
    if cell is None or (isinstance(cell, float) and cell != cell) or type(cell).__name__ in _MISSING:
        return None
    if isinstance(cell, float | np.floating) and float(cell).is_integer() and abs(float(cell)) < 1e15:
        return str(int(cell))
    try:
        return str(cell)
    except ValueError as error:  # Python writes no number of more than 4300 digits
        raise InputError(f"groups holds {quoted(cell)}; give such values as text.") from error


_MISSING = ("NAType", "NaTType")


def _place(text: str, missing: bool) -> tuple[int, float, str]:
    """Return where a value comes: numbers in their order, then text, then what is missing."""
    if missing:
        return 2, 0.0, text
    try:
        number = float(text)
    except ValueError:
        return 1, 0.0, text
    return (0, number, text) if number == number else (1, 0.0, text)


def large_enough(grouping: Grouping, min_rows: int) -> tuple[list[tuple[str, Places]], list[Skipped]]:
    """Split groups into those to look at and those that are too small, named with the reason."""
    column = shown_column(grouping.column)
    if len(grouping.values) == 1:
        value = shown_value(grouping.values[0]).strip("'")
        reason = f"all rows have the one value '{value}', so it is no group of its own"
        return [], [Skipped(f"column '{column}'", None, reason)]
    fewest = max(min_rows, FEWEST_ROWS)
    pairs = list(zip(grouping.values, grouping.rows, strict=True))
    kept = [(value, rows) for value, rows in pairs if len(rows) >= fewest]
    small = [(value, len(rows)) for value, rows in pairs if len(rows) < fewest]
    small.sort(key=lambda each: -each[1])
    reason = f"fewer than {fewest} rows"
    named = small if len(small) <= _NAMED + 1 else small[:_NAMED]
    skipped = [Skipped(shown_group(grouping.column, value), rows, reason) for value, rows in named]
    rest = small[len(named) :]
    if rest:
        what = f"{len(rest):,} more groups of {column}"
        skipped.append(Skipped(what, sum(rows for _, rows in rest), f"{reason} each"))
    return kept, skipped
