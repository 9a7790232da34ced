"""The loops of kernels: sums over pairs of rows or of their features, and distances."""

# Compiled values have the types of NumPy arrays and scalars, which mypy distinguishes from Python's.
# mypy: disable-error-code="assignment, arg-type, call-arg, no-untyped-call"

from __future__ import annotations

from typing import Any

import numpy as np
from llvmlite import ir
from numba.core import types
from numba.extending import intrinsic

from caltest.loops import loop

# ------------------------------------------------------------------ rows by class
#
# Δ_i = e_{y_i}, or e_{y_i} − e_{r_i} if a usual class r_i is known, which is 0 for most rows of a
# confident model. An entry is a row with a class and a sign; its key is twice the class, plus 1 for the
# minus sign. Sorted by key, the entries of a class are adjacent: from ``ends[key]`` to the next.


@loop
def sort_by_class(labels: Any, usual: Any, size: int, rows: Any, ends: Any) -> None:
    """Sort the entries of every tile of ``size`` rows by their keys.

    Labels are (B, n), usual classes (n,) or −1; ``rows`` are places in the tile, (B, 2n), and those of
    a tile begin at twice its first row; ``ends`` by key are (B, tiles, 2m + 1).
    """
    draws, n = labels.shape
    last_key = ends.shape[2] - 1
    for b in range(draws):
        for tile in range(ends.shape[1]):
            first, last, own = tile * size, min(n, (tile + 1) * size), ends[b, tile]
            own[:] = 0
            for i in range(first, last):
                y, r = np.int64(labels[b, i]), np.int64(usual[i])
                if y != r:
                    own[2 * y + 1] += 1
                    if r >= 0:
                        own[2 * r + 2] += 1
            for k in range(last_key):
                own[k + 1] += own[k]
            for i in range(first, last):
                y, r = np.int64(labels[b, i]), np.int64(usual[i])
                if y != r:
                    rows[b, 2 * first + own[2 * y]] = i - first
                    own[2 * y] += 1
                    if r >= 0:
                        rows[b, 2 * first + own[2 * r + 1]] = i - first
                        own[2 * r + 1] += 1
            for k in range(last_key, 0, -1):
                own[k] = own[k - 1]
            own[0] = 0


@loop
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


@loop
def _signed_block(w: Any, left: Any, k: Any, own: int, right: Any, l: Any, other: int) -> float:  # noqa: E741
    """Sum W over entries of one class in the rows and one in the columns, with their signs.

    ``k`` and ``l`` are the ends by key, ``own`` and ``other`` the keys of the plus signs.
    """
    total = 0.0
    signed = k[own + 1] < k[own + 2] or l[other + 1] < l[other + 2]
    for part in range(4 if signed else 1):  # one call compiles faster
        row, column = own + (part & 1), other + (part in (1, 2))
        found = _block(w, left, k[row], k[row + 1], right, l[column], l[column + 1])
        total += found if part < 2 else -found
    return total


@loop
def pair_sums(w: Any, left: Any, right: Any, matrix: Any, sums: Any) -> None:
    """Write Σ_ij W_ij Δ_iᵀ A Δ_j of a tile for all draws; an empty A is the identity.

    ``left`` and ``right`` are the rows of entries and their ends.
    """
    (rows, k), (columns, l) = left, right  # noqa: E741
    plain, m = matrix.size == 0, k.shape[1] // 2
    for d in range(len(sums)):
        total = 0.0
        for own in range(m):
            if k[d, 2 * own] == k[d, 2 * own + 2]:
                continue
            for other in range(own if plain else 0, own + 1 if plain else m):
                entry = 1.0 if plain else matrix[own, other]
                if entry != 0.0:
                    total += entry * _signed_block(
                        w, rows[d], k[d], 2 * own, columns[d], l[d], 2 * other
                    )
        sums[d] = total


_AT_ONCE = 512  # rows summed separately, so that rounding stays small


@loop
def _add_rows(values: Any, rows: Any, start: int, end: int, some: Any, sign: float, total: Any) -> None:
    """Add the features of the rows of entries to ``total`` (F,), through partial sums."""
    for first in range(start, end, _AT_ONCE):
        last = min(end, first + _AT_ONCE)
        some[:] = 0.0
        e = first
        while e + 4 <= last:
            one, two = values[rows[e]], values[rows[e + 1]]
            three, four = values[rows[e + 2]], values[rows[e + 3]]
            for f in range(len(some)):
                some[f] = (((some[f] + one[f]) + two[f]) + three[f]) + four[f]
            e += 4
        while e < last:
            one = values[rows[e]]
            for f in range(len(some)):
                some[f] += one[f]
            e += 1
        for f in range(len(some)):
            total[f] += sign * some[f]


@loop
def sums_by_class(features: Any, rows: Any, ends: Any, size: int, sums: Any) -> None:
    """Add Σ_i Δ_i ⊗ ψ_i of features (n, F) to ``sums`` (B, m, F), from sorted entries."""
    some, total = np.empty_like(features[0]), np.empty(features.shape[1])
    for tile in range(ends.shape[1]):
        here = features[tile * size : (tile + 1) * size]
        for b in range(len(sums)):
            of_draw, own = rows[b, 2 * tile * size :], ends[b, tile]
            for key in range(len(own) - 1):
                if own[key] < own[key + 1]:
                    total[:] = 0.0
                    _add_rows(here, of_draw, own[key], own[key + 1], some, 1.0 - 2.0 * (key & 1), total)
                    for f in range(len(total)):  # a loop: Numba takes seconds to compile whole rows
                        sums[b, key >> 1, f] += total[f]


# Rounded features are integers up to 2¹³: sums of three fit into two bytes, and of all rows here into
# four. They are stored in pieces of WIDTH, (C, n, WIDTH), so that sums stay in vector registers, and
# the pieces of all rows in the cache.


WIDTH = 32  # features per piece: a cache line
_WORDS = 3  # rows summed in two bytes


@intrinsic
def _sum_rows(context: Any, features: Any, rows: Any, start: Any, end: Any, sums: Any) -> Any:
    """Write the sums of WIDTH features (n, WIDTH), int16, over ``rows[start:end]`` as int32.

    It uses vector instructions, which Numba's own loops over few columns do not reach, because they
    cannot exclude that input and output overlap.
    """

    def generate(target: Any, build: Any, signature: Any, values: Any) -> Any:
        kinds = signature.args
        arrays = [target.make_array(kinds[k])(target, build, values[k]).data for k in (0, 1, 4)]
        whole = ir.IntType(64)
        short, long = (ir.VectorType(ir.IntType(bits), WIDTH) for bits in (16, 32))
        nothing = ir.Constant(long, [0] * WIDTH)

        def features_of(place: Any) -> Any:
            row = build.zext(build.load(build.gep(arrays[1], [place])), whole)
            here = build.gep(arrays[0], [build.mul(row, ir.Constant(whole, WIDTH))])
            return build.load(build.bitcast(here, short.as_pointer()), align=2)

        def added(first: Any, total: Any, step: int) -> tuple[Any, Any]:
            """Add ``step`` rows at a time; return the place where that ends, and the sums."""
            before = build.block
            ask, add, done = (build.append_basic_block(name) for name in ("ask", "add", "done"))
            build.branch(ask)
            build.position_at_end(ask)
            place, so_far = build.phi(whole), build.phi(long)
            next_place = build.add(place, ir.Constant(whole, step))
            build.cbranch(build.icmp_signed("<=", next_place, values[3]), add, done)
            build.position_at_end(add)
            found = features_of(place)
            for further in range(1, step):
                found = build.add(found, features_of(build.add(place, ir.Constant(whole, further))))
            more = build.add(so_far, build.sext(found, long))
            place.add_incoming(first, before)
            so_far.add_incoming(total, before)
            place.add_incoming(next_place, add)
            so_far.add_incoming(more, add)
            build.branch(ask)
            build.position_at_end(done)
            return place, so_far

        place, total = added(values[2], nothing, _WORDS)
        _, total = added(place, total, 1)
        build.store(total, build.bitcast(arrays[2], long.as_pointer()), align=4)
        return target.get_dummy_value()

    return types.void(features, rows, types.int64, types.int64, sums), generate


@loop
def steps_by_class(
    pieces: Any, first: int, rows: Any, ends: Any, size: int, unit: float, sums: Any
) -> None:
    """Add Σ_i Δ_i ⊗ ψ_i to ``sums`` (B, m, C, WIDTH), for pieces from row ``first`` on, in ``unit``."""
    some = np.empty(WIDTH, np.int32)
    for tile in range(ends.shape[1]):
        for c in range(len(pieces)):
            here = pieces[c, first + tile * size :]
            for b in range(len(sums)):
                of_draw, own = rows[b, 2 * tile * size :], ends[b, tile]
                for key in range(len(own) - 1):
                    if own[key] < own[key + 1]:
                        _sum_rows(here, of_draw, own[key], own[key + 1], some)
                        step = -unit if key & 1 else unit
                        for f in range(WIDTH):
                            sums[b, key >> 1, c, f] += step * some[f]


@loop
def squares_by_class(pieces: Any, rows: Any, ends: Any, expected: Any, found: Any) -> None:
    """Add |Σ_i Δ_i ⊗ ψ_i − E|² to ``found`` (B,), E (C, m, WIDTH), all in the features' unit.

    Entries are of one tile. Sums of a draw over many classes are never held.
    """
    some, other, squares = np.empty(WIDTH, np.int32), np.empty(WIDTH, np.int32), np.empty(WIDTH)
    for c in range(len(pieces)):
        for b in range(len(found)):
            own = ends[b, 0]
            squares[:] = 0.0
            for label in range(expected.shape[1]):
                start, middle, end = own[2 * label], own[2 * label + 1], own[2 * label + 2]
                _sum_rows(pieces[c], rows[b], start, middle, some)
                _sum_rows(pieces[c], rows[b], middle, end, other)
                for f in range(WIDTH):  # independent additions: no square waits for another
                    total = (some[f] - other[f]) - expected[c, label, f]
                    squares[f] += total * total
            found[b] += squares.sum()


# ------------------------------------------------------------------ distances


_COLUMNS, _COORDINATES = 256, 64  # of a piece that stays in the second-level cache


@loop
def cityblock(x: Any, y: Any, within: bool, distances: Any) -> None:
    """Write Σ_k |x_ik − y_kj| for points (a, m) and transposed others (m, b), in the order of k.

    ``within``: the others are the points themselves, and half of the distances are copied.
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
