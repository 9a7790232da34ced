"""Tables of calibration errors, bin by bin."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from caltest._arguments import Whole, arguments
from caltest._quoted import quoted
from caltest.data import sample
from caltest.exceptions import InputError
from caltest.lenses import Lens, seen
from caltest.statistics.ecd import ECD, surprises

if TYPE_CHECKING:
    import pandas as pd

MOST_BINS = 100_000


@arguments(bins=Whole(1, MOST_BINS))
def bin_table(
    probs: object,
    labels: object,
    *,
    bins: int = 10,
    lens: str | Lens | None = None,
    clip: float | None = None,
) -> pd.DataFrame:
    """Return the calibration errors of every bin: unsigned, signed and entropic.

    Parameters
    ----------
    probs, labels
        As in :func:`caltest.test`.
    bins
        Number of bins of equal width on [0, 1]. Default 10. They are [a, b), the last one closed.
    lens
        As in :func:`caltest.test`; default "top_label" with more than two classes.
    clip
        As in :class:`caltest.statistics.ECD`. Default None.

    Returns
    -------
    pandas.DataFrame
        One row a bin, and a last one, "weighted sum", in which bins count by their rows. Columns:
        ``count``; ``confidence``, the mean probability of the event; ``frequency``, the share of
        rows in which it came true; ``ece`` = |frequency − confidence|; ``esce`` = frequency −
        confidence, below 0 where the event is predicted too often; ``ecd``, the entropic calibration
        difference, above 0 where the model is over-confident. A bin without rows has NaN.

    Raises
    ------
    InputError
        If the input is no set of predictions and labels.

    References
    ----------
    Sumler et al. 2025, Tables I and II.

    Examples
    --------
    >>> import caltest
    >>> table = caltest.bin_table([0.2, 0.2, 0.9, 0.9], [0, 1, 1, 1], bins=2)
    >>> table.round(3)
                  count  confidence  frequency  ece  esce    ecd
    [0, 0.5)          2        0.20       0.50  0.3   0.3  0.416
    [0.5, 1]          2        0.90       1.00  0.1   0.1 -0.220
    weighted sum      4        0.55       0.75  0.2   0.2  0.098
    """
    import pandas as pd

    n_bins = int(bins)
    clip = ECD(clip).clip
    view, _ = seen(sample(probs, labels), lens, "top_label")
    if view.predictions.n_classes != 2:
        raise InputError(
            f"a table is of one probability, and the lens {quoted(lens)} shows "
            f"{view.predictions.n_classes} classes; give one such as 'top_label' or 'class:0'."
        )
    p, y = view.predictions.probs[:, 1], view.labels
    edges = np.arange(n_bins + 1) / n_bins
    member = np.searchsorted(edges[1:-1], p, side="right")
    surprise = surprises(view.predictions.probs, clip)[np.arange(len(y)), y]
    count = np.bincount(member, minlength=n_bins)

    def mean(values: NDArray[np.floating] | NDArray[np.intp]) -> NDArray[np.float64]:
        sums = np.bincount(member, weights=values, minlength=n_bins)
        return np.asarray(np.divide(sums, count, out=np.full(n_bins, np.nan), where=count > 0))

    table = pd.DataFrame({"count": count, "confidence": mean(p), "frequency": mean(y)})
    table["esce"] = table["frequency"] - table["confidence"]
    table.insert(3, "ece", table["esce"].abs())
    table["ecd"] = mean(surprise)
    table.index = pd.Index(_intervals(edges))
    occupied = table[table["count"] > 0]
    total = occupied.mul(occupied["count"] / len(p), axis=0).sum()
    total["count"] = len(p)
    table.loc["weighted sum"] = total
    return table.astype({"count": int})


def _intervals(edges: NDArray[np.float64]) -> list[str]:
    """Return the bins' names, [a, b), the last one closed."""
    names = [f"[{low:g}, {high:g})" for low, high in pairwise(edges)]
    return [*names[:-1], names[-1].replace(")", "]")]
