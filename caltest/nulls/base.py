"""A null: how a statistic is distributed when the labels really are drawn from the predictions."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from caltest import pvalues
from caltest._parallel import Workers
from caltest.data import Rows
from caltest.data.attributes import one_cluster_counts
from caltest.exceptions import InputError
from caltest.forms import Form
from caltest.pvalues import Alternative
from caltest.statistics import Statistic

Array: TypeAlias = NDArray[np.float64]
Guarantee: TypeAlias = Literal["exact", "bound", "asymptotic", "approximate"]

#: What each guarantee promises of a p-value, in the words of the report.
GUARANTEES: dict[Guarantee, str] = {
    "exact": "valid for any sample size",
    "bound": "valid for any sample size, but much larger than necessary",
    "asymptotic": "valid only as the number of rows grows",
    "approximate": "an approximation without a guarantee",
}


@dataclass(frozen=True, eq=False)
class Question:
    """One test to carry out: all that a null needs to know.

    Attributes
    ----------
    statistic
        The statistic, with its options chosen.
    form
        What ``statistic.given(rows)`` returned: the value as a function of the labels.
    rows
        The predictions, weights and clusters, after the lens.
    labels
        The observed labels, (n,), after the lens; or observed numbers.
    alternative
        Which values count against calibration.
    n_resamples
        How many label sets to draw, for a null that draws any.
    seed
        Seed of all random numbers: the same seed gives the same p-value.
    workers
        The threads, processes or machines that share the draws; pass them on to the form.
    value
        The observed value, where it is known. Default None: computed where a null asks for it.
    asked
        The statistic before its rules were fitted to all rows. Default None: not known.
    """

    statistic: Statistic
    form: Form
    rows: Rows
    labels: NDArray[Any]
    alternative: Alternative
    n_resamples: int
    seed: int
    workers: Workers
    value: float | None = None
    asked: Statistic | None = None

    @cached_property
    def observed(self) -> float:
        """The statistic's value for the labels.

        Raises
        ------
        InputError
            If it is not a number.
        """
        if self.value is not None:
            return self.value
        return observed_value(self.statistic, self.form, self.labels, self.workers)

    @property
    def clusters(self) -> NDArray[np.intp]:
        """The cluster of every row, (n,), 0..G−1.

        Raises
        ------
        InputError
            If rows of one cluster alone count.
        """
        codes = self.rows.clusters
        assert codes is not None  # a null of clusters is asked where there are some
        numbers = np.unique(codes, return_inverse=True)[1]
        if numbers.max() == 0:
            raise one_cluster_counts()
        return numbers

    @property
    def chance(self) -> float:
        """The probability of the observed labels under H0, in (0, 1]; no p-value can be smaller."""
        return min(max(self.rows.law.chance(self.labels), pvalues.SMALLEST), 1.0)


def observed_value(statistic: Statistic, form: Form, labels: NDArray[Any], workers: Workers) -> float:
    """Return the statistic's value for the observed labels; raise InputError if it is not a number."""
    value = form.value(labels, workers)
    check_number(statistic, value)
    return value


def check_number(statistic: Statistic, value: float) -> None:
    """Raise InputError if the observed value is not a number."""
    if math.isnan(value):
        raise InputError(f"the statistic {statistic.name!r} is not a number on these data.")


@dataclass(frozen=True)
class Part:
    """One component of a combined statistic, with its p-values.

    Attributes
    ----------
    name
        What it is.
    value
        Its value for the observed labels.
    pvalue
        Its own p-value, as if it were the only one.
    adjusted
        The same adjusted for the number of parts: if calibration holds, the chance that any part has
        one of at most α is at most α.
    """

    name: str
    value: float
    pvalue: float
    adjusted: float


@dataclass(frozen=True, eq=False)
class Answer:
    """What a null returns: a p-value, and how it was computed.

    Attributes
    ----------
    pvalue
        In (0, 1].
    statistic
        The observed value; None where it is the question's.
    n_resamples
        Resamples used; None without any.
    exceedances
        Resamples at least as extreme as observed, of two sides the fewer; None without any.
    pvalue_interval
        Clopper–Pearson interval of the p-value of infinitely many resamples; None without any.
    null_distribution
        The resampled statistics, comparable with ``statistic``; None without any.
    notes
        What a reader of the p-value should know.
    parts
        The parts of a combined statistic, where their joint distribution was drawn.
    guarantee
        What the p-value is worth; None: as the null says.
    """

    pvalue: float
    statistic: float | None = None
    n_resamples: int | None = None
    exceedances: int | None = None
    pvalue_interval: tuple[float, float] | None = None
    null_distribution: Array | None = None
    notes: tuple[str, ...] = ()
    parts: tuple[Part, ...] = ()
    guarantee: Guarantee | None = None


class Null(ABC):
    """Base class of the ways to compute a p-value; each states its one assumption.

    Subclasses are frozen dataclasses of options.

    Examples
    --------
    >>> import caltest
    >>> null = caltest.nulls.MonteCarlo()
    >>> null.name, null.guarantee
    ('monte_carlo', 'exact')
    >>> print(null.assumption)
    none: rows are independent, that is all
    """

    #: Registered name.
    name: ClassVar[str]
    #: What the p-value is worth.
    guarantee: ClassVar[Guarantee]
    #: The assumption it makes, as a sentence.
    assumption: ClassVar[str]
    #: Alternatives it can answer.
    alternatives: ClassVar[tuple[Alternative, ...]] = ("greater", "less", "two-sided")
    #: What it needs of a form, as words.
    requires: ClassVar[str]
    #: The same as kinds of forms, of which any will do.
    forms: ClassVar[tuple[type[Form], ...]] = (Form,)
    #: Whether it is for rows in clusters, inside which they may depend on each other.
    of_clusters: ClassVar[bool] = False
    #: Whether it draws; else its work is that of one label vector, about.
    resamples: ClassVar[bool] = False

    @classmethod
    def fits(cls, form: Form) -> bool:
        """Say whether the form offers what this null needs."""
        return isinstance(form, cls.forms)

    def form_of(self, question: Question) -> Any:
        """Return the form; raise TypeError if it does not offer what this null needs."""
        if not self.fits(question.form):
            raise TypeError(f"{self.name!r} needs {self.requires}, no {type(question.form).__name__}")
        return question.form

    def guarantee_for(self, form: Form) -> Guarantee:
        """Say what the p-value is worth for a form, where that depends on it."""
        return self.guarantee

    def label_vectors(self, n_resamples: int) -> int:
        """Return to the values of how many label vectors its work amounts, about."""
        return n_resamples if self.resamples else 1

    @abstractmethod
    def answer(self, question: Question) -> Answer:
        """Return the p-value."""


def from_draws(draws: Array, question: Question, *, notes: tuple[str, ...] = ()) -> Answer:
    """Rank the observed statistic among ``draws``."""
    found = ranked(draws, question.observed, question.alternative, question.form.resolution)
    return replace(found, notes=notes)


def ranked(draws: Array, value: float, alternative: Alternative, resolution: float) -> Answer:
    """Rank a value among ``draws``; those closer to it than ``resolution`` are ties."""
    above = pvalues.count(draws, value, alternative, resolution)
    return Answer(
        pvalue=pvalues.pvalue(above, len(draws), alternative),
        statistic=value,
        n_resamples=len(draws),
        exceedances=above,
        pvalue_interval=pvalues.interval(above, len(draws), alternative),
        null_distribution=draws,
    )


def from_sides(greater: float, less: float, question: Question, notes: tuple[str, ...] = ()) -> Answer:
    """Return the analytic answer, kept inside (0, 1].

    Whatever the statistic, P(T ≥ t) is at least the probability of the labels that gave t: p is raised
    to that. It matters only where nearly all labels are certain, and there it matters much.
    """
    p = pvalues.combine_sides(greater, less, question.alternative)
    return Answer(pvalue=min(max(p, question.chance), 1.0), notes=notes)
