"""What a format of tables is: it looks at a file, and reads blocks of rows of Arrow from it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from io import BufferedReader
from typing import Any

from caltest._visible import quoted
from caltest.exceptions import InputError

BLOCK = 2**20  # bytes of text that are parsed at once


@dataclass(frozen=True)
class Survey:
    """What a file holds: a schema of Arrow, its parts, and what the format's reader wants to know."""

    schema: Any
    parts: tuple[int, ...]  # rows of each row group, record batch, or range of text
    nbytes: float = 0.0  # of its table, as far as it is known
    starts: tuple[tuple[int, int], ...] = ()  # of text: the byte and the line where each part begins
    block: int = BLOCK  # of CSV: bytes that hold the longest row
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
    look: Callable[[BufferedReader], Survey]
    batches: Callable[[BufferedReader, Survey, Any, int], Iterator[Any]]  # from a part on; of a schema
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
