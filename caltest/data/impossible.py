"""The one note on what came true though the model called it impossible."""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

_ROWS_NAMED = 5


class _Said(Protocol):
    """Predictions of classes or of numbers."""

    @property
    def n_classes(self) -> int | None: ...

    def impossible(self, labels: Any, /) -> NDArray[np.intp]: ...


class _Labelled(Protocol):
    """Predictions with what came true: a sample of classes or of numbers."""

    @property
    def rows(self) -> _Said: ...

    @property
    def labels(self) -> NDArray[Any]: ...


def impossible_labels(view: _Labelled, label: int | None = None) -> tuple[str, ...]:
    """Say so if something came true that the model calls impossible: no test is needed then.

    Parameters
    ----------
    view
        Predictions and labels, of classes or of numbers.
    label
        Look at rows with this label only. Default: all rows.

    Returns
    -------
    tuple of str
        One sentence, or none.

    Examples
    --------
    >>> from caltest.data import sample
    >>> view = sample([[1.0, 0.0], [0.5, 0.5], [0.0, 1.0]], [1, 1, 0])
    >>> print(*impossible_labels(view))
    In 2 of 3 rows (counting from 0: 0, 2) the label that came true had probability 0: that alone
    proves the model miscalibrated, whatever p is.
    >>> impossible_labels(view, 0)[0][:38]
    'In 1 of 3 rows (counting from 0: 2) th'
    """
    broken = view.rows.impossible(view.labels)
    if label is not None:
        broken = broken[view.labels[broken] == label]
    what = "the outcome" if view.rows.n_classes is None else "the label that came true"
    return impossible_rows(broken, len(view.labels), what)


def impossible_rows(
    broken: NDArray[np.intp], n: int, what: str = "the label that came true"
) -> tuple[str, ...]:
    """Say so of these of ``n`` rows, if there are any."""
    if len(broken) == 0:
        return ()
    named = ", ".join(map(str, broken[:_ROWS_NAMED])) + (", …" if len(broken) > _ROWS_NAMED else "")
    return (
        f"In {len(broken)} of {n} rows (counting from 0: {named}) {what} had "
        "probability 0: that alone proves the model miscalibrated, whatever p is.",
    )
