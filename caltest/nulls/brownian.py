"""The Brownian null of cumulative differences: suprema and ranges of Brownian motion on [0, 1]."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from scipy.special import ndtr

from caltest._arguments import arguments
from caltest.forms import Form, HasBrownianLimit
from caltest.forms.paths import BrownianFunctional
from caltest.nulls.base import Answer, Guarantee, Null, Question, from_sides

_K = np.arange(1, 11)  # ten terms: what is left out is below 1e-80 on both sides of the switch
_ODD = 2 * _K - 1
_SIGNS = np.where(_K % 2 == 1, 1.0, -1.0)
_ZERO = 0.02  # the lower tails at this are below 1e-1000
_SURPRISES = 10.0  # fewer unlikely labels than this make a path of few jumps


@arguments()
@dataclass(frozen=True)
class Brownian(Null):
    """The law of Brownian motion W on [0, 1], to which the cumulative differences converge.

    Under H0 and given the predictions, C(x) = n⁻¹ Σ_{p_i ≤ x} (y_i − p_i) is a martingale whose
    variance ends at σ² = n⁻² Σ p_i (1 − p_i), which is known. As that sum grows, C/σ in the time of
    its own variance tends to Brownian motion (free at its end: not a bridge), so that
    max |C|/σ → sup |W| and (max C − min C)/σ → sup W − inf W. It draws nothing and costs one
    evaluation.

    C moves in steps and misses the peaks that W has between them, so with few rows, or few distinct
    scores, p is too large: the test rejects less often than it should. With rare events (so few labels
    in doubt that single surprises make C) it is unreliable, and small p-values are several times too
    small; a note says where. Take ``"monte_carlo"`` there.

    References
    ----------
    Feller, "The asymptotic distribution of the range of sums of independent random variables", Ann.
    Math. Statist. 22 (1951); Arrieta-Ibarra, Gujral, Tannen, Tygert, Xu, "Metrics of calibration for
    probabilistic predictions", JMLR 23 (2022).

    Examples
    --------
    >>> import caltest
    >>> digits = caltest.datasets.load_digits_predictions("naive_bayes")
    >>> result = caltest.test(digits.probs, digits.labels, "kuiper", null="brownian")
    >>> result.guarantee, result.rejects(0.05)
    ('asymptotic', True)
    """

    name: ClassVar[str] = "brownian"
    guarantee: ClassVar[Guarantee] = "asymptotic"
    assumption: ClassVar[str] = "many rows of uncertain labels, whose cumulated errors are Brownian"
    requires: ClassVar[str] = "a statistic of cumulative differences"

    @classmethod
    def fits(cls, form: Form) -> bool:
        """Fit functionals of a path that tends to Brownian motion."""
        return isinstance(form, HasBrownianLimit)

    def answer(self, question: Question) -> Answer:
        """Return the asymptotic p-value."""
        if not isinstance(question.form, HasBrownianLimit):
            raise TypeError(f"{type(question.form).__name__} has no Brownian limit")
        limit = question.form.brownian_limit
        observed = question.observed - question.form.resolution  # rounding counts for the null
        if limit.scale == 0.0:  # every label is certain
            return from_sides(1.0 if observed <= 0.0 else 0.0, 1.0, question)
        greater, less = tails(limit.functional, observed / limit.scale)
        if limit.surprises >= _SURPRISES:
            return from_sides(greater, less, question)
        note = (
            f"The statistic hangs on some {limit.surprises:.2g} unlikely labels, too few for a "
            "Brownian path: p is unreliable; use null='monte_carlo'."
        )
        return from_sides(greater, less, question, (note,))


def tails(functional: BrownianFunctional, x: float) -> tuple[float, float]:
    """Return P(T > x) and P(T ≤ x) for sup |W| ("maximum") or sup W − inf W ("range").

    Each law has two series, one of its theta function and one of that function's transform (Poisson
    summation). One converges fast for large x and is the upper tail to full relative precision, the
    other for small x and is the lower tail.

    Parameters
    ----------
    functional
        "maximum" or "range".
    x
        Any number; both laws live on x > 0.

    Returns
    -------
    tuple of float
        In [0, 1], with sum 1.

    References
    ----------
    Feller 1951, whose density of the range is integrated here term by term; both laws, and when they
    apply: Tygert, "Calibration of P-values for calibration and for deviation of a subpopulation from
    the full population", arXiv 2202.00100.

    Examples
    --------
    >>> round(tails("maximum", 2.2414)[0], 4), round(tails("range", 2.4977)[0], 4)
    (0.05, 0.05)
    """
    if x <= _ZERO:
        return 1.0, 0.0
    upper, lower, switch = _SERIES[functional]
    if x > switch:
        greater = min(1.0, upper(x))
        return greater, 1.0 - greater
    less = min(1.0, lower(x))
    return 1.0 - less, less


def _maximum_above(x: float) -> float:
    """Reflect at both walls: 4 Σ_{k≥1} (−1)^{k−1} Q((2k − 1) x), Q = 1 − Φ."""
    return float(4.0 * _SIGNS @ ndtr(-_ODD * x))


def _maximum_below(x: float) -> float:
    """Expand in the modes of an interval: (4/π) Σ_odd ± exp(−odd² π²/(8 x²))/odd."""
    return float(4.0 / np.pi * (_SIGNS / _ODD) @ np.exp(-0.5 * (_ODD * np.pi / (2.0 * x)) ** 2))


def _range_above(x: float) -> float:
    """Integrate Feller's density 8 Σ_{k≥1} (−1)^{k−1} k² φ(k x): 8 Σ (−1)^{k−1} k Q(k x)."""
    return float(8.0 * (_SIGNS * _K) @ ndtr(-_K * x))


def _range_below(x: float) -> float:
    """Transform that density and integrate: 8 Σ_odd (1/x² + 1/(odd π)²) exp(−(odd π)²/(2 x²))."""
    squares = (_ODD * np.pi) ** 2
    return float(8.0 * np.sum((x**-2 + 1.0 / squares) * np.exp(-0.5 * squares / x**2)))


_SERIES = {
    "maximum": (_maximum_above, _maximum_below, 1.0),
    "range": (_range_above, _range_below, 2.0),
}
