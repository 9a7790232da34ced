"""What is tested: predictions in memory, in files, of numbers; and how a lens shows them."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from caltest._visible import quoted
from caltest.data import Rows, Sample, sample, without_zeros
from caltest.data.copies import copied_rows
from caltest.exceptions import InputError
from caltest.files import Stored, scan_arrays
from caltest.lenses import Lens, find_lens, seen
from caltest.predictive import PredictiveSample, recognised
from caltest.tolerance import RoundedView, rounded_view


def stored_in(probs: object, labels: object) -> Stored | None:
    """Return rows that are to be read from where they are; None if they are in memory."""
    if isinstance(probs, Stored):
        if labels is not None:
            raise InputError(f"{probs.name} holds the labels too; leave the labels out.")
        return probs
    if labels is None:
        raise InputError("there are no labels; give the observed classes, second.")
    if isinstance(probs, np.memmap) and isinstance(labels, np.ndarray):
        return scan_arrays(probs, labels)
    return None


class Looked(NamedTuple):
    """What was given, as a lens shows it.

    Attributes
    ----------
    view
        The rows that count.
    lens
        Label of the lens.
    rounded
        The one probability as it was stated, where it was rounded.
    n_samples
        Rows that were given.
    places
        Of the rows that count, where others have weight 0.
    whole
        All rows before any lens, of classes.
    """

    view: Sample | PredictiveSample
    lens: str | None
    rounded: RoundedView | None
    n_samples: int
    places: NDArray[np.intp] | None = None
    whole: Sample | None = None

    @property
    def parameters(self) -> dict[str, float]:
        """How many rows there are in effect, and clusters, where rows count differently or depend."""
        rows, found = self.view.rows, dict[str, float]()
        if isinstance(rows, Rows) and rows.weights is not None:
            found["effective_n"] = rows.effective
        if isinstance(rows, Rows) and rows.clusters is not None:
            found["clusters"] = len(np.unique(rows.clusters))
        return found

    @property
    def copies(self) -> tuple[str, ...]:
        """What is to be said of rows that look like copies."""
        return () if self.whole is None else copied_rows(self.whole)


def looked_at(
    probs: object,
    labels: object,
    lens: str | Lens | None,
    default: str | None,
    rounding: float | None = None,
    counting: Mapping[str, Any] = MappingProxyType({}),
) -> Looked:
    """Check the input and see it through the lens; of more than two classes, the default one.

    What was rounded has no default.
    """
    numbers = isinstance(probs, np.ndarray) and probs.dtype != object
    densities = None if numbers else recognised(probs)
    if densities is None:
        asked = find_lens(lens)  # a wrong name is found before the data are read
        whole = sample(probs, labels, rounding=rounding, **counting)
        kept, places = without_zeros(whole)
        n = whole.rows.n_samples
        if rounding is None:
            return Looked(*seen(kept, asked, default), None, n, places, whole)
        rounded = rounded_view(kept, asked, rounding)
        label = None if asked is None else asked.label
        return Looked(rounded.view, label, rounded, n, places, whole)
    for name, given in counting.items():
        if given is not None:
            raise InputError(
                "{argument} is about probabilities of classes, and the predictions are distributions "
                "of numbers; leave it out.",
                argument=name,
            )
    if lens is not None:
        raise InputError(
            f"the lens {quoted(lens)} is for classes, and the predictions are distributions of "
            "numbers; leave it out."
        )
    outcomes = PredictiveSample(densities, densities.outcomes(labels))
    return Looked(outcomes, None, None, outcomes.rows.n_samples)
