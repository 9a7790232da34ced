"""Formats: Parquet, Arrow, CSV, JSON lines, and arrays (NPY, NPZ).

A format of tables is two functions: one looks at a file once and says what it holds and in which parts;
the other reads some of its columns from a part on, so that several processes may read one file. A new
format is these two and a line in `FORMATS`.

Text is read by pyarrow, a block of whole rows at a time. The first look at a file checks all of it,
since the type of a column depends on all its cells, and keeps where blocks begin.
"""

from __future__ import annotations

import csv
import io
import re
import zipfile
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from io import BufferedReader
from itertools import pairwise
from typing import IO, Any, NamedTuple, TypeAlias

import numpy as np

from caltest._parallel import check_fits
from caltest._sums import Places
from caltest._visible import quoted
from caltest.data.containers import check_distinct, listed, read_table, shape_of
from caltest.exceptions import Argument, InputError
from caltest.files.columns import COPIES, Content, Roles, cells_in, check_there, unread_note
from caltest.files.paths import first_bytes, is_remote, reading, size_of
from caltest.sampling import ROWS
from caltest.spelling import is_number

#: Which of a table's columns are read: in text, the types of others are not looked for.
Wanted: TypeAlias = Callable[[Sequence[str]], Collection[str]]

_BUFFERS = 2**27  # bytes of all columns of Parquet that are read from another machine at once


@dataclass(frozen=True)
class Survey:
    """What a file holds: a schema of Arrow, its parts, and what the format's reader wants to know."""

    schema: Any
    parts: tuple[int, ...]  # rows of each row group, record batch, or range of text
    nbytes: float = 0.0  # of its table, as far as it is known
    starts: tuple[int, ...] = ()  # for text: the byte where each part begins
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
    look: Callable[[BufferedReader, Wanted], Survey]
    batches: Callable[[BufferedReader, Survey, Any, int], Iterator[Any]]  # from a part on; of a schema
    is_text: bool = False  # whether cells have no types, so that groups stay as they are written


def cast(batch: Any, schema: Any) -> Any:
    """Return a batch with these columns, of these types; what does not fit them raises."""
    import pyarrow as pa

    batch.validate(full=True)
    pairs = zip([batch.column(name) for name in schema.names], schema.types, strict=True)
    return pa.record_batch([c if c.type == kind else c.cast(kind) for c, kind in pairs], schema=schema)


def one_type(column: str, kinds: Sequence[Any], parts: Sequence[str], role: str) -> Any:
    """Return the type of a column of several parts that holds what all of them hold.

    A "group" of several types is read as text, and so is a "number" that is not always one, so that the
    cell is found that is none.

    Raises
    ------
    InputError
        If labels have none: numbers in one part and text, truth values or dates in another.
    """
    import pyarrow as pa

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

    first_bytes(file, b"PAR1")
    with pq.ParquetFile(file) as parquet:
        found = parquet.metadata
        groups = [found.row_group(k) for k in range(found.num_row_groups)]
        size = sum(group.total_byte_size for group in groups)
        return Survey(parquet.schema_arrow, tuple(group.num_rows for group in groups), size)


def _read_parquet(file: BufferedReader, survey: Survey, schema: Any, part: int) -> Iterator[Any]:
    import pyarrow.parquet as pq

    # No bytes are read beforehand, as all of them would stay in memory; from afar many come at once.
    size = max(2**16, min(2**22, _BUFFERS // len(schema.names))) if is_remote(file) else 2**16
    with pq.ParquetFile(file, pre_buffer=False, buffer_size=size) as parquet:
        groups = range(part, parquet.num_row_groups)
        yield from parquet.iter_batches(ROWS, groups, schema.names, use_threads=False)


def _look_at_arrow(file: BufferedReader, _: Wanted) -> Survey:
    import pyarrow as pa

    first_bytes(file, b"ARROW1")
    with pa.ipc.open_file(file, options=pa.ipc.IpcReadOptions(included_fields=[0])) as arrow:
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


# ------------------------------------------------------------------ text

BLOCK = 2**20  # bytes that are parsed at once
_LONGEST_ROW = 2**24  # bytes: names of a million classes
_MARK = b"\xef\xbb\xbf"  # of UTF-8, as some programs write it
_DEEPEST = 64  # brackets within brackets of a line of JSON: pyarrow crashes on thousands
_JSON_TEXT = re.compile(rb'"(?:\\.|[^"\\])*"')
#: A cell of CSV in quotes; if the quote is not closed, all that follows.
_QUOTED = re.compile(rb'(?:\A|(?<=[,\r\n]))"[^"]*(?:""[^"]*)*("|\Z)')
_HEADER = re.compile(rb"(?:[ \t]*[\r\n])*([^\r\n]+(?:\r?\n|\r)?)")


class _Lines(NamedTuple):
    """Whole rows of a file, and the byte and the line where they begin."""

    start: int
    line: int
    text: bytes
    masked: bytes  # with cells in quotes overwritten, and null bytes where a quote is open

    def line_at(self, position: int) -> int:
        """Return the number of the line in which a byte of the text is."""
        if b"\r" in self.text:
            return self.line + len((self.text[:position] + b".").splitlines()) - 1
        return self.line + self.text.count(b"\n", 0, position)


def _lines(file: BufferedReader, *, quotes: bool = False) -> Iterator[_Lines]:
    """Yield blocks of whole rows: a line break within quotes does not end a row of CSV."""
    start, line, held = len(_MARK) if first_bytes(file).startswith(_MARK) else 0, 1, b""
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
    """Read the blocks from one on."""
    for start, end in list(pairwise((*survey.starts, survey.size)))[part:]:
        file.seek(start)
        yield from parse(file.read(end - start), survey.schema.names, schema).to_batches()


# ------------------------------------------------------------------ CSV


def _look_at_csv(file: BufferedReader, wanted: Wanted) -> Survey:
    """Go through all rows, a block at a time: a type is that of a whole column."""
    import pyarrow as pa
    import pyarrow.compute as pc

    names, kinds, swallowed = list[str](), dict[str, set[Any]](), dict[str, int]()
    parts, starts = list[int](), list[int]()
    for lines in _lines(file, quotes=True):
        if (place := lines.masked.find(b"\0")) >= 0:
            line = lines.line_at(place)
            if lines.text[place]:
                raise InputError(
                    "the file is not valid CSV: EOF inside string, the cell that a quote opens in line "
                    f"{line}; close the quote, or write the file again if it is cut off."
                )
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
            is_nan = nan and pa.types.is_floating(column.type) and pc.any(pc.is_nan(column)).as_py()
            seen.add(pa.string() if is_nan else column.type)  # "nan" is text
        if several:
            for name, column in zip(names, found.columns, strict=True):
                for row, cell in enumerate(map(str, column.to_pylist()), start=sum(parts)):
                    # From a quote that is not closed to another one in the same column, rows later.
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
    """Read some of the columns with the types that are known, or those of a schema.

    Only an empty cell is missing, as "NA" may be a class.
    """
    import pyarrow as pa
    import pyarrow.csv as pc

    wrong: list[Any] = []

    def handled(row: Any) -> str:
        if not row.text.strip():
            return "skip"
        wrong.append(row)
        return "error"

    parse = pc.ParseOptions(newlines_in_values=True, invalid_row_handler=handled)
    parse.ignore_empty_lines = len(names) > 1  # of one column it is a row, but at the end
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
    if count < width:
        do = "complete it, or write the file again if it is cut off there"
    found = f"{count} cell{'s' * (count != 1)}, and the header has {width} names"
    line = lines.line_at(place.start() if place else 0)
    raise InputError(f"line {line} has {found}; {do}.")


def kind_of(seen: Iterable[Any]) -> Any:
    """Return the type of a column from those of its blocks: text if no other holds all cells."""
    import pyarrow as pa

    numbers, known = {pa.int64(), pa.float64()}, {*seen} - {pa.null()}
    if len(known) == 1 and known <= {*numbers, pa.bool_()}:
        return known.pop()
    return pa.float64() if known <= numbers else pa.string()


def _check_header(header: list[str]) -> None:
    """Raise if the names of a CSV file's columns look like something else."""
    if len(header) == 1 and (mark := next((c for c in ";\t|" if c in header[0]), None)):
        found = f"the header has no comma but {mark!r}, which seems to separate the columns"
        raise InputError(f"{found}; save the file with commas.")
    if all(is_number(cell) for cell in header):
        found = f"the first line looks like numbers ({listed(header, 4)}), not names of columns"
        raise InputError(f"{found}; add a header, for instance cat,dog,label.")
    check_distinct(header)


# ------------------------------------------------------------------ JSON lines


def _too_deep(text: bytes) -> Places:
    """Return the places where more than 64 brackets, not those within text, are open."""
    bare = np.frombuffer(_JSON_TEXT.sub(lambda cell: b" " * len(cell[0]), text), np.uint8)
    steps = np.isin(bare, list(b"[{")).astype(np.int64) - np.isin(bare, list(b"]}"))
    return np.flatnonzero(steps.cumsum() > _DEEPEST)


def _look_at_json(file: BufferedReader, _: Wanted) -> Survey:
    """Go through all objects: a type is that of a column in all of them, and dates stay text."""
    import pyarrow as pa

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
        except pa.ArrowException:  # parse it again by what is known, to say where it differs
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
    """Read an object per line: with a schema, only what it names, and as it says."""
    import pyarrow as pa
    import pyarrow.json as pj

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


# ------------------------------------------------------------------ arrays: NPY and NPZ

MAGIC, _ZIP = b"\x93NUMPY", b"PK\x03\x04"
_PROBS = ("probs", "probabilities", "p", "y_prob")


def _loaded(file: IO[bytes], size: int, what: str) -> np.ndarray:
    """Read a whole array of so many bytes, if it fits into memory."""
    check_fits(COPIES * size, what, "save fewer rows in the file")
    array = np.asarray(np.load(file, allow_pickle=False))
    if array.dtype.kind == "U":
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
    """Read a single array, a table with a column of labels."""
    check_array(file, roles)
    table = _loaded(file, size_of(file), "the array")
    if roles.may_lack_labels:
        return Content(roles, table, None, {})
    label = column_of_labels(table.shape, roles)
    return Content(roles, np.delete(table, label, axis=1), table[:, label], {})


def check_array(file: BufferedReader, roles: Roles) -> None:
    """Raise unless a file begins as a single array does, of which no columns are named."""
    of = roles.numbers.names if roles.numbers else ()
    given = (*roles.groups, *roles.features, roles.weights, *of)
    if named := [name for name in given if name is not None]:
        do = "save probs, labels and what belongs to the rows as CSV, Parquet or NPZ"
        raise InputError(f"an array has no names, so there is no column {quoted(named[0])}; {do}.")
    _check_kind(file, MAGIC, roles)


def column_of_labels(shape: tuple[int, ...], roles: Roles) -> int:
    """Say which column of an array holds the labels."""
    if len(shape) != 2 or shape[1] < 2:
        raise InputError(
            f"the array has shape {shape}, but must be a table of probabilities and one column of "
            "labels; or save probs and labels in one .npz file."
        )
    width = shape[1]
    if roles.label is None:
        raise InputError(
            f"the table has {width} columns without names; say which holds the labels, with "
            f"{Argument('label', ...)}, for instance {Argument('label', -1)} for the last."
        )
    index = int(roles.label) if re.fullmatch(r"-?\d{1,18}", roles.label) else width
    if not -width <= index < width:
        one = f"the index of one of the {width} columns, from 0 to {width - 1}, or -1 for the last"
        raise InputError(f"label is {quoted(roles.label)}, but must be {one}.")
    return index % width


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
        what = "logits" if logits else "probabilities"
        raise InputError(f"the arrays {listed(likely)} could all be the {what}; leave one in the file.")
    if of_logits:
        text = "the array {array} holds logits; give {logits}, and their softmax is taken."
        raise InputError(text, array=quoted(of_logits[0]), logits=Argument("logits", True))
    known = f"{', '.join(_PROBS[:-1])} or {_PROBS[-1]}"
    found = f"no array is called {known}; the arrays are {listed(names)}"
    raise InputError(f"{found}: save the probabilities as 'probs'.")


PARQUET = Format("Parquet", (".parquet", ".pq"), _look_at_parquet, _read_parquet)
ARROW = Format("Arrow", (".arrow", ".feather", ".ipc"), _look_at_arrow, _read_arrow)
CSV = Format("CSV", (".csv",), _look_at_csv, partial(_read_text, _parsed), is_text=True)
JSON_LINES = Format("JSON lines", (".jsonl", ".ndjson"), _look_at_json, partial(_read_text, _objects))

#: By suffix, how a file is read.
FORMATS = {suffix: each for each in (PARQUET, ARROW, CSV, JSON_LINES) for suffix in each.suffixes}
