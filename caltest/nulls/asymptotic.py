"""Nulls of the literature: normal, χ² and Brownian limits, a bound, two kinds of resampling."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any, cast

import numpy as np
from scipy.special import gammainc, gammaincc, ndtr

from caltest._arguments import Number, Whole, options
from caltest._parallel import ALONE
from caltest._sums import Array, blocks, multiply, quadratic_forms
from caltest.data import Rows
from caltest.exceptions import Argument, InputError
from caltest.forms import Binned, Combined, Form, LabelFunction, MeanSquare, MeanSurprise, base
from caltest.forms.pairs import Pairwise
from caltest.laws import Classes, Law
from caltest.laws.classes import LabelSampler
from caltest.nulls.base import Answer, Guarantee, Null, Question, from_draws, from_sides
from caltest.nulls.moments import nearly_normal
from caltest.sampling import generator
from caltest.statistics import Statistic
from caltest.statistics.order import InOrder

# ------------------------------------------------------------------ normal


_WELL_WITHIN = 0.5  # skewness or excess kurtosis; larger values get a note


@options(ddof=Whole(0, advice="give a whole number that is not negative"))
class NormalApproximation(Null):
    """p-value from the normal distribution: the classical choice for sums over rows.

    A linear statistic (the ECD, Spiegelhalter's z, calibration in the large) has a mean and a standard
    deviation under H0 that follow exactly from the predictions, and z uses these. The same holds for
    the mean scores of predicted numbers ("crps", "ecd", "dawid_sebastiani", "bias", "spread"): their
    variances are sums over counts, or integrals accurate to about 10⁻³. SKCE_ul is used as published, z
    = √k T/σ̂ with the sample standard deviation σ̂ of its k terms. ``"moments"`` costs the same, is
    right in the tails too, and for SKCE_ul has far more power: this null is here to reproduce the
    literature.

    Assumption: many independent terms, none of which dominates: their sum is normal.

    Parameters
    ----------
    ddof : int, default 1
        Delta degrees of freedom of σ̂. Default 1; published p-values of SKCE_ul used 0.

    References
    ----------
    Spiegelhalter 1986; Widmann et al. 2019, Corollary G.1; scores of counts: Wei and Held, "Calibration
    tests for count data", TEST 23 (2014).

    Examples
    --------
    >>> import caltest
    >>> sample = caltest.datasets.load_digits_predictions("naive_bayes")
    >>> caltest.test(sample.probs, sample.labels, "brier", null="normal").guarantee
    'asymptotic'
    """

    ddof: int = 1

    name = "normal"
    guarantee = "asymptotic"
    requires = "a sum of independent terms of known mean and variance"
    forms = base.HasTerms, base.HasNormalLimit

    @classmethod
    def fits(cls, form: Form) -> bool:
        """Accept sums whose moments are known."""
        return super().fits(form) and bool(getattr(form, "has_limit", True))

    def answer(self, question: Question) -> Answer:
        """Return the asymptotic p-value."""
        form = cast("base.HasTerms | base.HasNormalLimit", question.form)
        margin = form.resolution
        if isinstance(form, base.HasTerms):
            terms = form.terms(question.labels)
            if len(terms) <= self.ddof:
                found = f"estimates a standard deviation and has {len(terms)} pair(s) of rows"
                do = f"give more rows, or use {Argument('null', 'monte_carlo')}"
                raise InputError(f"the normal null {found}; {do}.")
            deviation = float(np.std(terms, ddof=self.ddof))
            if deviation <= max(1e-12 * float(np.max(np.abs(terms))), margin):
                note = "The terms do not vary, so their standard deviation says nothing; p is set to 1."
                return Answer(pvalue=1.0, notes=(note,))
            z = np.sqrt(len(terms)) * float(np.mean(terms)) / deviation
            return from_sides(float(ndtr(-z)), float(ndtr(z)), question)
        _, mean, variance = form.cumulant_generator(0.0)
        distance = question.observed - mean
        if variance <= margin**2:
            return from_sides(float(distance <= margin), float(distance >= -margin), question)
        z = distance / np.sqrt(variance)
        others = "'moments' or " if isinstance(form, base.HasCumulantGenerator) else ""
        found = "The statistic depends on few unlikely outcomes and is far from normal"
        why = "so that small p-values may be much too small"
        note = f"{found}, {why}; the null {others}'monte_carlo' is right."
        notes = () if nearly_normal(form, _WELL_WITHIN) else (note,)
        return from_sides(float(ndtr(-z)), float(ndtr(z)), question, notes)


# ------------------------------------------------------------------ chi2


_WIDE = 1.1  # variance relative to the law's above which a note is added


@options()
class Chi2(Null):
    """p-value from the χ² distribution, for predictions that were not fitted to these rows.

    Exact where the law is (the NEES of Gaussian predictions), asymptotic elsewhere.

    Assumption: many rows in every group, whose sums are then normal.

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

    name = "chi2"
    guarantee = "asymptotic"
    requires = "a statistic with a chi-square law"
    forms = (base.HasChiSquare,)

    def guarantee_for(self, form: Form) -> Guarantee:
        """Return "exact" if the law is."""
        exact = isinstance(form, base.HasChiSquare) and form.chi_square.exact
        return "exact" if exact else self.guarantee

    def answer(self, question: Question) -> Answer:
        """Return the chi-square p-value."""
        form = cast("base.HasChiSquare", question.form)
        law = form.law_of(question.labels)
        notes: tuple[str, ...] = (law.caveat,) if law.caveat else ()
        if law.degrees == 0:
            return from_sides(float(question.observed <= form.resolution), 1.0, question, notes)
        if isinstance(form, base.HasMoments):
            ratio = form.moments(question.workers).variance * law.factor**2 / (2.0 * law.degrees)
            if ratio > _WIDE:
                found = f"The statistic's variance is {ratio:.2g} times that of its chi-square law"
                why = "unlikely labels count too much, and small p-values may be much too small"
                notes += (f"{found}: {why}; {Argument('null', 'monte_carlo')} is right.",)
        half = max(0.0, 0.5 * (law.factor * question.observed + law.offset))
        greater = float(gammaincc(0.5 * law.degrees, half))
        return from_sides(greater, float(gammainc(0.5 * law.degrees, half)), question, notes)


# ------------------------------------------------------------------ brownian


_K = np.arange(1, 11)  # ten terms: the remainder is below 1e-80 on both sides of the switch
_ODD = 2 * _K - 1
_SIGNS = np.where(_K % 2 == 1, 1.0, -1.0)
_ZERO = 0.02  # the lower tails here are below 1e-1000
_SURPRISES = 10.0  # with fewer unlikely labels, the path has few jumps


@options()
class Brownian(Null):
    """Asymptotic p-value for "ks" and "kuiper": Brownian motion as the limit.

    Under H0 and given the predictions, C(x) = n⁻¹ Σ_{p_i ≤ x} (y_i − p_i) is a martingale whose
    variance ends at σ² = n⁻² Σ p_i (1 − p_i), which is known. As that sum grows, C/σ in the time of
    its own variance tends to Brownian motion (free at its end: not a bridge), so that
    max |C|/σ → sup |W| and (max C − min C)/σ → sup W − inf W. It draws nothing and costs one
    evaluation.

    C moves in steps and misses the peaks of W between them. So with few rows, or few distinct
    scores, p is too large: the test rejects less often than it should. For rare events (so few
    uncertain labels that single surprises dominate C) it is unreliable, and small p-values can be
    several times too small; a note says so. Use ``"monte_carlo"`` there.

    Assumption: many rows of uncertain labels, whose cumulated errors are Brownian.

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

    name = "brownian"
    guarantee = "asymptotic"
    requires = "a statistic of cumulative differences"
    forms = (base.HasBrownianLimit,)

    def answer(self, question: Question) -> Answer:
        """Return the asymptotic p-value."""
        form = cast("base.HasBrownianLimit", question.form)
        observed = question.observed - form.resolution  # rounding favours the null
        limit = form.brownian_limit
        if limit.scale == 0.0:  # every label is certain
            return from_sides(float(observed <= 0.0), 1.0, question)
        few = f"The statistic depends on some {limit.surprises:.2g} unlikely labels"
        do = f"p is unreliable; use {Argument('null', 'monte_carlo')}"
        note = f"{few}, too few for a Brownian path: {do}."
        notes = (note,) if limit.surprises < _SURPRISES else ()
        return from_sides(*tails(limit.functional, observed / limit.scale), question, notes)


def tails(functional: base.BrownianFunctional, x: float) -> tuple[float, float]:
    """Return P(T > x) and P(T ≤ x) for sup |W| ("maximum") or sup W − inf W ("range").

    Each law has two series, one of its theta function and one of that function's transform (Poisson
    summation). One converges fast for large x and is the upper tail to full relative precision, the
    other for small x and is the lower tail.

    Parameters
    ----------
    functional
        "maximum" or "range".
    x
        Any number; both laws are on x > 0.

    Returns
    -------
    tuple of float
        In [0, 1], with sum 1.

    References
    ----------
    Feller 1951, whose density of the range is integrated here term by term; for both laws, and when
    they apply: Tygert, "Calibration of P-values for calibration and for deviation of a subpopulation
    from the full population", arXiv 2202.00100.

    Examples
    --------
    >>> round(tails("maximum", 2.2414)[0], 4), round(tails("range", 2.4977)[0], 4)
    (0.05, 0.05)
    """
    if x <= _ZERO:
        return 1.0, 0.0
    upper, lower, switch = _SERIES[functional]
    if x > switch:
        greater = min(1.0, float(upper(x)))
        return greater, 1.0 - greater
    less = min(1.0, float(lower(x)))
    return 1.0 - less, less


_SERIES: dict[base.BrownianFunctional, tuple[Callable[[float], Any], Callable[[float], Any], float]] = {
    "maximum": (
        # Reflect at both walls: 4 Σ_{k≥1} (−1)^{k−1} Q((2k − 1) x), Q = 1 − Φ.
        lambda x: 4.0 * _SIGNS @ ndtr(-_ODD * x),
        # Expand in the modes of an interval: (4/π) Σ_odd ± exp(−odd² π²/(8 x²))/odd.
        lambda x: 4.0 / np.pi * (_SIGNS / _ODD) @ np.exp(-0.5 * (_ODD * np.pi / (2.0 * x)) ** 2),
        1.0,
    ),
    "range": (
        # Integrate Feller's density 8 Σ_{k≥1} (−1)^{k−1} k² φ(k x): 8 Σ (−1)^{k−1} k Q(k x).
        lambda x: 8.0 * (_SIGNS * _K) @ ndtr(-_K * x),
        # Transform that density and integrate: 8 Σ_odd (1/x² + 1/(odd π)²) exp(−(odd π)²/(2 x²)).
        lambda x: 8.0 * ((x**-2 + (_ODD * np.pi) ** -2.0) @ np.exp(-0.5 * (_ODD * np.pi / x) ** 2)),
        2.0,
    ),
}


# ------------------------------------------------------------------ bounds


_EXPONENT = Number(1.0, math.inf, "[]", "give the exponent of a norm, 1 or more")


@options(p=_EXPONENT, q=_EXPONENT)
class Bound(Null):
    """Conservative p-value for kernel statistics, from a concentration bound.

    McDiarmid's bound for SKCE_b, Hoeffding's for SKCE_uq and SKCE_ul.

    With B = B_{p;q} a bound of |h_ij|: exp(−½ max(0, √(n t/B) − 1)²) for SKCE_b, and
    exp(−⌊n/2⌋ t²/(2B²)) for the unbiased ones, 1 for t ≤ 0.

    Assumption: a bounded kernel.

    Parameters
    ----------
    p : float, default 2
        Exponent of a norm in B_{p;q}, at least 1.
    q : float, optional
        The other exponent, at least 1. Default None: p. For a kernel k·I the constant is smallest, 2
        sup k, where p = q.

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

    name = "bound"
    guarantee = "bound"
    requires = "a bounded kernel statistic"
    alternatives = ("greater",)

    @classmethod
    def fits(cls, form: Form) -> bool:
        """Accept forms with a bounded kernel."""
        return form.tail_bound is not None

    def answer(self, question: Question) -> Answer:
        """Return the bound."""
        known: Any = question.form.tail_bound
        constant = known.constant(self.p, self.p if self.q is None else self.q)
        ratio = max(0.0, question.observed / constant)
        power = known.n_samples // 2 * ratio**2
        if known.inequality == "mcdiarmid":
            power = max(0.0, np.sqrt(known.n_samples * ratio) - 1.0) ** 2
        return from_sides(float(np.exp(-0.5 * power)), 1.0, question)


# ------------------------------------------------------------------ bootstrap


_DRAWS = 256  # resamples whose weights are held at a time


@options()
class Bootstrap(Null):
    """Approximate p-value for U-statistics such as "skce_uq": resample rows of the Gram matrix.

    With h̃_ij = h_ij − h̄_i − h̄_j + h̄ and multinomial counts w of n draws, the values n⁻¹ (wᵀ h̃ w −
    Σ_i w_i h̃_ii) are compared with n · SKCE_uq. All resamples are one product of matrices per tile.

    Assumption: the rows' empirical distribution stands for their true one.

    References
    ----------
    Arcones and Giné, "On the bootstrap of U and V statistics", Ann. Statist. 20 (1992);
    Widmann et al. 2019, Appendix G.

    Examples
    --------
    >>> import caltest
    >>> sample = caltest.datasets.load_digits_predictions("naive_bayes")
    >>> caltest.test(sample.probs, sample.labels, null="bootstrap", rng=0).pvalue
    0.001
    """

    name = "bootstrap"
    guarantee = "asymptotic"
    requires = "a U-statistic of degree two"
    alternatives = ("greater",)
    resamples = True  # each uses the whole matrix

    @classmethod
    def fits(cls, form: Form) -> bool:
        """Accept means over pairs i ≠ j of equal weight."""
        return isinstance(form, Pairwise) and form.tail_bound is not None and not form.diagonal

    def answer(self, question: Question) -> Answer:
        """Return the bootstrap p-value; if labels are almost certain, resamples do not vary."""
        tile, n = cast("Pairwise", question.form).gram(question.labels), len(question.labels)
        means = multiply(tile, np.ones((n, 1)), question.workers)[:, 0] / n
        grand = float(means.mean())
        diagonal = np.concatenate([np.diagonal(tile(rows, rows)) for rows in blocks(n, 512)])
        own = diagonal - 2.0 * means + grand
        found = []
        for number, batch in enumerate(blocks(question.n_resamples, _DRAWS)):
            stream, size = generator(question.seed, number), batch.stop - batch.start
            counts = stream.multinomial(n, np.full(n, 1.0 / n), size=size).T.astype(np.float64)
            forms = quadratic_forms(tile, counts, question.workers, description="bootstrap")
            found.append((forms + n * n * grand - 2.0 * n * (means @ counts) - own @ counts) / n**2)
        answer, floor = from_draws(np.concatenate(found), question), question.chance
        if answer.pvalue >= floor or answer.pvalue_interval is None:
            return answer
        low, high = answer.pvalue_interval
        note = "p was raised to the probability of the observed labels, which the bootstrap cannot see."
        ends = max(low, floor), max(high, floor)
        return replace(answer, pvalue=floor, pvalue_interval=ends, notes=(note,))


# ------------------------------------------------------------------ consistency


_BATCH = 16  # resamples per task


@options()
class Consistency(Null):
    """Consistency resampling of rows and labels: not valid, here to reproduce the literature.

    Rows are drawn with replacement and labels from their predictions, and the statistic is
    computed anew.

    Not valid in finite samples: repeated predictions share bins, which makes a binned statistic
    too small, so every calibrated model may be rejected. Holding the predictions fixed, as
    ``"monte_carlo"`` does, solves this.

    Assumption: the predictions' empirical distribution stands for their true one.

    References
    ----------
    Bröcker and Smith, "Increasing the reliability of reliability diagrams", Weather and Forecasting
    22 (2007); Vaicenavicius et al. 2019.

    Examples
    --------
    >>> import caltest
    >>> digits = caltest.datasets.load_digits_predictions("naive_bayes")
    >>> result = caltest.test(digits.probs, digits.labels, "ece", null="consistency", rng=0)
    >>> result.guarantee, result.pvalue
    ('approximate', 0.001)
    """

    name = "consistency"
    guarantee = "approximate"
    requires = "a single statistic of probabilities of classes"
    resamples = True

    @classmethod
    def fits(cls, form: Form) -> bool:
        """Accept any form of labels except combinations, which the literature does not have."""
        of_numbers = isinstance(form, LabelFunction) and isinstance(form.predictions, Law)
        return not (isinstance(form, Combined | MeanSquare | MeanSurprise | InOrder) or of_numbers)

    def answer(self, question: Question) -> Answer:
        """Return the resampling p-value."""
        if not isinstance(question.rows.law, Classes):
            found = f"draws rows of classes, and these are {question.rows.law.about}"
            raise InputError(f"the null 'consistency' {found}; use {Argument('null', 'monte_carlo')}.")
        sampler = question.rows.sampler(question.seed)
        resample = partial(_resample, question.statistic, question.rows, sampler)
        tasks = [(b.start, b.stop) for b in blocks(question.n_resamples, _BATCH)]
        draws = np.concatenate(list(question.workers.map(resample, tasks, "resamples")))
        form, (n, m) = question.form, question.rows.probs.shape
        crowd = f"{m} classes" if m > 2 else ""
        if isinstance(form, Binned) and form.n_cells > n / 5:
            crowd = f"{form.n_cells} bins for {n} rows"
        warning = "Consistency resampling is not valid in finite samples"
        if crowd:
            warning = f"With {crowd}, consistency resampling may reject every calibrated model"
        notes = (f"{warning}; {Argument('null', 'monte_carlo')} is the valid version.",)
        return from_draws(draws, question, notes=notes)


def _resample(statistic: Statistic, rows: Rows, sampler: LabelSampler, start: int, stop: int) -> Array:
    n, values = rows.n_samples, []
    for number in range(start, stop):
        stream = generator(sampler.seed, number)
        drawn = stream.integers(n, size=n)
        labels = (sampler.cumulative[drawn] <= stream.random((n, 1))).sum(axis=1)
        values.append(statistic.given(rows.take(drawn)).value(labels, ALONE))
    return np.array(values)
