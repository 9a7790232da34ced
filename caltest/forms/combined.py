"""Combined forms: several statistics of the same labels, on one scale, made into one."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial
from typing import ClassVar

import numpy as np

from caltest._parallel import ALONE, Workers
from caltest._sampling import DRAWS
from caltest._tiles import blocks
from caltest.forms.base import Array, Form, HasMoments, Labels, Moments
from caltest.forms.paths import HasBrownianLimit
from caltest.pvalues import Alternative, evidence

_ENTRIES = 2**24  # labels that a part looks at in one go
_WELL_ABOVE = 1e4  # times its rounding: the smallest deviation that a part may have
# Evidence as a function of a normal score x has slope |x| + 1 at most, and x one of 4 in z; ties of
# scores beyond 40, of probability below 1/1600 (Cantelli), hardly ever meet one among the draws.
_STEEPEST = 4.0 * 41.0


@dataclass(frozen=True, eq=False)
class Component:
    """One part of a combined form.

    Attributes
    ----------
    name
        What reports call it.
    form
        The part as a function of labels; with moments, or with a Brownian limit.
    alternative
        Which of its values count against H0.
    seen
        Takes labels (B, rows) of a slice of the rows, and the slice, to those that the part looks at.
        Default None: the same.
    rounding
        What its values may differ by for reasons that the form does not know. Default 0.
    law
        Takes workers, returns moments under H0 that come close to the form's. Default None: the form's.
    """

    name: str
    form: Form
    alternative: Alternative = "greater"
    seen: Callable[[Labels, slice], Labels] | None = None
    rounding: float = 0.0
    law: Callable[[Workers], Moments] | None = None

    @property
    def resolution(self) -> float:
        """How far two evaluations of one value may differ."""
        return max(self.form.resolution, self.rounding)

    def values(self, labels: Labels, workers: Workers = ALONE) -> Array:
        """Return the (B,) values for ``labels`` (B, n)."""
        if self.form.parallel_inside:
            return self._evaluate(workers, labels)
        size = max(1, min(DRAWS, _ENTRIES // labels.shape[1]))
        tasks = [(labels[draws],) for draws in blocks(len(labels), size)]
        return np.concatenate(list(workers.map(partial(self._evaluate, ALONE), tasks, self.name)))

    def _evaluate(self, workers: Workers, labels: Labels) -> Array:
        seen = labels if self.seen is None else self.seen(labels, slice(None))
        return self.form.of_labels(seen, workers)

    def moments(self, workers: Workers = ALONE) -> Moments:
        """Return mean, variance and skewness under H0, given the predictions."""
        if self.law is not None:
            return self.law(workers)
        if isinstance(self.form, HasMoments):
            return self.form.moments(workers)
        if isinstance(self.form, HasBrownianLimit):
            return self.form.brownian_limit.moments
        raise TypeError(f"{type(self.form).__name__} knows no moments")


@dataclass(frozen=True, eq=False)
class Combined(Form):
    """T = max_k −log p_k: how unlikely under H0 the most unlikely of several parts is.

    Every part is standardised by its moments under H0 given the predictions, and its tail probability
    p_k follows from these (:mod:`caltest.pvalues`), nearly. It needs no guarantee of the p_k: they
    depend on the predictions and one label vector only, so that T is a statistic like others, whose
    law is drawn. A part that cannot vary has p_k = 1.

    Attributes
    ----------
    components
        The parts.

    References
    ----------
    Tippett, "The methods of statistics", 1931, for the smallest p-value; Westfall and Young,
    "Resampling-based multiple testing", 1993, for its joint law.
    """

    components: tuple[Component, ...]
    _known: list[tuple[Moments, ...]] = field(default_factory=list, init=False, repr=False)

    parallel_inside: ClassVar[bool] = True

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the parts."""
        return tuple(part.name for part in self.components)

    def moments_of_parts(self, workers: Workers = ALONE) -> tuple[Moments, ...]:
        """Return the parts' moments, computed once; deviations are never as small as rounding."""
        if not self._known:
            self._known.append(tuple(_above_rounding(part, workers) for part in self.components))
        return self._known[0]

    @property
    def resolution(self) -> float:
        """How far rounding of any part moves its evidence; that of the whole moves no further."""
        moves = [
            _STEEPEST * part.resolution / np.sqrt(known.variance)
            for part, known in zip(self.components, self.moments_of_parts(), strict=True)
            if known.variance > 0.0
        ]
        return float(max(moves, default=0.0))

    def values(self, labels: Labels, workers: Workers = ALONE) -> Array:
        """Return the parts' values, (B, P) for labels (B, n)."""
        return np.column_stack([part.values(labels, workers) for part in self.components])

    def with_rounding(self, rounding: Array) -> Combined:
        """Return the same of parts whose values may differ by (P,) numbers through rounding."""
        pairs = zip(self.components, rounding, strict=True)
        return Combined(
            tuple(replace(part, rounding=max(float(by), part.rounding)) for part, by in pairs)
        )

    def evidence(self, values: Array, workers: Workers = ALONE) -> Array:
        """Return −log of the parts' tail probabilities, (B, P); +∞ where a value is infinite."""
        known = self.moments_of_parts(workers)
        columns = [
            _standardised(column, moments, part.alternative)
            for column, moments, part in zip(values.T, known, self.components, strict=True)
        ]
        return np.column_stack(columns)

    def combine(self, found: Array) -> Array:
        """Return the largest evidence, (B,)."""
        return np.asarray(found.max(axis=1))

    def of_labels(self, labels: Labels, workers: Workers = ALONE) -> Array:
        """Return the (B,) values for ``labels`` (B, n)."""
        return self.combine(self.evidence(self.values(labels, workers), workers))


def _above_rounding(part: Component, workers: Workers) -> Moments:
    """Return a part's moments; a deviation that may be rounding is raised well above it.

    What is farther out than rounding can be (a label that was all but excluded) still says so.
    """
    known, least = part.moments(workers), _WELL_ABOVE * part.resolution
    if np.sqrt(known.variance) > least:
        return known
    return Moments(known.mean, least**2, 0.0, surprises=known.surprises)


def _standardised(values: Array, known: Moments, alternative: Alternative) -> Array:
    """Return the evidence of one part's values (B,)."""
    if known.variance <= 0.0:
        found = np.zeros(len(values))
    else:
        z = (values - known.mean) / np.sqrt(known.variance)
        found = evidence(z, known.skewness, alternative)
    found[np.isinf(values)] = np.inf  # a label that cannot be: no draw has it
    return found
