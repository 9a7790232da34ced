"""Hypotheses with a tolerance: each has draws of its own, from the shifted model hardest to tell."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from caltest._parallel import Workers
from caltest._seeds import child_seed
from caltest.auditing.joint import Answers
from caltest.auditing.looks import Source
from caltest.auditing.plan import Hypothesis
from caltest.auditing.seeds import key_of
from caltest.multiplicity import adjusted
from caltest.nulls import MonteCarlo
from caltest.tolerance import sided_answer


def tolerated(
    source: Source,
    labels: NDArray[np.intp],
    hypotheses: Sequence[Hypothesis],
    tolerance: float,
    correction: str,
    n_resamples: int,
    seed: int,
    workers: Workers,
) -> Answers:
    """Test every hypothesis on both sides; its seed hangs on what it is, not on the others."""
    found = []
    for hypothesis in hypotheses:
        look = hypothesis.look
        found.append(
            sided_answer(
                hypothesis.statistic,
                MonteCarlo(),
                source.sample(look, labels),
                tolerance,
                "two-sided",
                n_resamples,
                child_seed(seed, *key_of("tolerance", *look.key, hypothesis.statistic.name)),
                workers,
            )
        )
    pvalues = np.array([each.answer.pvalue for each in found])
    return Answers(
        values=np.array([each.value for each in found]),
        pvalues=pvalues,
        intervals=tuple(each.answer.pvalue_interval or (0.0, 1.0) for each in found),
        adjusted=adjusted(pvalues, correction),
        expected=None,
        evidence=-np.log(pvalues),
        largest=None,
    )
