"""`scan`: predictions and labels that stay in their file, and are read a block of rows at a time."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from caltest._arguments import arguments
from caltest._door import called, check_file, is_file, is_folder, named, opened, reading, size_of
from caltest._sampling import ROWS
from caltest._tiles import blocks
from caltest._visible import quoted
from caltest.data import Sample, sample
from caltest.data.containers import check_unique, is_framed, listed, read_table
from caltest.exceptions import InputError
from caltest.files.arrays import array_header, check_table, column_of_labels
from caltest.files.content import Roles
from caltest.files.npy import Header, read_header, read_rows
from caltest.files.stored import Stored
from caltest.files.tables import from_frame

_NUMPY = "NumPy"
_PARQUET = (".parquet", ".pq")
_ARROW = (".arrow", ".feather", ".ipc")
_READAHEAD = 2  # batches of a row group decoded beforehand; more would fill memory


@arguments()
def scan(
    path: str | Path, label: str | int | None = None, *, columns: Sequence[str] | None = None
) -> Stored:
    """Open predictions and labels that are too many to hold in memory.

    Statistics whose sums over rows merge by addition read them in one pass: "omnibus", "ecd",
    "log_score", "brier", "spiegelhalter", "citl", "esce", "smooth_ece", "ks", "kuiper", the ECE family
    of one probability, and kernel statistics of low rank. Memory then does not depend on the number of
    rows. What a statistic fits to the predictions (bandwidths, landmarks, quantiles) it fits to a
    random sample of 8 192 rows, for which the file is gone through once before. Up to 100 000 rows are
    read into memory, and more for other statistics, if they fit.

    Parameters
    ----------
    path
        A ``.parquet`` or ``.pq`` file, an Arrow file (``.arrow``, ``.feather``, ``.ipc``), a directory
        of either, whose files are read in the order of their names, or a ``.npy`` table.
    label, columns
        As of :func:`caltest.files.read`.

    Returns
    -------
    Stored
        To be given to :func:`caltest.test` alone, in place of ``probs`` and ``labels``.

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
    name, roles = called(path), Roles.of(label, columns)
    with named(name):
        if not is_folder(path) or path == "":
            check_file(path)
        if Path(path).suffix.lower() == ".npy":
            return _scan_npy(Path(path), name, roles)
        return _scan_arrow(Path(path), name, roles)


def can_scan(path: str | Path) -> bool:
    """Say whether there is something of a kind that can be read a block at a time."""
    suffixes = (*_PARQUET, *_ARROW, ".npy")
    known = isinstance(path, str | Path) and path != ""
    return known and (is_folder(path) or Path(path).suffix.lower() in suffixes)


# ------------------------------------------------------------------ Arrow


@dataclass(frozen=True, eq=False)
class StoredTable(Stored):
    """A dataset of Parquet or Arrow files.

    Attributes
    ----------
    dataset
        As pyarrow opens it.
    roles
        Which columns are what.
    """

    dataset: Any
    roles: Roles

    @property
    def width(self) -> int:
        """Numbers in a row."""
        return len(self.dataset.schema.names)

    def _chunks(self) -> Iterator[Any]:
        import pyarrow as pa

        held: list[Any] = []
        count = 0
        with named(self.name), reading("the file is broken"):
            for file in self.dataset.files:  # opened once more; what they are may have changed
                check_file(file)
            for batch in self.dataset.to_batches(
                batch_size=ROWS, batch_readahead=_READAHEAD, fragment_readahead=1
            ):
                batch.validate(full=True)
                held.append(batch)
                count += batch.num_rows
                while count >= ROWS:
                    table = pa.Table.from_batches(held)
                    yield table.slice(0, ROWS)
                    held, count = table.slice(ROWS).to_batches(), count - ROWS
        if count:
            yield pa.Table.from_batches(held)

    @property
    def _check(self) -> Callable[[Any], Sample]:
        return partial(_of_table, self.roles)


def _of_table(roles: Roles, block: Any) -> Sample:
    return from_frame(block, roles).checked(part=True)


def _scan_arrow(path: Path, name: str, roles: Roles) -> StoredTable:
    try:
        import pyarrow.dataset as ds
    except ImportError as error:
        raise InputError(
            'reading Parquet needs pyarrow; install it with pip install "caltest[parquet]".'
        ) from error
    files, kind = _files(path)
    # Bytes read beforehand would stay in memory, as many as the file has.
    unbuffered = ds.ParquetFragmentScanOptions(pre_buffer=False, use_buffered_stream=True)
    parquet = ds.ParquetFileFormat(default_fragment_scan_options=unbuffered)
    with reading("the file is not valid"):
        dataset = ds.dataset(
            [str(file) for file in files], format=parquet if kind == "parquet" else kind
        )
        _check_alike(dataset)
        n = dataset.count_rows()
    check_unique(dataset.schema.names)
    if n == 0:
        raise InputError("there are no rows; write them anew.")
    return StoredTable(name, n, dataset, roles)


def _files(path: Path) -> tuple[list[Path], str]:
    """Return the files of a dataset in the order of their names, and their format.

    Names that begin with "." or "_" are what systems keep beside data.
    """
    folder = is_folder(path)
    if folder:
        with reading("the directory cannot be read"):
            files = sorted(each for each in path.iterdir() if each.name[0] not in "._")
    else:
        files = [path]
    for suffixes, kind in ((_PARQUET, "parquet"), (_ARROW, "ipc")):
        found = [each for each in files if is_file(each) and each.suffix.lower() in suffixes]
        others = [each.name for each in files if each not in found]
        if found and others:
            raise InputError(
                f"besides {kind} files the directory holds {listed(others, 3)}; give a directory of "
                "files of one kind and nothing else."
            )
        if found:
            return found, kind
    where = "this directory holds no such files" if folder else f"this is {quoted(path.suffix)}"
    advice = "give another" if folder else "convert it, or read it with caltest.files.read"
    raise InputError(
        "a block of rows at a time can be read from Parquet (.parquet, .pq), Arrow (.arrow, .feather, "
        f".ipc) and .npy files, and {where}; {advice}."
    )


def _check_alike(dataset: Any) -> None:
    """Raise unless all files have the same columns."""
    wanted = dataset.schema.names
    for fragment in dataset.get_fragments():
        names = fragment.physical_schema.names
        if sorted(names) != sorted(wanted):
            raise InputError(
                f"{called(fragment.path)} has the columns {listed(names)}, and the first file has "
                f"{listed(wanted)}; give files with the same columns."
            )


# ------------------------------------------------------------------ arrays


@dataclass(frozen=True, eq=False)
class StoredFile(Stored):
    """A table in an NPY file. It is read, not mapped: where a mapped file is cut short, Python dies.

    Attributes
    ----------
    path
        Of the file, which every pass opens.
    header
        What it announced when it was opened first.
    label
        The column of labels.
    """

    path: Path
    header: Header
    label: int

    @property
    def width(self) -> int:
        """Numbers in a row."""
        return self.header.shape[1]

    def _chunks(self) -> Iterator[Any]:
        with named(self.name), opened(self.path, _NUMPY) as file:
            if read_header(file, size_of(file)) != self.header:
                raise InputError(
                    "it is another table now than when it was opened; do not write to it while it is "
                    "read."
                )
            for rows in blocks(self.n_samples, ROWS):
                yield read_rows(file, self.header, rows), self.label

    @property
    def _check(self) -> Callable[[Any], Sample]:
        return _of_arrays


def _scan_npy(path: Path, name: str, roles: Roles) -> StoredFile:
    with opened(path, _NUMPY) as file:
        header = array_header(file, roles)
    check_table(header)
    if header.shape[0] == 0:
        raise InputError("there are no rows; write them anew.")
    label = column_of_labels(roles.label, header.shape[1])
    return StoredFile(name, header.shape[0], path, header, label)


@dataclass(frozen=True, eq=False)
class StoredArrays(Stored):
    """Arrays that may be memory-mapped.

    Attributes
    ----------
    probs
        (n, m) or (n,) predictions.
    labels
        (n,) labels.
    """

    probs: Any
    labels: Any

    @property
    def width(self) -> int:
        """Numbers in a row."""
        return int(np.prod(self.probs.shape[1:]))

    def _chunks(self) -> Iterator[Any]:
        for rows in blocks(self.n_samples, ROWS):
            # Read here, in the order of the file.
            yield np.array(self.probs[rows]), np.array(self.labels[rows])

    @property
    def _check(self) -> Callable[[Any], Sample]:
        return _of_arrays


def _of_arrays(block: Any) -> Sample:
    table, labels = block
    if isinstance(labels, int):
        table, labels = np.delete(table, labels, axis=1), table[:, labels]
    return sample(table, labels, part=True)


def scan_arrays(probs: Any, labels: Any) -> StoredArrays:
    """Take arrays, such as memory-mapped ones, a block of rows at a time; no names, and no index."""
    probs, labels = _as_array(probs, "probs"), _as_array(labels, "labels")
    if len(probs) != len(labels):
        raise InputError(
            f"probs has {len(probs)} rows and labels has {len(labels)}; give one label for every row."
        )
    if len(probs) == 0:
        raise InputError("probs is empty; give one row a sample.")
    if type(probs) is np.ndarray:  # in memory; what is in a file is checked as it is read
        sample(probs, labels, part=True)
    return StoredArrays("probs", len(probs), probs, labels)


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
