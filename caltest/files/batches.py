"""Files read and checked a block of rows at a time: `Stored`; and arrays, NPY and NPZ."""

from __future__ import annotations

import re
import zipfile
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from io import BufferedReader
from typing import IO, Any

import numpy as np

from caltest._arguments import arguments
from caltest._parallel import check_fits
from caltest._sums import blocks
from caltest._visible import quoted
from caltest.data import Sample, sample
from caltest.data.containers import check_distinct, is_framed, listed, read_table, shape_of
from caltest.data.rows import Clustering, Extent, Weighing
from caltest.exceptions import Argument, InputError, Row
from caltest.files.columns import COPIES, Content, Roles, cells_in, check_held, check_there, unread_note
from caltest.files.paths import first_bytes, named, reading, size_of
from caltest.sampling import ROWS

NUMPY = "NumPy"
_NPY, _ZIP = b"\x93NUMPY", b"PK\x03\x04"
_PROBS = ("probs", "probabilities", "p", "y_prob")


@dataclass(frozen=True, eq=False)
class Stored(ABC):
    """An opened file of predictions and labels, read a block of rows at a time.

    :func:`caltest.test` takes it instead of predictions and labels. Only the layout has been
    checked so far; rows are checked when they are read.

    Attributes
    ----------
    name : str
        Name of the file, used in error messages.
    n_samples : int
        Number of rows n.
    """

    name: str
    n_samples: int

    weighing: Weighing | None = field(default=None, kw_only=True)  # of the weights, if any
    clustering: Clustering | None = field(default=None, kw_only=True)  # of the clusters
    logits: bool = field(default=False, kw_only=True)  # whether logits are stored

    @abstractmethod
    def _chunks(self, first: int, last: int | None) -> Iterator[Any]:
        """Yield blocks ``first`` to ``last`` of ROWS rows, as stored."""

    def _check(self, block: Any) -> Sample:
        """Check a block: by default probabilities and labels."""
        return sample(*block, part=True, logits=self.logits)

    @abstractmethod
    def content(self) -> Content:
        """Read all rows, unchecked."""

    @property
    def grain(self) -> int:
        """Rows of the largest part: reading a row means reading what precedes it in its part."""
        return 1

    @property
    def extent(self) -> Extent:
        """The number of rows and their total weight."""
        return Extent.alike(self.n_samples) if self.weighing is None else self.weighing.extent

    @property
    def clusters(self) -> int | None:
        """Number of clusters G; None for independent rows."""
        return None if self.clustering is None else self.clustering.count

    @property
    def share_between(self) -> float:
        """Ratio of pairs of different rows to pairs from different clusters, by weight."""
        if self.clustering is None:
            return 1.0
        shares = self.clustering.totals / self.clustering.totals.sum()
        return self.extent.pairs / self.extent.total**2 / (1.0 - float(shares @ shares))

    def samples(self, first: int = 0, last: int | None = None) -> Iterator[Sample]:
        """Read and check blocks ``first`` to ``last`` of 4096 rows, or the rest; by default all.

        They are read during iteration: only paths are sent to another process.
        """
        for number, block in enumerate(self._chunks(first, last), start=first):
            try:
                sample = self._check(block)
            except InputError as error:
                raise error.moved(number * ROWS).placed(self.row).within(self.name) from error
            yield sample

    def row(self, number: int) -> Row:
        """Return the row's name in messages."""
        return Row(number)

    def _changed(self) -> InputError:
        found = f"there were {self.n_samples} rows when it was opened, and it has changed since"
        return InputError(f"{found}; do not write to it while it is read.")

    @arguments()
    def load(self, *, rounding: float | None = None) -> Sample:
        """Read all rows into memory.

        Parameters
        ----------
        rounding : float, optional
            As in :func:`caltest.data.sample`.

        Raises
        ------
        InputError
            If they do not fit, or are wrong.
        """
        with named(self.name):
            return self.content().checked(rounding=rounding)


# ------------------------------------------------------------------ arrays


@dataclass(frozen=True, eq=False)
class StoredArrays(Stored):
    """Arrays, possibly memory-mapped: (n, m) or (n,) predictions, and (n,) labels."""

    probs: Any
    labels: Any  # or the column of the predictions that holds them

    def _chunks(self, first: int, last: int | None) -> Iterator[Any]:
        return map(self._part, blocks(self.n_samples, ROWS)[first:last])

    def _part(self, rows: slice) -> tuple[np.ndarray, np.ndarray]:
        probs = np.array(self.probs[rows])
        if isinstance(self.labels, int):
            return np.delete(probs, self.labels, axis=1), probs[:, self.labels]
        return probs, np.array(self.labels[rows])

    def __getstate__(self) -> dict[str, Any]:
        return {name: _by_reference(own) for name, own in vars(self).items()}

    def __setstate__(self, state: dict[str, Any]) -> None:
        for name, own in state.items():
            vars(self)[name] = _mapped(*own) if isinstance(own, tuple) else own

    def content(self) -> Content:
        """Read all rows, unchecked."""
        check_held(self.n_samples, int(np.prod(self.probs.shape[1:])))
        return Content(Roles(None, logits=self.logits), *self._part(slice(None)), {})


def _by_reference(array: Any) -> Any:
    """Return an array as sent to another process: a mapped one by its place in the file."""
    root = array
    while isinstance(root, np.memmap) and isinstance(root.base, np.memmap):
        root = root.base
    mapped = isinstance(root, np.memmap) and root.filename is not None and root.mode != "c"
    if not mapped or not array.size or min(array.strides) < 0:
        return array
    first, begin = (each.__array_interface__["data"][0] for each in (array, root))
    return str(root.filename), array.dtype, array.shape, root.offset + first - begin, array.strides


def _mapped(path: str, dtype: Any, shape: Any, place: int, strides: Any) -> np.ndarray:
    return np.ndarray(shape, dtype, np.memmap(path, np.uint8, "r"), place, strides)


def _loaded(file: IO[bytes], size: int, what: str) -> np.ndarray:
    """Read a whole array of this size, if it fits into memory."""
    check_fits(COPIES * size, what, "save fewer rows in the file")
    if (array := np.asarray(np.load(file, allow_pickle=False))).dtype.kind == "U":
        codes = np.frombuffer(array.astype(array.dtype.newbyteorder("=")).tobytes(), np.uint32)
        if ((codes > 0x10FFFF) | ((codes >= 0xD800) & (codes < 0xE000))).any():
            raise ValueError("it holds text that is no Unicode")
    return array


def read_npz(file: BufferedReader, roles: Roles) -> Content:
    """Read an archive of arrays."""
    _check_kind(file, _ZIP, roles)
    archive = zipfile.ZipFile(file)
    names = [name.removesuffix(".npy") for name in archive.namelist()]
    check_distinct(names, "arrays")
    members = dict(zip(names, archive.infolist(), strict=True))

    def array(name: str) -> np.ndarray:
        what = f"the array {quoted(name)}"
        with reading(f"{what} cannot be read"), archive.open(members[name]) as stream:
            return _loaded(stream, members[name].file_size, what)

    chosen = partial(_chosen_probs, logits=roles.logits)
    keys = [] if roles.numbers else [roles.found(names, chosen), "classes"]
    roles = roles.among([name for name in names if name not in keys])
    keys = [*roles.numbers.names] if roles.numbers else keys[:1]
    for key in keys:
        check_there(key, names, "array", "")
    others = [name for name in names if name not in (*keys, "classes")]
    truth = roles.found_label(others, "array", [name for name in names if name not in keys])
    probs: Any = {key: array(key) for key in keys}
    rows = len(np.atleast_1d(probs[keys[0]]))
    if roles.numbers is None:
        probs = read_table(probs[keys[0]], "probs")
        if "classes" in names:
            classes, width = array("classes"), probs.n_columns
            if classes.shape != (max(width, 2),):
                found = f"classes has shape {shape_of(classes)} and probs has {width} columns"
                raise InputError(f"{found}; give one name for every class.")
            probs = replace(probs, names=tuple(map(str, classes.tolist())))
            check_distinct(probs.names, "classes")
    groups = {}
    for name in dict.fromkeys((*roles.groups, *roles.features)):
        if (values := array(name)).shape != (rows,):
            found = f"the array {quoted(name)} has shape {shape_of(values)}, and there are {rows} rows"
            do = f"a group, or feature, needs one value per row, an array of shape ({rows},)"
            raise InputError(f"{found}; {do}.")
        groups[name] = cells_in(values, name)
    apart = (truth, roles.weights, *groups)
    notes = unread_note("arrays", [name for name in others if name not in apart])
    labels, weights = (None if name is None else array(name) for name in (truth, roles.weights))
    features = {name: groups[name] for name in roles.features}
    return Content(roles, probs, labels, groups, notes, weights=weights, features=features)


def read_npy(file: BufferedReader, roles: Roles) -> Content:
    """Read a single array: a table with a column of labels."""
    check_array(file, roles)
    table = _loaded(file, size_of(file), "the array")
    if roles.may_lack_labels:
        return Content(roles, table, None, {})
    label = column_of_labels(table.shape, roles)
    return Content(roles, np.delete(table, label, axis=1), table[:, label], {})


def check_array(file: BufferedReader, roles: Roles) -> None:
    """Raise unless a file begins as a single array does, and no columns are named."""
    of = roles.numbers.names if roles.numbers else ()
    given = (*roles.groups, *roles.features, roles.weights, *of)
    if named := [name for name in given if name is not None]:
        do = "save probs, labels and what belongs to the rows as CSV, Parquet or NPZ"
        raise InputError(f"an array has no names, so there is no column {quoted(named[0])}; {do}.")
    _check_kind(file, _NPY, roles)


def column_of_labels(shape: tuple[int, ...], roles: Roles) -> int:
    """Return which column of an array holds the labels."""
    if len(shape) != 2 or shape[1] < 2:
        must = "must be a table of probabilities and one column of labels"
        do = "or save probs and labels in one .npz file"
        raise InputError(f"the array has shape {shape}, but {must}; {do}.")
    width = shape[1]
    if roles.label is None:
        how = f"with {Argument('label', ...)}, for instance {Argument('label', -1)} for the last"
        found = f"the table has {width} columns without names"
        raise InputError(f"{found}; say which holds the labels, {how}.")
    index = int(roles.label) if re.fullmatch(r"-?\d{1,18}", roles.label) else width
    if not -width <= index < width:
        one = f"the index of one of the {width} columns, from 0 to {width - 1}, or -1 for the last"
        raise InputError(f"label is {quoted(roles.label)}, but must be {one}.")
    return index % width


def _check_kind(file: BufferedReader, own: bytes, roles: Roles) -> None:
    """Raise if the file begins like another kind of file, or if columns are named."""
    first_bytes(file, own)
    if roles.columns is not None and roles.numbers is None:
        raise InputError("columns is for CSV and other tables with names; leave it out.")


def _chosen_probs(names: Sequence[str], logits: bool) -> str:
    """Return the name of the only array in an archive that holds probabilities, or logits."""
    of_logits = [name for name in names if "logit" in name.lower()]
    if len(likely := (logits and of_logits) or [name for name in names if name.lower() in _PROBS]) == 1:
        return likely[0]
    if likely:
        what = "logits" if logits else "probabilities"
        raise InputError(f"the arrays {listed(likely)} could all be the {what}; leave one in the file.")
    if of_logits:
        text = "the array {array} holds logits; give {logits}, and their softmax is taken."
        raise InputError(text, array=quoted(of_logits[0]), logits=Argument("logits", True))
    known = f"{', '.join(_PROBS[:-1])} or {_PROBS[-1]}"
    found = f"no array is called {known}; the arrays are {listed(names)}"
    raise InputError(f"{found}: save the probabilities as 'probs'.")


def scan_arrays(probs: Any, labels: Any, logits: bool = False) -> StoredArrays:
    """Open arrays, such as memory-mapped ones, to be read block by block; without names or index."""
    probs, labels = _as_array(probs, "probs"), _as_array(labels, "labels")
    if len(probs) != len(labels):
        do = "give one label for every row"
        raise InputError(f"probs has {len(probs)} rows and labels has {len(labels)}; {do}.")
    if len(probs) == 0:
        raise InputError("probs is empty; give one row per sample.")
    if type(probs) is np.ndarray:  # in memory; arrays in files are checked as they are read
        sample(probs, labels, part=True, logits=logits)
    return StoredArrays("probs", len(probs), probs, labels, logits=logits)


def _as_array(data: Any, what: str) -> Any:
    """Return an object whose rows can be sliced: an array in memory or in a file, or a converted table.

    Names match labels to columns, and an index matches rows: objects that have either are refused,
    because blocks of rows would lose them.
    """
    if is_framed(data):
        found = f"{what} is {quoted(data)}, with names or an index, and scan_arrays takes arrays"
        raise InputError(f"{found}; give it to {Argument('caltest.test')} as it is.")
    in_file = type(data).__module__.partition(".")[0] in ("h5py", "zarr")
    if (in_file or isinstance(data, np.ndarray)) and data.ndim and not np.ma.isMaskedArray(data):
        return data
    return read_table(data, what).values
