"""`read` and `read_with_groups`: who reads a file, and in whose name it fails."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pandas as pd

from caltest._arguments import arguments, names
from caltest._door import called, check_file, named, opened, size_of
from caltest._visible import quoted
from caltest.data import Rows, Sample
from caltest.exceptions import InputError
from caltest.files.arrays import read_npy, read_npz
from caltest.files.content import Content, Reader, Roles
from caltest.files.tables import read_csv, read_parquet

#: By suffix, what a file should be and who reads it.
_READERS: dict[str, tuple[str, Reader]] = {
    ".csv": ("CSV", read_csv),
    ".parquet": ("Parquet", read_parquet),
    ".pq": ("Parquet", read_parquet),
    ".npz": ("NumPy", read_npz),
    ".npy": ("NumPy", read_npy),
}


@arguments()
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
    return read_with_groups(path, label, columns=columns)[0]


@arguments(groups=names)
def read_with_groups(
    path: str | Path,
    label: str | int | None = None,
    *,
    columns: Sequence[str] | None = None,
    groups: Sequence[str] = (),
) -> tuple[Sample, pd.DataFrame]:
    r"""Read predictions, labels and columns that group the rows from one file.

    Parameters
    ----------
    path, label, columns
        As of :func:`read`.
    groups
        Names of columns (arrays of an ``.npz`` file, of shape (n,)) whose values group the rows. They
        are no probabilities. Default none.

    Returns
    -------
    sample : Sample
        As :func:`caltest.data.sample` makes it.
    groups : pandas.DataFrame
        (n, number of groups) the columns asked for, in that order. Of a CSV file, cells are text as it
        is written ("007" is not "7"), and an empty one is missing.

    Raises
    ------
    InputError
        If the file cannot be read or its content is wrong; the message starts with the file's name.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from caltest.files import read_with_groups
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder, "weather.csv")
    ...     _ = path.write_text("dry,rain,label,station\n0.25,0.75,rain,007\n0.5,0.5,dry,012\n")
    ...     sample, groups = read_with_groups(path, groups=["station"])
    >>> sample.rows.classes, groups["station"].tolist()
    (('dry', 'rain'), ['007', '012'])
    """
    with named(called(path)):
        content = _read(path, Roles.of(label, columns, groups))
        return content.checked(), content.groups


@arguments()
def read_pilot(
    path: str | Path, label: str | int | None = None, *, columns: Sequence[str] | None = None
) -> Sample | Rows:
    r"""Read predictions, and the labels if there are any.

    Parameters
    ----------
    path, label, columns
        As of :func:`read`. Only a label that is named has to be there.

    Returns
    -------
    Sample or Predictions
        Predictions alone, if the file has no labels.

    Raises
    ------
    InputError
        If the file cannot be read or its content is wrong; the message starts with the file's name.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from caltest.files import read_pilot
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder, "weather.csv")
    ...     _ = path.write_text("dry,rain\n0.25,0.75\n0.5,0.5\n")
    ...     read_pilot(path).classes
    ('dry', 'rain')
    """
    with named(called(path)):
        content = _read(path, Roles.of(label, columns, needs_labels=False))
        return content.checked_predictions() if content.labels is None else content.checked()


def _read(path: str | Path, roles: Roles) -> Content:
    """Let the reader of the file's suffix read it."""
    check_file(path)
    suffix = Path(path).suffix
    if suffix.lower() not in _READERS:
        raise InputError(
            f"the suffix {quoted(suffix)} is none that can be read; convert the file to "
            f"{', '.join(_READERS)}."
        )
    kind, reader = _READERS[suffix.lower()]
    with opened(path, kind) as file:
        if size_of(file) == 0:
            raise InputError("the file is empty; write it anew.")
        return reader(file, roles)
