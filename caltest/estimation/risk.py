"""The calibration estimation risk: how far h(g_i, g_j) is from ⟨r_i, r_j⟩, on rows h was not fitted to.

Source: Gruber and Bach, "Optimizing estimators of squared calibration errors in classification", 2024,
Equations 16 to 20 and 30. ⟨r_i, r_j⟩ has the mean ⟨E[r | g_i], E[r | g_j]⟩ for i ≠ j, so that the risk
of h is that of the truth plus the mean squared error of h: smaller is better, and no calibration error
need be known.
"""

from __future__ import annotations

from functools import partial

import numpy as np

from caltest._arguments import arguments
from caltest._parallel import Workers, single_threaded_blas
from caltest._tiles import sum_over_tiles
from caltest._visible import quoted
from caltest.data import sample
from caltest.estimation.base import Array, ErrorGram, Fitted, residuals
from caltest.exceptions import InputError


def _has_values(name: str, value: object) -> object:
    """Return an object that has what :class:`ErrorGram` says."""
    if all(callable(getattr(value, each, None)) for each in ("diagonal", "gram")) and not isinstance(
        value, type
    ):
        return value
    raise InputError(
        f"{name} is {quoted(value)}; give a fitted estimation function, or an object with "
        "diagonal(probs) and gram(probs_a, probs_b)."
    )


@arguments(h=_has_values)
def risk(h: ErrorGram, probs: object, labels: object, *, n_jobs: int | None = None) -> float:
    """Return the U-statistic of the risk, (n(n − 1))⁻¹ Σ_{i≠j} (⟨r_i, r_j⟩ − h(g_i, g_j))².

    Parameters
    ----------
    h
        A fitted estimation function, or any object with ``diagonal(probs)`` and
        ``gram(probs_a, probs_b)``, h symmetric.
    probs, labels
        Rows that h was not fitted to, as in :func:`caltest.test`; n of them. Of two classes, r is the
        scalar y − P(class 1).
    n_jobs
        Workers, as in joblib. Default: one.

    Returns
    -------
    float
        In O(n k²) operations for h = ⟨ĉ, ĉ'⟩ and O(n r²) for kernel ridge regression of rank r
        (Equation 30); else in O(n²), a tile of the n×n values of h at a time.

    Raises
    ------
    InputError
        If the input is no set of predictions and labels, or h is not a number for some pair.

    Examples
    --------
    >>> from caltest.estimation import HistogramBinning, risk
    >>> h = HistogramBinning(2).fit([0.2, 0.4, 0.7, 0.9], [0, 1, 1, 1])
    >>> round(risk(h, [0.3, 0.3, 0.8, 0.8], [0, 1, 1, 1]), 6)
    0.017083
    """
    rows, own = _rows(probs, labels)
    with single_threaded_blas():
        if isinstance(h, Fitted):
            return float(h.smoother.at(rows).risks(h.residuals, own)[0])
        tile = partial(_tile, h, rows, own[:, 0])
        total = sum_over_tiles(tile, len(rows), Workers(n_jobs))
    return float(total / (len(rows) * (len(rows) - 1.0)))


@arguments(h=_has_values)
def linear_risk(h: ErrorGram, probs: object, labels: object) -> float:
    """Return the mean of (⟨r_i, r_j⟩ − h(g_i, g_j))² over the disjoint pairs (0, 1), (2, 3), …

    Parameters
    ----------
    h, probs, labels
        As of :func:`risk`. An odd last row is left out.

    Returns
    -------
    float
        As unbiased as the U-statistic, with a larger variance, in O(n) values of h.

    Raises
    ------
    InputError
        If the input is no set of predictions and labels, or h is not a number for a pair.

    Examples
    --------
    >>> from caltest.estimation import HistogramBinning, linear_risk
    >>> h = HistogramBinning(2).fit([0.2, 0.4, 0.7, 0.9], [0, 1, 1, 1])
    >>> round(linear_risk(h, [0.3, 0.3, 0.8, 0.8], [0, 1, 1, 1]), 6)
    0.03125
    """
    rows, own = _rows(probs, labels)
    pairs = len(rows) // 2
    first, second = (slice(start, 2 * pairs, 2) for start in (0, 1))
    products = np.einsum("ik,ik->i", own[first, 0], own[second, 0])
    values = _paired(h, rows[first], rows[second])
    broken = np.flatnonzero(np.isnan(values))
    if len(broken):
        pair = 2 * broken[0]
        raise InputError(f"h is not a number for the rows {pair} and {pair + 1}; mend it there.")
    return float(np.mean((products - values) ** 2))


def _rows(probs: object, labels: object) -> tuple[Array, Array]:
    checked = sample(probs, labels)
    rows = checked.rows.probs
    return rows, residuals(rows, checked.labels[None, :])


def _tile(h: ErrorGram, probs: Array, own: Array, rows: slice, columns: slice) -> float:
    gaps = own[rows] @ own[columns].T - h.gram(probs[rows], probs[columns])
    if rows == columns:
        np.fill_diagonal(gaps, 0.0)
    total = float(np.vdot(gaps, gaps))
    if np.isnan(total):
        raise InputError(
            f"h is not a number for some pair of the rows {rows.start} to {rows.stop - 1} and "
            f"{columns.start} to {columns.stop - 1}; mend it there."
        )
    return total


def _paired(h: ErrorGram, first: Array, second: Array, size: int = 64) -> Array:
    """Return h(p_i, p'_i): the diagonals of small blocks of its values."""
    parts = [
        np.diagonal(h.gram(first[start : start + size], second[start : start + size]))
        for start in range(0, len(first), size)
    ]
    return np.concatenate(parts)
