"""`read` and `scan`: who reads a file, whole or a block at a time, and in whose name it fails."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from caltest._arguments import arguments, flag, name_or_place, names, texts_by_name
from caltest._arguments import path as path_of
from caltest._visible import quoted
from caltest.data import Rows, Sample, sample
from caltest.data.containers import is_framed, read_table
from caltest.exceptions import Argument, InputError
from caltest.files import places
from caltest.files.arrays import read_npy, read_npz, table_header
from caltest.files.columns import Content, Roles, check_there
from caltest.files.formats import FORMATS
from caltest.files.places import Place
from caltest.files.stored import NUMPY, Stored, StoredArrays, StoredFile, as_texts, stored_table

if TYPE_CHECKING:
    import pandas as pd

_ARRAYS = {".npz": read_npz, ".npy": read_npy}


@arguments(
    groups=names, weights=name_or_place, clusters=name_or_place, where=texts_by_name, truth=path_of
)
def read(
    path: str | Path,
    label: str | int | None = None,
    *,
    columns: Sequence[str] | Mapping[str, Any] | None = None,
    groups: Sequence[str] = (),
    weights: str | None = None,
    clusters: str | None = None,
    rounding: float | None = None,
    logits: bool = False,
    truth: str | Path | None = None,
    where: Mapping[str, str] | None = None,
) -> Sample:
    r"""Read predictions and observed labels from a file, and check them.

    Parameters
    ----------
    path
        A table: ``.csv`` (commas, UTF-8, a header), ``.parquet`` or ``.pq``, ``.arrow``,
        ``.feather`` or ``.ipc``, ``.jsonl`` or ``.ndjson`` (an object per line), or a directory of such
        files of one kind, or a pattern of their names (``"day=*/*.parquet"``), in the order of their
        names. URLs that pyarrow knows (s3, gs, abfs, hdfs), or fsspec, are paths too. It has one
        column of labels, and its other columns are probabilities, named after the classes; a single
        one is P(class 1).
        Or ``.npz``: an array ``probs`` (or ``probabilities``, ``p``, ``y_prob``), an array of labels,
        and optionally ``classes``. Or ``.npy``: one array with a column of labels.
    label
        Name of the labels, the column's index for ``.npy``. Default: the one of ``label``,
        ``labels``, ``y``, ``y_true``, ``target``, ``class`` that there is, in any case.
    columns
        Names of the probability columns of a table, in class order. Default: all but the label and the
        groups; no column is left out silently. Where the outcome is a number, what the columns state
        of it: ``{"mean": "forecast", "sd": "error"}`` or ``{"mean": …, "variance": …}``, normal
        distributions; or ``{"quantiles": {"low": 0.05, "high": 0.95}}``, the level of each column, or
        ``{"quantiles": "q*"}``, columns such as "q0.05", whose names have the level for the star; or
        ``{"members": "sample_"}``, all columns whose names begin so, members of an ensemble in any
        order. The label is then the column of outcomes.
    groups
        Names of columns that group the rows, and hold no probabilities; :func:`read_with_groups`
        returns them. Default none.
    weights
        Name of the column of weights, see :func:`caltest.data.sample`. Default None: all rows have
        equal weight.
    clusters
        Name of the column of clusters, see :func:`caltest.data.sample`. Default None: rows are
        independent.
    rounding, logits
        As in :func:`caltest.data.sample`. The array of logits of an ``.npz`` file has "logit" in its
        name.
    truth
        If the file is the long table of a forecast hub, with the columns ``output_type``,
        ``output_type_id`` and ``value`` (hubverse): the table of what was observed. A row of the
        sample is a task, that is what all other columns say but ``model_id``; groups, weights and
        clusters are columns of these. Its outcome is found by the columns that both tables have, in
        the column ``label``, by default ``observation`` or ``oracle_value``. Quantiles, samples, cdf
        and pmf are read. Default None: rows of the file have their own labels.
    where
        Which rows of such a table: ``{"output_type": "quantile", "target": "wk inc flu hosp"}``. There
        must be one output type, target and model left. Default None: all rows.

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
    with places.named(places.called(path)):
        roles = Roles.of(label, columns, groups, weights=weights, clusters=clusters, logits=logits)
        return _content(path, roles, truth, where).checked(rounding=rounding)


@arguments(
    groups=names,
    weights=name_or_place,
    clusters=name_or_place,
    needs_labels=flag,
    part=flag,
    where=texts_by_name,
    truth=path_of,
)
def read_with_groups(
    path: str | Path,
    label: str | int | None = None,
    *,
    columns: Sequence[str] | Mapping[str, Any] | None = None,
    groups: Sequence[str] = (),
    weights: str | None = None,
    clusters: str | None = None,
    rounding: float | None = None,
    logits: bool = False,
    needs_labels: bool = True,
    part: bool = False,
    truth: str | Path | None = None,
    where: Mapping[str, str] | None = None,
) -> tuple[Sample | Rows, pd.DataFrame]:
    r"""Read predictions, labels and grouping columns from one file.

    Parameters
    ----------
    path, label, columns
        As in :func:`read`.
    groups
        Names of columns (arrays of an ``.npz`` file, of shape (n,)) whose values group the rows. They
        are no probabilities. Default none.
    weights, clusters, rounding, logits, truth, where
        As in :func:`read`.
    needs_labels
        Whether the file must have labels. Default True.
    part
        Whether the rows are some of many, which one alone may be. Default False.

    Returns
    -------
    sample : Sample or Rows
        As :func:`caltest.data.sample` makes it; predictions alone, if the file has no labels.
    groups : pandas.DataFrame
        (n, number of groups) the columns asked for, in that order. Of a CSV file, cells are text as it
        is written ("007" is not "7"), and an empty one is missing. ``attrs["event"]`` is the name of
        the one column of probabilities, if it is one.

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
    with places.named(places.called(path)):
        roles = Roles.of(label, columns, groups, needs_labels, weights, clusters, logits)
        content = _content(path, roles, truth, where)
        alone = content.labels is None
        found = (
            content.checked_predictions() if alone else content.checked(rounding=rounding, part=part)
        )
    n = (found if isinstance(found, Rows) else found.rows).n_samples
    import pandas as pd

    asked = Roles.of(label, columns, groups).groups
    columns_of = {name: pd.Series(content.groups[name], dtype=object) for name in asked}
    frame = pd.DataFrame(columns_of, index=pd.RangeIndex(n))
    if content.event is not None:
        frame.attrs["event"] = content.event
    return found, frame


@arguments(groups=names, weights=name_or_place)
def read_pilot(
    path: str | Path,
    label: str | int | None = None,
    *,
    columns: Sequence[str] | Mapping[str, Any] | None = None,
    groups: Sequence[str] = (),
    weights: str | None = None,
    logits: bool = False,
) -> Sample | Rows:
    r"""Read predictions from a file, with labels if it has any: the pilot data of a plan.

    Parameters
    ----------
    path, label, columns, groups, weights, logits
        As in :func:`read`. The file may have no labels, unless ``label`` is given.

    Returns
    -------
    Sample or Rows
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
    with places.named(places.called(path)):
        content = _content(path, Roles.of(label, columns, groups, False, weights, logits=logits))
        return content.checked_predictions() if content.labels is None else content.checked()


def read_late(
    path: str | Path, label: str, ids: str, columns: Any, groups: Sequence[str], **how: Any
) -> tuple[Rows | None, list[str], list[Any], dict[str, list[Any]], str | None]:
    """Read rows whose outcomes may be missing: predictions, names, outcomes, and columns of groups.

    Last comes the name of the one column of predictions, if it is one. There are no predictions, None,
    where the file has none of their columns: outcomes alone.
    """
    with places.named(places.called(path)):
        table = as_texts(places.located(path))
        for name, what in ((label, "labels"), (ids, "ids")):
            check_there(name, table.column_names, "column", f" of {what}")
        others = set(columns or set(table.column_names) - {label, ids, *groups})
        outcomes = [_whole(cell) for cell in table.column(label).to_pylist()]
        if not others & set(table.column_names):
            return None, table.column(ids).to_pylist(), outcomes, {}, None
        content = _content(path, Roles.of(label, columns, (*groups, ids), **how))
        found = {name: content.groups[name] for name in groups}
        rows = content.checked_predictions(part=True)
        return rows, table.column(ids).to_pylist(), outcomes, found, content.event


def _whole(cell: str | None) -> Any:
    """Return a cell of labels: a whole number as such, None where it is empty."""
    return int(float(cell)) if cell and re.fullmatch(r"\d{1,9}(\.0*)?", cell) else cell or None


def _content(
    path: str | Path,
    roles: Roles,
    truth: str | Path | None = None,
    where: Mapping[str, str] | None = None,
) -> Content:
    """Read all that is asked for, by the suffix of the file."""
    if truth is not None:
        from caltest.files.hub import read_hub

        return read_hub(path, truth, where or {}, roles)
    if where is not None:
        text = "{where} picks rows of a hub's long table; give its {truth} too."
        raise InputError(text, where=Argument("where"), truth=Argument("truth"))
    place = places.located(path)
    if _is_table(place):
        return stored_table(place, roles, whole=True).content()
    places.check_file(place)
    suffix = Path(str(place)).suffix
    if suffix.lower() not in _ARRAYS:
        raise InputError(
            f"files that end in {quoted(suffix)} cannot be read; convert the file to "
            f"{', '.join((*FORMATS, *_ARRAYS))}."
        )
    with places.opened(place, NUMPY) as file:
        if places.size_of(file) == 0:
            raise InputError("the file is empty; write it again.")
        return _ARRAYS[suffix.lower()](file, roles)


@arguments(groups=names, weights=name_or_place, clusters=name_or_place)
def scan(
    path: str | Path,
    label: str | int | None = None,
    *,
    columns: Sequence[str] | Mapping[str, Any] | None = None,
    groups: Sequence[str] = (),
    weights: str | None = None,
    clusters: str | None = None,
    logits: bool = False,
) -> Stored:
    """Open a file of predictions and labels that is too large for memory.

    These statistics need one pass over the file, and memory that does not grow with the number of
    rows: "omnibus", "ecd", "log_score", "brier", "spiegelhalter", "citl", "esce", "smooth_ece",
    "ks", "kuiper", "t_cal", "classwise_ece", the ECE family of one probability, "ucme", and
    low-rank kernel statistics. What a statistic fits to the predictions (bandwidths, landmarks,
    quantiles) is fitted to a random sample of 8 192 rows, for which the file is read once before.
    Files of up to 100 000 rows are read into memory; larger ones are too if another statistic needs
    all rows and they fit. Distributions of numbers need a lens for one pass; without
    one, all rows are read.

    Parameters
    ----------
    path
        A table, or a directory of them, as in :func:`read`, or a ``.npy`` array. CSV and JSON lines
        are read once when they are opened: rows are counted, and columns take one type.
    label, columns, groups, weights, clusters, logits
        As in :func:`read`. Weights and clusters are read once, when the file is opened. Rows of a
        cluster may be anywhere in the file. The names of all clusters are held in memory, and
        during a test each sum of the statistic for each cluster.

    Returns
    -------
    Stored
        To be given to :func:`caltest.test`, instead of ``probs`` and ``labels``; no other function
        takes it.

    Raises
    ------
    InputError
        If there is no such file, or its columns are wrong.

    Examples
    --------
    >>> import tempfile
    >>> import numpy as np
    >>> import caltest
    >>> from caltest.files import scan
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     np.save(f"{folder}/weather.npy", [[0.25, 0.75, 1], [0.5, 0.5, 0]] * 10)
    ...     stored = scan(f"{folder}/weather.npy", label=-1)
    ...     stored.n_samples, caltest.test(stored, statistic="ecd", rng=0).pvalue
    (20, 0.12)
    """
    roles = Roles.of(label, columns, groups, weights=weights, clusters=clusters, logits=logits)
    with places.named(places.called(path)):
        place = places.located(path)
        if not (places.is_folder(place) or places.is_pattern(place)):
            places.check_file(place)
        if place.suffix.lower() != ".npy":
            return replace(stored_table(place, roles, whole=False), logits=logits)
        with places.opened(place, NUMPY) as file:
            header, column = table_header(file, roles)
        if header.shape[0] == 0:
            raise InputError("there are no rows; write the file again.")
        assert column is not None  # labels are needed
        return StoredFile(places.called(path), header.shape[0], place, header, column, logits=logits)


def can_scan(path: str | Path) -> bool:
    """Return whether an input can be read a block of rows at a time."""
    if not isinstance(path, str | Path):
        return False
    try:
        place = places.located(path)
        return place.suffix.lower() == ".npy" or _is_table(place)
    except InputError:  # whoever reads it says so
        return False


def _is_table(place: Place) -> bool:
    return place.suffix.lower() in FORMATS or places.is_folder(place) or places.is_pattern(place)


def scan_arrays(probs: Any, labels: Any, logits: bool = False) -> StoredArrays:
    """Read arrays, such as memory-mapped ones, a block of rows at a time; no names, and no index."""
    probs, labels = _as_array(probs, "probs"), _as_array(labels, "labels")
    if len(probs) != len(labels):
        raise InputError(
            f"probs has {len(probs)} rows and labels has {len(labels)}; give one label for every row."
        )
    if len(probs) == 0:
        raise InputError("probs is empty; give one row per sample.")
    if type(probs) is np.ndarray:  # in memory; what is in a file is checked as it is read
        sample(probs, labels, part=True, logits=logits)
    return StoredArrays("probs", len(probs), probs, labels, logits=logits)


def _as_array(data: Any, what: str) -> Any:
    """Return what has rows to slice: arrays of numpy and those in files, or what is read into one.

    By names labels are matched to columns, and by an index rows are: what has either is refused, since
    blocks of rows would lose them.
    """
    if is_framed(data):
        raise InputError(
            f"{what} is {quoted(data)}, with names or an index, and scan_arrays takes arrays; give it "
            "to caltest.test as it is."
        )
    in_file = type(data).__module__.partition(".")[0] in ("h5py", "zarr")
    if (in_file or isinstance(data, np.ndarray)) and data.ndim and not np.ma.isMaskedArray(data):
        return data
    return read_table(data, what).values
