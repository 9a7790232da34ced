"""Consistency resampling: predictions drawn with replacement, and labels from them."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import ClassVar

import numpy as np

from caltest._arguments import arguments
from caltest._parallel import ALONE
from caltest._sampling import LabelSampler, generator
from caltest._tiles import blocks
from caltest.data import Rows
from caltest.forms import Binned, Combined, DensityForm, Form, LabelFunction
from caltest.nulls.base import Answer, Array, Guarantee, Null, Question, from_draws
from caltest.predictive import Predictive
from caltest.statistics import Statistic

_BATCH = 16  # resamples a task


@arguments()
@dataclass(frozen=True)
class Consistency(Null):
    """Redraw rows with replacement, labels from their predictions, and compute the statistic anew.

    Not valid in finite samples: repeated predictions share bins, which deflates a binned statistic,
    and every calibrated model may be rejected. Holding the predictions fixed repairs it, which is
    ``"monte_carlo"``; this null is here to reproduce the literature.

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

    name: ClassVar[str] = "consistency"
    guarantee: ClassVar[Guarantee] = "approximate"
    assumption: ClassVar[str] = "the predictions' empirical distribution stands for their true one"
    requires: ClassVar[str] = "a single statistic of probabilities of classes"

    @classmethod
    def fits(cls, form: Form) -> bool:
        """Fit any form of labels, but no combination: the literature to reproduce has none."""
        of_densities = isinstance(form, LabelFunction) and isinstance(form.predictions, Predictive)
        return not (isinstance(form, DensityForm | Combined) or of_densities)

    def answer(self, question: Question) -> Answer:
        """Return the resampling p-value."""
        if not isinstance(question.rows, Rows):
            raise TypeError("consistency resampling redraws classes")
        sampler = question.rows.sampler(question.seed)
        resample = partial(_resample, question.statistic, question.rows, sampler)
        tasks = [(b.start, b.stop) for b in blocks(question.n_resamples, _BATCH)]
        draws = np.concatenate(list(question.workers.map(resample, tasks, "resamples")))
        return from_draws(draws, question, notes=_warning(question.form, *question.rows.probs.shape))


def _resample(
    statistic: Statistic, predictions: Rows, sampler: LabelSampler, start: int, stop: int
) -> Array:
    return np.array([_one(statistic, predictions, sampler, number) for number in range(start, stop)])


def _one(statistic: Statistic, predictions: Rows, sampler: LabelSampler, number: int) -> float:
    n = predictions.n_samples
    stream = generator(sampler.seed, number)
    rows = stream.integers(n, size=n)
    labels = (sampler.cumulative[rows] <= stream.random((n, 1))).sum(axis=1)
    return statistic.given(predictions.take(rows)).value(labels, ALONE)


def _warning(form: Form, n: int, m: int) -> tuple[str, ...]:
    advice = "null='monte_carlo' is the valid version."
    if isinstance(form, Binned) and form.n_cells > n / 5:
        crowd = f"{form.n_cells} bins for {n} rows"
    elif m > 2:
        crowd = f"{m} classes"
    else:
        return (f"Consistency resampling is not valid in finite samples; {advice}",)
    return (f"With {crowd}, consistency resampling may reject every calibrated model; {advice}",)
