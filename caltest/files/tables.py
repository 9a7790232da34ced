"""Tables: CSV, JSON lines, Parquet and Arrow, read as blocks of rows of Arrow.

A format is two functions: one looks at a file once and says what it holds, in which parts, the other
reads some of its columns from a part on, so that several may read a file. A new format is these two and
a line in `FORMATS`.
"""

from __future__ import annotations

from collections.abc import Iterator
from io import BufferedReader
from typing import Any

from caltest._door import is_remote, size_of
from caltest.files.formats import Format, Survey, first_bytes
from caltest.files.text import CSV, JSON_LINES
from caltest.sampling import ROWS

_BUFFERS = 2**27  # bytes of all columns of Parquet that are read from another machine at once


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


_PARQUET = Format("Parquet", _look_at_parquet, _read_parquet)
_ARROW = Format("Arrow", _look_at_arrow, _read_arrow)


#: By suffix, how a file is read.
FORMATS = {
    ".parquet": _PARQUET,
    ".pq": _PARQUET,
    ".arrow": _ARROW,
    ".feather": _ARROW,
    ".ipc": _ARROW,
    ".csv": CSV,
    ".jsonl": JSON_LINES,
    ".ndjson": JSON_LINES,
}
