"""Tables: Parquet, Arrow, CSV and JSON lines, read whole or block by block.

A format is two functions: one surveys a file once and returns its content and parts; the other reads
some of its columns from a given part on, so that several processes can read one file. A new format
needs these two functions and a line in `FORMATS`.

Text is parsed by pyarrow, a block of whole rows at a time. The survey checks the whole file, because
the type of a column depends on all its cells, and records where blocks begin.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Callable, Collection, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, nullcontext
from dataclasses import dataclass, field, replace
from functools import partial
from io import BufferedReader
from itertools import pairwise
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.csv as pc
import pyarrow.json as pj

from caltest._parallel import check_fits
from caltest._sums import Places, blocks
from caltest._visible import quoted
from caltest.alignment import bare
from caltest.data import Sample
from caltest.data.containers import check_distinct, listed
from caltest.data.labels import numbers_in
from caltest.data.rows import Clustering, Weighing, check_some, checked_weights
from caltest.exceptions import Argument, InputError, Row
from caltest.files import paths
from caltest.files.batches import Stored
from caltest.files.columns import Columns, Content, Roles, cells_in, check_held
from caltest.files.paths import Place
from caltest.sampling import ROWS
from caltest.spelling import is_number

#: Columns of a table to read; for text, the types of other columns are not inferred.
Wanted: TypeAlias = Callable[[Sequence[str]], Collection[str]]

_ORDER = Argument("columns", ...)
_COPIES_OF_TEXT = 4.0  # times the bytes of a file, while its table is read
_COPIES = 2.0  # times the bytes of a table
_BYTES_OF_A_CLUSTER = 250.0  # for its name and its index
_BUFFERS = 2**27  # bytes buffered over all columns of a remote Parquet file


@dataclass(frozen=True)
class Survey:
    """A first look at a file: its Arrow schema, its parts, and details for the reader of its format."""

    schema: Any
    parts: tuple[int, ...]  # rows of each row group, record batch, or range of text
    nbytes: float = 0.0  # of its table, if known
    starts: tuple[int, ...] = ()  # for text: first byte of each part
    swallowed: Mapping[str, int] = field(default_factory=dict)  # by column, first row that holds others
    size: int = 0  # bytes of the file

    @property
    def rows(self) -> int:
        """Number of rows in all parts."""
        return sum(self.parts)


@dataclass(frozen=True)
class Format:
    """A file format: how to survey and read its files."""

    kind: str
    suffixes: tuple[str, ...]
    look: Callable[[BufferedReader, Wanted], Survey]
    batches: Callable[[BufferedReader, Survey, Any, int], Iterator[Any]]  # from a part on, by a schema
    is_text: bool = False  # whether cells have no types; groups then stay as written


def cast(batch: Any, schema: Any) -> Any:
    """Return a batch with the columns and types of a schema; raise if they do not fit."""
    batch.validate(full=True)
    pairs = zip([batch.column(name) for name in schema.names], schema.types, strict=True)
    return pa.record_batch([c if c.type == kind else c.cast(kind) for c, kind in pairs], schema=schema)


def one_type(column: str, kinds: Sequence[Any], parts: Sequence[str], role: str) -> Any:
    """Return the common type for a column that has several parts.

    A "group" with several types is read as text; so is a "number" with several, so that the invalid
    cell can be found.

    Raises
    ------
    InputError
        If labels have none: numbers in one part and text, truth values or dates in another.
    """
    plain = [kind.value_type if pa.types.is_dictionary(kind) else kind for kind in kinds]
    known = {kind: part for kind, part in zip(plain, parts, strict=True) if kind != pa.null()}
    nested = any(pa.types.is_nested(kind) or pa.types.is_float16(kind) for kind in known)
    if role == "group" and len(known) > 1 and not nested:
        return pa.string()
    schemas = [pa.schema([(column, kind)]) for kind in plain]
    try:
        return pa.unify_schemas(schemas, promote_options="permissive").field(0).type
    except pa.ArrowException as error:
        if role == "number" and not nested:
            return pa.string()
        one, other, *_ = (f"{kind} in {part}" for kind, part in known.items())
        do = "save all files with the same types"
        raise InputError(f"column {quoted(column)} is {one} and {other}; {do}.") from error


# ------------------------------------------------------------------ Parquet and Arrow


def _look_at_parquet(file: BufferedReader, _: Wanted) -> Survey:
    import pyarrow.parquet as pq

    paths.first_bytes(file, b"PAR1")
    with pq.ParquetFile(file) as parquet:
        found = parquet.metadata
        groups = [found.row_group(k) for k in range(found.num_row_groups)]
        size = sum(group.total_byte_size for group in groups)
        return Survey(parquet.schema_arrow, tuple(group.num_rows for group in groups), size)


def _read_parquet(file: BufferedReader, survey: Survey, schema: Any, part: int) -> Iterator[Any]:
    import pyarrow.parquet as pq

    # Buffer nothing ahead, since it would all stay in memory; but read large pieces from remote files.
    size = max(2**16, min(2**22, _BUFFERS // len(schema.names))) if paths.is_remote(file) else 2**16
    with pq.ParquetFile(file, pre_buffer=False, buffer_size=size) as parquet:
        groups = range(part, parquet.num_row_groups)
        yield from parquet.iter_batches(ROWS, groups, schema.names, use_threads=False)


def _look_at_arrow(file: BufferedReader, _: Wanted) -> Survey:
    paths.first_bytes(file, b"ARROW1")
    with pa.ipc.open_file(file, options=pa.ipc.IpcReadOptions(included_fields=[0])) as arrow:
        parts = tuple(arrow.get_batch(k).num_rows for k in range(arrow.num_record_batches))
    with pa.ipc.open_file(file) as arrow:
        return Survey(arrow.schema, parts, paths.size_of(file))


def _read_arrow(file: BufferedReader, survey: Survey, schema: Any, part: int) -> Iterator[Any]:
    with pa.ipc.open_file(file) as arrow:
        some = [arrow.schema.get_field_index(name) for name in schema.names]
    with pa.ipc.open_file(file, options=pa.ipc.IpcReadOptions(included_fields=some)) as arrow:
        for k in range(part, arrow.num_record_batches):
            yield arrow.get_batch(k)


# ------------------------------------------------------------------ text

BLOCK = 2**20  # bytes that are parsed at once
_LONGEST_ROW = 2**24  # bytes: names of a million classes
_MARK = b"\xef\xbb\xbf"  # UTF-8 byte order mark, as some programs write it
_DEEPEST = 64  # nested brackets in a line of JSON: pyarrow crashes on thousands
_JSON_TEXT = re.compile(rb'"(?:\\.|[^"\\])*"')
#: A quoted cell of CSV; if the quote is never closed, the rest of the text.
_QUOTED = re.compile(rb'(?:\A|(?<=[,\r\n]))"[^"]*(?:""[^"]*)*("|\Z)')
_HEADER = re.compile(rb"(?:[ \t]*[\r\n])*([^\r\n]+(?:\r?\n|\r)?)")


class _Lines(NamedTuple):
    """Whole rows of a file, with the byte and line where they begin."""

    start: int
    line: int
    text: bytes
    masked: bytes  # with quoted cells overwritten, and null bytes after an open quote

    def line_at(self, position: int) -> int:
        """Return the number of the line that contains a byte of the text."""
        if b"\r" in self.text:
            return self.line + len((self.text[:position] + b".").splitlines()) - 1
        return self.line + self.text.count(b"\n", 0, position)


def _lines(file: BufferedReader, *, quotes: bool = False) -> Iterator[_Lines]:
    """Yield blocks of whole rows; a line break within quotes does not end a row of CSV."""
    start, line, held = len(_MARK) if paths.first_bytes(file).startswith(_MARK) else 0, 1, b""
    file.seek(start)
    while more := file.read(max(BLOCK, len(held))):
        held += more
        masked = held
        if quotes and b'"' in held:
            masked = _QUOTED.sub(lambda cell: (b"x" if cell[1] else b"\0") * len(cell[0]), held)
        whole = masked.rfind(b"\n") + 1 or masked.rfind(b"\r", 0, -1) + 1
        end = whole if file.peek(1) else len(held)
        found, held = _Lines(start, line, held[:end], masked[:end]), held[end:]
        start, line = start + end, found.line_at(end)
        if len(held) > _LONGEST_ROW:
            do = "save one row per line, and close every quote"
            raise InputError(f"line {line} is longer than {_LONGEST_ROW} characters; {do}.")
        found.text.decode()  # raises where it is not UTF-8
        if found.text.strip(b"\r\n"):
            yield found


def _read_text(
    parse: Callable[..., Any], file: BufferedReader, survey: Survey, schema: Any, part: int
) -> Iterator[Any]:
    """Yield the rows from part ``part`` on."""
    for start, end in list(pairwise((*survey.starts, survey.size)))[part:]:
        file.seek(start)
        yield from parse(file.read(end - start), survey.schema.names, schema).to_batches()


# ------------------------------------------------------------------ CSV


def _look_at_csv(file: BufferedReader, wanted: Wanted) -> Survey:
    """Scan all rows block by block: the type of a column depends on all its cells."""
    names, kinds, swallowed = list[str](), dict[str, set[Any]](), dict[str, int]()
    parts, starts = list[int](), list[int]()
    for lines in _lines(file, quotes=True):
        if (place := lines.masked.find(b"\0")) >= 0:
            line = lines.line_at(place)
            if lines.text[place]:
                cell = f"the cell that a quote opens in line {line}"
                do = "close the quote, or write the file again if it is cut off"
                raise InputError(f"the file is not valid CSV: EOF inside string, {cell}; {do}.")
            do = "save it as UTF-8"
            raise InputError(f"line {line} holds a null character, so the file is not valid CSV; {do}.")
        if not names:
            if not (header := _HEADER.match(lines.masked)):
                continue
            first = io.StringIO(lines.text[slice(*header.span(1))].decode(), newline="")
            _check_header(names := next(csv.reader(first)))
            names = [name or f"Unnamed: {k}" for k, name in enumerate(names)]
            chosen = set(wanted(names))
            kinds = {name: set() for name in names if name in chosen}
            end, (start, _, text, masked) = header.end(), lines
            lines = _Lines(start + end, lines.line_at(end), text[end:], masked[end:])
        if not lines.text.strip(b"\r\n"):
            continue
        as_text = {name: pa.string() for name, seen in kinds.items() if pa.string() in seen}
        several = b'"' in lines.text and lines.text.count(b"\n") > lines.masked.count(b"\n")
        some = names if several else list(kinds)
        found, nan = _parsed(lines.text, names, as_text, some, lines), b"nan" in lines.text.lower()
        for name, seen in kinds.items():
            column = found.column(name)
            is_nan = nan and pa.types.is_floating(column.type) and np.isnan(column.drop_null()).any()
            seen.add(pa.string() if is_nan else column.type)  # "nan" is text
        if several:
            for name, column in zip(names, found.columns, strict=True):
                for row, cell in enumerate(map(str, column.to_pylist()), start=sum(parts)):
                    # From an unclosed quote to another in the same column, rows later.
                    further = len(cell.splitlines()) - 1
                    if further > 0 and cell.count(",") >= further * (len(names) - 1):
                        swallowed.setdefault(name, row)
        parts.append(found.num_rows)
        starts.append(lines.start)
    if not names:
        raise InputError("the file is not valid CSV: No columns, but blank lines; write it again.")
    if not sum(parts):
        raise InputError("there is a header but no row beneath it; save the predictions as rows.")
    schema = pa.schema([(name, kind_of(kinds.get(name, ()))) for name in names])
    return Survey(schema, tuple(parts), starts=tuple(starts), swallowed=swallowed)


def _parsed(text: bytes, names: Sequence[str], types: Any, some: Any = None, lines: Any = None) -> Any:
    """Parse some columns of CSV, with the known types or those of a schema.

    Only empty cells are missing, because "NA" may be a class.
    """
    wrong: list[Any] = []

    def handled(row: Any) -> str:
        if not row.text.strip():
            return "skip"
        wrong.append(row)
        return "error"

    parse = pc.ParseOptions(newlines_in_values=True, invalid_row_handler=handled)
    parse.ignore_empty_lines = len(names) > 1  # with one column it is a row, except at the end
    text = text if len(names) > 1 else text.rstrip(b"\r\n")
    words: Any = {"true_values": ["True", "TRUE", "true"], "false_values": ["False", "FALSE", "false"]}
    words |= {"null_values": [""], "strings_can_be_null": True, "quoted_strings_can_be_null": True}
    read = types.names if some is None else some
    convert = pc.ConvertOptions(column_types=types, include_columns=read, **words)
    options = pc.ReadOptions(column_names=names, block_size=len(text) + 1, use_threads=False)
    try:
        return pc.read_csv(pa.BufferReader(text), options, parse, convert)
    except pa.ArrowInvalid:
        if not wrong or lines is None:
            raise
    row = re.escape(wrong[0].text.encode())
    place = re.search(rb"(?:\A|(?<=[\r\n]))" + row + rb"(?=[\r\n]|\Z)", text)
    count, width = wrong[0].actual_columns, wrong[0].expected_columns
    do = "name every column, or put text that holds commas in quotes"
    do = "complete it, or write the file again if it is cut off there" if count < width else do
    found = f"{count} cell{'s' * (count != 1)}, and the header has {width} names"
    line = lines.line_at(place.start() if place else 0)
    raise InputError(f"line {line} has {found}; {do}.")


def kind_of(seen: Iterable[Any]) -> Any:
    """Return the type of a column from those of its blocks: text if nothing else holds all cells."""
    numbers, known = {pa.int64(), pa.float64()}, {*seen} - {pa.null()}
    if len(known) == 1 and known <= {*numbers, pa.bool_()}:
        return known.pop()
    return pa.float64() if known <= numbers else pa.string()


def _check_header(header: list[str]) -> None:
    """Raise if the header of a CSV file does not look like column names."""
    if len(header) == 1 and (mark := next((c for c in ";\t|" if c in header[0]), None)):
        found = f"the header has no comma but {mark!r}, which seems to separate the columns"
        raise InputError(f"{found}; save the file with commas.")
    if all(is_number(cell) for cell in header):
        found = f"the first line looks like numbers ({listed(header, 4)}), not names of columns"
        raise InputError(f"{found}; add a header, for instance cat,dog,label.")
    check_distinct(header)


# ------------------------------------------------------------------ JSON lines


def _too_deep(text: bytes) -> Places:
    """Return positions where more than 64 brackets are open, ignoring those within text."""
    bare = np.frombuffer(_JSON_TEXT.sub(lambda cell: b" " * len(cell[0]), text), np.uint8)
    steps = np.isin(bare, list(b"[{")).astype(np.int64) - np.isin(bare, list(b"]}"))
    return np.flatnonzero(steps.cumsum() > _DEEPEST)


def _look_at_json(file: BufferedReader, _: Wanted) -> Survey:
    """Scan all objects: the type of a column depends on all of them, and dates stay text."""
    known: Any = None
    parts, starts = list[int](), list[int]()
    for lines in _lines(file):
        if lines.text.isspace():
            continue
        opened = lines.text.count(b"[") + lines.text.count(b"{") - lines.text.count(b"\n")
        if opened > _DEEPEST and len(deep := _too_deep(lines.text)):
            found = f"line {lines.line_at(int(deep[0]))} is nested more than {_DEEPEST} deep"
            raise InputError(f"{found}; write an object of numbers and text per line.")
        found = _objects(lines.text, before=sum(parts))
        kinds = [pa.string() if pa.types.is_temporal(kind) else kind for kind in found.schema.types]
        schema = pa.schema(list(zip(found.schema.names, kinds, strict=True)))
        try:
            if schema != known:
                known = pa.unify_schemas([known or schema, schema], promote_options="permissive")
        except pa.ArrowException:  # parse again with the known schema to say where it differs
            kinds = [pa.float64() if pa.types.is_integer(kind) else kind for kind in known.types]
            known = pa.schema(list(zip(known.names, kinds, strict=True)))
            _objects(lines.text, schema=known, before=sum(parts))
            raise
        parts.append(found.num_rows)
        starts.append(lines.start)
    if not sum(parts):
        raise InputError("there are no rows; write the file again.")
    return Survey(known, tuple(parts), starts=tuple(starts))


def _objects(text: bytes, _: Any = None, schema: Any = None, before: int = 0) -> Any:
    """Parse an object per line; with a schema, only the fields it names, with its types."""
    known = None if schema is None else pj.ParseOptions(schema, unexpected_field_behavior="ignore")
    try:
        return pj.read_json(pa.BufferReader(text), pj.ReadOptions(False, len(text) + 1), known)
    except pa.ArrowInvalid as error:
        told = re.fullmatch(r"JSON parse error: (.*?)\.? in row (\d+)", str(error), re.DOTALL)
        if not told:
            raise
        other = "it needs an object, and there is an"
        found = told[1].replace("Column() changed from object to", other)
        found = re.sub(r"^Column\(/(.*)\)", lambda of: f"column {quoted(of[1])}", found)
        text_of = "the file is not valid JSON lines: {found} in {row}; write an object per line, with "
        do = "every name once, and values of one kind in a column."
        raise InputError(text_of + do, found=found, row=before + int(told[2])) from error


PARQUET = Format("Parquet", (".parquet", ".pq"), _look_at_parquet, _read_parquet)
ARROW = Format("Arrow", (".arrow", ".feather", ".ipc"), _look_at_arrow, _read_arrow)
CSV = Format("CSV", (".csv",), _look_at_csv, partial(_read_text, _parsed), is_text=True)
JSON_LINES = Format("JSON lines", (".jsonl", ".ndjson"), _look_at_json, partial(_read_text, _objects))

#: Formats by suffix.
FORMATS = {suffix: each for each in (PARQUET, ARROW, CSV, JSON_LINES) for suffix in each.suffixes}


# ------------------------------------------------------------------ tables


@dataclass(frozen=True, eq=False)
class StoredTable(Stored):
    """A table in one file or in several of the same format, with the survey of each file."""

    files: tuple[Place, ...]
    parts: tuple[str, ...]  # their names in messages; empty for a single file
    format: Format
    surveys: tuple[Survey, ...]
    schema: Any  # of the columns to read, in Arrow
    columns: Columns

    @property
    def grain(self) -> int:
        """Rows of the largest part of a file."""
        return max(rows for survey in self.surveys for rows in survey.parts)

    def row(self, number: int) -> Row:
        """Return the row's name in messages: for several files, the row within its file."""
        starts = np.cumsum([0, *(survey.rows for survey in self.surveys)])
        part = int(np.searchsorted(starts[1:-1], number, "right"))
        return Row(number - int(starts[part]), self.parts[part])

    def batches(self, schema: Any, start: int = 0) -> Generator[Any]:
        """Yield some columns of the rows from ``start`` on, a few thousand rows at a time."""
        for path, name, survey in zip(self.files, self.parts, self.surveys, strict=True):
            if start >= survey.rows:
                start -= survey.rows
                continue
            ends = np.cumsum(survey.parts)
            part = int(np.searchsorted(ends, start, "right"))
            start -= int(ends[part]) - survey.parts[part]
            with _opened(path, self.format, name) as file:
                if paths.size_of(file) != survey.size:
                    raise self._changed()
                own = schema if self.format.is_text else _some(schema.names, survey.schema)
                for batch in self.format.batches(file, survey, own, part):
                    if start < batch.num_rows:
                        yield cast(batch, schema).slice(start)
                    start = max(0, start - batch.num_rows)

    def table(self, *names: str) -> Any:
        """Read some columns of all rows, or all columns."""
        schema = _some(names or self.schema.names, self.schema)
        return pa.Table.from_batches(self.batches(schema), schema)

    def _chunks(self, first: int, last: int | None) -> Iterator[Any]:
        held: list[Any] = []
        wanted = blocks(self.n_samples, ROWS)[first:last]
        with paths.named(self.name), closing(self.batches(self.schema, wanted[0].start)) as batches:
            for rows in wanted:
                count = rows.stop - rows.start
                while sum(each.num_rows for each in held) < count:
                    if (batch := next(batches, None)) is None:
                        raise self._changed()
                    held.append(batch)
                table = pa.Table.from_batches(held)
                held = table.slice(count).to_batches()
                yield table.slice(0, count)

    def _check(self, block: Any) -> Sample:
        return self.columns.content(block).checked_part(self.weighing, self.clustering)

    def counted(self) -> StoredTable:
        """Return a copy with weights and clusters read once, if there are any."""
        roles, rows = self.columns.roles, 0
        weighing = None if roles.weights is None else Weighing()
        clustering = None if roles.clusters is None else Clustering()
        names = [name for name in (roles.weights, roles.clusters) if name is not None]
        for batch in self.batches(_some(names, self.schema)) if names else ():
            weights = None
            try:
                if weighing is not None:
                    weights = checked_weights(batch.column(0).to_pylist(), batch.num_rows)
                    weighing.add(weights)
                if clustering is not None:
                    cells = cells_in(batch.column(len(names) - 1), names[-1])
                    clustering.add(roles.clustered(cells), weights)
                    what = f"the names of {len(clustering)} clusters"
                    do = "cluster by what holds more rows, or test some of the clusters"
                    check_fits(_BYTES_OF_A_CLUSTER * len(clustering), what, do)
            except InputError as error:
                raise error.moved(rows).placed(self.row) from error
            rows += batch.num_rows
        if weighing is not None:
            check_some(weighing.largest)
        clustering = None if clustering is None else clustering.counted()
        return replace(self, weighing=weighing, clustering=clustering)

    def content(self) -> Content:
        """Read all rows, unchecked."""
        check_held(self.n_samples, len(self.schema.names))
        size = _COPIES * sum(survey.nbytes for survey in self.surveys)
        check_fits(size, f"a table of {size / _COPIES / 1e6:.0f} MB", "take fewer rows or columns")
        if (table := self.table()).num_rows != self.n_samples:
            raise self._changed()
        with paths.placed(self.row):
            return self.columns.content(table, self.row)


def _some(names: Iterable[str], schema: Any) -> Any:
    """Return the schema of some columns."""
    return pa.schema([schema.field(name) for name in names])


#: Arguments of a `StoredTable` that describe its files.
Surveyed: TypeAlias = tuple[str, int, tuple[Place, ...], tuple[str, ...], Format, tuple[Survey, ...]]


def _surveyed(path: Place, wanted: Wanted, *, whole: bool) -> Surveyed:
    """Survey the files of a table."""
    files, kind = _files(path)
    parts = paths.called_apart(files) if len(files) > 1 else ("",)
    if whole and kind.is_text:
        with _opened(files[0], kind, parts[0]) as file:
            size = paths.size_of(file) * len(files)
        what = f"a {kind.kind} file of {size / 1e6:.0f} MB"
        check_fits(_COPIES_OF_TEXT * size, what, "take fewer rows, or Parquet")
    surveys = []
    for each, part in zip(files, parts, strict=True):
        with _opened(each, kind, part) as file:
            if (size := paths.size_of(file)) == 0:
                raise InputError("the file is empty; write it again.")
            surveys.append(replace(kind.look(file, wanted), size=size))
    names = surveys[0].schema.names
    for part, survey in zip(parts, surveys, strict=True):
        if sorted(survey.schema.names) != sorted(names):
            has = f"{part} has the columns {listed(survey.schema.names)}"
            first = f"the first file has {listed(names)}"
            raise InputError(f"{has}, and {first}; give files with the same columns.")
    check_distinct(names)
    if not (rows := sum(survey.rows for survey in surveys)):
        raise InputError("there are no rows; write the file again.")
    return paths.called(path), rows, tuple(files), parts, kind, tuple(surveys)


def as_texts(path: Place) -> StoredTable:
    """Open a table with all cells as text; missing ones are null."""
    found = _surveyed(path, lambda names: names[:1], whole=True)
    names = found[-1][0].schema.names
    check_held(found[1], len(names))
    return StoredTable(*found, pa.schema([(name, pa.string()) for name in names]), Columns(Roles(None)))


def stored_table(path: Place, roles: Roles, *, whole: bool) -> StoredTable:
    """Open the files of a table, to be read whole or block by block."""
    found = _surveyed(path, lambda names: Columns.of(roles, names).read, whole=whole)
    *_, parts, kind, surveys = found
    columns = Columns.of(roles, surveys[0].schema.names)
    notes = [*columns.notes]
    for part, survey in zip(parts, surveys, strict=True):
        for name, row in survey.swallowed.items():
            cell = f"cell of column {quoted(name)} at {Row(row, part)} seems to hold further rows"
            if name in columns.read:
                do = "correct it, or take the line breaks out of the cell"
                raise InputError(f"the {cell}, as if a quote were not closed; {do}.")
            notes.append(f"A {cell}: if a quote is not closed there, rows are missing.")
    described = (*columns.roles.groups, *columns.roles.features)
    labels = {columns.label} - {*columns.numeric}
    fields = dict.fromkeys(columns.read, pa.string())
    for name in (each for each in fields if not (kind.is_text and each in described)):
        kinds = [survey.schema.field(name).type for survey in surveys]
        role = "group" if name in described else "label" if name in labels else "number"
        fields[name] = kind_of(kinds) if kind.is_text else one_type(name, kinds, parts, role)
    schema = pa.schema(list(fields.items()))
    label = columns.label and schema.field(columns.label).type.to_pandas_dtype()
    by_place = roles.columns is None and label and np.issubdtype(label, np.number)
    for part, survey in zip(parts, surveys, strict=True) if by_place else ():
        own = [name for name in survey.schema.names if name in columns.probs]
        if own != [*columns.probs] and numbers_in(bare(own)[0]) is None:
            which = f"{listed(own)} in {part} and in {parts[0]} {listed(columns.probs)}"
            do = f"give labels as names, or one order, with {_ORDER}"
            raise InputError(f"labels are numbers of columns, which are {which}; {do}.")
    stored = StoredTable(*found, schema, replace(columns, notes=tuple(notes)))
    with paths.placed(stored.row):
        columns.check_kinds(schema, lambda name: stored.table(name).column(0).to_pylist())
    return stored if whole else stored.counted()


@contextmanager
def _opened(path: Place, kind: Format, name: str) -> Iterator[BufferedReader]:
    """Open one of the files; errors name it if there are several."""
    with paths.named(name) if name else nullcontext(), paths.opened(path, kind.kind) as file:
        yield file


def _files(path: Place) -> tuple[list[Place], Format]:
    """Return the files of a table, sorted by name, and their format."""
    folder, several = paths.is_folder(path), paths.is_folder(path) or paths.is_pattern(path)
    if not (found := paths.entries(path) if several else [path]) and not folder:
        raise InputError("no file matches this pattern; check it.")
    suffixes = [each.suffix.lower() for each in found]
    if (kind := next((each for suffix, each in FORMATS.items() if suffix in suffixes), None)) is None:
        where = "this directory holds no such files" if several else f"this is {quoted(path.suffix)}"
        advice = "give another" if several else "convert it, or read it with caltest.files.read"
        known = f"a block of rows at a time can be read from {', '.join(FORMATS)} and .npy files"
        raise InputError(f"{known}, and {where}; {advice}.")
    if others := [each.name for each in found if each.suffix.lower() not in kind.suffixes]:
        holds = "the directory holds" if folder else "the pattern matches"
        do = "give a directory of files of one kind and nothing else"
        raise InputError(f"besides {kind.suffixes[0][1:]} files {holds} {listed(others, 3)}; {do}.")
    return found, kind
