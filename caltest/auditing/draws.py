"""One set of label draws, seen by every hypothesis of an audit.

Labels are drawn from the full predictions, and every lens and group sees the same draws. Of the labels
one block of draws is held at a time and worker, of the statistics all: (1 + B, H) numbers.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from caltest._parallel import ALONE, Workers
from caltest._sampling import DRAWS, LabelSampler
from caltest._seeds import child_seed
from caltest._tiles import blocks
from caltest.auditing.looks import Look, Scope, Source
from caltest.auditing.plan import Hypothesis
from caltest.forms import Form
from caltest.lenses import Reducer
from caltest.statistics import FunctionStatistic

Array: TypeAlias = NDArray[np.float64]
Labels: TypeAlias = NDArray[Any]
Rows: TypeAlias = NDArray[np.intp]

_HELD = (
    2**24
)  # predicted numbers of the looks of a batch; forms hold about as many, in 8 bytes each, twice
_BYTES = 2**27  # of drawn labels held at a time by a form that takes many draws at once
_FUNCTION_CALL = 1  # key of the draw with which a user's function is called first


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
class _Seen:
    """One look's way from full labels to its own, and its forms.

    Attributes
    ----------
    rows
        Its rows; None for all.
    forms
        Statistics as functions of its labels.
    places
        Their columns among the values.
    """

    rows: Rows | None
    forms: tuple[Form, ...]
    places: tuple[int, ...]


@dataclass(frozen=True, eq=False)
class _Through:
    """A lens with the looks through it."""

    reducer: Reducer | None
    looks: tuple[_Seen, ...]

    def labels(self, full: Labels) -> Iterator[tuple[_Seen, Labels]]:
        """Yield the labels (B, n) of every look."""
        reduced = self.reducer(full) if self.reducer else full
        for look in self.looks:
            yield look, reduced if look.rows is None else reduced.take(look.rows, axis=1)


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
    drawn = Drawn(np.empty((1 + n_resamples, len(hypotheses))), np.zeros(len(hypotheses)))
    observed = np.repeat(labels[None, :].astype(sampler.dtype), 2, axis=0)  # a block, as draws are
    for batch in _batches(source, hypotheses):
        throughs = _forms(source, hypotheses, batch, drawn.resolutions)
        _call_functions_once(source, hypotheses, throughs, seed)
        _fill_alone(throughs, sampler, observed, drawn.values, workers)
        _fill_together(throughs, sampler, observed[:1], drawn.values, workers)
        _fill_parallel(throughs, sampler, observed, drawn.values, workers)
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
) -> list[_Through]:
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
            forms = tuple(hypotheses[place].form(predictions) for place in places)
            resolutions[places] = [form.resolution for form in forms]
            seen.append(_Seen(look.rows, forms, tuple(places)))
        throughs.append(_Through(source.reducer(scope), tuple(seen)))
    return throughs


def _call_functions_once(
    source: Source, hypotheses: Sequence[Hypothesis], throughs: Sequence[_Through], seed: int
) -> None:
    """Call users' functions with drawn labels first: what they may learn then, they learn from them."""
    places = [place for through in throughs for look in through.looks for place in look.places]
    if not any(isinstance(hypotheses[place].statistic, FunctionStatistic) for place in places):
        return
    drawn = source.predictions.sampler(child_seed(seed, _FUNCTION_CALL)).draw(0, 1)
    for through in throughs:
        for look, labels in through.labels(drawn):
            for form, place in zip(look.forms, look.places, strict=True):
                if isinstance(hypotheses[place].statistic, FunctionStatistic):
                    form.evaluate(labels)


def _only(throughs: Sequence[_Through], *, together: bool, inside: bool) -> tuple[_Through, ...]:
    """Keep the forms that are evaluated in one way."""
    kept = []
    for through in throughs:
        looks = []
        for look in through.looks:
            pairs = [
                pair
                for pair in zip(look.forms, look.places, strict=True)
                if pair[0].together == together and (together or pair[0].parallel_inside == inside)
            ]
            if pairs:
                forms, places = zip(*pairs, strict=True)
                looks.append(_Seen(look.rows, forms, places))
        if looks:
            kept.append(_Through(through.reducer, tuple(looks)))
    return tuple(kept)


def _fill_alone(
    throughs: Sequence[_Through],
    sampler: LabelSampler,
    observed: Labels,
    values: Array,
    workers: Workers,
) -> None:
    """Evaluate draws block by block, a block a task."""
    chosen = _only(throughs, together=False, inside=False)
    if not chosen:
        return
    places = [place for through in chosen for look in through.looks for place in look.places]
    values[0, places] = _evaluate(chosen, observed)[0]
    parts = blocks(len(values) - 1, DRAWS)
    evaluate = partial(_draw_and_evaluate, chosen, sampler)
    tasks = [(part.start, part.stop) for part in parts]
    for part, found in zip(parts, workers.map(evaluate, tasks, "label draws"), strict=True):
        values[1 + part.start : 1 + part.stop, places] = found


def _draw_and_evaluate(
    throughs: tuple[_Through, ...], sampler: LabelSampler, start: int, stop: int
) -> Array:
    return _evaluate(throughs, sampler.draw(start, stop))


def _evaluate(throughs: Sequence[_Through], full: Labels) -> Array:
    """Return (B, H) values, in the order of lenses, looks and forms."""
    columns = [
        form.evaluate(labels, ALONE)
        for through in throughs
        for look, labels in through.labels(full)
        for form in look.forms
    ]
    return np.stack(columns, axis=1)


def _each(throughs: Sequence[_Through]) -> Iterator[tuple[_Through, Form, int]]:
    for through in throughs:
        for look in through.looks:
            for form, place in zip(look.forms, look.places, strict=True):
                yield _Through(through.reducer, (_Seen(look.rows, (form,), (place,)),)), form, place


def _fill_together(
    throughs: Sequence[_Through],
    sampler: LabelSampler,
    observed: Labels,
    values: Array,
    workers: Workers,
) -> None:
    """Evaluate the observed labels among the draws, in one call that does not know them apart."""
    for through, form, place in _each(_only(throughs, together=True, inside=False)):
        parts = [observed, *(sampler.draw(b.start, b.stop) for b in blocks(len(values) - 1, DRAWS))]
        labels = np.concatenate([seen for part in parts for _, seen in through.labels(part)])
        values[:, place] = form.evaluate(labels, workers)


def _fill_parallel(
    throughs: Sequence[_Through],
    sampler: LabelSampler,
    observed: Labels,
    values: Array,
    workers: Workers,
) -> None:
    """Evaluate forms that hand work to the workers themselves, many draws at once."""
    chosen = list(_each(_only(throughs, together=False, inside=True)))
    for through, form, place in chosen:
        ((_, labels),) = through.labels(observed)
        values[0, place] = form.evaluate(labels, workers)[0]
    n_draws = len(values) - 1 if chosen else 0
    most = max(1, _BYTES // (observed[0].nbytes * DRAWS)) * DRAWS
    for batch in blocks(n_draws, most):
        tasks = [(batch.start + b.start, batch.start + b.stop) for b in blocks(_length(batch), DRAWS)]
        full = np.concatenate(list(workers.map(sampler.draw, tasks)))
        for through, form, place in chosen:
            ((_, labels),) = through.labels(full)
            values[1 + batch.start : 1 + batch.stop, place] = form.evaluate(labels, workers)


def _length(part: slice) -> int:
    return int(part.stop - part.start)
