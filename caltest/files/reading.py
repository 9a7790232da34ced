"""`read` and `read_with_groups`: who reads a file, and in whose name it fails."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pandas as pd

from caltest._arguments import arguments, names
from caltest.data import Sample
from caltest.exceptions import InputError
from caltest.files.arrays import read_npy, read_npz
from caltest.files.tables import read_csv, read_parquet
from caltest.files.wanted import Reader, Wanted, named, reason


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
    >>> sample.predictions.classes, groups["station"].tolist()
    (('dry', 'rain'), ['007', '012'])
    """
    path = Path(path)
    name = path.name or str(path)
    wanted = Wanted(
        None if label is None else str(label),
        None if columns is None else named(columns),
        named(groups),
    )
    try:
        return _reader(path)(path, wanted)
    except InputError as error:
        raise InputError(f"{name}: {error}") from error
    except UnicodeDecodeError as error:
        raise InputError(f"{name}: the file is not UTF-8 text; save it as UTF-8.") from error
    except OSError as error:
        why = error.strerror or reason(error)
        raise InputError(
            f"{name}: the file cannot be read: {why}; check it and its permissions."
        ) from error


def _reader(path: Path) -> Reader:
    """Choose by suffix who reads the file, if there is one."""
    readers: dict[str, Reader] = {
        ".csv": read_csv,
        ".parquet": read_parquet,
        ".pq": read_parquet,
        ".npz": read_npz,
        ".npy": read_npy,
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
