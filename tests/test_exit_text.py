"""What is said about hostile names: every summary, message, table and picture."""

from __future__ import annotations

import io
import pickle
import warnings
from functools import cache, partial

import hypothesis.strategies as st
import matplotlib as mpl
import numpy as np
import pytest
from hostile import HALF, NAMES, assert_fit
from hypothesis import given, settings

import caltest
from caltest._visible import (
    clipped,
    escaped,
    line,
    message,
    quoted,
    shortened,
    shown,
    shown_class,
    shown_group,
    visible,
    visible_page,
)
from caltest.data import Rows
from caltest.exceptions import InputError
from caltest.laws import Classes
from caltest.simulation import tempered

EVERY = {**NAMES, **HALF}


def data(name: str, rows: int = 120) -> tuple[Rows, np.ndarray]:
    """Overconfident predictions of two classes; the second has the name."""
    sure = tempered(rows, np.ones(2), temperature=0.3, rng=1)
    return Rows(Classes(sure.probs, (f"not {name}", name))), sure.labels


def statistic_called(name: str):
    def of(probs, labels):
        return float(np.mean((probs[:, 1] - labels) ** 2))

    of.__name__ = name
    return of


@cache
def an_audit(name: str):
    predictions, labels = data(name)
    groups = {name: [(name, f"{name}!")[row % 2] for row in range(len(labels))]}
    lenses = ["canonical", "top_label", "classwise"]
    return caltest.audit(
        predictions, labels, groups=groups, lenses=lenses, min_rows=20, n_resamples=99, rng=1
    )


@cache
def a_comparison(name: str):
    predictions, labels = data(name)
    models = {f"{name} one": predictions.probs, f"{name} two": predictions.probs[:, ::-1]}
    return caltest.compare(models, labels, statistic_called(name))


@cache
def a_test(name: str):
    return caltest.test(*data(name), statistic_called(name), n_resamples=99, rng=1)


@cache
def bounds(name: str, lens: str | None = None):
    return caltest.miscalibration_bounds(*data(name), lens=lens, n_resamples=99, rng=1)


@cache
def an_estimate(name: str):
    functions = ["binning", "temperature"]
    return caltest.estimate_squared_error(*data(name), None, functions, pvalue="none", rng=1)


@cache
def a_power(name: str):
    predictions, labels = data(name)
    model = caltest.planning.pilot(predictions, labels, bias=0.5, target=name)
    return caltest.power(model, 50, statistic_called(name), n_datasets=5, n_resamples=19, rng=1)


RESULTS = {
    "test": a_test,
    "audit": an_audit,
    "certificate": lambda name: caltest.certificate(*data(name)),
    "bounds": bounds,
    "bounds classwise": partial(bounds, lens="classwise"),
    "compare": a_comparison,
    "power": a_power,
    "estimate": an_estimate,
    "recalibration": lambda name: caltest.recalibration(*data(name)),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", EVERY.values(), ids=EVERY)
@pytest.mark.parametrize("make", RESULTS.values(), ids=RESULTS)
def test_every_summary_is_fit_to_be_printed(make, name):
    result = make(name)
    assert_fit(str(result), 300)
    assert str(result) == result.summary()
    assert len(str(result)) < 20_000


@pytest.mark.slow
@pytest.mark.parametrize("name", EVERY.values(), ids=EVERY)
def test_the_assertion_of_pytest(name):
    predictions, labels = data(name)
    groups = {name: [name] * len(labels)}
    with pytest.raises(AssertionError) as caught:
        caltest.assert_calibrated(predictions, labels, groups=groups, min_rows=20, n_resamples=99)
    assert_fit(str(caught.value), 1000)


@pytest.mark.slow
@pytest.mark.parametrize("name", EVERY.values(), ids=EVERY)
def test_reports_in_markdown_html_and_xml(name):
    audit = an_audit(name)
    report = caltest.report
    assert_fit(report.to_markdown(audit, title=name, command=name), 10**6)
    for text in (report.to_html(audit, title=name, command=name), report.to_junit(audit)):
        text.encode("utf-8")
        assert not {"\x1b", "\u202e", "\u200b"} & set(text)
    assert report.to_json(audit).isascii()


TABLES = {
    "audit": lambda name: an_audit(name).to_frame(),
    "bounds": lambda name: bounds(name).table(),
    "where": lambda name: bounds(name).where(),
    "estimate": lambda name: an_estimate(name).table().reset_index(),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", EVERY.values(), ids=EVERY)
@pytest.mark.parametrize("make", TABLES.values(), ids=TABLES)
def test_names_in_tables_are_visible_and_otherwise_as_they_are(make, name):
    frame = make(name)
    cells = [cell for column in frame for cell in frame[column] if isinstance(cell, str)]
    assert all(visible(cell) == cell for cell in cells)
    frame.to_csv(io.StringIO(), index=False)


def test_a_spreadsheets_formula_stays_a_name():
    assert set(an_audit("=1+1").to_frame()["group"].dropna()) == {"=1+1", "=1+1!"}


# --- errors


@pytest.mark.parametrize("name", EVERY.values(), ids=EVERY)
def test_every_message_is_one_line_of_at_most_500_characters(name):
    error = InputError(f"{name}: the column {name!r} holds {name}; give probabilities.")
    assert_fit(str(error), 500)
    assert "\n" not in str(error)
    assert str(error).endswith("; give probabilities.")
    assert error.args == (str(error),)
    assert str(pickle.loads(pickle.dumps(error))) == str(error)
    with pytest.raises(InputError) as caught:
        caltest.test(*data("cat"), name)
    assert_fit(str(caught.value), 500)


def test_a_short_message_is_as_it_was():
    text = "probs.csv: row 1 (counting from 0) is 1.4, outside [0, 1]; divide by 100."
    assert str(InputError(text)) == text
    assert str(InputError()) == ""


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        (visible("one\ntwo\x00"), r"one\ntwo\x00"),
        (visible("a\u202eb\ud800"), r"a\u202eb\ud800"),
        (escaped(":"), r"\x3a"),
        (line("::error::x\n"), r"\x3a:error::x\n"),
        (line("a ##[group]b"), r"a \x23#[group]b"),
        (visible_page("one\n::two\x1b"), "one\n\\x3a:two\\x1b"),
        (shown("a\x1b"), r"a\x1b"),
        (shown("a_rather_long_name", 10), "a_rat…name"),
        (shown_class("x" * 25), "x" * 23 + "…"),
        (shown_group("region", " "), "region = ' '"),
        (shown_group("c" * 21, "north"), "c" * 19 + "… = north"),
        (clipped("a_very_long_name_of_a_network_20240131", 28), "a_very_long_na…work_20240131"),
        (shortened("a_rather_long_name", 14), "a_rather_long…"),
        (shortened("e\u0301" * 3, 4), "e\u0301…"),
        (quoted("cat"), "'cat'"),
        (quoted("9" * 2000, 12), "'999999999999…' (2000 characters)"),
        (quoted(-(10**5000)), "a number of 5001 digits"),
        (quoted(np.zeros((2, 3))), "an array of shape (2, 3)"),
        (quoted(np.float64(0.5)), "0.5"),
        (quoted(np.bool_(True)), "True"),
        (quoted(lambda: 1), "a function"),
        (quoted(int), "the class int"),
        (quoted(object()), "an object"),
    ],
)
def test_how_names_and_values_are_written(written, expected):
    assert written == expected


@pytest.mark.slow
@settings(max_examples=20)
@given(st.text(max_size=900))
def test_what_was_shown_is_shown_the_same_again(text):
    for make in (visible, line, message, partial(shown, most=40)):
        assert make(make(text)) == make(text)
    assert_fit(message(text), 500)
    assert len(shown(text, 40)) <= 40


@given(st.text(max_size=60), st.integers(1, 40))
def test_the_middle_is_left_out(text, most):
    short = clipped(text, most)
    assert len(short) <= most
    assert short == text if len(text) <= most else "…" in short


# --- pictures

PICTURES = {
    "reliability": lambda name: caltest.ReliabilityDisplay.from_predictions(
        *data(name), n_resamples=99, rng=1
    ),
    "panels": lambda name: caltest.ReliabilityDisplay.from_predictions(
        *data(name), lens="classwise", n_resamples=99, rng=1
    ),
    "bounds": lambda name: caltest.plots.BoundsDisplay.from_result(bounds(name)),
    "certificate": lambda name: caltest.plots.CertificateDisplay.from_result(
        caltest.certificate(*data(name))
    ),
    "certificate by rows": lambda name: caltest.plots.CertificateDisplay.from_result(
        caltest.certificate(*data(name)), against="rows"
    ),
    "comparison": lambda name: caltest.plots.ComparisonDisplay.from_result(a_comparison(name)),
    "cumulative": lambda name: caltest.plots.CumulativeDisplay.from_predictions(
        *data(name), lens="class:0", n_resamples=99, rng=1
    ),
    "null": lambda name: caltest.plots.NullDisplay.from_result(a_test(name)),
    "power": lambda name: caltest.plots.PowerDisplay.from_result(a_power(name)),
    "risk": lambda name: caltest.plots.RiskDisplay.from_result(an_estimate(name)),
}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("make", "name"),
    [  # every second one: all pictures, and all names
        pytest.param(make, name, id=f"{picture}, {what}")
        for row, (picture, make) in enumerate(PICTURES.items())
        for column, (what, name) in enumerate(EVERY.items())
        if (row + column) % 2 == 0
    ],
)
@pytest.mark.usefixtures("pictures")
def test_every_picture_is_drawn(make, name):
    figure = make(name).figure_
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # a glyph that is missing, a layout without room
        figure.savefig(io.BytesIO(), format="svg")
    for text in figure.findobj(mpl.text.Text):
        assert_fit(text.get_text(), 250, log=False)
