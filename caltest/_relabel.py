"""Labels of full predictions in the classes of reduced ones: what the lenses share.

All functions take one label vector (n,) or a block of them (B, n), of whole numbers of any type, and
return small whole numbers: blocks of drawn labels are large.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray


def equal(column: int | NDArray[np.intp], labels: NDArray[Any]) -> NDArray[Any]:
    """Return 1 where a label is the column (of its row), else 0."""
    return np.asarray(labels == column).view(np.uint8)


def looked_up(table: NDArray[Any], labels: NDArray[Any]) -> NDArray[Any]:
    """Return what the table (n, m) says of every label."""
    return np.asarray(table[np.arange(len(table)), labels])


def ranks(probs: NDArray[np.float64]) -> NDArray[Any]:
    """Return the rank of every class in its row, the most probable first, (n, m), from 0.

    Of tied classes the first comes first.

    Examples
    --------
    >>> ranks(np.array([[0.25, 0.5, 0.25]])).tolist()
    [[1, 0, 2]]
    """
    n, m = probs.shape
    order = np.argsort(-probs, axis=1, kind="stable")
    places = np.arange(m).astype(np.min_scalar_type(m))
    found = np.empty((n, m), dtype=places.dtype)
    np.put_along_axis(found, order, np.broadcast_to(places, (n, m)), axis=1)
    return found
