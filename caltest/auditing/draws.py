"""One set of label draws, seen by every hypothesis of an audit.

Labels are drawn from the full predictions, and every lens and group sees the same draws. Of the labels
one block of draws is held at a time and worker, of the statistics all: (1 + B, H) numbers.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from caltest._memory import check_fits
from caltest._parallel import Workers
from caltest._sampling import DRAWS, Hidden, LabelSampler
from caltest._tiles import blocks
from caltest.auditing.filling import (
    Draws,
    Seen,
    Through,
    fill_alone,
    fill_hidden,
    fill_parallel,
    fill_together,
)
from caltest.auditing.looks import Look, Scope, Source
from caltest.auditing.plan import Hypothesis
from caltest.forms import LabelFunction

Array: TypeAlias = NDArray[np.float64]
Labels: TypeAlias = NDArray[Any]

# Predicted numbers of the looks of a batch; forms hold about as many, in 8 bytes each, twice.
_HELD = 2**24
_MOST_HELD = 2**28  # bytes of drawn labels that are kept for all batches
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


@dataclass(frozen=True, eq=False)
class _Held:
    """Labels drawn once for several batches of looks: with many classes, drawing takes longest.

    Attributes
    ----------
    labels
        All draws, (B, n).
    """

    labels: Labels

    @classmethod
    def of(cls, sampler: LabelSampler, n_resamples: int, workers: Workers) -> _Held:
        tasks = [(part.start, part.stop) for part in blocks(n_resamples, DRAWS)]
        labels = np.empty((n_resamples, len(sampler.cumulative)), dtype=sampler.dtype)
        for (start, stop), drawn in zip(tasks, workers.map(sampler.draw, tasks), strict=True):
            labels[start:stop] = drawn
        return cls(labels)

    def draw(self, start: int, stop: int) -> Labels:
        return self.labels[start:stop]


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
    sampler = source.predictions.sampler(seed)
    hypotheses = [replace(each, statistic=each.statistic.shuffled(seed)) for each in hypotheses]
    check_fits(
        _TABLES * 8.0 * n_resamples * len(hypotheses),
        f"an audit of {len(hypotheses)} hypotheses with {n_resamples} draws each",
        "take fewer draws, groups or statistics",
    )
    drawn = Drawn(np.empty((1 + n_resamples, len(hypotheses))), np.zeros(len(hypotheses)))
    observed = np.repeat(labels[None, :].astype(sampler.dtype), 2, axis=0)  # a block, as draws are
    batches = list(_batches(source, hypotheses))
    draws: Draws = sampler
    if len(batches) > 1 and n_resamples * observed[0].nbytes <= _MOST_HELD:
        draws = _Held.of(sampler, n_resamples, workers)
    for batch in batches:
        throughs = _forms(source, hypotheses, batch, drawn.resolutions)
        fill_alone(throughs, draws, observed, drawn.values, workers)
        fill_hidden(throughs, Hidden.among(sampler, labels, n_resamples), drawn.values, workers)
        fill_together(throughs, draws, observed[:1], drawn.values, workers)
        fill_parallel(throughs, draws, observed, drawn.values, workers)
        _check_functions(throughs, observed[:1], drawn.values[0])
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


def _forms(
    source: Source, hypotheses: Sequence[Hypothesis], batch: Sequence[int], resolutions: Array
) -> list[Through]:
    """Build the forms of a batch, lens by lens and look by look."""
    by_scope: dict[Scope, dict[Look, list[int]]] = {}
    for place in batch:
        look = hypotheses[place].look
        by_scope.setdefault(look.scope, {}).setdefault(look, []).append(place)
    throughs = []
    for scope, looks in by_scope.items():
        seen = []
        for look, places in looks.items():
            predictions = source.at(look)
            share = float(predictions.probs[:, 1].mean())
            forms = tuple(hypotheses[place].form(predictions) for place in places)
            resolutions[places] = [form.resolution for form in forms]
            seen.append(Seen(look.rows, share, forms, tuple(places)))
        throughs.append(Through(source.reducer(scope), tuple(seen), scope.column))
    return throughs


def _check_functions(throughs: Sequence[Through], observed: Labels, values: Array) -> None:
    """Raise if a function gives the observed labels another value after the draws."""
    if not any(
        isinstance(form, LabelFunction)
        for through in throughs
        for look in through.looks
        for form in look.forms
    ):
        return
    for through in throughs:
        for look, labels in through.labels(observed):
            for form, place in zip(look.forms, look.places, strict=True):
                if isinstance(form, LabelFunction):
                    form.check_unmoved(labels[0], float(values[place]))
