"""The two arguments side by side: their order, shapes and kinds."""

from __future__ import annotations

import numpy as np

from caltest.data.containers import Table, listed, shape_of
from caltest.exceptions import InputError
from caltest.text.numbers import counted


def check_order(probs: Table, labels: Table) -> None:
    """Raise if the two arguments look swapped, or the labels are not one class a row."""
    p, y = probs.values, labels.values
    if p.size and y.size and _looks_like_labels(p) and _looks_like_probs(y, p):
        raise InputError(
            f"probs and labels look swapped: probs has shape {shape_of(p)} and holds classes, "
            f"labels has shape {shape_of(y)} and holds probabilities; give probs first, labels "
            "second."
        )
    if y.ndim == 1 or (y.ndim == 2 and y.shape[1] == 1):
        return
    if y.ndim == 2 and not labels.is_text and y.size and np.all((y == 0) | (y == 1)):
        ones = y.sum(axis=1)
        if np.all(ones == 1):
            array = "labels" if labels.names is None else "labels.to_numpy()"
            raise InputError(
                f"labels is one-hot, of shape {shape_of(y)}, with a single 1 in every row; "
                f"use {array}.argmax(axis=1)."
            )
        row = int(np.argmax(ones != 1))
        raise InputError(
            "{argument} is a table of zeros and ones, of shape {shape}, in which {row} has {found} "
            "ones; a row has one true class, so test several labels one by one, each with its "
            "P(class 1).",
            argument="labels",
            shape=shape_of(y),
            row=row,
            found=int(ones[row]),
        )
    raise InputError(
        f"labels has shape {shape_of(y)}; give one class a row, as an array of shape (n,)."
    )


def _looks_like_labels(values: np.ndarray) -> bool:
    if values.ndim == 2 and values.shape[1] > 1:
        return False
    if values.dtype.kind in "OUT":
        return True
    with np.errstate(invalid="ignore"):
        return bool(np.all(values == np.round(values))) if values.dtype.kind == "f" else True


def _looks_like_probs(values: np.ndarray, other: np.ndarray) -> bool:
    if values.dtype.kind in "OUT":
        return False
    fractional = values.dtype.kind == "f" and np.any(values != np.round(values))
    if values.ndim == 1 and other.dtype.kind == "f":
        return False  # two float vectors: which is which cannot be told
    hard = values.ndim == 2 and values.shape[1] > 2 and other.dtype.kind not in "OUT"
    return bool(fractional) or bool(hard and np.max(other) > 1)


def check_shapes(probs: Table, n_labels: int, part: bool = False) -> None:
    """Raise unless probs has n rows, at least two, and one column or more, for n labels."""
    values = probs.values
    shape = shape_of(values)
    if values.ndim > 2:
        raise InputError(
            f"probs has shape {shape}, of {values.ndim} dimensions; give one row a sample, for "
            "instance probs.reshape(-1, probs.shape[-1]) with labels.ravel()."
        )
    if values.size == 0:
        raise InputError(f"probs is empty, of shape {shape}; give one row a sample.")
    if len(values) != n_labels and _is_transposed(values, n_labels):
        raise InputError(
            f"probs has shape {shape} for {n_labels} labels, so it looks transposed; give probs.T."
        )
    if len(values) != n_labels:
        raise InputError(
            f"probs has {counted(len(values), 'row')} and labels has "
            f"{counted(n_labels, 'entry', 'entries')}; "
            "give one label for every row."
        )
    if part:
        return
    if n_labels < 2:
        raise InputError("probs has 1 row; a test needs 2 or more.")
    if values.ndim == 2 and values.shape[1] == 1 and np.all(values == 1):
        raise InputError(
            f"probs has shape {shape} and every entry is 1, a model of one class; "
            "there is nothing to test, so give a column for every class."
        )


def _is_transposed(values: np.ndarray, n_labels: int) -> bool:
    if values.ndim != 2 or values.shape[1] != n_labels or values.dtype.kind in "OUT":
        return False
    return not np.all(np.abs(values.sum(axis=1) - 1) <= 1e-2)  # else labels are missing


def check_numbers(probs: Table) -> None:
    """Raise if probs holds text."""
    if probs.is_text:
        first = probs.values.ravel()[:1].tolist()
        raise InputError(
            f"probs holds text ({listed(first)} comes first), not numbers; convert it to float, "
            "and give probabilities first, labels second."
        )
