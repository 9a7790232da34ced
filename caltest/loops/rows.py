"""The loops over rows: draws of labels, and sums over them."""

# Compiled values have the types of NumPy arrays and scalars, which mypy distinguishes from Python's.
# mypy: disable-error-code="assignment, arg-type, call-arg, no-untyped-call"

from __future__ import annotations

from typing import Any

import numpy as np
from llvmlite import ir
from numba.core import types
from numba.extending import intrinsic

from caltest.loops import loop

# ------------------------------------------------------------------ drawing labels


_SIDE = 64  # rows transposed together: draws of 4 096 rows share a way of the cache
_COMPARED = 128  # rows compared together


@loop
def count_below(sums: Any, uniforms: Any, labels: Any) -> None:
    """Write the number of a row's cumulative sums (n, m − 1) at or below each of (B, n) numbers.

    It makes one comparison per class, for few classes.
    """
    n, bounds = sums.shape
    here, found = np.empty((bounds, _COMPARED)), np.empty(_COMPARED, np.int64)
    for start in range(0, n, _COMPARED):
        side = min(_COMPARED, n - start)
        for r in range(side):
            for k in range(bounds):
                here[k, r] = sums[start + r, k]
        for b in range(len(uniforms)):
            drawn = uniforms[b, start : start + side]
            found[:] = 0
            for k in range(bounds):
                for r in range(side):
                    found[r] += here[k, r] <= drawn[r]
            for r in range(side):
                labels[b, start + r] = found[r]


@loop
def guide(sums: Any, table: Any) -> None:
    """Write the number of a row's sums at or below 0, 1/G, 2/G, … into a table (n, G).

    G is a power of two, so neither these numbers nor comparisons with them are ever rounded.
    """
    steps = table.shape[1]
    for i in range(len(sums)):
        table[i] = 0
        for k in range(sums.shape[1]):
            g = int(np.ceil(sums[i, k] * steps))
            if g < steps:
                table[i, g] += 1
        for g in range(1, steps):
            table[i, g] += table[i, g - 1]


@loop
def look_up(sums: Any, table: Any, uniforms: Any, labels: Any) -> None:
    """Do what `count_below` does, from a guide table: a step or two for any number of classes."""
    draws, n = uniforms.shape
    last, steps = sums.shape[1], table.shape[1]
    here, found = np.empty((_SIDE, draws)), np.empty((draws, _SIDE), labels.dtype)
    for start in range(0, n, _SIDE):
        side = min(_SIDE, n - start)
        for b in range(draws):
            for r in range(side):
                here[r, b] = uniforms[b, start + r]
        for r in range(side):
            i = start + r
            for b in range(draws):
                k = np.int64(table[i, int(here[r, b] * steps)])
                while k < last and sums[i, k] <= here[r, b]:
                    k += 1
                found[b, r] = k
        for b in range(draws):
            for r in range(side):
                labels[b, start + r] = found[b, r]


_BITS = 64  # draws of two-class labels that are the bits of one word
_PACKED = 1024  # words that stay in the cache


@loop
def pack(labels: Any, words: Any) -> None:
    """Set bits for labels (B, n) of two classes, or signs, for up to 64 draws, in zeroed words (n,)."""
    for start in range(0, len(words), _PACKED):
        for b in range(len(labels)):
            for i in range(start, min(start + _PACKED, len(words))):
                words[i] |= np.uint64(labels[b, i] > 0) << np.uint64(b)


@loop
def bits_above(sums: Any, uniforms: Any, words: Any) -> None:
    """Do what `count_below` does for two classes, into zeroed bits: sums (n,), numbers (B, n)."""
    for b in range(len(uniforms)):
        for i in range(len(words)):
            words[i] |= np.uint64(sums[i] <= uniforms[b, i]) << np.uint64(b)


@loop
def take_rows(labels: Any, rows: Any, taken: Any) -> None:
    """Write the labels (B, n) of some rows."""
    for b in range(len(labels)):
        for i in range(len(rows)):
            taken[b, i] = labels[b, rows[i]]


# ------------------------------------------------------------------ sums along rows


_FEW = 512  # numbers summed separately, so that rounding stays small


@loop
def table_sums(table: Any, by: Any, labels: Any, sums: Any) -> None:
    """Add Σ_i w_i A[i, y_i] of a table (n, m) and weights (n,) for labels (B, n) to ``sums`` (B,)."""
    n, m = table.shape
    size = max(16, min(_FEW, 2**14 // m))  # rows of the table that stay in the cache
    for start in range(0, n, size):
        stop = min(start + size, n)
        b = 0
        while b + 4 <= len(labels):  # four independent sums, none waiting for itself
            t0 = t1 = t2 = t3 = 0.0
            for i in range(start, stop):
                t0 += by[i] * table[i, labels[b, i]]
                t1 += by[i] * table[i, labels[b + 1, i]]
                t2 += by[i] * table[i, labels[b + 2, i]]
                t3 += by[i] * table[i, labels[b + 3, i]]
            sums[b] += t0
            sums[b + 1] += t1
            sums[b + 2] += t2
            sums[b + 3] += t3
            b += 4
        while b < len(labels):
            total = 0.0
            for i in range(start, stop):
                total += by[i] * table[i, labels[b, i]]
            sums[b] += total
            b += 1


@loop
def sums_of_bits(table: Any, by: Any, words: Any, sums: Any) -> None:
    """Do what `table_sums` does for ``words`` (n,) of two-class bits, identical to the last bit."""
    total = np.empty(_BITS)
    for start in range(0, len(words), _FEW):
        total[:] = 0.0
        for i in range(start, min(start + _FEW, len(words))):
            word, less, more = words[i], by[i] * table[i, 0], by[i] * table[i, 1]
            for b in range(len(total)):
                total[b] += more if word & (np.uint64(1) << np.uint64(b)) else less
        for b in range(len(sums)):
            sums[b] += total[b]


@loop
def cell_sums(labels: Any, cells: Any, steps: Any, sums: Any) -> None:
    """Add the labels 1 to the cells of their rows, (n,): to ``sums`` (B, K).

    A label 1 adds its entry of ``steps`` (n,), or 1 if that is None.
    """
    for b in range(len(labels)):
        for i in range(len(cells)):
            sums[b, cells[i]] += labels[b, i] if steps is None else steps[i] * labels[b, i]


@loop
def bin_counts(labels: Any, cells: Any, steps: Any, counts: Any) -> None:
    """Count each label in each bin: (B, K, m) for labels (B, n), bins (n,).

    A row is counted with its entry of ``steps`` (n,), or 1 if that is None.
    """
    for b in range(len(labels)):
        for i in range(len(cells)):
            counts[b, cells[i], labels[b, i]] += 1.0 if steps is None else steps[i]


@loop
def count_shifted(drawn: Any, chances: Any, unit: float, pieces: Any, cells: Any, counts: Any) -> None:
    """Count the rows of every piece by the cell of u + p, cut to multiples of 1/unit: (B, K, cells)."""
    for b in range(len(drawn)):
        for i in range(len(chances)):
            counts[b, pieces[i], cells[int((drawn[b, i] + chances[i]) * unit)]] += 1


_GONE = 1e-20  # a probability that is negligible


@loop
def law_of_events(chances: Any, law: Any, other: Any) -> None:
    """Write the probabilities (N + 2,) of 0, 1, … of N events, one by one; ``other`` is overwritten.

    Only non-negligible probabilities are visited, so N events take some N^1.5 operations.
    """
    law[:], other[:] = 0.0, 0.0
    law[0], low, high = 1.0, 0, 0
    for i in range(len(chances)):
        p = chances[i]
        q, new, old = 1.0 - p, (law, other)[(i + 1) & 1], (law, other)[i & 1]
        new[low] = old[low] * q
        for s in range(low + 1, high + 2):
            new[s] = old[s] * q + old[s - 1] * p
        high += 1
        while new[high] < _GONE and high > low:
            new[high] = 0.0
            high -= 1
        while new[low] < _GONE and low < high:
            new[low] = 0.0
            low += 1
        new[high + 1] = 0.0
    if len(chances) & 1:
        for s in range(len(law)):  # a loop: compiling `law[:] = other` takes a second, for its message
            law[s] = other[s]
    law[:low], law[high + 1 :] = 0.0, 0.0


@loop
def largest_shifted(
    cells: Any, above: bool, begins: Any, ends: Any, expected: Any, weight: Any, maxima: Any, first: Any
) -> None:
    """Write the largest standardised error of any interval, for every tolerance: (B, G).

    The input is counts (B, K, 2G) of `count_shifted`: events above each tolerance, or below minus it; E
    and the weights (L, G) of intervals from piece ``begins`` to ``ends``. ``first`` (B, L) gets the
    errors for tolerance 0.
    """
    draws, pieces, width = cells.shape
    count = width // 2
    running = np.zeros((pieces + 1, count))
    for b in range(draws):
        for k in range(pieces):
            total = 0
            for c in range(count):
                place = count - 1 - c
                total += np.int64(cells[b, k, width - 1 - c if above else c])
                running[k + 1, place] = running[k, place] + total
        maxima[b] = -np.inf
        for i in range(len(begins)):
            low, high = running[begins[i]], running[ends[i]]
            for c in range(count):
                maxima[b, c] = max(maxima[b, c], (expected[i, c] - (high[c] - low[c])) * weight[i, c])
            first[b, i] = (expected[i, 0] - (high[0] - low[0])) * weight[i, 0]


@loop
def extremes(words: Any, ends: Any, steps: Any, expected: Any, lowest: Any, highest: Any) -> None:
    """Write the smallest and largest of events less expected events along an order, 0 included.

    Events are summed up to the places ``ends``; ``words`` (n,) are bits of two classes, in order. A
    label 1 adds its entry of ``steps`` (n,), or 1 if that is None.
    """
    state, e = np.zeros((3, _BITS)), 0
    total, low, high = state[0], state[1], state[2]
    for place in range(len(words)):
        word, step = words[place], 1.0 if steps is None else steps[place]
        for b in range(len(total)):
            total[b] += step if word & (np.uint64(1) << np.uint64(b)) else 0.0
        if place == ends[e]:
            for b in range(len(total)):
                here = total[b] - expected[e]
                low[b], high[b] = min(low[b], here), max(high[b], here)
            e += 1
    for b in range(len(lowest)):  # compiling `lowest[:] = low[…]` takes two seconds, for its message
        lowest[b], highest[b] = low[b], high[b]


@loop
def rows_by_class(labels: Any, rows: Any, ends: Any) -> None:
    """Sort rows by their labels (B, n), in order within each class; further classes are left out.

    Class k of a draw b is ``rows[b, ends[b, k] : ends[b, k + 1]]``.
    """
    classes = ends.shape[1] - 1
    for b in range(len(labels)):
        start = ends[b]
        start[:] = 0
        for label in labels[b]:
            if label < classes:
                start[label + 1] += 1
        for k in range(classes):
            start[k + 1] += start[k]
        for i in range(labels.shape[1]):
            label = labels[b, i]
            if label < classes:
                rows[b, start[label]] = i
                start[label] += 1
        for k in range(classes, 0, -1):
            start[k] = start[k - 1]
        start[0] = 0


@loop
def sums_of_events(rows: Any, ends: Any, column: int, added: Any, sums: Any) -> None:
    """Add each event's contribution to ``sums`` (B,), for one class."""
    for b in range(len(sums)):
        for first in range(ends[b, column], ends[b, column + 1], _FEW):
            total = 0.0
            for e in range(first, min(first + _FEW, ends[b, column + 1])):
                total += added[rows[b, e]]
            sums[b] += total


@intrinsic
def _lowest_bit(context: Any, word: Any) -> Any:
    """Return the place of the lowest set bit."""

    def generate(target: Any, build: Any, signature: Any, values: Any) -> Any:
        return build.cttz(values[0], ir.Constant(ir.IntType(1), 1))

    return types.uint64(types.uint64), generate


@loop
def extremes_of_events(
    rows: Any, ends: Any, column: int, place_of: Any, expected: Any, lowest: Any, highest: Any
) -> None:
    """Write what `extremes` does for the events of a class, from the rows of that class only."""
    events = np.zeros(len(expected) - 1, np.int32)
    marks, alone = np.zeros((len(events) >> 6) + 1, np.uint64), len(events) == len(place_of)
    filled, one = np.zeros((len(marks) >> 6) + 1, np.uint64), np.uint64(1)  # words with a mark
    for b in range(len(rows)):
        first, last = ends[b, column], ends[b, column + 1]
        low, high, count = min(0.0, last - first - expected[-1]), 0.0, 0
        for e in range(first, last):
            place = np.int64(place_of[rows[b, e]])
            marks[place >> 6] |= one << np.uint64(place & 63)
            filled[place >> 12] |= one << np.uint64((place >> 6) & 63)
            if not alone:
                events[place] += 1
        for group in range(len(filled)):
            some, filled[group] = filled[group], 0
            while some != 0:
                word = (group << 6) + np.int64(_lowest_bit(some))
                some &= some - one
                left, marks[word] = marks[word], 0
                while left != 0:
                    place = (word << 6) + np.int64(_lowest_bit(left))
                    left &= left - one
                    low = min(low, count - expected[place])
                    if alone:
                        count += 1
                    else:
                        count += events[place]
                        events[place] = 0
                    high = max(high, count - expected[place + 1])
        lowest[b], highest[b] = low, high


# ------------------------------------------------------------------ chains
#
# If W_ij = exp(−|x_i − x_j|) for numbers x, a sum over all pairs is one pass in their order: the
# contribution of all earlier rows to a row shrinks by one factor from row to row.


@loop
def chain_sums(words: Any, steps: Any, expected: Any, decay: Any, sums: Any) -> None:
    """Write Σ_{i<j} W_ij d_i d_j, d = s y − e, for ``words`` (n,) of bits of two classes.

    In order, (n,): ``steps`` s, ``expected`` e, and ``decay``, W between a row and the one before it.
    """
    state = np.zeros((2, _BITS))
    before, total = state[0], state[1]
    for i in range(len(words)):
        word, factor = words[i], decay[i]
        more, less = steps[i] - expected[i], 0.0 - expected[i]
        for b in range(len(total)):
            own = more if word & (np.uint64(1) << np.uint64(b)) else less
            shrunk = before[b] * factor
            total[b] += shrunk * own
            before[b] = shrunk + own
    for b in range(len(sums)):
        sums[b] = total[b]


@loop
def chain_terms(decay: Any, values: Any, terms: Any) -> None:
    """Write Σ_{j<i} W_ij v_i v_j for every i, for numbers in order."""
    before = 0.0
    for i in range(len(values)):
        before *= decay[i]
        terms[i] = before * values[i]
        before += values[i]


@loop
def chain_pairs(decay: Any, u: Any, v: Any) -> float:
    """Return Σ_{i≠j} W_ij u_i v_j for numbers in order."""
    of_u = of_v = total = 0.0
    for i in range(len(u)):
        of_u, of_v = of_u * decay[i], of_v * decay[i]
        total += of_u * v[i] + of_v * u[i]
        of_u, of_v = of_u + u[i], of_v + v[i]
    return total


@loop
def chain_triples(decay: Any, v: Any) -> float:
    """Return Σ W_ij v_i v_j v_k over three different rows i, j, k, with i and j the outer ones."""
    ones = twos = total = 0.0
    for i in range(len(v)):
        ones, twos = ones * decay[i], twos * decay[i]
        total += twos * v[i]
        twos += ones * v[i]
        ones += v[i]
    return 6.0 * total


@loop
def rising_scores(
    below: Any, at: Any, weights: Any, owners: Any, least: float, slopes: Any, starts: Any
) -> None:
    """Add the places where scores of levels rise and stop: ``slopes`` · level + ``starts``, (count, T).

    Outcomes are (B, n), as P(Y < y) and P(Y ≤ y); the T levels are 1/T, 2/T, …, 1; row i of draw b
    belongs to ``owners[i]`` + b. A score rises from 0 to its weight, in one step unless it is an atom,
    with probability above ``least``.
    """
    steps = slopes.shape[1]
    for b in range(len(at)):
        for i in range(at.shape[1]):
            owner, upper = owners[i] + b, at[b, i]
            last = min(max(int(np.ceil(upper * steps)), 1), steps) - 1
            if upper - below[b, i] <= least:
                starts[owner, last] += weights[i]
                continue
            slope = weights[i] / (upper - below[b, i])
            lower = slope * below[b, i]
            first = min(max(int(np.ceil(below[b, i] * steps)), 1), steps) - 1
            slopes[owner, first] += slope
            starts[owner, first] -= lower
            slopes[owner, last] -= slope
            starts[owner, last] += lower + weights[i]


# ------------------------------------------------------------------ places in order


@loop
def _first_reaching(table: Any, row: int, value: float) -> int:
    """Return the first place of a row, in increasing order, that is not below a value; else its end."""
    first, end = 0, table.shape[1]
    while first < end:
        middle = (first + end) >> 1
        if table[row, middle] < value:
            first = middle + 1
        else:
            end = middle
    return first


_POOLS = 32  # pools of members that stay in the cache
_COUNTED = 200  # values of a pool up to which comparing all is faster than searching


@loop
def ranks_in_pools(pools: Any, counts: Any, outcomes: Any, below: Any, at: Any) -> None:
    """Write the shares of a row's sorted pool (n, N) below, and at or below, each of (B, n) numbers.

    The first ``counts`` (n,) values of a pool are used; NaN follows.
    """
    n = len(pools)
    for start in range(0, n, _POOLS):
        for b in range(len(outcomes)):
            for i in range(start, min(start + _POOLS, n)):
                y, size = outcomes[b, i], counts[i]
                if size > _COUNTED:
                    first = last = _first_reaching(pools, i, y)
                    while last < size and pools[i, last] == y:
                        last += 1
                else:
                    first = last = 0
                    for k in range(size):
                        first += pools[i, k] < y
                        last += pools[i, k] <= y
                below[b, i], at[b, i] = first / size, last / size


@loop
def at_places(table: Any, places: Any, unit: Any, found: Any) -> None:
    """Write entries of a table (n, N, K) at places (B, n), times a unit, into (B, n, K)."""
    for b in range(len(places)):
        for i in range(len(table)):
            for k in range(table.shape[2]):
                found[b, i, k] = table[i, places[b, i], k] * unit


@loop
def curve_at(times: Any, chances: Any, values: Any, steps: bool, below: Any, at: Any) -> None:
    """Write P(T < v) and P(T ≤ v) at values v (B, n), from curves (n, T) of such probabilities.

    Times are (1, T) or (n, T), starting at 0. Between them probabilities rise linearly, or in steps.
    """
    last = chances.shape[1] - 1
    for b in range(len(values)):
        for i in range(values.shape[1]):
            own, value = i % len(times), values[b, i]
            first = _first_reaching(times, own, value)
            if steps or first == 0 or first > last:
                left = chances[i, max(first - 1, 0)]
                there = first <= last and times[own, first] == value
                below[b, i], at[b, i] = left, chances[i, first] if there else left
                continue
            share = (value - times[own, first - 1]) / (times[own, first] - times[own, first - 1])
            low = chances[i, first - 1]
            at[b, i] = low + share * (chances[i, first] - low)
            below[b, i] = at[b, i]


@loop
def curve_inverse(times: Any, chances: Any, levels: Any, steps: bool, values: Any) -> None:
    """Write the first values at which probabilities reach levels (B, n); infinite if they never do."""
    last = chances.shape[1] - 1
    for b in range(len(levels)):
        for i in range(levels.shape[1]):
            own, level = i % len(times), levels[b, i]
            first = _first_reaching(chances, i, level)
            if first > last:
                values[b, i] = np.inf
            elif steps or first == 0:
                values[b, i] = times[own, first]
            else:
                low = chances[i, first - 1]
                step = times[own, first] - times[own, first - 1]
                values[b, i] = times[own, first - 1] + (level - low) / (chances[i, first] - low) * step
