"""Features: columns of any container, as they are read; what is left out, and what is refused."""

from __future__ import annotations

import datetime as dt
import json
import re

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from support import command, refused

import caltest
from caltest.data.features import read_features
from caltest.files import read, scan

DAY = 86_400.0
NAN = float("nan")
JANUARY = 1_704_067_200.0  # seconds from 1970 to 2024-01-01

FRAME = pd.DataFrame(
    {
        "number": [1.0, 2.0, None],
        "nullable": pd.array([1, None, 3], "Int64"),
        "infinite": [np.inf, -np.inf, 0.0],
        "text": ["1", " 2.5", "NA"],
        "time": pd.to_datetime(["2024-01-01", None, "2024-01-02"]),
        "zone": pd.to_datetime(["2024-01-01", None, "2024-01-02"]).tz_localize("Europe/Berlin"),
        "date": [dt.date(2024, 1, 1), None, dt.date(2024, 1, 3)],
        "iso": ["2024-01-01T00:00:00Z", "NA", "2024-01-01T06:00:00"],
        "stay": pd.to_timedelta([1, 2, None], "D"),
        "flag": [True, False, True],
        "maybe": pd.array([True, None, False], "boolean"),
        "kind": pd.Categorical(["x", None, "y"]),
        "code": ["007", "1", ""],
    }
)
READ = {
    "number": ([1.0, 2.0, NAN], (), False),
    "nullable": ([1.0, NAN, 3.0], (), False),
    "infinite": ([np.inf, -np.inf, 0.0], (), False),
    "text": ([1.0, 2.5, NAN], (), False),
    "time": ([JANUARY, NAN, JANUARY + DAY], (), True),
    "zone": ([JANUARY - 3600, NAN, JANUARY + DAY - 3600], (), True),
    "date": ([JANUARY, NAN, JANUARY + 2 * DAY], (), True),
    "iso": ([JANUARY, NAN, JANUARY + DAY / 4], (), True),
    "stay": ([1.0, 2.0, NAN], (), False),
    "flag": ([1, 0, 1], ("False", "True"), False),
    "maybe": ([1, -1, 0], ("False", "True"), False),
    "kind": ([0, -1, 1], ("x", "y"), False),
    "code": ([0, 1, -1], ("007", "1"), False),
}


def shown(found):
    """Return what was read, by the names of the columns."""
    return {each.name: (each.values, each.levels, each.dates) for each in found.columns}


def check_read(found, wanted):
    read = shown(found)
    assert list(read) == list(wanted)
    for name, (values, *others) in wanted.items():
        np.testing.assert_array_equal(read[name][0], values, err_msg=name)
        assert list(read[name][1:]) == others, name
        assert read[name][0].dtype == (np.intp if others[0] else np.float64), name


@pytest.mark.parametrize(
    "of",
    [lambda x: x, pl.from_pandas, pa.Table.from_pandas, dict, lambda x: {n: x[n].tolist() for n in x}],
    ids=["pandas", "polars", "arrow", "dict", "lists"],
)
def test_columns_of_every_kind_are_read_alike(of):
    frame = FRAME.drop(columns="stay") if of(FRAME.iloc[:, :1]).__class__ is dict else FRAME
    check_read(read_features(of(frame), 3), {name: READ[name] for name in frame})


def test_what_is_declared_a_category_is_one():
    grade = pd.Series(pd.Categorical([10, 9, None]), name="grade")
    for given in (
        grade,
        grade.to_frame(),
        pa.table({"grade": pa.array([10, 9, None]).dictionary_encode()}),
    ):
        check_read(read_features(given, 3), {"grade": ([0, 1, -1], ("10", "9"), False)})


def test_arrays_have_numbered_columns():
    table = np.array([[0.0, 1.0], [2.0, np.nan], [4.0, 5.0]])
    wanted = {"feature 0": ([0, 2, 4], (), False), "feature 1": ([1, NAN, 5], (), False)}
    for given in (table, table.tolist(), np.ma.masked_invalid(table)):
        check_read(read_features(given, 3), wanted)
    check_read(read_features(table[:, :1], 3), {"feature 0": wanted["feature 0"]})
    check_read(read_features(pd.Series([0, 2, 4], name="age"), 3), {"age": wanted["feature 0"]})
    records = np.array([(1, "b"), (2, "a")], dtype=[("x", int), ("y", "U1")])
    check_read(read_features(records, 2), {"x": ([1, 2], (), False), "y": ([1, 0], ("a", "b"), False)})


def test_only_rows_that_count_are_kept():
    found = read_features(
        {"k": list("abca"), "n": [1, 2, 3, 4], "one": [1, 2, 2, 1]}, 4, np.array([1, 2])
    )
    levels = ("a", "b", "c")
    check_read(found, {"k": ([1, 2], levels, False), "n": ([2, 3], (), False)})
    check_read(found.take([1]), {"k": ([2], levels, False), "n": ([3], (), False)})


def test_a_column_of_one_value_is_left_out_and_noted():
    found = read_features({"x": [1, 2], "one": ["a", "a"], "none": [None, None]}, 2)
    assert [each.name for each in found.columns] == ["x"]
    assert found.notes == ("Left out of features, as all rows have one value: 'one', 'none'.",)


def test_numbers_with_a_few_words_are_a_category():
    found = read_features({"x": [*map(str, range(20)), "old"]}, 21)
    assert len(found.columns[0].levels) == 21
    (note,) = found.notes
    assert note.startswith(
        "Column 'x' holds numbers, but 'old' in row 20 (counting from 0): it is read"
    )


MANY = [*map(str, range(1500))]
WRONG = {
    "no table": ("age", "features is of type str; give a data frame, a dict of columns"),
    "a function": (len, "features is of type builtin_function_or_method; give a data frame"),
    "no columns": ({}, "features has no column; give at least one, or leave features out."),
    "length": ({"x": [1, 2]}, "column 'x' of features has 2 entries for 1501 rows of probs"),
    "lists": ({"x": [[1]] * 1501}, "column 'x' of features holds [1] in row 0 (counting from 0)"),
    "dicts": ({"x": [*MANY, {}]}, "column 'x' of features holds {} in row 1500 (counting from 0)"),
    "tuples": (pd.DataFrame({"x": [*MANY, (1, 2)]}), "column 'x' of features holds (1, 2) in row 1500"),
    "objects": ({"x": [*MANY, object()]}, "column 'x' of features holds an object in row 1500"),
    "twice": ({"1": MANY, 1: MANY}, "two columns of features have one name ('1'); rename one of them."),
    "no name": (
        pd.DataFrame({"x": range(1501), NAN: range(1501)}),
        "column 1 of features (counting from 0) has nan for a name; name every column.",
    ),
    "wide": ({"x": np.ones((1501, 2))}, "column 'x' is a table without column names"),
    "mixed": (
        {"x": [*MANY, "old"]},
        "column 'x' of features has 1,501 different values that are not all numbers ('old' in row 1500 "
        "(counting from 0)), and a category may have 1,000; merge values, or leave it out.",
    ),
    "texts": (
        {"x": [f"name {k}" for k in range(1501)]},
        "column 'x' of features has 1,501 different values that are not all numbers ('name 0' in row 0 "
        "(counting from 0)), and a category may have 1,000; merge values, or leave it out.",
    ),
    "constant": ({"x": [1] * 1501}, "every column of features has one value in all rows; give columns"),
}


@pytest.mark.parametrize(("given", "message"), WRONG.values(), ids=WRONG)
def test_what_is_refused(given, message):
    with pytest.raises(caltest.InputError, match=re.escape(message)):
        read_features(given, 1501)


# ------------------------------------------------------------------ in tests and audits


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(1)
    p = rng.uniform(0.1, 0.9, 400)
    y = (rng.random(400) < p).astype(int)
    x = pd.DataFrame({"age": rng.normal(50, 9, 400), "sex": rng.choice(["f", "m"], 400), "one": 1})
    return p, y, x


def test_an_audit_leaves_out_groups_and_functions_of_the_outcome(data):
    p, y, x = data
    x = x.assign(leak=2.0 * y + x["age"] / 1000, late=np.where(y == 1, "yes", "no"))
    found = caltest.audit(p, y, groups=x[["sex"]], features=x, n_resamples=19, alpha=0.2, rng=0)
    assert "Not searched, nor inside them, as they are groups: 'sex'." in found.warnings
    assert "Left out of features, as all rows have one value: 'one'." in found.warnings
    said = [each for each in found.premises if each.name == "features known before the outcome"]
    assert [each.seen for each in said] == [
        f"Column '{name}' of features is a function of the outcome; it is not searched"
        for name in ("leak", "late")
    ]
    assert "groups=groups[['sex']], features=features[['age', 'sex', 'leak', 'late']]" in found.call


def test_numbers_that_are_the_outcome_are_found():
    rng = np.random.default_rng(2)
    mean = rng.normal(size=300)
    outcome = mean + rng.normal(size=300)
    law = caltest.predictive.Normal(mean, 1.0)
    given = {"leak": -outcome, "mean": mean}
    found = caltest.audit(law, outcome, features=given, n_resamples=19, alpha=0.2, rng=0)
    assert [each.seen.split("'")[1] for each in found.premises] == ["leak"]


@pytest.mark.parametrize("of", [caltest.test, caltest.audit])
@pytest.mark.parametrize("how", [{"tolerance": 0.02}, {"rounding": 0.01}])
def test_features_and_allowed_errors_do_not_go_together(data, of, how):
    p, y, x = data
    with pytest.raises(caltest.InputError, match="features are searched for errors of any size"):
        of(np.round(p, 2), y, features=x, **how)


def test_rows_with_names_must_be_the_same(data):
    p, y, x = data
    with pytest.raises(caltest.InputError, match="the pandas indexes of probs and features differ"):
        caltest.test(pd.Series(p, index=range(5, 405)), y, features=x.set_axis(range(7, 407)))


def test_rows_of_weight_0_are_not_described(data):
    p, y, x = data
    kept = (x["sex"] == "f").to_numpy()
    found = caltest.test(p, y, "citl", weights=kept.astype(float), features=x, n_resamples=19, rng=0)
    assert "Left out of features, as all rows have one value: 'sex', 'one'." in found.warnings


# ------------------------------------------------------------------ files, and the command line


@pytest.fixture(scope="module")
def folder(data, tmp_path_factory):
    p, y, x = data
    made = tmp_path_factory.mktemp("features")
    table = x.drop(columns="one").assign(p=p, label=y, code=[f"{k % 9:03d}" for k in range(400)])
    table = table.assign(when=pd.date_range("2024-01-01", periods=400).strftime("%Y-%m-%d"))
    table.loc[5, "sex"] = None
    table.to_csv(made / "a.csv", index=False)
    table.to_parquet(made / "a.parquet")
    (made / "parts").mkdir()
    table[:150].to_csv(made / "parts" / "1.csv", index=False)
    table[150:].to_csv(made / "parts" / "2.csv", index=False)
    np.savez(made / "a.npz", probs=p, labels=y, age=x["age"], sex=x["sex"].to_numpy(str))
    return made


@pytest.mark.parametrize("name", ["a.csv", "a.parquet", "parts"])
def test_features_of_files_are_those_of_frames(folder, data, name):
    found = read(folder / name, columns=["p"], features=["age", "*", "!sex"], groups=["sex"]).rows
    p, _, x = data
    np.testing.assert_allclose(found.probs[:, 1], p)
    numbers, codes, days = found.features.columns
    np.testing.assert_allclose(numbers.values, x["age"])
    assert codes.levels == tuple(f"{k:03d}" for k in range(9))
    assert days.dates
    assert days.values[:2].tolist() == [JANUARY, JANUARY + DAY]
    (sex,) = read(folder / name, features=["sex", "code"], columns=["p"]).rows.features.columns[:1]
    assert (sex.levels, sex.values[5]) == (("f", "m"), -1)


def test_columns_of_features_are_no_probabilities(folder, tmp_path):
    found = read(folder / "a.csv", features=["age", "s*", "code", "when"])
    assert found.rows.n_classes == 2
    assert [each.name for each in found.rows.features.columns] == ["age", "code", "when", "sex"]
    assert [each.name for each in read(folder / "a.npz", features="*").rows.features.columns] == [
        "age",
        "sex",
    ]


def test_the_command_line_takes_names_and_patterns(folder):
    several = (
        "--columns",
        "p",
        "--features",
        "*",
        "--features",
        "!code",
        "--feature",
        "sex",
        "--group",
        "sex",
    )
    page = folder / "found.json"
    options = ("--resamples", "99", "--seed", "1", "--json", page)
    assert command("audit", folder / "a.csv", *several, *options).exit_code in (0, 1)
    found = json.loads(page.read_text())
    assert "features=features" in found["call"]
    assert "Not searched, nor inside them, as they are groups: 'sex'." in found["warnings"]
    assert "Columns not read: 'code'." in found["warnings"]


REFUSED = {
    "no such column": (
        ["--feature", "agee"],
        "there is no column 'agee' of features (did you mean 'age'?)",
    ),
    "no such pattern": (["--features", "q*"], "--features is 'q*', and no column that is nothing else"),
    "a probability": (["--feature", "p"], "the column 'p' is given as a probability and as a feature"),
    "the labels": (
        ["--feature", "label"],
        "the column 'label' holds the labels, so it cannot be a feature",
    ),
    "twice": (
        ["--feature", "age", "--feature", "age"],
        "the column 'age' is given twice; give it once.",
    ),
    "weights": (["--feature", "age", "--weights", "age"], "is given as a feature and as weights"),
    "tolerance": (
        ["--feature", "age", "--tolerance", "0.1"],
        "--features are searched for errors of any",
    ),
}


@pytest.mark.parametrize("name", ["test", "audit"])
@pytest.mark.parametrize(("options", "message"), REFUSED.values(), ids=REFUSED)
def test_what_the_command_line_refuses(folder, name, options, message):
    refused(command(name, folder / "a.csv", "--columns", "p", *options), message)


def test_all_columns_as_features_leave_no_probabilities(folder):
    said = "no column besides the labels and the features; name the probability columns"
    refused(command("test", folder / "a.csv", "--features", "*"), said)


def test_features_of_an_example_or_an_array_are_refused(folder):
    refused(
        command("test", "--example", "digits:naive_bayes", "--feature", "a"), "--feature is for a file"
    )
    np.save(folder / "a.npy", np.ones((3, 3)))
    with pytest.raises(caltest.InputError, match="so there is no column 'a'"):
        read(folder / "a.npy", features="a")


def test_features_need_all_rows_at_once(folder):
    do = "read the file whole, by caltest.files.read"
    with pytest.raises(caltest.InputError, match=f"features are known of all rows or none; {do}"):
        scan(folder / "a.csv", features="age")
    with pytest.raises(caltest.InputError, match=f"was opened already; leave features out, and {do}"):
        caltest.test(scan(folder / "a.csv", columns=["p"]), features={"x": [1]})


@pytest.mark.parametrize(
    ("of", "given"),
    [
        (caltest.Monitor, ()),
        (caltest.Monitor().update, ([0.5], [1])),
        (caltest.compare, ({}, [])),
        (caltest.estimate, ([0.5], [1])),
        (caltest.power, ([0.5], 100)),
        (caltest.sbc, ([[1.0]], [[[1.0]]])),
    ],
)
def test_others_say_why_they_take_no_features(of, given):
    with pytest.raises(
        caltest.InputError, match=r"; leave out features, and give them to caltest.audit\.$"
    ):
        of(*given, features={"x": [1]})


# ------------------------------------------------------------------ what rules say of odd columns


def _first_rule(column, wrong, n=1500):
    rng = np.random.default_rng(3)
    p = rng.beta(2, 4, n)
    y = rng.random(n) < np.clip(p + 0.4 * wrong, 0, 1)
    found = caltest.audit(p, y, features={"x": column}, lenses="canonical", n_resamples=99, rng=0)
    return next(each for each in found.slices if each.group.conditions[0].relation == "=")


@pytest.mark.slow
def test_rules_are_of_the_values_as_they_are_written():
    of = np.random.default_rng(4).integers(0, 5, 1500)
    single = np.array([0.1, 0.2, 0.3, 0.4, 0.5], np.float32)[of]
    assert _first_rule(single, of == 2).rule == "x = 0.3"
    moments = np.datetime64("2024-03-01T00:00:00", "ms") + 100 * of
    assert _first_rule(moments, of == 2).rule == "x = 2024-03-01T00:00:00.200"
    assert _first_rule(np.array([-np.inf, 1.0, 2.0, 3.0, np.inf])[of], of == 0).rule == "x = -inf"
    text = np.array(["(missing)", "b", "c", "d", None], dtype=object)[of]
    assert _first_rule(text, of == 4).rule == "x = ((missing))"
    assert _first_rule(text, of == 0).rule == "x = (missing)"


def test_columns_of_one_name_are_refused():
    table = pd.DataFrame(np.zeros((20, 2)), columns=["c", "c"])
    for call in (caltest.audit, caltest.test):
        with pytest.raises(caltest.InputError, match="features has two columns of one name"):
            call(np.full(20, 0.5), [0, 1] * 10, features=table)
