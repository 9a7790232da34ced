"""Tables: CSV and Parquet."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Mapping
from functools import partial
from io import BufferedReader
from itertools import chain
from types import MappingProxyType
from typing import Any, TextIO

import narwhals as nw
import pandas as pd

from caltest._door import size_of
from caltest._memory import check_fits
from caltest._visible import quoted
from caltest.data.containers import check_columns, check_unique, chosen_columns, is_number, listed
from caltest.exceptions import InputError, Row
from caltest.files.content import Content, Roles, check_held, unread_note

_COPIES = 4.0  # of a CSV file's bytes that its table takes while it is read
_LONGEST_LINE = 2**24  # characters: names of a million classes
_NONE: Mapping[str, int] = MappingProxyType({})


def read_csv(file: BufferedReader, roles: Roles) -> Content:
    """Read a CSV file; groups stay the text that they are ("007", "1.50")."""
    size = size_of(file)
    check_fits(_COPIES * size, f"a CSV file of {size / 1e6:.0f} MB", "take fewer rows, or Parquet")
    _check_text(file)
    text = io.TextIOWrapper(file, encoding="utf-8-sig", newline="")
    try:
        header, swallowed = _checked_lines(text)
    finally:
        text.detach()
    file.seek(0)
    # Only an empty cell is missing: "NA" and "None" may be names of classes.
    frame = pd.read_csv(
        file,
        low_memory=False,
        keep_default_na=False,
        na_values=[""],
        dtype={name: str for name in roles.groups if name in header},
    )
    return from_frame(frame, roles, swallowed)


#: First bytes of what is called .csv and is none, and what to do with it.
_OTHERS = {
    b"\x1f\x8b": "is compressed with gzip; unpack it first",
    b"BZh": "is compressed with bzip2; unpack it first",
    b"\xfd7zXZ": "is compressed with xz; unpack it first",
    b"(\xb5/\xfd": "is compressed with zstd; unpack it first",
    b"PK\x03\x04": "is a zip archive, an Excel file or NPZ; unpack it, or rename it if it is .npz",
    b"PAR1": "is a Parquet file; rename it to .parquet",
    b"ARROW1": "is an Arrow file; rename it to .arrow",
    b"\x93NUMPY": "is a NumPy array; rename it to .npy",
    b"\xff\xfe": "is UTF-16 text, not UTF-8; save it as UTF-8",
    b"\xfe\xff": "is UTF-16 text, not UTF-8; save it as UTF-8",
}


def _check_text(file: BufferedReader) -> None:
    """Raise if a file begins as another format does."""
    start = file.read(8)
    file.seek(0)
    for first, advice in _OTHERS.items():
        if start.startswith(first):
            raise InputError(f"its content {advice}.")


def _checked_lines(text: TextIO) -> tuple[list[str], dict[str, int]]:
    """Go through a CSV file, and raise unless every row has a cell for every name in the header.

    Returns
    -------
    list of str
        The header.
    dict
        By name of a column with a cell that seems to hold further rows, the first such row.
    """
    lines, swallowed, row = _lines(text), dict[str, int](), 0
    try:
        header = next((cells for cells in csv.reader(line for _, line in lines) if cells), [])
        _check_header(header)
        for number, line in lines:
            if '"' not in line:  # as nearly all are, and to count commas is quick
                width, cells = line.count(",") + 1, list[str]()
            else:
                cells = next(csv.reader(chain((line,), (more for _, more in lines))))
                width = len(cells)
            if width != len(header):
                if not line.strip():
                    continue
                raise _wrong_width(number, width, len(header))
            for k, cell in enumerate(cells):
                # From a quote that is not closed up to another one in the same column, rows later.
                if (rows := len(cell.splitlines()) - 1) > 0 and cell.count(",") >= rows * (width - 1):
                    swallowed.setdefault(header[k] or f"Unnamed: {k}", row)  # as pandas calls it
            row += 1
    except csv.Error as error:
        raise InputError(f"the file is not valid CSV: {error}; write it anew.") from error
    return header, swallowed


def _lines(text: TextIO) -> Iterator[tuple[int, str]]:
    """Yield lines and their numbers, from 1; none of which is so long, or such, that no CSV has it."""
    for number, line in enumerate(iter(partial(text.readline, _LONGEST_LINE), ""), start=1):
        if len(line) == _LONGEST_LINE:
            raise InputError(
                f"line {number} is longer than {_LONGEST_LINE} characters; save a row a line."
            )
        if "\0" in line:
            raise InputError(
                f"line {number} holds a null character, so the file is not valid CSV; save it as UTF-8."
            )
        yield number, line


def _wrong_width(line: int, cells: int, names: int) -> InputError:
    found = f"line {line} has {cells} cell{'' if cells == 1 else 's'}, and the header has {names} names"
    if cells < names:
        return InputError(f"{found}; complete it, or write the file anew if it is cut off there.")
    return InputError(f"{found}; name every column, or put text that holds commas in quotes.")


def _check_header(header: list[str]) -> None:
    """Raise if the names of a CSV file's columns look like something else."""
    if len(header) == 1 and (mark := next((c for c in ";\t|" if c in header[0]), None)):
        raise InputError(
            f"the header has no comma but {mark!r}, which seems to separate the columns; "
            "save the file with commas."
        )
    if header and all(is_number(cell) for cell in header):
        raise InputError(
            f"the first line looks like numbers ({listed(header, 4)}), not names of columns; "
            "add a header, for instance cat,dog,label."
        )
    check_unique(header)


def read_parquet(file: BufferedReader, roles: Roles) -> Content:
    """Read a Parquet file, with pyarrow."""
    try:
        import pyarrow.parquet as pq
    except ImportError as error:
        raise InputError(
            'reading Parquet needs pyarrow; install it with pip install "caltest[parquet]".'
        ) from error
    with pq.ParquetFile(file) as parquet:
        found = parquet.metadata
        check_held(found.num_rows, found.num_columns)
        size = sum(found.row_group(k).total_byte_size for k in range(found.num_row_groups))
        check_fits(2.0 * size, f"a table of {size / 1e6:.0f} MB", "take fewer rows or columns")
        table = parquet.read()
    table.validate(full=True)
    check_unique(table.column_names)
    return from_frame(table, roles)


def from_frame(native: Any, roles: Roles, swallowed: Mapping[str, int] = _NONE) -> Content:
    """Say which columns of a data frame, or of a part of its rows, are what.

    Parameters
    ----------
    native
        A frame that narwhals knows.
    roles
        What is asked for.
    swallowed
        By name of a column with a cell that seems to hold further rows, the first such row.
    """
    frame: nw.DataFrame[Any] = nw.from_native(native, eager_only=True)
    names = frame.columns
    truth = roles.found_label(names, "column")
    roles.check_groups(names, truth, "column")
    others = [name for name in names if name != truth and name not in roles.groups]
    chosen = others if roles.columns is None else chosen_columns(others, roles.columns)
    unread = [name for name in others if name not in chosen]
    for name, row in swallowed.items():
        if name not in unread:
            raise InputError(
                "the cell of column {column} at {row} seems to hold further rows, as if a quote were "
                "not closed; correct it, or take the line breaks out of the cell.",
                column=quoted(name),
                row=row,
            )
    check_columns(frame.select(chosen), given=roles.columns is not None)
    return Content(
        frame.select(chosen),
        None if truth is None else frame.get_column(truth),
        _groups(frame, roles),
        (*unread_note("columns", unread), *_swallowed_notes(swallowed)),
        f"probs were read from {listed(chosen)}"
        if truth is None
        else f"labels were read from column {quoted(truth)}, probs from {listed(chosen)}",
    )


def _swallowed_notes(swallowed: Mapping[str, int]) -> tuple[str, ...]:
    return tuple(
        f"A cell of column {quoted(name)} seems to hold further rows, the first in {Row(row)}: if a "
        "quote is not closed there, rows are missing."
        for name, row in swallowed.items()
    )


def _groups(frame: nw.DataFrame[Any], roles: Roles) -> pd.DataFrame:
    """Return the group columns as they are: whole numbers beside a missing cell stay whole."""
    columns = {name: frame.get_column(name).to_list() for name in roles.groups}
    return pd.DataFrame(
        {name: pd.Series(cells, dtype=object) for name, cells in columns.items()},
        index=pd.RangeIndex(len(frame)),
    )
