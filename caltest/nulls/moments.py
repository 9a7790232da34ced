"""The analytic null: the statistic's conditional distribution under H0 from its exact moments.

Given the predictions, a linear statistic (and SKCE_ul) is a sum of independent terms with a known
cumulant generating function: a saddlepoint gives its tail. A quadratic statistic has known mean,
variance and (nearly) skewness: a Pearson type III (shifted gamma) curve through them gives its tail.
No resample is drawn, and p-values far below 1/(B + 1) are resolved. Where the statistic hangs on a
handful of unlikely labels its distribution has few atoms, which no curve fits: labels are drawn then.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
from scipy.special import gammainc, gammaincc, ndtr

from caltest._arguments import arguments
from caltest.forms import Form, HasCumulantGenerator, HasMoments, Moments
from caltest.nulls.base import Answer, Guarantee, Null, Question, from_sides
from caltest.nulls.monte_carlo import MonteCarlo
from caltest.nulls.saddlepoint import nearly_normal, tail

_SURPRISES = 10.0  # fewer unlikely labels than this make a distribution of few atoms
_MANY_SURPRISES = 200.0  # from here on, half a step is a small part of a standard deviation
_NEARLY = 0.25  # skewness and excess kurtosis up to which few are enough
_MOST_SKEWED = 2.9  # no weighted sum of centred χ²₁ exceeds √8: beyond are rare events
_WORTH_A_NOTE = 0.05  # error of a skewness


@arguments()
@dataclass(frozen=True)
class ConditionalMoments(Null):
    """Saddlepoint or Pearson type III tail with the moments of the statistic given the predictions.

    References
    ----------
    Moments: see ``caltest.forms._quadratic_moments``; checked by enumeration. Pearson type III for a
    degenerate quadratic form: Gretton et al. 2012 (there with estimated moments). Saddlepoint:
    Barndorff-Nielsen 1986.

    Examples
    --------
    >>> import caltest
    >>> sample = caltest.datasets.load_digits_predictions("naive_bayes")
    >>> caltest.test(sample.probs, sample.labels, null="moments").pvalue < 1e-12
    True
    """

    name: ClassVar[str] = "moments"
    guarantee: ClassVar[Guarantee] = "approximate"
    assumption: ClassVar[str] = (
        "the shape of the conditional distribution follows from its first moments"
    )
    requires: ClassVar[str] = "a linear or quadratic statistic"

    @classmethod
    def fits(cls, form: Form) -> bool:
        """Fit forms with known moments or cumulants."""
        return isinstance(form, HasMoments | HasCumulantGenerator)

    def answer(self, question: Question) -> Answer:
        """Return the analytic p-value, or the exact one where no curve can be trusted."""
        form = question.form
        if isinstance(form, HasCumulantGenerator):
            surprises = form.surprises
            few = surprises < _SURPRISES and not nearly_normal(form.cumulant_generator, _NEARLY)
            gaps = surprises < _MANY_SURPRISES and form.lattice.spread > 0.0
            if few or gaps:
                return _exact_instead(question)
            return self._saddlepoint(form, question)
        if not isinstance(form, HasMoments):
            raise TypeError(f"{type(form).__name__} has no moments")
        moments = form.moments(question.workers)
        if moments.surprises < _SURPRISES or abs(moments.skewness) > _MOST_SKEWED:
            return _exact_instead(question)
        notes: tuple[str, ...] = ()
        if moments.skewness_error > _WORTH_A_NOTE:
            notes = (
                f"The skewness {moments.skewness:.3g} of the null distribution is known to "
                f"± {moments.skewness_error:.2g} only; the exact null has no such error.",
            )
        # Rounding counts for the null, on either side.
        greater = pearson3_tail(moments, question.observed - form.resolution)
        less = pearson3_tail(moments.scaled(-1.0), -question.observed - form.resolution)
        return from_sides(greater, less, question, notes)

    def _saddlepoint(self, form: HasCumulantGenerator, question: Question) -> Answer:
        # On a lattice, P(T ≥ x) is the smooth tail half a step before x.
        margin = form.resolution + 0.5 * form.lattice.span
        generator = form.cumulant_generator
        # A side more than a standard deviation away has less than half of all (Cantelli's inequality),
        # and the other side, the larger one, need not be computed.
        _, mean, variance = generator(0.0)
        z = (question.observed - mean) / np.sqrt(variance) if variance > 0 else 0.0
        two_sided = question.alternative == "two-sided"
        greater = less = 1.0
        with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
            if question.alternative == "greater" or (two_sided and z > -1.0):
                greater = tail(generator, question.observed - margin)
            if question.alternative == "less" or (two_sided and z < 1.0):
                less = tail(lambda t: _mirrored(generator(-t)), -question.observed - margin)
        return from_sides(greater, less, question)


def _exact_instead(question: Question) -> Answer:
    """Draw labels: a statistic that hangs on few unlikely labels has few values, and no curve fits."""
    answer = MonteCarlo().answer(question)
    note = (
        "The statistic hangs on so few unlikely labels that no curve fits its distribution; "
        "labels were drawn instead, as null='monte_carlo' does."
    )
    return replace(answer, notes=(*answer.notes, note))


def pearson3_tail(moments: Moments, x: float) -> float:
    """Return P(T ≥ x) of the shifted gamma distribution with these moments.

    Examples
    --------
    >>> round(pearson3_tail(Moments(mean=1.0, variance=1.0, skewness=2.0), 3.0), 6)  # exponential
    0.049787
    """
    if moments.variance <= 0.0:
        tolerance = 1e-9 * max(abs(moments.mean), abs(x))
        return 1.0 if x <= moments.mean + tolerance else 0.0
    z = (x - moments.mean) / np.sqrt(moments.variance)
    normal = float(ndtr(-z))
    if abs(moments.skewness) < 1e-4:
        return normal
    k = 4.0 / moments.skewness**2
    position = max(k + 2.0 * z / moments.skewness, 0.0)
    if moments.skewness > 0:
        return float(gammaincc(k, position))
    return max(normal, float(gammainc(k, position)))  # the curve ends, the distribution need not


def _mirrored(cumulants: tuple[float, float, float]) -> tuple[float, float, float]:
    k, slope, curvature = cumulants
    return k, -slope, curvature
