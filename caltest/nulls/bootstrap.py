"""Nulls that resample rows or weights: bootstraps and spectrum of a U-statistic, consistency."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
from scipy.linalg import eigvalsh

from caltest._arguments import arguments
from caltest._parallel import ALONE
from caltest._tiles import Tile, blocks, multiply, quadratic_forms
from caltest.data import Rows
from caltest.exceptions import Argument, InputError
from caltest.forms import Binned, Combined, Form, LabelFunction, MeanSquare, MeanSurprise
from caltest.laws import Law
from caltest.laws.classes import LabelSampler
from caltest.nulls.base import Answer, Array, Null, Question, from_draws, from_sides
from caltest.nulls.moments import tail
from caltest.sampling import generator
from caltest.statistics import Statistic

# ------------------------------------------------------------------ bootstrap


_DRAWS = 256  # resamples whose weights are held at a time


@dataclass(frozen=True)
class GramNull(Null):
    """A null that resamples or decomposes the Gram matrix of the observed labels."""

    requires = "a U-statistic of degree two"
    alternatives = ("greater",)
    guarantee = "asymptotic"
    resamples = True  # each meets the whole matrix

    @classmethod
    def fits(cls, form: Form) -> bool:
        """Fit U-statistics with a Gram matrix."""
        return form.is_u_statistic


# ------------------------------------------------------------------ bootstraps


def _diagonal_of(tile: Tile, n: int) -> Array:
    return np.concatenate([np.diagonal(tile(rows, rows)) for rows in blocks(n, 512)])


def _resampled(
    tile: Tile,
    question: Question,
    description: str,
    draw: Callable[[np.random.Generator, int], Array],
    value: Callable[[Array, Array], Array],
) -> Answer:
    """Rank the observed value among those of resamples, of which some are taken at a time.

    ``draw(stream, b)`` draws weights v (n, b); ``value`` takes them and their forms v' h v. Where
    labels are all but certain, resampling them shows no variation.
    """
    found = []
    for number, batch in enumerate(blocks(question.n_resamples, _DRAWS)):
        weights = draw(generator(question.seed, number), batch.stop - batch.start)
        forms = quadratic_forms(tile, weights, question.workers, description=description)
        found.append(value(weights, forms))
    answer, floor = from_draws(np.concatenate(found), question), question.chance
    if answer.pvalue >= floor or answer.pvalue_interval is None:
        return answer
    low, high = answer.pvalue_interval
    note = "p was raised to the probability of the observed labels, which the bootstrap cannot see."
    return replace(
        answer, pvalue=floor, pvalue_interval=(max(low, floor), max(high, floor)), notes=(note,)
    )


@arguments()
@dataclass(frozen=True)
class Bootstrap(GramNull):
    """Approximate p-value for U-statistics such as "skce_uq": resample rows of the Gram matrix.

    With h̃_ij = h_ij − h̄_i − h̄_j + h̄ and multinomial counts w of n draws, the values
    n⁻¹ (wᵀ h̃ w − Σ_i w_i h̃_ii) are compared with n · SKCE_uq. All resamples are one product of
    matrices a tile.

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
    assumption = "the rows' empirical distribution stands for their true one"

    def answer(self, question: Question) -> Answer:
        """Return the bootstrap p-value."""
        tile, n = question.form.gram(question.labels), len(question.labels)
        means = multiply(tile, np.ones((n, 1)), question.workers)[:, 0] / n
        grand = float(means.mean())
        centred_diagonal = _diagonal_of(tile, n) - 2.0 * means + grand

        def draw(stream: np.random.Generator, size: int) -> Array:
            return stream.multinomial(n, np.full(n, 1.0 / n), size=size).T.astype(np.float64)

        def value(counts: Array, forms: Array) -> Array:
            centred = forms + n * n * grand - 2.0 * n * (means @ counts)
            return np.asarray((centred - centred_diagonal @ counts) / n**2)

        return _resampled(tile, question, "bootstrap", draw, value)


@arguments()
@dataclass(frozen=True)
class WildBootstrap(GramNull):
    """Approximate p-value for U-statistics such as "skce_uq": give every row a random sign.

    T* = 2/(n(n−1)) Σ_{i<j} ε_i ε_j h_ij, compared with SKCE_uq.

    References
    ----------
    Dehling and Mikosch, "Random quadratic forms and the bootstrap for U-statistics",
    J. Multivariate Anal. 51 (1994).

    Examples
    --------
    >>> import caltest
    >>> sample = caltest.datasets.load_digits_predictions("naive_bayes")
    >>> caltest.test(sample.probs, sample.labels, null="wild_bootstrap", rng=0).pvalue
    0.001
    """

    name = "wild_bootstrap"
    assumption = "random signs of the residuals stand for their distribution"

    def answer(self, question: Question) -> Answer:
        """Return the wild bootstrap p-value."""
        tile, n = question.form.gram(question.labels), len(question.labels)
        trace = float(_diagonal_of(tile, n).sum())
        return _resampled(
            tile,
            question,
            "wild bootstrap",
            lambda stream, size: stream.choice([-1.0, 1.0], size=(size, n)).T,
            lambda _, forms: (forms - trace) / (n * (n - 1)),
        )


# ------------------------------------------------------------------ spectral


_MOST_ROWS = 12_000  # 1.2 GB of Gram matrix, minutes of eigenvalues


@arguments()
@dataclass(frozen=True)
class Spectral(GramNull):
    """Approximate p-value for U-statistics such as "skce_uq", from estimated eigenvalues.

    The λ_i are the eigenvalues of the centred Gram matrix over n; the tail is a saddlepoint
    approximation.

    Needs the whole n×n Gram matrix, n at most 12 000.

    References
    ----------
    Gretton et al., "A fast, consistent kernel two-sample test", NIPS 2009.

    Examples
    --------
    >>> import caltest
    >>> sample = caltest.datasets.load_digits_predictions("naive_bayes")
    >>> caltest.test(sample.probs[:400], sample.labels[:400], null="spectral").pvalue < 0.001
    True
    """

    name = "spectral"
    assumption = "the eigenvalues of the centred Gram matrix stand for the true ones"

    def answer(self, question: Question) -> Answer:
        """Return the p-value of the limit distribution."""
        n = len(question.labels)
        if n > _MOST_ROWS:
            raise InputError(
                "the spectral null needs all eigenvalues of an n×n matrix, and n = {found} exceeds "
                "{most}; use {one} or {other}, which need no such matrix.",
                found=n,
                most=_MOST_ROWS,
                one=Argument("null", "moments"),
                other=Argument("null", "monte_carlo"),
            )
        tile = question.form.gram(question.labels)
        gram = np.empty((n, n))
        for rows in blocks(n, 512):
            gram[rows] = tile(rows, slice(0, n))
        means = gram.mean(axis=0)
        gram -= means[:, None]
        gram -= means[None, :] - means.mean()
        weights = eigvalsh(gram, overwrite_a=True, check_finite=False) / n
        weights = weights[weights > 1e-12 * max(float(weights[-1]), 0.0)]
        if len(weights) == 0:
            note = "The Gram matrix is constant, so the limit is a point; p is set to 1."
            return Answer(pvalue=1.0, notes=(note,))

        def cumulants(t: float) -> tuple[float, float, float]:
            shrunk = 1.0 - 2.0 * t * weights
            return (
                float(-0.5 * np.log(shrunk).sum() - t * weights.sum()),
                float(np.sum(weights / shrunk) - weights.sum()),
                float(np.sum(2.0 * (weights / shrunk) ** 2)),
            )

        value = (n - 1) * (question.observed - question.form.resolution)
        greater = tail(cumulants, value, limit=0.5 / float(weights[-1]))
        return from_sides(greater, 1.0, question)


# ------------------------------------------------------------------ consistency


_BATCH = 16  # resamples a task


@arguments()
@dataclass(frozen=True)
class Consistency(Null):
    """Consistency resampling of rows and labels: not valid, here to reproduce the literature.

    Rows are drawn with replacement and labels from their predictions, and the statistic is
    computed anew.

    Not valid in finite samples: repeated predictions share bins, which makes a binned statistic
    too small, so every calibrated model may be rejected. Holding the predictions fixed, as
    ``"monte_carlo"`` does, solves this.

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
    assumption = "the predictions' empirical distribution stands for their true one"
    requires = "a single statistic of probabilities of classes"
    resamples = True

    @classmethod
    def fits(cls, form: Form) -> bool:
        """Fit any form of labels, but no combination: the literature to reproduce has none."""
        of_numbers = isinstance(form, LabelFunction) and isinstance(form.predictions, Law)
        return not (isinstance(form, Combined | MeanSquare | MeanSurprise) or of_numbers)

    def answer(self, question: Question) -> Answer:
        """Return the resampling p-value."""
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
        notes = (f"{warning}; null='monte_carlo' is the valid version.",)
        return from_draws(draws, question, notes=notes)


def _resample(
    statistic: Statistic, predictions: Rows, sampler: LabelSampler, start: int, stop: int
) -> Array:
    n, values = predictions.n_samples, []
    for number in range(start, stop):
        stream = generator(sampler.seed, number)
        rows = stream.integers(n, size=n)
        labels = (sampler.cumulative[rows] <= stream.random((n, 1))).sum(axis=1)
        values.append(statistic.given(predictions.take(rows)).value(labels, ALONE))
    return np.array(values)
