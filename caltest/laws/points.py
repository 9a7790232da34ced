"""Point forecasts: one functional of every outcome is stated, and nothing else.

The claim is that E V(x, Y) = 0, where V is the identification function of the functional: 1{y ≤ x} − τ
for a quantile, x − y for the mean, 2 |1{y ≤ x} − τ| (x − y) for an expectile (Gneiting 2011). A
quantile states how often the outcome lies below it, so it is a quantile forecast at one level, and
every test is exact. Outcomes cannot be drawn from a mean alone; guarantees for means rest on the range
of possible outcomes.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from caltest._arguments import Number, arguments, flag
from caltest._visible import attempt, quoted
from caltest.exceptions import Argument, InputError, Premise
from caltest.laws.base import Shaped, finite_table
from caltest.laws.classes import Array, Law, Outcomes
from caltest.laws.quantiles import Quantiles

MEAN, MEDIAN, QUANTILE, EXPECTILE = "mean", "median", "quantile", "expectile"
_GIVE = "give 'mean', 'median', or with a level 'quantile:0.9' or 'expectile:0.7'"
_ENDS = "give the smallest and the largest number that an outcome can be"


@arguments(low=Number(), high=Number(), symmetric=flag)
class Point(Shaped):
    """Point forecasts: one number per row, as a regressor predicts it, of a named functional.

    For a median or a quantile every answer is exact. For a mean or an expectile it depends on what is
    known about the range of outcomes. With both ends, ``low`` and ``high``, p-values and intervals are
    exact. With ``low`` alone, as for amounts, counts and times, "too low" is exact and "too high" is
    about right. With neither, both sides are about right: they assume that no outcomes rarer than 1 in
    n/3 carry the mean, which no test can rule out (Bahadur and Savage 1956).

    Parameters
    ----------
    values : array of shape (n,)
        Forecasts, in the units of the outcome.
    functional : str, default "mean"
        Which functional of the outcome they are: "mean" (what a regressor fitted by squared error
        predicts), "median", "quantile:0.9", or "expectile:0.7", with any level between 0 and 1.
    low, high : float, optional
        The smallest and the largest possible outcome, for all rows; 0 and 100 for a share in percent.
        Default None: not known. For quantiles they change nothing.
    symmetric : bool, default False
        Whether outcomes of every row are known to lie symmetrically about their mean. P-values are then
        exact without ends; intervals stay about right.

    Raises
    ------
    InputError
        If forecasts are not finite or outside the ends, or the functional is none of these.

    References
    ----------
    Gneiting, "Making and evaluating point forecasts", JASA 106 (2011); Bahadur and Savage, "The
    nonexistence of certain statistical procedures in nonparametric problems", 1956; Waudby-Smith and
    Ramdas, "Estimating means of bounded random variables by betting", JRSS B 86 (2024).

    Examples
    --------
    >>> import numpy as np, caltest
    >>> rng = np.random.default_rng(0)
    >>> expected = rng.uniform(20, 60, 800)
    >>> share = (expected + rng.normal(0, 10, 800)).clip(0, 100)
    >>> predicted = caltest.predictive.Point(expected + 3, low=0, high=100)
    >>> found = caltest.test(predicted, share, rng=0)
    >>> found.rejects(0.05), found.guarantee
    (True, 'exact')
    """

    about = "point forecasts"
    instead = "use 'point_bias', 'point_cumulative' or 'point_slope', or give whole distributions"
    _by_row = ("values",)

    values: Array  #: Forecasts, (n,).

    def __init__(
        self,
        values: Any,
        functional: str = MEAN,
        *,
        low: float | None = None,
        high: float | None = None,
        symmetric: bool = False,
    ) -> None:
        self.given = values
        table = finite_table("values", values, "one forecast a row, (n,)", ndim=(1, 2))
        if table.ndim == 2 and table.shape[1] > 1:
            raise InputError(f"values has shape {table.shape}; give one forecast a row, (n,).")
        self.values, self._shape = table.reshape(-1), table.shape[:1]
        kind, colon, level = functional.partition(":") if isinstance(functional, str) else ("",) * 3
        self.tau = (attempt(lambda: float(level)) or 0.0) if colon else 0.5
        named = kind in (QUANTILE, EXPECTILE) if colon else kind in (MEAN, MEDIAN)
        if not (named and 0.0 < self.tau < 1.0):
            raise InputError(argument="functional", found=quoted(functional), do=_GIVE)
        middle = {QUANTILE: MEDIAN, EXPECTILE: MEAN} if self.tau == 0.5 else {}
        self.functional = middle.get(kind, functional)
        self.symmetric, self.low, self.high = symmetric, low, high
        self._range = -np.inf if low is None else low, np.inf if high is None else high
        if symmetric and kind == EXPECTILE and self.tau != 0.5:
            text = "{argument} is about means, and these are expectiles; leave it out, or give ends."
            raise InputError(text, argument="symmetric")
        if self.bounded and not self.low < self.high:  # type: ignore[operator]
            found = f"{low:g}, not below the largest number of outcomes, {high:g}"
            raise InputError(argument="low", found=found, do=_ENDS)
        self._inside("the forecast", self.values)

    @property
    def of_quantile(self) -> bool:
        """Whether the functional is a median or a quantile."""
        return self.functional.partition(":")[0] in (MEDIAN, QUANTILE)

    @property
    def bounded(self) -> bool:
        """Whether both ends of the range of outcomes are known."""
        return self.low is not None and self.high is not None

    def _inside(self, what: str, numbers: Array) -> Array:
        """Return the numbers; raise if one is outside the range of outcomes."""
        low, high = self._range
        for row in np.flatnonzero((numbers < low) | (numbers > high))[:1]:
            below = numbers[row] < low
            end = Argument("low", self.low) if below else Argument("high", self.high)
            found = f"{what} {numbers[row]:g} in {{row}} is {'below' if below else 'above'} {{end}}"
            raise InputError(f"{found}; correct that end, or such rows.", row=int(row), end=end)
        return numbers

    def outcomes(self, values: object) -> Array:
        """Check outcomes, and return them as (n,)."""
        return self._inside("the outcome", super().outcomes(values))

    def met(self, outcomes: Any, weights: Array | None = None) -> tuple[Law, Outcomes]:
        """Return the law and outcomes; a quantile becomes a quantile forecast at one level."""
        if not self.of_quantile:
            return self, self.outcomes(outcomes)
        law = Quantiles([self.tau], self.values[:, None])
        law.given, law.functional = self.given, self.functional
        law.about = "median forecasts" if self.functional == MEDIAN else law.about
        return law.met(outcomes, weights)

    def level(self) -> Array:
        """Return the forecasts, (n,)."""
        return self.values

    def spread(self) -> Array:
        """Return 0, as no spread is stated."""
        return np.zeros(self.n_samples)

    def errors(self, outcomes: Any) -> Array:
        """Return V(x, y) at outcomes (…, n): forecast less outcome for means; 0 on average under H0."""
        return self.identified(self.values - outcomes)

    def identified(self, apart: Array) -> Array:
        """Return V of forecasts less outcomes; V times the difference is the loss."""
        if self.tau == 0.5:
            return np.asarray(apart)
        return np.asarray(2.0 * np.abs((apart >= 0.0) - self.tau) * apart)

    @property
    def ends(self) -> tuple[Array, Array]:
        """Smallest and largest V(x, y) of every row, (n,) each; infinite if unknown."""
        low, high = self._range
        with np.errstate(invalid="ignore"):
            return self.errors(high), self.errors(low)

    @property
    def scale(self) -> float:
        """Largest possible difference of two V(x, y) of a row, for any forecast between the ends."""
        return float(2.0 * max(self.tau, 1.0 - self.tau) * (self.high - self.low))  # type: ignore[operator]

    @property
    def doubts(self) -> tuple[Premise, ...]:  # type: ignore[override]
        """Assumptions about outcomes that no test of such forecasts can check."""
        if self.bounded or self.symmetric or self.of_quantile:
            return ()
        rare = f"outcomes rarer than 1 in {max(self.n_samples // 3, 2):,} do not carry a mean"
        seen = f"Answers suppose that {rare}, which no test can show"
        do = "give the ends of outcomes, low and high, if there are any"
        if self.low is not None or self.high is not None:
            way, end = ("low", "high") if self.high is None else ("high", "low")
            seen += f"; that forecasts are too {way} is exact"
            do = f"give the other end of outcomes, {end}, too, if there is one"
        return (Premise("tails of outcomes", seen, do),)

    def remarks(self, outcomes: Outcomes) -> tuple[str, ...]:
        """Return a remark on what is better than a mean, if outcomes may be counts."""
        if self.low != 0.0 or self.high is not None or self.of_quantile or outcomes.min() > 0.0:
            return ()
        law = "a law, such as scipy.stats.poisson(rate * exposure), is tested exactly, on both sides"
        return (f"Of outcomes that are counts, or counts by exposure, {law}.",)
