"""The analytic null: the statistic's conditional distribution under H0 from its exact moments.

Given the predictions, a linear statistic (and SKCE_ul) is a sum of independent terms with a known
cumulant generating function: a saddlepoint gives its tail. A quadratic statistic has known mean,
variance and (nearly) skewness: a Pearson type III (shifted gamma) curve through them gives its tail.
No resample is drawn, and p-values far below 1/(B + 1) are resolved.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from scipy.special import gammainc, gammaincc, ndtr

from caltest.forms import Form, HasCumulantGenerator, HasMoments, Moments
from caltest.nulls.base import Answer, Guarantee, Null, Question, from_sides
from caltest.nulls.saddlepoint import skewness, tail

_WORTH_A_NOTE = 0.05  # error of a skewness
_SURPRISES = 5.0  # expected labels other than the top one; below, three moments say too little
_FEW_SURPRISES = (
    "So few labels are uncertain that no curve fits; p is Cantelli's bound, valid but large: "
    "null='monte_carlo' is exact and sharper."
)
_VERY_SKEWED = 1.5  # above, a curve through three moments has been seen to be off: see validation


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
        """Return the analytic p-value."""
        form = question.form
        # Rounding counts for the null, on either side.
        x, y = question.observed - form.resolution, -question.observed - form.resolution
        if isinstance(form, HasCumulantGenerator):
            generator = form.cumulant_generator
            with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
                greater = tail(generator, x)
                less = tail(lambda t: _mirrored(generator(-t)), y)
                notes = _on_skewness(skewness(generator))
            return from_sides(greater, less, question, notes)
        if not isinstance(form, HasMoments):
            raise TypeError(f"{type(form).__name__} has no moments")
        moments = form.moments(question.workers)
        notes = _on_skewness(moments.skewness)
        if moments.variance == 0.0:
            notes = ("Every label is certain under the predictions, so the statistic is constant.",)
        elif moments.skewness_error > _WORTH_A_NOTE:
            notes += (
                f"The skewness {moments.skewness:.3g} of the null distribution is known to "
                f"± {moments.skewness_error:.2g} only; the exact null has no such error.",
            )
        curve = pearson3_tail
        if np.sum(1.0 - question.predictions.probs.max(axis=1)) < _SURPRISES:
            curve, notes = cantelli_tail, (_FEW_SURPRISES,)
        return from_sides(curve(moments, x), curve(moments.scaled(-1.0), y), question, notes)


def cantelli_tail(moments: Moments, x: float) -> float:
    """Return Cantelli's bound of P(T ≥ x), 1/(1 + z²) above the mean.

    Examples
    --------
    >>> cantelli_tail(Moments(mean=1.0, variance=4.0, skewness=0.0), 7.0)
    0.1
    """
    if moments.variance <= 0.0:
        return pearson3_tail(moments, x)
    z = (x - moments.mean) / np.sqrt(moments.variance)
    return float(1.0 / (1.0 + z * z)) if z > 0 else 1.0


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
    shape = 4.0 / moments.skewness**2
    position = max(shape + 2.0 * z / moments.skewness, 0.0)
    if moments.skewness > 0:
        return float(gammaincc(shape, position))
    return max(normal, float(gammainc(shape, position)))  # the curve ends, the distribution need not


def _on_skewness(value: float) -> tuple[str, ...]:
    if abs(value) <= _VERY_SKEWED:
        return ()
    return (
        f"The null distribution is very skewed (skewness {value:.2g}), as with rare events: a small "
        "analytic p-value may be too small, by a factor of two or so; null='monte_carlo' is exact.",
    )


def _mirrored(cumulants: tuple[float, float, float]) -> tuple[float, float, float]:
    k, slope, curvature = cumulants
    return k, -slope, curvature
