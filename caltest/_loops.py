"""The compiled innermost loops, and nothing else.

Imported only when a loop runs: the first time on a machine they are compiled, which takes seconds, and
are kept on disk. Loops release the interpreter's lock, so that workers are threads. Each adds up in one
fixed order for every label vector, and never across rows in another: equal label vectors have equal
bits, and neither blocks nor workers change one.
"""

# What is compiled has the types that arrays and NumPy's numbers have, which mypy tells apart from ours.
# mypy: disable-error-code="assignment, arg-type, call-arg, no-untyped-call"

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any, TypeVar, cast

import numba
import numpy as np
from llvmlite import ir
from numba.core import event, types
from numba.extending import intrinsic

Loop = TypeVar("Loop", bound=Callable[..., Any])


class _Announced(event.Listener):
    """Says once, on a terminal, what takes seconds."""

    def on_start(self, event: Any) -> None:
        if event.data["dispatcher"].py_func.__module__ == __name__ and sys.stderr.isatty():
            sys.stderr.write("caltest compiles its loops for this machine, once; a few seconds.\n")
            _stop_listening()

    def on_end(self, event: Any) -> None:
        """Say nothing."""


_listener = _Announced()
event.register("numba:compile", _listener)


def _stop_listening() -> None:
    event.unregister("numba:compile", _listener)


def _loop(function: Loop) -> Loop:
    """Compile when it is first called; kept on disk, if there is a place that can be written to."""
    try:
        return cast("Loop", numba.njit(nogil=True, error_model="numpy", cache=True)(function))
    except RuntimeError:  # a package that is read-only, and no folder of the user's
        return cast("Loop", numba.njit(nogil=True, error_model="numpy")(function))


# ------------------------------------------------------------------ drawing labels


_SIDE = 64  # rows brought into the order of rows together: draws of 4 096 rows share a way of the cache
_COMPARED = 128  # rows compared together


@_loop
def count_below(sums: Any, uniforms: Any, labels: Any) -> None:
    """Write how many of a row's cumulative sums (n, m − 1) are at or below each of (B, n) numbers.

    A comparison a class: for few classes.
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


@_loop
def guide(sums: Any, table: Any) -> None:
    """Write how many of a row's sums are at or below 0, 1/G, 2/G, … into a table (n, G).

    G is a power of two, so that none of these numbers, nor which of them comes before another number,
    is ever rounded.
    """
    for i in range(len(sums)):
        k = 0
        for g in range(table.shape[1]):
            while k < sums.shape[1] and sums[i, k] <= g / table.shape[1]:
                k += 1
            table[i, g] = k


@_loop
def look_up(sums: Any, table: Any, uniforms: Any, labels: Any) -> None:
    """Do as `count_below` does, from where a guide table says: a step or two, however many classes."""
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


@_loop
def take_rows(labels: Any, rows: Any, taken: Any) -> None:
    """Write the labels (B, n) of some rows."""
    for b in range(len(labels)):
        for i in range(len(rows)):
            taken[b, i] = labels[b, rows[i]]


# ------------------------------------------------------------------ sums along rows


_FEW = 512  # numbers added up by themselves, so that rounding stays small
_AT_A_TIME = 16  # draws of signs at a time, so that none waits for itself


@_loop
def table_sums(table: Any, labels: Any, sums: Any) -> None:
    """Add Σ_i A[i, y_i] of a table (n, m) for labels (B, n) to ``sums`` (B,)."""
    n, m = table.shape
    size = max(16, min(_FEW, 2**14 // m))  # rows of the table that stay in the cache
    for start in range(0, n, size):
        stop = min(start + size, n)
        for b in range(len(labels)):
            total = 0.0
            for i in range(start, stop):
                total += table[i, labels[b, i]]
            sums[b] += total


@_loop
def bin_counts(labels: Any, cells: Any, counts: Any) -> None:
    """Add up how often each label comes in each bin: (B, K, m) for labels (B, n), bins (n,)."""
    for b in range(len(labels)):
        for i in range(len(cells)):
            counts[b, cells[i], labels[b, i]] += 1.0


@_loop
def piece_sums(labels: Any, order: Any, edges: Any, sums: Any) -> None:
    """Write the sums (B, K) of labels (B, n) over pieces of an order, between ``edges`` (K + 1,)."""
    for b in range(len(labels)):
        for k in range(len(edges) - 1):
            total = 0
            for place in range(edges[k], edges[k + 1]):
                total += np.int64(labels[b, order[place]])
            sums[b, k] = total


@_loop
def bin_steps(labels: Any, cells: Any, steps: Any, sums: Any) -> None:
    """Do as `bin_counts` does where a row counts as ``steps`` (n,) says."""
    for b in range(len(labels)):
        for i in range(len(cells)):
            sums[b, cells[i], labels[b, i]] += steps[i]


@_loop
def piece_steps(labels: Any, order: Any, edges: Any, steps: Any, sums: Any) -> None:
    """Do as `piece_sums` does where a label 1 adds what ``steps`` (n,) says, in the order of rows."""
    for b in range(len(labels)):
        for k in range(len(edges) - 1):
            total = 0.0
            for place in range(edges[k], edges[k + 1]):
                total += steps[order[place]] * labels[b, order[place]]
            sums[b, k] = total


@_loop
def cell_steps(labels: Any, cells: Any, steps: Any, sums: Any) -> None:
    """Do as `cell_sums` does where a label 1 adds what ``steps`` (n,) says."""
    for b in range(len(labels)):
        for i in range(len(cells)):
            sums[b, cells[i]] += steps[i] * labels[b, i]


@_loop
def cell_sums(labels: Any, cells: Any, sums: Any) -> None:
    """Add labels (B, n) to the sums (B, K) of the cells that rows lie in, (n,)."""
    for b in range(len(labels)):
        for i in range(len(cells)):
            sums[b, cells[i]] += labels[b, i]


@_loop
def count_shifted(
    uniforms: Any, chances: Any, unit: float, pieces: Any, cell_of: Any, counts: Any
) -> None:
    """Count the rows of every piece by the cell of u + p, cut to multiples of 1/unit: (B, K, cells)."""
    for b in range(len(uniforms)):
        for i in range(len(chances)):
            place = int((uniforms[b, i] + chances[i]) * unit)
            counts[b, pieces[i], cell_of[place]] += 1


@_loop
def largest_shifted(
    cells: Any,
    above: bool,
    begins: Any,
    ends: Any,
    expected: Any,
    weight: Any,
    maxima: Any,
    first: Any,
) -> None:
    """Write the largest standardised error of any interval, for every tolerance: (B, G).

    From counts (B, K, 2G) of `count_shifted`: events above each tolerance, or below minus it; E and the
    weights (L, G) of intervals from piece ``begins`` to ``ends``. ``first`` (B, L): all of tolerance 0.
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
                error = (expected[i, c] - (high[c] - low[c])) * weight[i, c]
                maxima[b, c] = max(maxima[b, c], error)
            first[b, i] = (expected[i, 0] - (high[0] - low[0])) * weight[i, 0]


@_loop
def extremes(labels: Any, order: Any, ends: Any, expected: Any, lowest: Any, highest: Any) -> None:
    """Write the least and the largest of events less expected events along an order, 0 included.

    Events are counted up to the places ``ends`` in the order; labels (B, n) of two classes.
    """
    alone = len(ends) == len(order)
    for b in range(len(labels)):
        low = high = 0.0
        count, place = 0, 0
        for e in range(len(ends)):
            if alone:
                count += np.int64(labels[b, order[e]])
            else:
                while place <= ends[e]:
                    count += np.int64(labels[b, order[place]])
                    place += 1
            here = count - expected[e]
            low, high = min(low, here), max(high, here)
        lowest[b], highest[b] = low, high


@_loop
def extremes_of_steps(
    labels: Any, order: Any, ends: Any, steps: Any, expected: Any, lowest: Any, highest: Any
) -> None:
    """Do as `extremes` does where a label 1 adds what ``steps`` (n,) says, in order."""
    for b in range(len(labels)):
        low = high = total = 0.0
        place = 0
        for e in range(len(ends)):
            while place <= ends[e]:
                total += steps[place] * labels[b, order[place]]
                place += 1
            here = total - expected[e]
            low, high = min(low, here), max(high, here)
        lowest[b], highest[b] = low, high


@_loop
def _turn(signs: Any, of_draws: Any) -> None:
    """Write signs (b, G) cluster by cluster, (G, b)."""
    for b in range(len(signs)):
        for g in range(signs.shape[1]):
            of_draws[g, b] = signs[b, g]


@_loop
def extremes_of_signs(
    signs: Any, clusters: Any, steps: Any, ends: Any, lowest: Any, highest: Any
) -> None:
    """Write the least and the largest of Σ ε_g(i) r_i along an order, 0 included.

    ``signs`` (B, G), bytes; the rows' ``clusters`` and ``steps`` r in that order, looked at after the
    places ``ends``.
    """
    total, low, high = np.empty(_AT_A_TIME), np.empty(_AT_A_TIME), np.empty(_AT_A_TIME)
    of_draws = np.zeros((signs.shape[1], _AT_A_TIME), np.int8)
    for first in range(0, len(signs), _AT_A_TIME):
        together = min(_AT_A_TIME, len(signs) - first)
        _turn(signs[first : first + together], of_draws)
        total[:], low[:], high[:] = 0.0, 0.0, 0.0
        place = 0
        for e in range(len(ends)):
            while place <= ends[e]:
                cluster, step = clusters[place], steps[place]
                for b in range(_AT_A_TIME):
                    total[b] += step * of_draws[cluster, b]
                place += 1
            for b in range(_AT_A_TIME):
                low[b], high[b] = min(low[b], total[b]), max(high[b], total[b])
        for b in range(together):
            lowest[first + b], highest[first + b] = low[b], high[b]


@_loop
def rows_by_class(labels: Any, rows: Any, ends: Any) -> None:
    """Sort rows by their labels (B, n), those of each class in order, further classes left out.

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


@_loop
def sums_of_events(rows: Any, ends: Any, column: int, added: Any, sums: Any) -> None:
    """Add what each event of a class adds to ``sums`` (B,)."""
    for b in range(len(sums)):
        for first in range(ends[b, column], ends[b, column + 1], _FEW):
            total = 0.0
            for e in range(first, min(first + _FEW, ends[b, column + 1])):
                total += added[rows[b, e]]
            sums[b] += total


_SPARSE = 64  # rows an event from which on events are sorted by their scores, not counted at them


@_loop
def extremes_of_events(
    rows: Any, ends: Any, column: int, place_of: Any, expected: Any, lowest: Any, highest: Any
) -> None:
    """Write what `extremes` does for the events of a class, from the rows that have it alone."""
    events = np.zeros(len(expected) - 1, np.int32)
    for b in range(len(rows)):
        first, last = ends[b, column], ends[b, column + 1]
        low, high, count = min(0.0, last - first - expected[-1]), 0.0, 0
        if (last - first) * _SPARSE < len(events):
            for place in np.sort(place_of[rows[b, first:last]]):
                low = min(low, count - expected[place])
                count += 1
                high = max(high, count - expected[place + 1])
        else:
            events[:] = 0
            for e in range(first, last):
                events[place_of[rows[b, e]]] += 1
            for place in range(len(events)):
                if events[place] > 0:
                    low = min(low, count - expected[place])
                    count += events[place]
                    high = max(high, count - expected[place + 1])
        lowest[b], highest[b] = low, high


# ------------------------------------------------------------------ rows by class
#
# Δ_i = e_{y_i}, or e_{y_i} − e_{r_i} where a usual class r_i is known, which is 0 for most rows of a
# confident model. An entry is a row with a class and a sign; its key is twice the class, and one more
# for the minus sign. Sorted by key, what a class adds lies together.


@_loop
def sort_by_class(
    labels: Any, usual: Any, m: int, size: int, rows: Any, keys: Any, counts: Any
) -> None:
    """Sort the entries of every tile of ``size`` rows by their keys.

    Labels (B, n), usual classes (n,) or −1; ``rows`` in the tile and ``keys`` (B, 2n), those of a tile
    from twice its first row on; their ``counts`` (B, tiles).
    """
    draws, n = labels.shape
    ends = np.empty(2 * m + 1, np.int64)
    for b in range(draws):
        for tile in range(counts.shape[1]):
            first, last = tile * size, min(n, (tile + 1) * size)
            ends[:] = 0
            for i in range(first, last):
                y, r = np.int64(labels[b, i]), np.int64(usual[i])
                if y != r:
                    ends[2 * y + 1] += 1
                    if r >= 0:
                        ends[2 * r + 2] += 1
            for k in range(2 * m):
                ends[k + 1] += ends[k]
            counts[b, tile] = ends[2 * m]
            for i in range(first, last):
                y, r = np.int64(labels[b, i]), np.int64(usual[i])
                if y != r:
                    place = 2 * first + ends[2 * y]
                    rows[b, place], keys[b, place] = i - first, 2 * y
                    ends[2 * y] += 1
                    if r >= 0:
                        place = 2 * first + ends[2 * r + 1]
                        rows[b, place], keys[b, place] = i - first, 2 * r + 1
                        ends[2 * r + 1] += 1


@_loop
def _end_of(keys: Any, key: int, start: int, count: int) -> int:
    """Return where the entries of a key end."""
    while start < count and keys[start] == key:
        start += 1
    return start


@_loop
def _block(w: Any, left: Any, a: int, a_end: int, right: Any, b: int, b_end: int) -> float:
    """Sum W over some of the rows and columns of a tile."""
    total = 0.0
    while a + 4 <= a_end:
        first, second = w[left[a]], w[left[a + 1]]
        third, fourth = w[left[a + 2]], w[left[a + 3]]
        t0 = t1 = t2 = t3 = 0.0
        for e in range(b, b_end):
            j = right[e]
            t0 += first[j]
            t1 += second[j]
            t2 += third[j]
            t3 += fourth[j]
        total += (t0 + t1) + (t2 + t3)
        a += 4
    while a < a_end:
        one, t0 = w[left[a]], 0.0
        for e in range(b, b_end):
            t0 += one[right[e]]
        total += t0
        a += 1
    return total


@_loop
def _signed_block(
    w: Any, left: Any, a: int, a_minus: int, a_end: int, right: Any, b: int, b_minus: int, b_end: int
) -> float:
    """Sum W over the pairs of a run of rows and a run of columns, with their signs."""
    total = _block(w, left, a, a_minus, right, b, b_minus)
    if a_minus < a_end or b_minus < b_end:
        total += _block(w, left, a_minus, a_end, right, b_minus, b_end)
        total -= _block(w, left, a, a_minus, right, b_minus, b_end)
        total -= _block(w, left, a_minus, a_end, right, b, b_minus)
    return total


@_loop
def pair_sums(
    w: Any, left: Any, left_keys: Any, lefts: Any, right: Any, right_keys: Any, rights: Any, sums: Any
) -> None:
    """Write Σ_ij W_ij ⟨Δ_i, Δ_j⟩ of a tile for all draws: only pairs of one class are visited."""
    for d in range(len(sums)):
        rows, k, count = left[d], left_keys[d], lefts[d]
        columns, l, others = right[d], right_keys[d], rights[d]  # noqa: E741
        total, a, b = 0.0, 0, 0
        while a < count and b < others:
            own, other = np.int64(k[a]) >> 1, np.int64(l[b]) >> 1
            if own < other:
                a += 1
            elif other < own:
                b += 1
            else:
                a_minus, b_minus = _end_of(k, 2 * own, a, count), _end_of(l, 2 * own, b, others)
                a_end = _end_of(k, 2 * own + 1, a_minus, count)
                b_end = _end_of(l, 2 * own + 1, b_minus, others)
                total += _signed_block(w, rows, a, a_minus, a_end, columns, b, b_minus, b_end)
                a, b = a_end, b_end
        sums[d] = total


@_loop
def matrix_pair_sums(
    w: Any,
    left: Any,
    left_keys: Any,
    lefts: Any,
    right: Any,
    right_keys: Any,
    rights: Any,
    matrix: Any,
    sums: Any,
) -> None:
    """Write Σ_ij W_ij Δ_iᵀ A Δ_j of a tile for all draws."""
    for d in range(len(sums)):
        rows, k, count = left[d], left_keys[d], lefts[d]
        columns, l, others = right[d], right_keys[d], rights[d]  # noqa: E741
        total, a = 0.0, 0
        while a < count:
            own = np.int64(k[a]) >> 1
            a_minus = _end_of(k, 2 * own, a, count)
            a_end, b = _end_of(k, 2 * own + 1, a_minus, count), 0
            while b < others:
                other = np.int64(l[b]) >> 1
                b_minus = _end_of(l, 2 * other, b, others)
                b_end = _end_of(l, 2 * other + 1, b_minus, others)
                entry = matrix[own, other]
                if entry != 0.0:
                    total += entry * _signed_block(
                        w, rows, a, a_minus, a_end, columns, b, b_minus, b_end
                    )
                b = b_end
            a = a_end
        sums[d] = total


_EXACT_ROWS = 1024  # rows whose rounded features single precision adds up without rounding


@_loop
def _add_rows(
    features: Any, rows: Any, start: int, end: int, some: Any, sign: float, total: Any
) -> None:
    """Add the features of the rows of entries to ``total`` (F,), through sums of some of them."""
    for first in range(start, end, _EXACT_ROWS):
        last = min(end, first + _EXACT_ROWS)
        some[:] = 0
        e = first
        while e + 4 <= last:
            one, two = features[rows[e]], features[rows[e + 1]]
            three, four = features[rows[e + 2]], features[rows[e + 3]]
            for f in range(len(some)):
                some[f] = (((some[f] + one[f]) + two[f]) + three[f]) + four[f]
            e += 4
        while e < last:
            one = features[rows[e]]
            for f in range(len(some)):
                some[f] += one[f]
            e += 1
        for f in range(len(some)):
            total[f] += sign * some[f]


@_loop
def sums_by_class(features: Any, rows: Any, keys: Any, counts: Any, size: int, sums: Any) -> None:
    """Add Σ_i Δ_i ⊗ ψ_i of features (n, F) to ``sums`` (B, m, F), from sorted entries."""
    some, total = np.empty_like(features[0]), np.empty(features.shape[1])
    for tile in range(counts.shape[1]):
        here = features[tile * size : (tile + 1) * size]
        for b in range(len(sums)):
            of_draw, k = rows[b, 2 * tile * size :], keys[b, 2 * tile * size :]
            e = 0
            while e < counts[b, tile]:
                key = np.int64(k[e])
                end = _end_of(k, key, e, counts[b, tile])
                total[:] = 0.0
                _add_rows(here, of_draw, e, end, some, 1.0 - 2.0 * (key & 1), total)
                sums[b, key >> 1] += total
                e = end


WIDTH = 16  # features in a piece of those of all rows: in single precision a line of the cache


@intrinsic
def _sum_rows(context: Any, features: Any, rows: Any, start: Any, end: Any, sums: Any) -> Any:
    """Write the sums of WIDTH features (n, WIDTH) over ``rows[start:end]``, one row after another.

    In machine words: the sums stay in vector registers, which Numba's own loops over few columns do
    not reach, as they cannot know that what is read is never what is written.
    """

    def generate(target: Any, build: Any, signature: Any, values: Any) -> Any:
        kinds = signature.args
        arrays = [
            target.make_array(kinds[place])(target, build, values[place]).data for place in (0, 1, 4)
        ]
        item, whole = target.get_value_type(kinds[0].dtype), ir.IntType(64)
        vector = ir.VectorType(item, WIDTH)
        before = build.block
        ask, add, done = (build.append_basic_block(name) for name in ("ask", "add", "done"))
        build.branch(ask)
        build.position_at_end(ask)
        place, total = build.phi(whole), build.phi(vector)
        build.cbranch(build.icmp_signed("<", place, values[3]), add, done)
        build.position_at_end(add)
        row = build.zext(build.load(build.gep(arrays[1], [place])), whole)
        here = build.gep(arrays[0], [build.mul(row, ir.Constant(whole, WIDTH))])
        found = build.load(build.bitcast(here, vector.as_pointer()), align=kinds[0].dtype.bitwidth // 8)
        place.add_incoming(values[2], before)
        place.add_incoming(build.add(place, ir.Constant(whole, 1)), add)
        total.add_incoming(ir.Constant(vector, [0.0] * WIDTH), before)
        total.add_incoming(build.fadd(total, found), add)
        build.branch(ask)
        build.position_at_end(done)
        out = build.bitcast(arrays[2], vector.as_pointer())
        build.store(total, out, align=kinds[0].dtype.bitwidth // 8)
        return target.get_dummy_value()

    return types.void(features, rows, types.int64, types.int64, sums), generate


@_loop
def squares_by_class(
    features: Any, rows: Any, keys: Any, counts: Any, expected: Any, squares: Any
) -> None:
    """Add |Σ_i Δ_i ⊗ ψ_i − E|² to ``squares`` (B,), some features of all rows at a time.

    Features (C, n, WIDTH) and E (C, m, WIDTH) in pieces, so that those of all rows stay in the cache;
    no draw's sums of many classes are ever held.
    """
    m = expected.shape[1]
    some, total = np.empty(WIDTH, features.dtype), np.empty(WIDTH)
    ends = np.zeros((len(squares), 2 * m + 1), np.int32)
    for b in range(len(squares)):
        for key in range(2 * m):
            ends[b, key + 1] = _end_of(keys[b], key, ends[b, key], counts[b, 0])
    for c in range(len(features)):
        for b in range(len(squares)):
            square = 0.0
            for label in range(m):
                for f in range(WIDTH):
                    total[f] = -expected[c, label, f]
                for sign in range(2):
                    start, end = ends[b, 2 * label + sign], ends[b, 2 * label + sign + 1]
                    for first in range(start, end, _EXACT_ROWS):
                        _sum_rows(features[c], rows[b], first, min(end, first + _EXACT_ROWS), some)
                        for f in range(WIDTH):
                            total[f] += (1.0 - 2.0 * sign) * some[f]
                for f in range(WIDTH):
                    square += total[f] * total[f]
            squares[b] += square


# ------------------------------------------------------------------ distances


_COLUMNS, _COORDINATES = 128, 64  # of a piece that stays in the first-level cache


@_loop
def cityblock(x: Any, y: Any, within: bool, distances: Any) -> None:
    """Write Σ_k |x_ik − y_kj| for points (a, m) and others (m, b), transposed; in the order of k.

    ``within``: the others are the points, and half of the distances are copies.
    """
    m, b = y.shape
    distances[:] = 0.0
    for first in range(0, b, _COLUMNS):
        last = min(b, first + _COLUMNS)
        for start in range(0, m, _COORDINATES):
            stop = min(m, start + _COORDINATES)
            for i in range(min(len(x), last) if within else len(x)):
                row, k = distances[i, first:last], start
                while k + 4 <= stop:
                    p, q, r, s = x[i, k], x[i, k + 1], x[i, k + 2], x[i, k + 3]
                    one, two = y[k, first:last], y[k + 1, first:last]
                    three, four = y[k + 2, first:last], y[k + 3, first:last]
                    for j in range(len(row)):
                        row[j] = (
                            ((row[j] + abs(p - one[j])) + abs(q - two[j])) + abs(r - three[j])
                        ) + abs(s - four[j])
                    k += 4
                while k < stop:
                    p, one = x[i, k], y[k, first:last]
                    for j in range(len(row)):
                        row[j] += abs(p - one[j])
                    k += 1
    if within:
        for i in range(b):
            for j in range(i):
                distances[i, j] = distances[j, i]


# ------------------------------------------------------------------ chains
#
# Where W_ij = exp(−|x_i − x_j|) of numbers x, a sum over all pairs is one pass along their order: what
# all earlier rows add to a row shrinks by one factor from row to row.


_LINE = 8  # rows whose labels are fetched together
_TOGETHER = 16  # draws at a time, so that none waits for itself


@_loop
def chain_sums(labels: Any, order: Any, steps: Any, expected: Any, decay: Any, sums: Any) -> None:
    """Write Σ_{i<j} W_ij d_i d_j, d = s y − e, for labels (B, n) of two classes.

    In order, (n,): ``steps`` s, ``expected`` e, and ``decay``, W of a row and the one before it.
    """
    draws, n = labels.shape
    drawn = np.empty((_LINE, _TOGETHER))
    before, total = np.empty(_TOGETHER), np.empty(_TOGETHER)
    for first in range(0, draws, _TOGETHER):
        together = min(_TOGETHER, draws - first)
        drawn[:], before[:], total[:] = 0.0, 0.0, 0.0
        for start in range(0, n, _LINE):
            side = min(_LINE, n - start)
            for b in range(together):
                for r in range(side):
                    drawn[r, b] = steps[start + r] * labels[first + b, order[start + r]]
            for r in range(side):
                factor, score = decay[start + r], expected[start + r]
                for b in range(_TOGETHER):
                    own = drawn[r, b] - score
                    shrunk = before[b] * factor
                    total[b] += shrunk * own
                    before[b] = shrunk + own
        for b in range(together):
            sums[first + b] = total[b]


@_loop
def chain_sums_of_signs(signs: Any, clusters: Any, residuals: Any, decay: Any, sums: Any) -> None:
    """Write Σ_{i<j} W_ij ε_g(i) d_i ε_g(j) d_j for ``signs`` (B, G); the others (n,) in order."""
    before, total = np.empty(_TOGETHER), np.empty(_TOGETHER)
    of_draws = np.zeros((signs.shape[1], _TOGETHER), np.int8)
    for first in range(0, len(signs), _TOGETHER):
        together = min(_TOGETHER, len(signs) - first)
        _turn(signs[first : first + together], of_draws)
        before[:], total[:] = 0.0, 0.0
        for i in range(len(residuals)):
            factor, residual, cluster = decay[i], residuals[i], clusters[i]
            for b in range(_TOGETHER):
                own = residual * of_draws[cluster, b]
                shrunk = before[b] * factor
                total[b] += shrunk * own
                before[b] = shrunk + own
        for b in range(together):
            sums[first + b] = total[b]


@_loop
def chain_terms(decay: Any, values: Any, terms: Any) -> None:
    """Write Σ_{j<i} W_ij v_i v_j for every i, of numbers in order."""
    before = 0.0
    for i in range(len(values)):
        before *= decay[i]
        terms[i] = before * values[i]
        before += values[i]


@_loop
def chain_pairs(decay: Any, u: Any, v: Any) -> float:
    """Return Σ_{i≠j} W_ij u_i v_j of numbers in order."""
    of_u = of_v = total = 0.0
    for i in range(len(u)):
        of_u, of_v = of_u * decay[i], of_v * decay[i]
        total += of_u * v[i] + of_v * u[i]
        of_u, of_v = of_u + u[i], of_v + v[i]
    return total


@_loop
def chain_triples(decay: Any, v: Any) -> float:
    """Return Σ W_ij v_i v_j v_k over three different rows i, j, k, i and j the outer ones."""
    ones = twos = total = 0.0
    for i in range(len(v)):
        ones, twos = ones * decay[i], twos * decay[i]
        total += twos * v[i]
        twos += ones * v[i]
        ones += v[i]
    return 6.0 * total
