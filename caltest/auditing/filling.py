"""How the forms of an audit are evaluated: what a block of draws is seen as, and who evaluates it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import Enum
from functools import partial
from typing import Any, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from caltest._parallel import ALONE, Workers
from caltest._sampling import DRAWS, Hidden
from caltest._tiles import blocks
from caltest.auditing.events import Classes, classes, of_events
from caltest.forms import Form, LabelFunction
from caltest.lenses import Reducer

Array: TypeAlias = NDArray[np.float64]
Labels: TypeAlias = NDArray[Any]
Rows: TypeAlias = NDArray[np.intp]

_BYTES = 2**27  # of drawn labels held at a time by a form that takes many draws at once


@dataclass(frozen=True, eq=False)
class Seen:
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
class Through:
    """A lens with the looks through it; the class that it looks at, if it is one."""

    reducer: Reducer | None
    looks: tuple[Seen, ...]
    column: int | None

    def labels(self, full: Labels) -> Iterator[tuple[Seen, Labels]]:
        """Yield the labels (B, n) of every look."""
        reduced = self.reducer(full) if self.reducer else full
        for look in self.looks:
            yield look, reduced if look.rows is None else reduced.take(look.rows, axis=1)


class Draws(Protocol):
    """Label draws, block by block."""

    def draw(self, start: int, stop: int) -> Labels:
        """Return draws ``start`` (a multiple of DRAWS) to ``stop``, (stop − start, n)."""
        ...


class Way(Enum):
    """How a form is evaluated."""

    ALONE = "a block of draws a task"
    INSIDE = "many draws at once, by workers of its own"
    TOGETHER = "all draws in one call"
    HIDDEN = "as alone, the observed labels somewhere among the draws"

    @classmethod
    def of(cls, form: Form) -> Way:
        """Return the way of a form."""
        if isinstance(form, LabelFunction):
            return cls.HIDDEN
        if form.together:
            return cls.TOGETHER
        return cls.INSIDE if form.parallel_inside else cls.ALONE


def _only(throughs: Sequence[Through], way: Way) -> tuple[Through, ...]:
    """Keep the forms that are evaluated in one way."""
    kept = []
    for through in throughs:
        looks = []
        for look in through.looks:
            pairs = [
                pair for pair in zip(look.forms, look.places, strict=True) if Way.of(pair[0]) is way
            ]
            if pairs:
                forms, places = zip(*pairs, strict=True)
                looks.append(Seen(look.rows, look.share, forms, places))
        if looks:
            kept.append(Through(through.reducer, tuple(looks), through.column))
    return tuple(kept)


def fill_alone(
    throughs: Sequence[Through],
    sampler: Draws,
    observed: Labels,
    values: Array,
    workers: Workers,
) -> None:
    """Evaluate draws block by block, a block a task."""
    chosen, by_class = _split(_only(throughs, Way.ALONE))
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


def fill_hidden(throughs: Sequence[Through], hidden: Hidden, values: Array, workers: Workers) -> None:
    """Evaluate functions, which may keep something from call to call, block by block."""
    chosen = _only(throughs, Way.HIDDEN)
    if not chosen:
        return
    places = [place for through in chosen for look in through.looks for place in look.places]
    evaluate = partial(_draw_and_evaluate, chosen, (), hidden)
    tasks = [(part.start, part.stop) for part in blocks(hidden.last, DRAWS)]
    found = np.concatenate(list(workers.map(evaluate, tasks, "label draws")))
    values[0, places] = found[hidden.place]
    values[1:, places] = np.delete(found, hidden.place, axis=0)


def _split(
    throughs: Sequence[Through],
) -> tuple[tuple[Through, ...], tuple[Classes, ...]]:
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
                looks.append(Seen(look.rows, look.share, forms, places))
        if looks:
            others.append(Through(through.reducer, tuple(looks), through.column))
    return tuple(others), classes(found)


def _draw_and_evaluate(
    throughs: tuple[Through, ...],
    by_class: tuple[Classes, ...],
    sampler: Draws,
    start: int,
    stop: int,
) -> Array:
    return _evaluate(throughs, by_class, sampler.draw(start, stop))


def _evaluate(throughs: Sequence[Through], by_class: Sequence[Classes], full: Labels) -> Array:
    """Return (B, H) values, in the order of lenses, looks and forms, then of classes."""
    columns = [
        form.evaluate(labels, ALONE)[:, None]
        for through in throughs
        for look, labels in through.labels(full)
        for form in look.forms
    ]
    return np.concatenate([*columns, *(each.evaluate(full) for each in by_class)], axis=1)


def _each(throughs: Sequence[Through]) -> Iterator[tuple[Through, Form, int]]:
    for through in throughs:
        for look in through.looks:
            for form, place in zip(look.forms, look.places, strict=True):
                seen = Seen(look.rows, look.share, (form,), (place,))
                yield Through(through.reducer, (seen,), through.column), form, place


def fill_together(
    throughs: Sequence[Through],
    sampler: Draws,
    observed: Labels,
    values: Array,
    workers: Workers,
) -> None:
    """Evaluate the observed labels among the draws, in one call that does not know them apart."""
    for through, form, place in _each(_only(throughs, Way.TOGETHER)):
        parts = [observed, *(sampler.draw(b.start, b.stop) for b in blocks(len(values) - 1, DRAWS))]
        labels = np.concatenate([seen for part in parts for _, seen in through.labels(part)])
        values[:, place] = form.evaluate(labels, workers)


def fill_parallel(
    throughs: Sequence[Through],
    sampler: Draws,
    observed: Labels,
    values: Array,
    workers: Workers,
) -> None:
    """Evaluate forms that hand work to the workers themselves, many draws at once."""
    chosen = list(_each(_only(throughs, Way.INSIDE)))
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
