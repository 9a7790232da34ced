"""The isotonic band: against its definition, its coverage by enumeration, ties, pooling, crossing."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import beta
from support import every_outcome

from caltest import InputError
from caltest.bounds.intervals import ConfidenceBand, cells_wanted, interval_bounds, level_of, pool


def band_of(scores, labels, n_cells, alpha=0.05):
    cells = pool(np.asarray(scores, dtype=float), np.asarray(labels), n_cells)
    return cells, ConfidenceBand(
        cells.starts, cells.ends, *interval_bounds(cells.counts, cells.events, alpha)
    )


def published(scores, labels, alpha):
    """The band of all intervals of distinct scores, by its definition: no running maxima."""
    x = np.unique(scores)
    rows = np.array([(scores == value).sum() for value in x])
    hits = np.array([labels[scores == value].sum() for value in x])
    delta = alpha / (len(x) ** 2 + len(x))

    def low(j, k):
        n, s = rows[j : k + 1].sum(), hits[j : k + 1].sum()
        return beta.ppf(delta, s, n - s + 1) if s else 0.0

    def high(j, k):
        n, s = rows[j : k + 1].sum(), hits[j : k + 1].sum()
        return beta.isf(delta, s + 1, n - s) if s < n else 1.0

    N = range(len(x))
    lower = [max(low(j, end) for end in N[: k + 1] for j in N[: end + 1]) for k in N]
    upper = [min(high(start, k) for start in N[j:] for k in N[start:]) for j in N]
    return x, np.array(lower), np.array(upper)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(4))
def test_every_score_a_cell_is_the_published_band(seed):
    rng = np.random.default_rng(seed)
    scores = np.round(rng.random(25), 1 + seed % 2)  # with ties
    labels = (rng.random(25) < scores).astype(int)
    x, lower, upper = published(scores, labels, 0.2)
    cells, band = band_of(scores, labels, 25, 0.2)
    assert cells.starts.tolist() == cells.ends.tolist() == x.tolist()
    assert band.lower_at(x) == pytest.approx(lower, abs=1e-9)
    assert band.upper_at(x) == pytest.approx(upper, abs=1e-9)


CURVES = ([0.5] * 6, [0.0, 0.0, 0.2, 0.5, 1.0, 1.0], [0.1, 0.15, 0.2, 0.3, 0.9, 0.95])
SCORES = np.array([0.1, 0.2, 0.25, 0.5, 0.6, 0.95])


@pytest.mark.level
@pytest.mark.parametrize("curve", CURVES)
@pytest.mark.parametrize("scores", [SCORES, np.full(6, 0.3), np.array([0.1, 0.1, 0.4, 0.4, 0.4, 0.9])])
@pytest.mark.parametrize("n_cells", [6, 2, 1])
@pytest.mark.parametrize("alpha", [0.05, 0.5])
def test_coverage_in_all_outcomes(curve, scores, n_cells, alpha):
    """The exact probability that the band leaves a curve that never falls, at any score."""
    x, group = np.unique(scores, return_inverse=True)
    truth = np.array(curve)[[np.flatnonzero(group == g)[0] for g in group]]  # one value a score
    assert (np.diff(truth) >= 0).all()
    outcomes, chances = every_outcome(np.column_stack([1 - truth, truth]))
    missed = 0.0
    for labels, chance in zip(outcomes, chances, strict=True):
        _, band = band_of(scores, labels, n_cells, alpha)
        at_scores = (band.lower_at(scores) <= truth) & (truth <= band.upper_at(scores))
        between = (x[1:] + x[:-1]) / 2
        steps = (truth[np.searchsorted(scores, x)][:-1], truth[np.searchsorted(scores, x)][1:])
        # Between scores the curve is anywhere between its values there: the worst for either bound.
        inside = (band.lower_at(between) <= steps[0]) & (band.upper_at(between) >= steps[1])
        missed += chance * (not (at_scores.all() and inside.all()))
    assert missed <= alpha


def test_pooled_cells_bound_every_score_outwards():
    scores, labels = np.array([0.1, 0.2, 0.8, 0.9] * 20), np.array([1] * 80)
    cells, band = band_of(scores, labels, 2)
    assert cells.starts.tolist() == [0.1, 0.8]
    assert cells.ends.tolist() == [0.2, 0.9]
    level = level_of(2, 0.05)
    assert level == pytest.approx(0.05 / 6)
    found = level ** (1 / 40), level ** (1 / 80)  # all of 40, and of 80, rows have an event
    at = np.array([0.05, 0.1, 0.19, 0.2, 0.5, 0.89, 0.9, 1.0])
    expected = [0, 0, 0, found[0], found[0], found[0], found[1], found[1]]
    assert band.lower_at(at) == pytest.approx(expected)
    assert band.upper_at(at).tolist() == [1.0] * 8


@pytest.mark.slow
@given(st.integers(0, 10_000), st.integers(2, 60), st.integers(1, 80))
def test_mirrored_data_have_the_mirrored_band(seed, n, n_cells):
    rng = np.random.default_rng(seed)
    scores, labels = rng.integers(0, 33, n) / 32, rng.integers(0, 2, n)
    band = band_of(scores, labels, n)[1]  # cuts of pooled cells are right-closed, so not mirrored
    mirror = band_of(1.0 - scores, 1 - labels, n)[1]
    assert mirror.lower_at(1.0 - scores) == pytest.approx(1.0 - band.upper_at(scores), abs=1e-12)
    order = rng.permutation(n)
    for one, other in zip(
        band_of(scores, labels, n_cells)[0].__dict__.values(),
        band_of(scores[order], labels[order], n_cells)[0].__dict__.values(),
        strict=True,
    ):
        assert one.tolist() == other.tolist()


def test_cells_depend_on_scores_only_and_never_split_ties():
    rng = np.random.default_rng(0)
    scores = np.round(rng.beta(5, 1, 3000), 2)
    one, other = (pool(scores, rng.integers(0, 2, 3000), 30) for _ in range(2))
    assert one.starts.tolist() == other.starts.tolist()
    assert (one.starts[1:] > one.ends[:-1]).all()
    assert one.counts.sum() == 3000
    assert (one.ends - one.starts).max() <= 1 / 30 + 1e-12
    assert one.counts.max() <= 3000 / 30 + max(np.unique(scores, return_counts=True)[1])


def test_too_many_cells():
    scores = np.linspace(0, 1, 5001)
    with pytest.raises(InputError, match=r"cells is 6000, which makes 5,001 cells .* at most 5,000\."):
        pool(scores, np.zeros(5001, dtype=int), 6000)
    assert len(pool(scores[:5000], np.zeros(5000, dtype=int), 6000).starts) == 5000


@pytest.mark.level
def test_pooling_does_not_widen_the_band_of_many_scores():
    """Fewer intervals are allowed a larger level each: at 600 rows that outweighs the rounding."""
    widths = {cells_wanted(600): [], 600: []}
    for seed in range(4):
        rng = np.random.default_rng(seed)
        scores = rng.random(600)
        labels = rng.random(600) < scores
        for n_cells, found in widths.items():
            _, band = band_of(scores, labels, n_cells)
            found.append(np.mean(band.upper_at(scores) - band.lower_at(scores)))
    pooled, single = (np.mean(found) for found in widths.values())
    assert 0.8 * single < pooled < 0.98 * single


def test_fewer_lengths_give_a_wider_band():
    rng = np.random.default_rng(3)
    events = rng.binomial(20, np.linspace(0, 1, 50)).astype(float)
    whole = interval_bounds(np.full(50, 20.0), events, 0.05)
    part = interval_bounds(np.full(50, 20.0), events, 0.05, [1, 2, 4, 8, 16, 32])
    assert (part[0] <= whole[0]).all()
    assert (part[1] >= whole[1]).all()
    assert np.mean(part[1] - part[0]) < 1.1 * np.mean(whole[1] - whole[0])


def test_crossing_bounds():
    falling = np.repeat([0.2, 0.4, 0.6, 0.8], 100)
    _, band = band_of(falling, np.repeat([1, 1, 0, 0], 100), 4)
    assert band.crossings() == ((0.2, 0.8),)
    _, band = band_of(falling, np.repeat([0, 1, 0, 1], 100), 4)
    assert band.crossings() == ((0.4, 0.6),)
    _, band = band_of(falling, np.repeat([0, 0, 1, 1], 100), 4)
    assert band.crossings() == ()
    # A single score cannot contradict itself.
    assert band_of(np.full(50, 0.5), np.arange(50) % 2, 3)[1].crossings() == ()


def test_where_the_diagonal_is_left():
    scores = np.repeat([0.2, 0.4, 0.6, 0.8], 200)
    cells, band = band_of(scores, np.repeat([1, 1, 1, 1], 200), 4)
    (low,) = band.too_low()
    assert low.low == 0.2
    assert low.high == 0.8
    assert band.too_high() == []
    assert band.lower_at(cells.ends).min() > 0.8
    _, band = band_of(scores, np.repeat([0, 0, 0, 1], 200), 4)
    (high,) = band.too_high()
    assert high == (0.2, 0.6)  # from the first score on: below it nothing was seen
    (low,) = band.too_low()
    assert low.low == 0.8
