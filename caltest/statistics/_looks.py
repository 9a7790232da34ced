"""The parts of the omnibus, as components of a combined form; of very many rows, a part at a time."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from caltest._parallel import ALONE, Workers
from caltest._seeds import generator
from caltest._tail import Alternative
from caltest.data import Predictions
from caltest.forms import Combined, Component, FeatureSquares, GriddedDifference, Linear
from caltest.forms.base import ROUNDING, Labels, Moments
from caltest.kernels.bandwidth import fixed_order
from caltest.lenses import Lens, TopLabel
from caltest.statistics.cumulative import Kuiper
from caltest.statistics.ecd import ECD
from caltest.statistics.skce import UnbiasedSKCE

_SAMPLE = 2048  # rows that the moments of kernels of low rank come from


def of_pairs(statistic: UnbiasedSKCE, name: str, predictions: Predictions) -> Component:
    """Return a kernel statistic as a component."""
    form = statistic.given(predictions)
    if not isinstance(form, FeatureSquares):
        return Component(name, form)
    return Component(name, form, law=partial(_law_of_sample, form))


def _law_of_sample(form: FeatureSquares, workers: Workers) -> Moments:
    """Return the moments of a mean over pairs from some of the rows, whatever the order of all."""
    n = form.n_samples
    rows = np.sort(fixed_order(form.probs)[generator(0).permutation(n)[:_SAMPLE]])
    return _as_of_pairs(form, rows, n, workers)


def _as_of_pairs(form: FeatureSquares, rows: Any, whole: int, workers: Workers) -> Moments:
    """Return the moments that a mean over pairs of some rows gives a mean over those of all.

    The variance falls as the number of pairs grows; the skewness, which hangs on how the weights' few
    largest eigenvalues compare, hardly changes.
    """
    probs, features = form.probs[rows], form.features[rows]
    k = len(probs)
    some = replace(form, probs=probs, features=features, scale=1.0 / (k * (k - 1)), whole=None)
    found = some.moments(workers)
    return replace(found, variance=k * (k - 1) / (whole * (whole - 1)) * found.variance)


def entropic(predictions: Predictions) -> Component:
    """Return the ECD; where the expected surprises cancel those of all labels, rounding is left."""
    return Component("ecd", ECD().given(predictions), "two-sided", rounding=ROUNDING)


def cumulative(predictions: Predictions) -> Component:
    """Return Kuiper's statistic of the top label, of two classes of class 1."""
    lens = _of_more_classes(predictions)
    if lens is None:
        return Component("kuiper", Kuiper().given(predictions))
    form = Kuiper().given(lens.reduce(predictions))
    return Component(f"kuiper, {lens.label}", form, seen=partial(_seen, lens, predictions))


def _of_more_classes(predictions: Predictions) -> Lens | None:
    return None if predictions.n_classes == 2 else TopLabel()


def _seen(lens: Lens, predictions: Predictions, labels: Labels, rows: slice) -> Labels:
    return lens.reducer(predictions.take(rows))(labels)


@dataclass(frozen=True)
class Look:
    """One part of the omnibus of very many rows: what it is standardised by is known beforehand.

    Attributes
    ----------
    name
        What reports call it.
    given
        Takes the predictions of some rows, as the lens shows them, returns their form.
    known
        Its moments under H0, those of rows like a glimpse of them.
    alternative, rounding
        As of a component.
    lens
        Through which rows are seen; None to see them as they are.
    """

    name: str
    given: Callable[[Predictions], Any]
    known: Moments
    alternative: Alternative = "greater"
    rounding: float = 0.0
    lens: Lens | None = None

    def of(self, rows: Predictions) -> Component:
        """Return the component of some rows."""
        view = rows if self.lens is None else self.lens.reduce(rows)
        seen = None if self.lens is None else partial(_seen, self.lens, rows)
        return Component(
            self.name, self.given(view), self.alternative, seen, self.rounding, law=self._law
        )

    def _law(self, workers: Workers) -> Moments:
        return self.known


def look_of_pairs(statistic: UnbiasedSKCE, name: str, glimpse: Predictions, whole: int) -> Look:
    """Fit a kernel statistic to a glimpse of ``whole`` rows."""
    given = statistic.in_parts(whole, lambda: glimpse).given
    form: Any = given(glimpse)
    return Look(name, given, _as_of_pairs(form, slice(0, _SAMPLE), whole, ALONE))


def look_of_surprises(glimpse: Predictions, whole: int) -> Look:
    """Fit the ECD's moments to a glimpse of ``whole`` rows."""
    given = ECD().in_parts(whole, lambda: glimpse).given
    form: Any = given(glimpse)
    return Look("ecd", given, _as_of_rows(form, whole), "two-sided", ROUNDING)


def _as_of_rows(form: Linear, whole: int) -> Moments:
    """Return the moments that a sum over some rows gives the sum over all."""
    found, share = form.moments(), form.n_samples / whole
    return replace(
        found, variance=found.variance / share, skewness=found.skewness * float(np.sqrt(share))
    )


def look_along_scores(glimpse: Predictions, whole: int) -> Look:
    """Fit Kuiper's statistic to a glimpse of ``whole`` rows."""
    lens = _of_more_classes(glimpse)
    view = glimpse if lens is None else lens.reduce(glimpse)
    given = Kuiper().in_parts(whole, lambda: view).given
    form: GriddedDifference = given(view)  # type: ignore[assignment]
    name = "kuiper" if lens is None else f"kuiper, {lens.label}"
    return Look(name, given, form.moments(), lens=lens)


def combined(looks: tuple[Look, ...], rows: Predictions) -> Combined:
    """Return all looks at some rows as one form."""
    return Combined(tuple(look.of(rows) for look in looks))
