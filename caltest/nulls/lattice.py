"""The exact law of a sum on a lattice: no saddlepoint, no continuity correction, no draws.

"citl" and "esce" count events. Given the predictions, the count is a sum of independent indicators
of known probabilities (a Poisson binomial), whose law is a product of polynomials: p-values are exact,
however few events there are and however far out the observed count lies.
"""

from __future__ import annotations

import numpy as np

from caltest._sums import tail_of_sum
from caltest.forms import Form, HasLatticeTerms, LatticeTerms
from caltest.nulls.base import Answer, Question, from_sides

_MOST_STEPS = 2**18  # of all rows together: a second on one core


def lattice_terms(form: Form) -> LatticeTerms | None:
    """Return a form's independent whole numbers; None if it lies on no lattice, or has too many."""
    return form.lattice_terms(_MOST_STEPS) if isinstance(form, HasLatticeTerms) else None


def lattice_answer(terms: LatticeTerms, question: Question) -> Answer:
    """Return the exact p-value: both tails hold the observed value."""
    start, span, masses = terms
    if not np.isfinite(question.observed):  # a label that could not be
        above = question.observed > 0.0
        return from_sides(0.0 if above else 1.0, 1.0 if above else 0.0, question)
    count = round((question.observed - start) / span)
    mirrored = masses[:, ::-1]
    greater = less = 1.0
    if question.alternative != "less":
        greater = tail_of_sum(masses, count)
    if question.alternative != "greater" and greater > 0.0:
        less = tail_of_sum(mirrored, mirrored.shape[0] * (mirrored.shape[1] - 1) - count)
    return from_sides(greater, less, question)
