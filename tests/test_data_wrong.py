"""Every wrong input, recognised for what it is: the messages stand in ``data_errors.txt``."""

from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import scipy.sparse
from support import command

import caltest
from caltest.data import sample
from caltest.exceptions import InputError

MESSAGES = dict(
    line.split(": ", 1)
    for line in Path(__file__).with_name("data_errors.txt").read_text("utf-8").splitlines()
)

P = np.array([[0.5, 0.25, 0.25], [0.125, 0.75, 0.125], [0, 0.5, 0.5], [0.25, 0.25, 0.5]])
Y = np.array([0, 1, 2, 2])
B = np.array([0.25, 0.5, 0.75, 1.0])
YB = np.array([0, 1, 1, 1])
F = pd.DataFrame(P, columns=["cat", "dog", "owl"])
NAMES = ["cat", "dog", "owl", "owl"]
UNIT = np.linspace(0, 1, 20)
EVENTS = np.tile([0, 1], 10)  # the outcomes of UNIT
PRICES = 40 * UNIT - 7


def put(row, column, value):
    """P with one entry changed."""
    probs = P.copy()
    probs[row, column] = value
    return probs


def wrong_numbers():
    with np.errstate(divide="ignore"):
        yield "log-probabilities", np.log(P), Y
    yield "logits", [[2.0, -1, 0.5], [0, 3, -2], [1, 1, 4], [-1, 0, 2]], Y
    yield "percentages", P * 100, Y
    yield "counts", (P * 8).astype(int), Y
    yield "sigmoid", [[0.9, 0.3, 0.1], [0.2, 0.4, 0.1], [0.1, 0.1, 0.1], [0.9, 0.8, 0.7]], Y
    yield "a class short", P[:, :2], [0, 1, 0, 1]
    yield "transposed square", [[0.5, 0.25], [0.5, 0.75]], [0, 1]
    yield "rounded", [[0.3, 0.3, 0.3], [0.5, 0.3, 0.2]], [0, 1]
    yield "rounded, a class short", np.tile([[0.32, 0.67], [0.53, 0.46]], (50, 1)), [0, 1] * 50
    yield "bfloat16", P * 1.0051, Y
    yield "prices", np.array([13.0, 250.5, 31, 99]), [17.5, 241.0, 30.2, 80.0]
    yield "counts, predicted means", [4.25, 0.5, 2, 7, 5, 3], [4, 0, 1, 9, 5, 3]
    yield "shares", [-0.25, 0.5, 0.75, 1.25], [0.125, 0.5, 0.5, 1.0]
    yield "counts, whole", np.array([14, 30, 2, 7]), [4.5, 0.25, 1.0, 9.0]
    yield "columns of quantiles", np.column_stack([P[:, 0] - 9, P[:, 0], P[:, 0] + 9]), [1.5, -2, 0, 4]
    yield "percentages, two labels too many", P * 100, [0, 1, 3, 4]
    yield "percentages of the top class", [80.0, 95, 60, 99, 70, 50], [0, 1, 2, 3, 4, 5]
    yield "one bad row", put(2, 0, 0.25), Y
    yield "one high entry", put(2, 0, 1.25), Y
    yield "one negative entry", put(1, 2, -0.125), Y
    yield "extra column", np.column_stack([P, [17, 30, 45, 61]]), Y
    yield "label column", F.assign(label=Y), Y
    yield "nan", put(2, 1, np.nan), Y
    yield "inf", put(1, 0, np.inf), Y
    yield "nan in polars", pl.DataFrame({"a": [0.5, np.nan], "b": [0.5, 0.5]}), [0, 1]
    yield "binary logits", [-1.5, 0.3, 2.0, 4.5], YB
    yield "binary log-probabilities", np.log(B) - 0.25, YB
    yield "binary percentages", [12.5, 80, 99.5, 3], YB
    yield "binary labels", Y, Y
    yield "binary -1 and 1", [-1, 1, 1, -1], YB
    yield "binary nan", [0.5, np.nan, 0.1, 0.2], YB
    yield "binary one high entry", [*UNIT, 1.5], [0, 1, 1] * 7


def wrong_shapes():
    yield "transposed", np.vstack([P, P]).T, [*Y, *Y]
    yield "labels short", P, Y[:2]
    yield "labels as many as classes", P, Y[:3]
    yield "one row", P[:1], Y[:1]
    yield "empty", [], []
    yield "no rows", np.empty((0, 3)), []
    yield "no columns", np.empty((4, 0)), Y
    yield "one class", np.ones((4, 1)), Y * 0
    yield "three dimensions", P[None], Y
    yield "ragged", [[0.5, 0.5], [0.25, 0.25, 0.5]], [0, 1]
    yield "ragged, number", [[0.5, 0.5], 0.5], [0, 1]
    yield "labels one row", P, Y[None]
    yield "labels are probabilities", P, P
    yield "one-hot", P, np.eye(3)[Y]
    yield "one-hot frame", F, pd.DataFrame(np.eye(3)[Y])
    yield "one-hot binary", B, np.eye(2, dtype=int)[YB]
    yield "multi-label", P, [[1, 1, 0], [1, 0, 0], [0, 1, 1], [0, 0, 1]]
    yield "swapped", Y, P
    yield "swapped binary", YB, [0.25, 0.5, 0.75, 1.0]
    yield "swapped names", NAMES, P
    yield "swapped one-hot", Y, np.eye(3)[Y]
    yield "swapped pandas", pd.Series(NAMES), F


def wrong_kinds():
    yield "number", 0.5, 1
    yield "None", None, Y
    yield "labels None", P, None
    yield "dictionary", {"cat": [0.5]}, Y
    yield "sparse", scipy.sparse.csr_array(P), Y
    yield "complex", P.astype(complex), Y
    yield "objects", np.array([[0.5, "a"], [0.25, 0.75]], dtype=object), [0, 1]
    yield "None among numbers", [[0.5, None], [0.25, 0.75]], [0, 1]
    yield "text", ["a", "b"], [0, 1]
    yield "numbers as text", [["0.5", "0.5"], ["0.25", "0.75"]], [0, 1]
    yield "bytes", np.array([b"a", b"b"]), [0, 1]
    yield "records", np.zeros(3, dtype=[("cat", float)]), Y[:3]
    yield "masked", np.ma.masked_greater(P, 0.6), Y
    yield "labels dates", P, np.array(["2020-01-01"] * 4, dtype="M8[D]")
    yield "labels dates, pandas", P, pd.Series(pd.to_datetime(["2020-01-01"] * 4))
    yield "labels mixed", P, np.array([0, 1, "a", 2], dtype=object)
    yield "scalar", np.array(3.5), Y
    yield "labels scalar", P, np.True_
    yield "labels objects", P, pd.Series(Y, dtype=object)


def wrong_frames():
    yield "missing, pandas", F.where(F < 0.7), Y
    yield "missing, polars", pl.DataFrame({"a": [0.5, None], "b": [0.5, 0.5]}), [0, 1]
    yield "missing, one column", pl.DataFrame({"p": [0.5, None]}), [0, 1]
    yield "text column", F.assign(name=NAMES), Y
    yield "date column", F.assign(day=pd.Timestamp("2020-01-01").date()), Y
    yield "twice a name", F.set_axis(["a", "a", "b"], axis=1), Y
    yield "twice a name, pyarrow", pa.table([[0.5, 0.5]] * 2, names=["a", "a"]), [0, 1]
    yield "twice a name as text", F.set_axis(["1", 1, "b"], axis=1), Y
    yield "no columns, pyarrow", pa.table({}), Y
    yield "nulls alone", pl.DataFrame({"a": [None] * 4, "b": [0.5] * 4}), Y
    yield "labels missing, pyarrow", P, pa.array([0, None, 1, 2])
    yield "labels nulls alone", P, pa.nulls(4)
    yield "sparse column", F.astype(pd.SparseDtype("float", 0.0)), Y
    yield "labels sparse", P, pd.Series(pd.arrays.SparseArray(Y))
    yield "column of categories", F.astype("category"), Y
    yield "lazy", pl.LazyFrame({"p": [0.5, 0.5]}), [0, 1]
    yield "index order", F.set_axis([3, 4, 5, 6]), pd.Series(Y, index=[4, 3, 5, 6])
    yield "index", F.set_axis(list("abcd")), pd.Series(Y, index=list("abce"))


def wrong_labels():
    yield "from 1", P, Y + 1
    yield "too large", P, [0, 1, 2, 7]
    yield "a class too many", P, [0, 1, 3, 0]
    yield "a class too many, binary", B, Y
    yield "negative", P, [0, -1, 2, 1]
    yield "-1 and 1", B, [-1, 1, 1, -1]
    yield "fraction", P, [0, 1, 0.5, 2]
    yield "fraction, binary", B, B
    yield "labels nan", P, [0, np.nan, 1, 2]
    yield "labels None among numbers", P, [0, None, 1, 2]
    yield "labels None among names", F, ["cat", None, "dog", "owl"]
    yield "labels missing, pandas", F, pd.Series(["cat", None, "dog", "owl"])
    yield "labels missing, nullable", P, pd.Series([0, None, 1, 2], dtype="Int64")
    yield "labels missing, polars", P, pl.Series([0, None, 1, 2])
    yield "boolean", P, [True, False, True, True]
    yield "names without columns", P, NAMES
    yield "names, binary", pd.Series(B, name="cat"), ["dog", "cat", "cat", "dog"]
    yield "numbers as labels' text", P, ["0", "1", "2", "2"]
    yield "misspelt", F, ["cat", "dog", "owls", "owl"]
    yield "no such name", F, ["cat", "horse", "owl", "owl"]
    yield "another form", F.set_axis(["\uff46ish", "dog", "owl"], axis=1), ["fish"] * 4
    yield "no such name, prefix", F.add_prefix("p_"), ["cat", "horse", "owl", "owl"]
    yield "no such number", F.set_axis([1, 2, 3], axis=1), [1, 2, 0, 1]
    yield "columns from 1, labels from 0", F.set_axis(["p1", "p2", "p3"], axis=1), Y
    yield "a number among words", F.set_axis(["none", "0", "1"], axis=1), Y


def first_contacts():
    """What other models predict, and other outcomes, given as probabilities of classes and labels."""
    yield "point forecasts", PRICES, PRICES + 0.25
    yield "point forecasts of counts", 3 * UNIT, np.tile([0, 1, 2, 3], 5)
    yield "mean and sd", (PRICES, UNIT + 1), PRICES + 0.25
    yield "ends of intervals", np.column_stack([PRICES - 5, PRICES + 5])[:, :, None], PRICES + 0.25
    yield "point forecasts in [0, 1]", UNIT, PRICES + 0.25
    yield "point forecasts of shares", 1.02 * UNIT, UNIT[::-1] ** 2
    yield "point forecasts that are outcomes", PRICES[::-1], PRICES
    yield "point forecasts of counts in [0, 1]", UNIT, np.tile([0, 0, 1, 2], 5)
    yield "point forecasts of counts, too high", UNIT + 4, np.tile([0, 0, 1, 2], 5)
    yield "point forecasts, all alike", UNIT * 0 + 4.5, PRICES
    yield "point forecasts of whole degrees", UNIT, np.arange(20) - 7
    yield "vectors", np.column_stack([PRICES, UNIT]), np.column_stack([PRICES, UNIT]) + 0.25
    yield "averaged verdicts", UNIT, np.tile([0, 0.5, 1, 1], 5)
    yield "soft labels", P, P[::-1]
    yield "survival curves, times", 1 - np.outer(UNIT, [0.1, 0.5, 0.9]), (40 * UNIT, EVENTS)
    yield "risks, times in a table", UNIT, np.column_stack([EVENTS, 40 * UNIT])
    yield "records of times", UNIT, np.zeros(20, dtype=[("event", bool), ("time", float)])
    yield "incidences", np.outer(UNIT, [0.1, 0.5, 0.9]), EVENTS
    yield "Venn-ABERS", np.column_stack([0.9 * UNIT, 0.9 * UNIT + 0.1]), EVENTS
    yield "two scores", np.column_stack([0.4 * UNIT, 0.4 * UNIT + 0.5]), EVENTS
    yield "one row of two classes", np.vstack([np.eye(2).repeat(15, axis=0), [1, 1]]), [0] * 31
    yield "covariances", np.tile([[3, 1], [1, 2]], (20, 1, 1)), np.column_stack([PRICES, UNIT]) + 0.25
    yield "odds", UNIT / (1.01 - UNIT), EVENTS
    yield "odds below 100", UNIT / (1.1 - UNIT), EVENTS
    yield "distances", 9 * np.outer(UNIT + 0.1, [1, 0.3, 0.7]), EVENTS
    yield "swapped floats", EVENTS.astype(float), UNIT
    yield "confidences in the top class", UNIT, np.tile([0, 1, 2, 3], 5)
    yield "prediction sets", P > 0.2, Y
    yield "prediction sets of MAPIE", (P > 0.2)[:, :, None], Y
    yield "lists of classes", [[0, 1], [2], [1]], [0, 1, 1]


WRONG = {
    name: (probs, labels)
    for group in (
        *(wrong_numbers, wrong_shapes, wrong_kinds, wrong_frames, wrong_labels),
        first_contacts,
    )
    for name, probs, labels in group()
}


@pytest.mark.parametrize("name", WRONG)
def test_the_message_says_what_it_looks_like(name):
    with pytest.raises(InputError) as caught:
        sample(*WRONG[name])
    assert str(caught.value) == MESSAGES[name]


@pytest.mark.parametrize("name", ["point forecasts", "averaged verdicts", "Venn-ABERS"])
def test_every_door_says_the_same(name, tmp_path):
    probs, labels = WRONG[name]
    doors = caltest.test, caltest.audit, caltest.Monitor().update
    for door in doors:
        with pytest.raises(InputError) as caught:
            door(probs, labels)
        assert str(caught.value) == MESSAGES[name]
    columns = pd.DataFrame(probs).add_prefix("v")
    columns.assign(label=labels).to_csv(tmp_path / "d.csv", index=False)
    named = ["--columns", ",".join(columns), "--label", "label"]
    told = command("test", tmp_path / "d.csv", *named).stderr
    assert MESSAGES[name].partition(":")[0] in told


def test_swapped_distributions_and_a_covariance_given_for_sd():
    predicted = caltest.predictive.Normal(PRICES, 1.0)
    with pytest.raises(InputError, match="labels is a Normal; give predictions first"):
        caltest.test(PRICES, predicted)
    covariances = np.tile([[1.0, -0.5], [-0.5, 1.0]], (20, 1, 1))
    with pytest.raises(InputError, match="covariance matrices as variance="):
        caltest.predictive.Normal(np.column_stack([PRICES, UNIT]), covariances)


def test_bfloat16_is_read_and_its_rows_are_explained():
    ml_dtypes = pytest.importorskip("ml_dtypes")
    probs = np.tile([[0.3, 0.3, 0.4]], (4, 1)).astype(ml_dtypes.bfloat16)
    with pytest.raises(InputError, match="as in bfloat16, sum so"):
        sample(probs, Y)


def test_every_message_belongs_to_a_wrong_input():
    assert list(MESSAGES) == list(WRONG)


def test_messages_are_one_sentence_with_advice():
    for name, message in MESSAGES.items():
        assert message.endswith((".", "?")), name
        assert ". " not in message, name
        assert "; " in message, name
