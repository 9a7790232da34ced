"""One set of label draws, seen by every hypothesis of an audit.

Labels are drawn from the full predictions, and every lens and group sees the same draws. Of the labels
one block of draws is held at a time and worker, of the statistics all: (1 + B, H) numbers.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from caltest._parallel import ALONE, Workers
from caltest._sampling import DRAWS, LabelSampler
from caltest._seeds import child_seed
from caltest._tiles import blocks
from caltest.auditing.events import Classes, classes, of_events
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
_MOST_HELD = 2**28  # bytes of drawn labels that are kept for all batches
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
    share
        Of them, in which class 1 is expected.
    forms
        Statistics as functions of its labels.
    places
        Their columns among the values.
    """

    rows: Rows | None
    share: float
    forms: tuple[Form, ...]
    places: tuple[int, ...]


@dataclass(frozen=True, eq=False)
class _Through:
    """A lens with the looks through it; the class that it looks at, if it is one."""

    reducer: Reducer | None
    looks: tuple[_Seen, ...]
    column: int | None

    def labels(self, full: Labels) -> Iterator[tuple[_Seen, Labels]]:
        """Yield the labels (B, n) of every look."""
        reduced = self.reducer(full) if self.reducer else full
        for look in self.looks:
            yield look, reduced if look.rows is None else reduced.take(look.rows, axis=1)


class Draws(Protocol):
    """Label draws, block by block."""

    def draw(self, start: int, stop: int) -> Labels:
        """Return draws ``start`` (a multiple of DRAWS) to ``stop``, (stop − start, n)."""
        ...


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
    drawn = Drawn(np.empty((1 + n_resamples, len(hypotheses))), np.zeros(len(hypotheses)))
    observed = np.repeat(labels[None, :].astype(sampler.dtype), 2, axis=0)  # a block, as draws are
    batches = list(_batches(source, hypotheses))
    draws: Draws = sampler
    if len(batches) > 1 and n_resamples * observed[0].nbytes <= _MOST_HELD:
        draws = _Held.of(sampler, n_resamples, workers)
    for batch in batches:
        throughs = _forms(source, hypotheses, batch, drawn.resolutions)
        _call_functions_once(source, hypotheses, throughs, seed)
        _fill_alone(throughs, draws, observed, drawn.values, workers)
        _fill_together(throughs, draws, observed[:1], drawn.values, workers)
        _fill_parallel(throughs, draws, observed, drawn.values, workers)
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
            share = float(predictions.probs[:, 1].mean())
            forms = tuple(hypotheses[place].form(predictions) for place in places)
            resolutions[places] = [form.resolution for form in forms]
            seen.append(_Seen(look.rows, share, forms, tuple(places)))
        throughs.append(_Through(source.reducer(scope), tuple(seen), scope.column))
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
                looks.append(_Seen(look.rows, look.share, forms, places))
        if looks:
            kept.append(_Through(through.reducer, tuple(looks), through.column))
    return tuple(kept)


def _fill_alone(
    throughs: Sequence[_Through],
    sampler: Draws,
    observed: Labels,
    values: Array,
    workers: Workers,
) -> None:
    """Evaluate draws block by block, a block a task."""
    chosen, by_class = _split(_only(throughs, together=False, inside=False))
    if not chosen and not by_class:
        return
    places = [place for through in chosen for look in through.looks for place in look.places]
    places += [place for each in by_class for place in each.places]
    values[0, places] = _evaluate(chosen, by_class, observed)[0]
    parts = blocks(len(values) - 1, DRAWS)
    evaluate = partial(_draw_and_evaluate, chosen, by_class, sampler)
    tasks = [(part.start, part.stop) for part in parts]
    for part, found in zip(parts, workers.map(evaluate, tasks, "label draws"), strict=True):
        values[1 + part.start : 1 + part.stop, places] = found


def _split(
    throughs: Sequence[_Through],
) -> tuple[tuple[_Through, ...], tuple[Classes, ...]]:
    """Set apart what is evaluated from the rows in which a class came true."""
    others, found = [], []
    for through in throughs:
        looks = []
        for look in through.looks:
            kept = []
            for form, place in zip(look.forms, look.places, strict=True):
                fast = None if through.column is None else of_events(form, look.share)
                if fast is None:
                    kept.append((form, place))
                else:
                    found.append((look.rows, int(through.column or 0), fast, place))
            if kept:
                forms, places = zip(*kept, strict=True)
                looks.append(_Seen(look.rows, look.share, forms, places))
        if looks:
            others.append(_Through(through.reducer, tuple(looks), through.column))
    return tuple(others), classes(found)


def _draw_and_evaluate(
    throughs: tuple[_Through, ...],
    by_class: tuple[Classes, ...],
    sampler: Draws,
    start: int,
    stop: int,
) -> Array:
    return _evaluate(throughs, by_class, sampler.draw(start, stop))


def _evaluate(throughs: Sequence[_Through], by_class: Sequence[Classes], full: Labels) -> Array:
    """Return (B, H) values, in the order of lenses, looks and forms, then of classes."""
    columns = [
        form.evaluate(labels, ALONE)[:, None]
        for through in throughs
        for look, labels in through.labels(full)
        for form in look.forms
    ]
    return np.concatenate([*columns, *(each.evaluate(full) for each in by_class)], axis=1)


def _each(throughs: Sequence[_Through]) -> Iterator[tuple[_Through, Form, int]]:
    for through in throughs:
        for look in through.looks:
            for form, place in zip(look.forms, look.places, strict=True):
                seen = _Seen(look.rows, look.share, (form,), (place,))
                yield _Through(through.reducer, (seen,), through.column), form, place


def _fill_together(
    throughs: Sequence[_Through],
    sampler: Draws,
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
    sampler: Draws,
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
