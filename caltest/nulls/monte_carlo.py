"""The exact null: labels drawn from the predictions, the predictions held fixed.

Under H0, and given the predictions, the labels are independent draws y_i ~ Cat(g_i). The statistic of
the observed labels and those of B drawn label vectors are then exchangeable, so that
p = (1 + #{draws ≥ observed}) / (B + 1) satisfies P(p ≤ α) ≤ α in every finite sample, whatever the
statistic (Barnard 1963; Besag and Clifford 1991 for the sequential version).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import cast

import numpy as np

from caltest import pvalues
from caltest._arguments import arguments, positive_integer
from caltest._parallel import Workers
from caltest.blocks import Held, goes_by_rows, table_of_blocks
from caltest.exceptions import InputError
from caltest.forms import Combined, Form, LabelFunction
from caltest.nulls.base import Answer, Array, Null, Part, Question, check_number, ranked
from caltest.pvalues import Alternative
from caltest.resampling import Column, Draws, batches, columns_of, table
from caltest.sampling import DRAWS


@arguments(stop_after=positive_integer)
@dataclass(frozen=True)
class MonteCarlo(Null):
    """Exact p-value, the default: the statistic's rank among labels drawn from the predictions.

    Parameters
    ----------
    stop_after
        Stop as soon as this many draws reach the observed value (Besag and Clifford 1991). The
        p-value is then ``stop_after`` / draws, which is exact too, and a clearly calibrated model
        needs few draws. Default None: draw all. For one-sided alternatives only; a combined
        statistic then has no p-values for its parts. With your own function all draws are
        evaluated, so that it cannot tell from the order which labels are the observed ones.

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

    name = "monte_carlo"
    guarantee = "exact"
    assumption = "none: rows are independent, that is all"
    requires = "any statistic"
    resamples = True

    def answer(self, question: Question) -> Answer:
        """Return the exact p-value."""
        form, workers = question.form, question.workers
        if isinstance(form, Combined):
            form = form.standardised(workers)
            question = replace(question, form=form)
        draws = Draws(question.rows.sampler(question.seed), question.labels, question.n_resamples)
        if self.stop_after is not None:
            return self._sequential(question, draws, self.stop_after)
        columns = columns_of(form)
        if goes_by_rows(columns, draws):
            values, _ = table_of_blocks(Held(columns, draws), question.n_resamples, workers)
        else:
            values = table(columns, draws, workers)
        found = answer_of(form, values, question.alternative, workers)
        check_number(question.statistic, cast("float", found.statistic))
        if isinstance(form, LabelFunction):
            form.check_unmoved(question.labels, float(values[0, 0]))
            return found
        # Among draws, sums may be taken in another order than by `estimate`, whose value is reported.
        return replace(found, statistic=question.observed)

    def _sequential(self, question: Question, draws: Draws, wanted: int) -> Answer:
        """Draw until so many draws reached the observed value.

        It has to be known before they are. A function that keeps something from call to call must not
        know which labels are the observed ones: it has all draws, and the rule looks at them in order.
        """
        if question.alternative == "two-sided":
            raise InputError(
                "stop_after needs a one-sided alternative; leave it out, or test one side."
            )
        form = question.form
        sign = 1.0 if question.alternative == "greater" else -1.0
        seen: list[Array] = []
        reached, observed = 0, np.nan
        for values in batches([Column(None, form)], draws, question.workers, at_most=2 * DRAWS):
            batch = values[:, 0]
            if not seen:
                observed, batch = float(batch[0]), batch[1:]
                check_number(question.statistic, observed)
            hits = np.flatnonzero(pvalues.exceeds(sign * batch, sign * observed, form.resolution))
            enough = hits[wanted - reached - 1 :]
            reached += len(hits)
            seen.append(batch[: enough[0] + 1] if len(enough) else batch)
            if len(enough):
                break
        if isinstance(form, LabelFunction):
            form.check_unmoved(question.labels, observed)
        values = np.concatenate(seen)
        found = ranked(values, observed, question.alternative, form.resolution)
        if reached < wanted:
            return found
        return replace(
            found,
            pvalue=wanted / len(values),
            exceedances=wanted,
            pvalue_interval=pvalues.interval(wanted, len(values), question.alternative),
            notes=(f"Stopped after {len(values)} of {question.n_resamples} draws.",),
        )


def answer_of(
    form: Form,
    values: Array,
    alternative: Alternative,
    workers: Workers,
    resolution: float | None = None,
) -> Answer:
    """Rank the observed labels among the draws; for a combined statistic, every part too.

    Parameters
    ----------
    form
        The statistic.
    values
        (1 + B, 1), or (1 + B, P) of the parts: those of the observed labels first.
    alternative
        Which values of the whole count.
    workers
        Who does the work.
    resolution
        How far two evaluations of a value may differ. Default: as the form says.
    """
    if not isinstance(form, Combined):
        margin = form.resolution if resolution is None else resolution
        return ranked(values[1:, 0], float(values[0, 0]), alternative, margin)
    return of_parts(form, values[0], form.evidence(values, workers), form.resolution)


def of_parts(form: Combined, values: Array, evidence: Array, resolution: float) -> Answer:
    """Rank the largest evidence (1 + B, P), and every part alone and by step-down maxima."""
    whole, observed, draws = form.combine(evidence), evidence[0], evidence[1:]
    found = ranked(whole[1:], float(whole[0]), "greater", resolution)
    raw = [
        ranked(column, own, "greater", resolution).pvalue
        for column, own in zip(draws.T, observed.tolist(), strict=True)
    ]
    # Rounding counts for the null.
    adjusted = np.maximum(pvalues.step_down(observed - resolution, draws), raw)
    parts = map(Part, form.names, values.tolist(), raw, adjusted.tolist())
    return replace(found, parts=tuple(parts))
