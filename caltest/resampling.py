"""The engine: views × statistics × draws of labels, one table, in which every exact p-value is a rank.

A *column* is one statistic of one view (a lens on some rows), its predictions fixed. Labels are drawn
from the full predictions, and every column sees the same draws, so that joint statements about several
columns are exact too. The observed labels are one more draw, number 0, evaluated once and by the same
loop as the others: `table` returns (1 + B, H) values whose first row they are.

Few rows are taken all at once, a block of draws after another. Very many are taken a block at a time,
each with all draws of its labels, if all columns are sums: rows in memory (`Held`) or read where they
are stored (`Read`). Blocks are those of the grid of seeds, a task is a run of them, which a worker
reads for itself, and sums of blocks are added in the order of `added`: neither workers nor chunks
change a number. Of rows in clusters the same blocks add up every cluster, and signs no longer need the
rows.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from functools import partial
from itertools import zip_longest
from typing import Any, NamedTuple, Protocol, TypeAlias, cast

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from caltest._memory import check_fits
from caltest._parallel import ALONE, BRANCHES, Workers, added
from caltest._sums import blocks
from caltest.clusters import Clusters
from caltest.data import Rows, Sample, merged_notes, subsample
from caltest.forms import ClusterSums, Combined, Form, LabelFunction, Signed, Sums
from caltest.forms.sums import EventColumns, OfOneClass, of_events
from caltest.laws.base import Outcomes, Sampler
from caltest.laws.classes import LabelSampler
from caltest.lenses import ALL, View, taken
from caltest.sampling import DRAWS, ROWS, SignSampler, child_seed, generator

Array: TypeAlias = NDArray[np.float64]
Places: TypeAlias = NDArray[np.intp]

_BYTES = 2**27  # of drawn labels that a form which takes many draws at once is given
_MOST_HELD = 2**28  # bytes of labels that are drawn once and kept, where several loops want them
_MANY_ROWS = 2**16  # from here on rows are taken one after the other, not draws
_MOST_SUMS = 2**24  # numbers held of the draws of one pass, 128 MiB; every worker holds as many
_LARGE_PART = 2**17  # rows of a part from where on it is read by few runs
_COPIES = 3.0  # of the sums, at least: all, those of a worker, and those on the way
_COPIES_OF_CLUSTERS = 4.0
_DENSE = 0.25  # of the sums of clusters, from where on all of them are held
_PLACE = 1  # key of the seed that says where the observed labels are hidden


# ------------------------------------------------------------------ columns


class Column(NamedTuple):
    """One statistic of one view; None is all rows, without a lens."""

    view: View | None
    form: Form

    def outcomes(self, full: Outcomes, rows: slice = ALL) -> Outcomes:
        """Return the outcomes (B, …) that the form looks at, from the full ones of some rows."""
        if self.view is None:
            return full
        return self.view.outcomes(full) if rows == ALL else self.view.seen(full, rows)


def columns_of(form: Form, view: View | None = None) -> tuple[Column, ...]:
    """Return a statistic of all rows as columns: of a combined one, its parts."""
    if isinstance(form, Combined):
        return tuple(Column(part.view, part.form) for part in form.components)
    return (Column(view, form),)


class _Way(Enum):
    """How a form is evaluated."""

    BY_BLOCKS = "a block of draws a task"
    INSIDE = "many draws in one call, which hands work to the workers itself"
    HIDDEN = "by blocks, the observed labels somewhere among the draws"

    @classmethod
    def of(cls, form: Form) -> _Way:
        if isinstance(form, LabelFunction):
            return cls.HIDDEN
        return cls.INSIDE if form.parallel_inside else cls.BY_BLOCKS


# ------------------------------------------------------------------ draws


@dataclass(frozen=True, eq=False)
class Draws:
    """Outcomes drawn from the predictions, the observed ones among them.

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

    sampler: Sampler
    observed: Outcomes
    count: int
    place: int = 0
    kept: Outcomes | None = None

    def hidden(self) -> Draws:
        """Hide the observed labels at a place that chance gives.

        Under H0 they are one more draw: a function that keeps something from call to call cannot tell
        which they are, and their value has every rank with the same probability.
        """
        place = generator(child_seed(self.sampler.seed, _PLACE)).integers(self.count + 1)
        return replace(self, place=int(place))

    def held(self, workers: Workers) -> Draws:
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

    def draw(self, start: int, stop: int) -> Outcomes:
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
    columns: Sequence[Column], outcomes: Outcomes, clusters: Places, weights: Array
) -> tuple[Column, ...]:
    """Return columns whose outcomes are signs of clusters, (B, G), for `table` with `sign_draws`.

    Parameters
    ----------
    columns
        As for draws of outcomes; all forms are `HasSigns`.
    outcomes
        The observed ones of the full predictions, (n,).
    clusters, weights
        The cluster of every row, (n,), 0..G−1, and what it counts.
    """
    found = []
    for column in columns:
        rows = ALL if column.view is None or column.view.places is None else column.view.places
        own = Clusters.of(clusters[rows], weights[rows])
        labels = column.outcomes(outcomes[None])[0]
        form: Any = column.form
        signed = form.signed(labels, own)
        every = own.count == int(clusters.max()) + 1
        here = None if every else View(cast("Any", None), places=np.unique(clusters[rows]))
        found.append(Column(here, signed))
    return tuple(found)


def sign_draws(columns: Sequence[Column], n_clusters: int, count: int, seed: int) -> Draws:
    """Return draws of signs for columns of these: all that there are, if ``count`` reaches that.

    Of columns that do not change if all signs are turned, half of them say all.
    """
    return draws_of_signs(
        n_clusters, count, seed, all(cast("Signed", column.form).even for column in columns)
    )


def draws_of_signs(n_clusters: int, count: int, seed: int, even: bool = False) -> Draws:
    """Return draws of signs of so many clusters; of what is even, half of them say all."""
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
        Who does the work.
    """
    values = np.empty((1 + draws.count, len(columns)))
    for _ in _filled(values, columns, draws, workers, draws.count):
        pass
    return values


def batches(
    columns: Sequence[Column],
    draws: Draws,
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
    draws: Draws,
    workers: Workers,
    at_most: int,
) -> Iterator[slice]:
    """Write the table, batch by batch of the draws; yield which of its rows are done.

    What is hidden is so over all draws: before the first batch.
    """
    by_way: dict[_Way, list[int]] = {way: [] for way in _Way}
    for place, column in enumerate(columns):
        by_way[_Way.of(column.form)].append(place)
    if by_way[_Way.HIDDEN]:
        hidden = draws.hidden()
        block = _Block.of([columns[place] for place in by_way[_Way.HIDDEN]])
        parts = workers.map(partial(block, hidden), hidden.tasks(), "label draws")
        values[:, by_way[_Way.HIDDEN]] = hidden.observed_first(np.concatenate(list(parts)))
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
            column = columns[place]
            values[rows, place] = column.form.of_labels(column.outcomes(labels), workers)
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
    by_class: tuple[EventColumns, ...]

    @classmethod
    def of(cls, columns: Sequence[Column]) -> _Block:
        """Order them, and set apart what is evaluated from the rows in which a class was observed."""
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

    def __call__(self, draws: Draws, start: int, stop: int) -> Array:
        return self.of_labels(draws.draw(start, stop))

    def of_labels(self, full: Outcomes) -> Array:
        """Return (b, H) values for full outcomes (b, …)."""
        count = len(self.places) + sum(len(each.parts) for each in self.by_class)
        values = np.empty((len(full), count))
        lens, reduced = None, full
        last, labels = None, full
        for (view, form), place in zip(self.columns, self.places, strict=True):
            see, rows = (None, None) if view is None else (view.see, view.places)
            if see is not lens:
                lens = see
                reduced = full if see is None else see(full)
            if view is not last or view is None:
                last = view
                labels = reduced if rows is None else taken(reduced, rows)
            values[:, place] = form.of_labels(labels, ALONE)
        for each in self.by_class:
            values[:, each.places] = each.of_labels(full)
        return values


# ------------------------------------------------------------------ block by block of the rows


class Block(NamedTuple):
    """Some rows: their columns, which all are `Sums`, and how their outcomes are drawn."""

    columns: Sequence[Column]
    rows: slice  # of what the columns hold
    observed: Outcomes
    draw: Callable[[int, int], Outcomes]  # draws from a first to a last one
    first: bool  # what the predictions alone add up is added once where the columns hold all rows
    known: Rows | None  # where rows are read


class Parts(Protocol):
    """Rows that stand in parts of a file, or in one."""

    @property
    def n_samples(self) -> int:
        """Number of rows n."""
        ...

    @property
    def grain(self) -> int:
        """Rows of the largest part: to read rows, what precedes them in their part is read too."""
        ...


class Blocks(Parts, Protocol):
    """Rows that are taken a block at a time: this goes to all workers."""

    def blocks(self, first: int, last: int) -> Iterator[Block]:
        """Return blocks ``first`` to ``last`` of ROWS rows."""
        ...


@dataclass(frozen=True, eq=False)
class Held:
    """Rows in memory."""

    columns: Sequence[Column]
    draws: Draws

    grain = 1

    @property
    def n_samples(self) -> int:
        """Number of rows n."""
        return len(self.draws.observed)

    def blocks(self, first: int, last: int) -> Iterator[Block]:
        """Cut them into blocks."""
        sampler = cast("LabelSampler", self.draws.sampler)
        for number in range(first, last):
            rows = slice(number * ROWS, (number + 1) * ROWS)
            draw = partial(sampler.draw_rows, number)
            yield Block(self.columns, rows, self.draws.observed[rows], draw, number == 0, None)


class StoredRows(Parts, Protocol):
    """Predictions and labels that are read where they are wanted."""

    def samples(self, first: int, last: int) -> Iterator[Sample]:
        """Read and check blocks ``first`` to ``last`` of ROWS rows, as a lens shows them."""
        ...


@dataclass(frozen=True, eq=False)
class Read:
    """Rows that are read a run of blocks at a time, by whoever takes the run."""

    given: Callable[[Rows], Form]  #: Takes some rows, returns their form, in units of all.
    stored: StoredRows
    seed: int

    @property
    def n_samples(self) -> int:
        """Number of rows n."""
        return self.stored.n_samples

    @property
    def grain(self) -> int:
        """Rows of the largest part."""
        return self.stored.grain

    def blocks(self, first: int, last: int) -> Iterator[Block]:
        """Read them."""
        for number, sample in enumerate(self.stored.samples(first, last), start=first):
            draw = partial(sample.rows.sampler(self.seed, number).draw_rows, 0)
            columns = columns_of(self.given(sample.rows))
            yield Block(columns, ALL, sample.labels, draw, True, sample.rows)


class Total(NamedTuple):
    """What rows add up.

    Attributes
    ----------
    sums
        Of every column: of draws of labels (1 + b, K), the observed ones first; or of clusters.
    fixed
        Of every column: what the predictions alone add up.
    rounding
        How far two evaluations of a column's value may differ, (H,).
    impossible
        Rows whose label had probability 0.
    notes
        What was done to the rows.
    """

    sums: tuple[Any, ...]
    fixed: tuple[Array, ...]
    rounding: Array
    impossible: Places
    notes: tuple[str, ...]

    @classmethod
    def of(cls, block: Block, number: int, sums: tuple[Any, ...]) -> Total:
        """Return that of one block."""
        forms = [cast("Sums", column.form) for column in block.columns]
        fixed = tuple(form.fixed if block.first else np.zeros_like(form.fixed) for form in forms)
        if block.known is None:
            rounding = np.array([form.resolution if block.first else 0.0 for form in forms])
            return cls(sums, fixed, rounding, np.empty(0, np.intp), ())
        rounding = np.array([form.resolution for form in forms])
        broken = block.known.impossible(block.observed) + number * ROWS
        return cls(sums, fixed, rounding, broken, block.known.notes)

    def plus(self, more: Total) -> Total:
        """Add those of other rows; these may be changed."""
        return Total(
            tuple(_added(a, b) for a, b in zip(self.sums, more.sums, strict=True)),
            tuple(a + b for a, b in zip(self.fixed, more.fixed, strict=True)),
            self.rounding + more.rounding,
            np.concatenate([self.impossible, more.impossible]),
            merged_notes((*self.notes, *more.notes)) if more.notes else self.notes,
        )


def _added(one: Any, other: Any) -> Any:
    if isinstance(one, ClusterSums):
        return ClusterSums(*(a + b for a, b in zip(one, other, strict=True)))
    one += other
    return one


def adds_up(columns: Sequence[Column]) -> bool:
    """Say whether the columns are of all rows, and have sums over rows that merge by addition."""
    return all(
        isinstance(form, Sums) and form.by_blocks and (view is None or view.places is None)
        for view, form in columns
    )


def goes_by_rows(columns: Sequence[Column], draws: Draws) -> bool:
    """Say whether rows in memory are to be taken one after the other, with all draws of a label."""
    if len(draws.observed) < _MANY_ROWS or not isinstance(draws.sampler, LabelSampler):
        return False
    return adds_up(columns) and _sums_of(columns) * DRAWS <= _MOST_SUMS


def _sums_of(columns: Sequence[Column]) -> int:
    return sum(cast("Sums", form).scores.size for _, form in columns)


def table_of_blocks(rows: Blocks, n_resamples: int, workers: Workers) -> tuple[Array, Total]:
    """Return the table of rows that are taken a block at a time, (1 + B, H), and what else they add up.

    In one pass, where the sums of all draws fit. If they do not (a thousand classes times hundreds of
    features), a pass takes as many draws as fit.
    """
    columns, values = next(rows.blocks(0, 1)).columns, list[Array]()
    each = _sums_of(columns)
    check_fits(
        _COPIES * 8.0 * each * min(n_resamples, DRAWS),
        f"{each} sums of {DRAWS} draws",
        "take fewer features (rank=64), or look through a lens",
    )
    for part in blocks(n_resamples, max(1, _MOST_SUMS // max(each * DRAWS, 1)) * DRAWS):
        found = _total(rows, partial(_of_draws, part), workers, "label draws")
        finished = [
            cast("Sums", column.form).reduce(sums, fixed)
            for column, sums, fixed in zip(columns, found.sums, found.fixed, strict=True)
        ]
        values.append(np.column_stack(finished)[min(1, len(values)) :])
    return np.concatenate(values), found


def signed_columns_of_blocks(
    rows: Blocks, count: int, share_between: float, workers: Workers
) -> tuple[tuple[Column, ...], Total]:
    """Return columns of signs of ``count`` clusters, which may be anywhere among the rows.

    A block adds up what its rows have of every cluster, sparsely. In the end one sum of every cluster
    and kind is held: G × K numbers, however many rows there are.

    Raises
    ------
    InputError
        If the sums of all clusters do not fit into memory.
    """
    first = next(rows.blocks(0, 1))
    width = sum(int(each.turned.shape[1]) for each in _of_clusters(count, first))
    check_fits(
        _COPIES_OF_CLUSTERS * 8.0 * width * count,
        f"{width} sums of each of {count} clusters",
        "take a statistic with fewer sums ('ecd', 'brier'), a smaller rank=, or larger clusters",
    )
    found = _total(rows, partial(_of_clusters, count), workers, "clusters")
    signed = []
    for (_, form), sums in zip(first.columns, found.sums, strict=True):
        turned = sums.turned
        if turned.nnz >= _DENSE * turned.shape[0] * turned.shape[1]:
            sums = sums._replace(turned=turned.toarray())
        signed.append(Column(None, cast("Sums", form).of_cluster_sums(sums, share_between)))
    return tuple(signed), found


def _total(
    rows: Blocks, of_block: Callable[[Block], tuple[Any, ...]], workers: Workers, what: str
) -> Total:
    """Add up what blocks have, a run of them a task."""
    tasks = runs(rows.n_samples, rows.grain, workers)
    return workers.merged(partial(_of_run, rows, of_block), tasks, Total.plus, what)


def _of_run(rows: Blocks, of_block: Callable[[Block], tuple[Any, ...]], first: int, last: int) -> Total:
    numbered = enumerate(rows.blocks(first, last), start=first)
    return added((Total.of(block, number, of_block(block)) for number, block in numbered), Total.plus)


def _of_draws(part: slice, block: Block) -> tuple[Any, ...]:
    """Return the sums of a block of rows, for the observed labels and, below them, some draws."""
    drawn = block.draw(part.start, part.stop)
    labels = np.concatenate([block.observed[None].astype(drawn.dtype), drawn])
    return tuple(
        cast("Sums", column.form).scores.sums(column.outcomes(labels, block.rows), block.rows)
        for column in block.columns
    )


def _of_clusters(count: int, block: Block) -> tuple[ClusterSums, ...]:
    """Return the sums of every cluster, of which a block has few."""
    rows = cast("Rows", block.known)
    here = np.unique(cast("Places", rows.clusters))
    clusters, found = Clusters.of(cast("Places", rows.clusters), rows.weights), []
    for column in block.columns:
        labels = column.outcomes(block.observed[None])[0]
        sums = cast("Sums", column.form).cluster_sums(labels, clusters)
        own = sparse.coo_array(sums.turned)
        entries = (own.data, (here[own.row], own.col))
        turned = sparse.csr_array(entries, shape=(count, sums.turned.shape[1]))
        found.append(sums._replace(turned=turned))
    return tuple(found)


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


# ------------------------------------------------------------------ a sample of stored rows


def subsample_of(rows: StoredRows, workers: Workers) -> Rows:
    """Read all rows once, and return those that `subsample` takes of them."""
    numbers = (np.arange(b.start, b.stop, dtype=np.float64) for b in blocks(rows.n_samples, 2**20))
    places = subsample(each[:, None] for each in numbers).probs[:, 0].astype(np.intp)
    order = np.argsort(places)
    tasks = runs(rows.n_samples, rows.grain, workers)
    found = Rows.joined(list(workers.map(partial(_rows_at, rows, places[order]), tasks)))
    return replace(found.take(np.argsort(order)), places=None)


def _rows_at(rows: StoredRows, places: Places, first: int, last: int) -> Rows:
    found = []
    for number, sample in enumerate(rows.samples(first, last), start=first):
        start, stop = np.searchsorted(places, [number * ROWS, (number + 1) * ROWS])
        own = places[start:stop] - number * ROWS
        found.append(sample.rows.take(own))
    return Rows.joined(found)
