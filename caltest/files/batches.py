"""Files that are read, and checked, a block of rows at a time: `Stored`."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Generator, Iterable, Iterator
from contextlib import closing, contextmanager, nullcontext
from dataclasses import dataclass, field, replace
from io import BufferedReader
from typing import Any

import numpy as np

from caltest._arguments import arguments
from caltest._parallel import check_fits
from caltest._sums import blocks
from caltest._visible import quoted
from caltest.alignment import bare
from caltest.data import Sample, sample
from caltest.data.containers import check_distinct, listed
from caltest.data.labels import numbers_in
from caltest.data.rows import Clustering, Extent, Weighing, check_some, checked_weights
from caltest.exceptions import Argument, InputError, Row
from caltest.files import formats, paths
from caltest.files.columns import Columns, Content, Roles, cells_in, check_held
from caltest.files.formats import FORMATS, Format, Survey, Wanted
from caltest.files.paths import Place
from caltest.sampling import ROWS

NUMPY = "NumPy"
_ORDER = Argument("columns", ...)
_COPIES_OF_TEXT = 4.0  # of a file's bytes that its table takes while it is read
_COPIES = 2.0  # of the bytes of a table
_BYTES_OF_A_CLUSTER = 250.0  # of its name, and its place among all


@dataclass(frozen=True, eq=False)
class Stored(ABC):
    """An opened file of predictions and labels, read a block of rows at a time.

    :func:`caltest.test` takes it instead of predictions and labels. Only the layout has been
    checked so far; rows are checked when they are read.

    Attributes
    ----------
    name
        Name of the file, used in error messages.
    n_samples
        Number of rows n.
    """

    name: str
    n_samples: int

    weighing: Weighing | None = field(default=None, kw_only=True)  # of the weights, if rows have some
    clustering: Clustering | None = field(default=None, kw_only=True)  # of the clusters
    logits: bool = field(default=False, kw_only=True)  # what is stored in place of probabilities

    @abstractmethod
    def _chunks(self, first: int, last: int | None) -> Iterator[Any]:
        """Yield blocks ``first`` to ``last`` of ROWS rows, as they are stored."""

    def _check(self, block: Any) -> Sample:
        """Check one of them: probabilities and labels, unless they are stored in another way."""
        return sample(*block, part=True, logits=self.logits)

    @abstractmethod
    def content(self) -> Content:
        """Read all rows, as they are."""

    @property
    def grain(self) -> int:
        """Rows of the largest part: to read rows, what precedes them in it is read too."""
        return 1

    @property
    def extent(self) -> Extent:
        """How many rows there are, and how they count."""
        return Extent.alike(self.n_samples) if self.weighing is None else self.weighing.extent

    @property
    def clusters(self) -> int | None:
        """Number of clusters G; None where rows are independent."""
        return None if self.clustering is None else self.clustering.count

    @property
    def share_between(self) -> float:
        """How many pairs of different rows there are for each of different clusters, as rows count."""
        if self.clustering is None:
            return 1.0
        shares = self.clustering.totals / self.clustering.totals.sum()
        return self.extent.pairs / self.extent.total**2 / (1.0 - float(shares @ shares))

    def samples(self, first: int = 0, last: int | None = None) -> Iterator[Sample]:
        """Read and check blocks ``first`` to ``last`` of 4096 rows, or the rest; by default all.

        They are read when iterated over: only the paths are sent to another process.
        """
        for number, block in enumerate(self._chunks(first, last), start=first):
            try:
                sample = self._check(block)
            except InputError as error:
                raise error.moved(number * ROWS).placed(self.row).within(self.name) from error
            yield sample

    def row(self, number: int) -> Row:
        """Return what messages call a row of all."""
        return Row(number)

    def _changed(self) -> InputError:
        found = f"there were {self.n_samples} rows when it was opened, and it has changed since"
        return InputError(f"{found}; do not write to it while it is read.")

    @arguments()
    def load(self, *, rounding: float | None = None) -> Sample:
        """Read all rows into memory.

        Parameters
        ----------
        rounding
            As in :func:`caltest.data.sample`.

        Raises
        ------
        InputError
            If they do not fit, or are wrong.
        """
        with paths.named(self.name):
            return self.content().checked(rounding=rounding)


# ------------------------------------------------------------------ tables


@dataclass(frozen=True, eq=False)
class StoredTable(Stored):
    """A table in one file, or in several of one kind: what the first look at each of them found."""

    files: tuple[Place, ...]
    parts: tuple[str, ...]  # what messages call them; of one file nothing
    format: Format
    surveys: tuple[Survey, ...]
    schema: Any  # of the columns that are read, in Arrow
    columns: Columns

    @property
    def grain(self) -> int:
        """Rows of the largest part of a file."""
        return max(rows for survey in self.surveys for rows in survey.parts)

    def row(self, number: int) -> Row:
        """Return what messages call a row of all: of several files, one of its own."""
        starts = np.cumsum([0, *(survey.rows for survey in self.surveys)])
        part = int(np.searchsorted(starts[1:-1], number, "right"))
        return Row(number - int(starts[part]), self.parts[part])

    def batches(self, schema: Any, start: int = 0) -> Generator[Any]:
        """Read some columns of the rows from ``start`` on, a few thousand at a time."""
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
                        yield formats.cast(batch, schema).slice(start)
                    start = max(0, start - batch.num_rows)

    def table(self, *names: str) -> Any:
        """Read some columns of all rows, or all."""
        import pyarrow as pa

        schema = _some(names or self.schema.names, self.schema)
        return pa.Table.from_batches(self.batches(schema), schema)

    def _chunks(self, first: int, last: int | None) -> Iterator[Any]:
        import pyarrow as pa

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
        """Read weights and clusters once, if rows have some."""
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
        """Read all rows, as they are."""
        check_held(self.n_samples, len(self.schema.names))
        size = _COPIES * sum(survey.nbytes for survey in self.surveys)
        check_fits(size, f"a table of {size / _COPIES / 1e6:.0f} MB", "take fewer rows or columns")
        table = self.table()
        if table.num_rows != self.n_samples:
            raise self._changed()
        with paths.placed(self.row):
            return self.columns.content(table, self.row)


def _some(names: Iterable[str], schema: Any) -> Any:
    """Return the schema of some columns."""
    import pyarrow as pa

    return pa.schema([schema.field(name) for name in names])


def _surveyed(
    path: Place, wanted: Wanted, *, whole: bool
) -> tuple[str, int, tuple[Place, ...], tuple[str, ...], Format, tuple[Survey, ...]]:
    """Look at the files of a table, and return what a `StoredTable` says of these."""
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
            raise InputError(
                f"{part} has the columns {listed(survey.schema.names)}, and the first "
                f"file has {listed(names)}; give files with the same columns."
            )
    check_distinct(names)
    if not (rows := sum(survey.rows for survey in surveys)):
        raise InputError("there are no rows; write the file again.")
    return paths.called(path), rows, tuple(files), parts, kind, tuple(surveys)


def as_texts(path: Place) -> StoredTable:
    """Open a table whose cells are all read as text; what is missing is null."""
    import pyarrow as pa

    found = _surveyed(path, lambda names: names[:1], whole=True)
    names = found[-1][0].schema.names
    check_held(found[1], len(names))
    return StoredTable(*found, pa.schema([(name, pa.string()) for name in names]), Columns(Roles(None)))


def stored_table(path: Place, roles: Roles, *, whole: bool) -> StoredTable:
    """Open the files of a table, which is to be read as a whole or a block at a time."""
    import pyarrow as pa

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
    raw = described if kind.is_text else ()
    labels = {columns.label} - {*columns.numeric}
    fields = dict.fromkeys(columns.read, pa.string())
    for name in (name for name in fields if name not in raw):
        kinds = [survey.schema.field(name).type for survey in surveys]
        role = "group" if name in described else "label" if name in labels else "number"
        own = formats.kind_of(kinds) if kind.is_text else formats.one_type(name, kinds, parts, role)
        fields[name] = own
    schema = pa.schema(list(fields.items()))
    label = columns.label and schema.field(columns.label).type.to_pandas_dtype()
    by_place = roles.columns is None and label and np.issubdtype(label, np.number)
    for part, survey in zip(parts, surveys, strict=True) if by_place else ():
        own = [name for name in survey.schema.names if name in columns.probs]
        if own != [*columns.probs] and numbers_in(bare(own)[0]) is None:
            raise InputError(
                f"labels are numbers of columns, which are {listed(own)} in {part} and in {parts[0]} "
                f"{listed(columns.probs)}; give labels as names, or one order, with {_ORDER}."
            )
    stored = StoredTable(*found, schema, replace(columns, notes=tuple(notes)))
    with paths.placed(stored.row):
        columns.check_kinds(schema, lambda name: stored.table(name).column(0).to_pylist())
    return stored if whole else stored.counted()


@contextmanager
def _opened(path: Place, kind: Format, name: str) -> Iterator[BufferedReader]:
    """Open one of the files; of several, it is named."""
    naming = paths.named(name) if name else nullcontext()
    with naming, paths.opened(path, kind.kind) as file:
        yield file


def _files(path: Place) -> tuple[list[Place], Format]:
    """Return the files of a table in the order of their names, and their format."""
    folder, several = paths.is_folder(path), paths.is_folder(path) or paths.is_pattern(path)
    found = paths.entries(path) if several else [path]
    if not found and not folder:
        raise InputError("no file matches this pattern; check it.")
    suffixes = [each.suffix.lower() for each in found]
    kind = next((each for suffix, each in FORMATS.items() if suffix in suffixes), None)
    if kind is None:
        where = "this directory holds no such files" if several else f"this is {quoted(path.suffix)}"
        advice = "give another" if several else "convert it, or read it with caltest.files.read"
        known = f"a block of rows at a time can be read from {', '.join(FORMATS)} and .npy files"
        raise InputError(f"{known}, and {where}; {advice}.")
    if others := [each.name for each in found if each.suffix.lower() not in kind.suffixes]:
        holds = "the directory holds" if folder else "the pattern matches"
        do = "give a directory of files of one kind and nothing else"
        raise InputError(f"besides {kind.suffixes[0][1:]} files {holds} {listed(others, 3)}; {do}.")
    return found, kind


# ------------------------------------------------------------------ arrays


@dataclass(frozen=True, eq=False)
class StoredArrays(Stored):
    """Arrays that may be memory-mapped: (n, m) or (n,) predictions, and (n,) labels."""

    probs: Any
    labels: Any  # or which column of the predictions they are

    def _chunks(self, first: int, last: int | None) -> Iterator[Any]:
        return map(self._part, blocks(self.n_samples, ROWS)[first:last])

    def _part(self, rows: slice) -> tuple[np.ndarray, np.ndarray]:
        probs = np.array(self.probs[rows])
        if isinstance(self.labels, int):
            return np.delete(probs, self.labels, axis=1), probs[:, self.labels]
        return probs, np.array(self.labels[rows])

    def __getstate__(self) -> dict[str, Any]:
        return {name: _by_reference(own) for name, own in vars(self).items()}

    def __setstate__(self, state: dict[str, Any]) -> None:
        for name, own in state.items():
            vars(self)[name] = _mapped(*own) if isinstance(own, tuple) else own

    def content(self) -> Content:
        """Read all rows, as they are."""
        check_held(self.n_samples, int(np.prod(self.probs.shape[1:])))
        return Content(Roles(None, logits=self.logits), *self._part(slice(None)), {})


def _by_reference(array: Any) -> Any:
    """Return what is sent to another process: of a mapped array, where in a file its numbers are."""
    root = array
    while isinstance(root, np.memmap) and isinstance(root.base, np.memmap):
        root = root.base
    mapped = isinstance(root, np.memmap) and root.filename is not None and root.mode != "c"
    if not mapped or not array.size or min(array.strides) < 0:
        return array
    first, begin = (each.__array_interface__["data"][0] for each in (array, root))
    return str(root.filename), array.dtype, array.shape, root.offset + first - begin, array.strides


def _mapped(path: str, dtype: Any, shape: Any, place: int, strides: Any) -> np.ndarray:
    return np.ndarray(shape, dtype, np.memmap(path, np.uint8, "r"), place, strides)
