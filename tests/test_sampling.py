"""Drawn labels: their distribution, and the fixed grid of seeds."""

import numpy as np
import pytest
from scipy.stats import chi2
from support import dirichlet

from caltest.laws.classes import LabelSampler
from caltest.sampling import DRAWS, ROWS, generator, seed_of


@pytest.mark.parametrize("m", [2, 3, 10, 40, 300])
def test_frequencies(m):
    """Pearson's chi-square of each of 5 rows, false alarms 1e-5 each."""
    probs = dirichlet(5, m, m, 1.0)
    draws = 20_000
    labels = LabelSampler.of(probs, 7).draw(0, draws)
    for row, g in enumerate(probs):
        counts, expected = np.bincount(labels[:, row], minlength=m), draws * g
        rare = expected < 5
        counts = np.append(counts[~rare], counts[rare].sum())
        expected = np.append(expected[~rare], expected[rare].sum())
        kept = expected > 0
        score = ((counts - expected)[kept] ** 2 / expected[kept]).sum()
        assert score < chi2(max(kept.sum() - 1, 1)).isf(1e-5)


@pytest.mark.parametrize("m", [3, 30])
def test_impossible_classes_never_occur(m):
    probs = np.zeros((6, m))
    probs[0, 0] = probs[1, m - 1] = probs[2, 1] = 1.0
    probs[3, [0, m - 1]] = 0.5
    probs[4, 1:] = 1.0 / (m - 1)  # the first is impossible
    probs[5, :-1] = 1.0 / (m - 1)  # the last is impossible, and the sums round
    labels = LabelSampler.of(probs, 0).draw(0, 5000)
    assert (probs[np.arange(6), labels] > 0).all()
    assert set(labels[:, 3]) == {0, m - 1}


class Highest:
    """A generator whose uniforms are as close to 1 as they can be."""

    def random(self, size):
        return np.full(size, np.nextafter(1.0, 0.0))


@pytest.mark.parametrize("m", [7, 49])
def test_uniforms_next_to_one(m, monkeypatch):
    """Sums of probabilities may round below 1; no impossible class may profit."""
    probs = np.zeros((3, m))
    probs[:, : m - 2] = 1.0 / (m - 2) * (1 - 1e-12)
    monkeypatch.setattr("caltest.laws.classes.generator", lambda *key: Highest())
    assert (LabelSampler.of(probs, 0).draw(0, 2) == m - 3).all()


def test_rows_and_draws_are_independent():
    labels = LabelSampler.of(np.full((50, 2), 0.5), 3).draw(0, 4000).astype(float) - 0.5
    correlations = np.corrcoef(labels.T)[np.triu_indices(50, 1)] * np.sqrt(4000)
    assert np.abs(correlations).max() < 5.5  # 1225 standard normals
    along = [np.corrcoef(labels[:-lag].ravel(), labels[lag:].ravel())[0, 1] for lag in (1, 63, 64, 65)]
    assert np.abs(along).max() * np.sqrt(200_000) < 5.0


def test_the_grid_is_fixed():
    """Neither the number of draws nor the batches they come in change a label."""
    probs = dirichlet(30, 4, 0)
    sampler = LabelSampler.of(probs, 11)
    whole = sampler.draw(0, 5 * DRAWS + 9)
    assert np.array_equal(sampler.draw(0, 10), whole[:10])
    assert np.array_equal(sampler.draw(DRAWS, 3 * DRAWS), whole[DRAWS : 3 * DRAWS])
    assert np.array_equal(sampler.draw(5 * DRAWS, 5 * DRAWS + 9), whole[5 * DRAWS :])
    assert not np.array_equal(whole[:DRAWS], whole[DRAWS : 2 * DRAWS])
    assert not np.array_equal(LabelSampler.of(probs, 12).draw(0, 10), whole[:10])


def test_blocks_of_rows_have_seeds_of_their_own():
    probs = np.full((2 * ROWS + 5, 2), 0.5)
    labels = LabelSampler.of(probs, 0).draw(0, 8)
    assert np.array_equal(LabelSampler.of(probs[: ROWS + 1], 0).draw(0, 8)[:, :ROWS], labels[:, :ROWS])
    assert not np.array_equal(labels[:, :ROWS], labels[:, ROWS : 2 * ROWS])


@pytest.mark.parametrize(("m", "dtype"), [(2, np.uint8), (256, np.uint8), (257, np.uint16)])
def test_labels_fit_their_type(m, dtype):
    probs = np.zeros((4, m))
    probs[:, -1] = 1.0
    labels = LabelSampler.of(probs, 0).draw(0, 3)
    assert labels.dtype == dtype
    assert (labels == m - 1).all()


# ------------------------------------------------------------------ seeds


def test_seeds_of_every_kind():
    assert seed_of(5) == seed_of(np.int64(5)) == 5
    sequence = np.random.SeedSequence(5)
    assert seed_of(sequence) == seed_of(sequence) == seed_of(np.random.SeedSequence(5))
    one, other = np.random.default_rng(5), np.random.default_rng(5)
    assert (first := seed_of(one)) == seed_of(other)
    assert seed_of(one) != first
    assert seed_of(None) != seed_of(None)


def test_keys_span_a_grid():
    assert len({generator(0, i, j).random() for i in range(20) for j in range(20)}) == 400
