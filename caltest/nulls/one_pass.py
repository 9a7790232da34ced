"""The exact null of very many rows: every row is taken once, with all draws of its label.

A statistic whose sums over rows merge by addition needs no vector of labels: a block of rows adds what
the observed labels and all drawn ones contribute, and is forgotten. Memory then depends on the number
of draws and of sums, not on that of the rows. Blocks are those of the grid of seeds and are added in
their order, so that neither workers nor the chunks of a file change a number.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import partial
from math import prod
from typing import Any, NamedTuple, Protocol, cast

import numpy as np
from numpy.typing import NDArray

from caltest._memory import check_fits
from caltest._parallel import Workers
from caltest._sampling import DRAWS, ROWS, LabelSampler
from caltest._tail import Alternative
from caltest._tiles import blocks
from caltest.data import Predictions, Sample, merged_notes
from caltest.forms import Additive, Combined
from caltest.nulls.base import Answer, Array, Question, ranked
from caltest.nulls.parts import answer_with_parts
from caltest.statistics import AllRowsNeededError, Partwise

_MANY_ROWS = 2**16  # from here on rows are taken one after the other, not draws
_MOST_SUMS = 2**24  # numbers held of the draws of one pass, 128 MiB; every worker holds as many

_COPIES = 3.0  # of the sums, at least: all, those of a worker, and those on the way

Summed = Additive | Combined


# ------------------------------------------------------------------ rows in memory


def takes_rows(question: Question) -> bool:
    """Say whether rows are to be taken one after the other, each with all draws of its label."""
    form = question.form
    if not isinstance(form, Additive | Combined) or form.n_samples < _MANY_ROWS:
        return False
    shape = form.sums_of_a_draw
    return shape is not None and prod(shape) * DRAWS <= _MOST_SUMS


def _passes(form: Summed, n_resamples: int) -> list[slice]:
    """Cut the draws into as few passes over the rows as the sums allow, one if they all fit."""
    each = prod(form.sums_of_a_draw or ())
    check_fits(
        _COPIES * 8.0 * each * min(n_resamples, DRAWS),
        f"{each} sums of {DRAWS} draws",
        "take fewer features (rank=64), or look through a lens",
    )
    return blocks(n_resamples, max(1, _MOST_SUMS // max(each * DRAWS, 1)) * DRAWS)


def answer_by_rows(question: Question) -> Answer:
    """Answer from rows in memory.

    Sums over rows are taken in the same order as by `evaluate`, so that they are the same.
    """
    form = cast("Summed", question.form)
    sampler = cast("Predictions", question.predictions).sampler(question.seed)
    tasks = list(enumerate(blocks(form.n_samples, ROWS)))
    values: list[Array] = []
    for draws in _passes(form, question.n_resamples):
        of_block = partial(_of_block, form, sampler, question.labels, draws)
        total = _added(question.workers.map(of_block, tasks, "label draws"))
        values.append(_finished(form, total)[min(1, len(values)) :])
    return _ranked(
        form, np.concatenate(values), form.resolution, question.alternative, question.workers
    )


def _of_block(
    form: Summed, sampler: LabelSampler, observed: Any, draws: slice, number: int, rows: slice
) -> Array:
    labels = _observed_and_drawn(sampler, observed[rows], draws, number)
    return form.contributions(rows, labels)


def _observed_and_drawn(
    sampler: LabelSampler, observed: NDArray[Any], draws: slice, number: int
) -> NDArray[np.unsignedinteger]:
    """Return the observed labels of a block of rows, and below them those of some draws."""
    labels = np.empty((1 + draws.stop - draws.start, len(observed)), dtype=sampler.dtype)
    labels[0] = observed
    labels[1:] = sampler.draw_rows(number, draws.start, draws.stop)
    return labels


def _added(parts: Iterable[Array]) -> Array:
    remaining = iter(parts)
    total = next(remaining)
    for part in remaining:
        total += part
    return total


def _finished(form: Summed, sums: Array) -> Array:
    """Return the values of sums: of a combined form, those of its parts."""
    return form.values_of(sums) if isinstance(form, Combined) else form.finish(sums)


def _ranked(
    form: Summed, values: Array, resolution: float, alternative: Alternative, workers: Workers
) -> Answer:
    """Rank the first value, that of the observed labels, among the others."""
    if isinstance(form, Combined):
        return answer_with_parts(form, values, alternative, workers)
    return ranked(values[1:], float(values[0]), alternative, resolution)


# ------------------------------------------------------------------ rows that come a block at a time


class Checked(Protocol):
    """Checks a block, without the data of the others: it goes to all workers."""

    def __call__(self, number: int, block: Any) -> Sample:
        """Return the rows of a block."""
        ...


class Blocks(Protocol):
    """Checked predictions and labels, ROWS rows at a time and the rest, in the order of the rows."""

    @property
    def n_samples(self) -> int:
        """Number of rows n."""
        ...

    def tasks(self) -> Any:
        """Return a sequence of (number, block), read as it is gone through."""
        ...

    @property
    def checked(self) -> Checked:
        """Checks a block, given its number; returns it as a lens shows it."""
        ...


class Totals(NamedTuple):
    """What a pass adds up."""

    sums: Array
    rounding: Array
    impossible: NDArray[np.intp]  # rows whose label had probability 0
    notes: tuple[str, ...]


@dataclass(frozen=True, eq=False)
class PassAnswer:
    """The answer of rows that came a block at a time.

    Attributes
    ----------
    value
        The statistic of the observed labels.
    answer
        What the null says.
    n_classes
        Number of classes m, as a lens shows them.
    impossible
        Rows whose label had probability 0.
    notes
        What was done to the rows.
    """

    value: float
    answer: Answer
    n_classes: int
    impossible: NDArray[np.intp]
    notes: tuple[str, ...]


def answer_by_blocks(
    partwise: Partwise,
    rows: Blocks,
    alternative: Alternative,
    n_resamples: int,
    seed: int,
    workers: Workers,
) -> PassAnswer:
    """Answer from rows that come a block at a time: in one pass, where the sums of all draws fit.

    If they do not (a thousand classes times hundreds of features), a pass takes as many draws as fit.
    """
    first = rows.checked(*next(iter(rows.tasks()))).predictions
    form = partwise.given(first)
    if form.sums_of_a_draw is None:
        raise AllRowsNeededError(f"{partwise.statistic.name!r} needs all rows at once.")
    collected: list[Array] = []
    for draws in _passes(form, n_resamples):
        of_block = partial(_of_stored_block, partwise, rows.checked, seed, draws)
        found = _merged(workers.map(of_block, rows.tasks(), "label draws"))
        collected.append(_finished(form, found.sums)[min(1, len(collected)) :])
    values = np.concatenate(collected)
    if isinstance(form, Combined):
        form = form.with_rounding(found.rounding)
        value = form.combine(form.evidence(values[:1]))[0]
    else:
        value = values[0]
    answer = _ranked(form, values, float(found.rounding[0]), alternative, workers)
    return PassAnswer(float(value), answer, first.n_classes, found.impossible, found.notes)


def _of_stored_block(
    partwise: Partwise, checked: Checked, seed: int, draws: slice, number: int, block: Any
) -> Totals:
    part = checked(number, block)
    predictions = part.predictions
    form = partwise.given(predictions)
    labels = _observed_and_drawn(predictions.sampler(seed, number), part.labels, draws, 0)
    sums = form.contributions(slice(0, predictions.n_samples), labels)
    impossible = predictions.impossible(part.labels) + number * ROWS
    return Totals(sums, _rounding(form), impossible, predictions.notes)


def _rounding(form: Summed) -> Array:
    if isinstance(form, Combined):
        return np.array([part.form.resolution for part in form.components])
    return np.array([form.resolution])


def _merged(parts: Iterable[Totals]) -> Totals:
    remaining = iter(parts)
    sums, rounding, impossible, notes = next(remaining)
    seen = [impossible]
    for part in remaining:
        sums += part.sums
        rounding = rounding + part.rounding
        seen.append(part.impossible)
        notes = merged_notes((*notes, *part.notes))
    return Totals(sums, rounding, np.concatenate(seen), notes)
