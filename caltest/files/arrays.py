"""Arrays: NPZ and NPY."""

from __future__ import annotations

import math
from dataclasses import replace
from io import BufferedReader

import numpy as np
import pandas as pd

from caltest._arguments import whole_number
from caltest._door import reading, size_of
from caltest._visible import quoted
from caltest.data.containers import Table, check_unique, chosen_probs, read_table, shape_of
from caltest.exceptions import InputError
from caltest.files.content import Content, Roles, check_held, unread_note
from caltest.files.npy import MAGIC, Header, read_array, read_header
from caltest.files.npz import Archive

_ZIP = b"PK"


def read_npz(file: BufferedReader, roles: Roles) -> Content:
    """Read an archive of arrays."""
    if _begins_with(file, MAGIC):
        raise InputError("this is a single array, not an NPZ archive; rename it to .npy.")
    _check_no_columns(roles)
    with Archive(file) as archive:
        names = archive.names
        key = roles.found(names, chosen_probs)
        others = [name for name in names if name not in (key, "classes")]
        truth = roles.found_label(others, "array")
        roles.check_groups([name for name in names if name != key], truth, "array")
        shape = archive.header(key).shape
        check_held(shape[0] if shape else 1, math.prod(shape[1:]))
        table = read_table(archive.array(key), "probs")
        if "classes" in names:
            table = _with_classes(table, archive.array("classes"))
        labels = None if truth is None else archive.array(truth)
        groups = {name: archive.array(name) for name in roles.groups}
    unread = [name for name in others if name != truth and name not in groups]
    return Content(table, labels, _frame(groups, len(table.values)), unread_note("arrays", unread))


def read_npy(file: BufferedReader, roles: Roles) -> Content:
    """Read a single array, a table with a column of labels."""
    if roles.groups:
        raise InputError(
            f"an array has no names, so there is no column {quoted(roles.groups[0])} to group by; "
            "save probs, labels and groups as CSV, Parquet or NPZ."
        )
    header = array_header(file, roles)
    if roles.may_lack_labels:
        _check_held(header)
        return Content(read_array(file, header), None, pd.DataFrame())
    check_table(header)
    index = column_of_labels(roles.label, header.shape[1])
    _check_held(header)
    table = read_array(file, header)
    groups = _frame({}, len(table))
    return Content(np.delete(table, index, axis=1), table[:, index], groups)


def array_header(file: BufferedReader, roles: Roles) -> Header:
    """Read what the file of a single array announces."""
    if _begins_with(file, _ZIP):
        raise InputError("this is an NPZ archive, not a single array; rename it to .npz.")
    _check_no_columns(roles)
    return read_header(file, size_of(file))


def check_table(header: Header) -> None:
    """Raise unless an array is a table of two columns or more."""
    if len(header.shape) != 2 or header.shape[1] < 2:
        raise InputError(
            f"the array has shape {header.shape}, but must be a table of probabilities and one column "
            "of labels; or save probs and labels in one .npz file."
        )


def column_of_labels(label: str | None, width: int) -> int:
    """Return the index of the column of labels."""
    if label is None:
        raise InputError(
            f"the table has {width} columns without names; say which holds the labels, with "
            "--label (label=… in Python), for instance --label=-1 for the last."
        )
    number = whole_number(label.removeprefix("-"))
    index = None if number is None else -number if label.startswith("-") else number
    if index is None or not -width <= index < width:
        raise InputError(
            f"label is {quoted(label)}, but must be the index of one of the {width} columns, from 0 to "
            f"{width - 1}, or -1 for the last."
        )
    return index % width


def _begins_with(file: BufferedReader, bytes_: bytes) -> bool:
    found = file.read(len(bytes_)) == bytes_
    file.seek(0)
    return found


def _check_no_columns(roles: Roles) -> None:
    if roles.columns is not None:
        raise InputError("columns is for CSV and Parquet; leave it out.")


def _check_held(header: Header) -> None:
    rows = header.shape[0] if header.shape else 1
    check_held(rows, math.prod(header.shape[1:]))


def _frame(groups: dict[str, np.ndarray], rows: int) -> pd.DataFrame:
    for name, values in groups.items():
        if values.shape != (rows,):
            raise InputError(
                f"the array {quoted(name)} has shape {shape_of(values)}, and there are {rows} rows; a "
                f"group needs one value a row, an array of shape ({rows},)."
            )
    with reading("the groups cannot be read"):
        return pd.DataFrame(groups, index=pd.RangeIndex(rows))


def _with_classes(table: Table, classes: np.ndarray) -> Table:
    width = table.values.shape[1] if table.values.ndim > 1 else 1
    if classes.shape != (max(width, 2),):
        raise InputError(
            f"classes has shape {shape_of(classes)} and probs has {width} columns; "
            "give one name for every class."
        )
    names = tuple(str(name) for name in classes.tolist())
    check_unique(names, "classes")
    return replace(table, names=names)
