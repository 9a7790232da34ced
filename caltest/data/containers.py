"""Containers: any holder of numbers or names, read as a table with column names."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence, Sized
from dataclasses import dataclass
from typing import Any, TypeAlias, TypeVar

import narwhals as nw
import numpy as np
from narwhals.exceptions import DuplicateError

from caltest._arguments import check_unmasked, has
from caltest._sums import Mask
from caltest._visible import as_text, attempt, quoted, reason
from caltest.alignment import check_rows, is_xarray
from caltest.exceptions import InputError
from caltest.spelling import NAMELESS, is_missing

Read = TypeVar("Read", bound=Sized)
Reader: TypeAlias = Callable[[Any, str], Read]

EMPTY = "(empty)"  #: Name of a column whose name is empty.
#: Message for a file that was opened but not read.
NOT_LOADED = (
    "a file that is read a block at a time, which only caltest.test takes; call .load() on it, and "
    "give the .rows and .labels of what that returns"
)
#: Objects that are not tables yet, by their attributes, and what to do with them.
_UNREAD = (
    (("collect", "lazy"), "a lazy frame, not yet read; call .collect() on it first"),
    (("load", "n_samples"), NOT_LOADED),
    (("rows", "labels"), "a {kind}; give its .rows first, and its .labels second"),
    (("about", "n_samples"), "a {kind}; give predictions first, outcomes second"),
)
#: Kinds of arrays without numbers, and what to do with each.
_NO_NUMBERS = {
    "c": "complex numbers; take the real part if that is meant",
    "M": "dates, not numbers; give numbers",
    "m": "time spans, not numbers; give numbers",
    "S": "bytes, not numbers; decode them to strings",
    "V": "records, not numbers; give a plain column a class, or, of (time, event), predictive.Survival",
}
_WIDE = (nw.Int128, nw.UInt128)


@dataclass(frozen=True, eq=False)
class NamedArray:
    """The contents of a container: real numbers, booleans or text, perhaps shared with the caller."""

    values: np.ndarray
    names: tuple[str, ...] | None = None
    coarse: bool = False  # some numbers have fewer digits than float64: float32, half or bfloat16
    given: Any = None  # the object with names for the rows

    @property
    def is_text(self) -> bool:
        """Whether the values are strings."""
        return self.values.dtype.kind in "OUT"

    @property
    def n_columns(self) -> int:
        """Number of columns; 1 for a vector."""
        return 1 if self.values.ndim == 1 else int(self.values.shape[1])

    @property
    def flat(self) -> np.ndarray:
        """The values, (n,) if they are one column."""
        return self.values[:, 0] if self.values.shape[1:] == (1,) else self.values

    def column(self, index: int) -> str:
        """Return the name of column ``index`` for a message."""
        return f"column {index}" if self.names is None else f"column {quoted(self.names[index])}"


def listed(names: Iterable[object], limit: int = 8) -> str:
    """Return names as a list for a message; if there are many, the first few."""
    all_names = list(names)
    shown = ", ".join(quoted(name, 40) for name in all_names[:limit]) or "none"
    return shown if len(all_names) <= limit else f"{shown}, … ({len(all_names)} in all)"


def shape_of(values: np.ndarray) -> str:
    """Return a shape as in ``(3, 2)``, without NumPy's integer types."""
    return str(tuple(int(size) for size in values.shape))


def read_table(data: object, what: str) -> NamedArray:
    """Read a container: array, nested list, tensor on the CPU, frame or series that narwhals supports.

    ``what`` is the argument's name, for messages.
    """
    if isinstance(data, NamedArray):
        return data
    if isinstance(data, np.ndarray | list):
        return _from_array(data, what)
    native = native_of(data, what)
    if isinstance(native, nw.DataFrame):  # before its columns are mistaken for attributes
        return _from_frame(native, what)
    if isinstance(native, nw.Series):
        return _from_series(native, what)
    if has(data, "detach", "cpu"):
        tensor: Any = data
        array = attempt(lambda: tensor.detach().cpu().numpy())
        if array is None:  # numpy has no bfloat16
            array = attempt(lambda: tensor.detach().cpu().float().numpy())
        if array is None:  # sparse, or without data, as on the device "meta"
            do = "give a dense one that holds its data, as .to_dense() makes of a sparse one"
            raise InputError(f"{what} is a tensor that is no array; {do}.")
        return _from_array(array, what)
    for names, found in _UNREAD:
        if has(data, *names):
            raise InputError(f"{what} is {found.format(kind=type(data).__name__)}.")
    return _from_array(data, what)


def native_of(data: Any, what: str) -> Any:
    """Return a frame or a series wrapped by narwhals, if names are unique; other data unchanged."""
    try:
        if is_xarray(data):
            data = _of_xarray(data)
        if type(data).__name__ == "RecordBatch":
            data = nw.from_arrow(data, backend="pyarrow")
        elif has(data, "null_count", "to_pylist", "buffers"):  # one chunk of pyarrow
            import pyarrow as pa

            data = pa.chunked_array([data])
        native: Any = nw.from_native(data, eager_only=True, allow_series=True, pass_through=True)
    except DuplicateError as error:
        raise InputError(f"{what} has two columns of one name; rename one of them.") from error
    except Exception as error:
        found = f"{what} is {quoted(data)} that cannot be read: {reason(error)}"
        raise InputError(f"{found}; give an array.") from error
    if isinstance(native, nw.DataFrame) and len(native.columns):
        try:  # names of columns may be of any type, and access may raise anything
            for name in native.columns:
                native.get_column(name)
            native.schema  # noqa: B018
        except Exception as error:
            found = f"names that cannot be distinguished ({listed(native.columns)})"
            raise InputError(f"the columns of {what} have {found}; name them by text.") from error
    return native


def is_framed(data: object) -> bool:
    """Return whether data are a frame or a series of any library, with column names or an index."""
    # Data that cannot be wrapped get their error when they are read.
    known = attempt(lambda: nw.from_native(data, allow_series=True, pass_through=True))
    framed = isinstance(known, nw.DataFrame | nw.LazyFrame | nw.Series)
    return framed or type(data).__name__ == "RecordBatch" or is_xarray(data)


def _of_xarray(data: Any) -> Any:
    """Return an xarray array as pandas would hold it, with coordinates as column names."""
    import pandas as pd

    values, dims = np.asarray(data.values), data.dims
    if len(dims) == 1:
        return pd.Series(values, name=getattr(data, "name", None))
    if len(dims) == 2 and dims[1] in data.coords:
        return pd.DataFrame(values, columns=np.asarray(data.coords[dims[1]]).tolist())
    return values


def _from_frame(frame: nw.DataFrame[Any], what: str) -> NamedArray:
    check_named(frame.columns, what)
    names = tuple(str(name) for name in frame.columns)
    if not names:
        return NamedArray(np.empty((len(frame), 0)))
    check_distinct(names, f"columns of {what}")
    columns = [frame.get_column(name) for name in frame.columns]
    if len(names) == 1:
        table = _from_series(columns[0], what, names)
        return NamedArray(table.values[:, None], names, table.coarse)
    for name, column in zip(names, columns, strict=True):
        if not _is_numeric(column.dtype):
            found = f"column {quoted(name)} of {what} holds {_entries(column)}, not numbers"
            raise InputError(f"{found}; leave the column out, or convert it to float.")
    if any(column.null_count() for column in columns):
        missing = np.column_stack([column.is_null().to_numpy() for column in columns])
        raise _missing(what, missing, names)
    dtypes = [column.dtype for column in columns]
    values = None if any(dtype in _WIDE for dtype in dtypes) else np.asarray(frame.to_numpy())
    if values is None or values.dtype.kind == "O":  # still numbers, as Arrow's in pandas
        values = np.column_stack([_numpy(column) for column in columns])
    return NamedArray(_plain(values, what), names, any(map(_is_coarse, dtypes)))


def _from_series(series: nw.Series[Any], what: str, names: tuple[str, ...] = ()) -> NamedArray:
    is_text = series.dtype in (nw.String, nw.Categorical, nw.Enum, nw.Object)
    if not (is_text or _is_numeric(series.dtype)):
        do = "convert it to numbers" + (" or to strings" if what == "labels" else "")
        raise InputError(f"{what} holds {_entries(series)}; {do}.")
    if series.null_count():
        missing = series.is_null().to_numpy()
        raise _missing(what, missing[:, None] if names else missing, names)
    return NamedArray(_plain(_numpy(series), what), None, _is_coarse(series.dtype))


def _missing(what: str, missing: Mask, names: Sequence[str] = ()) -> InputError:
    """Return the error for the first missing value; a column without a name gets its number."""
    row, *places = (int(index) for index in np.argwhere(missing)[0])
    column = "".join(f", column {quoted(names[k]) if names else k}" for k in places[:1])
    do = "fill them, or leave these rows out of probs and labels alike"
    text = f"{{argument}} has missing values, the first in {{row}}{{column}}; {do}."
    return InputError(text, argument=what, row=row, column=column)


def check_named(names: Sequence[object], what: str) -> None:
    """Raise if a column name cannot be written, or if one of several is missing or NaN."""
    for place, name in enumerate(names):
        missing = type(name).__name__ in NAMELESS or (isinstance(name, float) and math.isnan(name))
        if as_text(name) is None or (missing and len(names) > 1):
            found = f"column {place} of {what} (counting from 0) has {quoted(name)} for a name"
            raise InputError(f"{found}; name every column.")


def check_distinct(names: Sequence[str], what: str = "columns") -> None:
    """Raise if two columns, or other named things, have one name."""
    if twice := sorted(name for name, count in Counter(names).items() if count > 1):
        raise InputError(f"two {what} have one name ({listed(twice)}); rename one of them.")


def name_of(series: Any) -> str:
    """Return the name of a narwhals series; "" if it has none, or it is missing."""
    return "" if type(series.name).__name__ in NAMELESS else as_text(series.name) or ""


def _numpy(series: nw.Series[Any]) -> np.ndarray:
    """Return a column as an array; NumPy has no 128-bit integers."""
    return np.asarray((series.cast(nw.Float64) if series.dtype in _WIDE else series).to_numpy())


def _is_numeric(dtype: nw.dtypes.DType) -> bool:
    return dtype.is_float() or dtype.is_integer() or dtype == nw.Boolean


def _is_coarse(dtype: nw.dtypes.DType) -> bool:
    return dtype.is_float() and dtype != nw.Float64


def _entries(series: nw.Series[Any]) -> str:
    if series.null_count() == len(series):
        return "missing values alone"
    dtype: Any = series.dtype
    dtype = getattr(series.to_native(), "dtype", dtype) if dtype == nw.Unknown else dtype
    kinds = {nw.Object: "Python objects", nw.Categorical: "categories", nw.Enum: "categories"}
    return kinds.get(dtype, "text" if dtype == nw.String else f"entries of type {dtype}")


def _from_array(data: Any, what: str) -> NamedArray:
    check_unmasked(what, data, "leave these rows out of probs and labels alike")
    try:
        values = np.asarray(data)
    except Exception as error:  # an object that calls itself an array may raise anything
        lengths = attempt(lambda: [len(row) for row in data]) or [0]
        odd = next((i for i, length in enumerate(lengths) if length != lengths[0]), None)
        text = "cannot be read as an array: its rows differ in kind"
        if odd is not None:
            text = "has rows of different lengths: {row} has {found} entries, row 0 has {first}"
        facts = {"row": odd, "found": lengths[odd or 0], "first": lengths[0]}
        do = "give every row one number a class, or predictive.Sets of classes"
        raise InputError(f"{{argument}} {text}; {do}.", argument=what, **facts) from error
    if values.ndim == 0:
        found = f"one value, {quoted(values[()])}; give an array of one entry per row"
        if not isinstance(data, np.ndarray | np.generic):
            kind = f"of type {type(data).__name__}, which is not a table of rows"
            found = f"{kind}; give an array, a list, a data frame or a tensor"
        raise InputError(f"{what} is {found}.")
    values = values.astype(np.float32) if values.dtype.type.__name__ == "bfloat16" else values
    coarse = values.dtype.kind == "f" and values.dtype.itemsize < 8
    return NamedArray(_plain(values, what), None, coarse)


def _plain(values: np.ndarray, what: str) -> np.ndarray:
    """Accept arrays of real numbers, booleans and text; raise for every other kind."""
    kind = values.dtype.kind
    if kind in "biufUT":
        return values
    if kind != "O":
        found = _NO_NUMBERS.get(kind, f"{values.dtype}, not numbers; give numbers")
        raise InputError(f"{what} holds {found}.")
    entries = values.ravel()
    missing = np.array([x is None or x is np.nan for x in entries], dtype=np.bool_)
    if missing.any():
        raise _missing(what, missing.reshape(values.shape))
    types = sorted({type(x).__name__ for x in entries})
    if types and set(types) <= {"str", "str_"}:
        return values
    do = "give entries of one kind"
    if len(types) == 1:
        number = "int" if what == "labels" else "float"
        known = attempt(lambda: values.astype(np.float64)) is not None
        do = f"convert it first, with np.asarray({what}, dtype={number})" if known else "give numbers"
    kinds = listed(types, 4)
    raise InputError(f"{what} is an array of Python objects ({kinds}), not of numbers; {do}.")


# ------------------------------------------------------------------ entries of a column


def cells_of(column: Any, what: str) -> list[Any] | None:
    """Return the entries of a column in any container, None for masked ones; else None."""
    native = native_of(column, what)
    if isinstance(native, nw.DataFrame) and len(native.columns) == 1:
        native = native.get_column(native.columns[0])
    if isinstance(native, nw.Series):
        kinds: list[Any] = [str(native.dtype).lower()]
        if native.dtype in (nw.Categorical, nw.Enum, nw.Unknown):  # others are complete
            kinds.append(attempt(lambda: str(native.to_numpy().dtype)))
        own = next((each for each in kinds if each in _COARSE), None)
        return _short(native.to_list(), own) if own else list(native.to_list())
    if isinstance(column, list | tuple):
        return list(column)
    try:
        if isinstance(column, np.ndarray) or not has(column, "tolist", "ndim") or column.ndim != 1:
            column = np.asanyarray(column)
            if column.dtype.kind in "Mm":
                column = np.where(np.isnat(column), None, column.astype(str).astype(object))
            if column.shape[1:] == (1,):
                column = column[:, 0]
        found: Any = column.tolist() if column.ndim == 1 else None
        if found and (kind := str(column.dtype).removeprefix("torch.")) in _COARSE:
            found = _short(found, kind)
    except Exception:  # an object that calls itself an array may raise anything
        return None
    return found if isinstance(found, list) else None


def entries_of(column: Any, what: str) -> list[Any]:
    """Return the entries of one column, like `cells_of`; raise if it is not a column."""
    cells = cells_of(column, what)
    ndim = attempt(lambda: int(column.ndim)) or 1
    kinds = set(map(type, cells or ()))
    if ndim > 1 or (not isinstance(column, nw.Series) and {list, tuple, np.ndarray} & kinds):
        do = "give a data frame or a dict of columns, as in {'region': […], 'age': […]}"
        raise InputError(f"{what} is a table without column names; {do}.")
    if cells is None:
        do = "give a data frame, a dict of columns, or one column with an entry per row"
        raise InputError(f"{what} is of type {type(column).__name__}; {do}.")
    return cells


def columns_of(
    given: Any, what: str, only: str, n_rows: int, read: Reader[Read], beside: Mapping[str, object]
) -> dict[str, Read]:
    """Return columns that describe the rows, by name, each read by ``read``.

    Parameters
    ----------
    given, what
        A data frame, a dict of columns or one column, and the name of the argument.
    only
        Name for a single column without one.
    n_rows, beside
        The number of rows, and, by name, other data with the same rows.
    read
        Reads a column; it also gets the column's name in messages.
    """
    if given is None:
        return {}
    native = given if isinstance(given, Mapping) else native_of(given, what)
    check_rows({**beside, what: given})
    columns: list[tuple[Any, Any]] = [(only, given)]
    if isinstance(native, Mapping):
        columns = list(native.items())
    elif isinstance(native, nw.DataFrame):
        columns = [(name, native.get_column(name)) for name in native.columns]
    elif isinstance(native, nw.Series):
        check_named([native.name], what)
        columns = [(name_of(native) or only, native)]
    check_named([name for name, _ in columns], what)
    names = [str(name) or EMPTY for name, _ in columns]
    check_distinct(names, f"columns of {what}")
    if not columns:
        raise InputError(f"{what} has no column; give at least one, or leave {what} out.")
    found = dict[str, Read]()
    for name, (_, column) in zip(names, columns, strict=True):
        alone = columns[0][1] is given
        found[name] = entries = read(column, what if alone else f"column {quoted(name)}")
        if len(entries) != n_rows:
            told = what if alone and only == what else f"column {quoted(name)} of {what}"
            told += f" has {len(entries)} entries for {n_rows} rows"
            raise InputError(f"{told} of probs; give one for every row.")
    return found


_COARSE = ("float32", "float16")


def _short(cells: Sequence[Any], kind: str) -> list[Any]:
    """Return float32 or half-precision numbers as written: 0.1, and not the nearest such float."""
    own = np.dtype(kind).type
    return [x if is_missing(x) or x == x // 1 else float(str(own(x))) for x in cells]
