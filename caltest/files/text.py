"""Tables of text: CSV and JSON lines, of which every line is looked at before any is believed."""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from io import BufferedReader
from typing import Any

import numpy as np

from caltest._parallel import BRANCHES
from caltest._visible import quoted
from caltest.data.containers import is_number, listed
from caltest.exceptions import InputError
from caltest.files.columns import check_unique
from caltest.files.formats import BLOCK, Format, Survey, first_bytes
from caltest.sampling import ROWS

_LONGEST_LINE = 2**24  # characters: names of a million classes
_DEEPEST = 64  # brackets within brackets of a line of JSON
_STRETCH = BRANCHES * ROWS  # rows of CSV whose first byte is remembered

_MARK = b"\xef\xbb\xbf"  # of UTF-8, as some programs write it


def _start_of_text(file: BufferedReader) -> int:
    """Return where text begins; raise if the file begins as another format does."""
    return len(_MARK) if first_bytes(file).startswith(_MARK) else 0


def _too_long(line: int) -> InputError:
    return InputError(f"line {line} is longer than {_LONGEST_LINE} characters; save one row per line.")


# ------------------------------------------------------------------ CSV


def _look_at_csv(file: BufferedReader) -> Survey:
    """Go through all rows, a block at a time: a type is that of a whole column."""
    import pyarrow as pa

    end, rows, kinds = _start_of_text(file), 0, dict[str, Any]()
    found = _Lines(end)
    for block in _checked_lines(file, found):
        if not kinds:
            kinds = {name or f"Unnamed: {k}": pa.null() for k, name in enumerate(found.header)}
        rows += _find_kinds(block, kinds)
    names = list(kinds)
    read = [(name, pa.float64() if pa.types.is_null(kind) else kind) for name, kind in kinds.items()]
    parts = [min(_STRETCH, found.rows - start) for start in range(0, found.rows, _STRETCH)]
    if rows != found.rows:  # a blank line may be a row or none: where rows begin is not known then
        parts, found.starts = [rows], found.starts[:1]
    return Survey(
        pa.schema(read),
        tuple(parts),
        starts=tuple((start, 0) for start in found.starts),
        block=max(BLOCK, 4 * found.longest),  # bytes of a character
        swallowed={names[column]: row for column, row in found.swallowed.items()},
    )


def _read_csv(file: BufferedReader, survey: Survey, schema: Any, part: int) -> Iterator[Any]:
    import pyarrow as pa
    import pyarrow.csv as pc

    file.seek(survey.starts[part][0])
    names = survey.schema.names
    types = {**dict.fromkeys(names, pa.string()), **dict(zip(schema.names, schema.types, strict=True))}
    options = _csv_options(names, survey.block, types, schema.names)
    with pc.open_csv(pa.PythonFile(file, mode="r"), *options) as reader:  # it reads ahead
        yield from reader


def _csv_options(
    names: Sequence[str], size: int, types: Mapping[str, Any], wanted: Sequence[str]
) -> tuple[Any, Any, Any]:
    """Options for rows without a header; only an empty cell is missing ("NA" may be a class)."""
    import pyarrow.csv as pc

    return (
        pc.ReadOptions(column_names=names, block_size=size, use_threads=False),
        pc.ParseOptions(
            newlines_in_values=True,
            invalid_row_handler=lambda row: "error" if row.text.strip() else "skip",
        ),
        pc.ConvertOptions(
            column_types=types,
            include_columns=wanted,
            null_values=[""],
            true_values=_TRUE,
            false_values=_FALSE,
            strings_can_be_null=True,
            quoted_strings_can_be_null=True,
        ),
    )


def _find_kinds(block: bytes, kinds: dict[str, Any]) -> int:
    """Say which types of columns take the cells of some rows too; return how many rows there are.

    A guess is quick, and right where it is a type of numbers without "nan" and 0x, or of truth values.
    Else the cells are looked at as the text that they are.
    """
    import pyarrow as pa
    import pyarrow.compute as pc
    import pyarrow.csv

    def read(types: Mapping[str, Any], wanted: Sequence[str]) -> Any:
        options = _csv_options(list(kinds), len(block) + 1, types, wanted)
        return pyarrow.csv.read_csv(pa.BufferReader(block), *options)

    known = {name: kind for name, kind in kinds.items() if pa.types.is_string(kind)}
    guess, careful = read(known, list(kinds)), list[str]()
    for name, kind in kinds.items():
        cells = guess.column(name)
        new, number = cells.type, pa.types.is_integer(kind) or pa.types.is_floating(kind)
        if pa.types.is_string(kind) or pa.types.is_null(new):
            continue
        if pa.types.is_floating(new) and not pc.any(pc.is_nan(cells)).as_py():
            fits = number or pa.types.is_null(kind)
        elif pa.types.is_integer(new) and b"x" not in block and b"X" not in block:
            fits = number or pa.types.is_null(kind)
            new = kind if number else new
        else:
            fits = pa.types.is_boolean(new) and (pa.types.is_boolean(kind) or pa.types.is_null(kind))
        if fits:
            kinds[name] = new
        else:
            careful.append(name)
    if careful:
        text = read(dict.fromkeys(kinds, pa.string()), careful)
        kinds.update({name: _kind_of(text.column(name), kinds[name]) for name in careful})
    return int(guess.num_rows)


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
    """What the lines of a CSV file are like, up to a byte at which a row ends."""

    end: int
    lines: int = 0  # before it
    rows: int = 0
    header: list[str] = field(default_factory=list)
    starts: list[int] = field(default_factory=list)  # of rows 0, _STRETCH, …: the byte
    longest: int = 0  # characters of a row
    swallowed: dict[int, int] = field(default_factory=dict)  # by column, the first row


def _checked_lines(file: BufferedReader, found: _Lines) -> Iterator[bytes]:
    """Yield the rows of a CSV file in blocks; raise unless each has a cell for every name.

    Of nearly all blocks it is enough to count commas. Those with quotes, or with a line that is not
    like the others, are read line by line.
    """
    limit = csv.field_size_limit(_LONGEST_LINE)
    try:
        _check_rows(file, found, found.end + 1)
        while True:
            start = found.end
            file.seek(start)
            block = file.read(BLOCK)
            block += file.readline(_LONGEST_LINE)
            if not block:
                break
            if not _are_plain(block, found):
                _check_rows(file, found, start + len(block))
                file.seek(start)
                block = file.read(found.end - start)
            yield block
    except csv.Error as error:
        raise InputError(f"the file is not valid CSV: {error}; write it again.") from error
    finally:
        csv.field_size_limit(limit)
    if not found.rows:
        raise InputError("there is a header but no row beneath it; save the predictions as rows.")


def _are_plain(block: bytes, found: _Lines) -> bool:
    """Take the rows of a block, and say so, if each is a line with as many commas as the header."""
    if any(mark in block for mark in (b'"', b"\0")) or block.count(b"\r") != block.count(b"\r\n"):
        return False
    if not block.isascii():
        block.decode()  # what is no UTF-8 is told so
    marks = np.frombuffer(block, np.uint8)
    ends, commas = np.flatnonzero(marks == ord("\n")), np.flatnonzero(marks == ord(","))
    if not block.endswith(b"\n"):
        ends = np.append(ends, len(block))
    width = len(found.header) - 1
    if len(commas) != len(ends) * width:
        return False
    begins = np.append(0, ends[:-1] + 1)
    lines = commas.reshape(len(ends), width)
    if (lines < begins[:, None]).any() or (lines > ends[:, None]).any():
        return False
    first = -found.rows % _STRETCH
    found.starts += (found.end + begins[first::_STRETCH]).tolist()
    found.longest = max(found.longest, int((ends - begins).max()))
    found.rows, found.lines, found.end = (
        found.rows + len(ends),
        found.lines + len(ends),
        found.end + len(block),
    )
    return True


def _check_rows(file: BufferedReader, found: _Lines, stop: int) -> None:
    """Read rows one by one, the header if there is none yet, until they reach a byte."""
    file.seek(found.end)
    text = io.TextIOWrapper(file, encoding="utf-8", newline="")
    lines, taken = _lines(text, found.lines + 1), list[str]()

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

    def pass_over(*some: str) -> None:
        found.lines += sum(map(bool, some))
        found.end += sum(len(each) if each.isascii() else len(each.encode()) for each in some)

    try:
        if not found.header:
            rows: Iterator[list[str]] = reader()
            header = next((each for each in rows if "".join(each).strip() or len(each) > 1), None)
            if header is None:
                raise InputError(
                    "the file is not valid CSV: No columns, but blank lines; write it again."
                )
            pass_over(*taken)
            _check_header(header)
            found.header = header
        while found.end < stop and (numbered := next(lines, None)):
            number, line = numbered
            length, taken[:] = len(line), [line]
            if '"' not in line:
                width, cells = line.count(",") + 1, list[str]()
            else:
                cells = next(reader(line))
                width, length = len(cells), sum(map(len, taken))
                if not taken[-1]:
                    raise InputError(
                        "the file is not valid CSV: EOF inside string, the cell that a quote opens in "
                        f"line {number}; close the quote, or write the file again if it is cut off."
                    )
            found.longest = max(found.longest, length)
            if width != len(found.header) and line.strip():
                raise _wrong_width(number, width, len(found.header))
            if width == len(found.header):
                for k, cell in enumerate(cells):
                    # From a quote that is not closed to another one in the same column, rows later.
                    swallowed = len(cell.splitlines()) - 1
                    if swallowed > 0 and cell.count(",") >= swallowed * (width - 1):
                        found.swallowed.setdefault(k, found.rows)
                if found.rows % _STRETCH == 0:
                    found.starts.append(found.end)
                found.rows += 1
            pass_over(*taken)
    finally:
        text.detach()


def _lines(text: io.TextIOWrapper, first: int) -> Iterator[tuple[int, str]]:
    """Yield lines and their numbers; none of which is so long, or such, that no CSV has it."""
    for number, line in enumerate(iter(partial(text.readline, _LONGEST_LINE), ""), start=first):
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
        return InputError(f"{found}; complete it, or write the file again if it is cut off there.")
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
    parts, starts = list[int](), list[tuple[int, int]]()
    _start_of_text(file)
    for start, line, block in _blocks_of_lines(file, 1):
        table = _objects(block, line, None)
        parts.append(table.num_rows)
        starts.append((start, line))
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
    if not sum(parts):
        raise InputError("there are no rows; write the file again.")
    return Survey(known, tuple(parts), starts=tuple(starts))


def _read_json(file: BufferedReader, survey: Survey, schema: Any, part: int) -> Iterator[Any]:
    start, number = survey.starts[part]
    file.seek(start)
    for _, line, block in _blocks_of_lines(file, number):
        yield from _objects(block, line, schema).to_batches()


def _blocks_of_lines(file: BufferedReader, number: int) -> Iterator[tuple[int, int, bytes]]:
    """Yield blocks of whole lines that hold something, with the byte and the line where each begins."""
    start = file.tell()
    while block := file.read(BLOCK):
        last = file.readline(_LONGEST_LINE)
        if len(last) == _LONGEST_LINE:
            raise _too_long(number + block.count(b"\n"))
        block += last
        if number == 1:
            block = block.removeprefix(_MARK)
        if not block.isspace():
            yield start, number, block
        number, start = number + block.count(b"\n"), file.tell()


def _objects(block: bytes, line: int, schema: Any) -> Any:
    """Read an object per line: with a schema, only what it names, and as it says."""
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
                        "and text per line."
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


CSV = Format("CSV", _look_at_csv, _read_csv, is_text=True)
JSON_LINES = Format("JSON lines", _look_at_json, _read_json)
