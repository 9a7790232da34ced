"""The omnibus: several statistics, each on the scale of its tail under H0, made into one."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from numbers import Real
from typing import Any, ClassVar, Self

import numpy as np

from caltest._arguments import OneOf, arguments, as_float
from caltest._parallel import ALONE, Workers
from caltest._sampling import generator
from caltest._visible import quoted
from caltest.data import Extent, Rows
from caltest.exceptions import InputError
from caltest.forms import Combined, Component, FeatureSquares, Form, GriddedDifference
from caltest.forms.base import ROUNDING, Labels, Moments
from caltest.kernels import Exponential
from caltest.kernels.bandwidth import fixed_order
from caltest.lenses import Lens, Reducer, TopLabel
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

_SAMPLE = 1024  # rows that the moments of kernels of low rank come from


@dataclass(frozen=True)
class _Look:
    """One part: a statistic through a lens, and its moments under H0 if they are known beforehand."""

    name: str
    given: Callable[[Rows], Form]
    alternative: Alternative = "greater"
    rounding: float = 0.0
    lens: Lens | None = None
    known: Moments | None = None

    def at(self, rows: Rows) -> Component:
        """Return the component of all rows, or of some."""
        form = self.given(rows if self.lens is None else self.lens.reduce(rows))
        seen = None if self.lens is None else _Seen(self.lens, rows)
        law: Callable[[Workers], Moments] | None = None
        if self.known is not None:
            law = partial(_known, self.known)
        elif isinstance(form, FeatureSquares):
            law = partial(_law_of_sample, form)
        return Component(self.name, form, self.alternative, seen, self.rounding, law)


@dataclass(frozen=True, eq=False)
class _Seen:
    """Labels of some rows as a lens shows them."""

    lens: Lens
    predictions: Rows

    def __call__(self, labels: Labels, rows: slice) -> Labels:
        return (self._of_all if rows == slice(None) else self._of(rows))(labels)

    def _of(self, rows: slice) -> Reducer:
        return self.lens.reducer(self.predictions.take(rows))

    @cached_property
    def _of_all(self) -> Reducer:
        return self.lens.reducer(self.predictions)


def _known(moments: Moments, workers: Workers) -> Moments:
    return moments


def _law_of_sample(form: FeatureSquares, workers: Workers) -> Moments:
    """Return the moments of a mean over pairs from some of the rows, whatever the order of all."""
    n = form.n_samples
    rows = np.sort(fixed_order(form.probs)[generator(0).permutation(n)[:_SAMPLE]])
    return _as_of_pairs(form, rows, n, workers)


def _as_of_pairs(form: FeatureSquares, rows: Any, whole: int, workers: Workers) -> Moments:
    """Return the moments that a mean over pairs of some rows gives a mean over those of all.

    The variance falls as the number of pairs grows; the skewness, which depends on how the weights' few
    largest eigenvalues compare, hardly changes.
    """
    probs, features = form.probs[rows], form.features[rows]
    k = len(probs)
    some = replace(form, probs=probs, features=features, scale=1.0 / (k * (k - 1)), whole=None)
    found = some.moments(workers)
    scaling = form.scale / (1.0 / (whole * (whole - 1.0)))  # 1, but for rows that count differently
    return replace(found, variance=scaling**2 * k * (k - 1) / (whole * (whole - 1)) * found.variance)


def _as_of_all(form: Any, whole: int) -> Moments:
    """Return the moments that the form of some rows, in units of ``whole``, gives that of all."""
    if isinstance(form, FeatureSquares):
        return _as_of_pairs(form, slice(0, _SAMPLE), whole, ALONE)
    found: Moments = form.moments()
    if isinstance(form, GriddedDifference):
        return found
    share = form.n_samples / whole
    skewness = found.skewness * float(np.sqrt(share))
    return replace(found, variance=found.variance / share, skewness=skewness)


def _fitted(kernel: Exponential, rows: Rows) -> Exponential:
    return kernel.fitted(rows.probs, rows.weights)


def _same(rows: Rows) -> Rows:
    return rows


def _combined(looks: Sequence[_Look], rows: Rows) -> Combined:
    return Combined(tuple(look.at(rows) for look in looks))


@arguments(
    kernel=OneOf(
        "caltest.kernels:Exponential", "give an exponential one, caltest.kernels.Exponential()"
    )
)
@dataclass(frozen=True)
class Omnibus(Statistic):
    """The default statistic: four statistics combined, to detect several kinds of error at once.

    No single statistic detects every kind of error well. The parts are:

    * "skce_uq" with the exponential kernel at the median distance, for errors of whole classes, and
      at a quarter of it, for local ones;
    * "ecd", two-sided, for over- and underconfidence, and labels predicted with almost no probability;
    * "kuiper" of the top label (of two classes: of class 1), for errors of the confidence that change
      their sign.

    Each part is standardised by its mean, variance and skewness under H0 given the predictions,
    which are known, and converted to the negative logarithm of a tail probability. The statistic
    is the largest of these. ``parts`` of the result has a p-value for each part, adjusted for
    their number by Westfall and Young's step-down maxima over the same draws. A label with
    predicted probability 0 makes the value infinite, as for "ecd".

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
        As in :class:`BiasedSKCE`, of the kernel statistics. Default "auto": kernels of low rank where
        rows are many, and moments from 1 024 of the rows.

    Raises
    ------
    InputError
        If the multiples are no positive numbers, or the kernel is no exponential one.

    Notes
    -----
    Compared with the best single statistic, the omnibus loses a tenth to three tenths of the power
    where that statistic has a power of 0.7 or 0.8, and a twentieth where it has 0.95. An
    unsuitable single statistic has next to no power. ``validation/omnibus.py`` measures this, and
    compares with Fisher's and Cauchy's combination.

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
            kernel=_fitted(self.kernel, fitting_rows(predictions)),
            approximation=chosen(self.approximation, self.kernel, predictions),
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
        known = chosen(self.approximation, self.kernel, predictions)
        if n > HELD_UP_TO and known is not None:
            return _combined(self._looks(fitting_rows(predictions), predictions.whole), predictions)
        return _combined(self.fitted(predictions)._looks(predictions), predictions)

    def in_parts(self, whole: Extent, subsample: Callable[[], Rows]) -> Partwise:
        """Fit every part, and what its values are standardised by, to a subsample of the rows."""
        rows = subsample()
        method = "nystrom" if self.approximation in (None, "auto") else self.approximation
        fitted = replace(self, kernel=_fitted(self.kernel, rows), approximation=method)
        return Partwise(fitted, partial(_combined, fitted._looks(rows, whole)))

    def _looks(self, rows: Rows, whole: Extent | None = None) -> list[_Look]:
        """Return the parts; of very many rows, of ``whole``, they are fitted to ``rows``."""
        kernel, lens = _fitted(self.kernel, rows), None if rows.n_classes == 2 else TopLabel()
        widths = [multiple * float(kernel.bandwidth) for multiple in self.multiples]
        parts: list[tuple[str, Statistic, Alternative, float, Lens | None]] = [
            (
                "skce_uq" if multiple == 1.0 else f"skce_uq, {multiple:g} × bandwidth",
                UnbiasedSKCE(replace(kernel, bandwidth=width), self.approximation),
                "greater",
                0.0,
                None,
            )
            for multiple, width in zip(self.multiples, widths, strict=True)
        ]
        # Where the expected surprises cancel those of all labels, rounding is left.
        parts.append(("ecd", ECD(), "two-sided", ROUNDING, None))
        parts.append(
            ("kuiper" if lens is None else f"kuiper, {lens.label}", Kuiper(), "greater", 0.0, lens)
        )
        looks = []
        for name, statistic, side, rounding, through in parts:
            if whole is None:
                looks.append(_Look(name, statistic.given, side, rounding, through))
                continue
            view = rows if through is None else through.reduce(rows)
            given = statistic.in_parts(whole, partial(_same, view)).given
            known = _as_of_all(given(view), whole.rows)
            looks.append(_Look(name, given, side, rounding, through, known))
        return looks
