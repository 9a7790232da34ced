"""What the nulls of a U-statistic share: its Gram matrix, resampled or decomposed."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from caltest._seeds import generator
from caltest._tail import Alternative
from caltest._tiles import Tile, blocks, quadratic_forms
from caltest.forms import Form, HasGram
from caltest.nulls.base import Array, Guarantee, Null, Question

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
