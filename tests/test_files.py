"""Files of every kind give the same sample; wrong files say what is wrong, by name."""

import json
import random
import re
import time
from datetime import date
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import caltest
from caltest.data import sample
from caltest.exceptions import InputError
from caltest.files import read, read_with_groups, scan
from caltest.files.formats import StoredTable

PROBS = np.array([[0.5, 0.25, 0.25], [0.125, 0.75, 0.125], [0.0, 0.5, 0.5], [0.0, 0.0, 1.0]])
LABELS = np.array([0, 1, 2, 2])
FRAME = pd.DataFrame(PROBS, columns=["cat", "dog", "owl"])
NAMED = FRAME.assign(label=["cat", "dog", "owl", "owl"])


def saved(name, save):
    """Return what writes a file of this name into a folder, and returns the name."""
    return lambda folder: (save(folder / name), name)[1]


def csv(frame, **options):
    return saved("a.csv", lambda path: frame.to_csv(path, **{"index": False, **options}))


def text(content, name="a.csv", encoding="utf-8"):
    return saved(name, lambda path: path.write_bytes(content.encode(encoding)))


def parquet(frame):
    return saved("a.parquet", frame.to_parquet)


def arrow(frame):
    return saved("a.arrow", frame.to_feather)


def json_lines(frame):
    options = {"orient": "records", "lines": True, "date_format": "iso"}
    return saved("a.jsonl", lambda path: frame.to_json(path, **options))


def npz(**arrays):
    return saved("a.npz", lambda path: np.savez(path, **arrays))


def npy(array):
    return saved("a.npy", lambda path: np.save(path, array))


def arrow_stream(folder):
    table = pa.Table.from_pandas(NAMED)
    with pa.OSFile(str(folder / "a.arrow"), "wb") as file, pa.ipc.new_stream(file, table.schema) as out:
        out.write_table(table)
    return "a.arrow"


def directory(write_one):
    def write(folder):
        (folder / "parts").mkdir()
        for number, part in enumerate((NAMED[:1], NAMED[1:])):
            name = write_one(part.reset_index(drop=True))(folder)
            (folder / name).rename(folder / "parts" / f"{number}{Path(name).suffix}")
        return "parts"

    return write


TABLE = np.column_stack([PROBS, LABELS])
GOOD = {
    "csv": (csv(NAMED), {}),
    "csv, numbers": (csv(FRAME.assign(Y_True=LABELS)), {}),
    "csv, byte order mark": (csv(NAMED, encoding="utf-8-sig"), {}),
    "csv, other label": (csv(NAMED.rename(columns={"label": "truth"})), {"label": "truth"}),
    "csv, two labels": (csv(NAMED.assign(y=0)), {"label": "label", "columns": ["cat", "dog", "owl"]}),
    "csv, class called y": (csv(NAMED.replace("owl", "y").rename(columns={"owl": "y"})),
        {"label": "label"}),
    "csv, class called NA": (csv(NAMED.replace("owl", "NA").rename(columns={"owl": "NA"})), {}),
    "csv, with index": (csv(NAMED, index=True), {"columns": ["cat", "dog", "owl"]}),
    "parquet": (parquet(NAMED), {}),
    "arrow": (arrow(NAMED), {}),
    "arrow, numbers": (arrow(FRAME.assign(y=LABELS)), {}),
    "json lines": (json_lines(NAMED), {}),
    "json lines, numbers": (json_lines(FRAME.assign(y=LABELS, age=1)), {"columns": list(FRAME)}),
    "directory of parquet": (directory(parquet), {}),
    "directory of csv": (directory(csv), {}),
    "parquet, categorical": (parquet(NAMED.astype({"label": "category"})), {}),
    "parquet, float32": (parquet(FRAME.astype(np.float32).assign(label=LABELS)), {}),
    "npz": (npz(probs=PROBS, labels=LABELS), {}),
    "npz, other names": (npz(P=PROBS, truth=LABELS), {"label": "truth"}),
    "npz, classes": (npz(probs=PROBS, y=NAMED["label"].to_numpy("U3"), classes=["cat", "dog", "owl"]),
        {}),
    "npy": (npy(TABLE), {"label": -1}),
    "npy, text": (npy(TABLE), {"label": "3"}),
    "npy, first": (npy(TABLE[:, [3, 0, 1, 2]]), {"label": 0}),
}  # fmt: skip


@pytest.mark.parametrize(("write", "options"), GOOD.values(), ids=GOOD)
def test_every_file_gives_the_same_sample(tmp_path, write, options):
    checked, expected = read(tmp_path / write(tmp_path), **options), sample(PROBS, LABELS)
    np.testing.assert_array_equal(checked.rows.probs, expected.rows.probs)
    np.testing.assert_array_equal(checked.labels, expected.labels)


def test_class_names_are_the_columns(tmp_path):
    for write in (csv(NAMED), parquet(NAMED), npz(probs=PROBS, y=LABELS, classes=list(FRAME))):
        assert read(str(tmp_path / write(tmp_path))).rows.classes == ("cat", "dog", "owl")


def test_one_column_is_the_probability_of_class_1(tmp_path):
    for write in (
        text("p,y\n0.25,0\n1,1\n"),
        npz(p=[0.25, 1], y=[0, 1]),
        npz(p=[0.25, 1], y=["no", "yes"], classes=["no", "yes"]),
    ):
        checked = read(tmp_path / write(tmp_path))
        assert checked.rows.probs.tolist() == [[0.75, 0.25], [0, 1]]
        assert checked.labels.tolist() == [0, 1]


def test_what_is_not_read_is_noted(tmp_path):
    name = csv(NAMED.assign(age=42))(tmp_path)
    checked = read(tmp_path / name, columns=["owl", "cat", "dog"])
    assert checked.rows.classes == ("owl", "cat", "dog")
    assert checked.rows.notes == ("Columns not read: 'age'.",)
    name = npz(probs=PROBS, labels=LABELS, features=PROBS)(tmp_path)
    assert read(tmp_path / name).rows.notes == ("Arrays not read: 'features'.",)


WRONG = {
    "missing": (lambda _: "a.csv", {}, "there is no such file"),
    "directory": (lambda _: ".", {}, "this directory holds no such files; give another"),
    "suffix": (text("x", "a.xlsx"), {}, r"files that end in '\.xlsx' .* \.parquet, .*\.csv, .*\.npy"),
    "empty csv": (text(""), {}, "the file is empty"),
    "blank csv": (text("\n\n"), {}, "not valid CSV: No columns"),
    "header only": (text("a,b,label\n"), {}, "there is a header but no row"),
    "not utf-8": (text("é,b,label\n.5,.5,é\n", encoding="latin-1"), {}, "not UTF-8 text; save it as"),
    "late not utf-8": (text("a,b,label\n" + ".5,.5,a\n" * 9 + ".5,.5,é\n", encoding="latin-1"), {},
        "UTF-8"),
    "utf-32": (text("a,b,label\n.5,.5,a\n", encoding="utf-32"), {}, "UTF-32 text, not UTF-8; save it"),
    "utf-16": (text("a,b,label\n.5,.5,a\n", encoding="utf-16"), {}, "not UTF-8"),
    "too many cells": (text("a,b,y\n.5,.5,0\n.5,.5,0,3\n"), {},
        "line 3 has 4 cells, and the header has 3 names"),
    "all too many cells": (text("a,b,y\n.5,.5,0,3\n.5,.5,0,3\n"), {},
        "line 2 has 4 cells, and the header has 3"),
    "too few cells": (text("a,b,y\n.5,.5\n.5,.5,1\n"), {}, "2 has 2 cells, and the header has 3 names"),
    "empty cell": (text("a,b,y\n.5,.5,0\n.5,,1\n"), {}, "probs has missing values.*row 1 .*'b'"),
    "open quote": (text('a,b,y\n.5,.5,"x\n'), {}, "not valid CSV: .*EOF inside string"),
    "semicolons": (text("a;b;y\n0,5;0,5;0\n"), {}, "no comma but ';'.*save the file with commas"),
    "no header": (text(".5,.5,0\n.25,.75,1\n"), {}, r"the first line looks like numbers \('.5'"),
    "same name": (text("a,a,y\n.5,.5,0\n.5,.5,1\n"), {}, r"two columns have one name \('a'\)"),
    "no label": (csv(FRAME), {}, "no column is called label, .* label=: .* are 'cat', 'dog', 'owl'"),
    "two labels": (csv(NAMED.assign(y=LABELS)), {}, "'label', 'y' could all be .*label="),
    "no such label": (csv(NAMED), {"label": "lable"}, r"no column 'lable' \(did you mean 'label'\?\)"),
    "no probabilities": (csv(NAMED[["label"]]), {}, "no column besides the labels"),
    "unnamed index": (csv(NAMED, index=True), {}, "'Unnamed: 0' looks like a row index.*columns="),
    "id": (csv(NAMED.assign(ID=range(4))), {}, "column 'ID' looks like a row index"),
    "text column": (csv(NAMED.assign(name=list("abcd"))), {},
        r"'name' holds 'a' at row 0 .* is not a number \(nor are the other rows\)"),
    "text column alone": (csv(NAMED.assign(name=list("abcd"))), {"columns": ["name"]},
        "'name' holds 'a' .*; name one of probabilities, or say what words are: scale="),
    "one bad cell": (text("a,b,y\n.5,.5,0\n.5,1/2,1\n"), {},
        "'b' holds '1/2' at row 1 .* not a number, in 1 of 2 rows"),
    "decimal comma": (text('a,b,y\n.5,.5,0\n"0,5",.5,1\n'), {}, "decimals with a point"),
    "percent": (text("a,b,y\n.5,.5,0\n50%%,.5,1\n"), {}, "'a' holds '50%%' at row 1"),
    "nan as text": (text("a,b,y\n.5,.5,0\n.5,nan,1\n"), {},
        "missing values, the first in row 1 .*'b'; .*; 1 of 2 rows have no 'b', which"),
    "extra numbers": (csv(NAMED.assign(age=[17, 30, 45, 61])), {}, "'age' of probs seems to be no"),
    "logits": (csv(NAMED.assign(cat=-3, dog=2.5)), {}, "logits.*probs from 'cat', 'dog', 'owl'"),
    "unknown column": (csv(NAMED), {"columns": ["cat", "dgo"]}, r"'dgo' .*\(did you mean 'dog'\?\)"),
    "no columns": (csv(NAMED), {"columns": []}, "columns is empty"),
    "twice a column": (csv(NAMED), {"columns": ["cat", "cat"]}, "two columns have one name"),
    "label as column": (csv(NAMED), {"columns": ["cat", "label"]}, "no column 'label' of prob"),
    "one column too few": (csv(NAMED), {"columns": ["cat", "dog"]}, "a class may be missing"),
    "unknown class": (csv(NAMED.replace("owl", "elk")), {}, "label 'elk' in row 2"),
    "parquet, not": (text("a,b", "a.parquet"), {}, "not valid Parquet"),
    "parquet, index": (parquet(NAMED.set_axis([3, 1, 4, 5])), {}, "'__index_level_0__' looks like"),
    "csv, cut within a quote": (text('a,b,y\n.5,.5,0\n.5,.5,"1'), {}, "EOF inside.* in line 3; close"),
    "arrow, not": (text("a,b", "a.arrow"), {}, "not valid Arrow"),
    "arrow, a stream": (arrow_stream, {}, r"is a stream of Arrow; .*pyarrow\.ipc\.new_file"),
    "arrow, parquet": (text("PAR1", "a.arrow"), {}, r"is a Parquet file; rename it to \.parquet"),
    "parquet, encrypted": (text("PARE....PARE", "a.parquet"), {}, "encrypted Parquet; save it without"),
    "feather, version 1": (text("FEA1....FEA1", "a.feather"), {}, "of version 1; save it in version 2"),
    "json, no object": (text('{"a": 1}\n[1]\n', "a.jsonl"), {}, r"and there is an array in row 1 \("),
    "json, cut": (text('{"a": 1}\n{"a"', "a.jsonl"), {}, "JSON lines: Missing a colon .* in row 1"),
    "json, kinds": (text('{"a": 0.5, "y": 0}\n\n{"a": "x", "y": 1}\n', "a.jsonl"), {},
        "column 'a' changed from number to string in row 1"),
    "json, name twice": (text('{"a": 1, "a": 2}\n', "a.jsonl"), {}, "'a' was specified twice in row 0"),
    "json, missing": (text('{"a": 0.5, "y": 0}\n{"y": 1}\n', "a.jsonl"), {}, "the first in row 1"),
    "json, latin": (text('{"é": 0.5}\n', "a.jsonl", encoding="latin-1"), {}, "not UTF-8"),
    "json, nested": (text('{"a": {"b": 1}, "y": 0}\n', "a.jsonl"), {}, "'a' holds .* is not a number"),
    "parquet, bytes": (parquet(FRAME.assign(label=[b"a", b"b"] * 2)), {}, "labels holds entries of"),
    "npz, not": (text("a,b", "a.npz"), {}, "not valid NumPy"),
    "npz, cut": (text("PK\x03\x04 broken", "a.npz"), {}, "not valid NumPy"),
    "npz, logits": (npz(test_logits=PROBS, labels=LABELS), {}, "'test_logits' holds logits"),
    "npz, no probs": (npz(scores=PROBS, labels=LABELS), {}, "no array is called probs, .*'scores'"),
    "npz, two probs": (npz(probs=PROBS, p=PROBS, y=LABELS), {}, "'probs', 'p' could all be"),
    "csv, odd number": (text("p,y\n.5,0\n.5,1\n.5,?\n"), {}, "'[?]' in row 2 .* is not a number"),
    "csv, odd word": (text("p,y\n.5,no\n.5,yes\n.5,Maybe\n"), {}, "in row 2 .* neither 'yes' nor 'no'"),
    "npz, no labels": (npz(probs=PROBS, truth=LABELS), {}, "no array is called label, .*'truth'"),
    "npz, objects": (npz(probs=PROBS, y=np.array([None] * 4)), {}, "'y' cannot be read.*Object arrays"),
    "npz, classes": (npz(probs=PROBS, y=LABELS, classes=["a"]), {}, r"classes has shape \(1,\)"),
    "npz, columns": (npz(probs=PROBS, y=LABELS), {"columns": ["a"]}, "columns is for CSV and"),
    "npy, no label": (npy(TABLE), {}, "4 columns without names; .*label=-1 for the last"),
    "npy, label name": (npy(TABLE), {"label": "y"}, "label is 'y', but must be the index of one"),
    "npy, label beyond": (npy(TABLE), {"label": 4}, "from 0 to 3"),
    "npy, vector": (npy(PROBS[:, 0]), {"label": 0}, r"shape \(4,\)"),
    "npy, pickled": (npy(np.array([None, 1])), {"label": 0}, "NumPy: Object arrays cannot be loaded"),
}  # fmt: skip


def says_what_is_wrong(call, path, options, message):
    with pytest.raises(InputError, match=message) as caught:
        call(path, **options)
    said = str(caught.value)
    assert said.startswith(f"{path.name}: ")
    assert said.endswith((".", "?"))
    assert ". " not in said
    assert "\n" not in said


@pytest.mark.parametrize(("write", "options", "message"), WRONG.values(), ids=WRONG)
def test_wrong_files_say_what_is_wrong(tmp_path, write, options, message):
    says_what_is_wrong(read, tmp_path / write(tmp_path), options, message)


GROUPED = NAMED.assign(region=["north", "", "007", "north"], age=[30, 4, 4, 51])
DAYS, AGES = np.arange("2024-01-05", "2024-01-09", dtype="M8[D]"), (0.1, 0.2, 0.3, 0.7)
SHORT = {"region": np.float32(AGES), "age": np.float16(AGES)}
AGED = ("30", "4", "4", "51")
WITH_GROUPS = {
    "csv": (csv(GROUPED), [["north", None, "007", "north"], [*AGED]]),
    "parquet": (parquet(GROUPED), [["north", None, "007", "north"], [30, 4, 4, 51]]),
    "csv, blank": (csv(GROUPED.replace("", " ")), [["north", None, "007", "north"], [*AGED]]),
    "npz": (npz(probs=PROBS, y=LABELS, region=["north", "", "007", "north"], age=[30, 4, 4, 51]),
        [["north", None, "007", "north"], [30, 4, 4, 51]]),
    "npz, dates": (npz(probs=PROBS, y=LABELS, region=DAYS.astype("M8[ns]"), age=DAYS),
        [[f"{day}T00:00:00.000000000" for day in DAYS], [*map(str, DAYS)]]),
    "npz, short": (npz(probs=PROBS, y=LABELS, **SHORT), [[*AGES]] * 2),
    "parquet, short": (parquet(NAMED.assign(**SHORT)), [[*AGES]] * 2),
}  # fmt: skip


@pytest.mark.parametrize(("write", "expected"), WITH_GROUPS.values(), ids=WITH_GROUPS)
def test_groups_are_no_probabilities(tmp_path, write, expected):
    checked, groups = read_with_groups(tmp_path / write(tmp_path), groups=["region", "age"])
    np.testing.assert_array_equal(checked.rows.probs, PROBS)
    np.testing.assert_array_equal(checked.labels, LABELS)
    assert checked.rows.notes == ()
    assert list(groups) == ["region", "age"]
    found = [[None if pd.isna(cell) else cell for cell in groups[name]] for name in groups]
    assert found == expected


def test_groups_beside_columns_that_are_named(tmp_path):
    name = csv(GROUPED)(tmp_path)
    checked, groups = read_with_groups(tmp_path / name, columns=["owl", "cat", "dog"], groups="age")
    assert checked.rows.classes == ("owl", "cat", "dog")
    assert checked.rows.notes == ("Columns not read: 'region'.",)
    assert groups.shape == (4, 1)


def test_without_groups_there_are_none(tmp_path):
    for write, label in ((csv(NAMED), None), (npz(probs=PROBS, y=LABELS), None), (npy(TABLE), -1)):
        assert read_with_groups(tmp_path / write(tmp_path), label)[1].shape == (4, 0)


def test_a_group_may_be_called_as_labels_are(tmp_path):
    frame = NAMED.assign(target=["a", "b", "a", "b"])
    for write in (csv(frame), npz(probs=PROBS, label=LABELS, target=["a", "b", "a", "b"])):
        checked, groups = read_with_groups(tmp_path / write(tmp_path), groups=["target"])
        assert checked.labels.tolist() == LABELS.tolist()
        assert groups["target"].tolist() == ["a", "b", "a", "b"]


def test_whole_numbers_beside_a_missing_cell_stay_whole(tmp_path):
    frame = NAMED.assign(age=pd.array([30, None, 4, 4], dtype="Int64"))
    _, groups = read_with_groups(tmp_path / parquet(frame)(tmp_path), groups=["age"])
    assert groups["age"].tolist() == [30, None, 4, 4]


NO_GROUPS = {
    "unknown": (csv(GROUPED), {"groups": ["regoin"]}, r"to group by \(did you mean 'region'\?\)"),
    "the label": (csv(GROUPED), {"groups": ["label"]}, "'label' holds the labels, so it cannot be"),
    "the given label": (csv(GROUPED.rename(columns={"label": "truth"})),
        {"label": "truth", "groups": ["truth"]}, "'truth' holds the labels"),
    "a probability": (csv(GROUPED), {"columns": ["cat", "dog", "owl"], "groups": ["owl"]},
        "'owl' is given as a probability and as a group"),
    "json, large": (text('{"p": 0.5, "y": 1, "g": 1.5}\n{"p": 1, "y": 1, "g": 1e17}', "a.jsonl"),
        {"groups": ["g"]}, "'g' holds 1e.17 in row 1 .*, too large to have kept all digits; save"),
    "a probability, unsaid": (csv(NAMED), {"groups": ["owl"]}, "a class may be missing"),
    "twice": (csv(GROUPED), {"groups": ["age", "region", "age"]}, "'age' is given twice"),
    "parquet": (parquet(GROUPED), {"groups": ["aeg"]}, "the columns are 'cat', .*'region', 'age'"),
    "npz": (npz(probs=PROBS, y=LABELS, g=LABELS), {"groups": ["h"]}, "the arrays are 'y', 'g'"),
    "npz, the label": (npz(probs=PROBS, y=LABELS), {"groups": ["y"]}, "'y' holds the labels"),
    "npz, probs": (npz(probs=PROBS, y=LABELS), {"groups": ["probs"]}, "no array 'probs' to group"),
    "npz, shape": (npz(probs=PROBS, y=LABELS, g=PROBS), {"groups": ["g"]}, r"\(4, 3\), .* 4 rows"),
    "npy": (npy(TABLE), {"label": -1, "groups": ["a"]}, "no column 'a'; save"),
}  # fmt: skip


@pytest.mark.parametrize(("write", "options", "message"), NO_GROUPS.values(), ids=NO_GROUPS)
def test_wrong_groups_say_what_is_wrong(tmp_path, write, options, message):
    says_what_is_wrong(read_with_groups, tmp_path / write(tmp_path), options, message)


def test_an_empty_line_of_one_column_is_a_missing_cell(tmp_path):
    path = tmp_path / text("p\n.5\n\n.5\n\n")(tmp_path)
    with pytest.raises(InputError, match="missing values, the first in row 1"):
        read_with_groups(path, needs_labels=False)


def test_a_swapped_suffix_is_recognised(tmp_path):
    (tmp_path / npy(TABLE)(tmp_path)).rename(tmp_path / "b.npz")
    with pytest.raises(InputError, match=r"rename it to \.npy"):
        read(tmp_path / "b.npz")
    (tmp_path / npz(probs=PROBS, y=LABELS)(tmp_path)).rename(tmp_path / "b.npy")
    with pytest.raises(InputError, match=r"rename it to \.npz"):
        read(tmp_path / "b.npy", label=0)


@pytest.mark.parametrize("name", ["cifar10_densenet121", "cifar100_densenet_bc_100"])
def test_real_files(name, reference):
    assert read(reference(f"{name}.npz").fid.name).rows.n_samples == 10_000


def test_real_logits_are_recognised(reference):
    path = reference("cifar10_densenet40_logits.npz").fid.name
    with pytest.raises(InputError, match="holds logits; give logits=True"):
        read(path)
    with pytest.raises(InputError, match="'val_logits', 'test_logits' could all be the logits"):
        read(path, logits=True)


# ------------------------------------------------------------------ a block at a time

ROWS = 10_000


@pytest.fixture(scope="module")
def long():
    """More rows than a block of any reader has; late in it the columns show what they are."""
    rng = np.random.default_rng(0)
    probs = rng.dirichlet([1.0, 1.0, 1.0], ROWS)
    frame = pd.DataFrame(probs, columns=["0", "1", "2"])
    frame["label"] = np.array(["0", "1", "2"])[(rng.random((ROWS, 1)) > probs.cumsum(1)[:, :2]).sum(1)]
    frame["day"] = "2020-01-01"
    frame.loc[: ROWS - 2, "0"], frame.loc[: ROWS - 2, ["1", "2"]] = 1, 0
    return frame


@pytest.mark.parametrize("write", [csv, json_lines, arrow, parquet])
def test_what_is_read_in_blocks_is_what_is_read_whole(tmp_path, write, long):
    path = tmp_path / write(long)(tmp_path)
    whole, groups = read_with_groups(path, groups=["day"])
    blocks = scan(path, groups=["day"])
    parts = list(blocks.samples())
    assert [len(part.labels) for part in parts] == [4096, 4096, 1808]
    np.testing.assert_array_equal(np.concatenate([part.rows.probs for part in parts]), whole.rows.probs)
    np.testing.assert_array_equal(np.concatenate([part.labels for part in parts]), whole.labels)
    np.testing.assert_allclose(whole.rows.probs, long[["0", "1", "2"]], atol=1e-9)  # as pandas writes
    assert set(groups["day"]) == {"2020-01-01"}
    assert blocks.load().rows.classes == whole.rows.classes == ("0", "1", "2")


@pytest.mark.parametrize("late", ["owl", "0.5", ""])
def test_a_late_cell_says_what_all_labels_are(tmp_path, late, long):
    """A block of numbers alone is none of numbers: the file is told wrong as if it were read whole."""
    frame = long.drop(columns="day")
    frame.loc[ROWS - 1, "label"] = late
    path = tmp_path / csv(frame)(tmp_path)
    said = []
    for call in (read, lambda path: list(scan(path).samples())):
        with pytest.raises(InputError) as caught:
            call(path)
        said.append(str(caught.value))
    assert f"row {ROWS - 1} (counting from 0)" in said[0]
    assert re.search(r"row (9999|0) \(counting from 0\)", said[1])


def test_decimals_are_read_to_the_last_bit(tmp_path):
    rng = random.Random(0)
    cells = [f"0.{''.join(rng.choices('0123456789', k=17))}" for _ in range(2000)]
    cells += [f"{rng.random() * 10 ** -rng.randint(0, 30):.17g}" for _ in range(2000)]
    expected = np.array(list(map(float, cells)))
    (tmp_path / "a.csv").write_text("p,y\n" + "".join(f"{cell},1\n" for cell in cells))
    lines = (json.dumps({"p": float(cell), "y": 1}) + "\n" for cell in cells)
    (tmp_path / "a.jsonl").write_text("".join(lines))
    for name in ("a.csv", "a.jsonl"):
        np.testing.assert_array_equal(read(tmp_path / name).rows.probs[:, 1], expected)


@pytest.mark.parametrize("write", [csv, json_lines])
def test_a_test_of_many_rows_never_holds_them_all(tmp_path, write, long, monkeypatch):
    path = tmp_path / write(long.drop(columns="day"))(tmp_path)
    held = read(path)
    expected = caltest.test(held.rows, held.labels, "ecd", n_resamples=99, rng=0)
    monkeypatch.setattr("caltest.testing.HELD_UP_TO", 5000)
    monkeypatch.setattr(StoredTable, "table", None)
    found = caltest.test(scan(path), statistic="ecd", n_resamples=99, rng=0)
    assert found.pvalue == expected.pvalue
    assert found.statistic == pytest.approx(expected.statistic, rel=1e-9)


# ------------------------------------------------------------------ parts of different types


def parts(folder, *labels):
    """Write a directory with a file for every column of labels."""
    folder.mkdir()
    for number, column in enumerate(labels):
        half = pa.array([0.5] * len(column))
        pq.write_table(pa.table({"0": half, "1": half, "label": column}), folder / f"{number}.parquet")
    return folder


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (pa.array([True, False]), pa.array([1, 0])),
        (pa.array([1, 0]), pa.array([True, False])),
        (pa.array([True, False]), pa.array([7.0, np.nan])),
        (pa.array([1, 0]), pa.array(["1", "0"])),
        (pa.array([1, 0]), pa.array([0, 1], pa.timestamp("s"))),
    ],
)
def test_parts_of_kinds_that_do_not_go_together(tmp_path, one, other):
    said = r"column 'label' is .* in 0.parquet and .* in 1.parquet; save all"
    with pytest.raises(InputError, match=said):
        read(parts(tmp_path / "parts", one, other))


WRITERS = {"csv": csv, "jsonl": json_lines, "parquet": parquet, "arrow": arrow}


def two_writers(folder, kind, *frames):
    """Write a directory with a file for every frame."""
    (folder / "parts").mkdir()
    for number, frame in enumerate(frames):
        (folder / WRITERS[kind](frame)(folder)).rename(folder / "parts" / f"{number}.{kind}")
    return folder / "parts"


BAD = {  # by column: a cell, and what is said of it
    "cat": ("1/2", "column 'cat' holds '1/2' at {row}, which is not a number, in 1 of 8 rows"),
    "dog": (-3.0, "entries outside [0, 1], in 1 of 8 rows: {row}, column 'dog' is -3"),
    "owl": (None, "probs has missing values, the first in {row}, column 'owl'"),
    "label": ("elk", "label 'elk' in {row} is not the name of a column"),
    "w": ("x", "column 'w' holds 'x' at {row}, which is not a number, in 1 of 8 rows"),
    "c": (None, "clusters has missing values, the first in {row}"),
    "w again": (-1.0, "weights has -1 in {row}; give finite numbers"),
}


@pytest.mark.parametrize("kind", WRITERS)
@pytest.mark.parametrize("column", BAD)
def test_a_bad_cell_is_named_with_its_file(tmp_path, column, kind):
    whole = NAMED.assign(w=1.0, c=["a", "b", "c", "d"])
    (cell, said), name = BAD[column], column.split()[0]
    cells = whole[name].tolist()
    cells[2] = cell
    cells = [*map(str, cells)] if isinstance(cell, str) else cells
    folder = two_writers(tmp_path, kind, whole, whole.assign(**{name: cells}))
    roles = {"columns": list(FRAME), "weights": "w", "clusters": "c"}
    said, some = said.format(row=f"row 2 (counting from 0) of 1.{kind}"), ", in 1 of 8 rows"
    with pytest.raises(InputError, match=re.escape(said)):
        read(folder, **roles)
    with pytest.raises(InputError) as caught:  # of a block it is not said in how many rows
        list(scan(folder, **roles).samples())
    assert said.replace(some, "") in str(caught.value).replace(some, "")


#: Two values, and how another writer wrote the same.
TWICE = {
    "floats": ([1, 2], [1.0, 2.0]),
    "long": ([2**53 + 1, 2], [2.0**53 + 2, 2.0]),
    "text": ([1, 2], ["1", "2.0"]),
    "booleans": ([True, False], ["true", "FALSE"]),
    "dates": ([date(2024, 1, 5), date(2024, 1, 6)], ["2024-01-05", "2024-01-06T00:00:00"]),
    "midnight": ([pd.Timestamp(2024, 1, day) for day in (5, 6)], ["2024-01-05", "2024-01-06"]),
    "times": ([pd.Timestamp(2024, 1, 5, hour) for hour in (0, 6)], ["2024-01-05", "2024-01-05T06:00"]),
    "short": (np.array([0.1, 0.2], np.float32), np.array([0.1, 0.2])),
    "codes": (["007", "7"], ["007", "7"]),
}


@pytest.mark.parametrize("kind", WRITERS)
@pytest.mark.parametrize("case", TWICE)
def test_two_writers_of_one_folder(tmp_path, case, kind):
    """In any order of the columns; what is one value is one cluster, whatever wrote it."""
    pair = [NAMED[:2].assign(c=cells) for cells in TWICE[case]]
    pair[1] = pair[1][["c", "owl", "label", "dog", "cat"]]
    folder = two_writers(tmp_path, kind, *pair)
    for source in (read(folder, clusters="c"), scan(folder, clusters="c").load()):
        codes = [0, 1, 0, 1]
        if case == "long" or (case, kind) == ("short", "jsonl"):  # digits that pandas adds
            codes = [0, 1, 2, 1] if case == "long" else [0, 1, 2, 3]
        assert source.rows.clusters is not None
        assert source.rows.clusters.tolist() == codes
        np.testing.assert_array_equal(source.rows.probs, np.tile(PROBS[:2], (2, 1)))
        assert source.labels.tolist() == [0, 1, 0, 1]


@pytest.mark.parametrize("kind", WRITERS)
def test_numbers_of_columns_in_two_orders(tmp_path, kind):
    frame = FRAME.assign(label=LABELS)
    folder = two_writers(tmp_path, kind, frame, frame[["owl", "cat", "label", "dog"]])
    with pytest.raises(
        InputError, match=rf"which are 'owl', 'cat', 'dog' in 1.{kind} and in 0.{kind} 'cat'"
    ):
        read(folder)
    assert read(folder, columns=list(FRAME)).labels.tolist() == [*LABELS, *LABELS]


@pytest.mark.slow
@pytest.mark.parametrize("rows", [4, 40])
def test_columns_that_are_not_read_cost_nothing(tmp_path, rows):
    width, path = 100_000, tmp_path / "wide.csv"
    lines = [f"label,p,g,{','.join(f'c{k}' for k in range(width))}"]
    lines += [f"{k % 2},0.{k % 9},{'ab'[k % 2]}{',0.5' * width}" for k in range(rows)]
    path.write_text("\n".join(lines))
    start = time.perf_counter()
    found, groups = read_with_groups(path, columns=["p"], groups=["g"])
    assert time.perf_counter() - start < 5
    assert found.rows.probs[:, 1].tolist() == [k % 9 / 10 for k in range(rows)]
    assert groups["g"].tolist() == [*"ab"] * (rows // 2)
    assert found.rows.notes[-1].startswith("Columns not read: 'c0', 'c1'")


@pytest.mark.parametrize("first", [pa.float16(), pa.float32(), pa.int8(), pa.null()])
def test_the_first_part_does_not_round_the_others(tmp_path, first):
    folder = parts(tmp_path / "parts", pa.array([1, 0]), pa.array([0, 1]))
    whole = pa.nulls(2) if pa.types.is_null(first) else pa.array([1.0, 0.0]).cast(first)
    ends = [pa.array([1.0, 0.0]), pa.array([0.0, 1.0]), whole]
    tenth = [pa.array([0.1, 0.1]), pa.array([0.9, 0.9]), pa.array([0.3, 2049.0])]
    for number, (one, other, group) in enumerate((ends, tenth)):
        table = pa.table({"0": one, "1": other, "label": [1, 0], "group": group})
        pq.write_table(table, folder / f"{number}.parquet")
    found, groups = read_with_groups(folder, groups=["group"])
    assert found.rows.probs[2].tolist() == [0.1, 0.9]
    as_numbers = first in (pa.float16(), pa.null())  # other types that differ are written alike
    assert groups["group"].tolist()[2:] == ([0.3, 2049.0] if as_numbers else ["0.3", "2049"])


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["csv", "jsonl"])
def test_very_many_columns(tmp_path, kind):
    """Within seconds; where all names are looked at for each of them, it takes minutes."""
    width = 30_000
    names = [f"c{k}" for k in range(width)]
    path = tmp_path / f"a.{kind}"
    if kind == "csv":
        row = ",".join([repr(1 / width)] * width)
        path.write_text(f"{','.join(names)},label,w\n{row},c1,1\n{row},c2,2\n")
    else:
        cells = dict.fromkeys(names, 1 / width)
        path.write_text("".join(json.dumps({**cells, "label": f"c{k}", "w": k}) + "\n" for k in (1, 2)))
    start = time.perf_counter()
    found = read(path, columns=names, weights="w")
    assert found.labels.tolist() == [1, 2]
    assert found.rows.probs.shape == (2, width)
    assert time.perf_counter() - start < 90


def test_deep_json_is_refused_in_a_sentence(tmp_path):
    path = tmp_path / "deep.jsonl"
    start, deep = '{"0": 0.5, "1": 0.5, "label": 0', "[" * 100_000 + "]" * 100_000
    path.write_text(f'{start}}}\n{start}, "z": {deep}}}\n')
    with pytest.raises(InputError, match="line 2 is nested more than 64 deep"):
        read(path)


def test_a_date_among_text_is_text(tmp_path):
    row = '{{"0": 0.5, "1": 0.5, "label": {}, "when": "{}"}}\n'
    lines = [row.format(k % 2, "2020-01-01") for k in range(30_000)] + [row.format(1, "unknown")]
    path = tmp_path / "dates.jsonl"
    path.write_text("".join(lines))
    assert read(path, columns=["0", "1"]).labels.sum() == 15_001
