"""The engine for very many rows: it processes them block by block, each with all draws of its labels.

All columns are then sums, over rows in memory (`Held`) or read from storage (`Read`). Blocks are those
of the grid of seeds, a task is a run of them, which a worker reads for itself, and sums of blocks are
added in the order of `added`: neither workers nor chunks change a number. For rows in clusters, the
same blocks add to the sums of every cluster, and signs no longer need the rows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, NamedTuple, TypeAlias, cast

import numpy as np
import scipy

from caltest._parallel import BRANCHES, Workers, added, check_fits
from caltest._sums import Array, Places, blocks
from caltest.clusters import Clusters
from caltest.data import Rows, Sample, subsample
from caltest.data.rows import merged_notes
from caltest.forms import ClusterSums, Form, Sums
from caltest.laws.classes import LabelSampler, Outcomes
from caltest.lenses.classes import ALL
from caltest.resampling import Column, Draws, columns_of
from caltest.sampling import DRAWS, ROWS

_MANY_ROWS = 2**16  # from this number on, rows are processed one after another instead of draws
_MOST_SUMS = 2**24  # numbers held for the draws of one pass, 128 MiB; every worker holds as many
_LARGE_PART = 2**17  # rows of a part above which it is read by few runs
_COPIES = 3.0  # of the sums, at least: the total, a worker's, and those in transit
_COPIES_OF_CLUSTERS = 4.0
_DENSE = 0.25  # share of the sums of clusters that are not 0, above which all are held densely


class Block(NamedTuple):
    """Some rows: their columns, all of them `Sums`, and the function that draws their outcomes."""

    columns: Sequence[Column]
    rows: slice  # of what the columns hold
    observed: Outcomes
    draw: Callable[[int, int], Outcomes]  # takes a first and a last draw
    first: bool  # sums of predictions alone are added once if the columns hold all rows
    known: Rows | None  # set if rows are read


#: Returns the sums of a block, for every column.
OfBlock: TypeAlias = Callable[[Block], tuple[Any, ...]]

#: Reads blocks from a first to a last one.
Samples: TypeAlias = Callable[[int, int], Iterator[Sample]]


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
        """Cut the rows into blocks."""
        sampler = cast("LabelSampler", self.draws.sampler)
        for number in range(first, last):
            rows = slice(number * ROWS, (number + 1) * ROWS)
            draw = partial(sampler.draw_rows, number)
            yield Block(self.columns, rows, self.draws.observed[rows], draw, number == 0, None)


@dataclass(frozen=True, eq=False)
class Read:
    """Rows that are read one run of blocks at a time, by the worker that has the run."""

    samples: Samples
    n_samples: int  #: Number of rows n.
    grain: int  #: Rows of the largest part: rows before the first one in their part are read too.
    seed: int
    given: Callable[[Rows], Form]  #: Takes some rows, returns their form, in units of all rows.

    def blocks(self, first: int, last: int) -> Iterator[Block]:
        """Read the blocks."""
        for number, sample in enumerate(self.samples(first, last), start=first):
            draw = partial(sample.rows.sampler(self.seed, number).draw_rows, 0)
            columns = columns_of(self.given(sample.rows))
            yield Block(columns, ALL, sample.labels, draw, True, sample.rows)


#: Rows processed block by block, in a form that can be sent to all workers.
Blocks: TypeAlias = Held | Read


class Total(NamedTuple):
    """The total of sums over rows.

    Attributes
    ----------
    sums
        For every column: sums of draws of labels (1 + b, K), observed ones first; or sums of clusters.
    fixed
        For every column: sums that depend on the predictions alone.
    rounding
        Largest difference of two evaluations of a column's value, (H,).
    impossible
        Rows whose label had probability 0.
    notes
        Notes on changes made to the rows.
    """

    sums: tuple[Any, ...]
    fixed: tuple[Array, ...]
    rounding: Array
    impossible: Places
    notes: tuple[str, ...]

    @classmethod
    def of(cls, block: Block, number: int, sums: tuple[Any, ...]) -> Total:
        """Return the total of one block."""
        forms = [column.form for column in block.columns]
        fixed = tuple(form.fixed if block.first else np.zeros_like(form.fixed) for form in forms)
        rounding = np.array([form.resolution if block.first else 0.0 for form in forms])
        if block.known is None:
            return cls(sums, fixed, rounding, np.empty(0, np.intp), ())
        broken = block.known.impossible(block.observed) + number * ROWS
        return cls(sums, fixed, rounding, broken, block.known.notes)

    def plus(self, more: Total) -> Total:
        """Add the total of other rows; both may be changed."""
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
    """Return whether the columns are of all rows, and have sums over rows that can be added."""
    return all(
        isinstance(form, Sums) and form.by_blocks and (view is None or view.places is None)
        for view, form in columns
    )


def goes_by_rows(columns: Sequence[Column], draws: Draws) -> bool:
    """Return whether rows in memory should be processed one by one, with all draws of a label."""
    if len(draws.observed) < _MANY_ROWS or not isinstance(draws.sampler, LabelSampler):
        return False
    return adds_up(columns) and _sums_of(columns) * DRAWS <= _MOST_SUMS


def _sums_of(columns: Sequence[Column]) -> int:
    return sum(columns[place].form.scores.size for place in set(_summed_by(columns)))


def _summed_by(columns: Sequence[Column]) -> list[int]:
    """Return the column whose sums each column uses: its own, or an earlier one that it shares."""
    scores = [column.form.shared_scores or object() for column in columns]
    return [next(i for i, each in enumerate(scores) if each is own) for own in scores]


def table_of_blocks(rows: Blocks, n_resamples: int, workers: Workers) -> tuple[Array, Total]:
    """Return the table of rows processed block by block, (1 + B, H), and the total of their sums.

    One pass is enough if the sums of all draws fit. If they do not (a thousand classes times hundreds
    of features), a pass takes as many draws as fit.
    """
    columns, values = next(rows.blocks(0, 1)).columns, list[Array]()
    each = _sums_of(columns)
    do = "take fewer features (a rank of 64), or look through a lens"
    check_fits(_COPIES * 8.0 * each * min(n_resamples, DRAWS), f"{each} sums of {DRAWS} draws", do)
    passes = blocks(n_resamples, max(1, _MOST_SUMS // max(each * DRAWS, 1)) * DRAWS)
    for part, hands in zip(passes, workers.parts([1] * len(passes)), strict=True):
        found = _total(rows, partial(_of_draws, part), hands, "label draws")
        every = zip(columns, _summed_by(columns), found.fixed, strict=True)
        finished = [column.form.reduce(found.sums[k], fixed) for column, k, fixed in every]
        values.append(np.column_stack(finished)[min(1, len(values)) :])
    return np.concatenate(values), found


def signed_columns_of_blocks(
    rows: Blocks, count: int, share_between: float, workers: Workers
) -> tuple[tuple[Column, ...], Total]:
    """Return columns of signs of ``count`` clusters, whose rows may be anywhere.

    A block contributes its rows' sums of every cluster, sparsely. At the end one sum of every cluster
    and kind is held: G × K numbers, for any number of rows.

    Raises
    ------
    InputError
        If the sums of all clusters do not fit into memory.
    """
    first = next(rows.blocks(0, 1))
    width = sum(int(each.turned.shape[1]) for each in _of_clusters(count, first))
    do = "take a statistic with fewer sums ('ecd', 'brier'), a smaller rank, or larger clusters"
    size = _COPIES_OF_CLUSTERS * 8.0 * width * count
    check_fits(size, f"{width} sums of each of {count} clusters", do)
    found = _total(rows, partial(_of_clusters, count), workers, "clusters")
    signed = []
    for (_, form), sums in zip(first.columns, found.sums, strict=True):
        turned = sums.turned
        if turned.nnz >= _DENSE * turned.shape[0] * turned.shape[1]:
            sums = sums._replace(turned=turned.toarray())
        signed.append(Column(None, form.of_cluster_sums(sums, share_between)))
    return tuple(signed), found


def _total(rows: Blocks, of_block: OfBlock, workers: Workers, what: str) -> Total:
    """Add up the totals of blocks, with one run of them per task."""
    tasks = runs(rows.n_samples, rows.grain, workers)
    terms: Iterator[Total] = workers.map(partial(_of_run, rows, of_block), tasks, what)
    return added(terms, Total.plus)


def _of_run(rows: Blocks, of_block: OfBlock, first: int, last: int) -> Total:
    numbered = enumerate(rows.blocks(first, last), start=first)
    return added((Total.of(block, number, of_block(block)) for number, block in numbered), Total.plus)


def _of_draws(part: slice, block: Block) -> tuple[Any, ...]:
    """Return the sums of a block of rows, for the observed labels and, below them, some draws."""
    drawn = block.draw(part.start, part.stop)
    labels = np.concatenate([block.observed[None].astype(drawn.dtype), drawn])
    found = []
    for own, (column, place) in enumerate(zip(block.columns, _summed_by(block.columns), strict=True)):
        outcomes = column.outcomes(labels, block.rows)
        # Sums shared with an earlier column are computed there.
        found.append(column.form.scores.sums(outcomes, block.rows) if place == own else np.empty(0))
    return tuple(found)


def _of_clusters(count: int, block: Block) -> tuple[ClusterSums, ...]:
    """Return the sums of every cluster; a block has rows of few."""
    rows = cast("Rows", block.known)
    here = np.unique(cast("Places", rows.clusters))
    clusters, found = Clusters.of(cast("Places", rows.clusters), rows.weights), []
    for column in block.columns:
        sums = column.form.cluster_sums(column.outcomes(block.observed[None])[0], clusters)
        own = scipy.sparse.coo_array(sums.turned)
        entries = (own.data, (here[own.row], own.col))
        turned = scipy.sparse.csr_array(entries, shape=(count, sums.turned.shape[1]))
        found.append(sums._replace(turned=turned))
    return tuple(found)


def runs(n_rows: int, grain: int, workers: Workers) -> list[tuple[int, int]]:
    """Cut rows into tasks, each with its first block and the one after its last.

    A run is everything below a node of the tree of `added`, so the sum is the same for any choice of
    runs: large if rows are stored in large parts, because a run has to read the rows before it in its
    part, and small enough for every worker to have two.
    """
    count, size = -(-n_rows // ROWS), BRANCHES if grain <= _LARGE_PART else BRANCHES**2
    while size > 1 and count < 2 * size * workers.hands:
        size //= BRANCHES
    return [(run.start, run.stop) for run in blocks(count, size)]


# ------------------------------------------------------------------ a sample of stored rows


def subsample_of(samples: Samples, n_samples: int, grain: int, workers: Workers) -> Rows:
    """Read all rows once, and return the ones that `subsample` selects."""
    places = subsample(n_samples)
    order = np.argsort(places)
    at = partial(_rows_at, samples, places[order])
    found = Rows.joined(list(workers.map(at, runs(n_samples, grain, workers))))
    return replace(found.take(np.argsort(order)), places=None)


def _rows_at(samples: Samples, places: Places, first: int, last: int) -> Rows:
    found = []
    for number, sample in enumerate(samples(first, last), start=first):
        start, stop = np.searchsorted(places, [number * ROWS, (number + 1) * ROWS])
        found.append(sample.rows.take(places[start:stop] - number * ROWS))
    return Rows.joined(found)
