"""Columns that describe the rows, and were known before the outcome: numbers, dates, and categories."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from caltest._numbers import shortest_between


@dataclass(frozen=True, eq=False)
class Feature:
    """One column of n rows.

    Attributes
    ----------
    name
        Its name.
    values
        Numbers, (n,) of float64, NaN where missing; or the place of each row's level, (n,) of intp, −1
        where missing.
    levels
        Of a category, its values as text; none of numbers.
    dates
        Whether numbers are seconds since 1970.
    """

    name: str
    values: np.ndarray
    levels: tuple[str, ...] = ()
    dates: bool = False

    def written(self, low: float, high: float) -> str:
        """Return the shortest number, or date, from the first on and below the second, as text."""
        if not self.dates:
            return shortest_between(low, high)
        units = ("D", "h", "m", "s")
        texts = [
            str(np.datetime64(-int(-low // 1), "s").astype(f"datetime64[{unit}]")) for unit in units
        ]
        ends = [np.datetime64(text, "s").astype(np.int64) for text in texts]
        fits = (
            text
            for text, end in zip(texts, ends, strict=True)
            if low <= end <= low or low <= end < high
        )
        return next(fits, texts[-1])


@dataclass(frozen=True, eq=False)
class Features:
    """Columns of the same n rows."""

    columns: tuple[Feature, ...]

    def take(self, rows: Any) -> Features:
        """Return some rows."""
        return Features(tuple(replace(each, values=each.values[rows]) for each in self.columns))
