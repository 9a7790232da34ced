"""Errors know what they are about: no sentence is read to change it."""

import copy
import pickle
import re
from contextvars import copy_context

import numpy as np
import pytest

import caltest
from caltest import InputError, data
from caltest.data.rows import Note, merged_notes
from caltest.exceptions import IN_SHELL, Argument, Phrase
from caltest.sampling import ROWS

P = np.tile([[0.25, 0.75], [0.5, 0.5]], (10, 1))
Y = np.tile([0, 1], 10)


def error_of(function, *args, **kwargs):
    with pytest.raises(InputError) as caught:
        function(*args, **kwargs)
    return caught.value


def wrong(array, place, value):
    changed = array.astype(object if value is None else float)
    changed[place] = value
    return changed


#: Predictions and labels with a mistake in row 3, and what is found there.
IN_ROW_3 = {
    "missing": (wrong(P, (3, 1), None), Y),
    "masked": (np.ma.array(P, mask=np.arange(40).reshape(20, 2) == 7), Y),
    "not finite": (wrong(P, (3, 0), np.nan), Y),
    "outside": (wrong(P, (3, 0), 1.25), Y),
    "no sum of 1": (wrong(P, (3, 0), 0.75), Y),
    "lengths": ([[0.5, 0.5]] * 3 + [[1.0]], Y[:4]),
    "label negative": (P, wrong(Y, 3, -2)),
    "label without a column": (P, wrong(Y, 3, 7)),
    "label a fraction": (P, wrong(Y, 3, 0.5)),
    "label not finite": (P, wrong(Y, 3, np.inf)),
}


@pytest.mark.parametrize("name", IN_ROW_3)
def test_a_row_is_a_fact(name):
    """So that rows of a block are counted from the start of the file; how many of all, nobody knows."""
    error = error_of(data.sample, *IN_ROW_3[name])
    assert "row 3 (counting from 0)" in str(error)
    assert error.fact("row").number == 3
    moved = error.moved(ROWS)
    whole = re.sub(r",( in)? 1 of 20( rows)?(, off by up to [\d.]+\d)?", "", str(error))
    assert str(moved) == whole.replace("row 3 (", f"row {3 + ROWS} (")
    assert str(moved.within("x.npz")) == f"x.npz: {moved}"


def test_an_argument_is_a_fact():
    error = error_of(caltest.test, P, Y, n_resamples=10**9)
    assert error.fact("argument") == Argument("n_resamples")
    assert error.fact("found") == "1000000000"
    assert str(error).endswith("use null='moments', which draws none.")
    shell = copy_context()
    shell.run(IN_SHELL.set, {"n_resamples": "--resamples", "null": "--null"})
    typed = shell.run(str, error.phrase)
    assert typed.startswith("--resamples is 1000000000; give at most ")
    assert typed.endswith("use --null moments, which draws none.")


@pytest.mark.parametrize(
    ("argument", "written"),
    [
        (Argument("n"), "n"), (Argument("n", 9), "n=9"), (Argument("n", ...), "n="),
        (Argument("n", "9"), "n='9'"), (Argument("--n"), "--n"), (Argument("--n", 9), "--n 9"),
        (Argument("--under-null", True), "--under-null"),
    ],
)  # fmt: skip
def test_an_argument_is_written_as_in_a_call_or_a_command(argument, written):
    assert str(argument) == written


@pytest.mark.parametrize("again", [copy.copy, copy.deepcopy, lambda e: pickle.loads(pickle.dumps(e))])
def test_an_error_that_travels_keeps_its_facts(again):
    """As it does from a worker."""
    error = again(InputError("{argument} is {found} in {row}.", argument="probs", row=3, found="{x}"))
    assert str(error) == "probs is {x} in row 3 (counting from 0)."
    assert str(error.moved(2)) == str(error).replace("row 3", "row 5")


@pytest.mark.parametrize("text", ["{", "}", "{0}", "{argument}", "{{}}", "%s", "\\N{x}"])
def test_what_a_user_wrote_is_no_template(text):
    plain = InputError(f"found {text}.")
    assert str(plain) == f"found {text}."
    found = InputError(argument="alpha", found=text, do=Phrase("give {one}", {"one": text}))
    for error in (found, found.moved(1)):
        assert str(error) == f"alpha is {text}; give {text}."
    assert str(found.within(text)) == f"{text}: {found}"
    assert str(plain.within(text).explained("so it is")) == f"{text}: found {text}; so it is."


def test_notes_with_an_amount_are_merged_by_it():
    far, near = Note("renormalised", 0.9e-6), Note("renormalised", 1e-7)
    clipped = Note("clipped", 1e-8)
    assert merged_notes([near, "a note", far, clipped, near, "a note"]) == (far, "a note", clipped)
    again = pickle.loads(pickle.dumps(far))
    assert (again, again.kind, again.amount) == (far, "renormalised", 0.9e-6)
    rows = P.copy()
    rows[2] *= 1.0 + 5e-7
    (note,) = data.sample(rows, Y).rows.notes
    assert note.kind == "renormalised"
    assert note.amount == pytest.approx(5e-7)
