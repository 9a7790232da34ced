"""Formats of tables: Parquet and Arrow, CSV and JSON lines, files read as blocks of rows of Arrow.

A format is two functions: one looks at a file once and says what it holds, in which parts, the other
reads some of its columns from a part on, so that several may read a file. A new format is these two and
a line in `FORMATS`.

Text is read by pyarrow a block of whole rows at a time. The first look at a file checks all of it,
since a type is that of a whole column, and keeps where blocks begin. Which line is wrong, and whether a
quote is closed, pyarrow does not say: the modules csv and json are asked then.
"""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from io import BufferedReader
from typing import Any, NamedTuple

from caltest._visible import quoted
from caltest.data.containers import is_number, listed
from caltest.exceptions import InputError
from caltest.files.columns import check_unique
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


# ------------------------------------------------------------------ text

BLOCK = 2**20  # bytes that are parsed at once
_LONGEST_LINE = 2**24  # characters: names of a million classes
_DEEPEST = 64  # brackets within brackets of a line of JSON
_MARK = b"\xef\xbb\xbf"  # of UTF-8, as some programs write it


class _Block(NamedTuple):
    """Whole rows of a file, and the byte and the line where they begin."""

    start: int
    line: int
    text: bytes
    rows: Any = None  # what was found to see that they are whole


def _blocks(file: BufferedReader, look: Callable[[_Block, bool], Any]) -> Iterator[_Block]:
    """Yield blocks of whole lines; with more of them where ``look``, told of the last, returns None."""
    start, line, held = len(_MARK) if first_bytes(file).startswith(_MARK) else 0, 1, b""
    file.seek(start)
    while more := file.read(max(BLOCK, len(held))):
        held += more
        is_last = not file.peek(1)
        end = len(held) if is_last else held.rfind(b"\n") + 1 or held.rfind(b"\r", 0, -1) + 1
        if len(held) >= _LONGEST_LINE:
            for number, text in enumerate(held.splitlines(), start=line):
                if len(text) >= _LONGEST_LINE:
                    found = f"line {number} is longer than {_LONGEST_LINE} characters"
                    raise InputError(f"{found}; save one row per line.")
        block = _Block(start, line, held[:end])
        if end and (rows := look(block, is_last)) is not None:
            block.text.decode()  # what is no UTF-8 is told so
            yield block._replace(rows=rows)
            start, line, held = start + end, line + len(block.text.splitlines()), held[end:]


def _read(
    parse: Callable[..., Any], file: BufferedReader, survey: Survey, schema: Any, part: int
) -> Iterator[Any]:
    """Read the blocks from one on."""
    ends = [start for start, _ in survey.starts[1:]] + [survey.size]
    for (start, line), end in list(zip(survey.starts, ends, strict=True))[part:]:
        file.seek(start)
        yield from parse(file.read(end - start), line, survey, schema).to_batches()


# ------------------------------------------------------------------ CSV


class _Row(NamedTuple):
    """A row of CSV, as Python's module reads it."""

    line: int  # where it begins
    lines: list[str]
    cells: list[str]
    is_whole: bool


def _rows(block: bytes, line: int) -> Iterator[_Row]:
    """Read rows one by one; the last of them is not whole if the block ends within a quote."""
    taken, limit = list[str](), csv.field_size_limit(_LONGEST_LINE)

    def lines() -> Iterator[str]:
        for each in io.StringIO(block.decode(), newline=""):
            taken.append(each)
            yield each
        taken.append("")

    try:
        for cells in csv.reader(lines()):
            yield _Row(line, taken[:], cells, taken[-1] != "")
            line += len(taken)
            taken.clear()
    except csv.Error as error:
        raise InputError(f"the file is not valid CSV: {error}; write it again.") from error
    finally:
        csv.field_size_limit(limit)


def _quoted_rows(block: _Block, is_last: bool) -> list[_Row] | None:
    """Return the rows of a block with quotes, none of one without; None if it ends within a row."""
    if (place := block.text.find(b"\0")) >= 0:
        line = block.line + len((block.text[:place] + b"\0").splitlines()) - 1
        raise InputError(
            f"line {line} holds a null character, so the file is not valid CSV; save it as UTF-8."
        )
    rows = list(_rows(block.text, block.line)) if b'"' in block.text else []
    return rows if not rows or rows[-1].is_whole or is_last else None


def _look_at_csv(file: BufferedReader) -> Survey:
    """Go through all rows, a block at a time: a type is that of a whole column."""
    import pyarrow as pa

    kinds, swallowed, count = dict[str, Any](), dict[str, int](), 0
    parts, starts = list[int](), list[tuple[int, int]]()
    for start, line, text, rows in _blocks(file, _quoted_rows):
        if not kinds:
            header, length, line = _header(text, line)
            kinds = {name or f"Unnamed: {k}": pa.null() for k, name in enumerate(header)}
            start, text, rows = start + length, text[length:], [row for row in rows if row.line >= line]
        if not text.strip(b"\r\n"):
            continue
        for number, row in enumerate(_of_width(rows, len(kinds)), start=count):
            for name, cell in zip(kinds, row.cells, strict=True) if len(row.lines) > 1 else ():
                # From a quote that is not closed to another one in the same column, rows later.
                further = len(cell.splitlines()) - 1
                if further > 0 and cell.count(",") >= further * (len(kinds) - 1):
                    swallowed.setdefault(name, number)
        try:
            known = {name: kind for name, kind in kinds.items() if kind == pa.string()}
            found = _parsed(text, kinds, known)
        except pa.ArrowInvalid:
            _of_width(_rows(text, line), len(kinds))
            raise
        kinds = {name: _kind(text, kinds, name, found.column(name)) for name in kinds}
        parts.append(found.num_rows)
        starts.append((start, line))
        count += found.num_rows
    if not count:
        raise InputError("there is a header but no row beneath it; save the predictions as rows.")
    schema = pa.schema([(n, pa.float64() if kind == pa.null() else kind) for n, kind in kinds.items()])
    return Survey(schema, tuple(parts), starts=tuple(starts), swallowed=swallowed)


def _parsed(
    text: bytes, names: Iterable[str], types: Mapping[str, Any], wanted: Sequence[str] | None = None
) -> Any:
    """Read rows without a header; only an empty cell is missing ("NA" may be a class)."""
    import pyarrow as pa
    import pyarrow.csv as pc

    parse = pc.ParseOptions(
        newlines_in_values=True,
        invalid_row_handler=lambda row: "error" if row.text.strip() else "skip",
    )
    convert = pc.ConvertOptions(
        column_types=types,
        include_columns=wanted,
        null_values=[""],
        true_values=["True", "TRUE", "true"],
        false_values=["False", "FALSE", "false"],
        strings_can_be_null=True,
        quoted_strings_can_be_null=True,
    )
    options = pc.ReadOptions(column_names=list(names), block_size=len(text) + 1, use_threads=False)
    return pc.read_csv(pa.BufferReader(text), options, parse, convert)


def _csv(text: bytes, _: int, survey: Survey, schema: Any) -> Any:
    types = dict(zip(schema.names, schema.types, strict=True))
    return _parsed(text, survey.schema.names, types, schema.names)


def _kind(text: bytes, kinds: Mapping[str, Any], name: str, cells: Any) -> Any:
    """Return the type of a column that holds the cells of a block too: text where nothing else does."""
    import pyarrow as pa
    import pyarrow.compute as pc

    known, new = kinds[name], cells.type
    if new == known == pa.string():
        return known
    if pa.types.is_floating(new) and pc.any(pc.is_nan(cells)).as_py():
        new = pa.string()  # "nan" is text
    if pa.types.is_integer(new) and (b"x" in text or b"X" in text):
        try:
            _parsed(text, kinds, {name: pa.float64()}, [name])
        except pa.ArrowInvalid:  # and so is 0x1
            new = pa.string()
    if new in (known, pa.null()):
        return known
    numbers = (pa.int64(), pa.float64())
    if known == pa.null():
        return new if new in (*numbers, pa.bool_()) else pa.string()
    return pa.float64() if known in numbers and new in numbers else pa.string()


def _header(text: bytes, line: int) -> tuple[list[str], int, int]:
    """Return the names of columns, the bytes that they take, and the line beneath them."""
    length = 0
    for row in _rows(text, line):
        length += len("".join(row.lines).encode())
        if "".join(row.cells).strip() or len(row.cells) > 1:
            _check_header(row.cells)
            return row.cells, length, row.line + len(row.lines)
    raise InputError("the file is not valid CSV: No columns, but blank lines; write it again.")


def _of_width(rows: Iterable[_Row], width: int) -> list[_Row]:
    """Return the rows with a cell for every name; raise at the first that has not, and is not blank."""
    found = []
    for row in rows:
        if not row.is_whole:
            raise InputError(
                "the file is not valid CSV: EOF inside string, the cell that a quote opens in line "
                f"{row.line}; close the quote, or write the file again if it is cut off."
            )
        if len(row.cells) == width:
            found.append(row)
        elif row.lines[0].strip():
            count = f"{len(row.cells)} cell{'' if len(row.cells) == 1 else 's'}"
            do = "name every column, or put text that holds commas in quotes"
            if len(row.cells) < width:
                do = "complete it, or write the file again if it is cut off there"
            raise InputError(f"line {row.line} has {count}, and the header has {width} names; {do}.")
    return found


def _check_header(header: list[str]) -> None:
    """Raise if the names of a CSV file's columns look like something else."""
    if len(header) == 1 and (mark := next((c for c in ";\t|" if c in header[0]), None)):
        raise InputError(
            f"the header has no comma but {mark!r}, which seems to separate the columns; "
            "save the file with commas."
        )
    if all(is_number(cell) for cell in header):
        raise InputError(
            f"the first line looks like numbers ({listed(header, 4)}), not names of columns; "
            "add a header, for instance cat,dog,label."
        )
    check_unique(header)


# ------------------------------------------------------------------ JSON lines


def _look_at_json(file: BufferedReader) -> Survey:
    """Go through all objects: a type is that of a column in all of them, and dates stay text."""
    import pyarrow as pa

    known: Any = None
    parts, starts = list[int](), list[tuple[int, int]]()
    for start, line, text, _ in _blocks(file, lambda *_: ()):
        if text.isspace():
            continue
        _check_depth(text, line)
        table = _objects(text, line)
        parts.append(table.num_rows)
        starts.append((start, line))
        dates = pa.types.is_temporal
        fields = [(each.name, pa.string() if dates(each.type) else each.type) for each in table.schema]
        schema = pa.schema(fields)
        try:
            known = pa.unify_schemas([known or schema, schema], promote_options="permissive")
        except pa.ArrowException:
            raise _json_error(text, line, known) from None
    if not sum(parts):
        raise InputError("there are no rows; write the file again.")
    return Survey(known, tuple(parts), starts=tuple(starts))


def _objects(text: bytes, line: int, _: Survey | None = None, schema: Any = None) -> Any:
    """Read an object per line: with a schema, only what it names, and as it says."""
    import pyarrow as pa
    import pyarrow.json as pj

    known = None if schema is None else pj.ParseOptions(schema, unexpected_field_behavior="ignore")
    try:
        return pj.read_json(io.BytesIO(text), pj.ReadOptions(False, len(text) + 1), known)
    except pa.ArrowInvalid as error:
        raise _json_error(text, line, None, error) from error


def _check_depth(block: bytes, first: int) -> None:
    """Raise if values are nested so deeply that the parser would take for ever, or fall over."""
    for line, text in enumerate(block.split(b"\n"), start=first):
        if text.count(b"[") + text.count(b"{") > _DEEPEST:
            depth = 0
            for mark in re.findall(rb"[\[{\]}]", re.sub(rb'"(?:[^"\\]|\\.)*"', b"", text)):
                depth += 1 if mark in b"[{" else -1
                if depth > _DEEPEST:
                    raise InputError(
                        f"line {line} is nested more than {_DEEPEST} deep; write an object of numbers "
                        "and text per line."
                    )


def _json_error(block: bytes, first: int, before: Any, error: object = "") -> InputError:
    """Say which line of a block is the first that is not as it should be."""
    import pyarrow as pa

    kinds = {pa.int64(): "numbers", pa.float64(): "numbers", pa.bool_(): "truth values"}
    known = {each.name: kinds.get(each.type, "text") for each in before or ()}
    for line, text in enumerate(block.split(b"\n"), start=first):
        if not text.strip():
            continue
        try:
            pairs = json.loads(text, object_pairs_hook=tuple)
        except (ValueError, RecursionError) as wrong:
            return InputError(f"line {line} is not valid JSON: {wrong}; write an object per line.")
        if not isinstance(pairs, tuple):
            return InputError(
                f"line {line} holds {quoted(pairs)}, and no object; write an object per line."
            )
        names = [name for name, _ in pairs]
        if len(set(names)) < len(names):
            return InputError(f"line {line} holds a name twice among {listed(names)}; write each once.")
        for name, cell in pairs:
            kind = _JSON_KINDS.get(type(cell), "lists or objects")
            if cell is not None and known.setdefault(name, kind) != kind:
                return InputError(
                    f"column {quoted(name)} holds {quoted(cell)} in line {line}, and {known[name]} in "
                    "lines before; write values of one kind."
                )
    return InputError(f"the file is not valid JSON lines: {error}; write an object per line.")


_JSON_KINDS: dict[type, str] = {str: "text", bool: "truth values", int: "numbers", float: "numbers"}


CSV = Format("CSV", (".csv",), _look_at_csv, partial(_read, _csv), is_text=True)
JSON_LINES = Format("JSON lines", (".jsonl", ".ndjson"), _look_at_json, partial(_read, _objects))

#: By suffix, how a file is read.
FORMATS = {suffix: each for each in (PARQUET, ARROW, CSV, JSON_LINES) for suffix in each.suffixes}
