"""Every compiled loop beside the plain NumPy that says what it is."""

import subprocess
import sys
from itertools import pairwise

import numpy as np
import pytest
from scipy.spatial.distance import cdist
from support import dirichlet

import caltest
from caltest._parallel import Workers
from caltest._sums import TILE
from caltest.data import Rows
from caltest.forms import FeatureSquares
from caltest.kernels import Exponential, Gaussian, MatrixKernel
from caltest.loops import kernels as _kernel_loops
from caltest.loops import rows as _loops
from caltest.sampling import generator
from caltest.scores import RoundedFeatures
from caltest.statistics import BiasedSKCE, UnbiasedSKCE

ROWS = 2 * TILE + 31  # three tiles, the last one short
SHAPES = [(2, 1.0), (3, 0.02), (5, 1.0), (10, 1.0), (10, 0.05), (40, 1.0), (300, 0.01)]


def labels_of(m, draws, n=ROWS, seed=1):
    found = np.random.default_rng(seed).integers(0, m, (draws, n))
    return found.astype(np.uint8 if m <= 256 else np.uint16)


def bits_of(y):
    words = np.zeros(y.shape[1], np.uint64)
    _loops.pack(y, words)
    return words


def residuals(probs, y):
    return np.eye(probs.shape[1])[y.astype(int)] - probs


def near(expected):
    return pytest.approx(expected, rel=1e-12, abs=1e-12 * np.abs(expected).max())


# ------------------------------------------------------------------ labels


@pytest.mark.parametrize(("m", "alpha"), [(2, 1.0), (24, 0.3), (26, 0.3), (300, 0.02)])
def test_labels_are_the_inverse_of_the_cumulative_sums(m, alpha):
    sampler = Rows(dirichlet(ROWS, m, 0, alpha)).sampler(5)
    uniforms = generator(5, 0, 0).random((64, ROWS))
    expected = [
        np.searchsorted(bounds, uniforms[:, row], side="right")
        for row, bounds in enumerate(sampler.cumulative)
    ]
    assert np.array_equal(sampler.draw(0, 64), np.array(expected).T)
    if m == 2:
        assert np.array_equal(sampler.bits(0, 64).words[0], bits_of(sampler.draw(0, 64)))
        more = sampler.bits(64, 72).with_one(np.arange(ROWS) % 2)
        assert np.array_equal(more.words[0] >> np.uint64(8), np.arange(ROWS) % 2)


# ------------------------------------------------------------------ sums along rows


@pytest.mark.parametrize("m", [2, 10, 2000])
def test_table_sums(m):
    y = labels_of(m, 5)
    table = np.random.default_rng(2).standard_normal((ROWS, m))
    by = np.random.default_rng(3).exponential(size=ROWS)
    expected, sums = table[np.arange(ROWS), y] @ by, np.zeros(5)
    _loops.table_sums(table, by, y, sums)
    assert sums == near(expected)
    if m == 2:
        by_bits = np.zeros(5)
        _loops.sums_of_bits(table, by, bits_of(y), by_bits)
        assert np.array_equal(by_bits, sums)


@pytest.mark.parametrize("weighted", [False, True])
def test_bin_counts(weighted):
    y, cells = labels_of(4, 3), np.arange(ROWS) % 7
    steps = np.random.default_rng(8).exponential(size=ROWS) if weighted else None
    counts = np.zeros((3, 7, 4))
    _loops.bin_counts(y, cells, steps, counts)
    own = np.ones(ROWS) if steps is None else steps
    expected = [
        [np.bincount(draw[cells == b], own[cells == b], minlength=4) for b in range(7)] for draw in y
    ]
    assert counts == near(np.array(expected))
    assert weighted or np.array_equal(counts, np.array(expected))


@pytest.mark.slow
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("values", [5, 10**9])
def test_extremes_of_paths(values, weighted):
    scores = np.random.default_rng(0).integers(0, values, ROWS) / values
    y, order = labels_of(2, 6), np.argsort(scores, kind="stable")
    ends = np.append(np.flatnonzero(np.diff(scores[order])), ROWS - 1)
    steps = np.random.default_rng(8).exponential(size=ROWS) if weighted else None
    expected = np.cumsum(scores[order] if steps is None else steps * scores[order])[ends]
    low, high = np.empty(6), np.empty(6)
    _loops.extremes(bits_of(y)[order], ends, steps, expected, low, high)
    events = y[:, order].astype(int) if steps is None else steps * y[:, order]
    paths = np.cumsum(events, axis=1)[:, ends] - expected
    assert np.array_equal(low, paths.min(axis=1, initial=0.0))
    assert np.array_equal(high, paths.max(axis=1, initial=0.0))
    if not weighted:  # the same from the rows of events alone
        place_of, before = np.empty(ROWS, np.intp), np.append(0.0, expected)
        place_of[order] = np.searchsorted(ends, np.arange(ROWS))
        rows, own = np.empty(y.shape, np.int32), np.empty((6, 3), np.int32)
        for labels in (y, y * (np.arange(ROWS) % 300 == 0)):  # many events, and few
            _loops.rows_by_class(labels.astype(y.dtype), rows, own)
            _loops.extremes(bits_of(labels)[order], ends, None, expected, low, high)
            lowest, highest = np.empty(6), np.empty(6)
            _loops.extremes_of_events(rows, own, 1, place_of, before, lowest, highest)
            assert np.array_equal(lowest, low)
            assert np.array_equal(highest, high)


@pytest.mark.parametrize("n", [1, 2, 61, 900])
def test_laws_of_events(n):
    chances = np.random.default_rng(n).beta(0.3, 0.3, n)
    chances[: n // 3] = np.arange(n // 3) % 2  # some are certain
    law, other = np.empty((2, n + 2))
    _loops.law_of_events(chances, law, other)
    expected = np.ones(1)
    for p in chances:
        expected = np.convolve(expected, [1.0 - p, p])
    assert law[:-1] == pytest.approx(expected, rel=0, abs=1e-16)
    assert law[-1] == 0.0


# ------------------------------------------------------------------ pairs and features


@pytest.mark.slow
@pytest.mark.parametrize("diagonal", [False, True])
@pytest.mark.parametrize(("m", "alpha"), SHAPES)
@pytest.mark.parametrize("matrix", [False, True])
def test_pairs(m, alpha, diagonal, matrix):
    """Confident and doubtful models, few and many classes."""
    probs, y = dirichlet(ROWS, m, 0, alpha), labels_of(m, 9)
    factor = np.random.default_rng(3).standard_normal((m, m))
    A = factor @ factor.T if matrix and m <= 40 else None
    kernel = Gaussian(0.4)
    W = kernel(probs, probs)
    if not diagonal:
        np.fill_diagonal(W, 0.0)
    D = [residuals(probs, each) for each in y]
    expected = np.array([np.vdot(d if A is None else d @ A, W @ d) for d in D])
    statistic = BiasedSKCE if diagonal else UnbiasedSKCE
    form = statistic(kernel if A is None else MatrixKernel([(kernel, A)])).given(Rows(probs))
    expected *= form.scale
    assert form.of_labels(y) == near(expected)
    assert form.of_labels(y[:1]) == pytest.approx(expected[:1], abs=1e-12 * np.abs(expected).max())


@pytest.mark.parametrize("statistic", [UnbiasedSKCE, BiasedSKCE])
@pytest.mark.parametrize("distance", ["tv", "euclidean"])
def test_chains(statistic, distance):
    """Of two classes the exponential kernel is a chain: one pass, and exact moments."""
    probs, y = dirichlet(ROWS, 2, 0), labels_of(2, 40)
    probs[5:9] = probs[4]
    kernel = Exponential(0.3, distance)
    form = statistic(kernel).given(Rows(probs))
    W = np.exp(-cdist(probs, probs, "cityblock" if distance == "tv" else "euclidean")
               / (0.6 if distance == "tv" else 0.3))  # fmt: skip
    if statistic is UnbiasedSKCE:
        np.fill_diagonal(W, 0.0)
    D = [residuals(probs, each) for each in y]
    expected = form.scale * np.array([np.vdot(d, W @ d) for d in D])
    assert form.of_labels(y) == near(expected)
    assert form.of_labels(y, Workers(2)) == near(expected)
    plain = statistic(MatrixKernel([(kernel, np.eye(2))])).given(Rows(probs))
    known, slow = form.moments(), plain.moments()
    assert known.mean == pytest.approx(slow.mean, rel=1e-10)
    assert known.variance == pytest.approx(slow.variance, rel=1e-9)
    assert known.skewness == pytest.approx(slow.skewness, rel=1e-9)
    assert form.kernel_terms[0].weights.chain is not None


@pytest.mark.slow
@pytest.mark.parametrize("diagonal", [False, True])
@pytest.mark.parametrize("single", [False, True])
@pytest.mark.parametrize(("m", "alpha"), SHAPES)
def test_features(m, alpha, diagonal, single):
    probs, y = dirichlet(ROWS, m, 0, alpha), labels_of(m, 9)
    width = 37 if m < 300 else 500  # of many classes the sums of a draw are never held
    features = np.random.default_rng(4).uniform(-0.1, 0.1, (ROWS, width))
    if single:
        features = RoundedFeatures.of(features, 0.1)
    values = features[:].astype(np.float64)
    D = [residuals(probs, each) for each in y]
    expected = np.array([((d.T @ values) ** 2).sum() for d in D])
    if not diagonal:
        expected -= [(values**2).sum(axis=1) @ (d**2).sum(axis=1) for d in D]
    form = FeatureSquares(probs, features, diagonal=diagonal)
    found = form.of_labels(y)
    assert found == pytest.approx(expected, rel=1e-10, abs=1e-11 * np.abs(expected).max())
    parts = form.scores.sums(y[:, :TILE], slice(0, TILE))
    parts += form.scores.sums(y[:, TILE:], slice(TILE, ROWS))
    assert form.reduce(parts, form.fixed) == pytest.approx(found, 1e-10, 1e-11 * np.abs(found).max())


@pytest.mark.parametrize("alpha", [1.0, 0.05])
@pytest.mark.parametrize("approximation", [None, "nystrom"])
@pytest.mark.parametrize("m", [2, 10])
def test_draws_do_not_depend_on_their_company(m, alpha, approximation):
    """A label vector has the same number, to the last bit, among two or 200, whoever computes it."""
    probs, y = dirichlet(ROWS, m, 0, alpha), labels_of(m, 200)
    form = BiasedSKCE(Exponential(0.4), approximation, 20).given(Rows(probs))
    values = form.of_labels(y)
    assert np.array_equal(form.of_labels(y[150:152]), values[150:152])
    assert np.array_equal(form.of_labels(np.repeat(y[7:8], 2, axis=0)), values[[7, 7]])
    for jobs in (2, 3):
        assert np.array_equal(form.of_labels(y, Workers(jobs)), values)


def test_ties_stay_ties():
    """Predictions with many equal rows: label vectors of equal counts have equal statistics."""
    probs = np.tile([[0.5, 0.25, 0.25, 0.0], [0.25, 0.25, 0.25, 0.25]], (ROWS // 2, 1))
    y = np.random.default_rng(2).integers(0, 3, len(probs)).astype(np.uint8)
    swapped = y.reshape(-1, 2)[np.random.default_rng(3).permutation(len(y) // 2)].ravel()
    form = UnbiasedSKCE(Exponential(0.3)).given(Rows(probs))
    one, other = form.of_labels(np.stack([y, swapped]))
    assert abs(one - other) <= form.resolution


def test_certain_predictions_give_no_evidence():
    probs, y = np.eye(6)[np.arange(300) % 6], np.arange(300) % 6
    result = caltest.test(probs, y, UnbiasedSKCE(Exponential(0.5)), rng=0, n_resamples=99)
    assert (result.statistic, result.pvalue) == (0.0, 1.0)


# ------------------------------------------------------------------ distances


@pytest.mark.parametrize("m", [2, 3, 64, 131])
def test_distances(m):
    x, y = dirichlet(150, m, 0), dirichlet(201, m, 1)
    found, within = np.empty((150, 201)), np.empty((150, 150))
    _kernel_loops.cityblock(x, np.ascontiguousarray(y.T), False, found)
    _kernel_loops.cityblock(x, np.ascontiguousarray(x.T), True, within)
    assert np.allclose(found, cdist(x, y, "cityblock"), rtol=1e-12, atol=1e-15)
    assert np.allclose(within, cdist(x, x, "cityblock"), rtol=1e-12, atol=1e-15)
    assert np.array_equal(within, within.T)


# ------------------------------------------------------------------ compilation


@pytest.mark.slow
def test_a_cache_that_cannot_be_written_is_done_without(tmp_path):
    """As in a package that is read-only, or in a zip file, of a user without a home."""
    code = (
        "import numba.core.caching as c\n"
        "c.CacheImpl._locator_classes = []\n"
        "import numpy as np, caltest.loops.rows as loops\n"
        "sums = np.zeros(1)\n"
        "loops.table_sums(np.ones((2, 2)), np.ones(2), np.zeros((1, 2), np.uint8), sums)\n"
        "print(sums[0])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "2.0\n"


# ------------------------------------------------------------------ shifted scans


@pytest.mark.slow
def test_what_others_compile_is_not_disturbed():
    code = (
        "import numba, caltest.loops.rows, caltest.loops.kernels\n"
        "def twice(x): return 2 * x\n"
        "twice.__module__ = None\n"
        "assert numba.njit(twice)(3) == 6\n"
        "import sys; sys.stderr = None\n"
        "twice.__module__ = 'caltest.x'\n"
        "assert numba.njit(twice)(3j) == 6j\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_shifted_scans():
    rng = np.random.default_rng(5)
    cells = rng.integers(0, 4, (3, 8, 10)).astype(np.uint16)
    begins, ends = np.array([0, 0, 2, 4, 7]), np.array([8, 4, 6, 8, 8])
    expected, weight = rng.random((5, 5)) * 30, rng.random((5, 5))
    for above in (False, True):
        maxima, first = np.empty((3, 5)), np.empty((3, 5))
        _loops.largest_shifted(cells, above, begins, ends, expected, weight, maxima, first)
        below = np.cumsum(cells[:, :, :5].astype(int), axis=2)[:, :, ::-1]
        over = np.cumsum(cells[:, :, :4:-1].astype(int), axis=2)[:, :, ::-1]
        events = over if above else below
        summed = np.stack([events[:, i:j].sum(axis=1) for i, j in zip(begins, ends, strict=True)], 1)
        errors = (expected - summed) * weight
        assert np.array_equal(maxima, errors.max(axis=1))
        assert np.array_equal(first, errors[:, :, 0])


def test_counts_of_shifted_rows():
    rng = np.random.default_rng(6)
    uniforms, chances = rng.random((3, 50)), rng.random(50)
    pieces, cell_of = np.arange(50) // 20, np.arange(2 * 100 + 1) // 50
    counts = np.zeros((3, 3, cell_of[-1] + 1), dtype=np.uint16)
    _loops.count_shifted(uniforms, chances, 100.0, pieces, cell_of, counts)
    expected = np.zeros_like(counts)
    for draw, row in np.ndindex(3, 50):
        place = int((uniforms[draw, row] + chances[row]) * 100.0)
        expected[draw, pieces[row], cell_of[place]] += 1
    assert np.array_equal(counts, expected)


@pytest.mark.parametrize("weighted", [False, True])
def test_sums_of_pieces_and_cells(weighted):
    """Of pieces of an order, of which one is empty, and of cells all over the rows."""
    rng = np.random.default_rng(7)
    y, order = labels_of(2, 4), rng.permutation(ROWS)
    steps = rng.exponential(size=ROWS) if weighted else None
    own, edges = y * (1.0 if steps is None else steps), np.array([0, 10, 10, 300, ROWS])
    pieces, sums = np.empty(ROWS, dtype=np.intp), np.zeros((4, 4))
    for k, (i, j) in enumerate(pairwise(edges)):
        pieces[order[i:j]] = k
    _loops.cell_sums(y, pieces, steps, sums)
    parts = [own[:, order[i:j]].sum(axis=1) for i, j in pairwise(edges)]
    assert sums == near(np.stack(parts, axis=1))
    cells, found = np.arange(ROWS) % 6, np.zeros((4, 6))
    _loops.cell_sums(y, cells, steps, found)
    expected = np.stack([own[:, k::6].sum(axis=1) for k in range(6)], axis=1)
    assert found == near(expected)
    assert weighted or np.array_equal(found, expected)


@pytest.mark.parametrize("size", [2, 5, 101])
def test_ranks_in_pools(size):
    """Of whole numbers, which tie, in the pools and beyond both of their ends."""
    rng = np.random.default_rng(8)
    pools = np.sort(rng.integers(-3, 4, (ROWS, size)), axis=1).astype(np.float64)
    outcomes = rng.integers(-5, 6, (3, ROWS)).astype(np.float64)
    below, at = np.empty(outcomes.shape), np.empty(outcomes.shape)
    _loops.ranks_in_pools(pools, np.full(ROWS, size), outcomes, below, at)
    assert np.array_equal(below, (pools < outcomes[:, :, None]).mean(axis=2))
    assert np.array_equal(at, (pools <= outcomes[:, :, None]).mean(axis=2))


@pytest.mark.parametrize(("columns", "unit"), [(1, 1.0), (2, 0.25)])
def test_table_at_places(columns, unit):
    rng = np.random.default_rng(9)
    table, places = rng.integers(0, 9, (ROWS, 4, columns)), rng.integers(0, 4, (3, ROWS))
    found = np.empty((3, ROWS, columns))
    _loops.at_places(table.astype(np.uint8), places.astype(np.uint8), unit, found)
    assert np.array_equal(found, table[np.arange(ROWS), places] * unit)


@pytest.mark.parametrize("own", [True, False])
def test_curves_are_looked_up_both_ways(own):
    rng = np.random.default_rng(0)
    times = np.hstack([np.zeros((7, 1)), rng.random((7, 12)).cumsum(axis=1)])[: 7 if own else 1]
    chances = np.hstack([np.zeros((7, 1)), rng.random((7, 12)).cumsum(axis=1) / 13.0])
    chances[:, 5] = chances[:, 4]  # flat
    at_times = np.broadcast_to(times, chances.shape).T
    values = np.concatenate([rng.uniform(-1.0, 14.0, (50, 7)), at_times])
    below, at = np.empty_like(values), np.empty_like(values)
    _loops.curve_at(times, chances, values, False, below, at)
    grid = np.broadcast_to(times, chances.shape)
    twin = np.column_stack([np.interp(values[:, i], grid[i], chances[i]) for i in range(7)])
    np.testing.assert_allclose(at, twin, atol=1e-14)
    np.testing.assert_array_equal(below, at)
    _loops.curve_at(times, chances, values, True, below, at)
    for i in range(7):
        last = np.searchsorted(grid[i], values[:, i], "right") - 1
        np.testing.assert_array_equal(
            at[:, i], np.where(last < 0, 0.0, chances[i, np.maximum(last, 0)])
        )
        before = np.searchsorted(grid[i], values[:, i]) - 1
        np.testing.assert_array_equal(below[:, i], chances[i, np.maximum(before, 0)])
    levels, found = rng.random((50, 7)), np.empty((50, 7))
    for steps in (False, True):
        _loops.curve_inverse(times, chances, levels, steps, found)
        beyond = levels > chances[:, -1]
        assert np.isinf(found[beyond]).all()
        back, there = np.empty_like(found), np.empty_like(found)
        _loops.curve_at(times, chances, np.where(beyond, 0.0, found), steps, back, there)
        assert (there[~beyond] >= levels[~beyond] - 1e-12).all()
        assert (back[~beyond] <= levels[~beyond] + 1e-12).all()
