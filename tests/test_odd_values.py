"""Values that claim to be what they are not, are too long to be written, or are of odd number types."""

import datetime
import math
from contextlib import suppress
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from fuzz_values import Rude

import caltest
from caltest import InputError
from caltest.auditing.groups import read_groups

PROBS, LABELS = [0.75, 0.25, 1, 0.5] * 5, [1, 0, 1, 1] * 5
HUGE = 10**5000


@pytest.mark.parametrize(
    "call",
    [
        lambda x: caltest.estimate(x, LABELS),
        lambda x: caltest.estimate(PROBS, x),
        lambda x: caltest.audit(PROBS, LABELS, groups=x),
        lambda x: caltest.audit(PROBS, LABELS, groups={"a": x}),
        lambda x: caltest.statistics.CKCE(groups=x),
        lambda x: caltest.files.scan_arrays(x, LABELS),
        lambda x: caltest.files.scan_arrays(PROBS, x),
        lambda x: caltest.predictive.GaussianPredictions(x, [1.0]),
        lambda x: caltest.simulation.tempered(2, x, temperature=0.5),
        lambda x: caltest.planning.pilot(PROBS, truth=x),
        lambda x: caltest.data.Rows(x),
        lambda x: caltest.estimate_squared_error(PROBS, LABELS, functions=x),
    ],
)
@pytest.mark.parametrize(
    "value", [Rude(), np.ma.masked, np.array(3), HUGE], ids=["rude", "masked", "scalar", "huge"]
)
def test_what_is_no_table_is_refused(call, value):
    with pytest.raises(InputError):
        call(value)


@pytest.mark.parametrize(
    "call",
    [
        lambda: caltest.estimate(pd.DataFrame([[0.25, 0.75]] * 4, columns=["a", HUGE]), [0] * 4),
        lambda: caltest.audit(PROBS, LABELS, groups={HUGE: LABELS}),
        lambda: caltest.audit(PROBS, LABELS, groups=pd.Series(LABELS, name=HUGE)),
        lambda: caltest.compare({HUGE: PROBS, "a": PROBS}, LABELS),
        lambda: caltest.estimate(PROBS, LABELS, statistic=lambda p, y: HUGE),
    ],
)
def test_numbers_that_cannot_be_written_are_told_by_their_digits(call):
    with pytest.raises(InputError, match="a number of 5001 digits"):
        call()


class Sullen:
    """It fails whatever it is asked for."""

    def __getattr__(self, name):
        raise RuntimeError(name)


class Unplaced(type):
    """Of its classes it is not known where they are from."""

    def __getattribute__(cls, name):
        if name == "__module__":
            raise AttributeError(name)
        return super().__getattribute__(name)


@pytest.mark.parametrize(
    "make", [Sullen, Unplaced("X", (), {}), lambda: pa.table({}), pl.DataFrame], ids=range(4)
)
@pytest.mark.parametrize(
    "call",
    [
        lambda x: caltest.test(x, LABELS),
        lambda x: caltest.test(PROBS, x),
        lambda x: caltest.audit(PROBS, LABELS, groups=x),
        lambda x: caltest.compare({"a": x, "b": PROBS}, LABELS),
        lambda x: caltest.estimate(PROBS, LABELS, lambda p, y: x),
    ],
)
def test_what_answers_no_question_is_refused(call, make):
    value = make()
    assert caltest.laws.recognised(value) is None
    with pytest.raises(InputError):
        call(value)


class Unlike:
    """It cannot be compared, or has no hash, or no text."""

    def __init__(self, fails):
        self.fails = fails

    def __eq__(self, other):
        if self.fails == "==":
            raise ValueError("no")
        return self is other

    def __hash__(self):
        if self.fails == "hash":
            raise RuntimeError("no")
        return 1

    def __str__(self):
        if self.fails == "text":
            raise RuntimeError("no")
        return "unlike"


@pytest.mark.parametrize("fails", ["==", "hash", "text"])
def test_groups_and_clusters_of_what_cannot_be_compared(fails):
    cells, said = [Unlike(fails) for _ in PROBS], "holds an Unlike in row 0 .* give a name or a number"
    with pytest.raises(InputError, match="clusters is 'unlike' for every" if fails == "==" else said):
        caltest.test(PROBS, LABELS, "brier", clusters=cells)
    if fails == "==":
        assert read_groups({"g": cells}, len(cells))[0].values == ("unlike",)
    else:
        with pytest.raises(InputError, match=said):
            caltest.audit(PROBS, LABELS, groups={"g": cells})


def test_numbers_of_thousands_of_digits_are_no_class():
    said = "^a sampling rate is for a number of 5001 digits, which is not a class; give a column from 0"
    with pytest.raises(InputError, match=said):
        caltest.test(PROBS, LABELS, sampling_rates={HUGE: 0.5})


@pytest.mark.parametrize("call", [caltest.test, caltest.audit, caltest.estimate])
def test_names_of_a_generator(call):
    with pytest.raises(InputError, match=r"class_names is a generator; give list\(…\) of it, one for"):
        call(PROBS, LABELS, class_names=(name for name in "ab"))


NAMES = [
    1, np.int64(1), 1.0, "1", True, None, math.nan, pd.NaT, pd.NA, (1, 2), ("a",), frozenset({1}), b"x",
    object(), Fraction(1, 3), Decimal("1"), Decimal("nan"), datetime.date(2020, 1, 1), 2**70, 1j, int,
    pd.Interval(0, 1), np.str_("s"), np.datetime64("NaT"), "", "\n", "\udcff", HUGE, Rude(), Sullen(),
]  # fmt: skip


@pytest.mark.parametrize("place", range(len(NAMES)))
def test_a_name_of_any_type_is_read_or_refused(place):
    """Hash, order and equality of such names may be anything, or fail."""
    name = NAMES[place]
    for call in (
        lambda: read_groups({name: LABELS}, 20),
        lambda: read_groups(pd.Series(LABELS, name=name), 20),
        lambda: caltest.data.sample(PROBS, pd.Series(LABELS, name=name)),
    ):
        with suppress(InputError):
            call()


@pytest.mark.parametrize("others", [NAMES[:5], pytest.param(NAMES[5:], marks=pytest.mark.slow)])
@pytest.mark.parametrize("place", range(len(NAMES)))
def test_two_names_of_any_types_are_read_or_refused(place, others):
    first = NAMES[place]
    for second in others:
        frame = pd.DataFrame({"a": PROBS, "b": [1 - p for p in PROBS]})
        try:
            frame.columns = pd.Index([first, second], dtype=object)
        except Exception:  # pandas takes no such pair
            continue
        for call in (
            lambda frame=frame: caltest.data.sample(frame, LABELS),
            lambda frame=frame: read_groups(frame, len(frame)),
        ):
            with suppress(InputError):
                call()


@pytest.mark.parametrize("number", [10**400, -(10**400), HUGE, -HUGE, 2**63], ids=range(5))
def test_numbers_that_are_no_floats_are_kept_out_of_objects(number):
    """What an object holds is written, compared and computed with later."""
    for make in (
        caltest.nulls.Bound,
        lambda x: caltest.nulls.Bound(q=x),
        caltest.lenses.ClassWise,
        caltest.lenses.TopK,
        caltest.kernels.Gaussian,
        lambda x: x * caltest.kernels.Gaussian(),
        lambda x: caltest.statistics.ECD(clip=x),
        caltest.binning.EqualWidth,
    ):
        try:
            found = make(number)
        except InputError:
            continue
        assert len(repr(found)) < 200
        if isinstance(found, caltest.nulls.Null):
            assert caltest.test(PROBS, LABELS, "skce_b", null=found).pvalue <= 1


def test_fractions_are_numbers():
    share = Fraction(1, 3)
    assert caltest.statistics.ECD(clip=share) == caltest.statistics.ECD(1 / 3)
    drawn = [caltest.simulation.tempered(5, temperature=each, rng=0) for each in (1 / 3, share)]
    np.testing.assert_array_equal(drawn[0].probs, drawn[1].probs)
    assert caltest.bin_table(PROBS, LABELS, clip=share) is not None


@pytest.mark.parametrize(
    "make",
    [
        pd.DataFrame, pd.Series, lambda x: pd.Series(x)[::-1], pl.Series,
        lambda x: pl.DataFrame({"p": x}), lambda x: pl.LazyFrame({"p": x}),
        lambda x: pa.table({"p": x}), lambda x: pa.record_batch({"p": x}),
    ],
)  # fmt: skip
def test_names_and_indexes_are_not_dropped(make):
    """By them labels and rows are matched, which blocks of arrays would not be."""
    for pair in ((make(PROBS), LABELS), (PROBS, make(LABELS))):
        with pytest.raises(InputError, match=r"with names or an index, .*; give it to caltest.test"):
            caltest.files.scan_arrays(*pair)


def test_arrays_in_memory_are_read_like_those_in_files():
    stored = caltest.files.scan_arrays(PROBS, LABELS)
    found, known = caltest.test(stored, None, "ecd", rng=0), caltest.test(PROBS, LABELS, "ecd", rng=0)
    assert found.pvalue == known.pvalue


def test_brackets_and_empty_lines_of_files(tmp_path):
    """Deep JSON with short lists beside each other, brackets within text, and blank lines of CSV."""
    path = tmp_path / "rows.jsonl"
    path.write_bytes(b'{"p":' + b"[[]," * 50_000 + b"[]" + b"]" * 50_000 + b"}\n")
    with pytest.raises(InputError, match="line 1 is nested more than 64 deep"):
        caltest.files.read(path, "y")
    path.write_text('{"p": 0.5, "y": 1, "s": "%s"}\n{"p": 0.4, "y": 0, "s": ""}\n' % ("[" * 80))
    assert caltest.files.read(path, "y", columns=["p"]).labels.tolist() == [1, 0]
    path.with_suffix(".csv").write_text(" " + "\n" * 60)
    with pytest.raises(InputError):
        caltest.files.read(path.with_suffix(".csv"), "y")


def test_an_event_is_the_class_of_the_last_column():
    frame = pd.DataFrame({"rain": [0.9, 0.2], "dry": [0.1, 0.8]})
    with pytest.raises(InputError, match="event is 'rain', the class of the first column"):
        caltest.audit(frame, ["rain", "dry"], event="rain")


def test_certain_predictions_with_weights_keep_their_sign():
    certain, labels = [1, 1, 0, 0, 1, 0], [0, 1, 1, 0, 1, 0]
    weights = [1.2, 0.9, 1.0, 0.9, 1.1, 0.9]
    assert caltest.estimate(certain, labels, "citl", weights=weights) == -np.inf
    assert caltest.estimate(certain, labels, "citl") == np.inf
