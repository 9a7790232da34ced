"""Formats of tables, Parquet and Arrow among them: files read as blocks of rows of Arrow.

A format is two functions: one looks at a file once and says what it holds, in which parts, the other
reads some of its columns from a part on, so that several may read a file. A new format is these two and
a line in `FORMATS`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from io import BufferedReader
from typing import Any

from caltest._visible import quoted
from caltest.exceptions import InputError
from caltest.files.places import is_remote, size_of
from caltest.sampling import ROWS

_BUFFERS = 2**27  # bytes of all columns of Parquet that are read from another machine at once


@dataclass(frozen=True)
class Survey:
    """What a file holds: a schema of Arrow, its parts, and what the format's reader wants to know."""

    schema: Any
    parts: tuple[int, ...]  # rows of each row group, record batch, or range of text
    nbytes: float = 0.0  # of its table, as far as it is known
    starts: tuple[tuple[int, int], ...] = ()  # of text: the byte and the line where each part begins
    swallowed: Mapping[str, int] = field(default_factory=dict)  # by column, the first such row
    size: int = 0  # bytes of the file

    @property
    def rows(self) -> int:
        """Rows of all parts."""
        return sum(self.parts)


@dataclass(frozen=True)
class Format:
    """How files of a kind are read."""

    kind: str
    suffixes: tuple[str, ...]
    look: Callable[[BufferedReader], Survey]
    batches: Callable[[BufferedReader, Survey, Any, int], Iterator[Any]]  # from a part on; of a schema
    is_text: bool = False  # whether cells have no types, so that groups stay as they are written


#: First bytes of what has the suffix of another format, or of none that is read, and what to do.
_OTHERS = {
    b"\x1f\x8b": "is compressed with gzip; unpack it first",
    b"BZh": "is compressed with bzip2; unpack it first",
    b"\xfd7zXZ": "is compressed with xz; unpack it first",
    b"(\xb5/\xfd": "is compressed with zstd; unpack it first",
    b"PK\x03\x04": "is a zip archive, Excel or NPZ; unpack it, or rename it to .npz if it is that",
    b"PAR1": "is a Parquet file; rename it to .parquet",
    b"PARE": "is encrypted Parquet; save it without encryption",
    b"ARROW1": "is an Arrow file; rename it to .arrow",
    b"\xff\xff\xff\xff": "is a stream of Arrow; write a file instead, with pyarrow.ipc.new_file",
    b"FEA1": "is Feather of version 1; save it in version 2",
    b"\x93NUMPY": "is a NumPy array; rename it to .npy",
    b"\xff\xfe\0\0": "is UTF-32 text, not UTF-8; save it as UTF-8",
    b"\0\0\xfe\xff": "is UTF-32 text, not UTF-8; save it as UTF-8",
    b"\xff\xfe": "is UTF-16 text, not UTF-8; save it as UTF-8",
    b"\xfe\xff": "is UTF-16 text, not UTF-8; save it as UTF-8",
}


def first_bytes(file: BufferedReader, own: bytes | None = None) -> bytes:
    """Return those of a file, which is read from there; raise if another format begins like this."""
    start = file.read(8)
    file.seek(0)
    for first, advice in _OTHERS.items():
        if start.startswith(first) and first != own:
            raise InputError(f"its content {advice}.")
    return start


def cast(batch: Any, schema: Any) -> Any:
    """Return a batch with these columns, of these types; what does not fit them raises."""
    import pyarrow as pa

    batch.validate(full=True)
    columns = [batch.column(name) for name in schema.names]
    pairs = zip(columns, schema.types, strict=True)
    return pa.record_batch([c if c.type == kind else c.cast(kind) for c, kind in pairs], schema=schema)


def one_type(column: str, kinds: Sequence[Any]) -> Any:
    """Return the type of a column of several parts that holds what all of them hold.

    Raises
    ------
    InputError
        If there is none: numbers in one part and text, truth values or dates in another.
    """
    import pyarrow as pa

    plain = [kind.value_type if pa.types.is_dictionary(kind) else kind for kind in kinds]
    known = list(dict.fromkeys(kind for kind in plain if not pa.types.is_null(kind))) or [pa.null()]
    for kind in known:
        if pa.types.is_union(kind):
            raise InputError(
                f"column {quoted(column)} holds values of several types; save it as one type."
            )
    if len(known) == 1:
        return known[0]
    if all(map(pa.types.is_integer, known)):
        return pa.int64()
    if all(pa.types.is_integer(kind) or pa.types.is_floating(kind) for kind in known):
        return pa.float64()
    if all(pa.types.is_string(kind) or pa.types.is_large_string(kind) for kind in known):
        return pa.large_string()
    raise InputError(
        f"column {quoted(column)} is {known[0]} in one file and {known[1]} in another; save all files "
        "with the same types."
    )


# ------------------------------------------------------------------ Parquet and Arrow


def _look_at_parquet(file: BufferedReader) -> Survey:
    import pyarrow.parquet as pq

    first_bytes(file, b"PAR1")
    with pq.ParquetFile(file) as parquet:
        found = parquet.metadata
        groups = [found.row_group(k) for k in range(found.num_row_groups)]
        size = sum(group.total_byte_size for group in groups)
        return Survey(parquet.schema_arrow, tuple(group.num_rows for group in groups), size)


def _read_parquet(file: BufferedReader, survey: Survey, schema: Any, part: int) -> Iterator[Any]:
    import pyarrow.parquet as pq

    # Bytes read beforehand would stay in memory, as many as the file has. Those of another machine come
    # as many at once as some columns' buffers may hold.
    size = max(2**16, min(2**22, _BUFFERS // len(schema.names))) if is_remote(file) else 2**16
    with pq.ParquetFile(file, pre_buffer=False, buffer_size=size) as parquet:
        groups = range(part, parquet.num_row_groups)
        yield from parquet.iter_batches(
            ROWS, row_groups=groups, columns=schema.names, use_threads=False
        )


def _look_at_arrow(file: BufferedReader) -> Survey:
    import pyarrow as pa

    first_bytes(file, b"ARROW1")
    one = pa.ipc.IpcReadOptions(included_fields=[0])
    with pa.ipc.open_file(file, options=one) as arrow:
        parts = tuple(arrow.get_batch(k).num_rows for k in range(arrow.num_record_batches))
    with pa.ipc.open_file(file) as arrow:
        return Survey(arrow.schema, parts, size_of(file))


def _read_arrow(file: BufferedReader, survey: Survey, schema: Any, part: int) -> Iterator[Any]:
    import pyarrow as pa

    with pa.ipc.open_file(file) as arrow:
        some = [arrow.schema.get_field_index(name) for name in schema.names]
    with pa.ipc.open_file(file, options=pa.ipc.IpcReadOptions(included_fields=some)) as arrow:
        for k in range(part, arrow.num_record_batches):
            yield arrow.get_batch(k)


PARQUET = Format("Parquet", (".parquet", ".pq"), _look_at_parquet, _read_parquet)
ARROW = Format("Arrow", (".arrow", ".feather", ".ipc"), _look_at_arrow, _read_arrow)
