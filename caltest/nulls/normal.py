"""The asymptotic normal null of a mean of independent terms, with their sample standard deviation."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from scipy.special import ndtr

from caltest.exceptions import InputError
from caltest.forms import Form, HasTerms
from caltest.nulls.base import Answer, Guarantee, Null, Question, from_sides


@dataclass(frozen=True)
class Normal(Null):
    """z = √k T/σ̂ against the standard normal, k the number of terms.

    Under H0 the variance of every term is known given the predictions: ``"moments"`` uses it and has
    far more power at the same cost. This null is here to reproduce the literature.

    Parameters
    ----------
    ddof
        Delta degrees of freedom of σ̂. Default 1; published p-values of SKCE_ul used 0.

    References
    ----------
    Widmann et al. 2019, Corollary G.1.

    Examples
    --------
    >>> import caltest
    >>> sample = caltest.datasets.load_digits_predictions("naive_bayes")
    >>> caltest.test(sample.probs, sample.labels, "skce_ul", null="normal").guarantee
    'asymptotic'
    """

    ddof: int = 1

    name: ClassVar[str] = "normal"
    guarantee: ClassVar[Guarantee] = "asymptotic"
    assumption: ClassVar[str] = "many independent terms of one distribution, their mean normal"
    requires: ClassVar[str] = "a mean of independent terms"

    @classmethod
    def fits(cls, form: Form) -> bool:
        """Fit means of independent terms."""
        return isinstance(form, HasTerms)

    def answer(self, question: Question) -> Answer:
        """Return the asymptotic p-value."""
        if not isinstance(question.form, HasTerms):
            raise TypeError(f"{type(question.form).__name__} has no terms")
        terms = question.form.terms(question.labels)
        if len(terms) <= self.ddof:
            raise InputError(
                f"the normal null estimates a standard deviation and has {len(terms)} "
                f"pair(s) of rows; give more rows, or use null='monte_carlo'."
            )
        deviation = float(np.std(terms, ddof=self.ddof))
        if deviation <= max(1e-12 * float(np.max(np.abs(terms))), question.form.resolution):
            note = "The terms do not vary, so their standard deviation says nothing; p is set to 1."
            return Answer(pvalue=1.0, notes=(note,))
        z = np.sqrt(len(terms)) * float(np.mean(terms)) / deviation
        return from_sides(float(ndtr(-z)), float(ndtr(z)), question)
