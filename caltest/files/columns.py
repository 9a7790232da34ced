"""Columns by name: which holds the labels and which the probabilities, as a user says or as found."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from numbers import Number

import narwhals as nw

from caltest._arguments import closest
from caltest._visible import quoted
from caltest.data.containers import is_number, listed
from caltest.exceptions import InputError, Phrase

_LABELS = ("label", "labels", "y", "y_true", "target", "class")
_PROBS = ("probs", "probabilities", "p", "y_prob")
_INDEX = re.compile(r"(unnamed: \d+|index|level_\d+|(row_?|sample_?)?id|row|__index_level_\d+__)?")

#: How columns of probabilities are named; a command may know another way.
NAME_COLUMNS = "with --columns (columns=… in Python)"


def chosen_label(names: Sequence[str], label: str | None, kind: str) -> str:
    """Return the name of the labels: the one given, or the one name that says so."""
    found = f"the {kind}s are {listed(names)}"
    if label is not None and label not in names:
        raise InputError(f"there is no {kind} {quoted(label)}{_meant(label, names)}; {found}.")
    likely = [label] if label is not None else likely_labels(names)
    if len(likely) > 1:
        raise InputError(
            f"the {kind}s {listed(likely)} could all be the labels; say which is, with --label "
            "(label=… in Python)."
        )
    if not likely:
        raise InputError(
            f"no {kind} is called {', '.join(_LABELS[:-1])} or {_LABELS[-1]}; say which holds the "
            f"labels, with --label (label=… in Python): {found}."
        )
    return likely[0]


def likely_labels(names: Sequence[str]) -> list[str]:
    """Return the names that say that they are of labels."""
    return [name for name in names if name.lower() in _LABELS]


def chosen_columns(names: Collection[str], columns: Sequence[str]) -> list[str]:
    """Return the columns of probabilities that the user names, if there are all of them."""
    chosen = [columns] if isinstance(columns, str) else [str(name) for name in columns]
    check_unique(chosen)
    for name in chosen:
        if name not in names:
            raise InputError(
                f"there is no column {quoted(name)} of probabilities{_meant(name, names)}; besides "
                f"the labels there are {listed(names)}."
            )
    if not chosen:
        raise InputError("columns is empty; name the columns of probabilities.")
    return chosen


def check_columns(
    schema: Mapping[str, nw.dtypes.DType], load: Callable[[str], Sequence[object]], *, given: bool
) -> None:
    """Raise if a column, ``given`` by name or found, can be no class's probability.

    ``load`` returns the cells of a column, to say what is wrong with it.
    """
    advice = Phrase("name the probability columns, {how}", {"how": NAME_COLUMNS})
    if not schema:
        raise InputError("there is no column besides the labels; add the probabilities.")
    for name, dtype in schema.items():
        if not (dtype.is_float() or dtype.is_integer()):
            do = Phrase("leave the column out") if given else advice
            raise _not_numbers(name, load(name), dtype, do)
        if not given and dtype.is_integer() and _INDEX.fullmatch(name.lower()):
            text = "column {column} looks like a row index, not a probability; {do}."
            raise InputError(text, column=quoted(name), do=advice)


def chosen_probs(names: Sequence[str]) -> str:
    """Return the name of the one array of an archive that holds the probabilities."""
    likely = [name for name in names if name.lower() in _PROBS]
    if len(likely) == 1:
        return likely[0]
    if likely:
        raise InputError(
            f"the arrays {listed(likely)} could all be the probabilities; leave one in the file."
        )
    found = (
        f"no array is called {', '.join(_PROBS[:-1])} or {_PROBS[-1]}; the arrays are {listed(names)}"
    )
    do = "save the probabilities as 'probs'"
    logits = next((name for name in names if "logit" in name.lower()), None)
    if logits is not None:
        found = f"the array {quoted(logits)} holds logits; apply softmax first"
        do = "and save the result as 'probs'"
    raise InputError(f"{found}{':' if logits is None else ','} {do}.")


def check_unique(names: Sequence[str], kind: str = "columns") -> None:
    """Raise if two columns, or what else has names, have one name."""
    twice = sorted(name for name, count in Counter(names).items() if count > 1)
    if twice:
        raise InputError(f"two {kind} have one name ({listed(twice)}); rename one of them.")


def _not_numbers(
    name: str, cells: Sequence[object], dtype: nw.dtypes.DType, advice: Phrase
) -> InputError:
    """Say what keeps a column from being numbers, and what to do about it."""
    culprits = [(row, cell) for row, cell in enumerate(cells) if not _reads_as_number(cell)]
    if not culprits:
        return InputError(f"column {quoted(name)} is of type {dtype}; save it as float64.")
    row, cell = culprits[0]
    text = cell if isinstance(cell, str) else ""
    others, do = " (nor are the other rows)", advice
    if "," in text and is_number(text.replace(",", ".")):
        others, do = "", Phrase("write decimals with a point")
    elif text.strip().endswith("%") and is_number(text.strip().removesuffix("%")):
        others, do = "", Phrase("write probabilities as fractions of 1, without a percent sign")
    elif len(culprits) < len(cells):
        others = f", in {len(culprits)} of {len(cells)} rows"
        do = Phrase("leave these rows out, or {advice}", {"advice": advice})
    what = "column {column} holds {found} at {row}, which is not a number{others}; {do}."
    return InputError(what, column=quoted(name), found=quoted(cell), row=row, others=others, do=do)


def _reads_as_number(cell: object) -> bool:
    """Say whether a reader takes a cell for a number, or for none; "nan" is text, not a missing one."""
    if isinstance(cell, str):
        return is_number(cell)
    return cell is None or (isinstance(cell, Number) and not isinstance(cell, bool))


def _meant(name: str, names: Collection[str]) -> str:
    close = closest(name, names)
    return f" (is {quoted(close)} meant?)" if close else ""
