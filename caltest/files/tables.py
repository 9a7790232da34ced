"""Tables: CSV and Parquet."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Any

import narwhals as nw
import pandas as pd

from caltest.data import sample
from caltest.data.columns import (
    check_columns,
    check_unique,
    chosen_columns,
    chosen_label,
    is_number,
)
from caltest.data.containers import listed
from caltest.exceptions import InputError
from caltest.files.wanted import Read, Wanted, check_held, noting_unread, reason


def read_csv(path: Path, wanted: Wanted) -> Read:
    """Read a CSV file; groups stay the text that they are ("007", "1.50")."""
    header = _header(path)
    try:
        # Only an empty cell is missing: "NA" and "None" may be names of classes.
        frame = pd.read_csv(
            path,
            low_memory=False,
            keep_default_na=False,
            na_values=[""],
            dtype={name: str for name in wanted.groups if name in header},
        )
    except (pd.errors.ParserError, pd.errors.EmptyDataError) as error:
        raise InputError(f"the file is not valid CSV: {reason(error)}; write it anew.") from error
    if not isinstance(frame.index, pd.RangeIndex):
        raise InputError(
            f"the header has {len(header)} names, but the first row has more cells; name every column."
        )
    return from_frame(frame, wanted)


def _header(path: Path) -> list[str]:
    """Read the names of a CSV file's columns, as written."""
    with path.open(newline="", encoding="utf-8-sig") as lines:
        try:
            header = next((cells for cells in csv.reader(lines) if cells), [])
        except csv.Error as error:
            raise InputError(f"the file is not valid CSV: {error}; write it anew.") from error
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
    return header


def read_parquet(path: Path, wanted: Wanted) -> Read:
    """Read a Parquet file, with pyarrow."""
    try:
        import pyarrow as pa
        import pyarrow.parquet as pq
    except ImportError as error:
        raise InputError(
            'reading Parquet needs pyarrow; install it with pip install "caltest[parquet]".'
        ) from error
    try:
        with pq.ParquetFile(path) as file:
            check_held(file.metadata.num_rows, file.metadata.num_columns)
            table = file.read()
    except pa.ArrowException as error:
        raise InputError(f"the file is not valid Parquet: {reason(error)}; save it anew.") from error
    check_unique(table.column_names)
    return from_frame(table, wanted)


def from_frame(native: Any, wanted: Wanted, *, part: bool = False) -> Read:
    """Check a data frame, or a part of its rows: which columns are what, and what they hold."""
    frame: nw.DataFrame[Any] = nw.from_native(native, eager_only=True)
    names = frame.columns
    truth = wanted.found(names, lambda some: chosen_label(some, wanted.label, "column"))
    wanted.check_groups(names, truth, "column")
    others = [name for name in names if name != truth and name not in wanted.groups]
    if wanted.columns is None:
        chosen, unread = others, []
        check_columns(frame.select(others))
    else:
        chosen = chosen_columns(others, wanted.columns)
        unread = [name for name in others if name not in chosen]
    try:
        checked = sample(frame.select(chosen), frame.get_column(truth), part=part)
    except InputError as error:
        raise InputError(
            f"{str(error).removesuffix('.')}; labels were read from column {truth!r}, probs from "
            f"{listed(chosen)}."
        ) from error
    return noting_unread(checked, "columns", unread), _groups(frame, wanted)


def _groups(frame: nw.DataFrame[Any], wanted: Wanted) -> pd.DataFrame:
    """Return the group columns as they are: whole numbers beside a missing cell stay whole."""
    columns = {name: frame.get_column(name).to_list() for name in wanted.groups}
    return pd.DataFrame(
        {name: pd.Series(cells, dtype=object) for name, cells in columns.items()},
        index=pd.RangeIndex(len(frame)),
    )
