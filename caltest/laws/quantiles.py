"""Quantile forecasts: the law of the cell, between stated quantiles, that holds the outcome."""

from __future__ import annotations

import re
from copy import copy
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from caltest._arguments import arguments
from caltest._sums import Mask
from caltest._visible import quoted
from caltest.alignment import are_counted, column_names, rows_first, stated_numbers
from caltest.exceptions import Argument, InputError
from caltest.laws.base import Shaped, as_stated, finite_table, in_columns
from caltest.laws.classes import Array, Outcomes, read_only

_SAME = 1e-9  # levels that differ by rounding only
_MOST = 99  # most levels: tables have an entry for every pair


@arguments()
class Quantiles(Shaped):
    """Predictions that are quantiles at stated levels; nothing between them is assumed.

    Parameters
    ----------
    levels : array of shape (K,), or None
        Levels from 0 to 1, increasing: 0.05 for 5%. At most 99. None: read from the names of the
        columns of ``values``, such as "0.05", "q0.05", "5%" or "model-lo-90". Quantiles at the levels 0
        and 1 state where outcomes are possible at all.
    values : array of shape (n, K), or data frame
        Quantiles, with columns in the order of the levels; they may not decrease in any row. NaN where
        a row does not state one; infinite ones are allowed.

    Raises
    ------
    InputError
        If levels are not increasing or not from 0 to 1, shapes do not fit, quantiles cross, or a row
        states none.

    Notes
    -----
    A quantile q at the level τ claims that P(Y < q) ≤ τ ≤ P(Y ≤ q). Anything between the two is
    allowed, where outcomes may equal it, as counts do. With U uniform, {Y < q_k} ⊂ {U ≤ τ_k} ⊂ {Y ≤
    q_k}, all k. Of the K + 1 cells (τ_k, τ_{k+1}] that U may lie in, an outcome leaves open those from
    #{k: q_k < y} to #{k: q_k ≤ y}; under H0 cells are drawn, with their lengths as probabilities. Where
    several are open, the error is the smallest that these allow, never larger than that of U. So every
    p-value is valid, for counts too. Where quantiles are missing, an outcome leaves open all cells from
    the last stated one below it to the first stated one above, and lenses look only at the rows that
    state their levels.

    Outcomes are kept as whole numbers, first open cell · (K + 1) + last.

    Examples
    --------
    >>> import numpy as np, scipy.stats, caltest
    >>> rng = np.random.default_rng(0)
    >>> levels, mean = [0.05, 0.25, 0.5, 0.75, 0.95], rng.uniform(1, 20, 300)
    >>> values = scipy.stats.poisson(mean[:, None]).ppf(levels)
    >>> predicted = caltest.predictive.Quantiles(levels, values)
    >>> caltest.test(predicted, rng.poisson(mean), rng=0).pvalue
    1.0
    >>> caltest.test(predicted, rng.poisson(0.8 * mean), "bias", rng=0).pvalue
    0.002
    """

    about = "quantile forecasts"
    instead = "use 'pit_ad' or another statistic of the PIT, or a lens at a stated level"
    _by_row = ("values", "_ends", "_beyond")

    levels: Array  #: Levels between 0 and 1, (K,).
    values: Array  #: Quantiles, (n, K).
    _beyond: Any = None  # mask of outcomes outside the support, (n,), once they are met

    def __init__(self, levels: object, values: object) -> None:
        shape = f"(K,) levels, at most {_MOST}"
        values = rows_first(values, "values")
        called = _named(values, levels is None)
        at = finite_table("levels", called if levels is None else as_stated(levels), shape, ndim=(1, 2))
        table = finite_table("values", values, fine=np.isreal)
        if called is not None and at.shape == (len(called),) == table.shape[1:]:
            at, table = in_columns("levels", at, table, called)
        if at.ndim == 2 and table.ndim == 1:
            found = f"levels and values look swapped, of shapes {at.shape} and {table.shape}"
            raise InputError(f"{found}; give levels first.")
        if at.ndim != 1 or len(at) > _MOST:
            raise InputError(f"levels has shape {at.shape}; give {shape}.")
        for place in np.flatnonzero((at < 0.0) | (at > 1.0))[:1]:
            raise InputError(f"levels holds {at[place]:g}; give levels between 0 and 1, 0.05 for 5%.")
        inner = np.flatnonzero((at > 0.0) & (at < 1.0))
        for place in np.flatnonzero(np.diff(at) <= _SAME)[:1]:
            do = "give increasing levels, and the columns of values in the same order"
            raise InputError(f"levels holds {at[place]:g} before {at[place + 1]:g}; {do}.")
        if table.ndim != 2 or table.shape[1] != len(at) or not len(table):
            do = "values.T" if table.shape[:1] == at.shape else f"(n, {len(at)}), a column for each"
            raise InputError(f"values has shape {table.shape} for {len(at)} levels; give {do}.")
        for row in np.flatnonzero(np.isnan(table[:, inner]).all(axis=1))[:1]:
            text = "no quantile between the levels 0 and 1 is in {row}; leave it out."
            raise InputError(text, row=int(row))
        largest = np.fmax.accumulate(table, axis=1)
        for row, k in np.argwhere(table < largest)[:1]:
            first = int(np.argmax(table[row] == largest[row, k]))
            found = f"{largest[row, k]:g} at the level {at[first]:g} and {table[row, k]:g} at {at[k]:g}"
            how = Argument(", as np.sort(values, axis=1) makes them", shell=" along a row")
            how = Argument("") if np.isnan(table[row]).any() else how  # to which it would move others
            text = f"quantiles cross in {{row}}: {found}; give quantiles that do not decrease{how}."
            raise InputError(text, row=int(row))
        self._ends = np.where([at[0] == 0.0, at[-1] == 1.0], table[:, [0, -1]], np.nan)
        self.levels, self.values = at[inner], table[:, inner]
        self.given, self._shape = values, table.shape[:1]

    def outcomes(self, values: object) -> Outcomes:
        """Check outcomes, and return a code of the cells that each may lie in, (n,)."""
        numbers, count = super().outcomes(values)[:, None], len(self.levels)
        first = np.where(self.values < numbers, np.arange(count) + 1, 0).max(axis=1)
        last = np.where(self.values > numbers, np.arange(count), count).min(axis=1)
        return np.asarray(first * (count + 1) + last)

    def met(self, outcomes: object, weights: Array | None = None) -> tuple[Self, Outcomes]:
        """Return the law, with a mask of outcomes outside the support, and the cells of outcomes."""
        numbers, found = super().outcomes(outcomes), copy(self)
        found._beyond = (numbers < self._ends[:, 0]) | (numbers > self._ends[:, 1])
        return found, self.outcomes(outcomes)

    def impossible(self, outcomes: Outcomes) -> Mask:
        """Return a mask of the outcomes met that lie beyond a quantile of level 0 or 1."""
        return np.zeros(self.n_samples, np.bool_) if self._beyond is None else self._beyond

    def observed(self, outcomes: Outcomes) -> Outcomes:
        """Return cells as whole numbers, read-only."""
        return read_only(outcomes, np.intp)

    def remarks(self, outcomes: Outcomes) -> tuple[str, ...]:
        """Return remarks on outcomes that equal a quantile, and on rows that lack a level."""
        first, last = np.divmod(outcomes[:, None], len(self.levels) + 1)
        places, n, found = np.arange(len(self.levels)), len(outcomes), []
        equal = (first <= places) & (places < last) & ~np.isnan(self.values)
        if tied := np.count_nonzero(equal.any(axis=1)):
            equals = f"In {tied:,} of {n:,} rows the outcome equals a predicted quantile"
            found.append(f"{equals}: it counts as below or above, whichever makes an error smaller.")
        if (fewest := (~np.isnan(self.values)).sum(axis=0).min()) < n:
            rarest = f"the rarest is stated by {fewest:,}"
            found.append(f"Not all of {n:,} rows state every quantile; {rarest}.")
        return tuple(found)

    def draw(self, rng: np.random.Generator, size: int) -> Outcomes:
        """Return the cells that uniform numbers lie in, (size, n)."""
        return self.cells(rng.random((size, self.n_samples)))

    def cells(self, uniforms: Array) -> Outcomes:
        """Return the cells that numbers (…, n) in [0, 1] lie in, coded as outcomes are."""
        cells, count = np.searchsorted(self.levels, uniforms), len(self.levels)
        return (cells * (count + 2)).astype(np.min_scalar_type((count + 1) ** 2))

    def over_cells(self, entries: NDArray[Any]) -> tuple[NDArray[Any], NDArray[Any]]:
        """Return the smallest and largest entry over open cells, from entries of all cells, (K + 1, …).

        The tables, ((K + 1)², …), have one row for every coded outcome.
        """
        count = len(entries)
        least = np.zeros((count, *entries.shape), dtype=entries.dtype)
        most = least.copy()
        for first in range(count):
            np.minimum.accumulate(entries[first:], out=least[first, first:])
            np.maximum.accumulate(entries[first:], out=most[first, first:])
        shape = (count**2, *entries.shape[1:])
        return least.reshape(shape), most.reshape(shape)

    def place(self, level: float) -> int:
        """Return the place of a level; raise unless it is stated."""
        place = int(np.abs(self.levels - level).argmin())
        if abs(self.levels[place] - level) > _SAME:
            found = f"no quantile at the level {level:g}, and nothing between quantiles is assumed"
            nearest = f"the nearest stated level is {self.levels[place]:g}"
            raise InputError(f"the forecasts state {found}; {nearest}.")
        return place

    def quantile(self, levels: Array) -> Array:
        """Return quantiles at stated levels (…, n)."""
        asked, which = np.unique(levels, return_inverse=True)
        places = np.array([self.place(level) for level in asked])[which].reshape(levels.shape)
        return np.asarray(self.values[np.arange(self.n_samples), places])

    def _quantiles(self, level: float) -> Array:
        """Return each row's quantile at the nearest level that it states, (n,)."""
        apart = np.where(np.isnan(self.values), np.inf, np.abs(self.levels - level))
        return np.asarray(self.values[np.arange(self.n_samples), apart.argmin(axis=1)])


def level_called(name: str) -> float | None:
    """Return the level that a column name states; None if it states none.

    >>> [level_called(name) for name in ("q0.05", "5%", "model-lo-90", "model-hi-90", "x-median", "x")]
    [0.05, 0.05, 0.05, 0.95, 0.5, None]
    """
    if ends := re.fullmatch(r"(?:.*-)?(lo|hi)-(\d+(?:\.\d+)?)", name):  # ends of the central interval
        return round(0.5 + {"lo": -0.005, "hi": 0.005}[ends[1]] * float(ends[2]), 9)
    if re.fullmatch(r"(?:.*-)?median", name):
        return 0.5
    number = re.fullmatch(r"q?(\d*\.?\d+(?:e-?\d+)?)(%?)", name)
    return None if number is None else round(float(number[1]) / (100.0 if number[2] else 1.0), 12)


def _named(values: Any, needed: bool) -> list[float] | None:
    """Return the levels that columns name; if not needed and they name none, None."""
    names = column_names(values)
    found = [level for level in map(level_called, names) if level is not None]
    if not needed:  # names that would not suffice alone may still contradict the levels passed
        found = found if len(found) == len(names) else stated_numbers(names)
        found = [round(x / 100.0, 12) for x in found] if max(found, default=0.0) > 1.0 else found
        return None if not found or are_counted(names) else found
    if len(found) < len(names):
        unsaid = f"levels is None, and the columns of values are called {quoted([*names])}"
        do = "give levels, or columns such as '0.05', 'q0.05', '5%' or 'model-lo-90'"
        raise InputError(f"{unsaid}; {do}.")
    return found
