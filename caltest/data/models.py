"""Fitted classifiers, as scikit-learn's and all that look like them: what they predict, and of whom."""

from __future__ import annotations

from typing import Any

import numpy as np

from caltest._arguments import has
from caltest._visible import quoted, shown
from caltest.data.containers import Table, check_index, listed, read_table
from caltest.exceptions import InputError, Phrase

_WRONG = {
    "not fitted": "model is {model}, which is not fitted; fit it first.",
    "fails": "{model} does not predict X: predict_proba raises {error} ({reason}); give the columns "
    "that it was fitted to, or correct the model.",
    "several": "model is {model}, which predicts {n} labels per row; test them one by one, each with "
    "its own probabilities.",
    "classes": "model has {classes} for classes_; give one whose classes_ lists the class of each "
    "column.",
    "columns": "model has the classes {names} and predicts {n} columns; give one that predicts a "
    "column for each.",
    "unknown": "{argument} holds {found} in {row}, which is none of the model's classes ({names}); "
    "correct it, or fit the model on rows of every class.",
}


def predicted_by(model: Any, X: Any, y: object) -> tuple[Table, Any]:
    """Return what a fitted classifier predicts for rows, and their labels, matched to its classes.

    A model says by ``classes_`` which class each of its columns is: labels are looked up there, by
    their values, and returned as names. Without ``classes_``, labels are returned as they are.

    Raises
    ------
    InputError
        If it is no fitted classifier, does not take the rows, or a label is none of its classes.
    """
    if isinstance(model, type) or not has(model, "predict_proba"):
        do = "give a fitted classifier with predict_proba"
        found = quoted(model)
        if has(model, "fit", "predict") and not isinstance(model, type):
            found += ", which predicts no probabilities"
            do = "give one that does (scikit-learn's CalibratedClassifierCV makes one of a classifier)"
        raise InputError(argument="model", found=found, do=do)
    check_index(X, y, "X", "y")
    try:
        probs = model.predict_proba(X)
    except InputError:
        raise
    except Exception as error:
        kind, reason = type(error).__name__, " ".join(str(error).split()) or "without a word"
        text = _WRONG["not fitted" if kind == "NotFittedError" else "fails"]
        facts = {"model": quoted(model), "error": kind, "reason": shown(reason, 200)}
        raise InputError(Phrase(text, facts)) from error
    if isinstance(probs, list) and probs and getattr(probs[0], "ndim", 0) == 2:
        raise InputError(_WRONG["several"], model=quoted(model), n=len(probs))
    table, truth = read_table(probs, "probs"), read_table(y, "y")
    classes: Any = "what cannot be read"
    try:
        classes = getattr(model, "classes_", None)
        if classes is None:
            return table, truth
        known = classes if isinstance(classes, list) else np.asarray(classes).tolist()
        names = {value: str(value) for value in known}
    except Exception:  # numbers, lists in the list, or what raises anything
        known = None
    if not isinstance(known, list):
        raise InputError(_WRONG["classes"], classes=quoted(classes))
    if len(known) != (2 if table.n_columns == 1 else table.n_columns):
        raise InputError(_WRONG["columns"], names=listed(known), n=table.n_columns)
    if truth.n_columns != 1:
        raise InputError(f"y has {truth.n_columns} columns; give one class per row, of shape (n,).")
    labels = truth.values.ravel().tolist()
    row = next((row for row, label in enumerate(labels) if label not in names), None)
    if row is not None:
        found = quoted(labels[row])
        raise InputError(_WRONG["unknown"], argument="y", row=row, found=found, names=listed(known))
    return Table(table.values, tuple(names.values()), table.coarse), [names[each] for each in labels]
