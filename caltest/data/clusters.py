"""Clusters: which rows may depend on each other, from a column of names or numbers."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any

import narwhals as nw
import numpy as np
from numpy.typing import NDArray

from caltest._visible import quoted
from caltest.data.containers import native_of
from caltest.exceptions import InputError


def cluster_codes(clusters: object, n_rows: int) -> NDArray[np.intp]:
    """Return the cluster of every row, (n,) of 0..G−1 in the order in which clusters come.

    Parameters
    ----------
    clusters
        A column of n names or numbers, in any container: rows of equal entries are one cluster.
    n_rows
        Number of rows n.

    Raises
    ------
    InputError
        If it is no such column, an entry is missing, or all rows are in one cluster.

    Examples
    --------
    >>> cluster_codes(["b", "a", "b"], 3).tolist()
    [0, 1, 0]
    """
    cells = _cells(clusters)
    if len(cells) != n_rows:
        raise InputError(
            f"clusters has {len(cells)} entries for {n_rows} rows of probs; give one for every row."
        )
    known: dict[Hashable, int] = {}
    codes = np.empty(n_rows, dtype=np.intp)
    for row, cell in enumerate(cells):
        if _is_missing(cell):
            raise InputError(
                "clusters has missing values, the first in {row}; a row that depends on no other is a "
                "cluster of its own, so give it a name that no other row has.",
                argument="clusters",
                row=row,
            )
        try:
            codes[row] = known.setdefault(cell, len(known))
        except TypeError:
            raise InputError(
                "clusters holds {found} in {row}; give a name or a number for every row.",
                argument="clusters",
                row=row,
                found=quoted(cell),
            ) from None
    if len(known) < 2:
        raise InputError(
            f"clusters is {quoted(cells[0])} for every row, and all rows of one cluster may depend on "
            "each other, so that nothing can be tested; give two clusters or more."
        )
    return codes


def _is_missing(cell: Any) -> bool:
    """Say whether an entry is no name: of nothing, not a number, or an empty text."""
    if cell is None or type(cell).__name__ in ("NAType", "NaTType"):
        return True
    return cell == "" if isinstance(cell, str) else isinstance(cell, float) and cell != cell


def _cells(clusters: Any) -> list[Any]:
    """Return the entries of a column of any container."""
    native = native_of(clusters, "clusters")
    if isinstance(native, nw.DataFrame) and len(native.columns) == 1:
        native = native.get_column(native.columns[0])
    if isinstance(native, nw.Series):
        return list(native.to_list())
    cells: Any = None
    try:
        values = clusters if isinstance(clusters, list) else np.asarray(clusters)
        if not isinstance(values, list) and values.ndim == 2 and values.shape[1] == 1:
            values = values[:, 0]
        if isinstance(values, list) or values.ndim == 1:
            cells = values if isinstance(values, list) else values.tolist()
            masked = np.ma.getmaskarray(clusters) if np.ma.isMaskedArray(clusters) else ()
            for row in np.flatnonzero(masked):
                cells[row] = None
    except Exception:  # what calls itself an array may raise anything
        cells = None
    if cells is None or isinstance(clusters, str | bytes):
        raise InputError(
            f"clusters is {quoted(clusters)}; give one column, with the name or number of a cluster "
            "for every row."
        )
    return list(cells)


def refuse_clusters(clusters: NDArray[np.intp] | None, what: str) -> None:
    """Raise where rows are in clusters and no valid form of something is known for these."""
    if clusters is not None:
        raise InputError(
            f"{what} takes rows to be independent, and these are in clusters: no valid form for those "
            "is known; give one row a cluster, or test with caltest.test."
        )
