"""Columns that group the rows, read from containers of any kind."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Mapping
from itertools import product
from typing import Any, NamedTuple, TypeAlias

import narwhals as nw
import numpy as np
from numpy.typing import NDArray

from caltest._arguments import has
from caltest._visible import quoted, shown_column, shown_group, shown_value
from caltest.auditing.result import Group, Skipped
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


class Grouping(NamedTuple):
    """The groups that one column makes: its values as text, in order, and the rows of each."""

    column: str
    values: tuple[str, ...]
    rows: tuple[Places, ...]


def read_groups(groups: object, n_rows: int, **beside: object) -> tuple[Grouping, ...]:
    """Read group columns, as `audit` takes them; ``beside``, by name, is what has the same rows.

    Values are compared as text, character by character; missing ones are a group of their own.
    """
    if groups is None:
        return ()
    each = groups.values() if isinstance(groups, Mapping) else [groups]
    for (name, data), column in product(beside.items(), each):
        check_index(data, column, name, "groups")
    columns: list[tuple[Any, list[Any]]]
    native = None if isinstance(groups, Mapping) else native_of(groups, "groups")
    if isinstance(groups, Mapping):
        check_named(list(groups), "groups")
        columns = [(name, _cells(cells, f"column {quoted(name)}")) for name, cells in groups.items()]
    elif isinstance(native, nw.DataFrame):
        check_named(native.columns, "groups")
        columns = [(name, native.get_column(name).to_list()) for name in native.columns]
    elif isinstance(native, nw.Series):
        check_named([native.name], "groups")
        columns = [(_ONLY_NAME if native.name in (None, "") else native.name, native.to_list())]
    else:
        columns = [(_ONLY_NAME, _cells(groups, "groups"))]
    names = [str(name) or EMPTY for name, _ in columns]
    if len(set(names)) < len(names):
        raise InputError(
            f"groups has two columns of one name among {listed(names)}; rename one of them."
        )
    if not columns:
        raise InputError("groups has no column; give one at least, or leave groups out.")
    return tuple(
        _grouping(name, cells, n_rows) for name, (_, cells) in zip(names, columns, strict=True)
    )


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
    if ndim != 1 or any(isinstance(cell, list | tuple | np.ndarray) for cell in cells):
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
            continue
        except (KeyError, TypeError):
            member[row] = texts.setdefault(_text(cell), len(texts))
        with contextlib.suppress(TypeError):  # a value that cannot be looked up
            codes[key] = int(member[row])
        if len(texts) > MOST_VALUES:
            distinct = len({_text(cell) for cell in cells})
            advice = "leave it out, or merge values"
            if all(isinstance(cell, int | float) for cell in cells[:MOST_VALUES]):
                advice = f"cut it into ranges first, as in pandas.qcut(groups[{quoted(column)}], 5)"
            raise InputError(
                f"column {quoted(column)} of groups has {distinct:,} different values, more than the "
                f"{MOST_VALUES:,} that are possible; {advice}."
            )
    names = []  # what is missing, and what is empty, is named as no other value is
    for text in texts:
        name = text or (MISSING if text is None else EMPTY)
        while not text and name in texts:
            name = f"({name})"
        names.append(name)

    def place(code: int) -> tuple[int, float, str]:
        """Return where a value comes: numbers in their order, then text, then what is missing."""
        name = names[code]
        if code == texts.get(None):
            return 2, 0.0, name
        try:
            number = float(name)
        except ValueError:
            number = float("nan")
        return (0, number, name) if number == number else (1, 0.0, name)

    order = sorted(range(len(names)), key=place)
    by_code = np.argsort(member, kind="stable")
    parts = np.split(by_code, np.cumsum(np.bincount(member, minlength=len(names)))[:-1])
    return Grouping(column, tuple(names[c] for c in order), tuple(parts[c] for c in order))


def _text(cell: Any) -> str | None:
    """Return a value as text, None for a missing one; whole numbers alike, stored as floats or not."""
    if cell is None or (isinstance(cell, float) and cell != cell):
        return None
    if type(cell).__name__ in ("NAType", "NaTType"):
        return None
    if isinstance(cell, float | np.floating) and float(cell).is_integer() and abs(float(cell)) < 1e15:
        return str(int(cell))
    try:
        return str(cell)
    except ValueError as error:  # Python writes no number of more than 4300 digits
        raise InputError(f"groups holds {quoted(cell)}; give such values as text.") from error


def equal_to_labels(groupings: Iterable[Grouping], labels: Places) -> tuple[str, ...]:
    """Warn of columns that group the rows as the labels do, a sentence a column."""
    n_labels = len(np.unique(labels))
    return tuple(
        f"Column {shown_column(column)!r} of groups groups the rows as the labels do: its "
        "p-values, bounds and diagrams mean nothing, for groups must be known before the labels are; "
        "leave it out."
        for column, _, parts in groupings
        if len(parts) == n_labels > 1 and all((labels[rows] == labels[rows[0]]).all() for rows in parts)
    )


def large_enough(grouping: Grouping, min_rows: int) -> tuple[list[tuple[Group, Places]], list[Skipped]]:
    """Split groups into those to look at and those that are too small, named with the reason."""
    column = shown_column(grouping.column)
    if len(grouping.values) == 1:
        value = shown_value(grouping.values[0]).strip("'")
        reason = f"all rows have the one value '{value}', so it is no group of its own"
        return [], [Skipped(f"column '{column}'", None, reason)]
    fewest = max(min_rows, FEWEST_ROWS)
    pairs = list(zip(grouping.values, grouping.rows, strict=True))
    kept = [(Group(grouping.column, value), rows) for value, rows in pairs if len(rows) >= fewest]
    small = [(value, len(rows)) for value, rows in pairs if len(rows) < fewest]
    small.sort(key=lambda each: -each[1])
    reason = f"fewer than {fewest} rows"
    named = small if len(small) <= _NAMED + 1 else small[:_NAMED]
    skipped = [Skipped(shown_group(grouping.column, value), rows, reason) for value, rows in named]
    if rest := small[len(named) :]:
        what = f"{len(rest):,} more groups of {column}"
        skipped.append(Skipped(what, sum(rows for _, rows in rest), f"{reason} each"))
    return kept, skipped
