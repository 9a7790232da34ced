"""A null: the distribution of a statistic if the labels really are drawn from the predictions.

This module also has the exact null, which draws them.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar, Literal, TypeAlias, cast

import numpy as np
from numpy.typing import NDArray

from caltest import pvalues
from caltest._arguments import options
from caltest._parallel import Workers
from caltest._sums import Array
from caltest.blocks import Held, goes_by_rows, table_of_blocks
from caltest.data import Rows
from caltest.exceptions import InputError
from caltest.forms import Combined, Form, LabelFunction
from caltest.pvalues import Alternative
from caltest.resampling import Draws, columns_of, table
from caltest.statistics import Statistic

Guarantee: TypeAlias = Literal["exact", "bound", "asymptotic", "approximate"]

#: Guarantee of a p-value, in the words of the report.
GUARANTEES: dict[Guarantee, str] = {
    "exact": "valid for any sample size",
    "bound": "valid for any sample size, but much larger than necessary",
    "asymptotic": "valid only as the number of rows grows",
    "approximate": "an approximation without a guarantee",
}


@dataclass(frozen=True, eq=False)
class Trial:
    """Rows with their observed outcomes, and how to draw outcomes instead.

    A :class:`Question` asks for one statistic of a trial; an audit asks for many.
    """

    rows: Rows
    labels: NDArray[Any]
    n_resamples: int
    seed: int
    workers: Workers

    def question(self, statistic: Statistic, form: Form, side: Alternative, **more: Any) -> Question:
        """Return the question about one statistic and its form; ``more`` sets other fields."""
        drawn = self.n_resamples, self.seed, self.workers
        return Question(self.rows, self.labels, *drawn, statistic, form, side, **more)


@dataclass(frozen=True, eq=False)
class Question(Trial):
    """One test to carry out: everything that a null needs.

    Attributes
    ----------
    rows : Rows
        The predictions, weights and clusters, after the lens.
    labels : array of shape (n,)
        The observed labels, after the lens; or observed numbers.
    n_resamples : int
        How many label sets to draw, for a null that draws any.
    seed : int
        Seed of all random numbers: the same seed gives the same p-value.
    workers : Workers
        The threads, processes or machines that share the draws; pass them on to the form.
    statistic : Statistic
        The statistic, with its options chosen.
    form : Form
        What ``statistic.given(rows)`` returned: the value as a function of the labels.
    alternative : {"greater", "less", "two-sided"}
        Which values count against calibration.
    asked : Statistic or None
        The statistic before its rules were fitted to all rows. Default None: not known.
    completions : tuple of arrays
        For censored times, the same labels imputed anew, exchangeable with the first. Default none.
    """

    statistic: Statistic
    form: Form
    alternative: Alternative
    asked: Statistic | None = None
    completions: tuple[NDArray[Any], ...] = ()

    @cached_property
    def observed(self) -> float:
        """The statistic's value for the labels.

        Raises
        ------
        InputError
            If it is not a number.
        """
        return observed_value(self.statistic, self.form, self.labels, self.workers)

    @property
    def clusters(self) -> NDArray[np.intp]:
        """The cluster of every row, (n,), 0..G−1."""
        assert self.rows.clusters is not None  # a null of clusters is used only with clusters
        return self.rows.clusters

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
class ComponentAnswer:
    """One component of a combined statistic, with its p-values.

    Attributes
    ----------
    name : str
        What it is.
    value : float
        Its value for the observed labels.
    pvalue : float
        Its own p-value, as if it were the only one.
    adjusted : float
        The same adjusted for the number of parts: if calibration holds, the chance that any part has
        one of at most α is at most α.
    """

    name: str
    value: float
    pvalue: float
    adjusted: float


@dataclass(frozen=True, eq=False)
class Answer:
    """The result of a null: a p-value, and how it was computed.

    Attributes
    ----------
    pvalue : float
        In (0, 1].
    statistic : float or None
        The observed value; None where it is the question's.
    n_resamples : int or None
        Resamples used; None without any.
    exceedances : int or None
        Resamples at least as extreme as observed, for the side with fewer; None without any.
    pvalue_interval : tuple of two floats, or None
        Clopper–Pearson interval of the p-value of infinitely many resamples; None without any.
    null_distribution : array of shape (B,), or None
        The resampled statistics, comparable with ``statistic``; None without any.
    notes : tuple of str
        What a reader of the p-value should know.
    parts : tuple of ComponentAnswer
        The parts of a combined statistic, where their joint distribution was drawn.
    guarantee : {"exact", "bound", "asymptotic", "approximate"} or None
        What the p-value is worth; None: as the null says.
    """

    pvalue: float
    statistic: float | None = None
    n_resamples: int | None = None
    exceedances: int | None = None
    pvalue_interval: tuple[float, float] | None = None
    null_distribution: Array | None = None
    notes: tuple[str, ...] = ()
    parts: tuple[ComponentAnswer, ...] = ()
    guarantee: Guarantee | None = None


class Null(ABC):
    """Base class of the ways to compute a p-value; each states its assumption.

    Subclasses are frozen dataclasses of options.

    Examples
    --------
    >>> import caltest
    >>> null = caltest.nulls.MonteCarlo()
    >>> null.name, null.guarantee
    ('monte_carlo', 'exact')
    """

    #: Registered name.
    name: ClassVar[str]
    #: Guarantee of the p-value.
    guarantee: ClassVar[Guarantee]
    #: Alternatives it can answer.
    alternatives: ClassVar[tuple[Alternative, ...]] = ("greater", "less", "two-sided")
    #: Requirement on a form, in words.
    requires: ClassVar[str]
    #: The same as kinds of forms, any of which is enough.
    forms: ClassVar[tuple[type[Form], ...]] = (Form,)
    #: Whether it is for rows in clusters, whose rows may depend on each other.
    of_clusters: ClassVar[bool] = False
    #: Whether it draws; otherwise it takes about as long as one label vector.
    resamples: ClassVar[bool] = False
    #: Whether it handles all imputations of censored times itself, with the same draws.
    takes_completions: ClassVar[bool] = False

    @classmethod
    def fits(cls, form: Form) -> bool:
        """Return whether the form has what this null needs."""
        return isinstance(form, cls.forms)

    def guarantee_for(self, form: Form) -> Guarantee:
        """Return the guarantee of the p-value for a form, if it depends on the form."""
        return self.guarantee

    @abstractmethod
    def answer(self, question: Question) -> Answer:
        """Return the p-value."""

    def answer_completed(self, question: Question) -> Answer:
        """Return the p-value; if censored times were imputed, the one of all imputations."""
        if self.takes_completions or not question.completions:
            return self.answer(question)
        every = (question.labels, *question.completions)
        return combined([self.answer(replace(question, labels=each, completions=())) for each in every])


def from_draws(draws: Array, question: Question, *, notes: tuple[str, ...] = ()) -> Answer:
    """Rank the observed statistic among ``draws``."""
    found = ranked(draws, question.observed, question.alternative, question.form.resolution)
    return replace(found, notes=notes)


def ranked(draws: Array, value: float, alternative: Alternative, resolution: float) -> Answer:
    """Rank a value among ``draws``; draws closer to it than ``resolution`` are ties."""
    above = pvalues.count(draws, value, alternative, resolution)
    p = pvalues.pvalue(above, len(draws), alternative)
    ends = pvalues.interval(above, len(draws), alternative)
    return Answer(p, value, len(draws), above, pvalue_interval=ends, null_distribution=draws)


def from_sides(greater: float, less: float, question: Question, notes: tuple[str, ...] = ()) -> Answer:
    """Return the analytic answer, kept inside (0, 1].

    For any statistic, P(T ≥ t) is at least the probability of the labels that gave t, so p is raised to
    it. It matters only if nearly all labels are certain, and then it matters much.
    """
    p = pvalues.combine_sides(greater, less, question.alternative)
    return Answer(pvalue=min(max(p, question.chance), 1.0), notes=notes)


# ------------------------------------------------------------------ the exact null
#
# Under H0, and given the predictions, the labels are independent draws y_i ~ Cat(g_i). The statistic of
# the observed labels and those of B drawn label vectors are then exchangeable, so p = (1 + #{draws ≥
# observed}) / (B + 1) satisfies P(p ≤ α) ≤ α in every finite sample, for any statistic (Barnard 1963).


@options()
class MonteCarlo(Null):
    """Exact p-value, the default: the statistic's rank among labels drawn from the predictions.

    Assumption: rows are independent; no other.

    Examples
    --------
    >>> import caltest
    >>> probs = [[0.9, 0.1]] * 20
    >>> caltest.test(probs, [0] * 10 + [1] * 10, rng=0).pvalue
    0.001
    """

    name = "monte_carlo"
    guarantee = "exact"
    requires = "any statistic"
    resamples = takes_completions = True

    def answer(self, question: Question) -> Answer:
        """Return the exact p-value."""
        form, workers = question.form, question.workers
        if isinstance(form, Combined):
            form = form.standardised(workers)
            question = replace(question, form=form)
        draws = Draws(question.rows.sampler(question.seed), question.labels, question.n_resamples)
        columns = columns_of(form)
        if goes_by_rows(columns, draws):
            values, _ = table_of_blocks(Held(columns, draws), question.n_resamples, workers)
        else:
            values = table(columns, draws, workers)
        if getattr(question.rows.law, "levels", None) is not None:  # these have cells, and no ends
            values[0, len(question.rows.impossible(question.labels)) > 0] = np.inf
        found = answer_of(form, values, question.alternative, workers)
        if question.completions:
            every = [found]
            for labels in question.completions:
                own = [column.form.of_labels(column.outcomes(labels[None]))[0] for column in columns]
                anew = np.vstack([own, values[1:]])
                every.append(answer_of(form, anew, question.alternative, workers))
            found = combined(every)
        check_number(question.statistic, cast("float", found.statistic))
        if isinstance(form, LabelFunction):
            form.check_unmoved(question.labels, float(values[0, 0]))
            return found
        # Draws may sum in another order than `estimate`, whose value is reported.
        return replace(found, statistic=question.observed)


def combined(answers: Sequence[Answer]) -> Answer:
    """Return one answer from exchangeable ones, for several imputations of the same data."""
    first, n = answers[0], len(answers)
    parts = []
    for same in zip(*(each.parts for each in answers), strict=True):
        own = [pvalues.of_exchangeable([getattr(e, k) for e in same]) for k in ("pvalue", "adjusted")]
        parts.append(replace(same[0], pvalue=own[0], adjusted=max(own)))
    seen = f"Censored times were completed {n} times. The value is that of the first"
    note = f"{seen}; p-values are twice the smallest running mean of those of each."
    p = pvalues.of_exchangeable([each.pvalue for each in answers])
    several = replace(first, pvalue_interval=None, exceedances=None, notes=(*first.notes, note))
    return replace(several, pvalue=p, parts=tuple(parts))


def answer_of(
    form: Form, values: Array, alternative: Alternative, workers: Workers, margin: float | None = None
) -> Answer:
    """Rank the observed labels among the draws; for a combined statistic, every component too.

    Parameters
    ----------
    form
        The statistic.
    values
        (1 + B, 1), or (1 + B, P) for components, with the observed labels first.
    alternative
        Direction of values that are evidence against H0.
    workers
        The worker pool.
    margin
        Largest difference of two evaluations of a value. Default: the form's.
    """
    if not isinstance(form, Combined):
        margin = form.resolution if margin is None else margin
        return ranked(values[1:, 0], float(values[0, 0]), alternative, margin)
    return of_parts(form, values[0], form.evidence(values, workers), form.resolution)


def of_parts(form: Combined, values: Array, evidence: Array, resolution: float) -> Answer:
    """Rank the largest evidence (1 + B, P), and every component alone and by step-down maxima."""
    whole, observed, draws = evidence.max(axis=1), evidence[0], evidence[1:]
    found = ranked(whole[1:], float(whole[0]), "greater", resolution)
    columns = zip(draws.T, observed.tolist(), strict=True)
    raw = [ranked(column, own, "greater", resolution).pvalue for column, own in columns]
    # Rounding favours the null.
    adjusted = np.maximum(pvalues.step_down(observed - resolution, draws), raw)
    parts = map(ComponentAnswer, form.names, values.tolist(), raw, adjusted.tolist())
    return replace(found, parts=tuple(parts))
