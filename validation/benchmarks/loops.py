"""Every compiled loop beside the plain way: nanoseconds of one core for an elementary operation.

The plain way is what one would write with NumPy and SciPy, or what they have for it. Both do the same
work, on input that fits in the caches as it does in the package: a tile of 256 rows, or 4 096 rows
where they come one after another.
"""

from __future__ import annotations

from collections.abc import Callable
from time import perf_counter, process_time
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array
from scipy.spatial.distance import cdist

from caltest._sums import TILE, law_of_sum
from caltest.laws.classes import LabelSampler
from caltest.loops import kernels as _kernel_loops
from caltest.loops import rows as _loops
from caltest.sampling import ROWS
from caltest.scores import Entries, RoundedFeatures
from validation.benchmarks.child import Measured

DRAWS, FEATURES, BINS = 64, 256, 15
FEWEST = 5  # runs, of which the shortest counts

Array = NDArray[Any]
Work = Callable[[], Array]


class Both(NamedTuple):
    """A loop and the plain way, which return the same numbers, and how many operations either is."""

    compiled: Work
    plain: Work
    count: float


class Loop(NamedTuple):
    """What is measured of a loop: its elementary operation, the plain way in words, and the classes."""

    one: str
    plain: str
    classes: tuple[int, ...]
    work: Callable[[int, int], Both]


def _probs(n: int, m: int) -> Array:
    return np.random.default_rng(m).dirichlet(np.ones(m), n)


def _labels(n: int, m: int, draws: int = DRAWS) -> Array:
    return LabelSampler.of(_probs(n, m), 1).draw(0, draws)


def _filled(out: Array, loop: Callable[..., object], *given: object) -> Work:
    """Return the work of a loop that adds to an array, from 0."""

    def run() -> Array:
        out[...] = 0
        loop(*given)
        return out

    return run


# ------------------------------------------------------------------ labels


def _drawn(m: int, n: int) -> tuple[Array, Array, Array]:
    sampler = LabelSampler.of(_probs(n, m), 1)
    uniforms = np.random.default_rng(0).random((DRAWS, n))
    return sampler.cumulative, uniforms, np.empty((DRAWS, n), sampler.dtype)


def _count_below(m: int, n: int) -> Both:
    sums, uniforms, labels = _drawn(m, n)
    plain = lambda: (sums <= uniforms[:, :, None]).sum(axis=2)  # noqa: E731
    return Both(_filled(labels, _loops.count_below, sums, uniforms, labels), plain, labels.size)


def _in_words(labels: Array) -> Array:
    """Return labels of two classes as bits, (n,)."""
    return (labels.astype(np.uint64) << np.arange(DRAWS, dtype=np.uint64)[:, None]).sum(axis=0)


def _bits_above(m: int, n: int) -> Both:
    sums, uniforms, labels = _drawn(m, n)
    words = np.empty(n, np.uint64)
    loop = _filled(words, _loops.bits_above, sums[:, 0], uniforms, words)
    return Both(loop, lambda: _in_words(sums[:, 0] <= uniforms), labels.size)


def _pack(m: int, n: int) -> Both:
    labels, words = _labels(n, m), np.empty(n, np.uint64)
    return Both(_filled(words, _loops.pack, labels, words), lambda: _in_words(labels), labels.size)


def _table(m: int, n: int) -> Array:
    return np.empty((n, 2 ** m.bit_length()), LabelSampler.of(_probs(1, m), 1).dtype)


def _look_up(m: int, n: int) -> Both:
    (sums, uniforms, labels), table = _drawn(m, n), _table(m, n)
    _loops.guide(sums, table)

    def plain() -> Array:
        columns = [np.searchsorted(row, u, "right") for row, u in zip(sums, uniforms.T, strict=True)]
        return np.array(columns).T

    return Both(_filled(labels, _loops.look_up, sums, table, uniforms, labels), plain, labels.size)


def _guide(m: int, n: int) -> Both:
    sums, table = _drawn(m, n)[0], _table(m, n)
    grid = np.arange(table.shape[1]) / table.shape[1]
    plain = lambda: np.array([np.searchsorted(row, grid, "right") for row in sums])  # noqa: E731
    return Both(_filled(table, _loops.guide, sums, table), plain, table.size)


def _take_rows(m: int, n: int) -> Both:
    labels, rows = _labels(n, m), np.arange(0, n, 2)
    taken = np.empty((DRAWS, len(rows)), labels.dtype)
    loop = _filled(taken, _loops.take_rows, labels, rows, taken)
    return Both(loop, lambda: labels[:, rows], taken.size)


# ------------------------------------------------------------------ sums along rows


def _table_sums(m: int, n: int) -> Both:
    table, labels, sums = _probs(n, m), _labels(n, m), np.empty(DRAWS)
    plain = lambda: table[np.arange(n), labels].sum(axis=1)  # noqa: E731
    return Both(_filled(sums, _loops.table_sums, table, np.ones(n), labels, sums), plain, labels.size)


def _sums_of_bits(m: int, n: int) -> Both:
    both, words, sums = _table_sums(m, n), _in_words(_labels(n, m)), np.empty(DRAWS)
    return both._replace(
        compiled=_filled(sums, _loops.sums_of_bits, _probs(n, m), np.ones(n), words, sums)
    )


def _cells(n: int) -> NDArray[np.intp]:
    """Return the cell of every row."""
    return np.random.default_rng(0).integers(0, BINS, n)


def _steps(n: int) -> Array:
    """Return what rows count."""
    return np.random.default_rng(1).random(n)


def _bin_counts(m: int, n: int, steps: Array | None = None) -> Both:
    labels, cells = _labels(n, m), _cells(n)
    counts = np.empty((DRAWS, BINS, m))

    def plain() -> Array:
        found = [np.bincount(cells * m + y, steps, BINS * m) for y in labels]
        return np.array(found).reshape(counts.shape)

    return Both(_filled(counts, _loops.bin_counts, labels, cells, steps, counts), plain, labels.size)


def _bin_counts_of_weights(m: int, n: int) -> Both:
    return _bin_counts(m, n, _steps(n))


def _cell_sums(m: int, n: int) -> Both:
    labels, cells, steps = _labels(n, m), _cells(n), _steps(n)
    sums = np.empty((DRAWS, BINS))
    plain = lambda: np.array([np.bincount(cells, steps * y, BINS) for y in labels])  # noqa: E731
    return Both(_filled(sums, _loops.cell_sums, labels, cells, steps, sums), plain, labels.size)


def _cell_sums_in_order(m: int, n: int) -> Both:
    """Cells that follow each other along an order."""
    labels, steps, order = _labels(n, m), _steps(n), np.argsort(_probs(n, m)[:, 1])
    edges = np.linspace(0, n, BINS + 1).astype(np.intp)
    cells, sums = np.empty(n, np.intp), np.empty((DRAWS, BINS))
    cells[order] = np.repeat(np.arange(BINS), np.diff(edges))

    def plain() -> Array:
        found = (steps * labels)[:, order]
        return np.asarray(np.add.reduceat(found, edges[:-1], axis=1))

    return Both(_filled(sums, _loops.cell_sums, labels, cells, steps, sums), plain, labels.size)


def _count_shifted(m: int, n: int) -> Both:
    uniforms, chances = np.random.default_rng(0).random((DRAWS, n)), _probs(n, m)[:, 1]
    unit, pieces = 100.0, np.arange(n) * BINS // n
    cell_of = np.arange(201) // 20
    counts = np.empty((DRAWS, BINS, 11), np.uint16)

    def plain() -> Array:
        cells = pieces * 11 + cell_of[((uniforms + chances) * unit).astype(np.intp)]
        return np.array([np.bincount(each, minlength=BINS * 11) for each in cells]).reshape(
            counts.shape
        )

    given = (uniforms, chances, unit, pieces, cell_of, counts)
    return Both(_filled(counts, _loops.count_shifted, *given), plain, uniforms.size)


def _law_of_events(m: int, n: int) -> Both:
    chances = _probs(n, m)[:400, 1]
    law, other = np.empty((2, len(chances) + 2))
    loop = _filled(law, _loops.law_of_events, chances, law, other)
    masses = np.column_stack([1.0 - chances, chances])
    return Both(loop, lambda: np.append(law_of_sum(masses), 0.0), len(chances) ** 2)


def _largest_shifted(m: int, n: int) -> Both:
    rng, pieces, tolerances = np.random.default_rng(0), 64, 200
    cells = rng.integers(0, 3, (DRAWS, pieces, 2 * tolerances)).astype(np.uint16)
    begins, ends = np.arange(pieces - 1), np.arange(2, pieces + 1)
    expected, weight = rng.random((2, len(begins), tolerances))
    found, first = np.empty((DRAWS, tolerances)), np.empty((DRAWS, len(begins)))

    def plain() -> Array:
        above = np.cumsum(cells[:, :, : tolerances - 1 : -1], axis=2, dtype=float)[:, :, ::-1]
        running = np.cumsum(np.pad(above, ((0, 0), (1, 0), (0, 0))), axis=1)
        errors = (expected - (running[:, ends] - running[:, begins])) * weight
        return np.asarray(errors.max(axis=1))

    given = (cells, True, begins, ends, expected, weight, found, first)
    count = DRAWS * len(begins) * tolerances
    return Both(_filled(found, _loops.largest_shifted, *given), plain, count)


def _extremes(m: int, n: int, steps: Array | None = None) -> Both:
    labels, scores = _labels(n, m), _probs(n, m)[:, 1]
    words, order, ends = _in_words(labels), np.argsort(scores), np.arange(n)
    own = np.ones(n) if steps is None else steps
    expected, found = np.cumsum(own * scores[order]), np.empty((2, DRAWS))

    def plain() -> Array:
        events = labels[:, order] if steps is None else steps * labels[:, order]
        paths = np.cumsum(events, axis=1) - expected
        return np.array([paths.min(axis=1, initial=0.0), paths.max(axis=1, initial=0.0)])

    loop = _filled(found, _loops.extremes, words[order], ends, steps, expected, *found)
    return Both(loop, plain, labels.size)


def _extremes_of_weights(m: int, n: int) -> Both:
    return _extremes(m, n, _steps(n))


# ------------------------------------------------------------------ rows by class


def _entries(m: int, n: int, size: int, draws: int) -> tuple[Array, Entries]:
    labels = _labels(n, m, draws)
    return labels, Entries.of(labels, np.full(n, -1, np.int32), m, size)


def _sort_by_class(m: int, n: int) -> Both:
    tiles = n // TILE
    labels, entries = _entries(m, n, TILE, DRAWS)
    usual, rows = np.full(n, -1, np.int32), entries.rows

    def compiled() -> Array:
        _kernel_loops.sort_by_class(labels, usual, TILE, rows, entries.ends)
        return rows.reshape(DRAWS, tiles, 2 * TILE)[:, :, :TILE]

    plain = lambda: labels.reshape(DRAWS, tiles, TILE).argsort(axis=2, kind="stable")  # noqa: E731
    return Both(compiled, plain, labels.size)


def _sorted(m: int, n: int) -> tuple[Array, Array, Array]:
    labels = _labels(n, m)
    rows, ends = np.empty(labels.shape, np.int32), np.empty((DRAWS, m + 1), np.int32)
    _loops.rows_by_class(labels, rows, ends)
    return labels, rows, ends


def _rows_by_class(m: int, n: int) -> Both:
    labels, rows, ends = _sorted(m, n)
    loop = _filled(rows, _loops.rows_by_class, labels, rows, ends)
    return Both(loop, lambda: labels.argsort(axis=1, kind="stable"), labels.size)


def _sums_of_events(m: int, n: int) -> Both:
    (labels, rows, ends), added, sums = _sorted(m, n), _probs(n, m)[:, 1], np.empty(DRAWS)
    plain = lambda: np.where(labels == 1, added, 0.0).sum(axis=1)  # noqa: E731
    loop = _filled(sums, _loops.sums_of_events, rows, ends, 1, added, sums)
    return Both(loop, plain, float(np.sum(labels == 1)))


def _extremes_of_events(m: int, n: int) -> Both:
    (labels, rows, ends), scores, found = _sorted(m, n), _probs(n, m)[:, 1], np.empty((2, DRAWS))
    order = np.argsort(scores)
    place_of = np.argsort(order).astype(np.int32)
    expected = np.append(0.0, np.cumsum(scores[order]))

    def plain() -> Array:
        paths = np.cumsum(labels[:, order] == 1, axis=1) - expected[1:]
        return np.array([paths.min(axis=1, initial=0.0), paths.max(axis=1, initial=0.0)])

    loop = _filled(found, _loops.extremes_of_events, rows, ends, 1, place_of, expected, *found)
    return Both(loop, plain, float(np.sum(labels == 1)))


def _pairs(m: int) -> tuple[Array, Array, Array, tuple[Any, ...]]:
    labels, entries = _entries(m, 2 * TILE, TILE, DRAWS)
    own, other = (entries.of_tile(slice(k * TILE, (k + 1) * TILE)) for k in range(2))
    W = np.random.default_rng(0).random((TILE, TILE))
    return W, labels[:, :TILE], labels[:, TILE:], (own, other)


def _pair_sums(m: int, n: int) -> Both:
    (W, y, z, entries), sums = _pairs(m), np.empty(DRAWS)
    plain = lambda: np.array([np.vdot(W, a[:, None] == b) for a, b in zip(y, z, strict=True)])  # noqa: E731
    return Both(
        _filled(sums, _kernel_loops.pair_sums, W, *entries, np.empty((0, 0)), sums),
        plain,
        W.size * DRAWS,
    )


def _matrix_pair_sums(m: int, n: int) -> Both:
    (W, y, z, entries), sums = _pairs(m), np.empty(DRAWS)
    A = np.random.default_rng(1).random((m, m))
    plain = lambda: np.array([np.vdot(W, A[a[:, None], b]) for a, b in zip(y, z, strict=True)])  # noqa: E731
    loop = _filled(sums, _kernel_loops.pair_sums, W, *entries, A, sums)
    return Both(loop, plain, W.size * DRAWS)


def _features(n: int) -> RoundedFeatures:
    """Return features of two bytes, as rounded ones are."""
    return RoundedFeatures.of(np.random.default_rng(2).uniform(-1.0, 1.0, (n, FEATURES)), 1.0)


def _added(labels: Array, m: int, features: Array) -> Array:
    places = np.arange(len(labels))
    return np.asarray(csr_array((np.ones(len(labels)), (labels, places)), (m, len(labels))) @ features)


def _sums_by_class(m: int, n: int) -> Both:
    size, draws = int(np.clip(32 * m, 512, n)), 8
    (labels, entries), features = _entries(m, n, size, draws), _features(n)[:]
    sums, given = np.empty((draws, m, FEATURES)), (entries.rows, entries.ends, size)
    plain = lambda: np.array([_added(y, m, features) for y in labels])  # noqa: E731
    loop = _filled(sums, _kernel_loops.sums_by_class, features, *given, sums)
    return Both(loop, plain, sums.shape[0] * features.size)


def _steps_by_class(m: int, n: int) -> Both:
    draws = 8
    (labels, entries), features = _entries(m, n, n, draws), _features(n)
    count, _, width = features.pieces.shape
    sums, wide = np.empty((draws, m, count, width)), features[:]
    given = (features.pieces, 0, entries.rows, entries.ends, n, features.unit, sums)
    plain = lambda: np.array([_added(y, m, wide) for y in labels]).reshape(sums.shape)  # noqa: E731
    return Both(_filled(sums, _kernel_loops.steps_by_class, *given), plain, draws * wide.size)


def _squares_by_class(m: int, n: int) -> Both:
    draws = 8
    (labels, entries), features = _entries(m, n, n, draws), _features(n)
    pieces, wide = features.pieces, features[:] / features.unit
    expected, squares = np.full((len(pieces), m, pieces.shape[2]), n / m), np.empty(draws)
    given = (pieces, entries.rows, entries.ends, expected, squares)
    plain = lambda: np.array([np.sum((_added(y, m, wide) - n / m) ** 2) for y in labels])  # noqa: E731
    return Both(_filled(squares, _kernel_loops.squares_by_class, *given), plain, draws * wide.size)


# ------------------------------------------------------------------ distances, chains


def _cityblock(m: int, n: int) -> Both:
    x, y = _probs(2 * TILE, m).reshape(2, TILE, m)
    columns, distances = np.ascontiguousarray(y.T), np.empty((TILE, TILE))
    loop = _filled(distances, _kernel_loops.cityblock, x, columns, False, distances)
    return Both(loop, lambda: cdist(x, y, "cityblock"), distances.size * m)


def _line(n: int) -> tuple[Array, Array, Array]:
    """Return numbers in order, W of each and the one before, and W of all pairs."""
    x = np.sort(np.random.default_rng(0).random(n))
    W = np.exp(-np.abs(x[:, None] - x) / 0.2)
    return x, np.append(0.0, np.diagonal(W, 1)), W


def _chain_sums(m: int, n: int) -> Both:
    (x, decay, W), labels, sums = _line(n), _labels(n, m), np.empty(DRAWS)
    words, upper = _in_words(labels), np.triu(W, 1)

    def plain() -> Array:
        residuals = labels - x
        return np.einsum("bi,bi->b", residuals @ upper, residuals)

    loop = _filled(sums, _loops.chain_sums, words, np.ones(n), x, decay, sums)
    return Both(loop, plain, labels.size)


def _chain_terms(m: int, n: int) -> Both:
    x, decay, W = _line(n)
    terms = np.empty(n)
    loop = _filled(terms, _loops.chain_terms, decay, x, terms)
    return Both(loop, lambda: x * (np.tril(W, -1) @ x), n)


def _chain_pairs(m: int, n: int) -> Both:
    x, decay, W = _line(n)
    np.fill_diagonal(W, 0.0)
    return Both(lambda: np.array(_loops.chain_pairs(decay, x, x)), lambda: np.array(x @ W @ x), n)


def _chain_triples(m: int, n: int) -> Both:
    x, decay, W = _line(n)
    upper = np.triu(W, 1)

    def plain() -> Array:
        before = np.cumsum(x)
        between = before - x - before[:, None]  # of the rows between two
        return np.array(6.0 * (x @ (upper * between) @ x))

    return Both(lambda: np.array(_loops.chain_triples(decay, x)), plain, n)


def _rising_scores(m: int, n: int) -> Both:
    at = np.random.default_rng(0).random((DRAWS, n))
    weights, owners, steps = np.ones(n), np.zeros(n, dtype=np.intp), 200
    out = np.zeros((2, DRAWS, steps))

    def run() -> Array:
        out[...] = 0
        _loops.rising_scores(at, at, weights, owners, 1e-6, *out)
        return out

    def plain() -> Array:
        found = np.zeros(out.shape)
        for own, row in zip(found[1], at, strict=True):
            own[:] = np.bincount(np.ceil(row * steps).astype(int).clip(1) - 1, weights, steps)
        return found

    return Both(run, plain, at.size)


def _pools(n: int) -> tuple[Array, Array]:
    """Return sorted pools of 51 numbers, and numbers of these."""
    rng = np.random.default_rng(0)
    pools = np.sort(rng.normal(size=(n, 51)), axis=1)
    return pools, pools[np.arange(n), rng.integers(51, size=(DRAWS, n))]


def _ranks_in_pools(m: int, n: int) -> Both:
    (pools, outcomes), out = _pools(n), np.zeros((2, DRAWS, n))

    def run() -> Array:
        _loops.ranks_in_pools(pools, np.full(len(pools), pools.shape[1]), outcomes, *out)
        return out

    def plain() -> Array:
        sides = ("left", "right")
        pairs = list(zip(pools, outcomes.T, strict=True))
        found = [[np.searchsorted(pool, y, side) for pool, y in pairs] for side in sides]
        return np.swapaxes(np.array(found) / 51, 1, 2)

    return Both(run, plain, outcomes.size)


def _at_places(m: int, n: int) -> Both:
    table, places = _pools(n)[0][:, :, None], np.random.default_rng(0).integers(51, size=(DRAWS, n))
    out = np.zeros((DRAWS, n, 1))
    return Both(
        _filled(out, _loops.at_places, table, places, 2.0, out),
        lambda: 2.0 * table[np.arange(n), places],
        places.size,
    )


def _curves(n: int) -> tuple[Array, Array, Array]:
    """Return times (1, 50) of curves, chances (n, 50) until these, and times or levels (B, n)."""
    rng = np.random.default_rng(0)
    times = np.arange(50.0)[None]
    chances = np.hstack([np.zeros((n, 1)), np.sort(rng.random((n, 49)), axis=1)])
    return times, chances, rng.random((DRAWS, n))


def _curve_at(m: int, n: int) -> Both:
    (times, chances, shares), out = _curves(n), np.zeros((2, DRAWS, n))
    values = 49.0 * shares

    def run() -> Array:
        _loops.curve_at(times, chances, values, False, *out)
        return out[1]

    def plain() -> Array:
        pairs = zip(values.T, chances, strict=True)
        return np.column_stack([np.interp(own, times[0], curve) for own, curve in pairs])

    return Both(run, plain, values.size)


def _curve_inverse(m: int, n: int) -> Both:
    (times, chances, shares), out = _curves(n), np.zeros((DRAWS, n))
    levels = shares * chances[:, -1]

    def run() -> Array:
        _loops.curve_inverse(times, chances, levels, False, out)
        return out

    def plain() -> Array:
        pairs = zip(levels.T, chances, strict=True)
        return np.column_stack([np.interp(own, curve, times[0]) for own, curve in pairs])

    return Both(run, plain, levels.size)


# ------------------------------------------------------------------ all of them


ALL = (2, 10, 100, 1000)

LOOPS: dict[str, Loop] = {
    "count_below": Loop("drawn label", "comparisons with all sums", (2, 10), _count_below),
    "look_up": Loop("drawn label", "searchsorted a row", (100, 1000), _look_up),
    "bits_above": Loop("drawn label", "comparisons, shifts", (2,), _bits_above),
    "pack": Loop("label", "shifts", (2,), _pack),
    "guide": Loop("entry of the guide table", "searchsorted a row", (100, 1000), _guide),
    "take_rows": Loop("label taken", "indices", (10,), _take_rows),
    "table_sums": Loop("label looked up and added", "indices, sum", ALL, _table_sums),
    "sums_of_bits": Loop("label looked up and added", "indices, sum", (2,), _sums_of_bits),
    "bin_counts": Loop("label counted", "bincount a draw", (2, 10), _bin_counts),
    "bin_counts, weights": Loop("label counted", "bincount a draw", (2, 10), _bin_counts_of_weights),
    "cell_sums": Loop("event added", "bincount a draw", (2,), _cell_sums),
    "cell_sums, in order": Loop("event added", "reduceat", (2,), _cell_sums_in_order),
    "count_shifted": Loop("row and draw", "bincount a draw", (2,), _count_shifted),
    "law_of_events": Loop("pair of events", "products of polynomials", (2,), _law_of_events),
    "largest_shifted": Loop("interval and tolerance", "cumsum, max", (2,), _largest_shifted),
    "rising_scores": Loop("rank and draw", "bincount a draw", (2,), _rising_scores),
    "ranks_in_pools": Loop("number and draw", "searchsorted a row", (2,), _ranks_in_pools),
    "at_places": Loop("place and draw", "indices", (2,), _at_places),
    "curve_at": Loop("time and draw", "interp a row", (2,), _curve_at),
    "curve_inverse": Loop("level and draw", "interp a row", (2,), _curve_inverse),
    "extremes": Loop("row and draw", "cumsum, min, max", (2,), _extremes),
    "extremes, weights": Loop("row and draw", "cumsum, min, max", (2,), _extremes_of_weights),
    "rows_by_class": Loop("label sorted", "argsort a draw", (10, 100, 1000), _rows_by_class),
    "sums_of_events": Loop("event added", "where, sum", (10, 100), _sums_of_events),
    "extremes_of_events": Loop("event", "cumsum, min, max", (10, 100), _extremes_of_events),
    "sort_by_class": Loop("label sorted", "argsort a tile", ALL, _sort_by_class),
    "pair_sums": Loop("pair and draw", "W where labels agree", ALL, _pair_sums),
    "pair_sums, matrix": Loop("pair and draw", "W times A by indices", (2, 10), _matrix_pair_sums),
    "sums_by_class": Loop("feature added", "sparse product", (2, 10, 100), _sums_by_class),
    "steps_by_class": Loop("feature added", "sparse product", (2, 10, 100), _steps_by_class),
    "squares_by_class": Loop("feature added", "sparse product, squares", (1000,), _squares_by_class),
    "cityblock": Loop("coordinate of a distance", "cdist", ALL, _cityblock),
    "chain_sums": Loop("row and draw", "product with all pairs", (2,), _chain_sums),
    "chain_terms": Loop("row", "product with all pairs", (2,), _chain_terms),
    "chain_pairs": Loop("row", "product with all pairs", (2,), _chain_pairs),
    "chain_triples": Loop("row", "product with all pairs", (2,), _chain_triples),
}
CHAINED = 2048  # rows of a chain, whose plain way goes through all pairs


def both(name: str, m: int, *, quick: bool = False) -> Both:
    """Return a loop and the plain way; ``quick``: of few rows, to see that they agree."""
    n = 2 * TILE if quick else CHAINED if name.startswith("chain") else ROWS
    return LOOPS[name].work(m, n)


def shortest(work: Work, seconds: float) -> float:
    """Return the seconds of one core that a run takes at least."""
    work()
    taken, start = [], perf_counter()
    while len(taken) < FEWEST or perf_counter() - start < seconds:
        began = process_time()
        work()
        taken.append(process_time() - began)
    return min(taken)


def measured(*, seconds: float) -> Measured:
    """Return a function that measures all loops, either way for so long."""

    def row(name: str, m: int) -> dict[str, Any]:
        loop, works = LOOPS[name], both(name, m, quick=seconds < 0.1)
        compiled, plain = (1e9 * shortest(w, seconds) / works.count for w in works[:2])
        times = {"compiled_ns": compiled, "plain_ns": plain}
        return {"loop": name, "one": loop.one, "m": m, "plain": loop.plain, **times}

    return lambda: {"loops": [row(name, m) for name, loop in LOOPS.items() for m in loop.classes]}
