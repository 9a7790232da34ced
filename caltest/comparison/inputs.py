"""What is compared: predictions of the same rows, checked model by model."""

from __future__ import annotations

from collections.abc import Mapping
from numbers import Real
from typing import Any

import numpy as np

from caltest.comparison.resampling import about_model
from caltest.comparison.u_statistics import FEWEST_ROWS
from caltest.data import Sample, sample
from caltest.data.containers import listed, row_at
from caltest.data.labels import without_prefix
from caltest.exceptions import InputError
from caltest.lenses import Lens, find_lens
from caltest.predictive import recognised
from caltest.testing import viewed


def check_confidence(confidence: float) -> None:
    """Raise unless it is between 0 and 1."""
    if not isinstance(confidence, Real) or not 0.0 < confidence < 1.0:
        raise InputError(f"confidence is {confidence!r}; give one between 0 and 1, such as 0.95.")


def views_of(
    models: Mapping[str, Any], labels: object, lens: str | Lens | None, default: str | None
) -> tuple[dict[str, Sample], str | None]:
    """Check every model's input, see it through the lens, and check that all are of the same rows."""
    if not isinstance(models, Mapping):
        raise InputError(
            f"models is of type {type(models).__name__}; give predictions by name, as in "
            "{'a': probs_a, 'b': probs_b}."
        )
    if len(models) < 2 or len({str(name) for name in models}) < len(models):
        raise InputError(f"models has the names {listed(models)}; give two different ones at least.")
    find_lens(lens)  # a wrong name is no model's fault
    wholes: dict[str, Sample] = {}
    views: dict[str, Sample] = {}
    lens_label = None
    for name, probs in models.items():
        with about_model(str(name)):
            if recognised(probs) is not None:
                raise InputError("these are distributions of numbers; give probabilities of classes.")
            whole = wholes[str(name)] = sample(probs, labels)
            view, lens_label = viewed(whole.predictions, whole.labels, lens, default)
            assert isinstance(view, Sample)  # class probabilities stay such through a lens
            views[str(name)] = view
    _check_alike(wholes)
    return views, lens_label


def _check_alike(wholes: dict[str, Sample]) -> None:
    """Raise unless all have as many classes, in the same order where names tell."""
    (reference, first), *others = wholes.items()
    n, m = first.predictions.probs.shape
    if n < FEWEST_ROWS:
        raise InputError(f"there are {n} rows; a comparison needs {FEWEST_ROWS} at least.")
    for name, other in others:
        with about_model(name):
            if other.predictions.n_classes != m:
                raise InputError(
                    f"there are {other.predictions.n_classes} classes, and {m} in model {reference!r}; "
                    "give probabilities of the same classes."
                )
            _check_names(reference, first, other)


def _check_names(reference: str, first: Sample, other: Sample) -> None:
    one, two = first.predictions.classes, other.predictions.classes
    if one is None or two is None:
        return
    known, own = without_prefix(one)[0], without_prefix(two)[0]
    if known == own or set(known) != set(own):
        return
    differ = np.array(known)[first.labels] != np.array(own)[other.labels]
    if differ.any():
        raise InputError(
            f"the columns are {listed(own, 4)}, those of model {reference!r} {listed(known, 4)}, so "
            f"that the label of {row_at(int(differ.argmax()))} is not the same class for both; order "
            "the columns alike, or give labels as class names."
        )
