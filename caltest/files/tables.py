"""Tables: CSV, JSON lines, Parquet and Arrow, read as blocks of rows of Arrow.

A format is two functions: one looks at a file once and says what it holds, the other reads some of its
columns. A new format is these two and a line in `FORMATS`.
"""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from io import BufferedReader
from typing import Any

from caltest._door import size_of
from caltest._sampling import ROWS
from caltest._visible import quoted
from caltest.data.containers import check_unique, is_number, listed
from caltest.exceptions import InputError

_LONGEST_LINE = 2**24  # characters: names of a million classes
_DEEPEST = 64  # brackets within brackets of a line of JSON
_BLOCK = 2**20  # bytes of text that are parsed at once


@dataclass(frozen=True)
class Survey:
    """What a file holds: a schema of Arrow, the rows, and what the format's reader wants to know."""

    schema: Any
    rows: int
    nbytes: float = 0.0  # of its table, as far as it is known
    start: int = 0  # of CSV: the byte where rows begin
    block: int = _BLOCK  # of CSV: bytes that hold the longest row
    swallowed: Mapping[str, int] = field(default_factory=dict)  # by column, the first such row


@dataclass(frozen=True)
class Format:
    """How files of a kind are read."""

    kind: str
    look: Callable[[BufferedReader], Survey]
    batches: Callable[[BufferedReader, Survey, Any], Iterator[Any]]  # of the columns of a schema
    is_text: bool = False  # whether cells have no types, so that groups stay as they are written


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


# ------------------------------------------------------------------ text

#: First bytes of what is called .csv or .jsonl and is none, and what to do with it.
_OTHERS = {
    b"\x1f\x8b": "is compressed with gzip; unpack it first",
    b"BZh": "is compressed with bzip2; unpack it first",
    b"\xfd7zXZ": "is compressed with xz; unpack it first",
    b"(\xb5/\xfd": "is compressed with zstd; unpack it first",
    b"PK\x03\x04": "is a zip archive, an Excel file or NPZ; unpack it, or rename it if it is .npz",
    b"PAR1": "is a Parquet file; rename it to .parquet",
    b"ARROW1": "is an Arrow file; rename it to .arrow",
    b"\x93NUMPY": "is a NumPy array; rename it to .npy",
    b"\xff\xfe": "is UTF-16 text, not UTF-8; save it as UTF-8",
    b"\xfe\xff": "is UTF-16 text, not UTF-8; save it as UTF-8",
}
_MARK = b"\xef\xbb\xbf"  # of UTF-8, as some programs write it


def _start_of_text(file: BufferedReader) -> int:
    """Return where text begins; raise if the file begins as another format does."""
    start = file.read(8)
    for first, advice in _OTHERS.items():
        if start.startswith(first):
            raise InputError(f"its content {advice}.")
    file.seek(0)
    return len(_MARK) if start.startswith(_MARK) else 0


def _too_long(line: int) -> InputError:
    return InputError(f"line {line} is longer than {_LONGEST_LINE} characters; save a row a line.")


# ------------------------------------------------------------------ CSV


def _look_at_csv(file: BufferedReader) -> Survey:
    """Go through all lines, then through all cells: a type is that of a whole column."""
    import pyarrow as pa

    mark = _start_of_text(file)
    text = io.TextIOWrapper(file, encoding="utf-8-sig", newline="")
    try:
        header, found = _checked_lines(text)
    finally:
        text.detach()
    names = [name or f"Unnamed: {k}" for k, name in enumerate(header)]
    kinds = dict.fromkeys(names, pa.null())
    survey = Survey(
        pa.schema([(name, pa.string()) for name in names]),
        0,
        start=mark + found.header,
        block=max(_BLOCK, 4 * found.longest),  # bytes of a character
        swallowed={names[column]: row for column, row in found.swallowed.items()},
    )
    rows = 0
    for batch in _cells(file, survey, names):
        rows += batch.num_rows
        for name in names:
            kinds[name] = _kind_of(batch.column(name), kinds[name])
    read = [(name, pa.float64() if pa.types.is_null(kind) else kind) for name, kind in kinds.items()]
    return Survey(pa.schema(read), rows, 0.0, survey.start, survey.block, survey.swallowed)


def _read_csv(file: BufferedReader, survey: Survey, schema: Any) -> Iterator[Any]:
    import pyarrow as pa

    for batch in _cells(file, survey, schema.names):
        columns = map(_converted, batch.columns, schema.types)
        yield pa.record_batch(list(columns), schema=schema)


def _cells(file: BufferedReader, survey: Survey, names: Sequence[str]) -> Iterator[Any]:
    """Read columns as the text that they are; only an empty cell is missing ("NA" may be a class)."""
    import pyarrow as pa
    import pyarrow.csv as pc

    file.seek(survey.start)
    text = dict.fromkeys(survey.schema.names, pa.string())
    yield from pc.open_csv(
        pa.PythonFile(file, mode="r"),
        pc.ReadOptions(column_names=list(text), block_size=survey.block, use_threads=False),
        pc.ParseOptions(
            newlines_in_values=True,
            invalid_row_handler=lambda row: "error" if row.text.strip() else "skip",
        ),
        pc.ConvertOptions(
            column_types=text,
            include_columns=list(names),
            null_values=[""],
            strings_can_be_null=True,
            quoted_strings_can_be_null=True,
        ),
    )


def _kind_of(cells: Any, known: Any) -> Any:
    """Return the first type, from the one known of rows before, that takes all cells too."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if pa.types.is_string(known) or cells.null_count == len(cells):
        return known
    if not pa.types.is_boolean(known):
        try:
            numbers = _converted(cells, pa.float64())
        except pa.ArrowInvalid:
            numbers = None
        if numbers is not None and not pc.any(pc.is_nan(numbers)).as_py():  # "nan" is text
            if pa.types.is_floating(known):
                return known
            try:
                _converted(cells, pa.int64())
            except pa.ArrowInvalid:
                return pa.float64()
            return pa.int64()
        if not pa.types.is_null(known):
            return pa.string()
    truth = pc.is_in(cells, pa.array([*_TRUE, *_FALSE]), skip_nulls=True)
    return pa.bool_() if pc.all(pc.or_(truth, cells.is_null())).as_py() else pa.string()


_TRUE, _FALSE = ("True", "TRUE", "true"), ("False", "FALSE", "false")


def _converted(cells: Any, kind: Any) -> Any:
    """Read text as a type, numbers with blanks around them too."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if pa.types.is_string(kind):
        return cells
    if pa.types.is_boolean(kind):
        return pc.if_else(cells.is_null(), None, pc.is_in(cells, pa.array(_TRUE)))
    try:
        return cells.cast(kind)
    except pa.ArrowInvalid:
        return pc.utf8_trim_whitespace(cells).cast(kind)


@dataclass
class _Lines:
    """What the lines of a CSV file are like."""

    header: int = 0  # bytes up to its end
    longest: int = 0  # characters of a row
    swallowed: dict[int, int] = field(default_factory=dict)  # by column, the first row


def _checked_lines(text: io.TextIOWrapper) -> tuple[list[str], _Lines]:
    """Go through a CSV file, and raise unless every row has a cell for every name in the header."""
    lines, found, row, header = _lines(text), _Lines(), 0, list[str]()
    taken: list[str] = []

    def reader(*first: str) -> Any:
        """Read a row of some lines; the last that is taken is empty where the file ends within."""

        def more() -> Iterator[str]:
            taken[:] = first
            yield from first
            for _, line in lines:
                taken.append(line)
                yield line
            taken.append("")

        return csv.reader(more())

    limit = csv.field_size_limit(_LONGEST_LINE)
    try:
        header = next((cells for cells in reader() if "".join(cells).strip() or len(cells) > 1), [])
        if not header:
            raise InputError("the file is not valid CSV: No columns, but blank lines; write it anew.")
        found.header = len("".join(taken).encode())
        _check_header(header)
        for number, line in lines:
            length = len(line)
            if '"' not in line:  # as nearly all are, and to count commas is quick
                width, cells = line.count(",") + 1, list[str]()
            else:
                cells = next(reader(line))
                width, length = len(cells), sum(map(len, taken))
                if not taken[-1]:
                    raise InputError(
                        "the file is not valid CSV: EOF inside string, the cell that a quote opens in "
                        f"line {number}; close the quote, or write the file anew if it is cut off."
                    )
            found.longest = max(found.longest, length)
            if width != len(header):
                if not line.strip():
                    continue
                raise _wrong_width(number, width, len(header))
            for k, cell in enumerate(cells):
                # From a quote that is not closed up to another one in the same column, rows later.
                if (rows := len(cell.splitlines()) - 1) > 0 and cell.count(",") >= rows * (width - 1):
                    found.swallowed.setdefault(k, row)
            row += 1
    except csv.Error as error:
        raise InputError(f"the file is not valid CSV: {error}; write it anew.") from error
    finally:
        csv.field_size_limit(limit)
    if not row:
        raise InputError("there is a header but no row beneath it; save the predictions as rows.")
    return header, found


def _lines(text: io.TextIOWrapper) -> Iterator[tuple[int, str]]:
    """Yield lines and their numbers, from 1; none of which is so long, or such, that no CSV has it."""
    for number, line in enumerate(iter(partial(text.readline, _LONGEST_LINE), ""), start=1):
        if len(line) == _LONGEST_LINE:
            raise _too_long(number)
        if "\0" in line:
            raise InputError(
                f"line {number} holds a null character, so the file is not valid CSV; save it as UTF-8."
            )
        yield number, line


def _wrong_width(line: int, cells: int, names: int) -> InputError:
    found = f"line {line} has {cells} cell{'' if cells == 1 else 's'}, and the header has {names} names"
    if cells < names:
        return InputError(f"{found}; complete it, or write the file anew if it is cut off there.")
    return InputError(f"{found}; name every column, or put text that holds commas in quotes.")


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
    rows = 0
    _start_of_text(file)
    for line, block in _blocks_of_lines(file):
        table = _objects(block, line, None)
        rows += table.num_rows
        dates = pa.types.is_temporal
        fields = [(each.name, pa.string() if dates(each.type) else each.type) for each in table.schema]
        schema = pa.schema(fields)
        if known is None:
            known = schema
        elif schema != known:
            try:
                known = pa.unify_schemas([known, schema], promote_options="permissive")
            except pa.ArrowException:
                raise _json_error(block, line, known) from None
    if not rows:
        raise InputError("there are no rows; write them anew.")
    return Survey(known, rows)


def _read_json(file: BufferedReader, survey: Survey, schema: Any) -> Iterator[Any]:
    file.seek(0)
    for line, block in _blocks_of_lines(file):
        yield from _objects(block, line, schema).to_batches()


def _blocks_of_lines(file: BufferedReader) -> Iterator[tuple[int, bytes]]:
    """Yield blocks of whole lines that hold something, and the number of the first line of each."""
    number = 1
    while block := file.read(_BLOCK):
        last = file.readline(_LONGEST_LINE)
        if len(last) == _LONGEST_LINE:
            raise _too_long(number + block.count(b"\n"))
        block += last
        if number == 1:
            block = block.removeprefix(_MARK)
        if not block.isspace():
            yield number, block
        number += block.count(b"\n")


def _objects(block: bytes, line: int, schema: Any) -> Any:
    """Read an object a line: with a schema, only what it names, and as it says."""
    import pyarrow as pa
    import pyarrow.json as pj

    block.decode()  # what is no UTF-8 is told so
    if schema is None:  # the first look at the file; to look again takes as long as to read it
        _check_depth(block, line)
    known = None if schema is None else pj.ParseOptions(schema, unexpected_field_behavior="ignore")
    try:
        return pj.read_json(io.BytesIO(block), pj.ReadOptions(False, len(block) + 1), known)
    except pa.ArrowInvalid as error:
        raise _json_error(block, line, None, error) from error


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
                        "and text a line."
                    )


def _json_error(block: bytes, first: int, before: Any, error: object = "") -> InputError:
    """Say which line of a block is the first that is not as it should be."""
    import pyarrow as pa

    known: dict[str, str] = {}
    for each in before or ():
        number = pa.types.is_integer(each.type) or pa.types.is_floating(each.type)
        known[each.name] = (
            "numbers" if number else "truth values" if pa.types.is_boolean(each.type) else "text"
        )
    for line, text in enumerate(block.split(b"\n"), start=first):
        if not text.strip():
            continue
        try:
            pairs = json.loads(text, object_pairs_hook=tuple)
        except (ValueError, RecursionError) as wrong:
            return InputError(f"line {line} is no JSON: {wrong}; write an object a line.")
        if not isinstance(pairs, tuple):
            return InputError(
                f"line {line} holds {quoted(pairs)}, and no object; write an object a line."
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
    return InputError(f"the file is not valid JSON lines: {error}; write an object a line.")


_JSON_KINDS: dict[type, str] = {str: "text", bool: "truth values", int: "numbers", float: "numbers"}


# ------------------------------------------------------------------ Parquet and Arrow


def _look_at_parquet(file: BufferedReader) -> Survey:
    import pyarrow.parquet as pq

    with pq.ParquetFile(file) as parquet:
        found = parquet.metadata
        size = sum(found.row_group(k).total_byte_size for k in range(found.num_row_groups))
        return Survey(parquet.schema_arrow, found.num_rows, size)


def _read_parquet(file: BufferedReader, survey: Survey, schema: Any) -> Iterator[Any]:
    import pyarrow.parquet as pq

    # Bytes read beforehand would stay in memory, as many as the file has.
    with pq.ParquetFile(file, pre_buffer=False, buffer_size=2**16) as parquet:
        yield from parquet.iter_batches(ROWS, columns=schema.names)


def _look_at_arrow(file: BufferedReader) -> Survey:
    import pyarrow as pa

    one = pa.ipc.IpcReadOptions(included_fields=[0])
    with pa.ipc.open_file(file, options=one) as arrow:
        rows = sum(arrow.get_batch(k).num_rows for k in range(arrow.num_record_batches))
    with pa.ipc.open_file(file) as arrow:
        return Survey(arrow.schema, rows, size_of(file))


def _read_arrow(file: BufferedReader, survey: Survey, schema: Any) -> Iterator[Any]:
    import pyarrow as pa

    with pa.ipc.open_file(file) as arrow:
        some = [arrow.schema.get_field_index(name) for name in schema.names]
    with pa.ipc.open_file(file, options=pa.ipc.IpcReadOptions(included_fields=some)) as arrow:
        for k in range(arrow.num_record_batches):
            yield arrow.get_batch(k)


_CSV = Format("CSV", _look_at_csv, _read_csv, is_text=True)
_JSON = Format("JSON lines", _look_at_json, _read_json)
_PARQUET = Format("Parquet", _look_at_parquet, _read_parquet)
_ARROW = Format("Arrow", _look_at_arrow, _read_arrow)

#: By suffix, how a file is read.
FORMATS = {
    ".parquet": _PARQUET,
    ".pq": _PARQUET,
    ".arrow": _ARROW,
    ".feather": _ARROW,
    ".ipc": _ARROW,
    ".csv": _CSV,
    ".jsonl": _JSON,
    ".ndjson": _JSON,
}
