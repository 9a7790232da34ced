"""The spectral null: the limit Σ_i λ_i (Z_i² − 1) of a degenerate U-statistic."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from scipy.linalg import eigvalsh

from caltest._arguments import arguments
from caltest._tiles import blocks
from caltest.exceptions import Argument, InputError
from caltest.nulls.base import Answer, Question, from_sides
from caltest.nulls.bootstrap import GramNull, gram_of
from caltest.nulls.moments import tail

_MOST_ROWS = 12_000  # 1.2 GB of Gram matrix, minutes of eigenvalues


@arguments()
@dataclass(frozen=True)
class Spectral(GramNull):
    """Estimate the λ_i by the eigenvalues of the centred Gram matrix over n; the tail is a saddlepoint.

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

    name: ClassVar[str] = "spectral"
    assumption: ClassVar[str] = "the eigenvalues of the centred Gram matrix stand for the true ones"

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
        tile = gram_of(question)
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
