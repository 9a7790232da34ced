"""Combined forms: several statistics of the same labels, on one scale, made into one."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from caltest._parallel import ALONE, Workers
from caltest._work import Work, together
from caltest.forms.base import Array, Form, HasMoments, Labels, Moments
from caltest.forms.paths import HasBrownianLimit
from caltest.lenses import View
from caltest.pvalues import Alternative, evidence

_WELL_ABOVE = 1e4  # times its rounding: the smallest deviation that a part may have
# Evidence as a function of a normal score x has slope |x| + 1 at most, and x one of 4 in z; ties of
# scores beyond 40, of probability below 1/1600 (Cantelli), hardly ever meet one among the draws.
_STEEPEST = 4.0 * 41.0


@dataclass(frozen=True, eq=False)
class Component:
    """One part of a combined form."""

    name: str  #: What reports call it.
    form: Form  #: The part as a function of labels; with moments, or with a Brownian limit.
    alternative: Alternative = "greater"  #: Which of its values count against H0.
    view: View | None = None  #: The lens through which the part looks; None: without one.
    rounding: float = 0.0  #: What its values may differ by for reasons that the form does not know.
    #: Takes workers, returns moments under H0 that come close to the form's; None for the form's own.
    law: Callable[[Workers], Moments] | None = None

    @property
    def resolution(self) -> float:
        """How far two evaluations of one value may differ."""
        return max(self.form.resolution, self.rounding)

    def moments(self, workers: Workers = ALONE) -> Moments:
        """Return mean, variance and skewness under H0; a deviation is never as small as rounding.

        One that may be rounding is raised well above it. What is farther out than rounding can be (a
        label that was all but excluded) still says so.
        """
        if self.law is not None:
            known = self.law(workers)
        elif isinstance(self.form, HasMoments):
            known = self.form.moments(workers)
        elif isinstance(self.form, HasBrownianLimit):
            known = self.form.brownian_limit.moments
        else:
            raise TypeError(f"{type(self.form).__name__} knows no moments")
        least = _WELL_ABOVE * self.resolution
        if np.sqrt(known.variance) > least:
            return known
        return Moments(known.mean, least**2, 0.0, surprises=known.surprises)


@dataclass(frozen=True, eq=False)
class Combined(Form):
    """T = max_k −log p_k: how unlikely under H0 the most unlikely of several parts is.

    Every part is standardised by its moments under H0 given the predictions, and its tail probability
    p_k follows from these (:mod:`caltest.pvalues`), nearly. It needs no guarantee of the p_k: they
    depend on the predictions and one label vector only, so that T is a statistic like others, whose
    law is drawn. A part that cannot vary has p_k = 1.

    References
    ----------
    Tippett, "The methods of statistics", 1931, for the smallest p-value; Westfall and Young,
    "Resampling-based multiple testing", 1993, for its joint law.
    """

    components: tuple[Component, ...]
    #: The moments of the parts, where they are known already.
    known: tuple[Moments, ...] | None = None

    parallel_inside: ClassVar[bool] = True

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the parts."""
        return tuple(part.name for part in self.components)

    def moments_of_parts(self, workers: Workers = ALONE) -> tuple[Moments, ...]:
        """Return the parts' moments."""
        return self.known or tuple(part.moments(workers) for part in self.components)

    def standardised(self, workers: Workers) -> Combined:
        """Return the same with the moments of its parts, which are computed once."""
        return replace(self, known=self.moments_of_parts(workers))

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
        columns = [
            part.form.of_labels(
                labels if part.view is None else part.view.outcomes(labels),
                workers if part.form.parallel_inside else ALONE,
            )
            for part in self.components
        ]
        return np.column_stack(columns)

    def with_rounding(self, rounding: Array) -> Combined:
        """Return the same of parts whose values may differ by (P,) numbers through rounding."""
        pairs = zip(self.components, rounding, strict=True)
        return Combined(
            tuple(replace(part, rounding=max(float(by), part.rounding)) for part, by in pairs)
        )

    def evidence(self, values: Array, workers: Workers = ALONE) -> Array:
        """Return −log of the parts' tail probabilities, (B, P); +∞ where a value is infinite."""
        found = np.zeros(values.shape)
        for place, known in enumerate(self.moments_of_parts(workers)):
            if known.variance > 0.0:
                z = (values[:, place] - known.mean) / np.sqrt(known.variance)
                found[:, place] = evidence(z, known.skewness, self.components[place].alternative)
        found[np.isinf(values)] = np.inf  # a label that cannot be: no draw has it
        return found

    def combine(self, found: Array) -> Array:
        """Return the largest evidence, (B,)."""
        return np.asarray(found.max(axis=1))

    def work(self, draws: int) -> Work:
        """Return what all parts take."""
        return together(part.form.work(draws) for part in self.components)

    def of_labels(self, labels: Labels, workers: Workers = ALONE) -> Array:
        """Return the (B,) values for ``labels`` (B, n)."""
        return self.combine(self.evidence(self.values(labels, workers), workers))
