"""The chi-square null, of statistics whose law under H0 it is: exactly, or as n grows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from scipy.special import gammainc, gammaincc

from caltest._arguments import arguments
from caltest.forms import Form, HasChiSquare, HasMoments
from caltest.nulls.base import Answer, Guarantee, Null, Question, from_sides

_WIDE = 1.1  # times the variance of the law is worth a note


@arguments()
@dataclass(frozen=True)
class Chi2(Null):
    """The chi-square tail, with the degrees of freedom of predictions that were not fitted here.

    Exact where the law is (the NEES of Gaussian predictions), asymptotic elsewhere.

    References
    ----------
    Hosmer, Lemeshow, Sturdivant, "Applied logistic regression", 2013, Section 5.2 (external data);
    Bar-Shalom, Li, Kirubarajan, "Estimation with applications to tracking and navigation", 2001,
    Section 5.4 (NEES).

    Examples
    --------
    >>> import caltest
    >>> digits = caltest.datasets.load_digits_predictions("naive_bayes")
    >>> result = caltest.test(digits.probs, digits.labels, "hosmer_lemeshow", null="chi2")
    >>> result.guarantee, result.rejects(0.05)
    ('asymptotic', True)
    """

    name: ClassVar[str] = "chi2"
    guarantee: ClassVar[Guarantee] = "asymptotic"
    assumption: ClassVar[str] = "many rows in every group, whose sums are then normal"
    requires: ClassVar[str] = "a statistic with a chi-square law"

    @classmethod
    def fits(cls, form: Form) -> bool:
        """Fit forms with a chi-square law."""
        return isinstance(form, HasChiSquare)

    def guarantee_for(self, form: Form) -> Guarantee:
        """Return "exact" where the law is."""
        return "exact" if isinstance(form, HasChiSquare) and form.chi_square.exact else self.guarantee

    def answer(self, question: Question) -> Answer:
        """Return the chi-square p-value."""
        if not isinstance(question.form, HasChiSquare):
            raise TypeError(f"{type(question.form).__name__} has no chi-square law")
        law = question.form.chi_square
        if law.degrees == 0:
            greater = 1.0 if question.observed <= question.form.resolution else 0.0
            return from_sides(greater, 1.0, question)
        notes: tuple[str, ...] = ()
        if isinstance(question.form, HasMoments):
            variance = question.form.moments(question.workers).variance * law.factor**2
            if variance > _WIDE * 2.0 * law.degrees:
                notes = (
                    f"The statistic's variance is {variance / (2 * law.degrees):.2g} times that of its "
                    "chi-square law: unlikely labels count too much, and small p-values may be much "
                    "too small; null='monte_carlo' is right.",
                )
        half = max(0.0, 0.5 * (law.factor * question.observed + law.offset))
        greater = float(gammaincc(0.5 * law.degrees, half))
        return from_sides(greater, float(gammainc(0.5 * law.degrees, half)), question, notes)
