"""Strategies of arguments: expressions of predictions, labels and options, valid and hostile."""

# ruff: noqa: F401 -- the source of the cases names what is imported here

import array
import datetime
import re
import tempfile
from collections import OrderedDict, UserList, deque
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from types import MappingProxyType, SimpleNamespace
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import scipy.sparse
import xarray as xr
from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy

import caltest
from caltest.nulls import NULLS
from caltest.statistics import STATISTICS

Sources = SearchStrategy[str]


class Pair(NamedTuple):
    """Sources of predictions and labels, and how many rows and classes they have if they are right."""

    probs: str
    labels: str
    rows: int
    classes: int


nan, inf = float("nan"), float("inf")


# --- what the sources call


def read_only(values):
    """Return an array that nobody may write to."""
    found = np.array(values)
    found.flags.writeable = False
    return found


def memmap(values):
    """Return an array in a file that is gone when it is."""
    whole = np.array(values)
    with tempfile.TemporaryFile() as file:
        found = np.memmap(file, whole.dtype, "w+", shape=whole.shape)
    found[...] = whole
    return found


def strided(values):
    """Return every second row of an array twice as long, in Fortran's order."""
    return np.asfortranarray(np.repeat(np.array(values), 2, axis=0))[::2]


def records(values):
    """Return a structured array."""
    width = len(values[0])
    return np.array([tuple(row) for row in values], dtype=[(f"c{i}", "f8") for i in range(width)])


def frame(values, names=None, index=None, dtype=None):
    """Return a pandas frame, of the pandas type that is named."""
    made = pd.DataFrame(values, columns=names, index=index)
    return made if dtype is None else made.astype(dtype)


def polars(values, dtype=None):
    """Return a polars frame."""
    width = len(values[0])
    made = pl.DataFrame([list(row) for row in values], [f"c{i}" for i in range(width)], orient="row")
    return made if dtype is None else made.cast(dtype)


def arrow(values, names=None):
    """Return an Arrow table of chunks; names may come twice."""
    columns = [list(column) for column in zip(*values, strict=True)]
    chunks = [pa.chunked_array([column[:1], column[1:]]) for column in columns]
    return pa.table(chunks, names=names or [f"c{i}" for i in range(len(columns))])


def deep(depth=5000):
    """Return a list in a list in a list."""
    found: list[Any] = []
    for _ in range(depth):
        found = [found]
    return found


def labelled(values, rows=None, columns=None):
    """Return an array of xarray, with coordinates where they are given."""
    made = np.array(values)
    dims = ("row", *(f"class{i}" for i in range(made.ndim - 1)))
    given = dict(zip(dims, (rows, columns), strict=False))
    return xr.DataArray(made, dims=dims, coords={k: list(v) for k, v in given.items() if v is not None})


class LongName:
    """Writes itself as more than anybody reads, with what a terminal obeys."""

    def __repr__(self):
        return "\x1b[31m\n\u202e" + "long " * 20_000

    __str__ = __repr__


class Rude:
    """An array, it claims."""

    def __array__(self, *args, **kwargs):
        raise RuntimeError("no")

    def __len__(self):
        raise RuntimeError("no")


class Endless:
    """Has a next element, always."""

    def __iter__(self):
        while True:
            yield 0.5


# --- predictions and labels that are right

_UNITS = {
    2: ["[.25, .75]", "[.5, .5]", "[1, 0]", "[0.0, 1.0]", "[.875, .125]", "[.01, .99]", "[1e-12, 1]"],
    3: ["[.25, .25, .5]", "[.5, .25, .25]", "[0, 0, 1]", "[.125, .75, .125]", "[.02, .9, .08]"],
    5: ["[.2, .2, .2, .2, .2]", "[.5, 0, 0, .25, .25]", "[.05, .1, .15, .3, .4]"],
}
_NUMBERS = [".25", ".75", ".5", "0", "1", ".125", "1e-9", ".999", "1e-320"]


@st.composite
def good_pairs(draw):
    """Draw (n, m) or (n,) predictions and labels."""
    m = draw(st.sampled_from([2, 2, 3, 5, 1]))
    n = draw(st.sampled_from([4, 2, 3, 8]))
    times = draw(st.sampled_from([1, 1, 3, 6])) if n > 3 else 1
    again = f" * {times}" if times > 1 else ""
    pool = _NUMBERS if m == 1 else _UNITS[m]
    rows = draw(st.lists(st.sampled_from(pool), min_size=n, max_size=n))
    most = max(m, 2) - 1
    labels = draw(st.lists(st.integers(0, most), min_size=n, max_size=n))
    return Pair(f"[{', '.join(rows)}]{again}", f"{labels}{again}", n * times, m)


# --- what is not right, or not usual

STRANGE_NUMBERS = [
    "nan", "inf", "-inf", "-0.0", "-1", "2", "1 + 1e-9", "1e308", "5e-324", "None", "'0.5'", "'x'",
    "True", "Decimal('0.5')", "Decimal('NaN')", "Fraction(1, 2)", "10**400", "10**5000", "1j",
    "'9' * 5000", "'x' * 1_000_000", "np.float16(.5)", "np.float64('nan')", "pd.NA", "pd.NaT",
    "[]", "[.5]", "b'1'", "'\\x1b[31m'", "'\\ud800'", "object()", "np.array(.5)",
    "np.datetime64('NaT')", "LongName()", "'0,5'", "'50%'", "'٠.٥'", "1e-320",
    "np.longdouble('1e-4000')", "datetime.date(2020, 1, 1)", "''", "{}", "'nan'",
]  # fmt: skip

NAMES = [
    "''", "'a'", "None", "nan", "0", "1", "1.0", "True", "('a', 'b')", "'\\x1b[31mred'",
    "'\\u202eabc'", "'a\\nb'", "'x' * 100_000", "10**5000", "'$\\\\frac$'",
    "'<script>alert(1)</script>'", "'=1+1'", "'\\ud800'", "'label'", "'yes'", "'no'", "'true'",
    "pd.Timestamp('2020')", "b'a'", "'1'", "'٣'", "' a '", "'a,b'", "'\"'", "'\\0'", "'p_a'",
    "'é'", "'e\\u0301'", "Decimal('1')", "np.int64(1)", "2**63", "pd.NA", "'{0}'", "'%s'",
    "'a; b. c'", "'$x_{1$'", "'&amp;'",
]  # fmt: skip

_NUMPY = [
    "'f8'", "'>f8'", "'f4'", "'>f4'", "'f2'", "'g'", "'O'", "'c16'", "'i8'", "'u1'", "'?'", "'U8'",
    "'S8'", "'M8[D]'", "'m8[s]'", "'V4'",
]  # fmt: skip
_PANDAS = [
    "'float32'", "'Float64'", "'Float32'", "'float64[pyarrow]'", "'float[pyarrow]'", "'Int64'",
    "'halffloat[pyarrow]'", "object", "'string'", "'category'", "'boolean'", "'complex'",
    "'int64[pyarrow]'", "'string[pyarrow]'", "pd.SparseDtype('float')", "'datetime64[ns]'",
    "pd.ArrowDtype(pa.decimal128(9, 6))", "pd.ArrowDtype(pa.null())", "'timedelta64[ns]'",
    "pd.ArrowDtype(pa.dictionary(pa.int8(), pa.float64()))", "'bool'", "'int8'",
]  # fmt: skip
_POLARS = [
    "pl.Float32", "pl.Float64", "pl.Int128", "pl.Int8", "pl.UInt64", "pl.Decimal(10, 4)",
    "pl.Null", "pl.String", "pl.Categorical", "pl.List(pl.Float64)", "pl.Boolean", "pl.Date",
    "pl.Duration", "pl.Datetime", "pl.Time", "pl.Binary", "pl.Enum(['0.5'])", "pl.Float16",
    "pl.UInt128",
]  # fmt: skip
_ARROW = [
    "pa.float32()", "pa.float16()", "pa.decimal128(9, 4)", "pa.string()", "pa.null()", "pa.int8()",
    "pa.bool_()", "pa.large_string()", "pa.binary()", "pa.date32()", "pa.uint64()",
]  # fmt: skip

_INDEXES = [
    "[[i] for i in range(N)]", "range(N)[::-1]", "['x'] * N", "[None] * N", "[nan] * N",
    "pd.MultiIndex.from_arrays([range(N), ['a'] * N])", "pd.date_range('2020', periods=N)",
    "[10**5000] * N", "pd.CategoricalIndex(['a'] * N)", "pd.interval_range(0, N)", "['\\x1b'] * N",
]  # fmt: skip

#: Of any values, X.
_ANY = [
    "tuple(X)", "iter(X)", "(x for x in X)", "map(lambda x: x, X)", "deque(X)", "UserList(X)",
    "dict(enumerate(X))", "dict(enumerate(X)).values()", "{0: X}", "np.array(X)",
    "np.array(X, object)", "np.array(X)[None]", "[X]", "np.array(X)[..., None]", "np.array([X])",
    "read_only(X)", "memmap(X)", "strided(X)", "np.ma.array(X)",
    "np.ma.array(X, mask=np.array(X) == .5)", "np.ma.masked_all(len(X))", "np.asmatrix(X)",
    "(X, X)", "pd.DataFrame(X)", "pd.Series(X)", "pd.Index(X)", "pl.Series(X)", "pa.array(X)",
    "pa.chunked_array([X, X])", "np.array(str(X))", "str(X)", "repr(X).encode()",
    "np.array(X).tobytes()", "memoryview(np.array(X))", "np.array(X)[:0]", "np.array(X).T",
    "X[:1]", "X[:-1]", "X + X[:1]", "lambda: X", "SimpleNamespace(probs=X)",
    "np.broadcast_to(np.array(X)[:1], np.array(X).shape)", "np.array(X).view(np.recarray)",
    "pd.array(X)", "list(map(np.array, X))", "list(map(pd.Series, X))", "np.array(X, order='F')",
    "np.array(X)[::-1]", "np.array(X).__array_interface__", "[*X, X]",
    "np.array(np.array(X), ndmin=5)", "pd.Series(X).to_frame()", "scipy.sparse.csr_array(X)",
    "scipy.sparse.coo_matrix(X)", "pl.LazyFrame({'a': X})", "pd.Series(list(X)).array",
    "pl.DataFrame({'a': X})", "pa.table({'a': X})", "pa.record_batch({'a': X})", "labelled(X)",
    "xr.DataArray(X, name='p')", "labelled(X).to_dataset(name='p')",
    "xr.Variable('x', np.array(X)[..., 0])",
    "labelled(X, columns=range(np.shape(X)[-1])[::-1])", "labelled(X).chunk if X else X",
]  # fmt: skip

#: Of rows, X.
_ROWS = [
    "records(X)", "frame(X)", "polars(X)", "arrow(X)", "arrow(X, ['a'] * len(X[0]))",
    "polars(X).lazy()", "frame(X, ['a'] * len(X[0]))",
    "frame(X, pd.MultiIndex.from_product([['a'], range(len(X[0]))]))", "set(map(tuple, X))",
    "frozenset(map(tuple, X))", "np.array(X).flatten()", "arrow(X).to_batches()[0]",
    "frame(X).iloc[:, :0]", "frame(X).iloc[:0]", "frame(X).T", "pd.Series(X)", "dict(frame(X))",
    "polars(X).select(pl.concat_list(pl.all()))", "polars(X).select(pl.struct(pl.all()))",
    "polars(X)[:, :0]", "[dict(enumerate(x)) for x in X]", "records(X).view(np.recarray)",
    "pd.Series(list(map(tuple, X)))", "pd.concat([frame(X), frame(X)], axis=1)",
    "pd.concat([frame(X)] * 2)", "frame(X).reset_index()", "np.array(X)[:, :1]",
    "frame(X).iloc[:, :1]", "polars(X)[:, :1]", "arrow(X).select([0])", "np.hstack([X, X])",
    "frame(X).set_axis(pd.CategoricalIndex(range(len(X[0]))), axis=1)",
    "polars(X).with_row_index()",
]  # fmt: skip


def _put(source, value):
    """Replace the first number of a list by something else."""
    at = source.rindex("[", 0, source.index(".") if "." in source else len(source)) + 1
    end = min(i for i in (source.find(",", at), source.find("]", at)) if i > 0)
    return f"{source[:at]}{value}{source[end:]}"


def _sampled(pattern, *values):
    return st.tuples(*map(st.sampled_from, values)).map(lambda drawn: pattern.format(*drawn))


def _columns(width):
    return st.lists(st.sampled_from(NAMES), min_size=width, max_size=width).map(
        lambda drawn: f"[{', '.join(drawn)}]"
    )


def containers(source, width):
    """Draw the same values (X, of N rows) in another container, of another type, with other names."""
    kinds = [
        st.sampled_from(_ANY), _sampled("np.array(X).astype({})", _NUMPY),
        _sampled("np.array(X, {})", _NUMPY), _sampled("pd.Series(X).astype({})", _PANDAS),
        _sampled("pl.Series(X).cast({})", _POLARS), _sampled("pa.array(X).cast({})", _ARROW),
        _sampled("pd.Series(X, index={})", _INDEXES), _sampled("labelled(X, {})", _INDEXES),
        _sampled("pd.Series(X, name={})", NAMES),
    ]  # fmt: skip
    if width > 1:
        kinds += [
            st.sampled_from(_ROWS),
            _sampled("frame(X, dtype={})", _PANDAS),
            _sampled("polars(X, {})", _POLARS),
            _sampled("frame(X, index={})", _INDEXES),
            _columns(width).map("frame(X, {})".format),
            _columns(width).map("labelled(X, columns={})".format),
            _columns(width).map("polars(X).rename(dict(zip(polars(X).columns, {})))".format),
            _columns(width).map("arrow(X).rename_columns({})".format),
            _columns(width).map("dict(zip({}, np.array(X).T))".format),
            _sampled("frame(X, range(len(X[0]))).astype({{0: {}}})", _PANDAS),
            _sampled("polars(X).cast({{'c0': {}}})", _POLARS),
        ]
    filled = {"N": f"len({source})", "X": f"({source})"}
    return st.one_of(kinds).map(lambda drawn: re.sub(r"\b[NX]\b", lambda at: filled[at[0]], drawn))


_LABELS = [
    "np.array({y})", "np.array({y}, 'i1')", "np.array({y}, '>u4')", "np.array({y}, 'f4')",
    "np.array({y}, bool)", "np.array({y}, 'U')", "np.array({y}, 'S')", "np.array({y}, object)",
    "list(map(str, {y}))", "pd.Series({y})", "pd.Series({y}, dtype='category')",
    "pd.Series({y}, dtype='Int64')", "pd.Series({y}, dtype='boolean')",
    "pd.Series({y}, dtype='string')", "pd.Series({y}, dtype='int64[pyarrow]')",
    "pd.Categorical({y})", "pl.Series({y})", "pl.Series({y}).cast(pl.Int128)",
    "pl.Series({y}).cast(pl.String).cast(pl.Categorical)", "pa.array({y})",
    "pa.array({y}).dictionary_encode()", "pa.chunked_array([{y}])", "np.eye(5)[{y}]",
    "np.array({y})[:, None]", "tuple({y})", "set({y})", "range(len({y}))", "(v for v in {y})",
    "[v + 1 for v in {y}]", "[-v for v in {y}]", "[v == 1 for v in {y}]", "[v + .5 for v in {y}]",
    "['ab'[v % 2] for v in {y}]", "[str(v) + '\\x1b' for v in {y}]",
    "['x' * 100_000 for v in {y}]", "[10**5000 + v for v in {y}]", "[[v] for v in {y}]",
    "[None for v in {y}]", "[nan for v in {y}]", "pd.Series({y}, index=range(9, 9 + len({y})))",
    "np.ma.array({y}, mask=[1] + [0] * (len({y}) - 1))", "pd.DataFrame({y})", "{{'label': {y}}}",
    "iter({y})", "[Decimal(v) for v in {y}]", "[Fraction(v) for v in {y}]",
    "[complex(v) for v in {y}]", "[np.int64(v) for v in {y}]", "[{{}} for v in {y}]",
    "pd.to_datetime({y})", "np.array({y}) + 2**62", "np.array({y}, 'u8') + 2**63", "{y}[:-1]",
    "[True, 'a', 1.5, None] * len({y})", "[]", "0", "None", "'labels'",
    "pd.Series({y}).astype('float64[pyarrow]')", "pl.DataFrame({{'label': {y}}})",
    "pa.table({{'label': {y}}})", "[b'a' for v in {y}]", "['yes'] * len({y})",
    "pl.Series({y}).cast(pl.Decimal(10, 2))", "pl.Series([[v] for v in {y}])",
    "pl.Series([None for v in {y}])", "pl.Series({y}).cast(pl.Boolean)",
    "pd.Series({y}, dtype='uint8')", "[pd.NA for v in {y}]", "[*{y}, 'x']",
    "['true' if v else 'False' for v in {y}]", "['\\ud800' for v in {y}]",
    "[float(v) for v in {y}]", "LongName()", "memmap({y})", "read_only({y})", "strided({y})",
    "np.array({y})[::-1]", "caltest", "Endless()", "Rude()", "deep()",
]  # fmt: skip

#: What is wrong as nearly every option.
HOSTILE = [
    "None", "True", "False", "0", "-1", "1", "2", "0.5", "2.5", "-0.0", "nan", "inf", "-inf",
    "10**20", "10**5000", "1e-320", "1e308", "''", "'x'", "'bonferonni'", "'\\x1b[31m'",
    "'\\u202e'", "'a\\nb'", "'\\ud800'", "'\\0'", "'x' * 100_000", "'9' * 5000", "b'x'", "[]",
    "{}", "()", "set()", "[[]]", "[None]", "['x']", "[1]", "[nan]", "np.array(3)",
    "np.array([1, 2])", "np.array([])", "np.float64('nan')", "np.int64(3)", "np.int64(-3)",
    "np.bool_(True)", "np.str_('x')", "np.float32(.5)", "pd.NA", "pd.NaT", "Decimal('NaN')",
    "Decimal('0.05')", "Decimal('1E+1000')", "Fraction(1, 3)", "1j", "object()", "int", "len",
    "lambda *a: None", "lambda *a: 'x'", "range(3)", "slice(3)", "...", "Path('x')", "LongName()",
    "np.ma.masked", "np.datetime64('NaT')", "pd.Series([1, 2])", "pd.DataFrame()", "caltest",
    "caltest.statistics.ECE", "Rude()", "deep()", "'auto'", "'class:'", "'class:²'",
    "'class:' + '9' * 5000", "'class:-1'", "'top:0'", "'top:2'", "'top:x'", "-(10**5000)",
    "iter([1])", "{'a': 1}", "datetime.date(2020, 1, 1)", "'1'", "' ece '", "'ECE'",
    "['ece', 'ece']", "['class:1', 'class:1']", "'ece,ks'", "2**63", "np.uint64(2**63)", "3.0",
    "'٣'", "LongName", "np.random", "np.random.default_rng(1)", "MappingProxyType({})",
]  # fmt: skip


@st.composite
def bad_pairs(draw):
    """Draw predictions and labels of which something is unusual or wrong."""
    probs, labels, n, m = draw(good_pairs())
    kind = draw(st.sampled_from(["container", "container", "number", "labels", "both", "hostile"]))
    if kind == "number":
        probs = _put(probs, draw(st.sampled_from(STRANGE_NUMBERS)))
        if draw(st.booleans()):
            probs = draw(containers(probs, m))
    if kind in ("container", "both"):
        probs = draw(containers(probs, m))
    if kind in ("labels", "both"):
        labels = draw(st.sampled_from(_LABELS)).format(y=f"({labels})")
    if kind == "hostile":
        if draw(st.booleans()):
            probs = draw(st.sampled_from([*HOSTILE, "Endless()"]))
        else:
            labels = draw(st.sampled_from(HOSTILE))
    return Pair(probs, labels, n, m)


pairs: SearchStrategy[Pair] = st.one_of(good_pairs(), bad_pairs())

# --- options

_BINNINGS = [
    "caltest.binning.EqualWidth(3)", "caltest.binning.EqualMass(2)",
    "caltest.binning.MedianVariance(2)", "caltest.binning.FromEdges([0, .5, 1])",
    "caltest.binning.Uniform(4)",
]  # fmt: skip
_STATISTIC_OBJECTS = [
    "caltest.statistics.ECE(caltest.binning.EqualMass(3))", "caltest.statistics.HosmerLemeshow(3)",
    "caltest.statistics.UnbiasedSKCE(caltest.kernels.Gaussian(), 'nystrom', rank=2)",
    "caltest.statistics.SmoothECE(64)",
    "caltest.statistics.UnbiasedSKCE(approximation='fourier', rank=4)",
    "caltest.statistics.CKCE(regularization=.1)", "caltest.statistics.CoxRecalibration()",
    "caltest.statistics.ECD(clip=1e-3)", "caltest.statistics.Scan('over')",
    "caltest.statistics.UCME(locations=2)", "caltest.statistics.TCal(1)",
    "lambda p, y: float(y.mean())", "lambda p, y: None", "lambda p, y: nan", "lambda p, y: 'x'",
    "lambda p, y: p[:, 0]", "lambda p, y: y", "lambda p, y: 1j", "lambda p, y: np.array(.5)",
    "lambda p, y: True", "lambda p, y: 10**5000", "lambda p, y: inf", "lambda: 1",
    "lambda p, y: [1]", "lambda p, y: Decimal(1)", "caltest.statistics.LinearSKCE()",
]  # fmt: skip
_CORRECTIONS = [
    "holm", "bonferroni", "fdr_bh", "fdr_by", "none", "westfall_young",
]  # fmt: skip


def words(*found):
    return st.sampled_from([repr(each) for each in found])


def sources(*found):
    return st.sampled_from(found)


statistics = st.one_of(words(*STATISTICS), words(*STATISTICS), sources(*_STATISTIC_OBJECTS))
nulls = st.one_of(
    words(*NULLS),
    sources(
        "caltest.nulls.MonteCarlo()",
        "caltest.nulls.Bound(1)",
        "caltest.nulls.NormalApproximation(ddof=0)",
    ),
)
lenses = st.one_of(
    words("top_label", "class:0", "class:1", "top:1", "top:2", "sorted", "class:9", "class:a"),
    sources("caltest.lenses.TopK(2)", "caltest.lenses.ClassWise('1')", "None"),
)
binnings = sources(*_BINNINGS)
corrections = words(*_CORRECTIONS)
seeds = sources("1", "2**64", "np.random.default_rng(1)", "np.random.SeedSequence(1)", "None", "[1, 2]")
fractions = sources(
    "0.05", ".5", "0.01", "1e-9", ".95", ".999", "np.float64(.1)", "Fraction(1, 10)", "Decimal('0.1')"
)
counts = sources("1", "2", "3", "5", "19", "np.int64(4)", "np.uint8(7)", "np.array(3)", "4.0")
hostile = sources(*HOSTILE)
weights = sources(
    "None", "None", "None", "range(1, N + 1)", "np.arange(1.0, N + 1)", "[1] * N", "[0] * N",
    "[1] * (N - 1) + [0]", "[1e300, 1e-300] * N", "pd.Series(range(1, N + 1))", "[nan] * N",
    "pl.Series([1.5] * (N - 1) + [2])", "[-1] * N", "['1'] * N", "[[1]] * (N - 1) + [[2]]",
    "10.0 ** np.arange(N)", "np.arange(N) % 2", "[True] * (N - 1) + [False]", "[2**70] + [1] * (N - 1)",
    "pa.array(range(N))", "np.float32(range(1, N + 1))", "[5e-324] * (N - 1) + [1e-323]", "1.5", "'w'",
    "10.0 ** np.linspace(-300, 300, N)", "10.0 ** np.linspace(0, -320, N)",
    "[1e308] * (N - 1) + [1e-308]",
    "[1e160] * N", "[1e160] * (N - 1) + [1]", "[1e-160] * (N - 1) + [1]",
    "2.0 ** -np.arange(N) * 1e160",
    "labelled(range(1, N + 1))", "labelled(range(1, N + 1), range(N)[::-1])",
)  # fmt: skip
clusters = sources(
    "None", "None", "np.arange(N) // 2", "range(N)", "['a', 'b'] * (N // 2) + ['a'] * (N % 2)",
    "[0] * N",
    "[1, 1.0, '1'] * N", "['1', '1.0'] * (N // 2) + [1] * (N % 2)", "['NA'] * N",
    "[*range(N - 1), 'null']",
    "[*range(N - 1), Decimal('1')]", "[True, 1] * (N // 2) + [1] * (N % 2)", "[nan] * N",
    "[LongName()] * N",
    "labelled(range(N))", "pd.Series(range(N), index=range(9, 9 + N))", "[10**5000] * N", "[[1]] * N",
    "[1e308, -1e308] * (N // 2) + [0] * (N % 2)", "'c'", "pd.Categorical(range(N))",
)  # fmt: skip
sampling_rates = sources(
    "None", "None", "{0: .1}", "{1: .5, 0: .2}", "{'a': .5}", "{'0': 1}", "{0: 0}", "{0: 1e-300}",
    "{0: 2}", "{}",
    "[.5]", "{5: .5}", "{nan: .5}", "{0: nan}", "{0: '.5'}", "{None: .5}", "{10**5000: 1}",
    "{0: np.float32(.25)}", "{LongName(): .5}", "{0: True}", "{(): .5}",
)  # fmt: skip
groups = sources(
    "{'g': [*range(20, 19 + N), 'NA']}", "{'g': [*range(20, 18 + N), '5o', True]}",
    "{'g': [inf] + [1] * (N - 1)}",
    "{'g': [Decimal(i) for i in range(N)]}", "{'g': [str(float(i)) for i in range(N - 1)] + ['']}",
    "{'g': [1, '1', 1.0, True] * (N // 4) + [None] * (N % 4)}", "{'g': [*range(N - 1), 10**5000]}",
    "{f'g{i}': [0] * N for i in range(3000)}", "np.zeros((N, 2000))",
    "labelled(range(N), range(N)[::-1])",
    "['a', 'b'] * (N // 2) + ['a'] * (N % 2)", "{'g': [0] * N}", "pd.DataFrame({'g': ['a'] * N})",
    "{'g': [None] * N, 'h': ['x'] * N}", "pd.Series([1.5] * N, name='s')", "{'\\x1b': ['\\u202e'] * N}",
    "{'g': ['a\\nb', '=1+1'] * (N // 2) + [nan] * (N % 2)}", "{'g': [10**5000] * N}", "[[1, 2]] * N",
    "{'g': ['x' * 100_000] * N}", "pl.DataFrame({'g': [1] * N})", "pa.table({'g': [True] * N})",
    "pd.DataFrame([[1, 2]] * N, columns=['a', 'a'])", "{'g': pd.Categorical(['a'] * N, ['a', 'b'])}",
    "{None: [1] * N}", "{('a', 'b'): [1] * N}", "{'g': [[]] * N}", "{'g': [{}] * N}", "{'g': []}",
    "pd.DataFrame({'g': pd.to_datetime([0] * N)})", "{'g': [b'a'] * N}", "{10**5000: [1] * N}", "{}",
    "{'g': ['\\ud800'] * N}", "pl.DataFrame({'g': [[1]] * N})", "pl.Series('g', [None] * N)",
    "[LongName()] * N",
    "np.array([['a', 'b']] * N)", "np.ma.array([1] * N, mask=[1] * N)", "range(N)", "iter(range(N))",
    "pd.DataFrame({'g': [1] * N}, index=range(5, 5 + N))", "{'g': np.array([1] * N, '>f4')}",
)  # fmt: skip
