"""Values that claim to be what they are not, are too long to be written, or are of odd number types."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from fuzz_values import Rude

import caltest
from caltest import InputError

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
        lambda x: caltest.predictive.Gaussian(x, [1.0]),
        lambda x: caltest.simulation.mixture(2, x, pi=0.5),
        lambda x: caltest.planning.pilot(PROBS, truth=x),
        lambda x: caltest.data.Predictions(x),
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


def test_fractions_are_numbers():
    share = Fraction(1, 3)
    assert caltest.statistics.ECD(clip=share) == caltest.statistics.ECD(1 / 3)
    with_float = caltest.simulation.mixture(5, [1.0, 2.0], pi=1 / 3, rng=0)
    np.testing.assert_array_equal(
        caltest.simulation.mixture(5, [1.0, 2.0], pi=share, rng=0).truth, with_float.truth
    )
    assert caltest.bin_table(PROBS, LABELS, clip=share) is not None


@pytest.mark.parametrize(
    "make",
    [
        pd.DataFrame,
        pd.Series,
        lambda x: pd.Series(x)[::-1],
        pl.Series,
        lambda x: pl.DataFrame({"p": x}),
        lambda x: pl.LazyFrame({"p": x}),
        lambda x: pa.table({"p": x}),
        lambda x: pa.record_batch({"p": x}),
    ],
)
def test_names_and_indexes_are_not_dropped(make):
    """By them labels and rows are matched, which blocks of arrays would not be."""
    for pair in ((make(PROBS), LABELS), (PROBS, make(LABELS))):
        with pytest.raises(InputError, match=r"with names or an index, .*; give it to caltest.test"):
            caltest.files.scan_arrays(*pair)


def test_arrays_in_memory_are_read_like_those_in_files():
    stored = caltest.files.scan_arrays(PROBS, LABELS)
    found, known = caltest.test(stored, None, "ecd", rng=0), caltest.test(PROBS, LABELS, "ecd", rng=0)
    assert found.pvalue == known.pvalue
