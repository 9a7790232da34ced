"""The layout of NPY: a header that is believed only where the file bears it out, then numbers.

Headers are matched, not evaluated, and nothing is allocated for numbers that are not there. Failures
are a ValueError with a reason, as of any library that reads.
"""

from __future__ import annotations

import math
import re
import struct
from dataclasses import dataclass
from io import BufferedIOBase
from typing import Any

import numpy as np

MAGIC = b"\x93NUMPY"

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
    """What an NPY file announces.

    Attributes
    ----------
    dtype
        Of the numbers.
    shape
        Of the array.
    by_columns
        Whether the first index varies fastest.
    start
        Byte at which the numbers begin.
    """

    dtype: np.dtype[Any]
    shape: tuple[int, ...]
    by_columns: bool
    start: int

    @property
    def nbytes(self) -> int:
        """Bytes of the numbers."""
        return math.prod(self.shape) * self.dtype.itemsize


def read_header(stream: BufferedIOBase, size: int) -> Header:
    """Read the header of a stream of ``size`` bytes, which it must account for.

    Raises
    ------
    ValueError
        If it is none, or announces more or less than there is.
    """
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
        shown = "(" + ", ".join(map(str, header.shape)) + ("," if len(header.shape) == 1 else "") + ")"
        raise ValueError(
            f"an array of shape {shown} and type {header.dtype} takes {header.nbytes} bytes, and "
            f"{follow} follow its header"
        )
    return header


def read_array(stream: BufferedIOBase, header: Header) -> np.ndarray:
    """Read all numbers, in this machine's order of bytes.

    Raises
    ------
    ValueError
        If there are fewer than announced, or they are none.
    """
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


def _exactly(stream: BufferedIOBase, size: int) -> bytes:
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
