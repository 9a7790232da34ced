"""The omnibus statistic: several ways to err looked for at once, one exact p-value."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from numbers import Real
from typing import Any, ClassVar, Self

import numpy as np

from caltest._parallel import Workers
from caltest._seeds import generator
from caltest.data import Predictions
from caltest.exceptions import InputError
from caltest.forms import Combined, Component, FeatureSquares
from caltest.forms.base import ROUNDING, Moments
from caltest.kernels import Exponential
from caltest.kernels.bandwidth import fixed_order
from caltest.lenses import TopLabel
from caltest.statistics._low_rank import RANK, Approximation, check_approximation, chosen
from caltest.statistics.base import Statistic
from caltest.statistics.cumulative import Kuiper
from caltest.statistics.ecd import ECD
from caltest.statistics.skce import UnbiasedSKCE

_SAMPLE = 2048  # rows that the moments of kernels of low rank come from


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
        given = self.multiples
        if isinstance(given, Real):
            given = (float(given),)
        try:
            multiples = tuple(float(each) for each in given)
        except (TypeError, ValueError):
            multiples = ()
        if not multiples or not all(np.isfinite(each) and each > 0.0 for each in multiples):
            raise InputError(
                f"multiples is {self.multiples!r}; give positive numbers, such as (0.25, 1)."
            )
        if not isinstance(self.kernel, Exponential):
            raise InputError(
                f"kernel is {self.kernel!r}; give an exponential one, caltest.kernels.Exponential()."
            )
        object.__setattr__(self, "multiples", multiples)
        check_approximation(self.kernel, self.approximation, RANK)

    def fitted(self, predictions: Predictions) -> Self:
        """Fit the kernel's bandwidth to the predictions, and decide on the approximation."""
        return replace(
            self,
            kernel=self.kernel.fitted(predictions.probs),
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

    def given(self, predictions: Predictions) -> Combined:
        """Fix the predictions: every part as a function of the labels."""
        fitted = self.fitted(predictions)
        kernels = [fitted._of_pairs(predictions, multiple) for multiple in self.multiples]
        return Combined((*kernels, _entropic(predictions), _cumulative(predictions)))

    def _of_pairs(self, predictions: Predictions, multiple: float) -> Component:
        kernel = replace(self.kernel, bandwidth=multiple * float(self.kernel.bandwidth))
        name = "skce_uq" if multiple == 1.0 else f"skce_uq, {multiple:g} × bandwidth"
        form = UnbiasedSKCE(kernel, self.approximation).given(predictions)
        if not isinstance(form, FeatureSquares):
            return Component(name, form)
        return Component(name, form, law=partial(_law_of_sample, form))


def _law_of_sample(form: FeatureSquares, workers: Workers) -> Moments:
    """Return the moments of a mean over pairs from some of the rows, whatever the order of all.

    The variance falls as the number of pairs grows; the skewness, which hangs on how the weights' few
    largest eigenvalues compare, hardly changes.
    """
    n = form.n_samples
    rows = np.sort(fixed_order(form.probs)[generator(0).permutation(n)[:_SAMPLE]])
    k = len(rows)
    some = replace(
        form, probs=form.probs[rows], features=form.features[rows], scale=1.0 / (k * (k - 1))
    )
    found = some.moments(workers)
    return replace(found, variance=k * (k - 1) / (n * (n - 1)) * found.variance)


def _entropic(predictions: Predictions) -> Component:
    """Return the ECD; where the expected surprises cancel those of all labels, rounding is left."""
    return Component("ecd", ECD().given(predictions), "two-sided", rounding=ROUNDING)


def _cumulative(predictions: Predictions) -> Component:
    if predictions.n_classes == 2:
        return Component("kuiper", Kuiper().given(predictions))
    lens = TopLabel()
    return Component(
        f"kuiper, {lens.label}",
        Kuiper().given(lens.reduce(predictions)),
        seen=lens.reducer(predictions),
    )
