"""The door for files: what is no plain file, or is damaged, is refused in one sentence, at once."""

import gzip
import lzma
import os
import re
import socket
import struct
import subprocess
import sys
import tokenize
import zipfile
import zlib
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from support import command

from caltest import InputError, _parallel
from caltest.cli._options import load_config
from caltest.files import paths, read, read_with_groups, scan

PROBS = np.array([[0.5, 0.25, 0.25], [0.125, 0.75, 0.125], [0.0, 0.5, 0.5], [0.0, 0.0, 1.0]])
LABELS = np.array([0, 1, 2, 2])
FRAME = pd.DataFrame(PROBS, columns=["cat", "dog", "owl"]).assign(label=["cat", "dog", "owl", "owl"])
TABLE = np.column_stack([PROBS, LABELS])
COMMANDS = ("test", "estimate", "audit", "bounds", "estimate-error", "power")
LIMIT = 100  # seconds, on a busy machine; what waits for a pipe waits for ever


def is_one_sentence(text):
    return text.endswith((".", "?")) and ". " not in text and "\n" not in text


def refused(call, *arguments, **options):
    """Return the one sentence with which something is refused."""
    with pytest.raises(InputError) as caught:
        call(*arguments, **options)
    assert is_one_sentence(str(caught.value)), str(caught.value)
    return str(caught.value)


def in_process(code, *arguments, before=""):
    """Run Python in a process of its own, for a limited time."""
    line = [sys.executable, "-c", code, *map(str, arguments)]
    if before:
        line = ["bash", "-c", f'{before}; exec "$@"', "bash", *line]
    return subprocess.run(line, capture_output=True, text=True, timeout=LIMIT, check=False)


# ------------------------------------------------------------------ what is no plain file


def pipe(folder, suffix):
    os.mkfifo(folder / f"a{suffix}")
    return folder / f"a{suffix}"


def link_to(target):
    def make(folder, suffix):
        (folder / f"a{suffix}").symlink_to(target)
        return folder / f"a{suffix}"

    return make


def directory(folder, suffix):
    (folder / f"a{suffix}").mkdir()
    return folder / f"a{suffix}"


def bound_socket(folder, suffix):
    with socket.socket(socket.AF_UNIX) as bound:
        here = Path.cwd()
        os.chdir(folder)  # the path of a socket must be short
        try:
            bound.bind(f"a{suffix}")
        finally:
            os.chdir(here)
    return folder / f"a{suffix}"


def named_only(name):
    return lambda folder, suffix: folder / f"{name}{suffix}"


SPECIAL = {
    "pipe": (pipe, "is a pipe"),
    "endless device": (link_to("/dev/zero"), "is a device"),
    "terminal": (link_to("/dev/tty"), "is a device"),
    "socket": (bound_socket, "is a socket"),
    "directory": (directory, "is a directory|directory holds no such files"),
    "loop of links": (link_to("a.loop"), "cannot be read: .*symbolic links"),
    "missing": (named_only("missing"), "there is no such file"),
    "below a file": (lambda folder, suffix: Path(__file__) / f"a{suffix}", "there is no such file"),
    "long name": (named_only("n" * 300), "cannot be read: File name too long"),
    "null character": (named_only("a\0b"), "null (character|byte)"),
}


@pytest.mark.parametrize("suffix", [".csv", ".parquet", ".npz", ".npy"])
@pytest.mark.parametrize(("make", "message"), SPECIAL.values(), ids=SPECIAL)
def test_what_is_no_plain_file_is_refused(tmp_path, make, message, suffix):
    if make in (pipe, bound_socket) and sys.platform == "win32":
        pytest.skip("there are none")
    if make is SPECIAL["loop of links"][0]:
        (tmp_path / "a.loop").symlink_to(f"a{suffix}")
    path = make(tmp_path, suffix)
    for call in (read, read_with_groups, scan):
        said = refused(call, path)
        if not (call is scan and suffix == ".npz" and "a block of rows at a time can" in said):
            assert re.search(message, said)
        assert len(said) < 300
    assert re.search(f"{message}|is a directory", refused(load_config, path, {}))


@pytest.mark.slow
@pytest.mark.parametrize("name", [*COMMANDS, "compare"])
def test_commands_read_through_the_door(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    FRAME.to_parquet("a.parquet")
    os.mkfifo("pipe.csv")
    Path("zero.csv").symlink_to("/dev/zero")
    Path("cut.npy").write_bytes(b"\x93NUMPY\x01\x00")
    more = ["--n", "10"] if name == "power" else ["a.parquet"] if name == "compare" else []
    for path, words in {
        "": "path of the file is empty",
        "pipe.csv": "is a pipe",
        "zero.csv": "is a device",
        "n" * 300 + ".csv": "name too long",
        "cut.npy": "reading array header",
    }.items():
        found = command(name, path, *more)
        assert found.exit_code == 2, (path, found.output, found.exception)
        assert words.lower() in found.stderr.lower()
        assert found.stderr.startswith("Error: ")
        assert found.stderr.count("\n") == 1


# ------------------------------------------------------------------ what libraries raise

RAISED = [
    ValueError("bad"), EOFError(), zipfile.BadZipFile("Bad magic number. Try again"),
    zlib.error("Error -3"), lzma.LZMAError("Corrupt input"), struct.error("unpack requires"),
    tokenize.TokenError("EOF in multi-line statement", (2, 0)), SyntaxError("invalid syntax"),
    UnicodeDecodeError("utf-8", b"\xff", 0, 1, "invalid start byte"), OverflowError("too large"),
    RecursionError("maximum recursion depth exceeded"), MemoryError(),
    NotImplementedError("compression type 9"), RuntimeError("File is encrypted"), KeyError("label"),
    IndexError(), TypeError("unhashable type: 'list'"), AssertionError(), OSError("Corrupt snappy"),
    OSError(5, "Input/output error"), PermissionError(13, "Permission denied"),
    pd.errors.ParserError("Error tokenizing\ndata. C error: x"),
    ValueError("Exceeds the limit (4300 digits); use sys.set_int_max_str_digits() to increase"),
    ValueError("long " * 10_000),
]  # fmt: skip


@pytest.mark.parametrize("error", RAISED, ids=lambda error: type(error).__name__)
def test_whatever_a_library_raises_becomes_one_sentence(error, tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("x")

    def body():
        with paths.named("a.csv"), paths.opened(path, "CSV"):
            raise error

    said = refused(body)
    assert said.startswith("a.csv: ")
    assert len(said) < 300


def test_what_pyarrow_raises_becomes_one_sentence(tmp_path):
    pa = pytest.importorskip("pyarrow")
    for kind in (pa.ArrowInvalid, pa.ArrowNotImplementedError, pa.ArrowMemoryError, pa.ArrowKeyError):

        def body(kind=kind):
            with paths.reading("the file is not valid Parquet"):
                raise kind("Couldn't deserialize thrift: TProtocolException.\n")

        refused(body)


def test_who_stops_the_program_stops_it(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("x")
    with pytest.raises(KeyboardInterrupt), paths.opened(path, "CSV"):
        raise KeyboardInterrupt


def test_a_file_is_closed_whatever_happens(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("x")
    with pytest.raises(InputError), paths.opened(path, "CSV") as file:
        raise ValueError
    assert file.closed


# ------------------------------------------------------------------ damages


def as_csv(path):
    FRAME.to_csv(path, index=False)


def as_parquet(path):
    FRAME.to_parquet(path)


def as_npz(path):
    np.savez(path, probs=PROBS, y=FRAME["label"].to_numpy("U3"), classes=["cat", "dog", "owl"])


def as_packed_npz(path):
    np.savez_compressed(path, probs=PROBS, y=LABELS)


def as_npy(path):
    np.save(path, TABLE)


FORMATS = {
    "csv": (as_csv, ".csv"), "parquet": (as_parquet, ".parquet"), "npz": (as_npz, ".npz"),
    "packed npz": (as_packed_npz, ".npz"), "npy": (as_npy, ".npy"),
}  # fmt: skip


def without_labels(path, *label):
    return read_with_groups(path, *label, needs_labels=False)


HEADER = "{'descr': '<f8', 'fortran_order': False, 'shape': (4, 4), }"
HEADERS = {
    "huge shape": HEADER.replace("(4, 4)", "(400000000, 4)"),
    "unhashable": "{[]: 1}",
    "endless text": HEADER.replace("<f8", "<U999999999"),
    "objects": HEADER.replace("<f8", "|O"),
}


@pytest.mark.filterwarnings("ignore::SyntaxWarning", "ignore::DeprecationWarning")
@pytest.mark.parametrize("header", HEADERS.values(), ids=HEADERS)
def test_headers_that_no_array_has(tmp_path, header):
    text = header.encode()
    content = b"\x93NUMPY\x01\x00" + struct.pack("<H", len(text)) + text + TABLE.tobytes()
    (tmp_path / "a.npy").write_bytes(content)
    for call in (read, scan):
        refused(call, tmp_path / "a.npy", 3)
    refused(without_labels, tmp_path / "a.npy")
    with zipfile.ZipFile(tmp_path / "a.npz", "w") as archive:
        archive.writestr("probs.npy", content)
        archive.writestr("y.npy", content)
    for call in (read, without_labels):
        assert re.search("'probs' cannot be read: |more memory", refused(call, tmp_path / "a.npz"))


@pytest.mark.parametrize("version", [(1, 0), (2, 0), (3, 0)])
@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("dtype", ["<f8", ">f8", "<f4", ">f4"])
def test_arrays_of_every_layout_are_read(tmp_path, version, order, dtype):
    table = np.tile(TABLE, (2000, 1)).astype(dtype, order=order)
    with (tmp_path / "a.npy").open("wb") as file:
        np.lib.format.write_array(file, table, version)
    for found in (read(tmp_path / "a.npy", 3), scan(tmp_path / "a.npy", 3).load()):
        np.testing.assert_array_equal(found.rows.probs, np.tile(PROBS, (2000, 1)))
        np.testing.assert_array_equal(found.labels, np.tile(LABELS, 2000))


def patched_zip(path, at, value):
    """Change a field of every member: of the local header, and of the directory two bytes on."""
    content = bytearray(path.read_bytes())
    for signature, offset in ((b"PK\x03\x04", at), (b"PK\x01\x02", at + 2)):
        start = content.find(signature)
        while start >= 0:
            content[start + offset : start + offset + 2] = struct.pack("<H", value)
            start = content.find(signature, start + 4)
    path.write_bytes(content)


@pytest.mark.parametrize(
    ("at", "value", "message"),
    [
        (6, 1, "is encrypted"), (8, 99, "compression method is not supported"),
        (8, zipfile.ZIP_LZMA, "cannot be read"), (8, zipfile.ZIP_BZIP2, "cannot be read"),
        (8, zipfile.ZIP_DEFLATED, "cannot be read"), (14, 4711, "Bad CRC-32"),
    ],
)  # fmt: skip
def test_archives_that_numpy_does_not_write(tmp_path, at, value, message):
    np.savez(tmp_path / "a.npz", probs=PROBS, y=LABELS)
    patched_zip(tmp_path / "a.npz", at, value)
    for call in (read, without_labels):
        assert re.search(message, refused(call, tmp_path / "a.npz"))


@pytest.mark.filterwarnings("ignore:Duplicate name")
def test_two_arrays_of_one_name(tmp_path):
    np.savez(tmp_path / "a.npz", probs=PROBS, y=LABELS)
    with zipfile.ZipFile(tmp_path / "a.npz", "a") as archive:
        archive.write(tmp_path / "a.npz", "probs.npy")
    assert "two arrays have one name ('probs')" in refused(read, tmp_path / "a.npz")


def test_text_that_is_none(tmp_path):
    for code in (0x110000, 0xD800, 2**32 - 1):
        text = np.array(["cat", "dog", "owl", "owl"])
        text.view(np.uint32)[4] = code
        np.savez(tmp_path / "a.npz", probs=PROBS, y=text, classes=["cat", "dog", "owl"])
        assert "text that is no Unicode" in refused(read, tmp_path / "a.npz")


@pytest.mark.parametrize("names", [["a", "a", "c"], ["a", "b"], ["a", "b", "c", "d"], "abc"])
@pytest.mark.parametrize("labels", [{}, {"y": LABELS}])
def test_class_names_are_one_a_class_and_distinct(tmp_path, names, labels):
    np.savez(tmp_path / "a.npz", probs=PROBS, classes=names, **labels)
    words = "two classes have one name|one name for every class"
    assert re.search(words, refused(without_labels, tmp_path / "a.npz"))
    found = command("power", tmp_path / "a.npz", "--overconfidence", "0.05", "--n", "50")
    assert found.exit_code == 2
    assert re.search(words, found.stderr)


# ------------------------------------------------------------------ memory


def test_what_does_not_fit_is_not_begun(tmp_path, monkeypatch):
    for write, suffix in FORMATS.values():
        write(tmp_path / f"a{suffix}")
        with monkeypatch.context() as patch:
            patch.setattr(_parallel, "available", lambda: 10.0)
            said = refused(read, tmp_path / f"a{suffix}", 3 if suffix == ".npy" else None)
        assert "GB are available" in said


def test_a_sparse_csv_of_many_gigabytes(tmp_path):
    with (tmp_path / "a.csv").open("wb") as file:
        file.truncate(10**13)
    assert "a CSV file of 10000000 MB needs about" in refused(read, tmp_path / "a.csv")
    with (tmp_path / "a.csv").open("wb") as file:
        file.truncate(2**25)
    assert "line 1 holds a null character" in refused(read, tmp_path / "a.csv")


@pytest.mark.skipif(sys.platform != "linux", reason="limits of address space are Linux's")
def test_the_address_space_that_is_left_is_memory():
    code = "from caltest import _parallel; print(_parallel.available() < 1.3e9)"
    assert in_process(code, before="ulimit -v 1200000").stdout == "True\n"


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (MemoryError(), "not enough memory"),
        (np._core._exceptions._ArrayMemoryError((9, 9), np.dtype(float)), "not enough memory"),
        (RuntimeError("can't start new thread"), "not enough memory"),
        (ImportError("x.so: failed to map segment from shared object"), "not enough memory"),
        (OSError(12, "Cannot allocate memory"), "not enough memory"),
        (OSError(28, "No space left on device", "out/x"), r"No space left on device \(x\)"),
        (PermissionError(13, "Permission denied"), "Permission denied"),
    ],
    ids=repr,
)
def test_what_the_system_refuses_is_no_bug(error, words, monkeypatch):
    def refuse(*_, **__):
        raise error

    monkeypatch.setattr("caltest.testing.test", refuse)
    found = command("test", "--example", "digits:naive_bayes")
    assert found.exit_code == 2
    assert re.fullmatch(f"Error: .*{words}.*\n", found.stderr)


def test_a_bug_stays_one(monkeypatch):
    def fail(*_, **__):
        raise RuntimeError("something else")

    monkeypatch.setattr("caltest.testing.test", fail)
    found = command("test", "--example", "digits:naive_bayes")
    assert found.exit_code == 3
    assert "this is a bug in caltest" in found.stderr


# ------------------------------------------------------------------ files that change meanwhile


def test_a_parquet_file_that_becomes_a_pipe(tmp_path):
    pytest.importorskip("pyarrow")
    FRAME.to_parquet(tmp_path / "a.parquet")
    stored = scan(tmp_path / "a.parquet")
    (tmp_path / "a.parquet").unlink()
    os.mkfifo(tmp_path / "a.parquet")
    assert "is a pipe" in refused(stored.load)


# ------------------------------------------------------------------ rows of CSV

ROWS = {
    "stray quote in a group": ('p,y,g\n.5,0,a\n.5,1,"b\n.5,0,c"\n.5,0,a\n',
        r"column 'g' at row 1 .* seems to hold further rows, as if a quote were not closed"),
    "stray quote in a probability": ('p,y,g\n"5,0,a\n.5,1,b\n.5,0,c"\n', "line 2 has 1 cell"),
    "null characters": ("p,y,g\n.5,0,\0\n.5,1,b\n", "line 2 holds a null character"),
}  # fmt: skip


@pytest.mark.parametrize(("text", "message"), ROWS.values(), ids=ROWS)
def test_rows_that_are_none(tmp_path, text, message):
    (tmp_path / "a.csv").write_text(text)
    assert re.search(message, refused(read_with_groups, tmp_path / "a.csv", groups=["g"]))


def test_blank_lines_and_empty_cells_are_none_of_these(tmp_path):
    (tmp_path / "a.csv").write_text("\np,y,g\n\n.5,0,a\n  \n.5,1,\n\n")
    found, groups = read_with_groups(tmp_path / "a.csv", groups=["g"])
    assert found.labels.tolist() == [0, 1]
    assert groups["g"].isna().tolist() == [False, True]


def test_text_of_several_lines_is_text(tmp_path):
    (tmp_path / "a.csv").write_text('p,y,words\n.5,0,"a\nb\n"\n.5,1,"b, c\r\nc"\n')
    found, groups = read_with_groups(tmp_path / "a.csv", groups=["words"])
    assert found.labels.tolist() == [0, 1]
    assert found.rows.notes == ()
    assert groups["words"].tolist() == ["a\nb\n", "b, c\r\nc"]


def test_text_that_seems_to_hold_rows_and_is_not_read_is_noted(tmp_path):
    (tmp_path / "a.csv").write_text('p,y,words\n.5,0,a\n.5,1,"b\n.5,1,c"\n')
    found = read(tmp_path / "a.csv", columns=["p"])
    assert found.labels.tolist() == [0, 1]
    said = "A cell of column 'words' at row 1 (counting from 0) seems to hold further rows: if"
    assert found.rows.notes[-1].startswith(said)


@pytest.mark.parametrize(
    "cell", ["1_000", "١", "x", "1/2", "True", "nan", "0x1", "--1", "1e", "9" * 99_999 + "x"]
)
@pytest.mark.parametrize("columns", [None, ["cat", "dog"]])
def test_one_bad_cell_is_told_with_its_row(tmp_path, cell, columns):
    (tmp_path / "a.csv").write_text(f"cat,dog,y\n.5,.5,0\n{cell},.5,1\n.5,.5,1\n")
    said = refused(read, tmp_path / "a.csv", columns=columns)
    number = "column 'cat' holds '.*' .*at row 1 .* not a number, in 1 of 3 rows"
    missing = "missing values, the first in row 1 .*; 1 of 3 rows have no 'cat', which"
    assert re.search(missing if cell == "nan" else number, said)
    assert len(said) < 350


# ------------------------------------------------------------------ numbers of thousands of digits

LONG = "1" * 5000


def test_long_numbers_in_a_file(tmp_path):
    path = tmp_path / "a.csv"
    for text in (
        f"{LONG},2{LONG},y\n.5,.5,0\n.5,.5,1\n",
        f"p_{LONG},p_2,y\n.5,.5,0\n.5,.5,1\n",
        f"a,b,y\n.5,.5,{LONG}\n.5,.5,1\n",
        "a,b,y\n.5,.5,1e999\n.5,.5,1\n",
        f"a,b,y\n{LONG},.5,0\n.5,.5,1\n",
    ):
        path.write_text(text)
        assert len(refused(read, path)) < 400


def test_long_numbers_as_groups_are_text(tmp_path):
    (tmp_path / "a.csv").write_text(f"p,y,g\n.5,0,{LONG}\n.5,1,{LONG}\n")
    assert read_with_groups(tmp_path / "a.csv", groups=["g"])[1]["g"].tolist() == [LONG, LONG]


@pytest.mark.parametrize("names", [["1", "1.0", "2"], ["p_1", "p_01", "p_2"], ["1", LONG, "2"]])
def test_numbers_in_names_that_labels_cannot_be_matched_to(tmp_path, names):
    pd.DataFrame(PROBS, columns=names).assign(y=LABELS).to_csv(tmp_path / "a.csv", index=False)
    said = refused(read, tmp_path / "a.csv")
    assert re.search("both carry the number 1; rename|more than 18 digits", said)


# ------------------------------------------------------------------ what is called .csv, and is none

CONTENTS = {
    "gzip": (lambda path: path.write_bytes(gzip.compress(b"p,y\n.5,0\n")), "is compressed with gzip"),
    "zip": (lambda path: as_npz(path.with_suffix(".npz")) or path.with_suffix(".npz").rename(path),
        "is a zip"),
    "npy": (lambda path: as_npy(path.with_suffix(".npy")) or path.with_suffix(".npy").rename(path),
        "is a NumPy"),
    "parquet": (lambda path: FRAME.to_parquet(path), "is a Parquet file; rename it to .parquet"),
    "utf-16": (lambda path: path.write_text("p,y\n", "utf-16"), "is UTF-16 text, not UTF-8"),
}  # fmt: skip


@pytest.mark.parametrize(("write", "message"), CONTENTS.values(), ids=CONTENTS)
def test_what_a_csv_file_is_in_truth_is_told(tmp_path, write, message):
    write(tmp_path / "a.csv")
    assert message in refused(read, tmp_path / "a.csv")


@pytest.mark.parametrize("call", [read, read_with_groups, scan])
def test_a_path_that_is_too_long_is_told_so(call):
    for path in ("a" * 5000 + ".csv", Path("a" * 5000 + ".csv")):
        assert "path has 5004 characters, more than" in refused(call, path)
    assert refused(call, "").startswith("'': the path is empty")
