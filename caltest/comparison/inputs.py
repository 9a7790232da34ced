"""What is compared: predictions of the same rows, checked model by model."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from caltest._quoted import as_text, quoted
from caltest.comparison.resampling import about_model
from caltest.comparison.u_statistics import FEWEST_ROWS
from caltest.data import Sample, check_index, sample
from caltest.data.containers import listed
from caltest.data.labels import without_prefix
from caltest.exceptions import InputError, Row
from caltest.lenses import Lens, find_lens, lens_of
from caltest.predictive import recognised


def wholes_of(
    models: Mapping[str, Any], labels: object, lens: str | Lens | None, default: str | None
) -> tuple[dict[str, Sample], Lens | None]:
    """Check every model's input, and that all are of the same rows; find the lens, which fits all."""
    if not isinstance(models, Mapping):
        raise InputError(
            f"models is of type {type(models).__name__}; give predictions by name, as in "
            "{'a': probs_a, 'b': probs_b}."
        )
    if not models:
        raise InputError("there are no models; give two different ones at least.")
    names = {as_text(name) for name in models} - {None}
    if len(models) < 2 or len(names) < len(models):
        raise InputError(f"models has the names {listed(models)}; give two different ones at least.")
    find_lens(lens)  # a wrong name is no model's fault
    wholes = _alike({str(key): probs for key, probs in models.items()}, labels)
    return wholes, lens_of(next(iter(wholes.values())).rows, lens, default)


def _alike(models: dict[str, Any], labels: object) -> dict[str, Sample]:
    """Check every model's input; the same rows and classes, the classes in one order."""
    wholes: dict[str, Sample] = {}
    for name, probs in models.items():
        with about_model(name):
            if recognised(probs) is not None:
                raise InputError("these are distributions of numbers; give probabilities of classes.")
            wholes[name] = sample(probs, labels)
    (reference, first), *others = wholes.items()
    if len(first.labels) < FEWEST_ROWS:
        raise InputError(
            f"there are {len(first.labels)} rows; a comparison needs {FEWEST_ROWS} at least."
        )
    for name, other in others:
        check_index(models[reference], models[name], reference, name)
        wholes[name] = aligned(reference, first, name, other)
        _check_labels(reference, first, name, wholes[name], other)
    return wholes


def aligned(reference: str, first: Sample, name: str, other: Sample) -> Sample:
    """Return a sample with its columns in the order of the first one's, where names tell.

    Raises
    ------
    InputError
        If rows or classes are not the same.
    """
    known, own = first.rows, other.rows
    if known.probs.shape != own.probs.shape:
        raise InputError(
            f"{reference} has {known.n_samples} rows of {known.n_classes} classes, {name} "
            f"{own.n_samples} of {own.n_classes}; give the same rows and classes."
        )
    if known.classes is None or own.classes is None:
        return other
    names, others = (list(without_prefix(each)[0]) for each in (known.classes, own.classes))
    if set(names) != set(others):
        raise InputError(
            f"the classes of {reference} are {listed(names, 4)}, those of {name} {listed(others, 4)}; "
            "name the columns alike."
        )
    order = [others.index(each) for each in names]
    ordered = own.shown_as(own.probs[:, order], known.classes)
    return Sample(ordered, np.argsort(order)[other.labels])


def _check_labels(reference: str, first: Sample, name: str, other: Sample, as_given: Sample) -> None:
    """Raise if one vector of labels means other classes in another model's order of columns."""
    differ = first.labels != other.labels
    if differ.any():
        own, known = (each.rows.classes or () for each in (as_given, first))
        raise InputError(
            f"model {quoted(name)}: the columns are {listed(own, 4)}, those of model "
            f"{quoted(reference)} {listed(known, 4)}, so that the label of "
            f"{Row(int(differ.argmax()))} is not the same class for both; order the columns alike, "
            "or give labels as class names."
        )
