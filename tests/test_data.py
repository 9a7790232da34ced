"""Valid input: every container gives the same sample, and nothing can change it afterwards."""

import copy
import importlib.util
import pickle
import re
from dataclasses import dataclass, field

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from support import some_fast

import caltest
from caltest.data import Rows, sample
from caltest.exceptions import InputError
from caltest.laws import Classes
from caltest.lenses import find_lens

# Sums of binary fractions are exact, so rows stay as they are, bit by bit.
PROBS = np.array([[0.5, 0.25, 0.25], [0.125, 0.75, 0.125], [0.0, 0.5, 0.5], [0.0, 0.0, 1.0]])
LABELS = np.array([0, 1, 2, 2])
CLASSES = ["cat", "dog", "owl"]
NAMES = ["cat", "dog", "owl", "owl"]
FRAME = pd.DataFrame(PROBS, columns=CLASSES)
ONE = np.array([0.25, 0.5, 0.0, 1.0])


def same(first, second):
    return np.array_equal(first.rows.probs, second.rows.probs) and np.array_equal(
        first.labels, second.labels
    )


CONTAINERS = {
    "array": PROBS, "strided": np.repeat(PROBS, 2, axis=0)[::2], "float32": PROBS.astype(np.float32),
    "float16": PROBS.astype(np.float16), "longdouble": PROBS.astype(np.longdouble),
    "masked, nothing masked": np.ma.masked_array(PROBS), "pandas": FRAME,
    "pandas, numbered": pd.DataFrame(PROBS),
    "pandas, float32 and float64": FRAME.astype({"cat": np.float32}),
}  # fmt: skip


@pytest.mark.parametrize("probs", CONTAINERS.values(), ids=CONTAINERS)
def test_containers_of_probabilities(probs):
    checked = sample(probs, LABELS)
    assert same(checked, sample(PROBS, LABELS))
    assert checked.rows.probs.dtype == np.float64
    assert checked.rows.probs.flags.c_contiguous
    assert checked.rows.notes == ()
    assert (checked.rows.n_samples, checked.rows.n_classes) == (4, 3)


LABEL_CONTAINERS = {
    "int8": LABELS.astype(np.int8),
    "uint64": LABELS.astype(np.uint64),
    "whole floats": LABELS.astype(float),
    "column": LABELS[:, None],
    "pandas index": pd.Index(LABELS),
    "pandas frame of one column": pd.DataFrame({"label": LABELS}),
    "pandas, nullable": pd.Series(LABELS, dtype="Int8"),
    "pandas, categories are integers": pd.Series(pd.Categorical(LABELS)),
}


@pytest.mark.parametrize("labels", LABEL_CONTAINERS.values(), ids=LABEL_CONTAINERS)
def test_containers_of_labels(labels):
    checked = sample(PROBS, labels)
    assert same(checked, sample(PROBS, LABELS))
    assert checked.labels.dtype == np.intp


NAME_CONTAINERS = {
    "list": NAMES,
    "numpy": np.array(NAMES),
    "numpy objects": np.array(NAMES, dtype=object),
    "numpy strings": np.array(NAMES, dtype=np.dtypes.StringDType()),
    "pandas": pd.Series(NAMES),
    "pandas categorical": pd.Series(pd.Categorical(NAMES)),
    "pandas bare categorical": pd.Categorical(NAMES),
    "polars": pl.Series(NAMES),
    "polars categorical": pl.Series(NAMES, dtype=pl.Categorical),
    "polars enum": pl.Series(NAMES, dtype=pl.Enum(CLASSES)),
    "pyarrow": pa.chunked_array([NAMES]),
    "pyarrow dictionary": pa.chunked_array([pa.array(NAMES).dictionary_encode()]),
}


@pytest.mark.parametrize("labels", NAME_CONTAINERS.values(), ids=NAME_CONTAINERS)
def test_containers_of_class_names(labels):
    checked = sample(FRAME, labels)
    assert same(checked, sample(PROBS, LABELS))
    assert checked.rows.classes == ("cat", "dog", "owl")


class Tensor:
    """One of torch's that is no array: sparse, or on the device "meta"."""

    def __init__(self, error):
        self.error = error

    def detach(self):
        return self

    def cpu(self):
        if isinstance(self.error, NotImplementedError):
            raise self.error
        return self

    def numpy(self):
        raise self.error

    def float(self):
        return self


@pytest.mark.parametrize(
    "error",
    [
        TypeError("can't convert Sparse layout tensor to numpy. Use Tensor.to_dense() first."),
        NotImplementedError("Cannot copy out of meta tensor; no data!"),
    ],
)
def test_tensors_that_are_no_arrays(error):
    for call in (lambda x: sample(x, LABELS), lambda x: sample(PROBS, x)):
        with pytest.raises(InputError, match=r"is a tensor that is no array; give a dense one"):
            call(Tensor(error))


@pytest.mark.skipif(importlib.util.find_spec("torch") is None, reason="torch is not installed")
@pytest.mark.parametrize("kind", ["float64", "float32", "float16", "bfloat16"])
def test_torch_tensors(kind):
    import torch

    probs = torch.tensor(PROBS, dtype=getattr(torch, kind), requires_grad=True)
    assert same(sample(probs, torch.tensor(LABELS)), sample(PROBS, LABELS))


BINARY = {
    "vector": ONE, "column": ONE[:, None], "float32": ONE.astype(np.float32),
    "series": pd.Series(ONE, name="p"), "frame": pd.DataFrame({"p": ONE}),
}  # fmt: skip


@pytest.mark.parametrize("probs", BINARY.values(), ids=BINARY)
@pytest.mark.parametrize("labels", [[0, 1, 0, 1], [False, True, False, True], [0.0, 1.0, 0.0, 1.0]])
def test_one_column_is_the_probability_of_class_1(probs, labels):
    checked = sample(probs, labels)
    np.testing.assert_array_equal(checked.rows.probs, np.column_stack([1 - ONE, ONE]))
    np.testing.assert_array_equal(checked.labels, [0, 1, 0, 1])
    assert checked.rows.notes == ()
    assert checked.rows.classes is None


@pytest.mark.parametrize("probs", [[0, 1, 1], [False, True, True], [[1, 0], [0, 1], [0, 1]]])
def test_hard_predictions_are_probabilities(probs):
    assert sample(probs, [0, 1, 0]).rows.probs.tolist() == [[1, 0], [0, 1], [0, 1]]


@pytest.mark.parametrize(
    ("columns", "labels", "expected", "note"),
    [
        (["0", "1", "2"], [0, 1, 2, 2], [0, 1, 2, 2], None),
        (["0", "1", "2"], ["0", "1", "2", "2"], [0, 1, 2, 2], None),
        (["2", "0", "1"], [0, 1, 2, 2], [1, 2, 0, 0], "the numbers in the column names"),
        ([1, 2, 3], [1, 2, 3, 3], [0, 1, 2, 2], "the numbers in the column names"),
        ([-1.0, 0.0, 1.0], [-1, 0, 1, 1], [0, 1, 2, 2], "the numbers in the column names"),
        (["p1", "p2", "p3"], [1, 2, 3, 3], [0, 1, 2, 2], "the numbers in the column names"),
        (["prob_0", "prob_1", "prob_2"], [0, 1, 2, 2], [0, 1, 2, 2], None),
        (["p_10", "p_11", "p_12"], [10, 11, 12, 12], [0, 1, 2, 2], "the numbers in the column"),
        (["cat", "dog", "owl"], [0, 1, 2, 2], [0, 1, 2, 2], None),
        (["p_cat", "p_dog", "p_owl"], NAMES, [0, 1, 2, 2], "'cat' is 'p_cat'"),
        (["a_p_cat", "a_p_car", "a_p_owl"], ["cat", "car", "owl", "owl"], [0, 1, 2, 2], "'a_p_cat'"),
        (["p_0", "p_1", "p_2"], ["0", "1", "2", "2"], [0, 1, 2, 2], "'0' is 'p_0'"),
        (["p_cat", "p_dog", "p_owl"], ["p_cat", "p_dog", "p_owl", "p_owl"], [0, 1, 2, 2], None),
    ],
)
def test_labels_find_their_column(columns, labels, expected, note):
    checked = sample(FRAME.set_axis(columns, axis=1), labels)
    assert checked.labels.tolist() == expected
    assert checked.rows.classes == tuple(str(name) for name in columns)
    assert [note in text for text in checked.rows.notes] == [True] * (note is not None)


@pytest.mark.parametrize(("columns", "expected"), [(["0", "1"], [1, 0]), (["p_1", "p_0"], [0, 1])])
def test_booleans_find_their_column(columns, expected):
    frame = pd.DataFrame([[0.25, 0.75], [0.5, 0.5]], columns=columns)
    assert sample(frame, [True, False]).labels.tolist() == expected


@pytest.mark.parametrize("columns", [["no", "yes"], ["yes", "no"], ["1", "2"], ["True", "true"]])
def test_booleans_are_never_matched_by_place(columns):
    frame = pd.DataFrame([[0.25, 0.75], [0.5, 0.5]], columns=columns)
    for probs in (frame, Rows(Classes(frame.to_numpy(), tuple(columns)))):
        with pytest.raises(InputError, match="does not say which of them True is; give labels as"):
            sample(probs, [True, False])


TWO = pd.DataFrame([[0.25, 0.75], [0.5, 0.5]])


@pytest.mark.parametrize(
    ("columns", "expected"),
    [
        ([True, False], [0, 1]), ([False, True], [1, 0]), (["TRUE", "false"], [0, 1]),
        (["p_false", "p_true"], [1, 0]), (["P(True)", "P(False)"], [0, 1]),
        (["true_score", "false_score"], [0, 1]),
    ],
)  # fmt: skip
def test_one_is_true_whatever_the_order(columns, expected):
    frame = TWO.set_axis(columns, axis=1)
    for probs in [frame, *([pl.from_pandas(frame)] if isinstance(columns[0], str) else [])]:
        for labels in ([1, 0], [1.0, 0.0], [True, False]):
            assert sample(probs, labels).labels.tolist() == expected
        notes = sample(probs, [1, 0]).rows.notes
        assert (f"Labels were matched to the column names: 1 is '{columns[0]}'." in notes) == (
            expected == [0, 1]
        )


def test_words_that_say_yes_and_no_need_no_names():
    p = [0.1, 0.7, 0.6]
    for words in (["no", "yes", "yes"], ["F", "T", "T"], ["Negative", "positive", "positive"]):
        found = sample(p, words)
        assert found.labels.tolist() == [0, 1, 1]
        assert f"Labels were read as words: 1 is '{words[1].lower()}'." in found.rows.notes
    assert sample(p, ["no", "no", "no"]).labels.tolist() == [0, 0, 0]
    with pytest.raises(InputError, match="give labels 0 and 1, or class_names"):
        sample(p, ["good", "bad", "bad"])
    with pytest.raises(InputError, match="give class_names"):
        sample(np.full((3, 3), 1 / 3), ["no", "yes", "yes"])


@pytest.mark.parametrize(
    ("yes", "no"),
    [
        ("yes", "no"), ("Y", "N"), ("T", "F"), ("positive", "negative"), ("pos", "neg"),
        ("prob_pos", "prob_neg"), ("P(Yes)", "P(No)"), ("yes_score", "no_score"),
        ("fraud", "not fraud"), ("p_churn", "p_no_churn"), ("toxic", "non-toxic"),
    ],
)  # fmt: skip
def test_a_label_1_is_never_read_as_no(yes, no):
    with pytest.raises(InputError, match=re.escape(f"put the column '{no}' first.")):
        sample(TWO.set_axis([yes, no], axis=1), [1, 0])
    assert sample(TWO.set_axis([no, yes], axis=1), [1, 0]).labels.tolist() == [1, 0]
    assert sample(TWO.set_axis([yes, no], axis=1), [yes, no]).labels.tolist() == [0, 1]


def test_text_finds_the_classes_of_predictions():
    known = Rows(Classes([[0.25, 0.75], [0.5, 0.5]], ("cat", "dog")))
    assert sample(known, ["dog", "cat"]).labels.tolist() == [1, 0]
    assert sample(known, [0, 1]).labels.tolist() == [0, 1]


KINDS = ["float64[pyarrow]", "float32[pyarrow]", "Float64", "Float32"]


@pytest.mark.parametrize("kind", [*KINDS, {"cat": "float64[pyarrow]", "dog": "Float64"}], ids=str)
def test_frames_of_every_kind_of_number(kind):
    frame = pd.DataFrame({"cat": [0.25, 0.5], "dog": [0.75, 0.5]}).astype(kind)
    for whole in ("int64[pyarrow]", "Int8", "int64"):
        checked = sample(frame, pd.Series([1, 0], dtype=whole))
        assert checked.rows.probs.tolist() == [[0.25, 0.75], [0.5, 0.5]]
        assert checked.labels.tolist() == [1, 0]


def test_integers_of_128_bits():
    labels = pl.Series([1, 0], dtype=pl.Int128)
    assert sample([[0.25, 0.75], [0.5, 0.5]], labels).labels.tolist() == [1, 0]
    frame = pl.DataFrame({"a": [1, 0], "b": [0, 1]}, schema={"a": pl.Int128, "b": pl.Int128})
    assert sample(frame, [0, 1]).rows.probs.tolist() == [[1.0, 0.0], [0.0, 1.0]]


def test_small_errors_are_repaired_and_noted():
    checked = sample(PROBS * (1 - 4e-7), LABELS)
    assert checked.rows.notes == ("Rows were renormalised: sums were off by up to 4e-07.",)
    np.testing.assert_allclose(checked.rows.probs, PROBS, rtol=1e-15)

    checked = sample([[1 + 1e-7, -1e-7], [0.5, 0.5]], [0, 1])
    assert checked.rows.probs.tolist() == [[1, 0], [0.5, 0.5]]
    assert checked.rows.notes == ("Entries outside [0, 1] were clipped: off by up to 1e-07.",)


def test_tolerance_depends_on_the_precision():
    probs = PROBS * (1 - 9e-4)
    with pytest.raises(InputError, match="do not sum to 1"):
        sample(probs, LABELS)
    for coarse in (
        probs.astype(np.float32),
        probs.astype(np.float16),
        pd.DataFrame(probs, dtype=np.float32),
        pd.DataFrame(probs, columns=CLASSES).astype({"owl": np.float32}),
        pl.DataFrame(probs.astype(np.float32)),
    ):
        assert sample(coarse, LABELS).rows.probs.sum(axis=1) == pytest.approx(1, abs=1e-15)
    assert sample(PROBS * (1 - 2.9e-6), LABELS)
    with pytest.raises(InputError, match="do not sum to 1"):
        sample(PROBS * (1 - 3.1e-6), LABELS)


UNIT = st.floats(0, 1, allow_subnormal=False)


@given(hnp.arrays(float, st.tuples(st.integers(2, 20), st.integers(2, 12)), elements=UNIT))
def test_rows_divided_by_their_sum_are_valid_and_stay(weights):
    weights[:, 0] += weights.sum(axis=1) == 0
    probs = weights / weights.sum(axis=1, keepdims=True)
    rows = sample(probs, np.zeros(len(probs), dtype=int)).rows.probs
    np.testing.assert_allclose(rows, probs, rtol=4 * probs.shape[1] * np.finfo(float).eps)
    assert np.abs(rows.sum(axis=1) - 1).max() <= probs.shape[1] * np.finfo(float).eps
    assert np.array_equal(rows == 0, probs == 0)
    # What is valid already comes back bit by bit.
    assert np.array_equal(sample(rows, np.zeros(len(rows), dtype=int)).rows.probs, rows)


@given(hnp.arrays(np.float32, 10, elements=st.floats(-30, 30, width=32)))
def test_softmax_in_float32_is_valid(logits):
    exps = np.exp(logits - logits.max())
    probs = np.stack([exps / exps.sum()] * 2)
    for given_probs in (probs, probs.astype(np.float64)):
        rows = sample(given_probs, [0, 9]).rows.probs
        assert np.abs(rows.sum(axis=1) - 1).max() <= 10 * np.finfo(float).eps


def test_nothing_can_be_changed():
    probs, labels = PROBS.copy(), LABELS.copy()
    checked = sample(probs, labels)
    probs[:], labels[:] = 0, 0
    assert same(checked, sample(PROBS, LABELS))
    assert probs.flags.writeable
    assert labels.flags.writeable
    for again in (checked, pickle.loads(pickle.dumps(checked)), copy.deepcopy(checked)):
        assert same(again, checked)
        with pytest.raises(ValueError, match="read-only"):
            again.rows.probs[0, 0] = 1
        with pytest.raises(ValueError, match="read-only"):
            again.labels[0] = 1
        with pytest.raises(AttributeError):
            again.labels = LABELS
        with pytest.raises(AttributeError):
            again.rows.classes = None


def test_predictions_keep_names_and_notes_when_pickled():
    predictions = Rows(Classes(PROBS, tuple(CLASSES)), notes=("a note",))
    again = pickle.loads(pickle.dumps(predictions))
    assert (again.classes, again.notes) == (predictions.classes, predictions.notes)
    assert again.classes == tuple(CLASSES)
    assert repr(again).startswith("Rows(notes=('a note',)")
    assert repr(again.law) == "Classes(names=('cat', 'dog', 'owl'))"


REAL = ["densenet121", "googlenet", "resnet18", "vgg19_bn"]


@pytest.mark.parametrize("name", [f"cifar10_{n}" for n in REAL] + ["cifar100_densenet_bc_100"])
def test_real_networks(name, reference):
    with reference(f"{name}.npz") as arrays:
        probs, labels = arrays["probs"], arrays["labels"]
    checked = sample(probs, labels)
    np.testing.assert_allclose(checked.rows.probs, probs, rtol=1e-6)
    assert np.abs(checked.rows.probs.sum(axis=1) - 1).max() <= probs.shape[1] * np.finfo(float).eps
    np.testing.assert_array_equal(checked.labels, labels)
    assert [note.startswith("Rows were renormalised") for note in checked.rows.notes] == [True]


# --- rounded rows


@pytest.mark.parametrize("decimals", [2, 3, 4, 5])
@pytest.mark.parametrize("classes", [3, 4])
@pytest.mark.parametrize("kind", [np.float64, np.float32])
def test_rounded_rows_are_renormalised_with_a_note(decimals, classes, kind):
    probs = np.random.default_rng(0).dirichlet(np.full(classes, 0.5), 500)
    found = sample(probs.round(decimals).astype(kind), np.zeros(500, int))
    assert np.allclose(found.rows.probs.sum(axis=1), 1, atol=1e-12)
    assert np.abs(found.rows.probs - probs).max() < 0.025 * 10.0 ** (2 - decimals)
    small = kind is np.float32 and decimals > 3  # within what float32 is granted
    assert found.rows.notes[0].kind == ("renormalised" if small else "rounded")


@pytest.mark.parametrize("decimals", some_fast([2, 3, 4], 2))
@pytest.mark.parametrize("model", caltest.datasets.digits_models())
def test_a_missing_class_does_not_pass_for_rounding(model, decimals):
    probs = caltest.datasets.load_digits_predictions(model).probs.round(decimals)
    for missing in range(10):
        with pytest.raises(InputError, match="rows that do not sum to 1"):
            sample(np.delete(probs, missing, axis=1), np.zeros(len(probs), int))


@pytest.mark.parametrize("rare", [0.004, 0.009])
def test_a_class_that_is_always_rare_is_missed(rare):
    """Every row is within what rounding explains, and all of them together are not."""
    probs = ((1 - rare) * np.random.default_rng(0).dirichlet([2.0, 2.0, 2.0], 2000)).round(2)
    with pytest.raises(InputError, match="a class may be missing"):
        sample(probs, np.zeros(2000, int))


@pytest.mark.parametrize(
    "probs", [[[0.3, 0.3, 0.3]] * 9, [[0.333, 0.333, 0.332]] * 9, [[0.5, 0.51, 0.0]] * 9]
)
def test_what_rounding_does_not_explain_is_refused(probs):
    with pytest.raises(InputError, match="rows that do not sum to 1"):
        sample(probs, [0] * 9)


# ------------------------------------------------------------------ what belongs to rows


@dataclass(frozen=True, eq=False)
class Weighed(Rows):
    """Rows with one thing more, as an example."""

    weights: np.ndarray | None = field(default=None, metadata={"by_row": np.float64})


@pytest.mark.parametrize("name", [None, "top_label", "class:1", "sorted", "top:2"])
def test_what_belongs_to_rows_is_never_lost(name):
    rows = Weighed(np.full((4, 3), 1 / 3), weights=np.arange(4.0))
    found = rows if name is None else find_lens(name).show(rows).rows
    checked = sample(found, [0, 1, 0, 1])
    for each in (found, checked.rows, pickle.loads(pickle.dumps(found)), copy.deepcopy(checked).rows):
        assert each.weights.tolist() == [0.0, 1.0, 2.0, 3.0]
    assert found.take([2, 0]).weights.tolist() == [2.0, 0.0]
    assert not found.take(slice(1, 3)).probs.flags.writeable
