"""What is said about hostile names: every summary, message, table and picture."""

import io
import pickle
import re
from functools import cache, partial

import hypothesis.strategies as st
import numpy as np
import pytest
from hostile import HALF, NAMES, assert_fit
from hypothesis import given, settings

import caltest
from caltest._visible import shown_class
from caltest.auditing import Group
from caltest.data import Rows
from caltest.exceptions import InputError
from caltest.laws import Classes
from caltest.simulation import tempered

EVERY = {**NAMES, **HALF}


def data(name, rows=120):
    """Overconfident predictions of two classes; the second has the name."""
    sure = tempered(rows, np.ones(2), temperature=0.3, rng=1)
    return Rows(Classes(sure.probs, (f"not {name}", name))), sure.labels


def statistic_called(name):
    def of(probs, labels):
        return float(np.mean((probs[:, 1] - labels) ** 2))

    of.__name__ = name
    return of


@cache
def an_audit(name):
    predictions, labels = data(name)
    groups = {name: [(name, f"{name}!")[row % 2] for row in range(len(labels))]}
    lenses = ["canonical", "top_label", "classwise"]
    return caltest.audit(
        predictions, labels, groups=groups, lenses=lenses, min_rows=20, n_resamples=99, rng=1
    )


@cache
def a_comparison(name):
    predictions, labels = data(name)
    models = {f"{name} one": predictions.probs, f"{name} two": predictions.probs[:, ::-1]}
    return caltest.compare(models, labels, statistic_called(name))


@cache
def a_test(name):
    return caltest.test(*data(name), statistic_called(name), n_resamples=99, rng=1)


@cache
def bounds(name, lens=None):
    return caltest.miscalibration_bounds(*data(name), lens=lens, n_resamples=99, rng=1)


@cache
def an_estimate(name):
    functions = ["binning", "temperature"]
    return caltest.estimate_squared_error(*data(name), None, functions, pvalue="none", rng=1)


@cache
def a_power(name):
    model = caltest.planning.pilot(data(name)[0], bias=0.5, target=name)
    return caltest.power(model, 50, statistic_called(name), n_datasets=5, n_resamples=19, rng=1)


RESULTS = {
    "test": a_test, "audit": an_audit, "certificate": lambda name: caltest.certificate(*data(name)),
    "bounds": bounds, "bounds classwise": partial(bounds, lens="classwise"), "compare": a_comparison,
    "power": a_power, "estimate": an_estimate,
    "recalibration": lambda name: caltest.recalibration(*data(name)),
}  # fmt: skip


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
    for cell in [cell for column in frame for cell in frame[column] if isinstance(cell, str)]:
        assert_fit(cell, 10**6, log=False)
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
    ("text", "written"),
    [
        ("one\ntwo\x00", r"one\ntwo\x00"),
        ("a\u202eb\ud800", r"a\u202eb\ud800"),
        ("::error::x\n", r"\x3a:error::x\n"),
        ("a ##[group]b", r"a \x23#[group]b"),
    ],
)
def test_what_hides_or_commands_is_escaped(text, written):
    assert str(InputError(text)) == written


def test_long_names_are_shortened():
    assert shown_class("x" * 25) == "x" * 23 + "…"
    assert shown_class("e\u0301" * 13) == "e\u0301" * 11 + "…"
    assert Group.of(region=" ").words == "region = ' '"
    assert Group.of(**{"c" * 21: "north"}).words == "c" * 19 + "… = north"


@pytest.mark.parametrize(
    ("value", "written"),
    [
        ("cat", "'cat'"), ("9" * 2000, f"'{'9' * 60}…' (2000 characters)"),
        (-(10**5000), "a number of 5001 digits"), (np.zeros((2, 3)), "an array of shape (2, 3)"),
        (np.float64(2.5), "2.5"), (np.bool_(True), "True"), (lambda: 1, "a function"),
        (int, "the class int"), (object(), "an object"),
    ],
    ids=range(9),
)  # fmt: skip
def test_how_values_are_quoted(value, written):
    with pytest.raises(InputError, match=f"^alpha is {re.escape(written)}; "):
        caltest.audit([0.2, 0.4], [0, 1], alpha=value)


@pytest.mark.slow
@settings(max_examples=20)
@given(st.text(min_size=1, max_size=900))
def test_what_was_shown_is_shown_the_same_again(text):
    once = str(InputError(text))
    assert str(InputError(once)) == once
    assert shown_class(shown_class(text)) == shown_class(text)
