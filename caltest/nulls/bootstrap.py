"""Bootstraps of a U-statistic, from its Gram matrix."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from caltest._arguments import arguments
from caltest._sampling import generator
from caltest._tiles import Tile, blocks, multiply, quadratic_forms
from caltest.forms import Form, HasGram
from caltest.nulls.base import Answer, Array, Guarantee, Null, Question, chance_of_labels, from_draws
from caltest.pvalues import Alternative

# ------------------------------------------------------------------ gram


_DRAWS = 256  # resamples whose weights are held at a time


@dataclass(frozen=True)
class GramNull(Null):
    """A null that resamples or decomposes the Gram matrix of the observed labels."""

    requires: ClassVar[str] = "a U-statistic of degree two"
    alternatives: ClassVar[tuple[Alternative, ...]] = ("greater",)
    guarantee: ClassVar[Guarantee] = "asymptotic"

    @classmethod
    def fits(cls, form: Form) -> bool:
        """Fit U-statistics with a Gram matrix."""
        return isinstance(form, HasGram)


def gram_of(question: Question) -> Tile:
    """Return the Gram tiles h_ij of the observed labels."""
    if not isinstance(question.form, HasGram):
        raise TypeError(f"{type(question.form).__name__} has no Gram matrix")
    return question.form.gram(question.labels)


def diagonal_of(tile: Tile, n: int) -> Array:
    """Return the diagonal of the matrix of ``tile``."""
    return np.concatenate([np.diagonal(tile(rows, rows)) for rows in blocks(n, 512)])


def resampled_forms(
    tile: Tile,
    question: Question,
    draw: Callable[[np.random.Generator, int, int], Array],
    description: str,
) -> Iterator[tuple[Array, Array]]:
    """Yield weights v (n, b) and their forms v' h v, some resamples at a time.

    ``draw(stream, n, b)`` draws the weights.
    """
    n = len(question.labels)
    for number, batch in enumerate(blocks(question.n_resamples, _DRAWS)):
        weights = draw(generator(question.seed, number), n, batch.stop - batch.start)
        yield weights, quadratic_forms(tile, weights, question.workers, description=description)


# ------------------------------------------------------------------ bootstrap


def _rank(draws: list[Array], question: Question) -> Answer:
    """Rank the observed value; where labels are all but certain, resampling them shows no variation."""
    answer = from_draws(np.concatenate(draws), question)
    floor = chance_of_labels(question)
    if answer.pvalue >= floor or answer.pvalue_interval is None:
        return answer
    low, high = answer.pvalue_interval
    note = "p was raised to the probability of the observed labels, which the bootstrap cannot see."
    interval = (max(low, floor), max(high, floor))
    return replace(answer, pvalue=floor, pvalue_interval=interval, notes=(*answer.notes, note))


@arguments()
@dataclass(frozen=True)
class Bootstrap(GramNull):
    """Resample the rows of the centred Gram matrix with replacement.

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

    name: ClassVar[str] = "bootstrap"
    assumption: ClassVar[str] = "the rows' empirical distribution stands for their true one"

    def answer(self, question: Question) -> Answer:
        """Return the bootstrap p-value."""
        tile, n = gram_of(question), len(question.labels)
        means = multiply(tile, np.ones((n, 1)), question.workers)[:, 0] / n
        grand = float(means.mean())
        centred_diagonal = diagonal_of(tile, n) - 2.0 * means + grand
        draws = [
            (forms + n * n * grand - 2.0 * n * (means @ counts) - centred_diagonal @ counts) / n**2
            for counts, forms in resampled_forms(tile, question, _counts, "bootstrap")
        ]
        return _rank(draws, question)


@arguments()
@dataclass(frozen=True)
class WildBootstrap(GramNull):
    """Give every row a random sign: T* = 2/(n(n−1)) Σ_{i<j} ε_i ε_j h_ij, compared with SKCE_uq.

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

    name: ClassVar[str] = "wild_bootstrap"
    assumption: ClassVar[str] = "random signs of the residuals stand for their distribution"

    def answer(self, question: Question) -> Answer:
        """Return the wild bootstrap p-value."""
        tile, n = gram_of(question), len(question.labels)
        trace = float(diagonal_of(tile, n).sum())
        draws = [
            (forms - trace) / (n * (n - 1))
            for _, forms in resampled_forms(tile, question, _signs, "wild bootstrap")
        ]
        return _rank(draws, question)


def _counts(stream: np.random.Generator, n: int, size: int) -> Array:
    return stream.multinomial(n, np.full(n, 1.0 / n), size=size).T.astype(np.float64)


def _signs(stream: np.random.Generator, n: int, size: int) -> Array:
    return stream.choice([-1.0, 1.0], size=(size, n)).T
