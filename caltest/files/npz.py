"""The archive of NPZ: its directory is looked at before anything in it is unpacked."""

from __future__ import annotations

import zipfile
from io import BufferedReader
from types import TracebackType
from typing import Any

import numpy as np

from caltest._door import reading, size_of
from caltest._memory import check_fits
from caltest._visible import quoted
from caltest.data.containers import check_unique
from caltest.exceptions import InputError
from caltest.files.npy import Header, read_array, read_header

_MOST_AT_ONCE = 2**22  # bytes; a directory of so many is none of a few arrays
_ENCRYPTED = 0x1
_PACKED = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)  # what NumPy writes; others unpack without bound
# Probabilities do not pack better: what does, beyond a size that harms nobody, is made to fill memory.
_MOST_UNPACKED = 100
_HARMLESS = 2**26
_COPIES = 4.0


class Archive:
    """The arrays of an NPZ file.

    Parameters
    ----------
    file
        Opened.
    """

    def __init__(self, file: BufferedReader) -> None:
        self._zip = zipfile.ZipFile(_Sparing(file))
        members = self._zip.infolist()
        names = [member.filename.removesuffix(".npy") for member in members]
        check_unique(names, "arrays")
        self._members = dict(zip(names, members, strict=True))

    def __enter__(self) -> Archive:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._zip.close()

    @property
    def names(self) -> list[str]:
        """Names of the arrays."""
        return list(self._members)

    def header(self, name: str) -> Header:
        """Read what an array announces."""
        with self._reading(name), self._open(name) as stream:
            return read_header(stream, self._members[name].file_size)

    def array(self, name: str) -> np.ndarray:
        """Read an array."""
        with self._reading(name), self._open(name) as stream:
            header = read_header(stream, self._members[name].file_size)
            check_fits(
                _COPIES * header.nbytes, f"the array {quoted(name)}", "save fewer rows in the file"
            )
            array = read_array(stream, header)
            stream.read(1)  # the end, where the checksum is compared
            return array

    def _reading(self, name: str) -> Any:
        return reading(f"the array {quoted(name)} cannot be read")

    def _open(self, name: str) -> Any:
        member = self._members[name]
        if member.flag_bits & _ENCRYPTED:
            raise ValueError("it is encrypted")
        if member.compress_type not in _PACKED:
            raise ValueError(f"it is packed in a way that NumPy does not know ({member.compress_type})")
        if member.file_size > max(_HARMLESS, _MOST_UNPACKED * member.compress_size):
            raise InputError(
                f"the array {quoted(name)} would unpack from {member.compress_size} bytes to "
                f"{member.file_size}, as no predictions do; save it with np.savez, which packs nothing."
            )
        return self._zip.open(member)


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
