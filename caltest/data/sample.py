"""`sample` reads and checks predictions and labels; `predictions` reads predictions alone."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import narwhals as nw
import numpy as np

from caltest._arguments import arguments, flag, has, regressor
from caltest._numbers import counted
from caltest._sums import Places, over_columns
from caltest._visible import attempt, quoted, reason, shown
from caltest.alignment import check_rows, in_dimensions, in_order_of, row_names, rows_first
from caltest.data.containers import NamedArray, listed, name_of, native_of, read_table, shape_of
from caltest.data.diagnose import Suspect, in_steps, looks_rounded, probs_error
from caltest.data.labels import check_whole, column_indices, kept_at, numbers_in, pairs_of, says_no
from caltest.data.premises import check_weights, shared_members
from caltest.data.rows import Note, Rows, Sample, cluster_codes, row_weights
from caltest.exceptions import Argument, InputError, Phrase
from caltest.laws import Classes, Covered, Law, Normal, Point, Quantiles, Sets, recognised

_WRONG = {
    "swapped": "probs and labels look swapped: probs has shape {shape} and holds classes, labels has "
    "shape {other} and holds probabilities; give predictions first, outcomes second.",
    "covariances": "probs looks like covariances, {shape}; give predictive.Normal(mean, variance=…).",
    "times": "labels looks like (time, event), of shape {shape}; give as predictions "
    "predictive.Survival: curves of no event (1 - probs, if probs are of the event), or risk=probs.",
    "one-hot": "labels is one-hot, of shape {shape}, with a single 1 in every row; use {array}.",
    "several labels": "{argument} is a table of zeros and ones, of shape {shape}, in which {row} has "
    "{found} ones; a row has one true class, so test several labels one by one, each with its P(class "
    "1).",
    "wide labels": "labels has shape {shape}; give one class per row, as an array of shape (n,).",
    "dimensions": "probs has shape {shape}, of {ndim} dimensions; give one row per sample, for "
    "instance probs.reshape(-1, probs.shape[-1]) with labels.ravel().",
    "empty": "probs is empty, of shape {shape}; give one row per sample.",
    "transposed": "probs has shape {shape} for {n} labels, so it looks transposed; give {transposed}.",
    "lengths": "probs has {rows} and labels has {entries}; give one label for every row.",
    "one row": "probs has 1 row; give 2 or more, in folds of cross-validation too (not LeaveOneOut).",
    "one class": "probs has shape {shape} and every entry is 1, a model of one class; there is nothing "
    "to test, so give a column for every class.",
    "text": "probs holds text ({first} comes first), not numbers; convert it to float, and give "
    "probabilities first, labels second.",
    "numbers": "probs is read as probabilities of classes, and these are {about}; use {audit}.",
    "rounding": "rounding and sampling_rates do not go together: a rounded statement has no one "
    "meaning among the rows kept; leave one of them out.",
    "logits": "{rounding} and {logits} do not go together: what was rounded are probabilities; leave "
    "one of them out.",
    "read": "probs holds probabilities that were read before; give {logits} to what read it, "
    "caltest.data.sample or caltest.files.read, or leave it out.",
    "no logits": "probs holds probabilities, as every row sums to 1; leave out {logits}.",
    "stated": "probs was divided by the sums of its rows when it was read, and what was stated is "
    "lost; give {rounding} to what read it too, caltest.data.sample or caltest.files.read.",
    "width": "class_names has {count} for {n} classes; give one for each, in the order of the columns.",
    "order": "class_names holds {names}, and the columns of probs are called {own}, in another order, "
    "so that it is not clear what a label 0 is; leave class_names out, or give labels as names.",
    "first": "the one column of probs is called {column}, and is read as the probability of {name}; "
    "give that, or call the column otherwise.",
    "event": "event is {found}, which names the one event of two classes, and there are {n}; give "
    "class_names instead, one for every class.",
}


def _check_order(probs: NamedArray, labels: NamedArray) -> None:
    """Raise if the two arguments look swapped, or the labels are not one class per row."""
    p, y = probs.values, labels.values
    if p.ndim == 3 and 1 < p.shape[1] == p.shape[2] and np.array_equal(p, p.swapaxes(1, 2)):
        raise InputError(_WRONG["covariances"], shape=shape_of(p))
    numbers = p.dtype.kind == "f"
    # Two float vectors cannot be distinguished unless one holds classes.
    hold: Any = p.size and p.item(0) in (0, 1) and np.isin(p[:1000], (0, 1)).all()
    unlike = y.ndim != 1 or not numbers or hold
    if unlike and p.size and y.size and not labels.is_text and (p.ndim != 2 or p.shape[1] <= 1):
        with np.errstate(invalid="ignore"):
            classes = not numbers or np.all(p == np.round(p))
            fractional = y.dtype.kind == "f" and np.any(y % 1) and np.all((y >= 0) & (y <= 1))
        wide = y.ndim == 2 and y.shape[1] > 2 and not probs.is_text and np.max(p) > 1
        if classes and (fractional or wide):
            raise InputError(_WRONG["swapped"], shape=shape_of(p), other=shape_of(y))
    if labels.flat.ndim == 1:
        return
    shape = shape_of(y)
    if y.ndim == 2 and y.size and not labels.is_text and not np.isin(y, (0, 1)).all():
        pair = y.T if y.shape[1] == 2 else y
        if len(pair) == 2 and pair.min() >= 0 and np.isin(pair, (0, 1)).all(axis=1).any():
            raise InputError(_WRONG["times"], shape=shape)
        check_whole(y)
    if y.ndim != 2 or labels.is_text or not y.size or not np.all((y == 0) | (y == 1)):
        raise InputError(_WRONG["wide labels"], shape=shape)
    ones = y.sum(axis=1)
    if np.all(ones == 1):
        name = "labels" if labels.names is None else "labels.to_numpy()"
        array = Argument(f"{name}.argmax(axis=1)", shell="the column of the 1")
        raise InputError(_WRONG["one-hot"], shape=shape, array=array)
    row = int(np.argmax(ones != 1))
    found = int(ones[row])
    raise InputError(_WRONG["several labels"], argument="labels", shape=shape, row=row, found=found)


def _check_shapes(probs: NamedArray, n_labels: int, part: bool = False, labels: Any = None) -> None:
    """Raise unless probs has n rows of numbers, at least two, and one column or more, for n labels."""
    values, width = probs.values, probs.values.shape[1:]
    differ, square = len(values) != n_labels, width == (n_labels,) and not probs.is_text
    looks = {
        "dimensions": values.ndim > 2,
        "empty": values.size == 0,
        "transposed": differ and square and np.any(np.abs(values.sum(axis=1) - 1) > 1e-2),
        "lengths": differ,
        "one row": not part and n_labels < 2,
        "one class": not part and width == (1,) and np.all(values == 1),
        "text": probs.is_text,
    }
    if wrong := next((name for name, holds in looks.items() if holds), ""):
        facts: dict[str, Any] = {"shape": shape_of(values), "ndim": values.ndim, "n": n_labels}
        facts |= {"rows": counted(len(values), "row"), "entries": counted(n_labels, "entry", "entries")}
        facts |= {"first": listed(values.ravel()[:1].tolist())}
        if wrong in ("transposed", "dimensions") and values.size and not probs.is_text:
            turned = values.T if values.ndim == 2 else values[:, :, 0].reshape(len(values), -1)
            other = Suspect(NamedArray(turned), 0.0, labels)
            if other.are_numbers or other.are_sets:
                raise probs_error(other)
        raise InputError(_WRONG[wrong], transposed=Argument("probs.T", shell="its transpose"), **facts)


# ------------------------------------------------------------------ sample

# Tolerance for row sums. In float64, a millionth per class: numbers computed in float32 and stored in
# float64, or printed with seven digits, pass; a forgotten class does not.
_TOLERANCE_COARSE = 1e-3
# Renormalising by less than this is rounding, not worth a note.
#: Names of labels that do not say which event they are of.
_NO_EVENT = ("", "label", "labels", "y", "y_true", "target", "class", "outcome", "event")


@arguments(part=flag)
def sample(
    probs: object,
    labels: object,
    *,
    class_names: Sequence[str | int] | None = None,
    part: bool = False,
    rounding: float | None = None,
    weights: object = None,
    clusters: object = None,
    sampling_rates: Mapping[Any, float] | None = None,
    logits: bool = False,
) -> Sample:
    """Read and check predictions and labels.

    Parameters
    ----------
    probs : array of shape (n, m), (n, 1) or (n,), data frame, or tensor
        Probabilities of shape (n, m), n ≥ 2 rows that sum to 1; or (n,) or (n, 1), read as P(class
        1). A numpy array, a list, a data frame or series (pandas, polars, pyarrow), an array of
        xarray, or a torch tensor. Rows may sum to 1 within 1e-6·m in float64, and within 1e-3 in
        float32 or half precision; they are then divided by their sum, in float64. So are rows of
        two to five decimals if rounding explains why they do not sum to 1: each is off by at most
        half a unit of the last decimal per entry and 0.02 in all, and by hardly anything on
        average. Entries as far outside [0, 1] are clipped. A :class:`Rows` object is checked too,
        but kept as it is.
    labels : array of shape (n,)
        The observed classes, of shape (n,): whole numbers 0..m−1; if m = 2 also booleans, or words such
        as yes and no; or, for ``probs`` with column names or ``class_names``, class names. Names match
        a column's name, or what it differs in from the others (``"cat"`` for ``"prob_cat"`` or
        ``"P(Cat)"``); integers match the numbers in column names that carry them (``"1"``,
        ``"prob_1"``), and are column indices otherwise.
    class_names : sequence of str or int, optional
        Names of the classes, (m,), text or whole numbers, in the order of the columns, such as a
        model's ``classes_``: an array with them is read as a data frame with these columns. Columns
        that have names must have these, in any order and form ("cat", "Cat", "prob_cat", "cat_prob",
        "P(cat)"), or numbers. Default None: the names that ``probs`` has, if any.
    part : bool, default False
        Whether these are only some of the rows. Then a single row is enough, and a column that is 1 in
        every row is not refused.
    rounding : float, optional
        The step to which probabilities were rounded, 0.05 for 0%, 5%, …, 100%: every entry is a
        multiple of it, and rows sum to 1 within half a step per entry. They are divided by their sums;
        the original values are kept in ``rows.stated``.
    weights : array of shape (n,), optional
        How much each row counts: not negative, at least two of them positive, and independent of the
        labels. They are kept in ``rows.weights``, scaled to 1 on average. Default None: all rows have
        equal weight, as they do if all weights are equal.
    clusters : array of shape (n,), optional
        Which rows belong together, a column of n names or numbers: rows with the same entry may
        depend on each other. An entry is the same however it is written: 1, 1.0 and "1.0", True and
        "true", a date and its midnight, with blanks at its ends or without; codes such as "007" are
        text. Default None: those of ``probs``, if it is a :class:`Rows`; otherwise all rows are
        independent.
    sampling_rates : dict of class to float, optional
        If rows were sampled by their label: for each class (its name or column), the share of its
        rows that was kept; 1 for classes not listed. Predictions are transformed to what they mean
        among the rows kept, g_k s_k / Σ_l g_l s_l, and a note says so. Default None: rows were not
        sampled by label.
    logits : bool, default False
        Whether ``probs`` holds logits instead of probabilities: their softmax is taken in float64, row
        by row; for one column, (n,) or (n, 1), the logistic function is taken. −∞ is a class ruled out
        in that row; other entries that are not finite are refused.

    Returns
    -------
    Sample
        Copies, so later changes to the input have no effect. ``rows.notes`` lists what was done.

    Raises
    ------
    InputError
        If the input is wrong. The message says what was found, where, and what to do.

    Examples
    --------
    >>> from caltest.data import sample
    >>> checked = sample([0.1, 0.8, 0.6], [False, True, True])
    >>> checked.rows.probs
    array([[0.9, 0.1],
           [0.2, 0.8],
           [0.4, 0.6]])
    """
    if rounding is not None and sampling_rates is not None:
        raise InputError(_WRONG["rounding"])
    if logits and (rounding is not None or isinstance(probs, Rows | Law)):
        wrong = _WRONG["read" if rounding is None else "logits"]
        raise InputError(wrong, rounding=Argument("rounding"), logits=Argument("logits", True))
    probs = rows_first(probs, "probs", labels, weights, clusters)
    check_rows({"probs": probs, "labels": labels, "weights": weights, "clusters": clusters})
    rows, outcomes = _matched(probs, labels, class_names, part, rounding, logits)
    read = () if isinstance(probs, Rows | Law) else (probs, labels)
    rows = counted_as(_named(rows, *read, weights, clusters), weights, clusters)
    check_weights(rows, outcomes)
    if sampling_rates is not None:
        kept, note = kept_at(rows.probs, rows.classes, sampling_rates, rows.weights)
        rows = replace(rows, law=Classes(kept, rows.classes), notes=(*rows.notes, note))
    return Sample(rows, outcomes)


def counted_as(rows: Rows, weights: object, clusters: object) -> Rows:
    """Return rows with weights and clusters, if these are passed."""
    own: dict[str, Any] = {} if weights is None else {"weights": row_weights(weights, rows.n_samples)}
    if clusters is not None:
        found = cluster_codes(clusters, rows.n_samples)
        own |= {"clusters": found.codes, "notes": (*rows.notes, *found.notes), "doubts": found.doubts}
    return replace(rows, **own) if own else rows


def _matched(
    probs: object, labels: object, class_names: object, part: bool, rounding: float | None, logits: bool
) -> tuple[Rows, Places]:
    """Read and check predictions, and the column that each label means."""
    given_names = None if class_names is None else _class_names(class_names)
    known = Rows(probs) if isinstance(probs, Law) else probs if isinstance(probs, Rows) else None
    if known is None:
        table, truth = read_table(probs, "probs"), read_table(labels, "labels")
    elif not isinstance(known.law, Classes):
        raise InputError(_WRONG["numbers"], about=known.law.about, audit=Argument("caltest.audit"))
    else:
        truth = read_table(labels, "labels")
        if given_names is not None:
            _check_width(given_names, known.n_classes)
            own = NamedArray(known.probs, known.classes)
            known = known.shown_as(known.probs, _in_order(own, given_names))
        if rounding is not None and known.stated is None and known.sums_off > 0.0:
            raise InputError(_WRONG["stated"], rounding=Argument("rounding", rounding))
        names = known.classes if truth.is_text or truth.values.dtype.kind == "b" else None
        stated = known.probs if rounding is None or known.stated is None else known.stated
        table = NamedArray(stated, names)  # numbers are columns here, whatever their names
    _check_order(table, truth)
    truth = NamedArray(truth.flat)
    _check_shapes(table, len(truth.values), part, truth.values)
    if known is None and table.n_columns == 1 and not isinstance(probs, np.ndarray | list):
        table = replace(table, names=(_own_name(probs),))
        for pair in pairs_of(truth) if given_names is None else ():
            _in_order(table, pair, alone=True)
    if known is None and given_names is not None:
        _check_width(given_names, 2 if table.n_columns == 1 else table.n_columns)
        called = table.names or ()
        table = replace(table, names=_in_order(table, given_names))
        if table.names != given_names and not truth.is_text and numbers_in(given_names) is None:
            raise InputError(_WRONG["order"], names=listed(given_names, 4), own=listed(called, 4))
        if len(given_names) != table.n_columns and truth.values.dtype.kind == "b":
            truth = NamedArray(truth.values.astype(np.int64))  # with one column, True is class 1
    found = _softmax(table) if logits else _simplex(table, rounding, truth.values)
    indices, matched = column_indices(truth, found["law"].n_classes, found["law"].names)
    if known is None:
        return Rows(**found | {"notes": (*found["notes"], *matched)}), indices
    return known if rounding is None else replace(known, stated=found["stated"]), indices


def _first_names(what: str, *given: object) -> Any:
    """Return the row names of the first argument that has some; None if none has."""
    return next((own for each in given for own in row_names(each, what)), None)


def _named(rows: Rows, *given: object) -> Rows:
    """Return rows with the row names of the first argument that has some."""
    names = _first_names("probs", rows.given, *given)
    return rows if names is rows.given else replace(rows, law=Classes(rows.probs, rows.classes, names))


def _in_order(table: NamedArray, names: tuple[str, ...], alone: bool = False) -> tuple[str, ...]:
    """Return class names in the order of the columns, if these have names; raise on a mismatch."""
    if table.n_columns > 1:
        places = in_order_of(names, table.names, "probs", "class_names holds") if table.names else []
        return tuple(names[place] for place in np.argsort(places)) or names
    if table.names is not None and says_no(table.names[0], names[0], names[1], alone=alone):
        raise InputError(_WRONG["first"], column=quoted(table.names[0]), name=quoted(names[1]))
    return names


def _class_names(class_names: Any) -> tuple[str, ...]:
    """Return class names as text; raise unless all are names, and distinct."""
    given = class_names.tolist() if has(class_names, "tolist") else class_names
    do = "give list(…) of it" if has(given, "__next__") else "give a list of names"
    kinds = str | int | np.integer
    known = given if isinstance(given, list | tuple) else [None]
    right = all(isinstance(x, kinds) or (isinstance(x, float) and x.is_integer()) for x in known)
    if (names := attempt(lambda: tuple(map(str, given)))) is None or not right:
        raise InputError(f"class_names is {quoted(class_names)}; {do}, one for every class.")
    if len(set(names)) < len(names) or not all(names):
        raise InputError(f"class_names holds {listed(names)}; give every class a name of its own.")
    return names


def _check_width(names: tuple[str, ...], n_classes: int) -> None:
    if len(names) != n_classes:
        raise InputError(_WRONG["width"], count=counted(len(names), "name"), n=n_classes)


def event_called(label: str, column: str) -> str:
    """Return the name of the event: that of the labels, if it is specific; else the column's."""
    return column if label.strip().lower() in _NO_EVENT else label


def named_sample(
    probs: object, labels: object, event: str | None, **options: Any
) -> tuple[Sample, str | None]:
    """Read and check predictions and labels, and find the name of the event of two classes.

    ``options`` are those of :func:`sample`. The name of class 1 is returned too: ``event``, or that of
    the series of labels or predictions, or "class 1".
    """
    found = sample(probs, labels, **options)
    rows, classes = found.rows, found.rows.classes
    if rows.n_classes != 2:
        if event is not None:
            raise InputError(_WRONG["event"], found=quoted(event), n=rows.n_classes)
        return found, None
    if event is None and classes is None and not isinstance(probs, Rows):
        column = _own_name(probs)
        event = event_called(_own_name(labels), column).strip() if column else ""
        event = None if event.isdecimal() else event or None
    if classes and event == classes[0]:
        do = "put its column last"
        raise InputError(f"event is {quoted(event)}, the class of the first column; {do}.")
    if event is not None:
        classes = (classes[0] if classes else f"not {event}", event)
        found = replace(found, rows=rows.shown_as(rows.probs, classes))
    return found, classes[1] if classes else "class 1"


def _own_name(data: object) -> str:
    """Return the name of a single column, if it has one."""
    if isinstance(data, NamedArray):
        return data.names[0] if data.names and len(data.names) == 1 else ""
    native = native_of(data, "probs")
    if isinstance(native, nw.DataFrame) and len(native.columns) == 1:
        return str(native.columns[0])
    return name_of(native) if isinstance(native, nw.Series) else ""


@arguments(part=flag)
def predictions(
    probs: object,
    weights: object = None,
    clusters: object = None,
    *,
    logits: bool = False,
    part: bool = False,
) -> Rows:
    """Read and check predictions alone, or logits, weights and clusters, without labels.

    ``part``: they may be a single row, of a stream.

    Examples
    --------
    >>> from caltest.data import predictions
    >>> predictions([0.1, 0.8]).probs
    array([[0.9, 0.1],
           [0.2, 0.8]])
    """
    probs = rows_first(probs, "probs", weights, clusters)
    check_rows({"probs": probs, "weights": weights, "clusters": clusters})
    if isinstance(law := getattr(probs, "law", probs), Point):
        raise InputError(_WRONG["numbers"], about=law.about, audit=Argument("caltest.audit"))
    if isinstance(probs, Rows):
        if logits:
            raise InputError(_WRONG["read"], logits=Argument("logits", True))
        return counted_as(probs, weights, clusters)
    table = read_table(probs, "probs")
    _check_shapes(table, len(table.values), part)
    found = _named(Rows(**(_softmax if logits else _simplex)(table)), probs, weights, clusters)
    return counted_as(found, weights, clusters)


def _softmax(table: NamedArray) -> dict[str, Any]:
    """Return fields of rows: the softmax of logits; one column is class 1, against 0 for the other."""
    values = table.values.astype(np.float64).reshape(len(table.values), -1)
    if not np.isfinite(values.max(axis=1)).all():  # NaN, ∞, or −∞ alone
        raise probs_error(Suspect(table, 0.0))
    note = "Logits, made probabilities by softmax."
    if values.shape[1] == 1:
        values = np.column_stack([np.zeros(len(values)), values])
        note = "One column of logits, made P(class 1) by the logistic function."
    elif values.min() >= 0.0 and np.abs(values.sum(axis=1) - 1.0).max() <= _TOLERANCE_COARSE:
        raise InputError(_WRONG["no logits"], logits=Argument("logits", True))
    powers = np.exp(values - values.max(axis=1, keepdims=True))
    names = table.names if len(table.names or ()) == values.shape[1] else None
    return {"law": Classes(powers / powers.sum(axis=1, keepdims=True), names), "notes": (note,)}


def _simplex(table: NamedArray, rounding: float | None = None, labels: Any = None) -> dict[str, Any]:
    """Return fields of rows: probabilities on the simplex, with notes on how they were changed."""
    values = table.values
    binary = values.ndim == 1 or values.shape[1] == 1
    n_classes = 2 if binary else values.shape[1]
    tolerance = _TOLERANCE_COARSE if table.coarse else 1e-6 * n_classes
    low, high = float(values.min()), float(values.max())  # NaN if there is one
    suspect, notes = Suspect(table, tolerance, labels), list[str]()
    if not (-tolerance <= low and high <= 1 + tolerance):
        raise probs_error(suspect)
    if low < 0 or high > 1:
        values = np.clip(values, 0, 1)
        suspect = Suspect(replace(table, values=values), tolerance, labels)
        notes.append(Note("clipped", max(-low, high - 1)))
    stated = None
    if rounding is not None:
        stated = in_steps(suspect, rounding)
        values = stated if binary else stated / stated.sum(axis=1, keepdims=True)
    if binary:
        rows, event = np.empty((len(values), 2)), values.reshape(-1)
        rows[:, 1] = event
        np.subtract(1.0, event, out=rows[:, 0])
        pair = table.names if table.names is not None and len(table.names) == 2 else None
        stated = None if stated is None else rows
        return {"law": Classes(rows, pair), "notes": tuple(notes), "stated": stated}
    sums = over_columns(np.add, values.astype(np.float64, copy=False))
    off = np.abs(sums - 1)
    if (most := float(off.max())) > tolerance:
        if not looks_rounded(suspect):
            raise probs_error(suspect)
        notes.append(Note("rounded", most))
    elif most > 1e-9:
        notes.append(Note("renormalised", most))
    rounding = n_classes * np.finfo(np.float64).eps  # rows that sum to 1 up to this are left unchanged
    rows = values.astype(np.float64)
    if most > rounding:
        rows /= np.where(off <= rounding, 1.0, sums)[:, None]
    return {"law": Classes(rows, table.names), "notes": tuple(notes), "stated": stated}


# ------------------------------------------------------------------ models

_OF_MODELS = {
    "not fitted": "model is {model}, which is not fitted; fit it first.",
    "fails": "{model} does not predict X: {method} raises {error} ({reason}); give the columns "
    "that it was fitted to, or correct the model.",
    "several": "model is {model}, which predicts {n} labels per row; test them one by one, each with "
    "its own probabilities.",
    "classes": "model has {classes} for classes_; give one whose classes_ lists the class of each "
    "column.",
    "columns": "model has the classes {names} and predicts {n} columns; give one that predicts a "
    "column for each.",
}


def _forecasting(model: Any) -> Callable[[Any], Any] | None:
    """Return a function that gets predicted distributions from a regressor; None if it has none."""
    if has(model, "pred_dist"):  # NGBoost
        return lambda X: model.pred_dist(X)
    asked = attempt(lambda: inspect.signature(model.predict).parameters) or ()
    if "return_std" in asked:  # Gaussian processes, Bayesian linear models
        return lambda X: Normal(*model.predict(X, return_std=True))
    levels = [0.05, 0.1, 0.25, 0.5, 0.75, 0.9, 0.95]
    if "quantiles" in asked:  # quantile forests
        return lambda X: Quantiles(levels, model.predict(X, quantiles=levels))
    if attempt(lambda: regressor("model", model)) is None or has(model, "classes_"):
        return None
    return lambda X: Point(model.predict(X), _functional(model))


def _functional(model: Any) -> str:
    """Return the functional that a regressor was fitted to, the mean unless its parameters differ."""
    for name in ("best_estimator_", "_final_estimator"):  # of searches and pipelines
        model = getattr(model, name, model)
    known = attempt(model.get_params) or {}
    loss = f"{known.get('loss')} {known.get('objective')}"
    levels = map(known.get, ("quantile", *("quantile_alpha", "alpha") * ("quantile" in loss)))
    level = next((each for each in levels if isinstance(each, float) and 0.0 < each < 1.0), None)
    return f"quantile:{level}" if level else "median" if re.search("absolute|l1|mae", loss) else "mean"


def predicted_by(model: Any, X: Any, y: object) -> tuple[Any, Any]:
    """Return the predictions of a fitted model for rows, and their labels, matched to its classes.

    A classifier's ``classes_`` lists the class of each of its columns: labels are looked up there, by
    value, and returned as names. Without ``classes_``, labels are returned unchanged. For a regressor,
    predicted distributions or quantiles are returned if it has them, else its point forecasts; and y
    unchanged.

    Raises
    ------
    InputError
        If it is not a fitted classifier, does not accept the rows, or a label is not one of its
        classes.
    """
    regression = None if isinstance(model, type) else _forecasting(model)
    if isinstance(model, type) or not (regression or has(model, "predict_proba")):
        do = "give a fitted classifier with predict_proba"
        found = quoted(model)
        if has(model, "fit", "predict") and not isinstance(model, type):
            found += ", which predicts no probabilities"
            do = "give one that does (scikit-learn's CalibratedClassifierCV makes one of a classifier)"
        raise InputError(argument="model", found=found, do=do)
    check_rows({"X": X, "y": y})
    try:
        probs = model.predict_proba(X) if regression is None else regression(X)
    except InputError:
        raise
    except Exception as error:
        kind, why = type(error).__name__, reason(error) or "without a word"
        text = _OF_MODELS["not fitted" if kind == "NotFittedError" else "fails"]
        facts = {"model": quoted(model), "error": kind, "reason": shown(why, 200)}
        facts["method"] = "predict_proba" if regression is None else "predict"
        raise InputError(Phrase(text, facts)) from error
    named = _first_names("X", X, y)
    if regression is not None or has(probs, "cdf"):  # skpro's
        if isinstance(probs, Law):
            probs.given = named
        return probs, y
    if isinstance(probs, list) and probs and getattr(probs[0], "ndim", 0) == 2:
        raise InputError(_OF_MODELS["several"], model=quoted(model), n=len(probs))
    table, truth = read_table(probs, "probs"), read_table(y, "y")
    table = replace(table, given=named)
    if (classes := getattr(model, "classes_", None)) is None:
        return table, truth
    known: Any = classes if isinstance(classes, list) else attempt(lambda: np.asarray(classes).tolist())
    names = attempt(lambda: {value: str(value) for value in known})
    if names is None or not isinstance(known, list):  # numbers, or lists in the list
        raise InputError(_OF_MODELS["classes"], classes=quoted(classes))
    if len(known) != (2 if table.n_columns == 1 else table.n_columns):
        raise InputError(_OF_MODELS["columns"], names=listed(known), n=table.n_columns)
    if truth.n_columns != 1 or truth.flat.ndim != 1:
        raise InputError(f"y has {truth.n_columns} columns; give one class per row, of shape (n,).")
    labels = [names.get(each, str(each)) for each in truth.flat.tolist()]
    return replace(table, names=_in_order(table, tuple(names.values()))), labels


def whole_sample(probs: object, outcomes: object, **options: Any) -> Sample:
    """Read predictions of classes, or of numbers, and outcomes; options as in :func:`sample`."""
    return sample_of_law(probs, outcomes, **options) or sample(probs, outcomes, **options)


def sample_of_law(probs: object, outcomes: object, **options: Any) -> Sample | None:
    """Read predicted distributions of numbers or vectors, and outcomes; None for classes.

    ``options`` are those of :func:`sample`; weights and clusters also apply to numbers.
    """
    law = probs.law if isinstance(probs, Rows) else probs
    if not isinstance(law, Law):
        law = None if isinstance(probs, np.ndarray) and probs.dtype != object else recognised(probs)
    if law is None or isinstance(law, Classes):
        return None
    weights, clusters = options.pop("weights", None), options.pop("clusters", None)
    for name, value in options.items():
        if value is not None and value is not False:
            kind = law.about if isinstance(law, Sets | Point) else "distributions of numbers"
            found = f"about probabilities of classes, and these are {kind}"
            raise InputError(argument=name, found=found, do="leave it out")
    outcomes = in_dimensions(law.given, outcomes)
    check_rows({"predictions": law, "outcomes": outcomes, "weights": weights, "clusters": clusters})
    rows = counted_as(probs if isinstance(probs, Rows) else Rows(law), weights, clusters)
    met, checked = law.met(outcomes, rows.weights)
    if isinstance(met, Covered) and met.of.beta is not None and rows.clusters is not None:
        text = "{argument} is the law of independent rows, and these are in clusters; leave one out."
        raise InputError(text, argument="calibration_rows")
    rows = replace(rows, law=met, notes=(*rows.notes, *met.remarks(checked)))
    check_weights(rows, checked)
    return Sample(rows, checked, (*met.doubts, *shared_members(met)))
