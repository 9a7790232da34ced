"""A form: a statistic as a function of the labels, once the predictions are fixed."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Literal, NamedTuple, TypeAlias, cast

import numpy as np
from numpy.typing import NDArray

from caltest._parallel import ALONE, Workers
from caltest._sums import Array as Array
from caltest._visible import quoted
from caltest.exceptions import InputError
from caltest.laws import Law
from caltest.lenses import Reduction
from caltest.pvalues import TIE_TOLERANCE, Alternative, evidence

#: Labels: class numbers; for predicted distributions, outcomes.
Labels: TypeAlias = NDArray[Any]

#: Rounding of a sum, relative to the sum of the sizes of its terms.
ROUNDING = 1e-14

#: Variance of a number of events below which it is treated as certain; its cube does not underflow.
CERTAIN = 1e-100


class Form(ABC):
    """A statistic as a function of labels, with the predictions fixed.

    A form evaluates one vector of labels or a block of draws in the same way. Its other abilities
    (conditional moments, a Gram matrix, a bound) are declared by deriving from the classes below, and a
    null asks for those it needs.
    """

    #: True if `of_labels` itself passes work to the workers; otherwise draws run in parallel.
    parallel_inside: bool = False

    #: Whether labels of two classes may be passed as `Bits`.
    takes_bits: bool = False

    #: A distribution-free bound, if one is known.
    tail_bound: TailBound | None = None

    @property
    def resolution(self) -> float:
        """Largest difference by rounding between two evaluations of one value; default 0.

        It matters if labels are almost certain, so that values vary by rounding only.
        """
        return 0.0

    @abstractmethod
    def of_labels(self, labels: Labels, workers: Workers = ALONE) -> Array:
        """Return the (B,) values for ``labels`` of shape (B, n)."""

    def value(self, labels: Labels, workers: Workers = ALONE) -> float:
        """Return the value for one label vector (n,)."""
        return float(self.of_labels(labels[None, :], workers)[0])

    def in_words(self, labels: Labels, found: bool) -> str:
        """Describe what the order of labels (n,) shows, if an error is found; "" if order is unused."""
        return ""


class OneByOne(Form):
    """A form that evaluates one label vector at a time, by its own `value`."""

    def of_labels(self, labels: Labels, workers: Workers = ALONE) -> Array:
        """Return the (B,) values for ``labels`` (B, n)."""
        return np.array([self.value(row) for row in labels], dtype=np.float64)


# ------------------------------------------------------------------ properties of a form


@dataclass(frozen=True)
class Moments:
    """The conditional moments of a statistic under H0, given the predictions."""

    mean: float
    variance: float
    skewness: float  #: Third standardised cumulant.
    skewness_error: float = 0.0  #: Bound or standard error of the skewness; 0 if it is exact.
    surprises: float = np.inf  #: Effective number of unlikely labels, see ``effective_surprises``.

    @classmethod
    def of_cumulants(
        cls, mean: float, variance: float, third: float, error: float = 0.0, surprises: float = np.inf
    ) -> Moments:
        """Standardise a third cumulant; a constant statistic has skewness 0."""
        if variance <= 0.0:
            return cls(mean, 0.0, 0.0, surprises=surprises)
        # The third power of the deviation may exceed the range of floats.
        skewness, error = (each / variance / variance**0.5 for each in (third, error))
        return cls(mean, variance, skewness, error, surprises)

    def scaled(self, factor: float) -> Moments:
        """Return the moments of ``factor`` times the statistic."""
        mean, variance = factor * self.mean, factor**2 * self.variance
        skewness = float(np.sign(factor)) * self.skewness
        return replace(self, mean=mean, variance=variance, skewness=skewness)


def effective_surprises(shares: Array, chances: Array) -> float:
    """Return the effective number of unlikely outcomes in a sum: (Σ s)² / Σ (s²/u).

    Term i has share s_i of the variance, and an outcome other than its most likely one with probability
    u_i; terms of share 0 are left out. The result is at most Σ u, and less if the variance sits where
    little is uncertain. If it is small, the distribution has few atoms, which no smooth curve fits.
    """
    counted = (shares > 0) & (chances > 0)
    s, u = shares[counted], chances[counted]
    if not len(s):
        return 0.0
    s = s / s.max()  # squares of tiny shares would underflow
    with np.errstate(over="ignore"):
        return float(s.sum() ** 2 / np.sum(s**2 / u))


class Lattice(NamedTuple):
    """Equally spaced values."""

    span: float = 0.0  #: Distance of neighbouring values; 0 if there is no lattice.
    spread: float = 0.0  #: Standard deviation about a value of the lattice; 0 if all lie on it.


class LatticeTerms(NamedTuple):
    """A statistic as a sum of independent whole numbers: T = start + span Σ_i S_i."""

    start: float  #: The smallest possible value.
    span: float  #: Distance of neighbouring values.
    masses: Array  #: The law of each S_i on 0..K, (N, K + 1); constant rows are left out.


Inequality: TypeAlias = Literal["mcdiarmid", "hoeffding"]


@dataclass(frozen=True)
class TailBound:
    """The inputs of a distribution-free bound of a form."""

    #: "mcdiarmid" (biased estimator) or "hoeffding" (mean over pairs).
    inequality: Inequality
    #: B_{p;q}, a bound of |h_ij|, as a function of p and q (Widmann et al. 2019, Lemma H.1).
    constant: Callable[[float, float], float]
    n_samples: int


@dataclass(frozen=True)
class ChiSquare:
    """The chi-square law under H0: ``factor`` · T + ``offset`` has it for the statistic T."""

    degrees: int
    factor: float = 1.0  #: Positive.
    offset: float = 0.0
    exact: bool = False  #: Whether the law holds in every finite sample, or as n grows.
    caveat: str = ""  #: Caveat that results print.


class HasMoments(Form):
    """A form whose mean, variance and skewness under H0 are known, given the predictions."""

    @abstractmethod
    def moments(self, workers: Workers = ALONE) -> Moments:
        """Return mean, variance and skewness of the value for labels drawn from the predictions."""


class HasLeadingSum(Form):
    """A quadratic statistic that may be close to the square of one sum, to a known degree."""

    probs: Array  #: The predictions, (n, m).

    @abstractmethod
    def leading(self, workers: Workers = ALONE) -> HasCumulantGenerator:
        """Return the sum over rows whose square carries most of the variance, up to a factor."""


class HasNormalLimit(Form):
    """A sum of independent terms with known mean and variance."""

    #: Whether they are known for these predictions.
    has_limit: bool = True
    #: A bound on how far one term can move the sum; infinite if unknown.
    reach: float = np.inf

    @abstractmethod
    def cumulant_generator(self, t: float) -> tuple[float, float, float]:
        """Return K(t), K'(t) and K''(t) of the statistic under H0, given the predictions."""


class HasCumulantGenerator(HasNormalLimit):
    """A sum of independent terms whose cumulant generating function is known exactly, for every t."""

    probs: Array  #: The predictions, (n, m).

    @property
    @abstractmethod
    def lattice(self) -> Lattice:
        """The lattice that the values lie on, or near."""

    @property
    @abstractmethod
    def surprises(self) -> float:
        """Effective number of unlikely outcomes, see ``effective_surprises``."""


class HasTerms(Form):
    """A mean of independent terms."""

    @abstractmethod
    def terms(self, labels: Labels) -> Array:
        """Return the terms for one label vector."""


class HasChiSquare(Form):
    """A statistic with a chi-square law under H0, given the predictions."""

    @property
    @abstractmethod
    def chi_square(self) -> ChiSquare:
        """The law."""

    def law_of(self, labels: Any) -> ChiSquare:
        """Return the law of the value for these labels, if it depends on them."""
        return self.chi_square


BrownianFunctional: TypeAlias = Literal["maximum", "range"]

_MEAN_OF_ABSOLUTE = float(np.sqrt(2.0 / np.pi))
_OVERSHOOT = 0.5826  # −ζ(1/2)/√(2π)
_CATALAN = 0.9159655941772190
#: E T, E T², E T³, and the number of boundaries that T measures the distance of.
_MOMENTS: dict[BrownianFunctional, tuple[float, float, float, int]] = {
    "maximum": (float(np.sqrt(np.pi / 2.0)), 2.0 * _CATALAN, _MEAN_OF_ABSOLUTE * np.pi**3 / 8.0, 1),
    "range": (2.0 * _MEAN_OF_ABSOLUTE, 4.0 * float(np.log(2.0)), _MEAN_OF_ABSOLUTE * np.pi**2 / 1.5, 2),
}


@dataclass(frozen=True)
class BrownianLimit:
    """The limit of a statistic T under H0: T/``scale`` tends to a functional of Brownian motion."""

    functional: BrownianFunctional  #: "maximum" for sup |W| on [0, 1], "range" for sup W − inf W.
    scale: float  #: σ, the standard deviation of the path at its end; 0 if all labels are certain.
    surprises: float  #: Effective number of unlikely labels of the path, see ``effective_surprises``.
    step: float = 0.0  #: Standard deviation of its steps, averaged in the time of the variance.

    @property
    def moments(self) -> Moments:
        """Mean, variance and skewness; the mean is reduced by what a path of steps misses in between.

        P(sup |W| > x) = 4 Σ_{k≥1} (−1)^{k−1} Q((2k − 1) x) gives sup |W| the moments √(π/2), 2 G
        (Catalan's constant) and √(2/π) π³/8; P(range > x) = 8 Σ_{k≥1} (−1)^{k−1} k Q(k x) gives the
        range 2 √(2/π), 4 log 2 and √(2/π) 2π²/3. A walk overshoots a boundary by about 0.583 of a step,
        so the range, with two boundaries, lacks twice that (Siegmund 1985, Section 10.4). Both are
        at least |W(1)|, whose mean is √(2/π).
        """
        if self.scale == 0.0:
            return Moments(0.0, 0.0, 0.0, surprises=self.surprises)
        first, second, third, ends = _MOMENTS[self.functional]
        mean = max(first - ends * _OVERSHOOT * self.step / self.scale, _MEAN_OF_ABSOLUTE)
        cumulant = third - 3.0 * first * second + 2.0 * first**3
        standard = Moments.of_cumulants(mean, second - first**2, cumulant, surprises=self.surprises)
        return standard.scaled(self.scale)


class HasBrownianLimit(Form):
    """A functional of a path that tends to Brownian motion under H0, given the predictions."""

    @property
    @abstractmethod
    def brownian_limit(self) -> BrownianLimit:
        """The functional and its scale."""


@dataclass(frozen=True, eq=False)
class LabelFunction(OneByOne):
    """T = function(probs, labels), evaluated one label vector at a time."""

    #: Takes the predictions and the labels (n,) or outcomes, and perhaps weights; returns a number.
    function: Callable[..., float]
    predictions: Array | Law  #: Probabilities (n, m), read-only, or predicted distributions.
    weights: Array | None = None  #: A third argument of the function, (n,); None if it takes two.

    @property
    def _name(self) -> str:
        return getattr(self.function, "__name__", None) or quoted(self.function)

    def check_unmoved(self, labels: Labels, value: float) -> None:
        """Raise if the function returns a different value for labels that it has seen before.

        A function with a memory (a counter, a running mean) has no single value to report. ``value`` is
        that of the observed labels (n,) before the draws.
        """
        again = self.value(labels)
        if again == value or abs(again - value) <= TIE_TOLERANCE * max(abs(again), abs(value)):
            return
        raise InputError(
            f"the statistic {self._name} returned {value:.6g} for the observed labels, and {again:.6g} "
            "for the same labels after the draws; it must depend on its two arguments alone, without "
            "memory of earlier calls or random numbers of its own."
        )

    def value(self, labels: Labels, workers: Workers = ALONE) -> float:
        """Return the value for one label vector (n,)."""
        numbers = labels.dtype if labels.dtype.kind == "f" else np.intp
        counts = () if self.weights is None else (self.weights.copy(),)  # copies: it may alter them
        returned = self.function(self.predictions, labels.astype(numbers), *counts)
        masked = isinstance(returned, np.ma.MaskedArray) and np.ma.is_masked(returned)
        try:
            value = np.nan if masked else float(returned)
        except (TypeError, ValueError, OverflowError):
            value = np.nan
        if np.isnan(value):
            found = f"the statistic {self._name} returned {quoted(returned)} on {len(labels)} rows"
            raise InputError(f"{found}; it must return one number, for every vector of labels.")
        return value


_TOGETHER = 64  # label vectors whose sums are held together
_WELL_ABOVE = 1e4  # times its rounding: the smallest standard deviation that a component may have
# Evidence as a function of a normal score x has slope |x| + 1 at most, and x has slope 4 at most in z.
# Scores beyond 40, with probability below 1/1600 (Cantelli), almost never tie with a draw.
_STEEPEST = 4.0 * 41.0


@dataclass(frozen=True, eq=False)
class Component:
    """One component of a combined form."""

    name: str  #: Name in reports.
    form: Form  #: The component as a function of labels; with moments, or with a Brownian limit.
    alternative: Alternative = "greater"  #: Direction of values that are evidence against H0.
    view: Reduction | None = None  #: The lens that the component is seen through; None for none.
    rounding: float = 0.0  #: Differences of values by rounding that the form does not know of.
    #: Moments under H0 close to the form's, or a function of workers that returns them; None for the
    #: form's own.
    law: Moments | Callable[[Workers], Moments] | None = None

    @property
    def resolution(self) -> float:
        """Largest difference by rounding between two evaluations of one value."""
        return max(self.form.resolution, self.rounding)

    def moments(self, workers: Workers = ALONE) -> Moments:
        """Return mean, variance and skewness under H0; a deviation is never as small as rounding.

        A deviation that may be due to rounding is raised well above it. Values farther out than
        rounding can reach (a label that was almost excluded) remain extreme.
        """
        if self.law is not None:
            known = self.law if isinstance(self.law, Moments) else self.law(workers)
        elif isinstance(self.form, HasMoments):
            known = self.form.moments(workers)
        else:
            known = cast("HasBrownianLimit", self.form).brownian_limit.moments
        least = _WELL_ABOVE * self.resolution
        if np.sqrt(known.variance) > least:
            return known
        return Moments(known.mean, least**2, 0.0, surprises=known.surprises)


@dataclass(frozen=True, eq=False)
class Combined(Form):
    """T = max_k −log p_k: how unlikely the most unlikely of several components is under H0.

    Every component is standardised by its moments under H0 given the predictions, which determine its
    tail probability p_k (:mod:`caltest.pvalues`), approximately. No guarantee of the p_k is needed:
    they depend only on the predictions and one label vector, so T is a statistic like any other, whose
    law is simulated. A component that cannot vary has p_k = 1.

    References
    ----------
    Tippett, "The methods of statistics", 1931, for the smallest p-value; Westfall and Young,
    "Resampling-based multiple testing", 1993, for its joint law.
    """

    components: tuple[Component, ...]
    #: The moments of the components, if known already.
    known: tuple[Moments, ...] | None = None

    parallel_inside = True

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the components."""
        return tuple(part.name for part in self.components)

    def moments_of_parts(self, workers: Workers = ALONE) -> tuple[Moments, ...]:
        """Return the components' moments."""
        return self.known or tuple(part.moments(workers) for part in self.components)

    def standardised(self, workers: Workers) -> Combined:
        """Return the form with the moments of its components, computed once."""
        return replace(self, known=self.moments_of_parts(workers))

    @property
    def resolution(self) -> float:
        """Largest effect of rounding in any component on its evidence, and so on T."""
        pairs = zip(self.components, self.moments_of_parts(), strict=True)
        moved = ((part.resolution, known.variance) for part, known in pairs if known.variance > 0.0)
        return float(max((_STEEPEST * by / np.sqrt(variance) for by, variance in moved), default=0.0))

    def values(self, labels: Labels, workers: Workers = ALONE) -> Array:
        """Return the components' values, (B, P), for labels (B, n)."""
        columns, summed, sums = list[Array](), None, np.empty(0)
        for part in self.components:
            form: Any = part.form
            seen = labels if part.view is None else part.view.outcomes(labels)
            scores = getattr(form, "shared_scores", None)
            if scores is None or len(labels) > _TOGETHER:
                columns.append(form.of_labels(seen, workers if form.parallel_inside else ALONE))
                continue
            if scores != summed:
                summed, sums = scores, scores.sums(seen)
            columns.append(form.reduce(sums, form.fixed))
        return np.column_stack(columns)

    def with_rounding(self, rounding: Array) -> Combined:
        """Return the form with components whose values may differ by rounding, by (P,) numbers."""
        pairs = zip(self.components, rounding, strict=True)
        parts = (replace(part, rounding=max(float(by), part.rounding)) for part, by in pairs)
        return Combined(tuple(parts))

    def evidence(self, values: Array, workers: Workers = ALONE) -> Array:
        """Return −log of the components' tail probabilities, (B, P); +∞ if a value is infinite."""
        found = np.zeros(values.shape)
        for place, known in enumerate(self.moments_of_parts(workers)):
            if known.variance > 0.0:
                z = (values[:, place] - known.mean) / np.sqrt(known.variance)
                found[:, place] = evidence(z, known.skewness, self.components[place].alternative)
        found[np.isinf(values)] = np.inf  # an impossible label: no draw has it
        return found

    def of_labels(self, labels: Labels, workers: Workers = ALONE) -> Array:
        """Return the (B,) values for ``labels`` (B, n)."""
        return np.asarray(self.evidence(self.values(labels, workers), workers).max(axis=1))
