"""The parts of a combined statistic, each with a p-value of its own from the same draws."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from caltest import _tail
from caltest._parallel import Workers
from caltest._tail import Alternative
from caltest.forms import HasParts
from caltest.multiplicity import StepDown
from caltest.nulls.base import Answer, Array, Part, ranked


def answer_with_parts(
    form: HasParts, values: Array, alternative: Alternative, workers: Workers
) -> Answer:
    """Answer a combined statistic and, from the same draws, each of its parts.

    Parameters
    ----------
    form
        The combination.
    values
        (1 + B, P) values of the parts, those of the observed labels first.
    alternative
        Which values of the whole count.
    workers
        Who does the work.
    """
    found = form.evidence(values, workers)
    whole, resolution = form.combine(found), form.resolution
    answer = ranked(whole[1:], float(whole[0]), alternative, resolution)
    return replace(answer, parts=_parts(form, resolution, values[0], found))


def _parts(form: HasParts, resolution: float, values: Array, found: Array) -> tuple[Part, ...]:
    """Rank every part among the draws, alone and by Westfall and Young's step-down maxima."""
    observed, draws = found[0], found[1:]
    exceedances = [
        _tail.count(column, float(own), "greater", resolution)
        for column, own in zip(draws.T, observed, strict=True)
    ]
    raw = np.array([_tail.pvalue(count, len(draws), "greater") for count in exceedances])
    test = StepDown.of(observed - resolution)  # rounding counts for the null
    adjusted = np.maximum(test.pvalues(test.count(draws), len(draws)), raw)
    return tuple(
        Part(name, float(value), float(own), float(joint))
        for name, value, own, joint in zip(form.names, values, raw, adjusted, strict=True)
    )
