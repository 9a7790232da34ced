"""Sums over clusters of rows that come a block at a time, and a statistic's signs from these.

Rows of a cluster may be anywhere. A block adds up what its rows have of every cluster, sparsely; blocks
merge by addition, in the order of `added`, so that neither workers nor blocks change a number. In the
end one sum of every cluster and kind is held: G × K numbers, however many rows there are.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import NamedTuple, cast

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from caltest._memory import check_fits
from caltest._parallel import Workers, added
from caltest._sampling import ROWS
from caltest.data import Sample
from caltest.forms import AddsByCluster, Clusters, ClusterSums
from caltest.resampling import EVERYTHING, Column, ColumnsOfRows, StoredRows, Sums, runs

_DENSE = 0.25  # of the numbers, from where on all of them are held
_COPIES = 4.0  # of the sums: all, those of two workers, and those on the way


class SignedBlocks(NamedTuple):
    """Columns of signs, from rows that were taken a block at a time.

    Attributes
    ----------
    columns
        As of `resampling.signed_columns`.
    rounding
        How far two evaluations of a column's value may differ, (H,).
    impossible
        Rows whose label had probability 0.
    notes
        What was done to the rows.
    """

    columns: tuple[Column, ...]
    rounding: NDArray[np.float64]
    impossible: NDArray[np.intp]
    notes: tuple[str, ...]


def add_by_cluster(columns: Sequence[Column]) -> bool:
    """Say whether the columns have sums of clusters that merge by addition."""
    return all(isinstance(form, AddsByCluster) for _, form in columns)


def signed_columns_of_blocks(
    columns_of: ColumnsOfRows, rows: StoredRows, count: int, share_between: float, workers: Workers
) -> SignedBlocks:
    """Return columns of signs of ``count`` clusters; rows are read a run of blocks at a time.

    Raises
    ------
    InputError
        If the sums of all clusters do not fit into memory.
    """
    sample = next(rows.samples(0, 1))
    first, of_block = columns_of(sample.rows), partial(_of_block, columns_of, count)
    width = sum(int(each.turned.shape[1]) for each in of_block(0, sample).sums)
    check_fits(
        _COPIES * 8.0 * width * count,
        f"{width} sums of each of {count} clusters",
        "take a statistic with fewer sums ('ecd', 'brier'), a smaller rank=, or larger clusters",
    )
    tasks = runs(rows.n_samples, rows.grain, workers)
    found = workers.merged(partial(_of_run, of_block, rows), tasks, _plus, "clusters")
    signed = tuple(
        Column(EVERYTHING, cast("AddsByCluster", form).of_cluster_sums(_held(sums), share_between))
        for (_, form), sums in zip(first, found.sums, strict=True)
    )
    return SignedBlocks(signed, found.rounding, found.impossible, found.notes)


def _of_run(
    of_block: Callable[[int, Sample], Sums[ClusterSums]], rows: StoredRows, first: int, last: int
) -> Sums[ClusterSums]:
    return added(map(of_block, range(first, last), rows.samples(first, last)), _plus)


def _of_block(columns_of: ColumnsOfRows, count: int, number: int, sample: Sample) -> Sums[ClusterSums]:
    rows, columns = sample.rows, columns_of(sample.rows)
    here, codes = np.unique(cast("NDArray[np.intp]", rows.clusters), return_inverse=True)
    clusters, sums = Clusters(codes, len(here), rows.weights), []
    for view, form in columns:
        labels = sample.labels[None]
        seen = labels if view.reduce is None else view.reduce(labels, slice(0, rows.n_samples))
        turned, fixed = cast("AddsByCluster", form).cluster_sums(seen[0].astype(np.intp), clusters)
        own = sparse.coo_array(turned)
        entries = (own.data, (here[own.row], own.col))
        sums.append(ClusterSums(sparse.csr_array(entries, shape=(count, turned.shape[1])), fixed))
    return Sums(
        tuple(sums),
        np.array([column.form.resolution for column in columns]),
        rows.impossible(sample.labels) + number * ROWS,
        rows.notes,
    )


def _added(one: ClusterSums, other: ClusterSums) -> ClusterSums:
    return ClusterSums(one.turned + other.turned, one.fixed + other.fixed)


_plus: Callable[[Sums[ClusterSums], Sums[ClusterSums]], Sums[ClusterSums]] = partial(
    Sums.plus, add=_added
)


def _held(sums: ClusterSums) -> ClusterSums:
    """Hold all numbers where few are 0."""
    turned = sums.turned
    crowded = turned.nnz >= _DENSE * turned.shape[0] * turned.shape[1]
    return sums._replace(turned=turned.toarray()) if crowded else sums
