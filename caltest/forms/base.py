"""A form: a statistic as a function of the labels, once the predictions are fixed."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from caltest._parallel import ALONE, Workers
from caltest._tiles import Array as Array
from caltest._tiles import Tile
from caltest._work import Work

#: Classes, whole numbers; of predicted distributions, the outcomes.
Labels: TypeAlias = NDArray[Any]

#: Rounding of a sum, relative to the sum of the sizes of its terms.
ROUNDING = 1e-14

#: Variance of a number of events below which it counts as certain; its cube does not underflow.
CERTAIN = 1e-100


class Form(ABC):
    """A statistic as a function of labels; the predictions are already inside.

    A form evaluates one vector of labels or a block of draws alike. What else it can do (its
    conditional moments, a Gram matrix, a bound) it declares by deriving from the classes below, and a
    null asks for those it needs.
    """

    #: True if `of_labels` itself hands work to the workers; else draws are what is run in parallel.
    parallel_inside: ClassVar[bool] = False

    #: True if rounding may decide what the statistic looks at, so that the value of a label vector
    #: depends on which others it is evaluated with; then all are evaluated together.
    together: ClassVar[bool] = False

    #: A distribution-free bound, where one is known.
    tail_bound: TailBound | None = None
    #: Whether it is a U-statistic of degree two, the mean of h_ij over the pairs i ≠ j.
    is_u_statistic: bool = False

    def gram(self, labels: Labels) -> Tile:
        """Return h of a U-statistic as a tile function, its diagonal included."""
        raise TypeError(f"{type(self).__name__} has no Gram matrix")

    @property
    def resolution(self) -> float:
        """How far two evaluations of one value may differ, by rounding; default 0.

        It matters where labels are all but certain, so that rounding is all that varies.
        """
        return 0.0

    def work(self, draws: int) -> Work:
        """Return what the values of so many label vectors take, about; nothing if it is not known."""
        return {}

    @abstractmethod
    def of_labels(self, labels: Labels, workers: Workers = ALONE) -> Array:
        """Return the (B,) values for ``labels`` of shape (B, n)."""

    def value(self, labels: Labels, workers: Workers = ALONE) -> float:
        """Return the value for one label vector (n,)."""
        return float(self.of_labels(labels[None, :], workers)[0])


# ------------------------------------------------------------------ what can be known of a form


@dataclass(frozen=True)
class Moments:
    """The conditional moments of a statistic under H0, given the predictions."""

    mean: float
    variance: float
    skewness: float  #: Third standardised cumulant.
    skewness_error: float = 0.0  #: Bound or standard error of the skewness; 0 where it is exact.
    surprises: float = np.inf  #: Unlikely labels that it depends on, :func:`effective_surprises`.

    @classmethod
    def of_cumulants(
        cls,
        mean: float,
        variance: float,
        third: float,
        third_error: float = 0.0,
        surprises: float = np.inf,
    ) -> Moments:
        """Standardise a third cumulant; a constant statistic has skewness 0."""
        if variance <= 0.0:
            return cls(mean, 0.0, 0.0, surprises=surprises)
        deviation = variance**0.5  # its third power may be beyond the range of floats
        skewness, error = (each / variance / deviation for each in (third, third_error))
        return cls(mean, variance, skewness, error, surprises)

    def scaled(self, factor: float) -> Moments:
        """Return the moments of ``factor`` times the statistic."""
        return Moments(
            factor * self.mean,
            factor**2 * self.variance,
            float(np.sign(factor)) * self.skewness,
            self.skewness_error,
            self.surprises,
        )


def effective_surprises(shares: Array, chances: Array) -> float:
    """Return how many unlikely outcomes a sum depends on: (Σ s)² / Σ (s²/u).

    Term i has share s_i of the variance, and something other than its most likely outcome happens
    with chance u_i; terms of share 0 do not count. Never more than Σ u, and less if the variance sits
    where little is uncertain. Few of them make a distribution of few atoms, which no smooth curve fits.
    """
    s, u = shares, chances
    if not min(s.min(initial=1.0), u.min(initial=1.0)) > 0.0:
        counted = (shares > 0) & (chances > 0)
        s, u = shares[counted], chances[counted]
    if not len(s):
        return 0.0
    s = s / s.max()  # squares of tiny shares would vanish
    with np.errstate(over="ignore"):
        return float(s.sum() ** 2 / np.sum(s**2 / u))


class Lattice(NamedTuple):
    """Equally spaced values."""

    span: float = 0.0  #: Distance of neighbouring values; 0 if there is no lattice.
    spread: float = 0.0  #: Standard deviation about a value of the lattice; 0 if all lie on it.


class LatticeTerms(NamedTuple):
    """A statistic as a sum of independent whole numbers: T = start + span Σ_i S_i."""

    start: float  #: The least possible value.
    span: float  #: Distance of neighbouring values.
    masses: Array  #: (N, K + 1) the law of each S_i on 0..K; rows that cannot move are left out.


@dataclass(frozen=True)
class TailBound:
    """What a distribution-free bound needs to know of a form."""

    #: "mcdiarmid" (biased estimator) or "hoeffding" (mean over pairs).
    inequality: Literal["mcdiarmid", "hoeffding"]
    #: B_{p;q}, a bound of |h_ij|, as a function of p and q (Widmann et al. 2019, Lemma H.1).
    constant: Callable[[float, float], float]
    n_samples: int


@dataclass(frozen=True)
class ChiSquare:
    """The chi-square law of a statistic T under H0: ``factor`` · T + ``offset`` has it."""

    degrees: int
    factor: float = 1.0  #: Positive.
    offset: float = 0.0
    exact: bool = False  #: Whether the law holds in every finite sample, or as n grows.


class HasMoments(Form):
    """Knows mean, variance and skewness under H0, given the predictions."""

    @abstractmethod
    def moments(self, workers: Workers = ALONE) -> Moments:
        """Return mean, variance and skewness of the value if labels are drawn from the predictions."""


class HasLeadingSum(Form):
    """A quadratic statistic, of which is known how close it is to the square of one sum."""

    probs: Array  #: The predictions, (n, m).

    @abstractmethod
    def leading(self, workers: Workers = ALONE) -> HasCumulantGenerator:
        """Return the sum over rows whose square carries most of the variance, up to a factor."""


class HasCumulantGenerator(Form):
    """A sum of independent terms: its cumulant generating function is known exactly."""

    probs: Array  #: The predictions, (n, m).

    @property
    @abstractmethod
    def lattice(self) -> Lattice:
        """The lattice on which, or about which, the values lie."""

    @property
    @abstractmethod
    def surprises(self) -> float:
        """Effective number of unlikely outcomes, see :func:`effective_surprises`."""

    @abstractmethod
    def cumulant_generator(self, t: float) -> tuple[float, float, float]:
        """Return K(t), K'(t) and K''(t) of the statistic under H0, given the predictions."""

    @property
    def reach(self) -> float:
        """How far a term may move the sum at most, or more; infinite if that is not known."""
        return np.inf


class HasLatticeTerms(Form):
    """May be a sum of independent whole numbers, whose law can be computed exactly."""

    @abstractmethod
    def lattice_terms(self, most: int) -> LatticeTerms | None:
        """Return them; None if it is no such sum, or has more than ``most`` possible values."""


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
