"""The engine: views × statistics × draws of labels, one table, in which every exact p-value is a rank.

A *column* is one statistic of one view (a lens on some rows), with its predictions fixed. Labels are
drawn from the full predictions, and every column uses the same draws, so joint statements about several
columns are exact too. The observed labels are one more draw, number 0, evaluated once and by the same
loop as the others: `table` returns (1 + B, H) values whose first row is theirs.

Here all rows are processed at once, one block of draws after another; ``caltest.blocks`` processes very
many rows block by block.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, NamedTuple, cast

import numpy as np

from caltest._parallel import ALONE, Workers
from caltest._sums import Array, Places, blocks
from caltest.clusters import Clusters
from caltest.forms import Combined, Form, LabelFunction, Sums
from caltest.forms.sums import EventColumns, OfOneClass, of_events
from caltest.laws.classes import LabelSampler, Outcomes, Sampler
from caltest.lenses.classes import ALL, Reduction, taken
from caltest.sampling import DRAWS, SignSampler, child_seed, generator

_BYTES = 2**27  # of drawn labels that are passed at once to a form that takes many draws
_MOST_HELD = 2**28  # bytes of labels that are drawn once and kept, if several loops need them
_PLACE = 1  # key of the seed that decides where the observed labels are hidden


# ------------------------------------------------------------------ columns


class Column(NamedTuple):
    """One statistic of one view; a view of None means all rows, without a lens."""

    view: Reduction | None
    form: Any

    def outcomes(self, full: Outcomes, rows: slice = ALL) -> Outcomes:
        """Return the outcomes (B, …) that the form takes, from the full ones of some rows."""
        return full if self.view is None else self.view.outcomes(full, rows)


def columns_of(form: Form, view: Reduction | None = None) -> tuple[Column, ...]:
    """Return a statistic of all rows as columns; a combined one has a column for each component."""
    if isinstance(form, Combined):
        return tuple(Column(part.view, part.form) for part in form.components)
    return (Column(view, form),)


# ------------------------------------------------------------------ draws


@dataclass(frozen=True, eq=False)
class Draws:
    """Outcomes drawn from the predictions, with the observed ones among them.

    Or signs of clusters, see `signed_columns`; signs of +1 are then the observed data.

    Attributes
    ----------
    sampler
        The source of draws.
    observed
        The observed labels, (n,), or outcomes.
    count
        Number of draws B.
    place
        Number of draws before the observed labels; 0 if they are first.
    kept
        All draws, if they are kept: one block of the grid each, for two classes as bits.
    """

    sampler: Sampler
    observed: Outcomes
    count: int
    place: int = 0
    kept: tuple[Any, ...] = ()

    @property
    def of_bits(self) -> bool:
        """Whether they are labels of two classes."""
        return type(self.sampler) is LabelSampler and self.sampler.cumulative.shape[1] == 1

    def hidden(self) -> Draws:
        """Hide the observed labels at a random place.

        Under H0 the observed labels are exchangeable with the draws; hiding their position keeps a
        stateful function from singling them out, so their value has every rank with the same
        probability.
        """
        place = generator(child_seed(self.sampler.seed, _PLACE)).integers(self.count + 1)
        return replace(self, place=int(place))

    def held(self, workers: Workers) -> Draws:
        """Draw once and keep the draws if they fit in memory; two classes are kept as bits."""
        sampler: Any = self.sampler
        if not isinstance(sampler, LabelSampler):
            return self
        draw, size = (sampler.bits, 1 / 8) if self.of_bits else (sampler.draw, sampler.dtype.itemsize)
        if self.count * size * self.observed.size > _MOST_HELD:
            return self
        return replace(self, kept=tuple(workers.map(draw, self.tasks())))

    def tasks(self, first: int = 0, last: int | None = None) -> list[tuple[int, int]]:
        """Cut draws into blocks of the grid of seeds."""
        parts = blocks((self.count if last is None else last) - first, self.sampler.block)
        return [(first + part.start, first + part.stop) for part in parts]

    def draw(self, start: int, stop: int) -> Outcomes:
        """Return a block of the grid of draws, with the observed labels if their place is in it."""
        held = self.kept and not self.of_bits
        drawn = self.kept[start // self.sampler.block] if held else self.sampler.draw(start, stop)
        if start <= self.place < stop or stop == self.place == self.count:
            return np.insert(drawn, self.place - start, self.observed, axis=0)
        return drawn

    def bits(self, start: int, stop: int) -> Any:
        """Return a block of labels of two classes as bits, the observed ones last."""
        sampler: Any = self.sampler
        drawn = self.kept[start // DRAWS] if self.kept else sampler.bits(start, stop)
        return drawn.with_one(self.observed) if stop == self.count else drawn


# ------------------------------------------------------------------ signs of clusters


class Carried(NamedTuple):
    """A column, with the clusters of its rows."""

    form: Any  # with signs
    places: Places  # of its clusters, among all
    clusters: Clusters
    observed: Outcomes  # its outcomes, (1, n)


def carried(
    columns: Sequence[Column], outcomes: Outcomes, clusters: Places, weights: Array
) -> Iterator[Carried]:
    """Yield columns with what `signed_columns` takes of each."""
    for column in columns:
        rows = ALL if column.view is None or column.view.places is None else column.view.places
        own = Clusters.of(clusters[rows], weights[rows])
        yield Carried(column.form, np.unique(clusters[rows]), own, column.outcomes(outcomes[None]))


def signed_columns(
    columns: Sequence[Column], outcomes: Outcomes, clusters: Places, weights: Array
) -> tuple[Column, ...]:
    """Return columns whose outcomes are signs of clusters, (B, G), for `table` with `sign_draws`.

    Parameters
    ----------
    columns
        As for draws of outcomes; all forms are `HasSigns`.
    outcomes
        The observed outcomes of the full predictions, (n,).
    clusters, weights
        The cluster of every row, (n,), 0..G−1, and its weight.
    """
    found, count = [], int(clusters.max()) + 1
    for form, places, own, observed in carried(columns, outcomes, clusters, weights):
        here = None if len(places) == count else Reduction(cast("Any", None), places=places)
        found.append(Column(here, form.signed(observed[0], own)))
    return tuple(found)


def sign_draws(columns: Sequence[Column], n_clusters: int, count: int, seed: int) -> Draws:
    """Return draws of signs for columns of these; all sign vectors, if ``count`` is enough for them.

    If flipping every sign leaves the columns unchanged, half of the sign vectors suffice.
    """
    return draws_of_signs(n_clusters, count, seed, all(column.form.even for column in columns))


def draws_of_signs(n_clusters: int, count: int, seed: int, even: bool = False) -> Draws:
    """Return draws of signs of so many clusters; ``even`` statistics need only half of them."""
    free, ones = n_clusters - even, np.ones(n_clusters, dtype=np.int8)
    if 2**free <= count + 1:
        return Draws(SignSampler(n_clusters, seed, free), ones, 2**free - 1)
    return Draws(SignSampler(n_clusters, seed), ones, count)


# ------------------------------------------------------------------ draw by draw


def table(columns: Sequence[Column], draws: Draws, workers: Workers) -> Array:
    """Return the (1 + B, H) values of all columns: of the observed labels, and of all draws.

    Parameters
    ----------
    columns
        Views with their statistics.
    draws
        Labels of the full predictions.
    workers
        The worker pool.
    """
    values = np.empty((1 + draws.count, len(columns)))
    unseen, of_bits, inside, by_blocks = (list[int]() for _ in range(4))
    for place, (view, form) in enumerate(columns):
        if isinstance(form, LabelFunction):
            unseen.append(place)
        elif form.parallel_inside:
            inside.append(place)
        else:
            plain = draws.of_bits and form.takes_bits and (view is None or view.see is None)
            (of_bits if plain else by_blocks).append(place)
    # Drawing a row, or evaluating it in user functions and in forms that work in parallel, takes ten
    # times as long as in other forms.
    n = draws.observed.size
    rows_of = [n if x is None or x.places is None else len(x.places) for x, _ in columns]
    times = ((unseen, 1.0), (of_bits, 0.1), (by_blocks, 0.1), (inside, 1.0))
    sizes = [bool(places) * n + each * sum(rows_of[k] for k in places) for places, each in times]
    *hands, workers = workers.parts(sizes)
    hidden = draws.hidden()  # user functions must not tell the observed labels from the draws
    drawn = (hidden.draw, hidden.place), (draws.bits, draws.count), (draws.draw, draws.place)
    for places, own, (draw, at) in zip((unseen, of_bits, by_blocks), hands, drawn, strict=True):
        if places:
            block = _Block.of([columns[place] for place in places])
            found = np.concatenate(list(own.map(partial(block, draw), draws.tasks(), "label draws")))
            values[0, places], values[1:, places] = found[at], np.delete(found, at, axis=0)
    # Forms that work in parallel inside get many draws per call, others one block per task.
    cell = draws.sampler.block
    size = max(1, _BYTES // (max(draws.observed.size, 1) * cell)) * cell
    batches = blocks(draws.count, size) if inside else []
    for batch, own in zip(batches, workers.parts([x.stop - x.start for x in batches]), strict=True):
        drawing, *within = own.parts([n, *(rows_of[place] for place in inside)])
        tasks = draws.tasks(batch.start, batch.stop)
        rows = slice(batch.start + (batch.start > 0), batch.stop + 1)
        labels = np.concatenate(list(drawing.map(draws.draw, tasks, "label draws")))
        for place, one in zip(inside, within, strict=True):
            values[rows, place] = columns[place].form.of_labels(columns[place].outcomes(labels), one)
    return values


@dataclass(frozen=True, eq=False)
class _Block:
    """Evaluates columns on a block of draws, without workers: the work of one worker.

    Attributes
    ----------
    columns, places
        Statistics, ordered by lens and view, and their places among the values.
    by_class
        Statistics of one class each, all evaluated together.
    """

    columns: tuple[Column, ...]
    places: tuple[int, ...]
    by_class: tuple[EventColumns, ...]

    @classmethod
    def of(cls, columns: Sequence[Column]) -> _Block:
        """Order columns, and separate those evaluated from the rows in which a class was observed."""
        found = list[OfOneClass]()
        others: dict[int, dict[int, list[int]]] = {}
        for place, (view, form) in enumerate(columns):
            see, event = (None, None) if view is None else (view.see, view.event)
            events = None if view is None or event is None else of_events(form, view.share)
            if view is not None and event is not None and events is not None:
                found.append(OfOneClass(view.places, event, events, place))
            else:
                others.setdefault(id(see), {}).setdefault(id(view), []).append(place)
        places = tuple(place for views in others.values() for each in views.values() for place in each)
        return cls(tuple(columns[place] for place in places), places, EventColumns.of(found))

    def __call__(self, draw: Callable[[int, int], Any], start: int, stop: int) -> Array:
        return self.of_labels(draw(start, stop))

    def of_labels(self, full: Outcomes) -> Array:
        """Return (b, H) values for full outcomes (b, …)."""
        count = len(self.places) + sum(len(each.parts) for each in self.by_class)
        values = np.empty((len(full), count))
        lens, reduced = None, full
        last, labels = None, full
        summed, sums = None, np.empty(0)
        for (view, form), place in zip(self.columns, self.places, strict=True):
            see, rows = (None, None) if view is None else (view.see, view.places)
            if see is not lens:
                lens, reduced = see, full if see is None else see(full)
            if view is not last or view is None:
                last, labels = view, reduced if rows is None else taken(reduced, rows)
            scores = form.shared_scores if isinstance(form, Sums) else None
            if scores is None:
                values[:, place] = form.of_labels(labels, ALONE)
                continue
            if scores != summed:
                summed, sums = scores, scores.sums(labels)
            values[:, place] = form.reduce(sums, form.fixed)
        for each in self.by_class:
            values[:, [one.place for one in each.parts]] = each.of_labels(full)
        return values
