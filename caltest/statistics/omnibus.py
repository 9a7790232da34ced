"""The omnibus: several statistics, each on the scale of its tail under H0, made into one."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from numbers import Real
from typing import Any, ClassVar, Self

import numpy as np

from caltest._arguments import OneOf, arguments, as_float
from caltest._parallel import ALONE, Workers
from caltest._sampling import generator
from caltest._visible import quoted
from caltest.data import Rows
from caltest.exceptions import InputError
from caltest.forms import Combined, Component, FeatureSquares, GriddedDifference, LinearSum
from caltest.forms.base import ROUNDING, Labels, Moments
from caltest.kernels import Exponential
from caltest.kernels.bandwidth import fixed_order
from caltest.lenses import Lens, TopLabel
from caltest.pvalues import Alternative
from caltest.statistics.base import Partwise, Statistic
from caltest.statistics.cumulative import Kuiper
from caltest.statistics.scores import ECD
from caltest.statistics.skce import (
    HELD_UP_TO,
    RANK,
    Approximation,
    UnbiasedSKCE,
    check_approximation,
    chosen,
    fitting_rows,
)

# ------------------------------------------------------------------ looks


_SAMPLE = 2048  # rows that the moments of kernels of low rank come from


def of_pairs(statistic: UnbiasedSKCE, name: str, predictions: Rows) -> Component:
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


def entropic(predictions: Rows) -> Component:
    """Return the ECD; where the expected surprises cancel those of all labels, rounding is left."""
    return Component("ecd", ECD().given(predictions), "two-sided", rounding=ROUNDING)


def cumulative(predictions: Rows) -> Component:
    """Return Kuiper's statistic of the top label, of two classes of class 1."""
    lens = _of_more_classes(predictions)
    if lens is None:
        return Component("kuiper", Kuiper().given(predictions))
    form = Kuiper().given(lens.reduce(predictions))
    return Component(f"kuiper, {lens.label}", form, seen=partial(_seen, lens, predictions))


def _of_more_classes(predictions: Rows) -> Lens | None:
    return None if predictions.n_classes == 2 else TopLabel()


def _seen(lens: Lens, predictions: Rows, labels: Labels, rows: slice) -> Labels:
    return lens.reducer(predictions.take(rows))(labels)


@dataclass(frozen=True)
class ScaledPart:
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
    given: Callable[[Rows], Any]
    known: Moments
    alternative: Alternative = "greater"
    rounding: float = 0.0
    lens: Lens | None = None

    def of(self, rows: Rows) -> Component:
        """Return the component of some rows."""
        view = rows if self.lens is None else self.lens.reduce(rows)
        seen = None if self.lens is None else partial(_seen, self.lens, rows)
        return Component(
            self.name, self.given(view), self.alternative, seen, self.rounding, law=self._law
        )

    def _law(self, workers: Workers) -> Moments:
        return self.known


def part_of_pairs(statistic: UnbiasedSKCE, name: str, glimpse: Rows, whole: int) -> ScaledPart:
    """Fit a kernel statistic to a glimpse of ``whole`` rows."""
    given = statistic.in_parts(whole, lambda: glimpse).given
    form: Any = given(glimpse)
    return ScaledPart(name, given, _as_of_pairs(form, slice(0, _SAMPLE), whole, ALONE))


def part_of_surprises(glimpse: Rows, whole: int) -> ScaledPart:
    """Fit the ECD's moments to a glimpse of ``whole`` rows."""
    given = ECD().in_parts(whole, lambda: glimpse).given
    form: Any = given(glimpse)
    return ScaledPart("ecd", given, _as_of_rows(form, whole), "two-sided", ROUNDING)


def _as_of_rows(form: LinearSum, whole: int) -> Moments:
    """Return the moments that a sum over some rows gives the sum over all."""
    found, share = form.moments(), form.n_samples / whole
    return replace(
        found, variance=found.variance / share, skewness=found.skewness * float(np.sqrt(share))
    )


def part_along_scores(glimpse: Rows, whole: int) -> ScaledPart:
    """Fit Kuiper's statistic to a glimpse of ``whole`` rows."""
    lens = _of_more_classes(glimpse)
    view = glimpse if lens is None else lens.reduce(glimpse)
    given = Kuiper().in_parts(whole, lambda: view).given
    form: GriddedDifference = given(view)  # type: ignore[assignment]
    name = "kuiper" if lens is None else f"kuiper, {lens.label}"
    return ScaledPart(name, given, form.moments(), lens=lens)


def combined(looks: tuple[ScaledPart, ...], rows: Rows) -> Combined:
    """Return all looks at some rows as one form."""
    return Combined(tuple(look.of(rows) for look in looks))


# ------------------------------------------------------------------ omnibus


@arguments(
    kernel=OneOf(
        "caltest.kernels:Exponential", "give an exponential one, caltest.kernels.Exponential()"
    )
)
@dataclass(frozen=True)
class Omnibus(Statistic):
    """Four statistics in one: the evidence of the strongest, ranked among the draws.

    No single statistic sees every kind of error well. The parts look at the same labels:

    * "skce_uq" with the exponential kernel at the median distance, for errors of whole classes, and
      at a quarter of it, for local ones;
    * "ecd", two-sided, for errors of temperature and for labels that were all but excluded;
    * "kuiper" of the top label (of two classes: of class 1), for errors of the confidence that change
      their sign.

    Each is standardised by its mean, variance and skewness under H0 given the predictions, which are
    known, and so becomes the negative logarithm of a tail probability; the largest counts. Which of
    them it was, and with how much right, the exact null says: ``parts`` of the result has p-values of
    all, adjusted for their number by Westfall and Young's step-down maxima over the same draws. A label
    whose probability is 0 makes the value infinite, as that of "ecd".

    Parameters
    ----------
    multiples
        Of the bandwidth at which the kernel statistic is taken: each is a part, and costs as much as
        "skce_uq". Default (0.25, 1): four times the median sees what the median sees (errors of whole
        classes) no better. 1/16 would see very local errors.
    kernel
        The exponential kernel whose bandwidth is multiplied. Default ``Exponential("median", "tv")``,
        see :class:`BiasedSKCE`.
    approximation
        As of :class:`BiasedSKCE`, of the kernel statistics. Default "auto": kernels of low rank where
        rows are many, and moments from 2 048 of the rows.

    Raises
    ------
    InputError
        If the multiples are no positive numbers, or the kernel is no exponential one.

    Notes
    -----
    Looking four ways costs power against looking the one right way: a tenth to three tenths of it,
    where that one way has a power of 0.7 or 0.8, a twentieth where it has 0.95, while a wrong way has
    next to none. ``validation/omnibus.py`` measures it, and compares with Fisher's and Cauchy's
    combination.

    References
    ----------
    Westfall and Young, "Resampling-based multiple testing", 1993; and those of the parts.

    Examples
    --------
    >>> import caltest
    >>> digits = caltest.datasets.load_digits_predictions("random_forest")
    >>> result = caltest.test(digits.probs, digits.labels, "omnibus", n_resamples=99, rng=0)
    >>> [(part.name, part.adjusted) for part in result.parts][1:3]
    [('skce_uq', 0.01), ('ecd', 0.01)]
    """

    multiples: Sequence[float] = (0.25, 1.0)
    kernel: Exponential = field(default_factory=Exponential)
    approximation: Approximation | None = "auto"

    name: ClassVar[str] = "omnibus"
    measures: ClassVar[str] = "evidence of its strongest part, −log of a tail probability"
    growth: ClassVar[float | None] = None  # a tail probability falls by no fixed power

    def __post_init__(self) -> None:
        given = (self.multiples,) if isinstance(self.multiples, Real) else self.multiples
        each = [as_float(one) for one in given] if np.iterable(given) else []
        multiples = tuple(one for one in each if one is not None and 0.0 < one < math.inf)
        if not multiples or len(multiples) < len(each):
            raise InputError(
                f"multiples is {quoted(self.multiples)}; give positive numbers, such as (0.25, 1)."
            )
        object.__setattr__(self, "multiples", multiples)
        check_approximation(self.kernel, self.approximation)

    def fitted(self, predictions: Rows) -> Self:
        """Fit the kernel's bandwidth to the predictions, and decide on the approximation."""
        return replace(
            self,
            kernel=self.kernel.fitted(fitting_rows(predictions).probs),
            approximation=chosen(self.approximation, predictions),
        )

    @property
    def parameters(self) -> dict[str, Any]:
        """The kernel, its bandwidth, the multiples of it, and the approximation, if any."""
        found = {
            "kernel": type(self.kernel).__name__,
            **self.kernel.parameters,
            "multiples": list(self.multiples),
        }
        if self.approximation is not None:
            found |= {"approximation": self.approximation, "rank": RANK}
        return found

    @property
    def notes(self) -> tuple[str, ...]:
        """What the bandwidth heuristic has to say."""
        return self.kernel.notes

    def given(self, predictions: Rows) -> Combined:
        """Fix the predictions: every part as a function of the labels."""
        n = predictions.n_samples
        if n > HELD_UP_TO and self.approximation is not None:
            return combined(self._looks(n, fitting_rows(predictions)), predictions)
        fitted = self.fitted(predictions)
        kernels = [of_pairs(*part, predictions) for part in fitted._kernel_statistics()]
        return Combined((*kernels, entropic(predictions), cumulative(predictions)))

    def in_parts(self, whole: int, glimpse: Callable[[], Rows]) -> Partwise:
        """Fit every part, and what its values are standardised by, to a glimpse of the rows."""
        rows = glimpse()
        method = "nystrom" if self.approximation in (None, "auto") else self.approximation
        fitted = replace(self, kernel=self.kernel.fitted(rows.probs), approximation=method)
        return Partwise(fitted, partial(combined, fitted._looks(whole, rows)))

    def _looks(self, whole: int, glimpse: Rows) -> tuple[ScaledPart, ...]:
        fitted = replace(self, kernel=self.kernel.fitted(glimpse.probs))
        kernels = (part_of_pairs(*part, glimpse, whole) for part in fitted._kernel_statistics())
        return (*kernels, part_of_surprises(glimpse, whole), part_along_scores(glimpse, whole))

    def _kernel_statistics(self) -> list[tuple[UnbiasedSKCE, str]]:
        """Return the kernel statistics and their names."""
        width = float(self.kernel.bandwidth)
        return [
            (
                UnbiasedSKCE(replace(self.kernel, bandwidth=multiple * width), self.approximation),
                "skce_uq" if multiple == 1.0 else f"skce_uq, {multiple:g} × bandwidth",
            )
            for multiple in self.multiples
        ]
