"""The analytic null: the statistic's conditional distribution under H0 from its exact moments.

Given the predictions, a linear statistic (and SKCE_ul) is a sum of independent terms with a known
cumulant generating function: a saddlepoint gives its tail. If it counts (``citl``, ``esce``), its law
is computed: the p-value is exact. A quadratic statistic has known mean,
variance and (nearly) skewness: a Pearson type III (shifted gamma) curve through them gives its tail.
No resample is drawn, and p-values far below 1/(B + 1) are resolved. Where the distribution has few
atoms (a handful of unlikely labels, few distinct predictions, a kernel so wide that labels are only
counted) no curve fits it: labels are drawn then. Predictions alone decide that, never the labels.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
from scipy.special import gammainc, gammaincc, ndtr

from caltest._arguments import arguments
from caltest._parallel import Workers
from caltest.forms import Form, HasCumulantGenerator, HasLeadingSum, HasMoments, Moments
from caltest.nulls.base import Answer, Guarantee, Null, Question, from_sides
from caltest.nulls.lattice import lattice_answer, lattice_terms
from caltest.nulls.monte_carlo import MonteCarlo
from caltest.nulls.saddlepoint import nearly_normal, tail

# The gates were set by enumeration of all counts of random designs of up to four distinct rows, and by
# draws of untied ones (python -m validation nulls --only moments_small).
_SURPRISES = 10.0  # fewer unlikely labels than this make a distribution of few atoms
_TIED_SURPRISES = 40.0  # the same, where rows share their predictions: labels are only counted then
_TIED_SUMS = 20.0  # the same of sums, whose atoms lie in one dimension only
_SHARED = 2.0  # rows with the same predictions, on average, from where they count as tied
_MANY_SURPRISES = 200.0  # from here on, half a step is a small part of a standard deviation
_NEARLY = 0.25  # skewness and excess kurtosis up to which few are enough
_SEVERAL = 1.3  # skewness of a sum of nearly five equal χ²₁; in so many dimensions atoms crowd
_ONE_DIMENSION = 2.5  # skewness from where one dimension carries nine tenths of the variance
_MANY_STEPS = 400.0  # unlikely labels from where the steps of that dimension are small
_GAP = 0.3  # spread about the steps, in steps, from where there are no gaps
_MOST_SKEWED = 2.9  # no weighted sum of centred χ²₁ exceeds √8: beyond are rare events
_WORTH_A_NOTE = 0.05  # error of a skewness


@arguments()
@dataclass(frozen=True)
class ConditionalMoments(Null):
    """Saddlepoint or Pearson type III tail with the moments of the statistic given the predictions.

    Of a statistic that counts, such as "citl" and "esce" on up to 262 144 rows, the p-value is exact.

    References
    ----------
    Moments: see ``caltest.forms._pair_moments``; checked by enumeration. Pearson type III for a
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

    def guarantee_for(self, form: Form) -> Guarantee:
        """Say that it is exact where the statistic counts."""
        return "exact" if lattice_terms(form) is not None else self.guarantee

    def answer(self, question: Question) -> Answer:
        """Return the analytic p-value, or the exact one where no curve can be trusted."""
        form = question.form
        terms = lattice_terms(form)
        if terms is not None:
            return lattice_answer(terms, question)
        if isinstance(form, HasCumulantGenerator):
            return _exact_instead(question) if _few_sums(form) else self._saddlepoint(form, question)
        if not isinstance(form, HasMoments):
            raise TypeError(f"{type(form).__name__} has no moments")
        moments = form.moments(question.workers)
        if _few_squares(form, moments, question.workers):
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


def _few_sums(form: HasCumulantGenerator) -> bool:
    """Say whether a sum of independent terms has too few values for a saddlepoint."""
    surprises = form.surprises
    if surprises < _SURPRISES and not nearly_normal(form.cumulant_generator, _NEARLY):
        return True
    lattice = form.lattice
    if lattice.span > 0.0 and lattice.spread == 0.0:
        return False  # half a step is allowed for
    if surprises < _MANY_SURPRISES and lattice.spread > 0.0:
        return True
    return surprises < _TIED_SUMS and form.repeats >= _SHARED


def _few_squares(form: HasMoments, moments: Moments, workers: Workers) -> bool:
    """Say whether a quadratic statistic has too few values for a curve, or too skewed ones."""
    skewness = abs(moments.skewness)
    if moments.surprises < _SURPRISES or skewness > _MOST_SKEWED:
        return True
    if not isinstance(form, HasLeadingSum):
        return False
    if moments.surprises < _TIED_SURPRISES and skewness > _SEVERAL and form.repeats >= _SHARED:
        return True
    if moments.surprises >= _MANY_STEPS or skewness < _ONE_DIMENSION:
        return False
    # The square of one sum: P(T ≥ x) jumps where the sum steps, and a curve is half a jump too low.
    lattice = form.leading(workers).lattice
    return lattice.span > 0.0 and lattice.spread < _GAP * lattice.span


def _exact_instead(question: Question) -> Answer:
    """Draw labels, where the statistic has so few values that no curve fits."""
    answer = MonteCarlo().answer(question)
    note = (
        "The statistic depends on so few unlikely labels, or takes so few values, that no curve fits "
        "its distribution; labels were drawn instead, as null='monte_carlo' does."
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
