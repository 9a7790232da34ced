"""The exact null: labels drawn from the predictions, the predictions held fixed.

Under H0, and given the predictions, the labels are independent draws y_i ~ Cat(g_i). The statistic of
the observed labels and those of B drawn label vectors are then exchangeable, so that
p = (1 + #{draws ≥ observed}) / (B + 1) satisfies P(p ≤ α) ≤ α in every finite sample, whatever the
statistic (Barnard 1963; Besag and Clifford 1991 for the sequential version).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar, TypeAlias

import numpy as np

from caltest import _tail
from caltest._arguments import arguments, positive_integer
from caltest._parallel import ALONE, Workers
from caltest._sampling import DRAWS, Hidden, LabelSampler, OutcomeSampler
from caltest._tiles import blocks
from caltest.exceptions import InputError
from caltest.forms import Form, HasParts, LabelFunction
from caltest.nulls.base import Answer, Array, Guarantee, Null, Question, from_draws
from caltest.nulls.one_pass import answer_by_rows, takes_rows
from caltest.nulls.parts import answer_with_parts

#: Takes label vectors (B, n) and workers, returns an array of B rows.
Evaluate: TypeAlias = Callable[[Any, Workers], Array]

_BYTES = 2**27  # of drawn labels held at a time by a form that takes many draws at once


@arguments(stop_after=positive_integer)
@dataclass(frozen=True)
class MonteCarlo(Null):
    """Draw labels from the predictions and rank the observed statistic among the draws' statistics.

    Parameters
    ----------
    stop_after
        Stop at the draw with which this many draws reached the observed value (Besag and Clifford
        1991); the p-value is then ``stop_after`` / draws, exact too. A clearly calibrated model is
        answered after few draws. Default None: draw all. One-sided alternatives only; a combined
        statistic then answers as a whole, without p-values of its parts.

    References
    ----------
    Besag and Clifford, "Sequential Monte Carlo p-values", Biometrika 78 (1991).

    Examples
    --------
    >>> import caltest
    >>> probs = [[0.9, 0.1]] * 20
    >>> caltest.test(probs, [0] * 10 + [1] * 10, rng=0).pvalue
    0.001
    """

    stop_after: int | None = None

    name: ClassVar[str] = "monte_carlo"
    guarantee: ClassVar[Guarantee] = "exact"
    assumption: ClassVar[str] = "none: rows are independent, that is all"
    requires: ClassVar[str] = "any statistic"

    @classmethod
    def fits(cls, form: Form) -> bool:
        """Fit any form."""
        return True

    def answer(self, question: Question) -> Answer:
        """Return the exact p-value."""
        if self.stop_after is not None and question.alternative == "two-sided":
            raise InputError(
                "stop_after goes with one-sided alternatives only; leave it out, or test one side."
            )
        if question.form.together:
            return _all_together(question)
        if self.stop_after is None and takes_rows(question):
            return answer_by_rows(question)
        if isinstance(question.form, HasParts) and self.stop_after is None:
            return _with_parts(question.form, question)
        form = question.form
        if isinstance(form, LabelFunction):
            return self._of_function(form, question)
        observed = float(_as_drawn(question, form.evaluate)[0])
        if self.stop_after is None:
            draws = np.concatenate(list(draw_statistics(question)))
            return from_draws(draws, question, observed=observed)
        return self._sequential(question, observed, self.stop_after)

    def _of_function(self, form: LabelFunction, question: Question) -> Answer:
        """Evaluate the observed labels at a random place among the draws, see `Hidden`.

        Where draws stop early, the observed labels have to come first but one: there, a function that
        keeps something from call to call is only found out.
        """
        sampler = question.predictions.sampler(question.seed)
        if self.stop_after is not None:
            form.evaluate(sampler.draw(0, 1))  # what it learns from its first call is of a draw
            observed = form.evaluate(question.labels[None, :])[0]
            answer = self._sequential(question, observed, self.stop_after)
        else:
            hidden = Hidden.among(sampler, question.labels, question.n_resamples)
            tasks = [(batch.start, batch.stop) for batch in blocks(question.n_resamples, sampler.block)]
            evaluate = partial(_draw_and_evaluate, form.evaluate, hidden)
            values = np.concatenate(list(question.workers.map(evaluate, tasks, "label draws")))
            observed = values[hidden.place]
            answer = from_draws(np.delete(values, hidden.place), question, observed=observed)
        form.check_unmoved(question.labels, float(observed))
        return answer

    def _sequential(self, question: Question, observed: float, wanted: int) -> Answer:
        sign = 1.0 if question.alternative == "greater" else -1.0
        seen: list[Array] = []
        reached = 0
        for batch in draw_statistics(question, at_most=2 * DRAWS):
            hits = np.flatnonzero(
                _tail.exceeds(sign * batch, sign * observed, question.form.resolution)
            )
            if reached + len(hits) >= wanted:
                seen.append(batch[: hits[wanted - reached - 1] + 1])
                length = sum(map(len, seen))
                return Answer(
                    pvalue=wanted / length,
                    n_resamples=length,
                    exceedances=wanted,
                    pvalue_interval=_tail.interval(wanted, length, question.alternative),
                    null_distribution=np.concatenate(seen),
                    notes=(f"Stopped after {length} of {question.n_resamples} draws.",),
                )
            seen.append(batch)
            reached += len(hits)
        return from_draws(np.concatenate(seen), question, observed=observed)


def _all_together(question: Question) -> Answer:
    """Rank the observed labels among the draws, evaluated in one call that does not know them apart."""
    drawn = question.predictions.sampler(question.seed).draw(0, question.n_resamples)
    labels = np.concatenate([question.labels[None, :].astype(drawn.dtype), drawn])
    values = question.form.evaluate(labels, question.workers)
    return from_draws(values[1:], question, observed=float(values[0]))


def _with_parts(form: HasParts, question: Question) -> Answer:
    """Answer a combined statistic and, from the same draws, each of its parts."""
    values = _as_drawn(question, form.values)
    drawn = draw_statistics(question, evaluate=form.values)
    return answer_with_parts(
        form, np.concatenate([values, *drawn]), question.alternative, question.workers
    )


def draw_statistics(
    question: Question, at_most: int | None = None, evaluate: Evaluate | None = None
) -> Iterator[Array]:
    """Yield the statistics of drawn label vectors, in the order of the draws, a batch at a time.

    Forms that work in parallel inside take large batches (``at_most`` draws), others one block of
    draws a worker. ``evaluate`` is the form's own unless another of its functions is given.
    """
    sampler = question.predictions.sampler(question.seed)
    of = question.form.evaluate if evaluate is None else evaluate
    if question.form.parallel_inside:
        fitting = max(1, _BYTES // (question.predictions.n_samples * DRAWS)) * DRAWS
        for batch in blocks(question.n_resamples, min(fitting, at_most or fitting)):
            labels = sampler.draw(batch.start, batch.stop)
            yield of(labels, question.workers)
    else:
        tasks = [(batch.start, batch.stop) for batch in blocks(question.n_resamples, sampler.block)]
        yield from question.workers.map(partial(_draw_and_evaluate, of, sampler), tasks, "label draws")


def _draw_and_evaluate(
    evaluate: Evaluate, sampler: LabelSampler | OutcomeSampler | Hidden, start: int, stop: int
) -> Array:
    return evaluate(sampler.draw(start, stop), ALONE)


def _as_drawn(question: Question, evaluate: Evaluate) -> Array:
    """Evaluate the observed labels the way the draws are: equal labels then give equal numbers."""
    block = np.repeat(question.labels[None, :], 2, axis=0)
    return evaluate(block, question.workers)[:1]
