"""The asymptotic normal null of a sum of independent terms."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from scipy.special import ndtr

from caltest._arguments import Whole, arguments
from caltest.exceptions import Argument, InputError
from caltest.forms import Form, HasCumulantGenerator, HasTerms
from caltest.nulls.base import Answer, Array, Guarantee, Null, Question, from_sides
from caltest.nulls.moments import nearly_normal

_NEARLY = 0.5  # skewness or excess kurtosis; more is worth a note


@arguments(ddof=Whole(0, advice="give a whole number that is not negative"))
@dataclass(frozen=True)
class Normal(Null):
    """z against the standard normal: the classical p-value of a sum of independent terms.

    A linear statistic (the ECD, Spiegelhalter's z, calibration in the large) has a mean and a
    standard deviation under H0 that the predictions give exactly, and z is taken with these.
    SKCE_ul is taken as published, z = √k T/σ̂ with the sample standard deviation σ̂ of its k terms.
    ``"moments"`` costs the same, is right in the tails too, and for SKCE_ul has far more power: this
    null is here to reproduce the literature.

    Parameters
    ----------
    ddof
        Delta degrees of freedom of σ̂. Default 1; published p-values of SKCE_ul used 0.

    References
    ----------
    Spiegelhalter 1986; Widmann et al. 2019, Corollary G.1.

    Examples
    --------
    >>> import caltest
    >>> sample = caltest.datasets.load_digits_predictions("naive_bayes")
    >>> caltest.test(sample.probs, sample.labels, "brier", null="normal").guarantee
    'asymptotic'
    """

    ddof: int = 1

    name: ClassVar[str] = "normal"
    guarantee: ClassVar[Guarantee] = "asymptotic"
    assumption: ClassVar[str] = "many independent terms, none of which dominates: their sum is normal"
    requires: ClassVar[str] = "a sum of independent terms"

    @classmethod
    def fits(cls, form: Form) -> bool:
        """Fit sums of independent terms."""
        return isinstance(form, HasTerms | HasCumulantGenerator)

    def answer(self, question: Question) -> Answer:
        """Return the asymptotic p-value."""
        form = question.form
        if isinstance(form, HasTerms):
            return self._of_terms(form.terms(question.labels), question)
        if not isinstance(form, HasCumulantGenerator):
            raise TypeError(f"{type(form).__name__} is no sum of independent terms")
        _, mean, variance = form.cumulant_generator(0.0)
        margin = form.resolution
        if variance <= margin**2:
            greater, less = question.observed <= mean + margin, question.observed >= mean - margin
            return from_sides(float(greater), float(less), question)
        z = (question.observed - mean) / np.sqrt(variance)
        notes: tuple[str, ...] = ()
        if not nearly_normal(form.cumulant_generator, _NEARLY):
            notes = (
                "The statistic hangs on few unlikely labels and is far from normal, so that small "
                "p-values may be much too small; null='moments' or 'monte_carlo' is right.",
            )
        return from_sides(float(ndtr(-z)), float(ndtr(z)), question, notes)

    def _of_terms(self, terms: Array, question: Question) -> Answer:
        if len(terms) <= self.ddof:
            raise InputError(
                "the normal null estimates a standard deviation and has {found} pair(s) of rows; give "
                "more rows, or use {null}.",
                found=len(terms),
                null=Argument("null", "monte_carlo"),
            )
        deviation = float(np.std(terms, ddof=self.ddof))
        if deviation <= max(1e-12 * float(np.max(np.abs(terms))), question.form.resolution):
            note = "The terms do not vary, so their standard deviation says nothing; p is set to 1."
            return Answer(pvalue=1.0, notes=(note,))
        z = np.sqrt(len(terms)) * float(np.mean(terms)) / deviation
        return from_sides(float(ndtr(-z)), float(ndtr(z)), question)
