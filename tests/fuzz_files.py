"""Files of random right predictions, and what happens to files: strategies of expressions of bytes."""

import io
import os
import struct
import zipfile
import zlib
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet
from fuzz_values import STRANGE_NUMBERS, Sources, sources
from hypothesis import strategies as st

# --- right files


def table(rows=8, classes=("a", "b"), seed=0, groups=False):
    """Return columns of probabilities (of eighths), of labels and, if wanted, of groups."""
    rng = np.random.default_rng(seed)
    counts = rng.multinomial(8, np.full(len(classes), 1 / len(classes)), rows)
    labels = [classes[int(rng.choice(len(classes), p=row / 8))] for row in counts]
    columns = {name: (counts[:, i] / 8).tolist() for i, name in enumerate(classes)}
    return {**columns, "label": labels, **({"g": [str(i % 2) for i in range(rows)]} if groups else {})}


def less(columns, *names):
    """Return a table without some columns."""
    return {name: column for name, column in columns.items() if name not in names}


def wide(columns, count):
    """Return a table with so many more columns."""
    rows = len(next(iter(columns.values())))
    return {**columns, **{f"c{i}": [i % 7] * rows for i in range(count)}}


def put(columns, name, value, row=0):
    """Return a table with another value in a cell."""
    column = list(columns[name])
    column[row] = value
    return {**columns, name: column}


def csv(columns, comma=",", line="\n", quoted=""):
    """Write CSV."""
    cells = [list(columns), *zip(*columns.values(), strict=True)]
    lines = [comma.join(f"{quoted}{cell}{quoted}" for cell in row) for row in cells]
    return (line.join(lines) + line).encode("utf-8", "surrogatepass")


def parquet(columns, **options):
    """Write Parquet."""
    sink = io.BytesIO()
    pyarrow.parquet.write_table(pa.table(columns), sink, **options)
    return sink.getvalue()


def arrow_file(columns, kind="file"):
    """Write an Arrow file, stream or Feather."""
    sink, made = io.BytesIO(), pa.table(columns)
    if kind == "feather":
        pyarrow.feather.write_feather(made, sink)
        return sink.getvalue()
    with (pa.ipc.new_file if kind == "file" else pa.ipc.new_stream)(sink, made.schema) as writer:
        writer.write_table(made, max_chunksize=3)
    return sink.getvalue()


def json_lines(columns):
    """Write a JSON object per row."""
    import json

    rows = zip(*columns.values(), strict=True)
    return "\n".join(json.dumps(dict(zip(columns, row, strict=True))) for row in rows).encode()


def npy(array, allow_pickle=True):
    """Write an array."""
    sink = io.BytesIO()
    np.save(sink, np.asanyarray(array), allow_pickle=allow_pickle)
    return sink.getvalue()


def npz(save=np.savez, **arrays):
    """Write arrays."""
    sink = io.BytesIO()
    save(sink, **arrays)
    return sink.getvalue()


def two_by_two(rows=8):
    """Return probabilities of two classes."""
    return np.tile([[0.25, 0.75], [0.5, 0.5]], (rows // 2, 1))


# --- forged


def npy_header(header, version=(1, 0), length=None, rows=8):
    """Write a header of one's own before data of (rows, 3) float64."""
    text = header.encode("utf-8", "surrogatepass") + b"\n"
    size = len(text) if length is None else length
    packed = struct.pack(
        "<H" if version[0] == 1 else "<I", size % (2**16 if version[0] == 1 else 2**32)
    )
    data = np.column_stack([two_by_two(rows), np.arange(rows) % 2]).tobytes()
    return b"\x93NUMPY" + bytes(version) + packed + text + data


def zip_of(**members):
    """Return an archive of these files, as they are."""
    sink = io.BytesIO()
    with zipfile.ZipFile(sink, "w") as archive:
        for name, content in members.items():
            archive.writestr(f"{name}.npy", content)
    return sink.getvalue()


def zip_bomb(size=2 * 10**7):
    """Return an archive much smaller than what is in it."""
    sink = io.BytesIO()
    with zipfile.ZipFile(sink, "w", zipfile.ZIP_DEFLATED) as archive:
        shape = (size // 16, 2)
        header = npy_header(f"{{'descr': '<f8', 'fortran_order': False, 'shape': {shape}}}", rows=0)
        archive.writestr("probs.npy", header + bytes(size))
        archive.writestr("labels.npy", npy(np.zeros(4, int)))
    return sink.getvalue()


#: Of a zip's entry: where a field is after the signature's start, in the local header and directory.
_FIELDS = {"version": (4, 6, 2), "flags": (6, 8, 2), "method": (8, 10, 2), "crc": (14, 16, 4),
    "packed": (18, 20, 4),
           "size": (22, 24, 4), "name": (26, 28, 2), "extra": (28, 30, 2)}  # fmt: skip


def zip_field(archive, field, value, entry=0, where="both"):
    """Return the archive with a field of an entry forged: in its header, the directory, or both."""
    found = bytearray(archive)
    local, central, size = _FIELDS[field]
    for signature, offset, name in (
        (b"PK\x03\x04", local, "header"),
        (b"PK\x01\x02", central, "directory"),
    ):
        at = -1
        for _ in range(entry + 1):
            at = archive.find(signature, at + 1)
        if at >= 0 and where in (name, "both"):
            found[at + offset : at + offset + size] = (value % 256**size).to_bytes(size, "little")
    return bytes(found)


def footer(content, length, magic=b"PAR1"):
    """Return Parquet of which the length of the footer and the last four bytes are forged."""
    return content[:-8] + struct.pack("<I", length % 2**32) + magic


# --- damaged


def flipped(content, *places):
    """Return the bytes with some of them changed: position and mask."""
    found = bytearray(content)
    for at, mask in places:
        if found:
            found[at % len(found)] ^= mask
    return bytes(found)


def cut(content, start, end):
    """Return the bytes from one per mille to another."""
    return content[len(content) * start // 1000 : len(content) * end // 1000]


def inserted(content, at, more):
    """Return the bytes with others within."""
    at %= len(content) + 1
    return content[:at] + more + content[at:]


def without(content, at, count):
    """Return the bytes with some left out."""
    at %= len(content) + 1
    return content[:at] + content[at + count :]


def packed(content):
    """Return the bytes, deflated."""
    return zlib.compress(content)


# --- what is no file


def write(name, content):
    """Make a file of bytes, or whatever the function makes; for who runs a failure by hand."""
    content(Path(name)) if callable(content) else Path(name).write_bytes(content)


def fifo(path):
    """Make a pipe that nobody writes to."""
    os.mkfifo(path)


def folder(path):
    """Make a folder."""
    path.mkdir()


def link(target):
    """Make a symbolic link."""
    return lambda path: path.symlink_to(target)


# --- strategies

_TABLES = sources(
    "table()", "table(24)", "table(24, ('a', 'b', 'c'))", "table(24, seed=2)", "table(30, ('0', '1'))",
    "table(12, seed=1)", "less(table(24), 'a')", "table(24, groups=True)", "table(24, groups=True)",
    "table(30, ('yes', 'no'))", "table(0)", "table(1)", "table(2)", "less(table(), 'label')",
    "less(table(), 'a', 'b')", "{}", "table(8, ('a', '\\x1b[31m'))", "table(8, ('', 'b'))",
    "table(8, ('a\\nb', 'x' * 100_000))", "table(8, ('9' * 5000, '1'))",
    "table(8, tuple('abcdefghijklmnopqrst'))", "wide(table(24), 3000)", "wide(table(8), 20)",
    "{**table(24), 'g': [*range(23), 'NA']}", "{**table(24), 'g': [1, '1.0', '1', 'x'] * 6}",
    "table(8, tuple(f'c{i}' for i in range(3000)))",
)  # fmt: skip

_CELL = st.tuples(sources(*STRANGE_NUMBERS), sources("'a'", "'b'", "'label'"), st.integers(0, 7)).map(
    lambda drawn: f"put(table(), {drawn[1]}, {drawn[0]}, {drawn[2]})"
)
tables = st.one_of(_TABLES, _TABLES, _CELL)

_CSV = st.one_of(
    tables.map("csv({})".format),
    st.tuples(tables, sources(
        "line='\\r\\n'", "line='\\r'", "quoted='\"'", "comma=';'", "comma='\\t'", "line='\\n\\n'",
        "line=',\\n'", "comma=', '",
        "quoted=\"'\"",
    )).map(lambda drawn: f"csv({drawn[0]}, {drawn[1]})"),
    tables.map("csv({}).decode('utf-8', 'replace')".format).flatmap(lambda source: sources(
        f"{source}.encode('utf-16', 'replace')", f"{source}.encode('latin-1', 'replace')",
        f"b'\\xef\\xbb\\xbf' + {source}.encode()",
        f"b'\\xef\\xbb\\xbf' * 2 + {source}.encode()", f"{source}.encode('utf-32')",
        f"{source}.replace('0.', ',').encode()",
        f"{source}.replace('.', '\\0').encode()", f"{source}.replace('\\n', '\\r\\n', 3).encode()",
        f"{source}.replace('0.5', '5e-1 ').encode()", f"{source}.replace('0.', '.').encode()",
        f"{source}.strip().encode()",
        f"{source}.replace('a', '\"').encode()", f"{source}.replace('\\n', ',x\\n').encode()",
        f"(\"x,\" * 50 + {source}).encode()",
        f"{source}.replace('0.', '0' * 200_000 + '.').encode()",
        f"{source}.replace('0.5', '0.5' + '0' * 5000).encode()",
        f"{source}.replace('\\n', '\\n#', 2).encode()", f"{source}.replace('0.25', '1/4').encode()",
        f"('\\n' + {source}).encode()",
        f"{source}.replace('0.5', '50%').encode()", f"{source}.replace('0.5', '').encode()",
        f"({source} + '\\x1a').encode()",
        f"{source}.replace('0.5', 'nan').encode()", f"{source}.replace('a,b', 'a,a').encode()",
        f"({source} * 2).encode()",
        f"{source}.replace('label', 'LABEL').encode()", f"{source}.replace('\\n', '\\u2028').encode()",
        f"('\"' + {source}).encode()",
        f"({source} + '\"0.5,0.5').encode()", f"({source} + '0.5,\"0.5').encode()",
        f"({source} + '0.5').encode()",
    )),
)  # fmt: skip

_PARQUET = st.one_of(
    tables.map("parquet({})".format),
    st.tuples(tables, sources("compression='zstd'", "use_dictionary=False", "row_group_size=2",
        "version='1.0'")).map(
        lambda drawn: f"parquet({drawn[0]}, {drawn[1]})"
    ),
    st.tuples(_TABLES, st.integers(0, 12).map(lambda power: 2**power) | sources("-1", "2**31", "0",
        "2**32 - 8")).map(
        lambda drawn: f"footer(parquet({drawn[0]}), {drawn[1]})"
    ),
    _TABLES.map("footer(parquet({}), 100, b'PARE')".format),
    sources("parquet({'a': pa.array([[1.]]), 'label': ['a']})",
        "parquet({'a': pa.nulls(4), 'label': [1, 2, 3, 4]})",
            "parquet({'a': [.5, .5], 'b': [.5, None], 'label': ['a', 'b']})",
            "parquet({'a': [b'x'], 'label': [{'x': 1}]})",
            "parquet({'a': pa.array([.5, .5], pa.float16()), 'label': [0, 1]})",
            "parquet(table(), use_byte_stream_split=['a'], use_dictionary=False)"),
)  # fmt: skip

_ARROW = st.tuples(tables, sources("'file'", "'stream'", "'feather'")).map(
    lambda drawn: f"arrow_file({drawn[0]}, {drawn[1]})"
)

_DTYPES = [
    "'<f8'", "'>f8'", "'<f4'", "'|O'", "'|V24'", "'<U9999999'", "'<M8[D]'",
    "[('a', '<f8'), ('b', '<f8'), ('label', '<f8')]", "[]", "'<f16'", "'<c16'", "'|b1'", "'|S0'",
    "None", "1", "'\\x1b'", "('<f8', (2,))", "{}", "'<f2'", "'<i8'",
]  # fmt: skip
_SHAPES = [
    "(8, 3)", "(8,)", "(24,)", "()", "(True, 3)", "(2**63, 3)", "(9223372036854775808, 4)",
    "(-1, 3)", "(0, 3)", "(8, 0)", "(8, 3, 1)", "[8, 3]", "8", "'8'", "(4294967296, 4294967296)",
    "(1e3, 3)", "(8.0, 3)", "None", "(10**12, 3)", "(1,) * 40", "(1000000000000, 3)", "(7, 3)",
    "(9, 3)", "(99999999999999999999999, 3)", "({}, 3)", "(8, None)",
]  # fmt: skip
_HEADERS = st.one_of(
    st.tuples(st.sampled_from(_DTYPES), st.sampled_from(["False", "True", "2", "None", "'x'"]),
        st.sampled_from(_SHAPES)).map(
        lambda drawn: f"{{'descr': {drawn[0]}, 'fortran_order': {drawn[1]}, 'shape': {drawn[2]}, }}"
    ),
    st.sampled_from(["", "{}", "{[]: 1}", "[]", "x" * 70_000, "{'descr': '<f8'}", "(" * 5000,
        "1" + "0" * 6000, "\0", "é",
                     "{'descr': '<f8', 'fortran_order': False, 'shape': (8, 3), 'more': 1}",
                     "__import__('os')", "1 +", "f'{1}'",
                     "{'descr': '<f8', 'fortran_order': False, 'shape': (8, 3), **{}}",
                     "-" * 3000 + "1"]),
)  # fmt: skip
_FORGED = st.tuples(
    _HEADERS, st.sampled_from(["(1, 0)", "(1, 0)", "(2, 0)", "(3, 0)", "(0, 9)", "(255, 255)"]),
    st.sampled_from(["None", "None", "None", "0", "10", "65535", "2**31", "2**32 - 1"]),
).map(lambda drawn: f"npy_header({drawn[0]!r}, {drawn[1]}, {drawn[2]})")  # fmt: skip

_ARRAYS = [
    "two_by_two()", "two_by_two().astype('f4')", "two_by_two().astype('>f2')", "two_by_two().T",
    "two_by_two()[:, 1]", "two_by_two()[:0]", "two_by_two() * 100", "two_by_two().astype(object)",
    "two_by_two().astype('U9')", "np.float64(.5)", "two_by_two()[None]", "two_by_two(2)",
    "two_by_two().astype('g')", "two_by_two().view('c16')", "np.array([])", "two_by_two() * nan",
    "two_by_two()[:4]", "records(two_by_two())",
]  # fmt: skip
_LABEL_ARRAYS = [
    "np.arange(8) % 2", "(np.arange(8) % 2).astype('?')", "np.array(list('abababab'))",
    "np.array([0.] * 8)", "np.arange(8)", "np.zeros((8, 1), int)", "np.array(['a', None] * 4)",
    "np.array(list('abababab'), 'S')", "np.array([10**5000] * 8)", "np.zeros(8, 'M8[D]')",
    "np.int64(0)", "-np.ones(8)", "np.array(['\\x1b[31m', 'x' * 100_000] * 4)",
    "np.arange(8) % 2 + 2**62", "np.zeros(8, 'V3')", "np.arange(8) % 2 + 0j", "np.full(8, nan)",
]  # fmt: skip
_CLASS_ARRAYS = [
    "['a', 'b']", "['a', 'a']", "['a']", "['a', 'b', 'c']", "[0, 1]", "[1, 1.5]", "[None, nan]",
    "'ab'", "[['a', 'b']]", "['\\x1b', '']", "np.array(['a', 'b'], object)", "[True, False]",
    "['a', 'b\\0']", "np.array([], 'U1')",
]  # fmt: skip
_NPY = st.one_of(
    _FORGED, _FORGED, st.sampled_from(_ARRAYS).map("npy({})".format),
    sources("npy(np.column_stack([two_by_two(), np.arange(8) % 2]))",
        "npy(np.column_stack([two_by_two(24), np.arange(24) % 2]))"),
)  # fmt: skip


_FIELD_VALUES = [
    "0", "1", "7", "8", "9", "12", "14", "93", "99", "2048", "0xffff", "2**31", "2**32 - 1",
]  # fmt: skip


@st.composite
def _npz(draw):
    probs = draw(st.sampled_from([*_ARRAYS[:5], *_ARRAYS]))
    labels = draw(st.sampled_from([*_LABEL_ARRAYS[:3], *_LABEL_ARRAYS]))
    kind = draw(st.sampled_from(["saved", "saved", "members", "field", "field", "bomb"]))
    if kind == "bomb":
        return draw(sources("zip_bomb()", "zip_bomb(10**6)", "zip_of()", "zip_of(probs=b'', y=b'')"))
    if kind == "members":
        forged = draw(_FORGED)
        return (
            f"zip_of(probs={forged}, labels=npy({labels}))"
            if draw(st.booleans())
            else f"zip_of(probs=npy({probs}), labels={forged})"
        )
    names = draw(
        st.sampled_from(
            [("probs", "labels")] * 3
            + [("p", "y"), ("probs", "x"), ("probs", "probs_"), ("y_prob", "target")]
        )
    )
    more = f", classes={draw(st.sampled_from(_CLASS_ARRAYS))}" if draw(st.booleans()) else ""
    more += draw(
        st.sampled_from(
            [
                "", "", ", g=np.arange(8) % 2", ", g=np.arange(4)", ", other=np.zeros(3)",
                ", g=[[1]]", ", g=['\\x1b'] * 8",
            ]
        )
    )  # fmt: skip
    save = draw(st.sampled_from(["", "np.savez_compressed, "]))
    archive = f"npz({save}{names[0]}={probs}, {names[1]}={labels}{more})"
    if kind == "saved":
        return archive
    value = draw(st.sampled_from(_FIELD_VALUES))
    field, entry = draw(st.sampled_from(sorted(_FIELDS))), draw(st.integers(0, 2))
    where = draw(st.sampled_from(["header", "directory", "both"]))
    return f"zip_field({archive}, {field!r}, {value}, {entry}, {where!r})"


_TOML_NAMES = [
    "label", "columns", "group", "lens", "statistic", "alpha", "tolerance", "correction",
    "min-rows", "min_rows", "resamples", "seed", "report", "markdown", "json", "junit", "fail-on",
    "jobs", "alpah", "config", "file", "'\\u001b'", '"\\u202e"', '""', "x.y",
]  # fmt: skip
_TOML_VALUES = [
    "0.05", "1", "99", "0", "-1", "1.5", "nan", "inf", "true", '""', '"ece"', '"x"', "[]",
    '["ece", "ks"]', "{}", "[[]]", '["a"]', "[1]", "2020-01-01", "1e400", "9" * 400,
    '"\\u001b[31m"', '"a\\nb"', '"never"', '"../up.json"', '"out.json"', '"d.csv"', '"label"',
    '"out.html"', '"r.md"', '"/dev/full"', '"~/x.json"', '"a,b"', '"' + "x" * 2000 + '"', "0x10",
    '"\\u202e"', '"top_label"',
]  # fmt: skip


@st.composite
def toml(draw):
    """Draw a configuration."""
    lines = draw(st.lists(st.tuples(*map(st.sampled_from, (_TOML_NAMES, _TOML_VALUES))), max_size=4))
    head = draw(st.sampled_from(["[tool.caltest]\n", "[tool.caltest]\n", "", "[tool]\ncaltest = 1\n",
        "tool = 3\n", "[[tool.caltest]]\n",
                                 "[tool.caltest]\n[tool.caltest]\n", "[tool.other]\n",
                                 "\ufeff[tool.caltest]\n"]))  # fmt: skip
    source = f"{head + ''.join(f'{name} = {value}' + chr(10) for name, value in lines)!r}.encode()"
    return draw(st.one_of(st.just(source), st.just(source), damaged(st.just(source))))


def damaged(contents):
    """Damage bytes in one way or two."""
    at, byte = st.integers(0, 9999), st.integers(1, 255)
    more = sources("b'\\0'", "b'\"'", "b'\\xff\\xfe'", "b'\\r'", "b'\\n'", "bytes(300)", "b','",
        "b'\\x1b'", "b'PK\\x03\\x04'", "b'9' * 5000",
                   "'é\\u202e'.encode()", "b'x' * 100_000")  # fmt: skip
    return contents.flatmap(
        lambda source: st.one_of(
            st.lists(st.tuples(at, byte), min_size=1,
                max_size=3).map(lambda drawn: f"flipped({source}, {', '.join(map(str, drawn))})"),
            st.tuples(st.integers(0, 999), st.integers(0,
                1000)).map(lambda drawn: f"cut({source}, {min(drawn)}, {max(drawn)})"),
            st.integers(1, 999).map(lambda end: f"cut({source}, 0, {end})"),
            st.tuples(at, more).map(lambda drawn: f"inserted({source}, {drawn[0]}, {drawn[1]})"),
            st.tuples(at, st.integers(1,
                40)).map(lambda drawn: f"without({source}, {drawn[0]}, {drawn[1]})"),
            sources(f"({source}) * 2", f"({source})[::-1]", f"packed({source})", "b''",
                f"bytes(len({source}))", "os.urandom(0) + b'\\0'"),
        )
    )  # fmt: skip


_KINDS: dict[str, Sources] = {
    "d.csv": _CSV, "d.parquet": _PARQUET, "d.pq": _PARQUET, "d.arrow": _ARROW, "d.feather": _ARROW,
    "d.npz": _npz(), "d.npy": _NPY,
    "d.jsonl": tables.map("json_lines({})".format),
}  # fmt: skip
_WEIGHTED = (
    ["d.csv"] * 4
    + ["d.parquet"] * 2
    + ["d.npz"] * 4
    + ["d.npy"] * 3
    + ["d.arrow", "d.feather", "d.pq", "d.jsonl"]
)
_ODD_NAMES = [
    "D.CSV", "d.txt", "d", "\x1b[31m.csv", "a\nb.csv", "\u202e.csv", "-d.csv", "x" * 240 + ".csv",
    "é.csv", "\udcff.csv", " .csv", "x\n::error::y.csv", "d.csv.gz", "d.json",
]  # fmt: skip


@st.composite
def files(draw, right=False):
    """Draw a name and the expression of its content; half are damaged, unless they are to be right."""
    if right or draw(st.sampled_from([True, False, False, False])):
        name = draw(st.sampled_from(["d.csv", "d.npz", "d.parquet"]))
        columns = draw(sources("table(24)", "table(30, ('a', 'b', 'c'))", "table(24, groups=True)"))
        return name, {"d.csv": f"csv({columns})", "d.parquet": f"parquet({columns})",
                      "d.npz": "npz(probs=two_by_two(24), label=np.arange(24) % 2)"}[name]  # fmt: skip
    name = draw(st.sampled_from(_WEIGHTED))
    content = _KINDS[name]
    source = draw(st.one_of(content, damaged(content), damaged(damaged(content))))
    kind = draw(st.sampled_from(["", "", "", "", "", "", "name", "swap", "special"]))
    if kind == "name":
        name = draw(st.sampled_from(_ODD_NAMES))
    elif kind == "swap":
        name = draw(st.sampled_from(_WEIGHTED))
    elif kind == "special":
        source = draw(sources("folder", "fifo", "link('/dev/zero')", "link('/dev/null')",
            "link('none')", "link('d.csv')", "link('.')",
                              "link('/dev/full')", "link('/proc/self/mem')",
                              "link('/proc/self/environ')", "link('x' * 250)"))  # fmt: skip
    return name, source
