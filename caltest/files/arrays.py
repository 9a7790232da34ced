"""Arrays: NPY and NPZ. A header, or a directory, is believed only where the file bears it out.

Headers are matched, not evaluated, and nothing is allocated for numbers that are not there. What is
wrong with the layout is a ValueError with a reason, as of any library that reads.
"""

from __future__ import annotations

import math
import re
import struct
import zipfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from io import BufferedIOBase, BufferedReader
from typing import IO, Any

import numpy as np

from caltest._arguments import whole_number
from caltest._memory import check_fits
from caltest._visible import quoted
from caltest.data.containers import listed, read_table, shape_of
from caltest.exceptions import Argument, InputError
from caltest.files.columns import (
    COPIES,
    Content,
    Roles,
    check_held,
    check_there,
    check_unique,
    unread_note,
)
from caltest.files.formats import first_bytes
from caltest.files.places import reading, size_of

# ------------------------------------------------------------------ what is read

_PROBS = ("probs", "probabilities", "p", "y_prob")


def read_npz(file: BufferedReader, roles: Roles) -> Content:
    """Read an archive of arrays."""
    _check_kind(file, _ZIP, roles)
    archive = Archive(file)
    names = list(archive.members)
    roles = roles.among(names)
    if roles.numbers is None:
        keys = [roles.found(names, partial(_chosen_probs, logits=roles.logits))]
    else:
        keys = [*roles.numbers.names]
        for key in keys:
            check_there(key, names, "array", "")
    others = [name for name in names if name not in (*keys, "classes")]
    truth = roles.found_label(others, "array", [name for name in names if name not in keys])
    for key in keys:
        with archive.opened(key) as (_, header):
            check_held(header.shape[0] if header.shape else 1, math.prod(header.shape[1:]))
    probs: Any = {key: archive.array(key) for key in keys}
    rows = len(np.atleast_1d(probs[keys[0]]))
    if roles.numbers is None:
        probs = read_table(probs[keys[0]], "probs")
        if "classes" in names:
            classes, width = archive.array("classes"), probs.n_columns
            if classes.shape != (max(width, 2),):
                raise InputError(
                    f"classes has shape {shape_of(classes)} and probs has {width} columns; "
                    "give one name for every class."
                )
            probs = replace(probs, names=tuple(map(str, classes.tolist())))
            check_unique(probs.names, "classes")
    labels = None if truth is None else archive.array(truth)
    groups = {name: archive.array(name) for name in roles.groups}
    weights = None if roles.weights is None else archive.array(roles.weights)
    for name, values in groups.items():
        if values.shape != (rows,):
            raise InputError(
                f"the array {quoted(name)} has shape {shape_of(values)}, and there are {rows} rows; a "
                f"group needs one value per row, an array of shape ({rows},)."
            )
    apart = (truth, roles.weights, *groups)
    notes = unread_note("arrays", [name for name in others if name not in apart])
    cells = {name: each.tolist() for name, each in groups.items()}
    clusters = None if roles.clusters is None else cells[roles.clusters]
    own: dict[str, Any] = {"weights": weights, "clusters": clusters, "logits": roles.logits}
    return Content(probs, labels, cells, notes, numbers=roles.numbers, **own)


def read_npy(file: BufferedReader, roles: Roles) -> Content:
    """Read a single array, a table with a column of labels."""
    header, label = table_header(file, roles)
    check_held(header.shape[0] if header.shape else 1, math.prod(header.shape[1:]))
    table = read_array(file, header)
    if label is None:
        return Content(table, None, {}, logits=roles.logits)
    return Content(np.delete(table, label, axis=1), table[:, label], {}, logits=roles.logits)


def table_header(file: BufferedReader, roles: Roles) -> tuple[Header, int | None]:
    """Read what a single array announces, and say which of its columns holds the labels, if any."""
    for name, what in (
        (roles.clusters, "of clusters"),
        *((name, "to group by") for name in roles.groups),
        (roles.weights, "of weights"),
        *((name, "of predictions") for name in (roles.numbers.names if roles.numbers else ())),
    ):
        if name is not None:
            raise InputError(
                f"an array has no names, so there is no column {quoted(name)} {what}; save probs, "
                "labels and what belongs to the rows as CSV, Parquet or NPZ."
            )
    _check_kind(file, MAGIC, roles)
    header = read_header(file, size_of(file))
    if roles.may_lack_labels:
        return header, None
    if len(header.shape) != 2 or header.shape[1] < 2:
        raise InputError(
            f"the array has shape {header.shape}, but must be a table of probabilities and one column "
            "of labels; or save probs and labels in one .npz file."
        )
    width, label = header.shape[1], roles.label
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
    return header, index % width


def _check_kind(file: BufferedReader, own: bytes, roles: Roles) -> None:
    """Raise if the file begins as one of another kind does, or columns are named."""
    first_bytes(file, own)
    if roles.columns is not None and roles.numbers is None:
        raise InputError("columns is for CSV and other tables with names; leave it out.")


def _chosen_probs(names: Sequence[str], logits: bool) -> str:
    """Return the name of the one array of an archive that holds the probabilities, or logits."""
    of_logits = [name for name in names if "logit" in name.lower()]
    likely = (logits and of_logits) or [name for name in names if name.lower() in _PROBS]
    if len(likely) == 1:
        return likely[0]
    if likely:
        raise InputError(
            f"the arrays {listed(likely)} could all be the "
            f"{'logits' if logits else 'probabilities'}; leave one in the file."
        )
    if of_logits:
        text = "the array {array} holds logits; give {logits}, and their softmax is taken."
        raise InputError(text, array=quoted(of_logits[0]), logits=Argument("logits", True))
    known = f"{', '.join(_PROBS[:-1])} or {_PROBS[-1]}"
    found = f"no array is called {known}; the arrays are {listed(names)}"
    raise InputError(f"{found}: save the probabilities as 'probs'.")


# ------------------------------------------------------------------ NPY

MAGIC, _ZIP = b"\x93NUMPY", b"PK\x03\x04"

_LENGTHS = {(1, 0): "<H", (2, 0): "<I", (3, 0): "<I"}  # of the header, by version
_LONGEST_HEADER = 10_000  # that of an array of plain numbers takes 128 bytes
_MOST_DIGITS = 18
_MOST_AXES = 32
_CHUNK = 2**20  # bytes asked for at a time
_LAST_CHARACTER = 0x10FFFF
_SURROGATES = (0xD800, 0xDFFF)

_DESCR = re.compile(r"""["']descr["']\s*:\s*["']([<>|=]?[a-zA-Z]\d{0,9}(?:\[\w{1,9}\])?)["']""")
_RECORDS = re.compile(r"""["']descr["']\s*:\s*\[""")
_BY_COLUMNS = re.compile(r"""["']fortran_order["']\s*:\s*(True|False)""")
_SHAPE = re.compile(r"""["']shape["']\s*:\s*\(([\d\s,L]*)\)""")


@dataclass(frozen=True)
class Header:
    """What an NPY file announces."""

    dtype: np.dtype[Any]
    shape: tuple[int, ...]
    by_columns: bool  # whether the first index varies fastest
    start: int  # byte at which the numbers begin

    @property
    def nbytes(self) -> int:
        """Bytes of the numbers."""
        return math.prod(self.shape) * self.dtype.itemsize


def read_header(stream: BufferedIOBase | IO[bytes], size: int) -> Header:
    """Read the header of a stream of ``size`` bytes, neither more nor less of which it may announce."""
    if _exactly(stream, len(MAGIC)) != MAGIC:
        raise ValueError("it does not begin as an array does")
    major, minor = _exactly(stream, 2)
    if (major, minor) not in _LENGTHS:
        raise ValueError(f"its version {major}.{minor} of the format is unknown")
    form = _LENGTHS[major, minor]
    width = struct.calcsize(form)
    (length,) = struct.unpack(form, _exactly(stream, width))
    if length > _LONGEST_HEADER:
        raise ValueError(f"its header is said to be {length} bytes long")
    text = _exactly(stream, length).decode("utf-8" if major == 3 else "latin-1")
    if _RECORDS.search(text):
        raise ValueError("it holds records, not numbers")
    descr, order, shape = (pattern.search(text) for pattern in (_DESCR, _BY_COLUMNS, _SHAPE))
    if descr is None or order is None or shape is None:
        raise ValueError("its header does not say what the array is")
    header = Header(
        _dtype(descr[1]), _sizes(shape[1]), order[1] == "True", len(MAGIC) + 2 + width + length
    )
    follow = size - header.start
    if header.nbytes != follow:
        raise ValueError(
            f"an array of shape {header.shape} and type {header.dtype} takes {header.nbytes} bytes, "
            f"and {follow} follow its header"
        )
    return header


def read_array(stream: BufferedIOBase, header: Header) -> np.ndarray:
    """Read all numbers, in this machine's order of bytes."""
    if header.by_columns:
        return _filled(stream, header.dtype, header.shape[::-1]).T
    return _filled(stream, header.dtype, header.shape)


def read_rows(file: BufferedIOBase, header: Header, rows: slice) -> np.ndarray:
    """Read some rows of a table; the file is read, not mapped, as it may be cut short meanwhile."""
    n, width = header.shape
    count, each = rows.stop - rows.start, header.dtype.itemsize
    if not header.by_columns:
        file.seek(header.start + rows.start * width * each)
        return _filled(file, header.dtype, (count, width))
    table = np.empty((count, width), header.dtype.newbyteorder("="))
    for column in range(width):
        file.seek(header.start + (column * n + rows.start) * each)
        table[:, column] = _filled(file, header.dtype, (count,))
    return table


def _exactly(stream: BufferedIOBase | IO[bytes], size: int) -> bytes:
    found = stream.read(size)
    if len(found) < size:
        raise ValueError("it ends within its header")
    return found


def _dtype(descr: str) -> np.dtype[Any]:
    try:
        dtype = np.dtype(descr)
    except TypeError as error:
        raise ValueError(f"its header names the unknown type {descr!r}") from error
    if dtype.hasobject:
        raise ValueError("it holds Python objects, which are not read, for to read them runs programs")
    return dtype


def _sizes(text: str) -> tuple[int, ...]:
    parts = [part.strip().removesuffix("L") for part in text.split(",")]
    if parts[-1] == "":
        parts.pop()
    if len(parts) > _MOST_AXES or not all(
        part.isascii() and part.isdecimal() and len(part) <= _MOST_DIGITS for part in parts
    ):
        raise ValueError("its header announces a shape that no array has")
    return tuple(map(int, parts))


def _filled(stream: BufferedIOBase, dtype: np.dtype[Any], shape: tuple[int, ...]) -> np.ndarray:
    array = np.empty(shape, dtype)
    if array.nbytes:
        view, done = array.reshape(-1).view(np.uint8), 0
        while done < array.nbytes:
            count = stream.readinto(view[done : done + _CHUNK].data)
            if not count:
                raise ValueError(f"it ends after {done} of {array.nbytes} bytes")
            done += count
        _check_values(array, dtype)
    return array.astype(dtype.newbyteorder("="), copy=False)


def _check_values(array: np.ndarray, dtype: np.dtype[Any]) -> None:
    """Raise if there are bytes that Python takes for no value of the type."""
    if dtype.kind == "b" and array.view(np.uint8).max() > 1:
        raise ValueError("it holds truth values that are neither true nor false")
    if dtype.kind == "U":
        codes = array.reshape(-1).view(np.dtype(np.uint32).newbyteorder(dtype.byteorder))
        first, last = _SURROGATES
        if codes.max() > _LAST_CHARACTER or ((codes >= first) & (codes <= last)).any():
            raise ValueError("it holds text that is no Unicode")


# ------------------------------------------------------------------ NPZ

_MOST_AT_ONCE = 2**22  # bytes; a directory of so many is none of a few arrays
_ENCRYPTED = 0x1
_PACKED = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)  # what NumPy writes; others unpack without bound
# Probabilities do not pack better: what does, beyond a size that harms nobody, is made to fill memory.
_MOST_UNPACKED = 100
_HARMLESS = 2**26


class Archive:
    """The arrays of an opened NPZ file, by name; nothing is unpacked before its size is believed."""

    def __init__(self, file: BufferedReader) -> None:
        self._zip = zipfile.ZipFile(_Sparing(file))
        members = self._zip.infolist()
        names = [member.filename.removesuffix(".npy") for member in members]
        check_unique(names, "arrays")
        self.members = dict(zip(names, members, strict=True))

    def array(self, name: str) -> np.ndarray:
        """Read an array."""
        with self.opened(name) as (stream, header):
            check_fits(
                COPIES * header.nbytes, f"the array {quoted(name)}", "save fewer rows in the file"
            )
            array = read_array(stream, header)
            stream.read(1)  # the end, where the checksum is compared
            return array

    @contextmanager
    def opened(self, name: str) -> Iterator[tuple[Any, Header]]:
        """Open an array, and read what it announces."""
        with reading(f"the array {quoted(name)} cannot be read"):
            member = self.members[name]
            if member.flag_bits & _ENCRYPTED:
                raise ValueError("it is encrypted")
            if member.compress_type not in _PACKED:
                raise ValueError(
                    f"it is packed in a way that NumPy does not know ({member.compress_type})"
                )
            if member.file_size > max(_HARMLESS, _MOST_UNPACKED * member.compress_size):
                raise InputError(
                    f"the array {quoted(name)} would unpack from {member.compress_size} bytes to "
                    f"{member.file_size}, as no predictions do; save it with np.savez, which packs "
                    "nothing."
                )
            with self._zip.open(member) as stream:
                yield stream, read_header(stream, member.file_size)


class _Sparing:
    """A file that hands out no more at once than is needed: sizes in it are not believed."""

    def __init__(self, file: BufferedReader) -> None:
        self._file, self._size = file, size_of(file)
        self.seek, self.tell, self.seekable = file.seek, file.tell, file.seekable

    def read(self, size: int | None = -1) -> bytes:
        left = self._size - self._file.tell()
        asked = left if size is None or size < 0 else min(size, left)
        if asked > _MOST_AT_ONCE:
            raise InputError(
                f"the archive's directory takes {asked} bytes, and that of a few arrays hundreds; save "
                "probs and labels alone, with np.savez."
            )
        return self._file.read(max(asked, 0))
