"""Clusters: which rows may depend on each other, from a column of names or numbers."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from caltest._visible import quoted
from caltest.data.containers import as_entry, cells_of, is_missing, one_as_text
from caltest.exceptions import InputError

_MISSING = (
    "clusters has missing values, the first{found} in {row}; a row that depends on no other is a "
    "cluster of its own, so give it a name that no other row has."
)


@dataclass(eq=False)
class Clustering:
    """Clusters of rows that come a part at a time, numbered in the order in which they come.

    Attributes
    ----------
    known
        The number of every name.
    totals
        What the rows of every cluster count, (G,), or more numbers of which the others are 0.
    """

    known: dict[Hashable, int] = field(default_factory=dict)
    totals: NDArray[np.float64] = field(default_factory=lambda: np.zeros(0))

    def __len__(self) -> int:
        return len(self.known)

    def codes(self, cells: Sequence[Any]) -> NDArray[np.intp]:
        """Return the numbers of the clusters of some rows, of which new ones are taken in."""
        known, codes = self.known, np.empty(len(cells), dtype=np.intp)
        here: dict[Hashable, int] = {}  # by type too: True is not 1
        for row, cell in enumerate(cells):
            if is_missing(cell):
                found = f", {quoted(cell)}," if isinstance(cell, str) and cell else ""
                raise InputError(_MISSING, argument="clusters", found=found, row=row)
            try:
                if (kind := (type(cell), cell)) not in here:
                    here[kind] = known.setdefault(as_entry(cell), len(known))
                codes[row] = here[kind]
            except Exception:  # a value of the user's may raise anything
                text = "clusters holds {found} in {row}; give a name or a number for every row."
                raise InputError(text, argument="clusters", row=row, found=quoted(cell)) from None
        return codes

    def add(self, cells: Sequence[Any], weights: NDArray[np.float64] | None) -> None:
        """Take in some rows, and what they count; None: as 1 each."""
        codes = self.codes(cells)
        if len(self.totals) < len(self):
            self.totals = np.append(self.totals, np.zeros(len(self)))
        self.totals[: len(self)] += np.bincount(codes, weights, len(self))

    def counted(self) -> Clustering:
        """Return those of which a row counts, numbered anew; rows of others count nothing anywhere."""
        check_several(self.known)
        counts = self.totals[: len(self)] > 0.0
        if counts.sum() < 2:
            raise one_cluster_counts()
        places = np.where(counts, np.cumsum(counts) - 1, 0)
        known = {name: int(places[number]) for name, number in self.known.items()}
        return Clustering(known, self.totals[: len(self)][counts])

    @property
    def count(self) -> int:
        """Number of clusters G, once all rows were taken in."""
        return len(self.totals)

    def share_between(self, pairs: float, total: float) -> float:
        """How many pairs of different rows there are for each of different clusters, as rows count."""
        shares = self.totals / self.totals.sum()
        return pairs / total**2 / (1.0 - float(shares @ shares))


def check_several(names: Iterable[Any]) -> None:
    """Raise unless there are two clusters or more."""
    if len(some := list(names)[:2]) < 2:
        raise InputError(
            f"clusters is {quoted(some[0])} for every row, and all rows of one cluster may depend on "
            "each other, so nothing can be tested; give at least two clusters."
        )


def one_cluster_counts() -> InputError:
    """Say that the rows that count are in one cluster."""
    return InputError(
        "the rows of one cluster alone have weights above 0, and they may all depend on each other, so "
        "that nothing can be tested; give two clusters that count, or more."
    )


def cluster_codes(clusters: object, n_rows: int) -> tuple[NDArray[np.intp], tuple[str, ...]]:
    """Return the cluster of every row, (n,) of 0..G−1 in the order in which clusters come, and notes.

    Parameters
    ----------
    clusters
        A column of n names or numbers, in any container: rows of equal entries are one cluster. Text
        that is written as a number is, as 1 or 1.0, is that number.
    n_rows
        Number of rows n.

    Raises
    ------
    InputError
        If it is no such column, an entry is missing, or all rows are in one cluster.

    Examples
    --------
    >>> codes, notes = cluster_codes(["b", "a", "b"], 3)
    >>> codes.tolist()
    [0, 1, 0]
    """
    cells = cells_of(clusters, "clusters")
    if cells is None:
        do = "give one column, with the name or number of a cluster for every row"
        raise InputError(f"clusters is {quoted(clusters)}; {do}.")
    if len(cells) != n_rows:
        count = f"{len(cells)} entries for {n_rows} rows of probs"
        raise InputError(f"clusters has {count}; give one for every row.")
    found = Clustering()
    codes = found.codes(cells)
    check_several(found.known)
    return codes, one_as_text("clusters", "cluster", cells, as_entry)


def refuse_clusters(clusters: NDArray[np.intp] | None, what: str) -> None:
    """Raise where rows are in clusters and no valid form of something is known for these."""
    if clusters is not None:
        raise InputError(
            f"{what} takes rows to be independent, and these are in clusters: no valid form for those "
            "is known; keep one row per cluster, or test with caltest.test."
        )


def check_alike(rows: Any, what: str, do: str, *, weighted: str | None = None) -> None:
    """Raise if rows are in clusters, or have weights: what is done next counts independent rows."""
    refuse_clusters(rows.clusters, what)
    if not rows.are_alike:
        raise InputError(f"{weighted or what} takes no weights, and these rows have some; {do}.")
