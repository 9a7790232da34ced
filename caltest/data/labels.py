"""Labels: numbers or names, matched to the columns; and sampling rates by label."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from caltest._arguments import as_float, closest, whole_number
from caltest._sums import Places
from caltest._visible import quoted
from caltest.alignment import bare, forms
from caltest.data.containers import NamedArray, listed, read_table
from caltest.data.diagnose import WORDS
from caltest.exceptions import Argument, InputError, OfAll, Phrase
from caltest.laws.classes import Array

_WHOLE = re.compile(r"-?\d+(\.0+)?")
_MOST_DIGITS = 18  # of a number that fits into 64 bits
#: Words for yes, and the opposite of each; besides, "not" may precede any word.
_YES = ("true", "t", "yes", "y", "positive", "pos", "present", "success", "pass", "on")
_NO = ("false", "f", "no", "n", "negative", "neg", "absent", "failure", "fail", "off")
_OPPOSITES = dict(zip(_YES, _NO, strict=True))
_NOT = ("no", "not", "non")
_CONVERTED = Argument(", for instance with labels.astype(int)", shell=" in the file")
_BY_NAME = "class_names, or probs with a named column for every class, as in a data frame"
_NAMED = Argument(_BY_NAME, shell="a column of probabilities for every class, named as its labels are")
_WRONG = {
    "too many": "labels is boolean, but probs has {n} columns; give the observed class, 0 to {last}.",
    "booleans": "labels is boolean, and the columns of probs are called {names}, which does not say "
    "which of them True is; give labels as these names, or call the columns False and True.",
    "text": "labels holds text ({first} comes first), but probs names no classes; {do}.",
    "opposites": "labels are 0 and 1, and the columns of probs are {names}, so that 1 would be {no}; "
    "give labels as these names, or put the column {no} first.",
    "numbers": "label {found} in {row} is not the number of a column of probs ({names}), to which "
    "integer labels are matched; correct the labels, or leave the names out (of columns, or "
    "class_names) if labels are column indices from 0.",
    "long": "labels are integers, and column {name} carries a number of more than {digits} digits, "
    "which no label can be; rename the columns.",
    "twice": "labels are integers, and the columns {first} and {name} of probs both carry the number "
    "{number}; rename one of them.",
    "odd": "label {found} in {row} is {what}, as other labels are; correct it, or leave the row out of "
    "probs and labels alike.",
    "unknown": "label {found} in {row} is not the name of a column of probs ({names}); {do}",
    "places": "labels are integers, and column {place} of probs (counting from 0) is called {name}, "
    "where other columns have words for names; give labels as these names, or rename the column.",
    "fractions": "labels has fractions{share}: {row} is {found}; if outcomes are numbers, give "
    "point forecasts ({points}) or distributions ({laws}) as predictions; if they are shares of "
    "votes, give every vote a row, and {clusters} for what they are about.",
    "measured": "labels holds numbers, not classes: {row} is {found}; give point forecasts ({points}), "
    "distributions ({laws}) or intervals ({sets}) first, in place of probabilities.",
    "not finite": "labels has entries that are not finite, the first, {found}, in {row}; leave "
    "these rows out of probs and labels alike.",
    "signs": "labels are -1 and 1; give 0 in place of -1.",
    "from 1": "labels run from 1 to {n} and probs has {n} columns, so they seem to be counted from 1; "
    "subtract 1 from each.",
    "negative": "label {found} in {row} is negative; where it marks a missing label, leave the row out "
    "of probs and labels alike{do}.",
    "no column": "label {found} in {row} has no column: probs has {n} classes, 0 to {last}; give one "
    "column for every class, or correct the label{do}.",
}
_POINTS = ", or, if outcomes are numbers, give point forecasts ({points})"
_OF_TWO = {
    "negative": _POINTS,
    "no column": f", or, of confidences in one class each, 1 where it was right{_POINTS}",
}


def column_indices(
    labels: NamedArray, n_classes: int, names: tuple[str, ...] | None
) -> tuple[Places, tuple[str, ...]]:
    """Return the column, 0..m−1, that each label (n,) means, and notes on how they were matched.

    Numbers are column indices, unless the columns' names contain numbers of their own (``"1"``,
    ``"prob_1"``): then labels are matched to these. Text is matched to the names, or to the parts in
    which they differ ("cat" of "prob_cat" or "P(cat)"), in lower case if necessary. With two columns,
    True and False are matched to the names, never by position.
    """
    values, are_booleans = labels.values, labels.values.dtype.kind == "b"
    if are_booleans and n_classes != 2:
        raise InputError(_WRONG["too many"], n=n_classes, last=n_classes - 1)
    if labels.is_text and names is None:
        if n_classes == 2:
            for _, yes in pairs_of(labels):
                note = f"Labels were read as words: 1 is {quoted(yes)}."
                return np.array([str(x).casefold() == yes for x in values.tolist()], np.intp), (note,)
        texts = list(map(str, values.tolist()))
        _check_kind(texts, _OPPOSITES.items() if n_classes == 2 else ())
        do = f"give {'labels 0 and 1, or ' * (n_classes == 2)}{_NAMED}"
        if all(map(_WHOLE.fullmatch, texts)):
            do = f"convert labels to integers{_CONVERTED}"
        raise InputError(_WRONG["text"], first=listed(texts[:1]), do=do)
    if names is not None and labels.is_text:
        return _by_name(values.tolist(), names)
    if names is not None and are_booleans:
        true = [word in ("true", "1") for word in _told_apart(names)]
        if sorted(_told_apart(names)) not in (["false", "true"], ["0", "1"]):
            raise InputError(_WRONG["booleans"], names=listed(names))
        return np.where(values, true.index(True), true.index(False)), ()
    check_whole(values)
    if names is not None and n_classes == 2:
        yes, no = _told_apart(names)
        if no == _OPPOSITES.get(yes) if yes else no in _NOT:  # by position, a label 1 would be no
            _check_range(values, 2)
            if (yes, no) == ("true", "false"):
                note = f"Labels were matched to the column names: 1 is {quoted(names[0])}."
                return 1 - values.astype(np.intp), (note,)
            raise InputError(_WRONG["opposites"], names=listed(names), no=quoted(names[1]))
    numbers = None if names is None else numbers_in(bare(names)[0])
    if names is not None and numbers is None:  # some may be numbers: what would a number mean?
        for place, name in enumerate(names):
            if _WHOLE.fullmatch(name) and name.partition(".")[0] != str(place):
                raise InputError(_WRONG["places"], place=place, name=quoted(name))
    if names is None or numbers is None or numbers == tuple(range(n_classes)):
        _check_range(values, n_classes)
        return values.astype(np.intp), ()
    order = np.argsort(numbers)
    ranked = np.asarray(numbers)[order]
    indices = order[np.minimum(np.searchsorted(ranked, values), len(ranked) - 1)]
    wrong = np.asarray(numbers)[indices] != values
    if wrong.any():
        row = int(np.argmax(wrong))
        one = quoted(int(values[row]))
        raise InputError(_WRONG["numbers"], row=row, found=one, names=listed(names))
    return indices.astype(np.intp), ("Labels were matched to the numbers in the column names.",)


#: Words for any probability.
_GENERAL = {"p", "pr", "prob", "proba", "probability", "class", "label", "score", "pred", "y"}


def says_no(column: str, no: str, yes: str, *, alone: bool = False) -> bool:
    """Return whether a column is named like one class, perhaps alone, but is read as the other."""
    said, first, second = (set(re.findall(r"\d+|[^\W\d_]+", x.casefold())) for x in (column, no, yes))
    if alone or no.isdigit():  # "model 0" is not class 0, nor is a column's default name 0
        return said - _GENERAL == first and column != "0"
    return first <= said and not second <= said


def pairs_of(labels: NamedArray) -> list[tuple[str, str]]:
    """Return possible names of classes 0 and 1, from the labels of two classes."""
    if not labels.is_text:
        return [("0", "1"), ("false", "true")]
    words = {str(label).casefold() for label in labels.values.tolist()}
    return [(no, yes) for yes, no in _OPPOSITES.items() if words <= {yes, no}][:1]


def numbers_in(names: Sequence[str]) -> tuple[int, ...] | None:
    """Return the numbers in names that are numbers, or share a prefix before them; None for others."""
    if all(_WHOLE.fullmatch(name) for name in names):
        digits = [name.partition(".")[0] for name in names]
    else:
        matches = [match for name in names if (match := re.compile(r"(.*?)(\d+)").fullmatch(name))]
        if len(matches) < len(names) or len({match[1] for match in matches}) > 1:
            return None
        digits = [match[2] for match in matches]
    first: dict[int, str] = {}
    for name, written in zip(names, digits, strict=True):
        if len(written) > _MOST_DIGITS:
            raise InputError(_WRONG["long"], name=quoted(name), digits=_MOST_DIGITS)
        if (known := first.setdefault(int(written), name)) is not name:
            one, other = quoted(known), quoted(name)
            raise InputError(_WRONG["twice"], first=one, name=other, number=int(written))
    return tuple(first)


def _by_name(labels: list[str], names: tuple[str, ...]) -> tuple[Places, tuple[str, ...]]:
    """Look labels up among names, in the first form of these that has all labels."""
    different, best = dict.fromkeys(labels), np.full(len(labels), -1)
    for change, form in forms(names):
        index = {name: k for k, name in enumerate(form)}
        places = {label: index.get(change(label), -1) for label in different}
        found = np.fromiter((places[label] for label in labels), np.intp, len(labels))
        if found.min() >= 0:
            apart = next((label for label in different if label != names[places[label]]), None)
            if apart is None or form == names:
                return found, ()
            pair = f"{quoted(apart)} is {quoted(names[places[apart]])}"
            return found, (f"Labels were matched to the column names by what these differ in: {pair}.",)
        best = found if (found >= 0).sum() > (best >= 0).sum() else best
    row = int(np.argmin(best))
    if best.max() < 0:
        _check_kind(labels)
    close = closest(labels[row], bare(names)[0])
    do = f"did you mean {quoted(close)}?" if close else "correct it, or rename the columns."
    raise InputError(_WRONG["unknown"], row=row, found=quoted(labels[row]), names=listed(names), do=do)


def _check_kind(labels: list[str], pairs: Iterable[tuple[str, str]] = ()) -> None:
    """Raise if half of the labels are numbers, or one of two words, and others are not."""
    kinds = {"not a number": [_WHOLE.fullmatch(label) is not None for label in labels]}
    for yes, no in pairs:
        both = f"neither {quoted(yes)} nor {quoted(no)}"
        kinds[both] = [label.casefold() in (yes, no) for label in labels]
    what, fits = max(kinds.items(), key=lambda kind: sum(kind[1]))
    if len(labels) > sum(fits) >= len(labels) / 2:
        row = fits.index(False)
        raise InputError(_WRONG["odd"], row=row, found=quoted(labels[row]), what=what)


def _told_apart(names: Sequence[str]) -> tuple[str, str]:
    """Return two names without the words that they share."""
    one, other = (re.findall(r"[^\W_]+", name.lower()) for name in names)
    return " ".join(x for x in one if x not in other), " ".join(x for x in other if x not in one)


def check_whole(values: np.ndarray) -> None:
    """Raise unless labels (n,) or (n, k) are whole numbers, with what they look like."""
    if values.dtype.kind != "f":
        return
    finite = np.isfinite(values)
    wrong = ~finite if not finite.all() else values != np.round(values)
    if wrong.any():
        measured = wrong.mean() >= 0.5 and (values.min() < 0 or values.max() > 1)
        kind = "not finite" if not finite.all() else "measured" if measured else "fractions"
        rows, found = np.nonzero(wrong)[0], f"{values[wrong][0]:.6g}"
        facts = WORDS | {"clusters": Argument("clusters", ...)}
        facts["share"] = OfAll(f", in {len(np.unique(rows))} of {len(wrong)} rows")
        raise InputError(_WRONG[kind], row=int(rows[0]), found=found, **facts)


def _check_range(values: np.ndarray, n_classes: int) -> None:
    """Raise unless whole numbers lie in 0..m−1, with what they look like."""
    low, high = int(values.min()), int(values.max())
    if low >= 0 and high < n_classes:
        return
    row = int(np.argmax((values < 0) | (values >= n_classes)))
    wrong = "negative" if low < 0 else "no column"
    if n_classes == 2 and low == -1 and np.all(np.abs(values) == 1):
        raise InputError(_WRONG["signs"])
    if low == 1 and high == n_classes:
        raise InputError(_WRONG["from 1"], n=high)
    found = quoted(int(values[row]))
    do = Phrase(_OF_TWO[wrong] if n_classes == 2 else "", WORDS)
    raise InputError(_WRONG[wrong], row=row, found=found, n=n_classes, last=n_classes - 1, do=do)


# ------------------------------------------------------------------ sampling rates
#
# A row of class k may have been kept with a known probability s_k, independently of everything else.
# Among the rows kept
#
#     P(Y = k | g) = g_k s_k / Σ_l g_l s_l,
#
# exactly, so predictions transformed like this are calibrated among these if the predictions of all
# rows were. Weights 1/s_k would be functions of the labels, which no test of predictions may use.


def kept_at(
    probs: Array, classes: tuple[str, ...] | None, rates: object, weights: Array | None = None
) -> tuple[Array, str]:
    """Transform predictions of all rows into predictions of the rows that were kept.

    A sentence on the mean prediction before and after is also returned.

    Parameters
    ----------
    probs
        Predictions (n, m).
    classes
        The names of the m classes, if there are any.
    rates
        Share of rows kept, by class name or column; 1 for other classes.
    weights
        Weights of rows in the means that the note reports.

    Raises
    ------
    InputError
        If there is no such class, or a rate is not in (0, 1].

    Examples
    --------
    >>> kept, _ = kept_at(np.array([[0.99, 0.01], [0.9, 0.1]]), None, {0: 0.01})
    >>> kept.round(3).tolist()
    [[0.497, 0.503], [0.083, 0.917]]
    """
    by_class = rates_by_class(rates, probs.shape[1], classes)
    shares = np.ones(probs.shape[1])
    shares[list(by_class)] = list(by_class.values())
    shares /= shares.max()  # a factor common to all classes cancels
    kept = probs * shares
    kept /= kept.sum(axis=1, keepdims=True)
    named = list(by_class) if probs.shape[1] > 2 else [1]
    before, after = (np.average(each, axis=0, weights=weights) for each in (probs, kept))
    both = (f"{_called(k, classes)} {before[k]:.3g} before and {after[k]:.3g} after" for k in named[:5])
    at = ", ".join(f"{_called(k, classes)} at {rate:.3g}" for k, rate in by_class.items())
    more = ", …" if len(named) > 5 else ""
    note = (
        f"Rows were kept by their label ({at}), so what is tested is what the predictions mean among "
        f"the rows kept; mean predicted of these rows: {'; '.join(both)}{more}."
    )
    return kept, note


def rates_by_class(rates: object, m: int, classes: tuple[str, ...] | None) -> dict[int, float]:
    """Return the rates by column; raise unless each belongs to a class, and is in (0, 1]."""
    if not isinstance(rates, Mapping) or not rates:
        do = "give the rate of every class that was not kept whole, as in {0: 0.01}"
        raise InputError(argument="sampling_rates", found=quoted(rates), do=do)
    found: dict[int, float] = {}
    for which, given in rates.items():
        column, rate = _column(which, m, classes), as_float(given)
        if rate is None or not 0.0 < rate <= 1.0:
            do = "give the share of its rows that were kept, above 0 and at most 1"
            raise InputError(f"the sampling rate of class {quoted(which)} is {quoted(given)}; {do}.")
        if column in found:
            raise InputError(f"class {quoted(which)} has two sampling rates; give it one.")
        found[column] = rate
    return found


def _column(which: object, m: int, classes: tuple[str, ...] | None) -> int:
    """Return the column of a class that is named or numbered like labels."""
    number = whole_number(which)
    try:
        cell = which if number is None else number
        return int(column_indices(read_table([cell], "labels"), m, classes)[0][0])
    except (InputError, ValueError) as error:
        known = f"the classes are {listed(classes or ())}"
        do = f"give a column from 0 to {m - 1}" if classes is None else known
        text = f"a sampling rate is for {quoted(which)}, which is not a class; {do}."
        raise InputError(text) from error


def _called(column: int, classes: tuple[str, ...] | None) -> str:
    return f"class {column}" if classes is None else quoted(classes[column])
