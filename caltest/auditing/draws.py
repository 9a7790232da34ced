"""One set of label draws, seen by every hypothesis of an audit: its columns for the engine.

Labels are drawn from the full predictions, and every lens and group sees the same draws. Of the labels
one block of draws is held at a time and worker, of the statistics all: (1 + B, H) numbers.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from caltest._memory import check_fits
from caltest._parallel import Workers
from caltest.auditing.looks import Look, Scope, Source
from caltest.auditing.plan import Hypothesis
from caltest.forms import LabelFunction
from caltest.lenses import Reducer
from caltest.resampling import Column, LabelDraws, Reduce, View, table

Array: TypeAlias = NDArray[np.float64]
Labels: TypeAlias = NDArray[Any]

# Predicted numbers of the looks of a batch; forms hold about as many, in 8 bytes each, twice.
_HELD = 2**24
_TABLES = 4.0  # tables of draws and hypotheses that are held at a time, with their ranks


@dataclass(frozen=True, eq=False)
class Drawn:
    """The statistics of the observed labels and of all draws.

    Attributes
    ----------
    values
        (1 + B, H): the first row of the observed labels.
    resolutions
        (H,) how far two evaluations of one value may differ by rounding.
    """

    values: Array
    resolutions: Array


def draw_all(
    source: Source,
    labels: NDArray[np.intp],
    hypotheses: Sequence[Hypothesis],
    n_resamples: int,
    seed: int,
    workers: Workers,
) -> Drawn:
    """Evaluate every hypothesis's statistic on the observed labels and on the same draws.

    Parameters
    ----------
    source
        The full predictions.
    labels
        The observed labels, (n,).
    hypotheses
        H hypotheses, those of a look side by side.
    n_resamples
        Label draws, B.
    seed
        Of the draws: those of :func:`caltest.test` with this seed.
    workers
        Who does the work.
    """
    hypotheses = [replace(each, statistic=each.statistic.shuffled(seed)) for each in hypotheses]
    check_fits(
        _TABLES * 8.0 * n_resamples * len(hypotheses),
        f"an audit of {len(hypotheses)} hypotheses with {n_resamples} draws each",
        "take fewer draws, groups or statistics",
    )
    drawn = Drawn(np.empty((1 + n_resamples, len(hypotheses))), np.zeros(len(hypotheses)))
    draws = LabelDraws(source.predictions.sampler(seed), labels, n_resamples)
    batches = list(_batches(source, hypotheses))
    if len(batches) > 1:
        draws = draws.held(workers)
    for batch in batches:
        columns = _columns(source, hypotheses, batch)
        values = table(columns, draws, workers)
        drawn.values[:, batch] = values
        drawn.resolutions[batch] = [form.resolution for _, form in columns]
        for (view, form), value in zip(columns, values[0], strict=True):
            if isinstance(form, LabelFunction):
                form.check_unmoved(view.labels(labels[None])[0], float(value))
    return drawn


def _batches(source: Source, hypotheses: Sequence[Hypothesis]) -> Iterator[list[int]]:
    """Yield places of hypotheses whose forms are held at once; those of a look stay together."""
    batch: list[int] = []
    held, last = 0, None
    for place, hypothesis in enumerate(hypotheses):
        look = hypothesis.look
        size = look.n_rows * (2 if look.event else source.seen(look.scope).n_classes)
        if batch and look is not last and held + size > _HELD:
            yield batch
            batch, held = [], 0
        batch.append(place)
        held, last = held + size, look
    yield batch


def _columns(source: Source, hypotheses: Sequence[Hypothesis], batch: Sequence[int]) -> list[Column]:
    """Return the columns of a batch; those of a look share its view, those of a lens its labels."""
    reduced: dict[Scope, Reduce | None] = {}
    columns: list[Column] = []
    last: Look | None = None
    for place in batch:
        look = hypotheses[place].look
        if look is not last:
            last = look
            if look.scope not in reduced:
                reducer = source.reducer(look.scope)
                reduced[look.scope] = None if reducer is None else partial(_of_all, reducer)
            predictions = source.at(look)
            share = float(predictions.probs[:, 1].mean())
            view = View(look.rows, reduced[look.scope], look.scope.column, share)
        columns.append(Column(view, hypotheses[place].form(predictions)))
    return columns


def _of_all(reducer: Reducer, labels: Labels, rows: slice) -> Labels:
    return reducer(labels)
