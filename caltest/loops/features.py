"""The loops over slices: sums over all rectangles of small tables, and roots of likelihood ratios."""

# Compiled values have the types of NumPy arrays and scalars, which mypy distinguishes from Python's.
# mypy: disable-error-code="assignment, arg-type, call-arg, no-untyped-call"

from __future__ import annotations

from typing import Any

from caltest.loops import loop


@loop
def _add(table: Any, codes: Any, places: Any, value: Any) -> None:
    """Add a row to the table of every single column, and to that of every pair."""
    singles, pairs, widths = places
    d = len(singles)
    for j in range(d):
        table[singles[j] + 2 * codes[j]] += value
    for j in range(len(pairs)):
        place = codes[d + j]
        for k in range(j + 1, d):
            table[pairs[j, k] + place * widths[k] + codes[d + k]] += value


@loop
def _add_up(table: Any, tables: Any) -> None:
    """Make every table cumulative, along rows and columns."""
    for t in range(len(tables)):
        start, height, width = tables[t]
        for x in range(1, height):
            for y in range(1, width):
                own = start + x * width + y
                table[own] += table[own - 1] + table[own - width] - table[own - width - 1]


@loop
def cell_sums(
    values: Any, codes: Any, places: Any, tables: Any, corners: Any, table: Any, found: Any
) -> None:
    """Write sums of values (B, n) over K rectangles, (B, K), from the four corners of each.

    Codes (n, 2d) are those of every column alone and crossed; ``places`` are the starts of tables.
    """
    for b in range(len(values)):
        table[:] = 0.0
        for i in range(values.shape[1]):
            if values[b, i] != 0:
                _add(table, codes[i], places, values[b, i])
        _add_up(table, tables)
        for k in range(len(corners)):
            high, beside, below, low = corners[k]
            found[b, k] = table[high] - table[beside] - table[below] + table[low]


@loop
def cluster_moments(
    values: Any, order: Any, ends: Any, codes: Any, places: Any, tables: Any, corners: Any, table: Any,
    found: Any,
) -> None:  # fmt: skip
    """Add squares and fourth powers, (2, K), of every cluster's sum in every rectangle."""
    first = 0
    for g in range(len(ends)):
        table[:] = 0.0
        for r in range(first, ends[g]):
            _add(table, codes[order[r]], places, values[order[r]])
        first = ends[g]
        _add_up(table, tables)
        for k in range(len(corners)):
            high, beside, below, low = corners[k]
            square = (table[high] - table[beside] - table[below] + table[low]) ** 2
            found[0, k] += square
            found[1, k] += square * square


@loop
def roots(counts: Any, knots: Any, heights: Any, slopes: Any, found: Any) -> None:
    """Write the roots at counts (B, K): cubic between knots (K, G), linear at both ends."""
    last = knots.shape[1] - 1
    for b in range(len(counts)):
        for k in range(len(knots)):
            x = counts[b, k]
            low, high = 0, last
            while high - low > 1:
                middle = (low + high) // 2
                if knots[k, middle] <= x:
                    low = middle
                else:
                    high = middle
            start, end = heights[k, low], heights[k, high]
            step = knots[k, high] - knots[k, low]
            if x <= knots[k, 0]:
                found[b, k] = heights[k, 0]
            elif x >= knots[k, last] or step <= 0.0:
                found[b, k] = end
            elif low == 0 or high == last:
                found[b, k] = start + (x - knots[k, low]) / step * (end - start)
            else:
                u = (x - knots[k, low]) / step
                rise, fall = step * slopes[k, low], step * slopes[k, high]
                bend = 3.0 * (end - start) - 2.0 * rise - fall
                found[b, k] = start + u * (rise + u * (bend + u * (rise + fall - 2.0 * (end - start))))
