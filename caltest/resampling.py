"""The engine: views × statistics × draws of labels, one table, in which every exact p-value is a rank.

A *column* is one statistic of one view (a lens on some rows), its predictions fixed. Labels are drawn
from the full predictions, and every column sees the same draws, so that joint statements about several
columns are exact too. The observed labels are one more draw, number 0, evaluated once and by the same
loop as the others: `table` returns (1 + B, H) values whose first row they are.

Few rows are taken all at once, a block of draws after another. Very many are taken a block at a time,
each with all draws of its labels, if the sums of all columns merge by addition: `table_of_rows` of rows
in memory, `table_of_blocks` of those that are read from where they are stored. Blocks are those of the
grid of seeds, a task is a run of them, which a worker reads for itself, and sums of blocks are added in
the order of `added`: neither workers nor chunks change a number.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from functools import partial
from itertools import zip_longest
from math import prod
from operator import iadd
from typing import Any, Generic, NamedTuple, Protocol, TypeAlias, TypeVar, cast

import numpy as np
from numpy.typing import NDArray

from caltest._memory import check_fits
from caltest._parallel import ALONE, BRANCHES, Workers, added
from caltest._sampling import (
    DRAWS,
    ROWS,
    LabelSampler,
    OutcomeSampler,
    SignSampler,
    child_seed,
    generator,
)
from caltest._tiles import blocks
from caltest.data import Rows, Sample, merged_notes, subsample
from caltest.forms import Additive, Clusters, Combined, Form, HasSigns, LabelFunction, Signed
from caltest.forms.base import taken
from caltest.forms.events import Classes, OfEvents, classes, of_events

Array: TypeAlias = NDArray[np.float64]
Labels: TypeAlias = NDArray[Any]
Places: TypeAlias = NDArray[np.intp]
Reduce: TypeAlias = Callable[[Labels, slice], Labels]
_OfColumn = TypeVar("_OfColumn")

_BYTES = 2**27  # of drawn labels that a form which takes many draws at once is given
_MOST_HELD = 2**28  # bytes of labels that are drawn once and kept, where several loops want them
_MANY_ROWS = 2**16  # from here on rows are taken one after the other, not draws
_MOST_SUMS = 2**24  # numbers held of the draws of one pass, 128 MiB; every worker holds as many
_LARGE_PART = 2**17  # rows of a part from where on it is read by few runs
_COPIES = 3.0  # of the sums, at least: all, those of a worker, and those on the way
_PLACE = 1  # key of the seed that says where the observed labels are hidden


# ------------------------------------------------------------------ columns


@dataclass(frozen=True, eq=False)
class LabelView:
    """What full labels become: those of some rows, as a lens shows them.

    Attributes
    ----------
    rows
        Places of its rows; None for all.
    reduce
        Takes labels (B, r), and which of all rows they are of, to those that a lens shows; None where
        they stay as they are.
    event
        The class that a class-wise lens looks at.
    share
        Of its rows, in which that class is expected.
    """

    rows: Places | None = None
    reduce: Reduce | None = None
    event: int | None = None
    share: float = 1.0

    def labels(self, full: Labels) -> Labels:
        """Return its labels, (B, n of the view), from the full ones."""
        reduced = full if self.reduce is None else self.reduce(full, slice(None))
        return reduced if self.rows is None else taken(reduced, self.rows)


EVERYTHING = LabelView()


class Column(NamedTuple):
    """One statistic of one view."""

    view: LabelView
    form: Form


def columns_of(form: Form) -> tuple[Column, ...]:
    """Return a statistic of all rows as columns: of a combined one, its parts."""
    if isinstance(form, Combined):
        return tuple(Column(LabelView(reduce=part.seen), part.form) for part in form.components)
    return (Column(EVERYTHING, form),)


class _Way(Enum):
    """How a form is evaluated."""

    BY_BLOCKS = "a block of draws a task"
    INSIDE = "many draws in one call, which hands work to the workers itself"
    AT_ONCE = "all draws in one call"
    HIDDEN = "by blocks, the observed labels somewhere among the draws"

    @classmethod
    def of(cls, form: Form) -> _Way:
        if isinstance(form, LabelFunction):
            return cls.HIDDEN
        if form.together:
            return cls.AT_ONCE
        return cls.INSIDE if form.parallel_inside else cls.BY_BLOCKS


# ------------------------------------------------------------------ draws


@dataclass(frozen=True, eq=False)
class LabelDraws:
    """Labels drawn from the predictions, the observed ones among them.

    Or signs of clusters, see `signed_columns`: ones are then what was observed.

    Attributes
    ----------
    sampler
        Where draws are from.
    observed
        The observed labels, (n,), or outcomes.
    count
        Number of draws B.
    place
        How many draws come before the observed labels; 0: they are the first.
    kept
        All draws, (B, n), where they are held.
    """

    sampler: LabelSampler | OutcomeSampler | SignSampler
    observed: Labels
    count: int
    place: int = 0
    kept: Labels | None = None

    def hidden(self) -> LabelDraws:
        """Hide the observed labels at a place that chance gives.

        Under H0 they are one more draw: a function that keeps something from call to call cannot tell
        which they are, and their value has every rank with the same probability.
        """
        place = generator(child_seed(self.sampler.seed, _PLACE)).integers(self.count + 1)
        return replace(self, place=int(place))

    def held(self, workers: Workers) -> LabelDraws:
        """Draw once for all, if draws are small enough to be kept."""
        drawn = self.sampler.draw(0, 0) if isinstance(self.sampler, LabelSampler) else None
        if drawn is None or self.count * drawn.itemsize * self.observed.size > _MOST_HELD:
            return self
        labels = np.empty((self.count, len(self.observed)), dtype=drawn.dtype)
        tasks = self.tasks()
        for (start, stop), block in zip(tasks, workers.map(self.sampler.draw, tasks), strict=True):
            labels[start:stop] = block
        return replace(self, kept=labels)

    def tasks(self, first: int = 0, last: int | None = None) -> list[tuple[int, int]]:
        """Cut draws into blocks of the grid of seeds."""
        stop = self.count if last is None else last
        parts = blocks(stop - first, self.sampler.block)
        return [(first + part.start, first + part.stop) for part in parts]

    def draw(self, start: int, stop: int) -> Labels:
        """Return draws ``start`` to ``stop``, and the observed labels where they are between."""
        drawn = self.sampler.draw(start, stop) if self.kept is None else self.kept[start:stop]
        if start <= self.place < stop or stop == self.place == self.count:
            return np.insert(drawn, self.place - start, self.observed, axis=0)
        return drawn

    def observed_first(self, values: Array) -> Array:
        """Move the row of the observed labels to the top."""
        if self.place == 0:
            return values
        order = np.append(self.place, np.delete(np.arange(len(values)), self.place))
        return np.asarray(values[order])


# ------------------------------------------------------------------ signs of clusters


def signed_columns(
    columns: Sequence[Column], labels: Labels, clusters: Places, weights: Array | None = None
) -> tuple[Column, ...]:
    """Return columns whose labels are signs of clusters, (B, G), for `table` with `sign_draws`.

    Parameters
    ----------
    columns
        As for draws of labels; all forms are `HasSigns`.
    labels
        The observed labels of the full predictions, (n,).
    clusters
        The cluster of every row, (n,), 0..G−1.
    weights
        What every row counts, (n,). Default None: all alike.
    """
    found = []
    for view, form in columns:
        places = slice(None) if view.rows is None else view.rows
        own, counts = clusters[places], None if weights is None else weights[places]
        here, codes = np.unique(own, return_inverse=True)
        signed = cast("HasSigns", form).signed(
            view.labels(labels[None])[0].astype(np.intp), Clusters(codes, len(here), counts)
        )
        every = len(here) == int(clusters.max()) + 1
        found.append(Column(EVERYTHING if every else LabelView(here), signed))
    return tuple(found)


def sign_draws(columns: Sequence[Column], n_clusters: int, count: int, seed: int) -> LabelDraws:
    """Return draws of signs for columns of these: all that there are, if ``count`` reaches that.

    Of columns that do not change if all signs are turned, half of them say all.
    """
    return draws_of_signs(
        n_clusters, count, seed, all(cast("Signed", column.form).even for column in columns)
    )


def draws_of_signs(n_clusters: int, count: int, seed: int, even: bool = False) -> LabelDraws:
    """Return draws of signs of so many clusters; of what is even, half of them say all."""
    free, ones = n_clusters - even, np.ones(n_clusters, dtype=np.int8)
    if 2**free <= count + 1:
        return LabelDraws(SignSampler(n_clusters, seed, free), ones, 2**free - 1)
    return LabelDraws(SignSampler(n_clusters, seed), ones, count)


# ------------------------------------------------------------------ draw by draw


def table(columns: Sequence[Column], draws: LabelDraws, workers: Workers) -> Array:
    """Return the (1 + B, H) values of all columns: of the observed labels, and of all draws.

    Parameters
    ----------
    columns
        Views with their statistics.
    draws
        Labels of the full predictions.
    workers
        Who does the work.
    """
    values = np.empty((1 + draws.count, len(columns)))
    for _ in _filled(values, columns, draws, workers, draws.count):
        pass
    return values


def batches(
    columns: Sequence[Column],
    draws: LabelDraws,
    workers: Workers,
    *,
    at_most: int,
) -> Iterator[Array]:
    """Yield the rows of the table in the order of the draws, so that one can stop among them.

    Forms that work in parallel inside take batches of ``at_most`` draws, others one block of draws a
    worker. Users' functions see the observed labels at a random place, and so all draws at once.
    """
    values = np.empty((1 + draws.count, len(columns)))
    for rows in _filled(values, columns, draws, workers, at_most):
        yield values[rows]


def _filled(
    values: Array,
    columns: Sequence[Column],
    draws: LabelDraws,
    workers: Workers,
    at_most: int,
) -> Iterator[slice]:
    """Write the table, batch by batch of the draws; yield which of its rows are done.

    What is hidden, or evaluated at once, is so over all draws: before the first batch.
    """
    by_way: dict[_Way, list[int]] = {way: [] for way in _Way}
    for place, column in enumerate(columns):
        by_way[_Way.of(column.form)].append(place)
    if by_way[_Way.HIDDEN]:
        hidden = draws.hidden()
        block = _Block.of([columns[place] for place in by_way[_Way.HIDDEN]])
        parts = workers.map(partial(block, hidden), hidden.tasks(), "label draws")
        values[:, by_way[_Way.HIDDEN]] = hidden.observed_first(np.concatenate(list(parts)))
    for place in by_way[_Way.AT_ONCE]:
        view, form = columns[place]
        labels = np.concatenate([view.labels(draws.draw(*task)) for task in draws.tasks()])
        values[:, place] = form.of_labels(labels, workers)
    by_blocks, inside = by_way[_Way.BY_BLOCKS], by_way[_Way.INSIDE]
    block = _Block.of([columns[place] for place in by_blocks])

    def in_blocks(tasks: list[tuple[int, int]]) -> Iterator[slice]:
        found = workers.map(partial(block, draws), tasks, "label draws") if by_blocks else ()
        for (start, stop), part in zip_longest(tasks, found):
            rows = slice(start + (start > 0), stop + 1)
            if part is not None:
                values[rows, by_blocks] = part
            yield rows

    if not inside:
        yield from in_blocks(draws.tasks())
        return
    size = max(1, _BYTES // (max(draws.observed.size, 1) * DRAWS)) * DRAWS
    for batch in blocks(draws.count, min(size, at_most)):
        tasks = draws.tasks(batch.start, batch.stop)
        rows = slice(batch.start + (batch.start > 0), batch.stop + 1)
        labels = np.concatenate(list(workers.map(draws.draw, tasks)))
        if by_blocks and workers.hands == 1:  # to draw again takes as long as a cheap form
            values[rows, by_blocks] = np.concatenate(
                [block.of_labels(labels[cut]) for cut in blocks(len(labels), DRAWS)]
            )
        else:
            deque(in_blocks(tasks), maxlen=0)
        for place in inside:
            view, form = columns[place]
            values[rows, place] = form.of_labels(view.labels(labels), workers)
        yield rows


@dataclass(frozen=True, eq=False)
class _Block:
    """Evaluates columns on a block of draws, without workers: what a worker does.

    Attributes
    ----------
    columns, places
        Statistics, lens by lens and view by view, and their places among the values.
    by_class
        Those that look at one class each, of which all are evaluated together.
    """

    columns: tuple[Column, ...]
    places: tuple[int, ...]
    by_class: tuple[Classes, ...]

    @classmethod
    def of(cls, columns: Sequence[Column]) -> _Block:
        """Order them, and set apart what is evaluated from the rows in which a class was observed."""
        found: list[tuple[Places | None, int, OfEvents, int]] = []
        others: dict[int, dict[int, list[int]]] = {}
        for place, (view, form) in enumerate(columns):
            events = None if view.event is None else of_events(form, view.share)
            if events is not None:
                found.append((view.rows, int(view.event or 0), events, place))
            else:
                others.setdefault(id(view.reduce), {}).setdefault(id(view), []).append(place)
        places = tuple(place for views in others.values() for each in views.values() for place in each)
        by_class = classes(found) if found else ()
        return cls(tuple(columns[place] for place in places), places, by_class)

    def __call__(self, draws: LabelDraws, start: int, stop: int) -> Array:
        return self.of_labels(draws.draw(start, stop))

    def of_labels(self, full: Labels) -> Array:
        """Return (b, H) values for full labels (b, n)."""
        count = len(self.places) + sum(len(each.places) for each in self.by_class)
        values = np.empty((len(full), count))
        lens, reduced = None, full
        last, labels = None, full
        for (view, form), place in zip(self.columns, self.places, strict=True):
            if view.reduce is not lens:
                lens = view.reduce
                reduced = full if lens is None else lens(full, slice(None))
            if view is not last:
                last = view
                labels = reduced if view.rows is None else taken(reduced, view.rows)
            values[:, place] = form.of_labels(labels, ALONE)
        for each in self.by_class:
            values[:, each.places] = each.of_labels(full)
        return values


# ------------------------------------------------------------------ row by row


class Sums(NamedTuple, Generic[_OfColumn]):
    """What rows add up.

    Attributes
    ----------
    sums
        Of every column: of draws of labels (1 + b, …), the observed ones first.
    rounding
        How far two evaluations of a column's value may differ, (H,).
    impossible
        Rows whose label had probability 0.
    notes
        What was done to the rows.
    """

    sums: tuple[_OfColumn, ...]
    rounding: Array
    impossible: Places
    notes: tuple[str, ...]

    def plus(
        self, more: Sums[_OfColumn], add: Callable[[_OfColumn, _OfColumn], _OfColumn]
    ) -> Sums[_OfColumn]:
        """Add those of other rows; what ``add`` returns may be its first argument, changed."""
        return Sums(
            tuple(add(a, b) for a, b in zip(self.sums, more.sums, strict=True)),
            self.rounding + more.rounding,
            np.concatenate([self.impossible, more.impossible]),
            merged_notes((*self.notes, *more.notes)) if more.notes else self.notes,
        )


@dataclass(frozen=True, eq=False)
class RowTable:
    """The table of rows that were taken a block at a time.

    Attributes
    ----------
    values
        (1 + B, H), as `table` returns them.
    rounding, impossible, notes
        As of `Sums`, over all rows.
    """

    values: Array
    rounding: Array
    impossible: Places
    notes: tuple[str, ...]


def goes_by_rows(columns: Sequence[Column], draws: LabelDraws) -> bool:
    """Say whether rows in memory are to be taken one after the other, with all draws of a label."""
    if len(draws.observed) < _MANY_ROWS or not isinstance(draws.sampler, LabelSampler):
        return False
    return adds_up(columns) and _sums_of(columns) * DRAWS <= _MOST_SUMS


def adds_up(columns: Sequence[Column]) -> bool:
    """Say whether the columns are of all rows, and have sums over rows that merge by addition."""
    return all(
        view.rows is None and isinstance(form, Additive) and form.sums_of_a_draw is not None
        for view, form in columns
    )


def _sums_of(columns: Sequence[Column]) -> int:
    """Return how many numbers a draw adds up."""
    return sum(prod(cast("Additive", form).sums_of_a_draw or ()) for _, form in columns)


def table_of_rows(columns: Sequence[Column], draws: LabelDraws, workers: Workers) -> Array:
    """Return the table of columns whose sums over rows merge by addition, see `goes_by_rows`.

    Sums over rows are taken in the same order as draw by draw, so that they are the same.
    """
    tasks = runs(len(draws.observed), 1, workers)
    found: list[Array] = []
    for part in _passes(columns, draws.count):
        of_run = partial(_of_rows, tuple(columns), draws, part)
        total = workers.merged(of_run, tasks, _plus, "label draws")
        found.append(_finished(columns, total.sums)[min(1, len(found)) :])
    return np.concatenate(found)


def _of_rows(
    columns: Sequence[Column], draws: LabelDraws, part: slice, first: int, last: int
) -> Sums[Array]:
    def of_block(number: int) -> Sums[Array]:
        rows = slice(number * ROWS, min((number + 1) * ROWS, len(draws.observed)))
        sampler = cast("LabelSampler", draws.sampler)
        labels = _observed_and_drawn(sampler, draws.observed[rows], part, number)
        sums = _contributions(columns, rows, labels)
        return Sums(sums, np.zeros(len(columns)), np.empty(0, np.intp), ())

    return added(map(of_block, range(first, last)), _plus)


def runs(n_rows: int, grain: int, workers: Workers) -> list[tuple[int, int]]:
    """Cut rows into tasks, the first block of each and the one after its last.

    A run is all that is below a node of the tree of `added`, so that whichever runs are taken the sum
    is the same: large where rows are stored in large parts, of which a run has to read what
    precedes it, and small enough for every worker to have two.
    """
    count, size = -(-n_rows // ROWS), BRANCHES if grain <= _LARGE_PART else BRANCHES**2
    while size > 1 and count < 2 * size * workers.hands:
        size //= BRANCHES
    return [(run.start, run.stop) for run in blocks(count, size)]


def _contributions(columns: Sequence[Column], rows: slice, labels: Labels) -> tuple[Array, ...]:
    return tuple(
        cast("Additive", form).contributions(
            rows, labels if view.reduce is None else view.reduce(labels, rows)
        )
        for view, form in columns
    )


def _observed_and_drawn(
    sampler: LabelSampler, observed: Labels, part: slice, number: int
) -> NDArray[np.unsignedinteger]:
    """Return the observed labels of a block of rows, and below them those of some draws."""
    labels = np.empty((1 + part.stop - part.start, len(observed)), dtype=sampler.dtype)
    labels[0] = observed
    labels[1:] = sampler.draw_rows(number, part.start, part.stop)
    return labels


def _finished(columns: Sequence[Column], sums: Sequence[Array]) -> Array:
    values = [
        cast("Additive", column.form).finish(each) for column, each in zip(columns, sums, strict=True)
    ]
    return np.column_stack(values)


def _passes(columns: Sequence[Column], n_resamples: int) -> list[slice]:
    """Cut the draws into as few passes over the rows as the sums allow, one if they all fit."""
    each = _sums_of(columns)
    check_fits(
        _COPIES * 8.0 * each * min(n_resamples, DRAWS),
        f"{each} sums of {DRAWS} draws",
        "take fewer features (rank=64), or look through a lens",
    )
    return blocks(n_resamples, max(1, _MOST_SUMS // max(each * DRAWS, 1)) * DRAWS)


_plus: Callable[[Sums[Array], Sums[Array]], Sums[Array]] = partial(Sums.plus, add=iadd)


# ------------------------------------------------------------------ rows that come a block at a time


class StoredRows(Protocol):
    """Predictions and labels that are read where they are wanted: this goes to all workers."""

    @property
    def n_samples(self) -> int:
        """Number of rows n."""
        ...

    @property
    def grain(self) -> int:
        """Rows of the largest part: to read rows, what precedes them in their part is read too."""
        ...

    def samples(self, first: int, last: int) -> Iterator[Sample]:
        """Read and check blocks ``first`` to ``last`` of ROWS rows, as a lens shows them."""
        ...


#: Takes the predictions of some rows, returns the columns of these rows, in units of all.
ColumnsOfRows: TypeAlias = Callable[[Rows], Sequence[Column]]


def table_of_blocks(
    columns_of: ColumnsOfRows, rows: StoredRows, n_resamples: int, seed: int, workers: Workers
) -> RowTable:
    """Return the table of rows that are read a run of blocks at a time, by whoever takes the run.

    In one pass, where the sums of all draws fit. If they do not (a thousand classes times hundreds of
    features), a pass takes as many draws as fit.
    """
    first, tasks = columns_of(next(rows.samples(0, 1)).rows), runs(rows.n_samples, rows.grain, workers)
    values: list[Array] = []
    for part in _passes(first, n_resamples):
        of_run = partial(_of_stored, columns_of, rows, seed, part)
        found = workers.merged(of_run, tasks, _plus, "label draws")
        values.append(_finished(first, found.sums)[min(1, len(values)) :])
    return RowTable(np.concatenate(values), found.rounding, found.impossible, found.notes)


def _of_stored(
    columns_of: ColumnsOfRows, rows: StoredRows, seed: int, part: slice, first: int, last: int
) -> Sums[Array]:
    def of_block(number: int, sample: Sample) -> Sums[Array]:
        predictions = sample.rows
        columns = columns_of(predictions)
        labels = _observed_and_drawn(predictions.sampler(seed, number), sample.labels, part, 0)
        return Sums(
            _contributions(columns, slice(0, predictions.n_samples), labels),
            np.array([column.form.resolution for column in columns]),
            predictions.impossible(sample.labels) + number * ROWS,
            predictions.notes,
        )

    return added(map(of_block, range(first, last), rows.samples(first, last)), _plus)


def subsample_of(rows: StoredRows, workers: Workers) -> Rows:
    """Read all rows once, and return those that `subsample` takes of them."""
    numbers = (np.arange(b.start, b.stop, dtype=np.float64) for b in blocks(rows.n_samples, 2**20))
    places = subsample(each[:, None] for each in numbers).probs[:, 0].astype(np.intp)
    order = np.argsort(places)
    tasks = runs(rows.n_samples, rows.grain, workers)
    found = np.concatenate(list(workers.map(partial(_rows_at, rows, places[order]), tasks)))
    found = found[np.argsort(order)]
    if next(rows.samples(0, 1)).rows.weights is None:
        return Rows(found)
    return Rows(found[:, :-1], weights=found[:, -1])


def _rows_at(rows: StoredRows, places: Places, first: int, last: int) -> Array:
    found = []
    for number, sample in enumerate(rows.samples(first, last), start=first):
        start, stop = np.searchsorted(places, [number * ROWS, (number + 1) * ROWS])
        some = sample.rows.take(places[start:stop] - number * ROWS)
        beside = [] if some.weights is None else [some.weights]
        found.append(np.column_stack([some.probs, *beside]))
    return np.concatenate(found)
