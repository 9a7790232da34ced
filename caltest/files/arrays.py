"""Arrays: NPZ and NPY."""

from __future__ import annotations

import re
import zipfile
import zlib
from dataclasses import replace
from pathlib import Path
from typing import IO, Any, Literal

import numpy as np
import pandas as pd

from caltest.data import Sample, sample
from caltest.data.columns import chosen_label, chosen_probs
from caltest.data.containers import Table, read_table, shape_of
from caltest.exceptions import InputError
from caltest.files.wanted import Read, Wanted, check_held, noting_unread, reason


def read_npz(path: Path, wanted: Wanted) -> Read:
    """Read an archive of arrays."""
    with path.open("rb") as file:
        archive = _load(file, wanted)
        if isinstance(archive, np.ndarray):
            raise InputError("this is a single array, not an NPZ archive; rename it to .npy.")
        names = list(archive.files)
        key = wanted.found(names, chosen_probs)
        others = [name for name in names if name not in (key, "classes")]
        truth = wanted.found(others, lambda some: chosen_label(some, wanted.label, "array"))
        wanted.check_groups([name for name in names if name != key], truth, "array")
        table, labels = read_table(_array(archive, key), "probs"), _array(archive, truth)
        if "classes" in names:
            table = _with_classes(table, _array(archive, "classes"))
        groups = {name: _array(archive, name) for name in wanted.groups}
    unread = [name for name in others if name != truth and name not in groups]
    checked = noting_unread(sample(table, labels), "arrays", unread)
    return checked, _frame(groups, checked)


def _frame(groups: dict[str, np.ndarray], checked: Sample) -> pd.DataFrame:
    rows = checked.predictions.n_samples
    for name, values in groups.items():
        if values.shape != (rows,):
            raise InputError(
                f"the array {name!r} has shape {shape_of(values)}, and there are {rows} rows; a group "
                f"needs one value a row, an array of shape ({rows},)."
            )
    return pd.DataFrame(groups, index=pd.RangeIndex(rows))


def _with_classes(table: Table, classes: np.ndarray) -> Table:
    width = table.values.shape[1] if table.values.ndim > 1 else 1
    if classes.shape != (max(width, 2),):
        raise InputError(
            f"classes has shape {shape_of(classes)} and probs has {width} columns; "
            "give one name for every class."
        )
    return replace(table, names=tuple(str(name) for name in classes.tolist()))


def read_npy(path: Path, wanted: Wanted) -> Read:
    """Read a single array, a table with a column of labels."""
    if wanted.groups:
        raise InputError(
            f"an array has no names, so there is no column {wanted.groups[0]!r} to group by; save "
            "probs, labels and groups as CSV, Parquet or NPZ."
        )
    table = load_array(path, wanted)
    index = column_of_labels(wanted.label, table.shape[1])
    checked = sample(np.delete(table, index, axis=1), table[:, index])
    return checked, _frame({}, checked)


def load_array(path: Path, wanted: Wanted, *, mapped: bool = False) -> np.ndarray:
    """Load a single array, a table of at least two columns, or leave it mapped into memory."""
    table = _load(path, wanted, "r")
    if not isinstance(table, np.ndarray):
        table.close()
        raise InputError("this is an NPZ archive, not a single array; rename it to .npz.")
    if table.ndim != 2 or table.shape[1] < 2:
        raise InputError(
            f"the array has shape {shape_of(table)}, but must be a table of probabilities and one "
            "column of labels; or save probs and labels in one .npz file."
        )
    if mapped:
        return table
    check_held(*table.shape)
    return np.array(table)


def column_of_labels(label: str | None, width: int) -> int:
    """Return the index of the column of labels."""
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
    return int(label) % width


def _load(file: IO[bytes] | Path, wanted: Wanted, mmap_mode: Literal["r"] | None = None) -> Any:
    if wanted.columns is not None:
        raise InputError("columns is for CSV and Parquet; leave it out.")
    try:
        return np.load(file, allow_pickle=False, mmap_mode=mmap_mode)
    except (ValueError, EOFError, zipfile.BadZipFile) as error:
        raise InputError(f"the file is not valid NumPy: {reason(error)}; save it anew.") from error


def _array(archive: Any, name: str) -> np.ndarray:
    try:
        return np.asarray(archive[name])
    except (ValueError, EOFError, zipfile.BadZipFile, zlib.error) as error:
        raise InputError(
            f"the array {name!r} cannot be read: {reason(error)}; save it anew."
        ) from error
