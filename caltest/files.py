"""Predictions and labels from a file: CSV, Parquet, NPZ or NPY."""

from __future__ import annotations

import csv
import re
import zipfile
import zlib
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import IO, Any

import narwhals as nw
import numpy as np
import pandas as pd

from caltest.data import Sample, sample
from caltest.data.columns import (
    check_columns,
    check_unique,
    chosen_columns,
    chosen_label,
    chosen_probs,
    is_number,
)
from caltest.data.containers import Table, listed, read_table, shape_of
from caltest.exceptions import InputError


def read(
    path: str | Path, label: str | int | None = None, *, columns: Sequence[str] | None = None
) -> Sample:
    r"""Read predictions and the labels that came true from a file, and check them.

    Parameters
    ----------
    path
        ``.csv`` (commas, UTF-8, a header), ``.parquet`` or ``.pq``: one column of labels, the other
        columns probabilities, named after the classes; a single one is P(class 1).
        ``.npz``: an array ``probs`` (or ``probabilities``, ``p``, ``y_prob``), an array of labels,
        and optionally ``classes``. ``.npy``: one table with a column of labels.
    label
        Name of the labels, the column's index for ``.npy``. Default: the one of ``label``,
        ``labels``, ``y``, ``y_true``, ``target``, ``class`` that there is, in any case.
    columns
        Names of the probability columns of CSV and Parquet, in class order. Default: all but the
        label; no column is left out silently.

    Returns
    -------
    Sample
        As :func:`caltest.data.sample` makes it.

    Raises
    ------
    InputError
        If the file cannot be read or its content is wrong; the message starts with the file's name.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from caltest.files import read
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder, "weather.csv")
    ...     _ = path.write_text("dry,rain,label\n0.25,0.75,rain\n0.5,0.5,dry\n")
    ...     read(path).labels
    array([1, 0])
    """
    path = Path(path)
    name = path.name or str(path)
    try:
        reader = _reader(path)
        return reader(path, None if label is None else str(label), columns)
    except InputError as error:
        raise InputError(f"{name}: {error}") from error
    except UnicodeDecodeError as error:
        raise InputError(f"{name}: the file is not UTF-8 text; save it as UTF-8.") from error
    except OSError as error:
        reason = error.strerror or _reason(error)
        raise InputError(
            f"{name}: the file cannot be read: {reason}; check it and its permissions."
        ) from error


_Reader = Callable[[Path, "str | None", "Sequence[str] | None"], Sample]


def _reader(path: Path) -> _Reader:
    """Choose by suffix who reads the file, if there is one."""
    readers: dict[str, _Reader] = {
        ".csv": _read_csv,
        ".parquet": _read_parquet,
        ".pq": _read_parquet,
        ".npz": _read_npz,
        ".npy": _read_npy,
    }
    if not path.exists():
        raise InputError("there is no such file; check the path.")
    if path.is_dir():
        raise InputError("this is a directory; give one of the files in it.")
    if path.suffix.lower() not in readers:
        raise InputError(
            f"the suffix {path.suffix!r} is none that can be read; convert the file to "
            f"{', '.join(readers)}."
        )
    if path.is_file() and path.stat().st_size == 0:
        raise InputError("the file is empty; write it anew.")
    return readers[path.suffix.lower()]


def _read_csv(path: Path, label: str | None, columns: Sequence[str] | None) -> Sample:
    header = _header(path)
    try:
        # Only an empty cell is missing: "NA" and "None" may be names of classes.
        frame = pd.read_csv(path, low_memory=False, keep_default_na=False, na_values=[""])
    except (pd.errors.ParserError, pd.errors.EmptyDataError) as error:
        raise InputError(f"the file is not valid CSV: {_reason(error)}; write it anew.") from error
    if not isinstance(frame.index, pd.RangeIndex):
        raise InputError(
            f"the header has {len(header)} names, but the first row has more cells; name every column."
        )
    return _from_frame(frame, label, columns)


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


def _read_parquet(path: Path, label: str | None, columns: Sequence[str] | None) -> Sample:
    try:
        import pyarrow as pa
        import pyarrow.parquet as pq
    except ImportError as error:
        raise InputError(
            'reading Parquet needs pyarrow; install it with pip install "caltest[parquet]".'
        ) from error
    try:
        with pq.ParquetFile(path) as file:
            table = file.read()
    except pa.ArrowException as error:
        raise InputError(f"the file is not valid Parquet: {_reason(error)}; save it anew.") from error
    check_unique(table.column_names)
    return _from_frame(table, label, columns)


def _from_frame(native: Any, label: str | None, columns: Sequence[str] | None) -> Sample:
    frame: nw.DataFrame[Any] = nw.from_native(native, eager_only=True)
    truth = chosen_label(frame.columns, label, "column")
    others = [name for name in frame.columns if name != truth]
    if columns is None:
        chosen, unread = others, []
        check_columns(frame.select(others))
    else:
        chosen = chosen_columns(others, columns)
        unread = [name for name in others if name not in chosen]
    try:
        checked = sample(frame.select(chosen), frame.get_column(truth))
    except InputError as error:
        raise InputError(
            f"{str(error).removesuffix('.')}; labels were read from column {truth!r}, probs from "
            f"{listed(chosen)}."
        ) from error
    return _noting_unread(checked, "columns", unread)


def _read_npz(path: Path, label: str | None, columns: Sequence[str] | None) -> Sample:
    with path.open("rb") as file:
        archive = _load(file, columns)
        if isinstance(archive, np.ndarray):
            raise InputError("this is a single array, not an NPZ archive; rename it to .npy.")
        names = list(archive.files)
        key = chosen_probs(names)
        truth = chosen_label([x for x in names if x not in (key, "classes")], label, "array")
        table, labels = read_table(_array(archive, key), "probs"), _array(archive, truth)
        if "classes" in names:
            table = _with_classes(table, _array(archive, "classes"))
    unread = [name for name in names if name not in (key, truth, "classes")]
    return _noting_unread(sample(table, labels), "arrays", unread)


def _with_classes(table: Table, classes: np.ndarray) -> Table:
    width = table.values.shape[1] if table.values.ndim > 1 else 1
    if classes.shape != (max(width, 2),):
        raise InputError(
            f"classes has shape {shape_of(classes)} and probs has {width} columns; "
            "give one name for every class."
        )
    return replace(table, names=tuple(str(name) for name in classes.tolist()))


def _read_npy(path: Path, label: str | None, columns: Sequence[str] | None) -> Sample:
    with path.open("rb") as file:
        table = _load(file, columns)
    if not isinstance(table, np.ndarray):
        raise InputError("this is an NPZ archive, not a single array; rename it to .npz.")
    if table.ndim != 2 or table.shape[1] < 2:
        raise InputError(
            f"the array has shape {shape_of(table)}, but must be a table of probabilities and one "
            "column of labels; or save probs and labels in one .npz file."
        )
    width = table.shape[1]
    if label is None:
        raise InputError(
            f"the table has {width} columns without names; say which holds the labels, with "
            "--label (label=… in Python), for instance --label=-1 for the last."
        )
    if not re.fullmatch(r"-?\d+", label) or not -width <= int(label) < width:
        raise InputError(
            f"label is {label!r}, but must be the index of one of the {width} columns, from 0 to "
            f"{width - 1}, or -1 for the last."
        )
    index = int(label) % width
    return sample(np.delete(table, index, axis=1), table[:, index])


def _load(file: IO[bytes], columns: Sequence[str] | None) -> Any:
    if columns is not None:
        raise InputError("columns is for CSV and Parquet; leave it out.")
    try:
        return np.load(file, allow_pickle=False)
    except (ValueError, EOFError, zipfile.BadZipFile) as error:
        raise InputError(f"the file is not valid NumPy: {_reason(error)}; save it anew.") from error


def _array(archive: Any, name: str) -> np.ndarray:
    try:
        return np.asarray(archive[name])
    except (ValueError, EOFError, zipfile.BadZipFile, zlib.error) as error:
        raise InputError(
            f"the array {name!r} cannot be read: {_reason(error)}; save it anew."
        ) from error


def _reason(error: Exception) -> str:
    """Make one clause of a library's message."""
    return " ".join(str(error).split()).removesuffix(".").replace(". ", ": ")


def _noting_unread(checked: Sample, kind: str, unread: Sequence[str]) -> Sample:
    if not unread:
        return checked
    notes = (*checked.predictions.notes, f"{kind.capitalize()} not read: {listed(unread)}.")
    return Sample(replace(checked.predictions, notes=notes), checked.labels)
