"""Distribution-free bounds of the p-value: valid for every n, usually far too large."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from caltest._arguments import Number, arguments
from caltest.forms import Form, HasTailBound
from caltest.nulls.base import Answer, Guarantee, Null, Question, from_sides
from caltest.pvalues import Alternative

_EXPONENT = Number(1.0, math.inf, "[]", "give the exponent of a norm, 1 or more")


@arguments(p=_EXPONENT, q=_EXPONENT)
@dataclass(frozen=True)
class Bound(Null):
    """McDiarmid's bound for SKCE_b, Hoeffding's for SKCE_uq and SKCE_ul.

    With B = B_{p;q} a bound of |h_ij|: exp(−½ max(0, √(n t/B) − 1)²) for SKCE_b, and
    exp(−⌊n/2⌋ t²/(2B²)) for the unbiased ones, 1 for t ≤ 0.

    Parameters
    ----------
    p, q
        Exponents of the norms in B_{p;q}, at least 1. Default 2 and p: for a kernel k·I the constant
        is smallest, 2 sup k, where p = q.

    References
    ----------
    Widmann et al. 2019, Theorems H.2 to H.4 and Lemma H.1.

    Examples
    --------
    >>> import caltest
    >>> caltest.test([[1.0, 0.0]] * 40, [1] * 40, "skce_b", null="bound").pvalue < 1e-3
    True
    """

    p: float = 2.0
    q: float | None = None

    name: ClassVar[str] = "bound"
    guarantee: ClassVar[Guarantee] = "bound"
    assumption: ClassVar[str] = "a bounded kernel"
    requires: ClassVar[str] = "a bounded kernel statistic"
    alternatives: ClassVar[tuple[Alternative, ...]] = ("greater",)

    @classmethod
    def fits(cls, form: Form) -> bool:
        """Fit forms with a bounded kernel."""
        return isinstance(form, HasTailBound)

    def answer(self, question: Question) -> Answer:
        """Return the bound."""
        if not isinstance(question.form, HasTailBound):
            raise TypeError(f"{type(question.form).__name__} has no bound")
        known = question.form.tail_bound
        constant = known.constant(self.p, self.p if self.q is None else self.q)
        ratio = max(0.0, question.observed / constant)
        if known.inequality == "mcdiarmid":
            excess = max(0.0, np.sqrt(known.n_samples * ratio) - 1.0)
            value = np.exp(-0.5 * excess**2)
        else:
            value = np.exp(-0.5 * (known.n_samples // 2) * ratio**2)
        return from_sides(float(value), 1.0, question)
